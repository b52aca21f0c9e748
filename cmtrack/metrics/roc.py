"""ROC curve and area for 2x2+IM, by an exact sweep over the distinct scores.

A sample is predicted positive if its score reaches the threshold; inside the chosen group the class with the
highest probability is predicted, whatever the threshold. A positive whose class within its group comes out
wrong can therefore never be a hit: the curve ends at a *ceiling* below 1. Source: Markoulidakis et al.
(2021), section 4.3 (equations 37-42 with the limits of the threshold exchanged, as the rule demands).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cmtrack.grouping import Label
from cmtrack.statistics import ScoreCounts
from cmtrack.statistics.counting import Counts
from cmtrack.statistics.inputs import FloatArray

if TYPE_CHECKING:
    import pandas as pd

ACCEPTED_POSITIVE, REJECTED_POSITIVE, ACCEPTED_NEGATIVE, REJECTED_NEGATIVE = range(4)


@dataclass(frozen=True, eq=False)
class RocCurve:
    """The sweep and its area.

    Attributes
    ----------
    thresholds : ndarray of shape (T,)
        Infinity (nothing is positive), then the distinct scores in descending order.
    tp, fn, imp, fp, tn, imn : ndarray of shape (T,)
        The six counts of 2x2+IM at each threshold.
    fpr, tpr, tnr : ndarray of shape (T,)
        Fall-out, recall and specificity; NaN where a group has no samples.
    auc : float
        Area under (fpr, tpr).
    auc_standard_error : float
        By placement values (DeLong et al. 1988, extended to accepted positives).
    auc_error_bound : float
        0 where the scores are counted one by one; else the certified largest error of ``auc`` from the grid.
    ceiling : float
        The largest recall that any threshold reaches; ``auc`` cannot exceed it.
    auc_normalized, auc_normalized_standard_error : float
        ``auc / ceiling``: the ordinary area of accepted positives against all negatives. Chance is 1/2.
    positive : label
    auc_interval : (low, high) or None
    operating_point : (fpr, tpr) or None
        Where the plain arg-max prediction stands; with mismatches it generally lies off the curve.
    """

    thresholds: FloatArray
    tp: Counts
    fn: Counts
    imp: Counts
    fp: Counts
    tn: Counts
    imn: Counts
    fpr: FloatArray
    tpr: FloatArray
    tnr: FloatArray
    auc: float
    auc_standard_error: float
    auc_error_bound: float
    ceiling: float
    auc_normalized: float
    auc_normalized_standard_error: float
    positive: Label = None
    auc_interval: tuple[float, float] | None = None
    operating_point: tuple[float, float] | None = None

    def to_frame(self) -> pd.DataFrame:
        """One row per threshold."""
        import pandas as pd

        names = ("thresholds", "fpr", "tpr", "tnr", "tp", "fn", "imp", "fp", "tn", "imn")
        return pd.DataFrame({name: getattr(self, name) for name in names})

    def __repr__(self) -> str:
        return (
            f"RocCurve(auc={self.auc:.4f}, ceiling={self.ceiling:.4f}, "
            f"auc_normalized={self.auc_normalized:.4f}, {len(self.thresholds)} thresholds)"
        )


def roc_curve(scores: ScoreCounts, squares: ScoreCounts | None = None) -> RocCurve:
    """Sweep the threshold over counted scores.

    Parameters
    ----------
    scores : ScoreCounts with four channels
        Accepted positives, rejected positives (right group, class not accepted), accepted negatives, rejected
        negatives: all samples of the two groups, by the score of the positive group.
    squares : ScoreCounts, optional
        The same with squared weights, where weights are fractions.

    Raises
    ------
    ValueError
        If there are not four channels.
    """
    if len(scores.counts) != 4:
        raise ValueError(f"the sweep needs four channels, got {len(scores.counts)}")
    counts = scores.counts[:, ::-1]
    accepted, rejected, kept, refused = np.concatenate(
        (np.zeros((4, 1), dtype=counts.dtype), np.cumsum(counts, axis=1)), axis=1
    )
    positives, negatives = float(counts[:2].sum()), float(counts[2:].sum())
    fp, tp, imp = kept + refused, accepted, rejected
    fn = counts[:2].sum() - tp - imp
    tn = counts[ACCEPTED_NEGATIVE].sum() - kept
    imn = counts[2:].sum() - fp - tn
    with np.errstate(invalid="ignore", divide="ignore"):
        fpr, tpr, tnr = fp / np.float64(negatives), tp / np.float64(positives), tn / np.float64(negatives)
    area = _area(scores, scores if squares is None else squares)
    return RocCurve(np.concatenate(([math.inf], scores.values[::-1])), tp, fn, imp, fp, tn, imn, fpr, tpr, tnr, *area)


def _area(scores: ScoreCounts, squares: ScoreCounts) -> tuple[float, float, float, float, float, float]:
    """auc, its error, its bound, ceiling, normalised auc, its error."""
    counts = scores.counts.astype(np.float64)
    accepted, everyone = counts[ACCEPTED_POSITIVE], counts[:2].sum(axis=0)
    against = counts[2:].sum(axis=0)
    positives, negatives, hits = everyone.sum(), against.sum(), accepted.sum()
    if positives == 0 or negatives == 0:
        return (math.nan,) * 6
    below = (np.cumsum(against) - against + against / 2) / negatives  # placement of a positive
    above = (hits - np.cumsum(accepted) + accepted / 2) / positives  # placement of a negative
    auc = float(accepted @ below) / positives
    bound = 0.0 if scores.exact else float(accepted @ against) / (2 * positives * negatives)
    ceiling = float(hits / positives)
    weight = squares.counts.astype(np.float64)
    rejected, opposed = weight[REJECTED_POSITIVE], weight[2:].sum(axis=0)
    squared = float(weight[:2].sum()), float(opposed.sum())

    def error(of_accepted: FloatArray, of_rejected: float, of_negative: FloatArray) -> float:
        own = weight[ACCEPTED_POSITIVE] @ of_accepted**2 + rejected.sum() * of_rejected**2
        other = opposed @ of_negative**2
        return math.sqrt(_corrected(own, positives, squared[0]) + _corrected(other, negatives, squared[1]))

    auc_error = error(below - auc, -auc, above - auc)
    if ceiling == 0:
        return auc, auc_error, bound, 0.0, math.nan, math.nan
    normalized = auc / ceiling
    normalized_error = error((below - normalized) / ceiling, 0.0, above / ceiling - normalized)
    return auc, auc_error, bound, ceiling, normalized, normalized_error


def _corrected(sum_of_squares: float, total: float, squared_weights: float) -> float:
    """Variance of a weighted mean with one degree of freedom spent (NaN for a single value).

    The degree is taken from the effective number, so that the scale of fractional weights does not matter.
    """
    size = total * total / squared_weights
    return sum_of_squares / total**2 * (size / (size - 1)) if size > 1 + 1e-9 else math.nan
