"""The history of a registered model: gains, problems, and records that somebody changed."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import zipfile
from contextlib import contextmanager
from pathlib import Path

import mlflow
import numpy as np
import pandas as pd
import pytest

from cmtrack import history, promote
from cmtrack.comparison import ProblemKind, canonical_json

# The kinds of problems for which the command exits with 1.
from cmtrack.comparison.history import BROKEN
from cmtrack.tracking import quiet, tracking_store
from support.faults import draw_no_review
from support.stores import sqlite_store

N_ROWS = 600
ACCURACY = {1: 0.7, 2: 0.7, 3: 0.85, 4: 0.85, 5: 0.95}
"""Accuracy of each version."""


def month(seed: int) -> pd.DataFrame:
    """Labelled rows with the stored predictions of all versions."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, N_ROWS)
    frame = pd.DataFrame({"id": np.arange(N_ROWS) + N_ROWS * seed, "y": y})
    # Models are correct on similar rows.
    difficulty = rng.uniform(size=N_ROWS)
    for version, accuracy in ACCURACY.items():
        is_correct = difficulty + rng.normal(scale=0.02, size=N_ROWS) < accuracy
        frame[f"v{version}"] = np.where(is_correct, y, 1 - y)
    return frame


class Anything(mlflow.pyfunc.PythonModel):
    """A model that is never called, because its predictions are stored."""

    def predict(self, context, model_input, params=None):
        raise NotImplementedError


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A registry with five versions, and seven promotions, of which the last two see version 4."""
    folder = tmp_path_factory.mktemp("history")
    database = sqlite_store(folder / "mlflow.db")
    with pytest.MonkeyPatch.context() as patch, quiet(), tracking_store(database) as uri:
        draw_no_review(patch)
        mlflow.create_experiment("training", artifact_location=(folder / "artifacts").as_uri())
        mlflow.set_experiment("training")
        with mlflow.start_run():
            info = mlflow.pyfunc.log_model(
                name="model", python_model=Anything(), pip_requirements=[]
            )
        client = mlflow.MlflowClient()
        client.create_registered_model("party")
        for _ in ACCURACY:
            client.create_model_version("party", info.model_uri, model_id=info.model_id)
        promote("models:/party/1", force="first champion", client=client)
        for number, version in enumerate([2, 3, 4, 5], 1):
            promotion = promote(
                f"models:/party/{version}",
                data=month(number),
                name=f"month {number}",
                y_true="y",
                y_pred="v{version}",
                row_ids="id",
                rank_by="multiclass/accuracy",
                move=True,
                client=client,
            )
            assert promotion.moved == (version in (3, 5)), promotion
        promote(
            "models:/party/4",
            data=month(5),
            name="month 5",
            y_true="y",
            y_pred="v{version}",
            row_ids="id",
            rank_by="multiclass/accuracy",
            client=client,
        )
        yield {"client": client, "uri": uri, "database": folder / "mlflow.db"}


@pytest.fixture
def client(store):
    with tracking_store(store["uri"]):
        yield store["client"]


def test_gains_come_from_rows_that_did_not_choose(client) -> None:
    story = history("models:/party", client=client)
    assert story.champion == "5"
    assert [term.version for term in story.terms] == ["1", "3", "5"]
    assert [term.answer for term in story.terms] == ["first", "promote", "promote"]
    # Month 4 chose version 5, and only month 5 came after it.
    frame = month(5)
    correct = {v: (frame[f"v{v}"] == frame["y"]).to_numpy() for v in ACCURACY}
    expected = correct[5].mean() - correct[1].mean()
    assert (story.gain.version, story.gain.over, story.gain.how) == ("5", "1", "direct")
    assert story.gain.difference == pytest.approx(expected, abs=1e-12)
    assert story.gain.months == 1
    assert story.gain.more_correct == round(expected * N_ROWS)
    # In use: version 1 in months 1 and 2, version 3 in months 3 and 4, version 5 in month 5.
    more = sum(
        int((month(k)[f"v{v}"] == month(k)["y"]).sum() - (month(k)["v1"] == month(k)["y"]).sum())
        for k, v in ((3, 3), (4, 3), (5, 5))
    )
    assert story.in_use.more_correct == more
    assert story.in_use.difference == pytest.approx(more / (5 * N_ROWS), abs=1e-12)
    assert story.in_use.rows == 5 * N_ROWS
    since = story.to_frame().set_index("version").loc["3"]
    served = [month(3), month(4)]
    gains = [((f["v3"] == f["y"]).astype(int) - (f["v1"] == f["y"]).astype(int)) for f in served]
    assert since["difference_since"] == pytest.approx(pd.concat(gains).mean(), abs=1e-12)
    assert since["rows_since"] == 2 * N_ROWS
    assert since["supported"] == "better"
    # Version 4 was compared with two champions.
    refused = [(version, one.record.champion) for version, one in story.not_promoted]
    assert refused == [("2", "1"), ("4", "3"), ("4", "5")]
    assert story.n_challenges == 5
    assert not story.problems


def test_months_and_evaluations_of_a_version(client) -> None:
    story = history("party", client=client)
    months = story.months("1")
    accuracies = [(month(k)["v1"] == month(k)["y"]).mean() for k in range(1, 6)]
    assert list(months.estimates) == [f"month {k}" for k in range(1, 6)]
    assert [one.value for one in months.estimates.values()] == pytest.approx(accuracies)
    assert np.isfinite(months.typical_low)
    assert np.isfinite(months.p)
    frame = story.evaluations
    june = frame[(frame["version"] == "1") & (frame["data"] == "month 2")].iloc[0]
    assert june["role"] == "champion"
    assert june["multiclass/accuracy"] == pytest.approx(accuracies[1])
    assert june["multiclass/accuracy_error"] == pytest.approx(
        np.sqrt(accuracies[1] * (1 - accuracies[1]) / N_ROWS)
    )
    with pytest.raises(ValueError, match="version 9 has no evaluation"):
        story.months("9")


def test_every_record_is_verified_from_the_store(client) -> None:
    story = history("party", verify=True, client=client)
    assert (story.verified, len(story.chain.promotions)) == (6, 6)
    assert not story.problems


def test_a_history_needs_three_requests(client, monkeypatch) -> None:
    calls = []
    for name in ("get_registered_model", "search_model_versions", "search_runs"):
        method = getattr(mlflow.MlflowClient, name)

        def counted(*args, _method=method, **options):
            calls.append(_method.__name__)
            return _method(*args, **options)

        monkeypatch.setattr(mlflow.MlflowClient, name, counted)
    monkeypatch.setattr(mlflow.MlflowClient, "get_run", None)
    history("party", client=client)
    assert calls == ["get_registered_model", "search_model_versions", "search_runs"]


# -- records that somebody changed -----------------------------------------------------------------


@contextmanager
def changed(store, table: str, key: str, value: str, where: str, *names: str):
    """Change a text in the database for a while."""
    with sqlite3.connect(store["database"]) as database:
        before = database.execute(f"SELECT rowid, {key} FROM {table} WHERE {where}", names)
        rows = before.fetchall()
        assert rows, (table, where, names)
        database.execute(f"UPDATE {table} SET {key} = ? WHERE {where}", (value, *names))
    try:
        yield
    finally:
        with sqlite3.connect(store["database"]) as database:
            for row, text in rows:
                database.execute(f"UPDATE {table} SET {key} = ? WHERE rowid = ?", (text, row))


@contextmanager
def written(path: Path, content: bytes):
    """Change a file for a while."""
    before = path.read_bytes()
    path.write_bytes(content)
    try:
        yield
    finally:
        path.write_bytes(before)


def promotion_at(client, place: int):
    """Return a promotion of the chain and its MLflow run."""
    promotion = history("party", client=client).chain.promotions[place]
    return promotion, client.get_run(promotion.run_id)


def file_of(run, name: str) -> Path:
    return Path(run.info.artifact_uri.removeprefix("file://")) / name


def record_tag_as(store, run, text: str):
    """Change the record in the tag of a promotion run."""
    where = "key = 'cmtrack.record' AND run_uuid = ?"
    return changed(store, "tags", "value", text, where, run.info.run_id)


def version_tag_as(store, run, digest: str):
    """Change the digest of a record in the tag of its version."""
    key = f"cmtrack.promotion.{run.info.run_id[:8]}"
    with sqlite3.connect(store["database"]) as database:
        query = "SELECT value FROM model_version_tags WHERE key = ?"
        data = json.loads(database.execute(query, (key,)).fetchone()[0])
    text = json.dumps(data | {"record": digest})
    return changed(store, "model_version_tags", "value", text, "key = ?", key)


def kinds(client, verify: bool = True) -> set[ProblemKind]:
    """Return the kinds of the problems that a history names."""
    story = history("party", verify=verify, client=client)
    assert not verify or story.verified < len(story.chain.promotions)
    return {problem.kind for problem in story.problems}


def test_a_changed_number_in_the_tag_is_named(client, store) -> None:
    promotion, run = promotion_at(client, 2)
    text = promotion.content.decode().replace('"n":600', '"n":601')
    with record_tag_as(store, run, text):
        assert ProblemKind.CHANGED in kinds(client, verify=False)


def test_a_changed_file_is_named(client) -> None:
    promotion, run = promotion_at(client, 2)
    content = promotion.content.replace(b'"n":600', b'"n":601')
    with written(file_of(run, "cmtrack_promotion.json"), content):
        assert ProblemKind.CHANGED in kinds(client)


def test_tag_file_and_version_changed_alike_are_named(client, store) -> None:
    promotion, run = promotion_at(client, 2)
    data = promotion.record.to_data()
    data["pairs"][0][3][0] += 0.01
    content = canonical_json(data)
    digest = hashlib.sha256(content).hexdigest()
    with (
        record_tag_as(store, run, content.decode()),
        version_tag_as(store, run, digest),
        written(file_of(run, "cmtrack_promotion.json"), content),
    ):
        # The next record names the digest of the record before, and the bundle has other numbers.
        found = kinds(client)
        assert ProblemKind.GAP in found
        assert ProblemKind.CHANGED in found


@contextmanager
def forged(store, client, place: int, **changes):
    """Change a record in its tag, in its file, and in the tag of its version for a while."""
    promotion, run = promotion_at(client, place)
    content = canonical_json(promotion.record.to_data() | changes)
    digest = hashlib.sha256(content).hexdigest()
    with (
        record_tag_as(store, run, content.decode()),
        version_tag_as(store, run, digest),
        written(file_of(run, "cmtrack_promotion.json"), content),
    ):
        yield


FORGED = {
    "answer": {"answer": "promote"},
    "chosen": {"chosen": "4"},
    "values": {"values": {"1": {}, "3": {}, "4": {}, "5": {}}},
    "versions": {"values": {}},
    "pairs": {"pairs": []},
    "gates": {"gates": []},
    "more": {"rows_more": 1.0},
    "looks": {"looks": {"4": ["a" * 32]}},
    "bundle": {"bundle": None},
    "empty": {
        name: None if name in ("bundle", "rule", "rows") else []
        for name in ("bundle", "rule", "rows", "pairs", "gates")
    }
    | {"values": {}, "rows_more": None},
}
"""Changes of the newest record, which did not promote version 4."""


@pytest.mark.parametrize("changes", FORGED.values(), ids=FORGED)
def test_a_consistently_forged_record_is_named(client, store, changes) -> None:
    with forged(store, client, 5, **changes):
        found = kinds(client)
    assert ProblemKind.CHANGED in found


@pytest.mark.parametrize("name", ["n", "ids", "clusters"])
def test_forged_rows_are_named(client, store, name) -> None:
    rows = vars(promotion_at(client, 5)[0].record.rows)
    changes = {"n": 6000, "ids": "9.A.B", "clusters": 7}
    with forged(store, client, 5, rows={**rows, name: changes[name]}):
        assert ProblemKind.CHANGED in kinds(client)


def test_a_forged_choice_among_challengers_is_named(client, store) -> None:
    with forged(store, client, 2, chosen=None):
        story = history("party", verify=True, client=client)
    sentences = [problem.sentence for problem in story.problems]
    assert any("the chosen version is version 3 when recomputed" in one for one in sentences)


def test_a_changed_bundle_is_named(client) -> None:
    _, run = promotion_at(client, 2)
    path = file_of(run, "cmtrack_review.zip")
    content = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    files["review.md"] += b"more"
    with written(path, content):
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in files.items():
                archive.writestr(name, data)
        assert ProblemKind.CHANGED in kinds(client)


def test_another_bundle_is_named(client) -> None:
    _, run = promotion_at(client, 2)
    _, other = promotion_at(client, 3)
    content = file_of(other, "cmtrack_review.zip").read_bytes()
    with written(file_of(run, "cmtrack_review.zip"), content):
        assert ProblemKind.CHANGED in kinds(client)


def test_two_swapped_records_are_named(client, store) -> None:
    first, run = promotion_at(client, 2)
    second, other = promotion_at(client, 3)
    with (
        record_tag_as(store, run, second.content.decode()),
        record_tag_as(store, other, first.content.decode()),
    ):
        assert ProblemKind.CHANGED in kinds(client, verify=False)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(lambda text: text.replace('"alias":"champion"', '"alias":"best"'), id="alias"),
        pytest.param(lambda text: text.replace('"model":"party"', '"model":"other"'), id="model"),
        pytest.param(lambda text: text[: len(text) // 2], id="cut"),
        pytest.param(lambda text: text.replace('"n":600', '"n":1e308'), id="1e308"),
        pytest.param(lambda text: text.replace('"n":600', '"n":NaN'), id="NaN"),
        pytest.param(lambda text: text.replace('"schema":1', '"schema":3'), id="newer"),
        pytest.param(lambda text: '{"file":"cmtrack_promotion.json","sha256":"0"}', id="file"),
    ],
)
def test_a_record_that_does_not_parse_is_named_and_skipped(client, store, text) -> None:
    promotion, run = promotion_at(client, 2)
    with record_tag_as(store, run, text(promotion.content.decode())):
        story = history("party", client=client)
        found = {problem.kind for problem in story.problems}
        assert {ProblemKind.UNREADABLE, ProblemKind.GAP} <= found
        assert len(story.chain.promotions) == 5
        assert story.champion == "5"


def test_a_huge_file_is_named(client) -> None:
    _, run = promotion_at(client, 2)
    with written(file_of(run, "cmtrack_promotion.json"), b" " * 10_000_000):
        assert kinds(client) & BROKEN


def test_a_fork_is_named(client, store) -> None:
    promotion, run = promotion_at(client, 3)
    data = promotion.record.to_data()
    data["previous"] = promotion_at(client, 2)[0].record.previous
    with record_tag_as(store, run, canonical_json(data).decode()):
        assert ProblemKind.FORK in kinds(client, verify=False)


def test_deleted_and_removed_promotion_runs_are_named(client, store) -> None:
    _, run = promotion_at(client, 3)
    run_id = run.info.run_id
    client.delete_run(run_id)
    try:
        story = history("party", client=client)
        assert [problem.kind for problem in story.problems] == [ProblemKind.DELETED]
        assert len(story.chain.promotions) == 6
    finally:
        client.restore_run(run_id)
    with changed(store, "runs", "experiment_id", "0", "run_uuid = ?", run_id):
        found = {problem.kind for problem in history("party", client=client).problems}
        assert {ProblemKind.GONE, ProblemKind.GAP} <= found


def test_a_move_by_hand_and_a_missing_alias(client) -> None:
    client.set_registered_model_alias("party", "champion", "4")
    try:
        story = history("party", client=client)
        assert [problem.kind for problem in story.problems] == [ProblemKind.MOVED_BY_HAND]
        last = story.terms[-1]
        assert (last.version, last.answer, last.by_hand) == ("4", "keep", True)
        # No rows have come since, so the gain is that of the champion before.
        assert story.gain.version == "5"
        client.delete_registered_model_alias("party", "champion")
        assert history("party", client=client).gain is None
    finally:
        client.set_registered_model_alias("party", "champion", "5")


def test_a_model_with_moves_by_force_only(client) -> None:
    client.create_registered_model("forced")
    source = client.get_model_version("party", "1").source
    for _ in range(2):
        client.create_model_version("forced", source)
    promote("models:/forced/1", force="first champion", client=client)
    promote("models:/forced/2", force="urgent", client=client)
    assert history("forced", metric="binary/recall", client=client).metric == "binary/recall"
    with pytest.raises(ValueError, match="no version has 'multiclass/accurcy'; did you mean"):
        history("forced", metric="multiclass/accurcy", client=client)
    # A deleted version takes the digest of its record with it.
    client.set_registered_model_alias("forced", "champion", "1")
    client.delete_model_version("forced", "2")
    story = history("forced", verify=True, over="2", client=client)
    assert ProblemKind.DELETED in {problem.kind for problem in story.problems}
    assert not BROKEN & {problem.kind for problem in story.problems}


def test_the_newest_digest_changes_with_every_earlier_record(client, store) -> None:
    # Without verify, a consistent change of the newest record is not seen, but its digest changes.
    before = history("party", client=client).chain.head
    promotion, run = promotion_at(client, 5)
    content = promotion.content.replace(b'"n":600', b'"n":601')
    with record_tag_as(store, run, content.decode()):
        assert history("party", client=client).chain.head != before
    assert history("party", client=client).chain.head == before


def test_unknown_models_and_invalid_options(client) -> None:
    with pytest.raises(
        ValueError, match="there is no registered model 'prty'; did you mean 'party'"
    ):
        history("models:/prty", client=client)
    with pytest.raises(ValueError, match="over must be 'first', 'previous' or a version"):
        history("party", over="last", client=client)
    with pytest.raises(ValueError, match="party has no version 99, the newest is 5"):
        history("party", over="99", client=client)
    with pytest.raises(ValueError, match="must have the form 'models:/name'"):
        history("models:/party/3", client=client)
