"""The :class:`Threshold` that an evaluation chooses, and the performance at this threshold."""

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
    """The mean cost, or the value of a metric, at a chosen threshold.

    Attributes
    ----------
    name : str
        "cost/mean", or the name of a metric.
    value : float
        The value computed from rows that did not choose the threshold; NaN if it is unknown.
    low, high : float
        The limits of the confidence interval of the value; NaN if no interval can be computed.
    apparent : float
        The value computed from the rows that chose the threshold, which is too favourable.

    Examples
    --------
    >>> from cmtrack import evaluate
    >>> evaluation = evaluate([0, 0, 1, 1] * 20, y_prob=[0.1, 0.6, 0.4, 0.9] * 20)
    >>> judged = evaluation.threshold({(1, 0): 10, (0, 1): 1}).objective
    >>> judged.name, judged.value, str(judged)
    ('cost/mean', 0.25, '0.250 [0.164, 0.491]')
    """

    name: str
    value: float
    low: float
    high: float
    apparent: float

    def __str__(self) -> str:
        return significant_with_interval(self.value, self.low, self.high)

    def to_dict(self) -> dict[str, float]:
        """Return plain data."""
        return {name: getattr(self, name) for name in ("value", "low", "high", "apparent")}


@dataclass(frozen=True)
class Threshold:
    """A threshold for the positive group's score.

    Create a threshold with :meth:`cmtrack.Evaluation.threshold`.

    Attributes
    ----------
    value : float
        Rows are predicted positive if their score is at least this value. If the value is infinity,
        no row is predicted positive.
    objective : Judged
        The mean cost that was minimized, or the metric that was maximized.
    bounded : Judged or None
        The metric that ``subject_to`` puts a bound on; None if no bound is given.
    subject_to : str or None
    positive, negative : label
    confidence_level : float
    separate : bool
        True if the threshold was chosen on a calibration set and evaluated on the evaluated rows.
        False if folds of the evaluated rows were used for both purposes.
    costs : OutcomeCosts or None
        The costs of the six outcomes; None if no costs between the two groups are given.
    held_out : BinaryCounts
        The outcomes of the rows that evaluate the threshold. If folds are used, the counts are
        averaged over the repeats.
    warnings : tuple of str
    thresholds : ndarray of shape (T,), ascending
        All candidate thresholds, which are scores of the rows that chose the threshold. The last
        candidate is infinity.
    counts : BinaryCounts of ndarrays of shape (T,)
        The six counts at each candidate threshold, computed from the rows that chose the threshold.

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
        """Mean cost on rows that did not choose the threshold; NaN if a metric was maximized."""
        return self.objective.value if self.objective.name == COST else math.nan

    @property
    def calibrated(self) -> float:
        """The threshold with the lowest cost for calibrated scores; NaN if it does not exist."""
        return math.nan if self.costs is None else self.costs.calibrated

    @property
    def bound_in_words(self) -> tuple[str, float] | None:
        """The bound in words, such as "precision ≥ 0.9", and the number in the bound."""
        if self.subject_to is None:
            return None
        bound = Gate.parse(self.subject_to)
        sign = bound.operator.replace(">=", "≥").replace("<=", "≤")
        return f"{_title(bound.metric)} {sign} {bound.bound:g}", bound.bound

    @property
    def low(self) -> float:
        """Lower limit of the confidence interval of the objective."""
        return self.objective.low

    @property
    def high(self) -> float:
        """Upper limit of the confidence interval of the objective."""
        return self.objective.high

    @property
    def apparent(self) -> float:
        """The objective on the rows that chose the threshold, which is too favourable."""
        return self.objective.apparent

    def to_frame(self) -> pd.DataFrame:
        """Return a table with a row for each candidate threshold, from highest to lowest.

        Returns
        -------
        DataFrame
            The columns are threshold, the six counts, the metrics of ``binary/`` that are computed
            from the counts, and cost if costs are given. The numbers are computed from the rows
            that chose the threshold. If you select a row because of its numbers, these numbers are
            too favourable.
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
        """Describe the threshold and its performance in a sentence."""
        aim, words = self._aim()
        if math.isinf(self.value):
            choice = f"predicting {quoted(self.positive)} for no row gives {aim}"
        else:
            choice = (
                f"{significant(self.value)} is the threshold of {aim} for {quoted(self.positive)}"
            )
        if not math.isfinite(self.objective.value):
            return f"{choice}; its value on other rows is not known. {self._apparent_numbers()}."
        worth = f"{words} {self.objective}"
        if self.bounded is not None:
            worth += f" and {_title(self.bounded.name)} is {self.bounded}"
        judges = (
            "on the evaluated rows" if self.separate else "on rows that were not used to choose it"
        )
        return f"{choice}: {worth} {judges}. {self._apparent_numbers()}."

    def _aim(self) -> tuple[str, str]:
        """Return the goal in words, and the words that precede the value of the objective."""
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
        """Describe the numbers on the rows that chose the threshold and how favourable they are."""
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
            return f"On the calibration set that was used to choose it, the result is {number}"
        return f"On the rows that were used to choose it, the result is {number}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain data; if the threshold is "infinity", no row is predicted positive."""
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
        """Draw metrics, and the cost if costs are given, against the threshold."""
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
    """Return True if rows are independent: they have neither sampling weights nor clusters."""
    return not evaluation.statistics.has_sampling_weights and evaluation.cluster_errors is None


def choose_threshold(
    evaluation: Evaluation,
    costs: Any,
    maximize: str | None,
    subject_to: str | None,
    calibration: Any,
) -> Threshold:
    """Choose and evaluate a threshold (see :meth:`cmtrack.Evaluation.threshold`)."""
    _check_rows(evaluation)
    scores = _scores_of(evaluation).scores
    rule, outcome_costs = _rule(evaluation, costs, maximize, subject_to)
    notes: list[str] = []
    choosing = scores
    if calibration is not None:
        choosing, notes = _calibration_scores(evaluation, calibration)
        if not scores.exact:
            choosing = choosing.to_grid()  # thresholds must be edges of the evaluated grid
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
                f"{held.folds_without} of {n_folds * REPEATS} folds are left out: on the remaining "
                f"folds, no threshold has {rule.bound.text}"
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
    """Raise ValueError, and name an alternative, if rows have sampling weights or clusters."""
    if has_independent_rows(evaluation):
        return
    if evaluation.statistics.has_sampling_weights:
        raise ValueError(
            "a threshold cannot be chosen on rows with sampling weights: choose it on rows "
            "without weights, and evaluate it on these rows with evaluate(..., "
            "threshold=chosen, costs=...)"
        )
    raise ValueError(
        "a threshold cannot be chosen on rows in clusters (groups=): choose it on one row of "
        "each cluster, and evaluate it on all rows with evaluate(..., threshold=chosen, "
        "costs=...)"
    )


def _scores_of(evaluation: Evaluation, name: str = "") -> ScoreTable:
    """Return the scores of both groups, or raise ValueError if they are missing.

    ``name``: the name of the rows in messages; empty for the evaluated rows.
    """
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
            f"{negatives:g} negative rows"
        )
    return table


def _rule(
    evaluation: Evaluation, costs: Any, maximize: str | None, subject_to: str | None
) -> tuple[Rule, OutcomeCosts | None]:
    """Return the rule that chooses the threshold, and the costs of the outcomes if given."""
    if costs is not None and maximize is not None:
        raise ValueError(f"pass either costs or maximize, got costs and maximize={maximize!r}")
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
    """Return the scores of the calibration set that chooses the threshold, and warnings."""
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
    """Return the message that explains that no threshold meets the bound."""
    if rule.bound is None:
        raise ValueError("only a bound can leave no threshold")
    bounded = np.where(candidates(counts), rule.bounded(six_counts(counts)), np.nan)
    text = f"no threshold has {rule.bound.text}: {rule.bound.metric}"
    if np.isnan(bounded).all():
        return f"{text} is undefined at all thresholds"
    if rule.bounds_from_below:
        place = int(np.nanargmax(bounded))
        most = "most"
    else:
        place = int(np.nanargmin(bounded))
        most = "least"
    # Six digits are shown so that 0.8999 does not appear as 0.9 next to the bound 0.9.
    reached = significant(bounded[place], 6)
    return f"{text} is at {most} {reached}, at the threshold {significant(thresholds[place])}"


def _cautions(rule: Rule, choosing: ScoreCounts) -> list[str]:
    """Return the warnings about the rule and about the rows that choose the threshold."""
    notes = []
    fewest = float(ScoreTable(Counted.unweighted(choosing)).sides.min())
    if fewest < _FEW:
        notes.append(
            f"the smaller group has {significant(fewest)} rows: with fewer than {_FEW} rows, a "
            "threshold depends on chance"
        )
    if not choosing.exact:
        notes.append("scores are counted on a grid: thresholds are the edges of its 1,600 cells")
    bound = rule.bound
    if bound is not None and isinstance(lookup(bound.metric).value, Fraction):
        side = "below" if rule.bounds_from_below else "above"
        margin = "higher" if rule.bounds_from_below else "lower"
        notes.append(
            f"the true {_title(bound.metric)} at such a threshold is {side} {bound.bound:g} "
            f"about half of the time: set a {margin} bound to make this less likely"
        )
    return notes


# -- evaluation on held-out rows -------------------------------------------------------------------


def _judge(
    name: str,
    held: HeldOut,
    chosen: FloatArray,
    level: float,
    costs: OutcomeCosts | None = None,
) -> Judged:
    """Return the cost or metric on held-out rows and on the rows that chose the threshold."""
    value = math.nan
    interval: Interval | None = None
    has_outcomes = held.mean.sum() > 0
    if name == COST:
        if costs is None:
            raise ValueError("a rule that minimizes the cost needs costs")
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
    """Return the title of a metric in a form that fits into a sentence."""
    return lookup(name).heading()
