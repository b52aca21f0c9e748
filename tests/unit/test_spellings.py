"""Options of the command line: one spelling for one thing, and old spellings that still work."""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path

import click
import numpy as np
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from cmtrack import evaluate
from cmtrack.cli import main

# The tests compare the renamed options with the options that the commands have.
from cmtrack.cli.spellings import RENAMED

ROOT = Path(__file__).parents[2]
OLD = [(command, old, new) for command, by_old in RENAMED.items() for old, new in by_old.items()]
# The thing of a parameter whose name says that it is a file, or several values.
SAME_THING = {
    "bundle_file": "bundle",
    "calibration_file": "calibration",
    "costs_file": "costs",
    "csv_file": "csv",
    "experiment_names": "experiment",
    "grouping_file": "grouping",
    "outputs": "output",
    "summary_file": "summary",
    "metrics": "metric",
    "by": "segments",
    "shares": "at",
}
# Spellings whose values have another form in another command, as its help says.
SEVERAL_FORMS = {
    "--force",  # a flag, or the reason for a move of an alias
    "--model",  # a registered model, or the model that a repeated run belongs to
    "--output",  # a file, or a folder
    "--positive",  # a label, or the group that a grouping names
}
SHORT = (["-h", "--help"], ["-o", "--output"])
"""Spellings that may also have one letter."""


def options_of(command: click.Command) -> list[click.Option]:
    params = command.get_params(click.Context(command, info_name=command.name))
    return [param for param in params if isinstance(param, click.Option)]


EVERY = [(name, option) for name in main.commands for option in options_of(main.commands[name])]


def test_one_thing_has_one_spelling():
    spellings = defaultdict(set)
    for _, option in EVERY:
        spellings[SAME_THING.get(option.name, option.name)].add(option.opts[-1])
    assert {thing: found for thing, found in spellings.items() if len(found) > 1} == {}


def test_one_spelling_is_of_one_thing():
    things = defaultdict(set)
    for _, option in EVERY:
        things[option.opts[-1]].add(SAME_THING.get(option.name, option.name))
    assert {spelling: found for spelling, found in things.items() if len(found) > 1} == {}


def test_one_spelling_takes_one_form_of_value():
    forms = defaultdict(set)
    for _, option in EVERY:
        form = option.metavar or option.type.name.upper().replace(" RANGE", "")
        forms[option.opts[-1]].add((form, option.nargs, option.is_flag))
    several = {spelling for spelling, found in forms.items() if len(found) > 1}
    assert several == SEVERAL_FORMS


def test_two_spellings_never_have_one_description():
    spellings = defaultdict(set)
    for _, option in EVERY:
        spellings[option.help].add(option.opts[-1])
    assert {text: found for text, found in spellings.items() if len(found) > 1} == {}


def test_no_two_spellings_differ_by_a_plural_or_by_their_order():
    spellings = {option.opts[-1] for _, option in EVERY}
    by_words = defaultdict(set)
    for spelling in spellings:
        words = spelling.strip("-").split("-")
        by_words[frozenset(word.removesuffix("s") for word in words)].add(spelling)
    assert [found for found in by_words.values() if len(found) > 1] == []


def test_a_command_has_each_option_once_and_without_a_second_spelling():
    for name, command in main.commands.items():
        spellings = [option.opts for option in options_of(command)]
        assert len({found[-1] for found in spellings}) == len(spellings), name
        longer = [found for found in spellings if len(found) > 1 and found not in SHORT]
        assert longer == [], name


@pytest.mark.parametrize(("command", "old", "new"), OLD)
def test_an_old_spelling_is_hidden(command, old, new):
    found = [option.opts[-1] for option in options_of(main.commands[command])]
    assert old not in found
    assert new in found
    said = CliRunner().invoke(main, [command, "--help"]).output
    assert f"{old} " not in said
    completed = ShellComplete(main, {}, "cmtrack", "_CMTRACK_COMPLETE").get_completions(
        [command], "--"
    )
    values = {item.value for item in completed}
    assert old not in values
    assert new in values


METRIC = """
from cmtrack import Metric
errors = Metric("custom/errors", lambda counts: 1 - counts.trace() / counts.sum(), better="lower")
"""
USES = {
    ("at", "--prevalence"): ("run", "0.2"),
    ("compare", "--metrics"): ("run", "own.py:nothing"),
    ("demo", "--directory"): ("folder",),
    ("gate", "--metrics"): ("run", "own.py:nothing", "--require", "binary/recall > 0"),
    ("review", "--metrics"): ("run", "own.py:nothing"),
    ("rows", "--ids"): ("run", "key", "--table", "rows.csv"),
    ("rows", "--limit"): ("run", "3"),
    ("rows", "--missed-by"): ("run", "1", "other"),
    ("segments", "--by"): ("run", "region"),
    ("segments", "--metrics"): ("run", "own.py:errors", "--metric", "custom/errors"),
    ("threshold", "--calibration"): ("run", "other", "--maximize", "binary/accuracy"),
    ("view", "--metrics"): ("run", "own.py:nothing"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two stored evaluations of the same rows with ids, a table of the rows, and a custom metric."""
    path = tmp_path_factory.mktemp("spellings")
    y = np.arange(80) % 2
    ids = np.array([f"row {k}" for k in range(80)])
    for name, n_errors in (("run", 12), ("other", 20)):
        p = np.where(np.arange(80) < n_errors, 1 - y, y) * 0.6 + 0.2
        region = np.array(["north", "south"])[np.arange(80) // 2 % 2]
        evaluation = evaluate(y, y_prob=p, positive=1, row_ids=ids, segments={"region": region})
        evaluation.save(path / name, rows=True)
    lines = [f"{name},{k}" for k, name in enumerate(ids)]
    (path / "rows.csv").write_text("\n".join(["key,place", *lines]))
    (path / "own.py").write_text(METRIC)
    return path


def test_every_old_spelling_is_used():
    assert USES.keys() == {(command, old) for command, old, _ in OLD}


@pytest.mark.parametrize("equals", [False, True], ids=["a word", "equals"])
@pytest.mark.parametrize(("command", "old", "new"), OLD)
def test_an_old_spelling_works_and_prints_the_new_one(
    command, old, new, equals, folder, monkeypatch
):
    monkeypatch.chdir(folder)
    # The demo then ends before it trains models, also if another test has imported its data.
    for name in ("statsmodels", "statsmodels.datasets"):
        monkeypatch.setitem(sys.modules, name, None)
    *runs, value = USES[command, old][: 1 if command == "demo" else 2]
    rest = USES[command, old][len(runs) + 1 :]

    def invoke(spelling):
        given = [f"{spelling}={value}"] if equals else [spelling, value]
        return CliRunner().invoke(main, [command, *runs, *given, *rest, "--json"])

    before, after = invoke(old), invoke(new)
    warning = f"Warning: {old} is now {new}; the next version of cmtrack will not accept {old}.\n"
    assert before.stderr == warning + after.stderr
    assert before.stdout == after.stdout
    assert before.exit_code == after.exit_code
    if command in ("at", "rows", "segments", "threshold"):
        assert after.exit_code == 0, after.output
        assert json.loads(after.stdout)


def test_a_value_that_looks_like_an_old_spelling_stays(folder, monkeypatch):
    monkeypatch.chdir(folder)
    done = CliRunner().invoke(main, ["rows", "run", "--table", "rows.csv", "--row-ids", "--ids"])
    assert "'--ids'" in done.stderr
    assert "is now" not in done.stderr
    done = CliRunner().invoke(main, ["rows", "--", "--ids"])
    assert "is now" not in done.stderr
    done = CliRunner().invoke(main, ["rows", "run", "--cell", "--limit", "--ids"])
    assert "is now" not in done.stderr


def test_a_command_that_kept_an_option_does_not_rename_it():
    done = CliRunner().invoke(main, ["compare", "--limit", "x"])
    assert "Invalid value for '--limit'" in done.stderr
    assert "is now" not in done.stderr
    done = CliRunner().invoke(main, ["evaluate", "no.csv", "--calibration", "no.csv"])
    assert "is now" not in done.stderr


def test_the_changelog_lists_each_old_spelling():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    table = text.partition("### Renamed in 0.3")[2].partition("###")[0]
    rows = {line for line in table.splitlines() if line.startswith("| `")}
    assert rows == {f"| `cmtrack {command} {old}` | `{new}` |" for command, old, new in OLD}
