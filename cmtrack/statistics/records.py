"""Records of arrays that are equal field by field."""

from __future__ import annotations

from typing import Any

import numpy as np


class Record:
    """Base of dataclasses with arrays among their fields: equal to one of the same type whose fields all are."""

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        names: Any = self.__dataclass_fields__  # type: ignore[attr-defined]  # all are dataclasses
        pairs = ((getattr(self, name), getattr(other, name)) for name in names)
        return all(
            np.array_equal(a, b) if isinstance(a, np.ndarray) else bool(a == b) for a, b in pairs
        )

    __hash__ = None  # type: ignore[assignment]
