"""Functions that compare evaluations: they check options and gates, and rank runs or models."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cmtrack import untrusted
from cmtrack._lazy import cached_property
from cmtrack.base import BaseEvaluation
from cmtrack.comparison.blocks import Blocks, rank_models
from cmtrack.comparison.comparability import (
    Traits,
    apart,
    check_classes,
    in_one_order,
    of_classes,
    split,
    why_apart,
)
from cmtrack.comparison.criterion import DEFAULTS, FALLBACK, Criterion, read_by
from cmtrack.comparison.differences import own_error, paired_differences
from cmtrack.comparison.planning import with_equivalence
from cmtrack.comparison.ranking import Ranking, cohorts, decides, rank
from cmtrack.comparison.record import Record
from cmtrack.comparison.result import Comparison, ModelComparison, RunComparison
from cmtrack.comparison.rows import judged_by_flips
from cmtrack.comparison.rule import as_rule
from cmtrack.comparison.run import Candidate, LeftOut, Listing, Run, StoppedRun
from cmtrack.comparison.segments import SegmentComparison, by_segment, judged_by_segment
from cmtrack.comparison.spec import CompareSpec, several
from cmtrack.comparison.tie_breakers import TieBreaker, check_there
from cmtrack.digits import short_percent
from cmtrack.evaluation import Evaluation
from cmtrack.evaluation.catalog import OPEN
from cmtrack.evaluation.gates import Gate, GateOutcome, GateResult, check_known, with_rows_more
from cmtrack.grouping import Costs
from cmtrack.metrics.catalog import RESERVED, Catalog
from cmtrack.metrics.metric import Metric
from cmtrack.metrics.own import near_or_own, own_metrics
from cmtrack.names import quoted, some_of

Progress = Callable[[str, int, int], object]

NO_RUN = "no run was found{}: the experiments are empty, or no run matches the filter"


class NothingFound(ValueError):
    """Error raised if a comparison contains no runs."""


@dataclass(frozen=True, eq=False)
class CompareOptions(CompareSpec):
    """Checked options of a comparison, with the gates, criterion and blocks that they specify.

    Raises
    ------
    ValueError
        If a number is out of range, or if an option requires another option that is not given.

    Examples
    --------
    >>> from cmtrack.comparison import CompareOptions
    >>> options = CompareOptions(rank_by="multiclass/accuracy", require="binary/recall >= 0.6")
    >>> options.confidence_level, [gate.metric for gate in options.gates]
    (0.95, ['binary/recall'])
    """

    def __post_init__(self) -> None:
        if self.rule is not None:
            object.__setattr__(self, "rule", as_rule(self.rule))
            given = {name: getattr(self, name) for name in self.deciding()}
            for name, value in self.rule.applied(given, self.defaults()).items():
                object.__setattr__(self, name, value)
        for name, option in self.entries().items():
            object.__setattr__(self, name, option.check(getattr(self, name)))
        if self.positive is not None and self.grouping is None:
            raise ValueError(
                f"positive needs grouping, got only positive={self.positive!r:.60}: without "
                "grouping, runs keep the positive group that they were logged with"
            )
        if self.segments is not None and self.block is not None:
            raise ValueError(
                f"segments cannot be combined with block: omit one, got block={self.block!r:.60}"
            )
        if self.segments is not None and self.at is not None:
            raise ValueError(
                f"segments cannot be combined with at: omit one, got at={self.at!r:.60}"
            )
        if self.equivalence is not None and self.block is not None:
            raise ValueError(
                "equivalence cannot be combined with block: omit one, got equivalence="
                f"{self.equivalence!r}"
            )

    @cached_property
    def own(self) -> tuple[Metric, ...]:
        """The custom metrics, which are checked first."""
        return own_metrics(self.extra_metrics)

    @cached_property
    def gates(self) -> tuple[Gate, ...]:
        """The gates that the option ``require`` specifies.

        Raises
        ------
        ValueError
            If a gate cannot be parsed, or if it requires a baseline and no baseline is given.
        """
        gates = tuple(map(Gate.parse, several(self.require)))
        if self.block is not None and any(gate.column for gate in gates):
            raise ValueError(
                f"a gate on segments cannot be combined with block, got block={self.block!r:.60}"
            )
        if self.block is not None and any(gate.of_flips for gate in gates):
            raise ValueError(
                f"a gate on flips cannot be combined with block, got block={self.block!r:.60}"
            )
        if self.against is None and any(gate.difference for gate in gates):
            raise ValueError("a .difference gate needs against=, the run to compare with")
        if self.against is None and any(gate.of_flips for gate in gates):
            raise ValueError("a gate on flips needs against=, the run to compare with")
        return gates

    @cached_property
    def rules(self) -> tuple[TieBreaker, ...]:
        """The parsed tie-breakers, in which :func:`rules_of` can resolve custom metrics."""
        return rules_of(self, OPEN)

    @cached_property
    def criterion(self) -> Criterion | None:
        """The parsed criterion that the option ``rank_by`` specifies; None if it is not given.

        Use :func:`criterion_of` to resolve custom metrics in this criterion.
        """
        return criterion_of(self, OPEN)

    @cached_property
    def blocks(self) -> Blocks | None:
        """The blocks of repeated runs; None if single runs are ranked."""
        if self.block is None:
            return None
        return Blocks(self.block, self.model, self.block_kind, self.test_train_ratio)

    def check(self) -> None:
        """Parse every text option early, before evaluations are read.

        Raises
        ------
        ValueError, TypeError
            If an option cannot be parsed.
        """
        for name in ("own", "gates", "rules", "criterion", "blocks"):
            getattr(self, name)  # Reading a property checks it.

    def how(self, runs: Any) -> dict[str, Any]:
        """Return the arguments for a review, with metrics by name and without credentials."""
        arguments = {name: getattr(self, name) for name in self.entries()}
        arguments["extra_metrics"] = [metric.name for metric in self.own]
        uris = self.tracking_uri
        if isinstance(uris, str):
            arguments["tracking_uri"] = untrusted.without_credentials(uris)
        elif uris is not None:
            arguments["tracking_uri"] = [untrusted.without_credentials(str(uri)) for uri in uris]
        return {"runs": runs, **arguments}

    @property
    def changes(self) -> frozenset[str]:
        """Names of the options that change metrics, so that logged values may be out of date."""
        if self.grouping is not None:
            return frozenset({"grouping", "positive", "costs"})
        changed = {"costs": self.costs, "at": self.at}
        return frozenset(name for name, value in changed.items() if value is not None)

    def prepared(self, evaluation: BaseEvaluation) -> BaseEvaluation:
        """Return the evaluation recomputed with the options' grouping, costs and metrics.

        Raises
        ------
        ValueError
            If the grouping or the costs do not fit the evaluation.
        """
        if isinstance(evaluation, Evaluation):
            evaluation = evaluation.with_metrics(self.own)
        if self.grouping is not None:
            check_classes(evaluation.labels, self.grouping)
            evaluation = of_classes(evaluation).regroup(self.grouping, positive=self.positive)
        if isinstance(self.costs, Costs):
            evaluation = of_classes(evaluation).price(self.costs)
        if self.at is not None:
            evaluation = of_classes(evaluation).at(self.at).reweighted
        evaluation = evaluation.at_level(self.confidence_level)
        evaluation.metrics  # noqa: B018 - compute here, possibly in a worker
        return evaluation


def rules_of(options: CompareOptions, catalog: Catalog) -> tuple[TieBreaker, ...]:
    """Return the tie-breakers, with their metrics looked up in the catalog."""
    return tuple(TieBreaker.parse(text, catalog) for text in several(options.tie_breakers))


def criterion_of(options: CompareOptions, catalog: Catalog) -> Criterion | None:
    """Return the criterion from ``rank_by``, with metrics from the catalog; None if not given."""
    return None if options.rank_by is None else Criterion.of(options.rank_by, catalog)


def compare_evaluations(
    evaluations: Mapping[str, BaseEvaluation],
    options: CompareOptions,
    progress: Progress = lambda *_: None,
) -> Comparison:
    """Compare named evaluations that are in memory; see :func:`cmtrack.compare`.

    Raises
    ------
    TypeError, ValueError
        If a value is not an evaluation, if there are no evaluations, or if an evaluation does not
        fit the options.

    Examples
    --------
    >>> from cmtrack import evaluate
    >>> from cmtrack.comparison import CompareOptions, compare_evaluations
    >>> y = [0, 1] * 100
    >>> forest = evaluate(y, [0, 1] * 90 + [1, 0] * 10)
    >>> linear = evaluate(y, [0, 1] * 70 + [1, 0] * 30)
    >>> runs = {"forest": forest, "linear": linear}
    >>> compare_evaluations(runs, CompareOptions(rank_by="multiclass/accuracy")).best.name
    'forest'
    """
    options.check()
    for name, evaluation in evaluations.items():
        if not isinstance(evaluation, BaseEvaluation):
            raise TypeError(
                f"runs by name must be Evaluations, got {type(evaluation).__name__} for {name!r}"
            )
    if not evaluations:
        raise NothingFound(NO_RUN.format(""))
    runs = {str(name): Run(str(name), str(name)) for name in evaluations}
    check_there(options.rules, list(runs.values()))
    baseline = None
    if options.against is not None:
        baseline = runs.get(options.against) if isinstance(options.against, str) else None
        if baseline is None:
            raise ValueError(f"against must be one of {list(runs)[:10]}, got {options.against!r}")
    prepared = {str(name): options.prepared(evaluation) for name, evaluation in evaluations.items()}
    progress("ranking", 0, 0)
    listed = Listing(tuple(runs.values()), baseline=baseline, how=options.how(evaluations))
    return compare_runs(listed, prepared, None, options)


def default_criterion(has: Callable[[str], bool]) -> Criterion:
    """Return the first default metric that a run has, even if other runs lack it."""
    return Criterion((next(filter(has, DEFAULTS), FALLBACK),))


def compare_runs(
    listed: Listing,
    evaluations: Mapping[str, BaseEvaluation],
    criterion: Criterion | None,
    options: CompareOptions,
) -> Comparison:
    """Check the evaluations of runs against gates, and rank the runs that pass.

    ``evaluations``: maps run ids to evaluations that :meth:`CompareOptions.prepared` returned. The
    evaluation of the baseline must be included.
    ``criterion``: the criterion of the ranking. The default is the criterion in the options or, if
    the options contain none, the first default metric that a run has.

    Raises ValueError if no run has one of the metrics, or if repeated runs have no blocks.
    """
    evaluations = in_one_order(evaluations)
    record = listed.record or Record.now()
    listed = replace(listed, record=record)
    # The order of names decides the order of hints, so it must not be the random order of a set.
    available = dict.fromkeys(
        name for evaluation in evaluations.values() for name in evaluation.metrics
    )
    catalogs = [evaluation.catalog for evaluation in evaluations.values()]
    if criterion is not None:
        catalogs.insert(0, criterion.catalog)
    catalog = Catalog.joined(catalogs)
    criterion = (
        criterion or criterion_of(options, catalog) or default_criterion(available.__contains__)
    )
    criterion = replace(criterion, catalog=catalog)
    if evaluations:
        _check_known(criterion, options.gates, available)
    judged_runs, baseline = _judge_runs(listed, evaluations, options, criterion.metrics[0])
    rules = rules_of(options, catalog)
    reads = read_by(criterion, options.gates, rules)
    undefined = _undefined_runs(judged_runs, criterion, reads, options.rank_by is not None)
    not_ranked = {left_out.run.run_id for left_out in undefined}
    candidates = [run for run in judged_runs if run.run_id not in not_ranked]
    level = options.confidence_level
    rankings: tuple[Ranking, ...]
    if options.blocks is not None:
        models, failed, notes = rank_models(
            candidates,
            criterion,
            options.blocks,
            gates=options.gates,
            tie_breakers=rules,
            confidence_level=level,
            margin=options.margin,
        )
        rankings = () if models is None else (models,)
        kind: type[Comparison] = ModelComparison
    else:
        rankings = _rank_runs(candidates, criterion, reads, options, len(listed.passed_over))
        failed = tuple(StoppedRun(run.run, run.gates) for run in candidates if not run.passed)
        # The second sentence, the remedy, is advice and is not stored.
        notes = apart(rankings, reads)[:1]
        kind = RunComparison
    if options.at is not None:
        shares = shares_in_words(options.at)
        note = "All runs are evaluated for class shares that differ from the test rows"
        notes = (*notes, f"{note}: {shares}.")
    segments = SegmentComparison()
    if options.segments is not None and rankings:
        sides = [(run.name, run.evaluation) for run in rankings[0].runs]
        segments = by_segment(sides, list(map(str, options.segments)), criterion.metrics, level)
    return kind(
        rankings=rankings,
        criterion=criterion,
        gates=options.gates,
        confidence_level=level,
        failed=(*listed.stopped, *failed),
        left_out=(*listed.unreadable, *undefined, *listed.incomplete),
        passed_over=listed.passed_over,
        baseline=baseline,
        notes=(*listed.notes, *passed_over_notes(candidates, criterion), *notes, *segments.notes),
        how=dict(listed.how),
        reads=reads,
        segments=segments,
        record=record,
        judged=tuple(judged_runs),
        listing=listed,
    )


def _judge_runs(
    listed: Listing,
    evaluations: Mapping[str, BaseEvaluation],
    options: CompareOptions,
    metric: str,
) -> tuple[list[Candidate], Candidate | None]:
    """Return all runs with their gate results, in the order of their ids, and the baseline."""
    runs = {run.run_id: run for run in listed.runs}
    baseline = None
    if listed.baseline is not None:
        baseline_id = listed.baseline.run_id
        baseline = Candidate(runs[baseline_id], evaluations[baseline_id])
    candidates = []
    # Sorted ids make the review independent of the order of the runs.
    for run_id in sorted(runs.keys() & evaluations.keys()):
        evaluation = evaluations[run_id]
        gates = tuple(judged(gate, evaluation, baseline, metric) for gate in options.gates)
        candidates.append(Candidate(runs[run_id], evaluation, gates))
    return candidates, baseline


def _undefined_runs(
    candidates: Sequence[Candidate], criterion: Criterion, reads: frozenset[str], asked: bool
) -> list[LeftOut]:
    """Return the runs that pass the gates but cannot be ranked, with the reason.

    ``asked``: whether the user chose the criterion; if so, no other metric is suggested.
    """
    undefined = []
    defined = []
    for candidate in candidates:
        if not candidate.passed:
            continue
        evaluation = candidate.evaluation
        reasons = [why_undefined(evaluation, name, asked) for name in criterion.metrics]
        if any(reasons):
            is_last = criterion.single and criterion.metrics[0] in evaluation.infinite
            undefined.append(LeftOut(candidate.run, "; ".join(filter(None, reasons)), is_last))
        else:
            defined.append(candidate)
    uneven = skips_more(defined, criterion, reads)
    skipping = [candidate.run for candidate in defined if candidate.run_id in uneven]
    return undefined + [LeftOut(run, uneven[run.run_id]) for run in skipping]


def _rank_runs(
    candidates: Sequence[Candidate],
    criterion: Criterion,
    reads: frozenset[str],
    options: CompareOptions,
    n_passed_over: int,
) -> tuple[Ranking, ...]:
    """Return a ranking for each group of runs on the same data.

    If one ranking decides the comparison, this ranking comes first.
    """
    groups = cohorts([candidate for candidate in candidates if candidate.passed], reads)
    has_decision = decides(groups)
    rankings = []
    for place, group in enumerate(groups):
        ranking = rank(
            group,
            criterion,
            tie_breakers=rules_of(options, criterion.catalog),
            confidence_level=options.confidence_level,
            seed=options.seed,
            margin=options.margin,
            choose=has_decision and place == 0,
            others=n_passed_over,
            stopped=_stopped_beside(group, candidates, criterion, reads),
        )
        rankings.append(ranking)
    if options.equivalence is not None:
        if criterion.pareto:
            raise ValueError(f"equivalence needs a ranking by one metric, got {criterion}")
        rankings = [with_equivalence(ranking, options.equivalence) for ranking in rankings]
    return tuple(rankings)


def _stopped_beside(
    group: Sequence[Candidate],
    candidates: Iterable[Candidate],
    criterion: Criterion,
    reads: frozenset[str],
) -> list[Candidate]:
    """Return the stopped runs that would be in a group's ranking if they passed the gates."""
    group_traits = Traits.of(group[0].evaluation)
    stopped = []
    for candidate in candidates:
        values = [candidate.evaluation.metrics.get(name, math.nan) for name in criterion.metrics]
        if candidate.passed or not all(map(math.isfinite, values)):
            continue
        if why_apart(group_traits, Traits.of(candidate.evaluation), reads) is None:
            stopped.append(candidate)
    return stopped


def shares_in_words(shares: Any, positive: Any = None) -> str:
    """Return in words the class shares that metrics are computed for, such as "2% of “spam”".

    A single number is the share of the positive class. If the positive class has no name, the text
    is "2% positives".
    """
    if isinstance(shares, float):
        shares = {positive: shares}
    words = []
    for name, share in shares.items():
        what = "positives" if name is None else f"of {quoted(name)}"
        words.append(f"{short_percent(share)} {what}")
    return ", ".join(words)


def judged(
    gate: Gate, evaluation: BaseEvaluation, baseline: Candidate | None, criterion: str
) -> GateResult:
    """Return a gate's result for an evaluation.

    A gate on a difference compares the evaluation with the baseline. For a gate on flips, the
    metric of the ``criterion`` determines the step at which a prediction counts as correct.
    """
    other = None if baseline is None else baseline.evaluation
    if gate.of_flips and other is not None:
        return judged_by_flips(gate, evaluation, other, criterion)
    if gate.column:
        return judged_by_segment(gate, evaluation, other)
    difference = None
    if gate.difference and other is not None:
        both_have = gate.metric in evaluation.metrics and gate.metric in other.metrics
        if both_have:
            difference = paired_differences(evaluation, other, metrics=[gate.metric])[gate.metric]
    result = gate.check(evaluation.metrics, evaluation.intervals, difference)
    if result.outcome is not GateOutcome.OPEN or gate.metric not in evaluation.metrics:
        return result
    if difference is not None:
        estimate = difference.difference
        error = difference.standard_error
    else:
        estimate = evaluation.metrics[gate.metric]
        error = own_error(evaluation, gate.metric)
    return with_rows_more(
        result, estimate, error, evaluation.n_samples, evaluation.confidence_level
    )


def why_undefined(evaluation: BaseEvaluation, metric: str, asked: bool = False) -> str:
    """Return the reason why a run cannot be ranked by a metric; empty if the run can be ranked.

    ``asked``: whether the user chose the metric; if so, no other metric is suggested.
    """
    if metric not in evaluation.metrics:
        return f"it has no {metric}{_remedy(evaluation, metric)}"
    if math.isfinite(evaluation.metrics[metric]):
        if metric != "calibration/intercept" or not isinstance(evaluation, Evaluation):
            return ""
        share = evaluation.share_without_logit
        if not share > 0:
            return ""
        return (
            f"{metric} ignores {short_percent(share)} of its rows because their score is exactly "
            "0 or 1; rank by calibration/error instead"
        )
    reason = evaluation.undefined.get(metric, "the reason is unknown")
    if only := predicts_only(evaluation, metric):
        reason = f"the run predicts only {quoted(only)}{_advice(evaluation, asked)}"
    if metric in evaluation.infinite:
        return f"{metric} is {reason}"  # The reason begins with "infinite: ".
    return f"{metric} is undefined: {reason}"


def _advice(evaluation: BaseEvaluation, asked: bool) -> str:
    """Return advice, starting with a semicolon, for a run that predicts only one class.

    For runs that predict several classes, the result is empty.

    The advice does not suggest accuracy, because a run that never predicts rare positives often has
    the highest accuracy.
    """
    values = evaluation.metrics
    if math.isfinite(values.get("binary/average_precision", math.nan)):
        threshold = "choose a threshold with cmtrack threshold"
        return f"; {threshold}" if asked else f"; rank by binary/average_precision, or {threshold}"
    if asked:
        return ""
    for name in (
        "multiclass/roc_auc_ovr_macro",
        "binary/balanced_accuracy",
        "multiclass/balanced_accuracy",
    ):
        if math.isfinite(values.get(name, math.nan)):
            return f"; rank by another metric, such as {name}"
    return ""


def _remedy(evaluation: BaseEvaluation, metric: str) -> str:
    """Return advice, starting with a colon, on how to get a missing metric; may be empty."""
    if not isinstance(evaluation, Evaluation):
        return ""
    entry = OPEN.lookup(metric)
    if entry.needs == "probabilities" and evaluation.statistics.moments is None:
        return ": evaluate it with y_prob= (--y-prob)"
    if entry.section == "binary" and evaluation.binary is None:
        return ": compare under a grouping= of two groups (--grouping FILE)"
    if entry.section == "cost" and evaluation.costs is None:
        return ": compare at costs= (--costs FILE)"
    return ""


def predicts_only(evaluation: BaseEvaluation, metric: str) -> str:
    """Return the class or group that a run always predicts; empty if it predicts several.

    If all rows have the same actual class, the result is also empty. For a metric that is not
    computed from counts, the result is also empty, because such a metric reports its own reasons.
    """
    entry = evaluation.catalog.lookup(metric)
    is_of_counts = entry.of in ("binary", "whole table") and entry.section in RESERVED
    if not is_of_counts or not isinstance(evaluation, Evaluation):
        return ""
    names = evaluation.labels
    counts = evaluation.confusion_matrix.counts
    actual = counts.sum(axis=1, dtype=np.float64)
    predicted = counts.sum(axis=0, dtype=np.float64)
    binary = evaluation.binary
    step = evaluation.scored
    positive = None if step is None else step.positive
    if entry.of == "binary" and binary is not None and step is not None and positive is not None:
        names = (step.labels[positive], step.labels[1 - positive])
        actual = np.array([binary.actual_positives, binary.actual_negatives])
        predicted = np.array([binary.predicted_positives, binary.predicted_negatives])
    if np.count_nonzero(predicted) == 1 < np.count_nonzero(actual):
        return str(names[predicted.argmax()])
    return ""


def skips_more(
    candidates: Sequence[Candidate], criterion: Criterion, reads: frozenset[str]
) -> dict[str, str]:
    """Return why runs whose average covers fewer classes than other averages are not ranked.

    A class without a value must not improve the average by which runs are ranked. Therefore the
    averages of all runs in a ranking cover the same classes. A run that never predicts one of the
    averaged classes is not ranked.
    """
    reasons: dict[str, str] = {}
    for metric in criterion.metrics:
        for group in split(candidates, lambda candidate: Traits.of(candidate.evaluation), reads):
            left_out = [
                set(map(str, candidate.evaluation.classes_passed_over(metric)))
                for candidate in group
            ]
            by_all = set.intersection(*left_out)
            for candidate, names in zip(group, left_out, strict=True):
                further = sorted(names - by_all)
                if further and candidate.run_id not in reasons:
                    reason = _why_not_averaged(candidate.evaluation, metric, further)
                    reasons[candidate.run_id] = reason
    return reasons


def _why_not_averaged(evaluation: BaseEvaluation, metric: str, names: Sequence[str]) -> str:
    """Return why an average over fewer classes cannot rank a run, and which metric to use."""
    other = f"{metric}_zero"
    if other not in evaluation.metrics:
        section = metric.rpartition("/")[0]
        other = f"{section}/f1_macro"
    them = "them" if len(names) > 1 else "it"
    classes = some_of([quoted(name) for name in names], 3)
    return (
        f"{metric} ignores {classes}, which this run never predicts but another run does; "
        f"rank by {other}, which counts {them} as 0"
    )


def passed_over_notes(candidates: Sequence[Candidate], criterion: Criterion) -> list[str]:
    """Return notes on averages that ignore the same classes in every ranked run."""
    notes = []
    for metric in criterion.metrics:
        left_out = []
        for candidate in candidates:
            n_classes = len(candidate.evaluation.classes_passed_over(metric))
            if n_classes:
                left_out.append(f"{n_classes} of “{candidate.run.name}”")
        if not left_out:
            notes += _note_on_empty_classes(
                metric, [candidate.evaluation for candidate in candidates]
            )
            continue
        note = f"Ranked by {metric}, which ignores classes that a run never predicts: "
        note += ", ".join(left_out[:5])
        if len(left_out) > 5:
            note += f" and of {len(left_out) - 5} more runs"
        zero = f"{metric}_zero"
        if any(zero in candidate.evaluation.metrics for candidate in candidates):
            note += f"; {zero} counts them as 0"
        notes.append(f"{note}.")
    return notes


def _note_on_empty_classes(metric: str, evaluations: Sequence[BaseEvaluation]) -> list[str]:
    """Return a note if an average of correlations ignores classes without rows.

    For all other metrics, the function returns no note.
    """
    if not metric.startswith(("spcc/ovr_", "spcc/ovo_")):
        return []
    names: dict[str, None] = {}
    for evaluation in evaluations:
        if isinstance(evaluation, Evaluation):
            rows = evaluation.confusion_matrix.counts.sum(axis=1)
            empty = [str(label) for label, n in zip(evaluation.labels, rows, strict=True) if n == 0]
            names.update(dict.fromkeys(empty))
    if not names:
        return []
    classes = some_of([quoted(name) for name in names], 5)
    return [f"Ranked by {metric}, which ignores classes without rows: {classes}."]


def _check_known(criterion: Criterion, gates: Collection[Gate], available: Collection[str]) -> None:
    """Raise ValueError for metrics that no run has."""
    has_binary = any(name.startswith("binary/") for name in available)
    for name in criterion.metrics:
        if name not in available:
            hint = near_or_own(name, available)
            if name.startswith("binary/") and not has_binary:
                remedy = "give a grouping of two groups, or positive="
                hint = f": it needs a positive class or group; {remedy}"
            raise ValueError(f"no run has the metric {name!r}{hint}")
    check_known(gates, available)
