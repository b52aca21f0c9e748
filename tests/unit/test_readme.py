"""README and the files that pages print say what the code does."""

from __future__ import annotations

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
from support.scripts import warm
from support.stores import sqlite_store

README = (ROOT / "README.md").read_text(encoding="utf-8")
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
IMAGES = ROOT / "docs" / "images"
SCRIPTS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
PICTURES = re.findall(r"!\[([^\]]*)\]\(([^)]+)\)", README)


def test_it_is_a_door() -> None:
    assert len(README.splitlines()) <= 200
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
    space: dict[str, Any] = {"__file__": str(IMAGES / "make.py"), "__name__": "make"}
    exec((IMAGES / "make.py").read_text(encoding="utf-8"), space)
    drawn = space["badges"](PYPROJECT)
    assert {
        path.name: path.read_text(encoding="utf-8") for path in IMAGES.glob("*.svg")
    } == drawn, "run: python docs/images/make.py --badges"
    assert ">=3.11" in PYPROJECT["project"]["requires-python"]
    assert "Python: 3.11 | 3.12 | 3.13" in drawn["python.svg"]
    assert "licence: Apache-2.0" in drawn["licence.svg"]
    assert {path for _, path in PICTURES if path.endswith(".svg")} == {
        f"docs/images/{name}" for name in drawn
    }


@pytest.mark.slow
def test_the_script_runs_and_the_run_holds_what_is_printed(tmp_path: Path) -> None:
    pytest.importorskip("statsmodels")
    script, _ = SCRIPTS
    (output,) = re.findall(r"```console\n\$ cmtrack show RUN_ID\n(.*?)```", README, re.DOTALL)
    (tmp_path / "train.py").write_text(
        script + "\nprint(mlflow.last_active_run().info.run_id)\n", encoding="utf-8"
    )
    environment = os.environ | {"MLFLOW_TRACKING_URI": sqlite_store(tmp_path / "mlflow.db")}
    environment["COLUMNS"] = "96"  # of the terminal that README shows
    environment["PYTHONPATH"] = os.pathsep.join((str(ROOT), str(ROOT / "integrations")))

    def printed(*command: str) -> list[str]:
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
            encoding="utf-8",
        )
        return [line.rstrip() for line in done.stdout.splitlines()]

    # nothing else, and no failure
    (run_id,) = printed(sys.executable, "-W", "error::UserWarning:__main__", "train.py")
    shown = printed(*warm("cmtrack", "show", run_id))
    for part in output.split("…\n"):
        lines = part.splitlines()
        assert any(shown[i : i + len(lines)] == lines for i in range(len(shown))), part


@pytest.mark.slow
def test_the_count_prints_what_is_below_it_and_argues_for_the_method(
    capsys: pytest.CaptureFixture[str],
) -> None:
    (output,) = re.findall(r"```text\n(.*?)```", README, re.DOTALL)
    made: dict[str, Any] = {}
    exec(SCRIPTS[1], made)
    assert capsys.readouterr().out == output
    truth, estimate = (made["y_pile"] == 8).sum(), made["estimate"]
    assert min(made["predicted"], made["summed"]) > 1.5 * truth
    assert (
        estimate.count_low <= truth <= estimate.count_high < min(made["predicted"], made["summed"])
    )


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
        rule = CompareOptions(rule=Rule.parse(text.encode(), "review.yaml"))
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
