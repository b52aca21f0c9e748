"""Answers of the command line and of small parts of the API to what people ask, also when they ask amiss."""

from __future__ import annotations

import copy
import json
import pickle
import re
from typing import Any

import mlflow
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result

from cmtrack import Grouping, compare, evaluate, load_evaluation, log_evaluation
from cmtrack.cli import main
from cmtrack.digits import number
from cmtrack.tracking import EvaluationWarning, TrackedRun, digests, quiet, tracking_store
from support.contradictions import terminal_of
from support.problems import random_labels, random_probabilities
from support.stores import sqlite_store

N = 240
Y = random_labels(N, 3)


def scores(seed: int, skill: float = 1.5):
    return random_probabilities(Y, 3, skill, seed)


@pytest.fixture(scope="module")
def filled(tmp_path_factory, undrawn):
    """A store with two runs, one of them a registered model's, and one with evaluations under prefixes only."""
    folder = tmp_path_factory.mktemp("store")
    uri, runs = sqlite_store(folder / "mlflow.db"), {}
    with pytest.MonkeyPatch.context() as patch, quiet(), tracking_store(uri):
        patch.setenv("CMTRACK_SPOOL", str(folder / "spool"))
        client = mlflow.MlflowClient()
        place = client.create_experiment("runs", artifact_location=(folder / "artifacts").as_uri())
        for name, prefixes in (
            ("good", ("",)),
            ("fair", ("",)),
            ("both", ("train/", "val/")),
            ("none", ()),
        ):
            with mlflow.start_run(experiment_id=place, run_name=name) as run:
                mlflow.log_param("depth", len(runs))
                for seed, prefix in enumerate(prefixes, len(runs)):
                    skill = 2.0 if name == "good" else 1.7
                    log_evaluation(Y, y_prob=scores(seed, skill), prefix=prefix, strict=True)
            runs[name] = str(run.info.run_id)
        client.create_registered_model("party")
        client.create_model_version("party", source="nowhere", run_id=runs["good"])
        client.set_registered_model_alias("party", "champion", "1")
    return uri, runs, client


def said(uri: str | None, *arguments: str, width: int = 100) -> Result:
    store = [] if uri is None else ["--tracking-uri", uri]
    done = CliRunner().invoke(main, [*arguments, *store], env={"COLUMNS": str(width)})
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


def flat(done: Result) -> str:
    return " ".join(done.output.split())


# -- show, load_evaluation and compare: what is named, and what is there ----------------------------------------------


@pytest.mark.slow
def test_show_takes_what_compare_takes(filled):
    uri, runs, _ = filled
    for reference in (
        runs["good"],
        f"runs:/{runs['good']}",
        "models:/party@champion",
        "models:/party/1",
    ):
        done = said(uri, "show", reference, "--json")
        assert done.exit_code == 0, done.output
        assert json.loads(done.stdout)["run_id"] == runs["good"]


def test_load_evaluation_takes_what_compare_takes(filled):
    uri, runs, client = filled
    plain = load_evaluation(runs["good"], client=client)
    with tracking_store(uri):
        assert load_evaluation("models:/party@champion") == plain
        assert load_evaluation(client.get_run(runs["good"]), rows=True).rows is not None
        with pytest.raises(ValueError, match="there is no model 'models:/party/7'"):
            load_evaluation("models:/party/7")


def test_an_evaluation_that_is_under_a_prefix_is_named(filled):
    uri, runs, client = filled
    named = "it has no evaluation; it has evaluations under the prefixes 'train/', 'val/'"
    with pytest.raises(ValueError, match=re.escape(named)):
        load_evaluation(runs["both"], client=client)
    done = said(uri, "show", runs["both"])
    assert done.exit_code == 1
    assert named in flat(done)
    assert f"“both”: {named}" in flat(said(uri, "compare", "--experiment", "runs"))
    under = "it has no evaluation under the prefix 'test'; it has one without a prefix"
    with pytest.raises(ValueError, match=under):
        load_evaluation(runs["good"], prefix="test", client=client)
    done = said(uri, "compare", "--experiment", "runs", "--prefix", "test/")
    assert done.exit_code == 1
    assert "there are evaluations under 'train/', 'val/'" in flat(done)


def test_a_prefix_is_known_without_its_slash(filled):
    uri, runs, client = filled
    assert load_evaluation(runs["both"], prefix="val", client=client) == load_evaluation(
        runs["both"], prefix="val/", client=client
    )
    done = said(uri, "show", runs["both"], "--prefix", "val", "--json")
    assert json.loads(done.stdout)["prefix"] == "val/"
    with tracking_store(uri):
        short, full = (compare([runs["both"]], prefix=prefix) for prefix in ("val", "val/"))
    assert short.summary() == full.summary()


@pytest.mark.parametrize(
    ("tags", "metrics", "asked", "prefix", "known"),
    [
        (
            {"cmtrack.val.status": "completed"},
            ["val/multiclass/accuracy"],
            "val",
            "val/",
            ("val/",),
        ),
        (
            {"cmtrack.val.status": "completed"},
            ["val_multiclass/accuracy"],
            "val",
            "val_",
            ("val_",),
        ),
        (
            {"cmtrack.a.b.status": "completed"},
            ["a.b/multiclass/accuracy"],
            "a.b/",
            "a.b/",
            ("a.b/",),
        ),
        ({"cmtrack.val.status": "completed"}, [], "val/", "val/", ("val",)),
        ({"cmtrack.val.status": "started"}, ["val/multiclass/accuracy"], "", "", ()),
        ({"cmtrack.status": "completed"}, ["multiclass/accuracy"], "val", "val", ("",)),
    ],
    ids=["slash", "underscore", "dots", "no-metrics", "started", "other"],
)
def test_the_prefixes_of_a_run_are_read_from_its_tags_and_metrics(
    tags, metrics, asked, prefix, known
):
    run = TrackedRun("r", "r", tags=tags, metrics=dict.fromkeys(metrics, 0.5))
    assert run.logged_prefix(asked) == prefix
    assert run.prefixes == known


# -- near names -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("class/ATM: Gebühr %/recall", "'class/ATM_u3a_ Gebühr _u25_/recall'"),
        ("multiclass/f1_marco", "'multiclass/f1_macro'"),
        ("accuracy", "'multiclass/accuracy'"),
        ("f1_macro", "'multiclass/f1_macro'"),
    ],
)
def test_a_metric_that_is_not_there_answers_with_near_ones(asked, meant):
    judged = evaluate(["ATM: Gebühr %", "b", "b"], ["b", "b", "b"])
    with pytest.raises(KeyError) as caught:
        judged.metrics[asked]
    assert str(asked) in caught.value.args[0]
    assert "; did you mean " in caught.value.args[0]
    assert meant in caught.value.args[0]


def test_what_is_not_there_is_called_by_its_name():
    judged = evaluate([0, 1], [0, 1])
    with pytest.raises(
        KeyError,
        match=r"there is no interval of 'multiclass/acuracy'; did you mean 'multiclass/accu",
    ):
        judged.intervals["multiclass/acuracy"]
    with pytest.raises(KeyError, match="there is no standard error of"):
        judged.standard_errors["x"]
    with pytest.raises(KeyError, match=r"^\"there is no metric 'qqqqqq'\"$"):
        judged.metrics["qqqqqq"]


def test_values_by_name_are_a_plain_dict_otherwise():
    metrics = evaluate([0, 1, 1], [0, 1, 0]).metrics
    plain = dict(metrics)
    assert metrics == plain
    assert "nope" not in metrics
    assert metrics.get("nope") is None
    assert json.loads(json.dumps(metrics, allow_nan=True)).keys() == plain.keys()
    for copied in (pickle.loads(pickle.dumps(metrics)), copy.deepcopy(metrics)):
        assert type(copied) is dict
        assert copied.keys() == plain.keys()
    assert type(metrics | {"a": 1.0}) is dict


def test_a_scorer_that_is_not_there_answers_with_near_ones():
    from cmtrack_integrations.sklearn import get_scorer

    with pytest.raises(ValueError, match=r"there is no metric named 'f1'; did you mean .*f1"):
        get_scorer("f1")
    with pytest.raises(ValueError, match=r"did you mean 'multiclass/matthews_corrcoef'"):
        get_scorer("multiclass/mathews_corrcoef")


# -- tie-breakers -----------------------------------------------------------------------------------------------------


def test_a_tie_breaker_that_no_run_has_is_an_error(filled):
    uri, runs, _ = filled
    for rule, words in (
        (
            "params.dept",
            "needs a run with the parameter 'dept', but no run has it; did you mean 'depth'?",
        ),
        (
            "params.nope",
            "needs a run with the parameter 'nope', but no run has it; the runs have ['depth']",
        ),
        ("metrics.seconds", "needs a run with the logged metric 'seconds', but no run has it"),
    ):
        done = said(uri, "compare", runs["good"], runs["fair"], "--tie-breaker", rule)
        assert done.exit_code == 2
        assert f"--tie-breaker: the tie-breaker {words}" in flat(done)
    assert (
        said(uri, "compare", runs["good"], runs["fair"], "--tie-breaker", "params.depth").exit_code
        == 0
    )


# -- gate -------------------------------------------------------------------------------------------------------------


def test_a_gate_that_passes_for_want_of_data_says_so(filled):
    uri, runs, _ = filled
    done = said(uri, "gate", runs["fair"], "--against", runs["good"])
    data = json.loads(said(uri, "gate", runs["fair"], "--against", runs["good"], "--json").stdout)
    (check,) = data["gates"]
    assert check["low"] < 0 <= check["high"]  # the case at hand
    assert done.exit_code == 0
    lowest = f"{-check['low']:.3f}"
    assert (
        "“Not significantly worse” does not mean “equally good”. With 240 rows, the metric "
        f"may be {lowest} less. " in flat(done)
    )
    assert (
        "--require 'multiclass/matthews_corrcoef.difference.low >= -0.01' requires a loss of at most"
        in flat(done)
    )


@pytest.mark.slow
@pytest.mark.parametrize("tested", ["good", "fair"])
@pytest.mark.parametrize(
    ("metric", "open_end", "way", "bound"),
    [
        ("multiclass/accuracy", "low", "less", "low >= -0.01"),
        ("probability/log_loss", "high", "more", "high <= 0.01"),
    ],
)
def test_only_what_is_open_is_said_to_be_open(filled, tested, metric, open_end, way, bound):
    uri, runs, _ = filled
    base = "fair" if tested == "good" else "good"
    words = ("gate", runs[tested], "--against", runs[base], "--rank-by", metric)
    (check,) = json.loads(said(uri, *words, "--json").stdout)["gates"]
    loss = check["high"] if open_end == "high" else -check["low"]
    text = flat(said(uri, *words))
    assert ("does not mean “equally good”" in text) == (check["passed"] and loss > 0)
    if "does not mean “equally good”" in text:
        assert (
            f"With 240 rows, the metric may be {number(loss, (check['low'], check['high']))} "
            f"{way}. " in text
        )
        assert f"--require '{metric}.difference.{bound}' requires a loss of at most" in text


# -- tables of the terminal -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ranked():
    names = ("neural network", "a rather long name of a run that goes on", "c")
    return compare(
        {name: evaluate(Y, y_prob=scores(seed, 2 - 0.4 * seed)) for seed, name in enumerate(names)}
    )


@pytest.mark.parametrize("width", [72, 80, 100, 160])
def test_the_difference_is_shown_at_every_width(ranked, width):
    text = terminal_of(ranked, width)
    assert max(map(len, text.splitlines())) <= width
    table = text[text.index("from the best other") :]
    assert "status" in table
    first, second = ranked.runs[:2]
    gap = f"{second.difference:.3f}".replace("-", "−")
    row = next(line for line in table.splitlines() if line.strip().startswith("2 "))
    assert gap in row  # with its interval, on the row's own line
    assert "[" in row.split(gap)[1]
    # single intervals go before the difference does
    top = next(line for line in table.splitlines() if line.strip().startswith("1 "))
    assert (f"[{first.interval[0]:.3f}" in top) == (width >= 100)


def test_the_worst_classes_of_many_are_shown_with_their_numbers(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    y = np.concatenate((np.repeat(np.arange(58), 12), [58, 59]))
    guess = np.where(rng.random(len(y)) < 0.02 + y / 100, rng.integers(0, 60, len(y)), y)
    pd.DataFrame({"y": y, "guess": guess}).to_parquet("rows.parquet")
    text = said(
        None, "evaluate", "rows.parquet", "--y-true", "y", "--y-pred", "guess", width=80
    ).output
    title = "Classes with the lowest F1: 10 of 60 (2 with fewer than 5 rows are not shown)"
    assert title in " ".join(text.split())
    rows = re.findall(r"^ *(\d+) +12 ", text, re.MULTILINE)
    assert len(rows) == 10
    judged = evaluate(y, guess)
    f1 = {k: judged.metrics[f"class/{k}/f1"] for k in range(58)}
    assert max(f1[int(k)] for k in rows) <= sorted(f1.values())[9]
    assert len(text.splitlines()) < 60


def test_a_class_of_one_sample_is_flagged(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"y": [0] * 9 + [1], "guess": [0] * 10}).to_csv("rows.csv", index=False)
    text = said(None, "evaluate", "rows.csv", "--y-true", "y", "--y-pred", "guess").output
    assert re.search(r"^ 1 +1 \(single\)", text, re.MULTILINE)


@pytest.mark.slow
def test_regrouping_is_not_said_to_be_progress(filled, tmp_path):
    uri, _, _ = filled
    (tmp_path / "g.json").write_text(
        json.dumps(Grouping({"a": [0, 1], "b": [2]}, name="ab").to_dict())
    )
    done = said(
        uri, "regroup", "--experiment", "runs", "--grouping", str(tmp_path / "g.json"), "--dry-run"
    )
    assert "before → after" not in done.output
    assert (
        "answer different questions about the same predictions. No run became better or worse"
        in flat(done)
    )


def test_the_class_table_holds_no_nan_and_no_line_breaks(store, undrawn):
    with mlflow.start_run() as run:
        log_evaluation(
            ["a", "a", "b", "c"], ["a", "b", "b", "b"], labels=["a", "b", "c", "d"], strict=True
        )
    table = json.loads(mlflow.artifacts.load_text(f"{run.info.artifact_uri}/cmtrack_classes.json"))
    label, result = (table["columns"].index(name) for name in ("label", "result"))
    shown = {row[label]: row[result] for row in table["data"]}
    assert not any("nan" in text or "\n" in text for text in shown.values())
    assert shown["c"].startswith("recall 0.000 [")
    assert " · precision undefined" in shown["c"]
    assert shown["d"] == "recall undefined · precision undefined · f1 undefined"
    assert re.search(r"f1 0\.\d{3}( \[0\.\d{3}, [01]\.\d{3}\])?$", shown["a"])


# -- the spool --------------------------------------------------------------------------------------------------------


def test_the_spool_says_of_each_kind_what_can_be_done(store, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setenv("CMTRACK_SPOOL", str(tmp_path / "evaluations"))
        with pytest.warns(EvaluationWarning):
            log_evaluation([0, 1], [0, 1])
        assert flat(said(None, "spool")).endswith("`cmtrack push` sends them.")
    with pytest.warns(EvaluationWarning):
        log_evaluation([0, 1], y_prob=[[0.2, 3.0], [0.1, 0.9]], run_id="r")
    text = flat(said(None, "spool"))
    assert "sends them" not in text
    assert (
        "It does not send the inputs of a failed evaluation: load inputs.npz with numpy.load"
        in text
    )
    (refused,) = json.loads(said(None, "push", "--json").stdout)["entries"]
    assert refused["status"] == "refused"
    assert "pass them to cmtrack.log_evaluation" in refused["reason"]
    with pytest.warns(EvaluationWarning):
        log_evaluation([0, 1], [0, 1])
    text = flat(said(None, "spool"))
    assert "`cmtrack push` sends the evaluations. It does not send the inputs" in text
    assert "name an experiment for it (--experiment NAME" in flat(said(None, "push"))


# -- candidates without a run -----------------------------------------------------------------------------------------


def test_candidates_without_a_run_are_not_fitted(store, monkeypatch):
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV

    from cmtrack_integrations.sklearn import log_candidates

    x = np.random.default_rng(0).normal(size=(N, 3)) + np.eye(3)[Y]
    search = GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=3).fit(x, Y)
    monkeypatch.setattr(LogisticRegression, "fit", lambda *_, **__: pytest.fail("it was fitted"))
    with pytest.warns(
        EvaluationWarning, match="no candidate was fitted or evaluated: no run is active"
    ) as caught:
        assert log_candidates(search, x, Y) == ()
    assert "log inside `with mlflow.start_run():`" in str(caught[0].message)
    with pytest.raises(ValueError, match="no run is active"):
        log_candidates(search, x, Y, strict=True)


# -- evaluate ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame(scores(0), columns=["p_0", "p_1", "p_2"]).assign(
        y=Y, person=np.arange(N) // 3, id=np.arange(N)
    )
    frame.to_parquet("rows.parquet")
    pd.DataFrame(scores(1), columns=["p_0", "p_1", "p_2"]).assign(y=Y).to_csv(
        "held.csv", index=False
    )
    return frame


def evaluated(*more: str) -> dict[str, Any]:
    done = said(
        None, "evaluate", "rows.parquet", "--y-true", "y", "--y-prob", "p_*", "--json", *more
    )
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


@pytest.mark.slow
def test_the_command_evaluates_with_groups_ids_and_calibration_as_python_does(files):
    party = Grouping({"a": [0, 1], "b": [2]}, name="party", positive="b")
    with open("party.json", "w") as file:
        json.dump(party.to_dict(), file)
    data = evaluated(
        "--groups",
        "person",
        "--row-ids",
        "id",
        "--calibration",
        "held.csv",
        "--grouping",
        "party.json",
    )
    expected = evaluate(
        Y,
        y_prob=scores(0),
        grouping=party,
        groups=np.arange(N) // 3,
        row_ids=np.arange(N),
        calibration=(Y, scores(1)),
    )
    for name in ("multiclass/accuracy", "binary/recall"):
        assert data["intervals"][name] == pytest.approx(expected.intervals[name])
    assert data["metrics"]["prevalence/calibrated"] == pytest.approx(
        expected.metrics["prevalence/calibrated"]
    )
    assert (
        data["intervals"]["multiclass/accuracy"] != evaluated()["intervals"]["multiclass/accuracy"]
    )


@pytest.mark.slow
def test_the_folder_of_the_command_holds_the_rows_that_the_setting_allows(
    files, monkeypatch, tmp_path
):
    rows = tmp_path / "out" / "cmtrack_predictions.parquet"
    # a folder gets all figures, three times here; what is drawn has tests of its own
    monkeypatch.setattr("cmtrack.report.figures.CLASSES", ())
    evaluated("--output", "out")
    assert "prob/0" in pd.read_parquet(rows).columns
    monkeypatch.setenv("CMTRACK_PREDICTIONS", "labels")
    evaluated("--output", "out")
    assert list(pd.read_parquet(rows).columns) == ["y_true", "y_pred"]
    monkeypatch.setenv("CMTRACK_PREDICTIONS", "off")
    done = evaluated("--output", "out")
    assert not rows.exists()
    assert not any("predictions" in path for path in done["output"])


@pytest.mark.slow
def test_the_command_logs_under_a_prefix(store, files):
    done = evaluated("--log", "--experiment", "e", "--prefix", "val/", "--row-ids", "id")
    run = store.get_run(done["run_id"])
    assert "val/multiclass/accuracy" in run.data.metrics
    assert "row_ids" in digests(run.data.tags, "val/")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--groups", "persn"), "has no column 'persn'; did you mean 'person'?"),
        (("--calibration", "held.csv", "--y-pred", "y", "--y-prob", "q_*"), "no column of"),
        (("--prefix", "val/"), "--prefix needs --log"),
        (("--predictions", "labels"), "--predictions needs --log"),
        (("--log", "--prefix", "../"), "prefix must start with"),
        (("--predictions", "some", "--log"), "'some' is not one of 'auto', 'labels', 'on', 'off'"),
        (("rows.parquet", "--groups", "person"), "--groups needs one file"),
    ],
    ids=["column", "calibration", "prefix", "predictions", "climbs", "choice", "table"],
)
def test_wrong_options_of_evaluate_are_answered(files, more, words):
    done = said(None, "evaluate", "rows.parquet", "--y-true", "y", "--y-prob", "p_*", *more)
    assert done.exit_code == 2
    assert words in flat(done)


# -- progress bars ----------------------------------------------------------------------------------------------------


def test_the_commands_show_no_progress_bars_of_mlflow(monkeypatch):
    from mlflow.environment_variables import MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR as BARS

    monkeypatch.delenv(BARS.name, raising=False)
    before = BARS.get()
    with quiet():
        assert BARS.get() is False
    assert BARS.get() == before
    monkeypatch.setenv(BARS.name, "true")
    with quiet():
        assert BARS.get() is False
    assert BARS.get() is True
