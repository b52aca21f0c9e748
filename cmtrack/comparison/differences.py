"""Differences of two evaluations of the same rows, with paired errors, and two tests by row."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, stdtr

from cmtrack import notebook
from cmtrack.base import BaseEvaluation
from cmtrack.comparison.comparability import design_of_rows, in_order_of, why_unpaired
from cmtrack.evaluation import Evaluation
from cmtrack.evaluation.from_arrays import evaluate_rows
from cmtrack.metrics.catalog import Catalog
from cmtrack.metrics.costs import MeanCost
from cmtrack.metrics.intervals import ROUNDING, normal_quantile
from cmtrack.metrics.metric import Metric
from cmtrack.metrics.own import UNKNOWN
from cmtrack.metrics.paired import Paired, binomial_pvalues, cut
from cmtrack.statistics.design import Design, cluster_degrees
from cmtrack.statistics.inputs import BoolArray, FloatArray
from cmtrack.statistics.predictions import Predictions
from cmtrack.statistics.spans import SpanRows
from cmtrack.untrusted import printable

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class McNemar:
    """The comparison of two classifiers' hits.

    Attributes
    ----------
    only_first, only_second : int
        Rows that only the first, or only the second, gets right.
    statistic, corrected_statistic : float
        Chi-square without and with Edwards' continuity correction.
    exact_pvalue, midp_pvalue : float
        Two-sided binomial p-value, and the exact one less the probability of the outcome itself,
        which is the one to use (Fagerland, Lydersen, Laake 2013).

    Examples
    --------
    >>> from cmtrack.comparison import mcnemar
    >>> test = mcnemar(10, 2)
    >>> round(test.statistic, 3), round(test.corrected_statistic, 3), round(test.midp_pvalue, 3)
    (5.333, 4.083, 0.022)
    """

    only_first: int
    only_second: int
    statistic: float
    corrected_statistic: float
    exact_pvalue: float
    midp_pvalue: float


def mcnemar(only_first: int, only_second: int) -> McNemar:
    """McNemar's test from the two discordant counts.

    Raises
    ------
    ValueError
        If a count is negative.

    Examples
    --------
    >>> from cmtrack.comparison import mcnemar
    >>> round(mcnemar(10, 2).exact_pvalue, 3)
    0.039
    """
    b = int(only_first)
    c = int(only_second)
    if min(b, c) < 0:
        raise ValueError(f"counts must not be negative, got {only_first} and {only_second}")
    n = b + c
    if n == 0:
        return McNemar(0, 0, math.nan, math.nan, 1.0, 1.0)
    exact, midp = binomial_pvalues(b, c)
    statistic = (b - c) ** 2 / n
    corrected = (abs(b - c) - 1) ** 2 / n
    return McNemar(b, c, statistic, corrected, float(exact), float(midp))


@dataclass(frozen=True)
class Difference:
    """One metric of two evaluations.

    Attributes
    ----------
    metric : str
    first, second : float
    difference : float
        First less second.
    standard_error, low, high, pvalue : float
        Of the difference, and of the hypothesis that it is zero: McNemar's statistic and Tango's
        interval for shares of the same rows, else Student's distribution with the degrees of
        freedom of Welch and Satterthwaite over the actual classes, or with the effective clusters
        less one where rows belong together; never outside the metric's range. If at most 8 rows
        differ, the exact sign test must agree: the p-value is the larger one, and the interval
        reaches 0 unless the sign test rejects. If no row differs, the p-value is 1 and only shares
        have an interval. NaN where no error is known.
    reason : str
        Why there is no interval, such as "no row differs".

    Examples
    --------
    >>> from cmtrack import evaluate, paired_differences
    >>> y = [0, 1] * 100
    >>> forest = evaluate(y, [0, 1] * 90 + [1, 0] * 10)
    >>> linear = evaluate(y, [0, 1] * 80 + [1, 0] * 20)
    >>> found = paired_differences(forest, linear)["multiclass/accuracy"]
    >>> round(found.difference, 3), round(found.standard_error, 3)
    (0.1, 0.021)
    >>> round(found.low, 3), round(found.high, 3)
    (0.066, 0.149)
    """

    metric: str
    first: float
    second: float
    difference: float
    standard_error: float
    low: float
    high: float
    pvalue: float
    reason: str = ""


@dataclass(frozen=True)
class Differences:
    """Differences of two evaluations in every metric that both have.

    Attributes
    ----------
    rows : tuple of Difference
    paired : bool
        Whether the errors use that both judged the same rows.
    reason : str
        Why not, where they do not; or why some differences have no error, where probabilities were
        not kept.
    confidence_level : float
    mcnemar : McNemar or None
        Where rows of single labels are paired and weights are whole.

    Examples
    --------
    >>> from cmtrack import evaluate, paired_differences
    >>> y = [0, 1] * 100
    >>> forest = evaluate(y, [0, 1] * 90 + [1, 0] * 10)
    >>> linear = evaluate(y, [0, 1] * 80 + [1, 0] * 20)
    >>> found = paired_differences(forest, linear)
    >>> found.paired, round(found["multiclass/accuracy"].difference, 3)
    (True, 0.1)
    >>> found.mcnemar.only_first, found.mcnemar.only_second
    (20, 0)
    """

    rows: tuple[Difference, ...]
    paired: bool
    reason: str
    confidence_level: float
    mcnemar: McNemar | None

    def __getitem__(self, metric: str) -> Difference:
        for row in self.rows:
            if row.metric == metric:
                return row
        raise KeyError(f"no difference in {metric!r} was computed")

    def to_frame(self) -> pd.DataFrame:
        """Return one row per metric."""
        from cmtrack._pandas import pd

        return pd.DataFrame([vars(row) for row in self.rows])

    def __repr__(self) -> str:
        how = "paired" if self.paired else f"unpaired ({self.reason})"
        return printable(f"Differences({len(self.rows)} metrics, {how})")

    def _repr_html_(self) -> str:
        note = "Paired: both judged the same rows." if self.paired else f"Unpaired: {self.reason}."
        note += f" Without an error: {self.reason}." if self.paired and self.reason else ""
        return notebook.view(notebook.sentence(note), notebook.table(self.to_frame()))


def paired_differences(
    first: BaseEvaluation,
    second: BaseEvaluation,
    *,
    metrics: Iterable[str] | None = None,
    groups: Any = None,
    confidence_level: float | None = None,
) -> Differences:
    """Compare two evaluations metric by metric.

    Parameters
    ----------
    first, second : Evaluation or FamilyEvaluation
        Of the same test rows in the same order (the digest of the labels is checked); classes in
        another order are put in the first one's. Where a side has no rows (it was merged, or loaded
        from its statistics), the differences are unpaired, and marked so; their intervals are then
        far too wide for models that were judged on the same rows.
    metrics : iterable of str, optional
        Names; by default every metric that both have.
    groups : array-like of shape (n,), optional
        Rows that belong together, such as several of one person; by default those that the
        evaluations were made with.
    confidence_level : float, optional
        By default the first evaluation's.

    Returns
    -------
    Differences
        First less second.

    Raises
    ------
    ValueError
        If a metric is not in both, depends on costs that differ, or ``groups`` has another length
        than the rows.

    Notes
    -----
    Cost: O(n) time for n rows and each metric; those of scores sort the rows. Labels of 10⁶ rows
    take about 0.4 s on one core, all metrics of 10⁵ rows with 11 probabilities about 0.9 s.

    Examples
    --------
    >>> from cmtrack import evaluate, paired_differences
    >>> y = [0, 1] * 100
    >>> forest = evaluate(y, [0, 1] * 90 + [1, 0] * 10)
    >>> linear = evaluate(y, [0, 1] * 80 + [1, 0] * 20)
    >>> accuracy = paired_differences(forest, linear)["multiclass/accuracy"]
    >>> round(accuracy.difference, 3), round(accuracy.low, 3), round(accuracy.high, 3)
    (0.1, 0.066, 0.149)
    """
    level = first.confidence_level if confidence_level is None else confidence_level
    second = in_order_of(first, second)
    # ValueError if a name means one metric in the first and another in the second.
    Catalog.joined((first.catalog, second.catalog))
    shared = [name for name in first.metrics if name in second.metrics]
    names = shared if metrics is None else list(metrics)
    # Mean costs by different lists of costs have no difference.
    if dict(first.design).get("costs") != dict(second.design).get("costs"):
        priced = [name for name in names if first.catalog.depends_on(name) == {"costs"}]
        if priced and metrics is not None:
            raise ValueError(
                f"differences of {priced} need evaluations of the same costs: price() gives them"
            )
        names = [name for name in names if name not in priced]
    missing = [name for name in names if name not in shared]
    if missing:
        raise ValueError(f"metrics must be in both evaluations, got {missing[:5]}, which are not")
    unpaired = why_unpaired(first, second)
    if unpaired:
        reason = unpaired.between(first, second)
        if groups is not None:
            raise ValueError(f"groups need paired rows: {reason}")
        rows = tuple(_independent_difference(first, second, name, level) for name in names)
        return Differences(rows, False, reason, level, None)
    design = design_of_rows(first).with_groups(groups)
    rows = tuple(_paired_difference(first, second, name, design, level) for name in names)
    reasons = (_not_by_row(side, name) for name in names for side in (first, second))
    reason = next(filter(None, reasons), "")
    return Differences(rows, True, reason, level, _mcnemar_of(first, second))


def why_no_error(evaluation: BaseEvaluation, name: str) -> str:
    """Return the reason why a metric of an evaluation with rows has no error by row."""
    return _not_by_row(evaluation, name) or f"{name} has no error by row"


def _not_by_row(evaluation: BaseEvaluation, name: str) -> str:
    """Return what a metric lacks for an error by row; empty if nothing is known to lack."""
    if isinstance(evaluation, Evaluation) and evaluation.without_function(name):
        return f"{name} has no error by row: {UNKNOWN}"
    labels_only = isinstance(evaluation.rows, Predictions) and evaluation.rows.source is None
    if labels_only and evaluation.catalog.lookup(name).needs == "probabilities":
        return f"{name} needs the probabilities of the rows, which were not kept"
    if isinstance(evaluation, Evaluation) and math.isfinite(evaluation.metrics.get(name, math.nan)):
        return evaluation.why_without_error(name)
    return ""


def paired(
    evaluations: Sequence[BaseEvaluation], name: str, design: Design | None
) -> Paired | None:
    """Return all differences of a metric between evaluations of the same rows.

    ``design``: of the rows; None if they are not here. The result is None without it, or if an
    evaluation has no error by row.
    """
    columns = [evaluation.influence(name) for evaluation in evaluations]
    psi = [column for column in columns if column is not None]
    if design is None or len(psi) < len(columns):
        return None
    return paired_by(evaluations, name, np.column_stack(psi), design)


def at_end(evaluation: BaseEvaluation, name: str) -> tuple[float, float, bool]:
    """Return (standard error, degrees of freedom, whether a share) of a value at an end.

    No row moves a value at an end of its range, such as a precision of 1, which may be of a single
    row. The error and the degrees are those of the value's own interval; for other values they are
    0 and infinity.
    """
    value = evaluation.metrics[name]
    entry = evaluation.catalog.lookup(name)
    low, high = evaluation.intervals.get(name, (value, value))
    reach = max(value - low, high - value)
    has_error = evaluation.standard_errors.get(name, 0.0) > ROUNDING
    if value not in (entry.low, entry.high) or not reach > 0 or has_error:
        return 0.0, math.inf, False
    quantile = normal_quantile(evaluation.confidence_level, _cluster_degrees(evaluation, name))
    degrees = max(quantile**2 * ((entry.high - entry.low) / reach - 1) - 1, 1.0)
    return reach / quantile, degrees, entry.interval == "wilson"


def paired_by(
    evaluations: Sequence[BaseEvaluation], name: str, psi: FloatArray, design: Design
) -> Paired:
    """Return all differences of a metric between evaluations of the same rows.

    ``psi``, of shape (n, R): influence values of each evaluation.
    """
    first = evaluations[0]
    entry = first.catalog.lookup(name)
    answers = _answers(evaluations, name)
    if entry.needs == "probabilities" and answers is not None:
        answers = [answers[place] for place in _first_alike(evaluations)]
    pairs = Paired.of(
        np.array([evaluation.metrics[name] for evaluation in evaluations]),
        psi,
        design,
        bounds=_range(first, entry),
        answers=answers,
        actual=first.rows.actual if isinstance(first.rows, Predictions) else None,
        ends=np.array([at_end(evaluation, name) for evaluation in evaluations]).T,
        share_size=_share_size(evaluations, name),
        of_same_rows=_is_of_same_rows(evaluations, name),
    )
    if entry.function.of_labels:
        # No prediction moves such a metric, but the interval of a share would let it differ.
        return replace(pairs, shares=None, share_size=math.nan)
    return pairs


def _answers(evaluations: Sequence[BaseEvaluation], name: str) -> list[npt.NDArray[Any]] | None:
    """Return what each evaluation answers on each row; None if this is not known of all."""
    answers = []
    for evaluation in evaluations:
        codes = evaluation.answers(name)
        if codes is None:
            return None
        answers.append(codes)
    return answers


def _range(evaluation: BaseEvaluation, entry: Metric) -> tuple[float, float]:
    """Return the range of a metric; for a mean cost the range of the costs."""
    if isinstance(entry.value, MeanCost) and isinstance(evaluation, Evaluation):
        prices = evaluation.prices
        if prices is not None:
            return float(prices.min()), float(prices.max())
    return entry.low, entry.high


def _share_size(evaluations: Sequence[BaseEvaluation], name: str) -> float:
    """Return the least effective number of rows that a share is of; NaN for other metrics."""
    sizes = [
        evaluation.size_of(name) for evaluation in evaluations if isinstance(evaluation, Evaluation)
    ]
    return float(np.min(sizes, initial=math.inf)) if sizes else math.nan


FLOAT32 = 4 * float(np.finfo(np.float32).eps)
"""Relative difference of two scores that a few roundings to float32 may cause."""
_FIRST_ROWS = 1000
"""Rows that are compared first: the scores of different models already differ in them."""


def _first_alike(evaluations: Sequence[BaseEvaluation]) -> list[int]:
    """Return for each evaluation the place of the first one with equal scores but for rounding.

    Such evaluations may order ties differently, and a curve of the one may be better. That is not a
    difference of models: no row is answered differently.
    """
    tables = [_scores_of(evaluation) for evaluation in evaluations]
    places: list[int] = []
    for place, scores in enumerate(tables):
        earlier = (k for k in dict.fromkeys(places) if _differ_by_rounding(tables[k], scores))
        places.append(next(earlier, place))
    return places


def _scores_of(evaluation: BaseEvaluation) -> FloatArray | None:
    """Return the scores of the rows; of two classes only those of the positive one.

    The scores of the other class are one less these, so a rounding of 0.9 is a relative difference
    that is ten times as large in 0.1.
    """
    if not isinstance(evaluation.rows, Predictions):
        return None
    table = evaluation.rows.probabilities
    if table is None or table.shape[1] != 2 or evaluation.positive not in evaluation.labels:
        return table
    return table[:, [evaluation.labels.index(evaluation.positive)]]


def _on_one_scale(first: FloatArray, second: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return two tables of scores less what all rows share, unless both are probabilities.

    Decision values around 1e10 that differ by 1 are equal but for rounding only if they were
    rounded that far.
    """
    if min(first.min(), second.min()) >= 0 and max(first.max(), second.max()) <= 1:
        return first, second
    centre = np.median(first, axis=0)
    return first - centre, second - centre


def _differ_by_rounding(first: FloatArray | None, second: FloatArray | None) -> bool:
    """Return whether two tables of scores are equal up to the precision of float32."""
    if first is None or second is None or first.shape != second.shape:
        return False
    first, second = _on_one_scale(first, second)
    for rows in (slice(0, _FIRST_ROWS), slice(_FIRST_ROWS, None)):
        if not np.allclose(first[rows], second[rows], rtol=FLOAT32, atol=0.0, equal_nan=True):
            return False
    return True


def _is_of_same_rows(evaluations: Sequence[BaseEvaluation], name: str) -> bool:
    """Return False if a metric is known to be a share of different rows, as precision is.

    Its numbers of rows then differ. Effective numbers of rows with sampling weights or clusters
    depend on the value and show nothing. Neither do custom metrics, whose denominators are not
    known.
    """
    if name in {metric.name for metric in evaluations[0].catalog.own}:
        return True
    rows = evaluations[0].rows
    if rows is None or not rows.design.is_independent:
        return True
    sizes = [e.size_of(name) for e in evaluations if isinstance(e, Evaluation)]
    return len({size for size in sizes if math.isfinite(size)}) < 2


def _paired_difference(
    first: BaseEvaluation, second: BaseEvaluation, name: str, design: Design, level: float
) -> Difference:
    """Return the difference of two evaluations of the same rows in a metric."""
    a = first.metrics[name]
    b = second.metrics[name]
    pair = paired((first, second), name, design)
    if pair is None:
        reason = _not_by_row(first, name) or _not_by_row(second, name)
        return Difference(name, a, b, a - b, math.nan, math.nan, math.nan, math.nan, reason)
    low, high = pair.interval(normal_quantile(level))
    return Difference(
        metric=name,
        first=a,
        second=b,
        difference=float(pair.difference[0, 1]),
        standard_error=float(pair.error[0, 1]),
        low=float(low[0, 1]),
        high=float(high[0, 1]),
        pvalue=float(pair.pvalue[0, 1]),
        reason=pair.reason(),
    )


def _independent_difference(
    first: BaseEvaluation, second: BaseEvaluation, name: str, level: float
) -> Difference:
    """Return the difference of two evaluations whose errors are independent."""
    a = first.metrics[name]
    b = second.metrics[name]
    error = math.hypot(own_error(first, name), own_error(second, name))
    difference = a - b
    # An error of 0 is an error that the data do not show.
    if not (error > 0 and math.isfinite(difference)):
        reason = "no error of the difference is known" if math.isfinite(difference) else ""
        return Difference(name, a, b, difference, error, math.nan, math.nan, math.nan, reason)
    degrees = min(own_degrees(first, name), own_degrees(second, name))
    entry = first.catalog.lookup(name)
    reach = normal_quantile(level, degrees) * error
    low, high = cut(difference, reach, (entry.low, entry.high))
    statistic = -abs(difference) / error
    # With infinite degrees of freedom Student's distribution is the normal one.
    tail = stdtr(degrees, statistic) if math.isfinite(degrees) else ndtr(statistic)
    pvalue = 2 * float(tail)
    return Difference(name, a, b, difference, error, float(low), float(high), pvalue)


def own_error(evaluation: BaseEvaluation, name: str) -> float:
    """Return a metric's standard error, at least the error :func:`at_end`.

    Without a standard error it follows from the metric's interval; NaN without either.
    """
    error = evaluation.standard_errors.get(name, math.nan)
    if math.isfinite(error):
        return max(error, at_end(evaluation, name)[0])
    low, high = evaluation.intervals.get(name, (math.nan, math.nan))
    return (high - low) / (2 * normal_quantile(evaluation.confidence_level))


def own_degrees(evaluation: BaseEvaluation, name: str) -> float:
    """Return the degrees of freedom of a metric's error.

    They are of its effective clusters, or those :func:`at_end` if these are fewer; else infinite.
    """
    return min(_cluster_degrees(evaluation, name), at_end(evaluation, name)[1])


def _cluster_degrees(evaluation: BaseEvaluation, name: str) -> float:
    """Return the degrees of freedom of a metric's effective clusters; infinite without clusters."""
    if not isinstance(evaluation, Evaluation):
        return math.inf
    clusters = evaluation.effective_clusters
    if not clusters or name not in clusters:
        return math.inf
    return cluster_degrees(clusters[name], evaluation.n_clusters)


def _mcnemar_of(first: BaseEvaluation, second: BaseEvaluation) -> McNemar | None:
    """Return McNemar's test of paired rows of single labels; None with sampling weights."""
    a = first.rows
    b = second.rows
    if not (isinstance(a, Predictions) and isinstance(b, Predictions)):
        return None  # A document is not simply right or wrong.
    if a.design.is_sampled:
        return None
    right_a = a.actual == a.predicted
    right_b = b.actual == b.predicted
    repeats = a.design.repeats
    only_first = int(repeats[right_a & ~right_b].sum())
    only_second = int(repeats[~right_a & right_b].sum())
    return mcnemar(only_first, only_second)


def randomization_test(
    first: Evaluation, second: Evaluation, metric: str, *, n_resamples: int = 1000, seed: int = 0
) -> float:
    """Return the two-sided p-value of a difference in any metric by a randomization test.

    It needs no assumption on distributions: each row's two predictions are exchanged by a coin,
    again and again.

    Parameters
    ----------
    first, second : Evaluation
        Of the same rows, both with rows.
    metric : str
    n_resamples : int, default 1000
    seed : int, default 0

    Returns
    -------
    float
        ``(1 + number of exchanges with a difference at least as large) / (1 + n_resamples)``.

    Raises
    ------
    ValueError
        If a side has no rows, the rows differ, or the metric is undefined on one side.

    Notes
    -----
    Cost: ``n_resamples`` evaluations of the n rows: of 10⁵ rows with 11 probabilities about 0.3 s
    each, so 5 minutes for 1,000.

    Examples
    --------
    >>> from cmtrack import evaluate
    >>> from cmtrack.comparison import randomization_test
    >>> y = [0, 1] * 50
    >>> forest = evaluate(y, [0, 1] * 48 + [1, 0] * 2)
    >>> linear = evaluate(y, [0, 1] * 35 + [1, 0] * 15)
    >>> randomization_test(forest, linear, "multiclass/accuracy", n_resamples=99)
    0.01
    """
    if not (isinstance(first, Evaluation) and isinstance(second, Evaluation)):
        kinds = f"{type(first).__name__} and {type(second).__name__}"
        raise TypeError(f"first and second must be Evaluations, got {kinds}")
    second = in_order_of(first, second)
    reason = why_unpaired(first, second)
    a = first.rows
    b = second.rows
    if reason or a is None or b is None:
        detail = "" if reason is None else f": {reason.between(first, second)}"
        raise ValueError(f"first and second must be of the same rows, both with their rows{detail}")
    if isinstance(a, SpanRows) or isinstance(b, SpanRows):
        raise ValueError(
            "first and second must have predictions row by row, got evaluations of spans"
        )
    observed = first.metrics[metric] - second.metrics[metric]
    if not math.isfinite(observed):
        raise ValueError(
            f"metric must be defined in both evaluations, got {metric!r}, which is undefined in one"
        )
    rng = np.random.default_rng(seed)
    extreme = 0
    for _ in range(n_resamples):
        swap = rng.random(len(a)) < 0.5
        swapped_a = evaluate_rows(_exchanged(a, b, swap), first)
        swapped_b = evaluate_rows(_exchanged(b, a, swap), first)
        difference = swapped_a.metrics[metric] - swapped_b.metrics[metric]
        # Ties count, and sums in another order differ in their last digits.
        if not abs(difference) < abs(observed) - 1e-12:
            extreme += 1
    return (1 + extreme) / (1 + n_resamples)


def _exchanged(rows: Predictions, other: Predictions, swap: BoolArray) -> Predictions:
    """Return rows with the predictions of others where they are swapped."""
    probabilities = None
    if rows.probabilities is not None and other.probabilities is not None:
        probabilities = np.where(swap[:, None], other.probabilities, rows.probabilities)
    predicted = np.where(swap, other.predicted, rows.predicted)
    return Predictions.from_arrays(rows.labels, rows.actual, predicted, rows.design, probabilities)
