"""Names of tests: the same in every process, or pytest-xdist stops before the first test."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from support import ROOT, TESTS

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")) > 1
        and not os.environ.get("CMTRACK_TEST_ALL"),
        reason="pytest-xdist itself has compared the ids of its workers, each with a hash seed of its own",
    ),
]


def test_ids_of_tests_depend_on_no_clock_and_no_hash_seed(request: pytest.FixtureRequest) -> None:
    """Another process, with its own hash seed and clock, lists the tests of these files under the same ids."""
    here = [item for item in request.session.items if item.path.is_relative_to(TESTS)]
    ours = {item.nodeid for item in here if not isinstance(item, pytest.DoctestItem)}
    files = sorted({str(item.path) for item in here})
    clock = "import time; real = time.time; time.time = lambda: real() + 86400; "
    command = f"{clock}import sys, pytest; sys.exit(pytest.main(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", command, "-o", "addopts=", "--collect-only", "-q", *files],
        cwd=ROOT,
        env=os.environ | {"PYTHONHASHSEED": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-2000:]
    listed = {line for line in done.stdout.splitlines() if "::" in line}
    assert request.node.nodeid in ours
    assert ours <= listed
