"""Flips: rows that only one of two runs gets right, by part of the rows, with exact simultaneous intervals."""

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
from cmtrack.statistics.counting import count_codes
from cmtrack.statistics.design import Design
from cmtrack.statistics.inputs import BoolArray, FloatArray, IntArray
from cmtrack.untrusted import printable

if TYPE_CHECKING:
    import pandas as pd

_FEW = 5
"""An expected count below which the distribution of chi-square is that of all tables with the same margins."""
_MOST_NEEDED = 10**9
_TABLES, _DRAWN = 10**6, 9_999
"""Tables that are listed, and how many are drawn where there are more."""


@dataclass(frozen=True, eq=False)
class Flips:
    """Rows that a second run breaks and fixes, against a first one, by part of the rows.

    Attributes
    ----------
    parts : tuple of length S
        Classes or segments; of all rows the one text "all".
    n : ndarray of shape (S,)
        Number (or weight) of the rows of each part.
    rates : mapping of str to (values, low, high)
        ``broken`` (only the first is right), ``fixed`` (only the second) and ``changed`` (other
        predictions): shares of the part's rows, arrays (S,), with the ends of exact intervals
        (Clopper, Pearson 1934). Of several parts those of all 2 S shares of broken and fixed rows
        hold together (Bonferroni).
    alone : ndarray of shape (S,)
        p-value of the hypothesis of as many broken as fixed rows: McNemar's, mid-p (Fagerland,
        Lydersen, Laake 2013).
    pvalues : ndarray of shape (S,)
        The same, adjusted for the number of parts (Holm 1979).
    pvalue : float
        Of the hypothesis that the parts are alike in what is broken and fixed: chi-square of broken
        and fixed rows by part, over all tables with the same margins where an expected count is
        below 5. NaN for one part, and where rows have fractional weights or belong together.
    confidence_level : float
        At which the intervals of all parts hold together.
    level : float
        Of each interval.

    Examples
    --------
    >>> from cmtrack import compare, evaluate
    >>> y = [0, 1] * 100
    >>> runs = {"old": evaluate(y, [0, 1] * 90 + [1, 0] * 10), "new": evaluate(y, [0, 1] * 95 + [1, 0] * 5)}
    >>> flips = compare(runs).flips("old", "new")
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
        """Count the flips of n rows.

        Parameters
        ----------
        first, second, changed : ndarray of shape (n,), bool
            Whether each run is right, and whether their predictions differ.
        parts : (values, codes), optional
            The values that divide the rows, and the place of each row's value.
        weights, clusters : ndarray of shape (n,), optional
            int64 are numbers of equal rows, float64 sampling weights. With these, or with clusters,
            a share is worth as many rows as :func:`cmtrack.metrics.intervals.size_of_share` says.
        confidence_level : float
        """
        values, codes = parts or (("all",), np.zeros(len(first), dtype=np.int64))
        size = len(values)
        design = Design(len(first), weights, clusters)
        n = count_codes(codes, size, weights)
        level = confidence_level if parts is None else 1 - (1 - confidence_level) / (2 * size)
        marks = {"broken": first & ~second, "fixed": second & ~first, "changed": changed}
        counts = {
            name: np.bincount(codes, design.weighted(mark), size) for name, mark in marks.items()
        }
        with np.errstate(all="ignore"):
            shares = {name: count / n for name, count in counts.items()}
        unlike = math.nan
        if design.is_independent:
            rows = dict.fromkeys(marks, n)
            alone = binomial_pvalues(counts["broken"], counts["fixed"])[1]
            alone = np.where(counts["broken"] + counts["fixed"] > 0, alone, 1.0)
            if size > 1:
                unlike = unlike_pvalue(counts["broken"], counts["fixed"])
        else:
            inside = _rows_by_part(codes, size)
            designs = [design.take(rows_inside) for rows_inside in inside]
            rows = {
                name: _rows_worth(shares[name], [mark[part] for part in inside], designs)
                for name, mark in marks.items()
            }
            signs = marks["broken"].astype(np.float64) - marks["fixed"]
            statistics = [
                of_part.sum_statistic(signs[part])
                for part, of_part in zip(inside, designs, strict=True)
            ]
            alone = 2 * ndtr(-np.abs(statistics))
        rates = {
            name: (share, *exact_ends(share * rows[name], rows[name], level))
            for name, share in shares.items()
        }
        return cls(values, n, rates, alone, holm(alone), unlike, confidence_level, level)

    def metrics(self, by_class: bool = False) -> dict[str, tuple[float, Interval]]:
        """Value and interval of ``flips/broken``, ``flips/fixed``, ``flips/changed``; or ``flips/class/<label>/…``."""
        places = [f"class/{encode_label(part)}/" for part in self.parts] if by_class else [""]
        return {
            f"{FLIPS.name}/{place}{name}": (float(value[k]), (float(low[k]), float(high[k])))
            for k, place in enumerate(places)
            for name, (value, low, high) in self.rates.items()
        }

    def rows_of(self, metric: str) -> float:
        """Number (or weight) of the rows that a metric of :meth:`metrics` is of."""
        _, *place, _ = metric.split("/")
        return float(
            self.n[[encode_label(part) for part in self.parts].index(place[1]) if place else 0]
        )

    def to_frame(self) -> pd.DataFrame:
        """One row per part: part, n, broken and fixed, each with the ends of its interval, and the adjusted p-value."""
        from cmtrack._pandas import pd

        columns: dict[str, Any] = {"part": list(self.parts), "n": self.n}
        for name in ("broken", "fixed"):
            columns |= dict(
                zip((name, f"{name}_low", f"{name}_high"), self.rates[name], strict=True)
            )
        return pd.DataFrame(columns | {"pvalue": self.pvalues})

    def __repr__(self) -> str:
        broken, fixed = (
            float(np.nansum(self.rates[name][0] * self.n)) for name in ("broken", "fixed")
        )
        total, parts = (
            float(self.n.sum()),
            "" if len(self.parts) == 1 else f", {len(self.parts)} parts",
        )
        sides = f"only the first run is right in {round(broken, 6):g}, only the second in {round(fixed, 6):g}"
        return printable(f"Flips(of {count(total)} rows {sides}{parts})")

    def _repr_html_(self) -> str:
        return notebook.view(notebook.sentence(repr(self)), notebook.table(self.to_frame()))


def _declared(place: str, of: str) -> tuple[Metric, ...]:
    words = {
        "broken": ("lower", f"rows{of} that only the baseline gets right / rows{of}"),
        "fixed": ("higher", f"rows{of} that only the run gets right / rows{of}"),
        "changed": ("", f"rows{of} with other predictions / rows{of}"),
    }
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
        for name, (better, formula) in words.items()
    )


FLIPS = Section(
    "flips",
    "A run against a baseline",
    (*_declared("", ""), *_declared("class/<label>/", " of {label}")),
)
"""Shares of the rows of a run and its baseline; gates read them, no evaluation has them."""


def rows_needed(gate: Callable[[float, float], bool], level: float, best: float) -> int:
    """Fewest rows with which an exact interval passes a gate, at the best share (0 or 1).

    Parameters
    ----------
    gate : callable
        Whether the ends of an interval pass; more rows never fail what fewer pass.
    level : float
    best : 0 or 1

    Examples
    --------
    >>> from cmtrack.rows.flips import rows_needed
    >>> rows_needed(lambda low, high: high <= 0.01, 0.95, 0)
    368
    """
    low, high = 0, 1
    while not gate(*(float(end) for end in exact_ends(best * high, high, level))):
        low, high = high, 2 * high
        if high > _MOST_NEEDED:
            return _MOST_NEEDED
    while high - low > 1:
        middle = (low + high) // 2
        passes = gate(*(float(end) for end in exact_ends(best * middle, middle, level)))
        low, high = (low, middle) if passes else (middle, high)
    return high


def _rows_by_part(codes: IntArray, size: int) -> list[IntArray]:
    """Places of the rows of each part."""
    ends = np.bincount(codes, minlength=size).cumsum()
    return np.split(np.argsort(codes, kind="stable"), ends[:-1])


def _rows_worth(
    shares: FloatArray, marks: Sequence[BoolArray], designs: Sequence[Design]
) -> FloatArray:
    """Effective sample size of the share of each part by its sandwich error; the number of units for 0 and 1."""
    errors = np.zeros(len(shares))
    for part in np.flatnonzero((shares > 0) & (shares < 1)).tolist():
        errors[part] = designs[part].standard_error(marks[part] - shares[part])
    worth = np.array([design.effective_size for design in designs])
    kish: Any = math.inf
    if designs[0].is_sampled:
        kish = np.array([replace(design, clusters=None).effective_size for design in designs])
    return np.asarray(size_of_share(shares, errors, worth, kish))


def unlike_pvalue(broken: Any, fixed: Any) -> float:
    """p-value of parts of the rows being alike in how many of their flips are broken rows; NaN where none can differ.

    Chi-square of the S x 2 counts. Where an expected count is below 5, its distribution is that
    over all tables with the same margins: by listing them or, where there are more than about 10^6,
    by 9,999 drawn ones.
    """
    broken, fixed = (np.rint(np.asarray(counts)).astype(np.int64) for counts in (broken, fixed))
    sizes = broken + fixed
    broken, sizes = broken[sizes > 0], sizes[sizes > 0]
    total, ones = int(sizes.sum()), int(broken.sum())
    if len(sizes) < 2 or ones in (0, total):
        return math.nan
    share = ones / total
    scale = sizes * share * (1 - share)
    seen = float(((broken - sizes * share) ** 2 / scale).sum())
    if min(share, 1 - share) * sizes.min() >= _FEW:
        return float(chdtrc(len(sizes) - 1, seen))
    least = seen * (1 - 1e-9)
    if float(np.log(np.minimum(sizes, ones) + 1).sum()) > math.log(_TABLES):
        drawn = np.random.default_rng(0).multivariate_hypergeometric(
            sizes, ones, size=_DRAWN, method="marginals"
        )
        return (1 + int((((drawn - sizes * share) ** 2 / scale).sum(axis=1) >= least).sum())) / (
            1 + _DRAWN
        )
    sums, squares, logs = np.zeros(1, dtype=np.int64), np.zeros(1), np.zeros(1)
    for size, one in zip(sizes.tolist(), scale.tolist(), strict=True):
        k = np.arange(min(size, ones) + 1)
        ways = gammaln(size + 1) - gammaln(k + 1) - gammaln(size - k + 1)
        sums, squares, logs = (
            np.add.outer(old, new).ravel()
            for old, new in ((sums, k), (squares, (k - size * share) ** 2 / one), (logs, ways))
        )
    same = sums == ones
    chances = np.exp(logs[same] - logs[same].max())
    return float(chances[squares[same] >= least].sum() / chances.sum())
