"""A figure of the source beside the product's cells: what is compared, and what is drawn."""

from __future__ import annotations

from typing import NamedTuple

import pandas as pd

from discharge_codes.cells import by_the_rules, cells_of, co_occurrence, shown, within_families
from discharge_codes.published import OOF, Cells, Example

RULES, PLAIN = "as published, and by all rules", "as published, and without assumption 1"


class Compared(NamedTuple):
    """Published cells and ours."""

    published: Cells
    ours: Cells


def compared(example: Example, *, plain: bool = False) -> dict[str, Compared]:
    """Each published matrix of a document beside ours; ``plain``: also without assumption 1."""
    found = {}
    if example.everything is not None:
        ours = cells_of(co_occurrence(example.predicted, example.gold))
        found["left panel: co-occurrence"] = Compared(example.everything, ours)
    found[RULES] = Compared(example.cells, cells_of(by_the_rules(example.predicted, example.gold)))
    if plain:
        found[PLAIN] = Compared(
            example.cells, cells_of(within_families(example.predicted, example.gold))
        )
    return found


def comparison_table(found: dict[str, Compared]) -> pd.DataFrame:
    """One row per matrix: cells that only one side has, and how many both have."""
    rows = [
        {
            "matrix": words,
            "published only": shown(published - ours),
            "ours only": shown(ours - published),
            "cells in both": len(published & ours),
        }
        for words, (published, ours) in found.items()
    ]
    return pd.DataFrame(rows)


def panels(example: Example, ours: Cells) -> list[tuple[str, Cells, tuple[str, ...]]]:
    """What is drawn side by side: the published panels, then ours with out of family."""
    drawn = []
    if example.everything is not None:
        drawn.append(("left panel: all pairs", example.everything, example.axis))
    words = "right panel, as published" if drawn else "as published"
    drawn.append((words, example.cells, example.axis))
    axis = example.axis if OOF in example.axis else (*example.axis, OOF)
    return [*drawn, ("by all rules (the product)", ours, axis)]
