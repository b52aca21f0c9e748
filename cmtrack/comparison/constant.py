"""The best constant answer, one that needs no model, and what each run gains over it."""

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
"""Classes that are tried: the most frequent, the cheapest and the class in the metric's name."""
_RUNS_AT_ONCE = 16
"""Runs compared with the constant answer at once, so that tables of all their pairs are small."""
NOT_KEPT = "the predictions by row were not kept"
_NO_ERROR = "no error by row is known"


@dataclass(frozen=True)
class ConstantAnswer:
    """The best constant answer by a metric, and the gain of a model over it.

    For metrics of labels and costs it is always one class, the one with the best value. For metrics
    of probabilities each class gets its share of the rows as its probability. Where its correlation
    is undefined, the denominator being zero, the model is compared with 0, the value of guessing.

    Attributes
    ----------
    metric : str
    answer : str, int, ... or None
        The class; None for the shares.
    value : float
        NaN where it is undefined.
    reason : str
        Why it is.
    run : str
        Name of the run that is compared with it: the best one.
    difference, standard_error, low, high, pvalue : float
        The run less the constant answer, on the same rows. Of several runs the p-value is adjusted
        by Holm (1979); the interval is that of this run alone. NaN where no error is known, and for
        ``unbeatable``.
    unpaired : str
        Why the error does not use that the rows are the same; empty where it does.
    guessed : bool
        True where it is a correlation without a value, and the run is compared with 0.
    unbeatable : bool
        True where no model can be better: a constant answer reaches the best value of a one-sided
        metric such as recall, and of any metric if all rows are of one class. Another metric then
        shows its price.
    better : "higher", "lower" or "nearest zero"
        The better values.
    confidence_level : float
    by_run : dict of str to float
        The p-value of each run, by its id (of each model, by its name), adjusted by Holm over all
        of them.
    shown : tuple of str
        Ids (names) of those that are shown to be better.
    not_tested : int
        Further runs that the best one was chosen from, without a test: they were not read.

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
        """The answer in words: "always “no”"."""
        return "each class its share" if self.answer is None else f"always {quoted(self.answer)}"

    @property
    def shown_better(self) -> bool:
        """True if the run is shown to be better than the constant answer, or than guessing."""
        return self.pvalue <= 1 - self.confidence_level and self._gain > 0

    @property
    def shown_worse(self) -> bool:
        """True if the run is shown to be worse."""
        return self.pvalue <= 1 - self.confidence_level and self._gain < 0

    @property
    def warns(self) -> bool:
        """True if a reader must know that the run is not shown to be better."""
        return math.isfinite(self.pvalue) and not self.unbeatable and not self.shown_better

    @property
    def ahead(self) -> bool:
        """True if the run's value is better, whether or not that is shown."""
        return self._gain > 0

    @property
    def none_shown(self) -> bool:
        """True if all runs were tested, and none is shown to be better."""
        tested = not self.not_tested and all(map(math.isfinite, self.by_run.values()))
        return tested and not self.shown

    @property
    def against(self) -> float:
        """The value that runs are compared with: 0 of guessing."""
        return 0.0 if self.guessed else self.value

    @property
    def _gain(self) -> float:
        return -self.difference if self.better == "lower" else self.difference

    def for_run(self, run_id: str, name: str, value: float) -> ConstantAnswer:
        """The same constant answer, compared with another run that was tested."""
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
        """Plain data."""
        answer = None if self.answer is None else str(self.answer)
        return asdict(self) | {
            "answer": answer,
            "words": self.words,
            "shown_better": self.shown_better,
        }


def constant_answer(
    evaluation: BaseEvaluation, metric: str, *, run: str = ""
) -> ConstantAnswer | None:
    """The best constant answer of an evaluation by a metric, and the evaluation's gain over it.

    Parameters
    ----------
    evaluation : evaluation
    metric : str
    run : str, optional
        The evaluation's name.

    Returns
    -------
    ConstantAnswer or None
        None where no single class can be answered (spans, sets of codes), the metric has no
        direction, or its function is not known.

    Notes
    -----
    The difference, its interval and its p-value are those of :func:`~cmtrack.paired_differences`.
    Without rows, a metric of labels is paired by the cells of the confusion matrix, where its
    counts are whole and of independent rows. A correlation or Cohen's kappa of two classes or
    groups is tested by Fisher's exact test of their table, where its counts are whole and of
    independent rows; any other correlation by its own interval.

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
    """The best constant answer of runs of the same data, and what each of them gains over it.

    ``runs``: by id; with a value of the metric.
    ``best``: the id of the one with the best value; ``name`` is its name.
    ``not_tested``: further runs that it is the best of: they count for Holm's adjustment.
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
    """Return each run less the constant answer.

    Only the best run gets an interval, because intervals take most of the time.
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
    """The constant answer to each set of rows, with the runs in a row that are paired with it."""
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
    """Differences of runs from the constant answer on the same rows, without intervals."""
    gaps: dict[str, Difference] = {}
    design = None if answered.rows is None else answered.rows.design
    run_ids = list(runs)
    for start in range(0, len(run_ids), _RUNS_AT_ONCE):
        part = run_ids[start : start + _RUNS_AT_ONCE]
        pairs = paired([*(runs[run_id] for run_id in part), answered], metric, design)
        for place, run_id in enumerate(part):
            if pairs is None:  # a run without an error by row
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
    """The evaluation of a constant answer, by this metric alone."""
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
    """A row for each class, as heavy as all of its rows."""
    totals = like.confusion_matrix.counts.sum(axis=1)
    there = np.flatnonzero(totals)
    design = Design(len(there), totals[there])
    return Predictions(like.labels, Codes(there), Codes(there), design)


def _entry(evaluation: BaseEvaluation, metric: str) -> Metric | None:
    """The metric, if it is defined for a constant answer."""
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
    """Return the distance of a value from the best; undefined values are last.

    Rounding to 12 digits makes values equal that differ by the order of a sum.
    """
    return math.inf if math.isnan(value) else round(distance_from_best(entry.better, value), 12)


def _constant(
    like: Evaluation, rows: Predictions, answer: int | None, ranking_only: bool = False
) -> Evaluation:
    """The evaluation of one answer to all rows: a class, or the shares of the classes."""
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

    Of equal ones it is the most frequent class.
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
        for k in _answers(like, metric):  # no evaluation is kept: each has a matrix of its own
            tried = _constant(like, rows, k)
            values[k] = tried.metrics.get(metric, math.nan)
            influence[k] = tried.influence(metric)
        answer = min(values, key=lambda k: _off(entry, values[k]))
        best = _constant(like, rows, answer)
        value = values[answer]
        n_answers = sum(
            _may_be_best(k, answer, values, influence, rows, evaluation) for k in values
        )
    reason = "" if math.isfinite(value) else best.undefined.get(metric, "no reason is known")
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
    """Return whether a constant answer is not clearly worse than the best, selected one."""
    ours = influence[answer]
    of_best = influence[best]
    if answer == best or ours is None or of_best is None:
        return answer == best
    reach = normal_quantile(evaluation.confidence_level) * rows.design.standard_error(
        ours - of_best
    )
    return abs(values[answer] - values[best]) < reach


def _two_sided_over_answers(gap: Difference, constant: ConstantAnswer, n_answers: int) -> float:
    """The p-value of a run's difference from the best constant answer.

    That the run is better is shown against each of the answers that may be the best, and needs no
    adjustment. That it is worse may be due to the selection of the highest among them: this is
    adjusted by Bonferroni. A run of the same value needs no error to be not better.
    """
    if gap.difference == 0 and math.isnan(gap.pvalue):
        return 1.0
    behind = gap.difference > 0 if constant.better == "lower" else gap.difference < 0
    return min(1.0, gap.pvalue * n_answers) if behind else gap.pvalue


def _answers(like: Evaluation, metric: str) -> Iterator[int]:
    """Classes to try as the constant answer, the most frequent first."""
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
    """The reason why the difference from the constant answer is not paired; empty where it is."""
    rows = _with_rows(evaluation, metric, constant)
    if rows.rows is None:
        return NOT_KEPT
    return _NO_ERROR if rows.influence(metric) is None else ""


def _with_rows(evaluation: Evaluation, metric: str, constant: ConstantAnswer) -> Evaluation:
    """Return the evaluation with its rows, or with cells of the confusion matrix for them.

    It has none where cells cannot stand for rows: for probabilities, sampling weights and clusters.
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
    """Return the table of Fisher's exact test of the metric against guessing; None without one.

    The constant answer must have the metric's value without association (0, or 0.5 of balanced
    accuracy), and the counts must be whole and of independent rows. A paired difference would be
    far too certain with few rows of a class: if a run finds none of them, and so does the constant
    answer, their share seems to have no error.
    """
    if not entry.association or not has_independent_rows(evaluation):
        return None
    table = _two_by_two(evaluation, metric, entry)
    if table is None or np.any(table != np.rint(table)):
        return None
    return np.rint(table).astype(np.int64)


def _two_by_two(evaluation: Evaluation, metric: str, entry: Metric) -> FloatArray | IntArray | None:
    """Return the table of two classes or groups, actual by predicted; None of more classes.

    Of groups it counts a mismatch as a hit of its group, as their correlation does.
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
    """A correlation, kappa or balanced accuracy less its value of guessing, with its own interval.

    The p-value is Fisher's exact one of a two-by-two table, which holds however few the positives
    are. Any other is that of the interval: it is at most 5% exactly where the 95% interval leaves
    out 0.
    """
    value = evaluation.metrics[metric]
    interval = evaluation.intervals.get(metric, (math.nan, math.nan))
    error = own_error(evaluation, metric)
    table = _table_to_test(evaluation, metric, entry)
    if table is not None:
        from scipy.stats import fisher_exact  # importing it takes longer than many an evaluation

        pvalue = float(fisher_exact(table).pvalue)
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


def _two_sided(statistic: float, degrees: float) -> float:
    """Return the two-sided p-value of a statistic with Student's distribution."""
    # With infinite degrees of freedom it is the normal distribution.
    tail = stdtr(degrees, -abs(statistic)) if math.isfinite(degrees) else ndtr(-abs(statistic))
    return 2 * float(tail)
