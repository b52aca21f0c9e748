"""The commands that a review's page shows for other questions of its runs, as a reader copies them."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys

import mlflow
import numpy as np
import pytest

from cmtrack import Grouping, compare, log_evaluation
from cmtrack.report.review import Review, choices, html
from support.problems import random_models
from support.review_page import questions

LABELS = np.array(["ant", "bee's", 'c"at'])
GROUPING = Grouping(
    {"insects": LABELS[:2].tolist(), "others": LABELS[2:].tolist()}, positive="insects"
)
TOOL = f"{shlex.quote(sys.executable)} -c 'from cmtrack.cli import main; main()'"
RANKED_BY = {
    "Another metric": "multiclass/balanced_accuracy",
    "Another grouping": "binary/recall",
    "Costs": "cost/mean",
    "Another share of positives": "binary/precision",
    "Segments": "multiclass/accuracy",
}


@pytest.mark.night
@pytest.mark.slow
def test_the_commands_and_the_python_of_stored_runs_give_the_same_numbers(
    store, undrawn, tmp_path, capsys
):
    ids = []
    y, models = random_models((1.6, 1.7, 0.9), n=300, k=3)
    for k, scores in enumerate(models):
        with mlflow.start_run(run_name=f"run {k}") as run:
            log_evaluation(
                LABELS[y],
                y_prob=scores,
                labels=list(LABELS),
                grouping=GROUPING,
                segments={"side": y % 2},
            )
            ids.append(run.info.run_id)
    comparison = compare(ids)
    asked = {question["title"]: question for question in choices(Review(comparison))["questions"]}
    assert list(asked) == [*RANKED_BY, "Another threshold"]
    shown = questions(html(comparison, pictures={}, rows=False))
    assert shown == {title: question["command"] for title, question in asked.items()}
    for title, metric in RANKED_BY.items():
        command = shown[title]
        assert f"--tracking-uri {shlex.quote(mlflow.get_tracking_uri())}" in command
        text = command.replace("cmtrack review", f"{TOOL} review").replace(
            "answer.html", "review.json"
        )
        subprocess.run(["bash", "-euc", text], check=True, cwd=tmp_path, capture_output=True)
        found = json.loads((tmp_path / "review.json").read_text())
        space: dict = {}
        exec(asked[title]["python"].replace('comparison.report("answer.html")', ""), space)
        assert found["criterion"]["metrics"] == [metric]
        values = {run["name"]: run["value"] for run in found["rankings"][0]["runs"]}
        assert values == pytest.approx({run.name: run.value for run in space["comparison"].runs})
    assert found["segments"]
    capsys.readouterr()
    exec(asked["Another threshold"]["python"], {})
    lines = capsys.readouterr().out.splitlines()
    assert sorted(line.split(" Threshold(")[0] for line in lines) == ["run 0", "run 1", "run 2"]
    text = shown["Another threshold"].replace("cmtrack threshold", f"{TOOL} threshold")
    printed = subprocess.run(
        ["bash", "-euc", text], check=True, cwd=tmp_path, capture_output=True, text=True
    ).stdout
    assert "threshold" in printed
