"""Evaluate a classifier properly after every training run, and see the result in MLflow.

Each name of the package is imported when it is first used, so that ``import cmtrack`` is fast and
has no side effects.
"""

from __future__ import annotations

from typing import Any

from cmtrack._lazy import lazy

_find, __all__ = lazy(__name__, __file__)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("cmtrack")
    return _find(name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
