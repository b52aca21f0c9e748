"""Charts that show curves of the runs in a review.

The page highlights the curves of the chosen run and of the run that is compared with it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from cmtrack.comparison.ranking import Ranking
from cmtrack.evaluation import Evaluation
from cmtrack.metrics.precision_recall import steps
from cmtrack.names import quoted
from cmtrack.report.probabilities import curve_of
from cmtrack.report.review.shown import alike, judged_section, of_classes
from cmtrack.statistics.inputs import FloatArray

_POINTS = 64
"""Maximum number of points of a drawn curve."""

Lines = dict[int, str]


def curves(ranking: Ranking, numbers: Mapping[str, int]) -> list[dict[str, Any]]:
    """Return a chart for each kind of curve that the chosen run and at least one other run have.

    ``numbers``: the number that identifies each run's lines on the page.
    """
    charts: list[dict[str, Any]] = []
    options = frozenset({"grouping", "positive"})
    if ranking.evaluation.positive is not None and alike(ranking, options):
        positive = quoted(ranking.evaluation.positive)
        ceiling, prevalence = _ceiling_and_prevalence(ranking)
        charts.append(
            {
                "title": f"ROC of {positive}",
                "across": "False positive rate",
                "up": "Recall",
                "chance": _line(0.0, 1.0, ceiling),
                "lines": _lines(ranking, numbers, _roc),
            }
        )
        charts.append(
            {
                "title": f"Precision and recall of {positive}",
                "across": "Recall",
                "up": "Precision",
                "chance": _line(ceiling * prevalence, ceiling, ceiling * prevalence),
                "lines": _lines(ranking, numbers, _precision),
            }
        )
    section = judged_section(ranking)
    if section:
        charts.append(
            {
                "title": "Reliability",
                "across": "Score",
                "up": "Came true",
                "chance": _line(0.0, 1.0, 1.0),
                "lines": _lines(ranking, numbers, partial(_reliability, section=section)),
            }
        )
    chosen = numbers[ranking.foremost.name]
    return [chart for chart in charts if chosen in chart["lines"] and len(chart["lines"]) > 1]


def curves_end(ranking: Ranking) -> bool:
    """Return whether a run cannot reach a recall of 1 at any threshold."""
    curves = [evaluation.roc for _, evaluation in of_classes(ranking)]
    return any(curve is not None and curve.ceiling < 1 for curve in curves)


def _ceiling_and_prevalence(ranking: Ranking) -> tuple[float, float]:
    """Return the largest recall that the chosen run can reach, and the share of positives."""
    for run, evaluation in of_classes(ranking):
        curve = evaluation.precision_recall
        if run is ranking.foremost and curve is not None and math.isfinite(curve.ceiling):
            return curve.ceiling, curve.prevalence
    return 1.0, 0.0


def _line(start: float, right: float, end: float) -> str:
    """Return the SVG path of a straight line from the left edge of the axes."""
    return f"M0 {1000 * start:.0f}L{1000 * right:.0f} {1000 * end:.0f}"


def _lines(
    ranking: Ranking, numbers: Mapping[str, int], path_of: Callable[[Evaluation], str]
) -> Lines:
    """Return the available curves as a mapping from run numbers to curves.

    A curve is an SVG path whose coordinates are thousandths of the axes.
    """
    lines = {}
    for run, evaluation in of_classes(ranking):
        path = path_of(evaluation)
        if path:
            lines[numbers[run.name]] = path
    return lines


def _roc(evaluation: Evaluation) -> str:
    curve = evaluation.roc
    return "" if curve is None else _path(curve.fpr, curve.tpr)


def _precision(evaluation: Evaluation) -> str:
    curve = evaluation.precision_recall
    return "" if curve is None else _path(*steps(curve.recall, curve.precision), step="V{1}H{0}")


def _reliability(evaluation: Evaluation, section: str) -> str:
    curve = curve_of(evaluation, section)
    if curve is None:
        return ""
    # The value changes in the middle between two scores, as in the large figure.
    middles = (curve.scores[1:] + curve.scores[:-1]) / 2
    x = np.concatenate((curve.scores[:1], np.repeat(middles, 2), curve.scores[-1:]))
    return _path(x, np.repeat(curve.recalibrated, 2))


def _path(x: FloatArray, y: FloatArray, step: str = "L{0} {1}") -> str:
    """Return the SVG path of a curve, with points at equal distances and at both ends.

    The path is empty if the curve is undefined, for example if there are no positives.

    ``step``: SVG commands from one point to the next, with the new point's coordinates.
    """
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        return ""
    across = np.abs(np.diff(x, prepend=x[0]))
    up = np.abs(np.diff(y, prepend=y[0]))
    distances = np.cumsum(across + up)
    last = len(distances) - 1
    stops = np.linspace(distances[0], distances[-1], _POINTS)
    places = np.searchsorted(distances, stops).clip(max=last)
    # Add both ends, which may be missing because the distances are rounded.
    places = np.unique(np.concatenate(([0], places, [last])))
    points = np.rint(1000 * np.column_stack((x[places], y[places]))).astype(int)
    first, *others = points.tolist()
    start = f"M{first[0]} {first[1]}"
    return start + "".join(step.format(*point) for point in others)
