"""Rows behind a number, across runs: flips, wrong labels that would decide, rows that most runs contradict, pairs."""

from cmtrack.rows.deciding import Corrected, Deciding, corrected, transitions
from cmtrack.rows.flips import Flips
from cmtrack.rows.pairs import Pair
from cmtrack.rows.suspects import Missed, expected_by_difficulty

__all__ = ["Corrected", "Deciding", "Flips", "Missed", "Pair", "corrected", "expected_by_difficulty", "transitions"]
