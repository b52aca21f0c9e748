"""Values that divide rows into segments: the declared columns and crossings, their values, order, texts and limits."""

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
from cmtrack.statistics.inputs import IntArray, no_masked

MAX_SEGMENTS = 1000
"""Segments of one column; the smallest beyond them are one together."""
MAX_VALUES = 10_000
"""Values of one column that are counted where all of them are known last only."""
MAX_FRACTIONS = 20
"""Distinct numbers that are not whole; a column with more is continuous."""
MISSING, OTHERS = "(missing)", "(others)"
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

    ``values``, tuple of length S: texts, numbers, booleans; None for rows without a value. Of crossings tuples of them.
    ``codes``, shape (n,), int64.
    """

    name: str
    values: tuple[Any, ...]
    codes: IntArray

    @classmethod
    def of(cls, name: str, values: Sequence[Any], codes: IntArray) -> SegmentRows:
        """The segment of each row, with values that files hold; values that are written alike are one."""
        place: dict[Any, int] = {}
        numbers = [place.setdefault(plain_value(value), len(place)) for value in values]
        return cls(
            name, tuple(place), codes if len(place) == len(values) else np.array(numbers)[codes]
        )

    @classmethod
    def read(cls, name: Hashable, column: Any) -> SegmentRows:
        """Number the values of a column; they are not checked together, as there may be more rows."""
        no_masked(f"segment column {name!r}", column)
        codes, values = encode_attribute(name, column, SEGMENTS)
        out = cls.of(str(name), values, codes)
        if type(getattr(column, "dtype", None)).__name__ != "CategoricalDtype":
            check_fractions(out.name, out.values)
        return out

    @classmethod
    def joined(cls, parts: Sequence[SegmentRows]) -> SegmentRows:
        """The rows of several batches, one after the other."""
        values: list[Any] = []
        codes = []
        for part in parts:
            codes.append(part.codes + len(values))
            values += part.values
        return cls.of(parts[0].name, values, np.concatenate(codes))

    def crossed(self, other: SegmentRows) -> SegmentRows:
        """The segments of two columns together: every pair of values that rows have."""
        pairs, codes = distinct(self.codes * len(other.values) + other.codes)
        places = [divmod(pair, len(other.values)) for pair in pairs.tolist()]
        values = tuple(crossed_value(self.values[i], other.values[j]) for i, j in places)
        return SegmentRows(f"{self.name}{CROSSED}{other.name}", values, codes)

    @property
    def column(self) -> npt.NDArray[Any]:
        """The value of each row, shape (n,), objects."""
        held: npt.NDArray[Any] = np.fromiter(self.values, dtype=object, count=len(self.values))
        return held[self.codes]

    def take(self, rows: Any) -> SegmentRows:
        """Some of the rows."""
        return SegmentRows(self.name, self.values, self.codes[rows])

    def arranged(self, order: Sequence[int]) -> SegmentRows:
        """The rows with the values at these places only; no row has another one."""
        place = np.zeros(len(self.values), dtype=np.int64)
        place[list(order)] = np.arange(len(order))
        return SegmentRows(self.name, tuple(self.values[k] for k in order), place[self.codes])

    def limited(self) -> tuple[SegmentRows, str]:
        """The largest segments, the others together, and the note that says so; the same where there are few."""
        if len(self.values) <= MAX_SEGMENTS:
            return self, ""
        sizes = np.bincount(self.codes, minlength=len(self.values))
        largest_places = largest(sizes)
        place = np.full(len(self.values), len(largest_places), dtype=np.int64)
        place[largest_places] = np.arange(len(largest_places))
        values = (*(self.values[k] for k in largest_places.tolist()), Others.OTHERS)
        rows = int(len(self.codes) - sizes[largest_places].sum())
        note = note_of_others(self.name, len(self.values), rows, value_texts(values)[-1])
        return SegmentRows(self.name, values, place[self.codes]), note


def declared(segments: Any) -> tuple[Any, Divisions]:
    """The columns that segments are given as, and how they divide the rows.

    ``segments``: a pair is of one of these and a list of names, in which a tuple of names stands for their crossings.
    """
    data, names = segments, None
    if (
        isinstance(segments, tuple)
        and len(segments) == 2
        and isinstance(segments[1], (list, tuple, str))
    ):
        data, names = segments
    if _is_list_of_names(data):
        raise TypeError(
            f"segments must map names to columns, such as {{{data[0]!r}: one value per row}}, or be a frame; "
            f"got only the names {list(data)!r:.80}"
        )
    columns = attribute_columns(data, called=SEGMENTS)
    divisions = divisions_of(list(columns) if names is None else names)
    needed = list(dict.fromkeys(name for division in divisions for name in division))
    return attribute_columns(columns, needed, SEGMENTS), divisions


def _is_list_of_names(data: Any) -> bool:
    """True for a list of texts that do not repeat: they name columns, as ``compare(segments=)`` takes them."""
    if not isinstance(data, (list, tuple)) or not data:
        return False
    return all(isinstance(value, str) for value in data) and len(set(data)) == len(data)


def divisions_of(names: Any) -> Divisions:
    """Names of columns, and tuples of names whose crossings are wanted."""
    if isinstance(names, (str, bytes)) or not isinstance(names, Sequence):
        raise TypeError(
            f"segments must be a list of names, or of tuples of names for crossings, got {names!r:.80}"
        )
    divisions = tuple(tuple(name) if isinstance(name, (tuple, list)) else (name,) for name in names)
    if not divisions:
        raise ValueError("segments must name at least one column, got none")
    called = [division_name(division) for division in divisions]
    if len(set(called)) != len(called) or any(
        len(set(division)) != len(division) for division in divisions
    ):
        raise ValueError(f"segments must not repeat, got {called[:20]}")
    if not all(divisions):
        raise ValueError("a crossing of segments must name two columns at least, got none")
    return divisions


def division_name(division: Sequence[Hashable]) -> str:
    """The name of a column, or of crossed ones."""
    return CROSSED.join(map(str, division))


def divided(
    columns: Mapping[Hashable, SegmentRows], divisions: Divisions
) -> tuple[SegmentRows, ...]:
    """The rows by each column or crossing."""
    return tuple(
        reduce(SegmentRows.crossed, [columns[name] for name in division]) for division in divisions
    )


# -- values --------------------------------------------------------------------------------------------


def plain_value(value: Any) -> Any:
    """A value as a file holds it: a text, number or boolean, None, or the text of anything else, such as a time."""
    if value is None or isinstance(value, (str, int, Others)):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    return tuple(map(plain_value, value)) if isinstance(value, tuple) else str(value)


def crossed_value(first: Any, second: Any) -> tuple[Any, ...]:
    """A value of crossed columns."""
    return (*(first if isinstance(first, tuple) else (first,)), second)


def value_order(values: Sequence[Any], sort: bool = True) -> list[int]:
    """Places of the values in sorted order, or as they stand; missing ones and the others last."""
    last = (None, Others.OTHERS)
    order = [k for k, value in enumerate(values) if not any(value is one for one in last)]
    if sort:
        order.sort(key=lambda k: _sort_key(values[k]))
    return [*order, *(k for one in last for k, value in enumerate(values) if value is one)]


def _sort_key(value: Any) -> Any:
    """Numbers, then texts, then missing values."""
    if isinstance(value, tuple):
        return tuple(map(_sort_key, value))
    if value is None or isinstance(value, Others):
        return 3, 0, ""
    return (1, value, "") if isinstance(value, (int, float)) else (2, 0, str(value))


def value_texts(values: Sequence[Any]) -> tuple[str, ...]:
    """Different texts of all values: equal ones get their type (1 and "1"), missing values a text of their own."""
    plain = [_text(value) for value in values if not (value is None or isinstance(value, Others))]
    many = Counter(plain)
    texts = []
    for value in values:
        if value is None or isinstance(value, Others):
            texts.append(_unlike(MISSING if value is None else OTHERS, plain))
        else:
            text = _text(value)
            texts.append(text if many[text] == 1 else f"{text} ({type(value).__name__})")
    return tuple(texts)


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        return CROSSED.join(map(_text, value))
    return MISSING if value is None else OTHERS if isinstance(value, Others) else str(value)


def _unlike(text: str, others: Sequence[str]) -> str:
    """The text, in more brackets where a value is written so."""
    while text in others:
        text = f"({text})"
    return text


def check_values(name: str, values: Sequence[Any], sizes: IntArray) -> None:
    """Refuse a column that does not divide the rows.

    ``values``, sequence of length S.
    ``sizes``, shape (S,): rows of each.
    """
    held, rows = np.flatnonzero(sizes), int(sizes.sum())
    if len(held) < 2:
        only = f"only {value_texts([values[held[0]]])[0]!r}" if len(held) else "none"
        raise ValueError(
            f"segment column {name!r} must hold two values at least, got {only} in {rows:,} rows"
        )
    if len(held) > MAX_SEGMENTS and len(held) == rows:
        raise ValueError(
            f"segment column {name!r} must hold categories, got another value in each of {rows:,} rows: is it an id of "
            "the rows?"
        )


def check_length(name: Hashable, length: int, n_rows: int) -> None:
    """Refuse a column of another length."""
    if length != n_rows:
        raise ValueError(
            f"segment column {name!r} must have one value per row, got {length:,} for {n_rows:,} rows"
        )


def check_number(name: str, number: int) -> None:
    """Refuse more values than are counted before all of them are known."""
    if number > MAX_VALUES:
        raise ValueError(
            f"segment column {name!r} must have at most {MAX_VALUES:,} values here, got {number:,}: is it an id of the "
            "rows?"
        )


def check_fractions(name: str, values: Sequence[Any]) -> None:
    """Refuse a continuous column."""
    fractions = [v for v in values if isinstance(v, float) and not v.is_integer()]
    if len(fractions) > MAX_FRACTIONS:
        raise ValueError(
            f"segment column {name!r} must hold categories, got {len(values) - values.count(None):,} numbers such as "
            f"{fractions[0]:.6g}: cut it first, cut_at_quantiles does"
        )


def largest(sizes: IntArray) -> IntArray:
    """Places of the segments that stay of more than 1,000, in their order."""
    return np.sort(np.argsort(-sizes, kind="stable")[: MAX_SEGMENTS - 1])


def note_of_others(name: str, n_values: int | None, rows: int, text: str = OTHERS) -> str:
    """The note of a column whose smaller segments are one together; ``n_values`` where they are known."""
    shown = MAX_SEGMENTS - 1
    many = f"more than {MAX_SEGMENTS:,}" if n_values is None else f"{n_values:,}"
    other = "the others" if n_values is None else f"the other {n_values - shown:,}"
    return (
        f"“{name}” has {many} values: the {shown} largest are segments, {other} with {rows:,} rows are one segment, "
        f"“{text}”."
    )
