"""Several figures at once: one that fails takes no other with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from matplotlib.figure import Figure

from .style import as_png

OnError: TypeAlias = Callable[[str, Exception], object]


def draw_all(drawings: Mapping[str, Callable[[], Figure | None]], on_error: OnError | None = None) -> dict[str, Figure]:
    """Draw by name what applies.

    Parameters
    ----------
    drawings : mapping of str to callable
        Each gives a figure, or None where it does not apply.
    on_error : callable (name, error), optional
        Called for a figure that fails, which is then left out; by default the error is raised.
    """
    figures = {}
    for name, draw in drawings.items():
        try:
            figure = draw()
        except Exception as error:
            if on_error is None:
                raise
            on_error(name, error)
        else:
            if figure is not None:
                figures[name] = figure
    return figures


def as_pictures(draw: Callable[[OnError], Mapping[str, Figure]], problems: list[str]) -> dict[str, bytes]:
    """PNG files of the figures that ``draw`` gives; what fails is named in ``problems``."""

    def failed(name: str, error: Exception) -> None:
        problems.append(f"figure {name}: {type(error).__name__}: {error}")

    out = {}
    for name, figure in draw(failed).items():
        try:
            out[name] = as_png(figure)
        except Exception as error:
            failed(name, error)
    return out
