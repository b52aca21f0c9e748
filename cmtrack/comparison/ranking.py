"""Classes for rankings of runs and of models, and the function that ranks runs.

This module ranks runs by means of the covariance of their errors on the same rows. The module
:mod:`cmtrack.comparison.blocks` ranks models that were repeated over blocks, by means of their
values in each block. Both modules create `Ranked` entries, of which :func:`decided` chooses one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtr

from cmtrack import notebook
from cmtrack._lazy import cached_property
from cmtrack.base import BaseEvaluation
from cmtrack.comparison import inference
from cmtrack.comparison.comparability import Traits, design_of_rows, split, unpaired_among
from cmtrack.comparison.constant import ConstantAnswer, constant_of_runs
from cmtrack.comparison.criterion import Criterion
from cmtrack.comparison.differences import at_end, own_degrees, own_error, paired_by, why_no_error
from cmtrack.comparison.run import Candidate
from cmtrack.comparison.tie_breakers import Decision, TieBreaker, decide
from cmtrack.digits import number, with_interval
from cmtrack.evaluation import Evaluation
from cmtrack.metrics.paired import NO_ROW_DIFFERS, Paired
from cmtrack.names import MAY_BE_BEST, RULED_OUT, quoted
from cmtrack.removed import RemovedAttributes
from cmtrack.statistics.design import Design
from cmtrack.statistics.inputs import BoolArray, FloatArray, IntArray
from cmtrack.statistics.predictions import Predictions
from cmtrack.untrusted import printable

NAN = math.nan


@dataclass(frozen=True, eq=False)
class Ranked(Candidate, RemovedAttributes):
    """A ranked run, or a ranked model whose runs were repeated.

    Attributes
    ----------
    rank : int
        Rank of the run; 1 is the best, and runs with equal values have the same rank. In a Pareto
        ranking, the rank is the number of the front that contains the run.
    value, low, high : float
        Value of the metric, and the ends of the confidence interval of this value. For a model, the
        value is the mean over its blocks, and the ends are NaN. The value and both ends are NaN in
        a Pareto ranking.
    difference, difference_low, difference_high : float
        For a run, the value of this run minus the value of the best other run, and the ends of the
        interval of this difference. The best other run is the leader or, for the leader, the next
        run. Runs that do not differ in any way count as a single run. If values nearest to zero are
        best, ``difference`` is the difference between the two distances from zero. The intervals of
        all runs are simultaneous. If the run is ruled out as the best, the end on the better side
        is exactly
        0. If no other run may be the best, the end of the leader's interval on the worse side is
        exactly 0. The difference is NaN if the ranking contains only one run. For a model, the
        difference is the value of this model minus the value of the leader, and its interval is
        simultaneous for all pairs of models (Bonferroni).
    pvalue, p_holm : float
        Unadjusted p-value of the hypothesis that the difference is zero, and this p-value adjusted
        for the number of pairs by Holm's method.
    p_set : float
        The p-value that decides: the run is ruled out as the best if `p_set` is at most 1 -
        `confidence_level`. For runs, `p_set` is the p-value of the hypothesis that this run is the
        best, computed by multiple comparisons with the best. For models, `p_set` equals `p_holm`.
        In a Pareto ranking, `p_set` is NaN.
    standard_error : float
        Standard error of the difference.
    within_margin : bool
        Whether a tie-breaker may choose this run, because the run may be the best and is within the
        margin.
    tied : bool
        Whether this run may be the best; otherwise it is ruled out. In a Pareto ranking, whether no
        other run beats this run.
    chosen : bool
        Whether this is the recommended run, which a tie-breaker or the ranking chose.
    adjusted_low, adjusted_high : float
        Ends of a confidence interval of the value that accounts for the selection of this run. The
        adjusted ends are NaN for all runs except the leader and the chosen run.
    values : dict of str to float
        Value of each metric of the criterion.
    p_max_t : float
        p-value of the hypothesis that a run's difference is zero, adjusted for all pairs of runs by
        the max-T method.
    probability_best, expected_rank : float
    rank_low, rank_high : int
        Posterior interval of a run's rank, given the values and their spread. If there are fewer
        than three distinct runs, or if a standard error is unknown, the probabilities are NaN and
        the interval may extend to the last rank. `rank_low` is 1 if and only if the run may be the
        best. In a Pareto ranking the interval covers all ranks.
    by_block : tuple of Candidate
        The runs of a model, one for each block, in descending order of quality. `run` is the first
        of these runs, but with the model's name and the means of all logged metrics.
    sd : float
        Standard deviation of a model's values over its blocks.
    unpaired : str
        Reason why the differences of a run are not paired by rows; empty if they are paired.
    equivalent_within : float
        The margin within which two one-sided tests show that the run is equivalent to the leader;
        NaN if the tests do not show equivalence.
    reason : str
        Reason why the difference has no interval, such as "no row differs".

    Examples
    --------
    >>> from cmtrack import compare, evaluate
    >>> y = [0, 1] * 100
    >>> forest = evaluate(y, [0, 1] * 90 + [1, 0] * 10)
    >>> linear = evaluate(y, [0, 1] * 70 + [1, 0] * 30)
    >>> runs = {"forest": forest, "linear": linear}
    >>> ranking = compare(runs, rank_by="multiclass/accuracy").ranking
    >>> [(one.name, one.value, one.tied, len(one.runs)) for one in ranking.standings]
    [('forest', 0.9, True, 1), ('linear', 0.7, False, 1)]
    """

    rank: int = 0
    value: float = NAN
    low: float = NAN
    high: float = NAN
    difference: float = NAN
    difference_low: float = NAN
    difference_high: float = NAN
    pvalue: float = NAN
    p_holm: float = NAN
    p_set: float = NAN
    standard_error: float = NAN
    within_margin: bool = False
    tied: bool = False
    chosen: bool = False
    adjusted_low: float = NAN
    adjusted_high: float = NAN
    values: dict[str, float] = field(default_factory=dict)
    p_max_t: float = NAN
    probability_best: float = NAN
    expected_rank: float = NAN
    rank_low: int = 0
    rank_high: int = 0
    by_block: tuple[Candidate, ...] = ()
    sd: float = NAN
    unpaired: str = ""
    equivalent_within: float = NAN
    reason: str = ""

    def __repr__(self) -> str:
        status = MAY_BE_BEST if self.tied else RULED_OUT
        if self.chosen:
            status = "chosen"
        numbers = "".join(f", {name} {number(value)}" for name, value in self.values.items())
        if math.isfinite(self.value):
            numbers = f", {with_interval(self.value, self.interval)}"
        text = f"rank {self.rank}: {quoted(self.name)}{numbers}, {status}"
        return printable(f"{type(self).__name__}({text})")

    @property
    def runs(self) -> tuple[Candidate, ...]:
        """The run itself or, for a repeated model, the runs of all blocks."""
        return self.by_block or (self,)

    @property
    def picked(self) -> bool:
        """True if the displayed interval accounts for the selection of the run."""
        return math.isfinite(self.adjusted_low) and math.isfinite(self.adjusted_high)

    @property
    def interval(self) -> tuple[float, float]:
        """The confidence interval that is displayed with the value."""
        if self.picked:
            return self.adjusted_low, self.adjusted_high
        return self.low, self.high

    @property
    def metrics(self) -> dict[str, float]:
        """The metrics of the evaluation or, for a model, the means of the metrics over its runs."""
        if self.by_block:
            return means([run.evaluation.metrics for run in self.by_block])
        return self.evaluation.metrics


@dataclass(frozen=True, eq=False, repr=False)
class RankedRun(Ranked):
    """A ranked run; see :class:`Ranked`.

    Examples
    --------
    >>> from cmtrack import compare, evaluate
    >>> y = [0, 1] * 100
    >>> forest = evaluate(y, [0, 1] * 90 + [1, 0] * 10)
    >>> linear = evaluate(y, [0, 1] * 70 + [1, 0] * 30)
    >>> runs = {"forest": forest, "linear": linear}
    >>> first, second = compare(runs, rank_by="multiclass/accuracy").runs
    >>> second.name, second.rank, second.value, second.tied
    ('linear', 2, 0.7, False)
    >>> round(second.difference, 2), second.difference_high
    (-0.2, 0.0)
    >>> round(first.difference, 2), first.difference_low
    (0.2, 0.0)
    """


def means(tables: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the mean of each value that all tables contain, by the value's name."""
    names = set.intersection(*map(set, tables))
    return {name: float(np.mean([table[name] for table in tables])) for name in names}


@dataclass(frozen=True, eq=False)
class Ranking:
    """A ranking of runs that were evaluated on the same data in the same way, or of models.

    Attributes
    ----------
    runs : tuple of RankedRun, or of RankedModel
        The runs or models, best first.
    criterion : Criterion
    confidence_level : float
    decision : Decision
        The choice among the runs that may be the best and are within the margin.
    margin : float or None
        Largest loss, relative to the leader, that a tie-breaker may accept. None stands for one
        standard error of each run's difference.
    constants : tuple of ConstantAnswer
        The best constant answer for each metric of the criterion. Each entry contains the best
        run's gain over the constant answer, and the p-value of each run, adjusted for the number of
        runs by Holm's method. In a ranking of models, the entries contain means over the blocks.
    rank_distribution : ndarray of shape (R, R)
        The entry ``[run, rank - 1]`` is the posterior probability that the run has this rank, with
        runs in the order of ``runs``; NaN if unknown.
    pvalues : ndarray of shape (R, R)
        p-values of the differences between all pairs of runs, adjusted by the max-T method.
    pair_intervals : ndarray of shape (2, R, R)
        Lower and upper ends of the simultaneous intervals of all differences between runs, as the
        run of the row minus the run of the column; NaN if unknown.
    picked_from : int
        Number of runs from which the leader was selected: ranked runs, runs that a gate stopped,
        and runs that were not read. The leader's interval accounts for the fact that the leader was
        selected. The number is 1 if the interval does not account for a selection.
    stopped : tuple of Candidate
        Runs on the same data that a gate stopped and that have values of the criterion's metrics.
    equivalence : float or None
        Margin of equivalence; None if none was given.
    evidence : Evidence or None
        Values and errors of all ranked and stopped runs, in the order of :func:`identity`; None for
        a ranking of models.

    Examples
    --------
    >>> from cmtrack import compare, evaluate
    >>> y = [0, 1] * 100
    >>> hits = {"a": 90, "b": 89, "c": 70}
    >>> predicted = {name: [0, 1] * n + [1, 0] * (100 - n) for name, n in hits.items()}
    >>> runs = {name: evaluate(y, labels) for name, labels in predicted.items()}
    >>> ranking = compare(runs, rank_by="multiclass/accuracy").ranking
    >>> [(run.name, run.tied) for run in ranking.runs]
    [('a', True), ('b', True), ('c', False)]
    >>> ranking.leader.name, len(ranking.tied), ranking.pvalues.shape
    ('a', 2, (3, 3))
    """

    noun: ClassVar[str] = "run"

    runs: tuple[Ranked, ...]
    criterion: Criterion
    confidence_level: float
    decision: Decision
    margin: float | None = None
    constants: tuple[ConstantAnswer, ...] = ()
    rank_distribution: FloatArray = field(default_factory=lambda: np.full((0, 0), NAN))
    pvalues: FloatArray = field(default_factory=lambda: np.full((0, 0), NAN))
    pair_intervals: FloatArray = field(default_factory=lambda: np.full((2, 0, 0), NAN))
    picked_from: int = 1
    stopped: tuple[Candidate, ...] = ()
    equivalence: float | None = None
    evidence: Evidence | None = None

    def __repr__(self) -> str:
        entries = f"{len(self.standings)} {self.noun}s"
        first = repr(self.foremost).partition("(")[2]
        return printable(f"{type(self).__name__}({entries} by {self.criterion}; {first}")

    def _repr_html_(self) -> str:
        from cmtrack._pandas import pd

        rows = []
        for entry in self.standings:
            status = MAY_BE_BEST if entry.tied else "ruled out"
            row = {"rank": entry.rank, self.noun: entry.name, "status": status}
            if entry.chosen:
                row["status"] = "chosen"
            if self.criterion.single:
                row["value"] = entry.value
                row["low"], row["high"] = entry.interval
                names = ("difference", "difference_low", "difference_high")
                row |= {name: getattr(entry, name) for name in names}
                row["pvalue"] = NAN if entry is self.leader else entry.p_set
            else:
                row |= entry.values
            rows.append(row)
        title = f"By {self.criterion}:"
        return notebook.view(
            notebook.sentence(title), notebook.table(pd.DataFrame(rows), len(rows))
        )

    @property
    def over(self) -> str:
        """The number of repetitions in words, such as "10 folds"; empty if runs are ranked."""
        return ""

    @property
    def standings(self) -> tuple[Ranked, ...]:
        """The runs or the models, best first."""
        return self.runs

    @property
    def leader(self) -> Ranked:
        """The run or model with the best value."""
        return self.runs[0]

    @cached_property
    def chosen(self) -> Ranked | None:
        """The recommended run: the leader, or a run within the margin that a tie-breaker chose.

        The value is None if this ranking does not decide the comparison.
        """
        return next((run for run in self.runs if run.chosen), None)

    @property
    def foremost(self) -> Ranked:
        """The recommended run; the leader if no run is recommended."""
        return self.chosen or self.leader

    @property
    def tied(self) -> tuple[Ranked, ...]:
        """The runs that may be the best: the leader, and all runs not significantly worse."""
        return tuple(run for run in self.runs if run.tied)

    @property
    def paired(self) -> bool:
        """True if all differences are paired by rows."""
        return len(self.runs) > 1 and not any(run.unpaired for run in self.runs)

    @property
    def evaluation(self) -> BaseEvaluation:
        """Evaluation of the leader, which has the same labels and grouping as all other runs."""
        return self.leader.evaluation


def decided(
    entries: Sequence[Ranked],
    criterion: Criterion,
    tie_breakers: Sequence[TieBreaker],
    margin: float | None,
    choose: bool = True,
) -> tuple[tuple[Ranked, ...], Decision]:
    """Mark the entries that are within the margin, and the chosen entry; return the decision.

    ``entries``: runs or models, best first; the result is in the same order.
    """
    leader = entries[0]
    entries = [
        replace(entry, within_margin=_is_within_margin(entry, leader, criterion, margin))
        for entry in entries
    ]
    near = [entry for entry in entries if entry.within_margin]
    metrics = [_comparable_metrics(entry, near, tie_breakers) for entry in near]
    decision = decide(
        [(entry.run, values) for entry, values in zip(near, metrics, strict=True)], tie_breakers
    )
    if choose:
        place = entries.index(near[decision.place])
        entries[place] = replace(entries[place], chosen=True)
    return tuple(entries), decision


def _comparable_metrics(
    entry: Ranked, near: Sequence[Ranked], tie_breakers: Sequence[TieBreaker]
) -> dict[str, float]:
    """Return an entry's metrics, in a form that tie-breakers may compare with other entries.

    An average becomes NaN if it includes fewer classes than the same average of another entry.
    """
    metrics = dict(entry.metrics)
    for rule in tie_breakers:
        left_out = [
            {name for run in other.runs for name in run.evaluation.classes_passed_over(rule.name)}
            for other in near
        ]
        if left_out[near.index(entry)] - set.intersection(*left_out):
            metrics[rule.name] = NAN
    return metrics


def _is_within_margin(
    entry: Ranked, leader: Ranked, criterion: Criterion, margin: float | None
) -> bool:
    """Return whether a tie-breaker may choose a run or a model."""
    if entry is leader:
        return True
    if not entry.tied:
        return False
    if criterion.pareto:
        return entry.rank == 1
    higher = criterion.direction == "higher"
    if margin is not None:
        largest_loss = -entry.difference_low if higher else entry.difference_high
        return bool(largest_loss <= margin)
    loss = -entry.difference if higher else entry.difference
    if math.isfinite(entry.standard_error):
        return loss <= entry.standard_error
    return loss <= 0  # Without a standard error, only an equal value is within the margin.


def cohorts(candidates: Iterable[Candidate], read: frozenset[str]) -> list[list[Candidate]]:
    """Divide runs into groups that may be ranked together.

    Groups with more rows come first. Among groups with the same number of rows, groups with parent
    runs come before groups with their nested runs.

    ``read``: from :func:`~cmtrack.comparison.criterion.read_by`.
    """
    candidates = list(candidates)
    depths = _depths(candidates)

    def sort_key(group: Sequence[Candidate]) -> tuple[int, int, tuple[str, str]]:
        # The last part of the key makes the result independent of the order of the runs.
        return -_count_rows(group), _least_depth(group, depths), min(map(identity, group))

    groups = split(candidates, lambda candidate: Traits.of(candidate.evaluation), read)
    return sorted(groups, key=sort_key)


def decides(groups: Sequence[Sequence[Candidate]]) -> bool:
    """Return whether the first group of runs decides the comparison.

    The first group decides the comparison if it has more rows than the next group. If both groups
    have the same number of rows, the first group decides if its runs are nested in fewer runs than
    the runs of the next group, for example because the first group contains the parents of these
    runs.
    """
    if len(groups) < 2 or _count_rows(groups[0]) > _count_rows(groups[1]):
        return bool(groups)
    depths = _depths([candidate for group in groups for candidate in group])
    return _least_depth(groups[0], depths) < _least_depth(groups[1], depths)


def _count_rows(group: Sequence[Candidate]) -> int:
    return max(candidate.evaluation.statistics.digest.rows for candidate in group)


def _least_depth(group: Sequence[Candidate], depths: Mapping[str, int]) -> int:
    return min(depths[candidate.run_id] for candidate in group)


def _depths(candidates: Iterable[Candidate]) -> dict[str, int]:
    """Return, by run id, the number of candidates in which each candidate is nested."""
    parents = {candidate.run_id: candidate.run.parent_run_id for candidate in candidates}
    depths = {}
    for run_id, parent in parents.items():
        ancestors: list[str] = []
        # In a broken store a run may be nested in itself; that must not loop forever.
        while parent in parents and parent not in ancestors:
            ancestors.append(parent)
            parent = parents[parent]
        depths[run_id] = len(ancestors)
    return depths


def rank(
    candidates: Sequence[Candidate],
    criterion: Criterion,
    *,
    tie_breakers: Sequence[TieBreaker] = (),
    confidence_level: float = 0.95,
    seed: int = 0,
    margin: float | None = None,
    choose: bool = True,
    others: int = 0,
    stopped: Sequence[Candidate] = (),
) -> Ranking:
    """Rank runs that were evaluated on the same data.

    ``candidates``: one or more runs that were evaluated on the same rows at this confidence level,
    and for which all metrics of the criterion are defined.
    ``margin``: see :func:`cmtrack.compare`.
    ``choose``: whether to choose a run; False for a ranking that does not decide the comparison.
    ``others``: number of runs that were not read because of their logged values. The leader was
    selected from the candidates and from the runs that were not read.
    ``stopped``: runs on the same rows that a gate stopped. Stopped runs are not ranked, but the
    leader was also selected from them.

    All results are derived from the covariance of the runs' errors, which are assumed to be
    normally distributed. The tied set contains the runs that may be the best according to multiple
    comparisons with the best (Hsu 1984, 1996) in two steps
    (:func:`cmtrack.comparison.inference.pairs`). The tied set contains the truly best run with a
    probability of at least the confidence level. If several runs are exactly equal, the tied set
    may exclude some of them, so it does not show which runs are equal. The probability of being the
    best and the ranks are derived from the posterior distribution of exchangeable true values N(μ,
    τ²), with flat priors for μ and τ. The intervals of the leader and of the chosen run account for
    the fact that these runs were selected. Draws are made in the order of the runs' ids, so the
    order of ``candidates`` does not matter.

    Runs without a significant difference are not necessarily equal. A tie-breaker therefore chooses
    only among tied runs within a margin of the leader. The default margin is one standard error of
    the paired difference, as in the rule that Breiman, Friedman, Olshen and Stone (1984, section
    3.4.3) use to choose the smallest tree. If ``margin`` is given, a run must be shown to be worse
    than the best run by at most ``margin`` (non-inferiority): the lower end of the interval of its
    difference from the best other run is at least ``-margin``. The intervals of the differences are
    simultaneous, so non-inferiority is shown for any chosen run. In a Pareto ranking, a tie-breaker
    chooses among the runs of the first front.
    """
    candidates = sorted(candidates, key=identity)
    evidence = gather([candidate.evaluation for candidate in candidates], criterion)
    if criterion.pareto:
        entries, arrays = _pareto(candidates, criterion, evidence)
    else:
        entries, tests = _single(candidates, criterion, evidence, confidence_level, seed)
        arrays = tests.arrays(criterion.unit)
    runs, decision = decided(entries, criterion, tie_breakers, margin, choose)
    stopped = tuple(sorted(stopped, key=identity))
    picked_from = 1 if criterion.pareto else len(runs) + len(stopped) + others
    everyone = evidence
    if stopped:
        pool = sorted([*candidates, *stopped], key=identity)
        everyone = gather([candidate.evaluation for candidate in pool], criterion)
    if picked_from > 1:
        runs = _allow_for_selection(runs, criterion, everyone, confidence_level, seed, others)
    constants = _constants(runs, candidates, criterion, evidence, others)
    return Ranking(
        runs,
        criterion,
        confidence_level,
        decision,
        margin,
        constants,
        picked_from=picked_from,
        stopped=stopped,
        evidence=everyone.without_rows(),
        **arrays,
    )


def judged_by(
    candidates: Sequence[Candidate], criterion: Criterion, confidence_level: float, seed: int
) -> list[Ranked]:
    """Rank and test the runs by a different metric, like :func:`rank`; return them best first.

    No run is marked as chosen.
    """
    candidates = sorted(candidates, key=identity)
    evidence = gather([candidate.evaluation for candidate in candidates], criterion)
    return _single(candidates, criterion, evidence, confidence_level, seed)[0]


def _constants(
    runs: Sequence[Ranked],
    candidates: Sequence[Candidate],
    criterion: Criterion,
    evidence: Evidence,
    others: int,
) -> tuple[ConstantAnswer, ...]:
    """Return the best constant answer for each metric, and each run's gain over this answer."""
    constants = []
    evaluations = {candidate.run_id: candidate.evaluation for candidate in candidates}
    for m, metric in enumerate(criterion.metrics):
        best: Candidate = runs[0]
        if criterion.pareto:
            best = candidates[int(evidence.values[:, m].argmax())]
        constant = constant_of_runs(
            evaluations, metric, best.run_id, name=best.name, not_tested=others
        )
        if constant is not None:
            constants.append(constant)
    return tuple(constants)


def identity(candidate: Candidate) -> tuple[str, str]:
    """Return the default sort key of a candidate: its id, then its name."""
    return candidate.run_id, candidate.name


def _single(
    candidates: Sequence[Candidate],
    criterion: Criterion,
    evidence: Evidence,
    level: float,
    seed: int,
) -> tuple[list[Ranked], _Tests]:
    """Rank runs by a single metric; return the runs, best first, and their tests."""
    values = evidence.values[:, 0]
    closeness = -np.abs(values) if evidence.folded else values
    order = np.lexsort((np.arange(len(values)), -closeness))
    tests = _test(evidence, order, criterion, level, seed)
    unit = criterion.unit
    sign = 1.0 if evidence.folded else unit
    metric = criterion.metrics[0]
    entries: list[Ranked] = []
    for place, origin in enumerate(order.tolist()):
        candidate = candidates[origin]
        low, high = candidate.evaluation.intervals.get(metric, (NAN, NAN))
        unpaired = evidence.unpaired.get(origin, "")
        entries.append(
            RankedRun(
                candidate.run,
                candidate.evaluation,
                candidate.gates,
                rank=1 + int((closeness > closeness[origin]).sum()),
                value=float(sign * values[origin]),
                low=low,
                high=high,
                values={metric: candidate.evaluation.metrics[metric]},
                unpaired=unpaired if len(order) > 1 else "",
                **tests.difference_fields(place, unit),
                **tests.rank_fields(place),
            )
        )
    return entries, tests


def _test(
    evidence: Evidence, order: IntArray, criterion: Criterion, level: float, seed: int
) -> _Tests:
    """Test the differences between runs in a single metric.

    ``order``: positions of the runs, sorted by value.
    """
    values, covariance = evidence.of_metric(0)
    values = values[order]
    covariance = covariance[np.ix_(order, order)]
    has_error = evidence.known[order]
    # The statistics of runs that are paired by their rows are computed separately.
    row_runs = np.flatnonzero(np.isin(order, evidence.places[0]))
    rows = evidence.rows
    if rows is not None:
        rows = rows.take(np.searchsorted(evidence.places[0], order[row_runs]))
    pairs = inference.pairs(
        values,
        covariance,
        # Each draw is used with both signs.
        inference.error_draws(covariance, inference.N_DRAWS // 2, seed),
        level,
        folded=evidence.folded,
        degrees=evidence.degrees()[np.ix_(order, order)],
        known=has_error,
        widest=criterion.catalog.lookup(criterion.metrics[0]).widest,
        rows=rows,
        row_runs=row_runs,
    )
    ranks = None
    if has_error.all():
        drawn = inference.posterior_draws(values, covariance, seed=seed, level=evidence.folded)
        if drawn is not None:
            ranks = inference.ranks(drawn, level, evidence.folded)
    return _Tests(pairs, ranks, has_error, rows, row_runs)


@dataclass(frozen=True, eq=False)
class _Tests:
    """Tests of the differences between R runs in a single metric; the best run is first.

    ``ranks``: The value is None if there are too few runs to estimate the spread of the true
    values.
    ``has_error``, of shape (R,), bool: whether the standard error of a run is known.
    ``rows``: paired differences of the runs at the positions ``row_runs``.
    """

    pairs: inference.Pairs
    ranks: inference.Ranks | None
    has_error: BoolArray
    rows: Paired | None
    row_runs: IntArray

    def is_tested(self, place: int) -> bool:
        """Return whether the difference between a run and the leader can be tested."""
        return bool(self.has_error[place] and self.has_error[0])

    def difference_fields(self, place: int, unit: float) -> dict[str, Any]:
        """Return the fields of an entry that describe its difference from the best other run."""
        pairs = self.pairs
        rival = int(pairs.rival[place])
        has_rival = len(self.has_error) > 1
        reason = self._why_no_interval(place, rival) if has_rival else ""
        fields: dict[str, Any] = {"reason": reason}
        if has_rival:
            # Adding 0 turns a negative zero into a positive zero, here and below.
            fields["difference"] = float(unit * pairs.difference[place, rival]) + 0.0
        if self.is_tested(place):
            fields["p_set"] = float(pairs.may_be_best[place])
        # The leader is compared with all other runs, so all standard errors must be known.
        errors_known = self.has_error if place == 0 else self.has_error[[0, place, rival]]
        if not errors_known.all():
            return fields
        if reason in ("", NO_ROW_DIFFERS):
            fields["pvalue"] = float(pairs.pvalue[place, rival])
            fields["p_holm"] = float(pairs.holm[place, rival])
            fields["p_max_t"] = float(pairs.max_t[place, rival])
            fields["standard_error"] = float(pairs.standard_error[place, rival])
        if has_rival and not reason:
            ends = (float(unit * pairs.best_low[place]), float(unit * pairs.best_high[place]))
            fields["difference_low"] = min(ends) + 0.0
            fields["difference_high"] = max(ends) + 0.0
        return fields

    def rank_fields(self, place: int) -> dict[str, Any]:
        """Return the fields of an entry that describe its rank.

        The test decides which runs may have rank 1; all other ranks are derived from the posterior
        distribution.
        """
        tied = bool(self.pairs.tied[place]) or not self.is_tested(place)
        first = 1 if tied else 2
        if self.ranks is None:
            leads_alone = place == 0 and self.has_error.all() and self.pairs.tied.sum() == 1
            last = 1 if leads_alone else len(self.has_error)
            return {"tied": tied, "rank_low": first, "rank_high": last}
        if not tied:
            first = max(first, int(self.ranks.low[place]))
        return {
            "tied": tied,
            "rank_low": first,
            "rank_high": max(first, int(self.ranks.high[place])),
            "probability_best": float(self.ranks.probability_best[place]),
            "expected_rank": float(self.ranks.expected[place]),
        }

    def arrays(self, unit: float) -> dict[str, FloatArray]:
        """Return the arrays that a ranking of the runs stores."""
        pairs = self.pairs
        both_known = self.has_error[:, None] & self.has_error
        intervals = np.where(both_known, np.stack([pairs.low, pairs.high]), NAN)
        if unit < 0:
            intervals = -intervals[::-1]
        distribution = np.full(both_known.shape, NAN)
        if self.ranks is not None:
            distribution = self.ranks.distribution
        return {
            "rank_distribution": distribution,
            "pvalues": pairs.max_t,
            "pair_intervals": intervals + 0.0,
        }

    def _why_no_interval(self, place: int, rival: int) -> str:
        """Return why the interval of a run's difference is undefined; empty if it is defined."""
        if place == rival:  # The run does not differ from any other run.
            return NO_ROW_DIFFERS
        if self.rows is None or not np.isin((place, rival), self.row_runs).all():
            return ""
        i, j = np.searchsorted(self.row_runs, (place, rival)).tolist()
        return self.rows.reason(i, j)


def _allow_for_selection(
    runs: Sequence[Ranked],
    criterion: Criterion,
    evidence: Evidence,
    level: float,
    seed: int,
    others: int,
) -> tuple[Ranked, ...]:
    """Add intervals that account for selection to the leader and to the chosen run.

    An interval that accounts for selection is computed like the ordinary confidence interval of the
    metric, but with a larger quantile that accounts for the selection. For the leader, the end on
    the better side does not change, because selecting the best value does not affect this end.

    ``evidence``: values and errors of all runs that the leader was selected from, including runs
    that a gate stopped.
    """
    _, covariance = evidence.of_metric(0)
    half = inference.error_draws(covariance, inference.N_DRAWS // 2, seed)
    errors = np.concatenate([half, -half])
    unknown = int((~evidence.known).sum())
    of_best, of_any = inference.reach_of_best(errors, np.diag(covariance), level, others + unknown)
    metric = criterion.metrics[0]
    adjusted = []
    for place, run in enumerate(runs):
        if place == 0 and not evidence.folded:
            low, high = _interval_at_quantile(run, metric, of_best)
            if criterion.direction == "higher":
                high = run.high
            else:
                low = run.low
            run = replace(run, adjusted_low=low, adjusted_high=high)
        elif place == 0 or run.chosen:
            low, high = _interval_at_quantile(run, metric, of_any)
            run = replace(run, adjusted_low=low, adjusted_high=high)
        adjusted.append(run)
    return tuple(adjusted)


def _interval_at_quantile(run: Ranked, metric: str, quantile: float) -> tuple[float, float]:
    """Return the confidence interval of a run's metric for a given normal quantile."""
    options: dict[str, Any] = {"confidence_level": 2 * float(ndtr(quantile)) - 1}
    if isinstance(run.evaluation, Evaluation):
        options["sections"] = (metric,)  # Recomputing all metrics takes 30 ms.
    return run.evaluation.asking(**options).intervals.get(metric, (NAN, NAN))


def _pareto(
    candidates: Sequence[Candidate], criterion: Criterion, evidence: Evidence
) -> tuple[list[Ranked], dict[str, Any]]:
    """Rank runs by their Pareto fronts.

    A Pareto ranking contains no tests, because only the observed values decide whether a run is
    dominated.
    """
    size = len(candidates)
    fronts = _fronts(evidence.values)
    order = np.lexsort((-evidence.values[:, 0], fronts))
    entries: list[Ranked] = []
    for origin in order.tolist():
        candidate = candidates[origin]
        front = int(fronts[origin])
        unpaired = evidence.unpaired.get(origin, "")
        entries.append(
            RankedRun(
                candidate.run,
                candidate.evaluation,
                candidate.gates,
                rank=front,
                values={name: candidate.evaluation.metrics[name] for name in criterion.metrics},
                rank_low=1,
                rank_high=size,
                tied=front == 1,
                unpaired=unpaired if size > 1 else "",
            )
        )
    unknown = np.full((2, size, size), NAN)
    return entries, {
        "rank_distribution": unknown[0],
        "pvalues": unknown[0],
        "pair_intervals": unknown,
    }


def _undominated(values: FloatArray) -> BoolArray:
    """Mark the runs on the first Pareto front, given their values (R, M) in M metrics.

    A run is on the first front if no other run is at least as good in all metrics and better in
    one.
    """
    own = values[:, None, :]
    other = values[None, :, :]
    dominated = (other >= own).all(axis=-1) & (other > own).any(axis=-1)
    return np.asarray(~dominated.any(axis=-1))


def _fronts(values: FloatArray) -> IntArray:
    """Return the number of each run's Pareto front.

    Runs on front 1 are not dominated, and runs on front 2 are dominated only by runs on front 1.
    """
    fronts = np.zeros(len(values), dtype=np.int64)
    remaining = np.arange(len(values))
    number = 1
    while len(remaining):
        first = _undominated(values[remaining])
        fronts[remaining[first]] = number
        remaining = remaining[~first]
        number += 1
    return fronts


# -- values and their covariance -------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Evidence:
    """Values of R runs in M metrics, and the covariance of their errors.

    ``values``, of shape (R, M): value of each run in each metric. Larger values are better, unless
    ``folded`` is true.
    ``covariance``, of shape (R, M, R, M): covariance of the errors of all values; 0 for two runs
    that are not paired.
    ``folded``: whether the criterion is a single metric whose best value is zero. If ``folded`` is
    true, the values keep their sign.
    ``known``, of shape (R,), bool: whether the standard errors of all metrics are known.
    ``unpaired``: maps the position of each run that is not paired with the others to the reason.
    ``psi``, of shape (n, C): influence values of the paired rows, signed like ``values``.
    ``places``, of shape (2, C), int64: positions of the run and of the metric that each column of
    ``psi`` belongs to.
    ``actual``, of shape (n,) or None: actual classes of the paired rows.
    ``design``: sampling design of the paired rows.
    ``alone``, of shape (R,): degrees of freedom of each run's standard error. The degrees of
    freedom are finite for runs that are not paired, for rows in clusters, and for values at an end
    of their range. In all other cases, the degrees of freedom are infinite.
    ``rows``: paired differences in a single metric, in the order of `psi`.
    """

    values: FloatArray
    covariance: FloatArray
    folded: bool
    known: BoolArray
    unpaired: dict[int, str]
    psi: FloatArray
    places: IntArray
    actual: IntArray | None
    design: Design
    alone: FloatArray
    rows: Paired | None

    def degrees(self) -> FloatArray:
        """Return the degrees of freedom of all differences in a single metric, shape (R, R)."""
        degrees = np.minimum.outer(self.alone, self.alone)
        # The statistics of paired rows already take the degrees of freedom into account.
        if self.rows is None and len(self.places[0]):
            inside = np.ix_(self.places[0], self.places[0])
            of_rows = self.design.degrees(self.psi, self.actual, self.folded)
            degrees[inside] = np.minimum(degrees[inside], of_rows)
        return degrees

    def without_rows(self) -> Evidence:
        """Return the values and their covariance, without the large arrays of the rows."""
        return replace(self, psi=np.empty((0, 0)), actual=None, design=Design(0), rows=None)

    def of_metric(self, m: int) -> tuple[FloatArray, FloatArray]:
        """Return the values (R,) of a metric and the covariance (R, R) of their errors."""
        return self.values[:, m], self.covariance[:, m, :, m]


def gather(evaluations: Sequence[BaseEvaluation], criterion: Criterion) -> Evidence:
    """Collect the values of a criterion's metrics and the covariance of their errors.

    Runs that still contain their rows are paired with each other, and their errors are computed
    from the influence values of these rows. The errors of a run without rows are treated as
    independent of all other errors, so its differences seem less precise than they are.

    ``evaluations``: evaluations of the same data, for which all metrics of the criterion are
    defined.
    """
    size = len(evaluations)
    names = criterion.metrics
    folded = criterion.single and criterion.direction == "nearest zero"
    values = np.array(
        [[evaluation.metrics[name] for name in names] for evaluation in evaluations]
    ).reshape(size, -1)
    signs = np.ones(values.shape) if folded else gain_signs(values, criterion)
    unpaired = unpaired_among(evaluations)
    covariance = np.zeros((size, len(names), size, len(names)))
    paired_runs = [r for r in range(size) if r not in unpaired]
    columns: list[FloatArray] = []
    places: list[tuple[int, int]] = []
    has_error = np.ones(size, dtype=bool)
    alone = np.full(size, math.inf)
    for (r, evaluation), (m, name) in product(enumerate(evaluations), enumerate(names)):
        influence = evaluation.influence(name) if r in paired_runs else None
        if influence is not None and np.isfinite(influence).all():
            columns.append(influence * signs[r, m])
            places.append((r, m))
            continue
        error = own_error(evaluation, name)
        if math.isfinite(error):
            covariance[r, m, r, m] = error**2
        else:
            has_error[r] = False
        alone[r] = min(alone[r], own_degrees(evaluation, name))
        if r in paired_runs:
            unpaired.setdefault(r, why_no_error(evaluation, name))
    psi = np.empty((0, 0))
    columns_of = np.array(places, dtype=np.int64).reshape(-1, 2).T
    actual = None
    design = Design(0)
    if columns:
        first = evaluations[paired_runs[0]]
        if isinstance(first.rows, Predictions):
            actual = first.rows.actual
        psi = np.column_stack(columns)
        design = design_of_rows(first)
        run, metric = columns_of
        covariance[run[:, None], metric[:, None], run, metric] = design.covariance(psi)
    paired = None
    if columns and criterion.single and not folded:
        sides = [evaluations[r] for r in columns_of[0].tolist()]
        paired = paired_by(sides, names[0], psi * signs[0, 0], design)
        if signs[0, 0] < 0:
            paired = paired.larger_is_better()
    # Paired shares already have intervals for values of 0 and 1.
    if paired is None or paired.shares is None:
        _add_ends(covariance, alone, evaluations, names, places)
    return Evidence(
        values=values * signs,
        covariance=covariance,
        folded=folded,
        known=has_error,
        unpaired=unpaired,
        psi=psi,
        places=columns_of,
        actual=actual,
        design=design,
        alone=alone,
        rows=paired,
    )


def _add_ends(
    covariance: FloatArray,
    alone: FloatArray,
    evaluations: Sequence[Any],
    names: Sequence[str],
    places: Iterable[tuple[int, int]],
) -> None:
    """Add the standard errors of shares of exactly 0 or 1, which the rows cannot reveal.

    Runs with identical predictions have the same standard error, and their errors are equal.
    ``covariance`` and ``alone`` are changed in place.
    """
    errors = {}
    for r, m in places:
        error, degrees, is_share = at_end(evaluations[r], names[m])
        if is_share:
            errors[r, m] = error
            alone[r] = min(alone[r], degrees)
    for (r, m), (s, other) in product(errors, errors):
        if m != other:
            continue
        name = names[m]
        if r == s or np.array_equal(evaluations[r].answers(name), evaluations[s].answers(name)):
            covariance[r, m, s, m] += errors[r, m] * errors[s, m]


def gain_signs(values: FloatArray, criterion: Criterion) -> FloatArray:
    """Return the signs that make larger values better, shape (R, M).

    If values nearest to zero are best, the signed value is minus the distance from zero.
    """
    signs = np.ones(values.shape)
    for m, name in enumerate(criterion.metrics):
        better = criterion.catalog.lookup(name).better
        if better == "nearest zero":
            signs[:, m] = np.where(values[:, m] < 0, 1.0, -1.0)
        elif better != "higher":
            signs[:, m] = -1.0
    return signs
