"""Matrices of scores by block and model: checks, complete blocks, rounding and summaries."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cmtrack.statistics.inputs import FloatArray

if TYPE_CHECKING:
    import pandas as pd


# Values count as equal if they agree to this number of bits, relative to the largest value.
_SAME = 40


def as_scores(scores: Any) -> FloatArray:
    """Check a matrix of scores, and return it as an array.

    ``scores``, of shape (N, k): a row for each block (seed or fold) and a column for each model.
    Larger values are better, and NaN marks a missing value.

    Raises ValueError if the scores are not a matrix, if they contain no model or no block, or if a
    score is infinite.
    """
    matrix: FloatArray = np.array(scores, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] < 1 or matrix.shape[1] < 1:
        raise ValueError(f"scores must have shape (blocks >= 1, models >= 1), got {matrix.shape}")
    if np.isinf(matrix).any():
        block, model = (int(v) for v in np.argwhere(np.isinf(matrix))[0])
        raise ValueError(
            f"scores must be finite or NaN, got {matrix[block, model]} in block {block} of model "
            f"{model}"
        )
    return matrix


def as_names(names: Sequence[str] | None, n_models: int) -> tuple[str, ...]:
    """Return the names of the models; by default, the names are the column numbers.

    Raises ValueError if the numbers of names and models differ, or if a name is repeated.
    """
    chosen = tuple(str(v) for v in (range(n_models) if names is None else names))
    if len(chosen) != n_models:
        raise ValueError(
            f"there must be one name per model, got {len(chosen)} names for {n_models} models"
        )
    if len(set(chosen)) < n_models:
        raise ValueError(
            f"names must differ, got {next(v for v in chosen if chosen.count(v) > 1)!r} twice"
        )
    return chosen


def as_differences(differences: Any) -> tuple[FloatArray, int]:
    """Return the differences that are not NaN, and the number of differences that are NaN.

    Raises ValueError if the differences are not a vector, or if a difference is infinite.
    """
    values: FloatArray = np.array(differences, dtype=np.float64)
    if values.ndim != 1:
        raise ValueError(f"differences must have shape (blocks,), got {values.shape}")
    if np.isinf(values).any():
        raise ValueError(
            "differences must be finite or NaN, got one in block "
            f"{int(np.argmax(np.isinf(values)))}"
        )
    defined = values[~np.isnan(values)]
    return defined, len(values) - len(defined)


def complete(scores: Any) -> tuple[FloatArray, int]:
    """Return the blocks in which every model has a value, and the number of other blocks."""
    matrix = as_scores(scores)
    whole = matrix[~np.isnan(matrix).any(axis=1)]
    return whole, len(matrix) - len(whole)


def settled(values: FloatArray, scale: Any) -> FloatArray:
    """Return values without rounding errors, so that 0.4 - 0.3 equals 0.2 - 0.1.

    ``scale``: the largest number in the computation of the values, which are rounded to about 1e-12
    (2⁻⁴⁰) of this number.
    """
    grid = np.ldexp(1.0, np.maximum(np.frexp(scale)[1] - _SAME, -1022))
    rounded: FloatArray = np.round(values / grid) * grid
    return rounded


def order_by_mean(scores: FloatArray) -> tuple[int, ...]:
    """Return the models' positions, best mean first; models with equal means keep their order."""
    if not len(scores):
        return tuple(range(scores.shape[1]))
    return tuple(
        int(v)
        for v in np.argsort(-settled(scores.mean(axis=0), np.abs(scores).max()), kind="stable")
    )


@dataclass(frozen=True)
class ModelSummary:
    """Summary of the scores of one model.

    ``mean``, ``sd``, ``minimum``, ``maximum``: statistics over the blocks in which the model has a
    value. The standard deviation (with divisor n - 1) is NaN for fewer than two values. The
    standard deviation measures the spread of the scores and is not a standard error of the mean.
    ``blocks``: number of blocks in which the model has a value.
    """

    name: str
    mean: float
    sd: float
    minimum: float
    maximum: float
    blocks: int


@dataclass(frozen=True)
class Summary:
    """Summaries of the scores of all models.

    ``rows``: summaries in the order of the models.
    ``blocks``: number of blocks in which every model has a value; only these blocks are tested.
    ``left_out``: number of blocks in which a model has no value.
    """

    rows: tuple[ModelSummary, ...]
    blocks: int
    left_out: int

    def __getitem__(self, name: str) -> ModelSummary:
        for row in self.rows:
            if row.name == name:
                return row
        raise KeyError(f"there is no model named {name!r}")

    def to_frame(self) -> pd.DataFrame:
        """Return a frame with one row per model."""
        from cmtrack._pandas import pd

        return pd.DataFrame([vars(row) for row in self.rows])


def summary(scores: Any, names: Sequence[str] | None = None) -> Summary:
    """Return the mean, spread and range of each model's scores.

    ``scores``, of shape (N, k): one row per block and one column per model; missing values are NaN.
    ``names``: names of the models; by default the column numbers.

    Raises ValueError if the scores are not a finite matrix, or if the names do not match the
    scores.
    """
    matrix = as_scores(scores)
    whole, left_out = complete(matrix)
    rows = []
    for name, column in zip(as_names(names, matrix.shape[1]), matrix.T, strict=True):
        values = column[column == column]
        n = len(values)
        if not n:
            rows.append(ModelSummary(name, math.nan, math.nan, math.nan, math.nan, 0))
            continue
        sd = float(values.std(ddof=1)) if n > 1 else math.nan
        rows.append(
            ModelSummary(
                name, float(values.mean()), sd, float(values.min()), float(values.max()), n
            )
        )
    return Summary(tuple(rows), len(whole), left_out)
