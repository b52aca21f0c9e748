"""Every public class and function has an example, which the suite runs."""

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
LISTED = set(
    re.findall(
        r"^   (cmtrack\w*\.[\w.]+)$",
        (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
)
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
HOOKS = sorted((ROOT / "integrations" / "cmtrack_integrations").glob("[!_]*.py"))
"""Modules that need a framework are read, not imported."""


def full_name(thing: Any) -> str:
    return f"{thing.__module__}.{thing.__qualname__}"


def documented(module: str) -> Iterator[tuple[str, str]]:
    """Public classes and functions of a module and their docstrings; enumerations and exceptions have no callers."""
    imported = importlib.import_module(module)
    names = GIVEN.get(module) or [name for name in imported.__all__ if f"{module}.{name}" in LISTED]
    for thing in (getattr(imported, name) for name in names):
        if is_ours(thing):
            yield full_name(thing), inspect.getdoc(thing) or ""


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


@pytest.mark.parametrize("module", [*PACKAGES, *GIVEN])
def test_every_public_class_and_function_has_an_example(module: str) -> None:
    assert without_example(documented(module)) == []


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
