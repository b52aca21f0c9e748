"""``cmtrack count``: the table, the page, JSON and exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result

from cmtrack.cli import main

# The command must print what the library counts from the same files.
from cmtrack.prevalence.from_tables import count_table

OPTIONS = ["--by", "region,month", "--y-prob", "p", "--y-true", "y"]


def run_cli(arguments: list[str], width: int = 80) -> Result:
    return CliRunner(env={"COLUMNS": str(width)}).invoke(main, arguments)


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """A target and labelled rows of three regions in four months, with labels in two months."""
    rng = np.random.default_rng(5)
    n = 8_000
    frame = pd.DataFrame(
        {
            "region": rng.choice(["east", "north", "west"], n),
            "month": rng.choice(["2024-01", "2024-02", "2024-03", "2024-04"], n),
            "p": rng.random(n),
        }
    )
    frame["y"] = (rng.random(n) < frame["p"]).astype(int)
    is_labelled = (rng.random(n) < 0.15) & (frame["month"] < "2024-03")
    target = tmp_path / "scored.parquet"
    labelled = tmp_path / "labelled.parquet"
    frame[~is_labelled].drop(columns="y").to_parquet(target)
    frame[is_labelled].to_parquet(labelled)
    return target, labelled


def test_the_table_and_the_page(files: tuple[Path, Path], tmp_path: Path) -> None:
    target, labelled = files
    page = tmp_path / "new folder" / "counts.html"
    result = run_cli(
        [
            *("count", str(target), *OPTIONS, "--labelled", str(labelled)),
            *("--total", "--changes", "-o", str(page)),
        ],
        width=140,
    )
    assert result.exit_code == 0
    table = count_table(target, labelled, by=["region", "month"], y_true="y", y_prob="p")
    html = page.read_text("utf-8")
    for line in table.lines():
        printed = next(text for text in result.stdout.splitlines() if text.split()[:2] == line[:2])
        for cell in line:
            assert cell in printed
            assert cell in html
    text = " ".join(result.stdout.split())
    for sentence in (table.lead, *table.sentences):
        assert sentence in text
        assert sentence in html
    assert "2024-01 → 2024-02" in text
    assert "<svg" in html
    assert "<script" not in html


def test_json_has_the_cells_the_total_and_the_changes(files: tuple[Path, Path]) -> None:
    target, labelled = files
    arguments = ["count", str(target), *OPTIONS, "--labelled", str(labelled), "--json"]
    assert "changes" not in json.loads(run_cli(arguments).stdout)
    data = json.loads(run_cli([*arguments, "--changes"]).stdout)
    table = count_table(target, labelled, by=["region", "month"], y_true="y", y_prob="p")
    assert len(data["cells"]) == 12
    assert data["total"]["value"] == (
        None if np.isnan(table.total().value) else table.total().value
    )
    assert len(data["changes"]) == 9
    assert {row["left_out"] for row in data["check"]} == {"domains", "periods"}


def test_columns_may_be_separated_by_blanks(files: tuple[Path, Path]) -> None:
    target, labelled = map(str, files)
    start = ["count", target, "--labelled", labelled]
    blanks = run_cli([*start, *OPTIONS, "--by", "region, month"])
    assert blanks.exit_code == 0
    assert blanks.stdout == run_cli([*start, *OPTIONS]).stdout


def test_a_cell_without_a_number_is_no_failure(files: tuple[Path, Path], tmp_path: Path) -> None:
    target, labelled = files
    frame = pd.read_parquet(labelled)
    few = tmp_path / "few.parquet"
    frame[frame["month"] == "2024-01"].to_parquet(few)
    result = run_cli(["count", str(target), *OPTIONS, "--labelled", str(few)], width=140)
    assert result.exit_code == 0
    assert "have only one value of month" in " ".join(result.stdout.split())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--by", "region,mont"], "--by must name columns of both tables, got 'mont'"),
        (["--y-true", "label"], "label"),
        (["--half-width", "5"], "--half-width must be between 0 and 1, got 5.0"),
        (["--positive", "7"], "positive must be one of [0, 1], got '7'"),
        (["--labelled", "nowhere.parquet"], "nowhere.parquet"),
        (["--assumption", "both"], "--assumption"),
    ],
)
def test_bad_input_ends_with_2(files: tuple[Path, Path], change: list[str], message: str) -> None:
    target, labelled = files
    result = run_cli(["count", str(target), *OPTIONS, "--labelled", str(labelled), *change])
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_page_without_a_number_has_no_empty_figure(
    files: tuple[Path, Path], tmp_path: Path
) -> None:
    target, labelled = files
    few = tmp_path / "few.parquet"
    pd.read_parquet(labelled).head(30).to_parquet(few)
    page = tmp_path / "page.html"
    result = run_cli(["count", str(target), "--labelled", str(few), *OPTIONS, "-o", str(page)])
    assert result.exit_code == 0
    assert "There is no total" in page.read_text("utf-8")
    assert "<svg" not in page.read_text("utf-8")
