"""The evaluated rows as a compact Parquet file, and back."""

from __future__ import annotations

from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from cmtrack.evaluation import Evaluation
from cmtrack.statistics.inputs import IntArray
from cmtrack.statistics.predictions import Predictions

MAX_BYTES = 32 << 20
"""Largest file, before compression, that ``predictions="auto"`` writes."""

_PROBABILITY = "prob/"


def predictions_size(rows: Predictions) -> int:
    """Bytes of the uncompressed columns."""
    columns = 0 if rows.probabilities is None else rows.probabilities.shape[1]
    return len(rows) * (8 + 4 * columns)


def write_predictions(path: Path | BinaryIO, rows: Predictions) -> None:
    """Write columns y_true, y_pred, sample_weight, group and ``prob/<label>``.

    Labels are dictionary-coded texts in the order of the evaluation's labels; probabilities are float32.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    texts = pa.array([str(label) for label in rows.labels])
    table: dict[str, Any] = {
        name: pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), texts)
        for name, codes in (("y_true", rows.actual), ("y_pred", rows.predicted))
    }
    if rows.weights is not None:
        table["sample_weight"] = rows.weights
    if rows.clusters is not None:
        table["group"] = rows.clusters
    if rows.probabilities is not None:
        for k, label in enumerate(rows.labels):
            table[f"{_PROBABILITY}{label}"] = rows.probabilities[:, k].astype(np.float32)
    pq.write_table(pa.table(table), path, compression="zstd")


def without_probabilities(rows: Any) -> Any:
    """The same rows without their probabilities; unchanged where they have none, as documents."""
    return replace(rows, source=None) if isinstance(rows, Predictions) else rows


def file_without_probabilities(content: bytes) -> bytes:
    """The file of rows without its probabilities; the same bytes where it has none.

    Raises
    ------
    ValueError
        If the file is damaged.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(pa.BufferReader(content))
    except Exception as error:
        raise ValueError(f"the predictions are damaged: {type(error).__name__}: {error}") from None
    kept = [name for name in table.column_names if not name.startswith(_PROBABILITY)]
    if len(kept) == len(table.column_names):
        return content
    file = BytesIO()
    pq.write_table(table.select(kept), file, compression="zstd")
    return file.getvalue()


def read_predictions(content: bytes, evaluation: Evaluation) -> Predictions:
    """Read what :func:`write_predictions` wrote for an evaluation, from the file's bytes.

    Raises
    ------
    ValueError
        If the file is damaged, or its labels or rows are not the evaluation's.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    expected = evaluation.statistics.digest.rows
    try:
        stored = pq.ParquetFile(pa.BufferReader(content)).metadata.num_rows
    except Exception as error:
        raise ValueError(f"the predictions are damaged: {type(error).__name__}: {error}") from None
    if stored != expected:  # known before anything is unpacked
        raise ValueError(f"the predictions must have {expected} rows, as the evaluation, got {stored}")
    try:
        table = pq.read_table(pa.BufferReader(content))
        names = {str(label): k for k, label in enumerate(evaluation.labels)}
        codes = {column: _codes(table[column], names) for column in ("y_true", "y_pred")}
        columns = [f"{_PROBABILITY}{label}" for label in evaluation.labels]
        probabilities = None
        if columns[0] in table.column_names:
            probabilities = np.column_stack([table[c].to_numpy() for c in columns]).astype(np.float64)
        optional = {
            name: table[name].to_numpy() if name in table.column_names else None for name in ("sample_weight", "group")
        }
    except Exception as error:
        raise ValueError(f"the predictions are damaged: {type(error).__name__}: {error}") from None
    if any(len(column) != expected for column in codes.values()):
        raise ValueError(f"the predictions must have {expected} rows, as the evaluation, got {len(codes['y_true'])}")
    return Predictions.from_arrays(
        evaluation.labels,
        codes["y_true"],
        codes["y_pred"],
        probabilities,
        optional["sample_weight"],
        optional["group"],
    )


def _codes(column: Any, names: dict[str, int]) -> IntArray:
    """Class codes of a column of texts, by its dictionary."""
    encoded = column.combine_chunks()
    if not hasattr(encoded, "dictionary"):
        encoded = encoded.dictionary_encode()
    place = np.array([names[text] for text in encoded.dictionary.to_pylist()], dtype=np.int64)
    codes: IntArray = place[encoded.indices.to_numpy(zero_copy_only=False)]
    return codes
