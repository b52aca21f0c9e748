"""Sums of weights together with sums of squared weights, which standard errors need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

T = TypeVar("T")
S = TypeVar("S")


@dataclass(frozen=True, eq=False)
class Counted(Generic[T]):
    """One statistic of rows, summed with their weights and with their squared weights.

    Without weights, or if weights are numbers of equal rows, both sums are equal. Then ``squares``
    is the object ``sums``, so that nothing is computed twice.
    """

    sums: T
    squares: T

    @classmethod
    def unweighted(cls, sums: T) -> Counted[T]:
        """Return the statistic of rows without weights, or with numbers of equal rows."""
        return cls(sums, sums)

    @property
    def fractional(self) -> bool:
        """True for sampling weights, whose squares differ from the weights."""
        return self.squares is not self.sums

    def map(self, change: Callable[[T], S]) -> Counted[S]:
        """Apply a function to the sums, and to the sums of squares if they differ."""
        sums = change(self.sums)
        return Counted(sums, change(self.squares) if self.fractional else sums)

    def effective_size(self) -> Any:
        """Return the number of rows, or Kish's effective number for sampling weights.

        Kish (1965): (sum of w)^2 / sum of w^2; 0 without rows.
        """
        if not self.fractional:
            return self.sums
        sums = np.asarray(self.sums)
        squares = np.asarray(self.squares)
        return np.divide(sums**2, squares, out=np.zeros(sums.shape), where=squares > 0)
