"""The classes of a table, and which column is the probability of which class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cmtrack.evaluation.compute import scored_step
from cmtrack.evaluation.from_arrays import scores_first
from cmtrack.grouping import ComposedStep, Grouping, Label
from cmtrack.grouping.step import plain
from cmtrack.statistics.inputs import IntArray, listed
from cmtrack.statistics.labels import encode_labels
from cmtrack.statistics.tables import Columns, Survey, check_known


def order_of_labels(
    survey: Survey,
    pairs: tuple[list[Any], list[Any], IntArray, dict[str, list[Any]]] | None,
    labels: Sequence[Label] | None,
    grouping: Grouping | None,
    categories: Sequence[list[Any] | None],
) -> tuple[Label, ...]:
    """The classes in the order that :func:`cmtrack.evaluate` gives them.

    Raises
    ------
    ValueError
        Unknown labels, labels of several kinds, or fewer than two classes.
    """
    seen = {"y_true": survey.actual} if pairs is None else {"y_true": pairs[0], "y_pred": pairs[1]}
    if labels is not None:
        order = tuple(plain(label) for label in labels)
        check_known("y_true", survey.actual, survey.rows, order)
        if pairs is not None:
            check_known("y_pred", pairs[1], pairs[2], order)
        return encode_labels(seen, labels)[0]
    chosen = [own for own in categories if own is not None]
    if chosen:
        known = dict.fromkeys(label for column in (*seen.values(), *chosen) for label in column)
        if set(known) == set(chosen[0]):
            return encode_labels(seen, chosen[0])[0]
        rows = [*known]
        seen = dict.fromkeys(seen, rows)
    return encode_labels(seen, None, _declared(survey.columns, grouping))[0]


def place_of_probabilities(
    columns: Columns, order: tuple[Label, ...], grouping: Grouping | None, positive: Label | None
) -> tuple[ComposedStep | None, list[int] | None]:
    """The scored step, and for each class the place of its probability among the given columns.

    The place is -1 for that of two classes whose probability is one less the other's.

    Raises
    ------
    ValueError
        If there is not one column for each class.
    """
    size = len(columns.parts)
    named = columns.declared
    alone = None if named is None or size != 1 else _named(named, order).index(0)
    if alone is not None and positive is None and grouping is None:
        positive = order[alone]
    step = scored_step(order, grouping, positive)
    if not size:
        return step, None
    expected = f"(n_samples, {len(order)})" + (" or (n_samples,)" if len(order) == 2 else "")
    if size == 1 and len(order) == 2:
        if alone is None:
            alone = 0 if scores_first(order, step) else 1
        return step, [0, -1] if alone == 0 else [-1, 0]
    if named is not None:
        return step, _named(named, order)
    if size != len(order):
        raise ValueError(
            f"y_prob must have shape {expected} for the labels {listed(order, 12)}, got {size} "
            f"column{'s' if size > 1 else ''}; name all classes of the model with labels="
        )
    return step, list(range(size))


def _named(names: Sequence[Label], order: tuple[Label, ...]) -> list[int]:
    """The place of each class among the names; -1 for the other one of two classes where one is named."""
    by_text = {str(name): place for place, name in enumerate(names)}
    places = [by_text.get(str(label), -1) for label in order]
    missing = [label for label, place in zip(order, places, strict=True) if place < 0]
    if missing and (len(order) != 2 or len(names) != 1 or len(missing) == 2):
        raise ValueError(f"y_prob must have a column for each label, {listed(missing)} not in {listed(names, 20)}")
    strange = [name for place, name in enumerate(names) if place not in places]
    if strange:
        raise ValueError(f"y_prob has columns that are no labels: {listed(strange)}; labels are {listed(order, 20)}")
    return places


def _declared(columns: Columns, grouping: Grouping | None) -> list[Any] | None:
    """Classes that the columns of probabilities or the groups name."""
    if columns.declared is not None and len(columns.declared) > 1:
        return list(columns.declared)
    if grouping is None:
        return None
    classes = [label for members in grouping.steps[0].groups.values() for label in members]
    width = len(columns.parts)
    return classes if width < 2 or width == len(classes) else None
