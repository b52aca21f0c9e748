"""Statistics of probabilities, collected in one pass block by block, on every core."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from cmtrack.grouping import ComposedStep
from cmtrack.statistics import scores
from cmtrack.statistics.actual_class import ProperScores, RankCounts
from cmtrack.statistics.class_scores import FEW_ROWS, ClassTally, HitTally, channels_of
from cmtrack.statistics.counted_for import Counting
from cmtrack.statistics.counting import Codes, CompactCodes, blocks, picked
from cmtrack.statistics.decisions import DecisionCounts
from cmtrack.statistics.inputs import BoolArray, FloatArray, IntArray
from cmtrack.statistics.moments import MAX_CLASSES, ClassBlock, CrossMoments, ScoreMoments, products
from cmtrack.statistics.probabilities import Probabilities
from cmtrack.statistics.scores import ScoreTally
from cmtrack.statistics.top_scores import TopTally

Part = TypeVar("Part")
_CHUNK_BLOCKS = 4
_MOST_THREADS = 16


@dataclass(frozen=True, eq=False)
class ScorePass:
    """One pass over checked rows.

    ``weights``, shape (n,).
    ``predicted``: by default the most probable classes.
    ``best``: room for the most probable class of each row, where it is wanted.
    ``exact_rows``: rows up to which scores are counted one by one; by default
        :data:`cmtrack.statistics.scores.EXACT_ROWS`.
    ``threads``: by default one for each core.
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
        """The statistics by their names in ``Statistics``; scores and most probable classes are still tallies."""
        length = self.probabilities.block_rows * _CHUNK_BLOCKS
        parts = in_threads(self._read, list(blocks(len(self.actual), length)), self.threads)
        out: dict[str, Any] = {}
        size = self.probabilities.n_classes
        if size > 2:
            out["ranks"] = reduce(operator.add, [part.ranks for part in parts])
        if channels_of(size):
            out["class_scores"] = reduce(operator.add, [part.classes for part in parts])
        if self._scored:
            out["scores"] = reduce(operator.add, [part.scores for part in parts])
        if self.probabilities.ranking_only:
            return out
        moments = ScoreMoments.merge([part.moments for part in parts])
        out["losses"] = ProperScores.merge([part.losses for part in parts])
        out["hits"] = reduce(operator.add, [part.hits for part in parts])
        if self.counting.costs is not None:
            out["decisions"] = DecisionCounts.merge(
                [part.decisions for part in parts if part.decisions]
            )
        if self._has_cross:
            out["cross"] = CrossMoments(sum(part.cross for part in parts))
        if self.counting.step is None:
            out["tops"] = reduce(operator.add, [part.tops for part in parts])
        else:
            out["score_moments"] = moments.component(size).by_group(
                self.counting.step.in_positive.astype(np.int64), 2
            )
            out["labels_variance"] = float(sum(part.variance for part in parts))
        return out | {"moments": moments.components(slice(0, size))}

    @property
    def _scored(self) -> bool:
        """True where the positive group has a score; decision values of several classes have no sum."""
        return self.counting.step is not None and (
            self.probabilities.n_classes == 2 or not self.probabilities.ranking_only
        )

    @property
    def _has_cross(self) -> bool:
        return 2 < self.probabilities.n_classes <= MAX_CLASSES

    def _read(self, chunk: slice) -> _Part:
        size = self.probabilities.n_classes
        width = size + (self.counting.step is not None)
        length = min(self.probabilities.block_rows, chunk.stop - chunk.start)
        height = 2 * width + 1 if self._has_cross else width + 1
        limit = scores.EXACT_ROWS if self.exact_rows is None else self.exact_rows
        part = self._part(limit if len(self.actual) <= limit else 0)
        moments, losses, ranks, decisions = [], [], [], []
        # One buffer serves all blocks of the chunk: new pages cost more than a pass over them.
        buffer = np.empty((height, length))
        for rows in blocks(chunk.stop - chunk.start, length):
            rows = slice(chunk.start + rows.start, chunk.start + rows.stop)
            weights = None if self.weights is None else self.weights[rows]
            block = ClassBlock.sort(self.actual.block(rows), size, weights)
            features = buffer[:, : rows.stop - rows.start]
            features[0] = 1.0
            values = features[1 : width + 1]
            given = self.probabilities.fill(values[:size], rows, block.order)
            predicted, own = self._read_best(part, block, given, rows)
            if channels_of(size):
                part.classes.add_block(block, values[:size], given)
            if size > 2:
                ranks.append(RankCounts.of_block(block, given))
            if self._scored:
                self._read_group(part, block, values)
            if self.probabilities.ranking_only:
                continue
            part.hits.add_block(block, values[:size], predicted, own)
            if self.counting.costs is not None:
                decisions.append(DecisionCounts.of_block(block, values[:size], self.counting.costs))
            losses.append(ProperScores.of_block(block, values[:size], self.counting.groups))
            if self._has_cross:
                means, sums = products(block, features)
                own = np.concatenate((np.arange(size + 1), width + 1 + np.arange(size)))
                part.cross += CrossMoments.of_products(
                    block, means[:size], sums[:, own[:, None], own]
                ).sums
                moments.append(ScoreMoments.of_products(block, means, values, sums))
            else:
                moments.append(ScoreMoments.of_block(block, *block.centre(values), few=True))
        part.ranks = reduce(operator.add, ranks) if ranks else None
        if self.probabilities.ranking_only:
            return part
        part.moments = ScoreMoments.merge(moments)
        part.losses = ProperScores.merge(losses)
        part.decisions = DecisionCounts.merge(decisions) if decisions else None
        return part

    def _part(self, limit: int) -> _Part:
        size, few = self.probabilities.n_classes, min(limit, FEW_ROWS)
        few = few if len(self.actual) <= few else 0
        of_decisions = self.probabilities.ranking_only
        return _Part(
            TopTally(size),
            ScoreTally(1, 4, limit, of_decisions),
            HitTally(self.counting.accept, few),
            ClassTally(size, few, of_decisions),
        )

    def _read_best(
        self, part: _Part, block: ClassBlock, values: npt.NDArray[Any], rows: slice
    ) -> tuple[IntArray, npt.NDArray[Any]]:
        """The predicted class of each row and its probability, in the order of the block."""
        step, given = self.counting.step, None
        if self.predicted is not None:
            given = self.predicted.block(rows).take(block.order)
            if step is not None:
                return given, picked(values, given)
        best, top = first_maximum(values)
        if step is not None and step.threshold is not None:
            best = decided(values, step)
            top = picked(values, best)
        if self.best is not None:
            self.best.array[rows][block.order] = best
        if step is None and not self.probabilities.ranking_only:
            part.tops.add(block.codes, best, top, block.weights)
        return (best, top) if given is None else (given, picked(values, given))

    def _read_group(self, part: _Part, block: ClassBlock, values: FloatArray) -> None:
        assert self.counting.step is not None  # the caller's choice
        score = values[-1]
        score[...] = sum_of_group(values[:-1], np.flatnonzero(self.counting.step.in_positive))
        if not self.probabilities.ranking_only:
            spread = score * (1 - score)
            part.variance += float(
                (spread if block.weights is None else spread * block.weights).sum()
            )
        rejected = ~accepted_in_block(block, values[:-1], self.counting.step)
        channel = np.where(self.counting.step.in_positive, 0, 2)[block.codes] + rejected
        part.scores.add(score[None, :], channel, block.weights)


@dataclass(eq=False)
class _Part:
    """The statistics of one chunk of rows."""

    tops: TopTally
    scores: ScoreTally
    hits: HitTally
    classes: ClassTally
    moments: ScoreMoments = field(init=False)
    losses: ProperScores = field(init=False)
    ranks: RankCounts | None = None
    decisions: DecisionCounts | None = None
    cross: Any = 0
    variance: float = 0.0


def n_threads() -> int:
    """The cores that this process may use, up to 16."""
    available = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    return min(available, _MOST_THREADS)


def in_threads(
    work: Callable[[slice], Part], chunks: Sequence[slice], threads: int | None = None
) -> list[Part]:
    """Map the work over chunks, on all cores by default; results and errors in order."""
    threads = min(len(chunks), n_threads() if threads is None else threads)
    if threads == 1:
        return [work(chunk) for chunk in chunks]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, chunks))


def first_maximum(values: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """The first row of ``values`` (K, b) that holds each column's maximum, and the maximum, both of shape (b,)."""
    top = values.max(axis=0)
    best = np.zeros(len(top), dtype=np.min_scalar_type(len(values) - 1))
    before = np.ones(len(top), dtype=np.bool_)
    for row in values[:-1]:
        before &= row != top
        best += before
    return best, top


def decided(values: FloatArray, step: ComposedStep) -> npt.NDArray[Any]:
    """The predicted class of each column of ``values`` (K, b), shape (b,): the group by the threshold of its score."""
    assert step.threshold is not None  # the caller's choice
    inside = step.in_positive
    sides = [np.flatnonzero(inside), np.flatnonzero(~inside)]
    positive, negative = (members[first_maximum(values[members])[0]] for members in sides)
    return np.asarray(
        np.where(sum_of_group(values, sides[0]) >= step.threshold, positive, negative)
    )


def sum_of_group(values: npt.NDArray[Any], members: IntArray) -> FloatArray:
    """The positive group's score: the sum of its classes' probabilities in ``values`` (K, b), shape (b,).

    Sums are rounded to 12 decimals, since the order of summation would break exact ties, and cut at 1, since
    single-precision rows may sum to a little more.
    """
    if len(members) == 1:
        return values[members[0]].astype(np.float64, copy=False)
    return np.minimum(np.round(values[members].sum(axis=0, dtype=np.float64), 12), 1.0)


def accepted_in_block(block: ClassBlock, values: FloatArray, step: ComposedStep) -> BoolArray:
    """True where the most probable class of a row's own group is accepted for it, shape (b,); the first one on ties."""
    accepted = np.ones(len(block.codes), dtype=np.bool_)
    for code, start, stop in zip(block.present, block.starts, block.stops, strict=True):
        members = np.flatnonzero(step.in_positive == step.in_positive[code])
        allowed = step.accept[code, members]
        if not allowed.all():
            accepted[start:stop] = allowed[first_maximum(values[members, start:stop])[0]]
    return accepted
