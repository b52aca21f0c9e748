"""pandas for what gives data frames, where it is first needed; a sentence where it is missing."""

from cmtrack._lazy import needs

with needs("a table as a data frame", "pandas"):
    import pandas as pd

__all__ = ["pd"]
