"""Influence values: the contribution of one row to the error of a metric.

For a metric g, ``g_estimated - g ~ mean of psi_i``; so its standard error is ``sqrt(sum (w_i psi_i)^2) / sum w_i``,
that of a difference of two models on the same rows comes from ``psi_A - psi_B``, and rows that belong together
(several of one person) are summed before squaring. Counts metrics have one value per cell of the table.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cmtrack.metrics.cells import SixCells
from cmtrack.metrics.class_curves import AVERAGES, AreaAverage, ClassCurves
from cmtrack.metrics.intervals import cluster_degrees
from cmtrack.metrics.metric import WITHOUT_ERROR, Metric
from cmtrack.metrics.samples import Samples
from cmtrack.metrics.views import EvaluationViews
from cmtrack.statistics.collected import group_scores, is_positive
from cmtrack.statistics.inputs import BoolArray, FloatArray, IntArray
from cmtrack.statistics.predictions import Predictions


class Influence:
    """Influence values of every metric of an evaluation that has rows."""

    def __init__(self, rows: Predictions, views: EvaluationViews) -> None:
        self.rows, self.views = rows, views
        self._located: dict[int, tuple[Samples, IntArray]] = {}

    def __call__(self, metric: Metric, parts: Mapping[str, str]) -> FloatArray | None:
        """psi of a metric, shape (n,); None where it has no influence function.

        ``parts``: the encoded step, label or group in its name.
        """
        if metric.interval in WITHOUT_ERROR:  # it has no error, or brings an interval
            return None
        # the rows were kept without probabilities
        if metric.needs == "probabilities" and self.rows.source is None:
            return None
        step = parts.get("step", "")
        samples, names = self.views.of(metric, step), self.views.names(metric, step)
        if samples is None:
            return None
        return samples.by_row(
            metric, self, step, None if names is None else number_of(names, parts)
        )

    def answers(self, metric: Metric, parts: Mapping[str, str]) -> npt.NDArray[Any]:
        """Code of each row's answer as far as a metric reads it, shape (n,).

        Evaluations of the same rows answer those alike whose codes are equal: only the others move a difference.
        """
        step = parts.get("step", "")
        if metric.function.of_labels:
            return np.zeros(len(self.rows), dtype=np.int64)
        if metric.needs == "probabilities" or metric.of == "decisions":
            weights = np.random.default_rng(0).random(len(self.rows.labels))
            return np.asarray((self.probabilities * weights).sum(axis=1))
        if metric.of == "binary" and (six := self.views.seen(SixCells)) is not None:
            return self.locate(six)[1]
        _, predicted, right = self.answered(step)
        names = self.views.names(metric, step)
        if names is not None:  # of one class: is it called, and rightly
            predicted = (predicted == number_of(names, parts)).astype(np.int64)
            right = right & (predicted == 1)
        return np.asarray(2 * predicted + right)

    @property
    def probabilities(self) -> FloatArray:
        """The probabilities of the rows, shape (n, K): a metric of them exists only where there are some."""
        assert self.rows.probabilities is not None
        return self.rows.probabilities

    def score(self, k: int | None = None) -> tuple[IntArray, FloatArray]:
        """Of each row whether it is positive, and the score of class k or of the positive group."""
        rows, step = self.rows, self.views.step
        if k is not None:
            return (rows.actual == k).astype(np.int64), self.probabilities[:, k]
        assert step is not None  # the section exists only with two groups
        return is_positive(rows.actual, step), group_scores(self.probabilities, step)

    def answered(self, step: str) -> tuple[IntArray, IntArray, BoolArray]:
        """Actual and predicted class, or group of a step, of each row, and whether it is a hit."""
        actual, predicted = self.rows.actual, self.rows.predicted
        if not step:
            return actual, predicted, actual == predicted
        composed = self.views.composed[step]
        accepted = composed.accept[actual, predicted]
        actual, predicted = composed.group_of_class[actual], composed.group_of_class[predicted]
        return actual, predicted, (actual == predicted) & accepted

    def locate(self, samples: Samples, step: str = "") -> tuple[Samples, IntArray]:
        """The samples, and the cell of each row, shape (n,); found once."""
        if id(samples) not in self._located:
            self._located[id(samples)] = samples.located(self, step)
        return self._located[id(samples)]


def number_of(names: Mapping[int, str], parts: Mapping[str, str]) -> int:
    """The number of the class or group that a metric's name contains."""
    return next(k for k, name in names.items() if name == parts.get("group", parts.get("label")))


MOST_ROWS = 1 << 12
"""Right rows, and wrong ones, from which an error is taken that counts only bound; of more, so many are drawn."""


def row_errors(
    rows: Predictions, views: EvaluationViews, only: Sequence[str] = ()
) -> dict[str, float]:
    """Standard errors that counts only bound, by full name: those of averages of areas.

    ``only``: full names of metrics; none stand for all.
    """
    wanted = [metric for metric in AVERAGES if not only or metric.name in only]
    asked = [metric for metric in wanted if views.of(metric) is not None]
    curves = views.seen(ClassCurves)
    if not asked or curves is None or rows.source is None:
        return {}
    actual, rng = rows.actual, np.random.default_rng(0)
    wrong = actual != rows.predicted  # the rows that move an area most
    parts = [np.flatnonzero(wrong), np.flatnonzero(~wrong)]
    picked = [
        part if len(part) <= MOST_ROWS else part[rng.integers(0, len(part), MOST_ROWS)]
        for part in parts
    ]
    drawn = np.concatenate(picked)
    squares = np.repeat(
        [len(part) / max(len(pick), 1) for part, pick in zip(parts, picked, strict=True)],
        [*map(len, picked)],
    )
    if rows.weights is not None:
        weights = rows.weights[drawn]
        squares = squares * (weights if weights.dtype.kind == "i" else weights**2)
    places = list(curves.places(rows.source.take(drawn).array))
    errors = {}
    for metric in asked:
        if isinstance(metric.value, AreaAverage) and math.isfinite(metric.number(curves)):
            psi = metric.value.influence_of_rows(curves, actual[drawn], places)
            errors[metric.name] = math.sqrt(float(squares @ psi**2)) / curves.total
    return errors


def centred(
    psi: FloatArray, strata: IntArray, weights: FloatArray | IntArray | None, size: int = 0
) -> tuple[FloatArray, FloatArray]:
    """Influence less the mean of its stratum, for strata whose shares are given, and these means, at least `size`."""
    if weights is not None:
        psi = np.where(weights > 0, psi, 0.0)  # of a class without a share it may be infinite
    sums = np.bincount(strata, psi if weights is None else weights * psi, size)
    total = np.bincount(strata, weights, size)
    means = np.divide(sums, total, out=np.zeros(len(sums)), where=total > 0)
    return psi - means[strata], means


def standard_error(
    psi: FloatArray, weights: FloatArray | IntArray | None = None, clusters: IntArray | None = None
) -> float:
    """Standard error from influence values.

    ``psi``, shape (n,).
    ``weights``, shape (n,): int64 are numbers of equal rows, float64 sampling weights: the sandwich form.
    ``clusters``, shape (n,), int64: codes of rows that belong together; they are summed before squaring. With G of them
        the squares are multiplied by G / (G - 1) ("CR1"): their mean is estimated.
    """
    return math.sqrt(float(covariance(psi[:, None], weights, clusters)[0, 0]))


def covariance(
    psi: FloatArray, weights: FloatArray | IntArray | None = None, clusters: IntArray | None = None
) -> FloatArray:
    """Covariance of the errors of R metrics or models on the same rows, shape (R, R).

    ``psi``, shape (n, R): influence values, a column each.
    ``weights``, ``clusters``, shape (n,): as in :func:`standard_error`.
    """
    total = float(len(psi)) if weights is None else float(weights.sum())
    centred = psi - (psi.mean(axis=0) if weights is None else weights @ psi / total)
    if clusters is not None:
        weighted = centred if weights is None else centred * weights[:, None]
        sums = np.column_stack([np.bincount(clusters, column) for column in weighted.T])
        weighted_clusters = clusters if weights is None else clusters[weights > 0]
        return (
            np.asarray(sums.T @ sums) * few_clusters(len(np.unique(weighted_clusters))) / total**2
        )
    if weights is None:
        return np.asarray(centred.T @ centred) / total**2
    squares = weights if weights.dtype.kind == "i" else weights**2
    return (centred * squares[:, None]).T @ centred / total**2


def few_clusters(n: int) -> float:
    """Small-sample factor n / (n - 1) for sums of squares of n clusters; 1 for a single one, which has none."""
    return n / (n - 1) if n > 1 else 1.0


def effective_clusters(
    psi: FloatArray, weights: FloatArray | IntArray | None, clusters: IntArray
) -> float:
    """Effective number of clusters of a standard error: (sum of s^2)^2 / sum of s^4 over clusters' sums s.

    ``psi``, ``weights``, ``clusters``: as in :func:`standard_error`.

    Notes
    -----
    After Carter, Schnepel and Steigerwald (2017), with the clusters' squared sums for their variances, which makes it
    too small: see :func:`~cmtrack.metrics.intervals.cluster_degrees`.
    """
    mean = psi.mean() if weights is None else weights @ psi / weights.sum()
    squares = (
        np.bincount(clusters, (psi - mean) if weights is None else (psi - mean) * weights) ** 2
    )
    fourths = float(squares @ squares)
    return float(squares.sum()) ** 2 / fourths if fourths > 0 else math.inf


def class_sizes(actual: IntArray, weights: FloatArray | IntArray | None = None) -> FloatArray:
    """Number of rows of each class, shape (K,); of fractional weights Kish's effective number.

    ``actual``, ``weights``, shape (n,): as in :func:`degrees_of_pairs`.
    """
    sums = np.bincount(actual, weights).astype(np.float64)
    if weights is None or weights.dtype.kind == "i":
        return sums
    squares = np.bincount(actual, weights**2)
    return np.divide(sums**2, squares, out=np.zeros_like(sums), where=squares > 0)


def degrees_of_pairs(
    psi: FloatArray,
    actual: IntArray | None,
    weights: FloatArray | IntArray | None = None,
    clusters: IntArray | None = None,
    folded: bool = False,
) -> FloatArray:
    """Degrees of freedom of the errors of all differences of R metrics or models, shape (R, R).

    At least 1, and infinite where columns do not differ.

    ``psi``, shape (n, R): influence values, a column each.
    ``actual``, shape (n,), int64: class of each row; None where rows have no single class.
    ``weights``, ``clusters``: as in :func:`standard_error`.
    ``folded``: whether the sums of two columns count, too: the smaller of the two numbers is given.

    Notes
    -----
    Of independent rows it is the number of Welch (1947) and Satterthwaite (1946) over the actual classes,
    V^2 / sum of V_k^2 / (n_k - 1), where V_k is the sum of squares of the n_k rows of class k, and V that of all rows.
    A metric's rows of one class are like a sample of their own, as in a difference of two means. A single row of a
    class counts with one degree of freedom; of two classes a single row leaves one in all, as it cannot tell how much
    its class varies. Clusters, and rows without a class, have those of
    :func:`~cmtrack.metrics.intervals.cluster_degrees`.
    """
    signs = (-1, 1) if folded else (-1,)
    psi = psi - (psi.mean(axis=0) if weights is None else weights @ psi / weights.sum())
    if clusters is not None or actual is None:
        return _degrees_of_units(psi, weights, clusters, signs)
    return _degrees_of_classes(psi, actual, weights, signs)


def _degrees_of_classes(
    psi: FloatArray, actual: IntArray, weights: FloatArray | IntArray | None, signs: tuple[int, ...]
) -> FloatArray:
    """Welch's and Satterthwaite's degrees of freedom, (R, R), of centred influence values, (n, R)."""
    sizes = class_sizes(actual, weights)
    # NumPy sorts 16 bits by radix
    narrow = actual.astype(np.uint16) if len(sizes) <= 1 << 16 else actual
    order = np.argsort(narrow, kind="stable")
    psi = psi[order]
    squared_weights: FloatArray | IntArray | None = None
    if weights is not None:
        squared_weights = weights[order] if weights.dtype.kind == "i" else weights[order] ** 2
    ends = np.bincount(actual).cumsum()
    shape = (len(signs), psi.shape[1], psi.shape[1])
    variance = np.zeros(shape)
    scale = np.zeros(shape[1:])
    squares = np.zeros(shape)
    for k in np.flatnonzero(sizes).tolist():
        rows = slice(0 if k == 0 else int(ends[k - 1]), int(ends[k]))
        part = psi[rows]
        weighted = part if squared_weights is None else part * squared_weights[rows, None]
        products = weighted.T @ part
        of_both = np.add.outer(np.diag(products), np.diag(products))
        scale += of_both
        for place, sign in enumerate(signs):
            of_class = np.maximum(of_both + sign * 2 * products, 0.0)
            variance[place] += of_class
            squares[place] += of_class**2 / max(float(sizes[k]) - 1, 1.0)
    usable = (variance > 1e-12 * scale) & (squares > 0)
    found = np.divide(variance**2, squares, out=np.full(shape, math.inf), where=usable)
    present = sizes[sizes > 0]
    if len(present) == 2 and present.min() <= 1:  # nothing tells how much that class varies
        found = np.where(usable, 1.0, math.inf)
    degrees = np.maximum(found, 1.0).min(axis=0)
    np.fill_diagonal(degrees, math.inf)
    return degrees


def _degrees_of_units(
    psi: FloatArray,
    weights: FloatArray | IntArray | None,
    clusters: IntArray | None,
    signs: tuple[int, ...],
) -> FloatArray:
    """Degrees of freedom of clusters or of rows, (R, R), by fourth powers of their centred influence, (n, R)."""
    times: FloatArray | IntArray | None = None
    if clusters is not None:
        weighted = psi if weights is None else psi * weights[:, None]
        psi = np.column_stack([np.bincount(clusters, column) for column in weighted.T])
        units = len(np.unique(clusters if weights is None else clusters[weights > 0]))
    elif weights is not None and weights.dtype.kind == "i":
        times = weights  # repeated rows
        units = int(weights.sum())
    else:
        units = len(psi) if weights is None else int(np.count_nonzero(weights))
        psi = psi if weights is None else psi * weights[:, None]
    size = psi.shape[1]
    products, squares, cubes = np.zeros((3, size, size))
    for start in range(0, len(psi), _ROWS):
        part = psi[start : start + _ROWS]
        many = part if times is None else part * times[start : start + _ROWS, None]
        products += many.T @ part
        squares += (many * part).T @ (part * part)
        cubes += (many * part * part).T @ part
    second = np.add.outer(np.diag(products), np.diag(products))
    fourth = np.add.outer(np.diag(squares), np.diag(squares)) + 6 * squares
    degrees = np.full((size, size), math.inf)
    for sign in signs:
        spread, tails = second + sign * 2 * products, fourth + sign * 4 * (cubes + cubes.T)
        usable = (spread > 1e-12 * second) & (tails > 0)
        effective = np.divide(spread**2, tails, out=np.full_like(degrees, math.inf), where=usable)
        degrees = np.minimum(degrees, cluster_degrees(effective, units))
    np.fill_diagonal(degrees, math.inf)
    return degrees


_ROWS = 1 << 16  # at a time
