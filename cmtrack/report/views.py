"""What each kind of evaluation is shown as: its page, its sentences, and the table for MLflow's views."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cmtrack.base import BaseEvaluation
from cmtrack.evaluation import Evaluation
from cmtrack.families.result import FamilyEvaluation
from cmtrack.report import narrative
from cmtrack.report.evaluation_page import class_table, report_html
from cmtrack.report.families_page import code_table, family_report_html
from cmtrack.report.html import write_text

if TYPE_CHECKING:
    import pandas as pd

    from cmtrack.report.figures import Picture


@dataclass(frozen=True)
class View:
    """How one kind of evaluation is shown; its figures stand in :mod:`cmtrack.report.figures`.

    Attributes
    ----------
    page : callable (evaluation, pictures, title=, subtitle=, problems=)
    table : callable (evaluation)
    verdict : callable (evaluation)
        Its sentences.
    """

    page: Callable[..., str]
    table: Callable[[Any], pd.DataFrame]
    verdict: Callable[[Any], list[str]]


_VIEWS: dict[type[BaseEvaluation], View] = {
    Evaluation: View(report_html, class_table, narrative.verdict),
    FamilyEvaluation: View(family_report_html, code_table, narrative.families_verdict),
}


def view_of(evaluation: BaseEvaluation) -> View:
    """How an evaluation is shown.

    Raises
    ------
    TypeError
        If it is of no known kind.
    """
    for kind, view in _VIEWS.items():
        if isinstance(evaluation, kind):
            return view
    raise TypeError(f"an evaluation must be one of {[kind.__name__ for kind in _VIEWS]}, got {evaluation!r:.60}")


def page(
    evaluation: BaseEvaluation,
    pictures: Mapping[str, Picture],
    *,
    title: str | None = None,
    subtitle: str = "",
    problems: Sequence[str] = (),
) -> str:
    """The report as one HTML document without any reference to the outside.

    Parameters
    ----------
    evaluation : Evaluation or FamilyEvaluation
    pictures : mapping of str to Picture
        The figures, which are embedded.
    title : str, optional
        By default "Evaluation".
    subtitle : str
    problems : sequence of str
        What could not be drawn.
    """
    return view_of(evaluation).page(
        evaluation, pictures, title=title or "Evaluation", subtitle=subtitle, problems=problems
    )


def table_json(evaluation: BaseEvaluation) -> str:
    """The table of classes or codes as MLflow's views read it."""
    return str(view_of(evaluation).table(evaluation).to_json(orient="split", index=False, force_ascii=False))


def write_report(evaluation: BaseEvaluation, path: str | Path, title: str | None = None) -> Path:
    """Write the report with its figures; see :meth:`BaseEvaluation.report`."""
    from cmtrack.report.figures import draw_pictures

    path = Path(path)
    if path.suffix.lower() != ".html":
        raise ValueError(f"a report is written as .html, got {path.name!r}; .save keeps the numbers as JSON")
    problems: list[str] = []
    pictures = draw_pictures(evaluation, problems)
    return write_text(path, page(evaluation, pictures, title=title, problems=problems))
