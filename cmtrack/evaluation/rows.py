"""The evaluated rows as a compact Parquet file, and back."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import numpy.typing as npt

from cmtrack import archive
from cmtrack.statistics import LabelDigest
from cmtrack.statistics.codes import Codes
from cmtrack.statistics.counting import count_pairs
from cmtrack.statistics.inputs import FloatArray, IntArray
from cmtrack.statistics.predictions import Predictions
from cmtrack.statistics.probabilities import as_probabilities
from cmtrack.statistics.spans import OTHER_DOCUMENTS, SpanRows

if TYPE_CHECKING:
    from cmtrack.evaluation.result import Evaluation

_PROBABILITY = "prob/"
_TEXTS, _NUMBERS = ("y_true", "y_pred"), ("sample_weight", "group")


def predictions_size(rows: Predictions | SpanRows) -> int:
    """Bytes of the uncompressed columns."""
    if isinstance(rows, SpanRows):
        return len(rows.matches) * 16
    columns = 0 if rows.probabilities is None else rows.probabilities.shape[1]
    return len(rows) * (8 + 4 * columns)


def write_predictions(path: Path | BinaryIO, rows: Predictions | SpanRows) -> None:
    """Write columns y_true, y_pred, sample_weight, group and ``prob/<label>``.

    Labels are dictionary-coded texts in the order of the evaluation's labels; probabilities are float32.
    """
    import pyarrow as pa

    rows = rows.matches if isinstance(rows, SpanRows) else rows
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
    archive.write_table(path, table)


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


def read_predictions(content: bytes, evaluation: Evaluation) -> Predictions | SpanRows:
    """Read what :func:`write_predictions` wrote for an evaluation, from the file's bytes.

    Raises
    ------
    ValueError
        If the file is damaged, or its labels or rows are not the evaluation's.
    """
    spans = evaluation.none is not None
    expected = int(evaluation.statistics.matrix.total) if spans else evaluation.statistics.digest.rows
    names = {str(label): k for k, label in enumerate(evaluation.labels)}
    columns = [f"{_PROBABILITY}{label}" for label in evaluation.labels]
    table = archive.checked_table(content, expected, _TEXTS, (*_NUMBERS, *columns))
    try:
        codes = {column: _codes(table[column], names) for column in _TEXTS}
        probabilities = None
        if columns[0] in table.column_names:
            probabilities = np.column_stack([table[c].to_numpy() for c in columns]).astype(np.float64)
        optional = {name: table[name].to_numpy() if name in table.column_names else None for name in _NUMBERS}
    except Exception as error:
        raise ValueError(f"the predictions are damaged: {type(error).__name__}: {error}") from None
    weights = _weights(optional["sample_weight"])
    clusters = _clusters(optional["group"])
    _check_same(codes["y_true"], codes["y_pred"], weights, evaluation)
    if probabilities is not None:
        probabilities = as_probabilities(probabilities, evaluation.labels, expected, what="the predictions").array
    rows = Predictions.from_arrays(
        evaluation.labels, codes["y_true"], codes["y_pred"], probabilities, weights, clusters
    )
    if not spans:
        return rows
    size = evaluation.statistics.digest.rows + OTHER_DOCUMENTS
    if clusters is None or int(clusters.max(initial=0)) >= size:
        raise ValueError(f"the predictions must name documents below {size}, as the evaluation of spans has them")
    return SpanRows(rows, size)


def _weights(column: npt.NDArray[Any] | None) -> FloatArray | IntArray | None:
    if column is None:
        return None
    if column.dtype.kind not in "if" or not np.isfinite(column).all() or column.min(initial=0) < 0:
        raise ValueError("the predictions must have weights that are finite and not negative")
    return column.astype(np.int64) if column.dtype.kind == "i" else column.astype(np.float64)


def _clusters(column: npt.NDArray[Any] | None) -> IntArray | None:
    if column is None:
        return None
    if column.dtype.kind != "i" or not 0 <= column.min(initial=0) <= column.max(initial=0) < 1 << 31:
        raise ValueError("the predictions must have groups that are whole numbers from 0")
    return np.asarray(column, dtype=np.int64)


def _check_same(
    actual: IntArray, predicted: IntArray, weights: FloatArray | IntArray | None, evaluation: Evaluation
) -> None:
    """Refuse rows of another evaluation: they must give its counts, and their labels its digest."""
    kept = evaluation.statistics
    counts = count_pairs(Codes(actual), Codes(predicted), len(evaluation.labels), weights)
    same = np.allclose(counts, kept.matrix.counts, rtol=1e-9, atol=1e-9)
    if same and evaluation.none is None and kept.digest.ordered:
        own = LabelDigest.from_codes(actual, evaluation.labels)
        same = own.value == kept.digest.value
    if not same:
        raise ValueError("the predictions must give the evaluation's counts: they are of another evaluation")


def _codes(column: Any, names: dict[str, int]) -> IntArray:
    """Class codes of a column of texts, by its dictionary."""
    encoded = column.combine_chunks()
    if not hasattr(encoded, "dictionary"):
        encoded = encoded.dictionary_encode()
    place = np.array([names[text] for text in encoded.dictionary.to_pylist()], dtype=np.int64)
    codes: IntArray = place[encoded.indices.to_numpy(zero_copy_only=False)]
    return codes
