"""Pages are made by another process, and few requests wait for it: tried with a program that answers when it may."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from cmtrack_integrations import _page_work
from cmtrack_integrations._page_work import Later, Works

PROGRAM = """
import itertools, os, pathlib, time
from cmtrack_integrations._page_work import serve
answers = itertools.count(1)
def answer(question):
    while question.get("gate") and not pathlib.Path(question["gate"]).exists():
        time.sleep(0.01)
    print("this is no answer", flush=True)
    if question.get("dies"):
        os._exit(3)
    return question.get("status", 200), f"{os.getpid()} {next(answers)}"
serve(answer)
"""


@pytest.fixture
def works():
    works = Works((sys.executable, "-c", PROGRAM))
    yield works
    works._maker.end()


def until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def answered(works: Works, user: str, **question) -> str:
    """The answer, asked for until it is there."""
    for _ in range(1000):
        try:
            status, text = works.answer(user, question)
        except Later:
            time.sleep(0.02)
        else:
            assert status == 200
            return text.decode()
    raise AssertionError("no answer")


def test_a_user_and_all_users_have_so_many_places(works):
    holders, enough = threading.Barrier(5), threading.Event()

    def hold(user: str) -> None:
        with works.place(user):
            holders.wait(30)
            enough.wait(30)

    with ThreadPoolExecutor(4) as pool:
        waiting = [pool.submit(hold, user) for user in ("ann", "ann", "bob", "cyd")]
        holders.wait(30)
        for user, reason in (("ann", "wait for 2 other pages"), ("bob", "makes 4 other pages"), ("dan", "makes 4")):
            with pytest.raises(Later, match=reason) as refused, works.place(user):
                pass
            assert refused.value.worth_waiting
            assert refused.value.seconds == _page_work.SOON
        enough.set()
        for one in waiting:
            one.result(30)
    assert not works._waiting
    with works.place("ann"), works.place("ann"):
        pass


def test_who_asks_the_same_at_the_same_time_shares_the_answer(works, tmp_path):
    with ThreadPoolExecutor(3) as pool:
        same = [pool.submit(answered, works, user, gate=str(tmp_path / "gate")) for user in ("ann", "bob", "cyd")]
        until(lambda: [len(task.users) for task in works._tasks.values()] == [3])
        (tmp_path / "gate").touch()
        assert len({one.result(30) for one in same}) == 1
    assert answered(works, "ann", gate=str(tmp_path / "gate")).endswith(" 2")  # of now, not of then


def test_a_page_is_made_on_when_nobody_waits_and_counts_for_who_asked(works, tmp_path, monkeypatch):
    monkeypatch.setattr(_page_work, "PATIENCE", 0.01)
    gate = str(tmp_path / "gate")
    for name in "ab":
        with pytest.raises(Later, match="still being made"):
            works.answer("ann", {"name": name, "gate": gate})
    with pytest.raises(Later, match="wait for 2 other pages"):
        works.answer("ann", {"name": "c", "gate": gate})
    with pytest.raises(Later, match="still being made"):  # no more work than there was
        works.answer("ann", {"name": "a", "gate": gate})
    for name in "cd":
        with pytest.raises(Later, match="still being made"):
            works.answer("bob", {"name": name, "gate": gate})
    with pytest.raises(Later, match="makes 4 other pages"):
        works.answer("cyd", {"name": "e", "gate": gate})
    (tmp_path / "gate").touch()
    monkeypatch.setattr(_page_work, "PATIENCE", 30)  # a request that gives up asks once more, and counts once more
    assert [answered(works, user, name=name).split()[1] for user, name in (("ann", "f"), ("cyd", "e"))] == ["5", "6"]


def test_what_takes_too_long_is_stopped_and_not_tried_again_soon(works, tmp_path, monkeypatch):
    first = answered(works, "ann")
    monkeypatch.setattr(_page_work, "MOST_SECONDS", 0.2)
    with pytest.raises(Later, match="takes longer than 0 seconds to make this page: ask for fewer runs") as late:
        works.answer("ann", {"gate": str(tmp_path / "gate")})
    assert not late.value.worth_waiting
    assert 590 < late.value.seconds <= 600
    monkeypatch.setattr(_page_work, "MOST_SECONDS", 60)
    assert answered(works, "ann").split()[0] != first.split()[0]
    (tmp_path / "gate").touch()
    with pytest.raises(Later, match="takes longer"):
        works.answer("bob", {"gate": str(tmp_path / "gate")})
    next(iter(works._tasks.values())).until = 0.0
    assert answered(works, "bob", gate=str(tmp_path / "gate"))


def test_a_process_that_ends_is_replaced(works):
    with pytest.raises(Later, match="has failed"):
        works.answer("ann", {"dies": True})
    assert answered(works, "ann").endswith(" 1")


def test_a_program_that_cannot_be_started_is_no_error_of_the_request():
    with pytest.raises(Later, match="has failed"):
        Works(("/no/such/program",)).answer("ann", {})


def test_an_answer_that_says_not_now_is_passed_on(works):
    with pytest.raises(Later, match=r"\d+ 1"):
        works.answer("ann", {"status": 503})
    assert works.answer("ann", {"status": 404})[0] == 404


def test_a_process_that_nobody_needs_ends(works, monkeypatch):
    monkeypatch.setattr(_page_work, "IDLE", 0.01)
    first = answered(works, "ann")
    until(lambda: works._maker._process is None)
    assert answered(works, "ann").split()[0] != first.split()[0]


def test_the_process_ends_with_the_server_in_the_midst_of_its_work(works, tmp_path, monkeypatch):
    answered(works, "ann")
    monkeypatch.setattr(_page_work, "PATIENCE", 0.01)
    with pytest.raises(Later):
        works.answer("ann", {"gate": str(tmp_path / "gate")})
    process = works._maker._process
    process.stdin.close()  # as the system does when the server is killed
    assert process.wait(30) == 0
