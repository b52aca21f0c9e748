"""Matrices of scores, models by blocks: checks, complete blocks, ties and summaries."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cmtrack.statistics.inputs import FloatArray

if TYPE_CHECKING:
    import pandas as pd


# bits: values that agree in so many of the largest one's are equal, whatever their last digits say
_SAME = 40


def as_scores(scores: Any) -> FloatArray:
    """Check a matrix of scores.

    ``scores``, of shape (N, k): rows are blocks (seeds or folds), columns models; larger is better;
    NaN where there is no value.

    ValueError if it is not a matrix, has no model or no block, or a score is infinite.
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
    """Names of the models, by default their column numbers.

    ValueError if there are more or fewer names than models, or one is given twice.
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
    """Differences of two models without those that are NaN, and the number of these.

    ValueError if it is not a vector, or a difference is infinite.
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
    """The blocks in which every model has a value, and the number of the others."""
    matrix = as_scores(scores)
    whole = matrix[~np.isnan(matrix).any(axis=1)]
    return whole, len(matrix) - len(whole)


def settled(values: FloatArray, scale: Any) -> FloatArray:
    """Return values without the digits that rounding leaves: 0.4 - 0.3 becomes 0.2 - 0.1.

    ``scale``: the largest number that went into the values; they are rounded to its 2⁻⁴⁰th part,
    about 1e-12.
    """
    grid = np.ldexp(1.0, np.maximum(np.frexp(scale)[1] - _SAME, -1022))
    rounded: FloatArray = np.round(values / grid) * grid
    return rounded


def order_by_mean(scores: FloatArray) -> tuple[int, ...]:
    """Models by mean, then as given."""
    if not len(scores):
        return tuple(range(scores.shape[1]))
    return tuple(
        int(v)
        for v in np.argsort(-settled(scores.mean(axis=0), np.abs(scores).max()), kind="stable")
    )


@dataclass(frozen=True)
class ModelSummary:
    """One model's scores.

    ``mean``, ``sd``, ``minimum``, ``maximum``: over the blocks in which the model has a value; the
    standard deviation, with divisor n - 1, is NaN for fewer than two. It says how much the scores
    vary, and is no error of the mean.
    ``blocks``: with a value.
    """

    name: str
    mean: float
    sd: float
    minimum: float
    maximum: float
    blocks: int


@dataclass(frozen=True)
class Summary:
    """Every model's scores.

    ``rows``: in the models' order.
    ``blocks``: blocks in which every model has a value; tests use no other.
    ``left_out``: blocks with a value missing.
    """

    rows: tuple[ModelSummary, ...]
    blocks: int
    left_out: int

    def __getitem__(self, name: str) -> ModelSummary:
        for row in self.rows:
            if row.name == name:
                return row
        raise KeyError(f"there is no model {name!r}")

    def to_frame(self) -> pd.DataFrame:
        """One row per model."""
        from cmtrack._pandas import pd

        return pd.DataFrame([vars(row) for row in self.rows])


def summary(scores: Any, names: Sequence[str] | None = None) -> Summary:
    """Mean, spread and range of each model's scores.

    ``scores``, of shape (N, k): blocks by models; NaN where there is no value.
    ``names``: by default the column numbers.

    ValueError if the scores are no finite matrix, or the names do not fit.
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
