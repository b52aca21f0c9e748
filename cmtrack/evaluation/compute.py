"""Numbers of an evaluation from its statistics: the sections and the two groups, values, errors, warnings."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from cmtrack.digits import fixed, short_percent, significant
from cmtrack.evaluation.catalog import OF_CLASSES
from cmtrack.evaluation.input_remarks import (
    padding,
    saturated_classes,
    saturated_scores,
    scaled_rows_warning,
    swapped_classes,
)
from cmtrack.grouping import ComposedStep, Grouping, Label
from cmtrack.grouping.step import stored_label
from cmtrack.metrics.calibration import ReliabilityTable
from cmtrack.metrics.catalog import Catalog
from cmtrack.metrics.cells import Cells, SixCells, Table
from cmtrack.metrics.intervals import Interval
from cmtrack.metrics.metric import Metric
from cmtrack.metrics.moments import ScoreSamples
from cmtrack.metrics.multiclass import passed_over
from cmtrack.metrics.names import near
from cmtrack.metrics.own import Kept, put_kept, put_own
from cmtrack.metrics.precision_recall import largest_error
from cmtrack.metrics.results import Clusters, Results
from cmtrack.metrics.roc import RocCurve, ScoreTable, sweep
from cmtrack.metrics.spcc import ClassScores, Fisher, is_constant
from cmtrack.metrics.views import EvaluationViews
from cmtrack.names import join_names, quoted
from cmtrack.prevalence.metrics import Estimated, EstimatedShares
from cmtrack.prevalence.results import PrevalenceEstimate
from cmtrack.statistics import ConfusionMatrix
from cmtrack.statistics.collected import Statistics
from cmtrack.statistics.counted import Counted
from cmtrack.statistics.inputs import check_threshold_of_probabilities, listed
from cmtrack.statistics.moments import MAX_CLASSES
from cmtrack.statistics.reduced import reduce_counts

if TYPE_CHECKING:
    from cmtrack.evaluation.spec import Spec

SECTION_NAMES = tuple(dict.fromkeys(metric.section for metric in OF_CLASSES.metrics))
"""The parts of names before the first slash, of what an :class:`Evaluation` may hold."""


def check_sections(sections: Iterable[str] | None) -> tuple[str, ...] | None:
    """Check sections, and return them in the order of the catalog; None for all."""
    if sections is None:
        return None
    if isinstance(sections, str):
        raise TypeError(f"sections must be a list of names, got {sections!r}")
    wanted = list(sections)
    if not wanted:
        raise ValueError(
            f"sections must name at least one of {list(SECTION_NAMES)}, or be None for all, got none"
        )
    for name in wanted:
        if not isinstance(name, str):
            raise TypeError(f"sections must be a list of names, got {name!r:.40}")
        if name not in SECTION_NAMES:
            names = ", ".join(SECTION_NAMES)
            raise ValueError(
                f"there is no section {name!r:.80}{near(name, SECTION_NAMES)}; the sections are {names}"
            )
    return tuple(name for name in SECTION_NAMES if name in wanted)


def scored_step(
    labels: tuple[Label, ...], grouping: Grouping | None, positive: Label | None
) -> ComposedStep | None:
    """The last two-group step of a chain, or two classes as they are; None where there is neither."""
    step = None
    if grouping is not None:
        two = [composed for composed in grouping.compose(labels) if len(composed.labels) == 2]
        step = two[-1] if two else None
    if step is None and len(labels) == 2:
        step = ComposedStep("classes", labels, np.arange(2), np.eye(2, dtype=bool), 1)
    if positive is None:
        return step
    positive = stored_label(positive)
    if step is None:
        raise ValueError(
            f"positive={positive!r} needs two classes or a grouping step of two groups, got {len(labels)} classes"
            + _way_to_two_groups(positive, labels)
        )
    if positive not in step.labels:
        raise ValueError(f"positive must be one of {list(step.labels)}, got {positive!r}")
    return replace(step, positive=step.labels.index(positive))


def _way_to_two_groups(positive: Label, labels: tuple[Label, ...]) -> str:
    """The grouping that singles out one class among several, or the class that was meant."""
    if positive not in labels:
        return near(str(positive), map(str, labels))
    groups = f"{{{positive!r}: [{positive!r}], 'other': {listed([label for label in labels if label != positive])}}}"
    return f"; for one class against the others give grouping=Grouping({groups})"


def deciding(
    step: ComposedStep | None,
    threshold: float | None,
    labels: tuple[Label, ...],
    given: Collection[str],
) -> ComposedStep | None:
    """The scored step with the threshold that makes the predictions, if there is one.

    ``labels``, tuple of length K.
    ``given``: the columns that are given.
    """
    if threshold is None:
        return step
    if not {"y_prob", "y_score"} & set(given) or "y_pred" in given:
        got = " and ".join(name for name in given if name != "y_true")
        raise ValueError(
            "threshold needs y_prob or y_score and no y_pred, because it makes the predictions from the scores; "
            f"got {got}"
        )
    if "y_score" in given and len(labels) > 2:
        raise ValueError(
            f"threshold={threshold:g} needs y_prob, since decision values of {len(labels)} classes have no sum; "
            "give the predictions as y_pred"
        )
    if "y_prob" in given:
        check_threshold_of_probabilities(threshold)
    if step is None:
        raise ValueError(
            f"threshold={threshold:g} needs two classes or a grouping step of two groups, got {len(labels)} classes"
        )
    return replace(step, threshold=threshold)


def scores_first(order: tuple[Label, ...], step: ComposedStep | None) -> bool:
    """True if a single column of probabilities is about the first of two classes."""
    if step is None or len(order) != 2:
        return False
    return bool(step.group_of_class[0] == step.positive != step.group_of_class[1])


# -- numbers ------------------------------------------------------------------------------------------

DECISION_VALUES = (
    "y_score: decision values rank rows and are no probabilities, so there are metrics of ranking only: no log loss, "
    "calibration, sPCC or calibrated prevalence"
)
RARE = 20
RARE_WEIGHTED = 50
"""Effective rows below which errors of sampling weights rest on few heavy rows: at 41 of a class, .90 are covered."""
PASSED_OVER = "precision_macro, precision_weighted and f1_of_macro_means"
COUNTED = "precision_macro_zero and precision_weighted_zero"


@dataclass(frozen=True, eq=False)
class Computed:
    """Numbers and warnings that follow from the statistics of one evaluation."""

    results: Results
    roc: RocCurve | None
    prevalence: PrevalenceEstimate | None
    warnings: tuple[str, ...]


def compute(
    views: EvaluationViews, spec: Spec, clusters: Clusters, numbers: Mapping[str, Kept]
) -> Computed:
    """Compute every section that applies and that the question asks for.

    ``spec``: where its ``sections`` are full names of metrics, only these are computed, without warnings and curves.
    ``clusters``: their errors take the place of those computed here.
    ``numbers``: those that were kept of metrics whose functions are not known.
    """
    catalog, sections = spec.catalog, spec.sections
    if single := single_metrics(sections):
        return Computed(compute_single(views, catalog, single, clusters, numbers), None, None, ())
    results = Results(views.level, clusters)
    wanted = [
        section for section in catalog.sections.all if sections is None or section.name in sections
    ]
    for section in wanted:
        views.put(results, section)
    _put_lost(results, catalog, numbers)
    names = {section.name for section in wanted}
    roc = _roc(results, views) if "binary" in names else None
    calibrated = views.seen(Estimated) if "prevalence" in names else None
    prevalence = calibrated.estimate if calibrated else None
    shares = views.seen(EstimatedShares) if "prevalence" in names and views.step is None else None
    of_own = put_own(results, catalog.own, numbers, views.table.cells, views.seen(SixCells))
    warnings = (
        *_warnings(views, results, roc, prevalence),
        *(shares.warnings if shares else ()),
        *of_own,
    )
    views.forget()
    return Computed(results, roc, prevalence, warnings)


def compute_single(
    views: EvaluationViews,
    catalog: Catalog,
    names: Iterable[str],
    clusters: Clusters,
    numbers: Mapping[str, Kept],
) -> Results:
    """Compute metrics by their full names: segments take one metric of many parts of the rows."""
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
    """Built-in metrics that mean nothing in this evaluation, with the reason."""
    for name in numbers.keys() & results.metrics.keys():
        put_kept(results, catalog.lookup(name), numbers[name])


def single_metrics(sections: Collection[str] | None) -> tuple[str, ...]:
    """The full names of metrics among sections."""
    return tuple(name for name in sections or () if "/" in name)


def metric_values(views: EvaluationViews, catalog: Catalog) -> dict[str, float]:
    """The values of every metric that applies, without errors."""
    results = Results(views.level, with_errors=False)
    for section in catalog.sections.all:
        views.put(results, section)
    put_own(results, catalog.own, {}, views.table.cells, views.seen(SixCells))
    return results.metrics


def check_own(statistics: Statistics, step: ComposedStep | None, own: Sequence[Metric]) -> None:
    """Validate a user's metrics by computing their values."""
    if own:
        counts = Counted.unweighted(statistics.matrix.counts)
        six = (
            None
            if step is None
            else SixCells.of_counts(
                counts.map(lambda table: reduce_counts(table, step).as_binary())
            )
        )
        put_own(Results(with_errors=False), own, {}, Cells.of_matrix(counts), six)


def _roc(results: Results, views: EvaluationViews) -> RocCurve | None:
    step = views.step
    scores = views.seen(ScoreTable)
    if scores is None or step is None:
        return None
    point = (results.metrics["binary/fpr"], results.metrics["binary/recall"])
    positive = None if step.positive is None else step.labels[step.positive]
    interval = results.intervals.get("binary/roc_auc")
    return replace(sweep(scores), positive=positive, auc_interval=interval, operating_point=point)


def _warnings(
    views: EvaluationViews,
    results: Results,
    roc: RocCurve | None,
    prevalence: PrevalenceEstimate | None,
) -> tuple[str, ...]:
    statistics = views.statistics
    out = []
    if statistics.scaled_rows:
        out.append(scaled_rows_warning(statistics.scaled_rows))
    if statistics.ranking_only:
        out.append(DECISION_VALUES)
    labels = statistics.matrix.labels
    counts = statistics.counts
    totals = counts.map(lambda table: table.sum(axis=1)).effective_size()
    order = swapped_classes(statistics)
    if order and all(views.table.kept):
        out.append(order)
    out += filter(None, [padding(statistics.matrix)])
    used = [
        (label, total)
        for label, total, own in zip(labels, totals, views.table.kept, strict=True)
        if own
    ]
    absent = [quoted(label) for label, total in used if total == 0]
    limit = RARE_WEIGHTED if counts.fractional else RARE
    few_rows = f"fewer than {limit} rows"
    if counts.fractional:
        few_rows = f"fewer than {limit} effective rows (Kish's, of the weights)"
    rare = [
        f"{quoted(label)} (n = {significant(total, 2)})"
        for label, total in used
        if 0 < total < limit
    ]
    out += _never(labels, views.table, f"multiclass/{PASSED_OVER}", f"{COUNTED} count")
    for name, composed in views.composed.items():
        table = views.reduced[name][0]
        averages = f"of the step {quoted(composed.name)}, precision_macro and f1_of_macro_means"
        out += _never(composed.labels, table, averages, "precision_macro_zero counts")
    if absent:
        these, them = ("these classes", "them") if len(absent) > 1 else ("this class", "it")
        out.append(
            f"no rows of {join_names(absent, 8)}: ratios of {these} are undefined, and averages leave {them} out"
        )
    if rare:
        out.append(_few("class", "classes", rare, few_rows))
    for matrix in views.matrices:
        one = matrix.sums
        sizes = matrix.map(lambda reduced: reduced.actual).effective_size()
        few = [
            f"{quoted(g)} (n = {significant(t, 2)})"
            for g, t in zip(one.labels, sizes, strict=True)
            if 0 < t < limit
        ]
        if few:
            step = f"in the step {quoted(one.name)}"
            out.append(_few(f"{step}, group", f"{step}, groups", few, few_rows))
    if "spcc/ovr_fisher" in results.metrics and statistics.cross is None:
        of_segment = len(labels) <= MAX_CLASSES
        where = "not kept of a segment" if of_segment else f"kept for up to {MAX_CLASSES} classes"
        out.append(
            f"no interval of spcc/ovr_fisher and spcc/ovo_fisher: the joint moments that their errors need are {where}"
        )
    if "spcc/ovr_fisher" in results.metrics and (
        correlated := views.seen(ClassScores, "class scores")
    ):
        out.extend(_correlation_remarks(correlated, labels))
    if "spcc/binary" in results.metrics and "spcc/binary" not in results.undefined:
        two_classes = views.seen(ScoreSamples, "moments")
        if two_classes is not None and is_constant(two_classes.argument()):
            out.append(
                "the score of the positive group never varies: spcc/binary is 0 and has no interval"
            )
    if "spcc/d_b" in results.one_sided:
        low, high = results.one_sided["spcc/d_b"]
        most = f"at most {fixed(high, 2)}, and " if math.isfinite(high) else ""
        out.append(_NEAR_ZERO.format(most) if low <= 0 else _AT_LEAST.format(low))
    if roc is not None and roc.auc_error_bound > 0:
        out.append(
            f"scores are counted on a grid: the ROC AUC is within {roc.auc_error_bound:.1e} of the exact one"
        )
    scores, reliability = views.seen(ScoreTable), views.seen(ReliabilityTable)
    if scores is not None and (tied := saturated_scores(scores.scores)):
        out.append(tied)
    if statistics.class_scores is not None and (
        tied := saturated_classes(statistics.class_scores, labels)
    ):
        out.append(tied)
    if scores is not None and "binary/average_precision" in results.metrics:
        bound = largest_error(scores)
        if bound > 0:
            out.append(
                f"scores are counted on a grid: the average precision is within {bound:.1e} of the exact one"
            )
    if reliability is not None and "calibration/error" in results.metrics:
        if not reliability.has_means:
            out.append(
                "scores are counted on a grid: calibration/ takes each for the centre of its cell"
            )
        share = reliability.without_logit
        if share > 0 and "calibration/slope" not in results.undefined:
            out.append(
                f"{short_percent(share)} of the rows have a score of exactly 0 or 1, which has no logit: "
                "calibration/slope and calibration/intercept leave them out"
            )
    if "probability/log_loss" in results.undefined:
        out.append(f"the log loss is {results.undefined['probability/log_loss']}")
    errors = counts.map(lambda table: table.sum() - np.trace(table))
    wrong = float(errors.effective_size())
    if wrong < RARE:
        out.extend(_few_errors(wrong, results.intervals, counts.fractional))
    clusters = results.clusters.n
    if clusters is not None and clusters < RARE:
        out.append(
            f"the rows belong to {clusters} groups, fewer than {RARE}: all intervals are approximate"
        )
    if (
        clusters is not None
        and prevalence is not None
        and statistics.labelled is not None
        and statistics.target is None
    ):
        out.append(
            "groups= does not reach prevalence/calibrated: its interval takes the rows for independent, and is too "
            "narrow where those of a group are alike"
        )
    if prevalence is not None:
        if math.isnan(prevalence.value):
            reason = prevalence.undefined["value"]
            out.append(f"no calibrated prevalence: {reason}")
            out.extend(warning for warning in prevalence.warnings if warning != reason)
        else:
            out.extend(prevalence.warnings)
    return tuple(out)


_NEAR_ZERO = (
    "spcc/d_b is {}not told from 0: it has no interval, since the estimate is too high near 0"
)
_AT_LEAST = "spcc/d_b is at least {:.2f}, and has no upper end: the scores part the two groups without an error"


def _constant_scores(scores: ClassScores, labels: Sequence[Label]) -> list[str]:
    """Remarks on scores that are the same in all rows of a class and the others, or of a pair of classes."""
    out = []
    constant = Fisher("ovr").constant(scores)
    if constant.any():
        names = join_names([quoted(labels[k]) for k in np.flatnonzero(constant).tolist()], 8)
        several = np.count_nonzero(constant) > 1
        subject = (
            f"the scores of {names} never vary" if several else f"the score of {names} never varies"
        )
        out.append(
            f"{subject}: {'their' if several else 'its'} sPCC counts as 0, {_NO_INTERVAL_OVR}"
        )
    pairs = Fisher("ovo")
    own, other = pairs.pair(np.flatnonzero(pairs.constant(scores)), scores)
    if len(own):
        first, second = int(own[0]), int(other[0])
        example = (
            f"the score of {quoted(labels[first])} over the rows of {quoted(labels[first])} and "
        )
        example += quoted(labels[second])
        number = (
            f"{len(own)} one-vs-one scores never vary"
            if len(own) > 1
            else "1 one-vs-one score never varies"
        )
        out.append(
            f"{number} ({example}): {'their' if len(own) > 1 else 'its'} sPCC counts as 0, {_NO_INTERVAL_OVO}"
        )
    return out


_NO_INTERVAL_OVR = "and spcc/ovr_fisher and spcc/ovr_min have no interval"
_NO_INTERVAL_OVO = "and spcc/ovo_fisher and spcc/ovo_min have no interval"


def _correlation_remarks(scores: ClassScores, labels: Sequence[Label]) -> list[str]:
    """Remarks on correlations that averages leave out or clip, or that are of a score that never varies."""
    out = _constant_scores(scores, labels)
    for kind in ("ovr", "ovo"):
        mean = Fisher(kind)
        few, clipped = mean.left_out(scores), mean.clipped(scores)
        if few:
            out.append(
                f"spcc/{kind}_fisher and spcc/{kind}_min leave out {few} correlations: "
                "two classes have fewer than 4 rows together"
            )
        if clipped:
            out.append(
                f"{clipped} of the correlations in spcc/{kind}_fisher are exactly 1 or -1: they are clipped, and its "
                "interval does not include their error"
            )
    return out


_FEW_ERRORS = {
    "probability/log_loss": ("log loss",),
    "probability/brier": ("Brier score",),
    "probability/spherical": ("spherical score",),
    "/brier_skill": ("skills",),
    "average_precision": ("average precision",),
    "spcc/": ("sPCC",),
    "spcc/d_b": ("d_b",),
    "calibration/": ("calibration error", "calibration slope"),
}
"""What few wrong predictions decide, by a part of its metrics' names."""
_FEW_WEIGHTED_ERRORS = {
    "/accuracy": ("accuracy",),
    "/recall": ("recall",),
    "/specificity": ("specificity",),
    "/balanced_accuracy": ("balanced accuracy",),
}
"""What few wrong predictions decide besides if rows have sampling weights: those of few errors may be unlike others."""


def _few_errors(wrong: float, names: Collection[str], weighted: bool) -> list[str]:
    """Warn of few wrong predictions, naming the metrics that they make approximate; nothing without such metrics.

    ``wrong``: number of errors; with sampling weights the effective one (Kish's).
    """
    decided = {**_FEW_WEIGHTED_ERRORS, **_FEW_ERRORS} if weighted else _FEW_ERRORS
    named: list[str] = []
    for part, words in decided.items():
        longer = [other for other in decided if other != part and other.startswith(part)]
        if any(part in name and not any(other in name for other in longer) for name in names):
            named.extend(words)
    if not named:
        return []
    if wrong == 0:
        few = "No errors"
    elif weighted:
        few = f"Only {significant(wrong, 2)} effective rows are errors"
    else:
        few = f"Only {wrong:.0f} error{'' if wrong == 1 else 's'}"
    return [f"{few}: the intervals of {join_names(named, len(named))} are approximate"]


def _never(labels: Sequence[Label], table: Table, averages: str, counted: str) -> list[str]:
    """The warning of classes, or groups, that are never predicted; None without any."""
    names = [quoted(labels[k]) for k in passed_over("precision_macro", table)]
    they, are, them = ("they have", "are", "them") if len(names) > 1 else ("it has", "is", "it")
    words = f"{averages} leave {them} out, {counted} {them} as 0"
    return (
        [f"{join_names(names, 8)} {are} never predicted, so {they} no precision: {words}"]
        if names
        else []
    )


def _few(one: str, several: str, names: Sequence[str], few_rows: str) -> str:
    if len(names) == 1:
        return f"{one} {names[0]} has {few_rows}: its intervals are approximate"
    return f"{several} {join_names(names, 8)} have {few_rows}: their intervals are approximate"


# -- bootstrap of counts: multinomial tables instead of resampled rows --------------------------------


def resample_tables(
    views: EvaluationViews, catalog: Catalog, n_resamples: int, seed: int
) -> dict[str, Interval]:
    """Percentile intervals of every metric of the counts, by name."""
    statistics, level = views.statistics, views.level
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
            plain, views.grouping, views.step, views.over, level, prices=views.prices
        )
        metrics = metric_values(redrawn, catalog)
        names = names or list(metrics)
        rows.append(np.array([metrics[name] for name in names]))
    values = np.reshape(rows, (len(rows), len(names)))
    defined = np.flatnonzero(~np.isnan(values).all(axis=0))
    ends = np.nanquantile(values[:, defined], [(1 - level) / 2, (1 + level) / 2], axis=0).T.tolist()
    return {
        names[k]: (low, high)
        for k, (low, high) in zip(defined, ends, strict=True)
        if not math.isnan(low)
    }
