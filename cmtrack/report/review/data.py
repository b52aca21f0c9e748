"""A comparison as a table and as plain data: for notebooks, for machines, and for MLflow's views."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from cmtrack.comparison.blocks import RepeatedRanking
from cmtrack.comparison.ranking import Ranked, Ranking
from cmtrack.comparison.result import Comparison
from cmtrack.comparison.rule import Rule
from cmtrack.comparison.run import Run, run_id_of
from cmtrack.evaluation.gates import GateResult
from cmtrack.grouping import Costs, Grouping
from cmtrack.report.review.narrative import verdict
from cmtrack.report.review.phrases import LAST, asked, standing
from cmtrack.report.review.record import as_data, varying
from cmtrack.schemas import REVIEW

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = (
    "ranking",
    "rank",
    "name",
    "run_id",
    "status",
    "value",
    "low",
    "high",
    "adjusted_low",
    "adjusted_high",
    "difference",
    "difference_low",
    "difference_high",
    "pvalue",
    "p_holm",
    "p_max_t",
    "p_set",
    "probability_best",
    "expected_rank",
    "rank_low",
    "rank_high",
    "tied",
    "within_margin",
    "chosen",
    "paired",
    "reason",
)
MODEL_COLUMNS = (
    "rank",
    "name",
    "run_id",
    "status",
    "mean",
    "sd",
    "blocks",
    "difference",
    "difference_low",
    "difference_high",
    "pvalue",
    "p_holm",
    "tied",
    "within_margin",
    "chosen",
    "reason",
)
_WHOLE = ("ranking", "rank", "rank_low", "rank_high", "blocks")
_FLAGS = ("tied", "within_margin", "chosen", "paired")
_TEXTS = ("name", "run_id", "status", "reason")
_NUMBERS = (
    "run_id",
    "rank",
    "value",
    "low",
    "high",
    "adjusted_low",
    "adjusted_high",
    "values",
    "difference",
    "difference_low",
    "difference_high",
    "pvalue",
    "p_holm",
    "p_max_t",
    "probability_best",
    "expected_rank",
    "rank_low",
    "rank_high",
    "p_set",
    "standard_error",
    "tied",
    "within_margin",
    "chosen",
    "unpaired",
    "reason",
)
_OF_MODELS = (
    "rank",
    "mean",
    "sd",
    "difference",
    "difference_low",
    "difference_high",
    "pvalue",
    "p_holm",
    "standard_error",
    "tied",
    "within_margin",
    "chosen",
)


def to_frame(comparison: Comparison) -> pd.DataFrame:
    """One row per run: the ranked ones best first, then those stopped by a gate, then those left out.

    Of a criterion of several metrics each has a column of its own, by its name; so has each parameter in which the
    ranked runs differ, as ``params.<name>``. ``reason`` holds the gates that a run fails, why it is left out, or why
    its differences are unpaired.
    """
    from cmtrack._pandas import pd

    of_models = comparison.noun == "model"
    columns = list(MODEL_COLUMNS if of_models else COLUMNS)
    if not of_models and not comparison.criterion.single:
        place = columns.index("difference")
        columns[place:place] = comparison.criterion.metrics
    params = [] if of_models else varying([run.run for run in comparison.runs])
    frame = pd.DataFrame(
        list(_rows(comparison, params)), columns=columns + [f"params.{name}" for name in params]
    )
    kinds = dict.fromkeys(_WHOLE, "Int64") | dict.fromkeys(_FLAGS, "boolean")
    return frame.astype(
        {name: kinds.get(name, "float64") for name in columns if name not in _TEXTS}
    )


def _rows(comparison: Comparison, params: Sequence[str]) -> Iterator[dict[str, Any]]:
    for place, ranking in enumerate(comparison.rankings, 1):
        for entry in ranking.standings:
            yield _row(place, entry, ranking) | {
                f"params.{name}": entry.run.params.get(name) for name in params
            }
    for stop in comparison.failed:
        failing = "; ".join(str(result) for result in stop.gates if not result.passed)
        yield {
            "name": stop.name,
            "run_id": stop.run_id,
            "status": "stopped by a gate",
            "reason": failing,
        }
    for unranked in comparison.left_out:
        status = LAST if unranked.last else "left out"
        yield {
            "name": unranked.run.name,
            "run_id": unranked.run.run_id,
            "status": status,
            "reason": unranked.reason,
        }


def _row(place: int, entry: Ranked, ranking: Ranking) -> dict[str, Any]:
    """An entry in the columns of both kinds."""
    numbers = {
        name: getattr(entry, name) for name in (*COLUMNS, *MODEL_COLUMNS) if hasattr(entry, name)
    }
    metric = ranking.criterion.metrics[0]
    words = {
        "ranking": place,
        "status": standing(entry, ranking),
        "blocks": sum(
            math.isfinite(run.evaluation.metrics.get(metric, math.nan)) for run in entry.runs
        ),
        "paired": None
        if len(ranking.runs) == 1
        else not entry.unpaired,  # a run alone is paired with nothing
        "reason": entry.unpaired or entry.reason,
    }
    return numbers | entry.values | words


def to_dict(comparison: Comparison) -> dict[str, Any]:
    """Everything of a comparison that JSON can hold; NaN is None."""
    criterion, best = comparison.criterion, comparison.best
    looks, resolution = asked(comparison, "looks"), asked(comparison, "resolution")
    data: dict[str, Any] = as_plain(
        {
            "schema": REVIEW.newest,
            "summary": verdict(comparison),
            "criterion": {
                "text": str(criterion),
                "metrics": criterion.metrics,
                "pareto": criterion.pareto,
                "better": None if criterion.pareto else criterion.direction,
            },
            "confidence_level": comparison.confidence_level,
            "gates": [gate.text for gate in comparison.gates],
            "baseline": None if comparison.baseline is None else _run(comparison.baseline.run),
            "best": None if best is None else {"name": best.name, "run_id": best.run_id},
            "rankings": []
            if comparison.repeated
            else [_ranking(one) for one in comparison.rankings],
            "repeated": None if comparison.repeated is None else _repeated(comparison.repeated),
            "stopped": [
                _run(stop.run) | {"gates": _gates(stop.gates)} for stop in comparison.failed
            ],
            "left_out": [
                _run(one.run) | {"reason": one.reason, "last": one.last}
                for one in comparison.left_out
            ],
            "looks": None
            if looks is None
            else {n: v for n, v in asdict(looks).items() if n != "reviews"},  # no tags
            "resolution": None if resolution is None else resolution.to_dict(),
            "segments": [pair.to_dict() for pair in comparison.segments],
            "passed_over": [_run(run) for run in comparison.passed_over],
            "notes": comparison.notes,
            "record": as_data(comparison),
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
    if isinstance(data, (Costs, Grouping)):
        return as_plain(data.to_dict())
    if isinstance(data, Rule):
        return {"file": data.name, "sha256": data.sha256}
    if isinstance(data, Run):
        return _run(data)
    if isinstance(data, Iterable) and not hasattr(data, "columns"):
        return [as_plain(value) for value in data]
    if hasattr(data, "columns") and "run_id" in data.columns:
        return [str(value) for value in data["run_id"]]
    return run_id_of(data) or (type(data).__name__ if hasattr(data, "metrics") else str(data))


def _run(run: Run) -> dict[str, Any]:
    return {"name": run.name, "run_id": run.run_id}


def _gates(results: Iterable[GateResult]) -> list[dict[str, Any]]:
    return [
        {name: value for name, value in r.to_dict().items() if name != "bound"} for r in results
    ]


def _settled(ranking: Ranking) -> dict[str, Any]:
    """Decision, margin and constants, which rankings of both kinds have."""
    by = ranking.decision.by
    return {
        "decision": {
            "by": None if by is None else str(by),
            "values": ranking.decision.values,
            "place": ranking.decision.place,
        },
        "margin": ranking.margin,
        "constants": [constant.to_dict() for constant in ranking.constants],
    }


def _entry(entry: Ranked, ranking: Ranking, names: Sequence[str]) -> dict[str, Any]:
    """A run or a model as data, with the numbers of these names."""
    numbers = {name: getattr(entry, name) for name in names}
    return {
        "name": entry.name,
        "status": standing(entry, ranking),
        **numbers,
        "gates": _gates(entry.gates),
    }


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
        "runs": [
            _entry(run, ranking, _NUMBERS) | {"warnings": run.evaluation.warnings}
            for run in ranking.standings
        ],
        "rank_distribution": ranking.rank_distribution,
        "pairwise_pvalues": ranking.pvalues,
        "picked_from": ranking.picked_from,
    } | _settled(ranking)


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
        "blocks": {
            field.name: getattr(ranking.blocks, field.name) for field in fields(ranking.blocks)
        },
        "block_names": ranking.block_names,
        "scores": ranking.scores,
        "models": [
            _entry(model, ranking, _OF_MODELS) | {"runs": [_run(one.run) for one in model.runs]}
            for model in ranking.standings
        ],
        "pairwise": pairs,
        "notes": ranking.result.notes,
    } | _settled(ranking)
