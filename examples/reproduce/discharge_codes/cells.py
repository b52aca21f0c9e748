"""The cells of one document under the product's rules, in the source's orientation: (predicted, gold)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cmtrack import FamilyEvaluation, Prefix, evaluate_families
from discharge_codes.published import OOF, Cells


def by_the_rules(
    predicted: Iterable[str], gold: Iterable[str], codes: Sequence[str] | None = None
) -> FamilyEvaluation:
    """One document, all assumptions; `codes` are all that there are, by default those seen."""
    return evaluate_families([list(gold)], [list(predicted)], Prefix(separator="."), codes=codes)


def within_families(predicted: Iterable[str], gold: Iterable[str]) -> FamilyEvaluation:
    """One document without assumption 1: codes on both sides are partners, too."""
    return evaluate_families(
        [list(gold)], [list(predicted)], Prefix(separator="."), remove_matches=False
    )


def co_occurrence(predicted: Iterable[str], gold: Iterable[str]) -> FamilyEvaluation:
    """One document without any assumption: all codes are one family."""
    return evaluate_families(
        [list(gold)], [list(predicted)], lambda code: "all", remove_matches=False
    )


def cells_of(evaluation: FamilyEvaluation) -> Cells:
    """The cells that are not zero, over all families."""
    found = set()
    for family in evaluation.families:
        frame = evaluation.matrix(family).to_frame()
        found |= {(p, a) for a in frame.index for p in frame.columns if frame.loc[a, p] > 0}
    return frozenset(found)


def shown(cells: Cells) -> str:
    """For a table: ``364.03-364.01``, out of family last."""
    ordered = sorted(cells, key=lambda pair: (OOF in pair, pair))
    return ", ".join(f"{predicted}-{gold}" for predicted, gold in ordered) or "none"
