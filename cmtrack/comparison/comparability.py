"""Comparability: whether two evaluations can be ranked together or compared row by row, and if not, why."""

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
    """Reason why two evaluations are not compared; the value is the sentence, or how a sentence says it."""

    # not in one order
    DATA = "on different evaluation data"
    OUTDATED = "some by cmtrack 0.2 with weights and labels that are booleans or floats, whose digests say too little"
    KIND = "some by single labels, some by sets of codes in families"
    LABELS = "with different classes"
    KIND_OF_LABELS = "with labels that differ only in kind (text in some, numbers in others)"
    GROUPING = "under different groupings"
    POSITIVE = "for different positive groups"
    COSTS = "with different costs"
    FAMILIES = "with different families of codes"
    SPANS = "some as spans, some as rows"
    WEIGHT = "with different weights"
    # not row by row
    OTHER_ROWS = "the evaluations are of different rows (their labels' digests differ)"
    OTHER_IDS = "the evaluations are of different rows (their row ids differ)"
    ROW_ORDER = "the rows are in another order"
    ORDER_WITHOUT_IDS = "the rows are in another order, and their ids were not kept"
    ORDER_OF_HASHES = "the rows are in another order, and only the ids of one evaluation are hashed"
    REPEATED_IDS = "the rows are in another order, and some of their ids repeat"
    RELABELLED = "the evaluations have other actual labels for some of the same row ids"
    FIRST_WITHOUT_ROWS = (
        "the first evaluation has no rows (load it with its predictions, or evaluate anew)"
    )
    SECOND_WITHOUT_ROWS = (
        "the second evaluation has no rows (load it with its predictions, or evaluate anew)"
    )
    LABEL_ORDER = "the labels are in another order: {first} and {second}"
    OTHER_CLASSES = "the evaluations have other classes: {first} and {second}"
    OTHER_KIND = "the labels differ only in kind (text against number): {first} and {second}"
    SAMPLE_WEIGHTS = "the sample weights differ"
    # of one of several
    NOT_KEPT = "its predictions by row were not kept"
    ALONE = "no other run kept its predictions by row"

    def between(self, first: BaseEvaluation, second: BaseEvaluation) -> str:
        """The sentence for two evaluations."""
        return self.value.format(first=list(first.labels)[:5], second=list(second.labels)[:5])


@dataclass(frozen=True)
class Traits:
    """Traits that decide if evaluations are comparable; unknown ones are None.

    ``content``: of the rows' labels, in no order.
    ``order``: of the labels in their order; None where that is not known, as of tables.
    ``id_set``: of the row ids, in no order.
    ``outdated``: whether the digest of the labels can be compared with none of today's.
    ``label_texts``: the labels as texts, which are equal if the labels differ in kind only.
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
        """The traits in a store's tags; they are compared with each other, not with those of evaluations."""
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
        """The traits of an evaluation."""
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
_DESIGN = (Reason.KIND, Reason.LABELS, *_READ, Reason.FAMILIES, Reason.SPANS)
"""Reasons with the names of the traits that they compare; those of ``_READ`` count only where the trait is read."""


def differences_of(first: Traits, second: Traits, read: frozenset[str]) -> tuple[Reason, ...]:
    """All reasons why two evaluations are not comparable.

    Two evaluations are of the same data where their labels' digests are equal and their row ids are
    not known to differ. The same row ids may be in another order, and the labels with them. Digests
    of tables know no order: without row ids they say that there are as many rows of each label, and
    a table is ranked with tables and arrays on that ground alone, with errors that take no
    advantage of pairs.

    ``first``, ``second``: of evaluations, or of what a store lists of them.
    ``read``: what the criterion, the gates and the tie-breakers depend on beside the labels
    ("grouping", "positive", "costs"): evaluations may differ in what is not read.
    """
    reasons = []
    if _other_data(first, second):
        reasons.append(Reason.OUTDATED if first.outdated != second.outdated else Reason.DATA)
    for reason in _DESIGN:
        name = reason.name.lower()
        ours, theirs = getattr(first, name), getattr(second, name)
        if ours != theirs and None not in (ours, theirs) and (reason not in _READ or name in read):
            differs_in_kind = reason is Reason.LABELS and first.label_texts == second.label_texts
            reasons.append(Reason.KIND_OF_LABELS if differs_in_kind else reason)
    if not reasons and first.weight != second.weight:  # other rows have another weight
        reasons.append(Reason.WEIGHT)
    return tuple(reasons)


def why_apart(first: Traits, second: Traits, read: frozenset[str]) -> Reason | None:
    """First reason why two evaluations are not comparable, or None. See :func:`differences_of`."""
    return next(iter(differences_of(first, second, read)), None)


def why_unpaired(first: BaseEvaluation, second: BaseEvaluation) -> Reason | None:
    """Reason why two evaluations cannot be compared row by row; None where they can.

    The second one must have its rows in the order of the first: :func:`in_order_of`.
    """
    if _are_in_other_orders(first, second):
        places = _places_by_id(first, second)
        return places if isinstance(places, Reason) else Reason.ROW_ORDER
    if first.labels_digest != second.labels_digest:
        return Reason.OTHER_ROWS
    ids = first.statistics.row_ids, second.statistics.row_ids
    if None not in ids and ids[0] != ids[1]:
        return Reason.OTHER_IDS
    if first.rows is None or second.rows is None:
        return Reason.FIRST_WITHOUT_ROWS if first.rows is None else Reason.SECOND_WITHOUT_ROWS
    if first.labels != second.labels:
        return _why_other_labels(first.labels, second.labels)
    a, b = first.rows.design.weights, second.rows.design.weights
    if (a is None) != (b is None) or (
        a is not None and b is not None and (a.dtype != b.dtype or not np.array_equal(a, b))
    ):
        return Reason.SAMPLE_WEIGHTS
    return None


def _why_other_labels(first: Sequence[Label], second: Sequence[Label]) -> Reason:
    if set(first) == set(second):
        return Reason.LABEL_ORDER
    texts = [sorted(str(same_label(label)) for label in labels) for labels in (first, second)]
    return Reason.OTHER_KIND if texts[0] == texts[1] else Reason.OTHER_CLASSES


def design_of_rows(evaluation: BaseEvaluation) -> Design:
    """Return the design of the rows of a paired evaluation; ValueError without rows."""
    if evaluation.rows is None:
        raise ValueError(f"paired evaluations must have their rows, got {evaluation!r}")
    return evaluation.rows.design


def unpaired_among(evaluations: Sequence[BaseEvaluation]) -> dict[int, str]:
    """Reasons why some of several evaluations cannot be compared row by row with the others, by place."""
    first = next((e for e in evaluations if e.rows is not None), None)
    out = {}
    for place, evaluation in enumerate(evaluations):
        if first is None or evaluation.rows is None:
            out[place] = Reason.NOT_KEPT.value
        elif evaluation is not first:
            reason = why_unpaired(first, evaluation)
            if reason:
                out[place] = reason.between(first, evaluation)
    if len(evaluations) - len(out) == 1 and out:
        alone = next(place for place in range(len(evaluations)) if place not in out)
        out[alone] = Reason.ALONE.value
    return out


def split(
    items: Iterable[Item], traits: Callable[[Item], Traits], read: frozenset[str]
) -> list[list[Item]]:
    """Partition items into comparable groups by :func:`why_apart`, in the order of their first items.

    A table stands with all arrays of its content. Rows without ids stand with those of one set of
    ids; where there are several, they have a part of their own.
    """
    with_traits = [(item, traits(item)) for item in items]
    by_content: dict[object, list[list[Traits]]] = {}
    for one in dict.fromkeys(one for _, one in with_traits):
        parts = by_content.setdefault(one.content, [])
        joined = [
            part for part in parts if any(why_apart(one, other, read) is None for other in part)
        ]
        parts[:] = [part for part in parts if part not in joined] + [
            [one, *(t for part in joined for t in part)]
        ]
    settled: list[list[Traits]] = []
    for part in (part for parts in by_content.values() for part in parts):
        several = len({one.id_set for one in part} - {None}) > 1
        by_ids: dict[object, list[Traits]] = {}
        for one in part:
            by_ids.setdefault(one.id_set if several else None, []).append(one)
        settled += by_ids.values()
    home = {one: place for place, part in enumerate(settled) for one in part}
    out: dict[int, list[Item]] = {}
    for item, one in with_traits:
        out.setdefault(home[one], []).append(item)
    return list(out.values())


def in_one_order(evaluations: Mapping[str, BaseEvaluation]) -> dict[str, BaseEvaluation]:
    """The evaluations, those of the same classes with them in one order: that of most, of several the sorted one.

    Rows of the same ids are also in one order.

    Of equal labels of several kinds (``False``, ``0``, ``0.0``) the integers are taken, so that a
    metric of a class has one name.
    """
    of_classes = [
        evaluation for evaluation in evaluations.values() if isinstance(evaluation, Evaluation)
    ]
    orders = Counter(evaluation.labels for evaluation in of_classes)
    kinds: dict[frozenset[Label], set[str]] = {}
    for evaluation in of_classes:
        kinds.setdefault(frozenset(evaluation.labels), set()).add(
            repr(sorted(map(repr, evaluation.labels)))
        )
    chosen: dict[frozenset[Label], tuple[Label, ...]] = {}
    for labels in sorted(orders, key=lambda labels: (-orders[labels], list(map(str, labels)))):
        classes = frozenset(labels)
        order = labels if len(kinds[classes]) == 1 else tuple(map(same_label, labels))
        chosen.setdefault(classes, order)
    return _with_rows_in_one_order(
        {
            name: evaluation.with_label_order(chosen[frozenset(evaluation.labels)])
            if isinstance(evaluation, Evaluation)
            else evaluation
            for name, evaluation in evaluations.items()
        }
    )


def _with_rows_in_one_order(evaluations: Mapping[str, BaseEvaluation]) -> dict[str, BaseEvaluation]:
    """The evaluations, those of the same row ids with their rows in the order that most of them have."""
    orders = Counter(evaluation.labels_digest for evaluation in evaluations.values())
    leading: dict[object, BaseEvaluation] = {}
    sort_keys: dict[object, tuple[int, str]] = {}
    for evaluation in evaluations.values():
        if _ids_of(evaluation) is None:
            continue
        rows_and_classes = (_in_no_order(evaluation.statistics.row_ids), evaluation.labels)
        # Of orders that as many evaluations have, the digests decide: the order of the runs must not.
        sort_key = (-orders[evaluation.labels_digest], str(evaluation.statistics.row_ids))
        if rows_and_classes not in leading or sort_key < sort_keys[rows_and_classes]:
            leading[rows_and_classes] = evaluation
            sort_keys[rows_and_classes] = sort_key
    out = {}
    for name, evaluation in evaluations.items():
        rows_and_classes = (_in_no_order(evaluation.statistics.row_ids), evaluation.labels)
        first = leading.get(rows_and_classes)
        out[name] = evaluation if first is None else in_order_of(first, evaluation)
    return out


def in_order_of(first: Comparable, second: Comparable) -> Comparable:
    """The second evaluation, with its classes and its rows in the first one's order where they are the same.

    Rows are put in order by their ids, if both evaluations keep them and agree on the actual label
    of each id.
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
    """True for two evaluations with the same row ids and as many rows of each label, in different orders."""
    ids, other_ids = first.statistics.row_ids, second.statistics.row_ids
    if ids is None or other_ids is None or ids == other_ids:
        return False
    if _in_no_order(ids) != _in_no_order(other_ids):
        return False
    return first.statistics.digest.content_only == second.statistics.digest.content_only


def _in_no_order(row_ids: LabelDigest | None) -> LabelDigest | None:
    """The digest of the set of row ids; the digest itself where its version wrote none of the set."""
    if row_ids is None or not row_ids.content:
        return row_ids
    return row_ids.content_only


def rows_by_digests(evaluation: BaseEvaluation) -> tuple[str, object]:
    """The digests that tell of the rows of an evaluation, equal for the same rows: if they have ids, in any order."""
    digest, row_ids = evaluation.statistics.digest, evaluation.statistics.row_ids
    return str(digest if row_ids is None else digest.content_only), _in_no_order(row_ids)


def _ids_of(evaluation: BaseEvaluation) -> RowIds | None:
    rows = evaluation.rows
    return rows.ids if isinstance(rows, Predictions) else None


def _places_by_id(first: BaseEvaluation, second: BaseEvaluation) -> IntArray | Reason:
    """The row of the second evaluation with the id of each row of the first, or the reason why rows have no pair."""
    if first.rows is None:
        return Reason.FIRST_WITHOUT_ROWS
    if second.rows is None:
        return Reason.SECOND_WITHOUT_ROWS
    if first.labels != second.labels:
        return _why_other_labels(first.labels, second.labels)
    ids, other_ids = _ids_of(first), _ids_of(second)
    if ids is None or other_ids is None:
        return Reason.ORDER_WITHOUT_IDS
    hashed = ids.hashed or other_ids.hashed
    try:
        keys = [_keys_of(one, hashed) for one in (ids, other_ids)]
    except ValueError:  # there is no key of the hashes
        return Reason.ORDER_OF_HASHES
    order, other_order = (np.argsort(one, kind="stable") for one in keys)
    ascending = keys[0][order]
    if (ascending[1:] == ascending[:-1]).any():
        return Reason.REPEATED_IDS
    if not np.array_equal(ascending, keys[1][other_order]):
        return Reason.OTHER_IDS
    places = np.empty(len(order), dtype=np.int64)
    places[order] = other_order
    rows, other_rows = cast("Predictions", first.rows), cast("Predictions", second.rows)
    if not np.array_equal(rows.actual, other_rows.actual[places]):
        return Reason.RELABELLED
    return places


def _keys_of(ids: RowIds, hashed: bool) -> npt.NDArray[Any]:
    """The ids that tell rows apart in two evaluations, shape (n,): hashes if one has them, else texts, as in files."""
    if ids.hashed:
        return ids.values
    return hashed_ids(ids.values) if hashed else np.array(list(map(str, ids.values.tolist())))


def _with_row_order(first: Evaluation, second: Evaluation, places: IntArray) -> Evaluation:
    """The second evaluation with its rows at these places, which are those of the first; no number changes."""
    rows = cast("Predictions", second.rows).take(places)
    strata = second.of_rows.strata
    facts = second.of_rows if strata is None else replace(second.of_rows, strata=strata[places])
    statistics = replace(
        second.statistics, digest=first.statistics.digest, row_ids=first.statistics.row_ids
    )
    return replace(second, rows=rows, statistics=statistics, of_rows=facts)


def _other_data(first: Traits, second: Traits) -> bool:
    if first.content != second.content:
        return True
    other_order = None not in (first.order, second.order) and first.order != second.order
    if None in (first.row_ids, second.row_ids) or first.row_ids == second.row_ids:
        return other_order
    # the same ids may be in another order, and their labels with them
    return first.id_set != second.id_set


# -- a grouping for several evaluations --------------------------------------------------------------------------


def of_classes(evaluation: BaseEvaluation) -> Evaluation:
    """The evaluation itself, if it is of single labels.

    ValueError if it is of another kind, which no grouping fits.
    """
    if not isinstance(evaluation, Evaluation):
        raise ValueError(
            f"a grouping is of single labels, and the evaluation is of the kind {evaluation.kind!r}"
        )
    return evaluation


def check_classes(labels: Sequence[Label], grouping: Grouping) -> tuple[str, ...]:
    """Check classes against a grouping, and return notes on classes of the grouping that are not there.

    ValueError if a group has none of the evaluation's classes, or one of these stands in no group.
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
    return (
        (f"it lacks the classes {', '.join(map(str, lacking[:10]))} of the grouping",)
        if lacking
        else ()
    )


# -- what a reader is told of several rankings ------------------------------------------------------------------

_SHOWN: dict[Reason, Callable[[Any], str]] = {
    Reason.DATA: lambda e: (
        f"evaluation data {e.labels_digest.rsplit('.', 1)[-1][:8]}"
        + ("" if e.statistics.row_ids is None else f", row ids {str(e.statistics.row_ids)[:8]}")
    ),
    Reason.OUTDATED: lambda e: (
        "by cmtrack 0.2" if e.statistics.digest.outdated else "by a later cmtrack"
    ),
    Reason.KIND: lambda e: (
        "single labels" if isinstance(e, Evaluation) else "sets of codes in families"
    ),
    Reason.LABELS: lambda e: "classes " + ", ".join(map(one_line, e.labels)),
    Reason.KIND_OF_LABELS: lambda e: (
        "labels that are text"
        if any(isinstance(label, str) for label in e.labels)
        else "labels that are numbers"
    ),
    Reason.GROUPING: lambda e: _grouped(e),
    Reason.POSITIVE: lambda e: (
        "no positive group" if e.positive is None else f"positive group {quoted(e.positive)}"
    ),
    Reason.COSTS: lambda e: _priced(e),
    Reason.FAMILIES: lambda e: f"families {dict(e.design).get('families', '')[:8]}",
    Reason.SPANS: lambda e: "spans" if dict(e.design).get("none") else "no spans",
    Reason.WEIGHT: lambda e: f"weight {e.n_samples:g}",
}

_REMEDIES = {
    Reason.DATA: "evaluate all on the same rows in the same order",
    Reason.OUTDATED: "evaluate those of cmtrack 0.2 again",
    Reason.KIND: "evaluate all on single labels, or all on sets of codes",
    Reason.LABELS: "evaluate all with the same labels= (--labels A,B,C)",
    Reason.KIND_OF_LABELS: "evaluate all with labels of one kind",
    Reason.GROUPING: "compare under the same grouping= (--grouping FILE)",
    Reason.POSITIVE: "compare under the same grouping= and positive= (--grouping FILE --positive GROUP)",
    Reason.COSTS: "compare at the same costs= (--costs FILE)",
    Reason.FAMILIES: "evaluate all with the same families=",
    Reason.SPANS: "evaluate all on spans, or all on rows",
    Reason.WEIGHT: "evaluate all with the same sample_weight= (--weight COLUMN)",
}
_OF_SETS = {Reason.LABELS: "evaluate all with the same codes="}


def _priced(evaluation: BaseEvaluation) -> str:
    costs = evaluation.costs if isinstance(evaluation, Evaluation) else None
    return "no costs" if costs is None else f"costs {one_line(costs.describe())}"


def _grouped(evaluation: BaseEvaluation) -> str:
    steps = (
        []
        if evaluation.grouping is None
        else [quoted(step.name) for step in evaluation.grouping.steps]
    )
    return f"grouped by {', then '.join(steps)}" if steps else "not grouped"


def _between(rankings: Sequence[Ranking], read: frozenset[str]) -> list[Reason]:
    """Reasons why runs are in separate rankings, limited to what the comparison reads."""
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
    """The distinguishing part of each of several rankings, such as "grouped by “parity”"."""
    reasons = _between(rankings, read)
    if reasons == [Reason.DATA]:  # their sizes may say it
        sizes = Counter(ranking.evaluation.statistics.digest.rows for ranking in rankings)
        if max(sizes.values(), default=0) == 1:
            return [""] * len(rankings)
    columns = []
    for reason in reasons:
        evaluations = [ranking.evaluation for ranking in rankings]
        shown = [_SHOWN[reason](evaluation) for evaluation in evaluations]
        if reason is Reason.GROUPING:
            designs = {
                (text, dict(e.design).get("grouping"))
                for text, e in zip(shown, evaluations, strict=True)
            }
            if len(designs) > len(set(shown)):  # the same name, another content
                shown = [
                    text if e.grouping is None else f"grouped {one_line(e.grouping.describe())}"
                    for text, e in zip(shown, evaluations, strict=True)
                ]
        columns.append(distinct(shown, _WIDTH))
    return ["; ".join(parts) for parts in zip(*columns, strict=True)]


def how_apart(rankings: Sequence[Ranking], read: frozenset[str]) -> str:
    """The differences in how the runs of several rankings were judged."""
    return " and ".join(reason.value for reason in _between(rankings, read))


def remedy(rankings: Sequence[Ranking], read: frozenset[str]) -> str:
    """The way to put runs of several rankings into one: "to rank them together, …"."""
    reasons = _between(rankings, read)
    if Reason.POSITIVE in reasons and Reason.GROUPING in reasons:
        reasons.remove(Reason.GROUPING)  # the positive group's remedy has the grouping
    words = _REMEDIES if isinstance(rankings[0].evaluation, Evaluation) else _REMEDIES | _OF_SETS
    return f"to rank them together, {', and '.join(words[reason] for reason in reasons)}"


def apart(rankings: Sequence[Ranking], read: frozenset[str]) -> tuple[str, ...]:
    """Two sentences, why there is more than one ranking and what would make it one; empty if there is one."""
    if len(rankings) < 2:
        return ()
    why = f"The runs were judged {how_apart(rankings, read)}, so that they stand in {len(rankings)} separate rankings."
    return why, f"T{remedy(rankings, read)[1:]}."
