"""The curves of an evaluation on which decisions are made: net benefit, gains."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from cmtrack.metrics.net_benefit import NetBenefit, net_benefit
from cmtrack.metrics.precision_recall import GainsCurve
from cmtrack.metrics.samples import Samples
from cmtrack.statistics.inputs import FloatArray

if TYPE_CHECKING:
    from cmtrack.evaluation.result import Evaluation

_NO_ROWS = "the evaluated rows belong together in groups, and which do is not known without the rows"


def decision_curve(evaluation: Evaluation, thresholds: npt.ArrayLike | None) -> NetBenefit:
    """The net benefit of the positive group's score."""
    table = evaluation._views.scores
    if table is None:
        raise ValueError(f"a net benefit needs probabilities of two groups or two classes, got {evaluation!r}")
    clusters = cluster_sums(evaluation, table)
    reason = _NO_ROWS if clusters is None and evaluation.cluster_errors is not None else ""
    return net_benefit(table, thresholds, evaluation.confidence_level, evaluation.positive, clusters, reason)


def gains(evaluation: Evaluation) -> GainsCurve | None:
    """The gains of the positive group's score."""
    curve = evaluation.precision_recall
    if curve is None:
        return None
    counts = evaluation.binary
    assert counts is not None  # the scores are of two groups
    called = (counts.tp + counts.imp + counts.fp) / sum(counts)
    return GainsCurve(
        curve.thresholds, curve.called, curve.recall, curve.ceiling, curve.prevalence, curve.positive,
        (float(called), evaluation.metrics["binary/recall"]),
    )  # fmt: skip


def cluster_sums(evaluation: Evaluation, samples: Samples) -> Callable[[FloatArray], FloatArray] | None:
    """Sums over rows that belong together of the weighted values that rows have by their cell; None without such rows.

    Parameters
    ----------
    evaluation : Evaluation
    samples : Samples
        Whose cells the values stand in.
    """
    rows = evaluation.rows
    if rows is None or rows.clusters is None or rows.source is None:
        return None
    place = evaluation._influence.locate(samples)[1]
    weights = np.ones(len(place)) if rows.weights is None else rows.weights.astype(np.float64)
    held = weights > 0
    place, weights = place[held], weights[held]
    code = np.unique(rows.clusters[held], return_inverse=True)[1]
    return lambda values: np.bincount(code, values[place] * weights).astype(np.float64)
