"""Two runs together: the share where at least one is right, and how alike their errors are."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from cmtrack.metrics.influence import standard_error
from cmtrack.metrics.intervals import Interval, exact_ends, on_scale, wilson
from cmtrack.statistics.inputs import BoolArray, FloatArray, IntArray


class Pair(NamedTuple):
    """Two runs on the same rows.

    Attributes
    ----------
    both, only_first, only_second, neither : number
        Rows (or their weight) that these get right.
    either : float
        Share where at least one is right: an upper bound for any rule that chooses one of the two answers, not a
        forecast.
    either_ends : (low, high)
        Wilson's interval.
    gain : float
        The ceiling less the better accuracy: the share where only the weaker run is right.
    gain_ends : (low, high)
        Clopper and Pearson's.
    kappa : float
        Cohen's kappa of right and wrong: 1 where both err in the same rows, 0 where their errors are independent. NaN
        where one is always right, or always wrong.
    kappa_error : float
        Its standard error.
    kappa_ends : (low, high)
        By Fisher's z.

    Examples
    --------
    >>> import numpy as np
    >>> from cmtrack.rows import Pair
    >>> first, second = (np.repeat(right, (780, 60, 40, 20)) for right in ([1, 0, 1, 0], [1, 1, 0, 0]))
    >>> pair = Pair.of(first == 1, second == 1)
    >>> round(pair.either, 4), round(pair.gain, 4), round(pair.kappa, 4)
    (0.9778, 0.0444, 0.2268)
    """

    both: Any
    only_first: Any
    only_second: Any
    neither: Any
    either: float
    either_ends: Interval
    gain: float
    gain_ends: Interval
    kappa: float
    kappa_error: float
    kappa_ends: Interval

    @classmethod
    def of(
        cls,
        first: BoolArray,
        second: BoolArray,
        confidence_level: float = 0.95,
        weights: FloatArray | IntArray | None = None,
        clusters: IntArray | None = None,
    ) -> Pair:
        """Compare where two runs are right; weights and clusters as in :meth:`cmtrack.rows.Flips.of`."""
        cell = 2 * first.astype(np.int8) + second
        if weights is None:
            right, right_2, both = (np.count_nonzero(mark) for mark in (first, second, first & second))
            counts = np.array([len(first) - right - right_2 + both, right_2 - both, right - both, both])
        else:
            counts = np.bincount(cell, weights, minlength=4).astype(weights.dtype)
        neither, only_second, only_first, both = (one.item() for one in counts)
        total, whole = float(counts.sum()), clusters is None and (weights is None or weights.dtype.kind == "i")
        share = counts / total

        def error(psi: FloatArray) -> float:
            if not whole:
                return standard_error(psi[cell], weights, clusters)
            return math.sqrt(max(float(counts @ psi**2) - float(counts @ psi) ** 2 / total, 0.0)) / total

        def worth(value: float, of: FloatArray) -> float:
            spread = 0.0 if whole else error(of - value)
            return value * (1 - value) / spread**2 if spread > 0 else total

        either, least = 1 - share[0], np.array([0.0, 1, 0, 0] if only_second <= only_first else [0.0, 0, 1, 0])
        gain = float(share @ least)
        n_either, n_gain = worth(either, np.array([0.0, 1, 1, 1])), worth(gain, least)
        q, t = share[2] + share[3], share[1] + share[3]  # right in the first, in the second
        observed, chance = share[0] + share[3], q * t + (1 - q) * (1 - t)
        kappa = kappa_error = math.nan
        if chance < 1 and 0 < q < 1 and 0 < t < 1:
            kappa = float((observed - chance) / (1 - chance))
            agree = np.array([1.0, 0, 0, 1])
            margins = np.array([1 - t, 1 - t, t, t]) + np.array([1 - q, q, 1 - q, q])
            psi = ((agree - observed) * (1 - chance) - (1 - observed) * (margins - 2 * chance)) / (1 - chance) ** 2
            kappa_error = error(psi)
        low, high = exact_ends(gain * n_gain, n_gain, confidence_level)
        return cls(
            both, only_first, only_second, neither,
            float(either), wilson(float(either), n_either, confidence_level) or (math.nan, math.nan),
            gain, (float(low), float(high)),
            kappa, kappa_error, on_scale("atanh", kappa, kappa_error, confidence_level) or (math.nan, math.nan),
        )  # fmt: skip
