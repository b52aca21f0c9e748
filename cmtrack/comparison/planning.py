"""Resolution of a test set, equivalence of runs, and the part of the highest value that choosing it is worth."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri

from cmtrack.base import BaseEvaluation
from cmtrack.comparison import inference
from cmtrack.comparison.criterion import Criterion
from cmtrack.comparison.differences import own_error, paired_differences
from cmtrack.comparison.ranking import Ranked, Ranking, gather
from cmtrack.comparison.run import Candidate
from cmtrack.digits import count, significant, significant_with_interval
from cmtrack.evaluation import Evaluation
from cmtrack.evaluation.gates import OPERATORS
from cmtrack.metrics.intervals import normal_quantile
from cmtrack.statistics.inputs import FloatArray
from cmtrack.statistics.predictions import Predictions

if TYPE_CHECKING:
    import pandas as pd

POWER = 0.8
FEWEST_TO_BE_EQUIVALENT = 20
"""Rows of a class, fewer of which show no equivalence: the error of an area or a correlation is too rough there."""


@dataclass(frozen=True)
class Resolution:
    """Differences that the rows of a ranking can detect, from the errors of the differences alone.

    Attributes
    ----------
    rows : float
        Rows that the runs were judged on.
    errors : dict of str to float
        Standard error of each other run's difference from the leader, by name, in the order of the
        ranking.
    differences : dict of str to float
        These differences.
    quantile : float
        Normal quantile that a difference must reach: of two sides, of more than two runs for all of
        them (max-T).

    Examples
    --------
    >>> from cmtrack import compare, evaluate
    >>> y = [0, 1] * 100
    >>> runs = {"forest": evaluate(y, [0, 1] * 90 + [1, 0] * 10), "linear": evaluate(y, [0, 1] * 89 + [1, 0] * 11)}
    >>> resolution = compare(runs, rank_by="multiclass/accuracy").resolution
    >>> round(resolution.smallest_difference, 3), round(resolution.rows_for(0.01))
    (0.02, 777)
    """

    rows: float
    errors: Mapping[str, float]
    differences: Mapping[str, float]
    quantile: float

    @property
    def _reach(self) -> float:
        return self.quantile + float(ndtri(POWER))

    @property
    def smallest_difference(self) -> float:
        """The smallest true difference of the leader from the next run that is detected with 80 % power."""
        return self._reach * next(iter(self.errors.values()), math.nan)

    def rows_for(self, difference: float, run: str | None = None) -> float:
        """Rows, in all, that detect a true difference with 80 % power.

        Parameters
        ----------
        difference : float
            Above 0, in units of the metric.
        run : str, optional
            From the leader; by default the next one.

        Raises
        ------
        ValueError
            If the difference is not above 0, or no run has that name.

        Notes
        -----
        ``n = (z + z_.8)^2 s^2 / d^2``, s^2 the rows times the squared standard error of the
        difference.
        """
        if not (isinstance(difference, numbers.Real) and 0 < difference < math.inf):
            raise ValueError(f"difference must be a finite number above 0, got {difference!r}")
        if run is not None and run not in self.errors:
            raise ValueError(f"run must be one of {list(self.errors)[:10]}, got {run!r}")
        error = self.errors[run] if run is not None else next(iter(self.errors.values()), math.nan)
        return self.rows * (self._reach * error / difference) ** 2

    def rows_more(self, run: str) -> float:
        """Further rows needed to detect the observed difference, if it is the true one, with 80 % power.

        0 where these rows show it, NaN without a difference.
        """
        seen = abs(self.differences[run])
        return (
            float(np.ceil(max(self.rows_for(seen, run) - self.rows, 0.0))) if seen > 0 else math.nan
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data."""
        more = {name: self.rows_more(name) for name in self.errors}
        return {
            "rows": self.rows,
            "smallest_difference": self.smallest_difference,
            "rows_more": more,
        }

    def to_frame(self) -> pd.DataFrame:
        """One row a run but the leader.

        Returns
        -------
        DataFrame
            name, difference (from the leader), standard_error, smallest_difference, and rows_more,
            further rows that would show a true difference of this size, 0 where these show it and
            NaN without a difference.
        """
        from cmtrack._pandas import pd

        rows = []
        for name, error in self.errors.items():
            rows.append(
                (name, self.differences[name], error, self._reach * error, self.rows_more(name))
            )
        columns = ["name", "difference", "standard_error", "smallest_difference", "rows_more"]
        return pd.DataFrame(rows, columns=columns)

    def __repr__(self) -> str:
        return (
            f"Resolution({count(self.rows)} rows show a difference of "
            f"{significant(self.smallest_difference)} in {100 * POWER:g} % of all cases)"
        )


def rows_of_one(evaluation: BaseEvaluation, metric: str, difference: float) -> tuple[float, float]:
    """Rows that detect a true difference from another model, if its errors correlate with these by .9, and by 0.

    Raises
    ------
    ValueError
        If the difference is not above 0, or the metric has no standard error.
    """
    error = evaluation.standard_errors.get(metric, math.nan)
    if not error > 0:
        raise ValueError(f"a plan needs the standard error of {metric!r}, and there is none")
    quantile = normal_quantile(evaluation.confidence_level)
    apart = {share: error * math.sqrt(2 * (1 - share)) for share in (0.9, 0.0)}
    low, high = (
        Resolution(float(evaluation.n_samples), {"": one}, {"": math.nan}, quantile).rows_for(
            difference
        )
        for one in apart.values()
    )
    return low, high


def resolution_of(ranking: Ranking | None, seed: int = 0) -> Resolution:
    """The resolution of a ranking of runs.

    ValueError if it is of models, of several metrics side by side, or of a single run.
    """
    if ranking is None or ranking.over or ranking.criterion.pareto or len(ranking.runs) < 2:
        raise ValueError(
            "a resolution is of two runs or more that are ranked by one number, got "
            f"{ranking!r:.80}"
        )
    # a run that answers alike has no interval
    apart = np.asarray(np.isfinite(ranking.pair_intervals[:, 0]).all(axis=0))
    rivals = zip(ranking.runs[1:], apart[1:], strict=True)
    others = [run for run, differs in rivals if differs and run.standard_error > 0]
    level = ranking.confidence_level
    reach = normal_quantile(1 - (1 - level) / max(len(others), 1))  # Bonferroni's
    if len(others) > 1:
        evidence = gather([run.evaluation for run in (ranking.leader, *others)], ranking.criterion)
        if evidence.known.all() and not evidence.folded:
            errors = inference.error_draws(evidence.of_metric(0)[1], seed=seed)
            away = errors[:, 1:] - errors[:, :1]
            spread = away.std(axis=0)
            largest = np.abs(away[:, spread > 0] / spread[spread > 0]).max(axis=1, initial=0.0)
            reach = float(np.clip(np.quantile(largest, level), normal_quantile(level), reach))
    of_runs = (
        {run.name: run.standard_error for run in others},
        {run.name: run.difference for run in others},
    )
    return Resolution(float(ranking.evaluation.n_samples), *of_runs, reach)


# -- equivalence -------------------------------------------------------------------------------------------


def with_equivalence(ranking: Ranking, margin: float) -> Ranking:
    """The ranking with runs marked that are shown to be equivalent to the leader within the margin.

    The interval of the paired difference at ``1 - 2 alpha`` must lie within it, so that both
    one-sided tests reject. No run is marked if the metric rests on fewer than
    :data:`FEWEST_TO_BE_EQUIVALENT` rows of a class, or a share on fewer rows.
    """
    leader, metric = ranking.leader, ranking.criterion.metrics[0]
    level = 2 * ranking.confidence_level - 1

    def shown(run: Ranked) -> Ranked:
        fewest = min(_fewest_rows(one.evaluation, metric) for one in (run, leader))
        if run is leader or fewest < FEWEST_TO_BE_EQUIVALENT:
            return run
        gap = paired_differences(
            run.evaluation, leader.evaluation, metrics=[metric], confidence_level=level
        )[metric]
        return (
            replace(run, equivalent_within=margin)
            if -margin < gap.low and gap.high < margin
            else run
        )

    return replace(ranking, runs=tuple(map(shown, ranking.runs)), equivalence=margin)


def _fewest_rows(evaluation: BaseEvaluation, metric: str) -> float:
    """Effective number of rows of a share, else of the smallest class that has rows; of clusters theirs if fewer."""
    if not isinstance(evaluation, Evaluation):
        return float(evaluation.n_samples)
    of_share = evaluation.size_of(metric)
    if math.isfinite(of_share):
        return of_share
    rows, statistics = evaluation.rows, evaluation.statistics
    if isinstance(rows, Predictions) and rows.design.has_clusters:
        counted = rows.design.counted
        of_cluster = np.unique(
            np.column_stack((rows.actual[counted], rows.design.units[counted])), axis=0
        )
        return float(np.unique(of_cluster[:, 0], return_counts=True)[1].min())
    totals = statistics.counts.map(lambda table: table.sum(axis=1))
    sizes = np.asarray(totals.effective_size(), dtype=np.float64)
    return float(sizes[sizes > 0].min())


# -- the ledger --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Looks:
    """The runs judged on the same rows, and the selection bias of the highest value.

    Attributes
    ----------
    runs : int
        Runs with a value that are known to have been judged on the rows; there may have been more.
    chosen_from : int
        Those that the leader was chosen from here: the ranked ones, those that a gate stopped, and
        those that were not read.
    reviews : int
        Earlier reviews that contain the runs; there may have been more.
    value : float
        The leader's.
    optimism : float
        The part of it that typically comes from the choice, gates included; 0 for a single run.
    corrected : float
        The value less that.
    low, high : float
        Ends of the interval that holds after choosing.

    Examples
    --------
    >>> from cmtrack import compare, evaluate
    >>> y = [0, 1] * 100
    >>> runs = {name: evaluate(y, [0, 1] * k + [1, 0] * (100 - k)) for name, k in (("a", 90), ("b", 89), ("c", 88))}
    >>> looks = compare(runs, rank_by="multiclass/accuracy").looks
    >>> looks.runs, looks.value, looks.low < looks.corrected <= looks.value
    (3, 0.9, True)
    """

    runs: int
    chosen_from: int
    reviews: int
    value: float
    optimism: float
    corrected: float
    low: float
    high: float

    @property
    def among(self) -> str:
        """The runs that the leader was chosen from, and those known to be judged on the same rows, in words."""
        some = "" if self.chosen_from >= self.runs else f"{self.chosen_from} of "
        return f"{some}at least {self.runs} runs judged on these rows"

    def __repr__(self) -> str:
        return (
            f"Looks(highest of {self.among}, of which about {significant(self.optimism, 2)} is "
            f"selection: {significant(self.value)} corrected "
            f"{significant_with_interval(self.corrected, self.low, self.high)})"
        )


def optimism(values: FloatArray, covariance: FloatArray, seed: int = 0) -> float:
    """Expected error of the largest of R values, given the estimated spread of the true ones.

    Parameters
    ----------
    values : ndarray of shape (R,)
        Larger is better.
    covariance : ndarray of shape (R, R)
        Of their errors.
    seed : int

    Notes
    -----
    A bootstrap about values that are shrunk towards their mean until their spread is that of the
    true ones: with the values themselves, which carry the noise once already, a third of the
    optimism would stay. No estimate is unbiased for every truth; of one run that is truly better
    than many equal ones too much is taken off.
    """
    if len(values) < 2:
        return 0.0
    half = inference.error_draws(covariance, inference.N_DRAWS // 2, seed)
    errors = np.concatenate([half, -half])
    best = (_shrunk(values, covariance) + errors).argmax(axis=1)
    return max(float(errors[np.arange(len(errors)), best].mean()), 0.0)


def _shrunk(values: FloatArray, covariance: FloatArray) -> FloatArray:
    """Return values moved towards their mean until their spread is the estimated one of the true values."""
    size = len(values)
    if size < 2:
        return values
    away = values - values.mean()
    variance = np.diag(covariance) - 2 * covariance.mean(axis=1) + covariance.mean()
    part = variance * size / (size - 1)
    spread = max(float(away @ away) / (size - 1) - float(part.mean()), 0.0)
    with np.errstate(invalid="ignore"):
        shrinkage = np.where(spread + part > 0, np.sqrt(spread / (spread + part)), 1.0)
    return np.asarray(values.mean() + away * shrinkage)


def optimism_after_gates(
    pool: Sequence[Candidate], criterion: Criterion, baseline: str = "", seed: int = 0
) -> float:
    """Return the expected error of the best of the runs that pass gates, given the estimated spread of the true values.

    The bootstrap of :func:`optimism`, with the gates replayed in each draw; draws in which no run
    passes do not count. Gates on segments and on flips keep their outcomes, as do those on metrics
    without an error.

    ``pool``: the runs with values and gate results, those that a gate stopped among them.
    ``baseline``: the id of the run that ``.difference`` gates subtract; their outcomes stay if it
    is not in the pool. NaN without known errors, or if no run passes in any draw.
    """
    ids = [candidate.run_id for candidate in pool]
    replayed = [
        place
        for place, result in enumerate(pool[0].gates)
        if _can_be_replayed(place, pool, baseline in ids)
    ]
    of_gates = [pool[0].gates[place].gate.metric for place in replayed]
    names = tuple(dict.fromkeys([criterion.metrics[0], *of_gates]))
    all_of_them = replace(criterion, metrics=names)
    joint = gather([candidate.evaluation for candidate in pool], all_of_them)
    if not joint.known.all():
        return math.nan
    size, width = joint.values.shape
    half = inference.error_draws(
        joint.covariance.reshape(size * width, -1), inference.N_DRAWS // 2, seed
    )
    errors = np.concatenate([half, -half]).reshape(-1, size, width)
    centres = [_shrunk(*joint.of_metric(m)) for m in range(width)]
    drawn = np.stack(centres, axis=-1) + errors
    passes = np.ones(drawn.shape[:2], dtype=bool)
    for place, result in enumerate(pool[0].gates):
        gate, observed = result.gate, [candidate.gates[place] for candidate in pool]
        if place not in replayed:
            passes &= np.array([one.passed for one in observed])
            continue
        m = names.index(gate.metric)
        moved = (drawn[:, :, m] - joint.values[:, m]) * _signs(pool, gate.metric)
        if gate.difference:
            moved = moved - moved[:, [ids.index(baseline)]]
        values = np.array([one.value for one in observed]) + moved
        passes &= OPERATORS[gate.operator](values, gate.bound)
    chosen = np.where(passes, drawn[:, :, 0], -math.inf).argmax(axis=1)
    some = passes.any(axis=1)
    gained = errors[np.arange(len(errors)), chosen, 0][some]
    return max(float(gained.mean()), 0.0) if len(gained) else math.nan


def _can_be_replayed(place: int, pool: Sequence[Candidate], has_baseline: bool) -> bool:
    """True if the gate of a place moves with the errors of its metric: on values, ends or differences of all rows.

    A distance from zero does not move with its sign.
    """
    gate = pool[0].gates[place].gate
    if gate.column or gate.of_flips or gate.absolute or (gate.difference and not has_baseline):
        return False
    for candidate in pool:
        evaluation = candidate.evaluation
        value = evaluation.metrics.get(gate.metric, math.nan)
        if not (math.isfinite(value) and math.isfinite(own_error(evaluation, gate.metric))):
            return False
    return True


def _signs(pool: Sequence[Candidate], metric: str) -> FloatArray:
    """Return for each run the sign that turns a metric back from "larger is better", as :func:`gather` has it."""
    values = np.array([candidate.evaluation.metrics[metric] for candidate in pool])
    better = pool[0].evaluation.catalog.lookup(metric).better
    if better == "nearest zero":
        return np.where(values < 0, 1.0, -1.0)
    return np.full(len(values), 1.0 if better == "higher" else -1.0)


def looks_of(ranking: Ranking, runs: int, reviews: int, seed: int, baseline: str = "") -> Looks:
    """The ledger of a ranking of runs.

    Raises
    ------
    ValueError
        If it is of models, or of no one metric.
    """
    if ranking.over or not ranking.criterion.single:
        raise ValueError(
            "a chosen run is corrected where runs are ranked by one metric, got "
            f"{ranking.criterion}"
        )
    leader = ranking.leader
    gained = math.nan
    if ranking.criterion.direction != "nearest zero":
        pool = sorted([*ranking.runs, *ranking.stopped], key=lambda one: (one.run_id, one.name))
        gained = optimism_after_gates(pool, ranking.criterion, baseline, seed)
    corrected = leader.value - ranking.criterion.unit * gained
    return Looks(
        runs, ranking.picked_from, reviews, leader.value, gained, corrected, *leader.interval
    )
