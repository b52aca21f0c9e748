"""Prevalence estimates compared with QuaPy's quantifiers, all from the same cross-validated scores; prints Markdown.

Usage: ``python benchmarks/prevalence_vs_quapy.py [--quick] [--scorers logistic,"naive Bayes"] [--cache folder]``
with QuaPy, abstention and cmtrack installed. ``--cache`` stores the peers' estimates between runs.
"""

from __future__ import annotations

import argparse
import logging
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import quapy  # noqa: F401
from prevalence_tasks import SCORERS, TASKS, Split, splits
from quapy.method.aggregative import ACC, EMQ, PACC, DyS, HDy, KDEyML
from sklearn.base import BaseEstimator, ClassifierMixin

from cmtrack import estimate_prevalence

PEERS = {
    "EMQ": (EMQ, {}),
    "EMQ-BCTS": (EMQ, {"exact_train_prev": False, "calib": "bcts", "val_split": 5}),
    "KDEy-ML": (KDEyML, {}),
    "DyS": (DyS, {}),
    "HDy": (HDy, {}),
    "PACC": (PACC, {}),
    "ACC": (ACC, {}),
}


class GivenScores(ClassifierMixin, BaseEstimator):
    """A classifier whose input is its own posterior."""

    def __init__(self) -> None:
        self.classes_ = np.array([0, 1])

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def fit(self, x: np.ndarray, y: np.ndarray) -> GivenScores:
        return self

    def predict_proba(self, x: np.ndarray) -> np.ndarray:
        return x


def peer(name: str, y: np.ndarray, scores: np.ndarray) -> Callable[[np.ndarray], float]:
    """Return a fitted peer, target scores -> prevalence. Scores for BCTS stay 1e-8 away from 0 and 1, where it fails."""
    kind, options = PEERS[name]
    margin = 1e-8 if name == "EMQ-BCTS" else 0.0

    def given(s: np.ndarray) -> np.ndarray:
        if name == "ACC":
            return (s > 0.5).astype(int)
        s = np.clip(s, margin, 1 - margin)
        return np.column_stack((1 - s, s))

    method = kind(GivenScores(), fit_classifier=False, **options)
    method.train_prevalence = np.bincount(y, minlength=2) / len(y)
    method.aggregation_fit(given(scores), y)
    return lambda target: float(method.aggregate(given(target))[1])


def peer_estimates(name: str, split: Split) -> np.ndarray:
    """Return one estimate per sample; NaN if the peer fails."""
    out = np.full(len(split.samples), np.nan)
    try:
        estimate = peer(name, split.y, split.scores)
        for row, rows in enumerate(split.samples):
            out[row] = estimate(split.pool_scores[rows])
    except RuntimeError:  # BCTS did not converge
        return out
    return out


def our_estimates(split: Split, density: str) -> np.ndarray:
    """Return columns: estimate; low, high of the population's and of the sample's own prevalence."""
    rows = []
    for sample in split.samples:
        e = estimate_prevalence(
            split.pool_scores[sample], calibration=(split.y, split.scores), density=density
        )
        e = e.refused or e  # the methods are compared on all samples
        rows.append((e.value, e.low, e.high, *e.realised))
    return np.array(rows)


def cached(folder: Path | None, key: str, compute: Callable[[], np.ndarray]) -> np.ndarray:
    """Return the stored array, or compute and store it."""
    if folder is None:
        return compute()
    path = folder / f"{key.replace('/', '-')}.npy"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        np.save(path, compute())
    return np.load(path)


def inside(low: np.ndarray, value: np.ndarray, high: np.ndarray) -> float:
    """Return the share of intervals that cover the truth."""
    return float(np.mean((low <= value) & (value <= high)))


def accuracy(scorers: list[str], n_splits: int, n_samples: int, cache: Path | None) -> None:
    """Print the table of errors, ratios, coverage and width."""
    print(
        "| scorer | task |",
        " | ".join(PEERS),
        "| bins | auto | auto / best peer | covers | covers own | width |",
    )
    print("|---" * (len(PEERS) + 8) + "|")
    ratios, covers, owns = [], [], []
    for scorer in scorers:
        for task in TASKS:
            parts = splits(task, scorer, n_splits, n_samples)
            truth = np.concatenate([part.prevalences for part in parts])
            errors = {}
            for name in PEERS:
                key = f"{scorer} {task} {name} {n_splits} {n_samples}"
                values = cached(
                    cache, key, lambda n=name, p=parts: np.stack([peer_estimates(n, x) for x in p])
                )
                errors[name] = float(np.abs(values.ravel() - truth).mean())
            best = np.nanmin(list(errors.values()))
            bins = np.concatenate([our_estimates(part, "bins") for part in parts])
            auto = np.concatenate([our_estimates(part, "auto") for part in parts])
            errors |= {
                "bins": float(np.abs(bins[:, 0] - truth).mean()),
                "auto": float(np.abs(auto[:, 0] - truth).mean()),
            }
            ratios.append(errors["auto"] / best)
            covers.append(inside(auto[:, 1], truth, auto[:, 2]))
            owns.append(inside(auto[:, 3], truth, auto[:, 4]))
            cells = " | ".join("fails" if np.isnan(v) else f"{v:.4f}" for v in errors.values())
            width = float((auto[:, 2] - auto[:, 1]).mean())
            ends = f"{ratios[-1]:.3f} | {covers[-1]:.3f} | {owns[-1]:.3f} | {width:.3f}"
            print(f"| {scorer} | {task} | {cells} | {ends} |", flush=True)
    mean = float(np.exp(np.mean(np.log(ratios))))
    print(f"\nauto / best peer: geometric mean {mean:.3f}, largest {max(ratios):.3f}")
    print(f"coverage (nominal .95): mean {np.mean(covers):.3f}, least {min(covers):.3f};", end=" ")
    print(f"of the sample's own prevalence: mean {np.mean(owns):.3f}, least {min(owns):.3f}")


def speed(n_labelled: int, n_target: int) -> None:
    """Print the times of one fit and one estimate, as multiples of ours (with its interval)."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], n_labelled // 2)
    scores = 1 / (1 + np.exp(-rng.normal(3 * y - 1.5)))
    target = 1 / (1 + np.exp(-rng.normal(np.where(rng.random(n_target) < 0.1, 1.5, -1.5))))

    def timed(run: Callable[[], object]) -> float:
        took = []
        for _ in range(3):
            start = time.perf_counter()
            run()
            took.append(time.perf_counter() - start)
        return min(took)

    ours = timed(lambda: estimate_prevalence(target, calibration=(y, scores)))
    names = [name for name in PEERS if n_target <= 20_000 or name != "KDEy-ML"]
    parts = []
    for name in names:
        try:
            parts.append(f"{name} {timed(lambda n=name: peer(n, y, scores)(target)) / ours:.2f}")
        except RuntimeError:  # BCTS did not converge
            parts.append(f"{name} fails")
    sizes = f"{n_labelled:,} labelled, {n_target:,} targets"
    print(f"- {sizes}: auto with interval 1 ({ours * 1e3:.0f} ms); {', '.join(parts)}")


def main() -> None:
    """Print the accuracy table and the times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="2 splits of 40 samples")
    parser.add_argument(
        "--scorers", default="logistic,naive Bayes", help=f"of {', '.join(SCORERS)}"
    )
    parser.add_argument("--cache", type=Path, help="folder for the peers' estimates")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    n_splits, n_samples = (2, 40) if options.quick else (5, 200)
    accuracy(options.scorers.split(","), n_splits, n_samples, options.cache)
    print("\nTime of fit and estimate, as multiples of ours in the same run:\n")
    for n_labelled, n_target in (
        (500, 250),
        (2_000, 10_000),
        (20_000, 100_000 if options.quick else 1_000_000),
    ):
        speed(n_labelled, n_target)


if __name__ == "__main__":
    main()
