"""Differences of two models over folds or seeds, and tests of all pairs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

from scipy.special import ndtr, stdtr, stdtrit

from cmtrack.comparison.repeated._scores import as_differences
from cmtrack.metrics.intervals import check_level, holm, normal_quantile

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class RepeatedDifference:
    """The difference of two models over repeated runs.

    ``difference``: mean over the blocks.
    ``standard_error``, ``df``: of the mean, and its degrees of freedom (infinite: normal).
    ``statistic``: t.
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
        # 0 - 0 is no negative zero
        difference, statistic = 0.0 - self.difference, 0.0 - self.statistic
        return replace(
            self,
            difference=difference,
            statistic=statistic,
            low=0.0 - self.high,
            high=0.0 - self.low,
        )

    def to_frame(self) -> pd.DataFrame:
        """One row."""
        from cmtrack._pandas import pd

        return pd.DataFrame([vars(self)])


def corrected_resampled_t(
    differences: Any,
    test_train_ratio: float,
    confidence_level: float = 0.95,
    *,
    test_error: float = math.nan,
) -> RepeatedDifference:
    """Corrected resampled t-test of Nadeau and Bengio (2003, Machine Learning 52, 239-281).

    Folds share training rows, so their scores are not independent, and the ordinary t-test rejects
    far too often. The variance of the mean is s² · (1/J + n_test/n_train) in place of s²/J, with J
    - 1 degrees of freedom.

    The spread s of a few folds can be small by luck, smaller than the error of each fold's own test
    rows allows. As the folds' test rows are disjoint, the rows alone give the mean an error of
    ``test_error`` = √(Σ e_j²) / J, where e_j is the paired standard error of fold j's difference.
    It is an error of the same mean, and is not added: the spread over disjoint rows holds it
    already. Where it is given, the wider of the two intervals is taken, and the larger p-value: a
    difference is significant only if it is so by both. The probability of a false positive is
    therefore at most that of the corrected t-test (an intersection-union test; Berger 1982,
    Technometrics 24, 295-300).

    ``differences``, of shape (J,): first model less second in each fold or random split, over all
    repetitions; NaN is left out.
    ``test_train_ratio``: rows of a test part over rows of its training part: 1 / (K - 1) in K-fold
    cross-validation, also if that is repeated.
    ``test_error``: standard error of the mean difference due to the sampling of the test rows; NaN
    if unknown.

    The result: NaN with a reason for fewer than two differences. Without any variance the interval
    is a point and the p-value 1 or 0. The method is "corrected resampled t", or "test rows" where
    their error is the wider one.

    ValueError if the ratio is not positive, the error negative or infinite, the level not between 0
    and 1, or the differences no finite vector.
    """
    ratio = as_ratio(test_train_ratio)
    values, left_out = as_differences(differences)
    n = len(values)
    variance = float(values.var(ddof=1)) * (1 / n + ratio) if n > 1 else math.nan
    mean = float(values.mean()) if n else math.nan
    reason = "" if n > 1 else f"a variance needs two differences, there are {n}"
    by_spread = by_student(
        mean, variance, n - 1.0, confidence_level, (n, left_out), "corrected resampled t", reason
    )
    _check_error(test_error)
    if n < 2 or math.isnan(test_error):
        return by_spread
    by_rows = by_student(
        mean, test_error**2, math.inf, confidence_level, (n, left_out), "test rows", ""
    )
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

    Two things vary: the seeds, and the test rows. By the law of total variance, that of the mean
    over J seeds is the mean of the rows' part given the seeds, ``test_error²``, plus the seeds'
    part, of which s²/J is the estimate. More seeds shrink only the second. As s² is measured on
    these rows, it also holds how rows and seeds interact, and ``test_error²`` holds that once more:
    the sum is on the safe side, by less than s²/J.

    The degrees of freedom are Satterthwaite's (1946, Biometrics Bulletin 2, 110-114): with V = A +
    B, where B = s²/J has J - 1 and A, from many rows, as good as infinitely many, they are V² / (B²
    / (J - 1)). They lie between J - 1 (seeds alone) and infinity (rows alone).

    ``differences``, of shape (J,): first model less second, seed by seed; NaN is left out.
    ``test_error``: standard error of the seed-averaged difference due to the sampling of the test
    rows: the one of the rows' influence values, averaged over the seeds. NaN if unknown; the result
    then speaks of these test rows only, and its reason says so.

    The result: NaN with a reason for fewer than two seeds, of whose variance then nothing is known.

    ValueError if the error is negative or infinite, the level not between 0 and 1, or the
    differences no finite vector.
    """
    _check_error(test_error)
    values, left_out = as_differences(differences)
    n = len(values)
    mean = float(values.mean()) if n else math.nan
    has_error = not math.isnan(test_error)
    if n < 2:
        reason = f"the seeds' variance needs two seeds, there are {n}"
        return by_student(
            mean, math.nan, math.nan, confidence_level, (n, left_out), "seeds", reason
        )
    seeds = float(values.var(ddof=1)) / n
    total = seeds + (test_error**2 if has_error else 0.0)
    df = math.inf if has_error else n - 1.0
    if seeds > 0:
        df = (n - 1.0) * (total / seeds) ** 2
    method = "seeds and test rows"
    reason = ""
    if not has_error:
        method = "seeds"
        reason = (
            "the sampling error of the test rows is unknown: this holds for these test rows only"
        )
    return by_student(mean, total, df, confidence_level, (n, left_out), method, reason)


def _check_error(test_error: float) -> None:
    if test_error < 0 or math.isinf(test_error):
        raise ValueError(f"test_error must be finite and not negative, or NaN, got {test_error!r}")


def by_student(
    mean: float,
    variance: float,
    df: float,
    level: float,
    blocks: tuple[int, int],
    method: str,
    reason: str,
) -> RepeatedDifference:
    """A mean with the variance of that mean, judged by Student's distribution."""
    check_level(level)
    error = math.sqrt(variance)
    if math.isnan(error):
        nan = math.nan
        return RepeatedDifference(mean, nan, nan, nan, nan, nan, nan, *blocks, method, reason)
    if error == 0 and mean == 0:  # that no block differs does not make the models equal
        reason = reason or "no block differs"
        return RepeatedDifference(
            mean, 0.0, df, 0.0, math.nan, math.nan, 1.0, *blocks, method, reason
        )
    if error == 0:
        statistic = math.copysign(math.inf, mean)
        return RepeatedDifference(
            mean, 0.0, df, statistic, mean, mean, 0.0, *blocks, method, reason
        )
    statistic = mean / error
    quantile = normal_quantile(level) if math.isinf(df) else float(stdtrit(df, 0.5 + level / 2))
    tail = ndtr(-abs(statistic)) if math.isinf(df) else stdtr(df, -abs(statistic))
    reach = quantile * error
    return RepeatedDifference(
        mean,
        error,
        df,
        statistic,
        mean - reach,
        mean + reach,
        2 * float(tail),
        *blocks,
        method,
        reason,
    )


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
    ``confidence_level``: a pair is told apart where its adjusted p-value is at most ``1 -
    confidence_level``.
    ``blocks``, ``left_out``: blocks used, and those that miss a value.
    """

    pairs: tuple[Pair, ...]
    order: tuple[int, ...]
    confidence_level: float
    blocks: int
    left_out: int

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
            | {
                "adjusted_pvalue": pair.adjusted_pvalue,
                "apart": self.apart(pair.first, pair.second),
            }
            for pair in self.pairs
        ]
        return pd.DataFrame(rows)


def compare_all(
    test: Callable[[int, int], RepeatedDifference],
    order: tuple[int, ...],
    confidence_level: float,
    blocks: tuple[int, int],
) -> Pairwise:
    """Test every pair, and adjust by Holm."""
    models = list(combinations(range(len(order)), 2))
    results = [test(i, j) for i, j in models]
    adjusted = holm([one.pvalue for one in results])
    pairs = tuple(
        Pair(i, j, one, p) for (i, j), one, p in zip(models, results, adjusted, strict=True)
    )
    return Pairwise(pairs, order, confidence_level, *blocks)
