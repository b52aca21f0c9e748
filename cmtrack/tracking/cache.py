"""Cache of downloaded artifacts, in which each file is found by the digest of its content."""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path

from cmtrack import untrusted
from cmtrack.files import write_whole

MAX_BYTES = 2 << 30
"""Maximum size of the cache in bytes; above it, the least recently used files are removed."""


def digest_of(content: bytes) -> str:
    """Return the digest that identifies a file's content."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def cache_folder() -> Path:
    """Return the folder set in ``CMTRACK_CACHE``, or a subfolder of the user's cache folder."""
    named = os.environ.get("CMTRACK_CACHE")
    if named:
        return Path(named)
    from platformdirs import user_cache_path

    return user_cache_path("cmtrack", appauthor=False)


def cached(digest: str) -> bytes | None:
    """Return the cached file with this digest, or None if the file is missing or damaged."""
    path = _place(digest)
    if path is None:
        return None
    try:
        content = untrusted.read_file(path, MAX_BYTES)
    except (OSError, ValueError):
        return None
    if digest_of(content) != digest:
        with contextlib.suppress(OSError):
            path.unlink()
        return None
    with contextlib.suppress(OSError):
        os.utime(path)
    return content


def keep(digest: str, content: bytes) -> None:
    """Add a file to the cache, or do nothing if the cache is not writable."""
    path = _place(digest)
    if path is None:
        return
    with contextlib.suppress(OSError):
        write_whole({path: content}, private=True, synced=False)  # cached() compares the digest


def trim(limit: int = MAX_BYTES) -> None:
    """Remove the least recently used files while the cache is larger than the limit."""
    with contextlib.suppress(OSError):
        files = {path: path.stat() for path in cache_folder().glob("??/*") if path.is_file()}
        excess = sum(status.st_size for status in files.values()) - limit
        for path in sorted(files, key=lambda path: files[path].st_atime):
            if excess <= 0:
                return
            path.unlink(missing_ok=True)  # another process may trim the cache at the same time
            excess -= files[path].st_size


def _place(digest: str) -> Path | None:
    """Return the cache path for a digest, or None if the text is not a digest."""
    checked = untrusted.digest(digest)
    return None if checked is None else cache_folder() / checked[:2] / checked
