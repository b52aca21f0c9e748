"""Wilcoxon's signed-rank test of pairs of models over data sets."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cmtrack.comparison.repeated.blocks import as_differences, as_level, complete, order_by_rank, settled
from cmtrack.comparison.repeated.pairs import Pairwise, compare_all
from cmtrack.comparison.repeated.student import RepeatedDifference
from cmtrack.statistics.inputs import FloatArray

_EXACT = 50  # differences; SciPy's own limit


def wilcoxon_signed_rank(
    differences: Any, confidence_level: float = 0.95, *, scale: float | None = None
) -> RepeatedDifference:
    """Signed-rank test (Wilcoxon 1945, Biometrics Bulletin 1, 80-83) with the Hodges-Lehmann estimate and interval.

    Differences of zero are dropped. ``method`` says which distribution of the rest was taken: "exact" is SciPy's, for
    at most 50 without ties; "exact, ties" the one of their own tied ranks, for at most 50 (Streitberg and Röhmel
    1986, Statistical Software Newsletter 12, 10-17), where SciPy has an approximation that rejects what no test of so
    few can; "normal" is SciPy's approximation with the correction for ties, for more.

    The interval (Hodges and Lehmann 1963, Ann. Math. Stat. 34, 598-611) is that of the Walsh averages, zeros
    included; with zeros or ties it and the p-value may differ by a hair in what they reject.

    Parameters
    ----------
    differences : array-like of shape (N,)
        First model less second; NaN is left out.
    confidence_level : float, default 0.95
    scale : float, optional
        The largest score behind the differences; what differs by less than 1e-12 of it is a tie. By default the
        largest difference.

    Raises
    ------
    ValueError
        If the level is not between 0 and 1, or the differences no finite vector.
    """
    level = as_level(confidence_level)
    values, left_out = as_differences(differences)
    n, nan = len(values), math.nan
    if not n:
        reason = "there is no block with a difference"
        return RepeatedDifference(nan, nan, nan, nan, nan, nan, nan, 0, left_out, "none", reason)
    clean = settled(values, np.abs(values).max() if scale is None else scale)
    pvalue, statistic, method = _test(clean[clean != 0])
    estimate, low, high = _hodges_lehmann(values, level)
    reason = "" if low == low else f"{n} blocks are too few for an interval at level {level:g}"
    return RepeatedDifference(estimate, nan, nan, statistic, low, high, pvalue, n, left_out, method, reason)


def _test(values: FloatArray) -> tuple[float, float, str]:
    """p-value, sum of positive less that of negative ranks, and method, of differences that are not zero."""
    from scipy.stats import rankdata, wilcoxon

    n = len(values)
    if not n:
        return 1.0, 0.0, "exact"
    ranks = rankdata(np.abs(values))
    statistic = float((ranks * np.sign(values)).sum())
    if n > _EXACT:
        return float(wilcoxon(values).pvalue), statistic, "normal"
    if len(np.unique(ranks)) == n:
        return float(wilcoxon(values, method="exact").pvalue), statistic, "exact"
    law = _law(np.rint(2 * ranks).astype(np.int64))  # twice the ranks are whole
    least = round(float(ranks.sum()) - abs(statistic))  # twice the smaller of the two sums
    return min(1.0, 2 * float(law[: least + 1].sum())), statistic, "exact, ties"


def _law(ranks: Any) -> FloatArray:
    """Probability of every sum of whole-numbered ranks when each counts with probability one half."""
    law = np.zeros(int(ranks.sum()) + 1)
    law[0] = 1.0
    for rank in ranks:
        shifted = np.zeros_like(law)
        shifted[rank:] = law[: len(law) - rank]
        law = (law + shifted) / 2
    return law


def _hodges_lehmann(values: FloatArray, level: float) -> tuple[float, float, float]:
    """Median of the Walsh averages, and the two of them that bound the interval (NaN if there are too few)."""
    n = len(values)
    rows, columns = np.triu_indices(n)
    walsh = np.sort((values[rows] + values[columns]) / 2)
    estimate = float(np.median(walsh))
    below = int((2 * np.cumsum(_law(np.arange(1, n + 1))) <= 1 - level).sum())  # so many lie outside on either side
    if not below:
        return estimate, math.nan, math.nan
    return estimate, float(walsh[below - 1]), float(walsh[-below])


def wilcoxon_holm(scores: Any, confidence_level: float = 0.95) -> Pairwise:
    """Signed-rank tests of all pairs of models, adjusted by Holm.

    Recommended over comparisons of average ranks by Benavoli, Corani and Mangili (2016, JMLR 17, 1-10): the verdict
    on a pair depends on no other model except through the number of pairs. Blocks must be independent.

    Parameters
    ----------
    scores : array-like of shape (N, k)
        Blocks by models, larger is better; blocks with NaN are left out.
    confidence_level : float, default 0.95

    Returns
    -------
    Pairwise
        In order of average rank. The note says if so few blocks can reject nothing, whatever their scores.

    Raises
    ------
    ValueError
        If the scores are no finite matrix of at least two models, or the level does not lie between 0 and 1.
    """
    level = as_level(confidence_level)
    kept, left_out = complete(scores)
    n, k = kept.shape
    scale = float(np.abs(kept).max()) if n else 1.0

    def test(i: int, j: int) -> RepeatedDifference:
        return wilcoxon_signed_rank(kept[:, i] - kept[:, j], level, scale=scale)

    return compare_all(test, order_by_rank(kept), level, (n, left_out), _too_few(n, k, level))


def _too_few(n: int, k: int, level: float) -> str:
    """The least p-value of N signed ranks is 2^(1 - N); Holm multiplies it by the number of pairs."""
    pairs, alpha = k * (k - 1) // 2, 1 - level
    needed = 1
    while pairs * 2.0 ** (1 - needed) > alpha:
        needed += 1
    if n >= needed:
        return ""
    least = "1 pair" if pairs == 1 else f"{pairs} pairs"
    return f"{n} blocks can reject nothing at level {level:g} for {least}, whatever the scores: {needed} are needed"
