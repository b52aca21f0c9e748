"""A machine's scores, and the variants of section 2.2: labels or probabilities, calibrated or not."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from cmtrack import PrevalenceEstimate, estimate_prevalence, evaluate
from rare_events.published import COLUMNS
from rare_events.websites import Websites

FloatArray = NDArray[np.float64]
Labelled = tuple[NDArray[np.int64], FloatArray]

CALIBRATIONS = ("in-sample", "out-of-fold", "held-out")
OUTPUTS = ("labels", "probabilities")
ACTUAL = "Actual positives"
METRICS = {
    "Pos. Est.": "prevalence/expected_count",
    "Bias": "prevalence/bias",
    "sPCC": "spcc/binary",
    "Acc": "binary/accuracy",
    "BA": "binary/balanced_accuracy",
    "MCC": "binary/matthews_corrcoef",
    "AUROC": "binary/roc_auc",
}
DENSITY = "bins"
"""Of the tables: maximum likelihood over histograms, as in the thesis; the product's own default is "auto"."""


@dataclass(eq=False)
class Scored:
    """A fitted machine's scores of the target, and labelled scores to calibrate with.

    Attributes
    ----------
    target : ndarray of shape (n,)
    labelled : dict
        By calibration, (y, scores): of the training rows by the machine trained on them ("in-sample"), by machines
        that did not see them ("out-of-fold"), and of labelled websites in no training set ("held-out").
    machine : estimator
    """

    target: FloatArray
    labelled: dict[str, Labelled]
    machine: Any = None
    _estimates: dict[tuple[str, str], PrevalenceEstimate] = field(default_factory=dict)

    def estimate(self, calibration: str, density: str = DENSITY) -> PrevalenceEstimate:
        """The thesis' Bayesian calibration, by the product."""
        if (calibration, density) not in self._estimates:
            found = estimate_prevalence(
                self.target, calibration=self.labelled[calibration], density=density
            )
            # the thesis does not test the fit
            self._estimates[calibration, density] = found.refused or found
        return self._estimates[calibration, density]


def score(
    machine: Any, training: Websites, target: Websites, held_out: Websites, *, folds: int
) -> Scored:
    """Train a machine and have its scores.

    The bootstrap's honest scores are those of the machines that did not see a row; every other method is trained
    once more for each fold.
    """
    machine.fit(training.counts, training.y)
    if hasattr(machine, "oob_scores_"):
        seen = np.isfinite(machine.oob_scores_)
        honest = (training.y[seen], machine.oob_scores_[seen])
    else:
        parts = StratifiedKFold(folds, shuffle=True, random_state=0)
        p = cross_val_predict(
            machine, training.counts, training.y, cv=parts, method="predict_proba"
        )
        honest = (training.y, p[:, 1])
    labelled = {
        "in-sample": (training.y, machine.predict_proba(training.counts)[:, 1]),
        "out-of-fold": honest,
        "held-out": (held_out.y, machine.predict_proba(held_out.counts)[:, 1]),
    }
    return Scored(machine.predict_proba(target.counts)[:, 1], labelled, machine)


def variants(y: NDArray[np.int64], scored: Scored) -> pd.DataFrame:
    """The published columns for labels and probabilities, without and with each calibration.

    Labels of calibrated variants are the highest scores, as many as the estimate says: the thesis' labels are those
    above the (1 - prevalence) quantile.
    """
    rows = {}
    for calibration in ("none", *CALIBRATIONS):
        if calibration == "none":
            labels, probabilities = scored.target > 0.5, scored.target
        else:
            estimate = scored.estimate(calibration)
            labels = estimate.labels(scored.target, "count").positive
            probabilities = np.clip(estimate.posterior(scored.target), 0.0, 1.0)
        for output, p in zip(OUTPUTS, (labels.astype(np.float64), probabilities), strict=True):
            found = evaluate(y, y_prob=p, labels=[0, 1]).metrics
            rows[calibration, output] = [float(y.sum())] + [
                found.get(METRICS[c], np.nan) for c in COLUMNS
            ]
    index = pd.MultiIndex.from_tuples(rows, names=["calibration", "output"])
    return pd.DataFrame(list(rows.values()), index, columns=[ACTUAL, *COLUMNS])


def labels_only_sd(y: NDArray[np.int64], scored: Scored, calibration: str) -> float:
    """sqrt(sum p (1 - p)) of the calibrated probabilities: what Table 2.4 calls sd."""
    p = np.clip(scored.estimate(calibration).posterior(scored.target), 0.0, 1.0)
    return evaluate(y, y_prob=p, labels=[0, 1]).metrics["prevalence/expected_count_sd_labels_only"]
