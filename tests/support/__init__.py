"""Tools that tests share: problems, tables of every engine, components, clusters, faulty networks, scripts."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
"""The checkout."""
TESTS = ROOT / "tests"


def public_names() -> set[str]:
    """Return the full names in the reference of the Python interface."""
    text = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
    return set(re.findall(r"^   (cmtrack\w*\.[\w.]+)$", text, re.MULTILINE))
