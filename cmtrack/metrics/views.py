"""The samples of an evaluation as each of its metrics sees them, and the sections computed from them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from itertools import groupby
from typing import Any, TypeVar

import numpy as np

from cmtrack.grouping import ComposedStep, Grouping, Label
from cmtrack.metrics.calibration import ReliabilityTable
from cmtrack.metrics.cells import Cells, SixCells, Table
from cmtrack.metrics.class_curves import ClassCurves
from cmtrack.metrics.confidence import HitTable
from cmtrack.metrics.costs import Decided, Priced
from cmtrack.metrics.metric import Metric, Section
from cmtrack.metrics.moments import ScoreSamples, Sides
from cmtrack.metrics.names import encode_label
from cmtrack.metrics.probability import LossSamples, RankCells, TopK
from cmtrack.metrics.results import Results
from cmtrack.metrics.roc import ScoreTable
from cmtrack.metrics.samples import KINDS, Samples
from cmtrack.metrics.spcc import ClassScores
from cmtrack.statistics import BinaryCounts, ReducedConfusionMatrix
from cmtrack.statistics.collected import Statistics
from cmtrack.statistics.inputs import BoolArray, FloatArray
from cmtrack.statistics.reduced import reduce_counts

Names = Mapping[int, str]
Kind = TypeVar("Kind", bound=Samples)
_WITHOUT_LEVEL = (
    "table",
    "matrices",
    "reduced",
    "binary",
    "six",
    "ranks",
    "spread",
    "means",
    "_class_scores",
    "_losses",
)
_LOSSES = {"log losses": "log", "brier losses": "brier", "spherical losses": "spherical", "losses within": "within"}


class Views:
    """The arguments of metrics' functions, by their ``of``."""

    @property
    def steps(self) -> tuple[str, ...]:
        """Encoded names of the grouping's steps."""
        return ()

    def of(self, metric: Metric, step: str = "") -> Samples | None:
        """The samples as a metric sees them; None where it does not apply."""
        raise NotImplementedError

    def names(self, metric: Metric, step: str = "") -> Names | None:
        """Encoded names of the classes, groups or families that a metric is of, by number; None for a single one."""
        raise NotImplementedError

    def put(self, results: Results, section: Section) -> None:
        """Compute the metrics of a section that apply."""
        for step in self.steps if "<step>" in section.metrics[0].name else ("",):
            there = [(self.names(m, step), m, self.of(m, step)) for m in section.metrics]
            for _, run in groupby((one for one in there if one[2] is not None), lambda one: id(one[0])):
                (names, *_), *_ = together = list(run)
                if names is not None:
                    results.put_each([(metric, samples) for _, metric, samples in together if samples], names, step)
                    continue
                for _, metric, samples in together:
                    if samples is not None:
                        results.put_metric(metric, samples, metric.name.replace("<step>", step))


class EvaluationViews(Views):
    """The views of an :class:`Evaluation`; each is made when it is first asked for.

    Parameters
    ----------
    statistics : Statistics
    grouping : Grouping, optional
    step : ComposedStep, optional
        The two groups, or classes, one of which is the positive one.
    over : ndarray of shape (K,), bool, optional
        The classes that averages are taken over where one class stands for no span; by default all.
    level : float
        Confidence level of the estimates that bring their own intervals.
    reference : ndarray of shape (K,), optional
        Shares of the classes that skills are measured against; by default those of the rows.
    prices : ndarray of shape (K, K), optional
        Costs of actual by predicted classes.
    """

    def __init__(
        self,
        statistics: Statistics,
        grouping: Grouping | None = None,
        step: ComposedStep | None = None,
        over: BoolArray | None = None,
        level: float = 0.95,
        reference: FloatArray | None = None,
        prices: FloatArray | None = None,
    ) -> None:
        self.statistics, self.grouping, self.step, self.over, self.level = statistics, grouping, step, over, level
        self.reference, self.prices = reference, prices
        self._squares = statistics.squares
        self._losses: dict[tuple[str, str], LossSamples | None] = {}
        self._hits: dict[str, HitTable | None] = {}
        self._seen: dict[str, Samples | None] = {}

    def seen(self, samples: type[Kind], kind: str) -> Kind | None:
        """The samples of a kind, as their class makes them; None where metrics of it do not apply."""
        if kind not in self._seen:
            self._seen[kind] = samples.seen(self, kind)
        found: Any = self._seen[kind]
        return found  # type: ignore[no-any-return]

    def of(self, metric: Metric, step: str = "") -> Samples | None:
        kind = metric.of
        if kind == "granules":
            return None
        if kind in ("counts", "table", "whole table", "classes", "spans"):
            if (kind == "whole table" or metric.section == "rough") and self.over is not None:
                return None  # the cell in which neither side names a span is always empty; spans are no partition
            if kind == "spans" and self.over is None:
                return None
            table = self.reduced[step][0] if step else self.table
            return table.cells if kind == "counts" else table
        if kind == "confidence":
            return self.hits(step)
        if kind in _LOSSES:
            return self.losses(_LOSSES[kind], step)
        if isinstance(metric.value, TopK) and metric.value.k >= len(self.statistics.matrix.labels):
            return None
        if kind in KINDS:
            return self.seen(KINDS[kind], kind)
        found: Samples | None = getattr(self, "six" if kind == "binary" else kind.replace(" ", "_"))
        return None if metric.section == "prevalence" and kind == "binary" and self.means is None else found

    def names(self, metric: Metric, step: str = "") -> Names | None:
        if "<group>" in metric.name:
            _, everyone, held = self.reduced[step]
            return everyone if metric.interval == "count" else held
        return self.held if "<label>" in metric.name else None

    def put_one(self, results: Results, metric: Metric, parts: Mapping[str, str]) -> None:
        """Compute a single metric, where it applies.

        Parameters
        ----------
        results : Results
        metric : Metric
        parts : mapping of str to str
            The encoded step, label or group in its name.
        """
        step = parts.get("step", "")
        samples, names = self.of(metric, step), self.names(metric, step)
        if samples is None:
            return
        if names is None:
            results.put_metric(metric, samples, metric.name.replace("<step>", step))
            return
        wanted = parts.get("group", parts.get("label"))
        results.put_each([(metric, samples)], {k: name for k, name in names.items() if name == wanted}, step)

    def of_part(self, statistics: Statistics, level: float) -> EvaluationViews:
        """The views of some of the rows, at a level."""
        views = EvaluationViews(statistics, self.grouping, self.step, self.over, level, self.reference, self.prices)
        views.composed = self.composed
        return views

    def at_level(self, level: float) -> EvaluationViews:
        """The views at another level: counts are kept, estimates with intervals of their own are made again."""
        views = self.of_part(self.statistics, level)
        views.__dict__.update({name: value for name, value in self.__dict__.items() if name in _WITHOUT_LEVEL})
        return views

    def forget(self) -> None:
        """Drop what grows with the square of the classes; it is made again when it is asked for."""
        for name in ("_class_scores", "class_scores"):
            self.__dict__.pop(name, None)
        self._seen.pop("class shares", None)

    # -- tables ----------------------------------------------------------------------------------------

    @cached_property
    def table(self) -> Table:
        matrix, squares = self.statistics.matrix, self._squares
        cells = Cells.of_matrix(matrix, squares.matrix if squares else None)
        return Table(cells, self.over, whole=matrix.counts.dtype.kind == "i")

    @cached_property
    def held(self) -> dict[int, str]:
        """Encoded names of the classes by number, without the null-span label."""
        return _held(self.table, self.statistics.matrix.labels)

    @cached_property
    def composed(self) -> dict[str, ComposedStep]:
        """The steps of the grouping by their encoded names."""
        steps = () if self.grouping is None else self.grouping.compose(self.statistics.matrix.labels)
        return {encode_label(step.name): step for step in steps}

    @property
    def steps(self) -> tuple[str, ...]:
        return tuple(self.composed)

    @cached_property
    def matrices(self) -> tuple[tuple[ReducedConfusionMatrix, ReducedConfusionMatrix | None], ...]:
        """The reduced matrix of each step, and the same with squared weights where these are fractions."""
        if self.grouping is None:
            return ()
        own, squares = self.statistics.matrix.counts, self._squares.matrix.counts if self._squares else None
        steps = self.composed.values()
        return tuple((reduce_counts(own, s), None if squares is None else reduce_counts(squares, s)) for s in steps)

    @cached_property
    def reduced(self) -> dict[str, tuple[Table, dict[int, str], dict[int, str]]]:
        """Of each step the table of its groups, the names of all groups, and of those that averages are taken over."""
        found = {}
        for (name, step), (own, squared) in zip(self.composed.items(), self.matrices, strict=True):
            table = Table(Cells.of_reduced(own, squared), groups_over(step, self.over))
            everyone = {g: encode_label(group) for g, group in enumerate(own.labels)}
            found[name] = table, everyone, _held(table, own.labels)
        return found

    @cached_property
    def binary(self) -> tuple[BinaryCounts, BinaryCounts | None] | None:
        """The six counts, and the same with squared weights where these are fractions."""
        if self.step is None:
            return None
        squares = self._squares
        return (
            reduce_counts(self.statistics.matrix.counts, self.step).as_binary(),
            reduce_counts(squares.matrix.counts, self.step).as_binary() if squares else None,
        )

    @cached_property
    def six(self) -> SixCells | None:
        return None if self.binary is None else SixCells.of_counts(*self.binary)

    @cached_property
    def costs(self) -> Priced | None:
        """The full matrix with what its cells cost, where costs are given."""
        if self.prices is None:
            return None
        return Priced(
            self.statistics.matrix.counts, self._squares.matrix.counts if self._squares else None, self.prices
        )

    @cached_property
    def decisions(self) -> Decided | None:
        """The decisions under these costs that the probabilities lead to, where these were given."""
        kept = self.statistics.decisions
        if kept is None or self.prices is None or not np.array_equal(kept.costs, self.prices):
            return None
        return Decided(kept, self._squares.decisions if self._squares else None)

    # -- probabilities ---------------------------------------------------------------------------------

    def losses(self, loss: str, step: str = "") -> LossSamples | None:
        """A loss of the classes, or of a step's groups; without a step, the loss within groups is of the last one."""
        if loss == "within" and not step and self.steps:
            step = self.steps[-1]
        if (loss, step) not in self._losses:
            groups = self.composed[step].group_of_class if step else None
            scores, squares = self.statistics.losses, self._squares.losses if self._squares else None
            found = None
            if scores is not None and (step or loss != "within") and scores.place(loss, groups) is not None:
                found = LossSamples(scores, squares, loss, groups, self.reference, self.statistics.moments)
            self._losses[loss, step] = found
        return self._losses[loss, step]

    @cached_property
    def ranks(self) -> RankCells | None:
        """The rank of the actual class, where there are more than two."""
        if self.statistics.ranks is None:
            return None
        return RankCells(self.statistics.ranks, self._squares.ranks if self._squares else None)

    # -- scores ----------------------------------------------------------------------------------------

    @cached_property
    def scores(self) -> ScoreTable | None:
        """The positive group's score, counted."""
        if self.statistics.scores is None or self.step is None:
            return None
        return ScoreTable(self.statistics.scores, self._squares.scores if self._squares else None)

    @cached_property
    def reliability(self) -> ReliabilityTable | None:
        """The positive group's score, counted, as its calibration sees it."""
        if self.statistics.scores is None or self.step is None or self.statistics.ranking_only:
            return None
        return ReliabilityTable(self.statistics.scores, self._squares.scores if self._squares else None, self.level)

    def hits(self, step: str = "") -> HitTable | None:
        """The hit probability of the classes, or in the groups of a step; None for two classes as they are."""
        counts, squares = self.statistics.hits, self._squares.hits if self._squares else None
        if counts is None or len(self.statistics.matrix.labels) < 3:
            return None
        if step not in self._hits:
            accept = self.composed[step].accept if step else None
            own, squared = counts.of(accept), None if squares is None else squares.of(accept)
            self._hits[step] = None if own is None else HitTable(own, squared, self.level, accept)
        return self._hits[step]

    @cached_property
    def class_curves(self) -> ClassCurves | None:
        """The probability of each class, counted."""
        scores = self.statistics.class_scores
        if scores is None:
            return None
        return ClassCurves(scores, self._squares.class_scores if self._squares else None, self.level)

    @property
    def class_calibration(self) -> ClassCurves | None:
        """The probability of each class, counted; None for decision values."""
        return None if self.statistics.ranking_only else self.class_curves

    @property
    def class_pairs(self) -> ClassCurves | None:
        """The probability of each class, where it is counted by actual class."""
        return self.class_curves if self.class_curves is not None and self.class_curves.pairs is not None else None

    @cached_property
    def spread(self) -> ScoreSamples | None:
        """Moments of the positive group's score."""
        if self.statistics.score_moments is None or self.step is None:
            return None
        squares = self._squares.score_moments if self._squares else None
        return ScoreSamples(
            Sides.of_score(self.statistics.score_moments),
            None if squares is None else Sides.of_score(squares),
            self.statistics.labels_variance or 0.0,
        )

    @property
    def moments(self) -> ScoreSamples | None:
        """Moments of the positive group's score, where the scores are counted too."""
        return None if self.scores is None else self.spread

    @cached_property
    def means(self) -> ScoreSamples | None:
        """Moments of the positive group's score, or means without spreads: those of the group's classes add up."""
        if self.spread is not None or self.step is None or self.statistics.moments is None:
            return self.spread
        squares = self._squares.moments if self._squares else None
        positive = self.step.in_positive
        return ScoreSamples(
            Sides.of_means(self.statistics.moments, positive),
            None if squares is None else Sides.of_means(squares, positive),
        )

    @cached_property
    def class_scores(self) -> ClassScores | None:
        """The scores of all classes, where there are more than two."""
        return self._class_scores if len(self.statistics.matrix.labels) > 2 else None

    @cached_property
    def _class_scores(self) -> ClassScores | None:
        statistics, squares = self.statistics, self._squares
        if statistics.moments is None:
            return None
        squared = (squares.moments, squares.cross) if squares else (None, None)
        return ClassScores(statistics.moments, statistics.cross, *squared)

    @property
    def class_moments(self) -> ScoreSamples | None:
        """Each class's score, against the others."""
        return None if self.class_scores is None else self.class_scores.one_vs_rest

    @property
    def class_means(self) -> ScoreSamples | None:
        """Each class's score, against the others, where there are no two groups."""
        return self._class_scores.one_vs_rest if self._class_scores and self.step is None else None


def groups_over(step: ComposedStep, over: BoolArray | None) -> BoolArray | None:
    """Groups that contain an averaged class: averages of groups are taken over these."""
    if over is None:
        return None
    held: BoolArray = np.bincount(step.group_of_class[over], minlength=len(step.labels)) > 0
    return None if held.all() else held


def _held(table: Table, labels: tuple[Label, ...]) -> dict[int, str]:
    return {k: encode_label(label) for k, label in enumerate(labels) if table.kept[k]}
