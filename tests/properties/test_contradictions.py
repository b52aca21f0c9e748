"""Random reports and reviews, read by a program that holds sentences, tables, figures and numbers together."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

from cmtrack import Comparison, Costs, Evaluation, Grouping, compare, evaluate
from support import contradictions
from support.contradictions import in_report, in_review, in_text
from support.problems import random_models, random_problem

pytestmark = pytest.mark.slow
ALL = os.environ.get("CMTRACK_TEST_ALL")
"""Set: 400 reports and 100 reviews; else a part of them."""
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
                {"low": NAMES[:cut], "high": NAMES[cut:k]},
                mode=str(rng.choice(["relaxed", "strict"])),
            )
        }
        given["positive"] = str(rng.choice(["low", "high"]))
    if rng.random() < 0.3:
        given["groups"] = rng.integers(0, max(n // int(rng.integers(2, 12)), 4), n)
    elif rng.random() < 0.3:
        given["sample_weight"] = (
            rng.integers(1, 4, n) if rng.random() < 0.5 else rng.uniform(0.2, 3, n)
        )
    if rng.random() < 0.3:
        matrix = rng.uniform(0.5, 9, (k, k)).round(1)
        np.fill_diagonal(matrix, 0)
        given["costs"] = Costs.from_matrix(matrix, NAMES[:k])
    if rng.random() < 0.5:
        given["segments"] = {
            "region": rng.choice(["north", "south", "east", "west"], n, p=[0.5, 0.3, 0.15, 0.05])
        }
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
    n, k, size = (
        int(rng.choice([60, 150, 400])),
        int(rng.choice([2, 3, 5])),
        int(rng.integers(2, 13)),
    )
    base, spread = float(rng.choice([0.7, 1.5, 4])), float(rng.choice([0, 0.1, 0.6]))
    y, models = random_models(
        list(base + spread * rng.standard_normal(size)), n, k, seed=rng, common=0.8, slope=2.0
    )
    names, given = np.array(NAMES[:k]), options_of(rng, n, k)
    runs = {f"run {j:02d}": evaluate(names[y], y_prob=p, **given) for j, p in enumerate(models)}
    if rng.random() < 0.3:
        runs["twin"] = next(iter(runs.values()))
    if rng.random() < 0.3:  # differs from another in two rows
        p = models[0].copy()
        p[:2] = np.roll(p[:2], 1, axis=1)
        runs["near twin"] = evaluate(names[y], y_prob=p, **given)
    metrics = [
        "multiclass/accuracy",
        "multiclass/matthews_corrcoef",
        "multiclass/f1_macro",
        "probability/log_loss",
    ]
    metrics += (
        ["binary/recall", "binary/precision", "binary/roc_auc"] if "positive" in given else []
    )
    metrics += ["cost/mean"] if "costs" in given else []
    return compare(runs, rank_by=str(rng.choice(metrics)))


@pytest.mark.parametrize("part", range(20 if ALL else 2))
def test_reports_do_not_contradict_themselves(part: int) -> None:
    faults = []
    for seed in range(20 * part, 20 * part + 20):
        faults += [
            f"report {seed}: {fault}"
            for fault in in_report(random_report(seed), figures=seed % 10 == 0)
        ]
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("part", range(10 if ALL else 1))
def test_reviews_do_not_contradict_themselves(part: int) -> None:
    faults = []
    for seed in range(10 * part, 10 * part + 10):
        faults += [
            f"review {seed}: {fault}"
            for fault in in_review(random_review(seed), figures=seed % 10 == 0)
        ]
    assert not faults, "\n".join(faults)


# -- the program itself: what is planted is found --------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "the accuracy is 0.712 [0.720, 0.766]",
        "79.9% [73.6, 101.0]",
        "a gap of 20.0 percentage points [−120.0, 30.0]",
        "[−0.000, 0.011]",
        "192.612% more",
        "p = 0.000.",
        "of samples with a score of about 69%, about 69% are “a”",
        "the slope is nan",
    ],
)
def test_a_fault_of_a_text_is_found(text: str) -> None:
    assert in_text(text)


def test_a_text_without_a_fault_has_none() -> None:
    assert not in_text(
        "The model finds 71.2% [60.9, 80.1]; −0.019 [−0.049, 0.012], p = 0.030; 12 of 1,200. None of them is −3."
    )


def tampered(sentences: list[str], old: str, new: str) -> list[str]:
    changed = [sentence.replace(old, new) for sentence in sentences]
    assert changed != sentences
    return changed


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("clearly better than", "clearly worse than"),
        ("clearly better than", "not clearly different from"),
        ("the accuracy is 87.5%", "the accuracy is 86.5%"),
        ("best class by F1 is “ant”", "best class by F1 is “cat”"),
        ("“ant” predicted as “bee”", "“cat” predicted as “bee”"),
        ("“bee”: 4 rows", "“bee”: 3 rows"),
    ],
)
def test_a_sentence_that_is_not_true_is_found(
    old: str, new: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = (
        [("ant", "ant")] * 30 + [("ant", "bee")] * 4 + [("bee", "bee")] * 20 + [("bee", "cat")] * 3
    )
    rows += [("cat", "cat")] * 20 + [("ant", "cat")] * 3
    evaluation = evaluate(*zip(*rows, strict=True))
    assert not in_report(evaluation)
    true = contradictions.verdict
    monkeypatch.setattr(contradictions, "verdict", lambda one: tampered(true(one), old, new))
    assert in_report(evaluation)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("finds 32 of 40", "finds 33 of 40"),
        ("(80.0% [", "(88.9% ["),
        ("rows of “ant” (", "rows of “bee” ("),
        ("88.9% [74.7, 95.6] of its", "80.0% [74.7, 95.6] of its"),
    ],
)
def test_a_sentence_on_the_positive_class_that_is_not_true_is_found(old, new, monkeypatch) -> None:
    rows = (
        [("ant", "ant")] * 32 + [("ant", "bee")] * 8 + [("bee", "ant")] * 4 + [("bee", "bee")] * 20
    )
    evaluation = evaluate(*zip(*rows, strict=True), positive="ant")
    assert not in_report(evaluation)
    true = contradictions.verdict
    monkeypatch.setattr(contradictions, "verdict", lambda one: tampered(true(one), old, new))
    assert in_report(evaluation)


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data["rankings"][0]["runs"][0].update(tied=False),
        lambda data: data["rankings"][0]["runs"][-1].update(tied=True),
        lambda data: data["rankings"][0]["runs"][-1].update(difference_high=0.01),
        lambda data: data["rankings"][0]["runs"][1].update(value=0.123),
        lambda data: data["rankings"][0]["runs"][0].update(rank_low=2),
        lambda data: data["best"].update(name="run 3"),
    ],
    ids=["the leader's set", "the last one's set", "an interval", "a value", "ranks", "the best"],
)
def test_a_review_that_is_not_true_is_found(change, monkeypatch: pytest.MonkeyPatch) -> None:
    y, models = random_models([2.0, 1.9, 1.8, 0.2], 300, seed=3, common=0.8)
    comparison = compare({f"run {k}": evaluate(y, y_prob=p) for k, p in enumerate(models)})
    assert not in_review(comparison)
    true = contradictions.as_json

    def false(one: Comparison) -> str:
        data = json.loads(true(one))
        change(data)
        return json.dumps(data)

    monkeypatch.setattr(contradictions, "as_json", false)
    assert in_review(comparison)
