"""Out-of-fold labelled scores with their folds, and a target's scores by the models of all folds.

The out-of-fold scores of a class are a mixture of scores from K models. If a single model fitted on
all rows scores the target, the distribution of its scores is different. For some learners, the
difference is large. Suppose that each of the K models scores the target, and that its target scores
are weighted by the share of its fold among the labelled rows. Both sides are then the same mixture.
The estimate then does not depend on the learner. The method is cross-fitting, as in CV+ (Barber,
Candès, Ramdas & Tibshirani 2021). The K sets of scores for n rows count as n rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any, TypeVar

import numpy as np

from cmtrack.statistics import ScoreCounts
from cmtrack.statistics.inputs import BoolArray, FloatArray, IntArray, align_rows, column_names
from cmtrack.statistics.labels import encode_values
from cmtrack.statistics.top_scores import TopScoreCounts

EXPOSED = (
    "the labelled scores are out of fold and come from other fits than the target's scores: "
    "if the fits differ, the estimate can be far off and its interval is not valid; "
    "to correct this, pass the target's scores by each fold's model"
)
"""Warning about a target scored by one model, with labelled rows scored by others."""
_MOST_LEFT_OUT = 50
"""If there are more folds than this, several folds are left out together."""
_TARGET = "one score array for each fold, in the sorted order of the fold ids"

Counted = TypeVar("Counted", ScoreCounts, TopScoreCounts)


def _is_array(part: Any) -> bool:
    """Return whether a part of a list is an array or a frame, rather than a row."""
    return np.ndim(part) > 0 and not isinstance(part, (list, tuple))


def calibration_parts(calibration: Any, otherwise: str = "") -> tuple[Any, Any, Any]:
    """Return the labels, the scores, and the fold ids (or None) of calibration data.

    The data are ``(y, scores)`` or ``(y, scores, fold_ids)``. The rows of all parts are put in the
    same order (:func:`cmtrack.statistics.inputs.align_rows`).
    """
    try:
        parts = () if isinstance(calibration, str) else tuple(calibration)
    except TypeError:
        parts = ()
    if len(parts) not in (2, 3):
        got = f"{len(parts)} values" if parts else f"{calibration!r:.60}"
        raise ValueError(
            f"calibration must be (y, scores) or (y, scores, fold_ids){otherwise}, got {got}"
        )
    names = ("calibration y", "calibration scores", "calibration fold_ids")
    aligned = align_rows(dict(zip(names, parts, strict=False)))
    return aligned[names[0]], aligned[names[1]], aligned.get(names[2])


@dataclass(frozen=True, eq=False)
class Folds:
    """The folds of labelled rows.

    ``codes``, shape (m,): the fold of each row, 0 to K - 1 in the sorted order of the ids.
    """

    codes: IntArray

    @classmethod
    def from_ids(cls, ids: Any, n_rows: int) -> Folds:
        """Read one id per row."""
        codes, values = encode_values("fold_ids", ids)
        distinct: list[Any] = list(values)
        if len(codes) != n_rows:
            raise ValueError(
                f"fold_ids must have one id for each of the {n_rows} labelled rows, "
                f"got {len(codes)}"
            )
        if len(distinct) < 2:
            raise ValueError(f"fold_ids must name at least two folds, got {distinct}")
        try:
            rank = {fold: number for number, fold in enumerate(sorted(distinct))}
        except TypeError:
            raise ValueError(
                f"fold_ids must be all numbers or all strings, got {distinct[:5]}"
            ) from None
        return cls(np.array([rank[fold] for fold in distinct])[codes])

    @property
    def sizes(self) -> IntArray:
        """Number of labelled rows in each fold, shape (K,)."""
        return np.bincount(self.codes)

    def score_sets(self, target: Any, n_classes: int, what: str) -> list[Any] | None:
        """Return the K score arrays of a target; None if the scores are a single array.

        Several score arrays are a list of arrays or frames, an array of three dimensions, or, for
        two classes, a two-dimensional array that does not have one or two columns.
        """
        if column_names(target) is not None:
            return None
        if isinstance(target, (list, tuple)) and any(map(_is_array, target)):
            sets = list(target)
        else:
            array = np.asarray(target)
            has_wide_rows = array.ndim == 2 and n_classes == 2 and array.shape[1] > 2
            if array.ndim != 3 and not has_wide_rows:
                return None
            sets = list(array)
        if len(sets) != len(self.sizes):
            raise ValueError(f"{what} must be {_TARGET}: {len(self.sizes)}, got {len(sets)}")
        return sets

    def joined(self, sets: Sequence[FloatArray], what: str) -> tuple[FloatArray, IntArray]:
        """Join the K sets of scores for n rows, and return them with weights that sum to n m.

        Returns
        -------
        scores : ndarray of shape (K n,) or (K n, classes)
        weights : ndarray of shape (K n,)
            The number of labelled rows of the fold.
        """
        lengths = [len(scores) for scores in sets]
        if len(set(lengths)) > 1 or not lengths[0]:
            raise ValueError(
                f"{what} must have the same number of rows (at least one) for each fold, "
                f"got {lengths[:12]}"
            )
        return np.concatenate(sets), np.repeat(self.sizes, lengths[0])

    def per_row(self, counted: Counted) -> Counted:
        """Scale counts that use the weights of :meth:`joined` to the number of target rows."""
        n_labelled = len(self.codes)
        if isinstance(counted, TopScoreCounts):
            return TopScoreCounts(replace(counted.table, sums=counted.sums / n_labelled))
        return replace(counted, counts=counted.counts / n_labelled)

    @property
    def groups(self) -> IntArray:
        """The group of each row; all folds in a group are left out together."""
        n = len(self.sizes)
        return self.codes * min(n, _MOST_LEFT_OUT) // n

    def left_out(self, actual: IntArray, n_classes: int) -> Iterator[BoolArray]:
        """Yield flags of the rows without each group of folds, if these rows have every class.

        If there are more than two classes, the rows must contain each class at least twice.
        """
        least = min(n_classes - 1, 2)
        for group in range(int(self.groups.max()) + 1):
            rows = self.groups != group
            if np.bincount(actual[rows], minlength=n_classes).min() >= least:
                yield rows


# -- counts by fold: a block of rows (channels) for each fold -------------------------------------


def by_fold(codes: IntArray, folds: Folds | None, size: int) -> tuple[IntArray, int]:
    """Return codes 0..size-1, of which each fold uses a separate block, and the number of codes."""
    if folds is None:
        return codes, size
    return codes + size * folds.groups, size * (int(folds.groups.max()) + 1)


def pooled(labelled: Counted, size: int) -> Counted:
    """Return the labelled scores of all folds together, by class."""
    if isinstance(labelled, TopScoreCounts):
        return reduce(add, labelled.blocks(size))
    by_block = labelled.counts.reshape(-1, size, labelled.counts.shape[1])
    return replace(labelled, counts=by_block.sum(axis=0))


def without_each_fold(labelled: Counted, size: int) -> list[Counted]:
    """Return the labelled scores without each fold, if the remaining rows contain every class."""
    whole = pooled(labelled, size)
    if isinstance(labelled, TopScoreCounts):
        remaining = [whole - block for block in labelled.blocks(size)]
    else:
        remaining = [
            replace(labelled, counts=whole.counts - labelled.counts[k : k + size])
            for k in range(0, len(labelled.counts), size)
        ]
    if len(remaining) == 1:
        return []
    classes = classes_of(whole)
    return [scores for scores in remaining if np.array_equal(classes_of(scores), classes)]


def classes_of(labelled: ScoreCounts | TopScoreCounts) -> IntArray:
    """Return the codes of the classes with at least one row."""
    if isinstance(labelled, TopScoreCounts):
        return np.unique(labelled.cells[0])
    return np.flatnonzero(labelled.counts.any(axis=1))
