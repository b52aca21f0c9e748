"""The kernel of tables: batches of columns -> what makes ``Statistics``, merged in any order."""

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
from cmtrack.statistics.inputs import IntArray, as_weights
from cmtrack.statistics.labels import number_as_they_come, number_labels
from cmtrack.statistics.probabilities import Normalize, Probabilities
from cmtrack.statistics.segment_values import Divisions, SegmentRows, divided

MODULUS = 2**31 - 1
"""Integer row ids are taken modulo this prime, so that sums of their powers are exact in 64 bits."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Columns of n rows; None for absent ones.

    ``actual``, ``predicted``: NumPy, or Arrow where these are strings or where some are missing.
    ``scores``, shape (n,): the given columns of probabilities.
    ``weights``, shape (n,).
    ``row_ids``: integers, or Arrow strings.
    ``lengths``: rows by length of the list that their probabilities came in.
    ``segments``: columns that divide the rows.
    ``copies``: how many rows each entry stands for, where rows with the same labels came as one without weights.
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
        """The columns of labels, by the name of their argument."""
        columns = {"y_true": self.actual, "y_pred": self.predicted}
        return {name: column for name, column in columns.items() if column is not None}


@dataclass(frozen=True, eq=False)
class Kernel:
    """The counting of a batch; it can be pickled and sent to where the rows are.

    ``counting``: None: the labels are taken as they come, and there are no probabilities.
    ``places``: for each possible number of given columns of probabilities, which of them is that of each class; -1 for
        the one of two classes whose probability is one less the other's. Empty: only labels and faults are collected.
    ``normalize``, "warn", True or False.
    ``weights_are``, "frequency" or "sampling": where there are weights.
    ``exact_rows``: rows up to which scores are counted one by one.
    ``segments``: columns, and crossings of several, that divide the rows.
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
        """The classes; None if they are read from the rows."""
        return None if self.counting is None else self.counting.labels


class Tally:
    """The counts of all batches so far.

    Tallies of disjoint rows add up to the tally of all rows: counts exactly, and moments but for rounding, whatever
    the number of batches and their order.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.faults = Faults()
        self.seen: dict[str, set[Any]] = {}
        self.weights_are_zero: bool | None = None
        self._kept: dict[str, Any] | None = None

    def add(self, batch: Batch) -> None:
        """Count the rows of a batch; if some are wrong, their number is kept and no more."""
        lengths = batch.lengths or Counter()
        self.faults += Faults(batch.n_rows, lengths=lengths)
        if not batch.n_rows or len(lengths) > 1 or -1 in lengths:
            return
        try:
            if self.kernel.only_faults:
                self._look_for_faults(batch)
            elif self.kernel.counting is None:
                self._keep(_count_as_they_come(batch, self.kernel, self.seen))
            elif len(batch.scores) in self.kernel.places or not self.kernel.places:
                self._keep(_count(batch, self.kernel, self.kernel.counting, self._limit))
        except ValueError:
            if not self._look_for_faults(batch):
                raise
        if batch.weights is not None:
            self.weights_are_zero = self.weights_are_zero is not False and not batch.weights.any()

    def __add__(self, other: Tally) -> Tally:
        """The tally of both sets of rows; neither may be used afterwards."""
        self.faults += other.faults
        if other.weights_are_zero is not None:
            self.weights_are_zero = self.weights_are_zero is not False and other.weights_are_zero
        for name, labels in other.seen.items():
            self.seen.setdefault(name, set()).update(labels)
        if other._kept is not None:
            self._keep(other._kept)
        return self

    def statistics(
        self, labels: tuple[Label, ...], categories: Mapping[str, Sequence[Any]] | None = None
    ) -> Statistics:
        """The statistics of all rows, with the classes in this order, and the segments in that of categories."""
        assert self._kept is not None  # there are rows, and none is wrong
        whole = finished(self._kept).apply(
            lambda sums: replace(sums, matrix=sums.matrix.arranged(labels))
        )
        return with_segments(whole, lambda segments: segments.arranged(labels).checked(categories))

    @property
    def _limit(self) -> int:
        """Rows whose scores are counted one by one in the next batch."""
        before = None if self._kept is None else self._kept.get("scores")
        return self.kernel.exact_rows if before is None or before.exact else 0

    def _keep(self, kept: dict[str, Any]) -> None:
        if not self.faults:  # of rows that will be refused nothing is kept
            self._kept = kept if self._kept is None else merged(self._kept, kept)

    def _look_for_faults(self, batch: Batch) -> bool:
        faults, kernel = Faults(), self.kernel
        for name, column in batch.labels.items():
            faults = faults.with_labels(name, column, kernel.labels)
        if batch.scores:
            faults = faults.with_scores(batch.scores, kernel.normalize)
        if batch.weights is not None:
            faults = faults.with_weights(batch.weights, kernel.weights_are)
        nulls = getattr(batch.row_ids, "null_count", 0)
        if nulls:
            faults += Faults(missing=Counter({"row_ids": nulls}))
        self.faults += faults
        return bool(faults)


def _count(batch: Batch, kernel: Kernel, counting: Counting, limit: int) -> dict[str, Any]:
    """The parts of the statistics of a batch, by their known classes."""
    weights, labels = _weights(batch, kernel), counting.labels
    if batch.labels:
        numbered = number_labels(batch.labels, labels)
        actual, predicted = numbered.codes.get("y_true"), numbered.codes.get("y_pred")
        pairs = None if predicted is None else numbered.count("y_true", "y_pred", weights)
    else:
        actual, predicted, pairs = Codes(np.zeros(batch.n_rows, dtype=np.int8)), None, None
    assert actual is not None
    probabilities = None
    if batch.scores:
        place = kernel.places[len(batch.scores)]
        given = [batch.scores[c] for c in place if c >= 0]
        probabilities = Probabilities(
            given, first=place[0] >= 0 > place[-1], normalize=kernel.normalize
        )
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
    """The counts of a batch with unknown classes: by its own classes, in sorted order."""
    labels, codes = number_as_they_come(batch.labels)
    for name, column in codes.items():
        held = np.unique(column.all())
        seen.setdefault(name, set()).update(labels[code] for code in held)
    if len(codes) == 1:
        return {}
    segments = divided(batch.segments, kernel.segments)
    actual, weights = codes["y_true"], _weights(batch, kernel)
    counts, _ = count_rows(
        Counting(labels), actual, codes["y_pred"], weights=weights, segments=segments
    )
    return _with_digests(counts, batch, actual, labels)


def _with_digests(
    kept: dict[str, Any], batch: Batch, actual: Codes, labels: tuple[Label, ...]
) -> dict[str, Any]:
    if batch.weights is None:
        rows = kept["matrix"].counts.sum(axis=1)
    else:
        rows = np.bincount(actual.all(), minlength=len(labels))
    for part in (kept, kept.get("squares", {})):
        part["digest"] = LabelDigest.unordered(rows, labels)
    if batch.row_ids is not None:
        kept["row_ids"] = _digest_of_ids(batch.row_ids, actual.all(), rows, labels)
    return kept


def _weights(batch: Batch, kernel: Kernel) -> npt.NDArray[Any] | None:
    """Checked weights of the kernel's kind."""
    if batch.copies is not None:
        return batch.copies
    return as_weights(batch.weights, batch.n_rows, kernel.weights_are, may_be_zero=True)


def _digest_of_ids(
    ids: Any, actual: IntArray, rows: IntArray, labels: tuple[Label, ...]
) -> LabelDigest:
    """The digest of row ids in no order: of integers by label, of strings that of :func:`cmtrack.evaluate`."""
    if getattr(ids, "null_count", 0):
        raise ValueError(
            f"row_ids must not be null, got null in {ids.null_count} of {len(ids)} rows"
        )
    array = np.asarray(ids)
    if array.dtype.kind not in "iu":
        hashes = label_hashes(array.tolist())
        return LabelDigest(int(hashes.sum(dtype=np.uint64)), len(hashes))
    first = (array % MODULUS).astype(np.int64)
    second = first * first % MODULUS
    powers = (first, second, second * first % MODULUS)
    # exact below 2**22 rows
    sums = [np.bincount(actual, power, len(labels)).astype(np.int64) for power in powers]
    return LabelDigest.unordered(rows, labels, np.stack(sums, axis=1))
