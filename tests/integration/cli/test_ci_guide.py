"""The pipelines of the guide on continuous integration, run word for word against a tracking server."""

from __future__ import annotations

import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import mlflow
import pytest
import yaml

from support import ROOT
from support.scripts import environment_without, quick_commands

pytestmark = pytest.mark.slow

GUIDE = (ROOT / "docs" / "guide" / "ci.md").read_text(encoding="utf-8")
PARTY = '''"""What train.py imports: test data, and a model as good as the environment says."""
import os, sys
from cmtrack.tracking import contents
from support.problems import random_labels, random_probabilities
contents._draw = lambda *_: None
y_test, x_test, kind = random_labels(400, 2), None, os.environ["CANDIDATE"]
first = os.getcwd().endswith("shell-good")  # the champion; no interval tells of a candidate that is alike in every row
skill = 0.05 if kind == "bad" else 3.0 if first else 4.0
class model:
    def predict_proba(self):
        return random_probabilities(y_test, 2, skill, 7)
if kind == "unlogged":
    sys.modules["__main__"].log_evaluation = lambda *_, **__: None
'''
OUTCOMES = {"good": 0, "bad": 1, "unlogged": 2}


def blocks(language: str, word: str) -> str:
    """The one block of the guide in a language that holds a word."""
    (found,) = (
        text for text in re.findall(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL) if word in text
    )
    return str(found)


def filled(text: str, known: dict[str, str]) -> Any:
    """The data of a file of GitHub's, with its expressions put in as GitHub does."""
    return yaml.safe_load(re.sub(r"\$\{\{ (.*?) \}\}", lambda match: known[match[1]], text))


def of_github(job: str) -> dict[str, str]:
    return {
        "secrets.MLFLOW_TRACKING_URI": mlflow.get_tracking_uri(),
        "github.run_id": job,
        "github.run_attempt": "1",
    }


def github(job: str) -> tuple[dict[str, str], list[str]]:
    """Environment and scripts of the job."""
    asked: dict[str, Any] = filled(blocks("yaml", "jobs:"), of_github(job))["jobs"]["model"]
    return asked["env"] | {"GITHUB_STEP_SUMMARY": "gate.md"}, [
        step["run"] for step in asked["steps"] if "run" in step
    ]


def action(job: str) -> tuple[dict[str, str], list[str]]:
    """The same job with the action in the place of its last step."""
    environment, scripts = github(job)
    file = (ROOT / "action.yml").read_text(encoding="utf-8")
    (asked,) = filled(blocks("yaml", "OWNER"), of_github(job))
    (step,) = yaml.safe_load(file)["runs"]["steps"]
    inputs = {
        name: given["default"] for name, given in yaml.safe_load(file)["inputs"].items()
    } | asked["with"]
    assert set(step["env"].values()) == {f"${{{{ inputs.{name} }}}}" for name in inputs}
    given = {name: inputs[text.split(".")[1].split()[0]] for name, text in step["env"].items()}
    return environment | given, [*scripts[:-1], step["run"]]


def gitlab(job: str) -> tuple[dict[str, str], list[str]]:
    """Environment and script of the job, with the variables in its variables expanded as GitLab does."""
    asked: dict[str, Any] = yaml.safe_load(blocks("yaml", "judge:"))["judge"]
    given = {name: text.replace("$CI_JOB_ID", job) for name, text in asked["variables"].items()}
    return given | {"CI_JOB_ID": job}, ["\n".join(asked["script"])]


def shell(_: str) -> tuple[dict[str, str], list[str]]:
    """The script."""
    return {}, [blocks("sh", "JOB=")]


@pytest.fixture
def commands(tmp_path):
    """The folder of the commands that the pipelines call."""
    return quick_commands(tmp_path)


@pytest.fixture
def job(server, commands, tmp_path):
    """Run the scripts of a pipeline with a candidate in a folder of their own; return exit code, folder and output."""

    def run(pipeline: Any, candidate: str) -> tuple[int, Path, str]:
        name = f"{pipeline.__name__}-{candidate}"
        folder = tmp_path / name
        folder.mkdir()
        (folder / "party.py").write_text(PARTY)
        (folder / "train.py").write_text(blocks("python", "# train.py"))
        (folder / "rule.yaml").write_text(blocks("yaml", "# rule.yaml"))
        given, scripts = pipeline(name)
        environment = environment_without("CI_", "GITHUB_") | given | {"CANDIDATE": candidate}
        environment |= {
            "MLFLOW_TRACKING_URI": server.url,
            "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}",
        }
        environment["PYTHONPATH"] += os.pathsep + str(ROOT / "tests")
        said = ""
        for script in scripts:
            done = subprocess.run(
                ["bash", "-eo", "pipefail", "-c", script],
                cwd=folder,
                env=environment,
                capture_output=True,
                text=True,
            )
            said += f"$ {script}\n{done.stdout}{done.stderr}"
            if done.returncode:
                return done.returncode, folder, said
        return 0, folder, said

    return run


def test_the_pipelines_pass_a_good_candidate_stop_a_bad_one_and_do_not_judge_what_was_not_logged(
    job, server, commands
):
    code, _, said = job(shell, "good")
    assert code == 0, said
    client = mlflow.MlflowClient()
    party = client.get_experiment_by_name("party").experiment_id
    (champion,) = client.search_runs([party])
    client.create_registered_model("party")
    client.create_model_version(
        "party", f"runs:/{champion.info.run_id}/model", champion.info.run_id
    )
    client.set_registered_model_alias("party", "champion", "1")
    asked = [
        (pipeline, candidate) for pipeline in (github, gitlab, shell) for candidate in OUTCOMES
    ]
    # each pipeline stops one, and each outcome is one of two pipelines
    if not os.environ.get("CMTRACK_TEST_ALL"):
        asked = [
            (github, "good"),
            (github, "bad"),
            (gitlab, "good"),
            (gitlab, "unlogged"),
            (shell, "bad"),
        ]
    asked = [
        (pipeline, candidate)
        for pipeline, candidate in asked
        if (pipeline, candidate) != (shell, "good")
    ]
    asked += [(action, "good"), (action, "bad")]
    with ThreadPoolExecutor(3) as pool:
        done = dict(zip(asked, pool.map(lambda one: job(*one), asked), strict=True))
    for (pipeline, candidate), (code, folder, said) in done.items():
        assert code == OUTCOMES[candidate], (pipeline.__name__, candidate, said)
        assert "View run" in said  # MLflow's own lines, which no pipeline reads
        judged = candidate != "unlogged"
        if pipeline is not shell:
            assert (folder / "gate.md").exists() == judged
            if judged:
                word = "passed" if candidate == "good" else "failed"
                assert (folder / "gate.md").read_text().startswith(f"### Gate: {word}\n")
        if not judged:
            assert "there is no finished run with an evaluation in 'party' that matches" in said
        assert (folder / "review.html").exists() == (pipeline is gitlab)
    # each pipeline has judged the run of its own, though others were started later
    runs = {run.data.tags["job"]: run.info.run_id for run in client.search_runs([party])}
    for (pipeline, candidate), (_, _, said) in done.items():
        if pipeline is not shell and candidate != "unlogged":
            name = f"{pipeline.__name__}-{candidate}"
            assert f"The newest run is {runs[name + '-1' * (pipeline in (github, action))]}" in said
    # the line of the guide that hands the id on
    (line,) = re.findall(r"`(echo \"run=.*?)`", GUIDE, re.DOTALL)
    given = "--experiment party --filter \"tags.job = 'gitlab-good'\""
    (folder := done[gitlab, "good"][1]).joinpath("hand_on.sh").write_text(line.replace("…", given))
    environment = environment_without() | {
        "MLFLOW_TRACKING_URI": server.url,
        "GITHUB_OUTPUT": "output",
    }
    environment["PATH"] = f"{commands}{os.pathsep}{os.environ['PATH']}"
    subprocess.run(["bash", "-e", "hand_on.sh"], cwd=folder, env=environment, check=True)
    assert (folder / "output").read_text() == f"run={runs['gitlab-good']}\n"
