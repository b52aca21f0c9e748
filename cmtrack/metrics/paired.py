"""Differences of one metric between evaluations of the same rows: statistic, p-value and interval.

A difference of shares of the same rows (accuracy, or recall: the denominator is of actual labels) depends on the rows
that only one of the two gets right, b and c of n. Its statistic is McNemar's (b - c) / sqrt(b + c), its interval
Tango's. Any other metric has Student's interval, cut at the range of a difference; where few rows differ there is none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import bdtr, ndtr, ndtri, stdtr, stdtrit

from cmtrack.metrics.influence import covariance
from cmtrack.metrics.intervals import tango
from cmtrack.statistics.inputs import BoolArray, FloatArray, IntArray

FEWEST_ROWS, FEWEST_CLUSTERS = 10, 5
"""Rows, or clusters, fewer of which say nothing of a difference that is not one of shares."""
SAME = 1e-12
"""Part of the largest variance below which a difference has no error: the two are the same."""
SHARE_ROUNDING = 1e-9  # of the values of an influence function of a share


def binomial_pvalues(only_first: Any, only_second: Any) -> tuple[FloatArray, FloatArray]:
    """The exact and the mid-p p-values of McNemar's test, of whole counts of any shape; NaN where both are 0."""
    b, c = np.asarray(only_first), np.asarray(only_second)
    n, least = (b + c).astype(np.int64), np.minimum(b, c)
    tail = np.where(n > 0, bdtr(least, n, 0.5), math.nan)
    here = tail - np.where(least > 0, bdtr(np.maximum(least - 1, 0), n, 0.5), 0.0)
    exact = np.minimum(1.0, 2 * tail)
    return exact, np.where(b == c, 1 - here / 2, exact - here)  # at b = c the two tails share the outcome


@dataclass(frozen=True, eq=False)
class Discordant:
    """Rows that only one of two evaluations gets right, of all pairs of R evaluations.

    ``only_row``, shape (R, R): weight of the rows that only the row's evaluation gets right: b; transposed it is c.
    ``squares``, shape (R, R): sum of squares of ``b - c`` of the independent units: clusters, rows with fractional
        weights, else rows.
    ``n``: weight of the rows that the share is of.
    ``further``: mean and mean square of these rows' weights where they are fractional; else (0, 0). One such row counts
        as discordant, too: where few are, their own weights say little of the others'.
    """

    only_row: FloatArray
    squares: FloatArray
    n: float
    further: tuple[float, float]

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
        """``(b - c) / sqrt(squares)``, which is normal without degrees of freedom (McNemar 1947)."""
        gap, (total, squares) = self.only_row - self.only_row.T, self._sums
        spread = squares * np.divide(self.total, total, out=np.zeros_like(gap), where=total > 0)
        return np.divide(gap, np.sqrt(spread), out=np.zeros_like(gap), where=spread > 0)

    def upper(self, quantile: Any) -> FloatArray:
        """Upper ends by Tango, of the counts times ``(b + c) / squares``: as many rows as the units are worth.

        They are 0 exactly where the statistic is minus the quantile.
        """
        total, squares = self._sums
        times = np.divide(total, squares, out=np.ones_like(total), where=squares > 0)
        return tango(self.only_row * times, self.only_row.T * times, self.n * times, quantile)


@dataclass(frozen=True, eq=False)
class Paired:
    """All differences of one metric between R evaluations of the same rows; arrays (R, R), row less column.

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
    differing : ndarray of shape (R, R) or None
        Number of rows, or clusters, that are not answered alike, where that is known and needed: of a share only to
        tell runs that are right in the same rows from runs that answer alike. Of enough clusters minus the number of
        their rows, where these are few.
    clustered : bool

    Examples
    --------
    Two evaluations, at the normal quantile; of many, give the quantile that holds for all pairs, or one for each:

    >>> import numpy as np
    >>> from cmtrack.metrics.paired import Paired
    >>> right = np.array([[1, 1, 1, 0] * 50, [1, 1, 0, 0] * 50]).T.astype(float)
    >>> pairs = Paired.of(right.mean(axis=0), right - right.mean(axis=0), bounds=(0, 1))
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
    differing: IntArray | None
    clustered: bool

    @classmethod
    def of(
        cls, values: FloatArray, psi: FloatArray, *, bounds: tuple[float, float],
        answers: Sequence[npt.NDArray[Any]] | None = None, actual: IntArray | None = None,
        weights: FloatArray | IntArray | None = None, clusters: IntArray | None = None,
        degrees: FloatArray | None = None, ends: FloatArray | None = None,
    ) -> Paired:  # fmt: skip
        """Everything that differences need, by products of matrices.

        ``values``, ``psi``, shape (R,) and (n, R): values and influence values with the metric's own sign, also where
            lower is better.
        ``bounds``, (low, high): range of the metric.
        ``answers``, sequence of R arrays of shape (n,): from :meth:`~cmtrack.metrics.influence.Influence.answers`: a
            row whose codes are equal does not differ.
        ``actual``, shape (n,): classes; a share's denominator must be of actual classes, and of all rows where they are
            not given.
        ``weights``, ``clusters``, shape (n,): int64 are numbers of equal rows, float64 sampling weights.
        ``degrees``, shape (R, R): infinite by default.
        ``ends``, shape (3, R): of values at an end of their range, which no row moves, error and degrees. They
            count where two have no other error, and where the third is true: of shares of other rows for each run.
        """
        joint = covariance(psi, weights, clusters)
        variance = np.diag(joint)
        error = root(variance[:, None] + variance - 2 * joint, variance)
        shares = _discordant(values, psi, actual, weights, clusters)
        same = np.zeros(error.shape, dtype=bool) if shares is None else shares.total == 0
        asked = answers if shares is None or np.count_nonzero(same) > len(same) else None
        differing = None if asked is None else _differing(asked, weights, clusters)
        degrees = np.full_like(error, np.inf) if degrees is None else degrees
        if shares is None and differing is not None:
            same = (error == 0) & (np.abs(values[:, None] - values) <= SAME * np.abs(values).max()) & (variance > 0)
            differing[same] = 0  # no row tells them apart, and each row moves them; of a value at an end none does
            same = differing == 0
        if shares is None and ends is not None:
            counted = ((error == 0) | np.logical_or.outer(ends[2], ends[2])) & ~np.eye(len(values), dtype=bool)
            error = np.where(counted, np.sqrt(error**2 + np.add.outer(ends[0] ** 2, ends[0] ** 2)), error)
            degrees = np.where(counted, np.minimum(degrees, np.minimum.outer(ends[1], ends[1])), degrees)
        return cls(values, np.where(same, 0.0, error), degrees, bounds, shares, differing, clusters is not None)

    @cached_property
    def difference(self) -> FloatArray:
        """Differences of the values."""
        gap = self.values[:, None] - self.values
        return np.where((self.error == 0) & (np.abs(gap) <= SAME * np.abs(self.values).max()), 0.0, gap)

    @cached_property
    def equal(self) -> BoolArray:
        """Pairs that do not differ: difference 0, error 0, p 1, interval [0, 0].

        Runs that are right in the same rows, and do not answer alike, differ by an interval about 0.
        """
        alike = (self.error == 0) & (self.difference == 0)
        return np.asarray(alike if self.differing is None else alike & (self.differing == 0))

    @cached_property
    def untold(self) -> BoolArray:
        """Pairs without an interval: no error is known, or they differ in too few rows."""
        return np.asarray((self.error == 0) & ~self.equal & (self.shares is None) | self.too_few)

    @cached_property
    def too_few(self) -> BoolArray:
        """Pairs that differ in too few rows or clusters for an interval."""
        if self.differing is None or self.shares is not None:
            return np.zeros(self.error.shape, dtype=bool)
        return np.asarray(~self.equal & (self.differing < (FEWEST_CLUSTERS if self.clustered else FEWEST_ROWS)))

    def reason(self, i: int = 0, j: int = 1) -> str:
        """The reason why two have no interval; empty where they have one."""
        if self.too_few[i, j]:
            assert self.differing is not None  # it is too small
            number = abs(int(self.differing[i, j]))
            unit = "cluster" if self.clustered and self.differing[i, j] > 0 else "row"
            return f"only {number} {unit}{'s differ' if number > 1 else ' differs'}: too few to say"
        return "the rows do not tell the error of the difference" if self.untold[i, j] else ""

    @cached_property
    def statistic(self) -> FloatArray:
        """Statistics that are standard normal where two do not differ; infinite where there is no error."""
        if self.shares is not None:
            return self.shares.statistic
        return as_normal(over(self.difference, self.error), self.degrees)

    @cached_property
    def pvalue(self) -> FloatArray:
        """Two-sided p-values; NaN where there is no interval."""
        two_sided = np.where(self.equal, 1.0, 2 * ndtr(-np.abs(self.statistic)))
        return np.where(self.untold, np.nan, two_sided)

    def upper(self, quantile: Any) -> FloatArray:
        """Upper ends of :meth:`interval`, also where too few rows differ; the lower ones are those of the other way."""
        if self.shares is not None:
            high = np.maximum(self.shares.upper(quantile), self.difference)
        else:
            high = cut(self.difference, students(quantile, self.degrees) * self.error, self.bounds)[1]
        return np.where(self.equal, 0.0, high)

    def interval(self, quantile: Any) -> tuple[FloatArray, FloatArray]:
        """Lower and upper ends at a normal quantile, a number or (R, R); NaN where :meth:`reason` says why."""
        high = self.upper(quantile)
        low = 0.0 - (high if np.ndim(quantile) == 0 else self.upper(np.transpose(quantile))).T  # 0 without a sign
        return np.where(self.untold, np.nan, low), np.where(self.untold, np.nan, high)

    def larger_is_better(self) -> Paired:
        """The same of a metric of which lower values are better: values with the other sign."""
        shares = None if self.shares is None else replace(self.shares, only_row=self.shares.only_row.T)
        return replace(self, values=-self.values, bounds=(-self.bounds[1], -self.bounds[0]), shares=shares)

    def take(self, places: IntArray) -> Paired:
        """Select some of the evaluations, in their order."""
        both, shares = np.ix_(places, places), self.shares
        if shares is not None:
            shares = replace(shares, only_row=shares.only_row[both], squares=shares.squares[both])
        differing = None if self.differing is None else self.differing[both]
        parts = {"values": self.values[places], "error": self.error[both], "degrees": self.degrees[both]}
        return replace(self, shares=shares, differing=differing, **parts)  # type: ignore[arg-type]


def root(variance: FloatArray, scale: FloatArray) -> FloatArray:
    """Standard errors of differences; exactly 0 where only rounding is left."""
    least = SAME * max(float(scale.max(initial=0)), 1e-300)
    error = np.sqrt(np.where(variance > least, variance, 0.0))
    np.fill_diagonal(error, 0.0)
    return error


def over(difference: FloatArray, error: FloatArray) -> FloatArray:
    """Differences in standard errors; infinite where there is a difference without an error."""
    sure = np.where(difference == 0, 0.0, np.copysign(np.inf, difference))
    return np.divide(difference, error, out=sure, where=error > 0)


def cut(difference: Any, reach: Any, bounds: tuple[float, float]) -> tuple[Any, Any]:
    """``difference ± reach``, cut at what two values of a range can differ by."""
    most = bounds[1] - bounds[0]
    return np.maximum(difference - reach, -most), np.minimum(difference + reach, most)


def students(quantile: Any, degrees: Any) -> Any:
    """Student's quantile of the same tail as a normal one; the normal one where degrees of freedom are infinite."""
    few = np.isfinite(degrees)
    return np.where(few, -stdtrit(np.where(few, degrees, 1.0), ndtr(-np.asarray(quantile))), quantile)


def as_normal(statistic: FloatArray, degrees: FloatArray) -> FloatArray:
    """Normal statistics of the same tails as Student's of some degrees of freedom."""
    few = np.isfinite(statistic) & np.isfinite(degrees)
    out = statistic.copy()
    out[few] = -np.sign(statistic[few]) * ndtri(stdtr(degrees[few], -np.abs(statistic[few])))
    return out


def _discordant(
    values: FloatArray, psi: FloatArray, actual: IntArray | None, weights: FloatArray | IntArray | None,
    clusters: IntArray | None,
) -> Discordant | None:  # fmt: skip
    """The discordant rows of values that are shares of the same rows, as their influence functions show.

    That of a share has two values inside its denominator, for hits and misses, and is 0 outside.
    """
    if weights is not None and not weights.all():  # rows without weight say nothing
        held = weights > 0
        psi, weights = psi[held], weights[held]
        actual, clusters = (None if codes is None else codes[held] for codes in (actual, clusters))
    ones = np.ones(len(psi)) if weights is None else weights.astype(np.float64)
    hits, inside = np.zeros(psi.shape, dtype=bool), None
    for r, value in enumerate(values.tolist()):
        column = psi[:, r]
        top, bottom = float(column.max(initial=0)), float(column.min(initial=0))
        least = SHARE_ROUNDING * (top - bottom)
        if value in (0.0, 1.0) and top - bottom <= SHARE_ROUNDING:
            continue  # all are hits, or none
        hit, miss = np.abs(column - top) <= least, np.abs(column - bottom) <= least
        among = hit | miss
        if not (0 < value < 1 and bottom < 0 < top and np.abs(column[~among]).max(initial=0) <= least):
            return None
        if inside is None:
            inside = among
            classes = np.zeros(len(psi), dtype=np.int64) if actual is None else actual
            part = np.bincount(classes, inside)
            if not ((part == 0) | (part == np.bincount(classes))).all():
                return None
        if not np.array_equal(among, inside) or abs(float(ones @ hit) / float(ones @ among) - value) > SHARE_ROUNDING:
            return None
        hits[:, r] = hit
    if inside is None:
        return None
    hits[:, values == 1] = inside[:, None]
    weighted = hits * ones[:, None]
    both = weighted.T @ hits
    only_row = np.diag(both)[:, None] - both
    whole = weights is None or weights.dtype.kind == "i"
    if clusters is not None:
        sums = np.column_stack([np.bincount(clusters, column) for column in weighted.T])
        products = np.asarray(sums.T @ sums, dtype=np.float64)
    else:
        products = both if whole else weighted.T @ weighted
    squares = np.diag(products)[:, None] + np.diag(products) - 2 * products
    total = float(ones.sum())
    of_share = ones[inside]
    further = (0.0, 0.0) if whole else (float(of_share.mean()), float((of_share**2).mean()))
    negligible = SAME * max(float(products.max(initial=0)), 1e-300)
    only_row[only_row <= SAME * total] = 0.0
    return Discordant(only_row, np.where(squares > negligible, squares, 0.0), float(ones @ inside), further)


def _differing(
    answers: Sequence[npt.NDArray[Any]], weights: FloatArray | IntArray | None, clusters: IntArray | None
) -> IntArray:
    """Number of rows, or clusters, that two of R do not answer alike, (R, R); minus that of few rows in clusters."""
    codes = np.stack(answers)
    counts = np.ones(codes.shape[1], dtype=np.int64)
    if weights is not None:
        counts = np.asarray(weights if weights.dtype.kind == "i" else weights > 0, dtype=np.int64)
    if clusters is not None:
        order = np.argsort(clusters, kind="stable")
        order = order[counts[order] > 0]
        codes, counts, (_, starts) = codes[:, order], counts[order], np.unique(clusters[order], return_index=True)
    out = np.zeros((len(codes), len(codes)), dtype=np.int64)
    for i in range(len(codes) - 1):
        apart = codes[i + 1 :] != codes[i]
        rows = out[i, i + 1 :] = apart @ counts
        if clusters is not None:  # that hold ten rows, or they say no more than rows do
            held = np.logical_or.reduceat(apart, starts, axis=1).sum(axis=1)
            out[i, i + 1 :] = np.where((rows < FEWEST_ROWS) & (held >= FEWEST_CLUSTERS), -rows, held)
    return np.asarray(out + out.T)
