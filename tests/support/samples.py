"""Samples that the tests share."""

from __future__ import annotations

import contextlib
import functools
import shutil
import sqlite3
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import cmtrack

Array = npt.NDArray[Any]

D20 = np.array(
    [.05, .1, .1, .2, .2, .3, .35, .4, .5, .5, .6, .6, .7, .8, .8, .9, .95, .15, .45, .75]
)  # fmt: skip
B20 = np.array([0, 0, 1, 0, 0, 0, 1, 0, 1, 0, 1, 0, 0, 1, 1, 1, 1, 0, 1, 1])
W20 = np.array([1, 2, 1, 1, 3, 1, 1, 2, 1, 1, 1, 2, 1, 1, 1, 1, 3, 1, 1, 2])
"""Test vector 20: probabilities, labels and weights of 20 rows."""


def rows_of(counts: Any, labels: Sequence[Any] | None = None) -> tuple[list[Any], list[Any]]:
    """Actual and predicted labels that have these confusion counts."""
    counts = np.asarray(counts)
    names = list(range(len(counts))) if labels is None else list(labels)
    cells = [(i, j) for i in range(len(counts)) for j in range(len(counts)) for _ in range(int(counts[i, j]))]
    return [names[i] for i, _ in cells], [names[j] for _, j in cells]


def evaluate_counts(counts: Any, **options: Any) -> cmtrack.Evaluation:
    """The evaluation of predictions that have these confusion counts."""
    y_true, y_pred = rows_of(counts)
    return cmtrack.evaluate(y_true, y_pred, **options)


def random_problem(
    seed: int, n: int = 300, k: int = 4, skill: float = 1.5, digits: int | None = None
) -> tuple[Array, Array, Array]:
    """Labels, predictions (the arg-max) and probabilities of a middling classifier; every class occurs."""
    rng = np.random.default_rng(seed)
    y = np.concatenate((np.arange(k), rng.integers(0, k, n - k)))
    logits = rng.normal(size=(n, k)) + skill * np.eye(k)[y]
    p = np.exp(logits)
    p /= p.sum(axis=1, keepdims=True)
    if digits is not None:  # coarse scores have ties
        p = np.round(p, digits)
        p /= p.sum(axis=1, keepdims=True)
    return y, p.argmax(axis=1), p


def standard_error(evaluation: cmtrack.Evaluation, name: str, scale: str) -> float:
    """The standard error that an interval was made from."""
    low, high = evaluation.intervals[name]
    value, z = evaluation.metrics[name], 1.959963984540054
    if scale == "atanh":
        return float((np.arctanh(high) - np.arctanh(low)) / (2 * z) * (1 - value**2))
    if scale == "logit":
        logit = np.log(high / (1 - high)) - np.log(low / (1 - low))
        return float(logit / (2 * z) * value * (1 - value))
    return (high - low) / (2 * z)


@functools.cache
def _empty_store() -> tuple[tempfile.TemporaryDirectory[str], Path]:
    """A database in which MLflow has made its tables, and the folder that goes with it."""
    import mlflow

    from cmtrack.tracking.store import quiet

    folder = tempfile.TemporaryDirectory(prefix="cmtrack-empty-store-")
    path = Path(folder.name, "mlflow.db")
    with quiet():
        mlflow.MlflowClient(f"sqlite:///{path}").search_experiments()
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM experiments")  # the default one: it says where this folder's artifacts are
    return folder, path


def sqlite_store(path: Path) -> str:
    """The URI of a new tracking store in this file.

    It is a copy: MLflow makes the tables of a database by all migrations since its first version, which takes seconds.
    """
    shutil.copyfile(_empty_store()[1], path)
    return f"sqlite:///{path}"
