"""A spool that others have filled: push answers for each entry, touches nothing outside, and tells no token."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mlflow
import pytest

from cmtrack import evaluate
from cmtrack.tracking import build_into
from support.faults import Recorder
from support.stores import push, waiting

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("undrawn")]

EVALUATION = evaluate([0, 1, 2, 1, 0, 2], [0, 1, 2, 2, 0, 1])
FILE = "cmtrack_evaluation.json"
SECRET = "a private key"
ASKS = "would get your password or token"


def values(**others: Any) -> Callable[[Path, Path], None]:
    """An entry with other values in its file."""

    def change(entry: Path, _: Path) -> None:
        file = entry / "entry.json"
        file.write_text(
            json.dumps(json.loads(file.read_text(encoding="utf-8")) | others), encoding="utf-8"
        )

    return change


def text(content: str) -> Callable[[Path, Path], None]:
    return lambda entry, _: (entry / "entry.json").write_text(content) and None


def instead(name: str, of: Callable[[Path, Path], Any]) -> Callable[[Path, Path], None]:
    """An entry with something else in the place of a file or a folder."""

    def change(entry: Path, outside: Path) -> None:
        path = entry / name
        if path.exists():
            path.rename(outside / f"{entry.name} {path.name}")
        of(path, outside)

    return change


def pipe(path: Path, _: Path) -> None:
    os.mkfifo(path)


def zeros(path: Path, _: Path) -> None:
    path.symlink_to("/dev/zero")


def secret(path: Path, outside: Path) -> None:
    path.symlink_to(outside / "secret")


def folder(path: Path, outside: Path) -> None:
    path.symlink_to(outside)


def unfinished(
    change: Callable[[Path, Path], None], file: str = "entry.json"
) -> Callable[[Path, Path], None]:
    """What a process left that ended while it wrote; cmtrack 0.2 wrote intent.json in place of entry.json."""

    def whole(entry: Path, outside: Path) -> None:
        address = {
            "run_id": "r",
            "schema": 1,
            "prefix": "",
            "step": None,
            "model_id": None,
            "tracking_uri": None,
        }
        (entry / file).write_text(json.dumps(address))
        if file != "entry.json":
            (entry / "entry.json").unlink()
        (entry / ".lock").touch()
        change(entry, outside)
        entry.rename(entry.with_name(f".{entry.name}"))

    return whole


ENTRIES: dict[str, tuple[Callable[[Path, Path], None], str]] = {
    "no JSON": (text("{"), "entry.json is damaged"),
    "deep JSON": (text("[" * 200_000), "entry.json is damaged"),
    "a list": (text("[]"), "must be a mapping"),
    "20 MB": (text(" " * (20 << 20)), "must not be larger than 16 MB"),
    "a link to a secret": (instead("entry.json", secret), "got a link"),
    "another schema": (values(schema=99), "schema 99"),
    "a huge number": (values(metrics={"multiclass/accuracy": 10**400}), "finite numbers"),
    "a number of many digits": (text('{"schema": ' + "9" * 5000 + "}"), "Exceeds the limit"),
    "no number": (text('{"schema": NaN}'), "is not a finite number"),
    "a huge time": (values(timestamp=10**30), "timestamp must be a number of at most 64 bits"),
    "a run that climbs": (values(run_id="../../x"), "run_id must be an id"),
    "a prefix that climbs": (values(prefix="../x/"), "prefix"),
    "another scheme": (values(tracking_uri="javascript:alert(1)"), "one of the schemes"),
    "another server": (values(tracking_uri="http://{there}"), ASKS),
    "another server and a password": (
        values(tracking_uri="http://me:pw@{there}"),
        ASKS,
    ),
    "another server and a backslash": (
        values(tracking_uri=r"http://{there}\@127.0.0.1:1"),
        ASKS,
    ),
    "tags of MLflow": (values(tags={"mlflow.user": "root"}), "tags must be named cmtrack"),
    "an image that climbs": (
        values(images={"cmtrack/matrix": "../../secret"}),
        "is not in the entry",
    ),
    "a table that climbs": (values(table="../secret"), "plain name"),
    "artifacts elsewhere": (instead("artifacts", folder), "must have a folder 'artifacts'"),
    "charts elsewhere": (instead("charts", folder), "must have a folder 'artifacts'"),
    "a link among the files": (
        instead("artifacts/notes.txt", secret),
        "plain files, got 'notes.txt'",
    ),
    "a pipe among the files": (
        instead("artifacts/notes.txt", pipe),
        "plain files, got 'notes.txt'",
    ),
    "a device among the files": (
        instead("artifacts/notes.txt", zeros),
        "plain files, got 'notes.txt'",
    ),
    "no evaluation": (instead(f"artifacts/{FILE}", lambda *_: None), "is not in the entry"),
    "half an evaluation": (
        instead(f"artifacts/{FILE}", lambda path, _: path.write_text("{")),
        "is damaged",
    ),
    "unfinished, a link to a secret": (unfinished(instead("entry.json", secret)), "got a link"),
    "unfinished, a former link to a secret": (
        unfinished(instead("intent.json", secret), "intent.json"),
        "got a link",
    ),
    "unfinished, an evaluation elsewhere": (
        unfinished(instead(f"artifacts/{FILE}", secret)),
        "interrupted before the evaluation was complete",
    ),
    "unfinished, an endless evaluation": (
        unfinished(instead(f"artifacts/{FILE}", zeros)),
        "interrupted before the evaluation was complete",
    ),
    "unfinished, deep JSON": (
        unfinished(
            instead("intent.json", lambda path, _: path.write_text("[" * 10**5)), "intent.json"
        ),
        "intent.json is damaged: RecursionError",
    ),
}
PASSED_OVER = {"a pipe for its file": instead("entry.json", pipe)}
SENT = {
    "whole": lambda *_: None,
    "a pipe for a lock": instead(".lock", pipe),
    "a lock elsewhere": instead(".lock", secret),
}


def test_push_answers_for_every_entry_of_others_and_touches_nothing_outside(
    store, tmp_path, monkeypatch
):
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "the token of the tests")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    stranger, outside, place = Recorder(), tmp_path / "outside", tmp_path / "spool"
    outside.mkdir()
    (outside / "secret").write_text(SECRET)
    (outside / FILE).write_text(SECRET)
    runs = {}
    for name, change in {
        **{name: one for name, (one, _) in ENTRIES.items()},
        **PASSED_OVER,
        **SENT,
    }.items():
        runs[name] = store.create_run("1").info.run_id
        build_into(EVALUATION, place / name, run_id=runs[name], tracking_uri=store.tracking_uri)
        change(place / name, outside)
        file = place / name / "entry.json"
        if "server" in name:
            file.write_text(
                file.read_text(encoding="utf-8").replace("{there}", stranger.place),
                encoding="utf-8",
            )
    (place / "an entry elsewhere").symlink_to(outside)
    before = {path: path.is_file() and path.read_bytes() for path in outside.rglob("*")}
    began = time.monotonic()
    listed = {entry.name for entry in waiting(place)}
    out = {entry.entry.name.lstrip("."): entry for entry in push(place)}
    assert time.monotonic() - began < 120
    stranger.close()
    assert set(out) == listed == {*ENTRIES, *SENT}
    for name, (_, says) in ENTRIES.items():
        assert out[name].status in ("kept", "refused"), name
        assert says in out[name].reason, (name, out[name].reason)
    assert {out[name].status for name in SENT} == {"sent"}
    assert stranger.requests == []
    assert {path: path.is_file() and path.read_bytes() for path in outside.rglob("*")} == before
    for name, run_id in runs.items():
        files = {file.path for file in mlflow.MlflowClient().list_artifacts(run_id)}
        assert bool(files) == (name in SENT), name
        assert store.get_run(run_id).data.tags.get("cmtrack.status") == (
            "completed" if name in SENT else None
        ), name
    left = {path.name.lstrip(".") for path in place.iterdir()}
    assert left == {*ENTRIES, *PASSED_OVER, "an entry elsewhere"}


def test_a_server_that_is_named_gets_the_token(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "the token of the tests")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    stranger = Recorder()
    build_into(
        EVALUATION, tmp_path / "spool" / "one", run_id="r", tracking_uri=f"http://{stranger.place}"
    )
    (kept,) = push(tmp_path / "spool", tracking_uri=f"http://{stranger.place}")
    stranger.close()
    assert kept.status == "kept"
    assert set(stranger.secrets) == {"Bearer the token of the tests"}
