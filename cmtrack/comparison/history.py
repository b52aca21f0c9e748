"""The history of a registered model: its champions, what they gained, and what does not fit."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cmtrack import notebook
from cmtrack._lazy import cached_property
from cmtrack.comparison.months import Gain, Life, Month, MonthEstimate, Months, Shown, months_of
from cmtrack.comparison.promotion import Chain, RecordedPromotion
from cmtrack.comparison.promotion_record import PairFacts, RowsFacts, RuleFacts
from cmtrack.comparison.verdict import Answer
from cmtrack.evaluation.catalog import BUILT_IN
from cmtrack.evaluation.gates import Gate
from cmtrack.untrusted import printable

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


class ProblemKind(Enum):
    """Kind of problem in a history."""

    UNREADABLE = "unreadable"
    CHANGED = "changed"
    GONE = "gone"
    FORK = "fork"
    GAP = "gap"
    NOT_RECOMPUTED = "not recomputed"
    MOVED_BY_HAND = "moved by hand"
    RULE_CHANGED = "rule changed"
    ROWS_USED_TWICE = "rows used twice"
    DELETED = "deleted"


BROKEN = frozenset(
    (
        ProblemKind.UNREADABLE,
        ProblemKind.CHANGED,
        ProblemKind.GONE,
        ProblemKind.FORK,
        ProblemKind.GAP,
    )
)
"""Kinds of problems for which a record is not evidence."""


@dataclass(frozen=True)
class Problem:
    """Something to check in a history.

    Attributes
    ----------
    kind : ProblemKind
    sentence : str
    run_id : str
        The promotion run; empty if the problem does not belong to one run.
    """

    kind: ProblemKind
    sentence: str
    run_id: str = ""


@dataclass(frozen=True)
class EvaluatedMonth:
    """An evaluation of a version in the history experiment.

    Attributes
    ----------
    version, role : str
        The role is empty if the evaluation does not belong to a promotion.
    data, digest : str
        Name and digest of the rows.
    run_id : str
    started : int
        Start of the run, in milliseconds since 1970.
    n_samples : float
    metrics, errors : mapping of str to float
        Logged metrics and their standard errors.
    """

    version: str
    role: str
    data: str
    digest: str
    run_id: str
    started: int
    n_samples: float
    metrics: Mapping[str, float] = field(repr=False)
    errors: Mapping[str, float] = field(repr=False)


@dataclass(frozen=True)
class MonthValues:
    """Values of all versions that were evaluated on the rows of one month.

    Attributes
    ----------
    name : str
        Name of the rows; with a number if several months have this name.
    made : str
        Time at which the month was evaluated first, in UTC.
    champion : str or None
        The version that was champion before these rows were seen.
    by_hand : bool
        Whether somebody moved the alias to this champion without a record.
    rows : float
    values : mapping of str to MonthEstimate
        By version.
    roles : mapping of str to str
        By version; empty for an evaluation that does not belong to a promotion.
    """

    name: str
    made: str
    champion: str | None
    by_hand: bool
    rows: float
    values: Mapping[str, MonthEstimate]
    roles: Mapping[str, str]


@dataclass(frozen=True)
class Term:
    """The time in which a version was champion.

    Attributes
    ----------
    version, before : str or None
        The champion, and the champion before; None for the first champion.
    start, until : str
        Date of the change. If somebody moved the alias by hand, the change happened between the two
        dates; otherwise ``until`` is empty.
    promotion : RecordedPromotion or None
        The promotion that chose the version; for a move by hand, the last promotion that compared
        the version with the champion, if any.
    by_hand : bool
        Whether the alias moved without a record.
    chosen_by : PairFacts or None
        The difference on the rows that chose the version.
    chosen_rows : float
        Number of these rows; NaN if there are none.
    level : float
        Confidence level of the interval in ``chosen_by``; NaN if there is none. It is higher than
        95% if several challengers were compared.
    since : Gain or None
        The difference from the champion before, on later rows while the version was champion.
    """

    version: str
    before: str | None
    start: str
    until: str = ""
    promotion: RecordedPromotion | None = None
    by_hand: bool = False
    chosen_by: PairFacts | None = None
    chosen_rows: float = math.nan
    level: float = math.nan
    since: Gain | None = None

    @property
    def answer(self) -> str:
        """The answer in a word: "first", "by force", "by hand", or the answer of the promotion."""
        if self.before is None:
            return "first"
        if self.promotion is None:
            return "by hand"
        record = self.promotion.record
        if record.forced is not None and not self.by_hand:
            return "by force"
        answer = record.models[self.version].answer
        return "" if answer is None else answer.value

    def supported(self, better: str) -> str:
        """Return whether later rows show that the version is better than the one before."""
        if self.before is None:
            return ""
        if self.since is None:
            return Shown.NOT_SHOWN.value
        return self.since.shown(better).value


@dataclass(frozen=True, repr=False)
class History:
    """The champions of a registered model, and what the promotions gained.

    Gains are stated only from rows that did not choose the champion.

    Attributes
    ----------
    model, alias : str
    champion : str or None
        The version that the alias names now.
    metric : str
        The metric of all differences.
    over : str
        "first", "previous" or a version, with which today's champion is compared.
    chain : Chain
        The promotions in order.
    problems : tuple of Problem
    evaluated : tuple of EvaluatedMonth
    as_of : str
        Date of the history.
    verified : int or None
        Number of records that were recomputed from the store; None unless requested.

    Examples
    --------
    >>> from cmtrack.comparison import Chain, History
    >>> History("party", "champion", "3", "multiclass/accuracy", "first", Chain())
    History(party: champion is version 3, no promotion is recorded)
    """

    model: str
    alias: str
    champion: str | None
    metric: str
    over: str
    chain: Chain
    problems: tuple[Problem, ...] = ()
    evaluated: tuple[EvaluatedMonth, ...] = ()
    as_of: str = ""
    verified: int | None = None

    @property
    def better(self) -> str:
        """The values of the metric that are better: "higher", "lower", or empty if unknown.

        For a custom metric, the newest rule with a gate on its difference or interval decides.
        """
        if BUILT_IN.has(self.metric):
            return BUILT_IN.lookup(self.metric).better
        for promotion in reversed(self.chain.promotions):
            rule = promotion.record.rule
            if rule is not None and (better := _better_by(rule, self.metric)):
                return better
        return ""

    @cached_property
    def bounds(self) -> tuple[float, float]:
        """The smallest and the largest possible difference."""
        if not BUILT_IN.has(self.metric):
            return -math.inf, math.inf
        entry = BUILT_IN.lookup(self.metric)
        return entry.low - entry.high, entry.high - entry.low

    @cached_property
    def life(self) -> Life:
        """The months of the model, each data set once."""
        months = [month for _, month in _months_in(self.chain, self.metric)]
        return Life(months, self.champion or "", self.bounds)

    @cached_property
    def gain(self) -> Gain | None:
        """The gain of today's champion, or of the one before if no rows have come since."""
        return self.life.gain(self.over) if self.champion is not None else None

    @cached_property
    def in_use(self) -> Gain | None:
        """The mean gain of the champions in use over the first champion."""
        return self.life.in_use() if self.champion is not None else None

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """The champions in order."""
        return tuple(_terms(self))

    @cached_property
    def not_promoted(self) -> tuple[tuple[str, RecordedPromotion], ...]:
        """The challengers that did not replace a champion, each with its last promotion run.

        A version that was compared with several champions may occur several times.
        """
        replaced = {(term.version, term.before) for term in self.terms}
        last: dict[tuple[str, str | None], RecordedPromotion] = {}
        for promotion in self.chain.promotions:
            for version in promotion.record.challengers:
                pair = (version, promotion.record.champion)
                if pair not in replaced and promotion.record.rows is not None:
                    last[pair] = promotion
        return tuple((version, promotion) for (version, _), promotion in last.items())

    @property
    def n_challenges(self) -> int:
        """Number of different pairs of challenger and champion that were compared."""
        pairs = {
            (version, promotion.record.champion)
            for promotion in self.chain.promotions
            for version in promotion.record.challengers
            if promotion.record.champion is not None and promotion.record.rows is not None
        }
        return len(pairs)

    @property
    def promotions(self) -> pd.DataFrame:
        """A frame with one row for each champion; see :meth:`to_frame`."""
        return self.to_frame()

    @property
    def evaluations(self) -> pd.DataFrame:
        """A frame with one row for each evaluation.

        The columns are version, role, data, digest, run_id and n_samples, followed by the logged
        metrics and, with the ending ``_error``, their standard errors.
        """
        from cmtrack._pandas import pd

        rows = []
        for month in self.evaluated:
            facts = {
                name: getattr(month, name)
                for name in ("version", "role", "data", "digest", "run_id", "n_samples")
            }
            errors = {f"{name}_error": error for name, error in month.errors.items()}
            rows.append(facts | dict(month.metrics) | errors)
        return pd.DataFrame(rows)

    def months(self, version: str, metric: str | None = None) -> Months:
        """Compare the months of one version.

        Parameters
        ----------
        version : str
        metric : str, optional
            By default, the metric of the history.

        Raises
        ------
        ValueError
            If the version was never evaluated with this metric.
        """
        name = metric or self.metric
        version = str(version)
        months = {
            month.name: month.values[version]
            for month in self.month_values(name)
            if version in month.values
        }
        if not months:
            raise ValueError(f"version {version} has no evaluation with {name} in this history")
        low, high = 0.0, 1.0
        if BUILT_IN.has(name):
            entry = BUILT_IN.lookup(name)
            low, high = entry.low, entry.high
        return months_of(months, bounds=(low, high))

    def over_months(self) -> Months | None:
        """Compare the months on which today's champion and the first champion were evaluated.

        Returns None if there are no such months after the champion was chosen.
        """
        gain = self.gain
        if gain is None or gain.how != "direct":
            return None
        start = 0
        champions = self.life.champions
        places = [place for place, version in enumerate(champions[:-1]) if version != gain.version]
        if places:
            start = places[-1] + 1
        pairs = {}
        for month in self.life.months[start:]:
            pair = month.pair(gain.version, gain.over)
            if pair is not None and month.champion == gain.version:
                pairs[month.name] = pair
        return months_of(pairs, bounds=self.bounds) if pairs else None

    def month_values(self, metric: str | None = None) -> tuple[MonthValues, ...]:
        """Return the values of all versions by month, in order, each data set once.

        ``metric``: by default, the metric of the history.
        """
        return tuple(_values_by_month(self, metric or self.metric))

    def to_frame(self) -> pd.DataFrame:
        """Return a frame with one row for each champion.

        The columns are champion_from, until, version, before, answer, moved, forced, difference,
        low, high, rows and level on the rows that chose the version, the first four of these with
        the ending ``_since`` on later rows, and supported: "better", "worse" or "not shown".
        """
        from cmtrack._pandas import pd

        return pd.DataFrame([_row(term, self.better) for term in self.terms])

    def to_dict(self) -> dict[str, Any]:
        """Return the history as plain data."""
        return {
            "model": self.model,
            "alias": self.alias,
            "champion": self.champion,
            "metric": self.metric,
            "gain": None if self.gain is None else self.gain.to_dict(),
            "in_use": None if self.in_use is None else self.in_use.to_dict(),
            "promotions": [_row(term, self.better) for term in self.terms],
            "not_promoted": [
                {
                    "version": version,
                    "answer": None if answer is None else answer.value,
                    "rows": "" if promotion.record.rows is None else promotion.record.rows.name,
                    "made": promotion.record.made,
                }
                for version, promotion in self.not_promoted
                for answer in [promotion.record.models[version].answer]
            ],
            "problems": [
                {"kind": one.kind.value, "sentence": one.sentence, "run_id": one.run_id}
                for one in self.problems
            ],
            "records": len(self.chain.promotions),
            "verified": self.verified,
            "head": self.chain.head,
        }

    def figure(self) -> Figure:
        """Draw the champions and their metric by month."""
        from cmtrack.report.history_page import history_figure

        return history_figure(self)

    def report(self, path: str | Path) -> Path:
        """Write the history as one HTML page without scripts, and return the path of the file."""
        from cmtrack.report.history_page import write_page

        return write_page(self, Path(path))

    def __repr__(self) -> str:
        text = f"{self.alias} is version {self.champion}"
        if self.champion is None:
            text = f"{self.alias} is not set"
        gain = self.gain
        if not self.chain.promotions:
            text += ", no promotion is recorded"
        elif gain is not None:
            text += f", {gain!r}"
        return printable(f"History({self.model}: {text})")

    def _repr_html_(self) -> str:
        notes = [problem.sentence for problem in self.problems]
        return notebook.view(
            notebook.sentence(repr(self)), notebook.table(self.to_frame()), notes=notes
        )


def _better_by(rule: RuleFacts, metric: str) -> str:
    """Return the values of a metric that a rule takes as better; empty if no gate shows it."""
    for text in rule.require:
        try:
            gate = Gate.parse(text)
        except ValueError:
            # The record of another version may have a gate that this version does not know.
            continue
        if gate.metric == metric and not gate.absolute and (gate.difference or gate.end):
            return "lower" if gate.operator.startswith("<") else "higher"
    return ""


# -- months ----------------------------------------------------------------------------------------


def _months_in(chain: Chain, metric: str) -> list[tuple[int, Month]]:
    """Return the months with rows and a champion, in order; equal rows are one month.

    Each month has the place of the first record with these rows.
    """
    months: list[tuple[RowsFacts, Month]] = []
    places: list[int] = []
    names: dict[str, None] = {}
    for number, promotion in enumerate(chain.promotions):
        record = promotion.record
        if record.rows is None or record.champion is None:
            continue
        pairs = {}
        for pair in record.pairs:
            if pair.metric == metric and _is_defined(pair):
                pairs[pair.new, pair.old] = pair.estimate(record.rows.n)
        place = _place_of(record.rows, [rows for rows, _ in months])
        if place is not None:
            rows, earlier = months[place]
            months[place] = (rows, replace(earlier, pairs={**pairs, **earlier.pairs}))
            continue
        name = _unique(record.rows.name, names)
        names[name] = None
        months.append((record.rows, Month(name, record.champion, record.rows.n, pairs)))
        places.append(number)
    return [(number, month) for number, (_, month) in zip(places, months, strict=True)]


def _place_of(rows: RowsFacts, earlier: Sequence[RowsFacts]) -> int | None:
    """Return the place of the same rows in a list, or None."""
    for place, one in enumerate(earlier):
        if one.is_same(rows):
            return place
    return None


def _values_by_month(history: History, metric: str) -> list[MonthValues]:
    """Return the months of the records and of all other evaluations, in order."""
    months: list[tuple[RowsFacts, MonthValues]] = []
    for promotion, by_hand in zip(history.chain.promotions, _is_by_hand(history), strict=True):
        record = promotion.record
        if record.rows is None:
            continue
        values = {}
        for version, of_version in record.values.items():
            value, error = of_version.get(metric, (math.nan, math.nan))
            if math.isfinite(value) and math.isfinite(error):
                values[version] = MonthEstimate(value, error, record.rows.n)
        roles = {version: facts.role for version, facts in record.models.items()}
        place = _place_of(record.rows, [rows for rows, _ in months])
        if place is not None:
            rows, earlier = months[place]
            joined = replace(
                earlier, values=values | dict(earlier.values), roles=roles | dict(earlier.roles)
            )
            months[place] = (rows, joined)
            continue
        month = MonthValues(
            record.rows.name, record.made, record.champion, by_hand, record.rows.n, values, roles
        )
        months.append((record.rows, month))
    _add_evaluations(history, metric, months)
    unique: dict[str, MonthValues] = {}
    for _, month in months:
        name = _unique(month.name, unique)
        unique[name] = replace(month, name=name)
    return list(unique.values())


def _is_by_hand(history: History) -> Iterator[bool]:
    """Yield for each record whether somebody had moved the alias to its champion by hand."""
    terms = history.terms
    place = 0
    for promotion in history.chain.promotions:
        champion = promotion.record.champion
        for later in range(place, len(terms)):
            if terms[later].version == champion:
                place = later
                break
        is_found = place < len(terms) and terms[place].version == champion
        yield is_found and terms[place].by_hand


def _add_evaluations(
    history: History, metric: str, months: list[tuple[RowsFacts, MonthValues]]
) -> None:
    """Add the values of evaluation runs that the records do not contain."""
    for run in history.evaluated:
        number = run.metrics.get(metric, math.nan)
        error = run.errors.get(metric, math.nan)
        if not (math.isfinite(number) and math.isfinite(error) and run.n_samples > 0):
            continue
        value = {run.version: MonthEstimate(number, error, run.n_samples)}
        labels = [rows.labels for rows, _ in months]
        if run.digest in labels:
            place = labels.index(run.digest)
            rows, earlier = months[place]
            roles = {run.version: run.role} | dict(earlier.roles)
            joined = replace(earlier, values=value | dict(earlier.values), roles=roles)
            months[place] = (rows, joined)
            continue
        made = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(run.started / 1000))
        champion = None
        for promotion in history.chain.promotions:
            if promotion.record.made <= made:
                champion = promotion.champion_after
        month = MonthValues(
            run.data, made, champion, False, run.n_samples, value, {run.version: run.role}
        )
        place = sum(earlier.made <= made for _, earlier in months)
        months.insert(place, (RowsFacts(run.data, run.n_samples, run.digest), month))


def _is_defined(pair: PairFacts) -> bool:
    return math.isfinite(pair.difference) and math.isfinite(pair.standard_error)


def _unique(name: str, taken: Mapping[str, Any]) -> str:
    """Return a name, with a number if it is taken."""
    number = 1
    unique = name
    while unique in taken:
        number += 1
        unique = f"{name} ({number})"
    return unique


# -- champions -------------------------------------------------------------------------------------


def _terms(history: History) -> Iterator[Term]:
    """Yield the champions in order, each with its gain on the months in which it served."""
    changes = list(_changes(history))
    if not changes:
        return
    months = _months_in(history.chain, history.metric)
    starts = [start for start, _ in changes]
    ends = [*starts[1:], len(history.chain.promotions)]
    for (start, term), end in zip(changes, ends, strict=True):
        if term.before is None:
            yield term
            continue
        served = [
            month
            for place, month in months
            if start <= place < end and month.champion == term.version
        ]
        level = math.nan
        if term.chosen_by is not None and term.promotion is not None:
            rule = term.promotion.record.rule
            level = math.nan if rule is None else rule.level
        since = history.life.joined(served, term.version, term.before)
        yield replace(term, level=level, since=since)


def _changes(history: History) -> Iterator[tuple[int, Term]]:
    """Yield the champions in order, each with the place of the first record that it can serve."""
    promotions = history.chain.promotions
    if not promotions:
        return
    first = promotions[0].record
    current: str | None = None
    if first.champion is not None:
        current = first.champion
        yield 0, Term(current, None, first.made[:10])
    last_date = first.made[:10]
    for place, promotion in enumerate(promotions):
        record = promotion.record
        if record.champion is not None and record.champion != current:
            dates = (last_date, record.made[:10])
            term = _term_by_hand(history, record.champion, current, dates, promotions[:place])
            yield place, term
            current = record.champion
        last_date = record.made[:10]
        after = promotion.champion_after
        if after is not None and after != current:
            yield place + 1, _term(history, after, current, promotion)
            current = after
    if history.champion is not None and history.champion != current:
        dates = (last_date, history.as_of)
        term = _term_by_hand(history, history.champion, current, dates, promotions)
        yield len(promotions), term


def _term(history: History, version: str, before: str | None, promotion: RecordedPromotion) -> Term:
    return Term(
        version,
        before,
        promotion.record.made[:10],
        promotion=promotion,
        chosen_by=_chosen_by(promotion, version, before, history.metric),
        chosen_rows=_chosen_rows(history.chain, promotion, version),
    )


def _term_by_hand(
    history: History,
    version: str,
    before: str | None,
    dates: tuple[str, str],
    earlier: Sequence[RecordedPromotion],
) -> Term:
    """Return the term of a version to which somebody moved the alias without a record."""
    promotion = None
    for one in earlier:
        if version in one.record.challengers and one.record.champion == before:
            promotion = one
    chosen_by = None
    chosen_rows = math.nan
    if promotion is not None:
        chosen_by = _chosen_by(promotion, version, before, history.metric)
        chosen_rows = _chosen_rows(history.chain, promotion, version)
    return Term(
        version,
        before,
        dates[0],
        dates[1],
        promotion,
        by_hand=True,
        chosen_by=chosen_by,
        chosen_rows=chosen_rows,
    )


def _chosen_by(
    promotion: RecordedPromotion, version: str, before: str | None, metric: str
) -> PairFacts | None:
    """Return the difference that chose a version: of the joined looks if there are any."""
    record = promotion.record
    for pair in (*record.joined, *record.pairs):
        if (pair.new, pair.old, pair.metric) == (version, before, metric):
            return pair
    return None


def _chosen_rows(chain: Chain, promotion: RecordedPromotion, version: str) -> float:
    """Return the number of rows on which a version was chosen, with those of joined looks."""
    looks = promotion.record.looks.get(version, ())
    joined = [one for one in chain.promotions if one.run_id in looks]
    sizes = [one.record.rows.n for one in (*joined, promotion) if one.record.rows is not None]
    return sum(sizes) if sizes else math.nan


def _row(term: Term, better: str) -> dict[str, Any]:
    """Return a champion as plain data."""
    chosen = term.chosen_by
    forced = None
    moved = term.before is not None and not term.by_hand
    if term.promotion is not None:
        forced = term.promotion.record.forced
    row: dict[str, Any] = {
        "champion_from": term.start,
        "until": term.until,
        "version": term.version,
        "before": term.before,
        "answer": term.answer,
        "moved": moved,
        "forced": None if term.by_hand else forced,
        "difference": math.nan if chosen is None else chosen.difference,
        "low": math.nan if chosen is None else chosen.low,
        "high": math.nan if chosen is None else chosen.high,
        "rows": math.nan if chosen is None else term.chosen_rows,
        "level": term.level,
    }
    since = term.since
    for name in ("difference", "low", "high", "rows"):
        row[f"{name}_since"] = math.nan if since is None else getattr(since, name)
    return row | {"supported": term.supported(better)}


# -- problems --------------------------------------------------------------------------------------


def problems_of(chain: Chain, terms: Sequence[Term], alias: str) -> Iterator[Problem]:
    """Yield what records and terms show by themselves: forks, gaps, moves, rules and rows."""
    digests = {promotion.sha256 for promotion in chain.promotions}
    followers = Counter(promotion.record.previous for promotion in chain.promotions)
    for promotion in chain.promotions:
        previous = promotion.record.previous
        if previous is not None and previous not in digests:
            sentence = f"The record before the record of run {promotion.run_id} is missing."
            yield Problem(ProblemKind.GAP, sentence, promotion.run_id)
    for previous, number in followers.items():
        if number > 1:
            runs = [one.run_id for one in chain.promotions if one.record.previous == previous]
            sentence = (
                f"The records of runs {' and '.join(runs)} follow the same record: they were made "
                "at the same time, or one of them was forged."
            )
            yield Problem(ProblemKind.FORK, sentence, runs[-1])
    for term in terms:
        if term.by_hand:
            days = f"between {term.start} and {term.until}"
            if term.start == term.until:
                days = f"on {term.start}"
            sentence = (
                f"The alias {alias!r} moved from version {term.before} to version {term.version} "
                f"{days} without a record."
            )
            yield Problem(ProblemKind.MOVED_BY_HAND, sentence)
    yield from _changed_rules(chain)
    yield from _rows_used_twice(chain)


def _changed_rules(chain: Chain) -> Iterator[Problem]:
    rule = None
    for promotion in chain.promotions:
        facts = promotion.record.rule
        if facts is None:
            continue
        if rule is not None and rule.sha256 != facts.sha256:
            sentence = (
                f"The rule changed on {promotion.record.made[:10]} (SHA-256 {rule.sha256[:8]}… to "
                f"{facts.sha256[:8]}…)."
            )
            yield Problem(ProblemKind.RULE_CHANGED, sentence, promotion.run_id)
        rule = facts


def _rows_used_twice(chain: Chain) -> Iterator[Problem]:
    """Yield a problem if rows that chose a champion were used again."""
    chosen: dict[tuple[str, str | None], RecordedPromotion] = {}
    for promotion in chain.promotions:
        rows = promotion.record.rows
        if rows is None:
            continue
        earlier = chosen.get(rows.digest)
        if earlier is not None:
            sentence = (
                f"The rows of {rows.name} ({promotion.record.made[:10]}) had chosen version "
                f"{earlier.record.chosen} on {earlier.record.made[:10]}: they favor it."
            )
            yield Problem(ProblemKind.ROWS_USED_TWICE, sentence, promotion.run_id)
        if promotion.moved and promotion.record.answer is Answer.PROMOTE:
            chosen[rows.digest] = promotion
