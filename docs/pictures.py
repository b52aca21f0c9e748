"""Make the pictures of README and the site: ``python docs/pictures.py``.

The figures, the review and MLflow's pages come from ``cmtrack demo`` and from the code of docs/start.md. Making them needs
the extras ``docs`` and ``test``, and Chromium. ``docs/images/words.json`` lists the phrases of cmtrack in each picture.

``--check`` evaluates the same models again, and fails if cmtrack no longer writes one of these phrases. It needs no browser;
``docs/build.py`` runs it. ``--badges`` draws only the badges, from ``pyproject.toml``.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import tomllib
import urllib.request
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from html.parser import HTMLParser
from io import BytesIO
from pathlib import Path
from typing import Any
from unittest.mock import patch

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
IMAGES = DOCS / "images"
WORDS = IMAGES / "words.json"
COMMAND = "python docs/pictures.py"

PICTURES = {
    "images/review.png": "review",
    "images/run_page.png": "mlflow",
    "images/reduced.png": "figures",
    "images/reliability.png": "figures",
    "_static/mlflow_run.png": "mlflow",
    "_static/mlflow_view.png": "mlflow",
    "_static/mlflow_charts.png": "mlflow",
}
"""Each picture in docs, and where its phrases come from."""
FIGURES = {"images/reduced.png": "reduced_side", "images/reliability.png": "reliability"}
COLOURS = 160  # of a picture's palette: enough for text and bands, and a third of the size
DPI = 110
BROWSER = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# MLflow shows who logged a run: "you".
PLAIN = {
    "GIT_PYTHON_REFRESH": "quiet",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
    "LOGNAME": "you",
    "MPLBACKEND": "Agg",
}


# -- phrases ---------------------------------------------------------------------------------------

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z“])")
_QUOTED = re.compile(r"“[^”]*”")
_NUMBER = re.compile(
    r"\b(?:[0-9a-f]{32}|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)\b"
    r"|(?<![\w#])[−+]?\d(?:[\d.,]*\d)?%?",
    re.IGNORECASE,
)
_LETTERS = re.compile(r"[^\W\d_]{2}")


def phrases(text: str) -> list[str]:
    """Split a text into sentences without numbers and names, which say nothing about cmtrack's wording."""
    line = " ".join(text.split())
    line = _NUMBER.sub("#", names_of_the_demo().sub("…", _QUOTED.sub("“…”", line)))
    sentences = [sentence.lstrip(" .,:;") for sentence in _SENTENCE_END.split(line)]
    return [sentence for sentence in sentences if _LETTERS.search(sentence)]


@cache
def names_of_the_demo() -> re.Pattern[str]:
    """Return a pattern of the names of the runs and groups in the pictures."""
    from cmtrack import demo

    names = {model.name for model in demo.models()}
    names |= {"nearest neighbours", "democrat", "not democrat"}
    return re.compile("|".join(sorted(map(re.escape, names), key=len, reverse=True)))


class TextNodes(HTMLParser):
    """The texts of a page, each as the browser has it in a text node."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.tag = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Remember the element, because a script has no visible text."""
        self.tag = tag

    def handle_endtag(self, tag: str) -> None:
        """Forget the element."""
        self.tag = ""

    def handle_data(self, data: str) -> None:
        """Add a text."""
        if self.tag not in ("script", "style"):
            self.texts.append(data)


def texts_of_figure(figure: Any) -> list[str]:
    """Return the texts that a figure shows."""
    from matplotlib.text import Text

    return [text.get_text() for text in figure.findobj(Text) if text.get_visible()]


def texts_of_store(uri: str) -> Iterator[str]:
    """Yield what cmtrack wrote into an MLflow store: descriptions, tags, names of metrics and data sets, saved views."""
    from mlflow import MlflowClient

    client = MlflowClient(uri)
    for experiment in client.search_experiments():
        yield from _texts_of_tags(experiment.tags)
        for run in client.search_runs([experiment.experiment_id]):
            if "cmtrack.kind" in run.data.tags:
                continue  # no picture shows the page of a review's run
            yield from _texts_of_tags(run.data.tags)
            yield from run.data.metrics
            yield from (used.dataset.name for used in run.inputs.dataset_inputs)


def _texts_of_tags(tags: Mapping[str, str]) -> Iterator[str]:
    from markdown_it import MarkdownIt

    for name, value in tags.items():
        if name == "mlflow.note.content":
            yield from TextNodes(MarkdownIt().enable("table").render(value)).texts
        elif name.startswith("mlflow.sharedViewState."):
            # MLflow stores the state of a view compressed.
            packed = re.search(r"deflate;([\w+/=]+)", value)
            state = zlib.decompress(base64.b64decode(packed[1])).decode() if packed else value
            strings = re.findall(r'"([^"]*)"', state)
            yield from (text for text in strings if "cmtrack" in text)
        elif name.startswith("cmtrack."):
            yield name
            if not value.startswith("{"):  # JSON is for programs
                yield value


def phrases_of(texts: Iterable[str]) -> list[str]:
    """Return the different phrases of texts, in their order."""
    return list(dict.fromkeys(phrase for text in texts for phrase in phrases(text)))


# -- what cmtrack writes now -------------------------------------------------------------------------


def run_start(**options: Any) -> Any:
    """Run the code of docs/start.md in a new folder and store, then log the comparison and save its view.

    ``options`` go to ``log_evaluation``.
    """
    import cmtrack

    source = (DOCS / "start.md").read_text(encoding="utf-8")
    cells = re.findall(r"^```\{code-cell\}[^\n]*\n(.*?)^```", source, re.MULTILINE | re.DOTALL)
    space: dict[str, Any] = {}
    log = partial(cmtrack.log_evaluation, **options)
    with patch.object(cmtrack, "log_evaluation", log):
        for cell in cells:
            if re.search(r"figures\(\)|report\(|survey\.command", cell):
                continue  # the cell only shows something
            exec(re.sub("^:tags:.*", "", cell, flags=re.MULTILINE), space)
    comparison = space["comparison"]
    comparison.log()
    return comparison


def texts_now() -> dict[str, set[str]]:
    """Evaluate and compare the models of all pictures, and return the phrases that cmtrack writes, by kind of picture."""
    import survey
    from mlflow import MlflowClient
    from mlflow.artifacts import download_artifacts

    from cmtrack import compare, demo

    run_start(figures=False).view()
    # A review counts the other runs of an experiment.
    with patch.object(survey, "EXPERIMENT", demo.EXPERIMENT):
        ids = survey.runs([model.name for model in demo.models()], figures=False)
    comparison = compare(list(ids.values()), rank_by=demo.RANK_BY)
    logged = comparison.log()
    page = download_artifacts(run_id=logged.run_id, artifact_path="cmtrack_review.html")
    review = TextNodes(Path(page).read_text(encoding="utf-8")).texts
    (leader,) = survey.evaluations([comparison.best.name]).values()
    figures = set(phrases_of_figures(leader))
    written = set(phrases_of(texts_of_store(MlflowClient().tracking_uri)))
    return {
        "review": {*phrases_of(review), *phrases(demo.QUESTION)},
        "mlflow": written | figures,
        "figures": figures,
    }


def phrases_of_figures(evaluation: Any) -> Iterator[str]:
    """Yield the phrases of the figures that are pictures."""
    drawn = evaluation.figures()
    for name in FIGURES.values():
        yield from phrases_of(texts_of_figure(drawn[name]))


def outdated(words: Mapping[str, Sequence[str]], texts: Mapping[str, set[str]]) -> list[str]:
    """List the pictures that show phrases which cmtrack no longer writes, each in one line with these phrases.

    ``words``: the phrases of each picture.
    ``texts``: the phrases that cmtrack writes now, by kind of picture.
    """
    faults = []
    for name, shown in words.items():
        phrases = [f"“{phrase}”" for phrase in shown if phrase not in texts[PICTURES[name]]]
        if phrases:
            faults.append(
                f"docs/{name} shows {', '.join(phrases)}, which cmtrack no longer writes. "
                f"To make the pictures again, run: {COMMAND}"
            )
    return faults


def check() -> int:
    """Print the outdated pictures, and return 1 if a picture is outdated."""
    words = json.loads(WORDS.read_text(encoding="utf-8"))
    faults = outdated(words, texts_now())
    for fault in faults:
        print(fault)
    return 1 if faults else 0


# -- pictures --------------------------------------------------------------------------------------


def save_picture(name: str, png: bytes) -> None:
    """Write a picture with a palette, and print its size."""
    from PIL import Image

    image = Image.open(BytesIO(png)).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    image.save(DOCS / name, optimize=True)
    size = (DOCS / name).stat().st_size / 1e3
    print(f"{name:26} {image.width} x {image.height}, {size:.0f} kB")


@contextmanager
def mlflow_server(store: Path) -> Iterator[str]:
    """Serve MLflow's pages of a store, and give their address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = ["-m", "mlflow", "server", "--backend-store-uri", f"sqlite:///{store}"]
    options = ["--port", str(port), "--workers", "1"]
    server = subprocess.Popen(
        [sys.executable, *command, *options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        # Jobs take longer to start than the server.
        env={**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"},
        start_new_session=True,
    )
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(240):
            try:
                urllib.request.urlopen(f"{address}/health", timeout=1).close()
                break
            except OSError:
                time.sleep(0.5)
        yield address
    finally:
        # The server has worker processes. Nobody writes to the store any more.
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


MLFLOW_BAR = 44
"""The width of the closed sidebar of MLflow's pages, which pictures leave out."""
MATRIX = 'img[src*="get-artifact"]'
"""The CSS selector of the matrix in the description of a run."""
VISIBLE_TEXTS = """
([left, right, height]) => {
  const texts = [];
  const nodes = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const range = document.createRange();
  function isShown(box, element) {
    if (!element.checkVisibility()) { return false; }
    if (box.left >= right || box.right <= left || box.top < 0 || box.bottom > height) { return false; }
    const found = document.elementFromPoint(box.left + 2, (box.top + box.bottom) / 2);
    return found !== null && (element.contains(found) || found.contains(element));
  }
  while (nodes.nextNode()) {
    const node = nodes.currentNode;
    range.selectNodeContents(node);
    if (Array.from(range.getClientRects()).some((box) => isShown(box, node.parentElement))) { texts.push(node.data); }
  }
  document.querySelectorAll("input, textarea").forEach(function (field) {
    if (isShown(field.getBoundingClientRect(), field)) { texts.push(field.value); }
  });
  return texts;
}
"""


def screenshot(
    browser: Any,
    name: str,
    address: str,
    size: tuple[int, int],
    *,
    until: str = "",
    prepare: Callable[[Any], Any] | None = None,
) -> list[str]:
    """Save the upper part of a page as a picture, and return the phrases that it shows.

    ``until``: a CSS selector of the element below which the picture ends.
    ``prepare``: called with a page of MLflow before the picture is taken.
    """
    width, height = size
    left = MLFLOW_BAR if prepare is not None else 0
    # MLflow has a button in the lower corner of the window.
    room = {"width": left + width, "height": height + 120}
    page = browser.new_page(viewport=room, color_scheme="light")
    page.goto(address)
    if prepare is not None:
        prepare(page)
    if until:
        last = page.locator(until).first.bounding_box()
        height = last["y"] + last["height"] + 2
    clip = {"x": left, "y": 0, "width": width, "height": height}
    save_picture(name, page.screenshot(clip=clip))
    texts = page.evaluate(VISIBLE_TEXTS, [left, left + width, height])
    page.close()
    return phrases_of(texts)


def open_description(page: Any) -> None:
    """Close the assistant and the sidebar of MLflow's page of a run, and open the description."""
    for name in ("Close", "Toggle sidebar", "Expand description"):
        page.get_by_role("button", name=name).click()
    page.wait_for_timeout(3000)  # until the picture in the description is loaded


def show_view(page: Any) -> None:
    """Close the assistant and the sidebar of MLflow's list of runs."""
    for name in ("Close", "Toggle sidebar"):
        page.get_by_role("button", name=name).first.click()
    page.wait_for_timeout(5000)  # until the charts are drawn


def take_pictures(playwright: Any, demo: Any, comparison: Any) -> dict[str, list[str]]:
    """Take the pictures of pages, and return the phrases of each.

    ``comparison``: of docs/start.md, whose store is in the working folder.
    """
    from mlflow import MlflowClient

    found = shutil.which("chromium") or shutil.which("google-chrome")
    browser = playwright.chromium.launch(executable_path=found, args=BROWSER)
    take = partial(screenshot, browser)
    leader = demo.runs[0]
    experiment = MlflowClient(demo.tracking_uri).get_run(leader.run_id).info.experiment_id
    runs = {entry.run.name: entry.run for entry in comparison.runs}
    logistic = runs["logistic regression"]
    view = comparison.view()
    words = {}
    name = "images/review.png"
    words[name] = take(name, demo.review.as_uri(), (1120, 1200), until="table.ranking")
    with mlflow_server(demo.directory / "mlflow.db") as address:
        name = "images/run_page.png"
        page = f"{address}/#/experiments/{experiment}/runs/{leader.run_id}"
        words[name] = take(name, page, (1200, 1400), until=MATRIX, prepare=open_description)
    with mlflow_server(Path.cwd() / "mlflow.db") as address:
        name = "_static/mlflow_run.png"
        page = f"{address}/#/experiments/{logistic.experiment_id}/runs/{logistic.run_id}"
        words[name] = take(name, page, (1200, 1400), until=MATRIX, prepare=open_description)
        name = "_static/mlflow_view.png"
        words[name] = take(name, f"{address}/{view.link}", (1090, 500), prepare=show_view)
        name = "_static/mlflow_charts.png"
        words[name] = take(name, f"{address}/{view.charts}", (1090, 1148), prepare=show_view)
    browser.close()
    return words


def make(folder: Path) -> None:
    """Make all pictures and the list of their phrases."""
    from mlflow import MlflowClient
    from playwright.sync_api import sync_playwright

    from cmtrack.demo import run_demo
    from cmtrack.plots.style import as_png

    demo = run_demo(folder)
    words = {}
    for name, figure in FIGURES.items():
        drawn = demo.runs[0].evaluation.figures()[figure]
        save_picture(name, as_png(drawn, dpi=DPI))
        words[name] = phrases_of(texts_of_figure(drawn))
    comparison = run_start()
    with sync_playwright() as playwright:
        words |= take_pictures(playwright, demo, comparison)
    written: set[str] = set()
    for uri in (demo.tracking_uri, MlflowClient().tracking_uri):
        written |= set(phrases_of(texts_of_store(uri)))
    for name, shown in words.items():
        if PICTURES[name] == "mlflow":
            # MLflow's own words change with its version.
            words[name] = [phrase for phrase in shown if phrase in written]
    for name in ("images/run_page.png", "_static/mlflow_run.png"):
        words[name] += words["images/reduced.png"]  # the matrix in the description
    text = json.dumps(words, indent=1, ensure_ascii=False, sort_keys=True)
    WORDS.write_text(f"{text}\n", encoding="utf-8")


# -- badges ----------------------------------------------------------------------------------------


def badges(pyproject: dict[str, Any]) -> dict[str, str]:
    """Return the SVG of each badge by its file name, from what ``pyproject.toml`` declares."""
    project = pyproject["project"]
    versions = []
    for classifier in project["classifiers"]:
        python = re.fullmatch(r"Programming Language :: .*(3\.\d+)", classifier)
        if python:
            versions.append(python[1])
    (mlflow,) = [
        dependency.removeprefix("mlflow")
        for dependency in project["dependencies"]
        if re.match(r"mlflow\W", dependency)
    ]
    low, high = re.fullmatch(r">=([\d.]+),<([\d.]+)", mlflow).groups()  # type: ignore[union-attr]
    texts = {
        "python": ("Python", " | ".join(versions)),
        "mlflow": ("MLflow", f"{low} or newer, below {high}"),
        "licence": ("licence", project["license"]),
    }
    if "Typing :: Typed" in project["classifiers"]:
        is_strict = pyproject["tool"]["mypy"]["strict"]
        texts["typed"] = ("types", "checked by mypy --strict" if is_strict else "declared")
    return {f"{name}.svg": _badge(*words) for name, words in texts.items()}


def _badge(name: str, value: str) -> str:
    left, right = (round(6.2 * len(text)) + 14 for text in (name, value))
    text = 'fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" '
        f'aria-label="{name}: {value}"><title>{name}: {value}</title>'
        f'<rect width="{left + right}" height="20" rx="3" fill="#1f5a96"/>'
        f'<path d="M3 0h{left - 3}v20H3a3 3 0 0 1-3-3V3a3 3 0 0 1 3-3z" fill="#444d56"/><g {text}>'
        f'<text x="{left / 2:g}" y="14" textLength="{left - 14}">{name}</text>'
        f'<text x="{left + right / 2:g}" y="14" textLength="{right - 14}">{value}</text></g></svg>\n'
    )


def make_badges() -> None:
    """Draw the badges."""
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    for name, svg in badges(pyproject).items():
        (IMAGES / name).write_text(svg, encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    """Make the pictures, or check them; return 1 if a picture is outdated."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--badges", action="store_true", help="draw only the badges")
    parser.add_argument(
        "--check",
        action="store_true",
        help="make nothing; fail if cmtrack no longer writes what a picture shows",
    )
    options = parser.parse_args(arguments)
    os.environ.update(PLAIN)
    # The pictures show this tree, whatever is installed.
    sys.path[:0] = [str(ROOT), str(ROOT / "integrations"), str(DOCS / "_pages")]
    if options.check:
        return check()
    make_badges()
    if options.badges:
        return 0
    # MLflow shows the script that logged a run, with its branch if it is in a repository.
    with (
        tempfile.TemporaryDirectory() as folder,
        patch.object(sys, "argv", [f"{folder}/train.py"]),
    ):
        make(Path(folder))
    # A new process, because the check evaluates the same models in a new store.
    return subprocess.run([sys.executable, __file__, "--check"], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
