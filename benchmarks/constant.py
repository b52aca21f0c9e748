"""How often a report says "clearly better" or "clearly worse" about a model that equals the most frequent class.

A model predicts independently of the row, and "not different" is exactly true: its accuracy is the largest share.

    python benchmarks/constant.py [--samples 400]
"""

from __future__ import annotations

import argparse
import math

import numpy as np

from cmtrack import compare, evaluate
from cmtrack.comparison import constant_answer

SETTINGS = {
    "K = 2, shares .7 .3, n = 200": ((0.7, 0.3), 200, 1),
    "K = 2, shares .5 .5, n = 200": ((0.5, 0.5), 200, 1),
    "K = 3, shares .5 .3 .2, n = 200": ((0.5, 0.3, 0.2), 200, 1),
    "K = 3, equal shares, n = 200": ((1 / 3,) * 3, 200, 1),
    "K = 3, shares .4 .35 .25, n = 1,000": ((0.4, 0.35, 0.25), 1000, 1),
    "K = 5, shares .4 .2 .2 .1 .1, n = 100": ((0.4, 0.2, 0.2, 0.1, 0.1), 100, 1),
    "K = 5, equal shares, n = 100": ((0.2,) * 5, 100, 1),
    "K = 3, shares .5 .3 .2, n = 200 in 40 groups": ((0.5, 0.3, 0.2), 200, 5),
}


def sample(
    shares: tuple[float, ...], n: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return labels, and predictions with the accuracy of the largest share, for every class."""
    k = len(shares)
    actual = rng.choice(k, n, p=shares)
    wrong = (actual + rng.integers(1, k, n)) % k
    return actual, np.where(rng.random(n) < max(shares), actual, wrong)


def clear(evaluation: object) -> tuple[bool, bool, bool]:
    """Return "better" and "worse", and whether the accuracy's interval excludes the share, treated as known."""
    constant = constant_answer(evaluation, "multiclass/accuracy")  # type: ignore[arg-type]
    low, high = evaluation.intervals["multiclass/accuracy"]  # type: ignore[attr-defined]
    return constant.shown_better, constant.shown_worse, not low <= constant.value <= high


def leaders(n_reviews: int) -> None:
    """Return how often the best of 20 models that equal the most frequent class is reported as better."""
    rng, found = np.random.default_rng(1), np.zeros((n_reviews, 2))
    for review in range(n_reviews):
        y = rng.choice(2, 200, p=(0.6, 0.4))
        answers = [np.where(rng.random(200) < 0.6, y, 1 - y) for _ in range(20)]
        runs = {
            f"r{k}": evaluate(y, q, labels=[0, 1], sections=["multiclass"])
            for k, q in enumerate(answers)
        }
        ranking = compare(runs, rank_by="multiclass/accuracy").ranking
        alone = constant_answer(ranking.leader.evaluation, "multiclass/accuracy")  # type: ignore[union-attr]
        found[review] = bool(ranking.constants[0].shown), alone.shown_better  # type: ignore[union-attr]
    for name, rate in zip(
        ("any of 20 runs better", "leader as if it were the only one"),
        found.mean(axis=0),
        strict=True,
    ):
        print(f"{name}: {rate:.3f} ({math.sqrt(rate * (1 - rate) / n_reviews):.3f})")


def guesses(n_reviews: int) -> None:
    """Return how often one of several guessing models, with rare positives, has a higher correlation than guessing."""
    for share, n in ((0.4, 200), (0.01, 2000)):
        for n_runs in (1, 2, 10):
            rng, found = np.random.default_rng(7), 0
            for _ in range(n_reviews):
                y = (rng.random(n) < share).astype(int)
                answers = [(rng.random(n) < share).astype(int) for _ in range(n_runs)]
                runs = {
                    f"r{k}": evaluate(y, q, labels=[0, 1], positive=1, sections=["binary"])
                    for k, q in enumerate(answers)
                }
                ranking = compare(runs, rank_by="binary/matthews_corrcoef").ranking
                found += ranking is not None and bool(ranking.constants[0].shown)
            print(
                f"MCC, {share:.0%} positives, n = {n:,}, any of {n_runs} better: {found / n_reviews:.3f}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--samples", type=int, default=400)
    n_samples = parser.parse_args().samples
    print(
        "| setting | interval against a known share | paired | of it better | of it worse |\n|---|---|---|---|---|"
    )
    for place, (name, (shares, n, times)) in enumerate(SETTINGS.items()):
        rng = np.random.default_rng(place)
        found = np.zeros((n_samples, 3))
        for r in range(n_samples):
            actual, predicted = sample(shares, n // times, rng)
            groups = None if times == 1 else np.arange(n) // times
            actual, predicted = np.repeat(actual, times), np.repeat(predicted, times)
            one = evaluate(
                actual, predicted, labels=range(len(shares)), groups=groups, sections=["multiclass"]
            )
            found[r] = clear(one)
        better, worse, known = found.mean(axis=0)

        def shown(rate: float) -> str:
            return f"{rate:.3f} ({math.sqrt(rate * (1 - rate) / n_samples):.3f})"

        print(
            f"| {name} | {shown(known)} | {shown(better + worse)} | {better:.3f} | {worse:.3f} |",
            flush=True,
        )
    leaders(max(1, n_samples // 6))
    guesses(n_samples)


if __name__ == "__main__":
    main()
