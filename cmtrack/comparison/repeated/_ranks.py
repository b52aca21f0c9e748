"""Average ranks over data sets: Friedman's test, Iman and Davenport's, and Nemenyi's after them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from cmtrack.comparison.repeated._pairs import cliques
from cmtrack.comparison.repeated._scores import block_ranks, complete, order_by_rank
from cmtrack.metrics.intervals import check_level
from cmtrack.statistics.inputs import FloatArray

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Friedman:
    """Friedman's test that no model of k differs from the others.

    ``ranks``: average ranks, 1 the best.
    ``chi_square``, ``df``, ``pvalue``: Friedman's statistic with the correction for ties, k - 1, and the chi-square
    approximation's p-value.
    ``uncorrected_chi_square``: the same without the correction, as it is often printed.
    ``f``, ``f_df1``, ``f_df2``, ``f_pvalue``: Iman and Davenport's statistic, of the corrected chi-square, its degrees
    of freedom k - 1 and (k - 1)(N - 1), and its p-value: the one to use. Infinite where all blocks rank alike.
    ``blocks``, ``left_out``: blocks used, and those that miss a value.
    ``reason``: why there is NaN; else empty.
    """

    ranks: tuple[float, ...]
    chi_square: float
    df: float
    pvalue: float
    uncorrected_chi_square: float
    f: float
    f_df1: float
    f_df2: float
    f_pvalue: float
    blocks: int
    left_out: int
    reason: str = ""

    def to_frame(self) -> pd.DataFrame:
        """One row per test."""
        from cmtrack._pandas import pd

        rows = [
            ("Friedman chi-square", self.chi_square, self.df, math.nan, self.pvalue),
            ("Iman-Davenport F", self.f, self.f_df1, self.f_df2, self.f_pvalue),
        ]
        return pd.DataFrame(rows, columns=["test", "statistic", "df1", "df2", "pvalue"])


def friedman(scores: Any) -> Friedman:
    """Friedman's rank test (1937, JASA 32, 675-701) and its F of Iman and Davenport (1980, Comm. Stat. A 9, 571-595).

    With R̄ the average ranks, χ² = 12N / (k(k+1)) · (Σ R̄² - k(k+1)²/4), over 1 - Σ(t³ - t) / (N(k³ - k)) for ties of
    t models, and F = (N - 1)χ² / (N(k - 1) - χ²). Blocks must be independent, as data sets are and folds are not.

    ``scores``, of shape (N, k): blocks by models, larger is better; blocks with NaN are left out.

    The result: NaN with a reason for fewer than two blocks. Where every block has every model equal, the statistics are
    0. Where all blocks rank alike, F is infinite, and its p-value is the exact probability of that: m^(1 - N), with m
    the orders that the (tied) ranks of one block can take.

    ValueError if the scores are no finite matrix of at least two models.
    """
    from scipy.stats import chi2
    from scipy.stats import f as f_distribution

    whole, left_out = complete(scores)
    (n, k), nan = whole.shape, math.nan
    ranks = block_ranks(whole)
    means = tuple(float(v) for v in ranks.mean(axis=0)) if n else (nan,) * k
    if n < 2:
        reason = f"Friedman's test needs two blocks, there are {n}"
        return Friedman(means, nan, k - 1.0, nan, nan, nan, k - 1.0, 0.0, nan, n, left_out, reason)
    between = float(((ranks.sum(axis=0) - n * (k + 1) / 2) ** 2).sum())
    within = float(((ranks - (k + 1) / 2) ** 2).sum())  # N k (k² - 1) / 12 without ties
    chi = (k - 1) * between / within if within else 0.0
    df1, df2 = k - 1.0, (k - 1.0) * (n - 1)
    if within and (ranks == ranks[0]).all():
        counts = np.unique(ranks[0], return_counts=True)[1]
        arrangements = math.factorial(k) // math.prod(math.factorial(int(c)) for c in counts)
        f, f_pvalue = math.inf, math.exp((1 - n) * math.log(arrangements))
    else:
        f = (n - 1) * chi / (n * (k - 1) - chi)
        f_pvalue = float(f_distribution.sf(f, df1, df2))
    return Friedman(
        means,
        chi,
        df1,
        float(chi2.sf(chi, df1)),
        12 * between / (n * k * (k + 1)),
        f,
        df1,
        df2,
        f_pvalue,
        n,
        left_out,
    )


@dataclass(frozen=True, eq=False)
class Nemenyi:
    """Nemenyi's test of the differences of k models' average ranks.

    ``ranks``: average ranks, 1 the best.
    ``order``: columns, best first.
    ``critical_difference``: average ranks that differ by more are told apart.
    ``pvalues``, of shape (k, k): of the pairs, with 1 on the diagonal.
    ``cliques``: maximal runs in rank order of two or more models within the critical difference.
    ``blocks``, ``left_out``: blocks used, and those that miss a value.
    ``reason``: why there is NaN; else empty.
    """

    ranks: tuple[float, ...]
    order: tuple[int, ...]
    critical_difference: float
    pvalues: FloatArray
    cliques: tuple[tuple[int, ...], ...]
    confidence_level: float
    blocks: int
    left_out: int
    reason: str = ""

    def to_frame(self) -> pd.DataFrame:
        """One row per pair, first less second."""
        from cmtrack._pandas import pd

        rows = [
            (i, j, self.ranks[i] - self.ranks[j], float(self.pvalues[i, j]))
            for i, j in combinations(range(len(self.ranks)), 2)
        ]
        return pd.DataFrame(rows, columns=["first", "second", "rank_difference", "pvalue"])


def nemenyi(scores: Any, confidence_level: float = 0.95) -> Nemenyi:
    """Nemenyi's comparison of all pairs (1963; Demšar 2006, JMLR 7, 1-30).

    The critical difference is q √(k(k+1) / (6N)), with q the quantile of the studentized range of k over √2. It is
    meant for no ties, and a pair's verdict depends on which other models take part (Benavoli, Corani and Mangili
    2016, JMLR 17, 1-10); `wilcoxon_holm` is free of that.

    ``scores``, of shape (N, k): blocks by models, larger is better; blocks with NaN are left out.

    ValueError if the scores are no finite matrix of at least two models, or the level does not lie between 0 and 1.
    """
    level = check_level(confidence_level)
    whole, left_out = complete(scores)
    n, k = whole.shape
    order, ranks = order_by_rank(whole), block_ranks(whole)
    means = tuple(float(v) for v in ranks.mean(axis=0)) if n else (math.nan,) * k
    if n < 2:
        reason = f"Nemenyi's test needs two blocks, there are {n}"
        return Nemenyi(means, order, math.nan, np.full((k, k), math.nan), (order,), level, n, left_out, reason)
    from scipy.stats import studentized_range

    gaps, unit = np.abs(np.subtract.outer(means, means)), math.sqrt(k * (k + 1) / (12 * n))
    distinct, place = np.unique(np.round(gaps / unit, 12), return_inverse=True)
    pvalues: FloatArray = np.clip(studentized_range.sf(distinct, k, math.inf), 0, 1)[place].reshape(k, k)
    reach = float(studentized_range.ppf(level, k, math.inf)) * unit
    runs = cliques(order, gaps > reach)
    return Nemenyi(means, order, reach, pvalues, runs, level, n, left_out)
