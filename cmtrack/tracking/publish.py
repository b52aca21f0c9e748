"""Functions that log a review as a separate run and tag the compared runs and their models."""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cmtrack.comparison.result import Comparison
from cmtrack.comparison.run import Run
from cmtrack.comparison.spec import CompareSpec
from cmtrack.names import quoted
from cmtrack.report.formatting import capital, markdown_text
from cmtrack.report.review.narrative import decision, lead
from cmtrack.report.review.report import as_json, html, markdown, ranking_json
from cmtrack.report.review.reproduce import given
from cmtrack.report.review.review import Review
from cmtrack.tracking._warn import first_line, mlflow_errors_as
from cmtrack.tracking.artifacts import filing
from cmtrack.tracking.description import MAX_NOTE, NOTE, artifact_link, with_block
from cmtrack.tracking.names import KIND_TAG, REVIEW, former_tag, tag, tag_text
from cmtrack.tracking.runs import client_for, from_entity, version_for, versions_of
from cmtrack.tracking.settings import lists_rows
from cmtrack.tracking.store import end_run, experiment_named, location_like

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Metric, Param

HTML_FILE = "cmtrack_review.html"
MARKDOWN_FILE = "cmtrack_review.md"
JSON_FILE = "cmtrack_review.json"
TABLE_FILE = "cmtrack_review_ranking.json"
STOPPED = "stopped by a gate"
REVIEWS = ": reviews"
"""Suffix that is added to an experiment's name to name the experiment for its reviews."""
_LABEL = "(review)"
# Tag that reviews of earlier versions wrote, and that a new review removes.
_FORMER = former_tag("criterion", "")


@dataclass(frozen=True)
class LoggedReview:
    """The result of logging a review.

    Attributes
    ----------
    run_id, experiment_id : str
        Ids of the review's run and of its experiment.
    tagged_runs, tagged_models : tuple of str
        Ids of the runs and of the logged models to which the review's tags were added.
    alias : str
        The alias that was set, such as ``"models:/name@challenger (version 3)"``, or an empty
        string if no alias was requested.
    versions : tuple of str
        Model versions of the compared runs, such as ``"models:/name/3"``, whose pages now show the
        rank and the decision.
    problems : tuple of str
        Figures that could not be drawn, and tags that could not be written.
    """

    run_id: str
    experiment_id: str
    tagged_runs: tuple[str, ...]
    tagged_models: tuple[str, ...]
    alias: str
    problems: tuple[str, ...]
    versions: tuple[str, ...] = ()


def publish(
    comparison: Comparison,
    *,
    experiment_name: str | None = None,
    run_name: str | None = None,
    alias: str | None = None,
    registered_model: str | None = None,
) -> LoggedReview:
    """Write the review into the store of the chosen run, and tag the compared runs and models.

    See :meth:`Comparison.log`.

    If no run is chosen, because gates stopped all runs or because several rankings are equally
    valid, the review goes into the store of the first compared run. All requirements are checked
    first. Nothing is written if the runs are not in a store, or if no model version exists for the
    alias.
    """
    home = _home(comparison)
    if registered_model is not None and alias is None:
        raise ValueError(f"registered_model needs alias, got {registered_model!r:.60} alone")
    clients: dict[str, MlflowClient] = {}
    for run in (home, *_compared(comparison)):
        if run.tracking_uri and run.tracking_uri not in clients:
            clients[run.tracking_uri] = client_for(run.tracking_uri)
    if alias is not None and comparison.best is None:
        raise ValueError(
            f"no run is chosen, so the alias {alias!r} cannot be set: {lead(Review(comparison))}"
        )
    client = clients[home.tracking_uri]
    given_versions: dict[str, list[Any]] = {}
    if alias is not None:
        given_versions[home.run_id] = [version_for(home, client, registered_model)]
    problems: list[str] = []
    if experiment_name is None:
        experiment_id = _review_experiment(client, home.experiment_id, problems)
    else:
        experiment_id = experiment_named(client, experiment_name)
    name = run_name or f"review: {comparison.criterion}"
    run_id = write_review(comparison, client, experiment_id, name, problems)
    link = artifact_link(experiment_id, run_id, HTML_FILE)
    texts = ReviewTexts(comparison, run_id, link, problems)
    runs, models, versions = texts.tag_all(clients, given_versions)
    set_alias = ""
    if alias is not None:
        set_alias = _set_alias(client, given_versions[home.run_id][0], alias, run_id)
    return LoggedReview(run_id, experiment_id, runs, models, set_alias, tuple(problems), versions)


def write_review(
    comparison: Comparison,
    client: MlflowClient,
    experiment_id: str,
    name: str,
    problems: list[str],
    *,
    files: Mapping[str, bytes] | None = None,
    tags: Mapping[str, str] | None = None,
    link: bool = True,
    first: str = "",
) -> str:
    """Write a review into a new run, and return the id of this run.

    If a request is refused, the run ends as FAILED.

    ``problems``: receives the figures that could not be drawn.
    ``files``, ``tags``: further files, and tags that are written after all files, so that a run
        with these tags is complete.
    ``link``: whether MLflow may print a link to the run.
    ``first``: Markdown with which the run's description begins, before the review.
    """
    review = client.create_run(experiment_id, run_name=name, tags=_review_tags(comparison))
    run_id = str(review.info.run_id)
    try:
        client.log_batch(run_id, *_numbers_and_question(comparison))
        filer = filing(client, review.info.artifact_uri)
        _upload(comparison, filer, run_id, problems, name, files or {})
        if first:
            client.set_tag(run_id, NOTE, _note(f"{first}\n{markdown(comparison)}"))
        _set_tags(client, run_id, tags or {})
    except BaseException:
        end_run(client, run_id, "FAILED", link=link)
        raise
    end_run(client, run_id, link=link)
    return run_id


def _set_tags(client: MlflowClient, run_id: str, tags: Mapping[str, str]) -> None:
    from mlflow.entities import RunTag

    if tags:
        run_tags = [RunTag(name, text) for name, text in tags.items()]
        client.log_batch(run_id, tags=run_tags, synchronous=True)


def review_of(run: Run) -> Run | None:
    """Return the latest review of a run, or None if no review exists or the latest was deleted."""
    from mlflow.exceptions import MlflowException

    review_id = run.tags.get(tag("review"), "")
    if not review_id or not run.tracking_uri:
        return None
    client = client_for(run.tracking_uri)
    try:
        review = client.get_run(review_id)
    except MlflowException:
        return None
    if review.info.lifecycle_stage != "active" or review.data.tags.get(KIND_TAG) != REVIEW:
        return None
    return from_entity(review, client)


def _set_alias(client: MlflowClient, version: Any, alias: str, review: str) -> str:
    with mlflow_errors_as(
        f"the review is logged as run {review}, but the alias {alias!r} was refused"
    ):
        client.set_registered_model_alias(version.name, alias, version.version)
    client.set_tag(review, tag("alias"), f"{version.name}@{alias}")
    return f"models:/{version.name}@{alias} (version {version.version})"


def _home(comparison: Comparison) -> Run:
    """Return the run whose store receives the review: the chosen run or the first stored run."""
    if comparison.best is not None:
        home = comparison.best.runs[0].run
    else:
        runs = list(_compared(comparison))
        if not runs:
            raise ValueError("a review needs a run that is ranked or that a gate stopped, got none")
        home = next((run for run in runs if run.tracking_uri), runs[0])
    if not home.tracking_uri:
        raise ValueError(
            "these evaluations are not in a run, so there is no store to log the review to: "
            "use Comparison.report to write it to a file"
        )
    return home


def _compared(comparison: Comparison) -> Iterator[Run]:
    """Yield the ranked runs, followed by the runs that a gate stopped."""
    yield from (run.run for run in comparison.runs)
    yield from (stop.run for stop in comparison.failed)


def _review_experiment(client: MlflowClient, experiment_id: str, problems: list[str]) -> str:
    """Return the experiment for reviews, or the runs' experiment if this one cannot be created."""
    from mlflow.exceptions import MlflowException

    home = client.get_experiment(experiment_id)
    if home.name.endswith(REVIEWS):
        return experiment_id
    try:
        return experiment_named(client, home.name + REVIEWS, location_like(home))
    except (MlflowException, ValueError) as error:
        problems.append(f"the review is in the experiment of its runs: {first_line(error)}")
        return experiment_id


def _review_tags(comparison: Comparison) -> dict[str, str]:
    best = comparison.best
    tags = {
        KIND_TAG: REVIEW,
        tag("criterion"): str(comparison.criterion),
        tag("decision"): decision(Review(comparison))[0],
        tag("best"): "" if best is None else best.run_id,
        tag("best_name"): "" if best is None else best.name,
        tag("tied"): ", ".join(quoted(name) for name in _tied(comparison)),
        tag("ranked"): str(len(comparison)),
        tag("stopped"): str(len(comparison.failed)),
    }
    if comparison.gates:
        tags[tag("gates")] = "; ".join(gate.text for gate in comparison.gates)
    return {name: tag_text(text) for name, text in tags.items()}


def _numbers_and_question(comparison: Comparison) -> tuple[list[Metric], list[Param]]:
    """Return the results as metrics and the options as parameters for the review's run."""
    from mlflow.entities import Metric, Param

    numbers: dict[str, float] = {
        "runs": len(comparison),
        "stopped": len(comparison.failed),
        "tied": len(_tied(comparison)),
    }
    if comparison.best is not None and math.isfinite(comparison.best.value):
        numbers["best"] = comparison.best.value
    now = int(time.time() * 1000)
    metrics = [Metric(f"review/{name}", value, now, 0) for name, value in numbers.items()]
    question = dict(given(comparison))
    question["rank_by"] = str(comparison.criterion)
    question["require"] = "; ".join(gate.text for gate in comparison.gates)
    params = []
    # The review is in this store, so its URI need not be a parameter.
    for name in sorted((CompareSpec.entries().keys() - {"tracking_uri"}) & question.keys()):
        value = question[name]
        if hasattr(value, "describe"):
            value = value.describe()
        if value:
            params.append(Param(name, tag_text(str(value))))
    return metrics, params


def _tied(comparison: Comparison) -> list[str]:
    if comparison.ranking is None or comparison.best is None:
        return []
    return [entry.name for entry in comparison.ranking.tied]


def _upload(
    comparison: Comparison,
    client: MlflowClient,
    run_id: str,
    problems: list[str],
    name: str,
    more: Mapping[str, bytes],
) -> None:
    from cmtrack.report.figures import About, draw_pictures

    shown = draw_pictures(comparison, problems, about=About(name, date=_today()))
    text = markdown(comparison)
    with tempfile.TemporaryDirectory(prefix="cmtrack-") as scratch:
        folder = Path(scratch)
        files: dict[str, Callable[[], str]] = {
            HTML_FILE: lambda: html(comparison, pictures=shown, rows=lists_rows()),
            MARKDOWN_FILE: lambda: text,
            JSON_FILE: lambda: as_json(comparison),
            TABLE_FILE: lambda: ranking_json(comparison),
        }
        for name, make in files.items():
            (folder / name).write_text(make(), encoding="utf-8")
        for picture in shown.values():
            (folder / picture.file).write_bytes(picture.content)
        for file, content in more.items():
            (folder / file).write_bytes(content)
        client.log_artifacts(run_id, scratch)
    # Do not set the tag mlflow.loggedArtifacts, because the evaluation view would first show this
    # table, which is empty for all other runs.
    client.set_tag(run_id, NOTE, _note(text))


_METRICS = (
    "*Metrics of this run: `review/runs` is the number of ranked runs, `review/tied` the number of "
    "runs that may be the best, `review/stopped` the number of runs that failed a gate, and "
    "`review/best` the value of the chosen run.*"
)


def _note(text: str) -> str:
    """Return a review and the meaning of its metrics, with at most 8,000 characters."""
    end = f"\n\n{_METRICS}"
    if len(text) + len(end) > MAX_NOTE:
        end = f"\n\n… the rest is in {MARKDOWN_FILE}.{end}"
        text = text[: MAX_NOTE - len(end)]
        text = text[: text.rfind("\n")]
    return text + end


def _today() -> str:
    return time.strftime("%Y-%m-%d", time.gmtime())


@dataclass(frozen=True)
class ReviewTexts:
    """Writer of a review's tags and description to each run and its models.

    If a store refuses a change, this is added to the problems, and no error is raised.
    """

    comparison: Comparison
    review: str
    link: str
    problems: list[str]

    def tags(self, standing: str) -> dict[str, str]:
        """Return the tags for a run, a logged model or a model version."""
        criterion = tag_text(str(self.comparison.criterion))
        return {tag("rank"): standing, tag("review"): self.review, tag("criterion"): criterion}

    def described(self, note: str | None, standing: str) -> str:
        """Return a description after adding decision, rank and link; the rest is unchanged."""
        rank = f"Rank {standing} by {markdown_text(self.comparison.criterion)}"
        if standing == STOPPED:
            rank = capital(standing)
        headline = markdown_text(decision(Review(self.comparison))[0])
        block = f"{rank} in the [review of {_today()}]({self.link}). {headline}"
        return with_block(note or "", block, _LABEL, first=True)

    def tag_all(
        self, clients: Mapping[str, MlflowClient], given_versions: Mapping[str, list[Any]]
    ) -> tuple[tuple[str, ...], ...]:
        """Tag runs, logged models and model versions in their own stores.

        ``given_versions`` maps the id of a run to the model version that gets an alias. For a run
        that is not in this mapping, all model versions are looked up.
        """
        runs: list[str] = []
        models: list[str] = []
        versions: list[str] = []
        for run, standing in _standings(self.comparison):
            client = clients.get(run.tracking_uri)
            if client is None or not run.run_id:
                continue
            if self.attempt(
                f"tags of run {run.run_id}", partial(self.tag_run, client, run.run_id, standing)
            ):
                runs.append(run.run_id)
            tagged = [
                model_id
                for model_id in run.model_ids
                if self.attempt(
                    f"tags of model {model_id}", partial(self.tag_model, client, model_id, standing)
                )
            ]
            models += tagged
            run_versions = list(given_versions.get(run.run_id, ()))
            # Do not look up versions of a model that the store does not have.
            if not run_versions and len(tagged) == len(run.model_ids):
                self.attempt(
                    f"model versions of run {run.run_id}",
                    partial(_add_versions, run_versions, run, client),
                )
            for version in run_versions:
                name = f"models:/{version.name}/{version.version}"
                describe = partial(self.describe_version, client, version, standing)
                if self.attempt(f"description of {name}", describe):
                    versions.append(name)
        return tuple(runs), tuple(models), tuple(dict.fromkeys(versions))

    def tag_run(self, client: MlflowClient, run_id: str, standing: str) -> None:
        """Write tags and description of a run."""
        # Read the note again: a person may have changed it since the run was listed.
        before = client.get_run(run_id).data.tags
        note = self.described(before.get(NOTE), standing)
        _set_tags(client, run_id, self.tags(standing) | {NOTE: note})
        if _FORMER in before:
            client.delete_tag(run_id, _FORMER)

    def tag_model(self, client: MlflowClient, model_id: str, standing: str) -> None:
        """Write tags and description of a logged model."""
        before = client.get_logged_model(model_id).tags
        client.set_logged_model_tags(
            model_id, self.tags(standing) | {NOTE: self.described(before.get(NOTE), standing)}
        )
        if _FORMER in before:
            client.delete_logged_model_tag(model_id, _FORMER)

    def describe_version(self, client: MlflowClient, version: Any, standing: str) -> None:
        """Write tags and description of a model version."""
        client.update_model_version(
            version.name, version.version, self.described(version.description, standing)
        )
        for name, text in self.tags(standing).items():
            client.set_model_version_tag(version.name, version.version, name, text)
        if _FORMER in version.tags:
            client.delete_model_version_tag(version.name, version.version, _FORMER)

    def attempt(self, what: str, action: Callable[[], Any]) -> bool:
        """Run an action; add an error to the problems and return False."""
        try:
            action()
        except Exception as error:
            self.problems.append(f"{what}: {first_line(error)}")
            return False
        return True


def _add_versions(versions: list[Any], run: Run, client: MlflowClient) -> None:
    versions += versions_of(run, client)


def _standings(comparison: Comparison) -> Iterator[tuple[Run, str]]:
    """Yield each compared run with its rank, or with a note that a gate stopped it."""
    for number, ranking in enumerate(comparison.rankings, 1):
        which = "" if number == 1 else f" in ranking {number}"
        for entry in ranking.standings:
            yield from ((ranked.run, f"{entry.rank}{which}") for ranked in entry.runs)
    yield from ((stop.run, STOPPED) for stop in comparison.failed)
