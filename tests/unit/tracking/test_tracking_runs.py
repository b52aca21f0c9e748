"""What is said of runs and asked of stores, by hand: a store here is an object with what MLflow would answer."""

from __future__ import annotations

import copy
import errno
import json
import math
import os
import re
import time
import warnings
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace as Any_
from typing import Any

import pytest
from mlflow.exceptions import MlflowException
from mlflow.protos.databricks_pb2 import INTERNAL_ERROR, RESOURCE_DOES_NOT_EXIST

from cmtrack import Grouping, Metric, evaluate
from cmtrack.comparison import CompareOptions, Run
from cmtrack.comparison.compare import compare_runs
from cmtrack.comparison.run import Listing
from cmtrack.tracking import artifacts, comparing, load, publish, regroup, runs, segments, send
from cmtrack.tracking import package as packages
from cmtrack.tracking.cache import digest_of
from cmtrack.tracking.package import Package

URI = "http://u:p@host"


def entity(run_id: str = "a" * 32, name: str | None = "n", **more: Any) -> Any:
    info = Any_(
        run_id=run_id,
        run_name=name,
        experiment_id=1,
        artifact_uri=None,
        start_time=None,
        end_time=5,
        lifecycle_stage="active",
    )
    data = Any_(metrics=more.pop("metrics", {}), params={}, tags=more.pop("tags", {}))
    return Any_(info=info, data=data, **more)


class Page(list):
    token: str | None = None


class Store:
    """A client of a store with some runs."""

    tracking_uri = URI

    def __init__(self, *entities: Any, size: int = 2) -> None:
        self.entities, self.size, self.asked = entities, size, []

    def get_run(self, run_id: str) -> Any:
        for one in self.entities:
            if one.info.run_id == run_id:
                return one
        raise MlflowException("no such run", RESOURCE_DOES_NOT_EXIST)

    def search_runs(
        self, ids: Any, text: str, max_results: int, order_by: Any, page_token: str | None
    ) -> Page:
        self.asked.append((ids, text, max_results))
        start = int(page_token or 0)
        if text.startswith("attributes.run_name"):
            name = text.partition("= '")[2].removesuffix("'")
            fitting = [one for one in self.entities if one.info.run_name == name]
        else:
            beginning = text.partition("LIKE '")[2].partition("%")[0]
            fitting = [one for one in self.entities if one.info.run_id.startswith(beginning)]
        page = Page(fitting[start : start + min(self.size, max_results)])
        page.token = str(start + len(page)) if start + len(page) < len(fitting) else None
        return page

    def search_experiments(self, **_: Any) -> list[Any]:
        return [Any_(experiment_id=1, name="party"), Any_(experiment_id=2, name="other")]

    def get_experiment_by_name(self, name: str) -> Any:
        return next((one for one in self.search_experiments() if one.name == name), None)


def test_an_entity_of_mlflow_is_a_run() -> None:
    output, data = Any_(model_id="m-2"), Any_(dataset=Any_(name="d", digest="e"))
    run = runs.from_entity(
        entity(
            outputs=Any_(model_outputs=[output, output]), inputs=Any_(dataset_inputs=[data, data])
        ),
        Store(),
        ["m-1"],
    )
    assert (run.run_id, run.name, run.experiment_id, run.tracking_uri) == ("a" * 32, "n", "1", URI)
    assert (run.artifact_uri, run.start_time, run.end_time) == ("", 0, 5)
    assert (run.model_ids, run.datasets) == (("m-1",), (("d", "e"),))
    assert runs.from_entity(entity(name=None), Store()).name == "a" * 32
    with pytest.raises(ValueError, match="a run's id must be an id"):
        runs.from_entity(entity("../a"), Store())


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ('[{"model_size_bytes": 5}, {"model_size_bytes": 7}]', 7),
        ("[]", 0),
        ("{", 0),
        ("[1]", 0),
        ('[{"a": 1}]', 0),
    ],
)
def test_the_size_of_a_model_is_that_of_the_last_logged_one(text: str, size: int) -> None:
    assert runs._logged_size({"mlflow.log-model.history": text}) == size
    assert runs._logged_size({}) == 0


def test_runs_are_searched_page_by_page_and_no_more_than_wanted() -> None:
    store, seen = Store(*(entity(str(k) * 32) for k in range(5))), []
    assert [run.run_id[0] for run in runs.search(store, ["1"], progress=seen.append)] == list(
        "01234"
    )
    assert seen == [2, 4, 5]
    assert [run.run_id[0] for run in runs.search(store, ["1"], max_runs=3)] == list("012")
    assert [size for _, _, size in store.asked] == [runs.PAGE] * 3 + [3, 1]
    assert list(runs.search(store, ["1"], max_runs=0)) == []

    def refuse(*_: Any, **__: Any) -> None:
        raise MlflowException("no\nmore")

    store.search_runs = refuse
    with pytest.raises(ValueError, match=r"the tracking store refused the search: no$"):
        list(runs.search(store, ["1"]))


def test_a_run_is_found_by_a_name_that_no_other_run_has() -> None:
    first, second = entity("abcdef01" + "0" * 24, "forest"), entity("abcdef02" + "0" * 24, "linear")
    store = Store(first, second)
    assert runs.find("forest", [store]).run_id == first.info.run_id
    assert runs.find("linear", [Store(), store], ["party"]).run_id == second.info.run_id
    twin = entity("abcdef03" + "0" * 24, "forest")
    with pytest.raises(
        ValueError, match=r"several runs are named 'forest', so give the id of one: abcdef01"
    ):
        runs.find("forest", [Store(first, twin)])
    with pytest.raises(ValueError, match="there is no run 'forest'"):
        runs.find("forest", [store], ["nowhere"])
    with pytest.raises(ValueError, match="there is no run"):
        runs.find("forest'", [store])
    # a quote is never searched
    assert not [condition for _, condition, _ in store.asked if "forest''" in condition]


def test_an_experiment_that_is_none_gets_those_like_it() -> None:
    assert runs.experiment_ids(Store(), ["other", "party"]) == ["2", "1"]
    with pytest.raises(
        ValueError, match=r"there is no experiment 'partie' in http://host; did you mean 'party'\?"
    ):
        runs.experiment_ids(Store(), ["partie"])
    with pytest.raises(ValueError, match=r"there is no experiment '123' in http://host$"):
        runs.experiment_ids(Store(), ["123"])


def test_a_run_is_found_by_its_id_or_its_beginning() -> None:
    first, second = entity("abcdef01" + "0" * 24), entity("abcdef02" + "0" * 24, "m")
    store = Store(first, second)
    for reference in (
        first.info.run_id,
        f" runs:/{first.info.run_id}/model ",
        first,
        Any_(run_id=first.info.run_id),
    ):
        assert runs.find(reference, [Store(), store]).run_id == first.info.run_id
    assert runs.find("abcdef02", [store]).name == "m"
    assert runs.find("abcdef02", [store, store], ["party"]).name == "m"
    with pytest.raises(
        ValueError, match=r"there is no run 'abcdef02' \(http://host: .*no such run\)$"
    ):
        runs.find("abcdef02", [store], ["nowhere"])
    both = entity("abcdef020" + "1" * 23, "o")
    with pytest.raises(
        ValueError,
        match=r"several runs have an id that begins with 'abcdef02': abcdef020000.* \(m\), ",
    ):
        runs.find("abcdef02", [Store(second, both)])
    with pytest.raises(
        ValueError,
        match="by its id, the first 8 characters of it, or its name if no other run has it",
    ):
        runs.find("nobody", [Store()])
    with pytest.raises(ValueError, match=r"10000000009.* \(n\) and more$"):
        runs.find(
            "1" + "0" * 8, [Store(*(entity(f"1{k:010}" + "0" * 21) for k in range(12)), size=20)]
        )
    with pytest.raises(ValueError, match="there is no model 'm-1'"):
        runs.find("m-1", [Any_(tracking_uri=URI, get_logged_model=Store().get_run)])
    with pytest.raises(ValueError, match="got an empty text"):
        runs.find("  ", [store])
    for wrong in (5, None, Any_(run_id=1)):
        with pytest.raises(
            TypeError, match="a run must be an id, a name, a model URI, or an object with a run_id"
        ):
            runs.find(wrong, [store])

    def silent(run_id: str) -> None:
        raise MlflowException("gone", INTERNAL_ERROR)

    with pytest.raises(ConnectionError, match=r"http://host did not answer: .*gone"):
        runs.find("a" * 32, [Any_(tracking_uri=URI, get_run=silent)])


def test_a_model_leads_to_the_run_that_judged_it() -> None:
    def metric(run_id: str, key: str, timestamp: int) -> Any:
        return Any_(run_id=run_id, key=key, timestamp=timestamp)

    models = {
        "m-1": Any_(
            metrics=[
                metric("a", "x/y", 1),
                metric("b", "x/y", 3),
                metric("c", "x", 5),
                metric("", "x/y", 7),
            ]
        ),
        "m-2": Any_(metrics=None, source_run_id="s"),
        "m-3": Any_(metrics=[], source_run_id=None),
    }
    versions = {
        ("name", "3"): Any_(run_id="r", model_id=None),
        ("name", "4"): Any_(run_id="r", model_id="m-2"),
        ("name", "5"): Any_(run_id="", model_id=None),
        ("name", "champion"): Any_(run_id="q"),
    }
    client = Any_(
        get_logged_model=models.__getitem__,
        get_model_version=lambda *key: versions[key],
        get_model_version_by_alias=lambda *key: versions[key],
    )
    for text, found in (
        ("m-1", ("b", ("m-1",))),
        ("m-2", ("s", ("m-2",))),
        ("models:/m-2", ("s", ("m-2",))),
        ("models:/name/3", ("r", ())),
        ("models:/name/4", ("s", ("m-2",))),
        ("models:/name@champion", ("q", ())),
        ("runs:/x/model", ("x", ())),
        ("x", ("x", ())),
    ):
        assert runs._resolve(text, client) == found
    for text, says in (
        ("m-3", "names no run"),
        ("models:/name/5", "names no run"),
        ("models:/name", "must read"),
    ):
        with pytest.raises(ValueError, match=says):
            runs._resolve(text, client)


def test_runs_with_one_name_get_the_beginning_of_their_ids() -> None:
    names = runs.unique_names({"aaaabbbb": "n", "aaaacccc": "n", "dddd": "m"})
    assert names == {"aaaabbbb": "n (aaaa)", "aaaacccc": "n (aaaacccc)", "dddd": "m"}


def test_runs_are_given_as_one_several_or_a_frame() -> None:
    import pandas as pd

    one = Any_(run_id="a")
    assert runs.as_references("a") == ["a"]
    assert runs.as_references(one) == [one]
    assert runs.as_references(iter(["a", one])) == ["a", one]
    assert runs.as_references(pd.DataFrame({"run_id": ["a", "b"]})) == ["a", "b"]
    with pytest.raises(ValueError, match=r"must have a column run_id, got \['x'\]"):
        runs.as_references(pd.DataFrame({"x": [1]}))
    for wrong in ({"a": 1}, 5):
        with pytest.raises(TypeError, match="runs must be run ids or objects"):
            runs.as_references(wrong)


def test_a_run_has_one_version_of_a_model_or_none_is_taken() -> None:
    def version(name: str, number: int, model_id: str | None = None) -> Any:
        return Any_(name=name, version=number, model_id=model_id)

    by_run: dict[str, list[Any]] = {
        "a" * 32: [version("x", 1, "m-1"), version("y", 2)],
        "s": [version("z", 3, "m-1")],
    }
    client: Any = Any_(
        get_run=lambda run_id: entity(run_id),
        search_model_versions=lambda text: by_run.get(text.split("'")[1], []),
        get_logged_model=lambda model_id: Any_(source_run_id={"m-1": "s", "m-2": None}[model_id]),
    )
    run = runs.from_entity(entity(), Store())
    assert [runs.version_for(run, client, name).version for name in ("x", "y")] == [1, 2]
    with pytest.raises(
        ValueError,
        match=r"2 registered versions come from run 'n' .*: x version 1, y version 2; reg",
    ):
        runs.version_for(run, client)
    with pytest.raises(ValueError, match="no registered version of 'w' comes from run 'n'"):
        runs.version_for(run, client, "w")
    judged = runs.from_entity(entity(), Store(), ["m-1"])
    assert [one.name for one in runs.versions_of(judged, client)] == ["x", "y", "z"]
    other = runs.from_entity(entity(), Store(), ["m-2"])
    # the other is of a model that was not judged
    assert [one.name for one in runs.versions_of(other, client)] == ["y"]
    by_run["a" * 32] = [version("x", 1), version("x", 2)]
    with pytest.raises(ValueError, match=r"2 registered versions .* set the alias by hand"):
        runs.version_for(run, client)


def test_the_active_experiment_is_the_one_that_a_new_run_would_go_into(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[str] = []
    store = Store()
    store.create_experiment = lambda name: made.append(name) or 3
    monkeypatch.setattr(runs, "client_for", lambda: store)
    monkeypatch.setattr(runs.mlflow_inside, "default_experiment_id", lambda: 0)
    for experiment_id, name, active in (
        (None, None, "0"),
        ("5", None, "5"),
        ("5", "other", "5"),
        (None, "other", "2"),
        (None, "new", "3"),
    ):
        for variable, value in (("ID", experiment_id), ("NAME", name)):
            monkeypatch.delenv(f"MLFLOW_EXPERIMENT_{variable}", raising=False)
            if value is not None:
                monkeypatch.setenv(f"MLFLOW_EXPERIMENT_{variable}", value)
        assert runs.active_experiment_id() == active
    assert made == ["new"]


def test_the_newest_finished_run_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "active_experiment_id", lambda: "7")
    store = Store(entity("a" * 32), entity("b" * 32))
    assert runs.newest(store, ["party"], "a = 1", "val/").run_id == "a" * 32
    finished = "attributes.status = 'FINISHED' and tags.`cmtrack.{}status` = 'completed'"
    assert store.asked == [(["1"], f"a = 1 and {finished.format('val.')}", 1)]
    for given, says in (
        ((), "in the active experiment; "),
        ((["party", "other"],), "in 'party' or 'other'; "),
        (
            ([], "a = 1", "val/"),
            "under the prefix 'val/' in the active experiment that matches 'a = 1'; ",
        ),
    ):
        empty = Store()
        with pytest.raises(
            ValueError,
            match=f"there is no finished run with an evaluation.* ?{re.escape(says)}`cmtrack p",
        ):
            runs.newest(empty, *(given or ([],)))
        assert empty.asked[0][0] == (["1", "2"] if "party" in says else ["7"])
    tags = {"cmtrack.a.status": "completed", "cmtrack.b.status": "started"}
    for prefixes, says in (
        (tags, "; it has one under the prefix 'a'"),
        ({}, ""),
        ({"cmtrack.b.status": "started"}, ""),
    ):
        one = runs.from_entity(entity(tags=prefixes), Store())
        assert one.why_incomplete("x/") == f"it has no evaluation under the prefix 'x/'{says}"


# -- sending ---------------------------------------------------------------------------------------------------------


class Refused(Exception):
    def __init__(self, status: Any, reason: str = "") -> None:
        self.response = (
            Any_(status_code=status, reason=reason) if isinstance(status, int) else status
        )


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (Refused(413, "too\x1b large"), "413 too\\x1b large"),
        (Refused(400), "400"),
        (Refused(499), "499"),
        (Refused(399), ""),
        (Refused(500), ""),
        (
            Refused(
                {"ResponseMetadata": {"HTTPStatusCode": 403}, "Error": {"Code": "AccessDenied"}}
            ),
            "403 AccessDenied",
        ),
        (Refused({}), ""),
        (OSError(errno.EFBIG, "x"), "file too large"),
        (OSError(errno.ENOSPC, "x"), ""),
        (artifacts.NoFolder("not there"), "not there"),
        (ValueError(), ""),
    ],
)
def test_a_refusal_for_good_is_told_from_one_that_passes(error: Exception, says: str) -> None:
    def outer() -> None:
        raise RuntimeError from error

    assert send._status_of(error) == says
    with pytest.raises(RuntimeError) as raised:
        outer()
    assert send._status_of(raised.value) == says
    for status in (408, 425, 429):
        assert send._status_of(Refused(status)) == ""


def test_a_file_is_tried_again_where_the_connection_was_closed() -> None:
    def upload(*ends: Exception | None) -> Any:
        left = list(ends)

        def once() -> None:
            end = left.pop(0)
            if end is not None:
                raise end

        return once

    closed, asked = ConnectionResetError(), []
    assert send._refusal(upload(None)) == ""
    assert send._refusal(upload(Refused(413))) == "413"
    with pytest.raises(ConnectionResetError):
        send._refusal(upload(closed))
    with pytest.raises(TimeoutError):
        send._refusal(upload(TimeoutError()), lambda: asked.append(1))
    assert asked == []
    assert send._refusal(upload(closed, None), lambda: asked.append(1)) == ""
    assert (
        send._refusal(upload(closed, BrokenPipeError()), lambda: asked.append(2))
        == "the connection was closed"
    )
    assert send._refusal(upload(closed, Refused(413)), lambda: asked.append(3)) == "413"
    assert asked == [1, 2, 3]
    with pytest.raises(TimeoutError):
        send._refusal(upload(closed, TimeoutError()), lambda: None)


def test_the_list_of_tables_gets_new_ones_and_loses_old_ones() -> None:
    a, b = {"path": "a", "type": "table"}, {"path": "b", "type": "table"}
    assert json.loads(send.with_tables("[]", ["a", "b"])) == [a, b]
    assert json.loads(send.with_tables(json.dumps([a, "x"]), ["a", "b"], ["a"])) == ["x", a, b]
    assert json.loads(send.with_tables(json.dumps([a]), ["a"])) == [a]
    for damaged in ("{", '{"a": 1}', "1"):
        assert json.loads(send.with_tables(damaged, ["a"])) == [a]


def package(**more: Any) -> Package:
    parts = {
        "folder": None,
        "metrics": {"multiclass/accuracy": 0.5},
        "images": {},
        "table": "",
        "timestamp": 5,
        "tags": {"cmtrack.digests": '{"evaluation": "e", "labels": "l"}'},
        "dataset": {"name": "d", "digest": "e"},
        "description": "",
    } | more
    return Package(**parts)


def held(**more: Any) -> Any:
    tags = {"cmtrack.status": "completed", "cmtrack.samples": "9", **package().tags} | more.pop(
        "tags", {}
    )
    data = Any_(dataset_inputs=[Any_(dataset=Any_(name="d", digest="e"))])
    return entity(
        tags=tags,
        inputs=data,
        metrics={"multiclass/accuracy": 0.5} | more.pop("metrics", {}),
        **more,
    )


def test_a_run_holds_a_package_or_another_evaluation() -> None:
    assert send.is_there(held(), package())
    for run in (
        held(tags={"cmtrack.status": "started"}),
        held(tags={"cmtrack.left_out": "x"}),
        held(tags={"cmtrack.digests": "{}"}),
        held(metrics={"multiclass/accuracy": 0.4}),
    ):
        assert not send.is_there(run, package())
    for other in (
        package(step=0),
        package(model_id="m"),
        package(dataset={"name": "d", "digest": "x"}),
    ):
        assert not send.is_there(held(), other)
    assert not send.is_there(held(), package(tags=package().tags | {"cmtrack.positive": "x"}))
    new = package(tags={"cmtrack.digests": '{"evaluation": "f", "labels": "l"}'})
    assert send.what_is_there(held(), new) == "an evaluation of 9 samples (the same rows)"
    rows = package(tags={"cmtrack.digests": '{"evaluation": "f", "labels": "k"}'})
    assert send.what_is_there(held(), rows) == "an evaluation of 9 samples (other rows)"
    assert send.what_is_there(held(), package()) == ""
    assert send.what_is_there(held(tags={"cmtrack.status": "started"}), new) == ""
    assert send.what_is_there(held(), package(step=0, tags=new.tags)) == ""
    under = held(tags={"cmtrack.val.status": "completed"})
    says = "an evaluation of ? samples (the same rows) under the prefix 'val/'"
    assert send.what_is_there(under, package(prefix="val/")) == says


def test_what_an_earlier_evaluation_left_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    run = held(
        metrics={"binary/f1": 1.0, "loss": 1.0, "val/binary/f1": 1.0},
        tags={"cmtrack.positive": "x"},
    )
    assert send.stale_metrics(run, package()) == ["binary/f1"]
    assert send.stale_metrics(run, package(prefix="val/")) == ["val/binary/f1"]
    assert send.old_tags(run, package(), ["cmtrack.digests"]) == [
        "cmtrack.positive",
        "cmtrack.samples",
    ]
    points = [
        Any_(key="multiclass/accuracy", timestamp=7, step=0),
        Any_(key="loss", timestamp=9, step=0),
        Any_(key="multiclass/accuracy", timestamp=8, step=1),
    ]
    monkeypatch.setattr(send.mlflow_inside, "latest_metrics", lambda _: points)
    assert send._newest(run, package(), 0) == 7
    assert send._newest(run, package(metrics={}), 0) == 0
    for text, newest in (("8", 8), ("9" * 15, int("9" * 15)), ("9" * 16, 7), ("-8", 7), ("x", 7)):
        assert send._newest(held(tags={"cmtrack.logged_again": text}), package(), 0) == newest
    outputs = [
        Any_(model_id="m-1", step=0),
        Any_(model_id="m-2", step=1),
        Any_(model_id="m-3", step=1),
    ]
    run = entity(outputs=Any_(model_outputs=outputs))
    assert [send._only_model(run, step) for step in (0, 1, 2)] == ["m-1", None, None]
    assert send._only_model(entity(), 0) is None


class Sink(Store):
    """A store that says yes to all, or refuses some files; ``events``: what it was told, in order."""

    tracking_uri, reason = "sqlite:///a", "Too Large"

    def __init__(
        self, run: Any, refused: tuple[str, ...] = (), files: tuple[str, ...] = ()
    ) -> None:
        super().__init__(run)
        self.refused, self.events = refused, []
        self.sizes = dict.fromkeys(files, 1)
        self.written: dict[str, str] = {}

    def get_run(self, run_id: str) -> Any:
        run = copy.deepcopy(super().get_run(run_id))
        run.data.tags = {**run.data.tags, **self.written}
        return run

    def set_tag(self, run_id: str, name: str, text: str) -> None:
        self.events.append((name.removeprefix("cmtrack."), text))

    def log_batch(
        self, run_id: str, metrics: Any = (), tags: Any = (), synchronous: bool = False
    ) -> None:
        assert synchronous
        points = [(one.key, one.value, one.step, one.timestamp) for one in metrics]
        if len(points) < 3:
            self.events += points
        else:
            self.events.append(len(points))
        if tags:
            self.events.append({tag.key: tag.value for tag in tags})
            self.written |= self.events[-1]

    def log_inputs(self, run_id: str, inputs: Any, models: Any) -> None:
        self.events.append(f"dataset {inputs[0].dataset.name}")

    def delete_tag(self, run_id: str, name: str) -> None:
        self.events.append(f"no {name}")

    def log_artifact(self, path: str, folder: None) -> None:
        name = os.path.basename(path)  # as MLflow does
        if name in self.refused:
            raise Refused(413, self.reason)
        assert Path(path).read_bytes()
        self.sizes[name] = Path(path).stat().st_size
        self.events.append(name)

    def list_artifacts(self, path: str | None = None) -> Any:
        listed = self.sizes.items()
        return [
            Any_(path=name, is_dir=name.endswith("_folder"), file_size=size)
            for name, size in listed
        ]

    def delete_artifacts(self, name: str) -> None:
        if "cmtrack_locked.png" in self.sizes:
            raise OSError("it removes\nnothing")
        self.events.append(f"without {name}")


EVALUATION, CLASSES, ROWS = (
    "cmtrack_evaluation.json",
    "cmtrack_classes.json",
    "cmtrack_predictions.parquet",
)
TABLES = "mlflow.loggedArtifacts"


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Send a package with three files: what comes of it, what the store was told, and how often it answered."""
    for size, name in enumerate((EVALUATION, CLASSES, ROWS), 1):
        (tmp_path / "artifacts").mkdir(exist_ok=True)
        (tmp_path / "artifacts" / name).write_bytes(b"x" * (4 - size))

    def run(store: Sink, late: bool = False, **more: Any) -> tuple[send.Sent | str, list[Any], int]:
        monkeypatch.setattr(artifacts, "repository_for", lambda *_: store)
        tags = {"cmtrack.digests": '{"evaluation": "new", "labels": "l", "predictions": "p"}'}
        parts: Any = {"run_id": "a" * 32, "folder": tmp_path, "tags": tags, "table": CLASSES} | more
        answers: list[int] = []
        try:
            outcome: Any = send.send(
                package(**parts), store, lambda: answers.append(1), lambda: late
            )
        except ValueError as error:
            outcome = str(error)
        return outcome, store.events, len(answers)

    return run


ACCURACY = ("multiclass/accuracy", 0.5, 0, 5)
NOTE = " <!-- cmtrack -->\n\n<!-- /cmtrack -->"


def test_a_package_is_sent_whole_and_in_order(sent: Any) -> None:
    outcome, events, answers = sent(Sink(entity()), description="Result")
    assert (outcome, answers) == (send.Sent(), 9)
    listed = json.dumps([{"path": CLASSES, "type": "table"}])
    assert events == [
        ("status", "started"),
        EVALUATION,
        ACCURACY,
        ROWS,
        CLASSES,
        "dataset d",
        {
            "cmtrack.digests": '{"evaluation": "new", "labels": "l", "predictions": "p"}',
            TABLES: listed,
            "mlflow.note.content": f"Result{NOTE}",
            "cmtrack.status": "completed",
        },
    ]
    many = {f"m{k}": 0.0 for k in range(1003)}
    assert [one for one in sent(Sink(entity()), metrics=many)[1] if isinstance(one, int)] == [
        1000,
        3,
    ]
    step = sent(Sink(entity()), step=7)[1]
    assert step[2] == ("multiclass/accuracy", 0.5, 7, 5)
    assert (
        sent(Sink(entity()), run_id=None)[0] == "a package must have a run to be sent to, got none"
    )
    gone = entity()
    gone.info.lifecycle_stage = "deleted"
    assert sent(Sink(gone))[:2] == (f"run {'a' * 32} is deleted: it accepts no metrics", [])


def test_what_a_store_refuses_is_left_out_or_leaves_the_metrics_only(
    sent: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome, events, _ = sent(Sink(entity(), refused=(ROWS, CLASSES)))
    says = f"{ROWS} (413 Too Large), {CLASSES} (413 Too Large)"
    assert outcome == send.Sent((f"refused by the store: {says}",))
    assert (events[-1]["cmtrack.left_out"], TABLES in events[-1]) == (says, False)
    assert events[-1]["cmtrack.digests"] == '{"evaluation": "new", "labels": "l"}'
    store = Sink(entity(), refused=(ROWS,))
    store.reason = "x" * 5000
    assert len(sent(store)[1][-1]["cmtrack.left_out"]) == 4000
    outcome, events, _ = sent(Sink(entity(), refused=(EVALUATION,)))
    assert (
        outcome == f"the store refused {EVALUATION} (413 Too Large): the run has the metrics only"
    )
    assert events == [("status", "started"), ACCURACY, ("status", "metrics only")]
    content = {f"artifacts/{EVALUATION}": b"x"}

    def no_place(*_: Any) -> None:
        raise OSError("no place")

    monkeypatch.setattr(send, "_log_images", no_place)
    outcome, events, _ = sent(Sink(entity()), folder=None, content=content)
    assert (outcome, events[1]) == (
        send.Sent(("refused by the store: the image of the chart view (no place)",)),
        EVALUATION,
    )
    with pytest.raises(OSError, match="no place"):
        sent(Sink(entity()))
    outcome, events, _ = sent(Sink(entity()), folder=None)
    assert outcome == f"no place could be written: run {'a' * 32} has the metrics only"


def test_the_same_evaluation_is_sent_once(
    sent: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    same: Any = {"tags": package().tags}
    for entries, events in (
        ([], []),
        ([tmp_path], []),
        ([tmp_path, tmp_path / "b"], [("logged_again", "5")]),
    ):
        monkeypatch.setattr(
            send.spool, "entries", lambda entries=entries: [Any_(folder=one) for one in entries]
        )
        assert sent(Sink(held()), **same) == (send.Sent(), events, 1)
    run = held()
    run.data._metric_objs = [Any_(key="multiclass/accuracy", timestamp=5, step=0)]
    assert sent(Sink(run), **same)[1] == []


def test_a_table_of_segments_that_is_gone_is_listed_no_more(sent: Any, tmp_path: Path) -> None:
    entries = [
        {"path": name, "type": "table"} for name in (CLASSES, "cmtrack_segments.json", "mine.json")
    ]
    store = Sink(entity(tags={TABLES: json.dumps(entries)}))
    assert json.loads(sent(store)[1][-1][TABLES]) == [entries[0], entries[2]]
    (tmp_path / "artifacts" / "cmtrack_segments.json").write_bytes(b"x")
    # nothing has changed
    assert TABLES not in sent(Sink(entity(tags={TABLES: json.dumps(entries)})))[1][-1]


def another(newest: int = 4, **more: Any) -> Any:
    """A run with another evaluation, which has a metric, a tag and files that the new one has not."""
    tags = {
        "cmtrack.positive": "x",
        "cmtrack.digests": '{"evaluation": "e"}',
        TABLES: "[]",
    } | more.pop("tags", {})
    run = held(tags=tags, metrics={f"binary/{name}": 1.0 for name in more.pop("stale", ("f1",))})
    run.data._metric_objs = [Any_(key="multiclass/accuracy", timestamp=newest, step=0)]
    return run


def test_another_evaluation_makes_room(sent: Any) -> None:
    files = (EVALUATION, "cmtrack_old.png", "cmtrack_folder", "other.txt")
    outcome, events, _ = sent(Sink(another(), files=files))
    says = f"run {'a' * 32} held an evaluation of 9 samples (other rows), which is replaced: use prefix= for several "
    says += "evaluations in one run"
    assert outcome == send.Sent((), f"{says}; MLflow keeps these metrics of it: binary/f1")
    assert events[-4:-3] == ["without cmtrack_old.png"]
    assert (events[-3]["cmtrack.stale_metrics"], events[-2:]) == (
        "binary/f1",
        ["no cmtrack.positive", "no cmtrack.samples"],
    )
    assert sent(Sink(another(), files=files), on_existing="error")[:2] == (
        f"run {'a' * 32} holds an evaluation of 9 samples (other rows): use prefix= for another one, or "
        "on_existing='replace'",
        [],
    )
    for many, more in (
        ("fn fp npv tn tp", ""),
        ("fn fp npv tn tp zzz", ""),
        ("fn fp npv specificity tn tp", " and 1 more"),
    ):
        outcome, _, _ = sent(Sink(another(stale=many.split()), files=("cmtrack_locked.png",)))
        shown = ", ".join(f"binary/{name}" for name in many.split()[:5])
        assert outcome.replaced.endswith(f"; MLflow keeps these metrics of it: {shown}{more}")
    assert outcome.problems == (
        "files of the replaced evaluation could not be removed: it removes",
    )


def test_what_was_cut_off_is_cleared_and_is_no_other_evaluation(sent: Any) -> None:
    cut = another(tags={"cmtrack.status": "started"})
    outcome, events, _ = sent(Sink(cut, files=("cmtrack_old.png",)))
    assert (outcome, "without cmtrack_old.png" in events) == (send.Sent(), True)
    assert events[-3]["cmtrack.stale_metrics"] == "binary/f1"
    outcome, events, _ = sent(Sink(cut, files=("cmtrack_old.png",)), step=0)
    assert (outcome, "without cmtrack_old.png" in events) == (send.Sent(), False)


@pytest.mark.parametrize(
    ("newest", "late", "step", "point", "stays"),
    [
        (5, False, None, ACCURACY, False),
        (6, False, None, (*ACCURACY[:3], 7), False),
        (6, False, 0, ACCURACY, False),
        (5, True, None, ACCURACY, False),
        (6, True, None, None, True),
        (6, True, 0, ACCURACY, True),
    ],
)
def test_a_newer_evaluation_stays_where_the_other_was_late(
    sent: Any, newest: int, late: bool, step: int | None, point: Any, stays: bool
) -> None:
    outcome, events, _ = sent(Sink(another(newest)), late, step=step)
    # without a step it is an error, and stays in the spool
    problems = getattr(outcome, "problems", (outcome,))
    assert [one for one in events if isinstance(one, tuple) and one[0] == ACCURACY[0]] == (
        [] if point is None else [point]
    )
    assert any("which stays" in problem for problem in problems) == stays
    assert isinstance(outcome, str) == (stays and step is None)
    assert (("status", "started") in events) != stays
    half = another(newest, tags={"cmtrack.status": "started"})
    assert ("status", "started") in sent(Sink(half), late, step=step)[1]


def test_what_was_made_just_now_is_not_late(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Sink(another(6))
    monkeypatch.setattr(artifacts, "repository_for", lambda *_: store)
    outcome = send.send(
        package(run_id="a" * 32, content={f"artifacts/{EVALUATION}": b"x"}, tags={}), store
    )
    assert (outcome.problems, store.events[:2]) == ((), [("status", "started"), EVALUATION])


def test_an_image_is_sent_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from cmtrack.tracking import images

    logged: list[Any] = []

    class DrawnImage:
        def __init__(self, content: bytes) -> None:
            self.content = content

        def __enter__(self) -> bytes:
            return self.content

        def __exit__(self, *_: Any) -> None:
            """Nothing is open."""

    class Images(Sink):
        def log_image(self, run_id: str, image: bytes, **how: Any) -> None:
            logged.append((image, *how.values()))

        def list_artifacts(self, run_id: str, path: str) -> Any:
            assert (run_id, path) == ("a" * 32, "images")
            return super().list_artifacts(path)

    monkeypatch.setattr(images, "DrawnImage", DrawnImage)
    one = package(
        images={"cmtrack/a": "a.png", "cmtrack/b": "b.png"},
        content={"charts/a.png": b"png"},
        timestamp=9,
    )
    start = "images/cmtrack#a+step+0+timestamp+9+x."
    started, point = entity(tags={"cmtrack.status": "started"}), (b"png", "cmtrack/a", 0, 9, True)
    for run, files, sends, gone in (
        (entity(), (f"{start}webp",), [point], []),
        (started, (f"{start}png",), [point], [f"without {start}png"]),
        (started, (f"{start}png", f"{start}webp"), [], []),
        (started, (start.replace("+9+", "+8+"),), [point], []),
        (started, ("images/cmtrack~a%step%0%timestamp%9%x.webp",), [], []),
    ):
        store = Images(run, files=files)
        monkeypatch.setattr(artifacts, "repository_for", lambda *_, store=store: store)
        logged.clear()
        send._log_images(store, run, one, waited=False)
        assert (logged, store.events) == (sends, gone)
    send._log_images(
        store, entity(), package(images=one.images, content=one.content, step=3), waited=False
    )
    assert logged[-1][2] == 3


def test_a_link_to_a_model_that_is_none_is_left_out() -> None:
    def get_logged_model(model_id: str) -> None:
        if model_id == "none":
            raise MlflowException("no such model")

    client, link = Any_(get_logged_model=get_logged_model), ("d", "e")
    only = entity(outputs=Any_(model_outputs=[Any_(model_id="m-1", step=2)]))
    for run, model_id, step, linked, problems in (
        (entity(), None, 2, None, ()),
        (only, None, 2, "m-1", ()),
        (only, None, None, None, ()),
        (only, "m-2", 2, "m-2", ()),
        (only, "none", 2, None, ("link to model 'none': no such model",)),
    ):
        [point], said = send._metrics(client, run, package(model_id=model_id, step=step), step or 0)
        assert (point.step, point.model_id, said) == (step or 0, linked, problems)
        assert (point.dataset_name, point.dataset_digest) == (link if linked else (None, None))


def test_a_server_is_asked_once_and_a_database_needs_its_library(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import mlflow

    asked: list[Any] = []
    monkeypatch.setattr(
        send.mlflow_inside,
        "get",
        lambda *given, **how: asked.append((given, how)) or Any_(close=int),
    )
    monkeypatch.setattr(
        mlflow, "MlflowClient", lambda uri="its own", registry_uri=None: Any_(tracking_uri=uri)
    )
    imported: list[str] = []
    monkeypatch.setattr(send, "import_module", imported.append)
    for uri in ("sqlite:///a", "/a", "file:///a", "databricks", "http:///a"):
        assert send.client_for(uri).tracking_uri == uri
    assert (asked, imported) == ([], ["sqlalchemy", "mlflow.store.tracking.sqlalchemy_store"])
    send.client_for("https://host")
    assert asked == [
        (("https://host", "/health"), {"max_retries": 0, "timeout": (3.0, 10.0), "stream": True})
    ]
    monkeypatch.setattr(mlflow, "get_tracking_uri", lambda: "mysql+pymysql://host")
    assert send.client_for().tracking_uri == "its own"
    assert imported == ["sqlalchemy", "mlflow.store.tracking.sqlalchemy_store"] * 2

    def closed(*_: Any, **__: Any) -> None:
        raise OSError("outer") from OSError("refused\nfor good")

    monkeypatch.setattr(send.mlflow_inside, "get", closed)
    with pytest.raises(
        ConnectionError, match=r"^the tracking server host:5 does not answer: refused$"
    ):
        send.probe("http://u:p@host:5")


# -- loading ---------------------------------------------------------------------------------------------------------


PLACE = "s3://bucket/a"


def stored(
    monkeypatch: pytest.MonkeyPatch, tags: dict[str, str], **files: bytes | Exception
) -> Store:
    """A store with one run, whose folder of artifacts holds these files."""
    run = entity(tags=tags)
    run.info.artifact_uri = PLACE

    def read(uri: str, name: str, tracking_uri: str) -> bytes:
        assert (uri, tracking_uri) == (PLACE, URI)
        content = files.get(name.partition(".")[0], FileNotFoundError(errno.ENOENT, "No such file"))
        if isinstance(content, Exception):
            raise content
        return content

    monkeypatch.setattr(artifacts, "read", read)
    return Store(run)


def test_a_run_gives_its_evaluation_or_says_what_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    one, rows = evaluate([0, 1, 1, 0], [0, 1, 0, 0]), BytesIO()
    one.write_rows(rows)
    files = {"cmtrack_evaluation": one.to_json().encode(), "cmtrack_predictions": rows.getvalue()}
    done, started = {"cmtrack.status": "completed"}, {"cmtrack.status": "started"}
    digested = done | {
        "cmtrack.digests": json.dumps({"evaluation": digest_of(files["cmtrack_evaluation"])})
    }
    for tags in (done, digested):
        loaded = load.load_evaluation("a" * 32, client=stored(monkeypatch, tags, **files))
        assert (loaded, loaded.rows) == (one, None)
    loaded = load.load_evaluation("a" * 32, rows=True, client=stored(monkeypatch, done, **files))
    assert (loaded, loaded.rows is not None) == (one, True)
    run = f"run {'a' * 32}"
    other = digested | {"cmtrack.digests": '{"evaluation": "0"}'}
    elsewhere = digested | {"cmtrack.digests": '{"predictions_file": "b/secret.txt"}'}
    for tags, given, asked, says in (
        (done, {}, False, f"{run} holds no cmtrack_evaluation.json: No such file"),
        (
            started,
            {},
            False,
            f"{run} holds no cmtrack_evaluation.json: No such file; its evaluation was not finished "
            "(status 'started')",
        ),
        (
            {},
            {},
            False,
            f"{run} holds no cmtrack_evaluation.json: No such file; it has no evaluation",
        ),
        (
            done,
            {"cmtrack_evaluation": KeyError("x\ny")},
            False,
            f"{run}: cmtrack_evaluation.json cannot be read: KeyError: 'x\\ny'",
        ),
        (
            done,
            {"cmtrack_evaluation": OSError("gone\nfor good")},
            False,
            f"{run}: cmtrack_evaluation.json cannot be read: gone",
        ),
        (
            done,
            {"cmtrack_evaluation": b"\xff"},
            False,
            f"{run}: the evaluation is damaged: 'utf-8' codec",
        ),
        (done, {"cmtrack_evaluation": b"{"}, False, f"{run}: "),
        (
            other,
            files,
            False,
            f"{run}: cmtrack_evaluation.json is damaged: it is not the file that was logged",
        ),
        (
            digested,
            files,
            True,
            f"{run} holds no cmtrack_predictions.parquet: predictions by row were not kept",
        ),
        (
            elsewhere,
            files,
            True,
            f"{run}: secret.txt cannot be read: such a file is called cmtrack_pred",
        ),
    ):
        with pytest.raises(ValueError, match=f"^{re.escape(says)}") as raised:
            load.load_evaluation("a" * 32, rows=asked, client=stored(monkeypatch, tags, **given))
        assert ("was not finished" in str(raised.value)) == (tags is started)
        assert "the evaluation is damaged" in says or "the evaluation is damaged" not in str(
            raised.value
        )


def test_rows_that_cannot_be_read_are_a_problem_where_they_were_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = evaluate([0, 1, 1, 0], [0, 1, 0, 0])
    for tags, says in (
        ({}, ""),
        ({"cmtrack.digests": '{"predictions": "p"}'}, "holds no cmtrack_predictions.parquet"),
    ):
        store = stored(monkeypatch, tags)
        same, problem = load.with_kept_predictions(one, runs.find("a" * 32, [store]), store)
        assert (same is one, says in problem, bool(problem)) == (True, True, bool(says))


def test_a_file_of_another_machine_is_read_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[str] = []
    monkeypatch.setenv("CMTRACK_CACHE", str(tmp_path))
    monkeypatch.setattr(
        artifacts, "read", lambda uri, name, server: asked.append(f"{uri}/{name}") or b"content"
    )
    digests = json.dumps({"evaluation": digest_of(b"content")})
    for uri, tags, times in (
        ("s3://bucket", digests, 1),
        ("s3://bucket", "{}", 2),
        ("/a", digests, 2),
    ):
        one = entity(tags={"cmtrack.digests": tags})
        one.info.artifact_uri = uri
        store = Store(one)
        asked.clear()
        for _ in range(2):
            assert load.read_artifact(runs.find("a" * 32, [store]), store, EVALUATION) == b"content"
        assert asked == [f"{uri}/{EVALUATION}"] * times


# -- regrouping ------------------------------------------------------------------------------------------------------

TWO = Grouping({"low": [0, 1], "two": [2]}, name="level")


def listed(run_id: str = "a" * 32, **tags: str) -> runs.TrackedRun:
    metrics = {
        "multiclass/accuracy": 0.5,
        "two_binary/recall": 0.25,
        "two_loss": 1.0,
        "binary/fp": 3.0,
    }
    return runs.from_entity(entity(run_id, run_id[0], tags=tags, metrics=metrics), Store())


def test_several_runs_are_regrouped_and_each_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    given = [(listed(letter * 32), None) for letter in "abcb"]
    jobs: list[Any] = []

    def regrouped(job: regroup._Job, run: Any, _: Any) -> Any:
        jobs.append((run.name, job.figures))
        if run.name == "b":
            raise OSError("no room")
        return (run.name, "regrouped")

    monkeypatch.setattr(regroup, "with_clients", lambda _: given)
    monkeypatch.setattr(regroup._Job, "regroup", regrouped)
    monkeypatch.setattr(
        regroup._Job,
        "is_done",
        lambda _, run, with_figures: (run.name, with_figures) == ("c", False),
    )
    monkeypatch.setattr(regroup._Job, "done", lambda _, run: (run.name, "done"))
    told: list[Any] = []
    out = regroup.regroup_runs([], TWO, prefix="two_", progress=lambda *step: told.append(step))
    left_out = regroup.RegroupedRun("b" * 32, "b", "left out", "no room", prefix="two_")
    assert out == [("a", "regrouped"), left_out, ("c", "done")]
    assert (told[0], told[-1], [step[1:] for step in told]) == (
        ("a", 0, 3),
        ("done", 3, 3),
        [(0, 3), (1, 3), (2, 3), (3, 3)],
    )
    assert sorted(jobs) == [("a", True), ("b", True)]
    for how, figures in (
        ({"figures": True}, True),
        ({"force": True}, True),
        ({"dry_run": True, "figures": False}, False),
    ):
        assert regroup.regroup_runs([], TWO, prefix="two_", **how)[2] == ("c", "regrouped")
        assert jobs[-1][1] is figures
    for count, figures in ((100, True), (101, False)):
        given[:] = [(listed(f"{k:032}"), None) for k in range(count)]
        regroup.regroup_runs([], TWO, prefix="two_")
        assert jobs[-1][1] is figures
    given.clear()
    assert regroup.regroup_runs([], TWO, progress=lambda *step: told.append(step)) == []
    assert told[-1] == ("done", 0, 0)
    for grouping, how, kind, says in (
        ({"a": [1]}, {}, TypeError, "grouping must be a Grouping, got dict"),
        (TWO, {"figures": "all"}, ValueError, "figures must be True, False or 'auto', got 'all'"),
        (TWO, {"source_prefix": "/"}, ValueError, "prefix must start"),
        (TWO, {"prefix": "/"}, ValueError, "prefix must start"),
        (
            TWO,
            {"prefix": "a_", "source_prefix": "a/"},
            ValueError,
            "it would overwrite the evaluation under 'a/'",
        ),
        (TWO, {"prefix": ""}, ValueError, "it would overwrite the run's own evaluation"),
    ):
        with pytest.raises(kind, match=says):
            regroup.regroup_runs([], grouping, **how)


def test_a_regrouping_is_done_where_the_tags_say_all_of_it() -> None:
    job = regroup._Job(TWO, None, "two_", "", False, False)
    source = {
        "cmtrack.status": "completed",
        "cmtrack.digests": '{"evaluation": "e"}',
        "cmtrack.two.warning": "a\nb",
    }
    mark = job._mark(listed(**source), False)
    digests = {"regrouping": f"{mark} new", "evaluation": "new"}
    done = {**source, "cmtrack.two.status": "completed", "cmtrack.two.digests": json.dumps(digests)}
    assert (job.is_done(listed(**done), False), job.is_done(listed(**done), True)) == (True, False)
    drawn = job._mark(listed(**done), True)
    with_figures = done | {
        "cmtrack.two.digests": json.dumps(digests | {"regrouping": f"{drawn} new"})
    }
    assert (
        job.is_done(listed(**with_figures), False),
        job.is_done(listed(**with_figures), True),
    ) == (True, True)
    for change in (
        {"cmtrack.two.status": "started"},
        {"cmtrack.status": "started"},
        {"cmtrack.digests": '{"evaluation": "f"}'},
        {"cmtrack.digests": "{}"},
        {"cmtrack.digests": '{"evaluation": "e", "predictions": "p"}'},
        {"cmtrack.two.digests": json.dumps(digests | {"evaluation": "newer"})},
        {
            "cmtrack.two.digests": '{"regrouping": " new", "evaluation": "new"}',
            "cmtrack.digests": "{}",
        },
    ):
        assert not job.is_done(listed(**done | change), False)
    for other in (
        replace(job, positive="two"),
        replace(job, grouping=Grouping({"low": [0], "two": [1, 2]})),
    ):
        assert not other.is_done(listed(**done), False)
    outcome = job.done(listed(**done))
    assert (outcome.status, outcome.warnings, outcome.already_done) == (
        "completed",
        ("a", "b"),
        True,
    )
    assert (outcome.before, outcome.after) == (
        {"multiclass/accuracy": 0.5},
        {"binary/recall": 0.25},
    )
    for tags, says in (
        (done, "it holds an evaluation under the prefix 'two_' that was not made by regrouping"),
        (
            done | {"cmtrack.status": "started"},
            "its evaluation was not finished (status 'started')",
        ),
    ):
        with pytest.raises(ValueError, match=re.escape(says)):
            job.regroup(listed(**tags), Store())
    assert (
        job._in_the_way(listed(**done, **{"cmtrack.two.regrouped_from": "x"}))
        == job._in_the_way(listed(**source))
        == ""
    )


@pytest.mark.parametrize("dry_run", [True, False])
@pytest.mark.parametrize("rows", ["", "gone", "p"])
def test_a_run_is_regrouped_from_what_it_holds(
    monkeypatch: pytest.MonkeyPatch, dry_run: bool, rows: str
) -> None:
    one = evaluate(
        [0, 1, 2, 2],
        [0, 1, 2, 1],
        y_prob=[[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.2, 0.7], [0.1, 0.8, 0.1]],
    )
    held_rows, told = (
        one if rows == "p" else replace(one, rows=None),
        {"gone": "it is gone"}.get(rows, ""),
    )
    written: list[Any] = []
    monkeypatch.setattr(regroup, "evaluation_of", lambda *_: replace(one, rows=None))
    monkeypatch.setattr(regroup, "with_kept_predictions", lambda *_: (held_rows, told))
    monkeypatch.setattr(packages, "_draw", lambda *_: None)
    pages: list[Any] = []
    monkeypatch.setattr(
        packages, "report_html", lambda *_, rows, **__: pages.append(rows) or "page"
    )
    monkeypatch.setattr(
        regroup, "send", lambda sent, client: written.append(sent) or send.Sent(("left out",))
    )
    digests = json.dumps({"evaluation": "e"} | ({"predictions": "p"} if rows else {}))
    run = listed(**{"cmtrack.status": "completed", "cmtrack.digests": digests})
    store = Sink(entity())
    job = regroup._Job(TWO, "two", "two_", "", False, dry_run)
    outcome = job.regroup(run, store)
    assert (outcome.status, outcome.prefix, outcome.already_done) == (
        "planned" if dry_run else "completed",
        "two_",
        False,
    )
    assert (outcome.before["multiclass/accuracy"], outcome.after["binary/recall"]) == (0.75, 0.5)
    assert all(one.catalog.lookup(name).headline for name in outcome.before)
    assert all(map(math.isfinite, outcome.after.values()))
    problems = [f"regrouped without its predictions by row: {told}"] * bool(told) + ["left out"] * (
        not dry_run
    )
    assert list(outcome.warnings[: len(problems)]) == problems
    assert store.events == [("two.regrouped_from", "cmtrack_evaluation.json")] * (not dry_run)
    if not dry_run:
        [sent] = written
        assert [listed and listed.rows is not None for listed in pages] == [
            True if rows == "p" else None
        ]
        held_digests = json.loads(sent.tags["cmtrack.two.digests"])
        made = held_digests["evaluation"]
        assert sent.tags["cmtrack.two.regrouped_from"] == "cmtrack_evaluation.json"
        assert held_digests["regrouping"] == (made if told else f"{job._mark(run, False)} {made}")
        where = (ROWS, "p") if rows == "p" else (None, None)
        assert (held_digests.get("predictions_file"), held_digests.get("predictions")) == where


# -- comparing -------------------------------------------------------------------------------------------------------


def test_custom_metrics_are_looked_for_and_those_of_the_catalog_not() -> None:
    from cmtrack.metrics import CATALOG

    texts = ("mine/gain >= 0.5", ["multiclass/accuracy", "other/x"], None, "binary/nonsense > 1", 5)
    catalog: Any = Any_(names=[metric.name for metric in CATALOG] + ["mine/known"])
    assert comparing._not_known(catalog, *texts, "mine/known > 0") == {"mine/gain", "other/x"}


def test_an_experiment_id_of_two_stores_has_no_name() -> None:
    def store(**names: str) -> Any:
        return Any_(get_experiment=lambda key: Any_(name=names[f"e{key}"]))

    several = [
        Any_(tracking_uri=uri, experiment_id=key)
        for uri, key in (("a", "1"), ("b", "1"), ("a", "2"), ("b", "3"))
    ]
    clients = {"a": store(e1="one", e2="two"), "b": store(e1="other")}
    assert comparing._experiment_names(several, clients) == {"2": "two"}
    assert comparing._experiment_names(several[:1], clients) == {"1": "one"}


class Other(Store):
    """Another store."""

    tracking_uri = "http://other"


def names_of(listing: comparing.Listed) -> list[str]:
    return [run.name for run in listing.runs]


def test_runs_are_listed_from_experiments_and_by_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    first = Store(*(entity(str(k) * 32, "n") for k in range(4)))
    second = Other(entity("f" * 32, "m"), entity("0" * 32, "n"))
    told: list[Any] = []

    def listing(
        given: Any = None, clients: Any = (first,), order: Any = None, **how: Any
    ) -> comparing.Listed:
        monkeypatch.setattr(
            comparing, "client_for", {client.tracking_uri: client for client in clients}.get
        )
        stores = [client.tracking_uri for client in clients]
        options = CompareOptions(**({"experiment_names": ["party"], "tracking_uri": stores} | how))
        return comparing.list_runs(given, options, lambda *step: told.append(step), order=order)

    everything = listing(max_runs=4)
    assert ([run.run_id[0] for run in everything.runs], everything.notes) == (list("0123"), ())
    assert names_of(everything) == [f"n ({k * 4})" for k in "0123"]
    assert told == [("listing runs", 2, 0), ("listing runs", 4, 0)]
    few = listing(max_runs=3)
    assert [run.run_id[0] for run in few.runs] == list("012")
    assert few.notes == ("The store holds more runs than the 3 that were listed (max_runs).",)
    assert len(listing(max_runs=None).runs) == 4
    both = listing(clients=(first, second), max_runs=3)
    assert ([run.run_id[0] for run in both.runs], list(both.clients)) == (
        list("012f"),
        [URI, "http://other"],
    )
    told.clear()
    given = listing(["f" * 32, "1" * 32], (first, second), experiment_names=None)
    assert ([run.run_id[0] for run in given.runs], [step[0] for step in told]) == (
        ["1", "f"],
        ["finding runs"] * 2,
    )
    assert len(listing(["f" * 32], (first, second)).runs) == 5
    with pytest.raises(
        ValueError, match=r"there is no experiment 'nowhere' in http://host, http://other"
    ):
        listing(clients=(Store(), Other()), experiment_names=["party", "nowhere"])
    assert listing(clients=(Store(), Other())).runs == ()
    assert len(listing(clients=(first, second), experiment_names=["party", "nowhere"]).runs) == 5
    with pytest.raises(
        ValueError, match="filter_string needs experiment_names beside runs, got 'a' alone"
    ):
        listing(["f" * 32], experiment_names=None, filter_string="a")
    accuracy = CompareOptions(rank_by="multiclass/accuracy").criterion
    assert comparing._order_by(accuracy, "val/") == ["metrics.`val/multiclass/accuracy` DESC"]
    loss = CompareOptions(rank_by="probability/brier").criterion
    assert comparing._order_by(loss, "") == ["metrics.`probability/brier` ASC"]
    assert comparing._order_by(None, "") == comparing._order_by(accuracy, "a`") == []


def test_the_short_list_has_the_best_of_each_data_set_by_what_was_logged() -> None:
    def one(letter: str, value: float | None, **tags: str) -> runs.TrackedRun:
        metrics = {} if value is None else {"val/multiclass/accuracy": value}
        return runs.from_entity(
            entity(
                letter * 32,
                letter,
                metrics=metrics,
                tags={"cmtrack.val.status": "completed"} | tags,
            ),
            Store(),
        )

    options = CompareOptions(rank_by="multiclass/accuracy", require="multiclass/accuracy >= 0.2")
    several = [
        one("a", 0.5),
        one("b", 0.9),
        one("c", None),
        one("d", 0.1),
        one("e", math.nan),
        one("f", 0.9),
        one("1", 0.3, **{"cmtrack.val.digests": '{"labels": "other"}'}),
        one("2", 0.3, **{"cmtrack.val.status": "started"}),
        one("3", 0.3, **{"cmtrack.kind": "review"}),
    ]

    def short(limit: int, **how: Any) -> Any:
        listed = comparing.Listed(tuple(several))
        out = comparing.reduced(
            listed, options.criterion, options.gates, "val/", limit=limit, **how
        )
        parts = (names_of(out), [run.name for run in out.passed_over])
        return (
            *parts,
            [left.run.name for left in out.stopped],
            [left.run.name for left in out.incomplete],
        )

    assert short(2) == (["b", "f", "1"], ["a", "c"], ["d", "e"], ["2"])
    assert short(4) == (["b", "f", "a", "c", "1"], [], ["d", "e"], ["2"])
    whole = (["a", "b", "c", "d", "e", "f", "1"], [], [], ["2"])
    assert short(2, changes=frozenset({"at"})) == whole
    assert short(2, changes=frozenset({"costs"})) == short(2)
    anew = {
        run.run_id: {"multiclass/accuracy": 0.3 + 0.1 * place} for place, run in enumerate(several)
    }
    assert short(2, changes=frozenset({"at"}), anew=anew) == (
        ["f", "e", "1"],
        ["d", "c", "b", "a"],
        [],
        ["2"],
    )


# -- publishing ------------------------------------------------------------------------------------------------------


class Reviews:
    """Stores that take a review; ``events``: what they were told; ``refuses``: what they do not do."""

    tracking_uri = URI

    def __init__(self, *refuses: str, location: str = "", name: str = "e") -> None:
        self.events: list[Any] = []
        self.refuses, self.experiment = refuses, Any_(name=name, artifact_location=location)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)

        def told(*given: Any, **how: Any) -> Any:
            if name in self.refuses:
                raise MlflowException(f"no {name}\nat all")
            self.events.append((name, *given, *how.values()))
            tags = {"cmtrack.criterion": "old", "mlflow.note.content": "By Ann."}
            return Any_(
                info=Any_(run_id="review", artifact_uri="u"), data=Any_(tags=tags), tags=tags
            )

        return told

    def get_experiment(self, _: str) -> Any:
        return self.experiment

    def log_artifacts(self, run_id: str, folder: str) -> None:
        if "log_artifacts" in self.refuses:
            raise OSError("no room")
        self.events.append(("files", sorted(path.name for path in Path(folder).iterdir())))

    def asked(self, name: str) -> list[Any]:
        return [event[1:] for event in self.events if event[0] == name]


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Publish a comparison of three runs, of which a gate stops one, into a store."""
    y = [0, 1] * 20

    def run(letter: str, **more: Any) -> Run:
        return Run(letter * 32, letter, "1", **({"tracking_uri": URI} | more))

    def compared(*listed: Run, require: Any = "multiclass/accuracy > 0.3") -> Any:
        options = CompareOptions(rank_by="multiclass/accuracy", require=require)
        few_wrong = y[:-9] + [1 - label for label in y[-9:]]
        # not so many that classes seem to be swapped
        many_wrong = y[:11] + [1 - label for label in y[11:]]
        guesses = {"a": y, "d": y, "b": few_wrong, "c": many_wrong}
        evaluations = {
            one.run_id: evaluate(y[one.name == "d" :], guesses[one.name][one.name == "d" :])
            for one in listed
        }
        return compare_runs(Listing(listed), evaluations, options.criterion, options)

    def publish_to(store: Reviews, *listed: Run, **how: Any) -> Any:
        listed = listed or (run("a", model_ids=("m-1",)), run("b"), run("c"))
        asked = {"require": how.pop("require")} if "require" in how else {}
        versions = [Any_(name="v", version=3, description=None, tags={"cmtrack.criterion": "x"})]
        monkeypatch.setattr(publish, "client_for", lambda _: store)
        monkeypatch.setattr(publish, "filing", lambda client, _: client)
        monkeypatch.setattr(
            publish, "versions_of", lambda one, _: versions if one.name == "a" else []
        )
        monkeypatch.setattr(publish, "version_for", lambda one, _, name: versions[0])
        monkeypatch.setattr(publish, "experiment_named", named(store))
        monkeypatch.setattr(
            publish, "end_run", lambda _, *run: store.events.append(("ended", *run))
        )
        monkeypatch.setattr(
            "cmtrack.report.figures.draw_pictures",
            lambda *_, **__: {"a": Any_(file="a.png", content=b"")},
        )
        for name in ("html", "markdown", "as_json", "ranking_json"):
            monkeypatch.setattr(publish, name, lambda *_, name=name, **__: name)
        return publish.publish(compared(*listed, **asked), **how)

    def named(store: Reviews) -> Any:
        def experiment(_: Any, name: str, location: str | None = None) -> str:
            if "experiment" in store.refuses:
                raise ValueError("it is deleted\nfor good")
            store.events.append(("experiment", name, location))
            return "9"

        return experiment

    publish_to.run = run  # type: ignore[attr-defined]
    return publish_to


def test_a_review_is_a_run_and_its_runs_are_tagged(published: Any) -> None:
    store, began = Reviews(), time.time()
    logged = published(store)
    assert (logged.run_id, logged.experiment_id, logged.alias, logged.problems) == (
        "review",
        "9",
        "",
        (),
    )
    assert logged.tagged_runs == ("a" * 32, "b" * 32, "c" * 32)
    assert (logged.tagged_models, logged.versions) == (("m-1",), ("models:/v/3",))
    [(experiment, name, tags)] = store.asked("create_run")
    assert (experiment, name) == ("9", "review: multiclass/accuracy")
    assert {
        name.removeprefix("cmtrack."): tags[name] for name in tags if name != "cmtrack.decision"
    } == {
        "kind": "review",
        "rank_by": "multiclass/accuracy",
        "best": "a" * 32,
        "best_name": "a",
        "tied": "“a”",
        "ranked": "2",
        "stopped": "1",
        "gates": "multiclass/accuracy > 0.3",
    }
    assert store.asked("ended") == [("review",)]
    assert store.asked("experiment") == [("e: reviews", None)]
    [(_, numbers, params), *tagged] = store.asked("log_batch")
    values = {one.key: one.value for one in numbers}
    assert values == {"review/runs": 2, "review/stopped": 1, "review/tied": 1, "review/best": 1.0}
    assert {one.step for one in numbers} == {0}
    assert all(began * 1000 - 1 <= one.timestamp <= time.time() * 1000 for one in numbers)
    assert {one.key: one.value for one in params} == {
        "rank_by": "multiclass/accuracy",
        "require": "multiclass/accuracy > 0.3",
    }
    files = [
        "a.png",
        *(f"cmtrack_review{end}" for end in (".html", ".json", ".md", "_ranking.json")),
    ]
    assert store.asked("files") == [(files,)]
    assert store.asked("set_tag") == [("review", "mlflow.note.content", "markdown")]
    standings = [{tag.key: tag.value for tag in tags} for _, tags, _ in tagged]
    assert [one["cmtrack.rank"] for one in standings] == ["1", "2", "stopped by a gate"]
    assert {synchronous for _, _, synchronous in tagged} == {True}
    assert {one["cmtrack.review"] for one in standings} == {"review"}
    notes = [one["mlflow.note.content"] for one in standings]
    assert notes[0].startswith("By Ann.\n\nRank 1 by multiclass/accuracy in the [review of ")
    assert "](#/experiments/9/runs/review/artifacts/cmtrack_review.html). " in notes[0]
    assert notes[2].startswith("By Ann.\n\nStopped by a gate in the [review of ")
    assert store.asked("delete_tag") == [(letter * 32, "cmtrack.criterion") for letter in "abc"]
    assert store.asked("delete_logged_model_tag") == [("m-1", "cmtrack.criterion")]
    assert store.asked("delete_model_version_tag") == [("v", 3, "cmtrack.criterion")]
    [(model, tags)] = store.asked("set_logged_model_tags")
    assert (model, tags["cmtrack.rank"], tags["mlflow.note.content"] == notes[0]) == (
        "m-1",
        "1",
        True,
    )
    [(name, version, text)] = store.asked("update_model_version")
    assert (name, version, text.startswith("Rank 1 by ")) == ("v", 3, True)
    assert {key for _, _, key, _ in store.asked("set_model_version_tag")} == {
        "cmtrack.rank",
        "cmtrack.review",
        "cmtrack.rank_by",
    }


def test_what_is_refused_is_a_problem_or_ends_the_review(published: Any) -> None:
    store = Reviews("get_run", "get_logged_model", "experiment")
    logged = published(store)
    assert (logged.tagged_runs, logged.tagged_models, logged.versions) == ((), (), ())
    assert (logged.experiment_id, logged.problems) == (
        "1",
        (
            "the review is in the experiment of its runs: it is deleted",
            *(f"tags of run {'a' * 32}: no get_run", "tags of model m-1: no get_logged_model"),
            *(f"tags of run {letter * 32}: no get_run" for letter in "bc"),
        ),
    )
    assert published(Reviews("update_model_version")).problems == (
        "description of models:/v/3: no update_model_version",
    )
    store = Reviews("log_artifacts")
    with pytest.raises(OSError, match="no room"):
        published(store)
    assert store.asked("ended") == [("review", "FAILED")]
    for how, says in (
        ({"registered_model": "v"}, "registered_model needs alias, got 'v' alone"),
        (
            {"alias": "x", "require": "multiclass/accuracy > 2"},
            "no run is chosen, so the alias 'x' cannot be set: ",
        ),
    ):
        store = Reviews()
        with pytest.raises(ValueError, match=says):
            published(store, **how)
        assert store.events == []
    with pytest.raises(
        ValueError, match="a review needs a run that is ranked or that a gate stopped, got none"
    ):
        publish.publish(Any_(best=None, runs=(), failed=()))
    with pytest.raises(ValueError, match="these evaluations are in no run, so there is no store"):
        published(Reviews(), published.run("a", tracking_uri=""))
    with pytest.raises(
        ValueError,
        match="the review is logged as run review, but the alias 'x' was refused: no set_reg",
    ):
        published(Reviews("set_registered_model_alias"), alias="x")


def test_a_review_goes_where_it_is_asked_to(published: Any) -> None:
    store = Reviews()
    logged = published(store, alias="x", experiment_name="mine", run_name="r")
    assert (logged.alias, store.asked("experiment")) == (
        "models:/v@x (version 3)",
        [("mine", None)],
    )
    assert store.asked("set_registered_model_alias") == [("v", "x", 3)]
    assert ("review", "cmtrack.alias", "v@x") in store.asked("set_tag")
    assert store.asked("create_run")[0][1] == "r"
    nothing = Reviews()
    logged = published(nothing, require="multiclass/accuracy > 2")
    values = {one.key: one.value for one in nothing.asked("log_batch")[0][1]}
    assert values == {"review/runs": 0, "review/stopped": 3, "review/tied": 0}
    tags = nothing.asked("create_run")[0][2]
    assert [tags[f"cmtrack.{name}"] for name in ("best", "best_name", "tied")] == ["", "", ""]
    free = Reviews()
    published(free, require=())
    assert "cmtrack.gates" not in free.asked("create_run")[0][2]
    many = Reviews()
    published(
        many, published.run("a"), require=[f"multiclass/accuracy > 0.{k:03}" for k in range(150)]
    )
    [(_, _, params)] = many.asked("log_batch")[:1]
    assert (len(many.asked("create_run")[0][2]["cmtrack.gates"]), len(params[-1].value)) == (
        4000,
        4000,
    )
    for location, name, asked in (
        ("s3://b", "e", [("e: reviews", "s3://b")]),
        ("mlflow-artifacts:/1", "e", [("e: reviews", None)]),
        ("", "e: reviews", []),
    ):
        store = Reviews(location=location, name=name)
        assert published(store).experiment_id == ("9" if asked else "1")
        assert store.asked("experiment") == asked
    apart = Reviews()
    published(apart, *map(published.run, "abd"))
    ranks = [
        tag.value
        for _, tags, _ in apart.asked("log_batch")[1:]
        for tag in tags
        if tag.key == "cmtrack.rank"
    ]
    assert ranks == ["1", "2", "1 in ranking 2"]
    # none of two has a better claim
    assert publish._tied(Any_(ranking=Any_(tied=[Any_(name="a")]), best=None)) == []
    mixed = Reviews()
    logged = published(mixed, published.run("a"), published.run("b", tracking_uri=""))
    assert logged.tagged_runs == ("a" * 32,)


def test_a_run_leads_to_its_review_where_it_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    reviews = {
        "r" * 32: entity("r" * 32, tags={"cmtrack.kind": "review"}),
        "d" * 32: entity("d" * 32),
    }
    store = Store(*reviews.values())
    monkeypatch.setattr(publish, "client_for", lambda _: store)

    def given(review: str, uri: str = URI) -> Any:
        return publish.review_of(
            Run("a", "a", tracking_uri=uri, tags={"cmtrack.review": review} if review else {})
        )

    assert given("r" * 32).run_id == "r" * 32
    assert (given(""), given("r" * 32, ""), given("x" * 32), given("d" * 32)) == (
        None,
        None,
        None,
        None,
    )
    reviews["r" * 32].info.lifecycle_stage = "deleted"
    assert given("r" * 32) is None
    text = "line\n" * 1600
    assert (len(text), publish._cut(text)) == (8000, text)
    cut = publish._cut(f"{text}x")
    assert cut.endswith("line\n\n… the rest is in cmtrack_review.md.")
    assert 7990 < len(cut) <= 8000


# -- comparing a store, and runs by segments -------------------------------------------------------------------------

LABELS = [0, 1] * 20


class Held(Store):
    """A store with complete evaluations of its runs, by their names, and with their files."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **evaluations: Any) -> None:
        super().__init__(
            *(self.one(name, evaluation) for name, evaluation in evaluations.items()), size=50
        )
        self.evaluations = evaluations
        monkeypatch.setattr(comparing, "client_for", lambda _: self)
        monkeypatch.setattr(artifacts, "read", self.read)

    @staticmethod
    def one(name: str, evaluation: Any) -> Any:
        metrics = (
            {}
            if isinstance(evaluation, str)
            else {"multiclass/accuracy": evaluation.metrics["multiclass/accuracy"]}
        )
        tags = {"cmtrack.status": "completed", "cmtrack.review": name}
        run = entity(name * 32, name, metrics=metrics, tags=tags)
        run.info.artifact_uri = f"s3://bucket/{name}"
        return run

    def read(self, uri: str, name: str, _: str) -> bytes:
        one, content = self.evaluations[uri[-1]], BytesIO()
        if isinstance(one, str):
            return one.encode()
        if name.endswith(".json"):
            return one.to_json().encode()
        one.write_rows(content)
        return content.getvalue()

    def get_experiment(self, experiment_id: str) -> Any:
        return Any_(name="party")


def right(n: int, **more: Any) -> Any:
    """An evaluation with so many right predictions."""
    return evaluate(LABELS, LABELS[:n] + [1 - one for one in LABELS[n:]], **more)


def test_runs_of_a_store_are_compared_and_what_is_unreadable_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[Any] = []
    Held(monkeypatch, a=right(30), b=right(38), c="damaged")

    def compared(given: Any = ("a" * 32, "b" * 32), **how: Any) -> Any:
        return comparing.compare_by(
            CompareOptions(**({"rank_by": "multiclass/accuracy"} | how)),
            given,
            lambda *step: told.append(step),
        )

    comparison = compared()
    assert [(run.rank, run.name, run.value) for run in comparison.runs] == [
        (1, "b", 0.95),
        (2, "a", 0.75),
    ]
    assert told == [
        ("finding runs", 1, 2), ("finding runs", 2, 2), ("reading evaluations", 1, 2), ("reading evaluations", 2, 2),
        ("ranking", 0, 0),
    ]  # fmt: skip
    with pytest.raises(ValueError, match=r"^the baseline 'c' cannot be read: "):
        compared(against="c" * 32)
    against = compared(["a" * 32], against="b" * 32)
    assert (against.baseline.name, [run.name for run in against.runs]) == ("b", ["b", "a"])
    everything = compared(None, experiment_names=["party"])
    assert [left.run.name for left in everything.left_out] == ["c"]
    first = compared(rank_by=None)
    assert first.criterion.metrics == ("multiclass/matthews_corrcoef",)
    only = compared({"x": right(30), "y": right(20)})
    assert [run.name for run in only.runs] == ["x", "y"]


def test_a_baseline_that_a_gate_stops_or_the_limit_passes_over_is_judged_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Held(monkeypatch, a=right(30), b=right(38), c=right(20))

    def compared(**how: Any) -> Any:
        given = {
            "rank_by": "multiclass/accuracy",
            "experiment_names": ["party"],
            "against": "c" * 32,
        } | how
        return comparing.compare_by(CompareOptions(**given))

    stopped = compared(require=["multiclass/accuracy > 0.8"])
    assert (
        sorted(stop.run.name for stop in stopped.failed),
        [run.name for run in stopped.runs],
    ) == (["a", "c"], ["b"])
    short = compared(limit=1)
    assert ([run.name for run in short.runs], [run.name for run in short.passed_over]) == (
        ["b", "c"],
        ["a"],
    )


def test_a_metric_of_ones_own_is_taken_from_the_first_run_that_has_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gain, loss = (
        Metric(f"own/{name}", lambda b: b.tp - b.fp, of="binary") for name in ("gain", "loss")
    )
    asked: list[str] = []
    given = {
        "a": right(30),
        "b": "damaged",
        "c": right(30, extra_metrics=[gain]),
        "d": right(30, extra_metrics=[gain, loss]),
        "e": right(30, extra_metrics=[loss]),
    }
    store = Held(monkeypatch, **given)

    def read(run: Any, *_: Any) -> Any:
        asked.append(run.name)
        if run.name == "b":
            raise ValueError("damaged")
        return given[run.name]

    monkeypatch.setattr(comparing, "evaluation_of", read)
    listed = comparing.Listed(
        tuple(runs.from_entity(one, store) for one in store.entities), clients={URI: store}
    )
    for names, seen in (
        ({"own/gain"}, "abc"),
        ({"own/gain", "own/loss"}, "abcd"),
        ({"own/none"}, "abcde"),
    ):
        asked.clear()
        catalog = comparing._declared(listed, "", names, comparing.BUILT_IN)
        assert ({one.name for one in catalog.own}, "".join(asked)) == (names - {"own/none"}, seen)
    asked.clear()
    comparing._declared(replace(listed, runs=listed.runs * 5), "", {"own/none"}, comparing.BUILT_IN)
    assert len(asked) == 20


def test_where_nothing_is_complete_it_is_said_what_is_there() -> None:
    def listing(*prefixes: str, more: int = 0) -> comparing.Listed:
        tags = {f"cmtrack.{prefix}.status".replace("..", "."): "completed" for prefix in prefixes}
        several = (entity("a" * 32, tags=tags), *(entity(f"{k:032}") for k in range(more)))
        return comparing.Listed(
            tuple(runs.from_entity(one, Store()) for one in several), clients={URI: Store()}
        )

    for listed, prefix, says in (
        (comparing.Listed((), clients={URI: Store()}), "", " in http://host"),
        (
            listing(),
            "",
            "the run holds no complete evaluation: cmtrack.log_evaluation in the training script logs one",
        ),
        (
            listing(more=2),
            "x/",
            "none of the 3 runs holds a complete evaluation under the prefix 'x/': cmtrack.log_eva",
        ),
        (listing("a", "b"), "", "complete evaluation: there are evaluations under 'a', 'b'"),
        (listing(""), "x/", "under the prefix 'x/': there are evaluations without a prefix"),
        (listing(*"abcdefg"), "", "under 'a', 'b', 'c', 'd', 'e', 'f' and 1 more prefixes"),
        (listing(*"abcdef"), "", "under 'a', 'b', 'c', 'd', 'e', 'f'"),
    ):
        text = comparing._nothing(listed, prefix)
        assert (says in text, "more prefixes" in text) == (True, "more prefixes" in says)
    assert (
        " in "
        not in comparing._nothing(comparing.Listed(()), "").split(":")[0].partition("experiment")[0]
    )


def test_other_runs_of_the_same_rows_are_counted() -> None:
    one = right(30)
    data = Any_(dataset_inputs=[Any_(dataset=Any_(name="d", digest=one.labels_digest))])
    entities = [
        entity(letter * 32, letter, inputs=data, tags={"cmtrack.review": "r"}) for letter in "abcd"
    ]
    store = Store(*entities, entity("e" * 32, "e", tags={"cmtrack.review": "s"}), size=50)
    listed = comparing.Listed(
        tuple(runs.from_entity(some, store) for some in entities[:2]), clients={URI: store}
    )
    assert comparing._looks([one], listed, part=False) == (2, 1)
    assert comparing._looks([one, one, right(20, labels=[1, 0])], listed, part=True) == (4, 1)
    assert store.asked == [(["1"], f"dataset.digest = '{one.labels_digest}'", 500)]
    assert comparing._looks([], listed, part=True) == (0, 0)
    store.search_runs = None
    assert comparing._looks([one], listed, part=True) == (2, 1)


def test_the_size_of_models_is_that_of_their_files(monkeypatch: pytest.MonkeyPatch) -> None:
    about = {
        "m-1": b"model_size_bytes: 5\n",
        "m-2": b"model_size_bytes: 7\n",
        "m-3": b"flavors: x\n",
    }
    monkeypatch.setattr(
        artifacts, "read", lambda place, *asked: about[place] if asked[2] == 1 << 20 else b""
    )
    client = Any_(
        tracking_uri=URI, get_logged_model=lambda model_id: Any_(artifact_location=model_id)
    )
    for ids, size in (
        (("m-1",), 5),
        (("m-1", "m-2"), 12),
        (("m-1", "m-3"), 0),
        (("m-1", "gone"), 0),
        ((), 3),
    ):
        assert runs.model_size(Run("a", "a", model_ids=ids, model_size=3), client) == size


def test_runs_are_divided_by_a_table_of_their_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    import pandas as pd

    one = right(30, row_ids=list(range(40)))
    store = Held(monkeypatch, a=one)
    run = runs.from_entity(store.entities[0], store)
    monkeypatch.setattr(segments, "with_clients", lambda _: [(run, store)])
    monkeypatch.setattr(segments, "evaluation_of", lambda *_: one)
    monkeypatch.setattr(segments, "with_predictions", lambda evaluation, *_: evaluation)
    regions = ["n"] * 30 + ["s"] * 10
    table = {"region": regions, "y": LABELS, "ids": list(range(40)), "wrong": [0, 1] * 19 + [1, 1]}
    frame = pd.DataFrame(table, index=range(40))[::-1]
    says = "rows of the table are matched to those of the run by their place alone"
    for given, how, warns in (
        (table, {"y_true": "y"}, False),
        (table, {"row_ids": "ids"}, False),
        (frame, {"row_ids": range(40)}, False),
        (table, {}, True),
    ):
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            [divided] = segments.segment_runs("a", given, segments=["region"], **how)
        assert [str(one.message).startswith(says) for one in warned] == [True] * warns
        named = divided.segments.named("segment/region/*/multiclass/accuracy")
        assert list(named.values()) == [1.0, 0.0]
    for how, says in (
        ({"segments": ["age"], "y_true": "y"}, "table must have the column 'age', got"),
        ({"segments": ["region"], "y_true": "z"}, "table must have the column 'z', got"),
        (
            {"segments": ["region"], "y_true": "wrong"},
            "1 of 40 rows do not match, the first is row 38 with 1 instead",
        ),
    ):
        with pytest.raises(ValueError, match=says):
            segments.segment_runs("a", table, **how)
    with pytest.raises(ValueError, match="segments need rows of labels, got"):
        segments._check_labels(replace(one, rows=None), [0])
    tagged: list[Any] = []

    def log_batch(run_id: str, tags: Any, synchronous: bool) -> None:
        tagged.extend((run_id, tag.key, tag.value) for tag in tags)
        store.get_run(run_id).data.tags.update({tag.key: tag.value for tag in tags})

    store.log_batch = log_batch
    texts: list[Any] = []
    monkeypatch.setattr(
        segments, "filing", lambda *_: Any_(log_text=lambda *text: texts.append(text))
    )
    segments.segment_runs("a", table, segments=[("region", "ids")], y_true="y", log=True)
    assert tagged == [
        ("a" * 32, TABLES, json.dumps([{"path": "cmtrack_segments.json", "type": "table"}]))
    ]
    assert [(text[0], text[2]) for text in texts] == [("a" * 32, "cmtrack_segments.json")]


def test_runs_that_are_judged_anew_are_read_before_the_list_is_cut(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def one(letter: str, **metrics: float) -> runs.TrackedRun:
        done = {"cmtrack.status": "completed"}
        return runs.from_entity(entity(letter * 32, letter, metrics=metrics, tags=done), Store())

    anew = {
        letter * 32: Any_(metrics={"binary/recall": value})
        for letter, value in (("a", 0.1), ("b", 0.9))
    }
    asked: list[Any] = []

    def read(several: Any, *_: Any, rows: bool) -> Any:
        asked.append(([run.name for run in several], rows))
        return anew, [], []

    monkeypatch.setattr(comparing, "_read", read)
    logged = tuple(
        one(letter, **{"binary/recall": value})
        for letter, value in (("a", 0.9), ("b", 0.1), ("c", 0.5))
    )
    for listed, how, first, reads in (
        (logged, {}, ["a"], []),
        (logged, {"grouping": TWO}, ["b"], [(["a", "b", "c"], False)]),
        ((one("a"), one("b")), {}, ["b"], [(["a", "b"], False)]),
        ((one("a"),), {}, ["a"], []),
    ):
        asked.clear()
        options = CompareOptions(rank_by="binary/recall", limit=1, **how)
        short = comparing._shortened(
            comparing.Listed(listed), options.criterion, options, lambda *_: None
        )
        assert (names_of(short), asked) == (first, reads)
