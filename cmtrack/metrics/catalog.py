"""The :class:`Catalog`, with which you find metrics of an evaluation or comparison by name.

Reports, rankings, gates, intervals and logged names are built from the catalog. Each section
declares its metrics, with their texts and functions, in a separate file. A kind of evaluation lists
its sections. A part of a name in angle brackets is a placeholder for a class label, or for the name
of a step, a group or a family.
"""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_
from typing import Any

from cmtrack.metrics.metric import OF_POSITIVE, Metric, Section
from cmtrack.metrics.names import decode_label
from cmtrack.metrics.scores import ScoreMean
from cmtrack.names import quoted


class Sections:
    """The sections of a kind of evaluation, in the order in which its metrics are listed.

    Parameters
    ----------
    *sections : Section
    places : tuple of str
        Import names (``module.NAME``) of the objects that contain the sections. Pickle stores these
        names instead of the metrics, because metrics may be lambdas.
    """

    def __init__(self, *sections: Section, places: tuple[str, ...]) -> None:
        self.all = sections
        self.places = places
        self._section_of: dict[str, Section] = {}
        self._exact: dict[str, Metric] = {}
        self._patterns: dict[str, list[tuple[re.Pattern[str], Metric]]] = {}
        for section in sections:
            for metric in section.metrics:
                self._section_of[metric.name] = section
                if "<" not in metric.name:
                    self._exact[metric.name] = metric
                    continue
                pattern = re.compile(re.sub(r"<(\w+)>", r"(?P<\1>[^/]+)", metric.name))
                self._patterns.setdefault(metric.section, []).append((pattern, metric))
        self.metrics = tuple(metric for section in sections for metric in section.metrics)

    def __or__(self, other: Sections) -> Sections:
        added = [section for section in other.all if section not in self.all]
        if not added:
            return self
        return Sections(*self.all, *added, places=(*self.places, *other.places))

    def __reduce__(self) -> tuple[Any, ...]:
        return _at, self.places

    def find(self, name: str) -> tuple[Metric, dict[str, str]] | None:
        """Find a metric by its full name, and return it with the variable parts; None if unknown.

        The parts are encoded.
        """
        if name in self._exact:
            return self._exact[name], {}
        for pattern, metric in self._patterns.get(name.split("/")[0], []):
            match = pattern.fullmatch(name)
            if match is not None:
                return metric, match.groupdict()
        return None

    def of(self, metric: Metric) -> Section | None:
        """Return the section to which a metric belongs; None for a custom metric."""
        return self._section_of.get(metric.name)


def _at(*places: str) -> Any:
    return reduce(or_, map(pkgutil.resolve_name, places))


OWN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,79}/[A-Za-z0-9_][A-Za-z0-9_-]{0,79}")
RESERVED = frozenset(
    {
        "binary",
        "calibration",
        "class",
        "confidence",
        "cost",
        "family",
        "flips",
        "multiclass",
        "ordinal",
        "prevalence",
        "probability",
        "reduced",
        "rough",
        "spans",
        "spcc",
    }
)
"""Sections of built-in metrics, for every kind of evaluation."""
_MEANING = ("of", "better", "low", "high", "interval")
"""Fields that must be identical if a custom metric is declared twice. Title and formula may differ,
and those of the first declaration are shown.
"""


def may_be_own(name: str) -> bool:
    """Return whether a custom metric may have this name."""
    return OWN_NAME.fullmatch(name) is not None and name.split("/")[0] not in RESERVED


_TITLES = {"score": "Scores of the predictions"}
"""Titles of parts whose metrics are declared by the options of an evaluation."""


@dataclass(frozen=True)
class Catalog:
    """All metrics of an evaluation or a comparison, including custom metrics.

    Attributes
    ----------
    sections : Sections
    own : tuple of Metric
    open : bool
        Whether to accept any name that is allowed for a custom metric, although the metric is not
        declared yet. With an open catalog, metric names in a text can be checked before an
        evaluation is read.

    Examples
    --------
    >>> from cmtrack import Metric, evaluate
    >>> errors = Metric("custom/errors", lambda b: b.fp + b.fn, of="binary", better="lower")
    >>> evaluation = evaluate([0, 1, 1, 0], [0, 1, 0, 1], extra_metrics=[errors])
    >>> evaluation.catalog.lookup("custom/errors").better
    'lower'
    """

    sections: Sections
    own: tuple[Metric, ...] = ()
    open: bool = False

    def with_own(self, own: Iterable[Metric]) -> Catalog:
        """Return a copy of the catalog in which ``own`` replaces the custom metrics."""
        return replace(self, own=tuple(own))

    @classmethod
    def joined(cls, catalogs: Iterable[Catalog]) -> Catalog:
        """Join several catalogs into one."""
        several = tuple(catalogs)
        declared: dict[str, Metric] = {}
        for metric in (metric for catalog in several for metric in catalog.own):
            first = declared.setdefault(metric.name, metric)
            for word in _MEANING:
                expected = getattr(first, word)
                declaration = getattr(metric, word)
                if declaration != expected:
                    raise ValueError(
                        f"all runs must declare {metric.name!r} with the same {word!r}, "
                        f"got {expected!r} and {declaration!r}; extra_metrics=[Metric(...)] gives "
                        "one definition for all of them"
                    )
            scores = [each.value for each in (first, metric) if isinstance(each.value, ScoreMean)]
            if any(score != scores[0] for score in scores):
                values = " and ".join(f"{score.values!r:.200}" for score in scores)
                raise ValueError(
                    f"all runs must have the same values of {metric.name!r}, got {values}"
                )
        return cls(reduce(or_, (catalog.sections for catalog in several)), tuple(declared.values()))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all metrics, with placeholders in angle brackets."""
        return tuple(metric.name for metric in (*self.sections.metrics, *self.own))

    def find(self, name: str) -> tuple[Metric, dict[str, str]]:
        """Return the metric with a full name such as ``class/7/recall``, and the parts that vary.

        The parts are encoded: ``{"label": "7"}``.
        """
        built_in = self.sections.find(name)
        if built_in is not None:
            return built_in
        for metric in self.own:
            if metric.name == name:
                return metric, {}
        if self.open and may_be_own(name):
            return Metric(name, None, of="binary", better="higher"), {}
        raise KeyError(f"there is no metric named {name!r}")

    def lookup(self, name: str) -> Metric:
        """Return the metric with a full name; see :meth:`find`."""
        return self.find(name)[0]

    def has(self, name: str) -> bool:
        """Return whether a metric has this full name."""
        try:
            self.find(name)
        except KeyError:
            return False
        return True

    def depends_on(self, name: str) -> frozenset[str]:
        """Return the options on which a metric depends, among "grouping", "positive" and "costs".

        If two runs differ only in options on which the metric does not depend, both can be in one
        ranking. A metric with an unknown name is assumed to depend on the positive group.
        """
        if not self.has(name):
            return OF_POSITIVE
        metric = self.lookup(name)
        section = self.sections.of(metric)
        if section is None:
            return metric.depends_on
        return metric.depends_on | section.depends_on

    def title(
        self,
        name: str,
        show: Callable[[str], str] = quoted,
        positive: str = "",
        brief: bool = False,
    ) -> str:
        """Return a metric's readable title, such as "recall of “7”" for ``class/7/recall``.

        Parameters
        ----------
        name : str
        show : callable
            Function that formats a label, a group or a step as text.
        positive : str, optional
            The positive group, as titles show it after the metrics that depend on it.
        brief : bool
            Whether to return the short title for the head of a table.
        """
        metric, parts = self.find(name)
        words = {part: show(decode_label(encoded)) for part, encoded in parts.items()}
        step = words.pop("step", "")
        heading = metric.heading(brief)
        if "{" in heading:
            return heading.format(**words)
        section = self.sections.of(metric)
        of_positive = section is not None and section.of_positive and name == metric.name
        if words:
            heading += f" of {words.popitem()[1]}"
        elif positive and of_positive:
            heading += f", {positive}" if brief else f" for {positive}"
        return f"{heading} ({step})" if step else heading

    def section_title(
        self, name: str, show: Callable[[str], str] = quoted, positive: str = ""
    ) -> str:
        """Return the title of the section to which a metric belongs.

        The arguments are explained in :meth:`title`.
        """
        metric, parts = self.find(name)
        section = self.sections.of(metric)
        if section is None:
            return _TITLES.get(metric.section, metric.section)
        title = section.title.format(step=show(decode_label(parts.get("step", ""))))
        if positive and section.of_positive:
            return f"{title} · positive: {positive}"
        return title
