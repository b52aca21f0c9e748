"""Figures and the static page of a registered model's history."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cmtrack.comparison.history import History, MonthValues
from cmtrack.comparison.months import MonthEstimate, join_months
from cmtrack.metrics.intervals import Interval, on_scale, size_of_share, wilson
from cmtrack.report import formatting as fmt
from cmtrack.report import history as words
from cmtrack.report.html import aligned_cells, figure_block, render_page, write_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NAN = (math.nan, math.nan)
_MISSING = MonthEstimate(math.nan, math.nan, 1)
"""Estimate of a champion that was not evaluated in a month."""
_SCALES = ("atanh", "logit", "log")
"""Kinds of intervals that are computed from a value and its standard error, except Wald's."""
MOST_EVALUATIONS = 400
"""Maximum number of evaluations in the page's table, so that the page stays below 300 kB."""
MOST_IN_SIGHT = 20
"""Maximum number of rows of a table that does not scroll."""
_ORDER = ("champion", "challenger", "previous", "first", "")
"""Order of the roles in a month."""
PROOF = (
    "Each record contains the SHA-256 of the record before it, and each version has the SHA-256 of "
    "its record as a tag. So a changed number, file or order is found, unless somebody rewrites "
    "all later records as well. Nothing in the store shows such a change, and nothing shows a "
    "change of the newest record. Keep its digest somewhere else, such as in the log of your "
    "pipeline, and compare it with the digest below. The records do not prove dates and authors, "
    "because the author's machine states them. They also do not prove that labels are correct, "
    "that rows were not used in training, or that no other comparison was made."
)


# -- figures ---------------------------------------------------------------------------------------


def history_figure(history: History) -> Figure:
    """Draw the metric of all versions by month, and below it which version was champion."""
    from cmtrack.plots import VersionMonth, plot_history

    months = []
    for month in history.month_values():
        if month.champion is None:
            continue
        champion = month.values.get(month.champion, _MISSING)
        low, high = value_interval(history, champion)
        rest = {name: one.value for name, one in month.values.items() if name != month.champion}
        is_challenger = {name: month.roles.get(name) == "challenger" for name in rest}
        months.append(
            VersionMonth(
                month.name,
                month.champion,
                champion.value,
                low,
                high,
                {name: value for name, value in rest.items() if is_challenger[name]},
                {name: value for name, value in rest.items() if not is_challenger[name]},
                month.by_hand,
            )
        )
    if not months:
        raise ValueError(f"{history.model} has no months to draw")
    return plot_history(
        months,
        metric=words.title_of_metric(history),
        champion=history.champion,
        by_hand=bool(history.terms) and history.terms[-1].by_hand,
        is_share=words.is_share(history),
        confidence_level=history.life.confidence_level,
    )


def gain_figure(history: History) -> Figure | None:
    """Draw the gain of today's champion by month; None if no later rows compare the versions."""
    from cmtrack.plots import GainMonth, plot_gain_by_month

    months = history.over_months()
    gain = history.gain
    if months is None or gain is None:
        return None
    rows = []
    for name, estimate in months.estimates.items():
        alone = join_months([estimate], bounds=history.bounds)
        rows.append(GainMonth(name, estimate.value, alone.low, alone.high, estimate.rows))
    joined = GainMonth("all months", gain.difference, gain.low, gain.high, gain.rows)
    typical = None
    if math.isfinite(months.typical_low):
        typical = GainMonth(
            "a typical month", months.typical, months.typical_low, months.typical_high
        )
    return plot_gain_by_month(
        rows,
        metric=words.title_of_metric(history),
        joined=joined,
        typical=typical,
        is_share=words.is_share(history),
        confidence_level=history.life.confidence_level,
    )


def value_interval(history: History, estimate: MonthEstimate) -> Interval:
    """Return the interval of a version's metric in a month; NaN if it is unknown."""
    entry = words.catalog_of(history).lookup(history.metric)
    ends: Interval | None
    if entry.interval == "wilson":
        size = size_of_share(estimate.value, estimate.standard_error, estimate.rows)
        ends = wilson(estimate.value, size)
    else:
        scale = "wald"
        if entry.interval in _SCALES:
            scale = entry.interval
        ends = on_scale(
            scale, estimate.value, estimate.standard_error, bounds=(entry.low, entry.high)
        )
    return ends or _NAN


# -- the page --------------------------------------------------------------------------------------


def write_page(history: History, path: Path) -> Path:
    """Write the history as one HTML page without scripts."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return write_text(path, history_page(history))


def history_page(history: History) -> str:
    """Return the page of a history."""
    lead, *evidence = words.paragraphs(history)
    problems = [problem.sentence for problem in history.problems]
    figures = _figures(history, problems)
    promotions = history.chain.promotions
    return render_page(
        "tables.html",
        tab=f"{history.model}: history",
        title=f"History of {history.model}",
        facts=[
            f"alias {history.alias}",
            words.title_of_metric(history),
            fmt.counted(len(promotions), "record"),
            f"{fmt.level(history.life.confidence_level)} intervals",
            history.as_of,
        ],
        lead=lead,
        sentences=evidence,
        notes=[
            *words.notes(history),
            *filter(None, [words.false_promotions(history)]),
            *words.verified_sentences(history),
        ],
        problems=problems,
        figures=figures,
        tables=list(_tables(history)),
        proof=PROOF,
        newest=promotions[-1:],
    )


def _figures(history: History, problems: list[str]) -> list[dict[str, Any]]:
    """Return the figures of the page; if Matplotlib is missing, add a note to ``problems``."""
    if not any(month.champion is not None for month in history.month_values()):
        return []
    try:
        from cmtrack.plots.svg import CSS_DPI, as_svg
        from cmtrack.report.figures import Picture
    except ImportError as error:
        problems.append(str(error))
        return []
    gain_title = ""
    if history.gain is not None:
        gain_title = (
            f"Version {history.gain.version} compared with version {history.gain.over}, by month"
        )
    drawings = (
        (
            "history",
            f"{fmt.capital(words.title_of_metric(history))} by month",
            "Blue dots show the champion, which did not depend on the rows of the month. The line "
            "below shows which version was champion.",
            history_figure(history),
        ),
        (
            "gain",
            gain_title,
            "Only rows evaluated after the promotion. The interval of all months is for these "
            "rows, and the interval of a typical month is for another month like these.",
            gain_figure(history),
        ),
    )
    blocks = []
    for name, title, reading, figure in drawings:
        if figure is None:
            continue
        svg = as_svg(figure, name, title)
        width = float(figure.get_size_inches()[0]) * CSS_DPI
        blocks.append(figure_block(Picture(name, title, reading, "", svg=svg, width=width)))
    return blocks


def _tables(history: History) -> Iterator[dict[str, Any]]:
    """Yield the two tables of the page."""
    if history.terms:
        yield {
            "id": "champions",
            "name": "Champions",
            "tall": False,
            "heads": [(column.heading(history), column.right) for column in words.COLUMNS],
            "rows": aligned_cells(
                words.champion_rows(history), [one.right for one in words.COLUMNS]
            ),
            "reading": "Differences are from the champion before. The rows that chose a version "
            "favor it, so read its gain from later rows.",
        }
    rows = _evaluation_rows(history.month_values(), history)
    if rows:
        heads = [("month", False), ("version", False), ("role", False), ("rows", True)]
        heads.append((words.title_of_metric(history), False))
        reading = "Newest month first."
        if len(rows) > MOST_EVALUATIONS:
            reading += f" Shows {MOST_EVALUATIONS} of {len(rows):,} evaluations."
        yield {
            "id": "evaluations",
            "name": "Evaluations by month and version",
            "tall": len(rows) > MOST_IN_SIGHT,
            "heads": heads,
            "rows": aligned_cells(rows[:MOST_EVALUATIONS], [right for _, right in heads]),
            "reading": reading,
        }


def _evaluation_rows(months: Sequence[MonthValues], history: History) -> list[list[str]]:
    rows = []
    for month in reversed(months):
        by_role = sorted(month.values, key=lambda version: _ORDER.index(month.roles[version]))
        for version in by_role:
            estimate = month.values[version]
            shown = words.value_text(history, estimate.value, value_interval(history, estimate))
            name = fmt.short(month.name, 40)
            rows.append([name, version, month.roles[version], fmt.count(estimate.rows), shown])
    return rows
