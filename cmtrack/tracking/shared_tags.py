"""Tags that all evaluations in a run share: the run's description and its list of tables.

MLflow does not support transactions. Therefore a writer builds the shared tags from the run's
current tags, and builds them again if another process has changed the run's tags in the meantime.
If a run contains several evaluations, a separate tag for each evaluation stores its part of the
shared tags. Any writer can complete the shared tags from these separate tags. If two writers write
at the same time, the second one reads the tags after both parts were written.
"""

from __future__ import annotations

import contextlib
import json
import random
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from cmtrack import untrusted
from cmtrack.tracking import names, spool
from cmtrack.tracking.description import MAX_NOTE, NOTE, has_block, with_block

if TYPE_CHECKING:
    from mlflow import MlflowClient

TABLES = "mlflow.loggedArtifacts"
"""Name of the tag that lists the tables which MLflow's artifact view compares."""
PART = "part"
"""Tag that stores an evaluation's part of the shared tags as JSON.

It is written only in runs that contain several evaluations.
"""
_PART = re.compile(r"cmtrack\.(?:.*\.)?part")
_STATUS = re.compile(r"cmtrack\.(?:.*\.)?status")
_EMPTY = {NOTE: "", TABLES: "[]"}
_ROUNDS = 5
"""Maximum number of attempts to write shared tags.

If several writers compete, the last writer has read the tags that the others wrote.
"""
_WAIT = 5.0
"""Number of seconds for which a writer waits for another writer of the same spool."""


@dataclass(frozen=True)
class Part:
    """An evaluation's part of the tags that all evaluations in a run share."""

    prefix: str
    block: str
    """Block for the description; empty if only the tables are known."""
    tables: tuple[str, ...]
    """Files that this part adds to the list of tables."""

    @property
    def text(self) -> str:
        """The value of the part's tag, as JSON; a long block is cut to its first line."""
        for block in (self.block, self.block.split("\n", 1)[0]):
            text = json.dumps(
                {"prefix": self.prefix, "block": block, "tables": self.tables}, ensure_ascii=False
            )
            if len(text) <= MAX_NOTE:
                break
        return text

    @classmethod
    def from_text(cls, text: str) -> Part | None:
        """Read a part from the text of its tag; return None if the text is damaged."""
        try:
            data = untrusted.parsed_json(text)
            prefix = names.check_prefix(data["prefix"])
            tables = tuple(untrusted.file_name(table) for table in data["tables"])
            block = data["block"]
        except (KeyError, TypeError, ValueError):
            return None
        return cls(prefix, block, tables) if isinstance(block, str) else None

    def is_block_missing(self, note: str) -> bool:
        """Return True if this part contains a block that is missing from a description."""
        return bool(self.block) and not has_block(note, self.prefix)

    def missing_in(self, tags: Mapping[str, str]) -> list[str]:
        """Return the names of this part's texts that are missing from the tags."""
        listed = tags.get(TABLES, _EMPTY[TABLES])
        missing = []
        if self.is_block_missing(tags.get(NOTE, _EMPTY[NOTE])):
            missing.append("its block of the description")
        unlisted = [table for table in self.tables if json.dumps(table) not in listed]
        return missing + [f"{table} in the list of tables" for table in unlisted]


def list_table(client: MlflowClient, run_id: str, prefix: str, table: str) -> None:
    """Add a file to the list of tables of a run that contains an evaluation under the prefix."""
    tags = client.get_run(run_id).data.tags
    part = Part.from_text(tags.get(names.tag(PART, prefix), "")) or Part(prefix, "", ())
    tables = (*(name for name in part.tables if name != table), table)
    write_shared_tags(client, run_id, replace(part, tables=tables), renews_block=False)


def write_shared_tags(
    client: MlflowClient,
    run_id: str,
    part: Part,
    *,
    tags: Mapping[str, str] = MappingProxyType({}),
    removed_tables: Iterable[str] = (),
    renews_block: bool = True,
    folder: Path | None = None,
) -> tuple[Mapping[str, str], list[str]]:
    """Write a part into a run's shared tags, and try again if another writer overwrites it.

    ``tags``: additional tags to write in the same request.
    ``removed_tables``: tables to remove from the list.
    ``renews_block``: whether the part's block replaces its earlier version.
    ``folder``: the entry's folder in the spool; senders of the same spool wait for each other.

    Returns the run's tags, and the texts of the part that are missing from the shared tags.
    """
    from mlflow.entities import RunTag

    part_tag: dict[str, str] = {}
    for attempt in range(_ROUNDS):
        # Writers that started at the same moment must not repeat at the same time.
        time.sleep(random.uniform(0.05, 0.3) * attempt)
        with _only_writer(folder, run_id):
            before = client.get_run(run_id).data.tags
            if _is_shared(before, part.prefix):
                part_tag = {names.tag(PART, part.prefix): part.text}
            others = _other_parts(before, part.prefix)
            shared = _shared_tags(before, others, part, removed_tables, renews_block)
            changed = {
                name: text
                for name, text in shared.items()
                if text != before.get(name, _EMPTY[name])
            }
            written = {**tags, **part_tag, **changed}
            run_tags = [RunTag(name, text) for name, text in written.items()]
            client.log_batch(run_id, tags=run_tags, synchronous=True)
            after = client.get_run(run_id).data.tags
        is_part_written = bool(part_tag) or not _is_shared(after, part.prefix)
        parts_after = [*_other_parts(after, part.prefix), part]
        # Texts that did not fit into the tags are not a reason to write them again.
        if is_part_written and _missing(after, parts_after) == _missing(shared, [*others, part]):
            break
    return after, part.missing_in(shared)


@contextlib.contextmanager
def _only_writer(folder: Path | None, run_id: str) -> Iterator[None]:
    """Wait until no other user of the spool is writing the run's shared tags."""
    if folder is None:
        yield
        return
    ends = time.monotonic() + _WAIT
    while True:
        with spool.claimed(folder, f"{run_id}\nshared tags") as alone:
            if alone or time.monotonic() > ends:
                yield
                return
        time.sleep(0.02)


def _is_shared(tags: Mapping[str, str], prefix: str) -> bool:
    """Return True if a run contains, or is about to receive, an evaluation under another prefix."""
    return any(_STATUS.fullmatch(name) and name != names.tag("status", prefix) for name in tags)


def _other_parts(tags: Mapping[str, str], prefix: str) -> list[Part]:
    """Return the parts for the run's evaluations under other prefixes, sorted by tag name."""
    part_tag = names.tag(PART, prefix)
    parts = [
        Part.from_text(text)
        for name, text in sorted(tags.items())
        if _PART.fullmatch(name) and name != part_tag
    ]
    return [part for part in parts if part is not None]


def _shared_tags(
    before: Mapping[str, str],
    others: Iterable[Part],
    part: Part,
    removed_tables: Iterable[str],
    renews_block: bool,
) -> dict[str, str]:
    """Return the description and the list of tables, with this part and any missing parts."""
    note = before.get(NOTE, _EMPTY[NOTE])
    listed = before.get(TABLES, _EMPTY[TABLES])
    for other in others:
        if other.is_block_missing(note):
            note = with_block(note, other.block, other.prefix)
        listed = with_tables(listed, other.tables)
    listed = with_tables(listed, part.tables, removed_tables)
    if renews_block or part.is_block_missing(note):
        note = with_block(note, part.block, part.prefix)
    return {NOTE: note, TABLES: listed}


def _missing(tags: Mapping[str, str], parts: Iterable[Part]) -> list[tuple[str, str]]:
    """Return the texts that are missing from the shared tags, each with its prefix."""
    return [(part.prefix, name) for part in parts for name in part.missing_in(tags)]


def with_tables(listed: str, added: Iterable[str], removed: Iterable[str] = ()) -> str:
    """Return the tag with a run's list of tables, after adding and removing tables.

    A damaged list is replaced by a new list. MLflow cuts tags off after 8,000 characters, even in
    the middle of a name. Therefore, if the list becomes too long, the oldest tables are removed.
    """
    try:
        entries = json.loads(listed)
    except (ValueError, RecursionError):
        entries = []
    if not isinstance(entries, list):
        entries = []
    for table in removed:
        entries = [entry for entry in entries if entry != _table_entry(table)]
    for table in added:
        if _table_entry(table) not in entries:
            entries.append(_table_entry(table))
    while len(json.dumps(entries)) > MAX_NOTE:
        entries.pop(0)
    return json.dumps(entries)


def _table_entry(table: str) -> dict[str, str]:
    return {"path": table, "type": "table"}
