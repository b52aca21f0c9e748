"""Prevalence by matching a moment of the scores, with density ratios that are fitted without the samples they weigh.

For a function h of the score, mean_target h = pi mean_positives h + (1-pi) mean_negatives h
whatever the densities are. With density ratio r and sizes n, m1, m0 the h of least variance is

    h = (r - 1) / ((pi r + 1 - pi)/n + pi^2 r/m1 + (1-pi)^2/m0),

generalised least squares over the cells: it discounts cells where any of the three samples is
noisy. Known densities (m1, m0 large) give the likelihood score. An error of the ratio costs
variance, not bias, so the ratio's own error does not enter the variance to first order. Relatives:
PACC (Bella et al. 2010), h = the posterior; method of moments, Hansen (1982). Stacks of densities:
Smyth & Wolpert (1999); of posteriors, Wolpert (1992).

The estimate is made with two sets of folds (:class:`TwoFoldings`). Alternating folds take the
labelled samples in score order in turn: low variance, but the folds share their noise, so that the
ratio of one fits the other too well, the classes look farther apart than they are, and the estimate
is pulled towards one half. That costs little at medium prevalences and multiplies rare ones. Random
folds have no such bias, and more variance where labelled samples are few. How far the two disagree
decides the weight of each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cmtrack._lazy import cached_property
from cmtrack.metrics.intervals import Interval
from cmtrack.prevalence.densities import MODELS, ScoreCells
from cmtrack.prevalence.mixture import Variance, deviance_limit
from cmtrack.statistics.inputs import BoolArray, FloatArray

# -- folds: functions of the counts alone, the same for every order of the samples ----------------

Folding = Callable[[FloatArray, int], FloatArray]
"""Of counts (B,) and a number of folds: counts (folds, B) that sum to the former."""

_SEED = 20230813
_MOST = 10**9
"""Samples that a hypergeometric distribution is drawn of; with more, folds differ by nothing that could be seen."""


def in_turn(counts: FloatArray, folds: int) -> FloatArray:
    """Deal the samples in score order to the folds in turn, fractional counts (weights) likewise.

    The folds are as alike as can be, and so a model that is fitted on the others has nearly seen
    this one.

    The result, shape (folds, B).
    """
    ends = np.concatenate(([0.0], np.cumsum(counts)))
    turns, within = np.divmod(ends, folds)
    fold = np.arange(folds)[:, None]
    up_to = turns + np.clip(within - fold, 0.0, 1.0)
    return np.diff(up_to, axis=1)


def at_random(counts: FloatArray, folds: int) -> FloatArray:
    """Draw folds of equal size at random, with a fixed seed.

    Fractional counts (weights) are split in the shares in which as many whole ones would be.

    The result, shape (folds, B).
    """
    whole = np.ceil(counts).astype(np.int64)
    if not 0 < whole.sum() < _MOST:
        return in_turn(counts, folds)
    rng = np.random.default_rng(_SEED)
    left, out = whole.copy(), np.zeros((folds, len(whole)))
    for fold in range(folds):
        size = int(left.sum()) // (folds - fold)
        drawn = (
            rng.multivariate_hypergeometric(left, size, method="marginals")
            if fold < folds - 1
            else left
        )
        out[fold] = drawn
        left = left - drawn
    return out * np.divide(counts, whole, out=np.zeros(len(whole)), where=whole > 0)


# -- density ratios: a stack of models, weighted by cross-validated log score ----------------------

FOLDS = 2
_STEPS = 100


@dataclass(frozen=True, eq=False)
class FittedRatio:
    """Log density ratios of cells, without each fold of labelled samples.

    ``left``, shape (F, B).
    ``positives``, ``negatives``, shape (F, B): counts of the fold that was left out.
    ``members``: weight of each model.
    """

    left: FloatArray
    positives: FloatArray
    negatives: FloatArray
    members: dict[str, float]


def fit_ratio(
    cells: ScoreCells,
    folding: Folding = in_turn,
    most: int = FOLDS,
) -> FittedRatio:
    """Fit the stack of density models.

    A member's ratio r gives the probability r / (1 + r) of a positive among as many negatives.
    These probabilities are averaged. The weights maximise the log score of the labelled classes,
    both classes of weight one half, with every sample judged by members fitted without its fold;
    one sample's worth of weight is added to each member, so that with few samples the average is
    close to the plain one.
    """
    place, positives, negatives = cells.place, cells.positives, cells.negatives
    folds = int(min(most, positives.sum(), negatives.sum()))
    if folds < 2:
        equal_weights = dict.fromkeys(MODELS, 1 / len(MODELS))
        return FittedRatio(
            whole_ratio(cells)[None], positives[None], negatives[None], equal_weights
        )
    held1, held0 = folding(positives, folds), folding(negatives, folds)
    left = _members(place, positives - held1, negatives - held0)
    weights = _weights(left, held1, held0)
    mean = np.tensordot(weights, left, 1)
    members = dict(zip(MODELS, weights.tolist(), strict=True))
    return FittedRatio(_log_odds(mean), held1, held0, members)


def whole_ratio(cells: ScoreCells) -> FloatArray:
    """Log density ratio of each cell from all labelled samples, with members averaged equally."""
    fits = _members(cells.place, cells.positives[None], cells.negatives[None])[:, 0]
    return _log_odds(fits.mean(axis=0))


def _log_odds(chance: FloatArray) -> FloatArray:
    return np.log(chance) - np.log1p(-chance)


def _members(place: FloatArray, positives: FloatArray, negatives: FloatArray) -> FloatArray:
    """Probabilities of each member (first axis), no more extreme than half a count among all would give.

    A high ratio is limited by the number of negatives, of which half a one could have such a score;
    a low one by that of the positives.
    """
    top, bottom = np.log(2 * negatives.sum(axis=1) + 1), np.log(2 * positives.sum(axis=1) + 1)
    fits = [
        np.clip(model(place, positives, negatives), -bottom[:, None], top[:, None])
        for model in MODELS.values()
    ]
    return 1 / (1 + np.exp(-np.stack(fits)))


def _weights(left: FloatArray, positives: FloatArray, negatives: FloatArray) -> FloatArray:
    """Convex weights of the best log score, by expectation-maximisation from equal weights."""
    m1, m0 = positives.sum(), negatives.sum()
    size = m1 + m0
    of_label = np.concatenate((left[:, positives > 0], 1 - left[:, negatives > 0]), axis=1)
    mass = np.concatenate((positives[positives > 0] / m1, negatives[negatives > 0] / m0)) * (
        size / 2
    )
    return stacking_weights(of_label, mass)


def stacking_weights(own: FloatArray, mass: FloatArray) -> FloatArray:
    """Convex weights (members,) of the best log score, one sample's worth of weight added to each member.

    ``own``, shape (members, m): each member's probability of the actual class, without the sample's
        fold.
    ``mass``, shape (m,): weights of the samples.
    """
    weights = np.full(len(own), 1 / len(own))
    for _ in range(_STEPS):
        share = own * weights[:, None]
        following = (share / share.sum(axis=0)) @ mass + 1.0
        following /= following.sum()
        done = np.abs(following - weights).max() < 1e-4
        weights = following
        if done:
            break
    return weights


# -- the moment -----------------------------------------------------------------------------------

_CLIP = 30.0
_POINTS = 161


@dataclass(frozen=True, eq=False)
class MomentMatch:
    """Three count vectors over cells, and the log density ratio of each cell.

    With several folds every labelled sample is weighed by the h that was fitted without it, and the
    target by the mean of all h (cross-fitting): an h fitted on a sample fits it too well, which
    would bias small shares upwards.

    ``log_ratio``, shape (F, B): by fold that was left out of the fit.
    ``target``, shape (B,): shares of target samples.
    ``positives``, ``negatives``, shape (F, B): shares of labelled samples of each class, by fold;
        each sums to 1.
    ``sizes``, (n, m1, m0): (Effective) numbers of samples.
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
        """Class densities (positives, negatives) that have the ratio and the labelled scores' pooled mass."""
        chance = (self.odds / (1 + self.odds)).mean(axis=0)
        mass = (self.positives.sum(axis=0) + self.negatives.sum(axis=0)) / 2
        p, q = mass * chance, mass * (1 - chance)
        return p / p.sum(), q / q.sum()

    def weights(self, prevalence: FloatArray) -> FloatArray:
        """Values of n h at each prevalence, shape (len(prevalence), F, B)."""
        n, m1, m0 = self.sizes
        pi = prevalence[:, None, None]
        return (self.odds - 1) / (
            (pi + pi**2 * n / m1) * self.odds + (1 - pi) + (1 - pi) ** 2 * n / m0
        )

    def equation(self, prevalence: FloatArray) -> FloatArray:
        """Gap mean_target h - pi mean_positives h - (1-pi) mean_negatives h; 0 at the estimate, falling."""
        pi = prevalence[:, None, None]
        gap = self.target / len(self.odds) - pi * self.positives - (1 - pi) * self.negatives
        return np.einsum("pfb,pfb->p", gap, self.weights(prevalence))

    def solve(self) -> float:
        """The root in [0, 1] next to a first estimate; where there is none, the least equation in standard errors.

        The first estimate takes h at 1/2, which no cell dominates. Near 0 and 1 a few samples of
        extreme ratio can give the equation more roots, or lift it off its only one; the least of
        equation^2 / variance (continuous updating, Hansen, Heaton & Yaron 1996) is then the end of
        the range or the place where the root was.
        """
        h = self.weights(np.array([0.5]))[0]
        target, above, below = (
            float((h * x).sum()) for x in (self.target / len(h), self.positives, self.negatives)
        )
        start = min(max((target - below) / (above - below), 0.0), 1.0) if above > below else 0.5
        rising = self.equation(np.array([start]))[0] > 0
        end = 1.0 if rising else 0.0
        path = start + (end - start) * (np.arange(_POINTS) / (_POINTS - 1)) ** 2
        turned = np.flatnonzero((self.equation(path) > 0) != rising)
        if not len(turned):
            variances = sum(self.spread(path, unseen=(True, True))[:3])
            with np.errstate(divide="ignore", invalid="ignore"):
                distance = self.equation(path) ** 2 / variances
            return float(path[np.nanargmin(distance)]) if np.isfinite(distance).any() else end
        low, high = sorted((float(path[turned[0] - 1]), float(path[turned[0]])))
        for _ in range(46):
            middle = (low + high) / 2
            low, high = (
                (middle, high) if self.equation(np.array([middle]))[0] > 0 else (low, middle)
            )
        return (low + high) / 2

    def spread(
        self,
        prevalence: FloatArray,
        unseen: tuple[bool | BoolArray, bool | BoolArray] = (False, False),
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Variances of the equation due to (target, positives, negatives), and minus its slope, at each prevalence.

        The variance of h in a class is that of its labelled samples, and one sample's worth of that
        of the model.

        ``unseen``, (of positives, of negatives): where to allow for scores that the class has, but
            none of its labelled samples has shown: the variance of the model if it is the larger,
            and half a sample more, which scores as the other class does.
        """
        n, m1, m0 = self.sizes
        h, pi = self.weights(prevalence), prevalence
        average = h.mean(axis=1, keepdims=True)
        (mean1, own1), (mean0, own0) = _moments(h, self.positives), _moments(h, self.negatives)
        slope = mean1 - mean0
        variances = []
        for m, own, other, density, more in zip(
            (m1, m0), (own1, own0), (own0, own1), self.densities, unseen, strict=True
        ):
            model = _moments(average, density)[1]
            most = np.maximum(own, model) + (other + slope**2) / (2 * m)
            variances.append(np.where(more, most, (m * own + model) / (m + 1)))
        v1, v0 = variances
        of_target = pi * v1 + (1 - pi) * v0 + pi * (1 - pi) * slope**2
        return of_target / n, pi**2 * v1 / m1, (1 - pi) ** 2 * v0 / m0, slope

    def about(
        self, estimate: float, prevalence: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """:meth:`spread` at candidates for an interval around the estimate.

        Negatives that score like positives, of which the labelled ones have shown none, would make
        the share smaller than estimated, never larger; positives that score like negatives the
        other way round. So what is unseen of the negatives widens the interval below the estimate,
        of the positives above it.
        """
        return self.spread(prevalence, unseen=(prevalence > estimate, prevalence < estimate))

    def variance(self, prevalence: float, unseen: bool = False) -> Variance:
        """Variance of the estimate by source; the information is that of the likelihood."""
        parts = self.spread(np.array([prevalence]), unseen=(unseen, unseen))
        target, positives, negatives, slope = (float(part[0]) for part in parts)
        if not slope > 0:
            return Variance(np.inf, np.inf, np.inf, 0.0)
        p, q = self.densities
        mix = prevalence * p + (1 - prevalence) * q
        information = float(((p - q)[mix > 0] ** 2 / mix[mix > 0]).sum())
        return Variance(target / slope**2, positives / slope**2, negatives / slope**2, information)

    def deviance(
        self, estimate: float, grid: FloatArray, kind: str = "adjusted", realised: bool = False
    ) -> FloatArray:
        """Quasi-deviance 2 |integral of slope x equation / variance| from the estimate to each point of an even grid.

        "naive" keeps the target's part of the variance only. ``realised`` leaves out pi(1-pi)/n.
        """
        points = np.union1d(grid, [estimate])
        target, positives, negatives, slope = self.about(estimate, points)
        whole = target if kind == "naive" else target + positives + negatives
        if realised:
            of_labels = slope**2 * points * (1 - points) / self.sizes[0]
            whole = np.maximum(whole - of_labels, 1e-3 * whole)
        with np.errstate(divide="ignore", invalid="ignore"):
            rate = np.where(whole > 0, slope * self.equation(points) / whole, 0.0)
        area = np.concatenate(([0.0], np.cumsum((rate[1:] + rate[:-1]) / 2 * np.diff(points))))
        start = np.searchsorted(points, estimate)
        deviance: FloatArray = 2 * (area[start] - area)
        return np.maximum(deviance[np.searchsorted(points, grid)], 0.0)

    def interval(
        self, kind: str, estimate: float, confidence_level: float, realised: bool = False
    ) -> Interval:
        """Ends of the adjusted or naive interval, of the population's or of the target's own share."""
        limit = deviance_limit(confidence_level)

        def deviance(grid: FloatArray) -> FloatArray:
            return self.deviance(estimate, grid, kind, realised)

        reach = max(6 * float(np.sqrt(min(self.variance(estimate).total, 1.0))), 1e-6)
        low = _end(estimate, 0.0, reach, limit, deviance)
        high = _end(estimate, 1.0, reach, limit, deviance)
        return low, high


def _moments(h: FloatArray, shares: FloatArray) -> tuple[FloatArray, FloatArray]:
    values, weights = h.reshape(len(h), -1), shares.ravel()
    mean = values @ weights
    return mean, np.maximum(values**2 @ weights - mean**2, 0.0)


def _end(
    estimate: float,
    limit_at: float,
    reach: float,
    limit: float,
    deviance: Callable[[FloatArray], FloatArray],
) -> float:
    """First point between the estimate and 0 or 1 where the deviance passes the limit."""
    while True:
        edge = max(estimate - reach, 0.0) if limit_at == 0.0 else min(estimate + reach, 1.0)
        grid = np.linspace(estimate, edge, _POINTS)
        ascending = grid if edge >= estimate else grid[::-1]
        values = deviance(ascending)
        values = values if edge >= estimate else values[::-1]
        beyond = np.flatnonzero(values > limit)
        if len(beyond):
            at = int(beyond[0])
            if at == 0:
                return estimate
            rest = (limit - values[at - 1]) / (values[at] - values[at - 1])
            return float(grid[at - 1] + rest * (grid[at] - grid[at - 1]))
        if edge == limit_at:
            return limit_at
        reach *= 2


# -- two sets of folds ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class TwoFoldings:
    """One target and its labelled samples, matched by alternating and by random folds."""

    in_turn: MomentMatch
    at_random: MomentMatch

    @cached_property
    def estimates(self) -> tuple[float, float]:
        """Estimates by alternating and by random folds."""
        return self.in_turn.solve(), self.at_random.solve()

    @cached_property
    def weight(self) -> float:
        """Weight of the estimate by alternating folds: variance over variance plus squared disagreement."""
        turn, drawn = self.estimates
        variance = self.in_turn.variance(turn, unseen=True).total
        if not np.isfinite(variance) or turn == drawn:
            return 1.0
        return variance / (variance + (turn - drawn) ** 2)

    @property
    def densities(self) -> tuple[FloatArray, FloatArray]:
        """Class densities (positives, negatives) by cell."""
        return self.in_turn.densities

    def solve(self) -> float:
        """The weighted mean of both estimates."""
        turn, drawn = self.estimates
        return self.weight * turn + (1 - self.weight) * drawn

    def variance(self, prevalence: float) -> Variance:
        """Weighted mean of both variances, and their disagreement, which the labelled samples cause."""
        turn, drawn = (match.variance(prevalence) for match in (self.in_turn, self.at_random))
        if not np.isfinite(turn.total + drawn.total):
            return Variance(np.inf, np.inf, np.inf, 0.0)
        w = self.weight
        target, positives, negatives = (
            w * getattr(turn, part) + (1 - w) * getattr(drawn, part)
            for part in ("target", "positives", "negatives")
        )
        between = w * (1 - w) * (self.estimates[0] - self.estimates[1]) ** 2
        labelled = positives + negatives
        share = positives / labelled if labelled > 0 else 0.5
        return Variance(
            target, positives + share * between, negatives + (1 - share) * between, turn.information
        )

    def deviance(
        self, grid: FloatArray, kind: str = "adjusted", realised: bool = False
    ) -> FloatArray:
        """The smaller of the two quasi-deviances; 0 between the two estimates."""
        low, high = sorted(self.estimates)
        pair = zip((self.in_turn, self.at_random), self.estimates, strict=True)
        smaller = np.minimum(
            *(match.deviance(estimate, grid, kind, realised) for match, estimate in pair)
        )
        return np.where((low <= grid) & (grid <= high), 0.0, smaller)

    def interval(self, kind: str, confidence_level: float, realised: bool = False) -> Interval:
        """Interval from the lower of the two lower ends to the upper of the two upper ones."""
        pair = zip((self.in_turn, self.at_random), self.estimates, strict=True)
        ends = [
            match.interval(kind, estimate, confidence_level, realised) for match, estimate in pair
        ]
        return min(low for low, _ in ends), max(high for _, high in ends)
