"""Remarks on input that is probably not what its author meant: swapped classes, saturated scores, padding.

They warn of mistakes that no check can refuse, since each may be what was meant. All are tests or counts of what an
evaluation has in any case.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import bdtr, ndtri

from cmtrack.grouping import Label
from cmtrack.names import quoted, some_of
from cmtrack.statistics import ConfusionMatrix
from cmtrack.statistics.counting import Counts
from cmtrack.statistics.inputs import BoolArray, FloatArray, IntArray, listed
from cmtrack.statistics.probabilities import Probabilities
from cmtrack.statistics.scores import ScoreCounts

ALPHA = 0.001
"""Error of a test of swapped classes. A false alarm costs more than a missed one: input is rarely mixed up."""
_MOST_ROWS = 10_000
"""Rows that are looked at for columns in another order."""
PADDING = -100
"""PyTorch's and Hugging Face's mark for rows that a loss leaves out (``ignore_index``)."""
_NUMBERS = re.compile(r"(\d+)")


class MixedUpClassesWarning(UserWarning):
    """Predictions or probabilities seem to belong to other classes than those they are given for."""

    evaluation: Any = None


def swapped_classes(matrix: ConfusionMatrix, squares: Counts | None) -> str:
    """The remark on classes whose predictions mean each other; else empty.

    It takes the best assignment of predicted to actual classes, and is made if that moves classes and the moved
    predictions clearly mean other classes: the cell of each is more than half of its row and of its column, and
    together they are right for the other classes more often than for their own by an exact sign test, adjusted for all
    pairs of classes (Bonferroni). A model that merely prefers one class moves only one of two, and is passed over.

    ``squares``: sums of squared weights, shape (K, K), where weights are fractions: rows count by Kish's number.
    """
    counts = np.asarray(matrix.counts, dtype=np.float64)
    total = float(counts.sum())
    if total <= 0 or len(counts) < 2:
        return ""
    from scipy.optimize import linear_sum_assignment

    meant, called = linear_sum_assignment(counts, maximize=True)
    moved = [(int(i), int(j)) for i, j in zip(meant, called, strict=True) if i != j]
    if not moved:
        return ""
    rows_of = counts.sum(axis=1)
    columns_of = counts.sum(axis=0)
    if any(2 * counts[i, j] <= max(rows_of[i], columns_of[j]) or counts[i, j] <= counts[j, j] for i, j in moved):
        return ""
    rows = 1.0 if squares is None else total / float(squares.sum())
    other = rows * sum(counts[i, j] for i, j in moved)
    own = rows * sum(counts[j, j] for _, j in moved)
    if not _is_clearly_more(other, own, len(counts) * (len(counts) - 1)):
        return ""
    now = 100 * float(np.trace(counts)) / total
    then = 100 * float(counts[meant, called].sum()) / total
    names = [f"{quoted(matrix.labels[j])} meant {quoted(matrix.labels[i])}" for i, j in sorted(moved, key=_second)]
    binary = "; one column of y_prob is of the positive class" if len(counts) == 2 else ""
    return (
        f"the accuracy is {now:.3g} %, and would be {then:.3g} % if the prediction {_list(names)}: labels= must have "
        f"the order of the columns of y_prob (model.classes_), and y_pred the same codes as y_true{binary}"
    )


def _second(pair: tuple[int, int]) -> int:
    return pair[1]


def _is_clearly_more(more: float, fewer: float, tests: int) -> bool:
    """True if the exact one-sided sign test of two counts rejects that they are equally likely."""
    total = int(more + fewer)  # with weights these are effective numbers, which need not be whole
    if total < 1 or more <= fewer:
        return False
    return float(bdtr(min(int(fewer), total), total, 0.5)) <= ALPHA / tests


def reversed_columns(actual: IntArray, predicted: IntArray, probabilities: Probabilities) -> str:
    """The remark on probabilities whose most probable class is rarely the predicted one, which is right; else empty.

    ``actual``, ``predicted``, shape (n,): codes of the classes.
    ``probabilities``: of the same rows; of many rows some are looked at.

    It is made only if they differ in more than half of the rows and an exact sign test shows that the predicted class
    is right more often there. A threshold, a prior or a model without skill can also do that. Therefore the scores of
    the classes that another order would move must also be lower in rows of their own class than in others.
    """
    places = np.linspace(0, len(actual) - 1, min(len(actual), _MOST_ROWS)).astype(np.int64)
    scores = probabilities.take(places).array
    probable = scores.argmax(axis=1)
    truth = actual[places]
    answered = predicted[places]
    differ = answered != probable
    if 2 * np.count_nonzero(differ) <= len(places):
        return ""
    only_answered = int(np.count_nonzero(differ & (answered == truth)))
    only_probable = int(np.count_nonzero(differ & (probable == truth)))
    if not _is_clearly_more(only_answered, only_probable, 1):
        return ""
    if not _are_reversed(scores, truth, answered, probable):
        return ""
    shares = [100 * float(np.mean(codes == truth)) for codes in (answered, probable)]
    return (
        f"y_pred is right in {shares[0]:.3g} % of the rows, and the most probable class in {shares[1]:.3g} %: the "
        "columns of the probabilities must be in the order of labels= (model.classes_)"
    )


def _are_reversed(scores: FloatArray, truth: IntArray, answered: IntArray, probable: IntArray) -> bool:
    """True if another order of the columns fits the predictions, and each column that it moves is of another class."""
    from scipy.optimize import linear_sum_assignment

    size = scores.shape[1]
    table = np.bincount(answered * size + probable, minlength=size * size).reshape(size, size)
    classes, columns = linear_sum_assignment(table, maximize=True)
    moved = [int(k) for k, column in zip(classes, columns, strict=True) if k != column]
    return bool(moved) and all(_falls(scores[:, k], truth == k) for k in moved)


def _falls(scores: FloatArray, is_own: BoolArray) -> bool:
    """True if scores are lower in some rows than in the others by more than chance, by the test of a correlation."""
    deviations = scores - scores.mean()
    share = is_own - is_own.mean()
    scale = float(np.sqrt((deviations @ deviations) * (share @ share)))
    return scale > 0 and float(deviations @ share) / scale * len(scores) ** 0.5 < float(ndtri(ALPHA))


def columns_in_text_order(labels: Sequence[Label]) -> str:
    """The remark on classes whose names hold numbers, if their order as texts is not that of the numbers; else empty.

    Without ``labels=`` the columns of scores without names are taken in the order of the texts: "10" before "2".
    """
    if not all(isinstance(label, str) for label in labels):
        return ""
    by_number = sorted(labels, key=_by_number)  # type: ignore[arg-type]
    if by_number == list(labels):
        return ""
    return (
        f"labels= is not given: the columns of the scores are taken in the order of the labels as texts, "
        f"{listed(labels, 8)}; by their numbers it would be {listed(by_number, 8)}"
    )


def _by_number(label: str) -> list[tuple[bool, int, str]]:
    parts = _NUMBERS.split(label)
    return [(part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in parts if part]


def saturated_scores(scores: ScoreCounts) -> str:
    """The remark on scores of exactly 0 or 1 that most positives and most negatives share; else empty.

    A sigmoid in single precision is exactly 1 from a logit of 17 on: what the logits told apart is tied then. A score
    of a tree or of neighbours is a share of few rows: such a model has no other score near that end.
    """
    if not scores.exact or not len(scores.values):
        return ""
    positives, negatives = scores.counts.reshape(2, 2, -1).sum(axis=1)
    for place, end in ((0, 0.0), (-1, 1.0)):
        if scores.values[place] != end:
            continue
        shares = [part[place] / part.sum() if part.sum() else 0.0 for part in (positives, negatives)]
        near = np.abs(np.delete(scores.values, place) - end)
        is_of_a_sigmoid = not len(near) or float(near.min()) < _NEAR_AN_END
        if min(shares) > 0.5 and is_of_a_sigmoid:
            return (
                f"{100 * shares[0]:.3g} % of the positives and {100 * shares[1]:.3g} % of the negatives have the score "
                f"{end:g} exactly, and are tied: if they are rounded probabilities of a network, give its logits to "
                "y_score, or to a hook's logits="
            )
    return ""


_NEAR_AN_END = 1e-4
"""Distance from 0 or 1 of a score that no share of a thousand rows has."""


def padding(matrix: ConfusionMatrix) -> str:
    """The remark on rows of the label that marks rows to be left out; else empty."""
    if PADDING not in matrix.labels:
        return ""
    rows = float(matrix.counts.sum(axis=1)[matrix.labels.index(PADDING)])
    if not rows:
        return ""
    return f"{PADDING} is the usual mark for rows that do not count; here it is a class of {rows:,.6g} rows"


def _list(names: Sequence[str], most: int = 8) -> str:
    if len(names) > most:
        return some_of(names, most)
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)
