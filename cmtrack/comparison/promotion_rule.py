"""The rule of a promotion: a metric, gates, and options that prepare the evaluations."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cmtrack.comparison.compare import CompareOptions, default_criterion
from cmtrack.comparison.criterion import Criterion
from cmtrack.comparison.months import challenger_level
from cmtrack.comparison.promotion_record import MAX_NAME, RuleFacts, digest_of
from cmtrack.comparison.rule import Rule, as_rule, write_rule
from cmtrack.comparison.spec import several
from cmtrack.evaluation.gates import Gate
from cmtrack.metrics.catalog import Catalog
from cmtrack.metrics.own import near_or_own

DEFAULT_LEVEL = 0.95
NOT_OF_PROMOTIONS = ("require", "rank_by", "tie_breakers", "margin", "segments", "equivalence")
"""Options of a rule that do not change how an evaluation is prepared."""
NO_NUMBERS = ("confidence_level", "headline")
"""Options of an evaluation that the record states elsewhere, or that change no number."""


@dataclass(frozen=True)
class PromotionRule:
    """Rule by which a challenger replaces the champion.

    Attributes
    ----------
    file : Rule or None
        The rule's file; None if the rule is given by arguments.
    rank_by : str or None
        The metric; None for the default metric of :func:`cmtrack.compare`.
    require : tuple of str
        Gates. If there are none, the difference in the metric must be shown to be an improvement.
    confidence_level : float
        Level for one challenger.
    """

    file: Rule | None = None
    rank_by: str | None = None
    require: tuple[str, ...] = ()
    confidence_level: float = DEFAULT_LEVEL

    @classmethod
    def from_arguments(
        cls,
        rule: Any,
        require: str | Sequence[str],
        rank_by: str | None,
        confidence_level: float | None,
    ) -> PromotionRule:
        """Return the rule; raise ValueError if arguments and file contradict each other."""
        gates = tuple(several(require))
        for text in gates:
            Gate.parse(text)
        if rule is None:
            level = DEFAULT_LEVEL if confidence_level is None else confidence_level
            return cls(None, rank_by, gates, level)
        file = as_rule(rule)
        if gates or rank_by is not None or confidence_level is not None:
            raise ValueError(
                "a rule file contains the whole rule; leave out require, rank_by and "
                "confidence_level"
            )
        if "block" in file.values:
            raise ValueError(
                f"{file.name}: a rule with 'block' is for repeated runs, but a promotion compares "
                "single versions"
            )
        if "against" in file.values:
            raise ValueError(
                f"{file.name}: leave out 'against', because the alias names the champion"
            )
        metrics = several(file.values.get("rank_by") or ())
        if len(metrics) > 1:
            raise ValueError(
                f"{file.name}: a promotion ranks by one metric, got {', '.join(metrics)}"
            )
        for text in file.require:
            Gate.parse(text)
        level = file.values.get("confidence_level", DEFAULT_LEVEL)
        return cls(file, metrics[0] if metrics else None, file.require, level)

    def settled(self, catalog: Catalog, available: Collection[str]) -> SettledRule:
        """Return the rule with its metric and gates, for evaluations with these metrics.

        Raises ValueError if the metric does not exist, or if its best value is near zero and there
        are no gates.
        """
        metric = self.rank_by or default_criterion(available.__contains__).metrics[0]
        (metric,) = Criterion.of(metric, catalog).metrics
        if metric not in available:
            raise ValueError(f"no version has {metric!r}{near_or_own(metric, available)}")
        require = self.require
        if not require:
            require = (_improvement(metric, catalog),)
        gates = tuple(map(Gate.parse, require))
        return SettledRule(self, metric, gates)


@dataclass(frozen=True)
class SettledRule:
    """A rule with its metric and its gates."""

    rule: PromotionRule
    rank_by: str
    gates: tuple[Gate, ...]

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics that the rule reads."""
        named = [gate.metric for gate in self.gates if not gate.of_flips]
        return tuple(dict.fromkeys([self.rank_by, *named]))

    @property
    def content(self) -> bytes:
        """The bytes of the rule's file, or of the file that contains the same rule."""
        if self.rule.file is not None:
            return self.rule.file.content
        options = {
            "rank_by": self.rank_by,
            "require": [gate.text for gate in self.gates],
            "confidence_level": self.rule.confidence_level,
        }
        return write_rule(options, CompareOptions.defaults())

    def facts(self, challengers: int, options: Mapping[str, Any] | None = None) -> RuleFacts:
        """Return the facts for the record; ``options``: options of the evaluations."""
        return RuleFacts(
            None if self.rule.file is None else self.rule.file.name,
            digest_of(self.content),
            self.rank_by,
            tuple(gate.text for gate in self.gates),
            challenger_level(max(challengers, 1), self.rule.confidence_level),
            option_texts(options or {}),
        )

    def options(self, challengers: int, against: str | None) -> CompareOptions:
        """Return the options of the comparison, without gates, which would exclude runs.

        ``challengers``: number of challengers, for which the level is corrected.
        ``against``: id of the champion's run.
        """
        values: dict[str, Any] = {}
        if self.rule.file is not None:
            values = dict(self.rule.file.values)
        for name in NOT_OF_PROMOTIONS:
            values.pop(name, None)
        level = challenger_level(max(challengers, 1), self.rule.confidence_level)
        return CompareOptions(
            **values | {"rank_by": self.rank_by, "confidence_level": level, "against": against}
        )


def option_texts(options: Mapping[str, Any]) -> dict[str, str]:
    """Return the options of an evaluation as texts, without those that change no number."""
    texts = {}
    for name, value in sorted(options.items()):
        if value is None or name in NO_NUMBERS:
            continue
        plain = value.to_dict() if hasattr(value, "to_dict") else value
        text = json.dumps(plain, sort_keys=True, default=repr)
        texts[name] = text if len(text) <= MAX_NAME else digest_of(text.encode("utf-8"))
    return texts


def _improvement(metric: str, catalog: Catalog) -> str:
    """Return the gate that a significant improvement passes."""
    better = catalog.lookup(metric).better
    if better == "higher":
        return f"{metric}.difference.low > 0"
    if better == "lower":
        return f"{metric}.difference.high < 0"
    raise ValueError(
        f"{metric} has no direction that is better: give gates, such as '{metric}.abs <= 0.01'"
    )
