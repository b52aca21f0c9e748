"""The action for GitHub, run with a command that only writes down its arguments."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from support import ROOT

ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
COMMAND = """#!/bin/sh
printf '%s\\n' "$@" >arguments
exit "$CODE"
"""

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="the action needs bash")


@pytest.fixture
def run(tmp_path: Path):
    """Run the action with inputs; return its exit code, the arguments and the outputs."""
    command = tmp_path / "cmtrack"
    command.write_text(COMMAND, encoding="utf-8")
    command.chmod(0o755)
    (step,) = ACTION["runs"]["steps"]

    def act(code: int = 0, **inputs: str) -> tuple[int, list[str], str]:
        given = {name: one["default"] for name, one in ACTION["inputs"].items()}
        given |= {name.replace("_", "-"): text for name, text in inputs.items()}
        environment = dict(os.environ)
        for name, text in step["env"].items():
            environment[name] = given[text.removeprefix("${{ inputs.").removesuffix(" }}")]
        environment |= {
            "CODE": str(code),
            "GITHUB_OUTPUT": "output",
            "GITHUB_STEP_SUMMARY": "summary.md",
            "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
        }
        for name in ("arguments", "output"):
            (tmp_path / name).unlink(missing_ok=True)
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=tmp_path,
            env=environment,
            check=False,
            capture_output=True,
        )
        texts = [
            file.read_text(encoding="utf-8") if file.exists() else ""
            for file in (tmp_path / "arguments", tmp_path / "output")
        ]
        return done.returncode, texts[0].splitlines(), texts[1]

    return act


def test_a_gate_gets_its_options(run) -> None:
    code, arguments, output = run(
        1,
        require="binary/recall >= 0.6\nbinary/precision >= 0.5\n",
        against="models:/party@champion",
    )
    assert code == 1
    assert arguments == [
        "gate",
        "--summary",
        "summary.md",
        "--require=binary/recall >= 0.6",
        "--require=binary/precision >= 0.5",
        "--against=models:/party@champion",
        "--latest",
    ]
    assert output == ""


@pytest.mark.parametrize(
    ("code", "answer"), [(0, "promote"), (1, "keep"), (3, "cannot tell"), (2, ""), (127, "")]
)
def test_a_challenger_gives_an_answer_and_only_an_error_fails(run, code: int, answer: str) -> None:
    done, arguments, output = run(
        code,
        challenger="models:/party/5\nmodels:/party/6",
        data="june $(x).parquet",
        y_true="y",
        rule="rule.yaml",
        move="true",
    )
    assert arguments == [
        "promote",
        "--summary",
        "summary.md",
        "--rule=rule.yaml",
        "--data=june $(x).parquet",
        "--y-true=y",
        "--move",
        "--",
        "models:/party/5",
        "models:/party/6",
    ]
    assert done == (0 if answer else code)
    assert output == (f"answer={answer}\n" if answer else "")


def test_a_challenger_does_not_move_the_alias_by_default_and_needs_no_run(run) -> None:
    _, arguments, _ = run(challenger="models:/party/5", data="june.parquet", y_true="y")
    assert "--move" not in arguments
    code, arguments, output = run(challenger="models:/party/5", run="0123456789abcdef")
    assert (code, arguments, output) == (2, [], "")
