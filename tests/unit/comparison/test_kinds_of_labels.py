"""Labels that are equal are one class, whatever their kind: ``False``, ``0`` and ``0.0``. A text is another class."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from cmtrack import Evaluation, Grouping, compare, evaluate, evaluate_table, paired_differences
from cmtrack.report.review import markdown
from support import TESTS

STORED = TESTS / "data" / "labels_of_0.2.0"
"""Evaluations of :func:`rows` that cmtrack 0.2 stored; it hashed booleans and floats as their texts."""
KINDS = {
    "integers": lambda codes: codes,
    "booleans": lambda codes: codes.astype(bool),
    "nullable integers": lambda codes: pd.Series(codes, dtype="Int64"),
    "nullable booleans": lambda codes: pd.Series(codes.astype(bool), dtype="boolean"),
    "floats": lambda codes: codes.astype(float),
}


def rows() -> tuple[np.ndarray, np.ndarray]:
    """The actual and predicted classes, 0 and 1, of the stored evaluations, each of shape (60,)."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 60)
    return y, np.where(rng.random(60) < 0.8, y, 1 - y)


def evaluated(kind, **how):
    y, predicted = rows()
    return evaluate(KINDS[kind](y), KINDS[kind](predicted), **how)


@pytest.mark.parametrize("kind", KINDS)
def test_equal_numbers_of_any_kind_have_one_digest(kind):
    assert evaluated(kind).labels_digest == evaluated("integers").labels_digest


def test_digests_of_integers_and_texts_are_those_of_before():
    y, predicted = rows()
    assert evaluate(y, predicted).labels_digest == "60.rCGh_G2cBBQ.SjXe_Z6Kipw"
    assert (
        evaluate(y.astype(str), predicted.astype(str)).labels_digest == "60.rCGh_G2cBBQ.SjXe_Z6Kipw"
    )


def test_kinds_of_one_class_are_one_ranking_with_paired_rows():
    comparison = compare({kind: evaluated(kind) for kind in KINDS}, rank_by="class/1/recall")
    assert len(comparison.rankings) == 1
    assert len(comparison.runs) == len(KINDS)
    assert [run.unpaired for run in comparison.runs] == [""] * len(KINDS)
    assert len({run.value for run in comparison.runs}) == 1


def test_texts_are_other_classes_and_the_sentence_says_that_only_the_kind_differs():
    y, predicted = rows()
    texts = evaluate(y.astype(str), predicted.astype(str))
    comparison = compare({"numbers": evaluated("floats"), "texts": texts})
    assert len(comparison.rankings) == 2
    assert "labels that differ only in type (text in some runs, numbers in others)" in markdown(
        comparison
    )
    assert (
        "the labels differ only in type" in paired_differences(evaluated("integers"), texts).reason
    )


@pytest.mark.slow
def test_groups_costs_and_positive_classes_of_two_kinds_are_the_same_question():
    def grouped(kind):
        zero, one, two = np.arange(3).astype(kind).tolist()
        y = np.arange(30) % 3
        predicted = np.where(np.arange(30) < 20, y, (y + 1) % 3)
        grouping = Grouping({"low": [zero], "high": [one, two]})
        costs = {(zero, one): 2.0, (two, zero): 3.0}
        return evaluate(y.astype(kind), predicted.astype(kind), grouping=grouping, costs=costs)

    for metric in ("binary/recall", "cost/mean", "multiclass/kappa_quadratic"):
        if metric in grouped(int).metrics:
            comparison = compare(
                {"integers": grouped(int), "floats": grouped(float)}, rank_by=metric
            )
            assert len(comparison.rankings) == 1
            assert comparison.runs[0].value == comparison.runs[1].value
    assert grouped(float).with_label_order((0, 1, 2)).metrics == pytest.approx(
        grouped(int).metrics, nan_ok=True
    )


def test_all_metrics_of_equal_numbers_have_differences():
    differences = paired_differences(evaluated("integers"), evaluated("booleans"))
    assert differences.paired
    assert {row.metric for row in differences.rows} == set(evaluated("integers").metrics)


def test_evaluations_of_two_kinds_merge():
    assert (evaluated("integers") + evaluated("booleans")).labels == (0, 1)


def test_tables_of_two_kinds_have_one_digest_with_and_without_ids():
    y, predicted = rows()
    for row_ids in (None, "id"):
        digests = set()
        for kind in (int, float, bool):
            table = pd.DataFrame(
                {"y": y.astype(kind), "z": predicted.astype(kind), "id": np.arange(60)}
            )
            judged = evaluate_table(table, y_true="y", y_pred="z", row_ids=row_ids, progress=False)
            digests.add((judged.labels_digest, str(judged.statistics.row_ids)))
        assert len(digests) == 1


def test_row_ids_of_two_kinds_are_the_same_ids(tmp_path):
    ids = np.arange(60)
    judged = {
        kind: evaluated("integers", row_ids=ids.astype(kind)) for kind in ("int64", "float64")
    }
    assert judged["int64"].statistics.row_ids == judged["float64"].statistics.row_ids
    floats = judged["float64"].rows
    replace(judged["float64"], rows=replace(floats, ids=replace(floats.ids, stored=True))).save(
        tmp_path
    )
    assert Evaluation.load(tmp_path).rows.ids is not None


@pytest.mark.parametrize("kind", ["bool", "float"])
def test_a_stored_evaluation_of_0_2_is_paired_with_a_new_one_if_it_has_rows(kind):
    stored = Evaluation.load(STORED / kind)
    assert stored.rows is not None
    comparison = compare({"stored": stored, "new": evaluated("integers")})
    assert len(comparison.rankings) == 1
    assert [run.unpaired for run in comparison.runs] == ["", ""]


@pytest.mark.parametrize("kind", ["bool", "float"])
def test_a_stored_evaluation_of_0_2_without_rows_is_ranked_by_its_counts(kind, tmp_path):
    stored = Evaluation.load(STORED / kind, rows=False)
    comparison = compare({"stored": stored, "new": evaluated("integers")})
    assert len(comparison.rankings) == 1
    assert any(run.unpaired for run in comparison.runs)
    # what is written is what 0.2 wrote, and still goes with its rows
    stored.save(tmp_path, rows=False)
    content = (STORED / kind / "cmtrack_predictions.parquet").read_bytes()
    (tmp_path / "cmtrack_predictions.parquet").write_bytes(content)
    assert Evaluation.load(tmp_path).labels_digest == evaluated("integers").labels_digest


def test_a_stored_evaluation_of_0_2_with_rows_is_saved_as_a_new_one(tmp_path):
    Evaluation.load(STORED / "float").save(tmp_path)
    again = Evaluation.load(tmp_path, rows=False)
    assert again.labels_digest == evaluated("integers").labels_digest


def test_rows_of_another_order_are_still_refused(tmp_path):
    y, predicted = rows()
    backwards = evaluate(y[::-1].astype(float), predicted[::-1].astype(float))
    backwards.save(tmp_path)
    content = (tmp_path / "cmtrack_predictions.parquet").read_bytes()
    with pytest.raises(ValueError, match="do not add up to the counts in the evaluation"):
        Evaluation.load(STORED / "float", rows=False).with_rows(content)


def test_a_stored_weighted_evaluation_of_0_2_without_rows_is_to_be_evaluated_again():
    stored = Evaluation.load(STORED / "weighted")
    new = evaluated("floats", sample_weight=np.tile([0.5, 1.5], 30))
    comparison = compare({"stored": stored, "new": new})
    assert len(comparison.rankings) == 2
    assert "evaluate the runs of cmtrack 0.2 again" in markdown(comparison)
