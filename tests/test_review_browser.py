"""The review's page in a real browser."""

from __future__ import annotations

import html as escaping
import shutil

import numpy as np
import pytest

from cmtrack import Grouping, compare, evaluate

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
if CHROMIUM is None:
    pytest.skip("no Chromium is installed", allow_module_level=True)

ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
INJECTED = "<script>alert(1)</script>"
LONG = "a-name-without-any-place-to-break-" * 4


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    """Runs with hostile and long names; values with one digit more in front than others sort as numbers only."""
    y = np.random.default_rng(0).integers(0, 3, 400)
    labels = np.array([INJECTED, "b & <b>c</b>", LONG])
    names = [INJECTED, "<img src=x onerror=alert(2)>", LONG, *(f"run {k}" for k in range(9))]
    grouping = Grouping({"one": [INJECTED], "others": list(labels[1:])}, positive="one", name="<i>step</i>")
    runs = {}
    for k, name in enumerate(names):
        logits = np.random.default_rng(k).normal(size=(400, 3))
        logits[np.arange(400), y] += 0.3 + 0.2 * k
        p = np.exp(logits)
        runs[name] = evaluate(
            labels[y], y_prob=p / p.sum(axis=1, keepdims=True), labels=list(labels), grouping=grouping
        )
    comparison = compare(runs, require=["multiclass/accuracy >= 0.45", "binary/recall >= 0.2"])
    return comparison.report(tmp_path_factory.mktemp("review") / "review.html")


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as started:
        running = started.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield running
        running.close()


@pytest.fixture
def opened(browser, page_file):
    """A page, and everything that it asked for or complained about."""
    said: dict[str, list[str]] = {"requests": [], "errors": [], "dialogs": []}
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.on("request", lambda request: said["requests"].append(request.url))
    page.on("console", lambda message: said["errors"].append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: said["errors"].append(str(error)))

    def dismissed(dialog):
        said["dialogs"].append(dialog.message)
        dialog.dismiss()

    page.on("dialog", dismissed)
    page.goto(page_file.as_uri())
    yield page, said
    page.close()


def column(frame, place):
    return frame.locator("table.ranking").first.locator(f"tbody tr td:nth-child({place})").all_inner_texts()


def sorting_works(frame):
    heads = frame.locator("table.ranking").first.locator("th button")
    before = column(frame, 1)
    assert before == [str(k) for k in range(1, len(before) + 1)]
    assert len(before) > 9  # 10 comes after 9, not after 1
    rank = heads.filter(has_text="#")
    rank.click()
    rank.click()
    assert column(frame, 1) == before[::-1]
    rank.click()
    assert column(frame, 1) == before
    heads.filter(has_text="MCC").click()
    values = [float(text.replace("−", "-")) for text in column(frame, 4)]
    assert values == sorted(values)
    heads.filter(has_text="P(best)").click()
    heads.filter(has_text="P(best)").click()
    assert column(frame, 1)[0] == "1"


def test_a_click_sorts_by_numbers(opened):
    page, said = opened
    sorting_works(page)
    assert said["errors"] == []


def test_nothing_is_asked_of_the_network(opened, page_file):
    page, said = opened
    page.wait_for_timeout(300)
    outside = [url for url in said["requests"] if not url.startswith("data:") and url != page_file.as_uri()]
    assert outside == []
    assert said["errors"] == []


def test_hostile_names_stay_text(opened):
    page, said = opened
    assert said["dialogs"] == []
    assert page.locator("img:not([src^='data:image/png'])").count() == 0
    assert page.locator("td b, td i, td script, h1 script").count() == 0
    assert INJECTED in page.locator("main").inner_text()
    assert page.locator("script").count() == 1


@pytest.mark.parametrize("width", [400, 700, 1280])
def test_the_page_is_as_wide_as_the_window(opened, width):
    page, _ = opened
    page.set_viewport_size({"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("width", [400, 1280])
def test_decision_and_ranking_begin_on_the_first_screen(browser, tmp_path, width):
    y = np.random.default_rng(0).integers(0, 3, 400)
    runs = {}
    for k, name in enumerate(("forest", "network", "baseline")):
        logits = np.random.default_rng(k).normal(size=(400, 3))
        logits[np.arange(400), y] += (1.5, 1.55, 0.2)[k]
        p = np.exp(logits)
        runs[name] = evaluate(y, y_prob=p / p.sum(axis=1, keepdims=True))
    path = compare(runs, require="multiclass/accuracy >= 0.5").report(tmp_path / "review.html")
    page = browser.new_page(viewport={"width": width, "height": 800})
    page.goto(path.as_uri())
    for selector in ("h1", ".facts", ".headline", "table.ranking tbody tr:first-child"):
        box = page.locator(selector).first.bounding_box()
        assert box is not None
        assert box["y"] + box["height"] < 800, selector
    page.close()


def test_the_page_reads_without_scripts(browser, page_file):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(page_file.as_uri())
    assert page.locator(".headline").inner_text().startswith(("Take ", "No clear winner. "))
    assert len(column(page, 1)) > 9
    context.close()


def test_it_works_in_a_sandboxed_frame(browser, page_file, tmp_path):
    content = escaping.escape(page_file.read_text(encoding="utf-8"), quote=True)
    outer = tmp_path / "outer.html"
    outer.write_text(
        f'<!DOCTYPE html><iframe sandbox="allow-scripts" srcdoc="{content}" width=1000 height=700></iframe>',
        encoding="utf-8",
    )
    errors: list[str] = []
    page = browser.new_page()
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(outer.as_uri())
    frame = page.frame_locator("iframe")
    frame.locator("table.ranking th button").first.wait_for()
    sorting_works(frame)
    assert errors == []
    page.close()
