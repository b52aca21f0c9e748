"""One checked grouping step: the members of each group and the pairs inside it that are hits; and its plain data."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, time
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeAlias
from uuid import UUID

import numpy as np
import numpy.typing as npt

from cmtrack import untrusted

Label: TypeAlias = Hashable
Pairs: TypeAlias = frozenset[tuple[Label, Label]]
Members: TypeAlias = tuple[tuple[Label, tuple[Label, ...]], ...]
Acceptance: TypeAlias = "str | Iterable[tuple[Label, Label]] | Callable[[Any, Any], bool]"
Mode: TypeAlias = "str | Mapping[Label, Acceptance]"

_WORDS = ("relaxed", "strict")


@dataclass(frozen=True)
class Step:
    """One grouping: members by group name and the acceptance of each group."""

    name: str
    members: Members
    acceptance: tuple[str | Pairs, ...]
    positive: Label | None

    @property
    def labels(self) -> tuple[Label, ...]:
        """Group names in order."""
        return tuple(group for group, _ in self.members)


def accepted_pairs(
    step: Step, current: Sequence[Label], home: Mapping[Label, int]
) -> npt.NDArray[np.bool_]:
    """Pairs of the current classes that are hits within their group (False across groups)."""
    place = np.array([home[c] for c in current])
    accept: npt.NDArray[np.bool_] = place[:, None] == place[None, :]
    for index, rule in enumerate(step.acceptance):
        at = np.flatnonzero(place == index)
        if rule == "strict":
            accept[np.ix_(at, at)] = np.eye(len(at), dtype=bool)
        elif not isinstance(rule, str):
            accept[np.ix_(at, at)] = [
                [(current[int(i)], current[int(j)]) in rule for j in at] for i in at
            ]
    return accept


def plain(value: Any) -> Label:
    """A NumPy scalar as the Python scalar it equals."""
    return value.item() if isinstance(value, np.generic) else value


def stored_label(value: Any) -> Label:
    """A label as files hold it: a text, number or boolean; dates, decimals, UUIDs and bytes become their text.

    Raises
    ------
    TypeError
        If it is of another type, such as a tuple.
    ValueError
        If it is a text that UTF-8 cannot encode, or bytes that are no UTF-8.
    """
    label = plain(value)
    if isinstance(label, bytes):
        try:
            label = label.decode("utf-8")
        except UnicodeDecodeError:
            raise ValueError(f"labels of bytes must be texts in UTF-8, got {label!r:.80}") from None
    elif isinstance(label, (date, time, Decimal, UUID)):
        label = str(label)
    if isinstance(label, str):
        try:
            label.encode("utf-8")
        except UnicodeEncodeError:
            raise ValueError(
                f"labels must be texts that UTF-8 can encode, got {label!r:.80}"
            ) from None
    elif not isinstance(label, (bool, int, float)):
        raise TypeError(
            f"labels must be texts, numbers, booleans, dates, decimals, UUIDs or bytes, got {label!r:.80} of type "
            f"{type(label).__name__}"
        )
    return label


def same_label(label: Any) -> Any:
    """A boolean or a whole float as the integer that it equals; any other label as it is.

    The classes ``False``, ``0`` and ``0.0`` are one class in every comparison, as they are for Python. Their texts
    differ, so whatever is compared by text takes the label from here.
    """
    if isinstance(label, bool) or (isinstance(label, float) and label.is_integer()):
        return int(label)
    return label


def check_members(groups: Mapping[Any, Iterable[Any]]) -> Members:
    """Check that groups have names and classes of their own, and return them as tuples."""
    if not isinstance(groups, Mapping):
        raise TypeError(f"groups must map group names to classes, got {type(groups).__name__}")
    if len(groups) < 2:
        raise ValueError(f"a grouping needs at least two groups, got {len(groups)}")
    members: list[tuple[Label, tuple[Label, ...]]] = []
    owner: dict[Label, Label] = {}
    if len({str(plain(name)) for name in groups}) < len(groups):
        raise ValueError(f"group names must differ as texts, for metric names, got {list(groups)}")
    for name, classes in groups.items():
        if isinstance(classes, (str, bytes)) or not isinstance(classes, Iterable):
            raise ValueError(f"group {name!r} must list its classes, got {classes!r}")
        labels = tuple(map(stored_label, classes))
        if not labels:
            raise ValueError(f"group {name!r} must have at least one class, got none")
        for label in labels:
            if label in owner:
                raise ValueError(
                    f"a class must be in exactly one group, got {label!r} in {owner[label]!r} and in {name!r}"
                )
            owner[label] = name
        members.append((plain(name), labels))
    return tuple(members)


def check_mode(members: Members, mode: Mode, include_diagonal: bool) -> tuple[str | Pairs, ...]:
    """Check how the pairs inside each group count, and return the rule of each group."""
    if isinstance(mode, str):
        _check_word(mode)
        return tuple(mode for _ in members)
    if not isinstance(mode, Mapping):
        raise TypeError(
            f"mode must be 'relaxed', 'strict' or a mapping by group, got {type(mode).__name__}"
        )
    groups = dict(members)
    unknown = [g for g in mode if g not in groups]
    if unknown:
        raise ValueError(
            f"mode must name groups of the grouping, got {unknown}; the groups are {list(groups)}"
        )
    return tuple(
        _check_acceptance(g, classes, mode.get(g, "relaxed"), include_diagonal)
        for g, classes in members
    )


def _check_word(word: str) -> None:
    if word not in _WORDS:
        raise ValueError(f"mode must be 'relaxed', 'strict', pairs or a callable, got {word!r}")


def _check_acceptance(
    group: Label, own: tuple[Label, ...], accepted: Acceptance, include_diagonal: bool
) -> str | Pairs:
    if isinstance(accepted, str):
        _check_word(accepted)
        return accepted
    if callable(accepted):
        pairs = {(a, p) for a in own for p in own if accepted(a, p)}
    else:
        pairs = set()
        for item in accepted:
            pair = tuple(plain(v) for v in item) if isinstance(item, Iterable) else (item,)
            if len(pair) != 2:
                raise ValueError(
                    f"a hybrid pair must be (actual, predicted), got {item!r} in group {group!r}"
                )
            if pair[0] not in own or pair[1] not in own:
                raise ValueError(
                    f"a hybrid pair must lie inside its group, got {pair!r} in {group!r}"
                )
            pairs.add(pair)
    if include_diagonal:
        pairs |= {(c, c) for c in own}
    return frozenset(pairs)


def check_cover(step: Step, names: Sequence[Label], what: str) -> None:
    """Refuse a step whose members are not exactly ``names``."""
    named = [member for _, classes in step.members for member in classes]
    members, wanted = set(named), set(names)
    missing = [n for n in names if n not in members]
    strange = [n for n in named if n not in wanted]
    if missing or strange:
        raise ValueError(
            f"step {step.name!r} must group {what} {list(names)}: missing {missing}, not among them {strange}"
        )


def write_step(step: Step) -> dict[str, Any]:
    """Write a step as plain data."""
    written: dict[str, Any] = {"name": step.name}
    if all(isinstance(group, str) for group in step.labels):
        written["groups"] = {group: list(classes) for group, classes in step.members}
    else:
        written["groups"] = [[group, list(classes)] for group, classes in step.members]
    if len(set(step.acceptance)) == 1 and isinstance(step.acceptance[0], str):
        written["mode"] = step.acceptance[0]
    else:
        written["mode"] = [
            rule if isinstance(rule, str) else sorted(([a, p] for a, p in rule), key=repr)
            for rule in step.acceptance
        ]
        written["include_diagonal"] = False
    if step.positive is not None:
        written["positive"] = step.positive
    return written


MAX_RANGE = 100_000
"""Most classes that a file may name by their ends."""


def read_step(data: Mapping[str, Any]) -> dict[str, Any]:
    """Read the options of a step from plain data."""
    keys = {"groups", "mode", "positive", "name", "include_diagonal"}
    if "groups" not in data or set(data) - keys:
        raise ValueError(
            f"a grouping must have 'groups', and may have {sorted(keys - {'groups'})}, got {list(data)}"
        )
    groups = data["groups"]
    if isinstance(groups, list):
        try:
            groups = dict(groups)
        except (TypeError, ValueError):
            raise ValueError(
                f"'groups' must map names to classes or list [name, classes], got {groups!r:.60}"
            ) from None
    if not isinstance(groups, Mapping):
        raise ValueError(f"'groups' must map group names to lists of classes, got {groups!r:.60}")
    mode = data.get("mode") or "relaxed"
    if isinstance(mode, list):
        if len(mode) != len(groups):
            raise ValueError(
                f"a list of modes needs one per group, got {len(mode)} for {len(groups)} groups"
            )
        mode = dict(zip(groups, mode, strict=True))
    return {
        "groups": {name: _read_classes(name, classes) for name, classes in groups.items()},
        "mode": mode,
        "positive": data.get("positive"),
        "name": data.get("name"),
        "include_diagonal": bool(data.get("include_diagonal", True)),
    }


_MAX_JSON = 4 << 20


def read_file(path: str | Path, what: str) -> Any:
    """The plain data of a ``.yaml`` or ``.yml`` file of at most 64 kB, or of a ``.json`` file of at most 4 MB."""
    path = Path(path)
    ending = path.suffix.lower()
    if ending not in (".yaml", ".yml", ".json"):
        raise ValueError(f"{what} must end in .yaml, .yml or .json, got {path.name!r}")
    content = untrusted.read_file(
        path, _MAX_JSON if ending == ".json" else untrusted.MAX_TEXT, own=True
    )
    try:
        return (
            untrusted.parsed_json(content)
            if ending == ".json"
            else untrusted.parsed_yaml(content, what)
        )
    except ValueError as error:
        raise ValueError(f"{path.name} does not parse: {error}") from None


def _read_classes(name: Label, classes: Any) -> Iterable[Any]:
    if isinstance(classes, Mapping):
        try:
            members = range(int(classes["from"]), int(classes["to"]) + 1)
        except (KeyError, TypeError, ValueError, OverflowError):
            raise ValueError(
                f"a range of classes must be like {{from: 0, to: 6}}, got {dict(classes)} in group {name!r}"
            ) from None
        if members.stop - members.start > MAX_RANGE:
            raise ValueError(
                f"a range must name at most {MAX_RANGE:,} classes, got {dict(classes)} in group {name!r}"
            )
        return members
    if not isinstance(classes, list):
        raise ValueError(f"group {name!r} must list its classes, got {classes!r:.60}")
    return classes


def describe_step(step: Step) -> str:
    """A step in words: each group's classes, and how its pairs count where not relaxed."""
    parts = []
    for (group, classes), rule in zip(step.members, step.acceptance, strict=True):
        how = rule if isinstance(rule, str) else "hybrid"
        listed = "" if classes == (group,) else f" = {_listed(classes)}"
        parts.append(f"{group}{listed}" + ("" if how == "relaxed" else f" ({how})"))
    return f"{step.name}: {'; '.join(parts)}"


def _listed(classes: tuple[Label, ...]) -> str:
    whole = [c for c in classes if isinstance(c, int)]
    if len(whole) == len(classes) > 2 and whole == list(range(whole[0], whole[0] + len(whole))):
        return f"{whole[0]}-{whole[-1]}"
    return ", ".join(map(str, classes))
