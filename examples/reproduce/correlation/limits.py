"""What the best possible machine reaches, and what labels a published row stands for."""

from __future__ import annotations

import numpy as np

from cmtrack import Evaluation, evaluate
from correlation.data import SIZES, non_normal_densities


def from_counts(tp: float, fn: float, fp: float, tn: float) -> Evaluation:
    """The evaluation of a 2x2 table."""
    return evaluate([1, 1, 0, 0], [1, 0, 1, 0], labels=[0, 1], sample_weight=[tp, fn, fp, tn])


def best_possible(*, cells: int = 4000, thresholds: int = 200) -> dict[str, float]:
    """The largest value of each metric that any machine can expect on the non-normal data.

    The best score is the probability of the positive class given x: its sPCC, its area under the ROC curve and, cut
    at 1/2, its accuracy cannot be exceeded by any function of x. The largest balanced accuracy and MCC are at some
    other cut of it. Expectations are sums over fine cells of x.
    """
    edges = np.linspace(-4.0, 8.0, cells + 1)
    x, width = (edges[1:] + edges[:-1]) / 2, edges[1] - edges[0]
    negative, positive = (
        size * width * f for size, f in zip(SIZES, non_normal_densities(x), strict=True)
    )
    score = positive / (negative + positive)
    y = np.repeat([0, 1], len(x))
    whole = evaluate(
        y, y_prob=np.tile(score, 2), sample_weight=np.concatenate((negative, positive))
    )
    cuts = [
        _cut(score >= t, negative, positive).metrics for t in np.linspace(0.02, 0.98, thresholds)
    ]
    return {
        "sPCC": whole.metrics["spcc/binary"],
        "Accuracy": whole.metrics["multiclass/accuracy"],
        "BA": max(m["multiclass/balanced_accuracy"] for m in cuts),
        "MCC": max(m["multiclass/matthews_corrcoef"] for m in cuts),
        "AUROC": whole.metrics["binary/roc_auc"],
    }


def _cut(called: np.ndarray, negative: np.ndarray, positive: np.ndarray) -> Evaluation:
    tp, fp = float(positive[called].sum()), float(negative[called].sum())
    return from_counts(tp, float(positive.sum()) - tp, fp, float(negative.sum()) - fp)


def table_behind(
    accuracy: float, balanced: float, sizes: tuple[int, int] = SIZES
) -> tuple[int, int, int, int]:
    """(TP, FN, FP, TN) that an accuracy and a balanced accuracy of known class sizes leave.

    Two equations for the two error rates: n acc = N tnr + P tpr, and 2 ba = tnr + tpr.
    """
    negatives, positives = sizes
    tnr = ((negatives + positives) * accuracy - 2 * positives * balanced) / (negatives - positives)
    tn, tp = round(negatives * tnr), round(positives * (2 * balanced - tnr))
    return tp, positives - tp, negatives - tn, tn
