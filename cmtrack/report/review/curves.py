"""Curves of the runs of a review; the page shows those of the chosen run and of the one that it is compared with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from cmtrack.comparison.ranking import Ranking
from cmtrack.evaluation import Evaluation
from cmtrack.metrics.roc import six_counts
from cmtrack.names import quoted
from cmtrack.report.review.shown import alike, judged_section, of_classes
from cmtrack.statistics.inputs import FloatArray

_POINTS = 64
"""Points of a drawn curve."""
_CURVES = {"calibration": "calibration", "confidence": "confidence_calibration"}
"""The attribute of an evaluation by the section that judges its probabilities."""

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
    ranking: Ranking, numbers: Mapping[str, int], curve_of: Callable[[Evaluation], str]
) -> Lines:
    """The curve of each run that has one, as the path of an SVG in thousandths of both axes."""
    drawn = {numbers[run.name]: curve_of(evaluation) for run, evaluation in of_classes(ranking)}
    return {number: path for number, path in drawn.items() if path}


def _roc(evaluation: Evaluation) -> str:
    rates = _rates(evaluation)
    return "" if rates is None else _path(rates[0], rates[1])


def _precision(evaluation: Evaluation) -> str:
    rates = _rates(evaluation)
    return "" if rates is None else _path(rates[1], rates[2])


def _reliability(evaluation: Evaluation, section: str) -> str:
    curve = getattr(evaluation, _CURVES[section])
    return "" if curve is None else _path(curve.scores, curve.recalibrated)


def _rates(evaluation: Evaluation) -> tuple[FloatArray, FloatArray, FloatArray] | None:
    """Fall-out, recall and precision by falling threshold; None without scores of both sides."""
    scores = evaluation.statistics.scores
    if scores is None:
        return None
    six: Any = six_counts(scores.counts.astype(np.float64))
    tp, _, imp, fp, *_ = (np.asarray(part)[::-1] for part in six)
    positives = scores.counts[:2].sum()
    negatives = scores.counts[2:].sum()
    if not (positives > 0 and negatives > 0):
        return None
    predicted = tp + imp + fp
    precision = np.divide(tp, predicted, out=np.ones(len(tp)), where=predicted > 0)
    return fp / negatives, tp / positives, precision


def _path(x: FloatArray, y: FloatArray) -> str:
    """A curve at equal distances of its way and at both ends."""
    way = np.cumsum(np.abs(np.diff(x, prepend=x[0])) + np.abs(np.diff(y, prepend=y[0])))
    places = np.searchsorted(way, np.linspace(way[0], way[-1], _POINTS)).clip(max=len(way) - 1)
    places = np.unique(np.concatenate(([0], places, [len(way) - 1])))
    points = np.rint(1000 * np.column_stack((x[places], y[places]))).astype(int)
    return "M" + "L".join(f"{across} {up}" for across, up in points.tolist())
