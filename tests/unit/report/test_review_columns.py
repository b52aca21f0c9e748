"""The columns of a ranking: one list for the page, the notebook, the terminal, the frame and JSON."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from cmtrack import compare, evaluate

# a comparison in memory has no command: only what prints one shows how a terminal would have it
from cmtrack.cli.comparison_table import print_comparison

# a new column is an entry of the list in this module, which no public name shows
from cmtrack.report.review import columns, html, markdown

Y = [0, 1] * 100


def test_a_new_column_is_one_entry_and_is_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = columns.Column(
        key="letters",
        value=lambda run, _: len(run.name),
        heading="Length",
        cell=lambda run, _: columns.Cell(f"{len(run.name)} letters", len(run.name)),
    )
    listed = columns._values_of_runs
    monkeypatch.setattr(columns, "_values_of_runs", lambda *given: [*listed(*given), entry])
    right = {"forest": 90, "tree": 70}
    runs = {name: evaluate(Y, [0, 1] * k + [1, 0] * (100 - k)) for name, k in right.items()}
    comparison = compare(runs, rank_by="multiclass/accuracy")
    terminal = io.StringIO()
    print_comparison(Console(file=terminal, width=200), comparison)
    surfaces = {
        "Length": [html(comparison, pictures={}), comparison._repr_html_(), markdown(comparison)],
        "length": [terminal.getvalue()],
    }
    for heading, texts in surfaces.items():
        for text in texts:
            for shown in (heading, "6 letters", "4 letters"):
                assert shown in text
    assert comparison.to_frame()["letters"].tolist() == [6.0, 4.0]
    (ranking,) = comparison.to_dict()["rankings"]
    assert [run["letters"] for run in ranking["runs"]] == [6, 4]
