"""Order of the classes of a large matrix, and the classes with most of the errors.

Both are for display only. No number depends on the order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cmtrack.digits import short_percent
from cmtrack.plots.style import FloatArray

IN_GIVEN_ORDER = 12
"""Most classes that keep their order. In larger matrices, confused classes become neighbours."""
WHOLE_UP_TO = 30
"""Most classes of a matrix that is drawn whole."""
SHOWN = 20
"""Number of classes that are drawn of a larger matrix."""

OTHERS = "(others)"

IntArray = npt.NDArray[np.intp]


class WithOthers(NamedTuple):
    """A matrix of some classes, with all others pooled in the last, and a sentence about it.

    ``counts``, shape (M, M).
    ``mismatches``, shape (M,): errors among the others.
    ``labels``, list of length M.
    """

    counts: FloatArray
    mismatches: FloatArray
    labels: list[object]
    caption: str


def in_order(counts: npt.ArrayLike, labels: Sequence[object]) -> tuple[FloatArray, list[object]]:
    """Return a matrix and its labels; in large matrices, confused classes are neighbours."""
    values = np.asarray(counts, dtype=np.float64)
    if len(values) <= IN_GIVEN_ORDER:
        return values, list(labels)
    order = order_of(values)
    return values[np.ix_(order, order)], [labels[place] for place in order]


def with_others(
    counts: npt.ArrayLike, labels: Sequence[object], positive: object | None = None
) -> WithOthers:
    """Return the matrix of the 20 most confused classes, the positive class, and others pooled.

    The totals do not change.
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
    # Confusions between pooled classes are errors, so the diagonal has only correct predictions.
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
    """Return a permutation of the classes, (K,), that makes confused classes neighbours.

    The order is the optimal order of leaves (Bar-Joseph, Gifford and Jaakkola 2001) of average
    linkage by ``1 - S / max S``. S is the mean of the two rates of confusion of two classes. The
    direction is chosen so that the first class precedes the last one in the given order.
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
    # The reverse order is equally good. Always choosing the same one keeps figures reproducible.
    if order[0] > order[-1]:
        return order[::-1]
    return order


def most_confused(counts: npt.ArrayLike, n: int = SHOWN) -> IntArray:
    """Return the positions of ``n`` classes with many errors among them, ascending.

    The class with the fewest errors among the remaining classes is removed, until ``n`` are left.
    Then classes are exchanged while an exchange increases the errors among them.
    """
    values = np.asarray(counts, dtype=np.float64)
    errors = values + values.T  # errors between two classes, in both directions
    np.fill_diagonal(errors, 0.0)
    chosen = list(range(len(errors)))
    while len(chosen) > n:
        del chosen[int(errors[np.ix_(chosen, chosen)].sum(axis=1).argmin())]
    return np.array(sorted(_exchanged(errors, chosen)), dtype=np.intp)


def _exchanged(errors: FloatArray, classes: list[int]) -> list[int]:
    """Return the classes after all exchanges that increase the errors among them."""
    chosen = list(classes)
    # Every exchange increases the errors, so the loop ends. The bound is a guard against rounding.
    for _ in range(len(errors)):
        with_chosen = errors[:, chosen].sum(axis=1)
        others = np.setdiff1d(np.arange(len(errors)), chosen)
        if not len(others):
            break
        # Errors between the two exchanged classes do not count, because only one is in the set.
        gain = with_chosen[others] - with_chosen[chosen][:, None] - errors[chosen][:, others]
        leaving, entering = np.unravel_index(int(gain.argmax()), gain.shape)
        if gain[leaving, entering] <= 1e-9:
            break
        chosen[int(leaving)] = int(others[entering])
    return chosen
