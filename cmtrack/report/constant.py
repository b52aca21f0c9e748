"""The constant answer in words and in tables: the gain of a model over it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from cmtrack.comparison import Comparison, ConstantAnswer, Ranking
from cmtrack.evaluation.catalog import BUILT_IN
from cmtrack.grouping import Label
from cmtrack.metrics.catalog import Catalog
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
    constant: ConstantAnswer, shown: str, *, several: str = "", positive: Label | None = None,
    catalog: Catalog = BUILT_IN, say: Callable[[str], str] = quoted,
) -> str:  # fmt: skip
    """The sentence on a run not shown to be better than the constant answer; empty if it is.

    "No run has a lower mean cost than always answering “worse”, which needs no model (0.713): “m2” has 4.100
    (p < 0.001)."

    ``shown``: the run's value.
    ``several``: the noun for one of several that it is the best of: "run" or "model".
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
        than = f"{strategy}, which needs no model ({fmt.number(constant.value)})"
    who = f"No {several}" if several else say(constant.run)
    claim = "has" if several else "has no"
    if constant.ahead:
        claim = "is shown to have" if several else "is not shown to have"
    article = "a " if several or constant.ahead else ""
    has = f"{say(constant.run)} has {shown}" if several else f"it has {shown}"
    title = f"{article}{constant.better} {fmt.metric_title(constant.metric, positive, catalog=catalog)}"
    return f"{who} {claim} {title} than {than}: {has} ({p_of(constant)})."


def warning_clause(ranking: Ranking) -> str:
    """The same in a clause, ", not better than always “worse”"; empty where the best run is shown to be better."""
    one = next((constant for constant in ranking.constants if constant.warns), None)
    if one is None:
        return ""
    than = "guessing" if one.guessed else one.words
    return f", not {'shown to be ' if one.ahead else ''}better than {than}"


def constant_sentences(ranking: Ranking, say: Callable[[str], str] = quoted) -> list[str]:
    """The sentences of a ranking, one for each metric in which no run is shown to beat the constant answer."""
    positive, sentences, catalog = ranking.evaluation.positive, [], ranking.criterion.catalog
    several = ranking.noun if ranking.picked_from > 1 or len(ranking.standings) > 1 else ""
    for one in ranking.constants:
        entry = next(entry for entry in ranking.standings if entry.name == one.run)
        shown = fmt.number(entry.value, entry.interval)
        if not ranking.criterion.single:
            shown = fmt.number(entry.metrics[one.metric], entry.evaluation.intervals.get(one.metric))
        sentences.append(constant_sentence(one, shown, several=several, positive=positive, catalog=catalog, say=say))
    return [sentence for sentence in sentences if sentence]


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
        text = fmt.number(one.value) if math.isfinite(one.value) else UNDEFINED
        earlier = rows.get(one.words, UnrankedRow(one.words, "", CONSTANT, {}))
        reason = "; ".join(filter(None, (earlier.reason, one.reason)))
        rows[one.words] = replace(earlier, values=earlier.values | {one.metric: text}, reason=reason)
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
        metrics = {name: evaluation.metrics[name] for name in ranking.criterion.metrics if name in evaluation.metrics}
        values = {name: fmt.number(value) if math.isfinite(value) else UNDEFINED for name, value in metrics.items()}
        values |= {name: "infinite" for name in values if name in evaluation.infinite}
        out.append(UnrankedRow(run.name, run.run_id, standing, values, unranked.reason))
    return out
