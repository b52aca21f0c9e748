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
from cmtrack.names import MAY_BE_BEST, SELECTED, quoted, some_of
from cmtrack.report import formatting as fmt
from cmtrack.report.constant import beside
from cmtrack.report.html import figure_block
from cmtrack.report.probabilities import JUDGES
from cmtrack.report.review import reproduce
from cmtrack.report.review.cells import (
    Cell,
    GateCell,
    Row,
    Table,
    name_cell,
    shorten_names,
)
from cmtrack.report.review.columns import Column, ranking_table, shown_columns
from cmtrack.report.review.curves import curves
from cmtrack.report.review.narrative import (
    decision,
    further,
    heading,
    segment_reading,
    segment_test,
)
from cmtrack.report.review.other_metrics import note_on_metrics, other_metrics
from cmtrack.report.review.phrases import (
    LAST,
    Say,
    assumed_shares,
    at_shares,
    criterion_title,
    direction,
    explained,
    judged_at,
    say_of,
    shared_positive,
    short_names,
    standing,
)
from cmtrack.report.review.record import record
from cmtrack.report.review.rows import behind, flips
from cmtrack.report.review.shown import MAX_RUNS, changes_of, judged_section, of_classes, rival
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
    comparison: Comparison,
    title: str | None,
    pictures: Mapping[str, Picture],
    rows: bool = True,
    joined: Joined = NOTHING_JOINED,
) -> dict[str, Any]:
    """Everything on the page; single rows where they may be shown, and what stands beside them."""
    sentences = decision(comparison, beside_tables=True)
    tables = ranking_tables(comparison)
    drawn = any(shown.scales for shown in tables)  # bars, which show what the figure does
    flipped = flips(comparison, rows, joined)
    listed = behind(comparison, flipped, joined) if rows else None
    opens = opened(listed)
    page = {
        "title": title or _title(comparison),
        "noun": comparison.noun,
        "run_numbers": run_numbers(comparison),
        "facts": facts(comparison),
        "headline": sentences[0],
        "evidence": sentences[1:],
        "further": further(comparison, beside_tables=True),
        "tables": tables,
        "probabilities": probabilities(comparison.ranking),
        "segments": [_segment_table(comparison, pairs) for pairs in comparison.segments.tables],
        "only_tied": f"only runs that {'are not dominated' if comparison.criterion.pareto else MAY_BE_BEST}",
        "figures_of": "" if len(comparison.rankings) < 2 else "ranking 1",
        "gates": gate_table(comparison),
        "figures": [
            figure_block(picture, opens)
            for name, picture in pictures.items()
            if name != "ranking" or not drawn
        ],
        "confusions": confusions(comparison),
        "flips": flipped,
        "behind": listed,
        "warnings": warnings(comparison),
        "aside": aside(comparison),
        "record": record(comparison),
        "python": reproduce.python_snippet(comparison),
        "command": reproduce.command_line(comparison),
        "methods": methods(comparison),
    }
    return page | {"contents": [(name, text) for name, text in _CONTENTS.items() if page[name]]}


def choices(comparison: Comparison) -> dict[str, Any]:
    """Return what a reader of the page chooses from: other metrics, runs to compare with the chosen one, and other questions.

    Empty without a ranking of runs.
    """
    ranking = comparison.ranking
    if ranking is None or ranking.over:
        return {
            "chosen": None,
            "rival": None,
            "metrics": [],
            "pairs": [],
            "curves": [],
            "questions": [],
        }
    numbers = run_numbers(comparison)
    say = say_of(comparison)
    first = rival(ranking)
    tables = other_metrics(comparison)
    others = [
        (run, confusions_with(ranking, run, say))
        for run in ranking.runs
        if run is not ranking.foremost
    ]
    return {
        "chosen": numbers[ranking.foremost.name],
        "rival": None if first is None else numbers[first.name],
        "metrics": tables,
        "note_on_metrics": note_on_metrics(comparison, tables),
        "pairs": [pair | {"number": numbers[run.name]} for run, pair in others if pair is not None],
        "curves": curves(ranking, numbers),
        "questions": reproduce.other_questions(comparison, ranking),
    }


def run_numbers(comparison: Comparison) -> dict[str, int]:
    """A number for each run or model by its name, the ranked ones first; it links what belongs together on the page."""
    return {name: number for number, name in enumerate(short_names(comparison))}


def facts(comparison: Comparison) -> list[str]:
    """The compared runs, their data and the criterion, in a few words each."""
    ranking, out = comparison.ranking, []
    if len(comparison.rankings) > 1:
        out.append(
            f"{fmt.counted(len(comparison.runs), 'run')} in {len(comparison.rankings)} rankings"
        )
    elif ranking is not None:
        out.append(heading(comparison, 0))
    if ranking is not None:
        evaluation = ranking.evaluation
        out.append(
            fmt.counted(
                len(evaluation.labels), "class" if isinstance(evaluation, Evaluation) else "code"
            )
        )
        if evaluation.grouping is not None:
            groupings = {dict(run.evaluation.design).get("grouping") for run in comparison.runs}
            steps = ", then ".join(quoted(step.name) for step in evaluation.grouping.steps)
            out.append(f"grouped by {steps}" if len(groupings) < 2 else "groupings differ")
        if (positive := shared_positive(comparison)) is not None:
            out.append(f"positive group {quoted(positive)}")
    out += filter(None, [judged_at(comparison)])
    out.append(
        f"ranked by {criterion_title(comparison.criterion)} ({direction(comparison.criterion)})"
    )
    out.append(f"{fmt.level(comparison.confidence_level)} level")
    if ranking is not None and not ranking.over and len(ranking.runs) > 1:
        paired = sum(not run.unpaired for run in ranking.runs)
        some = f"{paired} of {len(ranking.runs)}" if paired else "not"
        out.append("compared row by row" if ranking.paired else f"{some} compared row by row")
    return out


def warnings(comparison: Comparison) -> list[dict[str, Any]]:
    """Warnings of the ranked evaluations and the runs that have them; the most frequent first."""
    say, runs = say_of(comparison), comparison.runs
    pairs = ((say(run.name), warning) for run in runs for warning in run.evaluation.warnings)
    return [
        {"text": text, "runs": _who(names, len(runs))}
        for text, names in fmt.by_reason(pairs).items()
    ]


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


def methods(comparison: Comparison) -> list[str]:
    """Short notes on how the numbers came about, with sources."""
    grouping = None if comparison.ranking is None else comparison.ranking.evaluation.grouping
    notes = [] if grouping is None else [f"The grouping: {fmt.short(grouping.describe(), 600)}."]
    costs = {
        run.evaluation.costs for run in comparison.runs if isinstance(run.evaluation, Evaluation)
    }
    notes += [
        f"The costs: {fmt.short(one.describe(), 600)}."
        for one in costs
        if one is not None and len(costs) == 1
    ]
    return [*notes, *_methods(comparison)]


def _methods(comparison: Comparison) -> list[str]:
    at = fmt.level(comparison.confidence_level)
    if comparison.repeated is not None:
        return [
            *(note for note in comparison.repeated.result.notes if note not in comparison.notes),
            f"{explained(comparison.confidence_level, 'model')} p is that of the difference from the leader (Holm). "
            f"Intervals of the differences hold for all pairs at once at {at} (Bonferroni); they are wider, and may "
            "include 0.",
            "Sources: Nadeau and Bengio (2003) for folds; Holm (1979).",
        ]
    notes = [
        f"{explained(comparison.confidence_level)} p is that of multiple comparisons with the best (Hsu 1984, 1996; "
        "Edwards and Hsu 1983) in two steps: runs that are out of the question do not count as rivals (Romano, Shaikh "
        "and Wolf 2014). Few rows or clusters count by Student's distribution. Runs that may be the best are not shown "
        "to be equal.",
    ]
    if comparison.criterion.pareto:
        notes = [
            "A run is dominated if another run is at least as good in every metric and better in one. The fronts "
            "follow from the values alone. Differences are not tested."
        ]
    else:
        notes += [
            f"The {at} intervals from the best other run hold together (Hsu 1984). For the leader it is the lead over "
            "the next run, for all others the difference from the leader. The JSON file also has the p-values of each "
            "pair, by max-T (Westfall and Young 1993) and by Holm (1979).",
            "The interval of the leader allows for its selection: its end on the side of the worse values is "
            "simultaneous over all runs, including those not read because of their logged values (after Fuentes, "
            "Casella and Wells 2018). For a chosen run that does not lead, both ends are simultaneous.",
            _margin(comparison),
        ]
    if comparison.criterion.direction == "nearest zero" and comparison.criterion.single:
        notes.append("Differences are differences of the distances from zero.")
    notes.append(
        "Where the predictions by row were kept, errors come from the influence of each test row, so that what the "
        "runs have in common cancels. The intervals of single values must not be compared by their overlap."
    )
    return notes


def _margin(comparison: Comparison) -> str:
    """The rule by which a tie-breaker may choose."""
    margin = comparison.how.get("margin")
    rule = (
        "within one standard error of the paired difference from the leader (Breiman, Friedman, Olshen and Stone 1984)"
        if margin is None
        else f"shown not to be worse than the best by more than {margin:g}: its interval from the best other run ends "
        f"at {margin:g} or less on the worse side (non-inferiority)"
    )
    return f"A tie-breaker chooses only among runs that may be the best and are {rule}."


def _who(names: list[str], of: int) -> str:
    if len(names) == of:
        return "the run" if of == 1 else f"all {of} runs"
    return some_of(names, 6)


def _reading(comparison: Comparison) -> str:
    at, several = fmt.level(comparison.confidence_level), len(comparison.standings) > 1
    if comparison.criterion.pareto:
        return f"Brackets are {at} intervals; # is the number of the front. The runs of front 1 are not dominated."
    most = max(
        (sum(run.picked for run in ranking.runs) for ranking in comparison.rankings), default=0
    )
    picked = f" {SELECTED[most > 1]}." if most else ""  # the interval that allows for selection
    reading = (
        f"Brackets are {'simultaneous ' if comparison.repeated else ''}{at} intervals.{picked}"
    )
    if not several:
        return reading
    return f"{reading} {explained(comparison.confidence_level, comparison.noun)}"


# -- tables ----------------------------------------------------------------------------------------------------


def ranking_tables(comparison: Comparison) -> list[Table]:
    """The table of each ranking, with its name and how to read it."""
    tables = []
    for place, ranking in enumerate(comparison.rankings):
        columns = shown_columns(comparison, ranking, at_shares(comparison))
        shown = ranking_table(ranking, columns)
        shown.name = heading(comparison, place) if len(comparison.rankings) > 1 else "Ranking"
        shown.reading = _reading(comparison)
        shown.beside = beside_rows(comparison, ranking, columns)
        tables.append(shown)
    return tables


def _title(comparison: Comparison) -> str:
    """The title of a review, with the shares of the classes that it assumes where these are not the rows' own."""
    text = f"Review by {criterion_title(comparison.criterion, shared_positive(comparison))}"
    assumed = assumed_shares(comparison)
    return f"{text}, {assumed[0].lower()}{assumed[1:]}" if assumed else text


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
    if ranking is None or ranking.over:
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
    title, positive = "Probabilities", quoted(ranking.evaluation.positive)
    if section:
        subject = _OF_WHAT[section].format(positive=positive)
        title = (
            f"Are the probabilities{f' of {positive}' if section == 'calibration' else ''} right?"
        )
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
    value, ends = evaluation.metrics.get(name, math.nan), evaluation.intervals.get(name)
    if math.isnan(value):
        return Cell("–", title=evaluation.undefined.get(name, ""))
    if name.endswith("pvalue"):
        return Cell(fmt.p_text(value), value)
    entry = evaluation.catalog.lookup(name)
    interval = fmt.metric_interval(entry, value, ends) if with_interval else None
    return Cell(fmt.metric_value(entry, value, ends), value, interval)


def _segment_table(comparison: Comparison, pairs: Sequence[SegmentDifferences]) -> Table:
    """Segments by runs, of a column and metric: the leader's value, and its differences from the others."""
    say, first, several = say_of(comparison), pairs[0], len(pairs)
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
    heads = {"segment": "Segment", "rows": "Rows", "value": f"{say(first.first)}, the leader"}
    for number, pair in enumerate(pairs):
        heads[f"value_{number}"] = say(pair.second)
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
    reading = _segment_reading(pairs, len(rows), say)
    if len(pairs) < several:
        reading += f" {len(pairs)} of the {several} runs that were compared; the JSON file has all."
    return Table(heads, rows, ("segment",), name, reading)


def _segment_difference(pair: SegmentDifferences, place: int) -> Cell:
    """The difference of two runs in a segment."""
    difference = float(pair.differences[place])
    ends = (float(pair.low[place]), float(pair.high[place]))
    text = fmt.signed(difference, ends).split(" [")[0]
    return Cell(text, difference, fmt.interval(difference, ends) or pair.reasons[place])


def _segment_reading(pairs: Sequence[SegmentDifferences], n_shown: int, say: Say) -> str:
    first = pairs[0]
    text = f"The worst segments of {say(first.first)} first"
    text += (
        "."
        if n_shown == len(first.segments)
        else f", {n_shown} of {len(first.segments)}; the JSON file has all."
    )
    for mark in sorted({"better" if pair.gain < 0 else "worse" for pair in pairs if pair.contrary}):
        other = "worse" if mark == "better" else "better"
        text += f" “{mark}”: the leader is shown to be {mark} there than a run that it is {other} than overall."
    return " ".join(filter(None, (text, segment_test(pairs, say), segment_reading(pairs, say))))


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


def confusions(comparison: Comparison) -> dict[str, Any] | None:
    """The confusions that the chosen run wins and loses against its rival, the clearest first."""
    ranking = comparison.ranking
    other = None if ranking is None or ranking.over else rival(ranking)
    if ranking is None or other is None:
        return None
    return confusions_with(ranking, other, say_of(comparison))


def confusions_with(ranking: Ranking, other: Ranked, say: Say) -> dict[str, Any] | None:
    """The same against any other run; None for sets of codes."""
    changes = changes_of(ranking, other)
    if changes is None:
        return None
    chosen = ranking.foremost
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
        "chosen": say(chosen.name),
        "rival": say(other.name),
        "sentences": _confusion_words(changes, clear, say(chosen.name), say(other.name)),
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
    return {
        "actual": one_line(changes.labels[i]),
        "predicted": "correct" if i == j else one_line(changes.labels[j]),
        "points": Cell(fmt.fixed(difference, 1, 2, sign=True), 100 * difference),
        "counts": Cell(fmt.minus(f"{changes.counts[at]:+g}"), float(changes.counts[at])),
        "only_chosen": Cell(_number(changes.only_second[at]), float(changes.only_second[at])),
        "only_rival": Cell(_number(changes.only_first[at]), float(changes.only_first[at])),
        "p": Cell(fmt.p_text(float(changes.adjusted[at])), float(changes.adjusted[at])),
        "status": ("won" if gain > 0 else "lost") if clear else "unclear",
        "verdict": ("better" if gain > 0 else "worse") if clear else "not significant",
    }


def _number(value: float) -> str:
    return "–" if math.isnan(value) else fmt.count(float(value))
