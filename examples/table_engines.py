"""One evaluation by five engines: files read by DuckDB, a lazy Polars frame, a Dask cluster, Spark, Ray.

Run it with `python examples/table_engines.py` (half a minute). Polars, Dask, Spark and Ray are left out where they are
not installed: `pip install polars distributed 'cmtrack[dask,ray,spark]'`; Spark also needs Java 17 or newer.
"""

import os
import shutil
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cmtrack import Evaluation, Grouping, evaluate, evaluate_table

LABELS = ["no", "perhaps", "yes"]
GROUPING = Grouping({"not no": ["perhaps", "yes"], "no": ["no"]}, "relaxed", positive="not no")


def predictions(n: int = 20_000) -> pd.DataFrame:
    """Actual labels and the probabilities of a middling classifier, in columns `p_<label>`."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, len(LABELS), n)
    scores = np.exp(rng.normal(size=(n, len(LABELS))) + 1.5 * np.eye(len(LABELS))[y])
    p = scores / scores.sum(axis=1, keepdims=True)
    columns = {f"p_{label}": p[:, k] for k, label in enumerate(LABELS)}
    return pd.DataFrame({"y": np.array(LABELS)[y], **columns})


def judged(table: Any) -> Evaluation:
    """The same call for every engine."""
    return evaluate_table(table, y_true="y", y_prob="p_*", grouping=GROUPING)


# Each engine gives its evaluation, or says what it lacks.


def by_duckdb(folder: Path) -> Evaluation | str:
    """A path: DuckDB reads the files piece by piece."""
    return judged(folder)


def by_polars(folder: Path) -> Evaluation | str:
    """A lazy frame: Polars reads the files batch by batch, and only the columns that are needed."""
    if find_spec("polars") is None:
        return "pip install polars"
    import polars as pl

    return judged(pl.scan_parquet(folder / "*.parquet"))


def by_dask(folder: Path) -> Evaluation | str:
    """A cluster of two processes: the rows stay in them, and are counted there."""
    if find_spec("dask") is None or find_spec("distributed") is None:
        return "pip install distributed 'cmtrack[dask]'"
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    room = str(folder.parent)
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, local_directory=room) as cluster,
        Client(cluster),
    ):
        return judged(dd.read_parquet(str(folder)))


def by_spark(folder: Path) -> Evaluation | str:
    """The kernel runs in Spark's workers, over batches of Arrow, and small statistics come back."""
    if find_spec("pyspark") is None:
        return "pip install 'cmtrack[spark]'"
    home = os.environ.get("JAVA_HOME")
    if shutil.which(Path(home, "bin", "java") if home else "java") is None:
        return "Java 17 or newer, and neither JAVA_HOME nor PATH leads to one"
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable  # the workers need cmtrack; on a cluster it is in their image
    options = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.master("local[2]")
    for name, value in options.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    try:
        return judged(spark.read.parquet(str(folder)))
    finally:
        spark.stop()


def by_ray(folder: Path) -> Evaluation | str:
    """The kernel runs in Ray's tasks; on a cluster, `runtime_env={"pip": ["cmtrack"]}` brings it there."""
    if find_spec("ray") is None:
        return "pip install 'cmtrack[ray]'"
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        ray.data.DataContext.get_current().enable_progress_bars = False
        return judged(ray.data.read_parquet(str(folder)))
    finally:
        ray.shutdown()


def main() -> None:
    """Write files, evaluate them by every engine, and compare with the same rows in memory."""
    frame = predictions()
    p = {label: frame[f"p_{label}"].to_numpy() for label in LABELS}
    expected = evaluate(frame["y"], y_prob=p, grouping=GROUPING)
    print(f"{len(frame)} rows, ROC AUC {expected.metrics['binary/roc_auc']:.4f}")
    with tempfile.TemporaryDirectory() as room:
        folder = Path(room, "predictions")
        folder.mkdir()
        for number in range(4):  # as a job that scores rows in parallel leaves them
            frame[number::4].to_parquet(folder / f"part{number}.parquet", index=False)
        engines = {"DuckDB": by_duckdb, "Polars": by_polars, "Dask": by_dask, "Spark": by_spark, "Ray": by_ray}
        for engine, judge in engines.items():
            found = judge(folder)
            if isinstance(found, str):
                print(f"{engine} is left out: it needs {found}")
                continue
            same = np.array_equal(found.confusion_matrix.counts, expected.confusion_matrix.counts)
            off = max(abs(found.metrics[name] - value) for name, value in expected.metrics.items())
            print(f"{engine:6} has {'the same' if same else 'OTHER'} counts, and metrics within {off:.0e}")


if __name__ == "__main__":  # Dask's processes import this file as well
    main()
