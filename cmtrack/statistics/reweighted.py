"""Statistics of the same rows after changing the shares of the actual classes.

The statistics of each actual class are scaled as if its rows had a different weight.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from cmtrack.statistics.actual_class import RankCounts
from cmtrack.statistics.class_scores import ClassScoreCounts
from cmtrack.statistics.collected import Statistics
from cmtrack.statistics.confusion import ConfusionMatrix
from cmtrack.statistics.inputs import FloatArray
from cmtrack.statistics.moments import CrossMoments, ScoreMoments
from cmtrack.statistics.scores import ScoreCounts


def reweighted(statistics: Statistics, factors: FloatArray, sides: FloatArray | None) -> Statistics:
    """Return the statistics with the rows of each actual class weighted by a factor.

    The factors work like sampling weights. Statistics of all classes together (hit probabilities,
    segments, calibration sets) are dropped.

    ``factors``, shape (K,): factor of each actual class.
    ``sides``, shape (2,): the factor of all negatives and of all positives. None if classes of a
        side have different factors. Statistics of the positive group's score are then dropped.
    """
    squares_of_sides = None if sides is None else sides**2
    squared = _scaled(statistics.squares or statistics, factors**2, squares_of_sides)
    return replace(_scaled(statistics, factors, sides), squares=squared)


def _scaled(whole: Statistics, factors: FloatArray, sides: FloatArray | None) -> Statistics:
    column = factors[:, None]
    parts: dict[str, Any] = {}
    if whole.moments is not None:
        parts["moments"] = _scale_moments(whole.moments, factors)
    if whole.cross is not None:
        parts["cross"] = CrossMoments(whole.cross.sums * factors[:, None, None])
    losses = whole.losses
    if losses is not None:
        parts["losses"] = replace(
            losses,
            n=losses.n * factors,
            impossible=losses.impossible * factors,
            m2=losses.m2 * column,
        )
    if whole.ranks is not None:
        table = whole.ranks.table
        actual = table.places // table.shape[1]
        parts["ranks"] = RankCounts(replace(table, sums=table.sums * factors[actual]))
    by_class = whole.class_scores
    if by_class is not None and by_class.by_actual_class:
        tables = tuple(_scale_channels(table, factors) for table in by_class.tables)
        parts["class_scores"] = ClassScoreCounts(tables)
    decisions = whole.decisions
    if decisions is not None:
        parts["decisions"] = replace(
            decisions, counts=decisions.counts * column, m2=decisions.m2 * column
        )
    if sides is not None:
        parts |= _scaled_by_side(whole, sides)
    return Statistics(
        ConfusionMatrix(whole.matrix.counts * column, whole.matrix.labels),
        whole.digest,
        whole.row_ids,
        scaled_rows=whole.scaled_rows,
        **parts,
    )


def _scaled_by_side(whole: Statistics, sides: FloatArray) -> dict[str, Any]:
    """Return the scaled statistics of the positive group's score, by name in ``Statistics``."""
    parts: dict[str, Any] = {}
    moments = whole.score_moments
    if moments is not None:
        mean = moments.mean[:, 0]
        # On each side, the sum of s (1 - s) is n mean (1 - mean) - m2.
        labels_variance = moments.n * mean * (1 - mean) - moments.m2[:, 0]
        parts["score_moments"] = _scale_moments(moments, sides)
        parts["labels_variance"] = float(sides @ labels_variance)
    if whole.scores is not None:
        # The channels are accepted and rejected positives, then both kinds of negatives.
        parts["scores"] = _scale_channels(whole.scores, np.repeat(sides[::-1], 2))
    return parts


def _scale_moments(moments: ScoreMoments, factors: FloatArray) -> ScoreMoments:
    rows = factors[moments.classes, None]
    powers = {name: getattr(moments, name) * rows for name in ("m2", "m3", "m4")}
    return replace(moments, n=moments.n * factors, **powers)


def _scale_channels(scores: ScoreCounts, factors: FloatArray) -> ScoreCounts:
    # ``sums`` are over all channels together, so they cannot be scaled by channel.
    return replace(scores, counts=scores.counts * factors[:, None], sums=None)
