"""The runs that pages of this site show: models of the survey of `cmtrack demo`, logged to a separate store.

A page begins with a hidden cell::

    import sys; sys.path.insert(0, "../_pages")
    import survey
    survey.begin()      # a new working folder and tracking store; the page leaves no files

and then uses ``survey.data()``, ``survey.party()``, ``survey.scores("decision tree")``,
``survey.evaluations()``, ``survey.runs()``. A cell tagged ``remove-input`` with ``survey.command("cmtrack ...")`` shows
a command with its output; ``survey.page("review.html", "A review")`` shows a page.
"""

from __future__ import annotations

import atexit
import html
import logging
import os
import pickle
import re
import shlex
import shutil
import tempfile
import textwrap
import warnings
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from cmtrack import Evaluation, Grouping, evaluate, log_evaluation
from cmtrack.demo import Data, load, models, question

EXPERIMENT = "party"
NAMES = ("neural network", "decision tree", "k-nearest neighbours")
WIDTH = 84
"""Characters of a line of output that fits the page."""
REGIONS = ("small place", "town", "city")
"""Where the people of the survey live: below 10,000, below 100,000, and from 100,000 inhabitants on."""


_PLAIN = {"TERM": "dumb", "NO_COLOR": "1", "FORCE_COLOR": None, "CLICOLOR_FORCE": None}


def begin() -> None:
    """Make a working folder with an empty MLflow store, and go there."""
    warnings.filterwarnings("ignore", message="IProgress not found")
    import mlflow

    for name in ("mlflow", "alembic", "sqlalchemy"):
        logging.getLogger(name).setLevel(logging.ERROR)
    store = Path(tempfile.gettempdir()) / f"cmtrack-pages-mlflow-{mlflow.__version__}.db"
    folder = Path(tempfile.mkdtemp(prefix="cmtrack-page-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.chdir(folder)
    os.environ["MLFLOW_TRACKING_URI"] = "sqlite:///mlflow.db"
    os.environ["MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR"] = "false"
    os.environ["COLUMNS"] = str(WIDTH)  # of what commands print
    for name in (
        "CMTRACK_PREDICTIONS",
        "MLFLOW_EXPERIMENT_ID",
        "MLFLOW_EXPERIMENT_NAME",
        "MLFLOW_RUN_ID",
    ):
        os.environ.pop(name, None)

    def shown(message: Warning | str, category: type[Warning], *_: object) -> str:
        return (
            "\n".join(_wrapped(f"{category.__name__}: {message}".replace(f"{folder}{os.sep}", "")))
            + "\n"
        )

    warnings.formatwarning = shown  # type: ignore[assignment]
    if store.is_file():
        shutil.copy(store, folder / "mlflow.db")
        return
    # MLflow creates its tables in seconds. One copy for all pages saves that time.
    mlflow.search_experiments()
    copy = shutil.copy(folder / "mlflow.db", store.with_suffix(f".{os.getpid()}"))
    os.replace(copy, store)


data = cache(load)
"""The rows for training, calibration and evaluation: :class:`cmtrack.demo.Data`."""


def command(line: str) -> None:
    """Print a shell line and its output. "cmtrack ..." runs in this process, which saves the imports."""
    from click.testing import CliRunner

    from cmtrack.cli import main

    words = shlex.split(line, comments=True)
    with patch("rich.console._is_jupyter", return_value=False):  # text, as in a terminal
        result = CliRunner(env=_PLAIN).invoke(main, words[1:], prog_name=words[0])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    print(" \\\n    ".join(_broken(f"$ {line}", WIDTH - 6)))
    for said in result.output.replace(f"{Path.cwd()}{os.sep}", "").rstrip().splitlines():
        print(
            *(
                _wrapped(said)
                if len(said) > WIDTH and not said.startswith(("|", " ", "{"))
                else [said]
            ),
            sep="\n",
        )
    print(f"[exit code {result.exit_code}]")


def page(file: str, title: str, height: str = "36rem") -> Any:
    """A page that works, inside this one."""
    from IPython.display import HTML

    content = html.escape(Path(file).read_text(encoding="utf-8"))
    look = f"width:100%;height:{height};border:1px solid #8888"
    return HTML(
        f'<div><iframe srcdoc="{content}" title="{title}" loading="lazy" style="{look}"></iframe></div>'
    )


def glue_figures(kind: str, drawn: dict[str, Any], entries: Sequence[Any]) -> None:
    """Keep one figure of each entry of a list, for where the page has its words."""
    from IPython.display import Markdown
    from myst_nb import glue

    for entry in entries:
        stem, part, _ = entry.name.partition("<")
        names = [name for name in drawn if (name.startswith(stem) if part else name == stem)]
        shown = (
            drawn[names[0]] if names else Markdown("*It does not apply to the runs of this page.*")
        )
        glue(f"{kind}: {entry.name}", shown, display=False)


def _broken(line: str, width: int) -> list[str]:
    """Break a command between its options, so that what is copied runs."""
    lines = [""]
    for part in re.split(r" (?=--)", line):
        lines += (
            [part]
            if lines[-1] and len(lines[-1]) + len(part) >= width
            else [f"{lines.pop()} {part}".lstrip()]
        )
    return lines


def _wrapped(text: str, width: int = WIDTH) -> list[str]:
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)


def party() -> Grouping:
    """The seven answers as democrat, independent and republican."""
    return Grouping(
        {"democrat": [0, 1, 2], "independent": [3], "republican": [4, 5, 6]}, name="party"
    )


def region(split: str = "test") -> np.ndarray:
    """The size of the place where each person of a split lives, in three kinds, from ``logpopul``."""
    people: Data = data()
    thousands = np.exp(getattr(people, f"x_{split}")[:, 0]) - 0.1
    return np.asarray(np.array(REGIONS)[np.digitize(thousands, [10, 100])])


@cache
def fitted(name: str) -> Any:
    """The fitted classifier of a name of the demo."""
    people, model = data(), next(model for model in models() if model.name == name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a hundred epochs, as in the literature
        return model.classifier.fit(people.x_fit, people.y_fit)


def scores(name: str, split: str = "test") -> np.ndarray:
    """The (n, 7) probabilities that a model gives to the people of a split: fit, held or test."""
    return np.asarray(fitted(name).predict_proba(getattr(data(), f"x_{split}")))


def arguments(name: str) -> dict[str, Any]:
    """The arguments of `evaluate` and `log_evaluation` for a model, but the labels."""
    held = (data().y_held, scores(name, "held"))
    return {"y_prob": scores(name), "labels": range(7), "grouping": question(), "calibration": held}


def evaluations(names: Sequence[str] = NAMES) -> dict[str, Evaluation]:
    """Evaluate models, without MLflow."""
    return {name: evaluate(data().y_test, **arguments(name)) for name in names}


def runs(names: Sequence[str] = NAMES, **options: Any) -> dict[str, str]:
    """Log models to the experiment "party", each to a run of its name with its parameters and size; the runs' ids."""
    import mlflow

    mlflow.set_experiment(EXPERIMENT)
    known = {model.name: model.parameters for model in models()}
    ids = {}
    for name in names:
        with mlflow.start_run(run_name=name) as run:
            mlflow.log_params(
                {"model": name, "model_bytes": len(pickle.dumps(fitted(name))), **known[name]}
            )
            log_evaluation(
                data().y_test, **arguments(name), dataset="ANES 1996, test", strict=True, **options
            )
        ids[name] = run.info.run_id
    return ids
