"""The gallery: the scripts of ``examples/`` with their output, the tutorial, and the reproductions of the sources."""

from __future__ import annotations

import ast
import logging
import os
import re
import shutil
import sys
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from PIL import Image, ImageChops, ImageDraw, ImageFont
from sphinx_gallery.scrapers import figure_rst

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
RUN_IN = ROOT / "docs" / "_build" / "examples"
"""The scripts run in a copy of their folder, which gets their store and their files."""

NO_FIGURE = RUN_IN / "no_figure.png"
PAGES = "gallery/generated"
ORDER = (
    "anes_party",
    "segments",
    "digits_groups",
    "digits_count",
    "nps_by_month",
    "code_families",
    "rough_decision_table",
    "wrong_labels",
    "table_engines",
    "sklearn_hooks",
    "mlflow_evaluate",
    *sorted(path.stem for path in EXAMPLES.glob("hooks_*.py")),
)


QUICK = ("table_engines",)
"""Scripts that run with ``--quick``: no cluster is started for a page."""


def missing(script: Path) -> list[str]:
    """What a script imports at its top and is not installed."""
    names: set[str] = set()
    for node in ast.parse(script.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add((node.module or "").partition(".")[0])
    return sorted(name for name in names if find_spec(name) is None)


def configuration(*, run: bool) -> dict[str, Any]:
    """The settings of sphinx-gallery; the scripts that can run here are run, or none."""
    runnable = [path.stem for path in sorted(EXAMPLES.glob("*.py")) if not missing(path)]
    return {
        "examples_dirs": str(RUN_IN),
        "gallery_dirs": f"{PAGES}/examples",
        "filename_pattern": rf"[/\\](?:{'|'.join(runnable)})\.py$",
        "within_subsection_order": "example_gallery.in_order",
        "plot_gallery": str(run),
        "capture_repr": (),
        "image_scrapers": ("example_gallery.saved_figures",),
        "reset_modules": ("example_gallery.quiet",),
        "reset_modules_order": "both",
        "reset_argv": "example_gallery.arguments",
        "download_all_examples": False,
        "notebook_extensions": set(),
        "show_signature": False,
        "default_thumb_file": str(NO_FIGURE),
        "min_reported_time": 1e9,
        "write_computation_times": False,
    }


def in_order(name: str) -> int:
    """The place of a script in the gallery."""
    return ORDER.index(name.removesuffix(".py"))


def arguments(gallery_conf: dict[str, Any], script_vars: dict[str, Any]) -> list[str]:
    """What a script is started with."""
    return ["--quick"] if Path(script_vars["src_file"]).stem in QUICK else []


def saved_figures(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """The figures that a block of code saves, in its order."""
    taken, titles = [], []
    for name in re.findall(r"""\.savefig\(["']([\w.]+\.png)["']""", block[1]):
        image = next(block_vars["image_path_iterator"])
        shutil.copy(Path(block_vars["src_file"]).parent / name, image)
        taken.append(image)
        titles.append(name.removesuffix(".png").replace("_", " "))
    return figure_rst(taken, gallery_conf["src_dir"], ", ".join(titles))


_SURROUNDINGS: dict[str, str] = {}
"""The environment before a script, restored after it: the next script or page must not use its store."""


def quiet(gallery_conf: dict[str, Any], name: str, when: str) -> None:
    """Keep the logs of libraries off the pages; after a script, forget modules that the reference mocks."""
    for logger in ("mlflow", "alembic", "mlflow.store.db.utils"):
        logging.getLogger(logger).setLevel(logging.ERROR)
    warnings.simplefilter("ignore")  # they name the files of this machine
    if when == "before":
        _SURROUNDINGS.clear()
        _SURROUNDINGS.update(os.environ)
    else:
        os.environ.clear()
        os.environ.update(_SURROUNDINGS)
        for module in list(sys.modules):
            if module.startswith("cmtrack_integrations."):
                del sys.modules[module]


def copy_scripts() -> None:
    """Put the scripts into a new folder to run in; the one of an earlier build goes."""
    shutil.rmtree(RUN_IN, ignore_errors=True)
    RUN_IN.mkdir(parents=True)
    for path in [*EXAMPLES.glob("*.py"), EXAMPLES / "GALLERY_HEADER.rst"]:
        shutil.copy(path, RUN_IN)
    sign = Image.new("RGBA", (400, 280), (0, 0, 0, 0))
    ImageDraw.Draw(sign).text(
        (200, 140), "</>", (128, 136, 148), ImageFont.load_default(90), anchor="mm"
    )
    sign.save(NO_FIGURE)


def cards() -> str:
    """A card with its small picture and its title for each script."""
    written = []
    for name in ORDER:
        words = (
            ast.get_docstring(ast.parse((EXAMPLES / f"{name}.py").read_text(encoding="utf-8")))
            or name
        )
        source = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
        card = f":::{{grid-item-card}} {words.splitlines()[0]}\n:link: generated/examples/{name}\n:link-type: doc\n"
        if ".savefig(" in source:
            card += (
                f":img-top: generated/examples/images/thumb/sphx_glr_{name}_thumb.png\n:img-alt: \n"
            )
        written.append(f"{card}:::\n")
    return "\n".join(["::::{grid} 1 2 2 3", ":gutter: 2", "", *written, "::::"]) + "\n"


def copy_pages(docs: Path) -> None:
    """Put the tutorial and the reports of the reproductions among the pages, and write their overview."""
    pages = docs / PAGES
    pages.mkdir(parents=True, exist_ok=True)
    shutil.copy(EXAMPLES / "tutorial.ipynb", pages)
    (pages / "cards.txt").write_text(cards(), encoding="utf-8")
    reports = EXAMPLES / "reproduce" / "reports"
    for report in sorted(reports.glob("*/report.md")):
        folder = pages / "reports" / report.parent.name
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(report.parent, folder, ignore=shutil.ignore_patterns("*.json", "*.csv"))
        for page in folder.glob("review*.md"):  # a part of the report, which begins below the title
            text = re.sub(r"^#(#+ )", r"\1", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
            page.write_text(text, encoding="utf-8")
    sys.path.insert(0, str(EXAMPLES / "reproduce"))
    try:
        from study.overview import overview
    finally:
        sys.path.pop(0)
    text = overview(reports, "generated/reports/{name}/report.md", "##")
    (pages / "overview.md").write_text(text + "\n", encoding="utf-8")


def say_what_did_not_run(app: Any, docname: str, source: list[str]) -> None:
    """Say on the page of a script that it was not run, or in part, and why."""
    place, _, name = docname.rpartition("/")
    script = EXAMPLES / f"{name}.py"
    if place != f"{PAGES}/examples" or not script.is_file():
        return
    if lacks := missing(script):
        those = " and ".join(f"“{one}”" for one in lacks)
        said = f"This script was not run for this page: {those} {'is' if len(lacks) == 1 else 'are'} not installed "
        said += "where the site was built."
    elif name in QUICK:
        said = "For this page the script was run with ``--quick``."
    else:
        return
    head = re.search(r"^=+\n\n", source[0], re.MULTILINE)
    at = head.end() if head else 0
    source[0] = f"{source[0][:at]}.. note::\n\n   {said}\n\n{source[0][at:]}"


def crop_thumbnails(app: Any, env: Any, names: list[str]) -> None:
    """Crop each small picture to the top of its drawing, so that its text can be read."""
    images = Path(app.srcdir) / PAGES / "examples" / "images"
    for file in images.glob("sphx_glr_*_001.png"):
        image = Image.open(file).convert("RGB")
        ground = Image.new("RGB", image.size, image.getpixel((0, 0)))
        drawing = image.crop(ImageChops.difference(image, ground).getbbox())
        height = min(drawing.height, round(0.7 * drawing.width))
        thumbnail = drawing.crop((0, 0, drawing.width, height))
        thumbnail.thumbnail((640, 640))
        thumbnail.save(images / "thumb" / file.name.replace("_001.png", "_thumb.png"))


def setup(app: Any) -> dict[str, bool]:
    """Write the pages before Sphinx looks for its files."""
    copy_scripts()
    copy_pages(Path(app.srcdir))
    app.connect("source-read", say_what_did_not_run)
    app.connect("env-before-read-docs", crop_thumbnails)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
