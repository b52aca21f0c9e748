"""Precision-recall curve, average precision, gains curve and KS distance of 2x2+IM matrices.

The curves are computed exactly from the distinct scores. Rows with equal scores all become
predicted positives at the same threshold, which is one step of the curve. If a rejected positive (a
mismatch) is predicted positive, it counts as an error, as in the precision of 2x2+IM. The ceiling
of the average precision is therefore the same as the ceiling of the ROC curve. The steps follow
Davis and Goadrich (2006), who show that linear interpolation between points is wrong. The scale of
the interval follows Boyd, Eng and Page (2013), but the variance is computed from the influence
instead of a binomial distribution.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import digamma

from cmtrack.digits import significant
from cmtrack.grouping import Label
from cmtrack.metrics.function import Function
from cmtrack.metrics.metric import Metric
from cmtrack.metrics.roc import ACCEPTED_POSITIVE, REJECTED_POSITIVE, Ceiling, ScoreTable, frame_of
from cmtrack.statistics.inputs import FloatArray

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class PrecisionRecallCurve:
    """Precision and recall at each threshold, and the area under the precision-recall curve.

    Attributes
    ----------
    thresholds : ndarray of shape (T,)
        The distinct scores in descending order.
    precision, recall : ndarray of shape (T,)
        Precision and recall if all rows with scores at or above the threshold are predicted
        positive.
    called : ndarray of shape (T,)
        Share of all rows whose score is at or above the threshold.
    average_precision, ceiling : float
        The area under the steps of the curve, and the largest recall at any threshold.
    prevalence : float
        Share of the rows that are actually positive.
    average_precision_interval : (low, high) or None
    positive : label
    operating_point : (recall, precision) or None
        Recall and precision if the class with the highest probability is predicted.

    Examples
    --------
    >>> from cmtrack import evaluate
    >>> curve = evaluate([0, 0, 1, 1], y_prob=[0.1, 0.6, 0.4, 0.9]).precision_recall
    >>> curve.recall.tolist(), curve.precision.round(2).tolist()
    ([0.5, 0.5, 1.0, 1.0], [1.0, 0.5, 0.67, 0.5])
    """

    thresholds: FloatArray
    precision: FloatArray
    recall: FloatArray
    called: FloatArray
    average_precision: float
    ceiling: float
    prevalence: float
    average_precision_interval: tuple[float, float] | None = None
    positive: Label = None
    operating_point: tuple[float, float] | None = None

    @property
    def chance(self) -> float:
        """Average precision of a constant score."""
        return self.ceiling**2 * self.prevalence

    def to_frame(self) -> pd.DataFrame:
        """Return one row per threshold."""
        return frame_of(self, ("thresholds", "precision", "recall", "called"))

    def __repr__(self) -> str:
        return (
            f"PrecisionRecallCurve(average_precision={significant(self.average_precision)}, "
            f"ceiling={significant(self.ceiling)}, {len(self.thresholds)} thresholds)"
        )


def precision_recall(table: ScoreTable) -> PrecisionRecallCurve:
    """Compute the curve from counted scores; on a grid, empty cells are left out."""
    sweep = table.calls
    descending = np.flatnonzero(table.by_score > 0)[::-1]
    positives = table.sides[0]
    with np.errstate(invalid="ignore", divide="ignore"):
        recall = sweep.hits[descending] / positives
    return PrecisionRecallCurve(
        table.scores.values[descending],
        sweep.precision[descending],
        recall,
        sweep.called[descending] / table.total,
        PRECISION(table),
        table.ceiling,
        float(positives) / table.total,
    )


def steps(recall: FloatArray, precision: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the points of the steps, starting at recall 0; skip thresholds that add no hits."""
    adds_hits = np.diff(recall, prepend=0.0) > 0
    x = recall[adds_hits]
    y = precision[adds_hits]
    first = y[0] if len(y) else 0.0
    return np.append(0.0, x), np.append(first, y)


@dataclass(frozen=True, eq=False)
class GainsCurve:
    """The gain as a function of the share of rows that are predicted positive.

    The gain is the share of the positives that are found. Rows are predicted positive in the order
    of their scores, with the highest score first. Rows with equal scores are taken in random order,
    so the curve is linear between the thresholds. A rejected positive (a mismatch) is never found,
    so the curve ends at a ceiling below 1 if there are mismatches.

    Attributes
    ----------
    thresholds : ndarray of shape (T,)
        The distinct scores in descending order.
    called : ndarray of shape (T,)
        Share of all rows whose score is at or above the threshold.
    gain : ndarray of shape (T,)
        Recall at the threshold. It is NaN if no row is positive.
    ceiling : float
        The largest possible gain, which is reached if all rows are predicted positive.
    prevalence : float
        Share of the rows that are actually positive.
    positive : label
    operating_point : (called, gain) or None
        Share of rows predicted positive, and gain, if the class with the highest probability is
        predicted.

    Examples
    --------
    >>> from cmtrack import evaluate
    >>> curve = evaluate([0, 0, 1, 1], y_prob=[0.1, 0.6, 0.4, 0.9]).gains
    >>> curve.called.tolist(), curve.gain.tolist()
    ([0.25, 0.5, 0.75, 1.0], [0.5, 0.5, 1.0, 1.0])
    """

    thresholds: FloatArray
    called: FloatArray
    gain: FloatArray
    ceiling: float
    prevalence: float
    positive: Label = None
    operating_point: tuple[float, float] | None = None

    @property
    def lift(self) -> FloatArray:
        """The gain at each threshold divided by ``called``, shape (T,).

        The lift of a random order of the rows is 1 if there are no mismatches.
        """
        return self.gain / self.called

    def gain_at(self, called: float) -> float:
        """Return the gain if a given share of all rows is predicted positive.

        Raises
        ------
        ValueError
            If the share is not between 0 and 1.
        """
        if not 0 <= called <= 1:
            raise ValueError(f"the share of predicted positives must be in [0, 1], got {called!r}")
        return float(np.interp(called, np.append(0.0, self.called), np.append(0.0, self.gain)))

    def to_frame(self) -> pd.DataFrame:
        """Return one row per threshold."""
        return frame_of(self, ("thresholds", "called", "gain", "lift"))

    def __repr__(self) -> str:
        gain = self.gain_at(0.1)
        return (
            f"GainsCurve(gain {significant(gain)}, lift {significant(gain / 0.1)} at 10% called; "
            f"{len(self.thresholds)} thresholds)"
        )


class AveragePrecision(Function):
    """Average precision, the area under the steps of the precision-recall curve."""

    def __call__(self, table: ScoreTable) -> float:
        if not table.sides[0] > 0:
            return math.nan
        return table.average_precision

    def size(self, table: ScoreTable) -> float:
        """Return the effective number of positives.

        The interval is computed from this number if the standard error is 0.
        """
        return float(table.sides[0] ** 2 / table.squares.reshape(2, -1)[0].sum())

    def influence(self, table: ScoreTable) -> FloatArray:
        """Return the influence by channel and score, shape (4 U,)."""
        return table.precision_influence


class NormalizedPrecision(AveragePrecision):
    """Average precision divided by its ceiling, which equals the mean precision at the hits."""

    def __call__(self, table: ScoreTable) -> float:
        return PRECISION(table) / table.ceiling if table.ceiling > 0 else math.nan

    def influence(self, table: ScoreTable) -> FloatArray:
        """Return the influence by channel and score, shape (4 U,)."""
        ceiling = table.ceiling
        if ceiling == 1:
            return table.precision_influence
        influence = (table.precision_influence / ceiling).reshape(4, -1)
        slope = PRECISION(table) / ceiling**2 / float(table.sides[0]) * table.total
        influence[ACCEPTED_POSITIVE] -= slope * (1 - ceiling)
        influence[REJECTED_POSITIVE] += slope * ceiling
        return influence.ravel()


PRECISION = AveragePrecision()


def largest_error(table: ScoreTable) -> float:
    """Return the largest error of the average precision that counting on a grid can cause.

    The error is 0 if scores are not counted by cell of a grid. A cell's part of the area is largest
    if the accepted positives in the cell have equal scores that are higher than all other scores in
    the cell. It is smallest if they have different scores that are lower than all other scores in
    the cell.
    """
    if table.scores.exact or not table.sides[0] > 0:
        return 0.0
    sweep = table.calls
    positives = float(table.sides[0])
    cells = sweep.accepted > 0
    hits = sweep.accepted[cells]
    inside = table.by_score[cells]
    hits_above = sweep.hits[cells] - hits
    rows_above = sweep.called[cells] - inside
    # In the worst case, all other rows in the cell come first. The sum of (hits_above + j) /
    # (behind + j) over the accepted rows j has a closed form with the digamma function.
    behind = rows_above + inside - hits
    harmonic = digamma(behind + hits + 1) - digamma(behind + 1)
    worst = float((hits + (hits_above - behind) * harmonic).sum()) / positives
    # In the best case, the accepted rows come first, all with the same score.
    best = float((hits * (hits_above + hits) / (rows_above + hits)).sum()) / positives
    value = PRECISION(table)
    return max(best - value, value - worst, 0.0)


def youden(table: ScoreTable) -> float:
    """Return the largest difference between recall and fall-out over all thresholds."""
    if not table.has_both:
        return math.nan
    recall = table.calls.hits / table.sides[0]
    fall_out = np.cumsum(table.by_side[1, ::-1])[::-1] / table.sides[1]
    # The difference is 0 if no row is predicted positive.
    return float(max(0.0, (recall - fall_out).max()))


_AP: dict[str, Any] = {"of": "scores", "source": "Boyd, Eng & Page (2013)"}
_NO_POSITIVES = "there are no actual positives"

PRECISION_RECALL = (
    Metric(
        "binary/average_precision",
        PRECISION,
        interval="logit",
        reason=_NO_POSITIVES,
        brief="AP",
        few_errors=True,
        formula="Σ (recall step) · precision; with mismatches, at most the ceiling",
        **_AP,
    ),
    Metric(
        "binary/average_precision_ceiling",
        Ceiling(),
        interval="wilson",
        reason="a group has no rows",
        one_sided=True,
        title="ceiling of the average precision",
        brief="AP ceiling",
        headline=False,
        formula="largest recall at any threshold",
        **_AP,
    ),
    Metric(
        "binary/average_precision_normalized",
        NormalizedPrecision(),
        interval="logit",
        reason="there are no actual positives, or the ceiling is 0",
        title="normalised average precision",
        brief="normalised AP",
        headline=False,
        few_errors=True,
        formula="average_precision / average_precision_ceiling",
        **_AP,
    ),
    Metric(
        "binary/ks",
        youden,
        interval="",
        reason="a group has no rows",
        brief="KS",
        headline=False,
        title="Kolmogorov-Smirnov distance",
        formula="largest recall − fall-out over all thresholds, so it is optimistic",
        of="scores",
        low=0.0,
        high=1.0,
        source="Youden (1950)",
    ),
)
