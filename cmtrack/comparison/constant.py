"""The constant answer of an evaluation: the best one that needs no model, and the gain of a model over it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri, stdtrit

from cmtrack.base import BaseEvaluation
from cmtrack.comparison import inference
from cmtrack.comparison.criterion import distance_from_best
from cmtrack.comparison.differences import at_end, own_degrees, own_error
from cmtrack.evaluation import Evaluation
from cmtrack.evaluation.from_arrays import evaluate_rows
from cmtrack.grouping import Label
from cmtrack.metrics.influence import covariance, degrees_of_pairs, standard_error
from cmtrack.metrics.metric import Metric
from cmtrack.metrics.names import encode_label
from cmtrack.metrics.paired import as_normal, binomial_pvalues
from cmtrack.names import quoted
from cmtrack.statistics.counting import Codes
from cmtrack.statistics.inputs import FloatArray, IntArray
from cmtrack.statistics.predictions import Predictions
from cmtrack.statistics.probabilities import in_memory

_OF_LABELS = ("labels", "two groups", "costs")
MOST_ANSWERS = 50
"""Classes that are tried: the most frequent, the cheapest and the one in the metric's name among them."""
N_DRAWS = 5_000
_ROUNDING = 1e-12


@dataclass(frozen=True)
class ConstantAnswer:
    """The best constant answer by a metric, and the gain of a model over it.

    For metrics of labels and costs it is always one class, the one with the best value. For metrics of probabilities
    each class gets its share of the rows as its probability. Where its correlation is undefined, the denominator being
    zero, the model is compared with 0, the value of guessing.

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
        The run less the constant answer, on the same rows. With several runs, p-value and interval allow for the
        selection of the best run (Dunnett 1955), and for that of the class where several may be the best answer. NaN
        where no error is known, and where no model can be better (``unbeatable``).
    unpaired : str
        Why the error does not use that the rows are the same; empty where it does.
    guessed : bool
        True where it is a correlation without a value, and the run is compared with 0.
    unbeatable : bool
        True where it has the best possible value, such as a recall of 1; another metric then shows its price.
    better : "higher", "lower" or "nearest zero"
        The better values.
    confidence_level : float

    Examples
    --------
    >>> from cmtrack import evaluate
    >>> from cmtrack.comparison import constant_answer
    >>> constant = constant_answer(evaluate(["no"] * 8 + ["yes"] * 2, ["no", "yes"] * 5), "multiclass/accuracy")
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
    def _gain(self) -> float:
        return -self.difference if self.better == "lower" else self.difference

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        answer = None if self.answer is None else str(self.answer)
        return asdict(self) | {"answer": answer, "words": self.words, "shown_better": self.shown_better}


def constant_answer(
    evaluation: BaseEvaluation, metric: str, *, run: str = "", rivals: FloatArray | None = None, others: int = 0,
    seed: int = 0,
) -> ConstantAnswer | None:  # fmt: skip
    """The best constant answer of an evaluation by a metric, and the evaluation's gain over it.

    Parameters
    ----------
    evaluation : evaluation
    metric : str
    run : str, optional
        The evaluation's name.
    rivals : ndarray of shape (n, R), optional
        Influence values, larger being better, of the runs of which the evaluation is the best, itself included.
    others : int, default 0
        Number of further runs of which it is the best, without known influence.
    seed : int, default 0

    Returns
    -------
    ConstantAnswer or None
        None where no single class can be answered (spans, sets of codes), the metric has no direction, or its function
        is not known.

    Notes
    -----
    The difference is paired. Without rows, a metric of labels is paired by the cells of the confusion matrix, where
    its counts are whole and of independent rows. Of a share of all rows, such as the accuracy, the p-value is
    McNemar's exact one; of others it is Student's, with the effective number of rows or clusters.

    References
    ----------
    Dunnett, C. W. (1955). A multiple comparison procedure for comparing several treatments with a control. Journal of
    the American Statistical Association 50, 1096-1121.

    Examples
    --------
    >>> from cmtrack import evaluate
    >>> from cmtrack.comparison import constant_answer
    >>> y = [0] * 24 + [1]
    >>> constant = constant_answer(evaluate(y, [1] * 5 + [0] * 20), "multiclass/accuracy")
    >>> constant.value, round(constant.difference, 2), round(constant.pvalue, 4)
    (0.96, -0.2, 0.0625)
    """
    entry = _entry(evaluation, metric)
    if entry is None or not isinstance(evaluation, Evaluation):
        return None
    like = replace(evaluation.asking(sections=(metric,)), rows=None)
    best, answer, rivals_of_answer = _best(like, metric, entry)
    value = best.metrics.get(metric, math.nan)
    reason = "" if math.isfinite(value) else best.undefined.get(metric, "no reason is known")
    end = {"higher": entry.high, "lower": entry.low}.get(entry.better, 0.0)
    constant = ConstantAnswer(
        metric,
        None if answer is None else evaluation.labels[answer],
        value,
        reason,
        run,
        guessed=bool(reason) and entry.interval == "atanh",
        unbeatable=entry.better == "nearest zero" or _off(entry, value) <= _off(entry, end),
        better=entry.better,
        confidence_level=evaluation.confidence_level,
    )
    ours = evaluation.metrics[metric]
    against = 0.0 if constant.guessed else value
    if constant.unbeatable or not (math.isfinite(against) and math.isfinite(ours)):
        return constant
    sign = 1.0 if entry.better == "higher" else -1.0
    pair = _pair(evaluation, like, metric, answer, bool(reason))
    size, tail, drawn = 0.0, others, np.zeros(0)
    degrees, exact, unpaired = math.inf, math.nan, ""
    if isinstance(pair, str):
        unpaired, degrees = pair, own_degrees(evaluation, metric)
        size = math.hypot(*(own_error(one, metric) for one in ((evaluation,) if reason else (evaluation, best))))
        tail += 0 if rivals is None else rivals.shape[1] - 1
    else:
        first, second, rows = pair
        size = standard_error(first - second, rows.weights, rows.clusters)
        both = np.column_stack((first, second))
        degrees = float(degrees_of_pairs(both, rows.actual, rows.weights, rows.clusters)[0, 1])
        error, few, share = at_end(evaluation, metric)
        if not share or evaluation.size_of(metric) == evaluation.n_samples:  # no row tells what a precision of 1 is of
            exact = _exact(first + ours, second + against, rows)
        if share and math.isnan(exact):
            size, degrees = math.hypot(size, error), min(degrees, few)
        if rivals is not None:
            drawn = _largest(rivals - (sign * second)[:, None], rows, seed)
    gain = sign * (ours - against) + 0.0
    if not math.isfinite(size):
        return replace(constant, difference=sign * gain, unpaired=unpaired)
    level = evaluation.confidence_level
    pvalue, low, high = _judged(gain, size, degrees, exact, level, drawn, tail, rivals_of_answer)
    ends = (low, high) if sign > 0 else (-high, -low)
    low, high = np.clip(ends, entry.low - against, entry.high - against).tolist()
    return replace(
        constant, difference=sign * gain, standard_error=size, low=low, high=high, pvalue=pvalue, unpaired=unpaired
    )


def constant_evaluation(evaluation: BaseEvaluation, metric: str, answer: Label | None) -> Evaluation | None:
    """The evaluation of a constant answer, by this metric alone; None except for single labels."""
    if not isinstance(evaluation, Evaluation):
        return None
    like, rows = evaluation.asking(sections=(metric,)), evaluation.rows
    place = None if answer is None else evaluation.labels.index(answer)
    return _constant(
        like, rows if isinstance(rows, Predictions) else _of_classes(like), place, evaluation.statistics.ranking_only
    )


def _of_classes(like: Evaluation) -> Predictions:
    """A row for each class, as heavy as all of its rows."""
    totals = like.confusion_matrix.counts.sum(axis=1)
    there = np.flatnonzero(totals)
    return Predictions(like.labels, Codes(there), Codes(there), weights=totals[there])


def _entry(evaluation: BaseEvaluation, metric: str) -> Metric | None:
    """The metric, if it is defined for a constant answer."""
    if not isinstance(evaluation, Evaluation) or evaluation.none is not None or metric not in evaluation.metrics:
        return None
    entry = evaluation.catalog.lookup(metric)
    counted = entry.needs in (*_OF_LABELS, "probabilities") and entry.section not in ("prevalence", "rough")
    return entry if entry.better and counted and not evaluation.without_function(metric) else None


def _off(entry: Metric, value: float) -> float:
    """The distance of a value from the best, without rounding: smaller is better, and undefined is last."""
    return math.inf if math.isnan(value) else round(distance_from_best(entry.better, value), 12)


def _constant(like: Evaluation, rows: Predictions, answer: int | None, ranking_only: bool = False) -> Evaluation:
    """The evaluation of one answer to all rows: a class, or the shares of the classes."""
    size = len(rows)
    source = None
    if answer is None:
        totals = np.asarray(like.confusion_matrix.counts.sum(axis=1), dtype=np.float64)
        answer = int(totals.argmax())
        source = in_memory(np.broadcast_to(totals / totals.sum(), (size, len(totals))), ranking_only)
    predicted = Codes(np.full(size, answer, dtype=np.int64))
    return evaluate_rows(replace(rows, predicted_codes=predicted, source=source, segments=()), like)


def _best(like: Evaluation, metric: str, entry: Metric) -> tuple[Evaluation, int | None, int]:
    """The best constant answer from one row per class, and the number of answers that may be the best."""
    totals = like.confusion_matrix.counts.sum(axis=1)
    rows = _of_classes(like)
    if entry.needs == "probabilities":
        return _constant(like, rows, None, like.statistics.ranking_only), None, 1
    tried = []
    for k in _answers(like, metric, totals):
        one = _constant(like, rows, k)  # not kept: each has a matrix of its own
        tried.append((k, one.metrics.get(metric, math.nan), one.influence(metric)))
    tried.sort(key=lambda one: _off(entry, one[1]))  # of equal ones the most frequent
    (answer, value, psi), *worse = tried
    best = _constant(like, rows, answer)
    if psi is None or not math.isfinite(value):
        return best, answer, 1
    squares = like.statistics.squares
    weights = rows.weights
    if squares is not None:  # as so many whole rows as Kish's number says
        weights = np.rint(totals[totals > 0] * totals.sum() / squares.matrix.counts.sum()).astype(np.int64)
    close = 1
    for _, theirs_value, theirs in worse:
        gap = abs(value - theirs_value)
        if theirs is not None and gap < -ndtri((1 - like.confidence_level) / 2) * standard_error(psi - theirs, weights):
            close += 1
    return best, answer, close


def _answers(like: Evaluation, metric: str, totals: Any) -> Iterator[int]:
    """Classes to try as the constant answer, the most frequent first."""
    order = np.argsort(-totals, kind="stable")
    wanted = list(order[:MOST_ANSWERS])
    if like.prices is not None:
        wanted.append((totals @ like.prices).argmin())
    named = like.catalog.find(metric)[1].get("label")
    wanted += [k for k, label in enumerate(like.labels) if named is not None and encode_label(label) == named]
    return (int(k) for k in dict.fromkeys(wanted))


def _pair(
    evaluation: Evaluation, like: Evaluation, metric: str, answer: int | None, undefined: bool
) -> tuple[FloatArray, FloatArray, Predictions] | str:
    """Influence values of the evaluation and of the constant answer by row, and the rows; else why there are none.

    Of rows that were not kept the cells of the confusion matrix stand for those of one actual and predicted class.
    """
    rows, ours = evaluation.rows, evaluation
    if rows is None:
        if answer is None or evaluation.statistics.squares is not None or evaluation.cluster_errors is not None:
            return "the predictions by row were not kept"
        counts = evaluation.confusion_matrix.counts
        actual, predicted = np.nonzero(counts)
        rows = Predictions(evaluation.labels, Codes(actual), Codes(predicted), weights=counts[actual, predicted])
        ours = evaluate_rows(rows, like)
    assert isinstance(rows, Predictions)  # of single labels
    first = ours.influence(metric)
    if first is None:
        return "no error by row is known"
    if undefined:
        return first, np.zeros(len(rows)), rows
    second = _constant(like, rows, answer, evaluation.statistics.ranking_only).influence(metric)
    return "no error by row is known" if second is None else (first, second, rows)


def _exact(first: FloatArray, second: FloatArray, rows: Predictions) -> float:
    """McNemar's exact p-value if both metrics are shares of all rows, each row a hit or a miss; else NaN."""
    if rows.clusters is not None or (rows.weights is not None and rows.weights.dtype.kind != "i"):
        return math.nan
    if not all(np.all(np.minimum(np.abs(x), np.abs(x - 1)) < 1e-9) for x in (first, second)):
        return math.nan
    times: IntArray = np.ones(len(first), dtype=np.int64) if rows.weights is None else rows.weights.astype(np.int64)
    gap = first - second
    only = int(times[gap > 0.5].sum()), int(times[gap < -0.5].sum())
    return float(binomial_pvalues(*only)[0]) if any(only) else 1.0


def _largest(gains: FloatArray, rows: Predictions, seed: int) -> FloatArray:
    """The largest error of a run's gain in each draw, in standard errors, ascending."""
    joint = covariance(gains, rows.weights, rows.clusters)
    variance = np.diag(joint)
    has_error = variance > _ROUNDING * max(float(variance.max()), np.finfo(float).tiny)
    if has_error.sum() < 2:
        return np.zeros(0)
    draws = inference.error_draws(joint[np.ix_(has_error, has_error)], N_DRAWS, seed) / np.sqrt(variance[has_error])
    return np.sort(draws.max(axis=1))


def _judged(
    gain: float, error: float, degrees: float, exact: float, level: float, drawn: FloatArray, others: int, answers: int
) -> tuple[float, float, float]:
    """Two-sided p-value and matching interval of the best of several runs over the best of several answers.

    ``drawn``: the largest of the runs' errors, ascending; none of a single run.
    ``others``: further runs, taken as independent (Šidák).
    ``answers``: those that may be the best one: that the run is worse than one of them is adjusted (Bonferroni).
    """

    def above(statistic: float) -> float:
        """The probability that the best of equal runs leads by this much."""
        below = float(ndtr(statistic)) ** (1 + others)
        if len(drawn):
            place = np.searchsorted(drawn, statistic, side="right")
            below = min(below, float(place) / (1 + len(drawn)) * float(ndtr(statistic)) ** others)
        return max(1 - below, float(ndtr(-statistic)))

    statistic = math.copysign(math.inf, gain) if error == 0 and gain else gain / error if error else 0.0
    if math.isfinite(exact):
        statistic, degrees = math.copysign(-float(ndtri(exact / 2)), gain), math.inf
        error = abs(gain / statistic) if gain and statistic else error
    normal = float(as_normal(np.array([statistic]), np.array([degrees]))[0])
    one_sided = above(normal) if gain > 0 else answers * float(ndtr(normal))
    near, far = 0.0, 40.0
    alpha = (1 - level) / 2
    for _ in range(60):
        middle = (near + far) / 2
        near, far = (near, middle) if above(middle) <= alpha else (middle, far)
    reaches = (far, -float(ndtri(alpha / answers)))
    if math.isfinite(degrees):
        reaches = tuple(-float(stdtrit(min(degrees, 1e9), ndtr(-reach))) for reach in reaches)  # type: ignore[assignment]
    return min(1.0, 2 * one_sided), gain - reaches[0] * error, gain + reaches[1] * error
