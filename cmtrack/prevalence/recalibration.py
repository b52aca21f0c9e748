"""Shares of the classes in a target, if a score means the same as in the labelled rows.

All other estimates assume instead that the scores of each class are distributed as in the labelled
rows. If the two assumptions give different shares, only labelled rows of the target show which
share is correct.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cmtrack.grouping import Label
from cmtrack.prevalence.domains.estimates import (
    difference_estimate,
    rows_needed,
    rows_to_tell,
    share_interval,
)
from cmtrack.prevalence.results import ClassShare
from cmtrack.statistics.inputs import FloatArray

_POSITIVE = np.array([0.0, 1.0])


@dataclass(frozen=True)
class Recalibrated:
    """The share of a class in a target, if a score means the same as in the labelled rows.

    Attributes
    ----------
    share : ClassShare
        The share, with its interval in the population of the target.
    label_variance : float
        Mean variance of the label of a target row if its score is known.
    confidence_level : float
    """

    share: ClassShare
    label_variance: float
    confidence_level: float

    @classmethod
    def from_counts(
        cls, labelled: FloatArray, target: FloatArray, confidence_level: float
    ) -> Recalibrated:
        """Estimate the share of the second of two classes; NaN if it has no labelled rows.

        ``labelled``, shape (B, 2): labelled rows by bin and class. ``target``, shape (B,): target
            rows by bin.
        """
        if not labelled[:, 1].any():
            return cls(ClassShare(math.nan, math.nan, math.nan), math.nan, confidence_level)
        found = difference_estimate(labelled, target, _POSITIVE)
        low, high = share_interval(found, own=False, confidence_level=confidence_level)
        share = ClassShare(found.value, min(low, found.value), max(high, found.value))
        return cls(share, found.label_variance, confidence_level)

    def covering(self, shares: Sequence[float]) -> Recalibrated:
        """Return the estimate with an interval that is widened to include ``shares``."""
        value, low, high = self.share
        return replace(self, share=ClassShare(value, min([low, *shares]), max([high, *shares])))

    def rows_needed(self, half_width: float) -> float:
        """Return how many labelled rows of the target result in a half-width."""
        return rows_needed(self.label_variance, half_width, 0.0, self.confidence_level)

    def rows_to_tell(self, share: float) -> float:
        """Return how many labelled rows of the target show which of two shares is correct."""
        return max(rows_to_tell(self.label_variance, share - self.share.value), 1.0)


def recalibrated_classes(
    labels: Sequence[Label], counts: FloatArray, target: FloatArray, confidence_level: float
) -> dict[Label, Recalibrated]:
    """Estimate the share of every class.

    ``counts``, shape (K, B): labelled rows by class and bin. ``target``, shape (B,): target rows by
        bin.
    """
    rows = counts.sum(axis=0)
    found = {}
    for label, of_class in zip(labels, counts, strict=True):
        labelled = np.stack((rows - of_class, of_class), axis=1)
        found[label] = Recalibrated.from_counts(labelled, target, confidence_level)
    return found
