"""The :class:`Metric`: name, words and function in one declaration; and the :class:`Section`.

A metric is a function of what :mod:`cmtrack.metrics.samples` makes of the samples. Its influence is
the derivative of the function, taken there, or one that the function brings in closed form;
standard errors, intervals, errors by cluster and paired differences follow from it.

A function that brings more than its value is a :class:`~cmtrack.metrics.function.Function`.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple

import numpy as np

from cmtrack.metrics.function import PLAIN, Fraction, Function
from cmtrack.metrics.intervals import ROUNDING, size_of_share
from cmtrack.metrics.names import slug
from cmtrack.metrics.samples import Samples
from cmtrack.statistics.inputs import FloatArray

NEEDS = {
    "counts": "labels",
    "table": "labels",
    "whole table": "labels",
    "classes": "labels",
    "binary": "two groups",
    "spans": "spans",
    "costs": "costs",
    "documents": "label sets",
    "family": "label sets",
    "codes": "label sets",
    "granules": "granules",
    "flips": "two runs",
}
"""The least data that it takes to compute what a metric is a function of; the other kinds take
probabilities.
"""
OF_POSITIVE = frozenset({"grouping", "positive"})
"""Options that decide the positive group."""
DEPENDS_ON = {
    OF_POSITIVE: (
        "binary",
        "scores",
        "reliability",
        "moments",
        "means",
        "spread",
        "calibrated",
        "calibrated rows",
    ),
    frozenset({"grouping"}): ("losses within",),
    frozenset({"costs"}): ("costs", "decisions"),
}
"""What metrics may be functions of, by the options of an evaluation that decide it; no option
decides the others.
"""
BETTER = {
    "higher": "higher is better",
    "lower": "lower is better",
    "nearest zero": "nearest zero is best",
}
"""What a comparison may prefer, in words."""
RANGES = {"atanh": (-1.0, 1.0), "wilson": (0.0, 1.0), "logit": (0.0, 1.0), "log": (0.0, math.inf)}
"""The range of a metric by its kind of interval; of others it has no ends."""
WITHOUT_ERROR = ("", "profile", "square")
"""Kinds of interval that need no standard error: none at all, or one that the function computes."""
AVERAGES = ("macro", "micro", "weighted")
"""What names of averages end in, before ``_zero``: a class without a value counted as 0."""


class Spread(NamedTuple):
    """The standard error of a metric, and what its interval needs besides; None where not known.

    ``error``: of a share or count of rows without sampling weights None: its size gives it.
    ``size``: of a share or count the effective size of its denominator; of other metrics with a
        range the rows that decide where the error is 0, for an area those of both sides.
    ``least``: the error that an interval is made of at least: see :meth:`Samples.evened`.
    """

    error: Any = None
    size: Any = None
    least: Any = None


@dataclass(frozen=True)
class Metric:
    """A metric: its name, its words and its function.

    Parameters
    ----------
    name : str
        ``section/metric``, with ``<label>``, ``<step>`` and ``<group>`` for the parts that vary.
    value : callable or None
        The function: a number, or NaN where it is undefined. None for a metric whose section
        computes it, and for one that was read from a file, which holds no functions.
    of : str, default "counts"
        What it is a function of. ``"counts"``: the (K, K) array of counts, rows actual, columns
        predicted, float64.
        ``"binary"``: the six counts of two groups, ``b.tp b.fn b.imp b.fp b.tn b.imn``. cmtrack's
        own sections use the other values.
    better : "higher", "lower", "nearest zero" or "", default "higher"
        What a comparison prefers; empty for counts and descriptions, which are not ranked.
    low, high : float
        Its range, by default that of its interval: without ends for ``"wald"``.
    interval : str, default "wald"
        How its interval is made: ``"wald"`` (value and error), ``"wilson"`` (a share of samples),
        ``"atanh"`` (a correlation), ``"logit"`` (between 0 and 1) or ``"log"`` (a loss, above 0).
        cmtrack's own sections also have ``"count"``, ``"profile"``, ``"square"`` and the empty text
        for none.
    title : str, optional
        Its name for people; by default made from ``name``.
    source, formula : str, optional
        Where it comes from, and its formula in words.
    headline : bool, default True
        Whether it is logged as an MLflow metric by default.
    influence : callable, optional
        For a metric of counts, a function of the same argument: n times the derivative of the value
        by each count, an array of shape (K, K), or (6,). By default the derivative is taken by a
        complex step where the function allows it, by central differences elsewhere; for many
        classes that takes too long, and this is needed.
    brief : str, optional
        A title for the head of a table.
    reason : str, optional
        Why it is undefined where it is; by default that its denominator is zero.
    needs : str, optional
        The least that it is computed from: "labels", "two groups", "probabilities", "label sets",
        ...; by default what ``of`` says.
    few_errors : bool, default False
        Whether few wrong predictions make most of its error. Its interval is then that of the
        samples and one more, half of it flipped
        (:meth:`cmtrack.metrics.samples.Samples.with_flipped`).
    one_sided : bool, default False
        Whether an answer without a model reaches its best value, as always answering "yes" reaches
        a recall of 1. No comparison with the best constant answer is made then.
    association : bool, default False
        Whether one value means that the predicted label says nothing of the actual one: 0 of
        correlations and Cohen's kappa, 0.5 of the balanced accuracy of two classes. Of two classes
        or groups, Fisher's exact test then says whether it differs from that value.

    Notes
    -----
    A function that is not defined for complex numbers (it compares, rounds or takes absolute
    values) is differentiated by central differences. The function must not be a lambda where
    evaluations or accumulators are pickled.

    Cost: the function is called once for the value, and for its error about once for each cell of
    the table that is not empty (twice where it takes no complex numbers); with ``of="binary"``
    there are six.

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
    needs: str = ""
    few_errors: bool = False
    one_sided: bool = False
    association: bool = False

    def __post_init__(self) -> None:
        usual = RANGES.get(self.interval)
        has_range = (self.low, self.high) != (-math.inf, math.inf)
        if usual is not None and not has_range:
            object.__setattr__(self, "low", usual[0])
            object.__setattr__(self, "high", usual[1])
        if not self.needs:
            object.__setattr__(self, "needs", NEEDS.get(self.of, "probabilities"))

    @property
    def function(self) -> Function:
        """The value's function, with what it brings besides."""
        return self.value if isinstance(self.value, Function) else PLAIN

    @property
    def value_function(self) -> Callable[[Any], Any]:
        """The function of the value.

        Raises
        ------
        ValueError
            If the metric was read from a file, or its section computes it.
        """
        if self.value is None:
            raise ValueError(f"the metric {self.name!r} has no function")
        return self.value

    @property
    def section(self) -> str:
        """The part before the first slash."""
        return self.name.split("/")[0]

    @property
    def depends_on(self) -> frozenset[str]:
        """Options that decide what it is a function of; its section may add some."""
        for options, arguments in DEPENDS_ON.items():
            if self.of in arguments:
                return options
        return frozenset()

    @property
    def widest(self) -> float:
        """Largest difference of two values, or of two distances from zero if zero is best."""
        if self.better == "nearest zero":
            return max(-self.low, self.high)
        return self.high - self.low

    def heading(self, brief: bool = False) -> str:
        """Return the title for people, declared or made of the name.

        ``brief``: for the head of a table.
        """
        if self.title:
            return (self.brief or self.title) if brief else self.title
        stem = self.name.rsplit("/", 1)[-1]
        words = stem.removesuffix("_zero").split("_")
        if words[-1] in AVERAGES:
            # As people say it: "macro F1".
            words = [words[-1], *words[:-1]]
        heading = " ".join("F1" if word == "f1" else word for word in words)
        if not stem.endswith("_zero"):
            return heading
        return f"{heading} (0)" if brief else f"{heading}, undefined as 0"

    def number(self, argument: Any) -> float:
        """Return the value of an argument.

        Raises
        ------
        ValueError, TypeError
            If the function fails, or gives no number; the text names the metric.
        """
        function = self.value_function
        try:
            with np.errstate(all="ignore"):
                value = function(argument)
        except ZeroDivisionError:
            return math.nan
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            raise ValueError(f"the metric {self.name!r} failed: {reason}") from error
        if isinstance(value, np.ndarray) and value.ndim == 0:
            value = value[()]
        if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
            raise TypeError(
                f"the metric {self.name!r} must give one real number, got {value!r:.60}"
            )
        return float(value)

    def of_each(self, samples: Samples) -> FloatArray:
        """Return the values of each class, shape (K,)."""
        with np.errstate(all="ignore"):
            return np.asarray(self.value_function(samples.argument()), dtype=np.float64)

    def of_samples(self, samples: Samples, of_each: bool) -> Any:
        """Return the value, or ``of_each`` class its value."""
        if of_each:
            return self.of_each(samples)
        return self.number(samples.argument())

    def influence_in(self, samples: Samples, k: int | None = None) -> FloatArray | None:
        """Return the influence as the samples take it, such as a number for each cell.

        None if it is not known.

        Parameters
        ----------
        samples : Samples
        k : int, optional
            The number of the class, where the function gives a value of each.
        """
        argument = samples.argument()
        psi = None
        if k is not None:
            psi = self.function.influence_of(argument, k)
        if psi is None:
            psi = self.function.influence(argument)
        if psi is None:
            return samples.influence(self)
        return np.asarray(psi, dtype=np.float64)

    def spread(self, samples: Samples, value: Any) -> Spread:
        """Return the standard error and what the interval needs besides.

        Parameters
        ----------
        samples : Samples
        value : float or ndarray of shape (K,)
            What the function gave.
        """
        if self.interval in WITHOUT_ERROR:
            return Spread()
        if self.interval == "count":
            share = value / samples.total
            return self._of_share(samples, share, samples.effective(None), samples.total)
        if self.interval == "wilson":
            kish = self._rows_of_share(samples)
            if kish is not None:
                return self._of_share(samples, value, kish)
        least = None
        with np.errstate(all="ignore"):
            error = self._error(samples)
            evened = samples.evened()
            if error is not None and evened is not None:
                least = self._error(evened)
        if self.interval != "wilson":
            return Spread(error, self._informing(samples, error), least)
        if error is None or not 0 < value < 1 or not error > 0:
            return Spread(error, samples.denominator_of(self))
        return Spread(error, size_of_share(value, max(error, least or 0.0), None))

    def _rows_of_share(self, samples: Samples) -> Any:
        """Return the effective size (Kish) of a share's rows; None if it is not known."""
        size = self.function.size(samples.argument())
        if size is None and isinstance(self.value, Fraction):
            size = samples.effective(self.value.denominator(samples.argument()))
        return size

    def _of_share(self, samples: Samples, share: Any, kish: Any, scale: float = 1.0) -> Spread:
        """Return the spread of a share, or of a count, which is ``scale`` times a share."""
        if not samples.fractional:
            return Spread(None, kish)
        error = self._error(samples)
        if error is None:
            return Spread(None, kish)
        return Spread(error, size_of_share(share, error / scale, kish, kish))

    def _error(self, samples: Samples) -> Any:
        """Return the standard error; None where it is not known."""
        error = self.function.spread(samples.argument())
        if error is not NotImplemented:
            return error
        psi = self.influence_in(samples)
        if psi is None:
            return None
        return samples.standard_error(psi)

    def _informing(self, samples: Samples, error: Any) -> Any:
        """Return :meth:`Samples.informing` for intervals that need it."""
        if error is None or not math.isfinite(self.high - self.low):
            return None
        if self.interval != "logit" and not np.any(error <= ROUNDING):
            return None
        size = self.function.size(samples.argument())
        if size is None:
            return samples.informing(self)
        return size


@dataclass(frozen=True)
class Section:
    """Metrics whose names share a prefix.

    Attributes
    ----------
    name : str
        The part before the first slash, and further parts in angle brackets.
    title : str
        Over its metrics in a report; ``{step}`` stands for the step's name.
    metrics : tuple of Metric
        In the order in which they are shown.
    of_positive : bool
        Whether they are metrics of the positive group.
    depends_on : frozenset of str
        Options of an evaluation that all of them depend on, whatever they are functions of:
        "grouping" for the metrics of each step.
    """

    name: str
    title: str
    metrics: tuple[Metric, ...]
    of_positive: bool = False
    depends_on: frozenset[str] = frozenset()

    @property
    def page(self) -> str:
        """The name of its page on the site."""
        first = self.metrics[0].name.split("/")
        several = self.name in ("class", "reduced") or first[1] == "<step>"
        return slug("/".join(first[:2])) if several else slug(self.name)
