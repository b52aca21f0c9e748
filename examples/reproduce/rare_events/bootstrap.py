"""Section 2.1.3: the mean of machines that are trained on a bootstrap of the positives and a part of the negatives."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.utils import check_random_state

from rare_events.machine import BinaryText, FloatArray, Weighting, logistic_regression

ROWS_AT_ONCE = 2000


class PositiveBootstrap(BinaryText):
    """Logistic regressions, averaged: positives drawn with replacement, negatives without.

    Parameters
    ----------
    n_machines : int, default 1000
    negative_share : float, default 0.5
        Share of the negatives that each machine gets. The thesis does not say how many it took.
    C : float, default 1.0
    random_state : int, RandomState or None

    Attributes
    ----------
    oob_scores_ : ndarray of shape (n,)
        For each training row the mean probability of the machines that did not see it: honest scores without more
        fits. NaN where every machine saw it.
    """

    def __init__(
        self,
        n_machines: int = 1000,
        negative_share: float = 0.5,
        C: float = 1.0,
        random_state: Any = None,
    ) -> None:
        self.n_machines = n_machines
        self.negative_share = negative_share
        self.C = C
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> PositiveBootstrap:
        """Fit on counts of words (n, n_words), dense or sparse."""
        X, codes = self._checked(X, y)
        rng = check_random_state(self.random_state)
        self.weighting_ = Weighting().fit(X)
        weighted = self.weighting_.transform(X)
        positives, negatives = np.flatnonzero(codes == 1), np.flatnonzero(codes == 0)
        few = max(1, round(self.negative_share * len(negatives)))
        coefficients, intercepts, out = [], [], np.ones((len(codes), self.n_machines), dtype=bool)
        for number in range(self.n_machines):
            drawn = np.concatenate(
                (rng.choice(positives, len(positives)), rng.choice(negatives, few, replace=False))
            )
            machine = logistic_regression(self.C).fit(weighted[drawn], codes[drawn])
            coefficients.append(machine.coef_[0])
            intercepts.append(machine.intercept_[0])
            out[drawn, number] = False
        self.coefficients_, self.intercepts_ = np.column_stack(coefficients), np.array(intercepts)
        left_out = out.sum(axis=1)
        sums = self._sums(weighted, out)
        self.oob_scores_ = np.divide(
            sums, left_out, out=np.full(len(codes), np.nan), where=left_out > 0
        )
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Mean probabilities of the machines, (n, 2)."""
        X = self._to_score(X)
        p = self._sums(self.weighting_.transform(X)) / self.n_machines
        return np.column_stack((1 - p, p))

    def _sums(self, weighted: Any, which: Any = None) -> FloatArray:
        """Sums of the machines' probabilities, of those in ``which`` (n, n_machines) where given."""
        sums = []
        for start in range(0, weighted.shape[0], ROWS_AT_ONCE):
            part = slice(start, start + ROWS_AT_ONCE)
            p = expit(weighted[part] @ self.coefficients_ + self.intercepts_)
            sums.append((p if which is None else p * which[part]).sum(axis=1))
        return np.concatenate(sums)
