"""Functions that copy an evaluation with changed options, or merge two evaluations.

Regrouping is in ``_regrouping``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cmtrack.evaluation import row_facts
from cmtrack.evaluation._regrouping import Lost
from cmtrack.evaluation.compute import SECTION_NAMES, check_sections
from cmtrack.grouping import Costs, Label, as_costs
from cmtrack.metrics import multiclass
from cmtrack.metrics.cells import Cells, SixCells
from cmtrack.metrics.metric import Metric
from cmtrack.metrics.ordinal import ORDINAL
from cmtrack.metrics.own import Kept, own_metrics
from cmtrack.metrics.scores import Score, score_metrics, values_of_classes
from cmtrack.statistics.class_order import ordered_rows, ordered_statistics, places_of
from cmtrack.statistics.collected import with_decisions, with_segments
from cmtrack.statistics.inputs import listed
from cmtrack.statistics.segmented import Segmented
from cmtrack.statistics.spans import SpanRows

if TYPE_CHECKING:
    from cmtrack.evaluation.result import Evaluation


def price(evaluation: Evaluation, costs: Costs | Mapping[tuple[Any, Any], float]) -> Evaluation:
    """Return a copy that also computes the section ``cost/`` (see :meth:`Evaluation.price`)."""
    priced = as_costs(costs)
    if evaluation.none is not None:
        raise ValueError(
            f"costs need rows that each have an actual and a predicted class, got {evaluation!r}"
        )
    sections = evaluation.sections
    if sections is not None:
        sections = check_sections({*sections, "cost"})
    prices = priced.matrix(evaluation.labels, evaluation.grouping)
    copy = replace(
        evaluation,
        statistics=with_decisions(evaluation.statistics, evaluation.rows, prices),
        spec=replace(evaluation.spec, costs=priced, sections=sections),
        lost=evaluation.lost - {Lost.COSTS},
    )
    if evaluation.cluster_errors is None:
        return copy
    if evaluation.rows is not None:
        return with_cluster_errors(copy)
    errors = {
        name: error
        for name, error in evaluation.cluster_errors.items()
        if not name.startswith("cost/")
    }
    facts = replace(evaluation.of_rows, cluster_errors=errors)
    return replace(copy, of_rows=facts, lost=copy.lost | {Lost.CLUSTERS})


def with_sections(evaluation: Evaluation, sections: Sequence[str] | None) -> Evaluation:
    """Return a copy of the evaluation that computes different sections of metrics."""
    chosen = check_sections(sections)
    if chosen == evaluation.sections:
        return evaluation
    copy = with_cluster_errors(evaluation.asking(sections=chosen))
    added = set(chosen or SECTION_NAMES) - set(evaluation.sections or SECTION_NAMES)
    if added and evaluation.rows is None and evaluation.cluster_errors is not None:
        return replace(copy, lost=copy.lost | {Lost.CLUSTERS})
    return copy


def with_label_order(evaluation: Evaluation, labels: Sequence[Label]) -> Evaluation:
    """Return a copy with its classes reordered, or with equivalent labels of a different type."""
    order = tuple(labels)
    old = evaluation.labels
    if list(map(repr, order)) == list(map(repr, old)):
        return evaluation
    if len(order) != len(old) or set(order) != set(old):
        raise ValueError(
            f"labels must be the evaluation's labels, {listed(old, 12)}, got {listed(order, 12)}"
        )
    reference = evaluation.reference
    if reference is not None:
        reference = tuple(reference[k] for k in places_of(old, order))
    rows = evaluation.rows
    copy = replace(
        evaluation.asking(reference=reference, scores=_scores_of(evaluation, order)),
        statistics=ordered_statistics(evaluation.statistics, order),
        rows=None if rows is None else ordered_rows(rows, order),
    )
    # If the order is unchanged, only the types differ: False, 0 and 0.0 are the same class.
    by_order: list[str] = []
    if order != old and len(old) > 2:
        by_order.extend(multiclass.BY_ORDER)
        by_order.extend(metric.name for metric in ORDINAL.metrics)
    by_order.extend(_moved_metrics(evaluation, copy))
    reason = f"it depends on the order of the classes, which was {listed(old, 12)}"
    undefined = Kept(math.nan, None, None, evaluation.confidence_level, reason)
    numbers = dict.fromkeys(by_order, undefined) | (evaluation.kept_numbers or {})
    return replace(copy, kept_numbers=numbers or None)


def _scores_of(
    evaluation: Evaluation, order: tuple[Label, ...]
) -> dict[str, dict[Label, float]] | None:
    """Return the scores with their classes in another order."""
    scores = evaluation.spec.scores
    if scores is None:
        return None
    return {name: {label: of[label] for label in order} for name, of in scores.items()}


def score(evaluation: Evaluation, values: Any, others: float | None) -> Score:
    """Return a score of shares (see :meth:`Evaluation.score`)."""
    if evaluation.none is not None:
        raise ValueError(
            f"a score needs rows that each have an actual and a predicted class, got {evaluation!r}"
        )
    by_class = values_of_classes(values, evaluation.labels, evaluation.grouping, others)
    metrics = score_metrics("score", by_class)
    names = tuple(metric.name for metric in metrics.values())
    asked = evaluation.asking(
        extra_metrics=tuple(metrics.values()), scores=None, sections=names, headline=()
    )
    computed = with_cluster_errors(asked)
    errors = {}
    intervals = {}
    for kind, metric in metrics.items():
        errors[kind] = computed.standard_errors.get(metric.name, math.nan)
        intervals[kind] = computed.intervals.get(metric.name, (math.nan, math.nan))
    actual, predicted, bias = (computed.metrics[name] for name in names)
    level = evaluation.confidence_level
    return Score(actual, predicted, bias, errors, intervals, level, by_class)


def _moved_metrics(evaluation: Evaluation, reordered: Evaluation) -> list[str]:
    """Return the custom metrics of counts that depend on the order of the classes."""
    before = evaluation._views.table.cells.argument()
    after = reordered._views.table.cells.argument()
    names = []
    for metric in evaluation.extra_metrics:
        if metric.of != "counts" or metric.value is None:
            continue
        value = metric.number(before)
        is_equal = math.isclose(value, metric.number(after), rel_tol=1e-9, abs_tol=1e-12)
        if math.isfinite(value) and not is_equal:
            names.append(metric.name)
    return names


def with_metrics(evaluation: Evaluation, extra_metrics: Sequence[Metric]) -> Evaluation:
    """Return a copy of the evaluation that also computes custom metrics."""
    added = {metric.name: metric for metric in own_metrics(extra_metrics)}
    if not added:
        return evaluation
    metrics = {metric.name: metric for metric in evaluation.extra_metrics} | added
    # If the function of a metric is available, its result replaces the numbers read from a file.
    numbers = {
        name: kept for name, kept in (evaluation.kept_numbers or {}).items() if name not in added
    }
    copy = replace(
        evaluation.asking(extra_metrics=tuple(metrics.values())), kept_numbers=numbers or None
    )
    errors = evaluation.cluster_errors
    if errors is None:
        return copy
    copy = with_cluster_errors(copy)
    if evaluation.rows is None and not added.keys() <= errors.keys():
        return replace(copy, lost=copy.lost | {Lost.CLUSTERS})
    return copy


def with_cluster_errors(evaluation: Evaluation) -> Evaluation:
    """Return a copy with cluster-robust standard errors; the original if rows lack clusters."""
    rows = evaluation.rows
    if rows is None or not (rows.design.has_clusters or isinstance(rows, SpanRows)):
        return evaluation
    design = rows.design
    errors: dict[str, float] = {}
    effective: dict[str, float] = {}
    for name, value in evaluation.metrics.items():
        psi = evaluation.influence(name) if math.isfinite(value) else None
        if psi is not None:
            errors[name] = design.standard_error(psi)
            if design.has_clusters and errors[name] > 0:
                effective[name] = design.effective_clusters(psi)
    facts = replace(evaluation.of_rows, cluster_errors=errors)
    if design.has_clusters:
        facts = replace(facts, n_clusters=design.n_units, effective_clusters=effective)
    return replace(evaluation, of_rows=facts)


def merge(first: Evaluation, second: Evaluation) -> Evaluation:
    """Merge the evaluations of two disjoint sets of rows."""
    is_ordered = first.spec.ordered and second.spec.ordered
    if is_ordered and first.labels != second.labels:
        raise ValueError(
            "ordered evaluations must have the same order of classes to be merged, "
            f"got {listed(first.labels, 12)} and {listed(second.labels, 12)}"
        )
    if set(first.labels) == set(second.labels):
        second = with_label_order(second, first.labels)
    if first.labels != second.labels:
        raise ValueError(
            "evaluations must have the same labels to be merged, "
            f"got {first.labels!r} and {second.labels!r}"
        )
    facts = row_facts.merged(
        (first.of_rows, second.of_rows),
        (first.statistics.matrix.total, second.statistics.matrix.total),
        lambda name: _is_sum(first, name) and _is_sum(second, name),
    )
    return type(first)(
        statistics=with_segments(first.statistics + second.statistics, Segmented.limited),
        spec=first.spec.merged(second.spec, "evaluations"),
        of_rows=facts,
        lost=first.lost | second.lost,
        remarks=tuple(dict.fromkeys((*first.remarks, *second.remarks))),
    )


def _is_sum(evaluation: Evaluation, name: str) -> bool:
    """Return True if a metric, like a count, doubles when every row is counted twice.

    A custom metric is computed once from the counts and once from the doubled counts.
    """
    metric = evaluation.catalog.lookup(name)
    if metric not in evaluation.extra_metrics:
        return metric.interval == "count"
    samples: SixCells | Cells | None = evaluation._views.table.cells
    if metric.of == "binary":
        samples = evaluation._views.seen(SixCells)
    if metric.value is None or samples is None:
        return False
    value = metric.number(samples.argument())
    doubled = metric.number(samples.argument(2 * samples.weight))
    return value != 0 and math.isclose(doubled, 2 * value, rel_tol=1e-9)
