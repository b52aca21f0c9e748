"""Differences of two models over folds, seeds or data sets, tests of all pairs, and cliques of models."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtr, stdtr, stdtrit

from cmtrack.comparison.repeated._scores import as_differences, complete, order_by_rank, settled
from cmtrack.metrics.intervals import check_level, holm, normal_quantile
from cmtrack.statistics.inputs import BoolArray, FloatArray

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class RepeatedDifference:
    """The difference of two models over repeated runs.

    ``difference``: mean over the blocks; for the signed-rank test the Hodges-Lehmann estimate (median of the Walsh
    averages).
    ``standard_error``, ``df``: of the mean, and its degrees of freedom (infinite: normal); NaN for the signed-rank
    test.
    ``statistic``: t, or the sum of positive less that of negative ranks.
    ``low``, ``high``: interval of the difference at the confidence level, for this pair alone.
    ``pvalue``: two-sided, unadjusted.
    ``blocks``, ``left_out``: blocks used, and those without a difference.
    ``reason``: why there is NaN, or what the numbers do not cover; else empty.
    ``test_rows``: whether the sampling error of the test rows was known.
    """

    difference: float
    standard_error: float
    df: float
    statistic: float
    low: float
    high: float
    pvalue: float
    blocks: int
    left_out: int
    method: str
    reason: str = ""
    test_rows: bool = False

    def reversed(self) -> RepeatedDifference:
        """Second less first."""
        difference, statistic = 0.0 - self.difference, 0.0 - self.statistic  # 0 - 0 is no negative zero
        return replace(self, difference=difference, statistic=statistic, low=0.0 - self.high, high=0.0 - self.low)

    def to_frame(self) -> pd.DataFrame:
        """One row."""
        from cmtrack._pandas import pd

        return pd.DataFrame([vars(self)])


def corrected_resampled_t(
    differences: Any, test_train_ratio: float, confidence_level: float = 0.95, *, test_error: float = math.nan
) -> RepeatedDifference:
    """Corrected resampled t-test of Nadeau and Bengio (2003, Machine Learning 52, 239-281).

    Folds share training rows, so their scores are not independent, and the ordinary t-test rejects far too often.
    The variance of the mean is s² · (1/J + n_test/n_train) in place of s²/J, with J - 1 degrees of freedom.

    The spread s of a few folds can be small by luck, smaller than the error of each fold's own test rows allows. As
    the folds' test rows are disjoint, the rows alone give the mean an error of ``test_error`` = √(Σ e_j²) / J, where
    e_j is the paired standard error of fold j's difference. It is an error of the same mean, and is not added: the
    spread over disjoint rows holds it already. Where it is given, the wider of the two intervals is taken, and the
    larger p-value: a difference is significant only if it is so by both. The probability of a false positive is
    therefore at most that of the corrected t-test (an intersection-union test; Berger 1982, Technometrics 24,
    295-300).

    ``differences``, of shape (J,): first model less second in each fold or random split, over all repetitions; NaN is
    left out.
    ``test_train_ratio``: rows of a test part over rows of its training part: 1 / (K - 1) in K-fold cross-validation,
    also if that is repeated.
    ``test_error``: standard error of the mean difference due to the sampling of the test rows; NaN if unknown.

    The result: NaN with a reason for fewer than two differences. Without any variance the interval is a point and the
    p-value 1 or 0. The method is "corrected resampled t", or "test rows" where their error is the wider one.

    ValueError if the ratio is not positive, the error negative or infinite, the level not between 0 and 1, or the
    differences no finite vector.
    """
    ratio = as_ratio(test_train_ratio)
    values, left_out = as_differences(differences)
    n = len(values)
    variance = float(values.var(ddof=1)) * (1 / n + ratio) if n > 1 else math.nan
    mean = float(values.mean()) if n else math.nan
    reason = "" if n > 1 else f"a variance needs two differences, there are {n}"
    by_spread = by_student(mean, variance, n - 1.0, confidence_level, (n, left_out), "corrected resampled t", reason)
    _check_error(test_error)
    if n < 2 or math.isnan(test_error):
        return by_spread
    by_rows = by_student(mean, test_error**2, math.inf, confidence_level, (n, left_out), "test rows", "")
    wider = by_rows if by_rows.high - by_rows.low > by_spread.high - by_spread.low else by_spread
    return replace(wider, pvalue=max(by_rows.pvalue, by_spread.pvalue), test_rows=True)


def as_ratio(test_train_ratio: float) -> float:
    """Check the rows of a test part over those of its training part."""
    if not 0 < test_train_ratio < math.inf:
        raise ValueError(f"test_train_ratio must be positive and finite, got {test_train_ratio!r}")
    return float(test_train_ratio)


def seed_differences(
    differences: Any, test_error: float = math.nan, confidence_level: float = 0.95
) -> RepeatedDifference:
    """Mean difference of two models over seeds, all judged on the same test rows.

    Two things vary: the seeds, and the test rows. By the law of total variance, that of the mean over J seeds is the
    mean of the rows' part given the seeds, ``test_error²``, plus the seeds' part, of which s²/J is the estimate. More
    seeds shrink only the second. As s² is measured on these rows, it also holds how rows and seeds interact, and
    ``test_error²`` holds that once more: the sum is on the safe side, by less than s²/J.

    The degrees of freedom are Satterthwaite's (1946, Biometrics Bulletin 2, 110-114): with V = A + B, where B = s²/J
    has J - 1 and A, from many rows, as good as infinitely many, they are V² / (B² / (J - 1)). They lie between J - 1
    (seeds alone) and infinity (rows alone).

    ``differences``, of shape (J,): first model less second, seed by seed; NaN is left out.
    ``test_error``: standard error of the seed-averaged difference due to the sampling of the test rows: the one of the
    rows' influence values, averaged over the seeds. NaN if unknown; the result then speaks of these test rows only, and
    its reason says so.

    The result: NaN with a reason for fewer than two seeds, of whose variance then nothing is known.

    ValueError if the error is negative or infinite, the level not between 0 and 1, or the differences no finite vector.
    """
    _check_error(test_error)
    values, left_out = as_differences(differences)
    n = len(values)
    mean = float(values.mean()) if n else math.nan
    has_error = not math.isnan(test_error)
    if n < 2:
        reason = f"the seeds' variance needs two seeds, there are {n}"
        return by_student(mean, math.nan, math.nan, confidence_level, (n, left_out), "seeds", reason)
    seeds = float(values.var(ddof=1)) / n
    total = seeds + (test_error**2 if has_error else 0.0)
    df = (n - 1.0) * (total / seeds) ** 2 if seeds > 0 else (math.inf if has_error else n - 1.0)
    method = "seeds and test rows" if has_error else "seeds"
    reason = "" if has_error else "the sampling error of the test rows is unknown: this holds for these test rows only"
    return by_student(mean, total, df, confidence_level, (n, left_out), method, reason)


def _check_error(test_error: float) -> None:
    if test_error < 0 or math.isinf(test_error):
        raise ValueError(f"test_error must be finite and not negative, or NaN, got {test_error!r}")


def by_student(
    mean: float, variance: float, df: float, level: float, blocks: tuple[int, int], method: str, reason: str
) -> RepeatedDifference:
    """A mean with the variance of that mean, judged by Student's distribution."""
    check_level(level)
    error = math.sqrt(variance)
    if math.isnan(error):
        nan = math.nan
        return RepeatedDifference(mean, nan, nan, nan, nan, nan, nan, *blocks, method, reason)
    if error == 0 and mean == 0:  # that no block differs does not make the models equal
        reason = reason or "no block differs"
        return RepeatedDifference(mean, 0.0, df, 0.0, math.nan, math.nan, 1.0, *blocks, method, reason)
    if error == 0:
        statistic = math.copysign(math.inf, mean)
        return RepeatedDifference(mean, 0.0, df, statistic, mean, mean, 0.0, *blocks, method, reason)
    statistic = mean / error
    quantile = normal_quantile(level) if math.isinf(df) else float(stdtrit(df, 0.5 + level / 2))
    tail = ndtr(-abs(statistic)) if math.isinf(df) else stdtr(df, -abs(statistic))
    reach = quantile * error
    return RepeatedDifference(
        mean, error, df, statistic, mean - reach, mean + reach, 2 * float(tail), *blocks, method, reason
    )


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

    ``differences``, of shape (N,): first model less second; NaN is left out.
    ``scale``: the largest score behind the differences; what differs by less than 1e-12 of it is a tie. By default the
    largest difference.

    ValueError if the level is not between 0 and 1, or the differences no finite vector.
    """
    level = check_level(confidence_level)
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

    ``scores``, of shape (N, k): blocks by models, larger is better; blocks with NaN are left out.

    The result: in order of average rank. The note says if so few blocks can reject nothing, whatever their scores.

    ValueError if the scores are no finite matrix of at least two models, or the level does not lie between 0 and 1.
    """
    level = check_level(confidence_level)
    whole, left_out = complete(scores)
    n, k = whole.shape
    scale = float(np.abs(whole).max()) if n else 1.0

    def test(i: int, j: int) -> RepeatedDifference:
        return wilcoxon_signed_rank(whole[:, i] - whole[:, j], level, scale=scale)

    return compare_all(test, order_by_rank(whole), level, (n, left_out), _too_few(n, k, level))


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


@dataclass(frozen=True)
class Pair:
    """Two models.

    ``first``, ``second``: columns of the scores.
    ``difference``: first less second.
    ``adjusted_pvalue``: by Holm over all pairs.
    """

    first: int
    second: int
    difference: RepeatedDifference
    adjusted_pvalue: float

    def reversed(self) -> Pair:
        """Second less first."""
        return Pair(self.second, self.first, self.difference.reversed(), self.adjusted_pvalue)


@dataclass(frozen=True)
class Pairwise:
    """All pairs of k models.

    ``pairs``: ``first < second``; ``pairwise[i, j]`` gives any pair in either direction.
    ``order``: columns, best first.
    ``cliques``: maximal runs in this order of two or more models of which no pair is told apart.
    ``confidence_level``: a pair is told apart where its adjusted p-value is at most ``1 - confidence_level``.
    ``blocks``, ``left_out``: blocks used, and those that miss a value.
    ``note``: what these blocks cannot show; else empty.
    """

    pairs: tuple[Pair, ...]
    order: tuple[int, ...]
    cliques: tuple[tuple[int, ...], ...]
    confidence_level: float
    blocks: int
    left_out: int
    note: str = ""

    def __getitem__(self, models: tuple[int, int]) -> Pair:
        for pair in self.pairs:
            if (pair.first, pair.second) == models:
                return pair
            if (pair.second, pair.first) == models:
                return pair.reversed()
        raise KeyError(f"there is no pair {models!r}")

    def apart(self, first: int, second: int) -> bool:
        """True if two models differ at the confidence level; False without a p-value."""
        return self[first, second].adjusted_pvalue <= 1 - self.confidence_level

    def to_frame(self) -> pd.DataFrame:
        """One row per pair."""
        from cmtrack._pandas import pd

        rows = [
            {"first": pair.first, "second": pair.second}
            | vars(pair.difference)
            | {"adjusted_pvalue": pair.adjusted_pvalue, "apart": self.apart(pair.first, pair.second)}
            for pair in self.pairs
        ]
        return pd.DataFrame(rows)


def cliques(order: Sequence[int], apart: BoolArray) -> tuple[tuple[int, ...], ...]:
    """Cliques: maximal runs of consecutive models without a significant difference.

    ``order``: columns, best first.
    ``apart``, of shape (k, k), bool: symmetric, by column.

    The result: columns, best first; a model that is told apart from both its neighbours is in none.
    """
    groups: list[tuple[int, ...]] = []
    reached = 0
    for start in range(len(order)):
        stop = start + 1
        while stop < len(order) and not apart[order[stop], list(order[start:stop])].any():
            stop += 1
        if stop - start > 1 and stop > reached:
            groups.append(tuple(int(v) for v in order[start:stop]))
            reached = stop
    return tuple(groups)


def compare_all(
    test: Callable[[int, int], RepeatedDifference],
    order: tuple[int, ...],
    confidence_level: float,
    blocks: tuple[int, int],
    note: str = "",
) -> Pairwise:
    """Test every pair, adjust by Holm, find the cliques."""
    k = len(order)
    models: list[tuple[int, int]] = list(combinations(range(k), 2))
    results = [test(i, j) for i, j in models]
    adjusted = holm([one.pvalue for one in results])
    apart: Any = np.zeros((k, k), dtype=np.bool_)
    for (i, j), pvalue in zip(models, adjusted, strict=True):
        apart[i, j] = apart[j, i] = pvalue <= 1 - confidence_level
    pairs = tuple(Pair(i, j, one, p) for (i, j), one, p in zip(models, results, adjusted, strict=True))
    return Pairwise(pairs, order, cliques(order, apart), confidence_level, *blocks, note)
