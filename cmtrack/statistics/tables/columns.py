"""Which columns of a table are what, and the same table under the plan's own names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw

from cmtrack.grouping import Label
from cmtrack.statistics.inputs import listed
from cmtrack.statistics.tables.tallies import ACTUAL, PREDICTED, WEIGHT, Run

MODULUS = 2**31 - 1
"""Row ids are taken modulo this prime, so that sums of their powers are exact in 64 bits."""
POWERS = ("id1", "id2", "id3")
_LABELS = (nw.String, nw.Boolean, nw.Categorical, nw.Enum)


@dataclass(frozen=True)
class Columns:
    """Names of columns.

    Attributes
    ----------
    y_true, y_pred, weight, row_ids : str, optional
    scores : tuple of str
        Columns of probabilities, or one column of lists.
    declared : tuple of labels, optional
        The labels that the columns of probabilities stand for; None where only their order tells.
    width : int, optional
        The length of the lists, where one column holds them.
    """

    y_true: str | None
    y_pred: str | None = None
    weight: str | None = None
    row_ids: str | None = None
    scores: tuple[str, ...] = ()
    declared: tuple[Label, ...] | None = None
    width: int | None = None

    @property
    def names(self) -> list[str]:
        """Every column that is read, once."""
        single = (self.y_true, self.y_pred, self.weight, self.row_ids)
        return list(dict.fromkeys([name for name in single if name is not None] + list(self.scores)))

    @property
    def parts(self) -> list[str]:
        """What error texts call each given probability."""
        if self.width is None:
            return [f"column {name!r}" for name in self.scores]
        return [f"entry {k} of column {self.scores[0]!r}" for k in range(self.width)]

    @property
    def given(self) -> list[str]:
        """The plan's names of the given probabilities."""
        return [f"c{k}" for k in range(len(self.parts))]


def choose_columns(
    names: Sequence[str],
    *,
    y_true: str | None,
    y_pred: str | None = None,
    y_prob: Any = None,
    sample_weight: str | None = None,
    row_ids: str | None = None,
) -> Columns:
    """Find the columns among ``names``.

    Raises
    ------
    ValueError
        If a column is not there, or a pattern matches none.
    TypeError
        If a name is no text.
    """
    single = {"y_true": y_true, "y_pred": y_pred, "sample_weight": sample_weight, "row_ids": row_ids}
    for what, name in single.items():
        if name is not None:
            _check(what, name, names)
    declared: tuple[Label, ...] | None = None
    if y_prob is None:
        scores: tuple[str, ...] = ()
    elif isinstance(y_prob, str) and "*" in y_prob and y_prob not in names:
        found = match_pattern(y_prob, [name for name in names if name not in single.values()])
        if not found:
            raise ValueError(f"no column matches {y_prob!r}; the columns are {listed(names, 20)}")
        declared, scores = tuple(found), tuple(found.values())
    elif isinstance(y_prob, Mapping):
        declared, scores = tuple(y_prob), tuple(y_prob.values())
    elif isinstance(y_prob, str):
        scores = (y_prob,)
    elif isinstance(y_prob, Sequence) and y_prob:
        scores = tuple(y_prob)
    else:
        raise TypeError(
            "y_prob must be a column's name, a pattern with *, a list of names or a mapping of label to name, "
            f"got {y_prob!r:.80}"
        )
    for name in scores:
        _check("y_prob", name, names)
    if len(set(scores)) != len(scores):
        raise ValueError(f"y_prob must not name a column twice, got {listed(scores, 20)}")
    return Columns(y_true, y_pred, sample_weight, row_ids, scores, declared)


def match_pattern(pattern: str, names: Sequence[str]) -> dict[str, str]:
    """Columns by the part that the star of a pattern such as ``p_*`` matches.

    Raises
    ------
    ValueError
        If there is more than one star.
    """
    if pattern.count("*") != 1:
        raise ValueError(f"y_prob takes one *, which stands for the label, got {pattern!r}")
    head, tail = pattern.split("*")
    return {
        name[len(head) : len(name) - len(tail)]: name
        for name in names
        if name.startswith(head) and name.endswith(tail) and len(name) > len(head) + len(tail)
    }


def renamed(table: nw.LazyFrame[Any], columns: Columns, run: Run) -> tuple[nw.LazyFrame[Any], Columns]:
    """The table with the plan's own names and kinds, and the columns with the length of lists.

    Raises
    ------
    ValueError
        If a column is of a wrong kind, or lists are of several lengths.
    """
    schema = table.collect_schema()
    new: dict[str, nw.Expr] = {}
    for plan, what, name in ((ACTUAL, "y_true", columns.y_true), (PREDICTED, "y_pred", columns.y_pred)):
        if name is not None:
            new[plan] = _as_label(what, name, schema[name])
    if columns.weight is not None:
        new[WEIGHT] = _as_number("sample_weight", columns.weight, schema[columns.weight])
    if columns.row_ids is not None:
        if not schema[columns.row_ids].is_integer():
            raise ValueError(
                f"row_ids must be a column of integers, got {schema[columns.row_ids]} in {columns.row_ids!r}"
            )
        ids = nw.col(columns.row_ids)
        wide = ids if schema[columns.row_ids] == nw.Int64 else ids.cast(nw.Int64)  # Dask casts no missing integers
        residue = ((wide % MODULUS) + MODULUS) % MODULUS
        new[POWERS[0]] = residue
    if columns.scores and isinstance(schema[columns.scores[0]], (nw.List, nw.Array)):
        if len(columns.scores) > 1:
            raise ValueError(f"y_prob must be one column of lists or several of numbers, got {list(columns.scores)}")
        lists = nw.col(columns.scores[0]).cast(nw.List(nw.Float64))
        columns = replace(columns, width=_one_length(table, columns.scores[0], lists, run))
        new |= {c: lists.list.get(k) for k, c in enumerate(columns.given)}
    else:
        for c, name in zip(columns.given, columns.scores, strict=True):
            new[c] = _as_number("y_prob", name, schema[name])
    frame = table.with_columns(**{f"cmtrack_{name}": expr for name, expr in new.items()})
    frame = frame.select(*(nw.col(f"cmtrack_{name}").alias(name) for name in new))
    if columns.row_ids is not None:
        one = nw.col(POWERS[0])
        frame = frame.with_columns(**{POWERS[1]: (one * one) % MODULUS})
        frame = frame.with_columns(**{POWERS[2]: (nw.col(POWERS[1]) * one) % MODULUS})
    return frame, columns


def _check(what: str, name: Any, names: Sequence[str]) -> None:
    if not isinstance(name, str):
        raise TypeError(f"{what} must be the name of a column, got {name!r:.80}")
    if name not in names:
        raise ValueError(f"{what} must be a column of the table, got {name!r}; the columns are {listed(names, 20)}")


def _as_label(what: str, name: str, kind: Any) -> nw.Expr:
    column = nw.col(name)
    if kind.is_integer():
        return column
    if kind.is_float() or kind.is_decimal():
        return column.cast(nw.Float64)
    if not isinstance(kind, _LABELS):
        raise ValueError(f"{what} must hold integers, strings, booleans or floats, got {kind} in {name!r}")
    return column.cast(nw.String) if isinstance(kind, (nw.Categorical, nw.Enum)) else column


def _as_number(what: str, name: str, kind: Any) -> nw.Expr:
    if not kind.is_numeric() and kind != nw.Boolean:
        raise ValueError(f"{what} must hold numbers, got {kind} in column {name!r}")
    return nw.col(name).cast(nw.Float64)


def _one_length(table: nw.LazyFrame[Any], name: str, lists: nw.Expr, run: Run) -> int:
    column = nw.col(name)
    lengths = table.select(length=nw.when(~column.is_null()).then(lists.list.len()).otherwise(nw.lit(-1)))
    found = run("lengths of lists", lengths.group_by("length").agg(nw.len().alias("rows")))
    rows = {int(length): int(n) for length, n in zip(found["length"], found["rows"], strict=True)}
    if not rows:
        raise ValueError("the table must have at least one row, got none")
    total, usual = sum(rows.values()), max(rows, key=lambda length: rows[length])
    if len(rows) > 1 or usual < 1:
        shown = {("null" if length < 0 else length): n for length, n in sorted(rows.items())}
        raise ValueError(
            f"y_prob must hold lists of one length in column {name!r}, got {total - rows[usual]} of {total} rows that "
            f"have not {usual}: rows by length are {shown}"
        )
    return usual
