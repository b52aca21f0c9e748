"""``evaluate_table`` on clusters of several processes: the numbers of ``evaluate``, even if a worker is lost.

Spark and Dask run as they do on several machines: rows are in other processes than the test, where the kernel counts
them, and only tallies come back.
"""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

pytest.importorskip("psutil")

import psutil

from cmtrack import Grouping, evaluate, evaluate_table

# Inside: how many bytes a worker returns is seen where they are unpacked.
from cmtrack.sources import source
from support.clusters import (
    DaskCluster,
    NothingLost,
    SparkCluster,
    dask_cluster,
    need_java,
    one_lost,
    spark_cluster,
)
from support.problems import random_problem
from support.tables import EXAMPLE, QUICK_START, assert_example_agrees, assert_same

pytestmark = pytest.mark.slow

N, K = 30_000, 4
Y, BEST, P = random_problem(5, n=N, k=K, digits=3)
NAMES = np.array(["amber", "blue", "crimson", "Dun x"])
LABELS, PREDICTED = NAMES[Y], NAMES[np.roll(BEST, 1)]
WEIGHTS = np.random.default_rng(1).uniform(0, 3, N)
IDS = np.random.default_rng(2).permutation(N) - 17
HYBRID = Grouping(
    {"warm": ["amber", "crimson"], "cold": ["blue", "Dun x"]},
    {"warm": "strict", "cold": [("blue", "Dun x")]},
    positive="warm",
)
CHAIN = Grouping({"a": NAMES[[0, 2]], "b": NAMES[[1]], "c": NAMES[[3]]}, "strict").then(
    Grouping({"known": ["a", "b"], "other": ["c"]}, positive="known")
)
FRAME = pd.DataFrame({"y": LABELS, "t": PREDICTED, "w": WEIGHTS, "id": IDS})
FRAME = FRAME.assign(**{f"p_{NAMES[k]}": P[:, k] for k in range(K)})
BY_LABEL = {str(name): P[:, k] for k, name in enumerate(NAMES)}
PARTS = (0, 7_000, 7_000, 15_000, N)
"""Where the files begin; the second one is empty."""

CASES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "classes": ({}, {"y_prob": "p_*"}, {"y_prob": BY_LABEL}),
    "hybrid, grid": (
        {"grouping": HYBRID},
        {"y_prob": "p_*", "row_ids": "id"},
        {"y_prob": BY_LABEL, "row_ids": IDS},
    ),
    "chain, weights": (
        {"grouping": CHAIN, "confidence_level": 0.9},
        {"y_pred": "t", "y_prob": "p_*", "sample_weight": "w"},
        {"y_pred": PREDICTED, "y_prob": BY_LABEL, "sample_weight": WEIGHTS},
    ),
}


def write(folder: Path, frame: pd.DataFrame) -> Path:
    """The rows in several files of Parquet, one of them empty."""
    folder.mkdir()
    table = pa.Table.from_pandas(frame, preserve_index=False)
    for number, (start, end) in enumerate(pairwise(PARTS)):
        pyarrow.parquet.write_table(
            table.slice(start, end - start), folder / f"part{number}.parquet"
        )
    return folder


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("rows") / "all", FRAME)


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    with spark_cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def dask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskCluster]:
    with dask_cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture(scope="module", params=["spark", "dask"])
def cluster(request: pytest.FixtureRequest) -> SparkCluster | DaskCluster:
    return request.getfixturevalue(request.param)  # type: ignore[no-any-return]


def assert_agrees(table: Any, case: str) -> None:
    """A table's evaluation is that of the arrays."""
    options, columns, arrays = CASES[case]
    found = evaluate_table(table, y_true="y", progress=False, **columns, **options)
    expected = evaluate(LABELS, **arrays, **options)
    assert_same(found, expected)
    for name, ends in replace(
        expected, of_rows=replace(expected.of_rows, errors={})
    ).intervals.items():  # a table's rows are not kept
        assert found.intervals[name] == pytest.approx(ends, rel=1e-9, abs=1e-11, nan_ok=True), name
    assert (found.statistics.scores is None) == ("grouping" not in options)
    assert found.statistics.scores is None or found.statistics.scores.exact == (
        case != "hybrid, grid"
    )


@pytest.fixture
def few_exact_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if there were more rows than are counted by each score."""
    # a limit that no option sets
    monkeypatch.setattr("cmtrack.statistics.scores.EXACT_ROWS", 1000)


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many bytes each task of a cluster returns."""
    returned, unpacked = [], source.unpacked

    def counted(packed: Any) -> Any:
        returned.append(len(packed))
        return unpacked(packed)

    monkeypatch.setattr(source, "unpacked", counted)
    return returned


# -- the numbers, and what comes back ---------------------------------------------------------------------------------


@pytest.mark.parametrize("case", ["hybrid, grid", "chain, weights"])
def test_a_cluster_agrees_and_returns_tallies(
    cluster: SparkCluster | DaskCluster,
    files: Path,
    case: str,
    sizes: list[int],
    request: pytest.FixtureRequest,
) -> None:
    if "grid" in case:
        request.getfixturevalue("few_exact_rows")
    assert_agrees(cluster.read(files), case)
    assert 1 <= len(sizes) <= 8  # of each partition one at most
    if "grid" in case:
        assert sum(sizes) < N * K * 8 / 2, sizes


def test_the_labels_are_read_first_where_nothing_names_them(
    cluster: SparkCluster | DaskCluster, files: Path
) -> None:
    columns = [f"p_{name}" for name in NAMES]
    found = evaluate_table(cluster.read(files), y_true="y", y_prob=columns, progress=False)
    assert_same(found, evaluate(LABELS, y_prob=P))
    found = evaluate_table(cluster.read(files), y_true="y", y_pred="t", progress=False)
    assert_same(found, evaluate(LABELS, PREDICTED))


# -- a worker is lost -------------------------------------------------------------------------------------------------


@pytest.mark.thin(2)
@pytest.mark.parametrize("which", ["at work", "done"])
def test_a_worker_is_lost_in_the_middle(
    cluster: SparkCluster | DaskCluster, files: Path, which: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # so that tallies wait on the workers to be added up
    monkeypatch.setattr("cmtrack.sources.spark.FAN_IN", 2)
    # a scheduler may give the frozen worker nothing: no loss, so once more
    for left in reversed(range(3)):
        table = cluster.read(files)
        try:
            with one_lost(cluster, which) as lost:
                assert_agrees(table, "classes")
        except NothingLost:
            if not left:
                raise
            continue
        assert (
            not psutil.pid_exists(lost[0])
            or psutil.Process(lost[0]).status() == psutil.STATUS_ZOMBIE
        )
        break


# -- wrong rows -------------------------------------------------------------------------------------------------------

WRONG: dict[str, tuple[str, dict[int, Any], dict[str, Any], str]] = {
    "NaN": (
        "p_Dun x",
        {12_345: np.nan},
        {"y_prob": "p_*"},
        f"y_prob must be finite, got NaN or null in 1 of {N} rows",
    ),
    "no label": (
        "y",
        {12_345: None, 3: None},
        {"y_prob": "p_*"},
        f"y_true must not have missing labels, got 2 in {N}",
    ),
    "no label of some": (
        "y",
        {12_345: None, 3: None, 29_000: None},
        {"y_pred": "t", "labels": [str(name) for name in NAMES]},
        f"y_true must not have missing labels, got 3 in {N}",
    ),
    "unknown label": (
        "t",
        {12_345: "mauve", 29_999: "mauve", 1: "teal"},
        {"y_pred": "t", "labels": [str(name) for name in NAMES]},
        r"y_pred has labels that are not in .*teal.*\(3 rows\)",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_rows_are_counted(
    cluster: SparkCluster | DaskCluster, case: str, tmp_path: Path
) -> None:
    column, values, options, text = WRONG[case]
    frame = FRAME.copy()
    for row, value in values.items():
        frame.loc[row, column] = value
    folder = write(tmp_path / "wrong", frame)
    texts = []
    for table in (cluster.read(folder), folder):
        with pytest.raises(ValueError, match=text) as caught:
            evaluate_table(table, y_true="y", **options)
        texts.append(sorted(str(caught.value)))  # the labels of a list may come in any order
    assert texts[0] == texts[1]


# -- Java, and the example ---------------------------------------------------------------------------------------------


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)


def test_java_may_be_missing_outside_ci_alone(
    no_java: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="Spark needs Java 17"):
        need_java()
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="Spark needs Java 17"):
        need_java()


SAME = re.compile(r"^(\w+) +has the same counts, and metrics within (\S+)$", re.MULTILINE)


def test_the_example_runs(tmp_path: Path) -> None:
    """As a user runs it: all engines with CMTRACK_TEST_ALL=1, otherwise those that start no cluster."""
    every = bool(os.environ.get("CMTRACK_TEST_ALL"))
    if every:
        need_java()
    paths = os.pathsep.join([str(EXAMPLE.parent.parent), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, str(EXAMPLE), *([] if every else ["--quick"])],
        cwd=tmp_path,
        env=dict(os.environ) | {"PYTHONPATH": paths, "JDK_JAVA_OPTIONS": QUICK_START},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    found = SAME.findall(done.stdout)
    engines = ["DuckDB", "Polars", "Dask", "Spark", "Ray"]
    assert [engine for engine, _ in found] == (engines if every else engines[:2]), done.stdout
    assert all(float(off) < 1e-9 for _, off in found)
    assert not list(tmp_path.iterdir())


@pytest.mark.night
@pytest.mark.parametrize("engine", ["dask", "spark"])
def test_the_clusters_of_the_example_agree(
    engine: str, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if engine == "spark":  # the one that other tests have started
        session = request.getfixturevalue("spark").session
        monkeypatch.setattr(type(session), "stop", lambda _: None)
    assert_example_agrees(engine, tmp_path)


def test_the_example_says_what_it_lacks(no_java: None, tmp_path: Path) -> None:
    with pytest.raises(ImportError, match="Java 17 or newer, and neither JAVA_HOME"):
        runpy.run_path(str(EXAMPLE))["by_spark"](tmp_path)
