"""Expressions that every engine computes alike, to the last bit where it matters."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import narwhals as nw

from cmtrack.grouping import Label

NEAR = 1e-7
"""How near an edge, in steps of the grid, engines may place a score on different sides of it."""
_SCALE = 1e12


def is_label(column: str, label: Label) -> nw.Expr:
    """1.0 where the column holds the label, else 0.0."""
    return (nw.col(column) == label).cast(nw.Float64)


def in_order(terms: Sequence[nw.Expr]) -> nw.Expr:
    """Their sum, from left to right."""
    return reduce(lambda a, b: a + b, terms)


def total(terms: Sequence[nw.Expr]) -> nw.Expr:
    """Their sum by halves, so that many terms make no deep expression."""
    if len(terms) == 1:
        return terms[0]
    middle = len(terms) // 2
    return total(terms[:middle]) + total(terms[middle:])


def with_highest(
    frame: nw.LazyFrame[Any], columns: Sequence[str], codes: Sequence[int], highest: str, first: str
) -> nw.LazyFrame[Any]:
    """The table with the columns ``highest``, the largest of the columns' values in each row, and ``first``.

    The latter is the code of the first column that has this value, as a float.
    """
    if len(columns) == 1:  # Spark knows no greatest of one
        only = nw.col(columns[0])
        return frame.with_columns(**{highest: only, first: only * 0.0 + float(codes[0])})
    if frame.implementation.is_dask():  # its horizontal maximum may come in other partitions than the columns
        start = nw.col(columns[0])
        frame = frame.with_columns(**{highest: start, first: start * 0.0 + float(codes[0])})
        for column, code in zip(columns[1:], codes[1:], strict=True):
            larger = nw.col(column) > nw.col(highest)
            frame = frame.with_columns(**{first: nw.when(larger).then(nw.lit(float(code))).otherwise(nw.col(first))})
            frame = frame.with_columns(**{highest: nw.when(larger).then(nw.col(column)).otherwise(nw.col(highest))})
        return frame
    frame = frame.with_columns(**{highest: nw.max_horizontal(*columns)})
    found = [
        nw.when(nw.col(column) == nw.col(highest)).then(nw.lit(float(code)))
        for column, code in zip(columns, codes, strict=True)
    ]
    return frame.with_columns(**{first: nw.coalesce(*found)})


def rounded(value: nw.Expr) -> nw.Expr:
    """To 12 decimals, a half to the even neighbour, as NumPy rounds: engines differ in their own rounding."""
    scaled = value * _SCALE
    below = scaled.floor()
    even = ((scaled + 0.5) / 2).floor() * 2  # the even one of the two neighbours of a half
    whole = nw.when((scaled - below) == 0.5).then(even).otherwise((scaled + 0.5).floor())
    return whole / (value * 0.0 + _SCALE)  # not by a literal: Polars would multiply by its inverse


def logit(score: nw.Expr, end: float) -> nw.Expr:
    """The logit of a score that is kept ``end`` away from 0 and 1."""
    inside = score.clip(end, 1 - end)
    return (inside / (1 - inside)).log()


def near_edge(place: nw.Expr, first: int, last: int) -> nw.Expr:
    """Whether a place lies next to one of the whole numbers ``first`` to ``last``."""
    nearest = (place + 0.5).floor()
    return ((place - nearest).abs() < NEAR) & (nearest >= first) & (nearest <= last)
