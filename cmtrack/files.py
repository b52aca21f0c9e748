"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import BinaryIO

PARTIAL = ".partial"
"""End of the name of a file that is being written, or whose writer ended."""


def write_whole(
    files: Mapping[Path, bytes | Callable[[BinaryIO], object]],
    *,
    private: bool = False,
    synced: bool = True,
) -> None:
    """Write files beside their places; when all are written, move them there, one after the other.

    OSError if one of them cannot be written; all places are as they were.

    ``files``: the content, or what writes it into the file that it gets. Folders that are missing are made.
    ``private``: whether only their owner may read them, and enter the folders that are made.
    ``synced``: whether the disk has them before they are moved, so that not even a loss of power leaves a part of one.
    """
    written: dict[Path, Path] = {}
    try:
        for path, content in files.items():
            make_folder(path.parent, 0o700 if private else 0o777)
            partial = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}{PARTIAL}")
            written[partial] = path
            with open(
                partial,
                "xb",
                opener=lambda name, flags: os.open(name, flags, 0o600 if private else 0o666),
            ) as file:
                if isinstance(content, bytes):
                    file.write(content)
                else:
                    content(file)
                if synced:
                    file.flush()
                    os.fsync(file.fileno())
        for partial, path in written.items():
            os.replace(partial, path)
    except BaseException:
        for partial in written:
            with contextlib.suppress(OSError):
                partial.unlink()
        raise


def make_folder(folder: Path, mode: int) -> None:
    """Make a folder, and those above it; those that are there stay as they are."""
    if folder.is_dir():
        return
    make_folder(folder.parent, mode)
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, mode)
