"""Curves that compare each class with all other classes by its probability, and their averages.

The source of the one-vs-one average is Hand and Till (2001). For the sources of individual areas,
see :mod:`cmtrack.metrics.roc`, :mod:`cmtrack.metrics.precision_recall` and
:mod:`cmtrack.metrics.calibration`. The standard error of an average of areas can only be computed
from the rows. If only counts are available, the mean of the standard errors of the areas replaces
it. This mean is an upper bound (Cauchy and Schwarz).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cmtrack._lazy import cached_property
from cmtrack.digits import fixed, p_text, significant
from cmtrack.grouping import Label
from cmtrack.metrics._calibration import DRAWS
from cmtrack.metrics.calibration import (
    FEW_OF_A_GROUP,
    PVALUE_SOURCE,
    Error,
    PValue,
    ReliabilityTable,
)
from cmtrack.metrics.function import Function
from cmtrack.metrics.intervals import Interval, holm
from cmtrack.metrics.metric import Metric
from cmtrack.metrics.precision_recall import PRECISION
from cmtrack.metrics.roc import AREA, place_of, with_channels
from cmtrack.metrics.samples import Samples
from cmtrack.names import elide, join_names, quoted
from cmtrack.statistics import ScoreCounts
from cmtrack.statistics.class_scores import ClassScoreCounts
from cmtrack.statistics.counted import Counted
from cmtrack.statistics.inputs import BoolArray, FloatArray, IntArray
from cmtrack.untrusted import one_line

if TYPE_CHECKING:
    import pandas as pd

    from cmtrack.metrics.influence import Influence
    from cmtrack.metrics.views import EvaluationViews

BLOCKS = 32
"""Largest number of score blocks for which the calibration test of a class draws labels. If a class
has more score blocks, they are pooled.
"""


class ClassCurves(Samples):
    """Counted probabilities of each class, as the argument of metrics.

    ``level``: confidence level for the intervals of the calibration errors.
    """

    kinds = ("class curves", "class calibration", "class pairs")
    by_level = True

    @classmethod
    def of_views(cls, views: EvaluationViews, kind: str, step: str) -> ClassCurves | None:
        if kind == "class curves":
            scores = views.statistics.counted("class_scores")
            if scores is None:
                return None
            return cls(scores, views.level)
        curves = views.seen(cls)
        if curves is None:
            return None
        if kind == "class calibration":
            # Decision values rank the rows but are not on the scale of probabilities.
            is_lacking = views.statistics.ranking_only
        else:
            is_lacking = not curves.scores.by_actual_class
        if is_lacking:
            return None
        return curves

    def __init__(self, scores: Counted[ClassScoreCounts], level: float = 0.95) -> None:
        self.counted = scores
        self.scores = scores.sums
        self._level = level
        self.total = float(self.scores.tables[0].counts.sum())
        self.fractional = scores.fractional

    def with_flipped(self, size: Any) -> ClassCurves:
        sizes = np.broadcast_to(size, self.n_classes).tolist()
        tables = zip(self.tables, sizes, strict=True)
        return self._with_tables(table.with_flipped(n) for table, n in tables)

    def with_high_negative(self) -> ClassCurves:
        # If all rows belong to the class, or none does, its average precision is undefined. Adding
        # one row does not make it defined.
        return self._with_tables(table.with_high_negative() or table for table in self.tables)

    def _with_tables(self, tables: Iterable[ReliabilityTable]) -> ClassCurves:
        curves = ClassCurves(self.counted, self._level)
        curves.tables = tuple(tables)
        return curves

    @cached_property
    def tables(self) -> tuple[ReliabilityTable, ...]:
        """For each class, the score table of the class against all other classes."""
        tables = []
        for k in range(self.n_classes):
            scores = self.counted.map(partial(ClassScoreCounts.one_vs_rest, k=k)).map(with_channels)
            tables.append(ReliabilityTable(scores, self._level, most=BLOCKS))
        return tuple(tables)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.scores.tables)

    @cached_property
    def shares(self) -> FloatArray:
        """Share of each actual class, shape (K,)."""
        return np.array([table.sides[0] for table in self.tables]) / self.total

    @cached_property
    def areas(self) -> FloatArray:
        """ROC area of each class against all other classes, shape (K,)."""
        return np.array([AREA(table) for table in self.tables])

    @cached_property
    def pairs(self) -> tuple[Pairs, ...]:
        """Counts of each class's probability by actual class; empty if they were not stored."""
        squares = self.counted.squares.tables
        return tuple(
            Pairs(Counted(table, squares[k]), k) for k, table in enumerate(self.scores.tables)
        )

    @cached_property
    def pair_areas(self) -> FloatArray:
        """ROC area of each class against each other class, by its probability, shape (K, K)."""
        return np.stack([pair.areas for pair in self.pairs])

    def by_row(self, metric: Metric, at: Influence, step: str, k: int | None) -> FloatArray | None:
        actual = at.rows.actual
        probabilities = at.probabilities
        if isinstance(metric.value, AreaAverage):
            return metric.value.influence_of_rows(self, actual, self.places(probabilities))
        psi = None if k is None else metric.influence_in(self, k)
        if k is None or psi is None:
            return None
        return of_class(psi, actual == k, place_of(self.scores.tables[k], probabilities[:, k], 0))

    def places(self, probabilities: FloatArray) -> Iterator[IntArray]:
        """Yield, for each class, the index of each row's probability among the counted ones."""
        for table, column in zip(self.scores.tables, probabilities.T, strict=True):
            yield place_of(table, column, 0)


def of_class(psi: FloatArray, inside: BoolArray, place: IntArray) -> FloatArray:
    """Return the influence of each row, looked up in the influence (4 U,) of a class's table.

    ``inside``: whether the row belongs to the class.
    ``place``: index of the row's score, shape (n,).
    """
    return psi.reshape(4, -1)[np.where(inside, 0, 2), place]


class Pairs:
    """The probability of one class by actual class, and its ROC areas against the other classes.

    ``k``: index of the class.
    """

    def __init__(self, scores: Counted[ScoreCounts], k: int) -> None:
        self.scores = scores.sums
        self.k = k
        tables = scores.map(lambda table: table.counts.astype(np.float64))
        counts = tables.sums
        squared = tables.squares
        sizes = counts.sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            # The placements are the share of each class below a score, and the share of this class
            # above it.
            self._below = (np.cumsum(counts, axis=1) - counts / 2) / sizes[:, None]
            self._above = 1 - self._below[k]
            self.areas = counts[k] @ self._below.T / sizes[k]
            effective = sizes**2 / squared.sum(axis=1)
            # Each estimated mean uses one degree of freedom.
            inflation = np.where(effective > 1 + 1e-9, effective / (effective - 1), math.nan)
            self._factor = np.sqrt(inflation) / sizes
            of_class = squared[k] @ (self._below - self.areas[:, None]).T ** 2
            of_others = (squared * (self._above - self.areas[:, None]) ** 2).sum(axis=1)
            self.errors = np.sqrt(of_class * self._factor[k] ** 2 + of_others * self._factor**2)
        self.areas[k] = math.nan
        self.errors[k] = math.nan

    def influence(self, total: float) -> FloatArray:
        """Return the summed influence on all defined areas, by class and score, shape (K, U)."""
        is_defined = np.isfinite(self.areas) & np.isfinite(self.errors)
        areas = self.areas[is_defined, None]
        psi = np.zeros(self._below.shape)
        psi[is_defined] = (self._above - areas) * self._factor[is_defined, None]
        psi[self.k] = (self._below[is_defined] - areas).sum(axis=0) * self._factor[self.k]
        return psi * total


class CalibrationOfClass(NamedTuple):
    """Calibration of one class's probability, and measures of how well it ranks the rows.

    Numbers are NaN if they are undefined.

    Attributes
    ----------
    label : label
    support : float
        Number (or weight) of the class's rows.
    error, low, high : float
        The debiased calibration error, and the low and high limits of its interval. The limits are
        NaN if rows are in clusters.
    pvalue, pvalue_holm : float
        p-value of the calibration test, and the p-value after Holm's adjustment for the number of
        tested classes.
    slope : float
        Slope of the logistic regression of the labels on logit(probability). A slope below 1 means
        that the probabilities are over-confident. The slope is NaN if no finite slope fits best.
    mean_score, share : float
        Mean probability of the class, and the share of the rows that belong to it.
    roc_auc, average_precision : float
        Areas under the curves of the class against all other classes.
    """

    label: Label
    support: float
    error: float
    low: float
    high: float
    pvalue: float
    pvalue_holm: float
    slope: float
    mean_score: float
    share: float
    roc_auc: float
    average_precision: float


@dataclass(frozen=True)
class ClassCalibration:
    """Calibration of the probability of each class.

    Attributes
    ----------
    classes : tuple of CalibrationOfClass
        The results for the classes, in the order of the labels.
    squared : float
        Mean of the squared calibration errors minus their bias, over classes to which some but not
        all rows belong. It is negative if no error is visible, and NaN if no class has a
        calibration error.
    level : float
        Confidence level. A class is not calibrated if its Holm-adjusted p-value is at most 1 -
        level.

    Examples
    --------
    >>> from cmtrack import evaluate
    >>> p = [[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.1, 0.3, 0.6]]
    >>> p += [[0.6, 0.3, 0.1], [0.2, 0.4, 0.4], [0.1, 0.5, 0.4]]
    >>> found = evaluate([0, 1, 2, 0, 1, 2], y_prob=p).class_calibration()
    >>> [own.label for own in found.classes], len(found.uncalibrated)
    ([0, 1, 2], 0)
    """

    classes: tuple[CalibrationOfClass, ...]
    squared: float
    level: float

    @property
    def tested(self) -> tuple[CalibrationOfClass, ...]:
        """The classes with a p-value."""
        return tuple(tested for tested in self.classes if not math.isnan(tested.pvalue))

    @property
    def pvalue(self) -> float:
        """The smallest Holm-adjusted p-value, which is a p-value for all classes together.

        It is NaN if no class is tested.
        """
        return min((tested.pvalue_holm for tested in self.tested), default=math.nan)

    @property
    def least(self) -> float:
        """The smallest Holm-adjusted p-value that is possible with this number of draws."""
        return len(self.tested) / (1 + DRAWS)

    @property
    def uncalibrated(self) -> tuple[CalibrationOfClass, ...]:
        """The classes whose Holm-adjusted p-value is at most 1 - level.

        The classes are sorted by p-value, smallest first, and then by error, largest first.
        """
        limit = 1 - self.level + 1e-12
        uncalibrated = [tested for tested in self.tested if tested.pvalue_holm <= limit]
        return tuple(sorted(uncalibrated, key=lambda found: (found.pvalue_holm, -found.error)))

    def sentence(self) -> str:
        """Describe the outcome of the tests in a sentence that names at most three classes."""
        tested = self.tested
        uncalibrated = self.uncalibrated
        total = len(self.classes)
        if not tested:
            return f"None of {total} classes has a test of calibration."
        if not uncalibrated and self.least > 1 - self.level + 1e-12:
            limit = significant(1 - self.level)
            return (
                f"No Holm-adjusted p-value can be as small as {limit}: with {len(tested)} "
                f"tests, the smallest possible value is {significant(self.least)}."
            )
        among = f"{len(tested)} tested classes (of {total})"
        if len(tested) == total:
            among = f"{total} classes"
        rare = self._rare_remark()
        if not uncalibrated:
            return (
                f"0 of {among} show signs of miscalibration "
                f"(smallest p, adjusted by Holm: {fixed(self.pvalue, 3)}){rare}."
            )
        named = []
        for miscalibrated in uncalibrated:
            label = quoted(elide(one_line(miscalibrated.label), 60))
            named.append(f"{label} (p {self._p(miscalibrated.pvalue_holm)})")
        show = "shows" if len(uncalibrated) == 1 else "show"
        return (
            f"{len(uncalibrated)} of {among} {show} signs of miscalibration: {join_names(named)}, "
            f"with p adjusted by Holm{rare}."
        )

    def _rare_remark(self) -> str:
        """Return a remark about classes that pass the test but have only few rows.

        The remark is empty if all of these classes have enough rows.
        """
        passed = set(self.tested) - set(self.uncalibrated)
        n_rare = sum(tested.support < FEW_OF_A_GROUP for tested in passed)
        if not n_rare:
            return ""
        noun = "class" if n_rare == 1 else "classes"
        return (
            f"; for {n_rare} {noun} with fewer than {FEW_OF_A_GROUP} rows, the test finds only "
            "large errors"
        )

    def _p(self, value: float) -> str:
        shown = p_text(value, self.least)
        return shown if shown[0] in "<≤" else f"= {shown}"

    def to_frame(self) -> pd.DataFrame:
        """Return one row per class, with the fields of :class:`CalibrationOfClass` as columns."""
        from cmtrack._pandas import pd

        return pd.DataFrame(self.classes, columns=list(CalibrationOfClass._fields))

    def __repr__(self) -> str:
        return (
            f"ClassCalibration({len(self.classes)} classes, squared={significant(self.squared)}, "
            f"pvalue={significant(self.pvalue)})"
        )


def calibration_of_classes(
    curves: ClassCurves,
    labels: Sequence[Label],
    numbers: Sequence[dict[str, float]],
    intervals: Sequence[Interval | None],
    level: float,
) -> ClassCalibration:
    """Combine the metrics of each class with the numbers computed from its curve.

    The names of the metrics do not contain the prefix of their section.
    """
    adjusted = holm([number["calibration_pvalue"] for number in numbers])
    rows = []
    errors = []
    for k, (label, number, ends) in enumerate(zip(labels, numbers, intervals, strict=True)):
        table = curves.tables[k]
        total = table.blocks.total
        low, high = ends or (math.nan, math.nan)
        rows.append(
            CalibrationOfClass(
                label=label,
                support=number["support"],
                error=number["calibration_error"],
                low=low,
                high=high,
                pvalue=number["calibration_pvalue"],
                pvalue_holm=float(adjusted[k]),
                slope=math.nan if table.fit is None else table.fit.slope,
                mean_score=float(total @ table.blocks.scores / total.sum()),
                share=float(curves.shares[k]),
                roc_auc=number["roc_auc"],
                average_precision=number["average_precision"],
            )
        )
        if table.has_both and math.isfinite(table.error.squared):
            errors.append(table.error.squared)
    squared = math.fsum(errors) / len(errors) if errors else math.nan
    return ClassCalibration(tuple(rows), squared, level)


class OfEach(Function):
    """A function of a single score table, which is applied to the table of each class.

    ``function``: the function of one table, which also provides its influence, size and interval.
    """

    def __init__(self, function: Function) -> None:
        self.function = function
        self.independent = function.independent  # type: ignore[misc]  # instance value

    def __call__(self, curves: ClassCurves) -> FloatArray:
        """Return the value of each class, shape (K,)."""
        return np.array([self.function(table) for table in curves.tables], dtype=np.float64)

    def spread(self, curves: ClassCurves) -> FloatArray:
        """Return the standard error of each class's value, shape (K,)."""
        return _errors(self.function, curves)

    def size(self, curves: ClassCurves) -> FloatArray:
        """Return the effective number of rows in each class.

        Intervals are computed from this number if the standard error is 0.

        The result has the shape (K,) if only the positives matter, and (K, 2) if both sides do.
        """
        sizes = [self.function.size(table) if table.has_both else 0.0 for table in curves.tables]
        if None not in sizes:
            return np.array(sizes)
        with np.errstate(invalid="ignore"):
            return np.stack([table.effective_sides for table in curves.tables])

    def influence_of(self, curves: ClassCurves, k: int) -> FloatArray:
        """Return the influence on the value of class k, shape (4 U,)."""
        return np.asarray(self.function.influence(curves.tables[k]))

    def why(self, curves: ClassCurves, k: int) -> str:
        """Return the reason why class k has no value."""
        table = curves.tables[k]
        if not table.has_both:
            return "no rows of the class, or no rows of other classes"
        return self.function.why(table, None)

    def ends(self, curves: ClassCurves) -> tuple[FloatArray, FloatArray] | None:
        """Return the low and high limits of each class's interval if the function computes them."""
        intervals = [self.function.ends(table) for table in curves.tables]
        if None in intervals:
            return None
        low, high = np.array(intervals).T
        return low, high


def _errors(function: Function, curves: ClassCurves) -> FloatArray:
    errors = np.full(curves.n_classes, math.nan)
    with np.errstate(all="ignore"):
        for k, table in enumerate(curves.tables):
            if not math.isfinite(function(table)):
                continue
            psi = function.influence(table)
            if psi is not None:
                errors[k] = table.standard_error(psi)
    return errors


class AreaAverage(Function):
    """A mean of areas; its standard error can only be computed from the rows."""

    def influence_of_rows(
        self, curves: ClassCurves, actual: IntArray, places: Iterable[IntArray]
    ) -> FloatArray:
        """Return the influence of each row, shape (n,); see :meth:`ClassCurves.places`."""
        raise NotImplementedError


class OneVsRest(AreaAverage):
    """Mean ROC area of each class against all other classes, over classes that have rows."""

    def __init__(self, weighted: bool = False) -> None:
        self.weighted = weighted

    def weights(self, curves: ClassCurves) -> FloatArray:
        """Return the weight with which each class contributes to the mean, shape (K,)."""
        is_defined = np.isfinite(curves.areas)
        weights = curves.shares if self.weighted else 1 / max(is_defined.sum(), 1)
        return np.where(is_defined, weights, 0.0)

    def __call__(self, curves: ClassCurves) -> float:
        weights = self.weights(curves)
        if not weights.any():
            return math.nan
        return float(weights @ np.nan_to_num(curves.areas))

    def spread(self, curves: ClassCurves) -> float:
        """Return the largest standard error that is compatible with the areas' standard errors."""
        weights = self.weights(curves)
        error = float(weights @ np.where(weights > 0, _errors(AREA, curves), 0.0))
        if not self.weighted:
            return error
        # The shares of the classes are also estimated from the rows.
        variance = float(weights @ (np.nan_to_num(curves.areas) - self(curves)) ** 2)
        return error + math.sqrt(variance / curves.tables[0].effective(None))

    def size(self, curves: ClassCurves) -> FloatArray:
        """Return the effective numbers of rows inside and outside the smallest class, shape (2,).

        The interval is computed from these numbers if the standard error is 0.
        """
        sides = np.stack([table.effective_sides for table in curves.tables if table.has_both])
        return sides[sides[:, 0].argmin()]

    def influence_of_rows(
        self, curves: ClassCurves, actual: IntArray, places: Iterable[IntArray]
    ) -> FloatArray:
        """Return the influence of each row, shape (n,); see :meth:`ClassCurves.places`."""
        psi = np.zeros(len(actual))
        for k, (weight, place) in enumerate(zip(self.weights(curves), places, strict=True)):
            if weight:
                psi += weight * of_class(curves.tables[k].area_influence, actual == k, place)
        if self.weighted:
            psi += np.nan_to_num(curves.areas)[actual] - self(curves)
        return psi


class OneVsOne(AreaAverage):
    """Mean ROC area over all pairs of classes with rows, by the probabilities of both classes."""

    def __call__(self, curves: ClassCurves) -> float:
        areas = curves.pair_areas[np.isfinite(curves.pair_areas)]
        return float(areas.mean()) if len(areas) else math.nan

    def spread(self, curves: ClassCurves) -> float:
        """Return the largest standard error that is compatible with the areas' standard errors."""
        errors = np.stack([pair.errors for pair in curves.pairs])
        return float(errors[np.isfinite(curves.pair_areas)].mean())

    def size(self, curves: ClassCurves) -> FloatArray:
        """Return the effective numbers of rows in the two smallest classes.

        The interval is computed from these numbers if the standard error is 0.
        """
        sizes = np.sort([table.effective_sides[0] for table in curves.tables if table.has_both])
        return sizes[:2]

    def influence_of_rows(
        self, curves: ClassCurves, actual: IntArray, places: Iterable[IntArray]
    ) -> FloatArray:
        """Return the influence of each row, shape (n,); see :meth:`ClassCurves.places`."""
        psi = np.zeros(len(actual))
        n_pairs = int(np.isfinite(curves.pair_areas).sum())
        for pair, place in zip(curves.pairs, places, strict=True):
            psi += pair.influence(curves.total)[actual, place] / n_pairs
        return psi


_SHARE: dict[str, Any] = {"low": 0.0, "high": 1.0, "headline": False}
_EACH: dict[str, Any] = {**_SHARE, "of": "class curves"}
_CALIBRATION: dict[str, Any] = {**_SHARE, "of": "class calibration"}
_BOUND = "its standard error needs rows; counts alone give an upper bound"

CLASS_CURVES = (
    Metric(
        "class/<label>/roc_auc",
        OfEach(AREA),
        interval="logit",
        title="area under the ROC curve",
        brief="ROC AUC",
        formula="the class's probability, for the class against all others",
        source="DeLong et al. (1988)",
        **_EACH,
    ),
    Metric(
        "class/<label>/average_precision",
        OfEach(PRECISION),
        interval="logit",
        brief="AP",
        few_errors=True,
        formula="average precision of the class against all others",
        source="Boyd, Eng & Page (2013)",
        **_EACH,
    ),
    Metric(
        "class/<label>/calibration_error",
        OfEach(Error()),
        interval="square",
        better="lower",
        one_sided=True,
        formula="calibration/error of the class's probability",
        source="Bröcker (2012); Kumar, Liang & Ma (2019)",
        **_CALIBRATION,
    ),
    Metric(
        "class/<label>/calibration_pvalue",
        OfEach(PValue()),
        interval="",
        better="",
        brief="calibration p",
        title="p-value of calibration",
        formula=f"calibration/pvalue of the class's probability, {BLOCKS} blocks",
        source=PVALUE_SOURCE,
        **_CALIBRATION,
    ),
)
"""Metrics that are computed from each class's probability, for the section ``class/<label>/``."""

AVERAGES = (
    Metric(
        "multiclass/roc_auc_ovr_macro",
        OneVsRest(),
        of="class curves",
        interval="logit",
        title="one-vs-rest ROC AUC, macro",
        formula=f"mean of class/<label>/roc_auc; {_BOUND}",
        source="Hand & Till (2001)",
        **_SHARE,
    ),
    Metric(
        "multiclass/roc_auc_ovr_weighted",
        OneVsRest(weighted=True),
        of="class curves",
        interval="logit",
        title="one-vs-rest ROC AUC, weighted",
        formula=f"mean of class/<label>/roc_auc, weighted by class share; {_BOUND}",
        source="Hand & Till (2001)",
        **_SHARE,
    ),
    Metric(
        "multiclass/roc_auc_ovo_macro",
        OneVsOne(),
        of="class pairs",
        interval="logit",
        title="one-vs-one ROC AUC, macro",
        formula=f"mean over all pairs of classes; {_BOUND}",
        source="Hand & Till (2001)",
        **_SHARE,
    ),
)
"""Averages of areas, for the section ``multiclass/``."""
