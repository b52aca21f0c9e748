"""Where the compared runs come from: references, experiments and filters in one store or several, or memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from cmtrack.base import BaseEvaluation
from cmtrack.comparison.criterion import Criterion
from cmtrack.comparison.result import unique_names
from cmtrack.evaluation import Evaluation
from cmtrack.metrics.catalog import lookup
from cmtrack.tracking.fetching import Progress
from cmtrack.tracking.names import tag
from cmtrack.tracking.runs import TrackedRun, as_references, client_for, experiment_ids, find_all, search, shown_uri

if TYPE_CHECKING:
    from mlflow import MlflowClient


@dataclass(frozen=True)
class Source:
    """The runs to look at.

    Attributes
    ----------
    runs : tuple of TrackedRun
        Under distinct names.
    clients : dict of str to MlflowClient
        By tracking URI.
    evaluations : dict of str to Evaluation
        Those that are at hand already, by run id.
    truncated : bool
        Whether the store holds more runs than were asked for.
    """

    runs: tuple[TrackedRun, ...]
    clients: dict[str, MlflowClient]
    evaluations: dict[str, Evaluation]
    truncated: bool = False


def from_memory(evaluations: Mapping[str, Evaluation]) -> Source:
    """Evaluations that are in no run, by name.

    Raises
    ------
    TypeError
        If a value is no evaluation.
    """
    for name, evaluation in evaluations.items():
        if not isinstance(evaluation, BaseEvaluation):
            raise TypeError(f"runs by name must be Evaluations, got {type(evaluation).__name__} for {name!r}")
    named = {str(name): evaluation for name, evaluation in evaluations.items()}
    return Source(tuple(TrackedRun(name, name, tags={tag("status"): "completed"}) for name in named), {}, named)


def from_stores(
    runs: Any,
    experiment_names: Sequence[str] | None,
    filter_string: str,
    tracking_uris: Sequence[str | None],
    *,
    order: Criterion | None,
    prefix: str,
    max_runs: int | None,
    progress: Progress,
) -> Source:
    """Runs of tracking stores.

    Raises
    ------
    ValueError, TypeError
        If a run, an experiment or a filter is not one.
    ConnectionError
        If a tracking server does not answer.
    """
    if runs is not None and filter_string and not experiment_names:
        raise ValueError("filter_string filters experiments: give experiment_names with it, or leave out the filter")
    clients = {client.tracking_uri: client for client in map(client_for, tracking_uris)}
    found: dict[str, TrackedRun] = {}
    if runs is not None:
        references = as_references(runs)
        everywhere = list(clients.values())
        for run in find_all(
            references, lambda _: everywhere, lambda done: progress("finding runs", done, len(references))
        ):
            found.setdefault(run.run_id, run)
    truncated = False
    if runs is None or experiment_names:
        names = [experiment_names] if isinstance(experiment_names, str) else list(experiment_names or ())
        for client in clients.values():
            before = len(found)
            ids = _experiments(client, names, several=len(clients) > 1)
            # one more than wanted tells whether there are more
            most = None if max_runs is None else max_runs + 1
            listed = search(
                client, ids, filter_string, _order_by(order, prefix), most, lambda n: progress("listing runs", n, 0)
            )
            for run in listed:
                found.setdefault(run.run_id, run)
            if max_runs is not None and len(found) - before > max_runs:
                found.popitem()
                truncated = True
        if names and not found and len(clients) > 1:
            _check_found(names, list(clients.values()))
    label = unique_names({run_id: run.name for run_id, run in found.items()})
    return Source(tuple(replace(r, name=label[r.run_id]) for r in found.values()), clients, {}, truncated)


def _experiments(client: MlflowClient, names: list[str], several: bool) -> list[str]:
    if not names:
        from mlflow.tracking.fluent import _get_experiment_id

        if several:
            return [str(e.experiment_id) for e in client.search_experiments(max_results=1000)]
        return [str(_get_experiment_id())]
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
