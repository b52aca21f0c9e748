"""The boundary for labels: any columns of labels become class numbers alike, once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from cmtrack.grouping import Label
from cmtrack.grouping.step import same_label, stored_label
from cmtrack.statistics.counting import Codes, Counts, blocks, count_integer_pairs, count_pairs
from cmtrack.statistics.factorize import (
    Factor,
    factorize,
    integer_classes,
    integer_factor,
    read_labels,
)
from cmtrack.statistics.inputs import FloatArray, IntArray, listed

MAX_CLASSES = 10_000


@dataclass(frozen=True, eq=False)
class Numbered:
    """Columns of labels under one numbering.

    ``labels``, tuple of length K: the classes in order.
    ``codes``: the columns.
    ``remark``: on labels that became their texts; empty without such labels.
    """

    labels: tuple[Label, ...]
    codes: dict[str, Codes]
    pairs: Counts | None = None
    remark: str = ""

    def count(
        self, actual: str, predicted: str, weights: FloatArray | IntArray | None = None
    ) -> Counts:
        """The (K, K) table of two columns."""
        if weights is None and self.pairs is not None:
            return self.pairs
        return count_pairs(self.codes[actual], self.codes[predicted], len(self.labels), weights)


def number_labels(
    columns: Mapping[str, Any],
    labels: Sequence[Label] | None = None,
    declared: Sequence[Any] | None = None,
) -> Numbered:
    """Number the classes of one or more label columns alike.

    ``columns``, mapping of name to array-like of shape (n,): the columns, by the name that error texts use. Integers,
        strings, booleans, floats; lists, NumPy, pandas (also categorical and Arrow-backed), polars, Arrow.
    ``labels``: the classes in order. By default every class that a column holds or, for categorical columns, declares:
        in the categories' order where all columns are categorical alike, else sorted.
    ``declared``: without ``labels``: classes that exist although no row may have them, such as the columns of a frame
        of probabilities (texts stand for the labels they spell) or the classes of a grouping.
    """
    read = {name: read_labels(name, values) for name, values in columns.items()}
    lengths = {name: len(one.raw if isinstance(one, Factor) else one) for name, one in read.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"columns must have the same length, got {lengths}")
    if not all(lengths.values()):
        raise ValueError(f"at least one row is needed, got {lengths}")
    factors, pairs = _factors(read)
    factors, remark = _with_stored_labels(factors)
    known = () if labels is None else labels
    for name, factor in factors.items():
        if not factor.ordered:
            no_scores(name, factor.present, (*known, *(declared or ())))
    order = _order(factors, labels, declared)
    index = {label: i for i, label in enumerate(order)}
    codes = {name: _renumber(name, factor, index) for name, factor in factors.items()}
    if pairs is None:
        return Numbered(order, codes, remark=remark)
    low, table = pairs
    place = np.array([index.get(low + i, -1) for i in range(len(table))], dtype=np.int64)
    held = np.flatnonzero(place >= 0)
    counts = np.zeros((len(order), len(order)), dtype=np.int64)
    counts[np.ix_(place[held], place[held])] = table[np.ix_(held, held)]
    return Numbered(order, codes, counts)


def number_as_they_come(columns: Mapping[str, Any]) -> tuple[tuple[Label, ...], dict[str, Codes]]:
    """Number the classes that rows have, be it one, in sorted order."""
    factors = {name: factorize(name, values) for name, values in columns.items()}
    for name, factor in factors.items():
        no_scores(name, factor.present)
    order = _common_order(factors)
    if len(order) > MAX_CLASSES:
        raise ValueError(
            f"at most {MAX_CLASSES} classes are supported, got {len(order)}: are these classes?"
        )
    index = {label: i for i, label in enumerate(order)}
    return order, {name: _renumber(name, factor, index) for name, factor in factors.items()}


def encode_labels(
    columns: Mapping[str, Any],
    labels: Sequence[Label] | None = None,
    declared: Sequence[Any] | None = None,
) -> tuple[tuple[Label, ...], dict[str, IntArray]]:
    """:func:`number_labels` with an array of class numbers (n,), int64, for each column."""
    numbered = number_labels(columns, labels, declared)
    return numbered.labels, {name: codes.all() for name, codes in numbered.codes.items()}


def _factors(
    read: Mapping[str, Factor | Any],
) -> tuple[dict[str, Factor], tuple[int, Counts] | None]:
    """The classes that each column holds, and the counts of pairs where they came with that."""
    whole = [one for one in read.values() if not isinstance(one, Factor)]
    if len(whole) == len(read) == 2:
        pairs = count_integer_pairs(*whole)
        if pairs is not None:
            low, table = pairs
            held = (table.sum(axis=1) > 0, table.sum(axis=0) > 0)
            classes = [integer_classes(low, one) for one in held]
            return {
                n: Factor(a, c, low) for n, a, c in zip(read, whole, classes, strict=True)
            }, pairs
    return {
        n: one if isinstance(one, Factor) else integer_factor(one) for n, one in read.items()
    }, None


def _with_stored_labels(factors: dict[str, Factor]) -> tuple[dict[str, Factor], str]:
    """The columns with classes that files hold, and a remark on those that became their texts."""
    out: dict[str, Factor] = {}
    texts: dict[str, Label] = {}
    for name, factor in factors.items():
        out[name] = factor
        if {type(label) for label in factor.classes} <= _NUMBERS:
            continue
        stored = [None if label is None else stored_label(label) for label in factor.classes]
        for label, text in zip(factor.classes, stored, strict=True):
            if type(label) is not type(text):
                texts.setdefault(type(label).__name__, text)
        out[name] = replace(factor, classes=stored)
    if not texts:
        return out, ""
    return (
        out,
        f"labels of type {' and '.join(texts)} are their texts here, such as {next(iter(texts.values()))!r}",
    )


_NUMBERS = frozenset((bool, int, float, type(None)))


def _order(
    factors: Mapping[str, Factor], labels: Sequence[Label] | None, declared: Sequence[Any] | None
) -> tuple[Label, ...]:
    if isinstance(labels, (set, frozenset)):
        raise ValueError(
            f"labels must be in the order of the columns of y_prob, got a set: {listed(sorted(labels, key=str))}"
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
        raise ValueError(f"labels must differ as texts, for metric names, got {listed(order, 20)}")
    if len(order) < 2:
        raise ValueError(
            f"at least two classes are needed, got only {list(order)}; name absent classes with labels="
        )
    if len(order) > MAX_CLASSES:
        raise ValueError(
            f"at most {MAX_CLASSES} classes are supported, got {len(order)}: are these classes?"
        )
    return order


def no_scores(name: str, present: Sequence[Label], named: Sequence[Any] = ()) -> None:
    """Refuse continuous values where labels are wanted: scores that took the place of labels.

    Continuous are floats that are no whole numbers (scikit-learn's ``type_of_target``). They may be labels where they
    are named as such.
    """
    scores = [v for v in present if isinstance(v, float) and not v.is_integer() and v not in named]
    if scores:
        where = (
            "give scores and probabilities as y_prob="
            if name != "y_true"
            else "cmtrack judges classifiers"
        )
        where += "; if these are classes, name them all with labels="
        if name == "calibration y":
            where = "calibration is (y, scores), in this order"
        raise ValueError(
            f"{name} must hold class labels, got continuous values: {listed(scores, 3)}; {where}"
        )


def encode_groups(groups: Any, n_rows: int) -> IntArray:
    """Number the groups (clusters) of rows, shape (n,)."""
    return _one_per_row("groups", groups, n_rows)[0]


def encode_row_ids(row_ids: Any, n_rows: int) -> tuple[IntArray, list[Label]]:
    """Encode row ids as integers, shape (n,), with the distinct ids."""
    codes, ids = _one_per_row("row_ids", row_ids, n_rows)
    if len(ids) != n_rows:
        repeated = ids[int(np.argmax(np.bincount(codes)))]
        raise ValueError(f"row_ids must not repeat, got {repeated!r} more than once")
    return codes, ids


def row_id_values(row_ids: Any) -> npt.NDArray[Any]:
    """Row ids as they are kept, shape (n,): a whole float is the integer that it equals, as in the digest."""
    values = np.asarray(row_ids)
    if values.dtype.kind not in "fO":
        return values
    ids = np.empty(len(values), dtype=object)
    ids[:] = list(map(same_label, values.tolist()))
    return ids


def encode_values(name: str, values: Any) -> tuple[IntArray, list[Label]]:
    """Encode the values of any column as integers, shape (n,), with the distinct values."""
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
    lists = [factor.present for factor in factors.values()]
    if all(factor.ordered for factor in factors.values()) and all(c == lists[0] for c in lists):
        return tuple(lists[0])
    declared = [factor.present for factor in factors.values() if factor.ordered]
    union: dict[Any, None] = dict.fromkeys(label for classes in lists for label in classes)
    if declared and set(union) == set(declared[0]):
        return tuple(declared[0])
    try:
        return tuple(sorted(union))
    except TypeError:
        kinds = {name: sorted({type(v).__name__ for v in f.present}) for name, f in factors.items()}
        raise ValueError(
            f"labels must be of one kind that can be put in order, got {kinds}"
        ) from None


def _renumber(name: str, factor: Factor, index: Mapping[Label, int]) -> Codes:
    place = np.array(
        [-1 if v is None else index.get(v, -1) for v in factor.classes], dtype=np.int64
    )
    strange = [v is not None and v not in index for v in factor.classes]
    if any(strange):
        unknown = np.array(strange)
        values = (
            factor.raw[rows].astype(np.int64) - factor.low for rows in blocks(len(factor.raw))
        )
        rows = sum(int(unknown[part].sum()) for part in values)
        if rows:
            names = [v for v, odd in zip(factor.classes, strange, strict=True) if odd]
            raise ValueError(unknown_labels(name, names, list(index), rows))
    if not factor.low and np.array_equal(place[place >= 0], np.flatnonzero(place >= 0)):
        return Codes(factor.raw)
    return Codes(factor.raw, factor.low, place)


def unknown_labels(name: str, strange: Sequence[Any], order: Sequence[Label], rows: int) -> str:
    """The error text for labels that are no classes."""
    return f"{name} has labels that are not in {listed(order, 20)}: {listed(strange)} ({rows} rows)"


def _spelled(name: str, kinds: set[type]) -> Any:
    """The absent class that a text spells where labels are numbers."""
    for kind in (int, float):
        if kinds == {kind}:
            try:
                return kind(name)
            except ValueError:
                break
    names = sorted(kind.__name__ for kind in kinds)
    raise ValueError(f"declared classes must be of the labels' kind {names}, got {name!r}")


def no_declared(order: Sequence[Label], strange: Sequence[Any]) -> str:
    """The text of the error of labels that are not among the declared classes."""
    return (
        f"labels must be among the declared classes {listed(order, 20)}, got {listed(strange)}; "
        "the columns of y_prob or the classes of the grouping declare them"
    )


def declared_order(declared: Sequence[Any], kind: type) -> tuple[Label, ...]:
    """The declared classes in order, as labels of a kind."""
    return _with_declared((False, True) if kind is bool else (), declared, {kind})


def _with_declared(
    seen: tuple[Label, ...], declared: Sequence[Any], kinds: set[type] | None = None
) -> tuple[Label, ...]:
    """The declared classes in order, as labels of the kind that was seen."""
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
        return tuple(order)
