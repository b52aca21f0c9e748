"""Shares of more than two classes: error compared with QuaPy's quantifiers, and coverage; prints Markdown.

Usage: ``python benchmarks/class_prevalence.py [--quick] [--tasks digits/wine] [--cache folder]``. ``--cache`` stores
the peers' estimates; if it has them, QuaPy need not be installed. Every split has its own training rows, labelled rows
(equally many of each class) and target, all newly drawn from one population. So splits are independent, and standard
errors are standard errors of means over splits.
"""

from __future__ import annotations

import argparse
import logging
import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn import datasets
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cmtrack import estimate_prevalence

PEERS = ("EMQ", "KDEy-ML", "DMy", "PACC")
UNEQUAL = (0.01, 0.02, 0.07, 0.3, 0.6)
_DIGITS_PIXELS = [2, 4, 10, 13, 18, 20, 21, 26, 27, 28, 30, 33, 34, 36, 42, 43, 46, 50, 53, 60]

Rows = tuple[np.ndarray, np.ndarray]
Population = Callable[[int], Callable[[np.random.Generator, np.ndarray], np.ndarray]]
"""Takes a seed and returns a function that draws one row of features for each requested class."""


def _made(n_classes: int, clusters: int = 1) -> Population:
    """Skewed Gaussian clusters, another problem for every seed."""

    def of_seed(seed: int) -> Callable[[np.random.Generator, np.ndarray], np.ndarray]:
        x, y = datasets.make_classification(
            30_000,
            n_features=10,
            n_informative=6,
            n_classes=n_classes,
            n_clusters_per_class=clusters,
            class_sep=0.85,
            random_state=seed,
        )
        return _of_rows(x, y, 0.0)

    return of_seed


def _of_rows(
    x: np.ndarray, y: np.ndarray, width: float
) -> Callable[[np.random.Generator, np.ndarray], np.ndarray]:
    """Rows drawn with replacement, with normal noise of ``width`` standard deviations: an endless population."""
    rows, spread = [np.flatnonzero(y == k) for k in range(y.max() + 1)], width * x.std(axis=0)

    def draw(rng: np.random.Generator, classes: np.ndarray) -> np.ndarray:
        place = rng.random(len(classes))
        picked = np.array(
            [rows[k][int(u * len(rows[k]))] for k, u in zip(classes, place, strict=True)]
        )
        noisy: np.ndarray = x[picked] + spread * rng.normal(size=(len(classes), x.shape[1]))
        return noisy

    return draw


def _digits(pixels: list[int] | None) -> Population:
    x, y = datasets.load_digits(return_X_y=True)
    return lambda _: _of_rows(x if pixels is None else x[:, pixels], y, 0.3)


def _wine() -> Population:
    x, y = datasets.load_wine(return_X_y=True)
    return lambda _: _of_rows(x[:, [0, 1, 10]], y, 0.3)


def _alike(gap: float) -> Population:
    """Return five classes with heavy tails, the last two ``gap`` apart: one population for all seeds."""
    rng = np.random.default_rng(5)
    centres, away = rng.normal(size=(5, 6)) * 1.3, rng.normal(size=6)
    centres[4] = centres[3] + gap * away / np.linalg.norm(away)
    scales = rng.uniform(0.8, 1.3, size=(5, 6))

    def draw(rng: np.random.Generator, classes: np.ndarray) -> np.ndarray:
        drawn: np.ndarray = centres[classes] + scales[classes] * rng.standard_t(
            5, size=(len(classes), 6)
        )
        return drawn

    return lambda _: draw


@dataclass(frozen=True)
class Task:
    """A population, its classifier, and the numbers of labelled and evaluated rows.

    ``shares`` are the target's shares, by default drawn uniformly; if there are several, the splits take turns.
    ``labelled_shares`` and ``train_shares`` are equal by default.
    """

    population: Callable[[], Population]
    scorer: str
    classes: int
    train: int
    labelled: int
    target: int
    shares: tuple[float, ...] | tuple[tuple[float, ...], ...] | None = None
    labelled_shares: tuple[float, ...] | None = None
    train_shares: tuple[float, ...] | None = None


TASKS = {
    "synthetic, lr, K=3, 90": Task(lambda: _made(3), "lr", 3, 500, 90, 300),
    "synthetic, nb, K=3, 300": Task(lambda: _made(3), "nb", 3, 500, 300, 2_000),
    "synthetic, lr, K=5, 150": Task(lambda: _made(5), "lr", 5, 500, 150, 300),
    "synthetic, nb, K=5, 500": Task(lambda: _made(5), "nb", 5, 500, 500, 2_000),
    "synthetic, lr, K=10, 300": Task(lambda: _made(10), "lr", 10, 1_000, 300, 300),
    "synthetic, nb, K=10, 1000": Task(lambda: _made(10), "nb", 10, 1_000, 1_000, 2_000),
    "synthetic, lr, unequal, 500": Task(lambda: _made(5), "lr", 5, 500, 500, 5_000, UNEQUAL),
    "digits, 20 pixels, lr, 400": Task(lambda: _digits(_DIGITS_PIXELS), "lr", 10, 600, 400, 300),
    "digits, nb, 400": Task(lambda: _digits(None), "nb", 10, 600, 400, 300),
    "wine, 3 features, lr, 54": Task(_wine, "lr", 3, 60, 54, 200),
}
COVERAGE_TASKS = {
    "one problem, lr, unequal, 500": Task(
        lambda: lambda _: _made(5)(0), "lr", 5, 500, 500, 5_000, UNEQUAL
    ),
    "one problem, lr, unequal, 5000": Task(
        lambda: lambda _: _made(5)(0), "lr", 5, 500, 5_000, 20_000, UNEQUAL
    ),
    "synthetic, lr, unequal, 5000": Task(lambda: _made(5), "lr", 5, 500, 5_000, 20_000, UNEQUAL),
    "synthetic, nb, unequal, 500": Task(lambda: _made(5), "nb", 5, 500, 500, 5_000, UNEQUAL),
    "synthetic, nb, unequal, 5000": Task(lambda: _made(5), "nb", 5, 500, 5_000, 20_000, UNEQUAL),
    "two clusters, lr, unequal, 500": Task(lambda: _made(5, 2), "lr", 5, 500, 500, 5_000, UNEQUAL),
    "two clusters, lr, unequal, 5000": Task(
        lambda: _made(5, 2), "lr", 5, 500, 5_000, 20_000, UNEQUAL
    ),
    "synthetic, lr, labelled unequal, 1000": Task(
        lambda: _made(5),
        "lr",
        5,
        500,
        1_000,
        5_000,
        (0.3, 0.3, 0.2, 0.1, 0.1),
        (0.03, 0.07, 0.1, 0.3, 0.5),
    ),
}
NATURAL = (0.42, 0.26, 0.17, 0.1, 0.05)
SEVERAL = (
    (0.3, 0.25, 0.2, 0.15, 0.1),
    (0.05, 0.1, 0.15, 0.3, 0.4),
    (0.55, 0.2, 0.15, 0.07, 0.03),
    (0.02, 0.03, 0.6, 0.15, 0.2),
)
WIDTH_TASKS = {
    f"two alike ({gap}), {scorer}, {labelled}": Task(
        lambda gap=gap: _alike(gap), scorer, 5, 500, labelled, 1_500, SEVERAL, NATURAL, NATURAL
    )
    for gap, scorer, labelled in (
        (1.5, "lr", 400),
        (1.5, "nb", 800),
        (2.0, "lr", 800),
        (2.0, "nb", 400),
    )
}
SCORERS = {
    "lr": lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)),
    "nb": GaussianNB,
}


@dataclass(frozen=True)
class Split:
    """Labelled probabilities, a target's, and its shares."""

    y: np.ndarray
    held: np.ndarray
    target: np.ndarray
    shares: np.ndarray
    realised: np.ndarray


def _classes(size: int, n: int, shares: tuple[float, ...] | None) -> np.ndarray:
    if shares is None:
        return np.arange(n) % size
    return np.repeat(np.arange(size), np.rint(np.multiply(shares, n)).astype(int))


def splits(task: Task, n_splits: int, first: int = 0) -> list[Split]:
    """Independent splits of a task."""
    population, out = task.population(), []
    for seed in range(first, first + n_splits):
        draw, rng = population(seed), np.random.default_rng(1000 + seed)
        train = _classes(task.classes, task.train, task.train_shares)
        model = SCORERS[task.scorer]().fit(draw(rng, train), train)
        y = _classes(task.classes, task.labelled, task.labelled_shares)
        shares = (
            rng.dirichlet(np.ones(task.classes)) if task.shares is None else np.array(task.shares)
        )
        shares = shares if shares.ndim == 1 else shares[seed % len(shares)]
        actual = rng.choice(task.classes, task.target, p=shares)
        held, target = (model.predict_proba(draw(rng, classes)) for classes in (y, actual))
        out.append(Split(y, held, target, shares, np.bincount(actual, minlength=task.classes)))
    return out


class GivenScores(ClassifierMixin, BaseEstimator):
    """A classifier whose input is its own posterior."""

    def __init__(self, classes: int = 2) -> None:
        self.classes = classes
        self.classes_ = np.arange(classes)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def fit(self, x: np.ndarray, y: np.ndarray) -> GivenScores:
        return self

    def predict_proba(self, x: np.ndarray) -> np.ndarray:
        return x


def peer(name: str, split: Split) -> np.ndarray:
    """Return shares by a quantifier of QuaPy; NaN if it fails."""
    from quapy.method.aggregative import EMQ, PACC, DMy, KDEyML

    method = {"EMQ": EMQ, "KDEy-ML": KDEyML, "DMy": DMy, "PACC": PACC}[name]
    size = split.held.shape[1]
    quantifier = method(GivenScores(size), fit_classifier=False)
    quantifier.train_prevalence = np.bincount(split.y, minlength=size) / len(split.y)
    quantifier.aggregation_fit(split.held, split.y)
    return np.asarray(quantifier.aggregate(split.target))


def cached(folder: Path | None, key: str, compute: Callable[[], np.ndarray]) -> np.ndarray:
    """Return the stored array, or compute and store it."""
    if folder is None:
        return compute()
    path = folder / f"{key.replace('/', '-').replace(' ', '_')}.npy"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        np.save(path, compute())
    return np.load(path)


@dataclass(frozen=True)
class Ours:
    """Our estimates of all splits: values, low, high and the counts' intervals (splits, K); p-values, seconds (splits,)."""

    values: np.ndarray
    low: np.ndarray
    high: np.ndarray
    counts: np.ndarray
    pvalues: np.ndarray
    seconds: np.ndarray


def ours(parts: list[Split], density: str) -> Ours:
    """Our estimates of all splits."""
    rows, counts, pvalues, seconds = [], [], [], []
    for part in parts:
        start = time.process_time()
        estimate = estimate_prevalence(
            part.target, calibration=(part.y, part.held), density=density
        )
        estimate = estimate.refused or estimate  # the methods are compared on all targets
        seconds.append(time.process_time() - start)
        rows.append(list(estimate.by_class.values()))
        counts.append(estimate.to_frame()[["count_low", "count_high"]])
        pvalues.append(estimate.fit_pvalue)
    values, low, high = np.moveaxis(np.array(rows), 2, 0)
    return Ours(values, low, high, np.array(counts), np.array(pvalues), np.array(seconds))


def excess(found: Ours, truth: np.ndarray) -> tuple[float, float]:
    """Mean width over 3.92 times the root mean squared error, and its standard error by resampled splits."""
    widths, squares = (
        (found.high - found.low).mean(axis=1),
        ((found.values - truth) ** 2).mean(axis=1),
    )
    drawn = np.random.default_rng(0).integers(0, len(widths), (500, len(widths)))
    ratios = widths[drawn].mean(axis=1) / 3.92 / np.sqrt(squares[drawn].mean(axis=1))
    return float(widths.mean() / 3.92 / np.sqrt(squares.mean())), float(ratios.std())


def _mean(by_split: np.ndarray) -> tuple[float, float]:
    return float(by_split.mean()), float(by_split.std(ddof=1) / math.sqrt(len(by_split)))


def report(tasks: dict[str, Task], options: argparse.Namespace, peers: tuple[str, ...]) -> None:
    """Print errors by method, our error over the best peer's, and coverage over all classes and of the worst class."""
    columns = (
        "ours (se)",
        "ours / best",
        "largest bias of a class (sd)",
        "covers (se)",
        "worst class",
        "fit rejects",
    )
    columns += ("width", "width / 3.92 RMSE (se)", "number covers (se)", "ms")
    print("| " + " | ".join(("task", *peers, *columns)) + " |")
    print("|---" * (len(peers) + 11) + "|")
    ratios, covers, worst = [], [], []
    for name, task in tasks.items():
        parts = splits(task, options.splits, options.first)
        truth = np.stack([part.shares for part in parts])
        errors = []
        for one in peers:
            key = f"{name} {one} {options.splits}" + (f" {options.first}" if options.first else "")
            values = cached(
                options.cache, key, lambda n=one, p=parts: np.stack([peer(n, x) for x in p])
            )
            errors.append(float(np.abs(values - truth).mean()))
        found = ours(parts, options.density)
        numbers = np.stack([part.realised for part in parts])
        counted, counted_se = _mean(
            ((found.counts[..., 0] <= numbers) & (numbers <= found.counts[..., 1])).mean(axis=1)
        )
        ratio_of_width, ratio_se = excess(found, truth)
        error, spread = _mean(np.abs(found.values - truth).mean(axis=1))
        inside = (found.low <= truth) & (truth <= found.high)
        cover, cover_se = _mean(inside.mean(axis=1))
        least = float(inside.mean(axis=0).min())
        difference = found.values - truth
        far = int(np.abs(difference.mean(axis=0)).argmax())
        ratio = error / min(errors) if errors else math.nan
        ratios.append(ratio)
        covers.append(cover)
        worst.append(least)
        cells = [f"{e:.4f}" for e in errors] + [
            f"{error:.4f} ({spread:.4f})",
            f"{ratio:.3f}" if errors else "–",
            f"{difference.mean(axis=0)[far]:+.4f} ({difference[:, far].std():.4f})",
            f"{cover:.3f} ({cover_se:.3f})",
            f"{least:.2f}",
            f"{np.mean(found.pvalues < 0.05):.2f}",
            f"{(found.high - found.low).mean():.3f}",
            f"{ratio_of_width:.2f} ({ratio_se:.2f})",
            f"{counted:.3f} ({counted_se:.3f})",
            f"{1e3 * np.median(found.seconds):.0f}",
        ]
        print(f"| {name} |", " | ".join(cells), "|", flush=True)
    if peers:
        print(
            f"\nours / best peer: geometric mean {np.exp(np.mean(np.log(ratios))):.3f}, largest {max(ratios):.3f}"
        )
    lowest = f"least task {min(covers):.3f}, least class {min(worst):.2f}"
    print(f"coverage (nominal .95): mean {np.mean(covers):.3f}, {lowest}")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="8 splits instead of 60")
    parser.add_argument("--splits", type=int, default=60)
    parser.add_argument("--first", type=int, default=0, help="number of the first split, its seed")
    parser.add_argument("--tasks", default="", help="parts of task names")
    parser.add_argument("--density", choices=("auto", "bins"), default="auto")
    parser.add_argument("--cache", type=Path, help="folder for the peers' estimates")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    options.splits = 8 if options.quick else options.splits

    def chosen(tasks: dict[str, Task]) -> dict[str, Task]:
        wanted = options.tasks.split("/")
        return {name: task for name, task in tasks.items() if any(part in name for part in wanted)}

    if tasks := chosen(TASKS):
        report(tasks, options, PEERS)
    for tasks in map(chosen, (COVERAGE_TASKS, WIDTH_TASKS)):
        if tasks:
            print()
            report(tasks, options, ())


if __name__ == "__main__":
    main()
