"""No interval that is printed, gated or stored leaves the range of its metric: random reviews, walked through."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cmtrack import Metric, compare, evaluate, paired_differences
from cmtrack.comparison import Blocks, Candidate, Criterion, judge, rank_models
from cmtrack.tracking import TrackedRun


def _triage(b):
    return 3 * b.tp / (b.tp + b.fn + b.imp)


OWN = Metric("custom/triage", _triage, of="binary", low=0, high=3)
RANKED = (
    "multiclass/accuracy",
    "binary/matthews_corrcoef",
    "binary/recall",
    "binary/precision",
    "binary/fnr",
    "custom/triage",
    "binary/roc_auc",
    "probability/brier",
)


def review(seed: int) -> dict[str, Any]:
    """Two to five runs of few rows, some of them nearly the same; with patients or weights, and segments."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(20, 160))
    y = rng.integers(0, 2, n)
    y[:2] = 0, 1
    base = np.clip(
        0.5 + (y - 0.5) * rng.uniform(0.1, 0.9) + rng.normal(0, rng.uniform(0.05, 0.4), n),
        0.01,
        0.99,
    )
    options: dict[str, Any] = {"segments": {"region": np.array(list("ABC"))[rng.integers(0, 3, n)]}}
    kind = rng.integers(4)
    if kind == 1:
        options["groups"] = np.arange(n) // int(rng.integers(2, 12))
    if kind == 2:
        options["sample_weight"] = rng.integers(1, 4, n)
    if kind == 3:
        options["sample_weight"] = rng.uniform(0.1, 3, n)
    runs = {}
    for k in range(int(rng.integers(2, 6))):
        scores = base.copy()
        changed = rng.random(n) < rng.choice([0.02, 0.1, 0.6])
        scores[changed] = rng.uniform(0.01, 0.99, int(changed.sum()))
        runs[f"run {k}"] = evaluate(
            y, y_prob=np.column_stack((1 - scores, scores)), extra_metrics=[OWN], **options
        )
    return runs


def spans(value: Any, here: str = "") -> Iterator[tuple[str, float, float]]:
    """Every pair of ends in plain data, by the names that end in "low" and "high", and where it stands."""
    if isinstance(value, dict):
        for name, low in value.items():
            if (
                isinstance(name, str)
                and name.endswith("low")
                and not name.startswith(("rank", "shift"))
            ):
                ends = [low, value.get(f"{name[:-3]}high")]
                arrays = [end if isinstance(end, list) else [end] for end in ends]
                for one, other in zip(*arrays, strict=True):
                    yield (
                        f"{here}/{name}",
                        *(math.nan if end is None else float(end) for end in (one, other)),
                    )
        for name, part in value.items():
            yield from spans(part, f"{here}/{name}")
    elif isinstance(value, list):
        for part in value:
            yield from spans(part, here)


def inside(low: float, high: float, most: tuple[float, float]) -> bool:
    slack = 1e-12 * (1 + abs(most[0]) if math.isfinite(most[0]) else 1)
    return math.isnan(low) or (most[0] - slack <= low <= high + slack and high <= most[1] + slack)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100 if os.environ.get("CMTRACK_TEST_ALL") else 5))
def test_no_interval_of_a_review_leaves_the_range_of_its_metric(seed):
    runs = review(seed)
    metric = RANKED[seed % len(RANKED)]
    first, second = list(runs.values())[:2]
    catalog = {name: first.catalog.lookup(name) for name in first.metrics}
    for one in runs.values():
        for name, ends in one.intervals.items():
            if name in catalog:
                assert inside(*ends, (catalog[name].low, catalog[name].high)), name
    for other in (second, replace(second, rows=None)):
        for row in paired_differences(first, other).rows:
            widest = (
                catalog[row.metric].high - catalog[row.metric].low
                if row.metric in catalog
                else math.inf
            )
            assert inside(row.low, row.high, (-widest, widest)), row
            assert math.isnan(row.low) or row.low - 1e-12 <= row.difference <= row.high + 1e-12, row
            assert row.reason == "" or math.isnan(row.low), row
    if any(not math.isfinite(one.metrics[metric]) for one in runs.values()):
        return
    comparison = compare(runs, rank_by=metric, segments="region")
    entry = catalog[metric]
    most = (-(entry.high - entry.low), entry.high - entry.low)
    for run in comparison.runs:
        assert inside(run.difference_low, run.difference_high, most), run.name
        for ends in ((run.low, run.high), (run.adjusted_low, run.adjusted_high)):
            assert inside(*ends, (entry.low, entry.high)), run.name
    for row in comparison.segments.to_frame().itertuples():
        assert inside(row.low, row.high, most), row
    data = json.loads(json.dumps(comparison.to_dict(), allow_nan=False))
    known = list(spans({"runs": data["rankings"], "segments": data["segments"]}))
    assert known
    for where, low, high in known:
        of_value = where in ("/runs/runs/low", "/runs/runs/adjusted_low")
        assert inside(low, high, (entry.low, entry.high) if of_value else most), where
    for end in ("low", "high"):
        for gate in (
            f"{metric}.difference.{end} >= 0",
            f"segment/region/*/{metric}.difference.{end} >= 0",
        ):
            for check in judge(first, second, require=[gate]).checks:
                assert math.isnan(check.value) or most[0] <= check.value <= most[1], gate


def test_few_folds_do_not_leave_the_range():
    y = np.arange(100) % 2
    table = []
    for model, hits in {"a": [100, 20], "b": [40, 95]}.items():
        for fold, right in enumerate(hits):
            predicted = np.where(np.arange(100) < 100 - right, 1 - y, y)
            rows = [np.concatenate((part, [0] * (fold + 1))) for part in (y, predicted)]
            run = TrackedRun(f"{model}{fold}", model, params={"model": model, "fold": str(fold)})
            table.append(Candidate(run, evaluate(*rows), ()))
    ranking, _, _ = rank_models(table, Criterion.of("multiclass/accuracy"), Blocks("params.fold"))
    for model in ranking.models[1:]:
        assert model.difference_low == -1
        assert model.difference_high == 1
