"""Options of an evaluation of sets of codes."""

from __future__ import annotations

from dataclasses import dataclass

from cmtrack.archive import read_level
from cmtrack.families.tables import check_matching
from cmtrack.metrics.intervals import check_level
from cmtrack.options import Question, entry


@dataclass(frozen=True)
class FamilySpec(Question):
    """Options of an evaluation of sets of codes.

    Attributes
    ----------
    matching : "product", "row", "column" or "balanced"
        The rule by which the matrix of a family pairs predicted codes with actual codes.
    confidence_level : float
    """

    matching: str = entry(
        '"product", "row", "column" or "balanced"',
        default="product",
        check=check_matching,
        read=str,
    )
    confidence_level: float = entry("float", default=0.95, check=check_level, read=read_level)
