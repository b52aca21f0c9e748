"""The question of an evaluation is said once: every way to evaluate has its options, and every entry has a use."""

from __future__ import annotations

import dataclasses
import inspect
import warnings

import click
import pytest
from click.testing import CliRunner

import cmtrack
from cmtrack.cli import main
from cmtrack.evaluation import Spec, loads
from cmtrack.options import Options
from cmtrack_integrations._hook import DataOptions
from cmtrack_integrations.mlflow_evaluator import options
from cmtrack_integrations.sklearn.cross_validation import cross_validate_evaluation
from cmtrack_integrations.sklearn.estimators import evaluate_estimator
from cmtrack_integrations.sklearn.search import log_candidates

OPTIONS = Spec.options()
TAKERS = [
    cmtrack.evaluate,
    cmtrack.evaluate_table,
    cmtrack.log_evaluation,
    cmtrack.Accumulator,
    evaluate_estimator,
    cross_validate_evaluation,
    log_candidates,
]


@pytest.mark.parametrize("taker", TAKERS, ids=lambda one: one.__name__)
def test_every_way_to_evaluate_shows_every_option(taker):
    parameters = inspect.signature(taker).parameters
    assert {name: parameters[name].default for name in OPTIONS} == {
        n: about.default for n, about in OPTIONS.items()
    }
    assert "options" not in parameters
    for name, about in OPTIONS.items():
        assert f"{name} : {about.kind}\n" in taker.__doc__
        assert " ".join(about.text.split()) in " ".join(taker.__doc__.split())


def test_hooks_and_the_evaluator_of_mlflow_take_them():
    assert OPTIONS.keys() <= DataOptions.__annotations__.keys() | Options.__annotations__.keys()
    assert set(OPTIONS) <= options()


def test_the_command_line_has_a_flag_for_each_that_names_one():
    command = main.commands["evaluate"]
    flags = {option.name: option for option in command.get_params(click.Context(command))}
    said = CliRunner().invoke(main, ["evaluate", "--help"]).output
    for name, about in OPTIONS.items():
        if about.flag:
            assert flags[name].opts == [about.flag]
            assert about.help.split()[0] in said
            assert about.flag in said


def test_what_is_given_is_checked_and_the_rest_are_the_defaults():
    chosen = Spec.of({"sections": ["binary", "multiclass"]}, cmtrack.evaluate).given()
    assert chosen["sections"] == ("multiclass", "binary")
    assert {name: chosen[name] for name in OPTIONS if name != "sections"} == {
        name: about.default for name, about in OPTIONS.items() if name != "sections"
    }


MISSPELT = {
    "positve": "positive",
    "segment": "segments",
    "sample_weights": "sample_weight",
    "y_probs": "y_prob",
}


@pytest.mark.parametrize(("wrong", "right"), MISSPELT.items())
def test_a_misspelt_argument_is_named(wrong, right):
    message = rf"\(\) got an unexpected keyword argument '{wrong}'; did you mean '{right}'"
    with pytest.raises(TypeError, match=f"evaluate{message}"):
        cmtrack.evaluate([0, 1], [0, 1], **{wrong: [0, 1]})
    with pytest.raises(TypeError, match=f"log_evaluation{message}"):
        cmtrack.log_evaluation([0, 1], [0, 1], strict=True, **{wrong: [0, 1]})
    with pytest.raises(
        TypeError, match=rf"Accumulator\(\) got an unexpected keyword argument '{wrong}'"
    ):
        cmtrack.Accumulator(labels=[0, 1], **{wrong: [0, 1]})


def test_a_misspelt_argument_of_log_evaluation_keeps_the_inputs_and_the_training(store):
    with pytest.warns(UserWarning, match="argument 'positve'; did you mean 'positive'"):
        logged = cmtrack.log_evaluation([0, 1], [0, 1], positve=1)
    assert logged.status == "failed"
    assert logged.path.exists()


@pytest.mark.slow
def test_y_proba_is_another_spelling_of_y_prob(store):
    y, p = [0, 1, 1, 0], [0.2, 0.9, 0.4, 0.1]
    expected = cmtrack.evaluate(y, y_prob=p)
    assert cmtrack.evaluate(y, y_proba=p) == expected
    assert cmtrack.log_evaluation(y, y_proba=p, run_id="none").evaluation == expected
    with pytest.raises(TypeError, match="y_prob and y_proba are two spellings of one argument"):
        cmtrack.evaluate(y, y_prob=p, y_proba=p)


def test_the_command_line_refuses_by_the_rule_of_the_library(tmp_path):
    file = tmp_path / "p.csv"
    file.write_text("y,q\n0,0\n1,1\n")
    run = CliRunner().invoke(
        main, ["evaluate", str(file), "--y-true", "y", "--y-pred", "q", "--section", "binry"]
    )
    assert run.exit_code == 2
    assert "there is no section 'binry'; did you mean 'binary'?" in " ".join(run.output.split())


Y = [0, 1, 2, 0, 2, 1, 0, 2]
P = [[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.1, 0.3, 0.6], [0.3, 0.6, 0.1]]
P += [[0.2, 0.4, 0.4], [0.1, 0.8, 0.1], [0.5, 0.2, 0.3], [0.3, 0.3, 0.4]]
WEIGHT = [1, 2, 1, 3, 1, 1, 2, 1]
GROUPING = cmtrack.Grouping({"low": [0, 1], "high": [2]})
SIZE = cmtrack.Metric("custom/n", lambda counts: counts.sum(), of="counts", interval="log")
USES = {
    "positive": ({"positive": "low", "grouping": GROUPING}, {"grouping": GROUPING}),
    "grouping": ({"grouping": GROUPING}, {}),
    "normalize": ({"normalize": True, "y_prob": [[0.99 * p for p in row] for row in P]}, {}),
    "weights_are": (
        {"weights_are": "sampling", "sample_weight": WEIGHT},
        {"sample_weight": WEIGHT},
    ),
    "sections": ({"sections": ["multiclass"]}, {}),
    "reference": ({"reference": [0.2, 0.3, 0.5]}, {}),
    "costs": ({"costs": {(0, 1): 5.0}}, {}),
    "threshold": ({"threshold": 0.2, "grouping": GROUPING}, {"grouping": GROUPING}),
    "confidence_level": ({"confidence_level": 0.8}, {}),
    "extra_metrics": (
        {
            "extra_metrics": [
                cmtrack.Metric("custom/n", lambda c: c.sum(), of="counts", interval="log")
            ]
        },
        {},
    ),
    "headline": ({"headline": ["class/2/recall"]}, {}),
    "ordered": ({"ordered": True}, {}),
    "scores": ({"scores": ["mean"]}, {}),
}
"""By entry: the arguments of an evaluation that it changes, and those of the one that it is held against."""


def numbers(**options):
    evaluation = cmtrack.evaluate(Y, **{"y_prob": P, **options})
    return repr(
        (evaluation.metrics, evaluation.intervals, evaluation.warnings, evaluation.headline)
    )


@pytest.mark.parametrize("name", Spec.options())
def test_an_option_that_nothing_reads_does_not_pass(name):
    given, other = USES[name]  # a new option says here what it changes
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert numbers(**given) != numbers(**other)


def test_an_evaluation_holds_its_question_whole():
    spec = cmtrack.evaluate(
        Y, y_prob=P, grouping=GROUPING, reference={0: 0.2, 2: 0.8}, sample_weight=WEIGHT
    ).spec
    assert (spec.positive, spec.grouping, spec.reference, spec.weights_are) == (
        "high",
        GROUPING,
        (0.2, 0.0, 0.8),
        "frequency",
    )
    stored = {name for name, entry in Spec.entries().items() if entry.write is not None}
    assert stored == {field.name for field in dataclasses.fields(Spec)} - {
        "normalize",
        "extra_metrics",
    }
    plain = spec.to_plain()
    assert plain.keys() == stored
    assert Spec.from_plain(plain) == spec


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("confidence_level", 0.8),
        ("sections", ["binary"]),
        ("costs", {(0, 1): 5.0}),
        ("reference", [0.2, 0.3, 0.5]),
    ],
)
def test_evaluations_of_different_questions_are_not_merged(name, other):
    ours, theirs = cmtrack.evaluate(Y, y_prob=P), cmtrack.evaluate(Y, y_prob=P, **{name: other})
    with pytest.raises(
        ValueError, match=f"evaluations must have the same {name} to be merged, got"
    ):
        ours + theirs
    assert ours != theirs


def test_what_is_asked_for_is_headline_and_names_are_checked():
    plain = cmtrack.evaluate(Y, y_prob=P)
    more = cmtrack.evaluate(Y, y_prob=P, headline=["class/2/recall", "binary/roc_auc"])
    assert set(more.headline) == {*plain.headline, "class/2/recall"}
    assert more.warnings == (
        *plain.warnings,
        "headline names metrics that the evaluation does not have, ['binary/roc_auc']",
    )
    assert loads(more.to_json()).headline == more.headline
    merged = more + cmtrack.evaluate(Y, y_prob=P, headline=["class/0/recall"])
    assert {"class/2/recall", "class/0/recall"} <= set(merged.headline)
    with pytest.raises(
        ValueError,
        match="headline: there is no metric named 'class/2/recal'; did you mean 'class/<label>/r",
    ):
        cmtrack.evaluate(Y, y_prob=P, headline=["class/2/recal"])
    with pytest.raises(
        TypeError, match="headline must be a list of metric names, got 'binary/npv'"
    ):
        cmtrack.evaluate(Y, y_prob=P, headline="binary/npv")
