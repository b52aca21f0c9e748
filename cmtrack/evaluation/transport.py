"""Metrics for different shares of the actual classes, with errors, intervals and reasons.

:class:`Transported` is the result that users read. The module ``_target`` reads the shares, and
``_moved`` computes the values and their squared errors.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import chdtrc

from cmtrack import notebook
from cmtrack._lazy import cached_property
from cmtrack.digits import count, p_equals, short_percent, significant
from cmtrack.evaluation._moved import OF_TABLE, Moved, Parts, Term
from cmtrack.evaluation._target import estimated_target, spread_over_classes, stated_target
from cmtrack.evaluation.row_facts import RowFacts
from cmtrack.grouping import Label
from cmtrack.metrics.intervals import Interval, on_scale
from cmtrack.metrics.results import ByName
from cmtrack.names import quoted
from cmtrack.prevalence.fit import doubt, misfit, refusal
from cmtrack.prevalence.results import BasePrevalence
from cmtrack.removed import RemovedAttributes, RemovedFeature, reason
from cmtrack.statistics.inputs import column_names, listed
from cmtrack.statistics.predictions import Predictions
from cmtrack.untrusted import printable

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from cmtrack.evaluation.result import Evaluation

ASSUMES = "assumes that within each class the predictions are distributed as in the labelled rows"
_UNTESTED = (
    "the shares that you stated cannot show if this holds; an estimate from the target's scores can"
)
_SAME = 1e-12
"""Largest change of a metric that is treated as a rounding error."""
_MOST_ANSWERS = 20
"""Number of classes, starting with the most frequent, that are tried as a constant prediction."""
_FEW = 20
_ABSENT = 1e-6
"""Limit below which an estimated share is treated as 0, because it is a rounding error."""
_HEAVY = 0.1
"""Weight of a negative row, relative to all positive rows, above which a warning is issued.

Average precision is biased if a few negatives have large weights. At the weight limit, the bias is
about 0.04 if the mean logits of the two groups differ by two standard deviations.
"""
_SHOWN = (
    "binary/precision",
    "binary/recall",
    "multiclass/accuracy",
    "multiclass/matthews_corrcoef",
)
_MOST_SHARES = 4
"""Maximum number of shares that the ``repr`` shows."""


@dataclass(frozen=True, eq=False)
class Transported(RemovedAttributes):
    """Metrics that an evaluation would have if the actual classes had different shares.

    Attributes
    ----------
    evaluation : Evaluation
        The evaluation of the labelled rows.
    shares : dict of label to float
        Shares of all classes in the target.
    rows : float
        Number of rows in the target. If the number is unknown, ``rows`` is NaN and
        ``own_intervals`` is empty.
    fit_pvalue : float
        The p-value of the test whether only the shares of the classes have changed. The p-value is
        NaN if the shares were stated, because the test needs the target's scores.
    moved : Moved
        The computation of the values and errors.

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
        """True if the metrics are NaN because the target's scores contradict the assumption."""
        return bool(refusal(self.fit_pvalue))

    @property
    def by_name(self) -> dict[str, float]:
        """The stated or estimated shares, by the name of the class or group; NaN if withdrawn."""
        target = self.moved.target
        if self.withdrawn:
            return dict.fromkeys(target.names, math.nan)
        shares = np.bincount(target.strata, target.shares).tolist()
        return dict(zip(target.names, shares, strict=True))

    @cached_property
    def metrics(self) -> dict[str, float]:
        """All metrics that can be computed at different class shares, by full name.

        If a metric is NaN, see :attr:`undefined` for the reason.
        """
        terms = self.moved.terms
        if self.withdrawn:
            return ByName(dict.fromkeys(terms, math.nan))
        return ByName({name: term.value for name, term in terms.items()})

    @property
    def undefined(self) -> dict[str, str]:
        """The reasons why metrics are NaN, by the name of each metric."""
        terms = self.moved.terms  # computing the terms fills `moved.undefined`
        reasons = self.moved.undefined
        if self.withdrawn:
            reasons = dict.fromkeys(terms, f"withdrawn: {misfit(self.fit_pvalue)}")
        return ByName(reasons, "undefined metric")

    @cached_property
    def _parts(self) -> dict[str, Parts]:
        """The squared errors of the metrics by full name, excluding metrics without an error."""
        if self.withdrawn:
            return {}
        by_name = {name: self.moved.parts(term) for name, term in self.moved.terms.items()}
        return {name: parts for name, parts in by_name.items() if parts is not None}

    @property
    def standard_errors(self) -> dict[str, float]:
        """Standard errors of the metrics for a population that has the target's shares."""
        errors = {name: parts.error for name, parts in self._parts.items()}
        return ByName(errors, "standard error of")

    @property
    def own_standard_errors(self) -> dict[str, float]:
        """Standard errors of the metrics for the target's own rows; empty if ``rows`` is NaN."""
        errors = {}
        if not math.isnan(self.rows):
            errors = {name: parts.own_error(self.rows) for name, parts in self._parts.items()}
        return ByName(errors, "own standard error of")

    @cached_property
    def intervals(self) -> dict[str, Interval]:
        """Intervals (low, high) of the metrics for a population that has the target's shares."""
        return ByName(self._intervals(realised=False), "interval of")

    @cached_property
    def own_intervals(self) -> dict[str, Interval]:
        """Intervals of the metrics for the target's own rows; empty if ``rows`` is unknown."""
        intervals = {} if math.isnan(self.rows) else self._intervals(realised=True)
        return ByName(intervals, "own interval of")

    def _intervals(self, realised: bool) -> dict[str, Interval]:
        """Return the intervals for the population, or for the target's own rows if ``realised``."""
        intervals: dict[str, Interval] = {}
        for name, parts in self._parts.items():
            term = self.moved.terms[name]
            interval = self._interval(term, parts, realised)
            if name in self._at_ends:
                values = [value for value in self._at_ends[name] if math.isfinite(value)]
                reached = [term.value, *(interval or ()), *values]
                interval = (min(reached), max(reached))
            if interval is not None:
                intervals[name] = interval
        return intervals

    def _interval(self, term: Term, parts: Parts, realised: bool) -> Interval | None:
        metric = term.metric
        bounds = (metric.low, metric.high)
        scale = metric.interval
        if bounds == (0.0, 1.0):
            scale = "logit"
        elif scale == "atanh" and metric.section != "spcc":
            scale = "wald"  # for correlations that are computed from tables
        level = self.evaluation.confidence_level
        value, padded = self.moved.centre(term, parts)
        interval = on_scale(scale, value, self._error(padded, realised), level, bounds)
        if interval is None and not realised:
            interval = self.moved.fallback(term)
        if interval is None or value == term.value:
            return interval
        # One more negative can only lower the value, so the upper limit comes from the plain value.
        plain = on_scale(scale, term.value, self._error(parts, realised), level, bounds)
        high = term.value if plain is None else plain[1]
        return min(interval[0], term.value), max(interval[1], high)

    def _error(self, parts: Parts, realised: bool) -> float:
        return parts.own_error(self.rows) if realised else parts.error

    @cached_property
    def _at_ends(self) -> dict[str, list[float]]:
        """The values at both limits of the share's interval, if a share is estimated as 0 or 1.

        The two values replace the standard error of the share, which is not meaningful at 0 or 1.
        """
        values: dict[str, list[float]] = {}
        target = self.moved.target
        estimated = target.estimated
        if estimated is None or estimated.ends is None or min(self.by_name.values()) >= _ABSENT:
            return values
        for share in estimated.ends:
            shares = spread_over_classes(
                self.evaluation, np.array([1 - share, share]), target.strata
            )
            at_end = Moved(self.evaluation, replace(target, shares=shares))
            for name, term in at_end.terms.items():
                values.setdefault(name, []).append(term.value)
        return values

    @property
    def reweighted(self) -> Evaluation:
        """The evaluation of the rows after they are weighted to the shares of the target.

        Use the weighted evaluation for figures, thresholds and decision curves. The standard errors
        of the weighted evaluation treat the weights as sampling weights. Errors based on sampling
        weights are too large, because they ignore that the shares are fixed.
        """
        rows = self.evaluation.rows
        facts = RowFacts()
        if isinstance(rows, Predictions):
            facts = RowFacts(strata=self.moved.target.strata[rows.actual])
            design = replace(rows.design, weights=self.moved.row_weights(rows))
            rows = replace(rows, design=design)
        weighted = replace(
            self.evaluation,
            statistics=self.moved.statistics,
            spec=replace(self.evaluation.spec, weights_are="sampling"),
            rows=rows,
            of_rows=facts,
            kept_numbers=None,
        )
        return weighted.with_cluster_errors()

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about the assumption, missing metrics and approximate intervals."""
        return tuple(warning for warn in _WARNINGS for warning in warn(self))

    def constant(self, metric: str) -> float:
        """Return the best value that a constant prediction for all rows could reach in the target.

        The result is NaN if the metric is not computed from the confusion matrix.

        Parameters
        ----------
        metric : str
            Full name of the metric.
        """
        moved = self.moved
        term = moved.terms[metric]
        if term.metric.of not in OF_TABLE:
            return math.nan
        rows = moved.statistics.matrix.counts.sum(axis=1)
        values = []
        for answer in np.argsort(-rows, kind="stable")[:_MOST_ANSWERS]:
            counts = np.zeros((len(rows), len(rows)))
            counts[:, answer] = rows
            values.append(moved.value_of_table(term, counts))
        finite = [value for value in values if math.isfinite(value)]
        if term.metric.better == "lower":
            return min(finite, default=math.nan)
        return max(finite, default=math.nan)

    def figure(self, metric: str | None = None) -> Figure:
        """Draw a metric against the share of positives, and mark the labelled rows and the target.

        Parameters
        ----------
        metric : str, optional
            Full name of the metric. The default is the accuracy of the last grouping step or, if
            there is no grouping, the accuracy of the classes.

        Raises
        ------
        ValueError
            If there is no positive class or group, or if the metric cannot be computed at different
            shares.
        """
        from cmtrack.plots.evaluation import at_prevalence_figure

        share = math.nan
        step = self.evaluation.scored
        if step is not None:
            share = float(self.moved.target.shares[step.in_positive].sum())
        figure = at_prevalence_figure(self.evaluation, metric, target=share)
        if figure is None:
            raise ValueError(
                "the figure needs a positive class or group, and a metric with a value at other "
                f"shares, got {metric!r}"
            )
        return figure

    def homogeneity(self, audited: Evaluation) -> tuple[float, int, float]:
        """Test whether predictions within each class have the same distribution in the target.

        Parameters
        ----------
        audited : Evaluation
            Evaluation of those rows of the target whose labels are known. Both evaluations must
            have the same classes.

        Returns
        -------
        statistic, degrees, pvalue
            Pearson's X² that compares the predictions of the two sets of rows, added up over the
            actual classes. If the p-value is small, do not trust the metrics at different shares.
            The p-value is NaN if there are no degrees of freedom.
        """
        audited_labels = getattr(audited, "labels", ())
        labels = self.evaluation.labels
        if audited_labels != labels:
            text = listed(audited_labels, 8) if audited_labels else f"{audited!r:.80}"
            raise ValueError(
                f"audited must be an evaluation of the classes {listed(labels, 8)}, got {text}"
            )
        sides = (self.evaluation, audited)
        both = np.stack([side.confusion_matrix.counts for side in sides]).astype(np.float64)
        rows = both.sum(axis=2)
        columns = both.sum(axis=0)
        is_compared = (rows > 0).all(axis=0)
        # A class is not compared if it has no rows on one side. The small number avoids a division
        # by 0.
        totals = np.maximum(columns.sum(axis=1), 1e-300)
        expected = rows[:, :, None] * columns / totals[:, None]
        used = (columns > 0) & is_compared[:, None]
        squares = (both - expected) ** 2 / np.where(expected > 0, expected, 1.0)
        statistic = float(squares[:, used].sum())
        degrees = int((used.sum(axis=1) - 1)[is_compared].sum())
        pvalue = float(chdtrc(degrees, statistic)) if degrees > 0 else math.nan
        return statistic, degrees, pvalue

    def to_frame(self) -> pd.DataFrame:
        """Return a table of all metrics that compares the labelled rows with the target.

        Returns
        -------
        DataFrame
            The columns are metric, here (the value for the labelled rows), there (the value at the
            target's shares), low, high, change and why. The interval [low, high] holds for a
            population with the target's shares, or for the target's own rows if the shares were
            estimated.
        """
        from cmtrack._pandas import pd

        intervals = self.intervals if self.moved.target.estimated is None else self.own_intervals
        rows = []
        for name, value in self.metrics.items():
            here = self.evaluation.metrics.get(name, math.nan)
            change = value - here
            if abs(change) <= _SAME:
                change = 0.0  # avoids -0.000
            low, high = intervals.get(name, (math.nan, math.nan))
            rows.append((name, here, value, low, high, change, self._why(name, change)))
        columns = ["metric", "here", "there", "low", "high", "change", "why"]
        return pd.DataFrame(rows, columns=columns)

    def _why(self, name: str, change: float) -> str:
        """Describe the class whose share changes a metric most."""
        if math.isnan(change):
            return self.undefined.get(name, "")
        if abs(change) <= _SAME:
            return "the same at both"
        target = self.moved.target
        counts = self.moved.by_class
        size = len(target.names)
        before = np.bincount(target.strata, counts / counts.sum(), size)
        after = np.bincount(target.strata, target.shares, size)
        parts = self._parts.get(name)
        step = self.evaluation.scored
        stratum = 0
        if size == 2:
            # Both shares change by the same amount. Name the stated share, which is first. If the
            # shares were estimated, name the share of the positive group.
            if target.estimated is not None and step is not None:
                stratum = int(target.strata[step.in_positive].min())
        elif parts is None or parts.means is None:
            stratum = int(np.argmax(np.abs(after - before)))
        else:
            stratum = int(np.argmax((after - before) * (parts.means * np.sign(change))))
        there = short_percent(after[stratum])
        return (
            f"{target.names[stratum]} has a share of {there} instead of "
            f"{short_percent(before[stratum])}"
        )

    def _repr_html_(self) -> str:
        frame = self.to_frame()
        shown = frame[frame["metric"].isin(self.evaluation.headline)]
        size = shown["change"].abs().sort_values(ascending=False, kind="stable")
        shown = self._what_changes(shown.loc[size.index])
        heads = {"here": "on these rows", "there": "at these shares"}
        return notebook.view(
            notebook.sentence(f"If the shares are: {self._shares_in_words()}"),
            notebook.table(shown.rename(columns=heads), of=len(frame)),
            notes=self.warnings,
        )

    @staticmethod
    def _what_changes(frame: pd.DataFrame) -> pd.DataFrame:
        """Return the metrics that change, or all of them if none changes."""
        changed = frame[frame["change"] != 0]
        return frame if changed.empty else changed

    def _shares_in_words(self) -> str:
        """Return the shares, such as "“not democrat” 10%, all others 90%"."""
        shares = [f"{name} {short_percent(share)}" for name, share in self.by_name.items()]
        if len(shares) > _MOST_SHARES:
            shares[_MOST_SHARES:] = ["…"]
        return ", ".join(shares)

    def __repr__(self) -> str:
        if self.withdrawn:
            return f"Transported(withdrawn: {misfit(self.fit_pvalue)})"
        catalog = self.evaluation.catalog
        metrics = [
            f"{catalog.lookup(name).heading(brief=True)} {significant(self.metrics[name])}"
            for name in _SHOWN
            if name in self.metrics
        ]
        return printable(f"Transported({self._shares_in_words()}: {', '.join(metrics)})")


# -- warnings ------------------------------------------------------------------------------------


def _warn_of_assumption(result: Transported) -> Iterator[str]:
    pvalue = result.fit_pvalue
    if result.moved.target.estimated is None:
        test = _UNTESTED
    elif math.isnan(pvalue):
        test = "the fit of the target's scores could not be tested"
    elif result.withdrawn:
        test = f"it does not hold, {misfit(pvalue)}: nothing is estimated"
    elif doubt(pvalue):
        test = f"it may not hold, {misfit(pvalue)}: do not trust the numbers"
    else:
        test = f"the target's scores fit ({p_equals(pvalue)}); this test finds only large changes"
    yield f"{ASSUMES}; {test}"


def _warn_of_mixed_groups(result: Transported) -> Iterator[str]:
    target = result.moved.target
    sizes = np.bincount(target.strata, minlength=len(target.names))
    mixed = [name for name, size in zip(target.names, sizes, strict=True) if size > 1]
    if mixed:
        yield f"within {' and '.join(mixed)}, the classes have the mix of the labelled rows"


def _warn_of_missing_scores(result: Transported) -> Iterator[str]:
    if result.evaluation.scored is not None and result.moved.side_factors is None:
        yield (
            "metrics of the positive group's score are missing: the mix of classes within a group "
            "changes"
        )


def _warn_of_few_rows(result: Transported) -> Iterator[str]:
    shares = result.moved.target.shares
    rows = zip(result.evaluation.labels, result.moved.by_class, shares, strict=True)
    few = [f"{quoted(label)} (n = {count(n)})" for label, n, q in rows if 0 < n < _FEW and q > 0]
    if few:
        names = ", ".join(few[:8])
        yield f"fewer than {_FEW} labelled rows of {names}: intervals are approximate"


def _warn_of_heavy_negatives(result: Transported) -> Iterator[str]:
    if result.evaluation.scored is None:
        return
    weight = result.moved.heavy_negative
    if weight >= _HEAVY:
        yield (
            "the average precision tends to be too high: the weight of each labelled negative "
            f"is {short_percent(weight)} of the total weight of the labelled positives"
        )


def _warn_of_absent_classes(result: Transported) -> Iterator[str]:
    estimated = result.moved.target.estimated
    absent = [name for name, share in result.by_name.items() if share < _ABSENT]
    if estimated is not None and absent:
        width = "are too narrow"
        if estimated.ends is not None:
            width = "cover the range of the share's interval"
        names = ", ".join(absent[:8])
        yield f"the estimated share of {names} is 0: intervals of metrics that use it {width}"


def _warn_of_clusters(result: Transported) -> Iterator[str]:
    has_rows = isinstance(result.evaluation.rows, Predictions)
    is_summed = has_rows and result.moved.target.estimated is None
    if result.evaluation.cluster_errors is not None and not is_summed:
        yield (
            "rows belong to groups, but the standard errors at other shares assume independent rows"
        )


_WARNINGS = (
    _warn_of_assumption,
    _warn_of_mixed_groups,
    _warn_of_missing_scores,
    _warn_of_few_rows,
    _warn_of_heavy_negatives,
    _warn_of_absent_classes,
    _warn_of_clusters,
)


def _are_scores(evaluation: Evaluation, stated: Any) -> bool:
    """Return True if scores of rows were passed instead of shares.

    An array with several columns is assumed to contain scores. If there are two classes, a
    one-dimensional array is also assumed to contain scores, unless its length is two.
    """
    if isinstance(stated, Mapping):
        return any(np.ndim(value) for value in stated.values())
    if column_names(stated) is not None or np.ndim(stated) > 1:
        return True
    return np.ndim(stated) == 1 and len(evaluation.labels) == 2 and len(stated) != 2


def transported(
    evaluation: Evaluation, prevalence: Any, rows: float | None = None, counted: bool = False
) -> Transported:
    """Return the metrics for different shares of the classes (see :meth:`Evaluation.at`)."""
    if evaluation.none is not None:
        raise ValueError(
            f"other shares need rows that each have one actual class, got {evaluation!r}"
        )
    if isinstance(prevalence, BasePrevalence):
        if rows is not None or counted:
            raise ValueError(
                "rows= and counted= are only for stated shares: an estimate has its own rows"
            )
        target = estimated_target(evaluation, prevalence)
    elif _are_scores(evaluation, prevalence):
        raise RemovedFeature(reason("Evaluation.at(scores)"))
    else:
        target = stated_target(evaluation, prevalence, rows, counted)
    shares = dict(zip(evaluation.labels, target.shares.tolist(), strict=True))
    pvalue = math.nan if target.estimated is None else target.estimated.fit_pvalue
    if refusal(pvalue):
        shares = dict.fromkeys(shares, math.nan)
    return Transported(evaluation, shares, target.rows, pvalue, Moved(evaluation, target))
