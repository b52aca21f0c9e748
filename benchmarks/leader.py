"""How reliable is the leader of a review? The runs that may be the best, P(best), and the leader's own interval.

    python benchmarks/leader.py [--quick]

Models on one test set share errors as real models do. Four questions:

* Equal models: how often is a given one of them ruled out (any of them may be the best), and how often any one at all?
  Few rows, rare classes, few persons, weights, metrics that are not normal.
* One of six models is better by d standard errors of a pair: how many of the other five are ruled out?
* True values spread by a given standard deviation: is the leader the best as often as P(best) states, and what is the
  log score of the true best? And does the leader's interval cover its true value?
* The same for normal values, with the posterior compared to counting draws of the values.

The standard error in brackets is over the reviews.
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.stats import norm

from cmtrack import Comparison, Grouping, compare, evaluate
from cmtrack.comparison import inference

COMMON = 0.6  # share of the noise that is common to the models


def noise(rng: np.random.Generator, n: int, models: int, persons: int = 0) -> np.ndarray:
    """Return the (n, R) difficulty of each row for each model; if there are persons, half of it is the person's."""
    shared, own = rng.normal(size=(n, 1)), rng.normal(size=(n, models))
    if persons:
        of = np.repeat(np.arange(persons), n // persons)
        shared = (shared + rng.normal(size=(persons, 1))[of]) / math.sqrt(2)
        own = (own + rng.normal(size=(persons, models))[of]) / math.sqrt(2)
    return math.sqrt(COMMON) * shared + math.sqrt(1 - COMMON) * own


def labels_of(
    rng: np.random.Generator, y: np.ndarray, skills: np.ndarray, classes: int, persons: int = 0
) -> np.ndarray:
    """Return (n, R) predicted classes; a model is correct with the probability of its skill."""
    hard = noise(rng, len(y), len(skills), persons)
    wrong = (y[:, None] + rng.integers(1, classes, hard.shape)) % classes
    return np.where(hard < norm.ppf(skills), y[:, None], wrong)


def review(
    y: np.ndarray, predicted: np.ndarray, metric: str, classes: int, **given: Any
) -> Comparison:
    """Return the comparison of all columns."""
    evaluations = {
        f"m{r}": evaluate(y, p, labels=range(classes), **given) for r, p in enumerate(predicted.T)
    }
    return compare(evaluations, rank_by=metric)


def reviews_of_probabilities(
    rng: np.random.Generator, n: int, models: int, share: float, d: float
) -> Any:
    """Return evaluations of equal scores of two classes."""
    y = (rng.random(n) < share).astype(int)
    x = (2 * y - 1)[:, None] * d + noise(rng, n, models)
    p = 1 / (1 + np.exp(-2 * d * x - math.log(share / (1 - share))))
    sides = Grouping({"negative": [0], "positive": [1]}, name="side")
    options: dict[str, Any] = {"labels": [0, 1], "grouping": sides, "positive": "positive"}
    return y, {
        f"m{r}": evaluate(y, y_prob=np.column_stack((1 - c, c)), **options)
        for r, c in enumerate(p.T)
    }


ACCURACY, MACRO, RECALL = "multiclass/accuracy", "multiclass/f1_macro", "class/2/recall"
LABELLED: dict[str, dict[str, Any]] = {
    "n 150, 2 models": {"n": 150, "models": 2},
    "n 150, 5 models": {"n": 150, "models": 5},
    "n 150, 10 models": {"n": 150, "models": 10},
    "n 150, 20 models": {"n": 150, "models": 20},
    "n 600, class of 2%, 10 models": {
        "n": 600,
        "models": 10,
        "shares": (0.9, 0.08, 0.02),
        "skill": 0.8,
    },
    "n 600, balanced, 6 models": {"n": 600, "models": 6, "shares": (1 / 3, 1 / 3, 1 / 3)},
    "n 150, accuracy .995, 5 models": {"n": 150, "models": 5, "skill": 0.995},
    "15 persons × 20 rows, 6 models": {"n": 300, "models": 6, "persons": 15},
    "40 persons × 10 rows, 6 models": {"n": 400, "models": 6, "persons": 40},
    "n 300, weights 1.1 and 4.3, 6 models": {"n": 300, "models": 6, "weighted": True},
    "n 150, every model twice, 3 models": {"n": 150, "models": 3, "twice": True},
}
SCORED: dict[str, dict[str, Any]] = {
    "n 150, 30% positives, 6 models": {"n": 150, "models": 6, "share": 0.3, "d": 0.7},
    "n 400, 10% positives, 6 models": {"n": 400, "models": 6, "share": 0.1, "d": 1.0},
}


def equal_models(
    reviews: int,
    metric: str,
    *,
    n: int,
    models: int,
    shares: tuple[float, ...] = (0.6, 0.3, 0.1),
    skill: float = 0.75,
    persons: int = 0,
    weighted: bool = False,
    twice: bool = False,
) -> list[Comparison]:
    """Return reviews of equal models."""
    found = []
    for seed in range(reviews):
        rng = np.random.default_rng([seed, 7])
        y = rng.choice(len(shares), n, p=shares)
        predicted = labels_of(rng, y, np.full(models, skill), len(shares), persons)
        given: dict[str, Any] = {}
        if persons:
            given["groups"] = np.repeat(np.arange(persons), n // persons)
        if weighted:
            given["sample_weight"] = rng.choice([1.1, 4.3], n)
        if twice:
            predicted = np.repeat(predicted, 2, axis=1)
        if len(np.unique(y)) == len(shares):
            found.append(review(y, predicted, metric, len(shares), **given))
    return found


def equal_scores(reviews: int, metric: str, **setting: Any) -> list[Comparison]:
    """Return reviews of equal scores of two classes."""
    found = (
        reviews_of_probabilities(np.random.default_rng([seed, 8]), **setting)
        for seed in range(reviews)
    )
    return [
        compare(evaluations, rank_by=metric) for y, evaluations in found if 0 < y.sum() < len(y)
    ]


def lost(comparisons: list[Comparison]) -> tuple[float, float, float]:
    """Return the share of reviews that rule out a given equal model, its standard error, and the share for any model."""
    out = np.array(
        [[not run.tied for run in one.runs] for one in comparisons if len(one.runs) > 1],
        dtype=float,
    )
    of_one = out.mean(axis=1)
    return (
        float(of_one.mean()),
        float(of_one.std() / math.sqrt(len(out))),
        float(out.any(axis=1).mean()),
    )


def power(reviews: int, d: float, models: int = 6, n: int = 5000) -> tuple[float, float, float]:
    """Return the share of worse models that are ruled out at d standard errors, its error, and how often the best stays."""
    big = np.random.default_rng(1)
    pair = labels_of(big, np.zeros(400_000, dtype=int), np.full(2, 0.75), 3) == 0
    gain = d * float((pair[:, 0].astype(float) - pair[:, 1]).std()) / math.sqrt(n)
    told, kept = [], []
    for seed in range(reviews):
        rng = np.random.default_rng([seed, 9])
        y = rng.integers(0, 3, n)
        skills = np.array([0.75 + gain, *[0.75] * (models - 1)])
        comparison = review(y, labels_of(rng, y, skills, 3), ACCURACY, 3)
        told.append(np.mean([not run.tied for run in comparison.runs if run.name != "m0"]))
        kept.append(comparison["m0"].tied)
    return float(np.mean(told)), float(np.std(told) / math.sqrt(reviews)), float(np.mean(kept))


SPREADS = (
    (6, 0.0, 0),
    (6, 0.014, 0),
    (6, 0.036, 0),
    (6, 0.089, 0),
    (15, 0.0, 0),
    (15, 0.027, 0),
    (8, 0.05, 60),
)
"""Models, standard deviation of the true values, and persons of ten rows each (0: 400 independent rows)."""


def leaders(
    reviews: int, models: int, spread: float, persons: int = 0
) -> Iterator[dict[str, float]]:
    """Return, for each review, its claims about the leader and the truth."""
    for seed in range(reviews):
        rng = np.random.default_rng([seed, 10])
        y = rng.integers(0, 3, 10 * persons or 400)
        given = {"groups": np.repeat(np.arange(persons), 10)} if persons else {}
        skills = np.clip(0.75 + spread * rng.normal(size=models), 0.4, 0.99)
        comparison = review(y, labels_of(rng, y, skills, 3, persons), ACCURACY, 3, **given)
        best, first = f"m{int(skills.argmax())}", comparison.runs[0]
        low, high = getattr(first, "interval", (first.low, first.high))
        truth = float(skills[int(first.name[1:])])
        yield {
            "says": first.probability_best,
            "is": first.name == best,
            "log score": math.log(max(comparison[best].probability_best, 1e-4)),
            "holds": low <= truth <= high,
            "wide": (high - low) / (first.high - first.low),
            "too high by": first.value - truth,
            "set holds best": comparison[best].tied,
            "set": sum(run.tied for run in comparison.runs),
        }


EDGES = (0.0, 0.3, 0.5, 0.7, 0.9, 1.01)


def claims(repeats: int, models: int, spread: float) -> Iterator[tuple[float, bool, float, bool]]:
    """Yield, for normal values, the posterior's and counted draws' claims about the leader, and whether it is the best."""
    covariance = 0.5 + 0.5 * np.eye(models)
    errors = inference.error_draws(covariance, 4000)
    for seed in range(repeats):
        rng = np.random.default_rng([seed, 11])
        truth = spread * rng.normal(size=models)
        values = truth + math.sqrt(0.5) * (rng.normal() + rng.normal(size=models))
        posterior = inference.posterior_draws(values, covariance, 4000)
        first = values.argmax()
        counted = ((values + errors).argmax(axis=1) == first).mean()
        yield (
            (posterior.argmax(axis=1) == first).mean(),
            truth.argmax() == first,
            counted,
            truth.argmax() == first,
        )


def show(value: float, error: float, places: int = 3) -> str:
    return f"{value:.{places}f} ({error:.{places}f})"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a tenth of the reviews")
    reviews = 30 if parser.parse_args().quick else 240
    warnings.simplefilter("ignore")
    print(
        f"Equal models, {reviews} reviews\n\n| setting | metric | a given one lost | any lost |\n|{'---|' * 4}"
    )
    for name, setting in LABELLED.items():
        for metric in (ACCURACY, MACRO, RECALL):
            of_one, error, any_one = lost(equal_models(reviews, metric, **setting))
            print(f"| {name} | {metric} | {show(of_one, error)} | {any_one:.3f} |", flush=True)
    for name, setting in SCORED.items():
        for metric in ("binary/roc_auc", "binary/f1", "prevalence/bias"):
            of_one, error, any_one = lost(equal_scores(reviews, metric, **setting))
            print(f"| {name} | {metric} | {show(of_one, error)} | {any_one:.3f} |", flush=True)
    print(
        f"\nOne of six better by d, {reviews // 2} reviews\n\n| d | a worse one told apart | best kept |\n|---|---|---|"
    )
    for d in (2.0, 3.0, 4.0):
        told, error, kept = power(reviews // 2, d)
        print(f"| {d:g} | {show(told, error)} | {kept:.3f} |", flush=True)
    heads = "models | sd of truths | persons | P(best) of the leader | leader is best | log score | interval holds | "
    print(
        f"\nLeaders, {reviews} reviews\n\n| {heads}its width | too high by | set holds best | set |\n|{'---|' * 11}"
    )
    for models, spread, persons in SPREADS:
        data = list(leaders(reviews, models, spread, persons))
        table = {name: np.array([one[name] for one in data], dtype=float) for name in data[0]}
        cells = [
            show(column.mean(), column.std() / math.sqrt(reviews)) for column in table.values()
        ]
        print(f"| {models} | {spread:g} | {persons or '–'} | {' | '.join(cells)} |", flush=True)
    if not hasattr(inference, "posterior_draws"):
        return
    heads = " | ".join(f"{low:g} to {min(high, 1):g}" for low, high in pairwise(EDGES))
    print(
        f"\nNormal values, claimed → true (claims)\n\n| models, sd of truths | by | {heads} |\n|{'---|' * 7}"
    )
    for models, spreads in ((6, (0.3, 1.0, 3.0)), (12, (0.6, 2.0)), (30, (0.3, 1.0, 3.0))):
        data = np.array(
            [one for spread in spreads for one in claims(reviews, models, spread)], dtype=float
        )
        for by, says, true in (("posterior", *data.T[:2]), ("counted draws", *data.T[2:])):
            cells = []
            for low, high in pairwise(EDGES):
                inside = (says >= low) & (says < high)
                few = inside.sum() < 20
                cells.append(
                    "–"
                    if few
                    else f"{says[inside].mean():.2f} → {true[inside].mean():.2f} ({inside.sum()})"
                )
            print(
                f"| {models}, {', '.join(map(str, spreads))} | {by} | {' | '.join(cells)} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
