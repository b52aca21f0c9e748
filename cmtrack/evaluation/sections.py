"""Which sections of its metrics an evaluation computes."""

from __future__ import annotations

from collections.abc import Iterable

from cmtrack.metrics.catalog import CATALOG
from cmtrack.metrics.names import near

SECTIONS = tuple(
    dict.fromkeys(metric.section for metric in CATALOG if metric.needs not in ("label sets", "granules", "documents"))
)
"""The parts of names before the first slash, of what an :class:`Evaluation` may hold."""


def check_sections(sections: Iterable[str] | None) -> tuple[str, ...] | None:
    """The sections in the order of the catalog; None for all.

    Raises
    ------
    TypeError
        If they are one text, or no texts.
    ValueError
        If there are none, or one does not exist.
    """
    if sections is None:
        return None
    if isinstance(sections, str):
        raise TypeError(f"sections must be a list of names, got {sections!r}")
    wanted = list(sections)
    if not wanted:
        raise ValueError(f"sections must name at least one of {list(SECTIONS)}, or be None for all, got none")
    for name in wanted:
        if not isinstance(name, str):
            raise TypeError(f"sections must be a list of names, got {name!r:.40}")
        if name not in SECTIONS:
            raise ValueError(
                f"there is no section {name!r:.80}{near(name, SECTIONS)}; the sections are {', '.join(SECTIONS)}"
            )
    return tuple(name for name in SECTIONS if name in wanted)
