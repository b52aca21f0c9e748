"""Figures of an evaluation; every function takes the whole evaluation."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.special import expit, logit

from cmtrack import digits
from cmtrack.digits import p_text
from cmtrack.evaluation.rows import ASIDE, CLASSES, OTHER, STEP
from cmtrack.metrics.calibration import upper_bound
from cmtrack.metrics.names import encode_label
from cmtrack.metrics.precision_recall import precision_recall
from cmtrack.metrics.spcc import least_separated
from cmtrack.prevalence import ClassPrevalenceEstimate
from cmtrack.prevalence.fit import doubt
from cmtrack.prevalence.results import ASSUMES
from cmtrack.removed import RemovedFeature, reason

from . import _text as text
from ._heatmap import FEW, name_cells
from .classes import ClassCurve, plot_class_curves
from .confusion import (
    chart_words,
    plot_confusion_chart,
    plot_confusion_matrix,
    plot_reduced_matrix,
)
from .decisions import Point, plot_decision_curve, plot_gains, plot_risk_coverage
from .order import WHOLE_UP_TO, in_order, with_others
from .precision_recall import plot_precision_recall
from .prevalence import plot_at_prevalence, plot_prevalence
from .reliability import ReliabilityPanel, plot_reliability, plot_reliability_panels
from .roc import interval_words, plot_roc
from .scores import plot_score_histogram
from .spcc import PairSeparation, plot_spcc_pairs
from .style import FloatArray

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
    """Draw every figure that applies to an evaluation, as :meth:`BaseEvaluation.figures` does.

    Examples
    --------
    >>> from cmtrack import evaluate
    >>> from cmtrack.plots import evaluation_figures
    >>> figures = evaluation_figures(evaluate([0, 1, 2, 1], [0, 1, 2, 2]))
    >>> "confusion_matrix" in figures
    True
    """
    return evaluation.figures(on_error=on_error)


def confusion_matrix_figure(evaluation: Evaluation) -> Figure:
    """Draw the confusion matrix; with more than 30 classes, draw only the 20 most confused."""
    matrix = evaluation.confusion_matrix
    positive = evaluation.positive
    if len(matrix.labels) <= WHOLE_UP_TO:
        counts, labels = in_order(matrix.counts, matrix.labels)
        figure = plot_confusion_matrix(counts, labels, positive=positive, title="Confusion matrix")
        return with_named_cells(figure, 0, evaluation, "", labels)
    selection = with_others(matrix.counts, matrix.labels, positive)
    figure = plot_confusion_matrix(
        selection.counts,
        selection.labels,
        positive=positive,
        is_pooled=True,
        caption=selection.caption,
        title="Confusion matrix of the most confused classes",
    )
    return with_named_cells(figure, 0, evaluation, "", selection.labels)


def with_named_cells(
    figure: Figure, panel: int, evaluation: Evaluation, step: str, shown: Sequence[object]
) -> Figure:
    """Name the cells of a panel's matrix, so that a page can link them to their rows of data.

    A name contains the positions of classes, or the positions of the groups of a step.
    """
    matrix = CLASSES
    labels = evaluation.labels
    if step:
        place = [reduced.name for reduced in evaluation.reduced].index(step)
        matrix = f"{STEP}{place}"
        labels = evaluation.reduced[place].labels
    codes: list[Any] = [labels.index(label) if label in labels else OTHER for label in shown]
    # The second and third image of a reduced matrix are the column and the row of mismatches.
    cells = [(codes, codes), (codes, [ASIDE]), ([ASIDE], codes)]
    for image, (rows, columns) in zip(figure.axes[panel].images, cells, strict=False):
        name_cells(image, matrix, rows, columns)
    return figure


def confusion_chart(evaluation: Evaluation, run: str = "", step: str = "") -> Figure:
    """Draw the confusion matrix for MLflow's charts; the title names the run and one metric.

    If there is a positive group, the matrix has the positive and the negative group.
    """
    groups = [reduced for reduced in evaluation.reduced if reduced.positive is not None]
    if groups:
        reduced = groups[-1]
        mcc = evaluation.metrics["binary/matthews_corrcoef"]
        return plot_confusion_chart(
            reduced.counts,
            reduced.labels,
            mismatches=reduced.mismatches,
            positive=reduced.positive,
            run=run,
            value=chart_words(step, "MCC", mcc),
        )
    name = "accuracy"
    metric = "multiclass/accuracy"
    if evaluation.none is not None:
        name = "F1"
        metric = "spans/f1_micro"
    words = chart_words(step, name, evaluation.metrics.get(metric, math.nan))
    matrix = evaluation.confusion_matrix
    counts, labels = in_order(matrix.counts, matrix.labels)
    return plot_confusion_chart(counts, labels, positive=evaluation.positive, run=run, value=words)


def reduced_figure(evaluation: Evaluation, step: ReducedConfusionMatrix) -> Figure:
    """Draw the reduced matrix of a grouping step."""
    title = f"Reduced confusion matrix “{text.brief(step.name, 40)}”"
    figure = plot_reduced_matrix(
        step.counts, step.mismatches, step.labels, positive=step.positive, title=title
    )
    return with_named_cells(figure, 0, evaluation, step.name, step.labels)


def roc_figure(evaluation: Evaluation) -> Figure | None:
    """Draw the ROC curve; return None if the positive group has no scores."""
    if evaluation.roc is None:
        return None
    return draw_roc(evaluation.roc, title="ROC curve")


def draw_roc(roc: RocCurve, title: str | None = None, ax: Axes | None = None) -> Figure:
    """Draw a ROC curve that is already computed."""
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
    """Draw the precision-recall curve; return None if positives or their scores are missing."""
    curve = evaluation.precision_recall
    if curve is None or math.isnan(curve.average_precision):
        return None
    return draw_precision_recall(curve, title="Precision and recall")


def draw_precision_recall(
    curve: PrecisionRecallCurve, title: str | None = None, ax: Axes | None = None
) -> Figure:
    """Draw a precision-recall curve that is already computed."""
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
    """Draw the reliability curve of the positive group's score; return None if it is undefined.

    Parameters
    ----------
    evaluation : Evaluation
    band : "consistency" or None
        The band that contains the curve if the score is calibrated; None to draw no band. No band
        is drawn if rows have sampling weights or clusters.

    Raises
    ------
    ValueError
        If `band` is neither "consistency" nor None.

    Examples
    --------
    >>> import numpy as np
    >>> from cmtrack import evaluate
    >>> from cmtrack.plots import reliability_figure
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.random(500)
    >>> evaluation = evaluate(rng.random(500) < scores, y_prob=scores)
    >>> reliability_figure(evaluation).savefig("reliability.png")
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
    interval = evaluation.intervals.get("calibration/error")
    return draw_reliability(
        curve, interval, evaluation.negative, title="Reliability", with_band=band is not None
    )


def draw_reliability(
    curve: CalibrationCurve,
    interval: tuple[float, float] | None = None,
    negative: object = "the rest",
    title: str | None = None,
    ax: Axes | None = None,
    with_band: bool = True,
) -> Figure:
    """Draw a computed reliability curve; also draw a histogram of scores unless `ax` is given."""
    error = curve.table.error.value
    level = curve.table.level
    error_words = digits.number(error) + interval_words(interval)
    bound = upper_bound(error, interval)
    if bound:
        error_words = f"{bound} ({digits.level(level)})"
    curve = curve.drawn
    band = None
    if with_band and not curve.no_band:
        band = curve.band(level)
    blocks = curve.table.blocks
    return plot_reliability(
        curve.scores,
        curve.recalibrated,
        blocks.positive,
        blocks.negative,
        band=band,
        level=level,
        error=error_words,
        names=(negative, curve.positive),
        title=title,
        ax=ax,
    )


_MOST_CURVES = 8


def class_curve(
    evaluation: Evaluation, label: object, name: str, run: int | None = None
) -> ClassCurve:
    """Return the curves of a class's probability, with all other classes as negatives."""
    curve = precision_recall(evaluation.calibration_of(label).table)
    return ClassCurve(name, curve.recall, curve.precision, curve.called, curve.prevalence, run)


def hardest_classes(evaluation: Evaluation, most: int) -> list[tuple[object, str]]:
    """Return the classes with the smallest ROC areas, each with the name of its area's metric.

    The class with the smallest area is the first.
    """
    names = {label: f"class/{encode_label(label)}/roc_auc" for label in evaluation.labels}
    areas = {label: evaluation.metrics.get(name, math.nan) for label, name in names.items()}
    defined = [label for label, area in areas.items() if math.isfinite(area)]
    hardest = sorted(defined, key=areas.__getitem__)[:most]
    return [(label, names[label]) for label in hardest]


def class_curves_figure(evaluation: Evaluation) -> Figure | None:
    """Draw ROC, precision-recall and gains curves by class; return None without probabilities."""
    if not evaluation.has_class_calibration:
        return None
    hardest = hardest_classes(evaluation, _MOST_CURVES)
    if not hardest:
        return None
    names = text.short_names(evaluation.labels, 30)
    curves = []
    for label, metric in hardest:
        name = names[evaluation.labels.index(label)]
        area = digits.number(evaluation.metrics[metric])
        interval = interval_words(evaluation.intervals.get(metric))
        curves.append(class_curve(evaluation, label, f"{name}: AUC {area}{interval}"))
    title = "Each class against all others"
    if len(hardest) < len(names):
        title += f" (the {len(hardest)} of {len(names)} with the lowest AUC)"
    return plot_class_curves([("", curves)], title=title)


_MOST_PANELS = 7
_ROUNDING = 1e-12  # because of rounding, 1 - 0.95 is greater than 0.05


def reliability_classes_figure(evaluation: Evaluation) -> Figure | None:
    """Draw reliability curves of the predicted class's probability and each class's probability.

    If there are more than seven classes, only the largest seven are drawn. A class is not drawn
    if no row or every row belongs to it.
    """
    if not evaluation.has_class_calibration:
        return None
    calibration = evaluation.class_calibration()
    candidates = [row for row in calibration.classes if 0 < row.share < 1]
    largest = sorted(candidates, key=lambda row: -row.support)[:_MOST_PANELS]
    if not largest:
        return None
    panels = []
    confidence = evaluation.confidence_calibration if evaluation.has_section("confidence") else None
    if confidence is not None:
        interval = evaluation.intervals.get("confidence/error")
        pvalue = evaluation.metrics["confidence/pvalue"]
        panels.append(_panel("predicted class", confidence, interval, p_text(pvalue), pvalue))
    for row in candidates:
        if row in largest:
            curve = evaluation.calibration_of(row.label)
            words = p_text(row.pvalue_holm, calibration.least)
            panels.append(_panel(row.label, curve, (row.low, row.high), words, row.pvalue_holm))
    title = "Reliability by class"
    if len(candidates) > len(largest):
        title += f" (the {len(largest)} largest of {len(candidates)})"
    return plot_reliability_panels(
        panels,
        level=calibration.level,
        names=("other classes, or errors", "the class, or correct"),
        title=title,
    )


def _panel(
    name: object,
    curve: CalibrationCurve,
    interval: tuple[float, float] | None,
    pvalue_words: str,
    pvalue: float,
) -> ReliabilityPanel:
    """Return the panel of a curve; its note gives the class size, calibration error and p-value."""
    error = curve.table.error.value
    level = curve.table.level
    curve = curve.drawn
    blocks = curve.table.blocks
    size = digits.short_count(float(blocks.positive.sum()))
    note = f"n={size}, error {upper_bound(error, interval) or digits.number(error)}"
    if not math.isnan(pvalue):
        note += f", p {pvalue_words}"
    return ReliabilityPanel(
        name,
        curve.scores,
        curve.recalibrated,
        blocks.positive,
        blocks.negative,
        band=None if curve.no_band else curve.band(level),
        note=note,
        marked=pvalue <= 1 - level + _ROUNDING,
    )


def decision_curve_figure(evaluation: Evaluation) -> Figure | None:
    """Draw net benefit by threshold; return None without probabilities or a positive group."""
    curve = evaluation.gains
    if curve is None or evaluation.statistics.ranking_only or not 0 < curve.prevalence < 1:
        return None
    benefit = evaluation.net_benefit()
    return plot_decision_curve(
        benefit.thresholds,
        benefit.value,
        benefit.all,
        band=None if benefit.reason else (benefit.band_low, benefit.band_high),
        level=benefit.confidence_level,
        positive=benefit.positive,
        title="Decision curve",
    )


def gains_figure(evaluation: Evaluation) -> Figure | None:
    """Draw the gains curve; return None without a positive group or without its scores."""
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
    """Draw risk by coverage; return None if the probabilities of predictions are missing."""
    curve = evaluation.risk_coverage if evaluation.has_section("confidence") else None
    if curve is None:
        return None
    # Rows with equal confidence are rejected together, so two shares can lead to the same point.
    points = {}
    for share in _REJECTED:
        answers = evaluation.reject(share)
        if answers.accepted < 1:
            points[answers.accepted] = Point(
                answers.accepted, answers.risk, answers.low, answers.high, answers.threshold
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


_PAIRS = 10


def spcc_figure(evaluation: Evaluation) -> Figure | None:
    """Draw the one-vs-one sPCC at equal shares of the closest pairs of classes.

    Returns None if probabilities are missing, if there are only two classes, or if no two classes
    have enough rows.
    """
    scores = evaluation._class_scores
    if scores is None:
        return None
    labels = evaluation.confusion_matrix.labels
    level = evaluation.confidence_level
    has_errors = not evaluation.statistics.has_sampling_weights and evaluation.n_clusters is None
    least = least_separated(scores, FEW, _PAIRS, level if has_errors else None)
    if not least.n_pairs:
        return None
    columns = zip(least.first, least.second, least.value, least.low, least.high, strict=True)
    return plot_spcc_pairs(
        [PairSeparation(labels[c], labels[d], *numbers) for c, d, *numbers in columns],
        names=labels,
        level=level,
        n_pairs=least.n_pairs,
        title="The pairs of classes with the lowest sPCC",
    )


def score_figure(evaluation: Evaluation) -> Figure | None:
    """Draw the positive group's scores by actual class; return None without probabilities."""
    scores = evaluation.positive_scores
    if scores is None or evaluation.statistics.ranking_only:
        return None
    # hits, mismatches (wrong class within the positive group), and negatives
    hits, mismatches, *negatives = scores.counts
    rows = {str(evaluation.negative): sum(negatives)}
    if mismatches.any():
        rows[f"{evaluation.positive}, mismatch within it"] = mismatches
        rows[f"{evaluation.positive}, correct class within it"] = hits
    else:
        rows[str(evaluation.positive)] = hits
    return plot_score_histogram(
        scores.values,
        list(rows.values()),
        list(rows),
        with_counts=False,
        title=f"Scores for “{text.brief(evaluation.positive, 40)}” by actual class",
    )


def likelihood_figure(evaluation: Evaluation) -> Figure | None:
    """Draw the estimated prevalence; return None if it is undefined.

    Also returns None if the test set calibrates the estimate, because the labels of the test set
    already show the prevalence.
    """
    estimate = evaluation.prevalence
    if estimate is None or math.isnan(estimate.value) or evaluation.calibrates_itself:
        return None
    metrics = evaluation.metrics
    # If there is a separate target, the metrics and the estimate refer to different rows.
    if "prevalence/calibrated_bias" not in metrics:
        return prevalence_figure(estimate)
    references = {label: metrics[name] for name, label in _REFERENCES.items() if name in metrics}
    return prevalence_figure(estimate, actual=metrics["prevalence/actual"], references=references)


SHARES = 25
"""Shares of positives between which a metric is drawn."""


def at_prevalence_figure(
    evaluation: Evaluation, metric: str | None = None, *, target: float = math.nan
) -> Figure | None:
    """Draw a metric against the share of positives; return None unless there are two groups."""
    step = evaluation.scored
    if step is None or step.positive is None or evaluation.none is not None:
        return None
    counts = evaluation.confusion_matrix.counts.sum(axis=1)
    here = float(counts[step.in_positive].sum() / counts.sum())
    if not 0 < here < 1:
        return None
    name = metric or _default_metric(evaluation)
    shares = _shares_around([share for share in (here, target) if 0 < share < 1])
    others = [evaluation.at(float(share)) for share in shares]
    if any(name not in other.metrics for other in others):
        return None
    entry = evaluation.catalog.lookup(name)
    unknown = (math.nan, math.nan)
    return plot_at_prevalence(
        shares,
        [other.metrics[name] for other in others],
        band=np.transpose([other.intervals.get(name, unknown) for other in others]),
        constant=[other.constant(name) for other in others],
        lower_is_better=entry.better == "lower",
        here=here,
        target=target,
        level=evaluation.confidence_level,
        metric=entry.heading(brief=True),
        positive=evaluation.positive,
        is_share=entry.interval == "wilson",
        title="At other shares of positives",
    )


def _default_metric(evaluation: Evaluation) -> str:
    """Return the name of the accuracy in the last step, or of the classes without a grouping."""
    steps = list(evaluation._views.composed)
    if steps:
        return f"reduced/{steps[-1]}/accuracy"
    return "multiclass/accuracy"


def _shares_around(marks: Sequence[float]) -> FloatArray:
    """Return ascending shares, evenly spaced in log-odds, that extend beyond the given shares."""
    lowest = min([0.01, *(share / 2 for share in marks)])
    highest = max([0.99, *((1 + share) / 2 for share in marks)])
    low, high = logit([lowest, highest])
    return np.union1d(expit(np.linspace(low, high, SHARES)), marks)


def prevalence_figure(
    estimate: PrevalenceEstimate,
    *,
    actual: float | None = None,
    references: Mapping[str, float] | None = None,
    caption: str = "",
    title: str | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw an estimated prevalence and its interval.

    Parameters
    ----------
    estimate : PrevalenceEstimate
        The result of :func:`cmtrack.estimate_prevalence`.
    actual : float, optional
        The known share of positives.
    references : mapping of str to float, optional
        Estimates to compare, by name.
    caption : str, default ""
        A sentence below the figure. The caption is followed by a sentence about the assumption of
        the estimate.
    title : str, optional
        Title of the figure. The default title contains the name of the positive class.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into. By default, axes are created in a new figure.

    Raises
    ------
    TypeError
        If the estimate is for more than two classes.

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
            "the prevalence is drawn for two classes, got the classes "
            f"{list(estimate.classes)}; to_frame() has the share of every class"
        )
    remark = f"This {ASSUMES}."
    if math.isnan(estimate.value):
        remark = f"Not estimated: {estimate.why}."
    caption = f"{caption} {remark}".lstrip()
    if doubt(estimate.fit_pvalue):
        pvalue = digits.p_equals(estimate.fit_pvalue)
        caption += f" They may not be ({pvalue}), so do not trust the estimate."
    # Nobody needs to label rows whose labels are known.
    caption = f"{caption} {estimate.other_share(advise=actual is None)}".rstrip()
    if title is None:
        title = f"Prevalence of “{text.brief(estimate.positive, 40)}”"
    return plot_prevalence(
        estimate.value,
        estimate.low,
        estimate.high,
        confidence_level=estimate.confidence_level,
        actual=actual,
        references=references,
        caption=caption,
        ax=ax,
        title=title,
    )
