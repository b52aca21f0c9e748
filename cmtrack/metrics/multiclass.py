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
from cmtrack.statistics.inputs import FloatArray


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


def averages(cells: Cells, zero_division: float = math.nan) -> dict[str, tuple[float, FloatArray]]:
    """Accuracy and the averages over classes, each with its influence value per cell.

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
    hits, actual, predicted = _margins(cells)
    t, q = actual / n, predicted / n
    per_class = class_metrics(cells, zero_division)
    recall, precision, f1 = per_class["recall"], per_class["precision"], per_class["f1"]
    i, j, hit = cells.actual, cells.predicted, cells.hit.astype(np.float64)
    t_i, q_j, both = t[i], q[j], t + q

    def f1_terms(scale: FloatArray) -> FloatArray:
        share = np.nan_to_num(scale * f1) / np.where(both > 0, both, 1)
        return 2 * hit * scale[i] / both[i] - share[i] - share[j]

    ones = np.ones(cells.size)
    accuracy = float(hits.sum() / n)
    out = {"accuracy": (accuracy, hit - accuracy)}
    out["recall_macro"] = _mean(recall), (hit - np.nan_to_num(recall[i])) / t_i / _defined(recall)
    out["precision_macro"] = _mean(precision), (hit - np.nan_to_num(precision[j])) / q_j / _defined(precision)
    out["f1_macro"] = _mean(f1), f1_terms(ones) / _defined(f1)
    out["f1_of_macro_means"] = _harmonic(out["recall_macro"], out["precision_macro"])
    weight = np.where(np.isnan(precision), 0.0, t)
    covered = weight.sum()
    known = np.nan_to_num(precision)
    value = float(weight @ known / covered) if covered > 0 else math.nan
    influence = (weight[i] > 0) * (known[i] - value) + weight[j] / q_j * (hit - known[j])
    out["precision_weighted"] = value, influence / (covered or 1.0)
    out["recall_weighted"] = out["accuracy"]  # the same number, by definition
    value = float(t @ np.nan_to_num(f1))
    out["f1_weighted"] = value, np.nan_to_num(f1)[i] - value + f1_terms(t)
    return out


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


def _defined(values: FloatArray) -> int:
    return max(1, int(np.count_nonzero(~np.isnan(values))))


def _mean(values: FloatArray) -> float:
    return float(np.nanmean(values)) if not np.isnan(values).all() else math.nan


def _harmonic(first: tuple[float, FloatArray], second: tuple[float, FloatArray]) -> tuple[float, FloatArray]:
    (a, psi_a), (b, psi_b) = first, second
    if not a + b > 0:
        return math.nan, np.full(len(psi_a), math.nan)
    return 2 * a * b / (a + b), 2 * (b * b * psi_a + a * a * psi_b) / (a + b) ** 2
