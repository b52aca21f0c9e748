"""Influence values: what one row adds to the error of a metric.

For a metric g, ``g_estimated - g ~ mean of psi_i``; so its standard error is ``sqrt(sum (w_i psi_i)^2) / sum w_i``,
that of a difference of two models on the same rows comes from ``psi_A - psi_B``, and rows that belong together
(several of one person) are summed before squaring. Counts metrics have one value per cell of the table.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from cmtrack.grouping import ComposedStep, Grouping
from cmtrack.metrics.catalog import lookup
from cmtrack.metrics.cells import Cells, SixCells, Table
from cmtrack.metrics.fisher import fisher_influence
from cmtrack.metrics.metric import Metric
from cmtrack.metrics.multiclass import argument
from cmtrack.metrics.names import encode_label
from cmtrack.metrics.score_influence import ScoreInfluence
from cmtrack.metrics.spcc import least_pair, spcc_ovo
from cmtrack.statistics import ScoreMoments
from cmtrack.statistics.collected import accepted_within, group_scores, is_positive
from cmtrack.statistics.cross_moments import features_of
from cmtrack.statistics.inputs import BoolArray, FloatArray, IntArray
from cmtrack.statistics.predictions import Predictions

_OF_SCORE = ("actual", "expected", "expected_count", "bias", "expected_count_sd_labels_only")


class RowCells:
    """The cell of each row in a table: the full matrix, or a reduced one."""

    def __init__(
        self,
        actual: IntArray,
        predicted: IntArray,
        hit: BoolArray,
        size: int,
        weights: FloatArray | IntArray | None,
        over: BoolArray | None = None,
    ) -> None:
        code = (actual * size + predicted) * 2 + hit
        used, self._cell = np.unique(code, return_inverse=True)
        pair = used // 2
        weight = np.bincount(self._cell, weights, len(used)).astype(np.float64)
        self.table = Table(Cells(pair // size, pair % size, used % 2 == 1, weight, weight, size), over)

    def of(self, metric: Metric) -> FloatArray | None:
        """psi of a metric of the whole table, shape (n,)."""
        psi = metric.by_cell(argument(metric, self.table), self.table.cells)
        return None if psi is None else self._rows(psi)

    def of_class(self, metric: Metric, k: int) -> FloatArray | None:
        """psi of a metric of one class or group, shape (n,); None for what has no error."""
        of = getattr(metric.value, "influence_of", None)
        return None if of is None else self._rows(of(self.table, k))

    def _rows(self, values: FloatArray) -> FloatArray:
        rows: FloatArray = values[self._cell]
        return rows


class Influence:
    """Influence values of every metric of an evaluation that has rows.

    Parameters
    ----------
    rows : Predictions
    grouping : Grouping, optional
    step : ComposedStep, optional
        The scored two-group step.
    over : ndarray of shape (K,), bool, optional
        The classes that averages are taken over; by default all.
    """

    def __init__(
        self,
        rows: Predictions,
        grouping: Grouping | None,
        step: ComposedStep | None,
        over: BoolArray | None = None,
    ) -> None:
        self._rows, self._grouping, self._step, self._over = rows, grouping, step, over

    def __call__(self, metric: Metric | str) -> FloatArray | None:
        """psi of a metric, shape (n,); None where it has no influence function.

        Parameters
        ----------
        metric : Metric or str
            A metric of one's own, or a full name.
        """
        if isinstance(metric, Metric):
            entry, parts = metric, metric.name.split("/")
        else:
            entry, parts = lookup(metric), metric.split("/")
        if entry.of in ("table", "whole table", "spans", "counts"):
            return (self._reduced[parts[1]][0] if parts[0] == "reduced" else self._table).of(entry)
        if entry.of == "classes":
            table, places = self._reduced[parts[1]] if parts[0] == "reduced" else (self._table, self._class_index)
            return table.of_class(entry, places[parts[-2]])
        if entry.of == "binary":
            return self._of_six(entry)
        if self._rows.source is None:  # the rows were kept without probabilities
            return None
        handlers = {"binary": self._of_area, "spcc": self._of_scores, "prevalence": self._of_prevalence}
        return handlers[parts[0]](parts[1:]) if parts[0] in handlers else None

    @cached_property
    def _table(self) -> RowCells:
        r = self._rows
        return RowCells(r.actual, r.predicted, r.actual == r.predicted, len(r.labels), r.weights, self._over)

    @cached_property
    def _class_index(self) -> dict[str, int]:
        return {encode_label(label): k for k, label in enumerate(self._rows.labels)}

    @cached_property
    def _reduced(self) -> dict[str, tuple[RowCells, dict[str, int]]]:
        steps = () if self._grouping is None else self._grouping.compose(self._rows.labels)
        return {
            encode_label(step.name): (
                self._reduce(step),
                {encode_label(group): g for g, group in enumerate(step.labels)},
            )
            for step in steps
        }

    def _reduce(self, step: ComposedStep) -> RowCells:
        r = self._rows
        actual, predicted = step.group_of_class[r.actual], step.group_of_class[r.predicted]
        hit = (actual == predicted) & step.accept[r.actual, r.predicted]
        over = groups_over(step, self._over)
        return RowCells(actual, predicted, hit, len(step.labels), r.weights, over)

    def _of_area(self, parts: list[str]) -> FloatArray | None:
        return None if self._scores is None else self._scores.roc(parts[0])

    def _of_six(self, metric: Metric) -> FloatArray | None:
        """psi of a metric of the six counts of 2x2+IM."""
        index, cells = self._six_cells
        psi = metric.by_cell(cells.argument(cells.weight), cells)
        return None if psi is None else psi[index]

    @cached_property
    def _six_cells(self) -> tuple[IntArray, SixCells]:
        assert self._step is not None  # binary metrics exist only where two groups do
        r = self._rows
        positive, called = is_positive(r.actual, self._step), is_positive(r.predicted, self._step)
        accepted = self._step.accept[r.actual, r.predicted]
        # tp fn imp fp tn imn
        index = np.where(
            positive == 1,
            np.where(called == 0, 1, np.where(accepted, 0, 2)),
            np.where(called == 1, 3, np.where(accepted, 4, 5)),
        )
        weight = np.bincount(index, r.weights, 6).astype(np.float64)
        return index, SixCells(weight, weight)

    @cached_property
    def _scores(self) -> ScoreInfluence | None:
        r, step = self._rows, self._step
        if r.probabilities is None or step is None:
            return None
        positive = is_positive(r.actual, step)
        accepted = accepted_within(r.actual, r.probabilities, step)
        return ScoreInfluence(positive, group_scores(r.probabilities, step), r.weights, accepted)

    def _one_vs_rest(self, k: int) -> ScoreInfluence:
        r = self._rows
        assert r.probabilities is not None  # the section exists only with probabilities
        return ScoreInfluence((r.actual == k).astype(np.int64), r.probabilities[:, k], r.weights)

    def _of_scores(self, parts: list[str]) -> FloatArray | None:
        if parts[0] == "ovr":
            return self._one_vs_rest(self._class_index[parts[1]]).of("spcc")
        if parts[0].startswith(("ovr_", "ovo_")):
            return self._combined(*parts[0].split("_"))
        if self._scores is None:
            return None
        return self._scores.of("spcc" if parts[0] == "binary" else parts[0])

    def _combined(self, kind: str, how: str) -> FloatArray | None:
        """Fisher mean or minimum of the one-vs-rest or one-vs-one correlations."""
        r = self._rows
        assert r.probabilities is not None  # the section exists only with probabilities
        if how == "fisher":
            psi = fisher_influence(self._moments, kind)[r.actual]
            return np.asarray(np.einsum("ij,ij->i", psi, features_of(r.probabilities)))
        if kind == "ovr":
            values = [self._one_vs_rest(k).correlation for k in range(len(r.labels))]
            return None if np.isnan(values).all() else self._one_vs_rest(int(np.nanargmin(values))).of("spcc")
        least = least_pair(spcc_ovo(self._moments))
        if least is None:
            return None
        c, d = least
        inside = (r.actual == c) | (r.actual == d)
        weights = None if r.weights is None else r.weights[inside]
        pair = ScoreInfluence((r.actual[inside] == c).astype(np.int64), r.probabilities[inside, c], weights)
        everyone = float(len(r)) if r.weights is None else float(r.weights.sum())
        spread = np.zeros(len(r))
        spread[inside] = pair.of("spcc") * (everyone / pair.total)
        return spread

    @cached_property
    def _moments(self) -> ScoreMoments:
        r = self._rows
        assert r.probabilities is not None  # the section exists only with probabilities
        return ScoreMoments.from_scores(r.actual, r.probabilities, len(r.labels), r.weights)

    def _of_prevalence(self, parts: list[str]) -> FloatArray | None:
        if len(parts) == 2:
            known = parts[1] in ("actual", "expected", "bias")
            return self._one_vs_rest(self._class_index[parts[0]]).of(parts[1]) if known else None
        if parts[0] == "classify_and_count":
            index, _ = self._six_cells
            called = np.isin(index, (0, 2, 3)).astype(np.float64)
            return called - float(np.average(called, weights=self._rows.weights))
        if self._scores is None or parts[0] not in _OF_SCORE:
            return None
        return self._scores.of(parts[0])


def groups_over(step: ComposedStep, over: BoolArray | None) -> BoolArray | None:
    """The groups that averages are taken over: those that hold a class that averages are taken over."""
    if over is None:
        return None
    held: BoolArray = np.bincount(step.group_of_class[over], minlength=len(step.labels)) > 0
    return None if held.all() else held


def standard_error(
    psi: FloatArray, weights: FloatArray | IntArray | None = None, clusters: IntArray | None = None
) -> float:
    """Standard error from influence values.

    Parameters
    ----------
    psi : ndarray of shape (n,)
    weights : ndarray of shape (n,), optional
        Whole numbers mean repeated rows, fractions the sandwich form.
    clusters : ndarray of shape (n,), int64, optional
        Codes of rows that belong together; they are summed before squaring.
    """
    return math.sqrt(float(covariance(psi[:, None], weights, clusters)[0, 0]))


def covariance(
    psi: FloatArray, weights: FloatArray | IntArray | None = None, clusters: IntArray | None = None
) -> FloatArray:
    """Covariance of the errors of R metrics or models on the same rows, shape (R, R).

    Parameters
    ----------
    psi : ndarray of shape (n, R)
        Influence values, a column each.
    weights, clusters : ndarray of shape (n,), optional
        As in :func:`standard_error`.
    """
    total = float(len(psi)) if weights is None else float(weights.sum())
    centred = psi - (psi.mean(axis=0) if weights is None else weights @ psi / total)
    if clusters is not None:
        weighted = centred if weights is None else centred * weights[:, None]
        sums = np.column_stack([np.bincount(clusters, column) for column in weighted.T])
        return np.asarray(sums.T @ sums) / total**2
    if weights is None:
        return np.asarray(centred.T @ centred) / total**2
    squares = weights if weights.dtype.kind == "i" else weights**2
    found: FloatArray = (centred * squares[:, None]).T @ centred / total**2
    return found
