"""Order of the classes in a large matrix, and selection of the classes with the most errors.

Order and selection only affect the display and do not change any numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cmtrack.digits import short_count, short_percent
from cmtrack.plots.style import FloatArray

IN_GIVEN_ORDER = 12
"""Largest number of classes whose order is kept; larger matrices are reordered."""
WHOLE_UP_TO = 30
"""Largest number of classes in a matrix that is drawn completely."""
SHOWN = 20
"""Number of classes that are drawn if the matrix is larger."""

OTHERS = "(others)"

IntArray = npt.NDArray[np.intp]


class WithOthers(NamedTuple):
    """A matrix of selected classes, in which the last class combines all other classes.

    ``counts``, shape (M, M): counts by actual and predicted class. The last cell also counts the
        errors between the combined classes.
    ``labels``: the M labels.
    """

    counts: FloatArray
    labels: list[object]
    caption: str


def in_order(counts: npt.ArrayLike, labels: Sequence[object]) -> tuple[FloatArray, list[object]]:
    """Reorder a large matrix and its labels, so that confused classes are neighbours."""
    values = np.asarray(counts, dtype=np.float64)
    if len(values) <= IN_GIVEN_ORDER:
        return values, list(labels)
    order = order_of(values)
    return values[np.ix_(order, order)], [labels[place] for place in order]


def with_others(
    counts: npt.ArrayLike, labels: Sequence[object], positive: object | None = None
) -> WithOthers:
    """Return the matrix of the 20 most confused classes and the positive class; combine the rest.

    The classes keep their order, in which a reader finds them. The total of all counts does not
    change.
    """
    values = np.asarray(counts, dtype=np.float64)
    positives = [place for place, label in enumerate(labels) if label == positive]
    shown = np.union1d(most_confused(values), positives).astype(np.intp)
    n_shown = len(shown)
    group = np.full(len(values), n_shown)
    group[shown] = np.arange(n_shown)
    membership = np.eye(n_shown + 1)[group]
    sums = membership.T @ values @ membership
    words = f"Shows the {n_shown} of {len(values)} classes that are most confused with each other"
    errors = _errors_in(values)
    if errors:
        words += f" ({short_percent(_errors_in(sums[:-1, :-1]) / errors)} of all errors)"
    pooled = values[np.ix_(group == n_shown, group == n_shown)]
    words += (
        f". The grey cell counts {short_count(sums[-1, -1])} rows of other classes that are "
        f"predicted as other classes, including {short_count(_errors_in(pooled))} errors."
    )
    names = [labels[place] for place in shown]
    return WithOthers(sums, [*names, OTHERS], words)


def _errors_in(counts: FloatArray) -> float:
    return float(counts.sum() - np.trace(counts))


def order_of(counts: npt.ArrayLike) -> IntArray:
    """Return a permutation of the K classes in which confused classes are neighbours.

    The classes are clustered by average linkage with the distance ``1 - S / max S``, where S is the
    mean of the two confusion rates of a pair of classes. The order is the optimal leaf order of the
    clusters (Bar-Joseph, Gifford and Jaakkola 2001). The direction of the order is chosen so that
    its first class precedes its last class in the given order.
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
    # The reverse order is equally good. The choice is fixed, so that figures are reproducible.
    if order[0] > order[-1]:
        return order[::-1]
    return order


def most_confused(counts: npt.ArrayLike, n: int = SHOWN) -> IntArray:
    """Return the ascending positions of ``n`` classes that are often confused with each other.

    First, the class that is least often confused with the remaining classes is removed repeatedly,
    until ``n`` classes are left. Then classes are exchanged as long as an exchange increases the
    number of errors between the selected classes.
    """
    values = np.asarray(counts, dtype=np.float64)
    errors = values + values.T  # errors between two classes, in both directions
    np.fill_diagonal(errors, 0.0)
    chosen = list(range(len(errors)))
    while len(chosen) > n:
        del chosen[int(errors[np.ix_(chosen, chosen)].sum(axis=1).argmin())]
    return np.array(sorted(_exchanged(errors, chosen)), dtype=np.intp)


def _exchanged(errors: FloatArray, classes: list[int]) -> list[int]:
    """Exchange classes as long as this increases the number of errors between them."""
    chosen = list(classes)
    # Every exchange increases the errors, so the loop ends. The bound is a guard against rounding.
    for _ in range(len(errors)):
        with_chosen = errors[:, chosen].sum(axis=1)
        others = np.setdiff1d(np.arange(len(errors)), chosen)
        if not len(others):
            break
        # Errors between the two exchanged classes do not count, because only one of the two is
        # selected.
        gain = with_chosen[others] - with_chosen[chosen][:, None] - errors[chosen][:, others]
        leaving, entering = np.unravel_index(int(gain.argmax()), gain.shape)
        if gain[leaving, entering] <= 1e-9:
            break
        chosen[int(leaving)] = int(others[entering])
    return chosen
