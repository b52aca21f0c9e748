"""Rules for CSV files: the format of the header, and the types of texts.

Two readers of CSV files follow these rules: pandas reads a file into memory, and DuckDB reads
tables in batches.
"""

from __future__ import annotations

import csv
import gzip
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

if TYPE_CHECKING:
    from cmtrack.grouping import Grouping

SEPARATORS = (",", "\t", ";", "|")
MISSING = (
    "",
    " ",
    "#N/A",
    "#N/A N/A",
    "#NA",
    "-1.#IND",
    "-1.#QNAN",
    "-NaN",
    "-nan",
    "1.#IND",
    "1.#QNAN",
    "<NA>",
    "N/A",
    "NA",
    "NULL",
    "NaN",
    "None",
    "n/a",
    "nan",
    "null",
)
"""Texts that the command line reads as missing by default; pandas uses the same list."""
KINDS: tuple[type, ...] = (bool, int, float, str)
"""Possible types of labels. The first type that preserves every text is used."""
_BOOLEANS = {"True", "TRUE", "true", "False", "FALSE", "false"}
_INTEGER = re.compile(r"[+-]?(0|[1-9][0-9]*)")
_WHOLE = re.compile(r"[+-]?(0|[1-9][0-9]*)(\.[0-9]*)?([eE][+-]?[0-9]+)?")
_CODE = re.compile(r"[+-]?0[0-9]+(\.[0-9]*)?")
_SHORT_INTEGER = r"^(0|-?[1-9][0-9]{0,14})$"
"""Pattern of integers that a float stores exactly. Arrow matches it much faster than Python."""
_INT64 = range(-(1 << 63), 1 << 63)
_EXACT = 1 << 53
"""Limit up to which a float stores every whole number exactly."""
_LONGEST_LINE = 1 << 20
"""Maximum number of characters to read of a header; a file may have no line breaks."""


@dataclass(frozen=True)
class Header:
    """The format of the first line of a CSV file.

    Attributes
    ----------
    separator : str
    names : tuple of str
    n_found : int
        Number of names from the caller that the line contains.
    has_blanks : bool
        Whether more names are found if the blanks around them are removed. If so, the blanks around
        the values are also removed.

    Examples
    --------
    >>> from cmtrack.sources.texts import Header
    >>> Header.from_line("y; h", ["y", "h"])
    Header(separator=';', names=('y', 'h'), n_found=2, has_blanks=True)
    """

    separator: str
    names: tuple[str, ...]
    n_found: int
    has_blanks: bool

    @classmethod
    def from_line(cls, line: str, wanted: Sequence[str], usual: str = ",") -> Header:
        """Choose the separator that finds the most wanted names; ``usual`` wins ties."""
        separators = dict.fromkeys([usual, *SEPARATORS])
        headers = [cls._split(line, separator, wanted) for separator in separators]
        most_found = max(header.n_found for header in headers)
        headers = [header for header in headers if header.n_found == most_found]
        if most_found == 0 and len(headers[0].names) == 1:  # the usual separator does not occur
            return max(headers, key=lambda header: len(header.names))
        return headers[0]

    @classmethod
    def _split(cls, line: str, separator: str, wanted: Sequence[str]) -> Header:
        try:
            names = next(csv.reader([line], delimiter=separator), [])
            stripped = next(csv.reader([line], delimiter=separator, skipinitialspace=True), [])
        except csv.Error:
            return cls(separator, (), 0, False)
        stripped = [name.strip() for name in stripped]
        n_found = len(set(wanted) & set(names))
        n_stripped = len(set(wanted) & set(stripped))
        if n_stripped > n_found:
            return cls(separator, tuple(stripped), n_stripped, True)
        return cls(separator, tuple(names), n_found, False)


def read_header(path: Path, wanted: Sequence[str]) -> Header:
    """Read the header of a local CSV file; ``wanted``: columns that the caller names."""
    opened: Any = gzip.open if path.name.lower().endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8-sig", errors="replace", newline="") as file:
        line = file.readline(_LONGEST_LINE)
    return Header.from_line(line.rstrip("\r\n"), wanted, usual_separator(path.name))


def usual_separator(name: str) -> str:
    """Return the usual separator for files whose names have this ending."""
    if name.lower().endswith((".tsv", ".tsv.gz")):
        return "\t"
    return ","


def lossless_kinds(texts: Any) -> set[type]:
    """Return the types to which all texts of an Arrow array can be converted without loss.

    A text is an integer if it has no leading zeros and fits into 64 bits. A text is a float if it
    is an exact whole number, or if Python prints the float exactly as in the text.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from cmtrack.sources.texts import lossless_kinds
    >>> sorted(kind.__name__ for kind in lossless_kinds(pa.array(["1", "2", None])))
    ['float', 'int', 'str']
    >>> lossless_kinds(pa.array(["1", "007"]))
    {<class 'str'>}
    """
    distinct = texts.unique().drop_null()
    is_short_integer = pc.match_substring_regex(distinct, _SHORT_INTEGER)
    others = distinct.filter(pc.invert(is_short_integer))
    kinds = set(KINDS)
    if len(others) < len(distinct):
        kinds.discard(bool)
    for text in others.to_pylist():
        kinds &= _kinds_of(text.strip())
        if kinds == {str}:
            break
    return kinds


def kind_of_texts(lossless: Iterable[set[type]], among: Iterable[type] = KINDS) -> type:
    """Return the common type for columns that belong together, such as all columns of labels.

    Parameters
    ----------
    lossless : iterable of sets of types
        Result of :func:`lossless_kinds` for each column or batch.
    among : iterable of types, optional
        The allowed types, for example the result of :func:`kinds_named`.

    Examples
    --------
    >>> from cmtrack.sources.texts import kind_of_texts
    >>> kind_of_texts([{int, float, str}, {float, str}])
    <class 'float'>
    """
    kinds = set(KINDS).intersection(*lossless)
    if kinds == set(KINDS):  # the columns contain no texts
        return str
    kinds.intersection_update(among)
    return next((kind for kind in KINDS if kind in kinds), str)


def kinds_of_labels(
    lossless: Mapping[str, set[type]], among: Iterable[type] = KINDS
) -> dict[str, type]:
    """Return the type of each label column; all columns of labels get a common type.

    Only integers and floats may be mixed, because the classes 1 and 1.0 are equal. ``lossless``
    contains the result of :func:`lossless_kinds` for each column.

    Examples
    --------
    >>> from cmtrack.sources.texts import kinds_of_labels
    >>> kinds_of_labels({"y": {int, float, str}, "z": {str}})
    {'y': <class 'str'>, 'z': <class 'str'>}
    """
    kind = kind_of_texts(lossless.values(), among)
    if kind is not float:
        return dict.fromkeys(lossless, kind)
    return {name: kind_of_texts([kinds], (int, float)) for name, kinds in lossless.items()}


def kinds_named(labels: Iterable[Any]) -> tuple[type, ...]:
    """Return the possible types of labels, given some labels that the caller names.

    If one of the named labels is not a number, all labels are texts, even if this label occurs in
    no row.

    Examples
    --------
    >>> from cmtrack.sources.texts import kinds_named
    >>> kinds_named(["1", "unknown"]), len(kinds_named(["1", "2"]))
    ((<class 'str'>,), 4)
    """
    if any(isinstance(label, str) and _kinds_of(label.strip()) == {str} for label in labels):
        return (str,)
    return KINDS


def grouped_labels(grouping: Grouping | None) -> list[Any]:
    """Return the classes that a grouping contains."""
    if grouping is None:
        return []
    return [label for members in grouping.steps[0].groups.values() for label in members]


def has_codes(texts: Any) -> bool:
    """Return whether some text in an Arrow array has leading zeros or does not fit into 64 bits."""
    distinct = texts.unique().drop_null()
    return any(_is_code(text.strip()) for text in distinct.to_pylist())


def _kinds_of(text: str) -> set[type]:
    kinds: set[type] = {str}
    if text in _BOOLEANS:
        kinds.add(bool)
    if _INTEGER.fullmatch(text) and int(text) in _INT64:
        kinds.add(int)
    if _is_exact_float(text):
        kinds.add(float)
    return kinds


def _is_exact_float(text: str) -> bool:
    try:
        value = float(text)
    except ValueError:
        return False
    # NaN has many spellings, and each of them means a missing label.
    if math.isnan(value) or repr(value) == text:
        return True
    return _WHOLE.fullmatch(text) is not None and value.is_integer() and abs(value) <= _EXACT


def _is_code(text: str) -> bool:
    if _CODE.fullmatch(text):
        return True
    return _INTEGER.fullmatch(text) is not None and int(text) not in _INT64
