"""Local queue of evaluations to be sent; an entry appears in it only when it is complete.

Every evaluation passes through the spool on its way to the store, and is removed from the spool
once it has arrived. Therefore the spool contains the evaluations that could not be sent. An entry
is written under a hidden name and renamed when it is complete. The process that writes the entry
holds a lock, which the kernel releases when the process ends. The lock shows whether an unfinished
entry is still being written, even by a process in another container. The spool is placed in the
working folder, the user's data folder, the temporary folder or shared memory, tried in this order.
The first of these places that is writable is used.
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from cmtrack.files import write_whole
from cmtrack.tracking.parallel import in_forked_workers, watch_forks

DEFAULT = "cmtrack_spool"
ENTRY = "entry.json"
INTENT = "intent.json"
"""File in which cmtrack 0.1 and 0.2 stored the destination of an unfinished entry."""
MANIFEST = "manifest.json"
"""File in which cmtrack 0.1 and 0.2 stored the content of a complete entry."""
INPUTS = "inputs.npz"
LOCK = ".lock"
STAMP = "%Y%m%dT%H%M%S%f"
"""Format of the creation time (in UTC) at the beginning of an entry's name."""
SENT = ".sent"
GRACE = 600.0
"""Seconds since the last write after which an unlocked, unfinished entry counts as abandoned."""

_TEMPORARY = "cmtrack-spool-"
_MEMORY = Path("/dev/shm")
_held: set[int] = set()


# -- places ----------------------------------------------------------------------------------------


def spool_folder() -> Path:
    """Return the folder set in the variable ``CMTRACK_SPOOL``, or else ``./cmtrack_spool``."""
    return Path(os.environ.get("CMTRACK_SPOOL") or DEFAULT).absolute()


def spool_folders() -> list[Path]:
    """Return all folders that ``log_evaluation`` may have used, starting with the usual folder."""
    folders = [_of_user()]
    with contextlib.suppress(OSError):  # the working folder was deleted
        folders.insert(0, spool_folder())
    return folders + [folder for base in _temporary_bases() for folder in _own_temporaries(base)]


def _of_user() -> Path:
    from platformdirs import user_data_path

    return user_data_path("cmtrack", appauthor=False) / "spool"


def _temporary_bases() -> list[Path]:
    bases = [_MEMORY] if _MEMORY.is_dir() else []
    with contextlib.suppress(OSError):  # no temporary folder can be written
        bases.insert(0, Path(tempfile.gettempdir()))
    return bases


def _own_temporaries(base: Path) -> list[Path]:
    """Return the private temporary spool folders that belong to this user."""
    folders = []
    with contextlib.suppress(OSError):
        for path in sorted(base.glob(f"{_TEMPORARY}*")):
            status = path.lstat()
            is_ours = not hasattr(os, "geteuid") or status.st_uid == os.geteuid()
            if is_ours and path.is_dir() and not path.is_symlink():
                folders.append(path)
    return folders


def places() -> Iterator[Path]:
    """Yield possible folders in order of preference, and create temporary folders if needed."""
    for place in (spool_folder, _of_user):
        # the working folder was deleted, or the user has no home
        with contextlib.suppress(OSError, RuntimeError):
            yield place()
    for base in _temporary_bases():
        temporaries = _own_temporaries(base)
        with contextlib.suppress(OSError):
            if temporaries:
                yield temporaries[0]
            else:
                yield Path(tempfile.mkdtemp(prefix=_TEMPORARY, dir=base))


# -- writing ---------------------------------------------------------------------------------------


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read; create its folder if necessary."""
    write_whole({path: content}, private=True, synced=False)


def remove(entry: Path) -> None:
    """Remove an entry atomically; also remove leftovers of killed processes and an empty folder."""
    gone = entry.with_name(f".{entry.name.lstrip('.')}{SENT}")
    leftovers = entry.parent.glob(f".{glob.escape(entry.name)}.*")
    for folder in (entry.with_name(f".{entry.name}"), *leftovers):
        shutil.rmtree(folder, ignore_errors=True)
    with contextlib.suppress(OSError):
        os.replace(entry, gone)
    shutil.rmtree(gone, ignore_errors=True)
    tidy(entry.parent)


def tidy(folder: Path) -> None:
    """Remove the folder if it is empty."""
    with contextlib.suppress(OSError):
        folder.rmdir()


# -- reading ---------------------------------------------------------------------------------------


def waiting(folder: str | Path | None = None) -> list[Path]:
    """Return the folders of the waiting entries, oldest first, ignoring other folders and links.

    ``folder``: a spool folder; by default all of :func:`spool_folders`.
    """
    found: list[Path] = []
    folders = spool_folders() if folder is None else [Path(folder)]
    for place in folders:
        with contextlib.suppress(OSError):
            found += [path for path in place.iterdir() if _is_entry(path)]
    return sorted(found, key=lambda path: path.name.lstrip("."))


def made(name: str) -> int | None:
    """Return the creation time in an entry's name, in ms since 1970.

    Returns None if the name contains no time.
    """
    try:
        made_at = datetime.strptime(name.split("-")[0], STAMP).replace(tzinfo=UTC)
    except ValueError:
        return None
    return int(made_at.timestamp() * 1000)


def _is_entry(path: Path) -> bool:
    """Return True for a complete entry, and for an unfinished entry that nobody is writing."""
    if path.is_symlink() or not path.is_dir() or path.name.endswith(SENT):
        return False
    try:
        if path.name.startswith("."):
            finished = path.with_name(path.name.removeprefix("."))
            return _has_any(path, ENTRY, INTENT) and not finished.exists() and _abandoned(path)
        return _has_any(path, ENTRY, MANIFEST, INPUTS)
    except OSError:  # a private folder of another user
        return False


def _has_any(folder: Path, *files: str) -> bool:
    return any((folder / file).is_file() for file in files)


def size_of(folder: Path) -> int:
    """Return the total size of an entry's files in bytes."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return sum(path.stat().st_size for path in files)


def is_foreign(folder: Path) -> bool:
    """Return True if an entry belongs to another user, so that its store is not trusted."""
    return hasattr(os, "geteuid") and folder.stat().st_uid != os.geteuid()


@contextlib.contextmanager
def claimed(folder: Path, place: str | None = None, *, anew: bool = False) -> Iterator[bool]:
    """Lock an entry, or the place to which it is sent; yield False if it is already locked.

    To lock a place, a temporary file is created next to the entries, so that two entries of the
    same spool are not sent to the same place at the same time. If ``anew`` is True, the lock is
    taken from a thread that is about to stop.
    """
    digest = place and hashlib.sha256(place.encode("utf-8", "surrogateescape")).hexdigest()[:16]
    lock = folder.with_name(f".{digest}{LOCK}") if digest else folder / LOCK
    try:
        if anew:
            lock.unlink(missing_ok=True)
        handle = acquire(lock)
    except (BlockingIOError, FileNotFoundError):  # locked, or already sent
        yield False
        return
    except OSError:
        # The folder cannot be written, and sending an entry twice does no harm.
        handle = None
    try:
        # A lock file without a link was removed by another sender after it was opened here.
        yield handle is None or not place or _is_linked(handle)
    finally:
        if handle is not None:
            if place and _is_linked(handle):
                with contextlib.suppress(OSError):  # Windows cannot remove an open file
                    os.unlink(lock)
            release(handle)


def _is_linked(handle: int) -> bool:
    return handle in _held and os.fstat(handle).st_nlink > 0


def _abandoned(folder: Path) -> bool:
    """Return True if no process is writing the entry anymore."""
    try:
        if (folder / LOCK).is_file():
            handle = acquire(folder / LOCK)
            if handle is not None:
                release(handle)
                return True
    except BlockingIOError:
        return False
    except OSError:
        return False  # the entry belongs to another user
    newest = max(path.stat().st_mtime for path in (folder, *folder.rglob("*")))
    return time.time() - newest > GRACE


def release(handle: int) -> None:
    """Release a lock, unless it belongs to the parent of this forked process."""
    if handle not in _held:
        return
    _held.discard(handle)
    if sys.platform != "win32":
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_UN)
    os.close(handle)


def acquire(lock: Path) -> int | None:
    """Lock a file until its handle is closed; return None if locks are not supported.

    Raises BlockingIOError if another process holds the lock.
    """
    watch_forks()
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
    handle = os.open(lock, flags, 0o600)
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(handle)
        # Windows raises PermissionError if the lock is held.
        if isinstance(error, (BlockingIOError, PermissionError)):
            raise BlockingIOError(*error.args) from None
        with contextlib.suppress(OSError):  # a file system without locks
            os.unlink(lock)
        return None
    _held.add(handle)
    return handle


def _forked() -> None:
    """Close inherited locks in a forked process, because they belong to the parent process."""
    for handle in _held:
        os.close(handle)
    _held.clear()


in_forked_workers(_forked)
