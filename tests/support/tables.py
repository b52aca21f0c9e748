"""Tables of every engine, and checks that an evaluation of a table equals the evaluation of the arrays."""

from __future__ import annotations

import functools
import os
import runpy
import shutil
import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cmtrack import Evaluation, evaluate

# Inside: tables and arrays must agree in every sum, not in the values alone.
from cmtrack.statistics.collected import Statistics
from support import ROOT
from support.problems import random_problem

FILES = ("parquet", "glob", "folder", "csv")
FRAMES = ("duckdb", "polars", "polars lazy", "pandas", "pyarrow", "dask")
ENGINES = (*FILES, *FRAMES, "spark")
EVERY_SOURCE = [
    pytest.param(name, marks=pytest.mark.slow if name in ("spark", "ray") else ())
    for name in (*ENGINES, "ibis", "ray")
]
"""Parameters of a test that covers every known source."""

EXAMPLE = ROOT / "examples" / "table_engines.py"
QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Options of Java: its optimising compiler takes longer than a test."""


@functools.cache
def spark() -> Any:
    """Return the Spark session that all tests of a process share."""
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable  # Spark's workers need cmtrack
    options = {
        "spark.driver.extraJavaOptions": QUICK_START,
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "4",
        "spark.ui.enabled": "false",
    }
    session = functools.reduce(
        lambda made, pair: made.config(*pair), options.items(), SparkSession.builder
    )
    started = session.master("local[2]").appName("cmtrack").getOrCreate()
    started.sparkContext.setLogLevel("ERROR")
    return started


@functools.cache
def ray_data() -> Any:
    """Return ``ray.data``, with one Ray of two workers for all tests of a process."""
    cluster, data = pytest.importorskip("ray"), pytest.importorskip("ray.data")
    cluster.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    data.DataContext.get_current().enable_progress_bars = False
    return data


def as_table(engine: str, frame: pd.DataFrame, folder: Path) -> Any:
    """Return a pandas frame's rows in another engine or in files, in three parts (one empty) if it has parts."""
    import duckdb
    import pyarrow as pa

    if engine == "pandas":
        return frame
    if engine == "csv":
        # their texts would be shorter than they are
        single = frame.select_dtypes("float32").columns
        frame.astype(dict.fromkeys(single, "float64")).to_csv(folder / "all.csv", index=False)
        return folder / "all.csv"
    parts = [frame.iloc[:7], frame.iloc[7:7], frame.iloc[7:]]
    if engine in FILES:
        for number, part in enumerate([frame] if engine == "parquet" else parts):
            part.to_parquet(folder / f"part{number}.parquet")
        return {
            "parquet": folder / "part0.parquet",
            "glob": f"{folder}/part*.parquet",
            "folder": folder,
        }[engine]
    if engine == "dask":
        dd = pytest.importorskip("dask.dataframe")
        return dd.concat([dd.from_pandas(part, npartitions=1) for part in parts])
    table = pa.Table.from_pandas(frame, preserve_index=False)
    if engine == "pyarrow":
        return table
    if engine == "duckdb":
        return duckdb.from_arrow(table)
    if engine == "spark":
        empty = spark().createDataFrame(table.slice(0, 7)).limit(0)
        return spark().createDataFrame(table).repartition(3).union(empty)
    if engine == "ray":
        return ray_data().from_arrow(table).repartition(3)
    import polars as pl

    eager = pl.from_arrow(table)
    if engine == "ibis":
        return pytest.importorskip("ibis").polars.connect({"rows": eager}).table("rows")
    return eager if engine == "polars" else eager.lazy()


def assert_same(found: Evaluation, expected: Evaluation) -> None:
    """Check that counts and everything computed from them are equal, moments to rounding, errors by rows no larger."""
    assert found.rows is None
    for name, error in (expected.row_facts.errors or {}).items():
        if np.isnan(error):  # a class with the weight of one row has none
            assert name not in found.standard_errors, name
        else:
            assert found.standard_errors[name] >= error * (1 - 1e-9), name
    # a table's rows are not kept
    expected = replace(expected, of_rows=replace(expected.of_rows, errors={}))
    assert found.labels == expected.labels
    assert found.positive == expected.positive
    assert found.grouping == expected.grouping
    assert_same_statistics(found.statistics, expected.statistics)
    assert_numbers(found.metrics, expected.metrics, 1e-9)
    assert_numbers(found.standard_errors, expected.standard_errors, 1e-8)
    assert found.intervals.keys() == expected.intervals.keys()
    for name, ends in expected.intervals.items():
        assert found.intervals[name] == pytest.approx(ends, rel=1e-8, abs=1e-11, nan_ok=True), name
    for ours, theirs in zip(found.reduced, expected.reduced, strict=True):
        assert_counts(ours.counts, theirs.counts)
        assert_counts(ours.mismatches, theirs.mismatches)
    assert found.undefined == expected.undefined
    assert found.warnings == expected.warnings


def assert_numbers(found: dict[str, float], expected: dict[str, float], tolerance: float) -> None:
    """Check that the names are equal, and that the numbers are as close as requested."""
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, rel=tolerance, abs=1e-11, nan_ok=True), name


def assert_same_statistics(found: Statistics, expected: Statistics) -> None:
    """Check that statistics are equal except for the digests, because a table has no order."""
    for item in fields(expected):
        ours, theirs = getattr(found, item.name), getattr(expected, item.name)
        assert (ours is None) == (theirs is None), item.name
        if theirs is None or item.name in ("digest", "row_ids"):
            continue
        if item.name == "squares":
            assert_same_statistics(ours, theirs)
        elif item.name in ("moments", "score_moments"):
            assert_moments(ours, theirs)
        elif item.name == "cross":
            np.testing.assert_allclose(ours.sums, theirs.sums, rtol=1e-10, atol=1e-10)
        elif item.name == "losses":
            assert_counts(ours.n, theirs.n)
            assert_counts(ours.impossible, theirs.impossible)
            np.testing.assert_array_equal(ours.groups, theirs.groups)
            for name in ("mean", "m2"):
                np.testing.assert_allclose(
                    getattr(ours, name), getattr(theirs, name), rtol=1e-10, atol=1e-10
                )
        elif item.name == "labels_variance":
            assert ours == pytest.approx(theirs, rel=1e-12)
        elif item.name == "decisions":
            assert_counts(ours.counts, theirs.counts)
            for name in ("costs", "mean", "m2"):
                np.testing.assert_allclose(
                    getattr(ours, name), getattr(theirs, name), rtol=1e-10, atol=1e-10
                )
        else:
            for own, other in zip(
                getattr(ours, "tables", [ours]), getattr(theirs, "tables", [theirs]), strict=True
            ):
                assert_counts(own.counts, other.counts)
                if hasattr(other, "values"):
                    np.testing.assert_array_equal(own.values, other.values)
                    assert own.exact == other.exact
                    assert (own.sums is None) == (other.sums is None)
                    if other.sums is not None:
                        np.testing.assert_allclose(own.sums, other.sums, rtol=1e-9, atol=1e-10)


def assert_counts(found: Any, expected: Any) -> None:
    """Check that counts are equal, or equal to rounding if weights are fractions."""
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=0 if expected.dtype.kind == "i" else 1e-12)


def assert_moments(found: Any, expected: Any) -> None:
    """Check moments to 1e-10 (third moments, which may cancel, relative to their bound) and to the rounding of sums.

    A sum of powers of n scores that are at most s away from 0 is moved to another centre, with an error of a few
    eps n s^k. If the scores of a class are equal, the sum consists only of this error.
    """
    assert_counts(found.n, expected.n)
    n = np.maximum(expected.n.astype(np.float64), 1).reshape(-1, 1)
    largest = np.max(np.abs(expected.mean) + expected.m4**0.25, initial=0.0)
    scale = {"mean": np.abs(expected.mean), "m2": expected.m2, "m4": expected.m4}
    scale["m3"] = np.sqrt(expected.m2 * expected.m4)
    for power, name in enumerate(("mean", "m2", "m3", "m4"), 1):
        rounding = 8 * np.finfo(float).eps * largest**power * (n if power > 1 else 1)
        off = np.abs(getattr(found, name) - getattr(expected, name))
        assert (off <= 1e-10 * scale[name] + rounding).all(), (name, off.max())


def assert_example_agrees(engine: str, folder: Path) -> None:
    """Check that the example's results with an engine equal the results of ``evaluate``."""
    example = runpy.run_path(str(EXAMPLE))
    y, _, p = random_problem(3, n=400, k=10)
    rows = folder / "predictions"
    rows.mkdir()
    pd.DataFrame(p, columns=[f"p_{digit}" for digit in range(10)]).assign(y=y).to_parquet(
        rows / "part.parquet"
    )
    found, expected = (
        example[f"by_{engine}"](rows),
        evaluate(y, y_prob=p, grouping=example["LOOPS"]),
    )
    assert found.confusion_matrix == expected.confusion_matrix
    assert found.metrics == pytest.approx(expected.metrics, rel=1e-9, nan_ok=True)
