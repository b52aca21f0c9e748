"""Fixtures and settings of the tests; the tracking store and the places of each are in the conftest above."""

from __future__ import annotations

import functools
import inspect
import os
import re
from collections import Counter
from pathlib import Path

import hypothesis
import numpy as np
import pytest
from click.testing import CliRunner, Result

from support.problems import random_problem

# In CI the same examples every time: a red run is then about the change, and new examples are sought at the desk. No
# example is timed: how long it takes is a matter of what else the machine does.
hypothesis.settings.register_profile("ci", derandomize=True, deadline=None)
hypothesis.settings.register_profile("desk", deadline=None)
EXAMPLES = int(os.environ.get("CMTRACK_EXAMPLES", "0"))
"""Examples of each property, in place of its own number of them: a night has time for thousands, and for new ones."""
hypothesis.settings.load_profile("ci" if os.environ.get("CI") and not EXAMPLES else "desk")


if (
    "mix_stderr" in inspect.signature(CliRunner).parameters
):  # click before 8.2 has one of the two at a time
    CliRunner.__init__ = functools.partialmethod(CliRunner.__init__, mix_stderr=False)
    Result.output = property(lambda result: result.stdout + result.stderr)

ENGINE = re.compile("(?<![a-z])(spark|ray)(?![a-z])")


def pytest_addoption(parser: pytest.Parser) -> None:
    """How many files a run names that took longest."""
    parser.addoption(
        "--slowest-files", type=int, default=0, help="name this many files, the slowest first"
    )


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name the files whose tests took longest, with their fixtures."""
    seconds: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                seconds[report.nodeid.partition("::")[0]] += report.duration
    slowest = seconds.most_common(terminalreporter.config.getoption("--slowest-files"))
    for file, taken in slowest:
        terminalreporter.write_line(f"{taken:6.0f} s {file}")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark tests of the folder of integration, and by their fixtures or parameters those with Spark or a browser.

    What needs more than Python is slow by that alone.
    """
    if item.path.is_relative_to(Path(__file__).parent / "integration"):
        item.add_marker("integration")
    fixtures = getattr(item, "fixturenames", ())
    parameters = getattr(getattr(item, "callspec", None), "params", {}).values()
    needed = {*fixtures, *(value for value in parameters if isinstance(value, str))}
    for name in {"spark", "browser"} & needed:
        item.add_marker(name)
    if needed & {"spark", "ray", "browser"} or item.get_closest_marker("components"):
        item.add_marker("slow")
    test = getattr(item, "obj", None)
    # there is no public way to change what a test was given
    if EXAMPLES and hypothesis.is_hypothesis_test(test):
        given = test._hypothesis_internal_use_settings
        test._hypothesis_internal_use_settings = hypothesis.settings(given, max_examples=EXAMPLES)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """One worker has all tests that start Spark, one those that start Ray; the others go file by file."""
    from xdist.scheduler import LoadFileScheduling

    class ByEngineOrFile(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            engine = ENGINE.search(nodeid)
            return engine[0] if engine else super()._split_scope(nodeid)

    return ByEngineOrFile(config, log)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the slow tests first, so that no worker is left with a long file in the end; leave out what is thinned."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)
    if not os.environ.get("CMTRACK_TEST_ALL"):
        seen: Counter[str] = Counter()
        for item in items[:]:
            thin = item.get_closest_marker("thin")
            name = item.nodeid.partition("[")[0]
            if item.get_closest_marker("night") or (thin and seen[name] % thin.args[0]):
                items.remove(item)
            seen[name] += 1


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A tracking server with its own artifact store, which is the store of the test."""
    from cmtrack.tracking import tracking_store
    from support.components import tracking_server

    monkeypatch.chdir(tmp_path)
    with tracking_server(tmp_path) as running, tracking_store(running.url):
        yield running


@pytest.fixture(scope="module")
def undrawn():
    """MLflow runs get their reports without pictures, which take most of the time and have tests of their own."""
    from support.faults import draw_nothing

    with pytest.MonkeyPatch.context() as patch:
        draw_nothing(patch)
        yield


@pytest.fixture
def drawn(undrawn: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """One test of a file without pictures has them."""
    from support.faults import draw_everything

    draw_everything(monkeypatch)


@pytest.fixture
def seven_classes() -> tuple[np.ndarray, np.ndarray]:
    """Labels (400,) and probabilities (400, 7) of a fair classifier."""
    y, _, p = random_problem(7, n=400, k=7)
    return y, p
