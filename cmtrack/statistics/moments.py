"""Score moments by actual class, up to the fourth, and joint moments of all scores.

Moments can be merged without loss of digits, because squares are not summed directly. The mean is
computed first, then the powers of the deviations from it. Shards are merged with the formulas of
Chan, Golub and LeVeque (1983), extended to orders three and four by Pébay (2008).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from cmtrack.statistics import plain
from cmtrack.statistics.counting import AT_ONCE, Counts, blocks, compact, take_weights
from cmtrack.statistics.inputs import BoolArray, FloatArray, IntArray
from cmtrack.statistics.records import Record

POWERS = ("mean", "m2", "m3", "m4")
MOMENTS = ("n", *POWERS)
"""Fields of :class:`ScoreMoments` that are moments."""
_FEW_PRESENT = 64
"""Maximum number of classes in a block for a loop over slices, which is fast for few classes."""


@dataclass(frozen=True, eq=False)
class ClassBlock:
    """The rows of one block sorted by actual class, with C of the K classes present.

    ``order``, shape (b,): the rows in the order of their classes.
    ``codes``, shape (b,): the class of each sorted row.
    ``present``, shape (C,): the classes in the block.
    ``starts``, ``stops``, shape (C,): first row and end of each class.
    ``weights``, shape (b,): weights of the sorted rows. The first row of a class has a weight above
        0, unless all rows of the class have weight 0.
    ``sums``, shape (C,): number of rows (or total weight) of each class.
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
        counts = np.bincount(actual, minlength=n_classes)
        present = np.flatnonzero(counts)
        sizes = counts[present]
        stops = np.cumsum(sizes)
        starts = stops - sizes
        if weights is None:
            order = np.argsort(compact(actual, n_classes), kind="stable")
            sorted_weights = None
            sums = sizes
        else:
            # Rows with weight 0 come last in their class, so that its first row has a weight.
            keys = 2 * actual + (weights == 0)
            order = np.argsort(compact(keys, 2 * n_classes), kind="stable")
            sorted_weights = weights.take(order)
            sums = np.add.reduceat(sorted_weights, starts)
        codes = np.repeat(present, sizes)
        return cls(n_classes, order, codes, present, starts, stops, sorted_weights, sums)

    def weighted(self, values: FloatArray) -> FloatArray:
        """Multiply values (..., b) by the weights of their rows, if there are weights."""
        return values if self.weights is None else values * self.weights

    def total(self, values: FloatArray) -> FloatArray:
        """Return the weighted sums of ``values`` (L, b) by class, shape (L, C)."""
        return np.add.reduceat(self.weighted(values), self.starts, axis=1)

    def means(self, values: FloatArray) -> FloatArray:
        """Return the class means (L, C) of ``values`` (L, b)."""
        return self.total(values) / np.where(self.sums > 0, self.sums, 1)

    def centre(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the class means (L, C) of ``values`` (L, b), and the deviations from them.

        The deviations overwrite the values.
        """
        means = self.means(values)
        if len(self.present) <= _FEW_PRESENT:
            for c, (start, stop) in enumerate(zip(self.starts, self.stops, strict=True)):
                values[:, start:stop] -= means[:, c, None]
        else:
            sizes = self.stops - self.starts
            for row, class_means in zip(values, means, strict=True):
                row -= np.repeat(class_means, sizes)
        return means, values

    def spread(self, values: npt.NDArray[Any], dtype: Any = np.float64) -> npt.NDArray[Any]:
        """Expand values of the present classes (..., C) to all classes, shape (K, ...)."""
        whole = np.zeros((self.n_classes, *values.shape[:-1]), dtype=dtype)
        whole[self.present] = values.T
        return whole


_VALUES = 1 << 18
"""Number of array elements to process at a time, so that they stay in cache."""
CONSTANT = 2.0**-100
"""Ratio of variance to squared mean below which a score counts as constant."""


@dataclass(frozen=True, eq=False)
class ScoreMoments(Record):
    """Count, mean and sums of powers of the deviations, for each score and actual class.

    Attributes
    ----------
    n : ndarray of shape (K,)
        Number of rows (or total weight) of each actual class.
    mean : ndarray of shape (K, L)
        Mean of component l over the rows of class k; 0 if the class has no rows.
    m2, m3, m4 : ndarray of shape (K, L)
        Sums of ``(s - mean)**p`` over the rows of the class.
    present : ndarray of shape (C,), optional
        The classes with rows, given only for more than 512 classes of which some have no rows. The
        arrays of powers above then contain rows only for these classes, shape (C, L).

    Examples
    --------
    >>> import numpy as np
    >>> from cmtrack.statistics import ScoreMoments
    >>> scores = np.array([[0.2], [0.4], [0.9]])
    >>> moments = ScoreMoments.from_scores(np.array([0, 0, 1]), scores, n_classes=2)
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
        """Class of each row of the arrays."""
        if self.present is None:
            return np.arange(len(self.n))
        return self.present

    def rows(self, name: str, classes: slice | IntArray = slice(None)) -> FloatArray:
        """Return an array's rows for some classes, by default for all; absent classes get 0."""
        array: FloatArray = getattr(self, name)
        if self.present is None:
            return array[classes]
        row_of_class = np.full(len(self.n), len(array))
        row_of_class[self.present] = np.arange(len(array))
        chosen = row_of_class[classes]
        rows = np.zeros((len(chosen), array.shape[1]))
        is_present = chosen < len(array)
        rows[is_present] = array[chosen[is_present]]
        return rows

    def diagonal(self, name: str) -> FloatArray:
        """Return each class's entry for its own score, shape (K,)."""
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
            block = ClassBlock.sort(actual[rows], n_classes, take_weights(weights, rows))
            values = np.ascontiguousarray(scores[rows].T, dtype=np.float64)
            means, deviations = block.centre(values.take(block.order, axis=1))
            parts.append(cls.of_block(block, means, deviations))
        if not parts:
            return cls.empty(n_classes, scores.shape[1])
        return cls.merge(parts)

    @classmethod
    def empty(cls, n_classes: int, n_components: int) -> ScoreMoments:
        """Return the moments of an empty set of rows."""
        n = np.zeros(n_classes, dtype=np.int64)
        return cls(n, *np.zeros((len(POWERS), n_classes, n_components)))

    @classmethod
    def of_block(
        cls, block: ClassBlock, means: FloatArray, deviations: FloatArray, few: bool = False
    ) -> ScoreMoments:
        """Return the moments of one block of rows.

        ``means``, shape (L, C): the class means of the scores.
        ``deviations``, shape (L, b): deviations of the scores from the class means.
        ``few``: whether to keep only classes with rows if there are many classes.
        """
        n_components = len(deviations)
        n = block.spread(block.sums, dtype=block.sums.dtype)
        present = None
        if few:
            present = present_of(n, n_components)
        # A class of the block with total weight 0 counts as absent and is not in ``present``.
        from_block: slice | BoolArray = slice(None)
        to_rows: slice | IntArray = block.present
        n_rows = block.n_classes
        if present is not None:
            from_block = block.sums > 0
            to_rows = slice(None)
            n_rows = len(present)
        powers = np.zeros((len(POWERS), n_rows, n_components))
        step = max(1, _VALUES // deviations.shape[1])
        for start in range(0, n_components, step):
            columns = slice(start, start + step)
            first = deviations[columns]
            square = first * first
            raised = (first, square, square * first, square * square)
            sums = [block.total(values) for values in raised]
            corrected = _corrected(block, means[columns], first, sums)
            for power, values in zip(powers, corrected, strict=True):
                power[to_rows, columns] = values.T[from_block]
        return cls(n, *powers, present=present)

    @classmethod
    def of_products(
        cls, block: ClassBlock, means: FloatArray, deviations: FloatArray, sums: FloatArray
    ) -> ScoreMoments:
        """Return the moments of one block from ``sums``, its :func:`products`.

        ``means``, ``deviations``: see :meth:`of_block`.
        """
        size = len(means)
        first = np.arange(1, size + 1)
        second = first + size
        # These are the products (1, d), (d, d), (d, d^2) and (d^2, d^2) of each score with itself.
        pairs = ((0, first), (first, first), (first, second), (second, second))
        powers = _corrected(block, means, deviations, [sums[:, a, b].T for a, b in pairs])
        return cls(block.spread(block.sums, dtype=block.sums.dtype), *map(block.spread, powers))

    @classmethod
    def merge(cls, parts: Sequence[ScoreMoments]) -> ScoreMoments:
        """Merge the moments of disjoint sets of rows, with the same classes and components."""
        if len(parts) == 1:
            return parts[0]
        n = np.stack([part.n for part in parts])
        total = n.sum(axis=0)
        n_components = parts[0].mean.shape[1]
        classes = np.arange(len(total))
        present = None
        if any(part.present is not None for part in parts):
            present = present_of(total, n_components)
        if present is not None:
            classes = present
        powers = np.empty((len(POWERS), len(classes), n_components))
        step = max(1, _VALUES // max(n_components * len(parts), 1))
        for rows in blocks(len(classes), step):
            chosen = classes[rows]
            stacked = (np.stack([part.rows(name, chosen) for part in parts]) for name in POWERS)
            powers[:, rows] = _merged(n[:, chosen, None].astype(np.float64), *stacked)
        return cls(total, *powers, present=present)

    def to_plain(self) -> Any:
        """Return the arrays by name as plain data, with the rows of all classes."""
        powers = {name: plain.encode_array(self.rows(name)) for name in POWERS}
        return {"n": plain.encode_array(self.n), **powers}

    @classmethod
    def from_plain(cls, data: Any, rows: int, few: bool = False) -> ScoreMoments:
        """Read data written by :meth:`to_plain`; see :meth:`of_block` for ``few``."""
        n = plain.decode_counts(data["n"], (rows,))
        present = None
        powers = []
        for name in POWERS:
            power = plain.decode_array(data[name], (rows, None))
            # Empty rows are dropped array by array, because all arrays may not fit in memory.
            if few:
                present = present_of(n, power.shape[1])
            powers.append(power if present is None else power[present])
        if any(power.shape != powers[0].shape for power in powers):
            raise ValueError(
                f"moments must be of the same scores, got {[power.shape for power in powers]}"
            )
        return cls(n, *powers, present=present)

    def __add__(self, other: ScoreMoments) -> ScoreMoments:
        """Merge the moments of disjoint sets of rows, with the same classes and components."""
        if self.n.shape != other.n.shape or self.mean.shape[1:] != other.mean.shape[1:]:
            raise ValueError(
                f"moments must have the same shape, got {self.mean.shape} and {other.mean.shape}"
            )
        return ScoreMoments.merge([self, other])

    def pooled(self) -> ScoreMoments:
        """Return the moments of all classes together, shape (1, L)."""
        n = self.n[self.classes, None].astype(np.float64)
        powers = _merged(n, self.mean, self.m2, self.m3, self.m4)
        return ScoreMoments(self.n.sum(keepdims=True), *(power[None] for power in powers))

    def select(self, classes: Sequence[int] | IntArray) -> ScoreMoments:
        """Return the moments of some classes only; a negative number means a class without rows."""
        index = np.asarray(classes, dtype=np.int64)
        arrays = [self.n[index], *(self.rows(name, index) for name in POWERS)]
        for array in arrays:
            array[index < 0] = 0
        return ScoreMoments(*arrays)

    def component(self, index: int) -> ScoreMoments:
        """Return the moments of one score component, shape (K, 1)."""
        return self.components(slice(index, index + 1))

    def components(self, index: slice) -> ScoreMoments:
        """Return the moments of some score components."""
        powers = (getattr(self, name)[:, index] for name in POWERS)
        return ScoreMoments(self.n, *powers, present=self.present)

    def by_group(self, group: IntArray, n_groups: int) -> ScoreMoments:
        """Return the moments of groups of classes, shape (n_groups, L).

        ``group``, shape (K,): the number of each class's group.
        """
        parts = []
        for g in range(n_groups):
            members = np.flatnonzero(group == g)
            if len(members):
                parts.append(self.select(members).pooled())
            else:
                parts.append(self.empty(1, self.mean.shape[1]))
        return ScoreMoments(
            *(np.concatenate([getattr(part, name) for part in parts]) for name in MOMENTS)
        )

    def others(self) -> tuple[FloatArray, ...]:
        """Return count, mean and power sums of each component k over all classes except k, (K,)."""
        size = len(self.n)
        parts = []
        for components in np.array_split(np.arange(size), -(-size * size // AT_ONCE)):
            is_class = self.classes[:, None] == components
            n = np.where(is_class, 0.0, self.n[self.classes, None])
            powers = [
                np.where(is_class, 0.0, getattr(self, name)[:, components]) for name in POWERS
            ]
            parts.append((n.sum(axis=0), *_merged(n, *powers)))
        return tuple(np.concatenate(arrays) for arrays in zip(*parts, strict=True))


def present_of(n: Counts, width: int) -> IntArray | None:
    """Return the classes with rows (C,) if moments of ``width`` scores are stored only for them.

    The result is None for a small table, or if all classes have rows. Moments then store all
    classes.

    ``n``, shape (K,): number of rows (or total weight) of each class.
    """
    present = np.flatnonzero(n)
    if len(present) == len(n) or len(n) * width <= AT_ONCE:
        return None
    return present


def _corrected(
    block: ClassBlock, means: FloatArray, deviations: FloatArray, sums: Sequence[FloatArray]
) -> tuple[FloatArray, ...]:
    """Return the mean and central power sums (L, C) of one block.

    ``sums``: sums of the first four powers of the deviations. The first sum is the rounding error
        of the mean, which the formulas use to correct the sums of higher powers.
    """
    m1, m2, m3, m4 = sums
    n = block.sums
    has_samples = n > 0
    shift = m1 / np.where(has_samples, n, 1)
    mean = np.where(has_samples, means + shift, 0.0)
    square = shift * shift
    # Each power is corrected with the lower powers before the lower powers are corrected.
    m4 = np.maximum(m4 - 4 * shift * m3 + 6 * square * m2 - 3 * n * (square * square), 0.0)
    m3 = m3 - 3 * shift * m2 + 2 * n * (square * shift)
    m2 = np.maximum(m2 - n * square, 0.0)
    # If only rounding varies, the mean is the score of the first row.
    constant = has_samples & (m2 <= n * CONSTANT * mean**2)
    mean = np.where(constant, means + deviations[:, block.starts], mean)
    return mean, *(np.where(constant, 0.0, power) for power in (m2, m3, m4))


def _merged(
    n: FloatArray, mean: FloatArray, m2: FloatArray, m3: FloatArray, m4: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Merge moments along the first axis; empty parts change nothing."""
    centre, shift = _common_mean(n, mean)
    square = shift * shift
    return (
        centre,
        (m2 + n * square).sum(axis=0),
        (m3 + 3 * shift * m2 + n * square * shift).sum(axis=0),
        (m4 + 4 * shift * m3 + 6 * square * m2 + n * square * square).sum(axis=0),
    )


def merged_spread(n: FloatArray, mean: FloatArray, m2: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Merge means and sums of squared deviations along the first axis, like :func:`_merged`."""
    centre, shift = _common_mean(n, mean)
    return centre, (m2 + n * shift * shift).sum(axis=0)


def _common_mean(n: FloatArray, mean: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the mean of all parts, and the distance of each part's mean from it."""
    has_samples = n > 0
    total = n.sum(axis=0)
    # Averaging the distances from the first part's mean keeps equal means exactly equal.
    first = np.broadcast_to(has_samples, mean.shape).argmax(axis=0)[None]
    base = np.take_along_axis(mean, first, axis=0)[0]
    distances = np.where(has_samples, mean - base, 0.0)
    centre: FloatArray = base + (n * distances).sum(axis=0) / np.where(total > 0, total, 1.0)
    return centre, np.where(has_samples, mean - centre, 0.0)


MAX_CLASSES = 30
"""Maximum number of classes for joint moments, whose size grows with the cube of this number."""


_ALONE = 1 << 17
"""Number of multiplications per piece; OpenBLAS uses one thread for up to twice as many."""


@dataclass(frozen=True, eq=False)
class CrossMoments(Record):
    """Sums of products of (1, s_1 .. s_L, s_1^2 .. s_L^2) over the rows of each class.

    ``sums``, shape (K, 2L+1, 2L+1): sums with 1/L subtracted from each score, which preserves
        digits and allows merging by addition.
    """

    sums: FloatArray

    @classmethod
    def of_products(cls, block: ClassBlock, means: FloatArray, sums: FloatArray) -> CrossMoments:
        """Return the joint moments of a block from its :func:`products` and class means (L, C)."""
        shift = means.T - 1 / len(means)
        moved = _shifted(_shifted(sums, shift).swapaxes(1, 2), shift)
        return cls(block.spread(moved.transpose(1, 2, 0)))

    def to_plain(self) -> Any:
        """Return the sums as plain data."""
        return plain.encode_array(self.sums)

    @classmethod
    def from_plain(cls, data: Any, size: int) -> CrossMoments:
        """Read data written by :meth:`to_plain`."""
        return cls(plain.decode_array(data, (size, 2 * size + 1, 2 * size + 1)))

    def __add__(self, other: CrossMoments) -> CrossMoments:
        return CrossMoments(self.sums + other.sums)


def products(block: ClassBlock, features: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the class means (L, C) of scores, and the products of their deviations by class.

    The products, shape (C, 2L+1, 2L+1), are weighted sums over the rows of a class, for each pair
    of (1, d, d^2), where d is the deviation from the mean.

    ``features``, shape (2L+1, b): 1, the scores, and room for their squares. The function
        overwrites them with the deviations and the squares.
    """
    size = len(features) // 2
    means = block.means(features[1 : size + 1])
    sums = np.empty((len(block.present), len(features), len(features)))
    classes = zip(sums, means.T, block.starts, block.stops, strict=True)
    for class_sums, class_means, start, stop in classes:
        # One class is processed at a time, so that its rows stay in cache.
        rows = features[:, start:stop]
        deviations = rows[1 : size + 1]
        deviations -= class_means[:, None]
        np.multiply(deviations, deviations, out=rows[size + 1 :])
        weighted = rows[1:]
        if block.weights is not None:
            weighted = weighted * block.weights[start:stop]
        class_sums[:, 1:] = _product(rows, weighted)
    # The first column is copied from the first row. Multiplying a matrix by itself would call
    # another BLAS routine, which is slower.
    sums[:, 1:, 0] = sums[:, 0, 1:]
    sums[:, 0, 0] = block.sums
    return means, sums


def _product(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return ``left @ right.T``, computed in pieces too small for BLAS to use several threads.

    BLAS threads and the threads that read the blocks would slow each other down.
    """
    length = left.shape[1]
    step = max(16, _ALONE // (len(left) * len(right)))
    n_pieces = length // step
    end = n_pieces * step

    def pieces(matrix: FloatArray) -> FloatArray:
        return matrix[:, :end].reshape(len(matrix), n_pieces, step).swapaxes(0, 1)

    total: FloatArray = np.matmul(pieces(left), pieces(right).swapaxes(1, 2)).sum(axis=0)
    total += left[:, end:] @ right[:, end:].T
    return total


def _shifted(sums: FloatArray, shift: FloatArray) -> FloatArray:
    """Convert sums for (1, d, d^2) to sums for (1, d + shift, (d + shift)^2).

    ``sums``, shape (C, 2L+1, ...): sums by feature.
    ``shift``, shape (C, L): number to add to each score.
    """
    size = shift.shape[1]
    delta = shift[:, :, None]
    moved = sums.copy()
    moved[:, 1 : size + 1] += delta * sums[:, :1]
    moved[:, size + 1 :] += 2 * delta * sums[:, 1 : size + 1] + delta * delta * sums[:, :1]
    return moved


def features_of(scores: FloatArray) -> FloatArray:
    """Return the features (n, 2L+1) of scores (n, L), as in :class:`CrossMoments`."""
    centred = scores - 1 / scores.shape[1]
    return np.concatenate((np.ones((len(scores), 1)), centred, centred**2), axis=1)
