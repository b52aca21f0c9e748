"""Schemas of stored files: the newest schema of each file, and migrations from older schemas.

A schema gets a new number if files with the previous schema cannot be read without a migration. A
new optional key does not need a new number. The folder ``tests/golden`` contains files with every
schema, which the tests read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Stored:
    """A kind of JSON file whose key ``schema`` contains the number of its schema.

    ``name``: the file's name in error messages.
    ``newest``: the schema that cmtrack writes.
    ``migrations``: for each older schema, a function that converts its plain data to plain data of
    the next schema.
    ``unnumbered``: the schema of files that do not contain a schema number.
    """

    name: str
    newest: int
    migrations: Mapping[int, Callable[[dict[str, Any]], dict[str, Any]]] = field(
        default_factory=dict
    )
    unnumbered: int | None = None

    def migrated(self, data: dict[str, Any]) -> dict[str, Any]:
        """Convert the data of a file to the newest schema.

        Raises ValueError if the schema is invalid, or newer than this version of cmtrack can read.
        """
        schema = data.get("schema", self.unnumbered)
        if (
            isinstance(schema, bool)  # in Python, a boolean is also an integer
            or not isinstance(schema, int)
            or not 1 <= schema <= self.newest
        ):
            raise ValueError(
                f"{self.name} has schema {schema!r:.40}, this version of cmtrack reads up to "
                f"{self.newest}: upgrade cmtrack"
            )
        for older in range(schema, self.newest):
            data = self.migrations[older](data)
        return data | {"schema": self.newest}


def _with_choice(manifest: dict[str, Any]) -> dict[str, Any]:
    """Migrate schema 1 to 2: add ``on_existing``, which was always "replace"."""
    return {"on_existing": "replace"} | manifest


# Maps the first words of a note in schema 1 to the member of Lost that replaces it in schema 2.
_LOST = {
    "regrouped without the data: the counts by": "SCORES",
    "regrouped without the data: log loss": "LOSSES",
    "regrouped without the data: the calibration of": "HITS",
    "regrouped without the data: the calibrated": "TOPS",
    "regrouped without the target": "TARGET",
    "regrouped without the calibration set": "HELD",
    "regrouped: the costs": "COSTS",
    "regrouped: the predictions": "THRESHOLD",
    "regrouped without the rows": "ROWS",
    "sections were added without the rows": "CLUSTERS",
}


def _with_losses(evaluation: dict[str, Any]) -> dict[str, Any]:
    """Migrate schema 1 to 2, in which ``lost`` has a new meaning.

    Schema 1 listed losses of information among the notes. The key ``lost`` contained metrics that
    were computed with a different order of the classes.
    """
    notes = []
    lost = set()
    for note in evaluation.get("notes", ()):
        if not isinstance(note, str):
            continue
        names = [name for first_words, name in _LOST.items() if note.startswith(first_words)]
        if names:
            lost.update(names)
        else:
            notes.append(note)
    changed = {
        "notes": notes,
        "lost": sorted(lost),
        "of_another_order": evaluation.get("lost", {}),
    }
    return evaluation | changed


EVALUATION = Stored("the evaluation", 2, {1: _with_losses})
"""File that stores an evaluation of classes or of families, depending on its ``kind``."""
REVIEW = Stored("the review", 1)
ENTRY = Stored("entry.json", 1)
"""The file that describes an entry in the spool."""
MANIFEST = Stored("manifest.json", 2, {1: _with_choice}, unnumbered=1)
"""The file that cmtrack 0.1 and 0.2 wrote for a complete entry instead of ``entry.json``."""
INTENT = Stored("intent.json", 1, unnumbered=1)
"""The file with the destination of an entry that cmtrack 0.1 or 0.2 did not complete."""
BUNDLE = Stored("the bundle", 1)
"""The manifest of a review that is stored together with all of its inputs."""
PROMOTION = Stored("the record", 1)
"""The record of a promotion."""
COUNTS = Stored("the counts", 1)
"""The file with estimated shares by cell, and the counts from which they are computed."""
