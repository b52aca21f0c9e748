"""Differences of one metric between evaluations of the same rows: statistic, p-value and interval.

All comparisons of evaluations of the same rows use this module: paired differences, gates,
rankings, tie-breakers, segments and equivalence.

Some shares have the same denominator in both evaluations: accuracy, and recall, whose denominator
depends on actual labels only. Their difference depends on b and c, the rows of n that only the
first or only the second evaluation has correct. The statistic is McNemar's (b - c) / sqrt(b + c),
and the interval is Tango's. Any other metric has Student's interval, cut at the range of a
difference, with the degrees of freedom of :meth:`Design.degrees
<cmtrack.statistics.design.Design.degrees>`. A loss without an upper limit gets at most the degrees
of freedom with each row as its own cluster, because a few large losses decide between two nearly
perfect models.

If at most :data:`FEW_DIFFERING` rows differ, an exact sign test of these rows is also made. The
p-value is the larger of the two, and the interval includes 0 if the sign test does not reject at
its level. If no row differs, only shares have an interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import bdtr, ndtr, ndtri, stdtr, stdtrit

from cmtrack._lazy import cached_property
from cmtrack.metrics.intervals import tango
from cmtrack.statistics.design import Design
from cmtrack.statistics.inputs import BoolArray, FloatArray, IntArray

FEW_DIFFERING = 8
"""Number of differing rows (or clusters) up to which a difference also needs the exact sign test.

If four rows differ, they all favour the same run in 2 of 16 cases by chance, and the other tests
alone would reject.
"""
NO_ROW_DIFFERS = "no row differs"
"""Reason for a missing interval if two evaluations agree in every row; shares have an interval."""
SAME = 1e-12
"""Fraction of the largest variance below which the variance of a difference counts as 0."""
SHARE_ROUNDING = 1e-9
"""Rounding error of the two values of a share's influence, as a fraction of their range."""


def binomial_pvalues(only_first: Any, only_second: Any) -> tuple[FloatArray, FloatArray]:
    """Return the exact and the mid-p p-values of McNemar's test; NaN if both counts are 0.

    Counts are arrays of whole numbers with any shape.
    """
    b = np.asarray(only_first)
    c = np.asarray(only_second)
    n = (b + c).astype(np.int64)
    least = np.minimum(b, c)
    tail = np.where(n > 0, bdtr(least, n, 0.5), math.nan)
    outcome = tail - np.where(least > 0, bdtr(np.maximum(least - 1, 0), n, 0.5), 0.0)
    exact = np.minimum(1.0, 2 * tail)
    # If b = c, both tails contain the outcome.
    mid_p = np.where(b == c, 1 - outcome / 2, exact - outcome)
    return exact, mid_p


def sign_quantile(better: Any, worse: Any) -> FloatArray:
    """Return the normal quantile of the exact sign test's two-sided p-value (0 for p = 1)."""
    total = np.asarray(better) + np.asarray(worse)
    pvalue = np.where(total > 0, binomial_pvalues(better, worse)[0], 1.0)
    return np.asarray(ndtri(1 - pvalue / 2))


@dataclass(frozen=True, eq=False)
class Discordant:
    """Rows that only one of two evaluations has correct, for all pairs of R evaluations.

    ``only_row``, shape (R, R): b, the weight of the rows that only the evaluation of the matrix row
        has correct; the transpose is c.
    ``squares``, shape (R, R): sum of the squares of ``b - c`` over independent units, which are
        clusters or rows.
    ``n``: weight of the rows in the denominator of the share.
    ``further``: mean and mean square of the weights in the denominator if they are fractional;
        otherwise (0, 0). One such row is added to the discordant ones, because the weights of a few
        discordant rows say little about others.
    ``size``: effective number of rows in the denominator, or of clusters, by Kish.
    """

    only_row: FloatArray
    squares: FloatArray
    n: float
    further: tuple[float, float]
    size: float

    @property
    def total(self) -> FloatArray:
        """``b + c``, which is 0 if two evaluations are correct in the same rows."""
        return self.only_row + self.only_row.T

    @property
    def _sums(self) -> tuple[FloatArray, FloatArray]:
        """``b + c`` and ``squares``, including the further row."""
        return self.total + self.further[0], self.squares + self.further[1]

    @property
    def statistic(self) -> FloatArray:
        """``(b - c) / sqrt(squares)``, standard normal for equally good runs (McNemar 1947)."""
        gap = self.only_row - self.only_row.T
        total, squares = self._sums
        no_part = np.zeros_like(gap)
        spread = squares * np.divide(self.total, total, out=no_part, where=total > 0)
        return np.divide(gap, np.sqrt(spread), out=np.zeros_like(gap), where=spread > 0)

    def upper(self, quantile: Any) -> FloatArray:
        """Return Tango's upper ends, with all counts multiplied by ``(b + c) / squares``.

        The factor converts weights to effective numbers of rows. An upper end is exactly 0 if the
        statistic is minus the quantile.
        """
        total, squares = self._sums
        factor = np.divide(total, squares, out=np.ones_like(total), where=squares > 0)
        return tango(self.only_row * factor, self.only_row.T * factor, self.n * factor, quantile)


@dataclass(frozen=True, eq=False)
class Paired:
    """Differences of one metric between R evaluations of the same rows, (R, R), row minus column.

    Attributes
    ----------
    values : ndarray of shape (R,)
    error : ndarray of shape (R, R)
        Standard errors from the influence functions; exactly 0 if two evaluations are equal.
    degrees : ndarray of shape (R, R)
        Degrees of freedom of the standard errors; not used for shares.
    bounds : (low, high)
        Range of the metric.
    shares : Discordant or None
        Discordant rows if the metric is a share of the same rows in all evaluations.
    alike : ndarray of shape (R, R), bool
        Whether two evaluations have the same answer for every row, as far as it matters for the
        metric.
    sign_test : ndarray of shape (R, R)
        Normal quantile of the two-sided p-value of the exact sign test (0 for p = 1), for pairs
        with at most :data:`FEW_DIFFERING` differing rows or clusters. Infinite for all other pairs,
        which do not need the test.
    share_size : float
        Effective number of rows of a share, for Tango's interval if no row differs; NaN for other
        metrics.

    Examples
    --------
    Pass the normal quantile for two evaluations. For more, pass a quantile that holds for all pairs
    at once, or one for each pair:

    >>> import numpy as np
    >>> from cmtrack.metrics.paired import Paired
    >>> from cmtrack.statistics import Design
    >>> right = np.array([[1, 1, 1, 0] * 50, [1, 1, 0, 0] * 50]).T.astype(float)
    >>> shares = right.mean(axis=0)
    >>> pairs = Paired.of(shares, right - shares, Design(200), bounds=(0, 1))
    >>> low, high = pairs.interval(1.96)
    >>> [round(float(number[0, 1]), 3) for number in (pairs.statistic, low, high)]
    [7.071, 0.195, 0.314]
    >>> low, high = pairs.interval(np.array([[0, 2.2], [2.2, 0]]))
    """

    values: FloatArray
    error: FloatArray
    degrees: FloatArray
    bounds: tuple[float, float]
    shares: Discordant | None
    alike: BoolArray
    sign_test: FloatArray
    share_size: float = math.nan

    @classmethod
    def of(
        cls,
        values: FloatArray,
        psi: FloatArray,
        design: Design,
        *,
        bounds: tuple[float, float],
        answers: Sequence[npt.NDArray[Any]] | None = None,
        actual: IntArray | None = None,
        ends: FloatArray | None = None,
        share_size: float = math.nan,
        of_same_rows: bool = True,
    ) -> Paired:
        """Compute the inputs of all differences, with products of matrices.

        ``values``, ``psi``, shape (R,) and (n, R): values and influence values, not negated even if
            lower is better.
        ``design``: design of the rows.
        ``bounds``, (low, high): range of the metric.
        ``answers``, sequence of R arrays of shape (n,): codes from
            :meth:`~cmtrack.metrics.influence.Influence.answers`. A row with equal codes does not
            differ.
        ``actual``, shape (n,): classes, for degrees of freedom. The denominator of a share must
            consist of whole actual classes, or of all rows if ``actual`` is not given.
        ``ends``, shape (3, R): standard error and degrees of freedom of values at an end of their
            range, where the influence of each row is 0. They are used if a difference has no other
            standard error. They are also used if the third row is true, which marks shares whose
            denominator differs between runs.
        ``share_size``: effective number of rows of a share whose denominator differs between runs,
            such as precision. Runs that agree in every row have the same denominator. NaN for
            metrics that are not shares.
        ``of_same_rows``: False for shares with different denominators, such as precision. No row
            has an influence on a precision of 1, so the influence values do not show its
            denominator.
        """
        joint = design.covariance(psi)
        variance = np.diag(joint)
        error = root(variance[:, None] + variance - 2 * joint, variance)
        shares = None
        if of_same_rows:
            hits, shares = _shares(values, psi, actual, design)
        off_diagonal = ~np.eye(len(values), dtype=bool)
        equal_values = np.abs(values[:, None] - values) <= SAME * np.abs(values).max(initial=0)
        if shares is not None:
            degrees = np.full_like(error, np.inf)
            share_size = shares.size
            has_few = (shares.total[off_diagonal] <= FEW_DIFFERING).any()
            answers = [*hits.T] if has_few or not design.is_independent else None
        else:
            degrees = design.degrees(psi, actual)
            if not np.isfinite(bounds).all() and actual is not None:
                # A few rows may decide a loss without an upper limit, whatever their class.
                degrees = np.minimum(degrees, design.degrees(psi))
        differing = None
        sign_test = np.full_like(error, np.inf)
        if answers is not None:
            differing, sign_test = _differing(answers, values, psi, design)
        if shares is not None:
            alike = shares.total == 0
        elif differing is not None:
            # Two runs may also be alike if their answers differ without an effect on the metric.
            # This cannot be seen from a value at an end of its range, where every influence is 0.
            is_unmoved = (error == 0) & equal_values & (variance > 0)
            alike = (differing == 0) | is_unmoved
            sign_test = np.where(alike, 0.0, sign_test)
        else:
            alike = (error == 0) & equal_values
        if shares is None and ends is not None:
            end_error, end_degrees, of_other_rows = ends
            without_error = (error == 0) & ~alike
            counted = (
                without_error | np.logical_or.outer(of_other_rows, of_other_rows)
            ) & off_diagonal
            both_errors = np.sqrt(error**2 + np.add.outer(end_error**2, end_error**2))
            fewer_degrees = np.minimum(degrees, np.minimum.outer(end_degrees, end_degrees))
            error = np.where(counted, both_errors, error)
            degrees = np.where(counted, fewer_degrees, degrees)
        error = np.where(alike, 0.0, error)
        return cls(values, error, degrees, bounds, shares, alike, sign_test, share_size)

    @cached_property
    def difference(self) -> FloatArray:
        """Differences of the values."""
        gap = self.values[:, None] - self.values
        rounding = (self.error == 0) & (np.abs(gap) <= SAME * np.abs(self.values).max())
        return np.where(rounding | self.alike, 0.0, gap)

    @cached_property
    def without_interval(self) -> BoolArray:
        """Mask of pairs without an interval: no row differs, or no standard error is known."""
        unknown = (self.error == 0) & ~np.eye(len(self.values), dtype=bool)
        if self.shares is not None:
            unknown[:] = False
        return unknown & ~(self.alike & math.isfinite(self.share_size))

    def reason(self, i: int = 0, j: int = 1) -> str:
        """Return why two evaluations have no interval; empty if they have one."""
        if not self.without_interval[i, j]:
            return ""
        if self.alike[i, j]:
            return NO_ROW_DIFFERS
        return "the rows do not determine the standard error of the difference"

    @cached_property
    def statistic(self) -> FloatArray:
        """Statistics that are standard normal for equal runs; infinite without a standard error."""
        if self.shares is not None:
            statistic = self.shares.statistic
        else:
            statistic = as_normal(over(self.difference, self.error), self.degrees)
        return np.sign(statistic) * np.minimum(np.abs(statistic), self.sign_test)

    @cached_property
    def pvalue(self) -> FloatArray:
        """Two-sided p-values: 1 if no row differs, NaN if no standard error is known."""
        without_error = self.without_interval & ~self.alike
        return np.where(without_error, np.nan, 2 * ndtr(-np.abs(self.statistic)))

    def upper(self, quantile: Any) -> FloatArray:
        """Return the upper ends of :meth:`interval`, even where it returns NaN.

        A lower end is minus the upper end of the reverse difference.
        """
        if self.shares is not None:
            high = np.maximum(self.shares.upper(quantile), self.difference)
        else:
            reach = students(quantile, self.degrees) * self.error
            _, high = cut(self.difference, reach, self.bounds)
        high = np.where(self.sign_test < quantile, np.maximum(high, 0.0), high)
        if math.isfinite(self.share_size):
            # Tango's interval with b = c = 0.
            squared = np.square(quantile)
            high = np.where(self.alike, squared / (self.share_size + squared), high)
        np.fill_diagonal(high, 0.0)
        return high

    def interval(self, quantile: Any) -> tuple[FloatArray, FloatArray]:
        """Return lower and upper ends at a normal quantile; NaN for the :meth:`reason` given there.

        The quantile is a number or has the shape (R, R).
        """
        high = self.upper(quantile)
        other_way = high
        if np.ndim(quantile) > 0:
            other_way = self.upper(np.transpose(quantile))
        low = 0.0 - other_way.T  # Plain negation could give -0.
        missing = self.without_interval
        return np.where(missing, np.nan, low), np.where(missing, np.nan, high)

    def larger_is_better(self) -> Paired:
        """Return the differences with the sign reversed, for a metric where lower is better."""
        low, high = self.bounds
        shares = self.shares
        if shares is not None:
            shares = replace(shares, only_row=shares.only_row.T)
        return replace(self, values=-self.values, bounds=(-high, -low), shares=shares)

    def take(self, places: IntArray) -> Paired:
        """Select some of the evaluations, in their order."""
        both = np.ix_(places, places)
        shares = self.shares
        if shares is not None:
            shares = replace(shares, only_row=shares.only_row[both], squares=shares.squares[both])
        return replace(
            self,
            values=self.values[places],
            error=self.error[both],
            degrees=self.degrees[both],
            shares=shares,
            alike=self.alike[both],
            sign_test=self.sign_test[both],
        )


def root(variance: FloatArray, scale: FloatArray) -> FloatArray:
    """Return standard errors of differences, which are exactly 0 if they are only rounding."""
    least = SAME * max(float(scale.max(initial=0)), 1e-300)
    error = np.sqrt(np.where(variance > least, variance, 0.0))
    np.fill_diagonal(error, 0.0)
    return error


def over(difference: FloatArray, error: FloatArray) -> FloatArray:
    """Return differences divided by their standard errors; infinite if a standard error is 0."""
    sure = np.where(difference == 0, 0.0, np.copysign(np.inf, difference))
    return np.divide(difference, error, out=sure, where=error > 0)


def cut(difference: Any, reach: Any, bounds: tuple[float, float]) -> tuple[Any, Any]:
    """Cut ``difference ± reach`` at the largest possible difference of two values."""
    most = bounds[1] - bounds[0]
    return np.maximum(difference - reach, -most), np.minimum(difference + reach, most)


def students(quantile: Any, degrees: Any) -> Any:
    """Return Student's quantile with the same tail as a normal quantile.

    With infinite degrees of freedom, this is the normal quantile.
    """
    is_finite = np.isfinite(degrees)
    finite_degrees = np.where(is_finite, degrees, 1.0)
    student = -stdtrit(finite_degrees, ndtr(-np.asarray(quantile)))
    return np.where(is_finite, student, quantile)


def as_normal(statistic: FloatArray, degrees: FloatArray) -> FloatArray:
    """Return normal statistics with the same tails as Student's statistics."""
    is_students = np.isfinite(statistic) & np.isfinite(degrees)
    students_t = statistic[is_students]
    tail = stdtr(degrees[is_students], -np.abs(students_t))
    normal = statistic.copy()
    normal[is_students] = -np.sign(students_t) * ndtri(tail)
    return normal


def _shares(
    values: FloatArray,
    psi: FloatArray,
    actual: IntArray | None,
    design: Design,
) -> tuple[BoolArray, Discordant | None]:
    """Return hits by row, (n, R), and the discordant rows of shares of the same rows.

    Metrics that are not shares have no discordant rows (None). The influence shows whether a metric
    is a share: the influence of a share has two values inside its denominator, for hits and other
    rows, and is 0 outside.
    """
    all_hits = np.zeros(psi.shape, dtype=bool)
    counted = design.counted  # Rows with weight 0 do not matter.
    weights = design.row_weights[counted]
    found = _hits(values, psi[counted], weights)
    if found is None:
        return all_hits, None
    hits, inside = found
    # A share has the same denominator in all runs if it consists of whole actual classes.
    classes = np.zeros(len(hits), dtype=np.int64) if actual is None else actual[counted]
    n_inside = np.bincount(classes, inside)
    if not ((n_inside == 0) | (n_inside == np.bincount(classes))).all():
        return all_hits, None
    all_hits[counted] = hits
    both = (hits * weights[:, None]).T @ hits
    only_row = np.diag(both)[:, None] - both
    only_row[only_row <= SAME * design.total] = 0.0
    products = both if design.is_independent else design.products(all_hits)
    squares = np.diag(products)[:, None] + np.diag(products) - 2 * products
    negligible = SAME * max(float(products.max(initial=0)), 1e-300)
    further = (0.0, 0.0)
    if design.is_sampled:
        of_share = weights[inside]
        further = (float(of_share.mean()), float((of_share**2).mean()))
    among_all = np.zeros(len(all_hits), dtype=bool)
    among_all[counted] = inside
    return all_hits, Discordant(
        only_row,
        squares=np.where(squares > negligible, squares, 0.0),
        n=float(weights @ inside),
        further=further,
        size=design.take(among_all).effective_size,
    )


def _hits(
    values: FloatArray, psi: FloatArray, weights: FloatArray
) -> tuple[BoolArray, BoolArray] | None:
    """Return the hits, (n, R), and the rows in the denominator, (n,), if values are shares.

    The result is None for other values. It is also None if all values are 0 or 1, because then no
    influence shows the rows.
    """
    hits = np.zeros(psi.shape, dtype=bool)
    inside = None
    for r, value in enumerate(values.tolist()):
        column = psi[:, r]
        top = float(column.max(initial=0))
        bottom = float(column.min(initial=0))
        if value in (0.0, 1.0) and top - bottom <= SHARE_ROUNDING:
            continue  # All rows are hits, or no row is.
        rounding = SHARE_ROUNDING * (top - bottom)
        hit = np.abs(column - top) <= rounding
        among = hit | (np.abs(column - bottom) <= rounding)
        is_zero_outside = np.abs(column[~among]).max(initial=0) <= rounding
        if not (0 < value < 1 and bottom < 0 < top and is_zero_outside):
            return None
        if inside is None:
            inside = among
        share = float(weights @ hit) / float(weights @ among)
        if not np.array_equal(among, inside) or abs(share - value) > SHARE_ROUNDING:
            return None
        hits[:, r] = hit
    if inside is None:
        return None
    hits[:, values == 1] = inside[:, None]
    return hits, inside


def _differing(
    answers: Sequence[npt.NDArray[Any]],
    values: FloatArray,
    psi: FloatArray,
    design: Design,
) -> tuple[IntArray, FloatArray]:
    """Return the number of rows or clusters with different answers, and sign tests if it is small.

    Both have the shape (R, R). A row favours the evaluation in which its influence plus the value
    is larger, and a cluster is decided by the sum over its rows. If the metric is a mean, influence
    plus value is the row's own loss or gain, so differing rows with the same loss favour neither.
    """
    codes = np.stack(answers)
    repeats = design.repeats
    order = np.flatnonzero(repeats)
    starts = None
    if design.has_clusters:
        order = order[np.argsort(design.units[order], kind="stable")]
        starts = np.unique(design.units[order], return_index=True)[1]
    if design.has_clusters or len(order) < codes.shape[1]:
        codes = codes[:, order]
    counts = repeats[order]
    differing = np.zeros((len(codes), len(codes)), dtype=np.int64)
    sign_test = np.full(differing.shape, math.inf)
    for i in range(len(codes) - 1):
        differs = codes[i + 1 :] != codes[i]
        number = differs @ counts
        if starts is not None:
            number = np.logical_or.reduceat(differs, starts, axis=1).sum(axis=1)
        differing[i, i + 1 :] = number
        few = np.flatnonzero(number <= FEW_DIFFERING)
        if not len(few):
            continue
        pair, position = np.nonzero(differs[few])
        row = order[position]
        other = i + 1 + few[pair]
        gain = psi[row, i] - psi[row, other] + values[i] - values[other]
        n_units = counts[position]
        if starts is not None:
            unit = pair * len(starts) + np.searchsorted(starts, position, side="right") - 1
            units, of_unit = np.unique(unit, return_inverse=True)
            gain = np.bincount(of_unit, gain * design.row_weights[row])
            pair = units // len(starts)
            n_units = np.ones(len(units), dtype=np.int64)
        least = SHARE_ROUNDING * np.abs(gain).max(initial=0)
        better = np.bincount(pair, n_units * (gain > least), len(few))
        worse = np.bincount(pair, n_units * (gain < -least), len(few))
        sign_test[i, i + 1 + few] = sign_quantile(better, worse)
    return differing + differing.T, np.minimum(sign_test, sign_test.T)
