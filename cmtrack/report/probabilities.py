"""The judgement of probabilities in words, for reports, reviews and their figures.

It is on the probabilities of the positive group, or on the confidence of the predictions: the
probability that each is right. A fault is claimed if the test of calibration finds it, and either
the reliability curve leaves its band or both parts of the test find it. Without a band the test
alone counts. Otherwise there are signs of a fault. Slope, mean and the curve say of what kind it
is, and where: one word, and one example. Each uses the evaluation's confidence level. A fault
smaller than a margin of practical importance is real, but too small to matter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
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
"""Rows, below which the test sees gross faults only."""
MARGIN = 0.01
"""Calibration error, or difference of means, below which a fault is too small to matter.

If less than a tenth of the samples have the rarer outcome, it is a tenth of their share.
"""
CERTAIN = "some 0% or 100% scores are wrong"
NONE = "no miscalibration found"
SIGNS = "signs of miscalibration"
_LEAST = 20
"""Rows of an example."""


class Judgement(NamedTuple):
    """A word for a table, and a sentence."""

    word: str
    sentence: str


@dataclass(frozen=True)
class _Judged:
    """Probabilities with what the data say about them.

    ``subject``, ``noun``: the words for all of them, and for a row with one of them.
    ``outcomes``: what did not come true, and what did: "13 are …".
    ``faults``: the kinds of fault that an interval shows, each with its reason.
    ``towards``: the side of an example: 1 above the curve, -1 below it, 0 any, None that of Cox's
        fit.
    ``mean_interval``: of the mean score minus the observed share.
    ``largest_margin``: as :data:`MARGIN`.
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
        """The interval of the calibration error."""
        return self.evaluation.intervals.get(f"{self.section}/error")

    @property
    def pvalue(self) -> float:
        """The p-value of the test of calibration; NaN without a test."""
        return self.evaluation.metrics[f"{self.section}/pvalue"]

    @property
    def alpha(self) -> float:
        """The largest p-value that is significant."""
        return 1 - self.evaluation.confidence_level

    @cached_property
    def margin(self) -> float:
        """The size below which a fault is too small to matter."""
        return _margin(self.curve, self.largest_margin)

    @property
    def mean_matters(self) -> bool:
        """True if the mean is off by more than the margin.

        The error is at least the mean's, but bins with one row each do not show it.
        """
        if self.mean_interval is None:
            return False
        low, high = self.mean_interval
        return low > self.margin or high < -self.margin

    @property
    def is_small(self) -> bool:
        """True if the interval of the error shows that it is too small to matter."""
        if self.interval is None or self.mean_matters:
            return False
        return self.interval[1] <= self.margin

    @property
    def may_be_small(self) -> bool:
        """True if the error itself is too small to matter."""
        return self.size < self.margin and not self.mean_matters

    @cached_property
    def failures(self) -> str:
        """The words on scores of 0 or 100% that were wrong; empty without any."""
        return _failures(self)

    @cached_property
    def example(self) -> str:
        """The words on the place of the largest fault; empty if only the mean shows one."""
        return _example(self)

    @property
    def word(self) -> str:
        """The word for the kind of fault."""
        return next(iter(self.faults), "miscalibrated")

    @property
    def error(self) -> str:
        """The calibration error with its interval."""
        below = upper_bound(self.size, self.interval)
        if below:
            return f"{self.section} error {below} ({fmt.level(self.evaluation.confidence_level)})"
        return f"{self.section} error {fmt.with_interval(self.size, self.interval)}"

    @property
    def test(self) -> str:
        """The p-value of the test in words."""
        return f"{self.section} {fmt.p_equals(self.pvalue)}"

    @property
    def evidence(self) -> str:
        """The p-value and the error, in brackets."""
        return f"({self.test}; {self.error})"


def judgement(evaluation: Evaluation, margin: float = MARGIN) -> Judgement | None:
    """Judge the probabilities of the positive group; None without the section ``calibration/``.

    ``margin``: as :data:`MARGIN`.

    The word is "over-confident", "under-confident", "the wrong way round", "too high" or "too low",
    else "miscalibrated", each with "negligibly" if it is below the margin; :data:`CERTAIN` if a
    score of 0 or 1 failed; :data:`SIGNS`; "unclear" if the test finds nothing and the curve or an
    interval does; :data:`NONE`; "not tested", or "all came true".
    """
    curve = curve_of(evaluation, "calibration")
    if curve is None:
        return None
    faults = {}
    slope = evaluation.intervals.get("calibration/slope")
    if slope is not None and not slope[0] <= 1 <= slope[1]:
        faults[_slope_fault(slope)] = f"the slope is {_slope(evaluation)}"
    elif _parted(curve) and evaluation.metrics["calibration/error"] >= _margin(curve, margin):
        faults["under-confident"] = "the scores part the groups"
    mean_interval = evaluation.intervals.get("prevalence/bias")
    mean_interval = mean_interval or _mean_interval(evaluation, curve)
    side = _side(mean_interval, curve)
    # Cox's fit shows where a slope's fault is. A fault of the mean is on one side everywhere.
    towards = None if faults and curve.table.fit is not None else side
    if side:
        faults[_level(side)] = f"the mean is {_level(side)}"
    negative = fmt.named(evaluation.negative)
    positive = fmt.named(evaluation.positive)
    return _judge(
        _Judged(
            evaluation,
            "calibration",
            curve,
            subject=f"probabilities of {positive}",
            noun="sample",
            outcomes=(negative, positive),
            faults=faults,
            towards=towards,
            mean_interval=mean_interval,
            largest_margin=margin,
        )
    )


def _slope_fault(slope: Interval) -> str:
    """Return the fault of a slope whose interval excludes 1."""
    if slope[0] > 1:
        return "under-confident"
    if slope[1] > 0:
        return "over-confident"
    return "the wrong way round"


def confidence(evaluation: Evaluation, margin: float = MARGIN) -> Judgement | None:
    """Judge the confidence of the predictions: the probability that each is right.

    None without the section ``confidence/``. Words are those of :func:`judgement`. Over-confident
    predictions are right less often than they say.
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
            outcomes=("wrong", "right"),
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
"""The judgement of each section."""


def average(evaluation: Evaluation, margin: float = MARGIN) -> str:
    """Return a sentence on the mean probability and the share of the positive group.

    Empty without them.
    """
    metrics = evaluation.metrics
    bias = metrics.get("prevalence/bias", math.nan)
    curve = evaluation.calibration
    if math.isnan(bias) or evaluation.positive is None or curve is None:
        return ""
    mean, share = shares(metrics["prevalence/expected"], metrics["prevalence/actual"], least=1)
    text = (
        f"On average the probabilities give {fmt.named(evaluation.positive)} {mean}, "
        f"and {share} of the samples are"
    )
    interval = evaluation.intervals.get("prevalence/bias")
    if interval is None:
        return f"{text}: a difference of {fmt.points(bias, None)}."
    low, high = interval
    side = _side(interval, curve)
    if not side:
        if not low <= 0 <= high:
            difference = f"a difference of {fmt.points(bias, None)}, within chance"
            return f"{text}: {difference}: labels drawn with these probabilities differ as much."
        within = ", within chance" if low < high else ""
        return f"{text}: a difference of {fmt.points(bias, interval)}{within}."
    # The sentence names the direction: its number is positive.
    distance = interval if bias > 0 else (-high, -low)
    margin = _margin(curve, margin)
    small = ""
    if max(abs(low), abs(high)) <= margin:
        small = f", but less than {_points(margin)}: too little to matter"
    points = fmt.points(abs(bias), distance)
    return f"{text}: {points} {_level(side)}, more than chance explains{small}."


def curve_of(evaluation: Evaluation, section: str) -> CalibrationCurve | None:
    """Return the reliability curve of a section; None if the evaluation lacks it."""
    if f"{section}/error" not in evaluation.metrics or not evaluation.has_section(section):
        return None
    return evaluation.calibration if section == "calibration" else evaluation.confidence_calibration


# -- the kinds of fault ----------------------------------------------------------------------------


def _side(mean_interval: Interval | None, curve: CalibrationCurve) -> int:
    """Return 1 or -1 for a mean score that is too high or too low, else 0.

    The interval of the mean excludes 0, and labels drawn with the scores seldom differ as much. If
    few rows come true, or none, the observed labels spread less than drawn ones.
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

    None for clustered rows that are not stored. Of clustered rows it is the confidence's: the mean
    of the probabilities of the positive group has an interval among the metrics.
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
    """Return the interval of the mean confidence minus the share of right predictions.

    It is from sums over the clusters.
    """
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
    """Return whether a score separates the groups, so that an infinite slope fits best."""
    observed = curve.recalibrated
    parts = bool(np.isin(observed, (0, 1)).all() and observed[0] < observed[-1])
    return parts and bool((curve.scores != observed).any())


def _slope(evaluation: Evaluation) -> str:
    return f"{fmt.shown(evaluation, 'calibration/slope')} (right: 1)"


def _margin(curve: CalibrationCurve, margin: float) -> float:
    """Return the margin; for a rare outcome a tenth of its share, at least a tenth of a row.

    The share is the expected or the observed one, whichever is larger.
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
    """Return the judgement: failed scores count before the test, and the test before looks."""
    if math.isnan(judged.pvalue):
        return _judge_untested(judged)
    if judged.failures:
        return _judge_failed(judged)
    if judged.pvalue <= judged.alpha:
        return _judge_significant(judged)
    return _judge_not_significant(judged)


def _judge_untested(judged: _Judged) -> Judgement:
    """Judge probabilities for which there is no test."""
    if np.isin(judged.curve.scores, (0, 1)).all() and not judged.failures:
        text = f"All {judged.subject} are 0 or 100%, and each came true: there is nothing to test."
        return Judgement("all came true", text)
    evaluation = judged.evaluation
    numbers = fmt.capital(judged.error)
    if math.isfinite(evaluation.metrics.get(f"{judged.section}/slope", math.nan)):
        numbers += f", slope {_slope(evaluation)}"
    reason = evaluation.undefined[f"{judged.section}/pvalue"]
    text = f"There is no test of the {judged.subject} ({reason}). {numbers}."
    return Judgement("not tested", text)


def _judge_failed(judged: _Judged) -> Judgement:
    """Judge probabilities of which some of 0 or 100% were wrong."""
    text = f"Of the {judged.subject}, {CERTAIN}: {judged.failures}"
    if not judged.faults or not judged.example or judged.may_be_small:
        return Judgement(CERTAIN, f"{text} {judged.evidence}.")
    others = f"the others are {judged.word}: {judged.example}"
    return Judgement(f"{CERTAIN}, {judged.word}", f"{text}; {others} {judged.evidence}.")


def _judge_significant(judged: _Judged) -> Judgement:
    """Judge probabilities in which the test finds a fault."""
    if judged.is_small:
        text = (
            f"The {judged.subject} are negligibly {judged.word}: the fault is real, "
            f"but less than {_points(judged.margin)}, too small to matter {judged.evidence}."
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
    """Return what speaks against a fault that the test finds."""
    test = judged.curve.test
    both_parts = test is not None and max(test.kuiper_pvalue, test.cox_pvalue) <= judged.alpha
    doubts = []
    if judged.curve.leaves_band is False and not both_parts:
        doubts.append("the curve stays within its band")
    if judged.may_be_small:
        doubts.append(f"the error may be less than {_points(judged.margin)}, too small to matter")
    return doubts


def _judge_not_significant(judged: _Judged) -> Judgement:
    """Judge probabilities in which the test finds no fault."""
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
    """Return what looks like a fault that the test does not find; empty if nothing does."""
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
    """Return the caution for a reader if no miscalibration is found."""
    blocks = judged.curve.table.blocks
    text = ""
    if len(blocks.scores) == 1:
        score = fmt.percent(float(blocks.scores[0]))
        text = f"; every {judged.noun} is given the same, {score}"
    if rows < FEW:
        return f"{text}; of {fmt.counted(rows, judged.noun)} the test sees gross faults only"
    sizes = (float(blocks.negative.sum()), float(blocks.positive.sum()))
    least = min(sizes)
    if least >= FEW_OF_A_GROUP:
        return text
    outcome = judged.outcomes[sizes.index(least)]
    few = f"{fmt.count(least)} {judged.noun}s that are {outcome}"
    return f"{text}; with {few} the test sees gross faults only"


def _failures(judged: _Judged) -> str:
    """Return the words on certain scores (0 or 100%) that were wrong; empty without any."""
    blocks = judged.curve.table.blocks
    texts = []
    for score, missed, outcome in (
        (1, blocks.negative, judged.outcomes[0]),
        (0, blocks.positive, judged.outcomes[1]),
    ):
        has_score = blocks.scores == score
        wrong = float(missed[has_score].sum())
        if wrong:
            samples = fmt.counted(float(blocks.total[has_score].sum()), judged.noun)
            are = "is" if wrong == 1 else "are"
            texts.append(f"of {samples} given {100 * score}%, {fmt.count(wrong)} {are} {outcome}")
    return "; ".join(texts)


def _example(judged: _Judged) -> str:
    """Return the reliability curve at its largest fault in words.

    Empty if the example would be the mean of all rows, and the sentence on the mean calls its
    difference chance.
    """
    fault = largest_fault(judged.curve, judged.towards)
    if fault is None:
        return ""
    is_mean = len(judged.curve.scores) == 1 or _example_bins(judged.curve) == 1
    if is_mean and not _side(judged.mean_interval, judged.curve):
        return ""
    score, observed = about(*fault)
    return f"of {judged.noun}s given {score}, {observed} are {judged.outcomes[1]}"


def _example_bins(curve: CalibrationCurve) -> int:
    """Return the number of bins of the rows, of which one is the example."""
    return int(np.clip(curve.table.blocks.total.sum() // _LEAST, 1, 10))


def largest_fault(curve: CalibrationCurve, towards: int | None) -> tuple[float, float] | None:
    """Return the score at which the reliability curve is farthest from it, and the curve's height.

    Both are means over a tenth of the rows, or over more if a tenth is fewer than 20.

    ``towards``: scores above the curve, below it, or any; None: on the side on which Cox's fit is.
    """
    total = curve.table.blocks.total
    fit = curve.table.fit
    n_bins = _example_bins(curve)
    middles = (np.cumsum(total) - total / 2) / total.sum()
    # The small number keeps a middle on an edge in its bin, whatever the rounding of the sums.
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
    elif towards is None and fit is not None:
        # The logit of a score of 0 or 1 is infinite, and its fitted probability is exact.
        with np.errstate(divide="ignore"):
            side = scores - expit(fit.intercept + fit.slope * logit(scores))
    distances = np.where(differences * side > 0, np.abs(differences), 0.0)
    worst = int(distances.argmax())
    if not distances[worst] > 0:
        return None
    return float(scores[worst]), float(observed[worst])


def about(score: float, observed: float) -> tuple[str, str]:
    """Return two shares in whole per cent: "about 78%" or "more than 99%".

    They have more digits if they would look equal.
    """
    edges = (_edge(score), _edge(observed))
    if edges[0] == edges[1]:
        first, second = shares(score, observed)
        return f"about {first}", f"about {second}"
    first = edges[0] or f"about {fixed(score, 0, 2)}%"
    second = edges[1] or f"about {fixed(observed, 0, 2)}%"
    return first, second


def _edge(share: float) -> str:
    """Return the words for a share that rounds to 0 or 100% but is not; else empty."""
    if 0 < share < 0.005:
        return "less than 1%"
    if 0.995 <= share < 1:
        return "more than 99%"
    return ""


def shares(score: float, observed: float, least: int = 0) -> tuple[str, str]:
    """Return two shares in per cent, with as many digits as distinguish them.

    Uncertain ones are also distinguished from 0 and 100%.
    """
    values = (score, observed)
    for places in range(least, 4):
        texts = [fixed(value, places, 2) for value in values]
        differ = texts[0] != texts[1] or math.isclose(score, observed, abs_tol=1e-12)
        if differ and not _look_certain(values, texts):
            break
    return f"{texts[0]}%", f"{texts[1]}%"


def _look_certain(values: Sequence[float], texts: Sequence[str]) -> bool:
    """Return whether an uncertain share is written as 0 or 100%."""
    return any(
        value not in (0, 1) and not 0 < float(text) < 100
        for value, text in zip(values, texts, strict=True)
    )
