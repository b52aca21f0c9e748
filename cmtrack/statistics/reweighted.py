"""Statistics of the same rows where the actual classes have other shares: each class's part is scaled."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from cmtrack.statistics.class_scores import ClassScoreCounts
from cmtrack.statistics.collected import Statistics
from cmtrack.statistics.confusion import ConfusionMatrix
from cmtrack.statistics.inputs import FloatArray
from cmtrack.statistics.moments import CrossMoments, ScoreMoments
from cmtrack.statistics.scores import ScoreCounts


def reweighted(statistics: Statistics, factors: FloatArray, sides: FloatArray | None) -> Statistics:
    """The statistics with the rows of each actual class weighted by a factor, as sampling weights are.

    What is kept of all classes together (hit probabilities, segments, sets for calibration) is left out.

    ``factors``, shape (K,).
    ``sides``, shape (2,): the factor of all negatives and of all positives; None, where classes of a side have several:
        what is kept of the positive group's score by side is then left out.
    """
    squared = _scaled(
        statistics.squares or statistics, factors**2, None if sides is None else sides**2
    )
    return replace(_scaled(statistics, factors, sides), squares=replace(squared, squares=None))


def _scaled(whole: Statistics, by: FloatArray, sides: FloatArray | None) -> Statistics:
    losses, ranks, scores, two = whole.losses, whole.ranks, whole.class_scores, whole.score_moments
    decisions = whole.decisions
    column = by[:, None]
    if losses is not None:
        n, impossible = losses.n * by, losses.impossible * by
        losses = replace(losses, n=n, impossible=impossible, m2=losses.m2 * column)
    if ranks is not None:
        row = ranks.table.places // ranks.table.shape[1]
        ranks = replace(ranks, table=replace(ranks.table, sums=ranks.table.sums * by[row]))
    if scores is not None:
        tables = (
            tuple(_channels(table, by) for table in scores.tables)
            if scores.by_actual_class
            else None
        )
        scores = None if tables is None else ClassScoreCounts(tables)
    if decisions is not None:
        decisions = replace(decisions, counts=decisions.counts * column, m2=decisions.m2 * column)
    by_side: dict[str, Any] = {}
    if sides is not None and two is not None:
        spread = two.n * two.mean[:, 0] * (1 - two.mean[:, 0]) - two.m2[:, 0]
        by_side = {"score_moments": _moments(two, sides), "labels_variance": float(sides @ spread)}
    if sides is not None and whole.scores is not None:
        by_side["scores"] = _channels(whole.scores, np.repeat(sides[::-1], 2))
    return Statistics(
        ConfusionMatrix(whole.matrix.counts * column, whole.matrix.labels),
        whole.digest,
        whole.row_ids,
        scaled_rows=whole.scaled_rows,
        moments=None if whole.moments is None else _moments(whole.moments, by),
        cross=None if whole.cross is None else CrossMoments(whole.cross.sums * by[:, None, None]),
        losses=losses,
        ranks=ranks,
        class_scores=scores,
        decisions=decisions,
        **by_side,
    )


def _moments(moments: ScoreMoments, by: FloatArray) -> ScoreMoments:
    rows = by[moments.classes, None]
    powers = {name: getattr(moments, name) * rows for name in ("m2", "m3", "m4")}
    return replace(moments, n=moments.n * by, **powers)


def _channels(scores: ScoreCounts, by: FloatArray) -> ScoreCounts:
    return replace(scores, counts=scores.counts * by[:, None], sums=None)
