"""Metrics of counts against numbers that the version before the ``Metric`` object computed, on random tables.

``tests/data/count_metrics.json`` holds, by table and metric: value, standard error, the ends of the interval, and the
sum over the rows of the influence times a fixed number of each row. It was written by
``python tests/references/test_metric_golden.py`` with the code of that version; it is not to be written anew with code
under test.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cmtrack import Evaluation, Grouping, evaluate, evaluate_spans
from cmtrack.metrics import lookup
from support.problems import random_guesses, random_labels

GOLDEN = Path(__file__).parents[1] / "data" / "count_metrics.json"
CHAIN = Grouping({"a": [0, 1], "b": [2], "c": [3, 4]}, "strict", name="abc").then(
    Grouping({"rest": ["a", "b"], "c": ["c"]}, "relaxed", name="two")
)
CASES = {
    "two classes": (2, 40, None, "none"),
    "two classes, fractions": (2, 60, None, "fractions"),
    "five classes": (5, 90, None, "none"),
    "five classes, whole weights": (5, 90, None, "whole"),
    "five classes, few rows": (5, 9, CHAIN, "none"),
    "chain": (5, 120, CHAIN, "none"),
    "chain, fractions": (5, 120, CHAIN, "fractions"),
    "perfect": (3, 0, None, "none"),
    "one class predicted": (3, -1, None, "none"),
    "spans": (3, 50, None, "spans"),
}


def evaluation_of(case: str) -> Evaluation:
    k, n, grouping, kind = CASES[case]
    rng = np.random.default_rng(sorted(CASES).index(case))
    if n <= 0:
        y = np.repeat(np.arange(k), 7)
        return evaluate(y, y if n == 0 else np.zeros_like(y), labels=range(k))
    y = random_labels(n, k, rng, np.arange(1, k + 1) / (k * (k + 1) / 2))
    p = random_guesses(y, k, 0.6, rng)
    if kind == "spans":
        spans = [(int(i) % 11, 10 * int(i), 10 * int(i) + 5, f"x{int(c)}") for i, c in enumerate(y)]
        moved = [
            (d, start, end, f"x{int(c)}") for (d, start, end, _), c in zip(spans, p, strict=True)
        ]
        return evaluate_spans(spans[:-5], moved[4:])
    weights = {"none": None, "whole": rng.integers(0, 4, n), "fractions": rng.gamma(2.0, 1.0, n)}[
        kind
    ]
    return evaluate(y, p, labels=range(k), grouping=grouping, sample_weight=weights)


def numbers_of(evaluation: Evaluation) -> dict[str, list[float | None]]:
    out: dict[str, list[float | None]] = {}
    errors, intervals = evaluation.standard_errors, evaluation.intervals
    for name, value in evaluation.metrics.items():
        psi = evaluation.influence(name) if math.isfinite(value) else None
        along = None if psi is None else float(psi @ np.cos(np.arange(len(psi)))) / len(psi)
        own = [value, errors.get(name), *intervals.get(name, (None, None)), along]
        out[name] = [x if x is not None and math.isfinite(x) else None for x in own]
    return out


@pytest.mark.parametrize("case", CASES)
def test_numbers_are_those_of_the_version_before(case: str) -> None:
    expected: dict[str, Any] = json.loads(GOLDEN.read_text())[case]
    found = numbers_of(evaluation_of(case))
    assert set(found) >= set(expected)
    for name, numbers in expected.items():
        for what, ours, theirs in zip(
            ("value", "error", "low", "high", "influence"), found[name], numbers, strict=True
        ):
            if theirs is None and what in ("low", "high") and numbers[0] is not None:
                # a bounded metric without error has an interval now, by the number of samples
                continue
            if "fractions" in case and what in ("low", "high"):
                # intervals of weighted samples take the smaller of Kish's size and that of the errors now
                continue
            if (
                "fractions" in case
                and what == "error"
                and lookup(name).interval in ("wilson", "count")
            ):
                # shares of weighted samples have the error of their influence now, not Kish's size
                continue
            assert ours == (
                theirs if theirs is None else pytest.approx(theirs, rel=1e-12, abs=1e-12)
            ), (name, what)


if __name__ == "__main__":
    GOLDEN.write_text(json.dumps({case: numbers_of(evaluation_of(case)) for case in CASES}) + "\n")
    sys.stdout.write(f"{GOLDEN.stat().st_size} bytes\n")
