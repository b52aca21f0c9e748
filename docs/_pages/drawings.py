"""Figures drawn into the page, in the colours of its scheme: a kernel runs this as it starts (``PYTHONSTARTUP``)."""

from __future__ import annotations

from itertools import count
from typing import Any

_NUMBERS = count(1)


def _drawn(figure: Any) -> str:
    from cmtrack.plots.svg import as_svg

    titles = (axes.get_title() for axes in figure.axes)
    title = " ".join(next(filter(None, titles), "A figure").split())
    drawn = as_svg(figure, f"drawing{next(_NUMBERS)}", title)
    drawn = drawn.replace('"#000000"', '"var(--ink)"')  # of Matplotlib's own style
    return f'<div class="drawing">{drawn}</div>'


_html = get_ipython().display_formatter.formatters["text/html"]  # type: ignore[name-defined]  # noqa: F821
_html.for_type_by_name("matplotlib.figure", "Figure", _drawn)
# Matplotlib's inline backend forgets the other
_html.for_type_by_name("cmtrack.plots.style", "ShownFigure", _drawn)
