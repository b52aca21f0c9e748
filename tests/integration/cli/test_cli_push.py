"""``cmtrack push`` and ``cmtrack spool``, as a user calls them."""

from __future__ import annotations

import json
from pathlib import Path

import mlflow
import pytest
from click.testing import CliRunner

from cmtrack import evaluate, load_evaluation, log_evaluation
from cmtrack.cli import main
from cmtrack.tracking import EvaluationWarning

pytestmark = pytest.mark.usefixtures("undrawn")


def call(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(main, list(arguments))
    return done.exit_code, " ".join(done.stdout.split())


@pytest.fixture
def waiting(store, monkeypatch):
    """A run, and the spool with its evaluation and with one that was meant for no run."""
    monkeypatch.setenv("COLUMNS", "150")
    run_id = store.create_run("1").info.run_id
    uri = store.tracking_uri
    mlflow.set_tracking_uri("http://127.0.0.1:9")
    with pytest.warns(EvaluationWarning, match="does not answer"):
        log_evaluation(evaluate([0, 1, 1], [0, 1, 0]), run_id=run_id)
    mlflow.set_tracking_uri(uri)
    with pytest.warns(EvaluationWarning, match="no run is active"):
        log_evaluation(evaluate([0, 1, 1, 0], [0, 1, 0, 0]), prefix="val/")
    return run_id


def test_nothing_waits(store, tmp_path):
    assert call("spool") == (0, f"Nothing waits in {tmp_path}/cmtrack_spool.")
    assert call("push") == (0, f"Nothing waits in {tmp_path}/cmtrack_spool.")


@pytest.mark.slow
def test_what_waits_is_listed_and_sent(waiting, store):
    code, text = call("spool")
    assert code == 0
    assert "2 in" in text
    assert "evaluation of 3 rows" in text
    assert "no run" in text
    code, text = call("push")
    assert code == 1  # its store does not answer, and the other was meant for none
    assert "kept (the tracking server 127.0.0.1:9 does not answer" in text
    assert (
        "kept (it has no run: name an experiment for it (--experiment NAME, or experiment_name=))"
        in text
    )
    assert "0 of 2 sent." in text
    code, text = call("push", "--tracking-uri", store.tracking_uri, "--experiment", "e")
    assert code == 0, text
    assert f"sent to run {waiting}" in text
    assert "2 of 2 sent." in text
    assert load_evaluation(waiting).n_samples == 3
    assert len(store.search_runs(["1"])) == 2
    assert not Path("cmtrack_spool").exists()


def test_machines_get_json(waiting, store):
    code, text = call("spool", "--json")
    entries = json.loads(text)["entries"]
    assert [entry["kind"] for entry in entries] == ["evaluation", "evaluation"]
    code, text = call("push", "--json", "--tracking-uri", store.tracking_uri)
    assert code == 1
    assert sorted(entry["status"] for entry in json.loads(text)["entries"]) == ["kept", "sent"]


@pytest.mark.slow
def test_a_damaged_entry_and_inputs_are_named(waiting, store):
    with pytest.warns(EvaluationWarning, match="inputs are kept"):
        log_evaluation([0, 1], [0], run_id=waiting)
    first = sorted(Path("cmtrack_spool").iterdir())[0]
    (first / "entry.json").write_text("{")
    code, text = call("spool")
    assert "entry.json is damaged" in text
    assert "the inputs of a failed evaluation" in text
    code, text = call("push", "--tracking-uri", store.tracking_uri, "--experiment", "e")
    assert code == 1
    assert "refused (entry.json is damaged" in text
    assert "1 of 3 sent." in text


def test_another_folder(waiting, tmp_path, store):
    Path("cmtrack_spool").rename(tmp_path / "elsewhere")
    _, text = call(
        "push", "--folder", str(tmp_path / "elsewhere"), "--tracking-uri", store.tracking_uri
    )
    assert "1 of 2 sent." in text
