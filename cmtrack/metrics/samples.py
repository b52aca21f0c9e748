"""Statistics of the rows, which metrics use as arguments, and standard errors from influence.

A metric is a function of numbers that summarize the rows. These are the counts in the cells of a
table, the moments of scores, or sums of contributions to which every row adds. The influence of a
row is the directional derivative of the function in the direction of the row's contribution. Each
class in this module computes this derivative if a metric does not provide its influence, and turns
an influence into a standard error. Metrics for a new kind of data need a new class.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from cmtrack._lazy import cached_property
from cmtrack.metrics.intervals import ROUNDING
from cmtrack.statistics.inputs import FloatArray, IntArray

if TYPE_CHECKING:
    from cmtrack.metrics.influence import Influence
    from cmtrack.metrics.metric import Metric
    from cmtrack.metrics.views import EvaluationViews

KINDS: dict[str, type[Samples]] = {}
"""The class of samples for each value of :attr:`Metric.of`."""

MAX_STEPS = 2 * 10**8
"""Limit for the number of cells times the number of non-empty cells. If the product is above the
limit, a function of the whole table is not differentiated cell by cell.
"""

_STEP = 1e-30
"""Size of the imaginary step. It is too small to change the real part, so that no digits are lost.
"""
_Complex = npt.NDArray[np.complex128]


class Samples:
    """Statistics for one kind of metric, as numbers, or as arrays of shape (K,) by class.

    ``kinds``: the values of :attr:`Metric.of` for which this class is used.
    ``by_level``: True if the statistics depend on the confidence level.
    ``by_pairs``: True if the size of the statistics grows with the square of the number of classes.
    ``total``: number of rows, or sum of the rows' weights.
    ``fractional``: True if weights are not numbers of identical rows. The sum of the squared
        weights then differs from the sum of the weights.
    """

    kinds: ClassVar[tuple[str, ...]] = ()
    by_level: ClassVar[bool] = False
    by_pairs: ClassVar[bool] = False
    total: Any
    fractional: Any = False

    def __init_subclass__(cls) -> None:
        KINDS.update(dict.fromkeys(cls.__dict__.get("kinds", ()), cls))

    @classmethod
    def of_views(cls, views: EvaluationViews, kind: str, step: str) -> Samples | None:
        """Return the samples for an evaluation; None if metrics of this kind do not apply.

        ``kind``: one of ``kinds``.
        ``step``: encoded name of a metric's step. It is empty for metrics of the classes.
        """
        raise NotImplementedError

    def argument(self) -> Any:
        """Return the argument for a metric's function, which is this object by default."""
        return self

    def influence(self, metric: Metric) -> FloatArray | None:
        """Compute the influence of a metric that does not provide its influence.

        The influence is computed from the derivative of the metric's function. The result is None
        if functions of this kind provide their influence, or if the computation would take too
        long.
        """
        return None

    def standard_error(self, influence: FloatArray) -> Any:
        """Compute the standard error of a metric from its influence."""
        raise NotImplementedError

    def within(
        self, influence: FloatArray, strata: IntArray
    ) -> tuple[FloatArray, FloatArray] | None:
        """Subtract the mean in each stratum of actual classes from the influence.

        The method returns the result and the means, or None if the means are unknown. If the shares
        of the actual classes are fixed, only the variation within a class contributes to the
        standard error.

        ``influence``: the influence, in the form that :meth:`standard_error` accepts.
        ``strata``, shape (K,): the stratum of each class. If samples have two sides, which are
            coarser strata, the mean of the negatives and the mean of the positives are subtracted
            instead.
        """
        return None

    def by_row(self, metric: Metric, at: Influence, step: str, k: int | None) -> FloatArray | None:
        """Return the influence of each row, shape (n,), or None if the influence is unknown.

        ``at``: the influence values of the evaluation, which also contain its rows.
        ``step``: encoded name of the metric's step.
        ``k``: index of the class if the function returns a value for each class.
        """
        samples, place = at.locate(self, step)
        psi = metric.influence_in(samples, k)
        if psi is None:
            return None
        return np.asarray(psi[place])

    def located(self, at: Influence, step: str) -> tuple[Samples, IntArray]:
        """Return the samples including the cells of all rows, and each row's cell, shape (n,)."""
        raise TypeError(f"no influence by row of {type(self).__name__}")

    def effective(self, denominator: Any) -> Any:
        """Return Kish's effective size of a denominator; None stands for all rows."""
        raise NotImplementedError

    def evened(self) -> Samples | None:
        """Return the samples with squared weights that are spread evenly within each actual class.

        If few rows are errors, a sandwich standard error depends on the weights of these few rows.
        If the squares are spread over all rows of the actual class, the standard error does not
        depend on these few weights. It is then too small only if errors have larger weights than
        other rows, and in this case the sandwich standard error is larger. So intervals use the
        larger of the two standard errors. Shares use the smaller of two sizes for the same reason
        (:func:`cmtrack.metrics.intervals.size_of_share`). The result is None if there are no
        sampling weights, or if the samples are not a table.
        """
        return None

    def denominator_of(self, metric: Metric) -> float | None:
        """Return the effective denominator of a share of exactly 0 or 1; None if it is unknown."""
        return None

    def informing(self, metric: Metric) -> Any:
        """Return the effective number of rows, for intervals if the standard error is 0.

        The result is None if the number is unknown.
        """
        return None

    def with_flipped(self, size: Any) -> Samples | None:
        """Return the samples after adding one row, half of which has its label flipped.

        The second half of the added row is like the existing rows. For a mean loss, the added row
        has the same effect as Jeffreys' half counts for a share: if there are few errors or none,
        one more error is assumed. The result is None if the values of a flipped row are unknown.

        ``size``, float, or ndarray of shape (K,): effective number of rows that are added. It is
            above 1 if rows are in clusters.
        """
        return None

    def with_high_negative(self) -> Samples | None:
        """Return the samples after adding a negative that scores as high as the top positives.

        If a negative has a larger weight than a positive, each of the few negatives with high
        scores represents many rows, and chance decides whether one was sampled. If no such row was
        sampled, the average precision is too high and its standard error is too low. Adding the
        negative does not change the shares of the two sides. The result is None if negatives do not
        have larger weights than positives, or if the samples are not counted scores of two sides.
        """
        return None


def stratum_means(values: FloatArray, weight: FloatArray, strata: IntArray) -> FloatArray:
    """Return the weighted mean of K values in each of S strata; 0 for a stratum of weight 0."""
    total = np.bincount(strata, weight)
    sums = np.bincount(strata, np.where(weight > 0, weight * values, 0.0))
    return np.divide(sums, total, out=np.zeros(len(total)), where=total > 0)


def gradient(function: Callable[[Any], Any], numbers: Any, n: int) -> FloatArray:
    """Compute derivatives with respect to the first ``n`` fields of a named tuple.

    The derivatives are computed with complex steps.

    ``function``: a function of the named tuple that works elementwise.

    The result is exact except for rounding errors. If the fields have the shape (...), its shape is
    (n, ...).
    """
    derivatives = []
    with np.errstate(all="ignore"):
        for k in range(n):
            stepped = list(numbers)
            stepped[k] = stepped[k] + 1j * _STEP
            derivatives.append(np.imag(function(type(numbers)(*stepped))) / _STEP)
    return np.array(derivatives, dtype=np.float64)


class Sums(Samples):
    """Sums of the contributions of the rows, and sums of products of these contributions.

    A metric is a smooth function of the sums, such as a mean or a ratio of two sums. The influence
    of a row is a weighted sum of the row's contributions, with the derivatives of the function as
    weights.

    ``kind``: the type of the argument for the functions, which is a named tuple with T fields.
    ``sums``, shape (T,) or (T, K): sums of the contributions.
    ``products``, shape (T, T) or (T, T, K): sums of products of two contributions. If the weights
        are fractions, the products are multiplied by the squared weights.
    ``total``: number of rows, or sum of the rows' weights.
    """

    def __init__(self, kind: Any, sums: FloatArray, products: FloatArray, total: float) -> None:
        self.kind = kind
        self.sums = sums
        self.products = products
        self.total = total

    def argument(self) -> Any:
        return self.kind(*self.sums)

    def influence(self, metric: Metric) -> FloatArray:
        return gradient(metric.value_function, self.argument(), len(self.sums))

    def standard_error(self, influence: FloatArray) -> Any:
        squared = np.einsum("t...,tu...,u...->...", influence, self.products, influence)
        mean = np.einsum("t...,t...->...", influence, self.sums)
        variance = squared - mean * mean / self.total
        # The square root of a rounding error would look like a standard error: 1e-8 for a single
        # row, whose standard error is 0.
        size = np.abs(influence)
        largest = np.einsum("t...,tu...,u...->...", size, np.abs(self.products), size)
        return np.sqrt(np.where(variance <= ROUNDING * largest, 0.0, variance))

    def of_rows(self, influence: FloatArray, contributions: npt.NDArray[Any]) -> FloatArray:
        """Compute the influence of each row, shape (n,), from its contributions, shape (n, T)."""
        psi: FloatArray = len(contributions) * (contributions @ influence)
        return psi - psi.mean()


class Weighted(Samples):
    """Cells that count rows, with ``weight`` and ``squares`` as arrays of shape (C,)."""

    weight: FloatArray
    squares: FloatArray

    @cached_property
    def total(self) -> float:
        """Sum of all weights."""
        return float(self.weight.sum())

    @cached_property
    def fractional(self) -> bool:
        """True if weights do not count identical rows, so that their squares are also needed."""
        return self.squares is not self.weight and not np.array_equal(self.squares, self.weight)

    def standard_error(self, influence: FloatArray) -> float:
        """Compute the standard error of a metric from its influence in each cell.

        This sandwich standard error is ``sqrt(sum of w_i^2 (psi_i - mean psi)^2) / sum of w_i``.
        """
        weight, squares = self.held_weights
        influence = influence[self.held]
        mean = float(weight @ influence) / self.total
        return math.sqrt(float(squares @ (influence - mean) ** 2)) / self.total

    @cached_property
    def held(self) -> Any:
        """Index of the cells with rows; all cells if most of them have rows."""
        held = np.flatnonzero(self.weight != 0)
        return held if len(held) < len(self.weight) / 2 else slice(None)

    @cached_property
    def held_weights(self) -> tuple[FloatArray, FloatArray]:
        """``weight`` and ``squares`` of the cells in ``held``."""
        return self.weight[self.held], self.squares[self.held]

    def effective(self, denominator: FloatArray | None) -> float:
        """Return the effective size of a denominator, which is Kish's size if rows have weights."""
        if denominator is None:
            total = self.total
            squares = float(self.squares.sum())
        else:
            total = float(self.weight @ denominator)
            squares = float(self.squares @ denominator)
        return total**2 / squares if squares > 0 else 0.0

    def argument(self, weight: Any = None) -> Any:
        """Return the argument for a function of the table, with these real or complex weights."""
        raise NotImplementedError

    @property
    def table_size(self) -> int:
        """Number of counts in the argument of a function of the table."""
        raise NotImplementedError

    def in_table(self, values: FloatArray) -> FloatArray | None:
        """Return the values of a table at the positions of the cells; None for other shapes."""
        raise NotImplementedError

    def influence(self, metric: Metric) -> FloatArray | None:
        """Return the influence of a row in each cell minus its mean over all rows, shape (C,)."""
        if metric.influence is not None:
            own_influence = np.asarray(metric.influence(self.argument()), dtype=np.float64)
            psi = self.in_table(own_influence)
            if psi is None:
                raise ValueError(
                    f"the influence of {metric.name!r} must have one value for each count, "
                    f"got shape {own_influence.shape}"
                )
        elif len(self.weight) * self.table_size > MAX_STEPS:
            return None
        else:
            used = np.flatnonzero(self.weight)
            derivative = self._complex_step(metric, used)
            if derivative is None:
                derivative = self._central_differences(metric, used)
            psi = self.total * derivative
        return psi - float(self.weight @ psi) / self.total

    def denominator_of(self, metric: Metric) -> float | None:
        """Return the effective denominator of a share of 0 or 1; None if it is unknown.

        The denominator follows from the derivative, because adding one row to the numerator changes
        the share by 1 / n.
        """
        if len(self.weight) < self.table_size:
            return None  # The derivative for an empty cell would be needed.
        slopes = self._complex_step(metric, np.arange(len(self.weight)))
        if slopes is None:
            return None
        reach = float(np.ptp(slopes))
        return self.effective(None) / self.total / reach if reach > 0 else None

    def informing(self, metric: Metric) -> Any:
        """Return the effective number of rows; lower if a single row can change the metric a lot.

        The number is reduced if a row can change the metric by more than 1/n of its range. This row
        may be in a cell that is empty.
        """
        total_size = self.effective(None)
        n = self.denominator_of(metric)
        if n is None:
            return total_size
        return min(total_size, n * (metric.high - metric.low))

    def _complex_step(self, metric: Metric, used: npt.NDArray[np.intp]) -> FloatArray | None:
        """Compute the derivatives with respect to the counts in cells, with complex steps.

        The derivatives are exact except for rounding errors. The result is None if the function
        does not accept complex numbers.
        """
        value = metric.value_function
        derivative = np.zeros(len(self.weight))
        step = _STEP * self.total
        of_six_counts = metric.of == "binary"
        try:
            with (
                np.errstate(all="ignore"),
                nullcontext() if of_six_counts else warnings.catch_warnings(),
            ):
                # The six counts are plain complex numbers, which already raise an error.
                if not of_six_counts:
                    warnings.simplefilter("error", np.exceptions.ComplexWarning)
                for c in used:
                    stepped: _Complex = self.weight.astype(np.complex128)
                    stepped[c] += 1j * step
                    derivative[c] = complex(value(self.argument(stepped))).imag / step
        except Exception:  # A function may raise any error for complex numbers.
            return None
        if not np.isfinite(derivative).all() or not self._agrees(metric, derivative):
            return None
        return derivative

    def _agrees(self, metric: Metric, derivative: FloatArray) -> bool:
        """Return whether a difference quotient in one direction confirms the derivative.

        A function may accept complex numbers but drop the imaginary part, for example by taking
        absolute values. Signs and sizes of the steps differ between cells, so that such a function
        does not pass the check by chance.
        """
        along = 1e-5 * self.weight * np.cos(0.7 + np.arange(len(self.weight)))
        above = metric.number(self.argument(self.weight + along))
        below = metric.number(self.argument(self.weight - along))
        steepest = float(np.abs(derivative).max(initial=0.0))
        rounding = 1e-12 * abs(above) + 1e-15 * self.total * steepest
        near = 1e-4 * float(np.abs(derivative * along).sum()) + rounding
        return abs((above - below) / 2 - float(derivative @ along)) <= near

    def _central_differences(self, metric: Metric, used: npt.NDArray[np.intp]) -> FloatArray:
        derivative = np.zeros(len(self.weight))
        for c in used:
            # The step is about the cube root of the rounding error. Truncation and rounding errors
            # are then of similar size.
            step = 6e-6 * self.weight[c]
            ends = []
            for sign in (1, -1):
                stepped = self.weight.copy()
                stepped[c] += sign * step
                ends.append(metric.number(self.argument(stepped)))
            derivative[c] = (ends[0] - ends[1]) / (2 * step)
        return derivative
