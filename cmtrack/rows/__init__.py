"""Individual rows across runs: rows that only one run predicts correctly, and common errors.

This package compares several runs row by row to count or find rows. It also matches the rows of a
table to the rows of an evaluation by id. The code that selects the rows to list in a comparison is
in ``cmtrack.comparison``. Start with :class:`Flips`, which counts rows that only one of two runs
predicts correctly. :class:`Missed` lists the rows that several runs predict wrongly. For each row
of an evaluation, ``join`` finds the matching row of a table.
"""

from typing import TYPE_CHECKING

from cmtrack._lazy import found_in
from cmtrack.rows.flips import Flips
from cmtrack.rows.missed import Missed

__all__ = ["Flips", "Missed"]

if not TYPE_CHECKING:  # a type checker would otherwise accept every name
    # the error about a removed name says what to use instead
    __getattr__ = found_in(__name__, {})
