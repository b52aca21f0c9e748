"""Shares of more than two classes."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

from cmtrack import estimate_prevalence, evaluate
from cmtrack.plots import prevalence_figure
from cmtrack.prevalence import BasePrevalence, ClassPrevalenceEstimate, PrevalenceEstimate

# the equations of moments by hand and of two classes: an estimate solves them after scalings that it fits itself
from cmtrack.prevalence._cross_fitting import MomentMatch
from cmtrack.prevalence.class_moments import ClassMoments  # as above
from cmtrack_integrations.sklearn import PrevalenceDisplay
from support.problems import random_probabilities, random_problem, random_scores

ASSUMES = "assumes that within each class the scores are distributed as in the labelled rows"
SHARES = np.array([0.5, 0.3, 0.15, 0.05])


def sample(rng: np.random.Generator, n: int, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Labels and deliberately miscalibrated probabilities."""
    y, _, p = random_problem(
        rng, n, shares=shares, slope=2.2, shift=np.array([0.5, 0.0, -0.5, 0.0])
    )
    return y, p


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(1)
    return (*sample(rng, 2000, np.full(4, 0.25)), *sample(rng, 3000, SHARES))


@pytest.mark.parametrize("density", ["auto", "bins"])
def test_shares_are_near_the_truth_and_sum_to_one(problem, density):
    y, held, truth, target = problem
    found = estimate_prevalence(target, calibration=(y, held), positive=3, density=density)
    values = np.array([value for value, _, _ in found.by_class.values()])
    actual = np.bincount(truth, minlength=4) / len(truth)
    assert values.sum() == pytest.approx(1)
    assert np.abs(values - actual).max() < 0.05
    assert np.abs(values - actual).max() < np.abs(target.mean(axis=0) - actual).max()
    assert (found.value, found.low, found.high) == found.by_class[3]
    assert found.count == pytest.approx(found.value * 3000)
    assert sum(found.shares) == pytest.approx(1)
    assert found.fit_pvalue > 0.001
    assert list(found.to_frame()["label"]) == [0, 1, 2, 3]


@pytest.mark.slow
def test_the_default_stacks_the_scalings(problem):
    y, held, _, target = problem
    auto = estimate_prevalence(target, calibration=(y, held))
    assert auto.density == "auto"
    assert list(auto.scaling.members) == ["identity", "temperature", "vector", "matrix"]
    assert sum(auto.scaling.members.values()) == pytest.approx(1)
    assert auto.scaling.members["identity"] < 0.1  # the probabilities are miscalibrated
    assert auto.positive == 3


@pytest.mark.parametrize(
    ("classes", "forms"),
    [(21, ["identity", "temperature", "vector"]), (51, ["identity", "temperature"])],
)
def test_many_classes_are_scaled_by_fewer_parameters(classes, forms):
    y = np.repeat(np.arange(classes), 4)
    held = random_probabilities(y, classes, 3.0)
    target = random_probabilities(y[:60], classes, 3.0, 1)
    found = estimate_prevalence(target, calibration=(y, held))
    assert list(found.scaling.members) == forms


def test_moments_by_hand():
    """Three classes, probabilities of three kinds of row: h solves 3 equations, of which two are free."""
    kinds = np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])
    of_class = np.array([[6, 3, 1], [2, 7, 1], [1, 1, 8]])  # of ten labelled rows of each class
    mixed = np.array([0.5, 0.2, 0.3]) @ of_class * 10
    actual, rows = (
        np.repeat([0, 1, 2], 10),
        np.concatenate([np.repeat([0, 1, 2], row) for row in of_class]),
    )
    target = kinds[np.repeat([0, 1, 2], np.rint(mixed).astype(int))]
    found = ClassMoments(actual, kinds[rows], np.stack((target, target)), np.ones(len(target)))
    np.testing.assert_allclose(found.solve(np.full(3, 1 / 3)), [0.5, 0.2, 0.3], atol=1e-7)
    # Kinds of row are as many as classes, so h does not matter: shares = F^-1 w, with their errors
    inverse, w = np.linalg.inv(of_class.T / 10), mixed / 100
    of_target, of_classes = found.at(np.array([0.5, 0.2, 0.3]), cautious=False).covariances()
    np.testing.assert_allclose(
        of_target, inverse @ (np.diag(w) - np.outer(w, w)) @ inverse.T / 100, atol=1e-9
    )
    for k, share in enumerate((np.array([50, 20, 30]) + 0.5) / 101.5):
        f = of_class[k] / 10
        expected = share**2 * inverse @ (np.diag(f) - np.outer(f, f)) @ inverse.T / 9
        np.testing.assert_allclose(of_classes[k], expected, atol=1e-9)
    _, cautious = found.at(np.array([0.5, 0.2, 0.3])).covariances()
    assert (
        np.trace(cautious, axis1=1, axis2=2) >= np.trace(of_classes, axis1=1, axis2=2) - 1e-9
    ).all()


def test_two_classes_give_the_moment_of_two_classes():
    rng = np.random.default_rng(5)
    y, truth = np.repeat([0, 1], [300, 200]), np.repeat([0, 1], [3400, 600])
    p, s = (random_scores(labels, 1.5, rng, slope=2.0) for labels in (y, truth))
    values, cells = np.unique(np.concatenate((p, s)), return_inverse=True)
    counts = [
        np.bincount(cells[: len(y)][y == k], minlength=len(values)) / (y == k).sum() for k in (0, 1)
    ]
    share = np.bincount(cells[len(y) :], minlength=len(values)) / len(s)
    two = MomentMatch(
        np.log(values / (1 - values))[None],
        share,
        counts[1][None],
        counts[0][None],
        (4000, 200, 300),
    )
    ratios = np.column_stack((1 - s, s))[None]
    many = ClassMoments(y, np.column_stack((1 - p, p)), ratios, np.ones(len(s)))
    shares = many.solve(np.array([0.5, 0.5]))
    assert shares[1] == pytest.approx(two.solve(), abs=1e-5)
    of_target, of_classes = many.at(shares).covariances()
    assert of_target[1, 1] + of_classes[:, 1, 1].sum() == pytest.approx(
        two.variance(two.solve()).total, rel=0.1
    )


def skewed(rng: np.random.Generator, actual: np.ndarray) -> np.ndarray:
    """Probabilities that no scaling sets right: of normal classes, for rows of which a third are spread out."""
    centres = 1.6 * np.array([[0, 0], [1.6, 0.4], [0.4, 1.8], [2.2, 2], [-1.5, 1.2]])
    spread = np.where(rng.random(len(actual)) < 0.35, 2.2, 0.5) * (1 + 0.5 * (actual == 3))
    x = centres[actual] + spread[:, None] * rng.normal(size=(len(actual), 2))
    logits = -((x[:, None] - centres) ** 2).sum(axis=2)
    p: np.ndarray = np.exp(logits - logits.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


@pytest.mark.slow
def test_many_labelled_rows_find_rare_shares_with_scalings_that_are_wrong():
    shares = np.array([0.01, 0.02, 0.07, 0.3, 0.6])
    covered, errors = [], []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        y, actual = np.arange(5000) % 5, rng.choice(5, 20_000, p=shares)
        found = estimate_prevalence(skewed(rng, actual), calibration=(y, skewed(rng, y)))
        ends = np.array(list(found.by_class.values()))
        covered.append((ends[:, 1] <= shares) & (shares <= ends[:, 2]))
        errors.append(ends[:, 0] - shares)
    assert np.mean(covered) >= 0.9
    assert np.mean(covered, axis=0)[2] >= 5 / 6  # the share .07
    assert np.abs(np.mean(errors, axis=0)).max() < 0.015  # maximum likelihood: .032


@pytest.mark.slow
def test_the_order_of_classes_and_of_rows_changes_nothing(problem):
    y, held, _, target = problem
    y, held = y[:400], held[:400]
    found = estimate_prevalence(target, calibration=(y, held))
    order, rows, places = (np.random.default_rng(3).permutation(size) for size in (4, 400, 3000))
    moved = estimate_prevalence(
        target[places][:, order], calibration=(np.argsort(order)[y[rows]], held[rows][:, order])
    )
    for k in range(4):
        assert moved.by_class[k] == pytest.approx(found.by_class[order[k]], abs=1e-4)


@pytest.mark.night
@pytest.mark.slow
def test_the_interval_covers_and_the_error_is_that_of_a_simulation():
    rng = np.random.default_rng(2)
    values, errors, covered = [], [], []
    for _ in range(150):
        y, held = sample(rng, 1500, np.full(4, 0.25))
        _, target = sample(rng, 2000, SHARES)
        found = estimate_prevalence(target, calibration=(y, held))
        values.append(list(found.class_shares.values))
        errors.append(np.sqrt(np.diag(found.class_shares.covariance)))
        covered.append(
            [
                low <= share <= high
                for (_, low, high), share in zip(found.by_class.values(), SHARES, strict=True)
            ]
        )
    np.testing.assert_allclose(np.mean(errors, axis=0), np.std(values, axis=0), rtol=0.25)
    assert np.mean(covered) > 0.91
    assert np.abs(np.mean(values, axis=0) - SHARES).max() < 0.006


@pytest.mark.slow
def test_the_number_is_known_better_than_the_share_and_posteriors_add_up(problem):
    y, held, _, target = problem
    found = estimate_prevalence(target, calibration=(y, held), positive=0)
    assert found.count_high - found.count_low < 3000 * (found.high - found.low)
    posterior = found.posterior(target)
    assert posterior.shape == (3000, 4)
    np.testing.assert_allclose(posterior.mean(axis=0), found.class_shares.values, atol=1e-6)
    assert 0 < found.sd_labels_only < found.count_sd * 2
    assert found.efficiency == pytest.approx(3000 * found.implied_spcc**2)


@pytest.mark.slow
def test_labels_agree_with_the_count_or_the_posterior(problem):
    y, held, truth, target = problem
    found = estimate_prevalence(target, calibration=(y, held), positive=0)
    by_count = found.labels(target, "count")
    assert by_count.positive.sum() == round(found.value * len(target))
    by_posterior = found.labels(target).positive
    assert (by_posterior == (truth == 0)).mean() > 0.8
    with pytest.raises(ValueError, match="rule must be"):
        found.labels(target, "best")


@pytest.mark.slow
def test_the_plan_names_what_to_label(problem):
    y, held, _, target = problem
    found = estimate_prevalence(target, calibration=(y, held), positive=0)
    plan = found.plan((found.high - found.low) / 2 * 0.95)
    assert plan.now == pytest.approx((found.high - found.low) / 2)
    assert min(plan.target, plan.positives, plan.negatives) > 0


@pytest.mark.slow
def test_names_and_frames_work_as_for_two(problem):
    y, held, _, target = problem
    names = np.array(["a", "b", "c", "d"])
    by_array = estimate_prevalence(target, calibration=(names[y], held), positive="c")
    frame, held_frame = (
        pd.DataFrame(target, columns=names)[["d", "a", "c", "b"]],
        pd.DataFrame(held, columns=names),
    )
    by_frame = estimate_prevalence(frame, calibration=(names[y], held_frame), positive="c")
    np.testing.assert_allclose(list(by_frame.by_class.values()), list(by_array.by_class.values()))
    assert list(by_frame.by_class) == ["a", "b", "c", "d"]


@pytest.mark.slow
def test_a_shift_of_more_than_the_shares_is_noticed(problem):
    y, held, _, target = problem
    changed = target**3
    changed = changed / changed.sum(axis=1, keepdims=True)
    found = estimate_prevalence(changed, calibration=(y, held))
    assert found.fit_pvalue < 0.01
    assert any("do not fit" in warning for warning in found.warnings)
    assert np.isnan([*found.by_class.values(), (found.value, found.low, found.high)]).all()
    assert np.isnan([*found.realised, found.count]).all()
    assert (
        found.undefined["by_class"]
        == found.undefined["value"]
        == found.why
        == found.to_frame()["why"][0]
    )
    assert (
        "no estimate of 3,000; the target's scores do not fit the labelled scores (p < 0.001)"
        in repr(found)
    )
    assert np.isfinite(found.shift).all()
    with pytest.raises(ValueError, match="this estimate is NaN: the target's scores do not fit"):
        found.labels(changed)

    evaluation = evaluate(y, y_prob=held, target=changed)
    names = [f"prevalence/{label}/calibrated" for label in range(4)]
    assert np.isnan([evaluation.metrics[name] for name in names]).all()
    assert not evaluation.intervals.keys() & set(names)
    assert evaluation.undefined[names[0]].startswith(
        "the target's scores do not fit the labelled scores (p < 0.001)"
    )
    warning = f"no calibrated prevalence of the classes: {evaluation.undefined[names[0]]}"
    assert evaluation.warnings.count(warning) == 1
    assert evaluation.at(found).withdrawn


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"density": "spline"}, "density must be one of"),
        (
            {"interval": "naive"},
            "for more than two classes interval must be 'adjusted', got 'naive'",
        ),
        ({"positive": 9}, "positive must be one of"),
    ],
)
def test_what_does_not_apply_is_refused(problem, options, text):
    y, held, _, target = problem
    with pytest.raises(ValueError, match=text):
        estimate_prevalence(target, calibration=(y, held), **options)


def test_shapes_and_rare_classes_are_checked(problem):
    y, held, _, target = problem
    with pytest.raises(ValueError, match=r"\(n_samples, 4\)"):
        estimate_prevalence(target[:, :3], calibration=(y, held))
    one = np.concatenate((np.flatnonzero(y != 3), np.flatnonzero(y == 3)[:1]))
    with pytest.raises(
        ValueError, match=r"at least two labelled rows of each class, got fewer of \[3\]"
    ):
        estimate_prevalence(target, calibration=(y[one], held[one]))
    found = estimate_prevalence(target, calibration=(y, held), density="bins")
    with pytest.raises(ValueError, match="posterior needs recalibrated probabilities"):
        found.posterior(target)
    assert math.isfinite(found.value)


@pytest.mark.parametrize("density", ["auto", "bins"])
def test_constant_probabilities_identify_no_share(density: str) -> None:
    y = np.repeat([1, 2, 3], [500, 100, 20])
    p = np.tile([0.8065, 0.1613, 0.0322], (620, 1))
    estimate = estimate_prevalence(p, calibration=(y, p), density=density)
    assert np.isnan([*estimate.by_class[1], *estimate.by_class[2], *estimate.by_class[3]]).all()
    assert np.isnan([estimate.value, estimate.low, estimate.high, estimate.fit_pvalue]).all()
    assert (
        estimate.undefined["value"]
        == "not identified, because the scores do not separate these classes: [1, 2, 3]"
    )


def test_two_classes_that_look_alike_leave_the_third_share_known() -> None:
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 300)
    third = np.clip(rng.normal(np.where(y == 2, 0.8, 0.2), 0.1), 0.01, 0.98)
    third[y == 1] = third[y == 0]
    p = np.column_stack(((1 - third) / 2, (1 - third) / 2, third))
    estimate = estimate_prevalence(p, calibration=(y, p), density="bins")
    assert np.isnan(estimate.by_class[0]).all()
    value, low, high = estimate.by_class[2]
    assert low < 1 / 3 < high
    assert value == pytest.approx(1 / 3, abs=0.02)
    assert "[0, 1]" in estimate.undefined["by_class"]


def test_an_evaluation_says_which_shares_its_scores_cannot_tell() -> None:
    y = np.repeat([1, 2, 3], [50, 30, 20])
    evaluation = evaluate(y, y_prob=np.tile([0.5, 0.3, 0.2], (100, 1)))
    assert np.isnan(evaluation.metrics["prevalence/1/calibrated"])
    assert evaluation.undefined["prevalence/1/calibrated"].startswith("not identified")


@pytest.mark.slow
def test_the_result_has_what_it_can_do_and_no_more(problem):
    y, held, _, target = problem
    found = estimate_prevalence(target, calibration=(y, held))
    assert isinstance(found, ClassPrevalenceEstimate)
    assert not isinstance(found, PrevalenceEstimate)
    missing = {
        "likelihood",
        "figure",
        "mixture",
        "densities",
        "target_scores",
        "target",
        "deviance",
        "members",
    }
    assert not missing & set(dir(found))
    rows = y < 2
    two = estimate_prevalence(target[:, 0], calibration=(y[rows], held[rows, 0]))
    assert isinstance(two, PrevalenceEstimate)
    assert not isinstance(two, ClassPrevalenceEstimate)
    common = {name for name in dir(BasePrevalence) if not name.startswith("_")}
    assert {"count", "count_sd", "plan", "labels", "posterior", "efficiency", "to_frame"} <= common
    assert common <= set(dir(found)) & set(dir(two))


@pytest.mark.slow
def test_the_likelihood_is_drawn_for_two_classes(problem):
    y, held, _, target = problem
    with pytest.raises(ValueError, match=r"the likelihood needs two classes, got \[0, 1, 2, 3\]"):
        PrevalenceDisplay.from_predictions(target, calibration=(y, held))
    shares = estimate_prevalence(target, calibration=(y, held))
    with pytest.raises(
        TypeError,
        match=r"for two classes, got the classes \[0, 1, 2, 3\]; to_frame\(\) has the share",
    ):
        prevalence_figure(shares)


@pytest.mark.parametrize("size", [3, 5])
def test_intervals_are_the_best_that_weighted_sums_of_shares_allow(size: int) -> None:
    """One share reaches only as far as the others can give: none of them is below 0.

    A share is at most every sum a'pi with a >= its own unit vector: the least upper Wald end of these (duality).
    """
    narrowed = 0
    for seed in range(3):
        rng = np.random.default_rng(seed)
        y, _, held = random_problem(rng, 400, size, 1.0)
        shares = np.append(1 - 0.05 * (size - 1), np.full(size - 1, 0.05))
        target = random_problem(rng, 300, size, 1.0, shares=shares)[2]
        found = estimate_prevalence(target, calibration=(y, held), density="bins")
        joint = (found.refused or found).class_shares
        values, covariance = joint.values, joint.covariance
        error = 1.959964 * np.sqrt(np.diag(covariance))
        wald_low = np.clip(values - error, 0, 1)
        wald_high = np.clip(values + error, 0, 1)
        assert (wald_low <= joint.low + 1e-6).all()
        assert (joint.high <= wald_high + 1e-6).all()
        assert ((joint.low <= values) & (values <= joint.high)).all()
        narrowed += ((wald_high - joint.high > 0.01) | (joint.low - wald_low > 0.01)).sum()
        for k in range(size):
            for side, end in ((1, joint.high[k]), (-1, joint.low[k])):
                best = least_sum(side * np.eye(size)[k], values, covariance)
                assert side * end == pytest.approx(min(best, 1.0 if side > 0 else 0.0), abs=2e-3)
    assert narrowed


def least_sum(unit: np.ndarray, values: np.ndarray, covariance: np.ndarray) -> float:
    """The least upper end of 95% of a sum of shares with weights that are nowhere below a unit vector."""

    def upper(extra: np.ndarray) -> float:
        a = unit + extra
        return float(a @ values + 1.959964 * math.sqrt(max(a @ covariance @ a, 1e-16)))

    bounds = [(0, None)] * len(unit)
    return float(minimize(upper, np.full(len(unit), 0.1), bounds=bounds, method="L-BFGS-B").fun)


@pytest.mark.slow
def test_numbers_by_class_have_intervals_in_the_frame_and_the_assumption_is_printed(problem):
    y, held, truth, target = problem
    found = estimate_prevalence(target, calibration=(y, held), positive=0)
    frame = found.to_frame()
    assert list(frame) == [
        "label",
        "value",
        "low",
        "high",
        "count",
        "count_low",
        "count_high",
        "calibration",
        "calibration_low",
        "calibration_high",
        "why",
    ]
    assert found.by_class[0].low == found.low == frame["low"][0]
    row = frame.iloc[0]
    assert (row["count"], row["count_low"], row["count_high"]) == pytest.approx(
        (found.count, found.count_low, found.count_high)
    )
    actual = np.bincount(truth, minlength=4)
    assert ((frame["count_low"] < actual) & (actual < frame["count_high"])).all()
    # only these rows
    assert (frame["count_high"] - frame["count_low"] < 3000 * (frame["high"] - frame["low"])).all()
    assert ASSUMES in repr(found)
    assert ASSUMES in found._repr_html_()
    shifted = estimate_prevalence(
        target**3 / (target**3).sum(axis=1, keepdims=True), calibration=(y, held)
    )
    assert (
        "The shares of the 4 classes in the population are not estimated: the target"
        in shifted._repr_html_()
    )
