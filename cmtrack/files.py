"""Atomic writing of several files: a call writes either all of its files or none of them."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import BinaryIO

PARTIAL = ".partial"
"""Suffix of a file that is being written, or that a stopped process left unfinished."""


def write_whole(
    files: Mapping[Path, bytes | Callable[[BinaryIO], object]],
    *,
    private: bool = False,
    synced: bool = True,
) -> None:
    """Write files under temporary names, then rename them one after the other.

    Raises OSError if a file cannot be written. In this case, no existing file has changed.

    ``files``: the content for each path, or a function that writes the content to an open file.
    Missing folders are created.
    ``private``: whether to let only the owner read the files and enter the created folders.
    ``synced``: whether to flush the files to disk before they are renamed, so that a power failure
    does not leave half a file.
    """
    folder_mode = 0o777
    file_mode = 0o666
    if private:
        folder_mode = 0o700
        file_mode = 0o600

    def open_new(name: str, flags: int) -> int:
        return os.open(name, flags, file_mode)

    written: dict[Path, Path] = {}
    try:
        for path, content in files.items():
            make_folder(path.parent, folder_mode)
            partial = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}{PARTIAL}")
            written[partial] = path
            # The mode is set at creation, because others could open the file before a later chmod.
            with open(partial, "xb", opener=open_new) as file:
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
    """Create a folder and its missing parents; the modes of existing folders do not change."""
    if folder.is_dir():
        return
    make_folder(folder.parent, mode)
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, mode)
