"""The data of the review's script: counts, recorded formulas, and the numbers that only Python makes.

The script makes no formula of its own: those of the six counts come as recorded steps
(:mod:`cmtrack.metrics.expression`), and what needs rows, tests or scores comes as numbers. Names come as they are
shown, and once more as they are where the texts to copy need them.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from cmtrack.comparison.criterion import Criterion
from cmtrack.comparison.inference import N_DRAWS
from cmtrack.comparison.ranking import Ranked, Ranking, identity, judged_by
from cmtrack.comparison.result import Comparison
from cmtrack.evaluation import Evaluation
from cmtrack.grouping import ComposedStep
from cmtrack.metrics.binary import SIX
from cmtrack.metrics.expression import Program, record
from cmtrack.metrics.function import Fraction
from cmtrack.metrics.intervals import EDGE, NEAR, ROUNDING, normal_quantile
from cmtrack.metrics.paired import FEW_DIFFERING, SAME, SHARE_ROUNDING, sign_quantile
from cmtrack.metrics.roc import six_counts
from cmtrack.names import distinct, quoted
from cmtrack.report import formatting as fmt
from cmtrack.report.review import reproduce
from cmtrack.report.review.page import NAME, confusions_with, run_numbers
from cmtrack.report.review.patterns import patterns
from cmtrack.report.review.phrases import STANDINGS, Say, how_many, marked, say_of, standing, standing_word
from cmtrack.report.review.shown import alike, finite, headline, judged_section, of_classes, of_one_question
from cmtrack.statistics import BinaryCounts, ScoreCounts
from cmtrack.statistics.grid import grid_edges
from cmtrack.statistics.inputs import FloatArray
from cmtrack.untrusted import for_page, one_line, printable

MAX_CLASSES = 60
"""Classes of matrices that a page holds."""
MAX_RUNS = 30
"""Runs up to which segments have more metrics than one."""
MAX_SEGMENT_METRICS, MAX_SEGMENTS = 3, 30
MAX_JUDGED = 12
"""Runs up to which the page says of each headline metric who may be the best by it: each costs as a ranking does."""
SIGN_TESTS = [
    [float(sign_quantile(better, worse)) for worse in range(FEW_DIFFERING + 1 - better)]
    for better in range(FEW_DIFFERING + 1)
]
"""Normal quantiles of the exact sign tests of few differing rows, by the numbers of better and worse ones."""
_SCALES = ("wilson", "wald", "atanh", "logit", "log", "count")
_POINTS = 64  # of a drawn curve
_ROUND = (*(m * 10.0**-e for e in (4, 3) for m in (1, 2, 5)), *(k / 100 for k in range(1, 100)), 0.995, 0.998, 0.999)
"""Thresholds that a page offers, from which on rows are positive."""


_ANY = BinaryCounts(*(1.0,) * 6)

_AT_THRESHOLD = """frame = evaluation.threshold(maximize="binary/informedness").to_frame()
at = frame[frame["threshold"] >= ⟦threshold⟧].iloc[-1]  # rows of at least this score are positive
print(name, at[⟦metric⟧])"""
_AT_SHARE = "evaluation = evaluation.at(⟦share⟧).reweighted\n"
_OF_SEGMENT = """part = evaluation.segments[⟦column⟧][⟦segment⟧]
print(name, part.metrics[⟦metric⟧], part.intervals.get(⟦metric⟧))"""


def payload(comparison: Comparison) -> str:
    """The page's data as embeddable JSON; empty if nothing can be asked."""
    ranking = comparison.ranking
    if ranking is None or ranking.over:
        return ""
    text = json.dumps(_data(comparison, ranking), ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _data(comparison: Comparison, ranking: Ranking) -> dict[str, Any]:
    say, numbers = say_of(comparison), run_numbers(comparison)
    level = ranking.confidence_level
    metrics = comparable(ranking)
    evaluations = [evaluation for _, evaluation in of_classes(ranking)]
    labels = ranking.evaluation.labels if evaluations else ()
    parts = partitions(ranking) if evaluations else []
    offered = thresholds(evaluations) if parts and parts[0]["given"] else []
    words = [_words(name, ranking) for name in metrics]
    _judged(comparison, ranking, words)
    chosen, shorts = ranking.foremost, distinct([run.name for run in ranking.runs], NAME)
    divided, section = segments(ranking, level), judged_section(ranking)
    rows = patterns(evaluations, [str(table["column"]) for table in divided], offered) if parts else {}
    return {
        "level": level,
        "shown_level": fmt.level(level),
        "z": normal_quantile(level),
        "near": NEAR,
        "edge": EDGE,
        "rounding": ROUNDING,
        "chosen": numbers[chosen.name],
        "criterion": ranking.criterion.metrics[0],
        "runs": [
            {"run": numbers[run.name], "name": for_page(say(run.name)), "short": for_page(short)}
            | _run(run, ranking, metrics, offered, say, section)
            for run, short in zip(ranking.runs, shorts, strict=True)
        ],
        "metrics": words,
        "opens": next((k for k, name in enumerate(metrics) if k and name in headline(ranking)), 0),
        "words": STANDINGS
        | {marked("equivalent", tied): standing_word("equivalent", ranking, tied) for tied in (True, False)},
        "labels": [one if isinstance(one, (str, int, float, bool)) else str(one) for one in labels],
        "shown_labels": [shown(label) for label in labels],
        "partitions": parts,
        "formulas": formulas(evaluations) if parts else None,
        "thresholds": offered,
        "segments": divided,
        "rows": rows,
        "rule": _rule(comparison, ranking) if rows else None,
        "texts": texts(comparison, ranking, bool(parts), bool(offered)),
    }


def _rule(comparison: Comparison, ranking: Ranking) -> dict[str, Any]:
    """The numbers by which the page says who may be the best, as :func:`~cmtrack.comparison.ranking.rank` does."""
    runs, level = ranking.runs, ranking.confidence_level
    ordered = sorted(runs, key=identity)
    state: Any = np.random.default_rng(comparison.how.get("seed", 0)).bit_generator.state
    drawn = {"state": str(state["state"]["state"]), "step": str(state["state"]["inc"]), "times": N_DRAWS // 2}
    return {
        "level": level,
        "z": normal_quantile(level),
        "same": SAME,
        "rounding": SHARE_ROUNDING,
        "few": FEW_DIFFERING,
        "signs": SIGN_TESTS,
        "draws": drawn,
        "places": [ordered.index(run) for run in runs],
        "tied": [_tied(k, ranking) for k in range(len(runs) + 1)],
        "hits": {"multiclass/accuracy": "binary/accuracy"},  # where all classes are one group and it is strict
    }


def _tied(number: int, ranking: Ranking) -> str:
    tied = how_many(number, len(ranking.runs), ranking.noun)
    return f"{fmt.capital(tied)} ({fmt.level(ranking.confidence_level)})"


def shown(text: object) -> str:
    """A name as displayed."""
    return for_page(one_line(text))


def _judged(comparison: Comparison, ranking: Ranking, metrics: list[dict[str, Any]]) -> None:
    """Add to the headline metrics the standing of each run by them."""
    runs = ranking.runs
    names = set(headline(ranking, len(metrics))) if 1 < len(runs) <= MAX_JUDGED else set()
    for metric in metrics:
        name = metric["name"]
        if name not in names or not all(math.isfinite(run.evaluation.metrics.get(name, math.nan)) for run in runs):
            continue
        criterion = Criterion.of(name, ranking.criterion.catalog)
        judged = judged_by(runs, criterion, ranking.confidence_level, comparison.how.get("seed", 0))
        highest = {run.name for run in judged if run.value == judged[0].value}
        first = next(run.name for run in runs if run.name in highest)  # as the page orders them
        status = {run.name: ("leads" if run.name == first else "tied") if run.tied else "behind" for run in judged}
        if criterion == ranking.criterion:
            near = [run for run in runs if math.isfinite(run.equivalent_within)]
            status |= {run.name: marked("equivalent", run.tied) for run in near}
        metric["standing"] = [status[run.name] for run in runs]
        metric["tied"] = _tied(sum(run.tied for run in judged), ranking)


def _words(name: str, ranking: Ranking) -> dict[str, Any]:
    """A metric's names and its direction."""
    catalog = ranking.criterion.catalog
    return {
        "name": name,
        "title": for_page(fmt.metric_title(name, ranking.evaluation.positive, catalog=catalog)),
        "better": catalog.lookup(name).better,
    }


def comparable(ranking: Ranking) -> list[str]:
    """The metrics by which the runs can be ranked: on the same data, and about the same groups in every run.

    Of those of the six counts, which the script computes for any grouping, only the headline ones.
    """
    computed = {metric.name for metric in SIX if not metric.headline}
    names: dict[str, None] = dict.fromkeys(ranking.criterion.metrics)
    for name in finite(ranking):
        if name in names or name in computed:
            continue
        metric, parts = ranking.criterion.catalog.find(name)
        if metric.better and not {"label", "group", "family"} & set(parts):
            names[name] = None
    return of_one_question(ranking, names)


# -- runs ------------------------------------------------------------------------------------------------------


def _run(
    run: Ranked, ranking: Ranking, metrics: Sequence[str], offered: Sequence[float], say: Say, section: str
) -> dict[str, Any]:
    evaluation = run.evaluation
    triples = [(evaluation.metrics.get(n, math.nan), *evaluation.intervals.get(n, (math.nan,) * 2)) for n in metrics]
    status = standing(run, ranking)
    out: dict[str, Any] = {
        "key": run.name,
        "tied": run.tied,
        "standing": standing_word(status, ranking, run.tied),
        "values": packed(triples),
    }
    if not isinstance(evaluation, Evaluation):
        return out
    if run is not ranking.foremost:
        out["against"] = _against(ranking, run, say)
    if _has_matrix(evaluation):
        out["matrix"] = sparse(evaluation.confusion_matrix.counts)
        squares = evaluation.statistics.squares
        if squares is not None:
            out["squares"] = sparse(squares.matrix.counts)
        out["by_rows"] = evaluation.cluster_errors is None
    if offered and evaluation.statistics.scores is not None:
        out["scores"] = _binned(evaluation.statistics.scores, offered)
        squares = evaluation.statistics.squares
        if squares is not None and squares.scores is not None:
            out["score_squares"] = _binned(squares.scores, offered)
        out["curve"] = _curve(evaluation.statistics.scores)
    name = {"calibration": "calibration", "confidence": "confidence_calibration"}.get(section)
    curve = getattr(evaluation, name) if name else None
    if curve is not None:
        out["reliability"] = _thinned(curve.scores, curve.recalibrated)
    return out


def _has_matrix(evaluation: Evaluation) -> bool:
    return len(evaluation.labels) <= MAX_CLASSES and evaluation.none is None


def packed(numbers: Any) -> str:
    """Numbers as base64 of little-endian doubles."""
    return base64.b64encode(np.asarray(numbers, dtype="<f8").tobytes()).decode("ascii")


def sparse(counts: Any) -> list[float]:
    """Counts as pairs: how many places after the last one that is not 0, and the count."""
    flat = np.asarray(counts).ravel()
    held = np.flatnonzero(flat)
    gaps = np.diff(held, prepend=-1)
    return [number for pair in zip(gaps.tolist(), flat[held].tolist(), strict=True) for number in pair]


def _against(ranking: Ranking, run: Ranked, say: Say) -> dict[str, Any] | None:
    """The chosen run against each other run, with the page's statements on its rival."""
    table = confusions_with(ranking, run, say)
    if table is None:
        return None
    rows = []
    for row in table["rows"]:
        numbers = (row[name]["text"] for name in ("points", "counts", "only_chosen", "only_rival", "p"))
        p = row["p"]["sort"]
        order = float(f"{p:.3g}") if isinstance(p, float) else ""
        cells = (row["actual"], row["predicted"], *numbers, order, row["status"], row["verdict"])
        rows.append([for_page(cell) if isinstance(cell, str) else cell for cell in cells])
    sentences = [for_page(sentence) for sentence in table["sentences"]]
    return {"rows": rows, "sentences": sentences, "paired": table["paired"], "more": table["more"]}


def _curve(scores: ScoreCounts) -> list[list[int]]:
    """Fall-out, recall and precision by falling threshold, in thousandths, at places where something happens."""
    six: Any = six_counts(scores.counts.astype(np.float64))
    tp, _, imp, fp, *_ = (np.asarray(part)[::-1] for part in six)
    positives, negatives = scores.counts[:2].sum(), scores.counts[2:].sum()
    if not (positives > 0 and negatives > 0):
        return []
    fall_out, recall, called = fp / negatives, tp / positives, tp + imp + fp
    precision = np.divide(tp, called, out=np.ones(len(tp)), where=called > 0)
    return _thinned(fall_out, recall, precision)


def _thinned(x: FloatArray, y: FloatArray, *more: FloatArray) -> list[list[int]]:
    """A rising curve in thousandths, at equal distances of its way and both ends, and what goes with it."""
    way = np.cumsum(np.abs(np.diff(x, prepend=x[0])) + np.abs(np.diff(y, prepend=y[0])))
    places = np.searchsorted(way, np.linspace(way[0], way[-1], _POINTS)).clip(max=len(way) - 1)
    places = np.unique(np.concatenate(([0], places, [len(way) - 1])))
    return [np.rint(1000 * part[places]).astype(int).tolist() for part in (x, y, *more)]


# -- groupings and formulas ------------------------------------------------------------------------------------


def partitions(ranking: Ranking) -> list[dict[str, Any]]:
    """Divisions of the classes into a positive group and the rest.

    The one that was evaluated is the first; then the groups of each step, and every class against all others.
    """
    evaluation = of_classes(ranking)[0][1]
    labels = evaluation.labels
    if not all(_has_matrix(one) for _, one in of_classes(ranking)):
        return []
    out = []
    if alike(ranking, frozenset({"grouping", "positive"})):
        given = evaluation.scored
        if given is not None and given.positive is not None:
            out.append(_partition(given, given.positive, given=True, classes=evaluation.grouping is None))
        steps = () if evaluation.grouping is None else evaluation.grouping.compose(labels)
        for step in steps:
            two = len(step.labels) == 2
            places = [g for g in range(len(step.labels)) if not (given is not None and step.name == given.name and two)]
            out += [_partition(step, g) for g in places]
    if len(labels) > 2 or not out:
        single = ComposedStep("class", labels, np.arange(len(labels)), np.eye(len(labels), dtype=bool), None)
        out += [_partition(single, k, classes=True) for k in range(len(labels))]
    return out


def _partition(step: ComposedStep, positive: int, given: bool = False, classes: bool = False) -> dict[str, Any]:
    """One group of a step, or class, against all others."""
    inside = step.group_of_class == positive
    name = str(step.labels[positive])
    others = [str(label) for g, label in enumerate(step.labels) if g != positive]
    rest = others[0] if len(others) == 1 else f"not {name}"
    title = f"{quoted(name)} against {quoted(rest) if len(others) == 1 else 'all others'}"
    if given:
        title += ", as evaluated"
    elif not classes:
        title += f" ({quoted(step.name)})"
    within = step.accept if len(others) == 1 and not classes else inside[:, None] == inside[None, :]
    modes = [_mode(within, inside), _mode(within, ~inside)]
    if not classes and len(others) > 1:
        modes[0] = _mode(step.accept, inside)
    return {
        "title": for_page(title),
        "shown": [shown(name), shown(rest)],
        "names": [name, rest],
        "inside": "".join("1" if belongs else "0" for belongs in inside),
        "modes": modes,
        "step": step.name if not classes else "one class",
        "given": given,
        "classes": classes and len(others) == 1,
    }


def _mode(accept: Any, inside: Any) -> Any:
    """The rule for pairs of a group: "relaxed", "strict", or the accepted pairs."""
    members = np.flatnonzero(inside)
    pairs = accept[np.ix_(members, members)]
    if pairs.all():
        return "relaxed"
    if np.array_equal(pairs, np.eye(len(members), dtype=bool)):
        return "strict"
    return [[int(members[i]), int(members[j])] for i, j in zip(*np.nonzero(pairs), strict=True)]


def formulas(evaluations: Sequence[Evaluation]) -> dict[str, Any]:
    """The metrics of the six counts as recorded steps; those that cannot be recorded are left out."""
    program = Program()
    program.counts()
    custom = {metric.name: metric for evaluation in evaluations for metric in evaluation.extra_metrics}
    metrics = []
    for metric in (*SIX, *custom.values()):
        place = record(metric, program) if metric.interval in _SCALES else None
        if place is None:
            continue
        of = metric.value
        metrics.append(
            {
                "name": metric.name,
                "title": for_page(metric.heading()),
                "better": metric.better,
                "place": place,
                "interval": metric.interval,
                "low": metric.low if math.isfinite(metric.low) else None,
                "high": metric.high if math.isfinite(metric.high) else None,
                "below": [int(part) for part in of.denominator(_ANY)] if isinstance(of, Fraction) else None,
            }
        )
    counts = [metric for metric in SIX if metric.interval == "count"]
    words = {"heads": [metric.heading() for metric in counts], "parts": [metric.formula for metric in counts]}
    return {"steps": program.steps, "metrics": metrics} | words


# -- thresholds ------------------------------------------------------------------------------------------------


def thresholds(evaluations: Iterable[Evaluation]) -> list[float]:
    """The thresholds that a page offers; edges of cells where scores are counted on a grid. None without scores."""
    of_runs = [evaluation.statistics.scores for evaluation in evaluations if not evaluation.statistics.ranking_only]
    scores = [one for one in of_runs if one is not None and one.counts[:2].sum() > 0 and one.counts[2:].sum() > 0]
    if not scores:
        return []
    offered = np.array(sorted(_ROUND))
    if not all(one.exact for one in scores):
        edges = grid_edges()
        offered = edges[np.abs(edges[:, None] - offered).argmin(axis=0)]
    return [float(value) for value in np.unique(offered)]


def _binned(scores: ScoreCounts, offered: Sequence[float]) -> list[list[float]]:
    """Samples of each channel below the first threshold, between each two, and from the last one on, (4, T + 1)."""
    lowest = scores.values if scores.exact else np.concatenate(([0.0], grid_edges()))
    place = np.searchsorted(np.asarray(offered), lowest, side="right")
    out = np.zeros((len(scores.counts), len(offered) + 1), dtype=scores.counts.dtype)
    for channel, counts in zip(out, scores.counts, strict=True):
        np.add.at(channel, place, counts)
    return [sparse(channel) for channel in out]


# -- segments --------------------------------------------------------------------------------------------------


def segments(ranking: Ranking, level: float) -> list[dict[str, Any]]:
    """The criterion and a few metrics more of each segment of the columns that all runs were divided by."""
    runs = of_classes(ranking)
    if not runs:
        return []
    first = runs[0][1].segments
    columns = [
        column
        for column in first
        if len(first[column]) <= MAX_SEGMENTS
        and all(column in e.segments and e.segments[column].texts == first[column].texts for _, e in runs)
    ]
    out = []
    for column in columns:
        metrics: list[dict[str, Any]] = []
        for name in headline(ranking):
            if len(metrics) == (MAX_SEGMENT_METRICS if len(runs) <= MAX_RUNS else 1):
                break
            values = [_by_segment(evaluation, column, name, level) for _, evaluation in runs]
            if all(one is not None for one in values):
                metrics.append(_words(name, ranking) | {"values": values})
        if metrics:
            table = first[column]
            out.append(
                {
                    "column": column,
                    "shown": shown(column),
                    "keys": [printable(repr(value)) for value in table.values],
                    "texts": [shown(text) for text in table.texts],
                    "rows": [fmt.count(float(size)) for size in table.sizes],
                    "metrics": metrics,
                }
            )
    return out


def _by_segment(evaluation: Evaluation, column: str, metric: str, level: float) -> str | None:
    """Value and interval in each segment; None where the metric is not known of segments."""
    table = evaluation.segments[column]
    try:
        values, (low, high) = table.estimates(metric).values, table.own_intervals(metric, level)
    except (KeyError, ValueError):
        return None
    return packed(np.stack((values, low, high), axis=1))


# -- texts to copy ---------------------------------------------------------------------------------------------


def texts(comparison: Comparison, ranking: Ranking, grouped: bool, scored: bool) -> dict[str, Any]:
    """Python and command lines of each question, with marks where the script puts what was asked."""
    mark, both = reproduce.Mark, partial(reproduce.changed, comparison, ranking)
    out: dict[str, Any] = {"metric": both(rank_by=mark("metric"))}
    if grouped:
        grouping, costs = mark("grouping", "Grouping"), mark("costs", "Costs")
        for at, moved in (("", {}), ("_at", {"at": mark("share")})):
            changes = {"rank_by": mark("metric")} | moved
            out[f"given{at}"] = both(**changes)
            out[f"grouping{at}"] = both(**changes, grouping=grouping)
            out[f"costs_given{at}"] = both(**changes, costs=costs)
            out[f"costs{at}"] = both(**changes, costs=costs, grouping=grouping)
    if scored:
        for at, head in (("", ""), ("_at", _AT_SHARE)):
            python = reproduce.each_run(comparison, ranking, head + _AT_THRESHOLD)
            out[f"threshold{at}"] = {"python": python, "command": ""}
    out["segment"] = {"python": reproduce.each_run(comparison, ranking, _OF_SEGMENT), "command": ""}
    return out
