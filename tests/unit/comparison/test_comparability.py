"""Comparability: why two evaluations may not stand in one order, and why not row by row."""

from __future__ import annotations

import inspect
import subprocess
import sys
import textwrap
from dataclasses import fields, replace

import numpy as np
import pytest

from cmtrack import Grouping, compare, evaluate, evaluate_families, paired_differences
from cmtrack.comparison import (
    CompareOptions,
    NotJudged,
    Outcome,
    Reason,
    judge,
    randomization_test,
)
from cmtrack.report.review import html, markdown
from support.families import by_ten
from support.problems import random_guesses, random_labels

Y = np.arange(12) % 4
PREDICTED = np.where(np.arange(12) % 5 == 0, (Y + 1) % 4, Y)
TWO = Grouping({"low": [0, 1], "high": [2, 3]}, name="half")
ODD = Grouping({"even": [0, 2], "odd": [1, 3]}, name="half")
IDS = [f"row {k}" for k in range(12)]
OTHER_IDS = [f"row {k}" for k in range(12, 24)]
ACCURACY, GROUPING, POSITIVE = "multiclass/accuracy", "reduced/half/accuracy", "binary/f1"
COSTS = "cost/mean"


def made(y=Y, predicted=PREDICTED, **how):
    return evaluate(y, predicted, labels=how.pop("labels", range(4)), **how)


def of_table(evaluation):
    """The same evaluation as from a table: its digest knows no order, and no rows were kept."""
    statistics = replace(evaluation.statistics, digest=evaluation.statistics.digest.content_only)
    return replace(evaluation, statistics=statistics, rows=None)


OTHER_ORDER = made(Y[::-1], PREDICTED[::-1])
WEIGHTS = np.r_[np.full(6, 1), np.full(6, 3)]

CASES = {
    # name: (first, second, metric of the ranking, why apart, why unpaired)
    "the same": (made(), made(predicted=Y), ACCURACY, None, None),
    "other rows": (made(), made((Y + 1) % 4), ACCURACY, Reason.DATA, Reason.OTHER_ROWS),
    "other order": (made(), OTHER_ORDER, ACCURACY, Reason.DATA, Reason.OTHER_ROWS),
    "other classes": (made(), made(labels=range(5)), ACCURACY, Reason.LABELS, Reason.OTHER_CLASSES),
    "classes in another order": (
        made(),
        made(labels=[3, 2, 1, 0]),
        ACCURACY,
        None,
        None,
    ),
    "other grouping, read": (
        made(grouping=TWO),
        made(grouping=ODD),
        GROUPING,
        Reason.GROUPING,
        None,
    ),
    "other grouping, not read": (made(grouping=TWO), made(grouping=ODD), ACCURACY, None, None),
    "a grouping and none, not read": (made(grouping=TWO), made(), ACCURACY, None, None),
    "other positive group, read": (
        made(grouping=TWO, positive="low"),
        made(grouping=TWO, positive="high"),
        POSITIVE,
        Reason.POSITIVE,
        None,
    ),
    "other positive group, not read": (
        made(grouping=TWO, positive="low"),
        made(grouping=TWO, positive="high"),
        GROUPING,
        None,
        None,
    ),
    "other costs": (made(costs={(0, 1): 2}), made(costs={(0, 1): 3}), COSTS, Reason.COSTS, None),
    "other costs, not read": (made(costs={(0, 1): 2}), made(), ACCURACY, None, None),
    "other weight": (
        made(),
        made(sample_weight=WEIGHTS),
        ACCURACY,
        Reason.WEIGHT,
        Reason.SAMPLE_WEIGHTS,
    ),
    "weights of the same sum": (
        made(sample_weight=WEIGHTS),
        made(sample_weight=WEIGHTS[::-1]),
        ACCURACY,
        None,
        Reason.SAMPLE_WEIGHTS,
    ),
    "row ids on one side": (made(), made(row_ids=IDS), ACCURACY, None, None),
    "other row ids": (
        made(row_ids=IDS),
        made(row_ids=OTHER_IDS),
        ACCURACY,
        Reason.DATA,
        Reason.OTHER_IDS,
    ),
    "row ids of other labels": (
        made(row_ids=IDS),
        made(row_ids=IDS[::-1]),
        ACCURACY,
        None,
        Reason.RELABELLED,
    ),
    "a table and an array": (of_table(made()), made(), ACCURACY, None, Reason.OTHER_ROWS),
    "a table and an array in another order": (
        of_table(made()),
        OTHER_ORDER,
        ACCURACY,
        None,
        Reason.OTHER_ROWS,
    ),
    "a table of other rows": (
        of_table(made((Y + (Y == 0)) % 4)),
        made(),
        ACCURACY,
        Reason.DATA,
        Reason.OTHER_ROWS,
    ),
    "no rows here": (replace(made(), rows=None), made(), ACCURACY, None, Reason.FIRST_WITHOUT_ROWS),
    "no rows there": (
        made(),
        replace(made(), rows=None),
        ACCURACY,
        None,
        Reason.SECOND_WITHOUT_ROWS,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_why_two_evaluations_are_not_compared(name):
    first, second, metric, apart, unpaired = CASES[name]
    for runs in ({"a": first, "b": second}, {"a": second, "b": first}):
        comparison = compare(runs, rank_by=metric)
        assert len(comparison.rankings) == (1 if apart is None else 2)
        if apart is not None:
            assert f"The runs were evaluated {apart.value}" in comparison.summary()
    found = paired_differences(first, second, metrics=[ACCURACY])
    assert found.reason == ("" if unpaired is None else unpaired.between(first, second))
    assert found.paired == (unpaired is None)


ROWS = "evaluate all on the same rows in the same order"
REMEDIES = {
    "other rows": ("multiclass/accuracy", ROWS, {}),
    "other classes": (
        "multiclass/accuracy",
        "evaluate all with the same labels= (--labels A,B,C)",
        {},
    ),
    "other grouping, read": (
        "reduced/half/accuracy",
        "compare under the same grouping= (--grouping FILE)",
        {"grouping": TWO},
    ),
    "other positive group, read": (
        "binary/f1",
        "compare under the same grouping= and positive= (--grouping FILE --positive GROUP)",
        {"grouping": TWO, "positive": "high"},
    ),
    "other costs": (
        "cost/mean",
        "compare at the same costs= (--costs FILE)",
        {"costs": {(0, 1): 2}},
    ),
    "other weight": (
        "multiclass/accuracy",
        "evaluate all with the same sample_weight= (--weight COLUMN)",
        {},
    ),
}


@pytest.mark.parametrize("name", REMEDIES)
def test_what_puts_runs_into_one_ranking_is_said_and_does_it(name):
    """The sentence stands below the rankings that it is about, and the argument that it names makes them one."""
    first, second = CASES[name][:2]
    metric, text, how = REMEDIES[name]
    if "half" in metric:
        second = made(grouping=Grouping({"low": [0, 2], "high": [1, 3]}, name="half"))
    comparison = compare({"a": first, "b": second}, rank_by=metric)
    said = f"To rank them together, {text}."
    assert len(comparison.rankings) == 2
    assert comparison.best is None
    assert comparison.summary().count(said) == 1
    assert said in markdown(comparison).replace("\\", "")
    assert html(comparison, pictures={}).count(said) == 1
    verdict = judge(first, second, rank_by=metric)
    assert verdict.not_judged is NotJudged.APART
    assert verdict.why.endswith(f"; to rank them together, {text}")
    for argument in how:
        assert f"{argument}=" in text
    if how:
        mended = compare({"a": first, "b": second}, rank_by=metric, **how)
        assert len(mended.rankings) == 1
        assert "To rank them together" not in mended.summary()


def test_sets_of_codes_are_ranked_together_by_their_codes():
    actual, called = [{1, 11}, {2}, {12, 21}], [[{1, 12}, {2}, {12}], [{1, 11}, {3}, {12, 21}]]
    apart = {
        name: evaluate_families(actual, sets, by_ten)
        for name, sets in zip("ab", called, strict=True)
    }
    assert "To rank them together, evaluate all with the same codes=." in compare(apart).summary()
    codes = [1, 2, 3, 11, 12, 21]
    mended = {
        name: evaluate_families(actual, sets, by_ten, codes=codes)
        for name, sets in zip("ab", called, strict=True)
    }
    assert len(compare(mended).rankings) == 1


def test_several_remedies_are_one_sentence():
    first = made(grouping=TWO, positive="low")
    second = made((Y + 1) % 4, grouping=ODD, positive="even")
    said = compare({"a": first, "b": second}, rank_by="binary/f1").summary()
    both = "compare under the same grouping= and positive= (--grouping FILE --positive GROUP)"
    assert f"To rank them together, {ROWS}, and {both}." in said


@pytest.mark.parametrize(
    ("metric", "other", "how"),
    [
        ("cost/mean", made(costs={(0, 1): 2}), "compare at costs= (--costs FILE)"),
        (
            "binary/f1",
            made(grouping=TWO),
            "compare under a grouping= of two groups (--grouping FILE)",
        ),
        (
            "probability/log_loss",
            evaluate(Y, y_prob=np.full((12, 4), 0.25)),
            "evaluate it with y_prob= (--y-prob)",
        ),
    ],
)
def test_a_run_without_the_metric_is_told_what_would_give_it(metric, other, how):
    assert (
        compare({"a": made(), "b": other}, rank_by=metric).left_out[0].reason
        == f"it has no {metric}: {how}"
    )


def sizes(*evaluations):
    """Runs of each ranking of these evaluations by accuracy."""
    comparison = compare(dict(zip("abcd", evaluations, strict=False)), rank_by=ACCURACY)
    return sorted(len(ranking.runs) for ranking in comparison.rankings)


def test_rows_with_two_sets_of_ids_leave_those_without_ids_alone():
    plain, one, other = made(), made(row_ids=IDS), made(row_ids=OTHER_IDS)
    assert sizes(plain, one) == [2]
    assert sizes(plain, one, other, one) == [1, 1, 2]


def test_a_table_joins_arrays_of_its_content():
    arrays = [made(), OTHER_ORDER]
    assert sizes(*arrays) == [1, 1]
    assert sizes(*arrays, of_table(made())) == [3]


def test_reasons_among_several():
    def reasons(*evaluations):
        runs = compare(dict(zip("abc", evaluations, strict=False)), rank_by=ACCURACY).runs
        return {run.name: run.unpaired for run in runs}

    kept, bare = made(), replace(made(), rows=None)
    assert reasons(kept, made(predicted=Y)) == {"a": "", "b": ""}
    assert reasons(kept, bare) == {"a": Reason.ALONE.value, "b": Reason.NOT_KEPT.value}
    weights = made(sample_weight=WEIGHTS), made(sample_weight=WEIGHTS[::-1])
    assert reasons(weights[0], *weights) == {"a": "", "b": "", "c": Reason.SAMPLE_WEIGHTS.value}


def test_a_randomisation_test_says_why_rows_do_not_pair():
    with pytest.raises(ValueError, match="with the same rows: the sample weights differ"):
        randomization_test(made(), made(sample_weight=np.full(12, 2)), "multiclass/accuracy")


# -- options in one record ---------------------------------------------------------------------------------------


def test_the_record_of_options_is_the_signature_of_compare():
    signature = {
        name: parameter.default
        for name, parameter in inspect.signature(compare).parameters.items()
        if name not in ("runs", "progress")
    }
    assert list(signature) == [field.name for field in fields(CompareOptions)]
    said = inspect.getdoc(compare)
    assert all(f"\n{name} : {one.kind}\n" in said for name, one in CompareOptions.options().items())
    assert signature == CompareOptions.defaults()


# -- a verdict as a result ---------------------------------------------------------------------------------------

MANY = random_labels(600, 3)


def judged_as(share):
    """An evaluation of which this share is wrong."""
    return evaluate(MANY, random_guesses(MANY, 3, 1 - 1.5 * share, 1), labels=range(3))


def test_a_verdict_by_gates_is_a_result():
    good = judged_as(0.1)
    verdict = judge(good, require=["multiclass/accuracy >= 0.8", "class/1/recall >= 0.99"])
    assert not verdict.passed
    assert [check.passed for check in verdict.checks] == [True, False]
    data = verdict.to_dict()
    assert data["gates"][0] == {
        "gate": "multiclass/accuracy >= 0.8",
        "value": good.metrics["multiclass/accuracy"],
        "bound": 0.8,
        "passed": True,
        "reason": "",
    }
    assert (data["run"], data["baseline"], data["paired"]) == (
        {"run_id": "run", "name": "run"},
        None,
        False,
    )


@pytest.mark.parametrize("baseline", [None, ["binary"], ["multiclass", "binary"]])
def test_gates_need_no_accuracy_of_the_classes(baseline):
    y = [0, 1] * 40
    run = evaluate(y, [0, 1] * 35 + [1, 0] * 5, sections=["binary"])
    other = None if baseline is None else evaluate(y, [0, 1] * 30 + [1, 0] * 10, sections=baseline)
    gates = [
        "binary/recall >= 0.8",
        *([] if other is None else ["binary/recall.difference >= 0.1"]),
    ]
    verdict = judge(run, other, require=gates)
    assert verdict.passed
    assert [check.passed for check in verdict.checks] == [True] * len(gates)
    assert not judge(run, other, require=["binary/recall >= 0.9"]).passed


def test_gates_judge_sets_of_codes():
    run = evaluate_families(
        [["A1", "B2"], ["A1"]], [["A1", "A2"], ["A1"]], families=lambda code: code[0]
    )
    assert judge(run, require=["family/f1_micro >= 0.6"]).passed
    assert not judge(run, require=["family/f1_micro >= 0.7"]).passed


def test_a_verdict_against_a_baseline():
    good, bad = judged_as(0.1), judged_as(0.3)
    worse = judge(bad, good)
    assert not worse.passed
    assert worse.pairing is None
    check = worse.checks[0]
    assert check.outcome is Outcome.TESTED
    assert check.high < 0
    assert judge(good, bad).passed
    small = judge(bad, good, require=["multiclass/accuracy.difference.low >= -0.01"])
    assert small.to_dict()["gates"][0]["value"] < -0.01


@pytest.mark.parametrize(
    ("against", "require", "reason"),
    [
        (made(), [], NotJudged.APART),
        (None, ["binary/recall >= 0.5"], NotJudged.NO_METRIC),
        (judged_as(0.1), ["spans/f1_micro >= 0.5"], NotJudged.NO_METRIC),
    ],
    ids=["other data", "no such metric", "neither has it"],
)
def test_what_was_not_judged_has_a_reason(against, require, reason):
    verdict = judge(judged_as(0.2), against, require=require)
    assert verdict.not_judged is reason
    assert not verdict.passed
    assert verdict.to_dict()["why"] == verdict.why != ""


@pytest.mark.parametrize(
    ("how", "rule"),
    [
        ({}, "by gates or against a baseline"),
        (
            {"require": ["multiclass/accuracy > 0"], "rank_by": "x"},
            "rank_by cannot be combined with require",
        ),
    ],
)
def test_a_verdict_needs_something_to_judge_by(how, rule):
    with pytest.raises(ValueError, match=rule):
        judge(judged_as(0.2), **how)


# -- without MLflow ----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_everything_below_tracking_works_without_mlflow(tmp_path):
    script = f"""
    import sys

    class NoMLflow:
        def find_spec(self, name, path=None, target=None):
            if name.split(".")[0] == "mlflow":
                raise ModuleNotFoundError("No module named 'mlflow'", name="mlflow")

    sys.meta_path.insert(0, NoMLflow())
    import numpy as np
    import cmtrack
    from cmtrack.comparison import judge

    y = np.arange(300) % 3
    rng = np.random.default_rng(0)
    def model(skill):
        scores = rng.random((300, 3)) + skill * np.eye(3)[y]
        grouping = cmtrack.Grouping({{"a": [0], "b": [1, 2]}})
        return cmtrack.evaluate(y, y_prob=scores / scores.sum(axis=1, keepdims=True), grouping=grouping)
    first, second = model(1.0), model(0.1)
    assert first.figures()
    comparison = cmtrack.compare({{"first": first, "second": second}})
    assert comparison.best.name == "first"
    assert comparison.figures()
    assert len(comparison.to_frame()) == 2 and comparison.to_dict()["best"]["name"] == "first"
    for ending in ("html", "md", "json"):
        assert comparison.report(r"{tmp_path}/review." + ending).stat().st_size > 1000
    assert judge(first, second).passed and not judge(second, first).passed
    assert "mlflow" not in sys.modules
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
