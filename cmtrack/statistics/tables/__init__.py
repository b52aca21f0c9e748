"""Statistics of tables that are anywhere: group-by aggregations, written once and run by the table's own engine.

The plan is made of narwhals expressions without functions of Python on rows; only sums, counts and extremes by group
come back. :func:`survey_table` checks the columns and finds the classes, :func:`collect_table` does the rest.
"""

from cmtrack.statistics.tables.columns import Columns, choose_columns, match_pattern
from cmtrack.statistics.tables.plan import collect_table, labelled_counts, target_counts
from cmtrack.statistics.tables.survey import Survey, check_known, survey_pairs, survey_table
from cmtrack.statistics.tables.tallies import Run, run

__all__ = [
    "Columns",
    "Run",
    "Survey",
    "check_known",
    "choose_columns",
    "collect_table",
    "labelled_counts",
    "match_pattern",
    "run",
    "survey_pairs",
    "survey_table",
    "target_counts",
]
