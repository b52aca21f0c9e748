"""Section 1.3: three classes, one-vs-rest and one-vs-one."""

from __future__ import annotations

from itertools import permutations

import numpy as np
from scipy.optimize import brentq

from cmtrack import Evaluation, Grouping, evaluate
from correlation.data import FloatArray, IntArray
from correlation.published import TABLE_1_7_OVO

METRICS = {
    "sPCC-OvR": "spcc/ovr_fisher",
    "sPCC-OvO": "spcc/ovo_fisher",
    "Accuracy": "multiclass/accuracy",
    "BA": "multiclass/balanced_accuracy",
    "MCC": "multiclass/matthews_corrcoef",
}
CLASSES = (1, 2, 3)
AUROC = "binary/roc_auc"


def numbers(evaluation: Evaluation, y: IntArray, p: FloatArray) -> dict[str, float]:
    """The seven rows of Table 1.6. An MCC without predictions of two classes is NaN, not 0."""
    values = {row: evaluation.metrics[name] for row, name in METRICS.items()}
    return values | {"AUROC-OvR": rest_area(y, p), "AUROC-OvO": pair_area(y, p)}


def rest_area(y: IntArray, p: FloatArray) -> float:
    """Mean over the classes of the area of one against the rest."""
    areas = []
    for label in CLASSES:
        groups = {"rest": [c for c in CLASSES if c != label], "one": [label]}
        step = Grouping(groups, positive="one")
        areas.append(
            evaluate(y, y_prob=p, labels=CLASSES, grouping=step, sections=["binary"]).metrics[AUROC]
        )
    return float(np.mean(areas))


def pair_area(y: IntArray, p: FloatArray) -> float:
    """Mean over the ordered pairs of the area of one class against another, by the score of the first."""
    areas = []
    for one, other in permutations(CLASSES, 2):
        rows = np.isin(y, (one, other))
        pair = evaluate((y[rows] == one).astype(int), y_prob=p[rows, one - 1], sections=["binary"])
        areas.append(pair.metrics[AUROC])
    return float(np.mean(areas))


def fisher_mean(correlations: FloatArray) -> float:
    """Of published correlations, for which there are no scores; of scores it is ``spcc/ovr_fisher``."""
    return float(np.tanh(np.arctanh(correlations).mean()))


def needed_entry(wanted: float, place: tuple[int, int] = (2, 0)) -> float:
    """What one entry of Table 1.7's one-vs-one matrix would have to be for a Fisher's average of `wanted`."""
    matrix = np.array(TABLE_1_7_OVO)
    others = ~np.eye(len(matrix), dtype=bool)

    def gap(entry: float) -> float:
        changed = matrix.copy()
        changed[place] = entry
        return fisher_mean(changed[others]) - wanted

    return float(brentq(gap, -0.999, 0.999))


def few_hits(second: int, sizes: tuple[int, ...] = (5000, 1000, 200)) -> Evaluation:
    """Everything is called class 1, but for some rows of class 2 that are called 2."""
    y, called = [1, 2, 2, 3], [1, 2, 1, 1]
    weights = [sizes[0], second, sizes[1] - second, sizes[2]]
    return evaluate(y, called, labels=CLASSES, sample_weight=weights)
