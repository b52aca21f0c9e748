"""The record of a promotion: canonical bytes, parsing, and the order of a chain of records."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

# The facts of a record have no public names, because callers only read records.
from cmtrack.comparison import (
    Answer,
    Chain,
    GateFacts,
    ModelFacts,
    PairFacts,
    PromotionRecord,
    RecordedPromotion,
    RowsFacts,
    RuleFacts,
    canonical_json,
)

# A record contains outcomes of gates, which callers get from a verdict.
from cmtrack.evaluation.gates import GateOutcome

STATED = {"made": "2026-06-01T08:00:00Z", "author": "Ünal", "versions": {"cmtrack": "0.3.0"}}
"""Facts that the author's machine states."""
SHA256 = "a" * 64


def record(
    champion: str | None = "3",
    challenger: str = "5",
    *,
    answer: Answer | None = Answer.KEEP,
    chosen: str | None = None,
    labels: str = "4000.AAAAAAAAAAA.BBBBBBBBBBB",
    previous: str | None = None,
    rule: str = SHA256,
    made: str = "2026-06-01T08:00:00Z",
) -> PromotionRecord:
    """A record with rows, one challenger and one gate."""
    models = {challenger: ModelFacts("challenger", "e5", "m-5", 1, answer)}
    if champion is not None:
        models[champion] = ModelFacts("champion", "e3", "m-3", 0)
    pair = PairFacts(
        challenger,
        champion or "1",
        "multiclass/accuracy",
        0.01825,
        0.0041,
        0.0103,
        0.0264,
        (171.0, 98.0, 269.0, 4000.0),
    )
    text = "multiclass/accuracy.difference.low > 0"
    return PromotionRecord(
        "party",
        "champion",
        answer,
        chosen,
        None,
        **STATED | {"made": made},
        rule=RuleFacts("rule.yaml", rule, "multiclass/accuracy", (text,), 0.95),
        rows=RowsFacts("june", 4000, labels),
        models=models,
        values={challenger: {"multiclass/accuracy": (0.87, 0.0053)}},
        pairs=(pair,),
        looks={challenger: ("a1",)},
        joined=(pair,),
        gates=(GateFacts(challenger, text, GateOutcome.HOLDS, 0.0103, math.nan),),
        bundle=SHA256,
        previous=previous,
    )


def recorded(run_id: str, one: PromotionRecord, moved: bool = False) -> RecordedPromotion:
    return RecordedPromotion(run_id, one, one.to_bytes(), moved)


def test_the_digest_of_canonical_json_is_that_of_the_specification() -> None:
    # HISTORY, vector TV-H13.
    data = {
        "alias": "champion",
        "answer": "keep",
        "author": "Ünal",
        "bundle": "0" * 64,
        "model": "party",
        "pairs": [],
        "previous": None,
        "rows": {"ids": None, "labels": "4.AAAAAAAAAAA.BBBBBBBBBBB", "n": 4},
        "schema": 1,
        "values": {"1": {"multiclass/accuracy": [0.75, 0.21650635094610965]}},
    }
    found = hashlib.sha256(canonical_json(data)).hexdigest()
    assert found == "58db264b2390027dab7fbd0d0c6b9abfb48945aff6bad832db3656df80efcfea"


def test_a_record_is_the_same_after_it_is_written_and_read() -> None:
    content = record().to_bytes()
    again = PromotionRecord.parse(content)
    assert again.to_bytes() == content
    assert again.champion == "3"
    assert again.challengers == ("5",)
    assert again.pair("5", "3", "multiclass/accuracy").estimate(4000).only_new == 171
    assert len(content) < 2000


CHANGES = {
    "schema": 2,
    "model": "",
    "alias": "x" * 501,
    "answer": "perhaps",
    "chosen": "five",
    "versions": [],
    "rule": {"file": "../rule.yaml"},
    "rows": {"name": "june", "n": 0, "labels": "x", "ids": None, "clusters": None},
    "models": {"5": {"role": "king", "run": None, "model": None, "made": 0, "answer": None}},
    "values": {"5": {"multiclass/accuracy": [0.87, -1.0]}},
    "pairs": [["5", "3", "multiclass/accuracy", [1e308, 0.1, 0.0, 0.2], None]],
    "looks": {"5": ["../a"]},
    "joined": [[]],
    "gates": [["a > 0", "unknown", 0.1, None, "5"]],
    "rows_more": -1,
    "bundle": "0" * 63,
    "previous": "A" * 64,
}


@pytest.mark.parametrize("key", CHANGES)
def test_an_invalid_value_is_refused(key: str) -> None:
    data = json.loads(record().to_bytes())
    data[key] = CHANGES[key]
    with pytest.raises(ValueError, match="the record"):
        PromotionRecord.parse(json.dumps(data).encode())


@pytest.mark.parametrize("key", json.loads(record().to_bytes()))
def test_a_missing_key_is_refused(key: str) -> None:
    data = json.loads(record().to_bytes())
    del data[key]
    with pytest.raises(ValueError, match="the record"):
        PromotionRecord.parse(json.dumps(data).encode())


def test_nan_a_large_file_and_other_json_are_refused() -> None:
    text = record().to_bytes().decode()
    wrong = {
        "finite": text.replace("0.01825", "NaN"),
        "mapping": "[]",
        "64 kB": text + " " * 70_000,
        "Expecting": "{",
    }
    for reason, content in wrong.items():
        with pytest.raises(ValueError, match=reason):
            PromotionRecord.parse(content.encode())


@given(st.permutations(range(5)))
def test_a_chain_is_in_the_order_of_its_digests(order: list[int]) -> None:
    ordered = []
    previous = None
    for number in range(5):
        # All times are equal, because they are only stated.
        one = recorded(f"r{number}", record(challenger=str(10 + number), previous=previous))
        ordered.append(one)
        previous = one.sha256
    chain = Chain.from_promotions([ordered[place] for place in order], "3")
    assert [one.run_id for one in chain.promotions] == ["r0", "r1", "r2", "r3", "r4"]
    assert chain.head == previous


def test_champions_include_moves_by_hand() -> None:
    promoted = record("1", "3", answer=Answer.PROMOTE, chosen="3")
    first = recorded("r1", promoted, moved=True)
    kept = recorded("r2", record("5", "6", previous=first.sha256))
    chain = Chain.from_promotions([first, kept], "7")
    assert chain.champions("7") == ["1", "3", "5", "7"]


def test_a_promotion_whose_process_ended_before_it_said_so_counts_as_moved() -> None:
    promoted = recorded("r1", record("1", "3", answer=Answer.PROMOTE, chosen="3"))
    assert Chain.from_promotions([promoted], "3").promotions[0].moved
    assert not Chain.from_promotions([promoted], "1").promotions[0].moved


def test_open_looks_are_joined_and_each_data_set_counts_once() -> None:
    cannot = {"answer": Answer.CANNOT_TELL}
    looks = []
    previous = None
    for number, labels in enumerate(["a", "b", "b"]):
        one = recorded(f"r{number}", record(labels=labels, previous=previous, **cannot))
        looks.append(one)
        previous = one.sha256
    found = Chain.from_promotions(looks, "3").looks("5", "3", SHA256)
    assert found.n_months == 2
    assert [one.run_id for one in found.open] == ["r0", "r1"]
    assert found.without_rows(RowsFacts("june", 4000, "a")).n_months == 1


@pytest.mark.parametrize("closing", ["a promotion", "another rule", "another champion"])
def test_a_series_of_looks_is_closed(closing: str) -> None:
    first = recorded("r0", record(answer=Answer.CANNOT_TELL))
    rule = SHA256
    champion = "3"
    if closing == "a promotion":
        second = record("3", "6", answer=Answer.PROMOTE, chosen="6", previous=first.sha256)
        champion = "6"
    elif closing == "another rule":
        rule = "b" * 64
        second = record(answer=Answer.CANNOT_TELL, rule=rule, previous=first.sha256, labels="c")
    else:
        champion = "8"
        second = record("8", "5", answer=Answer.CANNOT_TELL, previous=first.sha256, labels="c")
    chain = Chain.from_promotions(
        [first, recorded("r1", second, closing == "a promotion")], champion
    )
    months = chain.looks("5", champion, rule).n_months
    assert months == (0 if closing == "a promotion" else 1)


def test_the_same_question_is_found_until_the_champion_changes() -> None:
    kept = recorded("r0", record())
    chain = Chain.from_promotions([kept], "3")
    rows = kept.record.rows
    assert chain.same_question(["5"], "3", rows, SHA256).run_id == "r0"
    assert chain.same_question(["6"], "3", rows, SHA256) is None
    assert chain.same_question(["5"], "3", rows, "b" * 64) is None
    assert chain.same_question(["5"], "8", rows, SHA256) is None
    assert chain.same_question(["5"], "3", replace(rows, labels="others"), SHA256) is None
    # A deleted run accepts no tag, so its decision is recorded again, but its look still counts.
    deleted = Chain.from_promotions([replace(kept, deleted=True)], "3")
    assert deleted.same_question(["5"], "3", rows, SHA256) is None
    assert deleted.looks("5", "3", SHA256).n_months == 1


def test_a_chain_may_be_empty() -> None:
    assert Chain.from_promotions([], "3") == Chain()
    assert Chain().champions("3") == ["3"]
    assert Chain().head is None


@pytest.mark.parametrize(
    ("labels", "ids", "is_same"),
    [
        ("4.aa.bb", "4.cc.dd", True),
        ("4.aa.bb", None, True),
        ("4.aa.xx", "4.cc.xx", True),  # in another order
        ("4.aa.xx", "4.cc.dd", False),  # ids 0 to 3, as in every month
        ("4.aa.xx", None, False),
        ("4.aa.bb", "4.xx.xx", False),  # sorted by label
        ("4.xx.xx", "4.cc.xx", False),
        ("u.4.aa", "u.4.cc", False),
    ],
)
def test_rows_are_recognized_in_another_order_and_without_ids(
    labels: str, ids: str | None, is_same: bool
) -> None:
    june = RowsFacts("june", 4, "4.aa.bb", "4.cc.dd")
    other = RowsFacts("july", 4, labels, ids)
    assert june.is_same(other) == other.is_same(june) == is_same


@pytest.mark.parametrize("changed", [{"forced": "x" * 501}, {"model": ""}, {"bundle": "0"}])
def test_a_record_that_cannot_be_read_again_is_not_written(changed: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="the record is not valid"):
        replace(record(), **changed).to_bytes()
