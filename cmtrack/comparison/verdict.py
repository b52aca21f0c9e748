"""Verdict on whether a run meets its requirements, by itself or compared with a baseline."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from cmtrack.base import BaseEvaluation
from cmtrack.comparison.comparability import Reason, how_apart, remedy, why_unpaired
from cmtrack.comparison.compare import CompareOptions, compare_evaluations, judged
from cmtrack.comparison.constant import ConstantAnswer, constant_answer
from cmtrack.comparison.criterion import ALWAYS_DEFINED, RankBy
from cmtrack.comparison.differences import paired_differences
from cmtrack.comparison.ranking import Ranked
from cmtrack.comparison.result import Comparison, RunComparison
from cmtrack.evaluation import Evaluation
from cmtrack.evaluation.gates import Gate, GateOutcome, GateResult
from cmtrack.metrics.own import UNKNOWN, near_or_own
from cmtrack.removed import RemovedMembers


class NotJudged(Enum):
    """Reason why there is no verdict."""

    LEFT_OUT = "the run or the baseline has no usable evaluation"
    APART = "the run and the baseline were evaluated on different data, or in different ways"
    NO_METRIC = "a gate is on a metric that the run, or the baseline, does not have"
    NO_ERROR = "the standard error of the difference from the baseline is unknown"
    UNDECIDED = "it is unknown if a gate is met, because there is no interval"


class Answer(Enum):
    """Answer to the question whether a run may replace another run."""

    PROMOTE = "promote"
    KEEP = "keep"
    CANNOT_TELL = "cannot tell"


class Outcome(Enum, metaclass=RemovedMembers):
    """Outcome of the check whether a run is significantly worse than the baseline."""

    TESTED = ""
    SAME_RUN = "the same run"
    NO_ROW_DIFFERS = "no row differs"


@dataclass(frozen=True)
class NotWorse:
    """Result of the default check whether a run is significantly worse than the baseline.

    Attributes
    ----------
    criterion : str
    passed : bool
    outcome : Outcome
    difference, low, high, pvalue : float
        Value of the run minus value of the baseline, ends of the simultaneous interval of this
        difference, and its p-value; NaN if the difference was not tested.

    Examples
    --------
    >>> from cmtrack import evaluate
    >>> from cmtrack.comparison import judge
    >>> y = [0, 1] * 100
    >>> run = evaluate(y, [0, 1] * 70 + [1, 0] * 30)
    >>> verdict = judge(run, evaluate(y, [0, 1] * 90 + [1, 0] * 10))
    >>> check = verdict.checks[0]
    >>> check.criterion, check.passed, round(check.difference, 2)
    ('binary/matthews_corrcoef', False, -0.4)
    """

    criterion: str
    passed: bool
    outcome: Outcome = Outcome.TESTED
    difference: float = math.nan
    low: float = math.nan
    high: float = math.nan
    pvalue: float = math.nan

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data."""
        data = {
            "gate": "not significantly worse",
            "criterion": self.criterion,
            "passed": self.passed,
        }
        if self.outcome is Outcome.TESTED:
            data |= {"difference": self.difference, "low": self.low, "high": self.high}
        return data | {"reason": self.outcome.value}


@dataclass(frozen=True)
class Verdict:
    """Verdict on a run, and the result of each check that the run must pass.

    Attributes
    ----------
    run : Ranked or None
        The run; None if it could not be read.
    baseline : Ranked or None
    checks : tuple of GateResult or NotWorse
        Result of each gate, or the result of the default check if no gates were given.
    pairing : Reason or None
        Reason why the run and the baseline are not compared row by row; None if they are compared
        row by row or if no baseline is given.
    not_judged : NotJudged or None
        Reason why there is no verdict.
    why : str
        The reason why there is no verdict, as a sentence with the names of runs.
    notes : tuple of str
    constants : tuple of ConstantAnswer
        The best constant answer for each checked metric, with the run's gain over this answer. The
        constant answers do not affect the verdict.

    Examples
    --------
    >>> from cmtrack import evaluate
    >>> from cmtrack.comparison import judge
    >>> y = [0, 1] * 100
    >>> verdict = judge(evaluate(y, [0, 1] * 70 + [1, 0] * 30), require=["binary/recall >= 0.8"])
    >>> verdict.passed, [(check.gate.text, check.passed) for check in verdict.checks]
    (False, [('binary/recall >= 0.8', False)])
    >>> verdict.answer
    <Answer.KEEP: 'keep'>
    """

    run: Ranked | None
    baseline: Ranked | None = None
    checks: tuple[GateResult | NotWorse, ...] = ()
    pairing: Reason | None = None
    not_judged: NotJudged | None = None
    why: str = ""
    notes: tuple[str, ...] = ()
    constants: tuple[ConstantAnswer, ...] = ()

    @property
    def passed(self) -> bool:
        """True if the run passes all checks; False if there is no verdict."""
        return self.not_judged is None and all(check.passed for check in self.checks)

    @property
    def answer(self) -> Answer:
        """Promote if every check holds, keep if the rows refute a check, and cannot tell otherwise.

        A gate on the end of an interval, such as ``.low >= 0.6``, is refuted only if the other end
        does not meet the bound either. A gate without a number to compare cannot be decided.
        """
        if any(map(_is_refuted, self.checks)):
            return Answer.KEEP
        if self.passed:
            return Answer.PROMOTE
        return Answer.CANNOT_TELL

    @property
    def rows_more(self) -> float:
        """Number of further rows that would decide all gates with 80% power.

        The number assumes that the estimates are the true values. With several open gates, it is
        the largest of their numbers. It is NaN if the answer is not "cannot tell", or if an open
        gate has no number because its estimate equals the bound or has no standard error.
        """
        results = [check for check in self.checks if isinstance(check, GateResult)]
        numbers = [result.rows_more for result in results if result.outcome is GateOutcome.OPEN]
        if self.answer is not Answer.CANNOT_TELL or not numbers:
            return math.nan
        return float(np.max(numbers))

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict as plain data."""

        def named(run: Ranked | None) -> dict[str, str] | None:
            return None if run is None else {"run_id": run.run_id, "name": run.name}

        data = {
            "passed": self.passed,
            "answer": self.answer.value,
            "rows_more": self.rows_more,
            "run": named(self.run),
            "baseline": named(self.baseline),
            "gates": [check.to_dict() for check in self.checks],
            "paired": self.baseline is not None and self.pairing is None,
            "n_samples": math.nan if self.run is None else self.run.evaluation.n_samples,
            "notes": list(self.notes),
            "constants": [constant.to_dict() for constant in self.constants],
            "warnings": [] if self.run is None else list(self.run.evaluation.warnings),
        }
        return (
            data
            if self.not_judged is None
            else data | {"not_judged": self.not_judged.name.lower(), "why": self.why}
        )


def _is_refuted(check: GateResult | NotWorse) -> bool:
    """Return whether the rows show that a check does not hold."""
    if isinstance(check, GateResult):
        return check.outcome is GateOutcome.REFUTED
    return not check.passed


def judge(
    run: BaseEvaluation,
    baseline: BaseEvaluation | None = None,
    *,
    require: Sequence[str] = (),
    rank_by: RankBy | None = None,
    confidence_level: float = 0.95,
) -> Verdict:
    """Check whether an evaluation passes gates, or is not significantly worse than a baseline.

    Parameters
    ----------
    run, baseline : evaluation
    require : sequence of str
        Gates, such as ``"class/3/recall >= 0.6"``. If no gates are given, the run fails if it is
        significantly worse than the baseline in the metric of ``rank_by``.
    rank_by, confidence_level
        See :func:`cmtrack.compare`.

    Raises
    ------
    ValueError, TypeError
        If neither gates nor a baseline are given, if several metrics are given without gates, or if
        an option is invalid.

    Examples
    --------
    >>> from cmtrack import evaluate
    >>> from cmtrack.comparison import judge
    >>> y = [0, 1] * 100
    >>> before = evaluate(y, [0, 1] * 80 + [1, 0] * 20)
    >>> after = evaluate(y, [0, 1] * 85 + [1, 0] * 15)
    >>> gates = ["binary/recall >= 0.8", "multiclass/accuracy.difference > 0"]
    >>> judge(after, before, require=gates).passed
    True
    """
    if not require and baseline is None:
        raise ValueError(
            "a run is checked by gates or against a baseline: give require or baseline, got neither"
        )
    if require and rank_by is not None:
        raise ValueError(
            f"rank_by cannot be combined with require, whose gates decide, got {rank_by!r:.60}"
        )
    if not require:
        check_one_metric(rank_by)
    evaluations = {"run": run} if baseline is None else {"run": run, "baseline": baseline}
    options = CompareOptions(
        rank_by=_neutral_metric(list(evaluations.values())) if require else rank_by,
        confidence_level=confidence_level,
        against=None if baseline is None else "baseline",
    )
    return verdict_of(compare_evaluations(evaluations, options), require)


def check_one_metric(rank_by: RankBy | None) -> None:
    """Check that at most one metric is given, because the check against a baseline needs one.

    Raises
    ------
    ValueError
        If several metrics are given.
    """
    names = [] if rank_by is None or isinstance(rank_by, str) else list(dict.fromkeys(rank_by))
    if len(names) > 1:
        raise ValueError(
            f"a run is checked against a baseline in one metric, got {', '.join(names)}: give one, "
            f"or use gates such as '{names[0]}.difference.low > -0.01'"
        )


def _neutral_metric(evaluations: Sequence[BaseEvaluation]) -> str:
    """Return a metric that is defined for every evaluation.

    A ranking by such a metric includes every evaluation, so that only the gates decide.
    """
    first = evaluations[0]
    for name in (ALWAYS_DEFINED, *first.metrics):
        values = [evaluation.metrics.get(name, math.nan) for evaluation in evaluations]
        is_defined = all(map(math.isfinite, values))
        if is_defined and first.catalog.lookup(name).better:
            return name
    return ALWAYS_DEFINED


def verdict_of(comparison: Comparison, require: Sequence[str] = ()) -> Verdict:
    """Return the verdict on the run that is compared with a baseline.

    ``comparison``: comparison of the run and its baseline, made without gates, because gates would
    exclude the numbers of a run that they stop.
    ``require``: gates; if there are none, the run must not be significantly worse than the
    baseline.
    """
    if not isinstance(comparison, RunComparison):
        raise TypeError(f"comparison must be a RunComparison, got {type(comparison).__name__}")
    base = comparison.baseline
    for unranked in comparison.left_out:
        who = "baseline" if base is not None and unranked.run.run_id == base.run_id else "run"
        why = f"the {who} {unranked.run.name!r} cannot be checked: {unranked.reason}"
        return Verdict(None, not_judged=NotJudged.LEFT_OUT, why=why)
    runs = comparison.runs
    base_id = None if base is None else base.run_id
    baseline = next((run for run in runs if run.run_id == base_id), None)
    # A run may also be its own baseline.
    tested = next((run for run in runs if run is not baseline), runs[0])
    if baseline is not None and len(comparison.rankings) > 1:
        sides = (comparison.rankings, comparison.reads)
        how = f"they were evaluated {how_apart(*sides)}; {remedy(*sides)}"
        why = f"the run and the baseline cannot be compared: {how}"
        return Verdict(tested, baseline, not_judged=NotJudged.APART, why=why)
    gates = [Gate.parse(text) for text in require]
    for gate in gates:
        lack = _lack_of(gate, tested, baseline)
        if lack:
            why = f"gate {gate.text!r}: {lack}"
            return Verdict(tested, baseline, not_judged=NotJudged.NO_METRIC, why=why)
    pairing = None if baseline is None else why_unpaired(tested.evaluation, baseline.evaluation)
    checks: list[GateResult | NotWorse] = [
        judged(gate, tested.evaluation, baseline, comparison.criterion.metrics[0]) for gate in gates
    ]
    metrics = comparison.criterion.metrics
    if gates:
        metrics = tuple(gate.metric for gate in gates if not gate.column and not gate.of_flips)
    else:
        default = not_worse(comparison, tested, baseline)
        if default is None:
            why = _why_no_error(comparison, tested, baseline)
            no_error = NotJudged.NO_ERROR
            return Verdict(tested, baseline, pairing=pairing, not_judged=no_error, why=why)
        checks = [default]
    constants = [
        constant_answer(tested.evaluation, name, run=tested.name) for name in dict.fromkeys(metrics)
    ]
    undecided = [check for check in checks if isinstance(check, GateResult) and check.undecided]
    not_judged = None
    why = ""
    if undecided and all(check.passed or check in undecided for check in checks):
        not_judged = NotJudged.UNDECIDED
        why = f"gate {undecided[0].gate.text!r} cannot be decided: {undecided[0].reason}"
    return Verdict(
        tested,
        baseline,
        tuple(checks),
        pairing,
        not_judged,
        why,
        notes=comparison.notes,
        constants=tuple(constant for constant in constants if constant is not None),
    )


def _lack_of(gate: Gate, run: Ranked, baseline: Ranked | None) -> str:
    """Return which part of the run or baseline a gate lacks; empty if nothing is missing."""
    if gate.of_flips:
        return "" if baseline is not None else "flips need a baseline, but the run has none"
    metrics = run.evaluation.metrics
    if gate.metric not in metrics:
        return f"the run has no {gate.metric!r}{near_or_own(gate.metric, set(metrics))}"
    if run.evaluation.undefined.get(gate.metric) == UNKNOWN:
        return f"{gate.metric} is undefined: {UNKNOWN}"
    if not gate.difference or baseline is None or gate.metric in baseline.evaluation.metrics:
        return ""
    return f"the baseline has no {gate.metric!r}"


def _why_no_error(comparison: Comparison, run: Ranked, baseline: Ranked | None) -> str:
    """Return the reason why the standard error of the difference from the baseline is unknown."""
    if baseline is not None:
        differences = paired_differences(
            run.evaluation, baseline.evaluation, metrics=comparison.criterion.metrics
        )
        for row in differences.rows:
            if row.reason:
                return f"{row.metric} against the baseline: {row.reason}"
    return (
        f"there is no standard error of the difference from the baseline in {comparison.criterion}"
    )


def not_worse(comparison: RunComparison, run: Ranked, baseline: Ranked | None) -> NotWorse | None:
    """Return the result of the default check of one of two ranked runs.

    The result is None if the standard error of the difference is unknown. The result is also None
    if the rows are paired but the function of a custom metric is not available. Without the
    function, the errors could only be treated as independent, and a worse run might pass.
    """
    criterion = str(comparison.criterion)
    if baseline is None or baseline is run:
        return NotWorse(criterion, True, Outcome.SAME_RUN)
    pair = (run.evaluation, baseline.evaluation)
    lacks_function = any(
        isinstance(e, Evaluation) and any(map(e.without_function, comparison.criterion.metrics))
        for e in pair
    )
    if lacks_function and why_unpaired(*pair) is None:
        return None
    ranking = comparison.rankings[0]
    if run.standard_error == 0 and run.difference == 0 and not math.isfinite(run.difference_low):
        return NotWorse(criterion, True, Outcome.NO_ROW_DIFFERS)
    places = (ranking.runs.index(run), ranking.runs.index(baseline))
    low, high = (float(end[places]) for end in ranking.pair_intervals)
    if not (math.isfinite(low) and math.isfinite(high)):
        return None
    # With two runs, the difference of each run is the difference from the other run.
    return NotWorse(
        criterion,
        run.tied,
        difference=run.difference,
        low=low,
        high=high,
        pvalue=min(run.p_set, baseline.p_set),
    )
