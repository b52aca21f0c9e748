"""Mergeable statistics of label sets whose codes are grouped into families.

:class:`DocumentRows` stores the tallies of each document. :class:`FamilyStatistics` stores counts
of documents, codes and pairs of codes.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from cmtrack.families.hierarchy import Families
from cmtrack.statistics.design import Design
from cmtrack.statistics.digest import LabelDigest
from cmtrack.statistics.inputs import FloatArray, IntArray
from cmtrack.statistics.plain import decode_counts, encode_array, part
from cmtrack.statistics.records import Record

TallyTable: TypeAlias = npt.NDArray[np.int32]


class Sums8(NamedTuple):
    """Sums, over documents, of the eight tallies of each document.

    The tallies of a document count codes and nodes. The counted codes are the codes on both sides,
    and the unmatched codes with and without an unmatched sibling on the other side. The counted
    nodes are the document's codes and their ancestors.
    """

    hits: Any
    predicted_confused: Any
    actual_confused: Any
    predicted_outside: Any
    actual_outside: Any
    shared_nodes: Any = 0.0
    predicted_nodes: Any = 0.0
    actual_nodes: Any = 0.0

    @property
    def predicted(self) -> Any:
        """Number of predicted codes."""
        return self.hits + self.predicted_confused + self.predicted_outside

    @property
    def actual(self) -> Any:
        """Number of actual codes."""
        return self.hits + self.actual_confused + self.actual_outside

    @property
    def labels(self) -> Any:
        """Number of predicted codes plus the number of actual codes."""
        return self.predicted + self.actual


TALLIES = Sums8._fields
_BLOCK = 1 << 16
"""Number of documents for which products of tallies are computed at a time."""


def tally_sums(table: TallyTable) -> tuple[IntArray, IntArray]:
    """Return the sums (8,) and the sums of products (8, 8) of tallies (n, 8) of n documents.

    All sums are whole numbers, so adding up the sums of several shards is exact.
    """
    products = np.zeros((len(TALLIES), len(TALLIES)), dtype=np.int64)
    for start in range(0, len(table), _BLOCK):
        # NumPy multiplies floats by BLAS, and integers much more slowly. The sums of a block are
        # far below 2**53, so they are exact.
        rows = table[start : start + _BLOCK].astype(np.float64)
        products += (rows.T @ rows).astype(np.int64)
    return table.sum(axis=0, dtype=np.int64), products


MACROS = ("precision_macro", "recall_macro", "f1_macro")


@dataclass(frozen=True, eq=False)
class DocumentRows:
    """Numbers stored for each individual document; paired comparisons require them.

    Attributes
    ----------
    tallies : ndarray of shape (n, 8), int32
        Tallies of each document, in the order of :data:`TALLIES`.
    macros : ndarray of shape (n, 3)
        Influence values of each document on the macro averages, in the order of :data:`MACROS`.
        These values depend on every code of the document, so they cannot be computed from the
        tallies.
    """

    tallies: TallyTable
    macros: FloatArray

    def __len__(self) -> int:
        return len(self.tallies)

    @property
    def design(self) -> Design:
        """The sampling design: documents are independent and unweighted."""
        return Design(len(self))


# -- counts ---------------------------------------------------------------------------------------

MATCHINGS = ("product", "row", "column", "balanced")
UNIT = 232_792_560
"""Denominator of the stored shares: the least common multiple of 1 to 20.

A share is stored as a whole number of units of size 1/UNIT, so that the sums over shards are exact
in any order. The fractions 1/2, 1/3, ..., 1/20 are exact. Smaller fractions are rounded to a
multiple of 1/UNIT, which is about 4e-9.
"""
HITS, PREDICTED, ACTUAL, PREDICTED_OUTSIDE, ACTUAL_OUTSIDE = range(5)


@dataclass(frozen=True, eq=False)
class PairCounts(Record):
    """Pairs of an actual and a predicted code of the same family, for all matchings.

    ``keys``, shape (R,), int64, in ascending order: ``actual * L + predicted``, with the positions
    of the actual and the predicted code among the L codes.
    ``masses``, shape (R, 4), int64: mass of each pair for each matching, in the order of
    :data:`MATCHINGS`. The unit is 1 for the product matching, and 1/UNIT for the other matchings.
    ``surplus``, shape (L, 2), int64: mass, in units of 1/UNIT, that the balanced matching leaves
        over because the other side contains fewer unmatched siblings. The first column is for each
        code
    as a predicted code, the second as an actual code. This mass counts as out of family.
    """

    keys: IntArray
    masses: IntArray
    surplus: IntArray

    def to_plain(self) -> dict[str, Any]:
        """Return the arrays as plain data, by field name."""
        return {name: encode_array(getattr(self, name)) for name in ("keys", "masses", "surplus")}

    @classmethod
    def from_plain(cls, data: Any, size: int) -> PairCounts:
        """Read :meth:`to_plain`."""
        keys = _whole(data["keys"], (None,))
        if len(keys) and (keys[0] < 0 or keys[-1] >= size * size or (np.diff(keys) <= 0).any()):
            raise ValueError(f"keys of pairs must increase below {size * size}")
        return cls(keys, _whole(data["masses"], (len(keys), 4)), _whole(data["surplus"], (size, 2)))

    def renumbered(self, position: IntArray, size: int) -> PairCounts:
        """Replace each code number i by ``position[i]``, a number below ``size``."""
        old_size = len(self.surplus)
        keys = position[self.keys // old_size] * size + position[self.keys % old_size]
        order = np.argsort(keys)
        surplus = _spread(self.surplus, position, size)
        return PairCounts(keys[order], self.masses[order], surplus)

    def __add__(self, other: PairCounts) -> PairCounts:
        keys = np.concatenate((self.keys, other.keys))
        masses = np.concatenate((self.masses, other.masses))
        return PairCounts(*sum_by_key(keys, masses), self.surplus + other.surplus)

    def within(self, start: int, stop: int, matching: str) -> FloatArray:
        """Return the masses of all pairs of the codes from ``start`` to ``stop``, shape (k, k).

        Rows are actual codes, and columns are predicted codes.
        """
        size = len(self.surplus)
        low, high = np.searchsorted(self.keys, [start * size, stop * size])
        keys = self.keys[low:high]
        masses = self.masses[low:high, MATCHINGS.index(matching)].astype(np.float64)
        if matching != "product":
            masses /= UNIT
        table = np.zeros((stop - start, stop - start))
        table[keys // size - start, keys % size - start] = masses
        return table


@dataclass(frozen=True, eq=False)
class FamilyStatistics(Record):
    """Mergeable statistics of the predicted and the actual codes of documents.

    ``digest``: digest of the documents' actual codes.
    ``codes``, shape (L, 5), int64: five counts of documents for each code. The counted documents
        are those in which the code is on both sides, predicted, actual, predicted and out of
        family, or actual and out of family.
    ``pairs``: pairs of unmatched codes.
    ``patterns``, shape (R, 5), int64: family; its codes on both sides, unmatched predicted codes
        and unmatched actual codes; number of documents with these values. Documents without any
        code of the family are omitted.
    ``sums``, shape (8,), and ``products``, shape (8, 8), int64: sums of the documents' tallies and
    of the products of two tallies, computed by :func:`tally_sums`.
    ``repeated``, shape (2,), int64: the numbers of actual and of predicted codes that occurred more
        than once in a document. A repeated code counts only once.
    ``row_ids``: digest of the documents' names.
    ``together``: pairs of all codes, including matched codes; None if they were not requested.
    ``alone``, shape (L, 2), or None without ``together``: number of documents that contain the
        code, and whose other side contains no code of the same family. The first column is for each
        code as a predicted code,
    the second as an actual code.
    """

    families: Families
    digest: LabelDigest = part(lambda data, size: LabelDigest.parse(data), MISSING)
    codes: IntArray = part(lambda data, size: _whole(data, (size, 5)), MISSING)
    pairs: PairCounts = part(PairCounts.from_plain, MISSING)
    patterns: IntArray = part(lambda data, size: _whole(data, (None, 5)), MISSING)
    sums: IntArray = part(lambda data, size: _whole(data, (len(TALLIES),)), MISSING)
    products: IntArray = part(lambda data, size: _whole(data, (len(TALLIES),) * 2), MISSING)
    repeated: IntArray = part(lambda data, size: _whole(data, (2,)), MISSING)
    row_ids: LabelDigest | None = part(lambda data, size: LabelDigest.parse(data))
    together: PairCounts | None = part(PairCounts.from_plain)
    alone: IntArray | None = part(lambda data, size: _whole(data, (size, 2)))

    def to_plain(self) -> dict[str, Any]:
        """Return all fields except the families as plain data; fields that are None are omitted."""
        plain: dict[str, Any] = {}
        for item in fields(self)[1:]:
            value = getattr(self, item.name)
            if isinstance(value, np.ndarray):
                plain[item.name] = encode_array(value)
            elif value is not None:
                plain[item.name] = value.to_plain()
        return plain

    @classmethod
    def from_plain(cls, data: Any, families: Families) -> FamilyStatistics:
        """Read :meth:`to_plain`."""
        if ("together" in data) != ("alone" in data):
            raise ValueError("statistics must have both together and alone, or neither")
        size = len(families.codes)
        parts = {
            item.name: item.metadata["read"](data[item.name], size)
            for item in fields(cls)[1:]
            if item.name in data
        }
        statistics = cls(families, **parts)
        codes = statistics.codes
        if (codes[:, [HITS]] > codes[:, [PREDICTED, ACTUAL]]).any():
            raise ValueError("each side must have a code in at least as many documents as both do")
        last_family = statistics.patterns[:, 0].max(initial=0)
        if last_family >= len(families.names):
            raise ValueError(
                f"patterns must be of {len(families.names)} families, got {last_family}"
            )
        return statistics

    def __add__(self, other: FamilyStatistics) -> FamilyStatistics:
        """Merge the statistics of disjoint sets of documents; if sorted, the codes may differ."""
        families = self.families.merged(other.families)
        first = self.renumbered(families)
        second = other.renumbered(families)
        merged: dict[str, Any] = {"families": families}
        for item in fields(self)[1:]:
            name = item.name
            a = getattr(first, name)
            b = getattr(second, name)
            if (a is None) != (b is None):
                raise ValueError(
                    f"evaluations must contain the same statistics, one has no {name!r}"
                )
            if name == "patterns":
                merged[name] = count_rows(np.concatenate((a, b)))
            elif a is not None:
                merged[name] = a + b
        return FamilyStatistics(**merged)

    def renumbered(self, families: Families) -> FamilyStatistics:
        """Return the counts after renumbering codes and families as in ``families``."""
        if families == self.families:
            return self
        size = len(families.codes)
        position = np.array([families.place(code) for code in self.families.codes], dtype=np.int64)
        numbers = np.array([families.family_place(name) for name in self.families.names])
        together = self.together
        if together is not None:
            together = together.renumbered(position, size)
        alone = self.alone
        if alone is not None:
            alone = _spread(alone, position, size)
        return replace(
            self,
            families=families,
            codes=_spread(self.codes, position, size),
            pairs=self.pairs.renumbered(position, size),
            patterns=np.column_stack((numbers[self.patterns[:, 0]], self.patterns[:, 1:])),
            together=together,
            alone=alone,
        )


def _spread(table: IntArray, position: IntArray, size: int) -> IntArray:
    """Return a table of ``size`` rows, in which row ``position[i]`` is row i of the given table."""
    spread = np.zeros((size, table.shape[1]), dtype=np.int64)
    spread[position] = table
    return spread


def _whole(data: Any, shape: tuple[int | None, ...]) -> IntArray:
    """Read an array of whole numbers and check its shape; None in the shape allows any length."""
    if data == [] and shape[0] in (None, 0):
        # An empty list does not show the number of columns.
        return np.zeros((0, *shape[1:]), dtype=np.int64)  # type: ignore[arg-type]
    array = decode_counts(data, shape)
    if array.dtype.kind != "i":
        raise ValueError(f"an array must contain whole numbers, got {array.dtype}")
    return array


def sum_by_key(keys: IntArray, values: IntArray) -> tuple[IntArray, IntArray]:
    """Return the distinct keys in order, and for each key the sum of the rows of ``values``."""
    if not len(keys):
        return keys, values
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    first = np.flatnonzero(np.diff(keys, prepend=keys[0] - 1))
    return keys[first], np.add.reduceat(values[order], first, axis=0)


def count_rows(table: IntArray) -> IntArray:
    """Merge rows that differ at most in the last column, and add up the last column."""
    if not len(table):
        return table
    distinct, index = np.unique(table[:, :-1], axis=0, return_inverse=True)
    total = np.zeros(len(distinct), dtype=np.int64)
    np.add.at(total, index.ravel(), table[:, -1])
    return np.column_stack((distinct, total))
