"""Columns that divide the rows into segments; missing values form a separate segment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from cmtrack.statistics.attributes import attribute_columns
from cmtrack.statistics.inputs import FloatArray, IntArray, no_masked
from cmtrack.statistics.segment_values import (
    SEGMENTS,
    SegmentRows,
    check_length,
    check_values,
    value_order,
    value_texts,
)

MAX_NUMBERS = 20
"""Maximum number of distinct values for which a search treats numbers as categories.

If a column contains more distinct numbers, a search cuts it at quantiles.
"""


@dataclass(frozen=True, eq=False)
class SegmentColumn:
    """A division of the rows into segments by the values of one column.

    Attributes
    ----------
    name : str
    values : tuple of length S
        For each segment, its value: a text, a number or a boolean, or None for rows whose value is
        missing. If a column of numbers was cut, each value is a pair of limits.
    texts : tuple of str, of length S
        The values as distinct texts, which tables and metric names use.
    codes : ndarray of shape (n,), int64
        For each row, the position of its segment in ``values``.
    note : str
        A sentence that describes changes to the column, such as cutting numbers or merging
        segments; empty if nothing was changed.

    Examples
    --------
    >>> from cmtrack.segments import segment_columns
    >>> region = segment_columns({"region": ["north", "south", None, "north"]}, 4)[0]
    >>> region.name, region.texts, region.codes.tolist(), region.sizes.tolist()
    ('region', ('north', 'south', '(missing)'), [0, 1, 2, 0], [2, 1, 1])
    """

    name: str
    values: tuple[Any, ...]
    texts: tuple[str, ...]
    codes: IntArray
    note: str = ""

    @property
    def sizes(self) -> IntArray:
        """Number of rows in each segment, shape (S,)."""
        return np.bincount(self.codes, minlength=len(self.texts))


def segment_columns(
    data: Any, n_rows: int, names: Sequence[Any] | None = None
) -> tuple[SegmentColumn, ...]:
    """For each column of categories, divide the rows into segments.

    Parameters
    ----------
    data : frame, mapping of columns, series or array
        Columns of integers, texts, booleans, categorical data or times. Missing values form a
        separate segment.
    n_rows : int
        Number of evaluated rows.
    names : sequence, optional
        Names of the columns to use; by default all columns.

    Returns
    -------
    tuple of SegmentColumn
        Segments in the order of their values (categorical columns keep their own order), missing
        values last. If a column would have more than 1,000 segments, the 999 largest segments are
        kept, all others are merged into a single segment, and ``note`` reports the merge.

    Raises
    ------
    ValueError
        If a column does not exist, if its length is not ``n_rows``, if it contains only one value
        or a different value in each row, or if it is continuous. A column is continuous if it
        contains more than 20 distinct numbers that are not all whole.

    Examples
    --------
    >>> from cmtrack.segments import segment_columns
    >>> columns = segment_columns({"region": ["north", "south", "north"], "size": [1, 2, 2]}, 3)
    >>> [(column.name, column.texts) for column in columns]
    [('region', ('north', 'south')), ('size', ('1', '2'))]
    """
    columns = attribute_columns(data, names, SEGMENTS)
    return tuple(_column(str(name), values, n_rows) for name, values in columns.items())


def search_columns(
    data: Any, n_rows: int, names: Sequence[Any] | None = None, bins: int = 5
) -> tuple[SegmentColumn, ...]:
    """For each column, divide the rows into segments; cut columns of many numbers at quantiles.

    A column is cut if it contains more than 20 distinct numbers. :func:`segment_columns` divides
    all other columns. If the numbers are names, such as postal codes, pass them as texts or
    categorical data, because these types are never cut.

    Parameters
    ----------
    data, n_rows, names
        As in :func:`segment_columns`.
    bins : int, default 5
        Number of parts into which a column of numbers is cut.

    Examples
    --------
    >>> from cmtrack.segments import search_columns
    >>> data = {"region": ["north", "south"] * 25, "age": range(50)}
    >>> region, age = search_columns(data, 50, bins=2)
    >>> region.texts, age.texts
    (('north', 'south'), ('≤ 24', '> 24'))
    """
    columns = []
    for name, values in attribute_columns(data, names, SEGMENTS).items():
        numbers = _numbers(values)
        if numbers is not None and len(np.unique(numbers[~np.isnan(numbers)])) > MAX_NUMBERS:
            columns.append(cut_at_quantiles(str(name), values, n_rows, bins))
        else:
            columns.append(_column(str(name), values, n_rows))
    return tuple(columns)


def cut_at_quantiles(name: str, values: Any, n_rows: int, bins: int = 5) -> SegmentColumn:
    """Divide the rows by cutting a column of numbers at its quantiles into parts of similar size.

    A part contains the numbers that are greater than its lower limit and less than or equal to its
    upper limit. Equal numbers are always in the same part, so the result may contain fewer than
    ``bins`` parts.

    Parameters
    ----------
    name : str
    values : array-like of shape (n,)
        The numbers to cut; NaN is a missing value.
    n_rows : int
    bins : int, default 5
        Number of parts, at least 2.

    Raises
    ------
    TypeError, ValueError
        If the column contains values that are not numbers, if its length is not ``n_rows``, if it
        contains only one value, or if ``bins`` is less than 2.

    Examples
    --------
    >>> from cmtrack.segments import cut_at_quantiles
    >>> age = cut_at_quantiles("age", [20, 31, 45, 50, 62, 70], 6, bins=2)
    >>> age.texts, age.codes.tolist(), age.note
    (('≤ 45', '> 45'), [0, 0, 0, 1, 1, 1], '“age” is cut at its quantiles 45 into 2 parts.')
    """
    if isinstance(bins, bool) or not isinstance(bins, (int, np.integer)) or bins < 2:
        raise ValueError(f"bins must be a whole number of at least 2, got {bins!r}")
    no_masked(f"segment column {name!r}", values)
    numbers = _numbers(values)
    if numbers is None:
        raise TypeError(
            f"segment column {name!r} must contain numbers to be cut, "
            f"got {np.asarray(values).dtype}"
        )
    check_length(name, len(numbers), n_rows)
    missing = np.isnan(numbers)
    ends = _quantiles(numbers[~missing], bins)
    codes = np.searchsorted(ends, numbers, side="left").astype(np.int64)
    codes[missing] = len(ends) + 1
    end_texts = _shortest(ends)
    parts: list[Any] = list(pairwise((-np.inf, *ends.tolist(), np.inf)))
    texts = ["all numbers"]
    if end_texts:
        between = [f"{low} to {high}" for low, high in pairwise(end_texts)]
        texts = [f"≤ {end_texts[0]}", *between, f"> {end_texts[-1]}"]
    if missing.any():
        parts.append(None)
        texts.extend(value_texts([None]))
    check_values(name, texts, np.bincount(codes, minlength=len(texts)))
    note = f"“{name}” is cut at its quantiles {', '.join(end_texts)} into {len(ends) + 1} parts."
    return SegmentColumn(name, tuple(parts), tuple(texts), codes, note)


def _quantiles(numbers: FloatArray, bins: int) -> FloatArray:
    """Return the numbers at which to cut: the greatest number in each part except the last part."""
    distinct = np.unique(numbers)
    if len(distinct) < 2:
        return np.zeros(0)
    inner = np.quantile(numbers, np.arange(1, bins) / bins, method="inverted_cdf")
    ends = np.unique(inner[inner < distinct[-1]])
    if not len(ends):
        return distinct[-2:-1]  # most rows have the greatest number
    return ends


def _column(name: str, column: Any, n_rows: int) -> SegmentColumn:
    check_length(name, len(column), n_rows)
    rows = SegmentRows.read(name, column)
    sizes = np.bincount(rows.codes, minlength=len(rows.values))
    check_values(name, rows.values, sizes)
    order = value_order(rows.values, not _is_categorical(column))
    rows, note = rows.arranged([k for k in order if sizes[k]]).limited()
    return SegmentColumn(name, rows.values, value_texts(rows.values), rows.codes, note)


def _is_categorical(column: Any) -> bool:
    # The check uses the name of the type, so that pandas need not be imported.
    return type(getattr(column, "dtype", None)).__name__ == "CategoricalDtype"


def _numbers(column: Any) -> FloatArray | None:
    """Return a column's numbers, with NaN for missing values; None if a value is not a number."""
    kind = getattr(getattr(column, "dtype", None), "kind", "")
    if _is_categorical(column) or kind in ("b", "m", "M"):  # booleans and times
        return None
    if hasattr(column, "to_numpy") and hasattr(column, "isna"):  # pandas, whatever backs it
        try:
            return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
        except (TypeError, ValueError):
            return None
    array = np.asarray(column)
    if array.dtype.kind == "O":
        numbers = [np.nan if value is None else value for value in array.tolist()]
        if not all(map(_is_number, numbers)):
            return None
        array = np.array(numbers, dtype=np.float64)
    if array.dtype.kind not in "iuf" or array.ndim != 1:
        return None
    return array.astype(np.float64)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _shortest(ends: FloatArray) -> list[str]:
    """Format numbers with the fewest digits, but at least three, that keep them distinct."""
    for digits in range(3, 18):
        texts = []
        for end in ends:
            # With fewer than seven digits, numbers of a million or more would be written in
            # scientific notation.
            n_digits = digits if abs(end) < 1e6 else max(digits, 7)
            texts.append(f"{end:.{n_digits}g}")
        rounded = np.array(texts, dtype=np.float64)
        if len(set(texts)) == len(texts) and np.allclose(rounded, ends, rtol=5e-3, atol=0):
            return texts
    return [repr(float(end)) for end in ends]
