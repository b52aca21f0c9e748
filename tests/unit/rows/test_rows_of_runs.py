"""Rows of an evaluation and of a comparison as frames: selections, order, tables joined by id, and what is refused."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from cmtrack import Comparison, Evaluation, Grouping, compare, evaluate
from cmtrack.cli import main
from support.problems import random_labels, random_probabilities

Y, A, B = (list(map(int, text)) for text in ("0001122210", "0011120220", "0201022111"))
TWO = Grouping({"low": [0, 1], "high": [2]}, name="two")


def compared(rank_by: str = "multiclass/accuracy", **options: object) -> Comparison:
    return compare(
        {"A": evaluate(Y, A, **options), "B": evaluate(Y, B, **options)}, rank_by=rank_by
    )


def test_broken_fixed_and_missed_rows() -> None:
    comparison = compared()
    broken = comparison.rows("A", "B")
    assert broken["row"].tolist() == [1, 4, 7, 9]
    assert list(broken) == ["row", "actual", "predicted_A", "predicted_B"]
    assert broken.loc[0, "predicted_B"] == 2
    assert comparison.rows("A", "B", "fixed")["row"].tolist() == [2, 6, 8]
    assert comparison.rows("B", "A", "fixed")["row"].tolist() == [1, 4, 7, 9]
    changed = [k for k in range(10) if A[k] != B[k]]
    assert comparison.rows("A", "B", "changed")["row"].tolist() == changed
    missed = comparison.missed()
    assert (missed.all, len(missed.to_frame())) == (0, 0)
    assert missed.sentence == "Both runs get 0 rows wrong."
    assert comparison.missed(1).to_frame()["row"].tolist() == [1, 2, 4, 6, 7, 8, 9]


def test_right_is_what_the_step_of_the_criterion_accepts() -> None:
    comparison = compared("reduced/two/accuracy", grouping=TWO)
    assert comparison.rows("A", "B")["row"].tolist() == [1, 7]
    assert comparison.rows("A", "B", "fixed")["row"].tolist() == [6, 8]
    assert comparison.flips("A", "B").to_frame()["broken"].tolist() == [0.2]
    strict = Grouping({"low": [0, 1], "high": [2]}, mode="strict", name="two")
    mismatches = [
        evaluate(Y, y, grouping=strict).rows_where("low", "mismatch", step="two")["row"].tolist()
        for y in (A, B)
    ]
    assert mismatches == [[2], [4, 9]]
    a = evaluate(Y, A, grouping=strict)
    assert a.rows_where("low", "low", step="two")["row"].tolist() == [0, 1, 3, 4, 9]


def test_the_order_of_broken_rows_is_the_fall_of_the_label() -> None:
    y = np.array([0, 1, 1, 0])
    one, two = (
        np.column_stack((1 - np.array(p), p)) for p in ([0.1, 0.9, 0.6, 0.2], [0.6, 0.4, 0.45, 0.9])
    )
    comparison = compare(
        {"a": evaluate(y, y_prob=one), "b": evaluate(y, y_prob=two)}, rank_by="multiclass/accuracy"
    )
    frame = comparison.rows("a", "b")
    assert frame["row"].tolist() == [3, 0, 1, 2]
    assert frame["probability_actual_a"].tolist() == pytest.approx([0.8, 0.9, 0.9, 0.6])
    assert frame["probability_b"].tolist() == pytest.approx([0.9, 0.6, 0.6, 0.55])


def scored(seed: int = 0, n: int = 200, **options: object) -> Evaluation:
    y = random_labels(n, 3, 7)
    return evaluate(y, y_prob=random_probabilities(y, 3, 1.5, seed), labels=[0, 1, 2], **options)


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6))
def test_selections_are_the_cells_of_the_matrix(seed: int) -> None:
    evaluation = scored(seed, grouping=TWO)
    for i in range(3):
        for j in range(3):
            frame = evaluation.rows_where(i, j, limit=None)
            assert len(frame) == frame.attrs["total"] == evaluation.confusion_matrix.counts[i, j]
            assert frame["probability"].is_monotonic_decreasing
    reduced = evaluation.reduced["two"].counts
    for i, group in enumerate(("low", "high")):
        for j, other in enumerate(("low", "high")):
            assert len(evaluation.rows_where(group, other, step="two", limit=None)) == reduced[i, j]


def test_certain_and_wrong_rows_of_a_segment_and_of_a_table() -> None:
    region = np.repeat(["north", "south"], 100)
    evaluation = scored(
        segments={"region": region},
        row_ids=np.arange(200) + 1000,
        sample_weight=np.repeat([0, 1], 100),
    )
    p, y = evaluation.rows.probabilities, evaluation.rows.actual
    wrong = np.flatnonzero((p.argmax(1) != y) & (p.max(1) >= 0.8) & (np.arange(200) >= 100))
    frame = evaluation.rows_where(right=False, confident=0.8, limit=None)
    assert sorted(frame["row"]) == wrong.tolist()
    assert set(frame["region"]) == {"south"}
    assert set(frame["weight"]) == {1}
    assert len(evaluation.rows_where(segment={"region": "north"})) == 0  # of weight 0
    table = pd.DataFrame(
        {"id": np.arange(200) + 1000, "text": [f"t{k}" for k in range(200)], "row": 5}
    )
    joined = evaluation.rows_where(right=False, table=table, row_ids="id", limit=3)
    assert joined["text"].tolist() == [f"t{k}" for k in joined["row"]]
    assert joined["table_row"].tolist() == [5, 5, 5]
    turned = table.set_index("id").sample(frac=1, random_state=1)
    by_index = evaluation.rows_where(
        right=False, table=turned, row_ids=np.arange(200) + 1000, limit=3
    )
    assert by_index["text"].tolist() == joined["text"].tolist()
    assert evaluation.rows_where(segment={"text": "t150"}, table=table, row_ids="id")[
        "row"
    ].tolist() == [150]
    with pytest.warns(UserWarning, match="only by their order"):
        evaluation.rows_where(table=table)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"actual": 7}, "actual must be one of"),
        ({"predicted": "mismatch"}, "predicted must be one of"),
        ({"step": "halves"}, "step must be one of"),
        ({"segment": {"region": "north"}}, "segment must name one of the columns"),
        ({"confident": 1.5}, "confident must be a probability above 0 and at most 1, got 1.5"),
        ({"limit": -1}, "limit must be a number of rows"),
        ({"limit": 2.5}, "limit must be a number of rows, or None for all, got 2.5"),
        ({"right": "yes"}, "right must be True, False or None, got 'yes'"),
        (
            {"confident": "high"},
            "confident must be a probability above 0 and at most 1, got 'high'",
        ),
        ({"segment": "north"}, "segment must map columns to values, .* got 'north'"),
        ({"row_ids": "id"}, "row_ids= needs table=, got only row_ids='id'"),
        (
            {"table": {"id": [None, *range(199)]}, "row_ids": "id"},
            "an id in each row, got 1 without, the first is 0",
        ),
        ({"table": {"x": [1, 2]}}, "a row for each of the 200 rows, got 2: 198 do not match"),
        ({"table": {"id": [1] * 200}, "row_ids": "key"}, "row_ids must be a column of the table"),
        (
            {"table": {"id": [1] * 200}, "row_ids": "id"},
            "'id' must not repeat an id, got 199 repeats, such as 1",
        ),
        (
            {"table": {"id": np.arange(200) + 500}, "row_ids": "id"},
            "'id' must contain ids of the rows",
        ),
    ],
)
def test_what_is_refused_of_one_evaluation(options: dict, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        scored(row_ids=np.arange(200)).rows_where(**options)


def test_a_table_needs_row_ids_that_the_evaluation_was_given() -> None:
    with pytest.raises(ValueError, match="without row ids: evaluate with row_ids="):
        scored().rows_where(table={"id": np.arange(200)}, row_ids="id")


def test_a_table_is_joined_by_the_ids_that_are_at_hand() -> None:
    evaluation = scored(row_ids=[f"r{k}" for k in range(200)])
    table = pd.DataFrame(
        {"id": [f"r{k}" for k in range(10, 300)], "number": range(10, 300)}
    ).sample(frac=1, random_state=0)
    with pytest.warns(UserWarning, match="10 of 200 rows are not in the table"):
        frame = evaluation.rows_where(table=table, row_ids="id", limit=None)
    assert frame["id"].tolist() == [f"r{k}" for k in frame["row"]]
    lacking = frame["row"] < 10
    assert frame["number"].isna().equals(lacking)
    assert (frame["number"] == frame["row"])[~lacking].all()
    assert frame["table_id"].isna().equals(lacking)


def test_runs_of_other_rows_are_compared_by_their_ids() -> None:
    ids = np.array([f"r{k}" for k in range(10)])
    other = [5, 3, 1, 4, 9, 7]
    y = np.array(Y)[other]
    y[0] = (y[0] + 1) % 3  # relabelled
    runs = {
        "A": evaluate(Y, A, row_ids=ids),
        "B": evaluate(y, np.array(B)[other], row_ids=ids[other]),
    }
    comparison = compare(runs, rank_by="multiclass/accuracy")
    with pytest.warns(
        UserWarning,
        match="on 5 rows with the same ids.*4 rows of “A” only, 0 of “B” only, and 1 with different labels",
    ):
        frame = comparison.rows("A", "B")
    assert sorted(frame["id"]) == ["r1", "r4", "r7", "r9"]
    with pytest.warns(UserWarning, match="same ids"):
        assert comparison.flips("A", "B").n.tolist() == [5]
    with pytest.raises(ValueError, match="different rows"):
        compare({"A": runs["A"], "B": evaluate(y, y)}, rank_by="multiclass/accuracy").rows("A", "B")


@pytest.mark.filterwarnings("ignore:.*rows of the same ids")
@pytest.mark.parametrize("choice", [["--broken"], ["--missed", "1"]], ids=["broken", "missed"])
def test_the_command_joins_a_table_to_the_rows_that_runs_share(
    choice: list[str], tmp_path: Path
) -> None:
    def save(name: str, y: Any, predicted: Any, ids: Any) -> None:
        evaluation = evaluate(y, predicted, row_ids=ids)
        kept = replace(evaluation.rows, ids=replace(evaluation.rows.ids, stored=True))
        replace(evaluation, rows=kept).save(tmp_path / name, rows=True)

    ids, other = np.array([f"r{k}" for k in range(10)]), [5, 3, 1, 4, 9, 7]
    save("one", Y, A, ids)
    save("two", np.array(Y)[other], np.array(B)[other], ids[other])
    table = pd.DataFrame({"key": ids, "text": [f"text of {one}" for one in ids]})
    table.to_csv(tmp_path / "table.csv", index=False)
    arguments = [*choice, "--table", str(tmp_path / "table.csv"), "--row-ids", "key", "--json"]
    result = CliRunner().invoke(
        main, ["rows", str(tmp_path / "one"), str(tmp_path / "two"), *arguments]
    )
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)["rows"]
    assert len(rows) >= 4
    assert [row["text"] for row in rows] == [f"text of {row['id']}" for row in rows]


@pytest.mark.slow
def test_missed_rows_and_pairs_of_runs_of_other_rows_are_joined_by_id() -> None:
    ids = np.array([f"r{k}" for k in range(200)])
    whole, y = scored(0, row_ids=ids), random_labels(200, 3, 7)

    def part(seed: int, rows: np.ndarray, ids: np.ndarray | None = ids) -> Evaluation:
        given = None if ids is None else ids[rows]
        p = random_probabilities(y, 3, 1.5, seed)[rows]
        return evaluate(y[rows], y_prob=p, labels=[0, 1, 2], row_ids=given)

    places = np.random.default_rng(0).permutation(200)
    runs = {"a": whole, "b": part(1, places), "c": part(2, np.arange(40, 200))}
    comparison = compare({name: runs[name] for name in "bc"}, rank_by="multiclass/accuracy")
    with pytest.warns(
        UserWarning, match="on 160 rows with the same ids.*40 rows of “b” only, 0 of “c” only"
    ):
        missed = comparison.missed()
    assert int(missed.counts.sum()) == 160
    pair = compare({name: runs[name] for name in "ab"}, rank_by="multiclass/accuracy")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # no row is left out
        shuffled = pair.missed()
    assert int(shuffled.counts.sum()) == 200
    same = (
        compare({"a": whole, "b": part(1, np.arange(200))}, rank_by="multiclass/accuracy")
        .missed()
        .to_frame()
    )
    assert set(shuffled.to_frame()["id"]) == set(same["id"])
    lone = compare({"a": whole, "b": part(3, np.arange(200)), "c": part(2, np.arange(9), None)})
    with pytest.warns(
        UserWarning, match="1 of 3 runs are not compared row by row: “c”: .*different rows"
    ):
        assert lone.missed().runs in (("a", "b"), ("b", "a"))
    with pytest.raises(
        ValueError, match=r"at_least must be a number of runs from 1 to 2, got 1\.5"
    ):
        compare({"a": whole, "b": part(3, np.arange(200))}).missed(1.5)


def test_rows_that_are_not_here() -> None:
    evaluation = scored()
    with pytest.raises(ValueError, match=r"does not have its rows.*rows=True"):
        (evaluation + evaluation).rows_where()
    with pytest.raises(ValueError, match="confident= needs probabilities"):
        evaluate(Y, A).rows_where(confident=True)


def test_runs_of_other_rows_are_named_with_those_that_can_be_compared() -> None:
    other = evaluate([1, *Y[1:]], A)
    merged = evaluate(Y, A) + evaluate(Y, A)
    comparison = compare(
        {"A": evaluate(Y, A), "B": evaluate(Y, B), "other": other, "merged": merged},
        rank_by="multiclass/accuracy",
    )
    with pytest.raises(
        ValueError, match=r"“A”.*“other” row by row:.*different rows.*compare it with “B”"
    ):
        comparison.rows("A", "other")
    with pytest.raises(ValueError, match="no other run can be compared with it"):
        comparison.flips("merged", "A")
    with pytest.raises(KeyError, match="there is no run named 'C'"):
        comparison.flips("A", "C")
    with pytest.raises(ValueError, match="a and b must be different runs"):
        comparison.rows("A", "A")
    with pytest.raises(ValueError, match="kind must be one of broken, fixed, changed"):
        comparison.rows("A", "B", "lost")
    with pytest.raises(ValueError, match="by must be None, 'class' or a column of segments"):
        comparison.flips("A", "B", by="region")
    with pytest.raises(ValueError, match="at_least must be a number of runs from 1 to 2"):
        comparison.missed(3)
    with pytest.raises(ValueError, match="at least two runs must have the same rows"):
        compare({"A": evaluate(Y, A), "other": other}, rank_by="multiclass/accuracy").missed()


def test_flips_by_class_and_by_segment() -> None:
    region = np.repeat(["north", "south"], 100)
    comparison = compare(
        {name: scored(seed, segments={"region": region}) for name, seed in (("a", 1), ("b", 2))}
    )
    everything = comparison.flips("a", "b")
    for by, parts in (("class", [0, 1, 2]), ("region", ["north", "south"])):
        frame = comparison.flips("a", "b", by=by).to_frame()
        assert frame["part"].tolist() == parts
        total = everything.to_frame().loc[0, "broken"] * 200
        assert (frame["broken"] * frame["n"]).sum() == pytest.approx(total)
        assert (
            (frame["broken_low"] <= frame["broken"]) & (frame["broken"] <= frame["broken_high"])
        ).all()
    back = comparison.flips("b", "a").to_frame().loc[0]
    assert (back["fixed"], back["fixed_high"]) == tuple(
        everything.to_frame().loc[0, ["broken", "broken_high"]]
    )


@pytest.mark.slow
def test_missed_rows_are_ordered_by_the_number_of_runs_and_then_by_position() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 1500)
    planted = rng.choice(1500, 60, replace=False)
    y = truth.copy()
    y[planted] = (y[planted] + 1) % 3
    runs = {
        f"m{k}": evaluate(y, y_prob=random_probabilities(truth, 3, 3.0, k), labels=[0, 1, 2])
        for k in range(6)
    }
    comparison = compare(runs, rank_by="multiclass/accuracy")
    wrong = sum((run.rows.predicted != y).astype(int) for run in runs.values())
    missed = comparison.missed(4)
    frame = missed.to_frame()
    assert missed.counts.tolist() == np.bincount(wrong, minlength=7).tolist()
    expected = sorted(np.flatnonzero(wrong >= 4).tolist(), key=lambda row: (-wrong[row], row))
    assert frame["row"].tolist() == expected
    assert frame["missed"].tolist() == wrong[expected].tolist()
    assert "suspicion" not in frame
    assert len(set(expected[:60]) & set(planted)) >= 50
    assert missed.sentence == f"All 6 runs get {missed.all} rows wrong."


def test_rows_count_as_often_as_they_are_repeated() -> None:
    weights = np.array([1, 0, 2, 1, 1, 1, 3, 1, 1, 1])
    runs = {
        name: evaluate(Y, answers, sample_weight=weights) for name, answers in (("A", A), ("B", B))
    }
    missed = compare(runs, rank_by="multiclass/accuracy").missed(1)
    wrong = sum((np.array(answers) != Y).astype(int) for answers in (A, B))
    assert missed.counts.tolist() == np.bincount(wrong, weights, minlength=3).tolist()
    assert 1 not in missed.to_frame()["row"].tolist()
