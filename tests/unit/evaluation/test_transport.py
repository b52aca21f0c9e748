"""Metrics at other shares of the classes: published vectors, errors by rows, bad input."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cmtrack import (
    Costs,
    Evaluation,
    Grouping,
    Metric,
    PrevalenceEstimate,
    estimate_prevalence,
    evaluate,
)
from cmtrack.metrics import on_scale
from cmtrack.prevalence import ClassPrevalenceEstimate
from support.problems import random_problem

FOUR = [[7, 2, 1, 0], [1, 12, 3, 2], [0, 4, 9, 1], [2, 1, 0, 15]]


def of_table(counts: Any, **options: Any) -> Evaluation:
    """The evaluation of a table of counts."""
    table = np.asarray(counts)
    actual, predicted = (np.repeat(part, table[np.nonzero(table)]) for part in np.nonzero(table))
    return evaluate(actual, predicted, **options)


TWO = of_table([[880, 120], [50, 450]])

# Vector TV-D1 of the specification of transport: value; standard errors about the population, about the target's own
# labels with the shares of the population given, and with the target's own shares given; q = (.95, .05), 1,000 rows.
GIVEN = {
    "multiclass/accuracy": (0.8810000000, 0.0097853973, 0.0141630858, 0.0141624150),
    "binary/precision": (0.2830188679, 0.0176382835, 0.0398413147, 0.0268414428),
    "binary/recall": (0.9000000000, 0.0134164079, 0.0444971909, 0.0444971909),
    "binary/f1": (0.4306220096, 0.0207354607, 0.0476556680, 0.0333102292),
    "binary/npv": (0.9940546968, 0.0007959016, 0.0027678071, 0.0026316228),
    "binary/matthews_corrcoef": (0.4648842657, 0.0191069702, 0.0422894039, 0.0348328274),
    "multiclass/cohen_kappa": (0.3837389953, 0.0231545675, 0.0482919520, 0.0368979850),
    "multiclass/f1_macro": (0.6820893409, 0.0132404928, 0.0266218293, 0.0206096356),
}


@pytest.mark.parametrize("name", GIVEN)
def test_two_classes_as_in_the_vector(name: str) -> None:
    there, counted = TWO.at([0.95, 0.05], rows=1000), TWO.at(0.05, rows=1000, counted=True)
    got = (
        there.metrics[name],
        there.standard_errors[name],
        there.own_standard_errors[name],
        counted.own_standard_errors[name],
    )
    assert got == pytest.approx(GIVEN[name], abs=6e-11)


def test_four_classes_as_in_the_vector() -> None:
    """Vector TV-D2."""
    there = of_table(FOUR).at([0.1, 0.2, 0.3, 0.4])
    expected = {"accuracy": (0.7295238095, 0.0584323762), "f1_macro": (0.6940457140, 0.0608277514)}
    expected |= {
        "cohen_kappa": (0.6209374235, 0.0789641355),
        "matthews_corrcoef": (0.6249327470, 0.0769331981),
    }
    for name, both in expected.items():
        full = f"multiclass/{name}"
        assert (there.metrics[full], there.standard_errors[full]) == pytest.approx(
            both, abs=6e-11
        ), name


def test_scores_as_in_the_vector() -> None:
    """Vector TV-D18: ten rows (TV-7) at 10% positives."""
    y, s = [1, 0, 0, 1, 0, 1, 0, 0, 0, 1], [0.9, 0.2, 0.4, 0.6, 0.1, 0.3, 0.35, 0.05, 0.5, 0.8]
    there = evaluate(y, y_prob=s).at(0.1)
    expected = {"spcc/binary": (0.5596454938, 0.1488147669), "probability/brier": (0.1052500000, 0.0341394200),
                "probability/log_loss": (0.3532655246, 0.0867283048)}  # fmt: skip
    for name, both in expected.items():
        assert (there.metrics[name], there.standard_errors[name]) == pytest.approx(
            both, abs=6e-11
        ), name


Y, _, P = random_problem(3, n=300, k=4)
GROUPS = Grouping({"low": [0, 1], "high": [2, 3]})
COSTS = Costs({("low", "high"): 3, ("high", "low"): 1})
OWN = Metric("custom/gain", lambda b: (5 * b.tp - b.fp) / sum(b), of="binary")
GROUPED = evaluate(Y, y_prob=P, grouping=GROUPS, costs=COSTS, positive="high", extra_metrics=[OWN])


@pytest.mark.parametrize(
    ("shares", "strata"),
    [
        ({"high": 0.2}, [0, 0, 1, 1]),
        ([0.1, 0.2, 0.3, 0.4], [0, 1, 2, 3]),
        ({0: 0.0, 1: 0.5}, [0, 1, 2, 2]),
    ],
    ids=["groups", "classes", "an absent class"],
)
def test_errors_are_those_of_the_rows_within_each_class(shares: Any, strata: list[int]) -> None:
    """By the influence of every row on the metrics of the rows with the weights that give these shares."""
    there = GROUPED.at(shares, rows=500)
    weight = np.array([there.shares[k] for k in range(4)])[Y] / np.bincount(Y)[Y]
    weighted = evaluate(
        Y,
        y_prob=P,
        grouping=GROUPS,
        costs=COSTS,
        positive="high",
        extra_metrics=[OWN],
        sample_weight=weight,
        weights_are="sampling",
    )
    stratum = np.array(strata)[Y]
    assert len(there.standard_errors) > 90
    for name, error in there.standard_errors.items():
        with np.errstate(all="ignore"):  # of a class with the share 0
            psi = weighted.influence(name)
        assert psi is not None
        psi = np.where(weight > 0, psi, 0.0)
        labelled = 0.0  # the squared error from the labelled rows within each stratum
        for number in np.unique(stratum[weight > 0]):
            own = stratum == number
            within = psi[own] - np.average(psi[own], weights=weight[own])
            labelled += float((weight[own] ** 2) @ within**2)
        # the others are centred as one, which is wider
        loose = 0.02 if name.startswith("spcc/ovr/") else 1e-6
        assert error**2 == pytest.approx(labelled, rel=loose, abs=1e-12), name
        assert error**2 >= labelled * (1 - 1e-6), name
        own_error = there.own_standard_errors[name] ** 2 - error**2
        realised = float(weight @ psi**2)  # the variance of a row of the target
        assert own_error == pytest.approx(realised / 500, rel=1e-6, abs=1e-12), name


def test_shares_by_name_are_those_that_were_given() -> None:
    assert GROUPED.at({"high": 0.2}).by_name == pytest.approx({"“high”": 0.2, "all others": 0.8})
    assert TWO.at(0.05).by_name == pytest.approx({"“1”": 0.05, "“0”": 0.95})


def test_own_shares_give_the_metrics_here() -> None:
    there = GROUPED.at(np.bincount(Y) / len(Y))
    assert len(there.metrics) > 100
    for name, value in there.metrics.items():
        assert value == pytest.approx(GROUPED.metrics[name], rel=1e-12, nan_ok=True), name
        if name in there.standard_errors:
            assert there.standard_errors[name] <= 1.02 * GROUPED.standard_errors[name] + 1e-12, name


def test_a_loaded_run_without_rows_gives_the_same_numbers(tmp_path: Path) -> None:
    GROUPED.save(tmp_path, rows=False)
    loaded = Evaluation.load(tmp_path, extra_metrics=[OWN])
    assert loaded.rows is None
    here, past = GROUPED.at(0.2), loaded.at(0.2)
    assert past.metrics == pytest.approx(here.metrics, nan_ok=True)
    wider = [
        name
        for name, error in past.standard_errors.items()
        if error > 1.001 * here.standard_errors[name]
    ]
    assert all(
        "roc_auc" in name or "average_precision" in name or name.startswith(("cost/", "spcc/ovr/"))
        for name in wider
    ), wider
    assert all(
        past.standard_errors[name] >= 0.98 * here.standard_errors[name]
        for name in past.standard_errors
    )


def test_recall_and_the_areas_of_two_classes_stay() -> None:
    evaluation = evaluate(Y > 1, y_prob=P[:, 2:].sum(axis=1))
    table = evaluation.at(0.02).to_frame().set_index("metric")
    for name in (
        "binary/recall",
        "binary/specificity",
        "binary/roc_auc",
        "multiclass/balanced_accuracy",
        "spcc/d_a",
    ):
        assert table.loc[name, "why"] == "the same at both", name
        assert repr(float(table.loc[name, "change"])) == "0.0", name
    assert table.loc["binary/precision", "change"] < -0.2
    assert table.loc["binary/precision", "why"].startswith("“True” has a share of 2% instead of")
    assert not [
        name
        for name in table.index
        if name.startswith(("calibration/", "prevalence/", "confidence/"))
    ]


def test_weighted_rows_and_weights_agree() -> None:
    weights = np.random.default_rng(5).integers(1, 4, len(Y))
    repeated = evaluate(np.repeat(Y, weights), y_prob=np.repeat(P, weights, axis=0)).at(
        [0.1, 0.2, 0.3, 0.4]
    )
    weighted = evaluate(Y, y_prob=P, sample_weight=weights).at([0.1, 0.2, 0.3, 0.4])
    assert weighted.metrics == pytest.approx(repeated.metrics, nan_ok=True)
    for name, error in repeated.standard_errors.items():
        if "average" not in name and "roc_auc" not in name:
            assert weighted.standard_errors[name] == pytest.approx(error), name


def test_rows_that_belong_together_make_errors_wider() -> None:
    alone = evaluate(Y, y_prob=P)
    twice = evaluate(
        np.repeat(Y, 2), y_prob=np.repeat(P, 2, axis=0), groups=np.repeat(np.arange(len(Y)), 2)
    )
    shares = [0.1, 0.2, 0.3, 0.4]
    got, expected = twice.at(shares), alone.at(shares).standard_errors
    correction = np.sqrt(len(Y) / (len(Y) - 1))
    for name in (
        "multiclass/accuracy",
        "multiclass/f1_macro",
        "class/1/precision",
        "probability/log_loss",
    ):
        assert got.standard_errors[name] == pytest.approx(correction * expected[name], rel=1e-6), (
            name
        )
    assert not any("rows belong to groups" in text for text in got.warnings)
    assert any(
        "rows belong to groups" in text for text in replace(twice, rows=None).at(shares).warnings
    )


def test_the_reweighted_evaluation_has_views_but_chooses_no_threshold() -> None:
    evaluation = evaluate(Y > 1, y_prob=P[:, 2:].sum(axis=1))
    there, costs = evaluation.at(0.05).reweighted, Costs({(True, False): 5, (False, True): 1})
    assert there.metrics["binary/precision"] == pytest.approx(
        evaluation.at(0.05).metrics["binary/precision"]
    )
    with pytest.raises(ValueError, match="rows with sampling weights: choose it on rows without"):
        there.threshold(costs)
    assert there.metrics["prevalence/actual"] == pytest.approx(0.05)


@pytest.mark.slow
@pytest.mark.parametrize("metric", ["multiclass/accuracy", "binary/precision"])
def test_a_figure_has_the_values_of_every_share(metric: str) -> None:
    there = TWO.at(0.1)
    ax = there.figure(metric).axes[0]
    same, curve = (line for line in ax.lines if len(line.get_xdata()) > 2)
    for share, value, constant in list(
        zip(curve.get_xdata(), curve.get_ydata(), same.get_ydata(), strict=True)
    )[::5]:
        moved = TWO.at(float(share))
        assert value == moved.metrics[metric]
        assert constant == pytest.approx(
            share if metric == "binary/precision" else max(share, 1 - share)
        )
    marks = [line.get_xdata()[0] for line in ax.lines if len(line.get_xdata()) == 2]
    assert marks == pytest.approx([1 / 3, 0.1])
    assert np.isin(marks, curve.get_xdata()).all()
    words = {text.get_text() for text in ax.get_legend().get_texts()}
    assert {"test set: 33.3%", "target: 10%"} <= words
    assert ("there, a constant prediction is as good or better" in words) == (
        metric == "multiclass/accuracy"
    )


def test_a_figure_needs_a_positive_class_and_a_metric_that_moves() -> None:
    with pytest.raises(
        ValueError, match="the figure needs a positive class or group, and a metric"
    ):
        TWO.at(0.1).figure("multiclass/nothing")
    with pytest.raises(ValueError, match="the figure needs a positive class or group"):
        of_table(FOUR).at([0.25] * 4).figure()
    assert "at_prevalence" not in of_table(FOUR).figures()
    assert np.isnan(
        evaluate([0, 1] * 20, y_prob=np.linspace(0, 1, 40)).at(0.1).constant("binary/roc_auc")
    )


def test_what_is_left_out_is_said() -> None:
    there = GROUPED.at([0.1, 0.2, 0.3, 0.4])
    assert "binary/roc_auc" not in there.metrics
    assert "the mix of classes within a group changes" in " ".join(there.warnings)
    kept = GROUPED.at(0.1)
    assert "binary/roc_auc" in kept.metrics
    assert (
        "within “high” and all others, the classes have the mix of the labelled rows"
        in kept.warnings
    )
    few = of_table([[90, 3], [2, 5]]).at(0.5)
    assert "fewer than 20 labelled rows of “1” (n = 7): intervals are approximate" in few.warnings


def test_intervals_stay_inside_their_range() -> None:
    there = of_table([[95, 5, 0], [2, 8, 0], [0, 0, 10]]).at([0.98, 0.01, 0.01], rows=100)
    for name, (low, high) in {**there.intervals, **there.own_intervals}.items():
        metric = there.evaluation.catalog.lookup(name)
        assert metric.low <= low <= high <= metric.high, name
    assert there.intervals["class/2/recall"][0] < 0.8
    assert there.metrics["class/2/recall"] == 1


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (1.2, "shares must be between 0 and 1 and sum to 1"),
        (True, "shares must be a number, numbers by class or group"),
        ("x", "shares must be a number, numbers by class or group"),
        ({"high": 0.5, "low": 0.4}, "shares must be between 0 and 1 and sum to 1"),
        ([0.5, 0.5], "shares must have one number for each of 4 classes, got 2"),
        (
            {0: 0.5, 7: 0.5},
            "shares must name the classes [0, 1, 2, 3] or the groups of one step, got 7",
        ),
        ({0: -0.5}, "shares must be between 0 and 1"),
        ({}, "shares must be a number, numbers by class or group"),
    ],
    ids=str,
)
def test_bad_shares(given: Any, text: str) -> None:
    with pytest.raises((TypeError, ValueError)) as error:
        GROUPED.at(given)
    assert text in str(error.value)


def test_bad_evaluations() -> None:
    with pytest.raises(ValueError, match="a single share needs two classes or groups"):
        of_table(FOUR).at(0.5)
    absent = evaluate([0, 1, 1], [0, 1, 2], labels=[0, 1, 2])
    with pytest.raises(ValueError, match=r"needs labelled rows, got none of “2”"):
        absent.at({2: 0.5})
    assert absent.at({2: 0.0}).shares == pytest.approx({0: 1 / 3, 1: 2 / 3, 2: 0})
    with pytest.raises(
        ValueError, match="rows must be the number of rows of the target, above 0, got -1"
    ):
        TWO.at(0.5, rows=-1)


# -- estimated shares ---------------------------------------------------------------------------------------

SCORES = np.array([0.1, 0.3, 0.6, 0.9])
POSITIVES, NEGATIVES, TARGET = [2, 8, 30, 60], [140, 40, 16, 4], [1300, 420, 190, 90]
LABELS = np.repeat([1, 0], [100, 200])
LABELLED = np.concatenate((np.repeat(SCORES, POSITIVES), np.repeat(SCORES, NEGATIVES)))
UNLABELLED = np.repeat(SCORES, TARGET)
SHARE = Metric("custom/share", lambda b: (b.tp + b.fn) / sum(b), of="binary")
BINS = evaluate(LABELS, y_prob=LABELLED, extra_metrics=[SHARE])


def estimated(target: Any, **options: Any) -> PrevalenceEstimate:
    """The share of positives of a target, by the labelled rows of BINS."""
    estimate = estimate_prevalence(
        target, calibration=(LABELS, LABELLED), density="bins", **options
    )
    assert isinstance(estimate, PrevalenceEstimate)
    return estimate


ESTIMATE = estimated(UNLABELLED)
# Vector TV-D3 (counts of TV-9): the share, and the metrics there.
ESTIMATED = {
    "custom/share": 0.0424163214,
    "multiclass/accuracy": 0.9000000000,
    "binary/precision": 0.2850281332,
    "binary/f1": 0.4329438478,
    "binary/matthews_corrcoef": 0.4733967074,
}


@pytest.mark.parametrize("flipped", [False, True])
@pytest.mark.parametrize("name", ESTIMATED)
def test_the_error_of_an_estimate_is_independent_of_the_error_of_the_labelled_rows(
    name: str, flipped: bool
) -> None:
    """The squared errors add up: at the stated share, and of the share times the slope of the metric."""
    evaluation, estimate, step = BINS, ESTIMATE, 1e-6
    if flipped:  # the positive class is the first one
        both, target = (np.column_stack((part, 1 - part)) for part in (LABELLED, UNLABELLED))
        evaluation = evaluate(1 - LABELS, y_prob=both, positive=0, extra_metrics=[SHARE])
        estimate = estimate_prevalence(
            target[:, 0], calibration=(1 - LABELS, both[:, 0]), positive=0, density="bins"
        )
    there, stated = evaluation.at(estimate), evaluation.at(estimate.value, rows=estimate.n_target)
    low, high = (evaluation.at(estimate.value + side * step).metrics[name] for side in (-1, 1))
    slope = (high - low) / (2 * step)
    assert there.metrics[name] == pytest.approx(ESTIMATED[name], abs=1e-9)
    for got, alone in (
        (there.standard_errors, stated.standard_errors),
        (there.own_standard_errors, stated.own_standard_errors),
    ):
        expected = np.hypot(alone[name], slope * np.sqrt(estimate.variance.total))
        assert got[name] == pytest.approx(expected, rel=1e-6)


def test_the_frame_has_the_interval_of_the_targets_own_labels() -> None:
    there = BINS.at(ESTIMATE)
    name = "binary/precision"
    low, high = there.own_intervals[name]
    row = there.to_frame().set_index("metric").loc[name]
    assert (row["low"], row["high"]) == pytest.approx((low, high))
    assert (low, high) == pytest.approx(
        on_scale("logit", there.metrics[name], there.own_standard_errors[name])
    )
    assert there.fit_pvalue == pytest.approx(0.8418283003, abs=1e-9)
    assert list(there.to_frame()) == ["metric", "here", "there", "low", "high", "change", "why"]
    past = replace(BINS, rows=None).at(ESTIMATE)
    assert past.standard_errors["binary/f1"] == pytest.approx(there.standard_errors["binary/f1"])


def test_the_covariance_of_several_shares_is_added() -> None:
    """One count added a class; the bins are predicted as classes 0, 1, 1, 2 (vector TV-D4)."""
    counts = np.array([[40, 12, 6, 2], [5, 30, 20, 5], [2, 8, 12, 38]])
    bins = np.array([[0.8, 0.1, 0.1], [0.2, 0.5, 0.3], [0.05, 0.9, 0.05], [0.1, 0.1, 0.8]])
    actual, place = (np.repeat(part, counts[np.nonzero(counts)]) for part in np.nonzero(counts))
    evaluation = evaluate(actual, y_prob=bins[place])
    target = np.repeat(bins, [300, 250, 250, 200], axis=0)
    estimate = estimate_prevalence(target, calibration=(actual, bins[place]), density="bins")
    assert isinstance(estimate, ClassPrevalenceEstimate)
    shares, covariance = estimate.class_shares.values, estimate.class_shares.covariance
    there, stated = evaluation.at(estimate), evaluation.at(shares)
    assert list(there.shares.values()) == pytest.approx(
        [0.38980572, 0.35006029, 0.26013399], abs=1e-8
    )
    for name, value in (
        ("multiclass/accuracy", 0.7163389146),
        ("multiclass/f1_macro", 0.7171887090),
    ):
        assert there.metrics[name] == pytest.approx(value, abs=1e-8)
        slopes = []
        for k in range(3):
            moved = 1e-6 * (np.eye(3)[k] - shares)
            high, low = (evaluation.at(shares + side * moved).metrics[name] for side in (1, -1))
            slopes.append((high - low) / 2e-6)
        expected = stated.standard_errors[name] ** 2 + np.array(slopes) @ covariance @ slopes
        assert there.standard_errors[name] ** 2 == pytest.approx(expected, rel=1e-5)


def test_a_withdrawn_estimate_has_no_numbers() -> None:
    odd = np.repeat(SCORES, [900, 100, 100, 900])
    estimate = estimated(np.concatenate((odd, np.repeat(SCORES, [100, 900, 900, 100]))))
    assert estimate.fit_pvalue < 0.01
    there = BINS.at(estimate)
    assert there.withdrawn
    assert np.isnan(list(there.metrics.values())).all()
    assert np.isnan(list(there.shares.values())).all()
    assert not there.standard_errors
    assert not there.intervals
    assert there.undefined["binary/f1"].startswith(
        "withdrawn: the target's scores do not fit the labelled scores (p < 0.001)"
    )
    assert "nothing is estimated" in there.warnings[0]


def test_a_shift_that_the_test_of_the_fit_would_miss_is_seen_in_half_of_all_cases() -> None:
    """Targets of three classes with the smallest tilt, down and up, that the test is said to see half the time."""
    rng = np.random.default_rng(0)
    y, _, p = random_problem(rng, 1500, 3)
    target = random_problem(rng, 2000, 3, shares=[0.5, 0.3, 0.2])[2]
    binned = estimate_prevalence(target, calibration=(y, p), density="bins").binned
    assert binned is not None
    assert len(binned.missed) == 2
    for tilt in binned.missed:
        mixed = binned.tilted(binned.densities.T, tilt).T @ binned.shares
        seen = []
        for _ in range(100):
            labelled = [
                rng.multinomial(int(rows), density)
                for rows, density in zip(binned.labelled, binned.densities.T, strict=True)
            ]
            drawn = replace(
                binned,
                counts=np.array(labelled, dtype=float),
                target=rng.multinomial(2000, mixed).astype(float),
            )
            seen.append(drawn.fit_pvalue < 0.05)
        assert 0.3 < np.mean(seen) < 0.7


def test_a_missed_shift_moves_the_shares_of_several_classes() -> None:
    """Scores tilted towards a class, as little as the test sees half the time, give it the share that is said."""
    rng = np.random.default_rng(4)
    p = rng.dirichlet(np.ones(3) / 2, 3000)
    y = (rng.random(3000)[:, None] > p.cumsum(axis=1)).sum(axis=1)
    estimate = estimate_prevalence(p[2000:], calibration=(y[:2000], p[:2000]), density="bins")
    binned = estimate.binned
    assert list(estimate.missed_move) == [0, 1, 2]
    for k, (way, move) in enumerate(zip(binned.ways, estimate.missed_move.values(), strict=True)):
        away = [way.fitted_to(tilt)[k] - binned.shares[k] for tilt in way.missed]
        assert away[0] < -0.02
        assert away[1] > 0.02
        assert move >= max(np.abs(away))
    assert "would miss moves a share by up to" in estimate._repr_html_()


@pytest.mark.slow
def test_an_estimate_adds_its_error() -> None:
    there, stated = BINS.at(ESTIMATE), BINS.at(ESTIMATE.value)
    for name in ("binary/precision", "binary/f1", "probability/brier"):
        assert stated.standard_errors[name] < there.standard_errors[name], name
    assert there.fit_pvalue == pytest.approx(ESTIMATE.fit_pvalue)
    assert there.warnings[0].endswith(
        "the target's scores fit (p = 0.842); this test finds only large changes"
    )
    assert 0 < ESTIMATE.missed_move < 0.5
    assert "would miss can change it by up to" in ESTIMATE._repr_html_()


def test_classes_by_an_estimate() -> None:
    rng = np.random.default_rng(2)
    y, _, p = random_problem(8, n=900, k=3)
    kept = rng.random(600) < np.array([0.3, 1.0, 0.6])[y[300:]]
    evaluation, target, own = evaluate(y[:300], y_prob=p[:300]), p[300:][kept], y[300:][kept]
    there = evaluation.at(estimate_prevalence(target, calibration=(y[:300], p[:300])))
    assert sum(there.shares.values()) == pytest.approx(1)
    truth = evaluate(own, y_prob=target)
    for name in ("multiclass/accuracy", "multiclass/f1_macro", "probability/log_loss"):
        assert there.metrics[name] == pytest.approx(
            truth.metrics[name], abs=3 * there.own_standard_errors[name]
        ), name


@pytest.mark.parametrize(
    "scores",
    [
        UNLABELLED,
        UNLABELLED.tolist(),
        np.column_stack((1 - UNLABELLED, UNLABELLED)),
        {0: 1 - UNLABELLED, 1: UNLABELLED},
        pd.DataFrame({0: 1 - UNLABELLED, 1: UNLABELLED}),
    ],
    ids=["array", "list", "matrix", "mapping", "frame"],
)
def test_scores_are_refused_with_what_to_do(scores: Any) -> None:
    with pytest.raises(
        ValueError, match=r"Evaluation.at\(scores\): estimate_prevalence\(scores, calibration="
    ):
        BINS.at(scores)


def test_an_estimate_has_rows_of_its_own() -> None:
    with pytest.raises(
        ValueError,
        match="rows= and counted= are only for stated shares: an estimate has its own rows",
    ):
        BINS.at(ESTIMATE, rows=5)


def test_an_estimate_of_other_classes_is_refused() -> None:
    with pytest.raises(ValueError, match="the estimate must be for the positive 'high'"):
        GROUPED.at(ESTIMATE)


def test_homogeneity_as_in_the_vector() -> None:
    """Vector TV-D5."""
    statistic, degrees, pvalue = TWO.at(0.05).homogeneity(of_table([[85, 15], [8, 42]]))
    assert (statistic, degrees, pvalue) == (
        pytest.approx(2.4945818826, abs=1e-9),
        2,
        pytest.approx(0.28728201, abs=1e-8),
    )
    with pytest.raises(
        ValueError,
        match=r"audited must be an evaluation of the classes \[0, 1\], got \[0, 1, 2, 3\]",
    ):
        TWO.at(0.05).homogeneity(of_table(FOUR))


def test_an_estimated_share_of_0_is_said() -> None:
    there = BINS.at(estimated(np.repeat(SCORES, [1430, 395, 146, 29])))
    assert (there.shares[1], there.withdrawn) == (0, False)
    assert (
        "the estimated share of “1” is 0: intervals of metrics that use it cover the range of the share's interval"
        in there.warnings
    )
    low, high = there.moved.target.estimated.ends
    assert low == 0 < high < 0.1
    reached = BINS.at(high)
    for name in ("binary/precision", "multiclass/accuracy", "custom/share"):
        for ends in (there.intervals[name], there.own_intervals[name]):
            assert ends[0] <= there.metrics[name] <= ends[1], name
            assert ends[0] - 1e-9 <= reached.metrics[name] <= ends[1] + 1e-9, name
    assert there.intervals["custom/share"] == pytest.approx((0, high))


AP = "binary/average_precision"


def two_normals(positives: int, negatives: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Labels, and scores whose logits are N(1, 1) of positives and N(-1, 1) of negatives."""
    y = np.repeat([1, 0], [positives, negatives])
    return y, 1 / (1 + np.exp(-rng.normal(2.0 * y - 1)))


def normal_rows(rows: int) -> Evaluation:
    """An evaluation of as many positives as negatives."""
    y, scores = two_normals(rows, rows, np.random.default_rng(9))
    return evaluate(y, y_prob=scores)


def area_at(share: float, y: Any, scores: Any) -> float:
    """Average precision of rows at a share of the positives, without ties."""
    labels = y[np.argsort(-scores)]
    recall, fall_out = np.cumsum(labels) / labels.sum(), np.cumsum(1 - labels) / (1 - labels).sum()
    precision = share * recall / (share * recall + (1 - share) * fall_out)
    return float(precision @ labels / labels.sum())


@pytest.mark.parametrize(
    ("rows", "share"),
    [
        (30, 0.05),
        pytest.param(100, 0.05, marks=pytest.mark.slow),
        pytest.param(300, 0.01, marks=pytest.mark.slow),
    ],
)
def test_intervals_of_average_precision_at_a_rarer_share_hold_the_truth(
    rows: int, share: float
) -> None:
    """Of 100 samples; .70, .77 and .56 did while the interval was that of the drawn negatives alone."""
    rng = np.random.default_rng(6)
    truth = area_at(share, *two_normals(100_000, 100_000, rng))
    hits = 0
    for _ in range(100):
        y, scores = two_normals(rows, rows, rng)
        low, high = evaluate(y, y_prob=scores, sections=["binary"]).at(share).intervals[AP]
        hits += low <= truth <= high
    assert hits >= 90


def test_the_further_negative_of_average_precision_by_hand() -> None:
    """It is 1 - 1/4 of a row, as a negative weighs 4 times a positive. No positive is above all negatives: score .9."""
    y, scores = (
        np.array([1, 1, 1, 1, 0, 0, 0, 0]),
        np.array([0.9, 0.8, 0.6, 0.4, 0.95, 0.3, 0.2, 0.1]),
    )
    there = evaluate(y, y_prob=scores).at(0.2)
    assert there.metrics[AP] == pytest.approx(area_at(0.2, y, scores))
    weights = np.array([0.05] * 4 + [0.8 / 4.75] * 4 + [0.75 * 0.8 / 4.75])
    more = evaluate(
        np.append(y, 0),
        y_prob=np.append(scores, 0.9),
        sample_weight=weights,
        weights_are="sampling",
    )
    (low, high), value = there.intervals[AP], there.metrics[AP]
    centre = more.at(0.2)
    error = centre.standard_errors[AP]
    assert centre.metrics[AP] == pytest.approx(more.metrics[AP])
    assert low == pytest.approx(on_scale("logit", more.metrics[AP], error)[0])  # type: ignore[index]
    assert high == pytest.approx(on_scale("logit", value, there.standard_errors[AP])[1])  # type: ignore[index]


@pytest.mark.parametrize("share", [0.5, 0.6, 0.95])
def test_average_precision_has_its_own_interval_where_negatives_weigh_no_more(share: float) -> None:
    y, scores = two_normals(40, 40, np.random.default_rng(7))
    there = evaluate(y, y_prob=scores).at(share)
    plain = on_scale("logit", there.metrics[AP], there.standard_errors[AP])
    assert there.intervals[AP] == pytest.approx(plain)


@pytest.mark.slow
def test_intervals_of_average_precision_at_the_edges_hold_the_value() -> None:
    rng = np.random.default_rng(8)
    y, scores = two_normals(40, 40, rng)
    weights = rng.lognormal(size=80)
    target = two_normals(100, 900, rng)[1]
    perfect = np.where(y == 1, 0.9, 0.1) + 0.05 * rng.random(80)
    plain = evaluate(y, y_prob=scores)
    weighted = [
        evaluate(y, y_prob=scores, sample_weight=k * weights, weights_are="sampling")
        for k in (1, 1e6)
    ]
    with pytest.warns(UserWarning, match="the accuracy is 0%"):
        wrong = evaluate(1 - y, y_prob=perfect)
    cases = {
        "reversed": wrong.at(0.05),
        "plain": plain.at(0.05, rows=300),
        "tied": evaluate(y, y_prob=np.full(80, 0.4)).at(0.05),
        "perfect": evaluate(y, y_prob=perfect).at(0.05, rows=300),
        "one negative": evaluate(y[:41], y_prob=scores[:41]).at(0.05),
        "weights": weighted[0].at(0.05),
        "clusters": evaluate(y, y_prob=scores, groups=np.arange(80) % 16).at(0.05),
        "estimate": plain.at(estimate_prevalence(target, calibration=(y, scores))),
    }
    for name, there in cases.items():
        value = there.metrics[AP]
        for low, high in (there.intervals[AP], there.own_intervals.get(AP, there.intervals[AP])):
            assert 0 <= low <= value <= high <= 1, name
            assert low < high, name
    # 40 negatives do not show that none of 800 scores high
    assert cases["perfect"].intervals[AP][0] < 0.6
    assert cases["plain"].own_intervals[AP][0] < cases["plain"].intervals[AP][0]
    assert weighted[1].at(0.05).intervals[AP] == pytest.approx(cases["weights"].intervals[AP])


def test_few_heavy_negatives_are_warned_of() -> None:
    few, many = (normal_rows(rows) for rows in (30, 2000))
    text = (
        "average precision tends to be too high: the weight of each labelled negative is 63.3% "
        "of the total weight of the labelled positives"
    )
    assert any(text in warning for warning in few.at(0.05).warnings)
    assert not any(
        "too high" in warning
        for there in (few.at(0.5), many.at(0.05))
        for warning in there.warnings
    )


def test_average_precision_of_a_class_has_the_further_negative_too() -> None:
    there = evaluate(Y, y_prob=P).at([0.02, 0.3, 0.3, 0.38])
    name = f"class/{Y.min()}/average_precision"
    low, high = there.intervals[name]
    plain = on_scale("logit", there.metrics[name], there.standard_errors[name])
    assert plain is not None
    assert low < plain[0] < there.metrics[name] <= high == pytest.approx(plain[1])


def test_a_series_of_shares_is_read_by_its_index():
    y = np.array(["ham", "spam"] * 100)
    predicted = np.where(np.arange(200) % 7 == 0, y[::-1], y)
    evaluation = evaluate(y, predicted, positive="spam")
    expected = evaluation.at({"spam": 0.1, "ham": 0.9}).metrics["binary/precision"]
    for shares in ({"spam": 0.1, "ham": 0.9}, {"ham": 0.9, "spam": 0.1}):
        assert evaluation.at(pd.Series(shares)).metrics["binary/precision"] == expected
    assert evaluation.at(pd.Series([0.9, 0.1])).metrics["binary/precision"] == expected
