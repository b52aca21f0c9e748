"""``evaluate_model``: evaluate a registered model on new labelled rows."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

from cmtrack.evaluation import Evaluation, evaluate
from cmtrack.evaluation.labelled_rows import LabelledRows, StoredColumns
from cmtrack.evaluation.spec import Options, Spec, takes_options, unless_decided
from cmtrack.grouping import Label
from cmtrack.tracking import scoring
from cmtrack.tracking.registry import ModelVersion, find_version
from cmtrack.tracking.store import client_for, tracking_store

if TYPE_CHECKING:
    from mlflow import MlflowClient


@dataclass(frozen=True)
class EvaluatedModel:
    """A version of a registered model, with its evaluation on new rows.

    ``n_features`` is 0 if the predictions were stored. ``notes`` are remarks for people.
    """

    version: ModelVersion
    evaluation: Evaluation
    n_features: int
    has_probabilities: bool
    notes: tuple[str, ...]

    def sentence(self) -> str:
        """Describe the scored model and its predictions."""
        n_rows = len(self.evaluation.rows or ())
        model = f"version {self.version.number} of {self.version.name}"
        if self.n_features == 0:
            return f"Read the stored predictions of {model}: {n_rows:,} rows."
        n_classes = len(self.evaluation.labels)
        kind = f"probabilities of {n_classes} classes"
        if not self.has_probabilities:
            kind = "labels only"
        features = f"{self.n_features} feature" + ("" if self.n_features == 1 else "s")
        return f"Scored {n_rows:,} rows with {model}: {features}, {kind}."


@takes_options
def evaluate_model(
    model: str,
    table: Any,
    *,
    y_true: str,
    y_pred: str | None = None,
    y_prob: str | None = None,
    y_score: str | None = None,
    labels: Sequence[Label] | None = None,
    sample_weight: str | None = None,
    groups: str | None = None,
    row_ids: str | None = None,
    segments: Sequence[str | tuple[str, ...]] | None = None,
    client: MlflowClient | None = None,
    **options: Unpack[Options],
) -> Evaluation:
    """Evaluate a registered model on new labelled rows.

    MLflow loads the model, and the model scores the rows. If you name columns of stored
    predictions, no model is loaded. If the model has ``predict_proba``, both its labels and its
    probabilities are evaluated. Otherwise, the output of ``predict`` is used: two or more columns
    are probabilities, and one column contains labels.

    Parameters
    ----------
    model : str
        A version of a registered model: ``models:/name/3``, ``models:/name@alias`` or
        ``models:/name/latest``.
    table : path, list of paths, or frame
        The rows: files of Parquet or CSV, or a frame of pandas, Polars, PyArrow, DuckDB or Ibis.
        The rows are kept in memory. If the model has a signature, the model gets the columns that
        the signature names. Otherwise, it gets all columns that no other argument names.
    y_true : str
        Column of actual labels.
    y_pred, y_prob, y_score : str, optional
        Columns of stored predictions: of labels, of probabilities and of decision values. In the
        names, ``{version}`` stands for the number of the version. In ``y_prob`` and ``y_score``,
        ``*`` stands for a label.
    labels
        As in :func:`cmtrack.evaluate`; by default, the classes that the model states.
    sample_weight, groups, row_ids : str, optional
        Columns of weights, of clusters and of row ids.
    segments : list of str, or of tuples of str, optional
        Columns that divide the rows into segments. A tuple crosses the named columns.
    client : mlflow.MlflowClient, optional
        The client of the model registry; by default a client for the current tracking URI.
    **options
        As in :class:`cmtrack.evaluation.spec.Spec`.

    Returns
    -------
    Evaluation
        The evaluation keeps the rows, so it can be compared in pairs. Log it with
        ``log_evaluation(evaluation, model="models:/name/3")``.

    Raises
    ------
    ValueError
        If the model, the version, the alias or a column does not exist, if the model cannot be
        loaded, or if it does not predict classes.
    TypeError
        If the rows are on a cluster or the kind of table is not supported.
    ConnectionError
        If the store does not answer.

    Warns
    -----
    UserWarning
        If the model gives only labels, if rows have labels that the model does not know, and as in
        :func:`cmtrack.evaluate`.

    Examples
    --------
    >>> import mlflow
    >>> import pandas as pd
    >>> from sklearn.linear_model import LogisticRegression
    >>> from cmtrack import evaluate_model
    >>> rows = pd.DataFrame({"x": [-2.0, -1.0, 1.0, 2.0, 0.5], "y": [0, 0, 1, 1, 0]})
    >>> with mlflow.start_run():
    ...     fitted = LogisticRegression().fit(rows[["x"]], rows["y"])
    ...     info = mlflow.sklearn.log_model(
    ...         fitted, name="model", registered_model_name="side",
    ...         serialization_format="pickle",
    ...     )
    >>> evaluate_model("models:/side/1", rows, y_true="y").metrics["multiclass/accuracy"]
    1.0
    """
    Spec.check_names(options, evaluate_model)
    client = client or client_for()
    version = find_version(model, client)
    rows = LabelledRows.read(
        table,
        y_true,
        sample_weight=sample_weight,
        groups=groups,
        row_ids=row_ids,
        segments=segments,
    )
    stored = StoredColumns(y_pred, y_prob, y_score)
    # MLflow loads models from its current store, which must be the store of the client.
    with tracking_store(client.tracking_uri):
        evaluated = evaluate_version(version, rows, stored, labels=labels, options=options)
    for note in evaluated.notes:
        warnings.warn(note, UserWarning, stacklevel=2)
    return evaluated.evaluation


def evaluate_version(
    version: ModelVersion,
    rows: LabelledRows,
    stored: StoredColumns,
    *,
    role: str = "",
    labels: Sequence[Label] | None = None,
    options: Mapping[str, Any],
) -> EvaluatedModel:
    """Evaluate one version on rows that are in memory; see :func:`evaluate_model`.

    ``role``: the word that ``{role}`` in a column's name stands for.
    """
    noun = f"version {version.number}"
    n_features = 0
    notes = []
    if stored:
        predicted = stored.predictions(rows, {"version": version.number, "role": role})
        predicted, note = scoring.with_missing_columns(
            predicted, rows.column(rows.y_true), labels or (), noun
        )
        notes += [note] if note else []
    else:
        model = scoring.load_model(version.uri, noun)
        features = scoring.features_of(model, rows.frame, rows.used, noun, rows.name)
        n_features = features.shape[1]
        predicted = scoring.score(model, features, noun)
        scoring.check_classes(predicted, noun)
        predicted, note = scoring.with_unknown_labels(predicted, rows.column(rows.y_true), noun)
        if note:
            notes.append(note)
        predicted = scoring.in_order_of(labels, predicted, noun)
        if "y_prob" not in predicted:
            notes.append(f"{noun} gives labels only, so metrics of probabilities are missing")
    if labels is not None:
        predicted.setdefault("labels", labels)
    arguments = rows.arguments() | predicted
    arguments["y_pred"] = unless_decided(predicted.get("y_pred"), options)
    evaluation = evaluate(**arguments, **options)
    has_probabilities = "y_prob" in predicted
    return EvaluatedModel(version, evaluation, n_features, has_probabilities, tuple(notes))
