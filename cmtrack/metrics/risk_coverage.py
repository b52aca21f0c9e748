"""Risk by coverage, which is the share of errors among the most confident predictions.

The curve shows what you gain if a person handles the least confident rows. Predictions are accepted
in descending order of confidence. If several predictions have equal confidence, their mean loss is
used for each of them. The area under the curve is the integral over the coverage from 0 to 1.
Geifman and El-Yaniv (2017) use the mean over the positions in a sorted list instead. This mean
depends on the order of rows with equal confidence, and it changes if all rows are repeated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cmtrack import notebook
from cmtrack.digits import short_percent, significant, significant_with_interval
from cmtrack.metrics.function import Function
from cmtrack.metrics.intervals import Interval, on_scale
from cmtrack.metrics.roc import ScoreTable, frame_of
from cmtrack.statistics.grid import grid_edges
from cmtrack.statistics.inputs import BoolArray, FloatArray

if TYPE_CHECKING:
    import pandas as pd


class Order:
    """Blocks of rows with equal confidence, in the order in which they are accepted.

    ``weight``, shape (U,): weight of each block, with the most confident block first.
    ``loss``, shape (U,): sum of the weighted losses in each block.
    """

    def __init__(self, weight: FloatArray, loss: FloatArray) -> None:
        self.total = float(weight.sum())
        self.coverage = np.cumsum(weight) / self.total
        self.lost = np.cumsum(loss) / self.total
        has_rows = weight > 0
        self.mean = np.divide(loss, weight, out=np.zeros(len(loss)), where=has_rows)
        before = np.append(0.0, self.coverage[:-1])
        width = weight / self.total
        # Within a block, the risk at the coverage c is (lost + mean (c - before)) / c. The integral
        # contains the logarithm of a ratio: the width of the block divided by the coverage before
        # the block. This ratio is infinite for the first block.
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(has_rows, width / before, 0.0)
            self._inner = np.where(ratio > 0, np.log1p(ratio) / ratio, 1.0)
            self._inner[np.isinf(ratio)] = 0.0
            self._steps = np.where(np.isfinite(ratio), np.log1p(ratio), 0.0)
            self.pull = np.where(has_rows, 1 - np.log(self.coverage) - self._inner, 0.0)
        self.area = float(loss @ self.pull) / self.total

    @property
    def risk(self) -> FloatArray:
        """Mean loss of the rows that are accepted up to and including each block, shape (U,)."""
        no_risk = np.zeros(len(self.lost))
        return np.divide(self.lost, self.coverage, out=no_risk, where=self.coverage > 0)

    @property
    def moved(self) -> FloatArray:
        """Influence of a row in each block on the area, minus the row's loss times :attr:`pull`."""
        later = self.mean * self._steps
        behind = np.cumsum(later[::-1])[::-1] - later
        return self.lost[-1] - self.area - behind - self.mean * (1 - self._inner)


def perfect_area(risk: float) -> float:
    """Return the area under the curve for losses of 0 and 1 if all errors came last."""
    return 1.0 if risk >= 1 else risk + (1 - risk) * math.log1p(-risk)


@dataclass(frozen=True, eq=False)
class RiskCoverage:
    """Risk of the accepted predictions as a function of the share of accepted predictions.

    Attributes
    ----------
    confidence : ndarray of shape (U,)
        Distinct confidences in descending order. If they are counted on a grid, these are the mean
        confidences in the cells.
    coverage : ndarray of shape (U,)
        Share of all rows whose confidence is at least this high.
    risk : ndarray of shape (U,)
        Mean loss of the rows whose confidence is at least this high. If rows are hits or errors,
        the mean loss is the share of errors.
    loss : ndarray of shape (U,)
        Mean loss of the rows with exactly this confidence.
    size : ndarray of shape (U,)
        Effective number of rows whose confidence is at least this high.
    aurc : float
        Area under risk by coverage.
    excess : float
        ``aurc`` minus the area for the same losses in perfect order.
    standard_error : float
        Standard error of ``aurc``. It is NaN if it is unknown.
    interval : (low, high) or None
        Interval of ``aurc``, on the log scale.

    Examples
    --------
    >>> from cmtrack import evaluate
    >>> curve = evaluate([0, 1, 1, 0], y_prob=[0.1, 0.9, 0.4, 0.3]).risk_coverage
    >>> curve.coverage.tolist(), curve.risk.tolist()
    ([0.5, 0.75, 1.0], [0.0, 0.0, 0.25])
    """

    confidence: FloatArray
    coverage: FloatArray
    risk: FloatArray
    loss: FloatArray
    size: FloatArray
    aurc: float
    excess: float
    standard_error: float
    interval: Interval | None = None

    @property
    def total_risk(self) -> float:
        """Mean loss over all rows."""
        return float(self.risk[-1])

    def risk_at(self, coverage: float) -> float:
        """Return the mean loss of the accepted rows if a given share of all rows is accepted.

        Raises
        ------
        ValueError
            If the share is not above 0 and at most 1.
        """
        if not 0 < coverage <= 1:
            raise ValueError(f"coverage must be above 0 and at most 1, got {coverage!r}")
        ends = np.append(0.0, self.coverage)
        lost = np.append(0.0, self.coverage * self.risk)
        return float(np.interp(coverage, ends, lost)) / coverage

    def coverage_at(self, risk: float) -> float:
        """Return the largest share of rows that can be accepted with at most this risk.

        The share is 0 if no row can be accepted.

        Raises
        ------
        ValueError
            If the risk is not a number.
        """
        if math.isnan(risk):
            raise ValueError(f"risk must be a number, got {risk!r}")
        # If the risk is 0, there is no tolerance for rounding, because even one error is too many.
        limit = risk * (1 + 1e-12) if risk > 0 else risk
        fits = np.flatnonzero(self.risk <= limit)
        last = int(fits[-1]) if len(fits) else -1
        if last == len(self.risk) - 1:
            return 1.0
        start = 0.0
        lost = 0.0
        if last >= 0:
            start = float(self.coverage[last])
            lost = start * float(self.risk[last])
        # In the next block, the curve rises above the limit, so the mean loss in this block is
        # above the limit.
        mean = float(self.loss[last + 1])
        return max(start, (start * mean - lost) / (mean - risk))

    def to_frame(self) -> pd.DataFrame:
        """Return one row per confidence."""
        return frame_of(self, ("confidence", "coverage", "risk"))

    def __repr__(self) -> str:
        return (
            f"RiskCoverage(aurc={significant(self.aurc)}, excess={significant(self.excess)}, "
            f"risk {significant(self.total_risk)} of all and {significant(self.risk_at(0.8))} of "
            f"the most confident 80%, {len(self.confidence)} confidences)"
        )


class Aurc(Function):
    """Area under the curve of risk by coverage, for hits and errors ranked by hit probability.

    The argument is a :class:`ScoreTable` with the channels hit, none, error, none.
    """

    def __call__(self, table: ScoreTable) -> float:
        return order_of(table).area

    def size(self, table: ScoreTable) -> float:
        """Return the effective number of rows, for intervals if the standard error is 0."""
        return table.effective(None)

    def influence(self, table: ScoreTable) -> FloatArray:
        """Return the influence by channel and score, shape (4 U,)."""
        order = order_of(table)
        # The confidence is descending in the order, but ascending in the table.
        hit = order.moved[::-1]
        miss = hit + order.pull[::-1]
        return np.concatenate((hit, hit, miss, miss))


class AurcExcess(Aurc):
    """Area under the curve of risk by coverage, minus the area if all errors came last."""

    def __call__(self, table: ScoreTable) -> float:
        return max(order_of(table).area - perfect_area(_risk(table)), 0.0)

    def influence(self, table: ScoreTable) -> FloatArray:
        """Return the influence by channel and score, shape (4 U,)."""
        risk = _risk(table)
        # If all rows are errors, every order is equally good.
        slope = math.log1p(-risk) if risk < 1 else 0.0
        of_hits = np.repeat([-risk, 1 - risk], 2 * len(table.scores.values))
        return super().influence(table) + slope * of_hits


AURC = Aurc()
EXCESS = AurcExcess()


def order_of(table: ScoreTable) -> Order:
    """Return the order in which hits and errors are accepted, by confidence."""
    hits, misses = table.by_side[:, ::-1]
    return Order(hits + misses, misses)


def _risk(table: ScoreTable) -> float:
    return float(table.sides[1]) / table.total


def risk_coverage_of(
    table: ScoreTable, level: float = 0.95, error: float | None = None
) -> RiskCoverage:
    """Return the curve of risk by coverage for hits and errors.

    ``table``: scores with the channels hit, none, error, none.
    ``error``: the standard error, if it is not the standard error for independent rows.
    """
    order = order_of(table)
    weight = table.by_score[::-1]
    squares = table.squares.reshape(4, -1).sum(axis=0)[::-1]
    has_rows = np.flatnonzero(weight > 0)
    size = np.cumsum(weight)[has_rows] ** 2 / np.cumsum(squares)[has_rows]
    if error is None:
        error = table.standard_error(AURC.influence(table))
    return RiskCoverage(
        table.scores.means[::-1][has_rows],
        order.coverage[has_rows],
        order.risk[has_rows],
        order.mean[has_rows],
        size,
        order.area,
        EXCESS(table),
        error,
        on_scale("log", order.area, error, level, (0.0, 1.0)),
    )


# -- handing rows to a person ----------------------------------------------------------------------


@dataclass(frozen=True)
class Rejection:
    """The outcome of handing the least confident rows to a person.

    Attributes
    ----------
    share : float
        The largest share of rows that may be handed over.
    accepted : float
        Share of the rows whose prediction is accepted. Rows with equal confidence are either all
        accepted or all handed over.
    threshold : float
        Predictions with at least this confidence are accepted.
    risk, low, high : float
        Share of errors among the accepted predictions, and the low and high limits of its Wilson
        interval. Unknown numbers are NaN.
    hits, misses : float
        Number of accepted predictions that are correct, and number of accepted predictions that are
        errors.
    rejected_hits, rejected_misses : float
        Number of correct predictions, and number of errors, among the rows that are handed over.
    reason : str
        The reason why there is no interval. It is empty if there is an interval.

    Examples
    --------
    >>> from cmtrack import evaluate
    >>> found = evaluate([0, 1, 1, 0] * 25, y_prob=[0.1, 0.9, 0.4, 0.3] * 25).reject(0.25)
    >>> found.accepted, found.risk, found.total_risk
    (0.75, 0.0, 0.25)
    """

    share: float
    accepted: float
    threshold: float
    risk: float
    low: float
    high: float
    hits: float
    misses: float
    rejected_hits: float
    rejected_misses: float
    reason: str = ""

    @property
    def total_risk(self) -> float:
        """Share of errors among all predictions."""
        wrong = self.misses + self.rejected_misses
        return wrong / (self.hits + self.rejected_hits + wrong)

    def __repr__(self) -> str:
        risk = significant_with_interval(self.risk, self.low, self.high)
        return f"Rejection(accepted {significant(self.accepted)}, risk {risk})"

    def _repr_html_(self) -> str:
        return notebook.view(notebook.sentence(self.sentence()))

    def sentence(self) -> str:
        """Return a sentence that describes the outcome."""
        rejected = self.rejected_hits + self.rejected_misses
        risk = short_percent(self.risk)
        if not math.isnan(self.low):
            risk += f" [{significant(self.low, 3, 2)}, {significant(self.high, 3, 2)}]"
        threshold = significant(self.threshold)
        if rejected:
            return (
                f"{short_percent(self.accepted)} of the answers are accepted, because their "
                f"confidence is at least {threshold}. {risk} of them are wrong, compared with "
                f"{short_percent(self.total_risk)} of all answers. "
                f"{short_percent(1 - self.accepted)} of the rows are handed over, and "
                f"{short_percent(self.rejected_misses / rejected)} of their answers are wrong."
            )
        if self.share == 0:
            return f"No row is handed over. {risk} of all answers are wrong."
        return (
            f"No row is handed over, because more than {short_percent(self.share)} of the rows "
            f"have the lowest confidence, {threshold}. {risk} of all answers are wrong."
        )


def reject(table: ScoreTable, share: float) -> tuple[Rejection, BoolArray]:
    """Select the least confident rows for a person, up to a given share of all rows.

    Parameters
    ----------
    table : ScoreTable
        Scores with the channels hit, none, error, none.
    share : float

    Returns
    -------
    rejection : Rejection
        The outcome, without an interval for the risk.
    accepted : ndarray of shape (U,), bool
        Mask of the confidences for which predictions are accepted, in the order of the table.
    """
    if not 0 <= share < 1:
        raise ValueError(f"the share that is handed over must be from 0 to below 1, got {share!r}")
    hits, misses = table.by_side
    answers = hits + misses
    up_to = np.cumsum(answers) / table.total
    first = int(np.flatnonzero((up_to > share * (1 + 1e-12)) & (answers > 0))[0])
    accepted = np.arange(len(answers)) >= first
    threshold = float(table.scores.values[first])
    if not table.scores.exact:
        threshold = float(grid_edges()[first - 1]) if first else 0.0
    accepted_hits = float(hits[accepted].sum())
    accepted_misses = float(misses[accepted].sum())
    n_accepted = accepted_hits + accepted_misses
    rejection = Rejection(
        share=share,
        accepted=n_accepted / table.total,
        threshold=threshold,
        risk=accepted_misses / n_accepted,
        low=math.nan,
        high=math.nan,
        hits=accepted_hits,
        misses=accepted_misses,
        rejected_hits=float(hits[~accepted].sum()),
        rejected_misses=float(misses[~accepted].sum()),
    )
    return rejection, accepted
