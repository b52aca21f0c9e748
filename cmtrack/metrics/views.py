"""The arguments of metrics for an evaluation, from which sections of metrics are computed."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from typing import TypeVar

import numpy as np

from cmtrack._lazy import cached_property
from cmtrack.grouping import ComposedStep, Grouping, Label
from cmtrack.metrics.cells import Cells, Table
from cmtrack.metrics.metric import Metric, Section
from cmtrack.metrics.names import encode_label
from cmtrack.metrics.results import Results
from cmtrack.metrics.samples import KINDS, Samples
from cmtrack.statistics import BinaryCounts, ReducedConfusionMatrix
from cmtrack.statistics.collected import Statistics
from cmtrack.statistics.counted import Counted
from cmtrack.statistics.counting import SparseCounts
from cmtrack.statistics.inputs import BoolArray, FloatArray
from cmtrack.statistics.reduced import reduce_counts

Names = Mapping[int, str]
Kind = TypeVar("Kind", bound=Samples)


class Views:
    """The arguments for the functions of metrics, by the field ``of`` of the metric."""

    @property
    def steps(self) -> tuple[str, ...]:
        """Encoded names of the steps of the grouping."""
        return ()

    def of(self, metric: Metric, step: str = "") -> Samples | None:
        """Return the samples for a metric; None if the metric does not apply."""
        raise NotImplementedError

    def names(self, metric: Metric, step: str = "") -> Names | None:
        """Return the encoded names of a metric's classes, groups or families, by index.

        The result is None if the metric has only a single value.
        """
        raise NotImplementedError

    def put(self, results: Results, section: Section) -> None:
        """Compute the metrics of a section that apply, and add them to the results."""
        steps = self.steps if "<step>" in section.metrics[0].name else ("",)
        for step in steps:
            applying = []
            for metric in section.metrics:
                samples = self.of(metric, step)
                if samples is not None:
                    applying.append((self.names(metric, step), metric, samples))
            # Adjacent metrics for the same classes or groups are computed together, so that the
            # results are ordered by the name of the class or group.
            for _, neighbours in groupby(applying, lambda part: id(part[0])):
                together = list(neighbours)
                names = together[0][0]
                if names is not None:
                    metrics = [(metric, samples) for _, metric, samples in together]
                    results.put_each(metrics, names, step)
                    continue
                for _, metric, samples in together:
                    results.put_metric(metric, samples, metric.name.replace("<step>", step))


@dataclass(eq=False, repr=False)
class EvaluationViews(Views):
    """Arguments for the metrics of an :class:`Evaluation`, each created when it is first used.

    ``step``: the step with two groups or classes, one of which is the positive group.
    ``over``, shape (K,), bool: the classes that averages include if one class means "no span". By
        default, averages include all classes.
    ``level``: confidence level for estimates that compute their intervals themselves.
    ``reference``, shape (K,): shares of the classes that the reference of a skill predicts. By
        default, they are the shares of the classes among the rows.
    ``prices``, shape (K, K): costs with actual classes in rows and predicted classes in columns.
    ``ordered``: whether the classes are ordered, which the section ``ordinal/`` needs.
    """

    statistics: Statistics
    grouping: Grouping | None = None
    step: ComposedStep | None = None
    over: BoolArray | None = None
    level: float = 0.95
    reference: FloatArray | None = None
    prices: FloatArray | None = None
    ordered: bool = False
    _seen: dict[tuple[str, str], Samples | None] = field(default_factory=dict, init=False)

    def of(self, metric: Metric, step: str = "") -> Samples | None:
        samples = KINDS.get(metric.of)
        if samples is None or not metric.function.applies(self):
            return None
        return self.seen(samples, metric.of, step)

    def seen(self, samples: type[Kind], kind: str = "", step: str = "") -> Kind | None:
        """Return the samples of a kind; None if no samples of this kind apply.

        By default, the kind is the first one that the class ``samples`` lists.
        """
        key = (kind or samples.kinds[0], step)
        if key not in self._seen:
            self._seen[key] = samples.of_views(self, *key)
        return self._seen[key]  # type: ignore[return-value]  # made by its class

    def names(self, metric: Metric, step: str = "") -> Names | None:
        if "<group>" in metric.name:
            _, all_groups, averaged_groups = self.reduced[step]
            return all_groups if metric.interval == "count" else averaged_groups
        return self.held if "<label>" in metric.name else None

    def put_one(self, results: Results, metric: Metric, parts: Mapping[str, str]) -> None:
        """Compute a single metric if it applies.

        ``parts``: the encoded step, label or group that is part of the metric's name.
        """
        step = parts.get("step", "")
        samples = self.of(metric, step)
        if samples is None:
            return
        names = self.names(metric, step)
        if names is None:
            results.put_metric(metric, samples, metric.name.replace("<step>", step))
            return
        name = parts.get("group", parts.get("label"))
        matching = {k: encoded for k, encoded in names.items() if encoded == name}
        results.put_each([(metric, samples)], matching, step)

    def of_part(self, statistics: Statistics, level: float) -> EvaluationViews:
        """Return the views for the statistics of a part of the rows, at a confidence level."""
        views = replace(self, statistics=statistics, level=level)
        views.composed = self.composed
        return views

    def at_level(self, level: float) -> EvaluationViews:
        """Return the views at a different confidence level.

        Intervals are computed again from the same counts.
        """
        views = copy(self)
        views.level = level
        views._seen = {key: view for key, view in self._seen.items() if not KINDS[key[0]].by_level}
        return views

    def forget(self) -> None:
        """Remove the views whose size increases with the square of the number of classes.

        They are computed again if they are needed.
        """
        self._seen = {key: view for key, view in self._seen.items() if not KINDS[key[0]].by_pairs}

    # -- tables ------------------------------------------------------------------------------------

    @cached_property
    def table(self) -> Table:
        tables = self.statistics.tables.map(SparseCounts.of_array)
        is_whole = tables.sums.sums.dtype.kind == "i"
        return Table(Cells.of_matrix(tables), self.over, whole=is_whole)

    def table_of(self, step: str) -> Table:
        """Return the table of the classes, or of the groups of a step."""
        return self.reduced[step][0] if step else self.table

    @cached_property
    def held(self) -> dict[int, str]:
        """Encoded names of the classes by index, without the null-span label."""
        return _held(self.table, self.statistics.matrix.labels)

    @cached_property
    def composed(self) -> dict[str, ComposedStep]:
        """The steps of the grouping by their encoded names."""
        if self.grouping is None:
            return {}
        steps = self.grouping.compose(self.statistics.matrix.labels)
        return {encode_label(step.name): step for step in steps}

    @property
    def steps(self) -> tuple[str, ...]:
        return tuple(self.composed)

    @cached_property
    def matrices(self) -> tuple[Counted[ReducedConfusionMatrix], ...]:
        """The reduced matrix of each step."""
        return tuple(
            self.statistics.counts.map(partial(reduce_counts, step=step))
            for step in self.composed.values()
        )

    @cached_property
    def reduced(self) -> dict[str, tuple[Table, dict[int, str], dict[int, str]]]:
        """Table of the groups in each step, with the names of all groups and of averaged groups."""
        tables = {}
        for (name, step), matrix in zip(self.composed.items(), self.matrices, strict=True):
            table = Table(Cells.of_reduced(matrix), groups_over(step, self.over))
            all_groups = {g: encode_label(group) for g, group in enumerate(step.labels)}
            tables[name] = (table, all_groups, _held(table, step.labels))
        return tables

    @cached_property
    def binary(self) -> Counted[BinaryCounts] | None:
        """The six counts; None if there are not two groups."""
        step = self.step
        if step is None:
            return None
        return self.statistics.counts.map(lambda counts: reduce_counts(counts, step).as_binary())


def groups_over(step: ComposedStep, over: BoolArray | None) -> BoolArray | None:
    """Return a mask of the groups that averages include.

    These are the groups that contain at least one class that averages include.
    """
    if over is None:
        return None
    n_averaged = np.bincount(step.group_of_class[over], minlength=len(step.labels))
    if n_averaged.all():
        return None
    return n_averaged > 0


def _held(table: Table, labels: tuple[Label, ...]) -> dict[int, str]:
    return {k: encode_label(label) for k, label in enumerate(labels) if table.kept[k]}
