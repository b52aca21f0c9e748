"""Tables of notebooks: few rows, rounded numbers, names of people."""

from __future__ import annotations

import re
from html import unescape

import numpy as np
import pandas as pd
import pytest

from cmtrack import compare, evaluate, notebook, paired_differences

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
        [unescape(cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", line)]
        for line in lines
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


def test_texts_are_aligned_left_and_a_repeated_sentence_is_said_once() -> None:
    frame = pd.DataFrame(
        {
            "run": ["a", "b"],
            "value": [0.5, 0.25],
            "why": ["“spam” has 10% instead of 48%"] * 2,
        }
    )
    html = notebook.table(frame, of=40)
    assert rows_of(html)[0] == ["run", "value"]
    assert html.count("“spam” has 10% instead of 48%.") == 1
    assert 'style="text-align: left; white-space: nowrap">a</td>' in html
    assert "<td>0.500</td>" in html
    assert "2 of 40 rows" in html


def test_results_have_a_short_text_and_a_table_without_nan() -> None:
    y = [0, 1] * 100
    first = evaluate(y, y_prob=[0.1, 0.9] * 90 + [0.8, 0.3] * 10)
    second = evaluate(y, y_prob=[0.2, 0.6] * 70 + [0.7, 0.4] * 30)
    comparison = compare({"first": first, "second": second}, rank_by="multiclass/accuracy")
    assert comparison.ranking is not None
    leader = comparison.ranking.leader
    shown = f"rank 1: “first”, 0.900 [{leader.interval[0]:.3f}, {leader.interval[1]:.3f}], chosen"
    assert repr(leader) == f"RankedRun({shown})"
    assert repr(comparison.ranking) == f"Ranking(2 runs by multiclass/accuracy; {shown})"
    rejection = first.reject(0.1)
    assert repr(rejection) == "Rejection(accepted 0.9, risk 0 [0, 0.0209])"
    moved = first.at(0.1)
    assert repr(moved).startswith("Transported(“1” 10%, “0” 90%: precision ")
    results = (
        comparison.ranking,
        rejection,
        moved,
        comparison.flips("first", "second"),
        paired_differences(first, second),
        comparison.missed(),
    )
    for result in results:
        assert len(repr(result)) < 200
        html = result._repr_html_()
        assert "nan" not in html
        assert not re.search(r"\d\.\d{7}", html)
    metrics = [row[0] for row in rows_of(moved._repr_html_())[1:]]
    changes = moved.to_frame().set_index("metric")["change"].abs()
    assert "binary/recall" not in metrics  # it does not depend on the shares
    assert list(changes[metrics]) == sorted(changes[metrics], reverse=True)
    differences = rows_of(paired_differences(first, second)._repr_html_())
    assert differences[1][0].startswith("binary/")
    assert not any("probability" in head for head in rows_of(comparison.missed()._repr_html_())[0])
