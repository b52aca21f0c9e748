"""What the source shows: its three figures, and the examples in its words.

Cells are (predicted, gold), as the source draws them: predictions are its rows.
"""

from __future__ import annotations

from typing import NamedTuple

OOF = "OOF"
Cells = frozenset[tuple[str, str]]


class Example(NamedTuple):
    """One document.

    Attributes
    ----------
    predicted, gold : tuple of str
    cells : frozenset of (predicted, gold)
        As drawn or told; the right panel where there are two.
    everything : frozenset of (predicted, gold), or None
        The left panel: all pairs.
    axis : tuple of str
        The codes along the axes of the figure.
    """

    predicted: tuple[str, ...]
    gold: tuple[str, ...]
    cells: Cells
    everything: Cells | None = None
    axis: tuple[str, ...] = ()


_364 = tuple(f"364.{k:02}" for k in range(6))


def _cells(*pairs: str) -> Cells:
    """Pairs such as ``"364.00 364.01"``, predicted first."""
    return frozenset((predicted, gold) for predicted, gold in (pair.split() for pair in pairs))


FIGURES = {
    "Figure 1": Example(
        ("364.00", "364.02", "364.03", "364.04"),
        ("364.00", "364.01", "364.02"),
        _cells("364.00 364.00", "364.02 364.02", "364.03 364.01", "364.04 364.01"),
        _cells(
            "364.00 364.00",
            "364.00 364.01",
            "364.00 364.02",
            "364.02 364.00",
            "364.02 364.01",
            "364.02 364.02",
            "364.03 364.00",
            "364.03 364.01",
            "364.03 364.02",
            "364.04 364.00",
            "364.04 364.01",
            "364.04 364.02",
        ),
        _364,
    ),
    "Figure 2": Example(
        ("364.00", "364.02", "364.03", "365.02"),
        ("364.00", "364.02", "365.01"),
        _cells(
            "364.00 364.00",
            "364.00 364.02",
            "364.02 364.00",
            "364.02 364.02",
            "364.03 364.00",
            "364.03 364.02",
            "365.02 365.01",
        ),
        _cells(
            "364.00 364.00",
            "364.00 364.02",
            "364.00 365.01",
            "364.02 364.00",
            "364.02 364.02",
            "364.02 365.01",
            "364.03 364.00",
            "364.03 364.02",
            "364.03 365.01",
            "365.02 364.00",
            "365.02 364.02",
            "365.02 365.01",
        ),
        (*_364[:4], "365.01", "365.02"),
    ),
    "Figure 3": Example(
        ("364.00", "364.02"),
        ("364.00", "364.01", "364.02"),
        _cells("364.00 364.00", "364.02 364.02", "OOF 364.01"),
        None,
        (*_364, OOF),
    ),
}

WORDS = {
    "Assumption 2": Example(
        ("A.1", "A.2", "B.1"), ("A.1", "A.3", "B.2"), _cells("A.1 A.1", "A.2 A.3", "B.1 B.2")
    ),
    "Assumption 3": Example(
        ("A.1", "A.2", "B.1"), ("A.1", "A.3"), _cells("A.1 A.1", "A.2 A.3", "B.1 OOF")
    ),
}

CODE_OOF_INDICES = (99, 9000)
"""The default column of "out of family" in the authors' code, at first and later: one number for all families."""
