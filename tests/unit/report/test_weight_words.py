"""Sums of sampling weights are called weight, not samples, and have two digits."""

from __future__ import annotations

import re

import numpy as np

from cmtrack import evaluate
from cmtrack.report import verdict
from cmtrack.tracking.names import chosen_metrics


def test_weights_are_not_called_samples() -> None:
    rng = np.random.default_rng(0)
    y = np.arange(150) % 3
    predicted = np.where(rng.random(150) < 0.3, (y + 1) % 3, y)
    evaluation = evaluate(y, predicted, sample_weight=rng.lognormal(size=150))
    said = " ".join(verdict(evaluation))
    assert re.search(
        r"Most frequent confusion: “\d” was predicted as “\d”, with weight \d+ \(", said
    )
    assert re.search(r"Best class by F1: “\d” \(F1 0\.\d+, weight \d+\)", said)
    assert not re.search(r"\d\.\d+ samples of class", said)
    rare = next(text for text in evaluation.warnings if "effective rows" in text)
    assert re.findall(r"n = ([\d.]+)", rare)
    assert all(len(number.replace(".", "")) <= 2 for number in re.findall(r"n = ([\d.]+)\)", rare))
    plain = " ".join(verdict(evaluate(y, predicted)))
    assert re.search(r"Most frequent confusion: \d+ samples of class", plain)


def test_an_asterisk_stands_for_all_metrics() -> None:
    evaluation = evaluate([0, 1] * 20, [0, 1] * 18 + [1, 0] * 2)
    assert chosen_metrics(evaluation, ["*"]) == chosen_metrics(evaluation, "all")
