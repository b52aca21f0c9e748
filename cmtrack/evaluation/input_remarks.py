"""Remarks on input that its author hardly meant: swapped classes, saturated scores, padding.

They warn of mistakes that no check can refuse, since each may be what was meant. All are tests or
counts of what an evaluation has in any case.
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
from cmtrack.statistics.grid import grid_edges
from cmtrack.statistics.inputs import BoolArray, FloatArray, IntArray, listed
from cmtrack.statistics.probabilities import LEAST_SUM, MOST_SUM, Probabilities
from cmtrack.statistics.scores import ScoreCounts

ALPHA = 0.001
"""Error of a test of swapped classes: a false alarm costs more than a missed one."""
_MOST_ROWS = 10_000
"""Rows that are looked at for columns in another order."""
PADDING = -100
"""PyTorch's and Hugging Face's mark for rows that a loss leaves out (``ignore_index``)."""
_VOID = 255
"""The mark of pixels without a class in images of Pascal VOC and Cityscapes."""
_NUMBERS = re.compile(r"(\d+)")


class MixedUpClassesWarning(UserWarning):
    """Predictions or probabilities seem to belong to other classes."""


class ScaledProbabilitiesWarning(UserWarning):
    """Rows of probabilities did not sum to 1 and were scaled."""


def input_warnings(statistics: Statistics, remark: str = "") -> list[UserWarning]:
    """Return warnings of probabilities that were scaled and of classes that are mixed up.

    ``remark``: on columns of probabilities in another order than the predictions.
    """
    found: list[UserWarning] = []
    if statistics.scaled_rows:
        found.append(ScaledProbabilitiesWarning(scaled_rows_warning(statistics.scaled_rows)))
    mixed_up = swapped_classes(statistics) or remark
    if mixed_up:
        found.append(MixedUpClassesWarning(mixed_up))
    return found


def warn_of_input(found: Iterable[UserWarning]) -> None:
    """Warn the caller's caller."""
    for one in found:
        warnings.warn(one, stacklevel=3)


def scaled_rows_warning(rows: int) -> str:
    """Warning about probabilities that were scaled."""
    noun = "row" if rows == 1 else "rows"
    return (
        f"{rows:,} {noun} of probabilities summed to {LEAST_SUM:g} to {MOST_SUM:g} "
        "instead of 1 and were scaled to sum to 1 "
        "(normalize=True: without this warning, normalize=False: refused)"
    )


def swapped_classes(statistics: Statistics) -> str:
    """The remark on classes whose predictions mean each other; else empty.

    It takes the best assignment of predicted to actual classes, which moves classes in cycles. A
    cycle is named if no class in it has more rows on the diagonal than in the cell that it moves to
    or from, if these cells hold more than half of the rows and of the predictions of its classes,
    and if they hold more than the diagonal by an exact sign test, adjusted for all ordered choices
    of so many classes (Bonferroni; of two classes for all pairs). Several cycles may pass together.
    A model that merely prefers one class moves only one of two, and is passed over.
    Of sampling weights, rows count by Kish's number.
    """
    labels = statistics.matrix.labels
    counts = np.asarray(statistics.matrix.counts, dtype=np.float64)
    total = float(counts.sum())
    if total <= 0 or not _has_rivals(counts):
        return ""
    totals = statistics.counts.map(lambda table: float(table.sum()))
    rows = float(totals.effective_size()) / total
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
    binary = "; one column of y_prob is of the positive class" if len(counts) == 2 else ""
    return (
        f"the accuracy is {significant(now)}%, and would be {significant(then)}% "
        f"if the prediction {join_names(names, 8)}: "
        "labels= must have the order of the columns of y_prob (model.classes_), "
        f"and y_pred the same codes as y_true{binary}"
    )


def _has_rivals(counts: FloatArray) -> bool:
    """Return whether two cells off the diagonal have as many rows as their diagonal cells."""
    own = np.diagonal(counts)
    is_rival = (counts > 0) & (counts >= own[:, None]) & (counts >= own)
    np.fill_diagonal(is_rival, False)
    return int(np.count_nonzero(is_rival)) > 1


def _cycles(counts: FloatArray) -> list[list[tuple[int, int]]]:
    """The pairs of actual and predicted class that the best assignment moves, in cycles."""
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
    """True if predictions clearly mean other classes in these pairs of actual and predicted class.

    ``rows``: the number of rows that a count of 1 is worth.
    """
    actual = [i for i, _ in pairs]
    predicted = [j for _, j in pairs]
    other = counts[actual, predicted]
    own = np.diagonal(counts)
    if np.count_nonzero(other) < 2 or (other < own[actual]).any() or (other < own[predicted]).any():
        return False
    if 2 * other.sum() <= max(counts[actual].sum(), counts[:, predicted].sum()):
        return False
    # Ordered choices of so many of the K classes: K! / (K - m)!
    log_choices = float(gammaln(len(counts) + 1) - gammaln(len(counts) - len(pairs) + 1))
    return _is_clearly_more(rows * float(other.sum()), rows * float(own[actual].sum()), log_choices)


def _second(pair: tuple[int, int]) -> int:
    return pair[1]


def _is_clearly_more(more: float, fewer: float, log_tests: float) -> bool:
    """True if the exact one-sided sign test of two counts rejects that they are equally likely.

    ``log_tests``: the logarithm of the number of tests that it is one of.
    """
    total = int(more + fewer)  # with weights these are effective numbers, which need not be whole
    least = min(int(fewer), total)
    if total < 1 or more <= fewer:
        return False
    probability = float(bdtr(least, total, 0.5))
    if probability > 0:
        log_probability = math.log(probability)
    else:  # below the smallest float: the bound of Chernoff (1952), which is larger
        share = least / total
        log_probability = total * (float(entr(share) + entr(1 - share)) - math.log(2))
    return log_probability + log_tests <= math.log(ALPHA)


def reversed_columns(actual: IntArray, predicted: IntArray, probabilities: Probabilities) -> str:
    """Return the remark on columns in another order than the correct predictions; else empty.

    ``actual``, ``predicted``, shape (n,): codes of the classes.
    ``probabilities``: of the same rows; of many rows some are looked at.

    It is made only if they differ in more than half of the rows and an exact sign test shows that
    the predicted class is right more often there. A threshold, a prior or a model without skill can
    also do that. Therefore another order of the columns must also fit the actual classes better.
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
        f"y_pred is right in {predicted_share} of the rows, "
        f"and the most probable class in {probable_share}: "
        "the columns of the probabilities must be in the order of labels= (model.classes_)"
    )


def _are_reversed(
    scores: FloatArray, truth: IntArray, answered: IntArray, probable: IntArray
) -> bool:
    """Return whether the predictions' best order of columns also fits the actual classes better.

    The correlation of a class with the column that this order gives it is compared with that of its
    own column, over all classes that move, by a normal test: two correlations of independent
    columns differ by 0 with the variance 2/n.
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
    """The correlation of scores with a class; 0 if one of them is constant."""
    deviations = scores - scores.mean()
    share = is_own - is_own.mean()
    scale = float(np.sqrt((deviations @ deviations) * (share @ share)))
    return float(deviations @ share) / scale if scale > 0 else 0.0


def columns_in_text_order(labels: Sequence[Label]) -> str:
    """Return the remark on names with numbers that are not ordered by their numbers; else empty.

    Without ``labels=`` the columns of scores without names are taken in the order of the texts:
    "10" before "2".
    """
    if not all(isinstance(label, str) for label in labels):
        return ""
    by_number = sorted(labels, key=_by_number)  # type: ignore[arg-type]
    if by_number == list(labels):
        return ""
    return (
        "labels= is not given: "
        "the columns of the scores are taken in the order of the labels as texts, "
        f"{listed(labels, 8)}; by their numbers it would be {listed(by_number, 8)}"
    )


def _by_number(label: str) -> list[tuple[bool, int, str]]:
    parts = _NUMBERS.split(label)
    return [
        (part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in parts if part
    ]


def saturated_scores(scores: ScoreCounts) -> str:
    """Return the remark on scores of exactly 0 or 1 of most rows of both groups; else empty.

    A sigmoid in single precision is exactly 1 from a logit of 17 on: what the logits told apart is
    tied then. A score of a tree or of neighbours is a share of few rows: such a model has no other
    score near that end.
    """
    sides = replace(scores, counts=scores.counts.reshape(2, 2, -1).sum(axis=1))
    for end in (0.0, 1.0):
        shares = _shares_at(sides, end)
        if len(shares) and shares.min() > 0.5:
            positives, negatives = map(short_percent, shares)
            return (
                f"{positives} of the positives and {negatives} of the negatives have the score "
                f"{_near(scores, end)}, and are tied: {_SATURATED}, "
                "or the difference of the logarithms of two columns of y_prob"
            )
    return ""


def saturated_classes(scores: ClassScoreCounts, labels: Sequence[Label]) -> str:
    """The remark on a probability of 1 that most rows of two classes share; else empty."""
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
            f"{short_percent(shares[second])} of {names[1]} have for {quoted(labels[k])} "
            f"the probability {_near(table, 1.0)}, and are tied: {_SATURATED}"
        )
    return ""


_SATURATED = (
    "if they are rounded probabilities of a network, "
    "give its logits to y_score, or to a hook's logits="
)


def _near(scores: ScoreCounts, end: float) -> str:
    return f"{end:g} exactly" if scores.exact else f"{end:g} within {1 - grid_edges()[-1]:.0e}"


_NEAR_AN_END = 1e-4
"""Distance from 0 or 1 of a score that no share of a thousand rows has."""
_HALF_SINGLE = 2.0**-25
"""Half the distance of 1 from the next lower number in single precision."""
_ROUNDED_MEAN = 1e-12
"""Error that the mean of a cell's scores may have by rounding."""


def _shares_at(scores: ScoreCounts, end: float) -> FloatArray:
    """Return the share of each channel with this score, 0 or 1.

    It is empty without scores, and if the other scores are all far from this one.

    Of the fixed grid only the last cell can tell: its mean says whether most of its scores are
    exactly 1.
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
    """The remark on rows of a label that marks rows to be left out; else empty.

    -100 is no class of anybody. 255 may be one, unless the others are far below it and no row is
    predicted as it.
    """
    rows = matrix.counts.sum(axis=1)
    predictions = matrix.counts.sum(axis=0)
    for k, label in enumerate(matrix.labels):
        if isinstance(label, (bool, str)) or not rows[k]:
            continue
        if label == PADDING or (
            label == _VOID and not predictions[k] and _are_below(matrix.labels, _VOID // 2)
        ):
            return (
                f"{label:g} is the usual mark for rows that do not count; "
                f"here it is a class of {rows[k]:,.6g} rows"
            )
    return ""


def _are_below(labels: Sequence[Label], most: int) -> bool:
    """True if all labels but that of a void pixel are numbers from 0 to this."""
    others = [label for label in labels if label != _VOID]
    return all(
        not isinstance(label, (bool, str)) and 0 <= label <= most  # type: ignore[operator]
        for label in others
    )
