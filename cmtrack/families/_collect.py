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
                self._pending = len(self._sparse[0][0]) // 2  # what is large is not put together each time
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
        work.add(first, last, actual.part(first, last), predicted.part(first, last))
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


@dataclass(frozen=True)
class _Side:
    """One side's labels of a block: document, code, hit, place of their (document, family) run."""

    document: IntArray
    code: IntArray
    hit: BoolArray
    runs: Runs


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
        self._deeper = [nodes for nodes in depths if not self._is_code(nodes) and not self._is_family(nodes)]
        self._like_codes = sum(map(self._is_code, depths))  # depths whose nodes hold a single code each
        self._like_families = sum(map(self._is_family, depths))

    def _is_code(self, nodes: IntArray) -> bool:
        return bool(np.array_equal(nodes, np.arange(self.size)))

    def _is_family(self, nodes: IntArray) -> bool:
        return not self._is_code(nodes) and bool(np.array_equal(nodes, self.families.family_of_code))

    def add(
        self, first: int, last: int, actual: tuple[IntArray, IntArray], predicted: tuple[IntArray, IntArray]
    ) -> None:
        """Add the documents ``first`` to ``last``, whose labels are given as (document, code)."""
        (gold_document, gold), (document, code) = actual, predicted
        places, gold_places = partners(document * self.size + code, gold_document * self.size + gold)
        hit, gold_hit = places >= 0, gold_places >= 0
        n_families, family = len(self.families.names), self.families.family_of_code
        ours = _Side(document, code, hit, Runs.of(document * n_families + family[code]))
        theirs = _Side(gold_document, gold, gold_hit, Runs.of(gold_document * n_families + family[gold]))
        self.hits[0].append(gold_hit)
        self.hits[1].append(hit)
        at, gold_at = partners(ours.runs.key, theirs.runs.key)
        matched, gold_matched = ours.runs.sum(hit), theirs.runs.sum(gold_hit)
        left, gold_left = ours.runs.size - matched, theirs.runs.size - gold_matched
        across, gold_across = _partner(gold_left, at), _partner(left, gold_at)  # unmatched siblings on the other side
        outside = ~hit & (across == 0)[ours.runs.of_item]
        gold_outside = ~gold_hit & (gold_across == 0)[theirs.runs.of_item]
        for column, codes in enumerate((code[hit], code, gold, code[outside], gold[gold_outside])):
            self.codes[:, column] += np.bincount(codes, minlength=self.size)
        self._count_patterns(ours.runs.key % n_families, matched, left, across)
        alone = gold_at < 0
        zero = np.zeros(int(alone.sum()), dtype=np.int64)
        self._count_patterns(theirs.runs.key[alone] % n_families, zero, zero, gold_left[alone])
        kept, gold_kept = ~hit & (across > 0)[ours.runs.of_item], ~gold_hit & (gold_across > 0)[theirs.runs.of_item]
        both = (left > 0) & (across > 0)
        gold_both = (gold_left > 0) & (gold_across > 0)
        self.pairs.add(Left(code[kept], left[both]), Left(gold[gold_kept], gold_left[gold_both]))
        if self.together is not None and self.alone is not None:
            met, gold_met = at >= 0, gold_at >= 0
            every, gold_every = met[ours.runs.of_item], gold_met[theirs.runs.of_item]
            self.together.add(
                Left(code[every], ours.runs.size[met]), Left(gold[gold_every], theirs.runs.size[gold_met])
            )
            self.alone[:, 0] += np.bincount(code[~every], minlength=self.size)
            self.alone[:, 1] += np.bincount(gold[~gold_every], minlength=self.size)
        self._count_documents(first, last, ours, theirs, (outside, gold_outside), at)

    def _count_patterns(self, family: IntArray, matched: IntArray, left: IntArray, across: IntArray) -> None:
        small = np.maximum(np.maximum(matched, left), across) < _SMALL
        key = ((family * _SMALL + matched) * _SMALL + left) * _SMALL + across
        self._small += np.bincount(key[small], minlength=self._small.size).reshape(self._small.shape)
        if not small.all():
            rows = np.column_stack((family, matched, left, across, np.ones_like(family)))[~small]
            self._large.append(count_rows(rows))

    def patterns(self) -> IntArray:
        """Numbers of documents by family and pattern, shape (R, 5)."""
        family, key = np.nonzero(self._small)
        small = np.column_stack(
            (family, key // _SMALL**2, key // _SMALL % _SMALL, key % _SMALL, self._small[family, key])
        )
        return count_rows(np.concatenate([small, *self._large]))

    def _count_documents(
        self, first: int, last: int, ours: _Side, theirs: _Side, outside: tuple[BoolArray, BoolArray], at: IntArray
    ) -> None:
        size, out = last - first, self.tallies[first:last]

        def by_document(documents: IntArray) -> IntArray:
            return np.bincount(documents, minlength=size)

        predicted, actual = by_document(ours.document), by_document(theirs.document)
        hits = by_document(ours.document[ours.hit])
        for column, (side, beyond, total) in enumerate(((ours, outside[0], predicted), (theirs, outside[1], actual))):
            out[:, 3 + column] = by_document(side.document[beyond])
            out[:, 1 + column] = total - hits - out[:, 3 + column]
        out[:, 0] = hits
        out[:, 5:] += (self._like_codes * np.column_stack((hits, predicted, actual))).astype(np.int32)
        n_families = len(self.families.names)
        if self._like_families:
            keys, gold_keys = ours.runs.key // n_families, theirs.runs.key // n_families
            nodes_of = np.column_stack(tuple(map(by_document, (keys[at >= 0], keys, gold_keys))))
            out[:, 5:] += (self._like_families * nodes_of).astype(np.int32)
        for nodes in self._deeper:
            many = int(nodes.max()) + 1
            keys, gold_keys = (_distinct(s.document, nodes[s.code], many) for s in (ours, theirs))
            out[:, 5] += by_document(keys[partners(keys, gold_keys)[0] >= 0] // many).astype(np.int32)
            out[:, 6] += by_document(keys // many).astype(np.int32)
            out[:, 7] += by_document(gold_keys // many).astype(np.int32)


def _partner(counts: IntArray, at: IntArray) -> IntArray:
    """Counts of the other side's runs; 0 without one."""
    if not len(counts):
        return np.zeros(len(at), dtype=np.int64)
    return np.where(at >= 0, counts[at], 0)


def _distinct(document: IntArray, node: IntArray, many: int) -> IntArray:
    """Sorted distinct ``document * many + node`` of labels whose nodes never decrease within a document."""
    kept = node >= 0
    return Runs.of(document[kept] * many + node[kept]).key


def _macro_influence(
    codes: IntArray, actual: LabelSets, predicted: LabelSets, gold_hit: BoolArray, hit: BoolArray
) -> FloatArray:
    """Influence values (n, 3) of macro precision, recall and F1: a code of a document moves the mean of all codes."""
    hits, called, held = codes[:, 0], codes[:, 1], codes[:, 2]
    n = actual.size
    out = np.zeros((n, 3))
    for column, (side, flags, total) in enumerate(((predicted, hit, called), (actual, gold_hit, held))):
        value, scale = _mean_of_ratios(hits, total)
        out[:, column] = n * side.sum((flags - value[side.code]) * scale[side.code])
    value, scale = _mean_of_ratios(2 * hits, called + held)
    mine = (2 * hit - value[predicted.code]) * scale[predicted.code]
    out[:, 2] = n * (predicted.sum(mine) - actual.sum((value * scale)[actual.code]))
    return out


def _mean_of_ratios(above: IntArray, below: IntArray) -> tuple[FloatArray, FloatArray]:
    """Ratios, and one over (denominator times the number of defined ratios); 0 where undefined."""
    known = below > 0
    value, scale = np.zeros(len(above)), np.zeros(len(above))
    np.divide(above, below, out=value, where=known)
    np.divide(1.0, below * max(1, int(known.sum())), out=scale, where=known)
    return value, scale
