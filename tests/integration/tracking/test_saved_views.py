"""Saved views of an experiment: the form that the server's version reads, what they show, and the link to them."""

from __future__ import annotations

import base64
import json
import random
import shutil
import zlib
from pathlib import Path

import mlflow
import pytest
from click.testing import CliRunner
from mlflow.entities import Metric

import cmtrack
from cmtrack import compare, log_evaluation
from cmtrack.cli import main
from cmtrack.tracking import tracking_store
from support.components import tracking_server
from support.problems import random_labels, random_scores
from support.stores import sqlite_store

TAG = "mlflow.sharedViewState."
NOTE = "mlflow.note.content"
EARLY, LATE = ("3.5.0", "3.5.1", "3.10.1", "3.15.2"), ("3.16.0", "3.17.2", "3.18.0")
LONGEST = {EARLY: 5_000, LATE: 20_000}
"""Characters of a tag that these versions of MLflow keep."""


Y = random_labels(200)


def log(client: mlflow.MlflowClient, experiment: str, name: str, skill: float, **params) -> str:
    run_id = client.create_run(experiment, run_name=name).info.run_id
    for key, value in params.items():
        client.log_param(run_id, key, value)
    for step in range(3):
        client.log_metric(run_id, "train/loss", 1 / (1 + step), step=step)
    log_evaluation(Y, y_prob=random_scores(Y, skill, 3), run_id=run_id, strict=True)
    return run_id


@pytest.fixture(scope="module")
def logged(tmp_path_factory, undrawn) -> Path:
    """A store with three runs that differ in two parameters of three."""
    folder = tmp_path_factory.mktemp("logged")
    with tracking_store(sqlite_store(folder / "mlflow.db")):
        client = mlflow.MlflowClient()
        experiment = client.create_experiment(
            "e", artifact_location=(folder / "artifacts").as_uri()
        )
        for place, (name, skill) in enumerate([("sharp", 3.0), ("fair", 2.0), ("blunt", 1.0)]):
            log(client, experiment, name, skill, depth=place, lr=place / 10, same=1)
    return folder / "mlflow.db"


@pytest.fixture
def three(logged, tmp_path, monkeypatch):
    """A copy of that store, for one test."""
    monkeypatch.chdir(tmp_path)
    shutil.copyfile(logged, tmp_path / "mlflow.db")
    with tracking_store(f"sqlite:///{tmp_path}/mlflow.db"):
        mlflow.set_experiment("e")
        yield mlflow.MlflowClient()


def state_of(value: str) -> dict:
    """The state in either form of a view."""
    text = json.loads(value)["state"] if value.startswith("{") else value
    return json.loads(zlib.decompress(base64.b64decode(text.removeprefix("deflate;"))))


def tags_of(client: mlflow.MlflowClient, view) -> dict[str, str]:
    return client.get_experiment(view.experiment_id).tags


def as_if(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    """The version of a database's pages is the installed one's."""
    monkeypatch.setattr(mlflow, "__version__", version)


# -- the form ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_each_version_gets_the_form_that_it_reads(three, monkeypatch):
    comparison = compare()
    for version in (*EARLY, *LATE):
        as_if(monkeypatch, version)
        view = comparison.view(version)
        value = tags_of(three, view)[TAG + view.key]
        assert value.startswith("deflate;") == (version in EARLY), version


@pytest.mark.parametrize("version", ["2.22.5", "3.4.0", "4.0.0"])
def test_nothing_is_written_for_a_version_that_is_not_known(three, monkeypatch, version):
    comparison = compare()
    as_if(monkeypatch, version)
    with pytest.raises(
        ValueError, match=f"supported for MLflow 3.5 to 3.x, but this server has {version}"
    ):
        comparison.view()
    assert not any(key.startswith(TAG) for key in three.get_experiment_by_name("e").tags)


@pytest.mark.parametrize("text", ["", "new", "3", "3.5\n<b>", "3.5.1" * 20, None, "\x1b[31m3.5"])
def test_a_version_of_a_server_is_not_trusted(text):
    with pytest.raises(ValueError, match="a version must begin with two numbers"):
        cmtrack.untrusted.version(text)


@pytest.mark.slow
@pytest.mark.parametrize("versions", [EARLY, LATE], ids=["early", "late"])
def test_as_many_cards_are_taken_out_as_there_is_room_for(three, monkeypatch, versions):
    if versions is LATE and [int(part) for part in mlflow.__version__.split(".")[:2]] < [3, 16]:
        pytest.skip("the store of this MLflow keeps no more than 5,000 characters of a tag")
    letters = random.Random(1)
    names = {"".join(letters.choices("abcdefghijklmnopqrstuvwxyz", k=40)) for _ in range(400)}
    experiment = three.get_experiment_by_name("e").experiment_id
    run_id = three.search_runs([experiment])[0].info.run_id
    three.log_batch(run_id, metrics=[Metric(name, 0.5, 0, 0) for name in names])
    as_if(monkeypatch, versions[-1])
    view = compare().view("many")
    value = tags_of(three, view)[TAG + view.key]
    taken = {
        chart.get("metricKey") for chart in state_of(value)["compareRunCharts"] if chart["deleted"]
    }
    assert len(value) <= LONGEST[versions]
    assert (len(names - taken) > 0) == (versions is EARLY)
    assert bool(view.notes) == (versions is EARLY)
    # one more card of 40 random letters takes about 40 characters
    assert versions is LATE or len(value) > LONGEST[versions] - 200


def test_a_view_that_is_too_long_without_any_card_is_refused(three, monkeypatch):
    as_if(monkeypatch, "3.5.1")
    letters = random.Random(2)
    long = "".join(letters.choices("abcdefghijklmnopqrstuvwxyz0123456789", k=4_900))
    filter_string = f"params.depth != '{long}'"
    with pytest.raises(ValueError, match="more than the 5,000 characters"):
        compare(experiment_names=["e"], filter_string=filter_string).view()


# -- what is written --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["3.5.1", "3.17.2"])
def test_the_view_shows_what_matters_for_the_ranking(three, monkeypatch, version):
    as_if(monkeypatch, version)
    view = compare(rank_by="binary/roc_auc", require="multiclass/accuracy >= 0.1").view("by area")
    tags = tags_of(three, view)
    value = tags[TAG + view.key]
    assert value.startswith("deflate;") == (version == "3.5.1")
    assert (tags.get("mlflow.experimentKind") == "custom_model_development") == (version == "3.5.1")
    state = state_of(value)
    assert (state["orderByKey"], state["orderByAsc"]) == ("metrics.`binary/roc_auc`", False)
    assert state["selectedColumns"] == [
        "metrics.`binary/roc_auc`",
        "metrics.`multiclass/accuracy`",
        "params.`depth`",
        "params.`lr`",
    ]
    assert state["searchFilter"] == "tags.`cmtrack.status` = 'completed'"
    shown = [chart for chart in state["compareRunCharts"] if not chart["deleted"]]
    assert [chart["type"] for chart in shown] == ["BAR", "SCATTER", "PARALLEL", "IMAGE"]
    assert (shown[1]["xaxis"]["key"], shown[1]["yaxis"]["key"]) == (
        "binary/roc_auc",
        "multiclass/accuracy",
    )
    assert shown[2]["selectedParams"] == ["depth", "lr"]
    named = {chart.get("metricKey") for chart in state["compareRunCharts"]}
    assert set(three.search_runs([view.experiment_id])[0].data.metrics) <= named
    assert view.link == f"#/experiments/{view.experiment_id}/runs?viewStateShareKey={view.key}"
    assert view.notes == ()


def test_a_loss_is_ordered_from_the_least_and_named_runs_are_listed(three, monkeypatch):
    as_if(monkeypatch, "3.17.2")
    experiment = three.get_experiment_by_name("e").experiment_id
    ids = [run.info.run_id for run in three.search_runs([experiment])][:2]
    view = compare(ids, rank_by="probability/log_loss").view()
    state = state_of(tags_of(three, view)[TAG + view.key])
    assert state["orderByAsc"]
    assert all(run_id in state["searchFilter"] for run_id in ids)
    found = three.search_runs([experiment], state["searchFilter"])
    assert {run.info.run_id for run in found} == set(ids)


@pytest.mark.slow
def test_what_it_cannot_show_is_said(three, tmp_path, monkeypatch):
    as_if(monkeypatch, "3.17.2")
    elsewhere = log(
        three,
        three.create_experiment("other", artifact_location=(tmp_path / "other").as_uri()),
        "far",
        0.5,
    )
    first = three.get_experiment_by_name("e").experiment_id
    here = [run.info.run_id for run in three.search_runs([first])]
    view = compare([*here, elsewhere], rank_by="multiclass/precision_macro_zero").view()
    assert view.experiment_id == first
    assert "1 of 4 runs are in other experiments and are not shown." in view.notes
    unlogged = (
        "The runs did not log multiclass/precision_macro_zero, so the view cannot use it to "
        "order runs and draw charts."
    )
    assert unlogged in view.notes


def test_evaluations_in_memory_have_no_view():
    s = random_scores(Y)
    comparison = compare(
        {"one": cmtrack.evaluate(Y, y_prob=s), "two": cmtrack.evaluate(Y, y_prob=1 - s)}
    )
    with pytest.raises(ValueError, match="a saved view needs runs of a tracking store"):
        comparison.view()


@pytest.mark.parametrize("name", ["", " ", "two\nlines", "x" * 101, "\x1b[31mred"])
def test_a_name_is_a_short_line(three, name):
    with pytest.raises(ValueError, match="the name of a view must be a single-line string"):
        compare().view(name)


# -- the description --------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_link_stands_first_and_a_persons_text_stays(three, monkeypatch):
    as_if(monkeypatch, "3.17.2")
    experiment = three.get_experiment_by_name("e").experiment_id
    mine = "# Party\n\nBy Ann. [a](#/experiments/1/runs?viewStateShareKey=cmtrack000000000000)\n"
    three.set_experiment_tag(experiment, NOTE, mine)
    first = compare().view("a [b](c)")
    once = tags_of(three, first)[NOTE]
    assert once == f"[a \\[b\\]\\(c\\)]({first.link}) <!-- cmtrack views -->\n\n{mine}"
    compare().view("a [b](c)")
    assert tags_of(three, first)[NOTE] == once
    second = compare().view("second")
    line, _, rest = tags_of(three, first)[NOTE].partition("\n\n")
    assert (
        line == f"[second]({second.link}) · [a \\[b\\]\\(c\\)]({first.link}) <!-- cmtrack views -->"
    )
    assert rest == mine


def test_links_to_views_that_are_gone_go(three):
    gone = "[old](#/experiments/1/runs?viewStateShareKey=cmtrack000000000000) <!-- cmtrack views -->\n\nmine"
    three.set_experiment_tag(three.get_experiment_by_name("e").experiment_id, NOTE, gone)
    view = compare().view("new")
    assert tags_of(three, view)[NOTE] == f"[new]({view.link}) <!-- cmtrack views -->\n\nmine"


def test_a_description_without_room_stays(three, monkeypatch):
    as_if(monkeypatch, "3.5.1")
    three.set_experiment_tag(three.get_experiment_by_name("e").experiment_id, NOTE, "x" * 4_990)
    view = compare().view()
    assert view.notes == ("The experiment's description has no room for the link.",)
    assert tags_of(three, view)[NOTE] == "x" * 4_990


@pytest.mark.slow
def test_the_command_prints_the_links(three):
    done = CliRunner().invoke(main, ["view", "--experiment", "e", "--name", "mine"])
    assert done.exit_code == 0, done.output
    view = compare(experiment_names=["e"]).view("mine")
    assert f"for MLflow {mlflow.__version__}" in done.output
    assert f"  runs    {view.link}\n  charts  {view.charts}\n" in done.output
    said = json.loads(CliRunner().invoke(main, ["view", "--experiment", "e", "--json"]).stdout)
    assert said["name"] == "cmtrack: binary/matthews_corrcoef"


# -- MLflow's own page ------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.usefixtures("drawn")
def test_the_page_of_mlflow_shows_it(tmp_path, monkeypatch):
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = (
        shutil.which("chromium")
        or shutil.which("chromium-browser")
        or shutil.which("google-chrome")
    )
    if chromium is None:
        pytest.skip("no Chromium is installed")
    monkeypatch.chdir(tmp_path)
    with tracking_server(tmp_path) as server, tracking_store(server.url):
        client = mlflow.MlflowClient()
        experiment = client.create_experiment("party")
        for place, name in enumerate(["poor", "fair", "good"]):
            log(client, experiment, name, 1.0 + place, depth=place, lr=place)
        client.set_experiment_tag(experiment, NOTE, "By Ann.")
        view = compare(experiment_names=["party"]).view("the view")
        assert (view.mlflow_version, view.link.split("/#/")[0]) == (mlflow.__version__, server.url)
        with playwright.sync_playwright() as started:
            browser = started.chromium.launch(
                executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
            )
            # MLflow's scripts are fetched once
            once = browser.new_context(viewport={"width": 1900, "height": 1400})
            page = once.new_page()
            page.goto(view.link, timeout=120_000)
            page.get_by_role("link", name="good").wait_for(timeout=120_000)
            assert page.get_by_text("3 matching runs").count() == 1
            page.get_by_role("link", name="the view").first.wait_for(timeout=30_000)
            for name in ("binary/matthews_corrcoef", "depth", "lr"):
                page.locator("[role=columnheader]", has_text=name).first.wait_for(timeout=30_000)
            assert page.locator("[role=columnheader]", has_text="train/loss").count() == 0
            page = once.new_page()  # as links of a description are opened
            page.goto(view.charts, timeout=120_000)
            page.get_by_text("Parallel Coordinates").first.wait_for(timeout=120_000)
            assert page.get_by_text("binary/matthews_corrcoef vs. multiclass/accuracy").count() >= 1
            assert page.get_by_text("cmtrack/confusion_matrix").count() >= 1
            page.wait_for_timeout(1000)
            # the cards that MLflow makes by itself
            assert page.get_by_text("train/loss").count() == 0
            assert page.get_by_text("binary/f1").count() == 0
            browser.close()
