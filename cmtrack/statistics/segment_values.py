"""Values that divide rows into segments.

This module reads the declared columns and combinations of columns, and defines the order and the
texts of values.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cmtrack.statistics.attributes import Called, attribute_columns, distinct, encode_attribute
from cmtrack.statistics.inputs import IntArray, is_categorical, no_masked

MAX_SEGMENTS = 1000
"""Maximum number of segments per column; the last one combines all smaller segments."""
MAX_VALUES = 10_000
"""Maximum number of values of a column to count before all of its values are known."""
MAX_FRACTIONS = 20
"""Maximum number of distinct fractions; a column with more is treated as continuous."""
MISSING = "(missing)"
OTHERS = "(others)"
CROSSED = " × "
SEGMENTS = Called(
    "segments",
    "segment column",
    "segments",
    "; segments=(table, ['region']) takes a column of a table by its name",
)

Divisions: TypeAlias = tuple[tuple[Hashable, ...], ...]
"""Tuples of column names. Rows are divided by one column, or by a combination of columns."""


class Others(Enum):
    """The value that stands for all rows outside the largest segments."""

    OTHERS = OTHERS


@dataclass(frozen=True, eq=False)
class SegmentRows:
    """The segment of each row according to one column.

    ``values``, tuple of length S: texts, numbers or booleans, with None for missing values.
        For combinations of columns, the values are tuples of these types.
    ``codes``, shape (n,), int64: index of each row's value.
    """

    name: str
    values: tuple[Any, ...]
    codes: IntArray

    @classmethod
    def of(cls, name: str, values: Sequence[Any], codes: IntArray) -> SegmentRows:
        """Return each row's segment, with values that files can store; equal values are merged."""
        place: dict[Any, int] = {}
        numbers = [place.setdefault(plain_value(value), len(place)) for value in values]
        if len(place) < len(values):
            codes = np.array(numbers)[codes]
        return cls(name, tuple(place), codes)

    @classmethod
    def read(cls, name: Hashable, column: Any) -> SegmentRows:
        """Number the values of a column, without checks that need all rows."""
        no_masked(f"segment column {name!r}", column)
        codes, values = encode_attribute(name, column, SEGMENTS)
        rows = cls.of(str(name), values, codes)
        if not is_categorical(column):
            check_fractions(rows.name, rows.values)
        return rows

    @classmethod
    def joined(cls, parts: Sequence[SegmentRows]) -> SegmentRows:
        """Concatenate the rows of several batches."""
        values: list[Any] = []
        codes = []
        for part in parts:
            codes.append(part.codes + len(values))
            values += part.values
        return cls.of(parts[0].name, values, np.concatenate(codes))

    def crossed(self, other: SegmentRows) -> SegmentRows:
        """Return the segments of two columns together, with each pair of values that occurs."""
        size = len(other.values)
        pairs, codes = distinct(self.codes * size + other.codes)
        values = []
        for pair in pairs.tolist():
            ours, theirs = divmod(pair, size)
            values.append(crossed_value(self.values[ours], other.values[theirs]))
        return SegmentRows(division_name((self.name, other.name)), tuple(values), codes)

    @property
    def column(self) -> npt.NDArray[Any]:
        """Value of each row as an object, shape (n,)."""
        values: npt.NDArray[Any] = np.fromiter(self.values, dtype=object, count=len(self.values))
        return values[self.codes]

    def take(self, rows: Any) -> SegmentRows:
        """Return the segments of the selected rows."""
        return SegmentRows(self.name, self.values, self.codes[rows])

    def arranged(self, order: Sequence[int]) -> SegmentRows:
        """Return the rows with the values in a different order, which may omit unused values."""
        place = np.zeros(len(self.values), dtype=np.int64)
        place[list(order)] = np.arange(len(order))
        return SegmentRows(self.name, tuple(self.values[k] for k in order), place[self.codes])

    def limited(self) -> tuple[SegmentRows, str]:
        """Return at most 1,000 segments, with the smallest ones combined, and a note about it.

        The note is empty if all segments are kept.
        """
        if len(self.values) <= MAX_SEGMENTS:
            return self, ""
        sizes = np.bincount(self.codes, minlength=len(self.values))
        kept = largest(sizes)
        place = np.full(len(self.values), len(kept), dtype=np.int64)
        place[kept] = np.arange(len(kept))
        values = (*(self.values[k] for k in kept.tolist()), Others.OTHERS)
        n_others = int(len(self.codes) - sizes[kept].sum())
        note = note_of_others(self.name, len(self.values), n_others, value_texts(values)[-1])
        return SegmentRows(self.name, values, place[self.codes]), note


def declared(segments: Any) -> tuple[Any, Divisions]:
    """Return the columns of the argument ``segments``, and how they divide the rows.

    ``segments``: columns, or a pair of columns and a list of names. In the list, a tuple of names
        means the combination of these columns.
    """
    data = segments
    names = None
    if (
        isinstance(segments, tuple)
        and len(segments) == 2
        and isinstance(segments[1], (list, tuple, str))
    ):
        data, names = segments
    if _is_list_of_names(data):
        raise TypeError(
            f"segments must map names to columns, such as {{{data[0]!r}: one value per row}}, or "
            f"be a frame; got only the names {list(data)!r:.80}"
        )
    columns = attribute_columns(data, called=SEGMENTS)
    divisions = divisions_of(list(columns) if names is None else names)
    needed = list(dict.fromkeys(name for division in divisions for name in division))
    return attribute_columns(columns, needed, SEGMENTS), divisions


def _is_list_of_names(data: Any) -> bool:
    """Return whether data are distinct texts, which must be names of columns, not values."""
    if not isinstance(data, (list, tuple)) or not data:
        return False
    return all(isinstance(value, str) for value in data) and len(set(data)) == len(data)


def divisions_of(names: Any) -> Divisions:
    """Check names of columns, and tuples of names for combinations, and return tuples."""
    if isinstance(names, (str, bytes)) or not isinstance(names, Sequence):
        raise TypeError(
            "segments must be a list of names, or of tuples of names for crossings, got "
            f"{names!r:.80}"
        )
    divisions = tuple(tuple(name) if isinstance(name, (tuple, list)) else (name,) for name in names)
    if not divisions:
        raise ValueError("segments must name at least one column, got none")
    shown = [division_name(division) for division in divisions]
    if any(len(set(columns)) != len(columns) for columns in (shown, *divisions)):
        raise ValueError(f"segments must not repeat, got {shown[:20]}")
    if not all(divisions):
        raise ValueError("a crossing of segments must name at least two columns, got none")
    return divisions


def division_name(division: Sequence[Hashable]) -> str:
    """Return the name of a column or of a combination of columns."""
    return CROSSED.join(map(str, division))


def divided(
    columns: Mapping[Hashable, SegmentRows], divisions: Divisions
) -> tuple[SegmentRows, ...]:
    """Return the segment of each row for each column or combination of columns."""
    return tuple(
        reduce(SegmentRows.crossed, [columns[name] for name in division]) for division in divisions
    )


# -- values ----------------------------------------------------------------------------------------


def plain_value(value: Any) -> Any:
    """Convert a value for files: to a text, number, boolean or None, or to a tuple of these.

    Any other value, such as a time, is converted to a text.
    """
    if value is None or isinstance(value, (str, int, Others)):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, tuple):
        return tuple(map(plain_value, value))
    return str(value)


def crossed_value(first: Any, second: Any) -> tuple[Any, ...]:
    """Combine values of two columns; the first value may already be a combined one."""
    return (*(first if isinstance(first, tuple) else (first,)), second)


def value_order(values: Sequence[Any], sort: bool = True) -> list[int]:
    """Return indices that sort the values (unless ``sort`` is False), with missing values last.

    The value for all other segments comes after missing values.
    """
    missing = []
    others = []
    order = []
    for k, value in enumerate(values):
        if value is None:
            missing.append(k)
        elif value is Others.OTHERS:
            others.append(k)
        else:
            order.append(k)
    if sort:
        order.sort(key=lambda k: _sort_key(values[k]))
    return [*order, *missing, *others]


def _sort_key(value: Any) -> Any:
    """Return a key that sorts numbers first, then texts, then missing values."""
    if isinstance(value, tuple):
        return tuple(map(_sort_key, value))
    if _is_unnamed(value):
        return 3, 0, ""
    if isinstance(value, (int, float)):
        return 1, value, ""
    return 2, 0, str(value)


def value_texts(values: Sequence[Any]) -> tuple[str, ...]:
    """Return a different text for each value.

    If texts are equal, the type of the value is added, for example for 1 and "1". Missing values
    have a separate text.
    """
    named = [_text(value) for value in values if not _is_unnamed(value)]
    uses = Counter(named)
    texts = []
    for value in values:
        text = _text(value)
        if _is_unnamed(value):
            # Brackets are added until no value has the same text.
            while text in uses:
                text = f"({text})"
        elif uses[text] > 1:
            text = f"{text} ({type(value).__name__})"
        texts.append(text)
    return tuple(texts)


def _is_unnamed(value: Any) -> bool:
    return value is None or isinstance(value, Others)


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        return CROSSED.join(map(_text, value))
    if value is None:
        return MISSING
    return str(value.value if isinstance(value, Others) else value)


def check_values(name: str, values: Sequence[Any], sizes: IntArray) -> None:
    """Raise ValueError for a column that does not divide the rows.

    ``values``, sequence of length S.
    ``sizes``, shape (S,): number of rows with each value.
    """
    segments = np.flatnonzero(sizes)
    n_rows = int(sizes.sum())
    if len(segments) < 2:
        shown = "none"
        if len(segments):
            shown = f"only {value_texts([values[segments[0]]])[0]!r}"
        raise ValueError(
            f"segment column {name!r} must contain at least two values, "
            f"got {shown} in {n_rows:,} rows"
        )
    if len(segments) > MAX_SEGMENTS and len(segments) == n_rows:
        raise ValueError(
            f"segment column {name!r} must contain categories, got a different value in each of "
            f"{n_rows:,} rows: is it a row id?"
        )


def check_length(name: Hashable, length: int, n_rows: int) -> None:
    """Raise ValueError unless the length of a column is ``n_rows``."""
    if length != n_rows:
        raise ValueError(
            f"segment column {name!r} must have one value per row, got {length:,} for {n_rows:,} "
            "rows"
        )


def check_number(name: str, number: int) -> None:
    """Raise ValueError if a column has too many values to count before all are known."""
    if number > MAX_VALUES:
        raise ValueError(
            f"segment column {name!r} must have at most {MAX_VALUES:,} values here, got "
            f"{number:,}: is it a row id?"
        )


def check_fractions(name: str, values: Sequence[Any]) -> None:
    """Raise ValueError for a continuous column."""
    fractions = [v for v in values if isinstance(v, float) and not v.is_integer()]
    if len(fractions) > MAX_FRACTIONS:
        n_numbers = len(values) - values.count(None)
        raise ValueError(
            f"segment column {name!r} must contain categories, got {n_numbers:,} numbers such as "
            f"{fractions[0]:.6g}: bin it first, for example with cut_at_quantiles"
        )


def largest(sizes: IntArray) -> IntArray:
    """Return the indices of the largest segments, which are kept if there are more than 1,000."""
    return np.sort(np.argsort(-sizes, kind="stable")[: MAX_SEGMENTS - 1])


def note_of_others(name: str, n_values: int | None, rows: int, text: str = OTHERS) -> str:
    """Return the note about a column whose smallest segments were combined.

    ``n_values``: number of values of the column; None if unknown.
    ``rows``: number of rows in the combined segment.
    """
    shown = MAX_SEGMENTS - 1
    many = f"more than {MAX_SEGMENTS:,}"
    others = "the others"
    if n_values is not None:
        many = f"{n_values:,}"
        others = f"the other {n_values - shown:,}"
    return (
        f"“{name}” has {many} values: the {shown} most frequent values are segments, and "
        f"{others} with {rows:,} rows together are the segment “{text}”."
    )
