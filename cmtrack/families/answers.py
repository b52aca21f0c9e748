"""A code is predicted: how likely is it right, and if not, which sibling is it? And the reverse."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from cmtrack.families.counts import ACTUAL, PREDICTED, FamilyStatistics
from cmtrack.families.matrix import family_distribution
from cmtrack.families.metrics import FEW
from cmtrack.grouping import Label
from cmtrack.metrics.intervals import Interval, wilson
from cmtrack.names import quoted
from cmtrack.statistics.inputs import FloatArray
from cmtrack.untrusted import for_page, printable

if TYPE_CHECKING:
    import pandas as pd

NOWHERE = (float("nan"), float("nan"))


@dataclass(frozen=True)
class CodeAnswer:
    """What stands behind a predicted code, or what becomes of an actual one.

    Attributes
    ----------
    code, family : label
    given : "predicted" or "actual"
    documents : int
        With the code predicted (or actual).
    right : float
        Share of the documents in which it is right: precision given a predicted code, recall given an actual one.
    outside : float
        Share in which it is not, and has no unmatched sibling on the other side: out of family.
    siblings : tuple of (label, float)
        Siblings that stand for it on the other side, by their share of the documents, the most frequent first. With
        ``right`` and ``outside`` the shares sum to 1.
    right_interval, outside_interval : (float, float)
        Wilson intervals.
    sibling_intervals : tuple of (float, float)
    confidence_level : float
    """

    code: Label
    family: Label
    given: str
    documents: int
    right: float
    outside: float
    siblings: tuple[tuple[Label, float], ...]
    right_interval: Interval
    outside_interval: Interval
    sibling_intervals: tuple[Interval, ...]
    confidence_level: float = 0.95

    @property
    def too_few(self) -> bool:
        """Whether there are fewer than 20 documents: the shares say little then."""
        return self.documents < FEW

    @property
    def confused(self) -> float:
        """Share of the documents in which a sibling stands for it."""
        return float(sum(share for _, share in self.siblings)) if self.documents else float("nan")

    @property
    def most_likely(self) -> Label | None:
        """The sibling that most often stands for it; None where none does."""
        return self.siblings[0][0] if self.siblings else None

    def to_frame(self) -> pd.DataFrame:
        """One row per outcome: outcome (right, sibling, out of family), code, share, low, high, documents, too few."""
        import pandas as pd

        rows = [("right", self.code, self.right, *self.right_interval)]
        rows += [
            ("sibling", code, share, *ends)
            for (code, share), ends in zip(self.siblings, self.sibling_intervals, strict=True)
        ]
        rows.append(("out of family", None, self.outside, *self.outside_interval))
        frame = pd.DataFrame(rows, columns=["outcome", "code", "share", "low", "high"])
        return frame.assign(documents=self.documents, too_few=self.too_few)

    def __str__(self) -> str:
        if not self.documents:
            return f"{quoted(self.code)} is {self.given} in no document."
        other = "actual" if self.given == "predicted" else "predicted"
        many = f"{self.documents:,} document" + ("s" if self.documents != 1 else "")
        few = " (too few to rely on)" if self.too_few else ""
        parts = [f"correct in {_said(self.right, self.right_interval)}"]
        if self.siblings:
            share = _said(self.siblings[0][1], self.sibling_intervals[0])
            parts.append(f"{other} is instead most often {quoted(self.siblings[0][0])} ({share})")
        parts.append(f"out of family in {_said(self.outside, self.outside_interval)}")
        return f"{quoted(self.code)} is {self.given} in {many}{few}: {'; '.join(parts)}."

    def __repr__(self) -> str:
        return printable(f"CodeAnswer({self})")

    def _repr_html_(self) -> str:
        table = self.to_frame().to_html(index=False, float_format="{:.3f}".format)
        return for_page(f"<p>{escape(str(self))}</p>{table}")


def answer(statistics: FamilyStatistics, code: Label, given: str, confidence_level: float) -> CodeAnswer:
    """The answer for one code.

    Raises
    ------
    KeyError
        If there is no such code.
    """
    place = statistics.families.place(code)
    family = statistics.families.names[int(statistics.families.family_of_code[place])]
    shares = family_distribution(statistics, family, given)
    own = shares.codes.index(code)
    line = shares.values[:, own] if given == "predicted" else shares.values[own]
    n = int(statistics.codes[place, PREDICTED if given == "predicted" else ACTUAL])

    def ends(share: float) -> Interval:
        return wilson(min(1.0, share), n, confidence_level) or NOWHERE

    order = _by_share(line[:-1])
    siblings = tuple((shares.codes[j], float(line[j])) for j in order if j != own and line[j] > 0)
    return CodeAnswer(
        code,
        family,
        given,
        n,
        float(line[own]),
        float(line[-1]),
        siblings,
        ends(float(line[own])),
        ends(float(line[-1])),
        tuple(ends(share) for _, share in siblings),
        confidence_level,
    )


def _by_share(line: FloatArray) -> list[int]:
    return [int(j) for j in np.argsort(-np.nan_to_num(line), kind="stable")]


def _said(share: float, ends: Interval) -> str:
    return f"{100 * share:.0f} % [{100 * ends[0]:.0f}, {100 * ends[1]:.0f}]"
