"""The order of a matrix of many classes, and the classes among which most of its errors are.

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
"""Classes up to which a matrix keeps their order; beyond, confused classes are neighbours."""
WHOLE_UP_TO = 30
"""Classes up to which a matrix is drawn whole."""
SHOWN = 20
"""Classes shown of a larger matrix."""

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
    """Return a matrix and its labels; of more than 12 classes, confused ones are neighbours."""
    values = np.asarray(counts, dtype=np.float64)
    if len(values) <= IN_GIVEN_ORDER:
        return values, list(labels)
    order = order_of(values)
    return values[np.ix_(order, order)], [labels[place] for place in order]


def with_others(
    counts: npt.ArrayLike, labels: Sequence[object], positive: object | None = None
) -> WithOthers:
    """Return the matrix of the 20 most confused classes, the positive one, and all others pooled.

    No total changes.
    """
    values = np.asarray(counts, dtype=np.float64)
    positives = [place for place, label in enumerate(labels) if label == positive]
    shown = np.union1d(most_confused(values), positives).astype(np.intp)
    shown = shown[order_of(values[np.ix_(shown, shown)])]
    n_shown = len(shown)
    group = np.full(len(values), n_shown)
    group[shown] = np.arange(n_shown)
    membership = np.eye(n_shown + 1)[group]
    sums = membership.T @ values @ membership
    # A confusion of two pooled classes is an error: the diagonal keeps correct predictions only.
    pooled_hits = float(np.diag(values)[group == n_shown].sum())
    mismatches = np.append(np.zeros(n_shown), sums[-1, -1] - pooled_hits)
    sums[-1, -1] = pooled_hits
    words = f"Shown are the {n_shown} classes of {len(values)} with the most errors among them"
    errors = _errors_in(values)
    if errors:
        words += f", {short_percent(_errors_in(sums[:-1, :-1]) / errors)} of all"
    names = [labels[place] for place in shown]
    return WithOthers(sums, mismatches, [*names, OTHERS], f"{words}.")


def _errors_in(counts: FloatArray) -> float:
    return float(counts.sum() - np.trace(counts))


def order_of(counts: npt.ArrayLike) -> IntArray:
    """Return the places of the classes, confused ones as neighbours: a permutation of shape (K,).

    Average linkage of ``1 - S / max S``, where S is the mean of both rates of confusion of two
    classes, with the optimal order of the leaves (Bar-Joseph, Gifford and Jaakkola 2001). The first
    is before the last as given.
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
    distances = 1 - alike / alike.max()
    np.fill_diagonal(distances, 0.0)
    pairs = squareform(distances)
    order: IntArray = leaves_list(optimal_leaf_ordering(average(pairs), pairs)).astype(np.intp)
    # The reverse order is as good: one of both is chosen, so that a figure is always the same.
    if order[0] > order[-1]:
        return order[::-1]
    return order


def most_confused(counts: npt.ArrayLike, n: int = SHOWN) -> IntArray:
    """Return the places of ``n`` classes with many errors among them, ascending.

    The class with the fewest errors inside is taken out again and again; then others are exchanged
    for them as long as that gains.
    """
    values = np.asarray(counts, dtype=np.float64)
    errors = values + values.T  # between two classes, both ways
    np.fill_diagonal(errors, 0.0)
    chosen = list(range(len(errors)))
    while len(chosen) > n:
        del chosen[int(errors[np.ix_(chosen, chosen)].sum(axis=1).argmin())]
    return np.array(sorted(_exchanged(errors, chosen)), dtype=np.intp)


def _exchanged(errors: FloatArray, classes: list[int]) -> list[int]:
    """Return a set of classes after all exchanges of one for another that gain errors inside."""
    chosen = list(classes)
    # Each exchange gains, so there is an end; the bound is for rounding that gains in circles.
    for _ in range(len(errors)):
        with_chosen = errors[:, chosen].sum(axis=1)
        others = np.setdiff1d(np.arange(len(errors)), chosen)
        if not len(others):
            break
        # The errors between both classes of an exchange do not count: only one of them is inside.
        gain = with_chosen[others] - with_chosen[chosen][:, None] - errors[chosen][:, others]
        leaving, entering = np.unravel_index(int(gain.argmax()), gain.shape)
        if gain[leaving, entering] <= 1e-9:
            break
        chosen[int(leaving)] = int(others[entering])
    return chosen
