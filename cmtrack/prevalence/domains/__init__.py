"""Shares and scores per cell, such as an age group in a year, with errors that hold in each cell.

Start with ``rule``, which decides from which labelled rows the number of a cell comes, and whether
there is a number. ``tables`` contains the counts from which everything is computed, ``estimates``
the two estimates of one cell, ``check`` the test of an assumption on labelled cells, and ``joint``
changes, ratios and totals.
"""

from cmtrack.prevalence.domains.check import Assumption, LeftOut, Step, leave_out, shift_estimate
from cmtrack.prevalence.domains.estimates import (
    DifferenceEstimate,
    Estimate,
    ShiftEstimate,
    difference_estimate,
    rows_needed,
    rows_to_tell,
    share_interval,
)
from cmtrack.prevalence.domains.inputs import CellRows, DomainCounter, is_ordered, read_labelled
from cmtrack.prevalence.domains.joint import (
    NoChange,
    Quantity,
    change,
    changes,
    combination,
    neighbours,
    no_change,
    ratio,
    ratio_interval,
    score,
    total,
)
from cmtrack.prevalence.domains.result import DomainPrevalence, read_assumption
from cmtrack.prevalence.domains.rule import Basis, CellShare, DomainShares, Source
from cmtrack.prevalence.domains.tables import (
    ENOUGH,
    CellCounts,
    DomainTables,
    Key,
    tabulate,
)
from cmtrack.prevalence.domains.words import unlike_warning

__all__ = [
    "ENOUGH",
    "Assumption",
    "Basis",
    "CellCounts",
    "CellRows",
    "CellShare",
    "DifferenceEstimate",
    "DomainCounter",
    "DomainPrevalence",
    "DomainShares",
    "DomainTables",
    "Estimate",
    "Key",
    "LeftOut",
    "NoChange",
    "Quantity",
    "ShiftEstimate",
    "Source",
    "Step",
    "change",
    "changes",
    "combination",
    "difference_estimate",
    "is_ordered",
    "leave_out",
    "neighbours",
    "no_change",
    "ratio",
    "ratio_interval",
    "read_assumption",
    "read_labelled",
    "rows_needed",
    "rows_to_tell",
    "score",
    "share_interval",
    "shift_estimate",
    "tabulate",
    "total",
    "unlike_warning",
]
