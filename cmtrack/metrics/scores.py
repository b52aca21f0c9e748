"""Scores of shares, such as the net promoter score, which give each class a value.

The actual score of an evaluation is the mean value of the actual classes, and the predicted score
is the mean value of the predicted classes. The bias is the predicted minus the actual score. All
three are means over rows, so their standard errors follow from the values of the rows.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cmtrack.digits import significant_with_interval
from cmtrack.grouping import Grouping, Label
from cmtrack.grouping.step import read_file, stored_label
from cmtrack.metrics.intervals import Interval
from cmtrack.metrics.metric import Metric
from cmtrack.metrics.names import near
from cmtrack.names import quoted
from cmtrack.statistics.inputs import FloatArray, listed

Values = Mapping[Label, float]

PRESETS = ("nps", "mean")
"""Scores with a name: the net promoter score, and the mean of classes that are numbers."""
_PROMOTERS = {"promoter": 1.0, "passive": 0.0, "detractor": -1.0}
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,70}")
_BIAS = "_bias"


@dataclass(frozen=True)
class ScoreMean:
    """The mean value of the actual classes, of the predicted classes, or their difference.

    ``values``: the value of each class, in the order of the classes.
    ``of_actual``, ``of_predicted``: factors of the two means.
    """

    values: Values
    of_actual: float
    of_predicted: float

    def __call__(self, counts: Any) -> Any:
        return (self.influence(counts) * counts).sum() / counts.sum()

    def influence(self, counts: Any) -> FloatArray:
        """Return the value of a row in each cell, shape (K, K)."""
        values = np.array(list(self.values.values()), dtype=np.float64)
        return self.of_actual * values[:, None] + self.of_predicted * values


def score_metrics(name: str, values: Values) -> dict[str, Metric]:
    """Return the metrics of a score by what they measure: "actual", "predicted" and "bias"."""
    lowest = min(values.values())
    highest = max(values.values())
    span = highest - lowest

    def declare(suffix: str, function: ScoreMean, **words: Any) -> Metric:
        return Metric(f"score/{name}{suffix}", function, influence=function.influence, **words)

    return {
        "actual": declare("_actual", ScoreMean(values, 1, 0), better="", low=lowest, high=highest),
        "predicted": declare(
            "",
            ScoreMean(values, 0, 1),
            better="",
            low=lowest,
            high=highest,
            title=f"score {quoted(name)} of the predictions",
            brief=name,
            formula="mean over rows of the predicted class's value",
        ),
        "bias": declare(
            _BIAS,
            ScoreMean(values, -1, 1),
            better="nearest zero",
            low=-span,
            high=span,
            title=f"bias of the score {quoted(name)}",
            brief=f"{name} bias",
            formula="mean over rows of the predicted class's value − the actual class's value",
        ),
    }


def logged_metrics(scores: Mapping[str, Values] | None) -> tuple[Metric, ...]:
    """Return the metrics ``score/<name>`` and ``score/<name>_bias`` of several scores."""
    metrics = []
    for name, values in (scores or {}).items():
        declared = score_metrics(name, values)
        metrics += [declared["predicted"], declared["bias"]]
    return tuple(metrics)


# -- the values of the classes ---------------------------------------------------------------------


def check_scores(scores: Any) -> dict[str, Any] | None:
    """Check the option ``scores``, and return the values or the preset of each score by name.

    A text is a preset, or the path of a YAML or JSON file with scores by name.
    """
    if scores is None:
        return None
    checked: dict[str, Any] = {}
    for name, values in _by_name(scores).items():
        if not isinstance(name, str) or not _NAME.fullmatch(name) or name.endswith(_BIAS):
            raise ValueError(
                "a score's name must consist of letters, digits, _ and -, and must not end with "
                f"{_BIAS}, got {name!r:.100}"
            )
        checked[name] = _check_values(values)
    return checked or None


def _by_name(scores: Any) -> dict[Any, Any]:
    if isinstance(scores, Mapping):
        return dict(scores)
    if isinstance(scores, (str, Path)):
        scores = [scores]
    if not isinstance(scores, Sequence) or not all(isinstance(s, (str, Path)) for s in scores):
        raise TypeError(
            "scores must map the name of each score to the values of its classes, such as "
            f"{{'nps': {{'promoter': 1, 'detractor': -1, 'passive': 0}}}}, got {scores!r:.80}"
        )
    found: dict[Any, Any] = {}
    for score in scores:
        if score in PRESETS:
            found[score] = score
            continue
        if Path(score).suffix not in (".yaml", ".yml", ".json"):
            raise ValueError(f"there is no score {score!r:.80}{_presets(str(score))}")
        content = read_file(score, "a file of scores")
        if not isinstance(content, dict):
            raise ValueError(f"a file of scores must have scores by name, got {content!r:.80}")
        found |= content
    return found


def _presets(name: str) -> str:
    return f"{near(name, PRESETS)}; the scores with a name are {', '.join(PRESETS)}"


def _check_values(values: Any) -> Any:
    """Check the values of classes or groups; a preset stays its name."""
    if isinstance(values, str):
        if values not in PRESETS:
            raise ValueError(f"there is no score {values!r:.80}{_presets(values)}")
        return values
    if not isinstance(values, Mapping):
        raise TypeError(
            "a score must map classes or groups to numbers, or be one of "
            f"{list(PRESETS)}, got {type(values).__name__}"
        )
    checked = {}
    for label, value in values.items():
        is_number = isinstance(value, (int, float, np.integer, np.floating))
        if isinstance(value, bool) or not is_number or not math.isfinite(value):
            raise ValueError(
                f"a score's values must be finite numbers, got {value!r:.40} for {label!r:.80}"
            )
        checked[stored_label(label)] = float(value)
    return checked


def values_of_classes(
    values: Any,
    labels: tuple[Label, ...],
    grouping: Grouping | None = None,
    others: float | None = None,
) -> dict[Label, float]:
    """Return the value of each class, in the order of the classes.

    Parameters
    ----------
    values : mapping of label to float, "nps" or "mean"
        The values of all classes, or of all groups in a step of the grouping.
    labels : tuple of length K
    grouping : Grouping, optional
    others : float, optional
        The value of the classes or groups that ``values`` does not name.

    Raises
    ------
    ValueError, TypeError
        If a class or group is unknown or has no value, or if a value is not a finite number.
    """
    checked = _check_values(values)
    by_label: dict[Label, Label] = {label: label for label in labels}
    partitions = [by_label]
    if grouping is not None:
        for step in grouping.compose(labels):
            groups = [step.labels[group] for group in step.group_of_class]
            partitions.append(dict(zip(labels, groups, strict=True)))
    if checked == "mean":
        checked = _ratings(labels, "mean")
    elif checked == "nps":
        checked = _net_promoter(labels, partitions)
    if others is not None:
        others = _check_values({"others": others})["others"]
    if not checked and others is None:
        raise ValueError("a score must have values of classes or groups, got none")
    parts = [part for part in partitions if checked.keys() <= set(part.values())]
    if not parts:
        _refuse_unknown(checked, partitions)
    found = {}
    for label, name in parts[0].items():
        value = checked.get(name, others)
        if value is None:
            raise ValueError(f"score has no value for {name!r}; give it or others=0")
        found[label] = value
    if len(set(found.values())) < 2:
        raise ValueError(
            f"a score must have at least two different values, got {found[labels[0]]:g} for all "
            "classes"
        )
    return found


def _refuse_unknown(values: Values, partitions: Sequence[Mapping[Label, Label]]) -> None:
    names = [list(dict.fromkeys(part.values())) for part in partitions]
    every = [name for part in names for name in part]
    unknown = [label for label in values if label not in every]
    if not unknown:
        raise ValueError(
            "a score must name only classes, or only the groups of one step, got "
            f"{listed(list(values), 12)}"
        )
    known = " or ".join(listed(part, 12) for part in names)
    raise ValueError(
        f"score names the unknown class or group {unknown[0]!r:.80}"
        f"{near(str(unknown[0]), map(str, every))}; it must be one of {known}"
    )


def _ratings(labels: Iterable[Label], preset: str) -> dict[Label, float]:
    """Return the number that each class stands for."""
    ratings = {}
    for label in labels:
        try:
            number = float(label)  # type: ignore[arg-type]  # a label that is not a number raises
        except (TypeError, ValueError):
            number = math.nan
        if not math.isfinite(number):
            raise ValueError(f"the score {preset!r} needs classes that are numbers, got {label!r}")
        ratings[label] = number
    return ratings


def _net_promoter(
    labels: tuple[Label, ...], partitions: Sequence[Mapping[Label, Label]]
) -> dict[Label, float]:
    """Return the values of the net promoter score, for classes from 0 to 10 or for its groups.

    Source: Reichheld (2003), Harvard Business Review 81(12), 46-54.
    """
    for part in partitions:
        if set(part.values()) <= _PROMOTERS.keys():
            return {name: _PROMOTERS[str(name)] for name in part.values()}
    values = {}
    for label, rating in _ratings(labels, "nps").items():
        if rating not in range(11):
            raise ValueError(
                f"the score 'nps' needs whole numbers from 0 to 10 as classes, or the groups "
                f"{list(_PROMOTERS)}, got {label!r}"
            )
        if rating >= 9:
            values[label] = 1.0
        elif rating >= 7:
            values[label] = 0.0
        else:
            values[label] = -1.0
    return values


# -- the result ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Score:
    """A score of an evaluation, with standard errors and intervals.

    Attributes
    ----------
    actual, predicted, bias : float
        The mean value of the actual classes and of the predicted classes, and the predicted minus
        the actual score.
    standard_errors : dict of str to float
        By "actual", "predicted" and "bias"; NaN if unknown.
    intervals : dict of str to (float, float)
        Wald's intervals, which end at the smallest and largest possible number.
    confidence_level : float
    values : dict of label to float
        The value of each class.

    Examples
    --------
    >>> from cmtrack import evaluate
    >>> y_true = ["promoter", "passive", "detractor", "promoter"] * 25
    >>> y_pred = ["promoter", "passive", "passive", "promoter"] * 25
    >>> evaluate(y_true, y_pred).score({"promoter": 1, "detractor": -1}, others=0)
    Score(actual 0.2500 [0.0875, 0.4130], predicted 0.500 [0.402, 0.598], bias 0.250 [0.165, 0.335])
    """

    actual: float
    predicted: float
    bias: float
    standard_errors: dict[str, float]
    intervals: dict[str, Interval]
    confidence_level: float
    values: dict[Label, float]

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as plain data, by "actual", "predicted" and "bias"."""
        numbers: dict[str, Any] = {}
        for name, error in self.standard_errors.items():
            low, high = self.intervals[name]
            numbers[name] = {
                "value": getattr(self, name),
                "standard_error": error,
                "low": low,
                "high": high,
            }
        values = [[label, value] for label, value in self.values.items()]
        return {**numbers, "confidence_level": self.confidence_level, "values": values}

    def to_frame(self) -> Any:
        """Return a frame with one row each for the actual and predicted score and the bias."""
        from cmtrack._pandas import pd

        numbers = self.to_dict()
        rows = [{"score": name, **numbers[name]} for name in self.standard_errors]
        return pd.DataFrame(rows)

    def __repr__(self) -> str:
        parts = [
            f"{name} {significant_with_interval(getattr(self, name), *self.intervals[name])}"
            for name in self.standard_errors
        ]
        return f"Score({', '.join(parts)})"

    def _repr_html_(self) -> str:
        from cmtrack import notebook

        return notebook.view(notebook.table(self.to_frame()))
