"""How often a review is wrong about equal models, and finds a better one: benchmarks/review_errors.py, in short."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

_FILE = Path(__file__).parent.parent / "benchmarks" / "review_errors.py"
_SPEC = importlib.util.spec_from_file_location("review_errors", _FILE)
assert _SPEC is not None
assert _SPEC.loader is not None
review_errors = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(review_errors)

REVIEWS = 150


def test_equal_models_are_called_different_in_about_one_of_twenty():
    rates = review_errors.equal_models(REVIEWS, 400, "multiclass/accuracy")
    noise = 2.6 * (0.05 * 0.95 / REVIEWS) ** 0.5
    for way in ("tied set", "max-T", "Holm"):
        assert rates[way] <= 0.05 + noise
    assert rates["unadjusted"] > 0.2  # what the adjustment is for


@pytest.mark.parametrize(("models", "way", "least"), [(2, "a given model", 0.85), (6, "some model", 0.87)])
def test_a_gain_of_three_paired_errors_is_found(models, way, least):
    rates = review_errors.one_better(REVIEWS, 1500, "multiclass/accuracy", models)
    (found,) = [rate for name, rate in rates.items() if name.startswith(way)]
    assert found >= least - 2.6 * (least * (1 - least) / REVIEWS) ** 0.5
    assert rates["the better one is in the tied set"] >= 0.99


def test_the_probability_of_being_best_is_that_of_a_row_bootstrap():
    best, ends = review_errors.against_bootstrap(600, "multiclass/accuracy", resamples=1500)
    assert best <= 0.04  # 1,500 resamples alone move a share by .013
    assert ends <= 1
