"""Segments of rows: definition by columns, statistical inference, and search for bad segments.

Start with ``columns``, which divides the rows into segments. ``inference`` computes intervals,
differences and gaps that hold simultaneously for several segments. ``search`` looks for the
segments in which a model performs worst. ``cmtrack.statistics`` counts the rows of each segment,
and ``cmtrack.evaluation`` computes metrics by segment from these counts.
"""

from typing import TYPE_CHECKING

from cmtrack._lazy import found_in
from cmtrack.metrics.intervals import simultaneous_level
from cmtrack.segments.columns import (
    SegmentColumn,
    cut_at_quantiles,
    search_columns,
    segment_columns,
)
from cmtrack.segments.inference import (
    Differences,
    Disparity,
    Estimates,
    Interaction,
    differences,
    disparity,
    order_of_segments,
    qualitative_interaction,
)
from cmtrack.segments.search import (
    SearchedSegment,
    SegmentSearch,
    worst_segments,
)

__all__ = [
    "Differences",
    "Disparity",
    "Estimates",
    "Interaction",
    "SearchedSegment",
    "SegmentColumn",
    "SegmentSearch",
    "cut_at_quantiles",
    "differences",
    "disparity",
    "order_of_segments",
    "qualitative_interaction",
    "search_columns",
    "segment_columns",
    "simultaneous_level",
    "worst_segments",
]

if not TYPE_CHECKING:  # a type checker would otherwise accept every name
    # a removed name raises an error that names its replacement
    __getattr__ = found_in(__name__, {})
