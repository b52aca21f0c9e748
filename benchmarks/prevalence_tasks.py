"""Tasks for the prevalence benchmark: scikit-learn's bundled and generated data, with scores from held-out rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn import datasets
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict, train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

Data = tuple[np.ndarray, np.ndarray]
SIZE, LOW, HIGH = 250, 0.05, 0.95


@dataclass(frozen=True)
class Split:
    """Labelled out-of-fold scores, a pool of scored target rows, and the samples drawn from it."""

    y: np.ndarray
    scores: np.ndarray
    pool_y: np.ndarray
    pool_scores: np.ndarray
    samples: np.ndarray
    prevalences: np.ndarray


def _breast(columns: list[int] | None = None) -> Data:
    x, y = datasets.load_breast_cancer(return_X_y=True)
    return (x if columns is None else x[:, columns]), 1 - y


def _digits(
    keep: tuple[int, ...] | None, positive: tuple[int, ...], pixels: list[int] | None = None
) -> Data:
    x, y = datasets.load_digits(return_X_y=True)
    rows = np.isin(y, keep) if keep is not None else np.ones(len(y), dtype=bool)
    x = x[rows] if pixels is None else x[rows][:, pixels]
    return x, np.isin(y[rows], positive).astype(int)


def _wine() -> Data:
    x, y = datasets.load_wine(return_X_y=True)
    return x, (y == 1).astype(int)


def _diabetes() -> Data:
    x, y = datasets.load_diabetes(return_X_y=True)
    return x, (y > np.median(y)).astype(int)


def _made(**options: float) -> Callable[[], Data]:
    return lambda: datasets.make_classification(random_state=7, **options)


TASKS: dict[str, Callable[[], Data]] = {
    "breast cancer": _breast,
    "breast cancer, 2 weak": lambda: _breast([4, 8]),  # mean smoothness and mean symmetry
    "digits 3 v 8": lambda: _digits((3, 8), (8,)),
    "digits, 6 pixels": lambda: _digits((3, 8), (8,), [19, 26, 34, 37, 42, 45]),
    "digits odd/even": lambda: _digits(None, (1, 3, 5, 7, 9)),
    "wine": _wine,
    "diabetes": _diabetes,
    "made, noisy": _made(n_samples=2000, n_features=20, n_informative=5, flip_y=0.1, class_sep=0.7),
    "made, redundant": _made(
        n_samples=2000, n_features=20, n_informative=3, n_redundant=15, class_sep=0.8
    ),
    "made, imbalanced": _made(
        n_samples=4000, n_features=10, n_informative=4, weights=[0.92], class_sep=1.0
    ),
    "moons": lambda: datasets.make_moons(1500, noise=0.4, random_state=7),
}
SCORERS = {
    "logistic": lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)),
    "naive Bayes": GaussianNB,
    "forest": lambda: RandomForestClassifier(100, min_samples_leaf=3, random_state=0),
}


def splits(task: str, scorer: str, n_splits: int = 5, n_samples: int = 200) -> list[Split]:
    """Return splits: half of the rows give 10-fold out-of-fold scores, and samples are drawn from the other half."""
    x, y = TASKS[task]()
    out = []
    for seed in range(n_splits):
        x_train, x_pool, y_train, y_pool = train_test_split(
            x, y, test_size=0.5, stratify=y, random_state=seed
        )
        model = SCORERS[scorer]()
        folds = StratifiedKFold(10, shuffle=True, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scores = cross_val_predict(
                clone(model), x_train, y_train, cv=folds, method="predict_proba"
            )[:, 1]
            pool_scores = model.fit(x_train, y_train).predict_proba(x_pool)[:, 1]
        rng = np.random.default_rng(1000 + seed)
        prevalences = rng.uniform(LOW, HIGH, n_samples)
        positives, negatives = np.flatnonzero(y_pool == 1), np.flatnonzero(y_pool == 0)
        samples = np.empty((n_samples, SIZE), dtype=np.int64)
        for row, prevalence in zip(samples, prevalences, strict=True):
            k = round(prevalence * SIZE)
            row[:] = np.concatenate((rng.choice(positives, k), rng.choice(negatives, SIZE - k)))
        out.append(
            Split(y_train, scores, y_pool, pool_scores, samples, y_pool[samples].mean(axis=1))
        )
    return out
