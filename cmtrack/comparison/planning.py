"""Size of differences that a test set can detect, equivalence of runs, and selection bias."""

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
from cmtrack.comparison.differences import own_error, paired_differences
from cmtrack.comparison.ranking import Ranking, gain_signs, gather, identity
from cmtrack.comparison.run import Candidate
from cmtrack.digits import count, significant, significant_with_interval
from cmtrack.evaluation import Evaluation
from cmtrack.evaluation.gates import OPERATORS, Gate
from cmtrack.metrics.intervals import POWER, further_rows, normal_quantile
from cmtrack.statistics.inputs import FloatArray
from cmtrack.statistics.predictions import Predictions

if TYPE_CHECKING:
    import pandas as pd

FEWEST_TO_BE_EQUIVALENT = 20
"""Fewest rows of a class for which standard errors are accurate enough to test equivalence."""


@dataclass(frozen=True)
class Resolution:
    """Sizes of differences that a test set can detect, computed from standard errors.

    Attributes
    ----------
    rows : float
        Number of rows that the runs were evaluated on.
    errors : dict of str to float
        Standard error of the difference between the leader and each other run, by name, in the
        order of the ranking.
    differences : dict of str to float
        Difference of each other run from the leader, by the run's name.
    quantile : float
        Normal quantile that a difference, divided by its standard error, must reach to be
        significant. The quantile is two-sided. If there are more than two runs, the quantile
        accounts for all comparisons at once (max-T).

    Examples
    --------
    >>> from cmtrack import compare, evaluate
    >>> y = [0, 1] * 100
    >>> forest = evaluate(y, [0, 1] * 90 + [1, 0] * 10)
    >>> linear = evaluate(y, [0, 1] * 89 + [1, 0] * 11)
    >>> runs = {"forest": forest, "linear": linear}
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
        """Smallest true difference from the next run that is detected with 80% power."""
        return self._reach * self._error_of_next

    @property
    def _error_of_next(self) -> float:
        return next(iter(self.errors.values()), math.nan)

    def rows_for(self, difference: float, run: str | None = None) -> float:
        """Return the total number of rows required to detect a true difference with 80% power.

        Parameters
        ----------
        difference : float
            True difference from the leader in units of the metric; it must be greater than 0.
        run : str, optional
            Name of the run; by default the next run after the leader.

        Raises
        ------
        ValueError
            If the difference is not above 0, or if no run has this name.

        Notes
        -----
        ``n = (z + z_.8)^2 s^2 / d^2``, where s^2 is the number of rows times the squared standard
        error of the difference.
        """
        if not (isinstance(difference, numbers.Real) and 0 < difference < math.inf):
            raise ValueError(f"difference must be a finite number above 0, got {difference!r}")
        if run is not None and run not in self.errors:
            raise ValueError(f"run must be one of {list(self.errors)[:10]}, got {run!r}")
        error = self._error_of_next if run is None else self.errors[run]
        return self.rows * (self._reach * error / difference) ** 2

    def rows_more(self, run: str) -> float:
        """Return the number of further rows required to detect a run's difference with 80% power.

        The calculation assumes that the observed difference is the true difference. The number is 0
        if the present rows are sufficient, and NaN if the run does not differ from the leader.
        """
        observed = abs(self.differences[run])
        return further_rows(self.rows, self.errors[run], observed, self.quantile)

    def to_dict(self) -> dict[str, Any]:
        """Return the sizes of detectable differences as plain data."""
        return {
            "rows": self.rows,
            "smallest_difference": self.smallest_difference,
            "rows_more": {name: self.rows_more(name) for name in self.errors},
        }

    def to_frame(self) -> pd.DataFrame:
        """Return a frame with one row for each run except the leader.

        Returns
        -------
        DataFrame
            Columns: name, difference (from the leader), standard_error, smallest_difference, and
            rows_more. The column rows_more contains the results of :meth:`rows_more`.
        """
        from cmtrack._pandas import pd

        rows = {
            "name": list(self.errors),
            "difference": [self.differences[name] for name in self.errors],
            "standard_error": list(self.errors.values()),
            "smallest_difference": [self._reach * error for error in self.errors.values()],
            "rows_more": [self.rows_more(name) for name in self.errors],
        }
        return pd.DataFrame(rows)

    def __repr__(self) -> str:
        return (
            f"Resolution({count(self.rows)} rows detect a difference of "
            f"{significant(self.smallest_difference)} with {100 * POWER:g}% power)"
        )


def rows_of_one(evaluation: BaseEvaluation, metric: str, difference: float) -> tuple[float, float]:
    """Return the numbers of rows required to detect a true difference from another model.

    The first number assumes that the errors of the two models have a correlation of 0.9. The second
    number assumes that the errors of the two models are uncorrelated.

    Raises
    ------
    ValueError
        If the difference is not above 0, or the metric has no standard error.
    """
    error = evaluation.standard_errors.get(metric, math.nan)
    if not error > 0:
        raise ValueError(f"a plan needs the standard error of {metric!r}, which is unknown")
    quantile = normal_quantile(evaluation.confidence_level)

    def rows_at(correlation: float) -> float:
        """Return the number of rows if the errors of the two models have the given correlation."""
        error_of_difference = error * math.sqrt(2 * (1 - correlation))
        n_rows = float(evaluation.n_samples)
        resolution = Resolution(n_rows, {"": error_of_difference}, {"": math.nan}, quantile)
        return resolution.rows_for(difference)

    return rows_at(0.9), rows_at(0.0)


def resolution_of(ranking: Ranking | None, seed: int = 0) -> Resolution:
    """Return the sizes of differences that a ranking of runs can detect.

    Raises ValueError if the ranking ranks models instead of runs, uses several metrics, or contains
    only one run.
    """
    if ranking is None or ranking.over or ranking.criterion.pareto or len(ranking.runs) < 2:
        raise ValueError(
            "a resolution needs two or more runs that are ranked by one metric, got "
            f"{ranking!r:.80}"
        )
    # If a run gives the same answers as the leader, their difference has no interval.
    has_interval = np.asarray(np.isfinite(ranking.pair_intervals[:, 0]).all(axis=0))
    rivals = zip(ranking.runs[1:], has_interval[1:], strict=True)
    others = [run for run, differs in rivals if differs and run.standard_error > 0]
    level = ranking.confidence_level
    # Bonferroni's quantile is an upper limit of the quantile of simultaneous intervals.
    quantile = normal_quantile(1 - (1 - level) / max(len(others), 1))
    evidence = ranking.evidence
    if len(others) > 1 and evidence is not None:
        pool = sorted([*ranking.runs, *ranking.stopped], key=identity)
        place_of = {run.run_id: place for place, run in enumerate(pool)}
        places = [place_of[run.run_id] for run in (ranking.leader, *others)]
        if evidence.known[places].all() and not evidence.folded:
            covariance = evidence.of_metric(0)[1][np.ix_(places, places)]
            errors = inference.error_draws(covariance, seed=seed)
            differences = errors[:, 1:] - errors[:, :1]
            spread = differences.std(axis=0)
            varies = spread > 0
            scores = np.abs(differences[:, varies] / spread[varies])
            reached = np.quantile(scores.max(axis=1, initial=0.0), level)
            quantile = float(np.clip(reached, normal_quantile(level), quantile))
    return Resolution(
        float(ranking.evaluation.n_samples),
        {run.name: run.standard_error for run in others},
        {run.name: run.difference for run in others},
        quantile,
    )


# -- equivalence -----------------------------------------------------------------------------------


def with_equivalence(ranking: Ranking, margin: float) -> Ranking:
    """Mark the runs of a ranking that are equivalent to the leader within a margin.

    The interval of the paired difference at level ``1 - 2 alpha`` must be within the margin, so
    that both one-sided tests reject a larger difference. No run is marked if the denominator of a
    share, or the smallest class for any other metric, has fewer than
    :data:`FEWEST_TO_BE_EQUIVALENT` rows.
    """
    leader = ranking.leader
    metric = ranking.criterion.metrics[0]
    level = 2 * ranking.confidence_level - 1
    runs = []
    for run in ranking.runs:
        pair = (run.evaluation, leader.evaluation)
        fewest = min(_fewest_rows(evaluation, metric) for evaluation in pair)
        if run is not leader and fewest >= FEWEST_TO_BE_EQUIVALENT:
            differences = paired_differences(*pair, metrics=[metric], confidence_level=level)
            difference = differences[metric]
            if -margin < difference.low and difference.high < margin:
                run = replace(run, equivalent_within=margin)
        runs.append(run)
    return replace(ranking, runs=tuple(runs), equivalence=margin)


def _fewest_rows(evaluation: BaseEvaluation, metric: str) -> float:
    """Return the effective number of rows that determines how accurate a standard error is.

    For a share, the function returns the number of rows in the denominator. For any other metric,
    the function returns the number of rows in the smallest class that has rows. If the rows are in
    clusters, the function counts the clusters of a class instead of the rows.
    """
    if not isinstance(evaluation, Evaluation):
        return float(evaluation.n_samples)
    size_of_share = evaluation.size_of(metric)
    if math.isfinite(size_of_share):
        return size_of_share
    rows = evaluation.rows
    if isinstance(rows, Predictions) and rows.design.has_clusters:
        counted = rows.design.counted
        classes_and_clusters = np.column_stack((rows.actual[counted], rows.design.units[counted]))
        classes = np.unique(classes_and_clusters, axis=0)[:, 0]
        return float(np.unique(classes, return_counts=True)[1].min())
    totals = evaluation.statistics.tables.map(lambda table: table.sum(axis=1))
    sizes = np.asarray(totals.effective_size(), dtype=np.float64)
    return float(sizes[sizes > 0].min())


# -- the ledger ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Looks:
    """Number of runs evaluated on the same rows, and the selection bias of the highest value.

    Attributes
    ----------
    runs : int
        Known number of runs that were evaluated on these rows and have a value of the metric. The
        true number may be larger.
    chosen_from : int
        Number of runs that the leader was selected from: ranked runs, runs that a gate stopped, and
        runs that were not read.
    reviews : int
        Known number of earlier reviews that include these runs. There may be more reviews than
        cmtrack knows.
    value : float
        Value of the leader.
    optimism : float
        Expected amount by which the selection, including the selection by gates, increases the
        leader's value; 0 if there is only one run.
    corrected : float
        ``value`` corrected for ``optimism``.
    low, high : float
        Ends of an interval of the leader's value that accounts for the selection.

    Examples
    --------
    >>> from cmtrack import compare, evaluate
    >>> y = [0, 1] * 100
    >>> hits = {"a": 90, "b": 89, "c": 88}
    >>> predicted = {name: [0, 1] * n + [1, 0] * (100 - n) for name, n in hits.items()}
    >>> runs = {name: evaluate(y, labels) for name, labels in predicted.items()}
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
        """Text that states how many runs were evaluated on the same rows or selected from."""
        all_runs = f"at least {self.runs} runs evaluated on these rows"
        if self.chosen_from >= self.runs:
            return all_runs
        return f"{self.chosen_from} of {all_runs}"

    def __repr__(self) -> str:
        return (
            f"Looks(highest of {self.among}, about {significant(self.optimism, 2)} of it is "
            f"selection bias: {significant(self.value)}, corrected "
            f"{significant_with_interval(self.corrected, self.low, self.high)})"
        )


def optimism(values: FloatArray, covariance: FloatArray, seed: int = 0) -> float:
    """Return the expected error of the largest of R values, given the spread of true values.

    Parameters
    ----------
    values : ndarray of shape (R,)
        Values of the runs; larger is better.
    covariance : ndarray of shape (R, R)
        Covariance of the errors of the values.
    seed : int

    Notes
    -----
    The function bootstraps around values that are shrunk towards their mean, so that their spread
    equals the estimated spread of the true values. The observed values already include random
    errors, so a bootstrap around the observed values would underestimate the optimism by a third.
    No estimate of the optimism is unbiased in all situations. If one run is truly better than many
    equally good runs, the correction is too large.
    """
    if len(values) < 2:
        return 0.0
    half = inference.error_draws(covariance, inference.N_DRAWS // 2, seed)
    errors = np.concatenate([half, -half])
    best = (_shrunk(values, covariance) + errors).argmax(axis=1)
    return max(float(errors[np.arange(len(errors)), best].mean()), 0.0)


def _shrunk(values: FloatArray, covariance: FloatArray) -> FloatArray:
    """Return values shrunk towards their mean to the estimated spread of the true values.

    The estimated spread, a variance, is the variance of the values minus the mean variance of the
    errors of their deviations from the mean.
    """
    size = len(values)
    if size < 2:
        return values
    deviations = values - values.mean()
    variance = np.diag(covariance) - 2 * covariance.mean(axis=1) + covariance.mean()
    # Rounding can make the variance of equal values negative.
    unbiased = np.maximum(variance, 0.0) * size / (size - 1)
    spread = max(float(deviations @ deviations) / (size - 1) - float(unbiased.mean()), 0.0)
    with np.errstate(invalid="ignore"):
        shrinkage = np.where(spread + unbiased > 0, np.sqrt(spread / (spread + unbiased)), 1.0)
    return np.asarray(values.mean() + deviations * shrinkage)


def optimism_after_gates(ranking: Ranking, baseline: str = "", seed: int = 0) -> float:
    """Return the expected error of the best run that passes the gates.

    The function bootstraps like :func:`optimism`, but applies the gates in each draw. Draws in
    which no run passes all gates are ignored. Gates on segments, on flips and on metrics without a
    standard error keep their observed results. The result is NaN if errors are unknown, or if no
    run passes in any draw.

    ``ranking``: ranking by a single metric. Its runs include runs that a gate stopped.
    ``baseline``: id of the baseline of ``.difference`` gates. If the baseline is not in the pool,
    gates on differences keep their observed results.
    """
    pool = sorted([*ranking.runs, *ranking.stopped], key=identity)
    ids = [candidate.run_id for candidate in pool]
    gates = [result.gate for result in pool[0].gates]
    replayed = [gate for gate in gates if _can_be_replayed(gate, pool, baseline in ids)]
    ranked_by = ranking.criterion.metrics[0]
    metrics = dict.fromkeys([ranked_by, *(gate.metric for gate in replayed)])
    criterion = replace(ranking.criterion, metrics=tuple(metrics))
    evaluations = [candidate.evaluation for candidate in pool]
    evidence = ranking.evidence
    if evidence is None or len(metrics) > 1:
        evidence = gather(evaluations, criterion)
    if not evidence.known.all():
        return math.nan
    size, n_metrics = evidence.values.shape
    covariance = evidence.covariance.reshape(size * n_metrics, -1)
    half = inference.error_draws(covariance, inference.N_DRAWS // 2, seed)
    errors = np.concatenate([half, -half]).reshape(-1, size, n_metrics)
    centres = [_shrunk(*evidence.of_metric(m)) for m in range(n_metrics)]
    drawn = np.stack(centres, axis=-1) + errors
    logged = np.array([[e.metrics[name] for name in metrics] for e in evaluations])
    # Gates use the original sign of the metric, but draws have the sign that makes larger values
    # better.
    moves = (drawn - evidence.values) * gain_signs(logged, criterion)
    passes = np.ones(drawn.shape[:2], dtype=bool)
    for place, gate in enumerate(gates):
        observed = [candidate.gates[place] for candidate in pool]
        if gate not in replayed:
            passes &= np.array([result.passed for result in observed])
            continue
        move = moves[:, :, criterion.metrics.index(gate.metric)]
        if gate.difference:
            move = move - move[:, [ids.index(baseline)]]
        values = np.array([result.value for result in observed]) + move
        passes &= OPERATORS[gate.operator](values, gate.bound)
    chosen = np.where(passes, drawn[:, :, 0], -math.inf).argmax(axis=1)
    has_chosen = passes.any(axis=1)
    chosen_errors = errors[np.arange(len(errors)), chosen, 0][has_chosen]
    return max(float(chosen_errors.mean()), 0.0) if len(chosen_errors) else math.nan


def _can_be_replayed(gate: Gate, pool: Sequence[Candidate], has_baseline: bool) -> bool:
    """Return whether the bootstrap can apply a gate to drawn values.

    The bootstrap can apply gates on values, on interval ends and on differences, if the gates are
    computed from all rows. The bootstrap cannot apply gates on a distance from zero, because the
    sign of an error does not determine how the distance changes.
    """
    if gate.column or gate.of_flips or gate.absolute or (gate.difference and not has_baseline):
        return False
    for candidate in pool:
        evaluation = candidate.evaluation
        value = evaluation.metrics.get(gate.metric, math.nan)
        if not (math.isfinite(value) and math.isfinite(own_error(evaluation, gate.metric))):
            return False
    return True


def looks_of(ranking: Ranking, runs: int, reviews: int, seed: int, baseline: str = "") -> Looks:
    """Return the number of runs that a leader was selected from, and the bias of this selection.

    Raises
    ------
    ValueError
        If the ranking ranks models instead of runs, or if it uses several metrics.
    """
    if ranking.over or not ranking.criterion.single:
        raise ValueError(
            "the selection bias is computed only for runs ranked by one metric, got "
            f"{ranking.criterion}"
        )
    leader = ranking.leader
    selection = math.nan
    if ranking.criterion.direction != "nearest zero":
        selection = optimism_after_gates(ranking, baseline, seed)
    low, high = leader.interval
    return Looks(
        runs=runs,
        chosen_from=ranking.picked_from,
        reviews=reviews,
        value=leader.value,
        optimism=selection,
        corrected=leader.value - ranking.criterion.unit * selection,
        low=low,
        high=high,
    )
