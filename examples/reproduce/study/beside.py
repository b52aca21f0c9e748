"""Published numbers beside ours: one cell for a reader, one sentence for the overview."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

NOTE = "ours over {n} repeats, mean ± standard deviation; published in brackets; † more than two of our spreads away"


class Spread(NamedTuple):
    """Mean and standard deviation over repeats; both NaN where no repeat gives a number, the second one for one."""

    mean: float
    sd: float

    @classmethod
    def of(cls, values: ArrayLike) -> Spread:
        """The spread of some repeats, those without a number left out."""
        kept = np.asarray(values, dtype=float)
        kept = kept[np.isfinite(kept)]
        if not len(kept):
            return cls(np.nan, np.nan)
        return cls(float(kept.mean()), float(kept.std(ddof=1)) if len(kept) > 1 else np.nan)


def beside(ours: Spread | float, published: float | None = None, *, digits: int = 2) -> str:
    """A cell like ``0.59 ± 0.02 (0.58)``: ours, its spread, and what was published; † if that is far away.

    Far away is more than two standard deviations of ours and more than the last printed digit; without a spread, more
    than the last digit.
    """
    ours = ours if isinstance(ours, Spread) else Spread(float(ours), np.nan)
    text = "–" if np.isnan(ours.mean) else f"{ours.mean:.{digits}f}"
    if not np.isnan(ours.sd):
        text += f" ± {ours.sd:.{digits}f}"
    if published is None or np.isnan(published):
        return text
    far = abs(ours.mean - published) > max(2 * np.nan_to_num(ours.sd), 0.5000001 * 10.0**-digits)
    return f"{text} ({published:.{digits}f})" + (" †" if far else "")


def nearness(ours: pd.DataFrame, published: pd.DataFrame, *, digits: int = 2) -> str:
    """How far two tables of equal labels are apart, as a sentence: the median, and the largest with its place.

    Parameters
    ----------
    ours, published : DataFrame
        Numbers; cells that are NaN in either are left out.
    digits : int
        Of the numbers in the sentence.
    """
    gap = (ours - published.reindex_like(ours)).abs().stack().dropna()
    if gap.empty:
        return "nothing to compare"
    row, column = gap.idxmax()
    median, largest = (f"{value:.{digits}f}" for value in (gap.median(), gap.max()))
    return f"{len(gap)} numbers: median distance {median}, largest {largest} ({row}, {column})"
