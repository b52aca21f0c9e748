"""Registered models in MLflow: their versions, their aliases, and the logged model of a version."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cmtrack import untrusted
from cmtrack.names import did_you_mean
from cmtrack.tracking._warn import first_line
from cmtrack.tracking.names import tag
from cmtrack.tracking.store import ABSENT, experiment_named, location_like

if TYPE_CHECKING:
    from mlflow import MlflowClient

_URI = re.compile(r"models:/(?P<name>[^/@]+)(?:/(?P<version>[^/@]+)|@(?P<alias>[^/@]+))")
_NAME = re.compile(r"[^/@]+")
_NUMBER = re.compile(r"[1-9][0-9]{0,8}")
"""Matches the number of a version as MLflow writes it; larger numbers do not fit a database."""
_MODEL_SOURCE = re.compile(
    r"models:/(?P<id>m-[0-9a-zA-Z_-]+)/?|.*/models/(?P<folder>m-[0-9a-f]{32})/artifacts/?"
)
"""Matches a model version's source if it is the URI or the folder of a logged model."""
_VERSION_SOURCE = re.compile(r"models:/(?P<name>[^/@]+)/(?P<version>[0-9]+)")
_RUN_SOURCE = re.compile(r"runs:/(?P<run>[^/]+)/(?P<model>.+)")
_MOST_COPIES = 20
"""Maximum number of copies that are followed to find the original of a model version.

A limit is needed, because a registry may contain a circle of copies.
"""


@dataclass(frozen=True)
class ModelVersion:
    """A version of a registered model.

    ``number`` is a text, because MLflow's SQL store returns integers and its server returns texts.
    ``model_id`` is the id of the logged model, or None for a version without one. ``made`` is the
    time at which the version was registered, by the clock of the server, in milliseconds since
    1970.
    """

    name: str
    number: str
    model_id: str | None
    run_id: str
    made: int
    tags: dict[str, str]

    @property
    def uri(self) -> str:
        """The address of this version, such as ``models:/party/3``."""
        return f"models:/{self.name}/{self.number}"


def model_name(text: str) -> str:
    """Return the name in ``models:/name`` or in a plain name; raise ValueError if it is invalid."""
    name = text.removeprefix("models:/") if isinstance(text, str) else ""
    if not name or not _NAME.fullmatch(name):
        raise ValueError(f"a registered model must have the form 'models:/name', got {text!r}")
    return name


def find_version(uri: str, client: MlflowClient) -> ModelVersion:
    """Return the version that an address names.

    Raises ValueError if the address has another form, or if the model, the version or the alias
    does not exist, and ConnectionError if the store does not answer.

    ``uri``: an address such as ``models:/party/3``, ``models:/party@champion`` or
        ``models:/party/latest``.
    """
    parts = _URI.fullmatch(uri) if isinstance(uri, str) else None
    if parts is None:
        raise ValueError(
            f"a registered model must have the form 'models:/name/3' or 'models:/name@alias', got "
            f"{uri!r}"
        )
    name = parts["name"]
    model = find_model(name, client)
    number = parts["version"]
    if parts["alias"] is not None:
        number = version_of_alias(model, parts["alias"])
        if number is None:
            raise ValueError(f"{name} has no alias {parts['alias']!r}; {_existing_aliases(model)}")
    if number == "latest":
        number = _newest(name, client)
    version = None
    if number is not None and _NUMBER.fullmatch(number):
        version = _fetched(lambda: client.get_model_version(name, number), client)
    if version is None:
        newest = _newest(name, client)
        known = f"the newest is {newest}" if newest else "it has no versions"
        raise ValueError(f"{name} has no version {number}, {known}")
    return from_entity(version, client)


def filter_by_name(name: str) -> str:
    """Return MLflow's filter for a model's versions; raise ValueError if it cannot be written."""
    quote = '"' if "'" in name else "'"
    if quote in name:
        raise ValueError(f"a model's name must not contain both kinds of quotes, got {name!r}")
    return f"name={quote}{name}{quote}"


def find_model(name: str, client: MlflowClient) -> Any:
    """Return MLflow's entity of a registered model; raise ValueError if it does not exist."""
    model = _fetched(lambda: client.get_registered_model(name), client)
    if model is None:
        names = [existing.name for existing in client.search_registered_models()]
        raise ValueError(f"there is no registered model {name!r}{did_you_mean(name, names)}")
    return model


def version_of_alias(model: Any, alias: str) -> str | None:
    """Return the number of the version that an alias names, or None if the alias is not set."""
    number = (model.aliases or {}).get(alias)
    return None if number is None else str(number)


def stated_experiment(model: Any) -> str | None:
    """Return the id in the registered model's tag ``cmtrack.history``; None without this tag."""
    stated = (model.tags or {}).get(tag("history"))
    return None if stated is None else untrusted.identifier(stated, "an experiment's id")


def history_experiment(version: ModelVersion, client: MlflowClient) -> str:
    """Return the id of the experiment for evaluations and promotions of a registered model.

    The registered model's tag ``cmtrack.history`` contains the id. If the tag is missing, or the
    experiment was deleted, the experiment is created where the experiment of the version's run is.
    """
    experiment_id = stated_experiment(find_model(version.name, client))
    if experiment_id is not None:
        experiment = _fetched(lambda: client.get_experiment(experiment_id), client)
        if experiment is not None and experiment.lifecycle_stage == "active":
            return experiment_id
    location = None
    if version.run_id:
        run = _fetched(lambda: client.get_run(version.run_id), client)
        if run is not None:
            location = location_like(client.get_experiment(run.info.experiment_id))
    name = _free_name(f"{version.name}: history", client)
    experiment_id = experiment_named(client, name, location)
    client.set_registered_model_tag(version.name, tag("history"), experiment_id)
    return experiment_id


def _free_name(name: str, client: MlflowClient) -> str:
    """Return an experiment's name, with a number if an experiment with this name was deleted."""
    free = name
    number = 1
    while True:
        experiment = client.get_experiment_by_name(free)
        if experiment is None or experiment.lifecycle_stage == "active":
            return free
        number += 1
        free = f"{name} ({number})"


def from_entity(version: Any, client: MlflowClient) -> ModelVersion:
    """Convert MLflow's entity of a version."""
    return ModelVersion(
        name=str(version.name),
        number=untrusted.identifier(str(version.version), "a version's number"),
        model_id=logged_model_id(version, client),
        run_id=str(version.run_id or ""),
        made=int(version.creation_timestamp or 0),
        tags=dict(version.tags or {}),
    )


def logged_model_id(version: Any, client: MlflowClient, copies: int = 0) -> str | None:
    """Return the id of the logged model that was registered as a version.

    Returns None if unknown. Only Databricks sets a version's field ``model_id``. The open-source
    registry stores the id in the source of the version. If a version was copied, its source is the
    original version. A source ``runs:/<run>/<name>`` refers to the model that the run logged under
    this name.
    """
    if getattr(version, "model_id", None):
        return str(version.model_id)
    source = str(getattr(version, "source", None) or "")
    logged = _MODEL_SOURCE.fullmatch(source)
    if logged:
        return logged["id"] or logged["folder"]
    original = _VERSION_SOURCE.fullmatch(source)
    if original and copies < _MOST_COPIES:
        return logged_model_id(
            client.get_model_version(original["name"], original["version"]), client, copies + 1
        )
    from_run = _RUN_SOURCE.fullmatch(source)
    if from_run:
        return _named_model(from_run["run"], from_run["model"], client)
    return None


def _named_model(run_id: str, name: str, client: MlflowClient) -> str | None:
    """Return the id of the only model with a given name in a run.

    Returns None if the run contains no model or several models with this name.
    """
    outputs = getattr(client.get_run(run_id), "outputs", None)
    ids = [output.model_id for output in getattr(outputs, "model_outputs", None) or []]
    named = [model_id for model_id in ids if client.get_logged_model(model_id).name == name]
    return named[0] if len(named) == 1 else None


def _fetched(fetch: Any, client: MlflowClient) -> Any:
    """Return what the store has, or None if the store does not have it."""
    from mlflow.exceptions import MlflowException

    try:
        return fetch()
    except MlflowException as error:
        if error.error_code in ABSENT:
            return None
        uri = untrusted.without_credentials(client.tracking_uri)
        raise ConnectionError(f"{uri} did not answer: {first_line(error)}") from None


def _newest(name: str, client: MlflowClient) -> str:
    """Return the number of a model's newest version; empty if it has no versions."""
    versions = client.search_model_versions(filter_by_name(name))
    return str(max((int(version.version) for version in versions), default=""))


def _existing_aliases(model: Any) -> str:
    aliases = sorted(model.aliases or {})
    if not aliases:
        return "no alias is set"
    return f"its aliases are {', '.join(map(repr, aliases))}"
