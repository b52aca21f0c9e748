"""The kernel for tables: it counts batches of columns, and tallies can be merged in any order.

A :class:`Kernel` is sent to where the rows are, and a :class:`Tally` counts the batches there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from cmtrack.grouping import Label
from cmtrack.statistics import scores
from cmtrack.statistics.collected import Statistics, count_rows, finished, merged, with_segments
from cmtrack.statistics.counted_for import Counting
from cmtrack.statistics.counting import Codes
from cmtrack.statistics.digest import LabelDigest, label_hashes
from cmtrack.statistics.faults import Faults
from cmtrack.statistics.inputs import IntArray, as_weights, n_nulls
from cmtrack.statistics.labels import number_as_they_come, number_labels
from cmtrack.statistics.probabilities import Normalize, Probabilities
from cmtrack.statistics.segment_values import Divisions, SegmentRows, divided

MODULUS = 2**31 - 1
"""Prime modulus for integer row ids, which makes sums of their powers exact in 64 bits."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Columns of n rows; None for absent columns.

    ``actual``, ``predicted``: NumPy arrays, or Arrow arrays for strings and for missing labels.
    ``scores``, shape (n,): the given columns of probabilities.
    ``weights``, shape (n,).
    ``row_ids``: integers, or Arrow strings.
    ``lengths``: number of rows by the length of their list of probabilities.
    ``segments``: columns that divide the rows into segments.
    ``copies``: number of rows that each entry represents, if a source without weights grouped rows
        with the same labels.
    """

    n_rows: int
    actual: Any = None
    predicted: Any = None
    scores: tuple[npt.NDArray[Any], ...] = ()
    weights: npt.NDArray[Any] | None = None
    row_ids: Any = None
    lengths: Counter[int] | None = None
    segments: Mapping[Hashable, SegmentRows] = field(default_factory=dict)
    copies: npt.NDArray[Any] | None = None

    @property
    def labels(self) -> dict[str, Any]:
        """Columns of labels by the name of the argument that contains them."""
        columns = {"y_true": self.actual, "y_pred": self.predicted}
        return {name: column for name, column in columns.items() if column is not None}


@dataclass(frozen=True, eq=False)
class Kernel:
    """Options for counting a batch, which can be pickled and sent to where the rows are.

    ``counting``: options of the statistics. If None, classes are read from the rows, and there are
        no probabilities.
    ``places``: for each possible number of probability columns, the column of each class. With two
        classes, -1 is the class whose probability is 1 minus the probability of the other class. If
        empty, only labels and faults are collected.
    ``normalize``, "warn", True or False.
    ``weights_are``, "frequency" or "sampling": kind of the weights, if there are any.
    ``exact_rows``: largest number of rows for which scores are counted one by one.
    ``segments``: columns, and combinations of columns, that divide the rows into segments.
    """

    counting: Counting | None
    places: Mapping[int, list[int]] = field(default_factory=dict)
    normalize: Normalize = False
    weights_are: str | None = None
    only_faults: bool = False
    exact_rows: int = field(default_factory=lambda: scores.EXACT_ROWS)
    segments: Divisions = ()

    @property
    def labels(self) -> tuple[Label, ...] | None:
        """Classes in order; None if they are read from the rows."""
        return None if self.counting is None else self.counting.labels


class Tally:
    """The counts of all batches so far.

    Tallies of disjoint rows add up to the tally of all rows, for any number of batches in any
    order. Counts are exact, and moments are exact up to rounding.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.faults = Faults()
        self.seen: dict[str, set[Any]] = {}
        self.weights_are_zero: bool | None = None
        self._counts: dict[str, Any] | None = None

    def add(self, batch: Batch) -> None:
        """Count the rows of a batch; if some are invalid, only faults are counted."""
        lengths = batch.lengths or Counter()
        self.faults += Faults(batch.n_rows, lengths=lengths)
        # Lists of different lengths, or missing lists, cannot be read as columns.
        if not batch.n_rows or len(lengths) > 1 or -1 in lengths:
            return
        try:
            self._count(batch)
        except ValueError:
            if not self._look_for_faults(batch):
                raise
        if batch.weights is not None:
            self._note_weights(not batch.weights.any())

    def __add__(self, other: Tally) -> Tally:
        """Merge both sets of rows; neither tally may be used afterwards."""
        self.faults += other.faults
        if other.weights_are_zero is not None:
            self._note_weights(other.weights_are_zero)
        for name, labels in other.seen.items():
            self.seen.setdefault(name, set()).update(labels)
        if other._counts is not None:
            self._keep(other._counts)
        return self

    def statistics(
        self, labels: tuple[Label, ...], categories: Mapping[str, Sequence[Any]] | None = None
    ) -> Statistics:
        """Return the statistics of all rows.

        ``labels``: the classes in the required order.
        ``categories``: values of segments in the required order, by column.
        """
        if self._counts is None:
            raise ValueError("statistics need rows that could be counted, got none")
        whole = finished(self._counts).apply(
            lambda sums: replace(sums, matrix=sums.matrix.arranged(labels))
        )
        return with_segments(whole, lambda segments: segments.arranged(labels).checked(categories))

    def _count(self, batch: Batch) -> None:
        kernel = self.kernel
        if kernel.only_faults:
            self._look_for_faults(batch)
        elif kernel.counting is None:
            self._keep(_count_as_they_come(batch, kernel, self.seen))
        elif len(batch.scores) in kernel.places or not kernel.places:
            self._keep(_count(batch, kernel, kernel.counting, self._limit))

    @property
    def _limit(self) -> int:
        """Largest number of rows whose scores are counted one by one in the next batch."""
        scores_before = None if self._counts is None else self._counts.get("scores")
        if scores_before is None or scores_before.exact:
            return self.kernel.exact_rows
        return 0

    def _keep(self, counts: dict[str, Any]) -> None:
        # If there are faults, an error follows, so counts are not needed.
        if not self.faults:
            self._counts = counts if self._counts is None else merged(self._counts, counts)

    def _note_weights(self, are_zero: bool) -> None:
        self.weights_are_zero = self.weights_are_zero is not False and are_zero

    def _look_for_faults(self, batch: Batch) -> bool:
        """Add the faults of a batch, and return whether it has any."""
        kernel = self.kernel
        faults = Faults()
        for name, column in batch.labels.items():
            faults = faults.with_labels(name, column, kernel.labels)
        if batch.scores:
            faults = faults.with_scores(batch.scores, kernel.normalize)
        if batch.weights is not None:
            faults = faults.with_weights(batch.weights, kernel.weights_are)
        if n_nulls(batch.row_ids):
            faults += Faults(missing=Counter({"row_ids": n_nulls(batch.row_ids)}))
        self.faults += faults
        return bool(faults)


def _count(batch: Batch, kernel: Kernel, counting: Counting, limit: int) -> dict[str, Any]:
    """Return the parts of the statistics of a batch whose classes are known.

    ``limit``: largest number of rows for which scores are counted one by one.
    """
    weights = _weights(batch, kernel)
    labels = counting.labels
    predicted = None
    pairs = None
    if batch.labels:
        numbered = number_labels(batch.labels, labels)
        actual = numbered.codes["y_true"]
        predicted = numbered.codes.get("y_pred")
        if predicted is not None:
            pairs = numbered.count("y_true", "y_pred", weights)
    else:
        # The rows are a target, which has no actual classes.
        actual = Codes(np.zeros(batch.n_rows, dtype=np.int8))
    probabilities = None
    if batch.scores:
        place = kernel.places[len(batch.scores)]
        columns = [batch.scores[c] for c in place if c >= 0]
        is_first = place[0] >= 0 > place[-1]
        probabilities = Probabilities(columns, first=is_first, normalize=kernel.normalize)
    counts, _ = count_rows(
        counting,
        actual,
        predicted,
        probabilities=probabilities,
        weights=weights,
        pairs=pairs,
        exact_rows=limit,
        threads=1,
        segments=divided(batch.segments, kernel.segments),
    )
    return _with_digests(counts, batch, actual, labels)


def _count_as_they_come(batch: Batch, kernel: Kernel, seen: dict[str, set[Any]]) -> dict[str, Any]:
    """Count a batch by the classes that occur in it, in sorted order, if classes are unknown.

    ``seen``: the labels of each column so far. The function adds the labels of the batch.
    """
    labels, codes = number_as_they_come(batch.labels)
    for name, column in codes.items():
        present = np.unique(column.all())
        seen.setdefault(name, set()).update(labels[code] for code in present)
    if len(codes) == 1:
        return {}
    actual = codes["y_true"]
    counts, _ = count_rows(
        Counting(labels),
        actual,
        codes["y_pred"],
        weights=_weights(batch, kernel),
        segments=divided(batch.segments, kernel.segments),
    )
    return _with_digests(counts, batch, actual, labels)


def _with_digests(
    counts: dict[str, Any], batch: Batch, actual: Codes, labels: tuple[Label, ...]
) -> dict[str, Any]:
    if batch.weights is None:
        rows = counts["matrix"].stored.sum(axis=1)
    else:
        rows = np.bincount(actual.all(), minlength=len(labels))
    digest = LabelDigest.unordered(rows, labels)
    for sums in (counts, counts.get("squares", {})):
        sums["digest"] = digest
    if batch.row_ids is not None:
        counts["row_ids"] = _digest_of_ids(batch.row_ids, actual.all(), rows, labels)
    return counts


def _weights(batch: Batch, kernel: Kernel) -> npt.NDArray[Any] | None:
    """Return checked weights of the kernel's kind."""
    if batch.copies is not None:
        return batch.copies
    return as_weights(batch.weights, batch.n_rows, kernel.weights_are, may_be_zero=True)


def _digest_of_ids(
    ids: Any, actual: IntArray, rows: IntArray, labels: tuple[Label, ...]
) -> LabelDigest:
    """Return the digest of row ids without an order.

    For integer ids, the digest depends on the label of each id. For strings, it equals the digest
    of :func:`cmtrack.evaluate`.
    """
    if n_nulls(ids):
        raise ValueError(f"row_ids must not be null, got null in {n_nulls(ids)} of {len(ids)} rows")
    array = np.asarray(ids)
    if array.dtype.kind not in "iu":
        hashes = label_hashes(array.tolist())
        return LabelDigest(int(hashes.sum(dtype=np.uint64)), len(hashes))
    first = (array % MODULUS).astype(np.int64)
    second = first * first % MODULUS
    third = second * first % MODULUS
    # Sums of floats are exact below 2**53, which allows 2**22 numbers below 2**31.
    sums = [np.bincount(actual, power, len(labels)) for power in (first, second, third)]
    powers = np.stack(sums, axis=1).astype(np.int64)
    return LabelDigest.unordered(rows, labels, powers)
