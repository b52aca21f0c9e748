"""Saved evaluations: one versioned JSON file, with the rows beside it as Parquet; shared by all kinds."""

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
"""Most bytes of rows, before compression, that are kept where that is left to cmtrack ("auto")."""
CLASSES, FAMILIES = "classes", "families"
"""Kinds of evaluations; files without a kind are of the first."""
_OWNERS = {CLASSES: "Evaluation.load", FAMILIES: "FamilyEvaluation.load"}
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
"""What reading a file that was changed by others may end in."""

MAX_BYTES = 1 << 30
"""A larger evaluation is not read: it would fill the memory, and none comes near it."""

_MOST_BYTES_OF_ROWS = 4 << 30
_BY_SQUARE = 16 * (5 + 4 * 64)
"""Bytes of the latter per squared class: the counts, four moments, four tables of 64 cells; twice where weighted."""
_ALWAYS_READ = 1 << 30
_MAX_RATIO = 1000


def save(evaluation: BaseEvaluation, directory: Path, keep_rows: bool | str = "auto") -> Path:
    """Write an evaluation's JSON, and optionally its rows to a file beside it.

    Both are written before they take the place of what stood there, the rows first: a process that ends in between
    leaves rows that do not belong to the evaluation beside them, and reading them says so.

    Raises
    ------
    ValueError
        If rows must be kept and there are none, or ``keep_rows`` is none of "auto", True and False.
    """
    if not (isinstance(keep_rows, bool) or keep_rows == "auto"):
        raise ValueError(f'rows must be "auto", True or False, got {keep_rows!r}')
    rows = evaluation.rows
    if keep_rows is True and rows is None:
        raise ValueError(
            "rows=True needs an evaluation with rows, this one has none (loaded without them, or merged)"
        )
    path, target, needed = (
        directory / FILE_NAME,
        directory / ROWS_NAME,
        0 if rows is None else evaluation.rows_size,
    )
    why_not = ""
    if rows is not None and keep_rows == "auto":
        try:
            parquet()
        except ImportError as error:
            why_not = str(error)
        if needed > MAX_ROWS_BYTES:
            why_not = (
                f"they need {needed / 2**20:,.0f} MB, and up to {MAX_ROWS_BYTES >> 20} MB are kept by default "
                "(rows=True keeps them)"
            )
    keeps_rows = rows is not None and keep_rows is not False and not why_not
    written = {target: evaluation.write_rows} if keeps_rows else {}
    write_whole(written | {path: evaluation.to_json().encode("utf-8")})
    if not keeps_rows:
        target.unlink(missing_ok=True)
    if why_not:
        warnings.warn(
            f"the rows are not kept: {why_not}; without them, comparisons of the loaded evaluation are not paired",
            UserWarning,
            stacklevel=3,
        )
    return path


def with_rows(evaluation: AnyEvaluation, path: Path) -> AnyEvaluation:
    """Attach the rows of the file beside the evaluation's, if there is one.

    ValueError if they are damaged, or of another evaluation.
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
    """The text of the file, or of the file of that name in a folder."""
    if path.is_dir():
        path = path / FILE_NAME
    try:
        return untrusted.read_file(path, MAX_BYTES, own=True).decode("utf-8")
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no evaluation at {path}") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"this is no evaluation of cmtrack: {error}") from None


def to_json(evaluation: BaseEvaluation, stored: dict[str, Any]) -> str:
    """The text of a file: what is stored, and the part for readers, which follows from it."""
    data = {
        "schema": SCHEMA,
        "kind": evaluation.kind,
        **stored,
        "labels_digest": evaluation.labels_digest,
        "metrics": {
            name: value if math.isfinite(value) else None
            for name, value in evaluation.metrics.items()
        },
        "intervals": {name: list(ends) for name, ends in evaluation.intervals.items()},
        "undefined": evaluation.undefined,
        "warnings": list(evaluation.warnings),
        "statistics": evaluation.statistics.to_plain(),
    }
    return json.dumps(data, ensure_ascii=False, allow_nan=False)


def parse(text: str, kind: str | None = None) -> dict[str, Any]:
    """The plain data of an evaluation's text.

    ValueError if the text is no evaluation, of a newer schema, or of another kind.

    ``kind``: the kind that it must be of.
    """
    try:
        data: dict[str, Any] = untrusted.parsed_json(text, finite=True)
        data["schema"]
        stored_kind = data.get("kind", CLASSES)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"this is no evaluation of cmtrack: {error}") from None
    data = EVALUATION.migrated(data)
    if not isinstance(stored_kind, str):
        raise ValueError(
            f"the evaluation is damaged: its kind must be a text, got {stored_kind!r:.40}"
        )
    if kind is not None and stored_kind != kind:
        raise ValueError(
            f"this is an evaluation of the kind {stored_kind!r}, not {kind!r}: "
            f"{_OWNERS.get(stored_kind, 'a newer cmtrack')} reads it"
        )
    try:
        _check_sizes(data)
    except ValueError as error:
        raise ValueError(f"the evaluation is damaged: {error}") from None
    return data


def _check_sizes(data: dict[str, Any]) -> None:
    """Refuse an evaluation whose arrays are larger, once unpacked, than its classes make them; nothing is unpacked."""
    labels, total, waiting = data.get("labels"), 0, [data.get("statistics")]
    while waiting:
        entry = waiting.pop()
        if not isinstance(entry, dict):
            continue
        if "zlib" in entry or "planes" in entry:
            total += untrusted.array_bytes(entry.get("shape"), MAX_ARRAYS)
        for part in entry.values():  # of one score, or a list of those of many
            waiting += part if isinstance(part, list) else [part]
    classes = len(labels) if isinstance(labels, list) else 0
    allowed = MAX_ARRAYS + _BY_SQUARE * classes**2
    if total > allowed:
        raise ValueError(f"its arrays must have at most {allowed:,} bytes, got {total:,}")


def read_level(level: Any) -> float:
    """Read a confidence level from a file."""
    if not 0 < float(level) < 1:
        raise ValueError(f"confidence_level must lie between 0 and 1, got {level!r}")
    return float(level)


def parquet() -> tuple[Any, Any]:
    """PyArrow, and its module for Parquet."""
    with needs("a file of rows", "pyarrow"):
        import pyarrow
        import pyarrow.parquet
    return pyarrow, pyarrow.parquet


def write_table(file: Path | BinaryIO, columns: dict[str, Any]) -> None:
    """Write columns as Parquet."""
    pa, pq = parquet()
    pq.write_table(pa.table(columns), file, compression="zstd")


class _Refused(ValueError):
    """The rule that a file of rows breaks."""


def checked_table(
    content: bytes, rows: int | None, texts: Iterable[str], numbers: Iterable[str]
) -> Any:
    """The named columns of a Parquet file; its metadata are checked before any data are read.

    ValueError if the file is damaged, has other rows or kinds of columns, or is more than 1 GB and 1,000 times its size
    when it is unpacked.

    ``rows``: how many it must have; None: as many as it says.
    ``texts``, ``numbers``: names of the columns that hold texts, and of those that hold numbers.
    """
    pa, pq = parquet()
    try:
        file = pq.ParquetFile(pa.BufferReader(content))
        stored, schema, metadata = file.metadata.num_rows, file.schema_arrow, file.metadata
        rows = stored if rows is None else rows
        if stored != rows:
            raise _Refused(
                f"the predictions must have {rows} rows, as the evaluation, got {stored}"
            )
        wanted = dict.fromkeys(texts, _is_text) | dict.fromkeys(numbers, _is_number)
        fields = [field for field in schema if field.name in wanted]
        for field in fields:
            if not wanted[field.name](field.type):
                raise _Refused(
                    f"the predictions are damaged: column {field.name!r:.80} holds {field.type!s:.80}"
                )
        places = {metadata.schema.column(k).path: k for k in range(metadata.num_columns)}
        packed = sum(
            metadata.row_group(group).column(places[field.name]).total_uncompressed_size
            for group in range(metadata.num_row_groups)
            for field in fields
        )
        size, allowed = (
            max(packed, 8 * rows * len(fields)),
            max(_ALWAYS_READ, _MAX_RATIO * len(content)),
        )
        if size > allowed:
            raise _Refused(
                f"the predictions must have at most {allowed:,} bytes when unpacked, got {size:,}"
            )
        batches, unpacked = [], 0
        # the sizes in a footer may be wrong
        for batch in file.iter_batches(columns=[field.name for field in fields]):
            unpacked += batch.nbytes
            if unpacked > allowed:
                raise _Refused(
                    f"the predictions must have at most {allowed:,} bytes when unpacked, got more"
                )
            batches.append(batch)
        table = pa.Table.from_batches(batches, schema=pa.schema(fields))
    except _Refused:
        raise
    except Exception as error:
        reason = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        raise _Refused(f"the predictions are damaged: {reason}") from None
    if table.num_rows != rows:
        raise _Refused(
            f"the predictions must have {rows} rows, as the evaluation, got {table.num_rows}"
        )
    return table


def _is_text(kind: Any) -> bool:
    import pyarrow.types as types

    return types.is_string(kind.value_type if types.is_dictionary(kind) else kind)


def _is_number(kind: Any) -> bool:
    import pyarrow.types as types

    return types.is_floating(kind) or types.is_integer(kind)
