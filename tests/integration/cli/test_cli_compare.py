"""Comparing runs from the command line: what is printed, where, and with which exit code."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import mlflow
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result

import cmtrack
from cmtrack import Grouping, log_evaluation
from cmtrack.cli import main
from cmtrack.tracking import quiet, tracking_store
from support import ROOT
from support.problems import random_labels, random_probabilities
from support.stores import sqlite_store

pytestmark = pytest.mark.usefixtures("undrawn")

N = 240
LEVEL = Grouping({"low": [0, 1], "high": [2, 3]}, "strict", name="level")
PARITY = "name: parity\ngroups: {even: [0, 2], odd: [1, 3]}\nmode: strict\n"
MCC = "binary/matthews_corrcoef"


@dataclass(frozen=True)
class Filled:
    """A store with runs, by name."""

    uri: str
    client: Any
    runs: dict[str, str]


def filled(folder: Path, kinds: dict[str, dict[str, Any]], experiment: str = "runs") -> Filled:
    """Log simulated classifiers, without their figures, which are the slow part."""
    uri = sqlite_store(folder / "mlflow.db")
    y, runs = random_labels(N, 4), {}
    with quiet(), tracking_store(uri):
        client = mlflow.MlflowClient()
        place = client.create_experiment(
            experiment, artifact_location=(folder / "artifacts").as_uri()
        )
        for name, kind in kinds.items():
            with mlflow.start_run(experiment_id=place, run_name=name) as run:
                mlflow.log_params({"depth": len(runs), **kind.pop("params", {})})
                truth = kind.pop("truth", y)
                p = random_probabilities(
                    truth, 4, kind.pop("skill", 1.5), kind.pop("seed", len(runs))
                )
                log_evaluation(
                    truth,
                    y_prob=kind.pop("prob", p),
                    **({"grouping": LEVEL, "strict": True} | kind),
                )
            runs[name] = str(run.info.run_id)
    return Filled(uri, client, runs)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Filled:
    """Three classifiers of one data set, one of another, and runs that cannot be judged."""
    folder = tmp_path_factory.mktemp("store")
    other = random_labels(180, 4, 5)
    always = np.tile([0.4, 0.3, 0.2, 0.1], (N, 1))
    kinds: dict[str, dict[str, Any]] = {
        "good": {"skill": 2.2},
        "[red]fair[/red]": {"skill": 1.9},
        "poor": {"skill": 0.1},
        "counted": {"skill": 1.2, "predictions": False},
        "elsewhere": {"truth": other, "skill": 2.0},
        "constant": {"prob": always},
        "damaged": {},
        "newer": {},
    }
    made = filled(folder, kinds)
    experiment = made.client.get_experiment_by_name("runs").experiment_id
    for number in range(12):
        name = f"unjudged {number}"
        made.runs[name] = made.client.create_run(experiment, run_name=name).info.run_id
    place = {
        name: folder / "artifacts" / made.runs[name] / "artifacts" for name in ("damaged", "newer")
    }
    (place["damaged"] / "cmtrack_evaluation.json").write_text("{")
    newer = place["newer"] / "cmtrack_evaluation.json"
    newer.write_text(json.dumps(json.loads(newer.read_text()) | {"schema": 99}))
    made.client.delete_tag(made.runs["newer"], "cmtrack.digests")
    made.client.create_experiment("empty")
    return made


@pytest.fixture
def run(store: Filled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run a command on the store, in an empty folder; the names of runs stand for their ids."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CMTRACK_CACHE", str(tmp_path / "cache"))
    for name in ("MLFLOW_TRACKING_URI", "MLFLOW_EXPERIMENT_NAME", "MLFLOW_EXPERIMENT_ID"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "parity.yaml").write_text(PARITY)

    def invoke(
        command: str, *arguments: str, width: int = 120, uri: str | None = store.uri
    ) -> Result:
        monkeypatch.setenv("COLUMNS", str(width))
        given = [store.runs.get(argument, argument) for argument in arguments]
        where = [] if uri is None else ["--tracking-uri", uri]
        return CliRunner().invoke(main, [command, *given, *where])

    return invoke


THREE = ("good", "[red]fair[/red]", "poor")
ALL = ("--experiment", "runs")


def ok(result: Result, code: int = 0) -> Result:
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result


def flat(text: str) -> str:
    """Return a text without its line breaks."""
    return " ".join(text.split())


def refused(result: Result, code: int) -> str:
    """The one sentence of a refusal."""
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    lines = [line for line in result.stderr.splitlines() if line.startswith("Error: ")]
    assert len(lines) == 1, result.stderr
    return lines[0]


def row(text: str, name: str) -> str:
    """The line of a table that begins with a rank and this name."""
    found = [
        line
        for line in text.splitlines()
        if line.split(maxsplit=1)[1:] and line.split()[0].isdigit()
    ]
    return next(line for line in found if name in line[: 25 + len(name)])


# -- compare ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_table_says_who_leads_and_who_is_behind(run: Any, store: Filled) -> None:
    text = ok(run("compare", *THREE)).stdout
    direct = cmtrack.compare([store.runs[name] for name in THREE], tracking_uri=store.uri)
    assert direct.summary().split(".")[0] in text
    for part in (
        "3 runs on 240 rows, by binary/matthews_corrcoef",
        "from the best other",
        "status",
        "95% interval",
    ):
        assert part in text
    first, last = direct.runs[0], direct.runs[-1]
    assert "chosen" in row(text, first.name)
    assert f"{first.value:.3f} [{first.interval[0]:.3f}, {first.interval[1]:.3f}]" in row(
        text, first.name
    )
    assert last.name == "poor"
    assert "ruled out" in row(text, "poor")
    shown = (
        f"{last.difference:.3f} [{last.difference_low:.3f}, {last.difference_high:.3f}]".replace(
            "-", "−"
        )
    )
    assert shown in row(text, "poor")
    assert "[red]fair[/red]" in row(text, "fair")


@pytest.mark.slow
@pytest.mark.parametrize("width", [70, 80, 100, 120, 200])
@pytest.mark.parametrize(
    "rank_by", [(), ("--rank-by", "binary/roc_auc", "--rank-by", "multiclass/accuracy")]
)
def test_a_narrow_terminal_gets_fewer_columns(
    run: Any, store: Filled, width: int, rank_by: tuple[str, ...]
) -> None:
    text = ok(run("compare", *THREE, *rank_by, width=width)).stdout
    assert max(map(len, text.splitlines())) <= width
    assert "status" in text
    # of the interval and the p-value of a status at least one stays; single intervals go first
    if not rank_by:
        assert text.count("[95% interval]") == (2 if width >= 100 else 1)
        assert all(store.runs[name][:8] in text for name in THREE)
        table, _, hidden = text.partition("The terminal is too narrow to show: ")
        assert "from the best other" in table
        assert ("p (of being" in table) == (width >= 80)
        assert hidden.startswith("p (of being the best)") == (width < 80)


@pytest.mark.slow
def test_the_table_is_first_and_at_most_three_sentences_follow(run: Any) -> None:
    asked = ("good", "[red]fair[/red]", "constant", "--confidence-level", "0.9999")
    brief = ok(run("compare", *asked)).stdout
    table, decision, unranked = brief.strip().split("\n\n")
    assert table.startswith("2 of 3 runs on 240 rows, by binary/matthews_corrcoef\n")
    assert "constant" not in table
    assert 1 <= len(re.findall(r"[^.]+\.(?=\s|$)", decision)) <= 3
    assert unranked.startswith("Not ranked:\n  “constant”: ")
    verbose = ok(run("compare", *asked, "--verbose")).stdout
    assert verbose.startswith(table)
    assert verbose.count("Not ranked") == brief.count("Not ranked") == 1
    for sentence in ("A run is ruled out as the best if p", "Its Matthews correlation for"):
        assert sentence in verbose
        assert sentence not in brief


@pytest.mark.slow
def test_what_is_not_ranked_is_listed_by_its_reason(run: Any) -> None:
    text = ok(run("compare", *ALL, "--require", "binary/recall >= 0.6")).stdout
    stopped, left = text.split("Failed a gate:")[1].split("Not ranked:")
    assert "“poor”: binary/recall >= 0.6 (is 0." in stopped
    listed = flat(left)
    assert listed.count("unjudged") == 10
    assert "and 2 more: it has no evaluation" in listed
    assert "“damaged”: " in listed
    assert "“newer”: " in listed
    assert "schema" in listed


@pytest.mark.slow
def test_runs_of_different_data_get_rankings_of_their_own(run: Any) -> None:
    text = ok(run("compare", "good", "poor", "elsewhere")).stdout
    headings = [
        line for line in text.splitlines() if line.startswith("Ranking ") and ", by " in line
    ]
    assert len(headings) == 2
    assert headings[0].startswith("Ranking 1 of 2: 2 runs on 240 rows, by binary/matthews_corrcoef")
    assert headings[1].startswith("Ranking 2 of 2: 1 run on 180 rows, by binary/matthews_corrcoef")
    assert not any(
        word in heading for heading in headings for word in ("classes", "weight", "grouping")
    )
    assert text.index("good") < text.index(headings[1])
    alone = text[text.index(headings[1]) :]
    assert "difference" not in alone
    assert "leads" in row(alone, "elsewhere")
    assert "chosen" not in row(alone, "elsewhere")


@pytest.mark.slow
def test_a_run_without_predictions_is_compared_without_pairing(run: Any) -> None:
    text = ok(run("compare", "good", "counted")).stdout
    assert "Not compared row by row:" in text


@pytest.mark.slow
def test_a_pareto_front(run: Any) -> None:
    front = ok(
        run("compare", *THREE, "--rank-by", "binary/roc_auc", "--rank-by", "prevalence/bias")
    ).stdout
    for part in ("the Pareto front of binary/roc_auc, prevalence/bias", "chosen"):
        assert part in front


@pytest.mark.slow
def test_ties_are_broken_by_the_rule(run: Any, store: Filled) -> None:
    asked = ("--confidence-level", "0.999", "--tie-breaker", "params.depth desc", "--margin", "1")
    text = ok(run("compare", "good", "[red]fair[/red]", *asked)).stdout
    direct = cmtrack.compare(
        [store.runs["good"], store.runs["[red]fair[/red]"]],
        confidence_level=0.999,
        tie_breakers=["params.depth desc"],
        margin=1,
        tracking_uri=store.uri,
    )
    assert direct.best is not None
    assert len(direct.rankings[0].tied) == 2
    assert direct.best.name == "[red]fair[/red]"
    assert "chosen" in row(text, "[red]fair[/red]")
    assert "chosen" not in row(text, "good")
    assert "99.9% interval" in text


def test_json_and_csv_hold_the_comparison(run: Any, store: Filled, tmp_path: Path) -> None:
    result = ok(run("compare", *THREE, "--json", "--csv", "out.csv"))
    assert result.stdout.count("\n") == 1
    direct = cmtrack.compare([store.runs[name] for name in THREE], tracking_uri=store.uri)
    assert json.loads(result.stdout).keys() == direct.to_dict().keys()
    frame = pd.read_csv(tmp_path / "out.csv")
    assert len(frame) == 3
    assert list(frame["run_id"]) == [ranked.run_id for ranked in direct.runs]


@pytest.mark.slow
def test_another_grouping_of_a_file(run: Any, store: Filled) -> None:
    options = ("--grouping", "parity.yaml", "--positive", "even")
    text = ok(run("compare", *THREE, *options)).stdout
    direct = cmtrack.compare(
        [store.runs[name] for name in THREE],
        grouping=Grouping({"even": [0, 2], "odd": [1, 3]}, "strict", name="parity"),
        positive="even",
        tracking_uri=store.uri,
    )
    assert f"{direct.runs[0].value:.3f}" in row(text, direct.runs[0].name)
    assert "--positive must be one of ['even', 'odd'], got 'x'" in refused(
        run("compare", *THREE, "--grouping", "parity.yaml", "--positive", "x"), 2
    )


@pytest.mark.slow
def test_several_stores_are_one(run: Any, store: Filled, tmp_path: Path) -> None:
    second = filled(tmp_path, {"abroad": {"skill": 1.7}})
    text = ok(run("compare", *ALL, "--tracking-uri", second.uri)).stdout
    assert "abroad" in text
    assert "chosen" in row(text, "good")


@pytest.mark.slow
def test_models_over_folds(run: Any, tmp_path: Path) -> None:
    kinds: dict[str, dict[str, Any]] = {
        f"{model} {fold}": {
            "params": {"model": model, "fold": fold},
            "truth": random_labels(120, 4, fold),
            "skill": skill,
            "seed": 10 * fold + place,
        }
        for fold in range(4)
        for place, (model, skill) in enumerate({"forest": 2.5, "stump": 0.3}.items())
    }
    folds = filled(tmp_path, kinds)
    asked = (
        *ALL,
        "--block",
        "params.fold",
        "--model",
        "params.model",
        "--rank-by",
        "multiclass/accuracy",
    )
    for width in (70, 120):
        text = ok(run("compare", *asked, uri=folds.uri, width=width)).stdout
        assert "2 models over 4 folds, by multiclass/accuracy" in text
        assert "chosen" in row(text, "forest")
        assert "±" in row(text, "stump")
        assert max(map(len, text.splitlines())) <= width


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("nowhere",), 1, "there is no run 'nowhere'"),
        (("--experiment", "run"), 1, "there is no experiment 'run'"),
        (("--experiment", "run"), 1, "did you mean 'runs'?"),
        (("--experiment", "empty"), 1, "no run was found in "),
        ((), 1, "use --experiment to name an experiment"),
        (("unjudged 1",), 1, "the run has no complete evaluation"),
        (("damaged",), 1, ""),
        ((*ALL, "--prefix", "val/"), 1, "under the prefix 'val/'"),
        ((*ALL, "--prefix", "../"), 2, "prefix must start with"),
        ((*ALL, "--rank-by", "binary/rocauc"), 2, "did you mean 'binary/roc_auc'"),
        ((*ALL, "--rank-by", "binary/tp"), 2, "neither high nor low values are better"),
        (
            (*ALL, "--rank-by", "binary/f1=1", "--rank-by", "binary/roc_auc=2"),
            2,
            "rank by one metric, or by a cost",
        ),
        (
            (*ALL, "--rank-by", "class/7/recall"),
            1,
            "no run has the metric 'class/7/recall'; did you mean",
        ),
        ((*ALL, "--require", "binary/recall => 1"), 2, "at character 15"),
        ((*ALL, "--require", "binary/recall > x"), 2, "expected a number after '>' (character 16)"),
        ((*ALL, "--require", "binary/recal > 1"), 2, "did you mean 'binary/recall'"),
        (
            (*ALL, "--require", "binary/recall.difference > 0"),
            2,
            "needs a baseline: give --against",
        ),
        ((*ALL, "--against", "nowhere"), 1, "there is no run 'nowhere'"),
        ((*ALL, "--tie-breaker", "speed"), 2, "a tie-breaker must be a metric"),
        ((*ALL, "--filter", "bogus = 3"), 1, "the tracking store refused the search"),
        (("good", "--filter", "params.depth = '1'"), 2, "--filter limits the runs"),
        ((*ALL, "--positive", "low"), 2, "--positive needs --grouping"),
        ((*ALL, "--grouping", "nothing.yaml"), 2, "does not exist"),
        ((*ALL, "--model", "params.model"), 2, "need --block"),
        ((*ALL, "--block", "fold"), 1, "block must read"),
        ((*ALL, "--confidence-level", "1"), 2, "confidence-level"),
        ((*ALL, "--limit", "0"), 2, "limit"),
        (("good", "--csv", "missing/x.csv"), 1, "missing/x.csv cannot be written: "),
    ],
)
def test_bad_input_is_one_sentence(
    run: Any, arguments: tuple[str, ...], code: int, says: str
) -> None:
    if arguments == ("damaged",):  # it was found and cannot be read: that is said, in no ranking
        text = " ".join(ok(run("compare", *arguments)).stdout.split())
        assert "damaged" in text.split("Not ranked:")[1]
        return
    assert says in refused(run("compare", *arguments), code)


@pytest.mark.parametrize("command", ["compare", "review", "regroup", "gate"])
def test_a_silent_server_is_said_at_once(run: Any, command: str) -> None:
    options = {
        "regroup": ("--grouping", "parity.yaml"),
        "gate": ("--require", "binary/f1 > 0"),
    }.get(command, ())
    start = time.monotonic()
    said = refused(
        run(command, "x", *options, uri="http://127.0.0.1:9"), 2 if command == "gate" else 1
    )
    assert "does not answer" in said
    assert time.monotonic() - start < 15
    assert "MLFLOW_TRACKING_URI" not in os.environ


# -- review ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_review_is_written_in_every_form(run: Any, tmp_path: Path) -> None:
    outputs = [part for name in ("a.html", "deep/b.md", "c.json") for part in ("--output", name)]
    text = ok(run("review", *THREE, *outputs, "--csv", "d.csv")).stdout
    assert text.startswith("Take ") or " may be the best: " in text
    assert "deep/b.md" in text
    assert "good" in (tmp_path / "a.html").read_text(encoding="utf-8")
    assert "good" in (tmp_path / "deep" / "b.md").read_text(encoding="utf-8")
    assert "good" in json.dumps(json.loads((tmp_path / "c.json").read_text(encoding="utf-8")))
    assert len(pd.read_csv(tmp_path / "d.csv")) == 3
    data = json.loads(ok(run("review", "good", "poor", "--json")).stdout)
    assert data["output"] == ["review.html"]
    assert data["logged"] is None
    assert (tmp_path / "review.html").exists()


@pytest.mark.slow
def test_a_review_is_logged(run: Any, tmp_path: Path) -> None:
    own = filled(tmp_path, {"good": {"skill": 2.0}, "poor": {"skill": 0.2}})
    asked = (*ALL, "--output", "r.md", "--log", "--experiment-for-review", "reviews")
    data = json.loads(ok(run("review", *asked, "--json", uri=own.uri)).stdout)
    made = own.client.get_run(data["logged"]["run_id"])
    assert own.client.get_experiment(made.info.experiment_id).name == "reviews"
    assert own.client.get_run(own.runs["good"]).data.tags["cmtrack.rank"] == "1"
    text = ok(run("review", *ALL, "--output", "r.md", "--log", uri=own.uri)).stdout
    assert "2 runs got the tags cmtrack.rank and cmtrack.review." in text
    assert refused(run("review", *asked, "--alias", "champion", uri=own.uri), 1)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--output", "review.txt"), "--output must end in .html, .md, .json"),
        (("--alias", "x"), "--alias needs --log"),
        (("--experiment-for-review", "x"), "--experiment-for-review needs --log"),
        (("--log", "--registered-model", "x"), "--registered-model needs --alias"),
    ],
)
def test_a_review_refuses_what_it_cannot_do(
    run: Any, tmp_path: Path, arguments: tuple[str, ...], says: str
) -> None:
    assert says in refused(run("review", *THREE, *arguments), 2)
    assert not list(tmp_path.glob("review*"))


# -- regroup ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_regroup_writes_beside_what_is_there(run: Any, tmp_path: Path) -> None:
    own = filled(
        tmp_path, {"good": {"skill": 2.0}, "poor": {"skill": 0.2}, "old": {"predictions": False}}
    )
    experiment = own.client.get_experiment_by_name("runs").experiment_id
    own.client.create_run(experiment, run_name="bare")
    asked = (*ALL, "--grouping", "parity.yaml")
    planned = ok(run("regroup", *asked, "--dry-run", uri=own.uri)).stdout
    assert (
        "3 of 4 runs would be regrouped under the prefix 'parity_'; nothing was written." in planned
    )
    before = own.client.get_run(own.runs["good"]).data.metrics
    assert not any(name.startswith("parity_") for name in before)

    for width in (70, 120):
        text = ok(run("regroup", *asked, uri=own.uri, width=width)).stdout
        assert (
            max(len(line) for line in text.splitlines() if "cmtrack compare" not in line) <= width
        )
        assert "“bare”: it has no evaluation" in text
    after = own.client.get_run(own.runs["good"]).data.metrics
    shown = f"{before[MCC]:.3f} → {after[f'parity_{MCC}']:.3f}"
    assert shown in next(line for line in text.splitlines() if "good" in line)
    assert "3 of 4 runs were regrouped under the prefix 'parity_'." in text
    assert f"cmtrack compare --experiment runs --prefix parity_ --tracking-uri {own.uri}" in text
    assert "(1 of 3 runs)" in text
    ranked = ok(run("compare", *ALL, "--prefix", "parity_", uri=own.uri)).stdout
    assert "chosen" in row(ranked, "good")
    only_poor = (
        own.runs["poor"],
        "--grouping",
        "parity.yaml",
        "--positive",
        "even",
        "--prefix",
        "p/",
        "--json",
    )
    data = json.loads(ok(run("regroup", *only_poor, uri=own.uri)).stdout)
    assert data["prefix"] == "p/"
    assert [entry["status"] for entry in data["runs"]] == ["completed"]
    assert own.client.get_run(own.runs["poor"]).data.tags["cmtrack.p.positive"] == "even"


def test_regroup_fails_where_every_run_is_left_out(run: Any) -> None:
    result = ok(run("regroup", "unjudged 1", "unjudged 2", "--grouping", "parity.yaml"), 1)
    assert "“unjudged 1”, “unjudged 2”: it has no evaluation" in result.stdout
    assert "Error: no run was regrouped" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("--grouping", "parity.yaml"), 2, "name runs, or an experiment"),
        (("good",), 2, "--grouping"),
        (
            ("good", "--grouping", "parity.yaml", "--filter", "params.depth = '1'"),
            2,
            "--filter limits the runs",
        ),
        (("good", "--grouping", "parity.yaml", "--prefix", "../"), 2, "prefix must start with"),
        (
            ("good", "--grouping", "parity.yaml", "--prefix", ""),
            1,
            "would overwrite the run's own evaluation",
        ),
        (("nowhere", "--grouping", "parity.yaml"), 1, "there is no run 'nowhere'"),
        (("--experiment", "empty", "--grouping", "parity.yaml"), 1, "no run was found in "),
        (("--experiment", "nope", "--grouping", "parity.yaml"), 1, "there is no experiment 'nope'"),
    ],
)
def test_regroup_refuses_in_one_sentence(
    run: Any, arguments: tuple[str, ...], code: int, says: str
) -> None:
    assert says in refused(run("regroup", *arguments), code)


# -- gate ------------------------------------------------------------------------------------------------------


def test_a_gate_passes_and_fails_by_its_exit_code(run: Any) -> None:
    passed = ok(run("gate", "good", "--against", "poor", width=200), 0)
    assert passed.stdout.startswith("Gate: passed\n“good (")
    assert re.search(
        r"than the baseline in binary/matthews_corrcoef +difference 0\.\d.+ +passes", passed.stdout
    )
    failed = ok(run("gate", "poor", "--against", "good", width=200), 1)
    assert failed.stdout.startswith("Gate: failed\n“poor (")
    assert re.search(r"difference −0\..+ +fails", failed.stdout)
    # Rich before 14 ends a bar that it does not draw with empty lines
    assert not failed.stderr.strip()


@pytest.mark.parametrize("width", [60, 80, 200])
def test_a_terminal_gets_text_and_a_summary_markdown(run: Any, tmp_path: Path, width: int) -> None:
    asked = (
        "gate",
        "good",
        "--against",
        "poor",
        "--require",
        f"{MCC}.difference.low > 0",
        "--summary",
        "s.md",
    )
    text = ok(run(*asked, width=width), 0).stdout
    assert not re.search(r"[|`]|\*\*|#", text)
    assert max(map(len, text.splitlines())) <= width
    summary = (tmp_path / "s.md").read_text()
    assert summary.startswith("### Gate: passed\n\n`good (")
    assert f"| `{MCC}.difference.low > 0` | 0." in summary
    assert "|---|---|---|" in summary


def test_an_open_gate_cannot_tell_and_says_how_many_rows_would_decide(
    run: Any, tmp_path: Path
) -> None:
    asked = ("gate", "good", "--require")
    metric = "multiclass/accuracy"
    passing = json.loads(ok(run(*asked, f"{metric} >= 0", "--json"), 0).stdout)
    assert (passing["answer"], passing["rows_more"]) == ("promote", None)
    value = passing["gates"][0]["value"]
    gate = (*asked, f"{metric}.low >= {value - 0.03}")
    data = json.loads(ok(run(*gate, "--json"), 1).stdout)
    assert data["answer"] == "cannot tell"
    assert data["rows_more"] > 0
    first = ok(run(*gate, "--summary", "s.md", width=200), 1).stdout.splitlines()[0]
    assert re.fullmatch(r"Gate: failed \(cannot tell: about [\d,]+ more rows would decide\)", first)
    assert (tmp_path / "s.md").read_text().startswith(f"### {first}\n")
    refuted = (*asked, f"{metric}.low >= 1")
    assert ok(run(*refuted), 1).stdout.startswith("Gate: failed\n")
    assert json.loads(ok(run(*refuted, "--json"), 1).stdout)["answer"] == "keep"


@pytest.mark.slow
def test_a_gate_names_the_review_of_its_run(run: Any, store: Filled) -> None:
    with tracking_store(store.uri):
        before = ok(run("gate", "good", "--against", "poor"), 0).stdout
        review = cmtrack.compare([store.runs[name] for name in ("good", "poor")], rank_by=MCC).log()
    said = ok(run("gate", "good", "--against", "poor"), 0).stdout
    assert said == f"{before}See the review: run {review.run_id}\n"
    mlflow.MlflowClient(store.uri).delete_run(review.run_id)
    assert ok(run("gate", "good", "--against", "poor"), 0).stdout == before


def test_a_gate_knows_which_way_is_better(run: Any) -> None:
    for metric in ("reduced/level/mismatch_rate", "binary/fnr"):
        ok(run("gate", "good", "--against", "poor", "--rank-by", metric), 0)
        ok(run("gate", "poor", "--against", "good", "--rank-by", metric), 1)


@pytest.mark.slow
def test_gates_are_judged_one_by_one(run: Any, store: Filled, tmp_path: Path) -> None:
    gates = ("--require", f"{MCC}.difference.low > 0", "--require", "multiclass/accuracy >= 0.99")
    asked = ("gate", "good", "--against", "poor", *gates, "--summary", "summary.md")
    (tmp_path / "summary.md").write_text("# Before\n")
    data = json.loads(ok(run(*asked, "--json"), 1).stdout)
    assert data["passed"] is False
    assert [gate["passed"] for gate in data["gates"]] == [True, False]
    assert data["run"]["run_id"] == store.runs["good"]
    assert data["baseline"]["name"] == "poor"
    assert data["paired"] is True
    with tracking_store(store.uri):
        good, poor = (
            cmtrack.load_evaluation(store.runs[name], rows=True) for name in ("good", "poor")
        )
    gap = cmtrack.paired_differences(good, poor, metrics=[MCC])[MCC]
    assert data["gates"][0]["value"] == pytest.approx(gap.low)
    summary = (tmp_path / "summary.md").read_text()
    assert summary.startswith("# Before\n### Gate: failed")
    assert f"| `{MCC}.difference.low > 0` |" in summary
    assert "| **fails** |" in summary
    ok(run(*asked), 1)
    assert (tmp_path / "summary.md").read_text().count("### Gate: failed") == 2


def test_a_gate_at_other_shares_does_not_speak_of_the_weights_that_make_them(
    run: Any, tmp_path: Path
) -> None:
    (tmp_path / "rule.yaml").write_text("require: ['multiclass/accuracy >= 0.5']\nat: 0.1\n")
    printed = ok(run("gate", "good", "--rule", "rule.yaml", "--summary", "s.md"), 0).stdout
    for text in (printed, (tmp_path / "s.md").read_text()):
        assert f", {N} rows." in text
        assert "weight" not in text


@pytest.mark.slow
def test_a_gate_without_a_baseline_and_with_another_grouping(run: Any) -> None:
    ok(run("gate", "good", "--require", "multiclass/accuracy >= 0.5"), 0)
    ok(
        run(
            "gate",
            "good",
            "--require",
            "reduced/parity/accuracy > 0.3",
            "--grouping",
            "parity.yaml",
        ),
        0,
    )
    failed = ok(run("gate", "constant", "--require", f"{MCC} > 0"), 1)
    assert f"{MCC} is undefined" in failed.stdout
    unpaired = ok(
        run("gate", "good", "--against", "counted", "--require", f"{MCC}.difference > -1"), 0
    )
    assert "not compared row by row: the second evaluation has no rows" in flat(unpaired.stdout)
    same = ok(run("gate", "good", "--against", "good"), 0)
    assert "it is the baseline itself" in same.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("good",), "give --against or --require (or both)"),
        (("good", "--require", "binary/recall.difference > 0"), "needs a baseline: give --against"),
        (("good", "--require", "binary/recall >"), "expected a number after"),
        (
            ("good", "--require", "class/9/recall > 0"),
            "the run has no 'class/9/recall'; did you mean",
        ),
        (
            ("good", "--against", "poor", "--require", "binary/f1 > 0", "--rank-by", "binary/f1"),
            "not both",
        ),
        (
            ("good", "--against", "poor", "--rank-by", "binary/f1", "--rank-by", "binary/recall"),
            "a run is checked against a baseline in one metric, got binary/f1, binary/recall: give one, or use",
        ),
        (("nowhere", "--require", "binary/recall > 0"), "there is no run 'nowhere'"),
        (("good", "--against", "nowhere"), "there is no run 'nowhere'"),
        (
            ("good", "--against", "models:/nothing@champion"),
            "there is no model 'models:/nothing@champion'",
        ),
        (("unjudged 1", "--require", "binary/recall > 0"), "the run has no complete evaluation"),
        (("damaged", "--require", "binary/recall > 0"), "the run 'damaged' cannot be checked"),
        (("newer", "--against", "good"), "the run 'newer' cannot be checked"),
        (("good", "--against", "newer"), "the baseline 'newer' cannot be read"),
        (
            ("good", "--against", "elsewhere"),
            "cannot be compared: they were evaluated on different evaluation data",
        ),
        (
            ("good", "--against", "elsewhere", "--require", f"{MCC}.difference > 0"),
            "cannot be compared",
        ),
        (
            ("constant", "--against", "good"),
            f"'constant' cannot be checked: {MCC} is undefined: the run predicts only “low”; ",
        ),
        (
            ("good", "--require", "binary/f1 > 0", "--summary", "missing/summary.md"),
            "cannot be written",
        ),
    ],
)
def test_what_cannot_be_judged_has_its_own_exit_code(
    run: Any, arguments: tuple[str, ...], says: str
) -> None:
    assert says in refused(run("gate", *arguments), 2)


def test_a_gate_against_the_champion(run: Any, tmp_path: Path) -> None:
    own = filled(tmp_path, {"good": {"skill": 2.0}, "poor": {"skill": 0.2}})
    source = own.client.get_run(own.runs["good"]).info.artifact_uri
    own.client.create_registered_model("party")
    version = own.client.create_model_version(
        "party", source=source, run_id=own.runs["good"]
    ).version
    own.client.set_registered_model_alias("party", "champion", version)
    champion = ("--against", "models:/party@champion")
    failed = ok(run("gate", own.runs["poor"], *champion, uri=own.uri), 1)
    assert f" against “good ({own.runs['good'][:8]})”, 240 rows." in failed.stdout
    assert (
        "it is the baseline itself"
        in ok(run("gate", own.runs["good"], *champion, uri=own.uri)).stdout
    )
    predictions = (
        tmp_path / "artifacts" / own.runs["good"] / "artifacts" / "cmtrack_predictions.parquet"
    )
    predictions.write_bytes(b"no parquet")
    unpaired = ok(run("gate", own.runs["poor"], *champion, uri=own.uri), 1)
    assert "Note: good: compared without its predictions by row" in unpaired.stdout


def test_an_interrupted_gate_is_no_failed_gate(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("mlflow.MlflowClient.get_run", interrupt)
    assert "interrupted" in refused(run("gate", "good", "--require", "binary/f1 > 0"), 2)


# -- help ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["compare", "review", "regroup", "gate"])
def test_help_loads_nothing_heavy(command: str, tmp_path: Path) -> None:
    code = (
        "import sys, contextlib, io\n"
        "from cmtrack.cli import main\n"
        "with contextlib.redirect_stdout(io.StringIO()) as out:\n"
        "    main(sys.argv[1:], standalone_mode=False)\n"
        "heavy = {'mlflow', 'pandas', 'sklearn', 'matplotlib', 'numpy', 'scipy', 'rich'} & set(sys.modules)\n"
        "print(sorted(heavy), len(out.getvalue()) > 100)\n"
    )
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    }
    done = subprocess.run(
        [sys.executable, "-c", code, command, "--help"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment,
        check=False,
    )
    assert done.stdout == "[] True\n", done.stderr


def test_the_package_runs_as_a_module(tmp_path: Path) -> None:
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    }
    command = [sys.executable, "-m", "cmtrack", "--help"]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=True
    )
    assert done.stdout.startswith("Usage: python -m cmtrack [OPTIONS] COMMAND [ARGS]...\n")
    assert "\n  evaluate " in done.stdout


def test_the_list_of_commands_has_whole_sentences(run: Any) -> None:
    listed = (
        CliRunner()
        .invoke(main, ["--help"], terminal_width=80)
        .stdout.partition("\n\nEvaluate and log:\n")[2]
        .splitlines()
    )
    listed = [line for line in listed if line.startswith("  ")]
    assert len(listed) == len(main.commands)
    assert [line for line in listed if not line.endswith(".") or line.endswith("...")] == []


NAMES = (
    "Experiment",
    "Metric",
    "Baseline",
    "Prefix",
    "Runs",
    "File",
    "Its",
    "The",
    "What",
    "Repeated",
    "YAML",
)


@pytest.mark.parametrize("command", ["compare", "review", "gate", "verify"])
def test_help_texts_are_sentences(command: str) -> None:
    options = [one for one in main.commands[command].params if isinstance(one, click.Option)]
    texts = [str(option.help).split("  [")[0] for option in options]
    assert all(text.endswith(".") and text.split()[0] not in NAMES for text in texts), texts


def test_help_says_the_exit_codes(run: Any) -> None:
    text = ok(run("gate", "--help", uri=None)).stdout
    for part in ("0  the run passes", "1  a gate fails", "2  the gates could not be checked"):
        assert part in text
    assert ok(run("compare", "--help", uri=None)).stdout.count(" --") >= 18
    shared = set(ok(run("compare", "--help", uri=None)).stdout.split())
    of_files = {"--y-true", "--y-true,", "--y-pred", "--y-prob", "--y-score"}
    of_files |= {"--weight", "--groups", "--row-ids"}
    assert {option for option in shared if option.startswith("--")} - of_files <= set(
        ok(run("review", "--help", uri=None)).stdout.split()
    )
