"""The order in which a matrix of many classes is drawn, and the classes among which most of its errors are.

For display only: no number depends on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cmtrack.digits import short_percent
from cmtrack.plots.style import FloatArray

IN_GIVEN_ORDER = 12
"""Classes up to which a matrix has them as they are given; of more, those that are confused stand beside each other."""
WHOLE_UP_TO = 30
"""Classes of a matrix that is drawn whole."""
SHOWN = 20
"""Classes of one that is not."""

OTHERS = "(others)"

IntArray = npt.NDArray[np.intp]


class WithOthers(NamedTuple):
    """A matrix of some classes, the last of which stands for all others, and a sentence on it.

    ``counts``, shape (M, M).
    ``mismatches``, shape (M,): errors among the others.
    ``labels``, list of length M.
    """

    counts: FloatArray
    mismatches: FloatArray
    labels: list[object]
    caption: str


def in_order(counts: npt.ArrayLike, labels: Sequence[object]) -> tuple[FloatArray, list[object]]:
    """A matrix and its labels, of more than 12 classes with those beside each other that are confused."""
    values = np.asarray(counts, dtype=np.float64)
    if len(values) <= IN_GIVEN_ORDER:
        return values, list(labels)
    order = order_of(values)
    return values[np.ix_(order, order)], [labels[place] for place in order]


def with_others(
    counts: npt.ArrayLike, labels: Sequence[object], positive: object | None = None
) -> WithOthers:
    """The 20 most confused classes, and the positive one, in order; the others as one group, whose totals stay."""
    values = np.asarray(counts, dtype=np.float64)
    shown = most_confused(values)
    shown = np.union1d(
        shown, [place for place, label in enumerate(labels) if label == positive]
    ).astype(np.intp)
    shown = shown[order_of(values[np.ix_(shown, shown)])]
    part = np.full(len(values), len(shown))
    part[shown] = np.arange(len(shown))
    member = np.eye(len(shown) + 1)[part]
    sums = member.T @ values @ member
    others = part == len(shown)
    right = float(np.diag(values)[others].sum())
    mismatches = np.append(np.zeros(len(shown)), sums[-1, -1] - right)
    sums[-1, -1] = right
    errors, inside = float(values.sum() - np.trace(values)), sums[:-1, :-1]
    share = (
        f", {short_percent((inside.sum() - np.trace(inside)) / errors)} of all" if errors else ""
    )
    words = f"Shown are the {len(shown)} classes of {len(values)} with the most errors among them{share}."
    return WithOthers(sums, mismatches, [*(labels[place] for place in shown), OTHERS], words)


def order_of(counts: npt.ArrayLike) -> IntArray:
    """Places of the classes, those beside each other that are confused: a permutation of shape (K,).

    Average linkage of ``1 - S / max S``, where S is the mean of both rates of confusion of two classes, with the
    optimal order of the leaves (Bar-Joseph, Gifford and Jaakkola 2001). The first is before the last as given.
    """
    from scipy.cluster.hierarchy import average, leaves_list, optimal_leaf_ordering
    from scipy.spatial.distance import squareform

    values = np.asarray(counts, dtype=np.float64)
    totals = values.sum(axis=1, keepdims=True)
    rates = np.divide(values, totals, out=np.zeros_like(values), where=totals > 0)
    alike = (rates + rates.T) / 2
    np.fill_diagonal(alike, 0.0)
    if len(values) < 3 or not alike.max() > 0:
        return np.arange(len(values))
    apart = 1 - alike / alike.max()
    np.fill_diagonal(apart, 0.0)
    apart = squareform(apart)
    order: IntArray = leaves_list(optimal_leaf_ordering(average(apart), apart)).astype(np.intp)
    return order if order[0] < order[-1] else order[::-1]


def most_confused(counts: npt.ArrayLike, n: int = SHOWN) -> IntArray:
    """Places of ``n`` classes with many errors among them, ascending.

    The class with the fewest errors inside is taken out again and again; then others are exchanged for them as long as
    that gains.
    """
    values = np.asarray(counts, dtype=np.float64)
    errors = values + values.T  # between two classes, both ways
    np.fill_diagonal(errors, 0.0)
    some = list(range(len(errors)))
    while len(some) > n:
        del some[int(errors[np.ix_(some, some)].sum(axis=1).argmin())]
    return np.array(sorted(_exchanged(errors, some)), dtype=np.intp)


def _exchanged(errors: FloatArray, some: list[int]) -> list[int]:
    """A set after all exchanges of one class for another that gain errors inside."""
    some = list(some)
    for _ in range(len(errors)):
        to = errors[:, some].sum(axis=1)
        others = np.setdiff1d(np.arange(len(errors)), some)
        if not len(others):
            break
        gain = to[others][None, :] - to[some][:, None] - errors[some][:, others]
        place, new = np.unravel_index(int(gain.argmax()), gain.shape)
        if gain[place, new] <= 1e-9:
            break
        some[int(place)] = int(others[new])
    return some
