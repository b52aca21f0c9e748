"""Segments of the rows: columns of categories, inference over several segments, search for the worst."""

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
    Shrinkage,
    differences,
    disparity,
    order_of_segments,
    qualitative_interaction,
    shrink,
    simultaneous_level,
)
from cmtrack.segments.search import (
    SearchedSegment,
    SegmentSearch,
    differing_segments,
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
    "Shrinkage",
    "cut_at_quantiles",
    "differences",
    "differing_segments",
    "disparity",
    "order_of_segments",
    "qualitative_interaction",
    "search_columns",
    "segment_columns",
    "shrink",
    "simultaneous_level",
    "worst_segments",
]
