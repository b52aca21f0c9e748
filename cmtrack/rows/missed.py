"""Rows that several runs get wrong."""

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
    """Rows that several runs get wrong.

    Errors that runs share may be wrong labels, but need not be. Only runs that were not trained on
    the rows are evidence.

    Attributes
    ----------
    runs : tuple of str
        The M runs, evaluated on the same rows.
    at_least : int
        Smallest number of runs that get a listed row wrong.
    counts : ndarray of shape (M + 1,)
        Numbers of rows that 0, 1, ..., M runs get wrong.
    all : int
        Number of rows that all runs get wrong.

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
        """Number of rows that all runs get wrong."""
        return int(self.counts[-1])

    @property
    def sentence(self) -> str:
        """A sentence with the number of rows that all runs get wrong."""
        rows = "row" if self.all == 1 else "rows"
        runs = "Both runs" if len(self.runs) == 2 else f"All {len(self.runs)} runs"
        return f"{runs} get {self.all:,} {rows} wrong."

    def to_frame(self) -> pd.DataFrame:
        """Return the listed rows, ordered by the number of runs that get the row wrong.

        Rows with equal numbers are in the order of the data. The column ``missed`` is this number;
        the other columns are as in :meth:`cmtrack.Comparison.rows`.
        """
        return self.make_rows()

    def __repr__(self) -> str:
        return printable(f"Missed({self.sentence})")

    def _repr_html_(self) -> str:
        return notebook.view(notebook.sentence(self.sentence), notebook.table(self.to_frame()))
