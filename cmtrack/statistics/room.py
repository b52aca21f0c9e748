"""Memory that a thread reuses for every block of rows: new pages cost more than a pass over them."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Thing = TypeVar("Thing")
_HELD = threading.local()
_MOST = 1 << 24
"""Bytes up to which memory is kept."""


def room(name: str, shape: tuple[int, ...], dtype: npt.DTypeLike = np.float64) -> npt.NDArray[Any]:
    """A buffer with arbitrary content, valid until the thread asks for one of this name again."""
    size, kind = math.prod(shape), np.dtype(dtype)
    name = f"{name} {kind.char}"
    memory: npt.NDArray[Any] | None = getattr(_HELD, name, None)
    if memory is None or len(memory) < size:
        memory = np.empty(size, dtype=kind)
        if memory.nbytes <= _MOST:
            setattr(_HELD, name, memory)
    return memory[:size].reshape(shape)


def kept(name: str, make: Callable[[], Thing]) -> Thing:
    """The thing of this name that the thread made before, or makes now."""
    held = vars(_HELD)
    return held[name] if name in held else held.setdefault(name, make())
