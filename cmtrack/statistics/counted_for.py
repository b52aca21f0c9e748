"""Options that determine what to count: classes, grouping, positive group and costs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cmtrack._lazy import cached_property
from cmtrack.grouping import ComposedStep, Grouping, Label
from cmtrack.statistics.actual_class import in_order
from cmtrack.statistics.inputs import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Counting:
    """Classes of the rows, and options that add statistics to the confusion matrix.

    ``labels``, tuple of length K: the classes in order.
    ``step``: the step with two groups; the score is the probability of its positive group.
    ``grouping``: a grouping. Proper scores and hit probabilities are also computed for its steps.
    ``costs``, shape (K, K): costs by actual and predicted class, which determine the decisions.
    ``ordered``: whether the classes are ordered, so that the ranked loss is computed.
    """

    labels: tuple[Label, ...]
    step: ComposedStep | None = None
    grouping: Grouping | None = None
    costs: FloatArray | None = None
    ordered: bool = False

    @cached_property
    def _steps(self) -> tuple[ComposedStep, ...]:
        return () if self.grouping is None else self.grouping.compose(self.labels)

    @cached_property
    def groups(self) -> IntArray:
        """Index of the group of each class in each step, shape (S, K), in order of appearance."""
        groups = [in_order(step.group_of_class) for step in self._steps]
        return np.array(groups, dtype=np.int64).reshape(-1, len(self.labels))

    @cached_property
    def accept(self) -> BoolArray:
        """Mask of the pairs of classes that each step of the grouping accepts, shape (S, K, K)."""
        size = len(self.labels)
        pairs = [step.accept for step in self._steps]
        return np.array(pairs, dtype=np.bool_).reshape(-1, size, size)
