"""Repeated runs: models over seeds, folds or data sets, ranked as models."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cmtrack.comparison.criterion import Criterion
from cmtrack.comparison.gates import Gate, GateResult
from cmtrack.comparison.ranking import Candidate, StoppedRun
from cmtrack.comparison.repeated import RepeatedResult, analyse
from cmtrack.comparison.repetitions import Blocks, by_block, names_of_models, natural_order
from cmtrack.comparison.shortlist import logged_distance
from cmtrack.comparison.tie_breakers import Decision, TieBreaker, decide
from cmtrack.metrics.catalog import lookup
from cmtrack.metrics.influence import covariance
from cmtrack.statistics.inputs import FloatArray
from cmtrack.tracking.runs import TrackedRun


@dataclass(frozen=True, eq=False)
class RankedModel:
    """A model and its standing over the blocks.

    Attributes
    ----------
    name : str
    runs : tuple of Candidate
        One a block, the best first.
    rank : int
    mean, sd : float
        Over its blocks, in the metric's unit.
    difference, difference_low, difference_high : float
        This model less the leader, in the metric's unit ("nearest zero": of the distances); of data sets the median
        difference where the method gives that. The interval is for this pair alone.
    pvalue, p_holm : float
        That there is no difference; adjusted over all pairs of models.
    worse, equivalent, better : float
        Probability that it is practically worse than the leader, as good, or better.
    average_rank : float
        Over data sets; NaN else.
    tied, chosen : bool
    gates : tuple of GateResult
        Of the means over the blocks.
    """

    name: str
    runs: tuple[Candidate, ...]
    rank: int
    mean: float
    sd: float
    difference: float
    difference_low: float
    difference_high: float
    pvalue: float
    p_holm: float
    worse: float
    equivalent: float
    better: float
    average_rank: float
    tied: bool
    chosen: bool = False
    gates: tuple[GateResult, ...] = ()

    @property
    def run_id(self) -> str:
        """Of the model's best run."""
        return self.runs[0].run_id


@dataclass(frozen=True, eq=False)
class RepeatedRanking:
    """Models over blocks.

    Attributes
    ----------
    models : tuple of RankedModel
        Best first.
    criterion : Criterion
    blocks : Blocks
    kind : "folds", "seeds" or "datasets"
    block_names : tuple of str, length N
    scores : ndarray of shape (N, k)
        Values of the metric by block and model (in the order of ``models``), NaN where there is none.
    result : RepeatedResult
        The tests; its models stand in its own order, and larger is better there.
    confidence_level : float
    decision : Decision
        What chose among the tied models.
    """

    models: tuple[RankedModel, ...]
    criterion: Criterion
    blocks: Blocks
    kind: str
    block_names: tuple[str, ...]
    scores: FloatArray
    result: RepeatedResult
    confidence_level: float
    decision: Decision

    @property
    def leader(self) -> RankedModel:
        """The model of the best mean (of data sets: average rank)."""
        return self.models[0]

    @property
    def chosen(self) -> RankedModel:
        """The model to take."""
        return next(model for model in self.models if model.chosen)

    @property
    def tied(self) -> tuple[RankedModel, ...]:
        """The models that cannot be told from the leader, which is among them."""
        return tuple(model for model in self.models if model.tied)


def rank_models(
    candidates: Sequence[Candidate],
    criterion: Criterion,
    blocks: Blocks,
    *,
    gates: Sequence[Gate] = (),
    tie_breakers: Sequence[TieBreaker] = (),
    confidence_level: float = 0.95,
) -> tuple[RepeatedRanking | None, tuple[StoppedRun, ...], tuple[str, ...]]:
    """Rank models by one metric over blocks.

    Returns
    -------
    (ranking, failed, notes)
        No ranking where no model passes the gates; the models that gates stopped; what a reader should know.

    Raises
    ------
    ValueError
        If the criterion is not a single metric, a run has no block, or no model has two of them.
    """
    if not criterion.single:
        raise ValueError(f"repeated runs are ranked by one metric, got {criterion}")
    names = names_of_models(candidates, blocks)
    table, notes = by_block(candidates, names, blocks)
    block_names = tuple(sorted({block for _, block in table}, key=natural_order))
    models = list(dict.fromkeys(model for model, _ in table))  # a run without a block, such as a parent's, is none
    if len(block_names) < 2 or all(sum(m == model for m, _ in table) < 2 for model in models):
        what = blocks.model or "all parameters but the block"
        raise ValueError(
            f"repeated runs need a model in two blocks or more, got {len(models)} models ({what}) in "
            f"{len(block_names)} blocks ({blocks.by}); model= names what tells the models apart"
        )
    runs = {m: [table[m, b] for b in block_names if (m, b) in table] for m in models}
    results = {m: tuple(_mean_gate(gate, runs[m]) for gate in gates) for m in models}
    failed = tuple(StoppedRun(TrackedRun("", m), results[m]) for m in models if not all(r.passed for r in results[m]))
    models = [m for m in models if all(r.passed for r in results[m])]
    if not models:
        return None, failed, notes
    scores = np.array([[_value(table.get((m, b)), criterion.metrics[0]) for m in models] for b in block_names])
    kind = blocks.kind_of([candidate for of_model in runs.values() for candidate in of_model])
    gain = -np.vectorize(lambda value: logged_distance(criterion.metrics[0], value))(scores)
    result = analyse(
        gain,
        models,
        kind=kind,  # type: ignore[arg-type]
        confidence_level=confidence_level,
        rope=blocks.rope,
        test_train_ratio=_ratio(blocks, len(block_names)) if kind == "folds" else None,
        test_errors=_test_errors(_complete(table, models, block_names), criterion.metrics[0])
        if kind == "seeds"
        else None,
    )
    standing = [
        _standing(place, column, result, runs, scores, criterion, results) for place, column in enumerate(result.order)
    ]
    tied = [model for model in standing if model.tied]
    decision = decide([(_typical(model), _mean_metrics(model)) for model in tied], tie_breakers)
    standing = [replace(model, chosen=True) if model is tied[decision.place] else model for model in standing]
    ranking = RepeatedRanking(
        tuple(standing),
        criterion,
        blocks,
        kind,
        block_names,
        scores[:, list(result.order)],
        result,
        confidence_level,
        decision,
    )
    return ranking, failed, (*notes, *result.notes)


def _standing(
    place: int,
    column: int,
    result: RepeatedResult,
    runs: Mapping[str, list[Candidate]],
    scores: FloatArray,
    criterion: Criterion,
    gates: Mapping[str, tuple[GateResult, ...]],
) -> RankedModel:
    name = result.names[column]
    values = scores[:, column][np.isfinite(scores[:, column])]
    gap = None if column == result.best else result[name]
    unit = 1.0 if criterion.direction == "higher" else -1.0
    ends = (math.nan, math.nan) if gap is None else tuple(sorted((unit * gap.low, unit * gap.high)))
    metric = criterion.metrics[0]
    best_first = sorted(runs[name], key=lambda c: logged_distance(metric, c.evaluation.metrics[metric]))
    return RankedModel(
        name=name,
        runs=tuple(best_first),
        rank=place + 1,
        mean=float(values.mean()) if len(values) else math.nan,
        sd=float(values.std(ddof=1)) if len(values) > 1 else math.nan,
        difference=0.0 if gap is None else unit * gap.difference,
        difference_low=ends[0],
        difference_high=ends[1],
        pvalue=math.nan if gap is None else gap.pvalue,
        p_holm=math.nan if gap is None else gap.adjusted_pvalue,
        worse=math.nan if gap is None else gap.worse,
        equivalent=math.nan if gap is None else gap.equivalent,
        better=math.nan if gap is None else gap.better,
        average_rank=math.nan if result.friedman is None else float(result.friedman.ranks[column]),
        tied=result.tied[column],
        gates=gates[name],
    )


def _value(candidate: Candidate | None, metric: str) -> float:
    return math.nan if candidate is None else candidate.evaluation.metrics.get(metric, math.nan)


def _mean_gate(gate: Gate, runs: Sequence[Candidate]) -> GateResult:
    """A gate on the mean over the blocks (of the value, or of the interval's end)."""
    single = [next(r for r in run.gates if r.gate == gate) for run in runs]
    reasons = [result.reason for result in single if result.reason]
    if reasons:
        return GateResult(gate, math.nan, False, f"{reasons[0]}, in {len(reasons)} of {len(runs)} blocks")
    mean = float(np.mean([result.value for result in single]))
    return GateResult(gate, mean, gate.keeps(mean), "")


def _ratio(blocks: Blocks, n_blocks: int) -> float:
    return blocks.test_train_ratio if blocks.test_train_ratio is not None else 1 / (n_blocks - 1)


def _complete(
    table: Mapping[tuple[str, str], Candidate], models: Sequence[str], block_names: Sequence[str]
) -> list[list[Candidate]]:
    """The runs of each model in the blocks that all models have."""
    whole = [b for b in block_names if all((m, b) in table for m in models)]
    return [[table[m, b] for b in whole] for m in models]


def _test_errors(models: Sequence[Sequence[Candidate]], metric: str) -> FloatArray:
    """Standard errors of the pairs' seed-averaged differences that come from the sampling of the test rows."""
    size, folded = len(models), lookup(metric).better == "nearest zero"
    means = []
    for runs in models:
        values = [run.evaluation.influence(metric) if run.evaluation.rows is not None else None for run in runs]
        if not values or any(value is None for value in values):
            return np.full((size, size), math.nan)
        signs = [-1.0 if folded and run.evaluation.metrics[metric] < 0 else 1.0 for run in runs]
        means.append(np.mean([s * v for s, v in zip(signs, values, strict=True) if v is not None], axis=0))
    rows = models[0][0].evaluation.rows
    assert rows is not None  # checked above
    found = covariance(np.column_stack(means), rows.weights, rows.clusters)
    variance = np.diag(found)
    return np.asarray(np.sqrt(np.maximum(variance[:, None] + variance[None, :] - 2 * found, 0)))


def _typical(model: RankedModel) -> TrackedRun:
    """A run that stands for a model: the first one's parameters, the mean of the logged metrics."""
    first = model.runs[0].run
    names = set.intersection(*(set(candidate.run.metrics) for candidate in model.runs))
    means = {name: float(np.mean([c.run.metrics[name] for c in model.runs])) for name in names}
    return replace(first, metrics=means)


def _mean_metrics(model: RankedModel) -> dict[str, float]:
    tables = [candidate.evaluation.metrics for candidate in model.runs]
    names = set.intersection(*map(set, tables))
    return {name: float(np.mean([table[name] for table in tables])) for name in names}
