"""The check of an assumption: labelled cells are predicted without their own labelled rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from scipy.optimize import brentq
from scipy.special import chdtrc, chdtri

from cmtrack.prevalence.domains.estimates import Estimate, ShiftEstimate, difference_estimate
from cmtrack.prevalence.domains.tables import ENOUGH, DomainTables
from cmtrack.statistics.inputs import FloatArray, IntArray

_BOUND = 0.9
"""Level of the upper bound of the squared error beyond sampling error.

In simulations of real domains, the median bound and the moment estimate gave intervals that
contained the true share too rarely in the worst cell. The promise of an interval is about each
cell.
"""


class Assumption(StrEnum):
    """Assumption about the scores of cells without enough labelled rows."""

    SHIFT = "shift"
    CALIBRATION = "calibration"


class Step(StrEnum):
    """The difference between a cell and the labelled rows from which its number comes."""

    DOMAINS = "domains"
    PERIODS = "periods"


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Errors of labelled cells that were predicted without their own rows.

    Attributes
    ----------
    step : Step
        A cell is predicted without its whole domain, or without its own rows only.
    assumption : Assumption
    cells : ndarray of shape (C,)
        Indices of the labelled cells that could be predicted.
    errors : ndarray of shape (C,)
        Estimate less labelled mean.
    variances : ndarray of shape (C,)
        Sampling variances of the errors.
    """

    step: Step
    assumption: Assumption
    cells: IntArray
    errors: FloatArray
    variances: FloatArray

    def statistic(self, allowance: float = 0.0) -> float:
        """Return the sum of squared errors, each divided by its variance plus ``allowance``."""
        return float((self.errors**2 / (self.variances + allowance)).sum())

    @property
    def pvalue(self) -> float:
        """The p-value of the hypothesis that there is only sampling error; NaN without cells.

        There is one degree of freedom per cell, because the mean error is known to be 0.
        """
        if not len(self.cells):
            return math.nan
        return float(chdtrc(len(self.cells), self.statistic()))

    @property
    def mean_error(self) -> float:
        """The root mean square of the errors; NaN without cells."""
        if not len(self.cells):
            return math.nan
        return math.sqrt(float((self.errors**2).mean()))

    @property
    def allowance(self) -> float:
        """The 90% upper bound of the variance of errors beyond sampling error; NaN without cells.

        The statistic with this allowance equals the 10% point of its distribution. Sources: Hartung
        and Knapp (2005), Statistics in Medicine 24, 2025-2030 (as a Q-profile), and Viechtbauer
        (2007), Statistics in Medicine 26, 37-52.
        """
        if not len(self.cells):
            return math.nan
        wanted = float(chdtri(len(self.cells), _BOUND))
        if self.statistic() <= wanted:
            return 0.0
        # Without sampling variances, the allowance would be at most this.
        highest = float((self.errors**2).sum()) / wanted
        return float(brentq(lambda a: self.statistic(a) - wanted, 0.0, highest, xtol=1e-15))


def leave_out(
    tables: DomainTables, step: Step, assumption: Assumption, values: FloatArray
) -> LeftOut:
    """Predict the mean class value of each cell with enough labelled rows from other rows.

    The bins stay those of all labelled rows, so a check needs only sums of tables.
    """
    cells = []
    errors = []
    variances = []
    for cell in np.flatnonzero(tables.has_enough).tolist():
        estimate = _estimate_without(tables, cell, step, assumption, values)
        if estimate is None:
            continue
        by_class = tables.counts[cell].sum(axis=0)
        cells.append(cell)
        errors.append(estimate.value - float(by_class @ values) / float(by_class.sum()))
        variances.append(estimate.variance(own=True))
    return LeftOut(
        step,
        assumption,
        np.array(cells, dtype=np.int64),
        np.array(errors),
        np.array(variances),
    )


def _estimate_without(
    tables: DomainTables, cell: int, step: Step, assumption: Assumption, values: FloatArray
) -> Estimate | None:
    """Return the estimate for the scores of a cell's labelled rows; None if it is impossible."""
    scores = tables.counts[cell].sum(axis=1)
    near = np.zeros_like(tables.total)
    out = tables.cells_of_domain(cell)
    if step is Step.PERIODS:
        near = tables.counts[tables.other_periods(cell)].sum(axis=0)
        out = np.array([cell])
    rest = tables.total - tables.counts[out].sum(axis=0)
    if assumption is Assumption.CALIBRATION:
        if not rest.sum() > 0:
            return None
        if near.sum() < ENOUGH:
            return difference_estimate(rest, scores, values)
        return difference_estimate(rest, scores, values, near)
    if near.sum(axis=0).min() >= ENOUGH:
        rest = near
    shift = shift_estimate(rest.T, scores)
    if shift is None:
        return None
    return shift.estimate(values)


def shift_estimate(counts: FloatArray, target: FloatArray) -> ShiftEstimate | None:
    """Return the estimate by shift; None if a class has no rows or the scores do not separate it.

    ``counts``, shape (K, B): labelled rows by class and bin. ``target``, shape (B,): target rows.
    """
    if not counts.sum(axis=1).min() > 0:
        return None
    shift = ShiftEstimate(counts, target)
    if not shift.is_identified:
        return None
    return shift
