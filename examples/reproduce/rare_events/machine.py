"""The state of the art of section 2.1.1, and its class weights of section 2.1.2: TF-IDF and logistic regression."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, check_non_negative, validate_data

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

COUNTS: dict[str, Any] = {"accept_sparse": "csr", "dtype": np.float64}
POSITIVE_WEIGHTS = tuple(float(weight) for weight in 10 ** np.linspace(0.1, 2, 20))
"""The grid of section 2.1.2, from 10^0.1 to 10^2."""


class BinaryText(ClassifierMixin, BaseEstimator):
    """What the methods have in common: counts of words in, two classes, labels at a probability of one half."""

    def predict(self, X: Any) -> NDArray[Any]:
        """Labels: the second class where its probability is above one half."""
        check_is_fitted(self)
        positive = self.predict_proba(X)[:, 1] > 0.5
        return self.classes_[positive.astype(int)]

    def _checked(self, X: Any, y: Any) -> tuple[Any, IntArray]:
        """Counts as CSR or dense, and 1 for the second of the two classes."""
        X, y = validate_data(self, X, y, **COUNTS)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) > 2:
            raise ValueError(
                f"Only binary classification is supported. The type of the target is {type_of_target(y)}."
            )
        if len(self.classes_) < 2:
            raise ValueError(
                f"{type(self).__name__} needs two classes, got one class: {self.classes_[0]!r}"
            )
        check_non_negative(X, type(self).__name__)
        return X, codes

    def _to_score(self, X: Any) -> Any:
        check_is_fitted(self)
        return validate_data(self, X, reset=False, **COUNTS)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True  # counts
        return tags


class Weighting:
    """TF-IDF of the words that were seen in fitting, like scikit-learn's vectorizer: other words do not exist."""

    def fit(self, X: Any) -> Weighting:
        """Learn the words and their weights."""
        self.words = np.flatnonzero(np.asarray((X != 0).sum(axis=0)).ravel())
        self.tfidf = TfidfTransformer().fit(X[:, self.words])
        return self

    def transform(self, X: Any) -> Any:
        """Rows of length one, sparse."""
        return self.tfidf.transform(X[:, self.words])


def logistic_regression(C: float = 1.0, positive_weight: float = 1.0) -> LogisticRegression:
    """scikit-learn's, with its defaults but for a limit of iterations that is never reached."""
    return LogisticRegression(C=C, class_weight={0: 1.0, 1: positive_weight}, max_iter=1000)


class TextMachine(BinaryText):
    """TF-IDF and logistic regression.

    Parameters
    ----------
    positive_weight : float, default 1.0
        Weight of the second class in training; the first has 1.
    C : float, default 1.0
        Inverse strength of the regularisation, scikit-learn's default.
    """

    def __init__(self, positive_weight: float = 1.0, C: float = 1.0) -> None:
        self.positive_weight = positive_weight
        self.C = C

    def fit(self, X: Any, y: Any) -> TextMachine:
        """Fit on counts of words (n, n_words), dense or sparse."""
        X, codes = self._checked(X, y)
        self.weighting_ = Weighting().fit(X)
        self.regression_ = logistic_regression(self.C, self.positive_weight).fit(
            self.weighting_.transform(X), codes
        )
        self.n_iter_ = int(self.regression_.n_iter_.max())
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities of both classes, (n, 2)."""
        X = self._to_score(X)
        return self.regression_.predict_proba(self.weighting_.transform(X))
