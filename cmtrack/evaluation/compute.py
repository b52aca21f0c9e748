"""Functions that compute an evaluation's metrics and warnings from its statistics."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from cmtrack.evaluation._number_warnings import Warned, warnings_of
from cmtrack.evaluation.catalog import OF_CLASSES
from cmtrack.grouping import ComposedStep, Grouping, Label
from cmtrack.grouping.step import stored_label
from cmtrack.metrics.catalog import Catalog
from cmtrack.metrics.cells import Cells, SixCells
from cmtrack.metrics.intervals import Interval
from cmtrack.metrics.metric import Metric
from cmtrack.metrics.names import near
from cmtrack.metrics.own import Kept, put_kept, put_own
from cmtrack.metrics.results import Clusters, Results
from cmtrack.metrics.views import EvaluationViews
from cmtrack.prevalence.metrics import Estimated, EstimatedShares
from cmtrack.prevalence.results import PrevalenceEstimate
from cmtrack.statistics import ConfusionMatrix
from cmtrack.statistics.collected import Statistics
from cmtrack.statistics.counted import Counted
from cmtrack.statistics.inputs import check_threshold_of_probabilities, listed
from cmtrack.statistics.reduced import reduce_counts

if TYPE_CHECKING:
    from cmtrack.evaluation.spec import Spec

SECTION_NAMES = tuple(dict.fromkeys(metric.section for metric in OF_CLASSES.metrics))
"""Sections with which the names of an :class:`Evaluation`'s metrics may start."""


def check_sections(sections: Iterable[str] | None) -> tuple[str, ...] | None:
    """Check names of sections, and return them in the catalog's order; None means all sections."""
    if sections is None:
        return None
    if isinstance(sections, str):
        raise TypeError(f"sections must be a list of names, got {sections!r}")
    wanted = list(sections)
    if not wanted:
        raise ValueError(
            f"sections must name at least one of {list(SECTION_NAMES)}, or be None for all, "
            "got an empty list"
        )
    for name in wanted:
        if not isinstance(name, str):
            raise TypeError(f"sections must be a list of names, got {name!r:.40}")
        if name not in SECTION_NAMES:
            names = ", ".join(SECTION_NAMES)
            raise ValueError(
                f"there is no section {name!r:.80}{near(name, SECTION_NAMES)}; "
                f"the sections are {names}"
            )
    return tuple(name for name in SECTION_NAMES if name in wanted)


def scored_step(
    labels: tuple[Label, ...], grouping: Grouping | None, positive: Label | None
) -> ComposedStep | None:
    """Return the last step that has two groups, or the step of two classes, or None."""
    step = None
    if grouping is not None:
        for composed in grouping.compose(labels):
            if len(composed.labels) == 2:
                step = composed
    if step is None and len(labels) == 2:
        step = ComposedStep("classes", labels, np.arange(2), np.eye(2, dtype=bool), 1)
    if positive is None:
        return step
    positive = stored_label(positive)
    if step is None:
        raise ValueError(
            f"positive={positive!r} needs two classes or a grouping step of two groups, "
            f"got {len(labels)} classes{_way_to_two_groups(positive, labels)}"
        )
    if positive not in step.labels:
        raise ValueError(f"positive must be one of {list(step.labels)}, got {positive!r}")
    return replace(step, positive=step.labels.index(positive))


def _way_to_two_groups(positive: Label, labels: tuple[Label, ...]) -> str:
    """Return a hint that suggests grouping one class against the rest, or a similar name."""
    if positive not in labels:
        return near(str(positive), map(str, labels))
    others = listed([label for label in labels if label != positive])
    groups = f"{{{positive!r}: [{positive!r}], 'other': {others}}}"
    return f"; for one class against the others, pass grouping=Grouping({groups})"


def deciding(
    step: ComposedStep | None,
    threshold: float | None,
    labels: tuple[Label, ...],
    given: Collection[str],
) -> ComposedStep | None:
    """Return the scored step with the given threshold; the original step if there is none.

    ``labels``: the K classes in order.
    ``given``: the names of the columns that the caller passed.
    """
    if threshold is None:
        return step
    has_scores = "y_prob" in given or "y_score" in given
    if not has_scores or "y_pred" in given:
        got = " and ".join(name for name in given if name != "y_true")
        raise ValueError(
            "threshold needs y_prob or y_score and no y_pred, because it makes the predictions "
            f"from the scores; got {got}"
        )
    if "y_score" in given and len(labels) > 2:
        raise ValueError(
            f"threshold={threshold:g} needs y_prob, because decision values of {len(labels)} "
            "classes cannot be summed; pass the predictions as y_pred"
        )
    if "y_prob" in given:
        check_threshold_of_probabilities(threshold)
    if step is None:
        raise ValueError(
            f"threshold={threshold:g} needs two classes or a grouping step of two groups, "
            f"got {len(labels)} classes"
        )
    return replace(step, threshold=threshold)


def scores_first(order: tuple[Label, ...], step: ComposedStep | None) -> bool:
    """Return True if a single column contains the probabilities of the first of two classes."""
    if step is None or len(order) != 2:
        return False
    first, second = step.group_of_class
    return bool(first == step.positive and second != step.positive)


# -- numbers -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Computed:
    """Numbers and warnings that are computed from the statistics of one evaluation."""

    results: Results
    prevalence: PrevalenceEstimate | None
    warnings: tuple[tuple[str, str], ...]
    """Each warning with the section of metrics that it is about."""


def compute(
    views: EvaluationViews, spec: Spec, clusters: Clusters, numbers: Mapping[str, Kept]
) -> Computed:
    """Compute every section of metrics that is requested by ``spec`` and applies to the data.

    ``spec``: the options; if ``sections`` contains full names of metrics, only these metrics are
        computed, without warnings and curves.
    ``clusters``: cluster-robust standard errors, which replace the standard errors computed by this
        function.
    ``numbers``: stored numbers of metrics whose functions are not available.
    """
    catalog = spec.catalog
    single = single_metrics(spec.sections)
    if single:
        return Computed(compute_single(views, catalog, single, clusters, numbers), None, ())
    results = Results(views.level, clusters)
    names = set()
    for section in catalog.sections.all:
        if spec.sections is None or section.name in spec.sections:
            names.add(section.name)
            views.put(results, section)
    _put_lost(results, catalog, numbers)
    prevalence = None
    warnings = []
    if "prevalence" in names:
        estimated = views.seen(Estimated)
        if estimated:
            prevalence = estimated.estimate
        shares = views.seen(EstimatedShares) if views.step is None else None
        if shares:
            warnings = [("prevalence", warning) for warning in shares.warnings]
    own_warnings = put_own(results, catalog.own, numbers, views.table.cells, views.seen(SixCells))
    warnings = [*warnings_of(Warned(views, results, prevalence)), *warnings]
    warnings += [("", warning) for warning in own_warnings]
    views.forget()
    return Computed(results, prevalence, tuple(warnings))


def compute_single(
    views: EvaluationViews,
    catalog: Catalog,
    names: Iterable[str],
    clusters: Clusters,
    numbers: Mapping[str, Kept],
) -> Results:
    """Compute the metrics with the given full names, as each segment does for its rows."""
    results = Results(views.level, clusters)
    for name in names:
        metric, parts = catalog.find(name)
        if metric in catalog.own:
            put_own(results, [metric], numbers, views.table.cells, views.seen(SixCells))
        else:
            views.put_one(results, metric, parts)
    _put_lost(results, catalog, numbers)
    return results


def _put_lost(results: Results, catalog: Catalog, numbers: Mapping[str, Kept]) -> None:
    """Add the built-in metrics that are undefined in this evaluation, and the reasons."""
    for name in numbers.keys() & results.metrics.keys():
        put_kept(results, catalog.lookup(name), numbers[name])


def single_metrics(sections: Collection[str] | None) -> tuple[str, ...]:
    """Return the entries of ``sections`` that are full names of metrics."""
    return tuple(name for name in sections or () if "/" in name)


def metric_values(views: EvaluationViews, catalog: Catalog) -> dict[str, float]:
    """Compute the values of all metrics that apply to the data, but no standard errors."""
    results = Results(views.level, with_errors=False)
    for section in catalog.sections.all:
        views.put(results, section)
    put_own(results, catalog.own, {}, views.table.cells, views.seen(SixCells))
    return results.metrics


def check_own(statistics: Statistics, step: ComposedStep | None, own: Sequence[Metric]) -> None:
    """Validate custom metrics by computing their values."""
    if not own:
        return
    counts = Counted.unweighted(statistics.matrix.counts)
    six = None
    if step is not None:
        six = SixCells.of_counts(counts.map(lambda table: reduce_counts(table, step).as_binary()))
    put_own(Results(with_errors=False), own, {}, Cells.of_matrix(counts), six)


# -- bootstrap of counts: multinomial tables instead of resampled rows ---------------------------


def resample_tables(
    views: EvaluationViews, catalog: Catalog, n_resamples: int, seed: int
) -> dict[str, Interval]:
    """Return percentile intervals for all metrics computed from counts, by the metrics' names."""
    statistics = views.statistics
    level = views.level
    counts = statistics.matrix.counts
    if counts.dtype.kind != "i":
        raise ValueError(
            "a bootstrap of tables needs whole counts; with sampling weights use method='influence'"
        )
    rng = np.random.default_rng(seed)
    total = int(counts.sum())
    drawn = rng.multinomial(total, counts.ravel() / total, n_resamples)
    names: list[str] = []
    rows = []
    for table in drawn:
        matrix = ConfusionMatrix(table.reshape(counts.shape), statistics.matrix.labels)
        plain = Statistics(matrix, statistics.digest)
        redrawn = EvaluationViews(
            plain,
            views.grouping,
            views.step,
            views.over,
            level,
            prices=views.prices,
            ordered=views.ordered,
        )
        metrics = metric_values(redrawn, catalog)
        names = names or list(metrics)
        rows.append(np.array([metrics[name] for name in names]))
    values = np.reshape(rows, (len(rows), len(names)))
    defined = np.flatnonzero(~np.isnan(values).all(axis=0))
    quantiles = [(1 - level) / 2, (1 + level) / 2]
    lows, highs = np.nanquantile(values[:, defined], quantiles, axis=0).tolist()
    return {
        names[k]: (low, high)
        for k, low, high in zip(defined, lows, highs, strict=True)
        if not math.isnan(low)
    }
