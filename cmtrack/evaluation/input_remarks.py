"""Warnings about probable mistakes in the input: swapped classes, saturated scores, padding.

Suspicious input may be intended, so it cannot be rejected with an error. All warnings are based on
tests and counts that every evaluation can compute.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from scipy.special import bdtr, entr, gammaln, ndtri

from cmtrack.digits import short_percent, significant
from cmtrack.grouping import Label
from cmtrack.names import join_names, quoted
from cmtrack.statistics import ConfusionMatrix
from cmtrack.statistics.class_scores import ClassScoreCounts
from cmtrack.statistics.collected import Statistics
from cmtrack.statistics.counting import SparseCounts
from cmtrack.statistics.grid import grid_edges
from cmtrack.statistics.inputs import BoolArray, FloatArray, IntArray, listed
from cmtrack.statistics.probabilities import LEAST_SUM, MOST_SUM, Probabilities
from cmtrack.statistics.scores import ScoreCounts

ALPHA = 0.001
"""Significance level of the tests for swapped classes, low because false alarms are costly."""
_MOST_ROWS = 10_000
"""Largest number of rows in which the order of the columns is checked."""
PADDING = -100
"""The label with which PyTorch and Hugging Face mark rows that a loss ignores."""
_VOID = 255
"""The label with which Pascal VOC and Cityscapes mark pixels that belong to no class."""
_NUMBERS = re.compile(r"(\d+)")


class MixedUpClassesWarning(UserWarning):
    """Warning that predictions or probabilities seem to be assigned to the wrong classes."""


class ScaledProbabilitiesWarning(UserWarning):
    """Warning that rows of probabilities did not sum to 1 and were scaled."""


def input_warnings(statistics: Statistics, remark: str = "") -> list[UserWarning]:
    """Return the warnings about scaled probabilities and about mixed-up classes.

    ``remark``: the warning that the order of the probability columns does not match the
        predictions.
    """
    found: list[UserWarning] = []
    if statistics.scaled_rows:
        found.append(ScaledProbabilitiesWarning(scaled_rows_warning(statistics.scaled_rows)))
    mixed_up = swapped_classes(statistics) or remark
    if mixed_up:
        found.append(MixedUpClassesWarning(mixed_up))
    return found


def warn_of_input(found: Iterable[UserWarning]) -> None:
    """Issue warnings that refer to the line in the user's code that called cmtrack."""
    for one in found:
        warnings.warn(one, stacklevel=3)


def scaled_rows_warning(rows: int) -> str:
    """Return the warning that rows of probabilities were scaled."""
    noun = "row" if rows == 1 else "rows"
    return (
        f"{rows:,} {noun} of probabilities had sums between {LEAST_SUM:g} and {MOST_SUM:g} and "
        "were scaled to sum to 1 (normalize=True scales without this warning, normalize=False "
        "raises an error)"
    )


def swapped_classes(statistics: Statistics) -> str:
    """Return a warning if the predictions of some classes are swapped; else an empty text.

    The function finds the assignment of predicted to actual classes that makes the most rows
    correct; this assignment permutes the classes in cycles. The warning names a cycle if three
    conditions are met:

    - No class in the cycle has more rows in its diagonal cell than in the two cells that the cycle
      assigns to the class.
    - The assigned cells contain more than half of the rows and more than half of the predictions of
      the cycle's classes.
    - An exact sign test shows that the assigned cells contain more rows than the diagonal. A
      Bonferroni correction accounts for all cycles of the same length that could have been found.

    If no individual cycle meets the conditions, all cycles are tested together. A model that merely
    predicts one of two classes too often fills only one of the assigned cells, so there is no
    warning. If the rows have sampling weights, Kish's effective number of rows replaces the number
    of rows.
    """
    labels = statistics.matrix.labels
    tables = statistics.tables
    total = float(tables.sums.sum())
    if total <= 0 or not _has_rivals(SparseCounts.of_array(tables.sums)):
        return ""
    rows = float(tables.map(lambda table: float(table.sum())).effective_size()) / total
    counts = statistics.matrix.counts.astype(np.float64)
    cycles = _cycles(counts)
    moved = [pair for cycle in cycles if _is_mixed_up(counts, cycle, rows) for pair in cycle]
    if not moved:
        moved = [pair for cycle in cycles for pair in cycle]
        if not _is_mixed_up(counts, moved, rows):
            return ""
    gained = sum(counts[i, j] - counts[j, j] for i, j in moved)
    now = 100 * float(np.trace(counts)) / total
    then = now + 100 * float(gained) / total
    named = sorted(((i, j) for i, j in moved if counts[i, j] > 0), key=_second)
    names = [f"{quoted(labels[j])} meant {quoted(labels[i])}" for i, j in named]
    binary = "; a single column of y_prob is for the positive class" if len(counts) == 2 else ""
    return (
        f"the accuracy is {significant(now)}%, and would be {significant(then)}% "
        f"if the prediction {join_names(names, 8)}: "
        "labels= must have the order of the columns of y_prob (model.classes_), "
        f"and y_pred the same codes as y_true{binary}"
    )


def _has_rivals(table: SparseCounts) -> bool:
    """Return True if two off-diagonal cells have at least the counts of their diagonal cells."""
    own = table.diagonal()
    actual, predicted = np.divmod(table.places, len(own))
    is_rival = (table.sums >= own[actual]) & (table.sums >= own[predicted])
    return int(np.count_nonzero(is_rival & (actual != predicted))) > 1


def _cycles(counts: FloatArray) -> list[list[tuple[int, int]]]:
    """Return the cycles of the best assignment; each is a list of (actual, predicted) classes."""
    from scipy.optimize import linear_sum_assignment

    predicted_of = linear_sum_assignment(counts, maximize=True)[1].tolist()
    seen = {k for k, predicted in enumerate(predicted_of) if k == predicted}
    cycles = []
    for start in range(len(predicted_of)):
        cycle = []
        actual = start
        while actual not in seen:
            seen.add(actual)
            cycle.append((actual, predicted_of[actual]))
            actual = predicted_of[actual]
        if cycle:
            cycles.append(cycle)
    return cycles


def _is_mixed_up(counts: FloatArray, pairs: Sequence[tuple[int, int]], rows: float) -> bool:
    """Return True if the predictions of a cycle are significantly mixed up.

    ``pairs``: the pairs of an actual and a predicted class in the cycle.
    ``rows``: the factor that converts a count into an effective number of rows.
    """
    actual = [i for i, _ in pairs]
    predicted = [j for _, j in pairs]
    other = counts[actual, predicted]
    own = np.diagonal(counts)
    if np.count_nonzero(other) < 2 or (other < own[actual]).any() or (other < own[predicted]).any():
        return False
    if 2 * other.sum() <= max(counts[actual].sum(), counts[:, predicted].sum()):
        return False
    # Number of ordered choices of m of the K classes: K! / (K - m)!
    log_choices = float(gammaln(len(counts) + 1) - gammaln(len(counts) - len(pairs) + 1))
    return _is_clearly_more(rows * float(other.sum()), rows * float(own[actual].sum()), log_choices)


def _second(pair: tuple[int, int]) -> int:
    return pair[1]


def _is_clearly_more(more: float, fewer: float, log_tests: float) -> bool:
    """Return True if an exact one-sided sign test shows that one count is larger than the other.

    ``log_tests``: the logarithm of the number of tests, for the Bonferroni correction.
    """
    total = int(more + fewer)  # with weights, effective numbers are not whole
    least = min(int(fewer), total)
    if total < 1 or more <= fewer:
        return False
    probability = float(bdtr(least, total, 0.5))
    if probability > 0:
        log_probability = math.log(probability)
    else:  # p is below the smallest float, so use the upper bound of Chernoff (1952)
        share = least / total
        log_probability = total * (float(entr(share) + entr(1 - share)) - math.log(2))
    return log_probability + log_tests <= math.log(ALPHA)


def reversed_columns(actual: IntArray, predicted: IntArray, probabilities: Probabilities) -> str:
    """Return a warning if the probability columns are in the wrong order; else an empty text.

    ``actual``, ``predicted``, shape (n,): codes of the classes.
    ``probabilities``: the predicted probabilities of the same rows. If there are many rows, only
    some of them are checked.

    The warning is issued only if three findings coincide. First, the predicted and the most
    probable class differ in more than half of the rows. Second, an exact sign test shows that in
    these rows the predicted class is correct more often than the most probable class. The first two
    findings can also be caused by a threshold, a prior or a model without skill. Therefore, as the
    third finding, a different order of the columns must match the actual classes better.
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
    if not _is_clearly_more(only_answered, only_probable, 0.0):
        return ""
    if not _are_reversed(scores, truth, answered, probable):
        return ""
    predicted_share = short_percent(float(np.mean(answered == truth)))
    probable_share = short_percent(float(np.mean(probable == truth)))
    return (
        f"y_pred is correct in {predicted_share} of the rows, "
        f"and the most probable class in {probable_share}: "
        "the columns of the probabilities must be in the order of labels= (model.classes_)"
    )


def _are_reversed(
    scores: FloatArray, truth: IntArray, answered: IntArray, probable: IntArray
) -> bool:
    """Return True if the column order that matches the predictions also matches the labels better.

    For every class whose column changes, a normal test compares two correlations with the class:
    the correlation of the column that the new order assigns to the class, and the correlation of
    the column that is currently assigned to the class. If the columns are independent, the
    difference has mean 0 and variance 2/n.
    """
    from scipy.optimize import linear_sum_assignment

    size = scores.shape[1]
    table = np.bincount(answered * size + probable, minlength=size * size).reshape(size, size)
    columns = linear_sum_assignment(table, maximize=True)[1]
    moved = np.flatnonzero(columns != np.arange(size))
    if not len(moved):
        return False
    gained = 0.0
    for k in moved:
        gained += _correlation(scores[:, columns[k]], truth == k) - _correlation(
            scores[:, k], truth == k
        )
    return gained * math.sqrt(len(scores) / (2 * len(moved))) > -float(ndtri(ALPHA))


def _correlation(scores: FloatArray, is_own: BoolArray) -> float:
    """Return the correlation between scores and membership in a class; 0 if either is constant."""
    deviations = scores - scores.mean()
    share = is_own - is_own.mean()
    scale = float(np.sqrt((deviations @ deviations) * (share @ share)))
    return float(deviations @ share) / scale if scale > 0 else 0.0


def columns_in_text_order(labels: Sequence[Label]) -> str:
    """Return a warning if numeric labels are sorted as texts; else an empty text.

    If ``labels=`` is not given, unnamed columns of scores are assigned to the labels sorted as
    texts, in which "10" comes before "2".
    """
    if not all(isinstance(label, str) for label in labels):
        return ""
    by_number = sorted(labels, key=_by_number)  # type: ignore[arg-type]
    if by_number == list(labels):
        return ""
    return (
        "labels= is not given: the columns of the scores are read in the order of the labels "
        f"sorted as strings, {listed(labels, 8)}; the order of their numbers is "
        f"{listed(by_number, 8)}"
    )


def _by_number(label: str) -> list[tuple[bool, int, str]]:
    parts = _NUMBERS.split(label)
    return [
        (part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in parts if part
    ]


def saturated_scores(scores: ScoreCounts) -> str:
    """Return a warning if most rows of both groups have the score 0 (or 1); else an empty text.

    In single precision, the sigmoid of a logit above 17 is exactly 1, so different logits become
    ties. The score of a decision tree or of nearest neighbours is a share computed from a few rows,
    so the score can be exactly 1 without rounding. A decision tree or nearest neighbours produce no
    other scores near 1, so there is no warning.
    """
    sides = replace(scores, counts=scores.counts.reshape(2, 2, -1).sum(axis=1))
    for end in (0.0, 1.0):
        shares = _shares_at(sides, end)
        if len(shares) and shares.min() > 0.5:
            positives, negatives = map(short_percent, shares)
            return (
                f"{positives} of the positives and {negatives} of the negatives have the score "
                f"{_near(scores, end)}, so they are tied: {_SATURATED}, "
                "or the difference of the logarithms of two columns of y_prob"
            )
    return ""


def saturated_classes(scores: ClassScoreCounts, labels: Sequence[Label]) -> str:
    """Return a warning if most rows of two classes have the probability 1; else an empty text."""
    for k, table in enumerate(scores.tables):
        shares = _shares_at(table, 1.0)
        shared = np.flatnonzero(shares > 0.5)
        if len(shared) < 2:
            continue
        if scores.by_actual_class:
            first, second = shared[:2]
            names = [quoted(labels[first]), quoted(labels[second])]
        else:
            first = 0
            second = 1
            names = [quoted(labels[k]), "others"]
        return (
            f"{short_percent(shares[first])} of the rows of {names[0]} and "
            f"{short_percent(shares[second])} of {names[1]} have the probability "
            f"{_near(table, 1.0)} for {quoted(labels[k])}, so they are tied: {_SATURATED}"
        )
    return ""


_SATURATED = (
    "if a network's probabilities were rounded, pass its logits to y_score, or to a hook's logits="
)


def _near(scores: ScoreCounts, end: float) -> str:
    return f"{end:g} exactly" if scores.exact else f"{end:g} within {1 - grid_edges()[-1]:.0e}"


_NEAR_AN_END = 1e-4
"""Distance from 0 or 1 below which a score cannot be a share computed from a thousand rows."""
_HALF_SINGLE = 2.0**-25
"""Half the distance between 1 and the next lower number in single precision."""
_ROUNDED_MEAN = 1e-12
"""Largest rounding error of the mean score in a cell of the grid."""


def _shares_at(scores: ScoreCounts, end: float) -> FloatArray:
    """Return, for each channel, the share of rows whose score is 0, or whose score is 1.

    ``end``: the score that is counted, which is 0 or 1.

    The result is empty if there are no scores, or if no other score is near ``end``. If scores are
    counted on the fixed grid, only the last cell is usable, because its mean shows whether most of
    its scores are exactly 1.
    """
    none = np.empty(0)
    if scores.dropped_bits is not None or not len(scores.values):
        return none
    place = 0 if end == 0 else -1
    rows = scores.counts.sum(axis=1)
    shares = np.divide(scores.counts[:, place], rows, out=np.zeros(len(rows)), where=rows > 0)
    if scores.exact:
        near = np.abs(np.delete(scores.values, place) - end)
        is_of_a_sigmoid = not len(near) or float(near.min()) < _NEAR_AN_END
        return shares if scores.values[place] == end and is_of_a_sigmoid else none
    if end == 0 or scores.sums is None:
        return none
    distance = 1.0 - float(scores.means[place])
    is_whole = scores.counts[:, place].sum() == rows.sum()
    return shares if distance < _HALF_SINGLE and (is_whole or distance > _ROUNDED_MEAN) else none


def padding(matrix: ConfusionMatrix) -> str:
    """Return a warning if a label usually marks rows to ignore; else an empty text.

    The label -100 is never a class. The label 255 is treated as a possible class, unless all other
    labels are far below 255 and no row is predicted as 255.
    """
    rows = matrix.stored.sum(axis=1)
    predictions = matrix.stored.sum(axis=0)
    for k, label in enumerate(matrix.labels):
        if isinstance(label, (bool, str)) or not rows[k]:
            continue
        if label == PADDING or (
            label == _VOID and not predictions[k] and _are_below(matrix.labels, _VOID // 2)
        ):
            return (
                f"{label:g} usually marks rows to ignore, but here it is a class with "
                f"{rows[k]:,.6g} rows"
            )
    return ""


def _are_below(labels: Sequence[Label], most: int) -> bool:
    """Return True if all labels except 255 (void pixels) are numbers from 0 to ``most``."""
    others = [label for label in labels if label != _VOID]
    return all(
        not isinstance(label, (bool, str)) and 0 <= label <= most  # type: ignore[operator]
        for label in others
    )
