"""ROC curve and area for 2x2+IM matrices, computed exactly at all distinct scores.

A row is predicted positive if its score is at least the threshold. Within the predicted group, the
class with the highest probability is predicted at any threshold. A positive row with the wrong
class within its group can therefore never be a hit, and the curve ends at a *ceiling* below 1. The
source is section 4.3 of Markoulidakis et al. (2021). For this rule, the limits of the threshold in
equations 37 to 42 must be exchanged.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from cmtrack._lazy import cached_property
from cmtrack.digits import significant
from cmtrack.grouping import Label
from cmtrack.metrics.function import Fraction, Function
from cmtrack.metrics.metric import Metric
from cmtrack.metrics.quantile_bins import BinnedDensities, quantile_bins
from cmtrack.metrics.samples import Weighted
from cmtrack.statistics import BinaryCounts, ScoreCounts
from cmtrack.statistics.collected import accepted_within
from cmtrack.statistics.counted import Counted
from cmtrack.statistics.counting import Counts
from cmtrack.statistics.inputs import FloatArray, IntArray

if TYPE_CHECKING:
    import pandas as pd

    from cmtrack.metrics.influence import Influence
    from cmtrack.metrics.views import EvaluationViews

ACCEPTED_POSITIVE, REJECTED_POSITIVE, ACCEPTED_NEGATIVE, REJECTED_NEGATIVE = range(4)
"""Channels of the counts. A row is rejected if the most probable class within its group is not
accepted.
"""


@dataclass(frozen=True, eq=False)
class RocCurve:
    """ROC curve at all thresholds, and its area.

    Attributes
    ----------
    thresholds : ndarray of shape (T,)
        Infinity, at which no row is predicted positive, followed by the distinct scores in
        descending order.
    tp, fn, imp, fp, tn, imn : ndarray of shape (T,)
        The six counts of the 2x2+IM matrix at each threshold.
    fpr, tpr, tnr : ndarray of shape (T,)
        Fall-out, recall and specificity; NaN if a group has no rows.
    auc : float
        Area under (fpr, tpr).
    auc_standard_error : float
        Standard error computed from placement values, with the method of DeLong et al. (1988)
        extended to accepted positives.
    auc_error_bound : float
        Largest possible error of ``auc`` if scores are counted on a grid. It is 0 if each distinct
        score is counted.
    ceiling : float
        The largest recall at any threshold. ``auc`` cannot be larger than the ceiling.
    auc_normalized, auc_normalized_standard_error : float
        ``auc / ceiling``, which is the ordinary area for accepted positives against all negatives,
        and the standard error of this area. A random score reaches 1/2.
    positive : label
    auc_interval : (low, high) or None
    operating_point : (fpr, tpr) or None
        Rates if the class with the highest probability is predicted. If there are mismatches, this
        point is usually not on the curve.

    Examples
    --------
    >>> from cmtrack import evaluate
    >>> curve = evaluate([0, 0, 1, 1], y_prob=[0.1, 0.6, 0.4, 0.9]).roc
    >>> curve.auc, curve.thresholds.tolist(), curve.tpr.tolist()
    (0.75, [inf, 0.9, 0.6, 0.4, 0.1], [0.0, 0.5, 0.5, 1.0, 1.0])
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
        """Return one row per threshold."""
        return frame_of(
            self, ("thresholds", "fpr", "tpr", "tnr", "tp", "fn", "imp", "fp", "tn", "imn")
        )

    def __repr__(self) -> str:
        return (
            f"RocCurve(auc={significant(self.auc)}, ceiling={significant(self.ceiling)}, "
            f"auc_normalized={significant(self.auc_normalized)}, {len(self.thresholds)} thresholds)"
        )


def roc_curve(scores: ScoreCounts) -> RocCurve:
    """Compute the ROC curve from counted scores, by a sweep of the threshold.

    Parameters
    ----------
    scores : ScoreCounts with four channels
        Numbers of accepted positives, rejected positives, accepted negatives and rejected
        negatives, by the score of the positive group. A row is rejected if its class within the
        group is not accepted.

    Raises
    ------
    ValueError
        If the number of channels is not four.

    Examples
    --------
    >>> import numpy as np
    >>> from cmtrack.metrics import roc_curve
    >>> from cmtrack.statistics import ScoreCounts
    >>> counts = np.array([[0, 1, 0, 1], [0, 0, 0, 0], [1, 0, 1, 0], [0, 0, 0, 0]])
    >>> curve = roc_curve(ScoreCounts(np.array([0.1, 0.4, 0.6, 0.9]), counts, exact=True))
    >>> curve.auc, curve.ceiling
    (0.75, 1.0)
    """
    if len(scores.counts) != 4:
        raise ValueError(f"the sweep needs four channels, got {len(scores.counts)}")
    return sweep(ScoreTable(Counted.unweighted(scores)))


def sweep(table: ScoreTable) -> RocCurve:
    """Return the ROC curve of a score table."""
    scores = table.scores
    counts: Any = six_counts(scores.counts)
    six: Any = BinaryCounts(*(part[::-1] for part in counts))
    positives = np.float64(scores.counts[:2].sum())
    negatives = np.float64(scores.counts[2:].sum())
    auc = AREA(table)
    normalized = NORMALIZED(table)
    with np.errstate(invalid="ignore", divide="ignore"):
        return RocCurve(
            thresholds=np.concatenate(([math.inf], scores.values[::-1])),
            **six._asdict(),
            fpr=six.fp / negatives,
            tpr=six.tp / positives,
            tnr=six.tn / negatives,
            auc=auc,
            auc_standard_error=_error_of(AREA, auc, table),
            auc_error_bound=math.nan if math.isnan(auc) else table.area_error_bound,
            ceiling=table.ceiling,
            auc_normalized=normalized,
            auc_normalized_standard_error=_error_of(NORMALIZED, normalized, table),
        )


def _error_of(area: Area | NormalizedArea, value: float, table: ScoreTable) -> float:
    if not math.isfinite(value):
        return math.nan
    return table.standard_error(area.influence(table))


def frame_of(curve: Any, names: Iterable[str]) -> pd.DataFrame:
    """Return a frame whose columns are arrays of a curve, with one row per point."""
    from cmtrack._pandas import pd

    return pd.DataFrame({name: getattr(curve, name) for name in names})


def six_counts(counts: Any) -> BinaryCounts:
    """Return the six counts of the 2x2+IM matrix at each threshold.

    The thresholds are the scores in ascending order, followed by infinity.

    ``counts``, shape (..., 4, U): numbers of rows by channel and ascending score.

    The result is a BinaryCounts object that contains ndarrays of shape (..., U + 1).
    """
    called: Any = np.zeros((*counts.shape[:-1], counts.shape[-1] + 1), dtype=counts.dtype)
    np.cumsum(counts[..., ::-1], axis=-1, out=called[..., -2::-1])
    # Rounding of fractional weights could make a count slightly negative.
    below = np.maximum(called[..., :1] - called, 0)
    false_calls = called[..., ACCEPTED_NEGATIVE, :] + called[..., REJECTED_NEGATIVE, :]
    missed = below[..., ACCEPTED_POSITIVE, :] + below[..., REJECTED_POSITIVE, :]
    return BinaryCounts(
        tp=called[..., ACCEPTED_POSITIVE, :],
        fn=missed,
        imp=called[..., REJECTED_POSITIVE, :],
        fp=false_calls,
        tn=below[..., ACCEPTED_NEGATIVE, :],
        imn=below[..., REJECTED_NEGATIVE, :],
    )


def with_channels(scores: ScoreCounts) -> ScoreCounts:
    """Convert the two channels of positives and negatives to four; all rows are accepted."""
    return scores.channels((0,), (), (1,), ())


def place_of(scores: ScoreCounts, score: FloatArray, channel: IntArray | int) -> IntArray:
    """Return the index of each row in the flattened array of channels and scores, shape (n,)."""
    return channel * len(scores.values) + scores.places_of(score)


def _sums_from_above(parts: FloatArray) -> FloatArray:
    """Return the sum of each part and all parts after it, shape (U,)."""
    return np.cumsum(parts[::-1])[::-1]


class Calls(NamedTuple):
    """Counts of all rows whose score is at least as high as each score, in the order of the scores.

    ``accepted``, shape (U,): number of accepted positives with exactly this score.
    ``called``, shape (U,): number of rows with at least this score.
    ``hits``, shape (U,): number of accepted positives with at least this score.
    ``precision``, shape (U,): ``hits / called``. It is 0 if there are no such rows.
    """

    accepted: FloatArray
    called: FloatArray
    hits: FloatArray
    precision: FloatArray


class ScoreTable(Weighted):
    """Numbers of rows by channel and score, shape (4 U,), for metrics that use scores."""

    kinds: ClassVar[tuple[str, ...]] = ("scores",)

    @classmethod
    def of_views(cls, views: EvaluationViews, kind: str, step: str) -> ScoreTable | None:
        scores = views.statistics.counted("scores")
        if scores is None or views.step is None:
            return None
        return cls(scores)

    def __init__(self, scores: Counted[ScoreCounts]) -> None:
        self.counted = scores
        self.scores = scores.sums
        cells = scores.map(lambda part: part.counts.ravel().astype(np.float64))
        self.weight = cells.sums
        self.squares = cells.squares
        # The counts are first summed by score, as in a table with two channels, so that the
        # rounding errors are the same in both.
        self.sides = self.by_side.sum(axis=1)
        self._with_flipped: dict[float, Any] = {}

    def argument(self, weight: Any = None) -> ScoreTable:
        return self

    def influence(self, metric: Metric) -> FloatArray | None:
        """Return None, because functions of counted scores provide their influence."""
        return None

    def within(self, influence: FloatArray, strata: IntArray) -> tuple[FloatArray, FloatArray]:
        sums = (self.weight * influence).reshape(2, -1).sum(axis=1)
        means = np.divide(sums, self.sides, out=np.zeros(2), where=self.sides > 0)
        return influence - np.repeat(means, len(influence) // 2), means[::-1]

    def located(self, at: Influence, step: str) -> tuple[ScoreTable, IntArray]:
        positive, score = at.score()
        accepted = accepted_within(at.rows.actual, at.probabilities, at.two_groups)
        return self, place_of(self.scores, score, 2 * (1 - positive) + ~accepted)

    @property
    def channels(self) -> FloatArray:
        """Weights by channel and score, shape (4, U)."""
        return self.weight.reshape(4, -1)

    @cached_property
    def by_side(self) -> FloatArray:
        """Weights of positives and of negatives by score, shape (2, U)."""
        return self.weight.reshape(2, 2, -1).sum(axis=1)

    @cached_property
    def counted_sides(self) -> Counted[FloatArray]:
        """``by_side``, and the squared weights in the same shape."""
        if not self.counted.fractional:
            return Counted.unweighted(self.by_side)
        return Counted(self.by_side, self.squares.reshape(2, 2, -1).sum(axis=1))

    @cached_property
    def by_score(self) -> FloatArray:
        """Weights by score, shape (U,)."""
        return self.by_side.sum(axis=0)

    @property
    def has_both(self) -> bool:
        """True if there are both positive and negative rows."""
        return bool((self.sides > 0).all())

    @cached_property
    def ceiling(self) -> float:
        """Share of accepted rows among the positives."""
        if not self.has_both:
            return math.nan
        return float(self.channels[ACCEPTED_POSITIVE].sum() / self.sides[0])

    @cached_property
    def area_influence(self) -> FloatArray:
        """Influence on the area under the curve, computed from placement values."""
        below, above = self.placements
        auc = AREA(self)
        return self.by_channel(below - auc, -auc, above - auc)

    @cached_property
    def placements(self) -> tuple[FloatArray, FloatArray]:
        """Share of the negatives below each score, and share of the accepted positives above it.

        The denominator of the second share counts all positives. A row with an equal score counts
        half. The method is from DeLong et al. (1988), extended to accepted positives.
        """
        accepted = self.channels[ACCEPTED_POSITIVE]
        negatives = self.by_side[1]
        below = np.cumsum(negatives) - negatives / 2
        above = accepted.sum() - np.cumsum(accepted) + accepted / 2
        return below / self.sides[1], above / self.sides[0]

    @cached_property
    def calls(self) -> Calls:
        """Numbers of rows that are predicted positive at each threshold."""
        accepted = self.channels[ACCEPTED_POSITIVE]
        called = _sums_from_above(self.by_score)
        hits = _sums_from_above(accepted)
        precision = np.divide(hits, called, out=np.zeros(len(hits)), where=called > 0)
        return Calls(accepted, called, hits, precision)

    @property
    def average_precision(self) -> float:
        """Area under the steps of the precision-recall curve."""
        return float(self.calls.accepted @ self.calls.precision) / float(self.sides[0])

    @cached_property
    def precision_influence(self) -> FloatArray:
        """Influence on the average precision by channel and score, shape (4 U,)."""
        accepted, called, _, precision = self.calls
        share = float(self.sides[0]) / self.total
        steps = np.divide(accepted, called, out=np.zeros(len(called)), where=called > 0)
        # A row is predicted positive at all thresholds up to its score. At these thresholds, a hit
        # raises the precision, and every row lowers it.
        lost = np.cumsum(steps * precision)
        rejected = -lost - self.average_precision
        accepted_positives = rejected + precision + np.cumsum(steps)
        return np.concatenate((accepted_positives, rejected, -lost, -lost)) / share

    @property
    def area_error_bound(self) -> float:
        """Largest possible error of the area under the ROC curve if scores are counted on a grid.

        It is half of the share of pairs of an accepted positive and a negative in the same cell.
        """
        if self.scores.exact:
            return 0.0
        pairs = float(self.channels[ACCEPTED_POSITIVE] @ self.by_side[1])
        return pairs / float(self.sides.prod()) / 2

    @cached_property
    def corrections(self) -> FloatArray:
        """The factor sqrt(n / (n - 1)), in which n is the effective size of each side, shape (2,).

        The estimated mean of each side uses one degree of freedom.
        """
        size = self.effective_sides
        with np.errstate(all="ignore"):
            return np.where(size > 1 + 1e-9, np.sqrt(size / (size - 1)), math.nan)

    @cached_property
    def bands(self) -> BinnedDensities:
        """Densities of both sides in quantile bins.

        They are smoothed by adding half an effective row to each bin. The bins contain effective
        numbers of rows, so the result does not depend on the scale of the weights.
        """
        sides = self.scores.channels((2, 3), (0, 1))
        if self.counted.fractional:
            scale = self.total / float(self.squares.sum())
            sides = replace(sides, counts=sides.counts * scale)
        return quantile_bins(sides)

    @property
    def effective_sides(self) -> FloatArray:
        """Effective number of positives and effective number of negatives, shape (2,)."""
        return self.sides**2 / self.squares.reshape(2, -1).sum(axis=1)

    def informing(self, metric: Metric) -> Any:
        return self.effective_sides

    def with_flipped(self, size: Any) -> Any:
        # Several metrics of the table are computed again after adding the same row.
        size = float(size)
        if size not in self._with_flipped:
            part = size / self.effective(None) / 2
            self._with_flipped[size] = self.like(
                self.counted.map(lambda scores: _mixed(scores, part))
            )
        return self._with_flipped[size]

    def with_high_negative(self) -> Any:
        if not self.has_both:
            return None
        positive_weight, negative_weight = self.sides / self.effective_sides
        # The added part of a row is 0 if all rows have the same weight.
        of_row = 1 - positive_weight / negative_weight
        if not of_row > 0:
            return None
        part = of_row / float(self.effective_sides[1])  # of all negatives
        place = self._high_place()
        factor = 1 / (1 + part)
        added = part / (1 + part) * float(self.sides[1])
        scores = _with_negative(self.scores, place, factor, added)
        # The added negative is a single row, so its squared weight is the square of its weight.
        squares = _with_negative(self.counted.squares, place, 1 / (1 + part) ** 2, added**2)
        return self.like(Counted(scores, squares))

    def _high_place(self) -> int:
        """Return the index of the median score of accepted positives that are above all negatives.

        If no accepted positive is above all negatives, return the index of the highest accepted
        positive.
        """
        counts = self.scores.counts.astype(np.float64)
        accepted = np.cumsum(counts[ACCEPTED_POSITIVE])
        highest_negative = np.flatnonzero(counts[ACCEPTED_NEGATIVE:].sum(axis=0))[-1]
        return int(np.searchsorted(accepted, (accepted[highest_negative] + accepted[-1]) / 2))

    def like(self, scores: Counted[ScoreCounts]) -> Any:
        """Return a table of the same kind that contains the counts in ``scores``."""
        return ScoreTable(scores)

    def by_channel(
        self, accepted: Any, rejected: Any, negative: Any, corrected: bool = True
    ) -> FloatArray:
        """Convert contributions to the mean of a row's side to an influence, shape (4 U,).

        Each contribution is a number, or an array of shape (U,) with a number for each score.
        """
        factors = self.total / self.sides
        if corrected:
            factors = factors * self.corrections
        size = len(self.scores.values)
        channels = [
            np.broadcast_to(accepted, size) * factors[0],
            np.broadcast_to(rejected, size) * factors[0],
            np.broadcast_to(negative, size) * factors[1],
        ]
        # Accepted negatives have the same influence as rejected negatives.
        return np.concatenate((*channels, channels[-1]))


def _mixed(scores: ScoreCounts, part: float) -> ScoreCounts:
    """Return the counts after adding a ``part`` of all rows, once as is and once flipped."""
    counts = scores.counts.astype(np.float64)
    sums = None if scores.sums is None else scores.sums * (1 + 2 * part)
    return replace(scores, counts=counts * (1 + part) + part * counts[[2, 3, 0, 1]], sums=sums)


def _with_negative(scores: ScoreCounts, place: int, factor: float, weight: float) -> ScoreCounts:
    """Multiply the negatives by a factor, and add one negative of a given weight at ``place``."""
    counts = scores.counts.astype(np.float64)
    counts[ACCEPTED_NEGATIVE:] *= factor
    counts[ACCEPTED_NEGATIVE, place] += weight
    return replace(scores, counts=counts, sums=None)


class Area(Function):
    """Area under the curve of recall by fall-out."""

    def __call__(self, table: ScoreTable) -> float:
        if not table.has_both:
            return math.nan
        return float(table.channels[ACCEPTED_POSITIVE] @ table.placements[0]) / float(
            table.sides[0]
        )

    def influence(self, table: ScoreTable) -> FloatArray:
        """Return the influence, which is computed from placement values."""
        return table.area_influence


class Ceiling(Fraction):
    """Largest recall at any threshold, which is the share of accepted rows among the positives."""

    def __call__(self, table: ScoreTable) -> float:
        return table.ceiling

    def denominator(self, table: ScoreTable) -> FloatArray:
        """Return 1 for the positives and 0 for the negatives, shape (4 U,)."""
        return np.repeat([1.0, 1.0, 0.0, 0.0], len(table.scores.values))

    def influence(self, table: ScoreTable) -> FloatArray:
        """Return the influence on the share of accepted positives."""
        return table.by_channel(1 - table.ceiling, -table.ceiling, 0.0, corrected=False)


class NormalizedArea(Function):
    """Area under the curve divided by its ceiling."""

    def __call__(self, table: ScoreTable) -> float:
        return AREA(table) / table.ceiling if table.ceiling > 0 else math.nan

    def influence(self, table: ScoreTable) -> FloatArray:
        """Return the influence on the ordinary area of accepted positives against negatives."""
        below, above = table.placements
        value = self(table)
        ceiling = table.ceiling
        return table.by_channel((below - value) / ceiling, 0.0, above / ceiling - value)


AREA = Area()
NORMALIZED = NormalizedArea()
_AREA: dict[str, Any] = {
    "of": "scores",
    "source": "Markoulidakis et al. (2021), section 4.3",
}
_NO_SIDE = "a group has no rows"

AREAS = (
    Metric(
        "binary/roc_auc",
        AREA,
        interval="logit",
        reason=_NO_SIDE,
        title="area under the ROC curve",
        brief="ROC AUC",
        formula="area under the curve of TPR against FPR; with mismatches, at most the ceiling",
        **_AREA,
    ),
    Metric(
        "binary/roc_auc_ceiling",
        Ceiling(),
        interval="wilson",
        reason=_NO_SIDE,
        title="ceiling of the ROC curve",
        one_sided=True,
        brief="ROC ceiling",
        formula="largest recall at any threshold",
        **_AREA,
    ),
    Metric(
        "binary/roc_auc_normalized",
        NORMALIZED,
        interval="logit",
        reason=f"{_NO_SIDE} or the ceiling is 0",
        title="normalised area under the ROC curve",
        brief="normalised AUC",
        headline=False,
        formula="roc_auc / roc_auc_ceiling; chance is 1/2",
        **_AREA,
    ),
)
