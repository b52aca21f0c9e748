"""Prevalence estimates from a moment of the scores, with cross-fitted density ratios.

For any densities and any function h of the score, mean_target h = pi mean_positives h + (1-pi)
mean_negatives h. Let r be the density ratio, and n, m1 and m0 the numbers of target rows, positives
and negatives. Then the function h with the smallest variance is

    h = (r - 1) / ((pi r + 1 - pi)/n + pi^2 r/m1 + (1-pi)^2/m0),

This choice is equivalent to generalised least squares over the cells. Cells in which any of the
three samples is noisy have less weight. If the densities are known (m1 and m0 are large), h is the
likelihood score. An error in the ratio increases the variance but does not cause a bias, so the
error of the ratio itself does not change the variance to first order. Related methods are PACC
(Bella et al. 2010), in which h is the posterior, and the method of moments (Hansen 1982). Densities
are stacked by Smyth & Wolpert (1999), and posteriors by Wolpert (1992).

The estimate uses two sets of folds (:class:`TwoFoldings`). With alternating folds, the labelled
rows are sorted by score and dealt to the folds in turn. Estimates with alternating folds have a low
variance. But the noise in all folds is similar. Therefore, a ratio fits a fold too well, even if it
was fitted to the remaining folds only. The classes then seem farther apart than they are, and the
estimate is biased towards one half. This bias is small for medium prevalences, but it can multiply
a low prevalence. Estimates with random folds do not have this bias, but they have a larger variance
if there are few labelled rows. The two estimates are averaged with weights that depend on the
difference between them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cmtrack._lazy import cached_property
from cmtrack.metrics.intervals import Interval
from cmtrack.prevalence.densities import MODELS, ScoreCells
from cmtrack.prevalence.mixture import Variance, deviance_limit
from cmtrack.statistics.inputs import BoolArray, FloatArray

# -- folds: functions of the counts alone, the same for every order of the rows -------------------

Folding = Callable[[FloatArray, int], FloatArray]
"""Function that splits counts (B,) into a given number of folds. It returns counts of shape (folds,
B), whose sum over the folds equals the original counts.
"""

_SEED = 20230813
_MOST = 10**9
"""Largest number of rows for which random numbers are drawn from a hypergeometric distribution.

If there are more rows, random folds would be nearly equal to alternating folds.
"""


def in_turn(counts: FloatArray, folds: int) -> FloatArray:
    """Sort the rows by score and deal them to the folds in turn, shape (folds, B).

    The folds are as similar as possible, so a model that is fitted without a fold is almost the
    same as a model that is fitted with it. Fractional counts (weights) are dealt in the same way.
    """
    ends = np.concatenate(([0.0], np.cumsum(counts)))
    turns, within = np.divmod(ends, folds)
    fold = np.arange(folds)[:, None]
    up_to = turns + np.clip(within - fold, 0.0, 1.0)
    return np.diff(up_to, axis=1)


def at_random(counts: FloatArray, folds: int) -> FloatArray:
    """Draw folds of equal size at random, with a fixed seed, shape (folds, B).

    Fractional counts (weights) are split in the same proportions as whole counts.
    """
    whole = np.ceil(counts).astype(np.int64)
    if not 0 < whole.sum() < _MOST:
        return in_turn(counts, folds)
    rng = np.random.default_rng(_SEED)
    rest = whole.copy()
    drawn = np.zeros((folds, len(whole)))
    for fold in range(folds - 1):
        size = int(rest.sum()) // (folds - fold)
        drawn[fold] = rng.multivariate_hypergeometric(rest, size, method="marginals")
        rest -= drawn[fold].astype(np.int64)
    drawn[-1] = rest
    return drawn * np.divide(counts, whole, out=np.zeros(len(whole)), where=whole > 0)


# -- density ratios: a stack of models, weighted by cross-validated log score ----------------------

FOLDS = 2
_STEPS = 100
"""Largest number of steps of expectation-maximisation. The weights only need three correct digits.
"""


@dataclass(frozen=True, eq=False)
class FittedRatio:
    """Log density ratios of the cells, from fits that leave out each fold of labelled rows.

    ``left``, shape (F, B): the log ratios. Each row is for the fold that was left out of the fit.
    ``positives``, ``negatives``, shape (F, B): counts in the fold that was left out.
    ``members``: weight of each model in the stack.
    """

    left: FloatArray
    positives: FloatArray
    negatives: FloatArray
    members: dict[str, float]


def fit_ratio(cells: ScoreCells, folding: Folding = in_turn, most: int = FOLDS) -> FittedRatio:
    """Fit the stack of models of the density ratio.

    A member with the density ratio r predicts that a row is positive with the probability r / (1 +
    r), if both classes are equally frequent. These probabilities are averaged over the members. The
    weights of the members maximise the log score of the labelled rows. In this score, the weight of
    each class is one half, and each row is predicted by members that were fitted without the row's
    fold. The weight of one row is added to each member, so the average is close to the unweighted
    average if there are few rows.
    """
    positives = cells.positives
    negatives = cells.negatives
    folds = int(min(most, positives.sum(), negatives.sum()))
    if folds < 2:
        members = dict.fromkeys(MODELS, 1 / len(MODELS))
        return FittedRatio(whole_ratio(cells)[None], positives[None], negatives[None], members)
    fold_positives = folding(positives, folds)
    fold_negatives = folding(negatives, folds)
    chances = _members(cells.place, positives - fold_positives, negatives - fold_negatives)
    weights = _weights(chances, fold_positives, fold_negatives)
    mean = np.tensordot(weights, chances, 1)
    members = dict(zip(MODELS, weights.tolist(), strict=True))
    return FittedRatio(_log_odds(mean), fold_positives, fold_negatives, members)


def whole_ratio(cells: ScoreCells) -> FloatArray:
    """Return each cell's log density ratio, fitted to all labelled rows, as a plain average."""
    chances = _members(cells.place, cells.positives[None], cells.negatives[None])[:, 0]
    return _log_odds(chances.mean(axis=0))


def _log_odds(chance: FloatArray) -> FloatArray:
    return np.log(chance) - np.log1p(-chance)


def _members(place: FloatArray, positives: FloatArray, negatives: FloatArray) -> FloatArray:
    """Return the probabilities of a positive from each member (first axis).

    The limits of the probabilities are the probabilities that result from half a count among all
    rows. High ratios are limited by the number of negatives, because half a negative might have
    such a score. Low ratios are limited by the number of positives in the same way.
    """
    highest = np.log(2 * negatives.sum(axis=1) + 1)[:, None]
    lowest = -np.log(2 * positives.sum(axis=1) + 1)[:, None]
    ratios = [
        np.clip(model(place, positives, negatives), lowest, highest) for model in MODELS.values()
    ]
    return 1 / (1 + np.exp(-np.stack(ratios)))


def _weights(chances: FloatArray, positives: FloatArray, negatives: FloatArray) -> FloatArray:
    """Return convex weights that maximise the log score if each class has the weight one half.

    ``chances``, shape (members, F, B): probabilities of a positive, from fits without each fold.
    ``positives``, ``negatives``, shape (F, B): numbers of rows in each fold.
    """
    m1 = positives.sum()
    m0 = negatives.sum()
    has_positives = positives > 0
    has_negatives = negatives > 0
    of_label = np.concatenate((chances[:, has_positives], 1 - chances[:, has_negatives]), axis=1)
    mass = np.concatenate((positives[has_positives] / m1, negatives[has_negatives] / m0))
    return stacking_weights(of_label, mass * ((m1 + m0) / 2))


def stacking_weights(of_label: FloatArray, mass: FloatArray) -> FloatArray:
    """Return convex weights that maximise the log score, found by expectation-maximisation.

    The weight of one row is added to each member.

    ``of_label``, shape (members, m): each member's probability of a row's actual class, from a fit
        without the row's fold.
    ``mass``, shape (m,): weights of the rows.
    """
    weights = np.full(len(of_label), 1 / len(of_label))
    for _ in range(_STEPS):
        before = weights
        share = of_label * weights[:, None]
        weights = (share / share.sum(axis=0)) @ mass + 1.0
        weights /= weights.sum()
        if np.abs(weights - before).max() < 1e-4:
            break
    return weights


# -- the moment -----------------------------------------------------------------------------------

_CLIP = 30.0
"""Largest log ratio that is used. No data set that fits into memory can show a larger ratio."""
_POINTS = 161
"""Number of points at which an equation or a deviance is computed in one step."""


@dataclass(frozen=True, eq=False)
class MomentMatch:
    """Counts of the target, the positives and the negatives by cell, and log density ratios.

    If there are several folds, every labelled row is weighted by a function h that was fitted
    without this row, and the target is weighted by the mean of all functions h (cross-fitting). A
    function h fits the rows to which it was fitted too well, which would make small shares too
    large.

    ``log_ratio``, shape (F, B): log density ratios. Each row is for the fold that was left out of
        the fit.
    ``target``, shape (B,): shares of the target rows by cell.
    ``positives``, ``negatives``, shape (F, B): shares of the labelled rows in each class, by fold
        and cell. The shares of each class sum to 1.
    ``sizes``, (n, m1, m0): (effective) numbers of rows.
    """

    log_ratio: FloatArray
    target: FloatArray
    positives: FloatArray
    negatives: FloatArray
    sizes: tuple[float, float, float]

    @cached_property
    def odds(self) -> FloatArray:
        """The density ratio, shape (F, B)."""
        return np.exp(np.clip(self.log_ratio, -_CLIP, _CLIP))

    @cached_property
    def densities(self) -> tuple[FloatArray, FloatArray]:
        """Densities (positives, negatives), from the ratio and all labelled scores together."""
        chance = (self.odds / (1 + self.odds)).mean(axis=0)
        mass = (self.positives.sum(axis=0) + self.negatives.sum(axis=0)) / 2
        p = mass * chance
        q = mass * (1 - chance)
        return p / p.sum(), q / q.sum()

    def weights(self, prevalence: FloatArray) -> FloatArray:
        """Return n times h at each prevalence, as an array of shape (len(prevalence), F, B)."""
        n, m1, m0 = self.sizes
        pi = prevalence[:, None, None]
        noise = (pi + pi**2 * n / m1) * self.odds + (1 - pi) + (1 - pi) ** 2 * n / m0
        return (self.odds - 1) / noise

    def equation(self, prevalence: FloatArray) -> FloatArray:
        """Return mean_target h minus (pi mean_positives h + (1-pi) mean_negatives h).

        This difference decreases as the prevalence pi increases. It is 0 at the estimate.
        """
        pi = prevalence[:, None, None]
        gap = self.target / len(self.odds) - pi * self.positives - (1 - pi) * self.negatives
        return np.einsum("pfb,pfb->p", gap, self.weights(prevalence))

    def solve(self) -> float:
        """Return the root of the equation in [0, 1] that is nearest to a first estimate.

        If the prevalence is near 0 or 1, a few rows with extreme ratios can add roots to the
        equation or remove its only root. If there is no root, the method returns the minimum of
        equation^2 / variance (continuous updating, Hansen, Heaton & Yaron 1996). This minimum is an
        end of the range or the position of the removed root.
        """
        start = self._first_estimate()
        is_rising = self.equation(np.array([start]))[0] > 0
        end = 1.0 if is_rising else 0.0
        # The size of the steps increases with the distance from the first estimate, because the
        # root should be near this estimate.
        path = start + (end - start) * (np.arange(_POINTS) / (_POINTS - 1)) ** 2
        values = self.equation(path)
        turned = np.flatnonzero((values > 0) != is_rising)
        if len(turned):
            after = int(turned[0])
            low, high = sorted((float(path[after - 1]), float(path[after])))
            return self._root(low, high)
        variances = sum(self.spread(path, unseen=(True, True))[:3])
        with np.errstate(divide="ignore", invalid="ignore"):
            distance = values**2 / variances
        if not np.isfinite(distance).any():
            return end
        return float(path[np.nanargmin(distance)])

    def _first_estimate(self) -> float:
        """Return the estimate that uses the function h for prevalence 1/2.

        No single cell dominates this function.
        """
        h = self.weights(np.array([0.5]))[0]
        target = float((h * (self.target / len(h))).sum())
        above = float((h * self.positives).sum())
        below = float((h * self.negatives).sum())
        if not above > below:
            return 0.5
        return min(max((target - below) / (above - below), 0.0), 1.0)

    def _root(self, low: float, high: float) -> float:
        """Return the root between two prevalences, found by bisection to about 1e-14."""
        for _ in range(46):
            middle = (low + high) / 2
            if self.equation(np.array([middle]))[0] > 0:
                low = middle
            else:
                high = middle
        return (low + high) / 2

    def spread(
        self,
        prevalence: FloatArray,
        unseen: tuple[bool | BoolArray, bool | BoolArray] = (False, False),
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return the parts of the equation's variance, and minus the slope of the equation.

        The parts are due to the target, the positives and the negatives. The variance of h in a
        class is an average of two variances: the variance over the m labelled rows of the class
        (with weight m), and the variance under the model (with weight 1).

        ``unseen``, (positives, negatives): whether to allow for scores that are possible in the
            class, but do not occur in its labelled rows. If so, the larger of the two variances is
            used, and half a row with a score that is typical of the opposite class is added.
        """
        n, m1, m0 = self.sizes
        pi = prevalence
        h = self.weights(prevalence)
        average = h.mean(axis=1, keepdims=True)
        p, q = self.densities
        mean1, variance1 = _moments(h, self.positives)
        mean0, variance0 = _moments(h, self.negatives)
        slope = mean1 - mean0

        def variance(
            m: float, own: FloatArray, other: FloatArray, density: FloatArray, allow: Any
        ) -> FloatArray:
            _, model = _moments(average, density)
            most = np.maximum(own, model) + (other + slope**2) / (2 * m)
            return np.where(allow, most, (m * own + model) / (m + 1))

        v1 = variance(m1, variance1, variance0, p, unseen[0])
        v0 = variance(m0, variance0, variance1, q, unseen[1])
        of_target = pi * v1 + (1 - pi) * v0 + pi * (1 - pi) * slope**2
        return of_target / n, pi**2 * v1 / m1, (1 - pi) ** 2 * v0 / m0, slope

    def about(
        self, estimate: float, prevalence: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return the result of :meth:`spread` for candidate prevalences around the estimate.

        The target may contain negatives that score like positives, although the labelled negatives
        do not. Such negatives can only make the true share smaller than the estimate, not larger.
        For positives that score like negatives, the opposite holds. So the interval is widened
        below the estimate to allow for unseen scores of negatives, and above the estimate to allow
        for unseen scores of positives.
        """
        return self.spread(prevalence, unseen=(prevalence > estimate, prevalence < estimate))

    def variance(self, prevalence: float, unseen: bool = False) -> Variance:
        """Return the variance of the estimate by source, and the information of the likelihood."""
        parts = np.concatenate(self.spread(np.array([prevalence]), unseen=(unseen, unseen)))
        target, positives, negatives, slope = parts.tolist()
        if not slope > 0:
            return Variance(math.inf, math.inf, math.inf, 0.0)
        p, q = self.densities
        mix = prevalence * p + (1 - prevalence) * q
        information = float(((p - q)[mix > 0] ** 2 / mix[mix > 0]).sum())
        return Variance(target / slope**2, positives / slope**2, negatives / slope**2, information)

    def deviance(
        self, estimate: float, grid: FloatArray, kind: str = "adjusted", realised: bool = False
    ) -> FloatArray:
        """Return the quasi-deviance at each point of an even grid.

        The quasi-deviance is 2 |integral of slope x equation / variance|, with the integral from
        the estimate to the point. The kind "naive" includes only the part of the variance that the
        target causes. If ``realised`` is true, the variance does not include pi(1-pi)/n, which is
        the variance of the share in the target itself.
        """
        points = np.union1d(grid, [estimate])
        target, positives, negatives, slope = self.about(estimate, points)
        variance = target
        if kind != "naive":
            variance = target + positives + negatives
        if realised:
            of_labels = slope**2 * points * (1 - points) / self.sizes[0]
            variance = np.maximum(variance - of_labels, 1e-3 * variance)
        with np.errstate(divide="ignore", invalid="ignore"):
            rate = np.where(variance > 0, slope * self.equation(points) / variance, 0.0)
        trapezoids = (rate[1:] + rate[:-1]) / 2 * np.diff(points)
        area = np.concatenate(([0.0], np.cumsum(trapezoids)))
        start = np.searchsorted(points, estimate)
        deviance: FloatArray = 2 * (area[start] - area)
        return np.maximum(deviance[np.searchsorted(points, grid)], 0.0)

    def interval(
        self, kind: str, estimate: float, confidence_level: float, realised: bool = False
    ) -> Interval:
        """Return the adjusted or naive interval for the share in the population or target."""
        limit = deviance_limit(confidence_level)

        def deviance(grid: FloatArray) -> FloatArray:
            return self.deviance(estimate, grid, kind, realised)

        reach = max(6 * math.sqrt(min(self.variance(estimate).total, 1.0)), 1e-6)
        low = _end(estimate, -reach, limit, deviance)
        high = _end(estimate, reach, limit, deviance)
        return low, high


def _moments(h: FloatArray, shares: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the mean and the variance of h over the cells at each prevalence."""
    values = h.reshape(len(h), -1)
    weights = shares.ravel()
    mean = values @ weights
    return mean, np.maximum(values**2 @ weights - mean**2, 0.0)


def _end(
    estimate: float,
    reach: float,
    limit: float,
    deviance: Callable[[FloatArray], FloatArray],
) -> float:
    """Return the point at which the deviance exceeds the limit, or else 0 or 1.

    ``reach``: the distance from the estimate that is tried first. It is negative for the lower end.
    """
    while True:
        edge = min(max(estimate + reach, 0.0), 1.0)
        grid = np.linspace(estimate, edge, _POINTS)
        # The deviance is computed as an integral over an ascending grid.
        values = deviance(grid) if edge >= estimate else deviance(grid[::-1])[::-1]
        beyond = np.flatnonzero(values > limit)
        if len(beyond):
            first = int(beyond[0])
            if first == 0:
                return estimate
            before = first - 1
            rest = (limit - values[before]) / (values[first] - values[before])
            return float(grid[before] + rest * (grid[first] - grid[before]))
        if edge in (0.0, 1.0):
            return edge
        reach *= 2


# -- two sets of folds ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class TwoFoldings:
    """A target and its labelled rows, matched with alternating folds and with random folds."""

    in_turn: MomentMatch
    at_random: MomentMatch

    @cached_property
    def estimates(self) -> tuple[float, float]:
        """Estimates with alternating folds and with random folds."""
        return self.in_turn.solve(), self.at_random.solve()

    @cached_property
    def weight(self) -> float:
        """Weight of the estimate with alternating folds.

        The weight is the variance divided by the sum of the variance and the squared difference
        between the two estimates.
        """
        turn, drawn = self.estimates
        variance = self.in_turn.variance(turn, unseen=True).total
        if not math.isfinite(variance) or turn == drawn:
            return 1.0
        return variance / (variance + (turn - drawn) ** 2)

    @property
    def densities(self) -> tuple[FloatArray, FloatArray]:
        """Densities of both classes (positives, negatives) by cell."""
        return self.in_turn.densities

    def solve(self) -> float:
        """Return the weighted mean of both estimates."""
        turn, drawn = self.estimates
        return self.weight * turn + (1 - self.weight) * drawn

    def variance(self, prevalence: float) -> Variance:
        """Return the weighted mean of both variances, plus the variance between the two estimates.

        The labelled rows cause the difference between the estimates, so this part is divided
        between the positives and the negatives.
        """
        turn = self.in_turn.variance(prevalence)
        drawn = self.at_random.variance(prevalence)
        if not math.isfinite(turn.total + drawn.total):
            return Variance(math.inf, math.inf, math.inf, 0.0)
        w = self.weight
        target = w * turn.target + (1 - w) * drawn.target
        positives = w * turn.positives + (1 - w) * drawn.positives
        negatives = w * turn.negatives + (1 - w) * drawn.negatives
        between = w * (1 - w) * (self.estimates[0] - self.estimates[1]) ** 2
        share = 0.5
        if positives + negatives > 0:
            share = positives / (positives + negatives)
        return Variance(
            target, positives + share * between, negatives + (1 - share) * between, turn.information
        )

    def deviance(
        self, grid: FloatArray, kind: str = "adjusted", realised: bool = False
    ) -> FloatArray:
        """Return the smaller of the two quasi-deviances, which is 0 between the two estimates."""
        turn, drawn = self.estimates
        smaller = np.minimum(
            self.in_turn.deviance(turn, grid, kind, realised),
            self.at_random.deviance(drawn, grid, kind, realised),
        )
        is_between = (min(turn, drawn) <= grid) & (grid <= max(turn, drawn))
        return np.where(is_between, 0.0, smaller)

    def interval(self, kind: str, confidence_level: float, realised: bool = False) -> Interval:
        """Return the interval from the smaller of both lower ends to the larger upper end."""
        turn, drawn = self.estimates
        first = self.in_turn.interval(kind, turn, confidence_level, realised)
        second = self.at_random.interval(kind, drawn, confidence_level, realised)
        return min(first[0], second[0]), max(first[1], second[1])
