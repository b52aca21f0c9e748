"""Which servers are asked for the files of runs, and who gets the password: addresses that a store may name."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import mlflow
import pytest

from cmtrack import Grouping, compare, evaluate, load_evaluation, log_evaluation, untrusted
from cmtrack.tracking import EvaluationWarning, regroup_runs, segment_runs, tracking_store
from support.components import tracking_server
from support.faults import PASS, FaultyProxy, LeadsTo, Recorder
from support.stores import push, waiting

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("undrawn")]

Y, GUESSED = [0, 1, 2, 1, 0, 2] * 5, [0, 1, 2, 2, 0, 1] * 5
PARITY = Grouping({"even": [0, 2], "odd": [1]}, name="parity")
EVALUATION = evaluate(Y, GUESSED)
FILE = "cmtrack_evaluation.json"
TOKEN = "the token of the tests"
REFUSED = "artifacts must|no request can be sent to"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, FaultyProxy]]:
    """The folder of a tracking server, and a proxy before it that keeps the headers."""
    folder = tmp_path_factory.mktemp("served")
    with tracking_server(folder) as running:
        proxy = FaultyProxy(running.port)
        yield folder, proxy
        proxy.close()


@pytest.fixture
def stranger() -> Iterator[Recorder]:
    recorder = Recorder()
    yield recorder
    recorder.close()


@pytest.fixture
def tracking(
    served: tuple[Path, FaultyProxy], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """Host and port of the tracking server, for which a token is set."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CMTRACK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("CMTRACK_SPOOL", str(tmp_path / "spool"))
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", TOKEN)
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
    monkeypatch.delenv("CMTRACK_ARTIFACT_HOSTS", raising=False)
    with tracking_store(served[1].url):
        yield str(urlsplit(served[1].url).netloc)


def moved(folder: Path, run_id: str, uri: str) -> None:
    """Write where the files of a run lie into the server's database, which refuses such places from users."""
    with (
        contextlib.closing(sqlite3.connect(folder / "server.db", timeout=30)) as connection,
        connection,
    ):
        connection.execute("UPDATE runs SET artifact_uri = ? WHERE run_uuid = ?", (uri, run_id))


ADDRESSES = {
    "another server": "http://{there}/x",
    "another server, served": "mlflow-artifacts://{there}/x",
    "a backslash": r"http://{there}\@{here}/x",
    "a backslash, served": r"mlflow-artifacts://{there}\@{here}/x",
    "a backslash, encoded": "http://{there}%5C@{here}/x",
    "the tracking server as a user": "http://{here}@{there}/x",
    "the tracking server as a user, served": "mlflow-artifacts://{here}@{there}/x",
    "the tracking server and a semicolon": "http://{here};@{there}/x",
    "a user and a password": "http://me:secret@{there}/x",
    "a blank before": " http://{there}/x",
    "a blank inside": "http://{here} @{there}/x",
    "in capitals": "HTTP://{there}/x",
    "a host of other digits": "http://{wide}/x",
    "a host that is a number": "http://{number}/x",
    "the same host by another name": "http://{name}/x",
    "the same host over TLS": "https://{here}/x",
}


@pytest.mark.parametrize("address", ADDRESSES.values(), ids=ADDRESSES)
def test_no_other_server_is_asked_or_gets_the_token(served, tracking, stranger, address):
    port = stranger.place.partition(":")[2]
    others = {
        "wide": f"１２７.0.0.1:{port}",
        "number": f"2130706433:{port}",
        "name": f"localhost:{port}",
    }
    uri = address.format(here=tracking, there=stranger.place, **others)
    client = mlflow.MlflowClient()
    run_id = client.create_run("0").info.run_id
    moved(served[0], run_id, uri)
    served[1].headers.clear()
    with pytest.warns(EvaluationWarning, match=REFUSED):
        assert log_evaluation(EVALUATION, run_id=run_id).status == "saved"
    with pytest.raises(ValueError, match=REFUSED):
        load_evaluation(run_id)
    assert [entry.status for entry in push()] == ["kept"]
    assert len(waiting()) == 1
    assert stranger.requests == []
    assert {headers["Authorization"] for headers in served[1].headers} == {f"Bearer {TOKEN}"}
    data = client.get_run(run_id).data
    assert data.tags["cmtrack.status"] == "metrics only"
    assert data.metrics["multiclass/accuracy"] == EVALUATION.metrics["multiclass/accuracy"]


def test_neither_reviews_nor_segments_nor_replacements_nor_models_go_elsewhere(
    served, tracking, stranger
):
    client = mlflow.MlflowClient()
    there = f"http://{stranger.place}/x"
    runs = [
        log_evaluation(Y, GUESSED, run_id=client.create_run("0").info.run_id).run_id
        for _ in range(2)
    ]
    comparison = compare(runs, rank_by="multiclass/accuracy")
    with (
        contextlib.closing(sqlite3.connect(served[0] / "server.db", timeout=30)) as connection,
        connection,
    ):
        connection.execute("UPDATE experiments SET artifact_location = ?", (there,))
    try:
        with pytest.raises(ValueError, match="must be on the tracking server"):
            comparison.log(experiment_name="Default")
        moved(served[0], runs[0], there)
        assert "must be on the tracking server" in regroup_runs(runs[:1], PARITY)[0].reason
        with pytest.warns(EvaluationWarning, match=REFUSED):
            log_evaluation(GUESSED, Y, run_id=runs[0], on_existing="replace")
        with pytest.raises(ValueError, match="must be on the tracking server"):
            segment_runs(
                runs[:1],
                {"side": ["left", "right"] * 15, "y": Y},
                segments=["side"],
                y_true="y",
                log=True,
            )
        model = client.create_logged_model("0", source_run_id=runs[1])
        assert model.artifact_location.startswith(there)
        of_model = compare([model.model_id], rank_by="multiclass/accuracy")
        assert of_model.best.run_id == runs[1]
    finally:
        with (
            contextlib.closing(sqlite3.connect(served[0] / "server.db", timeout=30)) as connection,
            connection,
        ):
            connection.execute("UPDATE experiments SET artifact_location = 'mlflow-artifacts:/0'")
    assert stranger.requests == []


def test_a_store_without_a_server_leads_to_none(store, stranger, tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", TOKEN)
    run_id = store.create_run("1").info.run_id
    path = store.tracking_uri.removeprefix("sqlite:///")
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE runs SET artifact_uri = ?", (f"http://{stranger.place}/x",))
    with pytest.warns(EvaluationWarning, match=REFUSED):
        log_evaluation(Y, GUESSED, run_id=run_id)
    with pytest.raises(ValueError, match=REFUSED):
        load_evaluation(run_id)
    assert stranger.requests == []


def test_other_addresses_of_the_tracking_server_are_its_own(served, tracking):
    client = mlflow.MlflowClient()
    for form in (
        "http://{}/api/2.0/mlflow-artifacts/artifacts/own/{}",
        "mlflow-artifacts://{}/own/{}",
    ):
        run_id = client.create_run("0").info.run_id
        moved(served[0], run_id, form.format(tracking, run_id))
        served[1].headers.clear()
        assert log_evaluation(EVALUATION, run_id=run_id).status == "completed"
        assert load_evaluation(run_id) == EVALUATION
        assert {headers["Authorization"] for headers in served[1].headers} == {f"Bearer {TOKEN}"}


@pytest.mark.parametrize("listed", ["http://{}", "https://artifacts:5500, http://{}/"])
def test_a_server_that_the_user_lists_is_asked_as_the_tracking_server(
    served, tracking, stranger, monkeypatch, listed
):
    run_id = mlflow.MlflowClient().create_run("0").info.run_id
    moved(served[0], run_id, f"mlflow-artifacts://{stranger.place}/x")
    monkeypatch.setenv("CMTRACK_ARTIFACT_HOSTS", listed.format(stranger.place))
    with pytest.warns(EvaluationWarning, match="accepted cmtrack_evaluation.json, but does not"):
        log_evaluation(EVALUATION, run_id=run_id, figures=False)
    with pytest.raises(
        ValueError, match=r"is damaged|not the file that was logged|not a cmtrack evaluation"
    ):
        load_evaluation(run_id)
    # MLflow may ask it for more than the files, such as what it can do
    assert {"GET", "PUT"} <= {method for method, *_ in stranger.requests}
    assert stranger.secrets == [f"Bearer {TOKEN}"] * len(stranger.requests)


@pytest.mark.parametrize("listed", ["{}", "https://{}", "http://[", "http://"])
def test_the_list_names_the_scheme_and_is_refused_where_it_is_none(
    served, tracking, stranger, monkeypatch, listed
):
    run_id = mlflow.MlflowClient().create_run("0").info.run_id
    moved(served[0], run_id, f"http://{stranger.place}/x")
    monkeypatch.setenv("CMTRACK_ARTIFACT_HOSTS", listed.format(stranger.place))
    with pytest.raises(ValueError, match=REFUSED):
        load_evaluation(run_id)
    assert stranger.requests == []


@pytest.mark.parametrize("how", ["token", "password", "address"])
@pytest.mark.parametrize("status", [302, 307])
def test_a_server_that_leads_on_does_not_pass_the_secret_on(
    served, tracking, stranger, monkeypatch, how, status
):
    proxy, uri = served[1], served[1].url
    monkeypatch.delenv("MLFLOW_TRACKING_TOKEN")
    if how == "token":
        monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", TOKEN)
    if how == "password":
        monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", "me")
        monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", "secret")
    if how == "address":
        uri = uri.replace("://", "://me:secret@")
    with tracking_store(uri):
        run_id = mlflow.MlflowClient().create_run("0").info.run_id
        log_evaluation(EVALUATION, run_id=run_id, figures=False, strict=True)
        proxy.fault = lambda _, path, __: (
            LeadsTo(f"http://{stranger.place}/y", status) if FILE in path else PASS
        )
        proxy.headers.clear()
        try:
            with pytest.raises(ValueError, match=r"damaged|not the file that was logged"):
                load_evaluation(run_id)
            with pytest.warns(EvaluationWarning):
                log_evaluation(evaluate(GUESSED, Y), run_id=run_id, figures=False)
        finally:
            proxy.fault = lambda *_: PASS
    assert any("Authorization" in headers for headers in proxy.headers)
    assert stranger.requests != []
    assert stranger.secrets == []


@pytest.mark.parametrize("uri", ["runs:/0123/x", "models:/m/1", "models:/m-0123"])
def test_a_reference_to_another_run_is_no_folder(uri):
    with pytest.raises(
        ValueError, match="the location of artifacts must be a URI or path, not a reference"
    ):
        untrusted.artifact_uri(uri)
