"""Facts of an evaluation that only its rows give; they outlive the rows, and are dropped as one."""

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
    """Facts computed from rows, by metric.

    ``cluster_errors``: standard errors by clusters of rows that belong together.
    ``effective_clusters``: effective number of clusters: of sums s of a cluster's influence values (sum of s²)² / sum
        of s⁴.
    ``pvalues``: p-values of calibration.
    ``errors``: standard errors of averages of areas.
    ``strata``: the class or group of each row whose share is given, (n,): influence is that within these. Not stored.
    """

    cluster_errors: ByMetric | None = None
    n_clusters: int | None = None
    effective_clusters: ByMetric | None = None
    pvalues: ByMetric | None = None
    errors: ByMetric | None = field(default=None, compare=False)
    strata: IntArray | None = field(default=None, compare=False, repr=False)

    def to_plain(self) -> dict[str, Any]:
        """Plain data; facts that are not there are absent, and NaN is None."""
        plain = {
            key: getattr(self, name)
            for name, key in _KEYS.items()
            if getattr(self, name) is not None
        }
        for key, numbers in plain.items():
            # NaN is, for one, the error of the area of a class with a single row
            if key != "n_clusters":
                plain[key] = {
                    name: None if math.isnan(number) else number for name, number in numbers.items()
                }
        return {"cluster_errors": None} | plain

    @classmethod
    def from_plain(cls, data: Mapping[str, Any]) -> RowFacts:
        """Read :meth:`to_plain`."""
        numbers = {
            name: _read(data.get(key)) for name, key in _KEYS.items() if name != "n_clusters"
        }
        n = data.get("n_clusters")
        if n is not None and (isinstance(n, bool) or not isinstance(n, int) or n < 1):
            raise ValueError(f"n_clusters must be a whole number from 1, got {n!r:.40}")
        for name, number in (numbers["effective_clusters"] or {}).items():
            if not (math.isfinite(number) and number > 0):
                raise ValueError(
                    f"the effective clusters of {name!r:.80} must be a positive number, got {number!r}"
                )
        return cls(n_clusters=n, **numbers)  # type: ignore[arg-type]  # strata are not stored


_KEYS = {
    "cluster_errors": "cluster_errors",
    "n_clusters": "n_clusters",
    "effective_clusters": "effective_clusters",
    "pvalues": "row_pvalues",
    "errors": "row_errors",
}
"""Keys of a stored evaluation."""


def _read(data: Any) -> ByMetric | None:
    numbers = (
        None
        if data is None
        else {str(k): math.nan if v is None else float(v) for k, v in data.items()}
    )
    for name, value in (numbers or {}).items():
        if value and not math.isnan(value) and not 1 / LARGEST_NUMBER <= value <= LARGEST_NUMBER:
            raise ValueError(
                f"the number of {name!r:.80} must be 0 or between 1e-100 and 1e100, got {value!r}"
            )
    return numbers


def merged(
    sides: tuple[RowFacts, RowFacts], totals: tuple[float, float], is_sum: Callable[[str], bool]
) -> RowFacts:
    """Pooled cluster-robust errors of two sets of whole clusters: sums of squares and of fourth powers add up.

    ``totals``, (float, float): number (or weight) of samples of each side.
    ``is_sum``: True for the name of a metric that doubles with the samples, as counts do; else it is a mean over them.
    """
    first, second = (side.cluster_errors for side in sides)
    if first is None and second is None:
        return RowFacts()
    if first is None or second is None:
        lacking = "first" if first is None else "second"
        raise ValueError(
            f"evaluations to be merged must both have groups or both have none, the {lacking} has none"
        )
    a, b = (side.n_clusters for side in sides)
    together = None if a is None or b is None else a + b
    errors, effective = {}, {}
    for name in (name for name in first if name in second):
        pooled = is_sum(name)
        squares = fourths = 0.0
        for side, total in zip(sides, totals, strict=True):
            assert side.cluster_errors is not None  # both have
            square = (side.cluster_errors[name] * (1.0 if pooled else total)) ** 2
            square *= 1.0 if together is None else 1 / few_clusters(side.n_clusters or 0)
            squares += square
            if square > 0:
                fourths += square**2 / (side.effective_clusters or {}).get(name, math.inf)
        errors[name] = math.sqrt(squares * (1.0 if together is None else few_clusters(together)))
        errors[name] /= 1.0 if pooled else sum(totals)
        if together is not None and fourths > 0:
            effective[name] = squares**2 / fourths
    return RowFacts(errors, together, None if together is None else effective)
