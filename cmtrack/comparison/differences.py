"""Differences between two evaluations, with paired standard errors and two paired tests."""

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
from cmtrack.evaluation.catalog import OPEN
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
    """Result of McNemar's test, which compares the correct predictions of two classifiers.

    Attributes
    ----------
    only_first, only_second : int
        Number of rows that only the first classifier, or only the second classifier, predicts
        correctly.
    statistic, corrected_statistic : float
        Chi-square statistic without, and with, Edwards' continuity correction.
    exact_pvalue, midp_pvalue : float
        Two-sided binomial p-value, and this p-value minus the probability of the observed outcome.
        Fagerland, Lydersen and Laake (2013) recommend the mid-p value.

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
    """Compute McNemar's test from the two discordant counts.

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
    """Difference of one metric between two evaluations.

    Attributes
    ----------
    metric : str
    first, second : float
    difference : float
        First value minus second value.
    standard_error, low, high, pvalue : float
        Standard error of the difference, ends of its interval, and p-value of the hypothesis that
        the difference is 0. For shares of the same rows, the p-value is computed from McNemar's
        statistic and the interval by Tango's method. For all other metrics, both the p-value and
        the interval use Student's t distribution. If the rows are in clusters, the degrees of
        freedom are the effective number of clusters minus one. For independent rows, the degrees of
        freedom are computed by Welch and Satterthwaite's formula over the actual classes. The
        interval never exceeds the metric's range. If at most 8 rows differ, the result must also be
        significant by the exact sign test: the p-value is the larger of the two p-values, and the
        interval includes 0 unless the sign test rejects. If no row differs, the p-value is 1, and
        the interval is undefined except for shares. If the standard error is unknown, the standard
        error, the interval and the p-value are NaN.
    reason : str
        Reason why there is no interval, such as "no row differs".

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
    """Differences between two evaluations in every metric that both evaluations have.

    Attributes
    ----------
    rows : tuple of Difference
    paired : bool
        Whether the standard errors pair the rows of both evaluations.
    reason : str
        Reason why the rows are not paired. If the rows are paired, this is the reason why some
        differences have no standard error, for example because probabilities were not kept.
    confidence_level : float
    mcnemar : McNemar or None
        McNemar's test; None if the rows are not paired, are not single labels or have sampling
        weights.

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
        """Return a frame with one row per metric."""
        from cmtrack._pandas import pd

        return pd.DataFrame([vars(row) for row in self.rows])

    def __repr__(self) -> str:
        how = "paired" if self.paired else f"unpaired ({self.reason})"
        return printable(f"Differences({len(self.rows)} metrics, {how})")

    def _repr_html_(self) -> str:
        note = (
            "The comparison is paired, because both evaluations have the same rows."
            if self.paired
            else f"Unpaired: {self.reason}."
        )
        note += f" No standard error: {self.reason}." if self.paired and self.reason else ""
        frame = self.to_frame()
        places = sorted(range(len(frame)), key=lambda k: _place_in_notebook(self.rows[k].metric))
        shown = frame.iloc[places[: notebook.ROWS]].drop(columns="standard_error")
        return notebook.view(notebook.sentence(note), notebook.table(shown, of=len(frame)))


def _place_in_notebook(metric: str) -> tuple[bool, bool]:
    """Return a sort key that puts headline metrics first, starting with the positive group."""
    return not OPEN.lookup(metric).headline, not metric.startswith("binary/")


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
        Evaluations of the same test rows in the same order (the digest of the labels is checked).
        The order of the classes may differ. If an evaluation has no rows (it was merged, or loaded
        from its statistics), the differences are unpaired and marked as unpaired. Unpaired
        intervals are far too wide for models that were evaluated on the same rows.
    metrics : iterable of str, optional
        Names of the metrics to compare; by default every metric that both evaluations have.
    groups : array-like of shape (n,), optional
        Group (cluster) of each row, such as the person; by default the groups of the evaluations.
    confidence_level : float, optional
        By default the level of the first evaluation.

    Returns
    -------
    Differences
        Values of the first evaluation minus values of the second.

    Raises
    ------
    ValueError
        If an evaluation lacks a metric, if a metric depends on costs that differ between the
        evaluations, or if ``groups`` does not have one entry for each row.

    Notes
    -----
    The computing time per metric is proportional to the number of rows, but metrics computed from
    scores also sort the rows. For 10⁶ rows, all metrics computed from labels take about 0.4 s on
    one core. For 10⁵ rows with 11 probabilities each, all metrics together take about 0.9 s.

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
    # ValueError if a name means different metrics in the two evaluations.
    Catalog.joined((first.catalog, second.catalog))
    shared = [name for name in first.metrics if name in second.metrics]
    names = shared if metrics is None else list(metrics)
    # Mean costs with different costs cannot be compared.
    if dict(first.design).get("costs") != dict(second.design).get("costs"):
        priced = [name for name in names if first.catalog.depends_on(name) == {"costs"}]
        if priced and metrics is not None:
            raise ValueError(
                f"differences of {priced} need the same costs in both evaluations: use price()"
            )
        names = [name for name in names if name not in priced]
    missing = [name for name in names if name not in shared]
    if missing:
        raise ValueError(f"metrics must be in both evaluations, but {missing[:5]} are not")
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
    """Return why the standard error of a metric cannot be computed from an evaluation's rows."""
    return (
        _not_by_row(evaluation, name)
        or f"{name} has no standard error that can be computed from the rows"
    )


def _not_by_row(evaluation: BaseEvaluation, name: str) -> str:
    """Return what is missing to compute a metric's standard error from rows, or an empty text."""
    if isinstance(evaluation, Evaluation) and evaluation.without_function(name):
        return f"{name} has no standard error that can be computed from the rows: {UNKNOWN}"
    labels_only = isinstance(evaluation.rows, Predictions) and evaluation.rows.source is None
    if labels_only and evaluation.catalog.lookup(name).needs == "probabilities":
        return f"{name} needs the probabilities of the rows, which were not kept"
    if isinstance(evaluation, Evaluation) and math.isfinite(evaluation.metrics.get(name, math.nan)):
        return evaluation.why_without_error(name)
    return ""


def paired(
    evaluations: Sequence[BaseEvaluation], name: str, design: Design | None
) -> Paired | None:
    """Return the differences in a metric between all pairs of evaluations of the same rows.

    All evaluations must have the same rows.

    The result is None if the influence values of an evaluation are unknown.

    ``design``: sampling design of the rows; None if the evaluations have no rows, which also makes
    the result None.
    """
    columns = [evaluation.influence(name) for evaluation in evaluations]
    psi = [column for column in columns if column is not None]
    if design is None or len(psi) < len(columns):
        return None
    return paired_by(evaluations, name, np.column_stack(psi), design)


def at_end(evaluation: BaseEvaluation, name: str) -> tuple[float, float, bool]:
    """Return the standard error of a value at one end of the metric's range.

    Returns a tuple (standard error, degrees of freedom, whether the metric is a share).

    If a value is at one end of the metric's range, such as a precision of 1, the rows show no
    variation, even if there is only one row. For a value at the end of the range, the standard
    error and the degrees of freedom are therefore derived from the confidence interval. For a value
    inside the range, the function returns a standard error of 0 and infinite degrees of freedom.
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
    """Compute the differences in a metric between all pairs of evaluations from influence values.

    All evaluations must have the same rows.

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
        # A metric of the actual labels alone does not depend on predictions, so the interval for a
        # difference of shares does not apply.
        return replace(pairs, shares=None, share_size=math.nan)
    return pairs


def _answers(evaluations: Sequence[BaseEvaluation], name: str) -> list[npt.NDArray[Any]] | None:
    """Return each evaluation's answer for each row; None if any answer is unknown."""
    answers = []
    for evaluation in evaluations:
        codes = evaluation.answers(name)
        if codes is None:
            return None
        answers.append(codes)
    return answers


def _range(evaluation: BaseEvaluation, entry: Metric) -> tuple[float, float]:
    """Return the range of a metric; for a mean cost, this is the range of the costs."""
    if isinstance(entry.value, MeanCost) and isinstance(evaluation, Evaluation):
        prices = evaluation.prices
        if prices is not None:
            return float(prices.min()), float(prices.max())
    return entry.low, entry.high


def _share_size(evaluations: Sequence[BaseEvaluation], name: str) -> float:
    """Return the smallest effective number of rows of a share; NaN if the metric is not a share."""
    sizes = [
        evaluation.size_of(name) for evaluation in evaluations if isinstance(evaluation, Evaluation)
    ]
    return float(np.min(sizes, initial=math.inf)) if sizes else math.nan


FLOAT32 = 4 * float(np.finfo(np.float32).eps)
"""Largest relative difference between two scores that a few roundings to float32 can cause."""
_FIRST_ROWS = 1000
"""Number of rows to compare first; the scores of two models usually differ in these rows."""


def _first_alike(evaluations: Sequence[BaseEvaluation]) -> list[int]:
    """Find, for each evaluation, the first evaluation with the same scores up to rounding.

    Rounding may change the order of tied rows, so that one of two evaluations with equal scores
    seems to have the better curve. However, the models do not differ, because they give the same
    answer for each row.
    """
    tables = [_scores_of(evaluation) for evaluation in evaluations]
    places: list[int] = []
    for place, scores in enumerate(tables):
        earlier = (k for k in dict.fromkeys(places) if _differ_by_rounding(tables[k], scores))
        places.append(next(earlier, place))
    return places


def _scores_of(evaluation: BaseEvaluation) -> FloatArray | None:
    """Return the scores of the rows; with two classes, only the scores of the positive class.

    The scores of the negative class are one minus the scores of the positive class. The rounding
    error of a positive score of 0.9 would therefore be a nine times larger relative error in the
    negative score of 0.1.
    """
    if not isinstance(evaluation.rows, Predictions):
        return None
    table = evaluation.rows.probabilities
    if table is None or table.shape[1] != 2 or evaluation.positive not in evaluation.labels:
        return table
    return table[:, [evaluation.labels.index(evaluation.positive)]]


def _on_one_scale(first: FloatArray, second: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Subtract a common centre from two tables of scores, unless both contain probabilities.

    If no centre were subtracted, decision values around 1e10 that differ by 1 would seem equal up
    to rounding.
    """
    if min(first.min(), second.min()) >= 0 and max(first.max(), second.max()) <= 1:
        return first, second
    centre = np.median(first, axis=0)
    return first - centre, second - centre


def _differ_by_rounding(first: FloatArray | None, second: FloatArray | None) -> bool:
    """Return whether two tables of scores differ at most by rounding to float32."""
    if first is None or second is None or first.shape != second.shape:
        return False
    first, second = _on_one_scale(first, second)
    for rows in (slice(0, _FIRST_ROWS), slice(_FIRST_ROWS, None)):
        if not np.allclose(first[rows], second[rows], rtol=FLOAT32, atol=0.0, equal_nan=True):
            return False
    return True


def _is_of_same_rows(evaluations: Sequence[BaseEvaluation], name: str) -> bool:
    """Return False if a metric, such as precision, is the share of different rows in each run.

    A share is known to be computed from different rows if its denominators in the two evaluations
    differ. If rows have sampling weights or clusters, the effective number of rows depends on the
    value, so different denominators prove nothing. The denominators of custom metrics are unknown.
    The result is therefore True for sampling weights, clusters and custom metrics.
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
    """Return the difference in a metric between two evaluations of the same rows."""
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
    """Return the difference in a metric between two evaluations with independent errors."""
    a = first.metrics[name]
    b = second.metrics[name]
    error = math.hypot(own_error(first, name), own_error(second, name))
    difference = a - b
    # If a standard error is 0, the data do not show the true standard error.
    if not (error > 0 and math.isfinite(difference)):
        reason = "the standard error is unknown" if math.isfinite(difference) else ""
        return Difference(name, a, b, difference, error, math.nan, math.nan, math.nan, reason)
    degrees = min(own_degrees(first, name), own_degrees(second, name))
    entry = first.catalog.lookup(name)
    reach = normal_quantile(level, degrees) * error
    low, high = cut(difference, reach, (entry.low, entry.high))
    statistic = -abs(difference) / error
    # With infinite degrees of freedom, Student's t distribution is normal.
    tail = stdtr(degrees, statistic) if math.isfinite(degrees) else ndtr(statistic)
    pvalue = 2 * float(tail)
    return Difference(name, a, b, difference, error, float(low), float(high), pvalue)


def own_error(evaluation: BaseEvaluation, name: str) -> float:
    """Return a metric's standard error, which is at least the result of :func:`at_end`.

    If the standard error is unknown, it is derived from the metric's confidence interval. The
    result is NaN if the metric has neither a standard error nor an interval.
    """
    error = evaluation.standard_errors.get(name, math.nan)
    if math.isfinite(error):
        return max(error, at_end(evaluation, name)[0])
    low, high = evaluation.intervals.get(name, (math.nan, math.nan))
    return (high - low) / (2 * normal_quantile(evaluation.confidence_level))


def own_degrees(evaluation: BaseEvaluation, name: str) -> float:
    """Return the degrees of freedom of a metric's standard error.

    The result is the smaller of two numbers: the degrees of freedom for the effective number of
    clusters, and the degrees of freedom that :func:`at_end` returns. The result is infinite if
    neither number exists.
    """
    return min(_cluster_degrees(evaluation, name), at_end(evaluation, name)[1])


def _cluster_degrees(evaluation: BaseEvaluation, name: str) -> float:
    """Return the degrees of freedom for rows in clusters; infinite if there are no clusters."""
    if not isinstance(evaluation, Evaluation):
        return math.inf
    clusters = evaluation.effective_clusters
    if not clusters or name not in clusters:
        return math.inf
    return cluster_degrees(clusters[name], evaluation.n_clusters)


def _mcnemar_of(first: BaseEvaluation, second: BaseEvaluation) -> McNemar | None:
    """Compute McNemar's test for paired rows of single labels; None if the rows have weights."""
    a = first.rows
    b = second.rows
    if not (isinstance(a, Predictions) and isinstance(b, Predictions)):
        return None  # A document is not simply correct or wrong.
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
    """Compute the two-sided p-value of a difference in any metric by a randomization test.

    A randomization test makes no assumption about distributions. In each resample, the two
    predictions of every row are exchanged at random with probability 1/2.

    Parameters
    ----------
    first, second : Evaluation
        Evaluations of the same rows, which both still contain their rows.
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
        If an evaluation has no rows, the rows differ, or the metric is undefined in an evaluation.

    Notes
    -----
    The test evaluates the rows 2 × ``n_resamples`` times. For 10⁵ rows with 11 probabilities each,
    a resample takes about 0.3 s, so 1,000 resamples take 5 minutes.

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
        raise ValueError(f"first and second must be evaluations with the same rows{detail}")
    if isinstance(a, SpanRows) or isinstance(b, SpanRows):
        raise ValueError(
            "first and second must have predictions row by row, got evaluations of spans"
        )
    observed = first.metrics[metric] - second.metrics[metric]
    if not math.isfinite(observed):
        raise ValueError(
            f"metric must be defined in both evaluations, but {metric!r} is undefined in one"
        )
    rng = np.random.default_rng(seed)
    extreme = 0
    for _ in range(n_resamples):
        swap = rng.random(len(a)) < 0.5
        swapped_a = evaluate_rows(_exchanged(a, b, swap), first)
        swapped_b = evaluate_rows(_exchanged(b, a, swap), first)
        difference = swapped_a.metrics[metric] - swapped_b.metrics[metric]
        # A tie counts as a difference that is at least as large. The tolerance is necessary because
        # the order of summation affects the last digits.
        if not abs(difference) < abs(observed) - 1e-12:
            extreme += 1
    return (1 + extreme) / (1 + n_resamples)


def _exchanged(rows: Predictions, other: Predictions, swap: BoolArray) -> Predictions:
    """Return the rows, with predictions from ``other`` in the rows where ``swap`` is true."""
    probabilities = None
    if rows.probabilities is not None and other.probabilities is not None:
        probabilities = np.where(swap[:, None], other.probabilities, rows.probabilities)
    predicted = np.where(swap, other.predicted, rows.predicted)
    return Predictions.from_arrays(rows.labels, rows.actual, predicted, rows.design, probabilities)
