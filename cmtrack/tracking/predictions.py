"""The per-row predictions of an evaluation as a compact Parquet file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from cmtrack.evaluation import Evaluation
from cmtrack.statistics.inputs import as_probabilities
from cmtrack.statistics.labels import encode_labels

MAX_BYTES = 32 << 20
"""Largest file, before compression, that ``predictions="auto"`` writes."""


def predictions_size(n_rows: int, n_probabilities: int) -> int:
    """Bytes of the uncompressed columns."""
    return n_rows * (8 + 4 * n_probabilities)


def write_predictions(path: Path, evaluation: Evaluation, y_true: Any, y_pred: Any, y_prob: Any, weight: Any) -> None:
    """Write columns y_true, y_pred, sample_weight and ``prob/<label>``.

    Labels are dictionary-coded texts, in the order of the evaluation's labels; probabilities are float32.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    labels = evaluation.labels
    columns = {"y_true": y_true} if y_pred is None else {"y_true": y_true, "y_pred": y_pred}
    codes = encode_labels(columns, labels)[1]
    n_rows = len(codes["y_true"])
    probabilities = None
    if y_prob is not None:
        positive = evaluation.positive if evaluation.positive in labels else None
        probabilities = as_probabilities(y_prob, labels, n_rows, positive)
        codes.setdefault("y_pred", probabilities.argmax(axis=1))
    texts = pa.array([str(label) for label in labels])
    table: dict[str, Any] = {
        name: pa.DictionaryArray.from_arrays(pa.array(column.astype(np.int32)), texts) for name, column in codes.items()
    }
    if weight is not None:
        table["sample_weight"] = np.asarray(weight, dtype=np.float64)
    if probabilities is not None:
        for k, label in enumerate(labels):
            table[f"prob/{label}"] = probabilities[:, k].astype(np.float32)
    pq.write_table(pa.table(table), path, compression="zstd")
