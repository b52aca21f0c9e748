"""Import of pandas when a frame is first needed, with an error that says how to install it."""

from cmtrack._lazy import needs

with needs("a table as a data frame", "pandas"):
    import pandas as pd

__all__ = ["pd"]
