"""Statistics of label sets, collected in one pass over blocks of documents.

Codes are numbered so that the codes of a family, and the codes below any node, are adjacent. The
keys ``document * L + code``, ``document * F + family`` and ``document * N + node`` of sorted labels
are then also sorted, so each step is a search in sorted arrays: O(labels + pairs).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
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
    """Runs (sequences of equal values) in a sorted array.

    ``key``, shape (R,), int64: the value of each run.
    ``start``, shape (R,), int64: the position of the first item of each run.
    ``size``, shape (R,), int64: the number of items in each run.
    ``of_item``, shape (n,), int64: for each item of the array, the number of the run that contains
    it.
    """

    key: IntArray
    start: IntArray
    size: IntArray
    of_item: IntArray

    @classmethod
    def of(cls, keys: IntArray) -> Runs:
        """Find the runs of equal values in an array of sorted keys, shape (n,)."""
        is_first = np.empty(len(keys), dtype=bool)
        is_first[:1] = True
        np.not_equal(keys[1:], keys[:-1], out=is_first[1:])
        start = np.flatnonzero(is_first)
        return cls(keys[start], start, np.diff(start, append=len(keys)), np.cumsum(is_first) - 1)

    def sum(self, flags: BoolArray) -> IntArray:
        """Count the true flags within each run."""
        if not len(self.start):
            return np.zeros(0, dtype=np.int64)  # reduceat refuses an empty array
        return np.add.reduceat(flags, self.start, dtype=np.int64)


def partners(first: IntArray, second: IntArray) -> tuple[IntArray, IntArray]:
    """For each key of two sorted arrays of distinct keys, find its position in the other array.

    If the other array does not contain the key, the position is -1.
    """
    in_second = np.full(len(first), -1, dtype=np.int64)
    in_first = np.full(len(second), -1, dtype=np.int64)
    if len(first) and len(second):
        found = np.searchsorted(second, first)
        found[found == len(second)] = 0
        shared = np.flatnonzero(second[found] == first)
        in_second[shared] = found[shared]
        in_first[found[shared]] = shared
    return in_second, in_first


# -- pairs of unmatched codes -------------------------------------------------------------------

_PAIRS = 2_000_000
"""Number of pairs to create at a time; eight arrays of this length need about 130 MB."""


class GroupedCodes(NamedTuple):
    """Predicted or actual codes, ordered by document and family, and the size of each group.

    A group contains the codes of one family in one document.
    """

    code: IntArray
    size: IntArray

    @property
    def start(self) -> IntArray:
        """Position of the first code in each group."""
        return np.cumsum(self.size) - self.size


class PairSum:
    """Total mass of each pair of codes within a family, for each of the four matchings.

    If a document contains ``a`` unmatched predicted codes and ``b`` unmatched actual codes of a
    family, the matching determines how much each pair counts. A pair counts 1 (product), 1/b (row:
    the pairs of a predicted code sum to 1), 1/a (column: the pairs of an actual code sum to 1) or
    1/max(a, b) (balanced: the mean over all largest one-to-one pairings). If the balanced pairs of
    a code have a total mass of less than 1, the remainder counts as out of family.
    """

    def __init__(self, families: Families) -> None:
        self._size = len(families.codes)
        self._sums: list[tuple[IntArray, IntArray]] = []
        self._pending = 0
        self._surplus = np.zeros((self._size, 2), dtype=np.int64)

    def add(self, predicted: GroupedCodes, actual: GroupedCodes) -> None:
        """Add all pairs of codes within each group; both sides list groups in the same order."""
        a = predicted.size
        b = actual.size
        balanced = _share(np.maximum(a, b))
        shares = np.stack((np.ones_like(a), _share(b), _share(a), balanced))
        predicted_start = predicted.start
        actual_start = actual.start
        n_pairs = a * b
        pairs_end = np.cumsum(n_pairs)
        pairs_start = pairs_end - n_pairs
        for first, last in _pieces(pairs_end):
            group = np.repeat(np.arange(first, last), n_pairs[first:last])
            number = np.arange(pairs_start[first], pairs_end[last - 1]) - pairs_start[group]
            predicted_code = predicted.code[predicted_start[group] + number // b[group]]
            actual_code = actual.code[actual_start[group] + number % b[group]]
            self._add_sums(actual_code * self._size + predicted_code, shares[:, group].T)
        self._add_surplus(0, predicted, np.where(a > b, UNIT - b * balanced, 0))
        self._add_surplus(1, actual, np.where(b > a, UNIT - a * balanced, 0))

    def _add_sums(self, keys: IntArray, shares: IntArray) -> None:
        self._sums.append(sum_by_key(keys, shares))
        self._pending += len(self._sums[-1][0])
        if len(self._sums) > 1 and self._pending > 4 * _PAIRS:
            self._sums = [self._merged()]
            # Only half the length of the merged table counts as pending. If a large merged table
            # counted with its full length, each call would merge it again.
            self._pending = len(self._sums[0][0]) // 2

    def _add_surplus(self, column: int, codes: GroupedCodes, surplus: IntArray) -> None:
        if surplus.any():
            np.add.at(self._surplus[:, column], codes.code, np.repeat(surplus, codes.size))

    def _merged(self) -> tuple[IntArray, IntArray]:
        if not self._sums:
            return np.zeros(0, dtype=np.int64), np.zeros((0, 4), dtype=np.int64)
        keys, shares = zip(*self._sums, strict=True)
        return sum_by_key(np.concatenate(keys), np.concatenate(shares))

    def result(self) -> PairCounts:
        """Return the sums over all pairs added so far."""
        return PairCounts(*self._merged(), self._surplus)


def _pieces(ends: IntArray, most: int = _PAIRS) -> list[tuple[int, int]]:
    """Split groups of items into ranges, each of which contains about ``most`` items.

    ``ends``: the cumulative numbers of items after each group.
    """
    total = ends[-1:].sum()  # 0 if the sequence is empty
    cuts = np.searchsorted(ends, np.arange(0, total, most)[1:])
    edges = np.unique(np.concatenate(([0], cuts, [len(ends)])))
    return list(pairwise(edges.tolist()))


def _share(n: IntArray) -> IntArray:
    """Return UNIT / n rounded to a whole number."""
    return (2 * UNIT + n) // (2 * n)


# -- documents ----------------------------------------------------------------------------------

_LABELS = 400_000
"""Number of labels to process at a time on each side."""
_SMALL = 8
"""Number of codes below which patterns are counted in a table, which needs no sorting."""


def collect_families(
    actual: LabelSets,
    predicted: LabelSets,
    families: Families,
    *,
    remove_matches: bool = True,
    row_ids: LabelDigest | None = None,
) -> tuple[FamilyStatistics, DocumentRows]:
    """Count label sets.

    ``actual``, ``predicted``: label sets of the same documents. Code numbers are positions in
        ``families``.
    ``remove_matches``: if False, the function also counts the pairs of all codes, including
    matches.
    """
    collector = _Collector(families, actual.size, remove_matches)
    labels_end = (actual.indptr + predicted.indptr)[1:]
    for first, last in _pieces(labels_end, 2 * _LABELS):
        collector.add(first, last, predicted.part(first, last), actual.part(first, last))
    influence = _macro_influence(
        collector.codes,
        actual,
        predicted,
        np.concatenate(collector.actual_hits),
        np.concatenate(collector.predicted_hits),
    )
    sums, products = tally_sums(collector.tallies)
    statistics = FamilyStatistics(
        families,
        LabelDigest.from_hashes(actual.document_hashes(families.codes)),
        collector.codes,
        collector.pairs.result(),
        collector.patterns(),
        sums,
        products,
        np.array([actual.repeated, predicted.repeated], dtype=np.int64),
        row_ids,
    )
    if not remove_matches:
        statistics = replace(
            statistics, together=collector.together.result(), alone=collector.alone
        )
    return statistics, DocumentRows(collector.tallies, influence)


class _Side:
    """Predicted or actual labels in a block of documents, with runs by document and family."""

    def __init__(
        self, labels: tuple[IntArray, IntArray], hit: BoolArray, families: Families
    ) -> None:
        n_families = len(families.names)
        self.document, self.code = labels
        self.hit = hit
        self.runs = Runs.of(self.document * n_families + families.family_of_code[self.code])
        self.family = self.runs.key % n_families
        self.matched = self.runs.sum(hit)
        self.unmatched = self.runs.size - self.matched

    def meet(self, other: _Side, other_run: IntArray) -> None:
        """For each code, find its unmatched siblings on the other side.

        ``other_run``: for each run, the number of the run with the same document and family on the
            other side, or -1 if the other side contains no such run.
        """
        self.has_other = other_run >= 0
        # Index -1 selects the last entry, which is reserved for runs that the other side does not
        # have.
        self.siblings = np.append(other.unmatched, 0)[other_run]
        self.outside = ~self.hit & (self.siblings == 0)[self.runs.of_item]

    def confused_codes(self) -> GroupedCodes:
        """Return the unmatched codes for which the other side contains an unmatched sibling."""
        is_confused = ~self.hit & (self.siblings > 0)[self.runs.of_item]
        sizes = self.unmatched[(self.unmatched > 0) & (self.siblings > 0)]
        return GroupedCodes(self.code[is_confused], sizes)


class _Collector:
    """Accumulator that sums over all documents added so far."""

    def __init__(self, families: Families, n_documents: int, remove_matches: bool) -> None:
        self.families = families
        self.size = len(families.codes)
        self.remove_matches = remove_matches
        self.codes = np.zeros((self.size, 5), dtype=np.int64)
        self.pairs = PairSum(families)
        self.together = PairSum(families)
        self.alone = np.zeros((self.size, 2), dtype=np.int64)
        self.tallies = np.zeros((n_documents, len(TALLIES)), dtype=np.int32)
        self.predicted_hits: list[BoolArray] = []
        self.actual_hits: list[BoolArray] = []
        self._small = np.zeros((len(families.names), _SMALL**3), dtype=np.int64)
        self._large: list[IntArray] = []
        # If a node is a code or a family, its documents are already counted elsewhere.
        self._other_depths: list[IntArray] = []
        self._depths_of_codes = 0
        self._depths_of_families = 0
        for nodes in families.nodes.T:
            if np.array_equal(nodes, np.arange(self.size)):
                self._depths_of_codes += 1
            elif np.array_equal(nodes, families.family_of_code):
                self._depths_of_families += 1
            else:
                self._other_depths.append(nodes)

    def add(
        self,
        first: int,
        last: int,
        predicted_labels: tuple[IntArray, IntArray],
        actual_labels: tuple[IntArray, IntArray],
    ) -> None:
        """Add the documents ``first`` to ``last``, whose labels are given as (document, code)."""
        predicted_match, actual_match = partners(
            self._label_keys(*predicted_labels), self._label_keys(*actual_labels)
        )
        predicted = _Side(predicted_labels, predicted_match >= 0, self.families)
        actual = _Side(actual_labels, actual_match >= 0, self.families)
        actual_run, predicted_run = partners(predicted.runs.key, actual.runs.key)
        predicted.meet(actual, actual_run)
        actual.meet(predicted, predicted_run)
        self.predicted_hits.append(predicted.hit)
        self.actual_hits.append(actual.hit)

        counted = (
            predicted.code[predicted.hit],
            predicted.code,
            actual.code,
            predicted.code[predicted.outside],
            actual.code[actual.outside],
        )
        for column, codes in enumerate(counted):
            self.codes[:, column] += np.bincount(codes, minlength=self.size)
        self._count_patterns(
            predicted.family, predicted.matched, predicted.unmatched, predicted.siblings
        )
        missed = ~actual.has_other
        zero = np.zeros(int(missed.sum()), dtype=np.int64)
        self._count_patterns(actual.family[missed], zero, zero, actual.unmatched[missed])
        self.pairs.add(predicted.confused_codes(), actual.confused_codes())
        if not self.remove_matches:
            self._add_with_matches(predicted, actual)
        self._count_documents(self.tallies[first:last], predicted, actual)

    def _label_keys(self, document: IntArray, code: IntArray) -> IntArray:
        return document * self.size + code

    def _add_with_matches(self, predicted: _Side, actual: _Side) -> None:
        """Add all pairs of codes within a family, and codes whose family is only on one side."""
        groups = []
        for column, side in enumerate((predicted, actual)):
            has_other = side.has_other[side.runs.of_item]
            groups.append(GroupedCodes(side.code[has_other], side.runs.size[side.has_other]))
            self.alone[:, column] += np.bincount(side.code[~has_other], minlength=self.size)
        self.together.add(groups[0], groups[1])

    def _count_patterns(
        self, family: IntArray, matched: IntArray, predicted: IntArray, actual: IntArray
    ) -> None:
        """Count documents by family and by the family's pattern in the document.

        A pattern consists of three numbers: matched codes, unmatched predicted codes and unmatched
        actual codes.
        """
        is_small = np.maximum(np.maximum(matched, predicted), actual) < _SMALL
        key = ((family * _SMALL + matched) * _SMALL + predicted) * _SMALL + actual
        counts = np.bincount(key[is_small], minlength=self._small.size)
        self._small += counts.reshape(self._small.shape)
        if not is_small.all():
            table = np.column_stack((family, matched, predicted, actual, np.ones_like(family)))
            self._large.append(count_rows(table[~is_small]))

    def patterns(self) -> IntArray:
        """Return a table (R, 5) that gives the number of documents for each family and pattern."""
        family, key = np.nonzero(self._small)
        matched = key // _SMALL**2
        predicted = key // _SMALL % _SMALL
        actual = key % _SMALL
        small = np.column_stack((family, matched, predicted, actual, self._small[family, key]))
        return count_rows(np.concatenate([small, *self._large]))

    def _count_documents(self, tallies: TallyTable, predicted: _Side, actual: _Side) -> None:
        """Compute the tallies of each document in a block, in the order of ``TALLIES``."""

        def by_document(*labels: IntArray) -> IntArray:
            counts = [np.bincount(documents, minlength=len(tallies)) for documents in labels]
            return np.column_stack(counts)

        codes = by_document(predicted.document[predicted.hit], predicted.document, actual.document)
        outside = by_document(
            predicted.document[predicted.outside], actual.document[actual.outside]
        )
        tallies[:, 0] = codes[:, 0]
        tallies[:, 1:3] = codes[:, 1:] - codes[:, :1] - outside
        tallies[:, 3:5] = outside
        nodes = self._depths_of_codes * codes
        if self._depths_of_families:
            n_families = len(self.families.names)
            documents = predicted.runs.key // n_families
            families = by_document(
                documents[predicted.has_other], documents, actual.runs.key // n_families
            )
            nodes += self._depths_of_families * families
        for node in self._other_depths:
            n_nodes = int(node.max()) + 1
            predicted_keys = _distinct(predicted.document, node[predicted.code], n_nodes)
            actual_keys = _distinct(actual.document, node[actual.code], n_nodes)
            shared_keys = predicted_keys[partners(predicted_keys, actual_keys)[0] >= 0]
            nodes += by_document(
                shared_keys // n_nodes, predicted_keys // n_nodes, actual_keys // n_nodes
            )
        tallies[:, 5:] += nodes.astype(np.int32)


def _distinct(document: IntArray, node: IntArray, n_nodes: int) -> IntArray:
    """Return the labels' distinct keys ``document * n_nodes + node`` in ascending order.

    The nodes of a document must be in ascending order. A node of -1 marks a label without a node.
    """
    has_node = node >= 0
    return Runs.of(document[has_node] * n_nodes + node[has_node]).key


def _macro_influence(
    codes: IntArray,
    actual: LabelSets,
    predicted: LabelSets,
    actual_hit: BoolArray,
    predicted_hit: BoolArray,
) -> FloatArray:
    """Return the influence of each document on macro precision, recall and F1, shape (n, 3).

    Each code in a document changes only the ratio of this code. The influence of the document is
    the sum of these changes divided by the number of codes.
    """
    n = actual.size
    n_hits, n_predicted, n_actual = codes[:, :3].T
    precision, scale = _mean_of_ratios(n_hits, n_predicted)
    of_precision = (predicted_hit - precision[predicted.code]) * scale[predicted.code]
    recall, scale = _mean_of_ratios(n_hits, n_actual)
    of_recall = (actual_hit - recall[actual.code]) * scale[actual.code]
    f1, scale = _mean_of_ratios(2 * n_hits, n_predicted + n_actual)
    of_f1 = (2 * predicted_hit - f1[predicted.code]) * scale[predicted.code]
    by_document = (
        predicted.sum(of_precision),
        actual.sum(of_recall),
        predicted.sum(of_f1) - actual.sum((f1 * scale)[actual.code]),
    )
    return n * np.column_stack(by_document)


def _mean_of_ratios(above: IntArray, below: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return ratios, and the amount by which their mean increases if a numerator increases by 1.

    For an undefined ratio, the increase is 0.
    """
    defined = below > 0
    value = np.zeros(len(above))
    scale = np.zeros(len(above))
    np.divide(above, below, out=value, where=defined)
    np.divide(1.0, below * max(1, int(defined.sum())), out=scale, where=defined)
    return value, scale
