"""The four machines of section 1.2.3, and the labelled scores that their calibration may use."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict, train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVC

from correlation.data import FloatArray, IntArray, Problem, Sample

BATCH = 32
UPDATES = 4000
HELD_OUT = 0.3


class Machine(NamedTuple):
    """An unfitted classifier, and how its labelled scores are had: "out of fold" or "held out"."""

    name: str
    classifier: Any
    labelled_scores: str = "out of fold"

    @property
    def seeded(self) -> bool:
        """Whether another seed gives another fit of the same rows."""
        given = self.classifier.get_params()
        return any(
            name.endswith("random_state") and value is not None for name, value in given.items()
        )

    @property
    def parameters(self) -> dict[str, Any]:
        """What is worth logging."""
        inner = self.classifier
        if isinstance(inner, CalibratedClassifierCV):
            inner = inner.estimator
        wanted = (
            "kernel",
            "C",
            "n_estimators",
            "hidden_layer_sizes",
            "activation",
            "max_iter",
            "batch_size",
        )
        given = inner.get_params()
        return {name: given[name] for name in wanted if name in given} | {
            "labelled scores": self.labelled_scores
        }


class Scored(NamedTuple):
    """Scores of a fitted machine, (n,) of the positive class of two or (n, K).

    ``trained`` are labels and scores of the rows that it was fitted on, ``labelled`` of rows that the scorer of each
    has not seen.
    """

    test: FloatArray
    labelled: tuple[IntArray, FloatArray]
    trained: tuple[IntArray, FloatArray]


def machines(seed: int, n_train: int, *, trees: int = 100, folds: int = 5) -> list[Machine]:
    """The machines of Tables 1.1 to 1.4; the source gives no parameters but the kernel and the layers."""
    return [
        Machine("SVM", platt_svm(folds)),
        Machine("LogReg", LogisticRegression(max_iter=1000)),
        Machine("RFC", RandomForestClassifier(n_estimators=trees, random_state=seed)),
        Machine("NN", network(seed, epochs=max(1, round(UPDATES * BATCH / n_train))), "held out"),
    ]


def platt_svm(folds: int, kernel: str = "linear") -> CalibratedClassifierCV:
    """An SVM with Platt's sigmoid, which is fitted on out-of-fold decision values (section 0.4)."""
    return CalibratedClassifierCV(SVC(kernel=kernel), method="sigmoid", cv=folds, ensemble=False)


def network(seed: int, *, epochs: int) -> MLPClassifier:
    """Three hidden layers of five ReLU neurons and a sigmoid (or softmax), as in section 1.2.3."""
    return MLPClassifier(
        (5, 5, 5), activation="relu", batch_size=BATCH, max_iter=epochs, random_state=seed
    )


def fitted(classifier: Any, sample: Sample) -> Any:
    """A fitted copy.

    The networks stop after a fixed number of epochs, on purpose: scikit-learn's warning that they could go on is
    silenced.
    """
    with _stopping_is_wanted():
        return clone(classifier).fit(sample.x, sample.y)


@contextmanager
def _stopping_is_wanted() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def scored(machine: Machine, problem: Problem, *, folds: int = 5, seed: int = 0) -> Scored:
    """Fit a machine and score the test rows and the labelled rows.

    Out-of-fold scores use all training rows, but come from other fits. Networks of two folds differ far too much for
    that, so a network keeps 30% of the training rows for its calibration and is fitted on the others.
    """
    train = problem.train
    if machine.labelled_scores == "held out":
        x, held_x, y, held_y = train_test_split(
            train.x, train.y, test_size=HELD_OUT, stratify=train.y, random_state=seed
        )
        train = Sample(x, y)
        model = fitted(machine.classifier, train)
        labelled = held_y, probabilities(model, held_x)
    else:
        model = fitted(machine.classifier, train)
        plan = StratifiedKFold(folds, shuffle=True, random_state=seed)
        with _stopping_is_wanted():
            out_of_fold = cross_val_predict(
                machine.classifier, train.x, train.y, cv=plan, method="predict_proba"
            )
        labelled = train.y, _positive(out_of_fold)
    return Scored(
        probabilities(model, problem.test.x), labelled, (train.y, probabilities(model, train.x))
    )


def probabilities(model: Any, x: FloatArray) -> FloatArray:
    """Of the positive class of two, or of all classes."""
    return _positive(np.asarray(model.predict_proba(x)))


def _positive(p: FloatArray) -> FloatArray:
    return p[:, 1] if p.shape[1] == 2 else p
