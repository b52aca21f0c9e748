"""Facts that are computed from an evaluation's rows and remain available without the rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from cmtrack.statistics.design import few_clusters
from cmtrack.statistics.inputs import IntArray
from cmtrack.statistics.plain import LARGEST_NUMBER

ByMetric = dict[str, float]


@dataclass(frozen=True)
class RowFacts:
    """Facts about metrics that were computed from rows.

    ``cluster_errors``: the cluster-robust standard errors.
    ``n_clusters``: the number of clusters.
    ``effective_clusters``: the effective number of clusters, (sum of s²)² / sum of s⁴. In this
        formula, s is the sum of one cluster's influence values.
    ``pvalues``: the p-values of calibration tests.
    ``errors``: the standard errors of averages over areas under curves.
    ``strata``, shape (n,): the class or group of each row, if the shares of these strata are fixed.
        If the strata are given, only the variation of influence within strata contributes to
        errors. Files do not store the strata.
    """

    cluster_errors: ByMetric | None = None
    n_clusters: int | None = None
    effective_clusters: ByMetric | None = None
    pvalues: ByMetric | None = None
    errors: ByMetric | None = field(default=None, compare=False)
    strata: IntArray | None = field(default=None, compare=False, repr=False)

    def to_plain(self) -> dict[str, Any]:
        """Return plain data that excludes missing facts and contains None instead of NaN."""
        plain: dict[str, Any] = {"cluster_errors": None}
        for name, key in _KEYS.items():
            fact = getattr(self, name)
            if fact is None:
                continue
            if name != "n_clusters":
                # Errors can be NaN, for example for the ROC AUC of a class with a single row.
                fact = {
                    metric: None if math.isnan(number) else number
                    for metric, number in fact.items()
                }
            plain[key] = fact
        return plain

    @classmethod
    def from_plain(cls, data: Mapping[str, Any]) -> RowFacts:
        """Read the plain data that :meth:`to_plain` returned."""
        facts: dict[str, Any] = {}
        for name, key in _KEYS.items():
            if name != "n_clusters":
                facts[name] = _read(data.get(key))
        n = data.get("n_clusters")
        if n is not None and (isinstance(n, bool) or not isinstance(n, int) or n < 1):
            raise ValueError(f"n_clusters must be a whole number of at least 1, got {n!r:.40}")
        for name, number in (facts["effective_clusters"] or {}).items():
            if not (math.isfinite(number) and number > 0):
                raise ValueError(
                    f"the effective number of clusters of {name!r:.80} must be a positive "
                    f"number, got {number!r}"
                )
        return cls(n_clusters=n, **facts)


_KEYS = {
    "cluster_errors": "cluster_errors",
    "n_clusters": "n_clusters",
    "effective_clusters": "effective_clusters",
    "pvalues": "row_pvalues",
    "errors": "row_errors",
}
"""Names under which the facts are stored in the file of an evaluation."""


def _read(data: Any) -> ByMetric | None:
    if data is None:
        return None
    numbers = {}
    for name, value in data.items():
        number = math.nan if value is None else float(value)
        numbers[str(name)] = number
        is_sound = number == 0 or math.isnan(number)
        if not is_sound and not 1 / LARGEST_NUMBER <= number <= LARGEST_NUMBER:
            raise ValueError(
                f"the number of {name!r:.80} must be 0 or between 1e-100 and 1e100, got {number!r}"
            )
    return numbers


def merged(
    sides: tuple[RowFacts, RowFacts], totals: tuple[float, float], is_sum: Callable[[str], bool]
) -> RowFacts:
    """Pool the cluster-robust errors of two sets of rows that share no cluster.

    The clusters' sums of squared influence and of its fourth powers can be added.

    ``totals``: the number (or total weight) of the rows in each of the two sets.
    ``is_sum``: a function that returns True if the named metric doubles when every row is counted
        twice, as counts do. All other metrics are treated as means over rows.
    """
    first, second = (side.cluster_errors for side in sides)
    if first is None and second is None:
        return RowFacts()
    if first is None or second is None:
        lacking = "first" if first is None else "second"
        raise ValueError(
            "evaluations can be merged if both have groups or neither has groups, but the "
            f"{lacking} has none"
        )
    numbers = [side.n_clusters for side in sides]
    # Earlier versions did not store the number of clusters. Errors that come from their files are
    # not corrected for few clusters, and lack effective numbers.
    n_clusters = None if None in numbers else sum(n for n in numbers if n is not None)
    errors: ByMetric = {}
    effective: ByMetric = {}
    for name in first:
        if name not in second:
            continue
        squares = 0.0
        fourths = 0.0
        for side, by_name, total in zip(sides, (first, second), totals, strict=True):
            scale = 1.0 if is_sum(name) else total
            square = (by_name[name] * scale) ** 2
            if n_clusters is not None:
                square *= 1 / few_clusters(side.n_clusters or 0)
            squares += square
            if square > 0:
                fourths += square**2 / (side.effective_clusters or {}).get(name, math.inf)
        correction = 1.0 if n_clusters is None else few_clusters(n_clusters)
        errors[name] = math.sqrt(squares * correction)
        if not is_sum(name):
            errors[name] /= sum(totals)
        if n_clusters is not None and fourths > 0:
            effective[name] = squares**2 / fourths
    return RowFacts(errors, n_clusters, None if n_clusters is None else effective)
