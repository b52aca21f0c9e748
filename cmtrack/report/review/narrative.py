"""Sentences that describe a comparison in plain words, by section.

The sentences claim no more than the statistics show: runs that are not shown to differ are never
called equal. The functions take a :class:`Review`, which provides the names of the runs. Phrases
that several sentences share are in :mod:`cmtrack.report.review.phrases`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from cmtrack.base import BaseEvaluation
from cmtrack.comparison.blocks import RepeatedRanking
from cmtrack.comparison.cost_ratio import BreakEven, break_even, why_no_break_even
from cmtrack.comparison.criterion import Criterion
from cmtrack.comparison.ranking import Ranked, Ranking
from cmtrack.comparison.run import LeftOut
from cmtrack.comparison.segments import SegmentDifferences
from cmtrack.comparison.tie_breakers import TieBreaker, place_of
from cmtrack.digits import significant
from cmtrack.evaluation import Evaluation
from cmtrack.evaluation.catalog import OPEN
from cmtrack.names import MAY_BE_BEST, RULED_OUT, SELECTED, quoted, some_of
from cmtrack.report import formatting as fmt
from cmtrack.report.constant import constant_sentences, warning_clause
from cmtrack.report.narrative import (
    n_mismatches,
    other_within,
    question_of_metric,
    warnings_about,
)
from cmtrack.report.review.phrases import (
    all_others,
    behind_words,
    counts_rows,
    criterion_title,
    direction,
    duration,
    how_many,
    in_two_units,
)
from cmtrack.report.review.review import Review
from cmtrack.statistics.predictions import Predictions

MAX_SEGMENTS = 5
"""Maximum number of segments that a sentence names."""
MAX_BRIEF = 3
"""Maximum number of sentences in the brief form of a decision."""
RIVALS = 2
"""Number of runs whose costs are compared with the costs of the recommended run."""
_MANY = 1000
"""Multiple of the present number of rows above which only the multiple is stated.

If fewer rows are needed, the number of rows is stated.
"""
_LEAST_SELECTION = 0.01
"""Largest selection bias, relative to the width of the leader's interval, that is not mentioned."""
_GROUPS = 200
"""Maximum length, in characters, of the groups below a page's title."""
Say: TypeAlias = Callable[[str], str]
"""A function that returns the name of a run for a sentence."""


# -- the decision ----------------------------------------------------------------------------------


def lead(review: Review) -> str:
    """Return a short clause on the leader, its value, and how many runs may be the best."""
    ranking = review.ranking
    if ranking is None:
        return "no run is ranked"
    criterion = ranking.criterion
    leader = ranking.leader
    text = f"{_front_names(review, ranking)} on the Pareto front"
    if not criterion.pareto:
        title = fmt.metric_title(criterion.metrics[0], brief=True, catalog=criterion.catalog)
        over = f" over {ranking.over} with mean" if ranking.over else " with"
        text = f"{review.say(leader.name)} leads{over} {title} {_value(leader)}"
        if len(ranking.tied) > 1:
            text += f", {maybe(ranking)}"
    if ranking.foremost is not leader:
        text = f"take {review.say(ranking.foremost.name)}; {text}"
    if len(review.rankings) > 1:
        text += f" (ranking 1 of {len(review.rankings)})"
    if review.assumed:
        text = f"{review.assumed}: {text}"
    return f"{text}{warning_clause(ranking)}"


def verdict(review: Review) -> list[str]:
    """Return sentences on the decision, the evidence for the decision, and the notes."""
    return [*decision(review), *further(review)]


def decision(review: Review, *, beside_tables: bool = False) -> list[str]:
    """Return the sentences that a reader needs first: the recommended run and the reasons.

    ``beside_tables``: whether the page contains a table of the gates, so that the sentences need
        not state their values.
    """
    gates = stopped(review)
    if beside_tables:
        gates = [] if review.ranking is None else _stopped_briefly(review)
    return _with_shares(review, _decision(review, gates))


def brief(review: Review) -> list[str]:
    """Return the decision in at most three sentences; the tables show the values."""
    ranking = review.ranking
    if ranking is None:
        sentences = [_nothing(review)]
    elif ranking.chosen is None:
        sentences = [*_undecided(review)[:1], *review.why_apart]
    else:
        sentences = [*_headline(review, ranking), *by_segment(review)]
        choice = tie(review, ranking)
        if review.tie_breakers:
            sentences += choice[:1]
        else:
            sentences += choice[-1:]
    return _with_shares(review, sentences[:MAX_BRIEF])


def evidence(review: Review) -> list[str]:
    """Return the sentences of the verdict, except those on runs without a rank."""
    decided = _with_shares(review, _decision(review, []))
    return [*decided, *further(review, beside_tables=True)]


def _with_shares(review: Review, sentences: list[str]) -> list[str]:
    """Return sentences of which the first one begins with the assumed class shares."""
    if not review.assumed:
        return sentences
    return [f"{review.assumed}: {sentences[0]}", *sentences[1:]]


def _decision(review: Review, gates: list[str]) -> list[str]:
    """Return the decision without the introduction about the assumed class shares.

    ``gates``: the sentences on gates that runs fail.
    """
    ranking = review.ranking
    if ranking is None:
        return [_nothing(review), *gates]
    if ranking.chosen is None:
        return [*_undecided(review), *by_segment(review), *gates]
    sentences = [" ".join(_headline(review, ranking)), _standing(review, ranking)]
    sentences.append(_joined(*tie(review, ranking), _run_times(review, ranking)))
    sentences += [_price(review, ranking), equivalents(review, ranking), rows_more(review)]
    sentences += [*by_segment(review), *gates, unpaired(review, ranking), *review.why_apart]
    return list(filter(None, sentences))


def _headline(review: Review, ranking: Ranking) -> list[str]:
    """Return the first sentences, after a warning if no run is shown to beat a constant answer."""
    first, *others = _best(review, ranking)
    if len(review.rankings) > 1:
        others.append(
            f"This covers only ranking 1 of {len(review.rankings)}: the rankings were not "
            "compared with each other."
        )
    warned = constant_sentences(ranking, review.say)
    if warned and first.startswith("Take "):
        first = f"Of the {ranking.noun}s, t{first[1:]}"
    return [*warned, first, *others]


def _best(review: Review, ranking: Ranking) -> list[str]:
    """Return the sentences on the recommended run, or on the runs that may be the best."""
    chosen = review.say(ranking.foremost.name)
    noun = ranking.noun
    ties = len(ranking.tied)
    if len(ranking.standings) == 1:
        return [_only_one(review, chosen, noun)]
    if ties == 1:
        others = all_others(len(ranking.standings) - 1, noun)
        return [f"Take {chosen}: {others} {behind_words(ranking)}."]
    if ranking.decision.by is not None:
        near = sum(entry.within_margin for entry in ranking.standings)
        those = _near_words(ranking.margin, ranking.criterion)
        if ranking.criterion.single:
            those = f"that {MAY_BE_BEST} and are {those}"
        title = _rule_title(ranking.decision.by)
        return [f"Take {chosen}: it has the {title} of the {near} {noun}s {those}."]
    if ranking.criterion.pareto:
        front = sum(run.rank == 1 for run in ranking.runs)
        return [
            "No single best run.",
            f"{front} runs are on the Pareto front; {chosen} is the first of them.",
        ]
    those = maybe(ranking)
    if ties < len(ranking.standings):
        those = f"{ties} of the {len(ranking.standings)} {noun}s {MAY_BE_BEST}"
    leads = f"{chosen} {_leads(ranking)}"
    if _shared(ranking):
        leads = f"{_front_names(review, ranking)} lead with the same value"
    if all(math.isnan(run.p_set) for run in ranking.tied if run is not ranking.leader):
        return [
            f"{fmt.capital(those)}: no difference between them could be tested.",
            f"{leads}.",
        ]
    rows = f"the {ranking.over}" if ranking.over else "the test rows"
    return [
        f"{fmt.capital(those)}: {rows} show no significant difference between them.",
        f"{leads}.",
    ]


def _only_one(review: Review, chosen: str, noun: str) -> str:
    """Return the headline of a ranking that contains only one run.

    The headline recommends this run only if all other runs fail a gate.
    """
    without_rank = not_ranked(review)
    if without_rank > len(review.comparison.failed):
        return f"{chosen} is the only one of the {without_rank + 1} {noun}s that could be ranked."
    if without_rank:
        return f"Take {chosen}: it is the only {noun} that passes the gates."
    return f"Take {chosen}: it is the only {noun}."


def _nothing(review: Review) -> str:
    """Return the sentence on the decision if no run is ranked."""
    failed = len(review.comparison.failed)
    if failed == 0:
        return "Take none: no run could be ranked."
    if failed == 1:
        return f"Take none: the only evaluated {review.noun} fails a gate."
    all_of_them = "both" if failed == 2 else f"all {failed}"
    return f"Take none: {all_of_them} evaluated {review.noun}s fail a gate."


def _nothing_beside(review: Review) -> str:
    """Return the sentence that states that there are no other runs.

    The text is empty if there are runs without a rank.
    """
    return "" if not_ranked(review) else f" There is no {review.noun} to compare it with."


def _undecided(review: Review) -> list[str]:
    """Return the sentences on several rankings, none of which decides the comparison."""
    rankings = review.rankings
    counts = [ranking.evaluation.statistics.digest.rows for ranking in rankings]
    same = counts.count(counts[0])
    which = f"the {same} rankings"
    if same < len(rankings):
        which = f"{same} of the {len(rankings)} rankings"
    return [
        f"No decision: {which} have the same number of rows ({counts[0]:,}) and were not compared "
        "with each other.",
        " ".join(review.why_apart),
        *(_other(review, place) for place in range(len(rankings))),
    ]


def _other(review: Review, place: int) -> str:
    """Return the sentence on the result of a ranking that does not decide the comparison."""
    ranking = review.rankings[place]
    result = f"{_front_names(review, ranking)} on the Pareto front"
    if ranking.criterion.single:
        leads = "leads with" if len(ranking.runs) > 1 else "has"
        result = f"{review.say(ranking.leader.name)} {leads} {_value(ranking.leader)}"
        if len(ranking.tied) > 1:
            result += f"; {maybe(ranking)}"
    sentence = f"{heading(review, place)}. There, {result}."
    return " ".join([sentence, *constant_sentences(ranking, review.say)])


def heading(review: Review, place: int) -> str:
    """Return the heading of a ranking.

    An example of a heading, if there are several rankings, is "Ranking 2 of 2: 3 runs on 719 rows,
    grouped by “parity”".
    """
    ranking = review.rankings[place]
    ranked = len(ranking.standings)
    where = f"over {ranking.over}" if ranking.over else f"on {review.samples(ranking.evaluation)}"
    without_rank = not_ranked(review)
    if without_rank:
        return f"{ranked} of {ranked + without_rank} runs {where}"
    scope = f"{fmt.counted(ranked, ranking.noun)} {where}"
    if len(review.rankings) == 1:
        return scope
    parts = filter(None, (scope, review.distinctions[place]))
    return f"Ranking {place + 1} of {len(review.rankings)}: {', '.join(parts)}"


def not_ranked(review: Review) -> int:
    """Return the number of runs without a rank, which fail a gate or lack the metric.

    If there are several rankings, the number is 0, because a run without a rank belongs to no
    particular ranking. The number is also 0 if models are ranked over repeated runs.
    """
    if len(review.rankings) != 1 or review.comparison.repeated:
        return 0
    return len(review.comparison.failed) + len(review.comparison.left_out)


def maybe(ranking: Ranking) -> str:
    """Return words that state how many runs in a ranking may be the best."""
    return how_many(len(ranking.tied), len(ranking.standings), ranking.noun)


# -- the standing: the leader, others that may be the best, and those that are ruled out -----------


def _standing(review: Review, ranking: Ranking) -> str:
    """Return the sentences on the leader, its selection bias, and runs ruled out or not tested."""
    if ranking.criterion.pareto:
        return _front(review, ranking)
    leader = ranking.leader
    name = review.say(leader.name)
    title = criterion_title(ranking.criterion, ranking.evaluation.positive)
    value = _value(leader)
    if leader.picked:
        value += "*"
    if ranking.over:
        title = f"mean {title} over {ranking.over}"
    if len(ranking.standings) == 1:
        # The headline names the only run.
        sentence = f"Its {title} is {value}.{_nothing_beside(review)}"
        return _joined(sentence, selection(review), selected(ranking))
    if ranking.over:
        blocks = ranking.over.partition(" ")[2]
        value += f" (standard deviation over the {blocks} {fmt.number(leader.sd)})"
    sentence = f"{name} {_leads(ranking)}: {title} {value}."
    if len(ranking.tied) > 1 and _shared(ranking):
        sentence = f"The {title} of {name} is {value}."
    elif len(ranking.tied) > 1 and ranking.decision.by is None:
        # If there is no decision, the headline ends with the leader, so "its" refers to the leader.
        sentence = f"Its {title} is {value}."
    return _joined(sentence, selection(review), *_others(review, ranking), selected(ranking))


def _leads(ranking: Ranking) -> str:
    """Return a verb phrase for the leader, such as "scores highest" or "is nearest to zero"."""
    on_average = " on average" if ranking.over else ""
    if ranking.criterion.direction == "nearest zero":
        return f"is nearest to zero{on_average}"
    if ranking.criterion.direction == "higher":
        return f"scores highest{on_average}"
    return f"scores lowest{on_average}, which is best"


def _shared(ranking: Ranking) -> bool:
    """Return whether another run has the same value as the leader."""
    return sum(one.rank == 1 for one in ranking.standings) > 1


def _value(entry: Ranked) -> str:
    return fmt.with_interval(entry.value, entry.interval)


def selection(review: Review) -> str:
    """Return the sentence on the selection bias of the leader's value.

    The text is empty if the selection bias is small.
    """
    looks = review.looks
    if looks is None or looks.runs < 2:
        return ""
    if not looks.optimism > _LEAST_SELECTION * (looks.high - looks.low):
        return ""
    end, too = ("highest", "high") if review.criterion.direction == "higher" else ("lowest", "low")
    part = np.format_float_positional(float(f"{looks.optimism:.2g}"), trim="-")
    return (
        f"As the {end} of {looks.among}, this value is probably about {part} too {too}. It is not "
        "corrected."
    )


def selected(ranking: Ranking) -> str:
    """Return the note that the leader's interval accounts for the selection of the leader."""
    if not ranking.leader.picked:
        return ""
    best = {"higher": "highest", "lower": "lowest"}.get(ranking.criterion.direction, "nearest")
    return (
        f"(* The interval is wider because the {best} of {ranking.picked_from} values was "
        "selected.)"
    )


def _others(review: Review, ranking: Ranking) -> list[str]:
    """Return the sentences on runs that are ruled out and on runs that were not tested."""
    unsure = [run for run in ranking.runs[1:] if math.isnan(run.p_set)]
    behind = [run for run in ranking.runs if not run.tied]
    sentences = []
    if math.isnan(ranking.leader.p_set):
        leader = review.say(ranking.leader.name)
        sentences.append(f"No run was tested against {leader}: its standard error is unknown.")
    elif unsure:
        not_tested = review.say_all(unsure)
        sentences.append(f"Not tested, because the standard error is unknown: {not_tested}.")
    if behind and len(ranking.tied) > 1:
        who = f"Only {review.say_all(behind)}" if len(behind) < 4 else str(len(behind))
        be = "is" if len(behind) == 1 else "are"
        sentences.append(f"{who} {be} {behind_words(ranking)}.")
    return sentences


def _front(review: Review, ranking: Ranking) -> str:
    """Return the sentences on the runs on the Pareto front and on the dominated runs."""
    criterion = ranking.criterion
    positive = ranking.evaluation.positive
    front = [run for run in ranking.runs if run.rank == 1]
    off = [run for run in ranking.runs if not run.tied]
    titles = [
        fmt.metric_title(name, positive, catalog=criterion.catalog) for name in criterion.metrics
    ]
    listed = fmt.join_names(titles, 6)
    values = [", ".join(map(fmt.number, run.values.values())) for run in front]
    shown = fmt.join_names(
        [f"{review.say(run.name)} ({text})" for run, text in zip(front, values, strict=True)], 4
    )
    if len(ranking.runs) == 1:
        return f"{fmt.capital(listed)}: {shown}.{_nothing_beside(review)}"
    be = "is alone" if len(front) == 1 else "are"
    text = f"By {listed}, {shown} {be} on the Pareto front."
    if off:
        be = "is" if len(off) == 1 else "are"
        why = "another run is at least as good in every metric and better in one"
        text += f" {review.say_all(off)} {be} dominated: {why}."
    return f"{text} The front follows from the values alone. Differences are not tested."


def _front_names(review: Review, ranking: Ranking) -> str:
    """Return the names of the runs with rank 1, such as the runs on the Pareto front."""
    return review.say_all([run for run in ranking.standings if run.rank == 1])


def _price(review: Review, ranking: Ranking) -> str:
    """Return the sentence that compares the chosen run with the leader.

    In a ranking of models, if the chosen model is the leader, the sentence compares it with the
    next model.
    """
    leader = ranking.leader
    entry = ranking.foremost
    if entry is leader and ranking.over and len(ranking.standings) > 1:
        entry = ranking.standings[1]
    if entry is leader or not ranking.criterion.single:
        return ""
    ends = (entry.difference_low, entry.difference_high)
    gap = _gap_words(entry.difference, ends, ranking.criterion.direction, review.say(leader.name))
    verb = "is" if ranking.over else f"has {_value(entry)}:"
    claim = f"{review.say(entry.name)} {verb} {gap}"
    if math.isnan(entry.p_set):
        return f"{claim}, with an unknown standard error."
    may_be = MAY_BE_BEST if entry.tied else f"is {RULED_OUT}"
    return f"{claim}; it {may_be} ({fmt.p_equals(entry.p_set)})."


def equivalents(review: Review, ranking: Ranking) -> str:
    """Return the sentence on runs that are shown to be equivalent to the leader."""
    runs = [run for run in ranking.runs if math.isfinite(run.equivalent_within)]
    if not runs or ranking.equivalence is None:
        return ""
    be = "is" if len(runs) == 1 else "are"
    leader = review.say(ranking.leader.name)
    return (
        f"{review.say_all(runs)} {be} equivalent to {leader}: the difference is shown to be less "
        f"than {ranking.equivalence:g}."
    )


def rows_more(review: Review) -> str:
    """Return the sentence on how many rows are needed to separate the leader from its rivals.

    The rivals are the other runs that may be the best. The sentence starts with the rival for which
    the fewest rows are needed.
    """
    ranking = review.ranking
    resolution = review.resolution
    if ranking is None or resolution is None or not counts_rows(ranking.evaluation):
        return ""
    open_runs = [run for run in ranking.runs[1:] if run.tied and math.isnan(run.equivalent_within)]
    names = [run.name for run in open_runs if run.name in resolution.errors]
    needed = {name: resolution.rows_more(name) for name in names}
    leader = review.say(ranking.leader.name)
    parts = [
        f"{_about_rows(more, resolution.rows)} for {review.say(name)}"
        for name, more in sorted(needed.items(), key=lambda item: item[1])
        if more > 0
    ]
    if not parts:
        return ""
    return (
        f"Additional rows needed to separate {leader} from another run with 80% power, if the "
        f"true differences equal the observed ones: {fmt.join_names(parts, 6)}."
    )


def rows_would_decide(review: Review) -> str:
    """Return a sentence on the number of rows that would decide between two runs, or "".

    The sentence is for the terminal, and is empty if there are more than two runs.
    """
    ranking = review.ranking
    resolution = review.resolution
    if ranking is None or resolution is None or not counts_rows(ranking.evaluation):
        return ""
    if len(ranking.runs) != 2 or len(ranking.tied) != 2 or review.tie_breakers:
        return ""
    more = resolution.rows_more(ranking.runs[1].name)
    if not more > 0:
        return ""
    number = fmt.capital(_about_rows(more, resolution.rows))
    noun = "more rows" if more < _MANY * resolution.rows else "in addition"
    return f"{number} {noun} would decide, if the difference is as seen (80% power)."


# -- ties: the choice among runs that may be the best ----------------------------------------------


def tie(review: Review, ranking: Ranking) -> list[str]:
    """Return the sentences on the choice among runs that may be the best.

    There are none if only one run may be the best, or on a Pareto front without a tie-breaker.
    """
    near = [entry for entry in ranking.standings if entry.within_margin]
    if len(ranking.tied) < 2 or (ranking.criterion.pareto and not review.tie_breakers):
        return []
    if ranking.decision.by is not None:
        return [_by_rule(review, ranking, near, ranking.decision.by)]
    alone = _by_score_alone(review, ranking)
    if not review.tie_breakers:
        return alone
    if len(near) == 1:
        return [_no_rule_used(ranking), *alone]
    return [_no_rule_decides(ranking, near, review.tie_breakers), *alone]


def _by_score_alone(review: Review, ranking: Ranking) -> list[str]:
    """Return the sentences that recommend a run that no tie-breaker chose; advice is last."""
    chosen = review.say(ranking.foremost.name)
    ties = len(ranking.tied)
    others = "the other" if ties == 2 else f"one of the other {fmt.in_words(ties - 1)}"
    reason = f"The only reason to prefer {chosen} is its score."
    if _shared(ranking):
        reason = f"You have no reason to prefer {chosen}."
    return [reason, f"If {others} is cheaper or simpler, take that one."]


def _run_times(review: Review, ranking: Ranking) -> str:
    """Return the logged times of the runs among which a reader may choose, shortest first."""
    if ranking.over or ranking.decision.by is not None or len(ranking.tied) < 2:
        return ""
    seconds = [(duration(run.run), run.name) for run in ranking.tied]
    logged = sorted((time, name) for time, name in seconds if time is not None)
    if len(logged) < 2:
        return ""
    shown = [f"{review.say(name)} {in_two_units(time)}" for time, name in logged]
    return f"Logged run times, including the evaluation: {fmt.join_names(shown, 6)}."


def _no_rule_used(ranking: Ranking) -> str:
    """Return the sentence on tie-breakers that were not used.

    The tie-breakers were not used because no other run is within the margin.
    """
    noun = ranking.noun
    others = len(ranking.tied) - 1
    untested = 0
    if not ranking.over and ranking.criterion.single:
        pairs = [entry for entry in ranking.tied if entry is not ranking.leader]
        untested = sum(not math.isfinite(entry.standard_error) for entry in pairs)
    if untested == others:
        who = f"the other {noun}"
        if others > 1:
            who = f"any of the {fmt.in_words(untested)} others"
        start = f"No standard error is known for the difference between {who} and the leader"
        return f"{start}, so no tie-breaker was used."
    start = f"The other {noun} is not"
    if others > 1:
        start = f"None of the {fmt.in_words(others)} others is"
    where = _near_words(ranking.margin, ranking.criterion)
    sentence = f"{start} {where}, so no tie-breaker was used."
    if untested:
        if not where.startswith("shown"):
            sentence = f"{start} shown to be {where}, so no tie-breaker was used."
        has = "has" if untested == 1 else "have"
        sentence += f" {fmt.capital(fmt.in_words(untested))} of them {has} no known standard error."
    return sentence


def _no_rule_decides(ranking: Ranking, near: Sequence[Ranked], rules: Sequence[str]) -> str:
    """Return the sentence on tie-breakers without effect, whose values are equal or missing."""
    them = f"The tie-breaker {rules[0]} does"
    if len(rules) > 1:
        them = f"The tie-breakers {fmt.join_names(rules, 6)} do"
    parsed = [TieBreaker.parse(rule, OPEN) for rule in rules]
    values = [rule.value(entry.run, entry.metrics) for rule in parsed for entry in near]
    why = "the values are equal or missing"
    if all(value is None for value in values):
        why = "all values are missing"
    where = _near_words(ranking.margin, ranking.criterion)
    return f"{them} not decide among the {len(near)} {ranking.noun}s {where}: {why}."


def _by_rule(review: Review, ranking: Ranking, near: Sequence[Ranked], rule: TieBreaker) -> str:
    """Return the sentences on the decisive tie-breaker, with its values.

    The sentences also name the runs that an earlier tie-breaker dropped.
    """
    values = ranking.decision.values
    place = ranking.decision.place
    others = [other for other in range(len(near)) if other != place]
    same = [other for other in others if values[other] == values[place]]
    keys = [place_of(rule, value, values) for value in values]
    worse = [other for other in others if other not in same and keys[other] >= keys[place]]
    earlier = [other for other in others if other not in same and other not in worse]
    names = [review.say(entry.name) for entry in near]
    texts = fmt.plain_numbers(values)
    shown = [f"{name} ({text})" for name, text in zip(names, texts, strict=True)]
    where = _near_words(ranking.margin, ranking.criterion)
    sentence = (
        f"Among the {len(near)} {ranking.noun}s {where}, the {_rule_title(rule)} decides: "
        f"{shown[place]}"
    )
    if worse:
        sentence += f" before {fmt.join_names([shown[other] for other in worse], 2)}"
    sentence += "."
    if earlier:
        dropped = fmt.join_names([names[other] for other in earlier])
        sentence += f" An earlier tie-breaker dropped {dropped}."
    if same:
        has = "has" if len(same) == 1 else "have"
        equal = fmt.join_names([names[other] for other in same])
        sentence += f" {equal} {has} the same value, so {names[place]} is chosen for its score."
    return sentence


# -- segments --------------------------------------------------------------------------------------


def by_segment(review: Review) -> list[str]:
    """Return sentences on runs that are better overall but worse in some segments."""
    single = review.criterion.single
    pairs = list(review.comparison.segments)
    several_columns = len({pair.column for pair in pairs}) > 1
    tied = [] if review.ranking is None else [run.name for run in review.ranking.tied]
    sentences = []
    for pair in pairs:
        unsure = single and pair.second in tied
        sentences.append(
            segment_sentence(
                pair, review.say, unsure=unsure, single=single, several=several_columns
            )
        )
    return list(filter(None, sentences))


def segment_sentence(
    pair: SegmentDifferences, say: Say, *, unsure: bool, single: bool, several: bool
) -> str:
    """Return the sentence on two runs whose order is reversed in some segments.

    An example is "“B” is better overall than “A”, but worse for “south” (difference −0.080 [−0.140,
    −0.020], Gail–Simon p = 0.010)." The sentence is empty if no segment reverses the order of the
    runs.

    ``unsure``: whether the difference over all rows is not significant.
    ``single``: whether there is only one metric, in which case the sentence does not name the
        metric.
    ``several``: whether there are several columns, in which case the sentence names the column.
    """
    if not pair.contrary:
        return ""
    by = "" if single else f"By {fmt.metric_title(pair.metric, catalog=pair.catalog)}, "
    column = f" of {quoted(pair.column)}" if several else ""
    shown = []
    for k in pair.contrary:
        ends = (float(pair.low[k]), float(pair.high[k]))
        gap = f"difference {fmt.signed(float(pair.differences[k]), ends)}"
        shown.append((f"{quoted(pair.segments[k])}{column}", gap))
    p = f"Gail–Simon {fmt.p_equals(pair.p_adjusted)}"
    if len(shown) == 1:
        listed = f"{shown[0][0]} ({shown[0][1]}, {p})"
    else:
        names = [f"{segment} ({gap})" for segment, gap in shown]
        listed = f"{fmt.join_names(names, MAX_SEGMENTS)}; {p}"
    ways = ("better", "worse") if pair.gain > 0 else ("worse", "better")
    overall = f"{ways[0]} overall than {say(pair.second)}"
    if unsure:
        overall += " (not significantly)"
    return f"{by}{say(pair.first)} is {overall}, but {ways[1]} for {listed}."


def segment_test(pairs: Sequence[SegmentDifferences], say: Say) -> str:
    """Return the sentence on the Gail–Simon tests of pairs of runs for one column and metric.

    The tests show whether a run is better in some segments and worse in others. The sentence is
    empty if there is no test.
    """
    tests = [
        f"{fmt.p_equals(p.p_adjusted)} for {say(p.second)}"
        for p in pairs
        if math.isfinite(p.p_adjusted)
    ]
    if not tests:
        return ""
    source = "Gail and Simon 1985"
    if len(tests) > 1:
        source += ", adjusted by Holm"
    listed = fmt.join_names(tests, len(tests))
    return (
        f"A test checks if {say(pairs[0].first)} is better in some segments and worse in others "
        f"({source}): {listed}."
    )


def segment_reading(pairs: Sequence[SegmentDifferences], say: Say) -> str:
    """Return how to read differences by segment, and why some of them are not paired by row."""
    reading = (
        f"Brackets show {fmt.level(pairs[0].confidence_level)} intervals of the differences, which "
        "hold for all segments and runs of this table together."
    )
    for reason in dict.fromkeys(pair.reason for pair in pairs if pair.reason):
        names = fmt.join_names(
            list(dict.fromkeys(say(pair.second) for pair in pairs if pair.reason == reason))
        )
        reading += (
            f" Not compared row by row with {names}: {reason}. "
            "So the intervals are wider than necessary."
        )
    return reading


def segment_table_reading(review: Review, pairs: Sequence[SegmentDifferences], n_shown: int) -> str:
    """Return the instructions for reading a page's table of segments."""
    first = pairs[0]
    text = f"The worst segments of {review.say(first.first)} come first."
    if n_shown < len(first.segments):
        text += f" The table shows {n_shown} of {len(first.segments)}; see the JSON file for all."
    for mark in sorted({"better" if pair.gain < 0 else "worse" for pair in pairs if pair.contrary}):
        other = "worse" if mark == "better" else "better"
        text += (
            f" “{mark}” marks a segment in which the leader is shown to be {mark} than a run, "
            f"although it is {other} overall."
        )
    return _joined(text, segment_test(pairs, review.say), segment_reading(pairs, review.say))


# -- gates, and runs that are not ranked or not paired ---------------------------------------------


def _stopped_briefly(review: Review) -> list[str]:
    """Return the sentence that counts the runs that fail a gate; a table shows their values."""
    failed = len(review.comparison.failed)
    if not failed:
        return []
    are = "fails a gate and is" if failed == 1 else "fail a gate and are"
    return [f"{fmt.counted(failed, review.noun)} {are} not ranked."]


def stopped(review: Review) -> list[str]:
    """Return the sentences on failed gates, with the values of the runs that fail them."""
    sentences = []
    for gate in review.comparison.gates:
        failing = [
            (s.name, r)
            for s in review.comparison.failed
            for r in s.gates
            if r.gate == gate and not r.passed
        ]
        if len(failing) == 1:
            sentences.append(f"{review.say(failing[0][0])} fails the gate {failing[0][1]}.")
        elif failing:
            texts = [f"{review.say(name)} ({result.found})" for name, result in failing]
            sentences.append(
                f"{len(failing)} {review.noun}s fail the gate {gate.text}: "
                f"{fmt.join_names(texts, 2)}."
            )
    return sentences


def left_out(review: Review) -> list[str]:
    """Return the sentences on runs that could not be ranked, with one sentence for each reason."""
    sentences = []
    for head, last in (("Last", True), ("Not ranked", False)):
        reasons = fmt.by_reason(
            (review.say(one.run.name), _reason(one))
            for one in review.comparison.left_out
            if one.last == last
        )
        sentences += [
            f"{head}: {fmt.join_names(names, 4)} ({reason})." for reason, names in reasons.items()
        ]
    return sentences


def _reason(unranked: LeftOut) -> str:
    """Return the reason why a run is not ranked, without the run's id so that runs can share it."""
    run_id = unranked.run.run_id
    return (
        unranked.reason.replace(f"run {run_id}", "the run") if run_id else unranked.reason
    ).rstrip(".")


def passed_over(review: Review) -> str:
    """Return the sentence on runs that were not read because their logged values are worse."""
    runs = review.comparison.passed_over
    if not runs:
        return ""
    return f"Not read, because their logged values are worse (limit): {review.say_all(runs)}."


def unpaired(review: Review, ranking: Ranking) -> str:
    """Return the sentences on runs whose differences are not paired, and on the consequences."""
    runs = [run for run in ranking.runs if run.unpaired]
    reasons = fmt.by_reason((review.say(run.name), run.unpaired) for run in runs)
    if not reasons:
        return ""
    who = "; ".join(f"{fmt.join_names(names)} ({reason})" for reason, names in reasons.items())
    if len(runs) == len(ranking.runs) and len(reasons) == 1:
        who = f"all runs ({runs[0].unpaired})"
    text = f"Not compared row by row: {who}."
    if any(math.isfinite(run.low) for run in runs):
        text += (
            " Their standard errors are treated as independent. So the differences look less "
            "certain than they are, and the tests may miss a real difference."
        )
    return text


# -- notes -----------------------------------------------------------------------------------------


def further(review: Review, *, beside_tables: bool = False) -> list[str]:
    """Return notes on other rankings, on runs without a rank, and on the comparison itself."""
    notes = []
    if review.comparison.best is not None:
        notes = [_other(review, place) for place in range(1, len(review.rankings))]
    notes += [*break_evens(review), positives(review), *identical(review)]
    if not beside_tables:
        notes += [*left_out(review), passed_over(review)]
    for note in review.comparison.notes:
        if note not in review.why_apart:
            notes.append(note if note.endswith(".") else f"{note}.")
    return list(filter(None, notes))


def break_evens(review: Review) -> list[str]:
    """Return sentences on the cost of a miss at which the cheaper of two runs changes.

    Costs depend on predicted labels, which are the result of one threshold. The function therefore
    returns no sentences if no metric of the criterion uses predicted labels. Runs that predict only
    one class are ignored.
    """
    ranking = review.run_ranking
    if ranking is None or not _reads_labels(review.criterion):
        return []
    sentences = []
    alike = []
    names = review.names
    taken = ranking.foremost
    others = [run for run in ranking.runs if run is not taken]
    for other in others[:RIVALS]:
        cost_ratio = _break_even(other.evaluation, taken.evaluation, ranking.confidence_level)
        if cost_ratio is None:
            continue
        if cost_ratio.told_apart or cost_ratio.false_alarms == cost_ratio.misses == 0:
            sentences.append(cost_ratio.sentence(names[other.name], names[taken.name]))
        else:
            alike.append(quoted(names[other.name]))
    if alike:
        sentences.append(
            f"Whatever a missed positive costs, the errors of {quoted(names[taken.name])} are not "
            f"shown to be cheaper or more expensive than those of {' or '.join(alike)}."
        )
    if sentences and len(others) > RIVALS:
        sentences.append(f"Costs of errors are compared only with the {RIVALS} best other runs.")
    return sentences


def _break_even(
    theirs: BaseEvaluation, ours: BaseEvaluation, confidence_level: float
) -> BreakEven | None:
    """Return the cost of a miss at which two runs cost the same.

    Returns None if there is no break-even cost, or if a run predicts only one class.
    """
    if not (isinstance(theirs, Evaluation) and isinstance(ours, Evaluation)):
        return None
    if why_no_break_even(theirs, ours) or _predicts_one_side(theirs) or _predicts_one_side(ours):
        return None
    return break_even(theirs, ours, confidence_level=confidence_level)


def _reads_labels(criterion: Criterion) -> bool:
    """Return whether a metric of the criterion uses predicted labels, not only scores."""
    return any(
        criterion.catalog.lookup(name).needs != "probabilities" for name in criterion.metrics
    )


def _predicts_one_side(evaluation: Evaluation) -> bool:
    """Return whether an evaluation of two groups or classes never predicts one of them."""
    cells = evaluation.binary
    return cells is not None and 0 in (cells.predicted_positives, cells.predicted_negatives)


def positives(review: Review) -> str:
    """Return a warning if the positive groups of the runs differ.

    The text is empty if the positive groups are the same.
    """
    by_group = fmt.by_reason(
        (review.say(run.name), quoted(run.evaluation.positive))
        for run in review.comparison.runs
        if run.evaluation.positive is not None
    )
    if len(by_group) < 2:
        return ""
    groups = "; ".join(
        f"{positive} in {fmt.join_names(names)}" for positive, names in by_group.items()
    )
    return (
        f"The runs have different positive groups: {groups}. Their binary/… metrics answer "
        "different questions. Do not compare them, neither here nor in MLflow's charts."
    )


def identical(review: Review) -> list[str]:
    """Return sentences on runs in a ranking that have identical predictions."""
    if review.comparison.repeated:
        return []
    groups = [group for ranking in review.rankings for group in _identical(ranking.runs)]
    return [f"{review.say_all(group)} have identical predictions." for group in groups]


def _identical(runs: Sequence[Ranked]) -> list[list[Ranked]]:
    groups: list[list[Ranked]] = []
    for run in runs:
        home = next((group for group in groups if _same(group[0], run)), None)
        if home is None:
            groups.append(home := [])
        home.append(run)
    return [group for group in groups if len(group) > 1]


def _same(first: Ranked, second: Ranked) -> bool:
    a = first.evaluation.rows
    b = second.evaluation.rows
    if not (isinstance(a, Predictions) and isinstance(b, Predictions)):
        return False
    if first.value != second.value or first.evaluation.labels != second.evaluation.labels:
        return False
    if not np.array_equal(a.predicted, b.predicted):
        return False
    if a.probabilities is None or b.probabilities is None:
        return a.probabilities is b.probabilities
    return np.array_equal(a.probabilities, b.probabilities)


# -- how a review was made: its title, its facts, its rule and its methods -------------------------


def title(review: Review) -> str:
    """Return the title of a review, which includes the assumed class shares."""
    text = f"Review by {review.title}"
    if review.assumed:
        text += f", {review.assumed[0].lower()}{review.assumed[1:]}"
    return text


def facts(review: Review) -> list[str]:
    """Return short facts about the compared runs, their data and the criterion."""
    comparison = review.comparison
    ranking = review.ranking
    facts = []
    if len(comparison.rankings) > 1:
        runs = fmt.counted(len(comparison.runs), "run")
        facts.append(f"{runs} in {len(comparison.rankings)} rankings")
    elif ranking is not None:
        facts.append(heading(review, 0))
        unranked = [one.run for one in comparison.left_out]
        if unranked and not comparison.repeated:
            facts.append(f"not ranked: {review.say_all(unranked)}")
    if ranking is not None:
        facts += _facts_of_data(review, ranking.evaluation)
    if review.judged_at:
        facts.append(review.judged_at)
    criterion = comparison.criterion
    facts.append(f"ranked by {criterion_title(criterion)} ({direction(criterion)})")
    facts.append(f"{review.level} level")
    if review.run_ranking is not None and len(comparison.rankings[0].runs) > 1:
        facts.append(_fact_of_pairs(review.run_ranking))
    return facts


def _facts_of_data(review: Review, evaluation: BaseEvaluation) -> list[str]:
    """Return facts about the classes, the grouping and the positive group of a ranking."""
    noun = "class" if isinstance(evaluation, Evaluation) else "code"
    facts = [fmt.counted(len(evaluation.labels), noun)]
    if evaluation.grouping is not None:
        designs = [dict(run.evaluation.design) for run in review.comparison.runs]
        same = len({design.get("grouping") for design in designs}) < 2
        groups = fmt.short(evaluation.grouping.describe(), _GROUPS)
        facts.append(f"groups: {groups}" if same else "groupings differ")
        if same and "(strict)" in groups:
            facts.append("strict: another member of the group is a mismatch")
    if review.positive is not None:
        facts.append(f"positive group {quoted(review.positive)}")
    return facts


def _fact_of_pairs(ranking: Ranking) -> str:
    """Return text that states how many runs are compared row by row."""
    if ranking.paired:
        return "compared row by row"
    paired = sum(not run.unpaired for run in ranking.runs)
    some = f"{paired} of {len(ranking.runs)}" if paired else "not"
    return f"{some} compared row by row"


def rule(review: Review) -> str:
    """Return the sentences on the rule that chooses a run or a model."""
    comparison = review.comparison
    noun = review.noun
    alpha = significant(1 - comparison.confidence_level)
    test = "being the best"
    if noun == "model":
        test = "the difference from the leader, adjusted for all pairs,"
    sentence = (
        f"A {noun} is {RULED_OUT} if the p-value for {test} is at most {alpha}. "
        f"Any other {noun} {MAY_BE_BEST}."
    )
    best = f"the {noun} with the best value"
    if comparison.criterion.pareto:
        sentence = (
            "A run is dominated if another run is at least as good in every metric and better in "
            "one."
        )
        best = "the run on the front with the best first metric"
    if not comparison.how.get("tie_breakers"):
        return f"{sentence} Without a tie-breaker, {best} comes first."
    where = _near_words(comparison.how.get("margin"), comparison.criterion)
    return f"{sentence} The tie-breakers choose among the {noun}s {where}."


def explained(level: float, noun: str = "run") -> str:
    """Return text that explains "may be the best" and "ruled out" for runs or models."""
    if noun == "model":
        test = f"p, adjusted for all pairs of models, is at most {significant(1 - level)}"
        return f"A model is {RULED_OUT} if {test}. Any other model {MAY_BE_BEST}."
    return (
        f"A run is {RULED_OUT} if p is at most {significant(1 - level)}. p is not the "
        "probability of being the best. The interval of a ruled-out run touches 0, because the "
        "test is one-sided; so does the leader's if all others are ruled out. Any other run "
        f"{MAY_BE_BEST}."
    )


def _error_rate(level: float) -> str:
    """Return the sentences on how often the truly best run is ruled out."""
    return (
        f"The truly best run is wrongly ruled out in at most {fmt.level(1 - level)} of reviews. If "
        "several runs are equally good, this limit holds for each of them, so one of them is ruled "
        "out more often."
    )


def reading(review: Review) -> str:
    """Return the instructions for reading the table of a ranking."""
    comparison = review.comparison
    if comparison.criterion.pareto:
        return (
            f"Brackets show {review.level} intervals. # is the number of the Pareto front. "
            "Runs on front 1 are not dominated."
        )
    simultaneous = "simultaneous " if comparison.repeated else ""
    text = f"Brackets show {simultaneous}{review.level} intervals."
    # Add a remark on intervals that allow for selection.
    picked = [sum(run.picked for run in ranking.runs) for ranking in comparison.rankings]
    most = max(picked, default=0)
    if most:
        text += f" {SELECTED[most > 1]}."
    if len(comparison.standings) > 1:
        text += f" {explained(comparison.confidence_level, review.noun)}"
    return _joined(text, _equal_values(review), _on_mismatches(review))


def _equal_values(review: Review) -> str:
    """Return the sentence on runs with equal values but different p-values, if there are any."""
    ranking = review.run_ranking
    if ranking is None:
        return ""
    for first, second in pairwise(ranking.runs):
        if first.rank == second.rank > 1 and first.p_set != second.p_set:
            return "Runs with equal values can differ in p, as they err in different rows."
    return ""


def _on_mismatches(review: Review) -> str:
    """Return the sentence on mismatches, which do not lower the Matthews correlation."""
    if "binary/matthews_corrcoef" not in review.criterion.metrics:
        return ""
    evaluations = [run.evaluation for run in review.comparison.runs]
    most, evaluation = max(
        ((n_mismatches(one), one) for one in evaluations if isinstance(one, Evaluation)),
        key=lambda pair: pair[0],
        default=(0, None),
    )
    if not most or evaluation is None:
        return ""
    return (
        f"Predicting {other_within(evaluation, evaluation.reduced[-1].name)} within the correct "
        f"group (at most {fmt.counted(most, 'row')} of a run) is an error in recall, precision and "
        "accuracy, but not in the Matthews correlation."
    )


def warnings(review: Review) -> list[dict[str, str]]:
    """Return the warnings that concern the ranking and their runs, the most frequent first.

    The report of a run shows all of its warnings.
    """
    runs = review.comparison.runs
    pairs = []
    for run in runs:
        keys = {question_of_metric(run.evaluation, name) for name in review.criterion.metrics}
        pairs += [
            (review.say(run.name), warning)
            for key in ("", *sorted(keys))
            for warning in warnings_about(run.evaluation, key)
        ]
    return [
        {"text": text, "runs": _who(names, len(runs))}
        for text, names in fmt.by_reason(pairs).items()
    ]


def _who(names: list[str], of: int) -> str:
    if len(names) == of:
        return "the run" if of == 1 else f"all {of} runs"
    return some_of(names, 6)


def methods(review: Review) -> list[str]:
    """Return short notes on how the numbers are computed, with references."""
    comparison = review.comparison
    notes = []
    evaluations = [run.evaluation for run in comparison.runs]
    costs = {one.costs for one in evaluations if isinstance(one, Evaluation)}
    if len(costs) == 1:
        (shared,) = costs
        if shared is not None:
            notes.append(f"The costs: {fmt.short(shared.describe(), 600)}.")
    if comparison.repeated is not None:
        return [*notes, *_methods_of_models(review, comparison.repeated)]
    return [*notes, *_methods_of_runs(review)]


def _methods_of_models(review: Review, ranking: RepeatedRanking) -> list[str]:
    comparison = review.comparison
    return [
        *(note for note in ranking.result.notes if note not in comparison.notes),
        f"{explained(comparison.confidence_level, 'model')} p tests the difference from the "
        f"leader (Holm). The {review.level} intervals of the differences hold for all pairs "
        "together (Bonferroni). They are wider than the test needs, so they may include 0.",
        "Sources: Nadeau and Bengio (2003) for folds; Holm (1979).",
    ]


def _methods_of_runs(review: Review) -> list[str]:
    comparison = review.comparison
    notes = [
        f"{_error_rate(comparison.confidence_level)} p comes from a two-step procedure of "
        "multiple comparisons with the best (Hsu 1984, 1996; Edwards and Hsu 1983). In the second "
        "step, runs that are clearly not the best no longer count as rivals (Romano, Shaikh and "
        "Wolf 2014). With few rows or clusters, tests and intervals use Student's t distribution. "
        "Runs that may be the best are not necessarily equally good.",
    ]
    if comparison.criterion.pareto:
        notes = [
            "A run is dominated if another run is at least as good in every metric and better in "
            "one. The fronts follow from the values alone. Differences are not tested."
        ]
    else:
        notes += [
            f"The {review.level} intervals cover the true difference from the best other run, "
            "whichever it is, and hold for all runs together (Hsu 1984). The number before them is "
            "the leader's lead over the next run, or the gap of another run to the leader. See the "
            "JSON file for the p-value of each pair of runs, adjusted by max-T (Westfall and Young "
            "1993) and by Holm (1979).",
            "The leader's interval takes the selection of the leader into account: the limit on "
            "the worse side holds for all runs together, including runs that were not read because "
            "of limit (after Fuentes, Casella and Wells 2018). If the chosen run does not lead, "
            "both limits of its interval hold for all runs together.",
            _margin(comparison.how.get("margin")),
        ]
    if comparison.criterion.direction == "nearest zero" and comparison.criterion.single:
        notes.append("Each difference compares two distances from zero.")
    notes.append(
        "If the predictions of each row are stored, standard errors use the influence of each test "
        "row, so errors that the runs share cancel out. Do not compare runs by "
        "checking whether their intervals overlap."
    )
    return notes


def _margin(margin: float | None) -> str:
    """Return the sentence on the runs among which a tie-breaker may choose."""
    rule = (
        "at most one standard error (of the paired difference) from the leader "
        "(Breiman, Friedman, Olshen and Stone 1984)"
    )
    if margin is not None:
        rule = (
            f"shown not to be worse than the best by more than {margin:g} (non-inferiority): the "
            f"interval of the difference from the best other run does not exceed {margin:g} on the "
            "worse side"
        )
    return f"A tie-breaker chooses only among runs that may be the best and are {rule}."


# -- phrases ---------------------------------------------------------------------------------------


def _gap_words(difference: float, ends: tuple[float, float], direction: str, name: str) -> str:
    """Return a difference such as "0.019 lower than “A” [−0.049, 0.012]".

    The interval refers to the signed difference.
    """
    if difference == 0:
        return f"equal to {name} {fmt.interval(difference, ends)}".rstrip()
    shown = fmt.number(abs(difference), ends if all(map(math.isfinite, ends)) else None)
    way = "lower than" if difference < 0 else "higher than"
    if direction == "nearest zero":
        way = "closer to zero than" if difference < 0 else "farther from zero than"
    return f"{shown} {way} {name} {fmt.interval(difference, ends)}".rstrip()


def _about_rows(more: float, rows: float) -> str:
    """Return a number of rows, rounded to two digits, such as "about 1,400".

    Very large numbers are written as a multiple of the present number of rows.
    """
    if more < _MANY * rows:
        return f"about {significant(more, 2)}"
    return f"over {_MANY:,} times these rows"


def _near_words(margin: float | None, criterion: Criterion) -> str:
    """Return words for the runs that are within the margin of a tie-breaker."""
    if criterion.pareto:
        return "on the Pareto front"
    if margin is None:
        return "within one standard error of the leader"
    return f"shown not to be worse than the best by more than {margin:g}"


def _rule_title(rule: TieBreaker) -> str:
    """Return a tie-breaker in words, such as "smallest params.depth" or "largest accuracy"."""
    if rule.nearest_zero:
        return f"{rule.title} nearest zero"
    return f"largest {rule.title}" if rule.descending else f"smallest {rule.title}"


def _joined(*sentences: str) -> str:
    return " ".join(filter(None, sentences))
