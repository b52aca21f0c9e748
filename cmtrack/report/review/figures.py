"""The figures of a review, each drawn from a ranking; the list of them is :mod:`cmtrack.report.figures`."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from cmtrack.base import BaseEvaluation
from cmtrack.comparison.blocks import RepeatedRanking
from cmtrack.comparison.cell_changes import MAX_CLASSES
from cmtrack.comparison.ranking import Ranked, Ranking
from cmtrack.digits import fixed
from cmtrack.evaluation import Evaluation
from cmtrack.metrics.calibration import CalibrationCurve
from cmtrack.metrics.intervals import normal_quantile
from cmtrack.names import MAY_BE_BEST, quoted
from cmtrack.plots import _text as text
from cmtrack.plots import review as plots
from cmtrack.plots.classes import plot_class_curves
from cmtrack.plots.evaluation import class_curve, hardest_classes, with_named_cells
from cmtrack.plots.order import IN_GIVEN_ORDER, order_of
from cmtrack.report import formatting as fmt
from cmtrack.report.probabilities import JUDGES, curve_of
from cmtrack.report.review.phrases import criterion_title
from cmtrack.report.review.shown import (
    MAX_METRICS,
    MAX_RUNS,
    alike,
    changes_of,
    headline,
    judged_section,
    of_classes,
    rival,
)

_MATRICES = 6
_CLASSES = 2  # of which curves are drawn
_CURVES = 4  # reliability curves in one figure
_LEAST_SET = 3  # runs that must have a parameter before a figure of it says anything
_REPETITION = re.compile(
    r"(?i)(?<![a-z])(seeds?|folds?|splits?|random_?state|repetitions?|repeats?|run|trial)(?![a-z])"
)


def _names(ranking: Ranking) -> list[str]:
    return [run.name for run in ranking.runs]


def ranking_figure(ranking: Ranking) -> Figure | None:
    """The values and their differences from the best other run."""
    criterion, runs = ranking.criterion, ranking.runs
    if criterion.pareto or len(runs) < 2:
        return None
    title = criterion_title(criterion, ranking.evaluation.positive)
    return plots.plot_ranking(
        _names(ranking),
        [run.value for run in runs],
        [run.interval for run in runs],
        [run.difference for run in runs],
        [(run.difference_low, run.difference_high) for run in runs],
        tied=np.array([run.tied for run in runs]),
        metric_title=fmt.capital(title),
        better=criterion.direction,
        chosen=next((place for place, run in enumerate(runs) if run.chosen), None),
        confidence_level=ranking.confidence_level,
        picked=np.array([run.picked for run in runs]),
    )


def metrics_figure(ranking: Ranking) -> Figure | None:
    """The first headline metrics of the first runs, of the metrics that differ between the runs."""
    every, runs, catalog = (
        headline(ranking, None),
        ranking.runs[:MAX_RUNS],
        ranking.criterion.catalog,
    )
    ranking_metrics = ranking.criterion.metrics
    differing = [
        name
        for name in every
        if len({run.evaluation.metrics.get(name) for run in ranking.runs}) > 1
    ]
    names = list(dict.fromkeys((*ranking_metrics, *differing)))[:MAX_METRICS]
    parts = []
    if len(names) < len(every):
        parts.append(f"{len(names)} of {len(every)} headline metrics")
    if len(runs) < len(ranking.runs):
        parts.append(f"the first {len(runs)} of {len(ranking.runs)} runs")
    return plots.plot_metric_heatmap(
        [run.name for run in runs],
        [
            fmt.metric_title(name, ranking.evaluation.positive, brief=True, catalog=catalog)
            for name in names
        ],
        [[run.evaluation.metrics.get(name, math.nan) for name in names] for run in runs],
        [catalog.lookup(name).better for name in names],
        errors=[[_standard_error(run.evaluation, name) for name in names] for run in runs],
        tied=np.array([run.tied for run in runs]),
        tied_are="not dominated" if ranking.criterion.pareto else MAY_BE_BEST,
        title=fmt.capital(", ".join(parts)) or None,
    )


def confusion_difference_figure(ranking: Ranking) -> Figure | None:
    """The confusion matrix of the chosen run against that of its rival."""
    other, changes = rival(ranking), changes_of(ranking)
    if other is None or changes is None or not changes.significant(ranking.confidence_level).any():
        return None
    step = changes.step
    pair = [one for run, one in of_classes(ranking) if run in (other, ranking.foremost)]
    sizes = [
        one.reduced[step].actual if step else one.confusion_matrix.counts.sum(axis=1)
        for one in pair
    ]
    figure = plots.plot_matrix_difference(
        changes.difference,
        changes.labels,
        first=other.name,
        second=ranking.foremost.name,
        significant=changes.significant(ranking.confidence_level),
        counts=changes.counts,
        totals=np.minimum(*sizes).astype(np.float64),
    )
    return with_named_cells(figure, 0, _chosen(ranking)[1], step, changes.labels)


def _chosen(ranking: Ranking) -> tuple[int, Evaluation]:
    """Place and evaluation of the run to take, which is of single classes."""
    return next(
        (k, evaluation)
        for k, (run, evaluation) in enumerate(of_classes(ranking))
        if run is ranking.foremost
    )


def _standard_error(evaluation: BaseEvaluation, metric: str) -> float:
    """About that of a metric's interval; NaN without one."""
    low, high = evaluation.intervals.get(metric, (math.nan, math.nan))
    return (high - low) / (2 * normal_quantile(evaluation.confidence_level))


def confusion_matrices_figure(ranking: Ranking) -> Figure | None:
    """The confusion matrices side by side."""
    runs = of_classes(ranking)
    if not runs:
        return None
    first, title, name = runs[0][1], None, ""
    small = [step.name for step in first.reduced if len(step.labels) <= MAX_CLASSES]
    if len(first.labels) > MAX_CLASSES and small and alike(ranking, frozenset({"grouping"})):
        name, labels = small[0], list(first.reduced[small[0]].labels)
        counts, title = (
            [e.reduced[name].counts for _, e in runs],
            f"Groups of {name}, without mismatches",
        )
    else:
        counts = [e.confusion_matrix.counts for _, e in runs]
        few = len(first.labels) <= IN_GIVEN_ORDER
        order = np.arange(len(first.labels)) if few else order_of(counts[0])
        counts, labels = (
            [matrix[np.ix_(order, order)] for matrix in counts],
            [first.labels[place] for place in order],
        )
    named = [(run.name, matrix) for (run, _), matrix in zip(runs, counts, strict=True)]
    figure, (place, chosen) = (
        plots.plot_matrices(named, labels, max_matrices=_MATRICES, title=title),
        _chosen(ranking),
    )
    return with_named_cells(figure, place, chosen, name, labels) if place < _MATRICES else figure


def _scored(ranking: Ranking) -> list[tuple[int, str, Evaluation]]:
    """Place, name and evaluation of the runs with scores of the positive group, which is the same in all."""
    if not alike(ranking, ranking.criterion.catalog.depends_on("binary/roc_auc")):
        return []
    runs = [
        (place, run.name, evaluation) for place, (run, evaluation) in enumerate(of_classes(ranking))
    ]
    return [one for one in runs if one[2].roc is not None and np.isfinite(one[2].roc.tpr).all()]


_NOTHING = (math.nan, math.nan)


def roc_figure(ranking: Ranking) -> Figure | None:
    """The ROC curves in one figure."""
    curves = [(place, name, e.roc) for place, name, e in _scored(ranking) if e.roc is not None]
    return _overlay(plots.plot_roc_overlay, curves, "fpr", "tpr", "auc") if curves else None


def _overlay(
    plot: Callable[..., Figure],
    curves: Sequence[tuple[int, str, Any]],
    x: str,
    y: str,
    area: str,
    **more: Any,
) -> Figure:
    """Curves of several runs, of (place, name, curve), with the area below each, its interval and its ceiling."""
    return plot(
        [(name, getattr(curve, x), getattr(curve, y)) for _, name, curve in curves],
        areas=[getattr(curve, area) for *_, curve in curves],
        intervals=[getattr(curve, f"{area}_interval") or _NOTHING for *_, curve in curves],
        ceilings=[curve.ceiling for *_, curve in curves],
        positive=curves[0][2].positive,
        places=[place for place, *_ in curves],
        **more,
    )


def class_curves_figure(ranking: Ranking) -> Figure | None:
    """ROC, precision over recall and gains of some classes against all others; None where a positive group has them."""
    runs = of_classes(ranking)[:_CURVES]
    if len(runs) < 2 or any(e.roc is not None or not e.has_class_calibration for _, e in runs):
        return None
    short = text.short_names([run.name for run in ranking.runs], 40)
    rows = []
    for label, metric in hardest_classes(runs[0][1], _CLASSES):
        areas = [e.metrics[metric] for _, e in runs]
        name = f"{quoted(label)}: AUC {fixed(min(areas), 3)} to {fixed(max(areas), 3)}"
        rows.append((name, [class_curve(e, label, short[i], i) for i, (_, e) in enumerate(runs)]))
    return plot_class_curves(rows) if rows else None


def precision_recall_figure(ranking: Ranking) -> Figure | None:
    """Precision over recall in one figure."""
    scored = [(place, name, e.precision_recall) for place, name, e in _scored(ranking)]
    curves = [(place, name, curve) for place, name, curve in scored if curve is not None]
    if not curves or math.isnan(curves[0][2].average_precision):
        return None
    plot, prevalence = plots.plot_precision_recall_overlay, curves[0][2].prevalence
    return _overlay(plot, curves, "recall", "precision", "average_precision", prevalence=prevalence)


def reliability_figure(ranking: Ranking) -> Figure | None:
    """The reliability curves of the first runs in one figure, with the words of the table of probabilities."""
    section = judged_section(ranking)
    curves: list[tuple[int, str, Evaluation, CalibrationCurve, str]] = []
    for place, (run, evaluation) in enumerate(of_classes(ranking) if section else ()):
        curve = curve_of(evaluation, section)
        if curve is not None:
            judged = JUDGES[section](evaluation) if len(curves) < _CURVES else None
            curves.append((place, run.name, evaluation, curve, judged.word if judged else ""))
    if not curves:
        return None
    return plots.plot_reliability_overlay(
        [(name, curve.scores, curve.recalibrated) for _, name, _, curve, _ in curves],
        errors=[evaluation.metrics[f"{section}/error"] for _, _, evaluation, _, _ in curves],
        intervals=[
            evaluation.intervals.get(f"{section}/error", _NOTHING)
            for _, _, evaluation, _, _ in curves
        ],
        words=[word for *_, word in curves],
        event="a right prediction" if section == "confidence" else curves[0][3].positive,
        places=[place for place, *_ in curves],
        max_curves=_CURVES,
    )


def rank_distribution_figure(ranking: Ranking) -> Figure | None:
    """The distribution of each run's rank."""
    if len(ranking.runs) < 2 or not np.isfinite(ranking.rank_distribution).all():
        return None
    return plots.plot_rank_distribution(_names(ranking), ranking.rank_distribution)


def parameter_figure(ranking: Ranking) -> Figure | None:
    """The metric by a parameter that varies."""
    runs = family(ranking)
    name = varied(runs)
    if name is None or ranking.criterion.pareto:
        return None
    title = criterion_title(ranking.criterion, ranking.evaluation.positive)
    return plots.plot_metric_against_parameter(
        [_number(run, name) for run in runs],
        [run.value for run in runs],
        [run.interval for run in runs],
        parameter=name,
        metric_title=fmt.capital(title),
        names=[run.name for run in runs],
        tied=np.array([run.tied for run in runs]),
        highlight=next((place for place, run in enumerate(runs) if run.chosen), None),
        title=None
        if len(runs) == len(ranking.runs)
        else f"{len(runs)} runs of the same kind as the best one",
    )


def family(ranking: Ranking) -> list[Ranked]:
    """The runs of the same kind as the one to take: with the same values of all parameters that are not numbers.

    Over models of several kinds, a line through the means at each value of a parameter would mean nothing.
    """

    def kind(run: Ranked) -> set[tuple[str, str]]:
        params = {
            name: text for name, text in run.run.params.items() if not _REPETITION.search(name)
        }
        return {(name, text) for name, text in params.items() if _number(run, name) is None}

    return [run for run in ranking.runs if kind(run) == kind(ranking.foremost)]


def varied(runs: Sequence[Ranked]) -> str | None:
    """The numeric parameter with the most distinct values among those that at least half of the runs have.

    Seeds, folds and other numbers of a repetition are none: their order means nothing.
    """
    values: dict[str, list[float]] = {}
    for run in runs:
        for name in run.run.params:
            number = _number(run, name)
            if number is not None and not _REPETITION.search(name):
                values.setdefault(name, []).append(number)
    enough = {
        n: len(set(v))
        for n, v in values.items()
        if len(v) >= max(_LEAST_SET, len(runs) / 2) and len(set(v)) > 1
    }
    return max(enough, key=lambda name: enough[name], default=None)


def _number(run: Ranked, parameter: str) -> float | None:
    try:
        number = float(run.run.params[parameter])
    except (KeyError, ValueError):
        return None
    return number if math.isfinite(number) else None


# -- models over repeated runs ---------------------------------------------------------------------------------


def metric_by_block_figure(ranking: RepeatedRanking) -> Figure | None:
    """Every model in every block."""
    values = ranking.scores.T.tolist()
    if not any(math.isfinite(value) for row in values for value in row):
        return None
    metric = ranking.criterion.metrics[0]
    return plots.plot_metric_heatmap(
        _names(ranking),
        list(ranking.block_names),
        values,
        [ranking.criterion.direction] * len(ranking.block_names),
        title=f"{fmt.metric_title(metric, brief=True, catalog=ranking.criterion.catalog)} by {ranking.blocks.by}",
    )
