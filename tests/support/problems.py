"""Problems with known properties: labels, and predictions of classifiers with a known skill.

All problems come from one model. The class of each row is drawn, by equal or given shares. For every class c, the row
has an evidence

    x_c = e_c + skill · [c is its class],   e_c standard normal.

A classifier that learns uses the evidence as features. Its probabilities are softmax(slope · x + shift). The posterior
is softmax(skill · x + log share), so probabilities are calibrated if ``slope`` is ``skill`` and ``shift`` is the
logarithm of the shares (0 for equal shares). If the slope is w times as large, the odds are the true odds to the power
of w, which is over-confident for w > 1. With ``skill`` 0, nothing is known about the class. For two classes, it is
enough to have

    x = e + skill · (y - 1/2),   score = sigmoid(slope · x + shift),

with the same conditions. Models on the same rows get the same labels and other seeds. To make a cluster or a segment
harder, pass a ``skill``, or a chance of a correct prediction (``right``), for each row.

A seed is a number, a sequence of numbers, or a generator, from which several calls draw in turn.
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
    """Return class numbers, drawn by shares; without shares, equally often, and the first k rows one of each class."""
    rng = np.random.default_rng(seed)
    if shares is not None:
        return rng.choice(k, n, p=shares)
    return np.concatenate((np.arange(k), rng.integers(0, k, max(n - k, 0))))[:n]


def random_features(y: Array, width: int, skill: float = 1.0, seed: Seed = 0) -> Array:
    """Return the evidence (n, width) of each row: standard normal, plus ``skill`` in the column of its class."""
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
    """Return probabilities (n, k) of a classifier; if they are rounded to some digits, they have ties."""
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
    """Return probabilities (n,) of the second of two classes."""
    s = expit(slope * (np.random.default_rng(seed).normal(size=len(y)) + skill * (y - 0.5)) + shift)
    return s if digits is None else np.round(s, digits)


def random_guesses(y: Array, k: int, right: Any = 0.7, seed: Seed = 0) -> Array:
    """Return predicted classes: the row's class with a chance (a single one or one per row), else any of the k."""
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
    """Return labels, predictions (the arg-max) and probabilities of one classifier."""
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
    """Return labels and, for each skill, probabilities of classifiers.

    ``common``: how much they agree on which rows are hard: the square root of the correlation of their noise.
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
    """Return features and labels to train on, and features and labels of the last ``held`` rows for the evaluation."""
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
    """Return actual and predicted labels with these confusion counts."""
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
    """Return the evaluation of predictions with these confusion counts."""
    y_true, y_pred = rows_of(counts)
    return cmtrack.evaluate(y_true, y_pred, **options)


def standard_error(evaluation: cmtrack.Evaluation, name: str, scale: str) -> float:
    """Return the standard error from which an interval was made."""
    low, high = evaluation.intervals[name]
    value, z = evaluation.metrics[name], 1.959963984540054
    if scale == "atanh":
        return float((np.arctanh(high) - np.arctanh(low)) / (2 * z) * (1 - value**2))
    if scale == "logit":
        logit = np.log(high / (1 - high)) - np.log(low / (1 - low))
        return float(logit / (2 * z) * value * (1 - value))
    return (high - low) / (2 * z)
