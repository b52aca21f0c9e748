"""Columns of pandas that belong together go by their index at every door, as in ``evaluate``, or are refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cmtrack import (
    Accumulator,
    ConfusionMatrix,
    Prefix,
    Tree,
    estimate_prevalence,
    evaluate,
    evaluate_families,
    evaluate_family_levels,
    granule_table,
)

RNG = np.random.default_rng(0)
Y = pd.Series(RNG.integers(0, 2, 400), index=[f"row {k}" for k in range(400)])
SCORES = Y + RNG.normal(size=400)
TARGET = RNG.normal(size=1000) + 1
CODES = Y.map({0: ["A1"], 1: ["B1"]})
TREE = Tree({"A1": "A", "B1": "B", "A": "all", "B": "all"})
WEIGHTS = pd.Series(RNG.integers(1, 5, 400), index=Y.index)

DOORS = {
    "estimate_prevalence": (
        SCORES,
        lambda column: estimate_prevalence(TARGET, calibration=(Y, column)).value,
    ),
    "fold ids": (
        pd.Series(np.arange(400) % 4, index=Y.index),
        lambda column: estimate_prevalence([TARGET] * 4, calibration=(Y, SCORES, column)).value,
    ),
    "from_predictions": (
        Y,
        lambda column: ConfusionMatrix.from_predictions(Y, column).counts.tolist(),
    ),
    "weights of from_predictions": (
        WEIGHTS,
        lambda column: ConfusionMatrix.from_predictions(
            Y, 1 - Y, sample_weight=column
        ).counts.tolist(),
    ),
    "evaluate": (Y, lambda column: evaluate(Y, column).confusion_matrix.counts.tolist()),
    "batches": (Y, lambda column: batched(column)),
    "families": (
        CODES,
        lambda column: evaluate_families(CODES, column, Prefix(length=1)).metrics[
            "family/f1_micro"
        ],
    ),
    "ids of families": (
        CODES.index.to_series(),
        lambda column: (
            evaluate_families(CODES, CODES, Prefix(length=1), row_ids=column).statistics.digest
        ),
    ),
    "levels of families": (
        CODES,
        lambda column: evaluate_family_levels(CODES, column, TREE, [0])[0].metrics[
            "family/f1_micro"
        ],
    ),
    "classes of granules": (Y, lambda column: granule_table({"sky": Y}, column).counts.tolist()),
    "attributes of granules": (Y, lambda column: granule_table({"sky": column}, Y).counts.tolist()),
}


def batched(column: pd.Series) -> list[list[int]]:
    seen = Accumulator([0, 1])
    seen.update(Y, column)
    return seen.compute().confusion_matrix.counts.tolist()


@pytest.mark.parametrize("door", DOORS)
def test_a_column_in_another_order_goes_by_its_index(door):
    column, result = DOORS[door]
    assert result(column.sample(frac=1, random_state=1)) == result(column)


@pytest.mark.parametrize("door", DOORS)
def test_a_column_that_lacks_rows_is_refused(door):
    column, result = DOORS[door]
    with pytest.raises(ValueError, match="must contain the same rows"):
        result(column.rename(index={"row 7": "another"}))


def test_columns_without_an_index_to_go_by_are_refused_if_theirs_differ() -> None:
    """The rows of an evaluation have no index: nobody knows which of two columns is in their order."""
    evaluation = evaluate(Y, Y.where(SCORES > 0, 1 - Y))
    columns = {"first": Y, "second": Y.sample(frac=1, random_state=1)}
    with pytest.raises(ValueError, match="and the evaluation has no index to match by"):
        evaluation.worst_segments(columns=columns)
    with pytest.raises(ValueError, match="and the evaluation has no index to match by"):
        evaluation.rows_where(actual=1, table=columns)
    assert evaluation.worst_segments(columns={"first": Y, "second": Y + 1}).searched
