"""Calibration of the probability that a prediction is a hit, for the section ``confidence/``.

The hit probability is the sum of the probabilities of all actual classes for which the prediction
would be a hit. If classes are not grouped, the hit probability is the confidence of the predicted
class. If a step groups the classes, it is the probability of the predicted group minus the
probability of a mismatch. The source is Guo, Pleiss, Sun and Weinberger (2017).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cmtrack.metrics.calibration import PVALUE_SOURCE, Error, Part, PValue, ReliabilityTable
from cmtrack.metrics.metric import Metric, Section
from cmtrack.metrics.risk_coverage import AURC, EXCESS
from cmtrack.metrics.roc import place_of, with_channels
from cmtrack.statistics import ScoreCounts
from cmtrack.statistics.class_scores import Pattern, hit_probabilities
from cmtrack.statistics.counted import Counted
from cmtrack.statistics.counting import picked
from cmtrack.statistics.inputs import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from cmtrack.metrics.influence import Influence
    from cmtrack.metrics.views import EvaluationViews
    from cmtrack.statistics.collected import Statistics

BLOCKS = 128
"""Largest number of score blocks for which the test draws labels. If there are more blocks, they
are pooled.
"""


class HitTable(ReliabilityTable):
    """Numbers of hits and errors by hit probability.

    ``accept``, shape (K, K), bool: the pairs of actual and predicted class that count as hits. By
        default, a row is a hit only if its actual and predicted class are identical.
    """

    kinds = ("confidence",)

    @classmethod
    def of_views(cls, views: EvaluationViews, kind: str, step: str) -> HitTable | None:
        if len(views.statistics.matrix.labels) < 3:
            return None
        accept = views.composed[step].accept if step else None
        return cls.of_hits(views.statistics, views.level, accept)

    @classmethod
    def of_hits(
        cls, statistics: Statistics, level: float, accept: BoolArray | None
    ) -> HitTable | None:
        """Return the numbers of hits under the rule ``accept``; None if they were not counted."""
        hits = statistics.counted("hits")
        if hits is None:
            return None
        scores = hits.map(lambda counts: counts.of(accept))
        if scores.sums is None:
            return None
        return cls(scores, level, accept)

    def __init__(
        self,
        scores: Counted[ScoreCounts],
        level: float = 0.95,
        accept: BoolArray | None = None,
    ) -> None:
        self.accept = accept
        super().__init__(scores.map(with_channels), level, most=BLOCKS)

    def located(self, at: Influence, step: str) -> tuple[HitTable, IntArray]:
        score, hit = self.of_rows(at.rows.actual, at.rows.predicted, at.probabilities)
        return self, place_of(self.scores, score, np.where(hit, 0, 2))

    def of_rows(
        self, actual: IntArray, predicted: IntArray, probabilities: FloatArray
    ) -> tuple[FloatArray, BoolArray]:
        """Return each row's hit probability, and whether the row is a hit, both of shape (n,)."""
        patterns = () if self.accept is None else (Pattern.of(self.accept),)
        confidence = picked(probabilities.T, predicted)
        score, hit = hit_probabilities(probabilities.T, confidence, actual, predicted, patterns)
        # The last pattern belongs to the step. If there is no step, it accepts only equal classes.
        return score[-1], hit[-1]


def _section(
    title: str, prefix: str, headline: bool, depends_on: frozenset[str] = frozenset()
) -> Section:
    usual: dict[str, Any] = {"of": "confidence", "headline": False, "low": 0.0, "high": 1.0}
    return Section(
        "confidence",
        title,
        (
            Metric(
                f"{prefix}error",
                Error(),
                better="lower",
                interval="square",
                title="calibration error of the predicted classes",
                one_sided=True,
                brief="calibration error, predicted classes",
                source="Guo et al. (2017); Kumar, Liang & Ma (2019)",
                reason="none of the 15 bins contains two or more rows",
                formula="√ mean (hits − hit probability)² over 15 bins with equal numbers of rows, "
                "corrected for bias; a lower bound",
                **{**usual, "headline": headline},
            ),
            Metric(
                f"{prefix}pvalue",
                PValue(),
                better="",
                interval="",
                title="p-value of the predicted classes' calibration",
                brief="calibration p, predicted classes",
                source=PVALUE_SOURCE,
                formula="small if the hit probabilities predict too many or too few hits",
                **usual,
            ),
            Metric(
                f"{prefix}miscalibration",
                Part("miscalibration"),
                better="lower",
                one_sided=True,
                interval="",
                title="miscalibration of the predicted classes",
                source="Dimitriadis, Gneiting & Jordan (2021)",
                formula="Brier score of the hits − Brier score after isotonic recalibration",
                **usual,
            ),
            Metric(
                f"{prefix}aurc",
                AURC,
                better="lower",
                interval="log",
                title="area under risk by coverage",
                brief="AURC",
                formula="mean share of errors among the most confident rows, over all coverages",
                source="Geifman & El-Yaniv (2017)",
                **usual,
            ),
            Metric(
                f"{prefix}aurc_excess",
                EXCESS,
                better="lower",
                interval="log",
                brief="excess AURC",
                title="excess area under the risk-coverage curve",
                formula="aurc − the aurc if the errors had the lowest confidences",
                source="Geifman, Uziel & El-Yaniv (2019)",
                **usual,
            ),
        ),
        depends_on=depends_on,
    )


CONFIDENCE = _section("Calibration of the predicted classes", "confidence/", True)
CONFIDENCE_OF_STEP = _section(
    "Calibration of the predicted groups: {step}",
    "confidence/<step>/",
    False,
    frozenset({"grouping"}),
)
