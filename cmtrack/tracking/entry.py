"""Entries: evaluations to be sent to a run, with their destination, options and content.

An entry is a folder in the spool (:mod:`cmtrack.tracking.spool`). The file ``entry.json`` is
written twice: first with the destination and the requested options, and again when the content is
complete. The folder ``artifacts/`` contains the files for the run, and ``charts/`` contains the
images for MLflow's charts. While an entry is being written, its folder has a hidden name. Renaming
the folder to its final name makes the entry complete. Passwords are never written into an entry.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

from cmtrack import schemas, untrusted
from cmtrack.files import PARTIAL, make_folder, write_whole
from cmtrack.tracking import names, spool
from cmtrack.tracking.cache import digest_of

ENTRY = spool.ENTRY
ARTIFACTS = "artifacts"
CHARTS = "charts"
"""Name of the folder that contains the images for MLflow's charts."""

Figures: TypeAlias = str | bool | Sequence[str]

_STORED = (
    "run_id",
    "prefix",
    "step",
    "model_id",
    "model",
    "tracking_uri",
    "on_existing",
    "metric_names",
    "dataset_name",
    "has_rows",
    "metrics",
    "tags",
    "images",
    "table",
    "dataset",
    "description",
    "timestamp",
    "problems",
)
"""Attributes that are stored in ``entry.json``."""


class State(Enum):
    """State of an entry; ``cmtrack spool`` lists this state as the entry's kind."""

    UNFINISHED = "unfinished"
    """The entry is being written, or the process that wrote it ended too early."""
    READY = "evaluation"
    """The entry is complete, and can be sent."""
    INPUTS = "inputs"
    """The entry contains the input arrays of an evaluation that could not be computed."""


def state_of(folder: Path) -> State:
    """Return the state of an entry from its name and files, even if ``entry.json`` is damaged."""
    if folder.name.startswith("."):
        return State.UNFINISHED
    return State.INPUTS if (folder / spool.INPUTS).is_file() else State.READY


@dataclass(kw_only=True, eq=False)
class Entry:
    """An evaluation that is to be sent to a run.

    **Destination**: these attributes are set before anything is written. ``run_id`` is None if no
    run has been created for the entry yet. ``tracking_uri`` is the store's URI, without
    credentials. ``model`` is the address of the evaluated version of a registered model, such as
    ``models:/party/3``, or empty. ``on_existing`` ("replace" or "error") decides what happens if
    the run already contains a different evaluation under the same prefix.

    **Options** that were passed to :func:`cmtrack.log_evaluation`; they are set before anything is
    written: ``metric_names``, ``predictions``, ``dataset_name`` and ``figures``. ``run_name`` is
    the run's name in the figures and the report, and is empty if the name is not known.
    ``has_rows`` is True if the rows will be written.

    **Content**: these attributes are empty until :func:`cmtrack.tracking.contents.make` fills them.
    ``metrics`` maps metric names in MLflow to finite values. ``tags`` maps the full names of the
    run's tags to their texts. One tag contains the digests of the entry's files. ``images`` maps
    the image keys of MLflow's charts to files in ``charts/``; earlier versions stored images in
    ``artifacts/``. ``table`` is the file that the artifact view shows as a table. ``dataset``
    contains the fields that :mod:`cmtrack.tracking.dataset` describes. ``description`` is a block
    for the run's description; its links are added when the entry is sent. ``timestamp`` is the
    creation time in milliseconds since 1970. If an entry is created again, it keeps its timestamp,
    so that sending the entry twice logs the same metric points. ``problems`` lists the parts that
    could not be created.

    **Files**: these attributes are set by the methods that write files. ``folder`` is None if no
    folder on this machine could be written; in that case only metrics and tags can be sent.
    ``contents`` keeps all files in memory until they are written to the folder. ``refusals`` lists
    the folders that were not writable, and the reasons.
    """

    run_id: str | None = None
    prefix: str = ""
    step: int | None = None
    model_id: str | None = None
    model: str = ""
    tracking_uri: str | None = None
    on_existing: str = "replace"

    metric_names: str | Sequence[str] = "headline"
    predictions: bool | str = "auto"
    dataset_name: str | None = None
    run_name: str = ""
    figures: Figures = "auto"

    has_rows: bool = False
    metrics: dict[str, float] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    images: dict[str, str] = field(default_factory=dict)
    table: str = ""
    dataset: dict[str, str] = field(default_factory=dict)
    description: str = ""
    timestamp: int = 0
    problems: tuple[str, ...] = ()

    state: State = State.UNFINISHED
    folder: Path | None = None
    contents: dict[str, bytes] = field(default_factory=dict, init=False, repr=False)
    refusals: list[str] = field(default_factory=list, init=False)
    _saved: set[str] = field(default_factory=set, init=False, repr=False)
    _places: Iterator[Path] = field(default=iter(()), init=False, repr=False)
    _name: str = field(default="", init=False, repr=False)
    _hidden: str = field(default="", init=False, repr=False)
    _lock: int | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.tracking_uri is not None:
            self.tracking_uri = untrusted.without_credentials(self.tracking_uri)

    # -- its files ---------------------------------------------------------------------------------

    @property
    def files(self) -> list[str]:
        """Names of the files to upload: first the evaluation, then all other files by size.

        The file of rows is omitted if the tags do not contain its digest. Unfinished files of a
        killed process are also omitted.
        """
        if self.folder is None:
            return []
        evaluation = names.file_name(names.EVALUATION_FILE, self.prefix)
        rows = None
        if self.digest(names.PREDICTIONS_FILE) is not None:
            rows = names.file_name(names.PREDICTIONS_FILE, self.prefix)
        sizes = {}
        for path in (self.folder / ARTIFACTS).iterdir():
            if path.name == rows or not path.name.endswith((PARTIAL, names.PREDICTIONS_FILE)):
                sizes[path.name] = path.stat().st_size
        return sorted(sizes, key=lambda name: (name != evaluation, sizes[name], name))

    @property
    def written_folder(self) -> Path:
        """The folder of the entry; reading it raises ValueError if no folder could be written."""
        if self.folder is None:
            raise ValueError("an entry must have a folder to have files, got none")
        return self.folder

    def path_of(self, name: str) -> Path:
        """Return the path of a file to upload; raise ValueError if no folder could be written."""
        return self.written_folder / ARTIFACTS / name

    def image(self, file: str) -> bytes | None:
        """Return an image for the charts, which earlier versions stored in ``artifacts/``."""
        if self.folder is None:
            return None
        for subfolder in (CHARTS, ARTIFACTS):
            path = self.folder / subfolder / file
            if path.is_file():
                return path.read_bytes()
        return None

    def digest(self, name: str) -> str | None:
        """Return the digest of the evaluation or of its rows, or None if it is not in the tags."""
        return names.digests(self.tags, self.prefix).get(names.digest_key(name))

    def tags_with_rows(self, content: bytes | None) -> dict[str, str]:
        """Return the tags with the digest of new rows, or without this digest if no rows remain."""
        changed: Mapping[str, str | None] = {
            names.digest_key(names.PREDICTIONS_FILE): None,
            names.ROWS_FILE: None,
        }
        if content is not None:
            file = names.file_name(names.PREDICTIONS_FILE, self.prefix)
            changed = file_digests({file: content}, self.prefix)
        return names.with_digests(self.tags, self.prefix, changed)

    # -- writing -----------------------------------------------------------------------------------

    @contextlib.contextmanager
    def writing(self, old: Path | None = None) -> Iterator[None]:
        """Write the entry inside the block, into the first folder that accepts all of its files.

        If an error occurs inside the block, the entry is removed. After an interrupt or an exit,
        the entry is kept if it already contains the evaluation, and the interrupt or exit is raised
        again. ``old`` is an unfinished entry that this entry replaces.
        """
        unique = uuid.uuid4().hex[:8]
        if old is None:
            self._name = f"{datetime.now(UTC).strftime(spool.STAMP)}-{unique}"
            self._hidden = f".{self._name}"
            self._places = spool.places()
        else:
            self._name = old.name.lstrip(".")
            self._hidden = f".{self._name}.{unique}"
            self._places = chain([old.parent], spool.places())
        self.contents[ENTRY] = self._json()
        try:
            self._save()
            yield
        except Exception:
            self._discard()
            raise
        except BaseException as interrupt:
            if old is None and self._keep():
                interrupt.add_note(
                    f"cmtrack: the evaluation is kept in {self.folder}; `cmtrack push` sends it"
                )
            else:
                self._discard()
            raise
        self.contents.clear()

    def write(self, name: str, content: bytes) -> None:
        """Write a file, such as ``artifacts/cmtrack_evaluation.json``."""
        self.contents[name] = content
        self._save()

    def finish(self, state: State = State.READY) -> None:
        """Write ``entry.json`` again, and give the complete entry its final name."""
        self.state = state
        self._saved.discard(ENTRY)
        self.write(ENTRY, self._json())
        while self.folder is not None:
            final = self.folder.with_name(self._name)
            if os.name == "nt":  # an open file keeps its folder's name
                self._release()
            try:
                os.replace(self.folder, final)
            except OSError as error:
                self._leave(error)
                self._save()
            else:
                self.folder = final
                break
        self._release()

    def finish_in(self, folder: Path) -> None:
        """Write the complete entry into a folder that the caller chooses."""
        self.state = State.READY
        self.folder = folder
        for name, content in {**self.contents, ENTRY: self._json()}.items():
            spool.write_private(folder / name, content)
        self.contents.clear()

    def rewrite(self, files: Mapping[str, bytes] = MappingProxyType({})) -> None:
        """Replace artifacts of an entry and then its ``entry.json``; each replacement is atomic."""
        changed = {self.path_of(name): content for name, content in files.items()}
        changed[self.written_folder / ENTRY] = self._json()
        write_whole(changed, private=True)

    def _json(self) -> bytes:
        plain = {"schema": schemas.ENTRY.newest} | {name: getattr(self, name) for name in _STORED}
        return json.dumps(plain, ensure_ascii=False, indent=1).encode("utf-8")

    def _save(self) -> None:
        """Write the missing files; if a file cannot be written, move the entry to a new place."""
        while self.folder is not None or self._enter_next_place():
            try:
                for name, content in self.contents.items():
                    if name not in self._saved:
                        spool.write_private(self.written_folder / name, content)
                        self._saved.add(name)
            except OSError as error:
                self._leave(error)
            else:
                return

    def _enter_next_place(self) -> bool:
        """Create and lock a hidden folder in the next place; return False if no place is left."""
        for place in self._places:
            self.folder = place / self._hidden
            try:
                make_folder(self.folder, 0o700)
                self._lock = spool.acquire(self.folder / spool.LOCK)
            except OSError as error:
                self._leave(error)
            else:
                return True
        return False

    def _leave(self, error: OSError) -> None:
        """Stop using a place in which a file could not be written."""
        place = self.written_folder.parent
        self.refusals.append(f"{place}: {error.strerror or error}")
        self._discard()

    def _discard(self) -> None:
        """Remove the written files, whose contents are still in memory."""
        self._release()
        self._saved.clear()
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
            spool.tidy(self.folder.parent)
            self.folder = None

    def _keep(self) -> bool:
        """Write the files that were in memory at an interrupt; return True to keep the entry."""
        if not any(name.startswith(ARTIFACTS) for name in self.contents):
            return False
        try:
            if self.folder is not None and self.folder.with_name(self._name).is_dir():
                self.folder = self.folder.with_name(self._name)
            self._save()
            return self.folder is not None
        finally:
            self._release()

    def _release(self) -> None:
        """Release the lock, so that any process may send the entry."""
        if self._lock is not None:
            spool.release(self._lock)
            self._lock = None


def file_digests(files: Mapping[str, bytes], prefix: str) -> dict[str, str | None]:
    """Return the digests of the evaluation and of its rows, with their keys in the digests tag."""
    entries: dict[str, str | None] = {}
    for name in (names.EVALUATION_FILE, names.PREDICTIONS_FILE):
        file = names.file_name(name, prefix)
        if file in files:
            entries[names.digest_key(name)] = digest_of(files[file])
    # An earlier, regrouped evaluation under this prefix may point to another evaluation's rows.
    rows_file = names.file_name(names.PREDICTIONS_FILE, prefix)
    if prefix and rows_file in files:
        entries[names.ROWS_FILE] = rows_file
    return entries
