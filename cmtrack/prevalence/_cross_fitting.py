"""Prevalence by matching a moment of the scores, with cross-fitted density ratios.

For any densities and any function h of the score,
mean_target h = pi mean_positives h + (1-pi) mean_negatives h. With density ratio r and sizes n, m1
and m0, the h with the smallest variance is

    h = (r - 1) / ((pi r + 1 - pi)/n + pi^2 r/m1 + (1-pi)^2/m0),

This is generalised least squares over the cells. It gives less weight to cells in which any of the
three samples is noisy. If the densities are known (m1 and m0 are large), it is the likelihood
score. An error of the ratio increases the variance and causes no bias, so the ratio's own error
does not enter the variance to first order. Related methods: PACC (Bella et al. 2010), in which h
is the posterior; method of moments, Hansen (1982). Stacks of densities: Smyth & Wolpert (1999); of
posteriors, Wolpert (1992).

The estimate uses two sets of folds (:class:`TwoFoldings`). Alternating folds deal the labelled rows
to the folds in turn, in the order of the scores. Their variance is low. But the folds share their
noise, so the ratio of one fold fits the other too well. The classes then look farther apart than
they are, and the estimate is pulled towards one half. This matters little for medium prevalences,
but it can multiply rare ones. Random folds do not have this bias, but have more variance if there
are few labelled rows. The weight of each depends on how far the two estimates disagree.
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
"""Function of counts (B,) and a number of folds: counts (folds, B) that sum to the given ones."""

_SEED = 20230813
_MOST = 10**9
"""Rows up to which a hypergeometric distribution is drawn.

With more rows, random and alternating folds would hardly differ.
"""


def in_turn(counts: FloatArray, folds: int) -> FloatArray:
    """Deal the rows in score order to the folds in turn, shape (folds, B).

    The folds are as similar as possible, so a model fitted on the other folds has almost seen this
    one. Fractional counts (weights) are dealt in the same way.
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
"""Most steps of expectation-maximisation. Three digits of the weights are enough."""


@dataclass(frozen=True, eq=False)
class FittedRatio:
    """Log density ratios of the cells, fitted without each fold of labelled rows.

    ``left``, shape (F, B): the log ratios, by the fold that was left out.
    ``positives``, ``negatives``, shape (F, B): counts of the fold that was left out.
    ``members``: weight of each model.
    """

    left: FloatArray
    positives: FloatArray
    negatives: FloatArray
    members: dict[str, float]


def fit_ratio(cells: ScoreCells, folding: Folding = in_turn, most: int = FOLDS) -> FittedRatio:
    """Fit the stack of density models.

    A member's ratio r gives the probability r / (1 + r) of a positive if both classes are equally
    frequent. These probabilities are averaged. The weights maximise the log score of the labelled
    classes. Each class has weight one half, and members fitted without a row's fold predict that
    row. The weight of one row is added to each member, so with few rows the average is close to the
    unweighted one.
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
    """Return each cell's log density ratio from all labelled rows, members averaged equally."""
    chances = _members(cells.place, cells.positives[None], cells.negatives[None])[:, 0]
    return _log_odds(chances.mean(axis=0))


def _log_odds(chance: FloatArray) -> FloatArray:
    return np.log(chance) - np.log1p(-chance)


def _members(place: FloatArray, positives: FloatArray, negatives: FloatArray) -> FloatArray:
    """Return the probabilities of each member (first axis).

    Probabilities are limited to what half a count among all rows would give. The number of
    negatives limits a high ratio, as half a negative could have such a score. The number of
    positives limits a low one.
    """
    highest = np.log(2 * negatives.sum(axis=1) + 1)[:, None]
    lowest = -np.log(2 * positives.sum(axis=1) + 1)[:, None]
    ratios = [
        np.clip(model(place, positives, negatives), lowest, highest) for model in MODELS.values()
    ]
    return 1 / (1 + np.exp(-np.stack(ratios)))


def _weights(chances: FloatArray, positives: FloatArray, negatives: FloatArray) -> FloatArray:
    """Return convex weights with the best log score, if both classes have weight one half.

    ``chances``, shape (members, F, B): probabilities of a positive without each fold.
    ``positives``, ``negatives``, shape (F, B): rows of the fold.
    """
    m1 = positives.sum()
    m0 = negatives.sum()
    has_positives = positives > 0
    has_negatives = negatives > 0
    of_label = np.concatenate((chances[:, has_positives], 1 - chances[:, has_negatives]), axis=1)
    mass = np.concatenate((positives[has_positives] / m1, negatives[has_negatives] / m0))
    return stacking_weights(of_label, mass * ((m1 + m0) / 2))


def stacking_weights(of_label: FloatArray, mass: FloatArray) -> FloatArray:
    """Return the convex weights (members,) with the best log score, by expectation-maximisation.

    The weight of one row is added to each member.

    ``of_label``, shape (members, m): each member's probability of the actual class, without the
        row's fold.
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
"""Largest log ratio that is used; no data set that fits into memory shows a larger one."""
_POINTS = 161
"""Number of points at which an equation or a deviance is computed at a time."""


@dataclass(frozen=True, eq=False)
class MomentMatch:
    """Three count vectors over cells, and the log density ratio of each cell.

    With several folds, every labelled row is weighted by the h that was fitted without it, and the
    target by the mean of all h (cross-fitting). An h fits the rows on which it was fitted too well,
    which would make small shares too large.

    ``log_ratio``, shape (F, B): by the fold that was left out of the fit.
    ``target``, shape (B,): shares of the target rows by cell.
    ``positives``, ``negatives``, shape (F, B): shares of the labelled rows of each class, by fold;
        each sums to 1.
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
        """Densities (positives, negatives) by the ratio and the pooled mass of labelled scores."""
        chance = (self.odds / (1 + self.odds)).mean(axis=0)
        mass = (self.positives.sum(axis=0) + self.negatives.sum(axis=0)) / 2
        p = mass * chance
        q = mass * (1 - chance)
        return p / p.sum(), q / q.sum()

    def weights(self, prevalence: FloatArray) -> FloatArray:
        """Return the values of n h at each prevalence, shape (len(prevalence), F, B)."""
        n, m1, m0 = self.sizes
        pi = prevalence[:, None, None]
        noise = (pi + pi**2 * n / m1) * self.odds + (1 - pi) + (1 - pi) ** 2 * n / m0
        return (self.odds - 1) / noise

    def equation(self, prevalence: FloatArray) -> FloatArray:
        """Return the gap between mean_target h and pi mean_positives h + (1-pi) mean_negatives h.

        The gap falls as the prevalence grows. It is 0 at the estimate.
        """
        pi = prevalence[:, None, None]
        gap = self.target / len(self.odds) - pi * self.positives - (1 - pi) * self.negatives
        return np.einsum("pfb,pfb->p", gap, self.weights(prevalence))

    def solve(self) -> float:
        """Return the root in [0, 1] that is nearest to a first estimate.

        Near 0 and 1, a few rows with extreme ratios can give the equation more roots, or remove its
        only one. Without a root, the minimum of equation^2 / variance (continuous updating,
        Hansen, Heaton & Yaron 1996) is an end of the range or the place of the removed root.
        """
        start = self._first_estimate()
        is_rising = self.equation(np.array([start]))[0] > 0
        end = 1.0 if is_rising else 0.0
        # Steps grow with the distance from the first estimate, because the root should be near it.
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
        """Return the estimate by h at prevalence 1/2, in which no single cell dominates."""
        h = self.weights(np.array([0.5]))[0]
        target = float((h * (self.target / len(h))).sum())
        above = float((h * self.positives).sum())
        below = float((h * self.negatives).sum())
        if not above > below:
            return 0.5
        return min(max((target - below) / (above - below), 0.0), 1.0)

    def _root(self, low: float, high: float) -> float:
        """Return the root between two prevalences, by bisection to about 1e-14."""
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
        """Return the equation's variance by target, positives and negatives, and minus its slope.

        The variance of h in a class is its variance over the m labelled rows of the class (with
        weight m), averaged with the variance under the model (with weight 1).

        ``unseen``, (positives, negatives): whether to allow for scores that the class can have but
            none of its labelled rows shows. If so, the variance under the model is used if it is
            larger, and half a row is added that scores like the other class.
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
        """Return :meth:`spread` at candidates for an interval around the estimate.

        The labelled negatives may include none that score like positives although the target does.
        Such negatives would make the true share smaller than estimated, never larger. For positives
        that score like negatives, the opposite holds. So unseen scores of negatives widen the
        interval below the estimate, and unseen scores of positives widen it above.
        """
        return self.spread(prevalence, unseen=(prevalence > estimate, prevalence < estimate))

    def variance(self, prevalence: float, unseen: bool = False) -> Variance:
        """Return the estimate's variance by source, with the information of the likelihood."""
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
        """Return the quasi-deviance from the estimate to each point of an even grid.

        It is 2 |integral of slope x equation / variance|. "naive" includes only the target's part
        of the variance. ``realised`` leaves out pi(1-pi)/n, the variance of the target's own share.
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
        """Return the adjusted or naive interval for the population's or the target's share."""
        limit = deviance_limit(confidence_level)

        def deviance(grid: FloatArray) -> FloatArray:
            return self.deviance(estimate, grid, kind, realised)

        reach = max(6 * math.sqrt(min(self.variance(estimate).total, 1.0)), 1e-6)
        low = _end(estimate, -reach, limit, deviance)
        high = _end(estimate, reach, limit, deviance)
        return low, high


def _moments(h: FloatArray, shares: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the mean and variance of h at each prevalence, over cells with the given shares."""
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

    ``reach``: the first distance from the estimate to try, negative for the lower end.
    """
    while True:
        edge = min(max(estimate + reach, 0.0), 1.0)
        grid = np.linspace(estimate, edge, _POINTS)
        # The deviance is an integral over an ascending grid.
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
    """One target and its labelled rows, matched with alternating and with random folds."""

    in_turn: MomentMatch
    at_random: MomentMatch

    @cached_property
    def estimates(self) -> tuple[float, float]:
        """Estimates by alternating and by random folds."""
        return self.in_turn.solve(), self.at_random.solve()

    @cached_property
    def weight(self) -> float:
        """Weight of the estimate by alternating folds.

        It is the variance, divided by the variance plus the squared difference of both estimates.
        """
        turn, drawn = self.estimates
        variance = self.in_turn.variance(turn, unseen=True).total
        if not math.isfinite(variance) or turn == drawn:
            return 1.0
        return variance / (variance + (turn - drawn) ** 2)

    @property
    def densities(self) -> tuple[FloatArray, FloatArray]:
        """Class densities (positives, negatives) by cell."""
        return self.in_turn.densities

    def solve(self) -> float:
        """Return the weighted mean of both estimates."""
        turn, drawn = self.estimates
        return self.weight * turn + (1 - self.weight) * drawn

    def variance(self, prevalence: float) -> Variance:
        """Return the weighted mean of both variances, plus the disagreement of both estimates.

        The labelled rows cause the disagreement, so it is divided among them.
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
        """Return the smaller of the two quasi-deviances; 0 between the two estimates."""
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
