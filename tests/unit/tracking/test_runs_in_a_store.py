"""Runs of a tracking store: how they are named and found, what they lack, and what is written about them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import mlflow
import pytest
from click.testing import CliRunner
from mlflow.exceptions import MlflowException
from mlflow.protos.databricks_pb2 import RESOURCE_DOES_NOT_EXIST

from cmtrack import Grouping, Metric, compare, evaluate, load_evaluation, log_evaluation
from cmtrack.cli import main
from cmtrack.files import write_whole
from cmtrack.tracking import TrackedRun, build_into, quiet, regroup_runs, tag, tracking_store
from support.stores import sqlite_store

ACCURACY = "multiclass/accuracy"
Y = [0, 1] * 20
EVALUATION = "cmtrack_evaluation.json"
ROWS = "cmtrack_predictions.parquet"


def correct(count: int, **options: Any) -> Any:
    """An evaluation with so many correct predictions of 40."""
    return evaluate(Y, Y[:count] + [1 - label for label in Y[count:]], **options)


# -- a run that is named, by a store of the test's own ---------------------------------------------------------------


def entity(run_id: str, name: str = "n", folder: Any = "", **tags: str) -> Any:
    """A run as MLflow's client gives it."""
    info = SimpleNamespace(
        run_id=run_id,
        run_name=name,
        experiment_id=1,
        artifact_uri=str(folder),
        start_time=None,
        end_time=5,
        lifecycle_stage="active",
    )
    data = SimpleNamespace(metrics={}, params={}, tags={"cmtrack.status": "completed"} | tags)
    return SimpleNamespace(info=info, data=data)


class Page(list[Any]):
    token: str | None = None


class Store:
    """A client of a store with some runs, models and model versions."""

    def __init__(self, *runs: Any, uri: str = "http://u:p@host") -> None:
        self.runs = runs
        self.tracking_uri = uri
        self.searches: list[str] = []
        self.models: dict[str, Any] = {}
        self.versions: dict[tuple[str, str], Any] = {}

    def get_run(self, run_id: str) -> Any:
        for run in self.runs:
            if run.info.run_id == run_id:
                return run
        raise MlflowException("no such run", RESOURCE_DOES_NOT_EXIST)

    def search_experiments(self) -> list[Any]:
        return [SimpleNamespace(experiment_id=1, name="party")]

    def search_runs(self, ids: Any, text: str, **how: Any) -> Page:
        self.searches.append(text)
        if "run_name = '" in text:
            name = text.partition("= '")[2].removesuffix("'")
            found = [run for run in self.runs if run.info.run_name == name]
        else:
            beginning = text.partition("LIKE '")[2].partition("%")[0]
            found = [run for run in self.runs if run.info.run_id.startswith(beginning)]
        return Page(found[: how["max_results"]])

    def get_logged_model(self, model_id: str) -> Any:
        if model_id not in self.models:
            raise MlflowException("no such model", RESOURCE_DOES_NOT_EXIST)
        return self.models[model_id]

    def get_model_version(self, *key: str) -> Any:
        return self.versions[key]

    def get_model_version_by_alias(self, *key: str) -> Any:
        return self.versions[key]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders of artifacts, each with an evaluation of so many rows."""
    base = tmp_path_factory.mktemp("folders")
    for rows in (2, 3, 4):
        labels = ([0, 1] * rows)[:rows]
        evaluate(labels, labels).save(base / f"{rows}", rows=False)
    return {f"{rows}": base / f"{rows}" for rows in (2, 3, 4)}


FIRST = "abcdef01" + "0" * 24
SECOND = "abcdef02" + "0" * 24


@pytest.fixture
def client(folders: dict[str, Path]) -> Store:
    """Two runs, of which the first was evaluated on two rows and the second on three."""
    return Store(entity(FIRST, "forest", folders["2"]), entity(SECOND, "linear", folders["3"]))


def rows_of(reference: Any, client: Any) -> float:
    return load_evaluation(reference, client=client).n_samples


@pytest.mark.parametrize(
    ("reference", "rows"),
    [
        (FIRST, 2),
        (f" runs:/{FIRST}/model ", 2),
        (SimpleNamespace(run_id=SECOND), 3),
        (SimpleNamespace(info=SimpleNamespace(run_id=SECOND)), 3),
        ("abcdef02", 3),
        ("forest", 2),
        ("linear", 3),
    ],
)
def test_a_run_is_found_by_its_id_its_beginning_or_its_name(
    client: Store, reference: Any, rows: int
) -> None:
    assert rows_of(reference, client) == rows


@pytest.mark.parametrize(
    ("reference", "error", "says"),
    [
        ("  ", ValueError, "got an empty text"),
        (5, TypeError, "a run must be an id, a name, a model URI, or an object with a run_id"),
        (None, TypeError, "a run must be an id"),
        (SimpleNamespace(run_id=1), TypeError, "a run must be an id"),
        ("abcdef03", ValueError, r"there is no run 'abcdef03' \(http://host: .*no such run\)$"),
        (
            "nobody",
            ValueError,
            "give a run's id, the first 8 characters of its id, or its name if no other",
        ),
        ("forest'", ValueError, "there is no run"),
        ("abcdef0" + "1", ValueError, "several runs have an id that begins with 'abcdef01'"),
        ("twin", ValueError, "several runs are named 'twin', so give an id: abcdef01"),
        ("m-1", ValueError, "there is no model 'm-1'"),
        ("models:/name", ValueError, "a model must have the form 'models:/name/3' or"),
    ],
)
def test_what_names_no_run_or_several_is_refused(
    client: Store, reference: Any, error: type[Exception], says: str
) -> None:
    twins = [entity("abcdef01" + digit * 24, "twin") for digit in "12"]
    store = Store(*client.runs, *twins)
    with pytest.raises(error, match=says):
        load_evaluation(reference, client=store)
    assert not [search for search in store.searches if "forest''" in search]  # no quote is sought


def test_of_many_runs_ten_are_named() -> None:
    many = Store(*(entity(f"1{number:010}" + "0" * 21) for number in range(12)))
    with pytest.raises(ValueError, match=r"10000000009.* \(n\) and more$"):
        load_evaluation("100000000", client=many)


def test_an_id_that_would_climb_is_none() -> None:
    with pytest.raises(ValueError, match="a run's id must be an id"):
        load_evaluation("../a", client=Store(entity("../a")))


def metric(run_id: str, key: str, timestamp: int) -> Any:
    return SimpleNamespace(run_id=run_id, key=key, timestamp=timestamp)


def test_a_model_leads_to_the_run_that_evaluated_it(
    client: Store, folders: dict[str, Path]
) -> None:
    third = "c" * 32
    store = Store(*client.runs, entity(third, "third", folders["4"]))
    logged = [
        metric(FIRST, "x/y", 1),
        metric(SECOND, "x/y", 3),
        metric(third, "loss", 5),  # of the training script
        metric("", "x/y", 7),
    ]
    store.models = {
        "m-1": SimpleNamespace(metrics=logged),
        "m-2": SimpleNamespace(metrics=None, source_run_id=third),
        "m-3": SimpleNamespace(metrics=[], source_run_id=None),
    }
    store.versions = {
        ("name", "3"): SimpleNamespace(run_id=FIRST, model_id=None),
        ("name", "4"): SimpleNamespace(run_id=FIRST, model_id="m-2"),
        ("name", "5"): SimpleNamespace(run_id="", model_id=None),
        ("name", "champion"): SimpleNamespace(run_id=SECOND),
    }
    for reference, rows in (
        ("m-1", 3),
        ("m-2", 4),
        ("models:/m-2", 4),
        ("models:/name/3", 2),
        ("models:/name/4", 4),
        ("models:/name@champion", 3),
    ):
        assert rows_of(reference, store) == rows
    for reference in ("m-3", "models:/name/5"):
        with pytest.raises(ValueError, match="does not name "):
            load_evaluation(reference, client=store)


# -- what a run holds ------------------------------------------------------------------------------------------------

ONE = evaluate([0, 1, 1, 0], [0, 1, 0, 0])
RUN = "a" * 32


def holding(folder: Path, tags: dict[str, str], **files: bytes) -> Store:
    """A store with one run, whose folder of artifacts holds these files."""
    write_whole({folder / EVALUATION: b""})
    (folder / EVALUATION).unlink()
    for name, content in files.items():
        (folder / {"evaluation": EVALUATION, "rows": ROWS}[name]).write_bytes(content)
    run = entity(RUN, folder=folder)
    run.data.tags = tags
    return Store(run, uri="sqlite:///a.db")


def rows_file(evaluation: Any) -> bytes:
    content = BytesIO()
    evaluation.write_rows(content)
    return content.getvalue()


DONE = {"cmtrack.status": "completed"}
JSON = ONE.to_json().encode()


def test_a_run_gives_its_evaluation_and_its_rows(tmp_path: Path) -> None:
    store = holding(tmp_path / "r", DONE, evaluation=JSON, rows=rows_file(ONE))
    loaded = load_evaluation(RUN, client=store)
    assert (loaded, loaded.rows) == (ONE, None)
    assert load_evaluation(RUN, rows=True, client=store).rows is not None


@pytest.mark.parametrize(
    ("tags", "files", "rows", "says"),
    [
        (DONE, {}, False, f"has no {EVALUATION}: No such file or directory$"),
        (
            {"cmtrack.status": "started"},
            {},
            False,
            r"its evaluation was not finished \(status 'started'\)",
        ),
        ({}, {}, False, f"has no {EVALUATION}: No such file or directory; it has no evaluation$"),
        (
            {"cmtrack.val.status": "completed"},
            {},
            False,
            "; it has no evaluation; it has one under the prefix 'val'$",
        ),
        (DONE, {"evaluation": b"\xff"}, False, "the evaluation is damaged: 'utf-8' codec"),
        (DONE, {"evaluation": b"{"}, False, f"^run {RUN}: "),
        (
            DONE | {"cmtrack.digests": '{"evaluation": "0"}'},
            {"evaluation": JSON},
            False,
            f"{EVALUATION} is damaged: it is not the file that was logged$",
        ),
        (
            DONE | {"cmtrack.digests": '{"predictions_file": "b/secret.txt"}'},
            {"evaluation": JSON},
            True,
            "secret.txt cannot be read: the file must be named cmtrack_predictions.parquet$",
        ),
        (DONE, {"evaluation": JSON}, True, f"has no {ROWS}: No such file"),
        (DONE, {"evaluation": JSON, "rows": b"PAR1"}, True, "the predictions are damaged"),
    ],
)
def test_a_run_says_what_it_lacks(
    tmp_path: Path, tags: dict[str, str], files: dict[str, bytes], rows: bool, says: str
) -> None:
    store = holding(tmp_path / "r", tags, **files)
    with pytest.raises(ValueError, match=says):
        load_evaluation(RUN, rows=rows, client=store)


class Server:
    """A server with artifacts: the same content under every name that it has."""

    def __init__(self) -> None:
        self.status = 200
        self.content = JSON
        self.requests: list[str] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.requests.append(self.path)
                self.send_response(server.status)
                self.send_header("Content-Length", str(len(server.content)))
                self.end_headers()
                self.wfile.write(server.content)

            def log_message(self, *_: Any) -> None:
                """Print nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Server]:
    monkeypatch.setenv("CMTRACK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    running = Server()
    yield running
    running.server.shutdown()
    running.server.server_close()


def served(server: Server, **tags: str) -> Store:
    """A store on that server with one run, whose artifacts are there."""
    return Store(entity(RUN, folder=f"{server.url}/my%20files", **tags), uri=server.url)


def test_a_file_of_a_server_is_read_with_one_request(server: Server) -> None:
    assert load_evaluation(RUN, client=served(server)) == ONE
    assert server.requests == [f"/my%20files/{EVALUATION}"]


@pytest.mark.parametrize(
    ("status", "says"),
    [
        (404, f"has no {EVALUATION}: there is no such file"),
        (201, f"{EVALUATION} cannot be read: 127.0.0.1 answers 201"),
        (500, f"{EVALUATION} cannot be read: 127.0.0.1 answers 500"),
    ],
)
def test_what_a_server_answers_is_said(server: Server, status: int, says: str) -> None:
    server.status = status
    with pytest.raises(ValueError, match=says):
        load_evaluation(RUN, client=served(server))


def test_a_file_with_a_digest_is_downloaded_once(server: Server, tmp_path: Path) -> None:
    plain = served(server)
    for _ in range(2):
        load_evaluation(RUN, client=plain)
    assert len(server.requests) == 2  # without a digest nobody knows whether it has changed
    digests = build_into(ONE, tmp_path / "package", figures=False).tags["cmtrack.digests"]
    known = served(server, **{"cmtrack.digests": digests})
    for _ in range(2):
        assert load_evaluation(RUN, client=known) == ONE
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("folder", "listed", "allowed"),
    [
        ("{url}/a", "", False),
        ("{url}/a", "other, {url} ,", True),
        ("{url}/a", "127.0.0.1", False),  # of https
        ("{url}/a", "http://127.0.0.1:1", False),
    ],
)
def test_only_the_tracking_server_and_listed_ones_are_asked(
    server: Server, monkeypatch: pytest.MonkeyPatch, folder: str, listed: str, allowed: bool
) -> None:
    monkeypatch.setenv("CMTRACK_ARTIFACT_HOSTS", listed.format(url=server.url))
    store = Store(entity(RUN, folder=folder.format(url=server.url)), uri="https://host")
    if allowed:
        assert load_evaluation(RUN, client=store) == ONE
        return
    with pytest.raises(ValueError, match="its artifacts must be on the tracking server"):
        load_evaluation(RUN, client=store)
    assert server.requests == []


@pytest.mark.parametrize("folder", ["file://host/a", "//host/a", "\\\\host\\a"])
def test_a_server_names_no_folder_of_another_machine(folder: str) -> None:
    store = Store(entity(RUN, folder=folder), uri="https://host")
    with pytest.raises(ValueError, match="its artifacts are on another machine"):
        load_evaluation(RUN, client=store)


# -- a whole store ---------------------------------------------------------------------------------------------------

GAIN = Metric("own/gain", lambda binary: binary.tp - binary.fp, of="binary")
LOSS = Metric("own/loss", lambda binary: binary.fn, of="binary")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, str]]:
    """A store with some runs, and their ids by names."""
    folder = tmp_path_factory.mktemp("world")
    ids: dict[str, str] = {}
    with (
        pytest.MonkeyPatch.context() as patch,
        quiet(),
        tracking_store(sqlite_store(folder / "mlflow.db")) as uri,
    ):
        patch.chdir(folder)
        client = mlflow.MlflowClient()
        experiments = {
            name: client.create_experiment(name, artifact_location=(folder / name).as_uri())
            for name in ("party", "three", "odd")
        }

        def logged(experiment: str, name: str, evaluation: Any, **options: Any) -> None:
            run = client.create_run(experiments[experiment], run_name=name)
            client.log_param(run.info.run_id, "depth", len(ids))
            log_evaluation(
                evaluation, run_id=run.info.run_id, figures=False, strict=True, **options
            )
            client.set_terminated(run.info.run_id)
            ids[f"{experiment} {name} {len(ids)}"] = run.info.run_id

        logged("party", "fair", correct(30))
        logged("party", "good", correct(38, extra_metrics=[GAIN, LOSS]))
        logged("party", "poor", correct(20, extra_metrics=[GAIN]))
        two = [0, 1, 2] * 14
        logged("three", "late", evaluate(two, [0, 1, 2] * 7 + [0, 1, 1] * 7))
        logged("three", "early", evaluate(two, [0, 1, 2] * 7 + [1, 0, 2] * 7))
        logged("odd", "twin", correct(36))
        logged("odd", "twin", correct(34))
        logged("odd", "prefixed", correct(30), prefix="a/")
        log_evaluation(
            correct(30), run_id=ids["odd prefixed 7"], prefix="b/", figures=False, strict=True
        )
        logged("odd", "damaged", correct(30))
        (folder / "odd" / ids["odd damaged 8"] / "artifacts" / EVALUATION).write_text("{")
        nothing = client.create_run(experiments["odd"], run_name="nothing")
        ids["odd nothing 9"] = nothing.info.run_id
    return uri, ids


@pytest.fixture
def ids(world: tuple[str, dict[str, str]]) -> Iterator[dict[str, str]]:
    """The ids of the runs; their store is the current one."""
    with tracking_store(world[0]):
        yield world[1]


def ranked(**options: Any) -> Any:
    return compare(**({"rank_by": ACCURACY, "experiment_names": ["party"]} | options))


def names(runs: Any) -> list[str]:
    return [run.name for run in runs]


@pytest.mark.usefixtures("ids")
def test_an_experiment_is_ranked_and_each_step_is_told() -> None:
    told: list[Any] = []
    comparison = ranked(progress=lambda *step: told.append(step))
    assert [(run.rank, run.name, run.value) for run in comparison.runs] == [
        (1, "good", 0.95),
        (2, "fair", 0.75),
        (3, "poor", 0.5),
    ]
    assert told[0] == ("listing runs", 3, 0)
    assert told[-2:] == [("reading evaluations", 3, 3), ("ranking", 0, 0)]
    for run in comparison.runs:
        assert isinstance(run.run, TrackedRun)
        assert run.run.status() == "completed"


@pytest.mark.usefixtures("ids")
def test_at_most_so_many_runs_are_listed_the_best_first_and_read() -> None:
    comparison = ranked(max_runs=2)
    assert names(comparison.runs) == ["good", "fair"]
    assert "The store has more runs than the 2 that were listed (max_runs)." in comparison.notes
    assert ranked(max_runs=3).notes == ranked().notes
    short = ranked(limit=1)
    assert (names(short.runs), sorted(names(short.passed_over))) == (["good"], ["fair", "poor"])


@pytest.mark.usefixtures("ids")
def test_runs_under_another_grouping_are_read_before_the_list_is_cut() -> None:
    two = Grouping({"low": [0, 1], "two": [2]})
    options = {"experiment_names": ["three"], "grouping": two, "limit": 1}
    assert names(ranked(**options, rank_by="binary/recall").runs) == ["early"]
    assert names(ranked(experiment_names=["three"], limit=1).runs) == ["late"]


def test_runs_with_one_name_get_the_beginning_of_their_ids(ids: dict[str, str]) -> None:
    twins = [ids["odd twin 5"], ids["odd twin 6"]]
    comparison = compare(twins, rank_by=ACCURACY)
    for run in comparison.runs:
        assert run.name.startswith(f"twin ({run.run_id[:4]}")
    assert len(set(names(comparison.runs))) == 2


def test_what_cannot_be_read_is_left_out_and_named(ids: dict[str, str]) -> None:
    comparison = ranked(experiment_names=["odd"])
    left = {out.run.name: out.reason for out in comparison.left_out}
    assert left.keys() == {"prefixed", "damaged", "nothing"}
    assert left["nothing"] == "it has no evaluation"
    both = "it has no evaluation; it has evaluations under the prefixes 'a/', 'b/'"
    assert left["prefixed"] == both
    assert "it is not the file that was logged" in left["damaged"]
    with pytest.raises(ValueError, match=r"^the baseline 'damaged' cannot be read: "):
        ranked(against=ids["odd damaged 8"])


@pytest.mark.parametrize(
    ("name", "prefix", "says"),
    [
        (
            "odd nothing 9",
            "",
            "the run has no complete evaluation: cmtrack.log_evaluation in the training script",
        ),
        ("odd prefixed 7", "", "complete evaluation: there are evaluations under 'a/', 'b/'"),
        ("odd twin 5", "x/", "under the prefix 'x/': there are evaluations without a prefix"),
    ],
)
def test_where_nothing_is_complete_it_is_said_what_is_there(
    ids: dict[str, str], name: str, prefix: str, says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        compare(ids[name], rank_by=ACCURACY, prefix=prefix)


def test_a_baseline_is_ranked_once_also_where_a_gate_stops_it_or_it_is_behind(
    ids: dict[str, str],
) -> None:
    poor = ids["party poor 2"]
    elsewhere = ranked(experiment_names=None, runs=[ids["party fair 0"]], against=poor)
    assert (elsewhere.baseline.name, names(elsewhere.runs)) == ("poor", ["fair", "poor"])
    stopped = ranked(against=poor, require=[f"{ACCURACY} > 0.8"])
    assert sorted(stop.run.name for stop in stopped.failed) == ["fair", "poor"]
    assert names(stopped.runs) == ["good"]
    short = ranked(against=poor, limit=1)
    assert (names(short.runs), names(short.passed_over)) == (["good", "poor"], ["fair"])


@pytest.mark.usefixtures("ids")
def test_a_custom_metric_is_found_in_the_runs_that_have_it() -> None:
    assert names(ranked(rank_by="own/gain").runs) == ["good", "poor"]
    assert names(ranked(require="own/loss < 100").runs)[0] == "good"
    with pytest.raises(ValueError, match="own/none"):
        ranked(rank_by="own/none")


@pytest.mark.usefixtures("ids")
def test_the_latest_run_with_an_evaluation_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "400")

    def shown(*options: str) -> Any:
        return CliRunner().invoke(main, ["show", "--latest", *options])

    done = shown("--experiment", "party")
    assert done.exit_code == 0
    assert "“poor”" in done.stderr
    done = shown("--experiment", "party", "--filter", "params.depth = '0'")
    assert "“fair”" in done.stderr
    for options, where in (
        (("--experiment", "party", "--prefix", "val/"), "under the prefix 'val/' in 'party'"),
        (("--experiment", "party", "--filter", "params.depth = '9'"), "in 'party' that matches"),
        ((), "in the active experiment"),
    ):
        done = shown(*options)
        assert done.exit_code != 0
        assert f"there is no finished run with an evaluation {where}" in done.stderr


# -- regrouping ------------------------------------------------------------------------------------------------------

LEVELS = Grouping({"low": [0, 1], "two": [2]}, name="level")


def test_an_interrupted_regrouping_leaves_whole_runs_and_a_second_one_does_the_others(
    ids: dict[str, str],
) -> None:
    runs = [ids["three late 3"], ids["three early 4"]]
    told: list[Any] = []

    def interrupt(name: str, done: int, of: int) -> None:
        told.append((name, done, of))
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        regroup_runs(runs, LEVELS, figures=False, progress=interrupt)
    assert told[0] == ("late", 0, 2)
    statuses = [mlflow.get_run(run).data.tags.get(tag("status", "level_")) for run in runs]
    assert "completed" in statuses
    assert set(statuses) <= {"completed", None}
    done = regroup_runs(runs, LEVELS, figures=False)
    assert [one.status for one in done] == ["completed", "completed"]
    assert [one.already_done for one in done] == [status is not None for status in statuses]
    assert [one.after["binary/recall"] for one in done] == [0.5, 1.0]
    for options, already_done in (
        ({}, True),
        ({"force": True}, False),
        ({"dry_run": True}, False),
        ({"positive": "low"}, False),
    ):
        [one] = regroup_runs(runs[0], LEVELS, figures=False, **options)
        assert one.already_done == already_done


@pytest.mark.parametrize(
    ("grouping", "options", "error", "says"),
    [
        ({"a": [1]}, {}, TypeError, "grouping must be a Grouping, got dict"),
        (LEVELS, {"figures": "all"}, ValueError, "figures must be True, False or 'auto'"),
        (LEVELS, {"source_prefix": "/"}, ValueError, "prefix must start"),
        (LEVELS, {"prefix": "/"}, ValueError, "prefix must start"),
        (
            LEVELS,
            {"prefix": "a_", "source_prefix": "a/"},
            ValueError,
            "which would overwrite the evaluation under 'a/'",
        ),
        (LEVELS, {"prefix": ""}, ValueError, "which would overwrite the run's own evaluation"),
    ],
)
def test_a_wrong_option_of_a_regrouping_is_refused(
    grouping: Any, options: dict[str, Any], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        regroup_runs([], grouping, **options)
