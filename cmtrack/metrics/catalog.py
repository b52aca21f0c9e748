"""The catalog of metrics: it composes the sections, and looks names up.

The reference of metrics, reports, rankings, gates, intervals and the logged names read it. A section declares its
metrics, with their words and functions, in its own file. Parts of names in angle brackets stand for a class label, a
step's name, a group's or a family's name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

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


OWN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,79}/[A-Za-z0-9_][A-Za-z0-9_-]{0,79}")
RESERVED = frozenset(metric.section for metric in CATALOG) | {"confidence", "cost"}
"""Sections that are cmtrack's own."""
_MEANING = ("of", "better", "low", "high", "interval")
"""What two declarations of a user's metric must agree in; the first one's title and formula are shown."""


def may_be_own(name: str) -> bool:
    """True of a name that a metric of a user's own may have."""
    return OWN_NAME.fullmatch(name) is not None and name.split("/")[0] not in RESERVED


@dataclass(frozen=True)
class Catalog:
    """The metrics that an evaluation or a comparison knows: the built-in ones, and the user's own.

    Attributes
    ----------
    own : tuple of Metric
    open : bool
        Whether any name that a user's metric may have is taken for one, whose words are not known yet: for texts that
        are checked before an evaluation is read.

    Examples
    --------
    >>> from cmtrack import Metric, evaluate
    >>> errors = Metric("custom/errors", lambda b: b.fp + b.fn, of="binary", better="lower")
    >>> evaluate([0, 1, 1, 0], [0, 1, 0, 1], extra_metrics=[errors]).catalog.lookup("custom/errors").better
    'lower'
    """

    own: tuple[Metric, ...] = ()
    open: bool = False

    @classmethod
    def joined(cls, catalogs: Iterable[Catalog]) -> Catalog:
        """One catalog of several.

        Raises
        ------
        ValueError
            If two of them mean different things by one name; the text says both.
        """
        own: dict[str, Metric] = {}
        for metric in (metric for catalog in catalogs for metric in catalog.own):
            other = own.setdefault(metric.name, metric)
            for word in _MEANING:
                ours, theirs = getattr(other, word), getattr(metric, word)
                if ours != theirs:
                    raise ValueError(
                        f"all runs must declare {metric.name!r} with one {word!r}, got {ours!r} and {theirs!r}; "
                        "extra_metrics=[Metric(...)] gives one definition for all of them"
                    )
        return cls(tuple(own.values()))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all metrics, with placeholders in angle brackets."""
        return tuple(metric.name for metric in (*CATALOG, *self.own))

    def find(self, name: str) -> tuple[Metric, dict[str, str]]:
        """The metric of a full name such as ``class/7/recall``, and the encoded parts that vary: ``{"label": "7"}``.

        Raises
        ------
        KeyError
            If no metric has that name.
        """
        exact = _EXACT.get(name) or next((metric for metric in self.own if metric.name == name), None)
        if exact is not None:
            return exact, {}
        for pattern, metric in _PATTERNS.get(name.split("/", 1)[0], []):
            match = pattern.fullmatch(name)
            if match:
                return metric, match.groupdict()
        if self.open and may_be_own(name):
            return Metric(name, None, of="binary", better="higher"), {}
        raise KeyError(f"no metric is called {name!r}")

    def lookup(self, name: str) -> Metric:
        """The metric of a full name, as in :meth:`find`."""
        return self.find(name)[0]

    def title(self, name: str, show: Callable[[str], str] = quoted, positive: str = "", brief: bool = False) -> str:
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
        metric, parts = self.find(name)
        shown = {part: show(decode_label(encoded)) for part, encoded in parts.items()}
        heading, step = metric.heading(brief), shown.pop("step", "")
        if "{" in heading:
            return heading.format(**shown)
        if shown:
            heading += f" of {shown.popitem()[1]}"
        elif positive and name in _OF_POSITIVE:
            heading += f", {positive}" if brief else f" for {positive}"
        return f"{heading} ({step})" if step else heading

    def section_title(self, name: str, show: Callable[[str], str] = quoted, positive: str = "") -> str:
        """The title of a metric's section; arguments as in :meth:`title`."""
        metric, parts = self.find(name)
        section = next((section for section in SECTIONS if metric in section.metrics), None)
        if section is None:
            return metric.section
        shown = section.title.format(step=show(decode_label(parts.get("step", ""))))
        return f"{shown} · positive: {positive}" if positive and section.of_positive else shown


BUILT_IN = Catalog()
OPEN = Catalog(open=True)


find, title = BUILT_IN.find, BUILT_IN.title
"""Of the built-in metrics alone."""


def lookup(name: str) -> Metric:
    """The built-in metric of a full name, as in :meth:`Catalog.find`.

    Examples
    --------
    >>> from cmtrack.metrics import lookup
    >>> lookup("class/7/recall").name, lookup("binary/roc_auc").better
    ('class/<label>/recall', 'higher')
    """
    return BUILT_IN.lookup(name)
