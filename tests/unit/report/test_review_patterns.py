"""Rows as the review's page has them: patterns of what every run answers."""

from __future__ import annotations

import base64

import numpy as np
import pytest

from cmtrack import evaluate
from cmtrack.report.review import patterns as module
from cmtrack.report.review.patterns import patterns
from support.problems import random_models

N = 200
OFFERED = [0.25, 0.5, 0.75]


def runs(**options):
    y, models = random_models([1.0, 1.5, 2.0], n=N, k=2)
    return y, [evaluate(y, y_prob=own, labels=[0, 1], positive=1, **options) for own in models]


def opened(table):
    codes = np.frombuffer(base64.b64decode(table["codes"]), dtype=np.uint8).reshape(-1, table["width"])
    assert len(codes) == len(table["times"])
    return codes, np.array(table["times"]) * (1.0 if table["weights"] is None else np.array(table["weights"]))


@pytest.mark.parametrize("kind", ["", "frequency", "sampling"])
def test_patterns_hold_what_every_run_answers_and_at_every_threshold(kind):
    weights = np.random.default_rng(1).integers(0, 3, N) * (0.7 if kind == "sampling" else 1)
    side = np.arange(N) % 3
    given = {"sample_weight": weights, "weights_are": kind} if kind else {}
    y, evaluations = runs(segments={"side": side}, **given)
    found = patterns(evaluations, ["side", "none"], OFFERED)
    assert found["columns"] == ["side"]
    codes, times = opened(found["rows"])
    assert len(codes) < N / 2
    for r, one in enumerate(evaluations):
        counted = np.zeros((2, 2))
        np.add.at(counted, (codes[:, 1], codes[:, 2 + r]), times)
        assert counted == pytest.approx(one.confusion_matrix.counts)
    assert np.bincount(codes[:, 0], times) == pytest.approx(np.bincount(side, weights if kind else None))
    codes, times = opened(found["scored"])
    for r, one in enumerate(evaluations):
        scores = one.rows.probabilities[:, 1]
        for place, threshold in enumerate(OFFERED):
            called = ((codes[:, 1 + r] & 127) > place) & (codes[:, 0] == 1)
            own = np.ones(N) if not kind else weights
            assert times[called].sum() == pytest.approx(own[(scores >= threshold) & (y == 1)].sum())


def test_without_rows_that_can_be_set_side_by_side_there_are_none(monkeypatch):
    _, evaluations = runs()
    assert patterns(evaluations[:1], [], OFFERED) == {}
    assert patterns(runs(groups=np.arange(N) // 4)[1], [], OFFERED) == {}
    other = evaluate([0, 1] * 100, [0, 1] * 100, labels=[0, 1], positive=1)
    assert patterns([*evaluations, other], [], OFFERED) == {}
    assert set(patterns(evaluations, [], [])) == {"rows", "columns"}
    with monkeypatch.context() as patched:
        patched.setattr(module, "MAX_RUNS", 2)
        assert patterns(evaluations, [], OFFERED) == {}
    monkeypatch.setattr(module, "MAX_BYTES", 300)
    assert set(patterns(evaluations, [], OFFERED)) == {"rows", "columns"}  # those of scores are more
    monkeypatch.setattr(module, "MAX_BYTES", 20)
    assert patterns(evaluations, [], OFFERED) == {}
