"""Every public class and function has an example, which the suite runs."""

from __future__ import annotations

import ast
import enum
import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import cmtrack
from support import ROOT, public_names

PACKAGES = (
    "cmtrack",
    *(
        f"cmtrack.{room}"
        for room in (
            "comparison",
            "evaluation",
            "grouping",
            "metrics",
            "plots",
            "prevalence",
            "rough",
            "rows",
            "segments",
            "sources",
            "statistics",
            "tracking",
        )
    ),
    "cmtrack_integrations.sklearn",
)
"""Where a name is public if the reference lists it; the others are for rooms and tests."""
LISTED = public_names()
HOOKS = sorted((ROOT / "integrations" / "cmtrack_integrations").glob("[!_]*.py"))
"""Modules that need a framework are read, not imported."""


def full_name(thing: Any) -> str:
    return f"{thing.__module__}.{thing.__qualname__}"


def documented(module: str) -> Iterator[tuple[str, str]]:
    """Public classes and functions of a module and their docstrings; enumerations and exceptions have no callers."""
    imported = importlib.import_module(module)
    for name in imported.__all__:
        thing = getattr(imported, name)
        if f"{module}.{name}" in LISTED and is_ours(thing):
            yield full_name(thing), inspect.getdoc(thing) or ""


def results() -> set[type]:
    """Classes of no ``__all__`` that an evaluation gives. They are public."""
    y = [0, 1] * 20
    p = [0.2, 0.7, 0.6, 0.9] * 10
    half = [0] * 20 + [1] * 20
    costs = {(0, 1): 1.0, (1, 0): 5.0}
    two = cmtrack.evaluate(y, y_prob=p, positive=1, costs=costs, segments={"half": half})
    three = cmtrack.evaluate([0, 1, 2] * 40, y_prob=(0.1 + 0.7 * np.eye(3)).tolist() * 40)
    threshold = two.threshold(costs)
    views = [two.calibration, two.gains, two.precision_recall, two.risk_coverage, two.segments]
    answers = [two.cost_at({0: 0.9, 1: 0.1}), two.net_benefit([0.2]), two.reject(0.25)]
    parts = [two.segments["half"], threshold, threshold.objective, three.class_calibration()]
    return set(map(type, [*views, *answers, *parts]))


def is_ours(thing: Any) -> bool:
    if inspect.isclass(thing) and issubclass(thing, enum.Enum | BaseException):
        return False
    return (inspect.isclass(thing) or inspect.isfunction(thing)) and thing.__module__.startswith(
        "cmtrack"
    )


def hooks() -> Iterator[tuple[str, str]]:
    for file in HOOKS:
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
                yield f"cmtrack_integrations.{file.stem}.{node.name}", ast.get_docstring(node) or ""


def without_example(texts: Iterator[tuple[str, str]]) -> list[str]:
    """Names whose docstring has no example, or has it before its notes."""
    return [
        name
        for name, text in texts
        if not re.search(r"^>>> (?![\s\S]*^Notes\n---)", text, re.MULTILINE)
    ]


@pytest.mark.parametrize("module", PACKAGES)
def test_every_public_class_and_function_has_an_example(module: str) -> None:
    assert without_example(documented(module)) == []


def test_every_result_of_an_evaluation_has_an_example() -> None:
    found = results()
    assert len(found) == 12
    assert without_example((full_name(one), inspect.getdoc(one) or "") for one in found) == []


def test_every_hook_has_an_example() -> None:
    assert without_example(hooks()) == []


def test_examples_of_cmtrack_are_run() -> None:
    skipped = [
        file
        for file in (ROOT / "cmtrack").rglob("*.py")
        if "+SKIP" in file.read_text(encoding="utf-8")
    ]
    assert skipped == []


def test_missing_examples_are_found() -> None:
    whole = "Sum.\n\nNotes\n-----\nOf two.\n\nExamples\n--------\n>>> 1 + 1\n2\n"
    reverse = "Sum.\n\nExamples\n--------\n>>> 1\n1\n\nNotes\n-----\nOf two.\n"
    texts = {"whole": whole, "none": whole.replace(">>>", ""), "reverse": reverse}
    assert without_example(iter(texts.items())) == ["none", "reverse"]
