"""A memory buffer that a thread reuses for every block of rows: new pages cost more than a pass over them."""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np
import numpy.typing as npt

_HELD = threading.local()
_MOST = 1 << 23
"""Bytes up to which memory is kept."""


def room(name: str, shape: tuple[int, ...], dtype: npt.DTypeLike = np.float64) -> npt.NDArray[Any]:
    """A buffer with arbitrary content, valid until the thread asks for one of this name again."""
    size, kind = math.prod(shape), np.dtype(dtype)
    memory: npt.NDArray[Any] | None = getattr(_HELD, name, None)
    if memory is None or len(memory) < size or memory.dtype != kind:
        memory = np.empty(size, dtype=kind)
        if memory.nbytes <= _MOST:
            setattr(_HELD, name, memory)
    return memory[:size].reshape(shape)
