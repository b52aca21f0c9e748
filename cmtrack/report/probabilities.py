"""Assessment of predicted probabilities in words, for reports, reviews and figures.

An assessment covers either the probabilities of the positive group or the confidence of the
predictions, which is the probability that each prediction is correct. An assessment states that
probabilities are miscalibrated if two conditions hold: the calibration test finds a fault, and
either the reliability curve leaves its band or both parts of the test find the fault. If the curve
has no band, only the test decides. If only the test finds a fault, the assessment reports signs of
miscalibration.

The slope, the mean and the curve determine the word for the kind of fault, and an example shows
where the fault is largest. The test, the slope, the mean and the curve use the evaluation's
confidence level. A significant fault that is smaller than a margin of practical importance is
reported as too small to matter.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit

from cmtrack._lazy import cached_property
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
"""Number of rows below which the calibration test detects only large faults."""
_NEARLY_ALL = 0.9
"""Share of rows on one side of Cox's fit from which all scores are called too high or too low."""
MARGIN = 0.01
"""Calibration error, or difference between means, below which a fault is too small to matter.

If less than a tenth of the rows have the rarer outcome, the margin is a tenth of the share of these
rows.
"""
CERTAIN = "some 0% or 100% scores are wrong"
NONE = "no miscalibration found"
SIGNS = "signs of miscalibration"
_LEAST = 20
"""Smallest number of rows from which an example is made."""


class Judgement(NamedTuple):
    """The assessment of probabilities, as a word for a table and as a sentence."""

    word: str
    sentence: str


@dataclass(frozen=True)
class _Judged:
    """Probabilities with the evidence for and against their calibration.

    ``subject``: words that name the probabilities in a sentence.
    ``noun``: the noun for a row that has one of the assessed probabilities.
    ``outcomes``: two words, the first for rows whose predicted outcome did not come true, as in "13
        are wrong", and the second for rows whose predicted outcome came true.
    ``faults``: the kinds of fault that a confidence interval shows, each with its reason.
    ``towards``: the direction of the fault that an example should show: 1 for scores that are too
        high, -1 for scores that are too low, 0 for either, and None for the direction that follows
        from Cox's fit.
    ``mean_interval``: confidence interval of the mean score minus the observed share.
    ``largest_margin``: the largest margin of practical importance; see :data:`MARGIN`.
    """

    evaluation: Evaluation
    section: str
    curve: CalibrationCurve
    subject: str
    noun: str
    outcomes: tuple[str, str]
    faults: dict[str, str]
    towards: int | None
    mean_interval: Interval | None
    largest_margin: float

    @property
    def size(self) -> float:
        """The calibration error."""
        return self.evaluation.metrics[f"{self.section}/error"]

    @property
    def interval(self) -> Interval | None:
        """The confidence interval of the calibration error."""
        return self.evaluation.intervals.get(f"{self.section}/error")

    @property
    def pvalue(self) -> float:
        """The p-value of the calibration test; NaN if there is no test."""
        return self.evaluation.metrics[f"{self.section}/pvalue"]

    @property
    def alpha(self) -> float:
        """The largest p-value that is treated as significant."""
        return 1 - self.evaluation.confidence_level

    @cached_property
    def margin(self) -> float:
        """The size below which a fault is too small to matter."""
        return _margin(self.curve, self.largest_margin)

    @property
    def mean_matters(self) -> bool:
        """True if the mean score differs from the observed share by more than the margin.

        The calibration error is at least as large as the error of the mean, but the estimated
        calibration error may be smaller if the bins contain only one row.
        """
        if self.mean_interval is None:
            return False
        low, high = self.mean_interval
        return low > self.margin or high < -self.margin

    @property
    def is_small(self) -> bool:
        """True if the interval of the calibration error shows that it is too small to matter."""
        if self.interval is None or self.mean_matters:
            return False
        return self.interval[1] <= self.margin

    @property
    def may_be_small(self) -> bool:
        """True if the estimate of the calibration error is too small to matter."""
        return self.size < self.margin and not self.mean_matters

    @cached_property
    def failures(self) -> str:
        """Words about scores of 0 or 1 whose outcome did not come true.

        The text is empty if all outcomes with a score of 0 or 1 came true.
        """
        return _failures(self)

    @cached_property
    def example(self) -> str:
        """Description of the scores with the largest fault.

        The text is empty if only the mean score is wrong.
        """
        return _example(self)

    @property
    def word(self) -> str:
        """The word that describes the kind of fault."""
        return next(iter(self.faults), "miscalibrated")

    @property
    def error(self) -> str:
        """Text with the calibration error and its interval."""
        below = upper_bound(self.size, self.interval)
        if below:
            return (
                f"{fmt.level(self.evaluation.confidence_level)} interval of the "
                f"calibration error: {below}"
            )
        return f"calibration error {fmt.with_interval(self.size, self.interval)}"

    @property
    def test(self) -> str:
        """The p-value of the calibration test, in words."""
        return f"calibration {fmt.p_equals(self.pvalue)}"

    @property
    def evidence(self) -> str:
        """Text in parentheses with the p-value and the calibration error."""
        return f"({self.test}; {self.error})"


def judgement(evaluation: Evaluation, margin: float = MARGIN) -> Judgement | None:
    """Assess the positive group's probabilities.

    Returns None if the section ``calibration/`` is missing.

    ``margin``: the margin of practical importance; see :data:`MARGIN`.

    The assessment contains one of these words:

    - "over-confident", "under-confident", "the wrong way round", "too high", "too low" or
      "miscalibrated", with "negligibly" in front if the fault is below the margin
    - :data:`CERTAIN` if an outcome with a score of 0 or 1 did not come true
    - :data:`SIGNS` if the test finds a fault, but the curve or the size of the error contradicts it
    - "unclear" if the curve or an interval shows a fault that the test does not find
    - :data:`NONE`, "not tested" or "all came true"
    """
    curve = curve_of(evaluation, "calibration")
    if curve is None:
        return None
    faults = {}
    slope = evaluation.intervals.get("calibration/slope")
    if slope is not None and not slope[0] <= 1 <= slope[1]:
        faults[_slope_fault(slope)] = f"the slope is {_slope(evaluation)}"
    elif _parted(curve) and evaluation.metrics["calibration/error"] >= _margin(curve, margin):
        faults["under-confident"] = "the scores separate the groups perfectly"
    mean_interval = evaluation.intervals.get("prevalence/bias")
    mean_interval = mean_interval or _mean_interval(evaluation, curve)
    side = _side(mean_interval, curve)
    # If the slope differs from 1, Cox's fit shows whether each score is too high or too low. If
    # only the mean is wrong, all scores are too high or all are too low.
    towards = None if faults and curve.table.fit is not None else side
    if side:
        level = {_level(side): f"the mean is {_level(side)}"}
        # A reader of "under-confident" would not expect that nearly all scores are too high.
        is_on_one_side = bool(faults) and _share_on_side(curve, side) >= _NEARLY_ALL
        faults = level | faults if is_on_one_side else faults | level
    negative = fmt.named(evaluation.negative)
    positive = fmt.named(evaluation.positive)
    return _judge(
        _Judged(
            evaluation,
            "calibration",
            curve,
            subject=f"probabilities of {positive}",
            noun="row",
            outcomes=(negative, positive),
            faults=faults,
            towards=towards,
            mean_interval=mean_interval,
            largest_margin=margin,
        )
    )


def _share_on_side(curve: CalibrationCurve, side: int) -> float:
    """Return the share of the rows whose score is too high (1) or too low (-1) by Cox's fit."""
    total = curve.table.blocks.total
    differences = curve.scores - _fitted(curve, curve.scores)
    return float(total[np.sign(differences) == side].sum() / total.sum())


def _fitted(curve: CalibrationCurve, scores: FloatArray) -> FloatArray:
    """Return the probability that Cox's fit gives to each score, or the scores without a fit."""
    fit = curve.table.fit
    if fit is None:
        return scores
    # The logit of a score of 0 or 1 is infinite, and its fitted probability is exact.
    with np.errstate(divide="ignore"):
        return np.asarray(expit(fit.intercept + fit.slope * logit(scores)))


def _slope_fault(slope: Interval) -> str:
    """Return the word that describes a slope whose interval excludes 1."""
    if slope[0] > 1:
        return "under-confident"
    if slope[1] > 0:
        return "over-confident"
    return "the wrong way round"


def confidence(evaluation: Evaluation, margin: float = MARGIN) -> Judgement | None:
    """Assess the confidence of the predictions.

    Returns None if the section ``confidence/`` is missing. The confidence is the probability that a
    prediction is correct. :func:`judgement` lists the words. Over-confident predictions are correct
    less often than their probabilities suggest.
    """
    curve = curve_of(evaluation, "confidence")
    if curve is None:
        return None
    mean_interval = _mean_interval(evaluation, curve)
    side = _side(mean_interval, curve)
    faults = {}
    if side:
        word = "over-confident" if side > 0 else "under-confident"
        faults[word] = f"on average they are {word}"
    return _judge(
        _Judged(
            evaluation,
            "confidence",
            curve,
            subject="probabilities of the predicted classes",
            noun="prediction",
            outcomes=("wrong", "correct"),
            faults=faults,
            towards=side,
            mean_interval=mean_interval,
            largest_margin=margin,
        )
    )


JUDGES: dict[str, Callable[[Evaluation], Judgement | None]] = {
    "calibration": judgement,
    "confidence": confidence,
}
"""Functions that assess probabilities, one for each section of metrics."""


def average(evaluation: Evaluation, margin: float = MARGIN) -> str:
    """Return a sentence that compares the mean probability with the share of positive rows.

    The sentence is empty if there is no positive group or if there are no probabilities.
    """
    metrics = evaluation.metrics
    bias = metrics.get("prevalence/bias", math.nan)
    curve = evaluation.calibration
    if math.isnan(bias) or evaluation.positive is None or curve is None:
        return ""
    positive = fmt.named(evaluation.positive)
    interval = evaluation.intervals.get("prevalence/bias")
    expected = metrics["prevalence/expected"]
    mean, share = fmt.percents_apart(expected, metrics["prevalence/actual"], interval)
    text = (
        f"On average, the probability of {positive} is {mean}, "
        f"and {share} of the rows are {positive}"
    )
    if interval is None:
        return f"{text}: a difference of {fmt.points(bias, None)}."
    low, high = interval
    side = _side(interval, curve)
    if not side:
        if not low <= 0 <= high:
            difference = f"a difference of {fmt.points(bias, None)}, which is within chance"
            return f"{text}: {difference}. Labels drawn with these probabilities differ as much."
        within = ", which is within chance" if low < high else ""
        return f"{text}: a difference of {fmt.points(bias, interval)}{within}."
    # The sentence names the direction in words, so its number is positive.
    distance = interval if bias > 0 else (-high, -low)
    margin = _margin(curve, margin)
    small = ""
    if max(abs(low), abs(high)) <= margin:
        small = f", but too little to matter (less than {_points(margin)})"
    points = fmt.points(abs(bias), distance)
    return (
        f"{text}: the mean is {points} {_level(side)}, which is more than chance explains{small}."
    )


def curve_of(evaluation: Evaluation, section: str) -> CalibrationCurve | None:
    """Return the reliability curve of a section, or None if the evaluation lacks it."""
    if f"{section}/error" not in evaluation.metrics or not evaluation.has_section(section):
        return None
    return evaluation.calibration if section == "calibration" else evaluation.confidence_calibration


# -- the kinds of fault ----------------------------------------------------------------------------


def _side(mean_interval: Interval | None, curve: CalibrationCurve) -> int:
    """Return 1 if the mean score is too high, -1 if it is too low, else 0.

    Two conditions must hold. The result differs from 0 only if two conditions hold. First, the
    interval of the mean difference excludes 0. Second, labels that are drawn at random with the
    scores as probabilities seldom differ this much from the mean score. The condition on drawn
    labels matters if the outcome comes true for few rows or for no row. If the outcome is rare, the
    observed labels vary less than drawn labels, and the interval is too narrow.
    """
    if mean_interval is None:
        return 0
    blocks = curve.table.blocks
    scores = blocks.scores
    squares = blocks.squares_positive + blocks.squares_negative
    difference = abs(float(blocks.total @ scores - blocks.positive.sum()))
    spread = math.sqrt(float(squares @ (scores * (1 - scores))))
    if difference <= normal_quantile(curve.table.level) * spread:
        return 0
    low, high = mean_interval
    return int(low > 0) - int(high < 0)


def _level(side: int) -> str:
    return "too high" if side > 0 else "too low"


def _mean_interval(evaluation: Evaluation, curve: CalibrationCurve) -> Interval | None:
    """Return the interval of the mean score minus the observed share.

    For clustered rows, the function returns only the interval for the mean confidence, because the
    metrics already include an interval for the probabilities of the positive group. Returns None if
    the clustered rows are not stored.
    """
    if evaluation.n_clusters is not None:
        return _mean_interval_of_clusters(evaluation)
    blocks = curve.table.blocks
    scores = blocks.scores
    n = float(blocks.total.sum())
    mean = float(blocks.total @ scores - blocks.positive.sum()) / n
    squares = float(
        blocks.squares_positive @ (scores - 1 - mean) ** 2
        + blocks.squares_negative @ (scores - mean) ** 2
    )
    margin = normal_quantile(evaluation.confidence_level) * math.sqrt(squares) / n
    return mean - margin, mean + margin


def _mean_interval_of_clusters(evaluation: Evaluation) -> Interval | None:
    """Return the interval of the mean confidence minus the accuracy, computed from cluster sums."""
    rows = evaluation.rows
    if not (isinstance(rows, Predictions) and rows.design.has_clusters):
        return None
    confidences = certainty(rows, np.arange(len(rows)))
    if confidences is None:
        return None
    differences = confidences - right_rows(rows, None)
    effective_clusters = rows.design.effective_clusters(differences)
    degrees = cluster_degrees(effective_clusters, evaluation.n_clusters)
    quantile = normal_quantile(evaluation.confidence_level, degrees)
    margin = quantile * rows.design.standard_error(differences)
    mean = float(rows.design.mean(differences))
    return mean - margin, mean + margin


def _parted(curve: CalibrationCurve) -> bool:
    """Return whether a score separates the groups perfectly, so that the slope is infinite."""
    observed = curve.recalibrated
    parts = bool(np.isin(observed, (0, 1)).all() and observed[0] < observed[-1])
    return parts and bool((curve.scores != observed).any())


def _slope(evaluation: Evaluation) -> str:
    return f"{fmt.shown(evaluation, 'calibration/slope')} (ideal: 1)"


def _margin(curve: CalibrationCurve, margin: float) -> float:
    """Return the margin of practical importance, at most a tenth of a rare outcome's share.

    The share of the rare outcome is the expected share or the observed share, whichever is larger,
    and corresponds to at least one row.
    """
    blocks = curve.table.blocks
    total = float(blocks.total.sum())
    shares = np.array([blocks.total @ blocks.scores, blocks.positive.sum()]) / total
    rare_share = float(np.minimum(shares, 1 - shares).max())
    return min(margin, max(1 / total, rare_share) / 10)


def _points(margin: float) -> str:
    unit = "percentage point" if margin == 0.01 else "percentage points"
    return f"{significant(margin, 2, 2)} {unit}"


# -- words -----------------------------------------------------------------------------------------


def _judge(judged: _Judged) -> Judgement:
    """Return the assessment.

    The assessment depends first on scores of 0 or 1 that did not come true, then on the test, and
    then on the curve and the intervals.
    """
    if math.isnan(judged.pvalue):
        return _judge_untested(judged)
    if judged.failures:
        return _judge_failed(judged)
    if judged.pvalue <= judged.alpha:
        return _judge_significant(judged)
    return _judge_not_significant(judged)


def _judge_untested(judged: _Judged) -> Judgement:
    """Assess probabilities for which there is no calibration test."""
    if np.isin(judged.curve.scores, (0, 1)).all() and not judged.failures:
        text = f"All {judged.subject} are 0% or 100% and came true, so there is nothing to test."
        return Judgement("all came true", text)
    evaluation = judged.evaluation
    numbers = fmt.capital(judged.error)
    if math.isfinite(evaluation.metrics.get(f"{judged.section}/slope", math.nan)):
        numbers += f", slope {_slope(evaluation)}"
    reason = evaluation.undefined[f"{judged.section}/pvalue"]
    text = f"The {judged.subject} are not tested ({reason}). {numbers}."
    return Judgement("not tested", text)


def _judge_failed(judged: _Judged) -> Judgement:
    """Assess probabilities that include scores of 0 or 1 whose outcome did not come true."""
    text = f"Among the {judged.subject}, {CERTAIN}: {judged.failures}"
    if not judged.faults or not judged.example or judged.may_be_small:
        return Judgement(CERTAIN, f"{text} {judged.evidence}.")
    others = f"the others are {judged.word}: {judged.example}"
    return Judgement(f"{CERTAIN}, {judged.word}", f"{text}; {others} {judged.evidence}.")


def _judge_significant(judged: _Judged) -> Judgement:
    """Assess probabilities in which the test finds a fault."""
    if judged.is_small:
        text = (
            f"The {judged.subject} are negligibly {judged.word}: the fault is real but smaller "
            f"than {_points(judged.margin)}, which is too small to matter {judged.evidence}."
        )
        return Judgement(f"negligibly {judged.word}", text)
    doubts = _doubts(judged)
    if doubts:
        looks = "".join(f"; {reason}" for reason in judged.faults.values())
        text = (
            f"There are {SIGNS} in the {judged.subject}: {judged.test}, "
            f"but {' and '.join(doubts)} ({judged.error}{looks})."
        )
        return Judgement(SIGNS, text)
    example = f": {judged.example}" if judged.example else ""
    text = f"The {judged.subject} are {judged.word}{example} ({judged.test})."
    return Judgement(judged.word, text)


def _doubts(judged: _Judged) -> list[str]:
    """Return the evidence against a fault that the test finds."""
    test = judged.curve.test
    both_parts = test is not None and max(test.kuiper_pvalue, test.cox_pvalue) <= judged.alpha
    doubts = []
    if judged.curve.leaves_band is False and not both_parts:
        doubts.append("the curve stays within its band")
    if judged.may_be_small:
        doubts.append(
            f"the error may be less than {_points(judged.margin)}, which is too small to matter"
        )
    return doubts


def _judge_not_significant(judged: _Judged) -> Judgement:
    """Assess probabilities in which the test finds no fault."""
    rows = judged.evaluation.statistics.digest.rows
    look = _look(judged, rows)
    if look:
        text = (
            f"It is unclear whether the {judged.subject} are right: the test finds no "
            f"miscalibration, but {look} {judged.evidence}."
        )
        return Judgement("unclear", text)
    caution = _caution(judged, rows)
    text = f"No miscalibration is found in the {judged.subject} {judged.evidence}{caution}."
    return Judgement(NONE, text)


def _look(judged: _Judged, rows: int) -> str:
    """Return words for signs of a fault that the test does not find.

    The text is empty if there are no signs of a fault.
    """
    if judged.curve.leaves_band:
        return "the curve leaves its band"
    if judged.is_small:
        return ""
    if judged.faults:
        return next(iter(judged.faults.values()))
    interval = judged.interval
    if interval is not None and 0 < interval[0] < interval[1] and rows >= FEW:
        return "the interval of the error excludes 0"
    return ""


def _caution(judged: _Judged, rows: int) -> str:
    """Return a caution that is added if no miscalibration is found.

    The text is empty if no caution is needed.
    """
    blocks = judged.curve.table.blocks
    text = ""
    if len(blocks.scores) == 1:
        score = fmt.percent(float(blocks.scores[0]))
        text = f"; every {judged.noun} has the same probability, {score}"
    if rows < FEW:
        return f"{text}; with {fmt.counted(rows, judged.noun)} the test finds only gross faults"
    sizes = (float(blocks.negative.sum()), float(blocks.positive.sum()))
    least = min(sizes)
    if least >= FEW_OF_A_GROUP:
        return text
    outcome = judged.outcomes[sizes.index(least)]
    few = f"{fmt.count(least)} {judged.noun}s that are {outcome}"
    return f"{text}; with {few} the test finds only gross faults"


def _failures(judged: _Judged) -> str:
    """Return words about scores of 0 or 1 whose outcome did not come true.

    The text is empty if all outcomes with a score of 0 or 1 came true.
    """
    blocks = judged.curve.table.blocks
    texts = []
    for score, missed, outcome in (
        (1, blocks.negative, judged.outcomes[0]),
        (0, blocks.positive, judged.outcomes[1]),
    ):
        has_score = blocks.scores == score
        wrong = float(missed[has_score].sum())
        if wrong:
            rows = fmt.counted(float(blocks.total[has_score].sum()), judged.noun)
            are = "is" if wrong == 1 else "are"
            texts.append(
                f"of {rows} with a score of {100 * score}%, {fmt.count(wrong)} {are} {outcome}"
            )
    return "; ".join(texts)


def _example(judged: _Judged) -> str:
    """Return a description of the largest fault of the reliability curve.

    The text is empty if the example would be the mean of all rows, and the difference between this
    mean and the observed share may be due to chance.
    """
    fault = largest_fault(judged.curve, judged.towards)
    if fault is None:
        return ""
    is_mean = len(judged.curve.scores) == 1 or _example_bins(judged.curve) == 1
    if is_mean and not _side(judged.mean_interval, judged.curve):
        return ""
    score, observed = about(*fault)
    return f"of {judged.noun}s with a score of {score}, {observed} are {judged.outcomes[1]}"


def _example_bins(curve: CalibrationCurve) -> int:
    """Return the number of bins into which the rows are divided; the example is one of the bins."""
    return int(np.clip(curve.table.blocks.total.sum() // _LEAST, 1, 10))


def largest_fault(curve: CalibrationCurve, towards: int | None) -> tuple[float, float] | None:
    """Return the score that differs most from its observed share, with this share, or None.

    The score and the share are means over a tenth of the rows, or over more rows if a tenth amounts
    to fewer than 20 rows.

    ``towards``: 1 to look for scores that are too high, -1 for scores that are too low, 0 for
    either, and None for the direction that follows from Cox's fit for each score.
    """
    total = curve.table.blocks.total
    n_bins = _example_bins(curve)
    middles = (np.cumsum(total) - total / 2) / total.sum()
    # The small number ensures that a midpoint on an edge stays in its bin if the sums are rounded.
    bins = np.minimum((n_bins * middles + 1e-9).astype(int), n_bins - 1)
    sizes = np.bincount(bins, total)
    filled = sizes > 0

    def mean(values: FloatArray) -> FloatArray:
        return np.asarray(np.bincount(bins, total * values)[filled] / sizes[filled])

    scores = mean(curve.scores)
    observed = mean(curve.recalibrated)
    differences = scores - observed
    side: FloatArray = np.sign(differences)
    if towards:
        side = np.full(len(differences), float(towards))
    elif towards is None and curve.table.fit is not None:
        side = scores - _fitted(curve, scores)
    distances = np.where(differences * side > 0, np.abs(differences), 0.0)
    worst = int(distances.argmax())
    if not distances[worst] > 0:
        return None
    return float(scores[worst]), float(observed[worst])


def about(score: float, observed: float) -> tuple[str, str]:
    """Return two shares in whole per cent, such as "about 78%" or "more than 99%".

    The texts contain more digits if the shares would otherwise look equal.
    """
    edges = (_edge(score), _edge(observed))
    if edges[0] == edges[1]:
        first, second = shares(score, observed)
        return f"about {first}", f"about {second}"
    first = edges[0] or f"about {fixed(score, 0, 2)}%"
    second = edges[1] or f"about {fixed(observed, 0, 2)}%"
    return first, second


def _edge(share: float) -> str:
    """Return words for a share that would be rounded to 0% or 100%.

    The text is empty for all other shares.
    """
    if 0 < share < 0.005:
        return "less than 1%"
    if 0.995 <= share < 1:
        return "more than 99%"
    return ""


def shares(score: float, observed: float) -> tuple[str, str]:
    """Return two shares in per cent, with enough digits to distinguish them.

    Shares other than 0 and 1 are also written with enough digits to differ from 0% and 100%.
    """
    values = (score, observed)
    for places in range(4):
        texts = [fixed(value, places, 2) for value in values]
        differ = texts[0] != texts[1] or math.isclose(score, observed, abs_tol=1e-12)
        if differ and not fmt.look_certain(values, texts):
            break
    return f"{texts[0]}%", f"{texts[1]}%"
