"""Evaluations of tables: files bigger than memory, and frames of any engine."""

from cmtrack.evaluation.tables.evaluate import evaluate_table

__all__ = ["evaluate_table"]
