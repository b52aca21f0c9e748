"""Names that 0.2 had and 0.3 has no more: each raises an error that says what to use, and the changelog lists it."""

from __future__ import annotations

import importlib
import re
from enum import Enum
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from cmtrack import (
    Comparison,
    GranuleTable,
    Transported,
    compare,
    estimate_prevalence,
    evaluate,
    log_evaluation,
    removed,
)
from cmtrack.cli import main
from cmtrack.comparison import Outcome, Ranked, Rule, judge
from cmtrack.plots import plot_reliability, reliability_figure
from cmtrack.removed import INSTEAD, RemovedFeature
from cmtrack.rows import Missed
from support import ROOT

BOUND_OF_LIMIT = re.compile(re.escape(removed.BOUND_OF_LIMIT))
WEIGHTS = re.compile(re.escape(removed.WEIGHTS))
VALUE = re.compile(r'(?!reliability_figure)(\w+)\((\w+)="(\w+)"\)')
BAND = re.compile(r'reliability_figure\(band="confidence"\)')
OPTION = re.compile(r"(\w+)\((\w+)=\)")
METHOD_OPTION = re.compile(r"([A-Z]\w+)\.(\w+)\((\w+)=\)")
DENSITY_FUNCTION = re.compile(r"estimate_prevalence\(density=function\)")
METHOD_VALUE = re.compile(r"Evaluation\.at\(scores\)")
MATRIX = re.compile(re.escape(removed.MATRIX))
FLAG = re.compile(r"cmtrack (\w+) (--[\w-]+)")
ATTRIBUTE = re.compile(r"([A-Z]\w+)\.(\w+)")
MODULE_NAME = re.compile(r"(cmtrack(?:\.[a-z]+)?)\.(\w+)")
ONLY_LISTED = re.compile(r"cmtrack\[\w+\]|cmtrack_integrations\.\w+|mlflow\.app .*|[A-Z_]+")
FUNCTIONS = {
    "compare": compare,
    "estimate_prevalence": estimate_prevalence,
    "evaluate": evaluate,
    "log_evaluation": log_evaluation,
    "plot_reliability": plot_reliability,
}
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "compare": ({"a": evaluate([0, 1], [0, 1])},),
    "plot_reliability": ([0.1, 0.4], [0.05, 0.5], [5, 50], [95, 50]),
}
CLASSES = {
    "CalibrationCurve": type(evaluate([0, 1], y_prob=[0.2, 0.7]).calibration),
    "GranuleTable": GranuleTable,
    "Comparison": Comparison,
    "Missed": Missed,
    "Outcome": Outcome,
    "Ranked": Ranked,
    "Transported": Transported,
}


def keys(form: re.Pattern[str]) -> list[str]:
    return [key for key in INSTEAD if form.fullmatch(key)]


def test_every_key_has_one_of_the_known_forms() -> None:
    forms = (
        METHOD_OPTION,
        METHOD_VALUE,
        MATRIX,
        BOUND_OF_LIMIT,
        BAND,
        VALUE,
        DENSITY_FUNCTION,
        WEIGHTS,
        OPTION,
        FLAG,
        ATTRIBUTE,
        MODULE_NAME,
        ONLY_LISTED,
    )
    unknown = [key for key in INSTEAD if not any(form.fullmatch(key) for form in forms)]
    assert not unknown


@pytest.mark.parametrize("key", keys(MODULE_NAME))
def test_a_removed_name_says_what_to_use(key: str) -> None:
    module, name = MODULE_NAME.fullmatch(key).groups()  # type: ignore[union-attr]
    with pytest.raises(ImportError, match=re.escape(INSTEAD[key])):
        getattr(importlib.import_module(module), name)
    with pytest.raises(ImportError, match=re.escape(INSTEAD[key])):
        exec(f"from {module} import {name}")


@pytest.mark.parametrize("key", keys(ATTRIBUTE))
def test_a_removed_attribute_says_what_to_use(key: str) -> None:
    class_name, name = key.split(".")
    kind = CLASSES[class_name]
    result: Any = kind if issubclass(kind, Enum) else object.__new__(kind)
    with pytest.raises(AttributeError, match=re.escape(INSTEAD[key])):
        getattr(result, name)
    with pytest.raises(AttributeError, match=f"'{class_name}'.* has no attribute 'no_such_name'"):
        result.no_such_name  # noqa: B018


@pytest.mark.parametrize("key", keys(OPTION))
def test_a_removed_option_says_what_to_use(key: str) -> None:
    function, option = OPTION.fullmatch(key).groups()  # type: ignore[union-attr]
    with pytest.raises(TypeError, match=re.escape(INSTEAD[key])):
        FUNCTIONS[function](*ARGUMENTS.get(function, ([0, 1], [0, 1])), **{option: 1})


def test_weights_by_metric_say_what_to_use() -> None:
    instead = INSTEAD[removed.WEIGHTS]
    weights = {"multiclass/accuracy": 2.0, "binary/recall": 1.0}
    with pytest.raises(RemovedFeature, match=re.escape(instead)):
        compare(*ARGUMENTS["compare"], rank_by=weights)
    with pytest.raises(RemovedFeature, match=re.escape(instead)):
        Rule.parse(b"rank_by: {multiclass/accuracy: 2}\n", "rule.yaml")
    result = CliRunner().invoke(main, ["compare", "--rank-by", "multiclass/accuracy=2"])
    assert result.exit_code == 2
    assert instead in " ".join(result.output.split())


def test_a_check_against_a_baseline_is_of_one_metric() -> None:
    run = evaluate([0, 1] * 9, [0, 1] * 9)
    with pytest.raises(
        ValueError,
        match="in one metric, got multiclass/accuracy, binary/recall: give one, or use",
    ):
        judge(run, run, rank_by=["multiclass/accuracy", "binary/recall"])
    assert judge(run, run, rank_by=["multiclass/accuracy"]).passed


PREVALENCE_VALUES = [key for key in keys(VALUE) if key.startswith("estimate_prevalence(")]
LABELLED = {2: ([0, 1], [0.2, 0.8]), 3: ([0, 1, 2] * 2, [*np.eye(3), *np.eye(3)])}


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("key", PREVALENCE_VALUES)
def test_a_removed_density_or_interval_says_what_to_use(key: str, n_classes: int) -> None:
    function, option, value = VALUE.fullmatch(key).groups()  # type: ignore[union-attr]
    calibration = LABELLED[n_classes]
    with pytest.raises(RemovedFeature, match=re.escape(f"{key}: {INSTEAD[key]}")):
        FUNCTIONS[function](calibration[1], calibration=calibration, **{option: value})


def test_a_density_function_says_what_to_use() -> None:
    (key,) = keys(DENSITY_FUNCTION)
    options: Any = {"calibration": LABELLED[2], "density": lambda negatives, positives: None}
    with pytest.raises(RemovedFeature, match=re.escape(f"{key}: {INSTEAD[key]}")):
        estimate_prevalence([0.5], **options)


@pytest.mark.parametrize("key", [key for key in keys(VALUE) if key not in PREVALENCE_VALUES])
def test_a_removed_value_says_what_to_use(key: str) -> None:
    function, option, value = VALUE.fullmatch(key).groups()  # type: ignore[union-attr]
    with pytest.raises(RemovedFeature, match=re.escape(INSTEAD[key])):
        FUNCTIONS[function](*ARGUMENTS[function], block="params.data", **{option: value})
    flag = f"--{option.replace('_', '-')}"
    result = CliRunner().invoke(main, [function, "--block", "params.data", flag, value])
    assert result.exit_code == 2
    assert INSTEAD[key] in " ".join(result.output.split())


@pytest.mark.parametrize("key", keys(METHOD_OPTION))
def test_a_removed_option_of_a_method_says_what_to_use(key: str) -> None:
    class_name, method, option = METHOD_OPTION.fullmatch(key).groups()  # type: ignore[union-attr]
    result = {"Evaluation": evaluate([0, 1], [0, 1])}[class_name]
    with pytest.raises(TypeError, match=re.escape(INSTEAD[key])):
        getattr(result, method)(0.5, **{option: 1})
    with pytest.raises(TypeError, match="unexpected keyword argument 'no_such_option'"):
        getattr(result, method)(0.5, no_such_option=1)


@pytest.mark.parametrize("key", keys(METHOD_VALUE))
def test_a_removed_value_of_a_method_says_what_to_use(key: str) -> None:
    with pytest.raises(RemovedFeature, match=re.escape(INSTEAD[key])):
        evaluate([0, 1], [0, 1]).at([0.2, 0.4, 0.9])


def test_the_other_band_says_what_to_use() -> None:
    with pytest.raises(
        RemovedFeature, match=re.escape(INSTEAD['reliability_figure(band="confidence")'])
    ):
        reliability_figure(evaluate([0, 1, 1], y_prob=[0.2, 0.4, 0.9]), band="confidence")


def test_a_bound_on_a_limit_says_what_to_use() -> None:
    evaluation = evaluate([0, 1, 1], y_prob=[0.2, 0.4, 0.9])
    with pytest.raises(RemovedFeature, match=re.escape(INSTEAD[removed.BOUND_OF_LIMIT])):
        evaluation.threshold(maximize="binary/recall", subject_to="binary/precision.low >= 0.9")


@pytest.mark.parametrize("key", keys(FLAG))
def test_a_removed_flag_says_what_to_use(key: str) -> None:
    command, flag = FLAG.fullmatch(key).groups()  # type: ignore[union-attr]
    result = CliRunner().invoke(main, [command, flag, "1"])
    assert result.exit_code == 2
    assert INSTEAD[key] in " ".join(result.output.split())


def test_nothing_that_is_removed_is_there() -> None:
    for key in keys(MODULE_NAME):
        module, _, name = key.rpartition(".")
        assert name not in dir(importlib.import_module(module))
    for key in keys(ATTRIBUTE):
        class_name, name = key.split(".")
        assert name not in dir(CLASSES[class_name])


def test_the_changelog_lists_every_removed_name() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    table = changelog.partition("### Removed in 0.3")[2].partition("\n### ")[0]
    listed = re.findall(r"^\| `([^`]+)`", table, flags=re.MULTILINE)
    assert sorted(listed) == sorted(INSTEAD)
