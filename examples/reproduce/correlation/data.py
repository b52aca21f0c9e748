"""The distributions of sections 1.2.3 and 1.3.2."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

SIZES = (4500, 500)
CLASS_SIZES = (5000, 1000, 200)
SD = 0.5
MIXTURES = (((0.95, 0.0), (0.05, 3.0)), ((0.10, 1.0), (0.90, 4.0)))
"""Weight and mean of the normals of the negatives and of the positives; all have the standard deviation SD."""


class Sample(NamedTuple):
    """Rows and their classes."""

    x: FloatArray
    y: IntArray


class Problem(NamedTuple):
    """What a machine is fitted on, and what it is judged on."""

    train: Sample
    test: Sample


def normal(rng: np.random.Generator, sizes: tuple[int, int] = SIZES) -> Sample:
    """Negatives N(0, 0.5^2), positives N(4, 0.5^2): Figure 1.1."""
    return _two(rng.normal(0.0, SD, sizes[0]), rng.normal(4.0, SD, sizes[1]))


def non_normal(rng: np.random.Generator, sizes: tuple[int, int] = SIZES) -> Sample:
    """A sum of two normals in each class: Figure 1.3.

    The source's positives are X21 I{U < 0.1} + X22 I{U > 0.1}: one normal or the other, never their sum.
    """
    halves = []
    for size, ((weight, first), (_, second)) in zip(sizes, MIXTURES, strict=True):
        halves.append(rng.normal(np.where(rng.random(size) < weight, first, second), SD))
    return _two(*halves)


def non_normal_densities(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Densities of the negatives and of the positives of :func:`non_normal`."""
    negative, positive = (
        sum(weight * norm.pdf(x, mean, SD) for weight, mean in one) for one in MIXTURES
    )
    return negative, positive


def log_normal(rng: np.random.Generator, size: int = 10_000) -> Sample:
    """Scores X of the positives and -X of the negatives, both log-normal: Figure 1.5."""
    return _two(-rng.lognormal(0.0, 1.0, size), rng.lognormal(0.0, 1.0, size))


def three_normals(rng: np.random.Generator, sizes: tuple[int, ...] = CLASS_SIZES) -> Sample:
    """Class i = 1, 2, 3 is normal about 4 e_i in three dimensions: Figure 1.9."""
    y = np.repeat(np.arange(1, len(sizes) + 1), sizes)
    x = rng.normal(0.0, SD, (len(y), len(sizes)))
    x[np.arange(len(y)), y - 1] += 4.0
    return Sample(x, y)


def _two(negative: FloatArray, positive: FloatArray) -> Sample:
    y = np.repeat([0, 1], [len(negative), len(positive)])
    return Sample(np.concatenate((negative, positive))[:, None], y)
