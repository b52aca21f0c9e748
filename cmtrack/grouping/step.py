"""A single step of a grouping: its groups, the pairs that are hits, and its plain data."""

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
    """A checked partition of classes, with the members and the accepted pairs of each group."""

    name: str
    members: Members
    acceptance: tuple[str | Pairs, ...]
    positive: Label | None

    @property
    def labels(self) -> tuple[Label, ...]:
        """Group names in order."""
        return tuple(group for group, _ in self.members)


def numbers_of_groups(step: Step) -> dict[Label, int]:
    """Return the index of the group to which each class belongs."""
    return {label: index for index, (_, labels) in enumerate(step.members) for label in labels}


def accepted_pairs(step: Step, labels: Sequence[Label]) -> npt.NDArray[np.bool_]:
    """Return a mask of the class pairs that are hits; both classes must be in the same group."""
    number_of = numbers_of_groups(step)
    group = np.array([number_of[label] for label in labels])
    accept: npt.NDArray[np.bool_] = group[:, None] == group[None, :]
    for index, rule in enumerate(step.acceptance):
        members = np.flatnonzero(group == index)
        inside = np.ix_(members, members)
        if rule == "strict":
            accept[inside] = np.eye(len(members), dtype=bool)
        elif not isinstance(rule, str):
            names = [labels[k] for k in members.tolist()]
            accept[inside] = [
                [(actual, predicted) in rule for predicted in names] for actual in names
            ]
    return accept


def mode_of(rule: str | Pairs) -> str:
    """Return the mode of a group: "relaxed", "strict" or "hybrid"."""
    if isinstance(rule, str):
        return rule
    return "hybrid"


def plain(value: Any) -> Label:
    """Convert a NumPy scalar to a Python scalar, and return any other value unchanged."""
    if isinstance(value, np.generic):
        return value.item()
    return value


def stored_label(value: Any) -> Label:
    """Return a label in the form in which files store it: a text, number or boolean.

    Dates, decimals, UUIDs and bytes become texts.

    Raises
    ------
    TypeError
        If files cannot store labels of this type, for example tuples.
    ValueError
        If the label is a text that UTF-8 cannot encode, or bytes that are not UTF-8.
    """
    label = plain(value)
    if isinstance(label, bytes):
        try:
            label = label.decode("utf-8")
        except UnicodeDecodeError:
            raise ValueError(
                f"labels that are bytes must be valid UTF-8, got {label!r:.80}"
            ) from None
    elif isinstance(label, (date, time, Decimal, UUID)):
        label = str(label)
    if isinstance(label, str):
        try:
            label.encode("utf-8")
        except UnicodeEncodeError:
            raise ValueError(
                f"labels that are strings must be encodable in UTF-8, got {label!r:.80}"
            ) from None
    elif not isinstance(label, (bool, int, float)):
        raise TypeError(
            "labels must be strings, numbers, booleans, dates, decimals, UUIDs or bytes, got "
            f"{label!r:.80} of type {type(label).__name__}"
        )
    return label


def same_label(label: Any) -> Any:
    """Convert a boolean or whole float to an integer, and return any other label unchanged.

    The classes ``False``, ``0`` and ``0.0`` are the same class in every comparison, because Python
    considers them equal. The texts of these classes differ, so code that compares labels by text
    must call this function first.
    """
    if isinstance(label, bool) or (isinstance(label, float) and label.is_integer()):
        return int(label)
    return label


def check_members(groups: Mapping[Any, Iterable[Any]]) -> Members:
    """Check that no group name or class is repeated, and return the groups' members as tuples."""
    if not isinstance(groups, Mapping):
        raise TypeError(f"groups must map group names to classes, got {type(groups).__name__}")
    if len(groups) < 2:
        raise ValueError(f"a grouping needs at least two groups, got {len(groups)}")
    members: list[tuple[Label, tuple[Label, ...]]] = []
    group_of: dict[Label, Label] = {}
    if len({str(plain(name)) for name in groups}) < len(groups):
        raise ValueError(
            "group names must differ as strings, because metric names contain them, got "
            f"{list(groups)}"
        )
    for name, classes in groups.items():
        if isinstance(classes, (str, bytes)) or not isinstance(classes, Iterable):
            raise ValueError(f"group {name!r} must list its classes, got {classes!r}")
        labels = tuple(map(stored_label, classes))
        if not labels:
            raise ValueError(f"group {name!r} must have at least one class, got none")
        for label in labels:
            if label in group_of:
                raise ValueError(
                    f"a class must be in exactly one group, got {label!r} in {group_of[label]!r} "
                    f"and in {name!r}"
                )
            group_of[label] = name
        members.append((plain(name), labels))
    return tuple(members)


def check_mode(members: Members, mode: Mode, include_diagonal: bool) -> tuple[str | Pairs, ...]:
    """Check the mode, and return for each group the rule that decides which pairs are hits."""
    if isinstance(mode, str):
        _check_word(mode)
        return tuple(mode for _ in members)
    if not isinstance(mode, Mapping):
        raise TypeError(
            f"mode must be 'relaxed', 'strict' or a mapping by group, got {type(mode).__name__}"
        )
    groups = dict(members)
    unknown = [group for group in mode if group not in groups]
    if unknown:
        raise ValueError(
            f"mode must name groups of the grouping, got {unknown}; the groups are {list(groups)}"
        )
    return tuple(
        _check_acceptance(group, classes, mode.get(group, "relaxed"), include_diagonal)
        for group, classes in members
    )


def _check_word(word: str) -> None:
    if word not in _WORDS:
        raise ValueError(f"mode must be 'relaxed', 'strict', pairs or a callable, got {word!r}")


def _check_acceptance(
    group: Label, members: tuple[Label, ...], accepted: Acceptance, include_diagonal: bool
) -> str | Pairs:
    """Check the mode of one group, and return the mode or the accepted pairs."""
    if isinstance(accepted, str):
        _check_word(accepted)
        return accepted
    if callable(accepted):
        pairs = {(a, p) for a in members for p in members if accepted(a, p)}
    else:
        pairs = {_check_pair(item, group, members) for item in accepted}
    if include_diagonal:
        pairs |= {(label, label) for label in members}
    return frozenset(pairs)


def _check_pair(pair: Any, group: Label, members: tuple[Label, ...]) -> tuple[Label, Label]:
    """Check a pair of a hybrid group, and return it as (actual, predicted)."""
    labels = [plain(label) for label in pair] if isinstance(pair, Iterable) else []
    if len(labels) != 2:
        raise ValueError(
            f"a hybrid pair must be (actual, predicted), got {pair!r} in group {group!r}"
        )
    actual, predicted = labels
    if actual not in members or predicted not in members:
        raise ValueError(
            f"a hybrid pair must be inside its group, got {(actual, predicted)!r} in {group!r}"
        )
    return actual, predicted


def check_cover(step: Step, names: Sequence[Label], what: str) -> None:
    """Raise ValueError unless the members of a step are exactly ``names``."""
    members = numbers_of_groups(step)
    wanted = set(names)
    missing = [name for name in names if name not in members]
    unknown = [member for member in members if member not in wanted]
    if missing or unknown:
        raise ValueError(
            f"step {step.name!r} must group {what} {list(names)}: missing {missing}, unknown "
            f"{unknown}"
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
            rule if isinstance(rule, str) else sorted(map(list, rule), key=repr)
            for rule in step.acceptance
        ]
        # The pairs of a hybrid group already include all pairs of equal classes that are hits.
        written["include_diagonal"] = False
    if step.positive is not None:
        written["positive"] = step.positive
    return written


MAX_RANGE = 100_000
"""Maximum number of classes in a range in a file; a larger range would fill the memory."""


def read_step(data: Mapping[str, Any]) -> dict[str, Any]:
    """Read the options of a step from plain data."""
    keys = {"groups", "mode", "positive", "name", "include_diagonal"}
    if "groups" not in data or set(data) - keys:
        raise ValueError(
            f"a grouping must have 'groups', and may have {sorted(keys - {'groups'})}, "
            f"got {list(data)}"
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
                f"a list of modes must contain one mode for each group, got {len(mode)} for "
                f"{len(groups)} groups"
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
"""Maximum size in bytes of a JSON file; a program may write one for thousands of classes."""


def read_file(path: str | Path, what: str) -> Any:
    """Read the plain data of a YAML file of at most 64 kB, or of a JSON file of at most 4 MB."""
    path = Path(path)
    ending = path.suffix.lower()
    if ending not in (".yaml", ".yml", ".json"):
        raise ValueError(f"{what} must end in .yaml, .yml or .json, got {path.name!r}")
    is_json = ending == ".json"
    limit = _MAX_JSON if is_json else untrusted.MAX_TEXT
    content = untrusted.read_file(path, limit, own=True)
    try:
        if is_json:
            return untrusted.parsed_json(content)
        return untrusted.parsed_yaml(content, what)
    except ValueError as error:
        raise ValueError(f"{path.name} does not parse: {error}") from None


def _read_classes(name: Label, classes: Any) -> Iterable[Any]:
    """Read the classes of a group, which are a list, or a range that includes both ends."""
    if isinstance(classes, Mapping):
        try:
            members = range(int(classes["from"]), int(classes["to"]) + 1)
        except (KeyError, TypeError, ValueError, OverflowError):
            raise ValueError(
                "a range of classes must be like {from: 0, to: 6}, "
                f"got {dict(classes)} in group {name!r}"
            ) from None
        if members.stop - members.start > MAX_RANGE:
            raise ValueError(
                f"a range must name at most {MAX_RANGE:,} classes, "
                f"got {dict(classes)} in group {name!r}"
            )
        return members
    if not isinstance(classes, list):
        raise ValueError(f"group {name!r} must list its classes, got {classes!r:.60}")
    return classes


def describe_step(step: Step) -> str:
    """Describe a step in words: each group's classes, and its mode if it is not relaxed."""
    groups = []
    for (group, classes), rule in zip(step.members, step.acceptance, strict=True):
        words = str(group)
        if classes != (group,):
            words += f" = {_list_classes(classes)}"
        mode = mode_of(rule)
        if mode != "relaxed":
            words += f" ({mode})"
        groups.append(words)
    return f"{step.name}: {'; '.join(groups)}"


def _list_classes(classes: tuple[Label, ...]) -> str:
    """Format classes as a list, or as a range such as ``0-6`` if there are at least three."""
    first = classes[0]
    if isinstance(first, int) and len(classes) > 2:
        consecutive = range(first, first + len(classes))
        if all(isinstance(label, int) for label in classes) and classes == tuple(consecutive):
            return f"{first}-{classes[-1]}"
    return ", ".join(map(str, classes))
