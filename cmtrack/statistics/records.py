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
        return all(_same(getattr(self, name), getattr(other, name)) for name in names)

    __hash__ = None  # type: ignore[assignment]


def _same(ours: Any, theirs: Any) -> bool:
    return np.array_equal(ours, theirs) if isinstance(ours, np.ndarray) else bool(ours == theirs)
