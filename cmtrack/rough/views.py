"""The one place where results of rough sets open a figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy.typing as npt

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def approximation_figure(
    lower: npt.ArrayLike,
    upper: npt.ArrayLike,
    sizes: npt.ArrayLike,
    labels: Sequence[object],
    condition: str | None = None,
) -> Figure:
    """Draw lower and upper approximations, or with a ``condition`` bounds of them."""
    from cmtrack import plots

    title = "Rough approximations" if condition is None else "Bounds of the rough approximations"
    return plots.plot_rough_approximations(lower, upper, sizes, labels, condition=condition, title=title)
