"""Sentences on what is around a ranking: gates, runs that are left out, rows that are not paired."""

from __future__ import annotations

from cmtrack.comparison.gates import GateResult
from cmtrack.comparison.ranking import Ranking
from cmtrack.comparison.result import Comparison
from cmtrack.comparison.review.titles import and_list, plain_number
from cmtrack.tracking import words


def stopped(comparison: Comparison) -> list[str]:
    """Which gates stopped which runs, with the values that did."""
    said = []
    for gate in comparison.gates:
        found = [(s.name, r) for s in comparison.failed for r in s.gates if r.gate == gate and not r.passed]
        if len(found) == 1:
            said.append(f"{words.short(found[0][0], 40)} fails the gate {found[0][1]}.")
        elif found:
            texts = [f"{words.short(name, 40)} ({_what(result)})" for name, result in found]
            number = "" if len(found) == 2 else f"{len(found)} runs, "
            said.append(f"The gate {gate.text} stops {number}{and_list(texts, 2)}.")
    return said


def left_out(comparison: Comparison) -> list[str]:
    """Runs that are in no ranking, by reason."""
    return [f"Left out: {and_list(names, 4)} ({reason})." for reason, names in by_reason(comparison).items()]


def by_reason(comparison: Comparison) -> dict[str, list[str]]:
    """Names of the runs that are left out, by reason; the most frequent one first."""
    found: dict[str, list[str]] = {}
    for left in comparison.left_out:
        # what names the run itself is no reason of its own
        reason = left.reason.replace(f"run {left.run.run_id}", "the run") if left.run.run_id else left.reason
        found.setdefault(reason.rstrip("."), []).append(left.run.name)
    return dict(sorted(found.items(), key=lambda item: -len(item[1])))


def unpaired(ranking: Ranking) -> list[str]:
    """Which differences do not use that the rows are the same, and why that matters."""
    reasons: dict[str, list[str]] = {}
    for run in ranking.runs:
        if run.unpaired:
            reasons.setdefault(run.unpaired, []).append(run.name)
    if not reasons:
        return []
    every = sum(map(len, reasons.values())) == len(ranking.runs)
    if every and len(reasons) == 1:
        who, why = "all runs", next(iter(reasons))
    else:
        who = "; ".join(f"{and_list(names)} ({reason})" for reason, names in reasons.items())
        why = ""
    return [
        f"Not compared row by row: {who}{f' ({why})' if why else ''}. Their errors count as independent, which makes "
        "differences look less certain than they are on the same test rows: a real one may stay unseen."
    ]


def _what(result: GateResult) -> str:
    return result.reason or f"is {plain_number(result.value)}"
