"""The judged documents as a compact Parquet file of tallies, and back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from cmtrack.archive import checked_table, write_table
from cmtrack.families.tallies import MACROS, TALLIES, DocumentRows

if TYPE_CHECKING:
    from cmtrack.families.result import FamilyEvaluation


def documents_size(rows: DocumentRows) -> int:
    """Bytes of the uncompressed columns."""
    return len(rows) * (4 * len(TALLIES) + 8 * len(MACROS))


def write_documents(path: Path | BinaryIO, rows: DocumentRows) -> None:
    """Write a row per document: its tallies, and what it adds to the error of each macro average."""
    table: dict[str, Any] = {name: rows.tallies[:, k] for k, name in enumerate(TALLIES)}
    table |= {f"influence/{name}": rows.macros[:, k] for k, name in enumerate(MACROS)}
    write_table(path, table)


def read_documents(content: bytes, evaluation: FamilyEvaluation) -> DocumentRows:
    """Read what :func:`write_documents` wrote for an evaluation, from the file's bytes.

    Raises
    ------
    ValueError
        If the file is damaged, or its tallies do not add up to the evaluation's.
    """
    influences = [f"influence/{name}" for name in MACROS]
    table = checked_table(content, evaluation.statistics.digest.rows, (), (*TALLIES, *influences))
    try:
        tallies = np.column_stack([table[name].to_numpy() for name in TALLIES]).astype(np.int32)
        macros = np.column_stack([table[name].to_numpy() for name in influences]).astype(np.float64)
    except Exception as error:
        raise ValueError(f"the predictions are damaged: {type(error).__name__}: {error}") from None
    if not np.isfinite(macros).all():
        raise ValueError("the predictions must be finite numbers")
    if not np.array_equal(tallies.sum(axis=0, dtype=np.int64), evaluation.statistics.tallies.sums):
        raise ValueError("the predictions must add up to the evaluation's tallies: they are of another evaluation")
    return DocumentRows(tallies, macros)
