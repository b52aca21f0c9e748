"""Everything that one evaluation keeps of the data, collected in one pass and merged field by field."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from cmtrack.grouping import ComposedStep, Label
from cmtrack.statistics.confusion import ConfusionMatrix
from cmtrack.statistics.counting import count_pairs
from cmtrack.statistics.cross_moments import MAX_CLASSES, CrossMoments
from cmtrack.statistics.digest import LabelDigest
from cmtrack.statistics.inputs import BoolArray, FloatArray, IntArray
from cmtrack.statistics.moments import ScoreMoments
from cmtrack.statistics.predictions import Predictions
from cmtrack.statistics.scores import ScoreCounts
from cmtrack.statistics.top_scores import TopScoreCounts

_SHARED = ("labelled", "target", "labelled_tops", "target_tops")


@dataclass(frozen=True)
class Statistics:
    """The mergeable statistics of one evaluation; what does not apply is None.

    Attributes
    ----------
    matrix : ConfusionMatrix
    digest : LabelDigest
        Of the evaluated labels.
    row_ids : LabelDigest
        Of the ids of the evaluated rows, where they were given.
    moments : ScoreMoments of shape (K, K)
        Of each class's probability in each actual class.
    scores : ScoreCounts with four channels
        Accepted and rejected positives, accepted and rejected negatives, by the positive group's score.
    cross : CrossMoments
        Joint moments of all probabilities, for 3 to 30 classes.
    score_moments : ScoreMoments of shape (2, 1)
        Of the positive group's score: negatives, positives.
    labels_variance : float
        Sum of s (1-s) over the positive group's scores.
    tops : TopScoreCounts
        By actual class, where there are more than two classes and no two groups.
    labelled, target : ScoreCounts
        Calibration scores (negatives, positives) and unlabelled target scores, where they were given.
    labelled_tops, target_tops : TopScoreCounts
        The same for more than two classes.
    squares : Statistics
        The same sums with squared sample weights, where weights are fractions.
    """

    matrix: ConfusionMatrix
    digest: LabelDigest
    row_ids: LabelDigest | None = None
    moments: ScoreMoments | None = None
    scores: ScoreCounts | None = None
    cross: CrossMoments | None = None
    score_moments: ScoreMoments | None = None
    labels_variance: float | None = None
    tops: TopScoreCounts | None = None
    labelled: ScoreCounts | None = None
    target: ScoreCounts | None = None
    labelled_tops: TopScoreCounts | None = None
    target_tops: TopScoreCounts | None = None
    squares: Statistics | None = None

    def __add__(self, other: Statistics) -> Statistics:
        """Merge disjoint samples.

        A calibration or target set that is the same on both sides is taken to be one set, used twice; sets that
        differ are put together.

        Raises
        ------
        ValueError
            If one side lacks what the other has.
        """
        merged: dict[str, Any] = {}
        for item in fields(self):
            ours, theirs = getattr(self, item.name), getattr(other, item.name)
            if (ours is None) != (theirs is None):
                if item.name != "squares":
                    raise ValueError(f"evaluations must hold the same statistics, one has no {item.name!r}")
                ours, theirs = self.squares or self, other.squares or other  # whole weights are their squares
                alone: dict[str, Any] = dict.fromkeys(
                    ("squares", *_SHARED)
                )  # calibration and target sets carry no weights
                ours, theirs = replace(ours, **alone), replace(theirs, **alone)
            if item.name in _SHARED and ours == theirs:
                merged[item.name] = ours
            else:
                merged[item.name] = None if ours is None else ours + theirs
        return Statistics(**merged)


def collect(
    actual: IntArray,
    predicted: IntArray,
    labels: tuple[Label, ...],
    *,
    probabilities: FloatArray | None = None,
    step: ComposedStep | None = None,
    weights: FloatArray | IntArray | None = None,
    keep_squares: bool = True,
) -> Statistics:
    """Collect the statistics of checked arrays.

    Parameters
    ----------
    actual, predicted : ndarray of shape (n,)
        Class codes.
    probabilities : ndarray of shape (n, K), optional
    step : ComposedStep, optional
        The two groups whose positive one is scored.
    weights : ndarray of shape (n,), optional
    keep_squares : bool, default True
        Whether fractions as weights get a second set of sums with squared weights.
    """
    size = len(labels)
    kept: dict[str, Any] = {
        "matrix": ConfusionMatrix(count_pairs(actual, predicted, size, weights), labels),
        "digest": LabelDigest.from_codes(actual, labels),
    }
    if probabilities is not None:
        kept["moments"] = ScoreMoments.from_scores(actual, probabilities, size, weights)
        if 2 < size <= MAX_CLASSES:
            kept["cross"] = CrossMoments.from_scores(actual, probabilities, size, weights)
        if step is not None:
            kept |= _two_groups(actual, probabilities, step, weights)
        else:
            kept["tops"] = TopScoreCounts.from_scores(actual, probabilities, size, weights)
    if keep_squares and weights is not None and weights.dtype.kind == "f":
        kept["squares"] = collect(
            actual,
            predicted,
            labels,
            probabilities=probabilities,
            step=step,
            weights=weights**2,
            keep_squares=False,
        )
    return Statistics(**kept)


def collect_rows(rows: Predictions, step: ComposedStep | None) -> Statistics:
    """Collect the statistics of the rows of an evaluation."""
    return collect(
        rows.actual, rows.predicted, rows.labels, probabilities=rows.probabilities, step=step, weights=rows.weights
    )


def group_scores(probabilities: FloatArray, step: ComposedStep) -> FloatArray:
    """The positive group's score: the sum of its classes' probabilities, shape (n,).

    Sums are rounded to 12 decimals, since the order of summation would break exact ties, and cut at 1, since
    single-precision rows may sum to a little more.
    """
    members = _positive_classes(step)
    if len(members) == 1:
        return probabilities[:, members[0]]
    score: FloatArray = np.minimum(np.round(probabilities[:, members].sum(axis=1), 12), 1.0)
    return score


def is_positive(codes: IntArray, step: ComposedStep) -> IntArray:
    """1 where the class belongs to the positive group, else 0."""
    positive: IntArray = (step.group_of_class[codes] == step.positive).astype(np.int64)
    return positive


def accepted_within(actual: IntArray, probabilities: FloatArray, step: ComposedStep) -> BoolArray:
    """Whether the most probable class of a row's own group is accepted for it, shape (n,); the first one on ties."""
    positive = is_positive(actual, step)
    members = _positive_classes(step)
    others = np.setdiff1d(np.arange(len(step.group_of_class)), members)
    best = np.empty(len(actual), dtype=np.int64)
    for flag, own in ((1, members), (0, others)):
        rows = positive == flag
        if not len(own):
            continue  # a group without classes has no rows
        best[rows] = own[probabilities[np.ix_(rows, own)].argmax(axis=1)] if len(own) > 1 else own[0]
    accepted: BoolArray = step.accept[actual, best]
    return accepted


def _two_groups(
    actual: IntArray, probabilities: FloatArray, step: ComposedStep, weights: FloatArray | IntArray | None
) -> dict[str, Any]:
    score = group_scores(probabilities, step)
    positive = is_positive(actual, step)
    channel = np.where(positive == 1, 0, 2) + ~accepted_within(actual, probabilities, step)
    spread = score * (1 - score)
    return {
        "scores": ScoreCounts.from_scores(score, channel, 4, weights),
        "score_moments": ScoreMoments.from_scores(positive, score[:, None], 2, weights),
        "labels_variance": float((spread if weights is None else spread * weights).sum()),
    }


def _positive_classes(step: ComposedStep) -> IntArray:
    return np.flatnonzero(step.group_of_class == step.positive)
