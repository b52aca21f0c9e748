"""Comparison of runs with the best constant answer, which can be given without a model."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import ndtr, stdtr

from cmtrack.base import BaseEvaluation
from cmtrack.comparison.comparability import why_unpaired
from cmtrack.comparison.criterion import distance_from_best
from cmtrack.comparison.differences import (
    Difference,
    own_degrees,
    own_error,
    paired,
    paired_differences,
)
from cmtrack.evaluation import Evaluation
from cmtrack.evaluation.from_arrays import evaluate_rows
from cmtrack.evaluation.threshold import has_independent_rows
from cmtrack.grouping import Label
from cmtrack.metrics.intervals import holm, normal_quantile
from cmtrack.metrics.metric import Metric
from cmtrack.metrics.names import decode_label, encode_label
from cmtrack.names import quoted
from cmtrack.statistics.counting import Codes
from cmtrack.statistics.design import Design
from cmtrack.statistics.inputs import FloatArray, IntArray
from cmtrack.statistics.predictions import Predictions
from cmtrack.statistics.probabilities import in_memory

_OF_LABELS = ("labels", "two groups", "costs")
MOST_ANSWERS = 50
"""Number of classes, starting with the most frequent, that are tried as the constant answer.

The cheapest class, and the class that the metric is about, are also tried.
"""
_RUNS_AT_ONCE = 16
"""Number of runs that are compared at once; more runs would need large tables of pairs."""
NOT_KEPT = "the predictions by row were not kept"
_NO_ERROR = "the standard error by row is unknown"


@dataclass(frozen=True)
class ConstantAnswer:
    """The constant answer with the best value of a metric, and a model's gain over this answer.

    For metrics computed from labels or costs, the constant answer is the single class with the best
    value. For metrics computed from probabilities, the constant answer predicts, as the probability
    of each class, the class's share of the rows. If the correlation of the constant answer is
    undefined (its denominator is zero), the model is compared with 0, which is the expected value
    of random guessing.

    Attributes
    ----------
    metric : str
    answer : str, int, ... or None
        The class that is always answered; None if the answer is the shares of the classes.
    value : float
        Value of the metric for the constant answer; NaN if undefined.
    reason : str
        Reason why ``value`` is undefined; empty if it is defined.
    run : str
        Name of the run that is compared with the constant answer: the best run.
    difference, standard_error, low, high, pvalue : float
        The difference is the value of the run minus the value of the constant answer on the same
        rows, with its standard error, interval and p-value. If there are several runs, the p-value
        is adjusted by Holm's method (1979), but the interval is not adjusted. The difference,
        error, interval and p-value are NaN if the standard error is unknown or if ``unbeatable`` is
        True.
    unpaired : str
        Reason why the standard error does not use pairs of rows; empty if it uses pairs.
    guessed : bool
        True if the metric is a correlation that is undefined for a constant answer, so that the run
        is compared with 0.
    unbeatable : bool
        True if no model can be better than the constant answer. No model can be better if the
        metric is one-sided, like recall, or if all rows have the same class.
    better : "higher", "lower" or "nearest zero"
        Direction in which values are better.
    confidence_level : float
    by_run : dict of str to float
        The p-values of all runs by run id, or of all models by name, adjusted by Holm's method for
        the number of runs.
    shown : tuple of str
        Ids of the runs, or names of the models, that are significantly better than the constant
        answer.
    not_tested : int
        Number of further runs that the best run was selected from and that were not tested, because
        they were not read.

    Examples
    --------
    >>> from cmtrack import evaluate
    >>> from cmtrack.comparison import constant_answer
    >>> evaluation = evaluate(["no"] * 8 + ["yes"] * 2, ["no", "yes"] * 5)
    >>> constant = constant_answer(evaluation, "multiclass/accuracy")
    >>> constant.words, constant.value, round(constant.difference, 1), constant.shown_better
    ('always “no”', 0.8, -0.3, False)
    """

    metric: str
    answer: Label | None
    value: float
    reason: str = ""
    run: str = ""
    difference: float = math.nan
    standard_error: float = math.nan
    low: float = math.nan
    high: float = math.nan
    pvalue: float = math.nan
    unpaired: str = ""
    guessed: bool = False
    unbeatable: bool = False
    better: str = "higher"
    confidence_level: float = 0.95
    by_run: Mapping[str, float] = field(default_factory=dict)
    shown: tuple[str, ...] = ()
    not_tested: int = 0

    @property
    def words(self) -> str:
        """The answer in words, such as "always “no”"."""
        return "the class shares" if self.answer is None else f"always {quoted(self.answer)}"

    @property
    def shown_better(self) -> bool:
        """True if the run is significantly better than the constant answer, or than guessing."""
        return self.pvalue <= 1 - self.confidence_level and self._gain > 0

    @property
    def shown_worse(self) -> bool:
        """True if the run is significantly worse than the constant answer, or than guessing."""
        return self.pvalue <= 1 - self.confidence_level and self._gain < 0

    @property
    def warns(self) -> bool:
        """True if a review must warn that the run is not significantly better."""
        return math.isfinite(self.pvalue) and not self.unbeatable and not self.shown_better

    @property
    def ahead(self) -> bool:
        """True if the run's value is better, significantly or not."""
        return self._gain > 0

    @property
    def none_shown(self) -> bool:
        """True if all runs were tested, and no run is significantly better."""
        tested = not self.not_tested and all(map(math.isfinite, self.by_run.values()))
        return tested and not self.shown

    @property
    def against(self) -> float:
        """The value that runs are compared with: the constant answer's value, or 0 for guessing."""
        return 0.0 if self.guessed else self.value

    @property
    def _gain(self) -> float:
        return -self.difference if self.better == "lower" else self.difference

    def for_run(self, run_id: str, name: str, value: float) -> ConstantAnswer:
        """Return a copy in which the constant answer is compared with a different tested run."""
        return replace(
            self,
            run=name,
            difference=value - self.against,
            standard_error=math.nan,
            low=math.nan,
            high=math.nan,
            pvalue=self.by_run.get(run_id, math.nan),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the constant answer as plain data."""
        answer = None if self.answer is None else str(self.answer)
        return asdict(self) | {
            "answer": answer,
            "words": self.words,
            "shown_better": self.shown_better,
        }


def constant_answer(
    evaluation: BaseEvaluation, metric: str, *, run: str = ""
) -> ConstantAnswer | None:
    """Return the constant answer with the best value of a metric, and the gain over this answer.

    Parameters
    ----------
    evaluation : evaluation
    metric : str
    run : str, optional
        Name of the evaluation.

    Returns
    -------
    ConstantAnswer or None
        None if the evaluation is not of single labels (spans, sets of codes), if the metric has no
        direction, or if the metric's function is unknown.

    Notes
    -----
    :func:`~cmtrack.paired_differences` computes the difference, its interval and its p-value. If
    the evaluation has no rows, a metric computed from labels uses the cells of the confusion matrix
    as paired rows. Cells can replace rows only if the counts are whole numbers of independent rows.
    If all counts are such whole numbers, a correlation or Cohen's kappa of two classes or groups is
    tested by Fisher's exact test. All other correlations are tested by means of their confidence
    intervals.

    Examples
    --------
    >>> from cmtrack import evaluate
    >>> from cmtrack.comparison import constant_answer
    >>> y = [0] * 24 + [1]
    >>> constant = constant_answer(evaluate(y, [1] * 10 + [0] * 15), "multiclass/accuracy")
    >>> constant.value, round(constant.difference, 2), round(constant.pvalue, 4)
    (0.96, -0.4, 0.0016)
    """
    return constant_of_runs({run: evaluation}, metric, run, name=run)


def constant_of_runs(
    runs: Mapping[str, BaseEvaluation], metric: str, best: str, *, name: str, not_tested: int = 0
) -> ConstantAnswer | None:
    """Return the best constant answer for runs on the same data, with the gain of each run.

    ``runs``: maps run ids to evaluations, all of which have a value of the metric.
    ``best``: id of the run with the best value.
    ``name``: name of the run with the best value.
    ``not_tested``: number of further runs that ``best`` was selected from, which Holm's adjustment
    takes into account.
    """
    leader = runs[best]
    entry = _entry(leader, metric)
    if entry is None or not isinstance(leader, Evaluation):
        return None
    constant, n_answers = _best_answer(leader, metric, entry)
    constant = replace(constant, run=name, not_tested=not_tested)
    if constant.unbeatable or not math.isfinite(constant.against):
        return constant
    gaps: dict[str, Difference] = {}
    by_rows: dict[str, Evaluation] = {}
    for run_id, evaluation in runs.items():
        if not isinstance(evaluation, Evaluation) or not math.isfinite(
            evaluation.metrics.get(metric, math.nan)
        ):
            continue
        if constant.guessed or _table_to_test(evaluation, metric, entry) is not None:
            gaps[run_id] = _gap_from_guessing(evaluation, metric, entry, constant.against)
        else:
            by_rows[run_id] = _with_rows(evaluation, metric, constant)
    gaps |= _gaps_by_rows(by_rows, metric, constant, best)
    gaps = {run_id: gaps[run_id] for run_id in runs if run_id in gaps}
    if best not in gaps:  # the run has no value
        return constant
    pvalues = [_two_sided_over_answers(gap, constant, n_answers) for gap in gaps.values()]
    adjusted = holm([*pvalues, *[1.0] * not_tested])[: len(gaps)]
    by_run = dict(zip(gaps, adjusted.tolist(), strict=True))
    gap = gaps[best]
    constant = replace(
        constant,
        difference=gap.difference,
        standard_error=gap.standard_error,
        low=gap.low,
        high=gap.high,
        pvalue=by_run[best],
        unpaired="" if constant.guessed else _why_unpaired(leader, metric, constant),
        by_run=by_run,
    )
    each = {run_id: constant.for_run(run_id, "", runs[run_id].metrics[metric]) for run_id in by_run}
    return replace(
        constant, shown=tuple(run_id for run_id, one in each.items() if one.shown_better)
    )


def _gaps_by_rows(
    runs: Mapping[str, Evaluation], metric: str, constant: ConstantAnswer, best: str
) -> dict[str, Difference]:
    """Return the difference between each run and the constant answer.

    The interval is computed only for the best run, because intervals take most of the time.
    """
    gaps: dict[str, Difference] = {}
    for answered, of_same_rows in _answers_by_rows(runs, metric, constant):
        without_interval: dict[str, Evaluation] = {}
        for run_id, evaluation in of_same_rows.items():
            if run_id == best or why_unpaired(evaluation, answered) is not None:
                gaps[run_id] = paired_differences(evaluation, answered, metrics=[metric])[metric]
            else:
                without_interval[run_id] = evaluation
        gaps |= _gaps_of_same_rows(without_interval, answered, metric)
    return gaps


def _answers_by_rows(
    runs: Mapping[str, Evaluation], metric: str, constant: ConstantAnswer
) -> list[tuple[Evaluation, dict[str, Evaluation]]]:
    """Return constant answers, each with the runs that were evaluated on the same rows."""
    answers: list[tuple[Evaluation, dict[str, Evaluation]]] = []
    answered: Evaluation | None = None
    of_same_rows: dict[str, Evaluation] = {}
    for run_id, evaluation in runs.items():
        if answered is None or why_unpaired(evaluation, answered) is not None:
            answered = constant_evaluation(evaluation, metric, constant.answer)
            of_same_rows = {}
            answers.append((answered, of_same_rows))
        of_same_rows[run_id] = evaluation
    return answers


def _gaps_of_same_rows(
    runs: Mapping[str, Evaluation], answered: Evaluation, metric: str
) -> dict[str, Difference]:
    """Return differences, without intervals, between runs and the constant answer."""
    gaps: dict[str, Difference] = {}
    design = None if answered.rows is None else answered.rows.design
    run_ids = list(runs)
    for start in range(0, len(run_ids), _RUNS_AT_ONCE):
        part = run_ids[start : start + _RUNS_AT_ONCE]
        pairs = paired([*(runs[run_id] for run_id in part), answered], metric, design)
        for place, run_id in enumerate(part):
            if pairs is None:  # a run has no standard error by row
                gaps[run_id] = paired_differences(runs[run_id], answered, metrics=[metric])[metric]
                continue
            gaps[run_id] = Difference(
                metric,
                runs[run_id].metrics[metric],
                answered.metrics[metric],
                difference=float(pairs.difference[place, -1]),
                standard_error=float(pairs.error[place, -1]),
                low=math.nan,
                high=math.nan,
                pvalue=float(pairs.pvalue[place, -1]),
            )
    return gaps


def constant_evaluation(evaluation: Evaluation, metric: str, answer: Label | None) -> Evaluation:
    """Return the evaluation of a constant answer, in which only one metric is computed."""
    like = evaluation.asking(sections=(metric,))
    rows = evaluation.rows
    place = None if answer is None else evaluation.labels.index(answer)
    return _constant(
        like,
        rows if isinstance(rows, Predictions) else _of_classes(like),
        place,
        evaluation.statistics.ranking_only,
    )


def _of_classes(like: Evaluation) -> Predictions:
    """Return one row per class, weighted by the class's number of rows."""
    totals = like.confusion_matrix.counts.sum(axis=1)
    there = np.flatnonzero(totals)
    design = Design(len(there), totals[there])
    return Predictions(like.labels, Codes(there), Codes(there), design)


def _entry(evaluation: BaseEvaluation, metric: str) -> Metric | None:
    """Return the catalog entry of a metric; None if the metric cannot compare constant answers."""
    if (
        not isinstance(evaluation, Evaluation)
        or evaluation.none is not None
        or metric not in evaluation.metrics
    ):
        return None
    entry = evaluation.catalog.lookup(metric)
    counted = entry.needs in (*_OF_LABELS, "probabilities") and entry.section not in (
        "prevalence",
        "rough",
    )
    return entry if entry.better and counted and not evaluation.without_function(metric) else None


def _off(entry: Metric, value: float) -> float:
    """Return the distance of a value from the best value; infinite if the value is undefined.

    The distance is rounded to 12 digits, so that values that differ only because of the order of
    summation become equal.
    """
    return math.inf if math.isnan(value) else round(distance_from_best(entry.better, value), 12)


def _constant(
    like: Evaluation, rows: Predictions, answer: int | None, ranking_only: bool = False
) -> Evaluation:
    """Evaluate one answer for all rows, which is a class or the shares of all classes."""
    size = len(rows)
    source = None
    if answer is None:
        totals = np.asarray(like.confusion_matrix.counts.sum(axis=1), dtype=np.float64)
        answer = int(totals.argmax())
        source = in_memory(
            np.broadcast_to(totals / totals.sum(), (size, len(totals))), ranking_only
        )
    predicted = Codes(np.full(size, answer, dtype=np.int64))
    return evaluate_rows(replace(rows, predicted_codes=predicted, source=source, segments=()), like)


def _best_answer(evaluation: Evaluation, metric: str, entry: Metric) -> tuple[ConstantAnswer, int]:
    """Return the best constant answer, and the number of answers that may be the best.

    If several answers are equally good, the most frequent class is the best.
    """
    like = replace(evaluation.asking(sections=(metric,)), rows=None)
    rows = _of_classes(like)
    n_answers = 1
    if entry.needs == "probabilities":
        answer = None
        best = _constant(like, rows, None, like.statistics.ranking_only)
        value = best.metrics.get(metric, math.nan)
    else:
        values = {}
        influence = {}
        for k in _answers(like, metric):  # keep no evaluation: each has a confusion matrix
            tried = _constant(like, rows, k)
            values[k] = tried.metrics.get(metric, math.nan)
            influence[k] = tried.influence(metric)
        answer = min(values, key=lambda k: _off(entry, values[k]))
        best = _constant(like, rows, answer)
        value = values[answer]
        n_answers = sum(
            _may_be_best(k, answer, values, influence, rows, evaluation) for k in values
        )
    reason = "" if math.isfinite(value) else best.undefined.get(metric, "the reason is unknown")
    best_value = {"higher": entry.high, "lower": entry.low}.get(entry.better, 0.0)
    unbeatable = (
        entry.one_sided
        or entry.better == "nearest zero"
        or _off(entry, value) <= _off(entry, best_value)
    )
    constant = ConstantAnswer(
        metric,
        None if answer is None else evaluation.labels[answer],
        value,
        reason,
        guessed=bool(reason) and entry.interval == "atanh",
        unbeatable=unbeatable,
        better=entry.better,
        confidence_level=evaluation.confidence_level,
    )
    return constant, n_answers


def _may_be_best(
    answer: int,
    best: int,
    values: Mapping[int, float],
    influence: Mapping[int, FloatArray | None],
    rows: Predictions,
    evaluation: Evaluation,
) -> bool:
    """Return whether a constant answer is not significantly worse than the selected best answer."""
    ours = influence[answer]
    of_best = influence[best]
    if answer == best or ours is None or of_best is None:
        return answer == best
    reach = normal_quantile(evaluation.confidence_level) * rows.design.standard_error(
        ours - of_best
    )
    return abs(values[answer] - values[best]) < reach


def _two_sided_over_answers(gap: Difference, constant: ConstantAnswer, n_answers: int) -> float:
    """Return the two-sided p-value of a run's difference from the best constant answer.

    A run that is better than the best answer is better than every answer, so its p-value needs no
    adjustment. A run may look worse merely because the best of several answers was selected, so the
    p-value of a worse run is adjusted by Bonferroni's method. If the values are equal, the p-value
    is 1, even if the standard error is unknown.
    """
    if gap.difference == 0 and math.isnan(gap.pvalue):
        return 1.0
    behind = gap.difference > 0 if constant.better == "lower" else gap.difference < 0
    return min(1.0, gap.pvalue * n_answers) if behind else gap.pvalue


def _answers(like: Evaluation, metric: str) -> Iterator[int]:
    """Return the classes to try as the constant answer, with the most frequent first."""
    totals = like.confusion_matrix.counts.sum(axis=1)
    order = np.argsort(-totals, kind="stable")
    wanted = list(order[:MOST_ANSWERS])
    if like.prices is not None:
        wanted.append((totals @ like.prices).argmin())
    named = like.catalog.find(metric)[1].get("label")
    wanted += [
        k
        for k, label in enumerate(like.labels)
        if named is not None and encode_label(label) == named
    ]
    return (int(k) for k in dict.fromkeys(wanted))


def _why_unpaired(evaluation: Evaluation, metric: str, constant: ConstantAnswer) -> str:
    """Return why the difference from the constant answer is not paired; empty if it is paired."""
    rows = _with_rows(evaluation, metric, constant)
    if rows.rows is None:
        return NOT_KEPT
    return _NO_ERROR if rows.influence(metric) is None else ""


def _with_rows(evaluation: Evaluation, metric: str, constant: ConstantAnswer) -> Evaluation:
    """Return the evaluation, in which cells of the confusion matrix replace missing rows.

    The result has no rows if cells cannot replace the rows. Cells of the confusion matrix cannot
    replace rows if the metric is computed from probabilities, or if the rows have sampling weights
    or clusters.
    """
    if (
        evaluation.rows is not None
        or constant.answer is None
        or not has_independent_rows(evaluation)
    ):
        return evaluation
    counts = evaluation.confusion_matrix.counts
    actual, predicted = np.nonzero(counts)
    design = Design(len(actual), counts[actual, predicted])
    cells = Predictions(evaluation.labels, Codes(actual), Codes(predicted), design)
    return evaluate_rows(cells, replace(evaluation.asking(sections=(metric,)), rows=None))


def _table_to_test(evaluation: Evaluation, metric: str, entry: Metric) -> IntArray | None:
    """Return the table for Fisher's exact test; None if the test does not apply.

    Fisher's exact test compares the run with random guessing. Fisher's test requires that the
    metric of the constant answer is the value for no association (0, or 0.5 for balanced accuracy),
    and that the counts are whole numbers of independent rows. If a class has few rows, the standard
    error of a paired difference would be far too small. For example, if neither the run nor the
    constant answer predicts any row of a rare class correctly, the difference in recall seems to
    have no error.
    """
    if not entry.association or not has_independent_rows(evaluation):
        return None
    table = _two_by_two(evaluation, metric, entry)
    if table is None or np.any(table != np.rint(table)):
        return None
    return np.rint(table).astype(np.int64)


def _two_by_two(evaluation: Evaluation, metric: str, entry: Metric) -> FloatArray | IntArray | None:
    """Return the two-by-two table of actual and predicted classes; None for more classes.

    A mismatch within a group counts as a correct prediction of the group, as in the correlation of
    groups.
    """
    step = evaluation.catalog.find(metric)[1].get("step")
    if entry.of == "binary":
        six = evaluation.binary
        if six is None:
            return None
        return np.array([[six.tp + six.imp, six.fn], [six.fp, six.tn + six.imn]])
    counts = evaluation.confusion_matrix.counts
    if step is not None:
        reduced = evaluation.reduced[decode_label(step)]
        counts = reduced.counts + np.diag(reduced.mismatches)
    return counts if counts.shape == (2, 2) else None


def _gap_from_guessing(
    evaluation: Evaluation, metric: str, entry: Metric, guessing: float
) -> Difference:
    """Return the difference between a correlation, kappa or balanced accuracy and guessing.

    The interval of the difference is derived from the confidence interval of the metric. For a
    two-by-two table, the p-value is computed by Fisher's exact test, which is valid for any number
    of positives. If Fisher's test does not apply, the p-value is derived from the interval, so that
    the p-value is at most 5% if and only if the 95% interval excludes 0.
    """
    value = evaluation.metrics[metric]
    interval = evaluation.intervals.get(metric, (math.nan, math.nan))
    error = own_error(evaluation, metric)
    table = _table_to_test(evaluation, metric, entry)
    if table is not None:
        pvalue = _fisher_pvalue(table)
    else:
        statistic = value / error if error > 0 else math.nan
        with np.errstate(divide="ignore"):
            low, high = np.arctanh(interval).tolist()  # the interval is symmetric on this scale
        if math.isfinite(high - low) and low < high:
            reach = normal_quantile(evaluation.confidence_level, own_degrees(evaluation, metric))
            statistic = (low + high) / (high - low) * reach
        pvalue = _two_sided(statistic, own_degrees(evaluation, metric))
    low, high = interval
    return Difference(
        metric, value, guessing, value - guessing, error, low - guessing, high - guessing, pvalue
    )


def _fisher_pvalue(table: FloatArray | IntArray) -> float:
    """Return the two-sided p-value of Fisher's exact test of a two-by-two table of counts.

    It is computed here because importing ``scipy.stats`` takes a second.
    """
    (cell, right), (below, opposite) = np.asarray(table, dtype=np.float64)
    row = cell + right
    column = cell + below
    total = row + below + opposite
    apart = total - row - column
    # If all margins are fixed, one cell follows a hypergeometric distribution. Far from its mean,
    # its probabilities are smaller than any floating-point number.
    mean = row * column / total
    reach = 40 * math.sqrt(mean * (total - row) * (total - column)) / total + 1000
    least = max(0.0, -apart, math.ceil(mean - reach))
    most = min(row, column, math.floor(mean + reach))
    if not least <= cell <= most:
        return 0.0
    values = np.arange(least, most + 1)
    following = values[1:]
    before = values[:-1]
    steps = np.log((row - before) * (column - before) / (following * (apart + following)))
    # Sums that start at the mode stay small where probabilities are large, so they are accurate.
    mode = np.count_nonzero(steps > 0)
    lower = -np.cumsum(steps[:mode][::-1])[::-1]
    weights = np.exp(np.concatenate((lower, [0.0], np.cumsum(steps[mode:]))))
    observed = weights[int(cell - least)]
    # Probabilities of equally unlikely tables may differ by rounding.
    return float(weights[weights <= observed * (1 + 1e-7)].sum() / weights.sum())


def _two_sided(statistic: float, degrees: float) -> float:
    """Return the two-sided p-value of a statistic that follows Student's t distribution."""
    # Infinite degrees of freedom give the normal distribution.
    tail = stdtr(degrees, -abs(statistic)) if math.isfinite(degrees) else ndtr(-abs(statistic))
    return 2 * float(tail)
