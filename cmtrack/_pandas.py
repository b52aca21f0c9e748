"""Lazy import of pandas; if it is missing, the error says how to install it."""

from cmtrack._lazy import needs

with needs("a table as a data frame", "pandas"):
    import pandas as pd

__all__ = ["pd"]
