"""Figures of counts by cell with names that are long or contain symbols."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from cmtrack.plots import CountedCell, plot_counts

pytestmark = pytest.mark.filterwarnings("error")


def counts_of(names: list[str], periods: int = 2, **options: Any) -> Figure:
    cells = [
        CountedCell(name, 2018 + period, 0.3, 0.2, 0.4)
        for name in names
        for period in range(periods)
    ]
    figure = plot_counts(cells, **({"is_over_time": True} | options))
    figure.draw_without_rendering()
    return figure


def legend_texts(figure: Figure) -> list[Text]:
    legends = [*figure.legends, *filter(None, (ax.get_legend() for ax in figure.axes))]
    return legends[0].get_texts()


def test_dollars_and_control_characters_are_shown_as_they_are() -> None:
    figure = counts_of(["$a$ $b$", "c\x00"], notes=["From other re$g$ions and m\x00onths."])
    titles = [ax.get_title(loc="left") for ax in figure.axes]
    assert titles == [r"\$a\$ \$b\$", r"c\x00"]
    texts = [text.get_text() for text in legend_texts(figure)]
    assert texts[-1] == r"From other re\$g\$ions and m\x00onths."


def test_long_titles_do_not_reach_the_next_panel() -> None:
    figure = counts_of([f"region with a long name, number {str(d) * 40}" for d in range(3)])
    boxes = [ax._left_title.get_window_extent() for ax in figure.axes]  # type: ignore[attr-defined]
    assert all(a.x1 < b.x0 for a, b in pairwise(boxes))


def test_a_long_axis_name_does_not_reach_the_legend() -> None:
    of = "share of “promoter of the brand with a very long label”"
    figure = counts_of(["east", "west"], of=of, is_over_time=False)
    ax = figure.axes[0]
    first = legend_texts(figure)[0].get_window_extent()
    assert ax.xaxis.label.get_window_extent().y0 >= first.y1
