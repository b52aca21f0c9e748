"""Rows behind a number, across runs: flips, and rows that most runs miss.

Here belongs what is counted or found by comparing single rows of runs, and how a table is joined to
rows by ids. Which rows a comparison lists is in ``cmtrack.comparison``. Start with :class:`Flips`,
rows that only one of two runs gets right; :class:`Missed` has the rows that several runs miss, and
``join`` finds the row of a table for each row of an evaluation.
"""

from typing import TYPE_CHECKING

from cmtrack._lazy import found_in
from cmtrack.rows.flips import Flips
from cmtrack.rows.missed import Missed

__all__ = ["Flips", "Missed"]

if not TYPE_CHECKING:  # a type checker would otherwise accept every name
    # a removed name raises an error that says what to use instead
    __getattr__ = found_in(__name__, {})
