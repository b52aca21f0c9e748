"""Columns of a ranking for pages, notebooks, terminals, frames and JSON.

All columns of a ranking are described in a single list. To add a column, add an entry to the list
in :func:`columns_of`. A narrow terminal omits columns in the order of ``_PRIORITIES`` in
:mod:`cmtrack.cli.comparison_table`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from cmtrack.comparison.criterion import Criterion
from cmtrack.comparison.ranking import Ranked, Ranking
from cmtrack.comparison.result import Comparison
from cmtrack.report import formatting as fmt
from cmtrack.report.review.bars import draw_columns
from cmtrack.report.review.cells import (
    Cell,
    NameCell,
    Row,
    Table,
    fold,
    name_cell,
    shorten_names,
    value_cell,
)
from cmtrack.report.review.phrases import (
    STANDINGS,
    behind_words,
    marked,
    standing,
    standing_word,
    title_of,
)

_NO_INTERVAL = (math.nan, math.nan)
_WHOLE = "Int64"
_FLAG = "boolean"
_TEXT = ""


def _always(ranking: Ranking) -> bool:
    return True


@dataclass(frozen=True)
class OnTerminal:
    """Form of a column on a terminal, if it differs from the form on a page.

    ``heading``: heading of the column; by default, the page's heading in lower case.
    ``text``: function that returns the text; by default, the page's text followed by the interval.
    ``right``: whether the text is aligned to the right.
    ``brief``: a narrower form of the column.
    """

    heading: str | None = None
    text: Callable[[Ranked, Ranking], str] | None = None
    right: bool = False
    brief: OnTerminal | None = None


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column of a ranking's table.

    ``key``: name of the column in frames and in JSON. A key is used for two columns if the column's
        position or values differ between frames and JSON.
    ``value``: function that returns an entry's value for programs; by default, the entry's
        attribute with the same name as the column.
    ``frame``, ``json``: whether frames and JSON files contain the column.
    ``dtype``: the type of the column in a frame; empty for text.
    ``heading``, ``cell``: the heading and the cells that people read. If ``cell`` is missing,
        people never see the column.
    ``shown``: function that returns whether people see the column in the table of a ranking.
    ``terminal``: the column on a terminal, or None if a terminal does not show it.
    ``metric``: the metric whose values the column shows.
    """

    key: str
    value: Callable[[Ranked, Ranking], Any] | None = None
    frame: bool = True
    json: bool = True
    dtype: str = "float64"
    heading: str = ""
    cell: Callable[[Ranked, Ranking], Cell] | None = None
    shown: Callable[[Ranking], bool] = _always
    terminal: OnTerminal | None = OnTerminal()
    metric: str = ""

    @property
    def is_text(self) -> bool:
        """True if the column contains text, False if it contains numbers."""
        return self.dtype == _TEXT

    def is_shown(self, ranking: Ranking) -> bool:
        """Return whether people see the column in the table of a ranking."""
        return self.cell is not None and self.shown(ranking)

    def text(self, entry: Ranked, ranking: Ranking) -> str:
        """Return the text on a single line that people see for an entry.

        The text is empty if people never see the column.
        """
        return "" if self.cell is None else self.cell(entry, ranking).with_interval

    def value_of(self, entry: Ranked, ranking: Ranking) -> Any:
        """Return an entry's value for programs."""
        if self.value is None:
            return getattr(entry, self.key)
        return self.value(entry, ranking)


def columns_of(
    comparison: Comparison, at: str = "", criterion: Criterion | None = None
) -> list[Column]:
    """Return the columns of a comparison's rankings, in the order used by pages and frames.

    ``at``: the assumed class shares in words, which are added to headings.
    ``criterion``: the criterion of the rankings; by default, the criterion of the comparison.
    """
    criterion = criterion or comparison.criterion
    of_runs = comparison.noun == "run"
    level = f"[{100 * comparison.confidence_level:g}% interval]"
    titles = _titles(comparison, criterion, at)
    values = _values_of_models(criterion, titles)
    difference = "From the leader"
    difference_on_terminal = f"from the\nleader {level}"
    p_on_terminal = "p (all\npairs)"
    if of_runs:
        values = _values_of_runs(criterion, titles, level)
        lead, gap = "+−" if criterion.direction == "higher" else "−+"
        difference = f"Lead or gap ({lead} or {gap}) to the best other run"
        difference_on_terminal = f"from the best other\nrun {level}"
        p_on_terminal = "p (of being\nthe best)"
    return [
        Column(
            key="rank",
            dtype=_WHOLE,
            heading="#",
            cell=_rank,
            terminal=OnTerminal("front" if criterion.pareto else "", right=True),
        ),
        Column(key="name", dtype=_TEXT, heading=fmt.capital(comparison.noun), cell=_name),
        Column(key="run_id", dtype=_TEXT, json=of_runs),
        Column(
            key="status",
            dtype=_TEXT,
            value=standing,
            heading="Status",
            cell=_status,
        ),
        *values,
        Column(
            key="difference",
            heading=difference,
            cell=_difference,
            shown=_has_differences,
            terminal=OnTerminal(difference_on_terminal, _difference_on_terminal),
        ),
        Column(key="difference_low"),
        Column(key="difference_high"),
        Column(key="pvalue"),
        Column(key="p_holm"),
        Column(key="p_max_t", frame=of_runs, json=of_runs),
        Column(
            key="p_set",
            frame=of_runs,
            json=False,
            heading="p",
            cell=_p,
            shown=_has_differences,
            terminal=OnTerminal(p_on_terminal, _p_on_terminal, right=True),
        ),
        Column(key="probability_best", frame=of_runs, json=of_runs),
        Column(key="expected_rank", frame=of_runs, json=of_runs),
        Column(key="rank_low", dtype=_WHOLE, frame=of_runs, json=of_runs),
        Column(key="rank_high", dtype=_WHOLE, frame=of_runs, json=of_runs),
        # The column has been at this position in JSON files since the first version.
        Column(key="p_set", frame=False, json=of_runs),
        Column(key="standard_error", frame=False),
        Column(key="tied", dtype=_FLAG),
        Column(key="within_margin", dtype=_FLAG),
        Column(key="chosen", dtype=_FLAG),
        Column(key="paired", dtype=_FLAG, value=_is_paired, frame=of_runs, json=False),
        Column(key="unpaired", frame=False, json=of_runs),
        Column(key="reason", frame=False, json=of_runs),
        # Frames have one column for why a difference has no interval or is not paired.
        Column(key="reason", dtype=_TEXT, value=_reason, json=False),
        Column(
            key="gates",
            frame=False,
            json=False,
            heading="Gates",
            cell=_passed_gates,
            shown=_has_gates,
            terminal=None,
        ),
    ]


def ranking_table(ranking: Ranking, columns: Sequence[Column]) -> Table:
    """Return the table of a ranking, best run or model first, with drawn intervals in the cells."""
    rows = []
    for entry in ranking.standings:
        cells = {column.key: column.cell(entry, ranking) for column in columns if column.cell}
        rows.append(Row(cells, marked(standing(entry, ranking), entry.tied)))
    shorten_names(rows)
    fold(rows)
    tied = [entry.tied for entry in ranking.standings]
    return Table(
        {column.key: column.heading for column in columns},
        rows,
        {column.key for column in columns if column.is_text},
        scales=draw_columns([row.cells for row in rows], tied, "difference"),
        behind=behind_words(ranking),
    )


def _titles(comparison: Comparison, criterion: Criterion, at: str) -> dict[str, str]:
    """Return the brief title of each metric in the criterion, for headings."""
    catalog = criterion.catalog
    evaluations = [run.evaluation for run in comparison.runs]
    if len({(evaluation.positive, evaluation.labels) for evaluation in evaluations}) == 1:
        return {
            name: title_of(name, evaluations[0], catalog, brief=True) + at
            for name in criterion.metrics
        }
    return {
        name: fmt.metric_title(name, brief=True, catalog=catalog) + at for name in criterion.metrics
    }


def _values_of_runs(criterion: Criterion, titles: dict[str, str], level: str) -> list[Column]:
    """Return the columns of a run's value and intervals, or one for each of several metrics."""
    name = criterion.metrics[0]
    brief = OnTerminal(
        "value", lambda entry, _: fmt.number(entry.value, entry.interval), right=True
    )
    columns = [
        Column(
            key="value",
            heading=fmt.capital(titles[name]),
            cell=_value if criterion.single else None,
            terminal=OnTerminal(f"value\n{level}", brief=brief),
            metric=name,
        ),
        Column(key="low"),
        Column(key="high"),
        Column(key="adjusted_low"),
        Column(key="adjusted_high"),
        Column(key="values", frame=False),
    ]
    if not criterion.single:
        columns += [_metric(name, titles[name], level) for name in criterion.metrics]
    return columns


def _metric(name: str, title: str, level: str) -> Column:
    """Return the column for one of several metrics in the criterion."""
    *section, last = name.rsplit("/", 1)
    brief = OnTerminal(
        "/\n".join((*section, last)), lambda entry, _: fmt.number(entry.metrics[name])
    )
    return Column(
        key=name,
        value=lambda entry, _: entry.values[name],
        json=False,
        heading=fmt.capital(title),
        cell=partial(_metric_cell, name=name),
        terminal=OnTerminal(f"{name}\n{level}", brief=brief),
        metric=name,
    )


def _values_of_models(criterion: Criterion, titles: dict[str, str]) -> list[Column]:
    """Return the columns of a model's mean, standard deviation and number of runs."""
    name = criterion.metrics[0]
    return [
        Column(
            key="mean",
            value=lambda entry, _: entry.value,
            heading=f"Mean {titles[name]}",
            cell=lambda entry, _: Cell(fmt.number(entry.value), entry.value),
            terminal=OnTerminal("mean ± sd", _mean_and_sd),
            metric=name,
        ),
        Column(
            key="sd",
            heading="sd",
            cell=lambda entry, _: Cell(fmt.number(entry.sd), entry.sd),
            terminal=None,
        ),
        Column(key="blocks", dtype=_WHOLE, value=_count_blocks, json=False),
        Column(
            key="runs",
            frame=False,
            json=False,
            heading="Runs",
            cell=lambda entry, _: Cell(str(len(entry.runs)), float(len(entry.runs))),
            terminal=OnTerminal(right=True),
        ),
    ]


# -- conditions for a column -----------------------------------------------------------------------


def _has_differences(ranking: Ranking) -> bool:
    return len(ranking.standings) > 1 and ranking.criterion.single


def _has_gates(ranking: Ranking) -> bool:
    return any(entry.gates for entry in ranking.standings)


# -- values for programs ---------------------------------------------------------------------------


def _count_blocks(entry: Ranked, ranking: Ranking) -> int:
    """Return the number of blocks in which a model has a value."""
    name = ranking.criterion.metrics[0]
    values = [run.evaluation.metrics.get(name, math.nan) for run in entry.runs]
    return sum(map(math.isfinite, values))


def _is_paired(entry: Ranked, ranking: Ranking) -> bool | None:
    """Return whether a run's differences are paired by row.

    Returns None if there is only one run.
    """
    if len(ranking.runs) == 1:
        return None
    return not entry.unpaired


def _reason(entry: Ranked, ranking: Ranking) -> str:
    return entry.unpaired or entry.reason


# -- cells for people ------------------------------------------------------------------------------


def _rank(entry: Ranked, ranking: Ranking) -> Cell:
    return Cell(str(entry.rank), entry.rank)


def _name(entry: Ranked, ranking: Ranking) -> NameCell:
    return name_cell(entry.name, "" if ranking.over else entry.run_id)


def _status(entry: Ranked, ranking: Ranking) -> Cell:
    status = standing(entry, ranking)
    return Cell(standing_word(status, ranking, entry.tied), [*STANDINGS].index(status))


def _value(entry: Ranked, ranking: Ranking) -> Cell:
    return value_cell(entry.value, entry.interval)


def _metric_cell(entry: Ranked, ranking: Ranking, name: str) -> Cell:
    interval = entry.evaluation.intervals.get(name, _NO_INTERVAL)
    return value_cell(entry.evaluation.metrics[name], interval)


def _mean_and_sd(entry: Ranked, ranking: Ranking) -> str:
    mean = fmt.number(entry.value)
    return mean if math.isnan(entry.sd) else f"{mean} ± {fmt.number(entry.sd)}"


def _difference(entry: Ranked, ranking: Ranking) -> Cell:
    ends = (entry.difference_low, entry.difference_high)
    text = fmt.signed(entry.difference, ends).split(" [")[0]
    if ranking.over and entry is ranking.leader:
        text = "leader"
    interval = fmt.interval(entry.difference, ends) or entry.reason
    return Cell(text, entry.difference, interval, ends=(entry.difference, *ends))


def _difference_on_terminal(entry: Ranked, ranking: Ranking) -> str:
    if ranking.over and entry is ranking.leader:
        return ""
    ends = (entry.difference_low, entry.difference_high)
    shown = fmt.signed(entry.difference, ends)
    if all(map(math.isfinite, ends)):
        return shown
    return f"{shown} ({entry.reason or 'no standard error'})"


def _p(entry: Ranked, ranking: Ranking) -> Cell:
    """Return the cell of the decisive p-value, which is empty for the leader."""
    if entry is ranking.leader:
        return Cell("–")
    return Cell(fmt.p_text(entry.p_set), entry.p_set)


def _p_on_terminal(entry: Ranked, ranking: Ranking) -> str:
    return "" if entry is ranking.leader else fmt.p_text(entry.p_set)


def _passed_gates(entry: Ranked, ranking: Ranking) -> Cell:
    passed = sum(result.passed for result in entry.gates)
    return Cell(f"{passed} of {len(entry.gates)}", float(passed))
