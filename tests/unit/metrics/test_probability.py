"""Proper scores and ranks: test vectors 19 and 22, scikit-learn, properties."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, brier_score_loss, log_loss

from cmtrack import (
    Accumulator,
    Evaluation,
    Grouping,
    compare,
    evaluate,
    evaluate_table,
    paired_differences,
)
from cmtrack.evaluation import loads
from cmtrack.metrics import on_scale
from cmtrack.report import verdict
from support.problems import B20, D20, W20, random_problem

Y = [0, 0, 0, 0, 1, 1, 1, 2, 2]
P = np.array([
    [.7, .2, .1], [.5, .4, .1], [.6, .1, .3], [.4, .35, .25], [.3, .6, .1], [.2, .5, .3], [.45, .4, .15], [.1, .3, .6],
    [.3, .4, .3],
])  # fmt: skip
SECOND = np.array([
    [.6, .3, .1], [.6, .3, .1], [.5, .2, .3], [.5, .25, .25], [.2, .6, .2], [.3, .5, .2], [.3, .5, .2], [.2, .2, .6],
    [.2, .3, .5],
])  # fmt: skip
WHOLE = [1, 2, 1, 1, 3, 1, 1, 2, 1]
G = Grouping({"a": [0, 1], "b": [2]}, name="g")
STEP = "probability/g"
"""Rows of test vector 8, and the second model of test vector 19."""


def numbers(evaluation: Evaluation, *names: str) -> list[float]:
    return [evaluation.metrics[name if "/" in name else f"probability/{name}"] for name in names]


def errors(evaluation: Evaluation, *names: str) -> list[float]:
    return [
        evaluation.standard_errors[name if "/" in name else f"probability/{name}"] for name in names
    ]


def near(expected: list[float]) -> object:
    return pytest.approx(expected, abs=6e-11)


FOUR = ("log_loss", "brier", "log_skill", "brier_skill")


def test_vector_19_of_the_classes():
    evaluation = evaluate(Y, y_prob=P)
    assert numbers(evaluation, *FOUR) == near(
        [0.7013333827, 0.3988888889, 0.3388991941, 0.3786538462]
    )
    assert errors(evaluation, *FOUR) == near(
        [0.0840974448, 0.0606588201, 0.0786154100, 0.0923075590]
    )
    assert numbers(evaluation, "spherical") == near([0.2189646931])
    assert errors(evaluation, "spherical") == near([0.0447599061])


def test_vector_19_of_the_groups():
    evaluation = evaluate(Y, y_prob=P, grouping=G)
    names = [f"{STEP}/{name}" for name in FOUR]
    assert numbers(evaluation, *names) == near([0.3549367628, 0.1050000000, 0.3299365509, 0.3925])
    assert errors(evaluation, *names) == near(
        [0.1096336382, 0.0480980865, 0.1297404132, 0.1671119477]
    )
    assert numbers(evaluation, f"{STEP}/log_loss_within", "log_loss_within") == near(
        [0.3463966199] * 2
    )


def test_vector_19_of_weights_and_clusters():
    whole = evaluate(Y, y_prob=P, sample_weight=WHOLE)
    assert numbers(whole, *FOUR) == near([0.6567403459, 0.3684615385, 0.3881648549, 0.4339090909])
    assert errors(whole, *FOUR) == near([0.0623009695, 0.0451374778, 0.0608814326, 0.0709554263])
    repeated = evaluate(np.repeat(Y, WHOLE), y_prob=np.repeat(P, WHOLE, axis=0))
    assert numbers(whole, *FOUR) == near(numbers(repeated, *FOUR))
    assert errors(whole, *FOUR) == near(errors(repeated, *FOUR))
    halved = evaluate(Y, y_prob=P, sample_weight=np.array(WHOLE) / 2)
    assert numbers(halved, *FOUR) == near(numbers(whole, *FOUR))
    assert errors(halved, *FOUR) == near([0.0700354174, 0.0512415615, 0.0743526780, 0.0854532088])
    clustered = evaluate(Y, y_prob=P, groups=[0, 0, 1, 1, 2, 2, 3, 3, 4])
    correction = np.sqrt(5 / 4)  # the vector's errors are without it
    found = np.array(errors(clustered, *FOUR)) / correction
    assert found == near([0.0718211585, 0.0496992172, 0.0590967980, 0.0671924960])


def test_vector_19_of_two_models():
    first, second = evaluate(Y, y_prob=P), evaluate(Y, y_prob=SECOND)
    assert numbers(second, "log_loss", "brier") == near([0.6121153775, 0.3216666667])
    found = paired_differences(first, second, metrics=[f"probability/{name}" for name in FOUR])
    assert [each.difference for each in found.rows] == near(
        [0.0892180052, 0.0772222222, -0.0840999396, -0.1202884615]
    )
    assert [each.standard_error for each in found.rows] == near(
        [0.0684154851, 0.0499451002, 0.0617072001, 0.0738907741]
    )


def test_a_probability_of_0_for_the_actual_class_is_infinite_and_said_so():
    p = P.copy()
    p[8] = [0.5, 0.5, 0]
    evaluation = evaluate(Y, y_prob=p)
    assert np.isnan(evaluation.metrics["probability/log_loss"])
    assert (
        evaluation.undefined["probability/log_loss"]
        == "infinite: 1 row gives the actual class the probability 0"
    )
    assert np.isfinite(evaluation.metrics["probability/brier"])
    losses = evaluation.statistics.losses
    assert losses.impossible.tolist() == [[0, 0, 1]]
    assert float(losses.n @ losses.mean[:, 0]) == pytest.approx(5.1080276401, abs=6e-11)
    assert np.isfinite(
        evaluate(Y, y_prob=p, grouping=Grouping({"a": [0], "b": [1, 2]})).metrics[
            "probability/brier"
        ]
    )


def test_vector_22_of_ranks():
    evaluation = evaluate(Y, y_prob=P)
    ranks = np.repeat(np.arange(1, 4), evaluation.statistics.ranks.counts.sum(axis=0))
    assert sorted([1, 1, 1, 1, 1, 1, 2, 1, 3]) == ranks.tolist()
    found = numbers(evaluation, "multiclass/top_2_accuracy", "multiclass/mean_reciprocal_rank")
    assert found == near([0.8888888889, 0.8703703704])
    assert "multiclass/top_3_accuracy" not in evaluation.metrics
    tied = evaluate([0, 1, 2, 2], y_prob=[[.4, .4, .2], [.4, .4, .2], [.2, .4, .4], [1 / 3] * 3])  # fmt: skip
    assert tied.statistics.ranks.counts.sum(axis=0).tolist() == [1, 2, 1]


@pytest.mark.parametrize("k", [2, 4])
def test_they_are_those_of_scikit_learn(k):
    y, _, p = random_problem(k, 60, k, 0.0)
    evaluation = evaluate(y, y_prob=p, labels=list(range(k)))
    shares = np.tile(np.bincount(y) / len(y), (len(y), 1))
    brier = (
        brier_score_loss(y, p[:, 1])
        if k == 2
        else float(np.square(p - np.eye(k)[y]).sum(axis=1).mean())
    )
    expected = [log_loss(y, p), brier, 1 - log_loss(y, p) / log_loss(y, shares)]
    assert numbers(evaluation, "log_loss", "brier", "log_skill") == pytest.approx(
        expected, abs=1e-12
    )


@pytest.mark.slow
@settings(max_examples=15)
@given(st.integers(0, 2**32 - 1))
def test_the_chain_rule_holds_and_influences_give_the_errors(seed):
    y, _, p = random_problem(seed, 60, skill=0.0)
    evaluation = evaluate(
        y,
        y_prob=p,
        labels=[0, 1, 2, 3],
        grouping=Grouping({"a": [0, 3], "b": [1], "c": [2]}, name="g"),
    )
    whole, groups, within = numbers(
        evaluation, "log_loss", f"{STEP}/log_loss", f"{STEP}/log_loss_within"
    )
    assert whole == pytest.approx(groups + within, abs=1e-12)
    for name in evaluation.metrics:
        if name.startswith("probability/") or "rank" in name or "top_" in name:
            psi = evaluation.influence(name)
            assert psi.mean() == pytest.approx(0, abs=1e-9)
            assert np.sqrt((psi**2).sum()) / len(y) == pytest.approx(
                evaluation.standard_errors[name], rel=1e-8
            )


@pytest.mark.slow
def test_every_way_to_evaluate_gives_the_same_numbers(tmp_path):
    import pandas as pd

    y, _, p = random_problem(3, 500, skill=0.0)
    whole = evaluate(
        y, y_prob=p, labels=[0, 1, 2, 3], grouping=Grouping({"a": [0, 3], "b": [1, 2]}, name="g")
    )
    accumulator = Accumulator([0, 1, 2, 3], grouping=whole.grouping)
    for rows in np.array_split(np.arange(500), 7):
        accumulator.update(y[rows], y_prob=p[rows])
    frame = pd.DataFrame({"y": y, **{f"p_{k}": p[:, k] for k in range(4)}})
    table = evaluate_table(
        frame,
        y_true="y",
        y_prob=[f"p_{k}" for k in range(4)],
        labels=[0, 1, 2, 3],
        grouping=whole.grouping,
    )
    loaded = loads(whole.to_json())
    regrouped = evaluate(y, y_prob=p, labels=[0, 1, 2, 3]).regroup(whole.grouping)
    for other in (accumulator.compute(), table, loaded, regrouped):
        for name in whole.metrics:
            if name.startswith("probability/") or "rank" in name or "top_" in name:
                assert other.metrics[name] == pytest.approx(whole.metrics[name], rel=1e-12), name
                assert other.standard_errors[name] == pytest.approx(
                    whole.standard_errors[name], rel=1e-9
                ), name


def test_a_regrouping_without_rows_keeps_what_holds():
    y, _, p = random_problem(3, 60, skill=0.0)
    grouping = Grouping({"a": [0, 3], "b": [1, 2]}, name="g")
    kept = loads(evaluate(y, y_prob=p, labels=[0, 1, 2, 3], grouping=grouping).to_json())
    same = kept.regroup(Grouping({"B": [1, 2], "A": [3, 0]}, name="other"))
    assert same.metrics["probability/other/brier"] == kept.metrics["probability/g/brier"]
    other = kept.regroup(Grouping({"a": [0, 1], "b": [3, 2]}, name="g"))
    assert "probability/g/brier" not in other.metrics
    assert other.metrics["probability/brier"] == kept.metrics["probability/brier"]


SHARES = [0.5, 0.25, 0.25]


def test_skills_against_given_shares():
    given_shares = evaluate(Y, y_prob=P, reference=SHARES)
    log = -np.log(np.array(SHARES)[Y]).mean()
    square = (((np.array(SHARES) - np.eye(3)[Y]) ** 2).sum(axis=1)).mean()
    expected = [1 - 0.7013333827 / log, 1 - 0.3988888889 / square]
    assert numbers(given_shares, "log_skill", "brier_skill") == pytest.approx(expected, abs=1e-9)
    for name in ("log_skill", "brier_skill"):
        psi = given_shares.influence(f"probability/{name}")
        assert np.sqrt((psi**2).sum()) / 9 == pytest.approx(*errors(given_shares, name))
    own = np.bincount(Y) / 9
    same = evaluate(Y, y_prob=P, reference=dict(enumerate(own)))
    assert numbers(same, *FOUR) == near(numbers(evaluate(Y, y_prob=P), *FOUR))
    assert loads(given_shares.to_json()).metrics == given_shares.metrics
    grouped = evaluate(Y, y_prob=P, reference=SHARES, grouping=G)
    assert numbers(grouped, f"{STEP}/log_skill") == pytest.approx(
        [1 - 0.3549367628 / -np.log([0.75, 0.25])[np.array(Y) // 2].mean()], abs=1e-9
    )


@pytest.mark.parametrize(
    ("reference", "error", "said"),
    [
        ([0.5, 0.5], ValueError, "reference must have one share for each of 3 labels, got 2"),
        (
            [0.5, 0.6, -0.1],
            ValueError,
            "reference must be shares between 0 and 1 that sum to 1, got",
        ),
        ({0: 0.5, 7: 0.5}, ValueError, "reference must be for the labels .*, got 7"),
        (
            "train",
            TypeError,
            "reference must be shares of the classes, by label or in their order, got 'train'",
        ),
    ],
)
def test_wrong_references_are_refused(reference, error, said):
    with pytest.raises(error, match=said):
        evaluate(Y, y_prob=P, reference=reference)


def test_a_skill_without_a_reference_says_why():
    one = evaluate([0, 0], y_prob=[[0.9, 0.1], [0.8, 0.2]], labels=[0, 1])
    assert (
        one.undefined["probability/log_skill"]
        == "the reference is perfect: all rows belong to one class"
    )
    absent = evaluate([0, 1], y_prob=[[0.9, 0.1], [0.2, 0.8]], reference={0: 1.0})
    assert (
        absent.undefined["probability/log_skill"]
        == "the reference has a share of 0 for a class that occurs"
    )


def test_vector_21_of_average_precision():
    evaluation = evaluate(B20, y_prob=D20)
    assert numbers(evaluation, "binary/average_precision", "binary/ks") == near([0.8395896209, 0.5])
    assert errors(evaluation, "binary/average_precision") == near([0.0885294571])
    name = "binary/average_precision"
    assert on_scale("logit", evaluation.metrics[name], evaluation.standard_errors[name]) == near(
        (0.5906904514, 0.9499570556)
    )
    low, high = evaluation.intervals["binary/average_precision"]
    # one more row, half of it flipped, tells of errors not seen among 20
    assert 0.5 < low < 0.5906904514
    assert high == near(0.9499570556)
    weighted = evaluate(B20, y_prob=D20, sample_weight=W20)
    assert numbers(weighted, "binary/average_precision") == near([0.8727513228])
    assert errors(weighted, "binary/average_precision") == near([0.0669204341])
    psi = evaluation.influence("binary/average_precision")
    assert np.sqrt((psi**2).sum()) / 20 == pytest.approx(0.0885294571, abs=6e-11)
    assert evaluation.metrics["binary/average_precision"] == pytest.approx(
        average_precision_score(B20, D20), abs=1e-12
    )


TV6_Y = [0, 1, 1, 2, 0, 2, 2, 1]
TV6_P = np.array([
    [.50, .30, .20], [.10, .60, .30], [.20, .30, .50], [.40, .35, .25], [.70, .10, .20], [.30, .25, .45],
    [.05, .15, .80], [.60, .30, .10],
])  # fmt: skip
PRECISION = [1, 1, 2 / 3, 0.75, 0.6, 0.5, 4 / 7, 0.5]
RECALL = np.array([1, 2, 2, 3, 3, 3, 4, 4]) / 6


def of_rows_of_vector_6(accept: object) -> Evaluation:
    grouping = Grouping({"no": [0], "yes": [1, 2]}, accept, positive="yes")
    return evaluate(TV6_Y, y_prob=TV6_P, grouping=grouping)


AP = (
    "binary/average_precision",
    "binary/average_precision_ceiling",
    "binary/average_precision_normalized",
)


def test_vector_21_with_mismatches():
    strict = of_rows_of_vector_6("strict")
    assert numbers(strict, *AP) == near([0.5535714286, 0.6666666667, 0.8303571429])
    assert errors(strict, AP[0], AP[2]) == near([0.2264392876, 0.1366694452])
    expected = [
        -0.1088435374,
        0.7602040816,
        -1.0969387755,
        -0.8469387755,
        0,
        0.4268707483,
        0.7602040816,
        0.1054421769,
    ]
    assert strict.influence(AP[0]).tolist() == near(expected)
    curve = strict.precision_recall
    found, expected = (
        sorted(zip(r, p, strict=True))
        for r, p in ((curve.recall, curve.precision), (RECALL, PRECISION))
    )
    assert found == [pytest.approx(pair, abs=1e-12) for pair in expected]
    relaxed = of_rows_of_vector_6("relaxed")
    assert [*numbers(relaxed, AP[0]), *errors(relaxed, AP[0])] == near([0.9761904762, 0.0309567414])


def test_the_steps_that_are_drawn_have_the_area_that_is_said():
    strict = of_rows_of_vector_6("strict")
    (axes,) = strict.figures()["precision_recall"].axes
    line = axes.lines[0]
    assert line.get_drawstyle() == "steps-pre"
    recall, precision = line.get_data()
    area = float(np.diff(recall) @ precision[1:])
    assert area == pytest.approx(strict.metrics[AP[0]])
    assert line.get_label().startswith(f"average precision {area:.3f} [")
    chance = axes.lines[1].get_data()
    assert chance[0][1] * chance[1][1] == pytest.approx(strict.precision_recall.chance)
    constant = evaluate([0, 1, 1], y_prob=[0.5] * 3)
    assert constant.metrics[AP[0]] == pytest.approx(constant.precision_recall.chance)


def test_the_error_bound_of_a_grid_holds():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 4000)
    p = np.clip(rng.normal(0.4 + 0.2 * y, 0.05), 0, 1)
    exact = evaluate(y, y_prob=p)
    cells = replace(exact.statistics, scores=exact.statistics.scores.to_grid())
    grid = replace(exact, statistics=cells, rows=None)
    name = "binary/average_precision"
    said = r"the average precision is within (\S+) of the exact value"
    (bound,) = re.findall(said, " ".join(grid.warnings))
    assert 0 < abs(grid.metrics[name] - exact.metrics[name]) <= float(bound) < 0.1
    assert not re.search(said, " ".join(exact.warnings))


def said_of_log_loss(evaluation: Evaluation) -> str:
    (found,) = [sentence for sentence in verdict(evaluation) if "log loss" in sentence]
    return found


@pytest.mark.slow
def test_the_sentence_on_the_log_loss_agrees_with_its_numbers():
    good = evaluate(Y, y_prob=P)
    low, high = good.intervals["probability/log_loss"]
    assert said_of_log_loss(good) == (
        f"The log loss of the probabilities is 0.701 [{low:.3f}, {high:.3f}], 33.9% lower than the log "
        "loss of always predicting the class shares."
    )
    assert "than the log loss of always predicting the reference class shares." in said_of_log_loss(
        evaluate(Y, y_prob=P, reference=SHARES)
    )
    y, _, p = random_problem(0, 400, skill=0.0)
    bad = evaluate(y, y_prob=p, labels=[0, 1, 2, 3])
    assert bad.intervals["probability/log_skill"][1] < 0
    assert (
        f"{-100 * bad.metrics['probability/log_skill']:.1f}% higher than the log loss of always"
        in said_of_log_loss(bad)
    )
    flat = evaluate(y, y_prob=np.full((400, 4), 0.25) + 0.01 * (p - 0.25), labels=[0, 1, 2, 3])
    assert said_of_log_loss(flat).endswith(
        "which is not clearly different from the log loss of always predicting the class shares."
    )
    p[0] = np.eye(4)[(y[0] + 1) % 4]
    infinite = evaluate(y, y_prob=p, labels=[0, 1, 2, 3])
    assert said_of_log_loss(infinite) == (
        "The log loss is infinite: 1 row gives the actual class the probability 0."
    )


def test_a_run_with_an_infinite_loss_is_last_in_a_ranking():
    y, _, p = random_problem(1, 200, skill=0.0)
    q = p.copy()
    q[0] = np.eye(4)[(y[0] + 1) % 4]
    runs = {"good": p, "bad": p[::-1], "infinite": q}
    made = {name: evaluate(y, y_prob=prob, labels=[0, 1, 2, 3]) for name, prob in runs.items()}
    comparison = compare(made, rank_by="probability/log_loss")
    assert made["infinite"].infinite == {"probability/log_loss", "probability/log_skill"}
    assert [(left.run.name, left.last) for left in comparison.left_out] == [("infinite", True)]
    assert comparison.to_frame()["status"].tolist()[-1] == "last"
    why = "probability/log_loss is infinite: 1 row gives the actual class the probability 0"
    assert f"Last: “infinite” ({why})." in comparison.summary()
    assert "Last: “infinite” " in compare(made, rank_by="probability/log_skill").summary()
    assert "infinite" in [run.name for run in compare(made, rank_by="probability/brier").runs]
