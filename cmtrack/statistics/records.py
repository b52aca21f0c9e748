"""Base class for records with arrays, which are compared field by field."""

from __future__ import annotations

from typing import Any

import numpy as np


class Record:
    """Base of dataclasses with arrays among their fields, which are equal if all fields are equal.

    Records of different types are never equal. Records have no hash, because arrays have none.
    """

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        names: Any = self.__dataclass_fields__  # type: ignore[attr-defined]  # a dataclass
        return all(_is_equal(getattr(self, name), getattr(other, name)) for name in names)

    __hash__ = None  # type: ignore[assignment]


def _is_equal(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, np.ndarray):
        return np.array_equal(ours, theirs)
    return bool(ours == theirs)
