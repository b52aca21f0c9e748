"""Computation of metrics, and their squared errors, for different shares of the actual classes.

The computation assumes label shift, which means that, within each actual class, predictions have
the same distribution in the target as in the labelled rows. The value of a metric at the new shares
is therefore computed from reweighted rows. Each row is weighted by the new share of its class
divided by the share of this class among the labelled rows. The new shares are fixed, so only the
variation within classes adds to the standard error. If the shares are estimated, the error of the
shares is independent of the variation within classes, so the two variances are added.

Source: The assumption follows Saerens, Latinne and Decaestecker (2002), and the weights follow
Elkan (2001).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cmtrack._lazy import cached_property
from cmtrack.evaluation._target import Target, count_actual
from cmtrack.metrics.influence import Influence, centred
from cmtrack.metrics.intervals import ROUNDING, Interval, settled
from cmtrack.metrics.metric import WITHOUT_ERROR, Metric
from cmtrack.metrics.moments import ScoreSamples
from cmtrack.metrics.results import Results
from cmtrack.metrics.roc import ScoreTable
from cmtrack.metrics.samples import Samples
from cmtrack.metrics.views import EvaluationViews
from cmtrack.statistics import ConfusionMatrix
from cmtrack.statistics.collected import Statistics
from cmtrack.statistics.design import Design
from cmtrack.statistics.inputs import FloatArray
from cmtrack.statistics.predictions import Predictions
from cmtrack.statistics.reweighted import reweighted

if TYPE_CHECKING:
    from cmtrack.evaluation.result import Evaluation

OF_TABLE = (
    "counts",
    "table",
    "whole table",
    "ordered table",
    "classes",
    "binary",
    "costs",
)
"""Views of the confusion matrix, in which all rows of a cell have the same influence."""
_LEFT_OUT = (
    "class calibration",
    "reliability",
    "confidence",
    "calibrated",
    "calibrated rows",
    "class shares",
)
"""Views that compare predicted probabilities with frequencies, which depend on the shares."""
_SECTIONS = ("multiclass", "class", "ordinal", "reduced", "binary", "cost", "probability", "spcc")
_MOST_ROWS = 1 << 16
"""Largest number of rows for which errors that are too wide are recomputed from the rows."""


class Parts(NamedTuple):
    """The squared standard error of a metric, split by source of uncertainty.

    ``labelled``: the part of the squared error caused by the labelled rows.
    ``shares``: the part of the squared error caused by the error of estimated shares.
    ``realised``: the part of the squared error caused by the unknown labels of the target's rows,
        multiplied by the number of these rows.
    ``means``, shape (S,): the mean influence of each stratum, which is the change of the metric per
        unit of the stratum's share. None if it is unknown.
    """

    labelled: float
    shares: float
    realised: float
    means: FloatArray | None = None

    @property
    def error(self) -> float:
        """The standard error of the metric for the whole population."""
        return math.sqrt(self.labelled + self.shares)

    def own_error(self, rows: float) -> float:
        """Return the standard error of the metric for a target with the given number of rows."""
        return math.sqrt(self.labelled + self.shares + self.realised / rows)


class Term(NamedTuple):
    """A metric that is computed at the shares of the target.

    ``samples``: the view of the data from which the metric is computed.
    ``k``: the position of the value if the metric returns many values; None if it returns one.
    """

    name: str
    metric: Metric
    samples: Samples
    step: str
    k: int | None
    value: float


class _ErrorSums(NamedTuple):
    """Errors of all values of a metric, computed from the sums that an evaluation stores.

    ``errors``: the standard errors; None if they are not defined for the metric.
    ``spreads``: the variance that a single row of the target contributes.
    ``means``, shape (S,): the mean influence of each stratum; None if it is unknown.
    ``is_too_wide``: True if the errors include the variation between classes, which should be
        excluded because the shares are fixed.
    """

    errors: Any
    spreads: Any
    means: FloatArray | None
    is_too_wide: bool


def _value_at(values: Any, k: int | None) -> Any:
    """Return the k-th value; a single number is the value for every k."""
    return values if k is None or np.ndim(values) == 0 else values[k]


class Moved:
    """The metrics that an evaluation would have if the actual classes had different shares."""

    def __init__(self, evaluation: Evaluation, target: Target) -> None:
        self.evaluation = evaluation
        self.target = target
        counts = count_actual(evaluation)
        self.by_class = counts
        self.factors = np.divide(
            target.shares * counts.sum(), counts, out=np.zeros(len(counts)), where=counts > 0
        )
        self.statistics = reweighted(evaluation.statistics, self.factors, self.side_factors)
        self.views = self._view(self.statistics)
        self.undefined: dict[str, str] = {}
        self._error_sums: dict[tuple[str, str], _ErrorSums] = {}
        self._padded: dict[tuple[str, str], tuple[Any, Any] | None] = {}

    @cached_property
    def side_factors(self) -> FloatArray | None:
        """The factors by which the weights of negative and positive rows change.

        The result is None if there are not two groups, or if the mix of classes within a group
        changes.
        """
        step = self.evaluation.scored
        if step is None:
            return None
        sides = []
        for side in (~step.in_positive, step.in_positive):
            factors = self.factors[side & (self.by_class > 0)]
            if len(factors) == 0:
                sides.append(0.0)
                continue
            if np.ptp(factors) > 1e-9 * factors.max():
                return None
            sides.append(float(factors[0]))
        return np.array(sides)

    @property
    def heavy_negative(self) -> float:
        """The mean weight of a negative row divided by the weight of all positives, or 0.

        The result is 0 if one of the two groups has no rows.
        """
        metric = self.evaluation.catalog.lookup("binary/average_precision")
        table = self.views.of(metric, "")
        if not isinstance(table, ScoreTable) or not table.has_both:
            return 0.0
        return float(table.sides[1] / table.effective_sides[1] / table.sides[0])

    def row_weights(self, rows: Predictions) -> FloatArray:
        """Return each row's weight multiplied by the factor of the row's class, shape (n,)."""
        return rows.design.weighted(self.factors[rows.actual])

    def _view(self, statistics: Statistics) -> EvaluationViews:
        return self.evaluation._views.of_part(statistics, self.evaluation.confidence_level)

    # -- values ----------------------------------------------------------------------------------

    @cached_property
    def terms(self) -> dict[str, Term]:
        """All metrics that can be computed at different class shares, by their full names."""
        terms: dict[str, Term] = {}
        sections = [section.metrics for section in self.evaluation.catalog.sections.all]
        for metrics in (*sections, self.evaluation.catalog.own):
            has_steps = any("<step>" in metric.name for metric in metrics)
            steps = self.views.steps if has_steps else ("",)
            for step in steps:
                for metric in metrics:
                    if self._is_movable(metric):
                        terms.update((term.name, term) for term in self._terms_of(metric, step))
        return terms

    def _is_movable(self, metric: Metric) -> bool:
        if metric in self.evaluation.catalog.own:
            return metric.value is not None
        return (
            metric.section in _SECTIONS
            and self.evaluation.has_section(metric.section)
            and metric.interval != "count"
            and metric.of not in _LEFT_OUT
            and metric.name != "spcc/d_b"
        )

    def _terms_of(self, metric: Metric, step: str) -> Iterator[Term]:
        samples = self.views.of(metric, step)
        if samples is None:
            return
        encoded_names: Mapping[Any, str] | None = self.views.names(metric, step)
        if encoded_names is None:
            values: Any = [metric.number(samples.argument())]
            encoded_names = {None: ""}
        else:
            values = metric.of_each(samples)
        pattern = metric.name.replace("<step>", step)
        for k, encoded in encoded_names.items():
            name = pattern.replace("<label>", encoded).replace("<group>", encoded)
            value = settled(float(values[k or 0]), metric.low, metric.high)
            if not math.isfinite(value):
                why = metric.function.why(samples.argument(), k)
                self.undefined[name] = why or metric.reason or "its denominator is zero"
                value = math.nan
            yield Term(name, metric, samples, step, k, value)

    def value_of_table(self, term: Term, counts: FloatArray) -> float:
        """Compute a metric from a table with the given counts; NaN if it is undefined."""
        plain = Statistics(ConfusionMatrix(counts, self.evaluation.labels), self.statistics.digest)
        samples = self._view(plain).of(term.metric, term.step)
        return math.nan if samples is None else float(_value_at(_values(term, samples), term.k))

    # -- errors ----------------------------------------------------------------------------------

    def parts(self, term: Term) -> Parts | None:
        """Return the squared error by source; None if the metric has no standard error."""
        if term.metric.interval in WITHOUT_ERROR or not math.isfinite(term.value):
            return None
        with np.errstate(all="ignore"):
            parts = self._labelled_parts(term)
        estimated = self.target.estimated
        if parts is None or estimated is None:
            return parts
        if parts.means is None:  # the change of the metric with the shares is unknown
            return None
        by_shares = float(parts.means @ estimated.covariance @ parts.means)
        return parts._replace(shares=max(by_shares, 0.0))

    def _labelled_parts(self, term: Term) -> Parts | None:
        """Return the part of the squared error that the labelled rows cause."""
        is_of_table = term.metric.of in OF_TABLE
        parts = self._parts_by_cell(term) if is_of_table else self._parts_by_sums(term)
        rows = self.evaluation.rows
        if parts is None or not isinstance(rows, Predictions):
            return parts
        needs_rows = rows.design.has_clusters
        if not is_of_table and len(rows) <= _MOST_ROWS:
            needs_rows = needs_rows or self._errors_of(term).is_too_wide
        by_row = self._parts_by_row(term, rows) if needs_rows else None
        return parts if by_row is None else by_row._replace(means=parts.means)

    @cached_property
    def _cells(self) -> tuple[Influence, FloatArray, FloatArray]:
        """The cells of the table as rows, with the shares and the sums of squared weights."""
        squares = self.statistics.squares
        if squares is None:
            raise TypeError("reweighted statistics have sums of squares")
        counts = self.statistics.matrix.counts
        actual, predicted = np.nonzero(counts)
        total = float(counts.sum())
        cells = Predictions.from_arrays(
            self.evaluation.labels, actual, predicted, Design(len(actual))
        )
        return (
            Influence(cells, self.views),
            counts[actual, predicted] / total,
            squares.matrix.counts[actual, predicted] / total**2,
        )

    def _parts_by_cell(self, term: Term) -> Parts | None:
        at, weights, squares = self._cells
        psi = term.samples.by_row(term.metric, at, term.step, term.k)
        if psi is None:
            return None
        strata = self.target.strata[at.rows.actual]
        within, means = centred(psi, strata, weights, len(self.target.names))
        varying = within if self.target.counted else psi
        return Parts(float(squares @ within**2), 0.0, float(weights @ varying**2), means)

    def _parts_by_sums(self, term: Term) -> Parts | None:
        errors, spreads, means, _ = self._errors_of(term)
        if errors is None or spreads is None:
            return None
        error = _value_at(errors, term.k)
        if not math.isfinite(error):
            return None
        return Parts(error**2, 0.0, _value_at(spreads, term.k), means)

    def _parts_by_row(self, term: Term, rows: Predictions) -> Parts | None:
        """Return the squared error from rows or clusters; None if influence values do not exist."""
        if rows.source is None and term.metric.needs == "probabilities":
            return None
        psi = term.samples.by_row(term.metric, Influence(rows, self.views), term.step, term.k)
        if psi is None:
            return None
        factors = self.factors[rows.actual]
        psi = np.where(factors > 0, psi, 0.0)
        weights = self.row_weights(rows)
        within, _ = centred(psi, self.target.strata[rows.actual], weights)
        varying = within if self.target.counted else psi
        realised = float(weights @ varying**2) / float(weights.sum())
        return Parts(rows.design.standard_error(factors * within) ** 2, 0.0, realised)

    def _errors_of(self, term: Term) -> _ErrorSums:
        key = (term.metric.name, term.step)
        if key not in self._error_sums:
            self._error_sums[key] = self._compute_errors(term)
        return self._error_sums[key]

    def _compute_errors(self, term: Term) -> _ErrorSums:
        errors = self._errors_within_strata(term)
        if errors is not None:
            return errors
        # The sums are over all classes, so the error includes the variation between classes.
        metric = term.metric
        values = term.value if term.k is None else metric.of_each(term.samples)
        spreads = self._spread(term, lambda alone: metric.spread(alone, values).error)
        return _ErrorSums(metric.spread(term.samples, values).error, spreads, None, True)

    def _errors_within_strata(self, term: Term) -> _ErrorSums | None:
        """Return the errors due to variation within strata; None if no sums by stratum exist."""
        samples = term.samples
        strata = self.target.strata
        if type(samples).within is Samples.within:
            return None
        psi = term.metric.influence_in(samples)
        split = None if psi is None else samples.within(psi, strata)
        if psi is None or split is None:
            return None
        within, means = split
        varying = within if self.target.counted else psi
        spreads = self._spread(term, lambda alone: alone.standard_error(varying))
        errors = samples.standard_error(within)
        if means.ndim != 1 or len(means) != len(self.target.names):
            return _ErrorSums(errors, spreads, None, False)
        step = self.evaluation.scored
        has_sides = isinstance(samples, ScoreTable | ScoreSamples)
        if has_sides and step is not None and strata[step.in_positive].min() == 0:
            # Views of two sides list the mean of the negatives first, whatever the order of the
            # strata.
            means = means[::-1]
        return _ErrorSums(errors, spreads, means, False)

    @cached_property
    def _views_of_counts(self) -> EvaluationViews:
        """Views of the table that treat weights as numbers of rows."""
        return self._view(replace(self.statistics, squares=None))

    def _spread(self, term: Term, error: Callable[[Samples], Any]) -> Any:
        """Return the variance that a single row of the target contributes; NaN if it is unknown.

        The variance is the squared error multiplied by the number of rows, where weights are
        treated as numbers of rows.
        """
        if math.isnan(self.target.rows):
            return math.nan
        alone = self._views_of_counts.of(term.metric, term.step)
        spread = None if alone is None else error(alone)
        if alone is None or spread is None:
            return math.nan
        return spread**2 * float(np.max(alone.total))

    # -- intervals -------------------------------------------------------------------------------

    def centre(self, term: Term, parts: Parts) -> tuple[float, Parts]:
        """Return the value and the errors from which an interval's lower limit is computed.

        If a few rows cause most of the error, the value is computed with one more negative row
        (:meth:`Samples.with_high_negative`). The cluster-robust error is known only for the data
        without this additional row. Therefore the error due to the labelled rows is increased by
        the same factor as the error of independent rows.
        """
        metric = term.metric
        if not metric.few_errors:
            return term.value, parts
        key = (metric.name, term.step)
        if key not in self._padded:
            self._padded[key] = self._with_high_negative(term)
        padded = self._padded[key]
        if padded is None:
            return term.value, parts
        value, padded_error = (float(_value_at(numbers, term.k)) for numbers in padded)
        error = float(_value_at(self._errors_of(term).errors, term.k))
        if not (math.isfinite(value) and math.isfinite(padded_error)):
            return term.value, parts
        labelled = padded_error**2
        if error > ROUNDING and parts.labelled > 0:
            labelled *= parts.labelled / error**2
        return value, parts._replace(labelled=labelled)

    def _with_high_negative(self, term: Term) -> tuple[Any, Any] | None:
        """Return values and errors after adding a negative row; None if the view cannot add it."""
        samples = term.samples.with_high_negative()
        if samples is None:
            return None
        with np.errstate(all="ignore"):
            values = _values(term, samples)
            errors = self._compute_errors(term._replace(samples=samples, value=values)).errors
        return None if errors is None else (values, errors)

    def fallback(self, term: Term) -> Interval | None:
        """Return an interval based on the effective sample size, for a metric whose error is 0."""
        if term.metric in self.evaluation.catalog.own:
            return None
        results = Results(self.evaluation.confidence_level)
        label_parts = self.evaluation.catalog.find(term.name)[1]
        self.views.put_one(results, term.metric, label_parts)
        return results.intervals.get(term.name)


def _values(term: Term, samples: Samples) -> Any:
    """Compute the value of a metric, or its values for all classes, from a view."""
    if term.k is None:
        return term.metric.number(samples.argument())
    return term.metric.of_each(samples)
