"""Cells of matrices open their rows in a browser: by a click, by keys and without a script; pairs by choice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cmtrack import Grouping, compare, evaluate
from cmtrack.report import draw_pictures, report_html
from cmtrack.report.review import html
from support.problems import random_labels, random_probabilities

Y = random_labels(200, 3, 1)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder: Path = tmp_path_factory.mktemp("pages")
    grouping = Grouping({"low": [0, 1], "high": [2]}, mode="strict", name="two")
    runs = {
        f"m{k}": evaluate(
            Y, y_prob=random_probabilities(Y, 3, 2 - k / 4, k), grouping=grouping, labels=[0, 1, 2]
        )
        for k in range(3)
    }
    comparison = compare(runs, rank_by="multiclass/accuracy")
    figures = ["confusion_matrix", "reduced_two"]
    drawn = draw_pictures(runs["m0"], figures=figures, files=False)
    written = {
        "report": report_html(runs["m0"], drawn, rows=runs["m0"]),
        "review": html(
            comparison,
            pictures=draw_pictures(comparison, figures=["confusion_matrices"], files=False),
        ),
    }
    for name, text in written.items():
        (folder / f"{name}.html").write_text(text)
    return {name: (folder / f"{name}.html").as_uri() for name in written}


def open_figures(page: Any, name: str) -> None:
    """Open the fold that has the matrices of a review."""
    if name == "review":
        page.locator("#figures ~ details > summary").first.click()


@pytest.mark.parametrize("name", ["report", "review"])
def test_a_cell_opens_its_rows(browser, pages: dict[str, str], name: str) -> None:
    page, faults = browser.new_page(), []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda message: faults.append(message.text))
    page.goto(pages[name])
    open_figures(page, name)
    links = page.locator("svg a.cell")
    links.nth(1).click()
    title = links.nth(1).get_attribute("aria-label")
    assert page.locator("details.rows[open] summary").all_text_contents() == [title]
    assert page.evaluate("document.activeElement.textContent") == title
    links.nth(2).focus()
    page.keyboard.press("Enter")
    assert page.locator("details.rows[open]").count() == 2
    if name == "report":
        page.locator("details:has(table.matrix) > summary").click()
        page.locator("table.matrix a.cell").first.click()
        assert "“low”" in page.evaluate("document.activeElement.textContent")
    assert faults == []
    page.close()
    bare = browser.new_context(java_script_enabled=False)
    page = bare.new_page()
    page.goto(pages[name])
    open_figures(page, name)
    page.locator("svg a.cell").first.click()
    assert page.locator("details.rows[open]").count() == 1
    bare.close()


def test_rows_follow_the_compared_run(browser, pages: dict[str, str]) -> None:
    page = browser.new_page()
    page.goto(pages["review"])
    rows = page.locator("#pair-rows [data-pair]:visible")
    names = page.locator("#pair-with option").all_text_contents()
    for name in names:
        page.select_option("#pair-with", label=name)
        (text,) = rows.all_text_contents()
        assert f"only {name} does" in text
    assert len(names) == 2
    page.close()
