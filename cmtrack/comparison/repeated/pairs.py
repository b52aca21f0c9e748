"""All pairs of models: Holm's adjustment, and the cliques of models that are not told apart."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from cmtrack.comparison import inference
from cmtrack.comparison.repeated.student import RepeatedDifference
from cmtrack.statistics.inputs import BoolArray

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Pair:
    """Two models.

    Attributes
    ----------
    first, second : int
        Columns of the scores.
    difference : RepeatedDifference
        First less second.
    adjusted_pvalue : float
        By Holm over all pairs.
    """

    first: int
    second: int
    difference: RepeatedDifference
    adjusted_pvalue: float

    def reversed(self) -> Pair:
        """Second less first."""
        return Pair(self.second, self.first, self.difference.reversed(), self.adjusted_pvalue)


@dataclass(frozen=True)
class Pairwise:
    """All pairs of k models.

    Attributes
    ----------
    pairs : tuple of Pair
        ``first < second``; ``pairwise[i, j]`` gives any pair in either direction.
    order : tuple of int
        Columns, best first.
    cliques : tuple of tuple of int
        Maximal runs in this order of two or more models of which no pair is told apart.
    confidence_level : float
        A pair is told apart where its adjusted p-value is at most ``1 - confidence_level``.
    blocks, left_out : int
        Blocks used, and those that miss a value.
    note : str
        What these blocks cannot show; else empty.
    """

    pairs: tuple[Pair, ...]
    order: tuple[int, ...]
    cliques: tuple[tuple[int, ...], ...]
    confidence_level: float
    blocks: int
    left_out: int
    note: str = ""

    def __getitem__(self, models: tuple[int, int]) -> Pair:
        for pair in self.pairs:
            if (pair.first, pair.second) == models:
                return pair
            if (pair.second, pair.first) == models:
                return pair.reversed()
        raise KeyError(f"there is no pair {models!r}")

    def apart(self, first: int, second: int) -> bool:
        """Whether two models are told apart at the confidence level; False where there is no p-value."""
        return self[first, second].adjusted_pvalue <= 1 - self.confidence_level

    def to_frame(self) -> pd.DataFrame:
        """One row per pair."""
        import pandas as pd

        rows = [
            {
                "first": pair.first,
                "second": pair.second,
                **vars(pair.difference),
                "adjusted_pvalue": pair.adjusted_pvalue,
                "apart": self.apart(pair.first, pair.second),
            }
            for pair in self.pairs
        ]
        return pd.DataFrame(rows)


def holm(pvalues: Sequence[float]) -> tuple[float, ...]:
    """Adjust p-values for their number (Holm 1979, Scandinavian Journal of Statistics 6, 65-70).

    NaN stays NaN and does not count.
    """
    values = np.asarray(pvalues, dtype=np.float64)
    adjusted = np.full(values.shape, math.nan)
    known = ~np.isnan(values)
    adjusted[known] = inference.holm(values[known])
    return tuple(float(v) for v in adjusted)


def cliques(order: Sequence[int], apart: BoolArray) -> tuple[tuple[int, ...], ...]:
    """Maximal runs of consecutive models of which no two are told apart.

    Parameters
    ----------
    order : sequence of k int
        Columns, best first.
    apart : ndarray of shape (k, k), bool
        Symmetric, by column.

    Returns
    -------
    tuple of tuple of int
        Columns, best first; a model that is told apart from both its neighbours is in none.
    """
    found: list[tuple[int, ...]] = []
    reached = 0
    for start in range(len(order)):
        stop = start + 1
        while stop < len(order) and not apart[order[stop], list(order[start:stop])].any():
            stop += 1
        if stop - start > 1 and stop > reached:
            found.append(tuple(int(v) for v in order[start:stop]))
            reached = stop
    return tuple(found)


def compare_all(
    test: Callable[[int, int], RepeatedDifference],
    order: tuple[int, ...],
    confidence_level: float,
    blocks: tuple[int, int],
    note: str = "",
) -> Pairwise:
    """Test every pair, adjust by Holm, find the cliques."""
    k = len(order)
    models: list[tuple[int, int]] = list(combinations(range(k), 2))
    found = [test(i, j) for i, j in models]
    adjusted = holm([one.pvalue for one in found])
    apart: Any = np.zeros((k, k), dtype=np.bool_)
    for (i, j), pvalue in zip(models, adjusted, strict=True):
        apart[i, j] = apart[j, i] = pvalue <= 1 - confidence_level
    pairs = tuple(Pair(i, j, one, p) for (i, j), one, p in zip(models, found, adjusted, strict=True))
    return Pairwise(pairs, order, cliques(order, apart), confidence_level, *blocks, note)
