"""Statistics of label sets in families, and their merge.

What each document adds up to (:class:`DocumentRows`), and counts of documents, codes and pairs of
codes (:class:`FamilyStatistics`).
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

    Of a document: codes on both sides; other codes with, and without, an unmatched sibling on the
    other side; nodes of the codes with their ancestors.
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


def tally_sums(table: TallyTable) -> tuple[IntArray, IntArray]:
    """Sums (8,) and sums of products (8, 8) of documents' tallies (n, 8): whole numbers, so shards add up exactly."""
    products = np.zeros((len(TALLIES),) * 2, dtype=np.int64)
    for start in range(0, len(table), 1 << 16):
        # exact: the products stay far below 2**53
        rows = table[start : start + (1 << 16)].astype(np.float64)
        products += (rows.T @ rows).astype(np.int64)
    return table.sum(axis=0, dtype=np.int64), products


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
    """

    tallies: TallyTable
    macros: FloatArray

    def __len__(self) -> int:
        return len(self.tallies)

    @property
    def design(self) -> Design:
        """The design of the documents: they have no weights and stand for themselves."""
        return Design(len(self))


# -- counts ---------------------------------------------------------------------------------------

MATCHINGS = ("product", "row", "column", "balanced")
UNIT = 232_792_560
"""Shares are kept as whole numbers of 1/UNIT, the least common multiple of 1 to 20: shards add up
exactly, in any order. Halves, thirds, ... twentieths are exact; a share of more siblings is rounded
to 4e-9."""
HITS, PREDICTED, ACTUAL, PREDICTED_OUTSIDE, ACTUAL_OUTSIDE = range(5)


@dataclass(frozen=True, eq=False)
class PairCounts(Record):
    """Pairs of an actual and a predicted code of one family, for every matching at once.

    ``keys``, shape (R,), int64, increasing: ``actual * L + predicted``, places among the codes.
    ``masses``, shape (R, 4), int64: by :data:`MATCHINGS`; the product in ones, the others in
        1/UNIT.
    ``surplus``, shape (L, 2), int64: balanced mass, in 1/UNIT, of predicted and of actual codes
        that goes out of the family although there are siblings, because there are fewer of them.
    """

    keys: IntArray
    masses: IntArray
    surplus: IntArray

    def to_plain(self) -> dict[str, Any]:
        """The arrays by name as plain data."""
        return {name: encode_array(getattr(self, name)) for name in ("keys", "masses", "surplus")}

    @classmethod
    def from_plain(cls, data: Any, size: int) -> PairCounts:
        """Read :meth:`to_plain`."""
        keys = _whole(data["keys"], (None,))
        if len(keys) and (keys[0] < 0 or keys[-1] >= size * size or (np.diff(keys) <= 0).any()):
            raise ValueError(f"keys of pairs must increase below {size * size}")
        return cls(keys, _whole(data["masses"], (len(keys), 4)), _whole(data["surplus"], (size, 2)))

    def placed(self, place: IntArray, size: int) -> PairCounts:
        """The same pairs renumbered among ``size`` codes: code i becomes ``place[i]``."""
        old = len(self.surplus)
        keys = place[self.keys // old] * size + place[self.keys % old]
        surplus = np.zeros((size, 2), dtype=np.int64)
        surplus[place] = self.surplus
        order = np.argsort(keys)
        return PairCounts(keys[order], self.masses[order], surplus)

    def __add__(self, other: PairCounts) -> PairCounts:
        keys, masses = sum_by_key(
            np.concatenate((self.keys, other.keys)), np.concatenate((self.masses, other.masses))
        )
        return PairCounts(keys, masses, self.surplus + other.surplus)

    def within(self, start: int, stop: int, matching: str) -> FloatArray:
        """Masses of the pairs of codes ``start`` to ``stop``, shape (k, k), rows actual, columns predicted."""
        size, width = len(self.surplus), stop - start
        low, high = np.searchsorted(self.keys, [start * size, stop * size])
        keys, column = self.keys[low:high], MATCHINGS.index(matching)
        out = np.zeros((width, width))
        out[keys // size - start, keys % size - start] = self.masses[low:high, column] / (
            1 if column == 0 else UNIT
        )
        return out


@dataclass(frozen=True, eq=False)
class FamilyStatistics(Record):
    """Mergeable statistics of documents' predicted and actual codes.

    ``digest``: of the documents' actual codes.
    ``codes``, shape (L, 5), int64: documents by code: with the code on both sides, predicted,
        actual, predicted out of family, actual out of family.
    ``pairs``: of unmatched codes.
    ``patterns``, shape (R, 5), int64: family, codes on both sides, unmatched predicted, unmatched
        actual codes of it, and the number of documents that are so; documents without a code of the
        family are left out.
    ``sums``, shape (8,), and ``products``, shape (8, 8), int64: of the documents' tallies, from
        :func:`tally_sums`.
    ``repeated``, shape (2,), int64: codes that stood more than once in a document (each counts
        once), actual and predicted.
    ``row_ids``: of the documents' names.
    ``together``: of all codes, the matched ones among them, where this was asked for.
    ``alone``, shape (L, 2) or None: with ``together``: documents whose other side has no code of
        the family at all, by predicted and actual code.
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
        """All but the families as plain data, without what is absent."""
        parts = {item.name: getattr(self, item.name) for item in fields(self)[1:]}
        return {
            name: encode_array(value) if isinstance(value, np.ndarray) else value.to_plain()
            for name, value in parts.items()
            if value is not None
        }

    @classmethod
    def from_plain(cls, data: Any, families: Families) -> FamilyStatistics:
        """Read :meth:`to_plain`."""
        read = {item.name: item.metadata["read"] for item in fields(cls)[1:] if item.name in data}
        made = cls(
            families,
            **{name: decode(data[name], len(families.codes)) for name, decode in read.items()},
        )
        if (made.codes[:, [HITS]] > made.codes[:, [PREDICTED, ACTUAL]]).any():
            raise ValueError("a code must be on each side in no fewer documents than on both")
        if made.patterns[:, 0].max(initial=0) >= len(families.names):
            raise ValueError(
                f"patterns must be of {len(families.names)} families, got {made.patterns[:, 0].max()}"
            )
        return made

    def __add__(self, other: FamilyStatistics) -> FamilyStatistics:
        """Merge disjoint sets of documents; sorted codes may differ."""
        families = self.families.merged(other.families)
        ours, theirs = self.placed(families), other.placed(families)
        merged: dict[str, Any] = {"families": families}
        for item in fields(self)[1:]:
            a, b = getattr(ours, item.name), getattr(theirs, item.name)
            if (a is None) != (b is None):
                raise ValueError(
                    f"evaluations must hold the same statistics, one has no {item.name!r}"
                )
            if item.name == "patterns":
                merged[item.name] = count_rows(np.concatenate((a, b)))
            else:
                merged[item.name] = None if a is None else a + b
        return FamilyStatistics(**merged)

    def placed(self, families: Families) -> FamilyStatistics:
        """The same counts with codes, and families, at other places."""
        if families == self.families:
            return self
        place = np.array([families.place(code) for code in self.families.codes], dtype=np.int64)
        at = {name: f for f, name in enumerate(families.names)}
        home = np.array([at[name] for name in self.families.names], dtype=np.int64)
        size = len(families.codes)

        def spread(table: IntArray) -> IntArray:
            out = np.zeros((size, table.shape[1]), dtype=np.int64)
            out[place] = table
            return out

        patterns = np.column_stack((home[self.patterns[:, 0]], self.patterns[:, 1:]))
        return replace(
            self,
            families=families,
            codes=spread(self.codes),
            pairs=self.pairs.placed(place, size),
            patterns=patterns,
            together=None if self.together is None else self.together.placed(place, size),
            alone=None if self.alone is None else spread(self.alone),
        )


def _whole(data: Any, shape: tuple[int | None, ...]) -> IntArray:
    if data == [] and shape[0] in (None, 0):  # an empty table loses its second dimension as a list
        return np.zeros(tuple(n or 0 for n in shape), dtype=np.int64)
    array = decode_counts(data, shape)
    if array.dtype.kind != "i":
        raise ValueError(f"an array must hold whole numbers, got {array.dtype}")
    return array


def sum_by_key(keys: IntArray, values: IntArray) -> tuple[IntArray, IntArray]:
    """Distinct keys in order, and the sums of the rows of ``values`` (n, c) by key."""
    if not len(keys):
        return keys, values
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    first = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))
    return keys[first], np.add.reduceat(values[order], first, axis=0)


def count_rows(table: IntArray) -> IntArray:
    """Distinct rows without their last column, in order, with the sums of the last column."""
    if not len(table):
        return table
    distinct, index = np.unique(table[:, :-1], axis=0, return_inverse=True)
    total = np.zeros(len(distinct), dtype=np.int64)
    np.add.at(total, index.ravel(), table[:, -1])
    return np.column_stack((distinct, total))
