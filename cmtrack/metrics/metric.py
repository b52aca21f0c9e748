"""The class :class:`Metric`, which declares a metric, and the class :class:`Section`.

A declaration contains the name, the texts and the function of a metric. The function computes the
metric from the statistics that :mod:`cmtrack.metrics.samples` prepares. The influence is the
derivative of this function, or a closed form that the function provides. cmtrack computes standard
errors, intervals and paired differences from the influence, also for rows in clusters.

A function that provides more than its value is a :class:`~cmtrack.metrics.function.Function`.
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
    "ordered table": "labels",
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
"""Data that a metric needs, by the kind of statistics from which it is computed. All other kinds
need probabilities.
"""
OF_POSITIVE = frozenset({"grouping", "positive"})
"""Options that determine the positive group."""
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
"""For each kind of statistics, the options of an evaluation on which it depends. Kinds that are not
listed do not depend on any option.
"""
BETTER = {
    "higher": "higher is better",
    "lower": "lower is better",
    "nearest zero": "nearest zero is best",
}
"""Texts that tell readers which values of a metric are better."""
RANGES = {"atanh": (-1.0, 1.0), "wilson": (0.0, 1.0), "logit": (0.0, 1.0), "log": (0.0, math.inf)}
"""The range of a metric by its kind of interval. For all other kinds, the range is unlimited."""
WITHOUT_ERROR = ("", "profile", "effective", "square")
"""Kinds of interval that need no standard error. Either there is no interval, or the metric's
function computes it.
"""
AVERAGES = ("macro", "micro", "weighted")
"""Last words in the names of averages. The ending ``_zero`` may follow, and means that a class
without a value counts as 0.
"""


class Spread(NamedTuple):
    """The standard error of a metric, and other numbers from which its interval is computed.

    A number is None if it is unknown.

    ``error``: standard error. It is None for a share or a count of rows without sampling weights,
        because the standard error then follows from ``size``.
    ``size``: effective size of the denominator of a share or count. For other metrics with a
        limited range, the number of rows from which the interval is computed if the standard error
        is 0. For an area, there are two such numbers, one for each side.
    ``least``: smallest standard error from which the interval is computed; see
        :meth:`Samples.evened`.
    """

    error: Any = None
    size: Any = None
    least: Any = None


@dataclass(frozen=True)
class Metric:
    """A metric, which consists of a name, texts and a function.

    Parameters
    ----------
    name : str
        Name in the form ``section/metric``. The placeholders ``<label>``, ``<step>`` and
        ``<group>`` stand for the parts that vary.
    value : callable or None
        The function that computes the metric. It returns a number, or NaN if the metric is
        undefined. It is None if the metric's section computes the metric, or if the metric was read
        from a file, because files do not contain functions.
    of : str, default "counts"
        The argument of the function. ``"counts"`` is the float64 array of counts of shape (K, K),
        with actual classes in rows and predicted classes in columns.
        ``"binary"`` is an object ``b`` with the six counts of two groups: ``b.tp``, ``b.fn``,
        ``b.imp``, ``b.fp``, ``b.tn`` and ``b.imn``. All other values are for built-in sections.
    better : "higher", "lower", "nearest zero" or "", default "higher"
        The values that a comparison prefers. It is empty for counts and descriptions, which are not
        ranked.
    low, high : float
        Range of the metric. The default depends on ``interval``: for ``"wald"``, the range is
        unlimited.
    interval : str, default "wald"
        Kind of interval: ``"wald"`` (value and standard error), ``"wilson"`` (a share of rows),
        ``"atanh"`` (a correlation), ``"logit"`` (between 0 and 1) or ``"log"`` (a loss, above 0).
        Built-in sections also use ``"count"``, ``"profile"``, ``"effective"``, ``"square"``, and
        the empty text for metrics without an interval.
    title : str, optional
        Title of the metric for people. By default, it is made from ``name``.
    source, formula : str, optional
        The publication that defines the metric, and the formula of the metric in words.
    headline : bool, default True
        Whether the metric is logged as an MLflow metric by default.
    influence : callable, optional
        For a metric that is computed from counts, a function with the same argument as ``value``.
        It returns n times the derivative of the value with respect to each count, as an array of
        shape (K, K) or (6,). By default, cmtrack computes the derivative with complex steps if the
        function accepts complex numbers, and otherwise with central differences. If there are many
        classes, central differences take too long, and you need to pass this function.
    brief : str, optional
        A short title for the head of a table.
    reason : str, optional
        The reason that is shown if the metric is undefined. The default is "its denominator is
        zero".
    needs : str, optional
        The data that the metric needs: "labels", "two groups", "probabilities", "label sets", ...
        The default depends on ``of``.
    few_errors : bool, default False
        Whether most of the standard error is determined by a few wrong predictions. The interval is
        then computed as if the data contained one additional row, half of which has its label
        flipped (:meth:`cmtrack.metrics.samples.Samples.with_flipped`).
    one_sided : bool, default False
        Whether a constant prediction reaches the best value. For example, always predicting "yes"
        reaches a recall of 1. Such a metric is not compared with the best constant prediction.
    association : bool, default False
        Whether some value of the metric means that the predicted label contains no information
        about the actual label. This value is 0 for correlations and Cohen's kappa, and 0.5 for the
        balanced accuracy of two classes. If there are two classes or groups, Fisher's exact test is
        used to test this value.

    Notes
    -----
    A function that compares numbers, rounds them or takes absolute values does not accept complex
    numbers. cmtrack differentiates such a function with central differences. If you pickle
    evaluations or accumulators, the function must not be a lambda.

    The function is called once to compute the value. To compute the standard error, it is called
    about once for each non-empty cell of the table, or about twice for each cell if it does not
    accept complex numbers. If ``of="binary"``, the table consists of six cells.

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
        """The function as a :class:`Function`.

        A plain callable is represented by a :class:`Function` with default methods.
        """
        return self.value if isinstance(self.value, Function) else PLAIN

    @property
    def value_function(self) -> Callable[[Any], Any]:
        """The callable that computes the value.

        Raises
        ------
        ValueError
            If the metric was read from a file, or if its section computes it.
        """
        if self.value is None:
            raise ValueError(f"the metric {self.name!r} has no function")
        return self.value

    @property
    def section(self) -> str:
        """The part of the name before the first slash."""
        return self.name.split("/")[0]

    @property
    def depends_on(self) -> frozenset[str]:
        """Options of the evaluation on which the metric depends; its section may add others."""
        for options, arguments in DEPENDS_ON.items():
            if self.of in arguments:
                return options
        return frozenset()

    @property
    def widest(self) -> float:
        """Largest possible difference between two values of the metric.

        If 0 is the best value, it is the largest difference between two distances from 0.
        """
        if self.better == "nearest zero":
            return max(-self.low, self.high)
        return self.high - self.low

    def heading(self, brief: bool = False) -> str:
        """Return the declared title, or a title made from the name.

        ``brief``: whether to return the short title, for the head of a table.
        """
        if self.title:
            return (self.brief or self.title) if brief else self.title
        stem = self.name.rsplit("/", 1)[-1]
        words = stem.removesuffix("_zero").split("_")
        if words[-1] in AVERAGES:
            # People say "macro F1", not "F1 macro".
            words = [words[-1], *words[:-1]]
        heading = " ".join("F1" if word == "f1" else word for word in words)
        if not stem.endswith("_zero"):
            return heading
        return f"{heading} (0)" if brief else f"{heading}, undefined as 0"

    def number(self, argument: Any) -> float:
        """Return the function's value for an argument.

        Raises
        ------
        ValueError, TypeError
            If the function fails or does not return a number. The message contains the metric's
            name.
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
                f"the metric {self.name!r} must return one real number, got {value!r:.60}"
            )
        return float(value)

    def of_each(self, samples: Samples) -> FloatArray:
        """Return the value of each class, shape (K,)."""
        with np.errstate(all="ignore"):
            return np.asarray(self.value_function(samples.argument()), dtype=np.float64)

    def of_samples(self, samples: Samples, of_each: bool) -> Any:
        """Return the value, or the value of each class if ``of_each``."""
        if of_each:
            return self.of_each(samples)
        return self.number(samples.argument())

    def influence_in(self, samples: Samples, k: int | None = None) -> FloatArray | None:
        """Return the influence in the form that the samples use, such as one number per cell.

        The result is None if the influence is unknown.

        Parameters
        ----------
        samples : Samples
        k : int, optional
            Index of the class if the function returns a value for each class.
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
        """Return the standard error and the other inputs of the interval.

        Parameters
        ----------
        samples : Samples
        value : float or ndarray of shape (K,)
            The result of the function.
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
        """Return Kish's effective number of rows in a share's denominator; None if unknown."""
        size = self.function.size(samples.argument())
        if size is None and isinstance(self.value, Fraction):
            size = samples.effective(self.value.denominator(samples.argument()))
        return size

    def _of_share(self, samples: Samples, share: Any, kish: Any, scale: float = 1.0) -> Spread:
        """Return the :class:`Spread` of a share, or of a count that is ``scale`` times a share."""
        if not samples.fractional:
            return Spread(None, kish)
        error = self._error(samples)
        if error is None:
            return Spread(None, kish)
        return Spread(error, size_of_share(share, error / scale, kish, kish))

    def _error(self, samples: Samples) -> Any:
        """Return the standard error; None if it is unknown."""
        error = self.function.spread(samples.argument())
        if error is not NotImplemented:
            return error
        psi = self.influence_in(samples)
        if psi is None:
            return None
        return samples.standard_error(psi)

    def _informing(self, samples: Samples, error: Any) -> Any:
        """Return the result of :meth:`Samples.informing` for intervals that need it."""
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
        The part of the metrics' names before the first slash, and further parts in angle brackets.
    title : str
        Heading of the section in a report; ``{step}`` is replaced by the step's name.
    metrics : tuple of Metric
        The metrics of the section, in the order in which they are shown.
    of_positive : bool
        Whether the metrics describe the positive group.
    depends_on : frozenset of str
        Options of an evaluation on which all metrics of the section depend, such as "grouping" for
        the metrics of a step. Each metric may depend on additional options.
    """

    name: str
    title: str
    metrics: tuple[Metric, ...]
    of_positive: bool = False
    depends_on: frozenset[str] = frozenset()

    @property
    def page(self) -> str:
        """The name of the section's page in the documentation."""
        first = self.metrics[0].name.split("/")
        several = self.name in ("class", "reduced") or first[1] == "<step>"
        return slug("/".join(first[:2])) if several else slug(self.name)
