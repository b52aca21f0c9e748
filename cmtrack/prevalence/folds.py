"""Ways to split labelled counts into folds: functions of the counts alone, the same for every order of the samples."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cmtrack.statistics.inputs import FloatArray

Folding = Callable[[FloatArray, int], FloatArray]
"""Of counts (B,) and a number of folds: counts (folds, B) that sum to the former."""

_SEED = 20230813
_MOST = 10**9
"""Samples that a hypergeometric distribution is drawn of; with more, folds differ by nothing that could be seen."""


def in_turn(counts: FloatArray, folds: int) -> FloatArray:
    """The samples in score order go to the folds in turn, fractional counts (weights) likewise.

    The folds are as alike as can be, and so a model that is fitted on the others has nearly seen this one.

    Returns
    -------
    ndarray of shape (folds, B)
    """
    ends = np.concatenate(([0.0], np.cumsum(counts)))
    turns, within = np.divmod(ends, folds)
    fold = np.arange(folds)[:, None]
    up_to = turns + np.clip(within - fold, 0.0, 1.0)
    return np.diff(up_to, axis=1)


def at_random(counts: FloatArray, folds: int) -> FloatArray:
    """Folds of equal size, drawn with a fixed seed: as unlike as samples are.

    Fractional counts (weights) are split in the shares in which as many whole ones would be.

    Returns
    -------
    ndarray of shape (folds, B)
    """
    whole = np.ceil(counts).astype(np.int64)
    if not 0 < whole.sum() < _MOST:
        return in_turn(counts, folds)
    rng = np.random.default_rng(_SEED)
    left, out = whole.copy(), np.zeros((folds, len(whole)))
    for fold in range(folds):
        size = int(left.sum()) // (folds - fold)
        drawn = rng.multivariate_hypergeometric(left, size, method="marginals") if fold < folds - 1 else left
        out[fold] = drawn
        left = left - drawn
    return out * np.divide(counts, whole, out=np.zeros(len(whole)), where=whole > 0)
