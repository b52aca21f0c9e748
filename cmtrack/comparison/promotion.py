"""The decision on a promotion, and the chain of earlier promotions that it depends on."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from cmtrack import notebook
from cmtrack.base import BaseEvaluation
from cmtrack.comparison.compare import judged, predicts_only
from cmtrack.comparison.differences import paired_differences
from cmtrack.comparison.months import Joined, MonthEstimate, join_months
from cmtrack.comparison.promotion_record import (
    PairFacts,
    PromotionRecord,
    RowsFacts,
    digest_of,
)
from cmtrack.comparison.run import Candidate
from cmtrack.comparison.verdict import Answer, Verdict
from cmtrack.evaluation.gates import Gate, GateResult
from cmtrack.names import quoted
from cmtrack.untrusted import printable

if TYPE_CHECKING:
    import pandas as pd

    from cmtrack.comparison.result import RunComparison

MOST_LOOKS = 3
"""Maximum number of months on which a challenger may be compared with a champion under a rule."""


@dataclass(frozen=True)
class RecordedPromotion:
    """A promotion in a store.

    ``run_id``: id of the promotion run.
    ``content``: the bytes of the record.
    ``moved``: whether the promotion moved the alias.
    ``deleted``: whether the promotion run was deleted.
    """

    run_id: str
    record: PromotionRecord
    content: bytes = field(repr=False)
    moved: bool = False
    deleted: bool = False

    @property
    def sha256(self) -> str:
        """The digest of the record."""
        return digest_of(self.content)

    @property
    def champion_after(self) -> str | None:
        """The version that the alias names after this promotion."""
        return self.record.chosen if self.moved else self.record.champion


@dataclass(frozen=True)
class Chain:
    """The recorded promotions of an alias, in order.

    The order follows from the digest of the previous record in each record, and not from the times,
    which the author's machine states.
    """

    promotions: tuple[RecordedPromotion, ...] = ()

    @classmethod
    def from_promotions(cls, promotions: Iterable[RecordedPromotion], current: str | None) -> Chain:
        """Return the promotions in order: each follows the record that it names as the previous.

        If the alias names the chosen version afterwards, the promotion counts as moved, even if the
        process ended before it wrote this to the promotion run.

        ``current``: the version that the alias names now.
        """
        waiting = sorted(promotions, key=lambda one: (one.record.made, one.run_id))
        digests = {one.sha256 for one in waiting}
        ordered: list[RecordedPromotion] = []
        placed: set[str | None] = set()
        while waiting:
            # A record whose previous record is missing does not wait for it.
            ready = [
                one
                for one in waiting
                if one.record.previous in placed or one.record.previous not in digests
            ]
            following = (ready or waiting)[0]
            waiting.remove(following)
            ordered.append(following)
            placed.add(following.sha256)
        champions = [*(one.record.champion for one in ordered), current]
        settled = []
        for promotion, version in zip(ordered, champions[1:], strict=True):
            is_followed = version is not None and promotion.record.chosen == version
            settled.append(replace(promotion, moved=promotion.moved or is_followed))
        return cls(tuple(settled))

    @property
    def head(self) -> str | None:
        """The digest of the newest record; None if there is no record."""
        return self.promotions[-1].sha256 if self.promotions else None

    def champions(self, current: str | None) -> list[str]:
        """Return the versions that were champion, each change once, with the current champion last.

        The list also contains versions to which somebody moved the alias without a record.
        """
        versions = []
        for promotion in self.promotions:
            versions += [promotion.record.champion, promotion.champion_after]
        champions: list[str] = []
        for version in (*versions, current):
            if version is not None and champions[-1:] != [version]:
                champions.append(version)
        return champions

    def of_rows(self, rows: RowsFacts) -> list[RecordedPromotion]:
        """Return the promotions that used the same rows."""
        return [one for one in self.promotions if _uses(one, rows)]

    def same_question(
        self, challengers: Sequence[str], champion: str, rows: RowsFacts, question: str
    ) -> RecordedPromotion | None:
        """Return the newest promotion with the same versions, rows and rule, or None.

        A promotion whose run was deleted does not count, because its run accepts no more tags.
        """
        for promotion in reversed(self.promotions):
            record = promotion.record
            is_same = _is_same_question(promotion, challengers, rows, question)
            if record.champion == champion and is_same and not promotion.deleted:
                return promotion
            if record.champion != champion or promotion.champion_after != champion:
                # The alias moved since, so the same versions are compared under new conditions.
                return None
        return None

    def before(self, promotion: RecordedPromotion) -> Chain:
        """Return the promotions before a given one."""
        place = self.promotions.index(promotion)
        return Chain(self.promotions[:place])

    def looks(self, new: str, old: str, question: str) -> Looks:
        """Return the earlier looks at a challenger under a rule, since the champion was chosen.

        A promotion, a move of the alias by hand, and another rule for this pair close the series.
        """
        looks: list[RecordedPromotion] = []
        for promotion in reversed(self.promotions):
            record = promotion.record
            if record.champion != old or promotion.champion_after != old:
                break
            if new not in record.challengers or record.rows is None or record.rule is None:
                continue
            if record.rule.question != question:
                break
            looks.insert(0, promotion)
        return Looks(new, tuple(looks))


def _uses(promotion: RecordedPromotion, rows: RowsFacts) -> bool:
    """Return whether a promotion used the same rows."""
    used = promotion.record.rows
    return used is not None and used.is_same(rows)


def _is_same_question(
    promotion: RecordedPromotion, challengers: Sequence[str], rows: RowsFacts, question: str
) -> bool:
    record = promotion.record
    return (
        _uses(promotion, rows)
        and record.rule is not None
        and record.rule.question == question
        and sorted(record.challengers) == sorted(challengers)
    )


@dataclass(frozen=True)
class Looks:
    """Earlier looks at one challenger.

    ``promotions``: all earlier looks, in order.
    """

    challenger: str
    promotions: tuple[RecordedPromotion, ...] = ()

    @property
    def n_months(self) -> int:
        """Number of different data sets on which the challenger was compared."""
        return len(_one_for_each_data_set(self.promotions))

    @property
    def open(self) -> tuple[RecordedPromotion, ...]:
        """The newest looks that were answered with "cannot tell", one for each data set."""
        newest: list[RecordedPromotion] = []
        for promotion in reversed(self.promotions):
            if promotion.record.models[self.challenger].answer is not Answer.CANNOT_TELL:
                break
            newest.insert(0, promotion)
        return tuple(_one_for_each_data_set(newest))

    def without_rows(self, rows: RowsFacts) -> Looks:
        """Return the looks at other rows."""
        others = tuple(one for one in self.promotions if not _uses(one, rows))
        return replace(self, promotions=others)


def _one_for_each_data_set(promotions: Iterable[RecordedPromotion]) -> list[RecordedPromotion]:
    """Return the first promotion of each data set."""
    first: list[RecordedPromotion] = []
    for promotion in promotions:
        rows = promotion.record.rows
        if rows is not None and not any(_uses(one, rows) for one in first):
            first.append(promotion)
    return first


# -- the decision ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Challenge:
    """The decision on one challenger.

    Attributes
    ----------
    version, champion : str
    answer : Answer
        "keep" after three looks that could not decide.
    checks : tuple of GateResult
    pairs : tuple of PairFacts
        Differences on this month's rows.
    joined : tuple of PairFacts
        Differences on the rows of all looks together; empty for a first look.
    looks : Looks
        The earlier looks that were joined.
    look : int
        Number of this look, from 1.
    rows_more : float
    """

    version: str
    champion: str
    answer: Answer
    checks: tuple[GateResult, ...]
    pairs: tuple[PairFacts, ...]
    joined: tuple[PairFacts, ...] = ()
    looks: tuple[RecordedPromotion, ...] = ()
    look: int = 1
    rows_more: float = math.nan

    @property
    def is_closed(self) -> bool:
        """True if the champion stays because three months could not decide."""
        results = Verdict(None, checks=self.checks)
        return self.answer is Answer.KEEP and results.answer is Answer.CANNOT_TELL

    def difference(self, metric: str) -> PairFacts:
        """Return the difference that decides: of the joined looks if there are any."""
        pairs = [pair for pair in (*self.joined, *self.pairs) if pair.metric == metric]
        return pairs[0]


def is_joined(gate: Gate) -> bool:
    """Return whether a gate uses the rows of earlier looks: a gate on a plain ``.difference``."""
    return gate.difference and not gate.column


def pair_facts(
    version: str, evaluation: BaseEvaluation, other: str, baseline: BaseEvaluation, metric: str
) -> PairFacts:
    """Return the difference in a metric between two versions that were evaluated on equal rows."""
    difference = paired_differences(evaluation, baseline, metrics=[metric])[metric]
    estimate = MonthEstimate.of_pair(evaluation, baseline, metric)
    counts = None
    if math.isfinite(estimate.only_new):
        counts = (estimate.only_new, estimate.only_old, estimate.squares, estimate.rows)
    return PairFacts(
        version,
        other,
        metric,
        difference.difference,
        difference.standard_error,
        difference.low,
        difference.high,
        counts,
    )


def decide(
    challenger: tuple[str, BaseEvaluation],
    champion: tuple[str, Candidate],
    gates: Sequence[Gate],
    rank_by: str,
    looks: Looks,
) -> Challenge:
    """Decide whether a challenger may replace the champion.

    If earlier looks could not decide, gates on a plain ``.difference`` use the rows of all looks
    together, and all other gates use this month's rows.

    Parameters
    ----------
    challenger : (version, evaluation)
    champion : (version, candidate)
        Both evaluations must have the same rows, and intervals at the same level.
    gates : sequence of Gate
    rank_by : str
        The metric of the rule, whose difference is also stated.
    looks : Looks
        Earlier looks at other rows.
    """
    version, evaluation = challenger
    old, candidate = champion
    metrics = dict.fromkeys([rank_by, *(gate.metric for gate in gates if is_joined(gate))])
    pairs = tuple(
        pair_facts(version, evaluation, old, candidate.evaluation, metric) for metric in metrics
    )
    rows = float(evaluation.n_samples)
    joined = {}
    if looks.open:
        for pair in pairs:
            joined[pair.metric] = _join(pair, rows, looks.open, evaluation)
    checks = []
    for gate in gates:
        if is_joined(gate) and gate.metric in joined:
            checks.append(joined[gate.metric].check(gate))
        else:
            result = judged(gate, evaluation, candidate, rank_by)
            checks.append(_with_reason(result, (version, evaluation), (old, candidate.evaluation)))
    verdict = Verdict(None, checks=tuple(checks))
    answer = verdict.answer
    look = looks.n_months + 1
    if answer is Answer.CANNOT_TELL and look >= MOST_LOOKS:
        answer = Answer.KEEP
    return Challenge(
        version,
        old,
        answer,
        tuple(checks),
        pairs,
        tuple(_joined_facts(pair, joined[pair.metric]) for pair in pairs if pair.metric in joined),
        looks.open,
        look,
        verdict.rows_more,
    )


def _join(
    pair: PairFacts, rows: float, looks: Sequence[RecordedPromotion], evaluation: BaseEvaluation
) -> Joined:
    """Return the difference of this month and of the earlier looks together."""
    months = [pair.estimate(rows)]
    for look in looks:
        earlier = look.record.pair(pair.new, pair.old, pair.metric)
        if earlier is not None and look.record.rows is not None:
            months.append(earlier.estimate(look.record.rows.n))
    defined = [month for month in months if math.isfinite(month.value)]
    entry = evaluation.catalog.lookup(pair.metric)
    reach = entry.high - entry.low
    return join_months(
        defined or months, bounds=(-reach, reach), confidence_level=evaluation.confidence_level
    )


def _joined_facts(pair: PairFacts, joined: Joined) -> PairFacts:
    return replace(
        pair,
        difference=joined.value,
        standard_error=joined.standard_error,
        low=joined.low,
        high=joined.high,
        counts=None,
    )


def _with_reason(result: GateResult, *sides: tuple[str, BaseEvaluation]) -> GateResult:
    """Return a gate's result; if its metric is undefined, with the version and the reason."""
    metric = result.gate.metric
    if math.isfinite(result.value) or result.gate.of_flips or result.gate.column:
        return result
    for version, evaluation in sides:
        value = evaluation.metrics.get(metric, 0.0)
        if not math.isfinite(value):
            why = evaluation.undefined.get(metric, "the reason is unknown")
            if only := predicts_only(evaluation, metric):
                why = f"it predicts only {quoted(only)}"
            return replace(result, reason=f"{metric} of version {version} is undefined: {why}")
    return result


# -- the result ------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Promotion:
    """The result of :func:`cmtrack.promote`.

    Attributes
    ----------
    record : PromotionRecord
    version : str
        The challenger that was promoted or chosen by force, otherwise the first challenger.
    moved : bool
        Whether the alias was moved.
    challenges : tuple of Challenge
        The decision on each challenger; empty if no champion was compared.
    comparison : RunComparison or None
        Ranking of all evaluated versions on these rows.
    run_id, experiment_id : str
        Ids of the promotion run and its experiment; empty if nothing was written.
    notes : tuple of str

    Examples
    --------
    >>> from cmtrack.comparison import Answer, Promotion, PromotionRecord
    >>> facts = {"made": "2026-06-01T08:00:00Z", "author": "", "versions": {}}
    >>> record = PromotionRecord("party", "champion", None, "1", "first champion", **facts)
    >>> Promotion(record, "1", moved=True)
    Promotion(version 1 of party is champion by force: first champion)
    """

    record: PromotionRecord
    version: str
    moved: bool
    challenges: tuple[Challenge, ...] = ()
    comparison: RunComparison | None = None
    run_id: str = ""
    experiment_id: str = ""
    notes: tuple[str, ...] = ()
    sha256: str = ""

    @property
    def answer(self) -> Answer | None:
        """The answer: promote, keep or cannot tell; None if no champion was compared."""
        return self.record.answer

    @property
    def rows_more(self) -> float:
        """Number of further rows that would decide with 80% power; NaN if unknown."""
        return self.record.rows_more

    @property
    def challenge(self) -> Challenge | None:
        """The decision on :attr:`version`; None if no champion was compared."""
        return next((one for one in self.challenges if one.version == self.version), None)

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain data, with the run and whether the alias was moved."""
        written = {
            "run_id": self.run_id,
            "experiment_id": self.experiment_id,
            "moved": self.moved,
            "sha256": self.sha256,
        }
        return self.record.to_data() | written | {"notes": list(self.notes)}

    def to_frame(self) -> pd.DataFrame:
        """Return a frame with one row for each compared pair of versions and metric.

        The columns are new, old, metric, difference, standard_error, low and high.
        """
        from cmtrack._pandas import pd

        columns = ("new", "old", "metric", "difference", "standard_error", "low", "high")
        rows = [{name: getattr(pair, name) for name in columns} for pair in self.record.pairs]
        return pd.DataFrame(rows, columns=list(columns))

    def markdown(self) -> str:
        """Return the answer as Markdown, for a card or the summary of a pipeline.

        The text is the one that ``cmtrack promote --summary`` writes, without a link to the review.
        """
        from cmtrack.report.promotion import promotion_markdown

        return promotion_markdown(self)

    def __repr__(self) -> str:
        record = self.record
        subject = f"version {self.version} of {record.model}"
        if record.answer is None or record.forced is not None:
            text = f"{subject} is {record.alias} by force: {record.forced}"
        else:
            text = f"{record.answer.value}: {subject} against version {record.champion}"
            if self.moved:
                text += f", {record.alias} moved"
        return printable(f"Promotion({text})")

    def _repr_html_(self) -> str:
        return notebook.view(
            notebook.sentence(repr(self)), notebook.table(self.to_frame()), notes=self.notes
        )
