"""Spooled packages, read from untrusted folders: every value is validated."""

from __future__ import annotations

import json
import operator
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cmtrack import schemas, untrusted
from cmtrack.evaluation.loading import loads
from cmtrack.tracking import dataset as datasets
from cmtrack.tracking import names, spool
from cmtrack.tracking._warn import first_line
from cmtrack.tracking.cache import digest_of
from cmtrack.tracking.names import tag
from cmtrack.tracking.package import Package
from cmtrack.tracking.spool import ARTIFACTS, CHARTS, MANIFEST

MAX_MANIFEST = 16 << 20
MAX_FILES = 1000
MAX_BYTES = 4 << 30


def read(folder: Path) -> Package:
    """The package that an entry of the spool holds.

    ValueError if the manifest or the evaluation is damaged, or names a file outside the entry; if the files are links,
    too many or too large.
    """
    try:
        data = json.loads(
            untrusted.read_file(folder / MANIFEST, MAX_MANIFEST), parse_constant=_no_constant
        )
    except (OSError, UnicodeDecodeError, RecursionError, json.JSONDecodeError) as error:
        raise ValueError(f"{MANIFEST} is damaged: {type(error).__name__}") from None
    if not isinstance(data, dict):
        raise ValueError(f"{MANIFEST} must hold a mapping, got {type(data).__name__}")
    data = schemas.MANIFEST.migrated(data)
    files = _files(folder / ARTIFACTS)
    # earlier versions had no such folder
    charts = _files(folder / CHARTS) if (folder / CHARTS).exists() else files
    package = Package(
        folder=folder,
        **destination(data, MANIFEST),
        metrics=_metrics(data),
        tags=_tags(data),
        images={key: _file(name, charts) for key, name in _texts(data, "images").items()},
        table=_text(data, "table"),
        dataset=_texts(data, "dataset"),
        description=_text(data, "description"),
        timestamp=_required(data, "timestamp", int),
        on_existing=_text(data, "on_existing"),
        problems=tuple(map(str, _required(data, "problems", list))),
    )
    package = _with_whole_rows(package, files, _whole_evaluation(package, files))
    if package.table:
        untrusted.file_name(package.table, f"{MANIFEST}: table")
    if not {"name", "digest"} <= set(package.dataset) <= set(datasets.FIELDS):
        raise ValueError(
            f"{MANIFEST}: dataset must hold name and digest, got {list(package.dataset)[:5]}"
        )
    return package


def destination(data: dict[str, Any], file: str) -> dict[str, Any]:
    """Run, model, prefix, step and store of an entry, read from its manifest or its intent.

    ValueError if one of them is of another kind, or no such id, prefix or URI.

    ``data``: what the file holds.
    ``file``: its name, for messages.
    """
    run_id, model_id, prefix, uri = (
        _optional(data, n, str, file) for n in ("run_id", "model_id", "prefix", "tracking_uri")
    )
    return {
        "run_id": None if run_id is None else untrusted.identifier(run_id, f"{file}: run_id"),
        "model_id": None
        if model_id is None
        else untrusted.identifier(model_id, f"{file}: model_id"),
        "prefix": names.check_prefix(prefix or ""),
        "step": None if data.get("step") is None else whole_number(data["step"], f"{file}: step"),
        "tracking_uri": None if uri is None else untrusted.tracking_uri(uri),
    }


def _files(folder: Path) -> set[str]:
    """Names of the files to upload: plain ones, in one folder."""
    if folder.is_symlink() or not folder.is_dir():
        raise ValueError("an entry must hold a folder 'artifacts', got none")
    files, total = set(), 0
    for path in folder.iterdir():
        untrusted.file_name(path.name)
        if path.is_symlink() or not path.is_file():
            raise ValueError(f"artifacts must be plain files, got {path.name!r:.80}")
        files.add(path.name)
        total += path.stat().st_size
    if len(files) > MAX_FILES or total > MAX_BYTES:
        raise ValueError(f"an entry must hold at most {MAX_FILES} files and {MAX_BYTES >> 30} GB")
    return files


def _file(name: str, files: set[str]) -> str:
    if name not in files:
        raise ValueError(f"{MANIFEST} names a file that the entry does not hold: {name!r:.80}")
    return name


def _digest(package: Package, name: str) -> str | None:
    return names.digests(package.tags, package.prefix).get(names.digest_key(name))


def _whole_evaluation(package: Package, files: set[str]) -> bytes:
    """Check the evaluation's file against its digest."""
    assert package.folder is not None
    file = _file(names.file_name(names.EVALUATION_FILE, package.prefix), files)
    content = untrusted.read_file(package.folder / ARTIFACTS / file, MAX_BYTES)
    if digest_of(content) != _digest(package, names.EVALUATION_FILE):
        raise ValueError(f"{file} is damaged: it is not the file that was written")
    return content


def _with_whole_rows(package: Package, files: set[str], evaluation: bytes) -> Package:
    """The package with its rows; if they are missing or damaged, without them and with a problem.

    Other rows than those that were written are whole if they are the evaluation's: a process that took out their
    probabilities may have ended before it wrote their new digest.
    """
    file, digest = (
        names.file_name(names.PREDICTIONS_FILE, package.prefix),
        _digest(package, names.PREDICTIONS_FILE),
    )
    if digest is None:
        return package
    assert package.folder is not None
    problem = "it is gone"
    if file in files:
        content = untrusted.read_file(package.folder / ARTIFACTS / file, MAX_BYTES)
        if digest_of(content) == digest:
            return package
        try:
            loads(evaluation.decode("utf-8")).with_rows(content)
            return package.with_rows(content)
        except ValueError as error:
            problem = first_line(error)
    return replace(
        package.with_rows(None), problems=(*package.problems, f"the rows in {file}: {problem}")
    )


def _metrics(data: dict[str, Any]) -> dict[str, float]:
    out = {}
    for name, value in _required(data, "metrics", dict).items():
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not number or not abs(value) <= sys.float_info.max:
            raise ValueError(
                f"{MANIFEST}: metrics must be finite numbers, got {value!r:.40} for {name!r:.80}"
            )
        out[name] = float(value)
    return out


def _tags(data: dict[str, Any]) -> dict[str, str]:
    tags = _texts(data, "tags")
    for name in tags:
        if not name.startswith("cmtrack."):
            raise ValueError(f"{MANIFEST}: tags must be called cmtrack.…, got {name!r:.80}")
    return tags


def _texts(data: dict[str, Any], name: str) -> dict[str, str]:
    texts = _required(data, name, dict)
    if not all(isinstance(value, str) for value in texts.values()):
        raise ValueError(f"{MANIFEST}: {name} must hold texts")
    return dict(texts)


def _text(data: dict[str, Any], name: str) -> str:
    return str(_required(data, name, str))


def _optional(data: dict[str, Any], name: str, kind: type, file: str) -> Any:
    return None if data.get(name) is None else _required(data, name, kind, file)


def _required(data: dict[str, Any], name: str, kind: type, file: str = MANIFEST) -> Any:
    value = data.get(name)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ValueError(f"{file}: {name} must be a {kind.__name__}, got {type(value).__name__}")
    if isinstance(value, int) and abs(value) >= 1 << 63:
        raise ValueError(
            f"{file}: {name} must be a number of 64 bits, got one of {value.bit_length():,}"
        )
    return value


def whole_number(value: Any, what: str) -> int:
    """A number of 64 bits, of whatever integer type; ValueError if it is none, such as 2.0 or True."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise ValueError(f"{what} must be a whole number, got {value!r:.60}")
    number = operator.index(value)
    if abs(number) >= 1 << 63:
        raise ValueError(f"{what} must be a number of 64 bits, got one of {number.bit_length():,}")
    return number


def _no_constant(text: str) -> float:
    raise ValueError(f"{MANIFEST} holds {text}, which is no number")


_WHAT = {
    "inputs": "the inputs of an evaluation that failed",
    "unfinished": "cut off while it was written",
}


@dataclass(frozen=True)
class Waiting:
    """One entry of the spool.

    ``kind``, "evaluation", "inputs", "unfinished" or "damaged".
    ``made``: when, in UTC; empty where that is not known.
    ``what``: what it holds, in words.
    ``meant_for``: the run, and the store.
    ``size``: bytes.
    """

    name: str
    path: Path
    kind: str
    made: str
    what: str
    meant_for: str
    size: int


def listing(folder: str | Path | None = None) -> list[Waiting]:
    """The entries of the spool, the oldest first; damaged ones are marked.

    An entry that is sent while it is looked at is left out.
    """
    waiting = []
    for entry in spool.entries(None if folder is None else Path(folder)):
        with suppress(FileNotFoundError):
            described = _described(entry)
            if entry.folder.exists():
                waiting.append(described)
    return waiting


def _described(entry: spool.Entry) -> Waiting:
    kind, made, content, meant_for = entry.kind, _stamp(entry.name), _WHAT.get(entry.kind, ""), ""
    if kind == "evaluation":
        try:
            package = read(entry.folder)
        except ValueError as error:
            kind, content = "damaged", str(error)
        else:
            samples = package.tags.get(tag("samples", package.prefix), "?")
            content = f"evaluation of {samples} samples" + (
                f", prefix {package.prefix!r}" if package.prefix else ""
            )
            where = f" in {package.tracking_uri}" if package.tracking_uri else ""
            meant_for = f"run {package.run_id}{where}" if package.run_id else "no run"
    return Waiting(entry.name, entry.folder, kind, made, content, meant_for, entry.size)


def _stamp(name: str) -> str:
    made = spool.made(name)
    return (
        ""
        if made is None
        else datetime.fromtimestamp(made / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    )
