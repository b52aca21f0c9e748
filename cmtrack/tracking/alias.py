"""The version of a registered model that a run stands for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cmtrack.comparison.run import Run
from cmtrack.tracking.runs import first_line

if TYPE_CHECKING:
    from mlflow import MlflowClient


def version_for(run: Run, client: MlflowClient, registered_model: str | None = None) -> Any:
    """The one model version that came from a run or from its logged models.

    Raises
    ------
    ValueError
        If there is none, or more than one.
    """
    found = {(version.name, str(version.version)): version for version in _versions(run, client)}
    if registered_model is not None:
        found = {key: version for key, version in found.items() if key[0] == registered_model}
    of = f"of {registered_model!r} " if registered_model is not None else ""
    who = f"run {run.name!r} ({run.run_id})"
    if not found:
        raise ValueError(
            f"no registered version {of}comes from {who}, so the alias has nothing to stand for: register its model "
            "first (mlflow.register_model)"
        )
    if len(found) > 1:
        listed = ", ".join(f"{name} version {number}" for name, number in sorted(found)[:6])
        names = {name for name, _ in found}
        hint = "registered_model= says which model" if len(names) > 1 else "set the alias by hand for the one you mean"
        raise ValueError(f"{len(found)} registered versions {of}come from {who}: {listed}; {hint}")
    return next(iter(found.values()))


def _versions(run: Run, client: MlflowClient) -> list[Any]:
    from mlflow.exceptions import MlflowException

    versions = list(client.search_model_versions(f"run_id='{run.run_id}'"))
    if run.model_ids:  # a run may have registered other models than the one that was judged
        judged = [version for version in versions if _model_id(version) in (*run.model_ids, None)]
        versions = judged or versions
    for model_id in run.model_ids:
        try:
            source = client.get_logged_model(model_id).source_run_id
        except MlflowException as error:
            raise ValueError(f"the logged model {model_id!r} cannot be read: {first_line(error)}") from None
        if source and source != run.run_id:
            found = client.search_model_versions(f"run_id='{source}'")
            versions += [version for version in found if _model_id(version) == model_id]
    return versions


def _model_id(version: Any) -> str | None:
    return getattr(version, "model_id", None) or None
