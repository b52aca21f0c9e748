"""Definitions of an evaluation's ``rough/`` metrics: bounds computed from the confusion counts.

Source: Düntsch & Gediga (2019), Confusion matrices and rough set data analysis, sections 3 and 4.
The correctly predicted rows of a class are the rows for which the class is both actual and
predicted. The accuracies of approximation are therefore shares of rows, so standard errors can be
computed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np

from cmtrack.metrics.cells import Cells, Table
from cmtrack.metrics.function import Function
from cmtrack.metrics.metric import Metric, Section
from cmtrack.metrics.multiclass import ACCURACY
from cmtrack.metrics.per_class import ClassRatio
from cmtrack.statistics.inputs import FloatArray

_DUENTSCH = "Düntsch & Gediga (2019)"


def bounds_of_cells(cells: Cells, whole: bool) -> dict[str, FloatArray]:
    """Return the bounds that hold for any classifier, as arrays of shape (K,).

    ``whole``: whether the cells contain whole numbers of rows, so that each row weighs at least
    one.
    """
    hits = cells.by_actual(cells.weight * cells.hit)
    actual = cells.by_actual(cells.weight)
    predicted = cells.by_predicted(cells.weight)
    union = actual + predicted - hits
    is_error = ~cells.hit
    if not whole:
        is_error = np.zeros_like(is_error)
    n_errors = is_error.astype(np.float64)
    return {
        "class_sizes": actual,
        "predicted": predicted,
        "hits": hits,
        "lower_upper_bound": np.maximum(hits - (cells.by_predicted(n_errors) > 0), 0.0),
        "union": union,
        "upper_lower_bound": union + cells.by_actual(n_errors),
    }


@dataclass(frozen=True)
class Bound:
    """A bound of each class's lower or upper approximation.

    The bound describes only the evaluated rows, so no standard error is computed.
    """

    name: str

    def __call__(self, table: Table) -> FloatArray:
        """Return the bound of each class, shape (K,)."""
        return np.asarray(table.once(_bounds)[self.name], dtype=np.float64)


class WeightedAlpha(Function):
    """Accuracy of approximation over all classes: total hits divided by total union size."""

    def __call__(self, table: Table) -> float:
        """Return the total hits over all classes divided by the total size of the unions."""
        bounds = table.once(_bounds)
        return float(bounds["hits"].sum()) / float(bounds["union"].sum())

    def influence(self, table: Table) -> FloatArray:
        """Return the influence values of the cells, shape (C,), from the derivative of g / (2 - g).

        Here g is the accuracy of the classifier.
        """
        g = ACCURACY(table)
        return 2 / (2 - g) ** 2 * ACCURACY.influence(table)


def _bounds(table: Table) -> dict[str, FloatArray]:
    return bounds_of_cells(table.cells, table.whole)


def _granules(name: str, attribute: str, formula: str, **words: Any) -> Metric:
    """Return a metric whose value is an attribute of :class:`RoughApproximations`."""
    usual = {"low": 0, "high": 1, "source": f"{_DUENTSCH}, eq. 3.4"}
    return Metric(
        f"rough/{name}",
        attrgetter(attribute),
        of="granules",
        interval="",
        headline=False,
        reason="no actual rows",
        formula=formula,
        **{**usual, **words},
    )


_SIZE: dict[str, Any] = {"high": math.inf, "better": "", "source": "Pawlak (1982)"}

ROUGH = Section(
    "rough",
    "Rough sets",
    (
        Metric(
            "rough/gamma_upper",
            ACCURACY,
            of="whole table",
            low=0,
            high=1,
            interval="wilson",
            headline=False,
            title="upper bound of the quality of approximation γ",
            brief="γ at most",
            formula="at least the quality of approximation γ: Σ C_ii / n, the accuracy",
            source=f"{_DUENTSCH}, eq. 3.6",
        ),
        Metric(
            "rough/alpha_upper",
            WeightedAlpha(),
            of="whole table",
            low=0,
            high=1,
            headline=False,
            title="upper bound of the accuracy of approximation α",
            brief="α at most",
            formula="at least the weighted accuracy of approximation: Σ C_ii / (2n − Σ C_ii)",
            source=f"{_DUENTSCH}, eq. 3.5-3.6 corrected",
        ),
        Metric(
            "rough/<label>/lower_upper_bound",
            Bound("lower_upper_bound"),
            of="whole table",
            low=0,
            high=math.inf,
            better="",
            interval="",
            headline=False,
            source=f"{_DUENTSCH}, theorem 4.1",
            title="upper bound of the lower approximation",
            brief="lower at most",
            formula="at least the lower approximation: C_ii, minus 1 if the class is also "
            "predicted for other classes",
        ),
        Metric(
            "rough/<label>/upper_lower_bound",
            Bound("upper_lower_bound"),
            of="whole table",
            low=0,
            high=math.inf,
            better="",
            interval="",
            headline=False,
            source=f"{_DUENTSCH}, theorem 4.2",
            title="lower bound of the upper approximation",
            brief="upper at least",
            formula="at most the upper approximation: actual or predicted, plus 1 for each class "
            "it is predicted as",
        ),
        Metric(
            "rough/<label>/alpha_upper",
            ClassRatio(1, 1, 1, -1),
            of="whole table",
            low=0,
            high=1,
            interval="wilson",
            headline=False,
            reason="neither actual nor predicted rows",
            source=f"{_DUENTSCH}, eq. 3.4",
            title="upper bound of the accuracy of approximation",
            brief="α at most",
            formula="at least the accuracy of approximation: "
            "C_ii / (actual + predicted total − C_ii)",
        ),
        _granules(
            "gamma",
            "gamma",
            "share of rows in granules of a single class",
            source=f"{_DUENTSCH}, eq. 3.3",
            title="quality of approximation γ",
            brief="γ",
        ),
        _granules(
            "alpha",
            "weighted_alpha",
            "Σ lower / Σ upper approximations",
            source=f"{_DUENTSCH}, eq. 3.5",
            title="accuracy of approximation α",
            brief="α",
        ),
        _granules(
            "<label>/lower",
            "lower",
            "rows in granules that contain only rows of the class",
            title="lower approximation",
            brief="lower",
            **_SIZE,
        ),
        _granules(
            "<label>/upper",
            "upper",
            "rows in granules that contain a row of the class",
            title="upper approximation",
            brief="upper",
            **_SIZE,
        ),
        _granules(
            "<label>/alpha", "alpha", "lower / upper", title="accuracy of approximation", brief="α"
        ),
        _granules(
            "<label>/lower_share",
            "lower_share",
            "lower / actual total",
            title="share of {label} that is certain",
            brief="certain of {label}",
        ),
        _granules(
            "<label>/upper_share",
            "upper_share",
            "actual total / upper",
            title="share of the upper approximation that is {label}",
            brief="{label} of upper",
        ),
    ),
)
