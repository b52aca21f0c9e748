"""Names of a table's columns by their role in the evaluation, and checks of their types."""

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
    """Names of the columns that an evaluation reads.

    Attributes
    ----------
    y_true, y_pred, weight, row_ids : str, optional
    scores : tuple of str
        Columns that contain probabilities, or a single column that contains lists of probabilities.
    declared : tuple of labels, optional
        The label to which each column of probabilities belongs. None if the columns are in the
        order of the labels.
    lists : bool
        Whether the single column of probabilities contains lists.
    weights_are : "frequency", "sampling" or None
        The kind of the weights; None without weights.
    what : str
        The name of the argument that selects the scores.
    segments : tuple of tuples of str
        Columns, or combinations of columns, that divide the rows into segments.

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
        """All columns that are read, without repetition."""
        single = (self.y_true, self.y_pred, self.weight, self.row_ids)
        names = [name for name in single if name is not None]
        return list(dict.fromkeys([*names, *self.scores, *self.dividing]))

    @property
    def dividing(self) -> list[str]:
        """All columns that divide the rows into segments, without repetition."""
        return list(dict.fromkeys(name for division in self.segments for name in division))

    def parts(self, width: int) -> list[str]:
        """Return names for the probabilities in error texts; ``width``: length of the lists."""
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
    """Find the columns for an evaluation among the columns ``names`` of a table.

    Raises
    ------
    ValueError
        If a column does not exist, or a pattern matches no column.
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
            _check_name(argument, name, names)
    if isinstance(y_prob, str) and "*" in y_prob and y_prob not in names:
        free = [name for name in names if name not in single.values()]
        scores: Any = match_pattern(y_prob, free, what)
        if not scores:
            raise ValueError(f"no column matches {y_prob!r}; the columns are {listed(names, 20)}")
    else:
        scores = _names_of_scores(y_prob, what)
    declared: tuple[Label, ...] | None = None
    if isinstance(scores, Mapping):
        declared = tuple(scores)
        scores = scores.values()
    columns = Columns(
        y_true, y_pred, sample_weight, row_ids, scores=tuple(scores), declared=declared, what=what
    )
    for name in columns.scores:
        _check_name(what, name, names)
    if len(set(columns.scores)) != len(columns.scores):
        raise ValueError(f"{what} must not name a column twice, got {listed(columns.scores, 20)}")
    if segments is None:
        return columns
    divisions: Any = divisions_of(segments)  # the loop below checks that these are texts
    columns = replace(columns, segments=divisions)
    for name in columns.dividing:
        _check_name("segments", name, names)
    return columns


def _names_of_scores(y_prob: Any, what: str) -> Sequence[str] | Mapping[Label, str]:
    """Return the names of the score columns, by label if the caller states the labels."""
    if y_prob is None:
        return ()
    if isinstance(y_prob, str):
        return (y_prob,)
    if isinstance(y_prob, Mapping):
        return y_prob
    if isinstance(y_prob, Sequence) and y_prob:
        return y_prob
    raise TypeError(
        f"{what} must be a column's name, a pattern with *, a list of names or a mapping of label "
        f"to name, got {y_prob!r:.80}"
    )


def match_pattern(pattern: str, names: Sequence[str], what: str = "y_prob") -> dict[str, str]:
    """Find columns by a pattern such as ``p_*``, and map what the star matches to the column.

    Raises
    ------
    ValueError
        If the pattern contains more than one star.

    Examples
    --------
    >>> from cmtrack.sources import match_pattern
    >>> match_pattern("p_*", ["y", "p_no", "p_yes"])
    {'no': 'p_no', 'yes': 'p_yes'}
    """
    if pattern.count("*") != 1:
        raise ValueError(f"{what} takes one *, which stands for the label, got {pattern!r}")
    start, end = pattern.split("*")
    matched = {}
    for name in names:
        if name.startswith(start) and name.endswith(end) and len(name) > len(start) + len(end):
            matched[name[len(start) : len(name) - len(end)]] = name
    return matched


def check_kinds(columns: Columns, schema: pa.Schema, weights_are: str | None = None) -> Columns:
    """Check the types of the columns, and return them with ``lists`` and ``weights_are`` set.

    Parameters
    ----------
    columns : Columns
    schema : pyarrow.Schema
    weights_are : "frequency" or "sampling", optional
        By default, integers are frequencies. Decimals without decimal places, such as the result of
        a sum in DuckDB, also count as frequencies.

    Raises
    ------
    ValueError
        If a column has an unsupported type.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from cmtrack.sources import Columns, check_kinds
    >>> schema = pa.schema({"y": pa.string(), "p": pa.list_(pa.float32()), "w": pa.int64()})
    >>> checked = check_kinds(Columns("y", weight="w", scores=("p",)), schema)
    >>> checked.lists, checked.weights_are
    (True, 'frequency')
    """
    _check_labels(columns, schema)
    kinds = [schema.field(name).type for name in columns.scores]
    lists = bool(kinds) and is_list(kinds[0])
    if lists:
        if len(kinds) > 1:
            raise ValueError(
                f"{columns.what} must be one column of lists or several of numbers, "
                f"got {list(columns.scores)}"
            )
        kinds = [kinds[0].value_type]
    for name, kind in zip(columns.scores, kinds, strict=True):
        _check_number(columns.what, name, kind)
    if columns.weight is None:
        return replace(columns, lists=lists)
    kind = schema.field(columns.weight).type
    _check_number("sample_weight", columns.weight, kind)
    if weights_are is None:
        is_whole_decimal = pa.types.is_decimal(kind) and kind.scale == 0
        is_whole = is_whole_decimal or label_kind(kind) in (int, bool)
        weights_are = FREQUENCY if is_whole else SAMPLING
    return replace(columns, lists=lists, weights_are=weights_are)


def _check_labels(columns: Columns, schema: pa.Schema) -> None:
    """Check the types of the columns that contain labels, ids and segments."""
    for argument, name in (("y_true", columns.y_true), ("y_pred", columns.y_pred)):
        if name is not None and label_kind(schema.field(name).type) is None:
            kind = _name_of_kind(schema.field(name).type)
            raise ValueError(
                f"{argument} must contain integers, strings, booleans or floats, "
                f"got {kind} in {name!r}"
            )
    if columns.row_ids is not None:
        stored = schema.field(columns.row_ids).type
        if label_kind(stored) not in (int, str, object):
            raise ValueError(
                "row_ids must be a column of integers or strings, "
                f"got {_name_of_kind(stored)} in {columns.row_ids!r}"
            )
    for name in columns.dividing:
        stored = schema.field(name).type
        if label_kind(stored) is None and not pa.types.is_temporal(stored):
            raise ValueError(
                "segments must contain strings, numbers, booleans or times, got "
                f"{_name_of_kind(stored)} in {name!r}"
            )


def is_list(kind: pa.DataType) -> bool:
    """Return whether a column of this type contains a list in each row."""
    return bool(
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    )


def label_kind(kind: pa.DataType) -> type | None:
    """Return the Python type of labels; object if it is unknown, None if it is unsupported.

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
    for label_type, tests in kinds:
        if any(test(kind) for test in tests):
            return label_type
    return None


def _check_number(what: str, name: str, kind: pa.DataType) -> None:
    if label_kind(kind) in (None, str) or pa.types.is_dictionary(kind):
        raise ValueError(
            f"{what} must contain numbers, got {_name_of_kind(kind)} in column {name!r}"
        )


def _is_string_view(kind: pa.DataType) -> bool:
    return str(kind) == "string_view"


def _name_of_kind(kind: pa.DataType) -> str:
    """Return the name that data frames use for a column's type."""
    names = {
        "double": "Float64",
        "float": "Float32",
        "large_string": "String",
        "string": "String",
        "bool": "Boolean",
    }
    text = str(kind)
    return names.get(text, text.replace("timestamp", "Datetime"))


def _check_name(what: str, name: Any, names: Sequence[str]) -> None:
    if not isinstance(name, str):
        raise TypeError(f"{what} must be the name of a column, got {name!r:.80}")
    if name not in names:
        raise ValueError(
            f"{what} must be a column of the table, got {name!r}; "
            f"the columns are {listed(names, 20)}"
        )
