"""The review page: what it shows, as plain values for the template and for Markdown; its tables cell by cell."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cmtrack.comparison.cell_changes import CellChanges
from cmtrack.comparison.ranking import Ranked, Ranking
from cmtrack.comparison.result import Comparison
from cmtrack.comparison.segments import SegmentDifferences
from cmtrack.digits import significant
from cmtrack.evaluation import Evaluation
from cmtrack.evaluation.gates import GateResult
from cmtrack.names import MAY_BE_BEST, quoted
from cmtrack.report import formatting as fmt
from cmtrack.report.constant import beside
from cmtrack.report.html import figure_block
from cmtrack.report.probabilities import JUDGES
from cmtrack.report.review import narrative, reproduce
from cmtrack.report.review.cells import (
    Cell,
    GateCell,
    Row,
    Table,
    name_cell,
    shorten_names,
)
from cmtrack.report.review.columns import Column, ranking_table
from cmtrack.report.review.curves import curves
from cmtrack.report.review.other_metrics import note_on_metrics, other_metrics
from cmtrack.report.review.phrases import LAST, standing
from cmtrack.report.review.record import record
from cmtrack.report.review.review import Review
from cmtrack.report.review.rows import behind, flips
from cmtrack.report.review.shown import MAX_RUNS, changes_of, judged_section, of_classes
from cmtrack.report.rows import NOTHING_JOINED, Joined, opened
from cmtrack.untrusted import one_line

if TYPE_CHECKING:
    from cmtrack.report.figures import Picture

MAX_CELLS = 12
MAX_OTHERS = 3
"""Runs beside the leader in a table of segments, those first of which a sentence stands above."""
MAX_SEGMENTS = 30
"""Segments of a table; all are in the JSON file."""

_CONTENTS = {
    "tables": "Ranking",
    "segments": "Segments",
    "probabilities": "Probabilities",
    "further": "Notes",
    "gates": "Gates",
    "confusions": "What changes",
    "flips": "Rows",
    "behind": "Rows of cells",
    "figures": "Figures",
    "aside": "Not ranked",
    "record": "Record",
    "python": "Reproduce",
    "methods": "Methods",
}
"""Of a part of the page its link above."""


def context(
    review: Review,
    title: str | None,
    pictures: Mapping[str, Picture],
    rows: bool = True,
    joined: Joined = NOTHING_JOINED,
) -> dict[str, Any]:
    """Everything on the page; single rows where they may be shown, and what stands beside them."""
    comparison = review.comparison
    sentences = narrative.decision(review, beside_tables=True)
    words = {
        "title": title or narrative.title(review),
        "facts": narrative.facts(review),
        "headline": sentences[0],
        "evidence": sentences[1:],
        "further": narrative.further(review, beside_tables=True),
        "warnings": narrative.warnings(review),
        "methods": narrative.methods(review),
    }
    tables = ranking_tables(review)
    drawn = any(shown.scales for shown in tables)  # bars, which show what the figure does
    tied = "are not dominated" if review.criterion.pareto else MAY_BE_BEST
    flipped = flips(review, rows, joined)
    listed = behind(review, flipped, joined) if rows else None
    opens = opened(listed)
    page = words | {
        "noun": review.noun,
        "run_numbers": review.numbers,
        "tables": tables,
        "only_tied": f"only runs that {tied}",
        "segments": [_segment_table(review, pairs) for pairs in comparison.segments.tables],
        "probabilities": probabilities(review.run_ranking),
        "gates": gate_table(comparison),
        "aside": aside(comparison),
        "confusions": None if review.rival is None else confusions(review, review.rival),
        "flips": flipped,
        "behind": listed,
        "figures": [
            figure_block(picture, opens)
            for name, picture in pictures.items()
            if name != "ranking" or not drawn
        ],
        "figures_of": "" if len(review.rankings) < 2 else "ranking 1",
        "record": record(review),
        "python": reproduce.python_snippet(comparison),
        "command": reproduce.command_line(comparison),
    }
    return page | {"contents": [(name, text) for name, text in _CONTENTS.items() if page[name]]}


def choices(review: Review) -> dict[str, Any]:
    """Return what a reader of the page chooses from: other metrics, runs to compare with the chosen one, and other questions.

    Empty without a ranking of runs.
    """
    ranking = review.run_ranking
    if ranking is None:
        return {
            "chosen": None,
            "rival": None,
            "metrics": [],
            "pairs": [],
            "curves": [],
            "questions": [],
        }
    numbers = review.numbers
    tables = other_metrics(review)
    pairs = [(run, confusions(review, run)) for run in ranking.runs if run is not ranking.foremost]
    return {
        "chosen": numbers[ranking.foremost.name],
        "rival": None if review.rival is None else numbers[review.rival.name],
        "metrics": tables,
        "note_on_metrics": note_on_metrics(review, tables),
        "pairs": [pair | {"number": numbers[run.name]} for run, pair in pairs if pair is not None],
        "curves": curves(ranking, numbers),
        "questions": reproduce.other_questions(review.comparison, ranking),
    }


def aside(comparison: Comparison) -> list[dict[str, str]]:
    """Unranked runs, and why; those stopped by a gate are in the table of the gates."""
    worse = "its logged value is worse than those of the runs that were read (limit)"
    rows = [
        (one.run, LAST if one.last else "not ranked", one.reason) for one in comparison.left_out
    ]
    rows += [(run, "not read", worse) for run in comparison.passed_over]
    return [
        {
            "name": run.name,
            "id": fmt.short_id(run.run_id),
            "run_id": run.run_id,
            "what": status,
            "why": why,
        }
        for run, status, why in rows
    ]


# -- tables ----------------------------------------------------------------------------------------------------


def ranking_tables(review: Review) -> list[Table]:
    """The table of each ranking, with its name and how to read it."""
    comparison = review.comparison
    tables = []
    for place, ranking in enumerate(comparison.rankings):
        columns = [column for column in review.columns if column.is_shown(ranking)]
        table = ranking_table(ranking, columns)
        table.name = "Ranking"
        if len(comparison.rankings) > 1:
            table.name = narrative.heading(review, place)
        table.reading = narrative.reading(review)
        table.beside = beside_rows(comparison, ranking, columns)
        tables.append(table)
    return tables


def beside_rows(comparison: Comparison, ranking: Ranking, columns: Sequence[Column]) -> list[Row]:
    """The rows below those of the ranked runs: the constant answers, and runs without a value."""
    rows = []
    for unranked in beside(comparison, ranking):
        cells = {column.key: Cell(unranked.values.get(column.metric, "")) for column in columns}
        cells["name"] = name_cell(unranked.name, unranked.run_id)
        cells["status"] = Cell(unranked.standing)
        rows.append(Row(cells, "beside", reason=unranked.reason))
    return rows


_LOSSES = ("probability/log_loss", "probability/brier")
_HEADS = {"error": "Cal. error", "pvalue": "p", "slope": "Slope"}
_OF_WHAT = {
    "calibration": "the probabilities of {positive}. A slope below 1: over-confident; scores of exactly 0 and 100 % "
    "are no part of it",
    "confidence": "the probability of the predicted class, and how often it is right",
}


def probabilities(ranking: Ranking | None) -> Table | None:
    """The losses and the calibration of the first runs, with the word on them; None without probabilities."""
    if ranking is None:
        return None
    section = judged_section(ranking)
    judges = [f"{section}/{name}" for name in _HEADS] if section else []
    judged = [
        (run, evaluation)
        for run, evaluation in of_classes(ranking)
        if _has(evaluation, [*_LOSSES, *judges])
    ]
    shown = judged[:MAX_RUNS]
    if not shown:
        return None
    names = [name for name in (*_LOSSES, *judges) if any(_has(one, [name]) for _, one in shown)]
    rows = []
    for run, evaluation in shown:
        cells: dict[str, Cell] = {"name": name_cell(run.name, run.run_id)}
        if section:
            verdict = JUDGES[section](evaluation)
            cells["verdict"] = Cell(verdict.word, title=verdict.sentence) if verdict else Cell("–")
        for name in names:
            with_interval = name not in _LOSSES or not section
            cells[name] = _of_probabilities(evaluation, name, with_interval)
        rows.append(Row(cells, standing(run, ranking)))
    shorten_names(rows)
    reading = f"Brackets are {fmt.level(ranking.confidence_level)} intervals of each run by itself."
    title = "Probabilities"
    if section:
        positive = quoted(ranking.evaluation.positive)
        subject = _OF_WHAT[section].format(positive=positive)
        title = "Are the probabilities right?"
        if section == "calibration":
            title = f"Are the probabilities of {positive} right?"
        reading += (
            f" Log loss and Brier score are of all classes. The others judge {subject}. Where p is at most "
            f"{significant(1 - ranking.confidence_level)} there are signs of miscalibration; it is claimed where the curve "
            "leaves its band, too, or both parts of the test find it."
        )
    if len(judged) > len(shown):
        reading += f" The first {len(shown)} of {len(judged)} runs."
    heads = {"name": "Run"}
    if section:
        heads["verdict"] = "Verdict"
    for name in names:
        heads[name] = _HEADS.get(name.split("/")[1]) or fmt.capital(
            fmt.metric_title(name, brief=True)
        )
    return Table(heads, rows, ("name", "verdict"), title, reading)


def _has(evaluation: Evaluation, names: Sequence[str]) -> bool:
    return any(
        name in evaluation.infinite or math.isfinite(evaluation.metrics.get(name, math.nan))
        for name in names
    )


def _of_probabilities(evaluation: Evaluation, name: str, with_interval: bool) -> Cell:
    """A loss or a number of the calibration; infinite where a probability of 0 came true."""
    if name in evaluation.infinite:
        return Cell(fmt.missing_word(evaluation, name), title=evaluation.undefined[name])
    value = evaluation.metrics.get(name, math.nan)
    ends = evaluation.intervals.get(name)
    if math.isnan(value):
        return Cell("–", title=evaluation.undefined.get(name, ""))
    if name.endswith("pvalue"):
        return Cell(fmt.p_text(value), value)
    entry = evaluation.catalog.lookup(name)
    interval = fmt.metric_interval(entry, value, ends) if with_interval else None
    return Cell(fmt.metric_value(entry, value, ends), value, interval)


def _segment_table(review: Review, pairs: Sequence[SegmentDifferences]) -> Table:
    """Segments by runs, of a column and metric: the leader's value, and its differences from the others."""
    first = pairs[0]
    several = len(pairs)
    pairs = sorted(pairs, key=lambda pair: not pair.contrary)[:MAX_OTHERS]
    title = fmt.metric_title(first.metric, brief=True, catalog=first.catalog)
    marks = {
        pair.segments[k]: "better" if pair.gain < 0 else "worse"
        for pair in pairs
        for k in pair.contrary
    }
    # those that a sentence names are shown, and all that are shown are in the order of their values
    order = sorted(
        sorted(range(len(first.segments)), key=lambda k: first.segments[k] not in marks)[
            :MAX_SEGMENTS
        ]
    )
    heads = {
        "segment": "Segment",
        "rows": "Rows",
        "value": f"{review.say(first.first)}, the leader",
    }
    for number, pair in enumerate(pairs):
        heads[f"value_{number}"] = review.say(pair.second)
        heads[f"difference_{number}"] = "Leader less it"
    rows = []
    for k in order:
        text = first.segments[k]
        n = float(first.rows[k])
        value = float(first.first_values[k])
        cells = {
            "segment": Cell(text, text),
            "rows": Cell(fmt.count(n), n),
            "value": Cell(fmt.number(value), value),
        }
        for number, pair in enumerate(pairs):
            place = pair.segments.index(text)
            second = float(pair.second_values[place])
            cells[f"value_{number}"] = Cell(fmt.number(second), second)
            cells[f"difference_{number}"] = _segment_difference(pair, place)
        rows.append(Row(cells, mark=marks.get(text, "")))
    name = f"By segment: {title} by {quoted(first.column)}"
    reading = narrative.segment_table_reading(review, pairs, len(rows))
    if len(pairs) < several:
        reading += f" {len(pairs)} of the {several} runs that were compared; the JSON file has all."
    return Table(heads, rows, ("segment",), name, reading)


def _segment_difference(pair: SegmentDifferences, place: int) -> Cell:
    """The difference of two runs in a segment."""
    difference = float(pair.differences[place])
    ends = (float(pair.low[place]), float(pair.high[place]))
    text = fmt.signed(difference, ends).split(" [")[0]
    return Cell(text, difference, fmt.interval(difference, ends) or pair.reasons[place])


def gate_table(comparison: Comparison) -> Table | None:
    """Runs by gates, those that were stopped first; None without gates."""
    if not comparison.gates:
        return None
    judged: list[tuple[str, str, tuple[GateResult, ...]]] = [
        (s.name, s.run_id, s.gates) for s in comparison.failed
    ]
    judged += [
        (entry.name, "" if comparison.repeated else entry.run_id, entry.gates)
        for entry in comparison.standings
    ]
    rows = []
    for name, run_id, results in judged:
        by_gate = {result.gate.text: result for result in results}
        cells: dict[str, Cell] = {"name": name_cell(name, run_id)}
        for place, gate in enumerate(comparison.gates):
            cells[f"gate_{place}"] = _gate(by_gate.get(gate.text))
        rows.append(Row(cells))
    shorten_names(rows)
    heads = {"name": comparison.noun.capitalize()}
    for place, gate in enumerate(comparison.gates):
        heads[f"gate_{place}"] = gate.text
    return Table(heads, rows, ("name",))


def _gate(result: GateResult | None) -> GateCell:
    if result is None:
        return GateCell("not looked at")
    return GateCell(result.found, result.value, passed=result.passed)


def confusions(review: Review, other: Ranked) -> dict[str, Any] | None:
    """The confusions that the chosen run wins and loses against another, the clearest first; None for sets of codes."""
    ranking = review.run_ranking
    if ranking is None:
        return None
    changes = changes_of(ranking, other)
    if changes is None:
        return None
    chosen = review.say(ranking.foremost.name)
    rival = review.say(other.name)
    clear = changes.significant(ranking.confidence_level)
    places = [
        (int(i), int(j))
        for i, j in zip(*np.nonzero(np.nan_to_num(changes.difference)), strict=True)
    ]
    places.sort(
        key=lambda at: (
            not clear[at],
            -abs(changes.difference[at]) * math.sqrt(abs(changes.counts[at])),
        )
    )
    # a table of differences that are all chance tells nothing
    most = MAX_CELLS if clear.any() else 0
    return {
        "chosen": chosen,
        "rival": rival,
        "sentences": _confusion_words(changes, clear, chosen, rival),
        "rows": [_confusion(changes, at, bool(clear[at])) for at in places[:most]],
        "more": f"{len(places) - most} smaller differences are not listed."
        if len(places) > most > 0
        else "",
        "paired": changes.paired,
        "what": f"groups of {quoted(changes.step)}" if changes.step else "classes",
    }


def _confusion_words(
    changes: CellChanges, clear: np.ndarray[Any, Any], chosen: str, other: str
) -> list[str]:
    gains = changes.gains()
    different = int(np.count_nonzero(np.nan_to_num(changes.difference)))
    if not different:
        return [f"{chosen} and {other} have the same confusion matrix."]
    sentences = []
    for cells, way in ((gains > 0, "better"), (gains < 0, "worse")):
        places = sorted(
            zip(*np.nonzero(clear & cells), strict=True), key=lambda at: -abs(gains[at])
        )
        if places:
            listed = "; ".join(_one(changes, at) for at in places[:3])
            more = f"; and {len(places) - 3} more" if len(places) > 3 else ""
            sentences.append(f"{chosen} is significantly {way} than {other}: {listed}{more}.")
    if not sentences and different == 1:
        return [f"{chosen} and {other} differ in 1 cell, and not significantly."]
    return sentences or [
        f"None of the {different} cells in which {chosen} and {other} differ does so significantly."
    ]


def _one(changes: CellChanges, at: tuple[int, int]) -> str:
    i, j = at
    more = "more" if changes.counts[at] > 0 else "fewer"
    n = fmt.counted(abs(float(changes.counts[at])), f"{more} sample")
    actual, predicted = quoted(changes.labels[i]), quoted(changes.labels[j])
    where = (
        f"of class {actual} correct" if i == j else f"of class {actual} predicted as {predicted}"
    )
    return f"{n} {where} ({fmt.p_equals(float(changes.adjusted[at]))})"


def _confusion(changes: CellChanges, at: tuple[int, int], clear: bool) -> dict[str, Any]:
    i, j = at
    gain = float(changes.gains()[at])
    difference = float(changes.difference[at])
    status = "won" if gain > 0 else "lost"
    verdict = "better" if gain > 0 else "worse"
    if not clear:
        status = "unclear"
        verdict = "not significant"
    return {
        "actual": one_line(changes.labels[i]),
        "predicted": "correct" if i == j else one_line(changes.labels[j]),
        "points": Cell(fmt.fixed(difference, 1, 2, sign=True), 100 * difference),
        "counts": Cell(fmt.minus(f"{changes.counts[at]:+g}"), float(changes.counts[at])),
        "only_chosen": Cell(_number(changes.only_second[at]), float(changes.only_second[at])),
        "only_rival": Cell(_number(changes.only_first[at]), float(changes.only_first[at])),
        "p": Cell(fmt.p_text(float(changes.adjusted[at])), float(changes.adjusted[at])),
        "status": status,
        "verdict": verdict,
    }


def _number(value: float) -> str:
    return "–" if math.isnan(value) else fmt.count(float(value))
