"""The constant answer in words and in tables: the gain of a model over it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

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
    """The p-value of the difference from a constant answer, and whether it is paired."""
    if math.isnan(constant.pvalue):
        return "no error is known"
    return fmt.p_equals(constant.pvalue) + (", not paired by row" if constant.unpaired else "")


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
    """Return the sentence on a run that is not shown to be better than the constant answer; empty if it is.

    "No run has a lower mean cost than always answering “worse”, which needs no model (0.713): “m2” has 4.100
    (p < 0.001)."

    ``shown``: the run's value.
    ``interval``: the run's, which decides the digits of the constant answer's value.
    ``several``: "run" or "model" if none of several is shown to be better, of which it is the best.
    ``positive``: of the two groups, for the metric's title.
    ``catalog``: that has the title.
    ``say``: how a sentence names a run.
    """
    if not constant.warns:
        return ""
    than = "guessing (0)"
    if not constant.guessed:
        strategy = "giving each class its share"
        if constant.answer is not None:
            strategy = f"always answering {quoted(constant.answer)}"
        than = f"{strategy}, which needs no model ({fmt.number(constant.value, interval)})"
    who = f"No {several}" if several else say(constant.run)
    claim = "has" if several else "has no"
    if constant.ahead:
        claim = "is shown to have" if several else "is not shown to have"
    article = "a " if several or constant.ahead else ""
    has = f"{say(constant.run)} has {shown}" if several else f"it has {shown}"
    title = (
        f"{article}{constant.better} {fmt.metric_title(constant.metric, positive, catalog=catalog)}"
    )
    return f"{who} {claim} {title} than {than}: {has} ({p_of(constant)})."


def warning_clause(ranking: Ranking) -> str:
    """Return the same in a clause, ", not better than always “worse”"; empty if the best run is shown to be better."""
    one = next((constant for constant in ranking.constants if constant.warns), None)
    if one is None:
        return ""
    than = "guessing" if one.guessed else one.words
    return f", not {'shown to be ' if one.ahead else ''}better than {than}"


def constant_sentences(ranking: Ranking, say: Callable[[str], str] = quoted) -> list[str]:
    """Return the sentences on runs that are not shown to beat the constant answer, for each metric of a ranking.

    "No run" is said if every run was tested and none is shown to be better. Else a sentence names the best run by the
    metric, and the run to take, if they are not shown to be better.
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
    """The rows below the runs of a ranking's table: constant answers, and runs of the same data without a value."""
    rows: dict[str, UnrankedRow] = {}
    for one in ranking.constants:
        if one.unbeatable:  # nothing is compared with it
            continue
        best = next(entry for entry in ranking.standings if entry.name == one.run)
        text = UNDEFINED
        if math.isfinite(one.value):  # in the digits of the run that it is compared with
            text = fmt.number(one.value, _interval_of(best, one.metric, ranking))
        earlier = rows.get(one.words, UnrankedRow(one.words, "", CONSTANT, {}))
        reason = "; ".join(filter(None, (earlier.reason, one.reason)))
        rows[one.words] = replace(
            earlier, values=earlier.values | {one.metric: text}, reason=reason
        )
    if ranking.over:
        return list(rows.values())
    data = ranking.evaluation.statistics.digest.content_only
    read = {candidate.run_id: candidate.evaluation for candidate in comparison.judged}
    out = list(rows.values())
    for unranked in comparison.left_out:
        run, standing = unranked.run, "last" if unranked.last else "not ranked"
        evaluation = read.get(run.run_id)
        if evaluation is None or evaluation.statistics.digest.content_only != data:
            continue
        metrics = {
            name: evaluation.metrics[name]
            for name in ranking.criterion.metrics
            if name in evaluation.metrics
        }
        values = {
            name: fmt.number(value) if math.isfinite(value) else UNDEFINED
            for name, value in metrics.items()
        }
        values |= {name: "infinite" for name in values if name in evaluation.infinite}
        out.append(UnrankedRow(run.name, run.run_id, standing, values, unranked.reason))
    return out
