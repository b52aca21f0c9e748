"""Import of pandas when a frame is first needed; the error says how to install pandas."""

from cmtrack._lazy import needs

with needs("a table as a data frame", "pandas"):
    import pandas as pd

__all__ = ["pd"]
