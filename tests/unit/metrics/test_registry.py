"""The catalog: every metric is in it and computed, and one declaration is all that a metric of counts needs."""

from __future__ import annotations

import generated_pages
import numpy as np
import pytest

from cmtrack import Evaluation, Grouping, Metric, compare, evaluate, paired_differences
from cmtrack.metrics import CATALOG, lookup
from cmtrack.report import report_html
from support.problems import random_guesses, random_labels, random_problem

YOUDEN_DOUBLE = Metric(
    "custom/dice_of_errors",
    lambda b: (b.fn + b.fp) / (b.fn + b.fp + b.tp),
    of="binary",
    better="lower",
    low=0,
    high=1,
    formula="(FN + FP) / (FN + FP + TP)",
    source="a test",
)
OFF_BY_ONE = Metric(
    "custom/off_by_one",
    lambda c: sum(np.trace(c, k) for k in (-1, 0, 1)) / c.sum(),
    low=0,
    high=1,
    formula="Σ C_ij with |i − j| ≤ 1, over n",
    source="a test",
)


def judged(metric: Metric, right: float) -> Evaluation:
    size = 4 if metric.of == "counts" else 2
    y, seed = random_labels(400, size), int(100 * right)
    predicted = random_guesses(y, size, right, seed)
    return evaluate(y, predicted, labels=range(size), extra_metrics=[metric])


@pytest.mark.parametrize("declared", [YOUDEN_DOUBLE, OFF_BY_ONE], ids=lambda metric: metric.name)
def test_a_new_metric_is_everywhere(declared: Metric) -> None:
    name = declared.name
    good, bad = judged(declared, 0.9), judged(declared, 0.4)
    low, high = good.intervals[name]
    assert low < good.metrics[name] < high
    assert good.standard_errors[name] > 0
    assert name in good.to_frame()["metric"].tolist()
    assert name in report_html(good, {})
    ranked = compare({"bad": bad, "good": good}, rank_by=name, tie_breakers=name)
    assert ranked.best.name == "good"
    sign = "<=" if declared.better == "lower" else ">="
    gated = compare({"bad": bad, "good": good}, require=f"{name} {sign} {good.metrics[name]}")
    assert [stop.run.name for stop in gated.failed] == ["bad"]
    assert paired_differences(good, bad)[name].pvalue < 1e-3
    assert good.count_intervals("bootstrap", n_resamples=30)[name][0] > 0
    assert name in good.count_intervals()
    assert name in (good + good).metrics


def test_every_metric_is_on_the_page_of_metrics() -> None:
    page = generated_pages.index()
    assert [metric.name for metric in CATALOG if f"`{metric.name}`" not in page] == []


def test_sections_of_all_kinds_are_reserved() -> None:
    for section in {metric.section for metric in CATALOG}:
        with pytest.raises(
            ValueError, match=f"section '{section}' is reserved for built-in metrics"
        ):
            evaluate([0, 1], [0, 1], extra_metrics=[Metric(f"{section}/gain", len)])


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("grouped", [False, True])
def test_every_computed_metric_is_in_the_catalog_and_every_entry_is_computed_somewhere(
    classes, grouped
):
    y, _, p = random_problem(0, 200, classes, 0.0)
    grouping = (
        Grouping({"a": range(classes - 1), "b": [classes - 1]}, name="ab") if grouped else None
    )
    for name in evaluate(y, y_prob=p, grouping=grouping).metrics:
        assert lookup(name).name.count("/") == name.count("/")


def test_every_entry_of_the_catalog_is_computed_by_some_evaluation():
    y, _, p = random_problem(0, 200, 6, 0.0)
    names: set[str] = set()
    for grouping in (None, Grouping({"a": [0, 1, 2], "b": [3, 4, 5]}, "strict", name="ab")):
        names |= {
            lookup(name).name
            for name in evaluate(
                y, y_prob=p, grouping=grouping, costs={(0, 1): 2}, ordered=True
            ).metrics
        }
    # other functions, and comparisons, give these
    others = ("label sets", "spans", "granules", "two runs")
    assert names == {metric.name for metric in CATALOG if metric.needs not in others}
