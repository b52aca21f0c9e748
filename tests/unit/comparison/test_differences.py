"""Two models on the same rows."""

from __future__ import annotations

import math
import os
from dataclasses import replace

import mlflow
import numpy as np
import pytest
from scipy.stats import binomtest

from cmtrack import evaluate, load_evaluation, log_evaluation, paired_differences
from cmtrack.comparison import mcnemar, randomization_test
from support.problems import random_models

pytestmark = pytest.mark.usefixtures("undrawn")

Y = [1, 0, 0, 1, 0, 1, 0, 0, 0, 1]
FIRST = [0.9, 0.2, 0.4, 0.6, 0.1, 0.3, 0.35, 0.05, 0.5, 0.8]
SECOND = [0.8, 0.3, 0.2, 0.7, 0.2, 0.55, 0.3, 0.1, 0.45, 0.6]


def two_models(seed: int, gain: float = 0.0):
    y, (first, second) = random_models((1.0 + gain, 1.0), n=400, seed=seed, common=0.85)
    return y, first, second


def test_the_vectors_of_two_scores():
    # TV-16: ten samples, two scores; the second separates perfectly
    found = paired_differences(evaluate(Y, y_prob=SECOND), evaluate(Y, y_prob=FIRST))
    assert found.paired
    row = found["spcc/binary"]
    assert row.first == pytest.approx(0.8846006425, abs=1e-10)
    assert row.difference == pytest.approx(0.1852184437, abs=1e-10)
    assert row.standard_error == pytest.approx(0.1295513609, abs=1e-10)
    assert found["prevalence/bias"].standard_error == pytest.approx(0.0435889894, abs=1e-10)
    area = found["binary/roc_auc"]
    assert (area.second, area.first) == pytest.approx((0.875, 1.0))
    assert area.difference / area.standard_error == pytest.approx(0.9128709292, abs=1e-10)


def test_mcnemar_vector_and_reference():
    # TV-18
    found = mcnemar(7, 15)
    assert found.statistic == pytest.approx(2.9090909, abs=1e-7)
    assert found.corrected_statistic == pytest.approx(2.2272727, abs=1e-7)
    assert found.exact_pvalue == pytest.approx(0.1338005066, abs=1e-10)
    assert found.midp_pvalue == pytest.approx(0.0931396484, abs=1e-10)
    for b, c in ((0, 5), (3, 3), (12, 4), (0, 1)):
        assert mcnemar(b, c).exact_pvalue == pytest.approx(binomtest(b, b + c).pvalue)
        assert mcnemar(b, c) == replace(mcnemar(c, b), only_first=b, only_second=c)
        assert 0 < mcnemar(b, c).midp_pvalue < mcnemar(b, c).exact_pvalue <= 1
    assert mcnemar(0, 0).midp_pvalue == 1
    with pytest.raises(ValueError, match="must not be negative, got -1"):
        mcnemar(-1, 3)


@pytest.mark.slow
def test_discordant_rows_are_counted():
    y, p, q = two_models(0)
    first, second = evaluate(y, y_prob=p), evaluate(y, y_prob=q)
    test = paired_differences(first, second).mcnemar
    right = p.argmax(axis=1) == y, q.argmax(axis=1) == y
    assert test.only_first == (right[0] & ~right[1]).sum()
    assert test.only_second == (~right[0] & right[1]).sum()


def test_a_model_does_not_differ_from_itself():
    y, p, _ = two_models(0)
    found = paired_differences(evaluate(y, y_prob=p), evaluate(y, y_prob=p))
    known = [row for row in found.rows if math.isfinite(row.standard_error)]
    assert len(known) > 40
    assert all(
        row.difference == 0 and row.standard_error == pytest.approx(0, abs=1e-12) for row in known
    )


def test_models_do_not_differ_in_numbers_of_the_labels_alone():
    y, first, second = two_models(3)
    sides = (
        [evaluate(actual, y_prob=p, labels=[0, 1, 2]) for p in (first, second)]
        for actual in (y, 0 * y)
    )
    names = [name for k in range(3) for name in (f"prevalence/{k}/actual", f"class/{k}/support")]
    rows = [row for pair in sides for row in paired_differences(*pair, metrics=names).rows]
    for row in rows:
        assert (row.difference, row.standard_error, row.pvalue, row.reason) == (
            0,
            0,
            1,
            "no row differs",
        )
        assert np.isnan([row.low, row.high]).all()


@pytest.mark.slow
def test_exchange_changes_signs_only():
    y, p, q = two_models(0)
    one = paired_differences(evaluate(y, y_prob=p), evaluate(y, y_prob=q))
    other = paired_differences(evaluate(y, y_prob=q), evaluate(y, y_prob=p))
    for row in one.rows:
        assert other[row.metric].difference == pytest.approx(-row.difference, nan_ok=True)
        assert other[row.metric].standard_error == pytest.approx(row.standard_error, nan_ok=True)


SIMULATED = (
    "multiclass/accuracy",
    "multiclass/f1_macro",
    "multiclass/matthews_corrcoef",
    "spcc/ovr_fisher",
    "class/0/recall",
)


@pytest.fixture(scope="module")
def simulated():
    """Differences of 80 or 200 pairs of equally good models, and their standard errors, by metric."""
    rows = []
    for seed in range(200 if os.environ.get("CMTRACK_TEST_ALL") else 80):
        y, p, q = two_models(seed)
        pair = (evaluate(y, y_prob=one, sections=["multiclass", "class", "spcc"]) for one in (p, q))
        found = paired_differences(*pair, metrics=list(SIMULATED))
        rows.append([found[metric] for metric in SIMULATED])
    return {
        metric: (
            np.array([row.difference for row in column]),
            np.array([row.standard_error for row in column]),
        )
        for metric, column in zip(SIMULATED, zip(*rows, strict=True), strict=True)
    }


@pytest.mark.slow
@pytest.mark.parametrize("metric", SIMULATED)
def test_paired_errors_are_those_of_a_simulation_and_cover(simulated, metric):
    gaps, errors = simulated[metric]
    assert np.mean(errors) == pytest.approx(np.std(gaps), rel=3.65 / math.sqrt(2 * len(gaps)))
    covered = np.mean(np.abs(gaps) <= 1.96 * errors)
    noise = math.sqrt(0.05 * 0.95 / len(gaps))
    assert 0.95 - 3.9 * noise <= covered <= 0.95 + 2.75 * noise


@pytest.mark.slow
def test_unpaired_is_said():
    y, p, q = two_models(0)
    whole = evaluate(y, y_prob=p)
    stored = replace(evaluate(y, y_prob=q), rows=None)
    found = paired_differences(whole, stored)
    assert not found.paired
    assert "the second evaluation has no rows" in found.reason
    assert found.mcnemar is None
    wide = found["multiclass/accuracy"].standard_error
    assert wide == pytest.approx(
        math.hypot(
            whole.standard_errors["multiclass/accuracy"],
            stored.standard_errors["multiclass/accuracy"],
        )
    )
    assert (
        wide
        > paired_differences(whole, evaluate(y, y_prob=q))["multiclass/accuracy"].standard_error
    )
    other = evaluate(y[::-1], y_prob=q[::-1])
    assert "different rows" in paired_differences(whole, other).reason
    with pytest.raises(ValueError, match="groups need paired rows"):
        paired_differences(whole, other, groups=np.arange(400))


@pytest.mark.slow
def test_row_ids_tell_rows_of_equal_labels_apart():
    y, p, q = two_models(0)
    ids = [f"person {i}" for i in range(400)]
    first, same = evaluate(y, y_prob=p, row_ids=ids), evaluate(y, y_prob=q, row_ids=ids)
    assert paired_differences(first, same).paired
    assert paired_differences(first, evaluate(y, y_prob=q)).paired
    other_ids = [f"visitor {i}" for i in range(400)]
    for row_ids, reason in (
        (other_ids, "row ids differ"),
        (ids[::-1], "different actual labels in the two evaluations"),
    ):
        other = paired_differences(first, evaluate(y, y_prob=q, row_ids=row_ids))
        assert not other.paired
        assert reason in other.reason
    halves = [
        evaluate(y[part], y_prob=p[part], row_ids=ids[part])
        for part in (slice(150), slice(150, 400))
    ]
    assert (halves[0] + halves[1]).statistics.row_ids == first.statistics.row_ids
    with pytest.raises(ValueError, match="row_ids must not repeat, got 'a' more than once"):
        evaluate([0, 1, 1], [0, 1, 0], row_ids=["a", "b", "a"])
    with pytest.raises(ValueError, match="row_ids must have one entry per row, got 2 for 3 rows"):
        evaluate([0, 1, 1], [0, 1, 0], row_ids=["a", "b"])


@pytest.mark.slow
def test_groups_widen_the_difference():
    y, p, q = two_models(0)
    y4, p4, q4 = (np.repeat(a, 4, axis=0) for a in (y, p, q))
    single = paired_differences(evaluate(y, y_prob=p), evaluate(y, y_prob=q))
    grouped = paired_differences(
        evaluate(y4, y_prob=p4), evaluate(y4, y_prob=q4), groups=np.repeat(np.arange(400), 4)
    )
    name = "multiclass/matthews_corrcoef"
    few = np.sqrt(400 / 399)  # CR1
    assert grouped[name].standard_error == pytest.approx(
        single[name].standard_error * few, rel=1e-6
    )


def test_an_unknown_metric_is_named():
    y, p, q = two_models(0)
    with pytest.raises(ValueError, match="in both evaluations, but \\['multiclass/acuracy'\\]"):
        paired_differences(
            evaluate(y, y_prob=p), evaluate(y, y_prob=q), metrics=["multiclass/acuracy"]
        )


@pytest.mark.slow
def test_randomization_agrees_with_the_paired_error():
    y, p, q = two_models(3, gain=0.25)
    first, second = (evaluate(y, y_prob=one, sections=["multiclass"]) for one in (p, q))
    row = paired_differences(first, second, metrics=["multiclass/matthews_corrcoef"]).rows[0]
    found = randomization_test(
        first, second, "multiclass/matthews_corrcoef", n_resamples=100, seed=1
    )
    assert found == pytest.approx(row.pvalue, abs=0.06)
    assert randomization_test(first, first, "multiclass/accuracy", n_resamples=20) == 1.0
    with pytest.raises(ValueError, match="same rows"):
        randomization_test(first, replace(second, rows=None), "multiclass/accuracy")


@pytest.mark.slow
def test_runs_keep_their_rows_for_a_paired_comparison(store):
    y, p, q = two_models(0)
    ids = []
    for probabilities in (p, q):
        with mlflow.start_run() as run:
            log_evaluation(y, y_prob=probabilities, groups=np.arange(400) // 2, strict=True)
        ids.append(run.info.run_id)
    found = paired_differences(*(load_evaluation(run_id, rows=True) for run_id in ids))
    fresh = paired_differences(
        *(evaluate(y, y_prob=probabilities, groups=np.arange(400) // 2) for probabilities in (p, q))
    )
    assert found.paired
    for name in ("multiclass/accuracy", "spcc/ovr_fisher"):
        assert found[name].standard_error == pytest.approx(fresh[name].standard_error, rel=1e-5)
    assert found.mcnemar == fresh.mcnemar
