"""The snippets of the guide on pipelines, run word for word with the versions of a registered model."""

from __future__ import annotations

import base64
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import mlflow
import pytest
import yaml
from sklearn.linear_model import LogisticRegression

from cmtrack.tracking import quiet, tracking_store
from support import ROOT
from support.faults import draw_no_review
from support.promotions import month
from support.scripts import environment_without, quick_commands
from support.stores import sqlite_store

pytestmark = pytest.mark.slow

GUIDE = (ROOT / "docs" / "guide" / "pipelines.md").read_text(encoding="utf-8")
PROMOTE, KEEP, CANNOT_TELL, MISSING = 2, 3, 4, 9
"""Versions of "party": one for each answer, and one that does not exist."""
TITLES = {
    PROMOTE: "### Promote: version 2 against version 1",
    KEEP: "### Keep: version 3 against version 1",
    CANNOT_TELL: "### Cannot tell: version 4 against version 1",
}
UNDRAWN = """
from cmtrack.report import figures
from cmtrack.tracking import contents
contents._draw = lambda *_: None
figures.draw_pictures = lambda *_, **__: {}
"""
COMMAND = f"{UNDRAWN}\nfrom cmtrack.cli import main\nmain()"
FLOW = """
import os, sys
sys.executable = os.environ["FORK"]
from metaflow import FlowSpec, card, current, step
from metaflow.cards import Markdown

def promote(*arguments, **options):
    {undrawn}
    import cmtrack
    return cmtrack.promote(*arguments, **options)

class Monthly(FlowSpec):
    @step
    def start(self):
        self.challenger = "models:/party/2"
        self.next(self.challenge)

{step}
    @step
    def deploy(self):
        print("deploys", self.answer)
        self.next(self.end)

    @step
    def end(self):
        pass

if __name__ == "__main__":
    {undrawn}
    Monthly()
"""


def snippet(language: str, word: str) -> str:
    """The one block of the guide in a language that contains a word."""
    (found,) = (
        text for text in re.findall(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL) if word in text
    )
    return str(found)


@dataclass
class Party:
    """A folder with the rule and a month of rows, a store, and commands for a shell."""

    folder: Path
    client: mlflow.MlflowClient
    environment: dict[str, str]
    fork: str

    def back(self) -> None:
        """Make version 1 the champion again."""
        self.client.set_registered_model_alias("party", "champion", 1)

    def run(
        self, script: str, version: int, *, back: bool = True, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a script as the pipelines do, with a version as the challenger."""
        if back:
            self.back()
        return subprocess.run(
            ["bash", "-eo", "pipefail", "-c", of_version(script, version)],
            cwd=self.folder,
            env=self.environment | variables,
            capture_output=True,
            text=True,
        )

    def calls(self) -> list[str]:
        """Return the calls of gh and curl, and forget them."""
        file = self.folder / "calls"
        lines = file.read_text().splitlines()
        file.unlink()
        return lines


def of_version(text: str, version: int) -> str:
    """Return a text of the guide with another version as the challenger."""
    assert "models:/party/5" in text or "promote" not in text
    return text.replace("models:/party/5", f"models:/party/{version}")


@pytest.fixture(scope="module")
def party(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Party]:
    """Versions 1 to 4, each of which predicts what a column contains."""
    folder = tmp_path_factory.mktemp("party")
    rows = month(
        6, {1: slice(60), PROMOTE: slice(20, 60), KEEP: slice(120), CANNOT_TELL: slice(5, 62)}
    )
    columns = [name for name in rows if name.endswith("_pred")]
    rows[columns] = rows[columns].astype(float)
    rows.to_parquet(folder / "june.parquet")
    (folder / "rule.yaml").write_text(snippet("yaml", "# rule.yaml"))
    (folder / "command.py").write_text(COMMAND)
    commands = quick_commands(folder)
    scripts = {"cmtrack": f'exec "{commands}/python" "{folder}/command.py" "$@"'}
    scripts["fork"] = f'if [ "$1" = -u ]; then shift; fi\nexec "{commands}/python" "$@"'
    scripts |= {name: f'echo "{name} $*" >> "{folder}/calls"' for name in ("gh", "curl")}
    for name, line in scripts.items():
        (commands / name).write_text(f"#!/bin/sh\n{line}\n")
        (commands / name).chmod(0o755)
    uri = sqlite_store(folder / "mlflow.db")
    with pytest.MonkeyPatch.context() as patch, quiet(), tracking_store(uri):
        draw_no_review(patch)
        patch.chdir(folder)
        mlflow.create_experiment("parties", artifact_location=(folder / "artifacts").as_uri())
        mlflow.set_experiment("parties")
        for version in (1, PROMOTE, KEEP, CANNOT_TELL):
            features = rows[[f"v{version}_pred"]]
            with mlflow.start_run():
                mlflow.sklearn.log_model(
                    LogisticRegression().fit(features, features.iloc[:, 0]),
                    name="model",
                    registered_model_name="party",
                    signature=mlflow.models.infer_signature(features),
                    pip_requirements=["mlflow"],
                    serialization_format="pickle",
                )
        environment = environment_without("CI_", "GITHUB_") | {
            "MLFLOW_TRACKING_URI": uri,
            "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}",
        }
        yield Party(folder, mlflow.MlflowClient(), environment, str(commands / "fork"))


COMPARE = next(
    line.strip().rstrip("\\")
    for line in snippet("yaml", "gh pr").splitlines()
    if "cmtrack promote" in line
)


# -- Python ----------------------------------------------------------------------------------------


def test_an_asset_check_of_dagster_passes_warns_and_fails_by_the_answer(party: Party) -> None:
    dagster = pytest.importorskip("dagster", reason="needs pip install '.[pipelines]'")
    space: dict[str, Any] = {}
    exec(snippet("python", "dagster"), space)
    passed = {PROMOTE: (True, "ERROR"), KEEP: (False, "ERROR"), CANNOT_TELL: (False, "WARN")}
    for version, title in TITLES.items():
        party.back()
        result = materialized(dagster, space["replaces_champion"], version)
        assert result.success
        (check,) = result.get_asset_check_evaluations()
        assert (check.passed, check.severity.value) == passed[version]
        assert check.metadata["promotion"].value.startswith(title)
    party.back()
    result = materialized(dagster, space["replaces_champion"], MISSING)
    assert not result.success
    assert result.get_asset_check_evaluations() == []


def materialized(dagster: ModuleType, check: Any, version: int) -> Any:
    """Materialize the asset with the address of a version, and its check."""

    def challenger():
        return f"models:/party/{version}"

    asset = dagster.asset(challenger)
    return dagster.materialize([asset, check], raise_on_error=False)


def test_a_step_of_metaflow_writes_a_card_and_branches_by_the_answer(party: Party) -> None:
    pytest.importorskip("metaflow", reason="needs pip install '.[pipelines]'")
    party.back()
    step = "".join(
        f"    {line}\n" for line in snippet("python", "@card").splitlines() if line.strip()
    )
    flow = party.folder / "flow.py"
    flow.write_text(FLOW.format(step=step, undrawn=UNDRAWN.strip().replace("\n", "\n    ")))
    done = subprocess.run(
        [party.fork, "flow.py", "run"],
        cwd=party.folder,
        env=party.environment | {"USERNAME": "somebody", "FORK": party.fork},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "deploys promote" in done.stdout
    (card,) = party.folder.glob(".metaflow/mf.cards/**/steps/challenge/**/*.html")
    encoded = re.findall(r'__MF_DATA__\["[^"]+"\] = "([^"]+)"', card.read_text())
    assert TITLES[PROMOTE] in base64.b64decode(encoded[0]).decode()


def test_a_task_of_airflow_branches_by_the_exit_code(
    party: Party, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("airflow", "airflow.sdk"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    sdk: Any = sys.modules["airflow.sdk"]
    sdk.task = SimpleNamespace(branch=lambda function: function)
    for name in ("PATH", "PYTHONPATH", "MLFLOW_TRACKING_URI"):
        monkeypatch.setenv(name, party.environment[name])

    def chosen(version: int) -> str:
        party.back()
        space: dict[str, Any] = {}
        exec(of_version(snippet("python", "airflow"), version), space)
        return str(space["challenge"]())

    assert chosen(PROMOTE) == "deploy"
    assert chosen(KEEP) == "report"
    with pytest.raises(KeyError, match="2"):
        chosen(MISSING)


# -- CI --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [CANNOT_TELL, MISSING])
def test_github_fails_only_if_nothing_was_decided(party: Party, version: int) -> None:
    decide, comment = yaml.safe_load(snippet("yaml", "gh pr"))
    summary = party.folder / f"summary{version}.md"
    done = party.run(decide["run"], version, GITHUB_STEP_SUMMARY=str(summary))
    assert (done.returncode != 0) == (version == MISSING), done.stdout + done.stderr
    assert summary.exists() == (version != MISSING)
    if version == MISSING:
        return
    assert summary.read_text().startswith(TITLES[version])
    marker, text = (party.folder / "comment.md").read_text().split("\n", 1)
    assert marker == "<!-- cmtrack promote party@champion -->"
    assert text.strip() == summary.read_text().strip()
    assert set(comment["env"]) == {"GH_TOKEN", "PR"}
    assert party.run(comment["run"], version, PR="7").returncode == 0
    assert party.calls() == ["gh pr comment 7 --body-file comment.md --edit-last --create-if-none"]


@pytest.mark.parametrize("version", [KEEP, MISSING])
def test_gitlab_warns_if_the_champion_stays(party: Party, version: int) -> None:
    job = yaml.safe_load(snippet("yaml", "allow_failure"))["promote"]
    done = party.run("\n".join(job["script"]), version)
    assert done.returncode == {KEEP: 1, MISSING: 2}[version], done.stderr
    assert job["allow_failure"]["exit_codes"] == [1, 3]
    (file,) = job["artifacts"]["paths"]
    if version == MISSING:
        assert "party has no version 9" in done.stderr
    else:
        assert TITLES[version] in (party.folder / file).read_text()


def test_a_comment_on_a_merge_request_is_sent_if_there_is_one(party: Party) -> None:
    (line,) = yaml.safe_load(snippet("yaml", "after_script"))["after_script"]
    known = {
        "COMMENT_TOKEN": "secret",
        "CI_API_V4_URL": "https://gitlab.example.org/api/v4",
        "CI_PROJECT_ID": "3",
        "CI_MERGE_REQUEST_IID": "7",
    }
    comment = party.folder / "comment.md"
    comment.unlink(missing_ok=True)
    assert party.run(line, KEEP, **known).returncode == 0
    assert not (party.folder / "calls").exists()
    comment.write_text("text")
    assert party.run(line, KEEP, **known).returncode == 0
    (call,) = party.calls()
    assert call.endswith("https://gitlab.example.org/api/v4/projects/3/merge_requests/7/notes")
    assert "PRIVATE-TOKEN: secret --data-urlencode body@comment.md" in call


def test_a_repeated_command_is_no_new_look(party: Party) -> None:
    first, second = (party.run(COMPARE, CANNOT_TELL) for _ in range(2))
    assert first.returncode == second.returncode == 3
    assert "this is no new look" in second.stdout
    assert party.run(COMPARE, PROMOTE).returncode == 0
    # The alias has moved, so this version is the champion.
    third = party.run(COMPARE, PROMOTE, back=False)
    assert third.returncode == 2
    assert "version 2 is the champion already" in third.stderr


def test_a_step_verifies_and_writes_the_history(party: Party) -> None:
    (step,) = yaml.safe_load(snippet("yaml", "cmtrack history"))
    assert party.run(COMPARE, KEEP).returncode == 1
    done = party.run(step["run"], KEEP)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (party.folder / "history.html").exists()
