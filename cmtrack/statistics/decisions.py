"""Decisions that minimise the expected cost, and the costs that resulted, by actual class.

Source: Elkan (2001), but with the actual classes in rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cmtrack.statistics import plain
from cmtrack.statistics.counting import Counts, blocks, count_codes, take_weights
from cmtrack.statistics.inputs import FloatArray, IntArray
from cmtrack.statistics.moments import ClassBlock, merged_spread
from cmtrack.statistics.predictions import Predictions
from cmtrack.statistics.records import Record

_TIE = 1e-12
"""Difference between expected costs up to which they are treated as equal (rounding errors)."""


def decide(values: FloatArray, costs: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the class with the lowest expected cost for each row, and this cost, shape (b,).

    If the expected costs of several classes differ by less than 1e-12, the first of them is
    returned.

    ``values``, shape (K, b): probabilities.
    ``costs``, shape (K, K): costs with actual classes in rows and predicted classes in columns.
    """
    expected = costs.T @ values
    least = expected.min(axis=0)
    decided = (expected <= least + _TIE).argmax(axis=0)
    return decided, expected[decided, np.arange(len(decided))]


@dataclass(frozen=True, eq=False)
class DecisionCounts(Record):
    """Counts of rows by actual class and decision, and moments of their costs.

    ``costs``, shape (K, K): costs with actual classes in rows and predicted classes in columns.
    ``counts``, shape (K, K): number of rows (or total weight) with each actual class and decision.
    ``mean``, ``m2``, shape (K, 2): mean and sum of squared deviations, by actual class. The first
        column is for the expected cost, and the second for the actual minus the expected cost.
    """

    costs: FloatArray
    counts: Counts
    mean: FloatArray
    m2: FloatArray

    def to_plain(self) -> Any:
        """Return all non-empty arrays by name as plain data."""
        return plain.encode_fields(self)

    @classmethod
    def from_plain(cls, data: Any, size: int) -> DecisionCounts:
        """Read data written by :meth:`to_plain`."""
        shapes = {"costs": (size, size), "counts": (size, size), "mean": (size, 2), "m2": (size, 2)}
        return cls(**plain.decode_fields(data, shapes, signed=("costs", "mean")))

    @classmethod
    def of_block(cls, block: ClassBlock, values: FloatArray, costs: FloatArray) -> DecisionCounts:
        """Make the decisions for one block of rows, and count them.

        ``values``, shape (K, b): probabilities, in the order of the block's classes.
        """
        size = len(costs)
        decided, expected = decide(values, costs)
        counts = count_codes(block.codes * size + decided, size * size, block.weights)
        # If probabilities are calibrated, the mean of the actual minus the expected cost is 0.
        surplus = costs[block.codes, decided] - expected
        means, deviations = block.centre(np.stack((expected, surplus)))
        m2 = block.spread(block.total(deviations**2))
        return cls(costs, counts.reshape(size, size), block.spread(means), m2)

    @classmethod
    def of_rows(cls, rows: Predictions, costs: FloatArray) -> DecisionCounts:
        """Make and count the decisions for all rows, which must have probabilities."""
        source = rows.source
        if source is None:
            raise ValueError("decisions under costs need rows with probabilities, got none")
        size = len(costs)
        parts = []
        for part in blocks(len(rows), source.block_rows):
            weights = take_weights(rows.design.weights, part)
            block = ClassBlock.sort(rows.actual_codes.block(part), size, weights)
            values = np.empty((size, part.stop - part.start))
            source.fill(values, part, block.order)
            parts.append(cls.of_block(block, values, costs))
        return cls.merge(parts)

    @classmethod
    def merge(cls, parts: Sequence[DecisionCounts]) -> DecisionCounts:
        """Merge the counts of disjoint sets of rows."""
        if any(not np.array_equal(part.costs, parts[0].costs) for part in parts):
            raise ValueError("decisions must be based on the same costs to be merged")
        counts = np.stack([part.counts for part in parts])
        n = counts.sum(axis=2).astype(np.float64)[:, :, None]
        means = np.stack([part.mean for part in parts])
        mean, m2 = merged_spread(n, means, np.stack([part.m2 for part in parts]))
        return cls(parts[0].costs, counts.sum(axis=0), mean, m2)

    def __add__(self, other: DecisionCounts) -> DecisionCounts:
        return DecisionCounts.merge([self, other])
