"""False positives and power of the tests of two models over cross-validation folds.

    python benchmarks/fold_errors.py [--trials 200000]

Differences of two models over J folds, in units of each fold's own row-level standard error, are drawn from the model
of Nadeau and Bengio (2003): the rows of a fold, the training set of a fold, and the part that all training sets share.
Tests: the spread of the folds alone (corrected resampled t), the test rows alone, and the larger of the two p-values.
"""

from __future__ import annotations

import argparse

import numpy as np
from scipy.stats import norm, t


def pvalues(
    rng: np.random.Generator, trials: int, folds: int, training: float, shift: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return p-values by the spread and by the rows, each of shape (trials,)."""
    ratio = 1 / (folds - 1)
    shared = training * np.sqrt(ratio / (1 + ratio)) * rng.normal(size=(trials, 1))
    own = training * np.sqrt(1 / (1 + ratio)) * rng.normal(size=(trials, folds))
    gaps = shift + shared + own + rng.normal(size=(trials, folds))
    mean, variance = gaps.mean(axis=1), gaps.var(axis=1, ddof=1)
    by_spread = 2 * t.sf(np.abs(mean) / np.sqrt(variance * (1 / folds + ratio)), folds - 1)
    return by_spread, 2 * norm.sf(np.abs(mean) * np.sqrt(folds))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=200_000)
    trials = parser.parse_args().trials
    rng = np.random.default_rng(0)
    print(
        "| folds | training / row error | case | spread | rows | both | spread p <= .01 while rows p > .05 |"
    )
    print("|---|---|---|---|---|---|---|")
    for folds in (4, 10):
        for training, errors in ((0.0, 0), (0.5, 0), (1.0, 0), (0.5, 4)):
            a, b = pvalues(rng, trials, folds, training, errors / np.sqrt(folds))
            both = np.maximum(a, b)
            rates = [f"{(p <= 0.05).mean():.3f}" for p in (a, b, both)]
            rates.append(f"{((a <= 0.01) & (b > 0.05)).mean():.4f}")
            case = f"{errors} row errors apart" if errors else "equal"
            print(f"| {folds} | {training:g} | {case} | {' | '.join(rates)} |", flush=True)


if __name__ == "__main__":
    main()
