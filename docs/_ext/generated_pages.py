"""Pages that are written from the code at each build, into ``docs/reference/generated``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import benchmark_pages
import figure_pages
import metric_pages
import schema_pages


def write(app: Any, config: Any) -> None:
    """Write each page that is not as it should be; others keep their time, by which Sphinx knows what to read anew."""
    folder = Path(app.srcdir) / "reference" / "generated"
    pages = [source.pages() for source in (metric_pages, figure_pages, schema_pages, benchmark_pages)]
    for place, text in (item for written in pages for item in written.items()):
        file = folder / place
        if not file.is_file() or file.read_text(encoding="utf-8") != text:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    """Write the pages before Sphinx looks for its files."""
    app.connect("config-inited", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
