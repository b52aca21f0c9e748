"""The source's equations with counter-examples to those that cannot be right as printed, and checks of those that are.

"As printed" is computed here; what is right is always the product's number.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pandas as pd

from cmtrack import ConfusionMatrix, Evaluation, Grouping, ReducedConfusionMatrix, evaluate
from cmtrack.statistics import BinaryCounts
from nps import published
from nps.reductions import RECOMMEND, expanded

EXAMPLE = np.array([[5, 2, 1, 0], [1, 6, 0, 2], [1, 0, 7, 3], [0, 2, 1, 9]])
"""Four classes, of which 0 and 1 are the positive group; mismatches in both groups."""
PAIRED = Grouping(
    {"positive": [0, 1], "negative": [2, 3]}, mode="strict", positive="positive", name="paired"
)
FIGURE_3 = {
    "relaxed (a)": "relaxed",
    "strict (b)": "strict",
    "hybrid (c)": [(1, 4), (2, 1), (4, 2)],
}
"""Accepted pairs of Figure 3 for a group of the classes 1, 2, 3 ("...") and 4 (m); equal pairs are always hits."""
RANDOM_CASES = 2000
SAME = 1e-9


class Checked(NamedTuple):
    """A printed equation and a right one on the same numbers."""

    equation: str
    problem: str
    on: str
    printed: float
    right: float


def binary_of(evaluation: Evaluation) -> BinaryCounts:
    """The six counts, which must be there.

    Raises
    ------
    ValueError
        If there are not two groups.
    """
    if evaluation.binary is None:
        raise ValueError("the evaluation has no two groups")
    return evaluation.binary


def samples(counts: np.ndarray, grouping: Grouping) -> Evaluation:
    """A matrix of the classes 0, 1, ... as samples, evaluated."""
    actual, predicted = (index.ravel() for index in np.indices(counts.shape))
    times = counts.ravel()
    return evaluate(
        np.repeat(actual, times),
        np.repeat(predicted, times),
        labels=range(len(counts)),
        grouping=grouping,
    )


def printed_28(c: BinaryCounts) -> float:
    """Matthews' correlation as equation 28 is printed: the numerator lacks TP IMN."""
    top = c.imp * c.imn + (c.tp + c.imp) * c.tn - c.fn * c.fp
    sides = c.actual_positives * c.predicted_positives * c.predicted_negatives * c.actual_negatives
    return top / math.sqrt(sides) if sides else math.nan


def printed_a10(c: BinaryCounts) -> float:
    """Equation A10 as printed: also TP + FN + IMN instead of TP + FN + IMP."""
    top = c.imp * c.imn + (c.tp + c.imp) * c.tn - c.fn * c.fp
    sides = (
        (c.tp + c.fn + c.imn) * c.predicted_positives * c.predicted_negatives * c.actual_negatives
    )
    return top / math.sqrt(sides) if sides else math.nan


def checked() -> list[Checked]:
    """Equations that give other numbers as printed."""
    seven, example = expanded(published.FIGURE_7), samples(EXAMPLE, PAIRED)
    c, e = binary_of(seven), binary_of(example)
    inside = seven.confusion_matrix.counts[1:, 1:]
    mcc, mcc_example = (x.metrics["binary/matthews_corrcoef"] for x in (seven, example))
    figure, table = "Figure 7", "the 4 x 4 example"
    subset = seven.confusion_matrix.counts[1:]
    hits = float(np.trace(inside))
    step = seven.reduced[RECOMMEND.name]
    return [
        Checked(
            "eq. 19",
            "TP sums the pairs that are not in G_TP",
            figure,
            float(inside.sum() - hits),
            c.tp,
        ),
        Checked("eq. 20", "IM sums the pairs that are in G_TP", figure, hits, c.imp),
        Checked(
            "eq. 27",
            "predicted negatives with IMP, not IMN",
            figure,
            c.tn + c.fn + c.imp,
            c.predicted_negatives,
        ),
        Checked("eq. 28", "the numerator lacks TP IMN", table, printed_28(e), mcc_example),
        Checked("eq. 28", "the same; equal where IMN = 0", figure, printed_28(c), mcc),
        Checked(
            "eq. A10",
            "as eq. 28, and IMN for IMP below the line",
            table,
            printed_a10(e),
            mcc_example,
        ),
        Checked("eq. A10", "the same", figure, printed_a10(c), mcc),
        Checked(
            "Table 3, micro recall",
            "divides by TP + FP; it is TP + FN (of the classes passive and promoter)",
            figure,
            hits / float(seven.confusion_matrix.counts[:, 1:].sum()),
            hits / float(subset.sum()),
        ),
        Checked(
            "Figure 4, total",
            "the printed layout holds every mismatch twice",
            figure,
            float(step.to_frame().to_numpy().sum()),
            step.total,
        ),
    ]


def readings() -> pd.DataFrame:
    """Formulas of Table 2 that "still apply" to Table 5, but have two readings once the negatives have mismatches."""
    evaluation = samples(EXAMPLE, PAIRED)
    m, c = evaluation.metrics, binary_of(evaluation)
    tpr, tnr, ppv, npv = (
        m[f"binary/{name}"] for name in ("recall", "specificity", "precision", "npv")
    )
    roots = math.sqrt(tpr * (1 - tnr)) + tnr - 1
    rows = {
        "Informedness": ("TPR - FPR", m["binary/informedness"], "TPR + TNR - 1", tpr + tnr - 1),
        "Markedness": ("PPV - FOR", m["binary/markedness"], "PPV + NPV - 1", ppv + npv - 1),
        "Threat score": (
            "TP / (actual or predicted positives)",
            m["binary/threat_score"],
            "TP / (TP + FN + FP)",
            c.tp / (c.tp + c.fn + c.fp),
        ),
        "Prevalence threshold": (
            "with FPR",
            m["binary/prevalence_threshold"],
            "with 1 - TNR",
            roots / (tpr + tnr - 1),
        ),
    }
    names = ["ours", "value", "other reading", "its value"]
    return pd.DataFrame.from_dict(rows, orient="index", columns=names).rename_axis("metric")


def groupings() -> pd.DataFrame:
    """Figure 3: how many pairs of a group of four classes are hits, counted on a matrix of ones."""
    ones = ConfusionMatrix(np.ones((5, 5), dtype=np.int64), (1, 2, 3, 4, 5))
    rows = {}
    for name, mode in FIGURE_3.items():
        reduced = ones.reduce(Grouping({"G": (1, 2, 3, 4), "rest": [5]}, {"G": mode}))
        rows[name] = {"TP": int(reduced.counts[0, 0]), "IM": int(reduced.mismatches[0])}
    return pd.DataFrame(rows).T.rename_axis("grouping of four classes")


class Held(NamedTuple):
    """A statement, and in how many of the random cases it holds."""

    statement: str
    cases: int
    holds: int


def held(seed: int, cases: int = RANDOM_CASES) -> tuple[list[Held], float]:
    """Statements on random 5 x 5 matrices, and the largest gap between equation 28 as printed and the correlation.

    Three groups of sizes 2, 2 and 1, then two; the group's correlation as printed and as it must be.
    """
    rng = np.random.default_rng(seed)
    first = {
        mode: Grouping({"a": [0, 1], "b": [2, 3], "c": [4]}, mode) for mode in ("strict", "relaxed")
    }
    hybrid = Grouping(
        {"a": [0, 1], "b": [2, 3], "c": [4]}, {"a": [(0, 1)], "b": [(3, 2)], "c": "strict"}
    )
    then = {mode: Grouping({"ab": ["a", "b"], "c": ["c"]}, mode, positive="c") for mode in first}
    direct = {mode: Grouping({"ab": [0, 1, 2, 3], "c": [4]}, mode, positive="c") for mode in first}
    two = Grouping({"p": [0, 1], "n": [2, 3, 4]}, "strict", positive="p")
    union, mixed, less, same, accuracy, printed, gap = 0, 0, 0, 0, 0, 0, 0.0
    for _ in range(cases):
        matrix = ConfusionMatrix(rng.integers(0, 12, (5, 5)), tuple(range(5)))
        union += all(
            _equal(matrix.reduce(first[m].then(then[m])), matrix.reduce(direct[m])) for m in first
        )
        chain = matrix.reduce(first["relaxed"].then(then["strict"]))
        mixed += not _equal(chain, matrix.reduce(direct["strict"]))
        strict, hits, relaxed = (
            matrix.reduce(g) for g in (first["strict"], hybrid, first["relaxed"])
        )
        less += bool((strict.counts.diagonal() <= hits.counts.diagonal()).all()) and bool(
            (hits.counts.diagonal() <= relaxed.counts.diagonal()).all()
        )
        accuracy += bool(strict.counts.trace() == matrix.counts.trace())
        c = matrix.reduce(two).as_binary()
        right = _correlation(c)
        difference = abs(printed_28(c) - right)
        printed += difference > SAME
        gap = max(gap, difference)
        same += abs(right - _correlation(matrix.reduce(_relaxed(two)).as_binary())) <= SAME
    return [
        Held("eq. 21: two strict or two relaxed steps equal one", cases, union),
        Held(
            "after eq. 21: a relaxed step, then a strict one, differ from one strict step",
            cases,
            mixed,
        ),
        Held("eq. 22, 23: strict has the fewest hits, relaxed the most", cases, less),
        Held("section 4.2: strict grouping keeps the accuracy", cases, accuracy),
        Held(
            "the correlation is the same for strict and relaxed grouping (not said in the source)",
            cases,
            same,
        ),
        Held("eq. 28 as printed differs from the correlation", cases, printed),
    ], gap


def limits(evaluation: Evaluation) -> pd.DataFrame:
    """Equations 37 to 42: the two ends of the sweep, where positive is what scores at least the threshold."""
    curve = evaluation.roc
    if curve is None:
        raise ValueError("the evaluation has no probabilities")
    ends = {"θ above all scores": 0, "θ at or below all scores": -1}
    frame = pd.DataFrame(
        {name: {k: getattr(curve, k)[i] for k in _ENDS} for name, i in ends.items()}
    ).T
    return frame.astype(dict.fromkeys(_ENDS[:6], int)).rename_axis("threshold")


_ENDS = ("tp", "fn", "imp", "fp", "tn", "imn", "tpr", "fpr")


def _relaxed(grouping: Grouping) -> Grouping:
    return Grouping(grouping.groups, "relaxed", positive=grouping.positive)


def _correlation(c: BinaryCounts) -> float:
    """Of the two group indicators, as a plain problem of two classes."""
    n, both = c.total, c.tp + c.imp
    a, p = c.actual_positives / n, c.predicted_positives / n
    spread = math.sqrt(a * (1 - a) * p * (1 - p))
    return (both / n - a * p) / spread if spread else math.nan


def _equal(first: ReducedConfusionMatrix, second: ReducedConfusionMatrix) -> bool:
    return np.array_equal(first.counts, second.counts) and np.array_equal(
        first.mismatches, second.mismatches
    )
