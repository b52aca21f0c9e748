"""Ranking of models whose runs are repeated over seeds or folds."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast

import numpy as np

from cmtrack.base import BaseEvaluation
from cmtrack.comparison.comparability import (
    Reason,
    Traits,
    design_of_rows,
    rows_by_digests,
    split,
    why_apart,
    why_unpaired,
)
from cmtrack.comparison.constant import ConstantAnswer, constant_answer, constant_evaluation
from cmtrack.comparison.criterion import Criterion, read_by
from cmtrack.comparison.ranking import Ranked, Ranking, decided, means
from cmtrack.comparison.repeated import BLOCK, Kind, RepeatedResult, analyse
from cmtrack.comparison.run import Candidate, Run, StoppedRun, source_of
from cmtrack.comparison.tie_breakers import TieBreaker
from cmtrack.evaluation import Evaluation
from cmtrack.evaluation.gates import Gate, GateResult
from cmtrack.metrics.intervals import holm
from cmtrack.names import some_of
from cmtrack.removed import INSTEAD, RemovedFeature, reason
from cmtrack.statistics.inputs import FloatArray

KINDS = ("auto", "folds", "seeds")
_DATA_SETS = 'compare(block_kind="datasets")'
_FOLD = re.compile(r"fold|split|cv", re.IGNORECASE)


@dataclass(frozen=True)
class Blocks:
    """Names that identify the block and the model of repeated runs, and the kind of repetition.

    ``by``: the parameter, tag or name of a run that identifies its block, such as
    ``"params.fold"``, ``"tags.seed"`` or ``"name"``.
    ``model``: the parameter, tag or name of a run that identifies its model. If ``model`` is None,
    all parameters except the block identify the model or, if no parameter differs between runs, the
    run's name identifies it.
    ``kind``: "auto", "folds" or "seeds".
    ``test_train_ratio``: number of test rows of a fold divided by its number of training rows. The
    default for J blocks is 1 / (J - 1), which is the ratio of a cross-validation with J folds.
    """

    by: str
    model: str | None = None
    kind: str = "auto"
    test_train_ratio: float | None = None

    def __post_init__(self) -> None:
        if self.kind == "datasets":
            raise RemovedFeature(reason(_DATA_SETS))
        if self.kind not in KINDS:
            raise ValueError(f"block_kind must be one of {list(KINDS)}, got {self.kind!r}")
        for option, name in (("block", self.by), ("model", self.model)):
            if name is not None and name != "name" and source_of(name) is None:
                forms = "'params.…', 'tags.…', 'metrics.…' or 'name'"
                raise ValueError(f"{option} must read {forms}, got {name!r}")

    def kind_of(self, evaluations: Mapping[str, BaseEvaluation]) -> str:
        """Return the kind of repetition, derived from the rows of each block's evaluation.

        If the user specified the kind, this method checks that the rows agree with it.

        Raises ValueError if only some blocks have the same rows, if the rows contradict the given
        kind, or if the blocks are neither seeds nor folds, such as several data sets.
        """
        sharing: dict[object, list[str]] = {}
        for block, evaluation in evaluations.items():
            sharing.setdefault(rows_by_digests(evaluation), []).append(block)
        all_same = len(sharing) == 1
        all_different = len(sharing) == len(evaluations)
        shown = "; ".join(f"{self.by} {some_of(blocks, 8)}" for blocks in sharing.values())
        same_digest_means_same_rows = self._digests_tell_rows(evaluations.values())
        if self.kind == "seeds" and not all_same:
            raise ValueError(
                "block_kind='seeds' needs the same rows in all blocks; these blocks have the "
                f"same rows: {shown}"
            )
        if self.kind == "folds" and not all_different and same_digest_means_same_rows:
            raise ValueError(
                "block_kind='folds' needs different rows in all blocks (row_ids= "
                "distinguishes rows that have the same labels); these blocks have the same "
                f"rows: {shown}"
            )
        if self.kind != "auto":
            return self.kind
        if all_different:
            return self._kind_of_separate_rows(list(evaluations.values()))
        in_order = all(evaluation.statistics.digest.ordered for evaluation in evaluations.values())
        if all_same and (same_digest_means_same_rows or in_order or not self._are_named_folds):
            return "seeds"
        if self._are_named_folds and not same_digest_means_same_rows:
            return "folds"
        raise ValueError(
            "either all blocks must have the same rows, as with seeds, or all blocks must "
            f"have different rows, as with folds; these blocks have the same rows: {shown}"
        )

    @property
    def _are_named_folds(self) -> bool:
        return _FOLD.search(self.by) is not None

    def _digests_tell_rows(self, evaluations: Iterable[BaseEvaluation]) -> bool:
        """Return whether equal digests guarantee that two evaluations contain the same rows.

        Equal digests are conclusive if all evaluations have row ids. If there are no ids, folds
        that are sorted by class may have the same labels in the same order although their rows
        differ. If the order of rows is unknown, the labels may also be equal although the rows
        differ.
        """
        for evaluation in evaluations:
            statistics = evaluation.statistics
            in_known_order = statistics.digest.ordered and not self._are_named_folds
            if statistics.row_ids is None and not in_known_order:
                return False
        return True

    def _kind_of_separate_rows(self, evaluations: list[BaseEvaluation]) -> str:
        """Return "folds" if the blocks are folds, given that no two blocks have the same rows."""
        if self._are_named_folds or _in_equal_parts(evaluations):
            return "folds"
        raise RemovedFeature(
            f"each block of {self.by} has different rows. Give block_kind='folds' if the blocks "
            "are folds of one data set. cmtrack 0.3 does not rank models over several data sets: "
            f"{INSTEAD[_DATA_SETS]}"
        )


@dataclass(frozen=True, eq=False, repr=False)
class RankedModel(Ranked):
    """A model and its rank over all blocks; see :class:`~cmtrack.comparison.ranking.Ranked`."""

    @property
    def mean(self) -> float:
        """Mean value of the metric over the blocks of the model."""
        return self.value


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class RepeatedRanking(Ranking):
    """A ranking of models over blocks.

    ``kind``: "folds" or "seeds".
    ``scores``, of shape (N, k): value of the metric for each block (row) and each model (column, in
    the order of ``models``); NaN if the value is missing.
    ``result``: the tests of the differences between models. The result lists the models in a
    different order than ``models``, and the signs of its values are chosen so that larger values
    are better.
    """

    noun: ClassVar[str] = "model"

    blocks: Blocks
    kind: Kind
    block_names: tuple[str, ...]
    scores: FloatArray
    result: RepeatedResult

    @property
    def models(self) -> tuple[RankedModel, ...]:
        """The models, best first."""
        return cast("tuple[RankedModel, ...]", self.runs)

    @property
    def over(self) -> str:
        """The number of blocks in words: "10 folds", "30 seeds"."""
        return f"{len(self.block_names)} {BLOCK[self.kind]}s"


def rank_models(
    candidates: Sequence[Candidate],
    criterion: Criterion,
    blocks: Blocks,
    *,
    gates: Sequence[Gate] = (),
    tie_breakers: Sequence[TieBreaker] = (),
    confidence_level: float = 0.95,
    margin: float | None = None,
) -> tuple[RepeatedRanking | None, tuple[StoppedRun, ...], tuple[str, ...]]:
    """Rank models by one metric over blocks.

    Returns a tuple (ranking, failed, notes). The ranking is None if no model passes the gates.
    ``failed`` contains the models that failed a gate, and ``notes`` are remarks for the reader.

    Raises ValueError if the criterion is not a single metric, if a run has no model name, or if no
    model has runs in two blocks.
    """
    if not criterion.single:
        raise ValueError(f"rank_by must be one metric for repeated runs, got {criterion}")
    names = _names_of_models(candidates, blocks)
    table, notes = _by_block(candidates, names, blocks)
    _check_alike(table, blocks, read_by(criterion, gates, tie_breakers))
    block_names = tuple(sorted({block for _, block in table}, key=_natural_order))
    models = _models(table, block_names, gates)
    if len(block_names) < 2 or all(len(model.by_block) < 2 for model in models):
        model_key = blocks.model or "all parameters but the block"
        raise ValueError(
            f"repeated runs must have a model in two blocks or more, got {len(models)} models "
            f"({model_key}) in {len(block_names)} blocks ({blocks.by}); use model= to name the "
            "parameter or tag that distinguishes the models"
        )
    failed = tuple(model.stopped() for model in models if not model.passed)
    models = [model for model in models if model.passed]
    if not models:
        return None, failed, notes
    metric = criterion.metrics[0]
    scores = np.array(
        [[_value(model.by_block.get(block), metric) for model in models] for block in block_names]
    )
    kind = cast("Kind", blocks.kind_of(_evaluations_by_block(models)))
    ratio = None
    if kind == "folds":
        ratio = blocks.test_train_ratio
        if ratio is None:
            ratio = 1 / (len(block_names) - 1)
    shared_blocks = [
        block for block in block_names if all(block in model.by_block for model in models)
    ]
    paired_runs = [[model.by_block[block] for block in shared_blocks] for model in models]
    result = analyse(
        -np.vectorize(criterion.distance_from_best)(scores),
        [model.name for model in models],
        kind=kind,
        confidence_level=confidence_level,
        test_train_ratio=ratio,
        test_errors=_errors_of_pairs(paired_runs, metric, ratio),
    )
    entries = [
        _ranked(rank, models[column], result, scores[:, column], criterion)
        for rank, column in enumerate(result.order, 1)
    ]
    standing, decision = decided(entries, criterion, tie_breakers, margin)
    runs_by_model = {model.name: model.runs for model in models}
    by_model = {entry.name: runs_by_model[entry.name] for entry in standing}
    ranking = RepeatedRanking(
        runs=standing,
        criterion=criterion,
        confidence_level=confidence_level,
        decision=decision,
        margin=margin,
        constants=_constant(by_model, criterion, result, ratio),
        blocks=blocks,
        kind=kind,
        block_names=block_names,
        scores=scores[:, list(result.order)],
        result=result,
    )
    return ranking, failed, (*notes, *result.notes)


@dataclass(frozen=True, eq=False)
class _Model:
    """A model with its runs, in the order of the blocks, and with its gate results."""

    name: str
    by_block: Mapping[str, Candidate]
    gates: tuple[GateResult, ...]

    @property
    def runs(self) -> list[Candidate]:
        return list(self.by_block.values())

    @property
    def passed(self) -> bool:
        return all(result.passed for result in self.gates)

    def stopped(self) -> StoppedRun:
        """Return the model as a stopped run in the experiment of the model's first run."""
        run = self.runs[0].run
        return StoppedRun(Run("", self.name, run.experiment_id, run.tracking_uri), self.gates)


def _models(
    table: Mapping[tuple[str, str], Candidate], block_names: Sequence[str], gates: Sequence[Gate]
) -> list[_Model]:
    """Return the models, sorted as in the table of runs by model and block."""
    models = []
    for name in dict.fromkeys(model for model, _ in table):
        by_block = {block: table[name, block] for block in block_names if (name, block) in table}
        results = tuple(_mean_gate(gate, list(by_block.values())) for gate in gates)
        models.append(_Model(name, by_block, results))
    return models


def _evaluations_by_block(models: Sequence[_Model]) -> dict[str, BaseEvaluation]:
    """Return one evaluation for each block, from the first model that has a run in the block."""
    evaluations: dict[str, BaseEvaluation] = {}
    for model in reversed(models):
        for block, run in model.by_block.items():
            evaluations[block] = run.evaluation
    return evaluations


def _constant(
    models: Mapping[str, Sequence[Candidate]],
    criterion: Criterion,
    result: RepeatedResult,
    ratio: float | None,
) -> tuple[ConstantAnswer, ...]:
    """Return the best constant answer over the blocks, and each model's gain over this answer.

    ``models``: maps the name of each model to the model's runs, one run for each block. The first
    entry of ``models`` is the leading model.
    """
    leader, runs = next(iter(models.items()))
    constant = _mean_constant(leader, runs, criterion.metrics[0])
    if constant is None:
        return ()
    has_value = constant.guessed or math.isfinite(constant.value)
    if constant.unbeatable or not has_value or len(runs) < 2:
        return (constant,)
    gaps = {}
    for name, model_runs in models.items():
        gaps[name] = _gap_from_constant(model_runs, criterion, constant, result, ratio)
    adjusted = holm([gap.pvalue for gap in gaps.values()])
    by_run = dict(zip(gaps, adjusted.tolist(), strict=True))
    alpha = 1 - constant.confidence_level
    ahead = [name for name, gap in gaps.items() if criterion.unit * gap.difference > 0]
    of_leader = vars(gaps[leader]) | {"pvalue": by_run[leader]}
    shown = tuple(name for name in ahead if by_run[name] <= alpha)
    return (replace(constant, **of_leader, by_run=by_run, shown=shown),)


def _mean_constant(leader: str, runs: Sequence[Candidate], metric: str) -> ConstantAnswer | None:
    """Return the best constant answer in the blocks of a model, with the answer's mean value.

    This function does not compare the answer with the model. If the best answers of the blocks
    differ, the most frequent answer is used in all blocks. The result is None if a block has no
    constant answer, or if the classes of the blocks differ.
    """
    answers = [constant_answer(run.evaluation, metric) for run in runs]
    present = [answer for answer in answers if answer is not None]
    if len(present) < len(runs) or len({run.evaluation.labels for run in runs}) > 1:
        return None
    classes = [constant.answer for constant in present]
    answer = max(classes, key=classes.count)
    answered = _answered(runs, metric, answer)
    if len(answered) < len(runs):
        return None
    values = np.array([_value(run, metric) for run in answered])
    reasons = [constant.reason for constant in present if constant.reason]
    return replace(
        present[0],
        answer=answer,
        value=float(values.mean()),
        reason=reasons[0] if reasons else "",
        run=leader,
        guessed=any(constant.guessed for constant in present),
        unbeatable=any(constant.unbeatable for constant in present),
        difference=math.nan,
        standard_error=math.nan,
        low=math.nan,
        high=math.nan,
        pvalue=math.nan,
        unpaired="",
        by_run={},
        shown=(),
    )


@dataclass(frozen=True)
class _Gap:
    """Mean difference between a model and the constant answer over the blocks."""

    difference: float
    standard_error: float = math.nan
    low: float = math.nan
    high: float = math.nan
    pvalue: float = math.nan


def _answered(runs: Sequence[Candidate], metric: str, answer: Any) -> list[Candidate]:
    """Evaluate the constant answer on the rows of each run that has single labels."""
    return [
        Candidate(run.run, constant_evaluation(run.evaluation, metric, answer))
        for run in runs
        if isinstance(run.evaluation, Evaluation)
    ]


def _gap_from_constant(
    runs: Sequence[Candidate],
    criterion: Criterion,
    constant: ConstantAnswer,
    result: RepeatedResult,
    ratio: float | None,
) -> _Gap:
    """Compute the gain of a model over the constant answer as if the answer were a second model."""
    metric = criterion.metrics[0]
    answered = _answered(runs, metric, constant.answer)
    model_values = np.array([_value(run, metric) for run in runs])
    if constant.guessed:
        constant_values = np.zeros(len(runs))
    else:
        constant_values = np.array([_value(run, metric) for run in answered])
    difference = float(np.nanmean(model_values - constant_values))
    if len(runs) < 2 or not np.isfinite(constant_values).all():
        return _Gap(difference)
    errors = _errors_of_pairs((runs, answered), metric, ratio)
    if result.kind == "seeds" and constant.guessed:
        # The model is compared with 0, which has no standard error.
        errors = np.full((2, 2), math.sqrt(_covariance_of_means((runs,), metric, None)[0, 0]))
    (gap,) = analyse(
        criterion.unit * np.column_stack((model_values, constant_values)),
        ("model", "constant"),
        kind=result.kind,
        confidence_level=result.confidence_level,
        test_train_ratio=ratio,
        test_errors=errors,
    ).differences
    # The analysis subtracts the better side from the other side. Here the gap must be the model's
    # value minus the constant's value.
    sign = criterion.unit if gap.name == "model" else -criterion.unit
    low, high = sorted((sign * gap.low, sign * gap.high))
    return _Gap(difference, gap.standard_error, low, high, gap.pvalue)


def _ranked(
    rank: int, model: _Model, result: RepeatedResult, scores: FloatArray, criterion: Criterion
) -> RankedModel:
    """Return a model with its rank.

    ``scores``: the model's value in each block; NaN if the model has no run in the block.
    """
    metric = criterion.metrics[0]
    best_first = sorted(
        model.runs, key=lambda run: criterion.distance_from_best(run.evaluation.metrics[metric])
    )
    gap_values: dict[str, Any] = {"difference": 0.0}
    column = result.names.index(model.name)
    if column != result.best:
        gap = result[model.name]
        unit = criterion.unit
        low, high = sorted((unit * gap.joint_low, unit * gap.joint_high))
        widest = criterion.catalog.lookup(metric).widest
        gap_values = {
            "pvalue": gap.pvalue,
            "difference": unit * gap.difference,
            "difference_low": max(low, -widest),
            "difference_high": min(high, widest),
            "p_holm": gap.adjusted_pvalue,
            "p_set": gap.adjusted_pvalue,
            "standard_error": gap.standard_error,
        }
    logged_means = means([run.run.metrics for run in best_first])
    values = scores[np.isfinite(scores)]
    return RankedModel(
        replace(best_first[0].run, name=model.name, metrics=logged_means),
        best_first[0].evaluation,
        model.gates,
        rank=rank,
        value=float(values.mean()) if len(values) else math.nan,
        sd=float(values.std(ddof=1)) if len(values) > 1 else math.nan,
        tied=result.tied[column],
        by_block=tuple(best_first),
        **gap_values,
    )


def _value(candidate: Candidate | None, metric: str) -> float:
    return math.nan if candidate is None else candidate.evaluation.metrics.get(metric, math.nan)


def _mean_gate(gate: Gate, runs: Sequence[Candidate]) -> GateResult:
    """Check a gate against the mean of the metric over the blocks of a model."""
    results = [next(result for result in run.gates if result.gate == gate) for run in runs]
    reasons = [result.reason for result in results if result.reason]
    if reasons:
        return GateResult(
            gate, math.nan, False, f"{reasons[0]}, in {len(reasons)} of {len(runs)} blocks"
        )
    mean = float(np.mean([result.value for result in results]))
    return GateResult(gate, mean, gate.keeps(mean), "")


def _influence(run: Candidate, metric: str) -> FloatArray | None:
    """Return the influence values of a run; None if the run has no rows or a value is undefined.

    For a metric whose best value is zero, the function returns the influence values of the distance
    from zero.
    """
    evaluation = run.evaluation
    if evaluation.rows is None:
        return None
    influence = evaluation.influence(metric)
    if influence is None or not np.isfinite(influence).all():
        return None
    is_distance = evaluation.catalog.lookup(metric).better == "nearest zero"
    if is_distance and evaluation.metrics[metric] < 0:
        return -influence
    return influence


def _errors_of_pairs(
    models: Sequence[Sequence[Candidate]], metric: str, ratio: float | None
) -> FloatArray:
    """Return the part of each mean difference's standard error that is due to the test rows."""
    joint = _covariance_of_means(models, metric, ratio)
    variance = np.diag(joint)
    return np.asarray(np.sqrt(np.maximum(variance[:, None] + variance[None, :] - 2 * joint, 0)))


def _covariance_of_means(
    models: Sequence[Sequence[Candidate]], metric: str, ratio: float | None
) -> FloatArray:
    """Return the covariance of the models' means that is due to the sampling of the test rows.

    The covariance is NaN if the influence values of a run are unknown, or if the runs of a block
    are not paired. Runs with different seeds (no ratio) share their test rows. Folds have disjoint
    test rows, so the errors of different folds are independent. Repeated cross-validation and
    random splits evaluate a row several times. The data can be divided into only 1 + 1 / ratio
    disjoint test sets, so a mean over more test sets does not reduce the sampling error any
    further.
    """
    shape = (len(models), len(models))
    blocks = list(zip(*models, strict=True))
    influences: list[list[FloatArray]] = []
    for runs in blocks:
        known = [_influence(run, metric) for run in runs]
        influences.append([values for values in known if values is not None])
    if not blocks or any(len(values) < len(models) for values in influences):
        return np.full(shape, math.nan)
    designs = [design_of_rows(runs[0].evaluation) for runs in blocks]
    if ratio is None:
        means_by_model = [np.mean(values, axis=0) for values in zip(*influences, strict=True)]
        return designs[0].covariance(np.column_stack(means_by_model))
    total = np.zeros(shape)
    for runs, design, values in zip(blocks, designs, influences, strict=True):
        if any(why_unpaired(runs[0].evaluation, run.evaluation) for run in runs):
            return np.full(shape, math.nan)
        total += design.covariance(np.column_stack(values))
    return total / len(blocks) / min(len(blocks), 1 + 1 / ratio)


# -- runs as a table of models by blocks -----------------------------------------------------------


def _read_key(run: Run, by: str) -> str | None:
    """Return the value of a run's "params.fold", "tags.x", "metrics.x" or "name" as text."""
    if by == "name":
        return run.name
    value = run.read(by)
    return None if value is None else str(value)


def _names_of_models(candidates: Sequence[Candidate], blocks: Blocks) -> list[str]:
    """Return the name of each run's model."""
    if blocks.model is not None:
        return _stated_names(candidates, blocks.model, blocks.by)
    varying = _varying_params(candidates, blocks.by)
    names = []
    for candidate in candidates:
        params = candidate.run.params
        if not varying:
            name = candidate.run.tags.get("mlflow.runName", candidate.name)
        elif len(varying) == 1:
            name = params.get(varying[0], "–")
        else:
            name = ", ".join(f"{key}={params[key]}" for key in varying if key in params)
        names.append(name)
    return names


def _stated_names(candidates: Sequence[Candidate], model: str, by: str) -> list[str]:
    """Return the model names that the runs specify.

    Raises ValueError if a run specifies a block but no model name.
    """
    names = [_read_key(candidate.run, model) for candidate in candidates]
    lacking = [
        candidate.name
        for candidate, name in zip(candidates, names, strict=True)
        if name is None and _read_key(candidate.run, by) is not None
    ]
    if lacking:
        raise ValueError(
            f"every run must have {model}, got none for {len(lacking)}, such as {lacking[:3]}"
        )
    return [str(name) for name in names]


def _varying_params(candidates: Sequence[Candidate], by: str) -> list[str]:
    """Return the names of the parameters, except the block, that differ between runs.

    Runs without a block, such as parent runs, are not ranked, so their parameters are ignored.
    """
    block_param = by.removeprefix("params.")
    tables = [
        candidate.run.params for candidate in candidates if _read_key(candidate.run, by) is not None
    ]
    keys = dict.fromkeys(key for params in tables for key in params if key != block_param)
    return [key for key in keys if len({params.get(key) for params in tables}) > 1]


def _by_block(
    candidates: Sequence[Candidate], names: Sequence[str], blocks: Blocks
) -> tuple[dict[tuple[str, str], Candidate], tuple[str, ...]]:
    """Return the newest run of each model in each block, and notes about runs not ranked."""
    table: dict[tuple[str, str], Candidate] = {}
    repeats = 0
    lacking = []
    for name, candidate in zip(names, candidates, strict=True):
        block = _read_key(candidate.run, blocks.by)
        if block is None:
            lacking.append(candidate.name)
            continue
        earlier = table.get((name, block))
        repeats += earlier is not None
        if earlier is None or earlier.run.start_time <= candidate.run.start_time:
            table[name, block] = candidate
    notes = []
    if lacking:
        notes.append(
            f"{len(lacking)} runs have no {blocks.by} and are not ranked, such as {lacking[0]}."
        )
    if repeats:
        notes.append(
            f"{repeats} older runs are not ranked, because a newer run has the same block."
        )
    return table, tuple(notes)


def _check_alike(
    table: Mapping[tuple[str, str], Candidate], blocks: Blocks, read: frozenset[str]
) -> None:
    """Raise ValueError if runs of a block differ in their rows or in how they were evaluated."""
    traits = {key: Traits.of(candidate.evaluation) for key, candidate in table.items()}
    frequencies = Counter(traits.values())

    def in_words(key: tuple[str, str]) -> str:
        """Return words that identify a run, such as “run” (params.fold 3, 200 rows)."""
        candidate = table[key]
        rows = candidate.evaluation.statistics.digest.rows
        return f"“{candidate.name}” ({blocks.by} {key[1]}, {rows:,} rows)"

    strays: list[str] = []
    reasons: dict[Reason, str] = {}
    for block in sorted({block for _, block in table}, key=_natural_order):
        parts = split([key for key in table if key[1] == block], traits.__getitem__, read)
        # If several groups of runs have the same size, the group that is most similar to the runs
        # in other blocks is the reference.
        rule = max(parts, key=lambda part: (len(part), sum(frequencies[traits[k]] for k in part)))
        for part in parts:
            if part is rule:
                continue
            for key in part:
                strays.append(in_words(key))
                reason = why_apart(traits[key], traits[rule[0]], read) or Reason.DATA
                reasons.setdefault(reason, in_words(rule[0]))
    if strays:
        how = " and ".join(reason.value for reason in reasons)
        raise ValueError(
            "the runs of a block must be evaluated on the same rows and in the same way, but "
            f"these runs and others in their blocks were evaluated {how}: {some_of(strays, 6)}; "
            f"compare with {next(iter(reasons.values()))}"
        )


def _in_equal_parts(evaluations: Sequence[BaseEvaluation]) -> bool:
    """Return whether the blocks have nearly equal numbers of rows of each class, as folds do."""
    counts = [
        evaluation.confusion_matrix.counts.sum(axis=1)
        for evaluation in evaluations
        if isinstance(evaluation, Evaluation)
    ]
    same_classes = len({evaluation.labels for evaluation in evaluations}) == 1
    if len(counts) < len(evaluations) or not same_classes:
        return False
    return bool((np.ptp(counts, axis=0) <= 1).all())


def _natural_order(text: str) -> tuple[bool, float, str]:
    """Return a sort key that puts numeric texts, ordered by value, before all other texts."""
    try:
        return False, float(text), text
    except ValueError:
        return True, 0.0, text
