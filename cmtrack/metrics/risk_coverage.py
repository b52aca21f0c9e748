"""Risk by coverage: the share of wrong answers among the most confident ones.

It shows the effect of handing over the rest. Answers are accepted in the order of falling
confidence; answers of one confidence enter evenly, with their mean loss. The area under the curve
is the integral over the coverage from 0 to 1, not the mean over the places of a sorted list
(Geifman and El-Yaniv 2017), which depends on the order of ties and changes where rows are repeated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cmtrack.digits import short_percent, significant
from cmtrack.metrics.function import Function
from cmtrack.metrics.intervals import Interval, on_scale
from cmtrack.metrics.roc import ScoreTable
from cmtrack.statistics.grid import grid_edges
from cmtrack.statistics.inputs import BoolArray, FloatArray

if TYPE_CHECKING:
    import pandas as pd


class Order:
    """Blocks of equal confidence in order of acceptance, and the area under their curve.

    ``weight``, shape (U,): of each block, the most confident one first.
    ``loss``, shape (U,): summed weighted loss of each block.
    """

    def __init__(self, weight: FloatArray, loss: FloatArray) -> None:
        self.total = float(weight.sum())
        self.coverage = np.cumsum(weight) / self.total
        self.lost = np.cumsum(loss) / self.total
        self.mean = np.divide(loss, weight, out=np.zeros(len(loss)), where=weight > 0)
        before = np.append(0.0, self.coverage[:-1])
        width = weight / self.total
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(width > 0, width / before, 0.0)  # infinite in the first block
            self._inner = np.where(ratio > 0, np.log1p(ratio) / ratio, 1.0)
            self._inner[np.isinf(ratio)] = 0.0
            self._steps = np.where(np.isfinite(ratio), np.log1p(ratio), 0.0)
            self.pull = np.where(width > 0, 1 - np.log(self.coverage) - self._inner, 0.0)
        self.area = float(loss @ self.pull) / self.total

    @property
    def risk(self) -> FloatArray:
        """Mean loss of the accepted rows up to each block, shape (U,)."""
        return np.divide(
            self.lost, self.coverage, out=np.zeros(len(self.lost)), where=self.coverage > 0
        )

    @property
    def moved(self) -> FloatArray:
        """Influence of a row in each block on the area (U,), without its loss times :attr:`pull`."""
        later = self.mean * self._steps
        behind = np.cumsum(later[::-1])[::-1] - later
        return np.asarray(self.lost[-1] - self.area - behind - self.mean * (1 - self._inner))


def perfect_area(risk: float) -> float:
    """Return the area of losses of 0 and 1 in perfect order: all misses last."""
    return 1.0 if risk >= 1 else risk + (1 - risk) * math.log1p(-risk)


@dataclass(frozen=True, eq=False)
class RiskCoverage:
    """Risk of the accepted answers by the share that is accepted, the most confident first.

    Attributes
    ----------
    confidence : ndarray of shape (U,)
        Distinct values in descending order; the means of cells where they are counted on a grid.
    coverage : ndarray of shape (U,)
        Share of all rows of at least that confidence.
    risk : ndarray of shape (U,)
        Mean loss of these rows; of hits and misses the share of misses.
    loss : ndarray of shape (U,)
        Mean loss of the rows of that confidence alone.
    size : ndarray of shape (U,)
        Effective number of the rows of at least that confidence.
    aurc : float
        Area under risk over coverage.
    excess : float
        ``aurc`` less that of the same losses in perfect order.
    standard_error : float
        Of ``aurc``; NaN where it is not known.
    interval : (low, high) or None
        Of ``aurc``, on the log scale.

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
        """Mean loss of all rows."""
        return float(self.risk[-1])

    def risk_at(self, coverage: float) -> float:
        """Return the mean loss if a share of all rows is accepted.

        Raises
        ------
        ValueError
            If the share does not lie above 0 and up to 1.
        """
        if not 0 < coverage <= 1:
            raise ValueError(f"coverage must lie above 0 and be at most 1, got {coverage!r}")
        ends, lost = (np.append(0.0, part) for part in (self.coverage, self.coverage * self.risk))
        return float(np.interp(coverage, ends, lost)) / coverage

    def coverage_at(self, risk: float) -> float:
        """Return the largest share that can be accepted at a risk of at most this; 0 if none can.

        Raises
        ------
        ValueError
            If the risk is not a number.
        """
        if math.isnan(risk):
            raise ValueError(f"risk must be a number, got {risk!r}")
        fits = np.flatnonzero(self.risk <= risk * (1 + 1e-12) if risk > 0 else self.risk <= risk)
        last = int(fits[-1]) if len(fits) else -1
        if last == len(self.risk) - 1:
            return 1.0
        start = float(self.coverage[last]) if last >= 0 else 0.0
        lost = start * float(self.risk[last]) if last >= 0 else 0.0
        # it is above the risk: the block brings the curve over it
        mean = float(self.loss[last + 1])
        return max(start, (start * mean - lost) / (mean - risk))

    def to_frame(self) -> pd.DataFrame:
        """Return one row per confidence."""
        from cmtrack._pandas import pd

        return pd.DataFrame(
            {name: getattr(self, name) for name in ("confidence", "coverage", "risk")}
        )

    def __repr__(self) -> str:
        return (
            f"RiskCoverage(aurc={significant(self.aurc)}, excess={significant(self.excess)}, risk {significant(self.total_risk)} of all and "
            f"{significant(self.risk_at(0.8))} of the surest 80 %, {len(self.confidence)} confidences)"
        )


class Aurc(Function):
    """Area under risk over coverage, of hits and misses by the probability of a hit.

    Its argument is a :class:`ScoreTable` of the channels hit, none, miss, none.
    """

    def __call__(self, table: ScoreTable) -> float:
        return order_of(table).area

    def size(self, table: ScoreTable) -> float:
        """Return the effective number of rows, which an error of 0 rests on."""
        return table.effective(None)

    def influence(self, table: ScoreTable) -> FloatArray:
        """Return the influence (4 U,)."""
        order = order_of(table)
        hit, miss = (part[::-1] for part in (order.moved, order.moved + order.pull))
        return np.concatenate((hit, hit, miss, miss))


class AurcExcess(Aurc):
    """Area under risk over coverage, less that of as many misses that all come last."""

    def __call__(self, table: ScoreTable) -> float:
        return max(order_of(table).area - perfect_area(_risk(table)), 0.0)

    def influence(self, table: ScoreTable) -> FloatArray:
        """Return the influence (4 U,)."""
        risk = _risk(table)
        slope = math.log1p(-risk) if risk < 1 else 0.0  # all are misses: no order is better
        of_hits = np.repeat([-risk, 1 - risk], 2 * len(table.scores.values))
        return np.asarray(super().influence(table) + slope * of_hits)


AURC, EXCESS = Aurc(), AurcExcess()


def order_of(table: ScoreTable) -> Order:
    """Return the order of hits and misses."""
    counts = table.weight.reshape(2, 2, -1).sum(axis=1)[:, ::-1]
    return Order(counts.sum(axis=0), counts[1])


def _risk(table: ScoreTable) -> float:
    return float(table.sides[1]) / table.total


def risk_coverage_of(
    table: ScoreTable, level: float = 0.95, error: float | None = None
) -> RiskCoverage:
    """Return the curve of hits and misses.

    ``table``: of the channels hit, none, miss, none.
    ``error``: the standard error, where it is not that of independent rows.
    """
    order = order_of(table)
    held = np.flatnonzero(table.weight.reshape(4, -1).sum(axis=0)[::-1] > 0)
    weight, squares = (
        np.cumsum(part.reshape(4, -1).sum(axis=0)[::-1])[held]
        for part in (table.weight, table.squares)
    )
    error = table.standard_error(AURC.influence(table)) if error is None else error
    return RiskCoverage(
        table.scores.means[::-1][held],
        order.coverage[held],
        order.risk[held],
        order.mean[held],
        weight**2 / squares,
        order.area,
        EXCESS(table),
        error,
        on_scale("log", order.area, error, level, (0.0, 1.0)),
    )


# -- handing rows to a person --------------------------------------------------------------------------


@dataclass(frozen=True)
class Rejection:
    """Outcome of handing the least confident rows to a person.

    Attributes
    ----------
    share : float
        The largest share of the rows that may be handed over, as it was asked for.
    accepted : float
        Share of the rows whose answer is accepted: rows of one confidence stay together.
    threshold : float
        Answers of at least this confidence are accepted.
    risk, low, high : float
        Share of the accepted answers that are wrong, with its Wilson interval; NaN where it is not
        known.
    hits, misses : float
        Accepted answers that are right and wrong.
    rejected_hits, rejected_misses : float
        Answers among the rows that are handed over.
    reason : str
        Why there is no interval; empty where there is.

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
        """Share of all answers that are wrong."""
        wrong = self.misses + self.rejected_misses
        return wrong / (self.hits + self.rejected_hits + wrong)

    def sentence(self) -> str:
        """Return the outcome in words."""
        given = self.rejected_hits + self.rejected_misses
        ends = (
            ""
            if math.isnan(self.low)
            else f" [{significant(self.low, 3, 2)}, {significant(self.high, 3, 2)}]"
        )
        if not given:
            tied = f"the rows of the lowest confidence, {significant(self.threshold)}, are more than {short_percent(self.share)}"
            why = "" if self.share == 0 else f": {tied}, and are not told apart"
            return f"No row is handed over{why}. {short_percent(self.risk)}{ends} of all answers are wrong."
        return (
            f"{short_percent(self.accepted)} of the answers are accepted, those with a confidence of at least "
            f"{significant(self.threshold)}: {short_percent(self.risk)}{ends} of them are wrong, of all answers "
            f"{short_percent(self.total_risk)}. {short_percent(1 - self.accepted)} of the rows are handed over; of their "
            f"answers {short_percent(self.rejected_misses / given)} are wrong."
        )


def reject(table: ScoreTable, share: float) -> tuple[Rejection, BoolArray]:
    """Split off the rows of least confidence, at most a share of all.

    Parameters
    ----------
    table : ScoreTable
        Of the channels hit, none, miss, none.
    share : float

    Returns
    -------
    rejection : Rejection
        Without an interval.
    accepted : ndarray of shape (U,), bool
        The confidences, in the order of the table, whose answers are accepted.
    """
    if not 0 <= share < 1:
        raise ValueError(f"the share that is handed over must lie from 0 to below 1, got {share!r}")
    hits, misses = table.weight.reshape(2, 2, -1).sum(axis=1)
    given = np.cumsum(hits + misses) / table.total
    accepted = given > share * (1 + 1e-12)
    first = int(np.flatnonzero(accepted & (hits + misses > 0))[0])
    accepted = np.arange(len(given)) >= first
    threshold = float(table.scores.values[first])
    if not table.scores.exact:
        threshold = float(grid_edges()[first - 1]) if first else 0.0
    inside, wrong = float(hits[accepted].sum()), float(misses[accepted].sum())
    rejection = Rejection(
        share,
        (inside + wrong) / table.total,
        threshold,
        wrong / (inside + wrong),
        math.nan,
        math.nan,
        inside,
        wrong,
        float(hits[~accepted].sum()),
        float(misses[~accepted].sum()),
    )
    return rejection, accepted
