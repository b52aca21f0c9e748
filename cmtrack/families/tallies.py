"""What each document adds up to, and the sums over documents that standard errors need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from cmtrack.statistics.inputs import FloatArray, IntArray

TallyTable: TypeAlias = npt.NDArray[np.int32]

TALLIES = (
    "hits",
    "predicted_confused",
    "actual_confused",
    "predicted_outside",
    "actual_outside",
    "shared_nodes",
    "predicted_nodes",
    "actual_nodes",
)
"""Of a document: codes on both sides; other codes with, and without, an unmatched sibling on the other side; nodes of
the codes with their ancestors."""


@dataclass(frozen=True, eq=False)
class Tallies:
    """Sums and sums of products of the documents' tallies; whole numbers, so that shards add up exactly.

    Attributes
    ----------
    sums : ndarray of shape (8,), int64
    products : ndarray of shape (8, 8), int64
    """

    sums: IntArray
    products: IntArray

    @classmethod
    def of(cls, table: TallyTable) -> Tallies:
        """Add up the documents' tallies (n, 8)."""
        sums = table.sum(axis=0, dtype=np.int64)
        products = np.zeros((len(TALLIES),) * 2, dtype=np.int64)
        for start in range(0, len(table), 1 << 16):
            part = table[start : start + (1 << 16)].astype(np.float64)  # exact: the products stay far below 2**53
            products += (part.T @ part).astype(np.int64)
        return cls(sums, products)

    def __add__(self, other: Tallies) -> Tallies:
        return Tallies(self.sums + other.sums, self.products + other.products)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tallies):
            return NotImplemented
        return np.array_equal(self.sums, other.sums) and np.array_equal(self.products, other.products)


MACROS = ("precision_macro", "recall_macro", "f1_macro")


@dataclass(frozen=True, eq=False)
class DocumentRows:
    """The documents one by one: paired comparisons need them.

    Attributes
    ----------
    tallies : ndarray of shape (n, 8), int32
        In the order of :data:`TALLIES`.
    macros : ndarray of shape (n, 3)
        Influence values of :data:`MACROS`, which depend on every code of a document.
    weights, clusters : None
        Documents have no weights and stand for themselves.
    """

    tallies: TallyTable
    macros: FloatArray
    weights: None = None
    clusters: None = None

    def __len__(self) -> int:
        return len(self.tallies)
