"""Comparison of evaluations: options, gates, and rankings of runs or of models."""

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
from cmtrack.comparison.differences import paired_differences
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
from cmtrack.evaluation.gates import Gate, GateResult, check_known
from cmtrack.grouping import Costs
from cmtrack.metrics.catalog import RESERVED, Catalog
from cmtrack.metrics.metric import Metric
from cmtrack.metrics.own import near_or_own, own_metrics
from cmtrack.names import quoted, some_of

Progress = Callable[[str, int, int], object]

NO_RUN = "no run was found{}: the experiments are empty, or no run matches the filter"


class NothingFound(ValueError):
    """There is nothing to compare."""


@dataclass(frozen=True, eq=False)
class CompareOptions(CompareSpec):
    """Options of a comparison, checked, with what follows from them.

    Raises
    ------
    ValueError
        If a number is out of its range, or an option lacks the one that it goes with.

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
        for name, one in self.entries().items():
            object.__setattr__(self, name, one.check(getattr(self, name)))
        if self.positive is not None and self.grouping is None:
            raise ValueError(
                f"positive needs grouping, got {self.positive!r:.60} without: runs keep the "
                "positive group that they were logged with"
            )
        if self.segments is not None and self.block is not None:
            raise ValueError(
                f"segments are of the same rows: leave out block, got {self.block!r:.60}"
            )
        if self.segments is not None and self.at is not None:
            raise ValueError(
                f"segments are compared at the rows' own shares: leave out at, got {self.at!r:.60}"
            )
        if self.equivalence is not None and self.block is not None:
            raise ValueError(
                "equivalence is of runs on the same rows: leave out block, got "
                f"{self.equivalence!r}"
            )

    @cached_property
    def own(self) -> tuple[Metric, ...]:
        """The own metrics, checked."""
        return own_metrics(self.extra_metrics)

    @cached_property
    def gates(self) -> tuple[Gate, ...]:
        """The gates of ``require``.

        Raises
        ------
        ValueError
            If one does not parse, or needs a baseline where there is none.
        """
        gates = tuple(map(Gate.parse, several(self.require)))
        if self.block is not None and any(gate.column for gate in gates):
            raise ValueError(
                f"a gate on segments is of the same rows: leave out block, got {self.block!r:.60}"
            )
        if self.block is not None and any(gate.of_flips for gate in gates):
            raise ValueError(
                f"a gate on flips is of the same rows: leave out block, got {self.block!r:.60}"
            )
        if self.against is None and any(gate.difference for gate in gates):
            raise ValueError(
                "a .difference gate needs against=, the run to take the difference from"
            )
        if self.against is None and any(gate.of_flips for gate in gates):
            raise ValueError("a gate on flips needs against=, the run whose rows may break")
        return gates

    @cached_property
    def rules(self) -> tuple[TieBreaker, ...]:
        """The tie-breakers, parsed only; a custom metric has a meaning only in :func:`rules_of`."""
        return rules_of(self, OPEN)

    @cached_property
    def criterion(self) -> Criterion | None:
        """The criterion of ``rank_by``, parsed only; a custom metric has a meaning only in :func:`criterion_of`."""
        return criterion_of(self, OPEN)

    @cached_property
    def blocks(self) -> Blocks | None:
        """The blocks of repeated runs; None where runs are ranked."""
        if self.block is None:
            return None
        return Blocks(self.block, self.model, self.block_kind, self.test_train_ratio)

    def check(self) -> None:
        """Parse every text early; a custom metric may be declared by an evaluation that is read later.

        Raises
        ------
        ValueError, TypeError
            If one does not parse.
        """
        self.own, self.gates, self.rules, self.criterion, self.blocks  # noqa: B018 - reading checks them

    def how(self, runs: Any) -> dict[str, Any]:
        """The arguments as a review shows them: without credentials; custom metrics by name."""
        given = {name: getattr(self, name) for name in self.entries()}
        given["extra_metrics"] = [metric.name for metric in self.own]
        uris = self.tracking_uri
        if isinstance(uris, str):
            given["tracking_uri"] = untrusted.without_credentials(uris)
        elif uris is not None:
            given["tracking_uri"] = [untrusted.without_credentials(str(uri)) for uri in uris]
        return {"runs": runs, **given}

    @property
    def changes(self) -> frozenset[str]:
        """Names of changed options: logged values of metrics that read these are stale."""
        if self.grouping is not None:
            return frozenset({"grouping", "positive", "costs"})
        changed = {"costs": self.costs, "at": self.at}
        return frozenset(name for name, value in changed.items() if value is not None)

    def prepared(self, evaluation: BaseEvaluation) -> BaseEvaluation:
        """The evaluation with the requested custom metrics, grouping and costs, its numbers computed.

        Raises
        ------
        ValueError
            If the grouping or the costs do not fit it.
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
        evaluation.metrics  # noqa: B018 - computed here, which may be in a worker
        return evaluation


def rules_of(options: CompareOptions, catalog: Catalog) -> tuple[TieBreaker, ...]:
    """The tie-breakers, their metrics resolved by the catalog."""
    return tuple(TieBreaker.parse(text, catalog) for text in several(options.tie_breakers))


def criterion_of(options: CompareOptions, catalog: Catalog) -> Criterion | None:
    """The criterion of ``rank_by``, its metrics resolved by the catalog; None if not given."""
    return None if options.rank_by is None else Criterion.of(options.rank_by, catalog)


def compare_evaluations(
    evaluations: Mapping[str, BaseEvaluation],
    options: CompareOptions,
    progress: Progress = lambda *_: None,
) -> Comparison:
    """Compare evaluations that are in no run, by name; see :func:`cmtrack.compare`.

    Raises
    ------
    TypeError, ValueError
        If a value is not an evaluation, there are none, or one lacks what is asked for.

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
    """The first default metric that any run has; runs for which it is undefined are reported as such."""
    return Criterion((next(filter(has, DEFAULTS), FALLBACK),))


def compare_runs(
    listed: Listing,
    evaluations: Mapping[str, BaseEvaluation],
    criterion: Criterion | None,
    options: CompareOptions,
) -> Comparison:
    """Check the evaluations of runs by the gates, and rank them.

    ``evaluations``: by run id; prepared by the options, the baseline's among them.
    ``criterion``: by default that of the options, else the first default metric that a run has.

    ValueError if no run has one of the metrics, or repeated runs have no blocks.
    """
    evaluations, record = in_one_order(evaluations), listed.record or Record.now()
    listed = replace(listed, record=record)
    available = {name for evaluation in evaluations.values() for name in evaluation.metrics}
    catalogs = [evaluation.catalog for evaluation in evaluations.values()]
    catalog = Catalog.joined([criterion.catalog, *catalogs] if criterion else catalogs)
    criterion = (
        criterion or criterion_of(options, catalog) or default_criterion(available.__contains__)
    )
    criterion, rules = replace(criterion, catalog=catalog), rules_of(options, catalog)
    if evaluations:
        _check_known(criterion, options.gates, available)
    runs = {run.run_id: run for run in listed.runs}
    home = None if listed.baseline is None else listed.baseline.run_id
    base = None if home is None else Candidate(runs[home], evaluations[home])
    judged_runs, candidates, undefined = [], [], []
    # the same review whatever the order that they came in
    for run_id in sorted(runs.keys() & evaluations.keys()):
        evaluation = evaluations[run_id]
        gates = tuple(
            judged(gate, evaluation, base, criterion.metrics[0]) for gate in options.gates
        )
        candidate = Candidate(runs[run_id], evaluation, gates)
        judged_runs.append(candidate)
        reasons = [
            why_undefined(evaluation, name, options.rank_by is not None)
            for name in criterion.metrics
        ]
        if any(reasons) and candidate.passed:
            last = criterion.single and criterion.metrics[0] in evaluation.infinite
            undefined.append(LeftOut(candidate.run, "; ".join(filter(None, reasons)), last))
        else:
            candidates.append(candidate)
    reads = read_by(criterion, options.gates, rules)
    uneven = skips_more(
        [candidate for candidate in candidates if candidate.passed], criterion, reads
    )
    undefined += [LeftOut(c.run, uneven[c.run_id]) for c in candidates if c.run_id in uneven]
    candidates = [candidate for candidate in candidates if candidate.run_id not in uneven]
    level, segments = options.confidence_level, SegmentComparison()
    ranked: dict[str, Any] = {
        "tie_breakers": rules,
        "confidence_level": level,
        "margin": options.margin,
    }
    rankings: tuple[Ranking, ...]
    if options.blocks is not None:
        models, failed, notes = rank_models(
            candidates, criterion, options.blocks, gates=options.gates, **ranked
        )
        rankings = () if models is None else (models,)
    else:
        failed = tuple(StoppedRun(c.run, c.gates) for c in candidates if not c.passed)
        parts = cohorts((candidate for candidate in candidates if candidate.passed), reads)
        first, ranked["others"] = 0 if decides(parts) else None, len(listed.passed_over)
        rankings = tuple(
            rank(
                part,
                criterion,
                seed=options.seed,
                choose=place == first,
                stopped=_stopped_beside(part, candidates, criterion, reads),
                **ranked,
            )
            for place, part in enumerate(parts)
        )
        if options.equivalence is not None:
            if not criterion.single:
                raise ValueError(f"equivalence is of one metric, got {criterion}")
            rankings = tuple(with_equivalence(ranking, options.equivalence) for ranking in rankings)
        # what would mend it is advice, no fact of the comparison
        notes = apart(rankings, reads)[:1]
    if options.at is not None:
        where = shares_in_words(options.at)
        notes = (
            *notes,
            "All runs are judged where the classes have other shares than in the test rows: "
            f"{where}.",
        )
    if options.segments is not None and rankings:
        sides = [(run.name, run.evaluation) for run in rankings[0].runs]
        segments = by_segment(sides, list(map(str, options.segments)), criterion.metrics, level)
    kind = RunComparison if options.blocks is None else ModelComparison
    return kind(
        rankings=rankings,
        criterion=criterion,
        gates=options.gates,
        confidence_level=level,
        failed=(*listed.stopped, *failed),
        left_out=(*listed.unreadable, *undefined, *listed.incomplete),
        passed_over=listed.passed_over,
        baseline=base,
        notes=(*listed.notes, *passed_over_notes(candidates, criterion), *notes, *segments.notes),
        how=dict(listed.how),
        reads=reads,
        segments=segments,
        record=record,
        judged=tuple(judged_runs),
        listing=listed,
    )


def _stopped_beside(
    part: Sequence[Candidate],
    candidates: Iterable[Candidate],
    criterion: Criterion,
    reads: frozenset[str],
) -> list[Candidate]:
    """Return the runs that a gate stopped and that would otherwise be ranked with the runs of a part."""
    of_part = Traits.of(part[0].evaluation)
    stopped = []
    for candidate in candidates:
        values = [candidate.evaluation.metrics.get(name, math.nan) for name in criterion.metrics]
        if candidate.passed or not all(map(math.isfinite, values)):
            continue
        if why_apart(of_part, Traits.of(candidate.evaluation), reads) is None:
            stopped.append(candidate)
    return stopped


def shares_in_words(shares: Any, positive: Any = None) -> str:
    """The shares that runs are judged at: "2 % of “spam”"; "2 % positives" where the positive class has no name."""
    named = {positive: shares} if isinstance(shares, float) else shares
    parts = {name: short_percent(share) for name, share in named.items()}
    return ", ".join(
        f"{part} positives" if n is None else f"{part} of {quoted(n)}" for n, part in parts.items()
    )


def judged(
    gate: Gate, evaluation: BaseEvaluation, baseline: Candidate | None, criterion: str
) -> GateResult:
    """A gate's result for an evaluation, with the difference from the baseline if the gate reads one.

    The metric of the criterion says by which step rows are right, where rows are meant that break.
    """
    if gate.of_flips and baseline is not None:
        return judged_by_flips(gate, evaluation, baseline.evaluation, criterion)
    if gate.column:
        return judged_by_segment(
            gate, evaluation, None if baseline is None else baseline.evaluation
        )
    difference = None
    if gate.difference and baseline is not None:
        other = baseline.evaluation
        if gate.metric in evaluation.metrics and gate.metric in other.metrics:
            difference = paired_differences(evaluation, other, metrics=[gate.metric])[gate.metric]
    return gate.check(evaluation.metrics, evaluation.intervals, difference)


def why_undefined(evaluation: BaseEvaluation, metric: str, asked: bool = False) -> str:
    """Return the reason why a run cannot be ranked by a metric; empty if it can.

    ``asked``: whether the metric was asked for, so that no other one is suggested.
    """
    if metric not in evaluation.metrics:
        return f"it has no {metric}{_lacking(evaluation, metric)}"
    if math.isfinite(evaluation.metrics[metric]):
        share = evaluation.share_without_logit if isinstance(evaluation, Evaluation) else 0.0
        if metric != "calibration/intercept" or not share > 0:
            return ""
        return (
            f"{metric} leaves out the {short_percent(share)} of its rows whose score is exactly 0 "
            "or 1; rank by calibration/error instead"
        )
    reason = evaluation.undefined.get(metric, "no reason is known")
    if only := predicts_only(evaluation, metric):
        reason = f"it predicts only {quoted(only)}{_advice(evaluation, asked)}"
    if metric in evaluation.infinite:
        return f"{metric} is {reason}"  # the reason begins with "infinite: "
    return f"{metric} is undefined: {reason}"


def _advice(evaluation: BaseEvaluation, asked: bool) -> str:
    """Return what else to do with a run that predicts one class only, after a semicolon; empty if there is nothing.

    Accuracy is not suggested: with rare positives it is highest for exactly such a run.
    """
    values = evaluation.metrics
    if math.isfinite(values.get("binary/average_precision", math.nan)):
        threshold = "choose a threshold with cmtrack threshold"
        return f"; {threshold}" if asked else f"; rank by binary/average_precision, or {threshold}"
    if asked:
        return ""
    others = (
        "multiclass/roc_auc_ovr_macro",
        "binary/balanced_accuracy",
        "multiclass/balanced_accuracy",
    )
    defined = [name for name in others if math.isfinite(values.get(name, math.nan))]
    return f"; rank by another metric, such as {defined[0]}" if defined else ""


def _lacking(evaluation: BaseEvaluation, metric: str) -> str:
    """The argument that gives classes a metric that they lack, after a colon; empty where none would."""
    if not isinstance(evaluation, Evaluation):
        return ""
    entry = OPEN.lookup(metric)
    if entry.needs == "probabilities" and evaluation.statistics.moments is None:
        return ": evaluate it with y_prob= (--y-prob)"
    if entry.section == "binary" and evaluation.binary is None:
        return ": compare under a grouping= of two groups (--grouping FILE)"
    return (
        ": compare at costs= (--costs FILE)"
        if entry.section == "cost" and evaluation.costs is None
        else ""
    )


def predicts_only(evaluation: BaseEvaluation, metric: str) -> str:
    """The one class or group that is ever predicted, for a metric of counts on rows of several classes."""
    entry = evaluation.catalog.lookup(metric)
    # others have reasons of their own
    counted = entry.of in ("binary", "whole table") and entry.section in RESERVED
    if not counted or not isinstance(evaluation, Evaluation):
        return ""
    names, counts = evaluation.labels, evaluation.confusion_matrix.counts
    sides = np.array([counts.sum(axis=1), counts.sum(axis=0)], dtype=np.float64)
    two, step = evaluation.binary, evaluation.scored
    if entry.of == "binary" and two is not None and step is not None and step.positive is not None:
        names = (step.labels[step.positive], step.labels[1 - step.positive])
        predicted = (two.predicted_positives, two.predicted_negatives)
        sides = np.array([(two.actual_positives, two.actual_negatives), predicted])
    n_actual, n_predicted = np.count_nonzero(sides, axis=1)
    return str(names[sides[1].argmax()]) if n_predicted == 1 < n_actual else ""


def skips_more(
    candidates: Sequence[Candidate], criterion: Criterion, reads: frozenset[str]
) -> dict[str, str]:
    """Return the reason for each run whose average leaves out a class that another run's average contains.

    A class without a value must not improve an average that ranks. The runs of one ranking are
    therefore averaged over the same classes; a run that leaves out more of them, because it never
    predicts them, is not ranked.
    """
    reasons: dict[str, str] = {}
    for metric in criterion.metrics:
        for part in split(candidates, lambda candidate: Traits.of(candidate.evaluation), reads):
            left_out = [
                set(map(str, candidate.evaluation.classes_passed_over(metric)))
                for candidate in part
            ]
            by_all = set.intersection(*left_out)
            for candidate, names in zip(part, left_out, strict=True):
                if more := sorted(names - by_all):
                    reasons.setdefault(
                        candidate.run_id, _why_not_averaged(candidate.evaluation, metric, more)
                    )
    return reasons


def _why_not_averaged(evaluation: BaseEvaluation, metric: str, names: Sequence[str]) -> str:
    """Return the reason why a run's average over fewer classes is not ranked, and the metric to rank by."""
    section = metric.rpartition("/")[0]
    other = f"{metric}_zero" if f"{metric}_zero" in evaluation.metrics else f"{section}/f1_macro"
    them = "them" if len(names) > 1 else "it"
    return (
        f"{metric} leaves out {some_of([quoted(name) for name in names], 3)}, which it never "
        f"predicts and another run does; rank by {other}, which counts {them} as 0"
    )


def passed_over_notes(candidates: Sequence[Candidate], criterion: Criterion) -> list[str]:
    """Return notes on rankings by an average that leaves out classes, the same ones for every run."""
    notes = []
    for metric in criterion.metrics:
        left_out = [(c.run.name, len(c.evaluation.classes_passed_over(metric))) for c in candidates]
        left_out = [(name, number) for name, number in left_out if number]
        if not left_out:
            notes += _note_on_empty_classes(
                metric, [candidate.evaluation for candidate in candidates]
            )
            continue
        shown = ", ".join(f"{number} of “{name}”" for name, number in left_out[:5])
        more = f" and of {len(left_out) - 5} more runs" if len(left_out) > 5 else ""
        zero = f"{metric}_zero"
        counted = (
            f"; {zero} counts them as 0"
            if any(zero in c.evaluation.metrics for c in candidates)
            else ""
        )
        notes.append(
            f"Ranked by {metric}, which passes over never-predicted classes: "
            f"{shown}{more}{counted}."
        )
    return notes


def _note_on_empty_classes(metric: str, evaluations: Sequence[BaseEvaluation]) -> list[str]:
    """Return the note that an average of correlations leaves out classes without rows; empty for other metrics."""
    if not metric.startswith(("spcc/ovr_", "spcc/ovo_")):
        return []
    names: dict[str, None] = {}
    for evaluation in evaluations:
        if isinstance(evaluation, Evaluation):
            rows = evaluation.confusion_matrix.counts.sum(axis=1)
            empty = [str(label) for label, n in zip(evaluation.labels, rows, strict=True) if n == 0]
            names.update(dict.fromkeys(empty))
    shown = some_of([quoted(name) for name in names], 5)
    return [f"Ranked by {metric}, which leaves out classes without rows: {shown}."] if names else []


def _check_known(criterion: Criterion, gates: Collection[Gate], available: Collection[str]) -> None:
    """Refuse metrics that no run has."""
    for name in criterion.metrics:
        if name not in available:
            hint = near_or_own(name, available)
            if name.startswith("binary/") and not any(
                one.startswith("binary/") for one in available
            ):
                hint = ": it is of a positive class or group; give a grouping of two groups, or positive="
            raise ValueError(f"no run has the metric {name!r}{hint}")
    check_known(gates, available)
