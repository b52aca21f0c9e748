"""Sentences and the table of a registered model's history, for the terminal and the page."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from cmtrack.comparison.history import History, ProblemKind, Term
from cmtrack.comparison.months import FEWEST_TYPICAL, Gain, Months
from cmtrack.comparison.promotion_record import PairFacts
from cmtrack.evaluation.catalog import BUILT_IN, OPEN
from cmtrack.metrics.catalog import Catalog
from cmtrack.report import formatting as fmt
from cmtrack.report.promotion import CHANCES, in_words, requires_improvement

SIGNIFICANT = 0.05
"""Largest p-value that shows that months differ."""
_OF_CORRECT = "multiclass/accuracy"
"""Metric whose differences are numbers of correct predictions."""
_WITHOUT_MIX = frozenset(
    (
        "multiclass/balanced_accuracy",
        "multiclass/recall_macro",
        "multiclass/roc_auc_ovo_macro",
        "class/<label>/recall",
        "binary/recall",
        "binary/specificity",
        "binary/fnr",
        "binary/fpr",
        "binary/balanced_accuracy",
        "binary/informedness",
        "binary/roc_auc",
    )
)
"""Metrics that do not depend on how frequent the classes are."""


# -- the table of champions ------------------------------------------------------------------------


@dataclass(frozen=True)
class Column:
    """A column of the table of champions.

    ``key``: name of the column, which is the first one that it shows of :meth:`History.to_frame`.
    ``heading``: function of the history that returns the heading.
    ``cell``: function that returns the text for a champion.
    ``right``: whether the text is aligned to the right.
    ``brief``: function that returns a shorter text for a narrow terminal.
    """

    key: str
    heading: Callable[[History], str]
    cell: Callable[[Term, History], str]
    right: bool = False
    brief: Callable[[Term, History], str] | None = None


def _dates(term: Term, history: History) -> str:
    if term.until and term.until != term.start:
        return f"{term.start} to {term.until}"
    return term.start


def _last_date(term: Term, history: History) -> str:
    if term.until and term.until != term.start:
        return f"by {term.until}"
    return term.start


def _answer(term: Term, history: History) -> str:
    if term.by_hand and term.promotion is not None:
        return f"{term.answer}, by hand"
    return term.answer


def _chosen_by(term: Term, history: History) -> str:
    return _difference(history, term.chosen_by)


def _chosen_by_in_short(term: Term, history: History) -> str:
    if term.chosen_by is None:
        return ""
    return _signed(history, term.chosen_by.difference, (math.nan, math.nan))


def _since(term: Term, history: History) -> str:
    return _difference(history, term.since)


def _difference(history: History, pair: PairFacts | Gain | None) -> str:
    if pair is None:
        return ""
    return _signed(history, pair.difference, (pair.low, pair.high))


def _chosen_rows(term: Term, history: History) -> str:
    if term.chosen_by is None:
        return ""
    return fmt.count(term.chosen_rows)


def _rows_since(term: Term, history: History) -> str:
    if term.since is None:
        return ""
    return fmt.count(term.since.rows)


def _unit(history: History) -> str:
    return " (points)" if is_share(history) else ""


COLUMNS = (
    Column("champion_from", lambda history: f"{history.alias} from", _dates, brief=_last_date),
    Column("version", lambda history: "version", lambda term, _: term.version),
    Column("answer", lambda history: "answer", _answer),
    Column(
        "difference",
        lambda history: f"on the rows that chose it{_unit(history)}",
        _chosen_by,
        brief=_chosen_by_in_short,
    ),
    Column("rows", lambda history: "rows", _chosen_rows, right=True),
    Column(
        "difference_since",
        lambda history: f"since, on other rows{_unit(history)}",
        _since,
    ),
    Column("rows_since", lambda history: "rows", _rows_since, right=True),
    Column("supported", lambda history: "", lambda term, history: term.supported(history.better)),
)
"""Columns of the table of champions. Each difference is from the champion before."""


def champion_rows(history: History) -> list[list[str]]:
    """Return the cells of the table of champions."""
    return [[column.cell(term, history) for column in COLUMNS] for term in history.terms]


# -- sentences -------------------------------------------------------------------------------------


def paragraphs(history: History) -> Iterator[str]:
    """Yield the paragraphs on the champion: its gain, the gain in use, and its months."""
    champion = history.champion
    if not history.chain.promotions:
        state = f"is version {champion}"
        if champion is None:
            state = "is not set"
        yield f"No promotions are recorded. {history.alias} {state}."
        return
    if champion is None:
        yield f"{history.model} has no {history.alias}: the alias is not set."
        return
    lead = [f"Version {champion} of {history.model} is {history.alias}.", *_gain(history)]
    yield " ".join(lead)
    texts = [" ".join(_months_of_gain(history)), _in_use(history), " ".join(_months_of(history))]
    yield from filter(None, texts)


def _gain(history: History) -> Iterator[str]:
    """Yield the gain of the champion over an earlier version."""
    gain = history.gain
    if len(history.terms) > 1 and history.terms[0].version == history.champion:
        yield "It is the first champion again."
    if not history.life.changes:
        return
    has_rows = history.life.changes[-1] + 1 < len(history.life.months)
    if not has_rows:
        yield f"Version {history.champion} has no rows yet that did not choose it."
    if gain is not None:
        yield _size_of_gain(history, gain)
    elif has_rows and not any(month.pairs for month in history.life.months):
        title = title_of_metric(history)
        yield f"The records contain no differences in {title}, so its gain is unknown."
    elif has_rows and history.life.anchor(history.over) != history.champion:
        anchor = {"first": "the first champion", "previous": "the champion before"}
        other = anchor.get(history.over, f"version {history.over}")
        yield f"No later rows compare it with {other}, so its gain is unknown."


def _size_of_gain(history: History, gain: Gain) -> str:
    pair = PairFacts(
        gain.version, gain.over, history.metric, gain.difference, math.nan, gain.low, gain.high
    )
    text = fmt.capital(in_words(pair, catalog_of(history)))
    other = f"version {gain.over}"
    if gain.over == history.terms[0].version:
        other += ", the first champion,"
    elif gain.over == history.life.champions[0]:
        other += ", the first evaluated champion,"
    elif history.over == "previous":
        other += ", the champion before,"
    than = "than with"
    if gain.difference == 0:
        than = "from"
    subject = ""
    if gain.version != history.champion:
        subject = f" with version {gain.version}, the champion before,"
    rows = f"on {fmt.counted(gain.rows, 'row')}"
    if gain.how == "chain":
        return (
            f"{text}{subject} {than} {other} {rows}. This is a sum of "
            f"{fmt.in_words(gain.months)} steps from champion to champion, each on the next month, "
            f"because later rows do not compare the two versions."
        )
    return f"{text}{subject} {than} {other} {rows} evaluated since."


def _in_use(history: History) -> str:
    """Return the gain of the champions in use; empty if only the first champion was in use."""
    gain = history.in_use
    if gain is None:
        return ""
    over = f"on {fmt.counted(gain.rows, 'row')} of {_months(gain.months)}"
    size = _signed(history, gain.difference, (gain.low, gain.high))
    if history.metric != _OF_CORRECT or not math.isfinite(gain.more_correct):
        title = title_of_metric(history)
        unit = " percentage points" if is_share(history) else ""
        value, bracket, interval = size.partition(" [")
        return (
            f"In use, the promotions changed {title} by {value}{unit}{bracket}{interval} {over}, "
            "as a mean of the months."
        )
    word = "more"
    if gain.more_correct < 0:
        word = "fewer"
    predictions = fmt.counted(abs(gain.more_correct), f"{word} correct prediction")
    points = fmt.points(gain.difference, (gain.low, gain.high))
    return f"In use, the promotions gave {predictions} {over}: {points}."


def _months_of_gain(history: History) -> Iterator[str]:
    """Yield whether the months of the gain differ, and the gain of a typical month."""
    months = history.over_months()
    if months is None or len(months.estimates) < FEWEST_TYPICAL:
        return
    if math.isfinite(months.p):
        yield f"The gain {_differs(months)}."
    if math.isfinite(months.typical_low):
        ends = (months.typical_low, months.typical_high)
        size = fmt.points(months.typical, ends)
        if not is_share(history):
            size = fmt.with_interval(months.typical, ends)
        yield f"In a typical month, it is {size}."


def _differs(months: Months) -> str:
    number = _months(len(months.estimates))
    if months.p < SIGNIFICANT:
        return f"differs between these {number} more than chance allows ({fmt.p_equals(months.p)})"
    return (
        f"does not differ between these {number} more than chance allows ({fmt.p_equals(months.p)})"
    )


def _months_of(history: History) -> Iterator[str]:
    """Yield sentences on the months of the newest champion with at least three months."""
    found = months_of_champion(history)
    if found is None:
        return
    version, months = found
    title = fmt.capital(title_of_metric(history))
    number = _months(len(months.estimates))
    ends = (months.joined.low, months.joined.high)
    shown = value_text(history, months.joined.value, ends)
    yield f"{title} of version {version} over {number} is {shown}."
    if math.isfinite(months.typical_low):
        ends = (months.typical_low, months.typical_high)
        yield f"In a typical month, it is {value_text(history, months.typical, ends)}."
    if math.isfinite(months.p):
        yield f"It {_differs(months)}."
    if follows_mix(history):
        yield "A different mix of classes can also change it from month to month."


def months_of_champion(history: History) -> tuple[str, Months] | None:
    """Return the newest champion with at least three months, and these months."""
    for term in reversed(history.terms):
        try:
            months = history.months(term.version)
        except ValueError:
            continue
        if len(months.estimates) >= FEWEST_TYPICAL:
            return term.version, months
    return None


def notes(history: History) -> Iterator[str]:
    """Yield the levels and assumptions of intervals, and the versions that were not promoted."""
    for term in history.terms:
        if math.isfinite(term.level) and abs(term.level - history.life.confidence_level) > 1e-9:
            yield _level(term)
    if any(one.record.rows and one.record.rows.clusters for one in history.chain.promotions):
        yield (
            "The rows have clusters: intervals over several months assume other clusters, such as "
            "people, each month."
        )
    refused = not_promoted(history)
    if refused:
        yield refused


def _level(term: Term) -> str:
    """Return the level of an interval that differs from the other levels, and the reason."""
    text = (
        f"On the rows that chose version {term.version}, the interval has level "
        f"{fmt.level(term.level)}"
    )
    challengers = term.promotion.record.challengers if term.promotion is not None else ()
    if len(challengers) > 1:
        text += f", because {fmt.in_words(len(challengers))} challengers were compared"
    return f"{text}."


def not_promoted(history: History) -> str:
    """Return the line of versions that never became champion; empty if there are none."""
    texts = []
    for version, promotion in sorted(history.not_promoted, key=lambda one: int(one[0])):
        answer = promotion.record.models[version].answer
        facts = []
        if answer is not None:
            facts.append(answer.value)
        if promotion.record.chosen == version:
            facts.append("not moved")
        if promotion.record.rows is not None:
            facts.append(fmt.short(promotion.record.rows.name, 30))
        texts.append(f"{version} ({', '.join(facts)})")
    if not texts:
        return ""
    return f"Not promoted: {', '.join(texts)}."


def false_promotions(history: History) -> str:
    """Return a sentence on the expected number of false promotions; empty if it is unknown."""
    number = history.n_challenges
    try:
        is_promised = all(
            requires_improvement(one.record, catalog_of(history))
            for one in history.chain.promotions
            if one.record.rule is not None
        )
    except (ValueError, KeyError):
        # The record of another version may have a gate or a metric that this version does not know.
        is_promised = False
    if not number or not is_promised:
        return ""
    expected = fmt.fixed(CHANCES[0] * number, 1)
    challengers = {
        version for one in history.chain.promotions for version in one.record.challengers
    }
    noun = "challengers"
    if number > len(challengers):
        noun = "pairs of challenger and champion"
    subject = f"{fmt.capital(fmt.in_words(number))} {noun} were compared"
    if number == 1:
        subject = "One challenger was compared"
    return (
        f"{subject}, each with a chance of at most {100 * CHANCES[0]:.1f}% to be promoted if it is "
        f"no better ({100 * CHANCES[1]:.1f}% if months differ much in size). Expect at most "
        f"{expected} false promotions."
    )


def verified_sentences(history: History) -> Iterator[str]:
    """Yield how many records were verified, if this was requested."""
    if history.verified is None:
        return
    total = len(history.chain.promotions)
    yield f"{history.verified} of {fmt.counted(total, 'record')} verified."
    kinds = [problem.kind for problem in history.problems]
    missing = kinds.count(ProblemKind.NOT_RECOMPUTED)
    if missing:
        yield f"Not recomputed: {fmt.counted(missing, 'record')}."


# -- parts -----------------------------------------------------------------------------------------


def catalog_of(history: History) -> Catalog:
    """Return a catalog that contains the metric of a history."""
    return BUILT_IN if BUILT_IN.has(history.metric) else OPEN


def title_of_metric(history: History) -> str:
    """Return the title of the metric, such as "accuracy"."""
    return fmt.metric_title(history.metric, catalog=catalog_of(history))


def is_share(history: History) -> bool:
    """Return whether the metric is a share of rows, which is written in percent."""
    return catalog_of(history).lookup(history.metric).interval == "wilson"


def follows_mix(history: History) -> bool:
    """Return whether the metric depends on how frequent the classes are."""
    return catalog_of(history).lookup(history.metric).name not in _WITHOUT_MIX


def value_text(history: History, value: float, ends: tuple[float, float]) -> str:
    """Return a value of the metric with its interval; a share in percent."""
    if is_share(history):
        return fmt.percent_with_interval(value, ends)
    return fmt.with_interval(value, ends)


def _signed(history: History, difference: float, ends: tuple[float, float]) -> str:
    """Return a difference in the metric with its sign; of a share, in percentage points."""
    if is_share(history):
        return fmt.signed_points(difference, ends)
    return fmt.signed(difference, ends)


def _months(number: int) -> str:
    return "one month" if number == 1 else f"{fmt.in_words(number)} months"
