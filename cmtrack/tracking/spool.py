"""Where evaluations go that could not be sent: a local folder, one entry each."""

from __future__ import annotations

import os
import shutil
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

DEFAULT = "cmtrack_spool"


def spool_folder() -> Path:
    """``./cmtrack_spool``, or what the environment variable ``CMTRACK_SPOOL`` names."""
    return Path(os.environ.get("CMTRACK_SPOOL") or DEFAULT).absolute()


def new_entry() -> Path:
    """The path of a new entry (not made yet)."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    return spool_folder() / f"{stamp}-{uuid.uuid4().hex[:8]}"


def keep(folder: Path) -> Path:
    """Move a package's folder into the spool, whole, and return its place there."""
    entry = new_entry()
    entry.parent.mkdir(parents=True, exist_ok=True)
    partial = entry.with_name(f".{entry.name}")
    shutil.copytree(folder, partial)
    os.replace(partial, entry)
    return entry


def keep_inputs(arrays: dict[str, Any]) -> Path:
    """Keep the arrays of an evaluation that could not be computed; labels as texts, no pickles."""
    entry = new_entry()
    partial = entry.with_name(f".{entry.name}")
    partial.mkdir(parents=True)
    kept = {}
    for name, values in arrays.items():
        if values is None:
            continue
        array = np.asarray(values)
        kept[name] = array.astype(str) if array.dtype.kind == "O" else array
    np.savez_compressed(partial / "inputs.npz", **kept)  # type: ignore[arg-type]
    os.replace(partial, entry)
    return entry
