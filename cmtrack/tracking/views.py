"""What a run gets of each kind of evaluation: figures, report, table, and the rows' file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cmtrack.base import BaseEvaluation
from cmtrack.families.result import FamilyEvaluation
from cmtrack.report.evaluation_page import report_html
from cmtrack.report.families_page import family_report_html
from cmtrack.report.families_tables import code_table
from cmtrack.report.tables import class_table

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

OnError = Callable[[str, Exception], object]


@dataclass(frozen=True)
class Views:
    """How one kind of evaluation is shown and kept.

    Attributes
    ----------
    figures : callable (evaluation, on_error=)
    report : callable (evaluation, pictures)
    table : callable (evaluation)
    image : str
        The figure that the chart view shows as an image.
    tags : dict of str to str
    """

    figures: Callable[..., dict[str, Figure]]
    report: Callable[[Any, Mapping[str, bytes]], str]
    table: Callable[[Any], pd.DataFrame]
    image: str
    tags: dict[str, str]


def views_of(evaluation: BaseEvaluation) -> Views:
    """The views of an evaluation."""
    if isinstance(evaluation, FamilyEvaluation):
        return Views(
            _family_figures,
            family_report_html,
            code_table,
            "family_matrix",
            {
                "kind": "families",
                "families": f"{len(evaluation.families)} families, {dict(evaluation.design)['families']}",
            },
        )
    return Views(
        _class_figures,
        report_html,
        class_table,
        "confusion_matrix",
        {},
    )


def _class_figures(evaluation: Any, *, on_error: OnError | None = None) -> dict[str, Figure]:
    from cmtrack.plots import evaluation_figures

    return evaluation_figures(evaluation, on_error=on_error)


def _family_figures(evaluation: Any, *, on_error: OnError | None = None) -> dict[str, Figure]:
    from cmtrack.plots.families_evaluation import family_figures

    return family_figures(evaluation, on_error=on_error)
