"""Names of tests: the same in every process, or pytest-xdist stops before the first test."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent


def collected(seed: str, now: str) -> str:
    """Every test's id, by a process with another hash seed and another clock."""
    clock = f"import time; real = time.time; time.time = lambda: real() + {now}; "
    command = f"{clock}import sys, pytest; sys.exit(pytest.main(['-o', 'addopts=', '--collect-only', '-q', 'tests']))"
    environment = os.environ | {"PYTHONHASHSEED": seed}
    done = subprocess.run(
        [sys.executable, "-c", command], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return "\n".join(line for line in done.stdout.splitlines() if "::" in line)


def test_ids_of_tests_depend_on_no_clock_and_no_hash_seed() -> None:
    first = collected("1", "0")
    assert "test_collection.py::" in first
    assert first == collected("2", "86400")
