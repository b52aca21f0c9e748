"""Rows across the runs of a comparison: broken, fixed and changed ones, and rows that most runs miss.

Runs are compared row by row where they were judged on the same rows, in one order, and kept them.
"""

from __future__ import annotations

import math
import warnings
from functools import partial, reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from cmtrack.base import BaseEvaluation
from cmtrack.comparison.comparability import (
    Reason,
    in_order_of,
    of_classes,
    unpaired_among,
    why_unpaired,
)
from cmtrack.evaluation import Evaluation
from cmtrack.evaluation.from_arrays import evaluate_rows
from cmtrack.evaluation.gates import Gate, GateResult
from cmtrack.evaluation.rows import TOTAL, certainty, frame_of, right_rows, rows_of, steps_of
from cmtrack.grouping import ComposedStep
from cmtrack.metrics.names import near
from cmtrack.names import join_names, quoted
from cmtrack.rows import Flips, Missed
from cmtrack.rows.flips import rows_needed
from cmtrack.statistics.inputs import IntArray
from cmtrack.statistics.predictions import Predictions

if TYPE_CHECKING:
    import pandas as pd

    from cmtrack.comparison.result import Comparison

KINDS = ("broken", "fixed", "changed")


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
        there = (
            f"it can be with {', '.join(paired[:10])}" if paired else "with no other run it can be"
        )
        why = reason.between(one, other)
        raise ValueError(
            f"{quoted(first)} cannot be compared with {quoted(second)} row by row: {why}; {there}"
        )
    rows_of(one), rows_of(other)
    return {first: one, second: other}


def _by_id(runs: dict[str, Evaluation]) -> tuple[dict[str, Evaluation], str] | None:
    """Evaluations of their shared rows, joined by id; None without ids, or without shared ones.

    Rows that not all have are left out, and rows whose labels differ; a sentence counts them.
    """
    labels = {e.labels for e in runs.values()}
    sides = [
        e.rows for e in runs.values() if isinstance(e.rows, Predictions) and e.rows.ids is not None
    ]
    ids = [side.ids for side in sides if side.ids is not None]
    if not 2 <= len(runs) == len(sides) or len(labels) > 1 or len({one.hashed for one in ids}) > 1:
        return None
    keys = [one.values if one.hashed else one.values.astype(str) for one in ids]
    shared = reduce(partial(np.intersect1d, assume_unique=True), keys)
    places = [
        np.flatnonzero(np.isin(key, shared))[np.argsort(key[np.isin(key, shared)])] for key in keys
    ]
    order = np.argsort(places[0])
    codes = np.array([side.actual[place[order]] for side, place in zip(sides, places, strict=True)])
    same = (codes == codes[0]).all(axis=0)
    if not same.any():
        return None
    names = [quoted(name) for name in runs]
    alone = ", ".join(
        f"{len(side) - len(shared):,}{' rows' if not k else ''} of "
        f"{name}{' only' if len(names) == 2 else ''}"
        for k, (side, name) in enumerate(zip(sides, names, strict=True))
    )
    many = (
        f"{join_names(names, len(names))} are compared in {int(same.sum()):,} rows of the same ids"
    )
    sentence = (
        f"{many}, whose places count; left out are {alone}, and {int((~same).sum()):,} relabelled"
    )
    parts = {
        name: evaluate_rows(side.take(place[order][same]), e)
        for (name, e), side, place in zip(runs.items(), sides, places, strict=True)
    }
    one, *others = parts.values()
    return (parts, sentence) if all(why_unpaired(one, other) is None for other in others) else None


def together_with(comparison: Comparison) -> dict[str, Evaluation]:
    """Judged runs of the same rows, by name, in the order of the ranking: those of the leader, or of the first run.

    Others are joined by their ids where no row is lost, or no two runs have the same rows; else a
    warning names them.

    Raises
    ------
    ValueError
        If fewer than two can be compared row by row.
    """
    order = {run.run_id: place for place, run in enumerate(comparison.runs)}
    runs = sorted(comparison.judged, key=lambda run: order.get(run.run_id, len(order)))
    runs = [run for run in runs if isinstance(run.evaluation, Evaluation)]
    first = next(
        (run.evaluation for run in runs if isinstance(run.evaluation.rows, Predictions)), None
    )
    moved = [
        run.evaluation if first is None else in_order_of(first, run.evaluation) for run in runs
    ]
    apart = unpaired_among(moved)
    named = {run.name: of_classes(e) for run, e in zip(runs, moved, strict=True)}
    paired = {name: e for k, (name, e) in enumerate(named.items()) if k not in apart}
    if not apart:
        return paired
    joined = _by_id(
        {
            name: e
            for name, e in named.items()
            if isinstance(e.rows, Predictions) and e.rows.ids is not None
        }
    )
    if joined and len(joined[0]) > len(paired):
        rows, least = next(iter(joined[0].values())).rows, next(iter(named.values())).rows
        if len(paired) < 2 or len(rows or ()) == len(least or ()):
            warnings.warn(joined[1], UserWarning, stacklevel=4)
            return joined[0]
    reasons = [
        (runs[k].name, reason) for k, reason in apart.items() if reason != Reason.ALONE.value
    ]
    why = "; ".join(f"{quoted(name)}: {reason}" for name, reason in reasons[:5])
    if len(paired) < 2:
        raise ValueError(
            f"two runs of the same rows are needed, with their rows: {why or 'there is one run'}"
        )
    warnings.warn(
        f"{len(reasons):,} of {len(runs):,} runs are left out: {why}", UserWarning, stacklevel=4
    )
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
    marks = {
        "broken": first & ~second,
        "fixed": second & ~first,
        "changed": one.predicted != other.predicted,
    }
    places = np.flatnonzero(marks[kind] & (one.design.repeats > 0))
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
    return flips_of(
        one,
        other,
        by,
        step_of(comparison, one),
        step_of(comparison, other),
        comparison.confidence_level,
    )


def flips_of(
    one: Evaluation,
    other: Evaluation,
    by: str | None,
    step: Any = None,
    step_2: Any = None,
    level: float = 0.95,
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
            raise ValueError(
                f"by must be None, 'class' or a column of segments, {list(segments)}, got "
                f"{by!r:.80}"
            )
        parts = segments[by].values, segments[by].codes
    right, right_2 = right_rows(ours, step), right_rows(theirs, step_2)
    changed = ours.predicted != theirs.predicted
    return Flips.of(
        right, right_2, changed, parts, ours.design.weights, ours.design.clusters, level
    )


def judged_by_flips(
    gate: Gate, evaluation: BaseEvaluation, baseline: BaseEvaluation, criterion: str
) -> GateResult:
    """A gate's result on the rows that an evaluation breaks or fixes against a baseline.

    Where not even the best outcome of so many rows passes the gate, that is the reason, whatever
    the outcome is.
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
    flips = flips_of(
        baseline, other, "class" if by_class else None, *steps, evaluation.confidence_level
    )
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
            return failed(
                f"no outcome of {n:,.5g} rows can pass: it takes {needed:,}", undecided=True
            )
    return gate.check({gate.metric: value}, {gate.metric: ends})


def missed(comparison: Comparison, at_least: int | None) -> Missed:
    """See :meth:`cmtrack.Comparison.missed`."""
    runs = together_with(comparison)
    least = len(runs) if at_least is None else at_least
    if (
        isinstance(least, bool)
        or not isinstance(least, (int, np.integer))
        or not 1 <= least <= len(runs)
    ):
        raise ValueError(
            f"at_least must be a number of runs from 1 to {len(runs)}, got {at_least!r}"
        )
    sides = {name: rows_of(evaluation) for name, evaluation in runs.items()}
    first_side = next(iter(sides.values()))
    misses = np.zeros(len(first_side), dtype=np.int64)
    for name, evaluation in runs.items():
        misses += ~right_rows(sides[name], step_of(comparison, evaluation))
    repeats = first_side.design.repeats
    counts = np.bincount(misses, repeats, minlength=len(runs) + 1).astype(np.int64)

    def make_rows() -> pd.DataFrame:
        places = np.flatnonzero((misses >= least) & (repeats > 0))
        places = places[np.argsort(-misses[places], kind="stable")]
        frame = frame_of(first_side, places, sides)
        frame.insert(1, "missed", misses[places])
        frame.attrs[TOTAL] = len(places)
        return frame

    return Missed(tuple(runs), least, counts, make_rows)
