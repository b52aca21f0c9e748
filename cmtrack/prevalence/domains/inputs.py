"""Reading of ``by`` columns, and counting of target rows in batches."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np

from cmtrack.grouping import Label
from cmtrack.prevalence.domains.tables import (
    UNPLACED,
    CellCounts,
    DomainBins,
    DomainTables,
    Key,
    cell_text,
    domain_codes,
    first_rows,
    tabulate,
)
from cmtrack.statistics.attributes import Called, attribute_columns, distinct, encode_attribute
from cmtrack.statistics.inputs import FloatArray, IntArray, is_categorical, no_masked
from cmtrack.statistics.segment_values import plain_value, value_order

MOST_CELLS = 5_000
"""Maximum number of cells of a table."""
_PERIOD = re.compile(r"\d{4}(-\d\d(-\d\d)?|-?[QqWw]\d{1,2})?")
"""A year, month, day, quarter or week in a form whose texts have the order of time."""
_MONTH = re.compile(r"(\d{4})\D?(\d{1,2})")
_BY = Called("by", "by column", "by")
_RESERVED = frozenset(
    [
        *("label", "n", "labelled", "value", "low", "high", "count", "count_low", "count_high"),
        *("source", "assumption", "shift", "shift_low", "shift_high", "calibration"),
        *("calibration_low", "calibration_high", "fit_pvalue", "rows_needed", "why"),
        *("first", "second", "standard_error", "left_out", "error"),
    ]
)
"""Names of columns of the results, which a by column would replace."""


@dataclass(frozen=True, eq=False)
class CellRows:
    """The cell of each row.

    Attributes
    ----------
    values : dict of str to tuple
        The values of each column, in the order of their codes.
    codes : dict of str to ndarray of shape (n,)
        The code of each row's value.
    declared : set of str
        The columns whose values have a declared order, because they are categorical.
    """

    values: dict[str, tuple[Label, ...]]
    codes: dict[str, IntArray]
    declared: frozenset[str] = frozenset()

    @classmethod
    def read(cls, argument: str, by: Any, n_rows: int, unit: str) -> CellRows:
        """Read columns, and check that they have a value for each row.

        ``argument``: name of the argument for messages. ``unit``: "scores" or "labels".
        """
        columns = {}
        declared = set()
        for name, column in _columns(by).items():
            no_masked(f"{argument}[{name!r}]", column)
            if len(column) != n_rows:
                hint = ""
                if isinstance(by, list) and all(isinstance(value, str) for value in by):
                    hint = f"; {argument} takes columns such as frame[names], not their names"
                raise ValueError(
                    f'{argument}["{name}"] has {len(column):,} values for {n_rows:,} {unit}{hint}'
                )
            columns[name] = encode_attribute(name, column, _BY)
            if is_categorical(column):
                declared.add(name)
        return cls.of_columns(columns, frozenset(declared))

    @classmethod
    def of_columns(
        cls,
        columns: Mapping[str, tuple[IntArray, Sequence[Any]]],
        declared: frozenset[str] = frozenset(),
    ) -> CellRows:
        """Return rows from the codes and values of each column, in which None means missing."""
        values = {}
        codes = {}
        for name, (numbers, found) in columns.items():
            values[name], codes[name] = _plain_values(numbers, found)
            n_missing = int((codes[name] < 0).sum())
            if n_missing:
                raise ValueError(
                    f"{n_missing:,} {_rows(n_missing)} no {name}; drop them or name them"
                )
        return cls(values, codes, declared)

    @classmethod
    def joined(cls, parts: Sequence[CellRows]) -> CellRows:
        """Concatenate the rows of several batches."""
        columns = {}
        for name in parts[0].values:
            values: list[Label] = []
            codes = []
            for part in parts:
                codes.append(part.codes[name] + len(values))
                values += part.values[name]
            columns[name] = (np.concatenate(codes), values)
        return cls.of_columns(columns)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns; the last one is the period, unless there is only one."""
        return tuple(self.values)

    def keys(self) -> tuple[list[Key], IntArray]:
        """Return the cells in order of their codes, and the cell of each row."""
        sizes = tuple(len(values) for values in self.values.values())
        codes = np.ravel_multi_index(tuple(self.codes[name] for name in self.values), sizes)
        present, cells = distinct(codes)
        parts = np.unravel_index(present, sizes)
        columns = [
            [values[code] for code in part.tolist()]
            for values, part in zip(self.values.values(), parts, strict=True)
        ]
        return list(zip(*columns, strict=True)), cells


def _rows(n: int) -> str:
    return "row has" if n == 1 else "rows have"


def _columns(by: Any) -> dict[str, Any]:
    """Return columns by name; unnamed columns of a list or an array are numbered."""
    if isinstance(by, (list, tuple)) and by and all(_is_column(column) for column in by):
        names = [getattr(column, "name", None) for column in by]
        columns = {
            str(number if name is None else name): column
            for number, (name, column) in enumerate(zip(names, by, strict=True), start=1)
        }
        if len(columns) < len(by):
            raise ValueError(f"the columns of by must have different names, got {names}")
        return columns
    columns = {str(name): column for name, column in attribute_columns(by, None, _BY).items()}
    if list(columns) == ["0"]:
        return {"domain": columns["0"]}
    return columns


def _is_column(value: Any) -> bool:
    return hasattr(value, "__len__") and not isinstance(value, (str, bytes))


def cell_value(value: Any) -> Label:
    """Return a value that can be a part of a key: a text, a number or a boolean.

    A date, or a time at midnight, becomes the text of its date.
    """
    if isinstance(value, datetime):
        return cell_value(value.isoformat(" "))
    if isinstance(value, str):
        return value.removesuffix(" 00:00:00")
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if hasattr(value, "item"):
        return cell_value(value.item())
    return plain_value(value)


def _plain_values(codes: IntArray, values: Sequence[Any]) -> tuple[tuple[Label, ...], IntArray]:
    """Return distinct values and the code of each row, which is -1 if the value is missing."""
    place: dict[Label, int] = {}
    numbers = []
    for value in values:
        if value is None:
            numbers.append(-1)
        else:
            numbers.append(place.setdefault(cell_value(value), len(place)))
    return tuple(place), np.array(numbers, dtype=np.int64)[codes]


class DomainCounter:
    """Labelled rows, and target rows that are counted in batches.

    ``placed``: the cells of the labelled rows; None if they are unknown. ``labelled``: the labelled
    rows, whose ``cells`` are the codes of ``placed``.
    """

    def __init__(
        self,
        columns: tuple[str, ...],
        placed: CellRows | None,
        classes: IntArray,
        scores: FloatArray,
        n_classes: int,
    ) -> None:
        self.columns = columns
        self.n_classes = n_classes
        reserved = sorted(_RESERVED & set(columns))
        if reserved:
            raise ValueError(
                f"by cannot have the column {reserved[0]!r}, because the table has a column of "
                "this name; rename it"
            )
        # Values are known by their texts, because they may be numbers in one of two files only.
        self._keys: dict[tuple[str, ...], int] = {}
        self._declared: dict[str, list[str]] = {}
        self._seen: dict[str, dict[str, Label]] = {name: {} for name in columns}
        self._labelled_texts: dict[str, set[str]] = {}
        self._target_texts: dict[str, set[str]] = {name: set() for name in columns}
        if placed is None:
            self._keys[(UNPLACED,) * len(columns)] = 0
            cells = np.zeros(len(classes), dtype=np.int64)
        else:
            cells = self._cells(placed)
            self._labelled_texts = {name: set(texts) for name, texts in self._seen.items()}
        self._labelled = CellCounts.from_rows(cells, classes, scores)
        self._bins = DomainBins(self._labelled, self._domains[cells], n_classes)
        self._target: list[CellCounts] = []

    @property
    def _domains(self) -> IntArray:
        return domain_codes(tuple(self._keys))

    def _cells(self, rows: CellRows) -> IntArray:
        """Return the number of each row's cell, and add new cells."""
        keys, cells = rows.keys()
        for name in self.columns:
            codes = rows.codes[name]
            values = rows.values[name]
            seen = self._seen[name]
            first = np.sort(first_rows(distinct(codes)[1]))
            for code in codes[first].tolist():
                value = values[code]
                text = cell_text(value)
                # A number is shown instead of the text that spells it in the other table.
                if text not in seen or isinstance(seen[text], str):
                    seen[text] = value
            if name in rows.declared:
                self._declared.setdefault(name, list(map(cell_text, values)))
        numbers = [
            self._keys.setdefault(tuple(map(cell_text, key)), len(self._keys)) for key in keys
        ]
        if len(self._keys) > MOST_CELLS:
            raise ValueError(
                f"by gives {len(self._keys):,} cells; more than {MOST_CELLS:,} are not a table"
            )
        return np.array(numbers, dtype=np.int64)[cells]

    def add(self, rows: CellRows, scores: FloatArray) -> None:
        """Count the rows of a batch. ``scores``, shape (n,), or probabilities, shape (n, K)."""
        if not len(scores):
            return
        cells = self._cells(rows)
        for name, values in rows.values.items():
            self._target_texts[name].update(map(cell_text, values))
        batch = CellCounts.from_rows(cells, np.zeros(len(cells), dtype=np.int64), scores)
        self._target.append(self._bins.merged(batch, self._domains[cells]))

    def tables(self) -> DomainTables:
        """Return the counts of all rows, with the cells in the order of their values."""
        orders = [self._order(name) for name in self.columns]
        ranks = [{value: rank for rank, value in enumerate(order)} for order in orders]

        def place(key: tuple[str, ...]) -> tuple[int, ...]:
            return tuple(rank.get(text, -1) for rank, text in zip(ranks, key, strict=True))

        texts = sorted(self._keys, key=place)
        number = np.zeros(len(texts), dtype=np.int64)
        number[[self._keys[key] for key in texts]] = np.arange(len(texts))
        values = list(self._seen.values())
        keys = [
            tuple(seen.get(text, text) for seen, text in zip(values, key, strict=True))
            for key in texts
        ]
        target = self._target[0]
        for batch in self._target[1:]:
            target += batch
        return tabulate(
            self.columns,
            tuple(keys),
            replace(self._labelled, cells=number[self._labelled.cells]),
            replace(target, cells=number[target.cells]),
            self.n_classes,
            tuple(
                dict.fromkeys([*(values[-1][text] for text in orders[-1]), *(k[-1] for k in keys)])
            ),
        )

    def _order(self, name: str) -> list[str]:
        """Return the texts of a column's values in their order."""
        seen = self._seen[name]
        texts = list(seen)
        values = list(seen.values())
        if name in self._declared:
            declared = [text for text in self._declared[name] if text in seen]
            return list(dict.fromkeys([*declared, *texts]))
        if name == self.columns[-1] and len(self.columns) > 1 and not is_ordered(values):
            return texts
        return [texts[place] for place in value_order(values)]

    def warnings(self) -> list[str]:
        """Return warnings about values that may have been meant to be equal."""
        forms = defaultdict(list)
        for text in self._seen[self.columns[-1]]:
            month = _MONTH.fullmatch(text)
            if month is not None:
                forms[int(month[1]), int(month[2])].append(text)
        found = [
            f"{' and '.join(sorted(texts))} are different values of {self.columns[-1]}, but may "
            "be the same month"
            for texts in forms.values()
            if len(texts) > 1
        ]
        # Without a common domain, every number would come from other domains. Labelled rows of
        # other periods only are usual.
        for name in self.columns[:-1]:
            labelled = self._labelled_texts.get(name, set())
            target = self._target_texts[name]
            if labelled and not labelled & target:
                found.append(
                    f"no labelled row has a {name} of the rows to count: the labelled rows have "
                    f"{min(labelled)!r}, and the rows to count have {min(target)!r}"
                )
        return found


def is_ordered(values: Sequence[Label]) -> bool:
    """Return whether values are numbers, or dates in one form, so that they can be sorted."""
    if all(isinstance(value, (int, float)) for value in values):
        return True
    texts = [value for value in values if isinstance(value, str)]
    is_date = all(_PERIOD.fullmatch(text) for text in texts)
    return is_date and len(texts) == len(values) and len({len(text) for text in texts}) == 1


def read_labelled(calibration_by: Any, columns: tuple[str, ...], n_rows: int) -> CellRows:
    """Read the columns of the labelled rows, which must equal the target's, in any order."""
    rows = CellRows.read("calibration_by", calibration_by, n_rows, "labels")
    if set(rows.columns) != set(columns):
        raise ValueError(
            f"calibration_by needs the columns {', '.join(columns)}; got {', '.join(rows.columns)}"
        )
    return replace(rows, values={name: rows.values[name] for name in columns})
