"""Rows that several runs predict wrongly."""

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
    """Rows that several runs predict wrongly.

    A row that many runs predict wrongly may have a wrong label, but this is not certain. Errors are
    evidence of a wrong label only if the runs were not trained on the row.

    Attributes
    ----------
    runs : tuple of str
        Names of the M runs, which were evaluated on the same rows.
    at_least : int
        A row is listed if at least this number of runs predict it wrongly.
    counts : ndarray of shape (M + 1,)
        Numbers of rows that exactly 0, 1, ..., M runs predict wrongly.
    all : int
        Number of rows that all runs predict wrongly.

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
        """Number of rows that all runs predict wrongly."""
        return int(self.counts[-1])

    @property
    def sentence(self) -> str:
        """A sentence that states how many rows all runs predict wrongly."""
        rows = "row" if self.all == 1 else "rows"
        runs = "Both runs" if len(self.runs) == 2 else f"All {len(self.runs)} runs"
        return f"{runs} get {self.all:,} {rows} wrong."

    def to_frame(self) -> pd.DataFrame:
        """Return the listed rows, starting with the rows that the most runs predict wrongly.

        If two rows are predicted wrongly by the same number of runs, they stay in the order of the
        data. The column ``missed`` contains the number of runs that predict the row wrongly. All
        other columns are the same as in :meth:`cmtrack.Comparison.rows`.
        """
        return self.make_rows()

    def __repr__(self) -> str:
        return printable(f"Missed({self.sentence})")

    def _repr_html_(self) -> str:
        frame = self.to_frame()
        # The probabilities of many runs do not fit on a page.
        shown = frame.loc[:, ~frame.columns.str.startswith("probability")]
        return notebook.view(notebook.sentence(self.sentence), notebook.table(shown))
