"""Packages whose names are imported when they are first used; the ``.pyi`` beside ``__init__.py`` lists them."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any


def lazy(package: str, init: str) -> tuple[Callable[[str], Any], list[str]]:
    """``__getattr__`` and ``__all__`` of a package.

    Parameters
    ----------
    package : str
        Its ``__name__``.
    init : str
        Its ``__file__``.
    """
    lines = ast.parse(Path(init).with_suffix(".pyi").read_text(encoding="utf-8")).body
    homes = {name.name: line.module for line in lines if isinstance(line, ast.ImportFrom) for name in line.names}

    def find(name: str) -> Any:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(home), name)

    return find, sorted(homes)
