"""Statistics of the rows as arguments of metrics, and standard errors from influence functions.

A metric is a function of numbers that summarize the rows: counts of a table's cells, moments of
scores, or sums of each row's contributions. The influence of a row is the directional derivative of
the function along the row's contribution. Each class in this module computes this derivative if a
metric does not provide its influence, and turns an influence into a standard error. Metrics of a
new kind of data need a new class.
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
"""The class of samples for each word of :attr:`Metric.of`."""

MAX_STEPS = 2 * 10**8
"""Limit for the number of cells times the number of non-empty cells. Above the limit, a function of
the whole table is not differentiated cell by cell.
"""

_STEP = 1e-30
"""Imaginary step, which is too small to change the real part, so that no digits are lost."""
_Complex = npt.NDArray[np.complex128]


class Samples:
    """Statistics for one kind of metrics, as numbers or arrays (K,) by class.

    ``kinds``: the values of :attr:`Metric.of` that this class serves.
    ``by_level``: True if the statistics depend on the confidence level.
    ``by_pairs``: True if their size grows with the square of the number of classes.
    ``total``: number of rows, or sum of their weights.
    ``fractional``: True for weights that are not numbers of equal rows. The sum of squared weights
        then differs from the sum of weights.
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
        """Return the samples of an evaluation; None if metrics of this kind do not apply.

        ``kind``: one of ``kinds``.
        ``step``: encoded name of a metric's step; empty for metrics of the classes.
        """
        raise NotImplementedError

    def argument(self) -> Any:
        """Return the argument of a metric's function, by default this object."""
        return self

    def influence(self, metric: Metric) -> FloatArray | None:
        """Return the influence from the derivative of a metric that does not provide it.

        None if functions of this kind provide it, or if it would take too long.
        """
        return None

    def standard_error(self, influence: FloatArray) -> Any:
        """Return the standard error of a metric from its influence."""
        raise NotImplementedError

    def within(
        self, influence: FloatArray, strata: IntArray
    ) -> tuple[FloatArray, FloatArray] | None:
        """Return the influence minus its mean in each stratum of actual classes, and the means.

        None if the means are unknown. If the shares of the actual classes are fixed, only the
        variation within a class contributes to the standard error.

        ``influence``: as in :meth:`standard_error`.
        ``strata``, shape (K,): the stratum of each class. Samples with two sides, which are coarser
            strata, subtract the means of the negatives and of the positives instead.
        """
        return None

    def by_row(self, metric: Metric, at: Influence, step: str, k: int | None) -> FloatArray | None:
        """Return the influence of each row (n,), by its cell; None if the metric has no influence.

        ``at``: influence values of the evaluation, with its rows.
        ``step``: encoded name of the step.
        ``k``: index of the class if the function returns a value for each class.
        """
        samples, place = at.locate(self, step)
        psi = metric.influence_in(samples, k)
        if psi is None:
            return None
        return np.asarray(psi[place])

    def located(self, at: Influence, step: str) -> tuple[Samples, IntArray]:
        """Return the samples including the cells of all rows, and the cell of each row (n,)."""
        raise TypeError(f"no influence by row of {type(self).__name__}")

    def effective(self, denominator: Any) -> Any:
        """Return the effective size (Kish) of a denominator; None means all rows."""
        raise NotImplementedError

    def evened(self) -> Samples | None:
        """Return the samples with squared weights spread evenly within each actual class.

        If few rows are errors, a sandwich standard error depends on the weights of these few rows.
        After spreading the squares over all rows of the actual class, it does not. The result is
        too small only if errors have larger weights than other rows, and the sandwich standard
        error shows this. So intervals use the larger of the two. Shares use the smaller of two
        sizes for the same reason (:func:`cmtrack.metrics.intervals.size_of_share`). None without
        sampling weights, and for samples that are not a table.
        """
        return None

    def denominator_of(self, metric: Metric) -> float | None:
        """Return the effective denominator of a share of exactly 0 or 1; None if unknown."""
        return None

    def informing(self, metric: Metric) -> Any:
        """Return the effective number of rows for a standard error of 0; None if unknown."""
        return None

    def with_flipped(self, size: Any) -> Samples | None:
        """Return the samples with one more row, half of it with its label flipped.

        The other half of the added row is like the existing rows. For a mean loss this has the
        effect of Jeffreys' half counts for a share: with few errors or none, one more is assumed.
        None if the values of a flipped row are unknown.

        ``size``, float, or ndarray of shape (K,): effective number of rows that are added; above 1
            if rows are in clusters.
        """
        return None

    def with_high_negative(self) -> Samples | None:
        """Return the samples with one more negative among the positives above all negatives.

        If a negative has a larger weight than a positive, each of the few negatives with high
        scores represents many rows, and chance decides whether one was sampled. Without such a row,
        the average precision is too high and its standard error too low. The shares of both sides
        do not change. None if negatives do not have larger weights than positives, and for samples
        that are not counted scores of two sides.
        """
        return None


def stratum_means(values: FloatArray, weight: FloatArray, strata: IntArray) -> FloatArray:
    """Return the weighted mean of values (K,) in each stratum, shape (S,); 0 without weight."""
    total = np.bincount(strata, weight)
    sums = np.bincount(strata, np.where(weight > 0, weight * values, 0.0))
    return np.divide(sums, total, out=np.zeros(len(total)), where=total > 0)


def gradient(function: Callable[[Any], Any], numbers: Any, n: int) -> FloatArray:
    """Return derivatives by the first ``n`` fields of a named tuple, with complex steps.

    ``function``: an elementwise function of the named tuple.

    The result is exact to rounding. Its shape is (n, ...) for fields of shape (...).
    """
    derivatives = []
    with np.errstate(all="ignore"):
        for k in range(n):
            stepped = list(numbers)
            stepped[k] = stepped[k] + 1j * _STEP
            derivatives.append(np.imag(function(type(numbers)(*stepped))) / _STEP)
    return np.array(derivatives, dtype=np.float64)


class Sums(Samples):
    """Sums of each row's contributions, and of their products.

    A metric is a smooth function of the sums, such as a mean or a ratio of two sums. Its influence
    is a weighted sum of a row's contributions, with the derivatives as weights.

    ``kind``: the type of the functions' argument, a named tuple of T fields.
    ``sums``, shape (T,) or (T, K): sums of the contributions.
    ``products``, shape (T, T) or (T, T, K): sums of products, with squared weights if weights are
        fractions.
    ``total``: number of rows, or sum of weights.
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
        """Return the influence of each row (n,) from its contributions (n, T)."""
        psi: FloatArray = len(contributions) * (contributions @ influence)
        return psi - psi.mean()


class Weighted(Samples):
    """Cells of rows, with ``weight`` and ``squares`` of shape (C,)."""

    weight: FloatArray
    squares: FloatArray

    @cached_property
    def total(self) -> float:
        """Sum of all weights."""
        return float(self.weight.sum())

    @cached_property
    def fractional(self) -> bool:
        """True for weights that are not numbers of equal rows, whose squares differ from them."""
        return self.squares is not self.weight and not np.array_equal(self.squares, self.weight)

    def standard_error(self, influence: FloatArray) -> float:
        """Return the standard error of a metric from its influence in each cell.

        The formula is ``sqrt(sum of w_i^2 (psi_i - mean psi)^2) / sum of w_i``, the sandwich form.
        """
        mean = float(self.weight @ influence) / self.total
        return math.sqrt(float(self.squares @ (influence - mean) ** 2)) / self.total

    def effective(self, denominator: FloatArray | None) -> float:
        """Return the effective size of a denominator, which is Kish's size with weights."""
        inside = np.ones(len(self.weight)) if denominator is None else denominator
        squares = float(self.squares @ inside)
        if not squares > 0:
            return 0.0
        return float(self.weight @ inside) ** 2 / squares

    def argument(self, weight: Any = None) -> Any:
        """Return the argument of a function of the table with these weights, real or complex."""
        raise NotImplementedError

    @property
    def table_size(self) -> int:
        """Number of counts in the argument of a function of the table."""
        raise NotImplementedError

    def in_table(self, values: FloatArray) -> FloatArray | None:
        """Return the values (C,) of a table at the cells' positions; None for other shapes."""
        raise NotImplementedError

    def influence(self, metric: Metric) -> FloatArray | None:
        """Return the influence of a row in each cell (C,), minus its mean over all rows."""
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
        """Return the effective denominator of a share of 0 or 1; None if unknown.

        It follows from the derivative: one more row in the numerator changes the share by 1 / n.
        """
        if len(self.weight) < self.table_size:
            return None  # This would need the derivative by an empty cell.
        slopes = self._complex_step(metric, np.arange(len(self.weight)))
        if slopes is None:
            return None
        reach = float(np.ptp(slopes))
        return self.effective(None) / self.total / reach if reach > 0 else None

    def informing(self, metric: Metric) -> Any:
        """Return the effective number of rows, or fewer if one row can change the metric by more.

        The number is reduced if a row, perhaps in an empty cell, changes the metric by more than
        1/n of its range.
        """
        total_size = self.effective(None)
        n = self.denominator_of(metric)
        if n is None:
            return total_size
        return min(total_size, n * (metric.high - metric.low))

    def _complex_step(self, metric: Metric, used: npt.NDArray[np.intp]) -> FloatArray | None:
        """Return derivatives by the counts of cells; None if complex numbers are not accepted.

        The derivatives are exact to rounding.
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
                # The six counts are plain complex numbers, which raise an error themselves.
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
        """Return whether real steps along one direction confirm the derivative.

        A function may accept complex numbers but drop the imaginary part, for example by taking
        absolute values. The direction has a different sign and size in each cell, so that such a
        function does not agree by chance.
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
            # About the cube root of the rounding error, where truncation and rounding balance.
            step = 6e-6 * self.weight[c]
            ends = []
            for sign in (1, -1):
                stepped = self.weight.copy()
                stepped[c] += sign * step
                ends.append(metric.number(self.argument(stepped)))
            derivative[c] = (ends[0] - ends[1]) / (2 * step)
        return derivative
