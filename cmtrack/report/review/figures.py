"""The figures of a review, each drawn from a ranking.

:mod:`cmtrack.report.figures` lists the figures with their titles and reading instructions.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from cmtrack.base import BaseEvaluation
from cmtrack.comparison.blocks import RepeatedRanking
from cmtrack.comparison.cell_changes import MAX_CLASSES
from cmtrack.comparison.ranking import Ranked, Ranking
from cmtrack.digits import fixed
from cmtrack.evaluation import Evaluation
from cmtrack.metrics.intervals import normal_quantile
from cmtrack.names import MAY_BE_BEST, quoted
from cmtrack.plots import _text as text
from cmtrack.plots import review as plots
from cmtrack.plots.classes import plot_class_curves
from cmtrack.plots.evaluation import class_curve, hardest_classes, with_named_cells
from cmtrack.plots.order import IN_GIVEN_ORDER, order_of
from cmtrack.report import formatting as fmt
from cmtrack.report.probabilities import JUDGES, curve_of
from cmtrack.report.review.phrases import criterion_title, standing_word, title_of
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

_MATRICES = 3
_CLASSES = 2
"""Maximum number of classes for which curves are drawn."""
_CURVES = 4
"""Maximum number of reliability curves in one figure."""
_LEAST_SET = 3
"""Fewest runs with a value of the parameter for which a line is drawn.

A line through fewer points would be meaningless.
"""
_NO_INTERVAL = (math.nan, math.nan)
_REPETITION = re.compile(
    r"(?i)(?<![a-z])(seeds?|folds?|splits?|random_?state|repetitions?|repeats?|run|trial)(?![a-z])"
)


@dataclass(frozen=True)
class _RunCurve:
    """The curve of one of the runs that a figure shows.

    ``place``: position of the run in the ranking, which determines the colour of the curve.
    """

    place: int
    name: str
    evaluation: Evaluation
    curve: Any


def _names(ranking: Ranking) -> list[str]:
    return [run.name for run in ranking.runs]


def _find_chosen(runs: Sequence[Ranked]) -> int | None:
    """Return the position of the chosen run, or None if no run is chosen."""
    return next((place for place, run in enumerate(runs) if run.chosen), None)


def ranking_figure(ranking: Ranking) -> Figure | None:
    """Draw the values of the runs and their differences from the best other run."""
    criterion = ranking.criterion
    runs = ranking.runs
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
        chosen=_find_chosen(runs),
        chosen_label=standing_word("chosen", ranking),
        confidence_level=ranking.confidence_level,
        picked=np.array([run.picked for run in runs]),
    )


def metrics_figure(ranking: Ranking) -> Figure | None:
    """Draw the first headline metrics in which the runs differ, for the best runs."""
    headline_metrics = headline(ranking, None)
    runs = ranking.runs[:MAX_RUNS]
    same_values = _differing_metrics(ranking, headline_metrics)
    names = list(same_values)[:MAX_METRICS]
    limits = []
    if len(names) < len(headline_metrics):
        limits.append(f"{len(names)} of {len(headline_metrics)} headline metrics")
    if len(runs) < len(ranking.runs):
        limits.append(f"the first {len(runs)} of {len(ranking.runs)} runs")
    catalog = ranking.criterion.catalog
    evaluations = [run.evaluation for run in runs]
    title_of_metric = partial(title_of, evaluation=ranking.evaluation, catalog=catalog, brief=True)
    equal = [
        f"not shown: {fmt.join_names(list(map(title_of_metric, same_values[name])))} = "
        f"{title_of_metric(name)}"
        for name in names
        if same_values[name]
    ]
    return plots.plot_metric_heatmap(
        [run.name for run in runs],
        list(map(title_of_metric, names)),
        [[evaluation.metrics.get(name, math.nan) for name in names] for evaluation in evaluations],
        [catalog.lookup(name).better for name in names],
        errors=[
            [_standard_error(evaluation, name) for name in names] for evaluation in evaluations
        ],
        tied=np.array([run.tied for run in runs]),
        tied_are="are not dominated"
        if ranking.criterion.pareto
        else f"{MAY_BE_BEST} by the ranked metric",
        title=fmt.capital("; ".join(filter(None, (", ".join(limits), *equal)))) or None,
    )


def _differing_metrics(ranking: Ranking, headline_metrics: Sequence[str]) -> dict[str, list[str]]:
    """Return the metrics of the ranking, then the headline metrics in which its runs differ.

    Each metric is mapped to the further headline metrics with the same values in all runs. A
    reader could otherwise take two equal columns for a mistake.
    """
    same_values: dict[str, list[str]] = {name: [] for name in ranking.criterion.metrics}
    first_by_values: dict[tuple[float, ...], str] = {}
    for name in dict.fromkeys([*ranking.criterion.metrics, *headline_metrics]):
        values = [run.evaluation.metrics.get(name, math.nan) for run in ranking.runs]
        if name not in ranking.criterion.metrics and len(set(values)) < 2:
            continue
        first = first_by_values.setdefault(tuple(round(value, 12) for value in values), name)
        if first == name:
            same_values[name] = []
        elif name not in ranking.criterion.metrics:
            same_values[first].append(name)
    return same_values


def confusion_difference_figure(ranking: Ranking) -> Figure | None:
    """Draw the differences between the confusion matrices of the chosen run and its rival."""
    other = rival(ranking)
    changes = changes_of(ranking)
    if other is None or changes is None:
        return None
    significant = changes.significant(ranking.confidence_level)
    if not significant.any():
        return None
    step = changes.step
    row_counts = []
    for run, evaluation in of_classes(ranking):
        if run is other or run is ranking.foremost:
            matrix = evaluation.confusion_matrix
            actual = evaluation.reduced[step].actual if step else matrix.counts.sum(axis=1)
            row_counts.append(actual)
    figure = plots.plot_matrix_difference(
        changes.difference,
        changes.labels,
        first=other.name,
        second=ranking.foremost.name,
        significant=significant,
        counts=changes.counts,
        totals=np.minimum(*row_counts).astype(np.float64),
    )
    _, chosen = _chosen(ranking)
    return with_named_cells(figure, 0, chosen, step, changes.labels)


def _chosen(ranking: Ranking) -> tuple[int, Evaluation]:
    """Return the position and evaluation of the recommended run, which must have single labels."""
    return next(
        (place, evaluation)
        for place, (run, evaluation) in enumerate(of_classes(ranking))
        if run is ranking.foremost
    )


def _standard_error(evaluation: BaseEvaluation, metric: str) -> float:
    """Return the approximate standard error of a metric from its interval, or NaN."""
    low, high = evaluation.intervals.get(metric, _NO_INTERVAL)
    return (high - low) / (2 * normal_quantile(evaluation.confidence_level))


def confusion_matrices_figure(ranking: Ranking) -> Figure | None:
    """Draw the confusion matrices side by side."""
    runs = of_classes(ranking)
    if not runs:
        return None
    evaluations = [evaluation for _, evaluation in runs]
    step = _step_to_draw(ranking, evaluations[0])
    title = None
    if step:
        labels = list(evaluations[0].reduced[step].labels)
        matrices = [evaluation.reduced[step].counts for evaluation in evaluations]
        title = f"Groups of {step}, without mismatches"
    else:
        labels = list(evaluations[0].labels)
        matrices = [evaluation.confusion_matrix.counts for evaluation in evaluations]
        if len(labels) > IN_GIVEN_ORDER:
            order = order_of(matrices[0])
            labels = [labels[place] for place in order]
            matrices = [matrix[np.ix_(order, order)] for matrix in matrices]
    named = [(run.name, matrix) for (run, _), matrix in zip(runs, matrices, strict=True)]
    figure = plots.plot_matrices(named, labels, max_matrices=_MATRICES, title=title)
    place, chosen = _chosen(ranking)
    if place >= _MATRICES:
        return figure
    return with_named_cells(figure, place, chosen, step, labels)


def _step_to_draw(ranking: Ranking, evaluation: Evaluation) -> str:
    """Return the grouping step to draw if there are too many classes; otherwise empty."""
    if len(evaluation.labels) <= MAX_CLASSES or not alike(ranking, frozenset({"grouping"})):
        return ""
    small = (step.name for step in evaluation.reduced if len(step.labels) <= MAX_CLASSES)
    return next(small, "")


def roc_figure(ranking: Ranking) -> Figure | None:
    """Draw the ROC curves in one figure."""
    curves = _score_curves(ranking, lambda evaluation: evaluation.roc)
    if not curves:
        return None
    return _overlay(plots.plot_roc_overlay, curves, "fpr", "tpr", "auc")


def _score_curves(ranking: Ranking, read_curve: Callable[[Evaluation], Any]) -> list[_RunCurve]:
    """Return the curves of the runs that have scores of the positive group.

    The list is empty if the runs have different positive groups.
    """
    if not alike(ranking, ranking.criterion.catalog.depends_on("binary/roc_auc")):
        return []
    curves = []
    for place, (run, evaluation) in enumerate(of_classes(ranking)):
        # If one of the two groups has no rows, the curve is undefined.
        if evaluation.roc is not None and np.isfinite(evaluation.roc.tpr).all():
            curve = read_curve(evaluation)
            if curve is not None:
                curves.append(_RunCurve(place, run.name, evaluation, curve))
    return curves


def _overlay(
    plot: Callable[..., Figure],
    curves: Sequence[_RunCurve],
    x: str,
    y: str,
    area: str,
    **options: Any,
) -> Figure:
    """Draw the curves of several runs, with the area below each curve and its interval."""
    return plot(
        [(run.name, getattr(run.curve, x), getattr(run.curve, y)) for run in curves],
        areas=[getattr(run.curve, area) for run in curves],
        intervals=[getattr(run.curve, f"{area}_interval") or _NO_INTERVAL for run in curves],
        ceilings=[run.curve.ceiling for run in curves],
        positive=curves[0].curve.positive,
        places=[run.place for run in curves],
        **options,
    )


def class_curves_figure(ranking: Ranking) -> Figure | None:
    """Draw the ROC, precision-recall and gains curves of some classes, each against the rest.

    Returns None if the runs have such curves for a positive group.
    """
    runs = of_classes(ranking)[:_CURVES]
    evaluations = [evaluation for _, evaluation in runs]
    if len(runs) < 2 or not all(map(_has_class_curves, evaluations)):
        return None
    # Shorten the names of all runs together, so that a run has the same name in all figures.
    short = text.short_names(_names(ranking), 40)
    rows = []
    for label, metric in hardest_classes(evaluations[0], _CLASSES):
        areas = [evaluation.metrics[metric] for evaluation in evaluations]
        title = f"{quoted(label)}: AUC {fixed(min(areas), 3)} to {fixed(max(areas), 3)}"
        curves = [
            class_curve(evaluation, label, short[place], place)
            for place, evaluation in enumerate(evaluations)
        ]
        rows.append((title, curves))
    return plot_class_curves(rows) if rows else None


def _has_class_curves(evaluation: Evaluation) -> bool:
    return evaluation.roc is None and evaluation.has_class_calibration


def precision_recall_figure(ranking: Ranking) -> Figure | None:
    """Draw the precision-recall curves in one figure."""
    curves = _score_curves(ranking, lambda evaluation: evaluation.precision_recall)
    if not curves or math.isnan(curves[0].curve.average_precision):
        return None
    return _overlay(
        plots.plot_precision_recall_overlay,
        curves,
        "recall",
        "precision",
        "average_precision",
        prevalence=curves[0].curve.prevalence,
    )


def reliability_figure(ranking: Ranking) -> Figure | None:
    """Draw the reliability curves of the best runs, labelled like the table of probabilities."""
    section = judged_section(ranking)
    if not section:
        return None
    curves = []
    for place, (run, evaluation) in enumerate(of_classes(ranking)):
        curve = curve_of(evaluation, section)
        if curve is not None:
            curves.append(_RunCurve(place, run.name, evaluation, curve))
    if not curves:
        return None
    words = [""] * len(curves)
    # Only the first curves are drawn, so only they need a word.
    for number, run_curve in enumerate(curves[:_CURVES]):
        assessment = JUDGES[section](run_curve.evaluation)
        if assessment is not None:
            words[number] = assessment.word
    metric = f"{section}/error"
    return plots.plot_reliability_overlay(
        [(run.name, run.curve.scores, run.curve.recalibrated) for run in curves],
        errors=[run.evaluation.metrics[metric] for run in curves],
        intervals=[run.evaluation.intervals.get(metric, _NO_INTERVAL) for run in curves],
        words=words,
        event="a correct prediction" if section == "confidence" else curves[0].curve.positive,
        places=[run.place for run in curves],
        max_curves=_CURVES,
    )


def rank_distribution_figure(ranking: Ranking) -> Figure | None:
    """Draw the distribution of each run's rank."""
    if len(ranking.runs) < 2 or not np.isfinite(ranking.rank_distribution).all():
        return None
    return plots.plot_rank_distribution(_names(ranking), ranking.rank_distribution)


def parameter_figure(ranking: Ranking) -> Figure | None:
    """Draw the metric against the parameter that varies most."""
    runs = family(ranking)
    parameter = varied(runs)
    if parameter is None or ranking.criterion.pareto:
        return None
    metric_title = criterion_title(ranking.criterion, ranking.evaluation.positive)
    title = None
    if len(runs) < len(ranking.runs):
        title = f"{len(runs)} runs of the same kind as the best one"
    return plots.plot_metric_against_parameter(
        [_number(run, parameter) for run in runs],
        [run.value for run in runs],
        [run.interval for run in runs],
        parameter=parameter,
        metric_title=fmt.capital(metric_title),
        names=[run.name for run in runs],
        tied=np.array([run.tied for run in runs]),
        highlight=_find_chosen(runs),
        title=title,
    )


def family(ranking: Ranking) -> list[Ranked]:
    """Return the runs that have the same non-numeric parameters as the recommended run.

    If several kinds of models were included, a line through the means at each value of a parameter
    would be meaningless.
    """
    kind = _kind(ranking.foremost)
    return [run for run in ranking.runs if _kind(run) == kind]


def _kind(run: Ranked) -> dict[str, str]:
    """Return a run's parameters that are not numbers and do not identify a repetition."""
    return {
        name: value
        for name, value in run.run.params.items()
        if not _REPETITION.search(name) and _number(run, name) is None
    }


def varied(runs: Sequence[Ranked]) -> str | None:
    """Return the numeric parameter with the most distinct values; None if all are constant.

    A parameter is considered only if at least half of the runs have it. Seeds, folds and other
    numbers that identify a repetition are ignored, because their order is meaningless.
    """
    values: dict[str, list[float]] = {}
    for run in runs:
        for name in run.run.params:
            number = _number(run, name)
            if number is not None and not _REPETITION.search(name):
                values.setdefault(name, []).append(number)
    least = max(_LEAST_SET, len(runs) / 2)
    distinct_counts = {
        name: len(set(numbers)) for name, numbers in values.items() if len(numbers) >= least
    }
    parameter = max(distinct_counts, key=distinct_counts.__getitem__, default=None)
    if parameter is None or distinct_counts[parameter] < 2:
        return None
    return parameter


def _number(run: Ranked, parameter: str) -> float | None:
    """Return the value of a parameter if it is a finite number; otherwise None."""
    try:
        number = float(run.run.params[parameter])
    except (KeyError, ValueError):
        return None
    return number if math.isfinite(number) else None


# -- models over repeated runs ---------------------------------------------------------------------


def metric_by_block_figure(ranking: RepeatedRanking) -> Figure | None:
    """Draw the value of every model in every block."""
    if not np.isfinite(ranking.scores).any():
        return None
    metric = ranking.criterion.metrics[0]
    title = fmt.metric_title(metric, brief=True, catalog=ranking.criterion.catalog)
    return plots.plot_metric_heatmap(
        _names(ranking),
        list(ranking.block_names),
        ranking.scores.T.tolist(),
        [ranking.criterion.direction] * len(ranking.block_names),
        title=f"{title} by {ranking.blocks.by}",
    )
