"""The :class:`Threshold` that an evaluation chooses: its value, what it is worth, and what any other would give."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from cmtrack import notebook
from cmtrack.evaluation.catalog import lookup
from cmtrack.evaluation.compute import scores_first
from cmtrack.evaluation.gates import Gate
from cmtrack.evaluation.input_remarks import scaled_rows_warning
from cmtrack.evaluation.threshold_rules import (
    COST,
    FOLDS,
    Dependence,
    HeldOut,
    OutcomeCosts,
    RowSplits,
    Rule,
    candidates,
    cross_fit,
    judged_cost,
    judged_metric,
    six_at,
    split_counts,
    thresholds_of,
    values_of,
)
from cmtrack.grouping import Costs, Label, as_costs
from cmtrack.metrics.binary import SIX
from cmtrack.metrics.function import Fraction
from cmtrack.metrics.influence import effective_clusters, standard_error
from cmtrack.metrics.names import near_metric
from cmtrack.metrics.roc import ScoreTable, six_counts
from cmtrack.names import quoted
from cmtrack.statistics import BinaryCounts, ScoreCounts
from cmtrack.statistics.collected import accepted_within, group_scores, is_positive
from cmtrack.statistics.inputs import FloatArray, align_rows
from cmtrack.statistics.labels import encode_labels
from cmtrack.statistics.predictions import Predictions
from cmtrack.statistics.probabilities import as_probabilities

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from cmtrack.evaluation.result import Evaluation

_FEW = 20
_WEIGHTED = "the weights are fractions, and the rows to be split are not kept"
_CLUSTERED = (
    "which rows belong together is not known: they are split as if they were independent, so that the interval "
    "may be too short"
)


@dataclass(frozen=True)
class Judged:
    """A number of a threshold.

    Attributes
    ----------
    name : str
        "cost/mean", or the name of a metric.
    value : float
        On rows that did not choose the threshold; NaN where it is not known.
    low, high : float
        Ends of its interval; NaN without one.
    apparent : float
        On the rows that chose it: too favourable.

    Examples
    --------
    >>> from cmtrack import evaluate
    >>> evaluation = evaluate([0, 0, 1, 1] * 20, y_prob=[0.1, 0.6, 0.4, 0.9] * 20)
    >>> judged = evaluation.threshold({(1, 0): 10, (0, 1): 1}).objective
    >>> judged.name, judged.value, str(judged)
    ('cost/mean', 0.25, '0.25 [0.164, 0.491]')
    """

    name: str
    value: float
    low: float
    high: float
    apparent: float

    def __str__(self) -> str:
        if math.isnan(self.value):
            return "undefined"
        ends = f" [{self.low:.3g}, {self.high:.3g}]" if math.isfinite(self.low + self.high) else ""
        return f"{self.value:.3g}{ends}"

    def to_dict(self) -> dict[str, float]:
        """Plain data."""
        return {name: getattr(self, name) for name in ("value", "low", "high", "apparent")}


@dataclass(frozen=True)
class Threshold:
    """A threshold of the positive group's score. Make one with :meth:`cmtrack.Evaluation.threshold`.

    Attributes
    ----------
    value : float
        Rows whose score reaches it are positive; infinity where none should be.
    objective : Judged
        What was minimized or maximized: the mean cost, or the metric.
    bounded : Judged or None
        The metric that ``subject_to`` bounds.
    subject_to : str or None
    positive, negative : label
    confidence_level : float
    separate : bool
        True where a calibration set chose it and the evaluated rows judge it; else folds of the rows did both.
    costs : OutcomeCosts or None
        Of the six outcomes, where there are costs of the two groups.
    held_out : BinaryCounts
        The outcomes of the rows that judge it; of folds, averaged over the repeats.
    warnings : tuple of str
    thresholds : ndarray of shape (T,), ascending
        All candidates of the rows that chose; the last is infinity.
    counts : BinaryCounts of ndarrays of shape (T,)
        The six counts of these rows at each of them.

    Examples
    --------
    >>> from cmtrack import evaluate
    >>> evaluation = evaluate([0, 0, 1, 1] * 20, y_prob=[0.1, 0.6, 0.4, 0.9] * 20)
    >>> chosen = evaluation.threshold({(1, 0): 10, (0, 1): 1})
    >>> chosen
    Threshold(0.4: cost/mean 0.25 [0.164, 0.491], apparent 0.25)
    >>> evaluate([0, 1, 1], y_prob=[0.3, 0.45, 0.8], threshold=chosen).binary.tp
    2
    """

    value: float
    objective: Judged
    bounded: Judged | None
    subject_to: str | None
    positive: Label
    negative: Label
    confidence_level: float
    separate: bool
    costs: OutcomeCosts | None
    held_out: BinaryCounts
    warnings: tuple[str, ...]
    thresholds: FloatArray = field(repr=False, compare=False)
    counts: BinaryCounts = field(repr=False, compare=False)

    @property
    def cost(self) -> float:
        """Mean cost on rows that did not choose the threshold; NaN where a metric was maximized."""
        return self.objective.value if self.objective.name == COST else math.nan

    @property
    def calibrated(self) -> float:
        """The threshold of least cost if the scores were calibrated; NaN without costs or if one answer is best."""
        return math.nan if self.costs is None else self.costs.calibrated

    @property
    def bound_in_words(self) -> tuple[str, float] | None:
        """The bound for people, such as "precision ≥ 0.9", and its number."""
        if self.subject_to is None:
            return None
        bound = Gate.parse(self.subject_to)
        end = {"low": "the lower limit of ", "high": "the upper limit of "}.get(bound.end, "")
        sign = bound.operator.replace(">=", "≥").replace("<=", "≤")
        return f"{end}{_title(bound.metric)} {sign} {bound.bound:g}", bound.bound

    @property
    def low(self) -> float:
        """Lower end of the objective's interval."""
        return self.objective.low

    @property
    def high(self) -> float:
        """Upper end of the objective's interval."""
        return self.objective.high

    @property
    def apparent(self) -> float:
        """The objective on the rows that chose the threshold: a warning, not a forecast."""
        return self.objective.apparent

    def to_frame(self) -> pd.DataFrame:
        """Every threshold of the rows that chose, the highest first.

        Returns
        -------
        DataFrame
            threshold, the six counts and the metrics of ``binary/`` that they give, and cost where there are costs.
            These are apparent numbers: a row selected from them is too favourable.
        """
        from cmtrack._pandas import pd

        columns = {"threshold": self.thresholds}
        columns |= {
            metric.name.removeprefix("binary/"): values_of(metric, self.counts) for metric in SIX
        }
        if self.costs is not None:
            columns["cost"] = self.costs.of(self.counts)
        return pd.DataFrame(columns).iloc[::-1].reset_index(drop=True)

    def sentence(self) -> str:
        """The threshold and what it is worth, for people."""
        name, judged = quoted(self.positive), self.objective
        parts = [judged] if self.bounded is None else [judged, self.bounded]
        if judged.name == COST:
            aim, words = "least cost", "a decision costs"
            if self.bound_in_words is not None:
                words = "the cost is"
        else:
            aim, words = f"the largest {_title(judged.name)}", f"{_title(judged.name)} is"
        aim += "" if self.bound_in_words is None else f" with {self.bound_in_words[0]}"
        of = f"{self.value:.3g} is the threshold of {aim} for {name}"
        if math.isinf(self.value):
            of = f"0 rows should be called {name}, which gives {aim}"
        chose = (
            "The calibration set, which chose it, shows"
            if self.separate
            else "The rows that chose it show"
        )
        better = (
            judged.apparent < judged.value
            if judged.name == COST
            else judged.apparent > judged.value
        )
        unlike = not math.isfinite(judged.value) or (
            better and f"{judged.apparent:.3g}" != f"{judged.value:.3g}"
        )
        noun = (
            "" if len(parts) == 1 else "cost " if judged.name == COST else f"{_title(judged.name)} "
        )
        seemed = f"{noun}{judged.apparent:.3g}" + (", which is too favourable" if unlike else "")
        seemed += "".join(
            f"{',' * unlike} and {_title(part.name)} {part.apparent:.3g}" for part in parts[1:]
        )
        if not math.isfinite(judged.value):
            return f"{of}; its worth on other rows is not known. {chose} {seemed}."
        shown = [f"{words} {judged}", *(f"{_title(part.name)} is {part}" for part in parts[1:])]
        judges = "on the evaluated rows" if self.separate else "on rows that did not choose it"
        return f"{of}: {' and '.join(shown)} {judges}. {chose} {seemed}."

    def to_dict(self) -> dict[str, Any]:
        """Plain data: the threshold ("infinity" where no row should be positive), and what it is worth."""
        parts = {
            part.name: part.to_dict() for part in (self.objective, self.bounded) if part is not None
        }
        return {
            "threshold": self.value if math.isfinite(self.value) else "infinity",
            "positive": self.positive,
            "objective": self.objective.name,
            "subject_to": self.subject_to,
            "judged_by": "evaluated rows" if self.separate else "cross-fitting",
            "confidence_level": self.confidence_level,
            "metrics": parts,
            "calibrated_threshold": self.calibrated,
            "held_out": self.held_out._asdict(),
            "warnings": list(self.warnings),
        }

    def figure(self) -> Figure:
        """Cost, where there are costs, and metrics against the threshold."""
        from cmtrack import plots

        return plots.threshold_figure(self)

    def __repr__(self) -> str:
        judged = self.objective
        bound = "" if self.subject_to is None else f", {self.subject_to}"
        return f"Threshold({self.value:.6g}: {judged.name} {judged}, apparent {judged.apparent:.3g}{bound})"

    def _repr_html_(self) -> str:
        return notebook.view(notebook.sentence(self.sentence()), notes=self.warnings)


def choose_threshold(
    evaluation: Evaluation,
    costs: Any,
    maximize: str | None,
    subject_to: str | None,
    calibration: Any,
) -> Threshold:
    """Choose and judge a threshold (see :meth:`cmtrack.Evaluation.threshold`)."""
    table = _scores_of(evaluation)
    rule, prices = _rule(evaluation, costs, maximize, subject_to)
    chooser, notes = (
        (table, []) if calibration is None else _calibration_scores(evaluation, calibration)
    )
    counts = chooser.scores.counts.astype(np.float64)
    thresholds, six = thresholds_of(chooser.scores), six_counts(counts)
    there, effective = candidates(counts), _kish(chooser)
    place = int(rule.choose(thresholds, counts, effective))
    if place < 0:
        raise ValueError(_unreachable(rule, thresholds, six, there, effective))
    value, chosen = float(thresholds[place]), six_at(counts, place)
    notes = notes + _cautions(evaluation, rule, chooser)
    splits = _row_splits(evaluation, table)
    held: HeldOut | None
    if calibration is None:
        held, more = _cross_fitted(evaluation, table, splits, thresholds, rule)
    else:
        held, value, more = _at_once(table, splits, value)
    level, design = evaluation.confidence_level, _dependence(evaluation, table, splits, held)
    step = evaluation.scored
    assert step is not None  # there are scores
    assert step.positive is not None
    return Threshold(
        value=value,
        objective=_judge(rule.objective, held, design, chosen, level, prices),
        bounded=None
        if rule.bound is None
        else _judge(rule.bound.metric, held, design, chosen, level, prices),
        subject_to=None if rule.bound is None else rule.bound.text,
        positive=step.labels[step.positive],
        negative=step.labels[1 - step.positive],
        confidence_level=level,
        separate=calibration is not None,
        costs=prices,
        held_out=BinaryCounts(*(held.mean.tolist() if held is not None else [math.nan] * 6)),
        warnings=tuple(notes + more),
        thresholds=thresholds[there],
        counts=BinaryCounts(*np.array(six)[:, there]),
    )


# -- choosing --------------------------------------------------------------------------------------------------


def _scores_of(evaluation: Evaluation, what: str = "") -> ScoreTable:
    """The scores of both groups."""
    of = f" of the {what} set" if what else ""
    table = evaluation._views.seen(ScoreTable)
    if table is None or evaluation.statistics.ranking_only:
        if evaluation.scored is None:
            raise ValueError(
                f"a threshold needs two classes or a grouping step of two groups{of}, got {evaluation!r:.120}"
            )
        raise ValueError(
            f"a threshold needs the probabilities of two groups{of} (y_prob), got {evaluation!r:.120}"
        )
    return _with_both(table, what)


def _with_both(table: ScoreTable, what: str) -> ScoreTable:
    if not table.has_both:
        n, of = table.sides.tolist(), f" of the {what} set" if what else ""
        raise ValueError(
            f"a threshold needs rows of both groups{of}, got {n[0]:g} positive and {n[1]:g} negative ones"
        )
    return table


def _rule(
    evaluation: Evaluation, costs: Any, maximize: str | None, subject_to: str | None
) -> tuple[Rule, OutcomeCosts | None]:
    """The rule, and the costs of the outcomes where there are any."""
    if costs is not None and maximize is not None:
        raise ValueError(f"give costs or maximize, not both, got maximize={maximize!r}")
    if costs is None and maximize is None and evaluation.costs is None:
        raise ValueError("a threshold needs costs, or a metric to maximize, got neither")
    bound = None if subject_to is None else Gate.parse(subject_to)
    prices = None
    given: Costs | None = evaluation.costs if costs is None else as_costs(costs)
    step = evaluation.scored
    if given is not None and step is not None:
        try:
            prices = OutcomeCosts.of_matrix(
                given.matrix(evaluation.labels, evaluation.grouping), step
            )
        except ValueError:
            if maximize is None:
                raise
    metric = None if maximize is None else _metric(maximize)
    rule = Rule(prices if metric is None else None, metric, bound, evaluation.confidence_level)
    rule.check()
    return rule, prices


def _metric(name: str) -> Any:
    try:
        return lookup(name)
    except KeyError:
        names = [metric.name for metric in SIX]
        raise ValueError(
            f"maximize must name a metric, got {name!r:.80}{near_metric(str(name), names)}"
        ) from None


def _calibration_scores(evaluation: Evaluation, calibration: Any) -> tuple[ScoreTable, list[str]]:
    """The scores of the rows that choose the threshold, and warnings."""
    if isinstance(calibration, type(evaluation)):
        for name in ("labels", "grouping", "positive"):
            ours, theirs = getattr(evaluation, name), getattr(calibration, name)
            if ours != theirs:
                raise ValueError(
                    f"the calibration set must have the same {name}, got {theirs!r:.80} for {ours!r:.80}"
                )
        return _scores_of(calibration, "calibration"), []
    if not isinstance(calibration, (tuple, list)) or len(calibration) != 2:
        raise ValueError(
            f"calibration must be (y, scores) or an Evaluation, got {type(calibration).__name__}"
        )
    step, order = evaluation.scored, evaluation.labels
    assert step is not None  # there are scores
    given = align_rows({"calibration y": calibration[0], "calibration scores": calibration[1]})
    actual = encode_labels({"calibration y": given["calibration y"]}, order)[1]["calibration y"]
    first = scores_first(order, step)
    read = as_probabilities(
        given["calibration scores"], order, len(actual), first, "calibration scores", "warn"
    )
    scores = read.array
    accepted, positive = accepted_within(actual, scores, step), is_positive(actual, step)
    channel = 2 * (1 - positive) + ~accepted
    table = ScoreTable(ScoreCounts.from_scores(group_scores(scores, step), channel, 4))
    notes = [scaled_rows_warning(read.scaled_rows)] if read.scaled_rows else []
    return _with_both(table, "calibration"), notes


def _unreachable(
    rule: Rule, thresholds: FloatArray, six: BinaryCounts, there: Any, effective: float
) -> str:
    """The words where no threshold keeps the bound."""
    assert rule.bound is not None  # without one there always is a threshold
    read = np.where(there, rule.bounded(six, effective), np.nan)
    end = f".{rule.bound.end}" if rule.bound.end else ""
    text = f"no threshold has {rule.bound.text}: {rule.bound.metric}{end}"
    if np.isnan(read).all():
        return f"{text} is undefined at all of them"
    place = int(np.nanargmax(read) if rule.bound.operator.startswith(">") else np.nanargmin(read))
    most = "most" if rule.bound.operator.startswith(">") else "least"
    return f"{text} is at {most} {read[place]:.6g}, at the threshold {thresholds[place]:.6g}"


def _cautions(evaluation: Evaluation, rule: Rule, chooser: ScoreTable) -> list[str]:
    """Warnings that the rule and the rows that choose bring."""
    notes = []
    fewest = float(chooser.effective_sides.min())
    if fewest < _FEW:
        notes.append(
            f"{fewest:.3g} rows in the smaller group: with fewer than {_FEW} a threshold rests on chance"
        )
    if not chooser.scores.exact:
        notes.append(
            "the scores are counted by cell: thresholds are the edges of cells, 1,600 of them"
        )
    bound = rule.bound
    if bound is not None and not bound.end and isinstance(lookup(bound.metric).value, Fraction):
        side, limit, end = (
            ("below", "low", "lower")
            if bound.operator.startswith(">")
            else ("above", "high", "upper")
        )
        notes.append(
            f"the true {_title(bound.metric)} of a threshold that is chosen so is {side} {bound.bound:g} about every "
            f"second time: '{bound.metric}.{limit} {bound.operator} {bound.bound:g}' asks for the {end} end of its "
            "interval"
        )
    elif bound is not None and bound.end and evaluation.n_clusters is not None:
        notes.append(
            "rows belong together, and the bound's interval is that of independent rows: it may be too short"
        )
    return notes


# -- judging ---------------------------------------------------------------------------------------------------


def _kish(table: ScoreTable) -> float:
    """Effective samples a unit of weight."""
    return table.total / float(table.squares.sum())


def _row_splits(evaluation: Evaluation, table: ScoreTable) -> RowSplits | None:
    """The evaluated rows, if they are available and clustered or with fractional weights."""
    rows = evaluation.rows
    if (
        not isinstance(rows, Predictions)
        or rows.source is None
        or (rows.clusters is None and not table.fractional)
    ):
        return None
    place = evaluation._influence.locate(table)[1]
    return RowSplits(place, thresholds_of(table.scores), rows.weights, rows.clusters)


def _cross_fitted(
    evaluation: Evaluation,
    table: ScoreTable,
    splits: RowSplits | None,
    thresholds: FloatArray,
    rule: Rule,
) -> tuple[HeldOut | None, list[str]]:
    """Outcomes of the rows that the folds judge, and warnings; None where rows cannot be split."""
    effective, notes = _kish(table), []
    if splits is None and table.fractional:
        return None, [f"{_WEIGHTED}: what the threshold is worth on other rows is not known"]
    if splits is not None and splits.n_folds < 2:
        return None, [
            "all rows belong together: what the threshold is worth on other rows is not known"
        ]
    if splits is None and evaluation.cluster_errors is not None:
        notes.append(_CLUSTERED)
    drawn = (
        split_counts(table.scores.counts, min(FOLDS, int(table.total)))
        if splits is None
        else splits
    )
    held = cross_fit(drawn, thresholds, rule, effective)
    without = int((held.places < 0).sum())
    if without and rule.bound is not None:
        notes.append(
            f"{without} of {held.places.size} folds are left out: the others have no threshold with {rule.bound.text}"
        )
    return (held if held.mean.sum() > 0 else None), notes


def _at_once(
    table: ScoreTable, splits: RowSplits | None, value: float
) -> tuple[HeldOut, float, list[str]]:
    """The outcomes of the evaluated rows at a threshold, the nearest that their counts can judge, and warnings."""
    edges, notes = thresholds_of(table.scores), []
    at, taken = int(np.searchsorted(edges, value)), value
    if not table.scores.exact and math.isfinite(value):
        at = int(np.abs(edges[:-1] - value).argmin())
        taken = float(edges[at])
    if taken != value:
        notes.append(
            f"{value:.6g} was chosen; it is judged at {taken:.6g}, the nearest edge of a cell of scores"
        )
    if splits is not None:
        splits.folds.append(np.zeros(len(splits.place), dtype=np.int64))
    return (
        HeldOut(six_at(table.scores.counts.astype(np.float64), at)[None], np.array([[at]])),
        taken,
        notes,
    )


def _dependence(
    evaluation: Evaluation, table: ScoreTable, splits: RowSplits | None, held: HeldOut | None
) -> Dependence:
    """Effective sample size, and cluster-robust errors."""
    if splits is None or splits.clusters is None or held is None:
        return Dependence(_kish(table))
    shares, weights, clusters = splits.outcomes(held.places), splits.weights, splits.clusters

    def by_cluster(psi: FloatArray) -> tuple[float, float]:
        rows = shares @ psi
        return standard_error(rows, weights, clusters), effective_clusters(rows, weights, clusters)

    return Dependence(_kish(table), by_cluster, evaluation.n_clusters)


def _judge(
    name: str,
    held: HeldOut | None,
    design: Dependence,
    chosen: FloatArray,
    level: float,
    costs: OutcomeCosts | None,
) -> Judged:
    """A number on the rows that judge, and on those that chose."""
    value, ends = math.nan, None
    if name == COST:
        assert costs is not None  # the rule is of costs
        if held is not None:
            value, ends = judged_cost(held, costs, level, design)
        return Judged(name, value, *(ends or (math.nan, math.nan)), float(costs.of(chosen)))
    metric = lookup(name)
    if held is not None:
        value, ends = judged_metric(held, metric, level, design)
    return Judged(
        name,
        value,
        *(ends or (math.nan, math.nan)),
        float(values_of(metric, BinaryCounts(*chosen))),
    )


# -- words -----------------------------------------------------------------------------------------------------


def _title(name: str) -> str:
    """A metric in a sentence."""
    return lookup(name).heading()
