"""The list of figures: each has words, and is in the report, the run, the review and the folder of the command line."""

from __future__ import annotations

import json
import re

import mlflow
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from cmtrack import Grouping, compare, evaluate, evaluate_families, log_evaluation
from cmtrack.cli import main
from cmtrack.report import CLASSES, FAMILIES, draw_pictures
from cmtrack.report.review import html
from support.families import by_ten, generated
from support.problems import random_probabilities

NAMES = np.array(["ant", "bee", "cat", "dog"])
INSECTS = Grouping(
    {"insects": ["ant", "bee"], "beasts": ["cat", "dog"]}, positive="insects", name="legs & wings"
)


def predictions(skill: float = 1.5, seed: int = 0):
    y = np.arange(200) % 4
    return NAMES[y], random_probabilities(y, 4, skill, seed)


def of_classes(skill: float = 1.5, seed: int = 0):
    y, p = predictions(skill, seed)
    held = predictions(skill, seed + 100)
    return evaluate(y, y_prob=p, labels=list(NAMES), grouping=INSECTS, calibration=held)


def of_families():
    return evaluate_families(*generated(100, seed=3), by_ten)


def names_of(entries, subject) -> list[str]:
    return [name for entry in entries for name, _, _ in entry.drawings(subject)]


def without_figures(page: str) -> str:
    """A page without its figures, its title and the line that says of which run it is."""
    parts = r"<details class=\"figure-fold\">.*?</details>\s*|<figure.*?</figure>\s*|<title>.*?</title>|<h1>.*?</h1>\s*|<p class=\"subtitle\">.*?</p>\s*"
    return re.sub(parts, "", page, flags=re.DOTALL)


def file_of(name: str) -> str:
    """The file of a figure in a run and in a folder; what no file system likes in a name is spelled out."""
    return f"cmtrack_{name.replace(' & ', '__u26__')}.png"


@pytest.mark.parametrize("entries", [CLASSES, FAMILIES], ids=["classes", "families"])
def test_every_figure_has_words_and_one_is_for_the_charts_of_mlflow(entries):
    for entry in entries:
        assert entry.title[0].isupper()
        assert entry.reading.endswith(".")
    assert len({entry.name for entry in entries}) == len(entries)
    assert sum(entry.chart is not None for entry in entries) == 1


@pytest.mark.slow
def test_a_run_gets_the_figures_that_its_page_shows_by_default():
    # The page of an evaluation with a positive group has no figures of all classes.
    of_group = ["at_prevalence", "decision_curve", "gains"]
    of_all = ["class_curves", "reliability_classes", "risk_coverage"]
    y, p = predictions()
    for evaluation, shown in (
        (of_classes(), of_group),
        (evaluate(y, y_prob=p, labels=list(NAMES)), of_all),
    ):
        pictures, logged = draw_pictures(evaluation), draw_pictures(evaluation, figures="auto")
        assert [name for name in pictures if name not in logged] == shown
    logged = draw_pictures(of_classes(), figures="auto")
    assert {"reliability", "precision_recall"} <= set(logged)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("made", "entries"),
    [(of_classes, CLASSES), (of_families, FAMILIES)],
    ids=["classes", "families"],
)
def test_every_figure_is_in_the_report_and_in_the_run(store, tmp_path, made, entries):
    evaluation = made()
    assert list(evaluation.figures()) == names_of(entries, evaluation)
    entries = [entry for entry in entries if entry.is_on_page(evaluation)]
    names = names_of(entries, evaluation)
    logged_names = names_of([entry for entry in entries if entry.logged], evaluation)
    page = evaluation.report(tmp_path / "new" / "report.html").read_text(encoding="utf-8")
    assert page.count("<svg ") == len(names)
    for entry in [entry for entry in entries if entry.drawings(evaluation)]:
        assert entry.title.split("<")[0] in page
        assert entry.reading in page
        assert len(entry.reading) <= 210
    with mlflow.start_run() as run:
        log_evaluation(evaluation, strict=True)
    found = {file.path for file in store.list_artifacts(run.info.run_id)}
    files = names_of([entry for entry in entries if entry.logged == "file"], evaluation)
    assert {file_of(name) for name in names} & found == {file_of(name) for name in files}
    logged = mlflow.artifacts.load_text(f"{run.info.artifact_uri}/cmtrack_report.html")
    # .report is the page that is logged, with all figures
    assert without_figures(logged) == without_figures(page)
    assert logged.count("<svg ") == len(logged_names)


@pytest.mark.slow
def test_every_figure_is_written_by_the_command_line(store, tmp_path):
    for file, (y, p) in {"t.csv": predictions(), "held.csv": predictions(seed=100)}.items():
        table = pd.DataFrame(
            {"y": y, **{f"p_{name}": p[:, place] for place, name in enumerate(NAMES)}}
        )
        table.to_csv(file, index=False)
    (tmp_path / "g.json").write_text(json.dumps(INSECTS.to_dict()))
    arguments = [
        "t.csv",
        "--y-true",
        "y",
        "--y-prob",
        "p_*",
        "--grouping",
        "g.json",
        "--output",
        "out",
    ]
    arguments += ["--calibration", "held.csv"]
    done = CliRunner().invoke(main, ["evaluate", *arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    written = {path.name for path in (tmp_path / "out").iterdir() if path.suffix == ".png"}
    assert written == {file_of(name) for name in names_of(CLASSES, of_classes())}


@pytest.mark.slow
def test_every_figure_of_a_comparison_is_in_its_review():
    skills = {"A": 1.5, "B": 0.6, "C": 0.5}
    comparison = compare(
        {name: of_classes(skill, place) for place, (name, skill) in enumerate(skills.items())}
    )
    pictures = draw_pictures(comparison)
    assert list(pictures) == [
        "ranking",
        "metrics",
        "confusion_difference",
        "confusion_matrices",
        "roc",
        "precision_recall",
    ]
    page = html(comparison)
    for picture in pictures.values():
        shown = f"<b>{picture.title}</b><span>{picture.reading}</span>" in page
        assert shown == (picture.name != "ranking")  # the table shows that one
        assert picture.file == f"cmtrack_review_{picture.name}.png"
        assert picture.title[0].isupper()
        assert picture.reading.endswith(".")


def no_ink(*_, **__):
    raise RuntimeError("no ink")


@pytest.mark.slow
def test_a_report_is_one_html_file_and_says_what_could_not_be_drawn(tmp_path, monkeypatch):
    evaluation = evaluate([0, 1, 1, 0] * 20, [0, 1, 0, 0] * 20)
    with pytest.raises(ValueError, match=r"must end in \.html, got 'report\.pdf'"):
        evaluation.report(tmp_path / "report.pdf")
    monkeypatch.setattr("matplotlib.axes.Axes.add_image", no_ink)
    page = evaluation.report(tmp_path / "report.html", title="Tuesday").read_text(encoding="utf-8")
    assert "<h1>Tuesday</h1>" in page
    assert "Not drawn: figure confusion_matrix: RuntimeError: no ink." in page
    assert not re.findall(r"(?:src|href)=\"(?!data:|#)", page)
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


@pytest.mark.slow
def test_a_figure_is_drawn_when_it_is_asked_for_and_once(monkeypatch):
    y = np.arange(80) % 2
    evaluation = evaluate(y, y_prob=np.clip(y * 0.4 + np.arange(80) / 160, 0, 1), positive=1)
    whole = list(evaluation.figures())
    assert whole[:2] == ["confusion_matrix", "roc"]
    monkeypatch.setattr("matplotlib.axes.Axes.add_image", no_ink)
    figures = evaluation.figures()
    assert figures["roc"] is figures["roc"]
    with pytest.raises(RuntimeError, match="no ink"):
        figures["confusion_matrix"]
    failed = []
    others = evaluation.figures(on_error=lambda name, error: failed.append((name, str(error))))
    assert list(others) == [name for name in whole if name != "confusion_matrix"]
    assert failed == [("confusion_matrix", "no ink")]
    monkeypatch.undo()
    figures = evaluation.figures()
    assert len(figures) == len(whole)
    assert repr(figures).startswith("<figures: confusion_matrix, roc, ")


@pytest.mark.slow
def test_a_figure_that_is_not_there_is_refused_with_the_names_that_are():
    figures = evaluate([0, 1, 1, 0], [0, 1, 0, 0]).figures()
    assert next(iter(figures)) == "confusion_matrix"
    for name in ("reduced", "roc", 3):
        assert name not in figures
        with pytest.raises(
            KeyError, match=rf"there is no figure {name!r}, use one of 'confusion_matrix'"
        ):
            figures[name]
