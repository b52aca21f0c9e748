"""README and the files that pages print say what the code does."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from cmtrack import Costs, Grouping
from cmtrack.comparison import CompareOptions, Rule
from support import ROOT
from support.stores import sqlite_store

README = (ROOT / "README.md").read_text(encoding="utf-8")
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
IMAGES = ROOT / "docs" / "images"
SCRIPTS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
PICTURES = re.findall(r"!\[([^\]]*)\]\(([^)]+)\)", README)


def test_it_is_a_door() -> None:
    assert len(README.splitlines()) <= 120
    for command in (
        "python3.11 -m venv .venv && .venv/bin/pip install -q '.[demo]' && .venv/bin/cmtrack demo",
        "python3.11 -m venv .venv && .venv/bin/pip install -q -e '.[test]' && .venv/bin/python -m pytest",
    ):
        assert f"```sh\n{command}\n```" in README


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^)]+)\)", README))))
def test_links_lead_to_files(link: str) -> None:
    assert not re.match(r"https?:", link), "no host is known; hatch_build.py makes links absolute"
    assert (ROOT / link).is_file()


@pytest.mark.parametrize(("words", "path"), PICTURES, ids=[Path(path).stem for _, path in PICTURES])
def test_pictures_have_words_and_are_small(words: str, path: str) -> None:
    assert words
    assert (ROOT / path).stat().st_size < 150_000


def test_badges_are_those_of_pyproject() -> None:
    script = ROOT / "docs" / "pictures.py"
    space: dict[str, Any] = {"__file__": str(script), "__name__": "pictures"}
    exec(script.read_text(encoding="utf-8"), space)
    drawn = space["badges"](PYPROJECT)
    assert {
        path.name: path.read_text(encoding="utf-8") for path in IMAGES.glob("*.svg")
    } == drawn, "run: python docs/pictures.py --badges"
    assert ">=3.11" in PYPROJECT["project"]["requires-python"]
    assert "Python: 3.11 | 3.12 | 3.13" in drawn["python.svg"]
    assert "licence: Apache-2.0" in drawn["licence.svg"]
    assert {path for _, path in PICTURES if path.endswith(".svg")} == {
        f"docs/images/{name}" for name in drawn
    }


TRAINING = """
import numpy as np
from sklearn.linear_model import LogisticRegression

rng = np.random.default_rng(0)
x_test, y_test = rng.normal(size=(80, 3)), np.array(["ham", "spam"] * 40)
model = LogisticRegression().fit(x_test, y_test)
"""


@pytest.mark.slow
def test_the_script_logs_a_run_and_writes_a_review(tmp_path: Path) -> None:
    (script,) = SCRIPTS
    (tmp_path / "train.py").write_text(TRAINING + script, encoding="utf-8")
    environment = os.environ | {"MLFLOW_TRACKING_URI": sqlite_store(tmp_path / "mlflow.db")}
    environment["PYTHONPATH"] = os.pathsep.join((str(ROOT), str(ROOT / "integrations")))
    command = (sys.executable, "-W", "error::UserWarning:__main__", "train.py")
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert not done.stdout
    assert "Ranking" in (tmp_path / "review.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_count_is_that_of_the_guide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "docs" / "_pages")
    guide = (ROOT / "docs" / "guide" / "count_cells.md").read_text(encoding="utf-8")
    cells = re.findall(r"```{code-cell}[^\n]*\n(?::[^\n]*\n)*(.*?)```", guide, re.DOTALL)
    made: dict[str, Any] = {"doctors": importlib.import_module("doctors")}
    for cell in cells[1:3]:
        exec(cell, made)
    table, target = made["table"], made["target"]
    total = table.total()
    truth = (target["visit"] == "visit").sum()
    words = " ".join(README.split())
    assert f"{len(made['labelled'])} of {len(made['rows']):,} rows are labelled" in words
    interval = f"[{total.low:,.0f}, {total.high:,.0f}]"
    said = f"estimates {total.value:,.0f} visits in the others, with a 95% interval of {interval}"
    assert f"{said}. The truth is {truth:,}." in words
    assert total.low <= truth <= total.high
    sources = set(table.to_frame()["source"])
    assert {"own rows", "other years of OH", "other states"} <= sources


YAML = [
    pytest.param(path, text, id=f"{path.stem}-{k}")
    for path in sorted((ROOT / "docs").rglob("*.md"))
    for k, text in enumerate(
        re.findall(r"```yaml\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL)
    )
    if re.match(r"(#.*\n)*(steps|rank_by|costs):", text)
]


@pytest.mark.parametrize(("path", "text"), YAML)
def test_files_on_the_pages_read(path: Path, text: str, tmp_path: Path) -> None:
    content = yaml.safe_load(text)
    if "steps" in content:
        assert Grouping.from_dict(content).steps
    elif "rank_by" in content:
        # `cmtrack promote` and `cmtrack gate` name the baseline.
        against = "champion" if ".difference" in text else None
        rule = CompareOptions(rule=Rule.parse(text.encode(), "review.yaml"), against=against)
        rule.check()
        assert rule.gates or not content.get("require")
    else:
        (tmp_path / "costs.yaml").write_text(text, encoding="utf-8")
        assert Costs.from_file(tmp_path / "costs.yaml")


def test_there_is_a_file_of_each_kind_on_the_pages() -> None:
    first = {next(iter(yaml.safe_load(param.values[1]))) for param in YAML}
    assert first == {"steps", "rank_by", "costs"}


def test_the_licence_and_the_sources_are_named() -> None:
    for name in ("Markoulidakis", "Gubbels", "Düntsch", "docs/sources.md", "Apache License"):
        assert name in README
