"""Intervals at the edges: near-perfect models, areas near 1, few clusters."""

import json
import math

import numpy as np
import pytest

from cmtrack import Evaluation, Metric, evaluate
from cmtrack.metrics import on_scale, wilson, within_bounds
from cmtrack.statistics import Design
from support.problems import random_guesses, random_labels


def perfect(*sizes: int) -> Evaluation:
    y = np.repeat(np.arange(len(sizes)), sizes)
    return evaluate(y, y)


@pytest.mark.parametrize("sizes", [(100, 7), (50, 50), (3, 90, 11), (5, 6, 7, 8, 9, 40)])
def test_a_perfect_prediction_has_every_interval_and_it_ends_at_1(sizes: tuple[int, ...]) -> None:
    evaluation = perfect(*sizes)
    for name in (
        "cohen_kappa",
        "cohen_kappa_quadratic",
        "matthews_corrcoef",
        "f1_macro",
        "balanced_accuracy",
    ):
        low, high = evaluation.intervals[f"multiclass/{name}"]
        assert evaluation.metrics[f"multiclass/{name}"] == high == 1.0
        assert 0 < low < wilson(1.0, sum(sizes))[0] + 1e-12
    for k, n in enumerate(sizes):
        assert evaluation.intervals[f"class/{k}/f1"] == pytest.approx(wilson(1.0, n))


def test_every_bounded_metric_with_an_error_has_an_interval_that_holds_it() -> None:
    rng = np.random.default_rng(3)
    for n in (20, 60, 200):
        y = rng.integers(0, 2, n)
        s = np.clip(y + rng.normal(0, 0.2, n), 0, 1)
        evaluation = evaluate(y, y_prob=s)
        for name, ends in evaluation.intervals.items():
            assert ends[0] <= evaluation.metrics[name] <= ends[1]
        bounded = [
            name
            for name in evaluation.standard_errors
            if not name.startswith(("spcc/d_", "rough/"))
        ]
        assert not set(bounded) - set(evaluation.intervals)


def test_the_middle_keeps_its_scale_and_the_end_is_wilsons() -> None:
    assert within_bounds("wald", 0.6, 0.05, 0.95, (0, 1), 100) == on_scale(
        "wald", 0.6, 0.05, 0.95, (0, 1)
    )
    assert within_bounds("atanh", 0.7, 0.15, 0.95, (-1, 1), 10) == on_scale(
        "atanh", 0.7, 0.15, 0.95, (-1, 1)
    )
    low, high = within_bounds("wald", 0.98, 0.01, 0.95, (-1, 1), 100) or (0, 0)
    assert (low, high) == pytest.approx(
        tuple(2 * end - 1 for end in wilson(0.99, 0.99 * 0.01 / 0.005**2) or ())
    )
    assert within_bounds("wald", 0.0, 0.0, 0.95, (-1, 1), 96.0) == pytest.approx(
        (-0.0769, 0.0769), abs=1e-4
    )
    assert within_bounds("wald", 3.0, 0.0, 0.95, (-math.inf, math.inf), 100) is None


def newcombe(area: float, m: int, n: int) -> tuple[float, float]:
    """The interval of an area of two sizes of samples where these tell no error."""
    return within_bounds("logit", area, 0.0, 0.95, (0, 1), np.array([m, n])) or (0, 0)


def test_newcombes_fifth_interval_solves_its_equation_and_is_symmetric() -> None:
    z = 1.959963984540054
    for area, m, n in ((0.9, 20, 30), (1.0, 20, 1980), (0.5, 5, 5)):
        low, high = newcombe(area, m, n)
        variance = (
            low
            * (1 - low)
            * (1 + ((m + n) / 2 - 1) * ((1 - low) / (2 - low) + low / (1 + low)))
            / (m * n)
        )
        assert area - low == pytest.approx(z * math.sqrt(variance))
        assert newcombe(1 - area, m, n) == pytest.approx((1 - high, 1 - low))
    assert newcombe(1.0, 20, 1980)[1] == 1.0


def test_an_area_of_1_has_an_interval() -> None:
    y = np.repeat([0, 1], [60, 20])
    evaluation = evaluate(y, y_prob=np.where(y == 1, 0.9, 0.1))
    low, high = evaluation.intervals["binary/roc_auc"]
    assert (low, high) == pytest.approx(newcombe(1.0, 20, 60))
    wrong = evaluate(y, y_prob=np.where(y == 1, 0.1, 0.9)).intervals["binary/roc_auc"]
    assert wrong == pytest.approx((1 - high, 1 - low))


def clustered(persons: int, seed: int = 0, rows: int = 10) -> Evaluation:
    rng = np.random.default_rng(seed)
    y = random_labels(persons * rows, 2, rng)
    # of every third person nothing is known
    right = np.where(np.arange(persons) % 3, 0.8, 0.0).repeat(rows)
    return evaluate(y, random_guesses(y, 2, right, rng), groups=np.arange(persons).repeat(rows))


def test_a_share_without_errors_counts_clusters_not_rows() -> None:
    y = np.tile([0, 1], 300)
    evaluation = evaluate(y, y, groups=np.repeat(np.arange(60), 10))
    assert evaluation.intervals["multiclass/accuracy"] == pytest.approx(wilson(1.0, 60))
    assert evaluation.intervals["multiclass/cohen_kappa"][0] <= 2 * wilson(1.0, 60)[0] - 1 + 1e-9


def test_few_clusters_are_corrected_and_warned_of() -> None:
    evaluation = clustered(15)
    psi = evaluation.influence("multiclass/accuracy")
    sums = psi.reshape(15, 10).sum(axis=1)
    error = math.sqrt(sums @ sums * 15 / 14) / 150
    assert evaluation.standard_errors["multiclass/accuracy"] == pytest.approx(error)
    effective = (sums @ sums) ** 2 / (sums**4).sum()
    assert evaluation.effective_clusters["multiclass/accuracy"] == pytest.approx(effective)
    value = evaluation.metrics["multiclass/accuracy"]
    n = value * (1 - value) / error**2
    degrees = 3 * effective / (1 + 2 * effective / 15) - 1
    assert evaluation.intervals["multiclass/accuracy"] == pytest.approx(
        wilson(value, n, degrees=degrees)
    )
    assert any("15 groups, fewer than 20" in text for text in evaluation.warnings)
    assert not any("groups, fewer than" in text for text in clustered(40).warnings)


def test_clusters_merge_by_sums_of_squares_and_counts_as_sums() -> None:
    first, second = clustered(15, 1), clustered(40, 2)
    both = first + second
    assert both.n_clusters == 55
    squares = sum(
        (e.cluster_errors["class/0/support"]) ** 2 * (e.n_clusters - 1) / e.n_clusters
        for e in (first, second)
    )
    assert both.cluster_errors["class/0/support"] == pytest.approx(math.sqrt(squares * 55 / 54))
    totals = [
        ((e.cluster_errors["multiclass/accuracy"]) * e.n_samples) ** 2
        * (e.n_clusters - 1)
        / e.n_clusters
        for e in (first, second)
    ]
    assert both.cluster_errors["multiclass/accuracy"] == pytest.approx(
        math.sqrt(sum(totals) * 55 / 54) / 550
    )
    fourths = sum(
        t**2 / e.effective_clusters["multiclass/accuracy"]
        for t, e in zip(totals, (first, second), strict=True)
    )
    assert both.effective_clusters["multiclass/accuracy"] == pytest.approx(
        sum(totals) ** 2 / fourths
    )


def gain(b):
    return 5 * b.tp - b.fp


def test_a_sum_of_ones_own_merges_as_a_sum() -> None:
    sides = []
    for seed in (1, 2):
        plain = clustered(30, seed)
        rows = plain.rows
        own = [Metric("custom/gain", gain, of="binary")]
        sides.append(
            evaluate(rows.actual, rows.predicted, groups=rows.design.clusters, extra_metrics=own)
        )
    both = sides[0] + sides[1]
    squares = sum(e.cluster_errors["custom/gain"] ** 2 * 29 / 30 for e in sides)
    assert both.cluster_errors["custom/gain"] == pytest.approx(math.sqrt(squares * 60 / 59))


def test_clusters_are_written_and_files_without_them_load() -> None:
    evaluation = clustered(15)
    plain = Evaluation.from_data(json.loads(evaluation.to_json()))
    assert plain == evaluation
    assert plain.intervals == evaluation.intervals
    data = json.loads(evaluation.to_json())
    del data["n_clusters"], data["effective_clusters"]
    old = Evaluation.from_data(data)
    assert old.standard_errors == evaluation.standard_errors
    assert old.n_clusters is None
    assert (old + old).n_clusters is None


def test_effective_clusters_of_equal_sums_are_all_of_them() -> None:
    psi = np.tile([1.0, -1.0], 10)
    design = Design(20, clusters=np.arange(20))
    assert design.effective_clusters(psi) == pytest.approx(20)
    assert design.standard_error(psi) == pytest.approx(math.sqrt(20 * 20 / 19) / 20)


def test_wilsons_interval_ends_with_nothing_or_everything_known() -> None:
    assert wilson(0.3, math.inf) == (0.3, 0.3)
    assert wilson(0.3, 20.0, 1 - 1e-17, degrees=1.0) == (0.0, 1.0)  # Student's quantile is infinite
