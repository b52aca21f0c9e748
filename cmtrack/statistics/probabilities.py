"""Class probabilities, checked while they are read block by block from the user's arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cmtrack._lazy import cached_property
from cmtrack.grouping import Label
from cmtrack.statistics.counting import blocks
from cmtrack.statistics.decision_cells import LARGEST
from cmtrack.statistics.inputs import (
    BoolArray,
    FloatArray,
    IntArray,
    column_names,
    listed,
    to_numbers,
)

ROW_SUM_TOLERANCE = 1e-3
"""Distance of a row's sum from 1 that is ignored, because it may be a rounding error."""
LEAST_SUM = 0.98
MOST_SUM = 1.02
"""Limits for the sum of rounded probabilities; rows outside them are not probabilities."""
ROUNDING = 1e-6
"""Distance of a probability from [0, 1] that may be a rounding error."""
Normalize: TypeAlias = bool | str
"""Treatment of rows that do not sum to 1.

"warn" scales them with a warning. True scales them. False raises an error. :data:`DECISIONS` leaves
them unchanged.
"""
_GATHERED = 1 << 14
"""Number of values to reorder at a time, so that they stay in cache."""
_BLOCK_VALUES = 1 << 20
DECISIONS = "decisions"
"""Rule for sums of decision values, which are not probabilities."""


class Probabilities:
    """Probabilities of K classes for n rows, not copied.

    Parameters
    ----------
    columns : sequence of K ndarrays of shape (n,), or of one
        A single column is the probability of one of two classes.
    first : bool, default False
        Whether a single column is the probability of the first class; by default of the second.
    what : str
        The argument's name in messages.
    whole : ndarray of shape (n, K), optional
        The columns in one array, if it exists.
    normalize : "warn", True or False, default False
        Whether rows that sum to 0.98 to 1.02, like rounded probabilities, are scaled to sum to 1.
        With :data:`DECISIONS` the columns are decision values, which are not changed. Decision
        values need not sum to 1 and are used for ranking metrics only. If there is a single column,
        the values of the other class have the opposite sign.
    """

    def __init__(
        self,
        columns: Sequence[npt.NDArray[Any]],
        first: bool = False,
        what: str = "y_prob",
        whole: npt.NDArray[Any] | None = None,
        normalize: Normalize = False,
    ) -> None:
        self.columns = tuple(columns)
        self.first = first
        self.what = what
        self.normalize = normalize
        self._whole = whole
        self._scales = False  # whether a row was scaled so far

    def __len__(self) -> int:
        return len(self.columns[0])

    def take(self, rows: IntArray) -> Probabilities:
        """Return some of the rows, which are also unchecked until they are read."""
        if self._whole is None:
            whole = None
            columns = [column[rows] for column in self.columns]
        else:
            whole = self._whole[rows]
            columns = list(whole.T)
        return Probabilities(columns, self.first, self.what, whole, self.normalize)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return max(2, len(self.columns))

    @property
    def ranking_only(self) -> bool:
        """True for decision values."""
        return self.normalize == DECISIONS

    @property
    def block_rows(self) -> int:
        """Number of rows per block, large enough to make the overhead per block negligible."""
        return max(1 << 13, 1 << (_BLOCK_VALUES // self.n_classes).bit_length() - 1)

    def in_order(self, place: IntArray) -> Probabilities:
        """Return the probabilities of the classes at the given indices, in this order."""
        columns = self.columns
        first = self.first
        if len(columns) == 1:
            first = first == (place[0] == 0)
        else:
            columns = tuple(columns[k] for k in place)
        ordered = Probabilities(columns, first, self.what, normalize=self.normalize)
        ordered._scales = self._scales
        return ordered

    def fill(self, out: FloatArray, rows: slice, order: IntArray | None = None) -> npt.NDArray[Any]:
        """Write checked probabilities of some rows into ``out`` (K, b), and return them.

        The result has single precision if all columns have it.

        ``order``, shape (b,): the required order of the rows.
        """
        if len(self.columns) > 1:
            return self._fill_columns(out, rows, order)
        row = 0 if self.first else 1
        self._fill_columns(out[row : row + 1], rows, order)
        if self.ranking_only:
            np.negative(out[row], out=out[1 - row])
        else:
            np.subtract(1.0, out[row], out=out[1 - row])
        return out

    def _fill_columns(
        self, out: FloatArray, rows: slice, order: IntArray | None
    ) -> npt.NDArray[Any]:
        """Write the checked columns of some rows into ``out`` (C, b), and return them."""
        if self.ranking_only:
            self._gather(out, rows, order)
            self._check_finite(out, rows, order, most=LARGEST)
            return out
        n_columns = len(self.columns)
        values: npt.NDArray[Any] = out
        if n_columns > 1 and all(column.dtype == np.float32 for column in self.columns):
            values = np.empty(out.shape, dtype=np.float32)
        self._gather(values, rows, order)
        low = values.min()
        high = values.max()
        if values is not out:
            out[...] = values
        # Comparisons with NaN are false, so NaN also goes to the check.
        if not (low >= 0 and high <= 1):
            self._check_range(out, rows, order)
            # Values such as 1.0000001 are rounding errors and are cut.
            values = np.clip(out, 0.0, 1.0, out=out)
        if n_columns > 1:
            # For most blocks, sums in single precision are enough to see that all rows are near 1.
            sums = values.sum(axis=0)
            nearest = ROW_SUM_TOLERANCE - ROUNDING * n_columns
            is_off = max(1 - sums.min(), sums.max() - 1) > nearest
            if is_off and self._scale(out, rows, order):
                return out
        return values

    def _gather(self, out: npt.NDArray[Any], rows: slice, order: IntArray | None) -> None:
        """Write the columns of some rows into ``out``, in a different order if one is given."""
        whole = self._whole
        if order is not None and whole is not None and whole.flags.c_contiguous:
            # Reading whole rows once is faster than reading columns, which are far apart in memory.
            block = whole[rows]
            for part in blocks(len(order), max(1, _GATHERED // len(out))):
                out[:, part] = block.take(order[part], axis=0).T
            return
        for column, target in zip(self.columns, out, strict=True):
            if order is None:
                target[...] = column[rows]
            elif column.dtype == target.dtype:
                # "clip" skips the check for invalid indices, which an order does not have.
                column[rows].take(order, out=target, mode="clip")
            else:
                target[...] = column[rows].take(order)

    def _scale(self, values: FloatArray, rows: slice, order: IntArray | None) -> bool:
        """Scale rows that do not sum to 1 in place, or raise ValueError; True if any was scaled."""
        sums = values.sum(axis=0)
        is_refused = np.abs(sums - 1) > most_off(self.normalize)
        if is_refused.any():
            place, row = _first_row(is_refused, rows, order)
            raise ValueError(
                f"each row of {self.what} must sum to 1, row {row} sums to {sums[place]:.6g} "
                f"({sum_rule(self.normalize)})"
            )
        is_off = np.abs(sums - 1) > ROW_SUM_TOLERANCE
        if not is_off.any():
            return False
        values[:, is_off] /= sums[is_off]
        np.minimum(values, 1.0, out=values)
        self._scales = True
        return True

    @cached_property
    def scaled_rows(self) -> int:
        """Number of rescaled rows to warn about, after all rows were read."""
        if not self._scales or self.normalize is True:
            return 0
        n_scaled = 0
        for rows in blocks(len(self), self.block_rows):
            sums = sum(column[rows].astype(np.float64) for column in self.columns)
            n_scaled += int((np.abs(sums - 1) > ROW_SUM_TOLERANCE).sum())
        return n_scaled

    def _check_finite(
        self, values: FloatArray, rows: slice, order: IntArray | None, most: float = np.inf
    ) -> None:
        self._refuse(~np.isfinite(values), "be finite", values, rows, order)
        rule = f"be between -{most:g} and {most:g}"
        self._refuse(np.abs(values) > most, rule, values, rows, order)

    def _check_range(self, values: FloatArray, rows: slice, order: IntArray | None) -> None:
        self._check_finite(values, rows, order)
        is_wrong = (values < -ROUNDING) | (values > 1 + ROUNDING)
        if is_wrong.any():
            raise ValueError(out_of_range(self.what, _first_value(values, is_wrong, rows, order)))

    def _refuse(
        self,
        is_wrong: BoolArray,
        rule: str,
        values: FloatArray,
        rows: slice,
        order: IntArray | None,
    ) -> None:
        if is_wrong.any():
            example = _first_value(values, is_wrong, rows, order)
            raise ValueError(f"{self.what} must {rule}, got {example}")

    @cached_property
    def array(self) -> FloatArray:
        """Checked probabilities of all rows as float64, shape (n, K); not a copy if possible."""
        whole = self._whole
        if (
            whole is not None
            and whole.dtype == np.float64
            and (self.ranking_only or (whole.min() >= 0 and whole.max() <= 1))
        ):
            self._read_into(None)
            if not self._scales:
                return whole
        result = np.empty((len(self), self.n_classes))
        self._read_into(result)
        return result

    def _read_into(self, result: FloatArray | None) -> None:
        """Check all rows, and write them to ``result`` if it is given."""
        buffer = np.empty((self.n_classes, min(self.block_rows, len(self))))
        for rows in blocks(len(self), self.block_rows):
            block = buffer[:, : rows.stop - rows.start]
            self.fill(block, rows)
            if result is not None:
                result[rows] = block.T


def _first_row(is_wrong: BoolArray, rows: slice, order: IntArray | None) -> tuple[int, int]:
    """Return the index in a block (b,) of its first invalid row, and the number of this row.

    ``order``: the order of the rows in the block; None if they are in order.
    """
    places = np.flatnonzero(is_wrong)
    numbers = places if order is None else order[places]
    first = int(numbers.argmin())
    return int(places[first]), rows.start + int(numbers[first])


def _first_value(
    values: FloatArray, is_wrong: BoolArray, rows: slice, order: IntArray | None
) -> str:
    """Return the first invalid value of a block and its row, for a message."""
    place, row = _first_row(np.asarray(is_wrong.any(axis=0)), rows, order)
    value = float(values[is_wrong[:, place].argmax(), place])
    return f"{value} at row {row}"


def in_memory(array: FloatArray, ranking_only: bool = False) -> Probabilities:
    """Return checked probabilities, or decision values, from an array of shape (n, K)."""
    return Probabilities(list(array.T), whole=array, normalize=DECISIONS if ranking_only else False)


def check_normalize(normalize: Normalize) -> Normalize:
    """Check the option ``normalize``, and return it."""
    if not (isinstance(normalize, bool) or normalize == "warn"):
        raise ValueError(f'normalize must be "warn", True or False, got {normalize!r}')
    return normalize


def most_off(normalize: Normalize) -> float:
    """Return the largest accepted distance of a row's sum from 1."""
    if normalize is False:
        return ROW_SUM_TOLERANCE
    return MOST_SUM - 1 + ROUNDING


def out_of_range(what: str, got: str) -> str:
    """Return a message for numbers that are not probabilities, with advice on how to pass them."""
    text = f"{what} must be in [0, 1], got {got}"
    if what == "y_prob":
        text += (
            "; divide percentages by 100; convert logits of a network with softmax (sigmoid for "
            "two classes), or pass them as logits= of a hook; pass decision values of an SVC or "
            "Ridge as y_score, for ranking metrics"
        )
    return text


def sum_rule(normalize: Normalize) -> str:
    """Return the rule for rows whose sum is near 1 as text."""
    if normalize is False:
        return f"normalize=True scales rows with sums between {LEAST_SUM:g} and {MOST_SUM:g}"
    return (
        f"rows with sums between {LEAST_SUM:g} and {MOST_SUM:g} are scaled, but other sums "
        "raise an error"
    )


def as_probabilities(
    y_prob: Any,
    labels: Sequence[Label],
    n_rows: int,
    first: bool = False,
    what: str = "y_prob",
    normalize: Normalize = False,
) -> Probabilities:
    """Return class probabilities in the order of ``labels``; values are checked when they are read.

    ``y_prob``, array-like of shape (n,) or (n, K), or mapping or frame with one column per label.
        A single column is the probability of the positive class if there are two classes.
    ``labels``, sequence of length K.
    ``n_rows``: the number of rows of y_true.
    ``first``: whether a single column is the probability of the first label; by default of the
        second.
    ``what``: the argument's name in messages.
    ``normalize``: see :class:`Probabilities`.
    """
    names = column_names(y_prob)
    if names is not None:
        columns = _by_label(what, y_prob, names, labels)
        _check_rows(what, len(columns[0]), n_rows)
        return Probabilities(columns, what=what, normalize=normalize)
    array = to_numbers(what, y_prob)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    _check_shape(what, array, labels)
    _check_rows(what, len(array), n_rows)
    if not len(array):
        raise ValueError(f"{what} must not be empty, got shape {array.shape}")
    if array.ndim == 1:
        return Probabilities([array], first, what, normalize=normalize)
    columns = [array[:, k] for k in range(array.shape[1])]
    return Probabilities(columns, what=what, whole=array, normalize=normalize)


def _check_shape(what: str, array: npt.NDArray[Any], labels: Sequence[Label]) -> None:
    """Raise ValueError unless there is one column per class, or a single column for two classes."""
    size = len(labels)
    expected = f"(n_samples, {size})"
    if size == 2:
        expected += " or (n_samples,)"
    if array.ndim == 1 and size != 2:
        raise ValueError(
            f"{what} must have shape {expected}, got {array.shape}; one column is enough for two "
            f"classes, not for {size}"
        )
    if array.ndim > 2:
        raise ValueError(f"{what} must have shape {expected}, got {array.shape}")
    if array.ndim == 2 and array.shape[1] != size:
        advice = ""
        if what == "y_prob":
            advice = "; name all classes of the model with labels="
        raise ValueError(
            f"{what} must have shape {expected} for the labels {listed(labels, 12)}, got "
            f"{array.shape}{advice}"
        )


def _check_rows(what: str, length: int, n_rows: int) -> None:
    if length != n_rows:
        raise ValueError(
            f"{what} must have one row per label, got {length} rows and {n_rows} labels"
        )


def _by_label(
    what: str, data: Any, names: list[Any], labels: Sequence[Label]
) -> list[npt.NDArray[Any]]:
    """Return the column of each label; a column's name may be the label's text."""
    by_text = {str(name): name for name in names}
    missing = [label for label in labels if label not in names and str(label) not in by_text]
    if missing:
        raise ValueError(
            f"{what} must have a column for each label, {listed(missing)} not in "
            f"{listed(names, 20)}"
        )
    chosen = [label if label in names else by_text[str(label)] for label in labels]
    surplus = [name for name in names if name not in chosen]
    if surplus:
        raise ValueError(
            f"columns of {what} must be labels, got {listed(surplus)}; labels are "
            f"{listed(labels, 20)}"
        )
    columns = [to_numbers(f"{what}[{name!r}]", data[name]) for name in chosen]
    shapes = {str(name): column.shape for name, column in zip(chosen, columns, strict=True)}
    if len(set(shapes.values())) > 1 or columns[0].ndim != 1:
        raise ValueError(
            f"the columns of {what} must each have one value per row, got the shapes {shapes}"
        )
    return columns
