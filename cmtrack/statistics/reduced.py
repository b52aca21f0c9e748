"""The reduced matrix M x M + IM of grouped classes, and its final form 2x2+IM.

Source: Markoulidakis et al. (2021), sections 3 and 4.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cmtrack import notebook
from cmtrack.digits import count
from cmtrack.grouping import ComposedStep, Grouping, Label
from cmtrack.statistics.counting import Counts
from cmtrack.statistics.records import Record
from cmtrack.untrusted import printable

if TYPE_CHECKING:
    import pandas as pd


class BinaryCounts(NamedTuple):
    """The six counts of a 2x2+IM matrix (Markoulidakis et al. 2021, figure 5).

    Attributes
    ----------
    tp, fn, imp : number
        Actual positives: hits, rows predicted as the negative group, and rows predicted as a wrong
        class in the positive group.
    fp, tn, imn : number
        Actual negatives: rows predicted as the positive group, hits, and rows predicted as a wrong
        class in the negative group.

    Examples
    --------
    >>> from cmtrack.statistics import BinaryCounts
    >>> counts = BinaryCounts(tp=8, fn=1, imp=1, fp=2, tn=17, imn=1)
    >>> counts.actual_positives, counts.predicted_negatives, counts.total
    (10, 19, 30)
    """

    tp: float
    fn: float
    imp: float
    fp: float
    tn: float
    imn: float

    @property
    def actual_positives(self) -> float:
        """TP + FN + IMP (equation 24)."""
        return self.tp + self.fn + self.imp

    @property
    def predicted_positives(self) -> float:
        """TP + FP + IMP (equation 25)."""
        return self.tp + self.fp + self.imp

    @property
    def actual_negatives(self) -> float:
        """TN + FP + IMN (equation 26)."""
        return self.tn + self.fp + self.imn

    @property
    def predicted_negatives(self) -> float:
        """TN + FN + IMN (equation 27, printed there with IMP)."""
        return self.tn + self.fn + self.imn

    @property
    def total(self) -> float:
        """Number (or total weight) of all rows."""
        return self.actual_positives + self.actual_negatives


@dataclass(frozen=True, eq=False)
class ReducedConfusionMatrix(Record):
    """An M x M + IM matrix of groups of classes, with separate counts of intragroup mismatches.

    Attributes
    ----------
    counts : ndarray of shape (M, M)
        Counts by actual and predicted group. The diagonal contains only accepted pairs.
    mismatches : ndarray of shape (M,)
        Intragroup mismatches, which are predictions of the correct group but of a class that the
        grouping does not accept.
    labels : tuple of length M
        Group names.
    name : str
        The step's name.
    positive : group name or None
        The positive group if there are two groups.

    Notes
    -----
    The actual total of group g is ``counts[g].sum() + mismatches[g]``. Source: Markoulidakis
    et al. (2021), section 4 and figure 4.

    Examples
    --------
    >>> from cmtrack import ConfusionMatrix, Grouping
    >>> matrix = ConfusionMatrix([[5, 1, 0], [2, 4, 1], [0, 1, 6]], (0, 1, 2))
    >>> matrix.reduce(Grouping({"low": [0, 1], "high": [2]}, mode="strict", name="halves"))
    ReducedConfusionMatrix(halves: low, high; 20 rows, 3 intragroup mismatches)
    """

    counts: Counts
    mismatches: Counts
    labels: tuple[Label, ...]
    name: str
    positive: Label | None = None

    @property
    def actual(self) -> Counts:
        """Actual group totals, shape (M,)."""
        return self.counts.sum(axis=1) + self.mismatches

    @property
    def predicted(self) -> Counts:
        """Predicted group totals, shape (M,)."""
        return self.counts.sum(axis=0) + self.mismatches

    @property
    def total(self) -> float:
        """Number (or total weight) of all rows; each mismatch counts once."""
        return (self.counts.sum() + self.mismatches.sum()).item()

    def reduce(self, grouping: Grouping) -> ReducedConfusionMatrix:
        """Combine the groups into larger groups; for a chain, return the matrix of the last step.

        Mismatches never become hits again. Source: Markoulidakis et al. (2021), equations 17-20,
        with the membership signs of 19 and 20 corrected.
        """
        matrix = self
        for single in grouping.steps:
            step = single.compose(matrix.labels)[0]
            reduced = reduce_counts(matrix.counts, step)
            mismatches = reduced.mismatches.copy()
            np.add.at(mismatches, step.group_of_class, matrix.mismatches)
            matrix = replace(reduced, mismatches=mismatches)
        return matrix

    def as_binary(self, positive: Label | None = None) -> BinaryCounts:
        """Return the six counts of 2x2+IM.

        Raises
        ------
        ValueError
            If there are not two groups, or ``positive`` is not a group.
        """
        if len(self.labels) != 2:
            raise ValueError(
                f"2x2+IM needs two groups, got {len(self.labels)}: {list(self.labels)}"
            )
        if positive is None:
            positive = self.positive
        if positive not in self.labels:
            raise ValueError(
                f"positive must be one of the groups {list(self.labels)}, got {positive!r}"
            )
        p = self.labels.index(positive)
        n = 1 - p
        (tp, fn), (fp, tn) = self.counts[np.ix_((p, n), (p, n))].tolist()
        imp, imn = self.mismatches[[p, n]].tolist()
        return BinaryCounts(tp, fn, imp, fp, tn, imn)

    def to_frame(self) -> pd.DataFrame:
        """Return the printed M x M + IM layout, with an extra IM row and column and a corner of 0.

        Do not add up the layout: every mismatch appears twice (figure 4 of Markoulidakis et al.
        2021).
        """
        from cmtrack._pandas import pd

        top = np.column_stack((self.counts, self.mismatches))
        names = [*self.labels, "IM"]
        return pd.DataFrame(
            np.vstack((top, [*self.mismatches, 0])).astype(self.counts.dtype),
            index=pd.Index(names, name="actual"),
            columns=pd.Index(names, name="predicted"),
        )

    def __repr__(self) -> str:
        groups = ", ".join(map(str, self.labels))
        return printable(
            f"ReducedConfusionMatrix({self.name}: {groups}; {count(self.total)} rows, "
            f"{count(self.mismatches.sum().item())} intragroup mismatches)"
        )

    def _repr_html_(self) -> str:
        return notebook.view(self.html_table())

    def html_table(self) -> str:
        """Return the layout as an HTML table, without IM row and column if they are empty."""
        frame = self.to_frame()
        if not self.mismatches.any():
            frame = frame.iloc[:-1, :-1]
        return notebook.matrix(frame)


def reduce_counts(counts: Counts, step: ComposedStep) -> ReducedConfusionMatrix:
    """Reduce a (K, K) matrix by one composed step in one pass over its cells."""
    group = step.group_of_class
    size = len(step.labels)
    # If the step does not accept a pair of classes of the same group, the pair is neither a hit nor
    # a confusion of groups.
    is_mismatch = (group[:, None] == group[None, :]) & ~step.accept
    reduced = np.zeros((size, size), dtype=counts.dtype)
    np.add.at(reduced, (group[:, None], group[None, :]), np.where(is_mismatch, 0, counts))
    mismatches = np.zeros(size, dtype=counts.dtype)
    np.add.at(mismatches, group, np.where(is_mismatch, counts, 0).sum(axis=1))
    positive = None if step.positive is None else step.labels[step.positive]
    return ReducedConfusionMatrix(reduced, mismatches, step.labels, step.name, positive)
