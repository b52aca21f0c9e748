"""The figures of an evaluation, each drawn from the whole of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cmtrack.digits import p_text
from cmtrack.metrics.calibration import upper_bound
from cmtrack.metrics.spcc import spcc_ovo
from cmtrack.prevalence import ClassPrevalenceEstimate
from cmtrack.prevalence.results import ASSUMES, MISFIT

from . import _text as text
from .confusion import plot_confusion_chart, plot_confusion_matrix, plot_reduced_matrix
from .decisions import Point, plot_decision_curve, plot_gains, plot_risk_coverage
from .precision_recall import plot_precision_recall
from .prevalence import plot_prevalence_likelihood
from .reliability import ReliabilityPanel, plot_reliability, plot_reliability_panels
from .roc import interval_words, plot_roc
from .scores import plot_score_histogram
from .spcc import plot_spcc_matrix

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
    """The confusion matrix."""
    matrix = evaluation.confusion_matrix
    return plot_confusion_matrix(matrix.counts, matrix.labels, positive=evaluation.positive, title="Confusion matrix")


def confusion_chart(evaluation: Evaluation, run: str = "", step: str = "") -> Figure:
    """The confusion matrix for MLflow's charts, with a run, its step and one metric in its title."""
    name, metric = ("accuracy", "multiclass/accuracy") if evaluation.none is None else ("F1", "spans/f1_micro")
    value = evaluation.metrics.get(metric, math.nan)
    shown = "" if math.isnan(value) else f"{name} {value:.2f}"
    words = " · ".join(filter(None, (step, shown)))
    matrix = evaluation.confusion_matrix
    return plot_confusion_chart(matrix.counts, matrix.labels, positive=evaluation.positive, run=run, value=words)


def reduced_figure(evaluation: Evaluation, step: ReducedConfusionMatrix) -> Figure:
    """The reduced matrix of a grouping step."""
    title = f"Reduced confusion matrix “{_shown(step.name)}”"
    return plot_reduced_matrix(step.counts, step.mismatches, step.labels, positive=step.positive, title=title)


def _shown(name: object) -> str:
    return text.brief(name, 40)


def roc_figure(evaluation: Evaluation) -> Figure | None:
    """The ROC curve; None without scores of the positive group."""
    return None if evaluation.roc is None else draw_roc(evaluation.roc, title="ROC curve")


def draw_roc(roc: RocCurve, title: str | None = None, ax: Axes | None = None) -> Figure:
    """The ROC curve from the computed one."""
    return plot_roc(
        roc.fpr, roc.tpr, auc=roc.auc, ceiling=roc.ceiling, normalized_auc=roc.auc_normalized,
        auc_interval=roc.auc_interval, operating_point=roc.operating_point, positive=roc.positive,
        title=title, ax=ax,
    )  # fmt: skip


def precision_recall_figure(evaluation: Evaluation) -> Figure | None:
    """Precision over recall; None without scores of the positive group, or without positives."""
    curve = evaluation.precision_recall
    if curve is None or math.isnan(curve.average_precision):
        return None
    return draw_precision_recall(curve, title="Precision and recall")


def draw_precision_recall(curve: PrecisionRecallCurve, title: str | None = None, ax: Axes | None = None) -> Figure:
    """Precision over recall from the computed curve."""
    return plot_precision_recall(
        curve.recall, curve.precision, average_precision=curve.average_precision, prevalence=curve.prevalence,
        ceiling=curve.ceiling, interval=curve.average_precision_interval, operating_point=curve.operating_point,
        positive=curve.positive, title=title, ax=ax,
    )  # fmt: skip


def reliability_figure(evaluation: Evaluation, *, band: str | None = "consistency") -> Figure | None:
    """The reliability of the positive group's score; None without it, or with one group alone.

    Parameters
    ----------
    evaluation : Evaluation
    band : "consistency", "confidence" or None
        Where the curve of a calibrated score stays, where the true curve lies, or none. A band that the data do not
        allow is left out: both need whole weights and rows that do not belong together.

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
    if band not in ("consistency", "confidence", None):
        raise ValueError(f"band must be 'consistency', 'confidence' or None, got {band!r}")
    curve = evaluation.calibration
    if curve is None or "calibration/error" not in evaluation.metrics or not evaluation.has_section("calibration"):
        return None
    blocks = curve.table.blocks
    if not (blocks.positive.any() and blocks.negative.any()):
        return None
    ends = evaluation.intervals.get("calibration/error")
    return draw_reliability(curve, ends, evaluation.negative, title="Reliability", band=band)


def draw_reliability(
    curve: CalibrationCurve,
    interval: tuple[float, float] | None = None,
    negative: object = "the rest",
    title: str | None = None,
    ax: Axes | None = None,
    band: str | None = "consistency",
) -> Figure:
    """Reliability from the computed curve; with `ax` without the histogram of scores."""
    error = curve.table.error.value
    below = upper_bound(error, interval)
    if band == "consistency":
        curve = curve.drawn
    blocks, level, ends = curve.table.blocks, curve.table.level, None
    if band == "consistency" and curve.has_band:
        ends = curve.band(level)
    elif band == "confidence" and not curve.no_confidence_band:
        ends = curve.confidence_band(level)
    return plot_reliability(
        curve.scores, curve.recalibrated, blocks.positive, blocks.negative,
        band=ends, band_of=band or "consistency", level=level,
        error=f"{below} ({100 * level:g} %)" if below else text.number_text(error) + interval_words(interval),
        names=(negative, curve.positive), title=title, ax=ax,
    )  # fmt: skip


_MOST_PANELS = 12


def reliability_classes_figure(evaluation: Evaluation) -> Figure | None:
    """The reliability of the predicted class's probability and of each class's; None without them.

    Of more than twelve classes the largest are drawn. Classes without samples, or without others, are left out.
    """
    if not evaluation.has_class_calibration:
        return None
    judged = evaluation.class_calibration()
    there = [own for own in judged.classes if 0 < own.share < 1]
    drawn = sorted(there, key=lambda own: -own.support)[:_MOST_PANELS]
    panels = []
    confidence = evaluation.confidence_calibration if evaluation.has_section("confidence") else None
    if confidence is not None:
        p = evaluation.metrics["confidence/pvalue"]
        panels.append(_panel("predicted class", confidence, evaluation.intervals.get("confidence/error"), p_text(p), p))
    for own in (own for own in there if own in drawn):
        shown, ends = p_text(own.pvalue_holm, judged.least), (own.low, own.high)
        panels.append(_panel(own.label, evaluation.calibration_of(own.label), ends, shown, own.pvalue_holm))
    if not drawn:
        return None
    more = f" (the {len(drawn)} largest of {len(there)})" if len(there) > len(drawn) else ""
    return plot_reliability_panels(
        panels, level=judged.level, names=("other classes, or wrong", "the class, or right"),
        title=f"Reliability by class{more}",
    )  # fmt: skip


def _panel(
    name: object, curve: CalibrationCurve, ends: tuple[float, float] | None, shown: str, pvalue: float
) -> ReliabilityPanel:
    """A small figure of a curve, with its class's size, calibration error and p-value."""
    error, curve, level = curve.table.error.value, curve.drawn, curve.table.level
    blocks = curve.table.blocks
    p = "" if math.isnan(pvalue) else f", p {shown}"
    size, error_shown = float(blocks.positive.sum()), upper_bound(error, ends) or text.number_text(error)
    return ReliabilityPanel(
        name, curve.scores, curve.recalibrated, blocks.positive, blocks.negative,
        band=curve.band(level) if curve.has_band else None,
        note=f"n={text.count_text(size)}, error {error_shown}{p}", marked=pvalue <= 1 - level + 1e-12,
    )  # fmt: skip


def decision_curve_figure(evaluation: Evaluation) -> Figure | None:
    """Net benefit by threshold; None without probabilities of the positive group, or with one group alone."""
    curve = evaluation.gains
    if curve is None or evaluation.statistics.ranking_only or not 0 < curve.prevalence < 1:
        return None
    worth = evaluation.net_benefit()
    return plot_decision_curve(
        worth.thresholds, worth.value, worth.all, band=None if worth.reason else (worth.band_low, worth.band_high),
        level=worth.confidence_level, positive=worth.positive, title="Decision curve",
    )  # fmt: skip


def gains_figure(evaluation: Evaluation) -> Figure | None:
    """Gains; None without scores of the positive group, or with one group alone."""
    curve = evaluation.gains
    if curve is None or not 0 < curve.prevalence < 1:
        return None
    return plot_gains(
        curve.called, curve.gain, prevalence=curve.prevalence, ceiling=curve.ceiling,
        operating_point=curve.operating_point, positive=curve.positive, title="Gains",
    )  # fmt: skip


_REJECTED = (0.5, 0.2, 0.1)


def risk_coverage_figure(evaluation: Evaluation) -> Figure | None:
    """Risk by coverage; None without probabilities of the predictions."""
    curve = evaluation.risk_coverage if evaluation.has_section("confidence") else None
    if curve is None:
        return None
    points = {}
    for share in _REJECTED:
        found = evaluation.reject(share)
        if found.accepted < 1:
            points[found.accepted] = Point(found.accepted, found.risk, found.low, found.high, found.threshold)
    return plot_risk_coverage(
        curve.coverage, curve.risk, curve.size, aurc=curve.aurc, interval=curve.interval,
        points=list(points.values()), title="Risk by coverage",
    )  # fmt: skip


def spcc_figure(evaluation: Evaluation) -> Figure | None:
    """The one-vs-one sPCC matrix at equal shares; None without probabilities or with two classes."""
    if evaluation.spcc_matrix is None:
        return None
    moments, squares = evaluation.statistics.moments, evaluation.statistics.squares
    if moments is None:
        return None
    sizes = moments.n.astype(float)
    if squares is not None and squares.moments is not None:
        sizes = np.divide(sizes**2, squares.moments.n, out=np.zeros_like(sizes), where=squares.moments.n > 0)
    return plot_spcc_matrix(
        spcc_ovo(moments, equal_shares=True), evaluation.confusion_matrix.labels, samples=sizes, equal_shares=True,
        title="One-vs-one sPCC at equal shares",
    )  # fmt: skip


def score_figure(evaluation: Evaluation) -> Figure | None:
    """Scores of the positive group by actual class; None without them, and for decision values."""
    scores, estimate = evaluation.positive_scores, evaluation.prevalence
    if scores is None or evaluation.statistics.ranking_only:
        return None
    accepted, rejected, *negatives = scores.counts
    rows = {str(evaluation.negative): sum(negatives)}
    if rejected.any():
        rows[f"{evaluation.positive}, wrong class within it"] = rejected
        rows[f"{evaluation.positive}, right class within it"] = accepted
    else:
        rows[str(evaluation.positive)] = accepted
    identified = estimate is not None and estimate.positive is not None and math.isfinite(estimate.value)
    calibrated = estimate.posterior(scores.values) if estimate is not None and identified else None
    return plot_score_histogram(
        scores.values, list(rows.values()), list(rows), calibrated=calibrated,
        title=f"Scores for “{_shown(evaluation.positive)}” by actual class",
    )  # fmt: skip


def likelihood_figure(evaluation: Evaluation) -> Figure | None:
    """The likelihood of the calibrated prevalence; None where it is undefined, or known from the same labels."""
    estimate = evaluation.prevalence
    if estimate is None or math.isnan(estimate.value) or evaluation.calibrates_itself:
        return None
    metrics = evaluation.metrics
    if "prevalence/calibrated_bias" not in metrics:  # a target of its own: what is known is of other rows
        return prevalence_figure(estimate)
    references = {label: metrics[name] for name, label in _REFERENCES.items() if name in metrics}
    return prevalence_figure(estimate, actual=metrics["prevalence/actual"], references=references)


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
    caption = f"{caption} This {ASSUMES}.".lstrip()
    if estimate.fit_pvalue < MISFIT:
        caption += f" They are not (p = {estimate.fit_pvalue:.2g}): do not trust the estimate."
    curves = estimate.likelihood()
    return plot_prevalence_likelihood(
        curves.prevalence, curves.naive, adjusted=curves.adjusted, value=estimate.value, low=estimate.low,
        high=estimate.high, confidence_level=estimate.confidence_level, interval=estimate.interval,
        actual=actual, references=references, caption=caption, ax=ax,
        title=f"Prevalence of “{_shown(estimate.positive)}”" if title is None else title,
    )  # fmt: skip
