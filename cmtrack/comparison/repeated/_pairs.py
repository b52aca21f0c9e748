"""Differences between two models over folds or seeds, and tests of all pairs of models."""

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
    """Difference between two models over repeated runs.

    ``difference``: mean difference over the blocks.
    ``standard_error``: standard error of the mean difference.
    ``df``: degrees of freedom of the standard error; infinite if the normal distribution is used.
    ``statistic``: the t statistic.
    ``low``, ``high``: ends of the interval of the difference at the confidence level. The interval
    is not adjusted for other pairs of models.
    ``pvalue``: two-sided p-value, unadjusted.
    ``blocks``: number of blocks that are used.
    ``left_out``: number of blocks in which the difference is unknown.
    ``reason``: reason why numbers are NaN, or the source of error that they do not include;
    otherwise empty.
    ``test_rows``: whether the sampling error due to the test rows is known.
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
        """Return the difference with the opposite sign (second model minus first model)."""
        # Subtracting from 0 avoids negative zeros.
        difference, statistic = 0.0 - self.difference, 0.0 - self.statistic
        return replace(
            self,
            difference=difference,
            statistic=statistic,
            low=0.0 - self.high,
            high=0.0 - self.low,
        )

    def to_frame(self) -> pd.DataFrame:
        """Return a frame with a single row."""
        from cmtrack._pandas import pd

        return pd.DataFrame([vars(self)])


def corrected_resampled_t(
    differences: Any,
    test_train_ratio: float,
    confidence_level: float = 0.95,
    *,
    test_error: float = math.nan,
) -> RepeatedDifference:
    """Compute the corrected resampled t-test of Nadeau and Bengio (2003).

    Folds share training rows, so their scores are not independent, and the ordinary t-test rejects
    far too often. The corrected test (Machine Learning 52, 239-281) uses the variance s² · (1/J +
    n_test/n_train) of the mean instead of s²/J, with J - 1 degrees of freedom.

    If there are few folds, their spread s can be small by chance, even smaller than the sampling
    error of the folds' test rows. The test rows of the folds are disjoint, so the sampling of these
    rows alone causes a standard error of the mean of ``test_error`` = √(Σ e_j²) / J, where e_j is
    the paired standard error of fold j's difference. The sampling error is not added to the spread,
    because the spread over disjoint rows already includes this error. If ``test_error`` is given,
    the result contains the wider of the two intervals and the larger of the two p-values, so a
    difference must be significant according to both methods. The probability of a false positive is
    therefore at most the probability for the corrected t-test alone (an intersection-union test;
    Berger 1982, Technometrics 24, 295-300).

    ``differences``, of shape (J,): first model minus second model in each fold or random split,
    over all repetitions; NaN is ignored.
    ``test_train_ratio``: number of test rows divided by number of training rows: 1 / (K - 1) for
    K-fold cross-validation, repeated or not.
    ``test_error``: standard error of the mean difference due to the sampling of the test rows; NaN
    if unknown.

    If there are fewer than two differences, the result is NaN and ``reason`` explains why. If all
    differences are equal, the interval is a point and the p-value is 0. If all differences are 0,
    the p-value is 1 and the interval is undefined. The method is "corrected resampled t", or "test
    rows" if the sampling error of the test rows leads to the wider interval.

    Raises ValueError if the ratio is not positive, the error is negative or infinite, the level is
    not between 0 and 1, or the differences are not a finite vector.
    """
    ratio = as_ratio(test_train_ratio)
    values, left_out = as_differences(differences)
    n = len(values)
    variance = float(values.var(ddof=1)) * (1 / n + ratio) if n > 1 else math.nan
    mean = float(values.mean()) if n else math.nan
    reason = "" if n > 1 else f"a variance needs at least two differences, got {n}"
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
    """Check the ratio of test rows to training rows, and return it as a float."""
    if not 0 < test_train_ratio < math.inf:
        raise ValueError(f"test_train_ratio must be positive and finite, got {test_train_ratio!r}")
    return float(test_train_ratio)


def seed_differences(
    differences: Any, test_error: float = math.nan, confidence_level: float = 0.95
) -> RepeatedDifference:
    """Compute the mean difference of two models over seeds that share their test rows.

    The results vary with the seeds and with the test rows. The variance of the mean over J seeds is
    therefore the sum of two parts (law of total variance). The part due to the test rows, given the
    seeds, is ``test_error²``. The part due to the seeds is estimated by s²/J, and only this part
    decreases as the number of seeds grows. Because s² is measured on the test rows, both s² and
    ``test_error²`` include the interaction of rows and seeds. The sum of the two parts is therefore
    conservative, by less than s²/J.

    The degrees of freedom are computed by Satterthwaite's formula (1946, Biometrics Bulletin 2,
    110-114) for a variance V = A + B. The part B = s²/J has J - 1 degrees of freedom, and the part
    A has practically infinitely many, because it is computed from many rows. The formula yields V²
    / (B² / (J - 1)), which is between J - 1 (if only the seeds vary) and infinity (if only the rows
    vary).

    ``differences``, of shape (J,): first model minus second model for each seed; NaN is ignored.
    ``test_error``: standard error of the seed-averaged difference due to the sampling of the test
    rows, computed from the rows' influence values averaged over the seeds. If the standard error is
    unknown (NaN), the result holds only for the given test rows, and ``reason`` states this.

    If there are fewer than two seeds, the variance is unknown, and the result is NaN with a reason.

    Raises ValueError if the error is negative or infinite, the level is not between 0 and 1, or the
    differences are not a finite vector.
    """
    _check_error(test_error)
    values, left_out = as_differences(differences)
    n = len(values)
    mean = float(values.mean()) if n else math.nan
    has_error = not math.isnan(test_error)
    if n < 2:
        reason = f"a variance over seeds needs at least two seeds, got {n}"
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
            "the sampling error of the test rows is unknown: the result holds only for these "
            "test rows"
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
    """Return a mean's interval and p-value from its variance and Student's t distribution."""
    check_level(level)
    error = math.sqrt(variance)
    if math.isnan(error):
        nan = math.nan
        return RepeatedDifference(mean, nan, nan, nan, nan, nan, nan, *blocks, method, reason)
    if error == 0 and mean == 0:  # no block differs, but the models need not be equal
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
    """A test of two models.

    ``first``, ``second``: the models' columns in the scores.
    ``difference``: first model minus second model.
    ``adjusted_pvalue``: p-value adjusted for the number of pairs by Holm's method.
    """

    first: int
    second: int
    difference: RepeatedDifference
    adjusted_pvalue: float

    def reversed(self) -> Pair:
        """Return the pair in reverse order, with the difference second model minus first model."""
        return Pair(self.second, self.first, self.difference.reversed(), self.adjusted_pvalue)


@dataclass(frozen=True)
class Pairwise:
    """Tests of all pairs of k models.

    ``pairs``: all pairs with ``first < second``. Use ``pairwise[i, j]`` to get a pair in either
    order.
    ``order``: columns of the scores, sorted by the models' means with the best first.
    ``confidence_level``: two models differ significantly if their adjusted p-value is at most ``1 -
    confidence_level``.
    ``blocks``: number of blocks that are used.
    ``left_out``: number of blocks in which a model has no value.
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
        """Return whether two models differ significantly; False if the p-value is undefined."""
        return self[first, second].adjusted_pvalue <= 1 - self.confidence_level

    def to_frame(self) -> pd.DataFrame:
        """Return a frame with one row per pair."""
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
    """Test every pair of models, with p-values adjusted by Holm's method."""
    models = list(combinations(range(len(order)), 2))
    results = [test(i, j) for i, j in models]
    adjusted = holm([one.pvalue for one in results])
    pairs = tuple(
        Pair(i, j, one, p) for (i, j), one, p in zip(models, results, adjusted, strict=True)
    )
    return Pairwise(pairs, order, confidence_level, *blocks)
