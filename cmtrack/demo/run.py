"""Fit, judge and track the demo's models."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cmtrack.comparison import Comparison
from cmtrack.demo.data import Data, load, question
from cmtrack.demo.models import Model, models
from cmtrack.evaluation import Evaluation
from cmtrack.tracking import log_evaluation
from cmtrack.tracking.comparing import compare
from cmtrack.tracking.names import REPORT_FILE
from cmtrack.tracking.store import quiet, tracking_store

EXPERIMENT = "party identification (ANES 1996)"
# The question is who is not a Democrat: this one number counts all four ways of being right and wrong about it, and a
# baseline that gives everybody the same answer has none. It is among the logged metrics, so the UI can sort by it.
RANK_BY = "binary/matthews_corrcoef"
QUESTION = "Party identification, 1996: who is not a Democrat?"
REVIEW = "review.html"


@dataclass(frozen=True)
class DemoRun:
    """One model's run."""

    name: str
    run_id: str
    evaluation: Evaluation
    report: Path


@dataclass(frozen=True)
class DemoResult:
    """All runs of one demo, best first by :data:`RANK_BY`, undefined ones last; their comparison and its review."""

    directory: Path
    tracking_uri: str
    runs: tuple[DemoRun, ...]
    comparison: Comparison
    review: Path


def run_demo(
    directory: str | Path = "cmtrack-demo",
    *,
    quick: bool = False,
    progress: Callable[[str, int, int], object] | None = None,
) -> DemoResult:
    """Train, judge and track the demo's models; each becomes one MLflow run, and their review another.

    Parameters
    ----------
    directory : path
        Gets an SQLite tracking store ``mlflow.db``, a folder ``artifacts`` and ``review.html``. Another demo adds its
        runs, and writes a new review of its own ones.
    quick : bool, default False
        Three models instead of eight.
    progress : callable, optional
        Called with (what is being done, steps done, steps in all).

    Returns
    -------
    DemoResult

    Raises
    ------
    ImportError
        If statsmodels is not installed.
    """
    folder = Path(directory).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    uri = f"sqlite:///{(folder / 'mlflow.db').as_posix()}"
    tell = progress or (lambda *_: None)
    chosen = models(quick)
    total = len(chosen) + 2
    tell("reading the data and opening the store", 0, total)
    data = load()
    runs = []
    with quiet(), tracking_store(uri):
        experiment = _experiment(folder)
        for done, model in enumerate(chosen, 1):
            tell(model.name, done, total)
            runs.append(_track(model, data, experiment, folder))
        tell("comparing the models", total - 1, total)
        comparison = compare([run.run_id for run in runs], rank_by=RANK_BY)
        review = comparison.report(folder / REVIEW, title=QUESTION)
        comparison.log(run_name="review")
    tell("done", total, total)
    return DemoResult(folder, uri, tuple(sorted(runs, key=_rank)), comparison, review)


def _track(model: Model, data: Data, experiment: str, folder: Path) -> DemoRun:
    import mlflow

    with mlflow.start_run(experiment_id=experiment, run_name=model.name) as run:
        mlflow.log_params({"model": model.name, **model.parameters})
        fitted = _fitted(model.classifier, data)
        logged = log_evaluation(
            data.y_test,
            y_prob=fitted.predict_proba(data.x_test),
            labels=range(7),
            grouping=question(),
            calibration=(data.y_held, fitted.predict_proba(data.x_held)),
            strict=True,
        )
    assert isinstance(logged.evaluation, Evaluation)  # strict
    run_id = str(run.info.run_id)
    return DemoRun(model.name, run_id, logged.evaluation, folder / "artifacts" / run_id / "artifacts" / REPORT_FILE)


def _fitted(classifier: Any, data: Data) -> Any:
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the source stops after as many rounds, too
        return classifier.fit(data.x_fit, data.y_fit)


def _experiment(folder: Path) -> str:
    """The demo's experiment, with its artifacts beside the store."""
    from mlflow import MlflowClient

    client = MlflowClient()
    found = client.get_experiment_by_name(EXPERIMENT)
    if found is None:
        return str(client.create_experiment(EXPERIMENT, artifact_location=(folder / "artifacts").as_uri()))
    if found.lifecycle_stage != "active":
        client.restore_experiment(found.experiment_id)
    return str(found.experiment_id)


def _rank(run: DemoRun) -> tuple[bool, float]:
    value = run.evaluation.metrics[RANK_BY]
    return math.isnan(value), -value
