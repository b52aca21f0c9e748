"""Functions of metrics that bring more than a value, such as an influence in closed form.

Whatever a function does not bring is derived: the influence by its derivative, the error and the
interval from that.
"""

from __future__ import annotations

from typing import Any, ClassVar

from cmtrack.metrics.intervals import Interval
from cmtrack.statistics.inputs import FloatArray


class Function:
    """A metric's function with what it brings; it is called with :meth:`Samples.argument`.

    Attributes
    ----------
    independent : "value", "interval" or ""
        The part that holds for independent rows only, and is left out with clusters.
    scale : str
        The word for the interval that :meth:`bracket` makes; empty where it makes none.
    of_labels : bool
        True where no prediction matters: of the same rows it is the same.
    """

    independent: ClassVar[str] = ""
    scale: ClassVar[str] = ""
    of_labels: Any = False

    def __call__(self, argument: Any) -> Any:
        """Return the value, or the value of each class; NaN if undefined."""
        raise NotImplementedError

    def applies(self, views: Any) -> bool:
        """Return whether the metric has a meaning in an evaluation, by its ``EvaluationViews``."""
        return True

    def influence(self, argument: Any) -> FloatArray | None:
        """Return the influence in closed form; None if it has to be derived."""
        return None

    def influence_of(self, argument: Any, k: int) -> FloatArray | None:
        """Return the influence of the value of class k; None for a function of a single value."""
        return None

    def spread(self, argument: Any) -> Any:
        """Return the standard error, or one of each class; NotImplemented to take the influence."""
        return NotImplemented

    def size(self, argument: Any) -> Any:
        """Return the effective rows of a share, or the rows that an error of 0 rests on.

        None if the function does not know them better than the samples do.
        """
        return None

    def bracket(self, argument: Any, level: float, wider: float, degrees: float) -> Interval | None:
        """Return the function's own interval, widened as clusters widen the error, or None."""
        raise NotImplementedError

    def ends(self, argument: Any) -> tuple[Any, Any] | None:
        """Return the ends of an interval that is made with the value, or those of each class."""
        return None

    def why(self, argument: Any, k: Any) -> str:
        """Return the reason why the value, or that of class k, is undefined.

        It is empty if the metric's own reason holds.
        """
        return ""

    def why_without_error(self, argument: Any, k: Any) -> str:
        """Return the reason why the value, or that of class k, has no standard error; else ""."""
        return ""


class Fraction(Function):
    """A share of samples: its interval is that of its denominator."""

    def denominator(self, argument: Any) -> Any:
        """Return the part of the samples that the share is of; None for all."""
        raise NotImplementedError


PLAIN = Function()
"""Of a function that brings its value alone."""
