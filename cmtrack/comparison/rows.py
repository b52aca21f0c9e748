"""Rows across the runs of a comparison: broken, fixed and changed ones, what would decide, missed by all, two together.

Runs are compared row by row where they were judged on the same rows, in one order, and kept them.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial, reduce
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from cmtrack.base import BaseEvaluation
from cmtrack.comparison.comparability import Reason, in_order_of, of_classes, unpaired_among, why_unpaired
from cmtrack.evaluation import Evaluation
from cmtrack.evaluation.from_arrays import evaluate_rows
from cmtrack.evaluation.gates import Gate, GateResult
from cmtrack.evaluation.rows import TOTAL, certainty, frame_of, right_rows, rows_of, steps_of
from cmtrack.grouping import ComposedStep
from cmtrack.metrics.intervals import normal_quantile, tango
from cmtrack.metrics.names import near
from cmtrack.metrics.views import EvaluationViews
from cmtrack.names import quoted
from cmtrack.rows import Deciding, Flips, Missed, Pair, corrected, transitions
from cmtrack.rows.deciding import (
    USUAL_NOISE,
    fewest,
    fewest_by_moves,
    fewest_to_tie,
    fewest_to_tie_losses,
    probability_of_any_row,
)
from cmtrack.rows.flips import rows_needed
from cmtrack.statistics import ConfusionMatrix
from cmtrack.statistics.inputs import BoolArray, FloatArray, IntArray
from cmtrack.statistics.predictions import Predictions

if TYPE_CHECKING:
    import pandas as pd

    from cmtrack.comparison.result import Comparison

KINDS = ("broken", "fixed", "changed")
ACCURACY = "multiclass/accuracy"
_LISTED, _MOST_ROWS = 1_000, 10**8
_TINY = float(np.finfo(np.float64).tiny)


def run_called(comparison: Comparison, name: str) -> tuple[str, Evaluation]:
    """Name and evaluation of a judged run, by its name or id.

    Raises
    ------
    KeyError
        If no run is called so.
    """
    for run in comparison.judged:
        if name in (run.name, run.run_id):
            return run.name, of_classes(run.evaluation)
    names = [run.name for run in comparison.judged]
    raise KeyError(f"no run is called {name!r:.80}{near(str(name), names)}; there are {names[:10]}")


def pair_of(comparison: Comparison, a: str, b: str) -> dict[str, Evaluation]:
    """The evaluations of two runs of the same rows, by name, with their classes in one order.

    Raises
    ------
    KeyError
        If a run does not exist.
    ValueError
        If they cannot be compared row by row; the text says why, and which runs can be.
    """
    (first, one), (second, other) = (run_called(comparison, name) for name in (a, b))
    if first == second:
        raise ValueError(f"two runs must be named, got {quoted(first)} twice")
    other = in_order_of(one, other)
    reason = why_unpaired(one, other)
    if reason in (Reason.OTHER_ROWS, Reason.OTHER_IDS, Reason.RELABELLED):
        shared = _by_id({first: one, second: other})
        if shared is not None:
            warnings.warn(shared[1], UserWarning, stacklevel=4)
            return shared[0]
    if reason is not None:
        paired = [
            quoted(run.name)
            for run in comparison.judged
            if run.name != first and why_unpaired(one, in_order_of(one, run.evaluation)) is None
        ]
        there = f"it can be with {', '.join(paired[:10])}" if paired else "with no other run it can be"
        why = reason.between(one, other)
        raise ValueError(f"{quoted(first)} cannot be compared with {quoted(second)} row by row: {why}; {there}")
    rows_of(one), rows_of(other)
    return {first: one, second: other}


def _by_id(runs: dict[str, Evaluation]) -> tuple[dict[str, Evaluation], str] | None:
    """Evaluations of their shared rows, joined by id; None without ids, or without shared ones.

    Rows that not all have are left out, and rows whose labels differ; a sentence counts them.
    """
    labels = {e.labels for e in runs.values()}
    sides = [e.rows for e in runs.values() if isinstance(e.rows, Predictions) and e.rows.ids is not None]
    ids = [side.ids for side in sides if side.ids is not None]
    if not 2 <= len(runs) == len(sides) or len(labels) > 1 or len({one.hashed for one in ids}) > 1:
        return None
    keys = [one.values if one.hashed else one.values.astype(str) for one in ids]
    shared = reduce(partial(np.intersect1d, assume_unique=True), keys)
    places = [np.flatnonzero(np.isin(key, shared))[np.argsort(key[np.isin(key, shared)])] for key in keys]
    order = np.argsort(places[0])
    codes = np.array([side.actual[place[order]] for side, place in zip(sides, places, strict=True)])
    same = (codes == codes[0]).all(axis=0)
    if not same.any():
        return None
    names = [quoted(name) for name in runs]
    alone = ", ".join(
        f"{len(side) - len(shared):,}{' rows' if not k else ''} of {name}{' only' if len(names) == 2 else ''}"
        for k, (side, name) in enumerate(zip(sides, names, strict=True))
    )
    many = f"{', '.join(names[:-1])} and {names[-1]} are compared in {int(same.sum()):,} rows of the same ids"
    sentence = f"{many}, whose places count; left out are {alone}, and {int((~same).sum()):,} relabelled"
    parts = {
        name: evaluate_rows(side.take(place[order][same]), e)
        for (name, e), side, place in zip(runs.items(), sides, places, strict=True)
    }
    one, *others = parts.values()
    return (parts, sentence) if all(why_unpaired(one, other) is None for other in others) else None


def together_with(comparison: Comparison) -> dict[str, Evaluation]:
    """Judged runs of the same rows, by name, in the order of the ranking: those of the leader, or of the first run.

    Others are joined by their ids where no row is lost, or no two runs have the same rows; else a warning names them.

    Raises
    ------
    ValueError
        If fewer than two can be compared row by row.
    """
    order = {run.run_id: place for place, run in enumerate(comparison.runs)}
    runs = sorted(comparison.judged, key=lambda run: order.get(run.run_id, len(order)))
    runs = [run for run in runs if isinstance(run.evaluation, Evaluation)]
    first = next((run.evaluation for run in runs if isinstance(run.evaluation.rows, Predictions)), None)
    moved = [run.evaluation if first is None else in_order_of(first, run.evaluation) for run in runs]
    apart = unpaired_among(moved)
    named = {run.name: of_classes(e) for run, e in zip(runs, moved, strict=True)}
    paired = {name: e for k, (name, e) in enumerate(named.items()) if k not in apart}
    if not apart:
        return paired
    joined = _by_id(
        {name: e for name, e in named.items() if isinstance(e.rows, Predictions) and e.rows.ids is not None}
    )
    if joined and len(joined[0]) > len(paired):
        rows, least = next(iter(joined[0].values())).rows, next(iter(named.values())).rows
        if len(paired) < 2 or len(rows or ()) == len(least or ()):
            warnings.warn(joined[1], UserWarning, stacklevel=4)
            return joined[0]
    reasons = [(runs[k].name, reason) for k, reason in apart.items() if reason != Reason.ALONE.value]
    why = "; ".join(f"{quoted(name)}: {reason}" for name, reason in reasons[:5])
    if len(paired) < 2:
        raise ValueError(f"two runs of the same rows are needed, with their rows: {why or 'there is one run'}")
    warnings.warn(f"{len(reasons):,} of {len(runs):,} runs are left out: {why}", UserWarning, stacklevel=4)
    return paired


def step_of(metric: Comparison | str, evaluation: Evaluation) -> ComposedStep | None:
    """The step that decides which rows are right: from a metric, or a comparison's criterion; None for the classes."""
    section, *rest = (metric if isinstance(metric, str) else metric.criterion.metrics[0]).split("/")
    if section == "binary":
        return evaluation.scored
    if section == "reduced":
        return steps_of(evaluation).get(rest[0])
    return None


def rows(comparison: Comparison, a: str, b: str, kind: str) -> pd.DataFrame:
    """See :meth:`cmtrack.Comparison.rows`."""
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {kind!r:.80}")
    pair = pair_of(comparison, a, b)
    one, other = map(rows_of, pair.values())
    first, second = (right_rows(rows_of(e), step_of(comparison, e)) for e in pair.values())
    marks = {"broken": first & ~second, "fixed": second & ~first, "changed": one.predicted != other.predicted}
    places = np.flatnonzero(marks[kind] & _weighted(one))
    ours, theirs = (certainty(side, places, label=True) for side in (one, other))
    if ours is not None and theirs is not None:
        fall = ours - theirs
        order = {"broken": -fall, "fixed": fall, "changed": -np.abs(fall)}[kind]
        places = places[np.argsort(order, kind="stable")]
    frame = frame_of(one, places, dict(zip(pair, (one, other), strict=True)))
    frame.attrs[TOTAL] = len(places)
    return frame


def flips(comparison: Comparison, a: str, b: str, by: str | None) -> Flips:
    """See :meth:`cmtrack.Comparison.flips`."""
    one, other = pair_of(comparison, a, b).values()
    return flips_of(one, other, by, step_of(comparison, one), step_of(comparison, other), comparison.confidence_level)


def flips_of(
    one: Evaluation, other: Evaluation, by: str | None, step: Any = None, step_2: Any = None, level: float = 0.95
) -> Flips:
    """The flips between two evaluations of the same rows.

    Raises
    ------
    ValueError
        If the rows have no such column.
    """
    ours, theirs = rows_of(one), rows_of(other)
    parts: tuple[tuple[Any, ...], IntArray] | None = None
    if by == "class":
        parts = one.labels, ours.actual
    elif by is not None:
        segments = {column.name: column for side in (theirs, ours) for column in side.segments}
        if by not in segments:
            raise ValueError(f"by must be None, 'class' or a column of segments, {list(segments)}, got {by!r:.80}")
        parts = segments[by].values, segments[by].codes
    right, right_2 = right_rows(ours, step), right_rows(theirs, step_2)
    changed = ours.predicted != theirs.predicted
    return Flips.of(right, right_2, changed, parts, ours.weights, ours.clusters, level)


def judged_by_flips(gate: Gate, evaluation: BaseEvaluation, baseline: BaseEvaluation, criterion: str) -> GateResult:
    """A gate's result on the rows that an evaluation breaks or fixes against a baseline.

    Where not even the best outcome of so many rows passes the gate, that is the reason, whatever the outcome is.
    """
    failed = partial(GateResult, gate, math.nan, False)
    if not (isinstance(evaluation, Evaluation) and isinstance(baseline, Evaluation)):
        return failed("flips are of rows of single labels")
    other = in_order_of(baseline, evaluation)
    same = evaluation is baseline
    reason = None if same else why_unpaired(baseline, other)
    if reason is not None or not isinstance(baseline.rows, Predictions):
        why = "they have no rows" if reason is None else reason.between(baseline, other)
        return failed(f"the run and the baseline are not compared row by row: {why}")
    by_class = gate.metric.count("/") > 1
    steps = step_of(criterion, baseline), step_of(criterion, other)
    flips = flips_of(baseline, other, "class" if by_class else None, *steps, evaluation.confidence_level)
    metrics = flips.metrics(by_class)
    if gate.metric not in metrics:
        return failed(f"the rows have no {gate.metric}{near(gate.metric, metrics)}")
    value, ends = metrics[gate.metric]
    if same:
        return gate.check({gate.metric: 0.0}, {gate.metric: (0.0, 0.0)})
    n = flips.rows_of(gate.metric)
    if gate.end and math.isfinite(value):

        def passes(low: float, high: float) -> bool:
            return gate.keeps(high if gate.end == "high" else low)

        best = 0 if gate.operator.startswith("<") else 1
        needed = rows_needed(passes, flips.level, best)
        if n < needed:
            return failed(f"no outcome of {n:,.5g} rows can pass: it takes {needed:,}", undecided=True)
    return gate.check({gate.metric: value}, {gate.metric: ends})


def deciding(comparison: Comparison, a: str, b: str, metric: str | None, noise: Any) -> Deciding:
    """See :meth:`cmtrack.Comparison.deciding`."""
    pair = pair_of(comparison, a, b)
    name = accuracy_of(comparison) if metric is None else metric
    entry, _ = comparison.criterion.catalog.find(name)
    sign = {"higher": 1, "lower": -1}.get(entry.better)
    if sign is None:
        raise ValueError(f"metric must be better where it is higher, or lower, got {name!r}")
    step = step_of(name, next(iter(pair.values())))
    share = step_accepts(name, step)
    sides = [(e, rows_of(e)) for e in pair.values()]
    means = (np.average(right_rows(one, step), weights=one.weights) for _, one in sides)
    values = list(map(float, means)) if share else [e.metrics.get(name, math.nan) for e, _ in sides]
    if not all(map(math.isfinite, values)):
        raise ValueError(f"metric must be defined in both runs, got {name!r}, which is {values[0]:g} and {values[1]:g}")
    if sign * values[1] > sign * values[0]:
        pair = dict(reversed(pair.items()))
    (leader, one), (other, two) = pair.items()
    ours, theirs = rows_of(one), rows_of(two)
    repeats, level, size = _repeats(ours), comparison.confidence_level, len(one.labels)
    first, second, differ = right_rows(ours, step), right_rows(theirs, step), ours.predicted != theirs.predicted
    marks = first & ~second, second & ~first, ~first & ~second & differ
    only_a, only_b, neither = (int(repeats[mark].sum()) for mark in marks)
    if int(repeats.sum()) > _MOST_ROWS:
        raise ValueError(f"deciding takes at most {_MOST_ROWS:,} rows, got weights of {int(repeats.sum()):,}")
    y, answer, answer_2 = (np.repeat(c, repeats) for c in (ours.actual, ours.predicted, theirs.predicted))
    losses = _losses(one, two, name, step)
    if losses is not None:
        gaps, reach = losses
        if ours.weights is not None and ours.weights.dtype.kind == "f":
            gaps, reach = gaps * ours.weights, reach * ours.weights
        units, reaches = np.repeat(gaps, repeats), np.repeat(reach, repeats)
        order, exact = fewest(reaches, float(units.sum())), True
        if share and ours.clusters is None and (ours.weights is None or ours.weights.dtype.kind == "i"):
            tied: int | None = fewest_to_tie(only_a, only_b, level)
        else:
            tied = fewest_to_tie_losses(units, reaches, level)
    else:
        reach = differ.astype(np.float64)
        types, counts = np.unique(np.column_stack((y, answer, answer_2)), axis=0, return_counts=True)
        order, tied = fewest_by_moves(types, counts, size, _gap(one, two, name, sign)), None
        exact = order == 1
    usual = corrected(y, answer, answer_2, transitions(min(USUAL_NOISE, 0.5 / size), size)).probability
    given = None if noise is None else corrected(y, answer, answer_2, transitions(noise, size), level)
    rate = None if noise is None or np.ndim(noise) else float(noise)
    disagree = only_a + only_b + neither
    return Deciding(
        leader=leader,
        other=other,
        metric=name,
        n=len(y),
        only_leader=only_a,
        only_other=only_b,
        neither=neither,
        order=order,
        exact=exact,
        tied=tied,
        follow=(only_a - only_b) / disagree if disagree else math.nan,
        noise=rate,
        labels_right=given,
        probability_any=math.nan if rate is None else probability_of_any_row(only_a, only_b, neither, rate, size),
        usual=usual,
        make_rows=partial(_to_check, comparison, pair, reach),
    )


def accuracy_of(comparison: Comparison) -> str:
    """The accuracy in the step of the criterion; of the classes without one."""
    section, *rest = comparison.criterion.metrics[0].split("/")
    return {"binary": "binary/accuracy", "reduced": f"reduced/{rest[0]}/accuracy"}.get(section, ACCURACY)


def _repeats(side: Predictions) -> IntArray:
    """Number of times that each row counts: int64 weights are numbers of equal rows; rows without weight do not."""
    if side.weights is None:
        return np.ones(len(side), dtype=np.int64)
    repeated = side.weights.dtype.kind == "i"
    return np.asarray(side.weights if repeated else side.weights > 0, dtype=np.int64)


def _weighted(side: Predictions) -> BoolArray:
    return np.asarray(_repeats(side) > 0)


def step_accepts(name: str, step: ComposedStep | None) -> bool:
    """True if a metric is the share of rows that are right."""
    return name == ACCURACY or (step is not None and name.rsplit("/", 1)[-1] == "accuracy")


def _losses(
    one: Evaluation, two: Evaluation, name: str, step: ComposedStep | None
) -> tuple[FloatArray, FloatArray] | None:
    """Loss of the second minus that of the first, and its reach, by row; None if the metric is no mean over rows."""
    ours, theirs = rows_of(one), rows_of(two)
    n, k = len(ours), len(one.labels)
    kind = name.rsplit("/", 1)[-1]
    prices: FloatArray | None = one.prices if name == "cost/mean" else None
    if step_accepts(name, step):
        prices = np.asarray(~(np.eye(k, dtype=bool) if step is None else step.accept), dtype=np.float64)
    if prices is not None:
        gaps = prices[ours.actual, theirs.predicted] - prices[ours.actual, ours.predicted]
        least = np.zeros(n)
        differ = np.flatnonzero(ours.predicted != theirs.predicted)
        codes, place = np.unique(ours.predicted[differ] * k + theirs.predicted[differ], return_inverse=True)
        least[differ] = (prices[:, codes % k] - prices[:, codes // k]).min(axis=0)[place]
        return gaps, gaps - least
    scored = name in ("probability/brier", "probability/log_loss") or kind.startswith("top_")
    if not scored or ours.probabilities is None or theirs.probabilities is None:
        return None
    p, q = ours.probabilities, theirs.probabilities
    if kind == "brier":
        table = 2 * (p - q) + ((q**2).sum(axis=1) - (p**2).sum(axis=1))[:, None]
    elif kind == "log_loss":
        table = np.log(np.maximum(p, _TINY)) - np.log(np.maximum(q, _TINY))
    else:
        most = int(kind.split("_")[1])
        tops = (np.argsort(-side, axis=1, kind="stable")[:, :most] for side in (p, q))
        inside = [np.zeros((n, k)) for _ in range(2)]
        for table, top in zip(inside, tops, strict=True):
            np.put_along_axis(table, top, 1.0, axis=1)
        table = inside[0] - inside[1]
    gaps = table[np.arange(n), ours.actual]
    return gaps, gaps - table.min(axis=1)


def _gap(one: Evaluation, two: Evaluation, name: str, sign: int) -> Callable[[FloatArray, FloatArray], float]:
    """The lead of the first in a metric of counts, as a function of both matrices.

    Raises
    ------
    ValueError
        If the metric is of something else.
    """
    entry, parts = one.catalog.find(name)
    if entry.needs not in ("labels", "two groups") or entry.value is None:
        raise ValueError(
            f"metric must be one of the counts, a mean cost, log loss, Brier score or top-k accuracy, got {name!r}"
        )
    step, wanted = parts.get("step", ""), parts.get("group", parts.get("label"))

    def value(evaluation: Evaluation, table: FloatArray) -> float:
        matrix = ConfusionMatrix(table, evaluation.labels)
        statistics = replace(evaluation.statistics, matrix=matrix, squares=None, segments=None)
        views = EvaluationViews(statistics, evaluation.grouping, evaluation.scored)
        samples, names = views.of(entry, step), views.names(entry, step)
        if samples is None:
            return math.nan
        if names is None:
            return entry.number(samples.argument())
        return float(entry.of_each(samples)[next(k for k, text in names.items() if text == wanted)])

    return lambda first, second: sign * (value(one, first) - value(two, second))


def _to_check(comparison: Comparison, pair: dict[str, Evaluation], reach: FloatArray) -> pd.DataFrame:
    """Rows whose labels to check first: those that can move the order, then by suspicion."""
    leader, _ = pair.values()
    one, two = map(rows_of, pair.values())
    judged = (in_order_of(leader, run.evaluation) for run in comparison.judged)
    sides = [rows_of(of_classes(e)) for e in judged if why_unpaired(leader, e) is None]
    doubt = suspicion(sides or [one, two])  # of runs joined by ids neither has these rows alone
    moves = (reach > 0) | (one.predicted != two.predicted)
    order = np.lexsort((np.arange(len(one)), -doubt, ~moves))
    order = order[_weighted(one)[order]][:_LISTED]
    frame = frame_of(one, order, dict(zip(pair, (one, two), strict=True)))
    frame.insert(1, "moves", moves[order])
    frame.insert(2, "suspicion", doubt[order])
    return frame


def suspicion(sides: list[Predictions]) -> FloatArray:
    """One minus the mean over runs of the label's probability, shape (n,); with labels alone the share that miss it.

    With probabilities the runs without them are left out. It orders rows as well as any simple rule (cleanlab's
    self-confidence of Northcutt, Jiang and Chuang 2021, on averaged probabilities).
    """
    n = len(sides[0])
    scored = [side for side in sides if side.probabilities is not None and not _ranks_only(side)]
    total = np.zeros(n)
    for side in scored or sides:
        label = certainty(side, np.arange(n), label=True) if scored else None
        total += side.actual == side.predicted if label is None else label
    return np.asarray(1 - total / len(scored or sides))


def _ranks_only(side: Predictions) -> bool:
    return side.source is not None and side.source.ranking_only


def missed(comparison: Comparison, at_least: int | None) -> Missed:
    """See :meth:`cmtrack.Comparison.missed`."""
    runs = together_with(comparison)
    least = len(runs) if at_least is None else at_least
    if isinstance(least, bool) or not isinstance(least, (int, np.integer)) or not 1 <= least <= len(runs):
        raise ValueError(f"at_least must be a number of runs from 1 to {len(runs)}, got {at_least!r}")
    sides = {name: rows_of(evaluation) for name, evaluation in runs.items()}
    one, size = next(iter(sides.values())), len(runs)
    misses = np.zeros(len(one), dtype=np.int64)
    for evaluation in runs.values():
        misses += ~right_rows(rows_of(evaluation), step_of(comparison, evaluation))
    repeats, classes = _repeats(one), len(one.labels)
    table = np.bincount(one.actual * (size + 1) + misses, repeats, minlength=classes * (size + 1))
    by_class = table.reshape(classes, size + 1).astype(np.int64)

    def make_rows() -> pd.DataFrame:
        doubt = suspicion(list(sides.values()))
        places = np.flatnonzero((misses >= least) & (repeats > 0))
        places = places[np.lexsort((places, -doubt[places], -misses[places]))]
        frame = frame_of(one, places, sides)
        frame.insert(1, "missed", misses[places])
        frame.insert(2, "suspicion", doubt[places])
        frame.attrs[TOTAL] = len(places)
        return frame

    return Missed(tuple(runs), least, by_class.sum(axis=0), by_class, make_rows)


def together(comparison: Comparison) -> pd.DataFrame:
    """See :meth:`cmtrack.Comparison.together`."""
    from cmtrack._pandas import pd

    runs = together_with(comparison)
    sides = {name: rows_of(evaluation) for name, evaluation in runs.items()}
    right = {name: right_rows(sides[name], step_of(comparison, evaluation)) for name, evaluation in runs.items()}
    pairs = list(combinations(runs, 2))
    level = 1 - (1 - comparison.confidence_level) / len(pairs)
    one = next(iter(sides.values()))
    scored = all(side.probabilities is not None and not _ranks_only(side) for side in sides.values())
    scored = scored and one.clusters is None and (one.weights is None or one.weights.dtype.kind == "i")
    step, out, means = step_of(comparison, next(iter(runs.values()))), [], []
    for first, second in pairs:
        pair = Pair.of(right[first], right[second], level, one.weights, one.clusters)
        row = {"first": first, "second": second} | dict(zip(Pair._fields, pair, strict=True))
        for name in ("either", "gain", "kappa"):
            row |= dict(zip((f"{name}_low", f"{name}_high"), getattr(pair, f"{name}_ends"), strict=True))
        if scored:
            means.append(_mean_of(sides[first], sides[second], right[first], right[second], step))
        out.append(row)
    ends = [f"{name}{end}" for name in ("either", "gain", "kappa") for end in ("", "_low", "_high")]
    frame = pd.DataFrame(out)[["first", "second", "both", "only_first", "only_second", "neither", *ends]]
    if not means:
        return frame
    mean, b, c, n = np.array(means).T
    z = normal_quantile(level)
    gains = {"mean_gain": (b - c) / n, "mean_gain_low": -tango(c, b, n, z), "mean_gain_high": tango(b, c, n, z)}
    return frame.assign(mean=mean, **gains)


def _mean_of(
    one: Predictions, two: Predictions, right: BoolArray, right_2: BoolArray, step: ComposedStep | None
) -> tuple[float, int, int, int]:
    """Accuracy of the mean of both runs' probabilities; rows only it, and only the better run gets right; all rows."""
    p, q = one.probabilities, two.probabilities
    assert p is not None  # the caller has asked
    assert q is not None
    places = np.flatnonzero(one.predicted != two.predicted)  # in the others the mean answers as both do
    actual, answer = one.actual[places], (p[places] + q[places]).argmax(axis=1)
    hit = answer == actual if step is None else step.accept[actual, answer]
    weights = one.weights

    def count(mark: BoolArray, at: Any = slice(None)) -> int:
        return int(np.count_nonzero(mark)) if weights is None else int(weights[at][mark].sum())

    hits, hits_2, n = right[places], right_2[places], len(one) if weights is None else int(weights.sum())
    better = hits if count(hits, places) >= count(hits_2, places) else hits_2
    alike = count(right) - count(hits, places)
    return (alike + count(hit, places)) / n, count(hit & ~better, places), count(better & ~hit, places), n
