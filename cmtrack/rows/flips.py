"""Rows that only one of two runs predicts correctly, with exact simultaneous intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import chdtrc, gammaln, ndtr

from cmtrack import notebook
from cmtrack.digits import count
from cmtrack.metrics.intervals import Interval, exact_ends, holm, size_of_share
from cmtrack.metrics.metric import Metric, Section
from cmtrack.metrics.names import encode_label
from cmtrack.metrics.paired import binomial_pvalues
from cmtrack.names import as_sentence
from cmtrack.statistics.counting import count_codes
from cmtrack.statistics.design import Design
from cmtrack.statistics.inputs import BoolArray, FloatArray, IntArray
from cmtrack.untrusted import printable

if TYPE_CHECKING:
    import pandas as pd

_FEW = 5
"""Minimum expected count for using the chi-square distribution instead of enumerating tables."""
_MOST_NEEDED = 10**9
"""Maximum number of rows that a message reports as required for passing a gate."""
_TABLES = 10**6
"""Maximum number of tables to enumerate; if more tables are possible, some are drawn at random."""
_DRAWN = 9_999
"""Number of tables to draw at random if too many tables exist to enumerate all of them."""


@dataclass(frozen=True, eq=False)
class Flips:
    """Counts of rows that a second run breaks or fixes compared with a first run.

    Attributes
    ----------
    parts : tuple of length S
        Names of the classes or segments that divide the rows, or only the text "all" if the rows
        are not divided.
    n : ndarray of shape (S,)
        Number of rows in each part, or the sum of their weights.
    rates : mapping of str to (values, low, high)
        Three shares of the rows in each part: ``broken`` (only the first run is correct), ``fixed``
        (only the second run is correct) and ``changed`` (the two predictions differ). Each share is
        stored as three arrays of shape (S,): its values and the limits of its exact intervals
        (Clopper, Pearson 1934). If there are several parts, Bonferroni's method makes the intervals
        for all 2 S shares of broken and fixed rows simultaneous.
    alone : ndarray of shape (S,)
        McNemar's mid-p value (Fagerland, Lydersen, Laake 2013) for the hypothesis that broken and
        fixed rows are equally likely.
    pvalues : ndarray of shape (S,)
        The p-values in ``alone``, adjusted for the number of parts by Holm's method (1979).
    pvalue : float
        p-value of the hypothesis that the ratio of broken to fixed rows is the same in all parts.
        It comes from a chi-square test on the numbers of broken and fixed rows in each part. If an
        expected count is below 5, the statistic is compared with its values for all tables that
        have the same margins. The p-value is NaN for a single part, for fractional weights, and for
        clustered rows.
    confidence_level : float
        Simultaneous confidence level of the intervals of all parts.
    level : float
        Confidence level of each individual interval.

    Examples
    --------
    >>> from cmtrack import compare, evaluate
    >>> y = [0, 1] * 100
    >>> old = evaluate(y, [0, 1] * 90 + [1, 0] * 10)
    >>> new = evaluate(y, [0, 1] * 95 + [1, 0] * 5)
    >>> flips = compare({"old": old, "new": new}).flips("old", "new")
    >>> flips.to_frame()[["part", "n", "broken", "fixed"]].to_dict("records")
    [{'part': 'all', 'n': 200, 'broken': 0.0, 'fixed': 0.05}]
    """

    parts: tuple[Any, ...]
    n: FloatArray | IntArray
    rates: dict[str, tuple[FloatArray, FloatArray, FloatArray]]
    alone: FloatArray
    pvalues: FloatArray
    pvalue: float
    confidence_level: float
    level: float

    @classmethod
    def of(
        cls,
        first: BoolArray,
        second: BoolArray,
        changed: BoolArray,
        parts: tuple[tuple[Any, ...], IntArray] | None = None,
        weights: FloatArray | IntArray | None = None,
        clusters: IntArray | None = None,
        confidence_level: float = 0.95,
    ) -> Flips:
        """Count the flips among n rows.

        Parameters
        ----------
        first, second, changed : ndarray of shape (n,), bool
            For each row: whether the first run is correct, whether the second run is correct, and
            whether their predictions differ.
        parts : (values, codes), optional
            The distinct values that divide the rows, and for each row the position of its value.
        weights, clusters : ndarray of shape (n,), optional
            Weights of type int64 are numbers of identical rows, and weights of type float64 are
            sampling weights. With sampling weights or clusters,
            :func:`cmtrack.metrics.intervals.size_of_share` computes the effective number of rows of
            each share.
        confidence_level : float
        """
        values: tuple[Any, ...] = ("all",)
        codes = np.zeros(len(first), dtype=np.int64)
        level = confidence_level
        if parts is not None:
            values, codes = parts
            level = 1 - (1 - confidence_level) / (2 * len(values))
        size = len(values)
        design = Design(len(first), weights, clusters)
        n = count_codes(codes, size, weights)
        marks = {"broken": first & ~second, "fixed": second & ~first, "changed": changed}
        counts = {
            name: np.bincount(codes, design.weighted(mark), size) for name, mark in marks.items()
        }
        with np.errstate(all="ignore"):
            shares = {name: count / n for name, count in counts.items()}
        unlike = math.nan
        if design.is_independent:
            sizes = dict.fromkeys(marks, n)
            _, pvalues = binomial_pvalues(counts["broken"], counts["fixed"])
            alone = np.where(counts["broken"] + counts["fixed"] > 0, pvalues, 1.0)
            if size > 1:
                unlike = unlike_pvalue(counts["broken"], counts["fixed"])
        else:
            inside = _rows_by_part(codes, size)
            designs = [design.take(rows) for rows in inside]
            sizes = {
                name: _effective_sizes(shares[name], [mark[rows] for rows in inside], designs)
                for name, mark in marks.items()
            }
            signs = marks["broken"].astype(np.float64) - marks["fixed"]
            statistics = [
                design_of_part.sum_statistic(signs[rows])
                for rows, design_of_part in zip(inside, designs, strict=True)
            ]
            alone = 2 * ndtr(-np.abs(statistics))
        rates = {
            name: (share, *exact_ends(share * sizes[name], sizes[name], level))
            for name, share in shares.items()
        }
        return cls(values, n, rates, alone, holm(alone), unlike, confidence_level, level)

    def metrics(self, by_class: bool = False) -> dict[str, tuple[float, Interval]]:
        """Return the value and interval of ``flips/broken``, ``flips/fixed`` and ``flips/changed``.

        ``by_class``: whether to return separate metrics for each part, under names such as
            ``flips/class/<label>/broken``.
        """
        numbers = {}
        for k, part in enumerate(self.parts):
            prefix = f"{FLIPS.name}/class/{encode_label(part)}" if by_class else FLIPS.name
            for name, (value, low, high) in self.rates.items():
                interval = (float(low[k]), float(high[k]))
                numbers[f"{prefix}/{name}"] = (float(value[k]), interval)
            if not by_class:
                break
        return numbers

    def rows_of(self, metric: str) -> float:
        """Return the number of rows, or their total weight, from which a metric is computed."""
        _, *place, _ = metric.split("/")
        if not place:
            return float(self.n[0])
        labels = [encode_label(part) for part in self.parts]
        return float(self.n[labels.index(place[1])])

    def to_frame(self) -> pd.DataFrame:
        """Return a frame with one row per part: n, shares with intervals, and adjusted p-value."""
        from cmtrack._pandas import pd

        columns: dict[str, Any] = {"part": list(self.parts), "n": self.n}
        for name in ("broken", "fixed"):
            value, low, high = self.rates[name]
            columns |= {name: value, f"{name}_low": low, f"{name}_high": high}
        return pd.DataFrame(columns | {"pvalue": self.pvalues})

    def __repr__(self) -> str:
        broken = round(self._total("broken"), 6)
        fixed = round(self._total("fixed"), 6)
        rows = count(float(self.n.sum()))
        text = (
            f"of {rows} rows, only the first run predicts {broken:g} correctly, and only the "
            f"second run {fixed:g}"
        )
        if len(self.parts) > 1:
            text += f", {len(self.parts)} parts"
        return printable(f"Flips({text})")

    def _total(self, name: str) -> float:
        """Return the total number or weight of broken or fixed rows over all parts."""
        shares, _, _ = self.rates[name]
        return float(np.nansum(shares * self.n))

    def _repr_html_(self) -> str:
        heads = {"broken": "only_first_correct", "fixed": "only_second_correct"}
        frame = self.to_frame()
        for name, head in heads.items():
            frame.columns = frame.columns.str.replace(name, head)
        text = repr(self).removeprefix("Flips(").removesuffix(")")
        return notebook.view(notebook.sentence(as_sentence(text)), notebook.table(frame))


def _declared(place: str, of: str) -> tuple[Metric, ...]:
    """Return the metrics computed from all rows, or from the rows of a class.

    ``place``: the text between the section's name and the metric's own name in each full metric
        name.
    ``of``: the words to add after "rows" in the metrics' descriptions.
    """
    words = (
        ("broken", "lower", f"rows{of} that only the baseline predicts correctly / rows{of}"),
        ("fixed", "higher", f"rows{of} that only the run predicts correctly / rows{of}"),
        ("changed", "", f"rows{of} with different predictions / rows{of}"),
    )
    return tuple(
        Metric(
            f"flips/{place}{name}",
            None,
            of="flips",
            better=better,
            low=0.0,
            high=1.0,
            interval="exact",
            title=f"{name} rows{of}",
            source="Yan et al. (2021)",
            formula=formula,
            headline=False,
        )
        for name, better, formula in words
    )


FLIPS = Section(
    "flips",
    "A run against a baseline",
    (*_declared("", ""), *_declared("class/<label>/", " of {label}")),
)
"""Metrics that compare the rows of a run and its baseline; only gates can use them."""


def rows_needed(gate: Callable[[float, float], bool], level: float, best: float) -> int:
    """Return the minimum number of rows at which the best possible share passes a gate.

    Parameters
    ----------
    gate : callable
        A function that returns whether an interval (low, high) passes the gate. If it accepts the
        interval for some number of rows, it must also accept the interval for any larger number.
    level : float
    best : 0 or 1

    Examples
    --------
    >>> from cmtrack.rows.flips import rows_needed
    >>> rows_needed(lambda low, high: high <= 0.01, 0.95, 0)
    368
    """

    def passes(n: int) -> bool:
        low, high = exact_ends(best * n, n, level)
        return gate(float(low), float(high))

    too_few = 0
    enough = 1
    while not passes(enough):
        too_few = enough
        enough *= 2
        if enough > _MOST_NEEDED:
            return _MOST_NEEDED
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        if passes(middle):
            enough = middle
        else:
            too_few = middle
    return enough


def _rows_by_part(codes: IntArray, size: int) -> list[IntArray]:
    """For each part, return the positions of its rows."""
    ends = np.bincount(codes, minlength=size).cumsum()
    return np.split(np.argsort(codes, kind="stable"), ends[:-1])


def _effective_sizes(
    shares: FloatArray, marks: Sequence[BoolArray], designs: Sequence[Design]
) -> FloatArray:
    """Return the effective sample size for each part's share, from the sandwich standard error.

    If a share is 0 or 1, its standard error cannot be estimated, so the design's effective number
    of rows is used.
    """
    errors = np.zeros(len(shares))
    for part in np.flatnonzero((shares > 0) & (shares < 1)).tolist():
        errors[part] = designs[part].standard_error(marks[part] - shares[part])
    units = np.array([design.effective_size for design in designs])
    kish: Any = math.inf
    if designs[0].is_sampled:
        kish = np.array([replace(design, clusters=None).effective_size for design in designs])
    return np.asarray(size_of_share(shares, errors, units, kish))


def unlike_pvalue(broken: Any, fixed: Any) -> float:
    """Return the p-value for the hypothesis that the ratio of broken to fixed rows is constant.

    The test uses the chi-square statistic of the S x 2 table of counts. If an expected count is
    below 5, the statistic is compared with its values for all tables that have the same margins. If
    more than about 10^6 such tables exist, 9,999 random tables are used instead of all tables. The
    result is NaN if only one table has these margins.
    """
    broken = np.rint(np.asarray(broken)).astype(np.int64)
    sizes = broken + np.rint(np.asarray(fixed)).astype(np.int64)
    broken = broken[sizes > 0]
    sizes = sizes[sizes > 0]
    total = int(sizes.sum())
    n_broken = int(broken.sum())
    if len(sizes) < 2 or n_broken in (0, total):
        return math.nan
    share = n_broken / total
    expected = sizes * share
    scale = expected * (1 - share)
    seen = float(((broken - expected) ** 2 / scale).sum())
    if min(share, 1 - share) * sizes.min() >= _FEW:
        return float(chdtrc(len(sizes) - 1, seen))
    least = seen * (1 - 1e-9)  # rounding must not exclude tables with the observed statistic
    if float(np.log(np.minimum(sizes, n_broken) + 1).sum()) > math.log(_TABLES):
        rng = np.random.default_rng(0)
        drawn = rng.multivariate_hypergeometric(sizes, n_broken, size=_DRAWN, method="marginals")
        statistics = ((drawn - expected) ** 2 / scale).sum(axis=1)
        return (1 + int((statistics >= least).sum())) / (1 + _DRAWN)
    # For all tables of the parts processed so far: the total of broken rows, the statistic, and the
    # logarithm of the number of ways to obtain the table.
    sums = np.zeros(1, dtype=np.int64)
    statistics = np.zeros(1)
    logs = np.zeros(1)
    for size, mean, variance in zip(sizes.tolist(), expected, scale, strict=True):
        k = np.arange(min(size, n_broken) + 1)
        ways = gammaln(size + 1) - gammaln(k + 1) - gammaln(size - k + 1)
        sums = np.add.outer(sums, k).ravel()
        statistics = np.add.outer(statistics, (k - mean) ** 2 / variance).ravel()
        logs = np.add.outer(logs, ways).ravel()
    has_margins = sums == n_broken
    chances = np.exp(logs[has_margins] - logs[has_margins].max())
    is_as_far = statistics[has_margins] >= least
    return float(chances[is_as_far].sum() / chances.sum())
