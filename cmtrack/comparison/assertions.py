"""Checks of the difference between a run and a baseline, for tests and pipelines."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cmtrack.comparison.differences import Difference, paired_differences
from cmtrack.comparison.ranking import Ranked
from cmtrack.evaluation.gates import Gate, GateResult, with_rows_more

if TYPE_CHECKING:
    from cmtrack.comparison.result import Comparison


@dataclass(frozen=True)
class DifferenceCheck:
    """Check of the difference between a run and a baseline in one metric.

    ``margin``: largest loss that is accepted; None if the run must be better.
    """

    run: Ranked
    baseline: Ranked
    metric: str
    margin: float | None
    difference: Difference
    result: GateResult


def check_difference(
    comparison: Comparison,
    baseline: str,
    *,
    margin: float | None,
    run: str | None = None,
    metric: str | None = None,
) -> DifferenceCheck:
    """Check whether a run is better than a baseline, or at most ``margin`` worse, like a gate does.

    :meth:`cmtrack.Comparison.assert_not_worse` describes the other arguments.
    """
    if comparison.repeated is not None:
        raise ValueError(f"runs can be checked against a baseline, but {comparison!r} ranks models")
    if margin is not None and not 0 <= margin < math.inf:
        raise ValueError(f"margin must be a number of at least 0, got {margin!r}")
    base = comparison[baseline]
    ranking = next(ranking for ranking in comparison.rankings if base in ranking.runs)
    others = {other.name: other for other in ranking.runs if other is not base}
    tested = next(iter(others.values()), base)
    if run is not None:
        tested = comparison[run]
    if tested.name not in others:
        raise ValueError(f"run must be one of {list(others)[:10]}, got {tested.name!r}")
    metrics = comparison.criterion.metrics
    if metric is not None:
        metrics = (metric,)
    if len(metrics) > 1:
        raise ValueError(f"give one metric, because the runs are ranked by {', '.join(metrics)}")
    name = metrics[0]
    gate = _gate_of(name, tested.evaluation.catalog.lookup(name).better, margin)
    evaluation = tested.evaluation
    difference = paired_differences(evaluation, base.evaluation, metrics=[name])[name]
    result = with_rows_more(
        gate.check(evaluation.metrics, evaluation.intervals, difference),
        difference.difference,
        difference.standard_error,
        evaluation.n_samples,
        evaluation.confidence_level,
    )
    return DifferenceCheck(tested, base, name, margin, difference, result)


def _gate_of(metric: str, better: str, margin: float | None) -> Gate:
    """Return the gate that a better run, or a run that is at most ``margin`` worse, passes."""
    bounds = {"higher": "low > 0", "lower": "high < 0"}
    if margin is not None:
        bounds = {"higher": f"low >= {-float(margin)}", "lower": f"high <= {float(margin)}"}
    if better not in bounds:
        raise ValueError(
            f"{metric} has no direction that is better: use gates on its .difference instead"
        )
    return Gate.parse(f"{metric}.difference.{bounds[better]}")
