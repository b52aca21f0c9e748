"""An evaluation that a run holds already, and what must go when another one takes its place."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from cmtrack import untrusted
from cmtrack.metrics.catalog import lookup
from cmtrack.tracking import names
from cmtrack.tracking.package import Package

if TYPE_CHECKING:
    from mlflow import MlflowClient

STALE = "stale_metrics"
"""Tag that names metrics of a replaced evaluation: MLflow removes none."""
LEFT_OUT = "left_out"
"""Tag that names the files which the store refused."""
_TAGS = (
    "evaluation_digest", "families", "grouping", "kind", "labels_digest", "positive", "predictions_digest",
    names.ROWS_FILE, "regrouped_from", "regrouping", "row_ids_digest",
    "samples", "undefined", "warnings", LEFT_OUT, STALE,
)  # fmt: skip


def is_there(run: Any, package: Package) -> bool:
    """True where the run holds all of this package, so that nothing is to be sent."""
    tags, metrics = run.data.tags, run.data.metrics
    if tags.get(names.tag("status", package.prefix)) != "completed" or names.tag(LEFT_OUT, package.prefix) in tags:
        return False
    return (
        package.step is None
        and package.model_id is None
        and _same(run, package)
        and all(tags.get(name) == text for name, text in package.tags.items())
        and all(metrics.get(name) == value for name, value in package.metrics.items())
    )


def _same(run: Any, package: Package) -> bool:
    known = names.digest_tag(names.EVALUATION_FILE, package.prefix)
    return bool(known in package.tags and run.data.tags.get(known) == package.tags[known])


def what_is_there(run: Any, package: Package) -> str:
    """Another evaluation under the package's prefix, in words; empty where there is none.

    An evaluation of a step takes the place of that of an earlier step: that is no other one.
    """
    tags = run.data.tags
    status = tags.get(names.tag("status", package.prefix), "")
    if status != "completed" or _same(run, package) or package.step is not None:
        return ""
    samples = untrusted.printable(tags.get(names.tag("samples", package.prefix), "?"))
    digest = names.tag("labels_digest", package.prefix)
    rows = "the same rows" if tags.get(digest) == package.tags.get(digest) else "other rows"
    under = f" under the prefix {package.prefix!r}" if package.prefix else ""
    return f"an evaluation of {samples} samples ({rows}){under}"


def stale_metrics(run: Any, package: Package) -> list[str]:
    """Metrics of an earlier evaluation that the new one has not."""
    found = []
    for name in run.data.metrics:
        if name.startswith(package.prefix) and name not in package.metrics:
            try:
                lookup(name.removeprefix(package.prefix))
            except KeyError:
                continue  # the script's own
            found.append(name)
    return sorted(found)


def old_tags(run: Any, package: Package, new: Iterable[str]) -> list[str]:
    """Tags of an earlier evaluation that the new one does not write."""
    ours = {names.tag(name, package.prefix) for name in _TAGS}
    return sorted((ours & set(run.data.tags)) - set(new))


def remove_old_files(client: MlflowClient, run: Any, package: Package, keep: Iterable[str]) -> None:
    """Remove the files of an earlier evaluation, where the store can remove files.

    Raises
    ------
    Exception
        What the store says where it cannot.
    """
    from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

    run_id, keep = run.info.run_id, set(keep)
    start = names.file_name("cmtrack_", package.prefix)
    listed = [item.path for item in client.list_artifacts(run_id) if not item.is_dir]
    gone = [untrusted.file_name(path) for path in listed if path.startswith(start) and path not in keep]
    if gone:
        store = get_artifact_repository(run.info.artifact_uri, tracking_uri=client.tracking_uri)
        for path in gone:
            store.delete_artifacts(path)
