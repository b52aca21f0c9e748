"""Class probabilities, read in checked blocks from where the user keeps them."""

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
LEAST_SUM, MOST_SUM = 0.98, 1.02
"""Rows that sum to less or more are no rounded probabilities."""
ROUNDING = 1e-6
Normalize: TypeAlias = bool | str
"""What is done with rows that do not sum to 1: "warn", True (scaled without a warning) or False (refused)."""
_GATHERED = 1 << 14
"""Values that are read in another order at a time, so that they stay in cache."""
_BLOCK_VALUES = 1 << 20
DECISIONS = "decisions"
"""What stands in the place of the rule for sums where the columns are decision values, which are no probabilities."""


class Probabilities:
    """Probabilities of K classes for n rows, not copied.

    Parameters
    ----------
    columns : sequence of K ndarrays of shape (n,), or of one
        One column is the probability of one of two classes.
    first : bool, default False
        Whether a single column is the probability of the first of two classes; else of the second.
    what : str
        The argument's name in error texts.
    whole : ndarray of shape (n, K), optional
        The columns side by side, where they are at hand.
    normalize : "warn", True or False, default False
        Whether rows that sum to 0.98 to 1.02, as rounded probabilities do, are scaled to sum to 1. :data:`DECISIONS`:
        the columns are decision values, which stay as they are; they need not sum to 1, and serve metrics of ranking
        only. A single column's counterpart has the other sign.
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
        """Some of the rows, unchecked like the others until they are read."""
        whole = None if self._whole is None else self._whole[rows]
        columns = [column[rows] for column in self.columns] if whole is None else list(whole.T)
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
        """Rows of a block: so many that what is done once for each costs little."""
        return max(1 << 13, 1 << (_BLOCK_VALUES // self.n_classes).bit_length() - 1)

    def in_order(self, place: IntArray) -> Probabilities:
        """The same with the classes at these places, in their order."""
        if len(self.columns) == 1:
            columns, first = self.columns, self.first == (place[0] == 0)
        else:
            columns, first = tuple(self.columns[k] for k in place), self.first
        ordered = Probabilities(columns, first, self.what, normalize=self.normalize)
        ordered._scales = self._scales
        return ordered

    def fill(self, out: FloatArray, rows: slice, order: IntArray | None = None) -> npt.NDArray[Any]:
        """Write checked probabilities of some rows into ``out`` (K, b), in another order if one is given.

        They are returned as well: in single precision where all came in it.
        """
        single = len(self.columns) > 1 and all(
            column.dtype == np.float32 for column in self.columns
        )
        targets = out if len(self.columns) > 1 else out[0:1] if self.first else out[1:2]
        given = (
            np.empty(targets.shape, dtype=np.float32)
            if single and not self.ranking_only
            else targets
        )
        whole = self._whole
        if order is not None and whole is not None and whole.flags.c_contiguous:
            # whole rows are read, each once, instead of columns that stand far apart in memory
            block = whole[rows]
            for part in blocks(len(order), max(1, _GATHERED // len(targets))):
                given[:, part] = block.take(order[part], axis=0).T
        else:
            for column, target in zip(self.columns, given, strict=True):
                if order is not None and column.dtype == target.dtype:
                    column[rows].take(order, out=target, mode="clip")  # no look for wrong places
                else:
                    target[...] = column[rows] if order is None else column[rows].take(order)
        if self.ranking_only:
            self._check_finite(targets, rows, order, most=LARGEST)
            if len(self.columns) == 1:
                np.negative(targets[0], out=out[1 if self.first else 0])
            return out
        low, high = given.min(), given.max()
        if given is not targets:
            targets[...] = given
        if not (low >= 0 and high <= 1):
            self._check_range(targets, rows, order)
            given = np.clip(targets, 0.0, 1.0, out=targets)  # rounding errors such as 1.0000001
        if len(self.columns) == 1:
            np.subtract(1.0, targets[0], out=out[1 if self.first else 0])
        else:
            # in single precision they tell of most blocks that nothing is off
            sums = given.sum(axis=0)
            near = ROW_SUM_TOLERANCE - ROUNDING * len(targets)
            if max(1 - sums.min(), sums.max() - 1) > near and self._scale(targets, rows, order):
                return out
        return out if len(self.columns) == 1 else given

    def _scale(self, values: FloatArray, rows: slice, order: IntArray | None) -> bool:
        """Scale the rows that do not sum to 1, in place, or refuse them; True where there are any."""
        sums = values.sum(axis=0)
        refused = np.abs(sums - 1) > most_off(self.normalize)
        if refused.any():
            number = np.arange(len(sums)) if order is None else order
            places = np.flatnonzero(refused)
            at = int(places[number[places].argmin()])
            row = rows.start + int(number[at])
            raise ValueError(
                f"each row of {self.what} must sum to 1, row {row} sums to {sums[at]:.6g} ({sum_rule(self.normalize)})"
            )
        off = np.abs(sums - 1) > ROW_SUM_TOLERANCE
        if not off.any():
            return False
        values[:, off] /= sums[off]
        np.minimum(values, 1.0, out=values)
        self._scales = True
        return True

    @cached_property
    def scaled_rows(self) -> int:
        """Number of rescaled rows to warn of, once all rows are read."""
        if not self._scales or self.normalize is True:
            return 0
        return sum(
            int(
                (
                    np.abs(sum(c[rows].astype(np.float64) for c in self.columns) - 1)
                    > ROW_SUM_TOLERANCE
                ).sum()
            )
            for rows in blocks(len(self), self.block_rows)
        )

    def _check_finite(
        self, values: FloatArray, rows: slice, order: IntArray | None, most: float = np.inf
    ) -> None:
        wrong = ~np.isfinite(values)
        if wrong.any():
            value, row = self._first(values, wrong, rows, order)
            raise ValueError(f"{self.what} must be finite, got {value} at row {row}")
        wrong = np.abs(values) > most
        if wrong.any():
            value, row = self._first(values, wrong, rows, order)
            raise ValueError(
                f"{self.what} must lie between -{most:g} and {most:g}, got {value} at row {row}"
            )

    def _check_range(self, values: FloatArray, rows: slice, order: IntArray | None) -> None:
        self._check_finite(values, rows, order)
        wrong = (values < -ROUNDING) | (values > 1 + ROUNDING)
        if wrong.any():
            value, row = self._first(values, wrong, rows, order)
            raise ValueError(out_of_range(self.what, f"{value} at row {row}"))

    @staticmethod
    def _first(
        values: FloatArray, wrong: BoolArray, rows: slice, order: IntArray | None
    ) -> tuple[float, int]:
        """The first wrong value, and its row."""
        places = np.flatnonzero(wrong.any(axis=0))
        number = np.arange(values.shape[1]) if order is None else order
        at = int(places[number[places].argmin()])
        return float(values[wrong[:, at].argmax(), at]), rows.start + int(number[at])

    @cached_property
    def array(self) -> FloatArray:
        """The checked probabilities of all rows, shape (n, K), float64; not a copy if held in that form."""
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
        """Check all rows, and keep them where there is a place for them."""
        buffer = np.empty((self.n_classes, min(self.block_rows, len(self))))
        for rows in blocks(len(self), self.block_rows):
            block = buffer[:, : rows.stop - rows.start]
            self.fill(block, rows)
            if result is not None:
                result[rows] = block.T


def in_memory(array: FloatArray, ranking_only: bool = False) -> Probabilities:
    """Checked probabilities, or decision values, of shape (n, K)."""
    return Probabilities(list(array.T), whole=array, normalize=DECISIONS if ranking_only else False)


def check_normalize(normalize: Normalize) -> Normalize:
    """Validate the option ``normalize``."""
    if not (isinstance(normalize, bool) or normalize == "warn"):
        raise ValueError(f'normalize must be "warn", True or False, got {normalize!r}')
    return normalize


def most_off(normalize: Normalize) -> float:
    """The largest distance of a row's sum from 1."""
    return ROW_SUM_TOLERANCE if normalize is False else MOST_SUM - 1 + ROUNDING


def out_of_range(what: str, got: str) -> str:
    """The error of numbers that are no probabilities, and what is to be done with those that are given instead."""
    ways_out = (
        "; divide percentages by 100; logits of a network become probabilities by softmax, of two classes by sigmoid, "
        "or go to a hook's logits=; decision values of an SVC or Ridge go to y_score, for metrics of ranking"
    )
    return f"{what} must lie in [0, 1], got {got}{ways_out if what == 'y_prob' else ''}"


def sum_rule(normalize: Normalize) -> str:
    """The rule for rows whose sum is near 1, in words."""
    if normalize is False:
        return f"normalize=True scales rows that sum to {LEAST_SUM:g} to {MOST_SUM:g}"
    return f"rows that sum to {LEAST_SUM:g} to {MOST_SUM:g} are scaled, others are refused"


def as_probabilities(
    y_prob: Any,
    labels: Sequence[Label],
    n_rows: int,
    first: bool = False,
    what: str = "y_prob",
    normalize: Normalize = False,
) -> Probabilities:
    """Class probabilities in the order of ``labels``; their values are checked when they are read.

    ``y_prob``, array-like of shape (n,) or (n, K), or mapping or frame of one column per label: one column means the
        probability of the positive class of two.
    ``labels``, sequence of length K.
    ``n_rows``: the number of rows that y_true has.
    ``first``: whether a single column is the probability of the first of two labels; else of the second.
    ``what``: the argument's name in error texts.
    ``normalize``: as in :class:`Probabilities`.
    """
    names = column_names(y_prob)
    if names is not None:
        columns = _by_label(what, y_prob, names, labels)
        if len(columns[0]) != n_rows:
            raise ValueError(
                f"{what} must have one row per label, got {len(columns[0])} rows and {n_rows} labels"
            )
        return Probabilities(columns, what=what, normalize=normalize)
    array = to_numbers(what, y_prob)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    expected = f"(n_samples, {len(labels)})" + (" or (n_samples,)" if len(labels) == 2 else "")
    if array.ndim > 2 or (array.ndim == 1 and len(labels) != 2):
        alone = (
            f"; one column is enough for two classes, not for {len(labels)}"
            if array.ndim == 1
            else ""
        )
        raise ValueError(f"{what} must have shape {expected}, got {array.shape}{alone}")
    if array.ndim == 2 and array.shape[1] != len(labels):
        more = "; name all classes of the model with labels=" if what == "y_prob" else ""
        raise ValueError(
            f"{what} must have shape {expected} for the labels {listed(labels, 12)}, got {array.shape}{more}"
        )
    if len(array) != n_rows:
        raise ValueError(
            f"{what} must have one row per label, got {len(array)} rows and {n_rows} labels"
        )
    if not len(array):
        raise ValueError(f"{what} must not be empty, got shape {array.shape}")
    if array.ndim == 1:
        return Probabilities([array], first, what, normalize=normalize)
    columns = [array[:, k] for k in range(array.shape[1])]
    return Probabilities(columns, what=what, whole=array, normalize=normalize)


def _by_label(
    what: str, data: Any, names: list[Any], labels: Sequence[Label]
) -> list[npt.NDArray[Any]]:
    by_text = {str(name): name for name in names}
    missing = [label for label in labels if label not in names and str(label) not in by_text]
    if missing:
        raise ValueError(
            f"{what} must have a column for each label, {listed(missing)} not in {listed(names, 20)}"
        )
    chosen = [label if label in names else by_text[str(label)] for label in labels]
    strange = [name for name in names if name not in chosen]
    if strange:
        raise ValueError(
            f"columns of {what} must be labels, got {listed(strange)}; labels are {listed(labels, 20)}"
        )
    columns = [to_numbers(f"{what}[{name!r}]", data[name]) for name in chosen]
    shapes = {str(name): column.shape for name, column in zip(chosen, columns, strict=True)}
    if len(set(shapes.values())) > 1 or columns[0].ndim != 1:
        raise ValueError(
            f"the columns of {what} must have one value per row each, got shapes {shapes}"
        )
    return columns
