"""Precision over recall, average precision, gains and KS distance for 2x2+IM.

The curves are computed exactly from the distinct scores. Rows with equal scores become predicted
positive together, in one step of the curve. A rejected positive (a mismatch) that is predicted
positive counts as an error, as in the precision of 2x2+IM. So the average precision has the same
ceiling as the ROC curve. Sources: Davis and Goadrich (2006) for the steps, who show that linear
interpolation is wrong here; Boyd, Eng and Page (2013) for the scale of the interval, here with the
variance from the influence instead of a binomial one.
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
from cmtrack.metrics.roc import ACCEPTED_NEGATIVE, ACCEPTED_POSITIVE, Ceiling, ScoreTable, frame_of
from cmtrack.statistics.inputs import FloatArray

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class PrecisionRecallCurve:
    """Precision and recall by threshold, and the area.

    Attributes
    ----------
    thresholds : ndarray of shape (T,)
        The distinct scores in descending order.
    precision, recall : ndarray of shape (T,)
        Precision and recall if rows with at least that score are predicted positive.
    called : ndarray of shape (T,)
        Share of all rows with at least that score.
    average_precision, ceiling : float
        The area under the steps, and the largest recall at any threshold.
    prevalence : float
        Share of actual positives.
    average_precision_interval : (low, high) or None
    positive : label
    operating_point : (recall, precision) or None
        Recall and precision of the plain arg-max prediction.

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
    """Return the curve of counted scores; on a grid, it has only cells with scores."""
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


@dataclass(frozen=True, eq=False)
class GainsCurve:
    """Share of the positives that are found, by the share of rows that are predicted positive.

    Rows are predicted positive in the order of their scores, the highest first. Rows with equal
    scores come in random order, so the curve is linear between the thresholds. A rejected positive
    (a mismatch) is not found, so with mismatches the curve ends at a ceiling below 1.

    Attributes
    ----------
    thresholds : ndarray of shape (T,)
        The distinct scores in descending order.
    called : ndarray of shape (T,)
        Share of all rows with at least that score.
    gain : ndarray of shape (T,)
        Recall at that threshold; NaN without positives.
    ceiling : float
        The largest gain, which is reached if all rows are predicted positive.
    prevalence : float
        Share of actual positives.
    positive : label
    operating_point : (called, gain) or None
        Share predicted positive and gain of the plain arg-max prediction.

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
        """Gain divided by ``called``, shape (T,); 1 for a random order without mismatches."""
        return self.gain / self.called

    def gain_at(self, called: float) -> float:
        """Return the gain if a share of all rows is predicted positive.

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
    """Area under the steps of precision over recall."""

    def __call__(self, table: ScoreTable) -> float:
        if not table.sides[0] > 0:
            return math.nan
        sweep = table.calls
        return float(sweep.accepted @ sweep.precision) / float(table.sides[0])

    def size(self, table: ScoreTable) -> float:
        """Return the effective number of positives, for a standard error of 0."""
        return float(table.sides[0] ** 2 / table.squares.reshape(2, -1)[0].sum())

    def influence(self, table: ScoreTable) -> FloatArray:
        """Return the influence (4 U,)."""
        accepted, rejected, negative = self._parts(table)
        return np.concatenate((accepted, rejected, negative, negative))

    def _parts(self, table: ScoreTable) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the influence of accepted and rejected positives and of negatives, (U,) each."""
        sweep = table.calls
        share = float(table.sides[0]) / table.total
        no_steps = np.zeros(len(sweep.hits))
        steps = np.divide(sweep.accepted, sweep.called, out=no_steps, where=sweep.called > 0)
        # A row is predicted positive at all thresholds up to its score. There a hit raises the
        # precision, and every row lowers it.
        gained = np.cumsum(steps)
        lost = np.cumsum(steps * sweep.precision)
        value = PRECISION(table)
        accepted = sweep.precision + gained - lost - value
        return accepted / share, (-lost - value) / share, -lost / share


class NormalizedPrecision(AveragePrecision):
    """Average precision divided by its ceiling, which is the mean precision at hits."""

    def __call__(self, table: ScoreTable) -> float:
        return PRECISION(table) / table.ceiling if table.ceiling > 0 else math.nan

    def _parts(self, table: ScoreTable) -> tuple[FloatArray, FloatArray, FloatArray]:
        accepted, rejected, negative = super()._parts(table)
        ceiling = table.ceiling
        share = float(table.sides[0]) / table.total
        slope = PRECISION(table) / ceiling**2 / share
        return (
            accepted / ceiling - slope * (1 - ceiling),
            rejected / ceiling + slope * ceiling,
            negative / ceiling,
        )


PRECISION = AveragePrecision()


def largest_error(table: ScoreTable) -> float:
    """Return the largest error of the average precision if scores are counted by cell; otherwise 0.

    A cell's part of the area is largest if its accepted positives come first and have equal scores.
    It is smallest if they come last and have different scores.
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
    # Worst: all other rows of the cell come first. The sum over the j-th accepted row of
    # (hits_above + j) / (behind + j) has a closed form with digamma.
    behind = rows_above + inside - hits
    harmonic = digamma(behind + hits + 1) - digamma(behind + 1)
    worst = float((hits + (hits_above - behind) * harmonic).sum()) / positives
    # Best: the accepted rows come first, all with the same score.
    best = float((hits * (hits_above + hits) / (rows_above + hits)).sum()) / positives
    value = PRECISION(table)
    return max(best - value, value - worst, 0.0)


def youden(table: ScoreTable) -> float:
    """Return the largest recall - fall-out over all thresholds."""
    if not table.has_both:
        return math.nan
    channels = table.channels[:, ::-1]
    recall = np.cumsum(channels[ACCEPTED_POSITIVE]) / table.sides[0]
    fall_out = np.cumsum(channels[ACCEPTED_NEGATIVE:].sum(axis=0)) / table.sides[1]
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
        formula="Σ (recall step) · precision; with mismatches at most the ceiling",
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
