"""Shares of K classes in a target, jointly, with their covariance: by bins, for any number of classes, without a model.

A sample's bin is its most probable class and the quantile group of that class's probability;
labelled counts give each class's density over the bins, one count added, spread evenly (two
classes: half a count in each bin). Expectation-maximisation gives the shares, a sandwich their
covariance. By recalibrated probabilities: :mod:`.class_moments`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import brentq, nnls
from scipy.sparse import csr_array
from scipy.special import chdtrc, chdtri, chndtr

from cmtrack._lazy import cached_property
from cmtrack.metrics.intervals import normal_quantile
from cmtrack.metrics.quantile_bins import smoothed
from cmtrack.prevalence.fit import DOUBTFUL
from cmtrack.prevalence.mixture import Mixture, climb
from cmtrack.statistics.inputs import BoolArray, FloatArray, IntArray
from cmtrack.statistics.top_scores import CELLS, TopScoreCounts, cell_middles

GROUPS = 5
_MOST_TILTED = 10
"""Classes up to which the score of each is tilted: it takes a tenth of a second a class."""
_FARTHEST = 5.0
"""Largest tilt that is looked at: exp of so many standard deviations of the score's logit."""
_LEAST = 1e-9
"""Information of one sample about a direction of shares that a target of any size would leave within 0 to 1."""
_MOST_JOINT = 30
"""Of more classes each interval is Wald's alone, cut at 0 and 1: a joint one would take seconds."""


@dataclass(frozen=True, eq=False)
class ClassShares:
    """Estimated shares of all classes.

    Attributes
    ----------
    values, low, high : ndarray of shape (K,)
        Shares that sum to 1, and the ends of their intervals; NaN for classes without labelled
        samples.
    realised : ndarray of shape (2, K)
        Ends of the intervals of the target's own shares.
    covariance : ndarray of shape (K, K)
    of_labelled : ndarray of shape (K, K)
        The part of each share's variance (columns) that each class's labelled samples (rows) cause.
    identified : bool ndarray of shape (K,)
        False where any share of the class, given up by others, would explain the target as well;
        its value is NaN.
    refused : str
        Why there are no shares although they are identified; else empty.
    """

    values: FloatArray
    low: FloatArray
    high: FloatArray
    realised: FloatArray
    covariance: FloatArray
    of_labelled: FloatArray
    identified: BoolArray
    refused: str = ""

    @classmethod
    def estimated(
        cls,
        values: FloatArray,
        covariance: FloatArray,
        of_labelled: FloatArray,
        identified: BoolArray,
        level: float,
        n: float,
    ) -> ClassShares:
        """Make shares of a target of n samples with their intervals; NaN where they are not identified.

        The variance of the target's own shares is less by share (1 - share) / n.
        """
        values = np.where(identified, values, math.nan)
        with np.errstate(invalid="ignore", divide="ignore"):
            variance = np.maximum(np.diag(covariance), 0.0)
            part = np.where(
                variance > 0, np.maximum(1 - values * (1 - values) / n / variance, 1e-3), 1.0
            )
        reach = normal_quantile(level) * np.stack((np.ones(len(values)), np.sqrt(part)))
        (low, high), realised = (joint_ends(values, covariance, one) for one in reach)
        return cls(values, low, high, np.stack(realised), covariance, of_labelled, identified)

    def covering(self, others: Sequence[ClassShares]) -> ClassShares:
        """The same with intervals that reach over the shares of others."""
        values = [np.where(np.isnan(self.values), math.nan, shares.values) for shares in others]
        low, least = (np.fmin.reduce([ends, *values]) for ends in (self.low, self.realised[0]))
        high, most = (np.fmax.reduce([ends, *values]) for ends in (self.high, self.realised[1]))
        return replace(self, low=low, high=high, realised=np.stack((least, most)))

    def withdrawn(self, reason: str) -> ClassShares:
        """Return shares that are all NaN, for a reason."""
        nothing = np.full(len(self.values), math.nan)
        realised = np.full_like(self.realised, math.nan)
        return replace(
            self, values=nothing, low=nothing, high=nothing, realised=realised, refused=reason
        )

    @classmethod
    def nothing(cls) -> ClassShares:
        """Shares of no classes."""
        return cls(*(np.empty(0),) * 6, np.empty(0, dtype=bool))


def joint_ends(
    values: FloatArray, covariance: FloatArray, reach: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The lowest and the highest of each share (K,) within ``reach`` standard errors of the estimate.

    Wald's ends, but only by shares none of which is below 0. Where scores hardly tell two classes
    apart, one share may be larger only as far as the other can be smaller; Wald's interval of each
    reaches far beyond.

    ``reach``, shape (K,).
    """
    error = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    low, high = np.clip(values - reach * error, 0, 1), np.clip(values + reach * error, 0, 1)
    sure = np.flatnonzero(np.isfinite(values) & np.isfinite(error))
    if not 2 < len(sure) <= _MOST_JOINT:
        return low, high
    at, spread = values[sure], covariance[np.ix_(sure, sure)]
    strength, directions = np.linalg.eigh(spread)
    moves = strength > 1e-12 * strength[-1]
    root = (directions[:, moves] / np.sqrt(strength[moves])).T
    heavy = 1e4 * np.abs(root).max(initial=1.0)  # rows that hold: the sum, and what does not vary
    rows = np.vstack((root, heavy * directions[:, ~moves].T))

    def away(share: float, place: int) -> float:
        held = np.append(np.zeros(place), heavy)
        matrix = np.vstack((rows, np.pad(held, (0, len(at) - len(held)))))
        nearest, _ = nnls(matrix, np.append(rows @ at, heavy * share), maxiter=50 * len(at))
        return float(np.linalg.norm(root @ (nearest - at)))

    for place, k in enumerate(sure):
        for ends, side in ((low, -1.0), (high, 1.0)):
            others = at + side * reach[k] * spread[place] / (error[k] or 1.0)
            if np.delete(others, place).min() < 0 and away(ends[k], place) > reach[k]:
                ends[k] = brentq(
                    lambda x, p=place, r=reach[k]: away(x, p) - r, at[place], ends[k], xtol=1e-6
                )
    return low, high


def class_shares(
    labelled: TopScoreCounts,
    target: TopScoreCounts | None,
    confidence_level: float = 0.95,
    scales: tuple[float, float] = (1.0, 1.0),
) -> ClassShares:
    """Estimate the shares of all classes.

    ``labelled``, TopScoreCounts of shape (K, K, cells): by actual class.
    ``target``, TopScoreCounts of shape (1, K, cells), or None: None: the labelled samples are the
        target too, each left out of its own class's density.
    ``scales``, (float, float): effective over nominal size of the labelled and of the target
        samples, where these are weighted.
    """
    table, binned = _grouped(labelled, target, GROUPS)
    table, binned = table * scales[0], binned * (scales[0] if target is None else scales[1])
    size = len(table)
    present = table.sum(axis=1) > 0
    counts = table[present]
    del table
    shares = _most_likely(counts, None if target is None else binned)
    values, m, n = np.full(size, math.nan), counts.sum(axis=1), float(binned.sum())
    values[present] = shares
    densities = _densities(counts)
    del counts
    of_target, of_labelled, variances, sure = covariance_parts(densities, shares, n, m)
    covariance = np.full((size, size), math.nan)
    covariance[np.ix_(present, present)] = of_target + of_labelled
    identified = np.ones(size, dtype=bool)
    identified[present] = sure
    by_class = np.zeros((size, size))
    by_class[np.ix_(present, present)] = variances
    return ClassShares.estimated(values, covariance, by_class, identified, confidence_level, n)


def covariance_parts(
    densities: FloatArray, shares: FloatArray, n: float, labelled: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, BoolArray]:
    """Covariance of the shares by source.

    Parameters
    ----------
    densities : ndarray of shape (B, K), columns summing to 1
    shares : ndarray of shape (K,)
    n : float
        Target samples.
    labelled : ndarray of shape (K,)
        Labelled samples of each class.

    Returns
    -------
    of_target : ndarray of shape (K, K)
        The covariance that the target samples cause.
    of_labelled : ndarray of shape (K, K)
        The covariance that the labelled samples cause.
    variances : ndarray of shape (K, K)
        What each class's labelled samples (rows) add to the variance of each share (columns).
    identified : bool ndarray of shape (K,)
    """
    gap = densities[:, :-1] - densities[:, -1:]
    scaled = gap / (densities @ shares)[:, None]
    information = scaled.T @ gap
    del gap
    spread, identified = inverse_information(information)
    # One labelled sample of class c in bin b moves the shares by -share_c / m_c times row b of
    # `pull`, less its mean.
    pull = scaled @ spread.T
    del scaled
    weight = shares**2 / labelled
    means = pull.T @ densities
    of_labelled = (pull * (densities @ weight)[:, None]).T @ pull - (means * weight) @ means.T
    variances = weight[:, None] * ((pull**2).T @ densities - means**2).T
    return spread @ (information / n) @ spread.T, of_labelled, variances, identified


def inverse_information(information: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Change of all K shares (rows) by a score of the first K-1 (columns), and flags of the identified shares.

    A direction of the shares without information is left out; the classes that it would change are
    not identified.
    """
    size = len(information)
    shares = np.vstack((np.eye(size), -np.ones(size)))
    strength, directions = np.linalg.eigh(information)
    determined = strength > max(_LEAST, size * np.finfo(float).eps * float(strength[-1]))
    free = shares @ directions[:, ~determined]
    inverse = (directions[:, determined] / strength[determined]) @ directions[:, determined].T
    return shares @ inverse, (np.abs(free) < 1e-3).all(axis=1)


def _added(counts: FloatArray) -> float:
    """The part of a count that each bin of labelled counts (K, B) is given: a half with two classes, a Bth with more.

    Half a count in each of many bins would drown the densities of many classes.
    """
    return 0.5 if len(counts) == 2 else 1 / counts.shape[1]


def _densities(counts: FloatArray) -> FloatArray:
    """Each class's share of the bins, shape (B, K), from labelled counts (K, B)."""
    counts = counts + _added(counts)
    return (counts / counts.sum(axis=1, keepdims=True)).T


def _most_likely(counts: FloatArray, target: FloatArray | None) -> FloatArray:
    """Maximum-likelihood shares of the classes, shape (K,), by labelled counts (K, B).

    The densities are those of :func:`_densities`: a part of a count everywhere, and few whole
    counts. So a step takes as long as there are bins with counts, not bins times classes.

    ``target``, shape (B,), or None: None: the labelled samples themselves, each left out of its own
        class's density.
    """
    size, n_bins = counts.shape
    added = _added(counts)
    totals = counts.sum(axis=1) + n_bins * added
    floor, heights = added / totals, csr_array(counts / totals[:, None])
    by_bin = heights.T.tocsr()
    if target is not None:
        return climb(
            lambda shares: by_bin @ shares + floor @ shares,
            lambda ratio: heights @ ratio + floor * ratio.sum(),
            target,
            size,
        )
    actual, bins = np.nonzero(counts)  # one row for the samples of a class in a bin
    own = counts[actual, bins]
    left = np.minimum(own, 1.0)
    less = (own - left + added) / (totals[actual] - left) - (own + added) / totals[actual]

    def mix(shares: FloatArray) -> FloatArray:
        return (by_bin @ shares + floor @ shares)[bins] + less * shares[actual]

    def pull(ratio: FloatArray) -> FloatArray:
        inside = heights @ np.bincount(bins, ratio, n_bins) + floor * ratio.sum()
        return inside + np.bincount(actual, less * ratio, size)

    return climb(mix, pull, own, size)


def _bins(labelled: TopScoreCounts, groups: int) -> IntArray:
    """The bin of each (predicted class, cell): a quantile group of all labelled samples of that predicted class."""
    size = labelled.table.shape[1]
    per_cell = np.bincount(labelled.cells[1], labelled.sums, size * CELLS).reshape(size, CELLS)
    total = per_cell.sum(axis=1, keepdims=True)
    before = np.cumsum(per_cell, axis=1) - per_cell / 2
    share = np.divide(before, total, out=np.zeros_like(before), where=total > 0)
    group = np.minimum((share * groups).astype(np.int64), groups - 1)
    return (np.arange(size)[:, None] * groups + group).ravel()


def _grouped(
    labelled: TopScoreCounts, target: TopScoreCounts | None, groups: int
) -> tuple[FloatArray, FloatArray]:
    """Counts (K, bins) of the labelled and (bins,) of the target samples over the bins that the former define.

    Bins that hold neither are dropped.
    """
    code, (actual, cell) = _bins(labelled, groups), labelled.cells
    bins = code[cell]
    aim = (bins, labelled.sums) if target is None else (code[target.cells[1]], target.sums)
    used, place = np.unique(np.concatenate((bins, aim[0])), return_inverse=True)
    n_bins, n_labelled = len(used), len(bins)
    counted = np.bincount(
        actual * n_bins + place[:n_labelled], labelled.sums, labelled.n_rows * n_bins
    )
    table: FloatArray = counted.astype(np.float64, copy=False).reshape(labelled.n_rows, n_bins)
    binned: FloatArray = np.bincount(place[n_labelled:], aim[1], n_bins).astype(
        np.float64, copy=False
    )
    return table, table.sum(axis=0) if target is None else binned


@dataclass(frozen=True, eq=False)
class BinnedShares:
    """Maximum-likelihood shares of K classes by labelled counts over B bins.

    ``counts``, shape (K, B): labelled rows.
    ``target``, shape (B,).
    ``place``, shape (B,): where a bin's scores are, on the scale of logits.
    ``best``, shape (B,): the most probable class of each bin, where bins lie within one.
    """

    counts: FloatArray
    target: FloatArray
    place: FloatArray
    best: IntArray | None = None
    given: FloatArray | None = None

    @classmethod
    def of_tops(
        cls, labelled: TopScoreCounts, target: TopScoreCounts, given: FloatArray | None = None
    ) -> BinnedShares:
        """By most probable class and quantile group of its probability."""
        counts, binned = _grouped(labelled, target, GROUPS)
        bins = _bins(labelled, GROUPS)
        held = (
            np.bincount(np.concatenate((labelled.cells[1], target.cells[1])), minlength=len(bins))
            > 0
        )
        used, place = np.unique(bins[held], return_inverse=True)
        rows = np.bincount(labelled.cells[1], labelled.sums, len(bins))[held] + 1e-9
        middle = np.bincount(
            place, rows * np.tile(cell_middles(), len(bins) // CELLS)[held]
        ) / np.bincount(place, rows)
        return cls(counts, binned, middle, used // GROUPS, given)

    @property
    def n(self) -> float:
        """Rows of the target."""
        return float(self.target.sum())

    @cached_property
    def labelled(self) -> FloatArray:
        """Labelled rows of each class, shape (K,)."""
        return np.asarray(self.counts.sum(axis=1))

    @cached_property
    def densities(self) -> FloatArray:
        """Each class's share of the bins, shape (B, K)."""
        return _densities(self.counts)

    @cached_property
    def shares(self) -> FloatArray:
        """Shares of the classes, shape (K,)."""
        return self._fitted(self.target) if self.given is None else self.given

    def _fitted(self, target: FloatArray) -> FloatArray:
        if len(self.counts) > 2:
            return _most_likely(self.counts, target)
        value = Mixture(self.densities[:, 1], self.densities[:, 0], target).maximise()
        return np.array([1 - value, value])

    @property
    def identified(self) -> bool:
        """True where the scores tell all classes apart."""
        gap = self.densities[:, :-1] - self.densities[:, -1:]
        scaled = gap / (self.densities @ self.shares)[:, None]
        return bool(np.isfinite(self.shares).all() and inverse_information(scaled.T @ gap)[1].all())

    # -- the fit ----------------------------------------------------------------------------------

    @cached_property
    def _standard(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Densities with half a count a bin, the error of the target's part of each bin, and what shares change."""
        densities = np.stack([smoothed(row) for row in self.counts], axis=1)
        error = np.sqrt(densities @ (self.shares / self.n + self.shares**2 / self.labelled))
        return densities, error, (densities[:, :-1] - densities[:, -1:]) / error[:, None]

    def _statistic(self, part: FloatArray, least: bool) -> float:
        densities, error, change = self._standard
        gap = (part - densities @ self.shares) / error
        if least:
            gap = gap - change @ np.linalg.lstsq(change, gap, rcond=None)[0]
        return float((gap**2).sum())

    @property
    def degrees(self) -> int:
        """Degrees of freedom of the test."""
        return len(self.target) - len(self.counts)

    @cached_property
    def statistic(self) -> float:
        """Pearson's X^2 of the target's bins against the mixture.

        Of two classes at their shares. Of more at its least over shares, with the errors at these:
        shares that know more than the bins would not cost a degree of freedom each (Chernoff &
        Lehmann 1954, Ann. Math. Statist. 25, 579-586). Densities have half a count in each bin:
        with fewer, bins that a rare class seems never to reach reject too often.
        """
        return self._statistic(self.target / self.n, least=len(self.counts) > 2)

    @property
    def fit_pvalue(self) -> float:
        """The p-value of the statistic; NaN without a degree of freedom."""
        return float(chdtrc(self.degrees, self.statistic)) if self.degrees > 0 else math.nan

    def tilted(self, table: FloatArray, tilt: float) -> FloatArray:
        """Distributions over bins (..., B) times exp(tilt times the score in standard deviations), each again of 1."""
        part = self.target / self.n
        centred = self.place - part @ self.place
        spread = math.sqrt(float(part @ centred**2))
        weights = table * np.exp(np.clip(tilt * centred / (spread or 1.0), -300, 300))
        total = weights.sum(axis=-1, keepdims=True)
        return np.asarray(np.divide(weights, total, out=np.zeros_like(weights), where=total > 0))

    @cached_property
    def missed(self) -> tuple[float, ...]:
        """The smallest tilt of the scores of all classes, down and up, that the test would see in half of all cases.

        At most five standard deviations either way; empty where the fit cannot be tested.
        """
        if self.degrees < 1 or not self.identified:
            return ()
        critical = float(chdtri(self.degrees, DOUBTFUL))
        wanted = float(brentq(lambda far: chndtr(critical, self.degrees, far) - 0.5, 0.0, 1e4))

        def beyond(tilt: float) -> float:
            return (
                self._statistic(self.tilted(self.densities.T, tilt).T @ self.shares, least=True)
                - wanted
            )

        return tuple(
            side * _FARTHEST
            if beyond(side * _FARTHEST) < 0
            else float(brentq(beyond, *sorted((0.0, side * _FARTHEST)), xtol=1e-4))
            for side in (-1, 1)
        )

    def fitted_to(self, tilt: float) -> FloatArray:
        """The shares estimated for a large target with tilted scores, shape (K,)."""
        fitted = self._fitted(self.n * self.tilted(self.densities.T, tilt).T @ self.shares)
        return np.maximum(fitted, 1e-12)  # what is of one class alone stays defined

    @cached_property
    def ways(self) -> tuple[BinnedShares, ...]:
        """The same with the scores that are tilted: of more than two classes that of each, as far as bins tell it.

        Of more than ten classes the largest probability alone, which moves shares less.
        """
        best, size = self.best, len(self.counts)
        if best is None or not 2 < size <= _MOST_TILTED:
            return (self,)
        places = (np.where(best == k, self.place, -self.place) for k in range(size))
        return tuple(replace(self, place=place, given=self.shares) for place in places)

    @cached_property
    def missed_move(self) -> FloatArray:
        """The largest effect on each share of a tilt that the test would miss, shape (K,); NaN without a test."""
        moves = [
            np.abs(one.fitted_to(tilt) - self.shares) for one in self.ways for tilt in one.missed
        ]
        return np.max(moves, axis=0) if moves else np.full(len(self.counts), math.nan)
