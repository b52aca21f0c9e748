"""Options of an evaluation, as a single record that is part of the result.

``evaluate``, ``evaluate_table``, ``Accumulator``, ``log_evaluation``, the hooks and the command
line accept the options in this module. An :class:`~cmtrack.Evaluation` contains the whole record,
stores it in files, and checks it when evaluations are merged or compared.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

from cmtrack._lazy import cached_property
from cmtrack.options import Question, entry, late, takes

if TYPE_CHECKING:
    from cmtrack.grouping import ComposedStep, Costs, Grouping, Label
    from cmtrack.metrics.catalog import Catalog
    from cmtrack.metrics.metric import Metric


def _grouping(grouping: Any) -> Any:
    from cmtrack.grouping import Grouping

    if grouping is not None and not isinstance(grouping, Grouping):
        text = f"grouping must be a Grouping, got {type(grouping).__name__}"
        if isinstance(grouping, Mapping):
            text += ": make one with cmtrack.Grouping(...)"
        raise TypeError(text)
    return grouping


_reference = late("cmtrack.statistics.inputs:as_shares", "reference", optional=True)
_weights_are = late("cmtrack.statistics.inputs:check_weights_are")


def _threshold(threshold: Any) -> Any:
    from cmtrack.evaluation.threshold import Threshold
    from cmtrack.statistics.inputs import check_threshold

    if isinstance(threshold, Threshold):
        threshold = threshold.value
    return check_threshold(threshold)


def _ordered(ordered: Any) -> bool:
    if not isinstance(ordered, bool):
        raise TypeError(f"ordered must be True or False, got {ordered!r:.80}")
    return ordered


def _write_scores(scores: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Convert scores to a form that JSON can represent; keys of JSON objects are texts."""
    if scores is None:
        return None
    return {name: [[label, value] for label, value in of.items()] for name, of in scores.items()}


def _read_scores(data: Any) -> Any:
    from cmtrack.metrics.scores import check_scores

    return check_scores({name: dict(pairs) for name, pairs in data.items()})


def _write_threshold(threshold: float | None) -> float | str | None:
    """Convert a threshold to a form that JSON can represent."""
    return "infinity" if threshold == math.inf else threshold


def _read_threshold(data: Any) -> Any:
    return _threshold(math.inf if data == "infinity" else data)


def _merged_weights(ours: str | None, theirs: str | None) -> str | None:
    from cmtrack.statistics.inputs import same_kind_of_weights

    return same_kind_of_weights(ours, theirs, "evaluations")


def _merged_metrics(ours: Sequence[Metric], theirs: Sequence[Metric]) -> tuple[Metric, ...]:
    """Merge the metrics of two evaluations; use the functions that either one provides."""
    first = {metric.name: metric for metric in ours}
    second = {metric.name: metric for metric in theirs}
    if set(first) != set(second):
        raise ValueError(
            f"evaluations must have the same extra_metrics to be merged, got {list(first)} and "
            f"{list(second)}"
        )
    return tuple(
        metric if metric.value is not None else second[name] for name, metric in first.items()
    )


# Conversion to plain data and from plain data.


def _plain(value: Any) -> Any:
    """Convert a grouping or costs into plain data, and a tuple into a list."""
    if value is None:
        return None
    return value.to_dict() if hasattr(value, "to_dict") else list(value)


def _names_in(data: Any, option: str = "headline") -> tuple[str, ...]:
    """Read names of sections or metrics; names defined only by later versions are accepted."""
    if not isinstance(data, list) or not all(isinstance(name, str) for name in data):
        raise ValueError(f"{option} must be a list of names, got {data!r:.80}")
    return tuple(data)


def _sections_in(data: Any) -> tuple[str, ...]:
    if not data:
        raise ValueError(f"sections must be a list of names, got {data!r:.80}")
    return _names_in(data, "sections")


@dataclass(frozen=True)
class Spec(Question):
    """The options of an evaluation of rows.

    Attributes
    ----------
    positive, grouping, normalize, weights_are, sections, reference, costs, threshold,
    confidence_level, extra_metrics, headline, ordered, scores
        The options of :func:`cmtrack.evaluate`. The record in a result contains the values that
        were used: ``positive`` and ``weights_are`` are set, and ``reference`` is in the order of
        the classes.
    none : label or None
        The label that means "no span"; None unless spans are evaluated.
    """

    positive: Label | None = entry(
        "label, optional",
        "The positive class (of two classes), or the positive group of a two-group step. By "
        "default, the positive group that the grouping names, or else the last class or group.",
    )
    grouping: Grouping | None = entry(
        "Grouping, optional",
        "Groups of classes, in one step or a chain of steps.",
        check=_grouping,
        write=_plain,
        read=late("cmtrack.grouping:Grouping.from_dict"),
    )
    normalize: bool | str = entry(
        '"warn", True or False, default "warn"',
        "How to treat rows of rounded probabilities whose sums are between 0.98 and 1.02. "
        '"warn" scales them to sum to 1 and warns, True scales them without a warning, and False '
        "raises a ValueError. Other sums always raise a ValueError.",
        default="warn",
        check=late("cmtrack.statistics.probabilities:check_normalize"),
        flag="--normalize",
        help=(
            "What to do with rounded probabilities if a row sums to a number between 0.98 and "
            "1.02: scale them with a warning, scale them without a warning, or exit with an "
            "error."
        ),
        choices={"warn": "warn", "yes": True, "no": False},
        compare=False,
        write=None,
    )
    weights_are: str | None = entry(
        '"frequency" or "sampling", optional',
        'The meaning of ``sample_weight``. "frequency": a weight is a number of identical rows '
        'that were all observed. "sampling": a weight is the part of the population that a row '
        "represents; standard errors and intervals are robust (sandwich) and do not depend on "
        "the scale of the weights. By default, integers are frequencies and floats are "
        "sampling weights, even if they are whole numbers. :attr:`Evaluation.weights_are` has "
        "the kind that was used.",
        check=_weights_are,
        flag="--weights-are",
        help=(
            "Meaning of --weight: frequencies (numbers of identical rows) or sampling weights. "
            "With auto, integers are read as frequencies and floats as sampling weights."
        ),
        choices={"auto": None, "frequency": "frequency", "sampling": "sampling"},
        read=_weights_are,
        merge=_merged_weights,
    )
    sections: tuple[str, ...] | None = entry(
        "list of str, optional",
        'The sections of metrics to compute, such as ``["multiclass", "class"]``. By default, all '
        "that apply: multiclass, spans, class, ordinal (if the classes are ordered), reduced, "
        "binary, cost (if costs are given), probability, calibration, confidence, spcc, prevalence "
        "and rough. All other sections are missing from ``Evaluation.metrics``, figures and "
        "reports. "
        ":meth:`Evaluation.with_sections` computes them later.",
        check=late("cmtrack.evaluation.compute:check_sections"),
        flag="--section",
        help=(
            "Section of metrics to compute, such as multiclass or binary; repeatable. By "
            "default all sections that apply."
        ),
        several=True,
        metavar="NAME",
        write=_plain,
        read=_sections_in,
    )
    reference: Mapping[Label, float] | tuple[float, ...] | None = entry(
        "mapping of label to share, or sequence of length K, optional",
        "The shares of the classes that ``probability/log_skill`` and ``probability/brier_skill`` "
        "are measured against, such as the shares of the training set. By default, the shares of "
        "the evaluated rows.",
        check=_reference,
        write=_plain,
        read=_reference,
    )
    costs: Costs | None = entry(
        "Costs, mapping of (actual, predicted) to float, or path, optional",
        "Costs of decisions between classes or groups, for the section ``cost/``. "
        ":meth:`Evaluation.price` adds them later, without the data. A path names a file that "
        ":meth:`Costs.from_file` reads.",
        check=late("cmtrack.grouping:as_costs", optional=True),
        flag="--costs",
        help="YAML or JSON file with the costs of decisions between classes or groups.",
        metavar="FILE",
        write=_plain,
        read=late("cmtrack.grouping:Costs.from_dict"),
    )
    threshold: float | None = entry(
        "float or Threshold, optional",
        "Threshold that makes the predictions from ``y_prob``, so do not pass ``y_pred``. The "
        "positive class or group is predicted if its probability is at least the threshold. The "
        "predicted class is the most probable class of the predicted group. With infinity, the "
        "positive group is never predicted. With ``y_score`` of two classes, the threshold is a "
        "decision value. You can also pass the result of :meth:`Evaluation.threshold`. By default, "
        "the most probable of all classes is predicted.",
        check=_threshold,
        flag="--threshold",
        help=(
            "Predict the positive class or group if its probability is at least this "
            "threshold. You cannot use it with --y-pred."
        ),
        of_flag=float,
        write=_write_threshold,
        read=_read_threshold,
    )
    confidence_level: float = entry(
        "float, default 0.95",
        "Confidence level of the intervals, between 0 and 1.",
        default=0.95,
        check=late("cmtrack.metrics.intervals:check_level"),
        flag="--confidence-level",
        help="Confidence level of the intervals.",
        of_flag=float,
        read=late("cmtrack.archive:read_level"),
    )
    extra_metrics: tuple[Metric, ...] = entry(
        "sequence of Metric, optional",
        "Custom metrics. Like built-in metrics, they have values, standard errors and intervals, "
        "and work in comparisons, rankings and gates.",
        default=(),
        check=late("cmtrack.metrics.own:own_metrics"),
        compare=False,
        write=None,
        merge=_merged_metrics,
    )
    headline: tuple[str, ...] = entry(
        "sequence of str, optional",
        "Full names of metrics to show first and log to a run, in addition to the usual ones, such "
        'as ``["binary/npv", "class/7/recall"]``. If the evaluation does not have a metric, you '
        "get a warning.",
        default=(),
        check=late("cmtrack.evaluation.catalog:check_headline"),
        flag="--headline",
        help="Metric to show first and log, in addition to the usual ones; repeatable.",
        several=True,
        metavar="NAME",
        write=_plain,
        read=_names_in,
        merge=lambda ours, theirs: tuple(dict.fromkeys((*ours, *theirs))),
    )
    ordered: bool = entry(
        "bool, default False",
        "Whether the classes are ordered, such as ratings from 1 to 5. The section ``ordinal/`` "
        "then measures how far predictions are from the actual classes. The order is the order of "
        "``labels``. Classes that are numbers are sorted if ``labels`` is not given. Distances are "
        "counted in classes, so name classes that may be absent in ``labels``.",
        default=False,
        check=_ordered,
        flag="--ordered",
        help="Whether the classes are ordered, such as ratings, for the section ordinal/.",
        choices={"no": False, "yes": True},
        read=_ordered,
    )
    scores: Mapping[str, Any] | None = entry(
        "mapping of name to values of classes, optional",
        "Scores of shares, such as ``{'nps': {'promoter': 1, 'passive': 0, 'detractor': -1}}``. "
        "The values belong to all classes, or to all groups of a step. A score may also be one of "
        '"nps" (net promoter score of classes from 0 to 10) and "mean" (of classes that are '
        "numbers), as in ``scores=['nps']``. Each score adds the metrics ``score/<name>`` and "
        "``score/<name>_bias``; see :meth:`Evaluation.score`.",
        check=late("cmtrack.metrics.scores:check_scores"),
        flag="--score",
        help=(
            "Score of shares: nps, mean, or a YAML or JSON file with the values of the classes by "
            "the name of each score; repeatable."
        ),
        several=True,
        metavar="NAME|FILE",
        write=_write_scores,
        read=_read_scores,
    )
    none: Label | None = entry()

    @cached_property
    def catalog(self) -> Catalog:
        """The built-in metrics, the ``extra_metrics``, and the metrics of the ``scores``."""
        from cmtrack.evaluation.catalog import OF_CLASSES
        from cmtrack.metrics.catalog import Catalog
        from cmtrack.metrics.scores import logged_metrics

        return Catalog(OF_CLASSES, (*self.extra_metrics, *logged_metrics(self.scores)))

    def settled(
        self, labels: tuple[Label, ...], step: ComposedStep | None, weights_are: str | None
    ) -> Spec:
        """Return the record that was used, in which the positive class and weight kind are set."""
        grouping = self.grouping
        has_groups = grouping is not None and step is not None and step.labels != labels
        if grouping is not None and has_groups and self.positive is not None:
            grouping = grouping.with_positive(self.positive)
        positive = None if step is None or step.positive is None else step.labels[step.positive]
        settled = dataclasses.replace(
            self, grouping=grouping, positive=positive, weights_are=weights_are
        )
        return settled.with_reference_of(labels).with_scores_of(labels)

    def with_reference_of(self, labels: tuple[Label, ...]) -> Spec:
        """Return the record with the shares of ``reference`` sorted in the order of the classes."""
        from cmtrack.statistics.inputs import shares_of

        return dataclasses.replace(self, reference=shares_of(self.reference, labels, "reference"))

    def with_scores_of(self, labels: tuple[Label, ...]) -> Spec:
        """Return the record in which each score has the value of every class, in their order."""
        from cmtrack.metrics.scores import values_of_classes

        if self.scores is None:
            return self
        scores = {
            name: values_of_classes(values, labels, self.grouping)
            for name, values in self.scores.items()
        }
        own = {metric.name for metric in self.extra_metrics}
        for name in scores:
            if f"score/{name}" in own or f"score/{name}_bias" in own:
                raise ValueError(
                    f"extra_metrics and scores must have different names, got {name!r}"
                )
        return dataclasses.replace(self, scores=scores)


class Options(TypedDict, total=False):
    """Types of the options of an evaluation of rows; :class:`Spec` describes the options."""

    positive: Label | None
    grouping: Grouping | None
    normalize: bool | str
    weights_are: str | None
    sections: Sequence[str] | None
    reference: Mapping[Label, float] | Sequence[float] | None
    costs: Costs | None
    threshold: float | None
    confidence_level: float
    extra_metrics: Sequence[Metric]
    headline: Sequence[str]
    ordered: bool
    scores: Mapping[str, Any] | Sequence[str] | None


takes_options = takes(Spec, Options)


def unless_decided(y_pred: Any, options: Mapping[str, Any]) -> Any:
    """Return the predicted labels; None if the option ``threshold`` makes the predictions."""
    return y_pred if options.get("threshold") is None else None
