"""A report in Markdown that is written as a study goes along."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

PICTURES = "pictures"
"""The folder beside a report for pictures of a data set, which the repository does not keep."""


class Report:
    """Headings, words, tables and figures in their order; tables are kept as CSV and figures as PNG beside it."""

    def __init__(self, folder: Path, title: str) -> None:
        self.folder = folder
        self._parts = [f"# {title}"]

    def heading(self, text: str) -> None:
        """A section of the report."""
        self._parts.append(f"## {text}")

    def text(self, *paragraphs: str) -> None:
        """Paragraphs of Markdown."""
        self._parts += paragraphs

    def table(self, name: str, frame: pd.DataFrame, caption: str, *, digits: int) -> None:
        """A table; its numbers with `digits` decimals, whole numbers and words as they are."""
        frame.to_csv(self.folder / f"{name}.csv", lineterminator="\n")
        self._parts += [f"**{caption}**", _markdown(frame, digits)]

    def figure(self, name: str, figure: Figure, caption: str, *, kept: bool = True) -> None:
        """A figure, which is closed; one with pictures of a data set is drawn in `PICTURES` and only named."""
        folder = self.folder if kept else self.folder / PICTURES
        folder.mkdir(exist_ok=True)
        figure.savefig(folder / f"{name}.png", dpi=100, facecolor="white")
        plt.close(figure)
        if kept:
            self._parts.append(f"![{caption}]({name}.png)")
            self._parts.append(f"*{caption}*")
        else:
            self._parts.append(
                f"*{caption}* The script draws it as `{PICTURES}/{name}.png`; it is not kept here."
            )

    def save(self) -> Path:
        """Write ``report.md``."""
        path = self.folder / "report.md"
        path.write_text("\n\n".join(self._parts) + "\n", encoding="utf-8")
        return path


def _markdown(frame: pd.DataFrame, digits: int) -> str:
    frame = (
        frame.reset_index() if frame.index.name or isinstance(frame.index, pd.MultiIndex) else frame
    )
    columns = [
        _cell(" ".join(map(str, c)) if isinstance(c, tuple) else c, digits) for c in frame.columns
    ]
    numbers = [any(_is_number(value) for value in frame.iloc[:, i]) for i in range(len(columns))]
    rule = ["--:" if number else ":--" for number in numbers]
    return table_of(
        [
            columns,
            rule,
            *([_cell(value, digits) for value in row] for row in frame.itertuples(index=False)),
        ]
    )


def table_of(rows: Iterable[Iterable[str]]) -> str:
    """A table in Markdown of cells that are written already: the heads, the rule, the rows."""
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def escaped(text: str) -> str:
    """Words that stay in one cell."""
    return text.replace("|", "\\|").replace("\n", " ")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _cell(value: object, digits: int) -> str:
    if isinstance(value, float):
        return "–" if value != value else f"{value:.{digits}f}"
    return escaped(str(value))
