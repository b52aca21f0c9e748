"""What is said of runs and asked of stores, by hand: a store here is an object with what MLflow would answer."""

from __future__ import annotations

import errno
import json
from types import SimpleNamespace as Any_
from typing import Any

import pytest
from mlflow.exceptions import MlflowException
from mlflow.protos.databricks_pb2 import INTERNAL_ERROR, RESOURCE_DOES_NOT_EXIST

from cmtrack.tracking import artifacts, comparing, runs, send
from cmtrack.tracking.package import Package

URI = "http://u:p@host"


def entity(run_id: str = "a" * 32, name: str | None = "n", **more: Any) -> Any:
    info = Any_(
        run_id=run_id, run_name=name, experiment_id=1, artifact_uri=None, start_time=None, end_time=5,
        lifecycle_stage="active",
    )  # fmt: skip
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

    def search_runs(self, ids: Any, text: str, max_results: int, order_by: Any, page_token: str | None) -> Page:
        self.asked.append((ids, text, max_results))
        start = int(page_token or 0)
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
        entity(outputs=Any_(model_outputs=[output, output]), inputs=Any_(dataset_inputs=[data, data])), Store(), ["m-1"]
    )
    assert (run.run_id, run.name, run.experiment_id, run.tracking_uri) == ("a" * 32, "n", "1", URI)
    assert (run.artifact_uri, run.start_time, run.end_time) == ("", 0, 5)
    assert (run.model_ids, run.datasets) == (("m-1", "m-2"), (("d", "e"),))
    assert runs.from_entity(entity(name=None), Store()).name == "a" * 32
    with pytest.raises(ValueError, match="a run's id must be an id"):
        runs.from_entity(entity("../a"), Store())


@pytest.mark.parametrize(
    ("text", "size"),
    [('[{"model_size_bytes": 5}, {"model_size_bytes": 7}]', 7), ("[]", 0), ("{", 0), ("[1]", 0), ('[{"a": 1}]', 0)],
)
def test_the_size_of_a_model_is_that_of_the_last_logged_one(text: str, size: int) -> None:
    assert runs._logged_size({"mlflow.log-model.history": text}) == size
    assert runs._logged_size({}) == 0


def test_runs_are_searched_page_by_page_and_no_more_than_wanted() -> None:
    store, seen = Store(*(entity(str(k) * 32) for k in range(5))), []
    assert [run.run_id[0] for run in runs.search(store, ["1"], progress=seen.append)] == list("01234")
    assert seen == [2, 4, 5]
    assert [run.run_id[0] for run in runs.search(store, ["1"], max_runs=3)] == list("012")
    assert [size for _, _, size in store.asked] == [runs.PAGE] * 3 + [3, 1]
    assert list(runs.search(store, ["1"], max_runs=0)) == []

    def refuse(*_: Any, **__: Any) -> None:
        raise MlflowException("no\nmore")

    store.search_runs = refuse
    with pytest.raises(ValueError, match=r"the tracking store refused the search: no$"):
        list(runs.search(store, ["1"]))


def test_an_experiment_that_is_none_gets_those_like_it() -> None:
    assert runs.experiment_ids(Store(), ["other", "party"]) == ["2", "1"]
    with pytest.raises(ValueError, match=r"there is no experiment 'partie' in http://host; did you mean 'party'\?"):
        runs.experiment_ids(Store(), ["partie"])
    with pytest.raises(ValueError, match=r"there is no experiment '123' in http://host$"):
        runs.experiment_ids(Store(), ["123"])


def test_a_run_is_found_by_its_id_or_its_beginning() -> None:
    first, second = entity("abcdef01" + "0" * 24), entity("abcdef02" + "0" * 24, "m")
    store = Store(first, second)
    for reference in (first.info.run_id, f" runs:/{first.info.run_id}/model ", first, Any_(run_id=first.info.run_id)):
        assert runs.find(reference, [Store(), store]).run_id == first.info.run_id
    assert runs.find("abcdef02", [store]).name == "m"
    assert runs.find("abcdef02", [store, store], ["party"]).name == "m"
    with pytest.raises(ValueError, match=r"there is no run 'abcdef02' \(http://host: .*no such run\)$"):
        runs.find("abcdef02", [store], ["nowhere"])
    both = entity("abcdef020" + "1" * 23, "o")
    with pytest.raises(
        ValueError, match=r"several runs have an id that begins with 'abcdef02': abcdef020000.* \(m\), "
    ):
        runs.find("abcdef02", [Store(second, both)])
    with pytest.raises(ValueError, match="a run is named by its id or the first 8 characters of it"):
        runs.find("nobody", [Store()])
    with pytest.raises(ValueError, match="there is no model 'm-1'"):
        runs.find("m-1", [Any_(tracking_uri=URI, get_logged_model=Store().get_run)])
    with pytest.raises(ValueError, match="got an empty text"):
        runs.find("  ", [store])
    for wrong in (5, None, Any_(run_id=1)):
        with pytest.raises(TypeError, match="a run must be an id, a model URI, or an object with a run_id"):
            runs.find(wrong, [store])

    def silent(run_id: str) -> None:
        raise MlflowException("gone", INTERNAL_ERROR)

    with pytest.raises(ConnectionError, match=r"http://host did not answer: .*gone"):
        runs.find("a" * 32, [Any_(tracking_uri=URI, get_run=silent)])


def test_a_model_leads_to_the_run_that_judged_it() -> None:
    def metric(run_id: str, key: str, timestamp: int) -> Any:
        return Any_(run_id=run_id, key=key, timestamp=timestamp)

    models = {
        "m-1": Any_(metrics=[metric("a", "x/y", 1), metric("b", "x/y", 3), metric("c", "x", 5), metric("", "x/y", 7)]),
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
        ("m-1", ("b", ("m-1",))), ("m-2", ("s", ("m-2",))), ("models:/m-2", ("s", ("m-2",))),
        ("models:/name/3", ("r", ())), ("models:/name/4", ("s", ("m-2",))), ("models:/name@champion", ("q", ())),
        ("runs:/x/model", ("x", ())), ("x", ("x", ())),
    ):  # fmt: skip
        assert runs._resolve(text, client) == found
    for text, says in (("m-3", "names no run"), ("models:/name/5", "names no run"), ("models:/name", "must read")):
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

    by_run: dict[str, list[Any]] = {"a" * 32: [version("x", 1, "m-1"), version("y", 2)], "s": [version("z", 3, "m-1")]}
    client: Any = Any_(
        search_model_versions=lambda text: by_run.get(text.split("'")[1], []),
        get_logged_model=lambda model_id: Any_(source_run_id={"m-1": "s", "m-2": None}[model_id]),
    )
    run = runs.from_entity(entity(), Store())
    assert [runs.version_for(run, client, name).version for name in ("x", "y")] == [1, 2]
    with pytest.raises(ValueError, match=r"2 registered versions come from run 'n' .*: x version 1, y version 2; reg"):
        runs.version_for(run, client)
    with pytest.raises(ValueError, match="no registered version of 'w' comes from run 'n'"):
        runs.version_for(run, client, "w")
    judged = runs.from_entity(entity(), Store(), ["m-1"])
    assert [one.name for one in runs.versions_of(judged, client)] == ["x", "y", "z"]
    other = runs.from_entity(entity(), Store(), ["m-2"])
    assert [one.name for one in runs.versions_of(other, client)] == ["y"]  # the other is of a model that was not judged
    by_run["a" * 32] = [version("x", 1), version("x", 2)]
    with pytest.raises(ValueError, match=r"2 registered versions .* set the alias by hand"):
        runs.version_for(run, client)


# -- sending ---------------------------------------------------------------------------------------------------------


class Refused(Exception):
    def __init__(self, status: Any, reason: str = "") -> None:
        self.response = Any_(status_code=status, reason=reason) if isinstance(status, int) else status


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (Refused(413, "too\x1b large"), "413 too\\x1b large"),
        (Refused(400), "400"),
        (Refused(499), "499"),
        (Refused(399), ""),
        (Refused(500), ""),
        (Refused({"ResponseMetadata": {"HTTPStatusCode": 403}, "Error": {"Code": "AccessDenied"}}), "403 AccessDenied"),
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
    assert send._refusal(upload(closed, BrokenPipeError()), lambda: asked.append(2)) == "the connection was closed"
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
        "folder": None, "metrics": {"multiclass/accuracy": 0.5}, "images": {}, "table": "", "timestamp": 5,
        "tags": {"cmtrack.digests": '{"evaluation": "e", "labels": "l"}'}, "dataset": {"name": "d", "digest": "e"},
        "description": "",
    } | more  # fmt: skip
    return Package(**parts)


def held(**more: Any) -> Any:
    tags = {"cmtrack.status": "completed", "cmtrack.samples": "9", **package().tags} | more.pop("tags", {})
    data = Any_(dataset_inputs=[Any_(dataset=Any_(name="d", digest="e"))])
    return entity(tags=tags, inputs=data, metrics={"multiclass/accuracy": 0.5} | more.pop("metrics", {}), **more)


def test_a_run_holds_a_package_or_another_evaluation() -> None:
    assert send.is_there(held(), package())
    for run in (
        held(tags={"cmtrack.status": "started"}), held(tags={"cmtrack.left_out": "x"}),
        held(tags={"cmtrack.digests": "{}"}),
        held(metrics={"multiclass/accuracy": 0.4}),
    ):  # fmt: skip
        assert not send.is_there(run, package())
    for other in (package(step=0), package(model_id="m"), package(dataset={"name": "d", "digest": "x"})):
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
    run = held(metrics={"binary/f1": 1.0, "loss": 1.0, "val/binary/f1": 1.0}, tags={"cmtrack.positive": "x"})
    assert send.stale_metrics(run, package()) == ["binary/f1"]
    assert send.stale_metrics(run, package(prefix="val/")) == ["val/binary/f1"]
    assert send.old_tags(run, package(), ["cmtrack.digests"]) == ["cmtrack.positive", "cmtrack.samples"]
    points = [Any_(key="multiclass/accuracy", timestamp=7), Any_(key="loss", timestamp=9)]
    monkeypatch.setattr(send.mlflow_inside, "latest_metrics", lambda _: points)
    assert send._newest(run, package()) == 7
    assert send._newest(run, package(metrics={})) == 0
    for text, newest in (("8", 8), ("9" * 15, int("9" * 15)), ("9" * 16, 7), ("-8", 7), ("x", 7)):
        assert send._newest(held(tags={"cmtrack.logged_again": text}), package()) == newest
    outputs = [Any_(model_id="m-1", step=0), Any_(model_id="m-2", step=1), Any_(model_id="m-3", step=1)]
    run = entity(outputs=Any_(model_outputs=outputs))
    assert [send._only_model(run, step) for step in (0, 1, 2)] == ["m-1", None, None]
    assert send._only_model(entity(), 0) is None


# -- comparing -------------------------------------------------------------------------------------------------------


def test_custom_metrics_are_looked_for_and_those_of_the_catalog_not() -> None:
    from cmtrack.evaluation.catalog import CATALOG

    texts = ("mine/gain >= 0.5", ["multiclass/accuracy", "other/x"], None, "binary/nonsense > 1", 5)
    catalog: Any = Any_(names=[metric.name for metric in CATALOG] + ["mine/known"])
    assert comparing._not_known(catalog, *texts, "mine/known > 0") == {"mine/gain", "other/x"}


def test_an_experiment_id_of_two_stores_has_no_name() -> None:
    def store(**names: str) -> Any:
        return Any_(get_experiment=lambda key: Any_(name=names[f"e{key}"]))

    several = [
        Any_(tracking_uri=uri, experiment_id=key) for uri, key in (("a", "1"), ("b", "1"), ("a", "2"), ("b", "3"))
    ]
    clients = {"a": store(e1="one", e2="two"), "b": store(e1="other")}
    assert comparing._experiment_names(several, clients) == {"2": "two"}
    assert comparing._experiment_names(several[:1], clients) == {"1": "one"}
