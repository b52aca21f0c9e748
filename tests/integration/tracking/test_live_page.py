"""Pages inside MLflow's server, with and without passwords: real servers, as ``mlflow server`` starts them."""

from __future__ import annotations

import html
import importlib.util
import os
import re
import sys
import threading
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import entry_points
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit

import mlflow
import pytest
import requests
from flask import Flask, Response, request
from mlflow.entities import Experiment
from mlflow.exceptions import MlflowException
from mlflow.protos.databricks_pb2 import BAD_REQUEST, INTERNAL_ERROR, TEMPORARILY_UNAVAILABLE
from mlflow.server import get_app_client
from mlflow.store.entities import PagedList
from werkzeug.datastructures import MultiDict

from cmtrack import Metric, compare, log_evaluation
from cmtrack.report.review.narrative import decision
from cmtrack.tracking.store import tracking_store
from cmtrack_integrations import _live_review, _page_work, live_page
from cmtrack_integrations.server import Inside
from support import ROOT
from support.components import ADMIN, Service, basic_auth, tracking_server
from support.problems import random_labels, random_scores

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("undrawn")]

SECRET = "a name that nobody else may see"
READER, OUTSIDER = ("reader", "password-of-reader"), ("outsider", "password-of-outsider")
NO_RUNS = ("experiments-only", "password-of-another")
EARLY = tuple(map(int, mlflow.__version__.split(".")[:2])) < (3, 16)


@pytest.fixture(scope="module")
def plugged(tmp_path_factory) -> dict[str, str]:
    """An environment in which MLflow finds the entry points, also where an earlier cmtrack is installed."""
    if {entry.name for entry in entry_points(group="mlflow.app")} >= {"cmtrack", "cmtrack-auth"}:
        return {}
    folder = tmp_path_factory.mktemp("plugged")
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["mlflow.app"]
    info = folder / "cmtrack_of_the_tests-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: cmtrack-of-the-tests\nVersion: 1\n")
    lines = [f"{name} = {value}" for name, value in declared.items()]
    (info / "entry_points.txt").write_text("\n".join(["[mlflow.app]", *lines, ""]))
    path = [str(folder), str(ROOT), str(ROOT / "integrations"), os.environ.get("PYTHONPATH", "")]
    return {"PYTHONPATH": os.pathsep.join(filter(None, path))}


def log_runs(url: str, experiment: str, *names: str) -> list[str]:
    """New runs of two classes in a new experiment, the first one the best."""
    with tracking_store(url):
        client = mlflow.MlflowClient()
        found = client.create_experiment(experiment)
        return [log_run(client, found, name, 3.0 - place) for place, name in enumerate(names)]


def log_run(client: mlflow.MlflowClient, experiment: str, name: str, skill: float) -> str:
    y = random_labels(200)
    run_id = client.create_run(experiment, run_name=name).info.run_id
    log_evaluation(y, y_prob=random_scores(y, skill, 5), run_id=run_id, strict=True)
    client.set_terminated(run_id)
    return run_id


def page(server: Service, path: str, user: tuple[str, str] | None = None, **query) -> requests.Response:
    """The answer that a browser shows in the end: it comes again where it is asked to."""
    end = time.monotonic() + 120
    while True:
        answer = requests.get(f"{server.url}/cmtrack{path}", params=query, auth=user, timeout=120)
        if "Refresh" not in answer.headers or time.monotonic() > end:
            return answer
        time.sleep(0.2)


# -- open to everybody ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def opened(tmp_path_factory, plugged):
    folder = tmp_path_factory.mktemp("opened")
    with tracking_server(folder, "--app-name", "cmtrack", environment=plugged) as server:
        yield server, log_runs(server.url, "party & <b>co</b>", "sharp", "blunt")


def test_the_page_is_the_review_of_the_runs_as_they_are(opened):
    server, runs = opened
    answer = page(server, "/experiments/1", rank_by="binary/roc_auc", require="multiclass/accuracy >= 0.2", limit=5)
    assert answer.status_code == 200
    assert "“party &amp; &lt;b&gt;co&lt;/b&gt;” as it is now" in answer.text
    assert "sharp" in answer.text
    assert "Content-Security-Policy" in answer.text
    assert "compared row by row" in answer.text  # the rows were read from the artifact store, too
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["X-Frame-Options"] == "SAMEORIGIN"
    before = requests.get(f"{server.url}/api/2.0/mlflow/runs/get", params={"run_id": runs[0]}, timeout=60).json()
    assert page(server, "/experiments/1", rank_by="binary/roc_auc").text.count("sharp") > 0
    assert (
        requests.get(f"{server.url}/api/2.0/mlflow/runs/get", params={"run_id": runs[0]}, timeout=60).json() == before
    )
    with tracking_store(server.url):
        late = log_run(mlflow.MlflowClient(), "1", "latecomer", 5.0)
    assert "latecomer" in page(server, "/experiments/1").text
    with tracking_store(server.url):
        mlflow.MlflowClient().delete_run(late)
    assert "latecomer" not in page(server, "/experiments/1").text
    only = page(server, "/experiments/1", runs=[runs[1]]).text
    assert "blunt" in only
    assert "sharp" not in only


def test_the_list_names_the_experiments(opened):
    server, _ = opened
    for path in ("", "/"):
        answer = page(server, path)
        assert answer.status_code == 200
        assert '<a href="experiments/1">party &amp; &lt;b&gt;co&lt;/b&gt;</a>' in answer.text
        assert "Logged" not in answer.text


def test_the_list_names_the_reviews_that_were_logged(opened):
    server, runs = opened
    with tracking_store(server.url):
        comparison = compare(runs)
        logged = comparison.log(run_name="spring & <b>")
        mlflow.MlflowClient().set_tag(logged.run_id, "cmtrack.ranked", "2 <i>")
    text = page(server, "/").text
    link = f"../#/experiments/{logged.experiment_id}/runs/{logged.run_id}/artifacts/cmtrack_review.html"
    assert f'<a href="{link}">spring &amp; &lt;b&gt;</a>' in text
    assert time.strftime("%Y-%m-%d", time.gmtime()) in text
    assert html.escape(decision(comparison)[0], quote=False).replace("&#x27;", "&#39;") in text
    assert "2 &lt;i&gt;" in text
    assert f'"experiments/{logged.experiment_id}"' not in text  # reviews are no runs to compare
    with tracking_store(server.url):
        mlflow.MlflowClient().delete_experiment(logged.experiment_id)


def test_one_name_with_two_directions_is_ranked_by_each_experiments_own(opened):
    """The values are 30 and 50; the pages of one server process are asked in turns."""
    server, _ = opened
    y, shown = [0, 1] * 50, {}
    with tracking_store(server.url):
        client = mlflow.MlflowClient()
        for better in ("higher", "lower"):
            metric = Metric("custom/score", lambda b: b.tp - b.fp, of="binary", better=better)
            shown[better] = client.create_experiment(f"score, {better}")
            for name, predicted in {"thirty": [0, 1] * 40 + [1, 0] * 10, "fifty": y}.items():
                run_id = client.create_run(shown[better], run_name=name).info.run_id
                log_evaluation(y, predicted, extra_metrics=[metric], run_id=run_id, strict=True)
                client.set_terminated(run_id)
    for better, best, word in (("higher", "fifty", "highest"), ("lower", "thirty", "lowest")) * 2:
        text = page(server, f"/experiments/{shown[better]}", rank_by="custom/score", seed=len(shown)).text
        assert f"“{best}” scores {word}" in html.unescape(text)
        shown[f"{better} again"] = ""  # another page than the one that is kept


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"rank_by": "no/metric"}, "no metric is called"),
        ({"rank_by": ["binary/f1=a", "binary/roc_auc=1"]}, "every metric a number as its weight"),
        ({"require": "multiclass/accuracy is good"}, "multiclass/accuracy is good"),
        ({"limit": "0"}, "limit must be from 1 to 200, got 0"),
        ({"limit": "many"}, "limit must be a number"),
        ({"confidence_level": "nan"}, "confidence_level"),
        ({"seed": ["1", "2"]}, "seed must be given once"),
        ({"filter_string": "drop table runs"}, "refused the search"),
        ({"costs": "/etc/passwd"}, "no option"),
        ({"tracking_uri": "http://elsewhere"}, "no option"),
        ({"against": "models:/party@champion"}, "named by its id"),
        ({"runs": "../../1"}, "named by its id"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "said",
)
def test_a_wrong_option_is_answered_with_the_rule(opened, query, said):
    server, _ = opened
    answer = page(server, "/experiments/1", **query)
    assert (answer.status_code, said in answer.text) == (400, True), answer.text[-600:]


def test_there_is_nothing_where_nothing_is(opened):
    server, _ = opened
    assert page(server, "/experiments/77").status_code == 404
    empty = page(server, "/experiments/0")
    assert empty.status_code == 404
    assert "no run was found" in empty.text
    missing = page(server, "/experiments/1", runs="0" * 32)
    assert missing.status_code == 403
    assert "There is no run 00000000000000000000000000000000, or you may not read it." in missing.text
    assert page(server, "/experiments/<script>").status_code in (400, 404)


SHOWN = [
    {"seed": "9" * 3000},
    dict.fromkeys(("rank_by", "require", "seed", "runs", "prefix", "filter_string"), ""),
    {"rank_by": ["binary/f1"] * 300},
    {"rope": "-inf"},
    {"test_train_ratio": "0"},
    {"limit": "1_0"},
    {"margin": "٣"},
    {"model": "x" * 20_000},
]
HUGE = {"filter_string": "attributes.start_time > 99999999999999999999"}  # MLflow of today refuses it
NOTHING = [{"prefix": "x" * 20_000}, {"filter_string": "metrics.`binary/f1` > " + "9" * 400}]
ODD = [
    *({"seed": text} for text in ("-1", "NaN", "1e999", "0x1", "1.5", "9" * 5000, "\x00", "1 2")),
    *({name: text} for name in ("margin", "confidence_level") for text in ("-1", "NaN", "inf", "1e999")),
    *({name: "\x00"} for name in ("rank_by", "require", "filter_string", "prefix", "segments", "block")),
    *({name: "ü\u202e\U0001f600" * 50} for name in ("rank_by", "require", "filter_string", "prefix", "against")),
    *({name: "x" * 20_000} for name in ("rank_by", "require", "tie_breakers", "filter_string")),
    {"runs": ["1"] * 201},
    {"rank_by[]": "binary/f1"},
    {"rank_by[metric]": "binary/f1"},
    {"rank_by": '["binary/f1"]'},
    {"rank_by": '{"binary/f1": {"a": [1]}}'},
    {"rank_by": ["binary/f1=nan", "binary/roc_auc=inf"]},
    {"require": "binary/f1 >= " + "(" * 5000},
    {"require": "segment/*/*/binary/f1 >= 1e400"},
    {"tie_breakers": "params.`x` desc"},
    {"segments": ["a,b", "", "a"]},
    {"block": "params.nothing", "block_kind": "moons"},
    {"block": "tags.mlflow.runName", "model": "params.\x1b"},
    {"": "empty"},
]


@pytest.mark.parametrize(
    ("status", "queries"),
    [
        (200, SHOWN if os.environ.get("CMTRACK_TEST_ALL") else SHOWN[:3]),
        (404, [*NOTHING, HUGE] if EARLY else NOTHING),
        (400, ODD if EARLY else [*ODD, HUGE]),
    ],
    ids=["shown", "nothing", "refused"],
)
def test_odd_values_are_answered_with_a_page_or_a_rule(opened, status, queries):
    server, _ = opened
    answers = [(query, page(server, "/experiments/1", **query)) for query in queries]
    assert [(str(query)[:60], one.status_code, one.text) for query, one in answers if one.status_code != status] == []
    assert status != 404 or all("There is nothing to compare" in answer.text for _, answer in answers)


def test_fifty_readers_hold_up_nothing(opened):
    """Most are sent away at once, with the time when to come again; MLflow answers all the while."""
    server, _ = opened
    start = threading.Barrier(51)

    def read(seed: int) -> requests.Response:
        start.wait(60)
        ask = requests.head if seed % 2 else requests.get
        return ask(f"{server.url}/cmtrack/experiments/1", params={"seed": 1000 + seed}, timeout=120)

    with ThreadPoolExecutor(50) as pool:
        pages = [pool.submit(read, seed) for seed in range(50)]
        start.wait(60)
        beside = 0
        while not all(one.done() for one in pages):
            url = f"{server.url}/api/2.0/mlflow/experiments/get"
            assert requests.get(url, params={"experiment_id": "1"}, timeout=10).status_code == 200
            beside += 1
    assert beside > 0
    answers = [one.result() for one in pages]
    assert {answer.status_code for answer in answers} <= {200, 503}
    away = [answer for answer in answers if answer.status_code == 503]
    assert 25 <= len(away) < 50
    assert {answer.headers["Retry-After"] for answer in away} == {str(_page_work.SOON)}
    assert {answer.request.method for answer in away} == {"GET", "HEAD"}
    for answer in away:
        assert bool(answer.text) == (answer.request.method == "GET")
        assert not answer.text or "You wait for 2 other pages already." in answer.text or "being made" in answer.text


def test_mlflows_own_pages_are_as_before(opened):
    server, _ = opened
    assert requests.get(f"{server.url}/version", timeout=60).text == mlflow.__version__
    assert "<title>MLflow</title>" in requests.get(f"{server.url}/", timeout=60).text


def test_gunicorn_serves_the_same(tmp_path, plugged):
    if EARLY or importlib.util.find_spec("gunicorn") is None:
        pytest.skip("MLflow before 3.16, or no gunicorn")
    with tracking_server(
        tmp_path, "--app-name", "cmtrack", "--gunicorn-opts", "--threads 4", environment=plugged
    ) as server:
        log_runs(server.url, "party", "sharp", "blunt")
        assert "“party” as it is now" in page(server, "/experiments/1").text


# -- behind passwords -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def guarded(tmp_path_factory, plugged):
    """A server where "reader" may read one experiment of two, and "outsider" none; with the runs of both."""
    folder = tmp_path_factory.mktemp("guarded")
    with basic_auth(folder, app="cmtrack-auth", permission="NO_PERMISSIONS", environment=plugged) as server:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("MLFLOW_TRACKING_USERNAME", ADMIN[0])
            patch.setenv("MLFLOW_TRACKING_PASSWORD", ADMIN[1])
            runs = log_runs(server.url, "party", "sharp", "blunt")
            hidden = log_runs(server.url, SECRET, f"{SECRET}, too")
            client = get_app_client("basic-auth", server.url)
            for name, password in (READER, OUTSIDER, NO_RUNS):
                client.create_user(name, password)
            if hasattr(client, "grant_user_permission"):
                client.grant_user_permission("reader", "experiment", "1", "READ")
                client.grant_user_permission(NO_RUNS[0], "experiment", "1", "READ")
                client.grant_user_permission(NO_RUNS[0], "run", "*", "DENY")
            else:
                client.create_experiment_permission("1", "reader", "READ")
        yield server, runs, hidden


def test_who_may_read_the_experiment_sees_its_review(guarded):
    server, _, _ = guarded
    for user in (ADMIN, READER):
        answer = page(server, "/experiments/1", user)
        assert answer.status_code == 200
        assert "“party” as it is now" in answer.text
    assert SECRET in page(server, "/experiments/2", ADMIN).text
    assert SECRET in page(server, "/", ADMIN).text


@pytest.mark.parametrize("path", ["", "/", "/experiments/1", "/experiments/2", "/experiments/99"])
def test_without_a_password_there_is_nothing(guarded, path):
    server, _, _ = guarded
    for user in (None, ("reader", "guessed-wrongly")):
        answer = page(server, path, user)
        assert answer.status_code == 401
        assert "party" not in answer.text


def test_who_may_not_read_an_experiment_sees_no_name_of_it(guarded):
    server, runs, hidden = guarded
    refused = [
        page(server, "/experiments/1", OUTSIDER),
        page(server, "/experiments/2", OUTSIDER),
        page(server, "/experiments/2", READER),
        page(server, "/experiments/2", READER, runs=runs),
        page(server, "/experiments/2/", READER),
        page(server, "/experiments/1", READER, runs=hidden),
        page(server, "/experiments/1", READER, runs=[*runs, *hidden]),
        page(server, "/experiments/1", READER, against=hidden[0]),
        page(server, "/experiments/1", OUTSIDER, runs=runs),
        page(server, "/experiments/1", OUTSIDER, experiment_id="2"),
        page(server, "/experiments/2", READER, experiment_id="1"),
    ]
    assert {answer.status_code for answer in refused} <= {403, 404}
    assert [answer.status_code for answer in refused].count(404) <= 1  # with a slash behind it there is no such page
    for answer in refused:
        assert SECRET not in answer.text
        assert "party" not in answer.text
        assert "sharp" not in answer.text


def test_who_may_read_experiments_and_no_runs_sees_none(guarded):
    server, runs, _ = guarded
    for query in ({}, {"runs": runs}, {"against": runs[0]}):
        answer = page(server, "/experiments/1", NO_RUNS, **query)
        assert answer.status_code == 403
        assert "sharp" not in answer.text


def test_a_page_that_one_user_has_seen_is_not_shown_to_another(guarded):
    server, _, _ = guarded
    for query in ({}, {"rank_by": "binary/f1"}):
        assert page(server, "/experiments/1", READER, **query).status_code == 200
        assert page(server, "/experiments/1", OUTSIDER, **query).status_code == 403


def test_a_hidden_run_is_answered_as_one_that_does_not_exist(guarded):
    server, _, hidden = guarded
    for name in ("runs", "against"):
        answers = []
        for run_id in (hidden[0], "0" * 32, "nowhere"):
            answer = page(server, "/experiments/1", READER, **{name: run_id})
            answers.append((answer.status_code, answer.text.replace(run_id, "ID"), sorted(answer.headers)))
        assert answers[0][0] == 403
        assert answers[0] == answers[1] == answers[2]


def test_the_list_holds_what_the_user_may_read(guarded):
    server, _, _ = guarded
    mine = page(server, "/", READER)
    assert mine.status_code == 200
    assert re.findall(r'href="experiments/(\d+)"', mine.text) == ["1"]
    assert SECRET not in mine.text
    none = page(server, "/", OUTSIDER)
    assert "There is none that you may read." in none.text
    assert "party" not in none.text


def test_basic_auth_still_guards_what_it_did(guarded):
    server, runs, _ = guarded
    url = f"{server.url}/api/2.0/mlflow/runs/get"
    assert requests.get(url, params={"run_id": runs[0]}, auth=OUTSIDER, timeout=60).status_code == 403
    assert requests.get(url, params={"run_id": runs[0]}, auth=READER, timeout=60).status_code == 200
    assert requests.get(f"{server.url}/", timeout=60).status_code == 401


# -- what is kept, and options ----------------------------------------------------------------------------------------


def test_pages_are_kept_up_to_a_number_and_a_size(monkeypatch):
    monkeypatch.setattr(_live_review, "MOST_PAGES", 3)
    monkeypatch.setattr(_live_review, "MOST_BYTES", 10)
    pages = _live_review.Pages()
    for place in range(4):
        pages.keep(str(place), "x")
    assert [pages.kept(str(place)) for place in range(4)] == [None, "x", "x", "x"]
    pages.kept("1")
    pages.keep("4", "x" * 9)
    assert [pages.kept(str(place)) for place in range(5)] == [None, "x", None, None, "x" * 9]
    pages.keep("5", "x" * 11)
    assert pages.kept("5") is None


def test_a_query_says_what_compare_takes():
    query = MultiDict([("rank_by", "binary/f1=2"), ("rank_by", "binary/roc_auc=1"), ("limit", "7"), ("prefix", "")])
    assert live_page.asked(query) == ({"rank_by": {"binary/f1": 2.0, "binary/roc_auc": 1.0}, "limit": 7}, [])
    query = MultiDict([("runs", "ab12"), ("runs", "cd34"), ("against", "ab12"), ("margin", "0.01")])
    assert live_page.asked(query) == ({"against": "ab12", "margin": 0.01}, ["ab12", "cd34"])
    with pytest.raises(live_page.Refused, match="leave it out, or runs"):
        live_page.asked(MultiDict([("runs", "ab12"), ("filter_string", "tags.a = 'b'")]))


# -- MLflow does not answer ------------------------------------------------------------------------------------------


class Half:
    """An app whose API answers what a table says, with the pages in it; its store has one run."""

    def __init__(self) -> None:
        self.api = {
            "experiments/get": (200, {"experiment": {"experiment_id": "1", "name": "party"}}),
            "experiments/search": (200, {"experiments": []}),
            "runs/get": (200, {"run": {"info": {"experiment_id": "1", "lifecycle_stage": "active"}}}),
        }
        self.fails = False
        app = Flask("mlflow-of-the-tests")
        app.register_blueprint(live_page.pages(Inside(lambda: self, lambda: None), "cmtrack"), url_prefix="/cmtrack")
        app.add_url_rule("/ajax-api/2.0/mlflow/<path:path>", "api", self._answer)
        self.client = app.test_client()

    def _answer(self, path: str) -> tuple[object, int]:
        status, data = self.api[path]
        return data, status

    def search_runs(self, *_: object) -> list[SimpleNamespace]:
        if self.fails:
            raise MlflowException("the database is locked", TEMPORARILY_UNAVAILABLE)
        return [SimpleNamespace(info=SimpleNamespace(run_id="ab12"))]


@pytest.fixture(scope="module")
def half():
    program = "from cmtrack_integrations._page_work import serve; serve(lambda question: (200, 'the page'))"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(live_page, "_MAKER", (sys.executable, "-c", program))
        yield Half()


CODES = {403: "PERMISSION_DENIED", 404: "RESOURCE_DOES_NOT_EXIST", 400: "INVALID_PARAMETER_VALUE"}
NO_ANSWER = [(500, {}), (503, {}), (429, {}), (502, "bad"), (400, {"error_code": "BAD_REQUEST"}), (200, "a page")]


@pytest.mark.parametrize(
    ("asked", "query", "statuses"),
    [
        ("experiments/get", "", {403: 403, 404: 404, 400: 404}),
        ("runs/get", "", {403: 403}),
        ("runs/get", "?runs=cd34", {403: 403, 404: 403, 400: 403}),
        ("runs/get", "?against=cd34", {403: 403, 404: 403, 400: 403}),
        ("experiments/search", None, {403: 403, 400: 400}),
    ],
)
def test_no_answer_of_mlflow_is_no_refusal(half, monkeypatch, asked, query, statuses):
    path = "/cmtrack/" if query is None else f"/cmtrack/experiments/1{query}"
    assert half.client.get(path).status_code == 200
    for status, shown in statuses.items():
        monkeypatch.setitem(half.api, asked, (status, {"error_code": CODES[status]}))
        assert half.client.get(path).status_code == shown
    for no_answer in NO_ANSWER:
        monkeypatch.setitem(half.api, asked, no_answer)
        for answer in (half.client.get(path), half.client.head(path)):
            assert answer.status_code == 503
            assert answer.headers["Retry-After"] == answer.headers["Refresh"] == "5"
        assert "MLflow does not answer now" in half.client.get(path).text


def test_a_store_that_does_not_answer_is_no_refusal(half, monkeypatch):
    monkeypatch.setattr(half, "fails", True)
    for path in ("/cmtrack/experiments/1", "/cmtrack/experiments/1?runs=cd34"):
        answer = half.client.get(path)
        assert answer.status_code == 503
        assert "MLflow does not answer now." in answer.text


def question(**options) -> dict:
    return {
        "experiment": "party",
        "readable": {"1": "party"},
        "options": options,
        "runs": [],
        "workspace": None,
        "address": "http://here",
    }


@pytest.mark.parametrize("code", [TEMPORARILY_UNAVAILABLE, BAD_REQUEST, INTERNAL_ERROR])
def test_the_process_tells_a_busy_store_from_a_wrong_option(code):
    class Store:
        busy = False

        def get_experiment(self, experiment_id: str) -> Experiment:
            return Experiment(experiment_id, "party", "/nowhere", "active")

        def search_runs(self, ids: list[str], text: str, *_: object) -> PagedList:
            if self.busy or text:
                raise MlflowException("too many connections", code)
            return PagedList([], None)

    inside = Inside(Store, lambda: None)
    assert _live_review.answer(question(), inside, _live_review.Pages())[0] == 404  # there is nothing
    status, text = _live_review.answer(question(filter_string="odd"), inside, _live_review.Pages())
    assert (status, "refused the search: too many connections" in text) == (400, True)
    Store.busy = True
    status, text = _live_review.answer(question(filter_string="odd"), inside, _live_review.Pages())
    assert (status, text) == (503, "MLflow does not answer now: too many connections")


def test_a_page_without_what_could_not_be_read_is_not_kept(store):
    client = mlflow.MlflowClient()
    experiment = client.create_experiment("party")
    runs = [log_run(client, experiment, name, 2.0) for name in ("sharp", "blunt")]
    silent = set(runs[:1])

    def get_artifact() -> Response:
        run = client.get_run(request.args["run_uuid"])
        if run.info.run_id in silent:
            return Response(status=503)
        folder = Path(urlsplit(run.info.artifact_uri).path)
        return Response((folder / request.args["path"]).read_bytes())

    inside, pages = Inside(lambda: client._tracking_client.store, get_artifact), _live_review.Pages()
    asked = question() | {"readable": {experiment: "party"}}
    status, text = _live_review.answer(asked, inside, pages)
    assert (status, "the artifact store answers 503" in text) == (200, True)
    silent.clear()
    status, whole = _live_review.answer(asked, inside, pages)
    assert (status, "the artifact store answers 503" in whole) == (200, False)
    silent.update(runs)
    assert _live_review.answer(asked, inside, pages) == (200, whole)  # it is kept
    status, text = _live_review.answer(asked | {"address": "http://elsewhere"}, inside, pages)
    assert (status, text) == (503, "MLflow does not answer now: the artifact store answers 503")


# -- a version that lacks what the pages stand on --------------------------------------------------------------------


@pytest.mark.parametrize("name", ["_get_tracking_store", "get_artifact_handler", "_find_validator"])
def test_the_server_starts_where_mlflow_lacks_a_name(monkeypatch, name):
    from mlflow.server import handlers

    from cmtrack_integrations import server

    class Auth:
        _find_validator = staticmethod(lambda request: None)

    lacking = Auth if name == "_find_validator" else handlers
    monkeypatch.delattr(lacking, name)
    app = Flask("mlflow-of-the-tests")
    server._with_pages(app, server._let_pass(Auth))
    for path in ("/cmtrack/", "/cmtrack/experiments/1"):
        answer = app.test_client().get(path)
        assert answer.status_code == 501
        assert f"This MLflow, {mlflow.__version__}, has no mlflow.server." in answer.text
        assert name in answer.text


def test_the_server_starts_where_the_pages_cannot_be_added(monkeypatch, caplog):

    from cmtrack_integrations import server

    monkeypatch.setattr(server, "insides", lambda *_, **__: 1 / 0)
    app = Flask("mlflow-of-the-tests")
    server._with_pages(app, [])
    assert app.test_client().get("/cmtrack/").status_code == 404
    assert "cmtrack's pages are not served" in caplog.text
