"""Schemas of stored files: the one that each file has now, and how files of older ones are brought to it.

A schema gets the next number when a file of the one before cannot be read as it is; a key that is added and may be
absent needs none. Files of every schema lie in ``tests/golden`` and are read by the tests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Stored:
    """One kind of file, a JSON mapping with its schema's number under ``schema``.

    ``name``: as errors call it.
    ``newest``: the schema that is written.
    ``migrations``: by schema: from plain data of it to plain data of the next.
    ``unnumbered``: the schema of files without a number.
    """

    name: str
    newest: int
    migrations: Mapping[int, Callable[[dict[str, Any]], dict[str, Any]]] = field(
        default_factory=dict
    )
    unnumbered: int | None = None

    def migrated(self, data: dict[str, Any]) -> dict[str, Any]:
        """The data as a file of the newest schema holds them.

        ValueError if the schema is newer than this version of cmtrack, or no schema.
        """
        schema = data.get("schema", self.unnumbered)
        if (
            isinstance(schema, bool)
            or not isinstance(schema, int)
            or not 1 <= schema <= self.newest
        ):
            raise ValueError(
                f"{self.name} has schema {schema!r:.40}, this version of cmtrack reads up to {self.newest}: "
                "upgrade cmtrack"
            )
        for older in range(schema, self.newest):
            data = self.migrations[older](data)
        return data | {"schema": self.newest}


def _with_choice(manifest: dict[str, Any]) -> dict[str, Any]:
    """Schema 1 to 2: add ``on_existing``, which was always "replace"."""
    return {"on_existing": "replace"} | manifest


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
    """Schema 1 to 2: losses were among the notes, and ``lost`` held the metrics that depend on the order of classes."""
    notes = [note for note in evaluation.get("notes", ()) if isinstance(note, str)]
    lost = {
        note: name
        for note in notes
        for beginning, name in _LOST.items()
        if note.startswith(beginning)
    }
    changed = {
        "notes": [note for note in notes if note not in lost],
        "lost": sorted(set(lost.values())),
    }
    return evaluation | changed | {"of_another_order": evaluation.get("lost", {})}


EVALUATION = Stored("the evaluation", 2, {1: _with_losses})
"""Of classes and of families; ``kind`` says which."""
REVIEW = Stored("the review", 1)
ENTRY = Stored("entry.json", 1)
"""Of an entry of the spool."""
MANIFEST = Stored("manifest.json", 2, {1: _with_choice}, unnumbered=1)
"""Of a whole entry that cmtrack 0.1 or 0.2 wrote, which had no ``entry.json``."""
INTENT = Stored("intent.json", 1, unnumbered=1)
"""Where an entry goes that cmtrack 0.1 or 0.2 did not finish."""
BUNDLE = Stored("the bundle", 1)
"""The manifest of a review that is written with everything that it is computed from."""
