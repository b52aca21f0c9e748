"""Over HTTP, against a real tracking server with its own artifact store."""

from __future__ import annotations

import time

import mlflow
import numpy as np
import pytest

from cmtrack import Grouping, compare, load_evaluation, log_evaluation
from cmtrack.tracking import EvaluationWarning

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("undrawn")]

CHAIN = Grouping({"low": [0, 1, 2], "mid": [3], "high": [4, 5, 6]}, name="level")


@pytest.mark.usefixtures("drawn")
def test_an_evaluation_goes_there_and_comes_back_and_survives_the_server(server, seven_classes):
    y, p = seven_classes
    run_id = mlflow.MlflowClient().create_run("0").info.run_id
    sent = log_evaluation(y, y_prob=p, grouping=CHAIN, run_id=run_id, strict=True)
    assert load_evaluation(run_id) == sent.evaluation
    run = mlflow.MlflowClient().get_run(run_id)
    assert run.info.status == "RUNNING"
    assert run.data.tags["cmtrack.status"] == "completed"
    assert run.data.metrics["multiclass/accuracy"] == sent.evaluation.metrics["multiclass/accuracy"]
    found = {item.path for item in mlflow.MlflowClient().list_artifacts(run_id)}
    assert {"cmtrack_report.html", "cmtrack_confusion_matrix.png"} <= found
    # MLflow 3.5 puts '#' and '%' into the names of images, which its own server refuses
    assert ("images" in found) == (not mlflow.__version__.startswith("3.5."))

    server.kill()
    start = time.monotonic()
    with pytest.warns(EvaluationWarning, match="does not answer"):
        kept = log_evaluation(y, y_prob=p, grouping=CHAIN, run_id=run_id)
    assert time.monotonic() - start < 30
    assert type(sent.evaluation).load(kept.path / "artifacts") == sent.evaluation
    with pytest.raises(ConnectionError, match="does not answer"):
        load_evaluation(run_id)


def test_runs_are_compared_over_http_and_downloaded_once(
    server, seven_classes, tmp_path, monkeypatch
):
    monkeypatch.setenv("CMTRACK_CACHE", str(tmp_path / "cache"))
    y, p = seven_classes
    client = mlflow.MlflowClient()
    for name, blur in (("sharp", 0.0), ("blunt", 0.6)):
        run_id = client.create_run("0", run_name=name).info.run_id
        log_evaluation(
            y, y_prob=(1 - blur) * p + blur * np.roll(p, 1, axis=1), run_id=run_id, strict=True
        )
    comparison = compare(experiment_names=["Default"], rank_by="multiclass/accuracy")
    assert comparison.ranking.paired
    assert comparison.best.name == "sharp"
    kept = sorted(path.name for path in (tmp_path / "cache").rglob("*") if path.is_file())
    assert len(kept) == 4  # two evaluations with their rows
    for file in (tmp_path / "server_artifacts").rglob("cmtrack_*"):
        file.rename(file.with_name(f"away {file.name}"))  # who asks for it again gets an error
    again = compare(experiment_names=["Default"], rank_by="multiclass/accuracy")
    assert [run.value for run in again.runs] == [run.value for run in comparison.runs]
    review = comparison.log()
    assert "cmtrack_review.html" in {file.path for file in client.list_artifacts(review.run_id)}
    assert client.get_run(comparison.best.run_id).data.tags["cmtrack.review"] == review.run_id
