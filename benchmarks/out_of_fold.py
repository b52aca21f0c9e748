"""Coverage of prevalence intervals with out-of-fold scores: one refitted model against the models of all folds.

    python benchmarks/out_of_fold.py [--splits 40] [--targets 10]

The populations are generated, so every target is new. For each split: labelled rows with 10-fold out-of-fold scores,
and targets of 200 rows at shares of .05 to .95. Standard errors are by split, because its targets share the labelled rows.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.datasets import make_classification, make_gaussian_quantiles
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import GaussianNB

from cmtrack import estimate_prevalence

Data = tuple[np.ndarray, np.ndarray]
POPULATION, SIZE, FOLDS = 20_000, 200, 10
COLUMNS = ("refitted, no fold_ids", "refitted, fold_ids", "fold models", "held out")


def quantiles(seed: int) -> Data:
    """Return two classes of equal size, one around the other: no line separates them."""
    return make_gaussian_quantiles(
        n_samples=POPULATION, n_features=2, n_classes=2, random_state=seed
    )


def words(seed: int) -> Data:
    """Return sixty rare words. A normal density of a word that a class lacks has no width, and each fit lacks others."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, POPULATION)
    base, lift = rng.exponential(0.01, 60), np.exp(rng.normal(0, 1.0, 60))
    rate = np.where(y[:, None] == 1, base * lift, base / lift)
    return (rng.random(rate.shape) < rate).astype(float), y


def noisy(seed: int) -> Data:
    """Return twenty features, five of them informative, with one label in ten wrong."""
    return make_classification(
        POPULATION, 20, n_informative=5, flip_y=0.1, class_sep=0.7, random_state=seed
    )


TASKS: dict[str, tuple[Callable[[int], Data], Any, int]] = {
    "Gaussian quantiles, logistic": (quantiles, LogisticRegression(), 500),
    "rare words, naive Bayes": (words, GaussianNB(), 300),
    "noisy labels, logistic": (noisy, LogisticRegression(max_iter=1000), 300),
    "noisy labels, forest": (
        noisy,
        RandomForestClassifier(50, min_samples_leaf=3, random_state=0),
        300,
    ),
}


def one_split(
    task: str, seed: int, n_targets: int
) -> dict[str, list[tuple[bool, bool, float, bool, float]]]:
    """Return for each way and target: covered, count covered, absolute error, whether the fit is rejected, width."""
    make, model, m = TASKS[task]
    x, y = make(seed)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(y))
    fit, held, rest = order[:m], order[m : 2 * m], order[2 * m :]
    scores, fold_ids, models = np.empty(m), np.empty(m, dtype=int), []
    for fold, (train, test) in enumerate(
        StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(x[fit], y[fit])
    ):
        models.append(clone(model).fit(x[fit][train], y[fit][train]))
        scores[test], fold_ids[test] = models[-1].predict_proba(x[fit][test])[:, 1], fold
    refitted = clone(model).fit(x[fit], y[fit])
    held_scores = refitted.predict_proba(x[held])[:, 1]
    by_class = [rest[y[rest] == label] for label in (0, 1)]
    out = defaultdict(list)
    for share in np.linspace(0.05, 0.95, n_targets):
        k = rng.binomial(SIZE, share)
        sizes = (SIZE - k, k)
        rows = np.concatenate(
            [rng.choice(own, n, replace=False) for own, n in zip(by_class, sizes, strict=True)]
        )
        one = refitted.predict_proba(x[rows])[:, 1]
        each = [own.predict_proba(x[rows])[:, 1] for own in models]
        found = (
            estimate_prevalence(one, calibration=(y[fit], scores)),
            estimate_prevalence(one, calibration=(y[fit], scores, fold_ids)),
            estimate_prevalence(each, calibration=(y[fit], scores, fold_ids)),
            estimate_prevalence(one, calibration=(y[held], held_scores)),
        )
        for name, estimate in zip(COLUMNS, found, strict=True):
            e = estimate.refused or estimate  # rejections have a separate column
            covered = e.low <= share <= e.high, e.count_low <= k <= e.count_high
            out[name].append(
                (*covered, abs(e.value - k / SIZE), e.fit_pvalue < 0.05, e.high - e.low)
            )
    return out


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--splits", type=int, default=40)
    parser.add_argument("--targets", type=int, default=10)
    parser.add_argument("--task", choices=TASKS, action="append")
    chosen = parser.parse_args()
    print(
        "| task | scores of the target | covers | covers own | mean absolute error | width | fit rejected |"
    )
    print("|---|---|---|---|---|---|---|")
    for task in chosen.task or TASKS:
        splits = [one_split(task, seed, chosen.targets) for seed in range(chosen.splits)]
        for name in COLUMNS:
            by_split = np.array([split[name] for split in splits], dtype=float).mean(axis=1)
            mean, error = by_split.mean(axis=0), by_split.std(axis=0, ddof=1) / np.sqrt(len(splits))
            covers = " | ".join(f"{mean[j]:.3f} ({error[j]:.3f})" for j in (0, 1))
            print(
                f"| {task} | {name} | {covers} | {mean[2]:.4f} | {mean[4]:.3f} | {mean[3]:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
