"""Rules that are fixed in a file: what they may hold, that they are the whole rule, and where their digest is said."""

from __future__ import annotations

import hashlib
import inspect
import zipfile
from dataclasses import fields

import pytest

from cmtrack import Costs, Grouping, compare, evaluate
from cmtrack.comparison import CompareOptions
from cmtrack.report.review import Review, context, markdown
from support.problems import random_models

RULE = """\
# agreed on before the runs were evaluated
rank_by: multiclass/accuracy
require: [multiclass/accuracy >= 0.2, class/0/recall > 0.1]
tie_breakers: class/0/recall
margin: 0.05
confidence_level: 0.9
grouping:
  name: ends
  groups: {low: [0, 1], high: [2]}
positive: high
costs:
  costs: [[0, 2, 5]]
seed: 3
"""

RULES = CompareOptions.deciding()


def runs():
    y, models = random_models((2.0, 1.9, 0.5), n=200)
    return {name: evaluate(y, y_prob=p) for name, p in zip("abc", models, strict=True)}


@pytest.fixture(scope="module")
def three():
    return runs()


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "review.yaml"
    path.write_text(RULE)
    return path


def without_facts(data):
    return {name: value for name, value in data.items() if name not in ("how", "record")}


@pytest.mark.slow
def test_a_rule_is_the_arguments_that_it_holds(three, file):
    given = {
        "rank_by": "multiclass/accuracy",
        "require": ["multiclass/accuracy >= 0.2", "class/0/recall > 0.1"],
        "tie_breakers": "class/0/recall",
        "margin": 0.05,
        "confidence_level": 0.9,
        "grouping": Grouping({"low": [0, 1], "high": [2]}, name="ends"),
        "positive": "high",
        "costs": Costs({(0, 2): 5}),
        "seed": 3,
    }
    by_file, by_arguments = compare(three, rule=file), compare(three, **given)
    assert without_facts(by_file.to_dict()) == without_facts(by_arguments.to_dict())
    again = compare(three, rule=str(file), **given)  # what says the same may stand beside it
    assert without_facts(again.to_dict()) == without_facts(by_file.to_dict())


@pytest.mark.slow
def test_the_digest_is_said_wherever_the_review_is_read(three, file):
    comparison = compare(three, rule=file)
    digest = hashlib.sha256(RULE.encode()).hexdigest()
    sentence = f"The rule was fixed beforehand, in the file “review.yaml” (SHA-256 {digest[:12]}…)."
    data = comparison.to_dict()
    assert (
        data["record"]["rule"] == data["how"]["rule"] == {"file": "review.yaml", "sha256": digest}
    )
    page = context(Review(comparison), None, {})
    assert {"name": "Rule", "text": sentence, "href": ""} in page["record"]["lines"]
    assert data["record"]["lines"]["Rule"] == sentence
    assert sentence in markdown(comparison)
    assert "rule='review.yaml'" in page["python"]
    assert "margin=" not in page["python"]
    plain = compare(three)
    assert plain.to_dict()["record"]["lines"]["Rule"] == "set in the call that made this page"


def test_what_decides_may_stand_in_a_file_and_what_names_the_runs_may_not():
    names = {
        "experiment_names",
        "filter_string",
        "prefix",
        "limit",
        "max_runs",
        "tracking_uri",
        "extra_metrics",
        "rule",
    }
    assert {field.name for field in fields(CompareOptions)} - set(RULES) == names
    said = inspect.getdoc(compare)
    said = said[said.index("rule : path") : said.index("Returns")]
    assert all(f"``{name}``" in said for name in RULES)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "a rule file must map options to values ('margin: 0.01'), got None"),
        ("- a", "a rule file must map options to values"),
        ("margn: 0.1", "'margn' is not an option of a rule; did you mean 'margin'?"),
        ("filter_string: x", "'filter_string' is not an option of a rule; options are rank_by"),
        ("margin: much", "margin must be a number (a finite number), got 'much'"),
        ("margin: .inf", "margin must be a number (a finite number), got inf"),
        ("margin: true", "margin must be a number (a finite number), got True"),
        ("require: [1]", "require must be a gate, or a list of gates (a text), got [1]"),
        (
            "grouping: parity.yaml",
            "grouping must be a grouping (a mapping in this file, so that the digest",
        ),
        ("grouping: {groups: {a: [1]}}", "grouping: a grouping needs at least two groups"),
        ("costs: {price: 1}", "costs: costs must have 'costs' or 'matrix'"),
        ("seed: -1", "seed must be a whole number (a whole number that is not negative), got -1"),
        (
            "margin: 0.1\nmargin: 0.2",
            "does not parse: each key must be given only once, got 'margin' twice",
        ),
        ("a: &x [1]\nb: *x", "does not parse: a rule file must not have anchors or aliases"),
        (
            "!!python/object/apply:os.system [ls]",
            "does not parse: could not determine a constructor",
        ),
        ("a: [", "does not parse"),
    ],
)
def test_a_file_that_is_no_rule_is_refused(tmp_path, three, text, says):
    path = tmp_path / "review.yaml"
    path.write_text(text)
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the words are checked
        compare(three, rule=path)
    assert str(error.value).startswith("review.yaml")
    assert says in str(error.value)


@pytest.mark.parametrize(
    ("beside", "says"),
    [
        (
            {"margin": 0.1},
            "a rule file contains the whole rule: review.yaml has 0.05, but the argument is "
            "margin=0.1",
        ),
        (
            {"require": "class/1/recall > 0"},
            "review.yaml has ['multiclass/accuracy >= 0.2', 'class/0/recall > 0.1']",
        ),
        (
            {"block": "params.fold"},
            "review.yaml does not have 'block', but the argument is block='params.fold'",
        ),
        ({"segments": "region"}, "review.yaml does not have 'segments'"),
    ],
    ids=["another", "more", "silent", "silent-list"],
)
def test_arguments_that_contradict_it_are_refused(three, file, beside, says):
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the words are checked
        compare(three, rule=file, **beside)
    assert says in str(error.value)


def test_a_baseline_may_be_named_beside_a_file_that_is_silent_on_it(three, tmp_path):
    path = tmp_path / "review.yaml"
    path.write_text("require: multiclass/accuracy.difference.low >= -0.5\n")
    comparison = compare(three, rule=path, against="a")
    assert comparison.baseline.name == "a"
    with pytest.raises(ValueError, match="needs against="):
        compare(three, rule=path)
    path.write_text("require: multiclass/accuracy.difference.low >= -0.5\nagainst: a\n")
    with pytest.raises(ValueError, match="has 'a', but the argument is against='b'"):
        compare(three, rule=path, against="b")


@pytest.mark.parametrize(
    ("rule", "error", "says"),
    [
        ("none.yaml", ValueError, "the rule file cannot be read"),
        ("rule.json", ValueError, "a rule file must end in .yaml or .yml, got 'rule.json'"),
        (3, TypeError, "rule must be the path of a YAML file, got int"),
    ],
    ids=["absent", "ending", "number"],
)
def test_what_is_no_file_is_refused(three, rule, error, says):
    with pytest.raises(error, match=says):
        compare(three, rule=rule)


@pytest.mark.slow
@pytest.mark.parametrize(
    "given",
    [
        {},
        {"rank_by": "multiclass/accuracy", "margin": 0.0},
        {"rank_by": ["multiclass/accuracy", "class/0/recall"], "seed": 4},
        {
            "rank_by": "cost/mean",
            "grouping": Grouping({"low": [0, 1], "high": [2]}, "strict", name="ends"),
            "positive": "high",
            "costs": {(0, 2): 5},
        },
    ],
    ids=["nothing", "metric", "front", "groups"],
)
def test_arguments_are_written_as_a_rule_into_a_bundle_and_can_be_read_again(
    three, tmp_path, given
):
    """Bundles of segments and of models over blocks are verified elsewhere, by the rule that they hold."""
    comparison = compare(three, **given)
    bundle = comparison.bundle(tmp_path / "review.zip")
    path = tmp_path / "rule.yaml"
    path.write_bytes(zipfile.ZipFile(bundle).read("rule.yaml"))
    again = compare(three, rule=path)
    assert without_facts(again.to_dict()) == without_facts(comparison.to_dict())
