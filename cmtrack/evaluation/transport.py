"""Metrics where the actual classes have other shares: values, errors, intervals, and what changed.

Within each actual class the answers are taken to be distributed as among the labelled rows ("label shift"). A metric of
the shares q is then that of the rows weighted by q over their own shares; its error is that of the labelled rows within
each class, since the shares are given, and of the target's size where the target's own labels are meant.

Source: Saerens, Latinne and Decaestecker (2002) for the assumption; Elkan (2001) for the weights.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cmtrack import notebook
from cmtrack.evaluation.row_facts import RowFacts
from cmtrack.grouping import Label
from cmtrack.metrics.influence import Influence, standard_error
from cmtrack.metrics.intervals import Interval, on_scale, settled
from cmtrack.metrics.metric import WITHOUT_ERROR, Metric
from cmtrack.metrics.results import ByName, Results
from cmtrack.metrics.samples import Samples
from cmtrack.metrics.views import EvaluationViews
from cmtrack.names import quoted
from cmtrack.statistics.inputs import FloatArray, IntArray, listed
from cmtrack.statistics.predictions import Predictions
from cmtrack.statistics.reweighted import reweighted

if TYPE_CHECKING:
    import pandas as pd

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
_MOST_ROWS = 1 << 16
"""Rows up to which they tell the error of what is not kept by class."""


@dataclass(frozen=True, eq=False)
class Target:
    """Shares of the classes in a target.

    Attributes
    ----------
    shares : ndarray of shape (K,)
    strata : ndarray of shape (K,)
        The class or group that a share was given of, by class: inside it the mix stays as it is labelled.
    names : tuple of S str
        The strata for people.
    rows : float
        Rows of the target; NaN where they are not known.
    counted : bool
        True where the shares are those of these very rows.
    """

    shares: FloatArray
    strata: IntArray
    names: tuple[str, ...]
    rows: float = math.nan
    counted: bool = False


def given_target(evaluation: Evaluation, given: Any, rows: float | None, counted: bool) -> Target:
    """Shares that a caller states: of the positive class or group, of classes, or of the groups of one step.

    Raises
    ------
    TypeError, ValueError
        If they are no shares, do not sum to 1, are of no class or group, or one above 0 is of a class without labelled
        rows.
    """
    if rows is not None and not (isinstance(rows, numbers.Real) and rows > 0):
        raise ValueError(f"rows must be the number of rows of the target, above 0, got {rows!r:.40}")
    labels, step = evaluation.labels, evaluation.scored
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
            raise ValueError(f"there must be one share for each of {len(labels)} classes, got {len(wanted)}")
        members = dict(zip(labels, np.eye(len(labels), dtype=bool), strict=True))
    together = np.sum(list(members.values()), axis=0)
    if together.max() > 1:
        twice = [label for label, times in zip(labels, together, strict=True) if times > 1]
        raise ValueError(f"a class must have one share, got several that are of {listed(twice, 8)}")
    names, rest = [quoted(name) for name in members], together == 0
    left = 1 - math.fsum(wanted)
    if not all(0 <= share <= 1 for share in wanted) or left < -1e-9 or (not rest.any() and abs(left) > 1e-9):
        raise ValueError(f"shares must lie between 0 and 1 and sum to 1, got {given!r:.80}")
    if rest.any():
        names, wanted = [*names, "all others"], [*wanted, max(left, 0.0)]
        members = {**members, object(): rest}
    strata = np.argmax(list(members.values()), axis=0)
    by_class = evaluation.confusion_matrix.counts.sum(axis=1).astype(np.float64)
    total = np.bincount(strata, by_class, len(wanted))
    for share, there, name in zip(wanted, total, names, strict=True):
        if share > 0 and not there > 0:
            raise ValueError(f"a share above 0 needs labelled rows of the class, and there are none of {name}")
    inside = by_class / np.where(total > 0, total, 1.0)[strata]
    shares = np.array(wanted)[strata] * inside
    return Target(shares, strata, tuple(names), math.nan if rows is None else float(rows), counted)


def _members(evaluation: Evaluation, names: list[Label]) -> dict[Any, Any]:
    """The classes of each name, shape (K,): of labels, or of the groups of the last step that has them all."""
    labels = evaluation.labels
    if all(name in labels for name in names):
        return {name: np.array([label == name for label in labels]) for name in names}
    for step in reversed(evaluation._views.composed.values()):
        if all(name in step.labels for name in names):
            return {name: step.group_of_class == step.labels.index(name) for name in names}
    unknown = next((name for name in names if name not in labels), names[0])
    raise ValueError(f"shares must be of the classes {listed(labels, 8)} or of the groups of one step, got {unknown!r}")


def _floats(values: Any, given: Any) -> list[float]:
    try:
        found = [float(value) for value in values]
    except (TypeError, ValueError):
        found = []
    if not found:
        raise TypeError(f"shares must be a number, numbers by class or group, or one number a class, got {given!r:.80}")
    return found


class Parts(NamedTuple):
    """The squared standard error of a metric by source.

    Attributes
    ----------
    labelled : float
        From the labelled rows.
    target : float
        From the target's rows, where they estimated its shares.
    realised : float
        From the target's labels, if its own are meant: times the number of its rows.
    """

    labelled: float
    target: float
    realised: float


class _Term(NamedTuple):
    """One metric at the target: its samples there, and where in them it stands."""

    name: str
    metric: Metric
    samples: Samples
    step: str
    k: int | None
    value: float


class Moved:
    """The metrics of an evaluation at other shares.

    Parameters
    ----------
    evaluation : Evaluation
    target : Target
    """

    def __init__(self, evaluation: Evaluation, target: Target) -> None:
        self.evaluation, self.target = evaluation, target
        counts = evaluation.confusion_matrix.counts.sum(axis=1).astype(np.float64)
        self.by_class = counts
        self.factors = np.divide(target.shares * counts.sum(), counts, out=np.zeros(len(counts)), where=counts > 0)
        self.statistics = reweighted(evaluation.statistics, self.factors, self._sides())
        self.views = self._seen(self.statistics)
        self.undefined: dict[str, str] = {}
        self._known: dict[tuple[str, str], tuple[Any, Any, FloatArray | None]] = {}
        self._rough: set[tuple[str, str]] = set()

    def _sides(self) -> FloatArray | None:
        """The factors of negatives and positives; None where the mix inside one of them changes."""
        step = self.evaluation.scored
        if step is None:
            return None
        found = []
        for side in (~step.in_positive, step.in_positive):
            own = self.factors[side & (self.by_class > 0)]
            if len(own) and np.ptp(own) > 1e-9 * own.max():
                return None
            found.append(float(own[0]) if len(own) else 0.0)
        return np.array(found)

    def _seen(self, statistics: Any) -> EvaluationViews:
        return self.evaluation._views.of_part(statistics, self.evaluation.confidence_level)

    # -- values ----------------------------------------------------------------------------------------

    @cached_property
    def terms(self) -> dict[str, _Term]:
        """Every metric that can be moved, by its full name."""
        evaluation, views = self.evaluation, self.views
        found: dict[str, _Term] = {}
        for section in evaluation.catalog.sections.all:
            if section.name not in _SECTIONS or not evaluation.has_section(section.name):
                continue
            for step in views.steps if "<step>" in section.metrics[0].name else ("",):
                for metric in section.metrics:
                    if metric.interval != "count" and metric.of not in _LEFT_OUT and metric.name != "spcc/d_b":
                        found.update((term.name, term) for term in self._each(metric, step))
        for metric in evaluation.extra_metrics:
            if metric.value is not None:
                found.update((term.name, term) for term in self._each(metric, ""))
        return found

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
                reason = metric.function.why(samples.argument(), k) or metric.reason or "its denominator is zero"
                self.undefined[name], value = reason, math.nan
            yield _Term(name, metric, samples, step, k, value)

    # -- errors ----------------------------------------------------------------------------------------

    @cached_property
    def _cells(self) -> tuple[Influence, FloatArray, FloatArray]:
        """The cells of the table as rows, their share of the target, and what their squared influence weighs."""
        counts, squares = self.statistics.matrix.counts, self.statistics.squares
        assert squares is not None  # reweighted() makes them
        actual, predicted = np.nonzero(counts)
        at = Influence(Predictions.from_arrays(self.evaluation.labels, actual, predicted), self.views)
        total = float(counts.sum())
        return at, counts[actual, predicted] / total, squares.matrix.counts[actual, predicted] / total**2

    @cached_property
    def _alone(self) -> EvaluationViews:
        """The same table as if its weights were numbers of rows: the spread of one row of the target."""
        return self._seen(replace(self.statistics, squares=None))

    def parts(self, term: _Term) -> tuple[Parts, FloatArray | None] | None:
        """Squared error by source, and the mean influence of each stratum; None where a metric has no error."""
        metric, rows = term.metric, self.evaluation.rows
        if metric.interval in WITHOUT_ERROR or not math.isfinite(term.value):
            return None
        with np.errstate(all="ignore"):
            found = self._by_cell(term) if metric.of in _COUNTED else self._by_moments(term)
            if found is None or not isinstance(rows, Predictions):
                return found
            rough = (metric.name, term.step) in self._rough and len(rows) <= _MOST_ROWS
            by_row = rough or rows.clusters is not None
            return ((self._by_row(term) if by_row else None) or found[0]), found[1]

    def _by_cell(self, term: _Term) -> tuple[Parts, FloatArray | None] | None:
        at, weight, squares = self._cells
        psi = term.samples.by_row(term.metric, at, term.step, term.k)
        if psi is None:
            return None
        strata = self.target.strata[at.rows.actual]
        share = np.bincount(strata, weight, len(self.target.names))
        sums = np.bincount(strata, weight * psi, len(share))
        means = np.divide(sums, share, out=np.zeros(len(share)), where=share > 0)
        within = psi - means[strata]
        realised = float(weight @ (within if self.target.counted else psi) ** 2)
        return Parts(float(squares @ within**2), 0.0, realised), means

    def _by_moments(self, term: _Term) -> tuple[Parts, FloatArray | None] | None:
        """From the errors and spreads of all classes at once, where there is one of each."""
        key = term.metric.name, term.step
        if key not in self._known:
            centred = self._centred(term)
            self._known[key] = centred or self._uncentred(term)
            if centred is None:
                self._rough.add(key)
        error, spread, means = self._known[key]
        found = [_of(part, term.k) for part in (error, spread) if part is not None]
        whole = len(found) == 2 and math.isfinite(found[0])
        return (Parts(found[0] ** 2, 0.0, found[1]), means) if whole else None

    def _centred(self, term: _Term) -> tuple[Any, Any, FloatArray | None] | None:
        """Standard errors, spreads of one row of the target, and means by stratum; None where they are not known."""
        samples, strata = term.samples, self.target.strata
        if type(samples).within is Samples.within:
            return None
        psi = term.metric.influence_in(samples)
        centred = None if psi is None else samples.within(psi, strata)
        if psi is None or centred is None:
            return None
        spread = self._spread(term, lambda alone: alone.standard_error(centred[0] if self.target.counted else psi))
        means = centred[1] if len(centred[1]) == len(self.target.names) and centred[1].ndim == 1 else None
        return samples.standard_error(centred[0]), spread, means

    def _uncentred(self, term: _Term) -> tuple[Any, Any, None]:
        """By the weights alone, which is too wide: of what is not kept by class."""
        values = term.value if term.k is None else term.metric.of_each(term.samples)
        spread = self._spread(term, lambda alone: term.metric.spread(alone, values)[0])
        return term.metric.spread(term.samples, values)[0], spread, None

    def _spread(self, term: _Term, error: Callable[[Samples], Any]) -> Any:
        """The variance of one row of the target by the error of all as if weights were numbers of rows."""
        alone = None if math.isnan(self.target.rows) else self._alone.of(term.metric, term.step)
        found = None if alone is None else error(alone)
        return math.nan if alone is None or found is None else found**2 * float(np.max(alone.total))

    def _by_row(self, term: _Term) -> Parts | None:
        """By the rows themselves, those that belong together summed; None where they tell nothing of the metric."""
        rows = self.evaluation.rows
        assert isinstance(rows, Predictions)  # the caller has asked
        if rows.source is None and term.metric.needs == "probabilities":
            return None
        psi = term.samples.by_row(term.metric, Influence(rows, self.views), term.step, term.k)
        if psi is None:
            return None
        strata, weights = self.target.strata[rows.actual], self.factors[rows.actual]
        own = weights if rows.weights is None else weights * rows.weights
        psi = np.where(own > 0, psi, 0.0)  # of classes without a share it may be infinite
        sums, total = (np.bincount(strata, part) for part in (own * psi, own))
        within = psi - np.divide(sums, total, out=np.zeros(len(total)), where=total > 0)[strata]
        realised = float(own @ (within if self.target.counted else psi) ** 2) / float(own.sum())
        return Parts(standard_error(weights * within, rows.weights, rows.clusters) ** 2, 0.0, realised)

    def fallback(self, term: _Term) -> Interval | None:
        """The interval by effective numbers of rows, where an error of 0 or an end of the range leaves none."""
        results = Results(self.evaluation.confidence_level)
        parts = self.evaluation.catalog.find(term.name)[1]
        if term.metric in self.evaluation.extra_metrics:
            return None
        self.views.put_one(results, term.metric, parts)
        return results.intervals.get(term.name)


def _of(value: Any, k: int | None) -> Any:
    return value if k is None or np.ndim(value) == 0 else value[k]


ASSUMES = "assumes that within each class the answers are as among the labelled rows"
_UNTESTED = "stated shares say nothing of that: scores of the target would test it"
_FEW = 20


@dataclass(frozen=True, eq=False)
class Transported:
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
        Small: not only the shares of the classes changed. NaN of stated shares, which do not test it.
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

    @cached_property
    def metrics(self) -> dict[str, float]:
        """Every metric that can be moved, by its full name; NaN where it is undefined (see :attr:`undefined`)."""
        return ByName({name: term.value for name, term in self.moved.terms.items()})

    @property
    def undefined(self) -> dict[str, str]:
        """The reason why a metric is NaN, by name."""
        return ByName(self.moved.undefined if self.moved.terms else {}, "undefined metric")

    @cached_property
    def _parts(self) -> dict[str, tuple[Parts, FloatArray | None]]:
        found = {name: self.moved.parts(term) for name, term in self.moved.terms.items()}
        return {name: parts for name, parts in found.items() if parts is not None}

    @property
    def standard_errors(self) -> dict[str, float]:
        """Standard errors of the metrics of the population that has these shares."""
        errors = {name: math.sqrt(parts.labelled + parts.target) for name, (parts, _) in self._parts.items()}
        return ByName(errors, "standard error of")

    @property
    def own_standard_errors(self) -> dict[str, float]:
        """Standard errors about the metrics of the target's own labels; empty where its size is not known."""
        if math.isnan(self.rows):
            return ByName({}, "own standard error of")
        own = {name: math.sqrt(parts.labelled + parts.realised / self.rows) for name, (parts, _) in self._parts.items()}
        return ByName(own, "own standard error of")

    @property
    def from_labels(self) -> dict[str, float]:
        """The part of the squared error that more labelled rows would make smaller, by metric, from 0 to 1."""
        return {
            name: parts.labelled / (parts.labelled + parts.target)
            for name, (parts, _) in self._parts.items()
            if parts.labelled > 0
        }

    @cached_property
    def intervals(self) -> dict[str, Interval]:
        """(low, high) of the metrics of the population that has these shares."""
        return ByName(self._intervals(self.standard_errors), "interval of")

    @cached_property
    def own_intervals(self) -> dict[str, Interval]:
        """(low, high) of the metrics of the target's own labels; empty where its size is not known."""
        return ByName(self._intervals(self.own_standard_errors, True), "own interval of")

    def _intervals(self, errors: Mapping[str, float], own: bool = False) -> dict[str, Interval]:
        found: dict[str, Interval] = {}
        for name, error in errors.items():
            term = self.moved.terms[name]
            metric = term.metric
            bounds, scale = (metric.low, metric.high), metric.interval
            if bounds == (0.0, 1.0):
                scale = "logit"
            elif scale == "atanh" and metric.section != "spcc":
                scale = "wald"  # correlations of tables
            ends = on_scale(scale, term.value, error, self.evaluation.confidence_level, bounds)
            ends = self.moved.fallback(term) if ends is None and not own else ends
            if ends is not None:
                found[name] = ends
        return found

    @property
    def reweighted(self) -> Evaluation:
        """The evaluation with its rows weighted to these shares, for its figures, thresholds and decision curves.

        Its own errors are those of sampling weights, which do not know that the shares are given: they are wider.
        """
        rows, spec = self.evaluation.rows, replace(self.evaluation.spec, weights_are="sampling")
        if isinstance(rows, Predictions):
            weights = self.moved.factors[rows.actual] * (1.0 if rows.weights is None else rows.weights)
            rows = replace(rows, weights=weights)
        made = {"statistics": self.moved.statistics, "spec": spec, "rows": rows, "of_rows": RowFacts()}
        other = replace(self.evaluation, **made, kept_numbers=None)  # type: ignore[arg-type]
        return other.with_cluster_errors()

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """The assumption of the numbers, and what is left out."""
        moved, target, step = self.moved, self.moved.target, self.evaluation.scored
        out = [f"{ASSUMES}; {_UNTESTED}"]
        sizes = np.bincount(target.strata, minlength=len(target.names))
        mixed = [name for name, size in zip(target.names, sizes, strict=True) if size > 1]
        if mixed:
            out.append(f"inside {' and '.join(mixed)} the classes keep their labelled mix")
        if step is not None and moved._sides() is None:
            out.append("metrics of the positive group's score are left out: the mix of classes inside a group changes")
        few = [
            f"{quoted(label)} (n = {n:g})"
            for label, n, q in zip(self.evaluation.labels, moved.by_class, target.shares, strict=True)
            if 0 < n < _FEW and q > 0
        ]
        if few:
            out.append(f"fewer than {_FEW} labelled rows of {', '.join(few[:8])}: intervals are approximate")
        if self.evaluation.cluster_errors is not None and not isinstance(self.evaluation.rows, Predictions):
            out.append("rows belong together in groups, and are not here: errors take them for independent")
        return tuple(out)

    def to_frame(self) -> pd.DataFrame:
        """One row a metric: here and there, the interval there, the change, and why it changes.

        Returns
        -------
        DataFrame
            metric, here, there, low, high (of the population that has these shares), change, why.
        """
        import pandas as pd

        here, nothing, rows = self.evaluation.metrics, (math.nan, math.nan), []
        for name, value in self.metrics.items():
            change = value - here.get(name, math.nan)
            ends = self.intervals.get(name, nothing)
            rows.append((name, here.get(name, math.nan), value, *ends, change, self._why(name, change)))
        return pd.DataFrame(rows, columns=["metric", "here", "there", "low", "high", "change", "why"])

    def _why(self, name: str, change: float) -> str:
        """The class whose share moves a metric most, in words."""
        if math.isnan(change):
            return self.undefined.get(name, "")
        if abs(change) <= _SAME:
            return "the same at both"
        target, counts = self.moved.target, self.moved.by_class
        size = len(target.names)
        before, after = (np.bincount(target.strata, part, size) for part in (counts / counts.sum(), target.shares))
        means = self._parts[name][1] if name in self._parts else None
        by = (after - before) * (1 if means is None else means * np.sign(change))
        most = 0 if size == 2 else int(np.argmax(by if means is not None else np.abs(by)))
        return f"{target.names[most]} has {100 * after[most]:.3g} % instead of {100 * before[most]:.3g} %"

    def _repr_html_(self) -> str:
        return notebook.view(notebook.sentence(repr(self)), notebook.table(self.to_frame()), notes=self.warnings)

    def __repr__(self) -> str:
        shown = [
            f"{self.evaluation.catalog.lookup(name).heading(brief=True)} {self.metrics[name]:.4g}"
            for name in ("multiclass/accuracy", "multiclass/matthews_corrcoef", "binary/precision", "binary/recall")
            if name in self.metrics
        ]
        largest = sorted(self.shares.items(), key=lambda item: -item[1])[:4]
        shares = ", ".join(f"{label!r} {100 * share:.3g} %" for label, share in largest)
        return f"Transported({shares}{', …' if len(self.shares) > 4 else ''}: {', '.join(shown)})"


def transported(evaluation: Evaluation, given: Any, rows: float | None = None, counted: bool = False) -> Transported:
    """The metrics of an evaluation at other shares of its classes; see :meth:`Evaluation.at`."""
    if evaluation.none is not None:
        raise ValueError(f"shares are of rows, which each have one actual class, got {evaluation!r}")
    target = given_target(evaluation, given, rows, counted)
    shares = dict(zip(evaluation.labels, target.shares.tolist(), strict=True))
    return Transported(evaluation, shares, target.rows, math.nan, Moved(evaluation, target))
