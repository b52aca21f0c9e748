"""Segments of the rows: columns of categories, inference over segments, search for the worst.

Here belongs what is computed of a column and of numbers by segment. What an evaluation says of its
segments is in ``cmtrack.evaluation``, and how rows are counted by segment in
``cmtrack.statistics``. Start with ``columns``, which divides the rows; ``inference`` has intervals,
differences and gaps that hold for several segments together, and ``search`` looks for the segments
where a model fails.
"""

from typing import TYPE_CHECKING

from cmtrack._lazy import found_in
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
    simultaneous_level,
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
    # a removed name raises an error that says what to use instead
    __getattr__ = found_in(__name__, {})
