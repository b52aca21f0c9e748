"""Shares and scores per cell, such as an age group in a year, with errors that hold in each cell.

Start with ``rule``, which decides from which labelled rows the number of a cell comes, and whether
there is a number. ``tables`` contains the counts from which everything is computed, ``estimates``
the two estimates of one cell, ``check`` the test of an assumption on labelled cells, and ``joint``
changes, ratios and totals.
"""

from cmtrack.prevalence.domains.estimates import (
    DifferenceEstimate,
    Estimate,
    ShiftEstimate,
    difference_estimate,
    rows_needed,
    rows_to_tell,
    share_interval,
)
from cmtrack.prevalence.domains.tables import (
    ENOUGH,
    CellCounts,
    DomainTables,
    Key,
    domain_codes,
    tabulate,
)

__all__ = [
    "ENOUGH",
    "CellCounts",
    "DifferenceEstimate",
    "DomainTables",
    "Estimate",
    "Key",
    "ShiftEstimate",
    "difference_estimate",
    "domain_codes",
    "rows_needed",
    "rows_to_tell",
    "share_interval",
    "tabulate",
]
