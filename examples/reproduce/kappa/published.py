"""What the article prints. Its figures are pictures of formulas; only numbers that stand in its text are here."""

from __future__ import annotations

GRADES = ("Exquisite", "No", "Maybe")
DIGITS = {"Exquisite": "762", "No": "2325", "Maybe": "1316"}
"""The rows (chef B) of the table of dishes, whose columns (chef A) run together."""
DISHES = 74
CHANCE_B_EXQUISITE = 0.28
CHANCE = {"Exquisite": 0.04, "No": 0.28, "Maybe": 0.08}
"""Chance that both chefs pick a grade."""
CHANCE_AGREEMENT = 0.4
KAPPA = 0.56
LEAST_KAPPA = 0.0
"""\"Close to 0 in the worst case\"."""
HOUSES = {"accuracy": 0.74, "recall_macro": 0.67}
"""Three houses of students; their matrix is a picture."""
