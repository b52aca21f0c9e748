"""Tables with given margins: the least and the most agreement, and chance."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog

from kappa.ratings import Counts


def extreme(counts: npt.ArrayLike, *, most: bool) -> Counts:
    """The table with the margins of `counts` whose diagonal is least, or most.

    It is a transport problem, so that the solution has whole numbers.
    """
    table = np.asarray(counts)
    size = len(table)
    cell = np.arange(size * size).reshape(size, size)
    sums = np.zeros((2 * size, size * size))
    for k in range(size):
        sums[k, cell[k]] = 1
        sums[size + k, cell[:, k]] = 1
    cost = np.eye(size).ravel() * (-1 if most else 1)
    totals = np.concatenate([table.sum(axis=1), table.sum(axis=0)])
    found = linprog(cost, A_eq=sums, b_eq=totals, bounds=(0, None), method="highs-ds")
    return np.rint(found.x).astype(np.int64).reshape(size, size)


def by_chance(counts: npt.ArrayLike, rng: np.random.Generator) -> Counts:
    """A table with the margins of `counts` of raters who know nothing of each other: one's labels in random order."""
    table = np.asarray(counts)
    size = len(table)
    rows = np.repeat(np.arange(size), table.sum(axis=1))
    columns = rng.permutation(np.repeat(np.arange(size), table.sum(axis=0)))
    return np.bincount(rows * size + columns, minlength=size * size).reshape(size, size)


def on_the_way(counts: npt.ArrayLike, rng: np.random.Generator) -> Counts:
    """A table with the margins of `counts` and any agreement: a random share of the samples of an extreme one mixed."""
    end = extreme(counts, most=bool(rng.integers(2)))
    cells = np.indices(end.shape).reshape(2, -1).repeat(end.ravel(), axis=1)
    mixed = np.flatnonzero(rng.random(cells.shape[1]) < rng.random())
    cells[1, mixed] = cells[1, rng.permutation(mixed)]
    return np.bincount(cells[0] * len(end) + cells[1], minlength=end.size).reshape(end.shape)
