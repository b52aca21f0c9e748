"""Reading of a Parquet or CSV file into a data frame."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from cmtrack.sources.texts import (
    KINDS,
    Header,
    has_codes,
    kind_of_texts,
    kinds_of_labels,
    lossless_kinds,
    read_header,
)
from cmtrack.untrusted import one_line, open_file

if TYPE_CHECKING:
    import pandas as pd

Result = TypeVar("Result")
PARQUET = (".parquet", ".pq")
CSV = (".csv", ".csv.gz", ".tsv", ".tsv.gz")


def file_kind(name: str) -> str:
    """Return "Parquet" or "CSV" from the ending of a name; raise ValueError for other endings."""
    lowered = name.lower()
    if lowered.endswith(PARQUET):
        return "Parquet"
    if lowered.endswith(CSV):
        return "CSV"
    raise ValueError(f"a file must end in {', '.join((*PARQUET, *CSV))}, got {name!r:.300}")


def column_names(path: Path, wanted: Sequence[str] = ()) -> list[str]:
    """Read the names of a file's columns; raise ValueError if the file cannot be read.

    ``wanted``: columns that the caller names. These names are used to find the separator of a CSV
    file.
    """
    if file_kind(path.name) == "CSV":
        return readable(path, lambda: [*_clean_names(path, read_header(path, wanted)).values()])
    import pyarrow.parquet as pq

    return readable(path, lambda: [str(name) for name in pq.read_schema(path).names])


def read_frame(
    path: Path,
    columns: Sequence[str] | None = None,
    *,
    labels: Sequence[str] = (),
    texts: Sequence[str] = (),
    label_kinds: Sequence[type] = KINDS,
    missing: Sequence[str] | None = None,
) -> pd.DataFrame:
    """Read a file, or only its named columns; raise ValueError if it cannot be read.

    All other arguments apply only to CSV files, whose columns have no types.

    ``labels``: columns of labels, which get a common type
    (:func:`cmtrack.sources.texts.kinds_of_labels`).
    ``texts``: columns of ids, groups and segments. These columns are converted to numbers only if
    the conversion preserves every text.
    ``label_kinds``: the types that labels may have.
    ``missing``: texts that mark a missing value; by default the list that pandas uses.
    """
    from cmtrack._pandas import pd

    names = None if columns is None else list(columns)
    if file_kind(path.name) == "Parquet":
        return readable(path, lambda: pd.read_parquet(path, columns=names))
    return readable(path, lambda: _csv_frame(path, names, labels, texts, label_kinds, missing))


def _csv_frame(
    path: Path,
    names: list[str] | None,
    labels: Sequence[str],
    texts: Sequence[str],
    label_kinds: Sequence[type],
    missing: Sequence[str] | None,
) -> pd.DataFrame:
    header = read_header(path, names or [])
    as_text = [*labels, *texts]
    frame = _read_csv(path, header, names, missing, as_text)
    lossless = {name: lossless_kinds(_arrow(frame[name])) for name in as_text}
    kinds = {name: kind_of_texts([lossless[name]]) for name in texts}
    kinds |= kinds_of_labels({name: lossless[name] for name in labels}, label_kinds)
    for name, kind in kinds.items():
        frame[name] = _as_kind(frame[name], kind, strip=header.has_blanks)
    numbers = [str(name) for name in frame if name not in kinds and frame[name].dtype.kind in "iuf"]
    if names is not None or not numbers:
        return frame
    # All columns may contain codes. pandas has read some codes, such as 007, as numbers.
    written = _read_csv(path, header, numbers, missing, numbers)
    for name in numbers:
        if has_codes(_arrow(written[name])):
            frame[name] = written[name]
    return frame


def _read_csv(
    path: Path,
    header: Header,
    names: list[str] | None = None,
    missing: Sequence[str] | None = None,
    as_text: Sequence[str] = (),
) -> pd.DataFrame:
    from cmtrack._pandas import pd

    options: dict[str, Any] = {}
    if missing is not None:
        options = {"na_values": list(missing), "keep_default_na": False}
    clean_names = _clean_names(path, header)
    wanted = [raw for raw, clean in clean_names.items() if names is None or clean in names]
    types = {raw: str for raw in wanted if clean_names[raw] in as_text}
    frame = pd.read_csv(
        path, usecols=wanted, dtype=types, low_memory=False, sep=header.separator, **options
    )
    return frame.rename(columns=clean_names)


def _clean_names(path: Path, header: Header) -> dict[str, str]:
    """Map the names that pandas gives to the columns to their clean names."""
    from cmtrack._pandas import pd

    names = [str(name) for name in pd.read_csv(path, nrows=0, sep=header.separator).columns]
    clean_names = names
    if header.has_blanks:
        clean_names = [name.strip() for name in names]
    return dict(zip(names, clean_names, strict=True))


def _arrow(column: pd.Series[Any]) -> pa.Array:
    return pa.array(column, type=pa.string(), from_pandas=True)


def _as_kind(column: pd.Series[Any], kind: type, strip: bool) -> pd.Series[Any]:
    """Convert the texts of a column to a type; missing values stay missing."""
    if kind is str and not strip:
        return column
    texts = column.str.strip()
    if kind is str:
        return texts
    if kind is bool:
        return texts.map(lambda text: text.lower() == "true", na_action="ignore")
    if kind is float:
        return texts.astype("float64")
    if column.isna().any():  # int64 cannot store missing values
        return texts.map(int, na_action="ignore").astype("Int64")
    return texts.map(int).astype("int64")


def readable(path: Path, read: Callable[[], Result]) -> Result:
    """Read a file with a function; raise ValueError if it is not a regular file or is damaged."""
    try:
        open_file(path, own=True).close()
        return read()
    except Exception as error:  # pandas and Arrow raise many types of errors
        name = one_line(path.name)[:80]
        reason = one_line(error)[:200]
        raise ValueError(f"{name} could not be read as {file_kind(path.name)}: {reason}") from None
