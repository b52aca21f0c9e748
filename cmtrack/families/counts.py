"""Mergeable statistics of label sets in families.

:class:`DocumentRows` has the tallies of each document. :class:`FamilyStatistics` has counts of
documents, codes and pairs of codes.
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
    """Sums of the documents' tallies.

    A document's tallies are the number of codes on both sides, the number of other codes with and
    without an unmatched sibling on the other side, and the number of nodes of its codes with their
    ancestors.
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
        """Predicted codes."""
        return self.hits + self.predicted_confused + self.predicted_outside

    @property
    def actual(self) -> Any:
        """Actual codes."""
        return self.hits + self.actual_confused + self.actual_outside

    @property
    def labels(self) -> Any:
        """Predicted and actual codes together."""
        return self.predicted + self.actual


TALLIES = Sums8._fields
_BLOCK = 1 << 16
"""Number of documents whose tallies are multiplied at a time."""


def tally_sums(table: TallyTable) -> tuple[IntArray, IntArray]:
    """Return sums (8,) and sums of products (8, 8) of documents' tallies (n, 8).

    These are whole numbers, so the sums of shards add up exactly.
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
    """Numbers of each single document, which paired comparisons need.

    Attributes
    ----------
    tallies : ndarray of shape (n, 8), int32
        In the order of :data:`TALLIES`.
    macros : ndarray of shape (n, 3)
        Influence values of :data:`MACROS`, which depend on every code of a document.
    """

    tallies: TallyTable
    macros: FloatArray

    def __len__(self) -> int:
        return len(self.tallies)

    @property
    def design(self) -> Design:
        """The design of the documents, which are independent and have no weights."""
        return Design(len(self))


# -- counts ---------------------------------------------------------------------------------------

MATCHINGS = ("product", "row", "column", "balanced")
UNIT = 232_792_560
"""Shares are stored as whole numbers of 1/UNIT, the least common multiple of 1 to 20, so that
shards add up exactly, in any order. Halves, thirds, ... twentieths are exact. Smaller shares are
rounded to 4e-9."""
HITS, PREDICTED, ACTUAL, PREDICTED_OUTSIDE, ACTUAL_OUTSIDE = range(5)


@dataclass(frozen=True, eq=False)
class PairCounts(Record):
    """Pairs of an actual and a predicted code of the same family, for all matchings.

    ``keys``, shape (R,), int64, increasing: ``actual * L + predicted``, positions among the codes.
    ``masses``, shape (R, 4), int64: by :data:`MATCHINGS`; the product in units of 1, the others in
        1/UNIT.
    ``surplus``, shape (L, 2), int64: balanced mass, in 1/UNIT, of predicted and of actual codes
        that have siblings on the other side, but too few of them. This mass is out of family.
    """

    keys: IntArray
    masses: IntArray
    surplus: IntArray

    def to_plain(self) -> dict[str, Any]:
        """Return the arrays by name as plain data."""
        return {name: encode_array(getattr(self, name)) for name in ("keys", "masses", "surplus")}

    @classmethod
    def from_plain(cls, data: Any, size: int) -> PairCounts:
        """Read :meth:`to_plain`."""
        keys = _whole(data["keys"], (None,))
        if len(keys) and (keys[0] < 0 or keys[-1] >= size * size or (np.diff(keys) <= 0).any()):
            raise ValueError(f"keys of pairs must increase below {size * size}")
        return cls(keys, _whole(data["masses"], (len(keys), 4)), _whole(data["surplus"], (size, 2)))

    def renumbered(self, position: IntArray, size: int) -> PairCounts:
        """Return the pairs with new code numbers below ``size``: i becomes ``position[i]``."""
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
        """Return the masses of the pairs among codes ``start`` to ``stop``, shape (k, k).

        Rows are actual codes, columns predicted ones.
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
    """Mergeable statistics of documents' predicted and actual codes.

    ``digest``: digest of the documents' actual codes.
    ``codes``, shape (L, 5), int64: number of documents for each code: code on both sides,
        predicted, actual, predicted out of family, actual out of family.
    ``pairs``: pairs of unmatched codes.
    ``patterns``, shape (R, 5), int64: family; its codes on both sides, unmatched predicted codes
        and unmatched actual codes; number of documents with these values. Documents without a code
        of the family are left out.
    ``sums``, shape (8,), and ``products``, shape (8, 8), int64: of the documents' tallies, from
        :func:`tally_sums`.
    ``repeated``, shape (2,), int64: number of actual and of predicted codes that occurred more
        than once in a document. Each counts once.
    ``row_ids``: digest of the documents' names.
    ``together``: pairs of all codes, including matched ones; None unless requested.
    ``alone``, shape (L, 2) or None: with ``together``: documents whose other side has no code at
        all of the family, by predicted and actual code.
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
        """Return everything except the families as plain data, without absent parts."""
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
        """Merge disjoint sets of documents; sorted codes may differ."""
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
        """Return the counts, renumbered by the positions of codes and families in ``families``."""
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
    """Return a table with ``size`` rows; row i of the table (L, c) goes to ``position[i]``."""
    spread = np.zeros((size, table.shape[1]), dtype=np.int64)
    spread[position] = table
    return spread


def _whole(data: Any, shape: tuple[int | None, ...]) -> IntArray:
    """Read an array of whole numbers; None in its shape is any length."""
    if data == [] and shape[0] in (None, 0):
        # The number of columns of a list without rows is unknown.
        return np.zeros((0, *shape[1:]), dtype=np.int64)  # type: ignore[arg-type]
    array = decode_counts(data, shape)
    if array.dtype.kind != "i":
        raise ValueError(f"an array must contain whole numbers, got {array.dtype}")
    return array


def sum_by_key(keys: IntArray, values: IntArray) -> tuple[IntArray, IntArray]:
    """Return the distinct keys in order, and the sums of the rows of ``values`` (n, c) per key."""
    if not len(keys):
        return keys, values
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    first = np.flatnonzero(np.diff(keys, prepend=keys[0] - 1))
    return keys[first], np.add.reduceat(values[order], first, axis=0)


def count_rows(table: IntArray) -> IntArray:
    """Return the distinct rows, in order, with the sums of their last column."""
    if not len(table):
        return table
    distinct, index = np.unique(table[:, :-1], axis=0, return_inverse=True)
    total = np.zeros(len(distinct), dtype=np.int64)
    np.add.at(total, index.ravel(), table[:, -1])
    return np.column_stack((distinct, total))
