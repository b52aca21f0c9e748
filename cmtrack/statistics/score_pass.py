"""Statistics of probabilities, collected in one pass block by block, on all cores.

:class:`ScorePass` distributes chunks of blocks to the cores and merges the results.
"""

from __future__ import annotations

import operator
import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from cmtrack.grouping import ComposedStep
from cmtrack.statistics import scores
from cmtrack.statistics.actual_class import ProperScores, RankCounts
from cmtrack.statistics.class_scores import FEW_ROWS, ClassTally, HitTally, channels_of
from cmtrack.statistics.counted_for import Counting
from cmtrack.statistics.counting import Codes, CompactCodes, blocks, picked, take_weights
from cmtrack.statistics.decisions import DecisionCounts
from cmtrack.statistics.inputs import BoolArray, FloatArray, IntArray
from cmtrack.statistics.moments import MAX_CLASSES, ClassBlock, CrossMoments, ScoreMoments, products
from cmtrack.statistics.probabilities import Probabilities
from cmtrack.statistics.scores import ScoreTally
from cmtrack.statistics.top_scores import TopTally

Result = TypeVar("Result")
_CHUNK_BLOCKS = 4
"""Blocks per chunk. Larger chunks leave cores idle at the end; smaller ones need more merges."""
_MOST_THREADS = 16
"""Maximum number of threads; more would not be faster, because all cores share the memory."""


@dataclass(frozen=True, eq=False)
class ScorePass:
    """One pass over checked rows.

    ``weights``, shape (n,).
    ``predicted``: predicted classes; by default the most probable ones.
    ``best``: array to store the most probable class of each row, if needed.
    ``exact_rows``: largest number of rows for which scores are counted one by one; by default
        :data:`cmtrack.statistics.scores.EXACT_ROWS`.
    ``threads``: number of threads; by default one for each core.
    """

    counting: Counting
    actual: Codes
    probabilities: Probabilities
    weights: FloatArray | IntArray | None = None
    predicted: Codes | None = None
    best: CompactCodes | None = None
    exact_rows: int | None = None
    threads: int | None = None

    def run(self) -> dict[str, Any]:
        """Return the statistics by their names in ``Statistics``.

        Counts of scores and of most probable classes are returned as tallies.
        """
        size = self.probabilities.n_classes
        length = self.probabilities.block_rows * _CHUNK_BLOCKS
        chunks = list(blocks(len(self.actual), length))
        parts = in_threads(self._read, chunks, self.threads)
        counts = {name: _merged(name, [part[name] for part in parts]) for name in parts[0]}
        if self.probabilities.ranking_only:
            return counts
        # In the pass, the positive group's score is the last component of the moments.
        moments = counts["moments"]
        counts["moments"] = moments.components(slice(0, size))
        if self.counting.step is not None:
            group = self.counting.step.in_positive.astype(np.int64)
            counts["score_moments"] = moments.component(size).by_group(group, 2)
        return counts

    @property
    def _has_group_score(self) -> bool:
        """True if the positive group has a score; several decision values cannot be summed."""
        if self.counting.step is None:
            return False
        return self.probabilities.n_classes == 2 or not self.probabilities.ranking_only

    @property
    def _has_cross(self) -> bool:
        return 2 < self.probabilities.n_classes <= MAX_CLASSES

    def _read(self, chunk: slice) -> dict[str, Any]:
        """Return the statistics of a chunk of rows by name."""
        n_scores = self.probabilities.n_classes + (self.counting.step is not None)
        n_features = 1 + n_scores
        if self._has_cross:
            n_features += n_scores
        n_rows = chunk.stop - chunk.start
        length = min(self.probabilities.block_rows, n_rows)
        # All blocks of the chunk share a buffer, because new memory pages cost more than a pass.
        buffer = np.empty((n_features, length))
        tallies = self._tallies()
        of_blocks: defaultdict[str, list[Any]] = defaultdict(list)
        for part in blocks(n_rows, length):
            rows = slice(chunk.start + part.start, chunk.start + part.stop)
            weights = take_weights(self.weights, rows)
            block = ClassBlock.sort(self.actual.block(rows), self.probabilities.n_classes, weights)
            features = buffer[:, : rows.stop - rows.start]
            for name, statistic in self._read_block(tallies, block, features, rows):
                of_blocks[name].append(statistic)
        return tallies | {name: _merged(name, parts) for name, parts in of_blocks.items()}

    def _read_block(
        self, tallies: dict[str, Any], block: ClassBlock, features: FloatArray, rows: slice
    ) -> Iterator[tuple[str, Any]]:
        """Count one block of rows in the tallies, and yield its other statistics by name.

        ``features``: memory for the scores and for results computed from them; it is overwritten.
        """
        size = self.probabilities.n_classes
        n_scores = size + (self.counting.step is not None)
        features[0] = 1.0
        scores_of_block = features[1 : n_scores + 1]
        values = scores_of_block[:size]
        single = self.probabilities.fill(values, rows, block.order)
        predicted, own = self._read_predicted(tallies, block, single, rows)
        if "class_scores" in tallies:
            tallies["class_scores"].add_block(block, values, single)
        if size > 2:
            yield "ranks", RankCounts.of_block(block, single)
        step = self.counting.step
        if step is not None and "scores" in tallies:
            _count_group_score(tallies["scores"], block, scores_of_block, step)
        if self.probabilities.ranking_only:
            return
        if step is not None:
            score = scores_of_block[size]
            yield "labels_variance", float(block.weighted(score * (1 - score)).sum())
        tallies["hits"].add_block(block, values, predicted, own)
        if self.counting.costs is not None:
            yield "decisions", DecisionCounts.of_block(block, values, self.counting.costs)
        losses = ProperScores.of_block(
            block, values, self.counting.groups, ordered=self.counting.ordered
        )
        yield "losses", losses
        # From here on, deviations overwrite the scores.
        if not self._has_cross:
            moments = ScoreMoments.of_block(block, *block.centre(scores_of_block), few=True)
            yield "moments", moments
            return
        means, sums = products(block, features)
        # The positive group's score has no joint moments.
        of_classes = np.concatenate((np.arange(size + 1), n_scores + 1 + np.arange(size)))
        sums_of_classes = sums[:, of_classes[:, None], of_classes]
        yield "cross", CrossMoments.of_products(block, means[:size], sums_of_classes)
        yield "moments", ScoreMoments.of_products(block, means, scores_of_block, sums)

    def _tallies(self) -> dict[str, Any]:
        """Return new tallies of scores and most probable classes for the blocks of a chunk."""
        size = self.probabilities.n_classes
        of_decisions = self.probabilities.ranking_only
        n_rows = len(self.actual)
        limit = scores.EXACT_ROWS if self.exact_rows is None else self.exact_rows
        limit_of_many = min(limit, FEW_ROWS)
        # A chunk must not count one by one if the number of all rows is above the limit.
        if n_rows > limit:
            limit = 0
        if n_rows > limit_of_many:
            limit_of_many = 0
        tallies: dict[str, Any] = {}
        if self._has_group_score:
            tallies["scores"] = ScoreTally(1, 4, limit, of_decisions)
        if channels_of(size):
            tallies["class_scores"] = ClassTally(size, limit_of_many, of_decisions)
        if not of_decisions:
            tallies["hits"] = HitTally(self.counting.accept, limit_of_many)
            if self.counting.step is None:
                tallies["tops"] = TopTally(size)
        return tallies

    def _read_predicted(
        self, tallies: dict[str, Any], block: ClassBlock, values: npt.NDArray[Any], rows: slice
    ) -> tuple[IntArray, npt.NDArray[Any]]:
        """Return the predicted class of each row and its probability, in the order of the block."""
        predicted = None
        if self.predicted is not None:
            predicted = self.predicted.block(rows).take(block.order)
            # "tops" counts the most probable classes, even if other classes were predicted.
            if "tops" not in tallies:
                return predicted, picked(values, predicted)
        step = self.counting.step
        if step is not None and step.threshold is not None:
            best = decided(values, step, step.threshold)
            top = picked(values, best)
        else:
            best, top = first_maximum(values)
        if self.best is not None:
            self.best.array[rows][block.order] = best
        if "tops" in tallies:
            tallies["tops"].add(block.codes, best, top, block.weights)
        if predicted is None:
            return best, top
        return predicted, picked(values, predicted)


_MERGES: dict[str, Callable[[Sequence[Any]], Any]] = {
    "moments": ScoreMoments.merge,
    "losses": ProperScores.merge,
    "decisions": DecisionCounts.merge,
}
"""Functions that merge all parts of a statistic at once; other statistics are added one by one."""


def _merged(name: str, parts: Sequence[Any]) -> Any:
    """Merge a statistic of several blocks or chunks."""
    if name in _MERGES:
        return _MERGES[name](parts)
    return reduce(operator.add, parts)


def _count_group_score(
    tally: ScoreTally, block: ClassBlock, values: FloatArray, step: ComposedStep
) -> None:
    """Write the positive group's score into the last row of ``values`` (K + 1, b), and count it."""
    values[-1] = sum_of_group(values[:-1], np.flatnonzero(step.in_positive))
    is_rejected = ~accepted_in_block(block, values[:-1], step)
    channel = np.where(step.in_positive, 0, 2)[block.codes] + is_rejected
    tally.add(values[-1:], channel, block.weights)


def n_threads() -> int:
    """Return the number of cores that this process may use, at most 16."""
    if hasattr(os, "sched_getaffinity"):
        available = len(os.sched_getaffinity(0))
    else:
        available = os.cpu_count() or 1
    return min(available, _MOST_THREADS)


def in_threads(
    work: Callable[[slice], Result], chunks: Sequence[slice], threads: int | None = None
) -> list[Result]:
    """Map a function over chunks, by default on all cores; results and exceptions are in order."""
    threads = min(len(chunks), n_threads() if threads is None else threads)
    if threads == 1:
        return [work(chunk) for chunk in chunks]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, chunks))


def first_maximum(values: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return the row of the first maximum in each column of ``values`` (K, b), and the maximum.

    This is faster than :meth:`numpy.ndarray.argmax` along the first axis, which does not read
    memory in order.
    """
    top = values.max(axis=0)
    best = np.zeros(len(top), dtype=np.min_scalar_type(len(values) - 1))
    is_before = np.ones(len(top), dtype=np.bool_)
    for row in values[:-1]:
        is_before &= row != top
        best += is_before
    return best, top


def decided(values: FloatArray, step: ComposedStep, threshold: float) -> npt.NDArray[Any]:
    """Return the predicted class of each column of ``values`` (K, b), shape (b,).

    The threshold of the positive group's score decides the group. The prediction is the most
    probable class of this group.
    """
    members = np.flatnonzero(step.in_positive)
    others = np.flatnonzero(~step.in_positive)
    positive = members[first_maximum(values[members])[0]]
    negative = others[first_maximum(values[others])[0]]
    return np.asarray(np.where(sum_of_group(values, members) >= threshold, positive, negative))


def sum_of_group(values: npt.NDArray[Any], members: IntArray) -> FloatArray:
    """Return the positive group's score, the sum of its classes' probabilities, shape (b,).

    Sums are rounded to 12 decimals, because the order of summation would break exact ties. The sums
    are limited to 1, because rows in single precision may sum to slightly more.

    ``values``, shape (K, b): probabilities.
    ``members``: the group's classes.
    """
    if len(members) == 1:
        return values[members[0]].astype(np.float64, copy=False)
    return np.minimum(np.round(values[members].sum(axis=0, dtype=np.float64), 12), 1.0)


def accepted_in_block(block: ClassBlock, values: FloatArray, step: ComposedStep) -> BoolArray:
    """Return whether the most probable class in each row's actual group is accepted, shape (b,).

    If several classes are tied, the first one counts.
    """
    accepted = np.ones(len(block.codes), dtype=np.bool_)
    for code, start, stop in zip(block.present, block.starts, block.stops, strict=True):
        members = np.flatnonzero(step.in_positive == step.in_positive[code])
        is_allowed = step.accept[code, members]
        if not is_allowed.all():
            best = first_maximum(values[members, start:stop])[0]
            accepted[start:stop] = is_allowed[best]
    return accepted
