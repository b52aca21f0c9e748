"""Names that were removed after version 0.2, and what to use instead.

In this version, using one of these names raises an error that states the replacement. The next
version will no longer raise these errors. Each key is written as users write the name:

- ``cmtrack.attribute_subsets`` or ``cmtrack.rows.Pair``: a name of a module;
- ``Comparison.deciding``: an attribute or a method of a class;
- ``compare(rope=)`` or ``Evaluation.at(calibration=)``: an option of a function or a method;
- ``Evaluation.at(scores)``: values that a method no longer accepts;
- ``compare(block_kind="datasets")`` or
  ``Evaluation.threshold(subject_to="METRIC.low >= number")``: a value of an option, and of the flag
  with that name;
- ``compare(rank_by={metric: weight})``: a kind of value that is no longer accepted;
- ``cmtrack rows --deciding``: a flag of a command;
- ``cmtrack[server]`` and other names that cannot raise an error: only the changelog lists them.

The changelog's table "Removed in 0.3" lists every key.

If an option stays and only one of its values was removed, its check raises :class:`RemovedFeature`.
The same error is raised for rule files and bundles that need such a value. ``STORED`` lists keys in
the data of a review that only a removed feature wrote. ``cmtrack verify`` exits with code 3 if it
finds such a value or key.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from enum import EnumType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

P = ParamSpec("P")
Result = TypeVar("Result")

_REDUCTS = (
    "cmtrack no longer searches for reducts; granule_table(...) still gives bounds and "
    "approximations"
)
_DECIDING = (
    "Comparison.missed(at_least=...) lists the rows that most runs get wrong, whose labels to "
    "check first; Comparison.rows(a, b) lists the rows that only one of two runs gets right"
)
_NOISE = (
    "cmtrack does not correct differences for wrong labels; Comparison.flips(a, b) gives the "
    "observed shares with intervals"
)
_DIFFICULTY = (
    "cmtrack does not model how difficult rows are; Missed.counts has the number of rows by "
    "the number of runs that get them wrong"
)
_BY_CLASS = (
    "Missed.counts has the numbers over all classes; count the column 'actual' of "
    "Missed.to_frame() for numbers by class"
)
_SUSPECT = (
    "--missed N lists the rows that at least N runs get wrong, starting with the rows that "
    "most runs get wrong"
)
_ONLY_ONE = "--broken and --fixed list the rows that only one of two runs gets right"
_ONE_FIT = "calibration/slope and calibration/intercept come from one fit and have intervals"
_TOGETHER = "Comparison.flips(a, b) has the shares of rows that only one of two runs gets right"
_CROSSING = (
    "compare(..., at=share) ranks the runs at a share of positives; Evaluation.at(share) has "
    "the metrics of one run"
)
_LIVE_PAGE = (
    "the review is an artifact of a run: `cmtrack review --log` or Comparison.log() makes it"
)
_TARGET = (
    "estimate_prevalence(scores, calibration=(y, labelled_scores), positive=...) estimates the "
    "shares from the scores of a target, and Evaluation.at(estimate) takes the estimate"
)
_SENSITIVITY = (
    "PrevalenceEstimate.missed_move and ClassPrevalenceEstimate.missed_move show how far an "
    "undetected shift may move the estimated shares"
)
_TARGET_FILE = (
    "estimate the shares in Python with estimate_prevalence(scores, calibration=..., "
    "positive=...) and pass the estimate to Evaluation.at, or state the shares with --at"
)
_LIMIT = (
    "set a bound on the metric itself, with a margin, such as 'binary/precision >= 0.93' for 0.9; "
    "Threshold.bounded "
    "has the metric's interval on rows that did not choose the threshold"
)
_ONE_BAND = (
    "CalibrationCurve.band() returns the band of the curve, inside which a calibrated score stays; "
    "calibration/error and calibration/slope have intervals"
)
_MISCALIBRATION = (
    "CalibrationCurve.ece() returns the calibration error and the value that a perfectly "
    "calibrated score reaches by chance; calibration/pvalue is the p-value of the calibration "
    "test"
)
_NO_BAND = "CalibrationCurve.no_band says why the curve has no band, and is empty otherwise"
_DATA_SETS = (
    "compare the runs of each data set separately, and pass scikit-posthocs a table of their"
    " values, with a row for each data set and a column for each model"
)
_ROPE = (
    "the interval of the difference shows how large it may be; equivalence= is for runs on the "
    "same rows"
)
_TWO_MODELS = (
    "compare(..., segments=) has the paired differences of runs by segment, and "
    "worst_segments(columns, first - second)"
    " finds segments where the difference of two models differs from the other rows"
)
_SHRINKAGE = (
    "order_of_segments orders by values, and their simultaneous intervals show how certain they "
    "are; combine_effects of statsmodels has the variance between segments"
)

_STACKED = (
    'density="auto" stacks this model with others, weighted by their cross-validated log score'
)
_OF_POSTERIORS = (
    'density="auto" takes any scores; em_shares(densities, weights) of cmtrack.prevalence '
    "estimates shares if you know the densities"
)
_OWN_SHARE = "count_low and count_high are the interval of the number of positives in the target"
_ADJUSTED = (
    'interval="adjusted" covers the true share equally often, and includes the error of the '
    "labelled scores"
)
MATRIX = "evaluate_families(indicator matrix)"
_MATRIX = (
    "pass lists of sets, such as MultiLabelBinarizer(classes=codes).fit([codes])"
    ".inverse_transform(matrix), or long frames"
)

WEIGHTS = "compare(rank_by={metric: weight})"
BOUND_OF_LIMIT = 'Evaluation.threshold(subject_to="METRIC.low >= number")'
_ONE_METRIC = (
    "rank by one metric, or by a cost (costs=, --costs), and put gates on the others (require=,"
    " --require); several names without weights make a Pareto front"
)
_FRONT = (
    "the check against a baseline uses one metric; put gates on several metrics (require=, "
    "--require)"
)

INSTEAD: dict[str, str] = {
    "cmtrack.attribute_subsets": _REDUCTS,
    "cmtrack.AttributeSubsets": _REDUCTS,
    "GranuleTable.attribute_subsets": _REDUCTS,
    "Comparison.crossing": _CROSSING,
    "cmtrack.comparison.crossing": _CROSSING,
    "cmtrack.comparison.Crossing": _CROSSING,
    "Comparison.deciding": _DECIDING,
    "Comparison.together": _TOGETHER,
    "Missed.expected": _DIFFICULTY,
    "Missed.excess": _DIFFICULTY,
    "Missed.by_class": _BY_CLASS,
    "cmtrack.segments.differing_segments": _TWO_MODELS,
    "cmtrack.segments.shrink": _SHRINKAGE,
    "cmtrack.segments.Shrinkage": _SHRINKAGE,
    MATRIX: _MATRIX,
    "cmtrack.rows.Deciding": _DECIDING,
    "cmtrack.rows.Corrected": _NOISE,
    "cmtrack.rows.corrected": _NOISE,
    "cmtrack.rows.transitions": _NOISE,
    "cmtrack.rows.Pair": _TOGETHER,
    "cmtrack.rows.expected_by_difficulty": _DIFFICULTY,
    "Evaluation.at(scores)": _TARGET,
    "Evaluation.at(calibration=)": _TARGET,
    BOUND_OF_LIMIT: _LIMIT,
    "CalibrationCurve.confidence_band": _ONE_BAND,
    "CalibrationCurve.no_confidence_band": _ONE_BAND,
    "CalibrationCurve.expected_miscalibration": _MISCALIBRATION,
    "CalibrationCurve.large_logit": _ONE_FIT,
    "CalibrationCurve.on_grid": "CalibrationCurve.drawn has at most 1,600 scores, by their means",
    "CalibrationCurve.has_band": _NO_BAND,
    "CalibrationCurve.no_draws": _NO_BAND,
    'reliability_figure(band="confidence")': _ONE_BAND,
    "plot_reliability(band_of=)": _ONE_BAND,
    "plot_reliability(around=)": _ONE_BAND,
    "Transported.sensitivity": _SENSITIVITY,
    "cmtrack at --target": _TARGET_FILE,
    "cmtrack at --y-prob": _TARGET_FILE,
    "cmtrack rows --deciding": _SUSPECT,
    "cmtrack rows --suspect": _SUSPECT,
    "cmtrack rows --together": _ONLY_ONE,
    "cmtrack[server]": _LIVE_PAGE,
    "cmtrack_integrations.server": _LIVE_PAGE,
    "mlflow.app cmtrack": _LIVE_PAGE,
    "mlflow.app cmtrack-auth": _LIVE_PAGE,
    'compare(block_kind="datasets")': _DATA_SETS,
    "compare(rope=)": _ROPE,
    WEIGHTS: _ONE_METRIC,
    'estimate_prevalence(density="isotonic")': _STACKED,
    'estimate_prevalence(density="kde_logit")': _STACKED,
    'estimate_prevalence(density="beta")': _STACKED,
    'estimate_prevalence(density="logistic")': _STACKED,
    'estimate_prevalence(density="temperature")': _STACKED,
    'estimate_prevalence(density="vector")': _STACKED,
    'estimate_prevalence(density="matrix")': _STACKED,
    'estimate_prevalence(density="raw")': _OF_POSTERIORS,
    "estimate_prevalence(density=function)": _OF_POSTERIORS,
    'estimate_prevalence(interval="realised")': _OWN_SHARE,
    'estimate_prevalence(interval="wald")': _ADJUSTED,
    'estimate_prevalence(interval="score")': _ADJUSTED,
    'estimate_prevalence(interval="bootstrap")': _ADJUSTED,
    "cmtrack.plots.plot_prevalence_likelihood": (
        "plot_prevalence draws the interval; PrevalenceEstimate.likelihood() has the curves"
    ),
    "Outcome.ON_FRONT": _FRONT,
    "Outcome.NOT_DOMINATED": _FRONT,
    "Outcome.DOMINATED": _FRONT,
    "Ranked.average_rank": _DATA_SETS,
    "Ranked.worse": _ROPE,
    "Ranked.equivalent": _ROPE,
    "Ranked.better": _ROPE,
}

STORED: frozenset[str] = frozenset(
    (
        "repeated.blocks.rope",
        "repeated.models.worse",
        "repeated.models.equivalent",
        "repeated.models.better",
        "repeated.models.average_rank",
    )
)
"""Keys in ``review.json`` that only a removed feature wrote; positions in lists are omitted."""

FAREWELL = "it was made by a feature that cmtrack 0.3 no longer has; use cmtrack 0.2"
"""The text that ``cmtrack verify`` prints for a bundle that needs a removed feature."""


class RemovedFeature(ValueError):
    """Error for a removed option or value of an option; its text says what to use instead."""


def reason(name: str) -> str | None:
    """Return the sentence about a removed name, or None for any other name."""
    instead = INSTEAD.get(name)
    if instead is None:
        return None
    return f"cmtrack 0.3 no longer has {name}: {instead}"


def refuse_removed(method: Callable[P, Result]) -> Callable[P, Result]:
    """Decorate a method so that removed options raise an error that states the replacement."""

    @functools.wraps(method)
    def checked(*arguments: P.args, **options: P.kwargs) -> Result:
        for name in options:
            sentence = reason(f"{method.__qualname__}({name}=)")
            if sentence is not None:
                raise TypeError(sentence)
        return method(*arguments, **options)

    return checked


class RemovedMembers(EnumType):
    """Type for enums whose removed members raise an error that states the replacement."""

    if not TYPE_CHECKING:

        def __getattr__(cls, name: str) -> Any:
            sentence = reason(f"{cls.__name__}.{name}")
            raise AttributeError(
                sentence or f"type object {cls.__name__!r} has no attribute {name!r}", name=name
            )


class RemovedAttributes:
    """Base class whose removed attributes raise an AttributeError with the replacement."""

    if not TYPE_CHECKING:  # a type checker would otherwise accept every attribute

        def __getattr__(self, name: str) -> Any:
            for kind in type(self).__mro__:
                sentence = reason(f"{kind.__name__}.{name}")
                if sentence is not None:
                    raise AttributeError(sentence, name=name, obj=self)
            # Python also calls this method if a property raises AttributeError. This line raises
            # that error again.
            return object.__getattribute__(self, name)
