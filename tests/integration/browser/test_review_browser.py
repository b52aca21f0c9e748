"""The pages in a real browser: the review, and what every page must withstand."""

from __future__ import annotations

import html as escaping
import http.server
import os
import re
import threading

import numpy as np
import pytest

from cmtrack import Grouping, Prefix, compare, evaluate, evaluate_families
from cmtrack.report.review import html
from cmtrack.tracking import build_into
from support.problems import random_guesses, random_labels, random_models, random_problem

pytestmark = pytest.mark.slow

INJECTED = "<script>alert(1)</script>"
LONG = "a-name-without-any-place-to-break-" * 4


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    """Runs with hostile and long names; values with one digit more in front than others sort as numbers only."""
    labels = np.array([INJECTED, "b & <b>c</b>", LONG])
    names = [INJECTED, "<img src=x onerror=alert(2)>", LONG, *(f"run {k}" for k in range(9))]
    grouping = Grouping(
        {"one": [INJECTED], "others": list(labels[1:])}, positive="one", name="<i>step</i>"
    )
    y, models = random_models(0.3 + 0.2 * np.arange(len(names)), n=400)
    runs = {
        name: evaluate(labels[y], y_prob=p, labels=list(labels), grouping=grouping)
        for name, p in zip(names, models, strict=True)
    }
    comparison = compare(runs, require=["multiclass/accuracy >= 0.45", "binary/recall >= 0.2"])
    return comparison.report(tmp_path_factory.mktemp("review") / "review.html")


@pytest.fixture
def opened(browser, page_file):
    """A page, and everything that it asked for or complained about."""
    said: dict[str, list[str]] = {"requests": [], "errors": [], "dialogs": []}
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.on("request", lambda request: said["requests"].append(request.url))
    page.on(
        "console",
        lambda message: said["errors"].append(message.text) if message.type == "error" else None,
    )
    page.on("pageerror", lambda error: said["errors"].append(str(error)))

    def dismissed(dialog):
        said["dialogs"].append(dialog.message)
        dialog.dismiss()

    page.on("dialog", dismissed)
    page.goto(page_file.as_uri())
    yield page, said
    page.close()


def column(frame, place):
    return (
        frame.locator("table.ranking")
        .first.locator(f"tbody tr td:nth-child({place})")
        .all_inner_texts()
    )


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
    heads.filter(has_text=re.compile("^p$")).click()
    assert column(frame, 1)[-1] == "1"  # the leader has none
    # a constant answer has no Matthews correlation, and so no row
    assert frame.locator("table.ranking").first.locator("tfoot tr").count() == 0


def test_a_click_sorts_by_numbers(opened):
    page, said = opened
    sorting_works(page)
    assert said["errors"] == []


def test_nothing_is_asked_of_the_network(opened, page_file):
    page, said = opened
    page.wait_for_timeout(300)
    outside = [
        url for url in said["requests"] if not url.startswith("data:") and url != page_file.as_uri()
    ]
    assert outside == []
    assert said["errors"] == []


def test_hostile_names_stay_text(opened):
    page, said = opened
    assert said["dialogs"] == []
    assert page.locator("img:not([src^='data:image/png'])").count() == 0
    assert page.locator("td b, td i, td script, h1 script").count() == 0
    assert INJECTED in page.locator("main").inner_text()
    assert page.locator("script").count() == 1  # its own


@pytest.mark.parametrize("width", [400, 700, 1280])
def test_the_page_is_as_wide_as_the_window(opened, width):
    page, _ = opened
    page.set_viewport_size({"width": width, "height": 800})
    # Two frames: tables fit on resize.
    page.evaluate(
        "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
    )
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("width", [400, 1280])
def test_decision_and_ranking_begin_on_the_first_screen(browser, tmp_path, width):
    y, models = random_models((1.5, 1.55, 0.2), n=400)
    runs = {
        name: evaluate(y, y_prob=p)
        for name, p in zip(("forest", "network", "baseline"), models, strict=True)
    }
    path = compare(runs, require="multiclass/accuracy >= 0.5").report(tmp_path / "review.html")
    page = browser.new_page(viewport={"width": width, "height": 800})
    page.goto(path.as_uri())
    for selector in ("h1", ".facts", ".headline", "table.ranking tbody tr:first-child"):
        box = page.locator(selector).first.bounding_box()
        assert box is not None
        assert box["y"] + box["height"] < 800, selector
    page.close()


TOPS = (
    "rows => rows.map(row => [3, 4].map(k => row.cells[k].firstChild).map(node => { const range = "
    "document.createRange(); range.selectNodeContents(node); return range.getBoundingClientRect().top; }))"
)


@pytest.mark.parametrize("width", [390, 800])
def test_on_a_narrow_page_an_interval_stands_beside_its_value_and_a_short_name_on_one_line(
    browser, tmp_path, width
):
    y, models = random_models((1.5, 1.55, 0.2), n=400)
    runs = {
        name: evaluate(y, y_prob=p)
        for name, p in zip(("forest", "network", "nearest"), models, strict=True)
    }
    runs["baseline"] = evaluate(y, np.zeros_like(y))
    path = compare(runs, rank_by="multiclass/matthews_corrcoef").report(tmp_path / "review.html")
    page = browser.new_page(viewport={"width": width, "height": 800})
    page.goto(path.as_uri())
    for fold in ("#other-metrics summary", "#aside summary"):
        page.locator(fold).click()
    for table in ("table.ranking tbody tr", "table.answer:visible tbody tr"):
        rows = page.locator(table).evaluate_all(TOPS)
        assert len(rows) == 3
        assert all(abs(value - interval) < 6 for value, interval in rows), (table, rows)
    left_out = page.locator("td.run:text-is('baseline')").last
    assert max(left_out.evaluate_all(HEIGHTS)) < 30
    page.close()


HEIGHTS = """cells => cells.map(cell => {
  const range = document.createRange();
  range.selectNodeContents(cell);
  return range.getBoundingClientRect().height;
})"""


def many_runs(count, classes):
    y = random_labels(300, classes)
    names = [
        f"RandomForestClassifier(n_estimators=100, max_depth={k}) on features" for k in range(count)
    ]
    runs = {
        name: evaluate(y, random_guesses(y, classes, 0.9 - 0.6 * k / count, k + 1))
        for k, name in enumerate(names)
    }
    return compare(runs, rank_by="multiclass/accuracy")


@pytest.mark.parametrize(
    ("count", "classes"),
    [(7, 4), (50, 60), *([(200, 4)] if os.environ.get("CMTRACK_TEST_ALL") else [])],
)
def test_the_table_fits_and_names_stand_on_one_line(browser, tmp_path, count, classes):
    comparison = many_runs(count, classes)
    path = tmp_path / "review.html"
    path.write_text(html(comparison, pictures={}), encoding="utf-8")
    tied = len(comparison.ranking.tied)
    page, _, errors = watched(browser)
    page.goto(path.as_uri())
    page.locator("#other-metrics summary").click()
    for width in (1440, 800, 390):
        page.set_viewport_size({"width": width, "height": 900})
        # Two frames: tables fit on resize.
        page.evaluate(
            "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
        )
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        for selector in ("table.ranking", "table.answer:visible"):
            box = page.locator(selector).locator("xpath=..")
            fits = box.evaluate("box => box.scrollWidth <= box.clientWidth")
            assert fits or width == 800, (selector, width)  # the table scrolls
            names = page.locator(f"{selector} td.run:visible")
            assert max(names.evaluate_all(HEIGHTS)) < 30, (selector, width)
            texts = names.all_inner_texts()
            assert len(set(texts)) == len(texts)
    heads = page.locator("table.ranking.cards td[data-head]").evaluate_all(
        "all => all.map(one => one.dataset.head)"
    )
    assert "Accuracy" in heads
    assert not any(head[-1].isdigit() for head in heads)  # the ends of a scale are no head
    rows = page.locator("table.ranking tbody tr")
    button = page.locator("table.ranking + button.unfold")
    if count - tied > 5:
        assert rows.and_(page.locator(":visible")).count() == tied + 5
        rest = count - tied - 5
        which = "run that is" if rest == 1 else "runs that are"
        assert button.inner_text() == f"Show {rest} more {which} ruled out as the best"
        button.click()
    assert rows.and_(page.locator(":visible")).count() == count
    assert button.count() == 0 or button.is_hidden()
    assert page.locator("#hint").inner_text().startswith("Click a run to compare it with “")
    shown = page.locator("nav.contents a").all_inner_texts()
    assert shown[0] == "Ranking"
    assert all(
        page.locator(link).count() == 1
        for link in page.locator("nav.contents a").evaluate_all(
            "links => links.map(link => link.getAttribute('href'))"
        )
    )
    assert errors == []
    page.close()


def test_the_page_reads_without_scripts(browser, page_file):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(page_file.as_uri())
    assert re.match(r"Take |.* may be the best: ", page.locator(".headline").inner_text())
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
    page.on(
        "console", lambda message: errors.append(message.text) if message.type == "error" else None
    )
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(outer.as_uri())
    frame = page.frame_locator("iframe")
    frame.locator("table.ranking th button").first.wait_for()
    sorting_works(frame)
    assert errors == []
    page.close()


# -- every page ------------------------------------------------------------------------------------------------

OUTSIDE = """
<img src="{0}/a.png"><link rel="stylesheet" href="{0}/b.css"><script src="{0}/c.js"></script>
<script>document.title = "taken"; fetch("{0}/d");</script>
<style>@import url({0}/e.css); @font-face {{ font-family: f; src: url({0}/f.woff); }}</style>
<p style="font-family: f; background: url({0}/g.png)">text</p><iframe src="{0}/h"></iframe>
<a onclick="document.title = 'taken'" id="bait">bait</a>
"""


@pytest.fixture
def outside():
    """A server on this machine, and the paths that were asked of it."""
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_error(404)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(scope="module")
def report_files(page_file, tmp_path_factory):
    """The pages of a run, as they are logged, and the review."""
    y, _, p = random_problem(0, n=400, k=3, skill=0.0)
    labels = np.array([INJECTED, "b & <b>c</b>", LONG])
    grouping = Grouping(
        {"one": [INJECTED], "others": list(labels[1:])}, positive="one", name="<i>step</i>"
    )
    judged = evaluate(labels[y], y_prob=p, labels=list(labels), grouping=grouping)
    coded = evaluate_families(
        [{"a.1", "<b>.2"}, {"<b>.1"}] * 20, [{"a.2", "<b>.2"}, {"<b>.2"}] * 20, Prefix(".")
    )
    out = {"review": page_file}
    for name, evaluation in (("report", judged), ("families", coded)):
        package = build_into(evaluation, tmp_path_factory.mktemp(name) / "entry")
        assert package.problems == ()
        out[name] = package.folder / "artifacts" / "cmtrack_report.html"
    return out


def watched(browser):
    """A page, what it asked the network for, and what it complained about."""
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    requests: list[str] = []
    errors: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.on(
        "console", lambda message: errors.append(message.text) if message.type == "error" else None
    )
    page.on("pageerror", lambda error: errors.append(str(error)))
    return page, requests, errors


@pytest.mark.parametrize("name", ["review", "report", "families"])
def test_the_policy_of_a_page_forbids_nothing_that_it_needs(browser, report_files, name):
    page, _, errors = watched(browser)
    page.goto(report_files[name].as_uri())
    page.locator("th button").first.click()
    assert page.locator("th[aria-sort]").count() == 1
    style = "getComputedStyle(document.querySelector('table:not(.cards) td.n')).textAlign"
    assert page.evaluate(style) == "right"  # its own style
    assert page.evaluate("Array.from(document.images).every(image => image.naturalWidth > 0)")
    wide = page.locator("th[style*='min-width']")
    if wide.count():
        assert wide.first.evaluate("head => getComputedStyle(head).minWidth") != "0px"
    assert errors == []
    page.close()


def opened_with_markup(browser, text, tmp_path, address):
    changed = tmp_path / "changed.html"
    injected, times = re.subn(r"<main[^>]*>", lambda tag: tag[0] + OUTSIDE.format(address), text)
    assert times == 1
    changed.write_text(injected, encoding="utf-8")
    page, _, _ = watched(browser)
    page.goto(changed.as_uri())
    page.locator("#bait").click()
    page.wait_for_timeout(400)
    title = page.title()
    page.close()
    return title


@pytest.mark.parametrize("name", ["review", "report", "families"])
def test_a_page_reaches_nothing_outside_even_if_markup_came_in(
    browser, report_files, name, tmp_path, outside
):
    address, asked = outside
    text = report_files[name].read_text(encoding="utf-8")
    title = re.search("<title>(.*?)</title>", text)
    assert title is not None
    assert opened_with_markup(browser, text, tmp_path, address) == escaping.unescape(title.group(1))
    assert asked == []
    without = re.sub("<meta http-equiv[^>]*>", "", text)
    # the policy it is that holds it back
    assert opened_with_markup(browser, without, tmp_path, address) == "taken"
    assert {"/a.png", "/b.css", "/c.js", "/d", "/e.css", "/g.png", "/h"} <= set(asked)


@pytest.mark.parametrize("name", ["report", "families"])
def test_a_report_works_in_a_sandboxed_frame(browser, report_files, name, tmp_path):
    content = escaping.escape(report_files[name].read_text(encoding="utf-8"), quote=True)
    outer = tmp_path / "outer.html"
    outer.write_text(
        f'<!DOCTYPE html><iframe sandbox="allow-scripts" srcdoc="{content}" width=1000 height=700></iframe>',
        encoding="utf-8",
    )
    page, _, errors = watched(browser)
    page.goto(outer.as_uri())
    frame = page.frame_locator("iframe")
    frame.locator("table.filtered").first.wait_for(state="attached")
    assert frame.locator("input.filter").count() > 0  # made by the page's own script
    frame.locator("th button").first.click()
    assert frame.locator("th[aria-sort]").count() == 1
    assert errors == []
    page.close()


def test_names_written_from_right_to_left_keep_their_order_in_a_sentence(browser, tmp_path):
    y = random_labels(300, 3)
    names = ("over\u202eride", "אאא", "בבב", "plain")
    skills = (0.9, 0.3, 0.0, 0.95)  # the second and the third are ruled out, the others tied
    runs = {
        name: evaluate(y, random_guesses(y, 3, skills[k], k + 1)) for k, name in enumerate(names)
    }
    path = compare(runs).report(tmp_path / "review.html")
    page, _, _ = watched(browser)
    page.goto(path.as_uri())
    assert r"over\u202eride" in page.locator("table.ranking").first.inner_text()
    first, second = page.evaluate(
        """() => {
          const all = Array.from(document.querySelectorAll(".verdict p"));
          const said = all.find(p => /אאא.* and .*בבב/.test(p.textContent));
          const node = document.createTreeWalker(said, NodeFilter.SHOW_TEXT).nextNode();
          return ["אאא", "בבב"].map(name => {
            const range = document.createRange(), start = node.data.indexOf(name);
            range.setStart(node, start);
            range.setEnd(node, start + name.length);
            const box = range.getClientRects()[0];
            return [Math.round(box.top), Math.round(box.left)];
          });
        }"""
    )
    assert first < second
    page.close()
