"""Break-even ratio of two costs, at which two models cost the same, with a confidence set."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from cmtrack.comparison.comparability import (
    Reason,
    Traits,
    design_of_rows,
    differences_of,
    in_order_of,
    why_unpaired,
)
from cmtrack.digits import significant
from cmtrack.evaluation import Evaluation
from cmtrack.metrics.intervals import (
    Interval,
    check_level,
    fieller,
    inside,
    normal_quantile,
)
from cmtrack.names import quoted
from cmtrack.statistics.design import cluster_degrees
from cmtrack.statistics.inputs import FloatArray


@dataclass(frozen=True)
class BreakEven:
    """The ratio of a miss's cost to a false alarm's cost at which two models cost the same.

    Attributes
    ----------
    value : float
        Estimated ratio. NaN if one model has neither more misses nor more false alarms than the
        other, because then no ratio is a break-even.
    pieces : tuple of (low, high)
        The ratios at which the costs of the two models are not significantly different, as zero,
        one or two ranges between 0 and infinity.
    false_alarms, misses : float
        Number of false alarms (or misses) of the first model minus the number for the second model,
        divided by the number of rows. Mismatches of the positive group count as misses.
    covariance : tuple of float
        Variance of ``false_alarms``, covariance of ``false_alarms`` and ``misses``, and variance of
        ``misses``.
    confidence_level : float

    Examples
    --------
    >>> from cmtrack import evaluate
    >>> from cmtrack.comparison import break_even
    >>> y = [1] * 100 + [0] * 900
    >>> careful = evaluate(y, [1] * 90 + [0] * 10 + [1] * 90 + [0] * 810)
    >>> strict = evaluate(y, [1] * 60 + [0] * 40 + [1] * 18 + [0] * 882)
    >>> found = break_even(careful, strict)
    >>> round(found.value, 2), found.kind, round(found.false_alarms, 3), round(found.misses, 3)
    (2.4, 'interval', 0.072, -0.03)
    >>> [(round(low, 2), round(high, 2)) for low, high in found.pieces]
    [(1.6, 3.9)]
    """

    value: float
    pieces: tuple[Interval, ...]
    false_alarms: float
    misses: float
    covariance: tuple[float, float, float]
    confidence_level: float

    @property
    def kind(self) -> str:
        """Form of the confidence set.

        The form is one of "interval", "down to 0", "up to infinity", "two pieces", "every ratio"
        and "empty".
        """
        if not self.pieces:
            return "empty"
        if len(self.pieces) > 1:
            return "two pieces"
        low, high = self.pieces[0]
        if low == 0 and math.isinf(high):
            return "every ratio"
        if low == 0:
            return "down to 0"
        if math.isinf(high):
            return "up to infinity"
        return "interval"

    @property
    def told_apart(self) -> tuple[Interval, ...]:
        """The ratios at which one model is significantly cheaper than the other.

        The result contains all ratios from 0 to infinity that are not in :attr:`pieces`.
        """
        remaining = []
        low = 0.0
        for piece_low, piece_high in [*self.pieces, (math.inf, math.inf)]:
            if low < piece_low:
                remaining.append((low, piece_low))
            low = piece_high
        return tuple(remaining)

    def sentence(self, first: str = "A", second: str = "B") -> str:
        """Return a sentence about the ratios at which each model is cheaper.

        Parameters
        ----------
        first, second : str
            Names of the models.
        """
        names = (quoted(first), quoted(second))
        if self.false_alarms == self.misses == 0:
            return f"{names[0]} and {names[1]} have the same misses and the same false alarms."
        has_value = math.isfinite(self.value)
        if self.kind == "interval" and has_value:
            low, high = self.pieces[0]
            cheaper = self._cheaper(2 * high, names)
            ratio = f"{significant(self.value)} [{significant(low)}, {significant(high)}]"
            return f"{cheaper} if a miss costs more than {ratio} false alarms."
        if self.told_apart == ((0.0, math.inf),):
            return f"{self._cheaper(1.0, names)} whatever a miss costs."
        estimate = ""
        if has_value:
            estimate = f" (estimated break-even: {significant(self.value)})"
        if not self.told_apart:
            neither = f"{names[0]} is not shown to be cheaper or more expensive than {names[1]}"
            return f"{neither} at any cost of a miss{estimate}."
        clauses = [
            f"{self._cheaper(inside(low, high), names)} if a miss costs {_between(low, high)} "
            "false alarms"
            for low, high in self.told_apart
        ]
        return (
            f"{'; '.join(clauses)}; at other costs, neither run is shown to be cheaper{estimate}."
        )

    def _cheaper(self, ratio: float, names: tuple[str, str]) -> str:
        """Return a phrase that states which model is cheaper at a given ratio."""
        first, second = names
        if self.false_alarms + ratio * self.misses > 0:
            return f"{second} is cheaper than {first}"
        return f"{first} is cheaper than {second}"


def _between(low: float, high: float) -> str:
    """Return in words a range of costs, expressed as multiples of the cost of a false alarm."""
    if low == 0:
        return f"less than {significant(high)}"
    if math.isinf(high):
        return f"more than {significant(low)}"
    return f"{significant(low)} to {significant(high)}"


def why_no_break_even(first: Evaluation, second: Evaluation) -> str:
    """Return the reason why two evaluations have no break-even ratio; empty if they have one."""
    reason = why_unpaired(first, second)
    if reason is not None:
        return f"a break-even cost needs paired rows: {reason.between(first, second)}"
    if first.binary is None or second.binary is None:
        return f"a break-even cost needs two groups or two classes, got {len(first.labels)} classes"
    read = frozenset({"grouping", "positive"})
    for difference in differences_of(Traits.of(first), Traits.of(second), read):
        if difference is not Reason.WEIGHT:
            how = difference.value
            return f"a break-even cost needs evaluations of the same two groups, got runs {how}"
    return ""


def break_even(
    first: Evaluation,
    second: Evaluation,
    *,
    groups: Any = None,
    confidence_level: float | None = None,
) -> BreakEven:
    """Find the ratio of a miss's cost to a false alarm's cost at which two models cost the same.

    Parameters
    ----------
    first, second : Evaluation
        Evaluations that were made on the same rows, that have the same two groups or classes, and
        that still contain their rows.
    groups : array-like of shape (n,), optional
        Group (cluster) of each row; by default the groups of the first evaluation.
    confidence_level : float, optional
        Level of the confidence set; by default the level of the first evaluation.

    Raises
    ------
    ValueError
        If the rows are not paired, or if the evaluations do not have the same two groups.

    Notes
    -----
    Let x and y be the paired differences of false alarms and misses. The difference between the two
    costs is x + r y, which is zero at r = -x / y. The confidence set is Fieller's (1954), ``{r > 0
    : (x + r y)^2 <= z^2 (V_x + 2 r V_xy + r^2 V_y)}``. If the confidence set is not an interval,
    there are too few rows to determine the ratio more precisely.

    Examples
    --------
    >>> from cmtrack import evaluate
    >>> from cmtrack.comparison import break_even
    >>> y = [1] * 100 + [0] * 900
    >>> careful = evaluate(y, [1] * 90 + [0] * 10 + [1] * 90 + [0] * 810)
    >>> strict = evaluate(y, [1] * 60 + [0] * 40 + [1] * 18 + [0] * 882)
    >>> round(break_even(careful, strict).value, 2)
    2.4
    """
    level = first.confidence_level if confidence_level is None else check_level(confidence_level)
    second = in_order_of(first, second)
    reason = why_no_break_even(first, second)
    if reason:
        raise ValueError(reason)
    design = design_of_rows(first).with_groups(groups)
    first_counts, first_influence = _errors(first)
    second_counts, second_influence = _errors(second)
    psi = (first_influence - second_influence) / first.n_samples
    x, y = ((first_counts - second_counts) / first.n_samples).tolist()
    covariance = design.covariance(psi)
    degrees = math.inf
    if design.has_clusters:
        effective = min(design.effective_clusters(column) for column in psi.T)
        degrees = cluster_degrees(effective, design.n_units)
    variances = (float(covariance[0, 0]), float(covariance[0, 1]), float(covariance[1, 1]))
    value = -x / y if x * y < 0 else math.nan
    pieces = fieller(x, y, variances, normal_quantile(level, degrees))
    return BreakEven(value, pieces, x, y, variances, level)


def _errors(evaluation: Evaluation) -> tuple[FloatArray, FloatArray]:
    """Return false alarms and misses, shape (2,), with the influence of each row, shape (n, 2)."""
    if not evaluation.has_section("binary"):
        evaluation = evaluation.with_sections(["binary"])

    def influence(name: str) -> FloatArray:
        """Return the influence values of a count; 0 for a count that the evaluation lacks."""
        psi = evaluation.influence(f"binary/{name}")
        return np.zeros(len(evaluation.rows or ())) if psi is None else psi

    counts = evaluation.metrics
    return (
        np.array([counts["binary/fp"], counts["binary/fn"] + counts["binary/imp"]]),
        np.column_stack([influence("fp"), influence("fn") + influence("imp")]),
    )
