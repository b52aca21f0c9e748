"""The README says what the code does."""

from __future__ import annotations

import re

import numpy as np
import pytest
import yaml

from cmtrack import Grouping, evaluate
from cmtrack.comparison import CompareOptions
from cmtrack.comparison.rule import Rule
from cmtrack.metrics.catalog import CATALOG, lookup
from support import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")


def yaml_files():
    return re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)


def test_the_grouping_file_reads():
    (text,) = [text for text in yaml_files() if "steps:" in text]
    chain = Grouping.from_dict(yaml.safe_load(text))
    assert [step.name for step in chain.steps] == ["party", "republican"]
    assert chain.positive == "republican"


def test_the_rule_file_reads():
    (text,) = [text for text in yaml_files() if "rank_by:" in text]
    rule = CompareOptions(rule=Rule.parse(text.encode(), "review.yaml"))
    rule.check()
    assert rule.margin == 0.01
    assert [gate.text for gate in rule.gates] == ["class/3/recall.low >= 0.6"]


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("grouped", [False, True])
def test_every_computed_metric_is_in_the_catalog_and_every_entry_is_computed_somewhere(classes, grouped):
    rng = np.random.default_rng(0)
    y = rng.integers(0, classes, 200)
    p = rng.dirichlet(np.ones(classes), 200)
    grouping = Grouping({"a": range(classes - 1), "b": [classes - 1]}, name="ab") if grouped else None
    for name in evaluate(y, y_prob=p, grouping=grouping).metrics:
        assert lookup(name).name.count("/") == name.count("/")


def test_every_entry_of_the_catalog_is_computed_by_some_evaluation():
    rng = np.random.default_rng(0)
    y, p = rng.integers(0, 6, 200), rng.dirichlet(np.ones(6), 200)
    names: set[str] = set()
    for grouping in (None, Grouping({"a": [0, 1, 2], "b": [3, 4, 5]}, "strict", name="ab")):
        names |= {lookup(name).name for name in evaluate(y, y_prob=p, grouping=grouping, costs={(0, 1): 2}).metrics}
    others = ("label sets", "spans", "granules")  # evaluate_families, evaluate_spans and GranuleTable give these
    assert names == {metric.name for metric in CATALOG if metric.needs not in others}


def test_the_licence_and_the_sources_are_named():
    assert "Markoulidakis" in README
    assert "Gubbels" in README
    assert "Düntsch" in README
    assert "Apache License" in README
