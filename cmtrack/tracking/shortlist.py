"""Which runs are looked at closely, decided from what the tracking store lists of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cmtrack.comparison.criterion import Criterion, distance_from_best, reads
from cmtrack.comparison.gates import Gate, GateResult
from cmtrack.comparison.ranking import StoppedRun
from cmtrack.grouping import Grouping
from cmtrack.tracking.names import KIND_TAG, REVIEW, tag
from cmtrack.tracking.runs import TrackedRun


@dataclass(frozen=True)
class Shortlist:
    """Runs sorted by what is known before any artifact is read.

    Attributes
    ----------
    chosen : tuple of TrackedRun
        To be looked at, best logged value first where the criterion is logged.
    stopped : tuple of StoppedRun
        Fail a gate by their logged value.
    passed_over : tuple of TrackedRun
        Behind the short list's end by their logged value.
    incomplete : tuple of (TrackedRun, str)
        Without a complete evaluation, and why.
    """

    chosen: tuple[TrackedRun, ...]
    stopped: tuple[StoppedRun, ...]
    passed_over: tuple[TrackedRun, ...]
    incomplete: tuple[tuple[TrackedRun, str], ...]


def shorten(
    runs: Iterable[TrackedRun],
    criterion: Criterion,
    gates: Sequence[Gate],
    *,
    limit: int,
    prefix: str = "",
    grouping: Grouping | None = None,
    current: bool = False,
    read: frozenset[str] = frozenset(),
) -> Shortlist:
    """Make the short list: per data set at most ``limit`` runs that pass the gates by their logged values.

    A value that was not logged decides nothing here: such a run stays on the list until its evaluation is read.
    ``current`` says that the runs' metrics are those under the grouping that is asked for; ``read`` what the
    comparison reads beside the labels ("grouping", "positive").
    """
    complete, incomplete = [], []
    for run in runs:
        if run.tags.get(KIND_TAG) == REVIEW:
            continue  # an earlier comparison, not a model
        reason = run.why_incomplete(prefix)
        if reason:
            incomplete.append((run, reason))
        else:
            complete.append(run)
    told = [gate for gate in gates if gate.of_value and (current or still_true(gate.metric, grouping))]
    stopped, passing = [], []
    for run in complete:
        results = tuple(_logged_gate(gate, run, prefix) for gate in told if prefix + gate.metric in run.metrics)
        if all(result.passed for result in results):
            passing.append(run)
        else:
            stopped.append(StoppedRun(run, results))
    chosen: list[TrackedRun] = []
    passed_over: list[TrackedRun] = []
    for cohort in _cohorts(passing, prefix, read if grouping is None else frozenset()).values():
        told_in_order = criterion.single and (current or still_true(criterion.metrics[0], grouping))
        ordered = _ordered(cohort, criterion.metrics[0], prefix) if told_in_order else None
        chosen += cohort if ordered is None else ordered[:limit]
        passed_over += [] if ordered is None else ordered[limit:]
    return Shortlist(tuple(chosen), tuple(stopped), tuple(passed_over), tuple(incomplete))


def still_true(metric: str, grouping: Grouping | None) -> bool:
    """Whether a logged value still holds under another grouping."""
    return grouping is None or not reads(metric)


def _logged_gate(gate: Gate, run: TrackedRun, prefix: str) -> GateResult:
    return gate.check({gate.metric: run.metrics[prefix + gate.metric]}, {})


def _cohorts(runs: Sequence[TrackedRun], prefix: str, read: frozenset[str]) -> dict[object, list[TrackedRun]]:
    names = ("labels_digest", "row_ids_digest", *sorted(read))
    out: dict[object, list[TrackedRun]] = {}
    for run in runs:
        out.setdefault(tuple(run.tags.get(tag(name, prefix)) for name in names), []).append(run)
    return out


def _ordered(runs: list[TrackedRun], metric: str, prefix: str) -> list[TrackedRun] | None:
    """Best logged value first; None where no run logged the metric."""
    name = prefix + metric
    if not any(name in run.metrics for run in runs):
        return None

    def key(run: TrackedRun) -> float:
        value = run.metrics.get(name, math.nan)
        return distance_from_best(metric, value) if math.isfinite(value) else math.inf

    return sorted(runs, key=key)
