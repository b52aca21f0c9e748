"""Moments of a table's probabilities by actual class, and their sums of products, in one look."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations_with_replacement
from typing import Any

import narwhals as nw
import numpy as np

from cmtrack.grouping import ComposedStep
from cmtrack.statistics.counting import Counts
from cmtrack.statistics.cross_moments import MAX_CLASSES, CrossMoments
from cmtrack.statistics.inputs import FloatArray
from cmtrack.statistics.moments import ScoreMoments
from cmtrack.statistics.tables.expressions import is_label, total
from cmtrack.statistics.tables.tallies import ACTUAL, Rows

_COMPONENTS = 64
"""Components of one query: each has a term for each class."""


def collect_moments(
    rows: Rows, means: FloatArray, counts: Sequence[Counts], step: ComposedStep | None, score: str | None
) -> list[dict[str, Any]]:
    """The statistics that are sums over rows, for each of the weights.

    Deviations are taken from ``means``, which are the means but for rounding; the sum of the deviations then puts
    right what is left.

    Parameters
    ----------
    rows : Rows
    means : ndarray of shape (K, L)
        Of each component in each actual class: the probabilities and, if any, the positive group's score.
    counts : sequence of ndarray of shape (K,)
        Rows, or sums of each of the weights, of each actual class.
    step : ComposedStep, optional
        The two groups, of which the positive one is scored.
    score : str, optional
        The column of the positive group's score: one of the probabilities, or the last component.
    """
    columns = list(dict.fromkeys([*rows.probabilities, score] if score else rows.probabilities))
    size = len(rows.labels)
    frame = rows.frame.with_columns(**{f"is{k}": is_label(ACTUAL, label) for k, label in enumerate(rows.labels)})
    cross = _features(size) if 2 < size <= MAX_CLASSES else {}
    terms = dict(cross)
    if cross:
        frame = frame.with_columns(**{f"f{k}": nw.col(p) - 1 / size for k, p in enumerate(rows.probabilities)})
        frame = frame.with_columns(**{f"f{k + size}": nw.col(f"f{k}") * nw.col(f"f{k}") for k in range(size)})
    if score is not None:
        terms["variance"] = nw.col(score) * (1 - nw.col(score))
    found: dict[str, FloatArray] = {}
    for start in range(0, len(columns), _COMPONENTS):
        part = range(len(columns))[start : start + _COMPONENTS]
        deviations = frame.with_columns(**{f"d{i}": nw.col(columns[i]) - _own_mean(means[:, i]) for i in part})
        deviations = deviations.with_columns(**{f"e{i}": nw.col(f"d{i}") * nw.col(f"d{i}") for i in part})
        terms |= {f"s{p}_d{i}": term for i in part for p, term in enumerate(_powers(i), 1)}
        weighed = {
            f"{name}_{weight}": term * nw.col(weight) if weight else term
            for name, term in terms.items()
            for weight in rows.weights or ("",)
        }
        found |= rows.sums("moments", deviations, weighed, [columns[i] for i in part])
        terms = {}
    out = []
    for weight, n in zip(rows.weights or ("",), counts, strict=True):
        moments = _moments(found, columns, means, n, weight)
        kept: dict[str, Any] = {"moments": moments.components(slice(0, size))}
        if cross:
            kept["cross"] = CrossMoments(_table(found, cross, n, size, weight))
        if score is not None and step is not None:
            component = moments.component(columns.index(score))
            kept["score_moments"] = component.by_group(step.in_positive.astype(np.int64), 2)
            kept["labels_variance"] = float(found[f"variance_{weight}"].sum())
        out.append(kept)
    return out


def _own_mean(means: FloatArray) -> nw.Expr:
    """The mean (K,) of a row's own class; a sum without branches, which engines are quick at."""
    return total([nw.col(f"is{k}") * float(mean) for k, mean in enumerate(means)])


def _powers(i: int) -> list[nw.Expr]:
    one, two = nw.col(f"d{i}"), nw.col(f"e{i}")
    return [one, two, two * one, two * two]


def _features(size: int) -> dict[str, nw.Expr]:
    """Products of the features ``f0`` to ``f2L-1``, and these alone."""
    names = range(2 * size)
    single = {f"x{i}": nw.col(f"f{i}") for i in names}
    return single | {f"x{i}x{j}": nw.col(f"f{i}") * nw.col(f"f{j}") for i, j in combinations_with_replacement(names, 2)}


def _table(found: dict[str, FloatArray], cross: dict[str, nw.Expr], n: Counts, size: int, weight: str) -> FloatArray:
    sums = np.zeros((len(n), 2 * size + 1, 2 * size + 1))
    sums[:, 0, 0] = n
    for name in cross:
        i, j = ([0, *(int(part) + 1 for part in name[1:].split("x"))])[-2:]
        sums[:, i, j] = sums[:, j, i] = found[f"{name}_{weight}"]
    return sums


def _moments(
    found: dict[str, FloatArray], columns: Sequence[str], means: FloatArray, n: Counts, weight: str
) -> ScoreMoments:
    size = len(columns)
    s1, s2, s3, s4 = (np.stack([found[f"s{p}_d{i}_{weight}"] for i in range(size)], axis=1) for p in (1, 2, 3, 4))
    low = np.stack([found[f"low_{column}"] for column in columns], axis=1)
    high = np.stack([found[f"high_{column}"] for column in columns], axis=1)
    count = n[:, None].astype(np.float64)
    shift = s1 / np.where(count > 0, count, 1.0)
    powers = (
        np.maximum(s2 - count * shift**2, 0.0),
        s3 - 3 * shift * s2 + 2 * count * shift**3,
        np.maximum(s4 - 4 * shift * s3 + 6 * shift**2 * s2 - 3 * count * shift**4, 0.0),
    )
    varies = (low < high) & (count > 0)
    mean = np.where(varies, means + shift, np.where(count > 0, low, 0.0))
    return ScoreMoments(n, mean, *(np.where(varies, power, 0.0) for power in powers))
