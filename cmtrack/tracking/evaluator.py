"""Plug-in for ``mlflow.models.evaluate`` that calls ``log_evaluation``."""

from __future__ import annotations

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
from cmtrack.tracking.scoring import (
    classes_of,
    gives_probabilities,
    in_order_of,
    predictions_in,
    raw_model,
    score,
)

OUTPUT = "output"
"""The value of the option ``y_prob`` for a model whose outputs are probabilities."""
_AS_THEY_ARE = (
    "labels",
    "calibration",
    "target",
    *(name for name in Spec.options() if name != "grouping"),
)
"""Options that are passed to ``log_evaluation`` unchanged."""
_BY_ROW = ("sample_weight", "groups", "row_ids")
"""Options whose value may be the name of a column in the data."""
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
    """Evaluate an MLflow dataset and log the evaluation to the run.

    If the evaluation fails, you get a warning and an empty result or, if the option ``strict`` is
    True, an error. If ``model_id`` is given, MLflow itself logs the metrics of the result to the
    run and to the model, so they are not logged here.

    ``config``: the options of ``cmtrack_integrations.mlflow_evaluator``.
    ``known``: the names of all valid options.
    ``predictions``: the column of labels in the frame that the model returns.
    """
    try:
        inputs = read_inputs(dataset, config, known, model, predictions)
    except Exception as error:
        if config.get("strict"):
            raise
        tell(f"the evaluation failed: {error}")
        return EvaluationResult({}, {}, run_id)
    chosen = config.get("metrics", "headline")
    prefix = config.get("prefix", "")
    logged = log_evaluation(
        inputs.pop("y_true"),
        **inputs,
        **{name: config.get(name, default) for name, default in _OF_THE_RUN.items()},
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
        if logged.status == "completed":  # otherwise a warning has already given the reason
            tell(f"the evaluation is logged, but the result for MLflow is empty: {error}")
        return EvaluationResult({}, {}, run_id)
    return EvaluationResult(metrics, artifacts, run_id)


# -- inputs ----------------------------------------------------------------------------------------


def read_inputs(
    dataset: Any,
    config: Mapping[str, Any],
    known: frozenset[str],
    model: Any,
    predictions: str | None,
) -> dict[str, Any]:
    """Return labels, predictions and probabilities as arguments of ``log_evaluation``.

    Raises ValueError if an option or a column does not exist, or if labels or predictions are
    missing.
    """
    unknown = sorted(set(config) - known)
    if unknown:
        raise ValueError(
            f"evaluator_config must contain options of cmtrack, got {unknown[0]!r}; they are "
            f"{sorted(known)}"
        )
    if dataset.labels_data is None:
        raise ValueError(
            "the evaluation needs labels, got no targets: pass targets= to mlflow.models.evaluate"
        )
    inputs: dict[str, Any] = {name: config[name] for name in _AS_THEY_ARE if name in config}
    inputs["y_true"] = dataset.labels_data
    if config.get("grouping") is not None:
        inputs["grouping"] = as_grouping(config["grouping"])
    features = dataset.features_data
    table = _columns_of(features, dataset.feature_names)
    by_row, used_columns = _values_by_row(table, config)
    inputs |= by_row
    if model is None:
        return inputs | _stated_predictions(dataset, table, config)
    if hasattr(features, "columns"):
        # The model was trained without the columns of weights, groups and segments.
        used = [column for column in features.columns if str(column) in used_columns]
        if used:
            features = features.drop(columns=used)
    predicted = _predicted(model, features, config, predictions, inputs.get("labels"))
    y_pred = unless_decided(predicted.get("y_pred"), config)
    return inputs | predicted | {"y_pred": y_pred}


def _values_by_row(
    table: Mapping[str, Any], config: Mapping[str, Any]
) -> tuple[dict[str, Any], set[str]]:
    """Return weights, groups, row ids and segments, and the names of their columns."""
    values: dict[str, Any] = {}
    columns: set[str] = set()
    for name in _BY_ROW:
        option = config.get(name)
        if isinstance(option, str):
            columns.add(option)
            values[name] = _column(table, option, name)
        elif option is not None:
            values[name] = option
    segments: Any = config.get("segments")
    divisions = _named_segments(segments)
    if divisions:
        names = [name for division in divisions for name in division]
        columns.update(names)
        divided = {name: _column(table, name, "segments") for name in names}
        values["segments"] = (divided, list(segments))
    elif segments is not None:
        values["segments"] = segments
    return values, columns


def _named_segments(segments: Any) -> tuple[tuple[str, ...], ...]:
    """Return the data columns that ``segments`` names.

    The result is empty if ``segments`` contains values.
    """
    if not segments or not isinstance(segments, (list, tuple)):
        return ()
    names: list[Any] = []
    for name in segments:
        if isinstance(name, (list, tuple)):
            names += name
        else:
            names.append(name)
    if not all(isinstance(name, str) for name in names):
        return ()
    divisions: Any = divisions_of(segments)
    return divisions


def _stated_predictions(
    dataset: Any, table: Mapping[str, Any], config: Mapping[str, Any]
) -> dict[str, Any]:
    """Return predictions and probabilities from the data; raise ValueError if both are missing."""
    y_pred = unless_decided(dataset.predictions_data, config)
    y_prob = _probabilities(table, config.get("y_prob"))
    if y_pred is None and y_prob is None:
        raise ValueError(
            "the data have neither predictions nor probabilities: pass predictions= to "
            "mlflow.models.evaluate, or name the columns of probabilities in evaluator_config "
            f"('y_prob': 'p_*'), got columns {list(table)}"
        )
    return {"y_pred": y_pred, "y_prob": y_prob}


def as_grouping(source: Any) -> Grouping:
    """Return a Grouping, given a Grouping, plain data or the path of a file."""
    if isinstance(source, Grouping):
        return source
    if isinstance(source, Mapping):
        return Grouping.from_dict(source)
    if isinstance(source, (str, Path)):
        return Grouping.from_file(source)
    kind = type(source).__name__
    raise TypeError(f"grouping must be a Grouping, a mapping or a path, got {kind}")


def _columns_of(features: Any, feature_names: Any) -> dict[str, Any]:
    if hasattr(features, "columns"):
        return {str(name): features[name].to_numpy() for name in features.columns}
    array = np.asarray(features)
    return {str(name): array[:, index] for index, name in enumerate(feature_names)}


def _column(table: Mapping[str, Any], name: str, what: str) -> Any:
    """Return a column of the data; raise ValueError if it does not exist."""
    if name not in table:
        raise ValueError(
            f"{what} must name a column of the data, got {name!r}; the columns are "
            f"{list(table)[:30]}"
        )
    return table[name]


def _probabilities(table: Mapping[str, Any], wanted: Any) -> Any:
    """Return the columns of probabilities, in a form that ``evaluate`` accepts."""
    if wanted is None:
        return None
    if isinstance(wanted, str) and "*" in wanted:
        from cmtrack.sources import match_pattern

        columns = match_pattern(wanted, list(table))
        if not columns:
            raise ValueError(
                f"no column matches y_prob={wanted!r}; the columns are {list(table)[:30]}"
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
    """Return predicted labels and, if the model returns them, probabilities."""
    wanted = config.get("y_prob")
    params = config.get("params")
    raw = raw_model(model)
    if wanted is None and params is None and gives_probabilities(raw):
        return in_order_of(labels, score(model, features), "the model")
    output = model.predict(features) if params is None else model.predict(features, params=params)
    if isinstance(wanted, str) and wanted == OUTPUT:
        return {"y_prob": np.asarray(output)}
    if hasattr(output, "columns") and (predictions is not None or wanted is not None):
        table = _columns_of(output, None)
        y_pred = None if predictions is None else _column(table, predictions, "predictions")
        return {"y_pred": y_pred, "y_prob": _probabilities(table, wanted)}
    predicted = in_order_of(labels, predictions_in(output, classes_of(raw)), "the model")
    if "y_prob" not in predicted:
        tell(
            "the model returns only labels, so metrics that need probabilities (ROC, sPCC, "
            "prevalence) are missing; they need a model with predict_proba, or a model that was "
            'logged with pyfunc_predict_fn="predict_proba"'
        )
    return predicted


# -- what comes out --------------------------------------------------------------------------------


def _metrics(
    logged: LoggedEvaluation, chosen: Any, prefix: str, with_tag: bool
) -> dict[str, float]:
    if logged.evaluation is None:
        return {}
    prefix = names.prefix_to_log(prefix)
    metrics, undefined = names.finite_metrics(logged.evaluation, chosen, prefix)
    if with_tag and undefined and logged.status == "completed":
        text = names.tag_text(", ".join(undefined))
        MlflowClient().set_tag(logged.run_id, names.tag("undefined", prefix), text)
    return metrics


class _Fetched:
    """An artifact whose content is fetched only when it is accessed or saved with a result."""

    def _save(self, path: str) -> None:
        self.content  # type: ignore[attr-defined]  # noqa: B018 - fetched here
        super()._save(path)  # type: ignore[misc]


class JsonFile(_Fetched, JsonEvaluationArtifact):  # type: ignore[misc]
    """The JSON file of the evaluation or of the table of classes, as an artifact."""


class ImageFile(_Fetched, ImageEvaluationArtifact):  # type: ignore[misc]
    """The image file of a figure, as an artifact."""


class ParquetFile(_Fetched, ParquetEvaluationArtifact):  # type: ignore[misc]
    """The Parquet file of the row-level predictions, as an artifact."""


class TextFile(_Fetched, TextEvaluationArtifact):  # type: ignore[misc]
    """The HTML file of the report, as an artifact."""


_KINDS = {".json": JsonFile, ".png": ImageFile, ".parquet": ParquetFile, ".html": TextFile}


def _artifacts(run_id: str, prefix: str) -> dict[str, EvaluationArtifact]:
    """Return the evaluation's files as a mapping from file names to artifacts."""
    client = MlflowClient()
    root = client.get_run(run_id).info.artifact_uri.rstrip("/")
    start = names.file_name("cmtrack_", prefix)
    artifacts: dict[str, EvaluationArtifact] = {}
    for item in client.list_artifacts(run_id):
        path = Path(item.path)
        if item.path.startswith(start) and path.suffix in _KINDS:
            artifacts[path.stem] = _KINDS[path.suffix](uri=f"{root}/{path.name}")
    return artifacts
