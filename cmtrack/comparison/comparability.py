"""Checks whether evaluations can be ranked together or compared row by row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum
from itertools import combinations
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from cmtrack.base import BaseEvaluation
from cmtrack.evaluation import Evaluation
from cmtrack.grouping import Grouping, Label
from cmtrack.grouping.step import same_label
from cmtrack.names import distinct, quoted
from cmtrack.rows.join import hashed_ids
from cmtrack.statistics import LabelDigest
from cmtrack.statistics.design import Design
from cmtrack.statistics.inputs import IntArray
from cmtrack.statistics.predictions import Predictions, RowIds
from cmtrack.untrusted import one_line

if TYPE_CHECKING:
    from cmtrack.comparison.ranking import Ranking

_WIDTH = 80
Item = TypeVar("Item")
Comparable = TypeVar("Comparable", bound=BaseEvaluation)


class Reason(Enum):
    """Reason why two evaluations are not compared; its value is a complete or partial sentence."""

    # Why two runs are not in one ranking. The values follow "the runs were evaluated".
    DATA = "on different evaluation data"
    OUTDATED = (
        "some by cmtrack 0.2 with weights and boolean or float labels, whose digests do not "
        "identify the rows"
    )
    KIND = "some by single labels, some by sets of codes in families"
    LABELS = "with different classes"
    KIND_OF_LABELS = "with labels that differ only in type (text in some runs, numbers in others)"
    GROUPING = "under different groupings"
    POSITIVE = "for different positive groups"
    COSTS = "with different costs"
    FAMILIES = "with different families of codes"
    SPANS = "some as spans, some as rows"
    WEIGHT = "with different weights"
    # Why two evaluations are not compared row by row.
    OTHER_ROWS = "the evaluations have different rows (the digests of their labels differ)"
    OTHER_IDS = "the evaluations have different rows (their row ids differ)"
    ROW_ORDER = "the rows are in a different order"
    ORDER_WITHOUT_IDS = "the rows are in a different order, and their ids were not kept"
    ORDER_OF_HASHES = (
        "the rows are in a different order, and only the ids of one evaluation are hashed"
    )
    REPEATED_IDS = "the rows are in a different order, and some of their ids repeat"
    RELABELLED = "some row ids have different actual labels in the two evaluations"
    FIRST_WITHOUT_ROWS = (
        "the first evaluation has no rows (load it with its predictions, or evaluate again)"
    )
    SECOND_WITHOUT_ROWS = (
        "the second evaluation has no rows (load it with its predictions, or evaluate again)"
    )
    LABEL_ORDER = "the labels are in different orders: {first} and {second}"
    OTHER_CLASSES = "the evaluations have different classes: {first} and {second}"
    OTHER_KIND = "the labels differ only in type (text and numbers): {first} and {second}"
    SAMPLE_WEIGHTS = "the sample weights differ"
    # Why a run is not compared row by row with the others.
    NOT_KEPT = "its predictions by row were not kept"
    ALONE = "no other run kept its predictions by row"

    def between(self, first: BaseEvaluation, second: BaseEvaluation) -> str:
        """Return the reason as a sentence about two evaluations."""
        return self.value.format(first=list(first.labels)[:5], second=list(second.labels)[:5])


@dataclass(frozen=True)
class Traits:
    """Traits that decide whether evaluations are comparable; unknown traits are None.

    ``content``: digest of the rows' labels, independent of the order of rows.
    ``order``: digest of the labels in order; None if the order is unknown, as for tables.
    ``id_set``: digest of the row ids, independent of the order of rows.
    ``outdated``: whether the digest of the labels cannot be compared with a current digest.
    ``label_texts``: the labels as texts. The texts of two labels are equal if the labels differ
    only in type, such as 1 and "1".
    """

    content: object
    order: object = None
    row_ids: object = None
    id_set: object = None
    kind: str | None = None
    labels: str | None = None
    grouping: str | None = None
    positive: str | None = None
    families: str | None = None
    spans: str | None = None
    weight: str | None = None
    costs: str | None = None
    label_texts: str | None = None
    outdated: bool = False

    @classmethod
    def listed(
        cls,
        digest: str | None,
        row_ids: str | None,
        grouping: str | None,
        positive: str | None,
        costs: str | None,
    ) -> Traits:
        """Read the traits of an evaluation from the tags in a store.

        Traits from tags can only be compared with other traits from tags, not with the traits of
        loaded evaluations.
        """
        design: dict[str, Any] = {
            "grouping": grouping or "",
            "positive": positive or "",
            "costs": costs or "",
        }
        id_set: object = row_ids
        if row_ids is not None:
            with suppress(ValueError):
                id_set = _in_no_order(LabelDigest.parse(row_ids))
        try:
            parsed = LabelDigest.parse(digest or "")
        except ValueError:
            return cls(digest, None, row_ids, id_set, **design)
        order = parsed if parsed.ordered else None
        return cls(parsed.content_only, order, row_ids, id_set, **design)

    @classmethod
    def of(cls, evaluation: BaseEvaluation) -> Traits:
        """Return the traits of an evaluation."""
        digest = evaluation.statistics.digest
        design: dict[str, Any] = dict(evaluation.design)
        design.pop("labels", None)
        labels = list(map(same_label, evaluation.labels))
        return cls(
            digest.content_only,
            digest if digest.ordered else None,
            evaluation.statistics.row_ids,
            _in_no_order(evaluation.statistics.row_ids),
            "labels" if isinstance(evaluation, Evaluation) else "sets",
            labels=repr(sorted(map(repr, labels))),
            label_texts=repr(sorted(map(str, labels))),
            outdated=digest.outdated,
            spans=design.pop("none", ""),
            costs=design.pop("costs", ""),
            weight=f"{evaluation.n_samples:.9g}",
            **design,
        )


_READ = (Reason.GROUPING, Reason.POSITIVE, Reason.COSTS)
"""Reasons that matter only if the comparison depends on the trait in question."""
_DESIGN = (Reason.KIND, Reason.LABELS, *_READ, Reason.FAMILIES, Reason.SPANS)
"""Reasons that have the same name as the trait in which the evaluations differ."""


def differences_of(first: Traits, second: Traits, read: frozenset[str]) -> tuple[Reason, ...]:
    """Return all reasons why two evaluations are not comparable.

    Two evaluations are assumed to have the same data if the digests of their labels are equal and
    their row ids are not known to differ. The rows may be in a different order, provided that the
    ids and the labels are reordered in the same way. The digest of a table is independent of the
    order of rows. If there are no row ids, equal digests only show that each label has the same
    number of rows. Equal digests are sufficient to rank a table together with tables and arrays,
    but the standard errors of the differences are then not paired by rows.

    ``first``, ``second``: traits of two evaluations, or traits that were read from tags in a store.
    ``read``: traits, in addition to the labels, that the criterion, the gates and the tie-breakers
    depend on ("grouping", "positive", "costs"). Evaluations may differ in traits that ``read`` does
    not contain.
    """
    reasons = []
    if _differ_in_data(first, second):
        reasons.append(Reason.OUTDATED if first.outdated != second.outdated else Reason.DATA)
    for reason in _DESIGN:
        name = reason.name.lower()
        if reason in _READ and name not in read:
            continue
        if not _differ(getattr(first, name), getattr(second, name)):
            continue
        if reason is Reason.LABELS and first.label_texts == second.label_texts:
            reason = Reason.KIND_OF_LABELS
        reasons.append(reason)
    # If the rows differ, their weights also differ, so the weights are not a separate reason.
    if not reasons and first.weight != second.weight:
        reasons.append(Reason.WEIGHT)
    return tuple(reasons)


def why_apart(first: Traits, second: Traits, read: frozenset[str]) -> Reason | None:
    """Return the first reason that :func:`differences_of` finds; None if it finds no reason."""
    return next(iter(differences_of(first, second, read)), None)


def why_unpaired(first: BaseEvaluation, second: BaseEvaluation) -> Reason | None:
    """Return why two evaluations cannot be compared row by row; None if they can.

    The rows of the second evaluation must be in the order of the first; see :func:`in_order_of`.
    """
    if _are_in_other_orders(first, second):
        places = _places_by_id(first, second)
        return places if isinstance(places, Reason) else Reason.ROW_ORDER
    if first.labels_digest != second.labels_digest:
        return Reason.OTHER_ROWS
    if _differ(first.statistics.row_ids, second.statistics.row_ids):
        return Reason.OTHER_IDS
    if first.rows is None:
        return Reason.FIRST_WITHOUT_ROWS
    if second.rows is None:
        return Reason.SECOND_WITHOUT_ROWS
    if first.labels != second.labels:
        return _why_other_labels(first.labels, second.labels)
    if not _are_equal_weights(first.rows.design.weights, second.rows.design.weights):
        return Reason.SAMPLE_WEIGHTS
    return None


def _differ(first: object, second: object) -> bool:
    """Return whether two traits are known to differ."""
    return first is not None and second is not None and first != second


def _are_equal_weights(first: npt.NDArray[Any] | None, second: npt.NDArray[Any] | None) -> bool:
    """Return whether two columns of weights have equal values and equal types."""
    if first is None or second is None:
        return first is second
    return first.dtype == second.dtype and np.array_equal(first, second)


def _why_other_labels(first: Sequence[Label], second: Sequence[Label]) -> Reason:
    """Return a description of how the labels of two evaluations differ."""
    if set(first) == set(second):
        return Reason.LABEL_ORDER
    first_texts, second_texts = (
        sorted(str(same_label(label)) for label in labels) for labels in (first, second)
    )
    return Reason.OTHER_KIND if first_texts == second_texts else Reason.OTHER_CLASSES


def design_of_rows(evaluation: BaseEvaluation) -> Design:
    """Return the sampling design of a paired evaluation's rows; ValueError if it has no rows."""
    if evaluation.rows is None:
        raise ValueError(f"paired evaluations must have their rows, got {evaluation!r}")
    return evaluation.rows.design


def unpaired_among(evaluations: Sequence[BaseEvaluation]) -> dict[int, str]:
    """Return why evaluations cannot be compared row by row, by the position of each evaluation."""
    first = next((e for e in evaluations if e.rows is not None), None)
    reasons = {}
    for place, evaluation in enumerate(evaluations):
        if first is None or evaluation.rows is None:
            reasons[place] = Reason.NOT_KEPT.value
        elif evaluation is not first:
            reason = why_unpaired(first, evaluation)
            if reason:
                reasons[place] = reason.between(first, evaluation)
    paired = [place for place in range(len(evaluations)) if place not in reasons]
    if len(paired) == 1 and reasons:
        reasons[paired[0]] = Reason.ALONE.value
    return reasons


def split(
    items: Iterable[Item], traits: Callable[[Item], Traits], read: frozenset[str]
) -> list[list[Item]]:
    """Divide items into groups whose members are comparable according to :func:`why_apart`.

    The groups are sorted by the position of their first items. A table joins the group of all
    arrays with the same content. An evaluation without row ids joins the group of evaluations with
    the same content and with ids. If evaluations with the same content have several sets of ids,
    the evaluations without ids form a separate group.
    """
    traits_of_items = [(item, traits(item)) for item in items]
    by_content: dict[object, list[list[Traits]]] = {}
    for item_traits in dict.fromkeys(item_traits for _, item_traits in traits_of_items):
        joined = [item_traits]
        others = []
        for group in by_content.get(item_traits.content, []):
            if any(why_apart(item_traits, other, read) is None for other in group):
                joined += group
            else:
                others.append(group)
        by_content[item_traits.content] = [*others, joined]
    keys: dict[Traits, tuple[int, object]] = {}
    groups = [group for groups in by_content.values() for group in groups]
    for number, group in enumerate(groups):
        id_sets = {item_traits.id_set for item_traits in group} - {None}
        for item_traits in group:
            keys[item_traits] = (number, item_traits.id_set if len(id_sets) > 1 else None)
    parts: dict[tuple[int, object], list[Item]] = {}
    for item, item_traits in traits_of_items:
        parts.setdefault(keys[item_traits], []).append(item)
    return list(parts.values())


def in_one_order(evaluations: Mapping[str, BaseEvaluation]) -> dict[str, BaseEvaluation]:
    """Put equal sets of classes, and equal sets of row ids, into the same order.

    The most frequent order is used. If several orders of the classes are equally frequent, the
    first in sorted order is used.

    If equal labels have different types (``False``, ``0``, ``0.0``), the integers are used, so that
    a metric of a class has the same name in all evaluations.
    """
    labels_of_runs = [
        evaluation.labels
        for evaluation in evaluations.values()
        if isinstance(evaluation, Evaluation)
    ]
    frequencies = Counter(labels_of_runs)
    kinds: dict[frozenset[Label], set[str]] = {}
    for labels in labels_of_runs:
        kinds.setdefault(frozenset(labels), set()).add(repr(sorted(map(repr, labels))))
    orders: dict[frozenset[Label], tuple[Label, ...]] = {}
    for labels in sorted(
        frequencies, key=lambda labels: (-frequencies[labels], list(map(str, labels)))
    ):
        classes = frozenset(labels)
        order = labels if len(kinds[classes]) == 1 else tuple(map(same_label, labels))
        orders.setdefault(classes, order)
    ordered = dict(evaluations)
    for name, evaluation in evaluations.items():
        if isinstance(evaluation, Evaluation):
            ordered[name] = evaluation.with_label_order(orders[frozenset(evaluation.labels)])
    return _with_rows_in_one_order(ordered)


def _with_rows_in_one_order(evaluations: Mapping[str, BaseEvaluation]) -> dict[str, BaseEvaluation]:
    """Put the rows of evaluations with equal id sets into the most frequent order of the ids."""
    orders = Counter(evaluation.labels_digest for evaluation in evaluations.values())
    leading: dict[object, BaseEvaluation] = {}
    sort_keys: dict[object, tuple[int, str]] = {}
    for evaluation in evaluations.values():
        if _ids_of(evaluation) is None:
            continue
        rows_and_classes = (_in_no_order(evaluation.statistics.row_ids), evaluation.labels)
        # If two orders are equally frequent, the smaller digest is used, because the result must
        # not depend on the order of the runs.
        sort_key = (-orders[evaluation.labels_digest], str(evaluation.statistics.row_ids))
        if rows_and_classes not in leading or sort_key < sort_keys[rows_and_classes]:
            leading[rows_and_classes] = evaluation
            sort_keys[rows_and_classes] = sort_key
    ordered = dict(evaluations)
    for name, evaluation in evaluations.items():
        rows_and_classes = (_in_no_order(evaluation.statistics.row_ids), evaluation.labels)
        if rows_and_classes in leading:
            ordered[name] = in_order_of(leading[rows_and_classes], evaluation)
    return ordered


def in_order_of(first: Comparable, second: Comparable) -> Comparable:
    """Reorder the classes and the rows of the second evaluation like the first.

    Rows are matched by their ids if both evaluations have ids and each id has the same actual label
    in both.
    """
    if not (isinstance(first, Evaluation) and isinstance(second, Evaluation)):
        return second
    ordered: Evaluation = second
    if set(first.labels) == set(second.labels):
        ordered = second.with_label_order(first.labels)
    if _are_in_other_orders(first, ordered):
        places = _places_by_id(first, ordered)
        if not isinstance(places, Reason):
            ordered = _with_row_order(first, ordered, places)
    return cast("Comparable", ordered)


def _are_in_other_orders(first: BaseEvaluation, second: BaseEvaluation) -> bool:
    """Return whether two evaluations have the same row ids and labels in different orders."""
    ids = first.statistics.row_ids
    other_ids = second.statistics.row_ids
    if not _differ(ids, other_ids) or _in_no_order(ids) != _in_no_order(other_ids):
        return False
    return first.statistics.digest.content_only == second.statistics.digest.content_only


def _in_no_order(row_ids: LabelDigest | None) -> LabelDigest | None:
    """Return the order-independent digest of row ids; old digests are returned unchanged."""
    if row_ids is None or not row_ids.content:
        return row_ids
    return row_ids.content_only


def rows_by_digests(evaluation: BaseEvaluation) -> tuple[str, object]:
    """Return digests that are equal for evaluations of the same rows.

    If the evaluations have row ids, the rows may be in any order.
    """
    digest = evaluation.statistics.digest
    row_ids = evaluation.statistics.row_ids
    if row_ids is not None:
        digest = digest.content_only
    return str(digest), _in_no_order(row_ids)


def _ids_of(evaluation: BaseEvaluation) -> RowIds | None:
    rows = evaluation.rows
    return rows.ids if isinstance(rows, Predictions) else None


def _places_by_id(first: BaseEvaluation, second: BaseEvaluation) -> IntArray | Reason:
    """Return the row of the second evaluation that has the same id as each row of the first.

    If any row has no counterpart, the function returns a reason instead.
    """
    if first.rows is None:
        return Reason.FIRST_WITHOUT_ROWS
    if second.rows is None:
        return Reason.SECOND_WITHOUT_ROWS
    if first.labels != second.labels:
        return _why_other_labels(first.labels, second.labels)
    ids = _ids_of(first)
    other_ids = _ids_of(second)
    if ids is None or other_ids is None:
        return Reason.ORDER_WITHOUT_IDS
    hashed = ids.hashed or other_ids.hashed
    try:
        keys = _keys_of(ids, hashed)
        other_keys = _keys_of(other_ids, hashed)
    except ValueError:  # The key of the hashes is unknown.
        return Reason.ORDER_OF_HASHES
    order = np.argsort(keys, kind="stable")
    other_order = np.argsort(other_keys, kind="stable")
    ascending = keys[order]
    if (ascending[1:] == ascending[:-1]).any():
        return Reason.REPEATED_IDS
    if not np.array_equal(ascending, other_keys[other_order]):
        return Reason.OTHER_IDS
    places = np.empty(len(order), dtype=np.int64)
    places[order] = other_order
    actual = cast("Predictions", first.rows).actual
    other_actual = cast("Predictions", second.rows).actual
    if not np.array_equal(actual, other_actual[places]):
        return Reason.RELABELLED
    return places


def _keys_of(ids: RowIds, hashed: bool) -> npt.NDArray[Any]:
    """Return the ids of two evaluations in the same form, shape (n,).

    If one evaluation stores hashed ids, the result contains hashes. If no ids are hashed, the
    result contains texts, because files store ids as texts.
    """
    if ids.hashed:
        return ids.values
    if hashed:
        return hashed_ids(ids.values)
    return np.array([str(row_id) for row_id in ids.values.tolist()])


def _with_row_order(first: Evaluation, second: Evaluation, places: IntArray) -> Evaluation:
    """Reorder the rows of the second evaluation like the first; no metric changes.

    ``places``: for each row of the first evaluation, the position of the same row in the second
    evaluation.
    """
    rows = cast("Predictions", second.rows).take(places)
    facts = second.of_rows
    if facts.strata is not None:
        facts = replace(facts, strata=facts.strata[places])
    statistics = replace(
        second.statistics, digest=first.statistics.digest, row_ids=first.statistics.row_ids
    )
    return replace(second, rows=rows, statistics=statistics, of_rows=facts)


def _differ_in_data(first: Traits, second: Traits) -> bool:
    """Return whether the digests of two evaluations show that their rows differ."""
    if first.content != second.content:
        return True
    if _differ(first.row_ids, second.row_ids):
        # The ids may be the same in a different order, if the labels are in this order too.
        return first.id_set != second.id_set
    return _differ(first.order, second.order)


# -- a grouping for several evaluations ------------------------------------------------------------


def of_classes(evaluation: BaseEvaluation) -> Evaluation:
    """Return the evaluation itself if it has single labels.

    Raises ValueError for any other kind of evaluation, because a grouping requires single labels.
    """
    if not isinstance(evaluation, Evaluation):
        raise ValueError(
            f"a grouping needs single labels, but the kind of the evaluation is {evaluation.kind!r}"
        )
    return evaluation


def check_classes(labels: Sequence[Label], grouping: Grouping) -> tuple[str, ...]:
    """Check classes against a grouping, and return notes on classes that only the grouping lists.

    Raises ValueError if a group contains none of the evaluation's classes, or if a class is not in
    any group.
    """
    for step in grouping.compose(labels):
        empty = [
            group for place, group in enumerate(step.labels) if place not in step.group_of_class
        ]
        if empty:
            classes = ", ".join(map(str, labels[:10]))
            raise ValueError(
                f"it has no class of the group {str(empty[0])!r}: its classes are {classes}"
            )
    lacking = [
        label
        for members in grouping.steps[0].groups.values()
        for label in members
        if label not in labels
    ]
    if not lacking:
        return ()
    return (f"it lacks the classes {', '.join(map(str, lacking[:10]))} of the grouping",)


# -- sentences on several rankings -----------------------------------------------------------------


def _describe(evaluation: BaseEvaluation, reason: Reason) -> str:
    """Return in a few words how an evaluation differs from the others for a given reason."""
    design = dict(evaluation.design)
    statistics = evaluation.statistics
    match reason:
        case Reason.OUTDATED:
            return "by cmtrack 0.2" if statistics.digest.outdated else "by a later cmtrack"
        case Reason.KIND:
            of_labels = isinstance(evaluation, Evaluation)
            return "single labels" if of_labels else "sets of codes in families"
        case Reason.LABELS:
            return "classes " + ", ".join(map(one_line, evaluation.labels))
        case Reason.KIND_OF_LABELS:
            has_text = any(isinstance(label, str) for label in evaluation.labels)
            return "labels that are text" if has_text else "labels that are numbers"
        case Reason.GROUPING:
            return _grouped(evaluation)
        case Reason.POSITIVE:
            if evaluation.positive is None:
                return "no positive group"
            return f"positive group {quoted(evaluation.positive)}"
        case Reason.COSTS:
            costs = evaluation.costs if isinstance(evaluation, Evaluation) else None
            return "no costs" if costs is None else f"costs {one_line(costs.describe())}"
        case Reason.FAMILIES:
            return f"families {design.get('families', '')[:8]}"
        case Reason.SPANS:
            return "spans" if design.get("none") else "no spans"
        case Reason.WEIGHT:
            return f"weight {evaluation.n_samples:g}"
    data = f"evaluation data {evaluation.labels_digest.rsplit('.', 1)[-1][:8]}"
    if statistics.row_ids is None:
        return data
    return f"{data}, row ids {str(statistics.row_ids)[:8]}"


_REMEDIES = {
    Reason.DATA: "evaluate all on the same rows in the same order",
    Reason.OUTDATED: "use the current version to evaluate the runs of cmtrack 0.2 again",
    Reason.KIND: "evaluate all on single labels, or all on sets of codes",
    Reason.LABELS: "evaluate all with the same labels= (--labels A,B,C)",
    Reason.KIND_OF_LABELS: "use the same type of labels for every run",
    Reason.GROUPING: "compare under the same grouping= (--grouping FILE)",
    Reason.POSITIVE: (
        "compare under the same grouping= and positive= (--grouping FILE --positive GROUP)"
    ),
    Reason.COSTS: "compare at the same costs= (--costs FILE)",
    Reason.FAMILIES: "evaluate all with the same families=",
    Reason.SPANS: "evaluate all on spans, or all on rows",
    Reason.WEIGHT: "evaluate all with the same sample_weight= (--weight COLUMN)",
}
_OF_SETS = {Reason.LABELS: "evaluate all with the same codes="}


def _grouped(evaluation: BaseEvaluation) -> str:
    """Return text that lists the names of the grouping's steps."""
    if evaluation.grouping is None or not evaluation.grouping.steps:
        return "not grouped"
    steps = [quoted(step.name) for step in evaluation.grouping.steps]
    return f"grouped by {', then '.join(steps)}"


def _reasons_between(rankings: Sequence[Ranking], read: frozenset[str]) -> list[Reason]:
    """Return the reasons for separate rankings, except reasons about traits that are ignored."""
    traits = {Traits.of(ranking.evaluation) for ranking in rankings}
    reasons = {
        reason
        for first, second in combinations(traits, 2)
        for reason in differences_of(first, second, read)
    }
    if reasons & {Reason.DATA, Reason.OUTDATED}:
        reasons.discard(Reason.WEIGHT)
    return [reason for reason in Reason if reason in reasons] or [Reason.DATA]


def headings(rankings: Sequence[Ranking], read: frozenset[str]) -> list[str]:
    """Return words that distinguish each of several rankings, such as "grouped by “parity”"."""
    reasons = _reasons_between(rankings, read)
    evaluations = [ranking.evaluation for ranking in rankings]
    if reasons == [Reason.DATA]:
        # If the numbers of rows differ, the number of rows in the heading distinguishes the
        # rankings.
        sizes = Counter(evaluation.statistics.digest.rows for evaluation in evaluations)
        if max(sizes.values(), default=0) == 1:
            return [""] * len(rankings)
    columns = []
    for reason in reasons:
        words = [_describe(evaluation, reason) for evaluation in evaluations]
        if reason is Reason.GROUPING:
            words = _with_contents_of_groupings(words, evaluations)
        columns.append(distinct(words, _WIDTH))
    return ["; ".join(parts) for parts in zip(*columns, strict=True)]


def _with_contents_of_groupings(
    words: Sequence[str], evaluations: Sequence[BaseEvaluation]
) -> list[str]:
    """Replace the names of groupings by their contents if groupings with the same name differ."""
    groupings = [dict(evaluation.design).get("grouping") for evaluation in evaluations]
    if len(set(zip(words, groupings, strict=True))) == len(set(words)):
        return list(words)
    described = list(words)
    for place, evaluation in enumerate(evaluations):
        if evaluation.grouping is not None:
            described[place] = f"grouped {one_line(evaluation.grouping.describe())}"
    return described


def how_apart(rankings: Sequence[Ranking], read: frozenset[str]) -> str:
    """Return in words how the evaluations of several rankings differ."""
    return " and ".join(reason.value for reason in _reasons_between(rankings, read))


def remedy(rankings: Sequence[Ranking], read: frozenset[str]) -> str:
    """Return advice that starts with "to rank them together, …"."""
    reasons = _reasons_between(rankings, read)
    if Reason.POSITIVE in reasons and Reason.GROUPING in reasons:
        reasons.remove(Reason.GROUPING)  # The remedy for the positive group includes the grouping.
    remedies = _REMEDIES
    if not isinstance(rankings[0].evaluation, Evaluation):
        remedies = _REMEDIES | _OF_SETS
    return f"to rank them together, {', and '.join(remedies[reason] for reason in reasons)}"


def apart(rankings: Sequence[Ranking], read: frozenset[str]) -> tuple[str, ...]:
    """Return two sentences: why the runs are in several rankings, and how to rank them together.

    If there is only one ranking, the result is empty.
    """
    if len(rankings) < 2:
        return ()
    why = f"The runs were evaluated {how_apart(rankings, read)}"
    advice = remedy(rankings, read)
    return (
        f"{why}, so they are in {len(rankings)} separate rankings.",
        f"T{advice[1:]}.",
    )
