"""A comparison in plain words: the decision first, then its evidence.

Nothing here says more than the statistics: runs that are not shown to differ are not said to be equal.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from cmtrack.comparison.comparability import apart, headings
from cmtrack.comparison.cost_ratio import break_even, why_no_break_even
from cmtrack.comparison.criterion import Criterion
from cmtrack.comparison.ranking import Ranked, Ranking
from cmtrack.comparison.result import Comparison
from cmtrack.comparison.run import LeftOut
from cmtrack.comparison.segments import SegmentDifferences
from cmtrack.evaluation import Evaluation
from cmtrack.names import MAY_BE_BEST, RULED_OUT, quoted
from cmtrack.report import formatting as fmt
from cmtrack.report.constant import constant_sentences, warning_clause
from cmtrack.report.review.phrases import (
    Say,
    about_rows,
    all_others,
    asked,
    assumed_shares,
    behind_words,
    counts_rows,
    criterion_title,
    gap_words,
    how_many,
    near_words,
    rule_title,
    samples,
    say_of,
    selection_words,
    short_names,
    tie_sentence,
)
from cmtrack.statistics.predictions import Predictions

MAX_SEGMENTS = 5
"""Segments that a sentence names."""
RIVALS = 2
"""Runs that the one to take is held against by costs."""


def lead(comparison: Comparison) -> str:
    """One short clause: who leads, with what, and how many may be the best."""
    say = say_of(comparison)
    ranking = comparison.ranking
    if ranking is None:
        return "no run is ranked"
    first = ranking.leader
    tied = f", {maybe(ranking)}" if len(ranking.tied) > 1 else ""
    if comparison.criterion.pareto:
        front = [say(run.name) for run in ranking.runs if run.rank == 1]
        text = f"{fmt.join_names(front)} on the Pareto front"
    else:
        title = fmt.metric_title(
            comparison.criterion.metrics[0], brief=True, catalog=comparison.criterion.catalog
        )
        over = f" over {ranking.over} with mean" if ranking.over else " with"
        text = f"{say(first.name)} leads{over} {title} {_value(first)}{tied}"
    if ranking.foremost is not first:
        text = f"take {say(ranking.foremost.name)}; {text}"
    if len(comparison.rankings) > 1:
        text += f" (ranking 1 of {len(comparison.rankings)})"
    assumed = assumed_shares(comparison)
    condition = f"{assumed}: " if assumed else ""
    return f"{condition}{text}{warning_clause(ranking)}"


def maybe(ranking: Ranking) -> str:
    """The number of runs in a ranking that may be the best, in words."""
    return how_many(len(ranking.tied), len(ranking.standings), ranking.noun)


def verdict(comparison: Comparison) -> list[str]:
    """The decision, its evidence and the notes, sentence by sentence."""
    return [*decision(comparison), *further(comparison)]


def decision(comparison: Comparison, *, beside_tables: bool = False) -> list[str]:
    """The run to take and the reasons: what a reader must know first.

    ``beside_tables``: whether a table of the gates stands on the same page, so that their values need no sentence.
    """
    return _elsewhere(comparison, _decision(comparison, beside_tables))


def _decision(comparison: Comparison, beside_tables: bool) -> list[str]:
    """Return the decision on the shares that the comparison was asked for."""
    say = say_of(comparison)
    gates = _stopped_briefly(comparison) if beside_tables else stopped(comparison, say)
    ranking = comparison.ranking
    if ranking is None:
        return [_nothing(comparison), *(gates if comparison.failed and not beside_tables else ())]
    if ranking.chosen is None:
        return [*_undecided(comparison, say), *by_segment(comparison), *gates]
    several = len(comparison.rankings)
    head = _headline(comparison, ranking, say)
    if several > 1:
        head += f" This covers ranking 1 of {several} only: the rankings were not compared with each other."
    lines = [_warned(head, ranking, say), *_standing(comparison, ranking, say)]
    if comparison.how.get("tie_breakers", ()) or not ranking.criterion.pareto:
        lines += _tie(comparison, ranking, say)
    lines += [
        *_price(ranking, say),
        *equivalents(ranking, say),
        *rows_more(comparison, say),
        *by_segment(comparison),
    ]
    lines += [*gates, *unpaired(ranking, say)]
    return [*lines, *apart(comparison.rankings, comparison.reads)]


def _warned(head: str, ranking: Ranking, say: Say) -> str:
    """The headline; preceded by a warning if no run is shown to beat an answer without a model."""
    warned = constant_sentences(ranking, say)
    if warned and head.startswith("Take "):
        head = f"Of the {ranking.noun}s, t{head[1:]}"
    return " ".join([*warned, head])


def _elsewhere(comparison: Comparison, lines: list[str]) -> list[str]:
    """Return a verdict that begins with the shares of classes that it assumes, where these are not the rows' own."""
    assumed = assumed_shares(comparison)
    return [f"{assumed}: {lines[0]}", *lines[1:]] if assumed and lines else lines


def further(comparison: Comparison, *, beside_tables: bool = False) -> list[str]:
    """Notes: other rankings, runs that are in none, and how the comparison was made."""
    say = say_of(comparison)
    notes, already = [], {*apart(comparison.rankings, comparison.reads)}
    if comparison.best is not None and comparison.ranking is not None:
        notes = [_other(comparison, place, say) for place in range(1, len(comparison.rankings))]
    notes += [*break_evens(comparison), *positives(comparison, say), *identical(comparison, say)]
    if not beside_tables:
        notes += [*left_out(comparison, say), *passed_over(comparison, say)]
    return notes + [
        note if note.endswith(".") else f"{note}."
        for note in comparison.notes
        if note not in already
    ]


def _leads(ranking: Ranking) -> str:
    """The kind of lead: "scores highest", "is nearest to zero"."""
    criterion, on_average = ranking.criterion, " on average" if ranking.over else ""
    if criterion.direction == "nearest zero":
        return f"is nearest to zero{on_average}"
    if criterion.direction == "higher":
        return f"scores highest{on_average}"
    return f"scores lowest{on_average}, which is best"


def _headline(comparison: Comparison, ranking: Ranking, say: Say) -> str:
    chosen, noun, ties = say(ranking.foremost.name), ranking.noun, len(ranking.tied)
    if len(ranking.standings) == 1:
        return _only_one(comparison, chosen, noun)
    if ties == 1:
        others = all_others(len(ranking.standings) - 1, noun)
        return f"Take {chosen}: {others} {behind_words(ranking)}."
    if ranking.decision.by is not None:
        near = sum(entry.within_margin for entry in ranking.standings)
        where = near_words(ranking.margin, ranking.criterion)
        those = f"that {MAY_BE_BEST} and are {where}"
        if ranking.criterion.pareto:
            those = where
        return f"Take {chosen}: of the {near} {noun}s {those}, it has the {rule_title(ranking.decision.by)}."
    if ranking.criterion.pareto:
        front = [run for run in ranking.runs if run.rank == 1]
        return f"No single best run. {len(front)} runs are on the Pareto front; {chosen} is the first of them."
    rows = f"the {ranking.over}" if ranking.over else "the test rows"
    some = f"{fmt.in_words(ties)} of the {len(ranking.standings)} {noun}s {MAY_BE_BEST}"
    those = maybe(ranking) if ties == len(ranking.standings) else some
    leads = f"{chosen} {_leads(ranking)}"
    if _shared(ranking):
        leads = f"{fmt.join_names([say(one.name) for one in ranking.standings if one.rank == 1])} lead with the same value"
    if all(math.isnan(run.p_set) for run in ranking.tied if run is not ranking.leader):
        return f"{fmt.capital(those)}: no difference between them could be tested. {leads}."
    return f"{fmt.capital(those)}; {rows} cannot tell them apart. {leads}."


def _only_one(comparison: Comparison, chosen: str, noun: str) -> str:
    """Return the headline of a ranking of one run; it is recommended only if all others have a rank or fail a gate."""
    without_rank = not_ranked(comparison)
    if without_rank > len(comparison.failed):
        return f"{chosen} is the only one of the {without_rank + 1} {noun}s that could be ranked."
    if without_rank:
        return f"Take {chosen}: it is the only {noun} that passes the gates."
    return f"Take {chosen}: it is the only {noun}."


def not_ranked(comparison: Comparison) -> int:
    """Return the number of runs beside the only ranking: they fail a gate, or have no value of the metric.

    0 of several rankings, as nothing says which one a run belongs to, and of models over repeated runs.
    """
    if len(comparison.rankings) != 1 or comparison.repeated:
        return 0
    return len(comparison.failed) + len(comparison.left_out)


def _nothing_beside(comparison: Comparison, noun: str) -> str:
    """Return the end of the sentences on the only run of a ranking; empty if there are runs without a rank."""
    return "" if not_ranked(comparison) else f" There is no {noun} to compare it with."


def _shared(ranking: Ranking) -> bool:
    """True if the leader's value is that of another one, too."""
    return sum(one.rank == 1 for one in ranking.standings) > 1


def _tie(comparison: Comparison, ranking: Ranking, say: Say) -> list[str]:
    """The sentence on what chose among those that may be the best."""
    near = [
        (entry.name, entry.run, entry.metrics) for entry in ranking.standings if entry.within_margin
    ]
    rules, where = (
        comparison.how.get("tie_breakers", ()),
        near_words(ranking.margin, ranking.criterion),
    )
    shared, tied = _shared(ranking), ranking.tied
    unknown = 0
    if not ranking.over and ranking.criterion.single:
        unknown = sum(
            not math.isfinite(run.standard_error) for run in tied if run is not ranking.leader
        )
    return tie_sentence(
        near, len(tied), ranking.decision, rules, where, say, ranking.noun, shared, unknown
    )


def _value(entry: Ranked) -> str:
    return fmt.with_interval(entry.value, entry.interval)


def _standing(comparison: Comparison, ranking: Ranking, say: Say) -> list[str]:
    """The leader and its selection bias, other runs that may be the best, and those that are ruled out."""
    criterion, positive = ranking.criterion, ranking.evaluation.positive
    first = ranking.leader
    name = say(first.name)
    if criterion.pareto:
        return _front(comparison, ranking, say)
    title = f"{'mean ' if ranking.over else ''}{criterion_title(criterion, positive)}"
    value = f"{_value(first)}{'*' if first.picked else ''}"
    if len(ranking.standings) == 1:
        over = f" over {ranking.over}" if ranking.over else ""
        alone = f"Its {title}{over} is {value}.{_nothing_beside(comparison, ranking.noun)}"
        return [" ".join([alone, *selection_words(comparison), *selected(ranking)])]
    if ranking.over:
        value += f" (standard deviation over the {ranking.over.partition(' ')[2]} {fmt.number(first.sd)})"
    over = f" over {ranking.over}" if ranking.over else ""
    sentence = f"{name} {_leads(ranking)}: {title}{over} {value}."
    # named, or no sole leader
    if len(ranking.tied) > 1 and (ranking.decision.by is None or _shared(ranking)):
        its = f"The {title}{over} of {name}" if _shared(ranking) else f"Its {title}{over}"
        sentence = f"{its} is {value}."
    return [
        " ".join(
            [sentence, *selection_words(comparison), *_others(ranking, say), *selected(ranking)]
        )
    ]


def _others(ranking: Ranking, say: Say) -> list[str]:
    """Runs or models that are ruled out beside several that may be the best, and those that were not tested."""
    unsure = [run for run in ranking.runs[1:] if math.isnan(run.p_set)]
    behind = [say(run.name) for run in ranking.runs if not run.tied]
    lines = []
    if math.isnan(ranking.leader.p_set):
        lines = [
            f"No run was tested against {say(ranking.leader.name)}, because its error is unknown."
        ]
    elif unsure:
        lines = [
            f"Not tested, as no error is known: {fmt.join_names([say(run.name) for run in unsure])}."
        ]
    if behind and len(ranking.tied) > 1:
        verb = f"is {behind_words(ranking)}" if len(behind) == 1 else f"are {behind_words(ranking)}"
        lines.append(
            f"Only {fmt.join_names(behind)} {verb}."
            if len(behind) < 4
            else f"{len(behind)} {verb}."
        )
    return lines


def selected(ranking: Ranking) -> list[str]:
    """The note on the leader's interval, which allows for its selection."""
    if not ranking.leader.picked:
        return []
    best = {"higher": "highest", "lower": "lowest"}.get(ranking.criterion.direction, "nearest")
    return [f"(* Wider, because the {best} of {ranking.picked_from} was selected.)"]


def equivalents(ranking: Ranking, say: Say) -> list[str]:
    """The runs that are shown to be as good as the leader, but for the margin."""
    names = [say(run.name) for run in ranking.runs if math.isfinite(run.equivalent_within)]
    if not names or ranking.equivalence is None:
        return []
    who = f"{fmt.join_names(names)} {'is' if len(names) == 1 else 'are'} shown to differ"
    return [
        f"Equivalent within {ranking.equivalence:g}: {who} by less from {say(ranking.leader.name)}."
    ]


def rows_more(comparison: Comparison, say: Say) -> list[str]:
    """The rows needed to separate the leader from each run that may also be the best, the fewest first."""
    ranking, resolution = comparison.ranking, asked(comparison, "resolution")
    if ranking is None or resolution is None or not counts_rows(ranking.evaluation):
        return []
    open_ones = [
        run.name for run in ranking.runs[1:] if run.tied and math.isnan(run.equivalent_within)
    ]
    needed = {name: resolution.rows_more(name) for name in open_ones if name in resolution.errors}
    words = [
        f"{about_rows(more, resolution.rows)} between {say(ranking.leader.name)} and {say(name)}"
        for name, more in sorted(needed.items(), key=lambda one: one[1])
        if more > 0
    ]
    if not words:
        return []
    first, *others = words
    rows = [
        first.replace(" between", " more would decide with 80 % power between", 1),
        *(one.replace(" rows ", " ") for one in others),
    ]
    seen = "difference is the one" if len(words) == 1 else "differences are those"
    return [f"{fmt.capital(fmt.join_names(rows))}, if the true {seen} seen here."]


def _front(comparison: Comparison, ranking: Ranking, say: Say) -> list[str]:
    criterion, positive = ranking.criterion, ranking.evaluation.positive
    front = [run for run in ranking.runs if run.rank == 1]
    off = [say(run.name) for run in ranking.runs if not run.tied]
    titles = fmt.join_names(
        [fmt.metric_title(name, positive, catalog=criterion.catalog) for name in criterion.metrics],
        6,
    )
    values = [", ".join(map(fmt.number, (run.values or {}).values())) for run in front]
    shown = fmt.join_names(
        [f"{say(run.name)} ({text})" for run, text in zip(front, values, strict=True)], 4
    )
    if len(ranking.runs) == 1:
        return [f"{fmt.capital(titles)}: {shown}.{_nothing_beside(comparison, ranking.noun)}"]
    be = "is alone" if len(front) == 1 else "are"
    sentences = [f"By {titles}, {shown} {be} on the Pareto front."]
    if off:
        be = "is" if len(off) == 1 else "are"
        why = "another run is at least as good in every metric and better in one"
        sentences.append(f"{fmt.join_names(off)} {be} dominated: {why}.")
    sentences.append("The front follows from the values alone. Differences are not tested.")
    return [" ".join(sentences)]


def _price(ranking: Ranking, say: Say) -> list[str]:
    """The chosen one against the leader; a model that leads itself, against the next one."""
    first, one = ranking.leader, ranking.foremost
    if one is first and ranking.over:
        one = (*ranking.standings, first)[1]
    if one is first or not ranking.criterion.single:
        return []
    ends = (one.difference_low, one.difference_high)
    gap = gap_words(one.difference, ends, ranking.criterion.direction, say(first.name))
    claim = f"{say(one.name)} {'is' if ranking.over else f'has {_value(one)}:'} {gap}"
    if math.isnan(one.p_set):
        return [f"{claim}, with an unknown error."]
    return [
        f"{claim}; it {MAY_BE_BEST if one.tied else f'is {RULED_OUT}'} ({fmt.p_equals(one.p_set)})."
    ]


def by_segment(comparison: Comparison) -> list[str]:
    """Sentences on runs that are better overall, but significantly worse for some segments, or the reverse."""
    say, single = say_of(comparison), comparison.criterion.single
    several = len({pair.column for pair in comparison.segments}) > 1
    tied = [] if comparison.ranking is None else [run.name for run in comparison.ranking.tied]
    sentences = (
        segment_sentence(
            pair, say, unsure=single and pair.second in tied, single=single, several=several
        )
        for pair in comparison.segments
    )
    return [sentence for sentence in sentences if sentence]


def segment_sentence(
    pair: SegmentDifferences, say: Say, *, unsure: bool, single: bool, several: bool
) -> str:
    """The sentence on two runs where segments are shown to differ the other way than all rows do; empty elsewhere.

    "“B” is better overall than “A”, but worse for “south” (difference −0.080 [−0.140, −0.020], Gail–Simon p = 0.010)."

    ``unsure``: whether the overall difference is not significant.
    ``single``, ``several``: whether there is one metric only, which needs no name, and whether there are several
    columns, which do.
    """
    if not pair.contrary:
        return ""
    first, then = ("better", "worse") if pair.gain > 0 else ("worse", "better")
    by = "" if single else f"By {fmt.metric_title(pair.metric, catalog=pair.catalog)}, "
    of, alone = f" of {quoted(pair.column)}" if several else "", len(pair.contrary) == 1
    p = f"Gail–Simon {fmt.p_equals(pair.p_adjusted)}"
    shown = []
    for k in pair.contrary:
        ends = (float(pair.low[k]), float(pair.high[k]))
        gap = (
            f"difference {fmt.signed(float(pair.differences[k]), ends)}{f', {p}' if alone else ''}"
        )
        shown.append(f"{quoted(pair.segments[k])}{of} ({gap})")
    listed = fmt.join_names(shown, MAX_SEGMENTS) + ("" if alone else f"; {p}")
    overall = f"overall than {say(pair.second)}{' (not significantly)' if unsure else ''}"
    return f"{by}{say(pair.first)} is {first} {overall}, but {then} for {listed}."


def segment_test(pairs: Sequence[SegmentDifferences], say: Say) -> str:
    """The sentence on the tests of both signs, of the pairs of one column and metric; empty where there are none."""
    tests = [
        f"{fmt.p_equals(p.p_adjusted)} for {say(p.second)}"
        for p in pairs
        if math.isfinite(p.p_adjusted)
    ]
    if not tests:
        return ""
    return (
        f"Whether {say(pairs[0].first)} is better in some segments and worse in others (test of Gail and Simon 1985"
        f"{', adjusted by Holm' if len(tests) > 1 else ''}): {fmt.join_names(tests, len(tests))}."
    )


def segment_reading(pairs: Sequence[SegmentDifferences], say: Say) -> str:
    """Sentences on the intervals of differences by segment, and why some are not of pairs of rows."""
    reading = (
        f"Brackets are {fmt.level(pairs[0].confidence_level)} intervals of the differences, simultaneous over all "
        "segments and runs of this table."
    )
    for reason in dict.fromkeys(pair.reason for pair in pairs if pair.reason):
        names = fmt.join_names(
            list(dict.fromkeys(say(pair.second) for pair in pairs if pair.reason == reason))
        )
        reading += f" Not compared row by row with {names}: {reason}. The intervals are wider than they need be."
    return reading


def _undecided(comparison: Comparison, say: Say) -> list[str]:
    """Several rankings, none of which is the one to decide by."""
    rankings = comparison.rankings
    rows = rankings[0].evaluation.statistics.digest.rows
    same = sum(ranking.evaluation.statistics.digest.rows == rows for ranking in rankings)
    which = (
        f"the {same} rankings"
        if same == len(rankings)
        else f"{same} of the {len(rankings)} rankings"
    )
    return [
        f"No decision: {which} have the same number of rows ({rows:,}) and were not compared with each other.",
        " ".join(apart(rankings, comparison.reads)),
        *(_other(comparison, place, say) for place in range(len(rankings))),
    ]


def heading(comparison: Comparison, place: int) -> str:
    """The heading of one of several rankings: "Ranking 2 of 2: 3 runs on 719 samples, grouped by “parity”"."""
    ranking, several = comparison.rankings[place], len(comparison.rankings)
    where = (
        f"over {ranking.over}" if ranking.over else f"on {samples(comparison, ranking.evaluation)}"
    )
    scope = f"{fmt.counted(len(ranking.standings), ranking.noun)} {where}"
    without_rank = not_ranked(comparison)
    if without_rank:
        ranked = len(ranking.standings)
        return f"{ranked} of {ranked + without_rank} runs {where}"
    if several == 1:
        return scope
    distinction = headings(comparison.rankings, comparison.reads)[place]
    return f"Ranking {place + 1} of {several}: {scope}{f', {distinction}' if distinction else ''}"


def _other(comparison: Comparison, place: int, say: Say) -> str:
    ranking = comparison.rankings[place]
    first = ranking.leader
    tied = ""
    if len(ranking.tied) > 1 and ranking.criterion.single:
        tied = f"; {maybe(ranking)}"
    if ranking.criterion.pareto:
        front = [say(run.name) for run in ranking.runs if run.rank == 1]
        result = f"{fmt.join_names(front)} on the Pareto front"
    else:
        value = f" with {_value(first)}"
        result = (
            f"{say(first.name)} leads{value}"
            if len(ranking.runs) > 1
            else f"{say(first.name)} has{value[5:]}"
        )
    return " ".join(
        [f"{heading(comparison, place)}. There, {result}{tied}.", *constant_sentences(ranking, say)]
    )


def _stopped_briefly(comparison: Comparison) -> list[str]:
    n = len(comparison.failed)
    are = "fails a gate and is" if n == 1 else "fail a gate and are"
    return [f"{fmt.counted(n, comparison.noun)} {are} not ranked."] if n else []


def _nothing(comparison: Comparison) -> str:
    n, noun = len(comparison.failed), comparison.noun
    if n < 2:
        return (
            f"Take none: the only evaluated {noun} fails a gate."
            if n
            else "Take none: no run could be ranked."
        )
    return f"Take none: {'both' if n == 2 else f'all {n}'} evaluated {noun}s fail a gate."


# -- what stands around a ranking: gates, runs that are not ranked or not paired, identical runs -----------------


def stopped(comparison: Comparison, say: Say) -> list[str]:
    """The gates that stopped runs, with the values that did."""
    sentences = []
    for gate in comparison.gates:
        failing = [
            (s.name, r)
            for s in comparison.failed
            for r in s.gates
            if r.gate == gate and not r.passed
        ]
        if len(failing) == 1:
            sentences.append(f"{say(failing[0][0])} fails the gate {failing[0][1]}.")
        elif failing:
            texts = [f"{say(name)} ({result.found})" for name, result in failing]
            sentences.append(
                f"{len(failing)} {comparison.noun}s fail the gate {gate.text}: {fmt.join_names(texts, 2)}."
            )
    return sentences


def left_out(comparison: Comparison, say: Say) -> list[str]:
    """Runs that could not be ranked, by reason."""
    sentences = []
    for head, last in (("Last", True), ("Not ranked", False)):
        reasons = fmt.by_reason(
            (say(one.run.name), _reason(one)) for one in comparison.left_out if one.last == last
        )
        sentences += [
            f"{head}: {fmt.join_names(names, 4)} ({reason})." for reason, names in reasons.items()
        ]
    return sentences


def _reason(unranked: LeftOut) -> str:
    """The reason for which a run is left out, without its own id: that is no reason of its own."""
    run_id = unranked.run.run_id
    return (
        unranked.reason.replace(f"run {run_id}", "the run") if run_id else unranked.reason
    ).rstrip(".")


def passed_over(comparison: Comparison, say: Say) -> list[str]:
    """Runs behind the end of the short list."""
    if not comparison.passed_over:
        return []
    names = fmt.join_names([say(run.name) for run in comparison.passed_over])
    return [f"Not read, because their logged values are worse (limit): {names}."]


def unpaired(ranking: Ranking, say: Say) -> list[str]:
    """The runs whose differences are not paired, and why that matters."""
    reasons = fmt.by_reason((say(run.name), run.unpaired) for run in ranking.runs if run.unpaired)
    if not reasons:
        return []
    if sum(map(len, reasons.values())) == len(ranking.runs) and len(reasons) == 1:
        who = f"all runs ({next(iter(reasons))})"
    else:
        who = "; ".join(f"{fmt.join_names(names)} ({reason})" for reason, names in reasons.items())
    if not any(math.isfinite(run.low) for run in ranking.runs if run.unpaired):
        return [f"Not compared row by row: {who}."]
    return [
        f"Not compared row by row: {who}. Their errors count as independent, so that differences look less certain "
        "than they are, and a real one may be missed."
    ]


def break_evens(comparison: Comparison) -> list[str]:
    """Break-even costs: the cost of a miss from which the run to take is cheaper, or dearer, than the first others.

    None if no metric of the criterion reads labels: they are those of one threshold, of which the ranking says nothing.
    None of a run that predicts one class only.
    """
    ranking = comparison.ranking
    if ranking is None or ranking.over or not _reads_labels(comparison.criterion):
        return []
    sentences, alike, names, first = [], [], short_names(comparison), ranking.foremost
    others = [run for run in ranking.runs if run is not first]
    for other in others[:RIVALS]:
        theirs, ours = other.evaluation, first.evaluation
        if not (
            isinstance(theirs, Evaluation) and isinstance(ours, Evaluation)
        ) or why_no_break_even(theirs, ours):
            continue
        if _predicts_one_side(theirs) or _predicts_one_side(ours):
            continue
        cost_ratio = break_even(theirs, ours, confidence_level=ranking.confidence_level)
        if cost_ratio.told_apart or cost_ratio.false_alarms == cost_ratio.misses == 0:
            sentences.append(cost_ratio.sentence(names[other.name], names[first.name]))
        else:
            alike.append(quoted(names[other.name]))
    if alike:
        taken = quoted(names[first.name])
        sentences.append(
            f"{taken} is not shown to be cheaper or dearer than {' or '.join(alike)} at any cost of a miss."
        )
    left = len(others) - RIVALS
    if sentences and left > 0:
        runs = "run" if left == 1 else f"{left} runs"
        sentences.append(f"Costs of a miss were not compared with the other {runs}.")
    return sentences


def _reads_labels(criterion: Criterion) -> bool:
    """True if a metric of the criterion is of predicted labels, and not of scores alone."""
    return any(
        criterion.catalog.lookup(name).needs != "probabilities" for name in criterion.metrics
    )


def _predicts_one_side(evaluation: Evaluation) -> bool:
    """True if an evaluation of two groups or classes never predicts one of them."""
    cells = evaluation.binary
    return cells is not None and 0 in (cells.predicted_positives, cells.predicted_negatives)


def positives(comparison: Comparison, say: Say) -> list[str]:
    """A warning where runs of one comparison have different positive groups."""
    of_runs = [(say(run.name), run.evaluation.positive) for run in comparison.runs]
    by_group = fmt.by_reason(
        (name, quoted(positive)) for name, positive in of_runs if positive is not None
    )
    if len(by_group) < 2:
        return []
    groups = "; ".join(
        f"{positive} in {fmt.join_names(names)}" for positive, names in by_group.items()
    )
    return [
        f"The runs have different positive groups: {groups}. Their metrics binary/… answer different questions and "
        "must not be compared, here or in MLflow's charts."
    ]


def identical(comparison: Comparison, say: Say) -> list[str]:
    """Runs of one ranking with identical predictions."""
    sentences = []
    for ranking in () if comparison.repeated else comparison.rankings:
        groups = ([say(run.name) for run in group] for group in _identical(ranking.runs))
        sentences += [f"{fmt.join_names(names)} have identical predictions." for names in groups]
    return sentences


def _identical(runs: Sequence[Ranked]) -> list[list[Ranked]]:
    groups: list[list[Ranked]] = []
    for run in runs:
        home = next((group for group in groups if _same(group[0], run)), None)
        if home is None:
            groups.append(home := [])
        home.append(run)
    return [group for group in groups if len(group) > 1]


def _same(first: Ranked, second: Ranked) -> bool:
    a, b = first.evaluation.rows, second.evaluation.rows
    if (
        not (isinstance(a, Predictions) and isinstance(b, Predictions))
        or first.value != second.value
    ):
        return False
    if first.evaluation.labels != second.evaluation.labels or not np.array_equal(
        a.predicted, b.predicted
    ):
        return False
    if a.probabilities is None or b.probabilities is None:
        return a.probabilities is b.probabilities
    return np.array_equal(a.probabilities, b.probabilities)
