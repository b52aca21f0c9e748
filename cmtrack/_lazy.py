"""Lazy imports of optional libraries and of the names that a package's stub lists."""

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
        """A property that is computed once, without the lock that Python 3.11 uses.

        All objects of a class share this lock. If a worker is forked while another thread computes
        the property, the worker inherits the locked lock and waits forever.
        """

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            values = instance.__dict__
            if self.attrname not in values:
                values[self.attrname] = self.func(instance)
            return values[self.attrname]


def lazy(package: str, init: str) -> tuple[Callable[[str], Any], list[str]]:
    """Return ``__getattr__`` and ``__all__`` for a package.

    ``package``: the package's ``__name__``.
    ``init``: the package's ``__file__``. Each line of the stub next to this file reads
    ``from module import name as name``.
    """
    with open(f"{init.rpartition('.')[0]}.pyi", encoding="utf-8") as stub:
        imports = [line.split() for line in stub if line.startswith("from ")]
    modules = {name: module for _, module, _, name, *_ in imports}
    return found_in(package, modules), sorted(modules)


def found_in(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Return ``__getattr__`` for a package that re-exports names from other modules.

    ``modules``: for each exported name, the module that defines it.
    """

    def find(name: str) -> Any:
        if name in modules:
            return getattr(importlib.import_module(modules[name]), name)
        removed = reason(f"{package}.{name}")
        if removed is not None:
            # `from package import name` would hide the message of an AttributeError.
            raise ImportError(removed, name=package)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return find


@contextmanager
def needs(use: str, install: str) -> Iterator[None]:
    """Explain an import error: say what needs the library and how to install it."""
    try:
        yield
    except ImportError as error:
        missing = error.name or install
        state = f"cannot be imported ({error})"
        if isinstance(error, ModuleNotFoundError):
            state = "is not installed"
        raise type(error)(
            f"{use} needs {missing}, which {state}: pip install {install}", name=missing
        ) from error
