"""Names of tests: the same in every process, or pytest-xdist stops before the first test."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from support import ROOT

pytestmark = pytest.mark.slow


def collecting(seed: str, now: str) -> subprocess.Popen[str]:
    """A process with its own hash seed and clock that lists every test's id."""
    clock = f"import time; real = time.time; time.time = lambda: real() + {now}; "
    command = f"{clock}import sys, pytest; sys.exit(pytest.main(['-o', 'addopts=', '--collect-only', '-q', 'tests']))"
    environment = os.environ | {"PYTHONHASHSEED": seed}
    return subprocess.Popen(
        [sys.executable, "-c", command], cwd=ROOT, env=environment,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


def test_ids_of_tests_depend_on_no_clock_and_no_hash_seed() -> None:
    listed = []
    for process in [collecting("1", "0"), collecting("2", "86400")]:
        text, _ = process.communicate(timeout=300)
        assert process.returncode == 0, text[-2000:]
        listed.append([line for line in text.splitlines() if "::" in line])
    first, second = listed
    assert any(line.startswith("tests/unit/test_collection.py::") for line in first)
    assert first == second
