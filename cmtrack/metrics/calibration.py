"""Calibration error, calibration test, slope and reliability curve of the positive group's score.

Mismatches do not affect these metrics, because the prediction does not determine if a row is
positive. If scores are counted by cell of the grid, the mean score of a cell replaces each score in
the cell. Files that earlier versions wrote do not contain these means. For such files, the centre
of the cell replaces its scores. The calibration test is then left out, because with centres it
would reject calibrated scores too often. The curve and the parts follow Dimitriadis, Gneiting and
Jordan (2021). The error follows Bröcker (2012) and Kumar, Liang and Ma (2019). The test follows
Arrieta-Ibarra et al. (2022) and Cox (1958), and slope and intercept follow Cox (1958).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from cmtrack._lazy import cached_property
from cmtrack.digits import fixed, significant
from cmtrack.grouping import Label
from cmtrack.metrics import _calibration as blockwise
from cmtrack.metrics._calibration import (
    BinnedError,
    Blocks,
    CalibrationTest,
    CoxFit,
    DebiasedError,
    Parts,
)
from cmtrack.metrics.function import Function
from cmtrack.metrics.intervals import Interval, check_level, normal_quantile
from cmtrack.metrics.metric import Metric, Section
from cmtrack.metrics.roc import ScoreTable
from cmtrack.removed import RemovedAttributes
from cmtrack.statistics import ScoreCounts
from cmtrack.statistics.counted import Counted
from cmtrack.statistics.grid import CELLS
from cmtrack.statistics.inputs import FloatArray

if TYPE_CHECKING:
    import pandas as pd

    from cmtrack.metrics.views import EvaluationViews


FEW_OF_A_GROUP = 20
"""With fewer positives or fewer negatives than this number, the calibration test detects only large
errors.
"""
_CLUSTERED = "the test draws labels for independent rows, but the rows are in clusters"


class ReliabilityTable(ScoreTable):
    """Positives and negatives by score, and the calibration results computed from these counts.

    Each number is computed when it is first used.

    ``level``: confidence level of the calibration error's interval.
    ``most``: largest number of score blocks for which the test draws labels. If the table has more
        score blocks, they are pooled.
    """

    kinds: ClassVar[tuple[str, ...]] = ("reliability",)
    by_level = True

    @classmethod
    def of_views(cls, views: EvaluationViews, kind: str, step: str) -> ReliabilityTable | None:
        scores = views.statistics.counted("scores")
        if scores is None or views.step is None or views.statistics.ranking_only:
            return None
        return cls(scores, views.level)

    def __init__(
        self,
        scores: Counted[ScoreCounts],
        level: float = 0.95,
        most: int = blockwise.MAX_BLOCKS,
    ) -> None:
        super().__init__(scores)
        self.level = level
        self._most = most

    def like(self, scores: Counted[ScoreCounts]) -> ReliabilityTable:
        return ReliabilityTable(scores, self.level, self._most)

    @cached_property
    def places(self) -> npt.NDArray[np.intp]:
        """Indices of the scores that occur in at least one row."""
        return np.flatnonzero(self.by_score > 0)

    @cached_property
    def blocks(self) -> Blocks:
        """Numbers of positives and negatives at each score that occurs in at least one row."""
        places: Any = self.places
        if len(places) == len(self.by_score):
            places = slice(None)
        sides = self.counted_sides.map(lambda side: side[:, places])
        scores = np.clip(self.scores.means[places], 0.0, 1.0)
        return Blocks(scores, *sides.sums, *sides.squares)

    @cached_property
    def recalibrated(self) -> FloatArray:
        """The scores after recalibration by isotonic regression."""
        return blockwise.isotonic(self.blocks)

    @cached_property
    def brier(self) -> Parts:
        """The Brier score, split into its parts."""
        return blockwise.decompose(self.blocks, self.recalibrated)

    @cached_property
    def log(self) -> Parts:
        """The log loss, split into its parts."""
        return blockwise.decompose(self.blocks, self.recalibrated, log=True)

    @cached_property
    def error(self) -> DebiasedError:
        """The debiased calibration error."""
        return blockwise.debiased_error(self.blocks)

    @cached_property
    def fit(self) -> CoxFit | None:
        """Slope and intercept of Cox's fit; None if the best fit needs an infinite coefficient."""
        return blockwise.cox_fit(self.blocks)

    @cached_property
    def test(self) -> CalibrationTest | None:
        """The calibration test; None if :attr:`no_test` gives a reason for its absence."""
        if self.no_test:
            return None
        most = self._most
        if not self.scores.exact:
            most = min(most, blockwise.RUNS)
        return blockwise.calibration_test(self.blocks, most=most)

    @property
    def no_test(self) -> str:
        """The reason why there is no calibration test; empty if there is one."""
        if self.has_means:
            return ""
        return "scores are on a grid without means, so the test would reject too often"

    @property
    def no_band(self) -> str:
        """The reason why there is no consistency band; empty if there is one."""
        if self.fractional:
            return "the test draws one label for each row, but the rows have sampling weights"
        return self.no_test

    @property
    def has_means(self) -> bool:
        """False if an earlier version counted the scores by cell and did not store their sums."""
        return self.scores.exact or self.scores.sums is not None

    @property
    def without_logit(self) -> float:
        """Share of rows with a score of exactly 0 or 1, which slope and intercept do not use."""
        edge = (self.blocks.scores == 0) | (self.blocks.scores == 1)
        return float(self.blocks.total[edge].sum()) / self.total

    @cached_property
    def drawn(self) -> ReliabilityTable:
        """The table that figures show, in which many scores are pooled by cell of the grid."""
        if len(self.places) <= CELLS:
            return self
        return ReliabilityTable(self.counted.map(ScoreCounts.to_grid), self.level)

    @cached_property
    def band(self) -> tuple[FloatArray, FloatArray]:
        """The consistency band at the table's confidence level."""
        return blockwise.consistency_band(self.blocks, self.level)

    def curve(self, positive: Label = None) -> CalibrationCurve:
        """Return the reliability curve."""
        return CalibrationCurve(self, positive)


@dataclass(frozen=True, eq=False, repr=False)
class CalibrationCurve(RemovedAttributes):
    """The reliability curve of a score: an isotonic regression of the labels on the score.

    Attributes
    ----------
    table : ReliabilityTable
    positive : label
    clustered : bool
        True if rows are in clusters. Labels of rows in clusters cannot be drawn independently.

    Examples
    --------
    >>> from cmtrack import evaluate
    >>> curve = evaluate([0, 0, 1, 0, 1, 1], y_prob=[0.1, 0.2, 0.3, 0.6, 0.7, 0.9]).calibration
    >>> curve.scores.tolist(), curve.recalibrated.tolist()
    ([0.1, 0.2, 0.3, 0.6, 0.7, 0.9], [0.0, 0.0, 0.5, 0.5, 1.0, 1.0])
    """

    table: ReliabilityTable
    positive: Label = None
    clustered: bool = False

    @property
    def scores(self) -> FloatArray:
        """Ascending distinct scores, or the mean scores of the cells on a grid, shape (U,)."""
        return self.table.blocks.scores

    @property
    def recalibrated(self) -> FloatArray:
        """Estimated share of positives at each score, ascending, shape (U,)."""
        return self.table.recalibrated

    @property
    def exact(self) -> bool:
        """True if rows are counted by distinct score instead of by cell of the grid."""
        return self.table.scores.exact

    @property
    def brier(self) -> Parts:
        """The Brier score: ``score``, ``miscalibration``, ``discrimination``, ``uncertainty``."""
        return self.table.brier

    @property
    def log(self) -> Parts:
        """The log loss, in the same four parts as the Brier score."""
        return self.table.log

    @property
    def test(self) -> CalibrationTest | None:
        """The calibration test with its two parts, for independent rows.

        The test is None if scores are on a grid without means. It is also None if rows are in
        clusters. In this case, see the p-value in the metric ``calibration/pvalue``.
        """
        if self.clustered:
            return None
        return self.table.test

    @property
    def no_band(self) -> str:
        """The reason why there is no consistency band; empty if there is one."""
        return _CLUSTERED if self.clustered else self.table.no_band

    def error(self, bins: int = 15) -> DebiasedError:
        """Return the debiased calibration error over bins of equal mass.

        Raises
        ------
        ValueError
            If ``bins`` is not positive.
        """
        if bins < 1:
            raise ValueError(f"bins must be at least 1, got {bins!r}")
        return blockwise.debiased_error(self.table.blocks, bins)

    def ece(self, bins: int = 15) -> BinnedError:
        """Return the expected calibration error over bins of equal width.

        The result also contains the mean error that calibrated scores would have. It is NaN if
        there is no consistency band (see :attr:`no_band`). Prefer :meth:`error`: the ECE is above 0
        even for calibrated scores.

        Raises
        ------
        ValueError
            If ``bins`` is not positive.
        """
        if bins < 1:
            raise ValueError(f"bins must be at least 1, got {bins!r}")
        return blockwise.binned_error(self.table.blocks, bins, draw=not self.no_band)

    @property
    def drawn(self) -> CalibrationCurve:
        """The curve that figures show, by cell of the grid if it has more than 1,600 scores."""
        return replace(self, table=self.table.drawn)

    @property
    def leaves_band(self) -> bool | None:
        """True if part of the curve in figures is outside its band; None if there is no band."""
        if self.no_band:
            return None
        table = self.table.drawn
        low, high = table.band
        is_outside = (table.recalibrated < low - 1e-9) | (table.recalibrated > high + 1e-9)
        return bool(is_outside.any())

    def band(self, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Return a simultaneous band that would contain the whole curve of a calibrated score.

        The low and the high limits are arrays of shape (U,).

        Raises
        ------
        ValueError
            If rows have sampling weights or are in clusters, or if there are more than 4,096
            distinct scores. The curve :attr:`drawn` has fewer scores.
        """
        if self.no_band:
            raise ValueError(f"there is no consistency band: {self.no_band}")
        if len(self.scores) > blockwise.MAX_BLOCKS:
            raise ValueError(
                f"a consistency band needs at most {blockwise.MAX_BLOCKS} distinct scores, got "
                f"{len(self.scores)}: use CalibrationCurve.drawn, which has fewer"
            )
        if level == self.table.level:
            return self.table.band
        return blockwise.consistency_band(self.table.blocks, check_level(level))

    def to_frame(self) -> pd.DataFrame:
        """Return one row per score."""
        from cmtrack._pandas import pd

        blocks = self.table.blocks
        return pd.DataFrame(
            {
                "score": blocks.scores,
                "recalibrated": self.recalibrated,
                "positive": blocks.positive,
                "negative": blocks.negative,
            }
        )

    def __repr__(self) -> str:
        error = self.table.error.value
        error_text = upper_bound(error, Error().ends(self.table)) or significant(error)
        miscalibration = significant(self.brier.miscalibration)
        return (
            f"CalibrationCurve(error={error_text}, miscalibration={miscalibration}, "
            f"{len(self.scores)} scores)"
        )


def upper_bound(value: float, ends: Interval | None) -> str:
    """Return the interval of an error that rounds to 0 as text, such as ``0 to 0.070``.

    The text reminds readers that the scores may have an error although the estimate is 0. It is
    empty if the estimate with three decimals is not 0.
    """
    if value > 5e-4 or ends is None or not ends[1] > 0:
        return ""
    places = max(3, 1 - math.floor(math.log10(ends[1])))
    return f"0 to {fixed(ends[1], places)}"


class Error(Function):
    """Calibration error: the square root of the debiased mean squared difference over bins.

    The metric has an interval if rows are independent. Scores that are too high and scores that are
    too low cancel if they are in the same bin, so the actual error of the scores may be larger than
    the metric. The bins depend on the data. If scores are close to 0 or 1, different errors cancel
    in different data sets, so the metric estimates a different quantity in each data set.
    """

    independent = "interval"

    def __call__(self, table: ReliabilityTable) -> float:
        return table.error.value

    def ends(self, table: ReliabilityTable) -> tuple[float, float]:
        """Return the square roots of the interval of the squared error.

        The upper limit for a negative squared error is the same as for a squared error of 0.
        """
        squared = table.error.squared
        reach = normal_quantile(table.level) * table.error.reach
        return math.sqrt(max(squared - reach, 0.0)), math.sqrt(max(squared, 0.0) + reach)


class PValue(Function):
    """The p-value of the calibration test."""

    independent = "value"

    def __call__(self, table: ReliabilityTable) -> float:
        return math.nan if table.test is None else table.test.pvalue

    def why(self, table: ReliabilityTable, k: int | None) -> str:
        """Return why there is no p-value."""
        return table.no_test or "every score is 0 or 1, and no row contradicts its score"


class Part(Function):
    """One part of the Brier score or of the log loss, such as its miscalibration."""

    def __init__(self, part: str, log: bool = False) -> None:
        self.part = part
        self.log = log

    def __call__(self, table: ReliabilityTable) -> float:
        parts = table.log if self.log else table.brier
        return float(getattr(parts, self.part))

    def why(self, table: ReliabilityTable, k: int | None) -> str:
        """Return a text with the number of rows that make the log loss infinite."""
        blocks = table.blocks
        rows = blocks.positive[blocks.scores == 0].sum() + blocks.negative[blocks.scores == 1].sum()
        return f"infinite: {rows:g} rows have probability 0 for their actual group"


class Coefficient(Function):
    """Slope or intercept of Cox's fit."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, table: ReliabilityTable) -> float:
        return math.nan if table.fit is None else float(getattr(table.fit, self.name))

    def influence(self, table: ReliabilityTable) -> FloatArray | None:
        """Return the influence, shape (4 U,), which is 0 for scores of exactly 0 or 1."""
        if table.fit is None:
            return None
        psi = np.zeros((2, len(table.scores.values)))
        psi[:, table.places] = getattr(table.fit, f"influence_{self.name}")
        # On each side, accepted rows have the same influence as rejected rows.
        return np.repeat(psi, 2, axis=0).ravel()


PVALUE_SOURCE = "Arrieta-Ibarra et al. (2022); Cox (1958)"
_CORP = "Dimitriadis, Gneiting & Jordan (2021)"
_COX = "Cox (1958)"
_LABELS = "a group has no rows, the scores separate the groups, or all scores are equal"


def _metric(name: str, function: Any, **words: Any) -> Metric:
    usual = {"of": "reliability", "interval": "", "headline": False}
    return Metric(f"calibration/{name}", function, **{**usual, **words})


def _parts(log: bool) -> tuple[Metric, ...]:
    prefix = ""
    suffix = ""
    loss = "Brier score"
    highest = 1.0
    if log:
        prefix = "log_"
        suffix = " by log loss"
        loss = "log loss"
        highest = math.inf
    words = {"low": 0.0, "high": highest, "source": _CORP}
    return (
        _metric(
            f"{prefix}miscalibration",
            Part("miscalibration", log),
            better="lower",
            one_sided=True,
            title=f"miscalibration{suffix}",
            formula=(
                f"{loss} − the loss after isotonic recalibration; chance alone makes it positive"
            ),
            **words,
        ),
        _metric(
            f"{prefix}discrimination",
            Part("discrimination", log),
            better="higher",
            title=f"discrimination{suffix}",
            formula=f"{loss} of the share of positives − the loss after isotonic recalibration",
            **words,
        ),
        _metric(
            f"{prefix}uncertainty",
            Part("uncertainty", log),
            better="",
            title=f"uncertainty{suffix}",
            formula=f"{loss} of the share of positives",
            **words,
        ),
    )


CALIBRATION = Section(
    "calibration",
    "Calibration of the positive group's score",
    (
        _metric(
            "error",
            Error(),
            better="lower",
            low=0.0,
            high=1.0,
            interval="square",
            headline=True,
            one_sided=True,
            title="calibration error",
            brief="calibration error",
            source="Bröcker (2012); Kumar, Liang & Ma (2019)",
            reason="none of the 15 bins contains two or more rows",
            formula="√ mean (observed − score)² over 15 bins with equal numbers of rows, corrected "
            "for bias; a lower bound",
        ),
        _metric(
            "pvalue",
            PValue(),
            better="",
            low=0.0,
            high=1.0,
            title="p-value of calibration",
            brief="calibration p",
            source=PVALUE_SOURCE,
            formula="small if the scores are not calibrated (Kuiper's test and Cox's score test, "
            "with 999 draws)",
        ),
        _metric(
            "slope",
            Coefficient("slope"),
            better="",
            interval="wald",
            title="calibration slope",
            source=_COX,
            reason=_LABELS,
            formula=(
                "slope in a logistic regression of the labels on logit(score); below 1 means "
                "overconfident"
            ),
        ),
        _metric(
            "intercept",
            Coefficient("intercept"),
            better="nearest zero",
            interval="wald",
            reason=_LABELS,
            few_errors=True,
            title="calibration intercept",
            source=_COX,
            formula="intercept in a logistic regression of the labels on logit(score)",
        ),
        *_parts(log=False),
        *_parts(log=True),
    ),
    of_positive=True,
)
