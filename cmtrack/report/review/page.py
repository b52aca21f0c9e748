"""The review page: what it shows, as plain values for the template and for Markdown; its tables cell by cell."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
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
from cmtrack.report.review.bars import draw_columns
from cmtrack.report.review.cells import (
    DIFFERENCE,
    RANK,
    RUN,
    STATUS,
    Cell,
    Table,
    cell,
    name_cell,
    p_cell,
    ranking_table,
    shorten_names,
    value_cell,
    with_intervals,
)
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
    STANDINGS,
    Say,
    assumed_shares,
    at_shares,
    behind_words,
    criterion_title,
    direction,
    explained,
    judged_at,
    marked,
    say_of,
    shared_positive,
    short_names,
    standing,
    standing_word,
)
from cmtrack.report.review.record import record
from cmtrack.report.review.rows import behind, flips
from cmtrack.report.review.shown import MAX_RUNS, changes_of, judged_section, of_classes, rival
from cmtrack.report.rows import NOTHING_JOINED, Joined, opened
from cmtrack.untrusted import one_line

if TYPE_CHECKING:
    from cmtrack.report.figures import Picture

_NOTHING = (math.nan, math.nan)
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
    drawn = any(shown["scales"] for shown in tables)  # bars, which show what the figure does
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
    at = at_shares(comparison)
    tables = []
    for place, ranking in enumerate(comparison.rankings):
        shown = table(ranking, at)
        shown["name"] = heading(comparison, place) if len(comparison.rankings) > 1 else "Ranking"
        shown["reading"] = _reading(comparison)
        shown["beside"] = beside_rows(comparison, ranking, shown["heads"])
        tables.append(shown)
    return tables


def table(ranking: Ranking, at: str = "") -> Table:
    """Every run or model of a ranking, best first, with drawings of the intervals in their cells.

    ``at``: the class shares that the metrics are of, as :func:`at_shares` has them.
    """
    columns = _columns(ranking, at)
    entries = ranking.standings
    rows: list[dict[str, Any]] = [
        {
            "cells": {key: make(entry) for key, (_, make) in columns.items()},
            "status": marked(standing(entry, ranking), entry.tied),
            "chosen": False,
            "rest": False,
        }
        for entry in entries
    ]
    heads = {key: head for key, (head, _) in columns.items()}
    scales = draw_columns(
        [row["cells"] for row in rows], [entry.tied for entry in entries], DIFFERENCE
    )
    return ranking_table(heads, rows, scales, behind=behind_words(ranking))


def _title(comparison: Comparison) -> str:
    """The title of a review, with the shares of the classes that it assumes where these are not the rows' own."""
    text = f"Review by {criterion_title(comparison.criterion, shared_positive(comparison))}"
    assumed = assumed_shares(comparison)
    return f"{text}, {assumed[0].lower()}{assumed[1:]}" if assumed else text


def _columns(ranking: Ranking, at: str) -> dict[str, tuple[str, Callable[[Ranked], Cell]]]:
    """The head of each column and the cell of an entry, by the column's key; the key of a metric is its name."""
    criterion = ranking.criterion
    titles = {
        name: fmt.metric_title(name, brief=True, catalog=criterion.catalog) + at
        for name in criterion.metrics
    }
    columns: dict[str, tuple[str, Callable[[Ranked], Cell]]] = {
        RANK: ("#", lambda one: cell(str(one.rank), one.rank)),
        RUN: (
            fmt.capital(ranking.noun),
            lambda one: name_cell(one.name, "" if ranking.over else one.run_id),
        ),
        STATUS: ("Status", lambda one: _standing(one, ranking)),
    }
    if ranking.over:
        (name,) = criterion.metrics
        columns |= {
            name: (f"Mean {titles[name]}", lambda one: cell(fmt.number(one.value), one.value)),
            "sd": ("sd", lambda one: cell(fmt.number(one.sd), one.sd)),
            "runs": ("Runs", lambda one: cell(str(len(one.runs)), float(len(one.runs)))),
        }
    else:
        columns |= {
            name: (fmt.capital(title), partial(_value, name=name, ranks=criterion.single))
            for name, title in titles.items()
        }
    if len(ranking.standings) > 1 and criterion.single:
        head = "From the leader" if ranking.over else "From the best other run"
        columns[DIFFERENCE] = (head, lambda one: _difference(one, ranking))
        columns["p"] = ("p", lambda one: p_cell(one.p_set, one is ranking.leader))
    if any(one.gates for one in ranking.standings):
        columns["gates"] = ("Gates", _passed)
    return columns


def _standing(one: Ranked, ranking: Ranking) -> Cell:
    status = standing(one, ranking)
    return cell(standing_word(status, ranking, one.tied), [*STANDINGS].index(status))


def _value(one: Ranked, name: str, ranks: bool) -> Cell:
    """A metric of a run; of the one that is ranked by, the interval to show."""
    ends = one.interval if ranks else one.evaluation.intervals.get(name, _NOTHING)
    return value_cell(one.evaluation.metrics[name], ends)


def _difference(one: Ranked, ranking: Ranking) -> Cell:
    value, ends = one.difference, (one.difference_low, one.difference_high)
    text = (
        "leader"
        if ranking.over and one is ranking.leader
        else fmt.signed(value, ends).split(" [")[0]
    )
    return cell(text, value, fmt.interval(value, ends) or one.reason) | {"ends": (value, *ends)}


def _passed(one: Ranked) -> Cell:
    passed = sum(result.passed for result in one.gates)
    return cell(f"{passed} of {len(one.gates)}", float(passed))


def beside_rows(
    comparison: Comparison, ranking: Ranking, heads: Iterable[str]
) -> list[dict[str, Any]]:
    """The rows below those of the ranked runs: the constant answers, and runs without a value."""
    rows = []
    for one in beside(comparison, ranking):
        cells = {key: cell(one.values.get(key, "")) for key in heads}
        cells |= {RUN: name_cell(one.name, one.run_id), STATUS: cell(one.standing)}
        rows.append({"cells": cells, "status": "beside", "reason": one.reason})
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
    rows: list[dict[str, Any]] = []
    for run, evaluation in shown:
        verdict = JUDGES[section](evaluation) if section else None
        word = (
            [cell(verdict.word if verdict else "–", title=verdict.sentence if verdict else "")]
            if section
            else []
        )
        cells = [
            _of_probabilities(evaluation, name, name not in _LOSSES or not section)
            for name in names
        ]
        rows.append(
            {
                "cells": [name_cell(run.name, run.run_id), *word, *cells],
                "status": standing(run, ranking),
            }
        )
    shorten_names([row["cells"][0] for row in rows])
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
    losses = {name: fmt.capital(fmt.metric_title(name, brief=True)) for name in _LOSSES}
    heads = ["Run", *(["Verdict"] if section else [])]
    heads += [losses.get(name) or _HEADS[name.split("/")[1]] for name in names]
    return with_intervals(heads, rows, name=title, reading=reading, words=bool(section))


def _has(evaluation: Evaluation, names: Sequence[str]) -> bool:
    return any(
        name in evaluation.infinite or math.isfinite(evaluation.metrics.get(name, math.nan))
        for name in names
    )


def _of_probabilities(evaluation: Evaluation, name: str, with_interval: bool) -> Cell:
    """A loss or a number of the calibration; infinite where a probability of 0 came true."""
    if name in evaluation.infinite:
        return cell(fmt.missing_word(evaluation, name), title=evaluation.undefined[name])
    value, ends = evaluation.metrics.get(name, math.nan), evaluation.intervals.get(name)
    if math.isnan(value):
        return cell("–", title=evaluation.undefined.get(name, ""))
    if name.endswith("pvalue"):
        return cell(fmt.p_text(value), value)
    entry = evaluation.catalog.lookup(name)
    beside = fmt.metric_interval(entry, value, ends) if with_interval else None
    return cell(fmt.metric_value(entry, value, ends), value, beside)


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
    places = [{text: k for k, text in enumerate(pair.segments)} for pair in pairs]
    rows: list[dict[str, Any]] = []
    for k in order:
        text, n, value = first.segments[k], float(first.rows[k]), float(first.first_values[k])
        cells = [cell(text, text), cell(fmt.count(n), n), cell(fmt.number(value), value)]
        for pair, place in zip(pairs, places, strict=True):
            at = place[text]
            columns = (pair.second_values, pair.differences, pair.low, pair.high)
            theirs, gap, low, high = (float(column[at]) for column in columns)
            shown = fmt.signed(gap, (low, high)).split(" [")[0]
            beside = fmt.interval(gap, (low, high)) or pair.reasons[at]
            cells += [cell(fmt.number(theirs), theirs), cell(shown, gap, beside)]
        rows.append({"cells": cells, "mark": marks.get(text, "")})
    heads = ["Segment", "Rows", f"{say(first.first)}, the leader"]
    heads += [head for pair in pairs for head in (say(pair.second), "Leader less it")]
    name, reading = (
        f"By segment: {title} by {quoted(first.column)}",
        _segment_reading(pairs, len(rows), say),
    )
    if len(pairs) < several:
        reading += f" {len(pairs)} of the {several} runs that were compared; the JSON file has all."
    return with_intervals(heads, rows, name=name, reading=reading)


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
    rows: list[dict[str, Any]] = []
    for name, run_id, results in judged:
        by_gate = {result.gate.text: result for result in results}
        cells = [_gate(by_gate.get(gate.text)) for gate in comparison.gates]
        rows.append({"name": name_cell(name, run_id), "cells": cells})
    shorten_names([row["name"] for row in rows])
    return {"heads": [gate.text for gate in comparison.gates], "rows": rows}


def _gate(result: GateResult | None) -> dict[str, Any]:
    if result is None:
        return {"text": "not looked at", "sort": "", "passed": None}
    sort = result.value if math.isfinite(result.value) else ""
    return {"text": result.found, "sort": sort, "passed": result.passed}


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
        "points": cell(fmt.fixed(difference, 1, 2, sign=True), 100 * difference),
        "counts": cell(fmt.minus(f"{changes.counts[at]:+g}"), float(changes.counts[at])),
        "only_chosen": cell(_number(changes.only_second[at]), float(changes.only_second[at])),
        "only_rival": cell(_number(changes.only_first[at]), float(changes.only_first[at])),
        "p": cell(fmt.p_text(float(changes.adjusted[at])), float(changes.adjusted[at])),
        "status": ("won" if gain > 0 else "lost") if clear else "unclear",
        "verdict": ("better" if gain > 0 else "worse") if clear else "not significant",
    }


def _number(value: float) -> str:
    return "–" if math.isnan(value) else fmt.count(float(value))
