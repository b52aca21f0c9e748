"""What a review's page offers to choose from: the runs by other metrics, rivals, curves and other questions."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest

from cmtrack import Grouping, Prefix, compare, evaluate, evaluate_families
from cmtrack.report.review import html
from support.problems import random_models
from support.review_page import charts, other_metrics, pairs, questions

N = 300
LABELS = ["ant", "bee's", 'c"at<b>']
GROUPING = Grouping({"insects": LABELS[:2], "others": LABELS[2:]}, positive="insects")


@pytest.fixture(scope="module")
def evaluations():
    y, models = random_models((1.6, 1.7, 0.9), n=N, k=3)
    options: dict[str, Any] = {
        "labels": LABELS,
        "grouping": GROUPING,
        "segments": {"side": np.arange(N) % 2},
    }
    return {
        f"run {k}": evaluate(np.array(LABELS)[y], y_prob=p, **options) for k, p in enumerate(models)
    }


@pytest.fixture(scope="module")
def comparison(evaluations):
    return compare(evaluations, rank_by="multiclass/accuracy")


def page_of(comparison) -> str:
    return html(comparison, pictures={}, rows=False)


@pytest.fixture(scope="module")
def page(comparison):
    return page_of(comparison)


@pytest.mark.slow
def test_every_other_headline_metric_ranks_as_compare_does(evaluations, comparison, page):
    tables = other_metrics(page)
    assert {"binary/recall", "probability/log_loss", "multiclass/matthews_corrcoef"} <= set(tables)
    assert "multiclass/accuracy" not in tables  # it ranks the runs above
    catalog = comparison.criterion.catalog
    assert all(catalog.lookup(name).headline and catalog.lookup(name).better for name in tables)
    for metric, table in tables.items():
        expected = compare(evaluations, rank_by=metric).ranking.runs
        found = {row.cells[1].title: row for row in table["rows"]}
        for run in expected:
            row = found[run.name]
            rank, _, _, value, _, p, *_ = row.cells
            assert rank.text == str(run.rank)
            assert (row.status != "behind") == run.tied
            assert float(value.sort) == run.value
            if row.status != "leads":
                assert float(p.sort) == pytest.approx(run.p_set)


def test_a_metric_that_one_run_lacks_ranks_nothing(evaluations):
    y, models = random_models((1.6,), n=N, k=3)
    labels = np.array(LABELS)
    without = evaluate(
        labels[y], labels[models[0].argmax(axis=1)], labels=LABELS, grouping=GROUPING
    )
    found = page_of(compare({**evaluations, "run 0": without}, rank_by="multiclass/accuracy"))
    names = set(other_metrics(found))
    assert "binary/recall" in names
    assert not [name for name in names if name.startswith(("probability/", "spcc/"))]
    assert "binary/roc_auc" not in names
    assert not any(0 in lines and len(lines) < 2 for lines in charts(found).values())


def test_areas_under_different_ceilings_are_not_offered_for_a_ranking() -> None:
    y, models = random_models((1.6, 1.7), n=N, k=3)
    strict = Grouping({"first": [0, 1], "last": [2]}, mode="strict", positive="first")
    runs = {f"run {k}": evaluate(y, y_prob=p, grouping=strict) for k, p in enumerate(models)}
    ceilings = {run.metrics["binary/roc_auc_ceiling"] for run in runs.values()}
    assert len(ceilings) == 2
    page = page_of(compare(runs))
    assert "binary/roc_auc" not in other_metrics(page)
    assert "<li>strict: another member of the group is a mismatch</li>" in page
    alike = {"one": runs["run 0"], "two": evaluate(y, y_prob=models[0], grouping=strict)}
    tables = other_metrics(page_of(compare(alike, rank_by="multiclass/accuracy")))
    assert "binary/roc_auc" in tables
    # Runs with the same best value have the same status, and the sentence has no interval of one.
    table = tables["binary/recall"]
    assert [row.cells[2].text for row in table["rows"]] == ["may be the best"] * 2
    assert "have the best recall" in table["sentence"]
    assert "[" not in table["sentence"]


def test_two_classes_are_compared_by_their_correct_rows_alone() -> None:
    y = np.repeat([0, 1], 200)
    worse = y.copy()
    worse[:60] = 1
    page = page_of(compare({"a": evaluate(y, y), "b": evaluate(y, worse)}))
    assert "60 more rows of class “0” classified correctly" in page
    assert "fewer rows of class" not in page
    assert "strict: " not in page


def test_runs_that_cannot_be_tested_are_not_said_to_be_the_best() -> None:
    y = np.arange(40) % 2
    runs = {name: evaluate(y, y_prob=np.full(40, p)) for name, p in (("a", 0.4), ("b", 0.6))}
    tables = other_metrics(page_of(compare(runs, rank_by="multiclass/accuracy")))
    assert tables["spcc/binary"]["sentence"].endswith(
        " No difference between the runs could be tested."
    )
    assert "may be the best" in tables["probability/log_loss"]["sentence"]


def test_one_run_and_sets_of_codes_have_what_applies(evaluations):
    alone = page_of(compare({"run 0": evaluations["run 0"]}))
    assert other_metrics(alone) == pairs(alone) == charts(alone) == {}
    assert questions(alone)
    codes = [{"a.1", "b.2"}, {"b.1"}, {"a.2"}] * 20
    runs = {
        "one": evaluate_families(codes, codes[1:] + codes[:1], Prefix(".")),
        "two": evaluate_families(codes, codes, Prefix(".")),
    }
    found = page_of(compare(runs))
    assert other_metrics(found)
    assert pairs(found) == charts(found) == questions(found) == {}


def test_a_curve_is_inside_its_axes_and_begins_and_ends_where_it_must(page):
    curves = {title.split(" of ")[0]: lines for title, lines in charts(page).items()}
    assert list(curves) == ["ROC", "Precision and recall", "Reliability"]
    for lines in curves.values():
        assert set(lines) == {0, 1, 2}
        for path in lines.values():
            # A step is one vertical and one horizontal line, "V 985 H 360".
            points = re.findall(r"[ML](\d+) (\d+)", path)
            points += [(x, y) for y, x in re.findall(r"V(\d+)H(\d+)", path)]
            assert len(re.findall(r"\d+", path)) == 2 * len(points) <= 2 * 66
            across, up = np.array(points, dtype=int).T
            assert min(across.min(), up.min()) >= 0
            assert max(across.max(), up.max()) <= 1000
            assert (np.diff(across) >= 0).all()
    assert curves["ROC"][0].startswith("M0 ")


# -- other questions -------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_python_of_every_question_runs(evaluations, comparison, page, capsys):
    shown = questions(page)
    assert list(shown) == [
        "Another metric",
        "Another grouping",
        "Costs",
        "Another share of positives",
        "Segments",
        "Another threshold",
    ]
    asked = {}
    for title, question in shown.items():
        text = question.replace('comparison.report("answer.html")', "")
        space: dict[str, Any] = {"known": evaluations}
        exec(re.sub(r"evaluations = \{.*\}  #", "evaluations = known  #", text), space)
        asked[title] = space.get("comparison")
    assert asked["Another grouping"].ranking.evaluation.positive == "first"
    assert asked["Costs"].criterion.metrics == ("cost/mean",)
    assert asked["Another share of positives"].how["at"] == 0.1
    assert [pair.column for pair in asked["Segments"].segments][:1] == ["side"]
    names = list(comparison.to_frame()["name"])
    # by the threshold's
    printed = [line.split(" Threshold(")[0] for line in capsys.readouterr().out.splitlines()]
    assert sorted(printed) == sorted(names)


def test_a_page_has_no_data_and_no_formula_for_its_script(page):
    assert 'type="application/json"' not in page
    assert page.count("<script") == 1
    script = page[page.index("<script") :]
    assert not re.search(r"Math\.|\bsqrt|\batob|JSON", script)
    assert len(script) < 14_000
    assert json.dumps("⟦") not in page
