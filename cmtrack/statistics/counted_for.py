"""The classes that rows are counted by, and what a grouping, a score and costs need of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cmtrack._lazy import cached_property
from cmtrack.grouping import ComposedStep, Grouping, Label
from cmtrack.statistics.actual_class import in_order
from cmtrack.statistics.inputs import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Counting:
    """Classes of rows, and what is counted besides the pairs of them.

    ``labels``, tuple of length K.
    ``step``: the two groups whose positive one is scored.
    ``grouping``: proper scores and hit probabilities are kept of the groups of its steps too.
    ``costs``, shape (K, K): costs of actual by predicted classes, under which decisions are
        counted.
    """

    labels: tuple[Label, ...]
    step: ComposedStep | None = None
    grouping: Grouping | None = None
    costs: FloatArray | None = None

    @cached_property
    def _steps(self) -> tuple[ComposedStep, ...]:
        return () if self.grouping is None else self.grouping.compose(self.labels)

    @cached_property
    def groups(self) -> IntArray:
        """Group of each class in each step of the grouping, shape (S, K), as they first appear."""
        groups = [in_order(step.group_of_class) for step in self._steps]
        return np.array(groups, dtype=np.int64).reshape(-1, len(self.labels))

    @cached_property
    def accept(self) -> BoolArray:
        """Pairs of classes that each step of the grouping accepts, shape (S, K, K)."""
        size = len(self.labels)
        pairs = [step.accept for step in self._steps]
        return np.array(pairs, dtype=np.bool_).reshape(-1, size, size)
