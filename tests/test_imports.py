"""Importing has no side effect and loads what is used, no more."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = ("numpy", "scipy", "pandas", "matplotlib", "mlflow", "sklearn", "polars", "pyarrow", "yaml", "narwhals")


def loaded_by(code: str) -> set[str]:
    """Heavy modules in a fresh interpreter after the code has run."""
    script = f"import sys, json\n{code}\nprint(json.dumps([m for m in {HEAVY!r} if m in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_the_package_loads_nothing() -> None:
    assert loaded_by("import cmtrack; dir(cmtrack)") == set()


@pytest.mark.parametrize("module", ["cmtrack.grouping", "cmtrack.statistics", "cmtrack.metrics"])
def test_numbers_need_numpy_and_scipy_only(module: str) -> None:
    loaded = loaded_by(f"import {module}")
    assert "numpy" in loaded
    assert loaded <= {"numpy", "scipy"}


def test_evaluating_plain_data_needs_no_more() -> None:
    code = (
        "import cmtrack\n"
        "e = cmtrack.evaluate([0, 1, 2, 1], y_prob=[[.8, .1, .1], [.2, .6, .2], [.1, .1, .8], [.5, .3, .2]],\n"
        "    grouping=cmtrack.Grouping({'a': [0], 'b': [1, 2]}))\n"
        "assert e.metrics and e.intervals and e.warnings and repr(e)\n"
        "assert e + e\n"
    )
    assert loaded_by(code) == {"numpy", "scipy"}


def test_no_side_effect_on_threads_or_logging() -> None:
    code = (
        "import logging, threading\n"
        "before = list(logging.root.handlers), threading.active_count()\n"
        "import cmtrack.metrics, cmtrack.evaluation\n"
        "assert (list(logging.root.handlers), threading.active_count()) == before\n"
    )
    assert "mlflow" not in loaded_by(code)


def test_every_public_name_exists() -> None:
    import cmtrack

    assert set(cmtrack.__all__) <= set(dir(cmtrack))
    for name in cmtrack.__all__:
        assert getattr(cmtrack, name).__doc__
