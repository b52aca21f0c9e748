"""Statistics over the months after a review: joined looks, the gain, and how alike months are.

A month is a data set of labelled rows, whatever its dates. :class:`MonthEstimate` is the value of
one model, or the difference between two models, on these rows. The functions of this module need
only such estimates, and neither rows nor MLflow. They take the rows of different months as
independent.

The rows that chose a champion favour it. :class:`Life` therefore states gains only from months
after the champion was chosen.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import Enum
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.special import chdtrc

from cmtrack import notebook
from cmtrack.base import BaseEvaluation
from cmtrack.comparison.comparability import design_of_rows, in_order_of
from cmtrack.comparison.differences import Difference, paired, paired_differences
from cmtrack.digits import count, in_words, p_equals, with_interval
from cmtrack.evaluation.gates import Gate, GateResult, with_rows_more
from cmtrack.metrics.intervals import normal_quantile, tango
from cmtrack.metrics.paired import FEW_DIFFERING, sign_quantile
from cmtrack.untrusted import printable

if TYPE_CHECKING:
    import pandas as pd

FEWEST_TYPICAL = 3
"""Fewest months that give an interval for a typical month."""
TINY = 1e-300
"""Smallest denominator, for quotients whose numerator is then 0."""
OF_DIFFERENCES = (-1.0, 1.0)
"""Range of the difference between two shares."""


class Shown(Enum):
    """Answer to the question whether a gain is shown by the rows."""

    BETTER = "better"
    WORSE = "worse"
    NOT_SHOWN = "not shown"


@dataclass(frozen=True)
class MonthEstimate:
    """Value of a model on a month's rows, or the difference between a new and an old model.

    Attributes
    ----------
    value, standard_error : float
    rows : float
        Number of rows; for a difference of shares, the number of rows in the denominator.
    only_new, only_old : float
        Number of rows that only the new model, or only the old model, predicts correctly. Both are
        NaN unless the estimate is the difference between two shares of the same rows.
    squares : float
        Sum of the squares of ``only_new - only_old`` over clusters; for independent rows, the
        number of rows in which the models differ.

    Raises
    ------
    ValueError
        If the number of rows is not positive.
    """

    value: float
    standard_error: float
    rows: float
    only_new: float = math.nan
    only_old: float = math.nan
    squares: float = math.nan

    def __post_init__(self) -> None:
        if not 0 < self.rows < math.inf:
            raise ValueError(f"rows must be a number above 0, got {self.rows!r}")

    @classmethod
    def of_counts(
        cls, only_new: float, only_old: float, rows: float, squares: float | None = None
    ) -> MonthEstimate:
        """Return the difference between two shares of the same rows.

        Raises
        ------
        ValueError
            If a count is negative, or if more rows differ than there are.
        """
        differing = only_new + only_old
        if not (min(only_new, only_old) >= 0 and differing <= rows):
            raise ValueError(
                f"counts must be at least 0 and at most {rows!r} together, got {only_new!r} and "
                f"{only_old!r}"
            )
        gap = only_new - only_old
        if squares is None:
            squares = differing
        variance = max(squares - gap**2 / rows, 0.0)
        return cls(gap / rows, math.sqrt(variance) / rows, rows, only_new, only_old, squares)

    @classmethod
    def of_pair(cls, new: BaseEvaluation, old: BaseEvaluation, metric: str) -> MonthEstimate:
        """Return the difference in a metric between two evaluations of the same rows.

        If the metric is a share of the same rows, the result has counts, unless the rows have
        sampling weights.
        """
        differences = paired_differences(new, old, metrics=[metric])
        difference = differences[metric]
        estimate = cls(difference.difference, difference.standard_error, float(new.n_samples))
        if not differences.paired:
            return estimate
        design = design_of_rows(new)
        pair = paired((new, in_order_of(new, old)), metric, design)
        if pair is None or pair.shares is None or design.is_sampled:
            return estimate
        shares = pair.shares
        return replace(
            estimate,
            rows=shares.n,
            only_new=float(shares.only_row[0, 1]),
            only_old=float(shares.only_row[1, 0]),
            squares=float(shares.squares[0, 1]),
        )

    @property
    def reversed(self) -> MonthEstimate:
        """The old model minus the new model."""
        return replace(self, value=0.0 - self.value, only_new=self.only_old, only_old=self.only_new)


# -- joined months ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Joined:
    """One estimate from the rows of several months.

    Attributes
    ----------
    value, standard_error, low, high : float
        The mean of the months, weighted by rows, its standard error and the ends of its interval.
        The ends are NaN if no row varies.
    statistic : float
        The value divided by its standard error under equal models.
    rows : float
    months : int
    confidence_level : float
    """

    value: float
    standard_error: float
    low: float
    high: float
    statistic: float
    rows: float
    months: int
    confidence_level: float = 0.95

    def check(self, gate: Gate) -> GateResult:
        """Decide a gate on a ``.difference`` by the joined months.

        Raises
        ------
        ValueError
            If the gate is not on the difference between two runs on all rows.
        """
        if not gate.difference or gate.column:
            raise ValueError(f"only a gate on .difference is joined, got {gate.text!r}")
        nan = math.nan
        difference = Difference(
            gate.metric, nan, nan, self.value, self.standard_error, self.low, self.high, nan
        )
        result = gate.check({gate.metric: self.value}, {}, difference)
        return with_rows_more(
            result, self.value, self.standard_error, self.rows, self.confidence_level
        )


def join_months(
    months: Iterable[MonthEstimate],
    *,
    bounds: tuple[float, float] = OF_DIFFERENCES,
    confidence_level: float = 0.95,
) -> Joined:
    """Join the estimates of several months.

    Parameters
    ----------
    months : iterable of MonthEstimate
    bounds : (low, high)
        Smallest and largest possible value of an estimate, at which its interval is cut.
    confidence_level : float

    Returns
    -------
    Joined
        For differences between shares, the result for all rows put together.

    Raises
    ------
    ValueError
        If there is no month.

    Notes
    -----
    Let b and c be the sums of ``only_new`` and ``only_old``, n the number of rows, and S the sum of
    ``squares``. The difference is (b - c) / n and the statistic is (b - c) / sqrt(S). The interval
    is Tango's, with b, c and n multiplied by min(1, (b + c) / S). If at most 8 rows differ, the
    exact sign test must agree, as in all paired comparisons. For any other metric, the value is
    Σ n d / Σ n with the standard error sqrt(Σ n² s²) / Σ n, and the interval is Wald's. It is then
    the mean of the months, not the metric of all rows put together.

    References
    ----------
    Tango, T. (1998). Statistics in Medicine 17, 891-908.

    Examples
    --------
    >>> from cmtrack.comparison import MonthEstimate, join_months
    >>> counts = [(60, 40, 1000), (220, 160, 4000), (55, 52, 1000), (118, 70, 2000)]
    >>> joined = join_months([MonthEstimate.of_counts(*month) for month in counts])
    >>> round(joined.value, 4), round(joined.low, 4), round(joined.high, 4)
    (0.0164, 0.0096, 0.0232)
    """
    estimates = list(months)
    if not estimates:
        raise ValueError("months must have at least one month, got none")
    quantile = normal_quantile(confidence_level)
    rows = sum(month.rows for month in estimates)
    value = sum(month.rows * month.value for month in estimates) / rows
    error = math.hypot(*(month.rows * month.standard_error for month in estimates)) / rows
    low, high = _wald(value, error, bounds, quantile)
    statistic = value / max(error, TINY)
    only_new = sum(month.only_new for month in estimates)
    only_old = sum(month.only_old for month in estimates)
    squares = sum(month.squares for month in estimates)
    if math.isfinite(only_new):
        low, high = _interval_of_shares(only_new, only_old, squares, rows, quantile)
        # If no row differs, the numerator is 0.
        statistic = (only_new - only_old) / math.sqrt(max(squares, TINY))
    return Joined(value, error, low, high, statistic, rows, len(estimates), confidence_level)


def _interval_of_shares(
    only_new: float, only_old: float, squares: float, rows: float, quantile: float
) -> tuple[float, float]:
    """Return Tango's interval for sums of counts, with the exact sign test for few rows."""
    differing = only_new + only_old
    # Clusters never make an interval narrower than independent rows do.
    factor = 1.0
    if squares > differing:
        factor = differing / squares
    first = np.array([only_old, only_new]) * factor
    ends = tango(first, first[::-1], rows * factor, quantile)
    is_few = differing <= FEW_DIFFERING and squares == differing
    if is_few and sign_quantile(only_new, only_old) < quantile:
        ends = np.maximum(ends, 0.0)
    return -float(ends[0]), float(ends[1])


def _wald(
    value: float, error: float, bounds: tuple[float, float], quantile: float
) -> tuple[float, float]:
    """Return Wald's interval, cut at the bounds; NaN if the standard error is 0 or unknown."""
    if not error > 0:
        return math.nan, math.nan
    return max(value - quantile * error, bounds[0]), min(value + quantile * error, bounds[1])


def challenger_level(challengers: int, confidence_level: float = 0.95) -> float:
    """Return the level of each interval if several challengers are compared with a champion.

    This is Bonferroni's correction: the probability that any challenger passes although none is
    better stays at most half of ``1 - confidence_level``.

    Raises
    ------
    ValueError
        If the number of challengers is below 1.
    """
    if challengers < 1:
        raise ValueError(f"challengers must be at least 1, got {challengers!r}")
    return 1 - (1 - confidence_level) / challengers


# -- gains -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Month:
    """One month in the life of a model: who was champion, and the differences on its rows.

    Attributes
    ----------
    name : str
        Name of the data set.
    champion : str
        Version that was champion before these rows were seen.
    rows : float
        Number of rows; for a share, the number of rows in its denominator.
    pairs : mapping of (new, old) to MonthEstimate
        Differences between two versions on these rows.
    """

    name: str
    champion: str
    rows: float
    pairs: Mapping[tuple[str, str], MonthEstimate]

    def pair(self, new: str, old: str) -> MonthEstimate | None:
        """Return the difference between two versions; None if they were not both evaluated."""
        if (new, old) in self.pairs:
            return self.pairs[new, old]
        if (old, new) in self.pairs:
            return self.pairs[old, new].reversed
        return None


@dataclass(frozen=True, repr=False)
class Gain:
    """Difference between a champion and an earlier version, on rows that did not choose it.

    Attributes
    ----------
    difference, low, high : float
        Difference and the ends of its interval.
    rows : float
    months : int
        Number of rows and of months that the difference is computed from.
    version, over : str
        The champion, and the version that it is compared with.
    how : {"direct", "chain", "in use"}
        "direct": both versions were evaluated on the same rows. "chain": the sum of the differences
        between successive champions, each on the next month. "in use": the mean over all months of
        the difference between that month's champion and ``over``.
    more_correct : float
        For accuracy, additional correct predictions. For another share, additional rows that the
        share counts. NaN if the metric is not a share.

    Examples
    --------
    >>> from cmtrack.comparison import Gain
    >>> Gain(0.02, 0.0004, 0.0401, 1000, 1, version="3", over="1")
    Gain(version 3 over version 1: 0.020 [0.0004, 0.040], direct, on 1,000 rows of one month)
    """

    difference: float
    low: float
    high: float
    rows: float
    months: int
    version: str
    over: str
    how: Literal["direct", "chain", "in use"] = "direct"
    more_correct: float = math.nan

    def shown(self, better: str = "higher") -> Shown:
        """Return whether the rows show that the version is better.

        ``better``: "higher" or "lower", the values of the metric that are better. With another
        text, such as "", no direction is better and nothing is shown.
        """
        if not self.low * self.high > 0 or better not in ("higher", "lower"):
            return Shown.NOT_SHOWN
        if (self.low > 0) == (better == "higher"):
            return Shown.BETTER
        return Shown.WORSE

    def to_dict(self) -> dict[str, Any]:
        """Return the gain as plain data."""
        return asdict(self)

    def to_frame(self) -> pd.DataFrame:
        """Return a frame with one row."""
        from cmtrack._pandas import pd

        return pd.DataFrame([self.to_dict()])

    def __repr__(self) -> str:
        gain = with_interval(self.difference, (self.low, self.high))
        return printable(
            f"Gain(version {self.version} over version {self.over}: {gain}, {self.how}, on "
            f"{count(self.rows)} rows of {_months(self.months)})"
        )

    def _repr_html_(self) -> str:
        return notebook.view(notebook.sentence(repr(self)))


@dataclass(frozen=True)
class Life:
    """The months of a model in order, and its champion today.

    If the champion changes from one month to the next, the earlier month counts as the month that
    chose the new champion, even if somebody moved the alias without a record.

    Attributes
    ----------
    months : sequence of Month
    champion : str
        Today's champion.
    bounds : (low, high)
        Smallest and largest possible difference.
    confidence_level : float

    Examples
    --------
    >>> from cmtrack.comparison import Life, Month, MonthEstimate
    >>> june = {("3", "1"): MonthEstimate.of_counts(60, 40, 1000)}
    >>> months = [Month("May", "1", 1000, {}), Month("June", "3", 1000, june)]
    >>> Life(months, "3").gain()
    Gain(version 3 over version 1: 0.020 [0.0004, 0.040], direct, on 1,000 rows of one month)
    """

    months: Sequence[Month]
    champion: str
    bounds: tuple[float, float] = OF_DIFFERENCES
    confidence_level: float = 0.95

    @property
    def champions(self) -> list[str]:
        """The champion before each month, and today's champion."""
        return [*(month.champion for month in self.months), self.champion]

    @property
    def changes(self) -> list[int]:
        """Places of the months after which the champion changed."""
        pairs = enumerate(pairwise(self.champions))
        return [place for place, (old, new) in pairs if old != new]

    def anchor(self, over: str) -> str:
        """Return the version that "first", "previous" or a version names."""
        champions = self.champions
        previous = self.champion
        if self.changes:
            previous = champions[self.changes[-1]]
        return {"first": champions[0], "previous": previous}.get(over, over)

    def gain(self, over: str = "first") -> Gain | None:
        """Return the gain of today's champion, from months that did not choose it.

        Parameters
        ----------
        over : str
            "first", "previous", or a version.

        Returns
        -------
        Gain or None
            The direct gain if both versions were evaluated on the months after the champion was
            chosen. Otherwise the sum of the differences between successive champions, each on the
            next month with both. If no month has come since, the gain of the champion before, so
            that ``version`` differs from today's champion. None if nothing can be stated, and if
            ``over`` is today's champion.
        """
        if not self.months:
            return None
        champions = self.champions
        start = 0
        if self.changes:
            start = self.changes[-1] + 1
        if start == len(self.months):
            # The newest rows chose the champion. Their difference would overstate its gain.
            return replace(self, champion=self.anchor("previous")).gain(over)
        anchor = self.anchor(over)
        if anchor == self.champion:
            return None
        direct = self.joined(self.months[start:], self.champion, anchor)
        if direct is not None or anchor not in champions[:start]:
            return direct
        return self._chain(anchor)

    def _chain(self, anchor: str) -> Gain | None:
        """Return the sum of the differences between successive champions since the anchor.

        Each difference comes from the next month that evaluated both champions. Which month counts
        is fixed before its rows are seen, so the sum is unbiased. A sum over all later months would
        be too low, because a champion that is replaced early looked bad by chance.
        """
        champions = self.champions
        last = max(place for place, version in enumerate(champions) if version == anchor)
        links = []
        for place in (change for change in self.changes if change >= last):
            pairs = _pairs(self.months[place + 1 :], champions[place + 1], champions[place])
            if not pairs:
                return None
            links.append(pairs[0])
        difference = sum(link.value for link in links)
        error = math.hypot(*(link.standard_error for link in links))
        low, high = _wald(difference, error, self.bounds, normal_quantile(self.confidence_level))
        rows = sum(link.rows for link in links)
        return Gain(difference, low, high, rows, len(links), self.champion, anchor, "chain")

    def since(self) -> list[Gain | None]:
        """Return the gain of each new champion over the one before, from the months it served.

        The list has one entry for each change of the champion. An entry is None if no later month
        evaluated both versions.
        """
        champions = self.champions
        ends = [*self.changes, len(self.months)][1:]
        return [
            self.joined(self.months[place + 1 : end + 1], champions[place + 1], champions[place])
            for place, end in zip(self.changes, ends, strict=True)
        ]

    def in_use(self) -> Gain | None:
        """Return the mean gain of the champions in use over the first champion.

        Each month compares the first champion with the version that was champion before these rows
        were seen. The mean is therefore unbiased under every rule of promotion, if months are
        independent. Months that did not evaluate both versions do not count. The result is None if
        no later champion was compared with the first one.
        """
        if not self.months:
            return None
        first = self.months[0].champion
        later = [month for month in self.months if month.champion != first]
        if not any(month.pair(month.champion, first) for month in later):
            return None
        pairs = []
        for month in self.months:
            if month.champion == first:
                pairs.append(MonthEstimate(0.0, 0.0, month.rows, 0.0, 0.0, 0.0))
            else:
                pairs += _pairs([month], month.champion, first)
        # Months of different pairs have no common counts, so the interval is Wald's.
        return self._gain_of(pairs, self.months[-1].champion, first, "in use")

    def joined(self, months: Iterable[Month], new: str, old: str) -> Gain | None:
        """Return the direct gain on months; None if no month evaluated both versions."""
        pairs = _pairs(months, new, old)
        if not pairs:
            return None
        return self._gain_of(pairs, new, old, "direct")

    def _gain_of(
        self, pairs: Sequence[MonthEstimate], new: str, old: str, how: Literal["direct", "in use"]
    ) -> Gain:
        """Return a gain from the joined differences of months."""
        more_correct = sum(pair.only_new - pair.only_old for pair in pairs)
        if how == "in use":
            pairs = [replace(pair, only_new=math.nan) for pair in pairs]
        joined = join_months(pairs, bounds=self.bounds, confidence_level=self.confidence_level)
        return Gain(
            joined.value,
            joined.low,
            joined.high,
            joined.rows,
            joined.months,
            new,
            old,
            how,
            more_correct,
        )


def _pairs(months: Iterable[Month], new: str, old: str) -> list[MonthEstimate]:
    """Return the differences between two versions on the months that evaluated both."""
    pairs = [month.pair(new, old) for month in months]
    return [pair for pair in pairs if pair is not None]


# -- are the months alike? -------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Months:
    """Estimates of several months, their mean, and a test whether the months are alike.

    Attributes
    ----------
    estimates : dict of str to MonthEstimate
        Estimates by the name of the month.
    joined : Joined
        The mean of the months, weighted by rows, with an interval for these rows.
    variance : float
        Pooled variance of a row.
    Q, p : float
        Cochran's statistic and its p-value. A small p-value shows that the months differ by more
        than chance.
    I2 : float
        Share of the variation between months that chance does not explain.
    tau : float
        Standard deviation between months in units of the metric, after DerSimonian and Laird.
    typical, typical_error, typical_low, typical_high : float
        Mean of a month like these, its standard error after Hartung and Knapp, and the ends of its
        interval. The ends are NaN for fewer than 3 months.

    Examples
    --------
    >>> from cmtrack.comparison import MonthEstimate, months_of
    >>> accuracies = {"May": 0.87, "June": 0.85, "July": 0.83}
    >>> errors = {name: (a * (1 - a) / 1000) ** 0.5 for name, a in accuracies.items()}
    >>> months_of({m: MonthEstimate(a, errors[m], 1000) for m, a in accuracies.items()})
    Months(three months: 0.850 [0.837, 0.863], typical month 0.850 [0.800, 0.900], alike: p = 0.043)
    """

    estimates: Mapping[str, MonthEstimate]
    joined: Joined
    variance: float
    Q: float = math.nan
    p: float = math.nan
    I2: float = math.nan
    tau: float = math.nan
    typical: float = math.nan
    typical_error: float = math.nan
    typical_low: float = math.nan
    typical_high: float = math.nan

    def to_dict(self) -> dict[str, Any]:
        """Return the months and their statistics as plain data."""
        return asdict(self)

    def to_frame(self) -> pd.DataFrame:
        """Return a frame with one row per month: month, value, standard_error and rows."""
        from cmtrack._pandas import pd

        columns = ("value", "standard_error", "rows")
        rows = [
            {"month": name} | {column: getattr(month, column) for column in columns}
            for name, month in self.estimates.items()
        ]
        return pd.DataFrame(rows)

    def __repr__(self) -> str:
        mean = with_interval(self.joined.value, (self.joined.low, self.joined.high))
        text = f"Months({_months(len(self.estimates))}: {mean}"
        if math.isfinite(self.typical_low):
            typical = with_interval(self.typical, (self.typical_low, self.typical_high))
            text += f", typical month {typical}"
        if math.isfinite(self.p):
            text += f", alike: {p_equals(self.p)}"
        return f"{text})"

    def _repr_html_(self) -> str:
        return notebook.view(notebook.sentence(repr(self)), notebook.table(self.to_frame()))


def months_of(
    estimates: Mapping[str, MonthEstimate],
    *,
    bounds: tuple[float, float] = (0.0, 1.0),
    confidence_level: float = 0.95,
) -> Months:
    """Compare the months of one model or of one pair of models.

    Parameters
    ----------
    estimates : mapping of str to MonthEstimate
        Estimates by the name of the month.
    bounds : (low, high)
        Smallest and largest possible value of an estimate.
    confidence_level : float

    Notes
    -----
    The variance of a month is V / n with the pooled variance V = Σ n² s² / Σ n of a row. With each
    month's own standard error, a month without an error would decide alone, and the test would
    reject far too often. Q is Cochran's statistic and tau is the estimate of DerSimonian and Laird.
    The interval of a typical month is the larger of Hartung and Knapp's interval and the interval
    without variation between months.

    References
    ----------
    DerSimonian, R. and Laird, N. (1986). Controlled Clinical Trials 7, 177-188.
    Hartung, J. and Knapp, G. (2001). Statistics in Medicine 20, 3875-3889.

    Examples
    --------
    >>> from cmtrack.comparison import MonthEstimate, months_of
    >>> counts = {"May": (150, 104, 4000), "June": (158, 101, 4000), "July": (149, 96, 4000)}
    >>> pairs = {name: MonthEstimate.of_counts(*month) for name, month in counts.items()}
    >>> months = months_of(pairs, bounds=(-1, 1))
    >>> round(months.Q, 3), round(months.typical_low, 4), round(months.typical_high, 4)
    (0.246, 0.0085, 0.0175)
    """
    months = list(estimates.values())
    joined = join_months(months, bounds=bounds, confidence_level=confidence_level)
    rows = np.array([month.rows for month in months])
    values = np.array([month.value for month in months])
    errors = np.array([month.standard_error for month in months])
    variance = float((rows * errors) @ (rows * errors) / rows.sum())
    degrees = len(months) - 1
    if degrees < 1 or not variance > 0:
        return Months(dict(estimates), joined, variance)
    weights = rows / variance
    total = float(weights.sum())
    mean = float(weights @ values) / total
    q = float(weights @ (values - mean) ** 2)
    excess = max(q - degrees, 0.0)
    between = excess / (total - float(weights @ weights) / total)
    new_weights = 1 / (1 / weights + between)
    new_total = float(new_weights.sum())
    typical = float(new_weights @ values) / new_total
    typical_error = math.sqrt(float(new_weights @ (values - typical) ** 2) / (degrees * new_total))
    low = high = math.nan
    if len(months) >= FEWEST_TYPICAL:
        reach = max(
            normal_quantile(confidence_level, degrees) * typical_error,
            normal_quantile(confidence_level) / math.sqrt(total),
        )
        low, high = _wald(typical, reach, bounds, 1.0)
    return Months(
        dict(estimates),
        joined,
        variance,
        Q=q,
        p=float(chdtrc(degrees, q)),
        I2=excess / max(q, TINY),
        tau=math.sqrt(between),
        typical=typical,
        typical_error=typical_error,
        typical_low=low,
        typical_high=high,
    )


def _months(number: int) -> str:
    return "one month" if number == 1 else f"{in_words(number)} months"
