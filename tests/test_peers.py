"""The same numbers as model-diagnostics for the parts of a score, and as fairlearn for metrics by segment."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from fairlearn.metrics import MetricFrame
from model_diagnostics.scoring import LogLoss, SquaredError, decompose
from samples import random_problem
from sklearn.metrics import accuracy_score, precision_score, recall_score

from cmtrack import evaluate

NAMES = ("miscalibration", "discrimination", "uncertainty", "score")


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", ["brier", "log"])
@pytest.mark.parametrize("digits", [2, 12])
def test_the_parts_of_a_score_are_model_diagnostics(loss: str, weighted: bool, digits: int) -> None:
    rng = np.random.default_rng(digits)
    s = np.clip(np.round(rng.beta(2, 3, 700), digits), 0.005, 0.995)
    y = (rng.random(700) < s**1.4).astype(int)
    w = rng.gamma(2, 1, 700) if weighted else None
    curve = evaluate(y, y_prob=s, sample_weight=w).calibration
    assert curve is not None
    function: Any = SquaredError() if loss == "brier" else LogLoss()
    found = decompose(y, s, weights=w, scoring_function=function).to_dicts()[0]
    ours = getattr(curve, loss)
    for name in NAMES:
        assert getattr(ours, name) == pytest.approx(found[name], abs=1e-10), name


def test_metrics_by_segment_are_fairlearns() -> None:
    y, predicted, p = random_problem(3, n=900, k=2)
    region = np.random.default_rng(0).choice(["north", "south", "east", "west"], 900, p=[0.4, 0.3, 0.2, 0.1])
    evaluation = evaluate(y, predicted, y_prob=p, segments=pd.DataFrame({"region": region}))
    peers = {
        "multiclass/accuracy": accuracy_score,
        "binary/recall": recall_score,
        "binary/precision": precision_score,
    }
    frame = MetricFrame(metrics=peers, y_true=y, y_pred=predicted, sensitive_features=region)
    table = evaluation.segments["region"]
    for name in peers:
        own = table.to_frame([name]).set_index("segment")["value"]
        for segment, value in frame.by_group[name].items():
            assert own[segment] == pytest.approx(value, abs=1e-12)
            assert table[segment].metrics[name] == pytest.approx(value, abs=1e-12)
        disparity = table.disparity(name)
        assert disparity.gap == pytest.approx(frame.difference()[name], abs=1e-12)
        assert disparity.ratio == pytest.approx(frame.ratio()[name], abs=1e-12)
