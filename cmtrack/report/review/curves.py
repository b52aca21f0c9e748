"""Curves of the runs of a review; the page shows those of the chosen run and of the one that it is compared with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from cmtrack.comparison.ranking import Ranking
from cmtrack.evaluation import Evaluation
from cmtrack.names import quoted
from cmtrack.report.probabilities import curve_of
from cmtrack.report.review.shown import alike, judged_section, of_classes
from cmtrack.statistics.inputs import FloatArray

_POINTS = 64
"""Points of a drawn curve."""

Lines = dict[int, str]


def curves(ranking: Ranking, numbers: Mapping[str, int]) -> list[dict[str, Any]]:
    """Return a chart for each kind of curve that the chosen run and another one have.

    ``numbers``: the number of each run on the page, which its lines get.
    """
    charts = []
    if ranking.evaluation.positive is not None and alike(
        ranking, frozenset({"grouping", "positive"})
    ):
        positive = quoted(ranking.evaluation.positive)
        roc = _chart(f"ROC of {positive}", "False positive rate", "Recall", diagonal=True)
        precision = _chart(
            f"Precision and recall of {positive}", "Recall", "Precision", diagonal=False
        )
        charts += [
            roc | {"lines": _lines(ranking, numbers, _roc)},
            precision | {"lines": _lines(ranking, numbers, _precision)},
        ]
    section = judged_section(ranking)
    if section:
        reliability = _chart("Reliability", "Score", "Came true", diagonal=True)
        drawn = _lines(ranking, numbers, lambda evaluation: _reliability(evaluation, section))
        charts.append(reliability | {"lines": drawn})
    chosen = numbers[ranking.foremost.name]
    return [chart for chart in charts if chosen in chart["lines"] and len(chart["lines"]) > 1]


def _chart(title: str, across: str, up: str, *, diagonal: bool) -> dict[str, Any]:
    return {"title": title, "across": across, "up": up, "diagonal": diagonal}


def _lines(
    ranking: Ranking, numbers: Mapping[str, int], path_of: Callable[[Evaluation], str]
) -> Lines:
    """The curve of each run that has one, as the path of an SVG in thousandths of both axes."""
    drawn = {numbers[run.name]: path_of(evaluation) for run, evaluation in of_classes(ranking)}
    return {number: path for number, path in drawn.items() if path}


def _roc(evaluation: Evaluation) -> str:
    curve = evaluation.roc
    return "" if curve is None else _path(curve.fpr, curve.tpr)


def _precision(evaluation: Evaluation) -> str:
    curve = evaluation.precision_recall
    return "" if curve is None else _path(curve.recall, curve.precision)


def _reliability(evaluation: Evaluation, section: str) -> str:
    curve = curve_of(evaluation, section)
    return "" if curve is None else _path(curve.scores, curve.recalibrated)


def _path(x: FloatArray, y: FloatArray) -> str:
    """A curve at equal distances of its way and at both ends; empty if it is undefined, as without positives."""
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        return ""
    way = np.cumsum(np.abs(np.diff(x, prepend=x[0])) + np.abs(np.diff(y, prepend=y[0])))
    places = np.searchsorted(way, np.linspace(way[0], way[-1], _POINTS)).clip(max=len(way) - 1)
    places = np.unique(np.concatenate(([0], places, [len(way) - 1])))
    points = np.rint(1000 * np.column_stack((x[places], y[places]))).astype(int)
    return "M" + "L".join(f"{across} {up}" for across, up in points.tolist())
