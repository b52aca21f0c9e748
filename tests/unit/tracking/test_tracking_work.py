"""What tracking does while a store answers, waits or refuses, by hand: the clock and the store are the test's own."""

from __future__ import annotations

import json
import re
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from concurrent.futures import thread as pools
from contextlib import nullcontext
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from mlflow.exceptions import MlflowException
from mlflow.protos.databricks_pb2 import INTERNAL_ERROR, RESOURCE_DOES_NOT_EXIST

from cmtrack import evaluate
from cmtrack.report import Picture
from cmtrack.tracking import deliver, log, manifest, parallel, push, spool
from cmtrack.tracking import package as packages
from cmtrack.tracking.package import Package
from cmtrack.tracking.send import Sent
from cmtrack.untrusted import without_credentials


class Clock:
    """Time that passes only where somebody waits."""

    now = 100.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        assert self.now < 200, "it waits for ever"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    ours = Clock()
    monkeypatch.setattr(deliver, "time", ours)
    return ours


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Deliver in this thread; the list gets what :func:`send` is called with, and its last entry answers."""
    calls: list[Any] = []
    monkeypatch.setattr(deliver, "within_patience", lambda ask: ask(lambda: None))
    monkeypatch.setattr(deliver, "client_for", lambda: "its own")
    monkeypatch.setattr(deliver, "send", lambda *given: calls.append(given) or Sent(("p",)))
    return calls


def package(folder: Path | None = None) -> Package:
    return Package(
        folder=folder,
        metrics={},
        images={},
        table="",
        timestamp=5,
        tags={},
        dataset={},
        description="",
        run_id="r",
        tracking_uri="http://here",
    )


# -- delivery --------------------------------------------------------------------------------------------------------


def test_a_store_is_waited_for_as_long_as_it_answers(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn, back, waits = threading.Semaphore(0), threading.Semaphore(0), []

    def ask(answered: Any) -> str:
        for _ in range(2):
            assert turn.acquire(timeout=20)
            answered()
            back.release()
        assert turn.acquire(timeout=20)
        return "sent"

    def nine_seconds(futures: Any, left: float) -> None:
        waits.append(left)
        clock.sleep(9)
        turn.release()
        if len(waits) < 3:
            assert back.acquire(timeout=20)
        else:
            wait(futures, 20)

    monkeypatch.setattr(deliver, "wait", nine_seconds)
    assert deliver.within_patience(ask) == "sent"
    assert waits == [10, 10, 10]

    def silence(futures: Any, left: float) -> None:
        waits.append(left)
        assert len(waits) < 6
        clock.sleep(9.5 if left == 10 else left)

    monkeypatch.setattr(deliver, "wait", silence)
    released = threading.Event()
    with pytest.raises(
        deliver.NoAnswer, match="the tracking store has not answered for 10 seconds"
    ):
        deliver.within_patience(lambda _: released.wait(20))
    released.set()
    assert waits[3:] == [10, 0.5]
    monkeypatch.setattr(deliver, "wait", wait)
    with pytest.raises(KeyError, match="its own"):
        deliver.within_patience(lambda _: {}["its own"])


class Passing(Exception):
    error_code = "REQUEST_LIMIT_EXCEEDED"


@pytest.mark.parametrize(
    ("errors", "tries", "ends"),
    [
        ([Passing("later")] * 2, 3, 101.0), ([RuntimeError("database is locked")] * 2, 3, 101.0),
        ([Passing("later")] * 30, 22, 110.5), ([RuntimeError("no")], 1, 100.0),
    ],
)  # fmt: skip
def test_what_passes_is_tried_again_for_ten_seconds(
    clock: Clock,
    asked: list[Any],
    monkeypatch: pytest.MonkeyPatch,
    errors: list[Exception],
    tries: int,
    ends: float,
) -> None:
    left = list(errors)

    def send(*given: Any) -> Sent:
        asked.append(given)
        if left:
            raise left.pop()
        return Sent()

    monkeypatch.setattr(deliver, "send", send)
    if tries > len(errors):
        assert deliver.deliver(package(), "c") == Sent()
    else:
        with pytest.raises(type(errors[0])):
            deliver.deliver(package(), "c")
    assert (len(asked), clock.now) == (tries, ends)


def test_what_has_waited_or_was_left_takes_no_newer_ones_place(
    asked: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert deliver.deliver(package()) == Sent(("p",))
    deliver.deliver(package(), "c", waited=True)
    assert [(client, late()) for _, client, _, late in asked] == [("its own", False), ("c", True)]
    left: list[Any] = []

    def no_answer(ask: Any) -> None:
        left.append(ask)
        raise deliver.NoAnswer

    monkeypatch.setattr(deliver, "within_patience", no_answer)
    with pytest.raises(deliver.NoAnswer):
        deliver.deliver(package(), "c")
    left[0](lambda: None)  # it goes on
    assert asked[-1][3]()


def test_an_entry_is_sent_by_one_and_goes_when_it_is_there(
    clock: Clock, asked: list[Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    entry, place = tmp_path / "e", "r\n"

    def again() -> Package:
        (entry / "artifacts").mkdir(parents=True)
        return package(entry)

    def locked(*_: Any) -> Sent:
        with spool.claimed(entry) as ours, spool.claimed(entry, place) as alone:
            asked.append((ours, alone))
        return Sent()

    monkeypatch.setattr(deliver, "send", locked)
    deliver.deliver(again())
    assert (asked, entry.exists(), deliver._sending) == ([(False, False)], False, {})
    one = again()
    with spool.claimed(entry), pytest.raises(deliver.BusyEntry, match="it is being sent already"):
        deliver.deliver(one)
    with (
        spool.claimed(entry, place),
        pytest.raises(deliver.BusyEntry, match="sent to its place in run r"),
    ):
        deliver.deliver(one)
    assert (len(asked), entry.exists(), clock.now, deliver._sending) == (1, True, 105.5, {})
    # a thread of this process that its caller has left
    earlier = deliver._sending[entry] = threading.Event()
    with spool.claimed(entry), spool.claimed(entry, place):
        deliver.deliver(one)
    assert (len(asked), entry.exists(), earlier.is_set(), deliver._sending) == (2, False, True, {})

    def taken_over(_: Any, __: Any, answered: Any, ___: Any) -> Sent:
        answered()
        deliver._sending[entry].set()
        deliver._sending[entry] = earlier
        answered()
        raise AssertionError("it goes on")

    monkeypatch.setattr(deliver, "send", taken_over)
    with pytest.raises(deliver.BusyEntry, match="somebody else sends it now"):
        deliver.deliver(again())
    assert deliver._sending.pop(entry) is earlier
    assert entry.exists()


def test_the_end_does_not_wait_for_pools_that_a_sender_began() -> None:
    begun, released = threading.Event(), threading.Event()
    ours, its = ThreadPoolExecutor(1), ThreadPoolExecutor(1)

    def work() -> None:
        its.submit(lambda: (begun.set(), released.wait(20)))
        released.wait(20)

    sender = deliver._Sender(work)
    assert sender.daemon
    sender.start()
    assert begun.wait(20)
    ours.submit(released.wait, 20)
    deliver._let_end()
    assert [
        worker in pools._threads_queues for pool in (ours, its) for worker in pool._threads
    ] == [True, False]
    released.set()
    sender.join(20)
    ours.shutdown()
    its.shutdown()


# -- threads and forks -----------------------------------------------------------------------------------------------


def test_each_item_is_done_and_told_and_an_error_is_its_own() -> None:
    told: list[Any] = []
    jobs = parallel.each(
        lambda k: 6 // k, [0, 1, 2, 3], lambda item, done: told.append((item, done)), workers=1
    )
    assert [job.exception() is None for job in jobs] == [False, True, True, True]
    assert [job.result() for job in jobs[1:]] == [6, 3, 2]
    assert (sorted(item for item, _ in told), [done for _, done in told]) == (
        [0, 1, 2, 3],
        [1, 2, 3, 4],
    )
    done: list[int] = []
    finished: list[int] = []

    def enough(item: int, _: int) -> None:
        assert begun.wait(20)
        raise KeyboardInterrupt

    def begin(item: int) -> None:
        done.append(item)
        if item:
            begun.set()
            released.wait(0.1)
        finished.append(item)

    begun, released = threading.Event(), threading.Event()
    with pytest.raises(KeyboardInterrupt):
        parallel.each(begin, list(range(50)), enough, workers=1)
    assert len(done) < 50
    assert finished == done  # what was under way is whole


@pytest.mark.parametrize(
    ("of_others", "imports", "waits"),
    [
        (False, False, [(True, 30.0), (True, 2.0)]),
        (False, True, [(True, 30.0), (True, 2.0)]),
        (True, False, [(True, 30.0), (False, 2.0)]),
        (True, True, [(False, 30.0), (False, 2.0)]),
    ],
)
def test_a_fork_waits_for_what_other_threads_have_under_way(
    monkeypatch: pytest.MonkeyPatch, of_others: bool, imports: bool, waits: list[Any]
) -> None:
    seen: list[Any] = []

    class Gate:
        def acquire(self) -> None:
            seen.append("closed")

        def wait_for(self, over: Any, seconds: float) -> bool:
            seen.append((over(), seconds))
            return bool(seen[-1][0])

    under_way = {1: (threading.get_ident() + of_others, imports)}
    monkeypatch.setattr(parallel, "_gate", Gate())
    monkeypatch.setattr(parallel, "_under_way", under_way)
    parallel._before_fork()
    assert (seen, bool(under_way)) == (["closed", *waits], waits[1][0])


def test_what_ended_well_once_holds_back_no_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    under_way: dict[Any, Any] = {}
    monkeypatch.setattr(parallel, "_under_way", under_way)
    monkeypatch.setattr(parallel, "_done", set())
    held = []
    for once, fails in (("", False), ("a", True), ("a", False), ("a", False)):
        try:
            with parallel.forks_wait(once, imports=fails):
                held.append(list(under_way.values()))
                if fails:
                    raise KeyError
        except KeyError:
            assert fails
        assert under_way == {}
    me = threading.get_ident()
    assert held == [[(me, False)], [(me, True)], [(me, False)], []]
    with parallel.forks_wait():
        assert list(under_way.values()) == [(me, False)]


# -- log -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Any]:
    """What the deliveries end with, one after the other; each is replaced by the package that was sent."""
    given: list[Any] = []

    def deliver(sent: Package, *_: Any, **how: Any) -> Sent:
        end = given.pop(0) if given and not isinstance(given[0], tuple) else Sent()
        given.append((sent, how))
        if isinstance(end, BaseException):
            raise end
        return end

    monkeypatch.setenv("CMTRACK_SPOOL", str(tmp_path / "spool"))
    monkeypatch.setattr(log, "deliver", deliver)
    monkeypatch.setattr(packages, "report_html", lambda *_, **__: "report")
    monkeypatch.setattr(packages, "_draw", lambda *_: None)
    return given


def logged(*given: Any, **how: Any) -> log.LoggedEvaluation:
    return log.log_evaluation(*(given or ([0, 1, 1, 0], [0, 1, 0, 0])), **({"run_id": "r"} | how))


@pytest.mark.parametrize(
    ("predictions", "fails", "says", "kept"),
    [
        (
            "auto",
            False,
            "its inputs are kept in .*spool/[^ ]*; `cmtrack spool` says",
            {"y_true", "y_score"},
        ),
        (
            "labels",
            False,
            r"its inputs are kept in .*, without probabilities: predictions='labels'; `cmtrack",
            {"y_true"},
        ),
        (False, False, r"its inputs are not kept: predictions=False\)", None),
        ("auto", True, r"its inputs could not be kept either \(no room\)\)", None),
    ],
)
def test_inputs_that_cannot_be_evaluated_are_kept(
    ends: list[Any],
    monkeypatch: pytest.MonkeyPatch,
    predictions: Any,
    fails: bool,
    says: str,
    kept: set[str] | None,
) -> None:
    if fails:
        monkeypatch.setattr(spool, "keep_inputs", Mock(side_effect=OSError("no room")))
    with pytest.warns(UserWarning, match=f"the evaluation failed: .*{says}"):
        outcome = logged([0, 1, 1], None, y_score=[0.5, 0.25], predictions=predictions)
    assert (outcome.evaluation, outcome.run_id, outcome.status, ends) == (None, "r", "failed", [])
    assert (outcome.path is None) == (kept is None)
    if outcome.path is not None:
        with np.load(outcome.path / spool.INPUTS) as arrays:
            assert set(arrays) == kept
    with pytest.raises(ValueError, match="y_score"):
        logged([0, 1, 1], None, y_score=[0.5, 0.25], strict=True)
    with pytest.warns(UserWarning, match="the evaluation failed"):
        assert logged([0, 1, 1], None, y_prob=[0.5, 0.25]).status == "failed"


def test_an_evaluation_is_sent_with_what_was_asked_for(
    ends: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    import mlflow

    monkeypatch.setattr(mlflow, "get_active_model_id", lambda: "m-9")
    outcome = logged(
        dataset=" d ", prefix="val/", metrics=["multiclass/accuracy"], on_existing="error"
    )
    [(sent, _)] = ends
    assert (outcome.status, outcome.run_id, outcome.problems, outcome.replaced) == (
        "completed",
        "r",
        (),
        "",
    )
    assert (sent.run_id, sent.prefix, sent.model_id, sent.on_existing) == (
        "r",
        "val/",
        "m-9",
        "error",
    )
    assert (sent.metrics, sent.dataset["name"], sent.step) == (
        {"val/multiclass/accuracy": 0.75},
        "d",
        None,
    )
    intent = spool.read_intent(sent.folder)
    assert (intent["metrics"], intent["rows"], intent["dataset"]) == (
        ["multiclass/accuracy"],
        True,
        "d",
    )
    assert not {"predictions", "run_name", "figures"} & set(intent)
    logged(outcome.evaluation, model_id="m-1", predictions=False)
    assert (ends[-1][0].model_id, spool.read_intent(ends[-1][0].folder)["rows"]) == ("m-1", False)
    ends[:] = [Sent(("p",), "another was there")]
    with pytest.warns(UserWarning, match="cmtrack: ") as warned:
        outcome = logged()
    assert [str(one.message) for one in warned] == [
        "cmtrack: another was there",
        "cmtrack: left out of the evaluation's record: p",
    ]
    assert (outcome.problems, outcome.replaced) == (("p",), "another was there")
    with pytest.warns(
        UserWarning, match="y_pred, y_prob and y_score need labels, got an Evaluation beside them"
    ):
        assert logged(outcome.evaluation, y_score=[1]).status == "saved"
    asked = logged(outcome.evaluation, headline=["binary/f1"]).evaluation
    assert list(asked.spec.headline) == ["binary/f1"]


def test_what_is_not_sent_is_kept_and_the_script_goes_on(ends: list[Any]) -> None:
    ends[:] = [ConnectionError("no answer from http://u:p@host")]
    with pytest.warns(
        UserWarning, match=r"was not logged: no answer from http://host \(the evaluation is kept in"
    ):
        outcome = logged()
    assert (outcome.status, outcome.error, outcome.path) == (
        "saved",
        "no answer from http://host",
        ends[0][0].folder,
    )
    ends[:] = [ConnectionError("no")]
    with pytest.raises(ConnectionError, match="no") as raised:
        logged(strict=True)
    assert raised.value.__notes__ == [
        f"the evaluation is kept in {ends[0][0].folder}; `cmtrack push` sends it"
    ]
    ends[:] = [KeyboardInterrupt()]
    with pytest.raises(KeyboardInterrupt) as interrupt:
        logged()
    assert interrupt.value.__notes__[0].startswith("cmtrack: the evaluation is kept in")


@pytest.mark.parametrize(
    ("how", "says", "kept"),
    [
        ({"prefix": "/"}, "prefix must start", (None, "", None, "replace")),
        ({"on_existing": "never", "step": 2}, "on_existing must be", ("r", "", 2, "error")),
        ({"dataset": ""}, "dataset must be a name", ("r", "", None, "replace")),
        ({"run_id": None}, "no run is active in this thread", (None, "", None, "replace")),
        ({"metrics": ["no/such"]}, "has no metric 'no/such'", ("r", "", None, "replace")),
        ({"figures": "some"}, "figures must be", ("r", "", None, "replace")),
    ],
)
def test_a_wrong_option_costs_no_evaluation(
    ends: list[Any], how: Any, says: str, kept: Any
) -> None:
    import mlflow

    with pytest.warns(UserWarning, match=says):
        outcome = logged(**how)
    assert (outcome.status, ends, outcome.run_id) == ("saved", [], how.get("run_id", "r"))
    entry = manifest.read(outcome.path)
    assert (entry.run_id, entry.prefix, entry.step, entry.on_existing) == kept
    assert entry.tracking_uri == without_credentials(mlflow.get_tracking_uri())
    assert ("--experiment NAME" in str(log._kept(entry))) == (entry.run_id is None)
    assert {"cmtrack_report.html", "cmtrack_classes.json"} <= set(entry.files)


def test_what_no_place_takes_is_in_memory_or_lost(
    ends: list[Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(spool, "_places", lambda: iter(()))
    ends[:] = [ConnectionError("no")]
    with pytest.warns(
        UserWarning,
        match=r"was not logged: no \(the evaluation could not be kept either: no place on",
    ):
        outcome = logged()
    assert (outcome.status, outcome.path, ends[0][0].content.keys() > {"manifest.json"}) == (
        "failed",
        None,
        True,
    )
    (tmp_path / "file").write_text("")  # no folder can be made in it
    for others, instead in (
        ((), "it is in memory"),
        ((tmp_path,), f"written instead to {tmp_path}"),
    ):
        monkeypatch.setattr(
            spool, "_places", lambda others=others: iter((tmp_path / "file", *others))
        )
        with pytest.warns(
            UserWarning, match=f"the local copy could not be written to .*/file: .*; {instead}$"
        ):
            assert logged().status == "completed"
    monkeypatch.setattr(spool, "_places", lambda: iter(()))
    monkeypatch.setattr(packages.datasets, "described", Mock(side_effect=OSError("broken")))
    with pytest.warns(
        UserWarning,
        match=r"was not logged: broken \(the evaluation could not be kept either: broken\)",
    ):
        assert logged().status == "failed"


def test_a_step_in_between_has_its_report_later(
    ends: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    steps, client = log.steps, object()
    asked: list[Any] = []
    monkeypatch.setattr(log, "client_for", lambda uri: asked.append(uri) or client)
    for figures, step, there in (
        ("auto", 1, True),
        ("auto", 2, False),
        (True, 3, False),
        (False, 4, True),
        ("all", 5, True),
        ("auto", None, True),
    ):
        logged(step=step, figures=figures)
        assert (
            (ends[-1][0].folder / "artifacts/cmtrack_report.html").exists(),
            bool(steps._waiting),
        ) == (
            there,
            not there,
        )
        assert ("(artifact:cmtrack_report.html)" in ends[-1][0].description) == there
        if not there:
            steps.finish()
            [(first, _), (later, how)] = ends[-2:]
            assert (later.step, later.timestamp, how, asked[-1]) == (
                step,
                first.timestamp,
                {"waited": True},
                first.tracking_uri,
            )
            assert (later.folder / "artifacts/cmtrack_report.html").exists()


def test_a_run_has_its_name_where_it_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    import mlflow

    active: list[Any] = [None]
    monkeypatch.setattr(mlflow, "active_run", lambda: active[0])
    monkeypatch.setattr(log, "made_runs", {"made": "m"})
    assert [log.name_of_run(run_id) for run_id in ("made", "other")] == ["m", ""]
    active[0] = SimpleNamespace(info=SimpleNamespace(run_id="made", run_name="active"))
    assert [log.name_of_run(run_id) for run_id in ("made", "other")] == ["active", ""]
    assert [log.chosen_run(run_id) for run_id in ("x", None)] == ["x", "made"]


# -- packages --------------------------------------------------------------------------------------------------------


def test_a_package_has_all_parts_and_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Any] = []
    pages: list[Any] = []

    def draw(_: Any, problems: list[str], figures: Any, about: Any) -> dict[str, Picture]:
        drawn.append((figures, about))
        problems += ["a figure"]
        return {
            "matrix": Picture(
                "matrix",
                "The matrix",
                "",
                "matrix.png",
                content=b"large",
                chart=b"small",
                svg="<svg>",
            ),
            "roc": Picture("roc", "The curve", "", "roc.png", svg=""),
        }

    def page(evaluation: Any, seen: Any, **how: Any) -> str:
        pages.append((list(seen), how))
        return "page"

    def held(once: str = "", *, imports: bool = False) -> Any:
        held_back.append((once, imports))
        return nullcontext()

    held_back: list[Any] = []
    monkeypatch.setattr(packages, "forks_wait", held)
    monkeypatch.setattr("cmtrack.report.figures.draw_pictures", draw)
    monkeypatch.setattr(packages, "report_html", page)
    one = evaluate([0, 0, 0, 0], [0, 0, 1, 0], labels=[0, 1])
    place = {"run_id": "r", "prefix": "val/", "step": 3, "model_id": "m", "on_existing": "error"}
    to = packages.Destination(
        **place, tracking_uri="http://u:p@host", metrics="all", dataset="d", run_name="n"
    )
    written: dict[str, bytes] = {}
    made = packages.build(
        one,
        written.__setitem__,
        to,
        rows=one.write_rows,
        listed=one,
        timestamp=0,
        problems=["before"],
    )
    start = "artifacts/val_cmtrack_"
    assert list(written) == [
        f"{start}evaluation.json",
        f"{start}predictions.parquet",
        "artifacts/val_matrix.png",
        "charts/val_matrix.png",
        f"{start}report.html",
        f"{start}classes.json",
        "manifest.json",
    ]
    about = {"run": "n", "step": 3, "data": "d", "date": "1970-01-01"}
    assert (drawn[0][0], vars(drawn[0][1])) == ("auto", vars(drawn[0][1]) | about)
    subtitle = "Evaluation “val” · step 3 · d · run r · model m · 1970-01-01"
    given = {"title": "n", "subtitle": subtitle, "problems": ("before", "a figure"), "rows": one}
    assert pages == [(["matrix"], given)]
    assert {name: getattr(made, name) for name in place} == place
    assert (made.tracking_uri, made.folder, made.timestamp) == ("http://host", None, 0)
    assert (made.images, made.table) == (
        {"val/cmtrack/confusion_matrix": "val_matrix.png"},
        "val_cmtrack_classes.json",
    )
    finite = {f"val/{name}" for name, value in one.metrics.items() if np.isfinite(value)}
    undefined = set(one.metrics) - {name.removeprefix("val/") for name in finite}
    assert (made.metrics.keys(), made.problems) == (finite, ("before", "a figure"))
    assert undefined
    assert set(made.tags["cmtrack.val.nan"].removesuffix("…").split(", ")) <= undefined | {""}
    assert (made.tags["cmtrack.val.samples"], "cmtrack.val.groups" in made.tags) == ("4", False)
    digests = json.loads(made.tags["cmtrack.val.digests"])
    assert digests["predictions_file"] == "val_cmtrack_predictions.parquet"
    assert digests.keys() == {"schema", "labels", "evaluation", "predictions", "predictions_file"}
    held = replace(
        made, content={**written, "artifacts/val_cmtrack_x.partial": b"", "artifacts/b": b"123"}
    )
    assert held.files[:2] == ["val_cmtrack_evaluation.json", "b"]
    assert set(held.files) == {
        name.partition("/")[2] for name in written if name.startswith("artifacts/")
    } | {"b"}
    assert "val_cmtrack_predictions.parquet" not in held.with_rows(None).files
    assert held.with_rows(None).with_rows(written[f"{start}predictions.parquet"]).tags == held.tags
    assert (held.image("val_matrix.png"), held.image("none.png")) == (b"small", None)

    def fails(_: Any) -> None:
        raise OSError("no room")

    written.clear()
    bare = packages.build(
        one, written.__setitem__, replace(to, figures=False), rows=fails, report=False
    )
    assert list(written) == [f"{start}evaluation.json", f"{start}classes.json", "manifest.json"]
    assert (bare.problems, bare.images, len(drawn)) == (("predictions: OSError: no room",), {}, 1)
    assert bare.timestamp > 1.7e12
    for figures, wanted in ((True, "auto"), ("all", "all"), (("roc",), ("roc",)), ((), ())):
        packages.build(
            one,
            written.__setitem__,
            replace(to, figures=figures, prefix="", step=None),
            report=False,
        )
        assert drawn[-1][0] == wanted
    assert set(held_back) == {("what draws", True)}  # a fork waits for the import
    long = packages.build(one, written.__setitem__, replace(to, prefix="p" * 240), report=False)
    assert max(map(len, long.metrics)) == 250
    monkeypatch.setattr(
        "cmtrack.report.figures.draw_pictures", Mock(side_effect=ImportError("Pillow is missing"))
    )
    lacking = packages.build(one, written.__setitem__, packages.Destination())
    assert lacking.problems == ("figures: Pillow is missing",)
    assert pages[-1][1]["subtitle"].count("·") == 0
    assert pages[-1][1]["title"] is None


def test_tags_are_cut_and_figures_checked(tmp_path: Path) -> None:
    assert packages._cut("x" * 4000) == "x" * 4000
    assert packages._cut("x" * 4001) == "x" * 3999 + "…"
    for figures, checked in (
        ("auto", "auto"),
        (True, True),
        (False, False),
        (["a", "b"], ("a", "b")),
        ((), ()),
    ):
        assert packages.checked_figures(figures) == checked
    for figures, kind in (
        ("some", ValueError),
        (5, TypeError),
        (["a", 1], TypeError),
        (None, TypeError),
    ):
        with pytest.raises(
            kind, match="figures must be 'auto', 'all', True, False or a list of names"
        ):
            packages.checked_figures(figures)
    for part, content in (("artifacts", b"old"), ("charts", b"new")):
        (tmp_path / part).mkdir()
        assert package(tmp_path).image("a.png") == (None if part == "artifacts" else b"old")
        (tmp_path / part / "a.png").write_bytes(content)
        assert package(tmp_path).image("a.png") == content
    with package(tmp_path).path_of("a.png") as path:
        assert Path(path).read_bytes() == b"old"
    assert "content" not in repr(package())  # of megabytes
    packages.rewrite(package(tmp_path), {"b": b"1"})
    assert (tmp_path / "artifacts" / "b").read_bytes() == b"1"
    assert json.loads((tmp_path / "manifest.json").read_text())["run_id"] == "r"


# -- nested runs -----------------------------------------------------------------------------------------------------


class Parent:
    """A store with one run, in which others are nested."""

    def __init__(self, **tags: str) -> None:
        self.tags, self.batches, self.ended = tags, [], []

    def get_run(self, run_id: str) -> Any:
        return SimpleNamespace(
            info=SimpleNamespace(run_id=run_id, experiment_id="7"),
            data=SimpleNamespace(tags=self.tags),
        )

    def log_batch(self, run_id: str, params: Any) -> None:
        self.batches.append((run_id, {param.key: param.value for param in params}))


@pytest.fixture
def nested(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Log two folds; the outcomes of their evaluations and of the ends of their runs are given."""
    one = evaluate([0, 1, 1], [0, 1, 0])

    def run(
        parent: Any, outcomes: str = "completed", end: Any = None, **how: Any
    ) -> tuple[Any, list[Any]]:
        made: list[Any] = []

        def create(_: Any, experiment_id: str, name: str, tags: Any) -> Any:
            made.append((experiment_id, name, tags))
            return SimpleNamespace(info=SimpleNamespace(run_id=f"c{len(made)}"))

        def client(*_: Any) -> Any:
            if isinstance(parent, Exception):
                raise parent
            return parent

        def ended(_: Any, run_id: str) -> None:
            if end is not None:
                raise end
            parent.ended.append(run_id)

        def logged(evaluation: Any, run_id: str, **given: Any) -> log.LoggedEvaluation:
            assert (given["metrics"], given["predictions"]) == ("headline", "auto")
            return log.LoggedEvaluation(evaluation, run_id, outcomes, error="no room")

        monkeypatch.setattr(log, "client_for", client)
        monkeypatch.setattr(log, "create_run", create)
        monkeypatch.setattr(log, "end_run", ended)
        monkeypatch.setattr(log, "log_evaluation", logged)
        monkeypatch.setattr(log, "spooled", lambda *_: package(Path("kept")))
        folds = [
            log.NestedEvaluation(f"fold {k}", one, {"k": k, "long": "x" * 600}) for k in (1, 2)
        ]
        return log.log_nested(folds, run_id="p", **how), made

    return run


def test_a_nested_run_has_name_tags_and_parameters_and_is_ended(nested: Any) -> None:
    parent = Parent(**{"mlflow.runName": "P", "mlflow.user": "u", "mlflow.other": "o"})
    done, made = nested(parent)
    tags = {"mlflow.user": "u", "mlflow.parentRunId": "p"}
    assert made == [("7", "P: fold 1", tags), ("7", "P: fold 2", tags)]
    assert parent.batches[0] == ("c1", {"model": "P", "k": "1", "long": "x" * 500})
    assert ([one.run_id for one in done], parent.ended) == (["c1", "c2"], ["c1", "c2"])
    bare = Parent()
    _, made = nested(bare)
    assert (made[0][1], bare.batches[0][1]["model"]) == ("fold 1", "p")


@pytest.mark.parametrize(
    ("parent", "outcomes", "end", "statuses", "error"),
    [
        (ConnectionError("gone"), "completed", None, ["saved", "saved"], "gone"),
        (Parent(), "saved", None, ["saved", "saved"], "no room"),
        (Parent(), "completed", OSError("cut"), ["completed", "saved"], "cut"),
    ],
)
def test_what_fails_once_is_not_waited_for_again(
    nested: Any, parent: Any, outcomes: str, end: Any, statuses: list[str], error: str
) -> None:
    with pytest.warns(UserWarning, match="the evaluation was not logged"):
        done, made = nested(parent, outcomes, end)
    assert ([one.status for one in done], done[1].error) == (statuses, error)
    assert (len(made), done[1].path) == (not isinstance(parent, Exception), Path("kept"))
    if not isinstance(parent, Parent) or end is not None:
        with pytest.raises((ConnectionError, OSError), match=error):
            nested(parent, outcomes, end, strict=True)


# -- push ------------------------------------------------------------------------------------------------------------


class Waiting:
    """Entries of the spool, a store for them, and what becomes of each that is delivered."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *sends: Any, **meant: Any) -> None:
        self.asked: list[Any] = []
        self.sends = list(sends)
        self.meant = {"tracking_uri": "http://here", "run_id": "r", "problems": ("before",)} | meant
        for name in ("client_for", "deliver", "end_run", "experiment_named"):
            monkeypatch.setattr(push, name, getattr(self, name))
        monkeypatch.setattr(push, "read", lambda folder: replace(package(folder), **self.meant))
        monkeypatch.setattr(push, "_with_credentials", lambda uri: uri)
        monkeypatch.setattr(spool.Entry, "foreign", False)
        monkeypatch.setattr(
            packages, "rewrite", lambda one: self.asked.append(("rewritten", one.run_id))
        )
        monkeypatch.setattr(push.settings, "allowed", lambda one: (one, ("taken",)))

    def client_for(self, uri: str | None) -> Any:
        self.asked.append(uri)
        return self

    def deliver(self, sent: Package, client: Any, *, waited: bool) -> Sent:
        assert (client, waited) == (self, True)
        self.asked.append(("sent", sent.run_id))
        end = self.sends.pop(0)
        if isinstance(end, Exception):
            raise end
        return end

    def get_run(self, run_id: str) -> None:
        if run_id in ("gone", "hidden"):
            raise MlflowException(
                "no answer", RESOURCE_DOES_NOT_EXIST if run_id == "gone" else INTERNAL_ERROR
            )

    def experiment_named(self, _: Any, name: str) -> str:
        return f"id of {name}"

    def create_run(self, experiment_id: str, run_name: str) -> Any:
        self.asked.append((experiment_id, run_name))
        return SimpleNamespace(info=SimpleNamespace(run_id="new"))

    def end_run(self, _: Any, run_id: str) -> None:
        self.asked.append(("ended", run_id))


ENTRY = spool.Entry(Path("e"), "evaluation")


@pytest.mark.parametrize(
    ("errors", "sent"),
    [
        ([ConnectionError("gone")], 1),
        ([deliver.NoAnswer("gone")] * 2, 2),
        ([ValueError("gone")] * 4, 4),
        ([deliver.NoAnswer("gone"), ConnectionError("gone")], 2),
    ],
)
def test_a_silent_store_is_not_asked_for_the_others(
    monkeypatch: pytest.MonkeyPatch, errors: list[Exception], sent: int
) -> None:
    store = Waiting(monkeypatch, *errors)
    job = push._Push(None, None)
    outcomes = [job.push(ENTRY) for _ in range(4)]
    assert outcomes == [push.PushedEntry(Path("e"), "kept", "r", "gone")] * 4
    assert store.asked == ["http://here", *[("sent", "r")] * sent]
    store.meant["tracking_uri"], store.sends = None, [Sent()]
    assert job.push(ENTRY).status == "sent"
    assert store.asked[-2:] == [None, ("sent", "r")]


def test_what_was_meant_for_no_run_waits_or_gets_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for run_id, reason in (
        (None, f"it was meant for no run: {push._NAME_ONE}"),
        ("gone", f"there is no run 'gone': {push._NAME_ONE}"),
        ("hidden", "no answer"),
    ):
        store = Waiting(monkeypatch, run_id=run_id)
        assert push._Push(None, None).push(ENTRY) == push.PushedEntry(
            Path("e"), "kept", run_id, reason
        )
    store = Waiting(monkeypatch, Sent(("later",), "another was there"), run_id="gone")
    sent = push._Push("http://named", "x").push(ENTRY)
    assert sent == push.PushedEntry(
        Path("e"), "sent", "new", problems=("taken", "before", "later", "another was there")
    )
    assert store.asked == [
        "http://named",
        ("id of x", "e"),
        ("rewritten", "new"),
        ("ended", "new"),
        ("sent", "new"),
    ]


def test_what_cannot_be_sent_is_refused_and_what_others_send_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Waiting(monkeypatch, Sent())
    inputs = push._Push(None, None).push(spool.Entry(Path("e"), "inputs"))
    assert (inputs.status, inputs.reason) == ("refused", push.HOW_TO_EVALUATE)
    monkeypatch.setattr(spool.Entry, "foreign", True)
    foreign = push._Push(None, None).push(ENTRY)
    assert (foreign.status, foreign.reason[:27]) == ("refused", "it belongs to another user:")
    assert push._Push("http://named", None).push(ENTRY).status == "sent"
    monkeypatch.setattr(spool.Entry, "foreign", False)
    for error, status in ((deliver.BusyEntry("busy"), "kept"), (ValueError("damaged"), "refused")):
        monkeypatch.setattr(push, "_rebuilt", Mock(side_effect=error))
        outcome = push._Push(None, None).push(spool.Entry(Path("e"), "unfinished"))
        assert outcome == push.PushedEntry(Path("e"), status, reason=str(error))


@pytest.mark.parametrize(
    ("intended", "written", "kept"),
    [(True, b"", False), (True, b"damaged", False), (True, None, True), (False, b"", False)],
)
def test_what_was_interrupted_is_made_whole(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    intended: bool,
    written: bytes | None,
    kept: bool,
) -> None:
    one, content = evaluate([0, 1, 1], [0, 1, 0]), BytesIO()
    one.write_rows(content)
    entry = spool.Entry(tmp_path / ".20260102T030405000006-a", "unfinished")
    intent = {
        "schema": 1,
        "run_id": "r",
        "prefix": "val/",
        "step": None,
        "model_id": None,
        "tracking_uri": "http://here",
    }
    intent |= {"rows": intended, "metrics": "all", "on_existing": "error", "dataset": " d "}
    spool.write_private(entry.folder / spool.INTENT, json.dumps(intent).encode())
    with pytest.raises(
        ValueError, match=r"it was interrupted before the evaluation was complete: .*No such file"
    ):
        push._rebuilt(entry)
    spool.write_private(
        entry.folder / "artifacts/val_cmtrack_evaluation.json", one.to_json().encode()
    )
    if written != b"":
        rows = entry.folder / "artifacts/val_cmtrack_predictions.parquet"
        spool.write_private(rows, content.getvalue() if written is None else written)
    built: list[Any] = []

    def build(evaluation: Any, write: Any, to: Any, **asked: Any) -> Package:
        rows = BytesIO()
        asked.pop("rows", rows.write)(*([rows] if "listed" in asked else [b""]))
        built.append(
            (to, asked.pop("listed", evaluation).rows is not None, rows.getvalue() != b"", asked)
        )
        write("artifacts/a", b"x")
        return package()

    monkeypatch.setattr(packages, "build", build)
    with (
        spool.claimed(entry.folder),
        pytest.raises(deliver.BusyEntry, match="it is being sent already"),
    ):
        push._rebuilt(entry)
    with monkeypatch.context() as patch:
        patch.setattr(spool, "make_folder", Mock(side_effect=OSError("no room")))
        with pytest.raises(
            OSError, match=rf"^it could not be rewritten: {re.escape(str(tmp_path))}: no room; "
        ):
            push._rebuilt(entry)
    assert (entry.folder / "artifacts/val_cmtrack_evaluation.json").exists()
    built.clear()
    new = push._rebuilt(entry).folder
    assert (new, new.joinpath("artifacts/a").read_bytes()) == (tmp_path / entry.name, b"x")
    assert [path.name for path in tmp_path.iterdir()] == [entry.name]
    [(to, listed, with_rows, asked)] = built
    assert (to.prefix, to.metrics, to.on_existing, to.dataset) == ("val/", "all", "error", "d")
    problems = ["the rows: it was interrupted before they were written"] * (intended and not kept)
    assert (listed, with_rows, asked) == (
        kept,
        kept,
        {"problems": problems, "timestamp": 1767323045000},
    )


def test_push_tells_each_and_leaves_out_what_another_has_sent(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    entries = [spool.Entry(tmp_path / name, "evaluation") for name in "abc"]
    monkeypatch.setattr(spool, "entries", {None: [], tmp_path: entries}.__getitem__)
    (tmp_path / "b").mkdir()
    ends = {"a": "kept", "b": "kept", "c": "sent"}
    monkeypatch.setattr(
        push._Push, "push", lambda _, entry: push.PushedEntry(entry.folder, ends[entry.name])
    )
    told: list[Any] = []
    outcomes = push.push(tmp_path, progress=lambda *step: told.append(step))
    assert [(one.entry.name, one.status) for one in outcomes] == [("b", "kept"), ("c", "sent")]
    assert told == [("sending a", 0, 3), ("sending b", 1, 3), ("sending c", 2, 3), ("done", 3, 3)]
    assert push.push() == []


@pytest.mark.parametrize(
    ("uri", "current", "secret", "taken"),
    [
        (None, "http://u:p@host", True, None),
        ("http://host", "http://u:p@host", True, "http://u:p@host"),
        ("http://host:80", "http://u:p@host", True, "http://host:80"),
        ("http://other", "http://host", False, "http://other"),
        ("sqlite:///a", "http://host", True, "sqlite:///a"),
        ("http://other", "http://host", True, ""),
        ("HTTPS://host", "http://host", True, ""),
        ("http://host", "sqlite:///a", True, ""),
    ],
)
def test_a_password_goes_to_no_server_that_a_file_names(
    monkeypatch: pytest.MonkeyPatch, uri: str | None, current: str, secret: bool, taken: str | None
) -> None:
    import mlflow

    monkeypatch.setattr(mlflow, "get_tracking_uri", lambda: current)
    monkeypatch.setattr(push.mlflow_inside, "has_secret", lambda _: secret)
    if taken == "":
        with pytest.raises(ValueError, match=r"it names the server .* would get your password"):
            push._with_credentials(uri)
    else:
        assert push._with_credentials(uri) == taken
