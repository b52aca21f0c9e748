"""Format of saved evaluations: a versioned JSON file, and a Parquet file for the rows."""

from __future__ import annotations

import json
import math
import warnings
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

from cmtrack import untrusted
from cmtrack._lazy import needs
from cmtrack.files import write_whole
from cmtrack.schemas import EVALUATION
from cmtrack.statistics.plain import MAX_ARRAYS

if TYPE_CHECKING:
    from cmtrack.base import BaseEvaluation

    AnyEvaluation = TypeVar("AnyEvaluation", bound=BaseEvaluation)

SCHEMA = EVALUATION.newest
FILE_NAME = "cmtrack_evaluation.json"
ROWS_NAME = "cmtrack_predictions.parquet"
MAX_ROWS_BYTES = 32 << 20
"""Maximum size of the rows that ``rows="auto"`` saves, in bytes before compression."""
CLASSES = "classes"
FAMILIES = "families"
"""Values of ``kind`` in stored files; a file without ``kind`` contains an evaluation of classes."""
_READERS = {CLASSES: "Evaluation.load", FAMILIES: "FamilyEvaluation.load"}
DAMAGED = (
    KeyError,
    TypeError,
    ValueError,
    AttributeError,
    IndexError,
    OverflowError,
    RecursionError,
    zlib.error,
)
"""Types of errors that reading a damaged or modified file can raise."""

MAX_BYTES = 1 << 30
"""Maximum size of an evaluation in bytes. A larger evaluation would fill the memory."""

_MOST_BYTES_OF_ROWS = 4 << 30
"""Maximum size in bytes of a Parquet file with rows."""
_BYTES_BY_PAIR = 16 * (5 + 4 * 64)
"""Maximum size of an evaluation's arrays, in bytes per pair of classes.

Each pair needs a count, four moments and four tables of 64 cells, with 8 bytes per number. With
weights, the sums of squared weights are also stored, which doubles the size.
"""
_ALWAYS_READ = 1 << 30
"""Rows that take at most this many bytes when unpacked are read from a file of any size."""
_MAX_RATIO = 1000
"""Maximum ratio of the unpacked size to the file's size, if the unpacked size exceeds 1 GB."""


def save(evaluation: BaseEvaluation, directory: Path, keep_rows: bool | str = "auto") -> Path:
    """Write an evaluation to a JSON file and, optionally, its rows to a Parquet file next to it.

    Both files are written under temporary names before they replace older files. The file with the
    rows is replaced first. If the process ends between the two replacements, the new rows are next
    to the old evaluation, and reading them raises an error.

    Raises
    ------
    ValueError
        If ``keep_rows`` is True and the evaluation has no rows, or if ``keep_rows`` is not "auto",
        True or False.
    """
    if not (isinstance(keep_rows, bool) or keep_rows == "auto"):
        raise ValueError(f'rows must be "auto", True or False, got {keep_rows!r}')
    rows = evaluation.rows
    if keep_rows is True and rows is None:
        raise ValueError(
            "rows=True needs an evaluation with rows, but this one was merged or loaded without "
            "its rows"
        )
    path = directory / FILE_NAME
    rows_path = directory / ROWS_NAME
    why_not = ""
    if rows is not None and keep_rows == "auto":
        why_not = _why_not_kept(evaluation.rows_size)
    keeps_rows = rows is not None and keep_rows is not False and not why_not
    files: dict[Path, Any] = {}
    if keeps_rows:
        files[rows_path] = evaluation.write_rows
    files[path] = evaluation.to_json().encode("utf-8")
    write_whole(files)
    if not keeps_rows:
        # The rows of an earlier evaluation in this folder do not belong to the new evaluation.
        rows_path.unlink(missing_ok=True)
    if why_not:
        warnings.warn(
            f"the rows are not kept: {why_not}. Without rows, comparisons with the loaded "
            "evaluation are not paired",
            UserWarning,
            stacklevel=3,
        )
    return path


def _why_not_kept(size: int) -> str:
    """Return the reason why ``rows="auto"`` does not save rows of this size, or an empty text."""
    if size > MAX_ROWS_BYTES:
        return (
            f"they need {size / 2**20:,.0f} MB, more than the {MAX_ROWS_BYTES >> 20} MB that "
            "are kept by default (rows=True keeps them)"
        )
    try:
        parquet()
    except ImportError as error:
        return str(error)
    return ""


def with_rows(evaluation: AnyEvaluation, path: Path) -> AnyEvaluation:
    """Attach the rows to an evaluation if they were saved next to the evaluation's file.

    Raises ValueError if the rows are damaged, or belong to another evaluation.
    """
    file = (path if path.is_dir() else path.parent) / ROWS_NAME
    if not file.exists():
        return evaluation
    try:
        return evaluation.with_rows(untrusted.read_file(file, _MOST_BYTES_OF_ROWS))
    except (OSError, ValueError) as error:
        raise ValueError(
            f"{file}: {error}; rows=False loads the evaluation without its rows"
        ) from None


def read_file(path: Path) -> str:
    """Read the text of an evaluation's file; ``path`` is the file or its folder."""
    if path.is_dir():
        path = path / FILE_NAME
    try:
        return untrusted.read_file(path, MAX_BYTES, own=True).decode("utf-8")
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no evaluation at {path}") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"this is not a cmtrack evaluation: {error}") from None


def to_json(evaluation: BaseEvaluation, stored: dict[str, Any]) -> str:
    """Return the text of an evaluation's file.

    ``stored``: the fields that evaluations of this kind store. The text also contains metrics,
    intervals and warnings for people who read the file, although these could be recomputed from the
    fields.
    """
    # JSON has no NaN or infinity, so an undefined metric is null, and "undefined" gives the reason.
    metrics = {
        name: value if math.isfinite(value) else None for name, value in evaluation.metrics.items()
    }
    data = {
        "schema": SCHEMA,
        "kind": evaluation.kind,
        **stored,
        "labels_digest": evaluation.labels_digest,
        "metrics": metrics,
        "intervals": {name: list(limits) for name, limits in evaluation.intervals.items()},
        "undefined": evaluation.undefined,
        "warnings": list(evaluation.warnings),
        "statistics": evaluation.statistics.to_plain(),
    }
    return json.dumps(data, ensure_ascii=False, allow_nan=False)


def parse(text: str, kind: str | None = None) -> dict[str, Any]:
    """Parse the text of an evaluation's file, and migrate it to the newest schema.

    Raises ValueError if the text is not an evaluation, has a newer schema, or has a different
    ``kind``.
    """
    try:
        data: dict[str, Any] = untrusted.parsed_json(text, finite=True)
        data["schema"]
        stored_kind = data.get("kind", CLASSES)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"this is not a cmtrack evaluation: {error}") from None
    data = EVALUATION.migrated(data)
    if not isinstance(stored_kind, str):
        raise ValueError(
            f"the evaluation is damaged: its kind must be a string, got {stored_kind!r:.40}"
        )
    if kind is not None and stored_kind != kind:
        reader = _READERS.get(stored_kind, "a newer cmtrack")
        raise ValueError(
            f"the kind of this evaluation is {stored_kind!r}, not {kind!r}: use {reader} to load it"
        )
    try:
        _check_sizes(data)
    except ValueError as error:
        raise ValueError(f"the evaluation is damaged: {error}") from None
    return data


def _check_sizes(data: dict[str, Any]) -> None:
    """Raise ValueError if arrays are too large for the number of classes.

    The sizes are computed from the shapes, without unpacking the arrays.
    """
    total = 0
    waiting = [data.get("statistics")]
    while waiting:
        entry = waiting.pop()
        if not isinstance(entry, dict):
            continue
        if "zlib" in entry or "planes" in entry:
            total += untrusted.array_bytes(entry.get("shape"), MAX_ARRAYS)
        for value in entry.values():
            if isinstance(value, list):
                waiting += value
            else:
                waiting.append(value)
    labels = data.get("labels")
    n_classes = 0
    if isinstance(labels, list):
        n_classes = len(labels)
    allowed = MAX_ARRAYS + _BYTES_BY_PAIR * n_classes**2
    if total > allowed:
        raise ValueError(f"its arrays must not be larger than {allowed:,} bytes, got {total:,}")


def read_level(level: Any) -> float:
    """Read a confidence level from a file."""
    if not 0 < float(level) < 1:
        raise ValueError(f"confidence_level must be between 0 and 1, got {level!r}")
    return float(level)


def parquet() -> tuple[Any, Any]:
    """Import PyArrow and its module for Parquet."""
    with needs("a file of rows", "pyarrow"):
        import pyarrow
        import pyarrow.parquet
    return pyarrow, pyarrow.parquet


def write_table(file: Path | BinaryIO, columns: dict[str, Any]) -> None:
    """Write columns as Parquet."""
    pa, pq = parquet()
    pq.write_table(pa.table(columns), file, compression="zstd")


class _Refused(ValueError):
    """Error for a Parquet file with rows that is damaged or too large."""


def checked_table(
    content: bytes, rows: int | None, texts: Iterable[str], numbers: Iterable[str]
) -> Any:
    """Read the named columns of a Parquet file, after checking its metadata.

    Raises ValueError if the file is damaged, or if its number of rows or the type of a column is
    not as expected. Also raises ValueError if the unpacked data exceed both 1 GB and 1,000 times
    the size of the file.

    ``rows``: number of rows that the file must contain; None accepts the number in its metadata.
    ``texts``: names of the columns that contain texts. ``numbers``: names of the columns that
        contain numbers.
    """
    pa, pq = parquet()
    kinds = dict.fromkeys(texts, _is_text) | dict.fromkeys(numbers, _is_number)
    try:
        file = pq.ParquetFile(pa.BufferReader(content))
        if rows is None:
            rows = file.metadata.num_rows
        _check_rows(file.metadata.num_rows, rows)
        fields = [field for field in file.schema_arrow if field.name in kinds]
        for field in fields:
            if not kinds[field.name](field.type):
                raise _Refused(
                    f"the predictions are damaged: column {field.name!r:.80} has the type "
                    f"{field.type!s:.80}"
                )
        names = [field.name for field in fields]
        allowed = max(_ALWAYS_READ, _MAX_RATIO * len(content))
        size = max(_stored_size(file.metadata, names), 8 * rows * len(names))
        if size > allowed:
            raise _Refused(
                f"the unpacked predictions must not be larger than {allowed:,} bytes, got {size:,}"
            )
        batches = []
        unpacked = 0
        # The sizes in the metadata may be wrong, so the bytes are counted while they are read.
        for batch in file.iter_batches(columns=names):
            unpacked += batch.nbytes
            if unpacked > allowed:
                raise _Refused(
                    f"the unpacked predictions must not be larger than {allowed:,} bytes, got more"
                )
            batches.append(batch)
        table = pa.Table.from_batches(batches, schema=pa.schema(fields))
    except _Refused:
        raise
    except Exception as error:  # Arrow raises many types of errors for a damaged file
        reason = f"{type(error).__name__}: {error}"
        if isinstance(error, ValueError):
            reason = str(error)
        raise _Refused(f"the predictions are damaged: {reason}") from None
    _check_rows(table.num_rows, rows)
    return table


def _check_rows(found: int, wanted: int) -> None:
    """Raise ValueError if the file and the evaluation do not have the same number of rows."""
    if found != wanted:
        raise _Refused(
            f"the predictions must have {wanted} rows, the number in the evaluation, got {found}"
        )


def _stored_size(metadata: Any, names: list[str]) -> int:
    """Return the unpacked size of columns in bytes, as stated in a Parquet file's metadata."""
    positions = {metadata.schema.column(k).path: k for k in range(metadata.num_columns)}
    size = 0
    for group in range(metadata.num_row_groups):
        for name in names:
            size += metadata.row_group(group).column(positions[name]).total_uncompressed_size
    return size


def _is_text(kind: Any) -> bool:
    import pyarrow.types as types

    if types.is_dictionary(kind):
        kind = kind.value_type
    return types.is_string(kind)


def _is_number(kind: Any) -> bool:
    import pyarrow.types as types

    return types.is_floating(kind) or types.is_integer(kind)
