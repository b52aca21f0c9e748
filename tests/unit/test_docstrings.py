"""Every public callable has an example, which the suite runs, and says what it costs."""

from __future__ import annotations

import ast
import enum
import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest

from support import ROOT

PACKAGES = (
    "cmtrack",
    *(f"cmtrack.{room}" for room in (
        "comparison", "evaluation", "grouping", "metrics", "plots", "prevalence", "rough", "segments", "sources",
        "statistics", "tracking",
    )),
    "cmtrack_integrations.sklearn",
)  # fmt: skip
"""Where a name in ``__all__`` is public."""
GIVEN = {
    "cmtrack.evaluation.segments": ("Segments", "SegmentTable"),
    "cmtrack.evaluation.threshold": ("Judged", "Threshold"),
    "cmtrack.metrics.calibration": ("CalibrationCurve",),
    "cmtrack.metrics.class_curves": ("ClassCalibration",),
    "cmtrack.metrics.costs": ("CostAtShares",),
    "cmtrack.metrics.net_benefit": ("NetBenefit",),
    "cmtrack.metrics.precision_recall": ("GainsCurve", "PrecisionRecallCurve"),
    "cmtrack.metrics.risk_coverage": ("Rejection", "RiskCoverage"),
}
"""Classes of no ``__all__`` that an evaluation gives: they are public, too."""
HOOKS = sorted(
    file for file in (ROOT / "integrations" / "cmtrack_integrations").glob("[!_]*.py") if file.stem != "live_page"
)
"""Modules that need a framework are read, not imported; the pages of the server are nobody's to call."""


def full_name(thing: Any) -> str:
    return f"{thing.__module__}.{thing.__qualname__}"


def documented(module: str) -> Iterator[tuple[str, list[str]]]:
    """Public callables of a module: functions, classes and their methods, each with the docstrings that count for it.

    Those of a method are its own and its declarations' in the bases; enumerations and exceptions have no callers.
    """
    imported = importlib.import_module(module)
    for thing in (getattr(imported, name) for name in GIVEN.get(module) or imported.__all__):
        if not is_ours(thing):
            continue
        yield full_name(thing), [inspect.getdoc(thing) or ""]
        for name in dir(thing) if inspect.isclass(thing) else ():
            found = [vars(base)[name] for base in thing.__mro__ if name in vars(base)]
            methods = [getattr(one, "__func__", one) for one in found]
            if not name.startswith("_") and inspect.isfunction(methods[0]) and is_ours(methods[0]):
                yield full_name(methods[0]), [inspect.getdoc(method) or "" for method in methods]


def is_ours(thing: Any) -> bool:
    if inspect.isclass(thing) and issubclass(thing, enum.Enum | BaseException):
        return False
    return (inspect.isclass(thing) or inspect.isfunction(thing)) and thing.__module__.startswith("cmtrack")


def hooks() -> Iterator[tuple[str, list[str]]]:
    for file in HOOKS:
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
                yield f"cmtrack_integrations.{file.stem}.{node.name}", [ast.get_docstring(node) or ""]


def faults(text: str) -> str:
    """What a docstring lacks; nothing where it has an example and says what the callable costs."""
    example, cost, notes = (re.search(rf"^{start}", text, re.MULTILINE) for start in (">>> ", "Cost: ", "Notes\n---"))
    if example is None:
        return "no example"
    if cost is None or notes is None or cost.start() < notes.start():
        return "no line “Cost: …” in its Notes"
    if text.find("\nExamples\n---") < cost.start():
        return "Examples before Notes"
    return ""


def missing(found: Iterator[tuple[str, list[str]]]) -> list[str]:
    problems = []
    for name, texts in found:
        lacking = [faults(text) for text in texts]
        if all(lacking):
            problems.append(f"{name}: {lacking[0]}")
    return problems


@pytest.mark.parametrize("module", [*PACKAGES, *GIVEN])
def test_every_public_callable_has_an_example_and_says_what_it_costs(module: str) -> None:
    assert missing(documented(module)) == []


def test_every_hook_has_an_example_and_says_what_it_costs() -> None:
    assert missing(hooks()) == []


def test_examples_of_cmtrack_are_run() -> None:
    skipped = [file for file in (ROOT / "cmtrack").rglob("*.py") if "+SKIP" in file.read_text(encoding="utf-8")]
    assert skipped == []


def test_faults_are_found() -> None:
    whole = "Sum.\n\nNotes\n-----\nCost: none.\n\nExamples\n--------\n>>> 1 + 1\n2\n"
    assert faults(whole) == ""
    assert faults(whole.replace(">>>", "")) == "no example"
    assert faults(whole.replace("Cost:", "It costs")).startswith("no line")
    assert faults("Sum.\n\nExamples\n--------\n>>> 1\n1\n\nNotes\n-----\nCost: none.\n") == "Examples before Notes"
