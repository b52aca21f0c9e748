"""How often a review is wrong, and how often it finds what is there.

    python benchmarks/review_errors.py [--reviews 500]

Six models on one test set share errors as real models do (a shared difficulty of each row). Equal models: how often
does the review report that one is better than another? One model better by three standard errors of the paired
difference: how often is that found? leader.py measures how reliable the leader is.
"""

from __future__ import annotations

import argparse

import numpy as np
from scipy.stats import norm

from cmtrack import Comparison, compare, evaluate

CLASSES = 4


def predictions(
    rng: np.random.Generator, y: np.ndarray, skills: np.ndarray, common: float = 0.7
) -> np.ndarray:
    """Return (n, R) predicted classes: correct if a shared and an own difficulty together are below the model's skill."""
    shared = rng.normal(size=(len(y), 1))
    own = rng.normal(size=(len(y), len(skills)))
    right = np.sqrt(common) * shared + np.sqrt(1 - common) * own < norm.ppf(skills)
    wrong = (y[:, None] + rng.integers(1, CLASSES, own.shape)) % CLASSES
    return np.where(right, y[:, None], wrong)


def review(y: np.ndarray, predicted: np.ndarray, metric: str) -> Comparison:
    """Return the comparison of all columns."""
    return compare(
        {f"m{r}": evaluate(y, column) for r, column in enumerate(predicted.T)}, rank_by=metric
    )


def paired_error(rng: np.random.Generator, n: int, skill: float) -> float:
    """Return the standard error of the paired difference in accuracy of two such models."""
    big = 400_000
    y = np.zeros(big, dtype=np.int64)
    hits = predictions(rng, y, np.array([skill, skill])) == 0
    return float((hits[:, 0].astype(float) - hits[:, 1]).std() / np.sqrt(n))


def claims(comparison: Comparison) -> dict[str, float]:
    """Return the share of runs that are ruled out, and whether any run is reported as worse, by each adjustment."""
    ranking = comparison.rankings[0]
    return {
        "a given model behind": float(np.mean([not run.tied for run in ranking.runs])),
        "max-T": bool((ranking.pvalues < 0.05).any()),
        "Holm": any(run.p_holm < 0.05 for run in ranking.runs[1:]),
        "unadjusted": any(run.pvalue < 0.05 for run in ranking.runs[1:]),
    }


def equal_models(reviews: int, n: int, metric: str, models: int = 6) -> dict[str, float]:
    """Return the share of reviews of equal models with a false claim."""
    found: list[dict[str, float]] = []
    for seed in range(reviews):
        rng = np.random.default_rng(seed)
        y = rng.integers(0, CLASSES, n)
        found.append(claims(review(y, predictions(rng, y, np.full(models, 0.75)), metric)))
    return {name: float(np.mean([one[name] for one in found])) for name in found[0]}


def one_better(reviews: int, n: int, metric: str, models: int) -> dict[str, float]:
    """Return the share of reviews that find a gain of three paired standard errors."""
    gain = 3 * paired_error(np.random.default_rng(1), n, 0.75)
    found = []
    for seed in range(reviews):
        rng = np.random.default_rng(10_000 + seed)
        y = rng.integers(0, CLASSES, n)
        comparison = review(
            y, predictions(rng, y, np.array([0.75 + gain, *[0.75] * (models - 1)])), metric
        )
        others = [run for run in comparison.runs if run.name != "m0"]
        found.append(
            {
                "some model told apart from the better one": not all(run.tied for run in others),
                "a given model told apart from it": not comparison["m1"].tied,
                "the better one leads": comparison.rankings[0].leader.name == "m0",
                "the better one is in the tied set": comparison["m0"].tied,
            }
        )
    return {name: float(np.mean([one[name] for one in found])) for name in found[0]}


def standings(reviews: int, models: int, n: int) -> str:
    """Return which runs are ruled out among equal models; 0 models: two contenders 3 standard errors apart, 18 far ones."""
    rates = []
    gain = 0.0 if models else 3 * paired_error(np.random.default_rng(1), n, 0.75)
    skills = np.full(models, 0.75) if models else np.array([0.75 + gain, 0.75, *[0.45] * 18])
    for seed in range(reviews):
        rng = np.random.default_rng(77_000 + seed)
        y = rng.integers(0, CLASSES, n)
        ranking = review(
            y, predictions(rng, y, skills, 0.6 if models else 0.7), "multiclass/accuracy"
        ).rankings[0]
        out = np.array([not run.tied for run in ranking.runs])
        agree = [(run.difference_high == 0) == (not run.tied) for run in ranking.runs]
        first = models > 0 or ranking.leader.name == "m0"
        truth = {f"m{r}": skill - np.delete(skills, r).max() for r, skill in enumerate(skills)}
        holds = [
            run.difference_low <= truth[run.name] <= run.difference_high for run in ranking.runs
        ]
        rates.append(
            (out.mean(), out.any(), len(ranking.tied) == 1 and first, all(agree), all(holds))
        )
    table = np.array(rates, dtype=float)
    means, errors = table.mean(axis=0), table.std(axis=0) / np.sqrt(reviews)
    cells = [f"{mean:.3f} ({error:.3f})" for mean, error in zip(means, errors, strict=True)]
    return f"| {models or 'two, and 18 far'} | {n} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--reviews", type=int, default=500)
    reviews = parser.parse_args().reviews
    heads = "models | rows | a given one ruled out | any | sole winner | status and interval agree | all intervals hold"
    print(f"| {heads} |\n|{'---|' * 7}")
    for many, n in ((2, 400), (6, 500), (20, 400), (50, 400), (0, 2000)):
        print(standings(reviews, many, n), flush=True)
    for metric in ("multiclass/accuracy", "multiclass/matthews_corrcoef", "multiclass/f1_macro"):
        for n in (600, 5000):
            rates = ", ".join(
                f"{name} {rate:.3f}" for name, rate in equal_models(reviews, n, metric).items()
            )
            print(
                f"{metric}, n = {n}, six equal models, {reviews} reviews, a false claim by: {rates}",
                flush=True,
            )
    for models in (2, 6):
        rates = one_better(reviews, 5000, "multiclass/accuracy", models)
        print(f"{models} models, one better by three paired standard errors:", flush=True)
        for name, rate in rates.items():
            print(f"  {name}: {rate:.3f}")


if __name__ == "__main__":
    main()
