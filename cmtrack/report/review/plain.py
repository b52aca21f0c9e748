"""A comparison as plain data, for machines."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from cmtrack.comparison.blocks import RankedModel, RepeatedRanking
from cmtrack.comparison.gates import GateResult
from cmtrack.comparison.ranking import RankedRun, Ranking
from cmtrack.comparison.result import Comparison
from cmtrack.comparison.run import Run
from cmtrack.comparison.tie_breakers import Decision
from cmtrack.grouping import Grouping
from cmtrack.report.review.standing import standing
from cmtrack.report.review.words import verdict
from cmtrack.schemas import REVIEW

_NUMBERS = (
    "rank", "value", "low", "high", "values", "difference", "difference_low", "difference_high", "pvalue", "p_holm",
    "p_max_t", "probability_best", "expected_rank", "rank_low", "rank_high", "p_set", "standard_error", "tied",
    "within_margin", "chosen",
)  # fmt: skip
_OF_MODELS = (
    "rank", "mean", "sd", "difference", "difference_low", "difference_high", "pvalue", "p_holm", "worse",
    "equivalent", "better", "average_rank", "standard_error", "tied", "within_margin", "chosen",
)  # fmt: skip


def to_dict(comparison: Comparison) -> dict[str, Any]:
    """Everything of a comparison that JSON can hold; NaN is None."""
    criterion, best = comparison.criterion, comparison.best
    data: dict[str, Any] = as_plain(
        {
            "schema": REVIEW.newest,
            "summary": verdict(comparison),
            "criterion": {
                "text": str(criterion),
                "metrics": criterion.metrics,
                "weights": criterion.weights,
                "pareto": criterion.pareto,
                "better": None if criterion.pareto else criterion.direction,
            },
            "confidence_level": comparison.confidence_level,
            "gates": [gate.text for gate in comparison.gates],
            "baseline": None if comparison.baseline is None else _run(comparison.baseline.run),
            "best": None if best is None else {"name": best.name, "run_id": best.run_id},
            "rankings": [_ranking(one) for one in comparison.rankings if isinstance(one, Ranking)],
            "repeated": _repeated(comparison.ranking) if isinstance(comparison.ranking, RepeatedRanking) else None,
            "stopped": [_run(stop.run) | {"gates": _gates(stop.gates)} for stop in comparison.failed],
            "left_out": [_run(left.run) | {"reason": left.reason} for left in comparison.left_out],
            "passed_over": [_run(run) for run in comparison.passed_over],
            "notes": comparison.notes,
            "how": comparison.how,
        }
    )
    return data


def as_plain(data: Any) -> Any:
    """Data that ``json.dumps(..., allow_nan=False)`` takes."""
    if data is None or isinstance(data, (bool, str)):
        return data
    if isinstance(data, (int, np.integer)):
        return int(data)
    if isinstance(data, (float, np.floating)):
        return float(data) if math.isfinite(data) else None
    if isinstance(data, np.ndarray):
        return as_plain(data.tolist())
    if isinstance(data, Mapping):
        return {str(name): as_plain(value) for name, value in data.items()}
    if isinstance(data, Grouping):
        return as_plain(data.to_dict())
    if isinstance(data, Run):
        return _run(data)
    if isinstance(data, Iterable) and not hasattr(data, "columns"):
        return [as_plain(value) for value in data]
    run_id = getattr(data, "run_id", None) or getattr(getattr(data, "info", None), "run_id", None)
    if hasattr(data, "columns") and "run_id" in data.columns:
        return [str(value) for value in data["run_id"]]
    return str(run_id or data) if isinstance(run_id, str) or not hasattr(data, "metrics") else type(data).__name__


def _run(run: Run) -> dict[str, Any]:
    return {"name": run.name, "run_id": run.run_id}


def _gates(results: Iterable[GateResult]) -> list[dict[str, Any]]:
    return [{"gate": r.gate.text, "value": r.value, "passed": r.passed, "reason": r.reason} for r in results]


def _decision(decision: Decision) -> dict[str, Any]:
    by = decision.by
    return {"by": None if by is None else str(by), "values": decision.values, "place": decision.place}


def _ranking(ranking: Ranking) -> dict[str, Any]:
    evaluation = ranking.evaluation
    return {
        "data": {
            "samples": evaluation.n_samples,
            "rows": evaluation.statistics.digest.rows,
            "labels": [str(label) for label in evaluation.labels],
            "labels_digest": evaluation.labels_digest,
            "grouping": None if evaluation.grouping is None else evaluation.grouping.to_dict(),
            "positive": None if evaluation.positive is None else str(evaluation.positive),
        },
        "paired": ranking.paired,
        "decides": ranking.chosen is not None,
        "runs": [_ranked(run, ranking) for run in ranking.runs],
        "rank_distribution": ranking.rank_distribution,
        "pairwise_pvalues": ranking.pvalues,
        "decision": _decision(ranking.decision),
        "margin": ranking.margin,
    }


def _ranked(run: RankedRun, ranking: Ranking) -> dict[str, Any]:
    own = {name: getattr(run, name) for name in _NUMBERS}
    more = {"status": standing(run, ranking), "unpaired": run.unpaired, "gates": _gates(run.gates)}
    return _run(run.run) | own | more | {"warnings": run.evaluation.warnings}


def _repeated(ranking: RepeatedRanking) -> dict[str, Any]:
    pairs = [
        {
            "first": ranking.result.names[pair.first],
            "second": ranking.result.names[pair.second],
            "pvalue": pair.difference.pvalue,
            "adjusted_pvalue": pair.adjusted_pvalue,
        }
        for pair in ranking.result.pairwise.pairs
    ]
    return {
        "kind": ranking.kind,
        "blocks": {field.name: getattr(ranking.blocks, field.name) for field in fields(ranking.blocks)},
        "block_names": ranking.block_names,
        "scores": ranking.scores,
        "models": [_model(model, ranking) for model in ranking.models],
        "pairwise": pairs,
        "decision": _decision(ranking.decision),
        "margin": ranking.margin,
        "notes": ranking.result.notes,
    }


def _model(model: RankedModel, ranking: RepeatedRanking) -> dict[str, Any]:
    own = {name: getattr(model, name) for name in _OF_MODELS}
    runs = [_run(candidate.run) for candidate in model.runs]
    return {"name": model.name, "status": standing(model, ranking), **own, "runs": runs, "gates": _gates(model.gates)}
