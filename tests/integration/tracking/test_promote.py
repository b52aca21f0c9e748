"""Promotions in a store: answers, the alias, records, repeated questions, and requests that are refused."""

from __future__ import annotations

import contextlib
import hashlib
import math
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mlflow
import numpy as np
import pandas as pd
import pytest

import cmtrack
from cmtrack.comparison import Answer
from support.faults import draw_no_review
from support.promotions import (
    ACCURACY,
    chain_of,
    champion_of,
    month,
    promote,
    registry,
)
from support.stores import runs_of

WRONG = {1: slice(60), 2: slice(20, 60), 3: slice(2, 62), 4: slice(25, 60)}
"""Version 1 has 60 errors of 400, version 2 has 40 of them, version 3 has 60, and version 4 has 35."""
JUNE = month(6, WRONG)
JULY = month(7, WRONG)


@pytest.fixture(scope="module", autouse=True)
def no_figures() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        draw_no_review(patch)
        yield


@pytest.fixture
def client(tmp_path: Path):
    with registry(tmp_path, 4) as client:
        yield client


def contents_of(folder: Path) -> dict[str, Any]:
    """The number of rows and a digest of every table of a store, and a digest of every file."""
    found: dict[str, Any] = {}
    with contextlib.closing(sqlite3.connect(folder / "mlflow.db")) as connection:
        query = "SELECT name FROM sqlite_master WHERE type = 'table'"
        for (name,) in connection.execute(query).fetchall():
            rows = sorted(map(repr, connection.execute(f'SELECT * FROM "{name}"')))
            digest = hashlib.sha256("\n".join(rows).encode()).hexdigest()
            found[name] = (len(rows), digest)
    for path in folder.rglob("*"):
        if path.is_file() and not path.name.startswith("mlflow.db"):
            found[str(path)] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


# -- answers and the alias -------------------------------------------------------------------------


def test_the_alias_moves_only_if_the_answer_is_promote_and_the_user_agrees(client) -> None:
    assert promote(2, JUNE).answer is Answer.PROMOTE
    assert champion_of(client) == "1"
    assert promote(3, JUNE, move=True).answer is Answer.CANNOT_TELL
    assert champion_of(client) == "1"
    assert promote(2, JUNE, move=True).moved
    assert champion_of(client) == "2"
    kept = promote(1, JUNE, move=True)
    assert (kept.answer, kept.moved) == (Answer.KEEP, False)
    assert champion_of(client) == "2"
    # A later record already names the champion that stayed, so the decision was recorded again.
    moved = [one.moved for one in chain_of(client).promotions]
    assert moved == [False, False, True, False]
    assert chain_of(client).champions("2") == ["1", "2"]


def test_the_description_of_a_promotion_run_begins_with_the_answer(client) -> None:
    promotion = promote(2, JUNE, move=True)
    tags = client.get_run(promotion.run_id).data.tags
    note = tags["mlflow.note.content"]
    assert note.startswith("### Promote: version 2 against version 1, champion of party")
    assert "Review by accuracy" in note
    assert "was not moved" not in note


def test_a_dry_run_leaves_the_store_unchanged(client, tmp_path: Path) -> None:
    before = contents_of(tmp_path)
    first = promote(2, JUNE, dry_run=True)
    assert (first.answer, first.run_id) == (Answer.PROMOTE, "")
    assert first.notes == ("Not recorded: history cannot count this look.",)
    assert contents_of(tmp_path) == before
    promote(3, JUNE)
    before = contents_of(tmp_path)
    assert before["tags"][0] > 0
    # Neither a new look nor a question that is recorded writes anything.
    assert promote(3, JULY, dry_run=True).challenge.look == 2
    assert promote(3, JUNE, dry_run=True).notes[0].startswith("Recorded before, as run ")
    assert contents_of(tmp_path) == before


def test_move_completes_a_recorded_decision_and_is_no_new_look(client) -> None:
    decided = promote(2, JUNE)
    n_runs = len(runs_of(client))
    completed = promote(2, JUNE, move=True)
    assert completed.moved
    assert (completed.run_id, completed.sha256) == (decided.run_id, decided.sha256)
    assert completed.experiment_id == decided.experiment_id
    assert completed.notes == (
        f"Recorded before, as run {decided.run_id[:8]}: this is no new look.",
    )
    assert len(runs_of(client)) == n_runs
    with pytest.raises(ValueError, match="version 2 is the champion already"):
        promote(2, JUNE, move=True)


@pytest.mark.slow
def test_a_decision_whose_run_was_deleted_is_recorded_again(client) -> None:
    decided = promote(2, JUNE)
    client.delete_run(decided.run_id)
    again = promote(2, JUNE, move=True)
    assert again.moved
    assert again.run_id != decided.run_id
    assert again.record.previous == decided.sha256
    assert [one.moved for one in chain_of(client).promotions] == [False, True]


def test_several_challengers_are_compared_at_a_higher_level(client) -> None:
    single = promote(2, JUNE, dry_run=True).record
    promotion = promote([2, 3, 4], JUNE, move=True)
    # Versions 2 and 4 both pass, and version 4 has the larger difference.
    assert {one.version: one.answer for one in promotion.challenges} == {
        "2": Answer.PROMOTE,
        "3": Answer.CANNOT_TELL,
        "4": Answer.PROMOTE,
    }
    assert (promotion.version, champion_of(client)) == ("4", "4")
    record = promotion.record
    assert record.rule.level == pytest.approx(1 - 0.05 / 3)
    assert record.rule.sha256 == single.rule.sha256
    assert record.pair("2", "1", ACCURACY).low < single.pair("2", "1", ACCURACY).low


@pytest.mark.slow
def test_the_smallest_log_loss_wins(client) -> None:
    frame = JUNE[["id", "y"]].copy()
    for version, chance in {1: 0.7, 2: 0.72, 3: 0.74}.items():
        wobble = np.random.default_rng(version).uniform(-0.02, 0.02, len(frame))
        ones = np.where(frame.y == 1, chance + wobble, 1 - chance - wobble)
        frame[f"v{version}_p_0"] = 1 - ones
        frame[f"v{version}_p_1"] = ones
    stored = {"y_pred": None, "y_prob": "v{version}_p_*", "rank_by": "probability/log_loss"}
    promotion = promote([2, 3], frame, **stored)
    assert [gate.text for gate in promotion.record.gates] == [
        "probability/log_loss.difference.high < 0"
    ] * 2
    assert promotion.record.chosen == "3"


# -- rows ------------------------------------------------------------------------------------------


def test_a_month_counts_once_however_its_rows_are_given(client, tmp_path: Path) -> None:
    first = promote(3, JUNE, name="june")
    assert first.answer is Answer.CANNOT_TELL
    csv = tmp_path / "june.csv"
    JUNE.to_csv(csv, index=False)
    for data in (csv, JUNE.sample(frac=1, random_state=0), JUNE.astype({"id": str})):
        assert promote(3, data).run_id == first.run_id
    assert promote(3, JUNE, row_ids=None).run_id == first.run_id
    assert len(chain_of(client).promotions) == 1


@pytest.mark.slow
def test_other_predictions_on_the_same_rows_are_another_question(client) -> None:
    first = promote(3, JUNE)
    rescored = JUNE.assign(v3_pred=JUNE.v2_pred)
    second = promote(3, rescored)
    assert second.answer is Answer.PROMOTE
    assert second.notes == (
        f"Run {first.run_id[:8]} compared the same versions on these rows, but with other numbers. "
        "Options or predictions have changed since.",
    )
    # The rows were looked at before, so they are not joined with themselves.
    assert second.challenge.look == 1
    assert second.challenge.looks == ()


@pytest.mark.slow
def test_rows_that_chose_the_champion_are_named(client) -> None:
    promote(2, JUNE, move=True, also="none")
    notes = promote(3, JUNE, also="none").notes
    assert len(notes) == 1
    assert notes[0].startswith("These rows chose version 2 on ")


def test_versions_may_know_different_classes(client) -> None:
    frame = JUNE[["id", "y"]].copy()
    frame.loc[:2, "y"] = 2
    for version, labels in {1: [0, 1], 2: [0, 1, 2]}.items():
        chances = np.where(frame.y.to_numpy()[:, None] == labels, 0.9, 0.1)
        chances /= chances.sum(axis=1, keepdims=True)
        frame[[f"v{version}_p_{label}" for label in labels]] = chances
    promotion = promote(2, frame, y_pred=None, y_prob="v{version}_p_*", dry_run=True)
    assert promotion.notes[0] == "3 rows have the label 2, which version 1 does not know"
    evaluations = [one.evaluation for one in promotion.comparison.runs]
    assert {one.labels for one in evaluations} == {(0, 1, 2)}


# -- looks -----------------------------------------------------------------------------------------


def test_a_fourth_look_is_refused_but_force_is_not(client) -> None:
    for number, answer in enumerate([Answer.CANNOT_TELL, Answer.CANNOT_TELL, Answer.KEEP]):
        promotion = promote(3, month(10 + number, WRONG))
        assert (promotion.answer, promotion.challenge.look) == (answer, number + 1)
    with pytest.raises(ValueError, match="version 3 had its three looks at version 1"):
        promote(3, JULY)
    forced = promote(3, JULY, force="the contract ends")
    assert (forced.moved, champion_of(client)) == (True, "3")
    assert forced.record.pair("3", "1", ACCURACY) is not None
    # A new champion opens the pair again.
    assert promote(1, JULY).challenge.look == 1


@pytest.mark.slow
def test_a_change_of_the_rule_closes_the_looks(client) -> None:
    promote(3, JUNE)
    assert promote(3, JULY, dry_run=True).challenge.look == 2
    assert promote(3, JULY, dry_run=True, confidence_level=0.9).challenge.look == 1
    gate = f"{ACCURACY}.difference.low > -0.05"
    other = promote(3, JULY, dry_run=True, require=gate)
    assert (other.challenge.look, other.answer) == (1, Answer.PROMOTE)


# -- force, and other champions --------------------------------------------------------------------


def test_a_first_champion_and_a_rollback_need_no_rows(tmp_path: Path) -> None:
    with registry(tmp_path, 2, champion=None) as client:
        with pytest.raises(ValueError, match=r"party has no alias 'champion'; name the first cham"):
            promote(2, JUNE)
        for version, reason in ((1, "first champion"), (2, "trial"), (1, "rollback")):
            forced = cmtrack.promote(f"models:/party/{version}", force=reason)
            assert (forced.moved, forced.answer) == (True, None)
            assert champion_of(client) == str(version)
        chain = chain_of(client)
        assert chain.champions("1") == ["1", "2", "1"]
        assert [one.record.forced for one in chain.promotions] == [
            "first champion",
            "trial",
            "rollback",
        ]
        tag = client.get_model_version("party", "2").tags["cmtrack.verdict"]
        assert tag.startswith("champion by force on ")
        assert tag.endswith(": trial")


@pytest.mark.slow
def test_a_first_champion_may_be_evaluated(tmp_path: Path) -> None:
    with registry(tmp_path, 2, champion=None) as client:
        forced = promote(1, JUNE, force="first champion")
        assert (forced.moved, champion_of(client), forced.challenges) == (True, "1", ())
        assert forced.record.values["1"][ACCURACY][0] == pytest.approx(340 / 400)


@pytest.mark.slow
def test_each_alias_has_its_own_chain(client) -> None:
    client.set_registered_model_alias("party", "shadow", 3)
    promote(2, JUNE, move=True)
    shadow = promote(4, JUNE, alias="shadow", move=True)
    assert (shadow.answer, shadow.record.previous) == (Answer.PROMOTE, None)
    aliases = client.get_registered_model("party").aliases
    assert {name: str(number) for name, number in aliases.items()} == {
        "champion": "2",
        "shadow": "4",
    }
    assert len(chain_of(client).promotions) == len(chain_of(client, "shadow").promotions) == 1


@pytest.mark.slow
def test_earlier_champions_are_evaluated_or_named(client) -> None:
    promote(2, JUNE, move=True)
    promote(4, JULY, move=True, require=f"{ACCURACY}.difference.low > -0.01")
    assert champion_of(client) == "4"
    august = month(8, WRONG)
    record = promote(3, august, dry_run=True).record
    roles = {number: one.role for number, one in record.models.items()}
    assert roles == {"3": "challenger", "4": "champion", "2": "previous", "1": "first"}
    assert record.pair("4", "1", ACCURACY).difference == pytest.approx(25 / 400)
    assert set(promote(3, august, dry_run=True, also="none").record.models) == {"3", "4"}
    lacking = promote(3, august.drop(columns="v1_pred"), dry_run=True)
    assert any(
        note.startswith("version 1, the first champion, is missing") for note in lacking.notes
    )
    client.delete_model_version("party", "2")
    notes = promote(3, august, dry_run=True).notes
    assert "version 2, the previous champion, is missing: party has no version 2, the newest" in (
        " ".join(notes)
    )


# -- what is in the store --------------------------------------------------------------------------


@pytest.mark.slow
def test_an_unreadable_record_is_named_and_does_not_stop_a_promotion(client) -> None:
    promotion = promote(3, JUNE)
    text = client.get_run(promotion.run_id).data.tags["cmtrack.record"]
    client.set_tag(promotion.run_id, "cmtrack.record", text[:100])
    second = promote(3, JULY, dry_run=True)
    assert second.challenge.look == 1
    assert second.notes[0].startswith(
        f"The record of run {promotion.run_id[:8]} cannot be read, so its looks do not count: "
    )


@pytest.mark.slow
def test_an_unfinished_run_is_no_record(client) -> None:
    promotion = promote(3, JUNE)
    client.delete_tag(promotion.run_id, "cmtrack.record")
    # The experiment exists, but it contains no record.
    second = promote(3, JUNE)
    assert second.record.previous is None
    assert second.run_id != promotion.run_id


@pytest.mark.slow
def test_a_long_record_is_read_from_its_file(client) -> None:
    gates = [f"{ACCURACY}.difference.low > -0.{number:03}" for number in range(300, 440)]
    first = promote(3, JUNE, require=[*gates, f"{ACCURACY}.difference.low > 0"])
    tag = client.get_run(first.run_id).data.tags["cmtrack.record"]
    assert tag == f'{{"file":"cmtrack_promotion.json","sha256":"{first.sha256}"}}'
    (read,) = chain_of(client).promotions
    assert read.record.to_bytes() == first.record.to_bytes()


@pytest.mark.slow
def test_a_record_that_is_too_large_fails_before_anything_is_written(
    client, tmp_path: Path
) -> None:
    gates = [f"{ACCURACY}.difference.low > -0.{number:04}" for number in range(700)]
    before = contents_of(tmp_path)
    with pytest.raises(ValueError, match="a promotion's record must not be larger than 64 kB"):
        promote(3, JUNE, require=gates)
    assert contents_of(tmp_path) == before


# -- requests that are refused ---------------------------------------------------------------------

RULES = {
    "block": f"rank_by: {ACCURACY}\nblock: params.fold\n",
    "against": f"rank_by: {ACCURACY}\nagainst: a1\n",
    "plain": f"rank_by: {ACCURACY}\n",
}
REFUSED: dict[str, tuple[Any, dict[str, Any]]] = {
    "there is no registered model 'prty'; did you mean 'party'": ("models:/prty/2", {}),
    "party has no version 9, the newest is 4": (9, {}),
    "version 1 is the champion already": (1, {}),
    "each challenger must be given once, got versions 2, 2": ([2, 2], {}),
    "challengers must contain at least one version, got none": ([], {}),
    "challengers must be versions of one registered model, got party and votes": (
        ["models:/party/2", "models:/votes/1"],
        {},
    ),
    "party has no alias 'live'; name the first champion: cmtrack promote": (2, {"alias": "live"}),
    "force moves the alias to one version, got 2, 3": ([2, 3], {"force": "both"}),
    "force must state a reason": (2, {"force": " "}),
    "force must have at most 500 characters, got 501": (2, {"force": "x" * 501}),
    "name must have at most 500 characters, got 501": (2, {"name": "x" * 501}),
    "dry_run writes nothing: leave out move and force": (2, {"dry_run": True, "move": True}),
    "also must be 'all' or 'none', got 'some'": (2, {"also": "some"}),
    "give data and y_true together": (2, {"y_true": None}),
    "data must contain labelled rows; only force": (2, {"data": None, "y_true": None}),
    "the table has no column 'yy'; did you mean 'y'": (2, {"y_true": "yy"}),
    "the table has no column 'w2'": (2, {"y_pred": "w{version}"}),
    "means the same columns for versions 2 and 1: write 'v{version}_pred'": (
        2,
        {"y_pred": "v2_pred"},
    ),
    "means the same columns for versions 2 and 3: write 'v{version}_pred'": (
        [2, 3],
        {"y_pred": "{role}_pred"},
    ),
    "there is no metric named 'multiclass/acuracy'; did you mean": (
        2,
        {"rank_by": "multiclass/acuracy"},
    ),
    "expected a number after": (2, {"require": f"{ACCURACY} > "}),
    "the rule ranks by probability/log_loss, and version 2 gives labels only": (
        2,
        {"rank_by": "probability/log_loss"},
    ),
    "the rule requires probability/log_loss < 0.5, and version 2 gives labels only": (
        2,
        {"require": "probability/log_loss < 0.5"},
    ),
    "which version 2 cannot meet: it has no cost/mean": (2, {"require": "cost/mean < 0.5"}),
    "which version 2 cannot meet: it has no segments by “region”": (
        2,
        {"require": f"segment/region/*/{ACCURACY}.low > 0.5"},
    ),
    "rule.yaml: a rule with 'block' is for repeated runs": (2, {"rule": "block"}),
    "rule.yaml: leave out 'against', because the alias names the champion": (
        2,
        {"rule": "against"},
    ),
    "a rule file contains the whole rule; leave out require, rank_by": (
        2,
        {"rule": "plain", "require": f"{ACCURACY} > 0"},
    ),
    "a rule file contains the whole rule; leave out require, rank_by and": (
        2,
        {"rule": "plain", "confidence_level": 0.9},
    ),
}


def test_requests_are_refused_before_anything_is_written(client, tmp_path: Path) -> None:
    client.create_registered_model("votes")
    client.create_model_version("votes", "models:/party/1", None)
    before = contents_of(tmp_path)
    for message, (challengers, options) in REFUSED.items():
        options = {"data": JUNE, "y_true": "y", "y_pred": "v{version}_pred"} | options
        if "rule" in options:
            path = tmp_path / "rule.yaml"
            path.write_text(RULES[options["rule"]])
            options["rule"] = path
        elif "rank_by" not in options:
            options["rank_by"] = ACCURACY
        if isinstance(challengers, int):
            challengers = f"models:/party/{challengers}"
        elif isinstance(challengers, list):
            challengers = [
                one if isinstance(one, str) else f"models:/party/{one}" for one in challengers
            ]
        with pytest.raises(ValueError, match=r".") as raised:
            cmtrack.promote(challengers, **options)
        assert message in str(raised.value)
    (tmp_path / "rule.yaml").unlink()
    assert contents_of(tmp_path) == before


def test_frames_on_a_cluster_are_refused(client) -> None:
    class Frame:
        pass

    Frame.__module__ = "pyspark.sql.dataframe"
    Frame.__name__ = "DataFrame"
    with pytest.raises(TypeError, match="rows"):
        promote(2, Frame())


@pytest.mark.slow
def test_a_promotion_is_plain_data_and_a_frame(client) -> None:
    promotion = promote(3, JUNE, name="june")
    data = promotion.to_dict()
    assert (data["answer"], data["moved"], data["run_id"]) == (
        "cannot tell",
        False,
        promotion.run_id,
    )
    frame = promotion.to_frame()
    assert isinstance(frame, pd.DataFrame)
    assert frame[["new", "old", "metric"]].to_numpy().tolist() == [["3", "1", ACCURACY]]
    # The estimate is 0, so no number of rows would decide.
    assert math.isnan(promotion.rows_more)
    run = client.get_run(promotion.run_id)
    assert run.info.run_name == "promote: version 3 on june"
    assert run.info.status == "FINISHED"
    names = {item.path for item in mlflow.MlflowClient().list_artifacts(promotion.run_id)}
    assert {
        "cmtrack_promotion.json",
        "cmtrack_promotion.md",
        "cmtrack_review.zip",
        "cmtrack_rule.yaml",
        "cmtrack_review.html",
    } <= names


# -- what changes a question -----------------------------------------------------------------------


def test_a_gate_on_other_numbers_is_decided_again(client) -> None:
    scored = {"rank_by": ACCURACY, "y_pred": None, "y_prob": "v{version}_p_*"}

    def with_scores(frame: pd.DataFrame, certain: float) -> pd.DataFrame:
        columns = {}
        for version in (1, 2):
            is_one = frame[f"v{version}_pred"] == 1
            share = np.where(is_one, certain, 1 - certain)
            columns |= {f"v{version}_p_0": 1 - share, f"v{version}_p_1": share}
        return frame.assign(**columns)

    scored["require"] = [f"{ACCURACY}.difference.low > 0", "probability/log_loss <= 0.5"]
    assert promote(2, with_scores(JUNE, 0.8), **scored).answer is Answer.PROMOTE
    # The same labels are predicted with far too much confidence.
    again = promote(2, with_scores(JUNE, 0.9999999), move=True, **scored)
    assert (again.answer, again.moved) == (Answer.KEEP, False)
    assert any("with other numbers" in note for note in again.notes)


def test_looks_with_another_positive_class_are_not_joined(client) -> None:
    options = {"rank_by": "binary/recall"}
    first = promote(3, JUNE, positive=1, **options)
    other = promote(3, JULY, positive=0, **options)
    assert first.record.rule.sha256 == other.record.rule.sha256
    assert first.record.rule.question != other.record.rule.question
    assert (other.challenge.look, other.challenge.looks) == (1, ())


@pytest.mark.slow
def test_an_earlier_champion_with_another_class_is_only_missing(client) -> None:
    assert promote(2, JUNE, move=True).moved
    labels = JULY.assign(v1_pred=JULY["v1_pred"].where(JULY["id"] % 50 > 0, 2))
    promotion = promote(4, labels, rank_by="binary/recall")
    assert promotion.answer is not None
    assert set(promotion.record.models) == {"2", "4"}
    assert any("version 1" in note and "it has the class '2'" in note for note in promotion.notes)


@pytest.mark.slow
def test_a_move_by_hand_is_noted_by_the_next_promotion(client) -> None:
    promote(2, JUNE)
    client.set_registered_model_alias("party", "champion", 3)
    notes = promote(4, JULY).notes
    assert "moved from version 1 to version 3 without a record" in " ".join(notes)


@pytest.mark.parametrize("alias", ["the best", "latest", "v3", ""])
def test_an_alias_that_mlflow_refuses_is_refused_before_anything_is_written(client, alias) -> None:
    with pytest.raises(ValueError, match="an alias must have letters, digits"):
        promote(2, JUNE, alias=alias, force="because")
    assert len(chain_of(client).promotions) == 0


def test_numbers_of_versions_that_cannot_exist(client) -> None:
    for number in ("99999999999999999999", "01", "٢"):
        with pytest.raises(ValueError, match=f"party has no version {number}, the newest is 4"):
            cmtrack.promote(f"models:/party/{number}", force="first champion")


@pytest.mark.slow
def test_without_row_ids_a_note_asks_for_them(client) -> None:
    promote(3, JUNE, row_ids=None)
    notes = promote(3, JULY, row_ids=None).notes
    assert any("Give row_ids." in note for note in notes)


@pytest.mark.slow
def test_a_deleted_history_experiment_gets_a_successor(client) -> None:
    first = promote(3, JUNE)
    client.delete_experiment(first.experiment_id)
    second = promote(3, JULY)
    assert client.get_experiment(second.experiment_id).name == "party: history (2)"


@pytest.mark.slow
def test_boolean_labels_with_stored_probabilities(client) -> None:
    frame = JUNE.assign(y=JUNE["y"] == 1)
    for version in (1, 2):
        share = np.where(JUNE[f"v{version}_pred"] == 1, 0.9, 0.1)
        frame[f"v{version}_p_False"] = 1 - share
        frame[f"v{version}_p_True"] = share
    promotion = promote(2, frame, y_pred=None, y_prob="v{version}_p_*")
    assert promotion.answer is Answer.PROMOTE
