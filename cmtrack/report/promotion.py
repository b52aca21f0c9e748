"""Sentences and the table of a promotion, for the terminal, a pipeline's summary and MLflow."""

from __future__ import annotations

import math
from collections.abc import Iterator

from cmtrack.comparison.promotion import MOST_LOOKS, Challenge, Promotion, is_joined
from cmtrack.comparison.promotion_record import PairFacts, PromotionRecord
from cmtrack.comparison.verdict import Answer
from cmtrack.digits import significant
from cmtrack.evaluation.catalog import BUILT_IN
from cmtrack.evaluation.gates import GateOutcome, GateResult
from cmtrack.metrics.catalog import Catalog
from cmtrack.report import formatting as fmt
from cmtrack.report.assertions import MANY, rows_would_decide
from cmtrack.untrusted import one_line

ANSWERS = {
    GateOutcome.HOLDS: "holds",
    GateOutcome.REFUTED: "does not hold",
    GateOutcome.OPEN: "cannot tell",
}
"""The word for each outcome of a gate."""
CHANCES = (0.0536, 0.0731)
"""Largest probability that a challenger that is no better is promoted in one of three looks.

The first number is for months of similar size, the second for months of any sizes.
"""


# -- sentences -------------------------------------------------------------------------------------


def headline(promotion: Promotion) -> str:
    """Return the first sentence: the answer with the versions."""
    record = promotion.record
    version = promotion.version
    if promotion.answer is None or record.forced is not None:
        if record.champion is None:
            return f"Version {version} is {record.alias} by force: {record.forced}."
        return (
            f"Version {version} replaces version {record.champion} as {record.alias} by force: "
            f"{record.forced}."
        )
    if promotion.answer is Answer.PROMOTE:
        verb = "replaces" if promotion.moved else "may replace"
        return f"Promote: version {version} {verb} version {record.champion} as {record.alias}."
    challenge = promotion.challenge
    if challenge is None:
        return f"Keep version {record.champion}."
    return _of_challenge(challenge, record, _catalog(promotion))


def _of_challenge(challenge: Challenge, record: PromotionRecord, catalog: Catalog) -> str:
    """Return the sentence on a challenger that is not promoted."""
    version = challenge.version
    champion = challenge.champion
    shown = _shown(_deciding(challenge, record), catalog)
    if challenge.answer is Answer.CANNOT_TELL:
        if shown == 0:
            return f"Cannot tell: version {version} may be better or worse than version {champion}."
        return f"Cannot tell: these rows leave a requirement on version {version} open."
    if challenge.is_closed:
        return (
            f"Keep version {champion}: {fmt.in_words(MOST_LOOKS)} months did not show that version "
            f"{version} is better."
        )
    if shown < 0:
        return f"Keep version {champion}: version {version} is worse."
    return f"Keep version {champion}: version {version} does not meet a requirement."


def difference_sentence(challenge: Challenge, record: PromotionRecord, catalog: Catalog) -> str:
    """Return a sentence on the difference in the rule's metric, with its interval and rows."""
    pair = _deciding(challenge, record)
    if record.rows is None:
        return ""
    text = in_words(pair, catalog)
    rows = f"on the same {fmt.counted(record.rows.n, 'row')}"
    if challenge.looks:
        parts = [f"{fmt.count(record.rows.n)} of {record.rows.name}"]
        total = record.rows.n
        for look in challenge.looks:
            earlier = look.record.rows
            if earlier is not None:
                total += earlier.n
                parts.append(f"{fmt.count(earlier.n)} of {earlier.name}")
        rows = f"on {fmt.counted(total, 'row')}: {fmt.join_names(parts)}"
        return f"{text} {rows}. The answer for the earlier rows was “cannot tell”."
    if pair.counts is None:
        return f"{text} {rows}."
    only_new, only_old = pair.counts[:2]
    if only_new == only_old == 0:
        return f"Both predict the same on all {fmt.counted(record.rows.n, 'row')}."
    return (
        f"{text} {rows}: only version {pair.new} is correct on {fmt.count(only_new)}, only version "
        f"{pair.old} on {fmt.count(only_old)}."
    )


def in_words(pair: PairFacts, catalog: Catalog = BUILT_IN) -> str:
    """Return a difference in words, such as "accuracy is 1.8 percentage points higher [1.0, 2.6]".

    If the limits are on both sides of 0, they keep their signs.
    """
    title = fmt.capital(fmt.metric_title(pair.metric, catalog=catalog))
    word = "higher" if pair.difference >= 0 else "lower"
    ends = (pair.low, pair.high)
    shown = size_of(pair, catalog)
    if not math.isfinite(pair.difference):
        return f"{title} is undefined for one of the versions"
    if pair.difference == 0:
        return f"{title} is equal"
    value, bracket, interval = shown.partition(" [")
    if not all(map(math.isfinite, ends)):
        bracket = ""
    return f"{title} is {value.lstrip('−-')} {word}{bracket}{interval}"


def size_of(pair: PairFacts, catalog: Catalog = BUILT_IN) -> str:
    """Return a difference with its interval; of a share, in percentage points."""
    ends = (pair.low, pair.high)
    if _is_share(pair.metric, catalog):
        return fmt.points(pair.difference, ends)
    return fmt.with_interval(pair.difference, ends)


def more_rows(promotion: Promotion) -> str:
    """Return a sentence on the number of rows that would decide; empty if unknown."""
    challenge = promotion.challenge
    record = promotion.record
    if challenge is None or record.rows is None or challenge.answer is not Answer.CANNOT_TELL:
        return ""
    more = challenge.rows_more
    if not math.isfinite(more):
        return ""
    n = record.rows.n
    largest = max(challenge.checks, key=_rows_more_of)
    if not is_joined(largest.gate):
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
    """Return a sentence on the number of looks, and on the chance of a false promotion."""
    challenge = promotion.challenge
    if challenge is None or promotion.record.forced is not None:
        return ""
    similar, any_sizes = (100 * chance for chance in CHANCES)
    return (
        f"Look {challenge.look} of {MOST_LOOKS} at version {challenge.version}. If it were no "
        f"better, its chance to be promoted over {fmt.in_words(MOST_LOOKS)} looks would be at most "
        f"{similar:.1f}% ({any_sizes:.1f}% if months differ much in size)."
    )


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
    text = in_words(pair, _catalog(promotion))
    text = text[:1].lower() + text[1:]
    return (
        f"{answer} on {day}: {text} than version {pair.old} on {fmt.counted(record.rows.n, 'row')}"
    )


def sentences(promotion: Promotion) -> Iterator[str]:
    """Yield the sentences of a promotion, each a paragraph, without the table."""
    yield headline(promotion)
    record = promotion.record
    for challenge in promotion.challenges:
        text = difference_sentence(challenge, record, _catalog(promotion))
        if len(promotion.challenges) > 1:
            text = f"Version {challenge.version} ({challenge.answer.value}): {text}"
        yield text
    more = more_rows(promotion)
    if more:
        yield more


def moved_sentence(promotion: Promotion) -> str:
    """Return a sentence on the alias: moved from one version to another, or not moved."""
    record = promotion.record
    address = f"models:/{record.model}@{record.alias}"
    if promotion.moved and record.champion is None:
        return f"{address} is version {record.chosen} now."
    if promotion.moved:
        return f"{address} moved from version {record.champion} to version {record.chosen}."
    if record.chosen is not None:
        return f"{address} was not moved. Repeat the command with --move to move it."
    return ""


def gate_rows(promotion: Promotion) -> list[tuple[str, str, str]]:
    """Return the rows of the table of gates: requirement, found value and answer."""
    rows = []
    for challenge in promotion.challenges:
        for check in challenge.checks:
            required = check.gate.text
            if len(promotion.challenges) > 1:
                required = f"version {challenge.version}: {required}"
            rows.append((required, check.found, ANSWERS[check.outcome]))
    return rows


# -- Markdown --------------------------------------------------------------------------------------


def promotion_markdown(promotion: Promotion, review: str = "") -> str:
    """Return a promotion as Markdown; ``review``: address of the review's page."""
    record = promotion.record
    title, *paragraphs = sentences(promotion)
    lines = [f"### {fmt.markdown_text(title)}", ""]
    lines += [fmt.markdown_text(text) for text in paragraphs]
    rows = gate_rows(promotion)
    if rows:
        lines += ["", "| required | found | |", "|---|---|---|"]
        for required, found, answer in rows:
            mark = answer if answer == "holds" else f"**{answer}**"
            lines.append(f"| `{_cell(required)}` | {_cell(found)} | {mark} |")
    for text in (moved_sentence(promotion), *promotion.notes):
        if text:
            lines += ["", fmt.markdown_text(text)]
    facts = []
    if record.rule is not None:
        name = "The rule" if record.rule.file is None else f"Rule `{record.rule.file}`"
        facts.append(f"{name} (SHA-256 {record.rule.sha256[:8]}…).")
    if review:
        facts.append(f"[Review](<{review}>).")
    if promotion.sha256:
        facts.append(f"Record SHA-256 {promotion.sha256[:8]}….")
    if facts:
        lines += ["", " ".join(facts)]
    return "\n".join(lines) + "\n"


def comment_markdown(promotion: Promotion, review: str = "") -> str:
    """Return a comment for a pull request, with a marker by which it is found and updated."""
    record = promotion.record
    marker = f"<!-- cmtrack promote {record.model}@{record.alias} -->"
    return f"{marker}\n{promotion_markdown(promotion, review)}"


# -- parts -----------------------------------------------------------------------------------------


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


def _is_share(metric: str, catalog: Catalog) -> bool:
    return catalog.lookup(metric).interval == "wilson"


def _rows_more_of(check: GateResult) -> float:
    return check.rows_more if check.outcome is GateOutcome.OPEN else -1.0


def _cell(text: str) -> str:
    return one_line(text).replace("|", "\\|")
