"""Sentences and tables that compare runs with the best constant answer."""

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
"""Status word for the rows that a table shows below the ranked runs."""


def p_of(constant: ConstantAnswer) -> str:
    """Return the p-value of the difference between a run and a constant answer, in words."""
    if math.isnan(constant.pvalue):
        return "standard error unknown"
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

    For example, "No run has a lower mean cost than always predicting “worse”, which needs no model
    (0.713): “m2” has 4.100 (p < 0.001)." The sentence is empty if the run is shown to be better.

    ``shown``: the run's value.
    ``interval``: the run's interval, which decides with how many digits the constant answer's value
        is shown.
    ``several``: "run" or "model" if this run is the best but no run or model is shown to be better
        than the constant answer; otherwise empty.
    ``positive``: the positive group, which the metric's title mentions.
    ``catalog``: the catalog that contains the metric's title.
    ``say``: a function that returns the name of a run for a sentence.
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
    """Return the constant answer in words, with its value."""
    if constant.guessed:
        return "guessing (0)"
    strategy = "always predicting the class shares"
    if constant.answer is not None:
        strategy = f"always predicting {quoted(constant.answer)}"
    return f"{strategy}, which needs no model ({fmt.number(constant.value, interval)})"


def warning_clause(ranking: Ranking) -> str:
    """Return a warning in the form of a clause, such as ", not better than always “worse”".

    The clause is empty if the best run is shown to be better than the constant answer.
    """
    constant = next((constant for constant in ranking.constants if constant.warns), None)
    if constant is None:
        return ""
    strategy = "guessing" if constant.guessed else constant.words
    better = "shown to be better" if constant.ahead else "better"
    return f", not {better} than {strategy}"


def constant_sentences(ranking: Ranking, say: Callable[[str], str] = quoted) -> list[str]:
    """Return sentences on runs that are not shown to be better than the constant answer.

    If every run was tested and no run is shown to be better, the sentence begins with "No run".
    If a run is shown to be better, or if not every run was tested, the function returns one
    sentence for the run with the best value of the metric and one for the recommended run, unless
    these runs are shown to be better.
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
    """Return the sentence on a run of a ranking.

    The text is empty if the run is shown to be better.
    """
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
    """Return the run id or model name by which a constant answer stores an entry's results."""
    return entry.name if ranking.over else entry.run_id


def _value_of(entry: Ranked, metric: str, ranking: Ranking) -> float:
    """Return a ranked run's or model's value of one of the criterion's metrics."""
    return entry.value if ranking.criterion.single else entry.metrics[metric]


def _interval_of(entry: Ranked, metric: str, ranking: Ranking) -> Interval | None:
    """Return a ranked run's or model's interval for one of the criterion's metrics."""
    return entry.interval if ranking.criterion.single else entry.evaluation.intervals.get(metric)


@dataclass(frozen=True)
class UnrankedRow:
    """A table row below the ranked runs, for a constant answer or a run without a value.

    ``values``: the available values as texts, by metric name.
    ``reason``: the reason why a value is undefined.
    """

    name: str
    run_id: str
    standing: str
    values: dict[str, str]
    reason: str = ""


def beside(comparison: Comparison, ranking: Ranking) -> list[UnrankedRow]:
    """Return the rows that a table shows below the ranked runs.

    The additional rows show the constant answers, and the runs on the same data without a rank. A
    row without a defined value is omitted, because another table or list gives the reason.
    """
    rows = _constant_rows(ranking)
    if not ranking.over:
        rows += _rows_of_unranked(comparison, ranking)
    return [row for row in rows if set(row.values.values()) - {UNDEFINED}]


def _rows_of_unranked(comparison: Comparison, ranking: Ranking) -> list[UnrankedRow]:
    """Return a row for each run without a rank that was evaluated on the data of a ranking."""
    rows = []
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
    """Return a row for each constant answer, which contains the answer's value for each metric."""
    rows: dict[str, UnrankedRow] = {}
    for constant in ranking.constants:
        if constant.unbeatable:
            # Runs are not compared with an answer that no model can beat.
            continue
        text = UNDEFINED
        if math.isfinite(constant.value):
            # The value gets as many digits as the value of the run that is compared with it.
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
    """Return the available metrics of an evaluation, with their values written as texts."""
    texts = {}
    for name in names:
        if name in evaluation.infinite:
            texts[name] = "infinite"
        elif name in evaluation.metrics:
            value = evaluation.metrics[name]
            texts[name] = fmt.number(value) if math.isfinite(value) else UNDEFINED
    return texts
