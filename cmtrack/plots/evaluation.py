"""The figures of an evaluation, each drawn from the whole of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cmtrack import digits
from cmtrack.digits import p_text
from cmtrack.evaluation.rows import ASIDE, CLASSES, OTHER, STEP
from cmtrack.metrics.calibration import upper_bound
from cmtrack.metrics.names import encode_label
from cmtrack.metrics.precision_recall import precision_recall
from cmtrack.metrics.spcc import least_separated, spcc_ovo
from cmtrack.prevalence import ClassPrevalenceEstimate
from cmtrack.prevalence.fit import doubt
from cmtrack.prevalence.results import ASSUMES
from cmtrack.removed import RemovedFeature, reason

from . import _text as text
from ._heatmap import FEW, name_cells
from .classes import ClassCurve, plot_class_curves
from .confusion import chart_words, plot_confusion_chart, plot_confusion_matrix, plot_reduced_matrix
from .decisions import Point, plot_decision_curve, plot_gains, plot_risk_coverage
from .order import IN_GIVEN_ORDER, WHOLE_UP_TO, in_order, with_others
from .precision_recall import plot_precision_recall
from .prevalence import plot_at_prevalence, plot_prevalence_likelihood
from .reliability import ReliabilityPanel, plot_reliability, plot_reliability_panels
from .roc import interval_words, plot_roc
from .scores import plot_score_histogram
from .spcc import PairSeparation, plot_spcc_matrix, plot_spcc_pairs

if TYPE_CHECKING:
    from cmtrack.base import BaseEvaluation
    from cmtrack.evaluation import Evaluation
    from cmtrack.metrics.calibration import CalibrationCurve
    from cmtrack.metrics.precision_recall import PrecisionRecallCurve
    from cmtrack.metrics.roc import RocCurve
    from cmtrack.prevalence import PrevalenceEstimate
    from cmtrack.statistics import ReducedConfusionMatrix

_REFERENCES = {
    "prevalence/classify_and_count": "classify and count",
    "prevalence/expected": "sum of probabilities",
}


def evaluation_figures(
    evaluation: BaseEvaluation, *, on_error: Callable[[str, Exception], object] | None = None
) -> Mapping[str, Figure]:
    """Draw every figure that applies to an evaluation: :meth:`BaseEvaluation.figures`.

    Examples
    --------
    >>> from cmtrack import evaluate
    >>> from cmtrack.plots import evaluation_figures
    >>> sorted(evaluation_figures(evaluate([0, 1, 2, 1], [0, 1, 2, 2])))
    ['confusion_matrix']
    """
    return evaluation.figures(on_error=on_error)


def confusion_matrix_figure(evaluation: Evaluation) -> Figure:
    """The confusion matrix: whole up to 30 classes, else of the 20 most confused ones and the others as one group."""
    matrix, positive = evaluation.confusion_matrix, evaluation.positive
    if len(matrix.labels) <= WHOLE_UP_TO:
        counts, labels = in_order(matrix.counts, matrix.labels)
        figure = plot_confusion_matrix(counts, labels, positive=positive, title="Confusion matrix")
        return with_named_cells(figure, 0, evaluation, "", labels)
    part = with_others(matrix.counts, matrix.labels, positive)
    figure = plot_reduced_matrix(
        part.counts,
        part.mismatches,
        part.labels,
        positive=positive,
        of="class",
        caption=part.caption,
        title="Confusion matrix of the most confused classes",
    )
    return with_named_cells(figure, 0, evaluation, "", part.labels)


def with_named_cells(
    figure: Figure, panel: int, evaluation: Evaluation, step: str, shown: Sequence[object]
) -> Figure:
    """A figure whose matrix in a panel has named cells: codes of the classes, or of the groups of a step, by place."""
    matrix, labels = CLASSES, evaluation.labels
    if step:
        place = [one.name for one in evaluation.reduced].index(step)
        matrix, labels = f"{STEP}{place}", evaluation.reduced[place].labels
    codes = [labels.index(label) if label in labels else OTHER for label in shown]
    sides: tuple[tuple[list[Any], list[Any]], ...] = (
        (codes, codes),
        (codes, [ASIDE]),
        ([ASIDE], codes),
    )
    for image, (rows, columns) in zip(figure.axes[panel].images, sides, strict=False):
        name_cells(image, matrix, rows, columns)
    return figure


def confusion_chart(evaluation: Evaluation, run: str = "", step: str = "") -> Figure:
    """The confusion matrix for MLflow's charts, with a run, its step and one metric in its title."""
    name, metric = (
        ("accuracy", "multiclass/accuracy") if evaluation.none is None else ("F1", "spans/f1_micro")
    )
    words = chart_words(step, name, evaluation.metrics.get(metric, math.nan))
    counts, labels = in_order(
        evaluation.confusion_matrix.counts, evaluation.confusion_matrix.labels
    )
    return plot_confusion_chart(counts, labels, positive=evaluation.positive, run=run, value=words)


def reduced_figure(evaluation: Evaluation, step: ReducedConfusionMatrix) -> Figure:
    """The reduced matrix of a grouping step."""
    title = f"Reduced confusion matrix “{text.brief(step.name, 40)}”"
    figure = plot_reduced_matrix(
        step.counts, step.mismatches, step.labels, positive=step.positive, title=title
    )
    return with_named_cells(figure, 0, evaluation, step.name, step.labels)


def roc_figure(evaluation: Evaluation) -> Figure | None:
    """The ROC curve; None without scores of the positive group."""
    return None if evaluation.roc is None else draw_roc(evaluation.roc, title="ROC curve")


def draw_roc(roc: RocCurve, title: str | None = None, ax: Axes | None = None) -> Figure:
    """The ROC curve from the computed one."""
    return plot_roc(
        roc.fpr,
        roc.tpr,
        auc=roc.auc,
        ceiling=roc.ceiling,
        normalized_auc=roc.auc_normalized,
        auc_interval=roc.auc_interval,
        operating_point=roc.operating_point,
        positive=roc.positive,
        title=title,
        ax=ax,
    )


def precision_recall_figure(evaluation: Evaluation) -> Figure | None:
    """Precision over recall; None without scores of the positive group, or without positives."""
    curve = evaluation.precision_recall
    if curve is None or math.isnan(curve.average_precision):
        return None
    return draw_precision_recall(curve, title="Precision and recall")


def draw_precision_recall(
    curve: PrecisionRecallCurve, title: str | None = None, ax: Axes | None = None
) -> Figure:
    """Precision over recall from the computed curve."""
    return plot_precision_recall(
        curve.recall,
        curve.precision,
        average_precision=curve.average_precision,
        prevalence=curve.prevalence,
        ceiling=curve.ceiling,
        interval=curve.average_precision_interval,
        operating_point=curve.operating_point,
        positive=curve.positive,
        title=title,
        ax=ax,
    )


def reliability_figure(
    evaluation: Evaluation, *, band: str | None = "consistency"
) -> Figure | None:
    """The reliability of the positive group's score; None without it, or with one group alone.

    Parameters
    ----------
    evaluation : Evaluation
    band : "consistency" or None
        Where the curve of a calibrated score stays, or none. The band is left out for rows with sampling weights or
        clusters.

    Raises
    ------
    ValueError
        If the band is another one.

    Examples
    --------
    >>> import numpy as np
    >>> from cmtrack import evaluate
    >>> from cmtrack.plots import reliability_figure
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.random(500)
    >>> reliability_figure(evaluate(rng.random(500) < scores, y_prob=scores)).savefig("reliability.png")
    """
    if band == "confidence":
        raise RemovedFeature(reason('reliability_figure(band="confidence")'))
    if band not in ("consistency", None):
        raise ValueError(f"band must be 'consistency' or None, got {band!r}")
    curve = evaluation.calibration
    if (
        curve is None
        or "calibration/error" not in evaluation.metrics
        or not evaluation.has_section("calibration")
    ):
        return None
    blocks = curve.table.blocks
    if not (blocks.positive.any() and blocks.negative.any()):
        return None
    ends = evaluation.intervals.get("calibration/error")
    return draw_reliability(
        curve, ends, evaluation.negative, title="Reliability", with_band=band is not None
    )


def draw_reliability(
    curve: CalibrationCurve,
    interval: tuple[float, float] | None = None,
    negative: object = "the rest",
    title: str | None = None,
    ax: Axes | None = None,
    with_band: bool = True,
) -> Figure:
    """Reliability from the computed curve; with `ax` without the histogram of scores."""
    error = curve.table.error.value
    level = curve.table.level
    below = upper_bound(error, interval)
    if below:
        shown_error = f"{below} ({digits.level(level)})"
    else:
        shown_error = digits.number(error) + interval_words(interval)
    curve = curve.drawn
    blocks = curve.table.blocks
    return plot_reliability(
        curve.scores,
        curve.recalibrated,
        blocks.positive,
        blocks.negative,
        band=curve.band(level) if with_band and not curve.no_band else None,
        level=level,
        error=shown_error,
        names=(negative, curve.positive),
        title=title,
        ax=ax,
    )


_MOST_CURVES = 8


def class_curve(
    evaluation: Evaluation, label: object, name: str, run: int | None = None
) -> ClassCurve:
    """The curves of one class's probability against all others."""
    curve = precision_recall(evaluation.calibration_of(label).table)
    return ClassCurve(name, curve.recall, curve.precision, curve.called, curve.prevalence, run)


def hardest_classes(evaluation: Evaluation, most: int) -> list[tuple[object, str]]:
    """The classes with the least areas under their ROC curves, in the order of the labels, each with its metric."""
    names = {label: f"class/{encode_label(label)}/roc_auc" for label in evaluation.labels}
    areas = {label: evaluation.metrics.get(name, math.nan) for label, name in names.items()}
    there = sorted(
        (label for label in names if math.isfinite(areas[label])), key=lambda label: areas[label]
    )[:most]
    return [(label, name) for label, name in names.items() if label in there]


def class_curves_figure(evaluation: Evaluation) -> Figure | None:
    """ROC, precision over recall and gains of each class against all others; None without them."""
    if not evaluation.has_class_calibration:
        return None
    drawn, short = (
        hardest_classes(evaluation, _MOST_CURVES),
        text.short_names(evaluation.labels, 30),
    )
    if not drawn:
        return None
    lines = []
    for label, metric in drawn:
        area = digits.number(evaluation.metrics[metric]) + interval_words(
            evaluation.intervals.get(metric)
        )
        name = short[evaluation.labels.index(label)]
        lines.append(class_curve(evaluation, label, f"{name}: AUC {area}"))
    more = (
        f" (the {len(drawn)} of {len(short)} with the least AUC)" if len(drawn) < len(short) else ""
    )
    return plot_class_curves([("", lines)], title=f"Each class against all others{more}")


_MOST_PANELS = 12


def reliability_classes_figure(evaluation: Evaluation) -> Figure | None:
    """The reliability of the predicted class's probability and of each class's; None without them.

    Of more than twelve classes the largest are drawn. Classes without samples, or without others, are left out.
    """
    if not evaluation.has_class_calibration:
        return None
    judged = evaluation.class_calibration()
    there = [one for one in judged.classes if 0 < one.share < 1]
    drawn = sorted(there, key=lambda one: -one.support)[:_MOST_PANELS]
    panels = []
    confidence = evaluation.confidence_calibration if evaluation.has_section("confidence") else None
    if confidence is not None:
        p = evaluation.metrics["confidence/pvalue"]
        panels.append(
            _panel(
                "predicted class",
                confidence,
                evaluation.intervals.get("confidence/error"),
                p_text(p),
                p,
            )
        )
    for one in (one for one in there if one in drawn):
        shown, ends = p_text(one.pvalue_holm, judged.least), (one.low, one.high)
        panels.append(
            _panel(one.label, evaluation.calibration_of(one.label), ends, shown, one.pvalue_holm)
        )
    if not drawn:
        return None
    more = f" (the {len(drawn)} largest of {len(there)})" if len(there) > len(drawn) else ""
    return plot_reliability_panels(
        panels,
        level=judged.level,
        names=("other classes, or wrong", "the class, or right"),
        title=f"Reliability by class{more}",
    )


def _panel(
    name: object,
    curve: CalibrationCurve,
    ends: tuple[float, float] | None,
    shown: str,
    pvalue: float,
) -> ReliabilityPanel:
    """A small figure of a curve, with its class's size, calibration error and p-value."""
    error, curve, level = curve.table.error.value, curve.drawn, curve.table.level
    blocks = curve.table.blocks
    p = "" if math.isnan(pvalue) else f", p {shown}"
    size, error_shown = (
        float(blocks.positive.sum()),
        upper_bound(error, ends) or digits.number(error),
    )
    return ReliabilityPanel(
        name,
        curve.scores,
        curve.recalibrated,
        blocks.positive,
        blocks.negative,
        band=None if curve.no_band else curve.band(level),
        note=f"n={digits.short_count(size)}, error {error_shown}{p}",
        marked=pvalue <= 1 - level + 1e-12,
    )


def decision_curve_figure(evaluation: Evaluation) -> Figure | None:
    """Net benefit by threshold; None without probabilities of the positive group, or with one group alone."""
    curve = evaluation.gains
    if curve is None or evaluation.statistics.ranking_only or not 0 < curve.prevalence < 1:
        return None
    worth = evaluation.net_benefit()
    return plot_decision_curve(
        worth.thresholds,
        worth.value,
        worth.all,
        band=None if worth.reason else (worth.band_low, worth.band_high),
        level=worth.confidence_level,
        positive=worth.positive,
        title="Decision curve",
    )


def gains_figure(evaluation: Evaluation) -> Figure | None:
    """Gains; None without scores of the positive group, or with one group alone."""
    curve = evaluation.gains
    if curve is None or not 0 < curve.prevalence < 1:
        return None
    return plot_gains(
        curve.called,
        curve.gain,
        prevalence=curve.prevalence,
        ceiling=curve.ceiling,
        operating_point=curve.operating_point,
        positive=curve.positive,
        title="Gains",
    )


_REJECTED = (0.5, 0.2, 0.1)


def risk_coverage_figure(evaluation: Evaluation) -> Figure | None:
    """Risk by coverage; None without probabilities of the predictions."""
    curve = evaluation.risk_coverage if evaluation.has_section("confidence") else None
    if curve is None:
        return None
    points = {}
    for share in _REJECTED:
        rest = evaluation.reject(share)
        if rest.accepted < 1:
            points[rest.accepted] = Point(
                rest.accepted, rest.risk, rest.low, rest.high, rest.threshold
            )
    return plot_risk_coverage(
        curve.coverage,
        curve.risk,
        curve.size,
        aurc=curve.aurc,
        interval=curve.interval,
        points=list(points.values()),
        title="Risk by coverage",
    )


_PAIRS = 15


def spcc_figure(evaluation: Evaluation) -> Figure | None:
    """The one-vs-one sPCC at equal shares, of more than 12 classes of the pairs that are separated least.

    None without probabilities or with two classes.
    """
    scores = evaluation._class_scores
    if scores is None:
        return None
    labels = evaluation.confusion_matrix.labels
    if len(labels) <= IN_GIVEN_ORDER:
        return plot_spcc_matrix(
            spcc_ovo(scores.moments, equal_shares=True),
            labels,
            samples=np.nan_to_num(scores.sizes),
            equal_shares=True,
            title="One-vs-one sPCC at equal shares",
        )
    level = evaluation.confidence_level
    has_errors = not evaluation.statistics.has_sampling_weights and evaluation.n_clusters is None
    found = least_separated(scores, FEW, _PAIRS, level if has_errors else None)
    if not found.n_pairs:
        return None
    columns = zip(found.first, found.second, found.value, found.low, found.high, strict=True)
    return plot_spcc_pairs(
        [PairSeparation(labels[c], labels[d], *numbers) for c, d, *numbers in columns],
        names=labels,
        level=level,
        n_pairs=found.n_pairs,
        title="The pairs of classes with the lowest sPCC",
    )


def score_figure(evaluation: Evaluation) -> Figure | None:
    """Scores of the positive group by actual class; None without them, and for decision values."""
    scores = evaluation.positive_scores
    if scores is None or evaluation.statistics.ranking_only:
        return None
    accepted, rejected, *negatives = scores.counts
    rows = {str(evaluation.negative): sum(negatives)}
    if rejected.any():
        rows[f"{evaluation.positive}, wrong class within it"] = rejected
        rows[f"{evaluation.positive}, right class within it"] = accepted
    else:
        rows[str(evaluation.positive)] = accepted
    return plot_score_histogram(
        scores.values,
        list(rows.values()),
        list(rows),
        with_counts=False,
        title=f"Scores for “{text.brief(evaluation.positive, 40)}” by actual class",
    )


def likelihood_figure(evaluation: Evaluation) -> Figure | None:
    """The likelihood of the calibrated prevalence; None where it is undefined, or known from the same labels."""
    estimate = evaluation.prevalence
    if estimate is None or math.isnan(estimate.value) or evaluation.calibrates_itself:
        return None
    metrics = evaluation.metrics
    # a target of its own: what is known is of other rows
    if "prevalence/calibrated_bias" not in metrics:
        return prevalence_figure(estimate)
    references = {label: metrics[name] for name, label in _REFERENCES.items() if name in metrics}
    return prevalence_figure(estimate, actual=metrics["prevalence/actual"], references=references)


SHARES = 25
"""Shares of positives that a metric is drawn at."""


def at_prevalence_figure(
    evaluation: Evaluation, metric: str | None = None, *, target: float = math.nan
) -> Figure | None:
    """A metric against the share of positives; None without two groups or classes, one of them positive."""
    step = evaluation.scored
    if step is None or step.positive is None or evaluation.none is not None:
        return None
    counts = evaluation.confusion_matrix.counts.sum(axis=1)
    here = float(counts[step.in_positive].sum() / counts.sum())
    if not 0 < here < 1:
        return None
    steps = list(evaluation._views.composed)
    name = metric or (f"reduced/{steps[-1]}/accuracy" if steps else "multiclass/accuracy")
    marks = [share for share in (here, target) if 0 < share < 1]
    ends = np.array(
        [
            min([0.01, *(share / 2 for share in marks)]),
            max([0.99, *((1 + share) / 2 for share in marks)]),
        ]
    )
    low, high = np.log(ends / (1 - ends))
    shares = np.union1d(1 / (1 + np.exp(-np.linspace(low, high, SHARES))), marks)
    moved = [evaluation.at(float(share)) for share in shares]
    if any(name not in there.metrics for there in moved):
        return None
    entry = evaluation.catalog.lookup(name)
    return plot_at_prevalence(
        shares,
        [there.metrics[name] for there in moved],
        band=np.transpose([there.intervals.get(name, (math.nan, math.nan)) for there in moved]),
        constant=[there.constant(name) for there in moved],
        lower_is_better=entry.better == "lower",
        here=here,
        target=target,
        level=evaluation.confidence_level,
        metric=entry.heading(brief=True),
        positive=evaluation.positive,
        title="At other shares of positives",
    )


def prevalence_figure(
    estimate: PrevalenceEstimate,
    *,
    actual: float | None = None,
    references: Mapping[str, float] | None = None,
    caption: str = "",
    title: str | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw the likelihood of an estimated prevalence with its interval.

    Parameters
    ----------
    estimate : PrevalenceEstimate
        What :func:`cmtrack.estimate_prevalence` returned.
    actual : float, optional
        The known share of positives.
    references : mapping of str to float, optional
        Other estimates, by name.
    caption : str, default ""
        A sentence below, before the one on what the estimate assumes.
    title : str, optional
        By default it names the positive class.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into; by default a new figure.

    Raises
    ------
    TypeError
        For an estimate of more than two classes, which has no likelihood of one share.

    Examples
    --------
    >>> import numpy as np
    >>> from cmtrack import estimate_prevalence
    >>> from cmtrack.plots import prevalence_figure
    >>> rng, y = np.random.default_rng(0), np.repeat([0, 1], 500)
    >>> estimate = estimate_prevalence(rng.normal(size=2_000), calibration=(y, rng.normal(2 * y)))
    >>> prevalence_figure(estimate, actual=0.0).savefig("prevalence.png")
    """
    if isinstance(estimate, ClassPrevalenceEstimate):
        raise TypeError(
            f"the likelihood is drawn for two classes, got the classes {list(estimate.classes)}; to_frame() has the "
            "share of every class"
        )
    if math.isnan(estimate.value):
        caption = f"{caption} Not estimated: {estimate.why}.".lstrip()
    else:
        caption = f"{caption} This {ASSUMES}.".lstrip()
    if doubt(estimate.fit_pvalue):
        caption += (
            f" They may not be ({digits.p_equals(estimate.fit_pvalue)}): do not trust the estimate."
        )
    curves = estimate.likelihood()
    return plot_prevalence_likelihood(
        curves.prevalence,
        curves.naive,
        adjusted=curves.adjusted,
        value=estimate.value,
        low=estimate.low,
        high=estimate.high,
        confidence_level=estimate.confidence_level,
        actual=actual,
        references=references,
        caption=caption,
        ax=ax,
        title=f"Prevalence of “{text.brief(estimate.positive, 40)}”" if title is None else title,
    )
