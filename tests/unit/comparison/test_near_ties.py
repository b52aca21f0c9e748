"""Scores that differ by rounding only, and shares of other rows: what looks like a difference and is none."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from cmtrack import Evaluation, compare, evaluate, paired_differences


def scored(y: np.ndarray, score: np.ndarray) -> Evaluation:
    return evaluate(y, y_prob=np.column_stack((1 - score, score)), labels=[0, 1], positive=1)


@pytest.mark.parametrize("metric", ["binary/roc_auc", "binary/average_precision"])
def test_runs_that_differ_in_the_order_of_near_ties_only_are_not_told_apart(metric: str) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    ties = np.clip(np.round(0.25 + 0.3 * y + 0.4 * rng.random(400), 1), 0.1, 0.9)
    # rounding that happens to favour the actual class
    lucky = scored(y, ties * np.where(y == 1, 1 + 1e-7, 1 - 1e-7))
    plain, other = scored(y, ties), scored(y, np.clip(ties + 0.2 * rng.random(400), 0.0, 1.0))
    assert lucky.metrics[metric] > plain.metrics[metric] + 0.01
    found = paired_differences(lucky, plain, metrics=[metric])[metric]
    assert (found.pvalue, found.reason) == (1.0, "no row differs")
    assert math.isnan(found.low)
    comparison = compare({"lucky": lucky, "plain": plain}, rank_by=metric)
    assert [run.tied for run in comparison.runs] == [True, True]
    assert math.isfinite(paired_differences(lucky, other, metrics=[metric])[metric].pvalue)


def test_float32_and_the_same_values_as_float64_have_the_same_curves() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    single = np.round(0.2 + 0.3 * y + 0.4 * rng.random(300), 2).astype(np.float32)
    tables = [np.column_stack((1 - score, score)) for score in (single, single.astype(np.float64))]
    first, second = (evaluate(y, y_prob=table, labels=[0, 1], positive=1) for table in tables)
    for curve in ("roc", "precision_recall"):
        pd.testing.assert_frame_equal(
            getattr(first, curve).to_frame(), getattr(second, curve).to_frame()
        )
    for metric in ("binary/roc_auc", "binary/average_precision"):
        assert first.metrics[metric] == second.metrics[metric]


def test_a_precision_of_1_from_one_row_is_not_better_than_the_share_of_all_rows() -> None:
    y = np.arange(100) < 30
    one, everyone = evaluate(y, np.arange(100) < 1), evaluate(y, np.ones(100, dtype=bool))
    found = paired_differences(one, everyone, metrics=["binary/precision"])["binary/precision"]
    assert found.difference == pytest.approx(0.7)
    assert found.pvalue > 0.05  # 3 of 10 rows are right by chance
    assert found.low < 0
