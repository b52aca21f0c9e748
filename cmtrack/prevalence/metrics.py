"""Metrics of the section ``prevalence/``: shares of the positive group or of each class.

The section contains the actual share, the predicted share, the share that the scores imply, and the
estimated share.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

import numpy as np

from cmtrack.grouping import ComposedStep, Label
from cmtrack.metrics.binary import PREDICTED_POSITIVE, Proportion
from cmtrack.metrics.function import Fraction, Function
from cmtrack.metrics.metric import Metric, Section
from cmtrack.metrics.moments import ScoreSamples, TwoClasses
from cmtrack.metrics.samples import Samples
from cmtrack.metrics.spcc import EachScore
from cmtrack.metrics.views import EvaluationViews
from cmtrack.prevalence.class_shares import (
    GROUPS,
    BinnedShares,
    ClassShares,
    class_shares,
    counts_by_bin,
)
from cmtrack.prevalence.estimators import binned_estimate, modelled_estimate
from cmtrack.prevalence.fit import doubt, refusal
from cmtrack.prevalence.out_of_fold import EXPOSED, classes_of, pooled, without_each_fold
from cmtrack.prevalence.recalibration import Recalibrated, recalibrated_classes
from cmtrack.prevalence.results import PrevalenceEstimate, covering, disagreement, shares_by_class
from cmtrack.statistics import BinaryCounts
from cmtrack.statistics.collected import Statistics
from cmtrack.statistics.inputs import FloatArray
from cmtrack.statistics.top_scores import TopScoreCounts


class Estimated(Samples):
    """An estimated share of positives, or the reason why there is none.

    ``actual``: the actual share, if the estimate describes the evaluated rows.
    """

    kinds = ("calibrated", "calibrated rows")
    by_level = True

    def __init__(self, estimate: PrevalenceEstimate | None, actual: float | None) -> None:
        self.estimate = estimate
        self.actual = actual

    @classmethod
    def of_views(cls, views: EvaluationViews, kind: str, step: str) -> Estimated | None:
        """Return the calibrated prevalence of the positive group, if scores are probabilities."""
        if kind == "calibrated rows":
            view = views.seen(cls)
            return None if view is None or view.actual is None else view
        if views.step is None or views.statistics.ranking_only:
            return None
        return estimated(views.statistics, views.step, views.level)


class EstimatedShares(Samples):
    """Estimated shares of all classes, with their warnings.

    ``recalibrated``, shape (3, K): the share of each class if a score means the same as in the
        labelled rows, with its interval. NaN for classes without labelled rows.
    """

    kinds = ("class shares",)
    by_level = by_pairs = True

    def __init__(
        self, shares: ClassShares, recalibrated: FloatArray, warnings: tuple[str, ...] = ()
    ) -> None:
        self.shares = shares
        self.recalibrated = recalibrated
        self.warnings = warnings

    @classmethod
    def of_views(cls, views: EvaluationViews, kind: str, step: str) -> EstimatedShares | None:
        """Return the calibrated shares of all classes, unless the step has two groups."""
        if views.seen(EachScore, "class means") is None:
            return None
        return estimated_shares(views.statistics, views.level)


def estimated(statistics: Statistics, step: ComposedStep, level: float) -> Estimated | None:
    """Return the calibrated prevalence of the positive group; None if the group has no scores.

    Raises
    ------
    ValueError
        If the step has no positive group.
    """
    if step.positive is None:
        raise ValueError(f"the step {step.name!r} must have a positive group, got none")
    if statistics.scores is None or statistics.score_moments is None:
        return None
    evaluated = statistics.scores.channels((2, 3), (0, 1))
    target = statistics.target
    actual = None
    if target is None:
        n0, n1 = statistics.score_moments.n.tolist()
        actual = float(n1) / (n0 + n1)
    has_calibration = statistics.labelled is not None
    by_fold = evaluated if statistics.labelled is None else statistics.labelled
    labelled = pooled(by_fold, 2)
    # Only the evaluated rows can lack a class: a calibration set with one class is refused.
    if not (labelled.counts.sum(axis=1) > 0).all():
        return Estimated(None, actual)
    scale = effective_share(statistics)
    options: dict[str, Any] = {"positive": step.labels[step.positive], "confidence_level": level}
    if not has_calibration:
        m0, m1 = labelled.counts.sum(axis=1).tolist()
        n = float(evaluated.counts.sum()) * scale
        if target is not None:
            n = float(target.counts.sum())
        sizes = (n, m1 * scale, m0 * scale)
        estimate = binned_estimate(labelled, target, sizes=sizes, **options)
        if target is not None:
            estimate = estimate.unless_refused()
        return Estimated(estimate, actual)
    # The rows of a calibration set have no weights.
    is_labelled = target is None
    if target is None:
        target = evaluated.channels((0, 1))
        options["effective"] = float(target.counts.sum()) * scale
    else:
        options["effective"] = float(target.counts.sum())
    estimate = modelled_estimate(labelled, target, **options)
    remaining = without_each_fold(by_fold, 2)
    if remaining:
        estimate = estimate.exposed(
            [modelled_estimate(scores, target, **options) for scores in remaining]
        )
    return Estimated(estimate.unless_refused(not is_labelled), actual)


def estimated_shares(statistics: Statistics, level: float) -> EstimatedShares | None:
    """Return the calibrated shares of all classes; None if there are no scores of the classes."""
    if statistics.tops is None:
        return None
    scale = effective_share(statistics)
    by_fold = statistics.tops
    target = statistics.target_tops
    labelled_scale = scale
    target_scale = scale if target is None else 1.0
    if statistics.labelled_tops is not None:
        by_fold = statistics.labelled_tops
        labelled_scale = 1.0  # the rows of a calibration set have no weights
        if target is None:
            target = statistics.tops.pooled()
    size = statistics.tops.n_rows
    labels = statistics.matrix.labels
    labelled = pooled(by_fold, size)
    if len(classes_of(labelled)) < 2:
        return None
    scales = (labelled_scale, target_scale)
    shares = class_shares(labelled, target, level, scales)

    def recalibrate(scores: TopScoreCounts) -> dict[Label, Recalibrated]:
        """Return the share of each class if a score means the same as in labelled rows."""
        counts, binned = counts_by_bin(scores, target, GROUPS)
        return recalibrated_classes(labels, labelled_scale * counts, target_scale * binned, level)

    recalibrated = recalibrate(labelled)
    warnings = []
    remaining = without_each_fold(by_fold, size)
    if remaining:
        shares = shares.covering(
            [class_shares(scores, target, level, scales) for scores in remaining]
        )
        recalibrated = covering(recalibrated, [recalibrate(scores) for scores in remaining])
        warnings.append(EXPOSED)
    pvalue = math.nan
    if target is not None:
        pvalue = _fit_of_classes(labelled, target, shares, scales)
    reason = refusal(pvalue)
    if reason:
        shares = shares.withdrawn(reason)
        warnings.append(f"no calibrated prevalence of the classes: {reason}")
    warnings.append(doubt(pvalue))
    if target is not None:
        by_class = shares_by_class(labels, shares)
        advise = statistics.target_tops is not None
        warnings.append(disagreement(by_class, recalibrated, advise))
    numbers = np.array([found.share for found in recalibrated.values()]).T
    return EstimatedShares(shares, numbers, tuple(filter(None, warnings)))


def _fit_of_classes(
    labelled: TopScoreCounts,
    target: TopScoreCounts,
    shares: ClassShares,
    scales: tuple[float, float],
) -> float:
    """Return the p-value of the test that the target fits the labelled classes; NaN if untested."""
    if not (shares.identified.all() and np.isfinite(shares.values).all()):
        return math.nan
    binned = BinnedShares.of_tops(labelled, target, shares.values)
    labelled_scale, target_scale = scales
    counts = binned.counts * labelled_scale
    return replace(binned, counts=counts, target=binned.target * target_scale).fit_pvalue


def effective_share(statistics: Statistics) -> float:
    """Return Kish's effective sample size / sum of weights, or 1 if weights are whole numbers."""
    totals = statistics.tables.map(lambda table: float(table.sum()))
    return totals.sums / totals.squares


# -- values ---------------------------------------------------------------------------------------


class Actual(Fraction):
    """Share of the rows that are positive."""

    of_labels = True

    def __call__(self, s: TwoClasses) -> Any:
        """Return the share of positives."""
        return s.n1 / s.n

    def denominator(self, s: TwoClasses) -> None:
        """Return None, because every row counts."""


class Called(Proportion):
    """Share of the rows that are predicted as the positive group or class."""

    def applies(self, views: EvaluationViews) -> bool:
        """Return whether there are scores."""
        return views.seen(ScoreSamples, "means") is not None


def _expected(s: TwoClasses) -> Any:
    return s.score_sum / s.n


def _bias(s: TwoClasses) -> Any:
    return (s.n0 * s.mean0 + s.n1 * (s.mean1 - 1)) / s.n


def _labels_sd(s: TwoClasses) -> Any:
    variance = s.labels_variance
    # A complex step computes the derivative. The root has no derivative at variance 0.
    if np.iscomplexobj(variance) and not variance.real > 0:
        return complex(math.nan, math.nan)
    return np.sqrt(variance)


@dataclass(frozen=True)
class Read(Function):
    """A value of an estimate, with its interval."""

    value: Callable[[Any], Any]
    between: Callable[[Any], Any] | None = None

    def __call__(self, estimate: Any) -> Any:
        """Return the value, or an array with the value of each class."""
        return self.value(estimate)

    def ends(self, estimate: Any) -> tuple[Any, Any] | None:
        """Return the interval; None if the value has no interval."""
        if self.between is None:
            return None
        return self.between(estimate)


@dataclass(frozen=True)
class OfEstimate(Read):
    """A number from an estimate, with an interval if the estimate contains one."""

    named: str = "value"

    def __call__(self, e: Estimated) -> float:
        """Return the number from the estimate; NaN if there is no estimate."""
        if e.estimate is None:
            return math.nan
        return self.value(e.estimate)

    def why(self, e: Estimated, k: None) -> str:
        """Return the reason why it is undefined."""
        if e.estimate is None:
            return "a class has no labelled scores"
        return e.estimate.undefined.get(self.named, "")


class Bias(OfEstimate):
    """Estimated share minus the actual share."""

    def __call__(self, e: Estimated) -> float:
        """Return the estimated minus the actual share; NaN if the actual share is unknown."""
        if e.actual is None:
            return math.nan
        return super().__call__(e) - e.actual


class OfShares(Read):
    """A number that describes the estimated share of each class."""

    def why(self, found: EstimatedShares, k: int) -> str:
        """Return the reason why it is undefined."""
        if found.shares.refused:
            return found.shares.refused
        if not found.shares.identified[k]:
            return "not identified: the scores do not separate this class from others"
        return "no labelled rows of this class"


class RecalibratedOfClass(Read):
    """The share of each class if a score means the same as in the labelled rows."""

    def why(self, found: EstimatedShares, k: int) -> str:
        """Return the reason why it is undefined."""
        return "no labelled rows of this class"


def _bias_ends(e: Any) -> tuple[float, float]:
    return e.estimate.realised[0] - e.actual, e.estimate.realised[1] - e.actual


# -- declarations ---------------------------------------------------------------------------------

_EXPECTED = "Gubbels (2023), section 1.2.3"
_CALIBRATED = "Gubbels (2023), section 0.4"
_DIFFERENCE = "Holt and Smith (1979)"


def _share(
    name: str, value: Any, of: str, formula: str, source: str = _CALIBRATED, **words: Any
) -> Metric:
    """Return a metric of the section, in [0, 1] and not ranked unless ``words`` say otherwise."""
    usual = {"low": 0.0, "high": 1.0, "better": "", "headline": False, "needs": "probabilities"}
    words = {**usual, "source": source, **words}
    return Metric(f"prevalence/{name}", value, of=of, formula=formula, **words)


def _variance_share(name: str, index: int, formula: str, part: str) -> Metric:
    """Return the share of the estimate's variance that one kind of rows causes."""
    return _share(
        name,
        OfEstimate(lambda e: e.shares[index]),
        "calibrated",
        formula,
        "variance by source",
        interval="",
        title=f"share of the variance from {part}",
    )


_ZERO: dict[str, Any] = {"low": -1.0, "better": "nearest zero"}
_BIAS: dict[str, Any] = {"title": "prevalence bias", "brief": "prev. bias", **_ZERO}

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
            "√Σ s (1 − s): the spread of the labels, not the error of the count",
            _EXPECTED,
            high=math.inf,
            title="standard deviation of the expected count from the labels alone",
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
            "share of positives estimated from labelled scores. With a calibration set: stacked "
            'density ratios, as in estimate_prevalence(density="auto"). Without one: maximum '
            "likelihood over quantile bins, cross-fitted",
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
            "recalibrated",
            OfEstimate(
                attrgetter("calibration.value"),
                attrgetter("estimate.calibration.low", "estimate.calibration.high"),
                named="calibration",
            ),
            "calibrated",
            "share of positives if a score means the same as in the labelled rows: the mean share "
            "of labelled positives in the quantile bins of the target's scores",
            _DIFFERENCE,
            interval="effective",
            title="recalibrated prevalence",
            brief="recalibrated",
        ),
        _variance_share(
            "share_target",
            0,
            "share of the variance that comes from the size of the target",
            "the target",
        ),
        _variance_share(
            "share_positives",
            1,
            "share of the variance that comes from the labelled positives",
            "the labelled positives",
        ),
        _variance_share(
            "share_negatives",
            2,
            "share of the variance that comes from the labelled negatives",
            "the labelled negatives",
        ),
        _share(
            "fit_pvalue",
            OfEstimate(attrgetter("fit_pvalue"), named="fit_pvalue"),
            "calibrated",
            "a small value shows that not only the prevalence changed; a large value proves "
            "nothing",
            "Pearson's X² statistic of the target's scores against the fitted mixture",
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
            OfShares(attrgetter("shares.values"), attrgetter("shares.low", "shares.high")),
            "class shares",
            "maximum-likelihood share of the class, estimated jointly for all classes",
            interval="profile",
        ),
        _share(
            "<label>/calibrated_low",
            OfShares(attrgetter("shares.low")),
            "class shares",
            "lower end of its interval",
            interval="",
        ),
        _share(
            "<label>/calibrated_high",
            OfShares(attrgetter("shares.high")),
            "class shares",
            "upper end of its interval",
            interval="",
        ),
        _share(
            "<label>/recalibrated",
            RecalibratedOfClass(
                lambda found: found.recalibrated[0], lambda found: tuple(found.recalibrated[1:])
            ),
            "class shares",
            "share of the class if a score means the same as in the labelled rows: the mean share "
            "of labelled rows of the class in the bins of the target's scores",
            _DIFFERENCE,
            interval="effective",
        ),
    ),
    of_positive=True,
)
