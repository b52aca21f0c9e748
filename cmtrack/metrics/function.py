"""Functions of metrics that provide more than a value, such as an influence in closed form.

Everything that a function does not provide is derived: the influence from the function's
derivative, the standard error and the interval from the influence.
"""

from __future__ import annotations

from typing import Any, ClassVar

from cmtrack.metrics.intervals import Interval
from cmtrack.statistics.inputs import FloatArray


class Function:
    """A metric's function and what it provides, called with :meth:`Samples.argument`.

    Attributes
    ----------
    independent : "value", "interval" or ""
        The part that is valid for independent rows only and is not given with clusters.
    scale : str
        Name of the interval's kind if :meth:`bracket` returns an interval; otherwise empty.
    of_labels : bool
        True if the value depends on the labels only, so that all runs on the same rows share it.
    """

    independent: ClassVar[str] = ""
    scale: ClassVar[str] = ""
    of_labels: Any = False

    def __call__(self, argument: Any) -> Any:
        """Return the value, or the value of each class; NaN if undefined."""
        raise NotImplementedError

    def applies(self, views: Any) -> bool:
        """Return whether the metric makes sense in an evaluation, given its ``EvaluationViews``."""
        return True

    def influence(self, argument: Any) -> FloatArray | None:
        """Return the influence in closed form; None if it must be derived."""
        return None

    def influence_of(self, argument: Any, k: int) -> FloatArray | None:
        """Return the influence of class k's value; None if the function has a single value."""
        return None

    def spread(self, argument: Any) -> Any:
        """Return the standard error, or one per class; NotImplemented to use the influence."""
        return NotImplemented

    def size(self, argument: Any) -> Any:
        """Return the effective rows of a share, or the rows that a standard error of 0 rests on.

        None if the size should come from the samples.
        """
        return None

    def bracket(self, argument: Any, level: float, wider: float, degrees: float) -> Interval | None:
        """Return the function's own interval, made ``wider`` for clusters, or None."""
        raise NotImplementedError

    def ends(self, argument: Any) -> tuple[Any, Any] | None:
        """Return low and high of an interval computed with the value, or arrays by class."""
        return None

    def why(self, argument: Any, k: Any) -> str:
        """Return why the value, or the value of class k, is undefined.

        Empty if the reason declared by the metric applies.
        """
        return ""

    def why_without_error(self, argument: Any, k: Any) -> str:
        """Return why the value, or the value of class k, has no standard error; otherwise ""."""
        return ""


class Fraction(Function):
    """A share of rows, whose interval depends on the size of its denominator."""

    def denominator(self, argument: Any) -> Any:
        """Return which rows are in the denominator; None for all."""
        raise NotImplementedError


PLAIN = Function()
"""The defaults, for a function that provides only its value."""
