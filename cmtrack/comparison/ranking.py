"""Rankings: the one type for runs and for models over repetitions, what may be chosen, and the order of runs.

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
from cmtrack.comparison.comparability import Traits, split, unpaired_among
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
    >>> runs = {"forest": evaluate(y, [0, 1] * 90 + [1, 0] * 10), "linear": evaluate(y, [0, 1] * 70 + [1, 0] * 30)}
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
        return (self.adjusted_low, self.adjusted_high) if self.picked else (self.low, self.high)

    @property
    def metrics(self) -> dict[str, float]:
        """The metrics of the evaluation; of a model their means over its runs."""
        return (
            means([run.evaluation.metrics for run in self.by_block])
            if self.by_block
            else self.evaluation.metrics
        )


@dataclass(frozen=True, eq=False)
class RankedRun(Ranked):
    """A run and its standing; see :class:`Ranked`.

    Examples
    --------
    >>> from cmtrack import compare, evaluate
    >>> y = [0, 1] * 100
    >>> runs = {"forest": evaluate(y, [0, 1] * 90 + [1, 0] * 10), "linear": evaluate(y, [0, 1] * 70 + [1, 0] * 30)}
    >>> first, second = compare(runs, rank_by="multiclass/accuracy").runs
    >>> second.name, second.rank, second.value, second.tied
    ('linear', 2, 0.7, False)
    >>> round(second.difference, 2), second.difference_high, round(first.difference, 2), first.difference_low
    (-0.2, 0.0, 0.2, 0.0)
    """


def means(tables: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Means of what all tables have."""
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
    >>> runs = {name: evaluate(y, [0, 1] * k + [1, 0] * (100 - k)) for name, k in (("a", 90), ("b", 89), ("c", 70))}
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
        """Evaluation of the leader, for what all runs share: labels, grouping, positive group, data."""
        return self.leader.evaluation


def decided(
    entries: Sequence[Ranked],
    criterion: Criterion,
    tie_breakers: Sequence[TieBreaker],
    margin: float | None,
    choose: bool = True,
) -> tuple[tuple[Ranked, ...], Decision]:
    """The entries, best first, with what a tie-breaker may choose and what is chosen; and the decision."""
    entries = [
        replace(one, within_margin=_may_be_chosen(one, entries[0], criterion, margin))
        for one in entries
    ]
    near = [one for one in entries if one.within_margin]
    decision = decide([(one.run, _alike(one, near, tie_breakers)) for one in near], tie_breakers)
    taken = near[decision.place] if choose else None
    return tuple(replace(one, chosen=True) if one is taken else one for one in entries), decision


def _alike(
    one: Ranked, near: Sequence[Ranked], tie_breakers: Sequence[TieBreaker]
) -> dict[str, float]:
    """Return the metrics of a run, without a tie-breaker's average over fewer classes than another run's average."""
    metrics = dict(one.metrics)
    for rule in tie_breakers:
        left_out = [
            {name for run in other.runs for name in run.evaluation.classes_passed_over(rule.name)}
            for other in near
        ]
        if left_out[near.index(one)] - set.intersection(*left_out):
            metrics[rule.name] = NAN
    return metrics


def _may_be_chosen(one: Ranked, leader: Ranked, criterion: Criterion, margin: float | None) -> bool:
    """True if a tie-breaker may name a run, or a model."""
    if one is leader or not one.tied:
        return one is leader
    if criterion.pareto:
        return one.rank == 1
    higher = criterion.direction == "higher"
    if margin is None:
        loss = -one.difference if higher else one.difference
        # without a known error nothing but an equal value is near
        return loss <= (one.standard_error if math.isfinite(one.standard_error) else 0.0)
    return bool((-one.difference_low if higher else one.difference_high) <= margin)


def cohorts(candidates: Iterable[Candidate], read: frozenset[str]) -> list[list[Candidate]]:
    """Groups that may be ranked, the one with the most rows first, parents before children.

    ``read``: from :func:`~cmtrack.comparison.criterion.read_by`.
    """
    chosen = list(candidates)
    depth = _depths(chosen)
    # the last key only makes the order the same whatever the order of the runs
    return sorted(
        split(chosen, lambda candidate: Traits.of(candidate.evaluation), read),
        key=lambda part: (
            -_rows(part),
            min(depth[c.run_id] for c in part),
            min(map(identity, part)),
        ),
    )


def decides(parts: Sequence[Sequence[Candidate]]) -> bool:
    """True if the first group decides: it has the most rows, or is the parent of the next ones."""
    if len(parts) < 2 or _rows(parts[0]) > _rows(parts[1]):
        return bool(parts)
    depth = _depths([candidate for part in parts for candidate in part])
    return min(depth[c.run_id] for c in parts[0]) < min(depth[c.run_id] for c in parts[1])


def _rows(part: Sequence[Candidate]) -> int:
    return max(candidate.evaluation.statistics.digest.rows for candidate in part)


def _depths(candidates: Iterable[Candidate]) -> dict[str, int]:
    """Number of other candidates in which each one is nested, by run id."""
    parents = {candidate.run_id: candidate.run.parent_run_id for candidate in candidates}
    out = {}
    for run_id in parents:
        above: list[str] = []
        parent = parents[run_id]
        while parent in parents and parent not in above:
            above.append(parent)
            parent = parents[parent]
        out[run_id] = len(above)
    return out


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
    """The runs by one other metric, best first, as :func:`rank` finds who may be the best; none is chosen."""
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
    """The constant answer for each metric, and what each run gains over it."""
    made = []
    evaluations = {candidate.run_id: candidate.evaluation for candidate in candidates}
    for m, name in enumerate(criterion.metrics):
        best = runs[0] if criterion.single else candidates[int(evidence.values[:, m].argmax())]
        made.append(
            constant_of_runs(evaluations, name, best.run_id, name=best.name, not_tested=others)
        )
    return tuple(filter(None, made))


def identity(candidate: Candidate) -> tuple[str, str]:
    """Default sort key of a candidate: its id, then its name."""
    return candidate.run_id, candidate.name


Standings = tuple[list[Ranked], dict[str, Any]]


def _single(
    candidates: Sequence[Candidate],
    criterion: Criterion,
    evidence: Evidence,
    level: float,
    seed: int,
) -> Standings:
    values, covariance = evidence.of_metric(0)
    closeness = -np.abs(values) if evidence.folded else values
    order = np.lexsort((np.arange(len(values)), -closeness))
    values, covariance, closeness = (
        values[order],
        covariance[np.ix_(order, order)],
        closeness[order],
    )
    # each counts with both signs
    errors = inference.error_draws(covariance, inference.N_DRAWS // 2, seed)
    degrees = evidence.degrees()[np.ix_(order, order)]
    has_error = evidence.known[order]
    widest = criterion.catalog.lookup(criterion.metrics[0]).widest
    # runs that are paired by their rows
    row_runs = np.flatnonzero(np.isin(order, evidence.places[0]))
    rows = evidence.rows
    if rows is not None:
        rows = rows.take(np.searchsorted(evidence.places[0], order[row_runs]))
    pairs = inference.pairs(
        values,
        covariance,
        errors,
        level,
        evidence.folded,
        degrees,
        has_error,
        widest,
        rows,
        row_runs,
    )
    drawn = (
        inference.posterior_draws(values, covariance, seed=seed, level=evidence.folded)
        if has_error.all()
        else None
    )
    ranks = None if drawn is None else inference.ranks(drawn, level, evidence.folded)
    unit = criterion.unit
    out: list[Ranked] = []
    for place, origin in enumerate(order):
        candidate = candidates[origin]
        rival = int(pairs.rival[place])
        tested = bool(has_error[place] and has_error[0])
        # a lead is over all others
        sure = bool(tested and has_error[rival] and (place or has_error.all()))
        why = _without_interval(rows, row_runs, place, rival) if len(order) > 1 else ""
        stated = sure and not why and len(order) > 1
        tested_pair = sure and why in ("", NO_ROW_DIFFERS)
        ends = unit * pairs.best_low[place], unit * pairs.best_high[place]
        tied = bool(pairs.tied[place]) or not tested
        # the test says who may be first, the posterior the rest
        first = 1 if tied else 2 if ranks is None else max(2, int(ranks.low[place]))
        alone = bool(place == 0 and has_error.all() and pairs.tied.sum() == 1)
        last = (1 if alone else len(order)) if ranks is None else max(first, int(ranks.high[place]))
        value = float(values[place]) if evidence.folded else float(unit * values[place])
        low, high = candidate.evaluation.intervals.get(criterion.metrics[0], (NAN, NAN))
        out.append(
            RankedRun(
                candidate.run,
                candidate.evaluation,
                candidate.gates,
                rank=1 + int((closeness > closeness[place]).sum()),
                value=value,
                low=low,
                high=high,
                values={name: candidate.evaluation.metrics[name] for name in criterion.metrics},
                difference=float(unit * pairs.difference[place, rival]) + 0.0
                if len(order) > 1
                else NAN,  # no −0
                difference_low=float(min(ends)) + 0.0 if stated else NAN,
                difference_high=float(max(ends)) + 0.0 if stated else NAN,
                pvalue=float(pairs.pvalue[place, rival]) if tested_pair else NAN,
                p_holm=float(pairs.holm[place, rival]) if tested_pair else NAN,
                p_max_t=float(pairs.max_t[place, rival]) if tested_pair else NAN,
                probability_best=NAN if ranks is None else float(ranks.probability_best[place]),
                expected_rank=NAN if ranks is None else float(ranks.expected[place]),
                rank_low=first,
                rank_high=last,
                p_set=float(pairs.may_be_best[place]) if tested else NAN,
                standard_error=float(pairs.standard_error[place, rival]) if tested_pair else NAN,
                tied=tied,
                reason=why,
                unpaired=evidence.unpaired.get(int(origin), "") if len(order) > 1 else "",
            )
        )
    distribution = np.full((len(order),) * 2, NAN) if ranks is None else ranks.distribution
    both = np.where(has_error[:, None] & has_error, np.stack([pairs.low, pairs.high]), NAN)
    both = (both if unit > 0 else -both[::-1]) + 0.0  # 0 without a sign
    return out, {"rank_distribution": distribution, "pvalues": pairs.max_t, "pair_intervals": both}


def _without_interval(rows: Paired | None, row_runs: IntArray, place: int, rival: int) -> str:
    """The reason why the difference of a run from its rival has no interval; empty where it has one."""
    if place == rival:  # it does not differ from any other run
        return NO_ROW_DIFFERS
    if rows is None or not {place, rival} <= set(row_runs.tolist()):
        return ""
    i, j = np.searchsorted(row_runs, (place, rival)).tolist()
    return rows.reason(i, j)


def _allow_for_selection(
    runs: Sequence[Ranked],
    criterion: Criterion,
    evidence: Evidence,
    level: float,
    seed: int,
    others: int,
) -> tuple[Ranked, ...]:
    """The runs, with intervals of the leader and the chosen one that allow for selection.

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
    out = []
    for place, run in enumerate(runs):
        if place == 0 or run.chosen:
            one_sided = place == 0 and not evidence.folded
            low, high = _at_quantile(run, criterion.metrics[0], of_best if one_sided else of_any)
            if one_sided and criterion.direction == "higher":
                high = run.high
            elif one_sided:
                low = run.low
            run = replace(run, adjusted_low=low, adjusted_high=high)
        out.append(run)
    return tuple(out)


def _at_quantile(run: Ranked, metric: str, quantile: float) -> tuple[float, float]:
    """The run's own interval with another normal quantile."""
    wider = {"confidence_level": 2 * float(ndtr(quantile)) - 1}
    # of a whole one 30 ms
    alone = {"sections": (metric,)} if isinstance(run.evaluation, Evaluation) else {}
    return run.evaluation.asking(**wider, **alone).intervals.get(metric, (NAN, NAN))


def _pareto(candidates: Sequence[Candidate], criterion: Criterion, evidence: Evidence) -> Standings:
    """The runs by their fronts. Nothing is tested: a run is dominated or not by the values alone."""
    size = len(candidates)
    front = _fronts(evidence.values)
    order = np.lexsort((-evidence.values[:, 0], front))
    out: list[Ranked] = []
    for origin in order:
        candidate = candidates[origin]
        out.append(
            RankedRun(
                candidate.run,
                candidate.evaluation,
                candidate.gates,
                rank=int(front[origin]),
                values={name: candidate.evaluation.metrics[name] for name in criterion.metrics},
                rank_low=1,
                rank_high=size,
                tied=bool(front[origin] == 1),
                unpaired=evidence.unpaired.get(int(origin), "") if size > 1 else "",
            )
        )
    unknown = np.full((2, size, size), NAN)
    return out, {"rank_distribution": unknown[0], "pvalues": unknown[0], "pair_intervals": unknown}


def _undominated(values: FloatArray) -> BoolArray:
    """Flags of the runs on the front of values (R, M), (R,): no other is at least as good in all and better in one."""
    ours = values[:, None, :]
    theirs = values[None, :, :]
    dominated = (theirs >= ours).all(axis=-1) & (theirs > ours).any(axis=-1)
    return np.asarray(~dominated.any(axis=-1))


def _fronts(values: FloatArray) -> IntArray:
    """The number of each run's front: 1 is dominated by none, 2 by the first only, and so on."""
    number = np.zeros(len(values), dtype=np.int64)
    remaining = np.arange(len(values))
    step = 1
    while len(remaining):
        first = _undominated(values[remaining])
        number[remaining[first]] = step
        remaining = remaining[~first]
        step += 1
    return number


# -- values and their covariance --------------------------------------------------------------------------------


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
        """Degrees of freedom of the errors of the differences in a single metric, (R, R)."""
        degrees = np.minimum.outer(self.alone, self.alone)
        if self.rows is not None:  # which have their own
            return degrees
        inside = self.places[0]
        if not len(inside):
            return degrees
        of_rows = self.design.degrees(self.psi, self.actual, self.folded)
        degrees[np.ix_(inside, inside)] = np.minimum(degrees[np.ix_(inside, inside)], of_rows)
        return degrees

    def of_metric(self, m: int) -> tuple[FloatArray, FloatArray]:
        """Values (R,) and covariance (R, R) of one metric."""
        return self.values[:, m], self.covariance[:, m, :, m]


def gather(evaluations: Sequence[BaseEvaluation], criterion: Criterion) -> Evidence:
    """Values and errors of a criterion's metrics.

    Runs that kept their rows are paired with each other: their errors come from the influence
    values of the same rows. Any other run's error stands for itself, which makes its differences
    look less certain than they are.

    ``evaluations``: of the same data, with all of the criterion's metrics defined.
    """
    size, names = len(evaluations), criterion.metrics
    folded = criterion.single and criterion.direction == "nearest zero"
    raw = np.array(
        [[evaluation.metrics[name] for name in names] for evaluation in evaluations]
    ).reshape(size, -1)
    betters = [criterion.catalog.lookup(name).better for name in names]
    signs = np.array(
        [
            [
                1.0 if folded else _sign(better, value)
                for better, value in zip(betters, row, strict=True)
            ]
            for row in raw
        ]
    )
    unpaired = unpaired_among(evaluations)
    joint = np.zeros((size, len(names), size, len(names)))
    inside = [r for r in range(size) if r not in unpaired]
    columns: list[FloatArray] = []
    places: list[tuple[int, int]] = []
    has_error, alone = np.ones(size, dtype=bool), np.full(size, math.inf)
    for r, evaluation in enumerate(evaluations):
        for m, name in enumerate(names):
            psi = evaluation.influence(name) if r in inside else None
            if psi is not None and np.isfinite(psi).all():
                columns.append(psi * signs[r, m])
                places.append((r, m))
                continue
            error = own_error(evaluation, name)
            has_error[r] &= math.isfinite(error)
            joint[r, m, r, m] = error**2 if math.isfinite(error) else 0.0
            alone[r] = min(alone[r], own_degrees(evaluation, name))
            if r in inside:
                unpaired.setdefault(r, why_no_error(evaluation, name))
    psi, where = np.empty((0, 0)), np.array(places, dtype=np.int64).reshape(-1, 2).T
    actual = None
    design = Design(0)
    if columns:
        rows = evaluations[inside[0]].rows
        assert rows is not None  # it is paired
        actual = rows.actual if isinstance(rows, Predictions) else None
        psi = np.column_stack(columns)
        design = rows.design
        first, metric = where
        of_rows = design.covariance(psi)
        joint[first[:, None], metric[:, None], first[None, :], metric[None, :]] = of_rows
    paired = None
    if columns and criterion.single and not folded:
        sign, sides = signs[0, 0], [evaluations[r] for r in where[0].tolist()]
        paired = paired_by(sides, names[0], psi * sign, design)
        paired = paired.larger_is_better() if sign < 0 else paired
    if paired is None or paired.shares is None:
        _add_ends(joint, alone, evaluations, names, places)
    return Evidence(
        raw * signs,
        joint,
        folded,
        has_error,
        unpaired,
        psi,
        where,
        actual,
        design,
        alone,
        paired,
    )


def _add_ends(
    joint: FloatArray, alone: FloatArray, evaluations: Any, names: Any, places: Any
) -> None:
    """Add to the covariance the errors of shares of 0 or 1 of the rows that each run predicts, which no row moves."""
    ends = {(r, m): at_end(evaluations[r], names[m]) for r, m in places}
    shares = [place for place, (*_, share) in ends.items() if share]
    for (r, m), (s, other) in product(shares, shares):
        alone[r] = min(alone[r], ends[r, m][1])
        if m == other and (
            r == s or np.array_equal(*(evaluations[k].answers(names[m]) for k in (r, s)))
        ):
            joint[r, m, s, m] += ends[r, m][0] * ends[s, m][0]


def _sign(better: str, value: float) -> float:
    """Sign that makes larger better; nearest to zero, it gives minus the distance."""
    if better == "nearest zero":
        return 1.0 if value < 0 else -1.0
    return 1.0 if better == "higher" else -1.0
