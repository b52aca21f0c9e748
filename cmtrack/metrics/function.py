"""Functions of metrics that bring more than a value: an influence in closed form, an interval, a reason.

Whatever a function does not bring is derived: the influence by its derivative, the error and the interval from that.
"""

from __future__ import annotations

from typing import Any, ClassVar

from cmtrack.metrics.intervals import Interval
from cmtrack.statistics.inputs import FloatArray


class Function:
    """A metric's function with what it brings; ``argument`` is what the samples give (:attr:`Metric.of`).

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
        """The value, or that of each class; NaN where it is undefined."""
        raise NotImplementedError

    def applies(self, views: Any) -> bool:
        """False where the metric means nothing in an evaluation, by its :class:`EvaluationViews`."""
        return True

    def influence(self, argument: Any) -> FloatArray | None:
        """The influence in closed form; None where it is to be derived."""
        return None

    def influence_of(self, argument: Any, k: int) -> FloatArray | None:
        """The influence of the value of class k, of a function that gives one of each; None where it is one value."""
        return None

    def spread(self, argument: Any) -> Any:
        """The standard error, or that of each class; NotImplemented where the influence gives it."""
        return NotImplemented

    def size(self, argument: Any) -> Any:
        """Effective rows that a share is of, of others those that tell where there is no error; None if not its own."""
        return None

    def bracket(self, argument: Any, level: float, wider: float, degrees: float) -> Interval | None:
        """An interval of its own, of errors that clusters make so much wider; None where there is none."""
        raise NotImplementedError

    def ends(self, argument: Any) -> tuple[Any, Any] | None:
        """The ends of an interval that is made with the value, or those of each class."""
        return None

    def why(self, argument: Any, k: Any) -> str:
        """The reason why the value, or that of class k, is undefined; empty for that of the metric."""
        return ""

    def why_without_error(self, argument: Any, k: Any) -> str:
        """Return the reason why the value, or the value of class k, has no standard error; empty if not known."""
        return ""


class Fraction(Function):
    """A share of samples: its interval is that of its denominator."""

    def denominator(self, argument: Any) -> Any:
        """The part of the samples that the share is of, as they take it; None for all."""
        raise NotImplementedError


PLAIN = Function()
"""Of a function that brings its value alone."""
