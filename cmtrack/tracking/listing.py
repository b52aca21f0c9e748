"""The waiting entries of the spool, for people."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cmtrack.tracking import spool
from cmtrack.tracking.manifest import read
from cmtrack.tracking.names import tag

_WHAT = {
    "inputs": "the inputs of an evaluation that failed",
    "unfinished": "cut off while it was written",
}


@dataclass(frozen=True)
class Waiting:
    """One entry of the spool.

    Attributes
    ----------
    name : str
    path : Path
    kind : "evaluation", "inputs", "unfinished" or "damaged"
    made : str
        When, in UTC; empty where that is not known.
    what : str
        What it holds, in words.
    meant_for : str
        The run, and the store.
    size : int
        Bytes.
    """

    name: str
    path: Path
    kind: str
    made: str
    what: str
    meant_for: str
    size: int


def listing(folder: str | Path | None = None) -> list[Waiting]:
    """The entries of the spool, the oldest first; damaged ones are listed and said to be."""
    return [_described(entry) for entry in spool.entries(None if folder is None else Path(folder))]


def _described(entry: spool.Entry) -> Waiting:
    kind, made, what, meant_for = entry.kind, _stamp(entry.name), _WHAT.get(entry.kind, ""), ""
    if kind == "evaluation":
        try:
            package = read(entry.folder)
        except ValueError as error:
            kind, what = "damaged", str(error)
        else:
            samples = package.tags.get(tag("samples", package.prefix), "?")
            what = f"evaluation of {samples} samples" + (f", prefix {package.prefix!r}" if package.prefix else "")
            where = f" in {package.tracking_uri}" if package.tracking_uri else ""
            meant_for = f"run {package.run_id}{where}" if package.run_id else "no run"
    return Waiting(entry.name, entry.folder, kind, made, what, meant_for, entry.size)


def _stamp(name: str) -> str:
    try:
        made = datetime.strptime(name.split("-")[0], "%Y%m%dT%H%M%S%f").replace(tzinfo=UTC)
    except ValueError:
        return ""
    return made.strftime("%Y-%m-%d %H:%M:%S")
