"""Tables and numbers of Düntsch and Gediga (2019), arXiv:1902.01487."""

from __future__ import annotations

import pandas as pd

TABLE_3 = pd.DataFrame(
    {
        "Price": ["high", "low", "low", "medium", "medium", "high"],
        "Guarantee": ["24 months", "6 months", "12 months", "12 months", "18 months", "12 months"],
        "Sound": ["Stereo", "Mono", "Stereo", "Stereo", "Stereo", "Stereo"],
        "Screen": [76, 66, 36, 51, 51, 51],
        "d": ["high", "low", "low", "high", "high", "low"],
    },
    index=pd.RangeIndex(1, 7, name="Type"),
)
ATTRIBUTES = ("Price", "Guarantee", "Sound", "Screen")

EXAMPLE_ATTRIBUTES = ("Price", "Screen")
PARTITION = ((1, 6), (2,), (3,), (4, 5))
"""X_1 to X_4 of Example 1."""
CLASSES = {"high": (1, 4, 5), "low": (2, 3, 6)}
"""Y_1 and Y_2."""
CLASSIFIER = ("high", "low", "low", "high")
"""f(X_1) to f(X_4): Y_1, Y_2, Y_2, Y_1."""


def _table(rows: list[list[int]], index: list[str]) -> pd.DataFrame:
    return pd.DataFrame(rows, index=pd.Index(index, name=""), columns=["Y_1", "Y_2", "Sum"])


TABLE_5 = _table(
    [[1, 1, 2], [0, 1, 1], [0, 1, 1], [2, 0, 2], [3, 3, 6]], ["X_1", "X_2", "X_3", "X_4", "Sum"]
)
TABLE_6 = _table(
    [[1, 1, 2], [0, 1, 1], [0, 1, 1], [2, 0, 2], [3, 3, 6]], ["Y_1", "Y_2", "Y_2", "Y_1", "Sum"]
)
TABLE_7 = _table([[3, 1, 4], [0, 2, 2], [3, 3, 6]], ["predicted Y_1", "predicted Y_2", "Sum"])
"""Rows are predicted classes."""
SUCCESS_RATIO = (5, 6)
GAMMA = (4, 6)
