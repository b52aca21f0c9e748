"""Numbers that support decisions: costs, net benefit, and the risk of confident predictions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from cmtrack.evaluation.rows import step_called
from cmtrack.grouping import Label
from cmtrack.metrics.confidence import HitTable
from cmtrack.metrics.costs import CostAtShares, Priced
from cmtrack.metrics.intervals import size_of_share, wilson
from cmtrack.metrics.net_benefit import NetBenefit, RowsByCell, net_benefit
from cmtrack.metrics.risk_coverage import AURC, Rejection, RiskCoverage, reject, risk_coverage_of
from cmtrack.metrics.roc import ScoreTable
from cmtrack.statistics.design import cluster_degrees
from cmtrack.statistics.inputs import as_shares, shares_of
from cmtrack.statistics.predictions import Predictions

if TYPE_CHECKING:
    import pandas as pd

    from cmtrack.evaluation.result import Evaluation

_NO_ROWS = "the evaluated rows belong to groups, which are unknown if the rows are missing"


def decision_curve(evaluation: Evaluation, thresholds: npt.ArrayLike | None) -> NetBenefit:
    """Return the net benefit of acting on the positive group's score at each threshold."""
    table = None if evaluation.statistics.ranking_only else evaluation._views.seen(ScoreTable)
    if table is None:
        raise ValueError(
            f"a net benefit needs probabilities of two groups or two classes, got {evaluation!r}"
        )
    rows = _clustered_rows(evaluation, table)
    return net_benefit(
        table,
        thresholds,
        evaluation.confidence_level,
        evaluation.positive,
        rows,
        _why_without_error(evaluation, rows),
    )


def costs_by_class(evaluation: Evaluation) -> pd.DataFrame:
    """Return the mean cost of each actual class (see :meth:`Evaluation.costs_by_class`)."""
    from cmtrack._pandas import pd

    priced = _priced(evaluation, "costs by class need costs")
    means, errors = priced.by_class()
    costs = (priced.counts * priced.costs).sum(axis=1)
    return pd.DataFrame(
        {
            "label": evaluation.labels,
            "support": priced.counts.sum(axis=1),
            "cost": means,
            "standard_error": errors,
            "part": costs / priced.total,
            "always": priced.constants,
        }
    )


def cost_at(
    evaluation: Evaluation, shares: Mapping[Label, float] | Sequence[float]
) -> CostAtShares:
    """Return the mean cost that would result if the actual classes had different shares."""
    priced = _priced(evaluation, "a cost at other shares needs costs")
    by_class = shares_of(as_shares(shares, "shares"), evaluation.labels, "shares")
    return priced.at_shares(np.array(by_class), evaluation.confidence_level)


def _priced(evaluation: Evaluation, need: str) -> Priced:
    priced = evaluation._views.seen(Priced)
    if priced is None:
        raise ValueError(f"{need}, got none; set them with Evaluation.price(costs)")
    return priced


def risk_coverage(evaluation: Evaluation, step: str | None = None) -> RiskCoverage | None:
    """Return the error rate among the most confident predictions, for classes or a step."""
    table = _hits(evaluation, step)
    if table is None:
        return None
    rows = _clustered_rows(evaluation, table)
    error = math.nan if _why_without_error(evaluation, rows) else None
    if rows is not None:
        design, cell = rows
        error = design.standard_error(AURC.influence(table)[cell])
    return risk_coverage_of(table, evaluation.confidence_level, error)


def rejection(evaluation: Evaluation, share: float, step: str | None) -> Rejection:
    """Return the results of rejecting a share of the rows and leaving them to human review."""
    table = _hits(evaluation, step)
    if table is None:
        raise ValueError(
            "rejecting rows needs the probability that each prediction is correct, got "
            f"{evaluation!r}"
        )
    outcome, accepted = reject(table, share)
    rows = _clustered_rows(evaluation, table)
    reason = _why_without_error(evaluation, rows)
    if reason:
        return replace(outcome, reason=reason)
    degrees = math.inf
    inside = np.tile(accepted, 4).astype(np.float64)
    wrong = np.repeat([0.0, 1.0], 2 * len(accepted))
    influence = inside * (wrong - outcome.risk)
    kish = table.effective(inside)
    size = kish
    accepted_rows = outcome.hits + outcome.misses
    if rows is not None:
        design, cell = rows
        by_row = influence[cell]
        error = design.standard_error(by_row) * design.total / accepted_rows
        size = min(size_of_share(outcome.risk, error, design.n_units), kish)
        degrees = cluster_degrees(design.effective_clusters(by_row), design.n_units)
    elif table.fractional:
        error = math.sqrt(float(table.squares @ influence**2)) / accepted_rows
        size = size_of_share(outcome.risk, error, kish, kish)
    ends = wilson(outcome.risk, size, evaluation.confidence_level, degrees)
    low, high = ends or (math.nan, math.nan)
    return replace(outcome, low=low, high=high)


def _hits(evaluation: Evaluation, step: str | None) -> HitTable | None:
    """Return the counts of correct and wrong predictions by the probability of being correct."""
    accept = None if step is None else step_called(evaluation, step).accept
    return HitTable.of_hits(evaluation.statistics, evaluation.confidence_level, accept)


def _why_without_error(evaluation: Evaluation, rows: RowsByCell | None) -> str:
    """Return the reason why standard errors are missing; empty if they are available."""
    return _NO_ROWS if rows is None and evaluation.cluster_errors is not None else ""


def _clustered_rows(evaluation: Evaluation, samples: ScoreTable) -> RowsByCell | None:
    """Return the clustered design and each row's cell; None if the rows are not in clusters."""
    rows = evaluation.rows
    if not isinstance(rows, Predictions) or rows.source is None or not rows.design.has_clusters:
        return None
    return rows.design, evaluation._influence.locate(samples)[1]
