"""Local queue of evaluations to be sent; each entry is complete or absent.

Every evaluation passes through here on its way to the store and is removed when it has arrived: what is left is what
did not. An entry is written under a hidden name and renamed when it is whole. Its writer holds a lock that the kernel
releases, so an entry whose writer was killed, in whatever container, is known from one that is being written. A place
that refuses a write is left for the next one: the working folder, the user's data folder, the temporary folder, shared memory.
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
import itertools
import json
import os
import shutil
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from cmtrack import schemas, untrusted
from cmtrack.files import make_folder, write_whole
from cmtrack.statistics.inputs import as_array
from cmtrack.tracking.parallel import in_forked_workers, watch_forks

DEFAULT = "cmtrack_spool"
INTENT = "intent.json"
MANIFEST = "manifest.json"
INPUTS = "inputs.npz"
ARTIFACTS = "artifacts"
CHARTS = "charts"
"""Folder of the images for MLflow's charts, next to the artifacts."""
SENT = ".sent"
GRACE = 600.0
"""Seconds without a write after which an entry without a lock counts as abandoned."""

_LOCK = ".lock"
_STAMP = "%Y%m%dT%H%M%S%f"
_TEMPORARY = "cmtrack-spool-"
_MEMORY = Path("/dev/shm")
_MAX_INTENT = 1 << 20
_held: set[int] = set()


@dataclass(frozen=True)
class Entry:
    """An entry of the spool.

    Attributes
    ----------
    folder : Path
    kind : "evaluation", "inputs" or "unfinished"
        Ready to be sent; the arrays of an evaluation that could not be computed; left by a process that ended while it
        wrote.
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
        return sum(
            path.stat().st_size
            for path in self.folder.rglob("*")
            if path.is_file() and not path.is_symlink()
        )

    @property
    def foreign(self) -> bool:
        """True if it belongs to another user: the store that it names is then not trusted."""
        return hasattr(os, "geteuid") and self.folder.stat().st_uid != os.geteuid()


# -- places ----------------------------------------------------------------------------------------------------------


def spool_folder() -> Path:
    """``./cmtrack_spool``, or what the environment variable ``CMTRACK_SPOOL`` names."""
    return Path(os.environ.get("CMTRACK_SPOOL") or DEFAULT).absolute()


def spool_folders() -> list[Path]:
    """Every folder in which :func:`cmtrack.log_evaluation` may have put entries, the usual one first."""
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
    """Private temporary spool folders of this user; those of others are not read."""
    folders = []
    with contextlib.suppress(OSError):
        for path in sorted(base.glob(f"{_TEMPORARY}*")):
            status = path.lstat()
            is_ours = not hasattr(os, "geteuid") or status.st_uid == os.geteuid()
            if is_ours and path.is_dir() and not path.is_symlink():
                folders.append(path)
    return folders


def _places() -> Iterator[Path]:
    """Candidate folders in order of preference; each is created when tried."""
    for place in (spool_folder, _of_user):
        # the working folder was deleted, or the user has no home
        with contextlib.suppress(OSError, RuntimeError):
            yield place()
    for base in _temporary_bases():
        temporaries = _own_temporaries(base)
        with contextlib.suppress(OSError):
            yield (
                temporaries[0]
                if temporaries
                else Path(tempfile.mkdtemp(prefix=_TEMPORARY, dir=base))
            )


# -- writing ---------------------------------------------------------------------------------------------------------


class Draft:
    """An entry that is being written.

    Its files are also held in memory: if a place refuses a write, such as a full disk, all of them move to the next
    one. If no place is left, ``folder`` is None and nothing more is written.

    ``content``: the files by their names.
    ``refusals``: places that refused, with the reason.
    """

    def __init__(self, intent: dict[str, Any], of: Path | None = None) -> None:
        self.refusals: list[str] = []
        self.folder: Path | None = None
        unique = uuid.uuid4().hex[:8]
        self._name = (
            f"{datetime.now(UTC).strftime(_STAMP)}-{unique}" if of is None else of.name.lstrip(".")
        )
        self._hidden = f".{self._name}" if of is None else f".{self._name}.{unique}"
        self._places = itertools.chain([] if of is None else [of.parent], _places())
        self._lock: int | None = None
        self.content: dict[str, bytes] = {}
        if of is None:
            plain = {
                k: untrusted.without_credentials(v) if isinstance(v, str) else v
                for k, v in intent.items()
            }
            intent = plain | {"schema": schemas.INTENT.newest}
            self.content[INTENT] = json.dumps(intent, ensure_ascii=False).encode("utf-8")
        self._move()

    def write(self, name: str, content: bytes) -> None:
        """Write a file, such as ``artifacts/cmtrack_evaluation.json``."""
        self.content[name] = content
        if self.folder is None:
            return
        try:
            write_private(self.folder / name, content)
        except OSError as error:
            self._leave(error)
            self._move()

    def settle(self) -> Path | None:
        """Rename the finished entry to its final name; return its path, None without one."""
        while self.folder is not None:
            entry = self.folder.with_name(self._name)
            if os.name == "nt":  # an open file keeps its folder's name
                self.release()
            try:
                os.replace(self.folder, entry)
            except OSError as error:
                self._leave(error)
                self._move()
            else:
                self.release()
                return entry
        return None

    def keep(self) -> bool:
        """Write what an interrupt left in memory only; return whether the evaluation is in the folder then."""
        if not any(name.startswith(ARTIFACTS) for name in self.content):
            return False
        try:
            if self.folder is None:
                self._move()
            elif self.folder.with_name(self._name).is_dir():
                self.folder = self.folder.with_name(self._name)
            for name, content in self.content.items():
                if self.folder is not None and not (self.folder / name).exists():
                    self.write(name, content)
            return self.folder is not None
        finally:
            self.release()

    def discard(self) -> None:
        """Remove what was written."""
        self.release()
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
            _tidy(self.folder.parent)
            self.folder = None

    def release(self) -> None:
        """Release the lock, so that any process may send the entry."""
        if self._lock is not None:
            _release(self._lock)
            self._lock = None

    def _leave(self, error: OSError) -> None:
        assert self.folder is not None
        self.refusals.append(f"{self.folder.parent}: {error.strerror or error}")
        self.discard()

    def _move(self) -> None:
        for place in self._places:
            self.folder = place / self._hidden
            try:
                make_folder(self.folder, 0o700)
                self._lock = _acquire(self.folder / _LOCK)
                for name, content in self.content.items():
                    write_private(self.folder / name, content)
            except OSError as error:
                self._leave(error)
            else:
                return


@contextlib.contextmanager
def new_entry(of: Path | None = None, **intent: Any) -> Iterator[Draft]:
    """A new entry to write into; its destination is written first.

    An error inside the block removes the entry. An interrupt, or an exit, keeps it once the evaluation was given to
    it, and is passed on. ``of`` is an unfinished entry, which the new one replaces.
    """
    draft = Draft(intent, of)
    try:
        yield draft
    except Exception:
        draft.discard()
        raise
    except BaseException as interrupt:
        if of is None and draft.keep():
            interrupt.add_note(
                f"cmtrack: the evaluation is kept in {draft.folder}; `cmtrack push` sends it"
            )
        else:
            draft.discard()
        raise


def keep_inputs(arrays: dict[str, Any]) -> Path | None:
    """Store the inputs of a failed evaluation, with labels as strings instead of pickles.

    The result: None where no place could be written.
    """
    columns = {}
    for name, values in arrays.items():
        if values is not None:
            array = as_array(values)
            if array.dtype.kind == "O":
                array = np.array([str(value) for value in array.ravel()]).reshape(array.shape)
            columns[name] = array
    content = BytesIO()
    np.savez_compressed(content, **columns)
    with new_entry() as draft:
        draft.write(INPUTS, content.getvalue())
        return draft.settle()


def write_private(path: Path, content: bytes) -> None:
    """Write a file readable by its owner only, creating its folder."""
    write_whole({path: content}, private=True, synced=False)


def remove(entry: Path) -> None:
    """Remove an entry atomically, with leftovers of killed processes, and an empty spool folder."""
    gone = entry.with_name(f".{entry.name.lstrip('.')}{SENT}")
    for left in (
        entry.with_name(f".{entry.name}"),
        *entry.parent.glob(f".{glob.escape(entry.name)}.*"),
    ):
        shutil.rmtree(left, ignore_errors=True)
    with contextlib.suppress(OSError):
        os.replace(entry, gone)
    shutil.rmtree(gone, ignore_errors=True)
    _tidy(entry.parent)


def _tidy(folder: Path) -> None:
    """Remove the folder if it is empty."""
    with contextlib.suppress(OSError):
        folder.rmdir()


# -- looking ---------------------------------------------------------------------------------------------------------


def entries(folder: Path | None = None) -> list[Entry]:
    """The waiting entries, oldest first; other folders and links are ignored.

    ``folder``: by default all of :func:`spool_folders`.
    """
    waiting: list[Entry] = []
    for place in spool_folders() if folder is None else [folder]:
        with contextlib.suppress(OSError):
            waiting += [entry for entry in map(_entry, place.iterdir()) if entry is not None]
    return sorted(waiting, key=lambda entry: entry.name)


def made(name: str) -> int | None:
    """Creation time of an entry by its name, in milliseconds since 1970; None if the name has none."""
    try:
        return int(
            datetime.strptime(name.split("-")[0], _STAMP).replace(tzinfo=UTC).timestamp() * 1000
        )
    except ValueError:
        return None


def _entry(path: Path) -> Entry | None:
    if path.is_symlink() or not path.is_dir() or path.name.endswith(SENT):
        return None
    try:
        if path.name.startswith("."):
            finished = path.with_name(path.name.removeprefix("."))
            left = (path / INTENT).is_file() and not finished.exists() and _abandoned(path)
            return Entry(path, "unfinished") if left else None
        if (path / MANIFEST).is_file():
            return Entry(path, "evaluation")
        return Entry(path, "inputs") if (path / INPUTS).is_file() else None
    except OSError:  # another user's, who keeps it private
        return None


def read_intent(folder: Path) -> dict[str, Any]:
    """The destination of an unfinished entry.

    ValueError if the file is damaged, a link, too large, or of a newer schema.
    """
    data = json.loads(untrusted.read_file(folder / INTENT, _MAX_INTENT))
    if not isinstance(data, dict):
        raise ValueError(f"{INTENT} must hold a mapping, got {type(data).__name__}")
    return schemas.INTENT.migrated(data)


@contextlib.contextmanager
def claimed(folder: Path, place: str | None = None, *, anew: bool = False) -> Iterator[bool]:
    """Lock an entry, or the place it is sent to; gives False if another sender holds the lock.

    A place is locked by a temporary file next to the entries: entries of one spool do not mix there.
    ``anew`` takes it from a thread that will stop.
    """
    digest = place and hashlib.sha256(place.encode("utf-8", "surrogateescape")).hexdigest()[:16]
    lock = folder.with_name(f".{digest}{_LOCK}") if digest else folder / _LOCK
    try:
        if anew:
            lock.unlink(missing_ok=True)
        handle = _acquire(lock)
    except (BlockingIOError, FileNotFoundError):  # held, or sent meanwhile
        yield False
        return
    except OSError:  # a folder that cannot be written: nothing is lost by sending it twice
        handle = None
    try:
        yield handle is None or not place or _is_linked(handle)  # else it was opened before it went
    finally:
        if handle is not None:
            if place and _is_linked(handle):
                with contextlib.suppress(OSError):  # Windows keeps an open file
                    os.unlink(lock)
            _release(handle)


def _is_linked(handle: int) -> bool:
    return handle in _held and os.fstat(handle).st_nlink > 0


def _abandoned(folder: Path) -> bool:
    """True if no process is writing the entry any more."""
    try:
        if (folder / _LOCK).is_file():
            handle = _acquire(folder / _LOCK)
            if handle is not None:
                _release(handle)
                return True
    except BlockingIOError:
        return False
    except OSError:
        return False  # somebody else's
    newest = max(path.stat().st_mtime for path in (folder, *folder.rglob("*")))
    return time.time() - newest > GRACE


def _release(handle: int) -> None:
    """Release a lock, unless it belongs to the process from which this one was forked."""
    if handle not in _held:
        return
    _held.discard(handle)
    if sys.platform != "win32":
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_UN)
    os.close(handle)


def _acquire(lock: Path) -> int | None:
    """Lock a file until its handle is closed; None if the file system has no locks.

    BlockingIOError if another process holds the lock.
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
        # the latter is how Windows says that it is held
        if isinstance(error, (BlockingIOError, PermissionError)):
            raise BlockingIOError(*error.args) from None
        with contextlib.suppress(OSError):  # a file system without locks
            os.unlink(lock)
        return None
    _held.add(handle)
    return handle


def _forked() -> None:
    """Close inherited locks in a forked process: a lock belongs to the process that took it."""
    for handle in _held:
        os.close(handle)
    _held.clear()


in_forked_workers(_forked)
