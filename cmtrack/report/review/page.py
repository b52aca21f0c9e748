"""Content of the review page, for the HTML template and for the Markdown file."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cmtrack.comparison.cell_changes import CellChanges
from cmtrack.comparison.ranking import Ranked, Ranking
from cmtrack.comparison.result import Comparison
from cmtrack.comparison.run import Run
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
    fold,
    name_cell,
    shorten_names,
)
from cmtrack.report.review.columns import Column, ranking_table
from cmtrack.report.review.curves import curves, curves_end
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
"""Maximum number of runs in addition to the leader in a table of segments.

Runs that a sentence mentions come first.
"""
MAX_SEGMENTS = 30
"""Maximum number of segments in a table; the JSON file contains all segments."""

_CONTENTS = {
    "tables": "Ranking",
    "segments": "Segments",
    "probabilities": "Probabilities",
    "gates": "Gates",
    "confusions": "Compare two",
    "figures": "Figures",
    "behind": "Rows",
    "record": "Details",
}
"""Links at the top of the page, one for each part of the page."""


def context(
    review: Review,
    title: str | None,
    pictures: Mapping[str, Picture],
    rows: bool = True,
    joined: Joined = NOTHING_JOINED,
) -> dict[str, Any]:
    """Return the values of the page that do not depend on a reader's choices.

    ``rows``: whether the page may show individual rows.
    ``joined``: columns of the user's table to show next to the rows.
    """
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
    # The bars in the table replace the ranking figure.
    has_bars = any(table.scales for table in tables)
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
            if name != "ranking" or not has_bars
        ],
        "figures_of": "" if len(review.rankings) < 2 else "ranking 1",
        "record": record(review),
        "python": reproduce.python_snippet(comparison),
        "command": reproduce.command_line(comparison),
    }
    return page | {"contents": [(name, text) for name, text in _CONTENTS.items() if page[name]]}


def choices(review: Review) -> dict[str, Any]:
    """Return the choices that readers have: metrics, runs to compare with, further questions.

    All lists of choices are empty if there is no ranking of runs.
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
        "curves_end": curves_end(ranking),
        "questions": reproduce.other_questions(review.comparison, ranking),
    }


def aside(comparison: Comparison) -> list[dict[str, str]]:
    """Return the runs without a rank, with the reasons, except the runs that fail a gate."""
    rows = []
    for unranked in comparison.left_out:
        status = LAST if unranked.last else "not ranked"
        rows.append(_aside_row(unranked.run, status, unranked.reason))
    worse = "its logged value is worse than the values of the runs that were read (limit)"
    return rows + [_aside_row(run, "not read", worse) for run in comparison.passed_over]


def _aside_row(run: Run, status: str, reason: str) -> dict[str, str]:
    return {
        "name": run.name,
        "id": fmt.short_id(run.run_id),
        "run_id": run.run_id,
        "what": status,
        "why": reason,
    }


# -- tables ----------------------------------------------------------------------------------------


def ranking_tables(review: Review) -> list[Table]:
    """Return a table for each ranking, with a name and reading instructions."""
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
    """Return the rows below the ranked runs, for constant answers and runs without a value."""
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
    "calibration": "the probabilities of {positive}. Slope below 1: scores are too extreme; above "
    "1: not extreme enough (without scores of exactly 0% and 100%)",
    "confidence": "the probability of the predicted class",
}


def probabilities(ranking: Ranking | None) -> Table | None:
    """Return the table of losses and calibration of the best runs.

    Returns None if no probabilities are available. The column "Verdict" contains a word that
    assesses the calibration of each run.
    """
    if ranking is None:
        return None
    section = judged_section(ranking)
    names = list(_LOSSES)
    if section:
        names += [f"{section}/{name}" for name in _HEADS]
    judged = [
        (run, evaluation) for run, evaluation in of_classes(ranking) if _has(evaluation, names)
    ]
    shown = judged[:MAX_RUNS]
    if not shown:
        return None
    names = [name for name in names if any(_has(evaluation, [name]) for _, evaluation in shown)]
    rows = [
        Row(_probability_cells(run, evaluation, section, names), standing(run, ranking))
        for run, evaluation in shown
    ]
    shorten_names(rows)
    fold(rows)
    heads = {"name": "Run"}
    if section:
        heads["verdict"] = "Verdict"
    for name in names:
        _, last = name.split("/")
        heads[name] = _HEADS.get(last) or fmt.capital(fmt.metric_title(name, brief=True))
        if name in _LOSSES and section == "calibration" and len(ranking.evaluation.labels) > 2:
            heads[name] += " (all)"
    title = "Probabilities"
    if section:
        title = "Are the probabilities right?"
    if section == "calibration":
        title = f"Are the probabilities of {quoted(ranking.evaluation.positive)} right?"
    reading = _probability_reading(ranking, section)
    if any("probability/log_loss" in evaluation.infinite for _, evaluation in shown):
        reading += " Infinite: an actual class had a probability of 0."
    if len(judged) > len(shown):
        reading += f" The table shows the first {len(shown)} of {len(judged)} runs."
    return Table(heads, rows, ("name", "verdict"), title, reading, behind="ruled out")


def _probability_cells(
    run: Ranked, evaluation: Evaluation, section: str, names: Sequence[str]
) -> dict[str, Cell]:
    """Return the cells of a run in the table of probabilities."""
    cells: dict[str, Cell] = {"name": name_cell(run.name, run.run_id)}
    if section:
        assessment = JUDGES[section](evaluation)
        cells["verdict"] = Cell("–")
        if assessment is not None:
            cells["verdict"] = Cell(assessment.word, title=assessment.sentence)
    for name in names:
        # In a table with calibration errors, there is no room for the intervals of the losses.
        with_interval = name not in _LOSSES or not section
        cells[name] = _probability_cell(evaluation, name, with_interval)
    return cells


def _probability_reading(ranking: Ranking, section: str) -> str:
    """Return how to read the table of probabilities."""
    level = fmt.level(ranking.confidence_level)
    reading = f"Brackets show a separate {level} interval for each run."
    if not section:
        return reading
    subject = _OF_WHAT[section].format(positive=quoted(ranking.evaluation.positive))
    alpha = significant(1 - ranking.confidence_level)
    n_classes = len(ranking.evaluation.labels)
    return (
        f"{reading} Log loss and Brier score cover all {n_classes} classes. The other columns "
        f"evaluate {subject}. If p is at most {alpha}, there are signs of miscalibration. The "
        "verdict names a fault only with more evidence, such as a curve outside its band."
    )


def _has(evaluation: Evaluation, names: Sequence[str]) -> bool:
    """Return whether an evaluation has a value for at least one of the metrics."""
    return any(
        name in evaluation.infinite or math.isfinite(evaluation.metrics.get(name, math.nan))
        for name in names
    )


def _probability_cell(evaluation: Evaluation, name: str, with_interval: bool) -> Cell:
    """Return the table cell of a loss or of a calibration metric.

    A loss is infinite if an outcome came true although its predicted probability was 0.
    """
    if name in evaluation.infinite:
        return Cell(fmt.missing_word(evaluation, name), title=evaluation.undefined[name])
    value = evaluation.metrics.get(name, math.nan)
    if math.isnan(value):
        return Cell("–", title=evaluation.undefined.get(name, ""))
    if name.endswith("pvalue"):
        return Cell(fmt.p_text(value), value)
    interval = evaluation.intervals.get(name)
    metric = evaluation.catalog.lookup(name)
    text = fmt.metric_value(metric, value, interval)
    if not with_interval:
        return Cell(text, value)
    return Cell(text, value, fmt.metric_interval(metric, value, interval))


def _segment_table(review: Review, pairs: Sequence[SegmentDifferences]) -> Table:
    """Return the table for one segment column and one metric, with a row for each segment.

    A row shows the leader's value and the differences between the leader and the other runs.
    """
    first = pairs[0]
    n_pairs = len(pairs)
    pairs = sorted(pairs, key=lambda pair: not pair.contrary)[:MAX_OTHERS]
    marks = {
        pair.segments[k]: "better" if pair.gain < 0 else "worse"
        for pair in pairs
        for k in pair.contrary
    }
    # If there are too many segments, keep the segments that a sentence names, in the same order.
    by_mark = sorted(range(len(first.segments)), key=lambda k: first.segments[k] not in marks)
    rows = []
    for k in sorted(by_mark[:MAX_SEGMENTS]):
        mark = marks.get(first.segments[k], "")
        rows.append(Row(_segment_cells(pairs, k), mark=mark))
    heads = {
        "segment": "Segment",
        "rows": "Rows",
        "value": f"{review.say(first.first)}, the leader",
    }
    for number, pair in enumerate(pairs):
        heads[f"value_{number}"] = review.say(pair.second)
        heads[f"difference_{number}"] = "Leader minus this run"
    title = fmt.metric_title(first.metric, brief=True, catalog=first.catalog)
    reading = narrative.segment_table_reading(review, pairs, len(rows))
    if len(pairs) < n_pairs:
        reading += f" It shows {len(pairs)} of {n_pairs} other runs; see the JSON file for all."
    name = f"By segment: {title} by {quoted(first.column)}"
    return Table(heads, rows, ("segment",), name, reading)


def _segment_cells(pairs: Sequence[SegmentDifferences], k: int) -> dict[str, Cell]:
    """Return the cells in the row of a segment.

    ``k``: the position of the segment in the first pair of runs.
    """
    first = pairs[0]
    text = first.segments[k]
    n = float(first.rows[k])
    value = float(first.first_values[k])
    cells = {
        "segment": Cell(text, text),
        "rows": Cell(fmt.count(n), n),
        "value": Cell(fmt.number(value), value),
    }
    for number, pair in enumerate(pairs):
        # The order of the segments may differ between pairs.
        place = pair.segments.index(text)
        second = float(pair.second_values[place])
        cells[f"value_{number}"] = Cell(fmt.number(second), second)
        cells[f"difference_{number}"] = _segment_difference(pair, place)
    return cells


def _segment_difference(pair: SegmentDifferences, place: int) -> Cell:
    """Return the cell of the difference between two runs in a segment."""
    difference = float(pair.differences[place])
    ends = (float(pair.low[place]), float(pair.high[place]))
    text = fmt.signed(difference, ends).split(" [")[0]
    return Cell(text, difference, fmt.interval(difference, ends) or pair.reasons[place])


def gate_table(comparison: Comparison) -> Table | None:
    """Return the table of gate results, in which runs that fail a gate come first.

    Returns None if there are no gates.
    """
    if not comparison.gates:
        return None
    rows = [_gate_row(comparison, stop.name, stop.run_id, stop.gates) for stop in comparison.failed]
    for entry in comparison.standings:
        run_id = "" if comparison.repeated else entry.run_id
        rows.append(_gate_row(comparison, entry.name, run_id, entry.gates))
    shorten_names(rows)
    heads = {"name": comparison.noun.capitalize()}
    for place, gate in enumerate(comparison.gates):
        heads[f"gate_{place}"] = gate.text
    return Table(heads, rows, ("name",))


def _gate_row(comparison: Comparison, name: str, run_id: str, results: Sequence[GateResult]) -> Row:
    """Return the row of a run with the result of each gate."""
    by_gate = {result.gate.text: result for result in results}
    cells: dict[str, Cell] = {"name": name_cell(name, run_id)}
    for place, gate in enumerate(comparison.gates):
        cells[f"gate_{place}"] = _gate(by_gate.get(gate.text))
    return Row(cells)


def _gate(result: GateResult | None) -> GateCell:
    if result is None:
        return GateCell("not checked")
    return GateCell(result.found, result.value, passed=result.passed)


def confusions(review: Review, other: Ranked) -> dict[str, Any] | None:
    """Return the confusions in which the chosen run is better or worse than another run.

    The most significant differences come first. The result is None if the runs predict sets of
    codes.
    """
    ranking = review.run_ranking
    if ranking is None:
        return None
    changes = changes_of(ranking, other)
    if changes is None:
        return None
    chosen = review.say(ranking.foremost.name)
    rival = review.say(other.name)
    clear = changes.significant(ranking.confidence_level)

    def order(cell: tuple[int, int]) -> tuple[bool, float]:
        # Among differences with the same p-value, the difference with more rows comes first.
        weight = abs(changes.difference[cell]) * math.sqrt(abs(changes.counts[cell]))
        return not clear[cell], -weight

    differing = zip(*np.nonzero(np.nan_to_num(_once(changes))), strict=True)
    cells = sorted(((int(i), int(j)) for i, j in differing), key=order)
    # If no difference is significant, the page shows only a sentence.
    most = MAX_CELLS if clear.any() else 0
    rest = ""
    if len(cells) > most > 0:
        rest = f"The table omits {len(cells) - most} smaller differences."
    return {
        "chosen": chosen,
        "rival": rival,
        "sentences": _confusion_words(changes, clear, chosen, rival),
        "rows": [_confusion(changes, cell, bool(clear[cell])) for cell in cells[:most]],
        "more": rest,
        "paired": changes.paired,
        "what": f"groups of {quoted(changes.step)}" if changes.step else "",
    }


def _once(changes: CellChanges) -> np.ndarray[Any, Any]:
    """Return the differences, without the errors of two classes, which repeat the correct cells."""
    if len(changes.labels) == 2 and not changes.step:
        return changes.difference * np.eye(2)
    return changes.difference


def _confusion_words(
    changes: CellChanges, clear: np.ndarray[Any, Any], chosen: str, other: str
) -> list[str]:
    """Return sentences on the cells in which two runs differ significantly."""
    gains = changes.gains()
    n_different = int(np.count_nonzero(np.nan_to_num(_once(changes))))
    if not n_different:
        return [f"{chosen} and {other} have the same confusion matrix."]
    sentences = []
    for is_cell, comparison in ((gains > 0, "better"), (gains < 0, "worse")):
        cells = list(zip(*np.nonzero(clear & is_cell & (_once(changes) != 0)), strict=True))
        cells.sort(key=lambda cell: -abs(gains[cell]))
        if cells:
            listed = "; ".join(_cell_words(changes, cell) for cell in cells[:3])
            rest = f"; and {len(cells) - 3} more" if len(cells) > 3 else ""
            sentences.append(
                f"{chosen} is significantly {comparison} than {other}: {listed}{rest}."
            )
    if sentences:
        return sentences
    if n_different == 1:
        return [f"{chosen} and {other} differ in 1 cell, but not significantly."]
    return [f"{chosen} and {other} differ in {n_different} cells, none of them significantly."]


def _cell_words(changes: CellChanges, cell: tuple[int, int]) -> str:
    """Return a difference in words, such as "3 more rows of class “a” correct (p = 0.01)"."""
    i, j = cell
    more = "more" if changes.counts[cell] > 0 else "fewer"
    rows = fmt.counted(abs(float(changes.counts[cell])), f"{more} row")
    answer = "classified correctly"
    if i != j:
        answer = f"predicted as {quoted(changes.labels[j])}"
    pvalue = fmt.p_equals(float(changes.adjusted[cell]))
    return f"{rows} of class {quoted(changes.labels[i])} {answer} ({pvalue})"


def _confusion(changes: CellChanges, cell: tuple[int, int], clear: bool) -> dict[str, Any]:
    """Return the table row that describes a cell of the confusion matrix."""
    i, j = cell
    gain = float(changes.gains()[cell])
    difference = float(changes.difference[cell])
    pvalue = float(changes.adjusted[cell])
    if not clear:
        status = "unclear"
        verdict = "not significant"
    elif gain > 0:
        status = "won"
        verdict = "better"
    else:
        status = "lost"
        verdict = "worse"
    return {
        "actual": one_line(changes.labels[i]),
        "predicted": "correct" if i == j else one_line(changes.labels[j]),
        "points": Cell(fmt.fixed(difference, 1, 2, sign=True), 100 * difference),
        "counts": Cell(fmt.minus(f"{changes.counts[cell]:+g}"), float(changes.counts[cell])),
        "only_chosen": _count_cell(changes.only_second[cell]),
        "only_rival": _count_cell(changes.only_first[cell]),
        "p": Cell(fmt.p_text(pvalue), pvalue),
        "status": status,
        "verdict": verdict,
    }


def _count_cell(value: float) -> Cell:
    """Return the table cell for a number of rows, which is unknown for runs that are not paired."""
    count = float(value)
    return Cell("–" if math.isnan(count) else fmt.count(count), count)
