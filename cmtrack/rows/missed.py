"""Rows that several runs miss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cmtrack import notebook
from cmtrack.removed import RemovedAttributes
from cmtrack.statistics.inputs import IntArray
from cmtrack.untrusted import printable

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Missed(RemovedAttributes):
    """Rows that several runs miss.

    Mistakes that runs share look like wrong labels, but need not be. Only runs that were not
    trained on the rows are evidence.

    Attributes
    ----------
    runs : tuple of str
        The M runs, of the same rows.
    at_least : int
        Runs that miss each listed row, or more.
    counts : ndarray of shape (M + 1,)
        Rows that 0, 1, ..., M runs miss.
    all : int
        Rows that all runs miss.

    Examples
    --------
    >>> import numpy as np
    >>> from cmtrack import compare, evaluate
    >>> rng, y = np.random.default_rng(0), np.arange(400) % 2
    >>> hard = np.arange(400) < 20
    >>> wrong = {name: hard | (rng.random(400) < 0.1) for name in "abcd"}
    >>> runs = {name: evaluate(y, np.where(wrong[name], 1 - y, y)) for name in wrong}
    >>> missed = compare(runs).missed()
    >>> missed.all, len(missed.to_frame())
    (20, 20)
    """

    runs: tuple[str, ...]
    at_least: int
    counts: IntArray
    make_rows: Callable[[], pd.DataFrame]

    @property
    def all(self) -> int:
        """Rows that all runs miss."""
        return int(self.counts[-1])

    @property
    def sentence(self) -> str:
        """The number of rows that all runs miss."""
        rows = "row is" if self.all == 1 else "rows are"
        runs = "both runs" if len(self.runs) == 2 else f"all {len(self.runs)} runs"
        return f"{self.all:,} {rows} missed by {runs}."

    def to_frame(self) -> pd.DataFrame:
        """Return the listed rows: those that most runs miss first, among them the first row.

        Besides the columns of :meth:`cmtrack.Comparison.rows`: ``missed``, the number of runs that
        miss the row.
        """
        return self.make_rows()

    def __repr__(self) -> str:
        return printable(f"Missed({self.sentence})")

    def _repr_html_(self) -> str:
        return notebook.view(notebook.sentence(self.sentence), notebook.table(self.to_frame()))
