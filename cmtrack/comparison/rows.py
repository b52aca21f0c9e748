"""Rows that differ between the runs of a comparison, and rows that most runs predict wrongly.

Runs are compared row by row if they were evaluated on the same rows and kept their rows.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
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
from cmtrack.evaluation.gates import Gate, GateResult, with_rows_more
from cmtrack.evaluation.rows import TOTAL, certainty, frame_of, right_rows, rows_of, steps_of
from cmtrack.grouping import ComposedStep
from cmtrack.metrics.intervals import normal_quantile
from cmtrack.metrics.names import near
from cmtrack.names import join_names, quoted
from cmtrack.rows import Flips, Missed
from cmtrack.rows.flips import rows_needed
from cmtrack.statistics.inputs import BoolArray, IntArray
from cmtrack.statistics.predictions import Predictions

if TYPE_CHECKING:
    import pandas as pd

    from cmtrack.comparison.result import Comparison

KINDS = ("broken", "fixed", "changed")


def run_called(comparison: Comparison, name: str) -> tuple[str, Evaluation]:
    """Return the name and the evaluation of the run that has a given name or id.

    Raises
    ------
    KeyError
        If no run has this name or id.
    """
    for run in comparison.judged:
        if name in (run.name, run.run_id):
            return run.name, of_classes(run.evaluation)
    names = [run.name for run in comparison.judged]
    raise KeyError(
        f"there is no run named {name!r:.80}{near(str(name), names)}; runs are {names[:10]}"
    )


def pair_of(comparison: Comparison, a: str, b: str) -> dict[str, Evaluation]:
    """Return two named runs' evaluations of the same rows, with classes in the same order.

    Raises
    ------
    KeyError
        If a run does not exist.
    ValueError
        If the runs cannot be compared row by row. The message states the reason, and names runs
        that can be compared.
    """
    (name_a, first), (name_b, second) = (run_called(comparison, name) for name in (a, b))
    if name_a == name_b:
        raise ValueError(f"a and b must be different runs, got {quoted(name_a)} twice")
    second = in_order_of(first, second)
    reason = why_unpaired(first, second)
    if reason in (Reason.OTHER_ROWS, Reason.OTHER_IDS, Reason.RELABELLED):
        joined = _join_by_id({name_a: first, name_b: second})
        if joined is not None:
            evaluations, sentence = joined
            warnings.warn(sentence, UserWarning, stacklevel=4)
            return evaluations
    if reason is not None:
        paired = [
            quoted(run.name)
            for run in comparison.judged
            if run.name != name_a
            and why_unpaired(first, in_order_of(first, run.evaluation)) is None
        ]
        advice = "no other run can be compared with it"
        if paired:
            advice = f"compare it with {', '.join(paired[:10])}"
        why = reason.between(first, second)
        raise ValueError(
            f"{quoted(name_a)} cannot be compared with {quoted(name_b)} row by row: {why}; {advice}"
        )
    evaluations = {name_a: first, name_b: second}
    for evaluation in evaluations.values():
        rows_of(evaluation)  # ValueError if the rows are not of single labels.
    return evaluations


def _rows_with_ids(runs: Mapping[str, Evaluation]) -> dict[str, Predictions]:
    """Return the rows of all runs whose rows were stored with ids, by the run's name."""
    sides = {}
    for name, evaluation in runs.items():
        if isinstance(evaluation.rows, Predictions) and evaluation.rows.ids is not None:
            sides[name] = evaluation.rows
    return sides


def _join_by_id(runs: Mapping[str, Evaluation]) -> tuple[dict[str, Evaluation], str] | None:
    """Return evaluations of the rows whose ids all runs share, and a sentence on other rows.

    Rows whose labels differ between runs are also excluded. The result is None if a run has no ids,
    if only some runs have hashed ids, or if no row is shared by all runs.
    """
    sides = _rows_with_ids(runs)
    labels = {evaluation.labels for evaluation in runs.values()}
    ids = [side.ids for side in sides.values() if side.ids is not None]
    forms = {row_ids.hashed for row_ids in ids}
    if len(runs) < 2 or len(sides) < len(runs) or len(labels) > 1 or len(forms) > 1:
        return None
    keys = [row_ids.values if row_ids.hashed else row_ids.values.astype(str) for row_ids in ids]
    shared = reduce(partial(np.intersect1d, assume_unique=True), keys)
    places = []
    for key in keys:
        inside = np.flatnonzero(np.isin(key, shared))
        places.append(inside[np.argsort(key[inside])])
    order = np.argsort(places[0])  # Keep the shared rows in the order of the first run.
    places = [place[order] for place in places]
    codes = [side.actual[place] for side, place in zip(sides.values(), places, strict=True)]
    same = (np.array(codes) == codes[0]).all(axis=0)
    if not same.any():
        return None
    evaluations = {}
    for (name, side), place in zip(sides.items(), places, strict=True):
        evaluations[name] = evaluate_rows(side.take(place[same]), runs[name])
    first, *others = evaluations.values()
    if any(why_unpaired(first, other) is not None for other in others):
        return None
    n_unshared = {name: len(side) - len(shared) for name, side in sides.items()}
    return evaluations, _sentence_on_join(n_unshared, same)


def _sentence_on_join(n_unshared: Mapping[str, int], same: BoolArray) -> str:
    """Return a sentence about rows that were joined by their ids.

    ``n_unshared``: for each run, the number of its rows that are missing in another run.
    ``same``: for each shared row, whether its label is the same in all runs.
    """
    names = [quoted(name) for name in n_unshared]
    counts = [f"{n:,} of {name}" for n, name in zip(n_unshared.values(), names, strict=True)]
    counts[0] = counts[0].replace(" of ", " rows of ", 1)
    if len(names) == 2:
        counts = [f"{count} only" for count in counts]
    compared = f"{join_names(names, len(names))} are compared on {int(same.sum()):,} rows"
    left_out = f"{', '.join(counts)}, and {int((~same).sum()):,} with different labels"
    return (
        f"{compared} with the same ids. Row numbers count only these rows. Not compared: {left_out}"
    )


def together_with(comparison: Comparison) -> dict[str, Evaluation]:
    """Return the runs that were evaluated on the same rows, by name, in the ranking's order.

    The function uses the rows of the leader or, if no run is ranked, of the first run. Runs on
    different rows are joined by row ids if all rows of the leader remain, or if no two runs have
    the same rows. If runs cannot be joined, a warning names the runs on different rows.

    Raises
    ------
    ValueError
        If fewer than two runs can be compared row by row.
    """
    order = {run.run_id: place for place, run in enumerate(comparison.runs)}
    runs = sorted(comparison.judged, key=lambda run: order.get(run.run_id, len(order)))
    evaluations = {
        run.name: run.evaluation for run in runs if isinstance(run.evaluation, Evaluation)
    }
    with_rows = [e for e in evaluations.values() if isinstance(e.rows, Predictions)]
    if with_rows:
        for name, evaluation in evaluations.items():
            evaluations[name] = in_order_of(with_rows[0], evaluation)
    names = list(evaluations)
    reasons_by_place = unpaired_among(list(evaluations.values()))
    unpaired = {names[place]: reason for place, reason in reasons_by_place.items()}
    paired = {name: e for name, e in evaluations.items() if name not in unpaired}
    if not unpaired:
        return paired
    joined = _join_by_id({name: evaluations[name] for name in _rows_with_ids(evaluations)})
    if joined is not None:
        shared, sentence = joined
        n_shared = len(next(iter(shared.values())).rows or ())
        n_first = len(next(iter(evaluations.values())).rows or ())
        if len(shared) > len(paired) and (len(paired) < 2 or n_shared == n_first):
            warnings.warn(sentence, UserWarning, stacklevel=4)
            return shared
    reasons = [
        f"{quoted(name)}: {reason}"
        for name, reason in unpaired.items()
        if reason != Reason.ALONE.value
    ]
    why = "; ".join(reasons[:5])
    if len(paired) < 2:
        raise ValueError(
            f"at least two runs must have the same rows: {why or 'there is only one run'}"
        )
    warnings.warn(
        f"{len(reasons):,} of {len(evaluations):,} runs are not compared row by row: {why}",
        UserWarning,
        stacklevel=4,
    )
    return paired


def step_of(metric: Comparison | str, evaluation: Evaluation) -> ComposedStep | None:
    """Return the step that decides which predictions are correct; None for the classes.

    The step is part of the name of a metric, or of the criterion of a comparison.
    """
    if not isinstance(metric, str):
        metric = metric.criterion.metrics[0]
    section, *rest = metric.split("/")
    if section == "binary":
        return evaluation.scored
    if section == "reduced":
        return steps_of(evaluation).get(rest[0])
    return None


def rows(comparison: Comparison, a: str, b: str, kind: str) -> pd.DataFrame:
    """Implement :meth:`cmtrack.Comparison.rows`."""
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {kind!r:.80}")
    pair = pair_of(comparison, a, b)
    sides = {name: rows_of(evaluation) for name, evaluation in pair.items()}
    first, second = sides.values()
    first_right, second_right = (
        right_rows(rows_of(evaluation), step_of(comparison, evaluation))
        for evaluation in pair.values()
    )
    marks = {
        "broken": first_right & ~second_right,
        "fixed": second_right & ~first_right,
        "changed": first.predicted != second.predicted,
    }
    # Ignore rows of weight 0.
    places = np.flatnonzero(marks[kind] & (first.design.repeats > 0))
    first_certainty = certainty(first, places, label=True)
    second_certainty = certainty(second, places, label=True)
    if first_certainty is not None and second_certainty is not None:
        fall = first_certainty - second_certainty
        order = {"broken": -fall, "fixed": fall, "changed": -np.abs(fall)}[kind]
        places = places[np.argsort(order, kind="stable")]
    frame = frame_of(first, places, sides)
    frame.attrs[TOTAL] = len(places)
    return frame


def flips(comparison: Comparison, a: str, b: str, by: str | None) -> Flips:
    """Implement :meth:`cmtrack.Comparison.flips`."""
    first, second = pair_of(comparison, a, b).values()
    return flips_of(first, second, by, comparison, comparison.confidence_level)


def flips_of(
    first: Evaluation,
    second: Evaluation,
    by: str | None,
    metric: Comparison | str,
    level: float = 0.95,
) -> Flips:
    """Return the flipped predictions between two evaluations of the same rows.

    ``metric``: metric that determines the step at which a prediction counts as correct; see
    :func:`step_of`.

    Raises
    ------
    ValueError
        If the rows have no segments by the column ``by``.
    """
    first_rows = rows_of(first)
    second_rows = rows_of(second)
    parts: tuple[tuple[Any, ...], IntArray] | None = None
    if by == "class":
        parts = (first.labels, first_rows.actual)
    elif by is not None:
        segments = {column.name: column for column in second_rows.segments}
        segments |= {column.name: column for column in first_rows.segments}
        if by not in segments:
            raise ValueError(
                f"by must be None, 'class' or a column of segments, {list(segments)}, got "
                f"{by!r:.80}"
            )
        parts = (segments[by].values, segments[by].codes)
    return Flips.of(
        right_rows(first_rows, step_of(metric, first)),
        right_rows(second_rows, step_of(metric, second)),
        first_rows.predicted != second_rows.predicted,
        parts,
        first_rows.design.weights,
        first_rows.design.clusters,
        level,
    )


def judged_by_flips(
    gate: Gate, evaluation: BaseEvaluation, baseline: BaseEvaluation, criterion: str
) -> GateResult:
    """Return the result of a gate on the rows that an evaluation breaks or fixes.

    The evaluation's predictions are compared with the baseline's predictions. If even the best
    possible outcome on this number of rows would not pass the gate, the result is undecided, and
    its reason states this.
    """
    failed = partial(GateResult, gate, math.nan, False)
    if not (isinstance(evaluation, Evaluation) and isinstance(baseline, Evaluation)):
        return failed("flips need evaluations of single labels")
    second = in_order_of(baseline, evaluation)
    is_baseline = evaluation is baseline
    reason = None if is_baseline else why_unpaired(baseline, second)
    if reason is not None or not isinstance(baseline.rows, Predictions):
        why = "they have no rows" if reason is None else reason.between(baseline, second)
        return failed(f"the run and the baseline cannot be compared row by row: {why}")
    by_class = gate.metric.count("/") > 1
    by = "class" if by_class else None
    flips = flips_of(baseline, second, by, criterion, evaluation.confidence_level)
    metrics = flips.metrics(by_class)
    if gate.metric not in metrics:
        return failed(f"the rows have no {gate.metric}{near(gate.metric, metrics)}")
    if is_baseline:
        return gate.check({gate.metric: 0.0}, {gate.metric: (0.0, 0.0)})
    value, ends = metrics[gate.metric]
    if gate.end and math.isfinite(value):
        n = flips.rows_of(gate.metric)
        needed = _rows_to_pass(gate, flips.level)
        if n < needed:
            return failed(
                f"no outcome of {n:,.5g} rows can pass: the number of rows that the gate needs "
                f"is {needed:,}",
                undecided=True,
            )
    result = gate.check({gate.metric: value}, {gate.metric: ends})
    error = (ends[1] - ends[0]) / (2 * normal_quantile(flips.level))
    return with_rows_more(result, value, error, evaluation.n_samples, flips.level)


def _rows_to_pass(gate: Gate, level: float) -> int:
    """Return the fewest rows with which a run can pass a gate on the end of an interval."""

    def passes(low: float, high: float) -> bool:
        return gate.keeps(high if gate.end == "high" else low)

    best_share = 0 if gate.operator.startswith("<") else 1
    return rows_needed(passes, level, best_share)


def missed(comparison: Comparison, at_least: int | None) -> Missed:
    """Implement :meth:`cmtrack.Comparison.missed`."""
    runs = together_with(comparison)
    least = len(runs) if at_least is None else at_least
    is_number = isinstance(least, (int, np.integer)) and not isinstance(least, bool)
    if not is_number or not 1 <= least <= len(runs):
        raise ValueError(
            f"at_least must be a number of runs from 1 to {len(runs)}, got {at_least!r}"
        )
    sides = {name: rows_of(evaluation) for name, evaluation in runs.items()}
    first = next(iter(sides.values()))
    misses = np.zeros(len(first), dtype=np.int64)
    for name, evaluation in runs.items():
        misses += ~right_rows(sides[name], step_of(comparison, evaluation))
    repeats = first.design.repeats
    counts = np.bincount(misses, repeats, minlength=len(runs) + 1).astype(np.int64)

    def make_rows() -> pd.DataFrame:
        places = np.flatnonzero((misses >= least) & (repeats > 0))
        places = places[np.argsort(-misses[places], kind="stable")]
        frame = frame_of(first, places, sides)
        frame.insert(1, "missed", misses[places])
        frame.attrs[TOTAL] = len(places)
        return frame

    return Missed(tuple(runs), least, counts, make_rows)
