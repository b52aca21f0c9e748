"""
Are the numbers the same on DuckDB, Polars, Dask, Spark and Ray?
================================================================

Five engines compute the same evaluation: files read by DuckDB, a lazy Polars frame, a Dask cluster, Spark and Ray.
Engines that are not installed are left out: ``pip install polars distributed '.[dask,ray,spark]'``. Spark also needs
Java 17 or newer. ``--quick`` starts no cluster.
"""

import os
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB

from cmtrack import Grouping, evaluate, evaluate_table

LOOPS = Grouping({"loop": [0, 6, 8, 9], "open": [1, 2, 3, 4, 5, 7]}, "relaxed", positive="loop")

# %%
# The call is the same for every engine and every kind of table.


def judged(table):
    """Evaluate a table with the columns `y` and `p_<digit>`."""
    return evaluate_table(table, y_true="y", y_prob="p_*", grouping=LOOPS)


def by_duckdb(folder):
    """Evaluate a path: DuckDB reads the files piece by piece."""
    return judged(folder)


def by_polars(folder):
    """Evaluate a lazy frame: Polars reads the files batch by batch, and only the needed columns."""
    import polars as pl

    return judged(pl.scan_parquet(folder / "*.parquet"))


def by_dask(folder):
    """Evaluate on a cluster of two processes: the rows stay in them and are counted there."""
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    options = {
        "n_workers": 2,
        "threads_per_worker": 1,
        "dashboard_address": None,
        "local_directory": folder.parent,
    }
    with LocalCluster(**options) as cluster, Client(cluster):
        return judged(dd.read_parquet(str(folder)))


def by_spark(folder):
    """Evaluate in Spark's workers: the kernel runs over batches of Arrow, and small statistics come back."""
    home = os.environ.get("JAVA_HOME")
    if shutil.which(Path(home, "bin", "java") if home else "java") is None:
        raise ImportError("Java 17 or newer, and neither JAVA_HOME nor PATH leads to one")
    from pyspark.sql import SparkSession

    # the workers need cmtrack; on a cluster, install it in their image
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config(
        "spark.driver.bindAddress", "127.0.0.1"
    )
    builder = builder.config("spark.driver.host", "127.0.0.1").config(
        "spark.sql.shuffle.partitions", "2"
    )
    spark = (
        builder.config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    try:
        return judged(spark.read.parquet(str(folder)))
    finally:
        spark.stop()


def by_ray(folder):
    """Evaluate in Ray's tasks; on a cluster, `runtime_env={"py_modules": [wheel]}` installs cmtrack there."""
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        ray.data.DataContext.get_current().enable_progress_bars = False
        return judged(ray.data.read_parquet(str(folder)))
    finally:
        ray.shutdown()


# %%
# The predictions of naive Bayes for 1,797 images, in four files, as a job that scores rows in parallel writes them.
# Every engine is compared with an evaluation of these rows in memory. The ``if`` is necessary because Dask's processes
# also import this file.
if __name__ == "__main__":
    x, y = load_digits(return_X_y=True)
    p = cross_val_predict(GaussianNB(var_smoothing=1e-2), x, y, cv=5, method="predict_proba")
    expected = evaluate(y, y_prob=p, grouping=LOOPS)
    print(f"{len(y)} rows, ROC AUC {expected.metrics['binary/roc_auc']:.4f}")
    frame = pd.DataFrame(p, columns=[f"p_{digit}" for digit in range(10)]).assign(y=y)
    engines = {
        "DuckDB": by_duckdb,
        "Polars": by_polars,
        "Dask": by_dask,
        "Spark": by_spark,
        "Ray": by_ray,
    }
    with tempfile.TemporaryDirectory() as room:
        folder = Path(room, "predictions")
        folder.mkdir()
        for number in range(4):
            frame[number::4].to_parquet(folder / f"part{number}.parquet", index=False)
        for engine in list(engines)[:2] if "--quick" in sys.argv else engines:
            try:
                found = engines[engine](folder)
            except ImportError as error:
                print(f"{engine} is left out: {error}")
                continue
            same = np.array_equal(found.confusion_matrix.counts, expected.confusion_matrix.counts)
            off = max(abs(found.metrics[name] - value) for name, value in expected.metrics.items())
            print(
                f"{engine:6} has {'the same' if same else 'OTHER'} counts, and metrics within {off:.0e}"
            )
