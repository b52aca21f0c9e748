"""Parts of the review figures: captions, numbers in columns, checks of arguments."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.artist import Artist
from matplotlib.axes import Axes

from cmtrack.metrics.metric import BETTER
from cmtrack.plots.style import MUTED, SMALL_SIZE, FloatArray, fold


def caption_under(ax: Axes, anchor: Artist, lines: Sequence[str], points: float, gap: float = 7.0) -> None:
    """Small explanations, `points` wide, below `anchor`, aligned with the left edge of the axes."""
    if lines:
        ax.annotate(
            "\n".join(fold(line, points) for line in lines), xy=(0.0, 0.0), xycoords=("axes fraction", anchor),
            xytext=(0, -gap), textcoords="offset points", ha="left", va="top", fontsize=SMALL_SIZE, color=MUTED,
            annotation_clip=False,
        )  # fmt: skip


def decimals(values: FloatArray) -> int:
    """Decimals that distinguish `values`: three for shares, more if they are close, fewer for large ones."""
    there = values[np.isfinite(values)]
    if not there.size:
        return 3
    largest, spread = float(np.abs(there).max()), float(np.ptp(there))
    least = max(0, 3 - max(0, math.ceil(math.log10(largest)))) if largest > 1 else 3
    return least if spread == 0 else int(np.clip(1 + math.ceil(-math.log10(spread)), least, 5))


def number(value: float, places: int, *, sign: bool = False) -> str:
    """A number with a real minus; "–" for NaN. With `sign` a value that is rounded to 0 keeps its sign."""
    if not math.isfinite(value):
        return "–"
    shown = f"{value:+.{places}f}" if sign and value else f"{round(value, places) + 0.0:.{places}f}"
    return shown.replace("-", "−")


def left_out(total: int, shown: int, what: str) -> list[str]:
    """The note on items that a figure leaves out, if any."""
    return [f"{shown} of {total} {what} are shown."] if total > shown else []


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
    """Validate that `index` is None or a row."""
    if index is not None and not 0 <= index < n_rows:
        raise ValueError(f"{name} must be an index from 0 to {n_rows - 1}, got {index}")


def check_better(name: str, better: str) -> None:
    """Validate the direction of a ranked metric."""
    if better not in BETTER:
        raise ValueError(f"{name} must be one of {list(BETTER)}, got {better!r}")


def check_limit(name: str, limit: int) -> None:
    """Validate that a limit is at least 1."""
    if limit < 1:
        raise ValueError(f"{name} must be at least 1, got {limit}")


def goodness(values: FloatArray, better: str) -> FloatArray:
    """`values` turned so that more is better."""
    if better == "nearest zero":
        return -np.abs(values)
    return -values if better == "lower" else values
