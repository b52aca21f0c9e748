"""Sentences, page and figure of a registered model's history."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cmtrack.comparison.history import History

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def history_figure(history: History) -> Figure:
    """Draw the champions and their metric by month."""
    raise NotImplementedError


def write_page(history: History, path: Path) -> Path:
    """Write the page of a history."""
    raise NotImplementedError
