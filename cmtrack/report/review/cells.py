"""Tables of a review, whose cells contain a text, a sort value and an interval."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cmtrack._lazy import cached_property
from cmtrack.names import distinct
from cmtrack.report import formatting as fmt

if TYPE_CHECKING:
    from cmtrack.report.review.bars import Bar

NAME = 30
"""Maximum number of characters of a name in a table of the page.

If names are longer, parts that all names share are cut first.
"""
FOLDED = 5
"""Number of ruled-out runs that a table shows until the reader clicks a button to see the rest."""


@dataclass
class Cell:
    """A cell of a table that people read.

    ``sort``: the value by which a page sorts the column; "" if the cell's number is not finite.
    ``interval``: text for a separate narrow column of intervals, or None if there is no such
        column.
    ``title``: text that a page shows while the mouse is over the cell.
    ``ends``: the value and both ends of its interval, from which ``bar`` is drawn.
    """

    text: str
    sort: float | str = ""
    interval: str | None = None
    title: str = ""
    ends: tuple[float, float, float] | None = None
    bar: Bar | None = None

    def __post_init__(self) -> None:
        if isinstance(self.sort, float) and not math.isfinite(self.sort):
            self.sort = ""

    @property
    def with_interval(self) -> str:
        """The text of the cell, followed by its interval."""
        return " ".join(filter(None, (self.text, self.interval)))


@dataclass
class NameCell(Cell):
    """The name of a run or a model, of which a page shows the form ``short`` on one line."""

    run_id: str = ""
    short: str = ""

    @property
    def short_id(self) -> str:
        """The first characters of the run's id."""
        return fmt.short_id(self.run_id)


@dataclass
class GateCell(Cell):
    """The result of a gate; ``passed`` is None if the gate could not be checked."""

    passed: bool | None = None


@dataclass
class Row:
    """A row of a table in a review.

    ``status``: the CSS class of the row of a ranked run on the page.
    ``chosen``: whether the row shows the recommended run, in a table that ranks by a different
    metric.
    ``rest``: whether the page hides the row at first.
    ``mark``: a word that is shown next to the first cell.
    ``reason``: text that a page shows while the mouse is over the row.
    """

    cells: dict[str, Cell]
    status: str = ""
    chosen: bool = False
    rest: bool = False
    mark: str = ""
    reason: str = ""


@dataclass
class Table:
    """A table in a review, with a heading for each column key.

    ``words``: the keys of the columns that contain text; all other columns contain numbers.
    ``reading``: instructions for reading the table.
    ``scales``: the numbers at both ends of the scale of each column with drawn intervals.
    ``beside``: the rows that are shown below the ranked runs.
    ``behind``: the word for the runs whose rows are hidden at first.
    """

    heads: dict[str, str]
    rows: list[Row]
    words: Collection[str]
    name: str = ""
    reading: str = ""
    scales: dict[str, tuple[str, str]] = field(default_factory=dict)
    beside: list[Row] = field(default_factory=list)
    behind: str = ""

    @cached_property
    def with_interval(self) -> set[str]:
        """The keys of the columns in which at least one cell has an interval."""
        cells = [item for row in self.rows for item in row.cells.items()]
        return {key for key, cell in cells if cell.interval is not None}

    @property
    def n_rest(self) -> int:
        """The number of rows that the page hides at first."""
        return sum(row.rest for row in self.rows)


def name_cell(name: str, run_id: str) -> NameCell:
    """Return the cell of a run's name and id."""
    shown_id = "" if run_id == name else run_id
    return NameCell(name, name.lower(), title=name, run_id=shown_id, short=name)


def value_cell(value: float, interval: tuple[float, float]) -> Cell:
    """Return the cell of a run's metric with its interval, which a page can draw."""
    text = fmt.number(value, interval)
    return Cell(text, value, fmt.interval(value, interval), ends=(value, *interval))


def shorten_names(rows: Sequence[Row], key: str = "name") -> None:
    """Set the short form of names, so that the page can show each name on one line."""
    names = [row.cells[key] for row in rows]
    for name, short in zip(names, distinct([name.text for name in names], NAME), strict=True):
        if isinstance(name, NameCell):
            name.short = short


def fold(rows: Sequence[Row]) -> None:
    """Mark the ruled-out runs that the page at first hides in a table."""
    for row in [row for row in rows if row.status == "behind"][FOLDED:]:
        row.rest = True
