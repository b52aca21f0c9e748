"""A promotion that is interrupted: by a second client, by another promotion, and by the end of its process."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import mlflow
import pytest
import sqlalchemy
from mlflow.store.artifact import local_artifact_repo

from cmtrack.comparison import Answer, PromotionRecord
from cmtrack.tracking import NotMoved, quiet, tracking_store
from support.faults import draw_no_review
from support.promotions import (
    chain_of,
    champion_of,
    month,
    promote,
    registry,
)

JUNE = month(6, {1: slice(60), 2: slice(20, 60), 3: slice(25, 60)})
KILLED = 9


@pytest.fixture(scope="module", autouse=True)
def no_figures() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        draw_no_review(patch)
        yield


@pytest.fixture
def client(tmp_path: Path):
    with registry(tmp_path) as client:
        yield client


@pytest.fixture
def before_write(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Callable[[], object]], None]:
    """Run an action once, before the first call of a method of MLflow's client."""

    def install(method: str, action: Callable[[], object]) -> None:
        original = getattr(mlflow.MlflowClient, method)
        waiting = [action]

        def call(self, *arguments, **options):
            if waiting:
                waiting.pop()()
            return original(self, *arguments, **options)

        monkeypatch.setattr(mlflow.MlflowClient, method, call)

    return install


# -- two clients -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "moment", ["create_run", pytest.param("set_model_version_tag", marks=pytest.mark.slow)]
)
def test_an_alias_that_somebody_moved_meanwhile_stays(client, before_write, moment: str) -> None:
    other = mlflow.MlflowClient()
    before_write(moment, lambda: other.set_registered_model_alias("party", "champion", 3))
    with pytest.raises(
        NotMoved, match="champion moved from version 1 to version 3 meanwhile: noth"
    ):
        promote(2, JUNE, move=True)
    assert champion_of(client) == "3"
    (promotion,) = chain_of(client).promotions
    assert promotion.record.answer is Answer.PROMOTE
    assert not promotion.moved
    # The next call has a new champion, so this is another question.
    assert promote(2, JUNE, move=True).answer is Answer.KEEP
    assert champion_of(client) == "3"


@pytest.mark.slow
def test_an_alias_that_somebody_deleted_meanwhile_is_not_set(client, before_write) -> None:
    other = mlflow.MlflowClient()
    before_write(
        "set_model_version_tag", lambda: other.delete_registered_model_alias("party", "champion")
    )
    with pytest.raises(NotMoved, match="moved from version 1 to no version meanwhile"):
        promote(2, JUNE, move=True)
    assert champion_of(client) is None


def test_two_promotions_at_once_are_both_recorded(client, before_write) -> None:
    results = []
    before_write("create_run", lambda: results.append(promote(3, JUNE, move=True)))
    with pytest.raises(NotMoved):
        promote(2, JUNE, move=True)
    assert results[0].moved
    assert champion_of(client) == "3"
    first, second = chain_of(client).promotions
    assert first.record.previous is second.record.previous is None
    assert {one.record.chosen: one.moved for one in (first, second)} == {"3": True, "2": False}
    # The next record follows one of the two.
    after = promote(2, JUNE)
    assert after.record.previous in (first.sha256, second.sha256)


@pytest.mark.slow
def test_a_refused_alias_leaves_the_record(client, monkeypatch) -> None:
    def refuse(*_):
        raise mlflow.MlflowException("PERMISSION_DENIED: read-only")

    with monkeypatch.context() as patch:
        patch.setattr(mlflow.MlflowClient, "set_registered_model_alias", refuse)
        with pytest.raises(
            NotMoved, match="but the alias was refused: PERMISSION_DENIED"
        ) as raised:
            promote(2, JUNE, move=True)
    assert champion_of(client) == "1"
    # The same command completes the record.
    again = promote(2, JUNE, move=True)
    assert (again.run_id, again.moved) == (raised.value.run_id, True)
    assert champion_of(client) == "2"


# -- a process that ends ---------------------------------------------------------------------------


def killed_at(number: int, uri: str) -> bool:
    """Promote in a child process that ends before its ``number``-th write; return whether it ended.

    A write is the commit of a transaction with changes, or the copy of a file to the artifacts.
    """
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        assert code in (0, KILLED)
        return code == KILLED
    try:
        writes = iter(range(1, 10**6))

        def count() -> None:
            if next(writes) == number:
                os._exit(KILLED)

        def note_changes(connection, _, statement, *__):
            if statement.split(None, 1)[0].upper() in ("INSERT", "UPDATE", "DELETE"):
                connection.info["changed"] = True

        def commit(connection):
            if connection.info.pop("changed", False):
                count()

        sqlalchemy.event.listen(sqlalchemy.Engine, "before_cursor_execute", note_changes)
        sqlalchemy.event.listen(sqlalchemy.Engine, "commit", commit)
        copy = shutil.copy2

        def copy_file(*arguments, **options):
            count()
            return copy(*arguments, **options)

        local_artifact_repo.shutil.copy2 = copy_file
        with quiet(), tracking_store(uri):
            promote(2, JUNE, move=True)
        os._exit(0)
    finally:
        os._exit(1)


def check_after_a_kill(number: int, folder: Path, origin: Path) -> bool:
    """Check the store after a kill, and that the next call works; return whether it was killed."""
    database = folder / f"killed-{number}.db"
    shutil.copyfile(origin, database)
    uri = f"sqlite:///{database}"
    was_killed = killed_at(number, uri)
    with quiet(), tracking_store(uri):
        client = mlflow.MlflowClient()
        champion = champion_of(client)
        complete = chain_of(client).promotions
        if champion == "2":
            (promotion,) = complete
            assert promotion.moved
            with pytest.raises(ValueError, match="version 2 is the champion already"):
                promote(2, JUNE, move=True)
        else:
            assert champion == "1"
            assert not any(one.moved for one in complete)
            again = promote(2, JUNE, move=True)
            assert again.moved
            assert [one.run_id for one in complete] in ([], [again.run_id])
        chain = chain_of(client)
        (promotion,) = chain.promotions
        assert promotion.moved
        assert champion_of(client) == "2"
        assert chain.champions("2") == ["1", "2"]
        # The file equals the tag, and the version names the record.
        path = client.download_artifacts(promotion.run_id, "cmtrack_promotion.json", str(folder))
        content = Path(path).read_bytes()
        assert content == promotion.content
        assert PromotionRecord.parse(content) == promotion.record
        tags = client.get_model_version("party", "2").tags
        assert promotion.sha256 in tags[f"cmtrack.promotion.{promotion.run_id[:8]}"]
    return was_killed


def test_a_killed_promotion_can_be_repeated(tmp_path: Path) -> None:
    with registry(tmp_path):
        pass
    # Before the first run, before the record's tag, and after the alias moved.
    for number in (2, 29, 34):
        assert check_after_a_kill(number, tmp_path, tmp_path / "mlflow.db")


@pytest.mark.slow
def test_a_promotion_can_be_repeated_after_a_kill_at_any_write(tmp_path: Path) -> None:
    with registry(tmp_path):
        pass
    numbers = iter(range(1, 1000))
    while check_after_a_kill(next(numbers), tmp_path, tmp_path / "mlflow.db"):
        pass
    assert next(numbers) > 40
