"""How often a review is wrong about equal models, and finds a better one: two of the benchmarks, in short."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

from support import ROOT

pytestmark = pytest.mark.slow


def _benchmark(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "benchmarks" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


review_errors, leader = _benchmark("review_errors"), _benchmark("leader")

REVIEWS = 100


def test_equal_models_are_called_different_in_about_one_of_twenty():
    rates = review_errors.equal_models(REVIEWS, 400, "multiclass/accuracy")
    noise = 2.6 * (0.05 * 0.95 / REVIEWS) ** 0.5
    for way in ("a given model behind", "max-T", "Holm"):
        assert rates[way] <= 0.05 + noise
    assert rates["unadjusted"] > 0.2  # what the adjustment is for


@pytest.mark.thin(2)
@pytest.mark.parametrize(
    ("models", "way", "least"), [(2, "a given model", 0.85), (6, "a given model", 0.75)]
)
def test_a_gain_of_three_paired_errors_is_found(models, way, least):
    rates = review_errors.one_better(REVIEWS, 1500, "multiclass/accuracy", models)
    (found,) = [rate for name, rate in rates.items() if name.startswith(way)]
    assert found >= least - 2.6 * (least * (1 - least) / REVIEWS) ** 0.5
    assert rates["the better one is in the tied set"] >= 0.99


@pytest.mark.thin(3)
@pytest.mark.parametrize(
    ("name", "metric"),
    [
        ("n 150, 10 models", "multiclass/f1_macro"),
        ("n 150, 5 models", "class/2/recall"),
        ("15 persons × 20 rows, 6 models", "multiclass/accuracy"),
    ],
)
def test_the_tied_set_loses_the_best_in_at_most_one_of_twenty(name, metric):
    of_one, error, _ = leader.lost(leader.equal_models(REVIEWS, metric, **leader.LABELLED[name]))
    assert of_one <= 0.05 + 2.6 * error


@pytest.mark.night
def test_of_equal_models_the_leaders_interval_holds_and_its_probability_is_modest():
    data = list(leader.leaders(REVIEWS, 6, 0.0))
    # .88 without
    assert np.mean([one["holds"] for one in data]) >= 0.95 - 2.6 * (0.05 * 0.95 / REVIEWS) ** 0.5
    assert np.mean([one["says"] for one in data]) <= 0.42  # .51 by counting resamples
    assert np.mean([one["log score"] for one in data]) >= -2.1  # −2.46


@pytest.mark.night
def test_the_posterior_is_right_as_often_as_it_says():
    data = np.array(
        [one for spread in (0.3, 1.0, 3.0) for one in leader.claims(REVIEWS, 6, spread)],
        dtype=float,
    )
    says, true, counted, _ = data.T
    assert abs(says.mean() - true.mean()) <= 2.6 * (0.25 / len(data)) ** 0.5
    near = slice(0, REVIEWS)  # where the true values hardly differ
    assert counted[near].mean() > says[near].mean() + 0.1
    assert counted[near].mean() > true[near].mean() + 0.1
