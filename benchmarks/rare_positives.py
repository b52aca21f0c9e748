"""Counts of rare positives: coverage and width of the count's interval, compared with a bootstrap of the same estimate.

    python benchmarks/rare_positives.py [--quick] [--splits 30] [--targets 4] [--resampled 6]

The scores are generated like the scores of a good spam filter: 140 labelled positives, 900 labelled negatives, targets
of 5,000 with .2 to 1% positives. A split is one labelled set, which its targets share. Standard errors are by split.
The bootstrap resamples the labelled scores of each class and the target's scores, and repeats the estimate. EMQ is
expectation-maximisation (Saerens et al. 2002) on scores that a logistic regression has calibrated first.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

from cmtrack import PrevalenceEstimate, estimate_prevalence
from cmtrack.prevalence import em_shares

POSITIVES, NEGATIVES, SIZE = 140, 900, 5_000
SHARES = (0.002, 0.003, 0.005, 0.01)
REPLICATES = 60
Draw = Callable[[np.random.Generator, bool, int], np.ndarray]
"""Draws scores of a class, from a generator, whether it is positive, and a number."""


def normal(rng: np.random.Generator, positive: bool, n: int) -> np.ndarray:
    """Return normal logits of equal variance, calibrated at equal shares: a logistic ratio is exactly correct."""
    gap = 3.07
    return expit(gap * rng.normal(gap * positive, 1, n) - gap**2 / 2)


def wider(rng: np.random.Generator, positive: bool, n: int) -> np.ndarray:
    """Return normal logits. The positives' spread is 1.6 times larger: few negatives score like their better half."""
    return expit(1.6 * rng.normal(3.9 * positive, 1 + 0.6 * positive, n) - 3.5)


def beta(rng: np.random.Generator, positive: bool, n: int) -> np.ndarray:
    """Beta scores."""
    return rng.beta(3, 1.3, n) if positive else rng.beta(0.8, 5, n)


def heavy(rng: np.random.Generator, positive: bool, n: int) -> np.ndarray:
    """Return scores with a heavy tail of negatives (Student's t with 4 degrees of freedom): some look like positives."""
    return expit(1.3 * (rng.normal(5, 1.5, n) if positive else rng.standard_t(4, n)) - 2.5)


FAMILIES: dict[str, Draw] = {f.__name__: f for f in (normal, wider, beta, heavy)}


def emq(y: np.ndarray, scores: np.ndarray, target: np.ndarray) -> float:
    """Return the number of positives by EMQ after a logistic calibration."""
    at, wanted_at = (logit(np.clip(s, 1e-12, 1 - 1e-12))[:, None] for s in (scores, target))
    model = LogisticRegression(C=1e6).fit(at, y)
    densities = model.predict_proba(wanted_at) / [np.mean(y == 0), np.mean(y == 1)]
    return len(target) * float(em_shares(densities, np.ones(len(target)))[1])


def resampled(
    rng: np.random.Generator, y: np.ndarray, scores: np.ndarray, target: np.ndarray
) -> np.ndarray:
    """Return the percentile interval of the count."""
    counts = []
    for _ in range(REPLICATES):
        held = np.concatenate(
            [rng.choice(own, len(own)) for own in (scores[y == 0], scores[y == 1])]
        )
        e = estimate_prevalence(rng.choice(target, len(target)), calibration=(y, held))
        e = e.refused or e
        counts.append(e.count)
    return np.quantile(counts, [0.025, 0.975])


def one_split(
    draw: Draw, share: float, seed: int, n_targets: int, bootstrap: bool
) -> tuple[list, list]:
    """Return rows of numbers for each target; for the first target, also the bootstrap's numbers."""
    rng = np.random.default_rng([seed, round(share * 1e4)])
    y = np.repeat([0, 1], [NEGATIVES, POSITIVES])
    scores = np.concatenate((draw(rng, False, NEGATIVES), draw(rng, True, POSITIVES)))
    rows, drawn = [], []
    for index in range(n_targets):
        k = int(rng.binomial(SIZE, share))
        target = np.concatenate((draw(rng, False, SIZE - k), draw(rng, True, k)))
        e = estimate_prevalence(target, calibration=(y, scores))
        assert isinstance(e, PrevalenceEstimate)
        e = e.refused or e  # the benchmark uses all targets, refused or not
        width = e.count_high - e.count_low
        rows.append(
            (
                e.count_low <= k <= e.count_high,
                k < e.count_low,
                e.low <= share <= e.high,
                width,
                e.count_low == 0,
                e.count - k,
                e.count_sd,
                emq(y, scores, target) - k,
            )
        )
        if bootstrap and index == 0:
            low, high = resampled(rng, y, scores, target)
            drawn.append((low <= k <= high, width, high - low, low == 0))
    return rows, drawn


def main() -> None:
    """Print one row for each family and share."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--splits", type=int, default=30)
    parser.add_argument("--targets", type=int, default=5)
    parser.add_argument(
        "--resampled", type=int, default=6, help="splits of which one target is bootstrapped"
    )
    parser.add_argument(
        "--quick", action="store_true", help="8 splits of 2 targets, 2 of them bootstrapped"
    )
    options = parser.parse_args()
    n_splits, n_targets, n_drawn = (
        (8, 2, 2) if options.quick else (options.splits, options.targets, options.resampled)
    )
    print(
        "| scores | share, % | count covers | too high | share covers | width | begins at 0 | bias | RMSE | count_sd | "
        "error / EMQ's | width / bootstrap's | bootstrap covers | bootstrap begins at 0 |"
    )
    print("|---" * 14 + "|")
    for name, draw in FAMILIES.items():
        for share in SHARES:
            found, drawn = [], []
            for seed in range(n_splits):
                rows, more = one_split(draw, share, seed, n_targets, seed < n_drawn)
                found.append(rows)
                drawn.extend(more)
            numbers = np.array(found, dtype=float)  # (splits, targets, columns)
            mean = numbers.mean(axis=(0, 1))
            error = numbers.mean(axis=1).std(axis=0, ddof=1) / np.sqrt(n_splits)
            # mean absolute errors
            against = np.abs(numbers[:, :, 5]).mean() / np.abs(numbers[:, :, 7]).mean()
            cells = [
                name,
                f"{100 * share:g}",
                f"{mean[0]:.3f} ({error[0]:.3f})",
                f"{mean[1]:.3f}",
                f"{mean[2]:.3f} ({error[2]:.3f})",
                f"{mean[3]:.1f}",
                f"{mean[4]:.2f}",
                f"{mean[5]:+.1f}",
                f"{np.sqrt((numbers[:, :, 5] ** 2).mean()):.1f}",
                f"{mean[6]:.1f}",
                f"{against:.2f}",
            ]
            if drawn:
                held, own, other, zero = np.array(drawn, dtype=float).T
                cells += [
                    f"{own.mean() / other.mean():.2f}",
                    f"{held.mean():.2f}",
                    f"{zero.mean():.2f}",
                ]
            print("|", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()
