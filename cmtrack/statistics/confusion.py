"""The confusion matrix; its rows are actual classes and its columns are predicted classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from cmtrack import notebook
from cmtrack._lazy import cached_property
from cmtrack.digits import count
from cmtrack.grouping import Grouping, Label
from cmtrack.statistics import plain
from cmtrack.statistics.counting import Counts, SparseCounts, count_type
from cmtrack.statistics.inputs import IntArray, align_rows, as_weights
from cmtrack.statistics.labels import number_labels
from cmtrack.statistics.records import Record
from cmtrack.statistics.reduced import ReducedConfusionMatrix, reduce_counts

if TYPE_CHECKING:
    import pandas as pd


class _Stored(Record):
    """Base of a confusion matrix, whose counts may be stored as a sparse table.

    ``sparse``: the counts as a table; None if they are stored as an array.
    """

    sparse: SparseCounts | None = None

    @cached_property
    def counts(self) -> Counts:
        """The array of a sparse table, which is made when it is first read."""
        if self.sparse is None:
            raise AttributeError("a confusion matrix must have counts, got none")
        counts = self.sparse.array()
        counts.setflags(write=False)
        return counts

    @property
    def stored(self) -> Counts | SparseCounts:
        """The counts as an array, or as a sparse table if nearly all cells are empty."""
        if self.sparse is None:
            return self.counts
        return self.sparse


@dataclass(frozen=True, eq=False)
class ConfusionMatrix(_Stored):
    """Confusion matrix: counts of rows by actual and predicted class.

    Attributes
    ----------
    counts : ndarray of shape (K, K)
        ``counts[i, j]``: number (or total weight) of rows of actual class i that were predicted as
        class j; int64, or float64 if sample weights are floats.
    labels : tuple of length K
        The classes in order.

    Examples
    --------
    >>> from cmtrack import ConfusionMatrix
    >>> first = ConfusionMatrix([[3, 1], [0, 2]], ("no", "yes"))
    >>> second = ConfusionMatrix([[1, 0], [1, 1]], ("no", "yes"))
    >>> both = first + second
    >>> both.counts.tolist(), both.total
    ([[4, 1], [1, 3]], 9)
    """

    counts: Counts = field()  # without a default, although the base has such an attribute
    labels: tuple[Label, ...]

    def __post_init__(self) -> None:
        counts = np.asarray(self.counts)
        size = len(self.labels)
        if counts.shape != (size, size):
            raise ValueError(
                f"counts must have shape ({size}, {size}) for {size} labels, got {counts.shape}"
            )
        if counts.dtype.kind not in "iubf":
            raise ValueError(f"counts must be numbers, got {counts.dtype}")
        # Read-only counts are not copied.
        memory = [array for array in (counts, counts.base) if array is not None]
        is_writable = any(
            not isinstance(array, np.ndarray) or array.flags.writeable for array in memory
        )
        counts = counts.astype(count_type(counts), copy=is_writable)
        if not (np.isfinite(counts.max(initial=0)) and counts.min(initial=0) >= 0):
            raise ValueError(
                f"counts must be finite and not negative, got the minimum {counts.min()}"
            )
        counts.setflags(write=False)
        object.__setattr__(self, "counts", counts)
        object.__setattr__(self, "labels", tuple(self.labels))

    @classmethod
    def of_table(cls, counts: Counts | SparseCounts, labels: tuple[Label, ...]) -> ConfusionMatrix:
        """Return a matrix of the given counts; a sparse table stays sparse."""
        if not isinstance(counts, SparseCounts):
            return cls(counts, labels)
        matrix = cls.__new__(cls)
        object.__setattr__(matrix, "sparse", counts)
        object.__setattr__(matrix, "labels", labels)
        return matrix

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_pred: Any,
        *,
        labels: Sequence[Label] | None = None,
        sample_weight: Any = None,
    ) -> ConfusionMatrix:
        """Count predictions.

        Parameters
        ----------
        y_true, y_pred : array-like of shape (n_samples,)
            Labels, which may be integers, strings, booleans or floats. A list, and NumPy, pandas,
            polars and Arrow data are accepted.
        labels : sequence, optional
            The classes in order, which may include classes without rows. By default, the sorted
            classes that occur in the data, or the categories of categorical data.
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative weights. An integer weight is the number of identical rows that a row
            represents.

        Raises
        ------
        ValueError
            If the lengths differ, if labels are empty, missing or unknown, if only one class
            occurs, or if weights are invalid.

        Examples
        --------
        >>> from cmtrack import ConfusionMatrix
        >>> ConfusionMatrix.from_predictions(["a", "b", "b", "c"], ["a", "b", "c", "c"]).to_frame()
        predicted  a  b  c
        actual
        a          1  0  0
        b          0  1  1
        c          0  0  1
        """
        columns = align_rows({"y_true": y_true, "y_pred": y_pred, "sample_weight": sample_weight})
        sample_weight = columns.pop("sample_weight")
        numbered = number_labels(columns, labels)
        weights = as_weights(sample_weight, len(numbered.codes["y_true"]))
        return cls.of_table(numbered.count("y_true", "y_pred", weights), numbered.labels)

    def to_plain(self) -> Any:
        """Return the counts as plain data."""
        return plain.encode_array(self.counts)

    @classmethod
    def from_plain(cls, data: Any, labels: tuple[Label, ...]) -> ConfusionMatrix:
        """Read data written by :meth:`to_plain`."""
        return cls(plain.decode_counts(data, (len(labels), len(labels))), labels)

    @property
    def total(self) -> float:
        """Number of all rows, or the sum of their weights."""
        return self.stored.sum().item()

    def __add__(self, other: ConfusionMatrix) -> ConfusionMatrix:
        """Merge two disjoint sets of rows; their labels may differ if both lists are sorted."""
        if not isinstance(other, ConfusionMatrix):
            return NotImplemented
        labels = merged_labels(self.labels, other.labels)
        ours = self.arranged(labels)
        theirs = other.arranged(labels)
        if ours.sparse is None or theirs.sparse is None:
            return ConfusionMatrix(ours.counts + theirs.counts, labels)
        return ConfusionMatrix.of_table(ours.sparse + theirs.sparse, labels)

    def __radd__(self, other: object) -> ConfusionMatrix:
        # The built-in function sum starts with the number 0.
        return self if other == 0 else NotImplemented

    def arranged(self, labels: tuple[Label, ...]) -> ConfusionMatrix:
        """Return the counts with the given labels in this order; new labels have no rows."""
        if labels == self.labels:
            # Labels that are equal may still be numbers of different types, so the new labels are
            # used.
            return ConfusionMatrix.of_table(self.stored, labels)
        place = places_of(labels, self.labels)
        if self.sparse is not None:
            actual, predicted = np.divmod(self.sparse.places, len(self.labels))
            places = place[actual] * len(labels) + place[predicted]
            moved = self.sparse.moved(places, (len(labels), len(labels)))
            return ConfusionMatrix.of_table(moved, labels)
        counts = np.zeros((len(labels), len(labels)), dtype=self.counts.dtype)
        counts[np.ix_(place, place)] = self.counts
        return ConfusionMatrix(counts, labels)

    def reduce(self, grouping: Grouping) -> ReducedConfusionMatrix:
        """Reduce the matrix to groups; for a chain, return the matrix of the last step."""
        return self.reductions(grouping)[-1]

    def reductions(self, grouping: Grouping) -> tuple[ReducedConfusionMatrix, ...]:
        """Return the reduced matrix for every step of a chain.

        Each reduced matrix is computed in one pass over this matrix. Source: Markoulidakis et al.
        (2021), equations 3, 6, 7 and 17-20. In equations 19 and 20, the membership signs are
        corrected: accepted pairs are hits, and all other pairs in a group are mismatches.
        """
        return tuple(reduce_counts(self.counts, step) for step in grouping.compose(self.labels))

    def to_frame(self) -> pd.DataFrame:
        """Return a frame with rows named ``actual`` and columns named ``predicted``."""
        from cmtrack._pandas import pd

        return pd.DataFrame(
            self.counts,
            index=pd.Index(self.labels, name="actual"),
            columns=pd.Index(self.labels, name="predicted"),
        )

    def __repr__(self) -> str:
        return f"ConfusionMatrix({len(self.labels)} classes, {count(self.total)} rows)"

    def _repr_html_(self) -> str:
        return notebook.view(notebook.matrix(self.to_frame()))


def places_of(old: tuple[Label, ...], new: tuple[Label, ...]) -> IntArray:
    """Return the index in ``old`` of each label of ``new``; ``old`` must contain all of them."""
    place = {label: k for k, label in enumerate(old)}
    return np.array([place[label] for label in new], dtype=np.int64)


def merged_labels(ours: tuple[Label, ...], theirs: tuple[Label, ...]) -> tuple[Label, ...]:
    """Return the union of the labels of two tables; if they differ, both must be sorted."""
    if ours == theirs:
        return ours
    first: list[Any] = list(ours)
    second: list[Any] = list(theirs)
    try:
        if first == sorted(first) and second == sorted(second):
            return tuple(sorted({*first, *second}))
    except TypeError:
        pass  # Labels of different types cannot be sorted.
    raise ValueError(
        f"matrices must have the same labels in the same order, got {list(ours)[:12]} and "
        f"{list(theirs)[:12]}"
    )
