"""Differences of one metric between evaluations of the same rows: statistic, p-value and interval.

Everything that compares two evaluations of the same rows reads them here: paired differences,
gates, rankings, tie-breakers, segments and equivalence.

A difference of shares of the same rows (accuracy, or recall: the denominator is of actual labels)
depends on the rows that only one of the two gets right, b and c of n. Its statistic is McNemar's (b
- c) / sqrt(b + c), its interval Tango's. Any other metric has Student's interval, cut at the range
of a difference, with the degrees of freedom of :meth:`Design.degrees
<cmtrack.statistics.design.Design.degrees>`; of a loss without an upper end at most those of its
rows as if each were a cluster: of two nearly perfect models few large losses decide.

If at most :data:`FEW_DIFFERING` rows differ, an exact sign test of these rows must agree: the
p-value is the larger of the two, and an interval of a level at which the sign test does not reject
reaches 0. If no row differs, only shares have an interval.
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
"""Differing rows, or clusters, up to which a difference also needs the exact sign test.

Given four differing rows, all of them better in one run, the other tests alone err in 2 of 16
cases.
"""
NO_ROW_DIFFERS = "no row differs"
"""Reason why two evaluations that are alike in every row have no interval, except of shares."""
SAME = 1e-12
"""Part of the largest variance below which a difference has no error: the two are the same."""
SHARE_ROUNDING = 1e-9
"""Part of the range of a share's influence that may be rounding of one of its two values."""


def binomial_pvalues(only_first: Any, only_second: Any) -> tuple[FloatArray, FloatArray]:
    """Return the exact and the mid-p p-values of McNemar's test; NaN if both counts are 0.

    Counts are whole numbers of any shape.
    """
    b = np.asarray(only_first)
    c = np.asarray(only_second)
    n = (b + c).astype(np.int64)
    least = np.minimum(b, c)
    tail = np.where(n > 0, bdtr(least, n, 0.5), math.nan)
    outcome = tail - np.where(least > 0, bdtr(np.maximum(least - 1, 0), n, 0.5), 0.0)
    exact = np.minimum(1.0, 2 * tail)
    # At b = c both tails contain the outcome.
    mid_p = np.where(b == c, 1 - outcome / 2, exact - outcome)
    return exact, mid_p


def sign_quantile(better: Any, worse: Any) -> FloatArray:
    """Return the normal quantile of the exact sign test's two-sided p-value; 0 if that is 1."""
    total = np.asarray(better) + np.asarray(worse)
    pvalue = np.where(total > 0, binomial_pvalues(better, worse)[0], 1.0)
    return np.asarray(ndtri(1 - pvalue / 2))


@dataclass(frozen=True, eq=False)
class Discordant:
    """Rows that only one of two evaluations gets right, of all pairs of R evaluations.

    ``only_row``, shape (R, R): weight of the rows that only the row's evaluation gets right: b;
        transposed it is c.
    ``squares``, shape (R, R): sum of squares of ``b - c`` of the independent units: clusters, rows
        with fractional weights, else rows.
    ``n``: weight of the rows that the share is of.
    ``further``: mean and mean square of these rows' weights where they are fractional; else (0, 0).
        One such row also counts as discordant: if few rows are, their weights say little about the
        weights of others.
    ``size``: effective number of these rows, or of clusters, by Kish.
    """

    only_row: FloatArray
    squares: FloatArray
    n: float
    further: tuple[float, float]
    size: float

    @property
    def total(self) -> FloatArray:
        """``b + c``; 0 of pairs that are right in the same rows."""
        return self.only_row + self.only_row.T

    @property
    def _sums(self) -> tuple[FloatArray, FloatArray]:
        """``b + c`` and ``squares``, with the further row."""
        return self.total + self.further[0], self.squares + self.further[1]

    @property
    def statistic(self) -> FloatArray:
        """``(b - c) / sqrt(squares)``: standard normal if runs are alike (McNemar 1947)."""
        gap = self.only_row - self.only_row.T
        total, squares = self._sums
        no_part = np.zeros_like(gap)
        spread = squares * np.divide(self.total, total, out=no_part, where=total > 0)
        return np.divide(gap, np.sqrt(spread), out=np.zeros_like(gap), where=spread > 0)

    def upper(self, quantile: Any) -> FloatArray:
        """Return Tango's upper ends, of the counts times ``(b + c) / squares``.

        So the counts are as many rows as the units are worth. They are 0 exactly where the
        statistic is minus the quantile.
        """
        total, squares = self._sums
        factor = np.divide(total, squares, out=np.ones_like(total), where=squares > 0)
        return tango(self.only_row * factor, self.only_row.T * factor, self.n * factor, quantile)


@dataclass(frozen=True, eq=False)
class Paired:
    """Differences of one metric between R evaluations of the same rows, (R, R), row less column.

    Attributes
    ----------
    values : ndarray of shape (R,)
    error : ndarray of shape (R, R)
        Standard errors by the influence functions; exactly 0 where two are equal.
    degrees : ndarray of shape (R, R)
        Their degrees of freedom, which shares do not need.
    bounds : (low, high)
        Range of the metric.
    shares : Discordant or None
        Of a share of the same rows.
    alike : ndarray of shape (R, R), bool
        Whether no row tells two apart: no row is answered differently, as far as the metric reads
        it.
    sign_test : ndarray of shape (R, R)
        Normal quantile of the two-sided p-value of the exact sign test, 0 at p = 1, of pairs with
        at most :data:`FEW_DIFFERING` differing rows or clusters; infinite for all others, which do
        not need it.
    share_size : float
        Effective number of rows of a share, for Tango's interval if no row differs; NaN of other
        metrics.

    Examples
    --------
    Two evaluations, at the normal quantile; of many, give the quantile that holds for all pairs, or
    one for each:

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
        """Compute everything that differences need, by products of matrices.

        ``values``, ``psi``, shape (R,) and (n, R): values and influence values with the metric's
            own sign, also where lower is better.
        ``design``: of the rows.
        ``bounds``, (low, high): range of the metric.
        ``answers``, sequence of R arrays of shape (n,): from
            :meth:`~cmtrack.metrics.influence.Influence.answers`: a row whose codes are equal does
            not differ.
        ``actual``, shape (n,): classes, for degrees of freedom; a share's denominator must be of
            actual classes, and of all rows where they are not given.
        ``ends``, shape (3, R): of values at an end of their range, which no row moves, error and
            degrees. They count where two have no other error, and where the third is true: of
            shares of other rows for each run.
        ``share_size``: effective number of rows of a share of other rows for each run, such as a
            precision: runs that are alike in every row have the same ones. NaN of metrics that are
            no shares.
        ``of_same_rows``: False where shares have different denominators, as precisions do. A
            precision of 1 moves with no row, so that the influence values do not show which rows it
            is a share of.
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
                # A few rows of a loss without an end may decide, whatever their class.
                degrees = np.minimum(degrees, design.degrees(psi))
        differing = None
        sign_test = np.full_like(error, np.inf)
        if answers is not None:
            differing, sign_test = _differing(answers, values, psi, design)
        if shares is not None:
            alike = shares.total == 0
        elif differing is not None:
            # Rows may be answered differently without moving the metric. No row moves a value at an
            # end of its range, which says nothing about its rows.
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
        """Pairs without an interval: no row differs, except of shares, or no error is known."""
        unknown = (self.error == 0) & ~np.eye(len(self.values), dtype=bool)
        if self.shares is not None:
            unknown[:] = False
        return unknown & ~(self.alike & math.isfinite(self.share_size))

    def reason(self, i: int = 0, j: int = 1) -> str:
        """Return the reason why two have no interval; empty if they have one."""
        if not self.without_interval[i, j]:
            return ""
        if self.alike[i, j]:
            return NO_ROW_DIFFERS
        return "the rows do not tell the error of the difference"

    @cached_property
    def statistic(self) -> FloatArray:
        """Statistics that are standard normal if two do not differ; infinite without an error."""
        if self.shares is not None:
            statistic = self.shares.statistic
        else:
            statistic = as_normal(over(self.difference, self.error), self.degrees)
        return np.sign(statistic) * np.minimum(np.abs(statistic), self.sign_test)

    @cached_property
    def pvalue(self) -> FloatArray:
        """Two-sided p-values: 1 where no row differs, NaN where no error is known."""
        without_error = self.without_interval & ~self.alike
        return np.where(without_error, np.nan, 2 * ndtr(-np.abs(self.statistic)))

    def upper(self, quantile: Any) -> FloatArray:
        """Return upper ends of :meth:`interval`, also without an error.

        The lower ends are those of the other way.
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
        """Return lower and upper ends at a normal quantile; NaN where :meth:`reason` says why.

        The quantile is a number or has the shape (R, R).
        """
        high = self.upper(quantile)
        other_way = high
        if np.ndim(quantile) > 0:
            other_way = self.upper(np.transpose(quantile))
        low = 0.0 - other_way.T  # From 0, so that there is no -0.
        missing = self.without_interval
        return np.where(missing, np.nan, low), np.where(missing, np.nan, high)

    def larger_is_better(self) -> Paired:
        """Return the differences of a metric of which lower is better, with the other sign."""
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
    """Return standard errors of differences; exactly 0 if only rounding is left."""
    least = SAME * max(float(scale.max(initial=0)), 1e-300)
    error = np.sqrt(np.where(variance > least, variance, 0.0))
    np.fill_diagonal(error, 0.0)
    return error


def over(difference: FloatArray, error: FloatArray) -> FloatArray:
    """Return differences in standard errors; infinite for a difference without an error."""
    sure = np.where(difference == 0, 0.0, np.copysign(np.inf, difference))
    return np.divide(difference, error, out=sure, where=error > 0)


def cut(difference: Any, reach: Any, bounds: tuple[float, float]) -> tuple[Any, Any]:
    """Cut ``difference ± reach`` at what two values of a range can differ by."""
    most = bounds[1] - bounds[0]
    return np.maximum(difference - reach, -most), np.minimum(difference + reach, most)


def students(quantile: Any, degrees: Any) -> Any:
    """Return Student's quantile of the tail of a normal one.

    It is the normal one if degrees of freedom are infinite.
    """
    is_finite = np.isfinite(degrees)
    finite_degrees = np.where(is_finite, degrees, 1.0)
    student = -stdtrit(finite_degrees, ndtr(-np.asarray(quantile)))
    return np.where(is_finite, student, quantile)


def as_normal(statistic: FloatArray, degrees: FloatArray) -> FloatArray:
    """Return normal statistics of the same tails as Student's of some degrees of freedom."""
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

    The latter are None for other values. Their influence functions show it: that of a share has two
    values inside its denominator, for hits and misses, and is 0 outside.
    """
    all_hits = np.zeros(psi.shape, dtype=bool)
    counted = design.counted  # Rows without weight say nothing.
    weights = design.row_weights[counted]
    found = _hits(values, psi[counted], weights)
    if found is None:
        return all_hits, None
    hits, inside = found
    # The denominator of a share of the same rows holds whole actual classes.
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
    """Return the hits, (n, R), and the rows that values are shares of, (n,); None if they are none.

    They are also None if all values are 0 or 1, as no influence shows the rows then.
    """
    hits = np.zeros(psi.shape, dtype=bool)
    inside = None
    for r, value in enumerate(values.tolist()):
        column = psi[:, r]
        top = float(column.max(initial=0))
        bottom = float(column.min(initial=0))
        if value in (0.0, 1.0) and top - bottom <= SHARE_ROUNDING:
            continue  # All are hits, or none.
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
    """Return how many rows, or clusters, two of R answer differently, and the sign tests of few.

    Both have the shape (R, R). A row, or a cluster's sum, favours the one whose influence is
    larger. Influence less the value is the row's own loss or gain where a metric is a mean, so that
    differing rows of the same loss favour none.
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
