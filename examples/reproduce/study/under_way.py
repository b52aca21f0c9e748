"""A study: one source, reproduced in a fast or a full mode, tracked in MLflow and reported in Markdown."""

from __future__ import annotations

import json
import logging
import platform
import time
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import TypeVar

import click
import mlflow
import pandas as pd
from matplotlib.figure import Figure
from rich.console import Console
from rich.progress import track

from study.report import Report

Item = TypeVar("Item")


def prepare_store(output: Path) -> str:
    """Make the store in a folder where there is none, and use it; its URI."""
    # says how it makes its tables
    logging.getLogger("mlflow.store.db.utils").setLevel(logging.WARNING)
    logging.getLogger("alembic").setLevel(logging.WARNING)
    output.mkdir(parents=True, exist_ok=True)
    store = f"sqlite:///{(output.resolve() / 'mlflow.db').as_posix()}"
    mlflow.set_tracking_uri(store)
    mlflow.search_experiments()
    return store


class Study:
    """One source under way.

    Parameters
    ----------
    name : str
        Of the script; also of the folder of its report and of the MLflow experiment.
    title, source : str
        What the report says at its top: of what it is a reproduction, and the full reference.
    output : path
        Gets the store (``mlflow.db`` and ``artifacts``) and ``reports/<name>/`` with ``report.md``, its figures and
        tables, and ``outcomes.json``.
    fast : bool
        Few repeats on small data, for a look at the whole; otherwise everything that the source did.
    """

    def __init__(self, name: str, title: str, source: str, *, output: Path, fast: bool) -> None:
        output = Path(output).resolve()
        self.name, self.title, self.source = name, title, source
        self.fast = fast
        self.folder = output / "reports" / name
        self.folder.mkdir(parents=True, exist_ok=True)
        self.report = Report(self.folder, title)
        self._console = Console(stderr=True)
        self._outcomes: list[dict[str, str]] = []
        self._started = time.perf_counter()
        self.store = prepare_store(output)
        if mlflow.get_experiment_by_name(name) is None:
            mlflow.create_experiment(name, artifact_location=(output / "artifacts").as_uri())
        mlflow.set_experiment(name)
        mode = (
            "fast mode: few repeats on small data, to see that all of it runs"
            if fast
            else "full mode"
        )
        self.report.text(
            f"Source: {source}", f"Written by `python examples/reproduce/{name}.py`, {mode}."
        )

    def pick(self, *, fast: Item, full: Item) -> Item:
        """One of two sizes, by the mode."""
        return fast if self.fast else full

    def track(self, items: Iterable[Item], what: str) -> Iterator[Item]:
        """Go through the items with a progress bar on stderr."""
        items = list(items)
        return iter(track(items, f"{self.name}: {what}", console=self._console))

    def heading(self, text: str) -> None:
        """Begin a section of the report; said on stderr, too."""
        self._console.print(f"{self.name}: {text}", highlight=False, markup=False)
        self.report.heading(text)

    def text(self, *paragraphs: str) -> None:
        """Paragraphs of Markdown; every number in them is computed or from the module of published numbers."""
        self.report.text(*paragraphs)

    def bullets(self, *items: str) -> None:
        """A list."""
        self.report.text("\n".join(f"* {' '.join(item.split())}" for item in items))

    def table(self, name: str, frame: pd.DataFrame, caption: str, *, digits: int = 2) -> None:
        """A table of the report, kept as ``<name>.csv``."""
        self.report.table(name, frame, caption, digits=digits)

    def figure(self, name: str, figure: Figure, caption: str, *, kept: bool = True) -> None:
        """A figure of the report, as ``<name>.png``, or in ``pictures/`` if it is not to be kept; it is closed."""
        self.report.figure(name, figure, caption, kept=kept)

    def outcome(self, item: str, *, reproduced: str, near: str, not_possible: str = "") -> None:
        """A row of the overview: a published table or figure, what was done for it, how near, and what cannot be."""
        row = {
            "item": item,
            "reproduced": reproduced,
            "near": near,
            "not possible, and why": not_possible,
        }
        self._outcomes.append(row)

    def close(self) -> Path:
        """Write the report, and log it as a run of its own; return its path."""
        minutes = (time.perf_counter() - self._started) / 60
        packages = ", ".join(
            f"{name} {version(name)}" for name in ("mlflow", "numpy", "scikit-learn")
        )
        self.report.heading("What came out")
        self.report.table(
            "outcomes",
            pd.DataFrame(self._outcomes),
            "Published items, and how near we come",
            digits=2,
        )
        self.report.text(
            f"Took {minutes:.1f} minutes. Python {platform.python_version()}, {packages}."
        )
        path = self.report.save()
        summary = {
            "name": self.name,
            "title": self.title,
            "source": self.source,
            "mode": self.pick(fast="fast", full="full"),
            "minutes": round(minutes, 1),
            "outcomes": self._outcomes,
        }
        text = json.dumps(summary, indent=1, ensure_ascii=False)
        (self.folder / "outcomes.json").write_text(text + "\n", encoding="utf-8")
        with mlflow.start_run(run_name="report", tags={"mode": summary["mode"]}):
            mlflow.log_artifacts(str(self.folder))
        self._console.print(f"{self.name}: {path}", highlight=False, markup=False, soft_wrap=True)
        return path


def mode_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options ``--fast`` and ``--output`` of every command here."""
    fast = click.option("--fast", is_flag=True, help="Few repeats on small data.")
    output = click.option(
        "--output",
        type=click.Path(file_okay=False, path_type=Path),
        default=Path("reproduced"),
        show_default=True,
        help="Gets the MLflow store and the reports.",
    )
    return fast(output(command))


def study_command(
    name: str, title: str, source: str, study: Callable[[Study], None]
) -> click.Command:
    """The command of a script: ``--fast`` and ``--output``; the reference is its help."""

    @click.command(name=name, help=f"{title}\n\n{source}")
    @mode_options
    def command(fast: bool, output: Path) -> None:
        under_way = Study(name, title, source, output=output, fast=fast)
        study(under_way)
        under_way.close()

    return command
