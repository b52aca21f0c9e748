"""Rows of logged runs: they are loaded with a comparison, and runs that did not keep them are named."""

from __future__ import annotations

import json

import mlflow
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from cmtrack import compare, evaluate, load_evaluation, log_evaluation
from cmtrack.cli import main
from support.problems import random_labels, random_probabilities

Y = random_labels(300, 3, 1)


@pytest.fixture
def runs(store, undrawn):
    """Three runs of the same rows; the last keeps none."""
    made = {}
    for seed, name in enumerate(("first", "second", "bare")):
        evaluation = evaluate(
            Y, y_prob=random_probabilities(Y, 3, 1.5, seed), row_ids=np.arange(300)
        )
        with mlflow.start_run(run_name=name) as run:
            log_evaluation(evaluation, strict=True, predictions=name != "bare")
        made[name] = run.info.run_id, evaluation
    return made


@pytest.mark.slow
def test_rows_are_those_of_the_evaluations_that_were_logged(runs):
    logged = compare([run_id for run_id, _ in runs.values()], rank_by="multiclass/accuracy")
    here = compare(
        {name: evaluation for name, (_, evaluation) in runs.items()}, rank_by="multiclass/accuracy"
    )
    assert (
        logged.rows("first", "second")["row"].tolist()
        == here.rows("first", "second")["row"].tolist()
    )
    assert (
        logged.flips(runs["first"][0], "second", by="class")
        .to_frame()
        .equals(here.flips("first", "second", by="class").to_frame())
    )
    assert logged.missed().runs in (("first", "second"), ("second", "first"))
    with pytest.raises(
        ValueError, match=r"the second evaluation has no rows.*compare it with “second”"
    ):
        logged.rows("first", "bare")
    loaded = load_evaluation(runs["first"][0], rows=True)
    table = {"id": np.arange(300), "text": [f"t{k}" for k in range(300)]}
    frame = loaded.rows_where(0, 1, table=table, row_ids="id")
    assert frame["text"].tolist() == [f"t{k}" for k in frame["row"]]
    with pytest.raises(ValueError, match="does not have its rows"):
        load_evaluation(runs["first"][0]).rows_where()


def printed(*arguments: str) -> dict:
    result = CliRunner().invoke(main, ["rows", *arguments, "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.mark.slow
def test_the_command_line(runs, tmp_path):
    one, two, bare = (run_id for run_id, _ in runs.values())
    comparison = compare(dict(list(runs.values())[:2]), rank_by="multiclass/accuracy")
    table = pd.DataFrame(
        {"id": np.arange(300), "text": [f"t{k} \x1b[31m" + "x" * 500 for k in range(300)]}
    )
    table.to_csv(tmp_path / "table.csv", index=False)
    wrong = printed(one, "--max-rows", "3")
    expected = runs["first"][1].rows_where(right=False)
    assert (wrong["kind"], wrong["total"]) == ("wrong", expected.attrs["total"])
    assert [row["row"] for row in wrong["rows"]] == expected["row"].tolist()[:3]
    cell = printed(
        one, "--cell", "0", "1", "--table", str(tmp_path / "table.csv"), "--row-ids", "id"
    )
    assert cell["total"] == runs["first"][1].confusion_matrix.counts[0, 1]
    assert all(row["text"].startswith(f"t{row['row']} ") for row in cell["rows"])
    for kind in ("broken", "fixed", "changed"):
        found = printed(one, two, f"--{kind}", "--max-rows", "1000")
        assert [row["row"] for row in found["rows"]] == comparison.rows(one, two, kind)[
            "row"
        ].tolist()
    assert printed(one, two)["kind"] == "broken"
    assert printed(one, two, "--missed", "2")["total"] == len(comparison.missed(2).to_frame())
    for arguments, words in (
        ((one, two, "--cell", "0", "1"), "--cell needs 1 run, got 2"),
        ((one, "--broken", "--fixed"), "choose one of --broken, --fixed"),
        ((one, "--cell", "0", "7"), "predicted must be one of"),
        ((one, two, "--missed", "5"), "--missed must be a number of runs from 1 to 2, got 5"),
        ((one, two, "--broken", "--step", "zz"), "step must be one of"),
        ((one, bare), "has no rows"),
        ((one, "--row-ids", "id"), "--row-ids needs --table"),
    ):
        result = CliRunner().invoke(main, ["rows", *arguments])
        assert (result.exit_code, words in " ".join(result.output.split())) == (2, True), (
            result.output
        )
    text = (
        CliRunner()
        .invoke(main, ["rows", one, "--table", str(tmp_path / "table.csv"), "--row-ids", "id"])
        .output
    )
    assert "\x1b[31m" not in text
    assert "x" * 300 not in text
    text = " ".join(
        CliRunner()
        .invoke(main, ["rows", one, two, "--fixed"], env={"COLUMNS": "80"})
        .output.split()
    )
    assert "rows of which only “second” predicts the correct class" in text
    # heads of two runs fold at words
    assert (text.count("p of"), "probabil…" in text) == (1, False)
    text = CliRunner().invoke(main, ["rows", one, "--cell", "0", "1", "--max-rows", "2"]).output
    first = printed(one, "--cell", "0", "1")["rows"][0]
    assert f" {first['row']} " in text
    assert ".000 " not in text  # classes are whole numbers
