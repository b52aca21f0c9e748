"""Metrics of a whole table of classes or groups: ``multiclass/``, ``reduced/<step>/`` and ``spans/``.

Ratios without a denominator are NaN; averages over classes pass them over. The metrics of a reduced matrix
use the same code: a mismatch is in its group but no hit (Markoulidakis et al. 2021, Table 4).

The article on multiclass metrics that counts kappa's chance agreement on 74 dishes prints .56; with its own
formula the value is .569636 (the chance terms .28 should be .2027 and .2920).

Both macro F1 are in use: the mean of F1 is the usual one; Table 3 of Markoulidakis et al. (2021) defines the other,
the harmonic mean of macro recall and macro precision, never below it. Their names keep them apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from cmtrack.metrics import per_class
from cmtrack.metrics.cells import Table
from cmtrack.metrics.class_curves import AVERAGES
from cmtrack.metrics.function import Fraction
from cmtrack.metrics.metric import Metric, Section
from cmtrack.metrics.per_class import GROUPS
from cmtrack.metrics.probability import RANKS
from cmtrack.statistics.counting import row_blocks
from cmtrack.statistics.inputs import BoolArray, FloatArray, IntArray

Both: TypeAlias = tuple[float, FloatArray]
"""A value and its influence per cell, shape (C,)."""
PASSING_OVER = ("precision_macro", "precision_weighted", "f1_of_macro_means")
"""Averages that leave out a class with samples where it is never predicted."""


@dataclass(frozen=True)
class Share(Fraction):
    """A ratio of two sums over the samples of a table; both are given as values per cell, shape (C,)."""

    above: Callable[[Table], FloatArray]
    below: Callable[[Table], FloatArray] | None = None

    def __call__(self, table: Table) -> float:
        base = float(table.cells.weight @ self.denominator(table))
        return float(table.cells.weight @ self.above(table)) / base if base else math.nan

    def denominator(self, table: Table) -> FloatArray:
        """The denominator of a sample in each cell; by default every sample counts."""
        return np.ones(len(table.cells.weight)) if self.below is None else self.below(table)

    def influence(self, table: Table) -> FloatArray:
        """Influence per cell, shape (C,)."""
        below = self.denominator(table)
        base = float(table.cells.weight @ below)
        return (self.above(table) - self(table) * below) * (
            table.cells.total / base if base else math.nan
        )


class Closed(Fraction):
    """A function of a table that gives value and influence together, in closed form."""

    def __init__(self, function: Callable[..., Both], *arguments: Any) -> None:
        self.function, self.arguments = function, arguments

    def __call__(self, table: Table) -> float:
        return table.once(self.function, *self.arguments)[0]

    def influence(self, table: Table) -> FloatArray:
        """Influence per cell, shape (C,)."""
        return table.once(self.function, *self.arguments)[1]

    def denominator(self, table: Table) -> FloatArray:
        """Of shares: every sample counts."""
        return np.ones(len(table.cells.weight))


# -- values and influences -----------------------------------------------------------------------------------


def recall_macro(table: Table, undefined: float = math.nan) -> Both:
    """Mean of recall over the classes; ``undefined`` is the recall of a class without samples, NaN is passed over."""
    cells, recall = table.cells, _of_classes(table, per_class.RECALL, undefined)
    i = cells.actual
    psi = table.kept[i] * (cells.hit - np.nan_to_num(recall[i])) / (table.actual[i] / cells.total)
    return _mean(recall), psi / _defined(recall)


def precision_macro(table: Table, undefined: float = math.nan) -> Both:
    """Mean of precision over the classes."""
    cells, precision = table.cells, _of_classes(table, per_class.PRECISION, undefined)
    j = cells.predicted
    psi = (
        table.kept[j]
        * (cells.hit - np.nan_to_num(precision[j]))
        / (table.predicted[j] / cells.total)
    )
    return _mean(precision), psi / _defined(precision)


def f1_macro(table: Table, undefined: float = math.nan) -> Both:
    """Mean of F1 over the classes."""
    f1 = _of_classes(table, per_class.F1, undefined)
    return _mean(f1), _f1_terms(table, f1, table.kept.astype(np.float64)) / _defined(f1)


def f1_of_macro_means(table: Table) -> Both:
    """Harmonic mean of macro recall and macro precision."""
    (a, psi_a), (b, psi_b) = (
        table.once(recall_macro, math.nan),
        table.once(precision_macro, math.nan),
    )
    if not a + b > 0:
        return math.nan, np.full(len(psi_a), math.nan)
    return 2 * a * b / (a + b), 2 * (b * b * psi_a + a * a * psi_b) / (a + b) ** 2


def precision_weighted(table: Table, undefined: float = math.nan) -> Both:
    """Mean of precision weighted by support."""
    cells, precision = table.cells, _of_classes(table, per_class.PRECISION, undefined)
    i, j, n = cells.actual, cells.predicted, cells.total
    weight = np.where(np.isnan(precision), 0.0, table.actual / n)
    values = np.nan_to_num(precision)
    terms = weight[j] / (table.predicted[j] / n) * (cells.hit - values[j])
    return _weighted(weight, values, weight[i] > 0, i, terms)


def recall_weighted(table: Table) -> Both:
    """Mean of recall weighted by support; over all classes it is the accuracy."""
    if table.over is None:
        return ACCURACY(table), ACCURACY.influence(table)
    cells, i = table.cells, table.cells.actual
    values = np.nan_to_num(_of_classes(table, per_class.RECALL))
    return _weighted(
        _own_shares(table), values, table.kept[i], i, table.kept[i] * (cells.hit - values[i])
    )


def f1_weighted(table: Table) -> Both:
    """Mean of F1 weighted by support."""
    f1, shares, i = _of_classes(table, per_class.F1), _own_shares(table), table.cells.actual
    return _weighted(shares, np.nan_to_num(f1), table.kept[i], i, _f1_terms(table, f1, shares))


def cohen_kappa(table: Table, weights: str | None = None) -> Both:
    """Cohen's kappa and its influence per cell.

    ``weights``, None, "linear" or "quadratic": disagreement weights by the distance of the classes in label order.

    Notes
    -----
    0 is chance, not the minimum; -p_e/(1-p_e) is. Undefined (NaN) where everything is of one class.
    """
    cells, n = table.cells, table.cells.total
    t, q = table.actual / n, table.predicted / n
    i, j = cells.actual, cells.predicted
    if weights is None:
        agree = (i == j).astype(np.float64)
        p_o, p_e = float(cells.weight @ agree) / n, float(t @ q)
        if not p_e < 1:
            return math.nan, np.full(len(i), math.nan)
        value = (p_o - p_e) / (1 - p_e)
        influence = ((agree - p_o) * (1 - p_e) - (1 - p_o) * (q[i] + t[j] - 2 * p_e)) / (
            1 - p_e
        ) ** 2
        return value, influence
    if weights not in ("linear", "quadratic"):
        raise ValueError(f"weights must be None, 'linear' or 'quadratic', got {weights!r}")

    def apart(first: Any, second: Any) -> Any:
        w = np.abs(first - second) / (cells.size - 1.0)
        return w if weights == "linear" else w**2

    classes, of_cell = np.arange(cells.size), apart(i, j)
    w_q, t_w = np.empty(cells.size), np.zeros(cells.size)
    for rows in row_blocks(cells.size, cells.size):
        w = apart(classes[rows, None], classes)
        w_q[rows] = w @ q
        t_w += t[rows] @ w
    q_o, q_e = float(cells.weight @ of_cell) / n, float(t @ w_q)
    if not q_e > 0:
        return math.nan, np.full(len(i), math.nan)
    return 1 - q_o / q_e, -(of_cell - q_o) / q_e + q_o / q_e**2 * (w_q[i] + t_w[j] - 2 * q_e)


def matthews_corrcoef(table: Table) -> Both:
    """Matthews' correlation for K classes (Gorodkin's R_K) and its influence per cell.

    For two classes it is the Pearson correlation of the two indicators (Gubbels 2023, appendix A with its
    missing square root put in). In a reduced matrix it is the correlation of the *groups*: a mismatch counts as
    agreement, so relaxed, strict and hybrid grouping give one value. The numerator of equation 28 in
    Markoulidakis et al. (2021) lacks TP x IMN. Undefined (NaN) where actual or predicted are of one class.
    """
    cells, n = table.cells, table.cells.total
    t, q = table.actual / n, table.predicted / n
    i, j = cells.actual, cells.predicted
    agree = (i == j).astype(np.float64)
    p_o, p_e = float(cells.weight @ agree) / n, float(t @ q)
    a, b = (float(share @ ((n - n * share) / n)) for share in (q, t))  # 1 − Σ q² and 1 − Σ t²
    if not a * b > 0:
        return math.nan, np.full(len(i), math.nan)
    value = (p_o - p_e) / math.sqrt(a * b)
    x = (agree - p_o) - (q[i] - p_e) - (t[j] - p_e)
    x1, x2 = -2 * (q[j] - (1 - a)), -2 * (t[i] - (1 - b))
    return value, x / math.sqrt(a * b) - value / 2 * (x1 / a + x2 / b)


def passed_over(name: str, table: Table) -> IntArray:
    """The classes that have samples and that an average leaves out because they are never predicted.

    ``name``: the metric without its section, such as ``"precision_macro"``.
    """
    if name not in PASSING_OVER:
        return np.zeros(0, dtype=np.int64)
    return np.asarray(np.flatnonzero((table.actual > 0) & (table.predicted == 0) & table.kept))


def _of_classes(
    table: Table, ratio: per_class.ClassRatio, undefined: float = math.nan
) -> FloatArray:
    """A ratio of each class, NaN for the classes that averages are not taken over."""
    return np.where(table.kept, table.once(_ratio, ratio, undefined), math.nan)


def _ratio(table: Table, ratio: per_class.ClassRatio, undefined: float) -> FloatArray:
    return ratio(table, undefined)


def _f1_terms(table: Table, f1: FloatArray, scale: FloatArray) -> FloatArray:
    """The part that the classes' own F1 add to the influence of their sum by ``scale`` (K,), shape (C,)."""
    cells = table.cells
    i, j, both = cells.actual, cells.predicted, (table.actual + table.predicted) / cells.total
    share = np.nan_to_num(scale * f1) / np.where(both > 0, both, 1)
    return 2.0 * cells.hit * scale[i] / both[i] - share[i] - share[j]


def _own_shares(table: Table) -> FloatArray:
    return np.where(table.kept, table.actual / table.cells.total, 0.0)


def _weighted(
    weight: FloatArray, values: FloatArray, inside: BoolArray, of: IntArray, terms: FloatArray
) -> Both:
    """Mean of a class metric by weights that are shares of samples; ``terms`` are what its own values add."""
    covered = float(weight.sum())
    value = float(weight @ values) / covered if covered > 0 else math.nan
    return value, (inside * (values[of] - value) + terms) / (covered or 1.0)


def _defined(values: FloatArray) -> int:
    return max(1, int(np.count_nonzero(~np.isnan(values))))


def _mean(values: FloatArray) -> float:
    return float(np.nanmean(values)) if not np.isnan(values).all() else math.nan


def _hit(table: Table) -> FloatArray:
    return table.cells.hit.astype(np.float64)


def _mismatch(table: Table) -> FloatArray:
    mismatch: BoolArray = ~table.cells.hit & (table.cells.actual == table.cells.predicted)
    return mismatch.astype(np.float64)


def _actual_kept(table: Table) -> FloatArray:
    return table.kept[table.cells.actual].astype(np.float64)


def _predicted_kept(table: Table) -> FloatArray:
    return table.kept[table.cells.predicted].astype(np.float64)


def _hit_kept(table: Table) -> FloatArray:
    return _hit(table) * _actual_kept(table)


# -- declarations --------------------------------------------------------------------------------------------

ACCURACY = Share(_hit)
_SOKOLOVA, _ZERO = "Sokolova & Lapalme (2009)", "scikit-learn, zero_division=0"
_MARKOULIDAKIS = "Markoulidakis et al. (2021)"
_COHEN, _GORODKIN, _SEQEVAL = "Cohen (1960, 1968)", "Gorodkin (2004)", "Nakayama (2018), seqeval"


def _of_table(section: str, source: str, **usual: Any) -> Callable[..., Metric]:
    """A declarer of a section's metrics: between 0 and 1, with a Wald interval, unless ``words`` differ."""

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
    "reason": "all samples are of one actual or one predicted class",
}
_unpredicted = {"reason": "no predicted spans"}
_OF_MEANS = {"title": "F1 of the macro means", "brief": "F1 of means"}
MATTHEWS = {"title": "Matthews correlation", "brief": "MCC"}

ORDINAL = ("multiclass/cohen_kappa_linear", "multiclass/cohen_kappa_quadratic")
"""Metrics that read the order of the classes."""

MULTICLASS = Section(
    "multiclass",
    "All classes",
    (
        _multiclass("accuracy", ACCURACY, "Σ C_ii / n", interval="wilson", headline=True),
        _multiclass(
            "recall_weighted",
            Closed(recall_weighted),
            "mean of recall weighted by support; equals accuracy",
            interval="wilson",
        ),
        _multiclass(
            "balanced_accuracy",
            Closed(recall_macro, math.nan),
            "mean of recall over classes",
            headline=True,
            association=True,
        ),
        _multiclass(
            "precision_macro", Closed(precision_macro, math.nan), "mean of precision over classes"
        ),
        _multiclass("recall_macro", Closed(recall_macro, math.nan), "mean of recall over classes"),
        _multiclass("f1_macro", Closed(f1_macro), "mean of F1 over classes", headline=True),
        _multiclass(
            "precision_weighted",
            Closed(precision_weighted),
            "mean of precision weighted by support",
        ),
        _multiclass("f1_weighted", Closed(f1_weighted), "mean of F1 weighted by support"),
        _multiclass(
            "precision_macro_zero",
            Closed(precision_macro, 0.0),
            "precision_macro, a class that is never predicted counted as 0",
            source=_ZERO,
        ),
        _multiclass(
            "precision_weighted_zero",
            Closed(precision_weighted, 0.0),
            "precision_weighted, a class that is never predicted counted as 0",
            source=_ZERO,
        ),
        _multiclass(
            "f1_macro_zero",
            Closed(f1_macro, 0.0),
            "f1_macro, a class that is neither actual nor predicted counted as 0",
            source=_ZERO,
        ),
        _multiclass(
            "f1_of_macro_means",
            Closed(f1_of_macro_means),
            "harmonic mean of precision_macro and recall_macro",
            source=f"{_MARKOULIDAKIS}, Table 3",
            **_OF_MEANS,
        ),
        _multiclass(
            "cohen_kappa",
            Closed(cohen_kappa),
            "(p_o − p_e) / (1 − p_e)",
            source=_COHEN,
            headline=True,
            title="Cohen's kappa",
            brief="kappa",
            **_beyond_chance,
        ),
        _multiclass(
            "cohen_kappa_linear",
            Closed(cohen_kappa, "linear"),
            "1 − Σ W P / Σ W T Q, W = |i − j| / (K − 1), in label order",
            source=_COHEN,
            title="Cohen's kappa, linear weights",
            brief="linear kappa",
            **_beyond_chance,
        ),
        _multiclass(
            "cohen_kappa_quadratic",
            Closed(cohen_kappa, "quadratic"),
            "1 − Σ W P / Σ W T Q, W = (i − j)² / (K − 1)², in label order",
            source=_COHEN,
            title="Cohen's kappa, quadratic weights",
            brief="quadratic kappa",
            **_beyond_chance,
        ),
        _multiclass(
            "matthews_corrcoef",
            Closed(matthews_corrcoef),
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
        _reduced(
            "precision_macro", Closed(precision_macro, math.nan), "mean of precision over groups"
        ),
        _reduced("recall_macro", Closed(recall_macro, math.nan), "mean of recall over groups"),
        _reduced("f1_macro", Closed(f1_macro), "mean of F1 over groups", headline=True),
        _reduced(
            "f1_of_macro_means",
            Closed(f1_of_macro_means),
            "harmonic mean of precision_macro and recall_macro",
            **_OF_MEANS,
        ),
        _reduced(
            "precision_macro_zero",
            Closed(precision_macro, 0.0),
            "precision_macro, a group that is never predicted counted as 0",
            source=_ZERO,
        ),
        _reduced(
            "f1_macro_zero",
            Closed(f1_macro, 0.0),
            "f1_macro, a group that is neither actual nor predicted counted as 0",
            source=_ZERO,
        ),
        _reduced(
            "matthews_corrcoef",
            Closed(matthews_corrcoef),
            "R_K of the groups; a mismatch counts as agreement of its group",
            source=_GORODKIN,
            interval="atanh",
            **MATTHEWS,
            **(_beyond_chance | {"reason": "all samples are of one actual or one predicted group"}),
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
            "right spans / predicted spans",
            interval="wilson",
            headline=True,
            **_unpredicted,
        ),
        _spans(
            "recall_micro",
            Share(_hit_kept, _actual_kept),
            "right spans / actual spans",
            interval="wilson",
            headline=True,
        ),
        _spans(
            "f1_micro",
            Share(lambda t: 2 * _hit_kept(t), lambda t: _actual_kept(t) + _predicted_kept(t)),
            "2 right spans / (predicted + actual spans)",
            headline=True,
        ),
        _spans(
            "precision_macro",
            Closed(precision_macro, math.nan),
            "mean of precision over the labels of spans",
            **_unpredicted,
        ),
        _spans(
            "recall_macro",
            Closed(recall_macro, math.nan),
            "mean of recall over the labels of spans",
        ),
        _spans("f1_macro", Closed(f1_macro), "mean of F1 over the labels of spans", headline=True),
        _spans(
            "precision_macro_zero",
            Closed(precision_macro, 0.0),
            "precision_macro, a label that is never predicted counted as 0",
            **_unpredicted,
        ),
        _spans(
            "recall_macro_zero",
            Closed(recall_macro, 0.0),
            "recall_macro, a label that is never actual counted as 0",
        ),
    ),
)
