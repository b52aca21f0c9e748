"""The rule that decides from which labelled rows the number of a cell comes.

1. A cell with enough labelled rows uses them. Its number needs no assumption.
2. Otherwise, its number comes from other periods of its domain, or from all labelled rows. This
   step must have been checked on labelled cells (``check``); without a check, there is no number.
3. An assumption is refused if its check refuses it, and shift also if the cell's scores do not fit.
   If both assumptions remain, there is no number but a range that contains both intervals.
   If one remains, it is used if its bound in the same check is the smaller one. With weak models,
   the estimates by shift may be too imprecise to be refused. If none remains, the assumption with
   the smaller allowance is used.
4. A requested assumption replaces the check for cells without enough labelled rows.

If there are more than two classes, only calibration is used, unless shift is requested.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from scipy.special import chdtrc

from cmtrack._lazy import cached_property
from cmtrack.digits import in_words, short_percent, significant
from cmtrack.metrics.intervals import check_level, holm
from cmtrack.prevalence.domains.check import Assumption, LeftOut, Step, leave_out, shift_estimate
from cmtrack.prevalence.domains.estimates import (
    DifferenceEstimate,
    ShiftEstimate,
    difference_estimate,
    possible_share,
    rows_needed,
    rows_to_tell,
    share_interval,
)
from cmtrack.prevalence.domains.tables import ENOUGH, DomainTables, Key
from cmtrack.prevalence.fit import REFUSED, misfit
from cmtrack.prevalence.results import ClassShare
from cmtrack.statistics.inputs import FloatArray

_LEAST_DOMAINS = 3
_LEAST_PERIODS = 2
_LEAST_CELLS = 3
"""Labelled domains, periods and cells that a check needs.

With one labelled period, the domains may agree with each other and all change until the next
period.
"""
_FEW_ROWS = 30
"""Target rows below which only the total of several cells should be read."""
_MOST_TO_TELL = 100_000
"""Labelled rows above which nobody should label rows to choose between two assumptions."""
_UNLIKE = 0.001
"""Adjusted p-value below which a cell's labelled rows are not a random part of the cell."""
_NOTHING = ClassShare(math.nan, math.nan, math.nan)


class Source(StrEnum):
    """The labelled rows from which the number of a cell comes."""

    OWN_ROWS = "own rows"
    OTHER_PERIODS = "other periods"
    OTHER_DOMAINS = "other domains"
    UNDECIDED = "undecided"
    NONE = "none"


@dataclass(frozen=True)
class Basis:
    """The decision about one cell.

    Attributes
    ----------
    source : Source
    assumption : Assumption or None
        None if there is no number.
    steps : tuple of Step
        The checked steps, whose allowances are added.
    why : str
        The reason why there is no number, or a remark about it.
    """

    source: Source
    assumption: Assumption | None = None
    steps: tuple[Step, ...] = ()
    why: str = ""


@dataclass(frozen=True)
class CellShare:
    """The share of one class in one cell.

    Attributes
    ----------
    key : tuple
        The values of the columns.
    k : int
        Class code.
    n, labelled : float
        Numbers of target rows and of labelled rows of the cell.
    share, own_share : ClassShare
        The share in the population, and in the target rows of this cell. If the assumptions are
        undecided, the value is NaN, and the ends contain both intervals.
    basis : Basis
    shift, calibration : ClassShare
        The share under each assumption, without an allowance.
    fit_pvalue : float
        The p-value of the test of shift, not adjusted for the number of cells.
    rows_needed : float
        Further labelled rows of this cell that give the requested half-width.
    why : str
    """

    key: Key
    k: int
    n: float
    labelled: float
    share: ClassShare
    own_share: ClassShare
    basis: Basis
    shift: ClassShare
    calibration: ClassShare
    fit_pvalue: float
    rows_needed: float
    why: str

    @property
    def has_own_rows(self) -> bool:
        """True if the number comes from labelled rows of the cell."""
        return self.basis.source is Source.OWN_ROWS


@dataclass(frozen=True, eq=False)
class DomainShares:
    """The shares of all cells, as the rule decides.

    ``assumption``: the assumption for cells without enough labelled rows. By default, the check
        decides.
    """

    tables: DomainTables
    assumption: Assumption | None = None
    half_width: float = 0.05
    confidence_level: float = 0.95
    _checks: dict[tuple[Step, Assumption, bytes], LeftOut] = field(default_factory=dict, repr=False)
    _calibrated: dict[tuple[int, bytes], DifferenceEstimate] = field(
        default_factory=dict, repr=False
    )

    def __post_init__(self) -> None:
        check_level(self.confidence_level)
        if not 0 < self.half_width < 1:
            raise ValueError(f"half_width must be between 0 and 1, got {self.half_width!r}")

    # -- what is decided --------------------------------------------------------------------------

    @cached_property
    def cells(self) -> tuple[CellShare, ...]:
        """The share of each cell with target rows: of the second of two classes, or of each."""
        tables = self.tables
        classes = range(tables.n_classes)
        if tables.n_classes == 2:
            classes = range(1, 2)
        return tuple(
            self._cell_share(cell, k) for cell in np.flatnonzero(tables.n).tolist() for k in classes
        )

    @cached_property
    def bases(self) -> dict[int, Basis]:
        """The decision about each cell with target rows."""
        return {cell: self._basis(cell) for cell in np.flatnonzero(self.tables.n).tolist()}

    @property
    def unlike(self) -> list[Key]:
        """The cells whose labelled rows have other scores than their target rows.

        The number of such a cell assumes that its labelled rows are a random part of the cell. The
        test is the chi-square test of two samples of bins, adjusted by Holm's method.
        """
        tables = self.tables
        cells = np.flatnonzero(tables.has_enough & (tables.n > 0)).tolist()
        adjusted = holm(
            [_two_samples(tables.counts[c].sum(axis=1), tables.targets[c]) for c in cells]
        )
        return [tables.keys[cell] for cell, p in zip(cells, adjusted, strict=True) if p < _UNLIKE]

    def check(self, step: Step, assumption: Assumption, values: FloatArray) -> LeftOut:
        """Return the check of a step for the mean of class values."""
        key = (step, assumption, values.tobytes())
        if key not in self._checks:
            self._checks[key] = leave_out(self.tables, step, assumption, values)
        return self._checks[key]

    @property
    def decisive_values(self) -> FloatArray:
        """The class values whose checks decide: those of the share of the second class."""
        return self.indicators[1]

    def allowance(self, cell: int, assumption: Assumption, values: FloatArray) -> float:
        """Return the variance to add for the steps that were checked for a cell."""
        steps = self.bases[cell].steps
        return math.fsum(self.check(step, assumption, values).allowance for step in steps)

    def _basis(self, cell: int) -> Basis:
        tables = self.tables
        if tables.has_enough[cell]:
            return Basis(Source.OWN_ROWS, Assumption.CALIBRATION)
        steps = self._steps(cell)
        missing = self._unchecked(cell, steps)
        if self.assumption is not None:
            return self._requested(cell, steps, missing)
        if missing:
            return Basis(Source.NONE, why=missing)
        # Leaving out domains has more power to refuse an assumption than leaving out cells.
        decisive = steps[0]
        if self.is_checked(Step.DOMAINS):
            decisive = Step.DOMAINS
        allowances = {}
        remaining = []
        values = self.decisive_values
        for assumption in self._possible(cell):
            checks = [self.check(step, assumption, values) for step in steps]
            allowance = math.fsum(check.allowance for check in checks)
            if math.isnan(allowance):
                continue  # no labelled cell could be predicted under this assumption
            allowances[assumption] = allowance
            if self.check(decisive, assumption, values).pvalue >= REFUSED:
                remaining.append(assumption)
        if len(remaining) == 2:
            return Basis(Source.UNDECIDED, None, steps)
        bounds = allowances
        if remaining:
            # A check cannot refuse an assumption whose estimates are imprecise. So the assumption
            # that remains must also have the smaller bound in the check that refused the other.
            bounds = {one: self.check(decisive, one, values).allowance for one in allowances}
        chosen = min(bounds, key=bounds.__getitem__)
        return Basis(self._source(cell, chosen), chosen, steps)

    def _requested(self, cell: int, steps: tuple[Step, ...], missing: str) -> Basis:
        """Return the basis of a cell for which the assumption was requested."""
        remark = ""
        if missing:
            remark = f"{self.assumption} is assumed as requested; not checked"
        if self.assumption is Assumption.CALIBRATION:
            if missing:
                steps = ()
            return Basis(self._source(cell, self.assumption), self.assumption, steps, remark)
        if Assumption.SHIFT in self._possible(cell):
            # Like a single estimate, the count from one labelled set takes the assumption as true.
            return Basis(self._source(cell, Assumption.SHIFT), Assumption.SHIFT, (), remark)
        reason = "the scores do not separate the classes"
        if cell in self.shifts:
            reason = misfit(float(self.fits[cell]))
        return Basis(Source.NONE, why=reason)

    def _possible(self, cell: int) -> list[Assumption]:
        """Return the assumptions that the scores of a cell do not exclude."""
        possible = [Assumption.CALIBRATION]
        is_wanted = self.tables.n_classes == 2 or self.assumption is Assumption.SHIFT
        if is_wanted and cell in self.shifts and not self.fits[cell] < REFUSED:
            possible.append(Assumption.SHIFT)
        return possible

    # -- steps and their checks -------------------------------------------------------------------

    def _source(self, cell: int, assumption: Assumption) -> Source:
        """Return the labelled rows that an assumption uses for a cell without enough rows."""
        tables = self.tables
        near = tables.n_labelled[tables.other_periods(cell)].sum() >= ENOUGH
        if assumption is Assumption.SHIFT:
            near = tables.has_own_bins(cell)
        if near and tables.has_periods:
            return Source.OTHER_PERIODS
        return Source.OTHER_DOMAINS

    def _steps(self, cell: int) -> tuple[Step, ...]:
        """Return how a cell differs from the labelled rows from which its number would come."""
        tables = self.tables
        if self._source(cell, Assumption.CALIBRATION) is Source.OTHER_PERIODS:
            return (Step.PERIODS,)
        in_period = tables.n_labelled[tables.periods == tables.periods[cell]].sum()
        if tables.has_periods and in_period < ENOUGH:
            return (Step.DOMAINS, Step.PERIODS)
        return (Step.DOMAINS,)

    def is_checked(self, step: Step) -> bool:
        """Return whether there are enough labelled cells to check a step."""
        tables = self.tables
        if step is Step.DOMAINS:
            return len(np.unique(tables.domains[tables.has_enough])) >= _LEAST_DOMAINS
        n_periods = len(np.unique(tables.periods[tables.has_enough]))
        return n_periods >= _LEAST_PERIODS and tables.has_enough.sum() >= _LEAST_CELLS

    def _unchecked(self, cell: int, steps: tuple[Step, ...]) -> str:
        """Return the reason why a step was not checked; empty if all were checked."""
        unchecked = [step for step in steps if not self.is_checked(step)]
        if not unchecked:
            return ""
        tables = self.tables
        if tables.is_unplaced:
            return (
                f"no labelled rows have values of {' and '.join(tables.columns)}; pass "
                "calibration_by="
            )
        n_labelled = float(tables.n_labelled[cell])
        needed = self._rows_needed(cell, self.calibrated(cell, self.indicators[-1]))
        present = "no labelled rows"
        more = ""
        if n_labelled:
            noun = "row" if n_labelled == 1 else "rows"
            present = f"only {significant(n_labelled)} labelled {noun}"
            more = "more "
        return (
            f"{present}; {self._missing_check(unchecked[0])}; label "
            f"{significant(ENOUGH - n_labelled)} {more}rows of this cell for a number, or about "
            f"{significant(needed, 2)} for ±{short_percent(self.half_width)}"
        )

    def _missing_check(self, step: Step) -> str:
        """Return which labelled cells are missing to check a step."""
        tables = self.tables
        n_cells = int(tables.has_enough.sum())
        if n_cells < _LEAST_CELLS:
            cells = "cell has" if n_cells == 1 else "cells have"
            return (
                f"only {n_cells} {cells} {ENOUGH} labelled rows, so nothing checks a number from "
                "other cells"
            )
        column = tables.columns[-1]
        values = tables.periods
        if step is Step.DOMAINS:
            column = " and ".join(tables.columns[:-1]) or column
            values = tables.domains
        labelled = np.unique(values[tables.has_enough])
        noun = "value" if len(labelled) == 1 else "values"
        names = ""
        if len(labelled) == 1 and step is Step.PERIODS:
            period = tables.keys[int(np.flatnonzero(tables.has_enough)[0])][-1]
            names = f" ({period})"
        return (
            f"cells with {ENOUGH} labelled rows have only {in_words(len(labelled))} {noun} of "
            f"{column}{names}, so nothing shows how much other values differ"
        )

    # -- numbers ----------------------------------------------------------------------------------

    @cached_property
    def shifts(self) -> dict[int, ShiftEstimate]:
        """The estimates by shift, from the rows of a cell's domain or from all labelled rows.

        There is none if a class has no labelled rows, or if the scores do not separate the classes.
        """
        tables = self.tables
        shifts = {}
        for cell in np.flatnonzero(tables.n).tolist():
            counts = tables.total.T
            target = tables.targets[cell]
            if tables.has_own_bins(cell):
                counts, target = tables.own_counts(cell)
            shift = shift_estimate(counts, target)
            if shift is not None:
                shifts[cell] = shift
        return shifts

    @cached_property
    def fits(self) -> FloatArray:
        """The p-value of shift in each cell, adjusted for the number of cells by Holm's method."""
        return holm(self.fit_pvalues)

    @cached_property
    def fit_pvalues(self) -> FloatArray:
        """The p-value of shift in each cell; NaN if it cannot be tested."""
        pvalues = np.full(len(self.tables.keys), math.nan)
        for cell, shift in self.shifts.items():
            pvalues[cell] = shift.fit_pvalue
        return pvalues

    @cached_property
    def indicators(self) -> FloatArray:
        """The class values whose mean is the share of each class, shape (K, K)."""
        return np.eye(self.tables.n_classes)

    def calibrated(self, cell: int, values: FloatArray) -> DifferenceEstimate:
        """Return the mean of class values in a cell by calibration."""
        key = (cell, values.tobytes())
        if key not in self._calibrated:
            self._calibrated[key] = self._calibrate(cell, values)
        return self._calibrated[key]

    def _calibrate(self, cell: int, values: FloatArray) -> DifferenceEstimate:
        tables = self.tables
        source = None
        if tables.has_enough[cell]:
            source = tables.counts[cell]
        elif self._source(cell, Assumption.CALIBRATION) is Source.OTHER_PERIODS:
            source = tables.counts[tables.other_periods(cell)].sum(axis=0)
        return difference_estimate(tables.total, tables.targets[cell], values, source)

    def share(
        self, cell: int, k: int, assumption: Assumption, own: bool, allowance: float = 0.0
    ) -> ClassShare:
        """Return the share of class k in a cell under an assumption."""
        if assumption is Assumption.SHIFT:
            if cell not in self.shifts:
                return _NOTHING
            return self.shifts[cell].share(k, own, allowance, self.confidence_level)
        estimate = self.calibrated(cell, self.indicators[k])
        ends = share_interval(estimate, own, allowance, self.confidence_level)
        return ClassShare(possible_share(estimate.value), *ends)

    def _stated(self, cell: int, k: int, own: bool) -> ClassShare:
        """Return the share that the rule states, or the range of both assumptions."""
        basis = self.bases[cell]
        values = self.indicators[k]
        if basis.source is Source.NONE:
            return _NOTHING
        shares = [
            self.share(cell, k, assumption, own, self.allowance(cell, assumption, values))
            for assumption in Assumption
            if basis.assumption in (assumption, None)
        ]
        if len(shares) == 1:
            return shares[0]
        low = min(share.low for share in shares)
        return ClassShare(math.nan, low, max(share.high for share in shares))

    def _rows_needed(self, cell: int, estimate: DifferenceEstimate) -> float:
        own_rows = float(self.tables.n_labelled[cell])
        return rows_needed(
            estimate.label_variance, self.half_width, own_rows, self.confidence_level
        )

    def _cell_share(self, cell: int, k: int) -> CellShare:
        tables = self.tables
        estimate = self.calibrated(cell, self.indicators[k])
        shares = {
            assumption: self.share(cell, k, assumption, own=False) for assumption in Assumption
        }
        basis = self.bases[cell]
        reasons = []
        if basis.why:
            reasons.append(basis.why)
        if basis.source is Source.UNDECIDED:
            by_shift = shares[Assumption.SHIFT].value
            by_calibration = shares[Assumption.CALIBRATION].value
            rows = rows_to_tell(estimate.label_variance, by_shift - by_calibration)
            advice = f"about {significant(rows, 2)} labelled rows of this cell show which"
            if rows > _MOST_TO_TELL:
                advice = "the difference is too small to show which"
            reasons.append(
                f"{short_percent(by_shift)} if classes look the same, "
                f"{short_percent(by_calibration)} if scores mean the same; {advice}"
            )
        if tables.n[cell] < _FEW_ROWS:
            noun = "row" if tables.n[cell] == 1 else "rows"
            reasons.append(f"only {significant(tables.n[cell])} {noun}: read the total")
        own_classes = np.count_nonzero(tables.counts[cell].sum(axis=0))
        if basis.source is Source.OWN_ROWS and own_classes == 1:
            reasons.append(
                f"all {significant(tables.n_labelled[cell])} labelled rows belong to one class"
            )
        return CellShare(
            key=tables.keys[cell],
            k=k,
            n=float(tables.n[cell]),
            labelled=float(tables.n_labelled[cell]),
            share=self._stated(cell, k, own=False),
            own_share=self._stated(cell, k, own=True),
            basis=basis,
            shift=shares[Assumption.SHIFT],
            calibration=shares[Assumption.CALIBRATION],
            fit_pvalue=float(self.fit_pvalues[cell]),
            rows_needed=self._rows_needed(cell, estimate),
            why="; ".join(reasons),
        )


def _two_samples(first: FloatArray, second: FloatArray) -> float:
    """Return the p-value of the chi-square test that two samples of bins are alike."""
    both = first + second
    share = first.sum() / both.sum()
    used = both > 0
    if np.count_nonzero(used) == 1:
        return 1.0  # in a single bin, rounding must not make a difference
    spread = share * (1 - share) * both[used]
    statistic = float(((first - share * both)[used] ** 2 / spread).sum())
    return float(chdtrc(np.count_nonzero(used) - 1, statistic))
