"""The options of an evaluation are said once: every way to evaluate has them, with their words and defaults."""

from __future__ import annotations

import inspect

import click
import pytest
from click.testing import CliRunner

import cmtrack
from cmtrack.cli import main
from cmtrack.cli.evaluate import evaluate_command
from cmtrack.options import OPTIONS, Options, complete
from cmtrack_integrations._hook import DataOptions
from cmtrack_integrations.mlflow_evaluator import options
from cmtrack_integrations.sklearn.cross_validation import cross_validate_evaluation
from cmtrack_integrations.sklearn.estimators import evaluate_estimator
from cmtrack_integrations.sklearn.search import log_candidates

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
    assert {name: parameters[name].default for name in OPTIONS} == {n: about.default for n, about in OPTIONS.items()}
    assert "options" not in parameters
    for name, about in OPTIONS.items():
        assert f"{name} : {about.kind}\n" in taker.__doc__
        assert " ".join(about.text.split()) in " ".join(taker.__doc__.split())


def test_hooks_and_the_evaluator_of_mlflow_take_them():
    assert OPTIONS.keys() <= DataOptions.__annotations__.keys() | Options.__annotations__.keys()
    assert set(OPTIONS) <= options()


def test_the_command_line_has_a_flag_for_each_that_names_one():
    ctx = click.Context(evaluate_command)
    flags = {option.name: option for option in evaluate_command.get_params(ctx)}
    said = CliRunner().invoke(main, ["evaluate", "--help"]).output
    for name, about in OPTIONS.items():
        if about.flag:
            assert flags[name].opts == [about.flag]
            assert about.help.split()[0] in said
            assert about.flag in said


def test_what_is_given_is_checked_and_the_rest_are_the_defaults():
    chosen = complete({"sections": ["binary", "multiclass"]}, "evaluate")
    assert chosen["sections"] == ("multiclass", "binary")
    assert {name: chosen[name] for name in OPTIONS if name != "sections"} == {
        name: about.default for name, about in OPTIONS.items() if name != "sections"
    }


@pytest.mark.parametrize("call", [cmtrack.evaluate, cmtrack.log_evaluation], ids=["evaluate", "log_evaluation"])
def test_a_misspelt_option_is_refused_and_named(call):
    with pytest.raises(TypeError, match=f"{call.__name__}.*argument 'positve'; did you mean 'positiv"):
        call([0, 1], [0, 1], positve=1)


def test_the_command_line_refuses_by_the_rule_of_the_library(tmp_path):
    file = tmp_path / "p.csv"
    file.write_text("y,q\n0,0\n1,1\n")
    run = CliRunner().invoke(main, ["evaluate", str(file), "--y-true", "y", "--y-pred", "q", "--section", "binry"])
    assert run.exit_code == 2
    assert "there is no section 'binry'; did you mean 'binary'?" in " ".join(run.output.split())
