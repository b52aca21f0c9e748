"""Changes, ratios, totals and scores of several cells, with the joint error of their estimates.

Cells that use the same labelled rows have correlated errors. Each estimate has an influence: how
much each labelled row changes it. The covariance that labelled rows cause is the sum over rows of
the products of two influences. The rows of each cell add an independent variance. Allowances for
the errors of an assumption add linearly in totals and scores. In changes within a domain, half of
them cancels.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.special import chdtrc

from cmtrack.digits import p_equals, significant, significant_with_interval
from cmtrack.metrics.intervals import fieller, normal_quantile, simultaneous_level
from cmtrack.prevalence.domains.check import Assumption
from cmtrack.prevalence.domains.estimates import DifferenceEstimate, Estimate
from cmtrack.prevalence.domains.rule import DomainShares, Source
from cmtrack.prevalence.domains.tables import DomainTables, Key
from cmtrack.statistics.inputs import FloatArray

_SHARED = 0.5
"""Fraction of the allowance that two cells of a domain without enough labelled rows share."""

_MOST_CHANGES = 400
"""Pairs of neighbours in a test of no change, whose influences must be in memory together."""


@dataclass(frozen=True)
class Quantity:
    """A number computed from several cells, with its interval.

    ``why``: the reason why the number is NaN or the interval is open.
    """

    value: float
    low: float
    high: float
    standard_error: float
    why: str = ""

    def __repr__(self) -> str:
        if math.isnan(self.value):
            return f"Quantity(undefined: {self.why})"
        if abs(self.value) >= 1000:
            return f"Quantity({self.value:,.0f} [{self.low:,.0f}, {self.high:,.0f}])"
        return f"Quantity({significant_with_interval(self.value, self.low, self.high)})"

    @classmethod
    def undefined(cls, why: str) -> Quantity:
        """Return a quantity without a number."""
        return cls(math.nan, math.nan, math.nan, math.nan, why)


@dataclass(frozen=True)
class NoChange:
    """Test of the hypothesis that neighbouring cells have equal shares, with X^2."""

    statistic: float
    degrees: int
    pvalue: float
    why: str = ""

    def __repr__(self) -> str:
        if math.isnan(self.pvalue):
            return f"NoChange(undefined: {self.why})"
        statistic = significant(self.statistic)
        return f"NoChange({p_equals(self.pvalue)}, X² {statistic}, {self.degrees} degrees)"


@dataclass(frozen=True, eq=False)
class _Term:
    """The estimate of one cell and its influence.

    ``base``, shape (B, K): influence of every labelled row. ``local``: by cell, the additional
        influence of its labelled rows, shape (F, K). Numbers after those of the cells belong to the
        fractions of a count that the estimate by shift adds.
    """

    domain: int
    estimate: Estimate
    base: FloatArray
    local: dict[int, FloatArray]
    allowance: float

    def independent(self, own: bool) -> float:
        """Return the variance that is independent of all other cells."""
        variance = self.estimate.variance(own) - self.estimate.labelled
        if isinstance(self.estimate, DifferenceEstimate) and not self.estimate.row_variance > 0:
            # All residuals are 0, so that no row has an influence.
            return self.estimate.variance(own)
        return variance


def _term(shares: DomainShares, cell: int, values: FloatArray) -> _Term:
    """Return the estimate of a cell that has a number."""
    basis = shares.bases[cell]
    tables = shares.tables
    domain = int(tables.domains[cell])
    allowance = shares.allowance(cell, basis.assumption or Assumption.CALIBRATION, values)
    if basis.assumption is Assumption.SHIFT:
        shift = shares.shifts[cell]
        base, local = _shift_influence(tables, cell, *shift.influence(values))
        return _Term(domain, shift.estimate(values), base, local, allowance)
    estimate = shares.calibrated(cell, values)
    source: list[int] = []
    if basis.source is Source.OWN_ROWS:
        source = [cell]
    elif basis.source is Source.OTHER_PERIODS:
        source = tables.other_periods(cell).tolist()
    local = {number: estimate.local[tables.bins[number]] for number in source}
    return _Term(domain, estimate, estimate.base, local, allowance)


def _shift_influence(
    tables: DomainTables, cell: int, influence: FloatArray, of_added: FloatArray
) -> tuple[FloatArray, dict[int, FloatArray]]:
    """Return the influence of every labelled row, and the local influence, for shift.

    ``influence``, ``of_added``, shape (B, K): the influence of labelled rows and of added counts.
    """
    n_cells, n_positions, n_classes = tables.labelled.shape
    added = np.zeros((n_positions, n_classes))
    added[: len(of_added)] = of_added
    if not tables.has_own_bins(cell):
        return influence, {n_cells + int(tables.domains.max()) + 1: added}
    cells = tables.cells_of_domain(cell).tolist()
    local = {number: influence[tables.own_bins[number]] for number in cells}
    local[n_cells + int(tables.domains[cell])] = added
    return np.zeros_like(tables.total), local


def _covariance(
    tables: DomainTables, terms: list[_Term], weights: FloatArray, own: bool, additive: bool
) -> FloatArray:
    """Return the covariance of weighted sums of estimates, shape (Q, Q).

    ``weights``, shape (Q, D): weight of each of D terms in each sum. ``additive``: whether the
    allowances add linearly, as in totals and scores.
    """
    of_rows = _row_covariance(tables, terms, weights)
    independent = np.array([term.independent(own) for term in terms])
    roots = np.sqrt([term.allowance for term in terms])
    shared = np.ones((len(terms), len(terms)))
    if not additive:
        domains = np.array([term.domain for term in terms])
        shared = _SHARED * (domains[:, None] == domains)
        np.fill_diagonal(shared, 1.0)
    of_terms = np.diag(independent) + roots[:, None] * shared * roots
    return np.asarray(of_rows + weights @ of_terms @ weights.T)


def _row_covariance(tables: DomainTables, terms: list[_Term], weights: FloatArray) -> FloatArray:
    """Return the covariance that labelled rows cause, shape (Q, Q).

    Most cells have no local influence, so the rows of all cells are first counted with the
    influence that every row has. Then the cells with a local influence are corrected.
    """
    base = np.tensordot(weights, np.stack([term.base for term in terms]), 1)
    covariance = _product(base, tables.total)
    local: dict[int, FloatArray] = {}
    for weight, term in zip(weights.T, terms, strict=True):
        for number, array in term.local.items():
            added = weight[:, None, None] * array
            local[number] = local.get(number, 0.0) + added
    n_cells = len(tables.keys)
    for number, influence in local.items():
        if number >= n_cells:  # fractions of a count that the estimate by shift adds
            covariance += _product(influence, np.ones(influence.shape[1:]))
            continue
        shared = base[:, tables.bins[number]]
        rows = tables.labelled[number]
        covariance += _product(shared + influence, rows) - _product(shared, rows)
    return covariance


def _product(influence: FloatArray, counts: FloatArray) -> FloatArray:
    """Return the sum over rows of the products of two influences, shape (Q, Q).

    ``influence``, shape (Q, F, K). ``counts``, shape (F, K): number of rows.
    """
    flat = influence.reshape(len(influence), -1)
    return np.asarray((flat * counts.ravel()) @ flat.T)


def _values(shares: DomainShares, values: FloatArray | None) -> FloatArray:
    """Return the values of the classes; by default, they give the share of the second of two."""
    n_classes = shares.tables.n_classes
    if values is None and n_classes == 2:
        return np.array([0.0, 1.0])
    if values is None or len(values) != n_classes or not np.isfinite(values).all():
        raise ValueError(f"values must be a finite number for each of {n_classes} classes")
    return np.asarray(values, dtype=np.float64)


def _terms(
    shares: DomainShares, keys: Iterable[Key], values: FloatArray | None
) -> tuple[list[_Term], str]:
    """Return the estimates of cells, or the reason why a cell has no number."""
    class_values = _values(shares, values)
    terms = []
    for cell in map(shares.tables.find, keys):
        if shares.bases[cell].assumption is None:
            key = " ".join(map(str, shares.tables.keys[cell]))
            reason = shares.bases[cell].why or "undecided, the check refuses neither assumption"
            return [], f"{key}: {reason}"
        terms.append(_term(shares, cell, class_values))
    return terms, ""


def combination(
    shares: DomainShares,
    weights: Mapping[Key, float],
    values: FloatArray | None = None,
    *,
    own: bool = False,
    additive: bool = False,
    confidence_level: float | None = None,
) -> Quantity:
    """Return a weighted sum of the estimates of cells, with Wald's interval.

    Parameters
    ----------
    weights : dict of tuple to float
        Weight of each cell.
    values : ndarray of shape (K,), optional
        The value of each class. By default, each estimate is the share of the second of two
        classes.
    own : bool
        Whether the quantity is about the target rows themselves instead of their population.
    additive : bool
        Whether the allowances of cells add linearly.
    """
    terms, why = _terms(shares, weights, values)
    if why:
        return Quantity.undefined(why)
    row = np.array([list(weights.values())], dtype=np.float64)
    value = float(row[0] @ [term.estimate.value for term in terms])
    error = math.sqrt(float(_covariance(shares.tables, terms, row, own, additive)[0, 0]))
    reach = normal_quantile(confidence_level or shares.confidence_level) * error
    return Quantity(value, value - reach, value + reach, error)


def change(
    shares: DomainShares,
    first: Key,
    second: Key,
    values: FloatArray | None = None,
    *,
    own: bool = False,
    confidence_level: float | None = None,
) -> Quantity:
    """Return the estimate of the second cell less the estimate of the first."""
    weights = {first: 0.0, second: 1.0}
    weights[first] -= 1.0  # a cell less itself has the weight 0
    return combination(shares, weights, values, own=own, confidence_level=confidence_level)


def total(shares: DomainShares, cells: Iterable[Key] | None = None, own: bool = True) -> Quantity:
    """Return the number of rows of the second of two classes in several cells, or in all."""
    weights = sizes(shares.tables, cells)
    return combination(shares, weights, own=own, additive=True)


def score(
    shares: DomainShares,
    values: FloatArray,
    cells: Iterable[Key] | None = None,
    own: bool = False,
) -> Quantity:
    """Return the mean of class values over the rows of several cells, or of all."""
    weights = sizes(shares.tables, cells)
    n = sum(weights.values())
    parts = {key: size / n for key, size in weights.items()}
    return combination(shares, parts, values, own=own, additive=True)


def sizes(tables: DomainTables, cells: Iterable[Key] | None) -> dict[Key, float]:
    """Return the number of target rows of cells."""
    if cells is None:
        cells = [key for key, n in zip(tables.keys, tables.n, strict=True) if n > 0]
    return {key: float(tables.n[tables.find(key)]) for key in cells}


def ratio(
    shares: DomainShares, first: Key, second: Key, *, own: bool = False, counts: bool = False
) -> Quantity:
    """Return the share of the second cell divided by the share of the first.

    ``counts``: whether to divide the numbers of rows instead. The interval is that of Fieller
    (:func:`~cmtrack.metrics.intervals.fieller`). It is open if the first cell's share may be 0.
    """
    terms, why = _terms(shares, [second, first], None)
    if why:
        return Quantity.undefined(why)
    covariance = _covariance(shares.tables, terms, np.eye(2), own, additive=False)
    x = terms[0].estimate.value
    y = terms[1].estimate.value
    factor = 1.0
    if counts:
        rows = sizes(shares.tables, [second, first])
        factor = rows[second] / rows[first]
    variances = (float(covariance[0, 0]), -float(covariance[0, 1]), float(covariance[1, 1]))
    low, high = ratio_interval(x, y, variances, normal_quantile(shares.confidence_level))
    why = ""
    if not math.isfinite(high):
        why = "growth not determined"
    if not y > 0:
        return Quantity(math.nan, factor * low, high, math.nan, why)
    value = x / y
    error = math.sqrt(max(variances[0] + 2 * value * variances[1] + value**2 * variances[2], 0)) / y
    return Quantity(factor * value, factor * low, factor * high, factor * error, why)


def ratio_interval(
    x: float, y: float, variances: tuple[float, float, float], z: float
) -> tuple[float, float]:
    """Return the lowest and the highest ratio x / y >= 0 that Fieller's set contains.

    ``variances``: the variance of x, the covariance of x and -y, and the variance of y.
    """
    pieces = fieller(x, -y, variances, z)
    if not pieces:
        return math.nan, math.nan
    return pieces[0][0], pieces[-1][1]


def neighbours(tables: DomainTables) -> list[tuple[Key, Key]]:
    """Return the pairs of cells with target rows that follow each other in the last column.

    The cells of a pair belong to the same domain, unless there is only one column.
    """
    groups = tables.domains
    if not tables.has_periods:
        groups = np.zeros(len(tables.keys), dtype=np.int64)
    order = [cell for cell in np.lexsort((tables.periods, groups)).tolist() if tables.n[cell] > 0]
    return [
        (tables.keys[first], tables.keys[second])
        for first, second in pairwise(order)
        if groups[first] == groups[second]
    ]


def changes(
    shares: DomainShares, values: FloatArray | None = None, own: bool = False
) -> dict[tuple[Key, Key], Quantity]:
    """Return the changes between neighbours in the last column, with simultaneous intervals."""
    pairs = neighbours(shares.tables)
    level = simultaneous_level(max(len(pairs), 1), shares.confidence_level)
    return {pair: change(shares, *pair, values, own=own, confidence_level=level) for pair in pairs}


def no_change(
    shares: DomainShares, values: FloatArray | None = None, own: bool = False
) -> NoChange:
    r"""Test that all neighbours in the last column have equal means of class values.

    With C the differences between neighbours, :math:`X^2 = (C\pi)' (C \Sigma C')^{-1} (C\pi)`. It
    has as many degrees of freedom as the rank of its covariance.
    """
    pairs = neighbours(shares.tables)
    keys = list(dict.fromkeys(key for pair in pairs for key in pair))
    terms, why = _terms(shares, keys, values)
    if not 0 < len(pairs) <= _MOST_CHANGES:
        why = f"the test needs 1 to {_MOST_CHANGES} pairs of neighbours, got {len(pairs)}"
    if why:
        return NoChange(math.nan, 0, math.nan, why)
    weights = np.zeros((len(pairs), len(keys)))
    for row, (first, second) in enumerate(pairs):
        weights[row, keys.index(first)] = -1.0
        weights[row, keys.index(second)] = 1.0
    covariance = _covariance(shares.tables, terms, weights, own, additive=False)
    differences = weights @ np.array([term.estimate.value for term in terms])
    degrees = int(np.linalg.matrix_rank(covariance, hermitian=True))
    statistic = float(differences @ np.linalg.pinv(covariance, hermitian=True) @ differences)
    return NoChange(statistic, degrees, float(chdtrc(degrees, statistic)))
