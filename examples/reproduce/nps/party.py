"""Real ordered answers: party identification in the American National Election Study of 1996."""

from __future__ import annotations

import numpy as np
from sklearn.model_selection import train_test_split

from cmtrack import Evaluation, evaluate
from cmtrack.demo import load, question
from nps import published
from nps.algorithms import SCALED, Size, algorithms, fitted, probabilities
from nps.survey import Split

PARTY = question()
"""Relaxed to democrat, independent and republican; then strict: who is not a Democrat?"""
SCALED_HERE = (*SCALED, "k-NN")
LABELS = tuple(range(7))


def split(seed: int) -> Split:
    """All 944 people, 80% to learn from and 20% to be judged on."""
    data = load()
    x = np.concatenate((data.x_fit, data.x_held, data.x_test)).astype(np.float64)
    y = np.concatenate((data.y_fit, data.y_held, data.y_test)).astype(np.int64)
    parts = train_test_split(
        x, y, test_size=published.VALIDATION_SHARE, stratify=y, random_state=seed
    )
    x_train, x_valid, y_train, y_valid = parts
    return Split(x_train, y_train, x_valid, y_valid, LABELS)


def without_pools(data: Split, seed: int, size: Size) -> Evaluation:
    """The CNN with pools of one place, which forget nothing; it needs PyTorch."""
    classifier = algorithms(seed, size)["CNN"].set_params(convolutionalclassifier__pool_size=1)
    scores = probabilities(fitted(classifier, data), data)
    return evaluate(data.y_valid, y_prob=scores, labels=data.labels, grouping=PARTY)
