"""Reviews that one can sign: their record, the bundle that holds what they are computed from, and its verification."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import re
import sqlite3
import warnings
import zipfile
from dataclasses import replace
from types import SimpleNamespace

import mlflow
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import cmtrack
from cmtrack import (
    Costs,
    Grouping,
    Metric,
    compare,
    evaluate,
    evaluate_families,
    log_evaluation,
    removed,
)
from cmtrack.cli import main
from cmtrack.comparison import CompareSpec
from cmtrack.report.review import Review, context, html, markdown
from cmtrack.tracking import quiet, tracking_store
from support import TESTS
from support.problems import random_labels, random_probabilities
from support.stores import sqlite_store

N = 240
Y = random_labels(N, 3)
ACCURACY = "multiclass/accuracy"
GROUPS = Grouping({"low": [0, 1], "high": [2]}, positive="high", name="ends")
SKILLS = {"strong": 2.2, "fair": 2.0, "weak": 0.4}


def made(**options):
    return {
        name: evaluate(Y, y_prob=random_probabilities(Y, 3, skill, k), **options)
        for k, (name, skill) in enumerate(SKILLS.items())
    }


@pytest.fixture(autouse=True)
def review_undrawn(request, monkeypatch):
    """Figures are the slow part, and no number is read from one."""
    if request.function is not test_a_page_with_its_figures_is_verified:
        # Inside: a bundle and its verification draw all figures, and no option leaves them out.
        monkeypatch.setattr("cmtrack.report.figures.draw_pictures", lambda *_, **__: {})


@pytest.fixture(scope="module")
def runs():
    return made()


@pytest.fixture(scope="module")
def world(tmp_path_factory, undrawn):
    """A store with three runs with parameters, and one that a gate stops by its logged value; their ids."""
    folder = tmp_path_factory.mktemp("world")
    uri, ids = sqlite_store(folder / "mlflow.db"), {}
    with quiet(), tracking_store(uri):
        mlflow.create_experiment("digits", artifact_location=(folder / "artifacts").as_uri())
        mlflow.set_experiment("digits")
        for seed, (name, skill) in enumerate((SKILLS | {"bad": -1.0}).items()):
            with mlflow.start_run(run_name=name) as run:
                mlflow.log_params(
                    {"skill": skill, "depth": 10 - seed, "same": 1}
                    | ({"only": "x"} if seed == 1 else {})
                )
                log_evaluation(Y, y_prob=random_probabilities(Y, 3, skill, seed), strict=True)
            ids[name] = run.info.run_id
        mlflow.MlflowClient().create_run(run.info.experiment_id, run_name="nothing")
    return uri, ids


@pytest.fixture(scope="module")
def stored(world):
    with quiet(), tracking_store(world[0]):
        return compare(
            experiment_names=["digits"],
            require=f"{ACCURACY} >= 0.2",
            tie_breakers="params.depth",
            margin=0.3,
        )


def verify(path, *flags):
    """What ``cmtrack verify --json`` answers, as attributes, with its exit code."""
    run = CliRunner().invoke(main, ["verify", str(path), "--json", *flags])
    assert run.exit_code != 2, run.output
    return SimpleNamespace(**json.loads(run.stdout), exit_code=run.exit_code)


# -- the record ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_record_says_by_whom_when_and_from_what(stored, world):
    data = stored.to_dict()["record"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d", data["made"])
    assert data["author"] == stored.runs[0].run.tags["mlflow.user"]
    assert set(data["versions"]) == {"Python", "cmtrack", "MLflow", "NumPy", "scikit-learn"}
    assert data["stores"] == [world[0]]
    assert list(data["experiments"].values()) == ["digits"]
    assert data["parameters_that_differ"] == ["skill", "depth", "only"]
    lines = data["lines"]
    ((name, digest),) = stored.runs[0].run.datasets
    assert digest == stored.runs[0].evaluation.labels_digest
    assert lines["Data"] == f"“{name}” (digest {digest}), 240 rows"
    assert lines["Question"] == "Which run is best by Matthews correlation? Higher is better."
    assert lines["Gates"] == f"{ACCURACY} >= 0.2"
    assert lines["Tie-breakers"] == "params.depth"
    assert "at most 0.05" in lines["Decision"]
    assert "not to be worse than the best by more than 0.3" in lines["Decision"]
    listed = {run["name"]: run for run in data["runs"]}
    assert set(listed) == {*SKILLS, "bad"}
    assert {run["run_id"] for run in data["runs"]} == set(world[1].values())
    assert all(run["seconds"] > 0 and run["user"] == data["author"] for run in data["runs"])


def test_page_markdown_and_json_say_the_same_record(stored):
    page = context(Review(stored), None, {})["record"]
    assert {line["name"]: line["text"] for line in page["lines"]} == stored.to_dict()["record"][
        "lines"
    ]
    assert page["params"]["heads"] == ["Run", "Parameters"]
    cells = {row["name"]: row["cells"] for row in page["params"]["rows"]}
    assert cells["strong"] == ["skill = 2.2, depth = 10"]
    assert cells["fair"] == ["skill = 2.0, depth = 9, only = x"]
    text = markdown(stored)
    assert "| fair | skill = 2.0, depth = 9, only = x |" in text
    assert "- Made: " in text
    assert page["runs"]["heads"] == ["Run", "Id", "By", "Started (UTC)", "Run time"]


def test_runs_of_a_server_are_linked_and_no_password_is_shown(stored):
    uri = "https://me:secret@tracking.example/team/"
    ranking = stored.rankings[0]
    of_server = tuple(
        replace(
            run,
            run=replace(
                run.run, tracking_uri=uri, model_size=3_400_000, start_time=1000, end_time=126_000
            ),
        )
        for run in ranking.runs
    )
    comparison = replace(stored, rankings=(replace(ranking, runs=of_server),), failed=())
    first = of_server[0].run
    link = f"https://tracking.example/team/#/experiments/{first.experiment_id}/runs/{first.run_id}"
    page, text = html(comparison), markdown(comparison)
    assert f'<a href="{link}">' in page
    assert page.count(link) >= 2  # as text, too: links do not open inside MLflow's frame
    assert link in text
    assert "<td>3.4 MB</td>" in page
    assert "<td>2 min 5 s</td>" in page
    for said in (page, text, json.dumps(comparison.to_dict())):
        assert "secret" not in said


@pytest.mark.parametrize("uri", ["sqlite:///a.db", "javascript:alert(1)", "databricks", ""])
def test_other_stores_have_no_address(stored, uri):
    ranking = stored.rankings[0]
    runs = tuple(replace(one, run=replace(one.run, tracking_uri=uri)) for one in ranking.runs)
    comparison = replace(stored, rankings=(replace(ranking, runs=runs),), failed=())
    assert f"runs/{runs[0].run_id}" not in html(comparison) + markdown(comparison)


# -- bundles ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_same_comparison_gives_the_same_bytes(runs, tmp_path):
    comparison = compare(runs)
    first, second = (comparison.bundle(tmp_path / name).read_bytes() for name in ("a.zip", "b.zip"))
    assert first == second
    names = zipfile.ZipFile(io.BytesIO(first)).namelist()
    assert names[:-1] == sorted(names[:-1])
    assert names[-1] == "manifest.json"
    assert {"review.html", "review.md", "review.json", "rule.yaml", "runs.json"} < set(names)
    assert sum(name.endswith("cmtrack_evaluation.json") for name in names) == 3


def of_groups():
    options = {
        "rank_by": "cost/mean",
        "grouping": GROUPS,
        "positive": "low",
        "costs": Costs({(0, 2): 5}),
    }
    return compare(made(), **options, confidence_level=0.9, require="cost/mean <= 2", seed=5)


def of_baseline():
    return compare(made(), against="fair", require=f"{ACCURACY}.difference.low >= -0.2")


def of_two_data_sets():
    other = np.roll(Y, 7)
    return compare(
        made() | {"elsewhere": evaluate(other, y_prob=random_probabilities(other, 3, 2.0, 9))},
        rank_by=ACCURACY,
    )


def of_families():
    truth = [{"a1"}, {"a2", "b1"}, {"b2"}] * 12
    found = [{"a1"}, {"a1", "b1"}, {"b1"}] * 12
    named = {"a": found, "b": truth[1:] + found[:1]}
    return compare(
        {name: evaluate_families(truth, one, lambda code: code[0]) for name, one in named.items()}
    )


def of_clusters():
    return compare(
        made(groups=np.arange(N) // 4, sample_weight=np.linspace(0.5, 1.5, N)), rank_by=ACCURACY
    )


MADE = {
    "default": lambda: compare(made()),
    "front": lambda: compare(made(), rank_by=[ACCURACY, "class/0/recall"]),
    "groups-and-costs": of_groups,
    "baseline": of_baseline,
    "two-data-sets": of_two_data_sets,
    "families": of_families,
    "clusters-and-weights": of_clusters,
    "log-loss": lambda: compare(made(), rank_by="probability/log_loss"),
    "no-run-passes": lambda: compare(made(), require=f"{ACCURACY} > 0.99"),
    "one": lambda: compare({"a": made()["fair"]}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MADE)
def test_every_number_of_a_bundle_is_recomputed(name, tmp_path):
    found = verify(MADE[name]().bundle(tmp_path / "review.zip"))
    assert found.problems == []
    assert found.not_recomputed == []
    # a front has no p-values
    assert found.numbers >= {"no-run-passes": 5, "one": 5, "front": 30}.get(name, 40)


def test_runs_of_a_store_are_recomputed_and_what_is_only_stated_is_said(stored, tmp_path):
    path = stored.bundle(tmp_path / "review.zip")
    found = verify(path)
    assert found.problems == []
    assert found.numbers > 50
    assert (found.not_recomputed, found.outcome, found.exit_code) == ([], "verified", 0)
    assert found.stated == [
        "names, users, times and params of the runs, author, date, title and notes",
        "statements on 1 run that was stopped by its logged values",
        "statements on 1 run that was left out",
    ]
    about = json.loads(zipfile.ZipFile(path).read("runs.json"))
    assert {name for one in about["judged"] for name in one["run"]["tags"]} <= {
        "mlflow.runName",
        "mlflow.user",
    }
    assert {one["run"]["artifact_uri"] for one in about["judged"]} == {""}


@pytest.mark.thin(2)
@pytest.mark.slow
@pytest.mark.parametrize("by", ["seed", "fold"])
def test_models_over_repeated_runs_are_recomputed(store, tmp_path, by):
    for block in range(4):
        y = Y if by == "seed" else np.roll(Y, block + 1)
        for k, (model, skill) in enumerate({"forest": 1.5, "network": 1.4, "weak": 0.2}.items()):
            with mlflow.start_run():
                mlflow.log_params({"model": model, by: block})
                log_evaluation(
                    y, y_prob=random_probabilities(y, 3, skill, 10 * block + k), strict=True
                )
    given = {"block": f"params.{by}", "model": "params.model", "require": f"{ACCURACY} >= 0.5"}
    comparison = compare(experiment_names=["e"], **given)
    assert comparison.repeated is not None
    assert comparison.failed
    found = verify(comparison.bundle(tmp_path / "review.zip"))
    assert (found.problems, found.not_recomputed) == ([], [])
    found = verify(comparison.bundle(tmp_path / "review.zip", rows=False))
    assert found.problems == []
    assert "the rows" in found.not_recomputed[0]


@pytest.mark.slow
def test_without_rows_values_are_recomputed_and_differences_are_said_not_to_be(runs, tmp_path):
    comparison = compare(runs)
    with_rows, without = (
        comparison.bundle(tmp_path / "a.zip"),
        comparison.bundle(tmp_path / "b.zip", rows=False),
    )
    assert [ROWS in zipfile.ZipFile(path).namelist() for path in (with_rows, without)] == [
        True,
        False,
    ]
    found = verify(without)
    assert found.problems == []
    assert found.not_recomputed == [
        "differences, p-values and standings: the rows that they need were left out",
    ]
    assert (found.outcome, found.passed) == ("statistics_only", False)
    assert 0 < found.numbers < verify(with_rows).numbers
    forged(without, "review.json", lambda data: data["rankings"][0]["runs"][1].update(low=0.5))
    assert "value, low and high[1] is 0.5" in verify(without).problems[0]


@pytest.mark.slow
def test_own_metrics_and_rows_segments_are_said_not_to_be_recomputed(tmp_path):
    cost = Metric("custom/own", lambda counts: counts[0, 0] / counts.sum(), better="lower")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        own = compare(made(extra_metrics=[cost]), rank_by="custom/own")
        found = verify(own.bundle(tmp_path / "own.zip"))
    assert found.problems == []
    assert found.not_recomputed == [
        "differences in custom/own, which need its function: a bundle contains no functions",
    ]
    segments = {"segments": {"half": np.arange(N) % 2}}
    comparison = compare(made(**segments), segments="half")
    assert all(pair.paired for pair in comparison.segments)
    found = verify(comparison.bundle(tmp_path / "segments.zip"))
    assert found.problems == []
    assert found.not_recomputed == [
        "differences by half: a bundle does not contain each row's segment",
    ]


@pytest.mark.slow
def test_a_rule_file_goes_along_byte_for_byte(runs, tmp_path):
    rule = tmp_path / "agreed.yaml"
    rule.write_text("# before anyone looked\nrank_by: multiclass/accuracy\nmargin: 0.02\n")
    path = compare(runs, rule=rule).bundle(tmp_path / "review.zip")
    assert zipfile.ZipFile(path).read("rule.yaml") == rule.read_bytes()
    found = verify(path)
    assert found.passed
    assert found.rule == f"agreed.yaml, SHA-256 {hashlib.sha256(rule.read_bytes()).hexdigest()}"


def test_what_cannot_be_bundled_is_said(runs, tmp_path):
    comparison = compare(runs)
    with pytest.raises(ValueError, match=r"a bundle must end in \.zip, got 'review\.html'"):
        comparison.bundle(tmp_path / "review.html")
    with pytest.raises(ValueError, match=r"a comparison that cmtrack\.compare made"):
        replace(comparison, how={}).bundle(tmp_path / "review.zip")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_page_with_its_figures_is_verified(runs, tmp_path):
    path = compare(runs).bundle(tmp_path / "review.zip")
    assert b"<svg" in zipfile.ZipFile(path).read("review.html")
    assert verify(path).passed


def test_a_bundle_of_the_first_schema_is_read(tmp_path):
    """It was written when schema 1 was: another version may word and compute things otherwise, but must read it."""
    path = tmp_path / "bundle-1.zip"
    path.write_bytes((TESTS / "golden" / "bundle-1.zip").read_bytes())
    found = verify(path)
    assert not [
        problem
        for problem in found.problems
        if "cannot be computed" in problem or "changed" in problem
    ]
    assert found.files == 9
    assert found.made_with == "0.1.0 (golden)"


# -- changed bundles -------------------------------------------------------------------------------------------


def rewritten(path, change):
    """The same archive after a change of its files."""
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    change(files)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def forged(path, name, change):
    """The same archive after a change of one file, with its digest in the manifest changed as well."""

    def both(files):
        if name.endswith(".json"):
            data = json.loads(files[name])
            change(data)
            files[name] = json.dumps(data).encode()
        else:
            files[name] = change(files[name].decode()).encode()
        manifest = json.loads(files["manifest.json"])
        manifest["files"][name]["sha256"] = hashlib.sha256(files[name]).hexdigest()
        files["manifest.json"] = json.dumps(manifest).encode()

    return rewritten(path, both)


@pytest.fixture(scope="module")
def contents():
    """The bytes of the bundle that tests change; the first of them has it written, without figures."""
    return {}


@pytest.fixture
def path(runs, contents, tmp_path):
    path = tmp_path / "review.zip"
    if not contents:
        compare(runs, tie_breakers="class/0/recall").bundle(path)
        contents["review.zip"] = path.read_bytes()
    path.write_bytes(contents["review.zip"])
    return path


ROWS = "runs/0001/cmtrack_predictions.parquet"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            lambda f: f.update({ROWS: f[ROWS][:-5] + b"x" + f[ROWS][-4:]}),
            f"{ROWS} was changed: its SHA-256",
        ),
        (lambda f: f.update({"review.md": f["review.md"] + b" "}), "review.md was changed"),
        (
            lambda f: f.pop("runs/0002/cmtrack_evaluation.json"),
            "runs/0002/cmtrack_evaluation.json is missing",
        ),
        (lambda f: f.pop("review.html"), "review.html is missing"),
        (lambda f: f.update({"runs/0009/more.json": b"{}"}), "runs/0009/more.json was added"),
    ],
    ids=["rows", "text", "evaluation", "page", "added"],
)
def test_a_changed_file_is_named(path, change, says):
    found = verify(rewritten(path, change))
    assert not found.passed
    assert len(found.problems) == 1
    assert says in found.problems[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "change", "says"),
    [
        (
            "review.json",
            lambda d: d["rankings"][0]["runs"][0].update(value=0.99),
            "rankings[0].runs[0].value is 0.99",
        ),
        (
            "review.json",
            lambda d: d["rankings"][0]["runs"][2].update(tied=True),
            "rankings[0].runs[2].tied is True",
        ),
        (
            "review.json",
            lambda d: d["rankings"][0]["runs"].pop(),
            "rankings[0].runs has 2 entries, recomputed 3",
        ),
        ("review.json", lambda d: d["summary"].append("Take it."), "summary has"),
        ("review.json", lambda d: d.pop("rankings"), "rankings is None, recomputed"),
        (
            "review.json",
            lambda d: d["record"].update(author="someone else"),
            "record.author reads 'someone else'",
        ),
        (
            "review.json",
            lambda d: d.update(approved="yes"),
            "review.json holds 'approved', which no bundle has",
        ),
        (
            "runs.json",
            lambda d: d.update(approved="yes"),
            "runs.json holds 'approved', which no bundle has",
        ),
        ("runs.json", lambda d: d["judged"][0]["run"].update(name="x"), "reads"),
        (
            "runs.json",
            lambda d: d["criterion"].update(metrics=[ACCURACY]),
            "rankings[0].runs[0].value is",
        ),
        ("runs.json", lambda d: d["judged"].pop(), "rankings[0].runs has 3 entries, recomputed 2"),
        (
            "runs.json",
            lambda d: d["judged"][0]["run"].update(start_time="x"),
            "start_time must be a int, got 'x'",
        ),
        (
            "rule.yaml",
            lambda t: t + "confidence_level: 0.5\n",
            "confidence_level is 0.95, recomputed 0.5",
        ),
        (
            "rule.yaml",
            lambda t: t + "rank_by: class/1/recall\n",
            "rule.yaml ranks by class/1/recall, the review by",
        ),
        (
            "rule.yaml",
            lambda _: "- a",
            "cannot be computed from the bundle: rule.yaml: a rule file must map",
        ),
    ],
)
def test_a_number_that_is_not_computed_from_the_bundle_is_named(path, name, change, says):
    found = verify(forged(path, name, change))
    assert not found.passed
    assert says in found.problems[0]


@pytest.mark.slow
def test_the_fresh_page_is_the_one_to_read(path):
    genuine = zipfile.ZipFile(path).read("review.html").decode()
    forged(path, "review.html", lambda page: page.replace("<body>", "<body>Take “weak”."))
    run = CliRunner().invoke(main, ["verify", str(path)])
    fresh = path.with_suffix(".verified.html")
    assert run.exit_code == 0, run.output
    assert f"The page in the bundle was not checked; read {fresh}" in " ".join(run.stdout.split())
    assert (
        "Only stated: names, users, times and params of the runs, author, date, title and notes."
        in run.stdout
    )
    assert fresh.read_text(encoding="utf-8") == genuine


@pytest.mark.parametrize("name", ["review.json", "runs.json"])
def test_a_key_that_is_given_twice_is_a_change(path, name):
    key = zipfile.ZipFile(path).read(name).decode().split('"')[1]

    def twice(files):
        files[name] = files[name].replace(b"{", f'{{"{key}": 0,'.encode(), 1)
        manifest = json.loads(files["manifest.json"])
        manifest["files"][name]["sha256"] = hashlib.sha256(files[name]).hexdigest()
        files["manifest.json"] = json.dumps(manifest).encode()

    found = verify(rewritten(path, twice))
    assert found.outcome == "changed"
    assert f"each key only once, got '{key}' twice" in found.problems[0]


@pytest.mark.slow
def test_no_pattern_reads_the_page_of_a_bundle(path):
    # quadratic time takes minutes
    forged(path, "review.html", lambda page: page + "1" * 200_000 + "<svg " * 20_000)
    assert verify(path).passed


@pytest.mark.slow
def test_a_page_of_another_version_is_not_verified_and_can_be_made_anew(path, tmp_path):
    genuine = zipfile.ZipFile(path).read("review.html")

    def older(files):
        files["review.html"] = files["review.md"] = b"weak is best, 0.99"
        manifest = json.loads(files["manifest.json"])
        manifest["versions"]["cmtrack"] = "0.1.9"
        for name in ("review.html", "review.md"):
            manifest["files"][name]["sha256"] = hashlib.sha256(files[name]).hexdigest()
        files["manifest.json"] = json.dumps(manifest).encode()

    found = verify(rewritten(path, older))
    assert found.outcome == "statistics_only"
    assert found.not_recomputed == [
        "the review of cmtrack 0.1.9, which may word and compute it differently",
    ]
    run = CliRunner().invoke(main, ["verify", str(path), "--output", str(tmp_path / "anew.html")])
    assert run.exit_code == 3
    assert run.stdout.startswith("review.zip: statistics only: the review was not verified.")
    assert (tmp_path / "anew.html").read_bytes() == genuine


def of_version(number, **changes):
    """What rewrites a bundle as if that version of cmtrack had made it, with these files changed."""

    def change(files):
        files.update(changes)
        manifest = json.loads(files["manifest.json"])
        manifest["versions"]["cmtrack"] = number
        for name in changes:
            manifest["files"][name]["sha256"] = hashlib.sha256(files[name]).hexdigest()
        files["manifest.json"] = json.dumps(manifest).encode()

    return change


FAREWELL = "it was made by a feature that cmtrack 0.3 no longer has; use cmtrack 0.2"


def test_a_bundle_over_data_sets_ends_with_3():
    path = TESTS / "data" / "removed_features" / "data_sets.zip"
    found = verify(path)
    assert found.outcome == "removed"
    assert (found.problems, found.made_with) == ([], "0.2.0")
    assert found.removed[0] == "review.json has the key repeated.blocks.rope"
    assert removed.INSTEAD['compare(block_kind="datasets")'] in found.removed[-1]
    run = CliRunner().invoke(main, ["verify", str(path)])
    assert run.exit_code == 3
    assert run.stdout.startswith(f"data_sets.zip: {FAREWELL}.\n")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("weights", removed.INSTEAD[removed.WEIGHTS]),
        ("front", "review.json has p-values of a Pareto front"),
    ],
)
def test_a_bundle_of_a_weighted_sum_or_of_a_tested_front_ends_with_3(name, why):
    path = TESTS / "data" / "removed_features" / f"{name}.zip"
    found = verify(path)
    assert found.outcome == "removed"
    assert found.problems == []
    assert why in found.removed[0]
    run = CliRunner().invoke(main, ["verify", str(path)])
    assert run.exit_code == 3
    assert run.stdout.startswith(f"{name}.zip: {FAREWELL}.\n")


def test_numbers_over_seeds_are_recomputed_without_the_removed_ones(tmp_path):
    path = tmp_path / "rope.zip"
    path.write_bytes((TESTS / "data" / "removed_features" / "rope.zip").read_bytes())
    found = verify(path)
    assert found.outcome == "removed"
    assert found.problems == []
    assert found.removed == [
        f"review.json has the key repeated.{name}"
        for name in ("blocks.rope", "models.worse", "models.equivalent", "models.better")
    ]
    assert found.numbers > 20
    run = CliRunner().invoke(main, ["verify", str(path)])
    assert run.exit_code == 3
    assert path.with_suffix(".verified.html").exists()


def test_a_rule_with_a_removed_option_ends_with_3(path, monkeypatch):
    monkeypatch.setitem(removed.INSTEAD, "compare(luck=)", "use seed=")
    rewritten(path, of_version("0.1.9", **{"rule.yaml": b"luck: 0.2\n"}))
    found = verify(path)
    assert found.outcome == "removed"
    assert not found.passed
    assert found.removed == ["rule.yaml: cmtrack 0.3 no longer has compare(luck=): use seed="]
    run = CliRunner().invoke(main, ["verify", str(path)])
    assert run.exit_code == 3
    assert run.stdout.startswith(
        f"review.zip: {FAREWELL}.\n  rule.yaml: cmtrack 0.3 no longer has compare(luck=)"
    )
    assert "Made with cmtrack 0.1.9" in run.stdout
    assert "files match the manifest; no number was recomputed." in run.stdout
    answer = json.loads(CliRunner().invoke(main, ["verify", str(path), "--json"]).stdout)
    assert (answer["outcome"], answer["made_with"], answer["removed"]) == (
        "removed",
        "0.1.9",
        found.removed,
    )


def test_a_removed_value_of_an_option_ends_with_3(path, monkeypatch):
    def read(_):
        raise removed.RemovedFeature("use a metric")

    monkeypatch.setitem(CompareSpec.entries()["rank_by"].__dict__, "read", read)
    found = verify(rewritten(path, of_version("0.1.9", **{"rule.yaml": b"rank_by: luck\n"})))
    assert found.outcome == "removed"
    assert found.removed == ["rule.yaml: rank_by: use a metric"]


@pytest.mark.slow
def test_a_removed_option_at_its_default_says_nothing(path, monkeypatch):
    monkeypatch.setitem(removed.INSTEAD, "compare(luck=)", "use seed=")
    genuine = zipfile.ZipFile(path).read("review.html").decode()
    data = json.loads(zipfile.ZipFile(path).read("review.json"))
    data["how"]["luck"] = 0.01
    found = verify(
        rewritten(path, of_version("0.1.9", **{"review.json": json.dumps(data).encode()}))
    )
    assert found.removed == []
    assert found.not_recomputed == [
        "the review of cmtrack 0.1.9, which may word and compute it differently",
    ]
    assert path.with_suffix(".verified.html").read_text(encoding="utf-8") == genuine


@pytest.mark.parametrize("number", ["0.1.9", cmtrack.__version__])
def test_a_key_that_an_older_version_did_not_write_is_no_change(path, number):
    everything = verify(path).numbers
    stated = json.loads(zipfile.ZipFile(path).read("review.json"))
    for run in stated["rankings"][0]["runs"]:
        del run["rank"]
    found = verify(
        rewritten(path, of_version(number, **{"review.json": json.dumps(stated).encode()}))
    )
    if number == "0.1.9":
        assert found.outcome == "statistics_only"
        assert found.numbers >= everything - len(stated["rankings"][0]["runs"])
    else:
        assert found.outcome == "changed"


@pytest.mark.parametrize("number", ["0.1.9", "99.0"])
def test_an_unknown_key_of_an_older_version_is_a_change(path, number):
    data = json.loads(zipfile.ZipFile(path).read("review.json")) | {"approved": "yes"}
    found = verify(
        rewritten(path, of_version(number, **{"review.json": json.dumps(data).encode()}))
    )
    if number == "99.0":  # a newer version may have added a key
        assert found.outcome == "statistics_only"
    else:
        assert found.outcome == "changed"
        assert "review.json holds 'approved', which no bundle has" in found.problems[0]


@pytest.mark.slow
def test_pvalues_without_the_rows_they_come_from_are_not_verified(path):
    def without_rows(files):
        files["review.html"] = files["review.md"] = b"weak is best"
        about, data = json.loads(files["runs.json"]), json.loads(files["review.json"])
        for one in about["judged"]:
            one["rows"] = "left out"
            del files[f"{one['folder']}/cmtrack_predictions.parquet"]
        for run in data["rankings"][0]["runs"]:
            run["p_set"] = 1e-9
        files["runs.json"], files["review.json"] = (
            json.dumps(about).encode(),
            json.dumps(data).encode(),
        )
        manifest = json.loads(files["manifest.json"])
        manifest["files"] = {
            name: {"sha256": hashlib.sha256(content).hexdigest()}
            for name, content in files.items()
            if name != "manifest.json"
        }
        files["manifest.json"] = json.dumps(manifest).encode()

    rewritten(path, without_rows)
    assert verify(path).outcome == "statistics_only"
    run = CliRunner().invoke(main, ["verify", str(path), "--output", "anew.html"])
    assert run.exit_code == 2
    assert "cannot make a page: differences, p-values and standings" in " ".join(run.output.split())
    run = CliRunner().invoke(main, ["verify", str(path), "--json"])
    assert (run.exit_code, json.loads(run.stdout)["outcome"]) == (3, "statistics_only")


def test_changed_statistics_are_found_by_their_numbers(path):
    def more(data):
        data["statistics"]["matrix"][0][1] += 1

    name = "runs/0001/cmtrack_evaluation.json"
    assert not verify(forged(path, name, more)).passed


def archive_of(*entries):
    out = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(out, "w") as archive:
        warnings.simplefilter("ignore")
        for entry, content in entries:
            archive.writestr(entry, content, compress_type=zipfile.ZIP_DEFLATED)
    return out.getvalue()


def link():
    entry = zipfile.ZipInfo("review.html")
    entry.external_attr = 0o120777 << 16
    return entry


UNSAFE = {
    "climbs": (archive_of(("../evil", b"x")), "plain files in plain folders, got '../evil'"),
    "absolute": (archive_of(("/etc/passwd", b"x")), "plain files in plain folders"),
    "windows": (archive_of(("runs\\\\..\\\\evil", b"x")), "plain files in plain folders"),
    "link": (
        archive_of((link(), b"/etc/passwd")),
        "plain files in plain folders, got 'review.html'",
    ),
    "twice": (
        archive_of(("a", b"x"), ("a", b"y")),
        "must contain each file only once, got 'a' twice",
    ),
    "cut": (archive_of(("a", b"x" * 999))[:-30], "the archive is damaged"),
    "text": (b"no archive", "the archive is damaged"),
    "foreign": (archive_of(("a", b"x")), "manifest.json is missing"),
    "newer": (
        archive_of(("manifest.json", b'{"schema": 9}')),
        "has schema 9, this version of cmtrack reads up to 1",
    ),
    "list": (archive_of(("manifest.json", b"[]")), "manifest.json must contain a mapping"),
    "deep": (archive_of(("manifest.json", b"[" * 100_000)), "not a bundle of cmtrack"),
    "rule": (
        archive_of(("manifest.json", b'{"schema": 1, "rule": 3}')),
        "rule must contain file and given",
    ),
}


@pytest.mark.parametrize("name", UNSAFE)
def test_an_unsafe_or_foreign_archive_is_refused(name, tmp_path):
    """What archives may hold, and how much, is tested with the reader of archives."""
    path = tmp_path / "review.zip"
    content, says = UNSAFE[name]
    path.write_bytes(content)
    run = CliRunner().invoke(main, ["verify", str(path)])
    assert run.exit_code == 2
    assert "is not a bundle of cmtrack" in " ".join(run.output.split())
    assert says in " ".join(run.output.split())
    assert list(tmp_path.iterdir()) == [path]


def test_a_small_archive_does_not_become_a_large_one(tmp_path):
    path = tmp_path / "review.zip"
    content = archive_of(("a", bytes(12_345)))
    # both places that say the size: nothing is unpacked before it is compared
    path.write_bytes(
        content.replace((12_345).to_bytes(4, "little"), (1 << 30).to_bytes(4, "little"))
    )
    run = CliRunner().invoke(main, ["verify", str(path)])
    assert run.exit_code == 2
    assert "must have at most 256 MB together, got more" in " ".join(run.output.split())


# -- the command line ------------------------------------------------------------------------------------------


def test_the_command_line_writes_and_verifies_bundles(world, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "agreed.yaml").write_text(f"rank_by: {ACCURACY}\n")
    where = ["--experiment", "digits", "--tracking-uri", world[0], "--rule", "agreed.yaml"]
    run = CliRunner().invoke(main, ["review", *where, "--bundle", "review.zip"])
    assert run.exit_code == 0, run.output
    assert re.search(r"review\.zip \(0\.\d MB, of which predictions by row 0\.\d MB\)", run.stdout)
    assert not (tmp_path / "review.html").exists()
    run = CliRunner().invoke(main, ["verify", "review.zip"])
    assert run.exit_code == 0, run.output
    assert run.stdout.startswith("review.zip: verified.\n")
    assert "numbers were recomputed and agree" in run.stdout
    assert "Only stated: statements on 1 run that was left out." in run.stdout
    found = json.loads(CliRunner().invoke(main, ["verify", "review.zip", "--json"]).stdout)
    assert found["passed"] is True
    assert found["sha256"] in run.stdout
    rewritten(tmp_path / "review.zip", lambda files: files.update({"review.md": b"\x1b[31m"}))
    run = CliRunner().invoke(main, ["verify", "review.zip"])
    assert run.exit_code == 1
    assert run.stdout.startswith("review.zip: NOT as it was written.\n  review.md was changed")
    assert CliRunner().invoke(main, ["verify", "absent.zip"]).exit_code == 2
    run = CliRunner().invoke(main, ["review", *where, "--bundle", "review.tar"])
    assert run.exit_code == 2
    assert "--bundle must end in .zip, got 'review.tar'" in run.output


@pytest.mark.slow
def test_a_gate_by_a_rule_file(world, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ids = {name: run_id[:12] for name, run_id in world[1].items()}
    (tmp_path / "agreed.yaml").write_text(f"require: {ACCURACY} >= 0.6\n")
    gate = ["gate", "--tracking-uri", world[0], "--rule", "agreed.yaml"]
    run = CliRunner().invoke(main, [*gate, ids["strong"]])
    assert run.exit_code == 0, run.output
    assert (
        "The rule was fixed beforehand, in the file “agreed.yaml” (SHA-256 "
        in " ".join(run.stdout.split()) + " "
    )
    assert CliRunner().invoke(main, [*gate, ids["weak"]]).exit_code == 1
    run = CliRunner().invoke(main, [*gate, ids["weak"], "--require", f"{ACCURACY} >= 0.1"])
    assert run.exit_code == 2
    assert "a rule file contains the whole rule" in " ".join(run.output.split())
    (tmp_path / "agreed.yaml").write_text(
        f"require: {ACCURACY}.difference.low >= -0.3\nagainst: {world[1]['fair']}\n"
    )
    assert CliRunner().invoke(main, [*gate, ids["strong"]]).exit_code == 0
    assert CliRunner().invoke(main, [*gate, ids["weak"]]).exit_code == 1
    (tmp_path / "agreed.yaml").write_text("block: params.fold\n")
    assert CliRunner().invoke(main, [*gate, ids["weak"]]).exit_code == 2


@pytest.mark.parametrize("command", ["compare", "review"])
def test_a_rule_that_is_none_or_is_contradicted_is_bad_input(command, world, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agreed.yaml").write_text("margin: 0.1\n")
    given = [command, "--experiment", "digits", "--tracking-uri", world[0], "--rule", "agreed.yaml"]
    run = CliRunner().invoke(main, [*given, "--margin", "0.2"])
    assert run.exit_code == 2
    assert "agreed.yaml has 0.1, but the argument is margin=0.2" in " ".join(run.output.split())
    (tmp_path / "agreed.yaml").write_text("margn: 0.1\n")
    run = CliRunner().invoke(main, given)
    assert run.exit_code == 2
    assert "'margn' is not an option of a rule; did you mean 'margin'?" in run.output


# -- short ids and the order of runs ---------------------------------------------------------------------------


@pytest.mark.slow
def test_the_beginning_of_an_id_names_a_run(world):
    uri, ids = world
    comparison = compare([run_id[:8] for run_id in ids.values()], tracking_uri=uri)
    assert {run.run_id for run in comparison.runs} == set(ids.values())
    for text in (ids["weak"][:7], "0" * 8):
        with pytest.raises(ValueError, match=f"there is no run '{text}'"):
            compare([text], tracking_uri=uri)
    against = compare(experiment_names=["digits"], against=ids["fair"][:10], tracking_uri=uri)
    assert against.baseline.run_id == ids["fair"]


def test_a_beginning_that_several_ids_have_is_an_error_that_lists_them(store, tmp_path):
    ids = {store.create_run("1", run_name=name).info.run_id: name for name in ("one", "other")}
    # MLflow draws the ids; here they begin alike
    with contextlib.closing(sqlite3.connect(tmp_path / "mlflow.db")) as database, database:
        for run_id in ids:
            for table in ("runs", "tags"):
                command = f"UPDATE {table} SET run_uuid = '0123abcd' || substr(run_uuid, 9) WHERE run_uuid = ?"
                database.execute(command, (run_id,))
    with pytest.raises(
        ValueError, match="several runs have an id that begins with '0123abcd'"
    ) as error:
        compare(["0123abcd"])
    assert all(f"0123abcd{run_id[8:]} ({name})" in str(error.value) for run_id, name in ids.items())


@pytest.mark.slow
def test_a_beginning_is_looked_for_in_the_experiments_that_are_named(world):
    uri, ids = world
    with quiet(), tracking_store(uri):
        mlflow.create_experiment("other")
    comparison = compare([ids["weak"][:8]], experiment_names=["digits"], tracking_uri=uri)
    assert len(comparison) == 4
    with pytest.raises(ValueError, match=f"there is no run '{ids['weak'][:8]}'"):
        compare([ids["weak"][:8]], experiment_names=["other"], tracking_uri=uri)


ORDERED = {
    "ranked": {"require": f"{ACCURACY} >= 0.2", "tie_breakers": "params.depth", "margin": 0.3},
    "front": {"rank_by": [ACCURACY, "class/0/recall"]},
}


@pytest.mark.thin(2)
@pytest.mark.slow
@pytest.mark.parametrize("name", ORDERED)
@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_the_same_review_comes_out_of_the_same_runs_in_any_order(name, world, data):
    uri, ids = world
    order = data.draw(st.permutations(list(ids.values())))

    def review(runs):
        plain = compare(runs, tracking_uri=uri, **ORDERED[name]).to_dict()
        del plain["how"]
        del plain["record"]["made"], plain["record"]["lines"]["Made"]
        return json.dumps(plain)

    assert review(order) == review(list(ids.values()))
