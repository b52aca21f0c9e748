"""The section ``prevalence/``: actual, called, expected and estimated shares of the positive group or of each class."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np

from cmtrack.grouping import ComposedStep
from cmtrack.metrics.binary import PREDICTED_POSITIVE, Proportion
from cmtrack.metrics.function import Fraction, Function
from cmtrack.metrics.metric import Metric, Section
from cmtrack.metrics.moments import ScoreSamples, TwoClasses
from cmtrack.metrics.samples import Samples
from cmtrack.metrics.spcc import EachScore
from cmtrack.metrics.views import EvaluationViews
from cmtrack.prevalence.class_shares import BinnedShares, ClassShares, class_shares
from cmtrack.prevalence.estimators import binned_estimate, modelled_estimate
from cmtrack.prevalence.fit import doubt, refusal
from cmtrack.prevalence.out_of_fold import EXPOSED, classes_of, pooled, without_each_fold
from cmtrack.prevalence.results import PrevalenceEstimate
from cmtrack.statistics import BinaryCounts
from cmtrack.statistics.collected import Statistics
from cmtrack.statistics.top_scores import TopScoreCounts


class Estimated(Samples):
    """An estimated share of positives, or why there is none; of the evaluated rows, beside their actual share."""

    kinds = ("calibrated", "calibrated rows")
    by_level = True

    def __init__(self, estimate: PrevalenceEstimate | None, actual: float | None) -> None:
        self.estimate, self.actual = estimate, actual

    @classmethod
    def of_views(cls, views: EvaluationViews, kind: str, step: str) -> Estimated | None:
        """The calibrated prevalence of the positive group, where its scores are probabilities."""
        if kind == "calibrated rows":
            view = views.seen(cls)
            return None if view is None or view.actual is None else view
        if views.step is None or views.statistics.ranking_only:
            return None
        return estimated(views.statistics, views.step, views.level)


class EstimatedShares(Samples):
    """Estimated shares of all classes, and what there is to warn of."""

    kinds = ("class shares",)
    by_level = by_pairs = True

    def __init__(self, shares: ClassShares, warnings: tuple[str, ...] = ()) -> None:
        self.shares, self.warnings = shares, warnings

    @classmethod
    def of_views(cls, views: EvaluationViews, kind: str, step: str) -> EstimatedShares | None:
        """The calibrated shares of all classes, where there are no two groups."""
        return (
            None
            if views.seen(EachScore, "class means") is None
            else estimated_shares(views.statistics, views.level)
        )

    def argument(self) -> ClassShares:
        """Return the shares."""
        return self.shares


def estimated(statistics: Statistics, step: ComposedStep, level: float) -> Estimated | None:
    """The calibrated prevalence of the positive group; None without its scores."""
    assert step.positive is not None  # a scored step has a positive group
    if statistics.scores is None or statistics.score_moments is None:
        return None
    own, target = statistics.scores.channels((2, 3), (0, 1)), statistics.target
    by_fold = own if statistics.labelled is None else statistics.labelled
    labelled = pooled(by_fold, 2)
    n0, n1 = statistics.score_moments.n.tolist()
    actual = float(n1) / (n0 + n1) if target is None else None
    # only own labels: a calibration set of one class is refused
    if not (labelled.counts.sum(axis=1) > 0).all():
        return Estimated(None, actual)
    if target is None and statistics.labelled is not None:
        target = own.channels((0, 1))  # given labelled scores, evaluated target
    m0, m1 = (float(c) for c in labelled.counts.sum(axis=1))
    n = float(own.counts.sum() if target is None else target.counts.sum())
    scale = effective_share(statistics)
    effective = n * (scale if statistics.target is None else 1.0)
    positive = step.labels[step.positive]
    if statistics.labelled is not None and target is not None:  # calibration sets carry no weights
        modelled = partial(
            modelled_estimate,
            target=target,
            positive=positive,
            confidence_level=level,
            effective=effective,
        )
        estimate, rests = modelled(labelled), without_each_fold(by_fold, 2)
        if rests:
            estimate = estimate.exposed([modelled(rest) for rest in rests])
    else:
        sizes = (effective, m1 * scale, m0 * scale)
        estimate = binned_estimate(
            labelled, target, positive=positive, confidence_level=level, sizes=sizes
        )
    return Estimated(estimate.unless_refused(), actual)


def estimated_shares(statistics: Statistics, level: float) -> EstimatedShares | None:
    """The calibrated shares of all classes; None without their scores."""
    by_fold = statistics.labelled_tops if statistics.labelled_tops is not None else statistics.tops
    if by_fold is None or statistics.tops is None:
        return None
    size = statistics.tops.n_rows
    labelled = pooled(by_fold, size)
    if len(classes_of(labelled)) < 2:
        return None
    target, scale = statistics.target_tops, effective_share(statistics)
    if target is None and statistics.labelled_tops is not None:
        target = statistics.tops.pooled()
    given = (statistics.labelled_tops is not None, statistics.target_tops is not None)
    scales = (1.0 if given[0] else scale, 1.0 if given[1] else scale)
    shares = class_shares(labelled, target, level, scales)
    rests = without_each_fold(by_fold, size)
    warnings = [EXPOSED] if rests else []
    if rests:
        shares = shares.covering([class_shares(rest, target, level, scales) for rest in rests])
    pvalue = math.nan if target is None else _fit_of_classes(labelled, target, shares, scales)
    reason = refusal(pvalue)
    if reason:
        shares = shares.withdrawn(reason)
        warnings.append(f"no calibrated prevalence of the classes: {reason}")
    if doubtful := doubt(pvalue):
        warnings.append(doubtful)
    return EstimatedShares(shares, tuple(warnings))


def _fit_of_classes(
    labelled: TopScoreCounts,
    target: TopScoreCounts,
    shares: ClassShares,
    scales: tuple[float, float],
) -> float:
    """p-value of the fit of the target to the labelled classes; NaN where it cannot be tested."""
    if not (shares.identified.all() and np.isfinite(shares.values).all()):
        return math.nan
    binned = BinnedShares.of_tops(labelled, target, shares.values)
    return replace(
        binned, counts=binned.counts * scales[0], target=binned.target * scales[1]
    ).fit_pvalue


def effective_share(statistics: Statistics) -> float:
    """Kish's effective sample size over the sum of weights; 1 without fractional weights."""
    totals = statistics.counts.map(lambda table: float(table.sum()))
    return totals.sums / totals.squares


# -- values ---------------------------------------------------------------------------------------


class Actual(Fraction):
    """Share of the samples that are positive."""

    of_labels = True

    def __call__(self, s: TwoClasses) -> Any:
        """The share of positives."""
        return s.n1 / s.n

    def denominator(self, s: TwoClasses) -> None:
        """Return None: every sample counts."""


class Called(Proportion):
    """A share of the predictions, beside what the scores expect of it."""

    def applies(self, views: EvaluationViews) -> bool:
        """True where there are scores."""
        return views.seen(ScoreSamples, "means") is not None


def _expected(s: TwoClasses) -> Any:
    return s.score_sum / s.n


def _bias(s: TwoClasses) -> Any:
    return (s.n0 * s.mean0 + s.n1 * (s.mean1 - 1)) / s.n


def _labels_sd(s: TwoClasses) -> Any:
    variance = s.labels_variance
    return (
        np.sqrt(variance)
        if np.isrealobj(variance) or variance.real > 0
        else complex(math.nan, math.nan)
    )


@dataclass(frozen=True)
class Read(Function):
    """A value of an estimate, and the ends between which it lies."""

    value: Callable[[Any], Any]
    between: Callable[[Any], Any] | None = None

    def __call__(self, estimate: Any) -> Any:
        """The value, or that of each class."""
        return self.value(estimate)

    def ends(self, estimate: Any) -> tuple[Any, Any] | None:
        """The ends of its interval."""
        return None if self.between is None else self.between(estimate)


@dataclass(frozen=True)
class OfEstimate(Read):
    """A number of an estimate, with the ends of its interval where it has one."""

    named: str = "value"

    def __call__(self, e: Estimated) -> float:
        """The number of the estimate; NaN without an estimate."""
        return math.nan if e.estimate is None else self.value(e.estimate)

    def why(self, e: Estimated, k: None) -> str:
        """Reason why it is undefined."""
        if e.estimate is None:
            return "a class has no labelled scores"
        return e.estimate.undefined.get(self.named, "")


class Bias(OfEstimate):
    """An estimated share less the actual one."""

    def __call__(self, e: Estimated) -> float:
        """The estimated share less the actual one; NaN without an actual share."""
        return math.nan if e.actual is None else super().__call__(e) - e.actual


class OfShares(Read):
    """A number of each class's estimated share."""

    def why(self, shares: ClassShares, k: int) -> str:
        """Reason why it is undefined."""
        if shares.refused:
            return shares.refused
        if not shares.identified[k]:
            return "not identified: the scores do not tell this class from others"
        return "no labelled samples of this class"


def _bias_ends(e: Any) -> tuple[float, float]:
    return e.estimate.realised[0] - e.actual, e.estimate.realised[1] - e.actual


# -- declarations ---------------------------------------------------------------------------------

_EXPECTED, _CALIBRATED = "Gubbels (2023), section 1.2.3", "Gubbels (2023), section 0.4"


def _share(
    name: str, value: Any, of: str, formula: str, source: str = _CALIBRATED, **words: Any
) -> Metric:
    """A metric of the section: between 0 and 1 and not ranked, unless ``words`` say otherwise."""
    usual = {"low": 0.0, "high": 1.0, "better": "", "headline": False, "needs": "probabilities"}
    return Metric(
        f"prevalence/{name}", value, of=of, formula=formula, source=source, **{**usual, **words}
    )


_ZERO: dict[str, Any] = {"low": -1.0, "better": "nearest zero"}
_BIAS: dict[str, Any] = {"title": "prevalence bias", "brief": "prev. bias", **_ZERO}
_VARIANCE: dict[str, Any] = {"source": "variance by source", "interval": ""}

PREVALENCE = Section(
    "prevalence",
    "Prevalence",
    (
        _share(
            "actual",
            Actual(),
            "means",
            "share of actual positives",
            "",
            interval="wilson",
            headline=False,
            title="actual prevalence",
        ),
        _share(
            "expected", _expected, "means", "mean score", _EXPECTED, title="expected prevalence"
        ),
        _share(
            "expected_count",
            attrgetter("score_sum"),
            "means",
            "sum of scores",
            _EXPECTED,
            high=math.inf,
        ),
        _share("bias", _bias, "means", "(Σ s − Σ y) / n", _EXPECTED, headline=True, **_BIAS),
        _share(
            "expected_count_sd_labels_only",
            _labels_sd,
            "spread",
            "√Σ s (1 − s): the labels' spread, not the count's error",
            _EXPECTED,
            high=math.inf,
            title="standard deviation of the expected count, labels only",
        ),
        _share(
            "classify_and_count",
            Called(PREDICTED_POSITIVE, BinaryCounts._fields),
            "binary",
            "share of predicted positives",
            "",
            interval="wilson",
        ),
        _share(
            "calibrated",
            OfEstimate(attrgetter("value"), attrgetter("estimate.low", "estimate.high")),
            "calibrated",
            "share of positives by labelled scores. With a calibration set: a stack of density ratios, as "
            'estimate_prevalence(density="auto"). Without one: maximum likelihood over quantile bins, cross-fitted',
            interval="profile",
            headline=True,
            title="calibrated prevalence",
            brief="prevalence",
        ),
        _share(
            "calibrated_low",
            OfEstimate(attrgetter("low")),
            "calibrated",
            "lower end of its interval",
            interval="",
            title="calibrated prevalence, lower end",
            brief="calibrated low",
        ),
        _share(
            "calibrated_high",
            OfEstimate(attrgetter("high")),
            "calibrated",
            "upper end of its interval",
            interval="",
            title="calibrated prevalence, upper end",
            brief="calibrated high",
        ),
        _share(
            "calibrated_count",
            OfEstimate(
                attrgetter("count"), attrgetter("estimate.count_low", "estimate.count_high")
            ),
            "calibrated",
            "calibrated share times the target's size",
            interval="profile",
            high=math.inf,
        ),
        _share(
            "calibrated_bias",
            Bias(attrgetter("value"), _bias_ends),
            "calibrated rows",
            "calibrated − actual",
            interval="profile",
            title="calibrated prevalence bias",
            brief="calibrated bias",
            **_ZERO,
        ),
        _share(
            "share_target",
            OfEstimate(lambda e: e.shares[0]),
            "calibrated",
            "share of the error that comes from the target's size",
            **_VARIANCE,
            title="share of the variance from the target",
        ),
        _share(
            "share_positives",
            OfEstimate(lambda e: e.shares[1]),
            "calibrated",
            "share that comes from the labelled positives",
            **_VARIANCE,
            title="share of the variance from the labelled positives",
        ),
        _share(
            "share_negatives",
            OfEstimate(lambda e: e.shares[2]),
            "calibrated",
            "share that comes from the labelled negatives",
            **_VARIANCE,
            title="share of the variance from the labelled negatives",
        ),
        _share(
            "fit_pvalue",
            OfEstimate(attrgetter("fit_pvalue"), named="fit_pvalue"),
            "calibrated",
            "small: not only the prevalence changed; large: no proof that nothing else did",
            "Pearson's X² of target against mixture",
            interval="",
            title="p-value of the fit",
        ),
        _share(
            "<label>/actual", Actual(), "class means", "share of the class", "", interval="wilson"
        ),
        _share(
            "<label>/expected", _expected, "class means", "mean probability of the class", _EXPECTED
        ),
        _share("<label>/bias", _bias, "class means", "expected − actual", _EXPECTED, **_BIAS),
        _share(
            "<label>/calibrated",
            OfShares(attrgetter("values"), attrgetter("low", "high")),
            "class shares",
            "maximum-likelihood share of the class, all classes jointly",
            interval="profile",
        ),
        _share(
            "<label>/calibrated_low",
            OfShares(attrgetter("low")),
            "class shares",
            "lower end of its interval",
            interval="",
        ),
        _share(
            "<label>/calibrated_high",
            OfShares(attrgetter("high")),
            "class shares",
            "upper end of its interval",
            interval="",
        ),
    ),
    of_positive=True,
)
