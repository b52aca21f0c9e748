"""Metrics of one's own in the shell, by ``--extra-metrics``, and the newest run of an experiment, by ``--latest``."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import mlflow
import numpy as np
import pytest
from click.testing import CliRunner, Result

from cmtrack import Metric, compare, log_evaluation, paired_differences
from cmtrack.cli import main
from cmtrack.comparison import judge
from cmtrack.report.review import Review, context
from cmtrack.tracking import load_evaluation, quiet, tracking_store
from support.problems import random_labels, random_probabilities
from support.stores import sqlite_store

FILE = """
import numpy as np
from cmtrack import Metric
from beside import STEPS

print("executed")
mean = lambda counts: (counts * STEPS).sum() / counts.sum()
distance = Metric("custom/distance", mean, better="lower", low=0, high=3)
spread = Metric("custom/spread", lambda counts: (counts * STEPS**2).sum() / counts.sum(), better="lower", low=0, high=9)
both = [distance, spread]
by_name = {"distance": distance, "spread": spread}
number = 3
texts = ["custom/distance"]
"""
BESIDE = "import numpy as np\nSTEPS = np.abs(np.subtract.outer(np.arange(4), np.arange(4)))\n"
STEPS = np.abs(np.subtract.outer(np.arange(4), np.arange(4)))
DISTANCE = Metric(
    "custom/distance",
    lambda counts: (counts * STEPS).sum() / counts.sum(),
    better="lower",
    low=0,
    high=3,
)
WAY = "--extra-metrics FILE.py:NAME"
DIFFERENCE = ("--require", "custom/distance.difference.high <= 0.05")
OF_SEGMENTS = ("--require", "segment/side/*/custom/distance.high <= 3")


@pytest.fixture(scope="module")
def store(tmp_path_factory, undrawn):
    """Runs with and without a metric of their own on the same 240 rows, the worst by accuracy the last."""
    folder = tmp_path_factory.mktemp("store")
    y, runs = random_labels(240, 4), {}
    uri = sqlite_store(folder / "mlflow.db")
    with quiet(), tracking_store(uri):
        client = mlflow.MlflowClient()
        place = client.create_experiment("runs", artifact_location=(folder / "artifacts").as_uri())
        for seed, (name, skill) in enumerate({"good": 2.2, "fair": 1.9, "plain": 1.5}.items()):
            with mlflow.start_run(
                experiment_id=place, run_name=name, tags={"job": f"{seed}"}
            ) as run:
                log_evaluation(
                    y,
                    y_prob=random_probabilities(y, 4, skill, seed),
                    strict=True,
                    extra_metrics=[] if name == "plain" else [DISTANCE],
                    segments={"side": np.where(np.arange(240) % 2, "left", "right")},
                )
            runs[name] = str(run.info.run_id)
        with mlflow.start_run(experiment_id=place, run_name="unjudged", tags={"job": "0"}):
            pass
        client.create_run(place, run_name="running")
        client.create_experiment("empty")
    return uri, runs


@pytest.fixture
def run(store, tmp_path, monkeypatch):
    """Run a command on the store, beside the files; names of runs stand for their ids."""
    uri, runs = store
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(FILE)
    (tmp_path / "beside.py").write_text(BESIDE)
    (tmp_path / "broken.py").write_text("import nowhere_at_all\n")
    (tmp_path / "ends.py").write_text("raise SystemExit(0)\n")

    def invoke(command: str, *words: str) -> Result:
        given = [runs.get(word, word) for word in words]
        done = CliRunner().invoke(
            main, [command, *given, "--tracking-uri", uri], env={"COLUMNS": "200"}
        )
        assert "Traceback" not in done.output
        return done

    return invoke


def data(done: Result) -> Any:
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def refusal(done: Result) -> str:
    assert (done.exit_code, done.stdout) == (2, ""), done.output
    return done.stderr


@pytest.mark.slow
def test_a_ranking_by_a_metric_of_ones_own_has_its_direction_from_the_evaluations(run, store):
    done = data(run("compare", "fair", "good", "plain", "--rank-by", "custom/distance", "--json"))
    ranked = done["rankings"][0]["runs"]
    # the least is the best
    assert [one["run_id"] for one in ranked] == [store[1]["good"], store[1]["fair"]]
    assert done["criterion"]["better"] == "lower"
    values = [one["value"] for one in ranked]
    assert values == sorted(values)
    text = run("compare", "good", "fair", "--rank-by", "custom/distance").stdout
    assert WAY in " ".join(text.split())
    assert "Not compared row by row" in text


@pytest.mark.slow
@pytest.mark.parametrize("name", ["both", "by_name", "distance"])
def test_rankings_in_the_shell_are_those_of_python_with_the_functions(run, store, name):
    uri, runs = store
    with tracking_store(uri):
        direct = compare(
            [*runs.values()],
            rank_by="custom/distance",
            extra_metrics=[DISTANCE],
            against=runs["plain"],
        )
    done = run(
        "compare",
        *runs,
        "--rank-by",
        "custom/distance",
        "--against",
        "plain",
        "--json",
        "--extra-metrics",
        f"own.py:{name}",
    )
    ours, theirs = data(done), direct.to_dict()
    assert "executed" in done.stderr
    assert ours["rankings"] == json.loads(json.dumps(theirs["rankings"]))
    assert len(ours["rankings"][0]["runs"]) == 3  # also of the run that was logged without
    assert (
        "Not compared row by row"
        not in run("compare", "good", "fair", "--extra-metrics", "own.py:both").stdout
    )


@pytest.mark.slow
def test_gates_in_the_shell_are_those_of_python_with_the_functions(run, store):
    uri, runs = store
    with tracking_store(uri):
        good, fair, plain = (
            load_evaluation(one, rows=True, extra_metrics=[DISTANCE]) for one in runs.values()
        )
    gap = paired_differences(plain, good, metrics=["custom/distance"])["custom/distance"]
    for tested, base, evaluations in (
        ("good", "fair", (good, fair)),
        ("plain", "good", (plain, good)),
    ):
        for asked in (DIFFERENCE, ("--rank-by", "custom/distance")):
            done = run(
                "gate",
                tested,
                "--against",
                base,
                *asked,
                "--extra-metrics",
                "own.py:distance",
                "--json",
            )
            ruled = {"require": asked[1:]} if asked is DIFFERENCE else {"rank_by": asked[1]}
            verdict = judge(*evaluations, **ruled)
            assert done.exit_code == (0 if verdict.passed else 1), done.output
            ours = json.loads(done.stdout)["gates"]
            assert ours == [check.to_dict() for check in verdict.checks]
            if asked is DIFFERENCE and tested == "plain":
                assert ours[0]["value"] == gap.high
    assert run("gate", "good", *OF_SEGMENTS, "--extra-metrics", "own.py:both").exit_code == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("gate", "good", "--against", "fair", *DIFFERENCE),
        ("gate", "good", "--against", "fair", "--rank-by", "custom/distance"),
        ("gate", "good", *OF_SEGMENTS),
        ("gate", "plain", "--require", "custom/distance <= 1"),
        ("gate", "good", "--grouping", "two.yaml", "--require", "custom/distance <= 1"),
        ("segments", "good", "--metric", "custom/distance"),
    ],
    ids=["difference", "ranked", "segments", "absent", "regrouped", "command"],
)
def test_what_needs_a_function_that_is_not_at_hand_is_not_decided_and_the_way_out_is_named(
    run, tmp_path, words
):
    (tmp_path / "two.yaml").write_text("groups: {low: [0, 1], high: [2, 3]}\n")
    assert WAY in refusal(run(*words))
    assert run(*words, "--extra-metrics", "own.py:both").exit_code == 0


def test_a_gate_that_needs_no_function_is_decided_by_the_numbers_of_the_run(run):
    assert run("gate", "good", "--require", "custom/distance.high <= 1").exit_code == 0
    assert run("gate", "good", "--require", "custom/distance.high <= 0.01").exit_code == 1


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("absent.py:distance", "absent.py cannot be executed: FileNotFoundError"),
        (
            "broken.py:distance",
            "broken.py cannot be executed: ModuleNotFoundError: No module named 'nowhere_at_all'",
        ),
        ("ends.py:distance", "ends.py cannot be executed: SystemExit"),
        ("nowhere.at_all:distance", "nowhere.at_all cannot be executed: ModuleNotFoundError"),
        ("own.py:distanz", "own.py has no 'distanz'; its metrics are distance, spread"),
        ("own.py", "must be FILE.py:NAME, got 'own.py'"),
        (":both", "must be FILE.py:NAME, got ':both'"),
        ("own.py:number", "number must be a list of Metric objects, got int"),
        ("own.py:texts", "texts must contain Metric objects, got str"),
    ],
)
def test_a_file_that_gives_no_metrics_is_refused_with_the_reason(run, given, words):
    for command in (
        ("gate", "good", "--require", "multiclass/accuracy >= 0"),
        ("segments", "good"),
        ("compare", "good"),
    ):
        assert words in refusal(run(*command, "--extra-metrics", given))


@pytest.mark.slow
def test_several_files_and_modules_are_taken_and_one_name_is_taken_once(run, tmp_path):
    (tmp_path / "a_module_of_the_tests.py").write_text(FILE)
    words = (
        "gate",
        "plain",
        "--require",
        "custom/distance <= 1",
        "--require",
        "custom/spread <= 2",
    )
    assert (
        run(
            *words, "--extra-metrics", "own.py:distance", "--extra-metrics", "own.py:spread"
        ).exit_code
        == 0
    )
    assert run(*words, "--extra-metrics", "a_module_of_the_tests:both").exit_code == 0
    twice = run(*words, "--extra-metrics", "own.py:both", "--extra-metrics", "own.py:distance")
    assert "must have different names, got 'custom/distance' twice" in refusal(twice)


@pytest.mark.slow
def test_a_review_names_the_file_to_make_it_again(run, tmp_path):
    words = ("good", "fair", "--rank-by", "custom/distance", "--extra-metrics", "own.py:both")
    assert (
        run("review", *words, "--output", "review.html", "--output", "review.json").exit_code == 0
    )
    page = (tmp_path / "review.html").read_text()
    assert "--extra-metrics own.py:both" in page
    assert "extra_metrics=extra_metrics" in page
    assert json.loads((tmp_path / "review.json").read_text())["how"]["extra_metrics"] == [
        "own.py:both"
    ]
    assert run("review", *words[:4], "--output", "plain.html").exit_code == 0
    assert "--extra-metrics own.py" not in (tmp_path / "plain.html").read_text()


def test_a_review_made_in_python_says_which_metrics_were_given(store, tmp_path):
    uri, runs = store
    with tracking_store(uri):
        comparison = compare(
            [runs["good"], runs["fair"]], rank_by="custom/distance", extra_metrics=[DISTANCE]
        )
    page = context(Review(comparison), None, {})
    assert "extra_metrics = […]  # the Metrics of 'custom/distance'" in page["python"]
    assert "# FILE.py:NAME holds the metrics 'custom/distance'" in page["command"]
    assert "--extra-metrics FILE.py:NAME" in page["command"]
    without = replace(comparison, how=comparison.how | {"extra_metrics": []})
    assert "metrics" not in context(Review(without), None, {})["command"]


# -- the newest run ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_newest_run_is_the_last_finished_one_with_an_evaluation_and_is_named(run, store):
    _, runs = store
    require = ("--experiment", "runs", "--require", "multiclass/accuracy >= 0")
    done = run("gate", "--latest", *require, "--json")
    assert data(done)["run"]["run_id"] == runs["plain"]
    assert f"The newest run is {runs['plain']}, “plain”, started 2" in done.stderr
    done = run("gate", "--latest", "--filter", "tags.job = '0'", *require, "--json")
    assert data(done)["run"]["run_id"] == runs["good"]
    for command in ("show", "threshold"):
        more = ("--maximize", "binary/recall") if command == "threshold" else ()
        done = run(
            command,
            "--latest",
            "--experiment",
            "runs",
            "--filter",
            "tags.job = '1'",
            *more,
            "--json",
        )
        assert f"The newest run is {runs['fair']}" in done.stderr
    assert run("gate", "--latest", *require[:3], "multiclass/accuracy > 0.99").exit_code == 1


@pytest.mark.parametrize(
    "words", [(), ("--require", "multiclass/accuracy >"), ("--against", "x", "--rank-by", "a=b")]
)
def test_a_gate_that_cannot_judge_asks_no_store(run, words):
    assert "The newest run is" not in refusal(
        run("gate", "--latest", "--experiment", "runs", *words)
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("--latest", "--experiment", "empty"),
            "no finished run with an evaluation in 'empty'; `cmtrack push` sends",
        ),
        (
            ("--latest", "--experiment", "runs", "--filter", "tags.job = '7'"),
            "that matches \"tags.job = '7'\"",
        ),
        (("--latest", "--experiment", "runs", "--prefix", "val/"), "under the prefix 'val/'"),
        (("--latest", "--experiment", "run"), "there is no experiment 'run'"),
        (
            ("--latest", "--experiment", "runs", "--filter", "tags.job = = 7"),
            "the tracking store refused the search",
        ),
        (("--latest", "good"), "name a RUN, or use --latest for the newest one"),
        ((), "name a RUN, or use --latest for the newest one"),
        (("good", "--experiment", "runs"), "--experiment and --filter need --latest"),
    ],
    ids=["empty", "filter", "prefix", "experiment", "grammar", "both", "neither", "without"],
)
def test_no_newest_run_is_no_verdict(run, words, said):
    assert said in refusal(run("gate", *words, "--require", "multiclass/accuracy >= 0"))
