"""Past runs under another grouping: beside what they hold, without the data, and one damaged run stops no other."""

from __future__ import annotations

import contextlib
import json
import socket
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import mlflow
import numpy as np
import pytest

import cmtrack
from cmtrack import Grouping, compare, load_evaluation, log_evaluation
from cmtrack.tracking import RegroupedRun, regroup_runs, tracking_store
from support.problems import random_labels, random_probabilities, random_problem

N = 240
pytestmark = pytest.mark.usefixtures("undrawn")

LOW_HIGH = Grouping({"low": [0, 1], "high": [2, 3]}, "strict", name="level")
PARITY = Grouping({"even": [0, 2], "odd": [1, 3]}, "strict", name="parity")
HELD_Y, _, HELD_P = random_problem(99, n=200)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CMTRACK_CACHE", str(tmp_path / "cache"))


def probabilities(seed: int, skill: float = 1.5) -> tuple[Any, Any]:
    """The same rows for every seed, another classifier."""
    y = random_labels(N, 4)
    return y, random_probabilities(y, 4, skill, seed).astype(np.float32)


def log_run(name: str = "one", seed: int = 1, skill: float = 1.5, **options: Any) -> str:
    """A finished run with an evaluation."""
    y, p = probabilities(seed, skill)
    with mlflow.start_run(run_name=name) as run:
        log_evaluation(y, y_prob=p, **({"grouping": LOW_HIGH, "strict": True} | options))
    return str(run.info.run_id)


def artifact(store: Any, run_id: str, name: str) -> Path:
    return Path(store.get_run(run_id).info.artifact_uri.removeprefix("file://")) / name


def only(results: list[RegroupedRun]) -> RegroupedRun:
    assert len(results) == 1
    return results[0]


@pytest.mark.slow
@pytest.mark.usefixtures("drawn")
def test_new_numbers_stand_beside_the_old_ones(store: Any) -> None:
    run_id = log_run(calibration=(HELD_Y, HELD_P))
    before = store.get_run(run_id)
    done = only(regroup_runs([run_id], PARITY))
    assert (done.run_id, done.name, done.status, done.reason, done.prefix) == (
        run_id,
        "one",
        "completed",
        "",
        "parity_",
    )
    assert any("cross-fitted" in warning for warning in done.warnings)

    y, p = probabilities(1)
    fresh = cmtrack.evaluate(y, y_prob=p, grouping=PARITY)
    after = store.get_run(run_id)
    new = {
        k.removeprefix("parity_"): v
        for k, v in after.data.metrics.items()
        if k.startswith("parity_")
    }
    assert {
        "binary/roc_auc",
        "spcc/binary",
        "prevalence/calibrated",
        "reduced/parity/accuracy",
    } <= set(new)
    assert new == pytest.approx({name: fresh.metrics[name] for name in new}, rel=1e-6)
    assert done.after == pytest.approx(new)
    assert (
        done.before["binary/matthews_corrcoef"] == before.data.metrics["binary/matthews_corrcoef"]
    )

    assert {k: after.data.metrics[k] for k in before.data.metrics} == before.data.metrics
    changed = {k for k, v in before.data.tags.items() if after.data.tags[k] != v}
    assert changed <= {"mlflow.loggedArtifacts", "mlflow.loggedImages", "mlflow.note.content"}
    assert after.data.tags["mlflow.note.content"].startswith(
        before.data.tags["mlflow.note.content"]
    )
    assert "**Evaluation “parity”**" in after.data.tags["mlflow.note.content"]
    assert after.info.status == "FINISHED"
    assert after.info.end_time == before.info.end_time
    assert load_evaluation(run_id).grouping == LOW_HIGH
    assert load_evaluation(run_id, prefix="parity_").grouping == PARITY
    files = {item.path for item in store.list_artifacts(run_id)}
    assert {
        "parity_cmtrack_report.html",
        "parity_cmtrack_confusion_matrix.png",
        "cmtrack_report.html",
    } <= files
    assert "parity_cmtrack_predictions.parquet" not in files, (
        "the predictions are not written a second time"
    )


@pytest.mark.slow
def test_regrouped_runs_are_compared_row_by_row(store: Any) -> None:
    runs = [log_run("good", 1, 2.0), log_run("fair", 2, 1.4), log_run("poor", 3, 0.2)]
    assert [done.status for done in regroup_runs(runs, PARITY)] == ["completed"] * 3
    logged = compare(runs, prefix="parity_")
    again = compare(runs, grouping=PARITY)
    assert [run.name for run in logged.runs] == ["good", "fair", "poor"]
    assert logged.ranking is not None
    assert logged.ranking.paired
    for ours, theirs in zip(logged.runs, again.runs, strict=True):
        assert ours.evaluation == theirs.evaluation
        assert (ours.difference_low, ours.difference_high) == (
            theirs.difference_low,
            theirs.difference_high,
        )
    assert load_evaluation(runs[0], prefix="parity_", rows=True).rows is not None


@pytest.mark.slow
def test_without_predictions_the_counts_are_regrouped(store: Any) -> None:
    run_id = log_run(predictions=False)
    done = only(regroup_runs(run_id, PARITY))
    assert done.status == "completed"
    assert "binary/roc_auc" not in done.after
    assert any("regrouped without the data" in warning for warning in done.warnings)
    y, p = probabilities(1)
    fresh = cmtrack.evaluate(y, y_prob=p, grouping=PARITY)
    assert (
        store.get_run(run_id).data.metrics["parity_binary/recall"] == fresh.metrics["binary/recall"]
    )
    with pytest.raises(ValueError, match="has no parity_cmtrack_predictions"):
        load_evaluation(run_id, prefix="parity_", rows=True)
    other = log_run("other", 2, predictions=False)
    regroup_runs(other, PARITY)
    comparison = compare([run_id, other], prefix="parity_")
    assert comparison.ranking is not None
    assert not comparison.ranking.paired


@pytest.mark.slow
def test_one_bad_run_stops_no_other(store: Any) -> None:
    good = [log_run("first", 1), log_run("last", 2)]
    bad: dict[str, str] = {}
    bad["it has no evaluation"] = store.create_run(
        store.get_run(good[0]).info.experiment_id
    ).info.run_id
    unfinished = log_run("unfinished")
    store.set_tag(unfinished, "cmtrack.status", "started")
    bad["was not finished (status 'started')"] = unfinished
    bad["is damaged"] = log_run("damaged")
    artifact(store, bad["is damaged"], "cmtrack_evaluation.json").write_text("{")
    newer = log_run("newer")
    path = artifact(store, newer, "cmtrack_evaluation.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | {"schema": 99}))
    store.delete_tag(newer, "cmtrack.digests")
    bad["schema"] = newer
    bad["has no cmtrack_evaluation.json"] = log_run("gone")
    artifact(store, bad["has no cmtrack_evaluation.json"], "cmtrack_evaluation.json").unlink()
    with mlflow.start_run(run_name="words") as run:
        log_evaluation(["a", "b", "c", "a"], ["a", "b", "b", "a"], strict=True)
    bad["got none for"] = run.info.run_id
    y, _, p = random_problem(3, n=60, k=2)
    with mlflow.start_run(run_name="two classes") as run:
        log_evaluation(np.where(y == 1, 2, 0), y_prob=p, labels=[0, 2], strict=True)
    bad["it has no class of the group 'odd': its classes are 0, 2"] = run.info.run_id
    bad["is deleted"] = log_run("deleted")
    store.delete_run(bad["is deleted"])
    results = regroup_runs([good[0], *bad.values(), good[1]], PARITY)
    assert [r.status for r in results] == ["completed", *["left out"] * len(bad), "completed"]
    for says, result in zip(bad, results[1:-1], strict=True):
        assert says in result.reason
        assert "\n" not in result.reason
        assert not result.reason.startswith(("run ", result.run_id))
    assert not any(k.startswith("parity_") for k in store.get_run(unfinished).data.metrics)


@pytest.mark.slow
def test_a_class_that_a_run_lacks_is_said(store: Any) -> None:
    run_id = log_run()
    wider = Grouping({"even": [0, 2, 4], "odd": [1, 3]}, "strict", name="parity")
    done = only(regroup_runs(run_id, wider))
    assert done.status == "completed"
    assert "it lacks the classes 4 of the grouping" in done.warnings


@pytest.mark.slow
def test_damaged_predictions_cost_the_scores_only(store: Any) -> None:
    run_id = log_run()
    artifact(store, run_id, "cmtrack_predictions.parquet").write_bytes(b"no parquet")
    done = only(regroup_runs(run_id, PARITY))
    assert done.status == "completed"
    assert "regrouped without its predictions by row" in done.warnings[0]
    assert "binary/recall" in done.after


@pytest.mark.slow
def test_a_second_time_overwrites_the_first_and_nothing_else(store: Any) -> None:
    run_id = log_run()
    assert only(regroup_runs(run_id, PARITY, prefix="new/")).status == "completed"
    assert only(regroup_runs(run_id, LOW_HIGH, positive="low", prefix="new/")).status == "completed"
    assert load_evaluation(run_id, prefix="new/").positive == "low"

    y, p = probabilities(5)
    log_evaluation(y, y_prob=p, run_id=run_id, prefix="val/", strict=True)
    kept = load_evaluation(run_id, prefix="val/")
    for prefix in ("val/", "val_"):
        refused = only(regroup_runs(run_id, PARITY, prefix=prefix))
        assert refused.status == "left out"
        assert "was not made by regrouping" in refused.reason
    assert load_evaluation(run_id, prefix="val/") == kept


@pytest.mark.slow
def test_a_half_written_regrouping_is_done_again(
    store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = log_run()
    with monkeypatch.context() as patch:
        patch.setattr(mlflow.MlflowClient, "log_batch", lambda *_, **__: 1 / 0)
        failed = only(regroup_runs(run_id, PARITY))
    assert failed.status == "left out"
    assert "ZeroDivisionError" in failed.reason
    assert store.get_run(run_id).data.tags["cmtrack.parity.status"] == "started"
    assert only(regroup_runs(run_id, PARITY)).status == "completed"


@pytest.mark.slow
def test_an_own_evaluation_under_the_prefix_has_its_own_rows(store: Any) -> None:
    run_id = log_run()
    regroup_runs(run_id, PARITY)
    y, p = probabilities(7)
    log_evaluation(y, y_prob=p, grouping=PARITY, run_id=run_id, prefix="parity_", strict=True)
    rows = load_evaluation(run_id, prefix="parity_", rows=True).rows
    assert rows is not None
    np.testing.assert_array_equal(rows.probabilities, p)


@pytest.mark.slow
def test_a_tag_leads_to_no_other_folder(store: Any, tmp_path: Path) -> None:
    run_id = log_run()
    regroup_runs(run_id, PARITY)
    (tmp_path / "secret.parquet").write_bytes(b"secret")
    told = json.dumps({"predictions_file": "../../../secret.parquet"})
    store.set_tag(run_id, "cmtrack.parity.digests", told)
    with pytest.raises(
        ValueError,
        match=r"secret\.parquet cannot be read: the file must be named cmtrack_predictions\.parquet",
    ):
        load_evaluation(run_id, prefix="parity_", rows=True)


@pytest.mark.slow
def test_another_evaluation_of_the_run_may_be_the_source(store: Any) -> None:
    run_id = log_run(prefix="val/", groups=np.arange(N) // 2)
    assert "it has no evaluation" in only(regroup_runs(run_id, PARITY)).reason
    done = only(regroup_runs(run_id, PARITY, source_prefix="val/", prefix="val parity/"))
    assert done.status == "completed"
    loaded = load_evaluation(run_id, prefix="val parity/", rows=True)
    y, p = probabilities(1)
    fresh = cmtrack.evaluate(y, y_prob=p, grouping=PARITY, groups=np.arange(N) // 2)
    assert loaded.intervals["binary/recall"] == pytest.approx(fresh.intervals["binary/recall"])
    assert loaded.rows is not None
    assert loaded.rows.design.has_clusters


@pytest.mark.slow
def test_a_dry_run_writes_nothing(store: Any) -> None:
    run_id = log_run()
    before = store.get_run(run_id)
    told: list[tuple[str, int, int]] = []
    done = only(
        regroup_runs(run_id, PARITY, dry_run=True, progress=lambda *step: told.append(step))
    )
    assert done.status == "planned"
    assert "binary/roc_auc" in done.after
    after = store.get_run(run_id)
    assert after.data.metrics == before.data.metrics
    assert after.data.tags == before.data.tags
    assert told == [("one", 0, 1), ("done", 1, 1)]


@pytest.mark.slow
def test_a_wrong_reference_is_said_before_anything_is_written(store: Any) -> None:
    run_id = log_run()
    with pytest.raises(ValueError, match="there is no run 'nowhere'"):
        regroup_runs([run_id, "nowhere"], PARITY)
    with pytest.raises(TypeError, match="grouping must be a Grouping"):
        regroup_runs([run_id], {"even": [0, 2]})  # type: ignore[arg-type]
    assert not any(k.startswith("parity_") for k in store.get_run(run_id).data.metrics)


@pytest.mark.slow
def test_the_default_prefix_is_legal(store: Any) -> None:
    with mlflow.start_run() as run:
        log_evaluation([0, 1, 1], [0, 1, 0], figures=False, strict=True)
    for name, prefix in (
        ("party", "party_"),
        ("wer ist links?", "wer_ist_links_"),
        ("a/b..c", "a_b_c_"),
        ("x-y", "x-y_"),
    ):
        grouping = Grouping({"a": [0], "b": [1]}, name=name)
        (done,) = regroup_runs([run.info.run_id], grouping, figures=False)
        assert done.status == "completed", done.reason
        assert load_evaluation(run.info.run_id, prefix=prefix).grouping == grouping


def test_prefixes_that_would_overwrite_are_refused(store: Any) -> None:
    with pytest.raises(ValueError, match="give prefix="):
        regroup_runs([], Grouping({"a": [0], "b": [1]}, name="党"))
    for prefix in ("", "_"):
        with pytest.raises(ValueError, match="the run's own evaluation"):
            regroup_runs([], PARITY, prefix=prefix)
    for prefix in ("val_", "val/", "val"):
        with pytest.raises(ValueError, match="the evaluation under 'val/'"):
            regroup_runs([], PARITY, prefix=prefix, source_prefix="val/")
    with pytest.raises(ValueError, match="prefix must start with"):
        regroup_runs([], PARITY, prefix="../")
    assert regroup_runs([], PARITY) == []


@pytest.mark.slow
@pytest.mark.slow
def test_over_http_and_then_the_server_is_gone(server: Any) -> None:
    client = mlflow.MlflowClient()
    y = probabilities(1)[0]
    runs = []
    for seed in (1, 2):
        runs.append(client.create_run("0", run_name=f"model {seed}").info.run_id)
        log_evaluation(
            y, y_prob=probabilities(seed)[1], grouping=LOW_HIGH, run_id=runs[-1], strict=True
        )
        client.set_terminated(runs[-1])
    results = regroup_runs(runs, PARITY)
    assert [r.status for r in results] == ["completed", "completed"]
    comparison = compare(runs, prefix="parity_")
    assert comparison.ranking is not None
    assert comparison.ranking.paired
    assert (
        client.get_run(runs[0]).data.metrics["parity_binary/roc_auc"]
        == results[0].after["binary/roc_auc"]
    )
    assert client.get_run(runs[0]).info.status == "FINISHED"
    uri = mlflow.get_tracking_uri()
    server.kill()
    for _ in range(100):  # its workers go a little later
        with contextlib.suppress(OSError):
            socket.create_connection(
                (urlsplit(uri).hostname, urlsplit(uri).port), timeout=1
            ).close()
            time.sleep(0.1)
            continue
        break
    with tracking_store(uri), pytest.raises(ConnectionError, match="does not answer"):
        regroup_runs(runs, PARITY)
