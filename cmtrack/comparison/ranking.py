"""Rankings: one type for runs and for models over repetitions, and the ranking of runs.

Runs are ranked here, by the covariance of their errors on the same rows; models over repetitions,
by their values in each block, in :mod:`cmtrack.comparison.blocks`. Both make `Ranked` entries and
settle them by :func:`decided`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtr

from cmtrack._lazy import cached_property
from cmtrack.base import BaseEvaluation
from cmtrack.comparison import inference
from cmtrack.comparison.comparability import Traits, design_of_rows, split, unpaired_among
from cmtrack.comparison.constant import ConstantAnswer, constant_of_runs
from cmtrack.comparison.criterion import Criterion
from cmtrack.comparison.differences import at_end, own_degrees, own_error, paired_by, why_no_error
from cmtrack.comparison.run import Candidate
from cmtrack.comparison.tie_breakers import Decision, TieBreaker, decide
from cmtrack.evaluation import Evaluation
from cmtrack.metrics.paired import NO_ROW_DIFFERS, Paired
from cmtrack.removed import RemovedAttributes
from cmtrack.statistics.design import Design
from cmtrack.statistics.inputs import BoolArray, FloatArray, IntArray
from cmtrack.statistics.predictions import Predictions

NAN = math.nan


@dataclass(frozen=True, eq=False)
class Ranked(Candidate, RemovedAttributes):
    """A run, or a model over repetitions, and its standing.

    Attributes
    ----------
    rank : int
        1 is best; runs of equal value share a rank. On a Pareto front the front's number.
    value, low, high : float
        Value of the metric, with the run's own interval. NaN for a Pareto front. For a model the
        mean over its blocks, without an interval.
    difference, difference_low, difference_high : float
        For a run: this run less the best other one, which is the leader, or for the leader the next
        (for "nearest zero": of the distances from zero). Runs without any difference count as one.
        The intervals are simultaneous. The end on the side of the better values is exactly 0 where
        the run is ruled out as the best; the leader's other end is exactly 0 where no other run may
        be the best. NaN for a single run. For a model: this model less the leader. The interval
        holds for all pairs of models at once (Bonferroni).
    pvalue, p_holm : float
        That the difference is zero: unadjusted, and adjusted over all pairs.
    p_set : float
        The p-value that decides: the run is ruled out as the best where this is at most one less
        the confidence level. For runs, of being the best, by multiple comparisons with the best.
        For models it is `p_holm`, too. NaN for a Pareto front.
    standard_error : float
        Of the difference.
    within_margin : bool
        Whether a tie-breaker may choose it: it is tied with the leader, and within the margin.
    tied : bool
        Whether it may be the best; else it is ruled out. On a Pareto front: whether no other run
        beats it.
    chosen : bool
        Whether it is the one to take.
    adjusted_low, adjusted_high : float
        The interval of the leader and of the chosen run, which allows for their selection from the
        others. NaN for all others.
    values : dict of str to float
        Of each of the criterion's metrics.
    p_max_t : float
        That the difference of a run is zero, adjusted over all pairs of runs by max-T.
    probability_best, expected_rank : float
    rank_low, rank_high : int
        Posterior of the rank of a run, given the values and how far they spread; NaN, with ranks up
        to the last, for fewer than three distinct runs or where an error is unknown. `rank_low` is
        1 exactly where the run may be the best. A Pareto front has none.
    by_block : tuple of Candidate
        For a model one run for each block, the best first; its own run is the first of them, under
        the model's name and with the mean of what they logged.
    sd : float
        Standard deviation of a model over its blocks.
    unpaired : str
        Why the differences of a run do not use the rows; empty where they do.
    equivalent_within : float
        The margin within which a run is shown to be as good as the leader, by two one-sided tests;
        NaN where it is not.
    reason : str
        Why its difference has no interval: "no row differs".

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

    @property
    def runs(self) -> tuple[Candidate, ...]:
        """The run itself; of a model its runs."""
        return self.by_block or (self,)

    @property
    def picked(self) -> bool:
        """True if the displayed interval allows for the selection of the run."""
        return math.isfinite(self.adjusted_low) and math.isfinite(self.adjusted_high)

    @property
    def interval(self) -> tuple[float, float]:
        """The interval to show."""
        if self.picked:
            return self.adjusted_low, self.adjusted_high
        return self.low, self.high

    @property
    def metrics(self) -> dict[str, float]:
        """The metrics of the evaluation; of a model their means over its runs."""
        if self.by_block:
            return means([run.evaluation.metrics for run in self.by_block])
        return self.evaluation.metrics


@dataclass(frozen=True, eq=False)
class RankedRun(Ranked):
    """A run and its standing; see :class:`Ranked`.

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
    """Return the means of what all tables have."""
    names = set.intersection(*map(set, tables))
    return {name: float(np.mean([table[name] for table in tables])) for name in names}


@dataclass(frozen=True, eq=False)
class Ranking:
    """Runs that were judged on the same data in the same way, or models over repetitions.

    Attributes
    ----------
    runs : tuple of RankedRun, or of RankedModel
        Best first.
    criterion : Criterion
    confidence_level : float
    decision : Decision
        What chose among the tied ones within the margin, by their place among them.
    margin : float or None
        What a tie-breaker may give up against the leader; None: one standard error of each one's
        difference.
    constants : tuple of ConstantAnswer
        For each metric of the criterion the best constant answer, and what the best run gains over
        it, with the p-value of each run, adjusted by Holm over all of them. For models its mean
        over the blocks, and their gains.
    rank_distribution : ndarray of shape (R, R)
        ``[run, rank - 1]``: posterior probability, in the order of ``runs``; NaN where there is
        none.
    pvalues : ndarray of shape (R, R)
        Of all pairs of runs, adjusted by max-T.
    pair_intervals : ndarray of shape (2, R, R)
        Low and high ends of all differences, row less column, which hold together; NaN where there
        are none.
    picked_from : int
        Number of runs that the leader was chosen from, and that its interval allows for: the ranked
        ones, those that a gate stopped and those that were not read; 1 where it does not.
    stopped : tuple of Candidate
        The runs of the same data, with values of the criterion's metrics, that a gate stopped.
    equivalence : float or None
        The margin of equivalence that was asked for.

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

    @property
    def over(self) -> str:
        """The repetitions in words, such as "10 folds"; empty where runs are ranked."""
        return ""

    @property
    def standings(self) -> tuple[Ranked, ...]:
        """The runs or the models, best first."""
        return self.runs

    @property
    def leader(self) -> Ranked:
        """The one of the best value."""
        return self.runs[0]

    @cached_property
    def chosen(self) -> Ranked | None:
        """The one to take: the leader, or one within the margin that the tie-breakers name.

        None in a ranking that the comparison does not decide by.
        """
        return next((run for run in self.runs if run.chosen), None)

    @property
    def foremost(self) -> Ranked:
        """The one to take; the leader where none is."""
        return self.chosen or self.leader

    @property
    def tied(self) -> tuple[Ranked, ...]:
        """Those that may be the best: the leader and those not significantly worse."""
        return tuple(run for run in self.runs if run.tied)

    @property
    def paired(self) -> bool:
        """True if all differences are paired, row by row."""
        return len(self.runs) > 1 and not any(run.unpaired for run in self.runs)

    @property
    def evaluation(self) -> BaseEvaluation:
        """Evaluation of the leader, for what all runs share, such as labels and grouping."""
        return self.leader.evaluation


def decided(
    entries: Sequence[Ranked],
    criterion: Criterion,
    tie_breakers: Sequence[TieBreaker],
    margin: float | None,
    choose: bool = True,
) -> tuple[tuple[Ranked, ...], Decision]:
    """Return the entries with what a tie-breaker may choose and what is chosen, and the decision.

    ``entries``: best first, and so is the result.
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
    """Return the metrics of an entry that tie-breakers may compare with those of the near ones.

    An average over fewer classes than another entry's average becomes NaN.
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
    """Return whether a tie-breaker may name a run, or a model."""
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
    return loss <= 0  # Without a known error nothing but an equal value is near.


def cohorts(candidates: Iterable[Candidate], read: frozenset[str]) -> list[list[Candidate]]:
    """Return the groups that may be ranked: most rows first, parents before children.

    ``read``: from :func:`~cmtrack.comparison.criterion.read_by`.
    """
    candidates = list(candidates)
    depths = _depths(candidates)

    def sort_key(group: Sequence[Candidate]) -> tuple[int, int, tuple[str, str]]:
        # The last key only makes the result independent of the order of the runs.
        return -_count_rows(group), _least_depth(group, depths), min(map(identity, group))

    groups = split(candidates, lambda candidate: Traits.of(candidate.evaluation), read)
    return sorted(groups, key=sort_key)


def decides(groups: Sequence[Sequence[Candidate]]) -> bool:
    """Return whether the first group decides: has the most rows, or is the parent of the next."""
    if len(groups) < 2 or _count_rows(groups[0]) > _count_rows(groups[1]):
        return bool(groups)
    depths = _depths([candidate for group in groups for candidate in group])
    return _least_depth(groups[0], depths) < _least_depth(groups[1], depths)


def _count_rows(group: Sequence[Candidate]) -> int:
    return max(candidate.evaluation.statistics.digest.rows for candidate in group)


def _least_depth(group: Sequence[Candidate], depths: Mapping[str, int]) -> int:
    return min(depths[candidate.run_id] for candidate in group)


def _depths(candidates: Iterable[Candidate]) -> dict[str, int]:
    """Return the number of other candidates in which each one is nested, by run id."""
    parents = {candidate.run_id: candidate.run.parent_run_id for candidate in candidates}
    depths = {}
    for run_id, parent in parents.items():
        ancestors: list[str] = []
        # A run that is nested in itself, as a broken store may have it, must not loop for ever.
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
    """Rank runs of the same data.

    ``candidates``: at least one; of the same rows, with all of the criterion's metrics defined, and
    evaluations at this confidence level.
    ``margin``: see :func:`cmtrack.compare`.
    ``choose``: whether a run is chosen; False for one of several rankings that is not the one to
    decide by.
    ``others``: number of runs that were passed over for their logged values; the leader was
    selected from them, too.
    ``stopped``: runs of the same rows that a gate stopped: they are not ranked, but the leader was
    selected from them.

    Everything follows from the covariance of the runs' errors by normal theory. The tied set holds
    the runs that may be the best by multiple comparisons with the best (Hsu 1984, 1996) in two
    steps (:func:`cmtrack.comparison.inference.pairs`): it contains the best run with at least the
    confidence level. Of runs that are exactly equal it may leave some out: it says which runs may
    be the best, not which are equal. P(best) and the ranks are the posterior of runs whose true
    values are exchangeable, N(μ, τ²) with flat μ and τ. The interval of the leader, and of a chosen
    run that does not lead, allows for the selection. The draws do not depend on the order of
    ``candidates``: they are made in the order of the runs' ids.

    That runs are not shown to differ does not make them equal. A tie-breaker therefore chooses only
    among tied runs within a margin of the leader: by default one standard error of the paired
    difference, the rule by which Breiman, Friedman, Olshen and Stone (1984, section 3.4.3) take the
    smallest tree; with ``margin`` those that are shown not to be worse than the best by more than
    it (non-inferiority: the lower end of the interval of the difference from the best other run is
    at least ``-margin``; as these intervals hold together, whichever run is then chosen). On a
    Pareto front, which has no one difference, among the runs of the front itself.
    """
    candidates = sorted(candidates, key=identity)
    evidence = gather([candidate.evaluation for candidate in candidates], criterion)
    if criterion.pareto:
        entries, arrays = _pareto(candidates, criterion, evidence)
    else:
        entries, arrays = _single(candidates, criterion, evidence, confidence_level, seed)
    runs, decision = decided(entries, criterion, tie_breakers, margin, choose)
    stopped = tuple(sorted(stopped, key=identity))
    picked_from = 1 if criterion.pareto else len(runs) + len(stopped) + others
    if picked_from > 1:
        everyone = evidence
        if stopped:
            pool = sorted([*candidates, *stopped], key=identity)
            everyone = gather([candidate.evaluation for candidate in pool], criterion)
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
        **arrays,
    )


def judged_by(
    candidates: Sequence[Candidate], criterion: Criterion, confidence_level: float, seed: int
) -> list[Ranked]:
    """Return the runs by one other metric, best first, as :func:`rank` tests them.

    None of them is chosen.
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
    """Return the constant answer for each metric, and what each run gains over it."""
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


Standings = tuple[list[Ranked], dict[str, Any]]


def _single(
    candidates: Sequence[Candidate],
    criterion: Criterion,
    evidence: Evidence,
    level: float,
    seed: int,
) -> Standings:
    """Rank runs by one metric: entries, best first, and the arrays of their ranking."""
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
    return entries, tests.arrays(unit)


def _test(
    evidence: Evidence, order: IntArray, criterion: Criterion, level: float, seed: int
) -> _Tests:
    """Test runs, given in the order of their values, in a single metric."""
    values, covariance = evidence.of_metric(0)
    values = values[order]
    covariance = covariance[np.ix_(order, order)]
    has_error = evidence.known[order]
    # Runs that are paired by their rows, which have statistics of their own.
    row_runs = np.flatnonzero(np.isin(order, evidence.places[0]))
    rows = evidence.rows
    if rows is not None:
        rows = rows.take(np.searchsorted(evidence.places[0], order[row_runs]))
    pairs = inference.pairs(
        values,
        covariance,
        # Each draw counts with both signs.
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
    """The tests of R runs in a single metric, best first.

    ``ranks``: None if the spread of the true values cannot be learned from the runs.
    ``has_error``, of shape (R,), bool: runs whose error is known.
    ``rows``: the paired differences of the runs at the places ``row_runs``.
    """

    pairs: inference.Pairs
    ranks: inference.Ranks | None
    has_error: BoolArray
    rows: Paired | None
    row_runs: IntArray

    def is_tested(self, place: int) -> bool:
        """Return whether a run is tested against the leader."""
        return bool(self.has_error[place] and self.has_error[0])

    def difference_fields(self, place: int, unit: float) -> dict[str, Any]:
        """Return what an entry says of its difference from the best other run."""
        pairs = self.pairs
        rival = int(pairs.rival[place])
        has_rival = len(self.has_error) > 1
        reason = self._why_no_interval(place, rival) if has_rival else ""
        fields: dict[str, Any] = {"reason": reason}
        if has_rival:
            # Adding 0 removes the sign of a negative 0, here and below.
            fields["difference"] = float(unit * pairs.difference[place, rival]) + 0.0
        if self.is_tested(place):
            fields["p_set"] = float(pairs.may_be_best[place])
        # A lead is over all other runs, so the errors of all of them must be known.
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
        """Return what an entry says of its rank.

        The test says which runs may be first, the posterior says the rest.
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
        """Return the arrays of a ranking of the runs."""
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
        """Return why the difference of a run from its rival has no interval; empty if it has."""
        if place == rival:  # It does not differ from any other run.
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
    """Return the runs, with intervals of the leader and the chosen one that allow for selection.

    ``evidence``: of all runs that the leader was selected from, those that a gate stopped among
    them.

    It is the run's own interval, on the metric's scale, at the level of which the quantile against
    the selection is the ordinary one. The end that no selection of the best value can move stays as
    it is.
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
    """Return the run's own interval with another normal quantile."""
    options: dict[str, Any] = {"confidence_level": 2 * float(ndtr(quantile)) - 1}
    if isinstance(run.evaluation, Evaluation):
        options["sections"] = (metric,)  # Recomputing all metrics takes 30 ms.
    return run.evaluation.asking(**options).intervals.get(metric, (NAN, NAN))


def _pareto(candidates: Sequence[Candidate], criterion: Criterion, evidence: Evidence) -> Standings:
    """Rank runs by their fronts.

    Nothing is tested: a run is dominated or not by the values alone.
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
    """Return which runs are on the front of values (R, M), shape (R,).

    No other run is at least as good in all metrics and better in one.
    """
    own = values[:, None, :]
    other = values[None, :, :]
    dominated = (other >= own).all(axis=-1) & (other > own).any(axis=-1)
    return np.asarray(~dominated.any(axis=-1))


def _fronts(values: FloatArray) -> IntArray:
    """Return the number of each run's front: 1 is dominated by none, 2 by the first only."""
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
    """R runs in M metrics.

    ``values``, of shape (R, M): larger is better, except where ``folded``.
    ``covariance``, of shape (R, M, R, M): of the errors; 0 between runs that are not paired.
    ``folded``: a single metric that is best nearest to zero, with its sign.
    ``known``, of shape (R,), bool: whether the error of each metric is known.
    ``unpaired``: why a run is not paired with the others, by its place.
    ``psi``, of shape (n, C): influence values of the paired rows, in the same direction as the
    values.
    ``places``, of shape (2, C), int64: run and metric of each column.
    ``actual``, of shape (n,) or None: classes of these rows.
    ``design``: of these rows.
    ``alone``, of shape (R,): degrees of freedom of errors of runs that are not paired, of clusters,
    and of values at an end of their range; else infinite.
    ``rows``: what the paired rows say of differences in a single metric, in the order of `psi`.
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
        """Return degrees of freedom of the differences' errors in a single metric, (R, R)."""
        degrees = np.minimum.outer(self.alone, self.alone)
        # The statistics of paired rows have degrees of their own.
        if self.rows is None and len(self.places[0]):
            inside = np.ix_(self.places[0], self.places[0])
            of_rows = self.design.degrees(self.psi, self.actual, self.folded)
            degrees[inside] = np.minimum(degrees[inside], of_rows)
        return degrees

    def of_metric(self, m: int) -> tuple[FloatArray, FloatArray]:
        """Return values (R,) and covariance (R, R) of one metric."""
        return self.values[:, m], self.covariance[:, m, :, m]


def gather(evaluations: Sequence[BaseEvaluation], criterion: Criterion) -> Evidence:
    """Return values and errors of a criterion's metrics.

    Runs that kept their rows are paired with each other: their errors come from the influence
    values of the same rows. Any other run's error stands for itself, which makes its differences
    look less certain than they are.

    ``evaluations``: of the same data, with all of the criterion's metrics defined.
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
    # Paired shares have intervals of their own at 0 and 1.
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
    """Add the errors of shares of 0 or 1 of the predicted rows, which no row moves.

    Runs with equal answers share this error. ``covariance`` and ``alone`` are changed in place.
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

    For a metric that is best nearest to zero they give minus the distance.
    """
    signs = np.ones(values.shape)
    for m, name in enumerate(criterion.metrics):
        better = criterion.catalog.lookup(name).better
        if better == "nearest zero":
            signs[:, m] = np.where(values[:, m] < 0, 1.0, -1.0)
        elif better != "higher":
            signs[:, m] = -1.0
    return signs
