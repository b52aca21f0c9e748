"""Packages whose names are imported when they are first used; the ``.pyi`` beside ``__init__.py`` lists them."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any


def lazy(package: str, init: str) -> tuple[Callable[[str], Any], list[str]]:
    """``__getattr__`` and ``__all__`` of a package.

    ``package``: its ``__name__``.
    ``init``: its ``__file__``; a line of the stub beside it is ``from module import name as name``.
    """
    with open(f"{init.rpartition('.')[0]}.pyi", encoding="utf-8") as stub:
        homes = {words[3]: words[1] for words in map(str.split, stub) if words[:1] == ["from"]}
    return found_in(package, homes), sorted(homes)


def found_in(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """``__getattr__`` of a module that shows names of others; ``homes`` are their modules by name."""

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(homes[name]), name)

    return find
