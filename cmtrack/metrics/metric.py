"""The :class:`Metric`: name, words and function in one declaration, and what follows from the function.

A metric of counts is a function of the cells of a table. Its influence, what one sample in a cell adds to its error, is
n times the derivative by that cell's count; standard errors, intervals, errors by cluster and paired differences follow
from it. Where a declaration brings no influence of its own, the derivative is taken here.
"""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cmtrack.metrics.cells import Weighted
from cmtrack.statistics.inputs import FloatArray

NEEDS = {
    "counts": "labels",
    "table": "labels",
    "whole table": "labels",
    "classes": "labels",
    "binary": "two groups",
    "spans": "spans",
    "probabilities": "probabilities",
    "label sets": "label sets",
    "granules": "granules",
}
"""What a metric may be a function of, and the least data that this is computed from."""
BETTER = {"higher": "higher is better", "lower": "lower is better", "nearest zero": "nearest zero is best"}
"""What a comparison may prefer, in words."""
MAX_STEPS = 2 * 10**8
"""Most cells, times the cells in use, for which a derivative of a function of the whole table is taken cell by cell."""

_STEP = 1e-30
_Complex = npt.NDArray[np.complex128]


@dataclass(frozen=True)
class Metric:
    """A metric: its name, its words and its function.

    Parameters
    ----------
    name : str
        ``section/metric``, with ``<label>``, ``<step>`` and ``<group>`` for the parts that vary.
    value : callable or None
        The function: a number, or NaN where it is undefined. None for a metric whose section computes it, and for one
        that was read from a file, which holds no functions.
    of : str, default "counts"
        What it is a function of. ``"counts"``: the (K, K) array of counts, rows actual, columns predicted, float64.
        ``"binary"``: the six counts of two groups, ``b.tp b.fn b.imp b.fp b.tn b.imn``. The other values are those of
        cmtrack's own sections.
    better : "higher", "lower", "nearest zero" or "", default "higher"
        What a comparison prefers; empty for counts and descriptions, which are not ranked.
    low, high : float
        Its range, by default that of its interval: without ends for ``"wald"``.
    interval : str, default "wald"
        How its interval is made: ``"wald"`` (value and error), ``"wilson"`` (a share of samples), ``"atanh"`` (a
        correlation) or ``"logit"`` (between 0 and 1). cmtrack's own sections also have ``"count"``, ``"profile"`` and
        the empty text for none.
    title : str, optional
        Its name for people; by default made from ``name``.
    source, formula : str, optional
        Where it comes from, and its formula in words.
    headline : bool, default True
        Whether it is logged as an MLflow metric by default.
    influence : callable, optional
        For a metric of counts, n times the derivative of the value by each count, of the same argument: an array of
        shape (K, K), or (6,). By default the derivative is taken by a complex step where the function allows it, by
        central differences elsewhere; of a table of many classes that takes too long, and this is needed.
    brief : str, optional
        A title for the head of a table.
    reason : str, optional
        Why it is undefined where it is; by default that its denominator is zero.

    Notes
    -----
    A function that is not defined for complex numbers (it compares, rounds or takes absolute values) is
    differentiated by central differences. The function must not be a lambda where evaluations or accumulators are
    pickled.

    Examples
    --------
    >>> from cmtrack import Metric, evaluate
    >>> gain = Metric("custom/gain", lambda b: 5 * b.tp - b.fp, of="binary")
    >>> evaluation = evaluate([0, 1, 1, 0], [0, 1, 0, 1], extra_metrics=[gain])
    >>> evaluation.metrics["custom/gain"]
    4.0
    """

    name: str
    value: Callable[[Any], Any] | None
    _: KW_ONLY
    of: str = "counts"
    better: str = "higher"
    low: float = -math.inf
    high: float = math.inf
    interval: str = "wald"
    title: str = ""
    source: str = ""
    formula: str = ""
    headline: bool = True
    influence: Callable[[Any], FloatArray] | None = None
    brief: str = ""
    reason: str = ""

    def __post_init__(self) -> None:
        usual = {"atanh": (-1.0, 1.0), "wilson": (0.0, 1.0), "logit": (0.0, 1.0)}.get(self.interval)
        if usual is not None and (self.low, self.high) == (-math.inf, math.inf):
            object.__setattr__(self, "low", usual[0])
            object.__setattr__(self, "high", usual[1])

    @property
    def section(self) -> str:
        """The part before the first slash."""
        return self.name.split("/")[0]

    def heading(self, brief: bool = False) -> str:
        """Its title for people, without the parts of the name that vary; ``brief`` for the head of a table."""
        title = (self.brief or self.title) if brief else self.title
        return title or self.name.rsplit("/", 1)[-1].replace("_", " ")

    @property
    def needs(self) -> str:
        """The least that it is computed from: "labels", "two groups", "probabilities", "label sets", ..."""
        return NEEDS[self.of]

    def number(self, argument: Any) -> float:
        """The value of an argument.

        Raises
        ------
        ValueError, TypeError
            If the function fails, or gives no number; the text names the metric.
        """
        assert self.value is not None  # the caller computes what has a function
        try:
            with np.errstate(all="ignore"):
                value = self.value(argument)
        except ZeroDivisionError:
            return math.nan
        except Exception as error:
            raise ValueError(f"the metric {self.name!r} failed: {type(error).__name__}: {error}") from error
        if isinstance(value, np.ndarray) and value.ndim == 0:
            value = value[()]
        if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
            raise TypeError(f"the metric {self.name!r} must give one real number, got {value!r:.60}")
        return float(value)

    def spread(self, argument: Any, cells: Weighted, value: float) -> tuple[float | None, float | None]:
        """The standard error of a value, and for a share the effective size of its denominator; None where not known.

        Parameters
        ----------
        argument
            What the function is given.
        cells : Weighted
            The cells that ``argument`` was made of.
        value : float
            What the function gave.
        """
        denominator = getattr(self.value, "denominator", None)
        if self.interval == "wilson" and denominator is not None:
            return None, cells.effective(denominator(argument))
        psi = self.by_cell(argument, cells)
        if psi is None:
            return None, None
        error = cells.standard_error(psi)
        if self.interval != "wilson":
            return error, None
        if 0 < value < 1 and error > 0:
            return error, value * (1 - value) / error**2
        return error, self._share_of(cells)

    def _share_of(self, cells: Weighted) -> float | None:
        """The denominator of a share of 0 or 1: one sample more above or below moves it by one over it."""
        if len(cells.weight) < cells.table_size:
            return None  # the derivative by a cell that is empty tells
        gradient = self._complex_step(cells, np.arange(len(cells.weight)))
        reach = 0.0 if gradient is None else float(np.ptp(gradient))
        return cells.everyone / cells.total / reach if reach > 0 else None

    def by_cell(self, argument: Any, cells: Weighted) -> FloatArray | None:
        """Influence of a sample in each cell, shape (C,), less its mean over the samples; None where not known."""
        closed = getattr(self.value, "influence", None)
        if closed is not None:
            return np.asarray(closed(argument), dtype=np.float64)
        if self.influence is not None:
            given = np.asarray(self.influence(argument), dtype=np.float64)
            psi = cells.in_table(given)
            if psi is None:
                raise ValueError(
                    f"the influence of {self.name!r} must have one value for each count, got shape {given.shape}"
                )
        else:
            assert self.value is not None  # the caller computes what has a function
            if len(cells.weight) * cells.table_size > MAX_STEPS:
                return None
            psi = cells.total * self._derivative(cells)
        return np.asarray(psi - float(cells.weight @ psi) / cells.total)

    def _derivative(self, cells: Weighted) -> FloatArray:
        """Derivative by the count of each cell, shape (C,); 0 where a cell is empty."""
        used = np.flatnonzero(cells.weight)
        found = self._complex_step(cells, used)
        return self._central_differences(cells, used) if found is None else found

    def _complex_step(self, cells: Weighted, used: npt.NDArray[np.intp]) -> FloatArray | None:
        """The derivative, exact to rounding; None where the function does not carry complex numbers through."""
        assert self.value is not None  # checked by the caller
        gradient, step = np.zeros(len(cells.weight)), _STEP * cells.total
        try:
            with np.errstate(all="ignore"), nullcontext() if self.of == "binary" else warnings.catch_warnings():
                if self.of != "binary":  # the six counts are plain complex numbers, which refuse by themselves
                    warnings.simplefilter("error", np.exceptions.ComplexWarning)
                for c in used:
                    stepped: _Complex = cells.weight.astype(np.complex128)
                    stepped[c] += 1j * step
                    gradient[c] = complex(self.value(cells.argument(stepped))).imag / step
        except Exception:  # whatever the function finds wrong with complex numbers
            return None
        if not np.isfinite(gradient).all():
            return None
        along = 1e-5 * cells.weight * np.cos(0.7 + np.arange(len(cells.weight)))
        ends = [self._at(cells, cells.weight + sign * along) for sign in (1, -1)]
        near = 1e-4 * float(np.abs(gradient * along).sum()) + 1e-12 * abs(ends[0])
        return gradient if abs((ends[0] - ends[1]) / 2 - float(gradient @ along)) <= near else None

    def _central_differences(self, cells: Weighted, used: npt.NDArray[np.intp]) -> FloatArray:
        gradient = np.zeros(len(cells.weight))
        for c in used:
            step, ends = 6e-6 * cells.weight[c], []
            for sign in (1, -1):
                stepped = cells.weight.copy()
                stepped[c] += sign * step
                ends.append(self._at(cells, stepped))
            gradient[c] = (ends[0] - ends[1]) / (2 * step)
        return gradient

    def _at(self, cells: Weighted, weight: FloatArray) -> float:
        return self.number(cells.argument(weight))
