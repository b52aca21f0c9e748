"""Maximum-likelihood shares of a mixture with known densities, with variance and intervals.

The model assumes that target scores have the density pi f1 + (1-pi) f0, in which f1 and f0 are the
densities of the labelled positives and negatives. Only the prevalence pi may differ from the
labelled rows. The log-likelihood is concave in pi. Source: Gubbels (2023), section 0.4, equations
2-7. Unlike the source, this module uses the same prior in the numerator and the denominator of
equation 2, and allows repeated values in the data of equation 6.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import chdtri, xlogy

from cmtrack.statistics.inputs import FloatArray

_PLAIN_STEPS = 1_000
_LONG_STEPS = 5_000
"""Largest number of expectation-maximisation steps; each step computes three products."""
_SLACK = 1e-4
"""Largest temporary decrease of the log-likelihood per row that an extrapolation may cause."""


@dataclass(frozen=True, eq=False)
class Mixture:
    """A weighted sample from a two-part mixture.

    ``p``, ``q``, shape (B,): densities of the positives and of the negatives at each point or bin.
        Both may be multiplied by the same factor.
    ``w``, shape (B,): number of target rows at each point or bin.
    """

    p: FloatArray
    q: FloatArray
    w: FloatArray

    def mix(self, prevalence: float) -> FloatArray:
        """Return the density of the mixture, pi p + (1-pi) q."""
        return prevalence * self.p + (1 - prevalence) * self.q

    def by_class(self, prevalence: float) -> tuple[FloatArray, FloatArray]:
        """Return the expected numbers of positives and negatives in the target at each point."""
        mix = self.mix(prevalence)
        chance = np.divide(prevalence * self.p, mix, out=np.zeros_like(mix), where=mix > 0)
        return self.w * chance, self.w * (1 - chance)

    def log_likelihood(self, prevalence: float) -> float:
        """Return the log-likelihood at a prevalence; -inf if an observed point is impossible."""
        with np.errstate(divide="ignore"):
            return self.unguarded_log_likelihood(prevalence)

    def unguarded_log_likelihood(self, prevalence: float) -> float:
        """Return the log-likelihood; NumPy warns if an observed point is impossible.

        Root finding calls it often, and :func:`numpy.errstate` takes a fifth of the time.
        """
        return float(xlogy(self.w, self.mix(prevalence)).sum())

    def maximise(self) -> float:
        """Return the maximum-likelihood prevalence in [0, 1]; NaN if the densities are equal.

        The method is Newton's method with the starting value 1/2, safeguarded by bisection. It
        stops after 60 steps, or at a tolerance of 1e-12.
        """
        used = self.w > 0
        p = self.p[used]
        q = self.q[used]
        w = self.w[used]
        if np.array_equal(p, q):
            return math.nan

        with np.errstate(divide="ignore", invalid="ignore"):
            return _root_of_score(p, q, w)


def _root_of_score(p: FloatArray, q: FloatArray, w: FloatArray) -> float:
    """Return the prevalence at which the derivative of the log-likelihood is 0, or an end."""
    gap = p - q
    is_equal = gap == 0

    def score(prevalence: float) -> tuple[float, float]:
        ratio = np.where(is_equal, 0.0, gap / (prevalence * p + (1 - prevalence) * q))
        return float(w @ ratio), -float(w @ ratio**2)

    if score(0.0)[0] <= 0:
        return 0.0
    if score(1.0)[0] >= 0:
        return 1.0
    low = 0.0
    high = 1.0
    prevalence = 0.5
    for _ in range(60):
        value, slope = score(prevalence)
        if value > 0:
            low = prevalence
        else:
            high = prevalence
        following = prevalence - value / slope
        if not low < following < high:
            following = (low + high) / 2
        if abs(following - prevalence) < 1e-12:
            return following
        prevalence = following
    return prevalence


@dataclass(frozen=True)
class Variance:
    """Variance of an estimated prevalence, divided by source.

    Attributes
    ----------
    target : float From the finite target.
    positives, negatives : float
        From the finite labelled scores of each class (0 if the densities are known).
    information : float
        Fisher information of one target row.
    """

    target: float
    positives: float
    negatives: float
    information: float

    @property
    def total(self) -> float:
        """Sum of the three parts."""
        return self.target + self.positives + self.negatives

    @property
    def shares(self) -> tuple[float, float, float]:
        """Share of each part in the sum: (target, positives, negatives)."""
        return self.target / self.total, self.positives / self.total, self.negatives / self.total

    @property
    def naive(self) -> Variance:
        """The part that the target causes, which is the variance if the densities are known."""
        return Variance(self.target, 0.0, 0.0, self.information)

    def about_target(self, prevalence: float, n: float) -> float:
        """Return the error variance for the share of positives in one specific target of n rows."""
        return max(self.total - prevalence * (1 - prevalence) / n, 1e-3 * self.total)


def variance(
    p: FloatArray, q: FloatArray, prevalence: float, n: float, m1: float, m0: float
) -> Variance:
    """Return the variance of the estimate from n target rows, m1 positives and m0 negatives.

    ``p``, ``q``, shape (B,): binned densities, each summing to 1.
    """
    mix = prevalence * p + (1 - prevalence) * q
    information = float(((p - q) ** 2 / mix).sum())
    if not information > 0:
        return Variance(math.inf, math.inf, math.inf, 0.0)
    from_p = float(p @ (q / mix) ** 2 - (p @ (q / mix)) ** 2) / (m1 * information**2)
    from_q = float(q @ (p / mix) ** 2 - (q @ (p / mix)) ** 2) / (m0 * information**2)
    return Variance(1 / (n * information), max(from_p, 0.0), max(from_q, 0.0), information)


def profile_interval(
    mixture: Mixture, estimate: float, inflation: float, confidence_level: float
) -> tuple[float, float]:
    """Return all prevalences whose deviance is at most ``inflation`` times the chi-square quantile.

    ``inflation`` is the total variance divided by the variance that the target causes. If it is 1,
    the result is the ordinary (naive) likelihood interval.
    """
    limit = deviance_limit(confidence_level) * inflation / 2
    lowest = mixture.log_likelihood(estimate) - limit

    def excess(prevalence: float) -> float:
        return max(mixture.unguarded_log_likelihood(prevalence) - lowest, -1e300)

    with np.errstate(divide="ignore"):
        low, high = (
            end if excess(end) >= 0 else brentq(excess, estimate, end, xtol=1e-16, rtol=1e-15)
            for end in (0.0, 1.0)
        )
    return low, high


def deviance_limit(confidence_level: float) -> float:
    """Return the chi-square quantile with one degree of freedom; 3.841458820694124 at 0.95."""
    return float(chdtri(1, 1 - confidence_level))


def em_shares(densities: FloatArray, weights: FloatArray, tolerance: float = 1e-9) -> FloatArray:
    """Return maximum-likelihood shares of K known densities by expectation-maximisation.

    Parameters
    ----------
    densities : ndarray of shape (B, K)
        Density of each class at each point or bin.
    weights : ndarray of shape (B,)
        Target rows (or shares) at each point or bin.
    tolerance : float
        Stop when ``max g - 1`` is at most this, with g the Karush-Kuhn-Tucker ratios. The
        log-likelihood per row is then at most this much below its maximum.

    Returns
    -------
    ndarray of shape (K,)
        Shares that sum to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from cmtrack.prevalence import em_shares
    >>> densities = np.array([[0.7, 0.1], [0.2, 0.3], [0.1, 0.6]])
    >>> em_shares(densities, densities @ [0.8, 0.2] * 1_000).round(3).tolist()
    [0.8, 0.2]
    """
    return climb(
        lambda shares: densities @ shares,
        lambda ratio: densities.T @ ratio,
        weights,
        densities.shape[1],
        tolerance,
    )


def climb(
    mix: Callable[[FloatArray], FloatArray],
    pull: Callable[[FloatArray], FloatArray],
    weights: FloatArray,
    size: int,
    tolerance: float = 1e-9,
) -> FloatArray:
    """Compute the shares of :func:`em_shares` from matrix products with the densities D (B, K).

    The first steps are plain steps of expectation-maximisation. They are enough if the densities
    differ clearly. Later steps are extrapolated from two plain steps (Varadhan and Roland 2008,
    Scand. J. Statist. 35, 335-353, scheme S3), unless the likelihood would fall far below its
    highest value so far. Without extrapolation, similar classes would take tens of thousands of
    steps.

    ``mix``, ``pull``: functions that return ``D @ shares`` and ``D.T @ ratio``.
    ``weights``, shape (B,): target rows at each point or bin.
    ``size``: K.
    """
    weights = weights / weights.sum()

    def gain_at(shares: FloatArray) -> tuple[FloatArray, FloatArray]:
        mixed = mix(shares)
        return pull(weights / mixed), mixed

    shares = np.full(size, 1 / size)
    for _ in range(_PLAIN_STEPS):
        gain, _mixed = gain_at(shares)
        if gain.max() - 1 <= tolerance:
            return _to_one(shares)
        shares = shares * gain
    gain, mixed = gain_at(shares)
    highest = float(weights @ np.log(mixed))
    for _ in range(_LONG_STEPS):
        if gain.max() - 1 <= tolerance:
            break
        first = shares * gain
        second_gain, _mixed = gain_at(first)
        if second_gain.max() - 1 <= tolerance:
            return _to_one(first)
        second = first * second_gain
        shares = _extrapolated(shares, first, second)
        gain, mixed = gain_at(shares)
        likelihood = float(weights @ np.log(mixed))
        if likelihood < highest - _SLACK:
            shares = second
            gain, mixed = gain_at(shares)
        highest = max(highest, likelihood)
    return _to_one(shares)


def _extrapolated(start: FloatArray, first: FloatArray, second: FloatArray) -> FloatArray:
    """Extrapolate two steps; a share that would be 0 or less is taken from ``second``."""
    step = first - start
    bend = second - 2 * first + start
    length = 1.0
    if bend.any():
        length = max(1.0, math.sqrt(float(step @ step) / float(bend @ bend)))
    far = start + 2 * length * step + length**2 * bend
    return _to_one(np.where(far > 0, far, second))


def _to_one(shares: FloatArray) -> FloatArray:
    return shares / shares.sum()


def prior_corrected(scores: FloatArray, trained: float, wanted: float) -> FloatArray:
    """Convert posteriors at the training prevalence to posteriors at a different prevalence.

    Source: Gubbels (2023), equation 2, with the same prior in the numerator and the denominator.

    Examples
    --------
    >>> import numpy as np
    >>> from cmtrack.prevalence import prior_corrected
    >>> prior_corrected(np.array([0.1, 0.5, 0.9]), trained=0.5, wanted=0.1).round(3).tolist()
    [0.012, 0.1, 0.5]
    """
    odds = scores / (1 - scores) * (wanted * (1 - trained)) / ((1 - wanted) * trained)
    return odds / (1 + odds)
