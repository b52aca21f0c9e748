"""Score moments by actual class, up to the fourth, and joint moments of all scores; merged without loss of digits.

Never sums of squares: the mean is taken first, central powers after it, and shards merge by the formulas of
Chan, Golub and LeVeque (1983), extended to orders three and four by Pébay (2008).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from cmtrack.statistics import plain
from cmtrack.statistics.counting import AT_ONCE, Counts, blocks, compact
from cmtrack.statistics.inputs import FloatArray, IntArray
from cmtrack.statistics.records import Record


@dataclass(frozen=True, eq=False)
class ClassBlock:
    """The rows of one block, sorted by actual class; C of the K classes are present.

    ``order``, shape (b,): the rows in the order of their classes.
    ``codes``, shape (b,): the class of each row, in that order.
    ``present``, shape (C,): the classes that the block holds.
    ``starts``, ``stops``, shape (C,): where each begins and ends.
    ``weights``, shape (b,): in that order; the first row of a class has a weight, if any of it has.
    ``sums``, shape (C,): rows, or weight, of each.
    """

    n_classes: int
    order: IntArray
    codes: IntArray
    present: IntArray
    starts: IntArray
    stops: IntArray
    weights: FloatArray | IntArray | None
    sums: Counts

    @classmethod
    def sort(
        cls, actual: IntArray, n_classes: int, weights: FloatArray | IntArray | None = None
    ) -> ClassBlock:
        """Sort rows by class; rows of a class keep their order."""
        if weights is None:
            order = np.argsort(compact(actual, n_classes), kind="stable")
        else:  # rows without weight come last in their class
            order = np.argsort(compact(2 * actual + (weights == 0), 2 * n_classes), kind="stable")
        counts = np.bincount(actual, minlength=n_classes)
        present = np.flatnonzero(counts)
        sizes = counts[present]
        stops = np.cumsum(sizes)
        starts = stops - sizes
        sorted_weights = None if weights is None else weights.take(order)
        sums = sizes if sorted_weights is None else np.add.reduceat(sorted_weights, starts)
        return cls(
            n_classes,
            order,
            np.repeat(present, sizes),
            present,
            starts,
            stops,
            sorted_weights,
            sums,
        )

    def total(self, values: FloatArray) -> FloatArray:
        """Weighted sums of ``values`` (L, b) by class, shape (L, C)."""
        weighed = values if self.weights is None else values * self.weights
        return np.add.reduceat(weighed, self.starts, axis=1)

    def means(self, values: FloatArray) -> FloatArray:
        """The class means (L, C) of ``values`` (L, b)."""
        return self.total(values) / np.where(self.sums > 0, self.sums, 1)

    def centre(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The class means (L, C) of ``values`` (L, b), and the deviations from them, in the same memory."""
        means = self.means(values)
        if len(self.present) <= 64:
            for place, (start, stop) in enumerate(zip(self.starts, self.stops, strict=True)):
                values[:, start:stop] -= means[:, place, None]
        else:
            sizes = self.stops - self.starts
            for own, mean in zip(values, means, strict=True):
                own -= np.repeat(mean, sizes)
        return means, values

    def spread(self, values: npt.NDArray[Any], dtype: Any = np.float64) -> npt.NDArray[Any]:
        """Values of the present classes (..., C) as those of all, shape (K, ...); 0 for the absent."""
        whole = np.zeros((self.n_classes, *values.shape[:-1]), dtype=dtype)
        whole[self.present] = values.T
        return whole


_VALUES = 1 << 18
CONSTANT = 2.0**-100
"""Variance over squared mean below which a score is taken for constant."""


@dataclass(frozen=True, eq=False)
class ScoreMoments(Record):
    """Count, mean and central power sums of each score component in each actual class.

    Attributes
    ----------
    n : ndarray of shape (K,)
        Samples (or weight) of each actual class.
    mean : ndarray of shape (K, L)
        Mean of component l over the samples of class k; 0 where the class has no samples.
    m2, m3, m4 : ndarray of shape (K, L)
        Sums of ``(s - mean)**p`` over the samples of the class.
    present : ndarray of shape (C,), optional
        Of more than 512 classes those with samples, where not all have some: the arrays above have their rows
        only, shape (C, L).

    Examples
    --------
    >>> import numpy as np
    >>> from cmtrack.statistics import ScoreMoments
    >>> moments = ScoreMoments.from_scores(np.array([0, 0, 1]), np.array([[0.2], [0.4], [0.9]]), n_classes=2)
    >>> moments.n.tolist(), moments.mean.round(3).tolist(), moments.m2.round(3).tolist()
    ([2, 1], [[0.3], [0.9]], [[0.02], [0.0]])
    """

    n: Counts
    mean: FloatArray
    m2: FloatArray
    m3: FloatArray
    m4: FloatArray
    present: IntArray | None = field(default=None, kw_only=True)

    @property
    def classes(self) -> IntArray:
        """The classes that the rows of the arrays are of."""
        return np.arange(len(self.n)) if self.present is None else self.present

    def rows(self, name: str, classes: slice | IntArray = slice(None)) -> FloatArray:
        """The rows of an array that some classes have, by default all; 0 where a class has none."""
        part: FloatArray = getattr(self, name)
        if self.present is None:
            return part[classes]
        place = np.full(len(self.n), len(part))
        place[self.present] = np.arange(len(part))
        chosen = place[classes]
        whole = np.zeros((len(chosen), part.shape[1]))
        held = chosen < len(part)
        whole[held] = part[chosen[held]]
        return whole

    def diagonal(self, name: str) -> FloatArray:
        """Each class's entry for its own score, shape (K,)."""
        values = np.zeros(len(self.n))
        values[self.classes] = getattr(self, name)[np.arange(len(self.classes)), self.classes]
        return values

    @classmethod
    def from_scores(
        cls,
        actual: IntArray,
        scores: FloatArray,
        n_classes: int,
        weights: FloatArray | IntArray | None = None,
    ) -> ScoreMoments:
        """Collect the moments of ``scores`` (n, L) by the codes ``actual`` (n,)."""
        parts = []
        for rows in blocks(len(actual)):
            block = ClassBlock.sort(
                actual[rows], n_classes, None if weights is None else weights[rows]
            )
            values = np.ascontiguousarray(scores[rows].T, dtype=np.float64).take(
                block.order, axis=1
            )
            means, deviations = block.centre(values)
            parts.append(cls.of_block(block, means, deviations))
        return cls.merge(parts) if parts else cls.empty(n_classes, scores.shape[1])

    @classmethod
    def empty(cls, n_classes: int, n_components: int) -> ScoreMoments:
        """The moments of no samples."""
        shape = (n_classes, n_components)
        return cls(np.zeros(n_classes, dtype=np.int64), *(np.zeros(shape) for _ in range(4)))

    @classmethod
    def of_block(
        cls, block: ClassBlock, means: FloatArray, deviations: FloatArray, few: bool = False
    ) -> ScoreMoments:
        """The moments of one block from the deviations (L, b) of its scores from their class means (L, C).

        ``few``: of many classes the rows of those with samples only.
        """
        n = block.spread(block.sums, dtype=block.sums.dtype)
        present = present_of(n, len(deviations)) if few else None
        held = slice(None) if present is None else block.sums > 0
        into = block.present if present is None else slice(None)
        whole = np.zeros((4, block.n_classes if present is None else len(present), len(deviations)))
        step = max(1, _VALUES // deviations.shape[1])  # components whose powers stay in cache
        for start in range(0, len(deviations), step):
            columns = slice(start, start + step)
            first = deviations[columns]
            square = first * first
            sums = [
                block.total(values) for values in (first, square, square * first, square * square)
            ]
            for power, values in zip(
                whole, _corrected(block, means[columns], first, sums), strict=True
            ):
                power[into, columns] = values.T[held]
        return cls(n, *whole, present=present)

    @classmethod
    def of_products(
        cls, block: ClassBlock, means: FloatArray, deviations: FloatArray, sums: FloatArray
    ) -> ScoreMoments:
        """The moments of one block from the products (C, 2L+1, 2L+1) of (1, d, d^2) by class."""
        size = len(means)
        first, second = np.arange(1, size + 1), np.arange(size + 1, 2 * size + 1)
        pairs = ((0, first), (first, first), (first, second), (second, second))
        parts = _corrected(block, means, deviations, [sums[:, a, b].T for a, b in pairs])
        return cls(block.spread(block.sums, dtype=block.sums.dtype), *map(block.spread, parts))

    @classmethod
    def merge(cls, parts: Sequence[ScoreMoments]) -> ScoreMoments:
        """The moments of disjoint samples of the same classes and components together."""
        if len(parts) == 1:
            return parts[0]
        n = np.stack([part.n for part in parts])
        total, width = n.sum(axis=0), parts[0].mean.shape[1:]
        present = None if all(part.present is None for part in parts) else present_of(total, *width)
        classes = np.arange(len(total)) if present is None else present
        whole = np.empty((4, len(classes), *width))
        step = max(1, _VALUES // max(whole[0, :1].size * len(parts), 1))
        for start in range(0, len(classes), step):  # a few classes at a time
            some = classes[start : start + step]
            powers = (
                np.stack([part.rows(name, some) for part in parts])
                for name in ("mean", "m2", "m3", "m4")
            )
            whole[:, start : start + step] = _merged(n[:, some, None].astype(np.float64), *powers)
        return cls(total, *whole, present=present)

    def to_plain(self) -> Any:
        """The arrays by name as plain data, with the rows of all classes."""
        powers = {name: plain.encode_array(self.rows(name)) for name in ("mean", "m2", "m3", "m4")}
        return {"n": plain.encode_array(self.n), **powers}

    @classmethod
    def from_plain(cls, data: Any, rows: int, few: bool = False) -> ScoreMoments:
        """Read :meth:`to_plain`; ``few``: keep the rows of classes with samples, where there are many classes."""
        n, present, powers = plain.decode_counts(data["n"], (rows,)), None, []
        for name in ("mean", "m2", "m3", "m4"):
            part = plain.decode_array(data[name], (rows, None))
            present = present_of(n, part.shape[1]) if few else None
            powers.append(part if present is None else part[present])
        if any(part.shape != powers[0].shape for part in powers):
            raise ValueError(
                f"moments must be of the same scores, got {[part.shape for part in powers]}"
            )
        return cls(n, *powers, present=present)

    def __add__(self, other: ScoreMoments) -> ScoreMoments:
        """Merge disjoint samples of the same classes and components."""
        if self.n.shape != other.n.shape or self.mean.shape[1:] != other.mean.shape[1:]:
            raise ValueError(
                f"moments must have the same shape, got {self.mean.shape} and {other.mean.shape}"
            )
        return ScoreMoments.merge([self, other])

    def pooled(self) -> ScoreMoments:
        """The moments of all classes taken as one, shape (1, L)."""
        n = self.n[self.classes, None].astype(np.float64)
        merged = _merged(n, self.mean, self.m2, self.m3, self.m4)
        return ScoreMoments(self.n.sum(keepdims=True), *(each[None] for each in merged))

    def select(self, classes: Sequence[int] | IntArray) -> ScoreMoments:
        """The moments of some classes only; a class below 0 has no samples."""
        index = np.asarray(classes, dtype=np.int64)
        arrays = [self.n[index], *(self.rows(name, index) for name in ("mean", "m2", "m3", "m4"))]
        for array in arrays:
            array[index < 0] = 0
        return ScoreMoments(*arrays)

    def component(self, index: int) -> ScoreMoments:
        """One score component, shape (K, 1)."""
        return self.components(slice(index, index + 1))

    def components(self, index: slice) -> ScoreMoments:
        """Some of the score components."""
        powers = (getattr(self, name)[:, index] for name in ("mean", "m2", "m3", "m4"))
        return ScoreMoments(self.n, *powers, present=self.present)

    def by_group(self, group: IntArray, n_groups: int) -> ScoreMoments:
        """The moments of groups of classes, shape (n_groups, L), where ``group`` (K,) has the number of each's."""
        members = (np.flatnonzero(group == g) for g in range(n_groups))
        parts = [
            self.select(own).pooled() if len(own) else self.empty(1, self.mean.shape[1])
            for own in members
        ]
        stacked = (
            np.concatenate([getattr(p, name) for p in parts])
            for name in ("n", "mean", "m2", "m3", "m4")
        )
        return ScoreMoments(*stacked)

    def others(self) -> tuple[FloatArray, ...]:
        """Count, mean and power sums of each component over the samples of all other classes, shape (K,) each."""
        size, parts = len(self.n), []
        for scores in np.array_split(np.arange(size), -(-size * size // AT_ONCE)):
            of_class = self.classes[:, None] == scores
            whole = (
                self.n[self.classes, None],
                *(each[:, scores] for each in (self.mean, self.m2, self.m3, self.m4)),
            )
            n, *powers = (np.where(of_class, 0.0, each) for each in whole)
            parts.append((n.sum(axis=0), *_merged(n, *powers)))
        return tuple(np.concatenate(each) for each in zip(*parts, strict=True))


def present_of(n: Counts, width: int) -> IntArray | None:
    """Codes of the classes with samples, (K,), if moments of that many scores have rows for these only."""
    present = np.flatnonzero(n)
    return present if len(present) < len(n) and len(n) * width > AT_ONCE else None


def _corrected(
    block: ClassBlock, means: FloatArray, deviations: FloatArray, sums: Sequence[FloatArray]
) -> tuple[FloatArray, ...]:
    """Mean and central power sums (L, C) of one block from the sums of the first four powers of the deviations."""
    m1, m2, m3, m4 = sums
    n = block.sums
    safe = np.where(n > 0, n, 1)
    off = m1 / safe  # what rounding left in the mean
    mean = np.where(n > 0, means + off, 0.0)
    square = off * off
    m4 = np.maximum(m4 - 4 * off * m3 + 6 * square * m2 - 3 * n * (square * square), 0.0)
    m3 = m3 - 3 * off * m2 + 2 * n * (square * off)
    m2 = np.maximum(m2 - n * square, 0.0)
    # nothing but rounding: the score does not vary here
    constant = (n > 0) & (m2 <= n * CONSTANT * mean**2)
    mean = np.where(constant, means + deviations[:, block.starts], mean)
    return mean, *(np.where(constant, 0.0, power) for power in (m2, m3, m4))


def _merged(
    n: FloatArray, mean: FloatArray, m2: FloatArray, m3: FloatArray, m4: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Merge moments along the first axis; empty parts change nothing."""
    centre, e = _common_mean(n, mean)
    square = e * e
    return (
        centre,
        (m2 + n * square).sum(axis=0),
        (m3 + 3 * e * m2 + n * square * e).sum(axis=0),
        (m4 + 4 * e * m3 + 6 * square * m2 + n * square * square).sum(axis=0),
    )


def merged_spread(n: FloatArray, mean: FloatArray, m2: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Merge means and sums of squared deviations along the first axis; empty parts change nothing."""
    centre, e = _common_mean(n, mean)
    return centre, (m2 + n * e * e).sum(axis=0)


def _common_mean(n: FloatArray, mean: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The mean of all parts, and how far each part's is from it."""
    held = n > 0
    total = n.sum(axis=0)
    first = np.broadcast_to(held, mean.shape).argmax(axis=0)[None]
    base = np.take_along_axis(mean, first, axis=0)[0]  # so that equal means stay equal
    centre: FloatArray = base + (n * np.where(held, mean - base, 0.0)).sum(axis=0) / np.where(
        total > 0, total, 1.0
    )
    return centre, np.where(held, mean - centre, 0.0)


MAX_CLASSES = 30
"""The table grows with the cube of the number of classes; above this it is not kept."""


_ALONE = 1 << 17
"""Multiplications of a piece: up to twice as many OpenBLAS works in the calling thread."""


@dataclass(frozen=True, eq=False)
class CrossMoments(Record):
    """Sums of products of the features (1, s_1 .. s_L, s_1^2 .. s_L^2) over the samples of each class.

    ``sums``, shape (K, 2L+1, 2L+1): scores are taken less their centre 1/L, which keeps digits and merges by addition.
    """

    sums: FloatArray

    @classmethod
    def of_products(cls, block: ClassBlock, means: FloatArray, sums: FloatArray) -> CrossMoments:
        """The moments of one block from the :func:`products` (C, 2L+1, 2L+1) about the class means (L, C)."""
        shift = means.T - 1 / len(means)
        moved = _shifted(_shifted(sums, shift).swapaxes(1, 2), shift)
        return cls(block.spread(moved.transpose(1, 2, 0)))

    def to_plain(self) -> Any:
        """The sums as plain data."""
        return plain.encode_array(self.sums)

    @classmethod
    def from_plain(cls, data: Any, size: int) -> CrossMoments:
        """Read :meth:`to_plain`."""
        return cls(plain.decode_array(data, (size, 2 * size + 1, 2 * size + 1)))

    def __add__(self, other: CrossMoments) -> CrossMoments:
        return CrossMoments(self.sums + other.sums)


def products(block: ClassBlock, features: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The class means (L, C) of scores s, and sums of products of (1, d, d^2) by class, shape (C, 2L+1, 2L+1).

    ``features``, shape (2L+1, b), begin with 1 and s; their deviations d from the means, and the squares, are written.
    """
    size = len(features) // 2
    means = block.means(features[1 : size + 1])
    sums = np.empty((len(block.present), len(features), len(features)))
    for gram, mean, start, stop in zip(sums, means.T, block.starts, block.stops, strict=True):
        part = features[:, start:stop]  # of one class, which stay in cache
        part[1 : size + 1] -= mean[:, None]
        np.multiply(part[1 : size + 1], part[1 : size + 1], out=part[size + 1 :])
        gram[:, 1:] = _product(
            part, part[1:] if block.weights is None else part[1:] * block.weights[start:stop]
        )
    # left out above: for a matrix by itself BLAS has another way, which takes longer
    sums[:, 1:, 0] = sums[:, 0, 1:]
    sums[:, 0, 0] = block.sums
    return means, sums


def _product(left: FloatArray, right: FloatArray) -> FloatArray:
    """``left @ right.T``, in pieces too small for BLAS to share them out.

    Its threads and those that read the blocks would be in each other's way.
    """
    length = left.shape[1]
    step = max(16, _ALONE // (len(left) * len(right)))
    whole = length // step
    a, b = (x[:, : whole * step].reshape(len(x), whole, step).swapaxes(0, 1) for x in (left, right))
    total: FloatArray = np.matmul(a, b.swapaxes(1, 2)).sum(axis=0)
    total += left[:, whole * step :] @ right[:, whole * step :].T
    return total


def _shifted(sums: FloatArray, shift: FloatArray) -> FloatArray:
    """The rows of (1, d, d^2) in ``sums`` (C, 2L+1, ...) become those of (1, d + shift, (d + shift)^2)."""
    size = shift.shape[1]
    delta = shift[:, :, None]
    moved = sums.copy()
    moved[:, 1 : size + 1] += delta * sums[:, :1]
    moved[:, size + 1 :] += 2 * delta * sums[:, 1 : size + 1] + delta * delta * sums[:, :1]
    return moved


def features_of(scores: FloatArray) -> FloatArray:
    """The features (n, 2L+1) of scores (n, L)."""
    centred = scores - 1 / scores.shape[1]
    return np.concatenate((np.ones((len(scores), 1)), centred, centred**2), axis=1)
