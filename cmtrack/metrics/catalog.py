"""The one registry of every metric: it composes the sections, and looks names up.

The reference of metrics, reports, rankings, gates, intervals and the logged names read it. A section declares its
metrics, with their words and functions, in its own file. Parts of names in angle brackets stand for a class label, a
step's name, a group's or a family's name.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from cmtrack.families.metrics import FAMILY
from cmtrack.metrics.binary import BINARY
from cmtrack.metrics.calibration import CALIBRATION
from cmtrack.metrics.confidence import CONFIDENCE, CONFIDENCE_OF_STEP
from cmtrack.metrics.costs import COST
from cmtrack.metrics.metric import Metric, Section
from cmtrack.metrics.multiclass import MULTICLASS, REDUCED, SPANS
from cmtrack.metrics.names import decode_label
from cmtrack.metrics.per_class import CLASS
from cmtrack.metrics.probability import PROBABILITY, PROBABILITY_OF_STEP
from cmtrack.metrics.spcc import SPCC
from cmtrack.names import quoted
from cmtrack.prevalence.metrics import PREVALENCE
from cmtrack.rough.metrics import ROUGH

SECTIONS: tuple[Section, ...] = (
    MULTICLASS,
    CLASS,
    SPANS,
    REDUCED,
    BINARY,
    COST,
    PROBABILITY,
    PROBABILITY_OF_STEP,
    CALIBRATION,
    CONFIDENCE,
    CONFIDENCE_OF_STEP,
    SPCC,
    PREVALENCE,
    FAMILY,
    ROUGH,
)
"""Every section, in the order of their metrics in an evaluation."""

CATALOG: tuple[Metric, ...] = tuple(metric for section in SECTIONS for metric in section.metrics)

_OF_POSITIVE = {metric.name for section in SECTIONS if section.of_positive for metric in section.metrics}
_EXACT = {metric.name: metric for metric in CATALOG if "<" not in metric.name}
_PATTERNS: dict[str, list[tuple[re.Pattern[str], Metric]]] = {section.name: [] for section in SECTIONS}
for _metric in CATALOG:
    if "<" in _metric.name:
        _PATTERNS[_metric.section].append((re.compile(re.sub(r"<(\w+)>", r"(?P<\1>[^/]+)", _metric.name)), _metric))


_OWN: dict[str, Metric] = {}
"""Metrics of users' own that this process has met, by name: their words, wherever a name is read."""


def declare(metric: Metric) -> None:
    """Make a metric of one's own known by its name; one that a file declares does not replace one with a function."""
    if metric.value is not None or metric.name not in _OWN:
        _OWN[metric.name] = metric


def own_of(name: str) -> str | None:
    """The ``of`` of a metric of one's own; None for any other name."""
    return _OWN[name].of if name in _OWN else None


def known_names() -> tuple[str, ...]:
    """Names of all metrics, also of one's own that this process has met."""
    return (*(metric.name for metric in CATALOG), *_OWN)


def find(name: str) -> tuple[Metric, dict[str, str]]:
    """The metric of a full name such as ``class/7/recall``, and the encoded parts that vary: ``{"label": "7"}``.

    Raises
    ------
    KeyError
        If no metric has that name.
    """
    exact = _EXACT.get(name) or _OWN.get(name)
    if exact is not None:
        return exact, {}
    for pattern, metric in _PATTERNS.get(name.split("/", 1)[0], []):
        match = pattern.fullmatch(name)
        if match:
            return metric, match.groupdict()
    raise KeyError(f"no metric is called {name!r}")


def lookup(name: str) -> Metric:
    """The metric of a full name, as in :func:`find`.

    Notes
    -----
    Cost: O(1) for names that do not vary; a match against each pattern of the section for others.

    Examples
    --------
    >>> from cmtrack.metrics import lookup
    >>> lookup("class/7/recall").name, lookup("binary/roc_auc").better
    ('class/<label>/recall', 'higher')
    """
    return find(name)[0]


def title(name: str, show: Callable[[str], str] = quoted, positive: str = "", brief: bool = False) -> str:
    """The title of a full metric name for people: ``class/7/recall`` as "recall of “7”".

    Parameters
    ----------
    name : str
    show : callable
        How labels, groups and steps are written.
    positive : str, optional
        The positive group as it is to be written after metrics of it.
    brief : bool
        For the head of a table.
    """
    metric, parts = find(name)
    shown = {part: show(decode_label(encoded)) for part, encoded in parts.items()}
    heading, step = metric.heading(brief), shown.pop("step", "")
    if "{" in heading:
        return heading.format(**shown)
    if shown:
        heading += f" of {shown.popitem()[1]}"
    elif positive and name in _OF_POSITIVE:
        heading += f", {positive}" if brief else f" for {positive}"
    return f"{heading} ({step})" if step else heading


def section_title(name: str, show: Callable[[str], str] = quoted, positive: str = "") -> str:
    """The title of the section that a metric stands in; the arguments are those of :func:`title`."""
    metric, parts = find(name)
    section = next((section for section in SECTIONS if metric in section.metrics), None)
    if section is None:
        return metric.section
    shown = section.title.format(step=show(decode_label(parts.get("step", ""))))
    return f"{shown} · positive: {positive}" if positive and section.of_positive else shown
