"""A grouping step as plain data, as JSON and YAML hold it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cmtrack.grouping.step import Label, Step


def write_step(step: Step) -> dict[str, Any]:
    """Write a step as plain data."""
    written: dict[str, Any] = {"name": step.name}
    if all(isinstance(group, str) for group in step.labels):
        written["groups"] = {group: list(own) for group, own in step.members}
    else:
        written["groups"] = [[group, list(own)] for group, own in step.members]
    if len(set(step.acceptance)) == 1 and isinstance(step.acceptance[0], str):
        written["mode"] = step.acceptance[0]
    else:
        written["mode"] = [
            rule if isinstance(rule, str) else sorted(([a, p] for a, p in rule), key=repr) for rule in step.acceptance
        ]
        written["include_diagonal"] = False
    if step.positive is not None:
        written["positive"] = step.positive
    return written


MAX_RANGE = 100_000
"""Most classes that a file may name by their ends."""


def read_step(data: Mapping[str, Any]) -> dict[str, Any]:
    """Read the options of a step from plain data."""
    known = {"groups", "mode", "positive", "name", "include_diagonal"}
    if "groups" not in data or set(data) - known:
        raise ValueError(f"a grouping has 'groups' and maybe {sorted(known - {'groups'})}, got {list(data)}")
    groups = data["groups"]
    if isinstance(groups, list):
        try:
            groups = dict(groups)
        except (TypeError, ValueError):
            raise ValueError("'groups' must map names to classes or list [name, classes]") from None
    if not isinstance(groups, Mapping):
        raise ValueError(f"'groups' must map group names to lists of classes, got {groups!r:.60}")
    mode = data.get("mode") or "relaxed"
    if isinstance(mode, list):
        if len(mode) != len(groups):
            raise ValueError(f"a list of modes needs one per group, got {len(mode)} for {len(groups)} groups")
        mode = dict(zip(groups, mode, strict=True))
    return {
        "groups": {name: _read_classes(name, classes) for name, classes in groups.items()},
        "mode": mode,
        "positive": data.get("positive"),
        "name": data.get("name"),
        "include_diagonal": bool(data.get("include_diagonal", True)),
    }


def _read_classes(name: Label, classes: Any) -> Iterable[Any]:
    if isinstance(classes, Mapping):
        try:
            members = range(int(classes["from"]), int(classes["to"]) + 1)
        except (KeyError, TypeError, ValueError, OverflowError):
            raise ValueError(
                f"a range of classes is {{from: 0, to: 6}}, got {dict(classes)} in group {name!r}"
            ) from None
        if members.stop - members.start > MAX_RANGE:
            raise ValueError(f"a range must name at most {MAX_RANGE:,} classes, got {dict(classes)} in group {name!r}")
        return members
    if not isinstance(classes, list):
        raise ValueError(f"group {name!r} must list its classes, got {classes!r:.60}")
    return classes


def describe_step(step: Step) -> str:
    """A step in words: each group's classes, and how its pairs count where not relaxed."""
    parts = []
    for (group, classes), rule in zip(step.members, step.acceptance, strict=True):
        how = rule if isinstance(rule, str) else "hybrid"
        own = "" if classes == (group,) else f" = {_listed(classes)}"
        parts.append(f"{group}{own}" + ("" if how == "relaxed" else f" ({how})"))
    return f"{step.name}: {'; '.join(parts)}"


def _listed(classes: tuple[Label, ...]) -> str:
    whole = [c for c in classes if isinstance(c, int)]
    if len(whole) == len(classes) > 2 and whole == list(range(whole[0], whole[0] + len(whole))):
        return f"{whole[0]}-{whole[-1]}"
    return ", ".join(map(str, classes))
