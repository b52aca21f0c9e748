"""Functions that read entries from untrusted folders and validate every value."""

from __future__ import annotations

import json
import operator
import os
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from cmtrack import schemas, untrusted
from cmtrack.evaluation.loading import loads
from cmtrack.tracking import dataset as datasets
from cmtrack.tracking import names
from cmtrack.tracking._warn import first_line
from cmtrack.tracking.cache import digest_of
from cmtrack.tracking.entry import ARTIFACTS, CHARTS, Entry, State, state_of
from cmtrack.tracking.spool import ENTRY, INTENT, MANIFEST

MAX_FILES = 1000
MAX_BYTES = 4 << 30

_SCHEMAS = {ENTRY: schemas.ENTRY, MANIFEST: schemas.MANIFEST, INTENT: schemas.INTENT}
_LARGEST = {ENTRY: 16 << 20, MANIFEST: 16 << 20, INTENT: 1 << 20}
"""Maximum size of each file in bytes."""
_NEW_NAMES = {"metrics": "metric_names", "dataset": "dataset_name", "rows": "has_rows"}
"""For each renamed key of ``intent.json``, its name in ``entry.json``."""


def read(folder: Path) -> Entry:
    """Read an entry from the spool; for an unfinished entry, read only its destination and options.

    Raises ValueError if ``entry.json`` or the evaluation is damaged, if ``entry.json`` names a file
    outside the entry, if a file is a link or is too large, or if the entry contains too many files.
    Entries of cmtrack 0.1 and 0.2 contain ``intent.json`` and ``manifest.json`` instead of
    ``entry.json``.
    """
    state = state_of(folder)
    stored = _stored(folder, state)
    step = stored.data.get("step")
    uri = stored.optional("tracking_uri", str)
    entry = Entry(
        folder=folder,
        state=state,
        run_id=stored.identifier("run_id"),
        prefix=names.check_prefix(stored.optional("prefix", str) or ""),
        step=None if step is None else whole_number(step, f"{stored.file}: step"),
        model_id=stored.identifier("model_id"),
        model=stored.optional("model", str) or "",
        tracking_uri=None if uri is None else untrusted.tracking_uri(uri),
        on_existing=stored.optional("on_existing", str) or "replace",
        metric_names=stored.data.get("metric_names", "headline"),
        dataset_name=datasets.checked_name(stored.optional("dataset_name", str)),
        has_rows=bool(stored.data.get("has_rows")),
    )
    if state is State.READY:
        _read_made(entry, folder, stored)
    return entry


def _stored(folder: Path, state: State) -> _Stored:
    """Read the JSON file of an entry, and rename old keys to the keys of ``entry.json``."""
    file = ENTRY
    if not os.path.lexists(folder / ENTRY):
        file = INTENT if state is State.UNFINISHED else MANIFEST
    try:
        content = untrusted.read_file(folder / file, _LARGEST[file])
        data = json.loads(content, parse_constant=partial(_refuse_constant, file))
    except (OSError, UnicodeDecodeError, RecursionError, json.JSONDecodeError) as error:
        raise ValueError(f"{file} is damaged: {type(error).__name__}") from None
    if not isinstance(data, dict):
        raise ValueError(f"{file} must be a mapping, got {type(data).__name__}")
    data = _SCHEMAS[file].migrated(data)
    if file == INTENT:
        data = {_NEW_NAMES.get(name, name): value for name, value in data.items()}
    return _Stored(file, data)


def _refuse_constant(file: str, text: str) -> float:
    raise ValueError(f"{file} must not contain {text}, which is not a finite number")


def _read_made(entry: Entry, folder: Path, stored: _Stored) -> None:
    """Read the content of a complete entry, and check its files."""
    files = _files(folder / ARTIFACTS)
    # earlier versions did not make this folder
    charts = _files(folder / CHARTS) if (folder / CHARTS).exists() else files
    entry.metrics = stored.metrics()
    entry.tags = stored.tags()
    entry.images = stored.texts("images")
    for name in entry.images.values():
        stored.check_file(name, charts)
    entry.table = stored.required("table", str)
    entry.dataset = stored.texts("dataset")
    entry.description = stored.required("description", str)
    entry.timestamp = stored.required("timestamp", int)
    entry.problems = tuple(map(str, stored.required("problems", list)))
    evaluation = names.file_name(names.EVALUATION_FILE, entry.prefix)
    stored.check_file(evaluation, files)
    content = untrusted.read_file(entry.path_of(evaluation), MAX_BYTES)
    if digest_of(content) != entry.digest(names.EVALUATION_FILE):
        raise ValueError(f"{evaluation} is damaged: it is not the file that was written")
    _check_rows(entry, files, content)
    if entry.table:
        untrusted.file_name(entry.table, f"{stored.file}: table")
    if not {"name", "digest"} <= set(entry.dataset) <= set(datasets.FIELDS):
        raise ValueError(
            f"{stored.file}: dataset must have name and digest, got {list(entry.dataset)[:5]}"
        )


def _files(folder: Path) -> set[str]:
    """Return the names of the files to upload; raise ValueError if they are not plain files."""
    if folder.is_symlink() or not folder.is_dir():
        raise ValueError("an entry must have a folder 'artifacts', got none")
    files = set()
    total = 0
    for path in folder.iterdir():
        untrusted.file_name(path.name)
        if path.is_symlink() or not path.is_file():
            raise ValueError(f"artifacts must be plain files, got {path.name!r:.80}")
        files.add(path.name)
        total += path.stat().st_size
    if len(files) > MAX_FILES or total > MAX_BYTES:
        raise ValueError(f"an entry may contain at most {MAX_FILES} files and {MAX_BYTES >> 30} GB")
    return files


def _check_rows(entry: Entry, files: set[str], evaluation: bytes) -> None:
    """Remove missing or damaged rows from an entry, and add this to the entry's problems.

    Rows with an unexpected digest are accepted if they match the evaluation, because a process that
    removed the probabilities of the rows may have ended before it wrote the new digest.
    """
    digest = entry.digest(names.PREDICTIONS_FILE)
    if digest is None:
        return
    file = names.file_name(names.PREDICTIONS_FILE, entry.prefix)
    problem = "the file is missing"
    if file in files:
        content = untrusted.read_file(entry.path_of(file), MAX_BYTES)
        if digest_of(content) == digest:
            return
        try:
            loads(evaluation.decode("utf-8")).with_rows(content)
            entry.tags = entry.tags_with_rows(content)
            return
        except ValueError as error:
            problem = first_line(error)
    entry.tags = entry.tags_with_rows(None)
    entry.problems += (f"the rows in {file}: {problem}",)


@dataclass(frozen=True)
class _Stored:
    """The values in the JSON file of an entry; each value is checked when it is read.

    ``file``: the name of the file, for error messages.
    """

    file: str
    data: dict[str, Any]

    def required(self, name: str, kind: type) -> Any:
        """Return a value of the given type."""
        value = self.data.get(name)
        if not isinstance(value, kind) or isinstance(value, bool):
            raise ValueError(
                f"{self.file}: {name} must be a {kind.__name__}, got {type(value).__name__}"
            )
        if isinstance(value, int) and abs(value) >= 1 << 63:
            raise ValueError(
                f"{self.file}: {name} must be a number of at most 64 bits, got "
                f"{value.bit_length():,}"
            )
        return value

    def optional(self, name: str, kind: type) -> Any:
        """Return a value of the given type, or None."""
        return None if self.data.get(name) is None else self.required(name, kind)

    def identifier(self, name: str) -> str | None:
        """Return the id of a run or a model, or None."""
        value = self.optional(name, str)
        return None if value is None else untrusted.identifier(value, f"{self.file}: {name}")

    def texts(self, name: str) -> dict[str, str]:
        """Return a mapping of names to texts."""
        texts = self.required(name, dict)
        if not all(isinstance(value, str) for value in texts.values()):
            raise ValueError(f"{self.file}: {name} must contain texts")
        return dict(texts)

    def tags(self) -> dict[str, str]:
        """Return the tags, after checking that all of them are tags of cmtrack."""
        tags = self.texts("tags")
        for name in tags:
            if not name.startswith("cmtrack."):
                raise ValueError(f"{self.file}: tags must be named cmtrack.…, got {name!r:.80}")
        return tags

    def metrics(self) -> dict[str, float]:
        """Return the metrics as a mapping from names to finite values."""
        metrics = {}
        for name, value in self.required("metrics", dict).items():
            is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not is_number or not abs(value) <= sys.float_info.max:
                raise ValueError(
                    f"{self.file}: metrics must be finite numbers, got {value!r:.40} for "
                    f"{name!r:.80}"
                )
            metrics[name] = float(value)
        return metrics

    def check_file(self, name: str, files: set[str]) -> None:
        """Raise ValueError if ``entry.json`` names a file that the entry does not contain."""
        if name not in files:
            raise ValueError(f"{self.file} names a file that is not in the entry: {name!r:.80}")


def whole_number(value: Any, what: str) -> int:
    """Return an integer of any type that fits into 64 bits; raise ValueError for 2.0 or True."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise ValueError(f"{what} must be a whole number, got {value!r:.60}")
    number = operator.index(value)
    if abs(number) >= 1 << 63:
        raise ValueError(f"{what} must be a number of at most 64 bits, got {number.bit_length():,}")
    return number
