"""The constant answer in words and in tables: the gain of a model over it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from cmtrack.base import BaseEvaluation
from cmtrack.comparison import Comparison, ConstantAnswer, Ranked, Ranking
from cmtrack.evaluation.catalog import BUILT_IN
from cmtrack.grouping import Label
from cmtrack.metrics.catalog import Catalog
from cmtrack.metrics.intervals import Interval
from cmtrack.names import quoted
from cmtrack.report import formatting as fmt

CONSTANT = "constant"
UNDEFINED = "undefined"
"""Words for the standing of what a table shows below its ranked runs."""


def p_of(constant: ConstantAnswer) -> str:
    """Return the p-value of the difference from a constant answer, and whether it is paired."""
    if math.isnan(constant.pvalue):
        return "no error is known"
    unpaired = ", not paired by row" if constant.unpaired else ""
    return f"{fmt.p_equals(constant.pvalue)}{unpaired}"


def constant_sentence(
    constant: ConstantAnswer,
    shown: str,
    *,
    interval: Interval | None = None,
    several: str = "",
    positive: Label | None = None,
    catalog: Catalog = BUILT_IN,
    say: Callable[[str], str] = quoted,
) -> str:
    """Return the sentence on a run that is not shown to be better than the constant answer.

    "No run has a lower mean cost than always answering “worse”, which needs no model (0.713): “m2”
    has 4.100 (p < 0.001)." It is empty if the run is shown to be better.

    ``shown``: the run's value.
    ``interval``: the run's, which decides the digits of the constant answer's value.
    ``several``: "run" or "model" if none of several is shown to be better, of which it is the best.
    ``positive``: of the two groups, for the metric's title.
    ``catalog``: that has the title.
    ``say``: how a sentence names a run.
    """
    if not constant.warns:
        return ""
    title = f"{constant.better} {fmt.metric_title(constant.metric, positive, catalog=catalog)}"
    run = say(constant.run)
    if several:
        verb = "is shown to have a" if constant.ahead else "has a"
        claim = f"No {several} {verb} {title}"
        evidence = f"{run} has {shown}"
    else:
        verb = "is not shown to have a" if constant.ahead else "has no"
        claim = f"{run} {verb} {title}"
        evidence = f"it has {shown}"
    return f"{claim} than {_strategy(constant, interval)}: {evidence} ({p_of(constant)})."


def _strategy(constant: ConstantAnswer, interval: Interval | None) -> str:
    """Return a constant answer in words, with its value."""
    if constant.guessed:
        return "guessing (0)"
    strategy = "giving each class its share"
    if constant.answer is not None:
        strategy = f"always answering {quoted(constant.answer)}"
    return f"{strategy}, which needs no model ({fmt.number(constant.value, interval)})"


def warning_clause(ranking: Ranking) -> str:
    """Return the warning in a clause: ", not better than always “worse”".

    It is empty if the best run is shown to be better.
    """
    constant = next((constant for constant in ranking.constants if constant.warns), None)
    if constant is None:
        return ""
    strategy = "guessing" if constant.guessed else constant.words
    better = "shown to be better" if constant.ahead else "better"
    return f", not {better} than {strategy}"


def constant_sentences(ranking: Ranking, say: Callable[[str], str] = quoted) -> list[str]:
    """Return the sentences on runs that are not shown to beat the constant answer, by metric.

    "No run" is said if every run was tested and none is shown to be better. Else a sentence names
    the best run by the metric, and the run to take, if they are not shown to be better.
    """
    sentences = []
    for constant in ranking.constants:
        best = next(entry for entry in ranking.standings if entry.name == constant.run)
        several = ""
        if constant.none_shown and len(ranking.standings) > 1:
            several = ranking.noun
        sentences.append(_sentence_on(constant, best, ranking, several, say))
        taken = ranking.foremost
        if not several and taken is not best:
            of_taken = constant.for_run(
                _key(taken, ranking), taken.name, _value_of(taken, constant.metric, ranking)
            )
            sentences.append(_sentence_on(of_taken, taken, ranking, "", say))
    return [sentence for sentence in sentences if sentence]


def _sentence_on(
    constant: ConstantAnswer,
    entry: Ranked,
    ranking: Ranking,
    several: str,
    say: Callable[[str], str],
) -> str:
    """Return the sentence on one run of a ranking; empty if it is shown to be better."""
    interval = _interval_of(entry, constant.metric, ranking)
    shown = fmt.number(_value_of(entry, constant.metric, ranking), interval)
    positive = ranking.evaluation.positive
    catalog = ranking.criterion.catalog
    return constant_sentence(
        constant,
        shown,
        interval=interval,
        several=several,
        positive=positive,
        catalog=catalog,
        say=say,
    )


def _key(entry: Ranked, ranking: Ranking) -> str:
    """Return what a constant answer knows a run by: its id; its name if it is a model."""
    return entry.name if ranking.over else entry.run_id


def _value_of(entry: Ranked, metric: str, ranking: Ranking) -> float:
    """Return the value of a ranked run or model in a metric of the criterion."""
    return entry.value if ranking.criterion.single else entry.metrics[metric]


def _interval_of(entry: Ranked, metric: str, ranking: Ranking) -> Interval | None:
    """Return the interval that is shown of a ranked run in a metric of the criterion."""
    return entry.interval if ranking.criterion.single else entry.evaluation.intervals.get(metric)


@dataclass(frozen=True)
class UnrankedRow:
    """A row of a table below its ranked runs: a constant answer, or a run without a value.

    ``values``: what it has of the metrics, by their names.
    ``reason``: why a value is undefined.
    """

    name: str
    run_id: str
    standing: str
    values: dict[str, str]
    reason: str = ""


def beside(comparison: Comparison, ranking: Ranking) -> list[UnrankedRow]:
    """Return the rows below the runs of a ranking's table.

    They are the constant answers, and runs of the ranking's data without a value.
    """
    rows = _constant_rows(ranking)
    if ranking.over:
        return rows
    data = ranking.evaluation.statistics.digest.content_only
    evaluations = {candidate.run_id: candidate.evaluation for candidate in comparison.judged}
    for unranked in comparison.left_out:
        run = unranked.run
        evaluation = evaluations.get(run.run_id)
        if evaluation is not None and evaluation.statistics.digest.content_only == data:
            standing = "last" if unranked.last else "not ranked"
            values = _values_in_words(evaluation, ranking.criterion.metrics)
            rows.append(UnrankedRow(run.name, run.run_id, standing, values, unranked.reason))
    return rows


def _constant_rows(ranking: Ranking) -> list[UnrankedRow]:
    """Return a row for each constant answer, with its values in one or more metrics."""
    rows: dict[str, UnrankedRow] = {}
    for constant in ranking.constants:
        if constant.unbeatable:
            # No run is compared with it.
            continue
        text = UNDEFINED
        if math.isfinite(constant.value):
            # It has the digits of the run that it is compared with.
            best = next(entry for entry in ranking.standings if entry.name == constant.run)
            interval = _interval_of(best, constant.metric, ranking)
            text = fmt.number(constant.value, interval)
        words = constant.words
        row = rows.get(words, UnrankedRow(words, "", CONSTANT, {}))
        values = row.values | {constant.metric: text}
        reason = "; ".join(filter(None, (row.reason, constant.reason)))
        rows[words] = replace(row, values=values, reason=reason)
    return list(rows.values())


def _values_in_words(evaluation: BaseEvaluation, names: Iterable[str]) -> dict[str, str]:
    """Return the metrics that an evaluation has, as texts."""
    texts = {}
    for name in names:
        if name in evaluation.infinite:
            texts[name] = "infinite"
        elif name in evaluation.metrics:
            value = evaluation.metrics[name]
            texts[name] = fmt.number(value) if math.isfinite(value) else UNDEFINED
    return texts
