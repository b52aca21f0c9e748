"""Which rows are written and sent: the caller's wish, limited by the environment and the project."""

from __future__ import annotations

import hashlib
import json
import logging
from contextlib import nullcontext
from io import BytesIO
from pathlib import Path

import mlflow
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from mlflow.store.artifact.local_artifact_repo import LocalArtifactRepository

from cmtrack import (
    Evaluation,
    archive,
    compare,
    evaluate,
    load_evaluation,
    log_evaluation,
    paired_differences,
)
from cmtrack.cli import main
from cmtrack.tracking import EvaluationWarning
from support.problems import random_labels, random_probabilities
from support.stores import push, waiting

pytestmark = pytest.mark.usefixtures("undrawn")

FILE = "cmtrack_predictions.parquet"
VARIABLE, ROW_IDS, ID_KEY = "CMTRACK_PREDICTIONS", "CMTRACK_ROW_IDS", "CMTRACK_ID_KEY"
Y = random_labels(150, 3)


def probabilities(seed: int):
    return random_probabilities(Y, 3, 1.0 + 0.2 * seed, seed)


P = probabilities(0)
SMALL = evaluate([0, 1, 2, 1], y_prob=P[:4])


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Write a pyproject.toml and work in a folder below it."""
    below = tmp_path / "project" / "src" / "deep"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)

    def written(text: str):
        path = tmp_path / "project" / "pyproject.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return written


def sent(client, run_id):
    return {item.path for item in client.list_artifacts(run_id)}


def columns(client, run_id, tmp_path):
    return pq.read_table(client.download_artifacts(run_id, FILE, str(tmp_path))).column_names


def lists_rows(client, run_id, tmp_path):
    page = Path(client.download_artifacts(run_id, "cmtrack_report.html", str(tmp_path))).read_text()
    assert "Grouped" in page or "Classes" in page
    return "Rows behind the confusions" in page


# -- what the settings come to -------------------------------------------------------------------------------------


def kept_rows(asked="auto"):
    """The rows of an evaluation that waits in the spool: "all", "labels", or "off" where there are none."""
    with pytest.warns(EvaluationWarning, match="no run is active") as warned:
        logged = log_evaluation(SMALL, figures=False, predictions=asked)
    assert logged.status == "saved"
    file = logged.path / "artifacts" / FILE
    if not file.exists():
        return "off", warned
    narrow = pq.read_schema(file).names == ["y_true", "y_pred"]
    return "labels" if narrow else "all", warned


@pytest.mark.parametrize(
    ("setting", "asked", "content"),
    [
        (None, "auto", "all"),
        (None, True, "all"),
        (None, False, "off"),
        (None, "labels", "labels"),
        ("auto", True, "all"),
        ("off", "auto", "off"),
        ("off", True, "off"),
        ("off", "labels", "off"),
        ("labels", "auto", "labels"),
        ("labels", True, "labels"),
        ("labels", False, "off"),
        ("on", "auto", "all"),
        ("on", "labels", "labels"),
        ("on", False, "off"),
        ("OFF", True, "off"),
        ("0", True, "off"),
        ("false", True, "off"),
    ],
)
def test_the_stricter_of_setting_and_caller_holds(project, monkeypatch, setting, asked, content):
    if setting is not None:
        monkeypatch.setenv(VARIABLE, setting)
    assert kept_rows(asked)[0] == content


@pytest.mark.parametrize("asked", ["offf", "all", 1, None], ids=["typo", "all", "one", "none"])
def test_a_wish_that_there_is_not_is_refused_with_the_rule(store, asked):
    with (
        mlflow.start_run(),
        pytest.raises(ValueError, match="predictions must be True, False, 'auto' or 'labels', got"),
    ):
        log_evaluation(SMALL, figures=False, predictions=asked, strict=True)
    (entry,) = waiting()
    assert not list(entry.path.rglob("*.parquet"))


@pytest.mark.parametrize("value", ["off", "labels", "auto", "on"])
def test_a_project_sets_it_for_all_folders_below(project, caplog, value):
    path = project(f'[tool.cmtrack]\npredictions = "{value}"\n')
    with caplog.at_level(logging.INFO, "cmtrack"):
        content, _ = kept_rows(True)
    assert content == {"off": "off", "labels": "labels"}.get(value, "all")
    if value == "off":
        assert str(path) in caplog.text


def test_a_project_without_the_setting_leaves_it_to_the_one_above(project, tmp_path):
    project('[tool.cmtrack]\npredictions = "off"\n')
    (tmp_path / "project" / "src" / "pyproject.toml").write_text("[tool.other]\nx = 1\n")
    assert kept_rows()[0] == "off"


def test_the_environment_goes_before_the_project(project, monkeypatch):
    project('[tool.cmtrack]\npredictions = "off"\n')
    monkeypatch.setenv(VARIABLE, "labels")
    assert kept_rows()[0] == "labels"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[tool.cmtrack]\npredictions = "of"\n', "must be one of off, labels, auto, on, got 'of'"),
        ("[tool.cmtrack]\npredictions = 3\n", "must be one of off, labels, auto, on, got 3"),
        ('[tool.cmtrack]\nprediction = "off"\n', "has 'prediction': did you mean 'predictions'"),
        ("[tool.cmtrack\n", "cannot be read"),
        ("[tool]\ncmtrack = 3\n", "tool.cmtrack must be a table, got 3"),
    ],
    ids=["value", "type", "name", "damaged", "table"],
)
def test_a_project_that_cannot_be_read_counts_as_off_and_is_warned_of_once(project, text, words):
    project(text)
    found = [kept_rows(True) for _ in range(2)]
    assert [content for content, _ in found] == ["off", "off"]
    said = [str(one.message) for _, warned in found for one in warned]
    assert sum(words in text for text in said) == 1


def test_an_environment_that_cannot_be_read_counts_as_off_and_the_training_goes_on(
    store, monkeypatch
):
    monkeypatch.setenv(VARIABLE, "of the user")
    with (
        mlflow.start_run() as run,
        pytest.warns(
            EvaluationWarning,
            match="CMTRACK_PREDICTIONS must be one of off, labels, auto, on, got 'of the user'",
        ),
    ):
        logged = log_evaluation(Y, y_prob=P, predictions=True)
    assert logged.status == "completed"
    assert FILE not in sent(store, run.info.run_id)


# -- every way out -------------------------------------------------------------------------------------------------


def log_it(run_id):
    log_evaluation(Y, y_prob=P, run_id=run_id, predictions=True, strict=True)


def log_an_evaluation(run_id):
    log_evaluation(evaluate(Y, y_prob=P), run_id=run_id, strict=True)


def log_candidates(run_id):
    pytest.importorskip("sklearn")
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV

    from cmtrack_integrations import sklearn as hooks

    search = GridSearchCV(LogisticRegression(), {"C": [1.0]}, cv=2).fit(P, Y)
    hooks.log_candidates(search, P, Y, run_id=run_id, predictions=True, strict=True)


def log_estimator(run_id):
    from sklearn.linear_model import LogisticRegression

    from cmtrack_integrations import sklearn as hooks

    hooks.log_estimator(
        LogisticRegression().fit(P, Y), P, Y, run_id=run_id, predictions=True, strict=True
    )


def log_by_mlflow(run_id):
    import pandas as pd

    frame = pd.DataFrame(P, columns=["p_0", "p_1", "p_2"]).assign(y=Y, predicted=P.argmax(axis=1))
    with mlflow.start_run(run_id):
        mlflow.models.evaluate(
            data=frame,
            targets="y",
            predictions="predicted",
            model_type="classifier",
            evaluators="cmtrack",
            evaluator_config={"cmtrack": {"y_prob": "p_*", "predictions": True, "strict": True}},
        )


def log_from_the_command_line(run_id):
    import pandas as pd

    frame = pd.DataFrame(P, columns=["p_0", "p_1", "p_2"]).assign(y=Y)
    frame.to_parquet("rows.parquet")
    arguments = [
        "evaluate",
        "rows.parquet",
        "--y-true",
        "y",
        "--y-prob",
        "p_*",
        "--log",
        "--run-id",
        run_id,
    ]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output


WAYS = [
    log_it,
    log_an_evaluation,
    log_candidates,
    log_estimator,
    log_by_mlflow,
    log_from_the_command_line,
]


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS, ids=[way.__name__ for way in WAYS])
def test_every_way_to_log_keeps_the_setting(store, monkeypatch, tmp_path, way):
    experiment = store.get_experiment_by_name("e").experiment_id
    seen: set[str] = set()
    for setting in ("off", "labels"):
        monkeypatch.setenv(VARIABLE, setting)
        way(store.create_run(experiment).info.run_id)
        runs = {run.info.run_id for run in store.search_runs([experiment])} - seen
        seen |= runs
        made = [run_id for run_id in runs if "cmtrack_evaluation.json" in sent(store, run_id)]
        assert made
        for run_id in made:
            if setting == "off":
                assert FILE not in sent(store, run_id)
                assert not any("predictions" in tag for tag in store.get_run(run_id).data.tags)
            else:
                assert columns(store, run_id, tmp_path) == ["y_true", "y_pred"]


def test_a_hook_keeps_the_setting(store, monkeypatch):
    torch_hook = pytest.importorskip("cmtrack_integrations._hook")
    monkeypatch.setenv(VARIABLE, "off")
    with mlflow.start_run() as run:
        hook = torch_hook.Hook({"predictions": True, "strict": True})
        hook.begin()
        hook.log(Y, y_prob=P, step=1)
    assert FILE not in sent(store, run.info.run_id)


@pytest.mark.slow
def test_by_default_all_rows_go_and_the_log_says_so(store, caplog, tmp_path):
    with caplog.at_level(logging.INFO, "cmtrack"), mlflow.start_run() as run:
        log_evaluation(Y, y_prob=P, sample_weight=np.ones(150, int), groups=Y, strict=True)
    assert columns(store, run.info.run_id, tmp_path)[:4] == [
        "y_true",
        "y_pred",
        "sample_weight",
        "group",
    ]
    (said,) = [record.message for record in caplog.records if record.name == "cmtrack"]
    assert said.startswith(
        "150 rows are logged (actual and predicted labels, probabilities, weights, groups; 0.0 MB"
    )
    assert "CMTRACK_PREDICTIONS=off" in said


# -- the spool -----------------------------------------------------------------------------------------------------


def spooled_entry():
    with pytest.warns(EvaluationWarning, match="was not logged"):
        log_evaluation(Y, y_prob=P, run_id="no-such-run", predictions=True)
    (entry,) = waiting()
    return entry


def test_off_leaves_no_rows_in_the_spool(store, monkeypatch):
    monkeypatch.setenv(VARIABLE, "off")
    entry = spooled_entry()
    assert not list(entry.path.rglob("*.parquet"))


def test_a_wish_that_there_is_not_leaves_no_rows_in_the_spool(store):
    with (
        mlflow.start_run() as run,
        pytest.warns(EvaluationWarning, match="predictions must be True"),
    ):
        logged = log_evaluation(Y, y_prob=P, predictions="offf")
    assert (logged.status, logged.run_id) == ("saved", run.info.run_id)
    (entry,) = waiting()
    assert not list(entry.path.rglob("*.parquet"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("option", "rule"),
    [
        ({"metrics": ["accuracy"]}, "did you mean 'multiclass/accuracy'"),
        ({"on_existing": "overwrite"}, "on_existing must be"),
        ({"figures": 3}, "figures must be"),
        ({"dataset": 3}, "dataset must be"),
    ],
)
def test_an_evaluation_kept_after_a_wrong_option_goes_to_its_run(store, option, rule):
    with mlflow.start_run() as run, pytest.warns(EvaluationWarning, match=rule) as caught:
        log_evaluation(Y, y_prob=P, prefix="val/", **option)
    assert "`cmtrack push` sends it" in str(caught[0].message)
    (pushed,) = push()
    assert (pushed.status, pushed.run_id) == ("sent", run.info.run_id)
    assert "val/multiclass/accuracy" in store.get_run(run.info.run_id).data.metrics


def test_an_evaluation_kept_after_a_wrong_prefix_takes_no_place_of_another_one(store):
    with mlflow.start_run(), pytest.warns(EvaluationWarning, match="experiment NAME"):
        logged = log_evaluation(Y, y_prob=P, prefix="a b/../")
    assert logged.run_id is None


def test_candidates_of_a_run_that_is_not_there_leave_no_rows_in_the_spool(store):
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV

    from cmtrack_integrations import sklearn as hooks

    search = GridSearchCV(LogisticRegression(), {"C": [1.0]}, cv=2).fit(P, Y)
    with pytest.warns(EvaluationWarning):
        hooks.log_candidates(search, P, Y, run_id="no-such-run", predictions=False)
    (entry,) = waiting()
    assert not list(entry.path.rglob("*.parquet"))


@pytest.mark.parametrize(
    ("setting", "asked", "kept"),
    [
        ("off", True, None),
        (None, False, None),
        ("labels", True, {"y_true"}),
        (None, "auto", {"y_true", "y_prob"}),
    ],
    ids=["off", "by-call", "labels", "default"],
)
def test_the_inputs_of_a_failed_evaluation_are_kept_as_the_setting_says(
    store, monkeypatch, setting, asked, kept
):
    if setting is not None:
        monkeypatch.setenv(VARIABLE, setting)
    with (
        mlflow.start_run(),
        pytest.warns(EvaluationWarning, match="the evaluation failed") as caught,
    ):
        logged = log_evaluation(Y, y_prob=P[:, :2] * 3, predictions=asked)
    if kept is None:
        assert waiting() == []
        assert logged.path is None
        assert "its inputs are not kept: " in str(caught[0].message)
        return
    (entry,) = waiting()
    assert set(np.load(entry.path / "inputs.npz").files) == kept


def kept_inputs(**given):
    """The inputs of an evaluation that fails for its probabilities."""
    with pytest.warns(EvaluationWarning, match="the evaluation failed"):
        logged = log_evaluation(**given, y_prob=np.ones((1, 1)), labels=[])
    assert logged.status == "failed"
    if logged.path is None:
        return {}
    with np.load(logged.path / "inputs.npz", allow_pickle=False) as kept:
        return {name: kept[name].tolist() for name in kept.files}


@pytest.mark.parametrize(
    "given",
    [
        P,
        P[:, 0],
        P[:, 0] * 100,
        P.tolist(),
        [{"p": p} for p in P[:, 0]],
        list(map(str, P[:, 0])),
        0.5,
    ],
)
def test_probabilities_given_as_labels_are_not_kept_where_probabilities_may_not(
    project, monkeypatch, given
):
    monkeypatch.setenv(VARIABLE, "labels")
    assert kept_inputs(evaluation_or_y_true=given, y_pred=given) == {}


@pytest.mark.parametrize(
    "given", [Y, Y.astype(float), list(map(str, Y)), ["a", None], [[1], [0]], [True]]
)
def test_labels_of_a_failed_evaluation_are_kept_where_probabilities_may_not(
    project, monkeypatch, given
):
    monkeypatch.setenv(VARIABLE, "labels")
    found = kept_inputs(evaluation_or_y_true=given)
    assert list(found) == ["y_true"]
    assert list(map(str, found["y_true"])) == list(map(str, given))


@pytest.mark.slow
@pytest.mark.parametrize("setting", ["off", "labels"])
def test_push_sends_no_more_rows_than_the_setting_allows(store, monkeypatch, tmp_path, setting):
    entry = spooled_entry()
    assert len(list(entry.path.rglob("*.parquet"))) == 1
    monkeypatch.setenv(VARIABLE, setting)
    (pushed,) = push(experiment_name="e")
    assert pushed.status == "sent", pushed.reason
    assert any(f"CMTRACK_PREDICTIONS={setting}" in problem for problem in pushed.problems)
    assert not lists_rows(store, pushed.run_id, tmp_path)
    if setting == "off":
        assert FILE not in sent(store, pushed.run_id)
        with pytest.raises(ValueError, match="has no cmtrack_predictions"):
            load_evaluation(pushed.run_id, rows=True)
    else:
        assert columns(store, pushed.run_id, tmp_path) == ["y_true", "y_pred"]
        # the digest is that of the new file
        assert load_evaluation(pushed.run_id, rows=True).rows.source is None


@pytest.mark.slow
def test_push_without_a_setting_sends_all(store, tmp_path):
    spooled_entry()
    (pushed,) = push(experiment_name="e")
    assert pushed.problems == ()
    assert len(columns(store, pushed.run_id, tmp_path)) == 5
    assert lists_rows(store, pushed.run_id, tmp_path)


@pytest.mark.slow
def test_an_entry_that_was_narrowed_and_not_sent_is_whole(store, monkeypatch):
    def gone(*_, **__):
        raise ConnectionError("gone")

    spooled_entry()
    with monkeypatch.context() as patch:
        patch.setenv(VARIABLE, "labels")
        patch.setattr(LocalArtifactRepository, "log_artifact", gone)
        (kept,) = push(experiment_name="e")
    (problem,) = kept.problems
    assert "rows" in problem
    assert kept.status == "kept"
    (pushed,) = push(experiment_name="e")
    assert pushed.status == "sent", pushed.reason


# -- rows without probabilities --------------------------------------------------------------------------------------


def pair(store):
    ids = []
    for seed in (0, 3):
        with mlflow.start_run(run_name=f"model {seed}") as run:
            log_evaluation(
                Y, y_prob=probabilities(seed), predictions="labels", positive=None, strict=True
            )
        ids.append(run.info.run_id)
    return ids


@pytest.mark.slow
def test_label_metrics_are_paired_and_score_metrics_say_why_not(store):
    ids = pair(store)
    by_label = compare(ids, rank_by="multiclass/accuracy")
    assert all(run.unpaired == "" for run in by_label.runs)
    by_score = compare(ids, rank_by="spcc/ovr_fisher")
    reasons = {run.unpaired for run in by_score.runs if run.unpaired}
    assert reasons == {"spcc/ovr_fisher needs the probabilities of the rows, which were not kept"}
    first, second = (load_evaluation(run_id, rows=True) for run_id in ids)
    both = paired_differences(first, second)
    assert both.paired
    assert "needs the probabilities of the rows, which were not kept" in both.reason
    assert np.isfinite(both["multiclass/accuracy"].standard_error)
    assert both.mcnemar is not None


@pytest.mark.slow
def test_an_evaluation_loaded_without_probabilities_keeps_its_numbers_and_regroups(store):
    from cmtrack import Grouping

    ids = pair(store)
    loaded, without = load_evaluation(ids[0], rows=True), load_evaluation(ids[0])
    assert loaded.metrics == without.metrics
    again = loaded.regroup(Grouping({"a": [0, 1], "b": [2]}))
    assert again.metrics["binary/recall"] == pytest.approx(
        without.regroup(again.grouping).metrics["binary/recall"]
    )


@pytest.mark.slow
def test_push_narrows_rows_to_those_that_labels_writes(store, monkeypatch, tmp_path):
    given = {"y_prob": P, "groups": Y, "segments": {"odd": Y % 2}}
    with pytest.warns(EvaluationWarning, match="was not logged"):
        log_evaluation(Y, **given, run_id="no-such-run", predictions=True)
    monkeypatch.setenv(VARIABLE, "labels")
    (pushed,) = push(experiment_name="e")
    with mlflow.start_run() as run:
        log_evaluation(Y, **given, strict=True)
    tables = [
        pq.read_table(store.download_artifacts(run_id, FILE, str(tmp_path)))
        for run_id in (pushed.run_id, run.info.run_id)
    ]
    assert tables[0].equals(tables[1])


def test_rows_that_another_program_wrote_are_checked_before_they_are_narrowed(store, monkeypatch):
    entry = spooled_entry()
    file = entry.path / "artifacts" / FILE
    table = pq.read_table(file)
    pq.write_table(table.set_column(0, "y_true", pa.array([["nested"]] * len(table))), file)
    monkeypatch.setenv(VARIABLE, "labels")
    (kept,) = push(experiment_name="e")
    said = f"{kept.reason} {kept.problems}"
    assert "the predictions are damaged: column 'y_true' has the type list" in said
    assert kept.run_id is None or FILE not in sent(store, kept.run_id)


def test_save_is_the_callers_own_act_and_goes_by_its_own_rows(tmp_path, monkeypatch):
    monkeypatch.setenv("CMTRACK_PREDICTIONS", "off")
    evaluation = evaluate(Y, y_prob=P)
    for folder, rows in (("auto", "auto"), ("none", False)):
        evaluation.save(tmp_path / folder, rows=rows)
        assert (tmp_path / folder / "cmtrack_predictions.parquet").exists() == (rows == "auto")
    assert "CMTRACK_PREDICTIONS" in str(Evaluation.save.__doc__)


# -- what the command line says ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_command_line_says_which_rows_went(store):
    import pandas as pd

    pd.DataFrame(P, columns=["p_0", "p_1", "p_2"]).assign(y=Y).to_parquet("rows.parquet")
    arguments = [
        "evaluate",
        "rows.parquet",
        "--y-true",
        "y",
        "--y-prob",
        "p_*",
        "--log",
        "--experiment",
        "e",
    ]
    for given, as_json, wanted in (
        ((), (), "150 rows are logged (actual and predicted labels, probabilities;"),
        (
            ("--predictions", "labels"),
            ("--json",),
            "150 rows are logged (actual and predicted labels;",
        ),
        (("--predictions", "off"), (), "0 rows are logged (predictions=False)."),
    ):
        done = CliRunner().invoke(main, [*arguments, *given, *as_json])
        assert done.exit_code == 0, done.output
        said = json.loads(done.stdout)["rows"] if as_json else " ".join(done.output.split())
        assert wanted in said


def test_rows_that_unpack_to_more_than_their_footer_says_are_refused(monkeypatch):
    content = BytesIO()
    pq.write_table(pa.table({"y_true": ["a" * 1000] * 1000}), content)
    monkeypatch.setattr(archive, "_ALWAYS_READ", 100_000)
    monkeypatch.setattr(archive, "_MAX_RATIO", 0)
    with pytest.raises(ValueError, match="must not be larger than 100,000 bytes, got more"):
        archive.checked_table(content.getvalue(), 1000, ["y_true"], [])


# -- ids of rows ---------------------------------------------------------------------------------------------------

SECRET = [f"patient-{k:04d}" for k in range(150)]


def stored_ids(client, run_id, tmp_path):
    """Columns of ids in a run's file of rows, and whether an id stands in any of the run's files."""
    folder = client.download_artifacts(run_id, "", str(tmp_path))
    table = pq.read_table(f"{folder}/{FILE}")
    texts = [
        table.column(name).to_pylist()
        for name in table.column_names
        if pa.types.is_string(table[name].type)
    ]
    files = [path for path in Path(folder).rglob("*") if path.is_file()]
    bare = any(b"patient-0" in path.read_bytes() for path in files) or any(
        "patient-0007" in text for text in texts
    )
    return [name for name in table.column_names if name.startswith("row_")], bare


@pytest.mark.slow
@pytest.mark.parametrize(
    ("setting", "key", "predictions", "columns", "bare"),
    [
        (None, "k", "auto", [], False),
        ("on", None, "auto", ["row_id"], True),
        ("on", None, "labels", [], False),
        ("hashed", "k", "auto", ["row_hash"], False),
        ("hashed", None, "auto", [], False),
        ("perhaps", "k", "auto", [], False),
    ],
)
def test_ids_are_kept_as_the_setting_says(
    store, undrawn, tmp_path, monkeypatch, setting, key, predictions, columns, bare
):
    for name, value in ((ROW_IDS, setting), (ID_KEY, key)):
        monkeypatch.delenv(name, raising=False) if value is None else monkeypatch.setenv(
            name, value
        )
    fault = setting == "perhaps" or (setting == "hashed" and key is None)
    with mlflow.start_run() as run, pytest.warns(EvaluationWarning) if fault else nullcontext():
        log_evaluation(
            Y, y_prob=P, row_ids=SECRET, predictions=predictions, segments={"part": Y % 2}
        )
    assert stored_ids(mlflow.MlflowClient(), run.info.run_id, tmp_path) == (columns, bare)
    loaded = load_evaluation(run.info.run_id, rows=True)
    table = {"id": SECRET[::-1], "number": range(149, -1, -1)}
    if columns:
        frame = loaded.rows_where(table=table, row_ids="id")
        assert frame["number"].tolist() == frame["row"].tolist()
    else:
        with pytest.raises(ValueError, match="the same ids in another order"):
            loaded.rows_where(table=table, row_ids="id")


def test_hashes_are_those_of_the_key(project, monkeypatch):
    monkeypatch.setenv(ROW_IDS, "hashed")
    monkeypatch.setenv(ID_KEY, "k")
    evaluation = evaluate(Y[:4], y_prob=P[:4], row_ids=SECRET[:4], labels=[0, 1, 2])
    with pytest.warns(EvaluationWarning, match="no run is active"):
        logged = log_evaluation(evaluation, figures=False)
    first = pq.read_table(logged.path / "artifacts" / FILE)["row_hash"][0].as_py()
    expected = hashlib.blake2b(b"patient-0000", digest_size=8, key=b"k").digest()
    assert int(first) % 2**64 == int.from_bytes(expected, "big")
    monkeypatch.setenv(ID_KEY, "x" * 65)
    with pytest.warns(
        EvaluationWarning, match="a key of 1 to 64 bytes in CMTRACK_ID_KEY, got 65 bytes"
    ):
        logged = log_evaluation(evaluation, figures=False)
    assert "row_hash" not in pq.read_schema(logged.path / "artifacts" / FILE).names


def test_rows_with_ids_of_another_evaluation_are_refused(project, monkeypatch):
    monkeypatch.setenv(ROW_IDS, "on")
    with pytest.warns(EvaluationWarning, match="no run is active"):
        logged = log_evaluation(Y, y_prob=P, row_ids=SECRET, figures=False)
    file = logged.path / "artifacts" / FILE
    assert "row_id" in pq.read_schema(file).names
    other = evaluate(Y, y_prob=P, row_ids=SECRET[::-1])
    with pytest.raises(ValueError, match="must match the row ids in the evaluation"):
        other.with_rows(file.read_bytes())


@pytest.mark.slow
@pytest.mark.parametrize("setting", ["off", "hashed", "on"])
def test_push_takes_out_ids_that_may_not_be_sent(store, monkeypatch, tmp_path, setting):
    monkeypatch.setenv(ROW_IDS, "on")
    with pytest.warns(EvaluationWarning, match="was not logged"):
        log_evaluation(Y, y_prob=P, row_ids=SECRET, run_id="no-such-run", figures=False)
    monkeypatch.setenv(ROW_IDS, setting)
    (pushed,) = push(experiment_name="e")
    names, bare = stored_ids(mlflow.MlflowClient(), pushed.run_id, tmp_path)
    assert (names, bare) == ((["row_id"], True) if setting == "on" else ([], False))
