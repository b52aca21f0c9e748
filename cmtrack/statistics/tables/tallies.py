"""Running a query, and what comes back: small columns, one entry per group."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import narwhals as nw
import numpy as np

from cmtrack.grouping import Label
from cmtrack.grouping.step import plain
from cmtrack.statistics.counting import Counts
from cmtrack.statistics.factorize import is_missing
from cmtrack.statistics.inputs import FloatArray, IntArray

Run: TypeAlias = "Callable[[str, nw.LazyFrame[Any]], Mapping[str, list[Any]]]"
"""Runs a query, which has a name for people, and returns its columns."""

ACTUAL, PREDICTED, WEIGHT, SQUARE = "actual", "predicted", "weight", "square"
"""Names of the columns that a plan works on; probabilities are ``p0``, ``p1``, … and ids ``id1`` to ``id3``."""

MAX_SUMS = 500
"""Sums of one query; Dask computes all terms of a partition before it adds them up, and gets fewer at a time."""


def run(_: str, query: nw.LazyFrame[Any]) -> dict[str, list[Any]]:
    """Run a query by its own engine."""
    streaming = {"engine": "streaming"} if query.implementation.is_polars() else {}
    backend: Any = query.implementation if query.implementation.is_polars() else None
    answer = query.collect(backend, **streaming)
    return {name: [None if is_missing(v) else v for v in answer[name].to_list()] for name in answer.columns}


@dataclass(frozen=True)
class Rows:
    """A table ready to be counted.

    Attributes
    ----------
    frame : narwhals LazyFrame
        With the columns that :data:`ACTUAL` and its neighbours name.
    labels : tuple of length K
    n_rows : int
    weights : tuple of str
        None, :data:`WEIGHT`, or this and :data:`SQUARE` where weights are fractions.
    run : callable
    """

    frame: nw.LazyFrame[Any]
    labels: tuple[Label, ...]
    n_rows: int
    weights: tuple[str, ...]
    run: Run

    @property
    def probabilities(self) -> list[str]:
        """The names of the K columns of probabilities."""
        return [f"p{k}" for k in range(len(self.labels))]

    def place(self, values: Sequence[Any]) -> IntArray:
        """The codes of labels that came back."""
        index = {label: code for code, label in enumerate(self.labels)}
        return np.array([index[plain(value)] for value in values], dtype=np.int64)

    def tally(
        self, name: str, frame: nw.LazyFrame[Any], keys: Sequence[str], extremes: str | None = None
    ) -> tuple[dict[str, list[Any]], list[Counts]]:
        """Count rows by ``keys``; also the least and the greatest value of a column, named ``low`` and ``high``.

        Returns
        -------
        groups : dict
            The columns that came back.
        counts : list of ndarray
            Rows, or sums of each of the weights, of each group.
        """
        sums = [nw.col(weight).sum().alias(f"sum_{weight}") for weight in self.weights] or [nw.len().alias("sum_")]
        if extremes is not None:
            sums += [nw.col(extremes).min().alias("low"), nw.col(extremes).max().alias("high")]
        groups = dict(self.run(name, frame.group_by(*keys).agg(*sums)))
        whole = len(self.weights) < 2
        counts = [as_counts(groups[f"sum_{weight}"], whole) for weight in self.weights or ("",)]
        return groups, counts

    def sums(
        self, name: str, frame: nw.LazyFrame[Any], terms: Mapping[str, nw.Expr], ends: Sequence[str] = ()
    ) -> dict[str, FloatArray]:
        """Sums of terms over the rows of each actual class, shape (K,) each.

        Also the least and the greatest value of the columns ``ends``, as ``low_...`` and ``high_...``. Classes
        without rows have 0.
        """
        names = list(terms)
        width = MAX_SUMS // 5 if frame.implementation.is_dask() else MAX_SUMS
        out: dict[str, FloatArray] = {}
        for start in range(0, len(names), width):
            part = names[start : start + width]
            wanted = [nw.col(term).sum() for term in part]
            if start == 0:
                wanted += [nw.col(column).min().alias(f"low_{column}") for column in ends]
                wanted += [nw.col(column).max().alias(f"high_{column}") for column in ends]
            query = frame.with_columns(**{term: terms[term] for term in part}).group_by(ACTUAL).agg(*wanted)
            groups = dict(self.run(name, query))
            codes = self.place(groups.pop(ACTUAL))
            for column, values in groups.items():
                out[column] = np.zeros(len(self.labels))
                out[column][codes] = values
        return out


def as_counts(values: Sequence[Any], whole: bool) -> Counts:
    """Numbers that came back, as int64 where they are whole."""
    counts = np.array(values, dtype=np.float64 if not whole else None)
    return np.rint(counts).astype(np.int64) if whole else counts
