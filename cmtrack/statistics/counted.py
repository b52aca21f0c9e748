"""Statistics in two versions, with weights and with squared weights for standard errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

T = TypeVar("T")
S = TypeVar("S")


@dataclass(frozen=True, eq=False)
class Counted(Generic[T]):
    """One statistic, computed both with the weights of the rows and with their squares.

    If there are no weights, or if weights are numbers of identical rows, both versions are equal.
    ``squares`` and ``sums`` are then the same object, so that nothing is computed twice.
    """

    sums: T
    squares: T

    @classmethod
    def unweighted(cls, sums: T) -> Counted[T]:
        """Return a pair for rows without weights, or with weights that are numbers of rows."""
        return cls(sums, sums)

    @property
    def fractional(self) -> bool:
        """True for sampling weights, for which the two versions differ."""
        return self.squares is not self.sums

    def map(self, change: Callable[[T], S]) -> Counted[S]:
        """Apply a function to the sums and, if they differ, also to the sums of squares."""
        sums = change(self.sums)
        return Counted(sums, change(self.squares) if self.fractional else sums)

    def effective_size(self) -> Any:
        """Return the number of rows; for sampling weights, Kish's effective number of rows.

        For weights w, Kish (1965) defines it as (sum of w)^2 / sum of w^2. If there are no rows,
        the result is 0.
        """
        if not self.fractional:
            return self.sums
        sums = np.asarray(self.sums)
        squares = np.asarray(self.squares)
        return np.divide(sums**2, squares, out=np.zeros(sums.shape), where=squares > 0)
