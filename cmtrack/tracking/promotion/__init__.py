"""Promotion of model versions: evaluation, decision, record, and move of the alias."""
