"""Where evaluations wait: a local folder, one entry each, whole or not there.

An entry is written under a hidden name and renamed when it is whole, so that a process that is killed meanwhile leaves
nothing that looks like an entry. Every evaluation passes through here on its way to the store, and is removed when it
has arrived: what is left is what did not.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

DEFAULT = "cmtrack_spool"
INTENT = "intent.json"
MANIFEST = "manifest.json"
INPUTS = "inputs.npz"


@dataclass(frozen=True)
class Entry:
    """What waits in the spool.

    Attributes
    ----------
    folder : Path
    kind : "evaluation", "inputs" or "unfinished"
        Ready to be sent; the arrays of an evaluation that could not be computed; left by a process that was killed
        while it wrote.
    """

    folder: Path
    kind: str

    @property
    def name(self) -> str:
        """The folder's name, without the dot of an unfinished one."""
        return self.folder.name.lstrip(".")

    @property
    def size(self) -> int:
        """Bytes of its files."""
        return sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file() and not path.is_symlink())


def spool_folder() -> Path:
    """``./cmtrack_spool``, or what the environment variable ``CMTRACK_SPOOL`` names."""
    return Path(os.environ.get("CMTRACK_SPOOL") or DEFAULT).absolute()


@contextlib.contextmanager
def new_entry(**intent: Any) -> Iterator[Path]:
    """A hidden folder to write an entry into; what it is meant for is written first.

    Where the spool cannot be written, a folder among the temporary files takes its place. A failure inside the block
    removes the folder again.
    """
    partial = _opened()
    try:
        text = json.dumps({**intent, "pid": os.getpid()}, ensure_ascii=False)
        (partial / INTENT).write_text(text, encoding="utf-8")
        yield partial
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        _tidy(partial.parent)
        raise


def settle(partial: Path) -> Path:
    """Give a whole entry its name, and return its place."""
    entry = partial.with_name(partial.name.lstrip("."))
    os.replace(partial, entry)
    return entry


def remove(entry: Path) -> None:
    """Take an entry out, at once for anybody who looks, and the folder with it where it was the last one."""
    gone = entry.with_name(f".{entry.name.lstrip('.')}.sent")
    with contextlib.suppress(OSError):
        os.replace(entry, gone)
    shutil.rmtree(gone, ignore_errors=True)
    _tidy(entry.parent)


def keep_inputs(arrays: dict[str, Any]) -> Path:
    """Keep the arrays of an evaluation that could not be computed; labels as texts, no pickles."""
    kept = {}
    for name, values in arrays.items():
        if values is not None:
            array = np.asarray(values)
            kept[name] = array.astype(str) if array.dtype.kind == "O" else array
    with new_entry() as partial:
        np.savez_compressed(partial / INPUTS, **kept)  # type: ignore[arg-type]
    return settle(partial)


def entries(folder: Path | None = None) -> list[Entry]:
    """What waits, the oldest first; folders that are no entries are passed over.

    Parameters
    ----------
    folder : Path, optional
        By default :func:`spool_folder`.
    """
    folder = spool_folder() if folder is None else folder
    if not folder.is_dir():
        return []
    found = []
    for path in folder.iterdir():
        if path.is_symlink() or not path.is_dir() or path.name.endswith(".sent"):
            continue
        if path.name.startswith("."):
            if (path / INTENT).is_file() and not _alive(path / INTENT):
                found.append(Entry(path, "unfinished"))
        elif (path / MANIFEST).is_file():
            found.append(Entry(path, "evaluation"))
        elif (path / INPUTS).is_file():
            found.append(Entry(path, "inputs"))
    return sorted(found, key=lambda entry: entry.name)


def _opened() -> Path:
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
    name = f".{stamp}-{uuid.uuid4().hex[:8]}"
    for parent in (spool_folder(), Path(tempfile.gettempdir()) / DEFAULT):
        try:
            (parent / name).mkdir(parents=True)
        except OSError as error:
            problem = error
            continue
        return parent / name
    raise problem


def _tidy(folder: Path) -> None:
    """Leave no empty folder behind."""
    with contextlib.suppress(OSError):
        folder.rmdir()


def _alive(intent: Path) -> bool:
    """Whether the process that writes an entry still runs, as far as this machine knows."""
    try:
        pid = int(json.loads(intent.read_text(encoding="utf-8"))["pid"])
        os.kill(pid, 0)
    except (ValueError, KeyError, TypeError, OverflowError, ProcessLookupError):
        return False
    except OSError:
        return True  # it is somebody else's
    return True
