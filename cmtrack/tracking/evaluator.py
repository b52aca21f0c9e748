"""Implementation of the ``mlflow.models.evaluate`` plug-in: MLflow's data and model -> ``log_evaluation``."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from mlflow import MlflowClient
from mlflow.models.evaluation.artifacts import (
    ImageEvaluationArtifact,
    JsonEvaluationArtifact,
    ParquetEvaluationArtifact,
    TextEvaluationArtifact,
)
from mlflow.models.evaluation.base import EvaluationArtifact, EvaluationResult

from cmtrack.evaluation.spec import Spec, unless_decided
from cmtrack.grouping import Grouping
from cmtrack.statistics.segment_values import divisions_of
from cmtrack.tracking import names
from cmtrack.tracking._warn import tell
from cmtrack.tracking.log import LoggedEvaluation, log_evaluation

OUTPUT = "output"
_AS_THEY_ARE = (
    "labels",
    "calibration",
    "target",
    *(name for name in Spec.options() if name != "grouping"),
)
_BY_ROW = ("sample_weight", "groups", "row_ids")
_OF_THE_RUN = {
    "step": None,
    "predictions": "auto",
    "on_existing": "replace",
    "dataset": None,
    "figures": "auto",
}


def evaluate_dataset(
    dataset: Any,
    *,
    config: Mapping[str, Any],
    known: frozenset[str],
    run_id: str,
    model: Any = None,
    model_id: str | None = None,
    predictions: str | None = None,
) -> EvaluationResult:
    """Evaluate a dataset of MLflow and log it to the run; a failure is a warning and an empty result.

    With a ``model_id`` MLflow itself logs the metrics of the result, to the run and to the model:
    they are then not logged here.

    ``config``: the options of ``cmtrack_integrations.mlflow_evaluator``.
    ``known``: their names.
    ``predictions``: the column of labels in the frame that the model returns.
    """
    try:
        given = read_inputs(dataset, config, known, model, predictions)
    except Exception as error:
        if config.get("strict"):
            raise
        tell(f"the evaluation failed: {error}", stacklevel=3)
        return EvaluationResult({}, {}, run_id)
    chosen, prefix = config.get("metrics", "headline"), config.get("prefix", "")
    logged = log_evaluation(
        given.pop("y_true"),
        **given,
        **{name: config.get(name, usual) for name, usual in _OF_THE_RUN.items()},
        run_id=run_id,
        model_id=model_id,
        prefix=prefix,
        metrics=chosen if model_id is None else [],
        strict=bool(config.get("strict")),
    )
    try:
        metrics = _metrics(logged, chosen, prefix, with_tag=model_id is not None)
        artifacts = _artifacts(run_id, prefix) if logged.status == "completed" else {}
    except Exception as error:
        if config.get("strict"):
            raise
        if logged.status == "completed":  # else it was said why
            tell(
                f"the evaluation is logged, but MLflow's result of it is empty: {error}",
                stacklevel=3,
            )
        return EvaluationResult({}, {}, run_id)
    return EvaluationResult(metrics, artifacts, run_id)


# -- what goes in ----------------------------------------------------------------------------------


def read_inputs(
    dataset: Any,
    config: Mapping[str, Any],
    known: frozenset[str],
    model: Any,
    predictions: str | None,
) -> dict[str, Any]:
    """Labels, predictions and probabilities as arguments of ``log_evaluation``.

    ValueError if an option or a column does not exist, or there is nothing to evaluate.
    """
    unknown = sorted(set(config) - known)
    if unknown:
        raise ValueError(
            f"evaluator_config must hold options of cmtrack, got {unknown[0]!r}; they are "
            f"{sorted(known)}"
        )
    if dataset.labels_data is None:
        raise ValueError(
            "the evaluation needs labels, got no targets: pass targets= to mlflow.models.evaluate"
        )
    given: dict[str, Any] = {name: config[name] for name in _AS_THEY_ARE if name in config}
    if config.get("grouping") is not None:
        given["grouping"] = as_grouping(config["grouping"])
    table = _columns_of(dataset.features_data, dataset.feature_names)
    for name in _BY_ROW:
        wanted = config.get(name)
        if wanted is not None:
            given[name] = _column(table, wanted, name) if isinstance(wanted, str) else wanted
    dividing = _named_segments(config.get("segments"))
    if dividing:
        columns = {
            name: _column(table, name, "segments") for division in dividing for name in division
        }
        given["segments"] = (
            columns,
            [division if len(division) > 1 else division[0] for division in dividing],
        )
    elif config.get("segments") is not None:
        given["segments"] = config["segments"]
    given["y_true"] = dataset.labels_data
    if model is None:
        given["y_pred"] = unless_decided(dataset.predictions_data, config)
        given["y_prob"] = _probabilities(table, config.get("y_prob"))
        if given["y_pred"] is None and given["y_prob"] is None:
            raise ValueError(
                "the data have neither predictions nor probabilities: pass predictions= to "
                "mlflow.models.evaluate, or "
                f"name the columns of probabilities in evaluator_config ('y_prob': 'p_*'), got "
                f"columns {list(table)}"
            )
        return given
    used = [config[name] for name in _BY_ROW if isinstance(config.get(name), str)]
    used += [name for division in dividing for name in division]
    features = dataset.features_data
    if used and hasattr(features, "columns"):
        features = features.drop(
            columns=[column for column in features.columns if str(column) in used]
        )
    predicted = _predicted(model, features, config, predictions, given.get("labels"))
    return given | predicted | {"y_pred": unless_decided(predicted.get("y_pred"), config)}


def _named_segments(given: Any) -> tuple[tuple[str, ...], ...]:
    """The data columns that ``segments`` names."""
    if not isinstance(given, (list, tuple)) or not all(
        isinstance(name, (str, list, tuple)) for name in given
    ):
        return ()
    flat = [one for name in given for one in ([name] if isinstance(name, str) else name)]
    divisions: Any = (
        divisions_of(list(given)) if given and all(isinstance(one, str) for one in flat) else ()
    )
    return divisions


def as_grouping(given: Any) -> Grouping:
    """A grouping from an object, from plain data or from a file."""
    if isinstance(given, Grouping):
        return given
    if isinstance(given, Mapping):
        return Grouping.from_dict(given)
    if isinstance(given, (str, Path)):
        return Grouping.from_file(given)
    raise TypeError(f"grouping must be a Grouping, a mapping or a path, got {type(given).__name__}")


def _columns_of(features: Any, feature_names: Any) -> dict[str, Any]:
    if hasattr(features, "columns"):
        return {str(name): features[name].to_numpy() for name in features.columns}
    array = np.asarray(features)
    return {str(name): array[:, place] for place, name in enumerate(feature_names)}


def _column(table: Mapping[str, Any], name: str, what: str) -> Any:
    if name not in table:
        raise ValueError(
            f"{what} must name a column of the data, got {name!r}; the columns are "
            f"{list(table)[:30]}"
        )
    return table[name]


def _probabilities(table: Mapping[str, Any], wanted: Any) -> Any:
    """The columns of probabilities, in a form that ``evaluate`` takes."""
    if wanted is None:
        return None
    if isinstance(wanted, str) and "*" in wanted:
        from cmtrack.sources import match_pattern

        columns = match_pattern(wanted, list(table))
        if not columns:
            raise ValueError(
                f"no column is called like y_prob={wanted!r}; the columns are {list(table)[:30]}"
            )
        return {label: table[name] for label, name in columns.items()}
    if isinstance(wanted, str):
        return _column(table, wanted, "y_prob")
    if isinstance(wanted, Mapping):
        return {label: _column(table, name, "y_prob") for label, name in wanted.items()}
    if isinstance(wanted, (list, tuple)) and all(isinstance(name, str) for name in wanted):
        return np.column_stack([_column(table, name, "y_prob") for name in wanted])
    raise ValueError(
        f"y_prob must be a column, a pattern with one star, a list or a mapping of columns, got "
        f"{wanted!r}"
    )


def _predicted(
    model: Any, features: Any, config: Mapping[str, Any], predictions: str | None, labels: Any
) -> dict[str, Any]:
    """Labels and, if the model gives them, probabilities."""
    wanted, params = config.get("y_prob"), config.get("params")
    raw: Any = None
    # not every flavour exposes the model inside the pyfunc wrapper
    with contextlib.suppress(Exception):
        raw = model.get_raw_model()
    classes = getattr(raw, "classes_", None)
    if wanted is None and params is None and hasattr(raw, "predict_proba") and classes is not None:
        return {
            "y_pred": np.ravel(raw.predict(features)),
            "y_prob": raw.predict_proba(features),
            "labels": list(classes) if labels is None else labels,
        }
    output = model.predict(features) if params is None else model.predict(features, params=params)
    if isinstance(wanted, str) and wanted == OUTPUT:
        return {"y_prob": np.asarray(output)}
    if hasattr(output, "columns") and (predictions is not None or wanted is not None):
        table = _columns_of(output, None)
        return {
            "y_pred": None if predictions is None else _column(table, predictions, "predictions"),
            "y_prob": _probabilities(table, wanted),
        }
    values = np.asarray(output)
    # such as a model logged with pyfunc_predict_fn="predict_proba"
    if values.ndim == 2 and values.shape[1] > 1:
        more = {} if classes is None or labels is not None else {"labels": list(classes)}
        return {
            "y_prob": output if hasattr(output, "columns") and classes is None else values,
            **more,
        }
    tell(
        "the model gives labels only, so the metrics of probabilities (ROC, sPCC, prevalence) are "
        "left out; a model "
        'with predict_proba or pyfunc_predict_fn="predict_proba" has them',
        stacklevel=5,
    )
    return {"y_pred": np.ravel(values)}


# -- what comes out --------------------------------------------------------------------------------


def _metrics(
    logged: LoggedEvaluation, chosen: Any, prefix: str, with_tag: bool
) -> dict[str, float]:
    if logged.evaluation is None:
        return {}
    prefix = names.prefix_to_log(prefix)
    values = names.chosen_metrics(logged.evaluation, chosen)
    undefined = [name for name, value in values.items() if not math.isfinite(value)]
    if with_tag and undefined and logged.status == "completed":
        text = names.tag_text(", ".join(undefined))
        MlflowClient().set_tag(logged.run_id, names.tag("undefined", prefix), text)
    return {
        (prefix + name)[: names.MAX_NAME]: value
        for name, value in values.items()
        if math.isfinite(value)
    }


class _Fetched:
    """Artifact with lazily fetched content, also in ``EvaluationResult.save``."""

    def _save(self, path: str) -> None:
        self.content  # type: ignore[attr-defined]  # noqa: B018 - fetched here
        super()._save(path)  # type: ignore[misc]


class JsonFile(_Fetched, JsonEvaluationArtifact):  # type: ignore[misc]
    """The evaluation or the table of classes."""


class ImageFile(_Fetched, ImageEvaluationArtifact):  # type: ignore[misc]
    """A figure."""


class ParquetFile(_Fetched, ParquetEvaluationArtifact):  # type: ignore[misc]
    """The rows' predictions."""


class TextFile(_Fetched, TextEvaluationArtifact):  # type: ignore[misc]
    """The report."""


_KINDS = {".json": JsonFile, ".png": ImageFile, ".parquet": ParquetFile, ".html": TextFile}


def _artifacts(run_id: str, prefix: str) -> dict[str, EvaluationArtifact]:
    """The files of the evaluation, by name."""
    client, start = MlflowClient(), names.file_name("cmtrack_", prefix)
    root = client.get_run(run_id).info.artifact_uri.rstrip("/")
    paths = [
        Path(item.path) for item in client.list_artifacts(run_id) if item.path.startswith(start)
    ]
    return {
        path.stem: _KINDS[path.suffix](uri=f"{root}/{path.name}")
        for path in paths
        if path.suffix in _KINDS
    }
