"""The share of positives at which two models cross: where the one, or the other, is shown to be better."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cmtrack.comparison.comparability import in_order_of, why_unpaired
from cmtrack.comparison.differences import at_end, paired
from cmtrack.evaluation import Evaluation
from cmtrack.evaluation.from_arrays import evaluate_rows
from cmtrack.evaluation.transport import COUNTED
from cmtrack.metrics.influence import standard_error
from cmtrack.metrics.intervals import check_level, normal_quantile
from cmtrack.names import quoted
from cmtrack.statistics.inputs import FloatArray
from cmtrack.statistics.predictions import Predictions

SHARES = 101
_LEAST = 0.001


@dataclass(frozen=True, eq=False)
class Crossing:
    """A metric's paired difference between two models, by share of positives.

    Attributes
    ----------
    metric : str
    shares, difference, standard_error : ndarray of shape (P,)
        Shares of positives, and by how much the first is better at each.
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
        """Shares from low to high, and the model shown to be better there: 1, 2, or 0 for neither."""
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
        clauses = [f"{names[better]} {_between(low, high)}" for low, high, better in self.pieces if better]
        if not clauses:
            return f"{names[1]} and {names[2]} are not told apart at any share of positives"
        rest = [piece for piece in self.pieces if not piece[2]]
        where = "between them" if len(clauses) == 2 and len(rest) == 1 and len(self.pieces) == 3 else "elsewhere"
        return ", ".join(clauses) + (f", {where} not told apart" if rest else "")


def _between(low: float, high: float) -> str:
    ends = [f"{float(f'{100 * end:.2g}'):g}" for end in (low, high)]
    if low == 0:
        return "at every share" if high == 1 else f"up to {ends[1]} %"
    return f"from {ends[0]} %" if high == 1 else f"from {ends[0]} to {ends[1]} %"


def _zeros(x: FloatArray, y: FloatArray) -> tuple[float, ...]:
    """The zeros of a piecewise linear function."""
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
        If the rows are not paired, there is no positive class or group, or the metric has no error by row, as a
        precision of 1.

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
    apart, rows, others = why_unpaired(first, second), first.rows, second.rows
    if apart is not None or not (isinstance(rows, Predictions) and isinstance(others, Predictions)):
        reason = "" if apart is None else f": {apart.between(first, second)}"
        raise ValueError(f"a crossing needs two evaluations of the same rows{reason}")
    if first.positive is None or first.positive != second.positive:
        raise ValueError(f"a crossing needs one positive, got {first.positive!r} and {second.positive!r}")
    end = math.log((1 - _LEAST) / _LEAST)
    shares = 1 / (1 + np.exp(-np.linspace(-end, end, SHARES)))
    entry, squares, sides = first.catalog.lookup(metric), None, (first, second)
    sign = -1.0 if entry.better == "lower" else 1.0
    pair = paired(sides, metric) if all(metric in side.metrics for side in sides) else None
    for side in sides if pair is not None and pair.shares is None else ():  # of what a precision of 1 is, no row tells
        if at_end(side, metric)[2]:
            raise ValueError(f"a crossing needs a metric that rows move, got {metric!r} of {side.metrics[metric]:g}")
    if entry.of in COUNTED and rows.clusters is None:
        both, squares = _cells(rows, others)
        sides = evaluate_rows(both[0], first), evaluate_rows(both[1], second)
    gaps, errors = [], []
    for share in shares.tolist():
        (ours, mine), (value, theirs) = (_at(side, share, metric) for side in sides)
        gaps.append(sign * (ours - value))
        if squares is None:
            errors.append(standard_error(mine - theirs, rows.weights, rows.clusters))
        else:
            errors.append(math.sqrt(float(squares @ (mine - theirs) ** 2)))
    return Crossing(metric, shares, np.array(gaps), np.array(errors), level)


def _at(evaluation: Evaluation, share: float, metric: str) -> tuple[float, FloatArray]:
    """A metric at a share of positives, and each row's contribution to its error within the classes."""
    moved = evaluation.at(share).moved
    term = moved.term(metric)
    parts = None if term is None else moved.within(term)
    if term is None or parts is None:
        raise ValueError(f"a crossing needs a metric that moves and has an error by row, got {metric!r}")
    _, within, weights = parts
    return term.value, weights * within


def _cells(rows: Predictions, others: Predictions) -> tuple[tuple[Predictions, Predictions], FloatArray]:
    """One row for each actual class and pair of answers, by its weight, and the weight of its squared influence."""
    size = len(rows.labels)
    code = (rows.actual * size + rows.predicted) * size + others.predicted
    cells, place = np.unique(code, return_inverse=True)
    weights = np.bincount(place, rows.weights).astype(np.float64)
    given = rows.weights
    squares = weights if given is None or given.dtype.kind == "i" else np.bincount(place, given**2)
    actual, mine, theirs = cells // size**2, cells // size % size, cells % size
    one, other = (Predictions.from_arrays(rows.labels, actual, answer, None, weights) for answer in (mine, theirs))
    return (one, other), squares / weights.sum() ** 2
