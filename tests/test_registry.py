"""One declaration is all that a metric of counts needs: it is then in the table, the report, rankings and gates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cmtrack import Evaluation, compare, evaluate, paired_differences
from cmtrack.metrics import binary, catalog, multiclass
from cmtrack.metrics.metric import Metric
from cmtrack.metrics.table import markdown_table
from cmtrack.report.evaluation_page import report_html

YOUDEN_DOUBLE = Metric(
    "binary/dice_of_errors", lambda b: (b.fn + b.fp) / (b.fn + b.fp + b.tp), of="binary", better="lower", low=0, high=1,
    formula="(FN + FP) / (FN + FP + TP)", source="a test",
)  # fmt: skip
OFF_BY_ONE = Metric(
    "multiclass/off_by_one", lambda c: sum(np.trace(c, k) for k in (-1, 0, 1)) / c.sum(), low=0, high=1,
    formula="Σ C_ij with |i − j| ≤ 1, over n", source="a test",
)  # fmt: skip


@pytest.fixture(params=[YOUDEN_DOUBLE, OFF_BY_ONE], ids=lambda metric: metric.name.replace("/", "-"))
def declared(request: Any, monkeypatch: pytest.MonkeyPatch) -> Metric:
    """A metric as if it stood in its section's file: one entry of the section's tuple."""
    metric: Metric = request.param
    module, section = (binary, "BINARY") if metric.section == "binary" else (multiclass, "MULTICLASS")
    monkeypatch.setattr(module, section, (*getattr(module, section), metric))
    monkeypatch.setattr(catalog, "CATALOG", (*catalog.CATALOG, metric))
    monkeypatch.setattr("cmtrack.metrics.table.CATALOG", (*catalog.CATALOG,))
    monkeypatch.setitem(catalog._EXACT, metric.name, metric)
    return metric


def judged(metric: Metric, right: float) -> Evaluation:
    size = 2 if metric.section == "binary" else 4
    rng = np.random.default_rng(int(100 * right))
    y = np.random.default_rng(0).integers(0, size, 400)
    return evaluate(y, np.where(rng.random(400) < right, y, rng.integers(0, size, 400)), labels=range(size))


def test_a_new_metric_is_everywhere(declared: Metric) -> None:
    name = declared.name
    good, bad = judged(declared, 0.9), judged(declared, 0.4)
    low, high = good.intervals[name]
    assert low < good.metrics[name] < high
    assert good.standard_errors[name] > 0
    assert f"`{name}`" in markdown_table()
    assert name in good.to_frame()["metric"].tolist()
    assert name in report_html(good, {})
    ranked = compare({"bad": bad, "good": good}, rank_by=name, tie_breakers=name)
    assert ranked.best.name == "good"
    sign = "<=" if declared.better == "lower" else ">="
    gated = compare({"bad": bad, "good": good}, require=f"{name} {sign} {good.metrics[name]}")
    assert [stop.run.name for stop in gated.failed] == ["bad"]
    assert paired_differences(good, bad)[name].pvalue < 1e-3
    assert good.count_intervals("bootstrap", n_resamples=30)[name][0] > 0
    assert name in Evaluation.metrics.fget(good + good)  # type: ignore[attr-defined]
