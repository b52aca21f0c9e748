"""Problems of a known make-up: labels, and what classifiers of a known skill say about them.

All of them are one model. The class of each row is drawn, by equal shares or by given ones. Of every class c the row
has an evidence

    x_c = e_c + skill · [c is its class],   e_c standard normal,

which are its features to a classifier that learns, and its probabilities are softmax(slope · x + shift). The posterior
is softmax(skill · x + log share): probabilities are calibrated where ``slope`` is ``skill`` and ``shift`` the logarithm
of the shares (0 for equal ones); with a slope w times as large the odds are the true ones to the power of w, which is
over-confident for w > 1. With ``skill`` 0 nothing is known of the class. Of two classes it is enough to have

    x = e + skill · (y - 1/2),   score = sigmoid(slope · x + shift),

with the same conditions. Models on the same rows get the same labels and other seeds. A cluster or a segment is harder
by a ``skill``, or by a chance of being ``right``, for each row.

A seed is a number, a sequence of numbers, or a generator, from which one call draws after another.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit, softmax

import cmtrack

Array = npt.NDArray[Any]
Seed = int | Sequence[int] | np.random.Generator


def random_labels(n: int, k: int = 2, seed: Seed = 0, shares: Any = None) -> Array:
    """Class numbers: by shares, or, where there are none, all alike often, the first k rows one of each class."""
    rng = np.random.default_rng(seed)
    if shares is not None:
        return rng.choice(k, n, p=shares)
    return np.concatenate((np.arange(k), rng.integers(0, k, max(n - k, 0))))[:n]


def random_features(y: Array, width: int, skill: float = 1.0, seed: Seed = 0) -> Array:
    """The evidence (n, width) of each row: standard normal, and ``skill`` more in the column of its class."""
    return np.random.default_rng(seed).normal(size=(len(y), width)) + skill * np.eye(width)[y]


def random_probabilities(
    y: Array,
    k: int,
    skill: float = 1.5,
    seed: Seed = 0,
    *,
    slope: float = 1.0,
    shift: Any = 0.0,
    digits: int | None = None,
) -> Array:
    """Probabilities (n, k) of a classifier; rounded to some digits they have ties."""
    p = softmax(slope * random_features(y, k, skill, seed) + shift, axis=1)
    return (
        p
        if digits is None
        else np.round(p, digits) / np.round(p, digits).sum(axis=1, keepdims=True)
    )


def random_scores(
    y: Array,
    skill: Any = 1.5,
    seed: Seed = 0,
    *,
    slope: float = 1.0,
    shift: Any = 0.0,
    digits: int | None = None,
) -> Array:
    """Probabilities (n,) of the second of two classes."""
    s = expit(slope * (np.random.default_rng(seed).normal(size=len(y)) + skill * (y - 0.5)) + shift)
    return s if digits is None else np.round(s, digits)


def random_guesses(y: Array, k: int, right: Any = 0.7, seed: Seed = 0) -> Array:
    """Predicted classes: the row's own with a chance, which may be one for each row, else any of the k."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random(len(y)) < right, y, rng.integers(0, k, len(y)))


def random_problem(
    seed: Seed,
    n: int = 300,
    k: int = 4,
    skill: float = 1.5,
    digits: int | None = None,
    *,
    shares: Any = None,
    slope: float = 1.0,
    shift: Any = 0.0,
) -> tuple[Array, Array, Array]:
    """Labels, predictions (the arg-max) and probabilities of one classifier."""
    rng = np.random.default_rng(seed)
    y = random_labels(n, k, rng, shares)
    p = random_probabilities(y, k, skill, rng, slope=slope, shift=shift, digits=digits)
    return y, p.argmax(axis=1), p


def random_models(
    skills: Sequence[float],
    n: int = 300,
    k: int = 3,
    seed: Seed = 0,
    *,
    common: float = 0.0,
    slope: float = 1.0,
) -> tuple[Array, list[Array]]:
    """Labels and, for each skill, probabilities of classifiers; ``common``: how far they find the same rows hard.

    It is the correlation of the noise of two of them, as a square root.
    """
    rng = np.random.default_rng(seed)
    y = random_labels(n, k, rng)
    shared, own = rng.normal(size=(n, k)), math.sqrt(1 - common**2)
    return y, [
        softmax(
            slope * (common * shared + own * rng.normal(size=(n, k)) + skill * np.eye(k)[y]), axis=1
        )
        for skill in skills
    ]


def learning_problem(
    k: int, n: int = 300, held: int = 100, *, width: int = 4, skill: float = 1.0, seed: Seed = 0
) -> tuple[Array, Array, Array, Array]:
    """Features and labels to train on, and those of the last ``held`` rows to judge with."""
    rng = np.random.default_rng(seed)
    y = random_labels(n, k, rng)
    x = random_features(y, width, skill, rng)
    return x[: n - held], y[: n - held], x[n - held :], y[n - held :]


# -- given ones -------------------------------------------------------------------------------------------------------

D20 = np.array(
    [.05, .1, .1, .2, .2, .3, .35, .4, .5, .5, .6, .6, .7, .8, .8, .9, .95, .15, .45, .75]
)  # fmt: skip
B20 = np.array([0, 0, 1, 0, 0, 0, 1, 0, 1, 0, 1, 0, 0, 1, 1, 1, 1, 0, 1, 1])
W20 = np.array([1, 2, 1, 1, 3, 1, 1, 2, 1, 1, 1, 2, 1, 1, 1, 1, 3, 1, 1, 2])
"""Test vector 20: probabilities, labels and weights of 20 rows."""


def rows_of(counts: Any, labels: Sequence[Any] | None = None) -> tuple[list[Any], list[Any]]:
    """Actual and predicted labels that have these confusion counts."""
    counts = np.asarray(counts)
    names = list(range(len(counts))) if labels is None else list(labels)
    cells = [
        (i, j)
        for i in range(len(counts))
        for j in range(len(counts))
        for _ in range(int(counts[i, j]))
    ]
    return [names[i] for i, _ in cells], [names[j] for _, j in cells]


def evaluate_counts(counts: Any, **options: Any) -> cmtrack.Evaluation:
    """The evaluation of predictions that have these confusion counts."""
    y_true, y_pred = rows_of(counts)
    return cmtrack.evaluate(y_true, y_pred, **options)


def standard_error(evaluation: cmtrack.Evaluation, name: str, scale: str) -> float:
    """The standard error that an interval was made from."""
    low, high = evaluation.intervals[name]
    value, z = evaluation.metrics[name], 1.959963984540054
    if scale == "atanh":
        return float((np.arctanh(high) - np.arctanh(low)) / (2 * z) * (1 - value**2))
    if scale == "logit":
        logit = np.log(high / (1 - high)) - np.log(low / (1 - low))
        return float(logit / (2 * z) * value * (1 - value))
    return (high - low) / (2 * z)
