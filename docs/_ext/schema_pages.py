"""Tables of the files reference that the code knows: schema numbers, and the keys of a rule."""

from __future__ import annotations

from metric_pages import plain

from cmtrack import schemas
from cmtrack.comparison.rule import RULES

FILES = {
    "EVALUATION": "`cmtrack_evaluation.json`, of classes and of families",
    "MANIFEST": "`manifest.json` of the spool",
    "INTENT": "`intent.json` of the spool",
    "REVIEW": "a review as JSON",
    "BUNDLE": "`manifest.json` of a bundle",
}
"""Files by the name of their schema in :mod:`cmtrack.schemas`."""


def pages() -> dict[str, str]:
    """The table of schemas, and that of a rule's keys."""
    known = {name: value for name, value in vars(schemas).items() if isinstance(value, schemas.Stored)}
    lines = ["| file | schema | files of older schemas |", "|---|---|---|"]
    for name, stored in known.items():
        older = ", ".join(f"{number} is read, and written as {number + 1}" for number in stored.migrations)
        lines.append(f"| {FILES[name]} | {stored.newest} | {older or 'none'} |")
    rules = ["| key | value |", "|---|---|", *(f"| `{key}` | {plain(text)} |" for key, (text, _) in RULES.items())]
    return {"schemas.txt": "\n".join(lines) + "\n", "rule.txt": "\n".join(rules) + "\n"}
