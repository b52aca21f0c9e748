"""Histories of a registered model that are built in memory, without MLflow."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

# The parts of a record are only read from outside, never built.
from cmtrack.comparison import (
    Answer,
    Chain,
    GateFacts,
    History,
    ModelFacts,
    PairFacts,
    PromotionRecord,
    RecordedPromotion,
    RowsFacts,
    RuleFacts,
)

# A store is not needed to build records and months; the doors have no such functions.
from cmtrack.comparison.history import problems_of
from cmtrack.comparison.months import MonthEstimate  # as in a record
from cmtrack.comparison.promotion_record import digest_of  # the digest of a rule
from cmtrack.evaluation.gates import GateOutcome  # part of a record
from cmtrack.metrics.intervals import tango  # the interval in a record

ACCURACY = "multiclass/accuracy"
GATE = f"{ACCURACY}.difference.low > 0"


class Story:
    """A registered model whose months are simulated one after another.

    A version is correct on a row if the row is easier than the version's accuracy, up to noise, so
    that versions are correct on similar rows.
    """

    def __init__(
        self, seed: int = 0, rows: int = 4000, metric: str = ACCURACY, clusters: int | None = None
    ) -> None:
        self.rng = np.random.default_rng(seed)
        self.rows = rows
        self.metric = metric
        self.clusters = clusters
        self.champion = "1"
        self.before: str | None = None
        self.promotions: list[RecordedPromotion] = []

    def add(
        self,
        name: str,
        accuracies: dict[str, float],
        *,
        challenger: str,
        made: str,
        answer: Answer,
        move: bool = True,
        also: Sequence[str] = (),
        rule: str = "rule",
    ) -> None:
        """Add a month with one challenger; ``also``: other versions that are evaluated."""
        difficulty = self.rng.uniform(size=self.rows)
        correct = {
            version: difficulty + self.rng.normal(scale=0.04, size=self.rows) < accuracy
            for version, accuracy in accuracies.items()
            if version in (self.champion, challenger, *also)
        }
        roles = {self.champion: "champion", challenger: "challenger"}
        models = {
            version: ModelFacts(
                roles.get(version, "first" if version == "1" else "previous"),
                f"{len(self.promotions):016x}{int(version):016x}",
                f"m-{version}",
                0,
                answer if version == challenger else None,
            )
            for version in correct
        }
        pairs = [self._pair(challenger, self.champion, correct)]
        pairs += [self._pair(self.champion, old, correct) for old in correct if old in also]
        is_promoted = answer is Answer.PROMOTE
        outcome = {
            Answer.PROMOTE: GateOutcome.HOLDS,
            Answer.KEEP: GateOutcome.REFUTED,
            Answer.CANNOT_TELL: GateOutcome.OPEN,
        }[answer]
        record = PromotionRecord(
            "party",
            "champion",
            answer,
            challenger if is_promoted else None,
            None,
            made=made,
            author="Ünal",
            versions={"cmtrack": "0.3.0"},
            rule=RuleFacts("rule.yaml", digest_of(rule.encode()), self.metric, (GATE,), 0.95),
            rows=RowsFacts(
                name, self.rows, f"{self.rows}.{len(self.promotions):011}.B", None, self.clusters
            ),
            models=models,
            values={
                version: {self.metric: _share(float(is_correct.mean()), self.rows)}
                for version, is_correct in correct.items()
            },
            pairs=tuple(pairs),
            gates=(GateFacts(challenger, GATE, outcome, pairs[0].low, math.nan),),
            bundle="b" * 64,
            previous=self.promotions[-1].sha256 if self.promotions else None,
        )
        run_id = f"{len(self.promotions):032x}"
        moved = is_promoted and move
        self.promotions.append(RecordedPromotion(run_id, record, record.to_bytes(), moved))
        if moved:
            self.move_by_hand(challenger)

    def move_by_hand(self, version: str) -> None:
        """Move the alias; the next record has the new champion."""
        self.before = self.champion
        self.champion = version

    def history(self, over: str = "first", as_of: str = "2026-12-31") -> History:
        """Return the history with what the records show by themselves under "To check"."""
        chain = Chain(tuple(self.promotions))
        story = History("party", "champion", self.champion, self.metric, over, chain, as_of=as_of)
        found = tuple(problems_of(chain, story.terms, "champion"))
        return History(
            "party", "champion", self.champion, self.metric, over, chain, found, as_of=as_of
        )

    def _pair(self, new: str, old: str, correct: dict[str, np.ndarray]) -> PairFacts:
        only_new = float((correct[new] & ~correct[old]).sum())
        only_old = float((~correct[new] & correct[old]).sum())
        estimate = MonthEstimate.of_counts(only_new, only_old, self.rows)
        ends = tango(
            np.array([only_old, only_new]),
            np.array([only_new, only_old]),
            self.rows,
            1.959963984540054,
        )
        counts = (only_new, only_old, only_new + only_old, float(self.rows))
        return PairFacts(
            new,
            old,
            self.metric,
            estimate.value,
            estimate.standard_error,
            -float(ends[0]),
            float(ends[1]),
            counts,
        )


def _share(share: float, rows: int) -> tuple[float, float]:
    return share, math.sqrt(share * (1 - share) / rows)


def long_story(months: int = 24, *, name: str = "{year}-{month:02}", rows: int = 4000) -> Story:
    """Return months with a promotion every fifth month, a move by hand and another rule."""
    story = Story(rows=rows)
    accuracies = {"1": 0.84}
    best = 0.84
    for place in range(months):
        challenger = str(place + 2)
        answer = Answer.CANNOT_TELL
        accuracies[challenger] = best
        if place % 5 == 1:
            best += 0.012
            accuracies[challenger] = best
            answer = Answer.PROMOTE
        if place % 5 == 3:
            accuracies[challenger] = best - 0.02
            answer = Answer.KEEP
        also = [version for version in ("1", story.before) if version not in (None, story.champion)]
        year, month = divmod(place, 12)
        facts = {"year": 2024 + year, "month": month + 1}
        story.add(
            name.format(**facts),
            accuracies,
            challenger=challenger,
            made="{year}-{month:02}-02T08:00:00Z".format(**facts),
            answer=answer,
            also=also,
            rule="rule" if place < 12 else "another rule",
        )
        if place == 14:
            story.move_by_hand(challenger)
    return story
