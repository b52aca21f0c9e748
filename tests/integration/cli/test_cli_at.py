"""``cmtrack at`` and ``cmtrack plan`` on folders: the numbers of the library, and bad input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from cmtrack import Evaluation, compare, evaluate
from cmtrack.cli import main


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("at")
    rng = np.random.default_rng(0)
    y = np.where(rng.random(1200) < 0.3, "spam", "ham")
    for name, gap in (("run", 2.0), ("other", 1.6)):
        score = 1 / (1 + np.exp(-rng.normal(gap * (y == "spam") - 1)))
        evaluate(y, y_prob=score, positive="spam").save(where / name)
    return where


def invoke(folder: Path, *arguments: str) -> Any:
    return CliRunner().invoke(
        main, [str(folder / one) if one in ("run", "other") else one for one in arguments]
    )


@pytest.mark.parametrize("given", [["0.02"], ["spam=0.02"], ["spam=0.02", "ham=0.98"]], ids=str)
def test_stated_shares(folder: Path, given: list[str]) -> None:
    options = [word for share in given for word in ("--at", share)]
    found = json.loads(invoke(folder, "at", "run", *options, "--json").stdout)
    there = Evaluation.load(folder / "run").at(0.02)
    by_name = {row["metric"]: row for row in found["metrics"]}
    assert by_name["binary/precision"]["there"] == pytest.approx(there.metrics["binary/precision"])
    assert by_name["binary/precision"]["low"] == pytest.approx(
        there.intervals["binary/precision"][0]
    )
    assert (found["shares"]["spam"], found["fit_pvalue"]) == (pytest.approx(0.02), None)
    printed = invoke(folder, "at", "run", *options)
    assert printed.exit_code == 0
    assert "precision" in printed.stdout
    assert "Warning: Assumes that within each class" in printed.stdout


@pytest.mark.slow
def test_a_plan_of_two_runs_and_of_one(folder: Path) -> None:
    both = {name: Evaluation.load(folder / name) for name in ("run", "other")}
    resolution = compare(both, rank_by="multiclass/accuracy").resolution
    found = json.loads(
        invoke(folder, "plan", "run", "other", "--difference", "0.01", "--json").stdout
    )
    assert found["rows_needed"] == [np.ceil(resolution.rows_for(0.01))] * 2
    assert found["smallest_difference"] == pytest.approx(resolution.smallest_difference)
    printed = invoke(folder, "plan", "run", "other", "--difference", "0.01").stdout
    assert "more than you have" in " ".join(printed.split())
    assert max(map(len, printed.splitlines())) <= 80
    error = both["run"].standard_errors["multiclass/accuracy"]
    low, high = json.loads(invoke(folder, "plan", "run", "--difference", "0.01", "--json").stdout)[
        "rows_needed"
    ]
    assert high == np.ceil(1200 * 2 * (2.8015852181 * error / 0.01) ** 2)
    assert low == np.ceil(1200 * 0.2 * (2.8015852181 * error / 0.01) ** 2)
    printed = invoke(folder, "plan", "run", "--difference", "0.01").stdout
    assert "if the other model makes the same errors" in " ".join(printed.split())


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["at", "run"], "give the shares with --at"),
        (
            ["at", "run", "--at", "much"],
            "--at must be a share or NAME=SHARE, got 'much'",
        ),
        (
            ["at", "run", "--at", "eggs=0.1"],
            "the classes ['ham', 'spam'] or the groups of one step, got 'eggs'",
        ),
        (
            ["at", "run", "--at", "0.1", "--at", "0.2"],
            "--at needs a name for each of several shares",
        ),
        (
            ["at", "run", *["--at", "spam=0.1"] * 2],
            "--at must name a class or group once, got 'spam' twice",
        ),
        (
            ["compare", "run", "--at", "much"],
            "'--at': at must be a share or NAME=SHARE, got 'much'",
        ),
        (
            ["review", "run", "--at", "0.1", "--at", "spam=0.2"],
            "'--at': at needs a name for each of several shares",
        ),
        (["compare", "run", "--at", "1.5"], "'--at': at must be a share between 0 and 1"),
        (["at", "run", "--at", "1.5"], "shares must be between 0 and 1"),
        (["plan", "run", "--difference", "0"], "difference must be a finite number above 0"),
        (
            ["plan", "run", "--difference", "0.1", "--metric", "binary/ks"],
            "needs the standard error of 'binary/ks'",
        ),
        (["plan", "run", "other", "run", "--difference", "0.1"], "name one RUN or two, got 3"),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, list) else "",
)
def test_bad_input(folder: Path, arguments: list[str], text: str) -> None:
    result = invoke(folder, *arguments)
    assert result.exit_code == 2
    assert text in " ".join(result.output.split())
