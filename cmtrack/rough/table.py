"""Granule table, which groups rows with identical attribute values and counts them by class.

Source: Pawlak (1982), Rough sets; Düntsch & Gediga (2019), Confusion matrices and rough set data
analysis, section 2 and Table 4. The source's text puts the class before the granule, and its table
puts the granule before the class. In cmtrack, the rows of the table are granules and the columns
are classes.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cmtrack import notebook
from cmtrack.grouping import Label
from cmtrack.removed import RemovedAttributes
from cmtrack.rough._granules import Values, count_granules
from cmtrack.rough.approximations import RoughApproximations, RoughBounds, approximate, rough_bounds
from cmtrack.statistics import ConfusionMatrix
from cmtrack.statistics.confusion import merged_labels
from cmtrack.statistics.inputs import BoolArray, IntArray
from cmtrack.statistics.labels import encode_labels

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class GranuleTable(RemovedAttributes):
    """Table of granules that counts rows by class; call :func:`granule_table` to create it.

    A granule is a set of rows with identical attribute values. A model that uses only these
    attributes must give all rows of a granule the same prediction.

    Attributes
    ----------
    counts : ndarray of shape (S, K), int64
        Number of rows in each granule and class; no granule is empty.
    labels : tuple of length K
        The classes in order.
    attributes : tuple of length A
        Names of the attributes.
    values : tuple of S tuples of length A
        For each granule, the values of the attributes. None stands for a missing value, which is
        equal only to other missing values.

    Examples
    --------
    >>> from cmtrack import granule_table
    >>> table = granule_table({"sky": ["sun", "sun", "rain", "rain"]}, ["out", "out", "in", "out"])
    >>> table.values, table.counts.tolist(), table.deterministic.tolist()
    ((('sun',), ('rain',)), [[0, 2], [1, 1]], [True, False])
    """

    counts: IntArray
    labels: tuple[Label, ...]
    attributes: tuple[Hashable, ...]
    values: Values

    def __post_init__(self) -> None:
        counts = np.asarray(self.counts)
        shape = (len(self.values), len(self.labels))
        if counts.shape != shape or not counts.size:
            raise ValueError(
                f"counts must have shape (n_granules, n_classes) = {shape}, got {counts.shape}"
            )
        if counts.dtype.kind not in "iu" or (counts < 0).any():
            raise ValueError(
                f"counts must be whole numbers that are not negative, got {counts.dtype}"
            )
        empty = np.flatnonzero(~counts.any(axis=1))
        if empty.size:
            raise ValueError(f"every granule must have a row, got none in granule {empty[0]}")
        values = tuple(tuple(row) for row in self.values)
        if {len(row) for row in values} != {len(self.attributes)}:
            raise ValueError(
                f"values must have one value per attribute {self.attributes}, "
                f"got rows like {values[0]}"
            )
        if len(set(values)) != len(values):
            repeated = next(row for row in values if values.count(row) > 1)
            raise ValueError(f"granules must have different values, got {repeated} more than once")
        counts = counts.astype(np.int64)
        counts.setflags(write=False)
        object.__setattr__(self, "counts", counts)
        object.__setattr__(self, "labels", tuple(self.labels))
        object.__setattr__(self, "attributes", tuple(self.attributes))
        object.__setattr__(self, "values", values)

    @property
    def total(self) -> int:
        """Number of rows."""
        return int(self.counts.sum())

    @property
    def sizes(self) -> IntArray:
        """Number of rows in each granule, shape (S,)."""
        return np.asarray(self.counts.sum(axis=1))

    @property
    def deterministic(self) -> BoolArray:
        """Mark the granules whose rows all belong to the same class, shape (S,)."""
        return np.asarray((self.counts > 0).sum(axis=1) == 1)

    # -- classifiers ------------------------------------------------------------------------------

    def majority(self) -> tuple[Label, ...]:
        """Return the most frequent class of each granule; in a tie, the first class in the labels.

        The source uses the name "maximal row classifier" for a classifier that predicts these
        classes.
        """
        return tuple(self.labels[k] for k in self.counts.argmax(axis=1))

    def classifier(self, X: Any, y_pred: Any) -> tuple[Label, ...]:
        """Determine the class that a model assigns to each granule from its predictions for rows.

        Parameters
        ----------
        X : frame, mapping or array
            Rows that contain the table's attributes. Each granule of the table must occur in at
            least one of these rows.
        y_pred : array-like of shape (n_samples,)
            Predicted classes of these rows.

        Raises
        ------
        ValueError
            If the rows of a granule have different predicted classes, if a granule has no rows, or
            if a row does not belong to any granule of the table.

        Examples
        --------
        >>> from cmtrack import granule_table
        >>> X = {"sky": ["sun", "sun", "rain", "rain"]}
        >>> granule_table(X, ["out", "out", "in", "out"]).classifier(X, ["out", "out", "in", "in"])
        ('out', 'in')
        """
        other = GranuleTable(*count_granules(X, y_pred, self.attributes, self.labels, "y_pred"))
        mixed = np.flatnonzero(~other.deterministic)
        if mixed.size:
            first = int(mixed[0])
            classes = [
                f"{label!r} {n}×"
                for label, n in zip(self.labels, other.counts[first], strict=True)
                if n
            ]
            raise ValueError(
                f"y_pred must be constant within granules, got {' and '.join(classes)} in "
                f"{other._granule(first)}; {len(mixed)} of {len(other.values)} granules have "
                "several predictions"
            )
        assigned = dict(zip(other.values, other.majority(), strict=True))
        granules = set(self.values)
        strange = [i for i, values in enumerate(other.values) if values not in granules]
        if strange:
            raise ValueError(
                "every row of X must belong to a granule of the table, got "
                f"{other._granule(strange[0])}"
            )
        missing = [i for i, values in enumerate(self.values) if values not in assigned]
        if missing:
            raise ValueError(
                f"every granule needs a prediction, got none for {self._granule(missing[0])}"
            )
        return tuple(assigned[values] for values in self.values)

    def confusion_matrix(self, classifier: Sequence[Label]) -> ConfusionMatrix:
        """Compute the confusion matrix of a classifier that assigns a class to each granule.

        All rows of a granule count as predicted to be of the class that is assigned to the granule
        (equation 3.2 of the source).

        Parameters
        ----------
        classifier : sequence of length S
            The class assigned to each granule, such as the result of :meth:`majority`.
        """
        assigned = self._assigned(classifier)
        counts = np.zeros((len(self.labels), len(self.labels)), dtype=np.int64)
        np.add.at(counts, assigned, self.counts)
        return ConfusionMatrix(counts.T, self.labels)  # rows actual, columns predicted

    # -- rough sets -------------------------------------------------------------------------------

    def approximations(self) -> RoughApproximations:
        """Return the exact approximations of each class, which do not depend on a classifier."""
        return approximate(self.counts, self.labels)

    def bounds(self, classifier: Sequence[Label]) -> RoughBounds:
        """Return bounds from a classifier's confusion matrix, and check their condition.

        If the classifier predicts the most frequent class of each granule, the result also contains
        the sharper bounds for such classifiers.
        """
        assigned = self._assigned(classifier)
        hits = self.counts[np.arange(len(assigned)), assigned]
        is_majority = bool((hits == self.counts.max(axis=1)).all())
        limits = rough_bounds(self.confusion_matrix(classifier), majority=is_majority)
        broken = tuple(np.flatnonzero(hits == 0).tolist())
        return replace(limits, condition_holds=not broken, broken_by=broken)

    def _assigned(self, classifier: Sequence[Label]) -> IntArray:
        """For each granule, return the position of its assigned class in the labels."""
        if len(classifier) != len(self.counts):
            raise ValueError(
                f"classifier must have one class per granule, {len(self.counts)}, "
                f"got {len(classifier)}; get one from predictions by .classifier(X, y_pred)"
            )
        return encode_labels({"classifier": classifier}, self.labels)[1]["classifier"]

    def _granule(self, number: int) -> str:
        """Return the attribute values of a granule as text for an error message."""
        values = zip(self.attributes, self.values[number], strict=True)
        return "the granule " + ", ".join(f"{name}={value!r}" for name, value in values)

    # -- merging and views ------------------------------------------------------------------------

    def __add__(self, other: GranuleTable) -> GranuleTable:
        """Merge the tables of two disjoint sets of rows; if sorted, the classes may differ."""
        if not isinstance(other, GranuleTable):
            return NotImplemented
        if self.attributes != other.attributes:
            raise ValueError(
                "tables must have the same attributes in the same order, "
                f"got {list(self.attributes)} and {list(other.attributes)}"
            )
        labels = merged_labels(self.labels, other.labels)
        granules = tuple(dict.fromkeys((*self.values, *other.values)))
        number_of = {values: number for number, values in enumerate(granules)}
        counts = np.zeros((len(granules), len(labels)), dtype=np.int64)
        for table in (self, other):
            rows = [number_of[values] for values in table.values]
            columns = [labels.index(label) for label in table.labels]
            counts[np.ix_(rows, columns)] += table.counts
        return GranuleTable(counts, labels, self.attributes, granules)

    def __radd__(self, other: object) -> GranuleTable:
        if other == 0:  # sum(...) starts with 0
            return self
        return NotImplemented

    def __eq__(self, other: object) -> bool:
        """Return whether two tables contain the same granules and counts, in any order."""
        if not isinstance(other, GranuleTable):
            return NotImplemented
        if (self.labels, self.attributes) != (other.labels, other.attributes):
            return False
        return self._by_values() == other._by_values()

    def _by_values(self) -> dict[tuple[Any, ...], list[int]]:
        return dict(zip(self.values, self.counts.tolist(), strict=True))

    def to_frame(self) -> pd.DataFrame:
        """Return the counts as a frame whose index contains the granules' attribute values."""
        from cmtrack._pandas import pd

        names = [str(name) for name in self.attributes]
        if len(names) == 1:
            index = pd.Index([row[0] for row in self.values], name=names[0], tupleize_cols=False)
        else:
            index = pd.MultiIndex.from_tuples(self.values, names=names)
        columns = pd.Index(self.labels, name="class", tupleize_cols=False)
        return pd.DataFrame(self.counts, index=index, columns=columns)

    def __repr__(self) -> str:
        granules = f"{len(self.counts)} granules of {len(self.attributes)} attributes"
        n_pure = int(self.deterministic.sum())
        return (
            f"GranuleTable({self.total} rows, {granules}, "
            f"{n_pure} inside one of {len(self.labels)} classes)"
        )

    def _repr_html_(self) -> str:
        return notebook.view(notebook.table(self.to_frame()))


def granule_table(
    X: Any,
    y: Any,
    *,
    attributes: Sequence[Hashable] | None = None,
    labels: Sequence[Label] | None = None,
) -> GranuleTable:
    """Group rows with identical attribute values into granules, and count the rows by class.

    Parameters
    ----------
    X : frame, mapping of columns, series, or array of shape (n_samples, n_attributes)
        The attributes of the rows. pandas, polars and Arrow frames are accepted. Attribute values
        can be of any type that supports comparison for equality. Missing values count as equal to
        each other, and as different from all other values. If an attribute is a number with many
        distinct values, almost every row becomes a separate granule, and the approximations are
        then useless. Divide the values of such an attribute into groups first.
    y : array-like of shape (n_samples,)
        Actual classes.
    attributes : sequence, optional
        The columns to use: names of columns, or positions of columns if ``X`` is an array. By
        default all columns are used.
    labels : sequence, optional
        The classes in order, including classes that do not occur in ``y``. By default, the classes
        in ``y`` are sorted.

    Returns
    -------
    GranuleTable
        A table whose granules are in the order in which they first appear in the rows.

    Raises
    ------
    ValueError
        If ``X`` and ``y`` differ in length, a label is missing or unknown, fewer than two classes
        exist, an attribute is unknown or repeated, or the table would have more than 100,000,000
        cells.

    References
    ----------
    Düntsch & Gediga (2019), Confusion matrices and rough set data analysis, section 2.

    Examples
    --------
    >>> from cmtrack import granule_table
    >>> weather = {"sky": ["sun", "sun", "rain", "rain"], "wind": [0, 0, 0, 1]}
    >>> granule_table(weather, ["out", "out", "in", "out"]).to_frame()
    class      in  out
    sky  wind
    sun  0      0    2
    rain 0      1    0
         1      0    1
    """
    return GranuleTable(*count_granules(X, y, attributes, labels))
