"""The tables of a review, cell by cell."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cmtrack.comparison.blocks import RankedModel, RepeatedRanking
from cmtrack.comparison.cell_changes import CellChanges
from cmtrack.comparison.gates import Gate, GateResult
from cmtrack.comparison.ranking import RankedRun, Ranking
from cmtrack.comparison.result import Comparison
from cmtrack.names import quoted
from cmtrack.report import words
from cmtrack.report.review.figures import changes_of, rival
from cmtrack.report.review.standing import STANDINGS, standing
from cmtrack.report.review.titles import metric_title, p_equals, p_text, plain_number, say_of, short_id, signed
from cmtrack.untrusted import one_line

MAX_CELLS = 12

Cell = dict[str, Any]
Table = dict[str, Any]


def cell(text: str, sort: float | str | None = None, beside: str | None = None, title: str = "") -> Cell:
    """One cell; ``beside`` is an interval, in a narrow column of its own."""
    if isinstance(sort, float) and not math.isfinite(sort):
        sort = ""
    return {"text": text, "sort": "" if sort is None else sort, "beside": beside, "title": title}


def name_cell(name: str, run_id: str) -> Cell:
    """A run's name, and the beginning of its id."""
    known = run_id and run_id != name
    return cell(name, name.lower(), title=name) | {
        "id": short_id(run_id) if known else "",
        "run_id": run_id if known else "",
    }


def ranking_table(ranking: Ranking) -> Table:
    """Every run of a ranking, best first."""
    criterion, runs = ranking.criterion, ranking.runs
    heads = ["#", "Run", "Standing"]
    if criterion.single:
        heads += [_head(metric_title(criterion.metrics[0], brief=True))]
    else:
        heads += [_head(metric_title(name, brief=True)) for name in criterion.metrics]
        heads += [] if criterion.pareto else ["Sum"]
    several = len(runs) > 1
    if several:
        if criterion.pareto:
            heads += ["P(on the front)", "p"]
        else:
            heads += ["From the leader", "P(best)", "Ranks", "p"]
    gates = any(run.gates for run in runs)
    if gates:
        heads.append("Gates")
    rows = [_ranked(run, ranking, gates) for run in runs]
    intervals = {place for row in rows for place, c in enumerate(row["cells"]) if c["beside"] is not None}
    return {"heads": heads, "rows": rows, "with_interval": intervals}


def _ranked(run: RankedRun, ranking: Ranking, gates: bool) -> dict[str, Any]:
    criterion = ranking.criterion
    cells = [_value(run, name) for name in criterion.metrics]
    if not criterion.single and not criterion.pareto:
        cells.append(cell(_two(run.value), run.value, f"[{_two(run.low)}, {_two(run.high)}]"))
    if len(ranking.runs) > 1 and criterion.pareto:
        cells += [cell(_chance(run.probability_best), run.probability_best), cell(p_text(run.p_set), run.p_set)]
    elif len(ranking.runs) > 1:
        cells.append(_difference(run, run is ranking.leader, criterion.single))
        cells.append(cell(_chance(run.probability_best), run.probability_best))
        ends = f"{run.rank_low}" if run.rank_low == run.rank_high else f"{run.rank_low}–{run.rank_high}"
        cells.append(cell(ends, run.expected_rank if math.isfinite(run.expected_rank) else run.rank_high))
        leads = run is ranking.leader
        cells.append(cell("–" if leads else p_text(run.p_set), "" if leads else run.p_set))
    if gates:
        passed = sum(result.passed for result in run.gates)
        cells.append(cell(f"{passed} of {len(run.gates)}", float(passed)))
    return _row(run, ranking, name_cell(run.name, run.run_id), cells)


def _row(run: Any, ranking: Ranking | RepeatedRanking, name: Cell, cells: list[Cell]) -> dict[str, Any]:
    said = standing(run, ranking)
    first = [cell(str(run.rank), run.rank), name, cell(said, STANDINGS.index(said))]
    return {"cells": [*first, *cells], "status": said}


def _value(run: RankedRun, name: str) -> Cell:
    value, ends = run.evaluation.metrics[name], run.evaluation.intervals.get(name)
    return cell(words.number(value, ends), value, words.interval(value, ends))


def _difference(run: RankedRun, leads: bool, single: bool) -> Cell:
    if leads:
        return cell("leader", 0.0, "")
    ends = (run.difference_low, run.difference_high)
    if not single:  # in standard errors
        beside = f"[{_two(ends[0])}, {_two(ends[1])}]" if all(map(math.isfinite, ends)) else ""
        return cell(_two(run.difference), run.difference, beside)
    value = signed(run.difference, ends).split(" [")[0]
    return cell(value, run.difference, words.interval(run.difference, ends))


def _two(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")


def _chance(probability: float) -> str:
    if math.isnan(probability):
        return "–"
    return "< 1 %" if probability < 0.005 else f"{100 * probability:.0f} %"


def _head(text: str) -> str:
    return text[:1].upper() + text[1:]


def table(ranking: Ranking | RepeatedRanking) -> Table:
    """Every run, or model, of a ranking, best first."""
    return model_table(ranking) if isinstance(ranking, RepeatedRanking) else ranking_table(ranking)


def model_table(ranking: RepeatedRanking) -> Table:
    """Every model of repeated runs, best first."""
    title = metric_title(ranking.criterion.metrics[0], brief=True)
    ranked = ranking.kind == "datasets"
    heads = ["#", "Model", "Standing", *(["Average rank"] if ranked else []), f"Mean {title}", "s.d.", "Runs"]
    heads += ["From the leader", "p", "P(equivalent)"]
    gates = any(model.gates for model in ranking.models)
    rows = [_model(model, ranking, ranked, gates) for model in ranking.models]
    intervals = {place for row in rows for place, c in enumerate(row["cells"]) if c["beside"] is not None}
    return {"heads": [*heads, *(["Gates"] if gates else [])], "rows": rows, "with_interval": intervals}


def _model(model: RankedModel, ranking: RepeatedRanking, ranked: bool, gates: bool) -> dict[str, Any]:
    leads, ends = model is ranking.leader, (model.difference_low, model.difference_high)
    cells = [cell(f"{model.average_rank:.2f}", model.average_rank)] if ranked else []
    cells += [cell(words.number(model.mean), model.mean), cell(words.number(model.sd), model.sd)]
    cells.append(cell(str(len(model.runs)), float(len(model.runs))))
    gap = signed(model.difference, ends).split(" [")[0]
    cells.append(cell("leader" if leads else gap, model.difference, words.interval(model.difference, ends)))
    cells.append(cell("–" if leads else p_text(model.p_holm), model.p_holm))
    cells.append(cell(_chance(model.equivalent), model.equivalent))
    if gates:
        passed = sum(result.passed for result in model.gates)
        cells.append(cell(f"{passed} of {len(model.gates)}", float(passed)))
    return _row(model, ranking, name_cell(model.name, ""), cells)


def gate_table(comparison: Comparison) -> Table | None:
    """Runs by gates, those that were stopped first; None without gates."""
    if not comparison.gates:
        return None
    judged: list[tuple[str, str, tuple[GateResult, ...]]] = [(s.name, s.run_id, s.gates) for s in comparison.failed]
    judged += [
        (entry.name, "" if isinstance(entry, RankedModel) else entry.run_id, entry.gates)
        for entry in comparison.standings
    ]
    rows = []
    for name, run_id, results in judged:
        found = {result.gate.text: result for result in results}
        rows.append({"name": name_cell(name, run_id), "cells": [_gate(found, gate) for gate in comparison.gates]})
    return {"heads": [gate.text for gate in comparison.gates], "rows": rows}


def _gate(found: dict[str, GateResult], gate: Gate) -> dict[str, Any]:
    result = found.get(gate.text)
    if result is None:
        return {"text": "not looked at", "sort": "", "passed": None}
    shown = result.reason or plain_number(result.value)
    sort = result.value if math.isfinite(result.value) else ""
    return {"text": shown, "sort": sort, "passed": result.passed}


def confusions(comparison: Comparison) -> dict[str, Any] | None:
    """Which confusions the chosen run wins and loses against its rival, the clearest first."""
    ranking = comparison.ranking
    if not isinstance(ranking, Ranking):
        return None
    other, changes = rival(ranking), changes_of(ranking)
    if other is None or changes is None:
        return None
    chosen, say = ranking.foremost, say_of(comparison)
    clear = changes.significant(ranking.confidence_level)
    places = [(int(i), int(j)) for i, j in zip(*np.nonzero(np.nan_to_num(changes.difference)), strict=True)]
    places.sort(key=lambda at: (not clear[at], -abs(changes.difference[at]) * math.sqrt(abs(changes.counts[at]))))
    most = MAX_CELLS if clear.any() else MAX_CELLS // 2
    return {
        "chosen": say(chosen.name),
        "rival": say(other.name),
        "sentences": _confusion_words(changes, clear, say(chosen.name), say(other.name)),
        "rows": [_confusion(changes, at, bool(clear[at])) for at in places[:most]],
        "more": max(0, len(places) - most),
        "paired": changes.paired,
        "what": f"groups of {quoted(changes.step)}" if changes.step else "classes",
    }


def _confusion_words(changes: CellChanges, clear: np.ndarray[Any, Any], chosen: str, other: str) -> list[str]:
    gains, tested = changes.gains(), int(np.isfinite(changes.adjusted).sum())
    won = [(int(i), int(j)) for i, j in zip(*np.nonzero(clear & (gains > 0)), strict=True)]
    lost = [(int(i), int(j)) for i, j in zip(*np.nonzero(clear & (gains < 0)), strict=True)]
    if not tested:
        return [f"{chosen} and {other} have the same confusion matrix."]
    said = []
    for places, verb in ((won, f"better than {other}"), (lost, f"worse than {other}")):
        if places:
            places.sort(key=lambda at: -abs(gains[at]))
            listed = "; ".join(_one(changes, at) for at in places[:3])
            more = f"; and {len(places) - 3} more" if len(places) > 3 else ""
            said.append(f"{chosen} is significantly {verb}: {listed}{more}.")
    if not said:
        if tested == 1:
            return [f"{chosen} and {other} differ in 1 cell, and not significantly."]
        return [f"None of the {tested} cells in which {chosen} and {other} differ does so significantly."]
    return said


def _one(changes: CellChanges, at: tuple[int, int]) -> str:
    i, j = at
    more = "more" if changes.counts[at] > 0 else "fewer"
    n = words.counted(abs(float(changes.counts[at])), f"{more} sample")
    actual, predicted = quoted(changes.labels[i]), quoted(changes.labels[j])
    what = f"of class {actual} correct" if i == j else f"of class {actual} predicted as {predicted}"
    return f"{n} {what} ({p_equals(float(changes.adjusted[at]))})"


def _confusion(changes: CellChanges, at: tuple[int, int], clear: bool) -> dict[str, Any]:
    i, j = at
    gain = float(changes.gains()[at])
    points = 100 * float(changes.difference[at])
    return {
        "actual": one_line(changes.labels[i]),
        "predicted": "correct" if i == j else one_line(changes.labels[j]),
        "points": cell(f"{points:+.1f}".replace("-", "−"), points),
        "counts": cell(f"{changes.counts[at]:+g}".replace("-", "−"), float(changes.counts[at])),
        "only_chosen": cell(_number(changes.only_second[at]), float(changes.only_second[at])),
        "only_rival": cell(_number(changes.only_first[at]), float(changes.only_first[at])),
        "p": cell(p_text(float(changes.adjusted[at])), float(changes.adjusted[at])),
        "status": ("won" if gain > 0 else "lost") if clear else "unclear",
        "verdict": ("better" if gain > 0 else "worse") if clear else "not significant",
    }


def _number(value: float) -> str:
    return "–" if math.isnan(value) else words.count(float(value))
