"""Rows that most runs contradict: by suspicion, and their excess over what difficulty explains."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import betaln, gammaln

from cmtrack import notebook
from cmtrack.statistics.inputs import IntArray
from cmtrack.untrusted import printable

if TYPE_CHECKING:
    import pandas as pd

FEWEST_RUNS = 4
"""Runs, fewer of which do not tell how difficult rows are."""
_PENALTY = 0.05


def _logsumexp(logs: Any) -> Any:
    """As SciPy's, to the bit, without its cost for arrays of all kinds: a fit calls it thousands of times."""
    top = int(logs.argmax())
    others = np.exp(logs - logs[top])
    others[top] = 0.0
    return np.log1p(others.sum()) + logs[top]


def expected_by_difficulty(counts: Any) -> tuple[float, float, float]:
    """Rows that difficulty alone lets all M runs miss: alpha, beta and their number E.

    The misses of a row are beta-binomial. It is fitted to the rows that some run gets right, by the likelihood
    truncated at M with the penalty ``0.05 (ln^2 alpha + ln^2 beta)``; then ``E = N p_M / (1 - p_M)`` with N their
    number.

    Parameters
    ----------
    counts : array-like of shape (M + 1,)
        Rows that 0, 1, ..., M runs miss. The last one is not read.

    Examples
    --------
    >>> from cmtrack.rows import expected_by_difficulty
    >>> [round(number, 4) for number in expected_by_difficulty([800, 90, 40, 25, 18, 12, 30])]
    [0.1181, 1.5735, 6.0654]
    """
    from scipy.optimize import minimize

    rows = np.asarray(counts, dtype=np.float64)[:-1]
    if not rows.sum() > 0:
        return math.nan, math.nan, 0.0
    runs = len(rows)
    x = np.arange(runs + 1)
    ways = gammaln(runs + 1) - gammaln(x + 1) - gammaln(runs - x + 1)

    def log_chances(logs: Any) -> Any:
        a, b = np.exp(logs)
        return ways + betaln(x + a, runs - x + b) - betaln(a, b)

    def loss(logs: Any) -> float:
        chances = log_chances(logs)
        return float(-(rows @ (chances[:-1] - _logsumexp(chances[:-1]))) + _PENALTY * logs @ logs)

    tight = {"xatol": 1e-10, "fatol": 1e-12, "maxiter": 5_000, "maxfev": 10_000}
    best = minimize(loss, np.log([0.2, 2.0]), method="Nelder-Mead", options=tight).x
    chances = log_chances(best)
    expected = float(rows.sum() * np.exp(chances[-1] - _logsumexp(chances[:-1])))
    return float(np.exp(best[0])), float(np.exp(best[1])), expected


@dataclass(frozen=True, eq=False)
class Missed:
    """Rows that several runs miss.

    It says how many more rows all runs miss than the difficulty of rows explains. Mistakes that runs share look like
    wrong labels: it does not say that a label is wrong. Only runs that were not trained on the rows are evidence.

    Attributes
    ----------
    runs : tuple of str
        The M runs, of the same rows.
    at_least : int
        Runs that miss each listed row, or more.
    all : int
        Rows that all runs miss.
    expected : float
        How many of them difficulty explains: see :func:`cmtrack.rows.expected_by_difficulty`, summed over the classes.
        NaN for fewer than 4 runs.
    excess : float
        ``all - expected``.
    counts : ndarray of shape (M + 1,)
        Rows that 0, 1, ..., M runs miss.

    Examples
    --------
    >>> import numpy as np
    >>> from cmtrack import compare, evaluate
    >>> rng, y = np.random.default_rng(0), np.arange(400) % 2
    >>> hard = np.arange(400) < 20
    >>> runs = {name: evaluate(y, np.where((rng.random(400) < 0.1) | hard, 1 - y, y)) for name in "abcd"}
    >>> missed = compare(runs).missed()
    >>> missed.all, len(missed.to_frame())
    (20, 20)
    """

    runs: tuple[str, ...]
    at_least: int
    counts: IntArray
    by_class: IntArray
    make_rows: Callable[[], pd.DataFrame]

    @property
    def all(self) -> int:
        """Rows that all runs miss."""
        return int(self.counts[-1])

    @cached_property
    def expected(self) -> float:
        """Rows that all runs would miss by difficulty alone."""
        if len(self.runs) < FEWEST_RUNS:
            return math.nan
        return sum(expected_by_difficulty(counts)[2] for counts in self.by_class)

    @property
    def excess(self) -> float:
        """Rows that all runs miss, beyond what difficulty explains."""
        return self.all - self.expected

    @property
    def sentence(self) -> str:
        """The number of the excess, without a claim on any label."""
        rows = "row is" if self.all == 1 else "rows are"
        head = f"{self.all:,} {rows} missed by {'both' if len(self.runs) == 2 else f'all {len(self.runs)}'} runs"
        if math.isnan(self.expected):
            return f"{head}; fewer than {FEWEST_RUNS} runs do not tell how many difficulty explains."
        excess = round(self.excess)
        more = f"about {excess:,} more than difficulty explains" if excess > 0 else "no more than difficulty explains"
        return f"{head}: {more} ({self.expected:.3g} expected)."

    def to_frame(self) -> pd.DataFrame:
        """The listed rows: those that most runs miss first, among them the lowest mean probability of the label.

        Besides the columns of :meth:`cmtrack.Comparison.rows`: ``missed``, the number of runs, and ``suspicion``, one
        less the mean probability of the label (of runs without probabilities, the share that miss it).
        """
        return self.make_rows()

    def __repr__(self) -> str:
        return printable(f"Missed({self.sentence})")

    def _repr_html_(self) -> str:
        return notebook.view(notebook.sentence(self.sentence), notebook.table(self.to_frame()))
