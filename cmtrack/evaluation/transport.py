"""Metrics where the actual classes have other shares: values, errors, intervals, and what changed.

Within each actual class the answers are taken to be distributed as among the labelled rows ("label shift"). A metric of
the shares q is then that of the rows weighted by q over their own shares; its error is that of the labelled rows within
each class, since the shares are given, and of the target's size where the target's own labels are meant. The error of
an estimate of the shares is independent of these, and is added.

Source: Saerens, Latinne and Decaestecker (2002) for the assumption; Elkan (2001) for the weights.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import chdtrc

from cmtrack import notebook
from cmtrack._lazy import cached_property
from cmtrack.digits import count, p_equals, short_percent, significant
from cmtrack.evaluation.row_facts import RowFacts
from cmtrack.grouping import Label
from cmtrack.metrics.influence import Influence, centred
from cmtrack.metrics.intervals import ROUNDING, Interval, on_scale, settled
from cmtrack.metrics.metric import WITHOUT_ERROR, Metric
from cmtrack.metrics.moments import ScoreSamples
from cmtrack.metrics.results import ByName, Results
from cmtrack.metrics.roc import ScoreTable
from cmtrack.metrics.samples import Samples
from cmtrack.metrics.views import EvaluationViews
from cmtrack.names import quoted
from cmtrack.prevalence.fit import doubt, misfit, refusal
from cmtrack.prevalence.results import BasePrevalence, ClassPrevalenceEstimate
from cmtrack.removed import RemovedAttributes, RemovedFeature, reason
from cmtrack.statistics import ConfusionMatrix
from cmtrack.statistics.collected import Statistics
from cmtrack.statistics.design import Design
from cmtrack.statistics.inputs import FloatArray, IntArray, column_names, has_named_rows, listed
from cmtrack.statistics.predictions import Predictions
from cmtrack.statistics.reweighted import reweighted

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from cmtrack.evaluation.result import Evaluation

_COUNTED = ("counts", "table", "whole table", "classes", "binary", "costs")
"""Functions of the table: a row's influence is that of its cell."""
_LEFT_OUT = (
    "class calibration",
    "reliability",
    "confidence",
    "calibrated",
    "calibrated rows",
    "class shares",
)
_SECTIONS = ("multiclass", "class", "reduced", "binary", "cost", "probability", "spcc")
"""Sections that are moved: the probabilities as they are have no calibration at other shares."""
_SAME = 1e-12
_MOST_ANSWERS = 20
"""Classes, the most frequent first, that are tried as the same answer for all rows."""
_MOST_ROWS = 1 << 16
"""Rows up to which they tell the error of what is not kept by class."""


@dataclass(frozen=True, eq=False)
class Target:
    """Shares of the classes in a target.

    ``shares``, shape (K,).
    ``strata``, shape (K,): the class or group that a share was given of, by class: inside it the mix stays as it is
        labelled.
    ``names``: the strata for people.
    ``rows``: rows of the target; NaN where they are not known.
    ``counted``: True where the shares are those of these very rows.
    ``estimated``: the error of shares that were estimated.
    """

    shares: FloatArray
    strata: IntArray
    names: tuple[str, ...]
    rows: float = math.nan
    counted: bool = False
    estimated: Estimated | None = None


@dataclass(frozen=True, eq=False)
class Estimated:
    """The error of estimated shares.

    ``covariance``, shape (S, S): of the shares of the strata.
    ``fit_pvalue``: of the test whether the target's scores fit the labelled ones.
    ``ends``: of the interval of the second of two shares.
    """

    covariance: FloatArray
    fit_pvalue: float
    ends: Interval | None = None


def given_target(evaluation: Evaluation, given: Any, rows: float | None, counted: bool) -> Target:
    """Shares that a caller states: of the positive class or group, of classes, or of the groups of one step.

    TypeError or ValueError if they are no shares, do not sum to 1, are of no class or group, or one above 0 is of a
    class without labelled rows.
    """
    if rows is not None and not (isinstance(rows, numbers.Real) and rows > 0):
        raise ValueError(
            f"rows must be the number of rows of the target, above 0, got {rows!r:.40}"
        )
    labels, step = evaluation.labels, evaluation.scored
    if has_named_rows(given):  # a pandas Series by class, in an order of its own
        given = given.to_dict()
    if isinstance(given, numbers.Real) and not isinstance(given, bool):
        if step is None or step.positive is None:
            raise ValueError(
                f"a single share is that of the positive class or group, and there are not two of them; name the "
                f"share of each of {listed(labels, 8)}, got {given!r}"
            )
        members, wanted = {step.labels[step.positive]: step.in_positive}, [float(given)]
    elif isinstance(given, Mapping):
        members, wanted = _members(evaluation, list(given)), _floats(list(given.values()), given)
    else:
        wanted = _floats(given, given)
        if len(wanted) != len(labels):
            raise ValueError(
                f"there must be one share for each of {len(labels)} classes, got {len(wanted)}"
            )
        members = dict(zip(labels, np.eye(len(labels), dtype=bool), strict=True))
    together = np.sum(list(members.values()), axis=0)
    if together.max() > 1:
        twice = [label for label, times in zip(labels, together, strict=True) if times > 1]
        raise ValueError(f"a class must have one share, got several that are of {listed(twice, 8)}")
    names, rest = [quoted(name) for name in members], together == 0
    missing = 1 - math.fsum(wanted)
    if (
        not all(0 <= share <= 1 for share in wanted)
        or missing < -1e-9
        or (not rest.any() and abs(missing) > 1e-9)
    ):
        raise ValueError(f"shares must lie between 0 and 1 and sum to 1, got {given!r:.80}")
    if rest.any():
        others = quoted(labels[int(rest.argmax())]) if rest.sum() == 1 else "all others"
        names, wanted = [*names, others], [*wanted, max(missing, 0.0)]
        members = {**members, object(): rest}
    strata = np.argmax(list(members.values()), axis=0)
    by_class = evaluation.confusion_matrix.counts.sum(axis=1).astype(np.float64)
    total = np.bincount(strata, by_class, len(wanted))
    for share, there, name in zip(wanted, total, names, strict=True):
        if share > 0 and not there > 0:
            raise ValueError(
                f"a share above 0 needs labelled rows of the class, and there are none of {name}"
            )
    inside = by_class / np.where(total > 0, total, 1.0)[strata]
    shares = np.array(wanted)[strata] * inside
    return Target(shares, strata, tuple(names), math.nan if rows is None else float(rows), counted)


def _members(evaluation: Evaluation, names: list[Label]) -> dict[Any, Any]:
    """The classes of each name, shape (K,): of labels, or of the groups of the last step that has them all.

    A text stands for a label of that text, too: files have no other names.
    """
    labels = evaluation.labels
    steps = [
        (step.labels, step.group_of_class) for step in reversed(evaluation._views.composed.values())
    ]
    for several, place in [(labels, np.arange(len(labels))), *steps]:
        by_text = {str(label): label for label in several}
        meant = [
            name if name in several else by_text.get(name) if isinstance(name, str) else None
            for name in names
        ]
        if all(name in several for name in meant) and len(set(meant)) == len(meant):
            return {name: place == several.index(name) for name in meant}
    unknown = next((name for name in names if name not in labels), names[0])
    raise ValueError(
        f"shares must be of the classes {listed(labels, 8)} or of the groups of one step, got {unknown!r}"
    )


def _floats(values: Any, given: Any) -> list[float]:
    try:
        shares = [float(value) for value in values]
    except (TypeError, ValueError):
        shares = []
    if not shares:
        raise TypeError(
            f"shares must be a number, numbers by class or group, or one number a class, got {given!r:.80}"
        )
    return shares


class Parts(NamedTuple):
    """The squared standard error of a metric by source.

    ``labelled``: from the labelled rows.
    ``shares``: from the error of estimated shares.
    ``realised``: from the target's labels, if its own are meant: times the number of its rows.
    """

    labelled: float
    shares: float
    realised: float

    @property
    def error(self) -> float:
        """The standard error of a metric of the population."""
        return math.sqrt(self.labelled + self.shares)

    def own_error(self, rows: float) -> float:
        """Return the standard error about the metric of the target's own labels."""
        return math.sqrt(self.labelled + self.shares + self.realised / rows)


class _Term(NamedTuple):
    """One metric at the target: its samples there, and its place in them."""

    name: str
    metric: Metric
    samples: Samples
    step: str
    k: int | None
    value: float


class Moved:
    """The metrics of an evaluation at other shares."""

    def __init__(self, evaluation: Evaluation, target: Target) -> None:
        self.evaluation, self.target = evaluation, target
        counts = evaluation.confusion_matrix.counts.sum(axis=1).astype(np.float64)
        self.by_class = counts
        self.factors = np.divide(
            target.shares * counts.sum(), counts, out=np.zeros(len(counts)), where=counts > 0
        )
        self.statistics = reweighted(evaluation.statistics, self.factors, self._sides())
        self.views = self._seen(self.statistics)
        self.undefined: dict[str, str] = {}
        self._known: dict[tuple[str, str], tuple[Any, Any, FloatArray | None, bool]] = {}
        self._padded: dict[tuple[str, str], tuple[Any, Any] | None] = {}

    def _sides(self) -> FloatArray | None:
        """The factors of negatives and positives; None where the mix inside one of them changes."""
        step = self.evaluation.scored
        if step is None:
            return None
        sides = []
        for side in (~step.in_positive, step.in_positive):
            factors = self.factors[side & (self.by_class > 0)]
            if len(factors) and np.ptp(factors) > 1e-9 * factors.max():
                return None
            sides.append(float(factors[0]) if len(factors) else 0.0)
        return np.array(sides)

    @property
    def heavy_negative(self) -> float:
        """The mean weight of a negative row, in the weight of all positives; 0 without both."""
        table = self.views.of(self.evaluation.catalog.lookup("binary/average_precision"), "")
        if not isinstance(table, ScoreTable) or not table.has_both:
            return 0.0
        return float(table.sides[1] / table.effective_sides[1] / table.sides[0])

    def _seen(self, statistics: Any) -> EvaluationViews:
        return self.evaluation._views.of_part(statistics, self.evaluation.confidence_level)

    # -- values ----------------------------------------------------------------------------------------

    @cached_property
    def terms(self) -> dict[str, _Term]:
        """Every metric that can be moved, by its full name."""
        sections = [section.metrics for section in self.evaluation.catalog.sections.all]
        return {
            term.name: term
            for metrics in (*sections, self.evaluation.extra_metrics)
            for step in (
                self.views.steps if any("<step>" in metric.name for metric in metrics) else ("",)
            )
            for metric in filter(self._moves, metrics)
            for term in self._each(metric, step)
        }

    def _moves(self, metric: Metric) -> bool:
        if metric in self.evaluation.extra_metrics:
            return metric.value is not None
        there = metric.section in _SECTIONS and self.evaluation.has_section(metric.section)
        return (
            there
            and metric.interval != "count"
            and metric.of not in _LEFT_OUT
            and metric.name != "spcc/d_b"
        )

    def _each(self, metric: Metric, step: str) -> Iterator[_Term]:
        samples, names = self.views.of(metric, step), self.views.names(metric, step)
        if samples is None:
            return
        pattern = metric.name.replace("<step>", step)
        values = [metric.number(samples.argument())] if names is None else metric.of_each(samples)
        places: Mapping[int | None, str] = {None: ""} if names is None else names  # type: ignore[assignment]
        for k, encoded in places.items():
            name = pattern.replace("<label>", encoded).replace("<group>", encoded)
            value = settled(float(values[k or 0]), metric.low, metric.high)
            if not math.isfinite(value):
                reason = (
                    metric.function.why(samples.argument(), k)
                    or metric.reason
                    or "its denominator is zero"
                )
                self.undefined[name], value = reason, math.nan
            yield _Term(name, metric, samples, step, k, value)

    # -- errors ----------------------------------------------------------------------------------------

    @cached_property
    def _cells(self) -> tuple[Influence, FloatArray, FloatArray]:
        """The cells of the table as rows, their share of the target, and what their squared influence weighs."""
        counts, squares = self.statistics.matrix.counts, self.statistics.squares
        assert squares is not None  # reweighted() makes them
        actual, predicted = np.nonzero(counts)
        at = Influence(
            Predictions.from_arrays(self.evaluation.labels, actual, predicted, Design(len(actual))),
            self.views,
        )
        total = float(counts.sum())
        return (
            at,
            counts[actual, predicted] / total,
            squares.matrix.counts[actual, predicted] / total**2,
        )

    @cached_property
    def _alone(self) -> EvaluationViews:
        """The same table as if its weights were numbers of rows: the spread of one row of the target."""
        return self._seen(replace(self.statistics, squares=None))

    def parts(self, term: _Term) -> tuple[Parts, FloatArray | None] | None:
        """Squared error by source, and the mean influence of each stratum; None where a metric has no error."""
        if term.metric.interval in WITHOUT_ERROR or not math.isfinite(term.value):
            return None
        with np.errstate(all="ignore"):
            found = self._parts(term)
        estimated = self.target.estimated
        if found is None or estimated is None:
            return found
        parts, means = found
        if means is None:  # nothing says how the metric changes with the shares
            return None
        by_shares = float(means @ estimated.covariance @ means)
        return parts._replace(shares=max(by_shares, 0.0)), means

    def _parts(self, term: _Term) -> tuple[Parts, FloatArray | None] | None:
        metric, rows = term.metric, self.evaluation.rows
        parts = self._by_cell(term) if metric.of in _COUNTED else self._by_moments(term)
        if parts is None or not isinstance(rows, Predictions):
            return parts
        rough = (
            metric.of not in _COUNTED
            and self._known[metric.name, term.step][3]
            and len(rows) <= _MOST_ROWS
        )
        by_row = self._by_row(term, rows) if rough or rows.design.has_clusters else None
        return by_row or parts[0], parts[1]

    def _by_cell(self, term: _Term) -> tuple[Parts, FloatArray | None] | None:
        at, weight, squares = self._cells
        psi = term.samples.by_row(term.metric, at, term.step, term.k)
        if psi is None:
            return None
        within, means = centred(
            psi, self.target.strata[at.rows.actual], weight, len(self.target.names)
        )
        realised = float(weight @ (within if self.target.counted else psi) ** 2)
        return Parts(float(squares @ within**2), 0.0, realised), means

    def _by_moments(self, term: _Term) -> tuple[Parts, FloatArray | None] | None:
        """From the errors and spreads of all classes at once, where there is one of each."""
        errors, spreads, means, _ = self._moments(term)
        if errors is None or spreads is None or not math.isfinite(error := _of(errors, term.k)):
            return None
        return Parts(error**2, 0.0, _of(spreads, term.k)), means

    def _moments(self, term: _Term) -> tuple[Any, Any, FloatArray | None, bool]:
        key = term.metric.name, term.step
        if key not in self._known:
            self._known[key] = self._centred(term) or self._uncentred(term)
        return self._known[key]

    def centre(self, term: _Term, parts: Parts) -> tuple[float, Parts]:
        """Return the value and the errors that the lower end of an interval rests on.

        If few rows make most of the error, they have a further negative (:meth:`Samples.with_high_negative`). The error
        by labelled rows then grows as the error of independent rows does, because the error of clusters is known for
        the labelled rows only.
        """
        metric = term.metric
        if not metric.few_errors:
            return term.value, parts
        key = metric.name, term.step
        if key not in self._padded:
            self._padded[key] = self._with_high_negative(term)
        padded = self._padded[key]
        if padded is None:
            return term.value, parts
        value, padded_error = (float(_of(numbers, term.k)) for numbers in padded)
        error = float(_of(self._moments(term)[0], term.k))
        if not (math.isfinite(value) and math.isfinite(padded_error)):
            return term.value, parts
        labelled = padded_error**2
        if error > ROUNDING and parts.labelled > 0:
            labelled *= parts.labelled / error**2
        return value, parts._replace(labelled=labelled)

    def _with_high_negative(self, term: _Term) -> tuple[Any, Any] | None:
        """Return the values and standard errors with a further negative; None if there is none to add."""
        samples = term.samples.with_high_negative()
        if samples is None:
            return None
        with np.errstate(all="ignore"):
            value: Any = (
                term.metric.of_each(samples)
                if term.k is not None
                else term.metric.number(samples.argument())
            )
            padded = term._replace(samples=samples, value=value)
            found = self._centred(padded) or self._uncentred(padded)
        return None if found[0] is None else (value, found[0])

    def _centred(self, term: _Term) -> tuple[Any, Any, FloatArray | None, bool] | None:
        """Standard errors, spreads of one row of the target, means by stratum, and False; None if unknown."""
        samples, strata = term.samples, self.target.strata
        if type(samples).within is Samples.within:
            return None
        psi = term.metric.influence_in(samples)
        centred = None if psi is None else samples.within(psi, strata)
        if psi is None or centred is None:
            return None
        spread = self._spread(
            term, lambda alone: alone.standard_error(centred[0] if self.target.counted else psi)
        )
        means = (
            centred[1]
            if len(centred[1]) == len(self.target.names) and centred[1].ndim == 1
            else None
        )
        # negatives, positives
        if means is not None and isinstance(samples, ScoreTable | ScoreSamples):
            means = means if strata[self.evaluation.scored.in_positive].min() else means[::-1]  # type: ignore[union-attr]
        return samples.standard_error(centred[0]), spread, means, False

    def _uncentred(self, term: _Term) -> tuple[Any, Any, None, bool]:
        """By the weights alone, which is too wide, and True: of what is not kept by class."""
        values = term.value if term.k is None else term.metric.of_each(term.samples)
        spread = self._spread(term, lambda alone: term.metric.spread(alone, values).error)
        return term.metric.spread(term.samples, values).error, spread, None, True

    def _spread(self, term: _Term, error: Callable[[Samples], Any]) -> Any:
        """The variance of one row of the target by the error of all as if weights were numbers of rows."""
        alone = None if math.isnan(self.target.rows) else self._alone.of(term.metric, term.step)
        spread = None if alone is None else error(alone)
        return (
            math.nan if alone is None or spread is None else spread**2 * float(np.max(alone.total))
        )

    def _by_row(self, term: _Term, rows: Predictions) -> Parts | None:
        """By the rows, summed by cluster; None if they have no influence on the metric."""
        influence = self.within(term)
        if influence is None:
            return None
        psi, within, weights = influence
        whole = self.row_weights(rows)
        realised = float(whole @ (within if self.target.counted else psi) ** 2) / float(whole.sum())
        return Parts(rows.design.standard_error(weights * within) ** 2, 0.0, realised)

    def row_weights(self, rows: Predictions) -> FloatArray:
        """The weight of each row at the target, shape (n,): its class's factor times its own weight."""
        return rows.design.weighted(self.factors[rows.actual])

    def within(self, term: _Term) -> tuple[FloatArray, FloatArray, FloatArray] | None:
        """A metric's influence by row, the same less the mean of its stratum, and the weights; None without rows."""
        rows = self.evaluation.rows
        if not isinstance(rows, Predictions) or (
            rows.source is None and term.metric.needs == "probabilities"
        ):
            return None
        psi = term.samples.by_row(term.metric, Influence(rows, self.views), term.step, term.k)
        if psi is None:
            return None
        psi = np.where(self.factors[rows.actual] > 0, psi, 0.0)
        within = centred(psi, self.target.strata[rows.actual], self.row_weights(rows))[0]
        return psi, within, self.factors[rows.actual]

    def fallback(self, term: _Term) -> Interval | None:
        """The interval by effective sample size, if an error of 0 or an end of the range leaves none."""
        results = Results(self.evaluation.confidence_level)
        parts = self.evaluation.catalog.find(term.name)[1]
        if term.metric in self.evaluation.extra_metrics:
            return None
        self.views.put_one(results, term.metric, parts)
        return results.intervals.get(term.name)

    def of_table(self, counts: FloatArray, terms: Iterable[_Term]) -> dict[str, float]:
        """The finite ones of metrics of the table, by name, if it had these counts."""
        plain = Statistics(ConfusionMatrix(counts, self.evaluation.labels), self.statistics.digest)
        views, values, by_metric = self._seen(plain), {}, {}
        for term in terms:
            samples = views.of(term.metric, term.step) if term.metric.of in _COUNTED else None
            if samples is not None:
                key = term.metric.name, term.step
                if key not in by_metric:
                    one = term.k is None
                    by_metric[key] = (
                        term.metric.number(samples.argument())
                        if one
                        else term.metric.of_each(samples)
                    )
                values[term.name] = float(_of(by_metric[key], term.k))
        return {name: value for name, value in values.items() if math.isfinite(value)}


def _of(value: Any, k: int | None) -> Any:
    return value if k is None or np.ndim(value) == 0 else value[k]


ASSUMES = "assumes that within each class the answers are as among the labelled rows"
_UNTESTED = "stated shares cannot test this; an estimate from the target's scores can"
_FEW = 20
_ABSENT = 1e-6
_HEAVY = 0.1
"""Weight of a negative, in that of all positives, from which the bias of the average precision is worth a warning.

Of scores whose logits differ by two standard deviations, it is then about .04.
"""


@dataclass(frozen=True, eq=False)
class Transported(RemovedAttributes):
    """Metrics of an evaluation where the actual classes have other shares.

    Attributes
    ----------
    evaluation : Evaluation
        On the labelled rows.
    shares : dict of label to float
        Shares of all classes in the target.
    rows : float
        Rows of the target; NaN where they are not known, and there are no own intervals.
    fit_pvalue : float
        Small if more than the shares of the classes changed. NaN for stated shares, which cannot test it.
    moved : Moved
        The computation.

    Examples
    --------
    >>> from cmtrack import evaluate
    >>> there = evaluate([0] * 80 + [1] * 20, [0] * 72 + [1] * 24 + [0] * 4).at(0.02)
    >>> round(there.metrics["binary/precision"], 4), there.metrics["binary/recall"]
    (0.1404, 0.8)
    """

    evaluation: Evaluation
    shares: dict[Label, float]
    rows: float
    fit_pvalue: float
    moved: Moved

    @property
    def withdrawn(self) -> bool:
        """True for an estimate whose target's scores do not fit the labelled ones: the metrics are NaN then."""
        return bool(refusal(self.fit_pvalue))

    @property
    def by_name(self) -> dict[str, float]:
        """The given or estimated shares, by the name of the class or group for people; NaN where withdrawn."""
        target = self.moved.target
        if self.withdrawn:
            return dict.fromkeys(target.names, math.nan)
        return dict(
            zip(target.names, np.bincount(target.strata, target.shares).tolist(), strict=True)
        )

    @cached_property
    def metrics(self) -> dict[str, float]:
        """Every metric that can be moved, by its full name; NaN where it is undefined (see :attr:`undefined`)."""
        terms = self.moved.terms
        return ByName(
            {name: math.nan if self.withdrawn else term.value for name, term in terms.items()}
        )

    @property
    def undefined(self) -> dict[str, str]:
        """The reason why a metric is NaN, by name."""
        reason = f"withdrawn: {misfit(self.fit_pvalue)}"
        reasons = (
            dict.fromkeys(self.moved.terms, reason) if self.withdrawn else self.moved.undefined
        )
        return ByName(reasons if self.moved.terms else {}, "undefined metric")

    @cached_property
    def _parts(self) -> dict[str, tuple[Parts, FloatArray | None]]:
        terms = {} if self.withdrawn else self.moved.terms
        by_name = {name: self.moved.parts(term) for name, term in terms.items()}
        return {name: parts for name, parts in by_name.items() if parts is not None}

    @property
    def standard_errors(self) -> dict[str, float]:
        """Standard errors of the metrics of the population with these shares."""
        errors = {name: parts.error for name, (parts, _) in self._parts.items()}
        return ByName(errors, "standard error of")

    @property
    def own_standard_errors(self) -> dict[str, float]:
        """Standard errors about the metrics of the target's own labels; empty if its size is unknown."""
        parts = (
            {}
            if math.isnan(self.rows)
            else {name: parts for name, (parts, _) in self._parts.items()}
        )
        errors = {name: part.own_error(self.rows) for name, part in parts.items()}
        return ByName(errors, "own standard error of")

    @cached_property
    def intervals(self) -> dict[str, Interval]:
        """(low, high) of the metrics of the population with these shares."""
        return ByName(self._intervals(), "interval of")

    @cached_property
    def own_intervals(self) -> dict[str, Interval]:
        """(low, high) of the metrics of the target's own labels; empty if its size is unknown."""
        return ByName({} if math.isnan(self.rows) else self._intervals(True), "own interval of")

    def _intervals(self, realised: bool = False) -> dict[str, Interval]:
        intervals: dict[str, Interval] = {}
        for name, (parts, _) in self._parts.items():
            term = self.moved.terms[name]
            plain_error = parts.own_error(self.rows) if realised else parts.error
            value, parts = self.moved.centre(term, parts)
            error = parts.own_error(self.rows) if realised else parts.error
            metric = term.metric
            bounds, scale = (metric.low, metric.high), metric.interval
            if bounds == (0.0, 1.0):
                scale = "logit"
            elif scale == "atanh" and metric.section != "spcc":
                scale = "wald"  # correlations of tables
            ends = on_scale(scale, value, error, self.evaluation.confidence_level, bounds)
            ends = self.moved.fallback(term) if ends is None and not realised else ends
            if ends is not None and value != term.value:
                # A further negative can only lower the value, so the upper end stays what it is without one.
                plain = on_scale(
                    scale, term.value, plain_error, self.evaluation.confidence_level, bounds
                )
                ends = (
                    min(ends[0], term.value),
                    max(ends[1], term.value if plain is None else plain[1]),
                )
            if name in self._at_ends:
                reached = [term.value, *(ends or ()), *filter(math.isfinite, self._at_ends[name])]
                ends = min(reached), max(reached)
            if ends is not None:
                intervals[name] = ends
        return intervals

    @cached_property
    def _at_ends(self) -> dict[str, list[float]]:
        """Of an estimated share of 0 or 1, whose error means nothing: the values at both ends of its interval."""
        target, values = self.moved.target, dict[str, list[float]]()
        estimated = target.estimated
        if estimated is None or estimated.ends is None or min(self.by_name.values()) >= _ABSENT:
            return values
        for share in estimated.ends:
            parts = np.array([1 - share, share])
            there = _of_strata(
                self.evaluation, parts, target.strata, target.names, target.rows, estimated
            )
            for name, term in Moved(self.evaluation, there).terms.items():
                values.setdefault(name, []).append(term.value)
        return values

    @property
    def reweighted(self) -> Evaluation:
        """The evaluation with its rows weighted to these shares, for its figures, thresholds and decision curves.

        Its own errors are those of sampling weights, which do not know that the shares are given: they are wider.
        """
        rows, spec, facts = (
            self.evaluation.rows,
            replace(self.evaluation.spec, weights_are="sampling"),
            RowFacts(),
        )
        if isinstance(rows, Predictions):
            facts = RowFacts(strata=self.moved.target.strata[rows.actual])
            design = replace(rows.design, weights=self.moved.row_weights(rows))
            rows = replace(rows, design=design)
        made = {"statistics": self.moved.statistics, "spec": spec, "rows": rows, "of_rows": facts}
        other = replace(self.evaluation, **made, kept_numbers=None)  # type: ignore[arg-type]
        return other.with_cluster_errors()

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """The assumption of the numbers, and what is left out."""
        moved, target, step = self.moved, self.moved.target, self.evaluation.scored
        out = [f"{ASSUMES}; {self._tested()}"]
        sizes = np.bincount(target.strata, minlength=len(target.names))
        mixed = [name for name, size in zip(target.names, sizes, strict=True) if size > 1]
        if mixed:
            out.append(f"inside {' and '.join(mixed)} the classes keep their labelled mix")
        if step is not None and moved._sides() is None:
            out.append(
                "metrics of the positive group's score are left out: the mix of classes inside a group changes"
            )
        few = [
            f"{quoted(label)} (n = {count(n)})"
            for label, n, q in zip(
                self.evaluation.labels, moved.by_class, target.shares, strict=True
            )
            if 0 < n < _FEW and q > 0
        ]
        if few:
            out.append(
                f"fewer than {_FEW} labelled rows of {', '.join(few[:8])}: intervals are approximate"
            )
        if step is not None and moved.heavy_negative >= _HEAVY:
            out.append(
                f"the average precision tends to be too high: each labelled negative weighs {short_percent(moved.heavy_negative)} "
                "of all labelled positives"
            )
        absent = [name for name, share in self.by_name.items() if share < _ABSENT]
        if target.estimated is not None and absent:
            rest = "too narrow" if target.estimated.ends is None else "as far as its own reaches"
            out.append(
                f"the estimated share of {', '.join(absent[:8])} is 0: intervals that rest on it are {rest}"
            )
        summed = isinstance(self.evaluation.rows, Predictions) and target.estimated is None
        if self.evaluation.cluster_errors is not None and not summed:
            out.append("rows belong together in groups: these errors take them for independent")
        return tuple(out)

    def constant(self, metric: str) -> float:
        """The metric's value there of the best answer that is the same for all rows; NaN where it is not of the table.

        Parameters
        ----------
        metric : str
            Its full name.
        """
        moved, term = self.moved, self.moved.terms[metric]
        rows, values = moved.statistics.matrix.counts.sum(axis=1), list[float]()
        for k in (
            np.argsort(-rows, kind="stable")[:_MOST_ANSWERS] if term.metric.of in _COUNTED else ()
        ):
            counts = np.zeros((len(rows),) * 2)
            counts[:, k] = rows
            values += moved.of_table(counts, [term]).values()
        return (
            (min(values) if term.metric.better == "lower" else max(values)) if values else math.nan
        )

    def figure(self, metric: str | None = None) -> Figure:
        """Draw a metric against the share of positives, from that of the labelled rows to that of the target.

        Parameters
        ----------
        metric : str, optional
            Its full name; by default the accuracy, of groups that of the last step.

        Raises
        ------
        ValueError
            If there is no positive class or group, or the metric cannot be moved.
        """
        from cmtrack.plots.evaluation import at_prevalence_figure

        step = self.evaluation.scored
        share = (
            math.nan if step is None else float(self.moved.target.shares[step.in_positive].sum())
        )
        figure = at_prevalence_figure(self.evaluation, metric, target=share)
        if figure is None:
            raise ValueError(
                f"the figure is of a positive class or group and a metric that moves, got {metric!r}"
            )
        return figure

    def homogeneity(self, audited: Evaluation) -> tuple[float, int, float]:
        """Test whether predictions within each class are alike for labelled rows of the target and the rows here.

        Parameters
        ----------
        audited : Evaluation
            Of rows of the target whose labels are known, and the same classes.

        Returns
        -------
        statistic, degrees, pvalue
            Pearson's X² of the answers by set, summed over the actual classes; a small p-value speaks against moving
            the metrics. NaN without a degree of freedom.
        """
        got, wanted = getattr(audited, "labels", ()), self.evaluation.labels
        if got != wanted:
            text = listed(got, 8) if got else f"{audited!r:.80}"
            raise ValueError(
                f"audited must be an evaluation of the classes {listed(wanted, 8)}, got {text}"
            )
        both = np.stack([one.confusion_matrix.counts for one in (self.evaluation, audited)]).astype(
            np.float64
        )
        rows, columns = both.sum(axis=2), both.sum(axis=0)
        seen = (rows > 0).all(axis=0)
        expected = rows[:, :, None] * columns / np.maximum(columns.sum(axis=1), 1e-300)[:, None]
        used = (columns > 0) & seen[:, None]
        statistic = float(
            ((both - expected) ** 2 / np.where(expected > 0, expected, 1.0))[:, used].sum()
        )
        degrees = int((used.sum(axis=1) - 1)[seen].sum())
        return statistic, degrees, float(chdtrc(degrees, statistic)) if degrees > 0 else math.nan

    def _tested(self) -> str:
        """Return the words on the test of the assumption."""
        if self.moved.target.estimated is None:
            return _UNTESTED
        if math.isnan(self.fit_pvalue):
            return "the fit of the target's scores could not be tested"
        if self.withdrawn:
            return f"it does not hold, {misfit(self.fit_pvalue)}: nothing is estimated"
        if doubt(self.fit_pvalue):
            return f"it may not hold, {misfit(self.fit_pvalue)}: do not trust the numbers"
        return f"the target's scores fit ({p_equals(self.fit_pvalue)}); this test finds only large changes"

    def to_frame(self) -> pd.DataFrame:
        """One row a metric: here and there, the interval there, the change, and why it changes.

        Returns
        -------
        DataFrame
            metric, here, there, low, high (for the population with these shares; for the target's own labels if the
            shares were estimated), change, why.
        """
        from cmtrack._pandas import pd

        estimated = self.moved.target.estimated is not None
        here, nothing, rows = self.evaluation.metrics, (math.nan, math.nan), []
        intervals = self.own_intervals if estimated else self.intervals
        for name, value in self.metrics.items():
            change = value - here.get(name, math.nan)
            change = 0.0 if abs(change) <= _SAME else change  # and no -0.000
            ends = intervals.get(name, nothing)
            rows.append(
                (name, here.get(name, math.nan), value, *ends, change, self._why(name, change))
            )
        return pd.DataFrame(
            rows, columns=["metric", "here", "there", "low", "high", "change", "why"]
        )

    def _why(self, name: str, change: float) -> str:
        """The class whose share moves a metric most, for people."""
        if math.isnan(change):
            return self.undefined.get(name, "")
        if abs(change) <= _SAME:
            return "the same at both"
        target, counts = self.moved.target, self.moved.by_class
        size = len(target.names)
        before, after = (
            np.bincount(target.strata, part, size)
            for part in (counts / counts.sum(), target.shares)
        )
        means = self._parts[name][1] if name in self._parts else None
        by = (after - before) * (1 if means is None else means * np.sign(change))
        step = self.evaluation.scored
        first = (
            0
            if target.estimated is None or step is None
            else int(target.strata[step.in_positive].min())
        )
        most = first if size == 2 else int(np.argmax(by if means is not None else np.abs(by)))
        now = short_percent(after[most])
        return f"{target.names[most]} has {now} instead of {short_percent(before[most])}"

    def _repr_html_(self) -> str:
        return notebook.view(
            notebook.sentence(repr(self)), notebook.table(self.to_frame()), notes=self.warnings
        )

    def __repr__(self) -> str:
        if self.withdrawn:
            return f"Transported(withdrawn: {misfit(self.fit_pvalue)})"
        shown = [
            f"{self.evaluation.catalog.lookup(name).heading(brief=True)} {significant(self.metrics[name])}"
            for name in (
                "multiclass/accuracy",
                "multiclass/matthews_corrcoef",
                "binary/precision",
                "binary/recall",
            )
            if name in self.metrics
        ]
        largest = sorted(self.shares.items(), key=lambda item: -item[1])[:4]
        shares = ", ".join(f"{label!r} {short_percent(share)}" for label, share in largest)
        return f"Transported({shares}{', …' if len(self.shares) > 4 else ''}: {', '.join(shown)})"


def _of_strata(
    evaluation: Evaluation,
    parts: FloatArray,
    strata: IntArray,
    names: tuple[str, ...],
    rows: float,
    error: Estimated,
) -> Target:
    counts = evaluation.confusion_matrix.counts.sum(axis=1).astype(np.float64)
    total = np.bincount(strata, counts)
    if not (total > 0).all():
        lost = names[int(total.argmin())]
        raise ValueError(
            f"a share that is estimated needs labelled rows, and there are none of {lost}"
        )
    return Target(parts[strata] * counts / total[strata], strata, names, rows, estimated=error)


def target_of(evaluation: Evaluation, estimate: BasePrevalence) -> Target:
    """Estimated shares with their error.

    Those of a refused estimate tell which metrics there would be: they are withdrawn with it.
    """
    estimate = estimate.refused or estimate
    labels, step = evaluation.labels, evaluation.scored
    if isinstance(estimate, ClassPrevalenceEstimate):
        if (
            set(estimate.classes) != set(labels)
            or not np.isfinite(estimate.class_shares.values).all()
        ):
            raise ValueError(
                f"the estimate must be of all classes {listed(labels, 8)}, got {estimate!r}"
            )
        order = [estimate.classes.index(label) for label in labels]
        estimated = Estimated(
            estimate.class_shares.covariance[np.ix_(order, order)], estimate.fit_pvalue
        )
        parts, strata = estimate.class_shares.values[order], np.arange(len(labels))
        return _of_strata(
            evaluation, parts, strata, tuple(map(quoted, labels)), estimate.n_target, estimated
        )
    if step is None or step.positive is None or estimate.positive != step.labels[step.positive]:
        raise ValueError(
            f"the estimate must be of the positive {evaluation.positive!r}, got {estimate!r}"
        )
    if not math.isfinite(estimate.variance.total):
        raise ValueError(f"the estimate is not identified: {estimate!r}")
    sign = np.array([[1.0, -1.0], [-1.0, 1.0]])
    estimated = Estimated(
        sign * estimate.variance.total, estimate.fit_pvalue, (estimate.low, estimate.high)
    )
    names = tuple(quoted(name) for name in (evaluation.negative, evaluation.positive))
    parts = np.array([1 - estimate.value, estimate.value])
    return _of_strata(
        evaluation, parts, step.in_positive.astype(np.int64), names, estimate.n_target, estimated
    )


def _are_scores(evaluation: Evaluation, given: Any) -> bool:
    """True for scores of rows, not shares: columns, rows of columns, or of two classes another number than two."""
    if isinstance(given, Mapping):
        return any(np.ndim(value) for value in given.values())
    if column_names(given) is not None or np.ndim(given) > 1:
        return True
    return np.ndim(given) == 1 and len(evaluation.labels) == 2 != len(given)


def transported(
    evaluation: Evaluation, given: Any, rows: float | None = None, counted: bool = False
) -> Transported:
    """The metrics of an evaluation at other shares of its classes; see :meth:`Evaluation.at`."""
    if evaluation.none is not None:
        raise ValueError(
            f"shares are of rows, which each have one actual class, got {evaluation!r}"
        )
    if isinstance(given, BasePrevalence):
        if rows is not None or counted:
            raise ValueError(
                "rows= and counted= are of stated shares: an estimate brings its own rows"
            )
        target = target_of(evaluation, given)
    elif _are_scores(evaluation, given):
        raise RemovedFeature(reason("Evaluation.at(scores)"))
    else:
        target = given_target(evaluation, given, rows, counted)
    shares = dict(zip(evaluation.labels, target.shares.tolist(), strict=True))
    pvalue = math.nan if target.estimated is None else target.estimated.fit_pvalue
    if refusal(pvalue):
        shares = dict.fromkeys(shares, math.nan)
    return Transported(evaluation, shares, target.rows, pvalue, Moved(evaluation, target))
