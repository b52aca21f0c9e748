"""What an evaluation leaves in a run, and what happens when it cannot."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import threading
import time
import warnings
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import mlflow
import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from PIL import Image

from cmtrack import Grouping, evaluate, load_evaluation, log_evaluation
from cmtrack.metrics import lookup
from cmtrack.tracking import EvaluationWarning, digests
from support.faults import make_pending_reports, wait_between_reports
from support.stores import runs_of

pytestmark = pytest.mark.usefixtures("undrawn")

CHAIN = Grouping(
    {"low": [0, 1, 2], "mid": [3], "high": [4, 5, 6]}, {"high": "strict"}, name="level"
).then(Grouping({"rest": ["low", "mid"], "high": ["high"]}, name="high"))
HALVES = Grouping({"low": [0, 1], "high": [2, 3]}, mode="strict")


def paths(client, run_id):
    return {item.path for item in client.list_artifacts(run_id)}


@pytest.fixture
def logged(store, seven_classes):
    y, p = seven_classes
    with mlflow.start_run() as run:
        result = log_evaluation(y, y_prob=p, grouping=CHAIN, strict=True)
    return store, run.info.run_id, result


@pytest.mark.slow
def test_a_run_gets_the_headline_metrics_only_and_stays_as_it_is(logged):
    client, run_id, result = logged
    run = client.get_run(run_id)
    assert result.status == "completed"
    assert run.info.status == "FINISHED"
    assert len(runs_of(client)) == 1
    expected = {
        n: v
        for n, v in result.evaluation.metrics.items()
        if lookup(n).headline and math.isfinite(v)
    }
    assert run.data.metrics == expected
    assert 10 <= len(expected) <= 30


@pytest.mark.parametrize(
    ("prefix", "start"),
    [("val", "val/"), ("val/", "val/"), ("val_", "val_"), ("fold 3", "fold 3/"), ("", "")],
)
def test_a_prefix_without_a_separator_gets_one(store, prefix, start):
    with mlflow.start_run() as run:
        log_evaluation([0, 1, 1], [0, 1, 0], figures=False, strict=True, prefix=prefix)
    assert {f"{start}multiclass/accuracy", f"{start}binary/f1"} <= set(
        mlflow.get_run(run.info.run_id).data.metrics
    )
    assert load_evaluation(run.info.run_id, prefix=prefix) == evaluate([0, 1, 1], [0, 1, 0])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("classes", "options", "most"), [(2, {}, 18), (4, {"grouping": HALVES}, 26)]
)
def test_a_run_gets_few_metrics_and_those_that_are_asked_for(store, classes, options, most):
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(classes), 300)
    y = (p.cumsum(axis=1) > rng.random((300, 1))).argmax(axis=1)
    asked = ["binary/npv", "class/1/recall"]
    with mlflow.start_run():
        plain = log_evaluation(y, y_prob=p, figures=False, strict=True, **options)
        log_evaluation(
            y, y_prob=p, figures=False, strict=True, headline=asked, prefix="a/", **options
        )
        log_evaluation(plain.evaluation, figures=False, strict=True, headline=asked, prefix="b/")
    logged = set(mlflow.get_run(plain.run_id).data.metrics)
    first = {name for name in logged if not name.startswith(("a/", "b/"))}
    assert first == {*plain.evaluation.headline}
    assert len(first) <= most
    for prefix in ("a/", "b/"):
        assert {
            name.removeprefix(prefix) for name in logged if name.startswith(prefix)
        } == first | {*asked}


@pytest.mark.usefixtures("drawn")
def test_files_stand_at_the_root_under_fixed_names(logged):
    client, run_id, _ = logged
    assert {
        "cmtrack_evaluation.json",
        "cmtrack_report.html",
        "cmtrack_classes.json",
        "cmtrack_predictions.parquet",
        "cmtrack_confusion_matrix.png",
        "cmtrack_roc.png",
        "cmtrack_reduced_level.png",
        "cmtrack_reduced_high.png",
        "images",
    } == paths(client, run_id)
    images = [item.path for item in client.list_artifacts(run_id, "images")]
    # one and its thumbnail
    assert len([path for path in images if "confusion_matrix" in path]) == 2


def test_what_was_logged_loads_as_an_equal_evaluation(logged):
    _, run_id, result = logged
    loaded = load_evaluation(run_id)
    assert loaded == result.evaluation
    np.testing.assert_equal(loaded.metrics, result.evaluation.metrics)
    assert loaded.intervals == result.evaluation.intervals


@pytest.mark.slow
def test_tags_say_what_was_judged(logged):
    client, run_id, result = logged
    tags = client.get_run(run_id).data.tags
    assert tags["cmtrack.status"] == "completed"
    assert digests(tags)["schema"] == "2"
    assert tags["cmtrack.positive"] == "high"
    assert digests(tags)["labels"] == result.evaluation.labels_digest
    assert tags["cmtrack.groups"].startswith("level: low = 0-2; mid = 3; high = 4-6 (strict)")
    assert "| multiclass/accuracy |" in tags["mlflow.note.content"]


@pytest.mark.slow
def test_the_evaluated_rows_are_a_dataset_input(logged):
    client, run_id, result = logged
    (given,) = client.get_run(run_id).inputs.dataset_inputs
    assert given.dataset.digest == result.evaluation.labels_digest
    assert [(tag.key, tag.value) for tag in given.tags] == [("mlflow.data.context", "evaluation")]
    assert given.dataset.name == "400 rows of 7 classes"
    counts = result.evaluation.confusion_matrix.counts.sum(axis=1)
    profile = {"rows": 400, "classes": 7, "counts": {str(k): int(n) for k, n in enumerate(counts)}}
    assert json.loads(given.dataset.profile) == profile
    columns = [
        (one["name"], one["type"]) for one in json.loads(given.dataset.schema)["mlflow_colspec"]
    ]
    assert columns == [
        ("y_true", "long"),
        ("y_pred", "long"),
        *((f"prob/{k}", "double") for k in range(7)),
    ]


def test_a_report_says_of_which_run_and_data_it_is(store):
    y = ["no", "yes", "yes"]
    with mlflow.start_run(run_name="svm <b>") as run:
        log_evaluation(y, y, dataset="ANES 1996, test", prefix="val/", step=3, strict=True)
    page = Path(store.download_artifacts(run.info.run_id, "val_cmtrack_report.html")).read_text(
        encoding="utf-8"
    )
    assert "<h1>svm &lt;b&gt;</h1>" in page
    day = datetime.now(UTC).date().isoformat()
    assert (
        f"Evaluation “val” · step 3 · ANES 1996, test · run {run.info.run_id} · {day}</p>" in page
    )


@pytest.mark.slow
def test_a_dataset_has_the_name_that_a_person_gives(store):
    y, weights = ["no", "yes", "yes"], [0.5, 2.0, 1.0]
    with mlflow.start_run() as run:
        log_evaluation(y, y, sample_weight=weights, dataset="ANES 1996, test", strict=True)
        log_evaluation(
            y, y, sample_weight=weights, dataset="ANES 1996, test", prefix="again/", strict=True
        )
        log_evaluation(y, y, sample_weight=weights, dataset="other words", strict=True)
    given = store.get_run(run.info.run_id).inputs.dataset_inputs
    assert sorted(one.dataset.name for one in given) == ["ANES 1996, test", "other words"]
    assert len({one.dataset.digest for one in given}) == 1
    profile = {"rows": 3, "sum_of_weights": 3.5, "classes": 2, "counts": {"no": 0.5, "yes": 3.0}}
    assert json.loads(given[0].dataset.profile) == profile
    columns = [
        (one["name"], one["type"]) for one in json.loads(given[0].dataset.schema)["mlflow_colspec"]
    ]
    assert columns == [("y_true", "string"), ("y_pred", "string"), ("sample_weight", "double")]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (3, "dataset must be a name, got int"),
        (" ", "dataset must be a name of 1 to 500"),
        ("x" * 501, "1 to 500"),
    ],
    ids=["number", "blank", "long"],
)
def test_what_is_no_name_of_data_is_refused_and_the_evaluation_kept(store, name, words):
    with mlflow.start_run(), pytest.warns(EvaluationWarning, match=words):
        logged = log_evaluation([0, 1], [0, 1], dataset=name)
    assert logged.status == "saved"


def test_an_evaluation_with_a_wrong_option_is_kept_as_it_came(store):
    evaluation = evaluate([0, 1], [0, 1])
    with (
        mlflow.start_run(),
        pytest.warns(
            EvaluationWarning, match=r"binary/npvs.*is kept in .*; `cmtrack push"
        ) as caught,
    ):
        logged = log_evaluation(evaluation, headline=["binary/npvs"])
    assert (logged.status, logged.evaluation is evaluation, len(caught)) == ("saved", True, 1)
    assert type(evaluation).load(logged.path / "artifacts") == evaluation


@pytest.mark.slow
@pytest.mark.usefixtures("drawn")
def test_the_image_for_the_charts_is_made_for_its_size(logged, tmp_path):
    client, run_id, _ = logged
    # MLflow 3.5 does not download a name with "#"
    folder = urlsplit(client.get_run(run_id).info.artifact_uri).path
    (path,) = Path(folder, "images").rglob("*.png")
    assert Image.open(path).size == (512, 512)
    assert (
        Image.open(
            client.download_artifacts(run_id, "cmtrack_confusion_matrix.png", str(tmp_path))
        ).size[0]
        > 512
    )


@pytest.mark.slow
@pytest.mark.usefixtures("drawn")
def test_figures_say_which_run_and_data_they_are_of(store):
    evaluation = evaluate([0, 1, 1], [0, 1, 0])
    drawn = []
    for name, data in (("svm", "mine"), ("svm", "mine"), ("tree", "mine"), ("svm", "other")):
        with mlflow.start_run(run_name=name) as run:
            log_evaluation(evaluation, dataset=data, figures=["confusion_matrix"], strict=True)
        folder = Path(urlsplit(run.info.artifact_uri).path)
        (chart,) = (folder / "images").rglob("*.png")
        drawn.append(((folder / "cmtrack_confusion_matrix.png").read_bytes(), chart.read_bytes()))
    first, again, of_tree, of_other = drawn
    assert first == again
    assert first[0] != of_tree[0] != of_other[0] != first[0]
    assert first[1] != of_tree[1]  # a chart is too small for the data's name


@pytest.mark.slow
def test_the_class_table_has_the_label_first_and_is_a_table_to_mlflow(logged):
    client, run_id, result = logged
    table = mlflow.load_table("cmtrack_classes.json", run_ids=[run_id])
    assert list(table.columns)[:2] == ["label", "result"]
    assert table["recall"].to_numpy() == pytest.approx(
        [result.evaluation.metrics[f"class/{k}/recall"] for k in range(7)], abs=1e-6
    )
    listed = json.loads(client.get_run(run_id).data.tags["mlflow.loggedArtifacts"])
    assert {"path": "cmtrack_classes.json", "type": "table"} in listed


@pytest.mark.slow
def test_predictions_are_kept_row_by_row(logged, seven_classes, tmp_path):
    client, run_id, _ = logged
    y, p = seven_classes
    frame = pd.read_parquet(
        client.download_artifacts(run_id, "cmtrack_predictions.parquet", str(tmp_path))
    )
    assert frame["y_true"].astype(int).tolist() == y.tolist()
    assert frame["y_pred"].astype(int).tolist() == p.argmax(axis=1).tolist()
    np.testing.assert_allclose(frame[[f"prob/{k}" for k in range(7)]].to_numpy(), p, atol=1e-7)


def test_undefined_metrics_are_named_in_a_tag_and_not_logged(store):
    with mlflow.start_run() as run:
        log_evaluation([0, 0, 1, 1], [0, 0, 0, 0], labels=[0, 1], strict=True)
    data = store.get_run(run.info.run_id).data
    assert "multiclass/matthews_corrcoef" not in data.metrics
    assert "multiclass/matthews_corrcoef" in data.tags["cmtrack.nan"]
    assert all(math.isfinite(value) for value in data.metrics.values())


@pytest.mark.slow
def test_steps_prefixes_and_choices(store, seven_classes):
    y, p = seven_classes
    with mlflow.start_run() as run:
        for step in range(3):
            log_evaluation(
                y, y_prob=p, step=step, prefix="val/", metrics=["multiclass/accuracy"], strict=True
            )
        log_evaluation(
            y, y_prob=p, prefix="test/", metrics=["spcc/ovr/*"], predictions=False, strict=True
        )
    run_id = run.info.run_id
    history = store.get_metric_history(run_id, "val/multiclass/accuracy")
    assert [point.step for point in history] == [0, 1, 2]
    metrics = store.get_run(run_id).data.metrics
    assert set(metrics) == {"val/multiclass/accuracy"} | {f"test/spcc/ovr/{k}" for k in range(7)}
    assert {"val_cmtrack_evaluation.json", "test_cmtrack_evaluation.json"} <= paths(store, run_id)
    assert "test_cmtrack_predictions.parquet" not in paths(store, run_id)
    tags = store.get_run(run_id).data.tags
    assert tags["cmtrack.val.status"] == tags["cmtrack.test.status"] == "completed"
    assert load_evaluation(run_id, prefix="val/") == evaluate(y, y_prob=p)


@pytest.mark.slow
def test_every_metric_can_be_logged(store, seven_classes):
    y, p = seven_classes
    with mlflow.start_run() as run:
        result = log_evaluation(y, y_prob=p, grouping=CHAIN, metrics="all", strict=True)
    finite = {n: v for n, v in result.evaluation.metrics.items() if math.isfinite(v)}
    assert store.get_run(run.info.run_id).data.metrics == finite


def test_labels_of_any_text_become_legal_names(store):
    labels = ["a/b", "100%", "", "..", "ünï", "<b>x</b>", "a\nb", "x" * 300]
    y = np.repeat(labels, 5)
    with mlflow.start_run() as run:
        log_evaluation(y, y, metrics="all", strict=True)
    names = set(store.get_run(run.info.run_id).data.metrics)
    assert len(
        [name for name in names if name.startswith("class/") and name.endswith("/recall")]
    ) == len(labels)
    assert load_evaluation(run.info.run_id).labels == tuple(sorted(labels))


def test_metrics_are_linked_to_a_model_and_the_dataset(store, seven_classes):
    y, p = seven_classes
    model = mlflow.create_external_model(name="m")
    with mlflow.start_run() as run:
        result = log_evaluation(y, y_prob=p, model_id=model.model_id, strict=True)
    linked = store.get_logged_model(model.model_id).metrics
    assert {m.key: m.value for m in linked} == store.get_run(run.info.run_id).data.metrics
    assert {m.dataset_digest for m in linked} == {result.evaluation.labels_digest}


@pytest.mark.slow
def test_an_unknown_model_costs_the_link_and_nothing_else(store, seven_classes):
    y, p = seven_classes
    with mlflow.start_run() as run, pytest.warns(EvaluationWarning, match="link to model 'm-none'"):
        result = log_evaluation(y, y_prob=p, model_id="m-none")
    assert result.status == "completed"
    assert "multiclass/accuracy" in store.get_run(run.info.run_id).data.metrics


@pytest.mark.slow
def test_a_persons_description_is_left_alone(store, seven_classes):
    y, p = seven_classes
    with mlflow.start_run(description="my words") as run:
        log_evaluation(y, y_prob=p, strict=True)
    text = store.get_run(run.info.run_id).data.tags["mlflow.note.content"]
    assert text.startswith("my words\n\n**Evaluation**: On 400 rows")


@pytest.mark.slow
def test_a_run_that_has_ended_and_another_thread_need_the_run_id(store, seven_classes):
    y, p = seven_classes
    with mlflow.start_run() as run:
        pass
    results = []
    thread = threading.Thread(
        target=lambda: results.append(
            log_evaluation(y, y_prob=p, run_id=run.info.run_id, strict=True)
        )
    )
    thread.start()
    thread.join()
    assert results[0].status == "completed"
    assert store.get_run(run.info.run_id).info.status == "FINISHED"
    assert len(runs_of(store)) == 1


@pytest.mark.slow
def test_a_failed_run_stays_failed(store, seven_classes):
    y, p = seven_classes
    run = store.create_run(store.get_experiment_by_name("e").experiment_id)
    store.set_terminated(run.info.run_id, "FAILED")
    assert log_evaluation(y, y_prob=p, run_id=run.info.run_id, strict=True).status == "completed"
    assert store.get_run(run.info.run_id).info.status == "FAILED"


def test_without_a_run_the_evaluation_is_kept_and_no_run_is_opened(store, seven_classes, tmp_path):
    y, p = seven_classes
    with pytest.warns(EvaluationWarning, match="no run is active") as caught:
        result = log_evaluation(y, y_prob=p, grouping=CHAIN)
    assert result.status == "saved"
    assert str(result.path) in str(caught[0].message)
    assert result.path.parent == tmp_path / "cmtrack_spool"
    assert runs_of(store) == []
    assert type(result.evaluation).load(result.path / "artifacts") == result.evaluation


@pytest.mark.slow
def test_a_deleted_run_is_not_written_to(store, seven_classes):
    y, p = seven_classes
    with mlflow.start_run() as run:
        pass
    store.delete_run(run.info.run_id)
    with pytest.warns(EvaluationWarning, match="deleted"):
        result = log_evaluation(y, y_prob=p, run_id=run.info.run_id)
    assert result.status == "saved"
    assert "cmtrack.status" not in store.get_run(run.info.run_id).data.tags


def manifest(result):
    """What an entry of the spool says of itself."""
    return json.loads((result.path / "entry.json").read_text(encoding="utf-8"))


@pytest.mark.slow
def test_a_server_that_is_down_costs_seconds_and_nothing_is_lost(
    store, seven_classes, monkeypatch, tmp_path
):
    y, p = seven_classes
    monkeypatch.setenv("CMTRACK_SPOOL", str(tmp_path / "kept"))
    mlflow.set_tracking_uri("http://127.0.0.1:9")
    start = time.monotonic()
    with pytest.warns(EvaluationWarning, match="does not answer"):
        result = log_evaluation(y, y_prob=p, run_id="0" * 32, prefix="val/", step=4)
    assert time.monotonic() - start < 30
    kept = manifest(result)
    assert result.path.parent == tmp_path / "kept"
    assert (kept["run_id"], kept["prefix"], kept["step"]) == ("0" * 32, "val/", 4)
    assert (
        kept["metrics"]["val/multiclass/accuracy"]
        == result.evaluation.metrics["multiclass/accuracy"]
    )
    assert (result.path / "artifacts" / "val_cmtrack_report.html").is_file()


def test_bad_input_warns_keeps_the_inputs_and_logs_nothing(store, seven_classes):
    y, p = seven_classes
    said = (
        "y_prob must have shape .*inputs are kept in .*; `cmtrack spool` explains how to log them"
    )
    with mlflow.start_run() as run, pytest.warns(EvaluationWarning, match=said):
        result = log_evaluation(y, y_prob=p[:, :5], sample_weight=np.ones(len(y)))
    assert result.status == "failed"
    with np.load(result.path / "inputs.npz", allow_pickle=False) as kept:
        assert sorted(kept) == ["sample_weight", "y_prob", "y_true"]  # as log_evaluation takes them
        np.testing.assert_array_equal(kept["y_true"], y)
        np.testing.assert_array_equal(kept["y_prob"], p[:, :5])
    data = store.get_run(run.info.run_id).data
    assert data.metrics == {}
    assert not [name for name in data.tags if name.startswith("cmtrack")]


def test_warnings_turned_into_errors_do_not_end_a_training(store, seven_classes, capsys):
    y, p = seven_classes
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert log_evaluation(y, y_prob=p).status == "saved"
    assert "no run is active" in capsys.readouterr().err


@pytest.mark.slow
def test_an_evaluation_that_no_run_is_active_for_keeps_what_else_was_asked_for(
    store, seven_classes
):
    y, p = seven_classes
    asked = {
        "prefix": "val/",
        "step": 4,
        "dataset": "ANES 1996, test",
        "metrics": ["multiclass/accuracy"],
    }
    with pytest.warns(EvaluationWarning, match="no run is active"):
        result = log_evaluation(y, y_prob=p, figures=False, **asked)
    kept = manifest(result)
    assert (kept["run_id"], kept["prefix"], kept["step"]) == (None, "val/", 4)
    assert kept["metrics"] == {
        "val/multiclass/accuracy": result.evaluation.metrics["multiclass/accuracy"]
    }
    assert kept["dataset"]["name"] == "ANES 1996, test"
    assert kept["images"] == {}
    with mlflow.start_run() as run, pytest.warns(EvaluationWarning, match="dataset must be a name"):
        result = log_evaluation(y, y_prob=p, figures=False, **asked | {"dataset": ""})
    kept = manifest(result)
    assert (kept["run_id"], kept["images"], list(kept["metrics"])) == (
        run.info.run_id,
        {},
        ["val/multiclass/accuracy"],
    )


@pytest.mark.slow
def test_strict_raises_and_still_keeps(store, seven_classes, tmp_path):
    y, p = seven_classes
    with pytest.raises(ValueError, match="no run is active") as caught:
        log_evaluation(y, y_prob=p, strict=True)
    assert "the evaluation is kept in" in caught.value.__notes__[0]
    assert len(list((tmp_path / "cmtrack_spool").iterdir())) == 1
    with pytest.raises(ValueError, match="y_prob must have shape"):
        log_evaluation(y, y_prob=p[:, :5], strict=True)


@pytest.mark.slow
@pytest.mark.usefixtures("drawn")
def test_a_figure_that_fails_takes_nothing_with_it(store, seven_classes, monkeypatch):
    label = Axes.set_xlabel

    def without_ink(axes, text, *given, **options):
        if text.lower().startswith("false positive rate"):
            raise RuntimeError("no ink")
        return label(axes, text, *given, **options)

    monkeypatch.setattr(Axes, "set_xlabel", without_ink)
    y, p = seven_classes
    figures = ["confusion_matrix", "roc", "score_histogram"]
    with (
        mlflow.start_run() as run,
        pytest.warns(EvaluationWarning, match="figure roc: RuntimeError: no ink"),
    ):
        result = log_evaluation(y, y_prob=p, grouping=CHAIN, figures=figures)
    assert result.status == "completed"
    found = paths(store, run.info.run_id)
    assert "cmtrack_roc.png" not in found
    assert {
        "cmtrack_confusion_matrix.png",
        "cmtrack_report.html",
        "cmtrack_score_histogram.png",
    } <= found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"prefix": "../x"}, "prefix must"),
        ({"metrics": ["multiclass/acuracy"]}, "no metric 'multiclass/acuracy'"),
        ({"metrics": "some"}, "metrics must be"),
    ],
)
def test_wrong_options_are_said(store, seven_classes, options, text):
    y, p = seven_classes
    with mlflow.start_run(), pytest.raises(ValueError, match=text):
        log_evaluation(y, y_prob=p, strict=True, **options)


def test_loading_says_what_is_missing(store):
    with pytest.raises(ValueError, match=r"there is no run 'nope'.*; give a run's id, the first 8"):
        load_evaluation("nope")
    with mlflow.start_run() as run:
        mlflow.log_text("{", "cmtrack_evaluation.json")
        mlflow.log_text('{"schema": 99}', "new_cmtrack_evaluation.json")
    with pytest.raises(ValueError, match="no evaluation"):
        load_evaluation(run.info.run_id)
    with pytest.raises(ValueError, match="upgrade cmtrack"):
        load_evaluation(run.info.run_id, prefix="new_")
    with pytest.raises(ValueError, match="has no other_cmtrack_evaluation"):
        load_evaluation(run.info.run_id, prefix="other_")


def test_two_evaluations_of_the_same_rows_share_their_digest(store, seven_classes):
    y, p = seven_classes
    one, two = evaluate(y, y_prob=p), evaluate(y, y_prob=p[::-1])
    assert one.labels_digest == two.labels_digest
    swapped = y.copy()
    first, second = np.flatnonzero(y != y[0])[0], 0
    swapped[[first, second]] = y[[second, first]]
    assert evaluate(swapped, y_prob=p).labels_digest != one.labels_digest


@pytest.mark.slow
def test_figures_are_chosen(store, drawn):
    y, scores = [0, 1, 1, 0, 1], [0.2, 0.6, 0.8, 0.4, 0.3]
    found, shown = {}, {}
    with mlflow.start_run() as run:
        for prefix, figures in {
            "a_": "auto",
            "b_": "all",
            "c_": False,
            "d_": ("roc", "gains"),
        }.items():
            log_evaluation(y, y_prob=scores, prefix=prefix, figures=figures, strict=True)
            files = {path for path in paths(store, run.info.run_id) if path.startswith(prefix)}
            found[figures] = {
                file.removeprefix(f"{prefix}cmtrack_") for file in files if file.endswith(".png")
            }
            page = mlflow.artifacts.load_text(
                f"{run.info.artifact_uri}/{prefix}cmtrack_report.html"
            )
            shown[figures] = page.count("<svg ")
    assert found["auto"] == {"confusion_matrix.png", "roc.png"}
    assert {"confusion_matrix.png", "roc.png", "gains.png"} <= found["all"]
    assert shown["auto"] == 4  # the matrix, two curves, reliability
    assert shown["all"] == len(found["all"]) > 4
    assert (found[False], shown[False]) == (set(), 0)
    assert (found["roc", "gains"], shown["roc", "gains"]) == ({"roc.png", "gains.png"}, 2)
    images = [item.path for item in store.list_artifacts(run.info.run_id, "images")]
    assert [sum(prefix in path for path in images) for prefix in ("a_", "b_", "c_", "d_")] == [
        2,
        2,
        0,
        2,
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("figures", "words"),
    [
        ("some", "figures must be 'auto', 'all', True, False or a list"),
        (["rox"], "figure rox: ValueError: there is"),
    ],
)
def test_figures_that_are_none_are_told_and_the_evaluation_kept(store, drawn, figures, words):
    with mlflow.start_run(), pytest.warns(EvaluationWarning, match=words):
        logged = log_evaluation([0, 1], [0, 1], figures=figures)
    assert logged.evaluation is not None
    assert logged.status == ("saved" if figures == "some" else "completed")


@pytest.mark.slow
def test_reports_of_steps_are_made_for_the_first_and_for_the_last_of_them(
    store, drawn, monkeypatch
):
    y, scores = [0, 1, 1, 0, 1], [0.2, 0.6, 0.8, 0.4, 0.3]
    with mlflow.start_run() as run:
        for step in range(5):
            log_evaluation(y, y_prob=scores, step=step, strict=True)
    where = f"{run.info.artifact_uri}/cmtrack_report.html"
    assert "step 0 · " in mlflow.artifacts.load_text(where)
    assert "Report](" not in store.get_run(run.info.run_id).data.tags["mlflow.note.content"]
    before = store.get_metric_history(run.info.run_id, "multiclass/accuracy")
    make_pending_reports()
    assert "step 4 · " in mlflow.artifacts.load_text(where)
    assert "Report](" in store.get_run(run.info.run_id).data.tags["mlflow.note.content"]
    assert store.get_metric_history(run.info.run_id, "multiclass/accuracy") == before
    images = [item.path for item in store.list_artifacts(run.info.run_id, "images")]
    assert len(images) == 2 * 5  # one of each step with its thumbnail
    report = Path(urlsplit(where).path)
    written = report.stat().st_mtime_ns
    make_pending_reports()
    assert report.stat().st_mtime_ns == written  # none is pending any more
    wait_between_reports(monkeypatch, 0.0)
    log_evaluation(y, y_prob=scores, run_id=run.info.run_id, step=5, strict=True)
    assert "step 5 · " in mlflow.artifacts.load_text(where)  # long ago: at once


@pytest.mark.slow
def test_a_process_that_ends_has_the_report_of_its_last_step(store, tmp_path):
    code = (
        "import mlflow\n"
        "from cmtrack import log_evaluation\n"
        "with mlflow.start_run(experiment_id='1') as run:\n"
        "    for step in range(3):\n"
        "        log_evaluation([0, 1], [0, 1], step=step, strict=True)\n"
        "print(run.info.run_id)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "MLFLOW_TRACKING_URI": mlflow.get_tracking_uri()},
        capture_output=True,
        text=True,
        timeout=120,
    )
    run = store.get_run(done.stdout.split()[-1])
    assert "step 2 · " in mlflow.artifacts.load_text(
        f"{run.info.artifact_uri}/cmtrack_report.html"
    ), done.stderr
