"""Everything that repeated runs of several models say, by what they were repeated over."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from cmtrack.comparison.repeated.bayes import RopeProbabilities
from cmtrack.comparison.repeated.pairs import Pairwise
from cmtrack.comparison.repeated.rank_tests import Friedman, Nemenyi
from cmtrack.comparison.repeated.summaries import Summary
from cmtrack.untrusted import for_page

if TYPE_CHECKING:
    import pandas as pd

Kind: TypeAlias = Literal["folds", "seeds", "datasets"]


@dataclass(frozen=True)
class Gap:
    """One model against the best.

    Attributes
    ----------
    name : str
    difference, standard_error, df, low, high, pvalue : float
        Of the model less the best, so the difference is negative as a rule; see `RepeatedDifference`. The interval
        and the p-value are for this pair alone.
    adjusted_pvalue : float
        By Holm over all pairs of models, which also pays for having chosen the best by the same scores.
    worse, equivalent, better : float
        Probability that the model is worse than the best by more than the rope, within it, or better; NaN without a
        rope.
    method : str
    reason : str
        Why there is NaN, or what the numbers do not cover; else empty.
    joint_low, joint_high : float
        Interval that holds for all pairs of models at once (Bonferroni). A model whose interval excludes zero is
        behind; one that is behind may have an interval that includes zero, as Holm's stepwise test is more powerful.
    """

    name: str
    difference: float
    standard_error: float
    df: float
    low: float
    high: float
    pvalue: float
    adjusted_pvalue: float
    worse: float
    equivalent: float
    better: float
    method: str
    reason: str
    joint_low: float = math.nan
    joint_high: float = math.nan


@dataclass(frozen=True)
class RepeatedResult:
    """Several models over the same seeds, folds or data sets.

    Attributes
    ----------
    names : tuple of k str
    kind : "folds", "seeds" or "datasets"
    confidence_level : float
    rope : float or None
        Half the width of the region of practical equivalence.
    blocks, left_out : int
        Blocks in which every model has a value, which alone are tested; and the others.
    summary : Summary
        Of all values, also of blocks that are left out.
    order : tuple of int
        Models, best first: by average rank for data sets, by mean over the complete blocks else.
    best : int
        The first of them.
    differences : tuple of k - 1 Gap
        Every other model less the best, in the models' order; ``result[name]`` gives one.
    pairwise : Pairwise
        All pairs: corrected t (folds), seed differences (seeds), signed ranks (data sets); adjusted by Holm.
    cliques : tuple of tuple of int
        Those of ``pairwise``.
    friedman, nemenyi : Friedman and Nemenyi, or None
        For data sets only.
    posteriors : tuple of k RopeProbabilities or None
        Of each model less the best; None for the best itself, and for all without a rope.
    tied : tuple of k bool
        Whether the model is not told apart from the best; True for the best, and where there is no p-value.
    notes : tuple of str
        What was left out, and what the methods assume.
    """

    names: tuple[str, ...]
    kind: Kind
    confidence_level: float
    rope: float | None
    blocks: int
    left_out: int
    summary: Summary
    order: tuple[int, ...]
    best: int
    differences: tuple[Gap, ...]
    pairwise: Pairwise
    cliques: tuple[tuple[int, ...], ...]
    friedman: Friedman | None
    nemenyi: Nemenyi | None
    posteriors: tuple[RopeProbabilities | None, ...]
    tied: tuple[bool, ...]
    notes: tuple[str, ...]

    def __getitem__(self, name: str) -> Gap:
        for gap in self.differences:
            if gap.name == name:
                return gap
        raise KeyError(f"there is no difference of {name!r} from the best, {self.names[self.best]!r}")

    def to_frame(self) -> pd.DataFrame:
        """One row per model, best first."""
        import pandas as pd

        gaps = {gap.name: gap for gap in self.differences}
        columns = ("difference", "low", "high", "pvalue", "adjusted_pvalue", "worse", "equivalent", "better")
        rows = []
        for column in self.order:
            name = self.names[column]
            row = dict(vars(self.summary.rows[column]))
            if self.friedman is not None:
                row["average_rank"] = self.friedman.ranks[column]
            gap = gaps.get(name)
            row |= {key: math.nan if gap is None else getattr(gap, key) for key in columns}
            rows.append(row | {"tied": self.tied[column], "best": column == self.best})
        return pd.DataFrame(rows)

    def __repr__(self) -> str:
        ties = sum(self.tied) - 1
        best = self.names[self.best]
        return f"RepeatedResult({len(self.names)} models, {self.blocks} {self.kind}, best {best!r}, {ties} tied)"

    def _repr_html_(self) -> str:
        from html import escape

        notes = "".join(f"<li>{escape(note)}</li>" for note in self.notes)
        return for_page(f"{self.to_frame().to_html(index=False)}<ul>{notes}</ul>")
