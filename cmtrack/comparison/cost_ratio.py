"""Break-even: from which ratio of two costs on one model is cheaper than another, with its Fieller set."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from cmtrack.comparison.comparability import (
    Reason,
    Traits,
    differences_of,
    in_order_of,
    why_unpaired,
)
from cmtrack.digits import significant
from cmtrack.evaluation import Evaluation
from cmtrack.metrics.intervals import Interval, check_level, normal_quantile
from cmtrack.names import quoted
from cmtrack.statistics.design import cluster_degrees


@dataclass(frozen=True)
class BreakEven:
    """The ratio, cost of a miss by cost of a false alarm, at which two models cost the same.

    Attributes
    ----------
    value : float
        NaN where one model has no more misses and no more false alarms than the other: no ratio is
        a break-even.
    pieces : tuple of (low, high)
        The ratios at which the models are not told apart: none, one or two pieces of 0 to infinity.
    false_alarms, misses : float
        Those of the first less those of the second, as shares of all rows; mismatches of the
        positive group are misses.
    covariance : tuple of float
        Variance of ``false_alarms``, covariance, variance of ``misses``.
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
        """Form of the set: "interval", "down to 0", "up to infinity", "two pieces", "every ratio" or "empty"."""
        if len(self.pieces) != 1:
            return "two pieces" if self.pieces else "empty"
        low, high = self.pieces[0]
        open_ends = low == 0, math.isinf(high)
        names = {
            (True, True): "every ratio",
            (True, False): "down to 0",
            (False, True): "up to infinity",
        }
        return names.get(open_ends, "interval")

    @property
    def told_apart(self) -> tuple[Interval, ...]:
        """The ratios at which one model is shown to be cheaper: what :attr:`pieces` leave of 0 to infinity."""
        edges = [0.0, *(end for piece in self.pieces for end in piece), math.inf]
        return tuple(
            (low, high) for low, high in zip(edges[::2], edges[1::2], strict=True) if low < high
        )

    def sentence(self, first: str = "A", second: str = "B") -> str:
        """A sentence for people: which model is cheaper, and from which ratio on.

        Parameters
        ----------
        first, second : str
            The models' names.
        """
        names = quoted(first), quoted(second)
        if self.false_alarms == self.misses == 0:
            return f"{names[0]} and {names[1]} have the same misses and the same false alarms."
        if self.kind == "interval" and math.isfinite(self.value):
            above, below = names[::-1] if self.misses > 0 else names
            low, high = self.pieces[0]
            ends = f"{significant(self.value)} [{significant(low)}, {significant(high)}]"
            cheaper = f"{above} is cheaper than {below}"
            return f"{cheaper} wherever a miss costs more than {ends} false alarms."
        if self.told_apart == ((0.0, math.inf),):
            return f"{self._cheaper(self.told_apart[0], names)} whatever a miss costs."
        estimate = (
            f" (estimated break-even: {significant(self.value)})"
            if math.isfinite(self.value)
            else ""
        )
        if not self.told_apart:
            neither = f"{names[0]} is not shown to be cheaper or dearer than {names[1]}"
            return f"{neither} at any cost of a miss{estimate}."
        clauses = [
            f"{self._cheaper(one, names)} where a miss costs {_between(*one)} false alarms"
            for one in self.told_apart
        ]
        return f"{'; '.join(clauses)}; elsewhere neither is shown to be cheaper{estimate}."

    def _cheaper(self, ends: Interval, names: tuple[str, str]) -> str:
        """Name of the model that is cheaper between two break-even ratios."""
        inside = ends[0] + 1 if math.isinf(ends[1]) else (ends[0] + ends[1]) / 2
        cheaper, dearer = names[::-1] if self.false_alarms + inside * self.misses > 0 else names
        return f"{cheaper} is cheaper than {dearer}"


def _between(low: float, high: float) -> str:
    if low == 0:
        return f"less than {significant(high)}"
    return (
        f"more than {significant(low)}"
        if math.isinf(high)
        else f"{significant(low)} to {significant(high)}"
    )


def why_no_break_even(first: Evaluation, second: Evaluation) -> str:
    """Reason why two evaluations have no break-even; empty where they have one."""
    reason = why_unpaired(first, second)
    if reason is not None:
        return f"a break-even needs paired rows: {reason.between(first, second)}"
    if first.binary is None or second.binary is None:
        return f"a break-even needs two groups or two classes, got {len(first.labels)} classes"
    read = frozenset({"grouping", "positive"})
    differ = [
        one
        for one in differences_of(Traits.of(first), Traits.of(second), read)
        if one is not Reason.WEIGHT
    ]
    return (
        f"a break-even needs evaluations of the same two groups, got them {differ[0].value}"
        if differ
        else ""
    )


def break_even(
    first: Evaluation,
    second: Evaluation,
    *,
    groups: Any = None,
    confidence_level: float | None = None,
) -> BreakEven:
    """Find the ratio of the cost of a miss to that of a false alarm above which the one or the other is cheaper.

    Parameters
    ----------
    first, second : Evaluation
        Of the same rows, with the same two groups or classes, their rows at hand.
    groups : array-like of shape (n,), optional
        Rows that belong together; by default those that the first evaluation was made with.
    confidence_level : float, optional
        By default the first evaluation's.

    Raises
    ------
    ValueError
        If the rows are not paired, or there are no two groups, or different ones.

    Notes
    -----
    With x and y the paired differences of false alarms and misses, the costs differ by x + r y and
    are equal at r = -x / y; the set is Fieller's (1954), ``{r > 0 : (x + r y)^2 <= z^2 (V_x + 2 r
    V_xy + r^2 V_y)}``. Where it is not an interval, the rows do not determine the ratio more
    closely.

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
    assert first.rows is not None  # why_unpaired has asked
    design = first.rows.design.with_groups(groups)
    total = first.n_samples
    sides = [_errors(evaluation) for evaluation in (first, second)]
    psi = (sides[0][1] - sides[1][1]) / total
    x, y = ((sides[0][0] - sides[1][0]) / total).tolist()
    spread = design.covariance(psi)
    degrees = math.inf
    if design.has_clusters:
        effective = min(design.effective_clusters(column) for column in psi.T)
        degrees = cluster_degrees(effective, design.n_units)
    variances = float(spread[0, 0]), float(spread[0, 1]), float(spread[1, 1])
    value = -x / y if x * y < 0 else math.nan
    return BreakEven(
        value, fieller(x, y, variances, normal_quantile(level, degrees)), x, y, variances, level
    )


def _errors(evaluation: Evaluation) -> tuple[Any, Any]:
    """False alarms and misses, shape (2,), and their influence by row, shape (n, 2)."""
    judged = (
        evaluation if evaluation.has_section("binary") else evaluation.with_sections(["binary"])
    )
    parts = {name: judged.influence(f"binary/{name}") for name in ("fp", "fn", "imp")}
    influence = {
        name: np.zeros(len(evaluation.rows or ())) if psi is None else psi
        for name, psi in parts.items()
    }
    counts = judged.metrics
    return (
        np.array([counts["binary/fp"], counts["binary/fn"] + counts["binary/imp"]]),
        np.column_stack([influence["fp"], influence["fn"] + influence["imp"]]),
    )


def fieller(
    x: float, y: float, variances: tuple[float, float, float], z: float
) -> tuple[Interval, ...]:
    """The ratios r > 0 with (x + r y)^2 <= z^2 (V_x + 2 r V_xy + r^2 V_y), as pieces in order.

    ``z``: the two-sided quantile.
    """
    v_x, v_xy, v_y = variances
    # a r^2 + 2 b r + c <= 0
    a, b, c = y * y - z * z * v_y, x * y - z * z * v_xy, x * x - z * z * v_x
    root = math.sqrt(max(b * b - a * c, 0.0))
    if a == 0:
        ends = [] if b == 0 else [-c / (2 * b)]
    elif b * b - a * c < 0:
        ends = []
    else:
        q = -(b + math.copysign(root, b))  # no difference of near numbers
        ends = sorted({q / a, c / q if q else q / a})
    edges = [0.0, *(end for end in ends if end > 0), math.inf]
    out: list[Interval] = []
    for low, high in pairwise(edges):
        inside = low + 1.0 if math.isinf(high) else (low + high) / 2
        if (a * inside + 2 * b) * inside + c <= 0:
            out.append((low, high))
    return tuple(out)
