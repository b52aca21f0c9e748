"""``load_evaluation``: the evaluation that a run holds."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from cmtrack.evaluation import Evaluation
from cmtrack.tracking.names import EVALUATION_FILE, PREDICTIONS_FILE, file_name
from cmtrack.tracking.predictions import read_predictions
from cmtrack.tracking.send import probe

if TYPE_CHECKING:
    from mlflow import MlflowClient


def load_evaluation(
    run_id: str, *, prefix: str = "", rows: bool = False, client: MlflowClient | None = None
) -> Evaluation:
    """Read the evaluation that :func:`cmtrack.log_evaluation` left in a run.

    Parameters
    ----------
    run_id : str
    prefix : str, default ""
        As it was logged.
    rows : bool, default False
        Whether the rows' predictions are loaded too, for paired comparisons.
    client : mlflow.MlflowClient, optional
        By default one for the current tracking URI.

    Returns
    -------
    Evaluation
        Equal to the one that was logged.

    Raises
    ------
    ValueError
        If there is no such run, the run holds no evaluation (or no predictions), or it is damaged or of a newer
        schema.
    ConnectionError
        If the tracking server does not answer.
    """
    from mlflow import MlflowClient
    from mlflow.exceptions import MlflowException

    client = client or MlflowClient()
    probe(client.tracking_uri)
    name = file_name(EVALUATION_FILE, prefix)
    try:
        client.get_run(run_id)
    except MlflowException as error:
        raise ValueError(f"there is no run {run_id!r} in {client.tracking_uri}: {_first_line(error)}") from None
    with tempfile.TemporaryDirectory(prefix="cmtrack-") as scratch:
        evaluation = Evaluation.load(_download(client, run_id, name, scratch))
        if not rows:
            return evaluation
        path = _download(client, run_id, file_name(PREDICTIONS_FILE, prefix), scratch)
        return replace(evaluation, rows=read_predictions(path, evaluation))


def _download(client: MlflowClient, run_id: str, name: str, folder: str) -> Path:
    try:
        return Path(client.download_artifacts(run_id, name, folder))
    except Exception as error:
        raise ValueError(f"run {run_id} holds no {name}: {_first_line(error)}") from None


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [""])[0]
