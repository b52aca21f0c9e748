"""The site says what the code does, and its checker finds what is wrong with a page."""

from __future__ import annotations

import importlib.util
import pkgutil
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import generated_pages
import pytest

import cmtrack
from cmtrack import plots, schemas
from cmtrack.cli import main
from cmtrack.metrics import CATALOG
from cmtrack.report import CLASSES, FAMILIES
from support import ROOT, public_names

DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def build() -> ModuleType:
    """``docs/build.py``."""
    found = importlib.util.spec_from_file_location("cmtrack_docs_build", DOCS / "build.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


# -- generated pages -------------------------------------------------------------------------------------------


def test_every_metric_is_in_the_index_and_has_its_words_under_the_anchor_that_the_index_names():
    pages = generated_pages.metrics()
    links = re.findall(r"\[`([^`]+)`\]\(generated/(\S+?)#(\S+?)\)", pages["metrics_index.txt"])
    assert [name for name, _, _ in links] == [metric.name for metric in CATALOG]
    assert len({(page, anchor) for _, page, anchor in links}) == len(CATALOG)
    for metric, (name, page, anchor) in zip(CATALOG, links, strict=True):
        block = pages[page].split(f"({anchor})=\n")[1].split(")=\n")[0]
        assert f"`{name}`" in block
        assert generated_pages.plain(metric.formula) in block
        assert generated_pages.cited(metric.source) in block
        assert f":Interval: [{generated_pages.interval(metric)}](" in block


def test_the_works_that_metrics_come_from_stand_in_full_on_the_page_of_sources():
    assert generated_pages.cited("Guo et al. (2017); Bröcker (2012), eq. 1") == (
        "[Guo et al. (2017)](../../../sources.md#ref-guo-2017); "
        "[Bröcker (2012)](../../../sources.md#ref-brocker-2012), eq. 1"
    )
    listed = re.findall(
        r"^\((ref-[\w-]+)\)=$", (DOCS / "sources.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert len(listed) == len(set(listed)) > 30
    for source in {metric.source for metric in CATALOG}:
        found = re.findall(r"sources\.md#([\w-]+)", generated_pages.cited(source))
        assert len(found) == len(re.findall(r"\(\d{4}", source)), source
        assert set(found) <= set(listed), source


def test_every_section_of_metrics_has_a_sentence_of_its_own():
    pages = re.findall(r"\(generated/metrics/(\S+?)\.md#", generated_pages.index())
    assert set(pages) == set(generated_pages.ABOUT)


def test_headline_metrics_are_marked():
    marked = re.findall(r"^\| \[`([^`]+)`\].*\*\*•\*\*", generated_pages.index(), re.MULTILINE)
    assert marked == [metric.name for metric in CATALOG if metric.headline]


@pytest.mark.parametrize("metric", CATALOG, ids=lambda metric: metric.name)
def test_an_interval_is_one_that_the_page_explains(metric):
    text = (DOCS / "reference" / "metrics.md").read_text(encoding="utf-8")
    first = generated_pages.interval(metric).split(",")[0]
    assert re.search(rf"^\| (?:[\w ]+, )*{first}(?:, [\w ]+)* \|", text, re.MULTILINE)


def test_every_figure_is_listed_with_how_to_read_it():
    (text,) = generated_pages.figure_list().values()
    assert text.count("`comparison.figures()[name]`") == 2
    for entry in (*CLASSES, *FAMILIES):
        assert f"`{entry.name}`" in text
        assert generated_pages.plain(entry.reading) in text


def test_every_stored_file_is_listed_with_its_schema():
    known = {name for name, value in vars(schemas).items() if isinstance(value, schemas.Stored)}
    assert set(generated_pages.FILES) == known
    assert f"| {schemas.MANIFEST.newest} |" in generated_pages.file_tables()["schemas.txt"]


def test_every_figure_of_the_benchmarks_overview_stands_in_its_section():
    text, sections = (
        (DOCS / "benchmarks.md").read_text(encoding="utf-8"),
        generated_pages.sections(),
    )
    rows = re.findall(r"^\| .+? \| (.+) \| \[(.+)\]\(\S+?\) \|$", text, re.MULTILINE)
    assert {title for _, title in rows} == set(sections)
    for answer, title in rows:
        for digits, percent in re.findall(r"(?<!–)\b(\d+(?:\.\d+)?)(%?)", answer):
            number = digits
            if percent:
                places = len(digits.partition(".")[2]) + 2
                number = f"{float(digits) / 100:.{places}f}"
            if "." in number:
                written = number.removeprefix("0")
                assert written in sections[title], f"{written} is not in “{title}”"


# -- lists by hand ---------------------------------------------------------------------------------------------


def test_the_python_reference_has_every_public_name():
    wanted = {f"cmtrack.{name}" for name in cmtrack.__all__}
    wanted |= {f"cmtrack.plots.{name}" for name in plots.__all__ if name.startswith("plot_")}
    assert wanted <= public_names()


@pytest.mark.parametrize("page", sorted((DOCS / "guide").glob("*.md")), ids=lambda page: page.stem)
def test_the_code_that_a_guide_shows_imports_public_names_only(page):
    cells = re.findall(
        r"^```\{code-cell\}[^\n]*\n(.*?)^```",
        page.read_text(encoding="utf-8"),
        re.MULTILINE | re.DOTALL,
    )
    shown = "\n".join(
        cell for cell in cells if not re.search("^:tags: .*remove-(input|cell)", cell, re.MULTILINE)
    )
    for module, names in re.findall(r"^from (cmtrack[\w.]*) import ([\w, ]+)", shown, re.MULTILINE):
        room = importlib.import_module(module)
        known = {
            *getattr(room, "__all__", ()),
            *(found.name for found in pkgutil.iter_modules(room.__path__)),
        }
        assert {name.split(" as ")[0].strip() for name in names.split(",")} <= known, module


def test_the_command_line_reference_leads_to_every_command():
    text = (DOCS / "reference" / "cli.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\(generated/cli/(\w+)\.rst\)", text)) == set(main.commands)


def test_a_reader_is_told_to_install_from_the_source_as_the_first_page_says():
    """No package index has cmtrack as far as the project can say: ``pip install '.[extra]'`` everywhere."""
    wrong = re.compile(
        r"""pip install (?:[^`\n#]* )?'?cmtrack(?:\[|[ `]|$)|(?:PipInstall\(|"pip": )\["cmtrack"""
    )
    assert wrong.search("pip install 'cmtrack[xgboost]'")
    assert wrong.search("pip install cmtrack -r requirements.txt")
    assert not wrong.search("pip install 'cmtrack-0.2.0-py3-none-any.whl[xgboost]'")
    folders = ("benchmarks", "cmtrack", "docs", "examples", "integrations")
    texts = [
        *ROOT.glob("*.md"),
        *(path for folder in folders for path in (ROOT / folder).rglob("*")),
    ]
    written = {"_build", "generated"}  # by an earlier build of the site
    texts = [path for path in texts if path.suffix in {".ipynb", ".md", ".py", ".rst"}]
    texts = [path for path in texts if not written & set(path.parts)]
    found = [
        f"{path.relative_to(ROOT)}: {line}"
        for path in texts
        for line in path.read_text(encoding="utf-8").splitlines()
        if wrong.search(line)
    ]
    assert found == []


def test_the_colours_of_figures_are_those_of_reports_in_both_schemes():
    blocks = re.findall(
        r"^(html\S*) \{(.*?)\}", generated_pages.colours(), re.DOTALL | re.MULTILINE
    )
    light, dark = (dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block)) for _, block in blocks)
    assert [name for name, _ in blocks] == ["html", "html[data-theme=dark]"]
    figure = plots.plot_roc([0, 0.5, 1], [0, 0.8, 1], auc=0.65)
    drawn = set(re.findall(r"var\(--([\w-]+)\)", plots.as_svg(figure)))
    assert set(light) == set(dark) >= drawn != set()
    assert light["page"] == "#ffffff" != dark["page"]
    assert "color-scheme" not in generated_pages.colours()


# -- the checker -----------------------------------------------------------------------------------------------

PAGE = '<html><body><h1 id="top">Here</h1><a href="other.html#part">there</a></body></html>'
OTHER = '<html><body><section id="part">{}</section></body></html>'


@pytest.mark.parametrize("changed", ["cmtrack/a/b.py", "docs/_pages/survey.py"])
def test_what_earlier_builds_kept_goes_where_the_code_that_pages_run_has_changed(
    build, tmp_path, changed
):
    root, site = tmp_path / "root", tmp_path / "site"
    for name in (
        "cmtrack/a/b.py",
        "docs/_pages/survey.py",
        "docs/start.md",
        "docs/gallery/generated/examples/a.md5",
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("before")
    kept = [
        site / ".doctrees" / "pages",
        site / ".jupyter_cache" / "runs",
        root / "docs/gallery/generated/examples/a.md5",
    ]

    def keep():
        for path in kept:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("kept")

    build.forget(site, root)
    keep()
    (root / "docs" / "start.md").write_text("after")  # Sphinx sees this by itself
    build.forget(site, root)
    assert all(path.is_file() for path in kept)
    (root / changed).write_text("after")
    build.forget(site, root)
    assert not any(path.is_file() for path in kept)
    keep()
    build.forget(site, root)
    assert all(path.is_file() for path in kept)


def site_of(folder: Path, content: str = "", *, css: str = "body { color: black }") -> Path:
    """A site of two pages with an index for its search, where ``content`` stands in the second page."""
    (folder / "_static").mkdir()
    (folder / "index.html").write_text(PAGE, encoding="utf-8")
    (folder / "other.html").write_text(OTHER.format(content), encoding="utf-8")
    (folder / "_static" / "own.css").write_text(css, encoding="utf-8")
    (folder / "_static" / "documentation_options.js").write_text(
        "const O = {SHOW_SEARCH_SUMMARY: false};"
    )
    (folder / "searchindex.js").write_text(
        'Search.setIndex({"docnames": ["index"], "indexentries": {"word": [[0, "", true]]}})'
    )
    return folder


def test_a_site_in_order_has_no_faults(build, tmp_path):
    style = '<link rel="stylesheet" href="_static/own.css">'
    good = f'<a href="https://example.org/x">far</a> <a href="#part">near</a> {style}'
    assert build.check(site_of(tmp_path, good)) == []


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param(
            '<script src="https://cdn.example.org/a.js"></script>', "from outside", id="script"
        ),
        pytest.param(
            '<link rel="stylesheet" href="//fonts.example.org/a.css">', "from outside", id="font"
        ),
        pytest.param('<img src="missing.png">', "not in the site", id="no image"),
        pytest.param(
            '<img src="_static/own.css" srcset="http://example.org/b.png 2x">',
            "from outside",
            id="srcset",
        ),
        pytest.param('<a href="index.html#nowhere">x</a>', "no such anchor", id="no anchor"),
        pytest.param('<a href="#nowhere">x</a>', "no such anchor", id="no anchor here"),
        pytest.param('<a href="missing.html">x</a>', "not in the site", id="no page"),
        pytest.param('<a href="../up.html">x</a>', "not in the site", id="outside the site"),
        pytest.param(f"<pre>File {Path.home()}/x.py</pre>", "the path", id="home"),
        pytest.param(f"<pre>{sys.prefix}/lib/python</pre>", "the path", id="environment"),
        pytest.param(
            "<pre>&lt;Axes at 0x7f3d2a1b4c50&gt;</pre>", "at 0x7f3d2a1b4c50", id="address"
        ),
        pytest.param(
            '<p style="background: url(https://example.org/a.png)">x</p>',
            "from outside",
            id="style",
        ),
    ],
)
def test_a_fault_of_a_page_is_found(build, tmp_path, content, said):
    (fault,) = build.check(site_of(tmp_path, content))
    assert fault.startswith("other.html: ")
    assert said in fault


def test_a_style_sheet_that_loads_a_font_from_outside_is_found(build, tmp_path):
    (fault,) = build.check(site_of(tmp_path, css="@import 'https://fonts.example.org/a.css';"))
    assert fault == "_static/own.css: loads “https://fonts.example.org/a.css” from outside"


def test_a_search_without_the_entries_of_the_index_is_found(build, tmp_path):
    site = site_of(tmp_path)
    (site / "searchindex.js").write_text(
        'Search.setIndex({"docnames": ["index"], "indexentries": {}})'
    )
    assert build.check(site) == ["searchindex.js: the search has lost the entries of the index"]


def test_a_search_that_needs_the_network_is_found(build, tmp_path):
    site = site_of(tmp_path)
    (site / "_static" / "documentation_options.js").write_text(
        "const O = {SHOW_SEARCH_SUMMARY: true};"
    )
    (site / "searchindex.js").unlink()
    assert [fault.split(":")[0] for fault in build.check(site)] == [
        "searchindex.js",
        "_static/documentation_options.js",
    ]


@pytest.mark.parametrize(
    ("code", "faults"),
    [
        pytest.param("", [], id="passes"),
        pytest.param("print('a.png shows “x”'); exit(1)", ["a.png shows “x”"], id="outdated"),
        pytest.param(
            "exit('no data')", ["docs/pictures.py --check failed:\nno data\n"], id="fails"
        ),
    ],
)
def test_outdated_pictures_are_faults_of_the_site(build, monkeypatch, code, faults):
    def popen(_: list[str], **options: object) -> subprocess.Popen[str]:
        return process([sys.executable, "-c", code], **options)

    process = subprocess.Popen
    monkeypatch.setattr(build.subprocess, "Popen", popen)
    assert build.faults_of_pictures(build.start_check_of_pictures()) == faults


# -- the picture of the rooms ----------------------------------------------------------------------------------


def test_the_picture_of_the_rooms_has_the_floors_of_the_imports():
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers = linter["contracts"][0]["layers"]
    picture = ElementTree.parse(DOCS / "_static" / "rooms.svg").getroot()
    heights = {
        str(text.text): int(text.attrib["y"])
        for text in picture.iter("{http://www.w3.org/2000/svg}text")
        if text.attrib["class"] == "room"
    }
    rooms = {folder.parent.name for folder in (ROOT / "cmtrack").glob("*/__init__.py")}
    assert rooms | {"cmtrack_integrations"} <= set(heights)
    above = 0
    for layer in layers:
        names = [name.removeprefix("cmtrack.") for name in layer.split(" | ")]
        floor = [heights.pop(name) for name in names if name in heights]
        assert min(floor, default=above) >= above, layer
        assert len(set(floor)) <= 1, layer
        above = max(floor, default=above)
    assert not heights, "not a layer of the imports"
