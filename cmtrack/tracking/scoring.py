"""Predictions of MLflow models: load a model, choose its features, and score rows."""

from __future__ import annotations

import contextlib
import re
import tempfile
import weakref
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from cmtrack.grouping import Label
from cmtrack.grouping.step import same_label
from cmtrack.names import did_you_mean
from cmtrack.tracking._warn import first_line

_SWITCH = re.compile(r"MLFLOW_ALLOW_[A-Z_]+")
"""Matches the environment variable that forbids code from a model, in MLflow's error message."""


def load_model(uri: str, noun: str) -> Any:
    """Load a model through MLflow's ``pyfunc``; raise ValueError if it cannot be loaded.

    The model is loaded from a copy, which exists as long as the model, because MLflow adds a file
    to the folder from which it loads a registered model.

    ``noun``: words for the model in errors, such as "version 5".
    """
    import mlflow

    copy = tempfile.TemporaryDirectory(prefix="cmtrack-model-")
    try:
        model = mlflow.pyfunc.load_model(uri, suppress_warnings=True, dst_path=copy.name)
        weakref.finalize(model, copy.cleanup)
        return model
    except Exception as error:  # the model's own code may raise anything
        copy.cleanup()
        switch = _SWITCH.search(str(error))
        if switch is None:
            reason = f"{type(error).__name__}: {first_line(error)}"
            raise ValueError(f"{noun} cannot be loaded: {reason}") from None
    raise ValueError(
        f"{noun} cannot be loaded: {switch[0]}=false forbids it. Score the rows elsewhere and name "
        "the columns: --y-prob 'v{version}_p_*'"
    )


def features_of(model: Any, frame: Any, used: Collection[str], noun: str, table: str) -> Any:
    """Return the columns of a frame that a model needs.

    These are the columns that the model's signature names or, if the signature has no names, all
    columns that are not used otherwise. Raises ValueError if a column is missing.

    ``used``: columns of labels, ids, weights and segments.
    ``noun``, ``table``: words for the model and the name of the table in errors.
    """
    inputs = getattr(getattr(model.metadata, "signature", None), "inputs", None)
    if inputs is None or not inputs.has_input_names():
        return frame.drop(columns=list(used), errors="ignore")
    required = inputs.required_input_names()
    for name in required:
        if name not in frame.columns:
            raise ValueError(
                f"{noun} needs the column {name!r}, which {table} does not have"
                f"{did_you_mean(name, list(map(str, frame.columns)))}"
            )
    return frame[[name for name in inputs.input_names() if name in frame.columns]]


def raw_model(model: Any) -> Any:
    """Return the model inside MLflow's wrapper, or None if its flavour does not give access."""
    with contextlib.suppress(Exception):
        return model.get_raw_model()
    return None


def classes_of(raw: Any) -> list[Label] | None:
    """Return the labels in the order of a model's columns of probabilities, if it states them."""
    classes = getattr(raw, "classes_", None)
    return None if classes is None else list(np.asarray(classes).tolist())


def gives_probabilities(raw: Any) -> bool:
    """Return whether a raw model has ``predict_proba`` and names its classes."""
    return hasattr(raw, "predict_proba") and classes_of(raw) is not None


def score(model: Any, features: Any, noun: str = "the model") -> dict[str, Any]:
    """Return a model's predictions as arguments of :func:`cmtrack.evaluate`.

    If the model has ``predict_proba`` and names its classes, the predictions are its labels and its
    probabilities. Otherwise, a two-dimensional output is read as probabilities, and any other
    output as labels. Raises ValueError if the model raises an error.

    ``model``: a model that was loaded with ``mlflow.pyfunc``.
    ``noun``: words for the model in errors, such as "version 5".
    """
    try:
        return _predicted(model, features)
    except Exception as error:  # the model's own code may raise anything
        reason = f"{type(error).__name__}: {first_line(error)}"
        raise ValueError(f"{noun} cannot score the rows: {reason}") from None


def _predicted(model: Any, features: Any) -> dict[str, Any]:
    raw = raw_model(model)
    classes = classes_of(raw)
    if gives_probabilities(raw):
        return {
            "y_pred": np.ravel(raw.predict(features)),
            "y_prob": raw.predict_proba(features),
            "labels": classes,
        }
    return predictions_in(model.predict(features), classes)


def predictions_in(output: Any, classes: Sequence[Label] | None) -> dict[str, Any]:
    """Return the output of ``predict`` as arguments of :func:`cmtrack.evaluate`."""
    values = np.asarray(output)
    if values.ndim != 2 or values.shape[1] < 2:
        return {"y_pred": np.ravel(values)}
    if classes is not None:
        return {"y_prob": values, "labels": classes}
    # The columns of a frame name the classes.
    return {"y_prob": output if hasattr(output, "columns") else values}


def check_classes(predicted: Mapping[str, Any], noun: str) -> None:
    """Raise ValueError if a model predicts numbers that are not classes."""
    y_pred = predicted.get("y_pred")
    if y_pred is None or y_pred.dtype.kind != "f":
        return
    fractions = y_pred[y_pred != np.floor(y_pred)]
    if len(fractions):
        raise ValueError(
            f"{noun} predicts numbers such as {fractions[0]:.3g}: cmtrack compares classifiers"
        )


def with_unknown_labels(
    predicted: dict[str, Any], y_true: Any, noun: str
) -> tuple[dict[str, Any], str]:
    """Return predictions with all labels of the rows, and a note on labels unknown to the model.

    A label that the model does not know has a probability of 0 in every row. The note is empty if
    the model knows all labels.
    """
    known = predicted.get("labels")
    if known is None or "y_prob" not in predicted:
        return predicted, ""
    n_rows = Counter(y_true.dropna().tolist())
    unknown = [label for label in n_rows if label not in known]
    if not unknown:
        return predicted, ""
    probabilities = np.asarray(predicted["y_prob"], dtype=np.float64)
    padding = np.zeros((len(probabilities), len(unknown)))
    completed = predicted | {
        "y_prob": np.hstack([probabilities, padding]),
        "labels": [*known, *unknown],
    }
    return completed, _unknown_labels(n_rows, unknown, noun)


def with_missing_columns(
    predicted: dict[str, Any], y_true: Any, labels: Collection[Label], noun: str
) -> tuple[dict[str, Any], str]:
    """Return stored probabilities with a column of 0 for each label that has no column.

    The second result is a note on rows with such labels; it is empty if there are none.

    ``labels``: further labels, which other models know.
    """
    columns = predicted.get("y_prob")
    if not isinstance(columns, Mapping):
        return predicted, ""
    n_rows = Counter(y_true.dropna().tolist())
    # Names of columns are texts: False may be the text "False" or "0".
    known = {str(same_label(label)) for label in columns} | {str(label) for label in columns}
    missing = [
        label
        for label in dict.fromkeys([*n_rows, *labels])
        if known.isdisjoint((str(label), str(same_label(label))))
    ]
    zeros = dict.fromkeys(missing, np.zeros(len(y_true)))
    unknown = [label for label in missing if label in n_rows]
    note = _unknown_labels(n_rows, unknown, noun) if unknown else ""
    return predicted | {"y_prob": {**columns, **zeros}}, note


def _unknown_labels(n_rows: Mapping[Label, int], unknown: Sequence[Label], noun: str) -> str:
    """Return a note on rows whose labels a model does not know."""
    total = sum(n_rows[label] for label in unknown)
    have = "row has" if total == 1 else "rows have"
    labels = "the label" if len(unknown) == 1 else "one of the labels"
    names = ", ".join(map(repr, unknown))
    return f"{total:,} {have} {labels} {names}, which {noun} does not know"


def in_order_of(
    labels: Sequence[Label] | None, predicted: dict[str, Any], noun: str
) -> dict[str, Any]:
    """Return predictions whose columns of probabilities are in the order of ``labels``.

    A label without a column gets a probability of 0. Raises ValueError if a column has no label.
    If the model does not state its classes, its columns must already be in this order.
    """
    known = predicted.get("labels")
    if labels is None or known is None:
        return predicted
    order = list(labels)
    for label in known:
        if label not in order:
            raise ValueError(
                f"labels must contain all classes of {noun} and of the rows, got no {label!r}"
            )
    values = np.asarray(predicted["y_prob"], dtype=np.float64)
    ordered = np.zeros((len(values), len(order)))
    ordered[:, [order.index(label) for label in known]] = values
    return predicted | {"y_prob": ordered, "labels": order}
