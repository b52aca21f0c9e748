"""Warnings about undefined, approximate or easily misread numbers of an evaluation.

Each function in ``_WARNINGS`` yields the warnings about one section of metrics. The module
``input_remarks`` warns about the input itself. A stored evaluation repeats some warnings about its
input; ``_warn_of_input`` yields them.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cmtrack.digits import fixed, short_percent, significant
from cmtrack.evaluation.input_remarks import (
    padding,
    saturated_classes,
    saturated_scores,
    scaled_rows_warning,
    swapped_classes,
)
from cmtrack.grouping import Label
from cmtrack.metrics.calibration import ReliabilityTable
from cmtrack.metrics.cells import Table
from cmtrack.metrics.intervals import FEW_ROWS
from cmtrack.metrics.moments import ScoreSamples
from cmtrack.metrics.multiclass import passed_over
from cmtrack.metrics.ordinal import FEWEST_FOR_RANKED
from cmtrack.metrics.precision_recall import largest_error
from cmtrack.metrics.results import Results
from cmtrack.metrics.roc import ScoreTable
from cmtrack.metrics.spcc import ClassScores, Fisher, is_constant
from cmtrack.metrics.views import EvaluationViews
from cmtrack.names import join_names, quoted
from cmtrack.prevalence.results import PrevalenceEstimate
from cmtrack.statistics.collected import Statistics
from cmtrack.statistics.moments import MAX_CLASSES

_DECISION_VALUES = (
    "y_score: decision values rank rows but are not probabilities, so only ranking metrics are "
    "computed: no log loss, calibration, sPCC or calibrated prevalence"
)
_FEW_WRONG = 20
"""Number of wrong predictions below which the intervals of losses are approximate."""
_FEW_CLUSTERS = 20
"""Number of clusters below which all intervals are approximate."""
_FEW_EFFECTIVE_ROWS = 50
"""Effective number of rows below which standard errors depend on a few rows with large weights.

The limit of the effective number of rows applies to rows with sampling weights. If a class has 41
effective rows, 95% intervals contain the true value in only 90% of cases.
"""


@dataclass(frozen=True, eq=False)
class Warned:
    """The numbers of an evaluation that the warnings check."""

    views: EvaluationViews
    results: Results
    prevalence: PrevalenceEstimate | None

    @property
    def statistics(self) -> Statistics:
        """The statistics of the evaluation."""
        return self.views.statistics

    @property
    def labels(self) -> tuple[Label, ...]:
        """The classes in order."""
        return self.statistics.matrix.labels

    @property
    def rare_below(self) -> int:
        """Number of rows below which the intervals of a class or group are approximate."""
        return _FEW_EFFECTIVE_ROWS if self.statistics.has_sampling_weights else FEW_ROWS

    @property
    def words_of_few_rows(self) -> str:
        """Words that describe a class or group that has not enough rows."""
        if self.statistics.has_sampling_weights:
            return (
                f"fewer than {self.rare_below} effective rows (Kish's effective sample size, "
                "computed from the weights)"
            )
        return f"fewer than {self.rare_below} rows"

    @property
    def class_sizes(self) -> list[tuple[Label, float]]:
        """The classes that averages include, and the effective number of rows of each class."""
        sizes = self.statistics.tables.map(lambda table: table.sum(axis=1)).effective_size()
        classes = zip(self.labels, sizes, self.views.table.kept, strict=True)
        return [(label, size) for label, size, is_averaged in classes if is_averaged]

    def rare(self, sizes: Any) -> list[str]:
        """Return the labels with few rows (at least one row), and their effective row counts."""
        return [
            f"{quoted(label)} (n = {significant(size, 2)})"
            for label, size in sizes
            if 0 < size < self.rare_below
        ]


def warnings_of(warned: Warned) -> list[tuple[str, str]]:
    """Return all warnings about the numbers of an evaluation, each with its section."""
    return [(section, warning) for warn, section in _WARNINGS.items() for warning in warn(warned)]


def _warn_of_input(warned: Warned) -> Iterator[str]:
    statistics = warned.statistics
    if statistics.scaled_rows:
        yield scaled_rows_warning(statistics.scaled_rows)
    if statistics.ranking_only:
        yield _DECISION_VALUES
    swapped = swapped_classes(statistics)
    if swapped and all(warned.views.table.kept):
        yield swapped
    padded = padding(statistics.matrix)
    if padded:
        yield padded


def _warn_of_unpredicted_classes(warned: Warned) -> Iterator[str]:
    views = warned.views
    averages = "multiclass/precision_macro, precision_weighted and f1_of_macro_means"
    counted = "precision_macro_zero and precision_weighted_zero count"
    yield from _unpredicted(warned.labels, views.table, averages, counted)
    for name, step in views.composed.items():
        averages = f"of the step {quoted(step.name)}, precision_macro and f1_of_macro_means"
        table = views.reduced[name][0]
        yield from _unpredicted(step.labels, table, averages, "precision_macro_zero counts")


def _unpredicted(
    labels: Sequence[Label], table: Table, averages: str, counted: str
) -> Iterator[str]:
    names = [quoted(labels[k]) for k in passed_over("precision_macro", table)]
    text = join_names(names, 8)
    if len(names) == 1:
        yield (
            f"{text} is never predicted, so it has no precision: {averages} leave it out; "
            f"{counted} it as 0"
        )
    elif names:
        yield (
            f"{text} are never predicted, so they have no precision: {averages} leave them out; "
            f"{counted} them as 0"
        )


def _warn_of_rare_classes(warned: Warned) -> Iterator[str]:
    absent = [quoted(label) for label, size in warned.class_sizes if size == 0]
    names = join_names(absent, 8)
    if len(absent) == 1:
        yield f"{names} has no rows: ratios of this class are undefined, and averages leave it out"
    elif absent:
        yield (
            f"{names} have no rows: ratios of these classes are undefined, and averages leave "
            "them out"
        )
    yield from _few_rows(
        "class", "classes", warned.rare(warned.class_sizes), warned.words_of_few_rows
    )
    for matrix in warned.views.matrices:
        sizes = matrix.map(lambda reduced: reduced.actual).effective_size()
        rare = warned.rare(zip(matrix.sums.labels, sizes, strict=True))
        step = f"in the step {quoted(matrix.sums.name)}"
        yield from _few_rows(f"{step}, group", f"{step}, groups", rare, warned.words_of_few_rows)


def _few_rows(singular: str, plural: str, names: Sequence[str], few_rows: str) -> Iterator[str]:
    if len(names) == 1:
        yield f"{singular} {names[0]} has {few_rows}: its intervals are approximate"
    elif names:
        yield f"{plural} {join_names(names, 8)} have {few_rows}: their intervals are approximate"


def _warn_of_correlations(warned: Warned) -> Iterator[str]:
    if "spcc/ovr_fisher" not in warned.results.metrics:
        return
    if warned.statistics.cross is None:
        is_segment = len(warned.labels) <= MAX_CLASSES
        where = "not counted for segments" if is_segment else f"counted up to {MAX_CLASSES} classes"
        yield (
            "spcc/ovr_fisher and spcc/ovo_fisher have no interval: the joint moments that their "
            f"standard errors need are {where}"
        )
    scores = warned.views.seen(ClassScores, "class scores")
    if scores is None:
        return
    yield from _constant_scores(scores, warned.labels)
    for kind in ("ovr", "ovo"):
        mean = Fisher(kind)
        left_out = mean.left_out(scores)
        if left_out:
            yield (
                f"spcc/{kind}_fisher and spcc/{kind}_min leave out {left_out} correlations "
                "between two classes that together have fewer than 4 rows"
            )
        clipped = mean.clipped(scores)
        if clipped:
            yield (
                f"{clipped} of the correlations in spcc/{kind}_fisher are exactly 1 or -1: they "
                "are clipped, and the interval does not allow for their error"
            )


def _constant_scores(scores: ClassScores, labels: Sequence[Label]) -> Iterator[str]:
    """Yield warnings about scores that are equal for all rows, or for all rows of two classes."""
    constant = np.flatnonzero(Fisher("ovr").constant(scores)).tolist()
    names = join_names([quoted(labels[k]) for k in constant], 8)
    no_interval = "sPCC counts as 0, and spcc/ovr_fisher and spcc/ovr_min have no interval"
    if len(constant) == 1:
        yield f"the score of {names} never varies: its {no_interval}"
    elif constant:
        yield f"the scores of {names} never vary: their {no_interval}"
    pairs = Fisher("ovo")
    own, other = pairs.pair(np.flatnonzero(pairs.constant(scores)), scores)
    if len(own) == 0:
        return
    first = quoted(labels[int(own[0])])
    second = quoted(labels[int(other[0])])
    example = f"the score of {first} over the rows of {first} and {second}"
    no_interval = "sPCC counts as 0, and spcc/ovo_fisher and spcc/ovo_min have no interval"
    if len(own) == 1:
        yield f"1 one-vs-one score never varies ({example}): its {no_interval}"
    else:
        yield f"{len(own)} one-vs-one scores never vary ({example}): their {no_interval}"


def _warn_of_positive_scores(warned: Warned) -> Iterator[str]:
    results = warned.results
    if "spcc/binary" in results.metrics and "spcc/binary" not in results.undefined:
        samples = warned.views.seen(ScoreSamples, "moments")
        if samples is not None and is_constant(samples.argument()):
            yield (
                "the score of the positive group never varies: spcc/binary is 0 and has no interval"
            )
    if "spcc/d_b" in results.one_sided:
        low, high = results.one_sided["spcc/d_b"]
        if low > 0:
            yield (
                f"spcc/d_b is at least {low:.2f} and has no upper limit: the scores separate the "
                "two groups perfectly"
            )
        else:
            limit = f"at most {fixed(high, 2)} and " if math.isfinite(high) else ""
            yield (
                f"spcc/d_b is {limit}not significantly above 0: it has no interval, because "
                "the estimate is biased upward near 0"
            )


def _warn_of_curves(warned: Warned) -> Iterator[str]:
    """Yield warnings about curves whose scores have many ties or are counted on a grid."""
    results = warned.results
    scores = warned.views.seen(ScoreTable)
    if scores is not None and "binary/roc_auc" in results.metrics:
        bound = scores.area_error_bound
        if bound > 0:
            yield (
                f"scores are counted on a grid: the ROC AUC is within {bound:.1e} of the exact "
                "value"
            )
    if scores is not None:
        tied = saturated_scores(scores.scores)
        if tied:
            yield tied
    class_scores = warned.statistics.class_scores
    if class_scores is not None:
        tied = saturated_classes(class_scores, warned.labels)
        if tied:
            yield tied
    if scores is not None and "binary/average_precision" in results.metrics:
        bound = largest_error(scores)
        if bound > 0:
            yield (
                f"scores are counted on a grid: the average precision is within {bound:.1e} of the "
                "exact value"
            )


def _warn_of_probabilities(warned: Warned) -> Iterator[str]:
    results = warned.results
    reliability = warned.views.seen(ReliabilityTable)
    if reliability is not None and "calibration/error" in results.metrics:
        if not reliability.has_means:
            yield (
                "scores are counted on a grid: the calibration/ metrics use the centre of each "
                "score's cell"
            )
        share = reliability.without_logit
        if share > 0 and "calibration/slope" not in results.undefined:
            yield (
                f"{short_percent(share)} of the rows have a score of exactly 0 or 1, which has no "
                "logit: calibration/slope and calibration/intercept leave them out"
            )
    if "probability/log_loss" in results.undefined:
        yield f"the log loss is {results.undefined['probability/log_loss']}"


_FEW_ERRORS = {
    "probability/log_loss": ("log loss",),
    "probability/brier": ("Brier score",),
    "probability/spherical": ("spherical score",),
    "/brier_skill": ("skills",),
    "average_precision": ("average precision",),
    "spcc/": ("sPCC",),
    "spcc/d_b": ("d_b",),
    "calibration/": ("calibration error", "calibration slope"),
}
"""Metrics that depend on a few wrong predictions, as a part of each name and a description."""
_FEW_WEIGHTED_ERRORS = {
    "/accuracy": ("accuracy",),
    "/recall": ("recall",),
    "/specificity": ("specificity",),
    "/balanced_accuracy": ("balanced accuracy",),
}
"""Metrics that also depend on a few wrong predictions if rows have sampling weights.

The few wrongly predicted rows may have different weights than all other rows.
"""


def _warn_of_few_errors(warned: Warned) -> Iterator[str]:
    counts = warned.statistics.tables
    errors = counts.map(lambda table: table.sum() - table.diagonal().sum())
    n_errors = float(errors.effective_size())
    if n_errors >= _FEW_WRONG:
        return
    decided = _FEW_ERRORS
    if counts.fractional:
        decided = {**_FEW_WEIGHTED_ERRORS, **_FEW_ERRORS}
    words: list[str] = []
    for part, words_of_part in decided.items():
        if _has_part(warned.results.intervals, part, decided):
            words.extend(words_of_part)
    if not words:
        return
    if n_errors == 0:
        few = "No errors"
    elif counts.fractional:
        few = f"Only {significant(n_errors, 2)} effective rows are errors"
    elif n_errors == 1:
        few = "Only 1 error"
    else:
        few = f"Only {n_errors:.0f} errors"
    yield f"{few}: the intervals of {join_names(words, len(words))} are approximate"


def _has_part(names: Collection[str], part: str, parts: Collection[str]) -> bool:
    """Return True if a name contains ``part`` but not a longer part that starts with ``part``."""
    longer = [other for other in parts if other != part and other.startswith(part)]
    return any(part in name and not any(other in name for other in longer) for name in names)


def _warn_of_ranked_scores(warned: Warned) -> Iterator[str]:
    if "ordinal/ranked_probability_score" not in warned.results.intervals:
        return
    n_rows = float(warned.statistics.tables.map(lambda table: table.sum()).effective_size())
    if n_rows < FEWEST_FOR_RANKED:
        yield (
            f"the interval of the ranked probability score is too narrow: {significant(n_rows, 2)} "
            f"rows, fewer than {FEWEST_FOR_RANKED}"
        )


def _warn_of_clusters(warned: Warned) -> Iterator[str]:
    statistics = warned.statistics
    n_clusters = warned.results.clusters.n
    if n_clusters is None:
        return
    if n_clusters < _FEW_CLUSTERS:
        yield (
            f"the rows belong to {n_clusters} groups, fewer than {_FEW_CLUSTERS}: all intervals "
            "are approximate"
        )
    is_of_evaluated_rows = statistics.labelled is not None and statistics.target is None
    if warned.prevalence is not None and is_of_evaluated_rows:
        yield (
            "prevalence/calibrated ignores groups=: its interval assumes independent rows, and is "
            "too narrow if the rows of a group are similar"
        )


def _warn_of_prevalence(warned: Warned) -> Iterator[str]:
    estimate = warned.prevalence
    if estimate is None:
        return
    reason = estimate.undefined["value"] if math.isnan(estimate.value) else None
    if reason is not None:
        yield f"no calibrated prevalence: {reason}"
    for warning in estimate.warnings:
        if warning != reason:
            yield warning


_WARNINGS = {
    _warn_of_input: "",
    _warn_of_unpredicted_classes: "class",
    _warn_of_rare_classes: "class",
    _warn_of_correlations: "spcc",
    _warn_of_positive_scores: "spcc",
    _warn_of_curves: "binary",
    _warn_of_probabilities: "probability",
    _warn_of_few_errors: "probability",
    _warn_of_ranked_scores: "ordinal",
    _warn_of_clusters: "",
    _warn_of_prevalence: "prevalence",
}
"""The functions that yield warnings, each with the section of metrics that it is about."""
