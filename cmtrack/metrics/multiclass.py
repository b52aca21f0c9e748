"""Metrics of a table of classes or groups: values, and the standard error of each.

Ratios without a denominator are NaN; averages over classes pass them over. The metrics of a reduced matrix
use the same code: a mismatch is in its group but no hit (Markoulidakis et al. 2021, Table 4).

The article on multiclass metrics that counts kappa's chance agreement on 74 dishes prints .56; with its own
formula the value is .569636 (the chance terms .28 should be .2027 and .2920).
"""

from __future__ import annotations

import math

import numpy as np

from cmtrack.metrics.cells import Cells, ratio
from cmtrack.statistics.inputs import BoolArray, FloatArray, IntArray

ZERO_COUNTED = ("precision_macro", "precision_weighted", "f1_macro")
"""Averages that are also given with undefined classes counted as 0, under their name with ``_zero`` behind."""
PASSING_OVER = ("precision_macro", "precision_weighted", "f1_of_macro_means")
"""Averages that leave out a class with samples where it is never predicted."""


def class_metrics(cells: Cells, zero_division: float = math.nan) -> dict[str, FloatArray]:
    """Precision, recall, F1 and support of each class, arrays of shape (K,).

    Parameters
    ----------
    cells : Cells
    zero_division : float, default NaN
        The value of a ratio without a denominator: NaN, 0 or 1.
    """
    hits, actual, predicted = _margins(cells)
    return {
        "precision": ratio(hits, predicted, zero_division),
        "recall": ratio(hits, actual, zero_division),
        "f1": ratio(2 * hits, actual + predicted, zero_division),
        "support": actual,
    }


def class_standard_errors(cells: Cells) -> dict[str, FloatArray]:
    """Standard errors of F1, and effective denominators of precision and recall, shape (K,)."""
    f1 = class_metrics(cells)["f1"]
    _, actual, predicted = _margins(cells)
    own = cells.actual == cells.predicted
    f1_i, f1_j = f1[cells.actual], f1[cells.predicted]
    as_actual = np.where(own, (2.0 * cells.hit - 2 * f1_i) ** 2, f1_i**2)
    as_predicted = np.where(own, 0.0, f1_j**2)
    spread = cells.by_actual(cells.squares * as_actual) + cells.by_predicted(cells.squares * as_predicted)
    error = ratio(np.sqrt(spread), actual + predicted)
    squares_actual, squares_predicted = cells.by_actual(cells.squares), cells.by_predicted(cells.squares)
    return {
        "f1": error,
        "recall_n": ratio(actual**2, squares_actual, 0.0),
        "precision_n": ratio(predicted**2, squares_predicted, 0.0),
    }


def averages(
    cells: Cells, zero_division: float = math.nan, over: BoolArray | None = None
) -> dict[str, tuple[float, FloatArray]]:
    """Accuracy and the averages over classes, each with its influence value per cell.

    Parameters
    ----------
    cells : Cells
    zero_division : float, default NaN
        As in :func:`class_metrics`; NaN is passed over.
    over : ndarray of shape (K,), bool, optional
        The classes that averages are taken over; by default all. Weights are the shares among them.

    Returns
    -------
    dict of name to (value, influence of shape (C,))
        accuracy, recall_macro, precision_macro, f1_macro (mean of F1), f1_of_macro_means (harmonic mean of
        macro recall and macro precision, never below f1_macro), and the averages weighted by support.

    Notes
    -----
    Both macro F1 are in use: the mean of F1 is the usual one; Table 3 of Markoulidakis et al. (2021) defines
    the other. Their names keep them apart.
    """
    n = cells.total
    kept = np.ones(cells.size, dtype=np.bool_) if over is None else over
    hits, actual, predicted = _margins(cells)
    t, q = actual / n, predicted / n
    per_class = {name: np.where(kept, values, math.nan) for name, values in class_metrics(cells, zero_division).items()}
    recall, precision, f1 = per_class["recall"], per_class["precision"], per_class["f1"]
    i, j, hit = cells.actual, cells.predicted, cells.hit.astype(np.float64)
    t_i, q_j, both = t[i], q[j], t + q

    def f1_terms(scale: FloatArray) -> FloatArray:
        share = np.nan_to_num(scale * f1) / np.where(both > 0, both, 1)
        return 2 * hit * scale[i] / both[i] - share[i] - share[j]

    accuracy = float(hits.sum() / n)
    out = {"accuracy": (accuracy, hit - accuracy)}
    out["recall_macro"] = _mean(recall), kept[i] * (hit - np.nan_to_num(recall[i])) / t_i / _defined(recall)
    out["precision_macro"] = _mean(precision), kept[j] * (hit - np.nan_to_num(precision[j])) / q_j / _defined(precision)
    out["f1_macro"] = _mean(f1), f1_terms(kept.astype(np.float64)) / _defined(f1)
    out["f1_of_macro_means"] = _harmonic(out["recall_macro"], out["precision_macro"])
    weight = np.where(np.isnan(precision), 0.0, t)
    known = np.nan_to_num(precision)
    out["precision_weighted"] = _weighted(weight, known, (weight[i] > 0), i, weight[j] / q_j * (hit - known[j]))
    own = np.where(kept, t, 0.0)
    known = np.nan_to_num(recall)
    out["recall_weighted"] = _weighted(own, known, kept[i], i, kept[i] * (hit - known[i]))
    if over is None:
        out["recall_weighted"] = out["accuracy"]  # the same number, by definition
    out["f1_weighted"] = _weighted(own, np.nan_to_num(f1), kept[i], i, f1_terms(own))
    return out


def micro_averages(cells: Cells, over: BoolArray) -> dict[str, tuple[float, FloatArray, float]]:
    """Precision, recall and F1 of some classes together, each with its influence per cell and its denominator.

    Returns
    -------
    dict of name to (value, influence of shape (C,), effective denominator)
        precision_micro ``sum C_ii / sum predicted``, recall_micro ``sum C_ii / sum actual``, f1_micro
        ``2 sum C_ii / (sum actual + sum predicted)``, sums over the classes in ``over``.
    """
    is_actual, is_predicted = over[cells.actual].astype(np.float64), over[cells.predicted].astype(np.float64)
    hit = is_actual * cells.hit
    parts = {
        "precision_micro": (hit, is_predicted),
        "recall_micro": (hit, is_actual),
        "f1_micro": (2 * hit, is_actual + is_predicted),
    }
    out = {}
    for name, (above, below) in parts.items():
        base = float(cells.weight @ below)
        value = float(cells.weight @ above) / base if base else math.nan
        influence = (above - value * below) * (cells.total / base if base else math.nan)
        out[name] = value, influence, cells.effective(below)
    return out


def table_metrics(cells: Cells, over: BoolArray | None = None) -> dict[str, tuple[float, FloatArray]]:
    """Every metric of a whole table by its name, each with its influence value per cell.

    ``<average>_zero`` counts undefined classes as 0, as scikit-learn does by default; the plain averages pass them
    over. Where averages are ``over`` some of the classes, the agreement beyond chance (kappa, Matthews) is left out:
    the cell in which neither side names one of them is always empty.
    """
    values = averages(cells, over=over)
    values["balanced_accuracy"] = values["recall_macro"]
    counted = averages(cells, 0.0, over)
    values |= {f"{name}_zero": counted[name] for name in ZERO_COUNTED}
    if over is None:
        values["cohen_kappa"] = cohen_kappa(cells)
        values["cohen_kappa_linear"] = cohen_kappa(cells, "linear")
        values["cohen_kappa_quadratic"] = cohen_kappa(cells, "quadratic")
        values["matthews_corrcoef"] = matthews_corrcoef(cells)
    return values


def span_metrics(cells: Cells, over: BoolArray) -> dict[str, tuple[float, FloatArray, float]]:
    """Micro and macro averages over the labels of spans: (value, influence per cell, effective denominator).

    ``over`` are the labels; the class that stands for no span is not among them. With spans paired by their extent,
    the micro averages, F1 and the ``_zero`` forms are those of seqeval.
    """
    out = micro_averages(cells, over)
    plain, counted = averages(cells, over=over), averages(cells, 0.0, over)
    everyone = cells.effective(np.ones(len(cells.weight)))
    for name in ("precision_macro", "recall_macro", "f1_macro"):
        out[name] = *plain[name], everyone
    for name in ("precision_macro", "recall_macro"):
        out[f"{name}_zero"] = *counted[name], everyone
    return out


def passed_over(name: str, cells: Cells, over: BoolArray | None = None) -> IntArray:
    """The classes that have samples and that an average leaves out because they are never predicted.

    Parameters
    ----------
    name : str
        The metric without its section, such as ``"precision_macro"``.
    """
    if name not in PASSING_OVER:
        return np.zeros(0, dtype=np.int64)
    _, actual, predicted = _margins(cells)
    left_out = (actual > 0) & (predicted == 0) & (True if over is None else over)
    return np.asarray(np.flatnonzero(left_out), dtype=np.int64)


def cohen_kappa(cells: Cells, weights: str | None = None) -> tuple[float, FloatArray]:
    """Cohen's kappa and its influence per cell.

    Parameters
    ----------
    weights : None, "linear" or "quadratic"
        Disagreement weights by the distance of the classes in label order.

    Notes
    -----
    0 is chance, not the minimum; -p_e/(1-p_e) is. Undefined (NaN) where everything is of one class.
    """
    n = cells.total
    t, q = cells.by_actual(cells.weight) / n, cells.by_predicted(cells.weight) / n
    i, j = cells.actual, cells.predicted
    if weights is None:
        agree = (i == j).astype(np.float64)
        p_o, p_e = float(cells.weight @ agree) / n, float(t @ q)
        if not p_e < 1:
            return math.nan, np.full(len(i), math.nan)
        value = (p_o - p_e) / (1 - p_e)
        influence = ((agree - p_o) * (1 - p_e) - (1 - p_o) * (q[i] + t[j] - 2 * p_e)) / (1 - p_e) ** 2
        return value, influence
    if weights not in ("linear", "quadratic"):
        raise ValueError(f"weights must be None, 'linear' or 'quadratic', got {weights!r}")
    classes = np.arange(cells.size)
    w = np.abs(classes[:, None] - classes[None, :]) / (cells.size - 1.0)
    w = w if weights == "linear" else w**2
    w_q, t_w = w @ q, t @ w
    q_o, q_e = float(cells.weight @ w[i, j]) / n, float(t @ w_q)
    if not q_e > 0:
        return math.nan, np.full(len(i), math.nan)
    return 1 - q_o / q_e, -(w[i, j] - q_o) / q_e + q_o / q_e**2 * (w_q[i] + t_w[j] - 2 * q_e)


def matthews_corrcoef(cells: Cells) -> tuple[float, FloatArray]:
    """Matthews' correlation for K classes (Gorodkin's R_K) and its influence per cell.

    For two classes it is the Pearson correlation of the two indicators (Gubbels 2023, appendix A with its
    missing square root put in). In a reduced matrix it is the correlation of the *groups*: a mismatch counts as
    agreement, so relaxed, strict and hybrid grouping give one value. The numerator of equation 28 in
    Markoulidakis et al. (2021) lacks TP x IMN. Undefined (NaN) where actual or predicted are of one class.
    """
    n = cells.total
    t, q = cells.by_actual(cells.weight) / n, cells.by_predicted(cells.weight) / n
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


def _margins(cells: Cells) -> tuple[FloatArray, FloatArray, FloatArray]:
    return (
        cells.by_actual(cells.weight * cells.hit),
        cells.by_actual(cells.weight),
        cells.by_predicted(cells.weight),
    )


def _weighted(
    weight: FloatArray, values: FloatArray, inside: BoolArray, of: IntArray, terms: FloatArray
) -> tuple[float, FloatArray]:
    """Mean of a class metric by weights that are shares of samples; ``terms`` are what its own values add."""
    covered = float(weight.sum())
    value = float(weight @ values) / covered if covered > 0 else math.nan
    return value, (inside * (values[of] - value) + terms) / (covered or 1.0)


def _defined(values: FloatArray) -> int:
    return max(1, int(np.count_nonzero(~np.isnan(values))))


def _mean(values: FloatArray) -> float:
    return float(np.nanmean(values)) if not np.isnan(values).all() else math.nan


def _harmonic(first: tuple[float, FloatArray], second: tuple[float, FloatArray]) -> tuple[float, FloatArray]:
    (a, psi_a), (b, psi_b) = first, second
    if not a + b > 0:
        return math.nan, np.full(len(psi_a), math.nan)
    return 2 * a * b / (a + b), 2 * (b * b * psi_a + a * a * psi_b) / (a + b) ** 2
