"""Whether the probabilities of the positive group are right, in words: one judgement for reports and reviews.

The test of calibration decides whether there is a fault; slope, bias and the reliability curve say of what kind, and
where. Each is held to the evaluation's confidence level. A fault that no figure would show is called slight.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit

from cmtrack.evaluation import Evaluation
from cmtrack.metrics.calibration import CalibrationCurve
from cmtrack.report import formatting as fmt
from cmtrack.statistics.inputs import FloatArray

FEW = 100
"""Rows, below which the test sees gross faults only."""
FEW_OF_A_GROUP = 20
_LEAST = 20  # rows of an example
_SLIGHT = 0.02  # of the labels' standard deviation


class Judgement(NamedTuple):
    """A word for a table, and a sentence."""

    word: str
    sentence: str


def judgement(evaluation: Evaluation) -> Judgement | None:
    """Judge the probabilities of the positive group.

    Returns
    -------
    Judgement or None
        Where the section ``calibration/`` is not there, None. The word is "wrong where certain", where a score of 0
        or 1 failed, "over-confident", "under-confident", "the wrong way round", "too high" or "too low", or several of
        them; "not right", "no fault seen", "unclear", where the test sees no fault and an interval does, "not tested",
        or "all came true".
    """
    curve, metrics = evaluation.calibration, evaluation.metrics
    if curve is None or "calibration/error" not in metrics or not evaluation.has_section("calibration"):
        return None
    positive, p = fmt.named(evaluation.positive), metrics["calibration/pvalue"]
    if math.isnan(p):
        return _not_tested(evaluation, curve, positive)
    error = fmt.with_interval(metrics["calibration/error"], evaluation.intervals.get("calibration/error"))
    found = _faults(evaluation, curve)
    if p > 1 - evaluation.confidence_level:
        return _no_fault(evaluation, curve, found, f"calibration {fmt.p_equals(p)}", error)
    slightly = "slightly " if _is_slight(evaluation) and not _failed(curve) else ""
    told = fmt.listed(found) or "not right"
    example = _failures(evaluation, curve) or _example(curve, found, positive)
    text = f"The probabilities of {positive} are {slightly}{told}{f': {example}' if example else ''}"
    word = slightly + (", ".join(found) or "not right")
    return Judgement(word, f"{text} (calibration {fmt.p_equals(p)}; calibration error {error}).")


def average(evaluation: Evaluation) -> str:
    """A sentence on the mean of the positive group's probabilities beside its share; empty without them."""
    metrics, reach = evaluation.metrics, evaluation.intervals.get("prevalence/bias")
    bias = metrics.get("prevalence/bias", math.nan)
    if math.isnan(bias) or evaluation.positive is None:
        return ""
    given, share = shares(metrics["prevalence/expected"], metrics["prevalence/actual"], least=1)
    text = f"On average the probabilities give {fmt.named(evaluation.positive)} {given}, and {share} of the samples are"
    if reach is None or reach[0] <= 0 <= reach[1]:
        within = ", within chance" if reach is not None and reach[0] < reach[1] else ""
        return f"{text}: a difference of {fmt.points(bias, reach)}{within}."
    way = "too high" if bias > 0 else "too low"
    return f"{text}: {fmt.points(abs(bias), _turned(reach, bias))} {way}, more than chance explains."


def _turned(ends: tuple[float, float], value: float) -> tuple[float, float]:
    return ends if value > 0 else (-ends[1], -ends[0])


def _not_tested(evaluation: Evaluation, curve: CalibrationCurve, positive: str) -> Judgement:
    metrics, intervals = evaluation.metrics, evaluation.intervals
    if not curve.table.no_test and evaluation.n_clusters is None:  # the test has nothing to draw
        text = f"Every probability of {positive} is 0 or 100 %, and each came true: there is nothing to test."
        return Judgement("all came true", text)
    text = f"There is no test of the probabilities of {positive} ({evaluation.undefined['calibration/pvalue']})."
    known = fmt.with_interval(metrics["calibration/error"], intervals.get("calibration/error"))
    text += f" The calibration error is {known}"
    if math.isfinite(metrics["calibration/slope"]):
        text += f", the slope {_slope(evaluation)}"
    return Judgement("not tested", f"{text}.")


def _slope(evaluation: Evaluation) -> str:
    name = "calibration/slope"
    return f"{fmt.with_interval(evaluation.metrics[name], evaluation.intervals.get(name))} (right: 1)"


def _no_fault(evaluation: Evaluation, curve: CalibrationCurve, found: list[str], p: str, error: str) -> Judgement:
    positive, rows = fmt.named(evaluation.positive), evaluation.statistics.digest.rows
    low, high = evaluation.intervals.get("calibration/error", (0.0, 0.0))
    if found or (0 < low < high and rows >= FEW):
        look = "the interval of the error excludes 0"
        if found:
            of_mean = found[0] in ("too high", "too low")
            look = f"the mean is {found[0]}" if of_mean else f"the slope is {_slope(evaluation)}"
        text = f"It is unclear whether the probabilities of {positive} are right: the test sees no fault, but {look}"
        return Judgement("unclear", f"{text} ({p}; calibration error {error}).")
    text = f"No fault is seen in the probabilities of {positive} ({p}; calibration error {error})"
    blocks = curve.table.blocks
    least = min(float(blocks.positive.sum()), float(blocks.negative.sum()))
    if len(curve.scores) == 1:
        text += f"; every sample is given the same, {fmt.percent(float(curve.scores[0]))}"
    if rows < FEW:
        text += f"; of {fmt.counted(rows, 'sample')} the test sees gross faults only"
    elif least < FEW_OF_A_GROUP:
        scarce = evaluation.positive if blocks.positive.sum() == least else evaluation.negative
        samples = fmt.counted(least, "sample") if least else "no sample"
        text += f"; with {samples} of {fmt.named(scarce)} the test sees gross faults only"
    return Judgement("no fault seen", f"{text}.")


def _faults(evaluation: Evaluation, curve: CalibrationCurve) -> list[str]:
    """The kinds of fault that an interval shows, spread before level."""
    slope, bias = (evaluation.intervals.get(name) for name in ("calibration/slope", "prevalence/bias"))
    found = ["wrong where certain"] if _failed(curve) else []
    if slope is not None and slope[1] < 1:
        found.append("the wrong way round" if slope[1] < 0 else "over-confident")
    elif _parted(curve) or (slope is not None and slope[0] > 1):
        found.append("under-confident")
    if bias is not None and bias[0] > 0:
        found.append("too high")
    elif bias is not None and bias[1] < 0:
        found.append("too low")
    return found


def _is_slight(evaluation: Evaluation) -> bool:
    ends, share = evaluation.intervals.get("calibration/error"), evaluation.metrics.get("prevalence/actual", math.nan)
    return ends is not None and ends[1] < _SLIGHT * math.sqrt(max(share * (1 - share), 0.0))


def _parted(curve: CalibrationCurve) -> bool:
    """True where some score parts the groups, so that a slope without bound fits best."""
    observed = curve.recalibrated
    return bool(np.isin(observed, (0, 1)).all() and observed[0] < observed[-1])


def _certain(curve: CalibrationCurve) -> list[tuple[float, float, float]]:
    """Of the scores 1 and 0: (score, samples with it, those of them that it fails)."""
    blocks = curve.table.blocks
    lost = {1.0: blocks.negative, 0.0: blocks.positive}
    return [(s, float(blocks.total[at].sum()), float(lost[s][at].sum())) for s in lost for at in [blocks.scores == s]]


def _failed(curve: CalibrationCurve) -> bool:
    return any(wrong for _, _, wrong in _certain(curve))


def _failures(evaluation: Evaluation, curve: CalibrationCurve) -> str:
    """The samples that were given 0 or 100 % and came out otherwise; empty where there are none."""
    said = []
    for score, samples, wrong in _certain(curve):
        if wrong:
            actual = evaluation.negative if score else evaluation.positive
            be = "is" if wrong == 1 else "are"
            said.append(
                f"of {fmt.counted(samples, 'sample')} given {100 * score:.0f} %, {fmt.count(wrong)} {be} "
                f"{fmt.named(actual)}"
            )
    return "; ".join(said)


def _example(curve: CalibrationCurve, found: list[str], positive: str) -> str:
    """The reliability curve where the fault is largest, in words."""
    place = largest_fault(curve, found)
    if place is None:
        return ""
    given, observed = shares(*place)
    return f"of samples given about {given}, about {observed} are {positive}"


def largest_fault(curve: CalibrationCurve, found: list[str]) -> tuple[float, float] | None:
    """The score at which the reliability curve is farthest from it, and the curve's height there.

    Both are means over a tenth of the rows, or over more where a tenth is fewer than 20.

    Parameters
    ----------
    curve : CalibrationCurve
    found : list of str
        The kinds of fault: the curve must be off to their side there.
    """
    total, fit = curve.table.blocks.total, curve.table.fit
    bins = int(np.clip(total.sum() // _LEAST, 1, 10))
    place = np.minimum((bins * (np.cumsum(total) - total / 2) / total.sum() + 1e-9).astype(int), bins - 1)

    def mean(values: FloatArray) -> FloatArray:
        return np.asarray(np.bincount(place, total * values)[filled] / size[filled])

    size = np.bincount(place, total)
    filled = size > 0
    given, observed = mean(curve.scores), mean(curve.recalibrated)
    off = given - observed
    if fit is not None and {"over-confident", "under-confident", "the wrong way round"} & {*found}:
        with np.errstate(divide="ignore"):
            side = given - expit(fit.intercept + fit.slope * logit(given))
    else:
        side = np.select(["too high" in found, "too low" in found], [1.0, -1.0], np.sign(off))
    away = np.where(off * side > 0, np.abs(off), 0.0)
    most = int(away.argmax())
    return (float(given[most]), float(observed[most])) if away[most] > 0 else None


def shares(given: float, observed: float, least: int = 0) -> tuple[str, str]:
    """Two shares in whole per cent, with more digits where they would look equal, or an uncertain one 0 or 100 %."""
    for places in range(least, 4):
        shown = [f"{100 * value:.{places}f}" for value in (given, observed)]
        sure = all(
            0 < float(text) < 100 or value in (0, 1) for text, value in zip(shown, (given, observed), strict=True)
        )
        if sure and (shown[0] != shown[1] or math.isclose(given, observed, abs_tol=1e-12)):
            break
    return f"{shown[0]} %", f"{shown[1]} %"
