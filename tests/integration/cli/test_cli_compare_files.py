"""``cmtrack compare`` of files needs no store, and makes none."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from cmtrack import compare_tables
from cmtrack.cli import main

PLAIN = ("--y-true=y", "--y-pred=z", "--rank-by=multiclass/accuracy")


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Two files of predictions for the same rows in another order, in the working directory."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    for seed, (name, correct) in enumerate({"forest": 0.9, "linear": 0.6}.items()):
        z = np.where(rng.random(200) < correct, y, 1 - y)
        frame = pd.DataFrame({"y": y, "id": range(200), "z": z})
        frame.sample(frac=1, random_state=seed).to_csv(f"{name}.csv", index=False)
    return ["forest.csv", "linear.csv"]


def test_files_are_ranked_without_a_store(files, tmp_path) -> None:
    result = CliRunner().invoke(main, ["compare", *files, *PLAIN, "--row-ids=id", "--json"])
    assert result.exit_code == 0, result.output
    direct = compare_tables(
        files, y_true="y", y_pred="z", row_ids="id", rank_by="multiclass/accuracy"
    )
    assert json.loads(result.stdout)["best"]["name"] == direct.best.name == "forest"
    assert sorted(path.name for path in tmp_path.iterdir()) == files


def test_a_label_of_a_file_gets_the_type_of_its_column(files) -> None:
    command = ["compare", *files, *PLAIN, "--row-ids=id", "--positive=1", "--require"]
    result = CliRunner().invoke(main, [*command, "binary/recall >= 0.8"])
    assert result.exit_code == 0, result.output
    assert "“linear”" in result.output


def test_a_grouping_and_segments_are_used(files, tmp_path) -> None:
    (tmp_path / "grouping.yaml").write_text("groups: {low: [0], high: [1]}")
    command = ["compare", *files, "--y-true=y", "--y-pred=z", "--row-ids=id", "--json"]
    command += ["--grouping=grouping.yaml", "--positive=high", "--rank-by=binary/recall"]
    result = CliRunner().invoke(main, [*command, "--segment=y"])
    assert result.exit_code == 0, result.output
    data = json.loads(result.stdout)
    assert data["rankings"][0]["data"]["positive"] == "high"
    assert data["segments"]


def test_mlflow_is_not_imported(files) -> None:
    code = (
        "import sys; sys.modules['mlflow'] = None\n"
        "from cmtrack.cli import main\n"
        f"main(['compare', *{files}, *{PLAIN}, '--row-ids=id'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "forest" in done.stdout


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--y-pred=z"], "--y-pred needs --y-true"),
        ([], "'forest.csv' is a file: --y-true COLUMN compares files of predictions"),
        ([*PLAIN, "--experiment=party"], "--experiment is for runs in a store"),
        ([*PLAIN, "--prefix=val"], "--prefix is for runs in a store"),
        (PLAIN, "row ids pair the rows"),
        ([*PLAIN, "--row-ids=ident"], "forest.csv has no column 'ident'; did you mean 'id'?"),
        (["--y-true=y"], "the tables need predictions"),
    ],
)
def test_bad_usage_ends_with_2(files, given, message: str) -> None:
    result = CliRunner().invoke(main, ["compare", *files, *given])
    assert result.exit_code == 2, result.output
    assert message in result.output


def test_two_open_models_say_how_many_rows_would_decide(tmp_path) -> None:
    y = [0, 1] * 100
    rows = pd.DataFrame({"y": y, "pred_a": [1, 0] * 20 + y[40:], "pred_b": y[:170] + [1, 0] * 15})
    path = tmp_path / "rows.csv"
    rows.to_csv(path, index=False)
    options = ["--y-true", "y", "--y-pred", "pred_{model}", "--rank-by", "multiclass/accuracy"]
    result = CliRunner().invoke(main, ["compare", str(path), *options])
    text = " ".join(result.output.split())
    # The difference is 10 rows of 200, and 70 rows differ, so its standard error is 0.0417. The
    # number is 200 ((1.960 + 0.842) 0.0417 / 0.05)^2 - 200 = 891.
    sentence = "About 890 more rows would decide, if the difference is as seen (80% power)."
    assert sentence in text
