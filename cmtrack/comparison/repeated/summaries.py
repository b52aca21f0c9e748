"""What each model scored over the blocks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cmtrack.comparison.repeated.blocks import as_names, as_scores, complete

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class ModelSummary:
    """One model's scores.

    Attributes
    ----------
    name : str
    mean, sd, minimum, maximum : float
        Over the blocks in which the model has a value; the standard deviation, with divisor n - 1, is NaN for fewer
        than two. It says how much the scores vary, and is no error of the mean.
    blocks : int
        With a value.
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

    Attributes
    ----------
    rows : tuple of ModelSummary
        In the models' order.
    blocks : int
        Blocks in which every model has a value; tests use no other.
    left_out : int
        Blocks with a value missing.
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
        import pandas as pd

        return pd.DataFrame([vars(row) for row in self.rows])


def summary(scores: Any, names: Sequence[str] | None = None) -> Summary:
    """Mean, spread and range of each model's scores.

    Parameters
    ----------
    scores : array-like of shape (N, k)
        Blocks by models; NaN where there is no value.
    names : sequence of k str, optional
        By default the column numbers.

    Raises
    ------
    ValueError
        If the scores are no finite matrix of at least two models, or the names do not fit.
    """
    matrix = as_scores(scores)
    kept, left_out = complete(matrix)
    rows = []
    for name, column in zip(as_names(names, matrix.shape[1]), matrix.T, strict=True):
        values = column[column == column]
        n = len(values)
        if not n:
            rows.append(ModelSummary(name, math.nan, math.nan, math.nan, math.nan, 0))
            continue
        sd = float(values.std(ddof=1)) if n > 1 else math.nan
        rows.append(ModelSummary(name, float(values.mean()), sd, float(values.min()), float(values.max()), n))
    return Summary(tuple(rows), len(kept), left_out)
