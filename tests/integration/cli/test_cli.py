"""The command line: what it prints, where, and with which exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result

import cmtrack
from cmtrack.cli import main
from support.problems import random_problem, random_scores
from support.scripts import environment_without
from support.stores import sqlite_store


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Predictions of four integer classes and of two text classes, as CSV and Parquet."""
    folder = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(0)
    y, best, p = random_problem(rng, n=200)
    many = pd.DataFrame(p, columns=[f"p_{i}" for i in range(4)])
    many["truth"], many["guess"], many["w"] = y, best, rng.random(200)
    many.to_csv(folder / "many.csv", index=False)
    many.to_parquet(folder / "many.parquet")
    names = np.array(["ham", "[red]spam[/red]"])
    score = random_scores(y > 1, 1.5, rng)
    two = pd.DataFrame({"truth": names[(y > 1).astype(int)], "score": score})
    two["prob [red]spam[/red]"] = score
    two.to_csv(folder / "two.csv", index=False)
    (folder / "groups.yaml").write_text(
        "steps:\n"
        "- {name: level, groups: {low: [0, 1], mid: [2], high: [3]}}\n"
        "- {name: side, groups: {low: [low], above: [mid, high]}, mode: strict, positive: above}\n"
    )
    (folder / "costs.yaml").write_text(
        "costs:\n- [low, above, 5]\n- [above, low, 2]\nmismatch: {above: 0.5}\n"
    )
    (folder / "two_costs.yaml").write_text("costs:\n- [0, 1, 5]\n")
    (folder / "bad.yaml").write_text("groups: {low: [0, 1], high: [1, 2, 3]}\n")
    (folder / "broken.parquet").write_bytes(b"no parquet")
    (folder / "empty.csv").write_text("")
    (folder / "notes.txt").write_text("truth\n1\n")
    (folder / "gap.csv").write_text("truth,guess\n0,0\n,1\n1,1\n")
    return folder


@pytest.fixture
def run(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run a command in an empty folder; names of the files above stand for their paths."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    known = {path.name: str(path) for path in folder.iterdir()}

    def invoke(*arguments: str, width: int = 100) -> Result:
        monkeypatch.setenv("COLUMNS", str(width))
        return CliRunner().invoke(main, [known.get(a, a) for a in arguments])

    return invoke


MANY = ("--y-true", "truth", "--y-prob", "p_*")


def ok(result: Result) -> Result:
    assert result.exit_code == 0, result.output
    assert result.exception is None
    return result


def refused(result: Result, code: int = 2) -> str:
    """The one sentence of a refusal."""
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    lines = [line for line in result.stderr.splitlines() if line.startswith("Error: ")]
    assert len(lines) == 1, result.stderr
    return lines[0]


# -- evaluate --------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", ["many.csv", "many.parquet"])
def test_json_holds_what_evaluate_gives(run: Any, folder: Path, name: str) -> None:
    result = ok(
        run("evaluate", name, *MANY, "--grouping", "groups.yaml", "--weight", "w", "--json")
    )
    data = json.loads(result.stdout)
    assert result.stdout.count("\n") == 1
    frame = pd.read_csv(folder / "many.csv")
    direct = cmtrack.evaluate(
        frame["truth"],
        y_prob=frame[[f"p_{i}" for i in range(4)]].to_numpy(),
        grouping=cmtrack.Grouping.from_file(folder / "groups.yaml"),
        sample_weight=frame["w"],
    )
    finite = {n: v for n, v in data["metrics"].items() if v is not None}
    assert finite == pytest.approx({n: direct.metrics[n] for n in finite})
    assert {n for n, v in data["metrics"].items() if v is None} == set(direct.undefined)
    assert data["labels"] == [0, 1, 2, 3]
    assert data["positive"] == "above"
    assert data["reduced"]["side"]["mismatches"] == pytest.approx(
        direct.reduced["side"].mismatches.tolist()
    )
    assert data["labels_digest"] == direct.labels_digest


@pytest.mark.parametrize("width", [80, 140])
def test_the_summary_fits_the_terminal(run: Any, width: int) -> None:
    out = ok(run("evaluate", "many.csv", *MANY, "--grouping", "groups.yaml", width=width)).stdout
    assert max(map(len, out.splitlines())) <= width
    for part in (
        "On 200 rows",
        "multiclass/matthews_corrcoef",
        "95% interval",
        "Grouped: side",
        "IM",
    ):
        assert part in out
    assert "…" not in out


def test_labels_are_no_markup(run: Any) -> None:
    out = ok(
        run("evaluate", "two.csv", "--y-true", "truth", "--y-prob", "score", "--positive", "ham")
    ).stdout
    assert "[red]spam[/red]" in out
    assert "positive: ham" in out


def test_one_column_is_the_positive_class(run: Any, folder: Path) -> None:
    frame = pd.read_csv(folder / "two.csv")
    direct = cmtrack.evaluate(frame["truth"], y_prob=frame["score"], positive="[red]spam[/red]")
    for pattern, positive in (("score", ("--positive", "[red]spam[/red]")), ("prob *", ())):
        options = ("--y-true", "truth", "--y-prob", pattern, *positive)
        data = json.loads(ok(run("evaluate", "two.csv", *options, "--json")).stdout)
        assert data["positive"] == "[red]spam[/red]"
        assert data["metrics"]["binary/roc_auc"] == pytest.approx(direct.metrics["binary/roc_auc"])


def test_labels_alone_and_classes_that_no_row_has(run: Any) -> None:
    options = (
        "--y-true",
        "truth",
        "--y-pred",
        "guess",
        "--labels",
        "3,2,1,0,4",
        "--confidence-level",
        "0.9",
    )
    data = json.loads(ok(run("evaluate", "many.parquet", *options, "--json")).stdout)
    assert data["labels"] == [3, 2, 1, 0, 4]
    assert data["confidence_level"] == 0.9
    assert "binary/roc_auc" not in data["metrics"]


def test_the_positive_group_is_chosen_by_name(run: Any) -> None:
    options = (*MANY, "--grouping", "groups.yaml", "--positive", "low", "--json")
    assert json.loads(ok(run("evaluate", "many.csv", *options)).stdout)["positive"] == "low"


def test_output_writes_numbers_figures_and_report(run: Any, tmp_path: Path) -> None:
    result = ok(
        run(
            "evaluate",
            "many.csv",
            *MANY,
            "--grouping",
            "groups.yaml",
            "--output",
            "out/deep",
            "--json",
        )
    )
    written = json.loads(result.stdout)["output"]
    folder = tmp_path / "out" / "deep"
    assert sorted(Path(path).name for path in written) == sorted(
        path.name for path in folder.iterdir()
    )
    assert {
        "cmtrack_confusion_matrix.png",
        "cmtrack_reduced_side.png",
        "cmtrack_report.html",
    } <= set(map(os.path.basename, written))
    assert cmtrack.Evaluation.load(folder).n_samples == 200
    assert "many.csv" in (folder / "cmtrack_report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            ("many.csv", "--y-true", "thruth", "--y-pred", "guess"),
            "has no column 'thruth'; did you mean 'truth'?",
        ),
        (("many.csv", "--y-true", "zzzzzz", "--y-pred", "guess"), "its columns are 'p_0', 'p_1'"),
        (
            ("many.csv", "--y-true", "truth", "--y-prob", "q_*"),
            "no column of many.csv matches 'q_*'",
        ),
        (("many.csv", "--y-true", "truth", "--y-prob", "*_*"), "takes one *"),
        (("many.csv", "--y-true", "truth", "--y-prob", "*u*"), "takes one *"),
        (
            ("many.csv", "--y-true", "truth", "--y-prob", "g*"),
            "'uess' is not a label in 'truth', which contains integers",
        ),
        (
            ("many.csv", "--y-true", "truth", "--y-prob", "p_1"),
            "one column is enough only for two classes",
        ),
        (("many.csv", *MANY, "--labels", "0,1,2"), "labels that are not in [0, 1, 2]"),
        (("many.csv", *MANY, "--positive", "1"), "positive=1 needs two classes"),
        (("many.csv", *MANY, "--positive", "x"), "'x' is not a label in 'truth'"),
        (
            ("many.csv", *MANY, "--grouping", "groups.yaml", "--positive", "x"),
            "positive must be one of",
        ),
        (
            ("many.csv", *MANY, "--grouping", "bad.yaml"),
            "bad.yaml: a class must be in exactly one group",
        ),
        (("many.csv", *MANY, "--grouping", "missing.yaml"), "does not exist"),
        (("many.csv", *MANY, "--confidence-level", "1"), "confidence-level"),
        (("many.csv", "--y-true", "truth"), "give --y-pred or --y-prob"),
        (("many.csv", *MANY, "--run-id", "x"), "--run-id needs --log"),
        (("many.csv", *MANY, "--log", "--run-id", "x", "--run-name", "y"), "leave out"),
        (("two.csv", "--y-true", "truth", "--y-prob", "truth"), "must contain numbers"),
        (("broken.parquet", *MANY), "broken.parquet could not be read as Parquet"),
        (("empty.csv", *MANY), "empty.csv could not be read as CSV"),
        (("notes.txt", *MANY), "must end in .parquet"),
        (("missing.csv", *MANY), "does not exist"),
        (("gap.csv", "--y-true", "truth", "--y-pred", "guess"), "are read as missing"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(
    run: Any, arguments: Sequence[str], says: str
) -> None:
    assert says in refused(run("evaluate", *arguments, "--json"))


def test_costs_come_from_a_file(run: Any) -> None:
    done = json.loads(
        ok(
            run(
                "evaluate",
                "many.csv",
                *MANY,
                "--grouping",
                "groups.yaml",
                "--costs",
                "costs.yaml",
                "--json",
            )
        ).stdout
    )
    counts = np.array(done["confusion_matrix"])
    cost = 5 * counts[:2, 2:].sum() + 2 * counts[2:, :2].sum() + 0.5 * (counts[2, 3] + counts[3, 2])
    assert done["metrics"]["cost/mean"] == pytest.approx(cost / 200)
    assert "the file of costs cannot be read" in refused(
        run("evaluate", "many.csv", *MANY, "--costs", "nowhere.yaml"), 2
    )


# -- threshold -------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_threshold_of_a_folder(run: Any, folder: Path, tmp_path: Path) -> None:
    frame = pd.read_csv(folder / "many.csv")
    direct = cmtrack.evaluate(
        frame["truth"],
        y_prob=frame[[f"p_{i}" for i in range(4)]].to_numpy(),
        grouping=cmtrack.Grouping.from_file(folder / "groups.yaml"),
    )
    direct.save(tmp_path / "kept")
    costs = cmtrack.Costs.from_file(folder / "costs.yaml")
    data = json.loads(ok(run("threshold", "kept", "--costs", "costs.yaml", "--json")).stdout)
    found = direct.threshold(costs)
    assert data["folder"] == "kept"
    assert data["threshold"] == found.value
    assert data["metrics"]["cost/mean"] == pytest.approx(found.objective.to_dict())
    printed = ok(run("threshold", "kept", "--costs", "costs.yaml", width=300)).stdout
    assert found.sentence() in printed
    assert "“above” predicted “above”, but another class" in printed
    bounded = ("--maximize", "binary/recall", "--subject-to", "binary/precision >= 0.5")
    data = json.loads(ok(run("threshold", "kept", *bounded, "--json")).stdout)
    assert data["subject_to"] == "binary/precision >= 0.5"
    assert set(data["metrics"]) == {"binary/recall", "binary/precision"}
    judged = json.loads(
        ok(run("threshold", "kept", *bounded, "--choose-on", "kept", "--json")).stdout
    )
    assert judged["judged_by"] == "evaluated rows"
    assert judged["threshold"] == data["threshold"]


def test_predictions_are_made_by_a_threshold(run: Any, folder: Path) -> None:
    frame = pd.read_csv(folder / "two.csv")
    two = (
        "evaluate",
        "two.csv",
        "--y-true",
        "truth",
        "--y-prob",
        "score",
        "--positive",
        "[red]spam[/red]",
    )
    for threshold in ("0.6", "0", "inf"):
        found = json.loads(ok(run(*two, "--threshold", threshold, "--json")).stdout)
        called = frame["score"] >= float(threshold)
        spam = frame["truth"] != "ham"
        counts = [
            [(~spam & called).sum(), (~spam & ~called).sum()],
            [(spam & called).sum(), (spam & ~called).sum()],
        ]
        order = [found["labels"].index(label) for label in ("[red]spam[/red]", "ham")]
        wanted = np.array(found["confusion_matrix"])[np.ix_(order[::-1], order)]
        assert wanted.tolist() == counts
    assert "threshold must be between 0 and 1" in refused(run(*two, "--threshold", "7"))


def test_threshold_refuses_with_one_sentence(run: Any, tmp_path: Path) -> None:
    cmtrack.evaluate([0, 1, 1, 0], y_prob=[0.1, 0.7, 0.2, 0.4]).save(tmp_path / "kept")
    assert "needs costs, or a metric to maximize" in refused(run("threshold", "kept"))
    bound = ("--maximize", "binary/recall", "--subject-to", "binary/f1 >= 0.9")
    assert "binary/f1 is at most 0.8" in refused(run("threshold", "kept", *bound))
    limit = ("--maximize", "binary/recall", "--subject-to", "binary/precision.low >= 0.9")
    assert "set a bound on the metric itself" in refused(run("threshold", "kept", *limit))
    clustered = cmtrack.evaluate([0, 1, 1, 0], y_prob=[0.1, 0.7, 0.2, 0.4], groups=[0, 0, 1, 1])
    clustered.save(tmp_path / "clustered")
    assert "choose it on one row of each cluster" in refused(
        run("threshold", "clustered", "--maximize", "binary/f1")
    )
    assert "did you mean 'binary/recall'" in refused(
        run("threshold", "kept", "--maximize", "binary/recal")
    )
    assert "the classes are [0, 1]" in refused(run("threshold", "kept", "--costs", "costs.yaml"))
    assert "there is no evaluation at" in refused(
        run("threshold", ".", "--maximize", "binary/f1"), 1
    )
    priced = json.loads(ok(run("price", "kept", "--costs", "two_costs.yaml", "--json")).stdout)
    assert priced["folder"] == "kept"
    assert json.loads(ok(run("show", "kept", "--json")).stdout)["labels"] == [0, 1]


# -- the store -------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_log_then_show(run: Any, tmp_path: Path) -> None:
    from mlflow import MlflowClient

    uri = sqlite_store(tmp_path / "mlflow.db")
    store = ("--tracking-uri", uri)
    options = (
        *MANY,
        "--grouping",
        "groups.yaml",
        "--log",
        "--experiment",
        "tests",
        "--run-name",
        "one",
    )
    logged = json.loads(ok(run("evaluate", "many.csv", *options, *store, "--json")).stdout)
    client = MlflowClient(uri)
    found = client.get_run(logged["run_id"])
    assert found.info.status == "FINISHED"
    assert found.info.run_name == "one"
    assert client.get_experiment(found.info.experiment_id).name == "tests"
    assert found.data.tags["cmtrack.status"] == "completed"
    assert found.data.metrics["multiclass/accuracy"] == pytest.approx(
        logged["metrics"]["multiclass/accuracy"]
    )

    shown = json.loads(ok(run("show", logged["run_id"], *store, "--json")).stdout)
    assert shown["metrics"] == pytest.approx(logged["metrics"], nan_ok=True)
    assert "On 200 rows" in ok(run("show", logged["run_id"], *store)).stdout

    priced = json.loads(
        ok(run("price", logged["run_id"], "--costs", "costs.yaml", *store, "--json")).stdout
    )
    counts = np.array(logged["confusion_matrix"])
    cost = 5 * counts[:2, 2:].sum() + 2 * counts[2:, :2].sum() + 0.5 * (counts[2, 3] + counts[3, 2])
    assert priced["metrics"]["cost/mean"] == pytest.approx(cost / 200)
    assert [row["label"] for row in priced["classes"]] == [0, 1, 2, 3]
    assert sum(row["part"] for row in priced["classes"]) == pytest.approx(cost / 200)
    printed = ok(run("price", logged["run_id"], "--costs", "costs.yaml", *store)).stdout
    assert "A decision costs" in printed
    assert "Costs by actual class" in printed
    assert "costs must have 'costs' or 'matrix'" in refused(
        run("price", logged["run_id"], "--costs", "bad.yaml", *store), 2
    )
    assert not any(
        name.startswith("cost/") for name in client.get_run(logged["run_id"]).data.metrics
    )

    client.set_terminated(logged["run_id"], "KILLED")  # an existing run keeps its state
    ok(run("evaluate", "many.csv", *MANY, "--log", "--run-id", logged["run_id"], *store, "--json"))
    assert client.get_run(logged["run_id"]).info.status == "KILLED"

    assert "there is no run 'nowhere'" in refused(run("show", "nowhere", *store), 1)
    name = client.get_run(logged["run_id"]).info.run_name
    # a name stands for its run
    assert logged["run_id"] in ok(run("show", name, *store, "--json")).stdout
    empty = client.create_run(found.info.experiment_id).info.run_id
    assert f"run {empty} has no cmtrack_evaluation.json" in refused(run("show", empty, *store), 1)
    assert "has no val_cmtrack_evaluation.json" in refused(
        run("show", logged["run_id"], "--prefix", "val/", *store), 1
    )
    said = refused(run("evaluate", "many.csv", *MANY, "--log", "--run-id", "nowhere", *store), 1)
    assert "the evaluation is kept in" in said
    assert "MLFLOW_TRACKING_URI" not in os.environ


def test_a_silent_server_is_one_sentence_and_exit_code_1(run: Any) -> None:
    store = ("--tracking-uri", "http://127.0.0.1:9")
    assert "does not answer" in refused(run("show", "x", *store), 1)
    assert "does not answer" in refused(run("evaluate", "many.csv", *MANY, "--log", *store), 1)


# -- the process -----------------------------------------------------------------------------------------------


def _process(code: str, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=environment_without(),
        check=False,
    )


@pytest.mark.slow
def test_a_real_process_keeps_stdout_for_json(folder: Path, tmp_path: Path) -> None:
    code = "from cmtrack.cli import main; main()"
    file = str(folder / "many.csv")
    done = _process(
        code, "evaluate", file, *MANY, "--log", "--run-name", "fresh store", "--json", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["tracking_uri"].startswith("sqlite:///")
    assert "INFO" not in done.stderr
    wrong = _process(code, "evaluate", file, "--y-true", "nope", "--y-pred", "guess", cwd=tmp_path)
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "Traceback" not in wrong.stderr


@pytest.mark.slow
def test_help_loads_nothing_heavy(tmp_path: Path) -> None:
    code = (
        "import sys, contextlib, io\n"
        "from cmtrack.cli import main\n"
        "with contextlib.redirect_stdout(io.StringIO()) as out:\n"
        "    main(sys.argv[1:], standalone_mode=False)\n"
        "heavy = {'mlflow', 'pandas', 'sklearn', 'matplotlib', 'numpy', 'scipy', 'rich'} & set(sys.modules)\n"
        "print(sorted(heavy), len(out.getvalue()) > 100)\n"
    )
    for arguments in (["--help"], ["evaluate", "--help"], ["demo", "--help"]):
        assert _process(code, *arguments, cwd=tmp_path).stdout == "[] True\n"


def test_the_version() -> None:
    result = CliRunner().invoke(main, ["--version"])
    assert result.exit_code == 0
    assert result.stdout.startswith("cmtrack ")
    assert CliRunner().invoke(main, ["fly"]).exit_code == 2


def test_what_nobody_foresaw_is_no_stack_trace(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("first line\nsecond line")

    monkeypatch.setattr("json.dumps", fail)
    assert (
        refused(run("evaluate", "many.csv", *MANY, "--json"), 1)
        == "Error: ZeroDivisionError: first line"
    )


# -- several files -----------------------------------------------------------------------------------------------------


def assert_same_metrics(found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert found["metrics"].keys() == expected["metrics"].keys()
    for name, value in expected["metrics"].items():
        assert found["metrics"][name] == (
            None if value is None else pytest.approx(value, rel=1e-9)
        ), name


@pytest.mark.slow
@pytest.mark.parametrize("form", ["several", "glob", "folder"])
def test_several_files_are_one_table(run: Any, folder: Path, tmp_path: Path, form: str) -> None:
    many = pd.read_parquet(folder / "many.parquet")
    (parts := tmp_path / "parts").mkdir()
    for number, rows in enumerate((many[:80], many[80:])):
        rows.to_parquet(parts / f"{number}.parquet")
    files = {
        "several": [str(path) for path in parts.iterdir()],
        "glob": ["parts/*.parquet"],
        "folder": ["parts"],
    }[form]
    options = (
        "--grouping",
        "groups.yaml",
        "--weight",
        "w",
        "--labels",
        "0,1,2,3",
        "--positive",
        "low",
        "--json",
    )
    found = json.loads(ok(run("evaluate", *files, *MANY, *options)).stdout)
    expected = json.loads(ok(run("evaluate", "many.parquet", *MANY, *options)).stdout)
    assert found["file"] == (files if len(files) > 1 else files[0])
    assert_same_metrics(found, expected)
    assert "has no column 'thruth'; did you mean" in refused(
        run("evaluate", *files, "--y-true", "thruth", *MANY[2:])
    )
    assert "is not a label in 'truth', which contains integers" in refused(
        run("evaluate", *files, *MANY, "--labels", "a,b")
    )
    assert "y_prob takes one *" in refused(run("evaluate", *files, *MANY[:2], "--y-prob", "*_*"))


def test_a_column_of_lists(run: Any, folder: Path, tmp_path: Path) -> None:
    many = pd.read_parquet(folder / "many.parquet")
    many[["truth"]].assign(p=list(many.filter(like="p_").to_numpy())).to_parquet(
        tmp_path / "lists.parquet"
    )
    found = json.loads(
        ok(run("evaluate", "lists.parquet", "--y-true", "truth", "--y-prob", "p", "--json")).stdout
    )
    expected = json.loads(ok(run("evaluate", "many.parquet", *MANY, "--json")).stdout)
    assert_same_metrics(found, expected)
