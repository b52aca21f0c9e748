"""Tables of two raters: how run-together digits can be read, and what chance alone would agree on."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from itertools import combinations, pairwise, product

import numpy as np
import numpy.typing as npt

from cmtrack import Evaluation, evaluate
from cmtrack.evaluation.input_remarks import MixedUpClassesWarning

Counts = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def splits(digits: str, parts: int) -> list[tuple[int, ...]]:
    """Every way to read a row of digits as so many numbers, without leading zeros.

    Examples
    --------
    >>> splits("1316", 3)
    [(1, 3, 16), (1, 31, 6), (13, 1, 6)]
    """
    found = []
    for cuts in combinations(range(1, len(digits)), parts - 1):
        ends = (0, *cuts, len(digits))
        words = [digits[a:b] for a, b in pairwise(ends)]
        if all(word == "0" or not word.startswith("0") for word in words):
            found.append(tuple(int(word) for word in words))
    return found


def readings(rows: Mapping[str, str]) -> list[Counts]:
    """Every square table that rows of digits can be read as."""
    return [
        np.array(table)
        for table in product(*(splits(digits, len(rows)) for digits in rows.values()))
    ]


def expanded(counts: npt.ArrayLike, labels: Sequence[str]) -> tuple[list[str], list[str]]:
    """The labels (actual, predicted) of the samples that a table counts, rows actual."""
    table = np.asarray(counts)
    cells = [(i, j) for (i, j), n in np.ndenumerate(table) for _ in range(int(n))]
    return [labels[i] for i, _ in cells], [labels[j] for _, j in cells]


def judged(counts: npt.ArrayLike, labels: Sequence[str]) -> Evaluation:
    """The product's evaluation of a table, rows actual.

    Wrong readings of the digits, random tables and raters who disagree on everything look like swapped classes. They
    are tables of two raters, not predictions in a wrong order, so the product's warning is not repeated for each.
    """
    y_true, y_pred = expanded(counts, labels)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MixedUpClassesWarning)
        return evaluate(y_true, y_pred, labels=list(labels))


def margins(counts: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Shares of the classes in rows and in columns."""
    table = np.asarray(counts, dtype=np.float64)
    return table.sum(axis=1) / table.sum(), table.sum(axis=0) / table.sum()


def chance_terms(counts: npt.ArrayLike) -> Floats:
    """For each class, the share on which two independent raters with these margins agree; their sum is p_e."""
    rows, columns = margins(counts)
    return rows * columns


def kappa_of(agreement: float, chance: float) -> float:
    """The article's formula, for its own (rounded) terms."""
    return (agreement - chance) / (1 - chance)
