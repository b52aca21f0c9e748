"""A page for each section of ``benchmarks/README.md``, which stays the one place of the measured figures."""

from __future__ import annotations

import re
from pathlib import Path

from metric_pages import slug

README = Path(__file__).parents[2] / "benchmarks" / "README.md"


def sections() -> dict[str, str]:
    """The text of each section by its heading, with the headings inside it one level higher."""
    parts = re.split(r"^## (.+)\n", README.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    bodies = [re.sub(r"^##(#+ )", r"#\1", body, flags=re.MULTILINE) for body in parts[1::2]]
    return dict(zip(parts[::2], bodies, strict=True))


def pages() -> dict[str, str]:
    """The pages, and the list of them that ``benchmarks.md`` includes."""
    places = {title: f"benchmarks/{slug(title)}" for title in sections()}
    lines = ["```{toctree}", ":hidden:", "", *(f"reference/generated/{place}" for place in places.values()), "```"]
    written = {f"{places[title]}.md": f"# {title}\n{body}" for title, body in sections().items()}
    return written | {"benchmarks.txt": "\n".join(lines) + "\n"}
