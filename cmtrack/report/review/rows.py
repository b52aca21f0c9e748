"""Rows of the run to take and its rival: broken and fixed ones, and what all runs miss."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from cmtrack.comparison.comparability import in_order_of, why_unpaired
from cmtrack.comparison.ranking import Ranked, Ranking
from cmtrack.comparison.result import Comparison
from cmtrack.comparison.rows import step_of
from cmtrack.evaluation import Evaluation
from cmtrack.evaluation.rows import TOTAL
from cmtrack.report import formatting as fmt
from cmtrack.report.review.cells import Cell, Row, Table
from cmtrack.report.review.phrases import Say, say_of
from cmtrack.report.review.shown import rival
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

LISTED = 10
MAX_CLASSES = 12
MAX_OTHERS = 7
"""Runs beside the rival against which rows are listed."""


def flips(
    comparison: Comparison, rows: bool = True, joined: Joined = NOTHING_JOINED
) -> dict[str, Any] | None:
    """The rows that the run to take breaks and fixes against its rival; None where they are not paired.

    Parameters
    ----------
    comparison : Comparison
    rows : bool, default True
        Whether single rows are listed.
    joined : Joined
        What stands beside them; paired runs have the same rows in one order.
    """
    ranking = comparison.ranking
    other = None if ranking is None or ranking.over else rival(ranking)
    if ranking is None or other is None or not _paired(other, ranking.foremost):
        return None
    say, keys = say_of(comparison), [run.run_id or run.name for run in (other, ranking.foremost)]
    names = say(other.name), say(ranking.foremost.name)
    whole = comparison.flips(keys[0], keys[1])
    table, by_class = (
        (None, "")
        if _alike(whole)
        else _by_class(comparison.flips(keys[0], keys[1], "class"), *names)
    )
    sentences = [_whole(whole, *names, right_side(comparison)), _missed(comparison), by_class]
    return {
        "title": f"Rows: {names[1]} against {names[0]}",
        "chosen": names[1],
        "rival": names[0],
        "run": other.name,
        "sentences": list(filter(None, sentences)),
        "classes": table,
        "broken": _broken(comparison, other, ranking.foremost, say, joined) if rows else None,
        "others": _others(comparison, ranking, other, say, joined) if rows else [],
    }


def _others(
    comparison: Comparison, ranking: Ranking, rival: Ranked, say: Say, joined: Joined
) -> list[dict[str, Any]]:
    """The same in brief against other runs than the rival, the first of the ranking."""
    chosen, out = ranking.foremost, list[dict[str, Any]]()
    for other in ranking.runs:
        if len(out) < MAX_OTHERS and other is not rival and _paired(other, chosen):
            whole = comparison.flips(other.run_id or other.name, chosen.run_id or chosen.name)
            sentence = _whole(whole, say(other.name), say(chosen.name), right_side(comparison))
            broken = _broken(comparison, other, chosen, say, joined)
            out.append({"run": other.name, "sentence": sentence, "broken": broken})
    return out


def behind(
    comparison: Comparison, shown: dict[str, Any] | None, joined: Joined
) -> dict[str, Any] | None:
    """Rows behind cells of the matrix of the run to take: tables for what those of pairs leave of the page's limit."""
    ranking = comparison.ranking
    if ranking is None or ranking.over:
        return None
    most = MAX_CELLS - (1 + len(shown["others"]) if shown else 0)
    cells = behind_confusions(ranking.foremost.evaluation, most, joined)
    return None if cells is None else cells | {"of": say_of(comparison)(ranking.foremost.name)}


def _paired(other: Ranked, chosen: Ranked) -> bool:
    one, two = other.evaluation, chosen.evaluation
    if (
        not (isinstance(one, Evaluation) and isinstance(two, Evaluation))
        or other.name == chosen.name
    ):
        return False
    held = isinstance(one.rows, Predictions) and isinstance(two.rows, Predictions)
    return held and why_unpaired(one, in_order_of(one, two)) is None


def _missed(comparison: Comparison) -> str:
    """The number of rows that all runs miss; empty if no two runs can be compared row by row."""
    try:
        with warnings.catch_warnings():
            # another part of the page names runs of other rows
            warnings.simplefilter("ignore", UserWarning)
            return comparison.missed().sentence
    except ValueError:
        return ""


def _alike(whole: Flips) -> bool:
    """True where both get the same rows right."""
    return not whole.rates["broken"][0][0] and not whole.rates["fixed"][0][0]


def right_side(comparison: Comparison) -> str:
    """Return what a right prediction is right about: the class, or the group of the step that ranks."""
    ranking = comparison.ranking
    assert ranking is not None  # the callers have asked
    evaluation = ranking.foremost.evaluation
    assert isinstance(evaluation, Evaluation)  # rows of single labels alone are paired
    return "class" if step_of(comparison, evaluation) is None else "group"


def _whole(whole: Flips, other: str, chosen: str, side: str) -> str:
    if _alike(whole):
        return f"{chosen} and {other} predict the right {side} in the same rows."
    only_other, only_chosen = (_share(whole, name, 0) for name in ("broken", "fixed"))
    return (
        f"Of {fmt.counted(float(whole.n[0]), 'row')} only {chosen} predicts the right {side} in {only_chosen}, "
        f"and only {other} in {only_other} ({fmt.p_equals(float(whole.alone[0]))})."
    )


def _share(flips: Flips, name: str, place: int) -> str:
    value, low, high = (float(column[place]) for column in flips.rates[name])
    return fmt.percent_with_interval(value, (low, high))


def _by_class(flips: Flips, other: str, chosen: str) -> tuple[Table | None, str]:
    """The table of the classes, and a sentence on them; where none is significant the sentence alone."""
    places = [int(k) for k in np.flatnonzero(flips.n > 0)]
    clear = [k for k in places if flips.pvalues[k] <= 1 - flips.confidence_level]
    if len(places) < 2:
        return None, ""
    if not clear:
        return (
            None,
            f"{chosen} and {other} do not differ significantly in any of the {len(places)} classes.",
        )
    places.sort(
        key=lambda k: (
            flips.pvalues[k],
            -abs(flips.rates["broken"][0][k] - flips.rates["fixed"][0][k]),
        )
    )
    rows = []
    for k in places[:MAX_CLASSES]:
        n = float(flips.n[k])
        p = float(flips.pvalues[k])
        cells = {"class": Cell(fmt.short(flips.parts[k])), "rows": Cell(fmt.count(n), n)}
        for name in ("broken", "fixed"):
            value = float(flips.rates[name][0][k])
            share, _, ends = _share(flips, name, k).partition(" [")
            cells[name] = Cell(fmt.count(round(value * n, 1)), value * n)
            cells[f"{name}_share"] = Cell(share, value, f"[{ends}" if ends else "")
        cells["p"] = Cell(fmt.p_text(p), p)
        rows.append(Row(cells))
    reading = (
        f"Brackets are exact {fmt.level(flips.confidence_level)} intervals that hold together; p, of equal numbers, "
        "is adjusted for all classes (Holm)."
    )
    if len(places) > len(rows):
        reading += f" {len(rows)} of {len(places)} classes, those of the smallest p."
    heads = {
        "class": "Class",
        "rows": "Rows",
        "broken": f"Only {other} is right",
        "broken_share": "Share",
        "fixed": f"Only {chosen} is right",
        "fixed_share": "Share",
        "p": "p",
    }
    sentence = (
        f"{chosen} and {other} differ significantly in {len(clear)} of {len(places)} classes."
    )
    return Table(heads, rows, ("class",), reading=reading), sentence


def _broken(
    comparison: Comparison, other: Ranked, chosen: Ranked, say: Say, joined: Joined
) -> dict[str, Any] | None:
    """The surest of the rows that only the rival gets right."""
    frame = comparison.rows(other.run_id or other.name, chosen.run_id or chosen.name, "broken")
    total, heads = int(frame.attrs[TOTAL]), {"row": "Row"}
    if not total:
        return None
    sides = {run: run.evaluation.rows for run in (other, chosen)}
    first, scored = (
        sides[other],
        all(isinstance(s, Predictions) and has_probabilities(s) for s in sides.values()),
    )
    if isinstance(first, Predictions) and shows_ids(first):
        heads["id"] = "Id"
    heads["actual"], scores = "Actual", []
    for run in sides:
        heads[f"predicted_{run.name}"] = f"{say(run.name)} predicts"
        if scored:
            scores.append(f"probability_{run.name}")
            heads[scores[-1]] = "with probability"
    shown = min(total, LISTED)
    most = "" if shown == total else f": the first {shown}"
    title = f"{fmt.counted(total, 'row')} that only {say(other.name)} gets right{most}"
    order = "The probability of the label falls most in the first. " if scored and shown > 1 else ""
    return rows_table(frame.head(LISTED), heads, scores, joined) | {
        "title": title,
        "reading": f"{order}{NUMBERED}",
    }
