"""Influence values: the same errors from rows as from small statistics, and right in simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest

import cmtrack
from cmtrack import Grouping, evaluate
from cmtrack.metrics import lookup
from support.problems import random_problem

CHAIN = Grouping({"a": [0, 1], "b": [2], "c": [3, 4]}, "strict", name="abc").then(
    Grouping({"rest": ["a", "b"], "c": ["c"]}, name="two")
)
WITHOUT = ("calibrated", "share_", "fit_pvalue")


def problem(seed: int, n: int = 600) -> tuple[np.ndarray, np.ndarray]:
    y, _, p = random_problem(seed, n, 5, 1.2, shares=[0.3, 0.3, 0.2, 0.15, 0.05])
    return y, p


def weights_of(kind: str, n: int) -> np.ndarray | None:
    rng = np.random.default_rng(5)
    return {"none": None, "whole": rng.integers(0, 4, n), "fractions": rng.gamma(2.0, 1.0, n)}[kind]


@pytest.mark.parametrize("kind", ["none", "whole", "fractions"])
@pytest.mark.parametrize("grouping", [None, CHAIN])
def test_rows_and_statistics_give_the_same_errors(kind, grouping):
    y, p = problem(0)
    weights = weights_of(kind, len(y))
    evaluation = evaluate(y, y_prob=p, grouping=grouping, sample_weight=weights)
    checked = 0  # of shares and counts too: the size of Wilson's interval follows from the error
    for name, error in evaluation.standard_errors.items():
        psi = evaluation.influence(name)
        assert psi is not None, name
        by_rows = evaluation.rows.design.standard_error(psi)
        assert by_rows == pytest.approx(error, rel=1e-9, abs=1e-12), name
        checked += 1
    assert checked > 50


@pytest.mark.parametrize("grouping", [None, CHAIN])
def test_every_metric_has_an_interval_or_describes_one(grouping):
    y, p = problem(0)
    evaluation = evaluate(y, y_prob=p, grouping=grouping)
    without = {name for name in evaluation.metrics if name not in evaluation.intervals}
    # a bound holds for these samples; it estimates nothing; the threshold of "ks" is chosen by its value
    described = (
        "_low",
        "_high",
        "_bound",
        "pvalue",
        "/ks",
        "calibration",
        "discrimination",
        "uncertainty",
    )
    assert all(name.endswith(described) or "share_" in name for name in without), without
    for name, (low, high) in evaluation.intervals.items():
        assert low <= evaluation.metrics[name] <= high, name


@pytest.mark.thin(2)
@pytest.mark.slow
@pytest.mark.parametrize("grouping", [None, CHAIN])
def test_standard_errors_are_those_of_a_simulation(grouping):
    y, p = problem(0)
    errors = evaluate(y, y_prob=p, grouping=grouping).standard_errors
    repeats = 400
    draws: dict[str, list[float]] = {
        name: [] for name in errors if lookup(name).needs != "probabilities"
    }
    for seed in range(1, repeats + 1):
        values = evaluate(*_as_labels(seed), grouping=grouping).metrics
        for name, drawn in draws.items():
            drawn.append(values[name])
    ratios = {
        name: errors[name] / np.std(drawn)
        for name, drawn in draws.items()
        if np.std(drawn) > 0 and "class/4" not in name
    }
    assert len(ratios) > 15
    assert 0.95 < np.median(list(ratios.values())) < 1.05
    wild = {name: ratio for name, ratio in ratios.items() if not 0.75 < ratio < 1.33}
    assert not wild


def _as_labels(seed):
    y, p = problem(seed)
    return y, p.argmax(axis=1)


@pytest.mark.slow
def test_clusters_of_copies_are_worth_one_row_each():
    y, p = problem(0, 200)
    once = evaluate(y, y_prob=p, grouping=CHAIN)
    copies = evaluate(
        np.repeat(y, 4),
        y_prob=np.repeat(p, 4, axis=0),
        grouping=CHAIN,
        groups=np.repeat(np.arange(200), 4),
    )
    naive = evaluate(np.repeat(y, 4), y_prob=np.repeat(p, 4, axis=0), grouping=CHAIN)
    for name in (
        "multiclass/accuracy",
        "multiclass/f1_macro",
        "multiclass/matthews_corrcoef",
        "binary/roc_auc",
        "spcc/binary",
        "spcc/ovr_fisher",
        "prevalence/bias",
        "class/0/recall",
    ):
        assert copies.metrics[name] == pytest.approx(once.metrics[name])
        assert copies.standard_errors[name] == pytest.approx(
            once.standard_errors[name], rel=0.02
        ), name
        assert naive.standard_errors[name] == pytest.approx(
            once.standard_errors[name] / 2, rel=0.05
        ), name
        low, high = copies.intervals[name]
        # Student's
        assert high - low == pytest.approx(np.subtract(*once.intervals[name][::-1]), rel=0.06), name


@pytest.mark.slow
def test_clusters_survive_saving_and_merge_by_whole_clusters(tmp_path):
    y, p = problem(0)
    groups = np.arange(600) // 5
    whole = evaluate(y, y_prob=p, groups=groups)
    whole.save(tmp_path)
    loaded = cmtrack.Evaluation.load(tmp_path)
    assert loaded == whole
    assert loaded.intervals == whole.intervals
    halves = [
        evaluate(y[part], y_prob=p[part], groups=groups[part])
        for part in (slice(300), slice(300, 600))
    ]
    merged = halves[0] + halves[1]
    for name in ("multiclass/accuracy", "multiclass/matthews_corrcoef", "spcc/ovr_fisher"):
        assert merged.standard_errors[name] == pytest.approx(whole.standard_errors[name], rel=0.1)
    with pytest.raises(ValueError, match="groups"):
        halves[0] + evaluate(y[300:], y_prob=p[300:])


def test_groups_must_fit_the_rows():
    y, p = problem(0)
    with pytest.raises(ValueError, match="groups must have one entry per row, got 3 for 600 rows"):
        evaluate(y, y_prob=p, groups=[1, 2, 3])


@pytest.mark.thin(2)
@pytest.mark.slow
@pytest.mark.parametrize("grouping", [None, CHAIN])
def test_bootstrap_of_tables_agrees_with_influence(grouping):
    y, p = problem(0, 3000)
    evaluation = evaluate(y, y_prob=p, grouping=grouping)
    by_influence = evaluation.count_intervals()
    by_bootstrap = evaluation.count_intervals("bootstrap", n_resamples=400, seed=1)
    assert set(by_bootstrap) >= {name for name in by_influence if not name.startswith("spcc")}
    for name in (
        "multiclass/accuracy",
        "multiclass/f1_macro",
        "multiclass/cohen_kappa_quadratic",
        "class/1/f1",
    ):
        width = np.subtract(*by_influence[name][::-1])
        assert by_bootstrap[name] == pytest.approx(by_influence[name], abs=0.2 * width), name
    assert evaluation.count_intervals(
        "bootstrap", n_resamples=20, seed=1
    ) == evaluation.count_intervals("bootstrap", n_resamples=20, seed=1)


def test_a_bootstrap_of_fractions_is_refused():
    y, p = problem(0)
    evaluation = evaluate(y, y_prob=p, sample_weight=np.full(600, 0.5))
    with pytest.raises(ValueError, match="whole counts"):
        evaluation.count_intervals("bootstrap")
    with pytest.raises(ValueError, match="method must be"):
        evaluation.count_intervals("jackknife")


def test_the_fisher_means_error_merges_exactly():
    y, p = problem(0)
    whole = evaluate(y, y_prob=p)
    merged = evaluate(y[:200], y_prob=p[:200]) + evaluate(y[200:], y_prob=p[200:])
    for name in ("spcc/ovr_fisher", "spcc/ovo_fisher", "spcc/ovr_min", "spcc/ovo_min"):
        assert merged.standard_errors[name] == pytest.approx(whole.standard_errors[name], rel=1e-9)


def test_influence_needs_rows_and_a_metric():
    y, p = problem(0)
    evaluation = evaluate(y, y_prob=p)
    assert evaluation.influence("prevalence/0/calibrated") is None
    with pytest.raises(KeyError, match="no metric"):
        evaluation.influence("multiclass/acuracy")
    with pytest.raises(ValueError, match="need rows"):
        (evaluation + evaluation).influence("multiclass/accuracy")
    assert math.isclose(float(evaluation.influence("multiclass/accuracy").sum()), 0, abs_tol=1e-9)


def test_a_metric_that_is_undefined_has_no_influence():
    evaluation = evaluate([0, 0, 0, 0], [0, 1, 0, 0], labels=[0, 1])
    for name in (
        "binary/recall",
        "binary/f1",
        "binary/matthews_corrcoef",
        "class/1/recall",
        "multiclass/cohen_kappa",
    ):
        if math.isnan(evaluation.metrics[name]):
            assert evaluation.influence(name) is None, name
    assert math.isnan(evaluation.metrics["binary/recall"])
