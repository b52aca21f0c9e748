"""A judgement of probabilities in words: one for reports, reviews and their figures.

Judged are the probabilities of the positive group, and the confidence of the predictions: the probability that each is
right. A fault is claimed where the test of calibration finds it, and either the reliability curve leaves its band or
both parts of the test find it; where there is no band the test alone counts. Otherwise there are signs of one. Slope,
mean and the curve say of what kind it is, and where: one word, and one example. Each is held to the evaluation's
confidence level. A fault whose size lies below a margin of practical importance is real, but too small to matter.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit

from cmtrack.digits import fixed, significant
from cmtrack.evaluation import Evaluation
from cmtrack.evaluation.rows import certainty, right_rows
from cmtrack.metrics.calibration import FEW_OF_A_GROUP, CalibrationCurve, upper_bound
from cmtrack.metrics.intervals import Interval, normal_quantile
from cmtrack.report import formatting as fmt
from cmtrack.statistics.design import cluster_degrees
from cmtrack.statistics.inputs import FloatArray
from cmtrack.statistics.predictions import Predictions

FEW = 100
"""Rows, below which the test sees gross faults only."""
MARGIN = 0.01
"""Calibration error, or difference of means, below which a fault is too small to matter.

Where less than a tenth of the samples have the rarer outcome it is a tenth of their share.
"""
CERTAIN, NONE, SIGNS = (
    "some 0 % or 100 % scores are wrong",
    "no miscalibration found",
    "signs of miscalibration",
)
_LEAST = 20  # rows of an example


class Judgement(NamedTuple):
    """A word for a table, and a sentence."""

    word: str
    sentence: str


class _Judged(NamedTuple):
    """Probabilities, their name, and the kinds of fault that an interval shows, each with its reason."""

    section: str
    curve: CalibrationCurve
    subject: str
    noun: str
    outcomes: tuple[str, str]  # "13 are …": what did not come true, and what did
    faults: dict[str, str]
    # the side of an example: 1 above the curve, -1 below it, 0 any, None that of Cox's fit
    towards: int | None
    mean_ends: Interval | None  # of the mean score minus the observed share


def judgement(evaluation: Evaluation, margin: float = MARGIN) -> Judgement | None:
    """Judge the probabilities of the positive group.

    ``margin``: as :data:`MARGIN`.

    The result: where the section ``calibration/`` is not there, None. The word is "over-confident", "under-confident",
    "the wrong way round", "too high" or "too low", else "miscalibrated", each with "negligibly" where it is below the
    margin; :data:`CERTAIN`, where a score of 0 or 1 failed; :data:`SIGNS`; "unclear", where the
    test finds nothing and the curve or an interval does; :data:`NONE`; "not tested", or "all came true".
    """
    curve = curve_of(evaluation, "calibration")
    if curve is None:
        return None
    faults, slope = {}, evaluation.intervals.get("calibration/slope")
    if slope is not None and not slope[0] <= 1 <= slope[1]:
        word = (
            "under-confident"
            if slope[0] > 1
            else "over-confident"
            if slope[1] > 0
            else "the wrong way round"
        )
        faults[word] = f"the slope is {_slope(evaluation)}"
    elif _parted(curve) and evaluation.metrics["calibration/error"] >= _margin(curve, margin):
        faults["under-confident"] = "the scores part the groups"
    mean_ends = evaluation.intervals.get("prevalence/bias") or _mean_ends(evaluation, curve)
    side = _side(mean_ends, curve)
    towards = None if faults and curve.table.fit is not None else side
    if side:
        faults[_level(side)] = f"the mean is {_level(side)}"
    names = fmt.named(evaluation.negative), fmt.named(evaluation.positive)
    subject = f"probabilities of {names[1]}"
    judged = _Judged("calibration", curve, subject, "sample", names, faults, towards, mean_ends)
    return _judge(evaluation, judged, margin)


def confidence(evaluation: Evaluation, margin: float = MARGIN) -> Judgement | None:
    """Judge the confidence of the predictions: the probability that each is right.

    The result: as :func:`judgement`, of the section ``confidence/``: over-confident are predictions that are right less
    often than they say.
    """
    curve = curve_of(evaluation, "confidence")
    if curve is None:
        return None
    mean_ends = _mean_ends(evaluation, curve)
    side = _side(mean_ends, curve)
    word = {1: "over-confident", -1: "under-confident"}.get(side)
    faults = {word: f"on average they are {word}"} if word else {}
    subject, outcomes = "probabilities of the predicted classes", ("wrong", "right")
    judged = _Judged("confidence", curve, subject, "prediction", outcomes, faults, side, mean_ends)
    return _judge(evaluation, judged, margin)


JUDGES: dict[str, Callable[[Evaluation], Judgement | None]] = {
    "calibration": judgement,
    "confidence": confidence,
}
"""The judgement of each section."""


def average(evaluation: Evaluation, margin: float = MARGIN) -> str:
    """A sentence on the mean probability of the positive group against its share; empty without them."""
    metrics, reach = evaluation.metrics, evaluation.intervals.get("prevalence/bias")
    bias, curve = metrics.get("prevalence/bias", math.nan), evaluation.calibration
    if math.isnan(bias) or evaluation.positive is None or curve is None:
        return ""
    given, share = shares(metrics["prevalence/expected"], metrics["prevalence/actual"], least=1)
    text = f"On average the probabilities give {fmt.named(evaluation.positive)} {given}, and {share} of the samples are"
    side = _side(reach, curve)
    if reach is None or not side:
        if reach is not None and not reach[0] <= 0 <= reach[1]:
            by_chance = "labels drawn with these probabilities differ as much"
            return f"{text}: a difference of {fmt.points(bias, None)}, within chance: {by_chance}."
        within = ", within chance" if reach is not None and reach[0] < reach[1] else ""
        return f"{text}: a difference of {fmt.points(bias, reach)}{within}."
    turned = reach if bias > 0 else (-reach[1], -reach[0])
    margin = _margin(curve, margin)
    small = (
        f", but less than {_points(margin)}: too little to matter"
        if max(map(abs, reach)) <= margin
        else ""
    )
    return (
        f"{text}: {fmt.points(abs(bias), turned)} {_level(side)}, more than chance explains{small}."
    )


def curve_of(evaluation: Evaluation, section: str) -> CalibrationCurve | None:
    """The reliability curve of a section that is there."""
    if f"{section}/error" not in evaluation.metrics or not evaluation.has_section(section):
        return None
    return evaluation.calibration if section == "calibration" else evaluation.confidence_calibration


# -- the kinds of fault -----------------------------------------------------------------------------------------


def _side(ends: Interval | None, curve: CalibrationCurve) -> int:
    """1 or -1 for a mean score that is too high or too low, else 0.

    Its interval leaves out 0, and labels that are drawn with the scores seldom differ as much: where few come true, or
    none, what is seen has less spread than that.
    """
    blocks, level = curve.table.blocks, curve.table.level
    s, squares = blocks.scores, blocks.squares_positive + blocks.squares_negative
    off = abs(float(blocks.total @ s - blocks.positive.sum()))
    if ends is None or off <= normal_quantile(level) * math.sqrt(float(squares @ (s * (1 - s)))):
        return 0
    return int(ends[0] > 0) - int(ends[1] < 0)


def _level(side: int) -> str:
    return "too high" if side > 0 else "too low"


def _mean_ends(evaluation: Evaluation, curve: CalibrationCurve) -> Interval | None:
    """The interval of the mean score minus the observed share; None for clustered rows that are not there.

    Of clustered rows that of the confidence: the mean of the probabilities of the positive group has its own.
    """
    if evaluation.n_clusters is not None:
        return _mean_ends_of_clusters(evaluation)
    blocks = curve.table.blocks
    n, s = float(blocks.total.sum()), blocks.scores
    mean = float(blocks.total @ s - blocks.positive.sum()) / n
    square = float(
        blocks.squares_positive @ (s - 1 - mean) ** 2 + blocks.squares_negative @ (s - mean) ** 2
    )
    reach = normal_quantile(evaluation.confidence_level) * math.sqrt(square) / n
    return mean - reach, mean + reach


def _mean_ends_of_clusters(evaluation: Evaluation) -> Interval | None:
    """The interval of the mean confidence minus the share of right predictions, by sums over the clusters."""
    rows = evaluation.rows
    if not (isinstance(rows, Predictions) and rows.design.has_clusters):
        return None
    confidences = certainty(rows, np.arange(len(rows)))
    if confidences is None:
        return None
    off = confidences - right_rows(rows, None)
    degrees = cluster_degrees(rows.design.effective_clusters(off), evaluation.n_clusters)
    quantile = normal_quantile(evaluation.confidence_level, degrees)
    reach = quantile * rows.design.standard_error(off)
    mean = float(rows.design.mean(off))
    return mean - reach, mean + reach


def _parted(curve: CalibrationCurve) -> bool:
    """True if some score separates the groups, so that an infinite slope fits best."""
    observed, scores = curve.recalibrated, curve.scores
    apart = bool(np.isin(observed, (0, 1)).all() and observed[0] < observed[-1])
    return apart and bool((scores != observed).any())


def _slope(evaluation: Evaluation) -> str:
    return f"{fmt.shown(evaluation, 'calibration/slope')} (right: 1)"


def _margin(curve: CalibrationCurve, margin: float) -> float:
    """The margin, or, where an outcome is rare, a tenth of its share: that expected, that which came, or one row."""
    blocks = curve.table.blocks
    total = float(blocks.total.sum())
    shares = np.array([blocks.total @ blocks.scores, blocks.positive.sum()]) / total
    return min(margin, max(1 / total, float(np.minimum(shares, 1 - shares).max())) / 10)


def _points(margin: float) -> str:
    return f"{significant(margin, 2, 2)} percentage point{'' if margin == 0.01 else 's'}"


# -- words --------------------------------------------------------------------------------------------------------


def _judge(evaluation: Evaluation, judged: _Judged, margin: float) -> Judgement:
    section, curve, subject, faults = judged.section, judged.curve, judged.subject, judged.faults
    p, size = evaluation.metrics[f"{section}/pvalue"], evaluation.metrics[f"{section}/error"]
    alpha, ends = 1 - evaluation.confidence_level, evaluation.intervals.get(f"{section}/error")
    below = upper_bound(size, ends)
    shown_size = (
        f"{below} ({fmt.level(evaluation.confidence_level)})"
        if below
        else fmt.with_interval(size, ends)
    )
    error, failed = f"{section} error {shown_size}", _failures(judged)
    if math.isnan(p):
        if np.isin(curve.scores, (0, 1)).all() and not failed:
            text = f"All {subject} are 0 or 100 %, and each came true: there is nothing to test."
            return Judgement("all came true", text)
        numbers = f"{error[0].upper()}{error[1:]}"
        if math.isfinite(evaluation.metrics.get(f"{section}/slope", math.nan)):
            numbers += f", slope {_slope(evaluation)}"
        reason = evaluation.undefined[f"{section}/pvalue"]
        return Judgement("not tested", f"There is no test of the {subject} ({reason}). {numbers}.")
    margin = _margin(curve, margin)
    outside, test = curve.leaves_band, curve.test
    # the error is at least the mean's: bins that hold one row each, as of few rows, do not see it
    mean_matters = judged.mean_ends is not None and (
        judged.mean_ends[0] > margin or judged.mean_ends[1] < -margin
    )
    small = ends is not None and ends[1] <= margin and not mean_matters
    may_be_small = size < margin and not mean_matters
    by_p, brackets = f"{section} {fmt.p_equals(p)}", f"({section} {fmt.p_equals(p)}; {error})"
    word = next(iter(faults), "miscalibrated")
    example = _example(judged)
    if failed:
        others = (
            f"; the others are {word}: {example}" if faults and example and not may_be_small else ""
        )
        text = f"Of the {subject}, {CERTAIN}: {failed}{others} {brackets}."
        return Judgement(f"{CERTAIN}, {word}" if others else CERTAIN, text)
    if p <= alpha and small:
        text = f"The {subject} are negligibly {word}: the fault is real, but less than {_points(margin)}, too small to"
        return Judgement(f"negligibly {word}", f"{text} matter {brackets}.")
    if p <= alpha:
        both = test is not None and max(test.kuiper_pvalue, test.cox_pvalue) <= alpha
        reasons = ["the curve stays within its band"] if outside is False and not both else []
        if may_be_small:
            reasons.append(f"the error may be less than {_points(margin)}, too small to matter")
        if reasons:
            look = "".join(f"; {reason}" for reason in faults.values())
            text = f"There are {SIGNS} in the {subject}: {by_p}, but {' and '.join(reasons)} ({error}{look})."
            return Judgement(SIGNS, text)
        shown_example = f": {example}" if example else ""
        return Judgement(word, f"The {subject} are {word}{shown_example} ({by_p}).")
    rows = evaluation.statistics.digest.rows
    excluded = ends is not None and 0 < ends[0] < ends[1] and rows >= FEW
    if outside or ((faults or excluded) and not small):
        look = next(iter(faults.values()), "the interval of the error excludes 0")
        look = "the curve leaves its band" if outside else look
        text = f"It is unclear whether the {subject} are right: the test finds no miscalibration, but {look} {brackets}."
        return Judgement("unclear", text)
    beside = _beside(judged, rows)
    return Judgement(NONE, f"No miscalibration is found in the {subject} {brackets}{beside}.")


def _beside(judged: _Judged, rows: int) -> str:
    """The caution for a reader where no miscalibration is found."""
    blocks, text = judged.curve.table.blocks, ""
    if len(blocks.scores) == 1:
        text = f"; every {judged.noun} is given the same, {fmt.percent(float(blocks.scores[0]))}"
    sizes = float(blocks.negative.sum()), float(blocks.positive.sum())
    if rows < FEW:
        return f"{text}; of {fmt.counted(rows, judged.noun)} the test sees gross faults only"
    if min(sizes) >= FEW_OF_A_GROUP:
        return text
    least, outcome = fmt.count(min(sizes)), judged.outcomes[sizes.index(min(sizes))]
    return f"{text}; with {least} {judged.noun}s that are {outcome} the test sees gross faults only"


def _failures(judged: _Judged) -> str:
    """The sentence on certain scores (0 or 100 %) that were wrong; empty without any."""
    blocks, parts = judged.curve.table.blocks, []
    for score, lost in ((1, blocks.negative), (0, blocks.positive)):
        at = blocks.scores == score
        samples, wrong = (
            fmt.counted(float(blocks.total[at].sum()), judged.noun),
            float(lost[at].sum()),
        )
        if wrong:
            are = "is" if wrong == 1 else "are"
            parts.append(
                f"of {samples} given {100 * score} %, {fmt.count(wrong)} {are} {judged.outcomes[1 - score]}"
            )
    return "; ".join(parts)


def _example(judged: _Judged) -> str:
    """The reliability curve where the fault is largest, in words; empty if only the mean would tell, which is not off.

    An example of all rows together would be their mean, and the sentence on the mean calls that chance.
    """
    place = largest_fault(judged.curve, judged.towards)
    is_mean = len(judged.curve.scores) == 1 or _example_bins(judged.curve) == 1
    if place is None or (is_mean and not _side(judged.mean_ends, judged.curve)):
        return ""
    given, observed = about(*place)
    return f"of {judged.noun}s given {given}, {observed} are {judged.outcomes[1]}"


def _example_bins(curve: CalibrationCurve) -> int:
    """Parts of the rows, of which one is the example."""
    return int(np.clip(curve.table.blocks.total.sum() // _LEAST, 1, 10))


def largest_fault(curve: CalibrationCurve, towards: int | None) -> tuple[float, float] | None:
    """The score at which the reliability curve is farthest from it, and the curve's height there.

    Both are means over a tenth of the rows, or over more where a tenth is fewer than 20.

    ``towards``: scores above the curve, below it, or any; None: on the side on which Cox's fit is.
    """
    total, fit = curve.table.blocks.total, curve.table.fit
    bins = _example_bins(curve)
    place = np.minimum(
        (bins * (np.cumsum(total) - total / 2) / total.sum() + 1e-9).astype(int), bins - 1
    )

    def mean(values: FloatArray) -> FloatArray:
        return np.asarray(np.bincount(place, total * values)[filled] / size[filled])

    size = np.bincount(place, total)
    filled = size > 0
    given, observed = mean(curve.scores), mean(curve.recalibrated)
    off = given - observed
    side: FloatArray = np.full(len(off), float(towards)) if towards else np.sign(off)
    if towards is None and fit is not None:
        with np.errstate(divide="ignore"):
            side = given - expit(fit.intercept + fit.slope * logit(given))
    away = np.where(off * side > 0, np.abs(off), 0.0)
    most = int(away.argmax())
    return (float(given[most]), float(observed[most])) if away[most] > 0 else None


def about(given: float, observed: float) -> tuple[str, str]:
    """Two shares in whole per cent, "about 78 %" or "more than 99 %"; with more digits where they would look equal."""
    edges = {-1: "less than 1 %", 1: "more than 99 %"}
    sides = [(0.995 <= share < 1) - (0 < share < 0.005) for share in (given, observed)]
    if sides[0] == sides[1]:
        sides, shown = [0, 0], shares(given, observed)
    else:
        shown = f"{fixed(given, 0, 2)} %", f"{fixed(observed, 0, 2)} %"
    first, second = (
        edges.get(side, f"about {text}") for side, text in zip(sides, shown, strict=True)
    )
    return first, second


def shares(given: float, observed: float, least: int = 0) -> tuple[str, str]:
    """Two shares in per cent, with as many digits as tell them apart, and an uncertain one from 0 and 100 %."""
    for places in range(least, 4):
        shown = [fixed(value, places, 2) for value in (given, observed)]
        sure = all(
            0 < float(text) < 100 or value in (0, 1)
            for text, value in zip(shown, (given, observed), strict=True)
        )
        if sure and (shown[0] != shown[1] or math.isclose(given, observed, abs_tol=1e-12)):
            break
    return f"{shown[0]} %", f"{shown[1]} %"
