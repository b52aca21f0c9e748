"""Checks of the arguments of the review figures."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from cmtrack.metrics.metric import BETTER
from cmtrack.plots.style import FloatArray

BoolArray = npt.NDArray[np.bool_]


def check_names(names: Sequence[object], least: int = 1) -> int:
    """The number of runs; ValueError if below `least`."""
    if len(names) < least:
        raise ValueError(f"names must name at least {least} run{'s' * (least > 1)}, got {len(names)}")
    return len(names)


def check_numbers(name: str, values: npt.ArrayLike, shape: tuple[int, ...]) -> FloatArray:
    """`values` as a float64 array of `shape`, NaN allowed; ValueError otherwise."""
    array = np.asarray(values, dtype=np.float64)
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {array.shape}")
    return array


def check_intervals(name: str, intervals: npt.ArrayLike, n_rows: int) -> FloatArray:
    """`intervals` as (n_rows, 2) limits, NaN where there is none; ValueError otherwise."""
    limits = check_numbers(name, intervals, (n_rows, 2))
    wrong = np.flatnonzero(limits[:, 0] > limits[:, 1])
    if wrong.size:
        low, high = limits[wrong[0]]
        raise ValueError(f"{name} must hold (low, high), got ({low}, {high}) in row {wrong[0]}")
    return limits


def check_flags(name: str, flags: npt.ArrayLike, shape: tuple[int, ...]) -> BoolArray:
    """`flags` as a boolean array of `shape`; ValueError otherwise."""
    array = np.asarray(flags)
    if array.shape != shape or array.dtype != np.bool_:
        raise ValueError(f"{name} must be booleans of shape {shape}, got {array.dtype} of shape {array.shape}")
    return array


def check_index(name: str, index: int | None, n_rows: int) -> None:
    """ValueError unless `index` is None or a row."""
    if index is not None and not 0 <= index < n_rows:
        raise ValueError(f"{name} must be an index from 0 to {n_rows - 1}, got {index}")


def check_better(name: str, better: str) -> None:
    """ValueError unless `better` is a word that a ranked metric has."""
    if better not in BETTER:
        raise ValueError(f"{name} must be one of {list(BETTER)}, got {better!r}")


def check_limit(name: str, limit: int) -> None:
    """ValueError unless at least one may be shown."""
    if limit < 1:
        raise ValueError(f"{name} must be at least 1, got {limit}")


def goodness(values: FloatArray, better: str) -> FloatArray:
    """`values` turned so that more is better."""
    if better == "nearest zero":
        return -np.abs(values)
    return -values if better == "lower" else values
