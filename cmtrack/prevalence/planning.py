"""What to add for a narrower prevalence interval, and labels that agree with an estimated count."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cmtrack.metrics.intervals import normal_quantile
from cmtrack.prevalence.mixture import Variance
from cmtrack.statistics.inputs import FloatArray

BoolArray = NDArray[np.bool_]


@dataclass(frozen=True)
class SamplePlan:
    """How many more samples of one kind alone reach a half-width.

    Attributes
    ----------
    half_width : float
        The wanted one.
    now : float
        The half-width z sqrt(V) of the estimate as it is.
    target, positives, negatives : int or None
        More target scores, labelled positives or labelled negatives; 0 where nothing is needed, None where this
        kind alone cannot do it, because the other two parts of the variance already exceed the wanted one.
    """

    half_width: float
    now: float
    target: int | None
    positives: int | None
    negatives: int | None


@dataclass(frozen=True, eq=False)
class CountedLabels:
    """Labels of target scores.

    Attributes
    ----------
    positive : ndarray of shape (n,) of bool
    tied : int
        Samples at the score where the count falls within a block of equal scores, 0 if it does not. The block is
        labelled as a whole, whichever way comes nearer to the count.
    """

    positive: BoolArray
    tied: int


def sample_plan(
    spread: Variance, sizes: tuple[float, float, float], half_width: float, confidence_level: float
) -> SamplePlan:
    """Solve z^2 (V_t n/n' + V_1 + V_0) = half_width^2 for n', and so for the labelled samples of each class."""
    if not half_width > 0:
        raise ValueError(f"half_width must be positive, got {half_width!r}")
    z = normal_quantile(confidence_level)
    wanted = (half_width / z) ** 2
    parts = (spread.target, spread.positives, spread.negatives)

    def more(part: float, size: float) -> int | None:
        if spread.total <= wanted:
            return 0
        room = wanted - (spread.total - part)
        if not room > 0 or not math.isfinite(room):
            return None
        return math.ceil(size * (part / room - 1) - 1e-9)

    needed = [more(part, size) for part, size in zip(parts, sizes, strict=True)]
    return SamplePlan(half_width, z * math.sqrt(spread.total), needed[0], needed[1], needed[2])


def highest_scores(scores: FloatArray, count: float) -> CountedLabels:
    """The round(count) highest scores are positive; equal scores stay together."""
    wanted = round(count)
    if wanted <= 0:
        return CountedLabels(np.zeros(len(scores), dtype=bool), 0)
    if wanted >= len(scores):
        return CountedLabels(np.ones(len(scores), dtype=bool), 0)
    last = np.partition(scores, len(scores) - wanted)[len(scores) - wanted]
    above, reaching = int((scores > last).sum()), int((scores >= last).sum())
    if reaching == wanted:
        return CountedLabels(scores >= last, 0)
    whole = reaching - wanted <= wanted - above
    return CountedLabels(scores >= last if whole else scores > last, reaching - above)
