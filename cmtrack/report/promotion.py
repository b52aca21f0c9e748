"""Sentences and the table of a promotion, for the terminal, a pipeline's summary and MLflow."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from cmtrack.comparison.promotion import MOST_LOOKS, Challenge, Promotion, is_joined
from cmtrack.comparison.promotion_record import PairFacts, PromotionRecord
from cmtrack.comparison.verdict import Answer
from cmtrack.digits import significant
from cmtrack.evaluation.catalog import BUILT_IN
from cmtrack.evaluation.gates import Gate, GateOutcome, GateResult
from cmtrack.metrics.catalog import Catalog
from cmtrack.names import quoted
from cmtrack.report import formatting as fmt
from cmtrack.report.assertions import MANY, rows_would_decide
from cmtrack.untrusted import for_page

ANSWERS = {
    GateOutcome.HOLDS: "holds",
    GateOutcome.REFUTED: "does not hold",
    GateOutcome.OPEN: "cannot tell",
}
"""The word for each outcome of a gate."""
CHANCES = (0.0536, 0.0731)
"""Largest probability that a challenger that is no better is promoted in one of three looks.

The first number is for months of similar size, the second for months of any sizes. Both are for a
rule that requires an interval of at least 95% to be on the better side of 0.
"""
LEVEL = 0.95
"""The level of intervals if the rule states no other level."""


class GateRow(NamedTuple):
    """A row of the table of gates, in words."""

    version: str
    required: str
    found: str
    answer: str


# -- sentences -------------------------------------------------------------------------------------


def headline(promotion: Promotion) -> str:
    """Return the first sentence: the answer and the reason for it."""
    record = promotion.record
    if _is_forced(promotion):
        return _forced(promotion)
    word = _answer_word(promotion)
    if promotion.answer is Answer.KEEP:
        word = f"Keep version {record.champion}"
    return f"{word}: {_reason(promotion)}."


def title(promotion: Promotion) -> str:
    """Return a heading with the answer, the versions, the alias and the model."""
    record = promotion.record
    place = f"{record.alias} of {record.model}"
    if _is_forced(promotion):
        return f"By force: version {promotion.version} is {place}"
    challengers = _versions(record.challengers)
    return f"{_answer_word(promotion)}: {challengers} against version {record.champion}, {place}"


def sentences(promotion: Promotion) -> Iterator[str]:
    """Yield the paragraphs of a promotion, without the table."""
    yield headline(promotion)
    yield from _evidence(promotion)


def difference_sentence(challenge: Challenge, record: PromotionRecord, catalog: Catalog) -> str:
    """Return a sentence on the difference in the rule's metric, with its interval and rows.

    The first letter is small, so that the sentence can follow a colon.
    """
    pair = _deciding(challenge, record)
    if record.rows is None:
        return ""
    if challenge.looks:
        return _joined_sentence(challenge, record, catalog)
    rows = f"on the same {fmt.counted(record.rows.n, 'row')} of {quoted(record.rows.name)}"
    undefined = _undefined(challenge, record, catalog)
    if undefined:
        return f"{undefined} {rows}."
    text = in_words(pair, catalog)
    if pair.counts is None:
        return f"{text} {rows}."
    only_new, only_old, _, n = pair.counts
    if only_new == only_old == 0:
        return (
            f"{_name(pair, catalog)} is equal: each of its {fmt.counted(n, 'row')} is correct for "
            "both versions or for neither."
        )
    return (
        f"{text} {rows}: only version {pair.new} is correct on {fmt.count(only_new)}, only version "
        f"{pair.old} on {fmt.count(only_old)}."
    )


def in_words(pair: PairFacts, catalog: Catalog = BUILT_IN) -> str:
    """Return a difference in words, such as "accuracy is 1.8 percentage points higher [1.0, 2.6]".

    The limits keep their signs.
    """
    name = _name(pair, catalog)
    if not math.isfinite(pair.difference):
        return f"{name} is undefined for one of the versions"
    value, bracket, interval = size_of(pair, catalog).partition(" [")
    if pair.difference == 0:
        return f"{name} differs by {value}{bracket}{interval}"
    word = "higher" if pair.difference > 0 else "lower"
    return f"{name} is {value.lstrip('−')} {word}{bracket}{interval}"


def size_of(pair: PairFacts, catalog: Catalog = BUILT_IN) -> str:
    """Return a difference with its interval; of a share, in percentage points."""
    ends = (pair.low, pair.high)
    if catalog.lookup(pair.metric).interval == "wilson":
        return fmt.points(pair.difference, ends)
    return fmt.with_interval(pair.difference, ends)


def more_rows(challenge: Challenge, promotion: Promotion) -> str:
    """Return a sentence on the number of rows that would decide; empty if unknown."""
    record = promotion.record
    more = challenge.rows_more
    if record.rows is None or challenge.answer is not Answer.CANNOT_TELL or not math.isfinite(more):
        return ""
    n = record.rows.n
    is_of_joined = any(
        is_joined(check.gate) for check in challenge.checks if check.rows_more == more
    )
    if not is_of_joined:
        if more > MANY * n:
            return f"A month of more than {MANY} times these rows would be needed to decide."
        return f"A month of about {significant(n + more, 2)} rows would decide."
    comparison = promotion.comparison
    if comparison is None or not comparison.runs:
        return ""
    words = rows_would_decide(more, comparison.runs[0].evaluation)
    if not words:
        return ""
    return f"{fmt.capital(words)}, if the difference is as seen (80% power)."


def look_sentence(promotion: Promotion) -> str:
    """Return a sentence on the number of looks, and on the chance of a false promotion.

    The chance is stated only if the rule requires that the challenger is shown to be better.
    """
    challenges = promotion.challenges
    if not challenges or _is_forced(promotion):
        return ""
    by_look: dict[int, list[str]] = {}
    for challenge in challenges:
        by_look.setdefault(challenge.look, []).append(challenge.version)
    places = [f"{look} of {MOST_LOOKS} at {_versions(names)}" for look, names in by_look.items()]
    text = f"Look {fmt.join_names(places)}."
    if not requires_improvement(promotion.record, _catalog(promotion)):
        return text
    similar, any_sizes = (f"{100 * chance:.1f}%" for chance in CHANCES)
    subject = "it" if len(challenges) == 1 else "a challenger"
    looks = f"{fmt.in_words(MOST_LOOKS)} looks"
    return (
        f"{text} If {subject} were no better, its chance to be promoted over {looks} would be at "
        f"most {similar} ({any_sizes} if months differ much in size)."
    )


def moved_sentence(promotion: Promotion) -> str:
    """Return a sentence on the alias: moved from one version to another, or not moved."""
    record = promotion.record
    address = f"models:/{record.model}@{record.alias}"
    if promotion.moved and record.champion is None:
        return f"{address} is now version {record.chosen}."
    if promotion.moved:
        return f"{address} moved from version {record.champion} to version {record.chosen}."
    if record.chosen is not None and promotion.run_id:
        return f"{address} was not moved. Repeat the command with --move to move it."
    return ""


def record_sentence(promotion: Promotion, experiment: str) -> str:
    """Return a sentence on the recorded run and its digests; empty if nothing was recorded.

    ``experiment``: name of the experiment.
    """
    if not promotion.run_id:
        return ""
    facts = [f"run {fmt.short_id(promotion.run_id)} in {quoted(experiment)}"]
    facts.append(f"SHA-256 {promotion.sha256[:8]}…")
    if promotion.record.bundle is not None:
        facts.append(f"bundle SHA-256 {promotion.record.bundle[:8]}…")
    return f"Record: {', '.join(facts)}."


def chosen_before(record: PromotionRecord) -> str:
    """Return a note that the rows of a record chose a version."""
    return f"These rows chose version {record.chosen} on {record.made[:10]}: they favor it."


def verdict_in_short(promotion: Promotion, version: str) -> str:
    """Return a line on one version for its tag in the registry."""
    record = promotion.record
    facts = record.models[version]
    day = record.made[:10]
    if record.forced is not None:
        return f"{record.alias} by force on {day}: {record.forced}"
    answer = "" if facts.answer is None else facts.answer.value
    challenge = next((one for one in promotion.challenges if one.version == version), None)
    if challenge is None or record.rows is None:
        return f"{answer} on {day}"
    pair = _deciding(challenge, record)
    text = _undefined(challenge, record, _catalog(promotion))
    if not text:
        text = f"{in_words(pair, _catalog(promotion))} than with version {pair.old}"
    n = record.rows.n + sum(count for count, _ in _earlier_rows(challenge))
    return f"{answer} on {day}: {text} on {fmt.counted(n, 'row')}"


def gate_rows(promotion: Promotion) -> list[GateRow]:
    """Return the rows of the table of gates."""
    return [
        GateRow(challenge.version, check.gate.text, check.found, ANSWERS[check.outcome])
        for challenge in promotion.challenges
        for check in challenge.checks
    ]


# -- Markdown --------------------------------------------------------------------------------------


def promotion_markdown(promotion: Promotion, review: str = "", *, with_alias: bool = True) -> str:
    """Return a promotion as Markdown.

    ``review``: address of the review's page.
    ``with_alias``: whether to say if the alias moved, which is unknown before the move.
    """
    lines = [f"### {fmt.markdown_text(title(promotion))}"]
    first = headline(promotion)
    if not _is_forced(promotion):
        first = f"{fmt.capital(_reason(promotion))}."
    texts = list(_evidence(promotion))
    if len(promotion.challenges) == 1:
        texts = [" ".join([first, *texts])]
    else:
        texts.insert(0, first)
    lines += _paragraphs(texts)
    rows = gate_rows(promotion)
    has_versions = len(promotion.challenges) > 1
    if rows:
        heads = ["required", "found", ""]
        cells = []
        for row in rows:
            answer = row.answer if row.answer == "holds" else f"**{row.answer}**"
            cells.append(
                [fmt.markdown_code(row.required), fmt.markdown_sentence(row.found), answer]
            )
            if has_versions:
                cells[-1].insert(0, row.version)
        if has_versions:
            heads.insert(0, "version")
        lines += ["", *fmt.markdown_table(heads, cells)]
    last = [*promotion.notes, look_sentence(promotion)]
    if with_alias:
        last.insert(0, moved_sentence(promotion))
    lines += _paragraphs(last)
    facts = _facts(promotion, review)
    if facts:
        lines += ["", " ".join(facts)]
    return "\n".join(lines) + "\n"


def comment_markdown(promotion: Promotion, review: str = "") -> str:
    """Return a comment for a pull request, with a marker by which it is found and updated."""
    record = promotion.record
    name = for_page(html.escape(f"{record.model}@{record.alias}"))
    return f"<!-- cmtrack promote {name} -->\n{promotion_markdown(promotion, review)}"


def _paragraphs(texts: Iterable[str]) -> list[str]:
    """Return lines with an empty line before each text."""
    lines = []
    for text in texts:
        if text:
            lines += ["", fmt.markdown_sentence(text)]
    return lines


def _facts(promotion: Promotion, review: str) -> list[str]:
    """Return the rule, the review and the digest of the record."""
    facts = []
    rule = promotion.record.rule
    if rule is not None:
        name = "Rule" if rule.file is None else f"Rule {fmt.markdown_code(rule.file)}"
        facts.append(f"{name}: SHA-256 {rule.sha256[:8]}….")
    if review:
        facts.append(f"[Review](<{review}>).")
    if promotion.sha256:
        # A shorter digest could be forged by trying many records.
        facts.append(f"Record: SHA-256 `{promotion.sha256}`.")
    return facts


# -- reasons ---------------------------------------------------------------------------------------


def _is_forced(promotion: Promotion) -> bool:
    return promotion.answer is None or promotion.record.forced is not None


def _answer_word(promotion: Promotion) -> str:
    return "" if promotion.answer is None else fmt.capital(promotion.answer.value)


def _forced(promotion: Promotion) -> str:
    """Return the first sentence of a move by force."""
    record = promotion.record
    if record.champion is None:
        text = f"Version {promotion.version} is {record.alias} by force"
    else:
        text = (
            f"Version {promotion.version} replaces version {record.champion} as {record.alias} by "
            "force"
        )
    text = f"{text}: {record.forced}."
    if promotion.answer is None:
        return text
    return f"{text} The answer of the rule is “{promotion.answer.value}”."


def _reason(promotion: Promotion) -> str:
    """Return the reason for the answer, as a clause that follows a colon."""
    record = promotion.record
    challenges = promotion.challenges
    if promotion.answer is Answer.PROMOTE:
        verb = "replaces" if promotion.moved else "may replace"
        return f"version {promotion.version} {verb} version {record.champion} as {record.alias}"
    reasons = [
        _Reason.of(challenge, record, _catalog(promotion))
        for challenge in challenges
        if challenge.answer is promotion.answer
    ]
    if len(challenges) == 1:
        return reasons[0].text
    if promotion.answer is Answer.CANNOT_TELL:
        if all(reason.is_on_difference for reason in reasons):
            return f"no challenger is shown to be better than version {record.champion}"
        return "no challenger is shown to meet all requirements"
    if all(reason.is_on_difference for reason in reasons):
        names = [challenge.version for challenge in challenges]
        return f"{_versions(names)} are worse"
    return "no challenger is shown to meet all requirements"


class _Reason(NamedTuple):
    """Reason why a challenger is not promoted.

    ``is_on_difference``: whether the reason is that the challenger is worse, or may be better or
    worse, in the metric of the rule.
    """

    text: str
    is_on_difference: bool = False

    @classmethod
    def of(cls, challenge: Challenge, record: PromotionRecord, catalog: Catalog) -> _Reason:
        """Return the reason for "keep" or "cannot tell"."""
        version = challenge.version
        champion = challenge.champion
        pair = _deciding(challenge, record)
        if challenge.is_closed:
            months = f"{fmt.in_words(MOST_LOOKS)} months"
            return cls(f"{months} did not show that version {version} is better")
        failing = GateOutcome.REFUTED
        if challenge.answer is Answer.CANNOT_TELL:
            failing = GateOutcome.OPEN
        unmet = [check for check in challenge.checks if check.outcome is failing]
        is_on_difference = any(
            is_joined(check.gate) and check.gate.metric == pair.metric for check in unmet
        )
        shown = _shown(pair, catalog)
        if failing is GateOutcome.REFUTED:
            if is_on_difference and shown < 0:
                return cls(f"version {version} is worse", True)
            return cls(f"version {version} does not meet {_some(unmet, challenge.checks)}")
        undefined = _undefined(challenge, record, catalog)
        if undefined:
            return cls(undefined)
        if pair.counts is not None and pair.counts[:2] == (0, 0) and not challenge.looks:
            return cls(f"versions {version} and {champion} are correct on the same rows")
        if is_on_difference and shown == 0:
            return cls(f"version {version} may be better or worse than version {champion}", True)
        return cls(f"these rows leave {_some(unmet, challenge.checks)} open")


def _some(unmet: Sequence[GateResult], checks: Sequence[GateResult]) -> str:
    """Return a noun phrase on requirements: "the requirement" or "2 of 3 requirements"."""
    if len(checks) == 1:
        return "the requirement"
    return f"{len(unmet)} of {len(checks)} requirements"


# -- parts -----------------------------------------------------------------------------------------


def _evidence(promotion: Promotion) -> Iterator[str]:
    """Yield a paragraph for each challenger, with the difference and the rows that would decide."""
    catalog = _catalog(promotion)
    challenges = promotion.challenges
    for challenge in challenges:
        text = difference_sentence(challenge, promotion.record, catalog)
        if len(challenges) > 1:
            text = f"version {challenge.version} ({challenge.answer.value}): {text}"
        yield " ".join(filter(None, [fmt.capital(text), more_rows(challenge, promotion)]))
    rule = promotion.record.rule
    if challenges and rule is not None and rule.level != LEVEL:
        text = f"All intervals are {fmt.level(rule.level)} intervals"
        if len(challenges) > 1:
            text += f", because {fmt.in_words(len(challenges))} versions challenge the champion"
        yield f"{text}."
    passing = [one.version for one in challenges if one.answer is Answer.PROMOTE]
    if len(passing) > 1 and not _is_forced(promotion):
        yield (
            f"{fmt.capital(_versions(passing))} meet all requirements. Version {promotion.version} "
            "improves most."
        )


def _joined_sentence(challenge: Challenge, record: PromotionRecord, catalog: Catalog) -> str:
    """Return a sentence on the difference over the months of all joined looks."""
    pair = _deciding(challenge, record)
    rows = record.rows
    if rows is None:
        return ""
    months = [(rows.n, rows.name), *reversed(_earlier_rows(challenge))]
    parts = [f"{fmt.count(n)} of {quoted(name)}" for n, name in months]
    total = fmt.counted(sum(n for n, _ in months), "row")
    text = in_words(pair, catalog)
    this_month = next(one for one in challenge.pairs if one.metric == pair.metric)
    if this_month.counts is None:
        text = f"on average over the months, {text}"
    before = "The earlier answer was"
    if len(parts) > 2:
        before = "The earlier answers were"
    text = f"{text} on {total}: {fmt.join_names(parts)}. {before} “cannot tell”."
    if rows.clusters is not None:
        text += " The interval assumes that each month has other clusters."
    return text


def _earlier_rows(challenge: Challenge) -> list[tuple[float, str]]:
    """Return the number and the name of the rows of each joined look."""
    facts = [look.record.rows for look in challenge.looks]
    return [(rows.n, rows.name) for rows in facts if rows is not None]


def _versions(numbers: Sequence[str]) -> str:
    """Return "version 5" or "versions 5 and 6"."""
    noun = "version" if len(numbers) == 1 else "versions"
    return f"{noun} {fmt.join_names(numbers, len(numbers))}"


def _name(pair: PairFacts, catalog: Catalog) -> str:
    return fmt.metric_title(pair.metric, catalog=catalog)


def _undefined(challenge: Challenge, record: PromotionRecord, catalog: Catalog) -> str:
    """Return that the rule's metric is undefined for a version; empty if it is defined."""
    pair = _deciding(challenge, record)
    if math.isfinite(pair.difference):
        return ""
    undefined = [
        version
        for version in (pair.new, pair.old)
        if not math.isfinite(record.values.get(version, {}).get(pair.metric, (math.nan, 0.0))[0])
    ]
    return f"{_name(pair, catalog)} is undefined for {_versions(undefined or [pair.new])}"


def _catalog(promotion: Promotion) -> Catalog:
    """Return the catalog with the custom metrics of the evaluations."""
    if promotion.comparison is None:
        return BUILT_IN
    return promotion.comparison.criterion.catalog


def _deciding(challenge: Challenge, record: PromotionRecord) -> PairFacts:
    """Return the difference in the rule's metric that decides."""
    metric = challenge.pairs[0].metric if record.rule is None else record.rule.rank_by
    return challenge.difference(metric)


def _shown(pair: PairFacts, catalog: Catalog) -> int:
    """Return 1 if the new version is shown to be better, -1 if worse, and 0 otherwise."""
    if not pair.low * pair.high > 0:
        return 0
    is_higher = pair.low > 0
    return 1 if is_higher == (catalog.lookup(pair.metric).better != "lower") else -1


def requires_improvement(record: PromotionRecord, catalog: Catalog) -> bool:
    """Return whether the rule requires a significant improvement in its metric."""
    rule = record.rule
    if rule is None or rule.level < LEVEL:
        return False
    better = catalog.lookup(rule.rank_by).better
    gates = [gate for gate in map(Gate.parse, rule.require) if gate.metric == rule.rank_by]
    return any(_is_improvement(gate, better) for gate in gates)


def _is_improvement(gate: Gate, better: str) -> bool:
    """Return whether a gate requires that the difference is shown to be on the better side of 0."""
    if not is_joined(gate) or gate.absolute:
        return False
    if better == "lower":
        return gate.end == "high" and gate.operator.startswith("<") and gate.bound <= 0
    return better == "higher" and gate.end == "low" and gate.operator[0] == ">" and gate.bound >= 0
