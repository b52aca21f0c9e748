"""Random reports and reviews, read by a program that holds sentences, tables, figures and numbers together."""

from __future__ import annotations

import numpy as np
import pytest

from cmtrack import Costs, Evaluation, Grouping, compare, evaluate
from cmtrack.comparison.result import Comparison
from support.contradictions import in_report, in_review
from support.problems import random_models, random_problem

pytestmark = pytest.mark.slow
NAMES = ["ant", "bee", "cat", "dog", "eel", "fox", "gnu", "hen", "ibis", "jay", "kite"]


def options_of(rng: np.random.Generator, n: int, k: int) -> dict[str, object]:
    """Options of an evaluation, each with some chance."""
    given: dict[str, object] = {"labels": NAMES[:k]}
    if k == 2 and rng.random() < 0.8:
        given["positive"] = NAMES[int(rng.integers(2))]
    elif k > 2 and rng.random() < 0.5:
        cut = int(rng.integers(1, k))
        given |= {
            "grouping": Grouping(
                {"low": NAMES[:cut], "high": NAMES[cut:k]}, mode=str(rng.choice(["relaxed", "strict"]))
            )
        }
        given["positive"] = str(rng.choice(["low", "high"]))
    if rng.random() < 0.3:
        given["groups"] = rng.integers(0, max(n // int(rng.integers(2, 12)), 4), n)
    elif rng.random() < 0.3:
        given["sample_weight"] = rng.integers(1, 4, n) if rng.random() < 0.5 else rng.uniform(0.2, 3, n)
    if rng.random() < 0.3:
        matrix = rng.uniform(0.5, 9, (k, k)).round(1)
        np.fill_diagonal(matrix, 0)
        given["costs"] = Costs.from_matrix(matrix, NAMES[:k])
    if rng.random() < 0.5:
        given["segments"] = {"region": rng.choice(["north", "south", "east", "west"], n, p=[0.5, 0.3, 0.15, 0.05])}
    return given


def random_report(seed: int) -> Evaluation:
    """An evaluation of 20 to 1,500 rows of 2 to 11 classes: poor to nearly perfect, calibrated or not."""
    rng = np.random.default_rng([7, seed])
    n, k = int(np.exp(rng.uniform(np.log(20), np.log(1500)))), int(rng.choice([2, 2, 2, 3, 5, 11]))
    shares = rng.dirichlet(np.full(k, float(rng.choice([0.5, 2, 20]))))
    skill, slope = float(rng.choice([0, 0.7, 1.5, 3, 8])), float(rng.choice([0.5, 1, 1, 2]))
    y, guess, p = random_problem(rng, n, k, skill, shares=shares, slope=slope * max(skill, 0.3))
    names = np.array(NAMES[:k])
    given = options_of(rng, n, k)
    if rng.random() < 0.7:
        return evaluate(names[y], y_prob=p, **given)
    return evaluate(names[y], names[guess], **given)


def random_review(seed: int) -> Comparison:
    """A comparison of 2 to 12 runs: equal, spread, or some alike; by one metric of many, in either direction."""
    rng = np.random.default_rng([8, seed])
    n, k, size = int(rng.choice([60, 150, 400])), int(rng.choice([2, 3, 5])), int(rng.integers(2, 13))
    base, spread = float(rng.choice([0.7, 1.5, 4])), float(rng.choice([0, 0.1, 0.6]))
    y, models = random_models(list(base + spread * rng.standard_normal(size)), n, k, seed=rng, common=0.8, slope=2.0)
    names, given = np.array(NAMES[:k]), options_of(rng, n, k)
    runs = {f"run {j:02d}": evaluate(names[y], y_prob=p, **given) for j, p in enumerate(models)}
    if rng.random() < 0.3:
        runs["twin"] = next(iter(runs.values()))
    if rng.random() < 0.3:  # differs from another in two rows
        p = models[0].copy()
        p[:2] = np.roll(p[:2], 1, axis=1)
        runs["near twin"] = evaluate(names[y], y_prob=p, **given)
    metrics = ["multiclass/accuracy", "multiclass/matthews_corrcoef", "multiclass/f1_macro", "probability/log_loss"]
    metrics += ["binary/recall", "binary/precision", "binary/roc_auc"] if "positive" in given else []
    metrics += ["cost/mean"] if "costs" in given else []
    return compare(runs, rank_by=str(rng.choice(metrics)))


@pytest.mark.parametrize("part", range(20))
def test_reports_do_not_contradict_themselves(part: int) -> None:
    faults = []
    for seed in range(20 * part, 20 * part + 20):
        faults += [f"report {seed}: {fault}" for fault in in_report(random_report(seed), figures=seed % 20 == 0)]
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("part", range(10))
def test_reviews_do_not_contradict_themselves(part: int) -> None:
    faults = []
    for seed in range(10 * part, 10 * part + 10):
        faults += [f"review {seed}: {fault}" for fault in in_review(random_review(seed), figures=seed % 5 == 0)]
    assert not faults, "\n".join(faults)
