"""What the reproductions share: cells beside published numbers, reports, and the overview of all sources."""

from __future__ import annotations

import ast
import json
import math
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import mlflow
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from study import Spread, Study, beside, nearness
from study.overview import README, REPORTS, SOURCES, overview, with_overview
from study.overview import main as take_over
from study.report import PICTURES
from support import ROOT

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("ours", "published", "cell"),
    [
        (Spread(0.591, 0.021), 0.58, "0.59 ± 0.02 (0.58)"),
        (Spread(0.591, 0.005), 0.58, "0.59 ± 0.01 (0.58) †"),
        (0.583, 0.58, "0.58 (0.58)"),
        (0.586, 0.58, "0.59 (0.58) †"),
        (Spread(0.5, math.nan), None, "0.50"),
        (Spread(math.nan, math.nan), 0.5, "– (0.50)"),
        (Spread(0.5, 0.1), math.nan, "0.50 ± 0.10"),
    ],
)
def test_cells_say_ours_its_spread_and_what_was_published(
    ours: Spread | float, published: float, cell: str
) -> None:
    assert beside(ours, published) == cell


def test_spread_is_that_of_the_repeats_with_a_number() -> None:
    assert Spread.of([1, 2, 3, math.nan]) == (2.0, 1.0)
    assert Spread.of([4]).mean == 4
    assert math.isnan(Spread.of([4]).sd)
    assert all(map(math.isnan, Spread.of([math.nan])))


def test_nearness_names_the_largest_distance() -> None:
    published = pd.DataFrame({"a": [0.5, np.nan], "b": [0.1, 0.2]}, index=["x", "y"])
    ours = pd.DataFrame({"b": [0.1, 0.5], "a": [0.51, 0.3]}, index=["x", "y"])
    assert nearness(ours, published) == "3 numbers: median distance 0.01, largest 0.30 (y, b)"
    assert nearness(ours * np.nan, published) == "nothing to compare"


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Study]:
    """A study that is closed: its report is written and logged."""
    before = mlflow.get_tracking_uri()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_TRACKING_URI", before)
        output = tmp_path_factory.mktemp("study")
        under_way = Study("kappa_article", "A title", "A source", output=output, fast=True)
        under_way.heading("Table 1")
        under_way.bullets("one", "two")
        numbers = {"n": [3, 4], "share": [0.125, math.nan], "a|b": ["x|y", "z"]}
        under_way.table("table_1", pd.DataFrame(numbers), "Numbers")
        under_way.figure("figure_1", Figure(), "A picture")
        under_way.figure("sample", Figure(), "Images of others.", kept=False)
        under_way.outcome("Table 1", reproduced="all", near="exact")
        assert under_way.pick(fast=1, full=2) == 1
        assert list(under_way.track([1, 2], "things")) == [1, 2]
        assert under_way.close() == under_way.folder / "report.md"
        yield under_way
    mlflow.set_tracking_uri(before)


def test_a_study_writes_its_report_and_logs_it(study: Study) -> None:
    text = (study.folder / "report.md").read_text()
    for part in (
        "# A title",
        "Source: A source",
        "## Table 1",
        "* one\n* two",
        "![A picture](figure_1.png)",
    ):
        assert part in text
    assert "| n | share | a\\|b |\n| --: | --: | :-- |\n| 3 | 0.12 | x\\|y |\n| 4 | – | z |" in text
    assert (study.folder / "figure_1.png").stat().st_size > 100
    assert pd.read_csv(study.folder / "table_1.csv")["n"].tolist() == [3, 4]
    saved = json.loads((study.folder / "outcomes.json").read_text())
    assert (saved["mode"], saved["outcomes"][0]["near"]) == ("fast", "exact")
    client = mlflow.MlflowClient(study.store)
    experiment = client.get_experiment_by_name("kappa_article")
    (run,) = client.search_runs([experiment.experiment_id])
    assert run.info.run_name == "report"
    logged = {item.path for item in client.list_artifacts(run.info.run_id)}
    files = {"report.md", "outcomes.json", "figure_1.png", "table_1.csv", "outcomes.csv"}
    assert logged == files | {PICTURES}


def test_a_picture_of_a_data_set_is_drawn_beside_the_report_and_not_shown(study: Study) -> None:
    report = (study.folder / "report.md").read_text()
    assert (study.folder / PICTURES / "sample.png").is_file()
    assert "The script draws it as `pictures/sample.png`; it is not kept here." in report
    assert re.findall(r"!\[[^\]]*\]\(([^)]+)\)", report) == ["figure_1.png"]


def test_an_overview_is_made_of_full_reports_only(study: Study, tmp_path: Path) -> None:
    outcomes = (study.folder / "outcomes.json").read_text()
    for name in SOURCES:
        (tmp_path / name).mkdir()
        (tmp_path / name / "outcomes.json").write_text(outcomes)
    with pytest.raises(ValueError, match=r"made of full reports; \w+ was written in fast mode"):
        overview(tmp_path)


def test_the_readme_holds_the_overview_of_the_stored_reports() -> None:
    text = README.read_text()
    assert with_overview(text, overview()) == text
    for name in SOURCES:
        assert f"`{name}.py`: [its report](reproduce/reports/{name}/report.md)" in text


def test_one_report_may_be_taken_over_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, readme = tmp_path / "kept", tmp_path / "README.md"
    shutil.copytree(REPORTS, kept)
    shutil.copytree(REPORTS / "kappa_article", tmp_path / "new" / "kappa_article")
    (tmp_path / "new" / "kappa_article" / PICTURES).mkdir()
    (tmp_path / "new" / "kappa_article" / "more.csv").write_text("a,b\n")
    shutil.copy(README, readme)
    monkeypatch.setattr("study.overview.REPORTS", kept)
    monkeypatch.setattr("study.overview.README", readme)
    take_over(tmp_path / "new", "kappa_article")
    assert (kept / "kappa_article" / "more.csv").is_file()
    assert not (kept / "kappa_article" / PICTURES).exists()
    assert sorted(path.name for path in kept.iterdir()) == sorted(SOURCES)
    assert readme.read_text() == README.read_text()


def test_stored_reports_are_whole_and_of_no_machine() -> None:
    for name in SOURCES:
        folder = REPORTS / name
        report = (folder / "report.md").read_text()
        assert ", full mode." in report
        for picture in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", report):
            assert (folder / picture).is_file()
        for path in folder.iterdir():
            if path.suffix in (".md", ".json", ".csv", ".html"):
                assert not re.search(
                    r"(^|[\s\"'(:])/(tmp|home|root|work|Users)/", path.read_text()
                ), path


def test_every_example_is_in_the_readme_and_in_the_gallery() -> None:
    readme, gallery = (
        README.read_text(),
        (ROOT / "docs" / "_ext" / "example_gallery.py").read_text(),
    )
    assert 'EXAMPLES.glob("hooks_*.py")' in gallery  # those of frameworks are found
    for path in (ROOT / "examples").glob("*.py"):
        title, rule, *_ = str(ast.get_docstring(ast.parse(path.read_text()))).splitlines()
        assert rule == "=" * len(title), path.name
        assert f"| `{path.name}` | {title} |" in readme, path.name
        assert path.stem.startswith("hooks_") or f'"{path.stem}"' in gallery, path.name
