"""Functions that list and look up runs in a tracking store, and find their model versions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from cmtrack import untrusted
from cmtrack.base import BaseEvaluation
from cmtrack.comparison.run import Run
from cmtrack.evaluation.catalog import CATALOG
from cmtrack.names import did_you_mean
from cmtrack.tracking import artifacts, mlflow_inside
from cmtrack.tracking._warn import first_line, mlflow_errors_as
from cmtrack.tracking.names import tag, under_prefix
from cmtrack.tracking.parallel import each
from cmtrack.tracking.registry import logged_model_id
from cmtrack.tracking.store import ABSENT
from cmtrack.tracking.store import client_for as client_for

if TYPE_CHECKING:
    from mlflow import MlflowClient


PAGE = 500
_MOST_ALIKE = 10
_MAX_ABOUT = 1 << 20
_SIZE = re.compile(rb"^model_size_bytes: *(\d{1,15})\s*$", re.MULTILINE)
_SHORT_ID = re.compile(r"[0-9a-f]{8,31}")
_NAME = re.compile(r"[^'\"`\\%]+")
"""Matches names that MLflow's filters can search for; quotes cannot be escaped in a filter."""
_RULE = "give a run's id, the first 8 characters of its id, or its name if no other run has it"
_STATUS = re.compile(r"cmtrack\.(?:(.+)\.)?status", re.DOTALL)
_SECTIONS = frozenset(metric.name.split("/")[0] for metric in CATALOG)


@dataclass(frozen=True, eq=False, repr=False)
class TrackedRun(Run):
    """A run in a tracking store, with the status of its evaluations."""

    def status(self, prefix: str = "") -> str:
        """Return the status of the evaluation under a prefix, such as "completed".

        The status is empty if the run contains no evaluation under the prefix.
        """
        return self.tags.get(tag("status", prefix), "")

    def why_incomplete(self, prefix: str = "") -> str:
        """Return the reason why the evaluation under a prefix is incomplete.

        The reason is empty if the evaluation is complete.
        """
        status = self.status(prefix)
        if status == "completed":
            return ""
        if status:
            return f"its evaluation{under_prefix(prefix)} was not finished (status {status!r})"
        return f"it has no evaluation{under_prefix(prefix)}{self._others()}"

    @property
    def prefixes(self) -> tuple[str, ...]:
        """The prefixes under which complete evaluations were logged; "" stands for no prefix."""
        complete = (name for name, text in self.tags.items() if text == "completed")
        matches = (_STATUS.fullmatch(name) for name in complete)
        return tuple(sorted(self.logged_prefix(match[1] or "") for match in matches if match))

    def logged_prefix(self, prefix: str) -> str:
        """Return the full prefix of the logged evaluation, such as ``test/`` for ``test``."""
        if not prefix or not self.status(prefix):
            return prefix
        plain = prefix.rstrip("/ ._-")
        endings = dict.fromkeys((prefix.removeprefix(plain), "", "/", "_", "-", ".", " "))
        for candidate in (plain + ending for ending in endings):
            beginnings = tuple(f"{candidate}{section}/" for section in _SECTIONS)
            if any(name.startswith(beginnings) for name in self.metrics):
                return candidate
        return prefix

    def _others(self) -> str:
        """Return a text that lists the prefixes of the run's other evaluations."""
        named = [prefix for prefix in self.prefixes if prefix]
        evaluations = []
        if "" in self.prefixes:
            evaluations.append("one without a prefix")
        if len(named) == 1:
            evaluations.append(f"one under the prefix {named[0]!r}")
        elif named:
            prefixes = ", ".join(map(repr, named))
            evaluations.append(f"evaluations under the prefixes {prefixes}")
        return f"; it has {' and '.join(evaluations)}" if evaluations else ""


def from_entity(run: Any, client: MlflowClient, model_ids: Iterable[str] = ()) -> TrackedRun:
    """Convert an MLflow run entity to a :class:`TrackedRun`.

    Raises ValueError if an id is invalid, because ids are used in paths and URLs.

    ``model_ids``: the models through which the run was found. If they are given, the run's other
        models are ignored.
    """
    models = dict.fromkeys(model_ids) or evaluated_models(run)
    inputs = getattr(getattr(run, "inputs", None), "dataset_inputs", None) or []
    datasets = [entry.dataset for entry in inputs]
    info = run.info
    data = run.data
    return TrackedRun(
        run_id=untrusted.identifier(info.run_id, "a run's id"),
        name=info.run_name or info.run_id,
        experiment_id=untrusted.identifier(str(info.experiment_id), "an experiment's id"),
        tracking_uri=client.tracking_uri,
        metrics=dict(data.metrics),
        params={name: untrusted.without_secret(name, value) for name, value in data.params.items()},
        tags=dict(data.tags),
        artifact_uri=info.artifact_uri or "",
        start_time=info.start_time or 0,
        end_time=info.end_time or 0,
        datasets=tuple(dict.fromkeys((str(data.name), str(data.digest)) for data in datasets)),
        model_size=_logged_size(data.tags),
        model_ids=tuple(untrusted.identifier(model, "a model's id") for model in models),
    )


def evaluated_models(run: Any) -> dict[str, None]:
    """Return the ids of a run's logged models or, if it logged no models, of its input models."""
    outputs = getattr(getattr(run, "outputs", None), "model_outputs", None) or []
    inputs = getattr(getattr(run, "inputs", None), "model_inputs", None) or []
    return dict.fromkeys(model.model_id for model in outputs or inputs)


def _logged_size(tags: Mapping[str, str]) -> int:
    """Return the last logged model's size in bytes from MLflow 2's tag; 0 if the tag is missing."""
    try:
        models = untrusted.parsed_json(tags.get("mlflow.log-model.history", "[]"))
        return int(models[-1]["model_size_bytes"])
    except (ValueError, TypeError, KeyError, IndexError, OverflowError):
        return 0


def model_size(run: Run, client: MlflowClient) -> int:
    """Return the total size of a run's logged models in bytes; 0 if a size is not known."""
    total = 0
    for model_id in run.model_ids:
        try:
            location = client.get_logged_model(model_id).artifact_location
            about = artifacts.read(location, "MLmodel", client.tracking_uri, _MAX_ABOUT)
            total += int(_SIZE.findall(about)[0])
        except Exception:  # the model is of another kind or was deleted, so its size is not known
            return 0
    return total or run.model_size


def search(
    client: MlflowClient,
    experiment_ids: Sequence[str],
    filter_string: str = "",
    order_by: Sequence[str] = (),
    max_runs: int | None = None,
    progress: Callable[[int], object] | None = None,
) -> Iterator[TrackedRun]:
    """Yield the active runs page by page, as filtered and ordered by the store.

    Raises ValueError if the store refuses the filter.
    """
    token = None
    n_listed = 0
    while max_runs is None or n_listed < max_runs:
        size = PAGE if max_runs is None else min(PAGE, max_runs - n_listed)
        with mlflow_errors_as("the tracking store refused the search"):
            page = client.search_runs(
                list(experiment_ids),
                filter_string,
                max_results=size,
                order_by=list(order_by),
                page_token=token,
            )
        yield from (from_entity(run, client) for run in page)
        n_listed += len(page)
        if progress is not None:
            progress(n_listed)
        token = page.token
        if not token:
            return


def experiment_ids(client: MlflowClient, names: Sequence[str]) -> list[str]:
    """Return the ids of named experiments; raise ValueError if an experiment does not exist."""
    ids = []
    for name in names:
        experiment = client.get_experiment_by_name(name)
        if experiment is None:
            existing = [experiment.name for experiment in client.search_experiments()]
            hint = did_you_mean(name, existing)
            raise ValueError(f"there is no experiment {name!r} in {shown_uri(client)}{hint}")
        ids.append(str(experiment.experiment_id))
    return ids


def active_experiment_id() -> str:
    """Return the id of the experiment in which MLflow would create a new run.

    ``mlflow.set_experiment`` stores the id in an environment variable. Users can also set an
    environment variable to the id or the name. If an experiment with the given name does not exist,
    it is created, as in MLflow.
    """
    from mlflow.environment_variables import MLFLOW_EXPERIMENT_ID, MLFLOW_EXPERIMENT_NAME

    experiment_id = MLFLOW_EXPERIMENT_ID.get()
    name = MLFLOW_EXPERIMENT_NAME.get()
    if experiment_id is not None:
        return str(experiment_id)
    if name is None:
        return mlflow_inside.default_experiment_id()
    client = client_for()
    experiment = client.get_experiment_by_name(name)
    if experiment is None:
        return str(client.create_experiment(name))
    return str(experiment.experiment_id)


def find(
    reference: Any, clients: Sequence[MlflowClient], experiments: Sequence[str] = ()
) -> TrackedRun:
    """Find the run to which a reference refers.

    Raises TypeError if the type of the reference is not supported, ValueError if no run or more
    than one run matches, and ConnectionError if a store does not answer.

    ``reference``: a run id or at least its first 8 characters, a unique run name, ``runs:/<id>``,
        the id of a logged model (``m-…``), a model URI (``models:/<id>``, ``models:/name/3``,
        ``models:/name@alias``), or an object with an attribute ``run_id``, ``model_id`` or
        ``info.run_id``.
    ``clients``: clients of the stores, tried in order.
    ``experiments``: names of the experiments in which to search for a name or the beginning of an
    id; by default all experiments.
    """
    text = _as_text(reference)
    if isinstance(reference, TrackedRun):
        return reference
    from mlflow.exceptions import MlflowException

    problems = []
    for client in clients:
        try:
            run_id, models = _resolve(text, client)
            return from_entity(client.get_run(run_id), client, models)
        except MlflowException as error:
            if error.error_code not in ABSENT:
                raise ConnectionError(
                    f"{shown_uri(client)} did not answer: {first_line(error)}"
                ) from None
            problems.append(f"{shown_uri(client)}: {first_line(error)}")
    if _SHORT_ID.fullmatch(text):
        by_id = _matching(f"attributes.run_id LIKE '{text}%'", clients, experiments)
        if by_id:
            return _only(by_id, f"have an id that begins with {text!r}")
    if text.startswith(("models:/", "m-")):
        raise ValueError(f"there is no model {text!r} ({'; '.join(problems)})")
    if _NAME.fullmatch(text):
        named = _matching(f"attributes.run_name = '{text}'", clients, experiments)
        if named:
            return _only(named, f"are named {text!r}, so give an id")
    rule = f"; {_RULE}"
    if re.fullmatch("[0-9a-f]{8,}", text):
        rule = ""  # the reference is already an id
    raise ValueError(f"there is no run {text!r} ({'; '.join(problems)}){rule}")


def _matching(
    condition: str, clients: Sequence[MlflowClient], experiments: Sequence[str]
) -> list[TrackedRun]:
    """Return runs that meet a condition, from all stores, sorted by id, up to a limit."""
    by_id: dict[str, TrackedRun] = {}
    for client in clients:
        searched: list[Any] = [client.get_experiment_by_name(name) for name in experiments]
        if not experiments:
            searched = client.search_experiments()
        ids = [str(experiment.experiment_id) for experiment in searched if experiment is not None]
        if ids:
            for run in search(client, ids, condition, max_runs=_MOST_ALIKE + 1):
                by_id.setdefault(run.run_id, run)
    return [run for _, run in sorted(by_id.items())]


def _only(runs: Sequence[TrackedRun], what_they_share: str) -> TrackedRun:
    """Return the only run; if several runs match, raise ValueError with a list of their ids."""
    if len(runs) == 1:
        return runs[0]
    listed = ", ".join(f"{run.run_id} ({run.name})" for run in runs[:_MOST_ALIKE])
    more = " and more" if len(runs) > _MOST_ALIKE else ""
    raise ValueError(f"several runs {what_they_share}: {listed}{more}")


def newest(
    client: MlflowClient, experiments: Sequence[str], filter_string: str = "", prefix: str = ""
) -> TrackedRun:
    """Find the newest finished run with an evaluation, in the named or the active experiment.

    Raises ValueError if there is no such run, or the store refuses the filter.
    """
    evaluated = f"tags.`{tag('status', prefix)}` = 'completed'"
    text = " and ".join(filter(None, (filter_string, "attributes.status = 'FINISHED'", evaluated)))
    ids = experiment_ids(client, experiments) if experiments else [active_experiment_id()]
    run = next(search(client, ids, text, ["attributes.start_time DESC"], max_runs=1), None)
    if run is not None:
        return run
    where = " or ".join(map(repr, experiments)) or "the active experiment"
    like = f" that matches {filter_string!r}" if filter_string else ""
    under = under_prefix(prefix)
    raise ValueError(
        f"there is no finished run with an evaluation{under} in {where}{like}; `cmtrack push` "
        "sends waiting evaluations"
    )


def find_all(
    references: Sequence[Any],
    clients_of: Callable[[Any], Sequence[MlflowClient]],
    progress: Callable[[int], object] = lambda _: None,
    experiments: Sequence[str] = (),
) -> list[TrackedRun]:
    """Fetch runs in parallel and return them in the given order; see :func:`find` for errors."""
    asked = [(reference, clients_of(reference), experiments) for reference in references]
    jobs = each(lambda arguments: find(*arguments), asked, lambda _, done: progress(done))
    return [job.result() for job in jobs]


def with_clients(runs: Any) -> list[tuple[TrackedRun, MlflowClient]]:
    """Return the referenced runs, each with a client of its store; see :func:`find` for errors."""
    cached_client = cache(client_for)

    def client_of(reference: Any) -> MlflowClient:
        if isinstance(reference, TrackedRun) and reference.tracking_uri:
            return cached_client(reference.tracking_uri)
        return cached_client(None)

    references = as_references(runs)
    tracked = find_all(references, lambda reference: [client_of(reference)])
    return list(zip(tracked, map(client_of, references), strict=True))


def unique_names(runs: Mapping[str, str]) -> dict[str, str]:
    """Return a distinct name for each run id; part of the id is added to names that are equal."""
    times = Counter(runs.values())
    labels: dict[str, str] = {}
    taken = {name for name in times if times[name] == 1}
    for run_id, name in runs.items():
        label = name
        # Add as many characters of the id as are needed to distinguish the runs.
        length = 4
        while times[name] > 1 and length <= len(run_id):
            label = f"{name} ({run_id[:length]})"
            if label not in taken:
                break
            length += 4
        taken.add(label)
        labels[run_id] = label
    return labels


def shown_uri(client: MlflowClient) -> str:
    """Return a client's tracking URI without credentials, for messages."""
    return untrusted.without_credentials(client.tracking_uri)


def _as_text(reference: Any) -> str:
    if isinstance(reference, str):
        if not reference.strip():
            raise ValueError("a run must have an id or a name, got an empty text")
        return reference.strip()
    for holder in (reference, getattr(reference, "info", None)):
        for name in ("run_id", "model_id"):
            value = getattr(holder, name, None)
            if isinstance(value, str):
                return value
    kind = type(reference).__name__
    hint = ""
    if isinstance(reference, BaseEvaluation):
        hint = '; give evaluations names: compare({"a": first, "b": second})'
    raise TypeError(
        f"a run must be an id, a name, a model URI, or an object with a run_id, got {kind}{hint}"
    )


def _resolve(text: str, client: MlflowClient) -> tuple[str, tuple[str, ...]]:
    """Return the id of the run, and the id of the logged model that the reference names."""
    if text.startswith("runs:/"):
        return text.removeprefix("runs:/").split("/")[0], ()
    if text.startswith("m-"):
        return _run_of_model(text, client), (text,)
    if not text.startswith("models:/"):
        return text, ()
    name = text.removeprefix("models:/").strip("/")
    if name.startswith("m-") and "/" not in name and "@" not in name:
        return _run_of_model(name, client), (name,)
    if "@" in name:
        version = client.get_model_version_by_alias(*name.rsplit("@", 1))
    else:
        model, _, number = name.rpartition("/")
        if not model:
            raise ValueError(
                f"a model must have the form 'models:/name/3' or 'models:/name@alias', got {text!r}"
            )
        version = client.get_model_version(model, number)
    model_id = logged_model_id(version, client)
    if model_id:
        return _run_of_model(model_id, client), (model_id,)
    if not version.run_id:
        raise ValueError(f"{text!r} does not name the run that it came from")
    return version.run_id, ()


def _run_of_model(model_id: str, client: MlflowClient) -> str:
    """Return the run that last logged metrics for a model; by default its source run."""
    model = client.get_logged_model(model_id)
    logged = [metric for metric in model.metrics or [] if metric.run_id and "/" in metric.key]
    if logged:
        return str(max(logged, key=lambda metric: metric.timestamp).run_id)
    if not model.source_run_id:
        raise ValueError(f"the logged model {model_id!r} does not name its run")
    return str(model.source_run_id)


def as_references(runs: Any) -> list[Any]:
    """Return a list of references, given one reference, a sequence or a frame of runs."""
    if isinstance(runs, (str, TrackedRun)):
        return [runs]
    if hasattr(runs, "columns"):
        if "run_id" not in runs.columns:
            raise ValueError(
                f"a frame of runs must have a column run_id, got {list(runs.columns)[:5]}"
            )
        return list(runs["run_id"])
    if hasattr(runs, "run_id"):
        return [runs]
    if isinstance(runs, Mapping) or not isinstance(runs, Iterable):
        raise TypeError(f"runs must be run ids or objects, got {type(runs).__name__}")
    return list(runs)


def version_for(run: Run, client: MlflowClient, registered_model: str | None = None) -> Any:
    """Return the only model version that belongs to a run or to its logged models.

    Raises ValueError if no model version or more than one model version exists.
    """
    versions = versions_of(run, client)
    model = ""
    if registered_model is not None:
        versions = [version for version in versions if version.name == registered_model]
        model = f"of {registered_model!r} "
    by_number = {(version.name, str(version.version)): version for version in versions}
    source = f"run {run.name!r} ({run.run_id})"
    if not by_number:
        raise ValueError(
            f"no registered version {model}comes from {source}, so the alias cannot be set: "
            "register its model first (mlflow.register_model)"
        )
    if len(by_number) > 1:
        listed = ", ".join(f"{name} version {number}" for name, number in sorted(by_number)[:6])
        hint = "set the alias by hand"
        if len({name for name, _ in by_number}) > 1:
            hint = "choose the model with registered_model="
        raise ValueError(
            f"{len(by_number)} registered versions {model}come from {source}: {listed}; {hint}"
        )
    return next(iter(by_number.values()))


def versions_of(run: Run, client: MlflowClient) -> list[Any]:
    """Return the model versions of a run and its logged models."""
    versions = list(client.search_model_versions(f"run_id='{run.run_id}'"))
    # The store's list of runs contains the models that the runs logged, but not their input models.
    model_ids = run.model_ids or tuple(evaluated_models(client.get_run(run.run_id)))
    if model_ids:
        # A run may also have registered models that were not evaluated.
        wanted = (*model_ids, None)
        versions = [version for version in versions if logged_model_id(version, client) in wanted]
    for model_id in model_ids:
        with mlflow_errors_as(f"the logged model {model_id!r} cannot be read"):
            source_run = client.get_logged_model(model_id).source_run_id
        candidates: list[Any] = []
        if not source_run:  # the model was logged outside of any run
            candidates = client.search_model_versions(f"source_path='models:/{model_id}'")
        elif source_run != run.run_id:
            candidates = client.search_model_versions(f"run_id='{source_run}'")
        versions += [
            version for version in candidates if logged_model_id(version, client) == model_id
        ]
    return versions
