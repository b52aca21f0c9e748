"""Repeated runs: models over seeds or folds, ranked as models."""

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
    """Names that tell repeated runs apart, and the kind of repetition.

    ``by``: what names a block: ``"params.fold"``, ``"tags.seed"``, or ``"name"``.
    ``model``: what names a model; None: all parameters but the block, or the run's name where there
    are none.
    ``kind``, "auto", "folds" or "seeds".
    ``test_train_ratio``: for folds: rows of a test part over rows of its training part; by default
    that of as many folds as blocks.
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
                raise ValueError(
                    f"{option} must read 'params.…', 'tags.…', 'metrics.…' or 'name', got {name!r}"
                )

    def kind_of(self, evaluations: Mapping[str, BaseEvaluation]) -> str:
        """The kind of repetition, by the rows of each block's given evaluation; a stated kind is checked.

        ValueError if some blocks hold the same rows and others do not, if the rows contradict the
        kind, or if the blocks are neither seeds nor folds, as several data sets are.
        """
        sharing: dict[object, list[str]] = {}
        for block, one in evaluations.items():
            sharing.setdefault(rows_by_digests(one), []).append(block)
        all_same = len(sharing) == 1
        all_different = len(sharing) == len(evaluations)
        shown = "; ".join(f"{self.by} {some_of(blocks, 8)}" for blocks in sharing.values())
        same_digest_means_same_rows = self._digests_tell_rows(evaluations.values())
        if self.kind == "seeds" and not all_same:
            raise ValueError(
                "block_kind='seeds' needs the same rows in all blocks; the same rows are in: "
                f"{shown}"
            )
        if self.kind == "folds" and not all_different and same_digest_means_same_rows:
            raise ValueError(
                "block_kind='folds' needs rows of their own in all blocks (row_ids= tells rows of "
                f"the same labels apart); the same rows are in: {shown}"
            )
        if self.kind != "auto":
            return self.kind
        if all_different:
            return self._of_rows_of_their_own(list(evaluations.values()))
        in_order = all(one.statistics.digest.ordered for one in evaluations.values())
        if all_same and (same_digest_means_same_rows or in_order or not self._are_named_folds):
            return "seeds"
        if self._are_named_folds and not same_digest_means_same_rows:
            return "folds"
        raise ValueError(
            "blocks must hold the same rows, as seeds do, or rows of their own, as folds do; the "
            f"same rows are in: {shown}"
        )

    @property
    def _are_named_folds(self) -> bool:
        return _FOLD.search(self.by) is not None

    def _digests_tell_rows(self, evaluations: Iterable[BaseEvaluation]) -> bool:
        """Return True if equal digests mean the same rows; without ids, sorted folds and rows without order do not."""
        held = [one.statistics for one in evaluations]
        return all(
            one.row_ids is not None or (one.digest.ordered and not self._are_named_folds)
            for one in held
        )

    def _of_rows_of_their_own(self, evaluations: list[BaseEvaluation]) -> str:
        if self._are_named_folds or _in_equal_parts(evaluations):
            return "folds"
        raise RemovedFeature(
            f"each block of {self.by} has its own rows. Give block_kind='folds' if the blocks are "
            "folds of one data set. cmtrack 0.3 does not rank models over several data sets: "
            f"{INSTEAD[_DATA_SETS]}"
        )


@dataclass(frozen=True, eq=False)
class RankedModel(Ranked):
    """A model and its standing over the blocks; see :class:`~cmtrack.comparison.ranking.Ranked`."""

    @property
    def mean(self) -> float:
        """The value: the mean over its blocks."""
        return self.value


@dataclass(frozen=True, eq=False, kw_only=True)
class RepeatedRanking(Ranking):
    """Models over blocks.

    ``kind``, "folds" or "seeds".
    ``scores``, of shape (N, k): values of the metric by block and model (in the order of
    ``models``), NaN where there is none.
    ``result``: the tests; its models stand in its own order, and larger is better there.
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
        """The number of blocks: "10 folds", "30 seeds"."""
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

    The result, (ranking, failed, notes): No ranking where no model passes the gates; the models
    that gates stopped; what a reader should know.

    ValueError if the criterion is not a single metric, a run has no block, or no model has two of
    them.
    """
    if not criterion.single:
        raise ValueError(f"rank_by must be one metric for repeated runs, got {criterion}")
    names = _names_of_models(candidates, blocks)
    table, notes = _by_block(candidates, names, blocks)
    _check_alike(table, blocks, read_by(criterion, gates, tie_breakers))
    block_names = tuple(sorted({block for _, block in table}, key=_natural_order))
    # a run without a block, such as a parent's, is none
    models = list(dict.fromkeys(model for model, _ in table))
    if len(block_names) < 2 or all(sum(m == model for m, _ in table) < 2 for model in models):
        model_key = blocks.model or "all parameters but the block"
        raise ValueError(
            f"repeated runs must have a model in two blocks or more, got {len(models)} models "
            f"({model_key}) in {len(block_names)} blocks ({blocks.by}); model= names what tells "
            "the models apart"
        )
    runs = {m: [table[m, b] for b in block_names if (m, b) in table] for m in models}
    results = {m: tuple(_mean_gate(gate, runs[m]) for gate in gates) for m in models}
    homes = {m: runs[m][0].run for m in models}
    failed = tuple(
        StoppedRun(Run("", m, homes[m].experiment_id, homes[m].tracking_uri), results[m])
        for m in models
        if not all(r.passed for r in results[m])
    )
    models = [m for m in models if all(r.passed for r in results[m])]
    if not models:
        return None, failed, notes
    scores = np.array(
        [[_value(table.get((m, b)), criterion.metrics[0]) for m in models] for b in block_names]
    )
    kind: Any = blocks.kind_of(
        {block: table[m, block].evaluation for m in reversed(models) for block in _of(table, m)}
    )
    gain = -np.vectorize(criterion.distance_from_best)(scores)
    ratio = None
    if kind == "folds":
        ratio = (
            1 / (len(block_names) - 1)
            if blocks.test_train_ratio is None
            else blocks.test_train_ratio
        )
    shared = [b for b in block_names if all((m, b) in table for m in models)]
    whole = [[table[m, b] for b in shared] for m in models]
    errors = _errors_of_pairs(whole, criterion.metrics[0], ratio)
    result = analyse(
        gain,
        models,
        kind=kind,
        confidence_level=confidence_level,
        test_train_ratio=ratio,
        test_errors=errors,
    )
    entries = [
        _ranked(place, result, runs, scores, criterion, results) for place in range(len(models))
    ]
    standing, decision = decided(entries, criterion, tie_breakers, margin)
    by_model = {run.name: runs[run.name] for run in standing}
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


def _constant(
    models: Mapping[str, Sequence[Candidate]],
    criterion: Criterion,
    result: RepeatedResult,
    ratio: float | None,
) -> tuple[ConstantAnswer, ...]:
    """The constant answer over the blocks, and what each model gains over it.

    ``models``: the runs of each model by its name, one for each of its blocks, the leading model
    first.
    """
    metric = criterion.metrics[0]
    leader, runs = next(iter(models.items()))
    answers = [constant_answer(run.evaluation, metric) for run in runs]
    present = [answer for answer in answers if answer is not None]
    if len(present) < len(runs) or len({run.evaluation.labels for run in runs}) > 1:
        return ()
    classes = [one.answer for one in present]
    answer = max(classes, key=classes.count)
    answered = _answered(runs, metric, answer)
    if len(answered) < len(runs):
        return ()
    values = np.array([_value(one, metric) for one in answered])
    constant = replace(
        present[0],
        answer=answer,
        value=float(values.mean()),
        reason=next((one.reason for one in present if one.reason), ""),
        run=leader,
        guessed=any(one.guessed for one in present),
        unbeatable=any(one.unbeatable for one in present),
        difference=math.nan,
        standard_error=math.nan,
        low=math.nan,
        high=math.nan,
        pvalue=math.nan,
        unpaired="",
        by_run={},
        shown=(),
    )
    if constant.unbeatable or not (constant.guessed or np.isfinite(values).all()) or len(runs) < 2:
        return (constant,)
    gaps = {}
    for name, of_model in models.items():
        gaps[name] = _gap_from_constant(of_model, criterion, constant, result, ratio)
    adjusted = holm([gap.pvalue for gap in gaps.values()])
    by_run = dict(zip(gaps, adjusted.tolist(), strict=True))
    constant = replace(constant, **vars(gaps[leader]) | {"pvalue": by_run[leader]}, by_run=by_run)
    ahead = [name for name, gap in gaps.items() if criterion.unit * gap.difference > 0]
    return (
        replace(
            constant,
            shown=tuple(name for name in ahead if by_run[name] <= 1 - constant.confidence_level),
        ),
    )


@dataclass(frozen=True)
class _Gap:
    """A model less the constant answer, on average over the blocks."""

    difference: float
    standard_error: float
    low: float
    high: float
    pvalue: float


def _answered(runs: Sequence[Candidate], metric: str, answer: Any) -> list[Candidate]:
    """The runs of the constant answer on the rows of these runs; of those without single labels none."""
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
    """The gain of a model's runs over the constant answer, by the analysis that models are compared with."""
    metric = criterion.metrics[0]
    answered = _answered(runs, metric, constant.answer)
    ours = np.array([_value(run, metric) for run in runs])
    against = (
        np.zeros(len(runs))
        if constant.guessed
        else np.array([_value(one, metric) for one in answered])
    )
    if len(runs) < 2 or not np.isfinite(against).all():
        return _Gap(float(np.nanmean(ours - against)), math.nan, math.nan, math.nan, math.nan)
    errors = _errors_of_pairs((runs, answered), metric, ratio)
    if result.kind == "seeds" and constant.guessed:  # it is compared with 0, which has no error
        errors = np.full((2, 2), math.sqrt(_covariance_of_means((runs,), metric, None)[0, 0]))
    (gap,) = analyse(
        criterion.unit * np.column_stack((ours, against)),
        ("model", "constant"),
        kind=result.kind,
        confidence_level=result.confidence_level,
        test_train_ratio=ratio,
        test_errors=errors,
    ).differences
    turn = criterion.unit if gap.name == "model" else -criterion.unit
    low, high = sorted((turn * gap.low, turn * gap.high))
    return _Gap(float(np.nanmean(ours - against)), gap.standard_error, low, high, gap.pvalue)


def _ranked(
    place: int,
    result: RepeatedResult,
    runs: Mapping[str, list[Candidate]],
    scores: FloatArray,
    criterion: Criterion,
    gates: Mapping[str, tuple[GateResult, ...]],
) -> RankedModel:
    """The model of a place."""
    column, metric = result.order[place], criterion.metrics[0]
    name = result.names[column]
    best_first = sorted(
        runs[name], key=lambda c: criterion.distance_from_best(c.evaluation.metrics[metric])
    )
    of_gap: dict[str, Any] = {"difference": 0.0}
    if column != result.best:
        gap, unit = result[name], criterion.unit
        low, high = sorted((unit * gap.joint_low, unit * gap.joint_high))
        widest = criterion.catalog.lookup(metric).widest
        of_gap = {
            "pvalue": gap.pvalue,
            "difference": unit * gap.difference,
            "difference_low": max(low, -widest),
            "difference_high": min(high, widest),
            "p_holm": gap.adjusted_pvalue,
            "p_set": gap.adjusted_pvalue,
            "standard_error": gap.standard_error,
        }
    values = scores[:, column][np.isfinite(scores[:, column])]
    return RankedModel(
        replace(
            best_first[0].run, name=name, metrics=means([run.run.metrics for run in best_first])
        ),
        best_first[0].evaluation,
        gates[name],
        rank=place + 1,
        value=float(values.mean()) if len(values) else math.nan,
        sd=float(values.std(ddof=1)) if len(values) > 1 else math.nan,
        tied=result.tied[column],
        by_block=tuple(best_first),
        **of_gap,
    )


def _value(candidate: Candidate | None, metric: str) -> float:
    return math.nan if candidate is None else candidate.evaluation.metrics.get(metric, math.nan)


def _mean_gate(gate: Gate, runs: Sequence[Candidate]) -> GateResult:
    """A gate on the mean over the blocks (of the value, or of the interval's end)."""
    single = [next(r for r in run.gates if r.gate == gate) for run in runs]
    reasons = [result.reason for result in single if result.reason]
    if reasons:
        return GateResult(
            gate, math.nan, False, f"{reasons[0]}, in {len(reasons)} of {len(runs)} blocks"
        )
    mean = float(np.mean([result.value for result in single]))
    return GateResult(gate, mean, gate.keeps(mean), "")


def _influence(run: Candidate, metric: str) -> FloatArray | None:
    """A run's influence values, of the distance from zero where nearest to zero is best; None without rows."""
    influence = run.evaluation.influence(metric) if run.evaluation.rows is not None else None
    if influence is None or not np.isfinite(influence).all():
        return None
    return (
        -influence
        if run.evaluation.catalog.lookup(metric).better == "nearest zero"
        and run.evaluation.metrics[metric] < 0
        else influence
    )


def _errors_of_pairs(
    models: Sequence[Sequence[Candidate]], metric: str, ratio: float | None
) -> FloatArray:
    """Standard errors of the pairs' mean differences, from the sampling of the test rows."""
    joint = _covariance_of_means(models, metric, ratio)
    variance = np.diag(joint)
    return np.asarray(np.sqrt(np.maximum(variance[:, None] + variance[None, :] - 2 * joint, 0)))


def _covariance_of_means(
    models: Sequence[Sequence[Candidate]], metric: str, ratio: float | None
) -> FloatArray:
    """Covariance of the models' means from the sampling of the test rows; NaN where it is not known.

    Seeds (no ratio) are on the same test rows. Folds have disjoint ones: the folds' errors are
    independent. Repeated cross-validation and random splits judge rows several times. All rows are
    1 + 1 / ratio test parts, so the mean over J > 1 + 1 / ratio parts is no better known than one
    over so many disjoint ones.
    """
    blocks = list(zip(*models, strict=True))
    by_block = [
        [value for run in runs if (value := _influence(run, metric)) is not None] for runs in blocks
    ]
    paired = ratio is None or not any(
        why_unpaired(runs[0].evaluation, one.evaluation) for runs in blocks for one in runs
    )
    if not blocks or not paired or any(len(values) < len(models) for values in by_block):
        return np.full((len(models), len(models)), math.nan)
    parts = (
        [[np.mean(values, axis=0) for values in zip(*by_block, strict=True)]]
        if ratio is None
        else by_block
    )
    total = np.zeros((len(models), len(models)))
    for runs, values in zip(blocks, parts, strict=False):
        rows = runs[0].evaluation.rows
        assert rows is not None  # it has influence values
        total += rows.design.covariance(np.column_stack(values))
    return total if ratio is None else total / len(blocks) / min(len(blocks), 1 + 1 / ratio)


# -- runs as a table of models by blocks ------------------------------------------------------------------------


def _read_key(run: Run, by: str) -> str | None:
    """The text that a run has under ``"params.fold"``, ``"tags.x"``, ``"metrics.x"`` or ``"name"``."""
    if by == "name":
        return run.name
    value = run.read(by)
    return None if value is None else str(value)


def _names_of_models(candidates: Sequence[Candidate], blocks: Blocks) -> list[str]:
    """The model of each run; runs without a block do not count in choosing what distinguishes models."""
    blocked = [_read_key(candidate.run, blocks.by) is not None for candidate in candidates]
    if blocks.model is not None:
        names = [_read_key(candidate.run, blocks.model) for candidate in candidates]
        lacking = [
            c.name
            for c, name, there in zip(candidates, names, blocked, strict=True)
            if there and name is None
        ]
        if lacking:
            raise ValueError(
                f"every run must have {blocks.model}, got none for {len(lacking)}, such as "
                f"{lacking[:3]}"
            )
        return [str(name) for name in names]
    block_param = blocks.by.removeprefix("params.")
    params = [{k: v for k, v in c.run.params.items() if k != block_param} for c in candidates]
    ranked = [p for p, has_block in zip(params, blocked, strict=True) if has_block]
    varying = [
        k
        for k in dict.fromkeys(k for p in ranked for k in p)
        if len({p.get(k) for p in ranked}) > 1
    ]
    if not varying:
        return [
            candidate.run.tags.get("mlflow.runName", candidate.name) for candidate in candidates
        ]
    if len(varying) == 1:
        return [str(p.get(varying[0], "–")) for p in params]
    return [", ".join(f"{k}={p[k]}" for k in varying if k in p) for p in params]


def _by_block(
    candidates: Sequence[Candidate], names: Sequence[str], blocks: Blocks
) -> tuple[dict[tuple[str, str], Candidate], tuple[str, ...]]:
    """The newest run of each model in each block."""
    table: dict[tuple[str, str], Candidate] = {}
    repeats, lacking = 0, []
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
            f"{len(lacking)} runs have no {blocks.by} and are left out, among them {lacking[0]}."
        )
    if repeats:
        notes.append(f"{repeats} older runs of a model in a block that was run again are left out.")
    return table, tuple(notes)


def _of(table: Mapping[tuple[str, str], Candidate], model: str) -> list[str]:
    return sorted((block for name, block in table if name == model), key=_natural_order)


def _check_alike(
    table: Mapping[tuple[str, str], Candidate], blocks: Blocks, read: frozenset[str]
) -> None:
    """Refuse runs of one block that were judged on different rows, or in a different way."""
    traits = {place: Traits.of(candidate.evaluation) for place, candidate in table.items()}
    often = Counter(traits.values())
    strays: list[str] = []
    reasons: dict[Reason, str] = {}
    for block in sorted({block for _, block in table}, key=_natural_order):
        parts = split([place for place in table if place[1] == block], traits.__getitem__, read)
        most = max(parts, key=lambda part: (len(part), sum(often[traits[place]] for place in part)))
        for place in (place for part in parts if part is not most for place in part):
            strays.append(f"“{table[place].name}” ({blocks.by} {block}, {_rows(table[place])})")
            reason = why_apart(traits[place], traits[most[0]], read) or Reason.DATA
            reasons.setdefault(
                reason, f"“{table[most[0]].name}” ({blocks.by} {block}, {_rows(table[most[0]])})"
            )
    if strays:
        how = " and ".join(reason.value for reason in reasons)
        raise ValueError(
            "the runs of a block must be judged on the same rows and alike, got "
            f"{some_of(strays, 6)} judged {how} than the others of their blocks, such as "
            f"{next(iter(reasons.values()))}"
        )


def _rows(candidate: Candidate) -> str:
    return f"{candidate.evaluation.statistics.digest.rows:,} rows"


def _in_equal_parts(evaluations: Sequence[BaseEvaluation]) -> bool:
    """True if the rows of each class are divided evenly, as stratified folds of one data set divide them."""
    if not all(isinstance(one, Evaluation) for one in evaluations):
        return False
    counts = [
        one.confusion_matrix.counts.sum(axis=1)
        for one in evaluations
        if isinstance(one, Evaluation)
    ]
    return len({one.labels for one in evaluations}) == 1 and bool(
        (np.ptp(counts, axis=0) <= 1).all()
    )


def _natural_order(text: str) -> tuple[bool, float, str]:
    """Numbers by their value, before texts."""
    try:
        return False, float(text), text
    except ValueError:
        return True, 0.0, text
