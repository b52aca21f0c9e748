"""Net benefit of acting on rows whose score is at least a threshold.

The source is Vickers and Elkin (2006). At the threshold t, a hit is worth 1 and a false alarm costs
the odds t / (1 - t). A mismatch, which is a positive row predicted as a wrong class of the positive
group, is worth 0. Intervals are multinomial profile-likelihood intervals for the mean of the values
1, 0 and minus the odds. The simultaneous band for all thresholds is computed from the quantile of
the largest of several correlated normal errors instead.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from cmtrack.digits import significant
from cmtrack.grouping import Label
from cmtrack.metrics.costs import profiles_of_means
from cmtrack.metrics.intervals import normal_quantile
from cmtrack.metrics.roc import ACCEPTED_NEGATIVE, ACCEPTED_POSITIVE, ScoreTable, frame_of
from cmtrack.statistics.design import Design, cluster_degrees, effective_number, few_clusters
from cmtrack.statistics.grid import grid_edges
from cmtrack.statistics.inputs import FloatArray, IntArray

if TYPE_CHECKING:
    import pandas as pd

DRAWS = 10_000
"""Number of draws of the largest correlated error. With this number, the error of its 95% quantile
is about .02.
"""
_SEED = 16
_DIGITS = 12
"""Number of digits to which a threshold is rounded, which is the same as for the scores of the
positive group.
"""
_RARE = 0.1
"""If the prevalence is lower than this, the usual thresholds end below 1."""

RowsByCell: TypeAlias = tuple[Design, IntArray]
"""The design of the rows, and the cell of each row, shape (n,). There is one cell for each channel
and score, which makes 4 U cells.
"""


@dataclass(frozen=True, eq=False)
class NetBenefit:
    """Net benefit per row at each threshold: the hits minus the false alarms times the odds.

    Attributes
    ----------
    thresholds : ndarray of shape (T,)
        A row is predicted positive if its score is at least the threshold. If scores are counted on
        a grid, each requested threshold is replaced by the nearest edge of the grid.
    value : ndarray of shape (T,)
        ``TP/n - FP/n * t/(1 - t)``.
    all : ndarray of shape (T,)
        Net benefit if every row is predicted positive. If no row is predicted positive, the net
        benefit is 0.
    low, high : ndarray of shape (T,)
        Limits of the confidence interval for each single value.
    band_low, band_high : ndarray of shape (T,)
        Limits of the simultaneous band for the whole curve.
    prevalence : float
        Share of positive rows.
    confidence_level : float
    positive : label
    reason : str
        The reason why intervals are missing (NaN). It is empty if intervals are available.

    Examples
    --------
    >>> from cmtrack import evaluate
    >>> evaluation = evaluate([0, 0, 1, 1] * 20, y_prob=[0.1, 0.6, 0.4, 0.9] * 20)
    >>> curve = evaluation.net_benefit([0.2, 0.5])
    >>> curve.value.round(4).tolist(), curve.avoided.round(4).tolist()
    ([0.4375, 0.0], [0.25, 0.0])
    """

    thresholds: FloatArray
    value: FloatArray
    all: FloatArray
    low: FloatArray
    high: FloatArray
    band_low: FloatArray
    band_high: FloatArray
    prevalence: float
    confidence_level: float = 0.95
    positive: Label = None
    reason: str = ""

    @property
    def odds(self) -> FloatArray:
        """Cost of a false alarm relative to the value of a hit, ``t / (1 - t)``, shape (T,)."""
        return self.thresholds / (1 - self.thresholds)

    @property
    def standardized(self) -> FloatArray:
        """Net benefit divided by the prevalence, which is its largest possible value.

        It is NaN if no row is positive.
        """
        return self.value / (self.prevalence or math.nan)

    @property
    def avoided(self) -> FloatArray:
        """False alarms per row that the score avoids, compared with accepting all rows."""
        return (self.value - self.all) / self.odds

    def to_frame(self) -> pd.DataFrame:
        """Return one row per threshold."""
        return frame_of(
            self,
            (
                "thresholds",
                "value",
                "low",
                "high",
                "band_low",
                "band_high",
                "all",
                "standardized",
                "avoided",
            ),
        )

    def __repr__(self) -> str:
        t = self.thresholds
        n_better = int((self.value > np.maximum(self.all, 0)).sum())
        return (
            f"NetBenefit({len(t)} thresholds from {significant(t.min())} to "
            f"{significant(t.max())}, {n_better} of them above calling all "
            "and calling none positive)"
        )


def check_thresholds(thresholds: npt.ArrayLike) -> FloatArray:
    """Check that thresholds are between 0 and 1, and round them in the same way as scores."""
    checked: FloatArray = np.asarray(thresholds, dtype=np.float64).round(_DIGITS)
    if checked.ndim != 1 or not len(checked):
        raise ValueError(f"thresholds must have the shape (n_thresholds,), got {checked.shape}")
    outside = checked[~((checked > 0) & (checked < 1))]
    if len(outside):
        raise ValueError(f"thresholds of a net benefit must be between 0 and 1, got {outside[0]:g}")
    return checked


def usual_thresholds(prevalence: float) -> FloatArray:
    """Return 99 thresholds up to .99, or up to about ten times the prevalence if it is small."""
    top = 1.0
    if 0 < prevalence < _RARE:
        step = 10.0 ** math.floor(math.log10(10 * prevalence))
        top = min(1.0, step * math.ceil(10 * prevalence / step - 1e-9))
    spaced: FloatArray = (np.arange(1, 100) * (top / 100)).astype(np.float64)
    return spaced.round(_DIGITS)


def net_benefit(
    table: ScoreTable,
    thresholds: npt.ArrayLike | None = None,
    level: float = 0.95,
    positive: Label = None,
    rows: RowsByCell | None = None,
    reason: str = "",
) -> NetBenefit:
    """Return the decision curve for counted scores.

    Parameters
    ----------
    table : ScoreTable
        Counted scores. They must be probabilities, because the cost of a false alarm follows from
        the threshold.
    thresholds : array_like of shape (T,), optional
        By default :func:`usual_thresholds`.
    level : float
        Confidence level of the intervals and of the band.
    positive : label
    rows : (design, cells), optional
        The rows, if they are in clusters. Intervals are then Wald intervals that are computed from
        sums by cluster.
    reason : str
        The reason why intervals cannot be computed. It is empty if they can be computed.
    """
    total = table.total
    prevalence = float(table.sides[0]) / total
    t = usual_thresholds(prevalence) if thresholds is None else check_thresholds(thresholds)
    if not table.scores.exact:
        t = _nearest_edges(t)
    odds = t / (1 - t)
    hits, alarms = _called(table.weight, table.scores.values, t)
    value = (hits - odds * alarms) / total
    accepted = table.channels[ACCEPTED_POSITIVE].sum()
    call_all = (accepted - odds * table.sides[1]) / total
    ends = np.full((4, len(t)), math.nan)
    if rows is not None:
        ends = _by_clusters(table, t, value, level, rows)
    elif not reason:
        support = np.column_stack((-odds, np.zeros(len(t)), np.ones(len(t))))
        weights = np.column_stack((alarms, total - hits - alarms, hits))
        counts = weights * (table.effective(None) / total)
        alone = profiles_of_means(support, counts, normal_quantile(level))
        squared_hits, squared_alarms = _called(table.squares, table.scores.values, t)
        squared_total = float(table.squares.sum())
        spread = _covariance(squared_hits, squared_alarms, squared_total, t, value)
        reach = _reach(spread, level)
        ends = np.stack((*alone, *profiles_of_means(support, counts, reach)))
    low, high, band_low, band_high = ends
    return NetBenefit(
        t, value, call_all, low, high, band_low, band_high, prevalence, level, positive, reason
    )


def _nearest_edges(thresholds: FloatArray) -> FloatArray:
    edges = grid_edges()
    next_edge = np.searchsorted(edges, thresholds).clip(1, len(edges) - 1)
    below = edges[next_edge - 1]
    above = edges[next_edge]
    return np.where(thresholds - below <= above - thresholds, below, above)


def _called(
    weight: FloatArray, values: FloatArray, thresholds: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Count accepted positives and negatives with scores at or above each threshold, both (T,)."""
    channels = weight.reshape(4, -1)
    first = np.searchsorted(values, thresholds)

    def sums_from(side: FloatArray) -> FloatArray:
        # No row is predicted positive at a threshold above all scores.
        return np.append(np.cumsum(side[::-1])[::-1], 0.0)[first]

    return sums_from(channels[ACCEPTED_POSITIVE]), sums_from(
        channels[ACCEPTED_NEGATIVE:].sum(axis=0)
    )


def _covariance(
    hits: FloatArray, alarms: FloatArray, total: float, t: FloatArray, value: FloatArray
) -> FloatArray:
    """Return n^2 times the covariance of the net benefits, shape (T, T).

    ``hits``, ``alarms``, ``total``: sums of the squared weights of the hits, of the false alarms
        and of all rows.
    """
    odds = t / (1 - t)
    places = np.arange(len(t))
    # Rows that are predicted positive at the higher of two thresholds are also predicted positive
    # at the lower threshold.
    higher = np.where(np.greater.outer(t, t), places[:, None], places)
    gains = hits - odds * alarms
    joint = hits[higher] + np.outer(odds, odds) * alarms[higher]
    return joint - np.outer(gains, value) - np.outer(value, gains) + total * np.outer(value, value)


def _reach(spread: FloatArray, level: float, degrees: float = math.inf) -> float:
    """Return the quantile of the largest of several correlated errors.

    The errors are normal, or have Student's distribution if ``degrees`` is finite.
    """
    alone = normal_quantile(level, degrees)
    deviation = np.sqrt(np.maximum(np.diag(spread), 0.0))
    varies = deviation > 1e-9 * max(1.0, float(deviation.max(initial=0.0)))
    if not varies.any():
        return alone
    correlation = spread[np.ix_(varies, varies)] / np.outer(deviation[varies], deviation[varies])
    # Neighbouring thresholds may be perfectly correlated. A little independent noise makes the
    # matrix positive definite.
    root = np.linalg.cholesky((1 - 1e-9) * correlation + 1e-9 * np.eye(len(correlation)))
    rng = np.random.default_rng(_SEED)
    drawn = np.abs(rng.standard_normal((DRAWS, len(root))) @ root.T).max(axis=1)
    if math.isfinite(degrees):
        drawn = drawn / np.sqrt(rng.chisquare(degrees, DRAWS) / degrees)
    return max(alone, float(np.quantile(drawn, level)))


def _by_clusters(
    table: ScoreTable, t: FloatArray, value: FloatArray, level: float, rows: RowsByCell
) -> FloatArray:
    """Compute Wald intervals and a band from the sums for each cluster, shape (4, T)."""
    design, cell = rows
    odds = t / (1 - t)
    columns = []
    for threshold, price, mean in zip(t, odds, value, strict=True):
        worth = np.array([[1.0], [0.0], [-price], [-price]])
        influence = worth * (table.scores.values >= threshold) - mean
        columns.append(design.by_cluster(influence.ravel()[cell]))
    sums = np.column_stack(columns)
    spread = sums.T @ sums
    degrees = cluster_degrees(float(effective_number(sums).min()), design.n_units)
    variance = np.maximum(np.diag(spread), 0.0) * few_clusters(design.n_units)
    error = np.sqrt(variance) / table.total
    ends = []
    for quantile in (normal_quantile(level, degrees), _reach(spread, level, degrees)):
        ends.append(np.maximum(value - quantile * error, -odds))
        ends.append(np.minimum(value + quantile * error, 1.0))
    return np.stack(ends)
