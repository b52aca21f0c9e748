"""What pages look like in both colour schemes, on a phone and on paper."""

from __future__ import annotations

import re
from html import escape, unescape
from importlib.resources import files

import numpy as np
import pytest

from cmtrack import Grouping, Prefix, compare, evaluate, evaluate_families
from cmtrack.report import CLASSES, FAMILIES, report_html, verdict
from support.problems import random_models, random_problem

QUESTIONS = {
    "good": "Is it good enough?",
    "confusions": "What does it confuse?",
    "probabilities": "Are the probabilities right?",
    "failures": "Where does it fail?",
    "prevalence": "How many positives are there?",
    "facts": "What was evaluated?",
}
TEMPLATES = files("cmtrack.report") / "templates"
CSS = (TEMPLATES / "house.css").read_text(encoding="utf-8")

TEXT = [  # what stands on what, of text
    *(("ink", ground) for ground in ("page", "tint", "warn", "chosen", "hit", "aside", "band")),
    *(("soft", ground) for ground in ("page", "tint", "warn", "chosen", "aside")),
    *(("behind-ink", ground) for ground in ("page", "aside")),
    *(("link", ground) for ground in ("page", "tint", "chosen")),
    ("on-link", "link"),
    ("warn-ink", "warn"),
    ("good-ink", "good"),
    ("bad-ink", "bad"),
    ("plain-ink", "plain"),
    ("passed-ink", "page"),
    ("failed-ink", "aside"),
    ("data-blue", "page"),
    ("data-orange-text", "page"),
]
SHAPES = [
    ("input", "page"),
    ("data-blue", "band"),
    ("link", "tint"),
    *(
        (mark, ground)
        for mark in ("data-blue", "data-orange-text")
        for ground in ("page", "chosen", "aside")
    ),
]
DATA = ["#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00"]
"""Colours of curves and marks that are the same in both schemes; of light ones, the frame and the words tell too."""


def scheme(name: str) -> dict[str, str]:
    blocks = re.findall(r":root \{(.*?)\}", CSS, re.DOTALL)
    light, dark = (dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block)) for block in blocks)
    assert set(light) == set(dark)
    return light if name == "light" else dark


def luminance(colour: str) -> float:
    parts = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(first: str, second: str) -> float:
    high, low = sorted((luminance(first), luminance(second)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("name", ["light", "dark"])
def test_text_has_the_contrast_of_wcag_aa(name):
    colours = scheme(name)
    weak = {pair: contrast(colours[pair[0]], colours[pair[1]]) for pair in TEXT}
    assert {pair: ratio for pair, ratio in weak.items() if ratio < 4.5} == {}


@pytest.mark.parametrize("name", ["light", "dark"])
def test_shapes_and_data_are_seen_on_their_ground(name):
    colours = scheme(name)
    weak = {pair: contrast(colours[pair[0]], colours[pair[1]]) for pair in SHAPES}
    assert {pair: ratio for pair, ratio in weak.items() if ratio < 3} == {}
    assert all(
        contrast(colour, colours["page"]) >= (2 if name == "light" else 3) for colour in DATA
    )


def test_all_colours_of_the_pages_stand_in_one_place(pages):
    used = set(re.findall(r"var\(--([\w-]+)\)", CSS))
    for template in TEMPLATES.iterdir():
        if template.name.endswith(".html") or template.name == "knobs.css":
            text = template.read_text(encoding="utf-8")
            styles = (
                text
                if template.name.endswith(".css")
                else " ".join(re.findall(r"<style>.*?</style>|style=\".*?\"", text, re.DOTALL))
            )
            assert not re.search(r"#[0-9a-fA-F]{3,6}\b|rgb\(|: (white|black)\b", styles), (
                template.name
            )
            used |= set(re.findall(r"var\(--([\w-]+)\)", text))
    assert not re.search(r"#[0-9a-f]{3,6}\b", re.sub(r":root \{.*?\}", "", CSS, flags=re.DOTALL))
    for page in pages.values():  # with the figures
        used |= set(re.findall(r"var\(--([\w-]+)\)", page.read_text(encoding="utf-8")))
    assert used <= set(scheme("light"))


def test_paper_has_the_light_colours():
    dark = re.search(r"@media (.*?) \{\s*:root", CSS)
    assert dark is not None
    assert dark.group(1) == "screen and (prefers-color-scheme: dark)"


# -- in a browser ------------------------------------------------------------------------------------------


LONG = "a-name-without-any-place-to-break-" * 3


def evaluation(k: int, names: list[str] | None = None, **given):
    labels = np.array(names or [f"class {i}" for i in range(k)])
    y, _, p = random_problem(k, n=60 * k, k=k)
    return evaluate(labels[y], y_prob=p, labels=list(labels), **given)


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    step = Grouping(
        {"low": ["class 0", "class 1"], "others": ["class 2", "class 3"]},
        positive="low",
        name="level",
    )
    made = {
        "two": evaluation(2, positive="class 1"),
        "grouped": evaluation(4, grouping=step, target=random_problem(8, n=200, k=4)[2]),
        "sixty": evaluation(60),
        "long": evaluation(3, [LONG, "b & <b>c</b>", "混同行列の名前"]),
        "families": evaluate_families(
            [{"a.1", "b.2"}, {"b.1"}] * 20, [{"a.2", "b.2"}, {"b.2"}] * 20, Prefix(".")
        ),
        "review": compare(runs()),
    }
    return {name: subject.report(folder / f"{name}.html") for name, subject in made.items()}


def runs():
    y, models = random_models((1.5, 1.2, 0.9, 0.6), n=600)
    return {
        name: evaluate(y, y_prob=p)
        for name, p in zip(("model one", LONG, "third", "fourth"), models, strict=True)
    }


PAGES = ["two", "grouped", "sixty", "long", "families", "review"]

WEAK_TEXT = """() => {
  const parse = text => (text.match(/[\\d.]+/g) || []).map(Number);
  const part = v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => .2126 * part(r / 255) + .7152 * part(g / 255) + .0722 * part(b / 255);
  const ground = node => {
    for (let n = node; n; n = n.parentElement) {
      const c = parse(getComputedStyle(n).backgroundColor);
      if (c.length === 3 || c[3] > 0) { return c; }
    }
    return [255, 255, 255];
  };
  const found = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const node = walk.currentNode.parentElement, text = walk.currentNode.textContent.trim();
    if (!text || !node.getClientRects().length || node.closest('script, title')) { continue; }
    const svg = node.closest('svg'), style = getComputedStyle(node);
    if (svg && (node.getAttribute('fill') || '').startsWith('#')) { continue; }  // on cells
    const a = light(parse(svg ? style.fill : style.color)), b = light(ground(node));
    const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (ratio < 4.5) { found.push(text.slice(0, 40) + ' ' + ratio.toFixed(2)); }
  }
  return found;
}"""

CUT_OR_COVERED = """() => {
  const found = [];
  for (const svg of document.querySelectorAll('figure svg')) {
    const frame = svg.getBoundingClientRect(), boxes = [];
    for (const text of svg.querySelectorAll('text')) {
      const turn = /rotate\\((-?[\\d.]+)/.exec(text.getAttribute('transform') || '');
      const box = text.getBoundingClientRect(), name = text.textContent;
      const aside = Math.max(frame.left - box.left, box.right - frame.right);
      if (Math.max(aside, frame.top - box.top, box.bottom - frame.bottom) > 1) { found.push('cut: ' + name); }
      if (!turn || Number(turn[1]) % 90 === 0) { boxes.push([box, name]); }
    }
    boxes.forEach(([a, first], i) => boxes.slice(i + 1).forEach(([b, second]) => {
      const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (across > 1.5 && high > 0.35 * Math.min(a.height, b.height)) { found.push(first + ' | ' + second); }
    }));
  }
  return found;
}"""


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("colours", ["light", "dark"])
def test_all_text_is_read_in_both_schemes(browser, pages, name, colours):
    page = browser.new_page(viewport={"width": 1280, "height": 800}, color_scheme=colours)
    page.goto(pages[name].as_uri())
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(255, 255, 255)" if colours == "light" else "rgb(20, 24, 29)")
    assert page.evaluate(WEAK_TEXT) == []
    page.close()


@pytest.mark.parametrize("name", PAGES)
def test_no_text_of_a_figure_is_cut_or_covered(browser, pages, name):
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.goto(pages[name].as_uri())
    assert page.evaluate(CUT_OR_COVERED) == []
    page.close()


@pytest.mark.parametrize("name", PAGES)
def test_on_a_phone_wide_things_scroll_in_their_own_box(browser, pages, name):
    page = browser.new_page(viewport={"width": 390, "height": 800})
    page.goto(pages[name].as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    scales = page.evaluate(
        "() => Array.from(document.querySelectorAll('figure svg'))"
        ".map(svg => svg.getBoundingClientRect().width / svg.width.baseVal.value)"
    )
    assert len(scales) > 0
    assert all(0.745 <= scale <= 1.001 for scale in scales)
    page.close()


def test_paper_has_no_stubs_and_no_dark_ground(browser, pages):
    page = browser.new_page(viewport={"width": 1280, "height": 800}, color_scheme="dark")
    page.goto(pages["two"].as_uri())
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not page.locator("summary").first.is_visible()
    assert not page.locator("input.filter").first.is_visible()
    assert not page.locator("nav").first.is_visible()
    page.close()


# -- the order of a report -------------------------------------------------------------------------------------


def test_a_report_answers_in_the_order_in_which_people_ask(pages):
    page = pages["grouped"].read_text(encoding="utf-8")
    links = re.findall(r'<a href="#(\w+)">(.*?)</a>', page)
    headings = re.findall(r'<section id="(\w+)">\s*<h2>(.*?)</h2>', page)
    assert links == headings == [one for one in QUESTIONS.items() if one[0] != "failures"]
    for entry in CLASSES:
        assert entry.section in QUESTIONS


@pytest.mark.parametrize("name", ["two", "grouped", "sixty", "families"])
def test_a_figure_stands_once_and_in_its_section(pages, name):
    page = pages[name].read_text(encoding="utf-8")
    head, *sections = re.split(r'<section id="', page)
    found = {
        part.split('"', 1)[0]: re.findall(r"<svg .*?<title>(.*?)</title>", part, re.DOTALL)
        for part in sections
    }
    (first,) = re.findall(r"<svg .*?<title>(.*?)</title>", head, re.DOTALL)
    leading = {
        "two": "Confusion matrix",
        "grouped": "Reduced confusion matrix “level”",
        "sixty": "Confusion matrix",
        "families": "The family with the most confused labels",
    }
    assert first == leading[name]
    shown = [title for titles in found.values() for title in titles]
    assert len({first, *shown}) == len(shown) + 1
    where = {entry.title: entry.section for entry in (*CLASSES, *FAMILIES)}
    assert all(
        where.get(title, "confusions") == key for key, titles in found.items() for title in titles
    )


def test_each_sentence_of_the_verdict_stands_once():
    subject = evaluation(
        4,
        grouping=Grouping({"a": ["class 0", "class 1"], "b": ["class 2", "class 3"]}, positive="a"),
    )
    page = unescape(report_html(subject, {}))
    assert all(
        page.count(f"{sentence}") == 1
        for sentence in verdict(subject)
        if not sentence.startswith("On ")
    )
    # the first one leads the page, all others answer a question below
    (leading,) = re.findall(r'(?s)<section class="verdict".*?</section>', page)
    assert [sentence in leading for sentence in verdict(subject)[:3]] == [True, False, False]


def test_the_first_screen_has_verdict_numbers_and_picture(browser, pages):
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.goto(pages["grouped"].as_uri())
    assert page.locator("dl.numbers dd").count() == 4
    for what in (".verdict", "dl.numbers", ".first figure svg"):
        box = page.locator(what).first.bounding_box()
        assert box["y"] + box["height"] <= 900, what
    page.close()


def test_the_contents_scroll_where_anchors_do_not(browser, pages, tmp_path):
    content = escape(pages["grouped"].read_text(encoding="utf-8"), quote=True)
    outer = tmp_path / "outer.html"
    outer.write_text(
        f'<iframe sandbox="allow-scripts" srcdoc="{content}" width=900 height=700></iframe>',
        "utf-8",
    )
    page = browser.new_page(viewport={"width": 1000, "height": 800})
    page.goto(outer.as_uri())
    frame = page.frame_locator("iframe")
    place = "section => Math.round(section.getBoundingClientRect().top)"
    assert frame.locator("#probabilities").evaluate(place) > 700
    frame.locator("nav a", has_text="probabilities").click()
    assert abs(frame.locator("#probabilities").evaluate(place)) <= 40
    page.close()


def test_tables_fit_every_width_and_many_classes_are_folded(browser, tmp_path):
    y, _, p = random_problem(0, 900, 60)
    names = [f"Subcategory of products number {k} (international)" for k in range(60)]
    regions = [("north", "a region whose name is long indeed")[k % 2] for k in range(900)]
    path = tmp_path / "report.html"
    y = np.asarray(y)
    sixty = evaluate([names[k] for k in y], y_prob=p, labels=names, segments={"region": regions})
    path.write_text(report_html(sixty, {}, rows=sixty), encoding="utf-8")
    page = browser.new_page()
    page.goto(path.as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(part => { part.open = true; })")
    for width in (1440, 800, 390):
        page.set_viewport_size({"width": width, "height": 900})
        # Two frames: tables fit on resize.
        page.evaluate(
            "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
        )
        assert page.evaluate("document.documentElement.scrollWidth") == width
        # A table wider than the page scrolls, and becomes cards on a phone.
        page.evaluate("document.querySelectorAll('details').forEach(part => { part.open = true; })")
        boxes = page.locator(".scroll:visible")
        assert boxes.count() > 20
        fits = "boxes => boxes.every(box => box.scrollWidth <= box.clientWidth)"
        assert width > 700 or boxes.evaluate_all(fits)
        assert bool(page.locator("table.cards").count()) == (width < 700)
    rows = page.locator("#confusions table").first.locator("tbody tr")
    texts = rows.locator("td:first-child").all_text_contents()
    assert len(set(texts)) == 60
    assert all(len(text) <= 30 for text in texts)
    assert rows.and_(page.locator(":visible")).count() == 20
    assert rows.first.locator("[data-head='F1']").count() == 1
    page.get_by_role("button", name="Show 40 more classes").click()
    assert rows.and_(page.locator(":visible")).count() == 60
    page.close()


# -- length ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def survey_pages(tmp_path_factory):
    """Pages of 189 rows of seven classes in two grouping steps, also with segments, and of runs."""
    y, _, p = random_problem(0, 189, 7)
    held_y, _, held_p = random_problem(1, 400, 7)
    parties = Grouping({"left": [0, 1, 2], "middle": [3], "right": [4, 5, 6]}, name="party")
    sides = Grouping(
        {"left": ["left"], "not left": ["middle", "right"]},
        mode="strict",
        positive="not left",
        name="side",
    )
    asked = {"grouping": parties.then(sides), "calibration": (held_y, held_p)}
    columns = {
        name: np.random.default_rng(k).choice(list("abcd"), 189)
        for k, name in enumerate(("region", "age", "income"))
    }
    folder = tmp_path_factory.mktemp("survey")
    truth, models = random_models(np.linspace(0.5, 2, 7), 189, 7)
    runs = {f"run {k}": evaluate(truth, y_prob=q) for k, q in enumerate(models)}
    return {
        "report": evaluate(y, y_prob=p, **asked).report(folder / "report.html"),
        "segments": evaluate(y, y_prob=p, segments=columns, **asked).report(
            folder / "segments.html"
        ),
        "review": compare(runs).report(folder / "review.html"),
    }


@pytest.mark.parametrize(
    ("name", "screens", "unfolded", "on_a_phone"),
    [("report", 5.2, 9.2, 8), ("segments", 8, 13, 12.5), ("review", 5, 9.2, 8.4)],
)
def test_a_page_has_few_screens(browser, survey_pages, name, screens, unfolded, on_a_phone):
    for (width, height), most in (((1440, 900), screens), ((390, 844), on_a_phone)):
        page = browser.new_page(viewport={"width": width, "height": height})
        page.goto(survey_pages[name].as_uri())
        assert page.evaluate("document.documentElement.scrollHeight") / height <= most, width
        if width > 700:
            page.evaluate(
                "document.querySelectorAll('details:not(.on-click)').forEach(box => box.open = true)"
            )
            assert page.evaluate("document.documentElement.scrollHeight") / height <= unfolded
        page.close()
