"""MLflow dataset that describes a run's evaluated rows by name, digest, profile and schema."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from cmtrack.base import BaseEvaluation
from cmtrack.evaluation import Evaluation
from cmtrack.grouping import Label
from cmtrack.report import formatting as fmt
from cmtrack.untrusted import one_line

if TYPE_CHECKING:
    from mlflow import MlflowClient

FIELDS = ("name", "digest", "profile", "schema")
MAX_NAME = 500
"""Maximum number of characters that MLflow accepts in the name of a dataset."""
_MOST_CLASSES = 200
_KINDS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    ((bool, np.bool_), "boolean"),
    ((int, np.integer), "long"),
    ((float, np.floating), "double"),
    (object, "string"),
)


def checked_name(name: str | None) -> str | None:
    """Validate the name that the user gave to the evaluated rows.

    Raises TypeError if the name is not a string, and ValueError if the name is empty or too long
    for MLflow.
    """
    if name is None:
        return None
    if not isinstance(name, str):
        raise TypeError(f"dataset must be a name, got {type(name).__name__}")
    if not name.strip() or len(name) > MAX_NAME:
        raise ValueError(f"dataset must be a name of 1 to {MAX_NAME} characters, got {name!r:.60}")
    return one_line(name)


def described(evaluation: BaseEvaluation, name: str | None) -> dict[str, str]:
    """Return the fields of an MLflow dataset (:data:`FIELDS`), with profile and schema as JSON.

    ``name``: the dataset's name. If the given name is None, the dataset is named after its size,
        such as "150 rows of 3 classes".
    """
    rows = evaluation.statistics.digest.rows
    profile: dict[str, Any] = {"rows": rows}
    columns: list[tuple[str, str]] = []
    if isinstance(evaluation, Evaluation):
        classes = evaluation.classes
        content = f"{fmt.counted(rows, 'row')} of {fmt.counted(len(classes), 'class')}"
        if evaluation.weights_are is not None:
            profile["sum_of_weights"] = evaluation.n_samples
        sizes = evaluation.confusion_matrix.counts.sum(axis=1).tolist()
        counts = list(zip(evaluation.labels, sizes, strict=True))[:_MOST_CLASSES]
        profile["classes"] = len(classes)
        profile["counts"] = {one_line(label): size for label, size in counts}
        columns = _columns(evaluation)
    else:
        codes = fmt.counted(len(evaluation.labels), "code")
        content = f"{fmt.counted(rows, evaluation.unit)} of {codes}"
        profile |= evaluation.sizes
    entry = {
        "name": content if name is None else name,
        "digest": evaluation.labels_digest,
        "profile": json.dumps(profile, ensure_ascii=False),
    }
    if columns:
        spec = [{"type": kind, "name": column, "required": True} for column, kind in columns]
        entry["schema"] = json.dumps({"mlflow_colspec": spec}, ensure_ascii=False)
    return entry


def _columns(evaluation: Evaluation) -> list[tuple[str, str]]:
    """Return the name and type of each column in the predictions file."""
    if evaluation.none is not None:  # spans have no table of rows
        return []
    label = _kind(evaluation.labels)
    columns = [("y_true", label), ("y_pred", label)]
    if evaluation.weights_are == "frequency":
        columns.append(("sample_weight", "long"))
    elif evaluation.weights_are is not None:
        columns.append(("sample_weight", "double"))
    if evaluation.statistics.moments is not None:
        columns += [
            (f"prob/{one_line(name)}", "double") for name in evaluation.labels[:_MOST_CLASSES]
        ]
    elif evaluation.positive_scores is not None:
        columns.append(("score", "double"))
    return columns


def _kind(labels: tuple[Label, ...]) -> str:
    return next(name for kind, name in _KINDS if all(isinstance(label, kind) for label in labels))


def log(
    client: MlflowClient, run_id: str, entry: dict[str, str], model_id: str | None = None
) -> None:
    """Add the dataset to a run's inputs and, if ``model_id`` is given, also the evaluated model."""
    from mlflow.data.code_dataset_source import CodeDatasetSource
    from mlflow.entities import Dataset, DatasetInput, InputTag, LoggedModelInput
    from mlflow.exceptions import MlflowException

    source: Any = CodeDatasetSource(tags={})
    dataset = Dataset(
        entry["name"],
        entry["digest"],
        "code",
        source.to_json(),
        entry.get("schema"),
        entry.get("profile"),
    )
    inputs = [DatasetInput(dataset, tags=[InputTag("mlflow.data.context", "evaluation")])]
    models = None if model_id is None else [LoggedModelInput(model_id)]
    try:
        client.log_inputs(run_id, inputs, models)
    except MlflowException:
        # Another run may just have written the same dataset, so try again.
        client.log_inputs(run_id, inputs, models)


def is_there(run: Any, entry: dict[str, str]) -> bool:
    """Return True if the dataset is among a run's inputs."""
    inputs = getattr(getattr(run, "inputs", None), "dataset_inputs", None) or []
    held = {(logged.dataset.name, logged.dataset.digest) for logged in inputs}
    return (entry["name"], entry["digest"]) in held
