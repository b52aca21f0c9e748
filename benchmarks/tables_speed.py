"""`evaluate_table` on generated Parquet files: how time and memory grow, by source.

Every line is a new process that evaluates the same files of class probabilities, after a first small table. DuckDB sums
all columns for comparison ("floor"). Memory is the largest resident size of the process and of the processes that it
started (Spark's Java machine and Python workers, Ray's store), minus the size before the call, including mapped pages
of the files. If the table must be in memory (pandas, PyArrow), it is loaded before, and the column "input" shows its
size. "Tallies" come back from the workers of a cluster, and "kB back" are their bytes.

"Labels" are two columns of integers or texts, compared with DuckDB's ``GROUP BY ALL`` of the same files, with the same
number of threads.

python benchmarks/tables_speed.py [--rows 1e6,1e7] [--engines path,duckdb,polars,pandas,dask,spark,ray] [--classes 11]
    [--growth 1e6,1e7,1e8] [--widths 2,11,30,100] [--group 500000] [--repeats 3] [--folder where the files are made]
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from measure import (
    Peak,
    blocks,
    family,
    in_fresh_process,
    numbers,
    probabilities_of,
    say,
    shown,
    table,
)

PER_FILE = 1 << 20
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Took:
    """Measurements of one process."""

    wall: float
    cpu: float
    peak: float
    """MiB."""
    given: float
    """MiB that the table had in memory before."""
    floor: float
    tallies: int
    back: float
    """kB that they had."""
    kept: int
    """Numbers in the evaluation's statistics."""


def make_files(folder: Path, rows: int, classes: int, dtype: str, group: int | None) -> float:
    """Write files of a million rows with ``y_true`` and ``p0``, ``p1``, …; return their size in MB.

    ``group``: number of rows in a row group; all row groups are then in one file.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    writer = None
    for number, part in enumerate(blocks(rows, group or min(PER_FILE, max(rows // 8, 1)))):
        y = np.random.default_rng(number).integers(0, classes, part.stop - part.start)
        probabilities = probabilities_of(y, classes, dtype, seed=rows + number)
        columns = {"y_true": y} | {f"p{k}": probabilities[:, k] for k in range(classes)}
        block = pa.table(columns)
        if group is None or writer is None:
            path = folder / f"part-{number:05}.parquet"
            writer = pq.ParquetWriter(path, block.schema, use_dictionary=["y_true"])
        writer.write_table(block, row_group_size=len(block))
        if group is None or part.stop == rows:
            writer.close()
    return sum(path.stat().st_size for path in folder.iterdir()) / 1e6


@contextmanager
def files(
    where: str | None, rows: int, classes: int, dtype: str, group: int | None = None
) -> Iterator[tuple[Path, float]]:
    """Yield a folder of files, and remove it afterwards."""
    need = rows * classes * np.dtype(dtype).itemsize * 1.2
    with tempfile.TemporaryDirectory(prefix="tables", dir=where) as scratch:
        if shutil.disk_usage(scratch).free < need + 2e9:
            raise OSError(
                f"{need / 1e9:.1f} GB and 2 GB more must be free for {rows:,} rows of {classes} classes"
            )
        size = make_files(Path(scratch), rows, classes, dtype, group)
        say(f"{rows:,} rows, {classes} classes of {dtype}: {size:,.0f} MB of Parquet")
        yield Path(scratch), size


def _path(pattern: str) -> Any:
    return pattern


def _duckdb(pattern: str) -> Any:
    import duckdb

    return duckdb.read_parquet(pattern)


def _polars(pattern: str) -> Any:
    import polars as pl

    return pl.scan_parquet(pattern)


def _pandas(pattern: str) -> Any:
    import pandas as pd

    return pd.read_parquet(str(Path(pattern).parent))


def _pyarrow(pattern: str) -> Any:
    import pyarrow.parquet as pq

    return pq.read_table(str(Path(pattern).parent))


def _dask(pattern: str) -> Any:
    import dask
    import dask.dataframe as dd

    dask.config.set(scheduler="threads")
    return dd.read_parquet(pattern)


def _ray(pattern: str) -> Any:
    import ray.data

    if not ray.is_initialized():
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
        ray.data.range(10).count()  # its start does not count
    ray.data.DataContext.get_current().enable_progress_bars = False
    return ray.data.read_parquet(str(Path(pattern).parent))


def _spark(pattern: str) -> Any:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "4g")
        .config("spark.sql.shuffle.partitions", "4")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    session.range(10).count()  # its start does not count
    return session.read.parquet(str(Path(pattern).parent))


ENGINES: dict[str, Callable[[str], Any]] = {
    "path": _path,
    "duckdb": _duckdb,
    "polars": _polars,
    "pandas": _pandas,
    "pyarrow": _pyarrow,
    "dask": _dask,
    "spark": _spark,
    "ray": _ray,
}


def one(engine: str, folder: str, warm: str, classes: int, rows: int) -> Took:
    """Evaluate the files in this process, after the files of `warm`, so that imports and set-up do not count."""
    from cmtrack import Grouping, evaluate_table

    warnings.simplefilter("ignore")
    columns = [f"p{k}" for k in range(classes)]
    grouping = Grouping.nps() if classes == 11 else None

    def call(given: Any) -> Any:
        evaluation = evaluate_table(
            given, y_true="y_true", y_prob=columns, labels=list(range(classes)), grouping=grouping
        )
        evaluation.metrics  # noqa: B018
        return evaluation

    call(ENGINES[engine](f"{warm}/*.parquet"))
    with Peak() as held:
        given = ENGINES[engine](f"{folder}/*.parquet")
    with results() as came, Peak() as peak:
        start, start_cpu = time.perf_counter(), _cpu()
        evaluation = call(given)
        wall, cpu = time.perf_counter() - start, _cpu() - start_cpu
    if evaluation.n_samples != rows:
        raise ValueError(f"{rows:,} rows were written, {evaluation.n_samples:,} evaluated")
    return Took(
        wall,
        cpu,
        peak.bytes / 2**20,
        held.bytes / 2**20,
        _floor(f"{folder}/*.parquet"),
        len(came),
        sum(came) / 1e3,
        cells_of(evaluation.statistics),
    )


def _floor(pattern: str) -> float:
    import duckdb

    times = []
    for _ in range(2):
        start = time.perf_counter()
        duckdb.sql(f"select sum(columns(*)) from '{pattern}'").fetchall()
        times.append(time.perf_counter() - start)
    return min(times)


def _cpu() -> float:
    """Return the processor seconds of this process and of the processes that it started."""
    ticks = 0
    for process in family():
        try:
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += sum(map(int, fields[11:15]))
    return ticks / TICKS


@contextmanager
def results() -> Iterator[list[int]]:
    """Yield the bytes of each tally that workers return in the block."""
    from cmtrack.sources import source

    came: list[int] = []
    unpacked = source.unpacked

    def watched(packed: Any) -> Any:
        came.append(len(packed))
        return unpacked(packed)

    source.unpacked = watched
    try:
        yield came
    finally:
        source.unpacked = unpacked


def cells_of(value: Any) -> int:
    """Return how many numbers a statistic has."""
    if isinstance(value, np.ndarray):
        return value.size
    if isinstance(value, (int, float)):
        return 1
    if isinstance(value, (tuple, list)):
        return sum(map(cells_of, value))
    return sum(map(cells_of, vars(value).values())) if hasattr(value, "__dict__") else 0


def labels_beside_duckdb(rows: int, folder: str | None) -> Iterator[tuple[object, ...]]:
    """Yield lines of ratios by the kind of labels: of elapsed time and of processor time."""
    import duckdb
    import pyarrow as pa
    import pyarrow.parquet as pq

    from cmtrack import evaluate_table

    with tempfile.TemporaryDirectory(prefix="labels", dir=folder) as scratch:
        for number, part in enumerate(blocks(rows, PER_FILE)):
            rng = np.random.default_rng(number)
            actual = rng.integers(0, 11, part.stop - part.start)
            predicted = np.where(
                rng.random(len(actual)) < 0.7, actual, rng.integers(0, 11, len(actual))
            )
            texts = np.array([f"class {k}" for k in range(11)])
            columns = {
                "integers": actual,
                "integers2": predicted,
                "texts": texts[actual],
                "texts2": texts[predicted],
            }
            pq.write_table(pa.table(columns), Path(scratch) / f"part-{number:05}.parquet")
        files = f"{scratch}/*.parquet"
        duckdb.sql(f"SET threads = {len(os.sched_getaffinity(0))}")
        for kind in ("integers", "texts"):
            ratios = []
            for _ in range(4):
                times = []
                for call in (
                    lambda kind=kind: duckdb.sql(
                        f"SELECT {kind}, {kind}2, count(*) FROM '{files}' GROUP BY ALL"
                    ).fetchall(),
                    lambda kind=kind: evaluate_table(files, y_true=kind, y_pred=f"{kind}2").metrics,
                ):
                    start, cpu = time.perf_counter(), time.process_time()
                    call()
                    times.append((time.perf_counter() - start, time.process_time() - cpu))
                ratios.append(np.divide(times[1], times[0]))
            clock, processor = np.median(ratios[1:], axis=0)  # the first pair warms
            yield kind, rows, f"{clock:.2f}×", f"{processor:.2f}×"


HEAD = (
    "engine",
    "rows",
    "classes",
    "Parquet, MB",
    "s",
    "processor, s",
    "× floor",
    "M rows a s",
    "peak, MiB",
    "input, MiB",
    "tallies",
    "kB back",
    "cells kept",
)


def line(
    engine: str, rows: int, classes: int, options: argparse.Namespace
) -> list[tuple[object, ...]]:
    """Return one row of a table; a failure is shown in it and stops nothing."""
    lines: list[tuple[object, ...]] = []
    with (
        files(options.folder, rows, classes, options.dtype, options.group) as (folder, size),
        files(options.folder, 5000, classes, options.dtype) as (warm, _),
    ):
        for name in engine.split(","):
            had: list[Took] = []
            try:
                for _ in range(options.repeats if rows <= 10**7 else 1):
                    had.append(in_fresh_process(one, name, str(folder), str(warm), classes, rows))
                    say(f"{name}, {rows:,} rows, {classes} classes: {had[-1]}")
            except (RuntimeError, MemoryError) as error:
                say(f"{name}: {error}")
                lines.append(
                    (
                        name,
                        rows,
                        classes,
                        f"{size:,.0f}",
                        f"fails: {error}"[:100],
                        *[""] * (len(HEAD) - 5),
                    )
                )
                continue
            took = {
                field: float(np.median([asdict(each)[field] for each in had]))
                for field in asdict(had[0])
            }
            over = float(np.median([each.wall / each.floor for each in had]))
            speed = rows / took["wall"] / 1e6
            back = (f"{took[field]:,.0f}" for field in ("tallies", "back", "kept"))
            memory = (f"{took[field]:,.0f}" for field in ("peak", "given"))
            times = (f"{took['wall']:.2f}", f"{took['cpu']:.2f}", shown(over), shown(speed))
            lines.append((name, rows, classes, f"{size:,.0f}", *times, *memory, *back))
    return lines


def main() -> None:
    """Print Markdown tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=numbers, default=[10**6], help="rows for each engine")
    parser.add_argument(
        "--engines", "--engine", default="path,duckdb,polars,pandas,pyarrow,dask,spark,ray"
    )
    parser.add_argument("--classes", type=int, default=11)
    parser.add_argument(
        "--growth", type=numbers, default=[10**6, 10**7], help="rows for DuckDB alone; empty: none"
    )
    parser.add_argument(
        "--widths", type=numbers, default=[2, 11, 30, 100], help="classes for DuckDB; empty: none"
    )
    parser.add_argument("--dtype", choices=("float32", "float64"), default="float32")
    parser.add_argument(
        "--labels", type=numbers, default=[10**7], help="rows of labels alone; empty: none"
    )
    parser.add_argument(
        "--group", type=int, help="rows in a row group, with all row groups in one file"
    )
    parser.add_argument(
        "--repeats", type=int, default=3, help="processes a line, up to ten million rows"
    )
    parser.add_argument(
        "--folder", help="where the files are made; by default where temporary files go"
    )
    options = parser.parse_args()
    unknown = set(options.engines.split(",")) - ENGINES.keys()
    if unknown:
        parser.error(f"--engines takes {', '.join(ENGINES)}, got {', '.join(sorted(unknown))}")
    parts = {
        "Engines": [(options.engines, n, options.classes) for n in options.rows],
        "Growth with the rows": [("duckdb", n, options.classes) for n in options.growth],
        "Growth with the classes": [("duckdb", options.rows[0], k) for k in options.widths],
    }
    for title, wanted in parts.items():
        lines = [each for engine, n, k in wanted for each in line(engine, n, k, options)]
        if lines:
            print(f"{title}\n")
            table(HEAD, lines)
    lines = [each for n in options.labels for each in labels_beside_duckdb(n, options.folder)]
    if lines:
        print("Labels\n")
        table(("labels", "rows", "× GROUP BY ALL, by the clock", "of processor time"), lines)


if __name__ == "__main__":
    main()
