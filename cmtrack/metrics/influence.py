"""Influence values, which measure how much each row contributes to the error of a metric.

For a metric g, ``g_estimated - g`` is approximately the mean of the influence values ``psi_i``. So
the standard error of the metric is ``sqrt(sum (w_i psi_i)^2) / sum w_i``. For a difference of two
runs on the same rows, the formula uses ``psi_A - psi_B``.
:class:`~cmtrack.statistics.design.Design` computes the standard errors. If a metric is computed
from counts, all rows in a cell of the table have the same influence value.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cmtrack.grouping import ComposedStep
from cmtrack.metrics.cells import SixCells
from cmtrack.metrics.class_curves import AVERAGES, AreaAverage, ClassCurves
from cmtrack.metrics.metric import WITHOUT_ERROR, Metric
from cmtrack.metrics.samples import Samples
from cmtrack.metrics.views import EvaluationViews
from cmtrack.statistics.collected import group_scores, is_positive
from cmtrack.statistics.inputs import BoolArray, FloatArray, IntArray
from cmtrack.statistics.predictions import Predictions


class Influence:
    """Influence values for every metric of an evaluation that contains rows."""

    def __init__(self, rows: Predictions, views: EvaluationViews) -> None:
        self.rows = rows
        self.views = views
        self._located: dict[int, tuple[Samples, IntArray]] = {}

    def __call__(self, metric: Metric, parts: Mapping[str, str]) -> FloatArray | None:
        """Return the influence of each row on a metric, shape (n,), or None if it is unknown.

        ``parts``: the encoded step, label or group that is part of the metric's name.
        """
        if metric.interval in WITHOUT_ERROR:
            return None  # The metric has no standard error, or its function provides an interval.
        if metric.needs == "probabilities" and self.rows.source is None:
            return None  # The rows were stored without probabilities.
        step = parts.get("step", "")
        samples = self.views.of(metric, step)
        if samples is None:
            return None
        names = self.views.names(metric, step)
        k = None if names is None else number_of(names, parts)
        return samples.by_row(metric, self, step, k)

    def answers(self, metric: Metric, parts: Mapping[str, str]) -> npt.NDArray[Any]:
        """Return a code for the part of each row's prediction that a metric uses, shape (n,).

        If two evaluations of the same rows have equal codes for a row, the metric does not
        distinguish their predictions for the row. Only rows with different codes contribute to a
        difference between the evaluations.
        """
        step = parts.get("step", "")
        if metric.function.of_labels:
            return np.zeros(len(self.rows), dtype=np.int64)
        if metric.needs == "probabilities" or metric.of == "decisions":
            # A random projection turns the probabilities of a row into one number. Different
            # probabilities result in different numbers.
            factors = np.random.default_rng(0).random(len(self.rows.labels))
            return (self.probabilities * factors).sum(axis=1)
        if metric.of == "binary":
            six = self.views.seen(SixCells)
            if six is not None:
                return self.locate(six)[1]
        _, predicted, hit = self.answered(step)
        names = self.views.names(metric, step)
        if names is not None:
            # The metric of one class depends on whether this class is predicted, and whether the
            # prediction is a hit.
            predicted = (predicted == number_of(names, parts)).astype(np.int64)
            hit = hit & (predicted == 1)
        return 2 * predicted + hit

    @property
    def probabilities(self) -> FloatArray:
        """The probabilities of the rows, shape (n, K)."""
        if self.rows.probabilities is None:
            raise ValueError("the rows were kept without probabilities")
        return self.rows.probabilities

    def score(self, k: int | None = None) -> tuple[IntArray, FloatArray]:
        """Return whether each row belongs to class k or the positive group, and the row's score."""
        actual = self.rows.actual
        if k is not None:
            return (actual == k).astype(np.int64), self.probabilities[:, k]
        groups = self.two_groups
        return is_positive(actual, groups), group_scores(self.probabilities, groups)

    @property
    def two_groups(self) -> ComposedStep:
        """The step that contains the positive group."""
        if self.views.step is None:
            raise ValueError("an evaluation without two groups has no positive group")
        return self.views.step

    def answered(self, step: str) -> tuple[IntArray, IntArray, BoolArray]:
        """Return each row's actual and predicted class or group, and whether it is a hit."""
        actual = self.rows.actual
        predicted = self.rows.predicted
        if not step:
            return actual, predicted, actual == predicted
        composed = self.views.composed[step]
        is_accepted = composed.accept[actual, predicted]
        actual_group = composed.group_of_class[actual]
        predicted_group = composed.group_of_class[predicted]
        return actual_group, predicted_group, (actual_group == predicted_group) & is_accepted

    def locate(self, samples: Samples, step: str = "") -> tuple[Samples, IntArray]:
        """Return the samples and the cell of each row, shape (n,), and cache both."""
        if id(samples) not in self._located:
            self._located[id(samples)] = samples.located(self, step)
        return self._located[id(samples)]


def number_of(names: Mapping[int, str], parts: Mapping[str, str]) -> int:
    """Return the index of the class or group in a metric's name."""
    return next(k for k, name in names.items() if name == parts.get("group", parts.get("label")))


MOST_ROWS = 1 << 12
"""Largest number of correct rows, and of errors, from which the standard error of an average of
areas is computed. If there are more correct rows or more errors, this number of them is drawn at
random.
"""


def row_errors(
    rows: Predictions, views: EvaluationViews, only: Sequence[str] = ()
) -> dict[str, float]:
    """Return the standard errors of averages of areas, by the full names of these metrics.

    These standard errors can only be computed from rows. Counts give only an upper bound.

    ``only``: full names of metrics. If it is empty, all metrics are computed.
    """
    named = [metric for metric in AVERAGES if not only or metric.name in only]
    averages = [metric for metric in named if views.of(metric) is not None]
    curves = views.seen(ClassCurves)
    if not averages or curves is None or rows.source is None:
        return {}
    rng = np.random.default_rng(0)
    # Errors affect an area more than correct rows do, so they are drawn separately.
    is_wrong = rows.actual != rows.predicted
    parts = []
    factors = []
    for stratum in (np.flatnonzero(is_wrong), np.flatnonzero(~is_wrong)):
        n_rows = len(stratum)
        if n_rows > MOST_ROWS:
            stratum = stratum[rng.integers(0, n_rows, MOST_ROWS)]
        parts.append(stratum)
        factors.append(np.full(len(stratum), n_rows / max(len(stratum), 1)))
    drawn = np.concatenate(parts)
    squares = rows.design.take(drawn).square_weighted(np.concatenate(factors))
    places = list(curves.places(rows.source.take(drawn).array))
    errors = {}
    for metric in averages:
        if isinstance(metric.value, AreaAverage) and math.isfinite(metric.number(curves)):
            psi = metric.value.influence_of_rows(curves, rows.actual[drawn], places)
            errors[metric.name] = math.sqrt(float(squares @ psi**2)) / curves.total
    return errors


def centred(
    psi: FloatArray, strata: IntArray, weights: FloatArray, size: int = 0
) -> tuple[FloatArray, FloatArray]:
    """Subtract the mean of each stratum from the influence, and return the result and the means.

    The shares of the strata are fixed, so only the variation within strata contributes to a
    standard error. The array of means contains at least ``size`` numbers.
    """
    # The influence in a class with a share of 0 may be infinite.
    psi = np.where(weights > 0, psi, 0.0)
    sums = np.bincount(strata, weights * psi, size)
    total = np.bincount(strata, weights, size)
    means = np.divide(sums, total, out=np.zeros(len(sums)), where=total > 0)
    return psi - means[strata], means
