"""Results of a prevalence estimate: shares, counts, plans, and labels that agree with a count.

Source: Gubbels (2023), section 0.4 ("Bayesian calibration"). Unlike this source, cmtrack does not
compute the densities from training scores, and its variance includes the error of the labelled
scores. The interval is computed from the adjusted profile likelihood. The source publishes the
square root of sum(tau (1-tau)) as the error of the count (Table 2.4). This number only measures the
random variation of the labels if the probabilities are correct. In the table, the estimated and
actual counts differ by 12 to 29 times this number.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from cmtrack import notebook
from cmtrack._lazy import cached_property
from cmtrack.digits import (
    level,
    percent_with_interval,
    short_percent,
    significant,
    significant_with_interval,
)
from cmtrack.grouping import Label
from cmtrack.metrics.intervals import normal_quantile
from cmtrack.metrics.quantile_bins import BinnedDensities, quantile_bins
from cmtrack.names import as_sentence, quoted
from cmtrack.prevalence.class_moments import Scaling, matching_factors
from cmtrack.prevalence.class_shares import BinnedShares, ClassShares
from cmtrack.prevalence.fit import refusal
from cmtrack.prevalence.mixture import Mixture, Variance
from cmtrack.prevalence.out_of_fold import EXPOSED
from cmtrack.statistics import ScoreCounts
from cmtrack.statistics.inputs import BoolArray, FloatArray

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from cmtrack.prevalence.recalibration import Recalibrated


ASSUMES = "assumes that within each class the scores are distributed as in the labelled rows"
"""The assumption of every estimate.

The test of the fit detects only gross violations, so a large p-value does not confirm it.
"""
_CALIBRATION = "a score means the same as in the labelled rows"
"""The assumption of :attr:`BasePrevalence.calibration`, which needs no mixture of the classes."""
_HALF_WIDTH = 0.05
"""Half-width for which a refused estimate states the number of labelled rows."""
_HALF_WIDTH_IN_POINTS = f"±{significant(_HALF_WIDTH, 3, 2)} percentage points"
_CALIBRATION_COLUMNS = ["calibration", "calibration_low", "calibration_high"]
_MOST_SHOWN = 12
"""Largest number of classes whose shares a text lists."""


class ClassShare(NamedTuple):
    """The share of a class, with an interval."""

    value: float
    low: float
    high: float

    def in_percent(self) -> str:
        """Return the share with its interval in percent."""
        return percent_with_interval(self.value, (self.low, self.high))


def farthest_apart(
    shift: Mapping[Label, ClassShare], recalibrated: Mapping[Label, Recalibrated]
) -> Label | None:
    """Return the class whose two shares are farthest apart, if their intervals are disjoint.

    Returns None if the two intervals of every class overlap.
    """
    distances = {}
    for label, share in shift.items():
        other = recalibrated[label].share
        if max(share.low - other.high, other.low - share.high) > 0:
            distances[label] = abs(share.value - other.value)
    return max(distances, key=distances.__getitem__, default=None)


def covering(
    recalibrated: Mapping[Label, Recalibrated], left_out: Sequence[Mapping[Label, Recalibrated]]
) -> dict[Label, Recalibrated]:
    """Return estimates with intervals that are widened to include the estimates in ``left_out``."""
    return {
        label: found.covering([others[label].share.value for others in left_out])
        for label, found in recalibrated.items()
    }


def disagreement(
    shift: Mapping[Label, ClassShare],
    recalibrated: Mapping[Label, Recalibrated],
    advise: bool = True,
) -> str:
    """Return the warning that two assumptions give different shares; empty if they do not.

    ``advise``: whether to add how many labelled rows of the target show which share is correct.
    """
    label = farthest_apart(shift, recalibrated)
    if label is None:
        return ""
    other = recalibrated[label]
    text = (
        f"the share of {quoted(label)} is {shift[label].in_percent()} if within each class the "
        "scores are distributed as in the labelled rows, and "
        f"{other.share.in_percent()} if {_CALIBRATION}"
    )
    if advise:
        text += f"; {_rows_that_tell(shift[label], other)}"
    return text


def _rows_that_tell(share: ClassShare, other: Recalibrated) -> str:
    """Return the words on the labelled rows that show which of two shares is correct."""
    rows = significant(other.rows_to_tell(share.value), 2)
    return f"about {rows} labelled rows of the target would show which share is correct"


@dataclass(frozen=True)
class SamplePlan:
    """Numbers of additional rows that result in a requested half-width, for each kind of row.

    Attributes
    ----------
    half_width : float
        The requested half-width.
    now : float
        The half-width z sqrt(V) of this estimate.
    target, positives, negatives : int or None
        Number of target scores, labelled positives or labelled negatives to add if only this kind
        is added. It is 0 if no rows are needed. It is None if adding only this kind is not enough,
        because the other two parts of the variance are already too large.
    """

    half_width: float
    now: float
    target: int | None
    positives: int | None
    negatives: int | None


@dataclass(frozen=True, eq=False)
class CountedLabels:
    """Labels of target scores.

    Attributes
    ----------
    positive : ndarray of shape (n,) of bool
    tied : int
        If the count would divide a block of rows with equal scores, the number of rows in this
        block, and otherwise 0. All rows in the block get the label for which the number of
        positives is closer to the count.
    """

    positive: BoolArray
    tied: int


def sample_plan(
    spread: Variance, sizes: tuple[float, float, float], half_width: float, confidence_level: float
) -> SamplePlan:
    """Return the number of rows to add to reach a half-width, if only one kind is added.

    For the target, the function solves z^2 (V_t n/n' + V_1 + V_0) = half_width^2 for n'. For the
    labelled rows of each class, it solves the corresponding equation.
    """
    if not half_width > 0:
        raise ValueError(f"half_width must be positive, got {half_width!r}")
    z = normal_quantile(confidence_level)
    wanted = (half_width / z) ** 2

    def missing(part: float, size: float) -> int | None:
        if spread.total <= wanted:
            return 0
        room = wanted - (spread.total - part)
        if not room > 0 or not math.isfinite(room):
            return None
        return math.ceil(size * (part / room - 1) - 1e-9)

    n, m1, m0 = sizes
    return SamplePlan(
        half_width,
        z * math.sqrt(spread.total),
        missing(spread.target, n),
        missing(spread.positives, m1),
        missing(spread.negatives, m0),
    )


def highest_scores(scores: FloatArray, count: float) -> CountedLabels:
    """Label the round(count) highest scores as positive, with one label for equal scores."""
    wanted = round(count)
    if wanted <= 0:
        return CountedLabels(np.zeros(len(scores), dtype=bool), 0)
    if wanted >= len(scores):
        return CountedLabels(np.ones(len(scores), dtype=bool), 0)
    last = np.partition(scores, len(scores) - wanted)[len(scores) - wanted]
    above = scores > last
    reaching = scores >= last
    n_above = int(above.sum())
    n_reaching = int(reaching.sum())
    if n_reaching == wanted:
        return CountedLabels(reaching, 0)
    if n_reaching - wanted <= wanted - n_above:
        return CountedLabels(reaching, n_reaching - n_above)
    return CountedLabels(above, n_reaching - n_above)


class Likelihood(NamedTuple):
    """Deviance of each prevalence on a grid.

    The deviance is 0 at the estimate, and equals the chi-square quantile at the ends of an
    interval.

    Attributes
    ----------
    prevalence : ndarray of shape (P,)
    adjusted : ndarray of shape (P,)
        Deviance for the variance that the estimate's interval uses. This variance includes the
        error of the labelled scores, unless ``interval="naive"``.
    naive : ndarray of shape (P,)
        Deviance if the densities are assumed to be known.
    """

    prevalence: FloatArray
    adjusted: FloatArray
    naive: FloatArray


def shares_by_class(classes: Sequence[Label], shares: ClassShares) -> dict[Label, ClassShare]:
    """Return the share of each class with its interval."""
    numbers = map(ClassShare, shares.values.tolist(), shares.low.tolist(), shares.high.tolist())
    return dict(zip(classes, numbers, strict=True))


def _listed(shares: Mapping[Label, ClassShare]) -> str:
    """Return shares with intervals as fractions, with labels if there are several classes."""
    if len(shares) == 1:
        return significant_with_interval(*next(iter(shares.values())))
    texts = [f"{label!r}: {significant_with_interval(*share)}" for label, share in shares.items()]
    text = ", ".join(texts[:_MOST_SHOWN])
    if len(texts) > _MOST_SHOWN:
        text += f", … ({len(texts)} classes in all)"
    return text


# -- estimates ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class BasePrevalence(ABC):
    """An estimated share of positives in a target, with its standard error.

    Attributes
    ----------
    value, low, high : float
        Prevalence and its interval, in [0, 1]; NaN if the prevalence is not identified. They are
        also NaN if the estimate is refused because the p-value of its fit is below 0.01; see
        :attr:`shift`.
    confidence_level : float
    positive : label
    n_target, n_positives, n_negatives : float
        (Effective) sizes of the target and of the labelled scores of each class.
    variance : Variance
        By source: target, labelled positives, labelled negatives.
    interval : str
        The method of the interval.
    density : str
        The density model.
    fit_statistic, fit_df, fit_pvalue : float, int, float
        Results of the test whether the target's scores are a mixture of the labelled densities. A
        small p-value means that not only the prevalence differs from the labelled rows. If it is
        below 0.05, a warning advises against using the estimate. If it is below 0.01, there is no
        estimate. A large p-value does not prove anything, because the test detects only large
        changes. The p-value is NaN if the fit cannot be tested.
    realised : (float, float)
        Interval for the actual share of positives in the target itself, computed with the same
        method.
    undefined : dict of str to str
        For the name of each number that is NaN, the reason why it is NaN.
    warnings : tuple of str
    refused : BasePrevalence or None
        The refused estimate, if the p-value of the fit is below 0.01. Do not use its numbers.
    recalibrated : dict of label to Recalibrated
        For each class, its share if a score means the same as in the labelled rows. If there are
        two classes, the only key is the positive class.

    Examples
    --------
    >>> import numpy as np
    >>> from cmtrack import estimate_prevalence
    >>> rng, y = np.random.default_rng(0), np.repeat([0, 1], 500)
    >>> target = np.concatenate((rng.normal(0, 1, 1_800), rng.normal(2, 1, 200)))
    >>> estimate = estimate_prevalence(target, calibration=(y, rng.normal(2 * y)), density="bins")
    >>> estimate.n_target, estimate.count_low < 200 < estimate.count_high
    (2000.0, True)
    """

    value: float
    low: float
    high: float
    confidence_level: float
    positive: Label
    n_target: float
    variance: Variance
    interval: str
    _: KW_ONLY
    density: str = "bins"
    fit_statistic: float = math.nan
    fit_df: int = 0
    fit_pvalue: float = math.nan
    realised: tuple[float, float] = (math.nan, math.nan)
    undefined: dict[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    refused: Self | None = field(default=None, repr=False)
    recalibrated: dict[Label, Recalibrated] = field(default_factory=dict, repr=False)

    @property
    def shift(self) -> ClassShare:
        """The value and interval if the assumption holds, even if the test refuses them."""
        estimate = self.refused or self
        return ClassShare(estimate.value, estimate.low, estimate.high)

    @property
    def calibration(self) -> ClassShare:
        """The share and its interval if a score means the same as in the labelled rows.

        It is the mean share of labelled positives in the bins of the target's scores. This
        assumption is different from the assumption of :attr:`shift`, and the test of the fit does
        not depend on it.
        """
        return self.recalibrated[self.positive].share

    @property
    def _shift_by_class(self) -> dict[Label, ClassShare]:
        """The shares that :attr:`recalibrated` is compared with."""
        return {self.positive: ClassShare(self.value, self.low, self.high)}

    def unless_refused(self, advise: bool = True) -> Self:
        """Return the estimate; if the test refuses it, a reason replaces its numbers.

        If the test does not refuse it, but the intervals of :attr:`shift` and :attr:`calibration`
        are disjoint, a warning is added. ``advise``: whether the warning recommends to label rows
        of the target.
        """
        reason = refusal(self.fit_pvalue)
        if not reason:
            warning = disagreement(self._shift_by_class, self.recalibrated, advise)
            if not warning:
                return self
            return replace(self, warnings=(*self.warnings, warning))
        numbers = ("value", "low", "high", "count", "count_low", "count_high")
        warnings = [warning for warning in self.warnings if warning == EXPOSED]
        return replace(
            self,
            value=math.nan,
            low=math.nan,
            high=math.nan,
            realised=(math.nan, math.nan),
            undefined={**self.undefined, **dict.fromkeys(numbers, reason)},
            warnings=(*warnings, reason),
            refused=self,
        )

    @property
    def why(self) -> str:
        """The reason why there is no estimate; empty if there is one."""
        return self.undefined.get("value", "")

    @property
    @abstractmethod
    def n_positives(self) -> float:
        """Labelled rows of the positive class."""

    @property
    @abstractmethod
    def n_negatives(self) -> float:
        """Labelled rows of all other classes."""

    @property
    def count(self) -> float:
        """Estimated number of positives in this target."""
        return self.value * self.n_target

    @property
    def count_low(self) -> float:
        """Lower end of the interval of the number of positives in *this* target."""
        return self.realised[0] * self.n_target

    @property
    def count_high(self) -> float:
        """Upper end of the interval of the number of positives in *this* target."""
        return self.realised[1] * self.n_target

    @property
    def count_sd(self) -> float:
        """Standard error of :attr:`count` for this target: n sqrt(V - pi(1-pi)/n)."""
        spread = self.variance.total - self.value * (1 - self.value) / self.n_target
        if not math.isfinite(spread):
            return math.nan
        return self.n_target * math.sqrt(max(spread, 0.0))

    @property
    def shares(self) -> tuple[float, float, float]:
        """Shares of the variance due to (target, labelled positives, labelled negatives).

        The largest share shows which rows to add: scored target rows, or labelled rows of one
        class.
        """
        if not math.isfinite(self.variance.total):
            return (math.nan, math.nan, math.nan)
        return self.variance.shares

    @property
    def inflation(self) -> float:
        """Total variance / target variance, which the naive likelihood interval assumes to be 1."""
        if not math.isfinite(self.variance.total):
            return math.nan
        return self.variance.total / self.variance.target

    @property
    @abstractmethod
    def implied_spcc(self) -> float:
        """The sPCC of the recalibrated posterior that the model implies."""

    @property
    @abstractmethod
    def sd_labels_only(self) -> float:
        """Spread of the labels alone, which is not the standard error of the count.

        It is sqrt(sum tau (1-tau)) of the posteriors tau.
        """

    @property
    def efficiency(self) -> float:
        """Number of labelled target rows that would be as informative as the scores.

        The number is n sPCC^2, and it assumes that the densities are known.
        """
        return self.n_target * self.implied_spcc**2

    def exposed(self, left_out: Sequence[Self]) -> Self:
        """Return the estimate with the warning that its labelled scores come from different fits.

        Both intervals are widened to include the estimates that leave out one fold of labelled
        scores.
        """
        warnings = (EXPOSED, *self.warnings)
        others = [estimate.recalibrated for estimate in left_out]
        recalibrated = covering(self.recalibrated, others)
        if math.isnan(self.value):
            return replace(self, warnings=warnings, recalibrated=recalibrated)
        values = [estimate.value for estimate in left_out if not math.isnan(estimate.value)]
        low, high = self.realised
        return replace(
            self,
            low=min([self.low, *values]),
            high=max([self.high, *values]),
            realised=(min([low, *values]), max([high, *values])),
            warnings=warnings,
            recalibrated=recalibrated,
        )

    def plan(self, half_width: float) -> SamplePlan:
        """Return the number of rows to add to reach a half-width, if only one kind is added.

        The kinds are target scores, labelled positives and labelled negatives.

        Examples
        --------
        >>> import numpy as np
        >>> from cmtrack import estimate_prevalence
        >>> rng, y = np.random.default_rng(0), np.repeat([0, 1], 500)
        >>> target = np.concatenate((rng.normal(0, 1, 1_800), rng.normal(2, 1, 200)))
        >>> labelled = (y, rng.normal(2 * y))
        >>> estimate = estimate_prevalence(target, calibration=labelled, density="bins")
        >>> plan = estimate.plan(half_width=0.028)
        >>> plan.now > 0.028, plan.target > 0, plan.positives
        (True, True, None)
        """
        self._check_estimated("a plan")
        sizes = (self.n_target, self.n_positives, self.n_negatives)
        return sample_plan(self.variance, sizes, half_width, self.confidence_level)

    def labels(self, scores: Any, rule: str = "posterior") -> CountedLabels:
        """Label scores by the posterior or by the estimated count.

        Parameters
        ----------
        scores : array-like of shape (n,), for more than two classes (n, K)
        rule : "posterior" or "count"
            "posterior": the positive class if it is the most probable one, which may find no
            positives if they are rare. "count": the round(share x n) rows with the highest scores
            of the positive class; equal scores get the same label.
        """
        if rule not in ("posterior", "count"):
            raise ValueError(f"rule must be 'posterior' or 'count', got {rule!r}")
        self._check_estimated("labelling")
        array = np.asarray(scores, dtype=np.float64)
        if rule == "posterior":
            return CountedLabels(self._most_probable(array), 0)
        return highest_scores(self._ordering(array), self.value * len(array))

    @abstractmethod
    def posterior(self, scores: Any) -> FloatArray:
        """Return recalibrated probabilities in the target."""

    @abstractmethod
    def _most_probable(self, scores: FloatArray) -> BoolArray:
        """Return flags of the rows whose most probable class is the positive one, shape (n,)."""

    @abstractmethod
    def _ordering(self, scores: FloatArray) -> FloatArray:
        """Return numbers that increase with the posterior of the positive class, shape (n,)."""

    def _check_estimated(self, use: str) -> None:
        """Raise ValueError if there is no estimate; ``use`` says why an estimate is needed."""
        if math.isnan(self.value) or math.isnan(self.variance.total):
            raise ValueError(
                f"{use} needs an identified prevalence; this estimate is NaN: {self.why}"
            )

    @property
    def _rows_needed(self) -> str:
        """The beginning of a sentence on the labelled rows that result in the half-width."""
        rows = [share.rows_needed(_HALF_WIDTH) for share in self.recalibrated.values()]
        return f"About {significant(max(rows), 2)} labelled rows of this target would give"

    @property
    def _instead(self) -> str:
        """The text that follows the reason why there is no estimate, with shares as fractions."""
        if self.refused is None:
            return ""
        shares = _listed({label: found.share for label, found in self.recalibrated.items()})
        return f". If {_CALIBRATION}: {shares}. {self._rows_needed} ±{_HALF_WIDTH:g}"

    @property
    def _disagreement(self) -> str:
        """The text on a share that differs if a score means the same, as a fraction."""
        shift = self._shift_by_class
        label = farthest_apart(shift, self.recalibrated)
        if label is None:
            return ""
        other = self.recalibrated[label]
        share = significant_with_interval(*other.share)
        if len(shift) > 1:
            share = f"{label!r}: {share}"
        return f"; {share} if {_CALIBRATION}; {_rows_that_tell(shift[label], other)}"

    @property
    def _notes(self) -> list[str]:
        """The assumption of the estimate, all warnings, and all reasons except :attr:`why`."""
        notes = [] if math.isnan(self.value) else [f"This {ASSUMES}."]
        remarks = dict.fromkeys((*self.warnings, *self.undefined.values()))
        notes.extend(remark for remark in remarks if remark != self.why)
        return notes

    @abstractmethod
    def to_frame(self) -> pd.DataFrame:
        """Return the estimates as a table."""


@dataclass(frozen=True, eq=False)
class PrevalenceEstimate(BasePrevalence):
    """An estimated share of positives in a target of two classes, with its standard error.

    The class adds these attributes to :class:`BasePrevalence`:

    Attributes
    ----------
    mixture : Mixture
        The target's scores with the densities of both classes.
    densities : BinnedDensities
        Densities of the labelled scores by class.
    target_scores : ScoreCounts or ndarray of shape (n,)
    members : dict of str to float
        With ``density="auto"``: the weight of each stacked model.
    deviance : callable, optional
        Quasi-deviance as a function of a grid of prevalences and the interval's method, for
        estimates without a likelihood.
    fit_contributions : tuple of (int, float)
        The bins with the worst fit, and the contribution of each bin to the statistic.

    Examples
    --------
    >>> import numpy as np
    >>> from cmtrack import estimate_prevalence
    >>> rng, y = np.random.default_rng(0), np.repeat([0, 1], 500)
    >>> target = np.concatenate((rng.normal(0, 1, 1_800), rng.normal(2, 1, 200)))
    >>> estimate = estimate_prevalence(target, calibration=(y, rng.normal(2 * y)), density="bins")
    >>> round(estimate.value, 1), estimate.low < 0.1 < estimate.high
    (0.1, True)
    """

    mixture: Mixture = field(repr=False)
    densities: BinnedDensities = field(repr=False)
    target_scores: ScoreCounts | FloatArray = field(repr=False)
    _: KW_ONLY
    members: dict[str, float] = field(default_factory=dict)
    deviance: Callable[[FloatArray, str], FloatArray] | None = field(default=None, repr=False)
    fit_contributions: tuple[tuple[int, float], ...] = ()

    @property
    def n_positives(self) -> float:
        """Labelled positives."""
        return self.densities.m1

    @property
    def n_negatives(self) -> float:
        """Labelled negatives."""
        return self.densities.m0

    @cached_property
    def target(self) -> ScoreCounts:
        """The target's scores, counted."""
        if isinstance(self.target_scores, ScoreCounts):
            return self.target_scores
        return ScoreCounts.from_scores(self.target_scores, exact=True)

    @property
    def implied_spcc(self) -> float:
        """The sPCC of the recalibrated posterior that the model implies: sqrt(I pi (1-pi))."""
        return math.sqrt(self.variance.information * self.value * (1 - self.value))

    @property
    def sd_labels_only(self) -> float:
        """Spread of the labels alone, which is not the standard error of the count.

        It is sqrt(sum tau (1-tau)) of the binned posteriors tau.
        """
        tau = self.value * self.mixture.p / self.mixture.mix(self.value)
        return math.sqrt(float(self.mixture.w @ (tau * (1 - tau))))

    @cached_property
    def missed_move(self) -> float:
        """The largest change in the value caused by a shift of scores that the test would miss.

        The scores of both classes are tilted, which means that their densities are multiplied by
        exp(d s). Here s is the logit of the score in standard deviations, and d is the smallest
        downward or upward tilt that the test detects in half of all cases (at most 5). The change
        is NaN if there is no test.
        """
        if math.isnan(self.fit_pvalue):
            return math.nan
        densities = self.densities
        counts = np.stack((densities.negatives, densities.positives))
        ranks = np.arange(len(densities.p), dtype=np.float64)
        group = ranks.astype(np.int64)
        if len(group) > self.fit_df + 2:  # the test has fewer bins than the density model
            group = quantile_bins(ScoreCounts(ranks, counts, exact=True)).bin_of(ranks)
        part = self.mixture.w + 1e-9
        place = np.bincount(group, part * densities.centres) / np.bincount(group, part)
        grouped = [np.bincount(group, row) for row in (*counts, self.mixture.w)]
        table = np.stack(grouped).astype(np.float64)
        binned = BinnedShares(table[:2], table[2], place)
        if not binned.identified:
            return math.nan
        return float(binned.missed_move[1])

    @property
    def _notes(self) -> list[str]:
        notes = super()._notes
        if not math.isnan(self.value) and not math.isnan(self.missed_move):
            most = significant(self.missed_move, 2, 2)
            notes.append(
                f"A shift that the test of the fit would miss can change it by up to {most} points."
            )
        return notes

    def other_share(self, advise: bool = True) -> str:
        """Return sentences on :attr:`calibration`, if readers need a second share.

        They need it if the estimate is refused, or if the two intervals are disjoint. Otherwise the
        text is empty. ``advise``: whether to recommend to label rows of the target.
        """
        if self.refused is not None:
            advice = f"{self._rows_needed} {_HALF_WIDTH_IN_POINTS}"
        elif farthest_apart(self._shift_by_class, self.recalibrated) is not None:
            advice = _rows_that_tell(self.shift, self.recalibrated[self.positive])
        else:
            return ""
        share = self.calibration.in_percent()
        text = f"If {_CALIBRATION}, the share of {quoted(self.positive)} is {share}."
        if advise:
            text += f" {as_sentence(advice)}"
        return text

    def likelihood(self, n_points: int = 401) -> Likelihood:
        """Return the deviance 2 (l_max - l) on a grid of prevalences, adjusted and naive.

        The adjusted curve crosses the chi-square quantile at :attr:`low` and :attr:`high`, unless
        the interval was widened to include estimates that leave out one fold. If there is no
        estimate, the deviance is 0 everywhere.
        """
        if math.isnan(self.value):
            flat = np.zeros(n_points)
            return Likelihood(np.linspace(0.0, 1.0, n_points), flat, flat)
        reach = max(self.high - self.value, self.value - self.low, 1e-6) * 2
        low = max(0.0, self.value - reach)
        high = min(1.0, self.value + reach)
        grid = np.union1d(np.linspace(low, high, n_points), [self.value])
        if self.deviance is not None:
            adjusted = self.deviance(grid, self.interval)
            return Likelihood(grid, adjusted, self.deviance(grid, "naive"))
        top = self.mixture.log_likelihood(self.value)
        gaps = np.array([top - self.mixture.log_likelihood(float(x)) for x in grid])
        naive = 2 * gaps * (self._effective / float(self.mixture.w.sum()))
        if self.interval == "naive" or not math.isfinite(self.inflation):
            return Likelihood(grid, naive, naive)
        return Likelihood(grid, naive / self.inflation, naive)

    @property
    def _effective(self) -> float:
        """Effective size of the target, which is below the sum of weights if rows have weights."""
        information = self.variance.target * self.variance.information
        if math.isfinite(information) and information > 0:
            return 1 / information
        return float(self.mixture.w.sum())

    def posterior(self, scores: Any, method: str = "interpolated") -> FloatArray:
        """Return recalibrated probabilities of being positive in the target.

        Parameters
        ----------
        scores : array-like of shape (n,)
        method : "interpolated" or "bins"
            "interpolated": log ratios interpolated between bin centres, shifted so that the
            probabilities sum to the estimated count over the target. "bins": one value per bin.
            The probabilities then sum exactly to the count, but the order of the rows changes.

        Examples
        --------
        >>> import numpy as np
        >>> from cmtrack import estimate_prevalence
        >>> rng, y = np.random.default_rng(0), np.repeat([0, 1], 500)
        >>> target = np.concatenate((rng.normal(0, 1, 1_800), rng.normal(2, 1, 200)))
        >>> labelled = (y, rng.normal(2 * y))
        >>> estimate = estimate_prevalence(target, calibration=labelled, density="bins")
        >>> bool(abs(estimate.posterior(target).sum() - estimate.count) < 0.01)
        True
        """
        array = np.asarray(scores, dtype=np.float64)
        if method not in ("interpolated", "bins"):
            raise ValueError(f"method must be 'interpolated' or 'bins', got {method!r}")
        if math.isnan(self.value) or self.value in (0.0, 1.0):
            return np.full(array.shape, self.value)
        densities = self.densities
        prior = math.log(self.value / (1 - self.value))
        log_ratio = np.log(densities.p / densities.q)
        if method == "bins":
            return np.asarray(expit(log_ratio[densities.bin_of(array)] + prior))
        order = np.argsort(densities.centres, kind="stable")

        def logit(values: FloatArray) -> FloatArray:
            places = densities.line(values)
            return np.interp(places, densities.centres[order], log_ratio[order]) + prior

        weight = self.target.counts.sum(axis=0).astype(np.float64)
        at_target = logit(self.target.values)

        def excess(shift: float) -> float:
            return float(weight @ expit(at_target + shift)) / float(weight.sum()) - self.value

        shift = brentq(excess, -60.0, 60.0)
        return np.asarray(expit(logit(array) + shift))

    def _most_probable(self, scores: FloatArray) -> BoolArray:
        return np.asarray(self.posterior(scores) >= 0.5)

    def _ordering(self, scores: FloatArray) -> FloatArray:
        return scores

    def figure(self) -> Figure:
        """Draw the likelihood of the prevalence, with the interval of the estimate."""
        from cmtrack.prevalence.figures import likelihood_figure

        return likelihood_figure(self)

    def to_frame(self) -> pd.DataFrame:
        """Return one row: value, interval, count, shares of the variance, fit."""
        from cmtrack._pandas import pd

        share_target, share_positives, share_negatives = self.shares
        row: dict[str, Any] = {
            "positive": self.positive,
            "value": self.value,
            "low": self.low,
            "high": self.high,
            "count": self.count,
            "count_low": self.count_low,
            "count_high": self.count_high,
            "count_sd": self.count_sd,
            "calibration": self.calibration.value,
            "calibration_low": self.calibration.low,
            "calibration_high": self.calibration.high,
            "fit_pvalue": self.fit_pvalue,
            "share_target": share_target,
            "share_positives": share_positives,
            "share_negatives": share_negatives,
            "why": self.why,
        }
        return pd.DataFrame([row])

    def __repr__(self) -> str:
        n = f"{self.n_target:,g}"
        if math.isnan(self.value):
            why = f"{self.why}{self._instead}"
            return f"PrevalenceEstimate({self.positive!r}: no estimate of {n}; {why})"
        share = significant_with_interval(self.value, self.low, self.high)
        return (
            f"PrevalenceEstimate({self.positive!r}: {share}, "
            f"count {self._whole_count} of {n}; {ASSUMES}{self._disagreement})"
        )

    @property
    def _whole_count(self) -> str:
        return f"{self.count:,.0f} [{self.count_low:,.0f}, {self.count_high:,.0f}]"

    def _repr_html_(self) -> str:
        """Return HTML that shows the numbers, the likelihood and the warnings."""
        subject = f"The share of “{self.positive}” in the population"
        if math.isnan(self.value):
            text = f"{subject} is not estimated: {self.why}. {self.other_share()}".rstrip()
            return notebook.view(notebook.sentence(text), notes=self._notes)
        n = f"{self.n_target:,g}"
        share = percent_with_interval(self.value, (self.low, self.high))
        numbers = (
            f"{subject} is {share}: {self._whole_count} of these {n} "
            f"({level(self.confidence_level)} intervals)."
        )
        target, positives, negatives = map(short_percent, self.shares)
        sources = (
            f"{target} of the variance comes from the {n} scores, "
            f"{positives} from the {self.n_positives:,g} labelled positives, "
            f"{negatives} from the {self.n_negatives:,g} labelled negatives."
        )
        return notebook.view(
            notebook.sentence(numbers),
            notebook.sentence(sources),
            notebook.picture(self.figure()),
            notes=self._notes,
        )


@dataclass(frozen=True, eq=False)
class ClassPrevalenceEstimate(BasePrevalence):
    """Estimated shares of K classes.

    ``value``, ``low``, ``high`` and ``count`` describe the class ``positive``.

    Attributes
    ----------
    classes : tuple of length K
    class_shares : ClassShares
        Shares of all classes, with the covariance of the shares.
    n_labelled : ndarray of shape (K,)
        Labelled rows of each class.
    scaling : Scaling or None
        The recalibration; None for ``density="bins"``.
    at_target : ndarray of shape (n, K)
        The target's probabilities. If the models of all K folds scored the target, the array
        contains the rows once for each model, one model after the other.
    target_weights : ndarray of shape (n,) or None
        Weight of each of these rows; None if the weight of each row is 1.
    binned : BinnedShares or None
        The bins for the test of the fit; None if the fit is not tested.

    Examples
    --------
    >>> import numpy as np
    >>> from cmtrack import estimate_prevalence
    >>> rng = np.random.default_rng(0)
    >>> probabilities = rng.dirichlet([1, 1, 1], 600)
    >>> y = (rng.random(600)[:, None] > probabilities.cumsum(axis=1)).sum(axis=1)
    >>> estimate = estimate_prevalence(probabilities, calibration=(y, probabilities))
    >>> value, low, high = estimate.by_class[0]
    >>> estimate.classes, low < value < high
    ((0, 1, 2), True)
    """

    classes: tuple[Label, ...]
    class_shares: ClassShares = field(repr=False)
    n_labelled: FloatArray = field(repr=False)
    scaling: Scaling | None = field(repr=False)
    at_target: FloatArray = field(repr=False)
    target_weights: FloatArray | None = field(default=None, repr=False)
    binned: BinnedShares | None = field(default=None, repr=False)

    @cached_property
    def missed_move(self) -> dict[Label, float]:
        """The largest change in each share caused by a shift of scores that the test would miss.

        It is defined as :attr:`PrevalenceEstimate.missed_move`, but the score of each class is
        tilted separately. If there are more than ten classes, only the largest probability is
        tilted, which changes the shares less. The result is empty if there is no test.
        """
        if self.binned is None:
            return {}
        moves = zip(self.classes, self.binned.missed_move.tolist(), strict=True)
        return {label: move for label, move in moves if math.isfinite(move)}

    @property
    def _notes(self) -> list[str]:
        notes = super()._notes
        moves = self.missed_move
        if self.refused is None and moves:
            label = max(moves, key=moves.__getitem__)
            most = f"{significant(moves[label], 2, 2)} points (“{label}”)"
            notes.append(
                f"A shift that the test of the fit would miss moves a share by up to {most}."
            )
        return notes

    def exposed(self, left_out: Sequence[Self]) -> Self:
        """Add the warning, widen the intervals of all classes, and return the estimate."""
        shares = self.class_shares.covering([estimate.class_shares for estimate in left_out])
        return replace(super().exposed(left_out), class_shares=shares)

    def unless_refused(self, advise: bool = True) -> Self:
        """Return the estimate; if the test refuses it, the shares of the classes are removed."""
        estimate = super().unless_refused(advise)
        if estimate.refused is None:
            return estimate
        return replace(
            estimate,
            class_shares=self.class_shares.withdrawn(estimate.why),
            undefined={**estimate.undefined, "by_class": estimate.why},
        )

    @property
    def by_class(self) -> dict[Label, ClassShare]:
        """The share of each class as (value, low, high)."""
        return shares_by_class(self.classes, self.class_shares)

    @property
    def calibration_by_class(self) -> dict[Label, ClassShare]:
        """The share of each class if a score means the same as in the labelled rows.

        The entry of the class ``positive`` is :attr:`calibration`.
        """
        return {label: found.share for label, found in self.recalibrated.items()}

    @property
    def _shift_by_class(self) -> dict[Label, ClassShare]:
        return self.by_class

    @property
    def n_positives(self) -> float:
        """Labelled rows of the positive class."""
        return float(self.n_labelled[self.classes.index(self.positive)])

    @property
    def n_negatives(self) -> float:
        """Labelled rows of all other classes."""
        return float(self.n_labelled.sum()) - self.n_positives

    @property
    def implied_spcc(self) -> float:
        """The sPCC of the recalibrated posterior of the positive class that the model implies."""
        tau = self._ordering(self.at_target)
        spread = float(np.average((tau - self.value) ** 2, weights=self.target_weights))
        if not 0 < self.value < 1:
            return math.nan
        return math.sqrt(spread / (self.value * (1 - self.value)))

    @property
    def sd_labels_only(self) -> float:
        """Spread of the labels of the positive class, which is not the standard error of the count.

        It is sqrt(sum tau (1-tau)) of its posteriors tau.
        """
        tau = self._ordering(self.at_target)
        mean = float(np.average(tau * (1 - tau), weights=self.target_weights))
        return math.sqrt(mean * self.n_target)

    @property
    def _scaling(self) -> Scaling:
        """The recalibration; raises ValueError if there is none."""
        if self.scaling is None:
            raise ValueError(
                "posterior needs recalibrated probabilities: use density='auto', got density='bins'"
            )
        return self.scaling

    @cached_property
    def _factors(self) -> FloatArray:
        """Factors (K,) of the ratios that make mean posteriors over the target equal the shares."""
        ratios = self._scaling.ratios(self.at_target)
        return matching_factors(ratios, self.class_shares.values, self.target_weights)

    def posterior(self, scores: Any) -> FloatArray:
        """Return recalibrated probabilities (n, K) in the target, from probabilities (n, K).

        Their means over the target are the estimated shares.
        """
        ratios = self._scaling.ratios(np.asarray(scores, dtype=np.float64))
        weighted = ratios * self._factors
        return weighted / weighted.sum(axis=1, keepdims=True)

    def _most_probable(self, scores: FloatArray) -> BoolArray:
        best = self.posterior(scores).argmax(axis=1)
        return np.asarray(best == self.classes.index(self.positive))

    def _ordering(self, scores: FloatArray) -> FloatArray:
        return self.posterior(scores)[:, self.classes.index(self.positive)]

    def to_frame(self) -> pd.DataFrame:
        """Return one row per class, with its label, share and number, and with both intervals.

        The columns ``calibration``, ``calibration_low`` and ``calibration_high`` contain
        :attr:`calibration_by_class`.
        """
        from cmtrack._pandas import pd

        rows = [{"label": label, **share._asdict()} for label, share in self.by_class.items()]
        low, high = self.class_shares.realised
        recalibrated = np.array(list(self.calibration_by_class.values()))
        return pd.DataFrame(rows).assign(
            count=self.n_target * self.class_shares.values,
            count_low=self.n_target * low,
            count_high=self.n_target * high,
            calibration=recalibrated[:, 0],
            calibration_low=recalibrated[:, 1],
            calibration_high=recalibrated[:, 2],
            why=self.why,
        )

    def __repr__(self) -> str:
        name = type(self).__name__
        n = f"{self.n_target:,g}"
        n_classes = len(self.classes)
        if self.refused is not None:
            return f"{name}({n_classes} classes: no estimate of {n}; {self.why}{self._instead})"
        return f"{name}({_listed(self.by_class)}, of {n}; {ASSUMES}{self._disagreement})"

    def _repr_html_(self) -> str:
        """Return HTML that shows the results for each class, the assumption and the warnings."""
        if self.refused is not None:
            text = (
                f"The shares of the {len(self.classes)} classes in the population "
                f"are not estimated: {self.why}. If {_CALIBRATION}, they are as listed below. "
                f"{self._rows_needed} {_HALF_WIDTH_IN_POINTS}."
            )
            shown = self.to_frame()[["label", *_CALIBRATION_COLUMNS]]
            return notebook.view(notebook.sentence(text), notebook.table(shown), notes=self._notes)
        shown = self.to_frame().drop(columns=_CALIBRATION_COLUMNS)
        return notebook.view(notebook.table(shown), notes=self._notes)
