"""Metrics of ordered classes, such as ratings, for the section ``ordinal/``.

The section needs the option ``ordered=True``, and is absent without it. The distance between two
classes is the number of places between them in the order of the labels. Quadratic and linear
kappa, which also depend on this distance, are in :mod:`cmtrack.metrics.multiclass`.

Sources: Baccianella, Esuli and Sebastiani (2009) for the mean absolute error, Kendall (1945) and
Agresti (2010, Analysis of Ordinal Categorical Data, chapter 7) for tau-b, and Epstein (1969) for
the ranked probability score.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cmtrack.metrics.cells import Table
from cmtrack.metrics.function import Function
from cmtrack.metrics.intervals import Interval, exact_ends, on_scale
from cmtrack.metrics.metric import Metric, Section
from cmtrack.metrics.multiclass import Share
from cmtrack.metrics.probability import Mean
from cmtrack.statistics.inputs import FloatArray


def _distance(table: Table) -> FloatArray:
    """Return the number of places between the actual and the predicted class of each cell."""
    return np.abs(table.cells.actual - table.cells.predicted).astype(np.float64)


def _is_near(table: Table) -> FloatArray:
    return (_distance(table) <= 1).astype(np.float64)


@dataclass(frozen=True)
class MeanDistance(Share):
    """The mean distance, whose interval is symmetric on a log scale."""

    scale = "log"

    def bracket(self, table: Table, level: float, wider: float, degrees: float) -> Interval | None:
        """Return the interval on the log scale, or the exact interval if there are no errors.

        A row adds at most K - 1, so K - 1 times the upper limit of the share of errors is an upper
        limit of the mean distance.
        """
        largest = table.cells.size - 1.0
        value = self(table)
        if value == 0:
            high = exact_ends(0, table.effective(None) / wider**2, level)[1]
            return 0.0, largest * float(high)
        psi = self.influence(table)
        error = table.standard_error(psi)
        evened = table.evened()
        if evened is not None:
            error = max(error, evened.standard_error(psi))
        return on_scale("log", value, wider * error, level, (0.0, largest), degrees)


@dataclass(frozen=True, eq=False)
class _Order:
    """Pairs of rows by the order of their actual and predicted classes, as shares of all pairs.

    ``balance``, shape (K, K): for a row in each cell, the share of rows that are concordant with it
        minus the share of rows that are discordant.
    ``difference``: the mean balance.
    ``actual``, ``predicted``, shape (K,): shares of the classes.
    ``untied_actual``, ``untied_predicted``: share of pairs whose classes differ.
    """

    balance: FloatArray
    difference: float
    actual: FloatArray
    predicted: FloatArray
    untied_actual: float
    untied_predicted: float

    @property
    def scale(self) -> float:
        """The largest possible difference, given the ties."""
        return math.sqrt(self.untied_actual) * math.sqrt(self.untied_predicted)


def _order(table: Table) -> _Order:
    shares = table.cells.argument() / table.cells.total
    size = len(shares)
    # Entry (i, j) of the padded sums is the share of rows below i and below j.
    sums = np.zeros((size + 1, size + 1))
    sums[1:, 1:] = shares.cumsum(axis=0).cumsum(axis=1)
    actual = shares.sum(axis=1)
    predicted = shares.sum(axis=0)
    before = sums[:-1, :-1]
    after = 1 - sums[1:, -1:] - sums[-1:, 1:] + sums[1:, 1:]
    above = sums[:-1, -1:] - sums[:-1, 1:]
    below = sums[-1:, :-1] - sums[1:, :-1]
    balance = before + after - above - below
    # These sums are 0 if all rows belong to one class, also after rounding.
    untied_actual = float(actual @ (actual.sum() - actual))
    untied_predicted = float(predicted @ (predicted.sum() - predicted))
    difference = float((shares * balance).sum())
    return _Order(balance, difference, actual, predicted, untied_actual, untied_predicted)


class KendallTauB(Function):
    """Kendall's rank correlation between the actual and the predicted classes, with ties."""

    def __call__(self, table: Table) -> float:
        order = table.once(_order)
        return order.difference / order.scale if order.scale > 0 else math.nan

    def influence(self, table: Table) -> FloatArray:
        """Return the influence per cell, shape (C,)."""
        order = table.once(_order)
        i = table.cells.actual
        j = table.cells.predicted
        if not order.scale > 0:
            return np.full(len(i), math.nan)
        gain = 2 * (order.balance[i, j] - order.difference) / order.scale
        ties = (order.actual[i] - order.actual @ order.actual) / order.untied_actual
        ties += (order.predicted[j] - order.predicted @ order.predicted) / order.untied_predicted
        return gain + self(table) * ties


FEWEST_FOR_RANKED = 100
"""Number of rows below which the interval of the ranked probability score is too narrow.

With 50 rows, 95% intervals contain the true value in 90% of cases.
"""

ORDINAL = Section(
    "ordinal",
    "Ordered classes",
    (
        Metric(
            "ordinal/mae",
            MeanDistance(_distance),
            of="ordered table",
            better="lower",
            interval="log",
            title="mean absolute error in places",
            brief="MAE",
            formula="mean of |i − j|, the places between actual and predicted class",
            source="Baccianella et al. (2009)",
        ),
        Metric(
            "ordinal/within_1",
            Share(_is_near),
            of="ordered table",
            interval="wilson",
            headline=False,
            title="share within one place",
            brief="within 1",
            formula="share of rows with |i − j| ≤ 1",
            source="Gaudette & Japkowicz (2009)",
        ),
        Metric(
            "ordinal/kendall_tau_b",
            KendallTauB(),
            of="ordered table",
            interval="atanh",
            headline=False,
            title="Kendall's tau-b",
            brief="tau-b",
            formula="(concordant − discordant pairs) / √(pairs untied in actual × in predicted)",
            source="Kendall (1945)",
            reason="all rows have the same actual class or the same predicted class",
            association=True,
        ),
        Metric(
            "ordinal/ranked_probability_score",
            Mean(),
            of="ranked losses",
            better="lower",
            low=0.0,
            high=1.0,
            headline=False,
            title="ranked probability score",
            brief="RPS",
            formula="mean of Σ (F_k − 1[actual ≤ k])² / (K − 1), F_k cumulative probability",
            source="Epstein (1969)",
        ),
    ),
)
