"""Metrics of tables of classes or groups, in ``multiclass/``, ``reduced/<step>/`` and ``spans/``.

A ratio with a denominator of 0 is NaN, and averages over classes skip such ratios. The same code
computes the metrics of a reduced matrix. A mismatch counts as a row of its group, but not as a hit
(Markoulidakis et al. 2021, Table 4).

An article on multiclass metrics computes a kappa of .56 for 74 dishes. The correct result of its
formula is .569636, because two chance terms that are printed as .28 should be .2027 and .2920.

Two definitions of macro F1 are in use. The usual definition is the mean of the F1 scores of the
classes. Table 3 of Markoulidakis et al. (2021) defines macro F1 as the harmonic mean of macro
recall and macro precision, which is never lower. cmtrack uses different names for these two
metrics.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cmtrack.metrics.cells import Table
from cmtrack.metrics.class_curves import AVERAGES
from cmtrack.metrics.class_sums import ClassSums, OfClassSums
from cmtrack.metrics.function import Fraction, Function
from cmtrack.metrics.metric import Metric, Section
from cmtrack.metrics.per_class import F1, GROUPS, PRECISION, RECALL, ClassRatio
from cmtrack.metrics.probability import RANKS
from cmtrack.statistics.counting import row_blocks
from cmtrack.statistics.inputs import BoolArray, FloatArray, IntArray

PASSING_OVER = ("precision_macro", "precision_weighted", "f1_of_macro_means")
"""Averages that skip classes that have rows but are never predicted."""


@dataclass(frozen=True)
class Share(Fraction):
    """A ratio of two sums over the rows of a table.

    Each sum contains one term per row. The terms are passed by cell, as arrays of shape (C,).
    """

    above: Callable[[Table], FloatArray]
    below: Callable[[Table], FloatArray] | None = None

    def __call__(self, table: Table) -> float:
        base = float(table.cells.weight @ self.denominator(table))
        if not base:
            return math.nan
        return float(table.cells.weight @ self.above(table)) / base

    def denominator(self, table: Table) -> FloatArray:
        """Return what a row in each cell adds to the denominator; by default every row adds 1."""
        if self.below is None:
            return np.ones(len(table.cells.weight))
        return self.below(table)

    def influence(self, table: Table) -> FloatArray:
        """Return the influence per cell, shape (C,)."""
        below = self.denominator(table)
        base = float(table.cells.weight @ below)
        scale = table.cells.total / base if base else math.nan
        return (self.above(table) - self(table) * below) * scale


# -- functions of class sums -----------------------------------------------------------------------


def quotient(above: Any, below: Any) -> Any:
    """Divide elementwise; the result is NaN wherever the denominator is not above 0."""
    return np.where(np.real(below) > 0, above / below, math.nan)


def macro(class_ratio: ClassRatio, zero: bool = False) -> OfClassSums:
    """Return the mean of a ratio over all classes whose denominator is above 0.

    ``zero``: whether classes with a denominator of 0 are included with the ratio 0.
    """

    def terms(c: ClassSums) -> tuple[Any, ...]:
        ratios, defined = _ratios(class_ratio, c)
        return ratios, defined | zero

    return OfClassSums(terms, quotient)


def weighted(class_ratio: ClassRatio, zero: bool = False) -> OfClassSums:
    """Return the support-weighted mean of a ratio over all classes whose denominator is above 0.

    ``zero``: whether classes with a denominator of 0 are included with the ratio 0.
    """

    def terms(c: ClassSums) -> tuple[Any, ...]:
        ratios, defined = _ratios(class_ratio, c)
        return c.actual * ratios, c.actual * (defined | zero)

    return OfClassSums(terms, quotient)


def _ratios(class_ratio: ClassRatio, c: ClassSums) -> tuple[Any, BoolArray]:
    """Return the ratio of each class, or 0 if it is undefined, and a mask of the defined ratios."""
    below = class_ratio.below(c)
    defined = np.real(below) > 0
    return np.where(defined, class_ratio.hits * c.hits / below, 0.0), defined


MACRO_RECALL = macro(RECALL)
MACRO_PRECISION = macro(PRECISION)


def harmonic_mean(recalls: Any, n_recalls: Any, precisions: Any, n_precisions: Any) -> Any:
    """Return the harmonic mean of macro recall and macro precision."""
    recall = quotient(recalls, n_recalls)
    precision = quotient(precisions, n_precisions)
    return quotient(2 * recall * precision, recall + precision)


F1_OF_MACRO_MEANS = OfClassSums(
    lambda c: (*MACRO_RECALL.terms(c), *MACRO_PRECISION.terms(c)), harmonic_mean
)
RECALL_WEIGHTED = OfClassSums(lambda c: (c.hits, c.actual), quotient)
"""Recall weighted by support. It equals the accuracy if all classes are included."""


def disagreement(c: ClassSums) -> tuple[Any, Any]:
    """Return n times the observed and the chance disagreement of each class.

    The disagreement is the number of rows whose actual and predicted class differ. If nearly all
    rows belong to one class, the agreement and the agreement by chance differ only in their last
    digits, so their difference would be mostly rounding error. The two disagreements are small
    numbers, so their difference is accurate.
    """
    return c.all_actual * (c.actual - c.agreed), c.actual * (c.all_predicted - c.predicted)


COHEN_KAPPA = OfClassSums(disagreement, lambda seen, chance: quotient(chance - seen, chance))
"""Cohen's kappa. A kappa of 0 means that the agreement is as high as by chance. The minimum is not
-1 but -p_e/(1-p_e). Kappa is undefined if a single class is the actual and predicted class of all
rows.
"""

MATTHEWS_CORRCOEF = OfClassSums(
    lambda c: (
        *disagreement(c),
        c.actual * (c.all_actual - c.actual),
        c.predicted * (c.all_predicted - c.predicted),
    ),
    lambda seen, chance, actual, predicted: quotient(
        chance - seen, np.sqrt(actual) * np.sqrt(predicted)
    ),
)
"""Matthews' correlation for K classes (Gorodkin's R_K).

For two classes it is the Pearson correlation of the two indicators (Gubbels 2023, appendix A, to
which the missing square root is added). In a reduced matrix it is the correlation of the *groups*:
a mismatch counts as agreement, so the value is equal for relaxed, strict and hybrid grouping. The
numerator of equation 28 in Markoulidakis et al. (2021) lacks TP x IMN. The correlation is undefined
if all rows have the same actual class, or if all rows have the same predicted class.
"""


# -- kappa with weights ----------------------------------------------------------------------------


@dataclass(frozen=True)
class WeightedKappa(Function):
    """Cohen's kappa, in which the weight of an error is a power of the distance in label order."""

    power: int

    def __call__(self, table: Table) -> float:
        _, seen, chance, _ = table.once(_disagreement_by_distance, self.power)
        return 1 - seen / chance if chance > 0 else math.nan

    def influence(self, table: Table) -> FloatArray:
        """Return the influence per cell, shape (C,)."""
        of_cell, seen, chance, of_margins = table.once(_disagreement_by_distance, self.power)
        if not chance > 0:
            return np.full(len(of_cell), math.nan)
        return -(of_cell - seen) / chance + seen / chance**2 * (of_margins - 2 * chance)


def _disagreement_by_distance(
    table: Table, power: int
) -> tuple[FloatArray, float, float, FloatArray]:
    """Return the disagreement in each cell, the observed mean, the mean by chance, and the margins.

    The disagreement is an array of shape (C,). The margin of a cell is the derivative of the mean
    by chance with respect to the share of the cell.
    """
    cells = table.cells
    t = table.actual / cells.total
    q = table.predicted / cells.total

    def distance(first: Any, second: Any) -> Any:
        return (np.abs(first - second) / (cells.size - 1.0)) ** power

    classes = np.arange(cells.size)
    of_cell = distance(cells.actual, cells.predicted)
    of_actual = np.empty(cells.size)
    of_predicted = np.zeros(cells.size)
    for rows in row_blocks(cells.size, cells.size):
        distances = distance(classes[rows, None], classes)
        of_actual[rows] = distances @ q
        of_predicted += t[rows] @ distances
    seen = float(cells.weight @ of_cell) / cells.total
    of_margins = of_actual[cells.actual] + of_predicted[cells.predicted]
    return of_cell, seen, float(t @ of_actual), of_margins


def passed_over(name: str, table: Table) -> IntArray:
    """Return the classes that an average skips because they have rows but are never predicted.

    ``name``: the metric's name without its section, such as ``"precision_macro"``.
    """
    if name not in PASSING_OVER:
        return np.zeros(0, dtype=np.int64)
    return np.flatnonzero((table.actual > 0) & (table.predicted == 0) & table.kept)


def _hit(table: Table) -> FloatArray:
    return table.cells.hit.astype(np.float64)


def _mismatch(table: Table) -> FloatArray:
    return table.cells.is_mismatch.astype(np.float64)


def _actual_kept(table: Table) -> FloatArray:
    return table.kept[table.cells.actual].astype(np.float64)


def _predicted_kept(table: Table) -> FloatArray:
    return table.kept[table.cells.predicted].astype(np.float64)


def _hit_kept(table: Table) -> FloatArray:
    return _hit(table) * _actual_kept(table)


# -- declarations ----------------------------------------------------------------------------------

ACCURACY = Share(_hit)
_SOKOLOVA = "Sokolova & Lapalme (2009)"
_ZERO = "scikit-learn, zero_division=0"
_MARKOULIDAKIS = "Markoulidakis et al. (2021)"
_COHEN = "Cohen (1960, 1968)"
_GORODKIN = "Gorodkin (2004)"
_SEQEVAL = "Nakayama (2018), seqeval"


def _of_table(section: str, source: str, **usual: Any) -> Callable[..., Metric]:
    """Return a function that declares the metrics of a section.

    By default, the range of the declared metrics is 0 to 1, and their interval is a Wald interval.
    """

    def declare(name: str, value: Any, formula: str, **words: Any) -> Metric:
        fields = {
            "of": "table",
            "low": 0.0,
            "high": 1.0,
            "headline": False,
            "source": source,
            **usual,
            **words,
        }
        return Metric(f"{section}/{name}", value, formula=formula, **fields)

    return declare


_multiclass = _of_table("multiclass", _SOKOLOVA)
_reduced = _of_table("reduced/<step>", f"{_MARKOULIDAKIS}, Tables 3 and 4")
_spans = _of_table("spans", _SEQEVAL, of="spans", reason="no actual spans")
_beyond_chance = {
    "of": "whole table",
    "low": -1.0,
    "association": True,
    "reason": "all rows have the same actual class or the same predicted class",
}
_unpredicted = {"reason": "no predicted spans"}
_OF_MEANS = {"title": "F1 of the macro means", "brief": "F1 of means"}
MATTHEWS = {"title": "Matthews correlation", "brief": "MCC"}

BY_ORDER = ("multiclass/cohen_kappa_linear", "multiclass/cohen_kappa_quadratic")
"""Metrics of this section that depend on the order of the classes."""

MULTICLASS = Section(
    "multiclass",
    "All classes",
    (
        _multiclass("accuracy", ACCURACY, "Σ C_ii / n", interval="wilson", headline=True),
        _multiclass(
            "recall_weighted",
            RECALL_WEIGHTED,
            "mean of recall weighted by support; equals accuracy",
            interval="wilson",
        ),
        _multiclass(
            "balanced_accuracy",
            MACRO_RECALL,
            "mean of recall over classes",
            headline=True,
            association=True,
        ),
        _multiclass("precision_macro", MACRO_PRECISION, "mean of precision over classes"),
        _multiclass("recall_macro", MACRO_RECALL, "mean of recall over classes"),
        _multiclass("f1_macro", macro(F1), "mean of F1 over classes", headline=True),
        _multiclass(
            "precision_weighted",
            weighted(PRECISION),
            "mean of precision weighted by support",
        ),
        _multiclass("f1_weighted", weighted(F1), "mean of F1 weighted by support"),
        _multiclass(
            "precision_macro_zero",
            macro(PRECISION, zero=True),
            "precision_macro (classes that are never predicted count as 0)",
            source=_ZERO,
        ),
        _multiclass(
            "precision_weighted_zero",
            weighted(PRECISION, zero=True),
            "precision_weighted (classes that are never predicted count as 0)",
            source=_ZERO,
        ),
        _multiclass(
            "f1_macro_zero",
            macro(F1, zero=True),
            "f1_macro (classes that occur in neither the actual nor the predicted labels count "
            "as 0)",
            source=_ZERO,
        ),
        _multiclass(
            "f1_of_macro_means",
            F1_OF_MACRO_MEANS,
            "harmonic mean of precision_macro and recall_macro",
            source=f"{_MARKOULIDAKIS}, Table 3",
            **_OF_MEANS,
        ),
        _multiclass(
            "cohen_kappa",
            COHEN_KAPPA,
            "(p_o − p_e) / (1 − p_e)",
            source=_COHEN,
            headline=True,
            title="Cohen's kappa",
            brief="kappa",
            **_beyond_chance,
        ),
        _multiclass(
            "cohen_kappa_linear",
            WeightedKappa(1),
            "1 − Σ W P / Σ W T Q, W = |i − j| / (K − 1), in label order",
            source=_COHEN,
            title="Cohen's kappa, linear weights",
            brief="linear kappa",
            **_beyond_chance,
        ),
        _multiclass(
            "cohen_kappa_quadratic",
            WeightedKappa(2),
            "1 − Σ W P / Σ W T Q, W = (i − j)² / (K − 1)², in label order",
            source=_COHEN,
            title="Cohen's kappa, quadratic weights",
            brief="quadratic kappa",
            **_beyond_chance,
        ),
        _multiclass(
            "matthews_corrcoef",
            MATTHEWS_CORRCOEF,
            "(p_o − Σ T Q) / √((1 − Σ T²)(1 − Σ Q²))",
            source=_GORODKIN,
            interval="atanh",
            headline=True,
            **MATTHEWS,
            **_beyond_chance,
        ),
        *RANKS,
        *AVERAGES,
    ),
)

REDUCED = Section(
    "reduced",
    "Grouped: {step}",
    (
        _reduced(
            "accuracy",
            ACCURACY,
            "Σ TP_g / n",
            source=f"{_MARKOULIDAKIS}, Table 4",
            interval="wilson",
            headline=True,
        ),
        _reduced("precision_macro", MACRO_PRECISION, "mean of precision over groups"),
        _reduced("recall_macro", MACRO_RECALL, "mean of recall over groups"),
        _reduced("f1_macro", macro(F1), "mean of F1 over groups", headline=True),
        _reduced(
            "f1_of_macro_means",
            F1_OF_MACRO_MEANS,
            "harmonic mean of precision_macro and recall_macro",
            **_OF_MEANS,
        ),
        _reduced(
            "precision_macro_zero",
            macro(PRECISION, zero=True),
            "precision_macro (groups that are never predicted count as 0)",
            source=_ZERO,
        ),
        _reduced(
            "f1_macro_zero",
            macro(F1, zero=True),
            "f1_macro (groups that occur in neither the actual nor the predicted labels count "
            "as 0)",
            source=_ZERO,
        ),
        _reduced(
            "matthews_corrcoef",
            MATTHEWS_CORRCOEF,
            "R_K of the groups; a mismatch within a group counts as agreement",
            source=_GORODKIN,
            interval="atanh",
            **MATTHEWS,
            **(
                _beyond_chance
                | {"reason": "all rows have the same actual group or the same predicted group"}
            ),
        ),
        _reduced(
            "mismatch_rate",
            Share(_mismatch),
            "Σ IM_g / n",
            source=f"{_MARKOULIDAKIS}, eq. 7",
            interval="wilson",
            better="lower",
            headline=True,
            one_sided=True,
        ),
        *GROUPS,
    ),
    depends_on=frozenset({"grouping"}),
)

SPANS = Section(
    "spans",
    "Spans",
    (
        _spans(
            "precision_micro",
            Share(_hit_kept, _predicted_kept),
            "correct spans / predicted spans",
            interval="wilson",
            headline=True,
            **_unpredicted,
        ),
        _spans(
            "recall_micro",
            Share(_hit_kept, _actual_kept),
            "correct spans / actual spans",
            interval="wilson",
            headline=True,
        ),
        _spans(
            "f1_micro",
            Share(lambda t: 2 * _hit_kept(t), lambda t: _actual_kept(t) + _predicted_kept(t)),
            "2 correct spans / (predicted + actual spans)",
            headline=True,
        ),
        _spans(
            "precision_macro",
            MACRO_PRECISION,
            "mean of precision over the span labels",
            **_unpredicted,
        ),
        _spans(
            "recall_macro",
            MACRO_RECALL,
            "mean of recall over the span labels",
        ),
        _spans("f1_macro", macro(F1), "mean of F1 over the span labels", headline=True),
        _spans(
            "precision_macro_zero",
            macro(PRECISION, zero=True),
            "precision_macro (labels that are never predicted count as 0)",
            **_unpredicted,
        ),
        _spans(
            "recall_macro_zero",
            macro(RECALL, zero=True),
            "recall_macro (labels without an actual span count as 0)",
        ),
    ),
)
