"""axe-core finds nothing on any page, in both colour schemes, on a wide screen and on a phone."""

from __future__ import annotations

import os
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from cmtrack import Grouping, Prefix, compare, evaluate, evaluate_families
from cmtrack.metrics import CATALOG
from support.problems import random_models, random_problem

axe = pytest.importorskip("axe_playwright_python", reason="axe-playwright-python is not installed")
AXE = (files(axe) / "axe.min.js").read_text(encoding="utf-8")

FOUND = """async options => {
  document.querySelectorAll('details').forEach(one => { one.open = true; });
  const result = await axe.run(document, { resultTypes: ['violations'], ...options });
  return result.violations.map(one => one.id + ': ' + one.nodes.slice(0, 3).map(node => node.target).join(', '));
}"""
"""Every rule: those of WCAG 2.2 AA and good practice."""
OF_COLOURS = ["color-contrast", "link-in-text-block"]
BUT_COLOURS = {"rules": {rule: {"enabled": False} for rule in OF_COLOURS}}

ALL = os.environ.get("CMTRACK_TEST_ALL")
SITE = os.environ.get("CMTRACK_SITE", "")
"""A built site: ``.ci/run`` sets it, when it has built one."""
OF_SITE = [
    "index.html",
    "start.html",
    "guide/which_run.html",
    "guide/count_positives.html",
    "guide/log_a_run.html",
    "guide/other_prevalence.html",
    "reference/metrics.html",
    "reference/figures.html",
    "gallery/index.html",
    "reference/generated/api/cmtrack.evaluate.html",
]


@cache
def report():
    """A report with steps, segments, a target and all its tables."""
    y, _, p = random_problem(4, n=240, k=4)
    names = [f"class {i}" for i in range(4)]
    step = Grouping({"low": names[:2], "others": names[2:]}, positive="low", name="level")
    places = {"place": np.array(["north", "south"])[np.arange(240) % 2]}
    return evaluate(
        np.array(names)[y],
        y_prob=p,
        labels=names,
        grouping=step,
        segments=places,
        target=random_problem(8, n=200, k=4)[2],
    )


@cache
def review():
    y, models = random_models((1.5, 1.2, 0.9), n=300)
    return compare(
        {f"a model with the name {k}": evaluate(y, y_prob=p) for k, p in enumerate(models)}
    )


def families():
    return evaluate_families(
        [{"a.1", "b.2"}, {"b.1"}] * 20, [{"a.2", "b.2"}, {"b.2"}] * 20, Prefix(".")
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("pages")


def violations(browser, address: str) -> dict[str, list[str]]:
    """What axe-core finds: everything on a wide screen, all but colours on a phone, and colours once more in dark."""
    found = {}
    options = {"wide": {}, "phone": {} if ALL else BUT_COLOURS, "dark": {"runOnly": OF_COLOURS}}
    for look, width, colours in (
        ("wide", 1280, "light"),
        ("phone", 390, "light"),
        ("dark", 1280, "dark"),
    ):
        page = browser.new_page(color_scheme=colours, viewport={"width": width, "height": 800})
        page.goto(address)
        page.evaluate(AXE)
        found[look] = page.evaluate(FOUND, options[look])
        page.close()
    return found


CLEAN: dict[str, list[str]] = {"wide": [], "phone": [], "dark": []}


@pytest.mark.parametrize("subject", [report, review, families])
def test_nothing_is_found_on_a_page(browser, folder, subject):
    file = folder / "page.html"
    subject().report(file)
    assert violations(browser, file.as_uri()) == CLEAN


@pytest.mark.parametrize("subject", [report, review])
def test_the_first_key_skips_to_the_result(browser, folder, subject):
    page = browser.new_page()
    page.goto(subject().report(folder / "page.html").as_uri())
    page.keyboard.press("Tab")
    link = page.locator(":focus")
    assert link.inner_text() == "Skip to the result"
    assert link.bounding_box()["height"] > 20
    page.keyboard.press("Enter")
    assert page.locator(":focus").get_attribute("id") == "result"
    page.close()


@pytest.mark.skipif(not SITE, reason="CMTRACK_SITE names no built site")
@pytest.mark.parametrize("place", OF_SITE)
def test_nothing_is_found_on_the_site(browser, place):
    assert violations(browser, (Path(SITE) / place).as_uri()) == CLEAN


@pytest.mark.skipif(not SITE, reason="CMTRACK_SITE names no built site")
def test_the_metrics_of_the_site_are_filtered(browser):
    page = browser.new_page()
    page.goto((Path(SITE) / "reference" / "metrics.html").as_uri())
    form, rows = page.locator("form.filter"), page.locator("#all-metrics tbody tr:visible")
    every = rows.count()
    form.locator("[type=search]").fill("binary RECALL")
    assert rows.all_inner_texts() == [
        text for text in rows.all_inner_texts() if "recall" in text.lower()
    ]
    assert 0 < rows.count() < 5
    assert form.locator("[role=status]").inner_text() == f"{rows.count()} of {every}"
    form.locator("[type=search]").fill("")
    form.locator("[type=checkbox]").check()
    assert rows.count() == sum(metric.headline for metric in CATALOG) < every
    page.close()
