"""Recalibration, calibration errors, tests and Cox's fit for blocks of rows with equal scores.

A block describes all rows with the same score s: the total weight t of the rows, and the weight of
the positive rows among them. The results depend only on the blocks, so the order of the rows does
not matter. A row that is repeated three times gives the same result as one row with the weight 3.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.special import expit, logit, xlog1py, xlogy

from cmtrack.metrics.logistic import fit_logistic
from cmtrack.statistics.grid import cells_of
from cmtrack.statistics.inputs import FloatArray, IntArray

BINS = 15
"""Number of bins for the calibration error. The total weight of the rows is equal in all bins."""
DRAWS = 999
MAX_BLOCKS = 4096
"""Largest number of distinct scores for which the test draws labels. If the rows have more distinct
scores, the test pools the scores in each cell of the grid and uses their mean.
"""
RUNS = 256
"""Number of groups of equal variance into which neighbouring cells are pooled."""
_MOST_ROWS = 2.0**53
"""Largest effective number of rows. An edited file may contain sums of squared weights that are
impossible for any weights.
"""
_SEED = 14
_AT_ONCE = 64
"""Number of blocks for which labels are drawn in one step."""
_NORMAL = 25
"""If a block's variance is at least this large, the test draws its number of positives as a rounded
normal number, which is faster.
"""
_INVERTED = 30
"""If the mean of a binomial number is at most this large, the number is drawn by inverting the
distribution function at one uniform number.
"""
_DIGITS = 9
"""Number of digits of a statistic that do not depend on the order of summation."""


class Blocks(NamedTuple):
    """Weights for each distinct score in ascending order, as arrays of shape (U,).

    Scores with a weight of 0 are left out. If the weights are fractions, ``squares_positive`` and
    ``squares_negative`` are sums of squared weights.
    """

    scores: FloatArray
    positive: FloatArray
    negative: FloatArray
    squares_positive: FloatArray
    squares_negative: FloatArray

    @property
    def total(self) -> FloatArray:
        """Weight of each block."""
        return self.positive + self.negative


def isotonic(blocks: Blocks) -> FloatArray:
    """Return recalibrated values (U,) by isotonic regression of the shares of positives (CORP)."""
    total = blocks.total
    fitted: FloatArray = isotonic_regression(blocks.positive / total, weights=total).x
    return np.clip(fitted, 0.0, 1.0)


class Parts(NamedTuple):
    """``score = miscalibration - discrimination + uncertainty``."""

    score: float
    miscalibration: float
    discrimination: float
    uncertainty: float


def decompose(blocks: Blocks, recalibrated: FloatArray, log: bool = False) -> Parts:
    """Split the Brier score, or the log loss, into its three parts.

    If the log loss is infinite, so is its miscalibration.
    """
    whole = Blocks(*(part.sum(keepdims=True) for part in blocks))
    score = _loss(blocks, blocks.scores, log)
    after_recalibration = _loss(blocks, recalibrated, log)
    uncertainty = _loss(whole, whole.positive / whole.total, log)
    return Parts(score, score - after_recalibration, uncertainty - after_recalibration, uncertainty)


def _loss(blocks: Blocks, forecast: FloatArray, log: bool) -> float:
    if log:
        lost = -(xlogy(blocks.positive, forecast) + xlog1py(blocks.negative, -forecast))
    else:
        lost = blocks.positive * (1 - forecast) ** 2 + blocks.negative * forecast**2
    return float(lost.sum() / blocks.total.sum())


# -- calibration error -----------------------------------------------------------------------------


class DebiasedError(NamedTuple):
    """The squared calibration error over bins, minus its bias; the difference may be negative.

    If it is negative, the rows do not show any calibration error. ``standard_error`` is 0 if all
    labels within each bin are equal. The interval uses ``reach`` instead, a standard error that
    assumes that labels vary in every bin. ``sizes``, ``differences`` (observed minus forecast) and
    ``variances`` describe the bins with more than one row.
    """

    squared: float
    standard_error: float
    reach: float
    sizes: FloatArray
    differences: FloatArray
    variances: FloatArray

    @property
    def value(self) -> float:
        """The calibration error, on the scale of probabilities."""
        return math.sqrt(max(self.squared, 0.0)) if math.isfinite(self.squared) else math.nan


def debiased_error(blocks: Blocks, bins: int = BINS) -> DebiasedError:
    """Return the squared calibration error over bins, minus its mean for a calibrated model.

    The total weight of the rows is the same in all bins. Rows with equal scores stay together: each
    block belongs to the bin that contains its middle row. The error is NaN if no bin contains two
    rows.
    """
    s = blocks.scores
    total = blocks.total
    by_block = (
        total,
        blocks.squares_positive + blocks.squares_negative,
        blocks.positive - total * s,
        blocks.positive * (1 - s) ** 2 + blocks.negative * s**2,
    )
    starts = np.flatnonzero(np.diff(_bins_of_equal_mass(blocks, bins), prepend=-1))
    size, squares, sums, sums_of_squares = np.add.reduceat(by_block, starts, axis=1)
    effective = np.divide(size**2, squares, out=np.zeros(len(size)), where=squares > 0)
    has_several = effective > 1 + 1e-9
    if not has_several.any():
        return DebiasedError(math.nan, math.nan, math.nan, *np.zeros((3, 0)))
    sums = sums[has_several]
    sums_of_squares = sums_of_squares[has_several]
    size = size[has_several]
    effective = effective[has_several]
    difference = sums / size
    variance = np.maximum(sums_of_squares / size - difference**2, 0.0) / (effective - 1)
    share = size / size.sum()

    def error_with(variance: FloatArray) -> float:
        # If d is normal, the variance of d^2 - v is 2 v^2 + 4 (d^2 - v) v.
        of_chance = 2 * float(share**2 @ variance**2)
        of_differences = float(share**2 @ ((difference**2 - variance) * variance))
        return math.sqrt(of_chance + 4 * max(0.0, of_differences))

    # A bin in which all labels are equal also gets a spread, as if the other label had been
    # observed in half a row (Jeffreys).
    rare = 0.5 / (float(total.sum()) ** 2 / float(squares.sum()) + 1)
    least = rare * (1 - rare) / (effective - 1)
    squared = float(share @ (difference**2 - variance))
    reach = error_with(np.maximum(variance, least))
    return DebiasedError(squared, error_with(variance), reach, size, difference, variance)


def _bins_of_equal_mass(blocks: Blocks, bins: int) -> IntArray:
    """Return the bin that contains the middle row of each block, an array of shape (U,)."""
    total = blocks.total
    middle = np.cumsum(total) - total / 2
    index = np.floor(bins * middle / total.sum() + 1e-9)
    return np.minimum(index, bins - 1).astype(np.int64)


class BinnedError(NamedTuple):
    """The expected calibration error: the mean absolute difference over bins of equal width.

    ``value``: the error. It is above 0 even for calibrated scores, and it increases as the number
        of rows decreases.
    ``if_calibrated``: the mean error that calibrated scores would have, from labels drawn with the
        scores as their probabilities. It is NaN if no labels can be drawn.
    """

    value: float
    if_calibrated: float


def binned_error(blocks: Blocks, bins: int = BINS, draw: bool = True) -> BinnedError:
    """Return the expected calibration error (ECE), and the mean ECE for calibrated scores."""
    total = blocks.total
    weight = float(total.sum())
    bin_of_block = np.clip(np.ceil(blocks.scores * bins - 1e-9) - 1, 0, bins - 1).astype(np.int64)
    expected = total * blocks.scores
    differences = np.bincount(bin_of_block, blocks.positive - expected, bins)
    value = float(np.abs(differences).sum()) / weight
    if not draw:
        return BinnedError(value, math.nan)
    rng = np.random.default_rng(_SEED)
    sums = np.zeros((bins, REFITS))
    for start in range(0, len(total), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        drawn = _labels(rng, blocks.scores[part], np.rint(total[part]).astype(np.int64), REFITS)
        np.add.at(sums, bin_of_block[part], drawn - expected[part, None])
    return BinnedError(value, float(np.abs(sums).sum(axis=0).mean()) / weight)


# -- test ------------------------------------------------------------------------------------------


class CalibrationTest(NamedTuple):
    """Kuiper's statistic and the score statistic of Cox's fit, with p-values from simulation.

    Kuiper's statistic is computed from the running sums of the differences between labels and
    scores.

    Each draw gives two p-values, and ``pvalue`` compares the smaller p-value of the data with the
    smaller p-values of all draws.
    """

    kuiper: float
    cox: float
    kuiper_pvalue: float
    cox_pvalue: float
    pvalue: float


def calibration_test(blocks: Blocks, draws: int = DRAWS, most: int = MAX_BLOCKS) -> CalibrationTest:
    """Test that labels are independent and that the scores are their probabilities.

    If weights are fractions, each p-value is the larger p-value from two tests. One test draws
    labels. This test stays exact if positive labels are rare or scores are close to 0 or 1. The
    second test draws the signs of the differences and makes no assumption about the weights.

    ``draws``: number of times that a label is drawn for every row. The seed of the random numbers
        is fixed.
    ``most``: the largest number of blocks for which labels are drawn. If the table has more blocks,
        they are first pooled by cell of the grid, and then into ``most`` groups of equal variance.
    All results are NaN if every score is 0 or 1 and no label contradicts its score.
    """
    decided = _without_draws(blocks, draws)
    if decided is not None:
        return decided
    if np.array_equal(blocks.total, blocks.squares_positive + blocks.squares_negative):
        return _label_test(pooled(blocks, most), draws, 1.0)
    # The ratio is computed before pooling, because the pooled blocks may be coarser than the strata
    # from which the ratio is computed.
    ratio = _ratio_of_weights(blocks)
    blocks = pooled(blocks, most)
    return larger(_label_test(blocks, draws, ratio), _sign_test(blocks, draws))


def _label_test(blocks: Blocks, draws: int, ratio: float) -> CalibrationTest:
    """Test with simulated labels, with the weight of each positive row multiplied by ``ratio``.

    Suppose that the weight of a row is 1 / (probability of sampling it). Then the odds that a
    sampled row with score s is positive are s / (1 - s) / ratio (Prentice and Pyke 1979). Each
    block is simulated with rows of equal weight. Their number is chosen so that the sum of their
    weights equals the weight of the block, and the sum of their squared weights nearly equals the
    block's sum of squared weights.
    """
    s = blocks.scores
    weight = blocks.negative + blocks.positive / ratio
    squares = blocks.squares_negative + blocks.squares_positive / ratio**2
    rows = np.rint((weight**2 / squares).round(_DIGITS)).clip(1, _MOST_ROWS).astype(np.int64)
    jump = weight / rows * (s + ratio * (1 - s))
    least = weight * s
    chance = least / (rows * jump)
    seen = blocks.positive - blocks.total * s
    sums = _Sums(s, weight**2 / rows * ratio * s * (1 - s), 1 + draws)
    rng = np.random.default_rng(_SEED)
    for start in range(0, len(s), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        labels = _labels(rng, chance[part], rows[part], draws)
        differences = np.empty((len(labels), 1 + draws))
        differences[:, 0] = seen[part]
        np.multiply(labels, jump[part, None], out=differences[:, 1:])
        differences[:, 1:] -= least[part, None]
        sums.add(part, differences)
    return combined(*sums.statistics())


def _ratio_of_weights(blocks: Blocks) -> float:
    """Return the ratio of the weights of a positive and a negative row with similar scores.

    This is the ratio of Mantel and Haenszel (1959) over at most ten strata of neighbouring scores
    with equal variance. It is 1 if there are no positive or no negative rows. Numbers are rounded
    before they are used to choose a stratum, so that the scale of the weights does not matter.
    """
    sides = np.stack((blocks.positive, blocks.negative))
    squares = np.stack((blocks.squares_positive, blocks.squares_negative))
    rows = np.divide(sides**2, squares, out=np.zeros_like(sides), where=squares > 0)
    rows = np.minimum(rows, _MOST_ROWS)
    variance = blocks.total * blocks.scores * (1 - blocks.scores)
    strata = int(np.clip(rows.sum().round(_DIGITS) // 10, 1, 10))
    middle = (np.cumsum(variance) - variance / 2) / variance.sum()
    stratum = np.floor((strata * middle).round(_DIGITS)).astype(np.int64)
    positive, negative = [np.bincount(stratum, side, strata) for side in sides]
    positive_rows, negative_rows = [np.bincount(stratum, side, strata) for side in rows]
    all_rows = np.maximum(positive_rows + negative_rows, 1e-300)
    above = float(positive @ (negative_rows / all_rows))
    below = float(negative @ (positive_rows / all_rows))
    if not (above > 0 and below > 0):
        return 1.0
    return above / below


def _sign_test(blocks: Blocks, draws: int) -> CalibrationTest:
    """Test with normal random numbers that have the variance of the observed differences.

    For rows in clusters, :mod:`cmtrack.metrics.row_tests` draws the sign of each difference. Here,
    normal numbers replace the signs, because the sum of many such differences is nearly normal.
    """
    s = blocks.scores
    variance = blocks.squares_positive * (1 - s) ** 2 + blocks.squares_negative * s**2
    observed = blocks.positive - blocks.total * s
    drawn = np.random.default_rng(_SEED).standard_normal((draws, len(s))) * np.sqrt(variance)
    sums = np.vstack((observed, drawn))
    ends = sums.sum(axis=1)
    total = max(float(variance.sum()), 1e-300)
    x = logit(s)
    x -= float(variance @ x) / total
    information = float(variance @ x**2)
    cox = ends**2 / total
    if information > 1e-12 * total:
        cox = cox + (sums @ x) ** 2 / information
    return combined(reach(sums) / math.sqrt(total), cox)


def larger(first: CalibrationTest, second: CalibrationTest) -> CalibrationTest:
    """Return the first test, in which each p-value is the larger p-value from the two tests."""
    return CalibrationTest(first.kuiper, first.cox, *map(max, first[2:], second[2:]))


def reach(differences: FloatArray) -> FloatArray:
    """Return the range of the running sums along each row of the array, starting at 0.

    The range is Kuiper's statistic before scaling.
    """
    running = np.cumsum(differences, axis=1)
    return np.maximum(running.max(axis=1), 0.0) - np.minimum(running.min(axis=1), 0.0)


def refused(draws: int) -> CalibrationTest:
    """Return the result of the test if a label contradicts a score of 0 or 1.

    Drawn labels never contradict such a score, so the p-values are the smallest possible ones.
    """
    least = 1 / (1 + draws)
    return CalibrationTest(math.inf, math.inf, least, least, least)


def _without_draws(blocks: Blocks, draws: int) -> CalibrationTest | None:
    """Return the result if some label is impossible or if the scores determine all labels.

    The test needs no draws in these two cases. The result is None in all other cases.
    """
    s = blocks.scores
    contradicts = ((s == 0) & (blocks.positive > 0)) | ((s == 1) & (blocks.negative > 0))
    if contradicts.any():
        return refused(draws)
    if not ((s > 0) & (s < 1)).any():
        return CalibrationTest(*[math.nan] * 5)
    return None


def combined(kuiper: FloatArray, cox: FloatArray) -> CalibrationTest:
    """Combine both statistics into a test; the first entry is for the data, the others for draws.

    The statistics are rounded, so that equal values compare as equal.
    """
    kuiper = kuiper.round(_DIGITS)
    cox = cox.round(_DIGITS)
    kuiper_pvalues = _pvalues(kuiper)
    cox_pvalues = _pvalues(cox)
    # The smaller of two p-values is not a p-value, but its rank among the smaller p-values of all
    # draws is one.
    smaller = np.minimum(kuiper_pvalues, cox_pvalues)
    return CalibrationTest(
        kuiper=float(kuiper[0]),
        cox=float(cox[0]),
        kuiper_pvalue=float(kuiper_pvalues[0]),
        cox_pvalue=float(cox_pvalues[0]),
        pvalue=float((smaller <= smaller[0]).mean()),
    )


class _Sums:
    """Kuiper's and Cox's statistics for many sets of labels, computed block by block."""

    def __init__(self, s: FloatArray, variance: FloatArray, sets: int) -> None:
        x = logit(s)
        self._variance = float(variance.sum())
        # If this mean is subtracted from x, the information matrix of intercept and slope is
        # diagonal.
        self._x = x - float(variance @ x) / self._variance
        self._information = float(variance @ self._x**2)
        self._has_slope = self._information > 1e-12 * float(variance @ (1 + x**2))
        self._running, self._top, self._bottom, self._slope = np.zeros((4, sets))

    def add(self, part: slice, differences: FloatArray) -> None:
        """Add the differences for some blocks in every set, an array of shape (blocks, sets)."""
        # A matrix product would start threads, which cost more time than they save here.
        self._slope += np.einsum("b,bd->d", self._x[part], differences)
        # The loop needs half the time of a cumulative sum of all blocks and its extremes.
        for of_block in differences:
            self._running += of_block
            np.maximum(self._top, self._running, out=self._top)
            np.minimum(self._bottom, self._running, out=self._bottom)

    def statistics(self) -> tuple[FloatArray, FloatArray]:
        """Return Kuiper's and Cox's statistic of each set."""
        kuiper = (self._top - self._bottom) / math.sqrt(self._variance)
        cox = self._running**2 / self._variance
        if self._has_slope:
            cox = cox + self._slope**2 / self._information
        return kuiper, cox


def _labels(rng: np.random.Generator, s: FloatArray, total: IntArray, draws: int) -> FloatArray:
    """Draw the number of positives in each block, as an array of shape (blocks, draws)."""
    # First all blocks are drawn as if each had one row. Larger blocks are overwritten below.
    drawn_labels: FloatArray = (rng.random((len(s), draws)) < s[:, None]).astype(np.float64)
    mean = total * s
    variance = mean * (1 - s)
    is_large = variance > _NORMAL
    several = np.flatnonzero((total > 1) & ~is_large)
    rarer_label = np.minimum(s, 1 - s)
    if (total[several] * rarer_label[several] <= _INVERTED).all():
        for start in range(0, len(several), _AT_ONCE):
            part = several[start : start + _AT_ONCE]
            uniform = rng.random((len(part), draws))
            drawn_labels[part] = _binomial(uniform, total[part, None], s[part, None])
    else:
        for block in several:
            drawn_labels[block] = rng.binomial(total[block], s[block], draws)
    if is_large.any():
        normal = rng.standard_normal((int(is_large.sum()), draws))
        drawn = normal * np.sqrt(variance[is_large, None]) + mean[is_large, None]
        drawn_labels[is_large] = np.clip(np.rint(drawn, out=drawn), 0, total[is_large, None])
    return drawn_labels


def _binomial(u: FloatArray, n: IntArray, p: FloatArray) -> FloatArray:
    """Compute binomial numbers from uniform numbers by inversion, as ``Generator.binomial`` does.

    ``n`` and ``p`` have one value per block, shape (U, 1).
    """
    rarer = np.minimum(p, 1 - p)
    chance = np.exp(n * np.log1p(-rarer))
    up_to = chance.copy()
    largest = u.max()
    # With the smallest integer type, the processor counts several numbers in one step.
    count = np.zeros(u.shape, np.min_scalar_type(int(n.max())))
    for k in range(1, int(n.max()) + 1):
        count += (u > up_to).view(np.uint8)
        if (up_to >= largest).all():
            break
        chance = (n - k + 1) * rarer * chance / (k * (1 - rarer))
        up_to += chance
    return np.where(p > 0.5, n - count, count).astype(np.float64)


def _pvalues(statistics: FloatArray) -> FloatArray:
    """Return the share of all sets with a statistic that is at least as large as each set's."""
    n_below = np.searchsorted(np.sort(statistics), statistics, side="left")
    return (len(statistics) - n_below) / len(statistics)


def pooled(blocks: Blocks, most: int = MAX_BLOCKS) -> Blocks:
    """Pool blocks into at most ``most`` larger blocks, whose scores are means.

    Blocks with scores of exactly 0 or 1 are dropped. If the number of blocks is above
    :data:`MAX_BLOCKS`, they are pooled by cell of the grid. If more than ``most`` blocks remain,
    neighbouring blocks are pooled into groups of equal variance.
    """
    inner = (blocks.scores > 0) & (blocks.scores < 1)
    blocks = Blocks(*(part[inner] for part in blocks))
    if len(blocks.scores) > MAX_BLOCKS:
        blocks = _merged(blocks, cells_of(blocks.scores))
        most = min(most, RUNS)
    if len(blocks.scores) > most:
        variance = blocks.total * blocks.scores * (1 - blocks.scores)
        middle = np.cumsum(variance) - variance / 2
        run = np.floor(most * middle / (variance.sum() or 1.0)).astype(np.int64)
        blocks = _merged(blocks, run)
    return blocks


def _merged(blocks: Blocks, place: IntArray) -> Blocks:
    """Merge blocks with equal numbers in ``place``, which ascend, into one at their mean score."""
    starts = np.flatnonzero(np.diff(place, prepend=-1))
    sums, *sides = np.add.reduceat((blocks.total * blocks.scores, *blocks[1:]), starts, axis=1)
    return Blocks(sums / (sides[0] + sides[1]), *sides)


# -- Cox's fit -------------------------------------------------------------------------------------


class CoxFit(NamedTuple):
    """Logistic regression of the labels on the logits of the scores.

    ``influence_slope`` and ``influence_intercept`` are arrays of shape (2, U). They contain the
    influence of a positive row and of a negative row in each block.
    """

    slope: float
    intercept: float
    influence_slope: FloatArray
    influence_intercept: FloatArray


def cox_fit(blocks: Blocks) -> CoxFit | None:
    """Fit intercept and slope; None if the best fit needs an infinite coefficient.

    Rows with a score of exactly 0 or 1 have no logit and are not used.
    """
    inner: Any = (blocks.scores > 0) & (blocks.scores < 1)
    if inner.all():
        inner = slice(None)
    x = logit(blocks.scores[inner])
    positive = blocks.positive[inner]
    negative = blocks.negative[inner]
    ups = np.flatnonzero(positive > 0)
    downs = np.flatnonzero(negative > 0)
    if not (len(ups) and len(downs)):
        return None
    # No finite slope fits best if the scores separate the labels (Albert and Anderson 1984).
    if x[ups[0]] >= x[downs[-1]] or x[downs[0]] >= x[ups[-1]]:
        return None
    total = positive + negative
    centre = float(total @ x) / float(total.sum())
    x -= centre
    scale = math.sqrt(float(total @ x**2) / float(total.sum()))
    x /= scale
    features = np.stack((np.ones_like(x), x))
    coefficients = fit_logistic(features, positive, total, start=_coarse_fit(x, positive, total))
    if np.isnan(coefficients).any():
        return None
    chance = expit(coefficients @ features)
    information = (features * (total * chance * (1 - chance))) @ features.T
    try:
        inverse = np.linalg.inv(information / float(blocks.total.sum()))
    except np.linalg.LinAlgError:
        return None  # The rows with overlapping scores have less weight than the rounding error.
    # Each positive or negative row adds its residual times the gradient to both coefficients.
    residuals = np.stack((1 - chance, -chance))
    slope = float(coefficients[1]) / scale
    of_slope = np.array([0.0, 1 / scale])
    of_intercept = np.array([1.0, -centre / scale])
    influences = np.zeros((2, 2, len(blocks.scores)))
    for influence, combination in zip(influences, (of_slope, of_intercept), strict=True):
        influence[:, inner] = residuals * (combination @ inverse @ features)
    return CoxFit(slope, float(coefficients[0]) - slope * centre, *influences)


def _coarse_fit(x: FloatArray, positive: FloatArray, total: FloatArray) -> FloatArray:
    """Fit neighbouring rows as if they had equal scores, to start the search near its end."""
    if len(x) <= MAX_BLOCKS:
        return np.zeros(2)
    starts = np.arange(0, len(x), len(x) // RUNS)
    positive, sums, total = np.add.reduceat((positive, total * x, total), starts, axis=1)
    features = np.stack((np.ones_like(total), sums / total))
    return np.nan_to_num(fit_logistic(features, positive, total))


# -- consistency band ------------------------------------------------------------------------------

REFITS = 499


def consistency_band(blocks: Blocks, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
    """Return a simultaneous band for the recalibrated values that a calibrated model would have.

    The low and the high limits are arrays of shape (U,). The band is a directional quantile
    envelope (Myllymäki et al. 2017) of isotonic regressions fitted to :data:`REFITS` drawn sets of
    labels.
    """
    total = blocks.total
    rng = np.random.default_rng(_SEED)
    drawn = _labels(rng, blocks.scores, np.rint(total).astype(np.int64), REFITS)
    shares = np.ascontiguousarray(drawn.T) / total
    curves = np.stack([isotonic_regression(share, weights=total).x for share in shares])
    mean = curves.mean(axis=0)
    spread = curves.std(axis=0)
    # Quantiles of a sorted array are faster to compute.
    low, high = np.quantile(np.sort(curves, axis=0), [(1 - level) / 2, (1 + level) / 2], axis=0)
    up = np.maximum(high - mean, spread)
    down = np.maximum(mean - low, spread)
    varies = spread > 1e-12
    if not varies.any():
        return mean, mean
    curves -= mean
    above = curves / np.where(varies, up, math.inf)
    # The arrays are overwritten to save memory, because there may be 499 curves at 4,096 scores.
    below = np.divide(curves, np.where(varies, -down, math.inf), out=curves)
    worst = np.maximum(above, below, out=above).max(axis=1)
    rank = min(math.ceil(level * (REFITS + 1)), REFITS)
    reach = float(np.sort(worst)[rank - 1])
    return np.clip(mean - reach * down, 0.0, 1.0), np.clip(mean + reach * up, 0.0, 1.0)
