"""Figures of estimates, which need Matplotlib only if they are drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from cmtrack.prevalence.domains.result import DomainPrevalence
    from cmtrack.prevalence.results import PrevalenceEstimate


def likelihood_figure(estimate: PrevalenceEstimate) -> Figure:
    """Draw the likelihood of the prevalence, with the interval of the estimate."""
    from cmtrack import plots

    return plots.prevalence_figure(estimate)


def counts_figure(table: DomainPrevalence, with_notes: bool = True) -> Figure:
    """Draw the shares of all cells; ``with_notes``: with the sentences about the checks."""
    from cmtrack import plots

    shares = table.shares
    cells = [
        plots.CountedCell(
            *table.names_of(cell),
            *cell.share,
            has_own_rows=cell.has_own_rows,
        )
        for cell in shares.cells
    ]
    of = "share of the class"
    if len(table.labels) == 2:
        of = f"share of “{table.positive}”"
    return plots.plot_counts(
        cells,
        is_over_time=table.is_over_time,
        of=of,
        confidence_level=shares.confidence_level,
        notes=table.sentences if with_notes else (),
    )
