"""Sentences on what stands around a ranking: gates, runs that are not ranked or not paired, identical runs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cmtrack.comparison.gates import GateResult
from cmtrack.comparison.ranking import RankedRun, Ranking
from cmtrack.comparison.result import Comparison, RunComparison
from cmtrack.evaluation import Evaluation
from cmtrack.names import quoted
from cmtrack.report.review.titles import Say, and_list, plain_number
from cmtrack.statistics.predictions import Predictions


def stopped(comparison: Comparison, say: Say) -> list[str]:
    """Which gates stopped which runs, with the values that did."""
    said = []
    for gate in comparison.gates:
        found = [(s.name, r) for s in comparison.failed for r in s.gates if r.gate == gate and not r.passed]
        if len(found) == 1:
            said.append(f"{say(found[0][0])} fails the gate {found[0][1]}.")
        elif found:
            texts = [f"{say(name)} ({_what(result)})" for name, result in found]
            said.append(f"{len(found)} runs fail the gate {gate.text}: {and_list(texts, 2)}.")
    return said


def left_out(comparison: Comparison, say: Say) -> list[str]:
    """Runs that could not be ranked, by reason."""
    return [
        f"Not ranked: {and_list([say(name) for name in names], 4)} ({reason})."
        for reason, names in by_reason(comparison).items()
    ]


def passed_over(comparison: Comparison, say: Say) -> list[str]:
    """Runs behind the end of the short list, where no note says it already."""
    if not comparison.passed_over or any("(limit)" in note for note in comparison.notes):
        return []
    names = and_list([say(run.name) for run in comparison.passed_over])
    return [f"Not ranked, as their logged values are worse: {names}."]


def by_reason(comparison: Comparison) -> dict[str, list[str]]:
    """Names of the runs that are left out, by reason; the most frequent one first."""
    found: dict[str, list[str]] = {}
    for left in comparison.left_out:
        # what names the run itself is no reason of its own
        reason = left.reason.replace(f"run {left.run.run_id}", "the run") if left.run.run_id else left.reason
        found.setdefault(reason.rstrip("."), []).append(left.run.name)
    return dict(sorted(found.items(), key=lambda item: -len(item[1])))


def unpaired(ranking: Ranking, say: Say) -> list[str]:
    """Which differences do not use that the rows are the same, and why that matters."""
    reasons: dict[str, list[str]] = {}
    for run in ranking.runs:
        if run.unpaired:
            reasons.setdefault(run.unpaired, []).append(say(run.name))
    if not reasons:
        return []
    if sum(map(len, reasons.values())) == len(ranking.runs) and len(reasons) == 1:
        who = f"all runs ({next(iter(reasons))})"
    else:
        who = "; ".join(f"{and_list(names)} ({reason})" for reason, names in reasons.items())
    return [
        f"Not compared row by row: {who}. Their errors count as independent, so that differences look less certain "
        "than they are, and a real one may be missed."
    ]


def positives(comparison: Comparison, say: Say) -> list[str]:
    """A warning where runs of one comparison have different positive groups."""
    found: dict[str, list[str]] = {}
    for run in comparison.runs if isinstance(comparison, RunComparison) else ():
        if isinstance(run.evaluation, Evaluation) and run.evaluation.positive is not None:
            found.setdefault(quoted(run.evaluation.positive), []).append(say(run.name))
    if len(found) < 2:
        return []
    groups = "; ".join(f"{positive} in {and_list(names)}" for positive, names in found.items())
    return [
        f"The runs have different positive groups: {groups}. Their metrics binary/… answer different questions and "
        "must not be compared, here or in MLflow's charts."
    ]


def identical(comparison: Comparison, say: Say) -> list[str]:
    """Runs of one ranking with identical predictions."""
    said = []
    for ranking in comparison.rankings:
        if not isinstance(ranking, Ranking):
            continue
        groups = ([say(run.name) for run in group] for group in _identical(ranking.runs))
        said += [f"{and_list(names)} have identical predictions." for names in groups]
    return said


def _identical(runs: Sequence[RankedRun]) -> list[list[RankedRun]]:
    groups: list[list[RankedRun]] = []
    for run in runs:
        if not isinstance(run.evaluation.rows, Predictions):
            continue
        home = next((group for group in groups if _same(group[0], run)), None)
        if home is None:
            groups.append([run])
        else:
            home.append(run)
    return [group for group in groups if len(group) > 1]


def _same(first: RankedRun, second: RankedRun) -> bool:
    a, b = first.evaluation.rows, second.evaluation.rows
    if not (isinstance(a, Predictions) and isinstance(b, Predictions)) or first.value != second.value:
        return False
    if first.evaluation.labels != second.evaluation.labels or not np.array_equal(a.predicted, b.predicted):
        return False
    if a.probabilities is None or b.probabilities is None:
        return a.probabilities is b.probabilities
    return np.array_equal(a.probabilities, b.probabilities)


def _what(result: GateResult) -> str:
    return result.reason or plain_number(result.value)
