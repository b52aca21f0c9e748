"""The :class:`Threshold` that an evaluation chooses: its value, and what it is worth."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from cmtrack import notebook
from cmtrack.digits import significant, significant_with_interval
from cmtrack.evaluation.catalog import lookup
from cmtrack.evaluation.compute import scores_first
from cmtrack.evaluation.gates import Gate
from cmtrack.evaluation.input_remarks import scaled_rows_warning
from cmtrack.evaluation.threshold_rules import (
    COST,
    FOLDS,
    REPEATS,
    HeldOut,
    OutcomeCosts,
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
from cmtrack.metrics.intervals import Interval
from cmtrack.metrics.names import near_metric
from cmtrack.metrics.roc import ScoreTable, six_counts
from cmtrack.names import quoted
from cmtrack.statistics import BinaryCounts, ScoreCounts
from cmtrack.statistics.collected import accepted_within, group_scores, is_positive
from cmtrack.statistics.counted import Counted
from cmtrack.statistics.inputs import FloatArray, align_rows
from cmtrack.statistics.labels import encode_labels
from cmtrack.statistics.probabilities import as_probabilities

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from cmtrack.evaluation.result import Evaluation

_FEW = 20


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
        return significant_with_interval(self.value, self.low, self.high)

    def to_dict(self) -> dict[str, float]:
        """Plain data."""
        return {name: getattr(self, name) for name in ("value", "low", "high", "apparent")}


@dataclass(frozen=True)
class Threshold:
    """A threshold of the positive group's score.

    Make one with :meth:`cmtrack.Evaluation.threshold`.

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
        True where a calibration set chose it and the evaluated rows judge it; else folds of the
        rows did both.
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
        """The threshold of least cost if scores are calibrated; NaN if there is none."""
        return math.nan if self.costs is None else self.costs.calibrated

    @property
    def bound_in_words(self) -> tuple[str, float] | None:
        """The bound for people, such as "precision ≥ 0.9", and its number."""
        if self.subject_to is None:
            return None
        bound = Gate.parse(self.subject_to)
        sign = bound.operator.replace(">=", "≥").replace("<=", "≤")
        return f"{_title(bound.metric)} {sign} {bound.bound:g}", bound.bound

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
            threshold, the six counts and the metrics of ``binary/`` that they give, and cost where
            there are costs. These are apparent numbers: a row selected from them is too favourable.
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
        aim, words = self._aim()
        if math.isinf(self.value):
            choice = f"0 rows should be called {quoted(self.positive)}, which gives {aim}"
        else:
            choice = (
                f"{significant(self.value)} is the threshold of {aim} for {quoted(self.positive)}"
            )
        if not math.isfinite(self.objective.value):
            return f"{choice}; its worth on other rows is not known. {self._apparent_numbers()}."
        worth = f"{words} {self.objective}"
        if self.bounded is not None:
            worth += f" and {_title(self.bounded.name)} is {self.bounded}"
        judges = "on the evaluated rows" if self.separate else "on rows that did not choose it"
        return f"{choice}: {worth} {judges}. {self._apparent_numbers()}."

    def _aim(self) -> tuple[str, str]:
        """The goal of the choice, and the words before the objective's number."""
        if self.objective.name != COST:
            aim = f"the largest {_title(self.objective.name)}"
            words = f"{_title(self.objective.name)} is"
        else:
            aim = "least cost"
            words = "a decision costs" if self.bounded is None else "the cost is"
        if self.bound_in_words is not None:
            aim += f" with {self.bound_in_words[0]}"
        return aim, words

    def _apparent_numbers(self) -> str:
        """The numbers on the rows that chose the threshold, and whether they are too favourable."""
        objective = self.objective
        gain = objective.apparent - objective.value
        if objective.name == COST:
            gain = -gain
        number = significant(objective.apparent)
        shown_alike = number == significant(objective.value)
        too_favourable = math.isnan(gain) or (gain > 0 and not shown_alike)
        if self.bounded is not None:
            noun = "cost" if objective.name == COST else _title(objective.name)
            number = f"{noun} {number}"
        if too_favourable:
            number += ", which is too favourable"
        if self.bounded is not None:
            comma = "," if too_favourable else ""
            number += (
                f"{comma} and {_title(self.bounded.name)} {significant(self.bounded.apparent)}"
            )
        if self.separate:
            return f"The calibration set, which chose it, shows {number}"
        return f"The rows that chose it show {number}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain data: the threshold ("infinity" for no positive rows) and its worth."""
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
        """Draw the cost, if there are costs, and metrics against the threshold."""
        from cmtrack import plots

        return plots.threshold_figure(self)

    def __repr__(self) -> str:
        judged = self.objective
        parts = [f"{judged.name} {judged}", f"apparent {significant(judged.apparent)}"]
        if self.subject_to is not None:
            parts.append(self.subject_to)
        return f"Threshold({significant(self.value)}: {', '.join(parts)})"

    def _repr_html_(self) -> str:
        return notebook.view(notebook.sentence(self.sentence()), notes=self.warnings)


def has_independent_rows(evaluation: Evaluation) -> bool:
    """True if the counts are numbers of independent rows: no sampling weights, and no clusters."""
    return not evaluation.statistics.has_sampling_weights and evaluation.cluster_errors is None


def choose_threshold(
    evaluation: Evaluation,
    costs: Any,
    maximize: str | None,
    subject_to: str | None,
    calibration: Any,
) -> Threshold:
    """Choose and judge a threshold (see :meth:`cmtrack.Evaluation.threshold`)."""
    _check_rows(evaluation)
    scores = _scores_of(evaluation).scores
    rule, outcome_costs = _rule(evaluation, costs, maximize, subject_to)
    notes: list[str] = []
    choosing = scores
    if calibration is not None:
        choosing, notes = _calibration_scores(evaluation, calibration)
        if not scores.exact:
            choosing = choosing.to_grid()  # so that the evaluated counts can judge its thresholds
    counts = choosing.counts.astype(np.float64)
    thresholds = thresholds_of(choosing)
    place = int(rule.choose(thresholds, counts))
    if place < 0:
        raise ValueError(_unreachable(rule, thresholds, counts))
    notes = notes + _cautions(rule, choosing)
    if calibration is None:
        n_folds = min(FOLDS, int(counts.sum()))
        held = cross_fit(split_counts(scores.counts, n_folds), thresholds, rule)
        if held.folds_without and rule.bound is not None:
            notes.append(
                f"{held.folds_without} of {n_folds * REPEATS} folds are left out: the others have "
                f"no threshold with "
                f"{rule.bound.text}"
            )
    else:
        reached = int(np.searchsorted(thresholds_of(scores), thresholds[place]))
        held = HeldOut(six_at(scores.counts.astype(np.float64), reached)[None])
    step = evaluation.scored
    if step is None or step.positive is None:
        raise ValueError("a threshold needs a positive class or group")
    chosen = six_at(counts, place)
    level = evaluation.confidence_level
    is_candidate = candidates(counts)
    return Threshold(
        value=float(thresholds[place]),
        objective=_judge(rule.objective, held, chosen, level, outcome_costs),
        bounded=None if rule.bound is None else _judge(rule.bound.metric, held, chosen, level),
        subject_to=None if rule.bound is None else rule.bound.text,
        positive=step.labels[step.positive],
        negative=step.labels[1 - step.positive],
        confidence_level=level,
        separate=calibration is not None,
        costs=outcome_costs,
        held_out=BinaryCounts(*held.mean.tolist()),
        warnings=tuple(notes),
        thresholds=thresholds[is_candidate],
        counts=BinaryCounts(*np.array(six_counts(counts))[:, is_candidate]),
    )


# -- choosing --------------------------------------------------------------------------------------


def _check_rows(evaluation: Evaluation) -> None:
    """Refuse rows that count differently or belong together, and say what works."""
    if has_independent_rows(evaluation):
        return
    if evaluation.statistics.has_sampling_weights:
        raise ValueError(
            "a threshold cannot be chosen on rows with sampling weights: choose it on rows "
            "without weights, and evaluate(..., threshold=chosen, costs=...) shows what it is "
            "worth on these"
        )
    raise ValueError(
        "a threshold cannot be chosen on rows in clusters (groups=): choose it on one row of each "
        "cluster, and evaluate(..., threshold=chosen, costs=...) shows what it is worth on these"
    )


def _scores_of(evaluation: Evaluation, name: str = "") -> ScoreTable:
    """Return the scores of both groups; ``name`` is of the rows, empty for the evaluated ones."""
    owner = f" of the {name} set" if name else ""
    table = evaluation._views.seen(ScoreTable)
    if table is None or evaluation.statistics.ranking_only:
        if evaluation.scored is None:
            raise ValueError(
                f"a threshold needs two classes or a grouping step of two groups{owner}, got "
                f"{evaluation!r:.120}"
            )
        raise ValueError(
            f"a threshold needs the probabilities of two groups{owner} (y_prob), got "
            f"{evaluation!r:.120}"
        )
    return _with_both(table, name)


def _with_both(table: ScoreTable, name: str) -> ScoreTable:
    if not table.has_both:
        positives, negatives = table.sides.tolist()
        owner = f" of the {name} set" if name else ""
        raise ValueError(
            f"a threshold needs rows of both groups{owner}, got {positives:g} positive and "
            f"{negatives:g} negative ones"
        )
    return table


def _rule(
    evaluation: Evaluation, costs: Any, maximize: str | None, subject_to: str | None
) -> tuple[Rule, OutcomeCosts | None]:
    """Return the rule, and the costs of the outcomes if there are any."""
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
    rule = Rule(prices if metric is None else None, metric, bound)
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


def _calibration_scores(evaluation: Evaluation, calibration: Any) -> tuple[ScoreCounts, list[str]]:
    """Return the scores of the rows that choose the threshold, and warnings."""
    if isinstance(calibration, type(evaluation)):
        for name in ("labels", "grouping", "positive"):
            expected = getattr(evaluation, name)
            value = getattr(calibration, name)
            if value != expected:
                raise ValueError(
                    f"the calibration set must have the same {name}, got {value!r:.80} for "
                    f"{expected!r:.80}"
                )
        _check_rows(calibration)
        return _scores_of(calibration, "calibration").scores, []
    if not isinstance(calibration, (tuple, list)) or len(calibration) != 2:
        raise ValueError(
            f"calibration must be (y, scores) or an Evaluation, got {type(calibration).__name__}"
        )
    step = evaluation.scored
    if step is None:
        raise ValueError("a threshold needs a positive class or group")
    order = evaluation.labels
    given = align_rows({"calibration y": calibration[0], "calibration scores": calibration[1]})
    actual = encode_labels({"calibration y": given["calibration y"]}, order)[1]["calibration y"]
    first = scores_first(order, step)
    read = as_probabilities(
        given["calibration scores"], order, len(actual), first, "calibration scores", "warn"
    )
    accepted = accepted_within(actual, read.array, step)
    positive = is_positive(actual, step)
    channel = 2 * (1 - positive) + ~accepted
    counts = ScoreCounts.from_scores(group_scores(read.array, step), channel, 4)
    table = ScoreTable(Counted.unweighted(counts))
    notes = [scaled_rows_warning(read.scaled_rows)] if read.scaled_rows else []
    return _with_both(table, "calibration").scores, notes


def _unreachable(rule: Rule, thresholds: FloatArray, counts: FloatArray) -> str:
    """The words if no threshold keeps the bound."""
    if rule.bound is None:
        raise ValueError("only a bound can leave no threshold")
    bounded = np.where(candidates(counts), rule.bounded(six_counts(counts)), np.nan)
    text = f"no threshold has {rule.bound.text}: {rule.bound.metric}"
    if np.isnan(bounded).all():
        return f"{text} is undefined at all of them"
    if rule.bounds_from_below:
        place = int(np.nanargmax(bounded))
        most = "most"
    else:
        place = int(np.nanargmin(bounded))
        most = "least"
    # Six digits, since 0.8999 must not read as 0.9 next to the bound 0.9.
    reached = significant(bounded[place], 6)
    return f"{text} is at {most} {reached}, at the threshold {significant(thresholds[place])}"


def _cautions(rule: Rule, choosing: ScoreCounts) -> list[str]:
    """Return the warnings about the rule and about the rows that choose."""
    notes = []
    fewest = float(ScoreTable(Counted.unweighted(choosing)).sides.min())
    if fewest < _FEW:
        notes.append(
            f"{significant(fewest)} rows in the smaller group: with fewer than {_FEW} a threshold "
            f"rests on chance"
        )
    if not choosing.exact:
        notes.append(
            "the scores are counted by cell: thresholds are the edges of cells, 1,600 of them"
        )
    bound = rule.bound
    if bound is not None and isinstance(lookup(bound.metric).value, Fraction):
        side = "below" if rule.bounds_from_below else "above"
        margin = "higher" if rule.bounds_from_below else "lower"
        notes.append(
            f"the true {_title(bound.metric)} at such a threshold is {side} {bound.bound:g} about "
            f"half of the time: "
            f"set a {margin} bound if it must be kept"
        )
    return notes


# -- judging ---------------------------------------------------------------------------------------


def _judge(
    name: str,
    held: HeldOut,
    chosen: FloatArray,
    level: float,
    costs: OutcomeCosts | None = None,
) -> Judged:
    """Return a number on other rows, and on the rows that chose; undefined without outcomes."""
    value = math.nan
    interval: Interval | None = None
    has_outcomes = held.mean.sum() > 0
    if name == COST:
        if costs is None:
            raise ValueError("a rule of costs has costs")
        apparent = float(costs.of(chosen))
        if has_outcomes:
            value, interval = judged_cost(held, costs, level)
    else:
        metric = lookup(name)
        apparent = float(values_of(metric, BinaryCounts(*chosen)))
        if has_outcomes:
            value, interval = judged_metric(held, metric, level)
    low, high = interval or (math.nan, math.nan)
    return Judged(name, value, low, high, apparent)


# -- words -----------------------------------------------------------------------------------------


def _title(name: str) -> str:
    """A metric in a sentence."""
    return lookup(name).heading()
