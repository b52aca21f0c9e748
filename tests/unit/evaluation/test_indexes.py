"""Columns of pandas that belong together go by their index at every door, as in ``evaluate``, or are refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cmtrack import ConfusionMatrix, estimate_prevalence

RNG = np.random.default_rng(0)
Y = pd.Series(RNG.integers(0, 2, 400), index=[f"row {k}" for k in range(400)])
SCORES = Y + RNG.normal(size=400)
TARGET = RNG.normal(size=1000) + 1
WEIGHTS = pd.Series(RNG.integers(1, 5, 400), index=Y.index)

DOORS = {
    "estimate_prevalence": (SCORES, lambda column: estimate_prevalence(TARGET, calibration=(Y, column)).value),
    "fold ids": (
        pd.Series(np.arange(400) % 4, index=Y.index),
        lambda column: estimate_prevalence([TARGET] * 4, calibration=(Y, SCORES, column)).value,
    ),
    "from_predictions": (Y, lambda column: ConfusionMatrix.from_predictions(Y, column).counts.tolist()),
    "weights of from_predictions": (
        WEIGHTS,
        lambda column: ConfusionMatrix.from_predictions(Y, 1 - Y, sample_weight=column).counts.tolist(),
    ),
}


@pytest.mark.parametrize("door", DOORS)
def test_a_column_in_another_order_goes_by_its_index(door):
    column, result = DOORS[door]
    assert result(column.sample(frac=1, random_state=1)) == result(column)


@pytest.mark.parametrize("door", DOORS)
def test_a_column_that_lacks_rows_is_refused(door):
    column, result = DOORS[door]
    with pytest.raises(ValueError, match="must hold the same rows"):
        result(column.rename(index={"row 7": "another"}))
