"""Functions that compute more than a metric's value, such as an influence in closed form.

cmtrack derives everything that a function does not provide. The influence is derived from the
derivative of the function, and the standard error and the interval are derived from the influence.
"""

from __future__ import annotations

from typing import Any, ClassVar

from cmtrack.metrics.intervals import Interval
from cmtrack.statistics.inputs import FloatArray


class Function:
    """A metric's function, which is called with the result of :meth:`Samples.argument`.

    Attributes
    ----------
    independent : "value", "interval" or ""
        The result (value or interval) that is valid only for independent rows. It is left out if
        rows are in clusters.
    scale : str
        Name of the kind of interval that :meth:`bracket` returns; empty if it returns None.
    of_labels : bool
        True if the value depends only on the actual labels, so that it is equal for all runs on the
        same rows.
    """

    independent: ClassVar[str] = ""
    scale: ClassVar[str] = ""
    of_labels: Any = False

    def __call__(self, argument: Any) -> Any:
        """Return the value, or the value of each class; NaN if a value is undefined."""
        raise NotImplementedError

    def applies(self, views: Any) -> bool:
        """Return whether the metric applies to an evaluation, given its ``EvaluationViews``."""
        return True

    def influence(self, argument: Any) -> FloatArray | None:
        """Return the influence in closed form; None if it must be derived."""
        return None

    def influence_of(self, argument: Any, k: int) -> FloatArray | None:
        """Return the influence on the value of class k; None if there is only one value."""
        return None

    def spread(self, argument: Any) -> Any:
        """Return the standard error, or an array with the standard error of each class.

        NotImplemented means that the standard error is computed from the influence.
        """
        return NotImplemented

    def size(self, argument: Any) -> Any:
        """Return the effective number of rows from which the interval is computed.

        Intervals of shares use this number. Other intervals use it only if the standard error is 0.
        None means that the number is taken from the samples.
        """
        return None

    def bracket(self, argument: Any, level: float, wider: float, degrees: float) -> Interval | None:
        """Return an interval that the function computes itself, or None.

        The factor ``wider`` widens the interval if rows are in clusters.
        """
        raise NotImplementedError

    def ends(self, argument: Any) -> tuple[Any, Any] | None:
        """Return the low and high limits of an interval that is computed together with the value.

        The limits are arrays if the function returns a value for each class.
        """
        return None

    def why(self, argument: Any, k: Any) -> str:
        """Return why the value, or the value of class k, is undefined.

        The text is empty if the reason in the metric's declaration applies.
        """
        return ""

    def why_without_error(self, argument: Any, k: Any) -> str:
        """Return why the value, or the value of class k, has no standard error.

        The text is empty if there is no special reason.
        """
        return ""


class Fraction(Function):
    """A share of rows, whose interval depends on the size of its denominator."""

    def denominator(self, argument: Any) -> Any:
        """Return which rows the denominator counts; None if it counts all rows."""
        raise NotImplementedError


PLAIN = Function()
"""A function with default methods, which represents any function that returns only a value."""
