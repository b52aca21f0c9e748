"""Rules that are fixed in a file before the results are seen, and the digest that is printed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cmtrack import untrusted
from cmtrack._lazy import cached_property
from cmtrack.comparison.run import run_id_of
from cmtrack.comparison.spec import CompareSpec, several
from cmtrack.grouping import Costs, Grouping
from cmtrack.metrics.names import near
from cmtrack.names import quoted
from cmtrack.removed import RemovedFeature, reason

MAX_BYTES = 1 << 20
"""Of a rule in a bundle, which holds the groupings and costs that were given as objects."""
ENDINGS = (".yaml", ".yml")


# a run that is named with the others, where the file is silent on it
_MAY_STAND_BESIDE = ("against",)


@dataclass(frozen=True)
class Rule:
    """The rule of a file.

    ``name``: the file's name, without its folders.
    ``values``: what it says, by the name of the option; groupings and costs as objects.
    """

    name: str
    content: bytes
    values: dict[str, Any]

    @classmethod
    def from_file(cls, path: str | Path) -> Rule:
        """Read a rule from a ``.yaml`` or ``.yml`` file.

        OSError if it cannot be read; ValueError if the ending is another one, it is no plain file
        or larger than 64 kB, or it holds no rule.
        """
        path = Path(path)
        if path.suffix.lower() not in ENDINGS:
            raise ValueError(f"a rule file must end in {' or '.join(ENDINGS)}, got {path.name!r}")
        return cls.parse(untrusted.read_file(path, untrusted.MAX_TEXT, own=True), path.name)

    @classmethod
    def parse(cls, content: bytes, name: str) -> Rule:
        """Read a rule from the bytes of a file of that name.

        ValueError if they are more than 1 MB, no YAML, hold an anchor or a key twice, name what is
        no rule, or say it in another form; RemovedFeature if they hold an option that this version
        no longer has.
        """
        if len(content) > MAX_BYTES:
            raise ValueError(
                f"{name} must not be larger than {MAX_BYTES >> 20} MB, got {len(content):,} bytes"
            )
        try:
            data = untrusted.parsed_yaml(content, "a rule file")
        except ValueError as error:
            raise ValueError(f"{name} does not parse: {error}") from None
        if not isinstance(data, dict) or not data:
            raise ValueError(
                f"{name}: a rule file must map options to values ('margin: 0.01'), got {data!r:.60}"
            )
        values = {}
        deciding = CompareSpec.deciding()
        for key, value in data.items():
            removed = reason(f"compare({key}=)")
            if removed is not None:
                raise RemovedFeature(f"{name}: {removed}")
            if key not in deciding:
                hint = near(str(key), deciding) or f"; it may hold {', '.join(deciding)}"
                raise ValueError(f"{name}: {key!r:.60} is no rule{hint}")
            try:
                values[key] = deciding[key].read(value)
            except TypeError as error:
                raise ValueError(
                    f"{name}: {key} must be {deciding[key].form} ({error}), got {value!r:.60}"
                ) from None
            except RemovedFeature as error:
                raise RemovedFeature(f"{name}: {key}: {error}") from None
            except ValueError as error:
                raise ValueError(f"{name}: {key}: {error}") from None
        return cls(name, content, values)

    @cached_property
    def sha256(self) -> str:
        """Digest of the file's bytes, as ``sha256sum`` prints it."""
        return hashlib.sha256(self.content).hexdigest()

    @property
    def short(self) -> str:
        """The beginning of the digest, for people."""
        return self.sha256[:12]

    @property
    def sentence(self) -> str:
        """The sentence that says that the rule was fixed beforehand."""
        file = f"{quoted(self.name)} (SHA-256 {self.short}…)"
        return f"The rule was fixed beforehand, in the file {file}."

    @property
    def require(self) -> tuple[str, ...]:
        """The gates."""
        return tuple(several(self.values.get("require", ())))

    def without_gates(self, rank_by: str | None) -> Rule:
        """Return the rule to compare a run with its baseline; gates are checked afterwards.

        ``rank_by``: what runs are ranked by instead of what the file says; None: what it says.
        """
        left_out = ("require", "tie_breakers", "margin", "segments", "against")
        values = {name: value for name, value in self.values.items() if name not in left_out}
        return replace(self, values=values if rank_by is None else values | {"rank_by": rank_by})

    def applied(self, given: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
        """The options that decide, by name: the file's, from which given ones may not differ.

        ValueError if one that was given is another than the file's, or the file does not say it:
        the file is the whole rule.
        """
        out = {}
        for name in CompareSpec.deciding():
            silent = name not in self.values
            holds = defaults[name] if silent else self.values[name]
            if _same(given[name], defaults[name]):
                out[name] = holds
            elif _same(given[name], holds) or (silent and name in _MAY_STAND_BESIDE):
                out[name] = given[name]
            else:
                clause = f"does not hold {name!r}" if silent else f"says {holds!r:.60}"
                raise ValueError(
                    f"a rule file is the whole rule: {self.name} {clause}, got "
                    f"{name}={given[name]!r:.60} beside it"
                )
        return out

    def __str__(self) -> str:
        return self.name


def as_rule(rule: Any) -> Rule:
    """A rule as it is, or that of a file.

    TypeError, ValueError if it is none, or there is no such file.
    """
    if isinstance(rule, Rule):
        return rule
    if not isinstance(rule, (str, Path)):
        raise TypeError(f"rule must be the path of a YAML file, got {type(rule).__name__}")
    try:
        return Rule.from_file(rule)
    except OSError as error:
        raise ValueError(f"the rule file cannot be read: {error}") from None


def write_rule(options: Mapping[str, Any], defaults: Mapping[str, Any]) -> bytes:
    """The bytes of a rule file with the non-default options that decide."""
    import yaml

    data = {}
    for name in CompareSpec.deciding():
        value = options.get(name, defaults[name])
        if not _same(value, defaults[name]):
            data[name] = value.to_dict() if isinstance(value, (Costs, Grouping)) else _plain(value)
    data = data or {"confidence_level": defaults["confidence_level"]}
    text: str = yaml.safe_dump(data, allow_unicode=True, sort_keys=False, width=120)
    if len(content := text.encode("utf-8")) > MAX_BYTES:
        raise ValueError(
            f"the rule must not be larger than {MAX_BYTES >> 20} MB, got {len(content):,} bytes"
        )
    return content


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if isinstance(value, (str, bool, int, float)):
        return value
    return value.item() if hasattr(value, "item") else run_id_of(value) or str(value)


def _same(value: Any, other: Any) -> bool:
    """True if two values of an option say the same: a text alone is a list of one."""
    ours, theirs = ([one] if isinstance(one, str) else one for one in (value, other))
    if isinstance(ours, (list, tuple)) and isinstance(theirs, (list, tuple)):
        return [_joined(one) for one in ours] == [_joined(one) for one in theirs]
    if isinstance(ours, bool) != isinstance(theirs, bool):
        return False
    return bool(ours == theirs)


def _joined(division: Any) -> Any:
    """Crossed columns by the name that their segments go by."""
    return " × ".join(map(str, division)) if isinstance(division, (list, tuple)) else division
