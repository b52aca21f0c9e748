"""Functions that list the runs of tracking stores and choose the runs to read."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from cmtrack.comparison.comparability import Traits, split
from cmtrack.comparison.compare import CompareOptions, Progress
from cmtrack.comparison.criterion import Criterion
from cmtrack.comparison.run import LeftOut, Listing, StoppedRun
from cmtrack.comparison.spec import several
from cmtrack.evaluation.gates import Gate
from cmtrack.metrics.catalog import Catalog
from cmtrack.tracking.names import KIND_TAG, REVIEW, digests, readable_tag
from cmtrack.tracking.runs import (
    TrackedRun,
    active_experiment_id,
    as_references,
    client_for,
    experiment_ids,
    find_all,
    search,
    shown_uri,
    unique_names,
)

if TYPE_CHECKING:
    from mlflow import MlflowClient


@dataclass(frozen=True, eq=False)
class Listed(Listing):
    """Runs listed by stores, and runs excluded because of their tags or logged metrics.

    ``runs``: runs to read, under distinct names. If a logged value was used to shorten the list,
    the best run is first.
    ``clients``: an MLflow client for each tracking URI.
    """

    runs: tuple[TrackedRun, ...]
    clients: dict[str, MlflowClient] = field(default_factory=dict)


def list_runs(
    runs: Any, options: CompareOptions, progress: Progress, *, order: Criterion | None
) -> Listed:
    """List the referenced runs, or the runs of experiments, in one or more stores.

    If an experiment contains more runs than ``max_runs``, the runs with the best logged values are
    listed. Raises ValueError or TypeError if a run, an experiment or a filter is invalid, and
    ConnectionError if a tracking server does not answer.
    """
    experiments = several(options.experiment_names or ())
    if runs is not None and options.filter_string and not experiments:
        raise ValueError(
            "filter_string needs experiment_names if runs are given, "
            f"got {options.filter_string!r:.60} alone"
        )
    uris: list[Any] = several(options.tracking_uri or ()) or [None]
    clients = {client.tracking_uri: client for client in map(client_for, uris)}
    by_id: dict[str, TrackedRun] = {}
    if runs is not None:
        references = as_references(runs)
        found = find_all(
            references,
            lambda _: list(clients.values()),
            lambda done: progress("finding runs", done, len(references)),
            experiments,
        )
        _add_runs(by_id, found)
    notes: tuple[str, ...] = ()
    if runs is None or experiments:
        order_by = _order_by(order, options.prefix)
        notes = _add_experiments(by_id, list(clients.values()), order_by, options, progress)
    # The same runs give the same review, regardless of the order in which they were given or found.
    by_id = dict(sorted(by_id.items()))
    label = unique_names({run_id: run.name for run_id, run in by_id.items()})
    named = tuple(replace(run, name=label[run.run_id]) for run in by_id.values())
    return Listed(named, clients=clients, notes=notes)


def _add_experiments(
    by_id: dict[str, TrackedRun],
    clients: Sequence[MlflowClient],
    order_by: Sequence[str],
    options: CompareOptions,
    progress: Progress,
) -> tuple[str, ...]:
    """Add the runs of experiments by id; return a note if a store contains more runs.

    Raises ValueError if no runs were found because an experiment is not in any of the stores.
    """
    experiments = several(options.experiment_names or ())
    # List an extra run to find out whether the store has more.
    most = None if options.max_runs is None else options.max_runs + 1
    notes: tuple[str, ...] = ()
    for client in clients:
        ids = _experiment_ids(client, experiments, has_several_stores=len(clients) > 1)
        runs = search(
            client,
            ids,
            options.filter_string,
            order_by,
            most,
            lambda done: progress("listing runs", done, 0),
        )
        if _add_runs(by_id, runs, options.max_runs):
            notes = (
                f"The store has more runs than the {options.max_runs} that were listed (max_runs).",
            )
    if not by_id and len(clients) > 1:
        _check_experiments_exist(experiments, clients)
    return notes


def _add_runs(
    by_id: dict[str, TrackedRun], runs: Iterable[TrackedRun], max_runs: int | None = None
) -> bool:
    """Add runs by id, up to a limit, and return True if the limit was exceeded."""
    before = len(by_id)
    for run in runs:
        by_id.setdefault(run.run_id, run)
    if max_runs is None or len(by_id) - before <= max_runs:
        return False
    by_id.popitem()
    return True


def _experiment_ids(
    client: MlflowClient, experiments: list[str], *, has_several_stores: bool
) -> list[str]:
    """Return the ids of the named experiments in a store.

    If several stores are searched, an experiment does not need to exist in all of them. If no names
    are given, the function returns the active experiment for a single store, or all experiments for
    several stores.
    """
    if experiments and not has_several_stores:
        return experiment_ids(client, experiments)
    if not experiments and not has_several_stores:
        return [active_experiment_id()]
    found: Iterable[Any] = map(client.get_experiment_by_name, experiments)
    if not experiments:
        found = client.search_experiments()
    return [str(experiment.experiment_id) for experiment in found if experiment is not None]


def _check_experiments_exist(experiments: Sequence[str], clients: Sequence[MlflowClient]) -> None:
    """Raise ValueError if an experiment is not in any of the stores."""
    for name in experiments:
        if all(client.get_experiment_by_name(name) is None for client in clients):
            stores = ", ".join(map(shown_uri, clients))
            raise ValueError(f"there is no experiment {name!r} in {stores}")


def _order_by(order: Criterion | None, prefix: str) -> list[str]:
    """Return the `order_by` with which a store lists the best runs first.

    If the number of listed runs is limited, the worst runs are omitted.
    """
    if order is None or not order.single or "`" in prefix:
        return []
    way = {"higher": "DESC", "lower": "ASC"}.get(order.direction)
    return [f"metrics.`{prefix}{order.metrics[0]}` {way}"] if way else []


# -- the short list --------------------------------------------------------------------------------


@dataclass(frozen=True)
class LoggedValues:
    """Metrics of runs that a comparison can use before it reads the evaluations.

    ``prefix``: the prefix of the evaluations.
    ``changes``: options that change how the runs are evaluated (:attr:`CompareOptions.changes`).
    ``recomputed``: the metrics for each run id, if the runs have already been evaluated again.
    """

    catalog: Catalog
    prefix: str = ""
    changes: frozenset[str] = frozenset()
    recomputed: Mapping[str, Mapping[str, float]] | None = None

    def value(self, run: TrackedRun, metric: str) -> float | None:
        """Return the value of a metric, or None if it was not logged."""
        if self.recomputed is None:
            return run.metrics.get(self.prefix + metric)
        return self.recomputed[run.run_id].get(metric)

    def is_valid(self, metric: str) -> bool:
        """Return True if the values of a metric are still valid under the changed options."""
        if self.recomputed is not None:
            return True
        return "at" not in self.changes and not self.catalog.depends_on(metric) & self.changes


def shortlist(
    listed: Listed,
    values: LoggedValues,
    criterion: Criterion,
    gates: Sequence[Gate],
    *,
    limit: int,
    read: frozenset[str] = frozenset(),
) -> Listed:
    """Choose at most ``limit`` runs per data set from the runs whose logged values pass the gates.

    If a run's value was not logged, the run stays on the list until its evaluation is read.
    ``read`` lists the options that runs must share, in addition to the labels, to be comparable.
    """
    listed = _gated(listed, values, gates)
    metric = criterion.metrics[0]

    def distance_from_best(run: TrackedRun) -> float:
        value = values.value(run, metric)
        if value is None or not math.isfinite(value):
            return math.inf
        return criterion.distance_from_best(value)

    is_ordered = criterion.single and values.is_valid(metric)
    chosen: list[TrackedRun] = []
    passed_over = list(listed.passed_over)
    # Runs on different data are ranked separately, so each data set has its own short list.
    groups = split(listed.runs, lambda run: _traits(run, values.prefix), read - values.changes)
    for group in groups:
        if is_ordered and any(values.value(run, metric) is not None for run in group):
            group = sorted(group, key=distance_from_best)
            passed_over += group[limit:]
            group = group[:limit]
        chosen += group
    return replace(listed, runs=tuple(chosen), passed_over=tuple(passed_over))


def _gated(listed: Listed, values: LoggedValues, gates: Sequence[Gate]) -> Listed:
    """Keep the runs with a complete evaluation whose logged values pass the gates."""
    deciding = [gate for gate in dict.fromkeys(gates) if gate.of_value]
    deciding = [gate for gate in deciding if values.is_valid(gate.metric)]
    incomplete = list(listed.incomplete)
    stopped = list(listed.stopped)
    passing = []
    for run in listed.runs:
        if run.tags.get(KIND_TAG) == REVIEW:
            continue  # an earlier comparison, not a model
        reason = run.why_incomplete(values.prefix)
        if reason:
            incomplete.append(LeftOut(run, reason))
            continue
        results = []
        for gate in deciding:
            value = values.value(run, gate.metric)
            if value is not None:
                results.append(gate.check({gate.metric: value}, {}))
        if all(result.passed for result in results):
            passing.append(run)
        else:
            stopped.append(StoppedRun(run, tuple(results)))
    return replace(
        listed, runs=tuple(passing), incomplete=tuple(incomplete), stopped=tuple(stopped)
    )


def _traits(run: TrackedRun, prefix: str) -> Traits:
    """Read the digest of a run's evaluated rows and the run's options from its tags."""
    run_digests = digests(run.tags, prefix)
    options = (readable_tag(run.tags, name, prefix) for name in ("grouping", "positive", "costs"))
    return Traits.listed(run_digests.get("labels"), run_digests.get("row_ids"), *options)
