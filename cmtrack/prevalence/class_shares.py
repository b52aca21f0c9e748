"""Joint shares of K classes in a target, estimated from bins, with their covariance.

The estimate does not need a model of the densities. The bin of a row is determined by its most
probable class and by the quantile group of this class's probability. The density of each class over
the bins is computed from labelled counts. One count is added to each class and spread evenly over
the bins. If there are two classes, half a count is added to each bin instead.
Expectation-maximisation is used to estimate the shares, and a sandwich estimator to estimate their
covariance. For estimates from recalibrated probabilities, see :mod:`.class_moments`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
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
"""Largest number of classes for which the score of every class is tilted, because tilting takes a
tenth of a second per class.
"""
_FARTHEST = 5.0
"""Largest tilt that is tried, measured in standard deviations of the score's logit."""
_LEAST = 1e-9
"""If the information per row is lower than this, even the largest target cannot determine a
direction of the shares.
"""
_MOST_JOINT = 30
"""Largest number of classes for which joint intervals are computed. If there are more classes, each
interval is a Wald interval, limited to 0 and 1, because joint intervals would take seconds.
"""


@dataclass(frozen=True, eq=False)
class ClassShares:
    """Estimated shares of all classes.

    Attributes
    ----------
    values, low, high : ndarray of shape (K,)
        Shares that sum to 1, and the ends of their intervals. They are NaN for classes without
        labelled rows.
    realised : ndarray of shape (2, K)
        Ends of the intervals for the actual shares in the target itself.
    covariance : ndarray of shape (K, K)
    of_labelled : ndarray of shape (K, K)
        For each share (columns), the part of its variance that the labelled rows of each class
        (rows) cause.
    identified : bool ndarray of shape (K,)
        False if any part of the class's share could be moved to different classes without a worse
        fit to the target. The value is then NaN.
    refused : str
        The reason why there are no shares although they are identified, and otherwise empty.
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
        """Return the shares in a target of n rows with their intervals; NaN if not identified.

        The variance for the actual shares in the target itself is smaller by share (1 - share) / n.
        """
        values = np.where(identified, values, math.nan)
        variance = np.maximum(np.diag(covariance), 0.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            part = np.maximum(1 - values * (1 - values) / n / variance, 1e-3)
        part[~(variance > 0)] = 1.0
        reach = np.full(len(values), normal_quantile(level))
        low, high = joint_ends(values, covariance, reach)
        realised = joint_ends(values, covariance, reach * np.sqrt(part))
        return cls(values, low, high, np.stack(realised), covariance, of_labelled, identified)

    def covering(self, others: Sequence[ClassShares]) -> ClassShares:
        """Return the shares with intervals that are widened to include the shares in ``others``."""
        values = np.array([shares.values for shares in others])
        values[:, np.isnan(self.values)] = math.nan
        lowest = np.fmin.reduce(values, initial=math.inf)
        highest = np.fmax.reduce(values, initial=-math.inf)
        low = np.fmin(self.low, lowest)
        high = np.fmax(self.high, highest)
        realised = (np.fmin(self.realised[0], lowest), np.fmax(self.realised[1], highest))
        return replace(self, low=low, high=high, realised=np.stack(realised))

    def withdrawn(self, reason: str) -> ClassShares:
        """Return shares that are all NaN, together with the reason."""
        nothing = np.full(len(self.values), math.nan)
        realised = np.full_like(self.realised, math.nan)
        return replace(
            self, values=nothing, low=nothing, high=nothing, realised=realised, refused=reason
        )

    @classmethod
    def nothing(cls) -> ClassShares:
        """Return an empty result, without any classes."""
        empty = np.empty(0)
        return cls(empty, empty, empty, empty, empty, empty, np.empty(0, dtype=bool))


def joint_ends(
    values: FloatArray, covariance: FloatArray, reach: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the lowest and the highest value of each share within ``reach`` standard errors.

    These values are the ends of Wald intervals, but only sets of shares that are all at least 0 are
    allowed. If the scores hardly separate two classes, the share of one class can increase only as
    far as the share of the second class can decrease. A separate Wald interval for each share would
    be much wider.

    ``reach``, shape (K,): number of standard errors for each share.
    """
    error = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    low = np.clip(values - reach * error, 0, 1)
    high = np.clip(values + reach * error, 0, 1)
    defined = np.flatnonzero(np.isfinite(values) & np.isfinite(error))
    if not 2 < len(defined) <= _MOST_JOINT:
        return low, high
    estimate = values[defined]
    spread = covariance[np.ix_(defined, defined)]
    distance = _distances(estimate, spread)
    for index, k in enumerate(defined):
        for ends, side in ((low, -1.0), (high, 1.0)):
            # These are the most likely values of the other shares if this share is at its Wald end.
            others = estimate + side * reach[k] * spread[index] / (error[k] or 1.0)
            if np.delete(others, index).min() >= 0 or distance(ends[k], index) <= reach[k]:
                continue

            def excess(share: float, index: int = index, most: float = reach[k]) -> float:
                return distance(share, index) - most

            ends[k] = brentq(excess, estimate[index], ends[k], xtol=1e-6)
    return low, high


def _distances(estimate: FloatArray, spread: FloatArray) -> Callable[[float, int], float]:
    """Return a function that computes the distance to shares with one fixed share.

    The arguments of the function are this share and its index. It returns the number of standard
    errors to the nearest set of shares in which no other share is below 0.
    """
    size = len(estimate)
    strength, directions = np.linalg.eigh(spread)
    varies = strength > 1e-12 * strength[-1]
    root = (directions[:, varies] / np.sqrt(strength[varies])).T
    # Equations that outweigh all others are fulfilled exactly. They fix the sum, all other
    # directions that do not vary, and the share.
    heavy = 1e4 * np.abs(root).max(initial=1.0)
    rows = np.vstack((root, heavy * directions[:, ~varies].T))

    def distance(share: float, index: int) -> float:
        fixed = np.zeros(size)
        fixed[index] = heavy
        wanted = np.append(rows @ estimate, heavy * share)
        nearest, _ = nnls(np.vstack((rows, fixed)), wanted, maxiter=50 * size)
        return float(np.linalg.norm(root @ (nearest - estimate)))

    return distance


def class_shares(
    labelled: TopScoreCounts,
    target: TopScoreCounts | None,
    confidence_level: float = 0.95,
    scales: tuple[float, float] = (1.0, 1.0),
) -> ClassShares:
    """Estimate the shares of all classes.

    ``labelled``, TopScoreCounts of shape (K, K, cells): labelled rows by actual class. ``target``,
        TopScoreCounts of shape (1, K, cells), or None: rows of the target. None means that the
        target consists of the labelled rows. Each row is then left out of the density of its class.
    ``scales``: the effective number of rows divided by the nominal number, for the labelled rows
        and for the target rows. They are needed if rows have weights.
    """
    labelled_scale, target_scale = scales
    if target is None:
        target_scale = labelled_scale
    table, binned = counts_by_bin(labelled, target, GROUPS)
    is_same = target is None
    return table_shares(labelled_scale * table, target_scale * binned, confidence_level, is_same)


def table_shares(
    table: FloatArray, target: FloatArray, confidence_level: float = 0.95, is_same: bool = False
) -> ClassShares:
    """Estimate the shares of all classes from counts.

    ``table``, shape (K, B): labelled rows by class and bin. ``target``, shape (B,): target rows.
    ``is_same``: whether the target consists of the labelled rows.
    """
    size = len(table)
    present = table.sum(axis=1) > 0
    counts = table[present]
    del table  # of many classes it is the largest array
    shares = _most_likely(counts, None if is_same else target)
    m = counts.sum(axis=1)
    n = float(target.sum())
    densities = _densities(counts)
    del counts
    of_target, of_labelled, variances, is_sure = covariance_parts(densities, shares, n, m)
    inside = np.ix_(present, present)
    values = np.full(size, math.nan)
    values[present] = shares
    covariance = np.full((size, size), math.nan)
    covariance[inside] = of_target + of_labelled
    identified = np.ones(size, dtype=bool)
    identified[present] = is_sure
    by_class = np.zeros((size, size))
    by_class[inside] = variances
    return ClassShares.estimated(values, covariance, by_class, identified, confidence_level, n)


def covariance_parts(
    densities: FloatArray, shares: FloatArray, n: float, labelled: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, BoolArray]:
    """Return the covariance of the shares, divided by source.

    Parameters
    ----------
    densities : ndarray of shape (B, K), columns summing to 1
    shares : ndarray of shape (K,)
    n : float
        Number of target rows.
    labelled : ndarray of shape (K,)
        Labelled rows of each class.

    Returns
    -------
    of_target : ndarray of shape (K, K)
        The covariance that the target rows cause.
    of_labelled : ndarray of shape (K, K)
        The covariance that the labelled rows cause.
    variances : ndarray of shape (K, K)
        How much the labelled rows of each class (rows) add to the variance of each share (columns).
    identified : bool ndarray of shape (K,)
    """
    pull, information, spread, identified = score_pull(densities, shares)
    weight = shares**2 / labelled
    means = pull.T @ densities
    of_labelled = (pull * (densities @ weight)[:, None]).T @ pull - (means * weight) @ means.T
    variances = weight[:, None] * ((pull**2).T @ densities - means**2).T
    return spread @ (information / n) @ spread.T, of_labelled, variances, identified


def score_pull(
    densities: FloatArray, shares: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, BoolArray]:
    """Return how a row of each bin changes the shares, and what this is computed from.

    Returns
    -------
    pull : ndarray of shape (B, K)
        A target row in bin b changes the n-fold shares by row b. One labelled row of class c in bin
        b changes the shares by -share_c / m_c times row b, minus the mean of the rows.
    information : ndarray of shape (K - 1, K - 1)
        Fisher information of one target row.
    spread : ndarray of shape (K, K - 1)
        Inverse of the information in the directions that are identified.
    identified : bool ndarray of shape (K,)
    """
    gap = densities[:, :-1] - densities[:, -1:]
    scaled = gap / (densities @ shares)[:, None]
    information = scaled.T @ gap
    del gap  # of many classes it is large
    spread, identified = inverse_information(information)
    return scaled @ spread.T, information, spread, identified


def inverse_information(information: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Return how much all K shares change with the score, and which classes are identified.

    The rows of the result are the K shares, and its columns belong to the score of the first K - 1
    shares. If there is no information about a direction of the shares, this direction is left out,
    and the classes whose shares it would change are not identified.
    """
    size = len(information)
    shares = np.vstack((np.eye(size), -np.ones(size)))
    strength, directions = np.linalg.eigh(information)
    is_informed = strength > max(_LEAST, size * np.finfo(float).eps * float(strength[-1]))
    free = shares @ directions[:, ~is_informed]
    inverse = (directions[:, is_informed] / strength[is_informed]) @ directions[:, is_informed].T
    return shares @ inverse, (np.abs(free) < 1e-3).all(axis=1)


def added_count(counts: FloatArray) -> float:
    """Return the fraction of a count that is added to each bin of labelled counts (K, B).

    The fraction is a half if there are two classes, and 1 / B if there are more classes. Half a
    count in each of many bins would hide the densities of many classes.
    """
    n_classes, n_bins = counts.shape
    return 0.5 if n_classes == 2 else 1 / n_bins


def _densities(counts: FloatArray) -> FloatArray:
    """Return the densities of the classes over the bins, shape (B, K), from counts (K, B)."""
    counts = counts + added_count(counts)
    return (counts / counts.sum(axis=1, keepdims=True)).T


def _most_likely(counts: FloatArray, target: FloatArray | None) -> FloatArray:
    """Return maximum-likelihood shares of the classes, shape (K,), from labelled counts (K, B).

    The densities are equal to the result of :func:`_densities`. They consist of a small fraction of
    a count in every bin, and whole counts in few bins. So the time for a step is proportional to
    the number of bins that contain counts, and not to the number of bins times the number of
    classes.

    ``target``, shape (B,), or None: target rows in each bin. None means that the target consists of
        the labelled rows. Each row is then left out of the density of its class.
    """
    size, n_bins = counts.shape
    added = added_count(counts)
    totals = counts.sum(axis=1) + n_bins * added
    floor = added / totals
    heights = csr_array(counts / totals[:, None])
    by_bin = heights.T.tocsr()

    def mix(shares: FloatArray) -> FloatArray:
        return by_bin @ shares + floor @ shares

    def pull(ratio: FloatArray) -> FloatArray:
        return heights @ ratio + floor * ratio.sum()

    if target is not None:
        return climb(mix, pull, target, size)
    # The rows of each class in a bin are one point, because the density of their own class is lower
    # if one of them is left out.
    actual, bins = np.nonzero(counts)
    n_own = counts[actual, bins]
    n_out = np.minimum(n_own, 1.0)
    with_sample = (n_own + added) / totals[actual]
    less = (n_own - n_out + added) / (totals[actual] - n_out) - with_sample

    def mix_without(shares: FloatArray) -> FloatArray:
        return mix(shares)[bins] + less * shares[actual]

    def pull_without(ratio: FloatArray) -> FloatArray:
        by_bins = np.bincount(bins, ratio, n_bins)
        inside = heights @ by_bins + floor * ratio.sum()
        return inside + np.bincount(actual, less * ratio, size)

    return climb(mix_without, pull_without, n_own, size)


def top_bins(labelled: TopScoreCounts, groups: int) -> IntArray:
    """Return the bin of each pair (predicted class, cell).

    A bin is a quantile group of all labelled rows with the same predicted class.
    """
    size = labelled.table.shape[1]
    per_cell = np.bincount(labelled.cells[1], labelled.sums, size * CELLS).reshape(size, CELLS)
    total = per_cell.sum(axis=1, keepdims=True)
    before = np.cumsum(per_cell, axis=1) - per_cell / 2
    share = np.divide(before, total, out=np.zeros_like(before), where=total > 0)
    group = np.minimum((share * groups).astype(np.int64), groups - 1)
    return (np.arange(size)[:, None] * groups + group).ravel()


def counts_by_bin(
    labelled: TopScoreCounts, target: TopScoreCounts | None, groups: int
) -> tuple[FloatArray, FloatArray]:
    """Return counts of the labelled rows, shape (K, bins), and of the target rows, (bins,).

    The labelled rows define the bins. Bins without any row are left out.
    """
    code = top_bins(labelled, groups)
    actual, cell = labelled.cells
    bins = code[cell]
    target_bins = bins
    if target is not None:
        target_bins = code[target.cells[1]]
    used, number = np.unique(np.concatenate((bins, target_bins)), return_inverse=True)
    n_bins = len(used)
    labelled_number, target_number = np.split(number, [len(bins)])
    pair = actual * n_bins + labelled_number
    counted = np.bincount(pair, labelled.sums, labelled.n_rows * n_bins)
    table: FloatArray = counted.astype(np.float64, copy=False).reshape(labelled.n_rows, n_bins)
    if target is None:
        return table, table.sum(axis=0)
    return table, np.bincount(target_number, target.sums, n_bins).astype(np.float64, copy=False)


@dataclass(frozen=True, eq=False)
class BinnedShares:
    """Maximum-likelihood shares of K classes, from labelled counts in B bins.

    ``counts``, shape (K, B): number of labelled rows by class and bin. ``target``, shape (B,):
        number of target rows in each bin.
    ``place``, shape (B,): position of the scores in each bin, on the scale of logits.
    ``best``, shape (B,): the most probable class of each bin, if each bin belongs to one class.
    ``given``, shape (K,): the shares, if they are already known.
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
        """Create bins by the most probable class and the quantile group of its probability."""
        counts, binned = counts_by_bin(labelled, target, GROUPS)
        bins = top_bins(labelled, GROUPS)
        is_used = np.zeros(len(bins), dtype=bool)
        is_used[labelled.cells[1]] = True
        is_used[target.cells[1]] = True
        used, number = np.unique(bins[is_used], return_inverse=True)
        # The position of a bin that contains only target rows is the mean of its cells.
        rows = np.bincount(labelled.cells[1], labelled.sums, len(bins))[is_used] + 1e-9
        middles = np.tile(cell_middles(), len(bins) // CELLS)[is_used]
        place = np.bincount(number, rows * middles) / np.bincount(number, rows)
        return cls(counts, binned, place, used // GROUPS, given)

    @property
    def n(self) -> float:
        """Number of rows in the target."""
        return float(self.target.sum())

    @cached_property
    def labelled(self) -> FloatArray:
        """Number of labelled rows in each class, shape (K,)."""
        return np.asarray(self.counts.sum(axis=1))

    @cached_property
    def densities(self) -> FloatArray:
        """Density of each class over the bins, shape (B, K)."""
        return _densities(self.counts)

    @cached_property
    def shares(self) -> FloatArray:
        """Shares of the classes, shape (K,)."""
        if self.given is not None:
            return self.given
        return self._fitted(self.target)

    def _fitted(self, target: FloatArray) -> FloatArray:
        if len(self.counts) > 2:
            return _most_likely(self.counts, target)
        value = Mixture(self.densities[:, 1], self.densities[:, 0], target).maximise()
        return np.array([1 - value, value])

    @property
    def identified(self) -> bool:
        """True if the scores distinguish all classes well enough to estimate their shares."""
        gap = self.densities[:, :-1] - self.densities[:, -1:]
        scaled = gap / (self.densities @ self.shares)[:, None]
        information = scaled.T @ gap
        if not np.isfinite(self.shares).all():
            return False
        if information.size == 1:
            # The only eigenvalue is the number itself, which is faster in a table of many cells.
            return float(information[0, 0]) > _LEAST
        return bool(inverse_information(information)[1].all())

    # -- the fit ----------------------------------------------------------------------------------

    @cached_property
    def _smoothed(self) -> FloatArray:
        """Densities after adding half a count to each bin, shape (B, K)."""
        return np.stack([smoothed(row) for row in self.counts], axis=1)

    @cached_property
    def _error(self) -> FloatArray:
        """Standard error of the difference between the shares of each bin in target and mixture."""
        return np.sqrt(self._smoothed @ (self.shares / self.n + self.shares**2 / self.labelled))

    def _statistic(self, part: FloatArray, least: bool) -> float:
        """Return Pearson's X^2 for parts of the bins.

        If ``least``, it is the minimum over class shares.
        """
        densities = self._smoothed
        gap = (part - densities @ self.shares) / self._error
        if least:
            change = (densities[:, :-1] - densities[:, -1:]) / self._error[:, None]
            gap = gap - change @ np.linalg.lstsq(change, gap, rcond=None)[0]
        return float((gap**2).sum())

    @property
    def degrees(self) -> int:
        """Degrees of freedom of the test of the fit."""
        return len(self.target) - len(self.counts)

    @cached_property
    def statistic(self) -> float:
        """Pearson's X^2 statistic that compares the bins of the target with the mixture.

        If there are two classes, the statistic is computed at their estimated shares. If there are
        more classes, it is the minimum over all shares, with the standard errors at the estimated
        shares. The estimated shares use more information than the bins, so each estimated share
        would cost less than one degree of freedom (Chernoff & Lehmann 1954, Ann. Math. Statist. 25,
        579-586). For the densities, half a count is added to each bin. If a smaller fraction were
        added, bins without labelled rows of a rare class would make the test reject too often.
        """
        return self._statistic(self.target / self.n, least=len(self.counts) > 2)

    @property
    def fit_pvalue(self) -> float:
        """The p-value of the statistic; NaN if there are no degrees of freedom."""
        if self.degrees <= 0:
            return math.nan
        return float(chdtrc(self.degrees, self.statistic))

    def tilted(self, table: FloatArray, tilt: float) -> FloatArray:
        """Multiply distributions over bins by exp(tilt times the standardised score).

        The results are scaled so that each distribution sums to 1.
        """
        part = self.target / self.n
        centred = self.place - part @ self.place
        spread = math.sqrt(float(part @ centred**2))
        weights = table * np.exp(np.clip(tilt * centred / (spread or 1.0), -300, 300))
        total = weights.sum(axis=-1, keepdims=True)
        return np.asarray(np.divide(weights, total, out=np.zeros_like(weights), where=total > 0))

    def _tilted_target(self, tilt: float, n: float = 1.0) -> FloatArray:
        """Return the bin shares in a large target with tilted scores and unchanged class shares."""
        return (n * self.tilted(self.densities.T, tilt).T) @ self.shares

    @cached_property
    def missed(self) -> tuple[float, ...]:
        """The smallest downward and upward tilts that the test would detect in half of all cases.

        These tilts change the scores of all classes, by at most five standard deviations in each
        direction. The tuple is empty if the fit cannot be tested.
        """
        if self.degrees < 1 or not self.identified:
            return ()
        critical = float(chdtri(self.degrees, DOUBTFUL))
        # With this noncentrality, the statistic exceeds its limit in half of all cases.
        wanted = brentq(lambda far: chndtr(critical, self.degrees, far) - 0.5, 0.0, 1e4)

        def excess(tilt: float) -> float:
            return self._statistic(self._tilted_target(tilt), least=True) - wanted

        tilts = []
        for farthest in (-_FARTHEST, _FARTHEST):
            tilt = farthest
            if excess(farthest) >= 0:
                low, high = sorted((0.0, farthest))
                tilt = float(brentq(excess, low, high, xtol=1e-4))
            tilts.append(tilt)
        return tuple(tilts)

    def fitted_to(self, tilt: float) -> FloatArray:
        """Return the shares that would be estimated for a large target with tilted scores."""
        fitted = self._fitted(self._tilted_target(tilt, self.n))
        return np.maximum(fitted, 1e-12)  # so that bins of a single class stay defined

    @cached_property
    def ways(self) -> tuple[BinnedShares, ...]:
        """The bins, once for each score that is tilted.

        If there are two classes, the result contains only the bins themselves. If there are more
        classes, the score of each class is tilted, as far as the bins show this score. If there are
        more than ten classes, only the largest probability is tilted, which changes the shares
        less.
        """
        if self.best is None or not 2 < len(self.counts) <= _MOST_TILTED:
            return (self,)
        return tuple(
            replace(
                self, place=np.where(self.best == k, self.place, -self.place), given=self.shares
            )
            for k in range(len(self.counts))
        )

    @cached_property
    def missed_move(self) -> FloatArray:
        """The largest change in each share that a tilt can cause without detection by the test.

        The array has the shape (K,). The changes are NaN if there is no test.
        """
        moves = [
            np.abs(binned.fitted_to(tilt) - self.shares)
            for binned in self.ways
            for tilt in binned.missed
        ]
        if not moves:
            return np.full(len(self.counts), math.nan)
        return np.max(moves, axis=0)
