"""The design of the rows: their weights and clusters, and the standard errors that result.

A standard error comes from influence values: for a metric g, ``g_estimated - g ~ mean of psi_i``.
The design determines which rows are independent of each other, and the weight of each row. A design
without weights and clusters contains no arrays, and an array of ones is created only when it is
needed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from cmtrack._lazy import cached_property
from cmtrack.statistics.counted import Counted
from cmtrack.statistics.counting import blocks, take_weights
from cmtrack.statistics.inputs import SAMPLING, BoolArray, FloatArray, IntArray, kind_of_weights
from cmtrack.statistics.labels import encode_groups

_BLOCK_ROWS = 1 << 16
"""Number of rows whose fourth powers are computed at a time, to avoid a copy of all values."""
_ROUNDING = 1e-12
"""A variance below this fraction of the sum of squares is treated as a rounding error."""


@dataclass(frozen=True, eq=False)
class Design:
    """The weights and clusters of n rows.

    Attributes
    ----------
    n_rows : int
    weights : ndarray of shape (n,), optional
        int64 weights are frequencies. A frequency is a number of identical, independent rows.
        float64 weights are sampling weights, with which each row represents a part of a population.
        Robust (sandwich) standard errors are then used, which do not depend on the scale of the
        weights. A row with weight 0 is ignored.
    clusters : ndarray of shape (n,), int64, optional
        Index of the cluster of each row, counted from 0. The weighted values in a cluster are
        summed before they are squared.
    """

    n_rows: int
    weights: FloatArray | IntArray | None = None
    clusters: IntArray | None = None

    def __post_init__(self) -> None:
        _check_column("weights", self.weights, self.n_rows, "if")
        _check_column("clusters", self.clusters, self.n_rows, "i")

    def take(self, rows: BoolArray | IntArray) -> Design:
        """Return the design of the selected rows; their clusters are renumbered from 0."""
        n_rows = np.count_nonzero(rows) if rows.dtype.kind == "b" else len(rows)
        weights = None if self.weights is None else self.weights[rows]
        clusters = None
        if self.clusters is not None:
            clusters = np.unique(self.clusters[rows], return_inverse=True)[1]
        return Design(int(n_rows), weights, clusters)

    def with_groups(self, groups: Any) -> Design:
        """Return a design whose clusters are ``groups``; unchanged if ``groups`` is None."""
        if groups is None:
            return self
        return replace(self, clusters=encode_groups(groups, self.n_rows))

    # -- kind of design ----------------------------------------------------------------------------

    @property
    def has_clusters(self) -> bool:
        """True if the rows belong to clusters."""
        return self.clusters is not None

    @property
    def is_sampled(self) -> bool:
        """True if the weights are sampling weights."""
        return kind_of_weights(self.weights) == SAMPLING

    @property
    def is_independent(self) -> bool:
        """True if there are no clusters and no sampling weights, so that rows are independent."""
        return not (self.has_clusters or self.is_sampled)

    # -- rows --------------------------------------------------------------------------------------

    @property
    def counted(self) -> slice | BoolArray:
        """Index that selects rows with a weight above 0; a slice if it selects all rows."""
        if self.weights is None or self.weights.all():
            return slice(None)
        return np.asarray(self.weights > 0)

    @property
    def repeats(self) -> IntArray:
        """Number of identical rows that each row represents, shape (n,).

        The number is the frequency of the row. With sampling weights, the number is 1, or 0 if the
        weight is 0.
        """
        if self.weights is None:
            return np.ones(self.n_rows, dtype=np.int64)
        return np.asarray(self.weights > 0 if self.is_sampled else self.weights, dtype=np.int64)

    @property
    def row_weights(self) -> FloatArray:
        """Weight of each row as a float, shape (n,); 1 if there are no weights."""
        if self.weights is None:
            return np.ones(self.n_rows)
        return np.asarray(self.weights, dtype=np.float64)

    @property
    def units(self) -> IntArray:
        """Index of the independent unit of each row, shape (n,): a cluster, or the row itself."""
        return np.arange(self.n_rows) if self.clusters is None else self.clusters

    @cached_property
    def n_units(self) -> int:
        """Number of clusters, or of rows times frequencies, with a weight above 0."""
        if self.clusters is not None:
            return len(np.unique(self.clusters[self.counted]))
        if self.weights is None:
            return self.n_rows
        return int(self.repeats.sum())

    @property
    def effective_size(self) -> float:
        """Effective number of independent units (Kish 1965), (sum of w)^2 / sum of w^2.

        Here w is the weight of a cluster or, without clusters, of a row. A row with a frequency is
        treated as several rows with weight 1. The result is 0 if all weights are 0.
        """
        squares = float(self.products(np.ones((self.n_rows, 1)))[0, 0])
        return self.total**2 / squares if squares > 0 else 0.0

    # -- sums over the rows ------------------------------------------------------------------------

    @property
    def total(self) -> float:
        """Sum of the weights; the number of rows if there are no weights."""
        return float(self.n_rows if self.weights is None else self.weights.sum())

    def weighted(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Multiply values (n,) or (n, R) by the weights of their rows."""
        return _times(values, self.weights)

    def square_weighted(self, values: FloatArray) -> FloatArray:
        """Multiply values (n,) or (n, R) by the factor of each row in a sum of squares.

        The factor is w for a frequency w, because it represents w rows. For a sampling weight w,
        the factor is w^2.
        """
        if self.is_sampled:
            return _times(values, self.row_weights**2)
        return self.weighted(values)

    def mean(self, values: FloatArray) -> FloatArray:
        """Return the weighted mean of values (n,) or (n, R) over the rows."""
        if self.weights is None:
            return np.asarray(values.mean(axis=0))
        return np.asarray(self.weights @ values / self.total)

    def by_cluster(self, values: npt.NDArray[Any]) -> FloatArray:
        """Sum the weighted values in each cluster, shape (G,) or (G, R).

        Without clusters, each row is treated as a separate cluster.
        """
        weighted = self.weighted(values)
        if self.clusters is None:
            return np.asarray(weighted, dtype=np.float64)
        if weighted.ndim == 1:
            return np.bincount(self.clusters, weighted).astype(np.float64)
        return np.column_stack([np.bincount(self.clusters, column) for column in weighted.T])

    def products(self, values: FloatArray) -> FloatArray:
        """Multiply the summed values of each unit pairwise, and sum the products, shape (R, R)."""
        sums, repeats = self._unit_sums(values)
        return np.asarray(_times(sums, repeats).T @ sums)

    def _unit_sums(self, values: FloatArray) -> tuple[FloatArray, npt.NDArray[Any] | None]:
        """Return the sum of values in each unit, and the number of units that it represents.

        The second result is None if each unit represents only itself. A frequency is a number of
        identical units, so the values are not multiplied by it. The values are multiplied by any
        other weight.
        """
        if self.is_independent:
            return values, self.weights
        return self.by_cluster(values), None

    def sum_statistic(self, values: FloatArray) -> float:
        """Return the z statistic of a weighted sum of values (n,) whose expectation is 0.

        The statistic is the sum divided by the square root of the sum of squares over the
        independent units, as in McNemar's test (1947). The statistic is 0 if all values are 0.
        """
        squares = float(self.products(values[:, None])[0, 0])
        if squares <= 0:
            return 0.0
        return float(self.weighted(values).sum()) / math.sqrt(squares)

    # -- standard errors ---------------------------------------------------------------------------

    def standard_error(self, influence: FloatArray) -> float:
        """Compute a standard error from influence values (n,); see :meth:`covariance`."""
        return math.sqrt(float(self.covariance(influence[:, None])[0, 0]))

    def covariance(self, influence: FloatArray) -> FloatArray:
        """Compute the covariance matrix of R metrics or runs from influence values, (R, R).

        For each unit, the centred sums of two columns are multiplied. The covariance is the sum of
        these products over the units, divided by the squared total weight. With G clusters it is
        multiplied by G / (G - 1) ("CR1"), because the mean of the clusters is estimated.

        ``influence``, shape (n, R): influence values, with a column for each metric or run.
        """
        products = self.products(influence - self.mean(influence))
        if self.has_clusters:
            products = products * few_clusters(self.n_units)
        return products / self.total**2

    def effective_clusters(self, influence: FloatArray) -> float:
        """Compute the effective number of clusters from influence values (n,).

        The formula is from Carter, Schnepel and Steigerwald (2017). The squared sum of each cluster
        is used as an estimate of its variance. As a result, the number is too small.
        :func:`cluster_degrees` corrects it.
        """
        sums = self.by_cluster(influence - self.mean(influence))
        return float(effective_number(sums))

    def degrees(
        self, influence: FloatArray, actual: IntArray | None = None, folded: bool = False
    ) -> FloatArray:
        """Return the degrees of freedom for the differences between all pairs of R metrics.

        The shape is (R, R). The degrees are at least 1, and infinite if two columns do not differ.

        ``influence``, shape (n, R): influence values, with a column for each metric or run.
        ``actual``, shape (n,), int64: class of each row; None if a row may have several classes.
        ``folded``: whether to compute the degrees for both the difference and the sum of two
            columns, and return the smaller number.

        Notes
        -----
        For independent rows, the formula of Welch (1947) and Satterthwaite (1946) is applied to the
        actual classes: V^2 divided by the sum of V_k^2 / (n_k - 1). Here V_k is the sum of squares
        over the n_k rows of class k, and V is the sum of squares over all rows. The rows of each
        class are treated as a separate sample, as in a comparison of two means. A class with a
        single row gets one degree of freedom. If one of only two classes has a single row, the
        result is 1, because the variation of this class is unknown. For clusters, and for rows
        without a class, see :func:`cluster_degrees`.
        """
        signs = (-1, 1) if folded else (-1,)
        centred = influence - self.mean(influence)
        if self.has_clusters or actual is None:
            return self._degrees_of_units(centred, signs)
        return self._degrees_of_classes(centred, actual, signs)

    def _degrees_of_classes(
        self, psi: FloatArray, actual: IntArray, signs: tuple[int, ...]
    ) -> FloatArray:
        """Return Welch and Satterthwaite's degrees of freedom, shape (R, R).

        ``psi``, shape (n, R): centred influence values.
        ``signs``: -1 for the difference of two columns, 1 for their sum.
        """
        sizes = self._class_sizes(actual)
        # NumPy sorts 16-bit integers with a radix sort, which is faster.
        narrow = actual.astype(np.uint16) if len(sizes) <= 1 << 16 else actual
        order = np.argsort(narrow, kind="stable")
        psi = psi[order]
        weighted = self.take(order).square_weighted(psi)
        stops = np.bincount(actual).cumsum()
        starts = stops - np.bincount(actual)
        shape = (len(signs), psi.shape[1], psi.shape[1])
        variance = np.zeros(shape)
        scale = np.zeros(shape[1:])
        squares = np.zeros(shape)
        for k in np.flatnonzero(sizes).tolist():
            rows = slice(int(starts[k]), int(stops[k]))
            products = weighted[rows].T @ psi[rows]
            # (a ± b)^2 = a^2 + b^2 ± 2 a b for two columns a and b.
            squares_of_both = np.add.outer(np.diag(products), np.diag(products))
            scale += squares_of_both
            for s, sign in enumerate(signs):
                of_class = np.maximum(squares_of_both + sign * 2 * products, 0.0)
                variance[s] += of_class
                squares[s] += of_class**2 / max(float(sizes[k]) - 1, 1.0)
        # Columns that differ only by rounding errors are treated as equal.
        usable = (variance > _ROUNDING * scale) & (squares > 0)
        welch = np.divide(variance**2, squares, out=np.full(shape, math.inf), where=usable)
        present = sizes[sizes > 0]
        if len(present) == 2 and present.min() <= 1:
            # With a single row, the variation of a class cannot be estimated.
            welch = np.where(usable, 1.0, math.inf)
        degrees = np.maximum(welch, 1.0).min(axis=0)
        np.fill_diagonal(degrees, math.inf)
        return degrees

    def _class_sizes(self, actual: IntArray) -> FloatArray:
        """Return the number of rows of each class (K,), by Kish's formula for sampling weights."""
        sums = np.bincount(actual, self.weights).astype(np.float64)
        if not self.is_sampled:
            return sums
        squares = np.bincount(actual, self.row_weights**2)
        return np.asarray(Counted(sums, squares).effective_size())

    def _degrees_of_units(self, psi: FloatArray, signs: tuple[int, ...]) -> FloatArray:
        """Return the degrees of freedom for clusters or rows, from fourth powers, (R, R).

        See :meth:`_degrees_of_classes` for the arguments.
        """
        sums, repeats = self._unit_sums(psi)
        size = sums.shape[1]
        # These are sums over units of a b, a^2 b^2 and a^3 b for all pairs of columns a and b.
        products, squares, cubes = np.zeros((3, size, size))
        for rows in blocks(len(sums), _BLOCK_ROWS):
            part = sums[rows]
            repeated = _times(part, take_weights(repeats, rows))
            products += repeated.T @ part
            squares += (repeated * part).T @ (part * part)
            cubes += (repeated * part * part).T @ part
        # These terms of (a + sign b)^2 and (a + sign b)^4 do not depend on the sign.
        second = np.add.outer(np.diag(products), np.diag(products))
        fourth = np.add.outer(np.diag(squares), np.diag(squares)) + 6 * squares
        degrees = np.full((size, size), math.inf)
        for sign in signs:
            spread = second + sign * 2 * products
            tails = fourth + sign * 4 * (cubes + cubes.T)
            usable = (spread > _ROUNDING * second) & (tails > 0)
            effective = np.full_like(degrees, math.inf)
            np.divide(spread**2, tails, out=effective, where=usable)
            degrees = np.minimum(degrees, cluster_degrees(effective, self.n_units))
        np.fill_diagonal(degrees, math.inf)
        return degrees


def few_clusters(n: int) -> float:
    """Return the factor n / (n - 1) that corrects sums of squares over n clusters.

    For a single cluster the factor is 1.
    """
    return n / (n - 1) if n > 1 else 1.0


def effective_number(sums: FloatArray) -> FloatArray:
    """Return the effective number of clusters, given the clusters' sums along the first axis.

    For cluster sums s, the number is (sum of s^2)^2 / sum of s^4. The number is infinite if all s
    are 0.
    """
    squares = sums**2
    fourths = np.asarray((squares**2).sum(axis=0))
    effective = np.full(fourths.shape, math.inf)
    return np.divide(squares.sum(axis=0) ** 2, fourths, out=effective, where=fourths > 0)


def cluster_degrees(effective: Any, n_clusters: Any) -> Any:
    """Return the degrees of freedom of a cluster-robust standard error, which are at least 1.

    ``effective``: effective number of clusters, from :meth:`Design.effective_clusters`. An array of
        numbers is also accepted.
    ``n_clusters``: number of clusters, G; None in files of earlier versions.

    Notes
    -----
    If e is the effective number, the result is 3 e / (1 + 2 e / G) - 1. Because e is computed from
    squared sums instead of their expectations, it is too small. For G normal clusters with equal
    variances, the expected fourth power is 3 times the squared variance, so e is about G / 3. If e
    is far below G, the formula multiplies e by 3. If all squared sums are equal, e is equal to G,
    and the formula does not correct it.
    """
    corrected = np.asarray(effective, dtype=np.float64)
    if n_clusters is not None:
        with np.errstate(divide="ignore"):
            finite = 3 / (1 / corrected + 2 / n_clusters)
        corrected = np.where(np.isinf(corrected), math.inf, finite)
    degrees = np.maximum(corrected - 1, 1.0)
    return degrees if degrees.ndim else float(degrees)


def _times(values: npt.NDArray[Any], factors: npt.NDArray[Any] | None) -> npt.NDArray[Any]:
    """Multiply values (n,) or (n, R) by a factor for each row; None returns them unchanged."""
    if factors is None:
        return values
    if values.ndim > 1:
        factors = factors[:, None]
    return values * factors


def _check_column(name: str, column: npt.NDArray[Any] | None, n_rows: int, kinds: str) -> None:
    """Raise ValueError unless a column contains a number of an accepted kind for each row."""
    if column is None:
        return
    if column.shape != (n_rows,) or column.dtype.kind not in kinds:
        raise ValueError(
            f"{name} of a design must be numbers of shape ({n_rows},), got {column.dtype} of shape "
            f"{column.shape}"
        )
