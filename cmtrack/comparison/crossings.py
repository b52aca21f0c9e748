"""The share of positives at which two models cross: where the one, or the other, is shown to be better."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cmtrack.comparison.comparability import in_order_of, why_unpaired
from cmtrack.evaluation import Evaluation
from cmtrack.metrics.influence import standard_error
from cmtrack.metrics.intervals import check_level, normal_quantile
from cmtrack.names import quoted
from cmtrack.statistics.inputs import FloatArray

SHARES = 101
_LEAST = 0.001


@dataclass(frozen=True, eq=False)
class Crossing:
    """A metric's paired difference of two models against the share of positives.

    Attributes
    ----------
    metric : str
    shares, difference, standard_error : ndarray of shape (P,)
        Shares of positives, and what the first is better by at each; above 0, the first is better.
    confidence_level : float
        Of each share by itself.

    Examples
    --------
    >>> from cmtrack import evaluate
    >>> from cmtrack.comparison import crossing
    >>> y = [0] * 900 + [1] * 300
    >>> careful = evaluate(y, [0] * 855 + [1] * 45 + [0] * 90 + [1] * 210)
    >>> eager = evaluate(y, [0] * 765 + [1] * 135 + [0] * 30 + [1] * 270)
    >>> print(crossing(careful, eager).sentence("careful", "eager"))
    “careful” up to 27 %, “eager” from 41 %, between them not told apart
    """

    metric: str
    shares: FloatArray
    difference: FloatArray
    standard_error: FloatArray
    confidence_level: float

    @property
    def values(self) -> tuple[float, ...]:
        """The shares at which both are estimated to be as good."""
        return _zeros(self.shares, self.difference)

    @property
    def pieces(self) -> tuple[tuple[float, float, int], ...]:
        """Shares from low to high, and which of both is shown to be better there: 1, 2, or 0 for neither."""
        reach = normal_quantile(self.confidence_level) * self.standard_error
        low, high = self.difference - reach, self.difference + reach
        ends = sorted({*_zeros(self.shares, low), *_zeros(self.shares, high)})
        out: list[tuple[float, float, int]] = []
        for start, end in zip([0.0, *ends], [*ends, 1.0], strict=True):
            inside = np.clip((start + end) / 2, self.shares[0], self.shares[-1])
            least, most = (float(np.interp(inside, self.shares, side)) for side in (low, high))
            better = 1 if least > 0 else 2 if most < 0 else 0
            if out and out[-1][2] == better:
                start = out.pop()[0]
            out.append((start, end, better))
        return tuple(out)

    def sentence(self, first: str = "A", second: str = "B") -> str:
        """The shares at which each is shown to be better: "A up to 12 %, B from 31 %, between them not told apart".

        Parameters
        ----------
        first, second : str
            The models' names.
        """
        names = ("", quoted(first), quoted(second))
        told = [f"{names[better]} {_between(low, high)}" for low, high, better in self.pieces if better]
        if not told:
            return f"{names[1]} and {names[2]} are not told apart at any share of positives"
        rest = [piece for piece in self.pieces if not piece[2]]
        where = "between them" if len(told) == 2 and len(rest) == 1 and len(self.pieces) == 3 else "elsewhere"
        return ", ".join(told) + (f", {where} not told apart" if rest else "")


def _between(low: float, high: float) -> str:
    ends = [f"{float(f'{100 * end:.2g}'):g}" for end in (low, high)]
    if low == 0:
        return "at every share" if high == 1 else f"up to {ends[1]} %"
    return f"from {ends[0]} %" if high == 1 else f"from {ends[0]} to {ends[1]} %"


def _zeros(x: FloatArray, y: FloatArray) -> tuple[float, ...]:
    """The places where a line of pieces changes its sign."""
    k = np.flatnonzero(np.sign(y[:-1]) * np.sign(y[1:]) < 0)
    crossed = x[k] + (x[k + 1] - x[k]) * y[k] / (y[k] - y[k + 1])
    return tuple(sorted({*crossed.tolist(), *x[1:-1][y[1:-1] == 0].tolist()}))


def crossing(
    first: Evaluation, second: Evaluation, metric: str = "multiclass/accuracy", *, confidence_level: float | None = None
) -> Crossing:
    """Find the shares of positives at which the one or the other of two models is shown to be better.

    Parameters
    ----------
    first, second : Evaluation
        Of the same rows, with their rows, and the same positive class or group.
    metric : str
    confidence_level : float, optional
        By default the first evaluation's.

    Raises
    ------
    ValueError
        If the rows are not paired, there is no positive class or group, or the metric has no error by row.

    Notes
    -----
    At each of 101 shares the difference has the paired error of the rows within each class (:meth:`Evaluation.at`);
    ends are interpolated. Accuracies are linear in the share.

    Examples
    --------
    >>> from cmtrack import evaluate
    >>> from cmtrack.comparison import crossing
    >>> y = [0] * 900 + [1] * 300
    >>> careful = evaluate(y, [0] * 855 + [1] * 45 + [0] * 90 + [1] * 210)
    >>> eager = evaluate(y, [0] * 765 + [1] * 135 + [0] * 30 + [1] * 270)
    >>> [round(share, 3) for share in crossing(careful, eager).values]
    [0.333]
    """
    level = first.confidence_level if confidence_level is None else check_level(confidence_level)
    second = in_order_of(first, second)
    apart, rows = why_unpaired(first, second), first.rows
    if apart is not None or rows is None:
        reason = "" if apart is None else f": {apart.between(first, second)}"
        raise ValueError(f"a crossing needs two evaluations of the same rows{reason}")
    if first.positive is None or first.positive != second.positive:
        raise ValueError(f"a crossing needs one positive, got {first.positive!r} and {second.positive!r}")
    end = math.log((1 - _LEAST) / _LEAST)
    shares = 1 / (1 + np.exp(-np.linspace(-end, end, SHARES)))
    sign = -1.0 if first.catalog.lookup(metric).better == "lower" else 1.0
    gaps, errors = [], []
    for share in shares.tolist():
        terms = [side.at(share).moved for side in (first, second)]
        found = [moved.within(moved.terms[metric]) if metric in moved.terms else None for moved in terms]
        if found[0] is None or found[1] is None:
            raise ValueError(f"a crossing needs a metric that moves and has an error by row, got {metric!r}")
        gaps.append(sign * (terms[0].terms[metric].value - terms[1].terms[metric].value))
        within = found[0][2] * (found[0][1] - found[1][1])
        errors.append(standard_error(within, rows.weights, rows.clusters))
    return Crossing(metric, shares, np.array(gaps), np.array(errors), level)
