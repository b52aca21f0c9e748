"""Rows behind a number, across runs: flips, and rows that most runs miss."""

from typing import TYPE_CHECKING

from cmtrack._lazy import found_in
from cmtrack.rows.flips import Flips
from cmtrack.rows.missed import Missed

__all__ = ["Flips", "Missed"]

if not TYPE_CHECKING:  # a type checker would otherwise accept every name
    # a removed name raises an error that says what to use instead
    __getattr__ = found_in(__name__, {})
