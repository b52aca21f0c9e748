"""Criterion of a ranking: a single metric, or several metrics that form a Pareto front."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from cmtrack.evaluation.catalog import BUILT_IN
from cmtrack.metrics.catalog import Catalog
from cmtrack.metrics.names import near_metric
from cmtrack.removed import WEIGHTS, RemovedFeature, reason

if TYPE_CHECKING:
    from cmtrack.comparison.tie_breakers import TieBreaker
    from cmtrack.evaluation.gates import Gate

RankBy: TypeAlias = str | Sequence[str]

FALLBACK = "multiclass/matthews_corrcoef"
ALWAYS_DEFINED = "multiclass/accuracy"
"""A metric that is defined for every run, whatever the run predicts."""
DEFAULTS = ("spans/f1_micro", "binary/matthews_corrcoef", FALLBACK, "family/f1_micro")
"""Default metrics of a ranking, each of which takes all kinds of errors into account.

The first default metric that a run has is used.
"""


def read_by(
    criterion: Criterion, gates: Iterable[Gate], rules: Iterable[TieBreaker]
) -> frozenset[str]:
    """Return the options that a criterion, its gates and its tie-breakers depend on.

    See :meth:`Catalog.depends_on`.
    """
    catalog = criterion.catalog
    names = [*criterion.metrics, *(gate.metric for gate in gates)]
    for rule in rules:
        name = rule.name.removeprefix("metrics.")  # a logged metric may be in the catalog
        if catalog.has(name):
            names.append(name)
    return frozenset().union(*map(catalog.depends_on, names))


@dataclass(frozen=True)
class Criterion:
    """One metric, or several metrics that form a Pareto front.

    ``catalog``: definitions of the metrics; for a comparison, the joint catalog of all evaluations.
    """

    metrics: tuple[str, ...]
    catalog: Catalog = field(default=BUILT_IN, compare=False, repr=False)

    @classmethod
    def of(cls, rank_by: RankBy, catalog: Catalog = BUILT_IN) -> Criterion:
        """Parse the argument ``rank_by`` of ``compare``.

        Raises TypeError or ValueError if a metric does not exist or has no direction in which
        values are better. Raises RemovedFeature if the argument assigns weights to metrics.
        """
        if not isinstance(rank_by, Iterable):
            kind = type(rank_by).__name__
            raise TypeError(
                f"rank_by must be a metric's name, or several names (a Pareto front), got {kind}"
            )
        if isinstance(rank_by, Mapping):
            raise RemovedFeature(reason(WEIGHTS))
        given = [rank_by] if isinstance(rank_by, str) else rank_by
        names = tuple(dict.fromkeys(_checked(name, catalog) for name in given))
        if not names:
            raise ValueError("rank_by must name at least one metric, got none")
        return cls(names, catalog)

    @property
    def single(self) -> bool:
        """True if a single metric determines the ranking."""
        return len(self.metrics) == 1

    @property
    def pareto(self) -> bool:
        """True if several metrics form a Pareto front."""
        return not self.single

    @property
    def direction(self) -> str:
        """The better direction ("higher", "lower", "nearest zero"); "higher" for a Pareto front."""
        return self.catalog.lookup(self.metrics[0]).better if self.single else "higher"

    @property
    def unit(self) -> float:
        """Sign of a gain: 1 if higher values are better, else -1."""
        return 1.0 if self.direction == "higher" else -1.0

    def distance_from_best(self, value: float) -> float:
        """Return the distance of the first metric's value from the optimum; smaller is better."""
        return distance_from_best(self.catalog.lookup(self.metrics[0]).better, value)

    def __str__(self) -> str:
        if self.pareto:
            return "the Pareto front of " + ", ".join(self.metrics)
        return self.metrics[0]


def _checked(name: object, catalog: Catalog) -> str:
    if not isinstance(name, str):
        raise TypeError(f"the name of a metric must be a string, got {name!r}")
    try:
        better = catalog.lookup(name).better
    except KeyError:
        raise ValueError(
            f"there is no metric named {name!r}{near_metric(name, catalog.names)}"
        ) from None
    if not better:
        raise ValueError(
            f"{name!r} describes the data, and neither high nor low values are better: runs "
            "cannot be ranked by it"
        )
    return name


def distance_from_best(better: str, value: float) -> float:
    """Return the distance of a value from the optimum; smaller is better."""
    if better == "nearest zero":
        return abs(value)
    return -value if better == "higher" else value
