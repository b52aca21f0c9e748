"""Values that divide rows into segments.

Here are the declared columns and crossings, and the order, texts and limits of their values.
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
"""Segments of one column; the smallest beyond them are one together."""
MAX_VALUES = 10_000
"""Values of one column that are counted where all of them are known last only."""
MAX_FRACTIONS = 20
"""Distinct numbers that are not whole; a column with more is continuous."""
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
"""Names of columns: one that divides the rows, or several whose crossings do."""


class Others(Enum):
    """The value of the rows beyond the largest segments."""

    OTHERS = OTHERS


@dataclass(frozen=True, eq=False)
class SegmentRows:
    """The segment of each row, by one column.

    ``values``, tuple of length S: texts, numbers, booleans; None for rows without a value. Of
        crossings tuples of them.
    ``codes``, shape (n,), int64.
    """

    name: str
    values: tuple[Any, ...]
    codes: IntArray

    @classmethod
    def of(cls, name: str, values: Sequence[Any], codes: IntArray) -> SegmentRows:
        """Return the segment of each row, with values that files hold; equal ones are one."""
        place: dict[Any, int] = {}
        numbers = [place.setdefault(plain_value(value), len(place)) for value in values]
        if len(place) < len(values):
            codes = np.array(numbers)[codes]
        return cls(name, tuple(place), codes)

    @classmethod
    def read(cls, name: Hashable, column: Any) -> SegmentRows:
        """Number the values of a column, unchecked as a whole, since there may be more rows."""
        no_masked(f"segment column {name!r}", column)
        codes, values = encode_attribute(name, column, SEGMENTS)
        rows = cls.of(str(name), values, codes)
        if not is_categorical(column):
            check_fractions(rows.name, rows.values)
        return rows

    @classmethod
    def joined(cls, parts: Sequence[SegmentRows]) -> SegmentRows:
        """Join the rows of several batches, one after the other."""
        values: list[Any] = []
        codes = []
        for part in parts:
            codes.append(part.codes + len(values))
            values += part.values
        return cls.of(parts[0].name, values, np.concatenate(codes))

    def crossed(self, other: SegmentRows) -> SegmentRows:
        """Return the segments of two columns together: every pair of values that rows have."""
        size = len(other.values)
        pairs, codes = distinct(self.codes * size + other.codes)
        values = []
        for pair in pairs.tolist():
            ours, theirs = divmod(pair, size)
            values.append(crossed_value(self.values[ours], other.values[theirs]))
        return SegmentRows(division_name((self.name, other.name)), tuple(values), codes)

    @property
    def column(self) -> npt.NDArray[Any]:
        """Value of each row, shape (n,), objects."""
        values: npt.NDArray[Any] = np.fromiter(self.values, dtype=object, count=len(self.values))
        return values[self.codes]

    def take(self, rows: Any) -> SegmentRows:
        """Return some of the rows."""
        return SegmentRows(self.name, self.values, self.codes[rows])

    def arranged(self, order: Sequence[int]) -> SegmentRows:
        """Return the rows with the values at these places only; no row has another one."""
        place = np.zeros(len(self.values), dtype=np.int64)
        place[list(order)] = np.arange(len(order))
        return SegmentRows(self.name, tuple(self.values[k] for k in order), place[self.codes])

    def limited(self) -> tuple[SegmentRows, str]:
        """Return at most 1,000 segments, the largest and the others, and a note that says so.

        The note is empty if all segments stay.
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
    """Return the columns that segments are given as, and how they divide the rows.

    ``segments``: columns, or a pair of columns and a list of names, in which a tuple of names
        stands for their crossings.
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
    """Return whether data are texts that do not repeat: they name columns, and are none."""
    if not isinstance(data, (list, tuple)) or not data:
        return False
    return all(isinstance(value, str) for value in data) and len(set(data)) == len(data)


def divisions_of(names: Any) -> Divisions:
    """Check names of columns, and tuples of names whose crossings are wanted."""
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
        raise ValueError("a crossing of segments must name two columns at least, got none")
    return divisions


def division_name(division: Sequence[Hashable]) -> str:
    """Return the name of a column, or of crossed ones."""
    return CROSSED.join(map(str, division))


def divided(
    columns: Mapping[Hashable, SegmentRows], divisions: Divisions
) -> tuple[SegmentRows, ...]:
    """Return the rows by each column or crossing."""
    return tuple(
        reduce(SegmentRows.crossed, [columns[name] for name in division]) for division in divisions
    )


# -- values ----------------------------------------------------------------------------------------


def plain_value(value: Any) -> Any:
    """Return a value as a file holds it: a text, number or boolean, None, or a tuple of them.

    Anything else, such as a time, is its text.
    """
    if value is None or isinstance(value, (str, int, Others)):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, tuple):
        return tuple(map(plain_value, value))
    return str(value)


def crossed_value(first: Any, second: Any) -> tuple[Any, ...]:
    """Return a value of crossed columns; the first one may be of crossed columns itself."""
    return (*(first if isinstance(first, tuple) else (first,)), second)


def value_order(values: Sequence[Any], sort: bool = True) -> list[int]:
    """Return places of the values in sorted order, or as they stand; missing and others last."""
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
    """Return different texts of all values.

    Equal texts get the type of their value (1 and "1"). Missing values have a text of their own.
    """
    named = [_text(value) for value in values if not _is_unnamed(value)]
    uses = Counter(named)
    texts = []
    for value in values:
        text = _text(value)
        if _is_unnamed(value):
            # More brackets are put around it while a value is written like this.
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
    """Refuse a column that does not divide the rows.

    ``values``, sequence of length S.
    ``sizes``, shape (S,): rows of each.
    """
    segments = np.flatnonzero(sizes)
    n_rows = int(sizes.sum())
    if len(segments) < 2:
        shown = "none"
        if len(segments):
            shown = f"only {value_texts([values[segments[0]]])[0]!r}"
        raise ValueError(
            f"segment column {name!r} must hold two values at least, got {shown} in {n_rows:,} rows"
        )
    if len(segments) > MAX_SEGMENTS and len(segments) == n_rows:
        raise ValueError(
            f"segment column {name!r} must hold categories, got another value in each of "
            f"{n_rows:,} rows: is it an id of the rows?"
        )


def check_length(name: Hashable, length: int, n_rows: int) -> None:
    """Refuse a column of another length."""
    if length != n_rows:
        raise ValueError(
            f"segment column {name!r} must have one value per row, got {length:,} for {n_rows:,} "
            "rows"
        )


def check_number(name: str, number: int) -> None:
    """Refuse more values than are counted before all of them are known."""
    if number > MAX_VALUES:
        raise ValueError(
            f"segment column {name!r} must have at most {MAX_VALUES:,} values here, got "
            f"{number:,}: is it an id of the rows?"
        )


def check_fractions(name: str, values: Sequence[Any]) -> None:
    """Refuse a continuous column."""
    fractions = [v for v in values if isinstance(v, float) and not v.is_integer()]
    if len(fractions) > MAX_FRACTIONS:
        n_numbers = len(values) - values.count(None)
        raise ValueError(
            f"segment column {name!r} must hold categories, got {n_numbers:,} numbers such as "
            f"{fractions[0]:.6g}: cut it first, cut_at_quantiles does"
        )


def largest(sizes: IntArray) -> IntArray:
    """Return the places of the segments that stay of more than 1,000, in their order."""
    return np.sort(np.argsort(-sizes, kind="stable")[: MAX_SEGMENTS - 1])


def note_of_others(name: str, n_values: int | None, rows: int, text: str = OTHERS) -> str:
    """Return the note of a column whose smaller segments are one together.

    ``n_values``: how many values the column has; None where they are not known.
    ``rows``: how many rows the segment of the others has.
    """
    shown = MAX_SEGMENTS - 1
    many = f"more than {MAX_SEGMENTS:,}"
    others = "the others"
    if n_values is not None:
        many = f"{n_values:,}"
        others = f"the other {n_values - shown:,}"
    return (
        f"“{name}” has {many} values: the {shown} largest are segments, {others} with {rows:,} "
        f"rows are one segment, “{text}”."
    )
