"""Tables of notebooks: few rows, rounded numbers, names of people."""

from __future__ import annotations

import re
from html import unescape

import numpy as np
import pandas as pd
import pytest

from cmtrack import notebook

FRAME = pd.DataFrame(
    {
        "segment": ["<b>", "south", None],
        "rows": [12_000, 3, 4],
        "value": [0.71234, np.nan, 1.0],
        "low": [0.65, np.nan, 0.9],
        "high": [0.77, np.nan, 1.0],
        "gap_low": [0.1, 0.2, 0.3],
        "gap_high": [0.2, 0.3, 0.4],
        "pvalue": [1e-9, 0.04, 1.0],
        "tied": [True, False, True],
        "reason": ["", "", ""],
    }
)


def rows_of(html: str) -> list[list[str]]:
    lines = re.findall(r"<tr>(.*?)</tr>", html)
    return [
        [unescape(cell) for cell in re.findall(r"<t[hd]>(.*?)</t[hd]>", line)] for line in lines
    ]


def test_numbers_are_rounded_intervals_joined_and_empty_columns_left_out() -> None:
    heads, *rows = rows_of(notebook.table(FRAME))
    assert heads == ["segment", "rows", "value", "interval", "gap interval", "p", "tied"]
    assert rows[0] == [
        "<b>",
        "12,000",
        "0.712",
        "[0.650, 0.770]",
        "[0.100, 0.200]",
        "< 0.001",
        "yes",
    ]
    assert rows[1][2:4] == ["–", "–"]
    assert rows[2][0] == "–"
    assert "<b>" not in notebook.table(FRAME)


@pytest.mark.parametrize("n", [12, 13, 500])
def test_more_than_twelve_rows_are_counted(n: int) -> None:
    html = notebook.table(pd.DataFrame({"value": np.arange(float(n))}))
    assert html.count("<tr>") == 1 + 12
    assert (f"12 of {n} rows" in html) == (n > 12)


def test_a_matrix_says_what_its_rows_are() -> None:
    index, columns = pd.Index(range(20), name="actual"), pd.Index(range(20), name="predicted")
    html = notebook.matrix(pd.DataFrame(np.eye(20, dtype=int), index=index, columns=columns))
    heads, *rows = rows_of(html)
    assert heads[0] == "actual / predicted"
    assert (len(heads), len(rows)) == (13, 12)
    assert "12 of 20 columns" in html
