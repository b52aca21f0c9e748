"""Differences in a metric between evaluations of the same rows, with p-values and intervals.

All comparisons of evaluations of the same rows use this module. They include paired differences,
gates, rankings, tie-breakers, segments and equivalence.

The denominator of some shares is equal in both evaluations. These shares are accuracy, and recall,
whose denominator depends only on the actual labels. Let n be the number of rows, b the number of
rows that only the first evaluation predicts correctly, and c the number of rows that only the
second evaluation predicts correctly. The difference between the shares is (b - c) / n. The test
uses McNemar's statistic (b - c) / sqrt(b + c), and the interval is computed with Tango's method.
For all other metrics, the interval is computed from Student's distribution and limited to the
possible range of a difference. The degrees of freedom come from :meth:`Design.degrees
<cmtrack.statistics.design.Design.degrees>`. For a loss without an upper limit, the degrees of
freedom are at most those of a design in which each row is a separate cluster, because a few large
losses decide between two nearly perfect models.

If at most :data:`FEW_DIFFERING` rows differ, cmtrack also performs an exact sign test of these
rows. The p-value is then the larger p-value of the two tests, and the interval includes 0 if the
sign test does not reject at the level of the interval. If no row differs, only differences between
shares have an interval.
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
"""If at most this number of rows (or clusters) differ, a difference must also pass the exact sign
test. For example, four differing rows all favour the same run by chance in 2 of 16 cases, and the
usual test would then reject.
"""
NO_ROW_DIFFERS = "no row differs"
"""Reason for a missing interval if two evaluations agree in every row. It does not apply to shares,
which have an interval.
"""
SAME = 1e-12
"""Fraction of the largest variance below which the variance of a difference counts as 0."""
SHARE_ROUNDING = 1e-9
"""Largest rounding error in the two values that the influence on a share can take, as a fraction of
their range.
"""


def binomial_pvalues(only_first: Any, only_second: Any) -> tuple[FloatArray, FloatArray]:
    """Return the exact and the mid-p p-values of McNemar's test, or NaN if both counts are 0.

    The counts are arrays of whole numbers, of any shape.
    """
    b = np.asarray(only_first)
    c = np.asarray(only_second)
    n = (b + c).astype(np.int64)
    least = np.minimum(b, c)
    tail = np.where(n > 0, bdtr(least, n, 0.5), math.nan)
    outcome = tail - np.where(least > 0, bdtr(np.maximum(least - 1, 0), n, 0.5), 0.0)
    exact = np.minimum(1.0, 2 * tail)
    # If b = c, the observed outcome is in both tails.
    mid_p = np.where(b == c, 1 - outcome / 2, exact - outcome)
    return exact, mid_p


def sign_quantile(better: Any, worse: Any) -> FloatArray:
    """Convert the two-sided p-value of the exact sign test to a normal quantile (0 for p = 1)."""
    total = np.asarray(better) + np.asarray(worse)
    pvalue = np.where(total > 0, binomial_pvalues(better, worse)[0], 1.0)
    return np.asarray(ndtri(1 - pvalue / 2))


@dataclass(frozen=True, eq=False)
class Discordant:
    """Rows that only one of two evaluations predicts correctly, for all pairs of R evaluations.

    ``only_row``, shape (R, R): b, the weight of the rows that only the evaluation in this row of
        the matrix predicts correctly. The transpose is c.
    ``squares``, shape (R, R): sum of the squares of ``b - c`` over independent units, which are
        clusters or rows.
    ``n``: total weight of the rows in the denominator of the share.
    ``further``: mean and mean square of the weights in the denominator if they are fractional, and
        otherwise (0, 0). A row with this weight is added to the discordant rows, because the
        weights of a few discordant rows do not represent the weights of other rows.
    ``size``: Kish's effective number of rows in the denominator, or of clusters.
    """

    only_row: FloatArray
    squares: FloatArray
    n: float
    further: tuple[float, float]
    size: float

    @property
    def total(self) -> FloatArray:
        """``b + c``, which is 0 if two evaluations predict the same rows correctly."""
        return self.only_row + self.only_row.T

    @property
    def _sums(self) -> tuple[FloatArray, FloatArray]:
        """``b + c`` and ``squares``, including the further row."""
        return self.total + self.further[0], self.squares + self.further[1]

    @property
    def statistic(self) -> FloatArray:
        """McNemar's ``(b - c) / sqrt(squares)``, which is standard normal for equally good runs."""
        gap = self.only_row - self.only_row.T
        total, squares = self._sums
        no_part = np.zeros_like(gap)
        spread = squares * np.divide(self.total, total, out=no_part, where=total > 0)
        return np.divide(gap, np.sqrt(spread), out=np.zeros_like(gap), where=spread > 0)

    def upper(self, quantile: Any, places: Any = slice(None)) -> FloatArray:
        """Return the upper ends of Tango's intervals, for rescaled counts.

        ``places``: evaluations to return the rows of the matrix for; all by default.

        All counts are multiplied by ``(b + c) / squares``, which converts weights to effective
        numbers of rows. An upper end is exactly 0 if the statistic is minus the quantile.
        """
        total, squares = (numbers[places] for numbers in self._sums)
        factor = np.divide(total, squares, out=np.ones_like(total), where=squares > 0)
        only_row = self.only_row[places] * factor
        only_column = self.only_row.T[places] * factor
        return tango(only_row, only_column, self.n * factor, quantile)


@dataclass(frozen=True, eq=False)
class Paired:
    """Differences in a metric between R evaluations of the same rows, as arrays of shape (R, R).

    A difference is the value in the row's evaluation minus the value in the column's evaluation.

    Attributes
    ----------
    values : ndarray of shape (R,)
    error : ndarray of shape (R, R)
        Standard errors computed from influence values. They are exactly 0 if two evaluations are
        equal.
    degrees : ndarray of shape (R, R)
        Degrees of freedom of the standard errors. They are not used for shares.
    bounds : (low, high)
        Range of the metric.
    shares : Discordant or None
        Discordant rows, if the metric is a share whose denominator contains the same rows in all
        evaluations.
    alike : ndarray of shape (R, R), bool
        Whether two evaluations contain the same prediction for every row, as far as it matters for
        the metric.
    sign_test : ndarray of shape (R, R)
        Normal quantile of the two-sided p-value of the exact sign test (0 for p = 1), for pairs
        with at most :data:`FEW_DIFFERING` differing rows or clusters. The quantile is infinite for
        all other pairs, which do not need the test.
    share_size : float
        Effective number of rows in the denominator of a share. Tango's interval uses it if no row
        differs. It is NaN if the metric is not a share.

    Examples
    --------
    If there are two evaluations, pass the normal quantile. If there are more evaluations, pass a
    quantile that is valid for all pairs simultaneously, or an array with a quantile for each pair:

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
        """Compute the inputs of all differences with matrix products.

        ``values``, shape (R,): values of the metric. Their sign is not changed, even if lower
            values are better.
        ``psi``, shape (n, R): influence values. Their sign is not changed either.
        ``design``: design of the rows.
        ``bounds``, (low, high): range of the metric.
        ``answers``, sequence of R arrays of shape (n,): codes from
            :meth:`~cmtrack.metrics.influence.Influence.answers`. Two evaluations do not differ in a
            row if their codes for the row are equal.
        ``actual``, shape (n,): actual classes, which are used to compute degrees of freedom. The
            denominator of a share must consist of whole actual classes, or of all rows if
            ``actual`` is not given.
        ``ends``, shape (3, R): standard error and degrees of freedom of values at an end of their
            range, where the influence of each row is 0. They are used if a difference has no other
            standard error. They are also used for the runs that the third row marks as true: shares
            whose denominator differs between runs.
        ``share_size``: effective number of rows of a share whose denominator differs between runs,
            such as precision. The denominators of two runs are equal if the runs agree in every
            row. The size is NaN for metrics that are not shares.
        ``of_same_rows``: It is false for shares whose denominators differ, such as precision. No
            row has an influence on a precision of 1, so the influence values do not show its
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
                # A few rows may determine a loss without an upper limit, whatever their class is.
                degrees = np.minimum(degrees, design.degrees(psi))
        equal_answers = None
        sign_test = np.full_like(error, np.inf)
        if answers is not None:
            equal_answers, sign_test = _differing(answers, values, psi, design)
        if shares is not None:
            alike = shares.total == 0
        elif equal_answers is not None:
            # Two runs are also alike if their predictions differ in ways that do not affect the
            # metric. This cannot be seen from a value at an end of its range, where every influence
            # is 0.
            is_unmoved = (error == 0) & equal_values & (variance > 0)
            alike = equal_answers | is_unmoved
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
        """Differences between the values."""
        gap = self.values[:, None] - self.values
        rounding = (self.error == 0) & (np.abs(gap) <= SAME * np.abs(self.values).max())
        return np.where(rounding | self.alike, 0.0, gap)

    @cached_property
    def without_interval(self) -> BoolArray:
        """Mask of pairs without an interval.

        A pair has no interval if no row differs or the standard error is unknown.
        """
        unknown = (self.error == 0) & ~np.eye(len(self.values), dtype=bool)
        if self.shares is not None:
            unknown[:] = False
        return unknown & ~(self.alike & math.isfinite(self.share_size))

    def reason(self, i: int = 0, j: int = 1) -> str:
        """Return why the difference between two evaluations has no interval.

        The text is empty if the difference has an interval.
        """
        if not self.without_interval[i, j]:
            return ""
        if self.alike[i, j]:
            return NO_ROW_DIFFERS
        return "the rows do not determine the standard error of the difference"

    @cached_property
    def statistic(self) -> FloatArray:
        """Statistics that are standard normal for equally good runs.

        A statistic is infinite if the standard error of a difference is 0.
        """
        if self.shares is not None:
            statistic = self.shares.statistic
        else:
            statistic = as_normal(over(self.difference, self.error), self.degrees)
        return np.sign(statistic) * np.minimum(np.abs(statistic), self.sign_test)

    @cached_property
    def pvalue(self) -> FloatArray:
        """Two-sided p-values.

        A p-value is 1 if no row differs, and NaN if the standard error is unknown.
        """
        without_error = self.without_interval & ~self.alike
        return np.where(without_error, np.nan, 2 * ndtr(-np.abs(self.statistic)))

    def upper(self, quantile: Any, places: Any = slice(None)) -> FloatArray:
        """Return the upper ends of :meth:`interval`, including those for which it returns NaN.

        The lower end of an interval is minus the upper end for the reversed difference.

        ``places``: evaluations to return the rows of the matrix for; all by default.
        """
        difference = self.difference[places]
        if self.shares is not None:
            high = np.maximum(self.shares.upper(quantile, places), difference)
        else:
            reach = students(quantile, self.degrees[places]) * self.error[places]
            _, high = cut(difference, reach, self.bounds)
        high = np.where(self.sign_test[places] < quantile, np.maximum(high, 0.0), high)
        if math.isfinite(self.share_size):
            # This is Tango's interval for b = c = 0.
            squared = np.square(quantile)
            high = np.where(self.alike[places], squared / (self.share_size + squared), high)
        return np.where(np.eye(len(self.values), dtype=bool)[places], 0.0, high)

    def interval(self, quantile: Any) -> tuple[FloatArray, FloatArray]:
        """Return the lower and upper ends of the intervals for a normal quantile.

        The ends are NaN if a pair has no interval; see :meth:`reason`.

        The quantile is a number or an array of shape (R, R).
        """
        high = self.upper(quantile)
        other_way = high
        if np.ndim(quantile) > 0:
            other_way = self.upper(np.transpose(quantile))
        low = 0.0 - other_way.T  # Plain negation could give -0.
        missing = self.without_interval
        return np.where(missing, np.nan, low), np.where(missing, np.nan, high)

    def larger_is_better(self) -> Paired:
        """Return the differences with reversed signs, for a metric for which lower is better."""
        low, high = self.bounds
        shares = self.shares
        if shares is not None:
            shares = replace(shares, only_row=shares.only_row.T)
        return replace(self, values=-self.values, bounds=(-high, -low), shares=shares)

    def take(self, places: IntArray) -> Paired:
        """Return the differences between the evaluations at ``places``, in this order."""
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
    """Return standard errors of differences, which are exactly 0 if only rounding remains."""
    least = SAME * max(float(scale.max(initial=0)), 1e-300)
    error = np.sqrt(np.where(variance > least, variance, 0.0))
    np.fill_diagonal(error, 0.0)
    return error


def over(difference: FloatArray, error: FloatArray) -> FloatArray:
    """Return differences divided by their standard errors; infinite if a standard error is 0."""
    sure = np.where(difference == 0, 0.0, np.copysign(np.inf, difference))
    return np.divide(difference, error, out=sure, where=error > 0)


def cut(difference: Any, reach: Any, bounds: tuple[float, float]) -> tuple[Any, Any]:
    """Limit ``difference ± reach`` to the largest possible difference between two values."""
    most = bounds[1] - bounds[0]
    return np.maximum(difference - reach, -most), np.minimum(difference + reach, most)


def students(quantile: Any, degrees: Any) -> Any:
    """Return Student's quantiles with the same tail probabilities as normal quantiles.

    If the degrees of freedom are infinite, the result is the normal quantile.
    """
    quantiles, degrees = np.broadcast_arrays(quantile, degrees)
    is_finite = np.isfinite(degrees)
    student = np.array(quantiles, dtype=np.float64)
    student[is_finite] = -stdtrit(degrees[is_finite], ndtr(-quantiles[is_finite]))
    return student


def as_normal(statistic: FloatArray, degrees: FloatArray) -> FloatArray:
    """Return normal statistics with the same tail probabilities as Student's statistics."""
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
    """Return the hits by row, shape (n, R), and the discordant rows of a share.

    The discordant rows are None if the metric is not a share of the same rows in all evaluations.
    The influence shows whether a metric is a share. For rows in the denominator of a share, the
    influence takes only two values, one for hits and one for all other rows. For rows outside the
    denominator, it is 0.
    """
    all_hits = np.zeros(psi.shape, dtype=bool)
    counted = design.counted  # Rows with weight 0 do not matter.
    weights = design.row_weights[counted]
    found = _hits(values, psi[counted], weights)
    if found is None:
        return all_hits, None
    hits, inside = found
    # The denominator of a share is equal in all runs if it consists of whole actual classes.
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
    """Return masks of the hits, (n, R), and of the rows in the denominator, (n,), for shares.

    The result is None if the values are not shares. It is also None if all values are 0 or 1,
    because the influence then does not show which rows are in the denominator.
    """
    hits = np.zeros(psi.shape, dtype=bool)
    inside = None
    for r, value in enumerate(values.tolist()):
        column = psi[:, r]
        top = float(column.max(initial=0))
        bottom = float(column.min(initial=0))
        if value in (0.0, 1.0) and top - bottom <= SHARE_ROUNDING:
            continue  # All rows are hits, or none is.
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


_FIRST_ROWS = 500
"""Number of rows that :func:`_differing` compares first."""


def _differing(
    answers: Sequence[npt.NDArray[Any]],
    values: FloatArray,
    psi: FloatArray,
    design: Design,
) -> tuple[BoolArray, FloatArray]:
    """Find evaluations with equal predictions, and test the signs of few differing rows.

    Both results are arrays of shape (R, R). A row favours the evaluation for which the sum of the
    row's influence and the metric's value is larger. A cluster favours an evaluation according to
    the sum over its rows. If the metric is a mean, influence plus value is the loss or gain of a
    single row. If two evaluations differ in a row but the loss is equal, the row does not favour
    either of them.
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

    def count(differs: BoolArray) -> IntArray:
        """Count the rows or clusters among the first ones in which evaluations differ."""
        n_rows = differs.shape[1]
        if starts is None:
            return np.asarray(differs @ counts[:n_rows])
        first_starts = starts[: np.searchsorted(starts, n_rows)]
        return np.asarray(np.logical_or.reduceat(differs, first_starts, axis=1).sum(axis=1))

    alike = np.eye(len(codes), dtype=bool)
    sign_test = np.full(alike.shape, math.inf)
    first_codes = np.ascontiguousarray(codes[:, :_FIRST_ROWS])
    for i in range(len(codes) - 1):
        # Most evaluations already differ in more than a few of the first rows.
        number = count(first_codes[i + 1 :] != first_codes[i])
        near = i + 1 + np.flatnonzero(number <= FEW_DIFFERING)
        if not len(near):
            continue
        differs = codes[near] != codes[i]
        number = count(differs)
        alike[i, near] = number == 0
        few = np.flatnonzero(number <= FEW_DIFFERING)
        if not len(few):
            continue
        pair, position = np.nonzero(differs[few])
        row = order[position]
        other = near[few[pair]]
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
        sign_test[i, near[few]] = sign_quantile(better, worse)
    return alike | alike.T, np.minimum(sign_test, sign_test.T)
