"""Conversion of a comparison into a frame and into plain data, for notebooks and programs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from cmtrack.comparison.blocks import RepeatedRanking
from cmtrack.comparison.criterion import Criterion
from cmtrack.comparison.planning import Looks
from cmtrack.comparison.ranking import Ranked, Ranking
from cmtrack.comparison.result import Comparison
from cmtrack.comparison.rule import Rule
from cmtrack.comparison.run import Run, run_id_of
from cmtrack.evaluation.gates import GateResult
from cmtrack.grouping import Costs, Grouping
from cmtrack.report.review.columns import Column, columns_of
from cmtrack.report.review.narrative import verdict
from cmtrack.report.review.phrases import LAST
from cmtrack.report.review.record import as_data, varying
from cmtrack.report.review.review import Review
from cmtrack.schemas import REVIEW

if TYPE_CHECKING:
    import pandas as pd

_FIRST_IN_FILES = {"name": -3, "status": -2, "run_id": -1}
"""The first keys in the data of a run; all other keys follow in the order of the columns."""


def to_frame(comparison: Comparison) -> pd.DataFrame:
    """Return a frame with a row for each run, in which the ranked runs come first.

    If the criterion consists of several metrics, the frame contains a column for each metric. The
    frame also contains a column ``params.<name>`` for each parameter in which the ranked runs
    differ. The column ``reason`` lists the gates that a run fails, or states the reason why the run
    is not ranked or why its differences are not paired.
    """
    from cmtrack._pandas import pd

    columns = [column for column in columns_of(comparison) if column.frame]
    types = {column.key: column.dtype for column in columns if not column.is_text}
    params = []
    names = [column.key for column in columns]
    if comparison.noun == "run":
        params = varying([run.run for run in comparison.runs])
        names.insert(0, "ranking")
        types["ranking"] = "Int64"
    rows = list(_rows(comparison, columns, params))
    frame = pd.DataFrame(rows, columns=names + [f"params.{name}" for name in params])
    return frame.astype(types)


def _rows(
    comparison: Comparison, columns: Sequence[Column], params: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """Yield the rows of the frame: ranked runs, then all other runs."""
    for number, ranking in enumerate(comparison.rankings, 1):
        for entry in ranking.standings:
            row = {column.key: column.value_of(entry, ranking) for column in columns}
            row["ranking"] = number
            yield row | {f"params.{name}": entry.run.params.get(name) for name in params}
    for stop in comparison.failed:
        failing = "; ".join(str(result) for result in stop.gates if not result.passed)
        yield _unranked_row(stop.run, "stopped by a gate", failing)
    for unranked in comparison.left_out:
        status = LAST if unranked.last else "left out"
        yield _unranked_row(unranked.run, status, unranked.reason)


def _unranked_row(run: Run, status: str, reason: str) -> dict[str, Any]:
    return {"name": run.name, "run_id": run.run_id, "status": status, "reason": reason}


def to_dict(comparison: Comparison) -> dict[str, Any]:
    """Return a comparison as data for JSON, with None instead of NaN."""
    review = Review(comparison)
    baseline = comparison.baseline
    best = comparison.best
    resolution = review.resolution
    columns = [column for column in review.columns if column.json]
    columns.sort(key=lambda column: _FIRST_IN_FILES.get(column.key, 0))
    data: dict[str, Any] = as_plain(
        {
            "schema": REVIEW.newest,
            "summary": verdict(review),
            "criterion": _criterion(comparison.criterion),
            "confidence_level": comparison.confidence_level,
            "gates": [gate.text for gate in comparison.gates],
            "baseline": None if baseline is None else _run(baseline.run),
            "best": None if best is None else _run(best),
            **_rankings(comparison, columns),
            "stopped": [
                _run(stop.run) | {"gates": _gates(stop.gates)} for stop in comparison.failed
            ],
            "left_out": [
                _run(unranked.run) | {"reason": unranked.reason, "last": unranked.last}
                for unranked in comparison.left_out
            ],
            "looks": _looks(review.looks),
            "resolution": None if resolution is None else resolution.to_dict(),
            "segments": [pair.to_dict() for pair in comparison.segments],
            "passed_over": [_run(run) for run in comparison.passed_over],
            "notes": comparison.notes,
            "record": as_data(review),
            "how": comparison.how,
        }
    )
    return data


def _criterion(criterion: Criterion) -> dict[str, Any]:
    """Return the data of a criterion; a Pareto front has no direction."""
    return {
        "text": str(criterion),
        "metrics": criterion.metrics,
        "pareto": criterion.pareto,
        "better": None if criterion.pareto else criterion.direction,
    }


def _rankings(comparison: Comparison, columns: Sequence[Column]) -> dict[str, Any]:
    """Return the data of the rankings of runs, or of the ranking of models over repeated runs."""
    if comparison.repeated is not None:
        return {"rankings": [], "repeated": _repeated(comparison.repeated, columns)}
    rankings = [_ranking(ranking, columns) for ranking in comparison.rankings]
    return {"rankings": rankings, "repeated": None}


def _looks(looks: Looks | None) -> dict[str, Any] | None:
    """Return how many runs were evaluated on the same rows, without the tags that list them."""
    if looks is None:
        return None
    data = asdict(looks)
    del data["reviews"]
    return data


def as_plain(data: Any) -> Any:
    """Return data that ``json.dumps(..., allow_nan=False)`` accepts.

    The order of the checks matters, because a boolean is also an integer, and mappings, groupings
    and texts are also iterable.
    """
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
    if hasattr(data, "columns"):
        return _name_of(data)
    if isinstance(data, Iterable):
        return [as_plain(value) for value in data]
    return _name_of(data)


def _name_of(data: Any) -> list[str] | str:
    """Return a name for an object that JSON cannot store, such as run ids or a type."""
    if hasattr(data, "columns") and "run_id" in data.columns:
        return [str(run_id) for run_id in data["run_id"]]
    run_id = run_id_of(data)
    if run_id:
        return run_id
    # The text of an evaluation would be a page of numbers.
    return type(data).__name__ if hasattr(data, "metrics") else str(data)


def _run(run: Run | Ranked) -> dict[str, Any]:
    return {"name": run.name, "run_id": run.run_id}


def _gates(results: Iterable[GateResult]) -> list[dict[str, Any]]:
    """Return the results of gates without the bounds, which are part of the gates' texts."""
    gates = [result.to_dict() for result in results]
    for gate in gates:
        del gate["bound"]
    return gates


def _settled(ranking: Ranking) -> dict[str, Any]:
    """Return the data that both kinds of rankings share: decision, margin and constant answers."""
    decision = ranking.decision
    return {
        "decision": {
            "by": None if decision.by is None else str(decision.by),
            "values": decision.values,
            "place": decision.place,
        },
        "margin": ranking.margin,
        "constants": [constant.to_dict() for constant in ranking.constants],
    }


def _entry(entry: Ranked, ranking: Ranking, columns: Sequence[Column]) -> dict[str, Any]:
    """Return the data of a ranked run or model."""
    data = {column.key: column.value_of(entry, ranking) for column in columns}
    return data | {"gates": _gates(entry.gates)}


def _ranking(ranking: Ranking, columns: Sequence[Column]) -> dict[str, Any]:
    """Return the data of a ranking of runs."""
    evaluation = ranking.evaluation
    return {
        "data": {
            "samples": evaluation.n_samples,
            "rows": evaluation.statistics.digest.rows,
            "labels": [str(label) for label in evaluation.labels],
            "labels_digest": evaluation.labels_digest,
            "grouping": evaluation.grouping,
            "positive": None if evaluation.positive is None else str(evaluation.positive),
        },
        "paired": ranking.paired,
        "decides": ranking.chosen is not None,
        "runs": [
            _entry(run, ranking, columns) | {"warnings": run.evaluation.warnings}
            for run in ranking.standings
        ],
        "rank_distribution": ranking.rank_distribution,
        "pairwise_pvalues": ranking.pvalues,
        "picked_from": ranking.picked_from,
        **_settled(ranking),
    }


def _repeated(ranking: RepeatedRanking, columns: Sequence[Column]) -> dict[str, Any]:
    """Return the data of a ranking of models over repeated runs."""
    result = ranking.result
    pairs = [
        {
            "first": result.names[pair.first],
            "second": result.names[pair.second],
            "pvalue": pair.difference.pvalue,
            "adjusted_pvalue": pair.adjusted_pvalue,
        }
        for pair in result.pairwise.pairs
    ]
    blocks = ranking.blocks
    models = []
    for model in ranking.standings:
        data = _entry(model, ranking, columns)
        data["runs"] = [_run(candidate.run) for candidate in model.runs]
        models.append(data)
    return {
        "kind": ranking.kind,
        "blocks": {field.name: getattr(blocks, field.name) for field in fields(blocks)},
        "block_names": ranking.block_names,
        "scores": ranking.scores,
        "models": models,
        "pairwise": pairs,
        "notes": result.notes,
        **_settled(ranking),
    }
