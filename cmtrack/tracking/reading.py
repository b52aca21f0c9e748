"""From listed runs to judged candidates: read, check, gate."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from cmtrack.base import BaseEvaluation
from cmtrack.comparison.criterion import DEFAULTS, FALLBACK, Criterion
from cmtrack.comparison.differences import Difference, paired_differences
from cmtrack.comparison.gates import Gate, GateResult, check_known
from cmtrack.comparison.ranking import Candidate, StoppedRun
from cmtrack.comparison.result import LeftOut
from cmtrack.metrics.metric import Metric
from cmtrack.metrics.names import near
from cmtrack.tracking.fetching import Fetched, Progress, Wanted, fetch, undefined_reason
from cmtrack.tracking.names import tag
from cmtrack.tracking.run_sources import Source
from cmtrack.tracking.runs import TrackedRun
from cmtrack.tracking.shortlist import Shortlist, shorten


@dataclass(frozen=True, eq=False)
class Read:
    """Runs with their evaluations.

    Attributes
    ----------
    candidates : tuple of Candidate
        Those with the criterion defined, or stopped by a gate anyway.
    left_out : tuple of LeftOut
    baseline : Candidate or None
    notes : tuple of str
    """

    candidates: tuple[Candidate, ...]
    left_out: tuple[LeftOut, ...]
    baseline: Candidate | None
    notes: tuple[str, ...]

    @property
    def passed(self) -> tuple[Candidate, ...]:
        """Those that pass all gates."""
        return tuple(candidate for candidate in self.candidates if candidate.passed)

    @property
    def failed(self) -> tuple[StoppedRun, ...]:
        """Those that do not."""
        return tuple(StoppedRun(c.run, c.gates) for c in self.candidates if not c.passed)


@dataclass(frozen=True, eq=False)
class Reader:
    """Reads runs of one source for one criterion."""

    source: Source
    wanted: Wanted
    gates: Sequence[Gate]
    progress: Progress

    def fetch(self, runs: Iterable[TrackedRun], rows: bool = True) -> Fetched:
        """The evaluations of runs, from memory or from the store."""
        runs = list(runs)
        wanted = replace(self.wanted, rows=rows)
        if not self.source.clients:
            at_hand = {run.run_id: wanted.prepared(self.source.evaluations[run.run_id]) for run in runs}
            return Fetched(at_hand, {})
        return fetch(runs, self.source.clients, wanted, self.progress)

    def default_criterion(self, runs: Sequence[TrackedRun]) -> Criterion:
        """The first default metric that a run has; where it is undefined for others, that is said of them."""
        first = sorted(runs, key=lambda run: run.run_id)[:1] if self.source.clients else runs
        for name in DEFAULTS:
            if self.wanted.grouping is not None or not self.source.clients:
                found = any(name in e.metrics for e in self.fetch(first, rows=False).evaluations.values())
            else:
                found = any(_has(run, name, self.wanted.prefix) for run in runs)
            if found:
                return Criterion((name,))
        return Criterion((FALLBACK,))

    def narrowed(self, listed: Shortlist, criterion: Criterion, limit: int, beside: frozenset[str]) -> Shortlist:
        """The short list cut to its length where the listing could not order it: the evaluations are read for that."""
        if len(listed.chosen) <= limit or not self.source.clients or not criterion.single:
            return listed
        prefix, grouping = self.wanted.prefix, self.wanted.grouping
        if all(prefix + criterion.metrics[0] in run.metrics for run in listed.chosen) and grouping is None:
            return listed  # ordered already, by data set
        read = self.fetch(listed.chosen, rows=False).evaluations
        current = [
            replace(run, metrics={prefix + name: value for name, value in read[run.run_id].metrics.items()})
            if run.run_id in read
            else replace(run, metrics={})
            for run in listed.chosen
        ]
        known = {run.run_id: run for run in listed.chosen}
        again = shorten(
            current, criterion, self.gates, limit=limit, prefix=prefix, grouping=grouping, current=True, read=beside
        )
        return Shortlist(
            tuple(known[run.run_id] for run in again.chosen),
            (*listed.stopped, *(StoppedRun(known[stop.run_id], stop.gates) for stop in again.stopped)),
            (*listed.passed_over, *(known[run.run_id] for run in again.passed_over)),
            listed.incomplete,
        )

    def read(self, listed: Shortlist, criterion: Criterion, baseline: TrackedRun | None) -> Read:
        """Read the short list and judge it by the gates.

        Raises
        ------
        ValueError
            If no run has one of the metrics, or the baseline cannot be read.
        """
        runs = {run.run_id: run for run in listed.chosen}
        if baseline is not None:
            runs.setdefault(baseline.run_id, baseline)
        read = self.fetch(runs.values())
        if baseline is not None and baseline.run_id not in read.evaluations:
            raise ValueError(f"the baseline {baseline.name!r} cannot be read: {read.problems[baseline.run_id]}")
        known = {name for evaluation in read.evaluations.values() for name in evaluation.metrics}
        if read.evaluations:
            _check_criterion(criterion, known)
            _check_declarations(criterion, read.evaluations.values())
            check_known(self.gates, known)
        base = None if baseline is None else Candidate(baseline, read.evaluations[baseline.run_id])
        left_out = [LeftOut(runs[run_id], reason) for run_id, reason in read.problems.items()]
        candidates = []
        for run_id, run in runs.items():
            if run_id not in read.evaluations:
                continue
            evaluation = read.evaluations[run_id]
            candidate = Candidate(run, evaluation, tuple(self._check(gate, evaluation, base) for gate in self.gates))
            reasons = [undefined_reason(evaluation, name) for name in criterion.metrics]
            if any(reasons) and candidate.passed:
                left_out.append(LeftOut(run, "; ".join(filter(None, reasons))))
            else:
                candidates.append(candidate)
        return Read(tuple(candidates), tuple(left_out), base, read.notes)

    def _check(self, gate: Gate, evaluation: BaseEvaluation, baseline: Candidate | None) -> GateResult:
        return gate.check(evaluation.metrics, evaluation.intervals, _difference(gate, evaluation, baseline))


def _has(run: TrackedRun, name: str, prefix: str) -> bool:
    """Whether a run logged a metric, or says that it is undefined."""
    return prefix + name in run.metrics or name in run.tags.get(tag("undefined", prefix), "").split(", ")


def _difference(gate: Gate, evaluation: BaseEvaluation, baseline: Candidate | None) -> Difference | None:
    if not gate.difference or baseline is None:
        return None
    if gate.metric not in evaluation.metrics or gate.metric not in baseline.evaluation.metrics:
        return None
    return paired_differences(evaluation, baseline.evaluation, metrics=[gate.metric])[gate.metric]


def _check_declarations(criterion: Criterion, evaluations: Iterable[BaseEvaluation]) -> None:
    """Refuse runs that mean different things by one name of a metric of the user's own."""
    seen: dict[str, Metric] = {}
    for evaluation in evaluations:
        for metric in getattr(evaluation, "extra_metrics", ()):
            if metric.name not in criterion.metrics:
                continue
            other = seen.setdefault(metric.name, metric)
            for word in ("of", "better", "low", "high", "interval"):
                ours, theirs = getattr(other, word), getattr(metric, word)
                if ours != theirs:
                    raise ValueError(
                        f"the runs declare {metric.name!r} with different {word!r}, {ours!r} and {theirs!r}: give one "
                        "definition for all of them, extra_metrics=[Metric(...)]"
                    )


def _check_criterion(criterion: Criterion, known: set[str]) -> None:
    for name in criterion.metrics:
        if name not in known:
            raise ValueError(f"no run has the metric {name!r}{near(name, known)}")
