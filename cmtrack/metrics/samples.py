"""Samples as metrics see them, and how an influence becomes a standard error.

A metric is a function of numbers that sum up the samples: the counts of a table's cells, moments of
scores, sums of what each sample contributes. Its influence function, a sample's part of its error,
is the directional derivative along that sample's contribution. Each class here says how: it takes a
metric's derivative where the metric brings no influence of its own, and turns an influence into a
standard error. New data for metrics are a new class of this kind.
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
"""Most cells, times the cells in use, for which a derivative of a function of the whole table is
taken cell by cell.
"""

_STEP = 1e-30
"""Imaginary step: so small that the real part does not change, so that no digits are lost."""
_Complex = npt.NDArray[np.complex128]


class Samples:
    """Samples as the metrics of one kind see them: numbers, or arrays (K,) of each class.

    ``kinds``: the words of :attr:`Metric.of` that the class answers to.
    ``by_level``, ``by_pairs``: True of what depends on the confidence level, and of what grows with
        the square of the classes.
    ``total``: number of samples, or sum of their weights.
    ``fractional``: True where squared weights are not the weights: counts of equal rows are their
        own.
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
        """Return the samples of an evaluation; None where metrics of this kind do not apply.

        ``kind``: one of ``kinds``.
        ``step``: encoded name of the step that a metric is of; empty for the classes themselves.
        """
        raise NotImplementedError

    def argument(self) -> Any:
        """Return the argument of a metric's function: the samples, unless they make one."""
        return self

    def influence(self, metric: Metric) -> FloatArray | None:
        """Return the influence of a metric that brings none of its own, by its derivative.

        None where functions bring theirs, or it takes too long.
        """
        return None

    def standard_error(self, influence: FloatArray) -> Any:
        """Return the standard error of a metric from its influence."""
        raise NotImplementedError

    def within(
        self, influence: FloatArray, strata: IntArray
    ) -> tuple[FloatArray, FloatArray] | None:
        """Return the influence less its mean over each stratum of actual classes, and these means.

        None if they are unknown. Where the shares of the actual classes are given, only what varies
        within a class makes an error.

        ``influence``: as :meth:`standard_error` takes it.
        ``strata``, shape (K,): the stratum of each class. Samples of two sides are centred within
            these, which are coarser; their means are of the negatives and of the positives.
        """
        return None

    def by_row(self, metric: Metric, at: Influence, step: str, k: int | None) -> FloatArray | None:
        """Return the influence of each row (n,): that of its cell; None if the metric has none.

        ``at``: the rows.
        ``step``: encoded name of the step.
        ``k``: the number of the class, where the function gives a value of each.
        """
        samples, place = at.locate(self, step)
        psi = metric.influence_in(samples, k)
        if psi is None:
            return None
        return np.asarray(psi[place])

    def located(self, at: Influence, step: str) -> tuple[Samples, IntArray]:
        """Return the samples, with the cells of all rows, and the cell of each row, shape (n,)."""
        raise TypeError(f"no influence by row of {type(self).__name__}")

    def effective(self, denominator: Any) -> Any:
        """Return the effective sample size (Kish) of a denominator; None means all samples."""
        raise NotImplementedError

    def evened(self) -> Samples | None:
        """Return the rows with weights that say nothing of the errors: squares are spread evenly.

        Where few rows are errors, a sandwich error rests on the weights of these few. With the
        squares of all rows of their actual class it does not; it errs only where errors are heavier
        than the other rows, which the sandwich error shows. Intervals use the larger of both
        errors, as those of shares the smaller of two sizes
        (:func:`cmtrack.metrics.intervals.size_of_share`). None without sampling weights, and for
        what is no table.
        """
        return None

    def denominator_of(self, metric: Metric) -> float | None:
        """Return the effective denominator of a share of exactly 0 or 1; None if unknown."""
        return None

    def informing(self, metric: Metric) -> Any:
        """Return the effective sample size that an error of 0 rests on; None if unknown."""
        return None

    def with_flipped(self, size: Any) -> Samples | None:
        """Return the samples and one more: half of it like the others, half with its label flipped.

        It is to a mean loss what Jeffreys' half counts are to a share: among few errors, or none,
        one more is thought of. None where the flipped one is not known.

        ``size``, float, or ndarray of shape (K,): effective samples that the one stands for: above
            1 where rows belong together.
        """
        return None

    def with_high_negative(self) -> Samples | None:
        """Return the samples and a further negative among the positives above all negatives.

        If a negative weighs more than a positive, each of the few negatives with high scores stands
        for many rows, and it is a matter of luck whether one was drawn. Without it the average
        precision is too high and its error too low. The shares of both sides stay as they are. None
        if negatives weigh no more than positives, and for samples that are not counted scores of
        two sides.
        """
        return None


def stratum_means(values: FloatArray, weight: FloatArray, strata: IntArray) -> FloatArray:
    """Return the weighted means of values (K,) over each stratum, shape (S,); 0 without weight."""
    total = np.bincount(strata, weight)
    sums = np.bincount(strata, np.where(weight > 0, weight * values, 0.0))
    return np.divide(sums, total, out=np.zeros(len(total)), where=total > 0)


def gradient(function: Callable[[Any], Any], numbers: Any, n: int) -> FloatArray:
    """Return derivatives by the first ``n`` fields of a named tuple, by complex steps.

    ``function``: elementwise. The result, shape (n, ...): exact to rounding, of the shape of the
    fields.
    """
    derivatives = []
    with np.errstate(all="ignore"):
        for k in range(n):
            stepped = list(numbers)
            stepped[k] = stepped[k] + 1j * _STEP
            derivatives.append(np.imag(function(type(numbers)(*stepped))) / _STEP)
    return np.array(derivatives, dtype=np.float64)


class Sums(Samples):
    """Sums of per-sample contributions, and of their products.

    A metric is a smooth function of the sums: a mean, a ratio of two sums. Its influence is given
    by the derivatives, as weights of a sample's contributions.

    ``kind``: a named tuple of T fields: what a function is given.
    ``sums``, shape (T,) or (T, K).
    ``products``, shape (T, T) or (T, T, K): with squared weights, where weights are fractions.
    ``total``: number of samples, or sum of weights.
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
        # The root of a rounding error would pass for an error: 1e-8 for one sample, whose error
        # is 0.
        size = np.abs(influence)
        largest = np.einsum("t...,tu...,u...->...", size, np.abs(self.products), size)
        return np.sqrt(np.where(variance <= ROUNDING * largest, 0.0, variance))

    def of_rows(self, influence: FloatArray, contributions: npt.NDArray[Any]) -> FloatArray:
        """Return the influence of each sample (n,) from its contributions (n, T)."""
        psi: FloatArray = len(contributions) * (contributions @ influence)
        return psi - psi.mean()


class Weighted(Samples):
    """Cells that samples fall into: ``weight`` and ``squares``, shape (C,)."""

    weight: FloatArray
    squares: FloatArray

    @cached_property
    def total(self) -> float:
        """Sum of all weights."""
        return float(self.weight.sum())

    @cached_property
    def fractional(self) -> bool:
        """True where squared weights are not the weights: counts of equal rows are their own."""
        return self.squares is not self.weight and not np.array_equal(self.squares, self.weight)

    def standard_error(self, influence: FloatArray) -> float:
        """Return the standard error of a metric from its influence in each cell.

        ``sqrt(sum of w_i^2 (psi_i - mean psi)^2) / sum of w_i``, the sandwich form.
        """
        mean = float(self.weight @ influence) / self.total
        return math.sqrt(float(self.squares @ (influence - mean) ** 2)) / self.total

    def effective(self, denominator: FloatArray | None) -> float:
        """Return the effective size of the samples in a denominator: Kish's for weights."""
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
        """Number of counts that a function of the table is given."""
        raise NotImplementedError

    def in_table(self, values: FloatArray) -> FloatArray | None:
        """Return the values (C,) of a table at the cells' places; None for another shape."""
        raise NotImplementedError

    def influence(self, metric: Metric) -> FloatArray | None:
        """Return the influence of a sample in each cell (C,), less its mean over the samples."""
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
        """Return the denominator of a share of 0 or 1.

        One sample more above or below moves the share by one over it.
        """
        if len(self.weight) < self.table_size:
            return None  # The derivative by a cell that is empty would tell.
        slopes = self._complex_step(metric, np.arange(len(self.weight)))
        if slopes is None:
            return None
        reach = float(np.ptp(slopes))
        return self.effective(None) / self.total / reach if reach > 0 else None

    def informing(self, metric: Metric) -> Any:
        """Return the effective sample size; less if one sample moves the metric by more than 1/n.

        That sample may be of an empty cell.
        """
        total_size = self.effective(None)
        n = self.denominator_of(metric)
        if n is None:
            return total_size
        return min(total_size, n * (metric.high - metric.low))

    def _complex_step(self, metric: Metric, used: npt.NDArray[np.intp]) -> FloatArray | None:
        """Return derivatives by the cells' counts; None if the function refuses complex numbers.

        They are exact to rounding.
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
                # The six counts are plain complex numbers, which refuse by themselves.
                if not of_six_counts:
                    warnings.simplefilter("error", np.exceptions.ComplexWarning)
                for c in used:
                    stepped: _Complex = self.weight.astype(np.complex128)
                    stepped[c] += 1j * step
                    derivative[c] = complex(value(self.argument(stepped))).imag / step
        except Exception:  # Whatever the function finds wrong with complex numbers.
            return None
        if not np.isfinite(derivative).all() or not self._agrees(metric, derivative):
            return None
        return derivative

    def _agrees(self, metric: Metric, derivative: FloatArray) -> bool:
        """Return whether real steps along one direction give a derivative too.

        A function may take complex numbers and drop what is imaginary, as one that takes absolute
        values does. The direction has another sign and size in each cell, so that no such function
        agrees by chance.
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
            # About the cube root of rounding, where the errors of step and of rounding are equal.
            step = 6e-6 * self.weight[c]
            ends = []
            for sign in (1, -1):
                stepped = self.weight.copy()
                stepped[c] += sign * step
                ends.append(metric.number(self.argument(stepped)))
            derivative[c] = (ends[0] - ends[1]) / (2 * step)
        return derivative
