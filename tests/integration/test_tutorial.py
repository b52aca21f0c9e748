"""The tutorial is a notebook: it runs from an empty folder, and what is stored of it is what it gives."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support import ROOT
from support.scripts import environment_without

pytestmark = pytest.mark.slow

TUTORIAL = ROOT / "examples" / "tutorial.ipynb"


def outputs(notebook: Path) -> list[str]:
    """Texts of the outputs of each cell with code; pictures by their kind. Libraries may warn on stderr."""
    texts = []
    for cell in json.loads(notebook.read_text())["cells"]:
        for output in (shown for shown in cell.get("outputs", []) if shown.get("name") != "stderr"):
            found = output.get("text") or output.get("data", {}).get("text/plain", [])
            texts.append("".join(found) + " ".join(sorted(output.get("data", {}))))
    return texts


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tutorial")
    shutil.copy(TUTORIAL, folder)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-c",
            os.devnull,
            "--rootdir",
            ".",
            "--nbmake",
            "--overwrite",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:xdist",
            "tutorial.ipynb",
        ],
        cwd=folder,
        env=environment_without("PYTEST_"),
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "tutorial.ipynb"


def test_it_runs_and_ends_in_the_review(executed: Path) -> None:
    assert (executed.parent / "cmtrack-tutorial.db").is_file()
    review = (executed.parent / "review.html").read_text()
    for name in ("decision tree", "neural network", "naive Bayes", "baseline"):
        assert name in review
    assert outputs(executed)[-1].endswith("image/png text/plain")


def test_the_stored_outputs_are_what_it_gives(executed: Path) -> None:
    now, stored = outputs(executed), outputs(TUTORIAL)
    assert len(now) == len(stored) > 10
    for new, old in zip(now, stored, strict=True):
        # digits are those of the libraries
        assert re.sub(r"[\d.]+", "#", new) == re.sub(r"[\d.]+", "#", old)
    assert sum("image/png" in text for text in stored) >= 4


def test_its_text_calls_the_lines_of_the_roc_curve_what_they_are() -> None:
    cells = ["".join(cell["source"]) for cell in json.loads(TUTORIAL.read_text())["cells"]]
    (text,) = [cell for cell in cells if "ROC curve" in cell]
    assert "The dashed line is the ceiling" in text
    assert "The dotted line is chance" in text


def test_nothing_of_a_machine_is_stored_in_it() -> None:
    text = TUTORIAL.read_text()
    assert not re.search(r"[\"' ](/tmp|/home|/root|/work|/Users|[A-Z]:\\\\)", text)
    assert '"stderr"' not in text
    cells = json.loads(text)["cells"]
    assert all("execution" not in cell["metadata"] for cell in cells)
    assert "review" in "".join(cells[-4]["source"] + cells[-3]["source"] + cells[-2]["source"])
