"""``cmtrack history`` on a small registry: output, files and exit codes."""

from __future__ import annotations

import json
import re
import sqlite3

import mlflow
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from cmtrack import promote
from cmtrack.cli import main
from cmtrack.comparison import Problem, ProblemKind, canonical_json
from cmtrack.tracking import quiet, tracking_store
from support.faults import draw_no_review
from support.stores import sqlite_store

N_ROWS = 400
ACCURACY = {1: 0.7, 2: 0.88, 3: 0.88}
"""Accuracy of each version."""


def month(seed: int) -> pd.DataFrame:
    """Labelled rows with the stored predictions of all versions."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, N_ROWS)
    frame = pd.DataFrame({"id": np.arange(N_ROWS) + N_ROWS * seed, "y": y})
    difficulty = rng.uniform(size=N_ROWS)
    for version, accuracy in ACCURACY.items():
        is_correct = difficulty + rng.normal(scale=0.02, size=N_ROWS) < accuracy
        frame[f"v{version}"] = np.where(is_correct, y, 1 - y)
    return frame


class Anything(mlflow.pyfunc.PythonModel):
    """A model that is never called, because its predictions are stored."""

    def predict(self, context, model_input, params=None):
        raise NotImplementedError


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A registry with a promotion of version 2, a look at version 3, and a model without records."""
    folder = tmp_path_factory.mktemp("history")
    database = sqlite_store(folder / "mlflow.db")
    with pytest.MonkeyPatch.context() as patch, quiet(), tracking_store(database) as uri:
        draw_no_review(patch)
        mlflow.create_experiment("training", artifact_location=(folder / "artifacts").as_uri())
        mlflow.set_experiment("training")
        with mlflow.start_run():
            info = mlflow.pyfunc.log_model(
                name="model", python_model=Anything(), pip_requirements=[]
            )
        client = mlflow.MlflowClient()
        for name in ("party", "new"):
            client.create_registered_model(name)
            for _ in ACCURACY:
                client.create_model_version(name, info.model_uri, model_id=info.model_id)
        client.set_registered_model_alias("new", "champion", "3")
        promote("models:/party/1", force="first champion", client=client)
        for number, version in enumerate([2, 3], 1):
            promote(
                f"models:/party/{version}",
                data=month(number),
                name=f"month {number}",
                y_true="y",
                y_pred="v{version}",
                row_ids="id",
                rank_by="multiclass/accuracy",
                move=True,
                client=client,
            )
    return {"uri": uri, "database": folder / "mlflow.db"}


@pytest.fixture
def run(store):
    def invoke(*args: str):
        return CliRunner().invoke(
            main, ["history", *args, "--tracking-uri", store["uri"]], env={"COLUMNS": "140"}
        )

    return invoke


@pytest.fixture
def with_record(store):
    """Change the record of a promotion, and restore it."""
    query = "SELECT run_uuid, value FROM tags WHERE key = 'cmtrack.record'"
    with sqlite3.connect(store["database"]) as database:
        before = database.execute(query).fetchall()

    def change(number: int, text) -> str:
        by_date = sorted(before, key=lambda row: json.loads(row[1])["made"])
        run_id, record = by_date[number]
        with sqlite3.connect(store["database"]) as database:
            database.execute(
                "UPDATE tags SET value = ? WHERE run_uuid = ? AND key = 'cmtrack.record'",
                (text(record), run_id),
            )
        return run_id

    yield change
    with sqlite3.connect(store["database"]) as database:
        for run_id, record in before:
            database.execute(
                "UPDATE tags SET value = ? WHERE run_uuid = ? AND key = 'cmtrack.record'",
                (record, run_id),
            )


def test_the_gain_and_the_champions_are_printed(run):
    result = run("models:/party")
    assert result.exit_code == 0, result.output
    text = " ".join(result.output.split())
    assert text.startswith("Version 2 of party is champion. Accuracy is ")
    assert "than with version 1, the first champion, on 400 rows evaluated since." in text
    assert "since, on" in result.output
    assert "Not promoted: 3 (cannot tell, month 2)." in result.output
    assert "Two challengers were compared, each with a chance of at most 5.4%" in result.output
    assert "verified" not in result.output


def test_every_record_is_verified(run):
    result = run("party", "--verify")
    assert result.exit_code == 0, result.output
    assert "3 of 3 records verified." in result.output


def test_records_without_rows_end_with_3(run, monkeypatch):
    problem = Problem(ProblemKind.NOT_RECOMPUTED, "Statistics only.")
    # A store without rows needs promotions of its own.
    monkeypatch.setattr("cmtrack.tracking.history.verify_promotion", lambda *_: problem)
    result = run("party", "--verify")
    assert result.exit_code == 3, result.output
    assert "0 of 3 records verified." in result.output
    assert "Not recomputed: 3 records." in result.output


def test_a_narrow_terminal_keeps_dates_and_intervals_whole(store):
    args = ["history", "party", "--tracking-uri", store["uri"]]
    result = CliRunner().invoke(main, args, env={"COLUMNS": "80"})
    rows = [line for line in result.output.splitlines() if "promote" in line]
    assert re.match(r" ?\d{4}-\d\d-\d\d +2 +promote", rows[0]), result.output
    assert len(re.findall(r"\[\S+, \S+\]", rows[0])) == 2


def test_json_csv_and_the_page_agree(run, tmp_path):
    page = tmp_path / "new folder" / "history.html"
    csv = tmp_path / "champions.csv"
    result = run("party", "--json", "--output", str(page), "--csv", str(csv))
    assert result.exit_code == 0, result.output
    data = json.loads(result.output)
    frame = pd.read_csv(csv)
    assert [row["version"] for row in data["promotions"]] == frame["version"].astype(str).tolist()
    since = [row["difference_since"] for row in data["promotions"]]
    assert since[1] == pytest.approx(frame["difference_since"][1])
    assert data["verified"] is None
    html = page.read_text(encoding="utf-8")
    assert data["head"] in html
    assert "<script" not in html


def test_another_version_can_be_the_anchor(run):
    assert "than with version 1, the first champion" in run("party", "--over", "1").output
    result = run("party", "--over", "newest")
    assert result.exit_code == 2
    assert "over must be 'first', 'previous' or a version, got 'newest'" in result.output


def test_a_model_without_records(run):
    result = run("models:/new", "--verify")
    assert result.exit_code == 0, result.output
    assert result.output.splitlines()[0] == "No promotions are recorded. champion is version 3."


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (("models:/prty",), "did you mean 'party'?"),
        (("party", "--metric", "no such metric"), "no such metric"),
        (("new", "--metric", "nonsense"), "no version has 'nonsense'"),
        (("party", "--over", "99"), "party has no version 99, the newest is 3"),
    ],
)
def test_wrong_input_ends_with_2(run, args, expected):
    result = run(*args)
    assert result.exit_code == 2, result.output
    assert expected in result.output


def test_a_server_that_does_not_answer_ends_with_2():
    args = ["history", "party", "--tracking-uri", "http://127.0.0.1:9"]
    result = CliRunner().invoke(main, args)
    assert result.exit_code == 2
    assert "does not answer" in result.output


def test_a_damaged_record_is_named(run, with_record):
    run_id = with_record(1, lambda record: record[:100])
    result = run("party")
    assert result.exit_code == 0, result.output
    assert f"The record of run {run_id} cannot be read" in result.output
    assert run("party", "--verify").exit_code == 1


def test_a_record_of_a_newer_version_is_named(run, with_record):
    def newer(record: str) -> str:
        return canonical_json(json.loads(record) | {"schema": 3}).decode()

    run_id = with_record(2, newer)
    result = run("party")
    assert result.exit_code == 0, result.output
    assert run_id in result.output
    assert "upgrade cmtrack" in " ".join(result.output.split())


def test_a_changed_number_ends_with_1_if_it_is_verified(run, with_record):
    with_record(2, lambda record: record.replace('"n":400', '"n":401'))
    assert run("party").exit_code == 0
    result = run("party", "--verify")
    assert result.exit_code == 1
    assert "was changed" in " ".join(result.output.split())
