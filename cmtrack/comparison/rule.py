"""Rules for comparisons, which are written to a file before the results are known."""

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
"""Largest size of a rule in a bundle, which also contains groupings and costs."""
ENDINGS = (".yaml", ".yml")


# options that may be given as arguments if the file does not contain them
_MAY_STAND_BESIDE = ("against",)


@dataclass(frozen=True)
class Rule:
    """The rule that a file specifies.

    ``name``: name of the file, without folders.
    ``values``: values of the options in the file, by the option's name. Groupings and costs are
    stored as objects.
    """

    name: str
    content: bytes
    values: dict[str, Any]

    @classmethod
    def from_file(cls, path: str | Path) -> Rule:
        """Read a rule from a ``.yaml`` or ``.yml`` file.

        Raises OSError if the file cannot be read. Raises ValueError if the name of the file has a
        different ending, if it is not a regular file, if it is larger than 64 kB, or if it does not
        contain a rule.
        """
        path = Path(path)
        if path.suffix.lower() not in ENDINGS:
            raise ValueError(f"a rule file must end in {' or '.join(ENDINGS)}, got {path.name!r}")
        return cls.parse(untrusted.read_file(path, untrusted.MAX_TEXT, own=True), path.name)

    @classmethod
    def parse(cls, content: bytes, name: str) -> Rule:
        """Read a rule from the bytes of a file.

        Raises ValueError if the file is larger than 1 MB, is not valid YAML, or contains an anchor,
        a repeated key, an unknown option or an invalid value. Raises RemovedFeature if the file
        contains an option that this version no longer supports.
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
                hint = near(str(key), deciding) or f"; options are {', '.join(deciding)}"
                raise ValueError(f"{name}: {key!r:.60} is not an option of a rule{hint}")
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
        """Digest of the file's bytes, in the format of ``sha256sum``."""
        return hashlib.sha256(self.content).hexdigest()

    @property
    def short(self) -> str:
        """The first 12 characters of the file's digest."""
        return self.sha256[:12]

    @property
    def sentence(self) -> str:
        """Sentence for the review, which states that the rule was fixed beforehand."""
        file = f"{quoted(self.name)} (SHA-256 {self.short}…)"
        return f"The rule was fixed beforehand, in the file {file}."

    @property
    def require(self) -> tuple[str, ...]:
        """The gates that the rule specifies."""
        return tuple(several(self.values.get("require", ())))

    def without_gates(self, rank_by: str | None) -> Rule:
        """Return the rule without its gates, to compare a run with its baseline before gates apply.

        ``rank_by``: metric that replaces the metric in the file; None to use the metric in the
        file.
        """
        left_out = ("require", "tie_breakers", "margin", "segments", "against")
        values = {name: value for name, value in self.values.items() if name not in left_out}
        return replace(self, values=values if rank_by is None else values | {"rank_by": rank_by})

    def applied(self, given: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options from the file by name, and defaults for all other deciding options.

        Raises ValueError if a given option differs from the file or is not in the file, because the
        file is the whole rule.
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
                clause = f"does not have {name!r}" if silent else f"has {holds!r:.60}"
                raise ValueError(
                    f"a rule file contains the whole rule: {self.name} {clause}, but the "
                    f"argument is {name}={given[name]!r:.60}"
                )
        return out

    def __str__(self) -> str:
        return self.name


def as_rule(rule: Any) -> Rule:
    """Return a rule, which is read from a file if the argument is a path.

    Raises TypeError or ValueError if the argument is not a rule or a path, or if the file does not
    exist.
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
    """Return the bytes of a rule file with the deciding options that differ from the defaults."""
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
    """Return whether two values of an option mean the same, as "a" and ["a"] do."""
    ours, theirs = ([one] if isinstance(one, str) else one for one in (value, other))
    if isinstance(ours, (list, tuple)) and isinstance(theirs, (list, tuple)):
        return [_joined(one) for one in ours] == [_joined(one) for one in theirs]
    if isinstance(ours, bool) != isinstance(theirs, bool):
        return False
    return bool(ours == theirs)


def _joined(division: Any) -> Any:
    """Return the name of a column or of crossed columns."""
    return " × ".join(map(str, division)) if isinstance(division, (list, tuple)) else division
