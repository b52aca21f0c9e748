"""The review as a run of its own, and tags on what was compared."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cmtrack.comparison.blocks import RankedModel
from cmtrack.comparison.result import Comparison
from cmtrack.comparison.run import Run
from cmtrack.names import quoted
from cmtrack.report.figures import draw_pictures
from cmtrack.report.review.narrative import decision, lead
from cmtrack.report.review.report import as_json, html, markdown, ranking_json
from cmtrack.tracking.names import KIND_TAG, REVIEW, tag
from cmtrack.tracking.runs import client_for, experiment_ids, first_line, version_for
from cmtrack.tracking.store import end_run

if TYPE_CHECKING:
    from mlflow import MlflowClient

HTML_FILE = "cmtrack_review.html"
MARKDOWN_FILE = "cmtrack_review.md"
JSON_FILE = "cmtrack_review.json"
TABLE_FILE = "cmtrack_review_ranking.json"
STOPPED = "stopped by a gate"
MAX_NOTE = 8000
_MAX_TAG = 4000


@dataclass(frozen=True)
class LoggedReview:
    """Result of logging a review.

    Attributes
    ----------
    run_id, experiment_id : str
        Of the review's own run.
    tagged_runs, tagged_models : tuple of str
        Ids of the runs and of the logged models that got its tags.
    alias : str
        What was set, such as ``"models:/name@challenger (version 3)"``; empty where nothing was asked for.
    problems : tuple of str
        What could not be drawn or tagged.
    """

    run_id: str
    experiment_id: str
    tagged_runs: tuple[str, ...]
    tagged_models: tuple[str, ...]
    alias: str
    problems: tuple[str, ...]


def publish(
    comparison: Comparison,
    *,
    experiment_name: str | None = None,
    run_name: str | None = None,
    alias: str | None = None,
    registered_model: str | None = None,
) -> LoggedReview:
    """Write the review into the chosen run's store, and tag what was compared; see :meth:`Comparison.log`.

    Where no run is chosen, because gates stopped all of them or several rankings have equal claims, the review goes
    into the store and the experiment of the first run that was compared. Everything that may be refused is asked for
    first: nothing is written where the runs are in no store, or there is no version for the alias.

    Raises
    ------
    ValueError, ConnectionError
    """
    home = _home(comparison)
    if registered_model is not None and alias is None:
        raise ValueError("registered_model goes with alias: nothing else is written to the registry")
    clients: dict[str, MlflowClient] = {}
    for run in (home, *_others(comparison)):
        if run.tracking_uri and run.tracking_uri not in clients:
            clients[run.tracking_uri] = _client(run.tracking_uri)
    if alias is not None and comparison.best is None:
        raise ValueError(f"no run is chosen, so the alias {alias!r} has nothing to stand for: {lead(comparison)}")
    client = clients[home.tracking_uri]
    version = None if alias is None else version_for(home, client, registered_model)
    experiment_id = home.experiment_id if experiment_name is None else _experiment(client, experiment_name)
    problems: list[str] = []
    review = client.create_run(
        experiment_id, run_name=run_name or f"review: {comparison.criterion}", tags=_review_tags(comparison)
    )
    run_id = str(review.info.run_id)
    try:
        _upload(comparison, client, run_id, problems)
    except BaseException:
        end_run(client, run_id, "FAILED")
        raise
    end_run(client, run_id)
    runs, models = _tag_all(comparison, clients, run_id, problems)
    said = "" if alias is None else _set_alias(client, version, alias, run_id)
    return LoggedReview(run_id, str(experiment_id), runs, models, said, tuple(problems))


def _client(uri: str) -> MlflowClient:
    """A client of a run's store; that of the current one keeps its own registry."""
    import mlflow

    return client_for(None if uri == mlflow.get_tracking_uri() else uri)


def _set_alias(client: MlflowClient, version: Any, alias: str, review: str) -> str:
    from mlflow.exceptions import MlflowException

    try:
        client.set_registered_model_alias(version.name, alias, version.version)
    except MlflowException as error:
        raise ValueError(
            f"the review is logged as run {review}, but the alias {alias!r} was refused: {first_line(error)}"
        ) from None
    client.set_tag(review, tag("alias"), f"{version.name}@{alias}")
    return f"models:/{version.name}@{alias} (version {version.version})"


def _home(comparison: Comparison) -> Run:
    """The run into whose store and experiment the review goes: the chosen one, else the first that was compared."""
    best = comparison.best
    if best is not None:
        first = [best.runs[0].run if isinstance(best, RankedModel) else best.run]
    else:
        first = [run for run in _others(comparison) if run.tracking_uri]
    if not first and not comparison.runs and not comparison.failed:
        raise ValueError("no run is ranked and none failed a gate: there is nothing to log")
    if not first or not first[0].tracking_uri:
        raise ValueError(
            "these evaluations are in no run, so there is no store to log the review to: Comparison.report writes it "
            "to a file"
        )
    return first[0]


def _others(comparison: Comparison) -> Iterator[Run]:
    yield from (run.run for run in comparison.runs)
    yield from (stop.run for stop in comparison.failed)


def _experiment(client: MlflowClient, name: str) -> str:
    """The experiment's id; it is made if need be."""
    found = client.get_experiment_by_name(name)
    if found is None:
        return str(client.create_experiment(name))
    if found.lifecycle_stage != "active":
        raise ValueError(f"the experiment {name!r} is {found.lifecycle_stage}: it takes no run")
    return experiment_ids(client, [name])[0]


def _review_tags(comparison: Comparison) -> dict[str, str]:
    best = comparison.best
    tags = {
        KIND_TAG: REVIEW,
        tag("criterion"): str(comparison.criterion),
        tag("decision"): decision(comparison)[0],
        tag("best"): "" if best is None else best.run_id,
        tag("best_name"): "" if best is None else best.name,
        tag("tied"): ", ".join(quoted(name) for name in _tied(comparison)),
        tag("ranked"): str(len(comparison)),
        tag("stopped"): str(len(comparison.failed)),
    }
    if comparison.gates:
        tags[tag("gates")] = "; ".join(gate.text for gate in comparison.gates)
    return {name: text[:_MAX_TAG] for name, text in tags.items()}


def _tied(comparison: Comparison) -> list[str]:
    if comparison.ranking is None or comparison.best is None:
        return []
    return [entry.name for entry in comparison.ranking.tied]


def _upload(comparison: Comparison, client: MlflowClient, run_id: str, problems: list[str]) -> None:
    shown = draw_pictures(comparison, problems)
    text = markdown(comparison)
    with tempfile.TemporaryDirectory(prefix="cmtrack-") as scratch:
        folder = Path(scratch)
        files: dict[str, Callable[[], str]] = {
            HTML_FILE: lambda: html(comparison, pictures=shown),
            MARKDOWN_FILE: lambda: text,
            JSON_FILE: lambda: as_json(comparison),
            TABLE_FILE: lambda: ranking_json(comparison),
        }
        for name, make in files.items():
            (folder / name).write_text(make(), encoding="utf-8")
        for picture in shown.values():
            (folder / picture.file).write_bytes(picture.content)
        client.log_artifacts(run_id, scratch)
    # without the tag mlflow.loggedArtifacts: the evaluation view would open on this table, empty for every other run
    client.set_tag(run_id, "mlflow.note.content", _cut(text))


def _cut(text: str) -> str:
    """At most 8,000 characters, ending with a whole line."""
    if len(text) <= MAX_NOTE:
        return text
    end = f"\n\n… the rest is in {MARKDOWN_FILE}."
    kept = text[: MAX_NOTE - len(end)]
    return kept[: kept.rfind("\n")] + end


def _tag_all(
    comparison: Comparison, clients: dict[str, MlflowClient], review: str, problems: list[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Tag runs and logged models in their own stores; what refuses is a problem, not an end."""
    runs, models = [], []
    for run, standing in _standings(comparison):
        client = clients.get(run.tracking_uri)
        if client is None or not run.run_id:
            continue
        tags = {tag("rank"): standing, tag("review"): review, tag("criterion"): str(comparison.criterion)[:_MAX_TAG]}
        if _attempt(f"tags of run {run.run_id}", problems, partial(_tag_run, client, run.run_id, tags)):
            runs.append(run.run_id)
        for model_id in run.model_ids:
            what = f"tags of model {model_id}"
            if _attempt(what, problems, partial(client.set_logged_model_tags, model_id, tags)):
                models.append(model_id)
    return tuple(runs), tuple(models)


def _standings(comparison: Comparison) -> Iterator[tuple[Run, str]]:
    for place, ranking in enumerate(comparison.rankings, 1):
        aside = "" if place == 1 else f" in ranking {place}"
        for entry in ranking.standings:
            runs = entry.runs if isinstance(entry, RankedModel) else (entry,)
            yield from ((one.run, f"{entry.rank}{aside}") for one in runs)
    yield from ((stop.run, STOPPED) for stop in comparison.failed)


def _tag_run(client: MlflowClient, run_id: str, tags: dict[str, str]) -> None:
    from mlflow.entities import RunTag

    client.log_batch(run_id, tags=[RunTag(name, text) for name, text in tags.items()], synchronous=True)


def _attempt(what: str, problems: list[str], action: Callable[[], Any]) -> bool:
    try:
        action()
    except Exception as error:
        problems.append(f"{what}: {first_line(error)}")
        return False
    return True
