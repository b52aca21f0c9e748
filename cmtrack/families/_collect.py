"""Statistics of label sets, collected in one pass over blocks of documents.

Codes are numbered so that those of a family, and those below any node, stand side by side. Then the keys
``document * L + code``, ``document * F + family`` and ``document * N + node`` of sorted labels are sorted too, and
everything is a search in sorted arrays: O(labels + pairs).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from cmtrack.families.counts import (
    TALLIES,
    UNIT,
    DocumentRows,
    FamilyStatistics,
    PairCounts,
    TallyTable,
    count_rows,
    sum_by_key,
    tally_sums,
)
from cmtrack.families.hierarchy import Families, LabelSets
from cmtrack.statistics.digest import LabelDigest
from cmtrack.statistics.inputs import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Runs:
    """Runs of a sorted array.

    ``key``, ``start``, ``size``, shape (R,), int64.
    ``of_item``, shape (n,), int64: the run of each item.
    """

    key: IntArray
    start: IntArray
    size: IntArray
    of_item: IntArray

    @classmethod
    def of(cls, keys: IntArray) -> Runs:
        """Find the runs of sorted keys (n,)."""
        new = np.empty(len(keys), dtype=bool)
        new[:1] = True
        np.not_equal(keys[1:], keys[:-1], out=new[1:])
        start = np.flatnonzero(new)
        return cls(keys[start], start, np.diff(start, append=len(keys)), np.cumsum(new) - 1)

    def sum(self, flags: BoolArray) -> IntArray:
        """Number of true flags in each run."""
        if not len(self.start):
            return np.zeros(0, dtype=np.int64)
        return np.add.reduceat(flags, self.start, dtype=np.int64)


def partners(ours: IntArray, theirs: IntArray) -> tuple[IntArray, IntArray]:
    """The place of each side's distinct sorted keys on the other side; -1 where they are not there."""
    mine, yours = np.full(len(ours), -1, dtype=np.int64), np.full(len(theirs), -1, dtype=np.int64)
    if len(ours) and len(theirs):
        at = np.searchsorted(theirs, ours)
        at[at == len(theirs)] = 0
        shared = np.flatnonzero(theirs[at] == ours)
        mine[shared] = at[shared]
        yours[at[shared]] = shared
    return mine, yours


# -- pairs of unmatched codes -------------------------------------------------------------------------

_PAIRS = 2_000_000  # made at a time


class Left(NamedTuple):
    """Codes of one side, ordered by (document, family), and the number of codes of each."""

    code: IntArray
    size: IntArray


class PairSum:
    """Sum of pairs.

    With a predicted and b actual codes left, a pair counts 1 (product), 1/b (row: each predicted code has mass 1), 1/a
    (column: each actual code has mass 1) and 1/max(a, b) (balanced: the mean of all largest one-to-one pairings);
    what is left of a code's balanced mass goes out of the family.
    """

    def __init__(self, families: Families) -> None:
        self._size = len(families.codes)
        self._sparse: list[tuple[IntArray, IntArray]] = []
        self._pending = 0
        self._surplus = np.zeros((self._size, 2), dtype=np.int64)

    def add(self, predicted: Left, actual: Left) -> None:
        """Add runs (G) that have the same order on both sides."""
        a, b = predicted.size, actual.size
        most = np.maximum(a, b)
        ends = np.cumsum(a * b)
        cuts = np.searchsorted(ends, np.arange(0, ends[-1] if len(ends) else 0, _PAIRS)[1:])
        edges = np.unique(np.concatenate(([0], cuts, [len(a)])))
        starts = np.cumsum(a) - a, np.cumsum(b) - b
        unit = np.stack((np.ones_like(a), _share(b), _share(a), _share(most)))
        for first, last in pairwise(edges):
            part = slice(first, last)
            times = a[part] * b[part]
            run = np.repeat(np.arange(last - first), times)
            k = np.arange(len(run)) - np.repeat(np.cumsum(times) - times, times)
            each = b[part][run]
            x = predicted.code[starts[0][part][run] + k // each]
            y = actual.code[starts[1][part][run] + k % each]
            self._sparse.append(sum_by_key(y * self._size + x, unit[:, part][:, run].T))
            self._pending += len(self._sparse[-1][0])
            if len(self._sparse) > 1 and self._pending > 4 * _PAIRS:
                self._sparse = [self._compact()]
                # what is large is not put together each time
                self._pending = len(self._sparse[0][0]) // 2
        for side, (left, mine, other) in enumerate(((predicted, a, b), (actual, b, a))):
            rest = np.where(mine > other, UNIT - other * unit[3], 0)
            if rest.any():
                np.add.at(self._surplus[:, side], left.code, np.repeat(rest, mine))

    def _compact(self) -> tuple[IntArray, IntArray]:
        if not self._sparse:
            return np.zeros(0, dtype=np.int64), np.zeros((0, 4), dtype=np.int64)
        keys, values = zip(*self._sparse, strict=True)
        return sum_by_key(np.concatenate(keys), np.concatenate(values))

    def result(self) -> PairCounts:
        """The pairs added so far."""
        return PairCounts(*self._compact(), self._surplus)


def _share(n: IntArray) -> IntArray:
    """UNIT / n, rounded."""
    return (2 * UNIT + n) // (2 * n)


# -- documents ----------------------------------------------------------------------------------------

_LABELS = 400_000  # of a block and side
_SMALL = 8  # numbers of codes below this are counted without a sort


def collect_families(
    actual: LabelSets,
    predicted: LabelSets,
    families: Families,
    *,
    remove_matches: bool = True,
    row_ids: LabelDigest | None = None,
) -> tuple[FamilyStatistics, DocumentRows]:
    """Count label sets.

    ``actual``, ``predicted``: of the same documents; code numbers are places in ``families``.
    ``remove_matches``: if False, pairs are also counted with the codes that match among them.
    The result, (FamilyStatistics, DocumentRows).
    """
    work = _Collector(families, actual.size, remove_matches)
    for first, last in _blocks(actual, predicted):
        work.add(first, last, predicted.part(first, last), actual.part(first, last))
    hits = [np.concatenate(parts) if parts else np.zeros(0, bool) for parts in work.hits]
    macros = _macro_influence(work.codes, actual, predicted, *hits)
    statistics = FamilyStatistics(
        families,
        LabelDigest.from_hashes(actual.document_hashes(families.codes)),
        work.codes,
        work.pairs.result(),
        work.patterns(),
        *tally_sums(work.tallies),
        np.array([actual.repeated, predicted.repeated], dtype=np.int64),
        row_ids,
        None if work.together is None else work.together.result(),
        work.alone,
    )
    return statistics, DocumentRows(work.tallies, macros)


def _blocks(actual: LabelSets, predicted: LabelSets) -> list[tuple[int, int]]:
    """Ranges of documents with about as many labels each."""
    labels = actual.indptr + predicted.indptr
    cuts = np.searchsorted(labels, np.arange(0, labels[-1], 2 * _LABELS)[1:])
    edges = np.unique(np.concatenate(([0], cuts, [actual.size])))
    return list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))


class _Side:
    """One side's labels of a block, and their runs by (document, family)."""

    def __init__(
        self, labels: tuple[IntArray, IntArray], hit: BoolArray, families: Families
    ) -> None:
        self.document, self.code = labels
        self.hit, n_families = hit, len(families.names)
        self.runs = Runs.of(self.document * n_families + families.family_of_code[self.code])
        self.family = self.runs.key % n_families
        self.matched = self.runs.sum(hit)
        self.left = self.runs.size - self.matched

    def meet(self, other: _Side, at: IntArray) -> None:
        """Find the unmatched siblings on the other side, ``at`` whose run each run meets, or -1."""
        self.met = at >= 0
        self.across = (
            np.where(self.met, other.left[at], 0) if len(other.left) else np.zeros_like(at)
        )
        self.outside = ~self.hit & (self.across == 0)[self.runs.of_item]

    def unmatched(self) -> Left:
        """Codes that are left on both sides."""
        some = ~self.hit & (self.across > 0)[self.runs.of_item]
        return Left(self.code[some], self.left[(self.left > 0) & (self.across > 0)])


class _Collector:
    """Sums of all documents so far."""

    def __init__(self, families: Families, documents: int, remove_matches: bool) -> None:
        size = len(families.codes)
        self.families, self.size = families, size
        self.codes = np.zeros((size, 5), dtype=np.int64)
        self.pairs = PairSum(families)
        self.together = None if remove_matches else PairSum(families)
        self.alone = None if remove_matches else np.zeros((size, 2), dtype=np.int64)
        self.tallies = np.zeros((documents, len(TALLIES)), dtype=np.int32)
        self.hits: tuple[list[BoolArray], list[BoolArray]] = ([], [])
        self._small = np.zeros((len(families.names), _SMALL**3), dtype=np.int64)
        self._large: list[IntArray] = []
        depths = families.nodes.T
        self._deeper = [
            nodes for nodes in depths if not self._is_code(nodes) and not self._is_family(nodes)
        ]
        # depths whose nodes hold a single code each
        self._like_codes = sum(map(self._is_code, depths))
        self._like_families = sum(map(self._is_family, depths))

    def _is_code(self, nodes: IntArray) -> bool:
        return bool(np.array_equal(nodes, np.arange(self.size)))

    def _is_family(self, nodes: IntArray) -> bool:
        return not self._is_code(nodes) and bool(
            np.array_equal(nodes, self.families.family_of_code)
        )

    def add(self, first: int, last: int, *labels: tuple[IntArray, IntArray]) -> None:
        """Add the documents ``first`` to ``last``, whose predicted and actual labels are given as (document, code)."""
        hits = [
            places >= 0
            for places in partners(*(documents * self.size + codes for documents, codes in labels))
        ]
        ours, theirs = (
            _Side(some, hit, self.families) for some, hit in zip(labels, hits, strict=True)
        )
        at, gold_at = partners(ours.runs.key, theirs.runs.key)
        ours.meet(theirs, at)
        theirs.meet(ours, gold_at)
        for of_side, side in zip(self.hits, (theirs, ours), strict=True):
            of_side.append(side.hit)
        gold = theirs.code[theirs.outside]
        for column, codes in enumerate(
            (ours.code[ours.hit], ours.code, theirs.code, ours.code[ours.outside], gold)
        ):
            self.codes[:, column] += np.bincount(codes, minlength=self.size)
        self._count_patterns(ours.family, ours.matched, ours.left, ours.across)
        zero = np.zeros(int((~theirs.met).sum()), dtype=np.int64)
        self._count_patterns(theirs.family[~theirs.met], zero, zero, theirs.left[~theirs.met])
        self.pairs.add(ours.unmatched(), theirs.unmatched())
        if self.together is not None and self.alone is not None:
            sides = [(side, side.met[side.runs.of_item]) for side in (ours, theirs)]
            self.together.add(
                *(Left(side.code[met], side.runs.size[side.met]) for side, met in sides)
            )
            for column, (side, met) in enumerate(sides):
                self.alone[:, column] += np.bincount(side.code[~met], minlength=self.size)
        self._count_documents(self.tallies[first:last], ours, theirs)

    def _count_patterns(
        self, family: IntArray, matched: IntArray, left: IntArray, across: IntArray
    ) -> None:
        small = np.maximum(np.maximum(matched, left), across) < _SMALL
        key = ((family * _SMALL + matched) * _SMALL + left) * _SMALL + across
        self._small += np.bincount(key[small], minlength=self._small.size).reshape(
            self._small.shape
        )
        if not small.all():
            rows = np.column_stack((family, matched, left, across, np.ones_like(family)))[~small]
            self._large.append(count_rows(rows))

    def patterns(self) -> IntArray:
        """Numbers of documents by family and pattern, shape (R, 5)."""
        family, key = np.nonzero(self._small)
        small = np.column_stack(
            (
                family,
                key // _SMALL**2,
                key // _SMALL % _SMALL,
                key % _SMALL,
                self._small[family, key],
            )
        )
        return count_rows(np.concatenate([small, *self._large]))

    def _count_documents(self, out: TallyTable, ours: _Side, theirs: _Side) -> None:
        def by_document(*documents: IntArray) -> IntArray:
            return np.column_stack([np.bincount(some, minlength=len(out)) for some in documents])

        codes = by_document(ours.document[ours.hit], ours.document, theirs.document)
        out[:, 0] = codes[:, 0]
        out[:, 3:5] = by_document(*(side.document[side.outside] for side in (ours, theirs)))
        out[:, 1:3] = codes[:, 1:] - codes[:, :1] - out[:, 3:5]
        nodes = self._like_codes * codes
        if self._like_families:
            keys, gold_keys = (side.runs.key // len(self.families.names) for side in (ours, theirs))
            nodes += self._like_families * by_document(keys[ours.met], keys, gold_keys)
        for node in self._deeper:
            many = int(node.max()) + 1
            keys, gold_keys = (
                _distinct(side.document, node[side.code], many) for side in (ours, theirs)
            )
            shared = keys[partners(keys, gold_keys)[0] >= 0]
            nodes += by_document(shared // many, keys // many, gold_keys // many)
        out[:, 5:] += nodes.astype(np.int32)


def _distinct(document: IntArray, node: IntArray, many: int) -> IntArray:
    """Sorted distinct ``document * many + node`` of labels whose nodes never decrease within a document."""
    assigned = node >= 0
    return Runs.of(document[assigned] * many + node[assigned]).key


def _macro_influence(
    codes: IntArray, actual: LabelSets, predicted: LabelSets, gold_hit: BoolArray, hit: BoolArray
) -> FloatArray:
    """Influence values (n, 3) of macro precision, recall and F1: a code of a document moves the mean of all codes."""
    hits, called, held = codes[:, 0], codes[:, 1], codes[:, 2]
    n = actual.size
    out = np.zeros((n, 3))
    for column, (side, flags, total) in enumerate(
        ((predicted, hit, called), (actual, gold_hit, held))
    ):
        value, scale = _mean_of_ratios(hits, total)
        out[:, column] = n * side.sum((flags - value[side.code]) * scale[side.code])
    value, scale = _mean_of_ratios(2 * hits, called + held)
    mine = (2 * hit - value[predicted.code]) * scale[predicted.code]
    out[:, 2] = n * (predicted.sum(mine) - actual.sum((value * scale)[actual.code]))
    return out


def _mean_of_ratios(above: IntArray, below: IntArray) -> tuple[FloatArray, FloatArray]:
    """Ratios, and one over (denominator times the number of defined ratios); 0 where undefined."""
    defined = below > 0
    value, scale = np.zeros(len(above)), np.zeros(len(above))
    np.divide(above, below, out=value, where=defined)
    np.divide(1.0, below * max(1, int(defined.sum())), out=scale, where=defined)
    return value, scale
