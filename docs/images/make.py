"""The pictures of README: ``python docs/images/make.py``.

Badges are drawn from ``pyproject.toml`` alone (``--badges``). The figures, and the pages as a browser shows them, come from
``cmtrack demo``. They need the extras ``demo`` and ``test``, and Chromium.
"""

from __future__ import annotations

import argparse
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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
COLOURS = 160  # of a picture's palette: enough for text and bands, and a third of the size
FIGURES = {"reduced_side": "reduced", "reliability": "reliability"}  # name: file
DPI = 110
BROWSER = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
]
# "you" logged the runs
PLAIN = {"GIT_PYTHON_REFRESH": "quiet", "MLFLOW_DISABLE_TELEMETRY": "true", "LOGNAME": "you"}


def badges(pyproject: dict[str, Any]) -> dict[str, str]:
    """SVG of each badge by its file name, from what ``pyproject.toml`` declares."""
    project = pyproject["project"]
    versions = [
        m[1]
        for c in project["classifiers"]
        if (m := re.fullmatch(r"Programming Language :: .*(3\.\d+)", c))
    ]
    (mlflow,) = [
        d.removeprefix("mlflow") for d in project["dependencies"] if re.match(r"mlflow\W", d)
    ]
    low, high = re.fullmatch(r">=([\d.]+),<([\d.]+)", mlflow).groups()  # type: ignore[union-attr]
    said = {
        "python": ("Python", " | ".join(versions)),
        "mlflow": ("MLflow", f"{low} or newer, below {high}"),
        "licence": ("licence", project["license"]),
    }
    if "Typing :: Typed" in project["classifiers"]:
        said["typed"] = (
            "types",
            "checked by mypy --strict" if pyproject["tool"]["mypy"]["strict"] else "declared",
        )
    return {f"{name}.svg": _badge(*words) for name, words in said.items()}


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


def keep(name: str, png: bytes) -> None:
    """Write a picture with a palette, and tell its size."""
    from PIL import Image

    image = Image.open(BytesIO(png)).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    image.save(HERE / name, optimize=True)
    print(f"{name:16} {image.width} x {image.height}, {(HERE / name).stat().st_size / 1e3:.0f} kB")


def figures(evaluation: Any) -> None:
    """The figures of one run."""
    from cmtrack.plots.style import as_png

    drawn = evaluation.figures()
    for figure, name in FIGURES.items():
        keep(f"{name}.png", as_png(drawn[figure], dpi=DPI))


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Address of MLflow's pages over the demo's store, for as long as the context is open."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = ["-m", "mlflow", "server", "--backend-store-uri", f"sqlite:///{folder / 'mlflow.db'}"]
    options = ["--port", str(port), "--workers", "1"]
    server = subprocess.Popen(
        [sys.executable, *command, *options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(120):
            try:
                urllib.request.urlopen(f"{address}/health", timeout=1).close()
                break
            except OSError:
                time.sleep(0.5)
        yield address
    finally:
        # the server and its workers; nothing is written any more
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def pages(demo: Any) -> None:
    """The review and the run's page of MLflow, as a browser shows them."""
    from mlflow import MlflowClient
    from playwright.sync_api import sync_playwright

    leader = demo.runs[0]
    experiment = MlflowClient(demo.tracking_uri).get_run(leader.run_id).info.experiment_id
    with sync_playwright() as playwright, served(demo.directory) as address:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=BROWSER)

        def shot(
            file: str,
            url: str,
            size: tuple[int, int],
            until: str = "",
            tidy: Callable[[Any], Any] = id,
        ) -> None:
            """The page at this size, down to where a text begins."""
            # the button of MLflow's assistant stands below
            room = {"width": size[0], "height": size[1] + 120}
            page = browser.new_page(viewport=room, color_scheme="light")
            page.goto(url)
            tidy(page)
            height = page.get_by_text(until).first.bounding_box()["y"] - 16 if until else size[1]
            keep(file, page.screenshot(clip={"x": 0, "y": 0, "width": size[0], "height": height}))
            page.close()

        shot("review.png", demo.review.as_uri(), (1120, 1200), until="Brackets show")
        shot(
            "run_page.png",
            f"{address}/#/experiments/{experiment}/runs/{leader.run_id}",
            (1240, 1045),
            tidy=_tidy,
        )
        browser.close()


def _tidy(page: Any) -> None:
    """MLflow's page of a run: the description opened, without assistant and sidebar."""
    for name in ("Close", "Toggle sidebar", "Expand description"):
        page.get_by_role("button", name=name).click()
    page.wait_for_timeout(3000)  # for the picture in the description


def main() -> None:
    """Write the pictures beside this file."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--badges", action="store_true", help="the badges alone")
    only_badges = asked.parse_args().badges
    for name, svg in badges(
        tomllib.loads((HERE.parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
    ).items():
        (HERE / name).write_text(svg, encoding="utf-8")
    if only_badges:
        return
    os.environ.update(PLAIN)
    from cmtrack.demo import run_demo

    with tempfile.TemporaryDirectory() as folder:
        demo = run_demo(folder)
        figures(demo.runs[0].evaluation)
        pages(demo)


if __name__ == "__main__":
    main()
