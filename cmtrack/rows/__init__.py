"""Single rows across runs: flips, and rows that most runs get wrong.

This room counts or finds rows by comparing several runs, and joins a table to rows by ids. The rows
that a comparison lists are in ``cmtrack.comparison``. Start with :class:`Flips`, which counts rows
that only one of two runs predicts correctly. :class:`Missed` has the rows that several runs get
wrong, and ``join`` finds the row of a table for each row of an evaluation.
"""

from typing import TYPE_CHECKING

from cmtrack._lazy import found_in
from cmtrack.rows.flips import Flips
from cmtrack.rows.missed import Missed

__all__ = ["Flips", "Missed"]

if not TYPE_CHECKING:  # a type checker would otherwise accept every name
    # the error about a removed name says what to use instead
    __getattr__ = found_in(__name__, {})
