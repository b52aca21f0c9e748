"""Checked conversion of labels: columns of any kind become class numbers in the same way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from cmtrack.grouping import Label
from cmtrack.grouping.step import same_label, stored_label
from cmtrack.statistics.counting import (
    Codes,
    Counts,
    RawIntegers,
    SparseCounts,
    blocks,
    count_integer_pairs,
    count_pairs,
)
from cmtrack.statistics.factorize import (
    Factor,
    factorize,
    integer_classes,
    integer_factor,
    read_labels,
)
from cmtrack.statistics.inputs import FloatArray, IntArray, listed

MAX_CLASSES = 10_000
_NUMBERS = frozenset((bool, int, float, type(None)))
"""Types of labels that files store unchanged."""


@dataclass(frozen=True, eq=False)
class Numbered:
    """Columns of labels with a common numbering of the classes.

    ``labels``, tuple of length K: the classes in order.
    ``codes``: class numbers of each column.
    ``pairs``, shape (K, K): counts of two columns, if reading the columns already produced them.
    ``remark``: remark about labels that were converted to texts; otherwise empty.
    """

    labels: tuple[Label, ...]
    codes: dict[str, Codes]
    pairs: Counts | None = None
    remark: str = ""

    def count(
        self, actual: str, predicted: str, weights: FloatArray | IntArray | None = None
    ) -> Counts | SparseCounts:
        """Return the (K, K) table of counts of two columns."""
        if weights is None and self.pairs is not None:
            return self.pairs
        return count_pairs(self.codes[actual], self.codes[predicted], len(self.labels), weights)


def number_labels(
    columns: Mapping[str, Any],
    labels: Sequence[Label] | None = None,
    declared: Sequence[Any] | None = None,
) -> Numbered:
    """Number the classes of one or more label columns in the same way.

    ``columns``, mapping of name to array-like of shape (n,): the columns by their names in
        messages. Labels are integers, strings, booleans or floats, in lists, or in NumPy, pandas
        (including categorical and Arrow-backed), polars or Arrow data.
    ``labels``: the classes in order. By default all classes that occur in a column or are declared
        by a categorical column. The classes are in the order of the categories if all columns have
        the same categories, and otherwise sorted.
    ``declared``: classes that exist even if they do not occur in any row. These classes are used if
        ``labels`` is not given. Examples are the columns of a frame of probabilities, where a text
        means the label that it spells, and the classes of a grouping.
    """
    read = {name: read_labels(name, values) for name, values in columns.items()}
    _check_lengths(read)
    factors, pairs = _factors(read)
    factors, remark = _with_stored_labels(factors)
    named: list[Any] = []
    for classes in (labels, declared):
        if classes is not None:
            named.extend(classes)
    for name, factor in factors.items():
        if not factor.ordered:
            no_scores(name, factor.present, named)
    order = _order(factors, labels, declared)
    codes, index = _numbered(factors, order)
    if pairs is None:
        return Numbered(order, codes, remark=remark)
    # The table has a cell for each integer of a range. Integers that are not classes have no rows.
    low, table = pairs
    place = np.array([index.get(low + i, -1) for i in range(len(table))], dtype=np.int64)
    is_class = np.flatnonzero(place >= 0)
    counts = np.zeros((len(order), len(order)), dtype=np.int64)
    counts[np.ix_(place[is_class], place[is_class])] = table[np.ix_(is_class, is_class)]
    return Numbered(order, codes, counts, remark)


def number_as_they_come(columns: Mapping[str, Any]) -> tuple[tuple[Label, ...], dict[str, Codes]]:
    """Number the classes that occur in the rows, in sorted order; a single class is accepted."""
    factors = {name: factorize(name, values) for name, values in columns.items()}
    for name, factor in factors.items():
        no_scores(name, factor.present)
    order = _common_order(factors)
    _check_number(order)
    return order, _numbered(factors, order)[0]


def encode_labels(
    columns: Mapping[str, Any],
    labels: Sequence[Label] | None = None,
    declared: Sequence[Any] | None = None,
) -> tuple[tuple[Label, ...], dict[str, IntArray]]:
    """Number label columns as in :func:`number_labels`; return int64 class numbers by column."""
    numbered = number_labels(columns, labels, declared)
    return numbered.labels, {name: codes.all() for name, codes in numbered.codes.items()}


def _check_lengths(read: Mapping[str, Factor | RawIntegers]) -> None:
    lengths = {}
    for name, column in read.items():
        lengths[name] = len(column.raw if isinstance(column, Factor) else column)
    if len(set(lengths.values())) > 1:
        raise ValueError(f"columns must have the same length, got {lengths}")
    if not all(lengths.values()):
        raise ValueError(f"at least one row is needed, got {lengths}")


def _check_number(order: Sequence[Label]) -> None:
    if len(order) > MAX_CLASSES:
        raise ValueError(
            f"at most {MAX_CLASSES} classes are supported, got {len(order)}: are these classes?"
        )


def _factors(
    read: Mapping[str, Factor | RawIntegers],
) -> tuple[dict[str, Factor], tuple[int, Counts] | None]:
    """Return the classes of each column, and counts of pairs if they were needed to find them.

    Two columns of integers are counted as pairs at once, because the table shows which integers
    occur.
    """
    integers = [column for column in read.values() if not isinstance(column, Factor)]
    pairs = None
    if len(integers) == len(read) == 2:
        pairs = count_integer_pairs(*integers)
    factors = {}
    for axis, (name, column) in enumerate(read.items()):
        if isinstance(column, Factor):
            factors[name] = column
        elif pairs is None:
            factors[name] = integer_factor(column)
        else:
            low, table = pairs
            rows = table.sum(axis=1 - axis)
            factors[name] = Factor(column, integer_classes(low, rows > 0), low)
    return factors, pairs


def _with_stored_labels(factors: dict[str, Factor]) -> tuple[dict[str, Factor], str]:
    """Return the columns with classes that files can store, and a remark about conversions."""
    stored: dict[str, Factor] = {}
    examples: dict[str, Label] = {}
    for name, factor in factors.items():
        stored[name] = factor
        if {type(label) for label in factor.classes} <= _NUMBERS:
            continue
        classes: list[Label | None] = []
        for label in factor.classes:
            text = None if label is None else stored_label(label)
            classes.append(text)
            if text is not None and type(label) is not type(text):
                examples.setdefault(type(label).__name__, text)
        stored[name] = replace(factor, classes=classes)
    if not examples:
        return stored, ""
    example = next(iter(examples.values()))
    kinds = " and ".join(examples)
    return stored, f"labels of type {kinds} are converted to strings, such as {example!r}"


def _order(
    factors: Mapping[str, Factor], labels: Sequence[Label] | None, declared: Sequence[Any] | None
) -> tuple[Label, ...]:
    """Return the classes in order; ValueError for too few, too many or repeated classes."""
    if isinstance(labels, (set, frozenset)):
        raise ValueError(
            "labels must be in the order of the columns of y_prob, got a set: "
            f"{listed(sorted(labels, key=str))}"
        )
    if labels is not None:
        order = tuple(map(stored_label, labels))
    else:
        order = _common_order(factors)
        if declared is not None:
            order = _with_declared(order, declared)
    if len(set(order)) != len(order):
        raise ValueError(f"labels must not repeat, got {listed(order, 20)}")
    if len({str(label) for label in order}) != len(order):
        raise ValueError(
            "labels must differ as strings, because metric names contain them, got "
            f"{listed(order, 20)}"
        )
    if len(order) < 2:
        raise ValueError(
            f"at least two classes are needed, got only {list(order)}; name absent classes with "
            "labels="
        )
    _check_number(order)
    return order


def no_scores(name: str, present: Sequence[Label], named: Sequence[Any] = ()) -> None:
    """Raise ValueError if labels are continuous values.

    Floats that are not whole numbers are continuous (scikit-learn's ``type_of_target``). Such
    floats are accepted if ``labels`` contains them.
    """
    scores = [v for v in present if isinstance(v, float) and not v.is_integer() and v not in named]
    if not scores:
        return
    advice = "give scores and probabilities as y_prob="
    if name == "y_true":
        advice = "cmtrack evaluates classifiers"
    advice += "; if these are classes, name them all with labels="
    if name == "calibration y":
        advice = "calibration is (y, scores), in this order"
    raise ValueError(
        f"{name} must contain class labels, got continuous values: {listed(scores, 3)}; {advice}"
    )


def encode_groups(groups: Any, n_rows: int) -> IntArray:
    """Number the groups (clusters) of rows, shape (n,)."""
    return _one_per_row("groups", groups, n_rows)[0]


def encode_row_ids(row_ids: Any, n_rows: int) -> tuple[IntArray, list[Label]]:
    """Return row ids as integers, shape (n,), and the distinct ids."""
    codes, ids = _one_per_row("row_ids", row_ids, n_rows)
    if len(ids) != n_rows:
        repeated = ids[int(np.argmax(np.bincount(codes)))]
        raise ValueError(f"row_ids must not repeat, got {repeated!r} more than once")
    return codes, ids


def row_id_values(row_ids: Any) -> npt.NDArray[Any]:
    """Return row ids in the form in which they are kept, shape (n,).

    A whole float becomes the equal integer, as in the digest.
    """
    values = np.asarray(row_ids)
    if values.dtype.kind not in "fO":
        return values
    ids = np.empty(len(values), dtype=object)
    ids[:] = list(map(same_label, values.tolist()))
    return ids


def encode_values(name: str, values: Any) -> tuple[IntArray, list[Label]]:
    """Return the values of any column as integers, shape (n,), and the distinct values."""
    if not len(values):
        return np.zeros(0, dtype=np.int64), []
    factor = factorize(name, values)
    return factor.numbers(), factor.present


def _one_per_row(name: str, values: Any, n_rows: int) -> tuple[IntArray, list[Label]]:
    codes, distinct = encode_values(name, values)
    if len(codes) != n_rows:
        raise ValueError(f"{name} must have one entry per row, got {len(codes)} for {n_rows} rows")
    return codes, distinct


def _common_order(factors: Mapping[str, Factor]) -> tuple[Label, ...]:
    """Return all classes, in the order of the categories if these include all, or sorted."""
    lists = [factor.present for factor in factors.values()]
    declared = [factor.present for factor in factors.values() if factor.ordered]
    union: dict[Any, None] = dict.fromkeys(chain.from_iterable(lists))
    if declared and set(union) == set(declared[0]):
        return tuple(declared[0])
    try:
        return tuple(sorted(union))
    except TypeError:
        kinds = {}
        for name, labels in zip(factors, lists, strict=True):
            kinds[name] = sorted({type(label).__name__ for label in labels})
        raise ValueError(f"labels must be of one type that can be sorted, got {kinds}") from None


def _numbered(
    factors: Mapping[str, Factor], order: Sequence[Label]
) -> tuple[dict[str, Codes], dict[Label, int]]:
    """Convert the columns to class numbers, and also return the number of each class."""
    index = {label: k for k, label in enumerate(order)}
    return {name: _renumber(name, factor, index) for name, factor in factors.items()}, index


def _renumber(name: str, factor: Factor, index: Mapping[Label, int]) -> Codes:
    """Return a column as class numbers; ValueError if a row's label is not a class."""
    place = np.array(
        [-1 if label is None else index.get(label, -1) for label in factor.classes], dtype=np.int64
    )
    unknown = [label for label in factor.present if label not in index]
    if unknown:
        # An unknown class that a category only declares is accepted if no row has it.
        is_unknown = np.array(
            [label is not None and label not in index for label in factor.classes]
        )
        n_rows = 0
        for rows in blocks(len(factor.raw)):
            values = factor.raw[rows].astype(np.int64) - factor.low
            n_rows += int(is_unknown[values].sum())
        if n_rows:
            raise ValueError(unknown_labels(name, unknown, list(index), n_rows))
    is_class = place >= 0
    # If integers are already the class numbers, they need no look-up.
    if not factor.low and np.array_equal(place[is_class], np.flatnonzero(is_class)):
        return Codes(factor.raw)
    return Codes(factor.raw, factor.low, place)


def unknown_labels(name: str, strange: Sequence[Any], order: Sequence[Label], rows: int) -> str:
    """Return the message for labels that are not classes."""
    return f"{name} has labels that are not in {listed(order, 20)}: {listed(strange)} ({rows} rows)"


def _spelled(name: str, kinds: set[type]) -> Any:
    """Convert the text of a class without rows to a number, if labels are numbers."""
    for kind in (int, float):
        if kinds == {kind}:
            try:
                return kind(name)
            except ValueError:
                break
    names = sorted(kind.__name__ for kind in kinds)
    raise ValueError(f"declared classes must be of the labels' type {names}, got {name!r}")


def no_declared(order: Sequence[Label], strange: Sequence[Any]) -> str:
    """Return the message for labels that are not among the declared classes."""
    return (
        f"labels must be among the declared classes {listed(order, 20)}, got {listed(strange)}; "
        "the columns of y_prob or the classes of the grouping declare them"
    )


def declared_order(declared: Sequence[Any], kind: type) -> tuple[Label, ...]:
    """Return the declared classes in order, after converting the labels to a type."""
    return _with_declared((False, True) if kind is bool else (), declared, {kind})


def _with_declared(
    seen: tuple[Label, ...], declared: Sequence[Any], kinds: set[type] | None = None
) -> tuple[Label, ...]:
    """Return the declared classes in order, after converting them to the type in the data."""
    by_text = {str(label): label for label in seen}
    kinds = kinds or {type(label) for label in seen}
    order: list[Any] = []
    for name in declared:
        if name in seen or not isinstance(name, str) or str in kinds:
            order.append(name)
        elif name in by_text:
            order.append(by_text[name])
        else:
            order.append(_spelled(name, kinds))
    unknown = [label for label in seen if label not in order]
    if unknown:
        raise ValueError(no_declared(order, unknown))
    try:
        return tuple(sorted(order))
    except TypeError:
        # Labels of different types cannot be sorted and keep their declared order.
        return tuple(order)
