"""The plan: from a surveyed table to the statistics of an evaluation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import narwhals as nw
import numpy as np

from cmtrack.grouping import ComposedStep, Label
from cmtrack.statistics.collected import Statistics
from cmtrack.statistics.confusion import ConfusionMatrix
from cmtrack.statistics.counting import Counts
from cmtrack.statistics.digest import LabelDigest
from cmtrack.statistics.inputs import IntArray
from cmtrack.statistics.scores import ScoreCounts
from cmtrack.statistics.tables.expressions import with_highest
from cmtrack.statistics.tables.moments import collect_moments
from cmtrack.statistics.tables.scores import SCORE, count_scores, count_sides, count_tops, count_two_groups, with_score
from cmtrack.statistics.tables.survey import Survey
from cmtrack.statistics.tables.tallies import ACTUAL, Rows, Run, as_counts
from cmtrack.statistics.top_scores import TopScoreCounts

Pairs = tuple[list[Any], list[Any], IntArray, dict[str, list[Any]]]


def collect_table(
    survey: Survey,
    labels: tuple[Label, ...],
    order: list[int] | None,
    step: ComposedStep | None,
    pairs: Pairs | None,
    run: Run,
) -> Statistics:
    """Collect the statistics of a surveyed table.

    Parameters
    ----------
    survey : Survey
    labels : tuple of length K
    order : list of int, optional
        The place of each class's probability among the given columns; two classes with one column have -1 for the
        class whose probability is one less the other's. None without probabilities.
    step : ComposedStep, optional
        The two groups whose positive one is scored.
    pairs : tuple, optional
        Pairs of labels, where predicted labels were given (see ``survey_pairs``).
    run : callable
    """
    rows = Rows(survey.frame, labels, survey.n_rows, survey.weights, run)
    tops: list[TopScoreCounts] | None = None
    if order is not None:
        rows = replace(rows, frame=_with_probabilities(survey, order))
        if step is None:
            tops = count_tops(rows)
    if pairs is not None:
        tables = _given_pairs(rows, pairs)
    elif tops is not None:
        tables = [top.counts.sum(axis=2) for top in tops]
    else:
        tables = _most_probable_pairs(rows)
    digest, ids = _digests(survey, rows)
    kept: list[dict[str, Any]] = [{"matrix": ConfusionMatrix(table, labels), "digest": digest} for table in tables]
    if order is not None:
        means = _means(survey, rows, order)
        score = None
        if step is not None:
            frame, score = with_score(rows, step)
            rows = replace(rows, frame=frame)
            if score == SCORE:
                own = means[:, step.in_positive].sum(axis=1, keepdims=True)
                means = np.hstack((means, np.minimum(own, 1.0)))
        counts = [table.sum(axis=1) for table in tables]
        for out, sums in zip(kept, collect_moments(rows, means, counts, step, score), strict=True):
            out |= sums
        if step is not None and score is not None:
            for out, scores in zip(kept, count_two_groups(rows, step, score), strict=True):
                out["scores"] = scores
        for out, top in zip(kept, tops or (), strict=False):
            out["tops"] = top
    if len(kept) > 1:
        kept[0]["squares"] = Statistics(**kept[1])
    return Statistics(**kept[0], row_ids=ids, scaled_rows=survey.scaled_rows or None)


def labelled_counts(
    survey: Survey, labels: tuple[Label, ...], order: list[int], step: ComposedStep | None, run: Run
) -> ScoreCounts | TopScoreCounts:
    """Counts of a calibration table: negatives and positives by score, or the most probable classes."""
    rows = Rows(_with_probabilities(survey, order), labels, survey.n_rows, (), run)
    if step is None:
        return count_tops(rows)[0]
    frame, score = with_score(rows, step)
    return count_sides(replace(rows, frame=frame), step, score)[0]


def target_counts(
    survey: Survey, labels: tuple[Label, ...], order: list[int], step: ComposedStep | None, run: Run
) -> ScoreCounts | TopScoreCounts:
    """Counts of a target table, which has no labels."""
    rows = Rows(_with_probabilities(survey, order), labels, survey.n_rows, (), run)
    if step is None:
        return count_tops(rows, by_actual=False)[0]
    frame, score = with_score(rows, step)
    return count_scores(rows, frame.with_columns(channel=nw.lit(0)), 1, score)[0]


def _with_probabilities(survey: Survey, order: list[int]) -> nw.LazyFrame[Any]:
    given = [nw.col(c).clip(0.0, 1.0) if survey.beyond else nw.col(c) for c in survey.columns.given]
    return survey.frame.with_columns(**{f"p{k}": given[c] if c >= 0 else 1 - given[0] for k, c in enumerate(order)})


def _means(survey: Survey, rows: Rows, order: list[int]) -> Any:
    """The means (K, K) of each probability in each class, but for rounding."""
    means = np.zeros((len(rows.labels), len(order)))
    places = rows.place(survey.actual)
    for k, c in enumerate(order):
        means[places, k] = survey.means[:, c] if c >= 0 else 1 - survey.means[:, 0]
    return means


def _digests(survey: Survey, rows: Rows) -> tuple[LabelDigest, LabelDigest | None]:
    places = rows.place(survey.actual)
    n = np.zeros(len(rows.labels), dtype=np.int64)
    n[places] = survey.rows
    if survey.powers is None:
        return LabelDigest.unordered(n, rows.labels), None
    powers = np.zeros((len(rows.labels), survey.powers.shape[1]), dtype=np.int64)
    powers[places] = survey.powers
    return LabelDigest.unordered(n, rows.labels), LabelDigest.unordered(n, rows.labels, powers)


def _given_pairs(rows: Rows, pairs: Pairs) -> list[Counts]:
    actual, predicted, n, sums = pairs
    counts = [as_counts(sums[f"sum_{weight}"], len(rows.weights) < 2) for weight in rows.weights] or [n]
    return [_table(rows, rows.place(actual), rows.place(predicted), count) for count in counts]


def _most_probable_pairs(rows: Rows) -> list[Counts]:
    names = rows.probabilities
    frame = with_highest(rows.frame, names, range(len(names)), "top", "best")
    groups, counts = rows.tally("most probable classes", frame, [ACTUAL, "best"])
    best = np.array(groups["best"]).astype(np.int64)
    return [_table(rows, rows.place(groups[ACTUAL]), best, count) for count in counts]


def _table(rows: Rows, actual: IntArray, predicted: IntArray, counts: Counts) -> Counts:
    table = np.zeros((len(rows.labels), len(rows.labels)), dtype=counts.dtype)
    np.add.at(table, (actual, predicted), counts)
    return table
