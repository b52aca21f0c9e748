"""Rows that only the recommended run or only its rival predicts correctly, or no run does."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from cmtrack.comparison.comparability import in_order_of, why_unpaired
from cmtrack.comparison.ranking import Ranked, Ranking
from cmtrack.evaluation import Evaluation
from cmtrack.evaluation.rows import TOTAL
from cmtrack.report import formatting as fmt
from cmtrack.report.narrative import n_mismatches, other_within
from cmtrack.report.review.cells import Cell, Row, Table
from cmtrack.report.review.review import Review
from cmtrack.report.rows import (
    MAX_CELLS,
    NOTHING_JOINED,
    NUMBERED,
    Joined,
    behind_confusions,
    has_probabilities,
    rows_table,
    shows_ids,
)
from cmtrack.rows import Flips
from cmtrack.statistics.predictions import Predictions

LISTED = 5
MAX_CLASSES = 12
MAX_OTHERS = 7
"""Maximum number of runs, in addition to the rival, for which the page lists rows."""


def flips(
    review: Review, rows: bool = True, joined: Joined = NOTHING_JOINED
) -> dict[str, Any] | None:
    """Return the rows that the recommended run breaks and fixes, compared with its rival.

    The result is None if the two runs are not paired.

    Parameters
    ----------
    review : Review
    rows : bool, default True
        Whether to list individual rows.
    joined : Joined
        Columns of the user's table to show next to the rows. The columns apply to both runs,
        because paired runs have the same rows in the same order.
    """
    ranking = review.run_ranking
    other = review.rival
    if ranking is None or other is None or not _paired(other, ranking.foremost):
        return None
    chosen = ranking.foremost
    whole = _flips(review, other, chosen)
    table = None
    by_class = ""
    if not _alike(whole):
        table, by_class = _by_class(review, other, chosen)
    sentences = [_whole(review, whole, other, chosen), _missed(review, ranking), by_class]
    names = (review.say(other.name), review.say(chosen.name))
    return {
        "title": f"Rows: {names[1]} against {names[0]}",
        "chosen": names[1],
        "rival": names[0],
        "run": other.name,
        "sentences": list(filter(None, sentences)),
        "classes": table,
        "tables": _tables(review, other, chosen, joined) if rows else [],
        "others": _others(review, ranking, joined) if rows else [],
    }


def _flips(review: Review, other: Ranked, chosen: Ranked, by: str | None = None) -> Flips:
    return review.comparison.flips(other.run_id or other.name, chosen.run_id or chosen.name, by)


def _others(review: Review, ranking: Ranking, joined: Joined) -> list[dict[str, Any]]:
    """Return a sentence and tables of rows for each of the best runs except the rival."""
    chosen = ranking.foremost
    others = [run for run in ranking.runs if run is not review.rival and _paired(run, chosen)]
    return [
        {
            "run": other.name,
            "sentence": _whole(review, _flips(review, other, chosen), other, chosen),
            # The reverse lists of all runs would take the place of rows behind confusions.
            "tables": _tables(review, other, chosen, joined)[:1],
        }
        for other in others[:MAX_OTHERS]
    ]


def behind(review: Review, shown: dict[str, Any] | None, joined: Joined) -> dict[str, Any] | None:
    """Return tables of the rows in the chosen run's confusions, up to the page's limit."""
    ranking = review.run_ranking
    if ranking is None:
        return None
    pairs = [shown, *shown["others"]] if shown else []
    most = MAX_CELLS - sum(len(pair["tables"]) for pair in pairs)
    cells = behind_confusions(ranking.foremost.evaluation, most, joined)
    return None if cells is None else cells | {"of": review.say(ranking.foremost.name)}


def _paired(other: Ranked, chosen: Ranked) -> bool:
    """Return whether two runs can be compared row by row."""
    theirs = other.evaluation
    ours = chosen.evaluation
    if not isinstance(theirs, Evaluation) or not isinstance(ours, Evaluation):
        return False
    if not isinstance(theirs.rows, Predictions) or not isinstance(ours.rows, Predictions):
        return False
    return other.name != chosen.name and why_unpaired(theirs, in_order_of(theirs, ours)) is None


def _missed(review: Review, ranking: Ranking) -> str:
    """Return the sentence on rows that no run predicts correctly, ranked or not.

    The sentence is empty if no two runs can be compared row by row.
    """
    try:
        with warnings.catch_warnings():
            # Another part of the page names the runs that were evaluated on different rows.
            warnings.simplefilter("ignore", UserWarning)
            missed = review.comparison.missed()
    except ValueError:
        return ""
    runs = "Both runs" if len(missed.runs) == 2 else f"All {len(missed.runs)} runs"
    ranked = {run.name for run in ranking.runs}
    unranked = [review.say(name) for name in missed.runs if name not in ranked]
    if unranked:
        runs += f", including {fmt.join_names(unranked)},"
    if not missed.all:
        return f"No row is misclassified by {runs[0].lower()}{runs[1:]}."
    sentence = f"{runs} predict the wrong {review.right_side} in {fmt.counted(missed.all, 'row')}."
    evaluations = [run.evaluation for run in ranking.runs if isinstance(run.evaluation, Evaluation)]
    if review.right_side == "class" or not any(map(n_mismatches, evaluations)):
        return sentence
    other = other_within(evaluations[0], evaluations[0].reduced[-1].name)
    return f"{sentence} Here, {other} within the correct group also counts as wrong."


def _alike(whole: Flips) -> bool:
    """Return whether both runs predict the same rows correctly."""
    return not whole.rates["broken"][0][0] and not whole.rates["fixed"][0][0]


def _whole(review: Review, whole: Flips, other: Ranked, chosen: Ranked) -> str:
    side = review.right_side
    theirs = review.say(other.name)
    ours = review.say(chosen.name)
    if _alike(whole):
        return f"{ours} and {theirs} predict the correct {side} in the same rows."
    return (
        f"In {_share(whole, 'fixed', 0)} of {fmt.counted(float(whole.n[0]), 'row')}, only {ours} "
        f"predicts the correct {side}. In {_share(whole, 'broken', 0)}, only {theirs} does "
        f"({fmt.p_equals(float(whole.alone[0]))})."
    )


def _share(flips: Flips, name: str, place: int) -> str:
    """Return the share of broken or fixed rows in words, with its interval."""
    value, low, high = (float(column[place]) for column in flips.rates[name])
    return fmt.percent_with_interval(value, (low, high))


def _by_class(review: Review, other: Ranked, chosen: Ranked) -> tuple[Table | None, str]:
    """Return a table that compares the runs by class, and a sentence on the classes.

    The table is None if the runs do not differ significantly in any class.
    """
    by_class = _flips(review, other, chosen, "class")
    theirs = review.say(other.name)
    ours = review.say(chosen.name)
    classes = np.flatnonzero(by_class.n > 0)
    if len(classes) < 2:
        return None, ""
    pvalues = np.asarray(by_class.pvalues)[classes]
    n_clear = int((pvalues <= 1 - by_class.confidence_level).sum())
    runs = f"{ours} and {theirs}"
    if not n_clear:
        return None, f"{runs} do not differ significantly in any of the {len(classes)} classes."
    differences = np.subtract(by_class.rates["broken"][0], by_class.rates["fixed"][0])[classes]
    # Sort by p-value. Among classes with the same p-value, the largest difference comes first.
    order = np.lexsort((-np.abs(differences), pvalues))
    rows = [_class_row(by_class, int(k)) for k in classes[order][:MAX_CLASSES]]
    reading = (
        f"Brackets show exact {fmt.level(by_class.confidence_level)} intervals that hold for all "
        "classes together. p tests whether both numbers are equal, adjusted for all classes (Holm)."
    )
    if len(classes) > len(rows):
        reading += f" The table shows {len(rows)} of {len(classes)} classes, smallest p first."
    heads = {
        "class": "Class",
        "rows": "Rows",
        "fixed": f"Only {ours} is correct",
        "fixed_share": "Share",
        "broken": f"Only {theirs} is correct",
        "broken_share": "Share",
        "p": "p",
    }
    sentence = f"{runs} differ significantly in {n_clear} of {len(classes)} classes."
    return Table(heads, rows, ("class",), reading=reading), sentence


def _class_row(by_class: Flips, k: int) -> Row:
    """Return the table row of a class."""
    n = float(by_class.n[k])
    p = float(by_class.pvalues[k])
    cells = {"class": Cell(fmt.short(by_class.parts[k])), "rows": Cell(fmt.count(n), n)}
    for name in ("fixed", "broken"):
        value = float(by_class.rates[name][0][k])
        # The interval is a separate part of the cell.
        share, bracket, ends = _share(by_class, name, k).partition(" [")
        cells[name] = Cell(fmt.count(round(value * n, 1)), value * n)
        cells[f"{name}_share"] = Cell(share, value, f"{bracket}{ends}".strip())
    cells["p"] = Cell(fmt.p_text(p), p)
    return Row(cells)


def _tables(review: Review, other: Ranked, chosen: Ranked, joined: Joined) -> list[dict[str, Any]]:
    """Return a table for each of two runs: the rows that only this run predicts correctly."""
    pairs = ((other, chosen), (chosen, other))
    tables = (_table(review, run, rival, joined) for run, rival in pairs)
    return [table for table in tables if table is not None]


def _table(review: Review, run: Ranked, rival: Ranked, joined: Joined) -> dict[str, Any] | None:
    """Return a table of rows that only a run predicts correctly, not its rival.

    The result is None if there is no such row.
    """
    frame = review.comparison.rows(run.run_id or run.name, rival.run_id or rival.name, "broken")
    total = int(frame.attrs[TOTAL])
    if not total:
        return None
    rows_of_runs = [one.evaluation.rows for one in (run, rival)]
    is_scored = all(
        isinstance(rows, Predictions) and has_probabilities(rows) for rows in rows_of_runs
    )
    heads = {"row": "Row"}
    if isinstance(rows_of_runs[0], Predictions) and shows_ids(rows_of_runs[0]):
        heads["id"] = "Id"
    heads["actual"] = "Actual"
    probability_columns = []
    for one in (run, rival):
        heads[f"predicted_{one.name}"] = f"{review.say(one.name)} predicts"
        if is_scored:
            name = f"probability_{one.name}"
            probability_columns.append(name)
            heads[name] = "with probability"
    shown = min(total, LISTED)
    first = "" if shown == total else f" (the first {shown})"
    reading = NUMBERED
    if is_scored and shown > 1:
        reading = (
            "Rows are sorted by how much less probability the other run gives the actual class. "
            f"{NUMBERED}"
        )
    rows = fmt.counted(total, "row")
    table = rows_table(frame.head(LISTED), heads, probability_columns, joined)
    return table | {
        "title": f"{rows} in which only {review.say(run.name)} predicts the correct "
        f"{review.right_side}{first}",
        "reading": reading,
    }
