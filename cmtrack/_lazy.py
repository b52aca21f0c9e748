"""Imports at first use: names of a package (the ``.pyi`` beside it lists them), libraries that may be missing."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from cmtrack.removed import reason

if TYPE_CHECKING:
    from functools import cached_property as cached_property
else:

    class cached_property(functools.cached_property):
        """A property that is computed once, without the lock of Python 3.11.

        That lock is one for all objects of a class. A worker that is forked while another thread computes the property
        inherits it, and would wait for ever.
        """

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            values = instance.__dict__
            if self.attrname not in values:
                values[self.attrname] = self.func(instance)
            return values[self.attrname]


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
            removed = reason(f"{package}.{name}")
            # `from package import name` would hide the text of an AttributeError
            if removed is not None:
                raise ImportError(removed, name=package)
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(homes[name]), name)

    return find


@contextmanager
def needs(use: str, install: str) -> Iterator[None]:
    """Turn the failed import of a library into one sentence: the use that needs it, and what pip is to install."""
    try:
        yield
    except ImportError as error:
        missing = error.name or install
        state = (
            "is not installed"
            if isinstance(error, ModuleNotFoundError)
            else f"cannot be imported ({error})"
        )
        raise type(error)(
            f"{use} needs {missing}, which {state}: pip install {install}", name=missing
        ) from error
