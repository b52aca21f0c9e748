"""The record of a promotion, which is stored as canonical JSON and contains the previous digest.

A record is untrusted, like every stored file. :meth:`PromotionRecord.parse` validates it.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from cmtrack import untrusted
from cmtrack.comparison.months import MonthEstimate
from cmtrack.comparison.verdict import Answer
from cmtrack.evaluation.gates import GateOutcome
from cmtrack.schemas import PROMOTION

MAX_BYTES = 64 * 1024
"""Largest size of a record."""
MAX_NAME = 500
"""Maximum number of characters of a name or another short text in a record."""
LARGEST = 1e15
"""Largest number in a record, so that sums and squares of numbers stay finite."""
_SHA256 = re.compile(r"[0-9a-f]{64}")
ROLES = ("champion", "challenger", "previous", "first")

T = TypeVar("T")


def canonical_json(data: Any) -> bytes:
    """Return data as canonical JSON, so that equal data have equal bytes.

    Keys are sorted, separators contain no spaces, floats have the shortest form, and texts are in
    UTF-8. NaN and infinity become ``null``.

    Raises
    ------
    TypeError
        If the data contain anything except mappings, sequences, texts, numbers, booleans and None.
    """
    text = json.dumps(
        _with_null(data), ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False
    )
    return text.encode("utf-8")


def digest_of(content: bytes) -> str:
    """Return the SHA-256 digest of bytes as a text of 64 hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


@dataclass(frozen=True)
class RuleFacts:
    """The rule of a promotion.

    ``file``: base name of the rule's file; None if the rule was given by arguments.
    ``sha256``: digest of the rule's file, or of the file that the arguments would give.
    ``require``: texts of the gates.
    ``level``: confidence level of the intervals, after the correction for several challengers.
    ``options``: texts of the options that change an evaluation, such as the positive class.
    """

    file: str | None
    sha256: str
    rank_by: str
    require: tuple[str, ...]
    level: float
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def question(self) -> str:
        """A digest that is equal for promotions whose numbers mean the same."""
        if not self.options:
            return self.sha256
        return digest_of(canonical_json([self.sha256, dict(self.options)]))


@dataclass(frozen=True)
class RowsFacts:
    """The rows that chose: name, number, and digests of labels and ids.

    ``clusters``: number of clusters; None for independent rows.
    """

    name: str
    n: float
    labels: str
    ids: str | None = None
    clusters: int | None = None

    @property
    def digest(self) -> tuple[str, str | None]:
        """The digests, which are equal for equal rows in the same order."""
        return self.labels, self.ids

    def is_same(self, other: RowsFacts) -> bool:
        """Return whether both have the same rows, even if the order differs or one has no ids.

        Rows without ids are the same only if their labels are equal in order.
        """
        if self.ids is None or other.ids is None or self.ids == other.ids:
            return self.labels == other.labels
        return _without_order(self.ids) == _without_order(other.ids) and (
            _without_order(self.labels) == _without_order(other.labels)
        )


@dataclass(frozen=True)
class ModelFacts:
    """A version that was evaluated.

    ``role``: "champion", "challenger", "previous" or "first".
    ``run``: id of the evaluation run; None if the version was not evaluated.
    ``model``: id of the logged model.
    ``made``: time at which the version was registered, in milliseconds since 1970.
    ``answer``: answer for a challenger; None for all other roles and without a comparison.
    """

    role: str
    run: str | None
    model: str | None
    made: int
    answer: Answer | None = None


@dataclass(frozen=True)
class PairFacts:
    """Difference in a metric between two versions on the rows of a record.

    ``counts``: for a share of the same rows, the numbers of rows that only the new and only the old
    version predicts correctly, the sum of squares over clusters, and the number of rows in the
    denominator; see :class:`~cmtrack.comparison.months.MonthEstimate`.
    """

    new: str
    old: str
    metric: str
    difference: float
    standard_error: float
    low: float
    high: float
    counts: tuple[float, float, float, float] | None = None

    def estimate(self, rows: float) -> MonthEstimate:
        """Return the difference as an estimate of a month; ``rows``: number of rows."""
        if self.counts is None:
            return MonthEstimate(self.difference, self.standard_error, rows)
        only_new, only_old, squares, size = self.counts
        return MonthEstimate(
            self.difference, self.standard_error, size, only_new, only_old, squares
        )


@dataclass(frozen=True)
class GateFacts:
    """Outcome of a gate for a challenger."""

    version: str
    text: str
    outcome: GateOutcome
    value: float
    rows_more: float


@dataclass(frozen=True)
class PromotionRecord:
    """Facts about one promotion, which prove that its numbers, rows and rule belong together.

    Attributes
    ----------
    model, alias : str
        Names of the registered model and of the alias.
    answer : Answer or None
        None if no champion was compared, because the alias was set by force without data.
    chosen : str or None
        The version that the alias moves to: the promoted version, or the version that was chosen by
        force. None if the champion stays.
    forced : str or None
        The reason for a move by force.
    made, author, versions
        Time in UTC, MLflow's user name, and versions of packages, as stated by the author's
        machine.
    rule : RuleFacts or None
    rows : RowsFacts or None
        None if no rows were given.
    models : mapping of str to ModelFacts
        By version. A record with rows has one champion, unless the alias was not set.
    values : mapping of str to mapping of str to (value, standard error)
        Values of the rule's metrics, by version and metric.
    pairs, joined : tuple of PairFacts
        Differences on these rows, and on the rows of the joined looks together.
    looks : mapping of str to tuple of str
        Run ids of the joined earlier promotions, by challenger.
    gates : tuple of GateFacts
    rows_more : float
        Number of further rows that would decide; NaN if unknown.
    bundle : str or None
        SHA-256 of the manifest of the review's bundle.
    previous : str or None
        SHA-256 of the alias's previous record.

    Examples
    --------
    >>> from cmtrack.comparison import PromotionRecord
    >>> facts = {"made": "2026-06-01T08:00:00Z", "author": "", "versions": {}}
    >>> record = PromotionRecord("party", "champion", None, "1", "first champion", **facts)
    >>> PromotionRecord.parse(record.to_bytes()) == record
    True
    """

    model: str
    alias: str
    answer: Answer | None
    chosen: str | None
    forced: str | None
    made: str
    author: str
    versions: Mapping[str, str]
    rule: RuleFacts | None = None
    rows: RowsFacts | None = None
    models: Mapping[str, ModelFacts] = field(default_factory=dict)
    values: Mapping[str, Mapping[str, tuple[float, float]]] = field(default_factory=dict)
    pairs: tuple[PairFacts, ...] = ()
    looks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    joined: tuple[PairFacts, ...] = ()
    gates: tuple[GateFacts, ...] = ()
    rows_more: float = math.nan
    bundle: str | None = None
    previous: str | None = None

    @property
    def champion(self) -> str | None:
        """The version that the alias named before; None if the alias was not set."""
        return next((name for name, one in self.models.items() if one.role == "champion"), None)

    @property
    def challengers(self) -> tuple[str, ...]:
        """The versions that were compared with the champion."""
        return tuple(name for name, one in self.models.items() if one.role == "challenger")

    def pair(self, new: str, old: str, metric: str) -> PairFacts | None:
        """Return the difference between two versions on the record's rows, or None."""
        for pair in self.pairs:
            if (pair.new, pair.old, pair.metric) == (new, old, metric):
                return pair
        return None

    def to_data(self) -> dict[str, Any]:
        """Return the record as plain data."""
        data: dict[str, Any] = {
            "schema": PROMOTION.newest,
            "model": self.model,
            "alias": self.alias,
            "answer": None if self.answer is None else self.answer.value,
            "chosen": self.chosen,
            "forced": self.forced,
            "made": self.made,
            "author": self.author,
            "versions": dict(self.versions),
            "rule": None,
            "rows": None,
            "models": {name: _model_data(model) for name, model in self.models.items()},
            "values": {name: dict(values) for name, values in self.values.items()},
            "pairs": list(map(_pair_data, self.pairs)),
            "looks": dict(self.looks),
            "joined": list(map(_pair_data, self.joined)),
            "gates": [
                [gate.text, gate.outcome.value, gate.value, gate.rows_more, gate.version]
                for gate in self.gates
            ],
            "rows_more": self.rows_more,
            "bundle": self.bundle,
            "previous": self.previous,
        }
        if self.rule is not None:
            data["rule"] = vars(self.rule)
        if self.rows is not None:
            data["rows"] = vars(self.rows)
        return data

    def to_bytes(self) -> bytes:
        """Return the record as canonical JSON.

        Raises ValueError if the record is larger than 64 kB, or if it contains a value with which
        it could not be read again, such as a name that is too long.
        """
        content = canonical_json(self.to_data())
        if len(content) > MAX_BYTES:
            raise ValueError(
                f"a promotion's record must not be larger than {MAX_BYTES >> 10} kB, got "
                f"{len(content):,} bytes"
            )
        PromotionRecord.parse(content)
        return content

    @classmethod
    def parse(cls, content: bytes) -> PromotionRecord:
        """Read a record and validate it.

        Raises ValueError if the record is larger than 64 kB, is not JSON, was written by a newer
        version of cmtrack, or contains an invalid value.
        """
        if len(content) > MAX_BYTES:
            raise ValueError(f"the record must not be larger than {MAX_BYTES >> 10} kB")
        data = untrusted.parsed_json(content, finite=True)
        if not isinstance(data, dict):
            raise ValueError(f"the record must be a mapping, got {type(data).__name__}")
        data = PROMOTION.migrated(data)
        try:
            return _record_of(data)
        except KeyError as error:
            raise ValueError(f"the record has no {error}") from None
        except (ValueError, TypeError, AttributeError) as error:
            raise ValueError(f"the record is not valid: {error}") from None


# -- writing ---------------------------------------------------------------------------------------


def _with_null(data: Any) -> Any:
    """Return plain data in which NaN and infinity are None."""
    if isinstance(data, Mapping):
        return {str(name): _with_null(value) for name, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_with_null(value) for value in data]
    if isinstance(data, float) and not math.isfinite(data):
        return None
    return data


def _without_order(digest: str) -> str:
    """Return the part of a digest that does not depend on the order of the rows."""
    content, _, _ = digest.rpartition(".")
    return content if content.count(".") == 1 else digest


def _model_data(model: ModelFacts) -> dict[str, Any]:
    data = vars(model).copy()
    data["answer"] = None if model.answer is None else model.answer.value
    return data


def _pair_data(pair: PairFacts) -> list[Any]:
    numbers = [pair.difference, pair.standard_error, pair.low, pair.high]
    return [pair.new, pair.old, pair.metric, numbers, pair.counts]


# -- reading ---------------------------------------------------------------------------------------


def _record_of(data: Mapping[str, Any]) -> PromotionRecord:
    """Return the record that checked JSON describes; raise an error for an invalid value."""
    return PromotionRecord(
        model=_text(data["model"]),
        alias=_text(data["alias"]),
        answer=_optional(Answer, data["answer"]),
        chosen=_optional(_version, data["chosen"]),
        forced=_optional(_text, data["forced"]),
        made=_text(data["made"]),
        author=_text(data["author"], empty=True),
        versions=_mapping(data["versions"], _text),
        rule=_optional(_rule_of, data["rule"]),
        rows=_optional(_rows_of, data["rows"]),
        models=_mapping(data["models"], _model_of, _version),
        values=_mapping(data["values"], _values_of, _version),
        pairs=tuple(map(_pair_of, _list(data["pairs"]))),
        looks=_mapping(data["looks"], _run_ids, _version),
        joined=tuple(map(_pair_of, _list(data["joined"]))),
        gates=tuple(map(_gate_of, _list(data["gates"]))),
        rows_more=_number(data["rows_more"], low=0.0),
        bundle=_optional(_sha256, data["bundle"]),
        previous=_optional(_sha256, data["previous"]),
    )


def _rule_of(data: Mapping[str, Any]) -> RuleFacts:
    level = _number(data["level"])
    if not 0 < level < 1:
        raise ValueError(f"a rule's level must be between 0 and 1, got {level!r}")
    return RuleFacts(
        file=_optional(untrusted.file_name, data["file"]),
        sha256=_sha256(data["sha256"]),
        rank_by=_text(data["rank_by"]),
        require=tuple(map(_text, _list(data["require"]))),
        level=level,
        options=_mapping(data.get("options", {}), _text),
    )


def _rows_of(data: Mapping[str, Any]) -> RowsFacts:
    n = _number(data["n"], low=0.0)
    if not n > 0:
        raise ValueError(f"a record must have rows, got n = {n!r}")
    return RowsFacts(
        name=_text(data["name"]),
        n=n,
        labels=_text(data["labels"]),
        ids=_optional(_text, data["ids"]),
        clusters=_optional(_whole, data["clusters"]),
    )


def _model_of(data: Mapping[str, Any]) -> ModelFacts:
    role = data["role"]
    if role not in ROLES:
        raise ValueError(f"a model's role must be one of {', '.join(ROLES)}, got {role!r:.40}")
    return ModelFacts(
        role=role,
        run=_optional(_run_id, data["run"]),
        model=_optional(_run_id, data["model"]),
        made=_whole(data["made"]),
        answer=_optional(Answer, data["answer"]),
    )


def _values_of(data: Any) -> dict[str, tuple[float, float]]:
    return _mapping(data, _value_and_error)


def _value_and_error(data: Any) -> tuple[float, float]:
    value, error = _list(data, 2)
    return _number(value), _number(error, low=0.0)


def _pair_of(data: Any) -> PairFacts:
    new, old, metric, numbers, counts = _list(data, 5)
    difference, error, low, high = map(_number, _list(numbers, 4))
    if error < 0:
        raise ValueError(f"a standard error must not be negative, got {error!r}")
    return PairFacts(
        _version(new),
        _version(old),
        _text(metric),
        difference,
        error,
        low,
        high,
        _optional(_counts_of, counts),
    )


def _counts_of(data: Any) -> tuple[float, float, float, float]:
    only_new, only_old, squares, size = (_number(one, low=0.0) for one in _list(data, 4))
    if not (0 < size < math.inf and only_new + only_old <= size):
        raise ValueError(f"counts must be at most the number of rows, got {data!r:.60}")
    return only_new, only_old, squares, size


def _gate_of(data: Any) -> GateFacts:
    text, outcome, value, more, version = _list(data, 5)
    return GateFacts(
        _version(version), _text(text), GateOutcome(outcome), _number(value), _number(more, low=0.0)
    )


def _run_ids(data: Any) -> tuple[str, ...]:
    return tuple(map(_run_id, _list(data)))


def _run_id(value: Any) -> str:
    return untrusted.identifier(value, "a run's id")


def _version(value: Any) -> str:
    if not isinstance(value, str) or not value.isdecimal() or len(value) > 12:
        raise ValueError(f"a version must be a number as a text, got {value!r:.40}")
    return value


def _sha256(value: Any) -> str:
    if not isinstance(value, str) or not _SHA256.fullmatch(value):
        raise ValueError(f"a SHA-256 must have 64 hexadecimal digits, got {value!r:.40}")
    return value


def _text(value: Any, *, empty: bool = False) -> str:
    if not isinstance(value, str) or len(value) > MAX_NAME or not (value or empty):
        raise ValueError(f"a text must have 1 to {MAX_NAME} characters, got {value!r:.40}")
    return untrusted.one_line(value)


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"a number must be whole and not negative, got {value!r:.40}")
    return value


def _number(value: Any, *, low: float = -LARGEST) -> float:
    """Return a number; NaN for None."""
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"expected a number, got {value!r:.40}")
    if not low <= value <= LARGEST:
        raise ValueError(f"a number must be between {low:g} and {LARGEST:g}, got {value!r:.40}")
    return value


def _list(value: Any, length: int | None = None) -> list[Any]:
    if not isinstance(value, list) or (length is not None and len(value) != length):
        expected = "a list" if length is None else f"a list of {length}"
        raise ValueError(f"expected {expected}, got {value!r:.60}")
    return value


def _mapping(
    value: Any, read: Callable[[Any], T], read_name: Callable[[Any], str] | None = None
) -> dict[str, T]:
    if not isinstance(value, dict):
        raise ValueError(f"expected a mapping, got {value!r:.60}")
    read_key: Callable[[Any], str] = read_name or _text
    return {read_key(name): read(one) for name, one in value.items()}


def _optional(read: Callable[[Any], T], value: Any) -> T | None:
    return None if value is None else read(value)
