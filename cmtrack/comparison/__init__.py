"""Comparison of evaluations: differences, rankings of runs and of models, verdicts; numbers only, without MLflow."""

from cmtrack.comparison.break_even import BreakEven, break_even
from cmtrack.comparison.comparability import Reason
from cmtrack.comparison.compare import CompareOptions, compare_evaluations
from cmtrack.comparison.constant import ConstantAnswer, constant_answer
from cmtrack.comparison.differences import (
    Difference,
    Differences,
    McNemar,
    mcnemar,
    paired_differences,
    randomization_test,
)
from cmtrack.comparison.ranking import RankedRun, Ranking
from cmtrack.comparison.result import Comparison, ModelComparison, RunComparison
from cmtrack.comparison.run import LeftOut
from cmtrack.comparison.segments import SegmentComparison, SegmentDifferences
from cmtrack.comparison.verdict import NotJudged, NotWorse, Outcome, Verdict, judge

__all__ = [
    "BreakEven",
    "CompareOptions",
    "Comparison",
    "ConstantAnswer",
    "Difference",
    "Differences",
    "LeftOut",
    "McNemar",
    "ModelComparison",
    "NotJudged",
    "NotWorse",
    "Outcome",
    "RankedRun",
    "Ranking",
    "Reason",
    "RunComparison",
    "SegmentComparison",
    "SegmentDifferences",
    "Verdict",
    "break_even",
    "compare_evaluations",
    "constant_answer",
    "judge",
    "mcnemar",
    "paired_differences",
    "randomization_test",
]
