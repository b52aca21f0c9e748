"""Names, titles and other texts that the sentences and tables of a review share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cmtrack._lazy import cached_property
from cmtrack.base import BaseEvaluation
from cmtrack.comparison.comparability import apart, headings
from cmtrack.comparison.compare import shares_in_words
from cmtrack.comparison.criterion import Criterion
from cmtrack.comparison.planning import Looks, Resolution
from cmtrack.comparison.ranking import Ranked, Ranking
from cmtrack.comparison.result import Comparison
from cmtrack.comparison.rows import step_of
from cmtrack.comparison.run import Run
from cmtrack.comparison.spec import several
from cmtrack.digits import short_percent
from cmtrack.evaluation import Evaluation
from cmtrack.grouping import Label
from cmtrack.names import distinct, quoted
from cmtrack.report import formatting as fmt
from cmtrack.report.review.columns import Column, columns_of
from cmtrack.report.review.phrases import counts_rows, criterion_title
from cmtrack.report.review.shown import rival

WIDTH = 60
"""Maximum number of characters of a run's name in sentences and tables."""


@dataclass(frozen=True, eq=False)
class Review:
    """A comparison, with the names and words that its sentences and tables share."""

    comparison: Comparison

    @property
    def noun(self) -> str:
        """The word for an entry of the ranking: "run" or "model"."""
        return self.comparison.noun

    @property
    def criterion(self) -> Criterion:
        """The criterion of the ranking."""
        return self.comparison.criterion

    @property
    def tie_breakers(self) -> list[str]:
        """The tie-breakers of the comparison."""
        return several(self.comparison.how.get("tie_breakers") or ())

    @property
    def rankings(self) -> tuple[Ranking, ...]:
        """All rankings; the ranking that decides the comparison comes first."""
        return self.comparison.rankings

    @property
    def ranking(self) -> Ranking | None:
        """The ranking that decides the comparison, or None if no run is ranked."""
        return self.comparison.ranking

    @property
    def run_ranking(self) -> Ranking | None:
        """The ranking of runs that decides the comparison.

        The value is None if models are ranked or if no run is ranked.
        """
        return None if self.comparison.repeated else self.comparison.ranking

    @cached_property
    def rival(self) -> Ranked | None:
        """The run to compare with the chosen run.

        The value is None if no ranking contains several runs.
        """
        return None if self.run_ranking is None else rival(self.run_ranking)

    @cached_property
    def right_side(self) -> str:
        """The noun for predicted labels: "class", or "group" if a grouping step ranks the runs."""
        ranking = self.run_ranking
        if ranking is None or not isinstance(ranking.foremost.evaluation, Evaluation):
            return "class"
        step = step_of(self.comparison, ranking.foremost.evaluation)
        return "class" if step is None else "group"

    # -- names and titles --------------------------------------------------------------------------

    @cached_property
    def names(self) -> dict[str, str]:
        """The names of all runs, ranked runs first, with shared parts of long names cut out."""
        comparison = self.comparison
        full = [entry.name for entry in comparison.standings]
        full += [stop.name for stop in comparison.failed]
        full += [unranked.run.name for unranked in comparison.left_out]
        full += [run.name for run in comparison.passed_over]
        return dict(zip(full, distinct(full, WIDTH), strict=True))

    def say(self, name: str) -> str:
        """Return a run's name as it appears in a sentence: short and in quotation marks."""
        return quoted(self.names.get(name, name))

    def say_all(self, runs: Iterable[Ranked | Run]) -> str:
        """Return the names of several runs for a sentence."""
        return fmt.join_names([self.say(run.name) for run in runs])

    @cached_property
    def numbers(self) -> dict[str, int]:
        """A mapping from run names to numbers, ranked runs first.

        Parts of the page that have the same number belong to the same run.
        """
        return {name: number for number, name in enumerate(self.names)}

    @cached_property
    def positive(self) -> Label | None:
        """The positive group of all runs.

        The value is None if there is no positive group, or if the positive groups of the runs
        differ.
        """
        positives = {run.evaluation.positive for run in self.comparison.runs}
        return positives.pop() if len(positives) == 1 else None

    @cached_property
    def title(self) -> str:
        """The criterion in words, with the positive group of all runs."""
        return criterion_title(self.comparison.criterion, self.positive)

    @property
    def level(self) -> str:
        """The confidence level as text, such as "95%"."""
        return fmt.level(self.comparison.confidence_level)

    @cached_property
    def columns(self) -> list[Column]:
        """The columns of the rankings."""
        return columns_of(self.comparison, self.at)

    @cached_property
    def distinctions(self) -> list[str]:
        """The heading of each of several rankings, such as "grouped by “parity”"."""
        return headings(self.comparison.rankings, self.comparison.reads)

    @cached_property
    def why_apart(self) -> tuple[str, ...]:
        """Sentences that explain why there is more than one ranking.

        The result is empty if there is only one ranking.
        """
        return apart(self.comparison.rankings, self.comparison.reads)

    # -- class shares ------------------------------------------------------------------------------

    @property
    def shares(self) -> float | Mapping[Label, float] | None:
        """The class shares that the comparison assumes.

        The value is None if the comparison uses the actual shares.
        """
        return self.comparison.how.get("at")

    @property
    def at(self) -> str:
        """Words to add to a metric's heading, such as " at 2%".

        The text is empty if the comparison uses the actual class shares.
        """
        if self.shares is None:
            return ""
        if isinstance(self.shares, float):
            return f" at {short_percent(self.shares)}"
        return " at other shares"

    @property
    def judged_at(self) -> str:
        """A short text that names the assumed class shares.

        The text is empty if the comparison uses the actual class shares.
        """
        if self.shares is None:
            return ""
        return f"evaluated at {shares_in_words(self.shares, self.positive)}"

    @cached_property
    def assumed(self) -> str:
        """The assumed class shares as an if-clause.

        The text is empty if the comparison uses the actual class shares. An example is "If 2% of
        the rows were “spam”". If the names of the positive group differ between the runs, the
        clause is "If 2% of the rows were positive".
        """
        if self.shares is None:
            return ""
        shares = self.shares
        if isinstance(shares, float):
            shares = {self.positive: shares}
        parts = []
        for name, share in shares.items():
            group = "positive" if name is None else quoted(name)
            parts.append(f"{short_percent(share)} of the rows were {group}")
        return f"If {fmt.join_names(parts, 8)}"

    def samples(self, evaluation: BaseEvaluation) -> str:
        """Return the number of rows of an evaluation, and the weight of the rows, in words.

        The weight is omitted if it results only from the assumed class shares.
        """
        return fmt.samples(evaluation, self.shares is None or not counts_rows(evaluation))

    # -- the strength of the evidence --------------------------------------------------------------

    @cached_property
    def looks(self) -> Looks | None:
        """The value of :attr:`Comparison.looks`, or None if it is not defined."""
        try:
            return self.comparison.looks
        except ValueError:
            return None

    @cached_property
    def resolution(self) -> Resolution | None:
        """The value of :attr:`Comparison.resolution`, or None if it is not defined."""
        try:
            return self.comparison.resolution
        except ValueError:
            return None
