"""Runs as stores list them, and the short list of those to read: decided before any artifact is read."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from cmtrack.comparison.comparability import Traits, split
from cmtrack.comparison.compare import CompareOptions, Progress
from cmtrack.comparison.criterion import Criterion, distance_from_best, reads
from cmtrack.comparison.gates import Gate, GateResult
from cmtrack.comparison.run import LeftOut, StoppedRun, unique_names
from cmtrack.grouping import Grouping
from cmtrack.metrics.catalog import lookup
from cmtrack.tracking.names import KIND_TAG, REVIEW, tag
from cmtrack.tracking.runs import (
    TrackedRun,
    active_experiment_id,
    as_references,
    client_for,
    experiment_ids,
    find_all,
    search,
    shown_uri,
)

if TYPE_CHECKING:
    from mlflow import MlflowClient


@dataclass(frozen=True, eq=False)
class Listed:
    """Runs that stores list, sorted by what is known before any artifact is read.

    Attributes
    ----------
    runs : tuple of TrackedRun
        To be read, under distinct names; best logged value first where they are reduced by it.
    clients : dict of str to MlflowClient
        By tracking URI.
    truncated : bool
        Whether a store holds more runs than were asked for.
    stopped : tuple of StoppedRun
        Fail a gate by their logged value.
    passed_over : tuple of TrackedRun
        Behind the short list's end by their logged value.
    incomplete : tuple of LeftOut
        Without a complete evaluation.
    """

    runs: tuple[TrackedRun, ...]
    clients: dict[str, MlflowClient] = field(default_factory=dict)
    truncated: bool = False
    stopped: tuple[StoppedRun, ...] = ()
    passed_over: tuple[TrackedRun, ...] = ()
    incomplete: tuple[LeftOut, ...] = ()

    def of(self, known: Mapping[str, TrackedRun]) -> Listed:
        """The same with runs as they are known by their ids."""
        return replace(
            self,
            runs=tuple(known[run.run_id] for run in self.runs),
            stopped=tuple(StoppedRun(known.get(stop.run_id, stop.run), stop.gates) for stop in self.stopped),
            passed_over=tuple(known.get(run.run_id, run) for run in self.passed_over),
        )


def list_runs(runs: Any, options: CompareOptions, progress: Progress, *, order: Criterion | None) -> Listed:
    """List runs of references, or of experiments, in one store or several; the best first where they are many.

    Raises
    ------
    ValueError, TypeError
        If a run, an experiment or a filter is not one.
    ConnectionError
        If a tracking server does not answer.
    """
    if runs is not None and options.filter_string and not options.experiment_names:
        raise ValueError("filter_string filters experiments: give experiment_names with it, or leave out the filter")
    clients = {client.tracking_uri: client for client in map(client_for, _uris(options.tracking_uri))}
    found: dict[str, TrackedRun] = {}
    if runs is not None:
        references = as_references(runs)
        everywhere = list(clients.values())
        for run in find_all(
            references, lambda _: everywhere, lambda done: progress("finding runs", done, len(references))
        ):
            found.setdefault(run.run_id, run)
    truncated = False
    if runs is None or options.experiment_names:
        given = options.experiment_names
        names = [given] if isinstance(given, str) else list(given or ())
        for client in clients.values():
            before = len(found)
            ids = _experiments(client, names, several=len(clients) > 1)
            # one more than wanted tells whether there are more
            most = None if options.max_runs is None else options.max_runs + 1
            listed = search(
                client,
                ids,
                options.filter_string,
                _order_by(order, options.prefix),
                most,
                lambda n: progress("listing runs", n, 0),
            )
            for run in listed:
                found.setdefault(run.run_id, run)
            if options.max_runs is not None and len(found) - before > options.max_runs:
                found.popitem()
                truncated = True
        if names and not found and len(clients) > 1:
            _check_found(names, list(clients.values()))
    label = unique_names({run_id: run.name for run_id, run in found.items()})
    return Listed(tuple(replace(run, name=label[run.run_id]) for run in found.values()), clients, truncated)


def _uris(given: str | Sequence[str] | None) -> list[str | None]:
    return [given] if given is None or isinstance(given, str) else list(given)


def _experiments(client: MlflowClient, names: list[str], several: bool) -> list[str]:
    if not names:
        if several:
            return [str(e.experiment_id) for e in client.search_experiments(max_results=1000)]
        return [active_experiment_id()]
    if not several:
        return experiment_ids(client, names)
    return [str(e.experiment_id) for e in map(client.get_experiment_by_name, names) if e is not None]


def _check_found(names: list[str], clients: Sequence[MlflowClient]) -> None:
    """With several stores, an experiment must be in one of them."""
    for name in names:
        if all(client.get_experiment_by_name(name) is None for client in clients):
            raise ValueError(f"there is no experiment {name!r} in {', '.join(map(shown_uri, clients))}")


def _order_by(order: Criterion | None, prefix: str) -> list[str]:
    """The store's own order, so that what is cut off is the worst."""
    if order is None or not order.single or "`" in prefix:
        return []
    better = lookup(order.metrics[0]).better
    if better == "nearest zero":
        return []
    return [f"metrics.`{prefix}{order.metrics[0]}` {'DESC' if better == 'higher' else 'ASC'}"]


def reduced(
    listed: Listed,
    criterion: Criterion,
    gates: Sequence[Gate],
    prefix: str = "",
    *,
    limit: int,
    grouping: Grouping | None = None,
    current: bool = False,
    read: frozenset[str] = frozenset(),
) -> Listed:
    """Make the short list: per data set at most ``limit`` runs that pass the gates by their logged values.

    A value that was not logged decides nothing here: such a run stays on the list until its evaluation is read.
    ``current`` says that the runs' metrics are those under the grouping that is asked for; ``read`` what the
    comparison reads beside the labels ("grouping", "positive").
    """
    complete, incomplete = [], list(listed.incomplete)
    for run in listed.runs:
        if run.tags.get(KIND_TAG) == REVIEW:
            continue  # an earlier comparison, not a model
        reason = run.why_incomplete(prefix)
        if reason:
            incomplete.append(LeftOut(run, reason))
        else:
            complete.append(run)
    told = [gate for gate in gates if gate.of_value and (current or still_true(gate.metric, grouping))]
    stopped, passing = list(listed.stopped), []
    for run in complete:
        results = tuple(_logged_gate(gate, run, prefix) for gate in told if prefix + gate.metric in run.metrics)
        if all(result.passed for result in results):
            passing.append(run)
        else:
            stopped.append(StoppedRun(run, results))
    chosen: list[TrackedRun] = []
    passed_over = list(listed.passed_over)
    told_in_order = criterion.single and (current or still_true(criterion.metrics[0], grouping))
    for part in split(passing, lambda run: _traits(run, prefix), read if grouping is None else frozenset()):
        ordered = _ordered(part, criterion.metrics[0], prefix) if told_in_order else None
        chosen += part if ordered is None else ordered[:limit]
        passed_over += [] if ordered is None else ordered[limit:]
    return replace(
        listed,
        runs=tuple(chosen),
        stopped=tuple(stopped),
        passed_over=tuple(passed_over),
        incomplete=tuple(incomplete),
    )


def still_true(metric: str, grouping: Grouping | None) -> bool:
    """True if a logged value holds under another grouping, too."""
    return grouping is None or not reads(metric)


def _logged_gate(gate: Gate, run: TrackedRun, prefix: str) -> GateResult:
    return gate.check({gate.metric: run.metrics[prefix + gate.metric]}, {})


def _traits(run: TrackedRun, prefix: str) -> Traits:
    names = ("labels_digest", "row_ids_digest", "grouping", "positive")
    return Traits.listed(*(run.tags.get(tag(name, prefix)) for name in names))


def _ordered(runs: list[TrackedRun], metric: str, prefix: str) -> list[TrackedRun] | None:
    """Best logged value first; None where no run logged the metric."""
    name = prefix + metric
    if not any(name in run.metrics for run in runs):
        return None

    def key(run: TrackedRun) -> float:
        value = run.metrics.get(name, math.nan)
        return distance_from_best(metric, value) if math.isfinite(value) else math.inf

    return sorted(runs, key=key)
