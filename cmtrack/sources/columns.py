"""The columns of a table by their part in the evaluation, and the kinds that they may be of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from cmtrack.grouping import Label
from cmtrack.statistics.inputs import FREQUENCY, SAMPLING, listed
from cmtrack.statistics.segment_values import divisions_of


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
    lists : bool
        Whether the one column of probabilities holds lists.
    weights_are : "frequency", "sampling" or None
        What the weights are, where there are any.
    what : str
        The name of the argument that the scores were given as.
    segments : tuple of tuples of str
        Columns, and crossings of several, that divide the rows.

    Examples
    --------
    >>> from cmtrack.sources import Columns
    >>> Columns("y", scores=("p_a", "p_b"), segments=(("region",), ("region", "age"))).names
    ['y', 'p_a', 'p_b', 'region', 'age']
    """

    y_true: str | None
    y_pred: str | None = None
    weight: str | None = None
    row_ids: str | None = None
    scores: tuple[str, ...] = ()
    declared: tuple[Label, ...] | None = None
    lists: bool = False
    weights_are: str | None = None
    what: str = "y_prob"
    segments: tuple[tuple[str, ...], ...] = ()

    @property
    def names(self) -> list[str]:
        """Every column that is read, once."""
        single = (self.y_true, self.y_pred, self.weight, self.row_ids)
        return list(
            dict.fromkeys(
                [name for name in single if name is not None] + [*self.scores, *self.dividing]
            )
        )

    @property
    def dividing(self) -> list[str]:
        """Every column that divides the rows, once."""
        return list(dict.fromkeys(name for division in self.segments for name in division))

    def parts(self, width: int) -> list[str]:
        """The names of the given probabilities in error texts, where lists have this length."""
        if not self.lists:
            return [f"column {name!r}" for name in self.scores]
        return [f"entry {k} of column {self.scores[0]!r}" for k in range(width)]


def choose_columns(
    names: Sequence[str],
    *,
    y_true: str | None,
    y_pred: str | None = None,
    y_prob: Any = None,
    sample_weight: str | None = None,
    row_ids: str | None = None,
    what: str = "y_prob",
    segments: Any = None,
) -> Columns:
    """Find the columns among ``names``.

    Raises
    ------
    ValueError
        If a column is not there, or a pattern matches none.
    TypeError
        If a name is not a text.

    Examples
    --------
    >>> from cmtrack.sources import choose_columns
    >>> chosen = choose_columns(["y", "p_no", "p_yes"], y_true="y", y_prob="p_*")
    >>> chosen.scores, chosen.declared
    (('p_no', 'p_yes'), ('no', 'yes'))
    """
    single = {
        "y_true": y_true,
        "y_pred": y_pred,
        "sample_weight": sample_weight,
        "row_ids": row_ids,
    }
    for argument, name in single.items():
        if name is not None:
            _check(argument, name, names)
    declared: tuple[Label, ...] | None = None
    if y_prob is None:
        scores: tuple[str, ...] = ()
    elif isinstance(y_prob, str) and "*" in y_prob and y_prob not in names:
        matched = match_pattern(
            y_prob, [name for name in names if name not in single.values()], what
        )
        if not matched:
            raise ValueError(f"no column matches {y_prob!r}; the columns are {listed(names, 20)}")
        declared, scores = tuple(matched), tuple(matched.values())
    elif isinstance(y_prob, Mapping):
        declared, scores = tuple(y_prob), tuple(y_prob.values())
    elif isinstance(y_prob, str):
        scores = (y_prob,)
    elif isinstance(y_prob, Sequence) and y_prob:
        scores = tuple(y_prob)
    else:
        raise TypeError(
            f"{what} must be a column's name, a pattern with *, a list of names or a mapping of label to name, "
            f"got {y_prob!r:.80}"
        )
    for name in scores:
        _check(what, name, names)
    if len(set(scores)) != len(scores):
        raise ValueError(f"{what} must not name a column twice, got {listed(scores, 20)}")
    divisions: Any = () if segments is None else divisions_of(segments)
    for division in divisions:
        for name in division:
            _check("segments", name, names)
    return Columns(
        y_true, y_pred, sample_weight, row_ids, scores, declared, what=what, segments=divisions
    )


def match_pattern(pattern: str, names: Sequence[str], what: str = "y_prob") -> dict[str, str]:
    """Columns by the part that the star of a pattern such as ``p_*`` matches.

    Raises
    ------
    ValueError
        If there is more than one star.

    Examples
    --------
    >>> from cmtrack.sources import match_pattern
    >>> match_pattern("p_*", ["y", "p_no", "p_yes"])
    {'no': 'p_no', 'yes': 'p_yes'}
    """
    if pattern.count("*") != 1:
        raise ValueError(f"{what} takes one *, which stands for the label, got {pattern!r}")
    head, tail = pattern.split("*")
    return {
        name[len(head) : len(name) - len(tail)]: name
        for name in names
        if name.startswith(head) and name.endswith(tail) and len(name) > len(head) + len(tail)
    }


def check_kinds(columns: Columns, schema: pa.Schema, weights_are: str | None = None) -> Columns:
    """Check the kinds of the columns, and complete them with what the kinds tell of lists and weights.

    Parameters
    ----------
    columns : Columns
    schema : pyarrow.Schema
    weights_are : "frequency" or "sampling", optional
        By default a column of integers, or of decimals without places such as a sum in DuckDB, holds frequencies.

    Raises
    ------
    ValueError
        If a column is of a wrong kind.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from cmtrack.sources import Columns, check_kinds
    >>> schema = pa.schema({"y": pa.string(), "p": pa.list_(pa.float32()), "w": pa.int64()})
    >>> checked = check_kinds(Columns("y", weight="w", scores=("p",)), schema)
    >>> checked.lists, checked.weights_are
    (True, 'frequency')
    """
    for argument, name in (("y_true", columns.y_true), ("y_pred", columns.y_pred)):
        if name is not None and label_kind(schema.field(name).type) is None:
            kind = _shown(schema.field(name).type)
            raise ValueError(
                f"{argument} must hold integers, strings, booleans or floats, got {kind} in {name!r}"
            )
    if columns.row_ids is not None and label_kind(schema.field(columns.row_ids).type) not in (
        int,
        str,
        object,
    ):
        kind = _shown(schema.field(columns.row_ids).type)
        raise ValueError(
            f"row_ids must be a column of integers or strings, got {kind} in {columns.row_ids!r}"
        )
    for name in columns.dividing:
        stored = schema.field(name).type
        if label_kind(stored) is None and not pa.types.is_temporal(stored):
            raise ValueError(
                f"segments must hold texts, numbers, booleans or times, got {_shown(stored)} in {name!r}"
            )
    lists = bool(columns.scores) and is_list(schema.field(columns.scores[0]).type)
    if lists and len(columns.scores) > 1:
        raise ValueError(
            f"{columns.what} must be one column of lists or several of numbers, got {list(columns.scores)}"
        )
    for name in columns.scores:
        _check_number(
            columns.what,
            name,
            schema.field(name).type.value_type if lists else schema.field(name).type,
        )
    if columns.weight is None:
        return replace(columns, lists=lists)
    kind = schema.field(columns.weight).type
    _check_number("sample_weight", columns.weight, kind)
    whole = label_kind(kind) in (int, bool) or (pa.types.is_decimal(kind) and kind.scale == 0)
    return replace(
        columns, lists=lists, weights_are=weights_are or (FREQUENCY if whole else SAMPLING)
    )


def is_list(kind: pa.DataType) -> bool:
    """True for a column that holds a list in each row."""
    return bool(
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    )


def label_kind(kind: pa.DataType) -> type | None:
    """The type of a column's labels: int, float, str or bool; object if unknown, None if unsupported.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from cmtrack.sources import label_kind
    >>> label_kind(pa.int8()), label_kind(pa.list_(pa.int8()))
    (<class 'int'>, None)
    """
    if pa.types.is_dictionary(kind):
        return label_kind(kind.value_type)
    kinds = (
        (int, (pa.types.is_integer,)),
        (float, (pa.types.is_floating, pa.types.is_decimal)),
        (bool, (pa.types.is_boolean,)),
        (str, (pa.types.is_string, pa.types.is_large_string, _is_string_view)),
        (object, (pa.types.is_null,)),
    )
    return next((name for name, tests in kinds if any(test(kind) for test in tests)), None)


def _check_number(what: str, name: str, kind: pa.DataType) -> None:
    if label_kind(kind) in (None, str) or pa.types.is_dictionary(kind):
        raise ValueError(f"{what} must hold numbers, got {_shown(kind)} in column {name!r}")


def _is_string_view(kind: pa.DataType) -> bool:
    return str(kind) == "string_view"


def _shown(kind: pa.DataType) -> str:
    """The kind of a column as data frames call it."""
    names = {
        "double": "Float64",
        "float": "Float32",
        "large_string": "String",
        "string": "String",
        "bool": "Boolean",
    }
    text = str(kind)
    return names.get(text, text.replace("timestamp", "Datetime"))


def _check(what: str, name: Any, names: Sequence[str]) -> None:
    if not isinstance(name, str):
        raise TypeError(f"{what} must be the name of a column, got {name!r:.80}")
    if name not in names:
        raise ValueError(
            f"{what} must be a column of the table, got {name!r}; the columns are {listed(names, 20)}"
        )
