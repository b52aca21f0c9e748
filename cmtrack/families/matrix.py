"""One family's matrix with its out-of-family row and column, and the distributions that it is normalised to."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from cmtrack.families.counts import (
    ACTUAL,
    ACTUAL_OUTSIDE,
    HITS,
    MATCHINGS,
    PREDICTED,
    PREDICTED_OUTSIDE,
    UNIT,
    FamilyStatistics,
)
from cmtrack.grouping import Label
from cmtrack.statistics.inputs import FloatArray
from cmtrack.untrusted import for_page

if TYPE_CHECKING:
    import pandas as pd

OOF = "OOF"
NORMALIZATIONS = ("mass", "reference")
GIVEN = ("predicted", "actual")


@dataclass(frozen=True, eq=False)
class FamilyMatrix:
    """The codes of a family and, last, out of family (OOF): rows actual, columns predicted.

    Attributes
    ----------
    family : label
    codes : tuple of length k
    values : ndarray of shape (k + 1, k + 1)
        ``values[i, j]``: how often code i was actual where code j was predicted; the last row holds predicted codes
        without an unmatched actual sibling, the last column actual codes without a predicted one. The source of this
        matrix displays it the other way round, with predictions as rows.
    what : str
        What the values are.
    """

    family: Label
    codes: tuple[Label, ...]
    values: FloatArray
    what: str

    def __getitem__(self, pair: tuple[Label, Label]) -> float:
        """The value of (actual, predicted); ``"OOF"`` stands for out of family unless a code has that name."""
        return float(self.values[self._place(pair[0]), self._place(pair[1])])

    def _place(self, code: Label) -> int:
        if code in self.codes:
            return self.codes.index(code)
        if code == OOF:
            return len(self.codes)
        raise KeyError(f"the family {self.family!r} has no code {code!r}; its codes are {list(self.codes)[:12]}")

    def to_frame(self) -> pd.DataFrame:
        """The values with rows named ``actual`` and columns named ``predicted``, ``OOF`` last."""
        import pandas as pd

        names = [*self.codes, OOF]
        return pd.DataFrame(
            self.values, index=pd.Index(names, name="actual"), columns=pd.Index(names, name="predicted")
        )

    def __repr__(self) -> str:
        return f"FamilyMatrix({self.family!r}, {len(self.codes)} codes, {self.what})"

    def _repr_html_(self) -> str:
        return for_page(f"<p>{escape(self.what)}</p>{self.to_frame().to_html()}")


def family_matrix(statistics: FamilyStatistics, family: Label, matching: str) -> FamilyMatrix:
    """The matrix under one matching; with the codes that match, where these were not to be removed.

    Raises
    ------
    ValueError, KeyError
        If there is no such matching or family.
    """
    check_matching(matching)
    start, stop = _range(statistics, family)
    rows = statistics.codes[start:stop]
    size = stop - start
    together = statistics.together
    pairs = statistics.pairs if together is None else together
    values = np.zeros((size + 1, size + 1))
    values[:size, :size] = pairs.within(start, stop, matching)
    if together is None:
        values[np.arange(size), np.arange(size)] += rows[:, HITS]
        alone = rows[:, [PREDICTED_OUTSIDE, ACTUAL_OUTSIDE]]
    else:
        assert statistics.alone is not None  # they are kept together
        alone = statistics.alone[start:stop]
    surplus = pairs.surplus[start:stop] / UNIT if matching == "balanced" else 0
    outside = alone + surplus
    values[size, :size], values[:size, size] = outside[:, 0], outside[:, 1]
    unit = "documents" if matching == "product" else "mass"
    kept = "" if together is None else ", matched codes not removed"
    return FamilyMatrix(family, statistics.families.codes[start:stop], values, f"{matching} matching{kept}, {unit}")


def family_distribution(
    statistics: FamilyStatistics, family: Label, given: str, normalization: str = "mass"
) -> FamilyMatrix:
    """Given a predicted code: how its documents' actual codes are distributed (columns sum to 1); given an actual code:
    how the predicted ones are (rows sum to 1). NaN where no document has the code.

    Raises
    ------
    ValueError, KeyError
        If there is no such direction, normalisation or family.

    Notes
    -----
    "mass" gives each code of a document the mass 1, so that the diagonal is precision, or recall, exactly (row
    matching given predicted codes, column matching given actual ones). "reference" divides the product counts by their
    sum, as the source's own code does: documents with many mismatches weigh more, and the diagonal is neither.
    """
    if given not in GIVEN:
        raise ValueError(f"given must be 'predicted' or 'actual', got {given!r}")
    if normalization not in NORMALIZATIONS:
        raise ValueError(f"normalization must be 'mass' or 'reference', got {normalization!r}")
    start, stop = _range(statistics, family)
    rows, size = statistics.codes[start:stop], stop - start
    matching = "product" if normalization == "reference" else "row" if given == "predicted" else "column"
    values = np.zeros((size + 1, size + 1))
    values[:size, :size] = statistics.pairs.within(start, stop, matching)
    values[np.arange(size), np.arange(size)] += rows[:, HITS]
    if given == "predicted":
        values[size, :size] = rows[:, PREDICTED_OUTSIDE]
        total = rows[:, PREDICTED].astype(np.float64)
    else:
        values[:size, size] = rows[:, ACTUAL_OUTSIDE]
        total = rows[:, ACTUAL].astype(np.float64)
    axis = 0 if given == "predicted" else 1
    if normalization == "reference":
        total = values.sum(axis=axis)[:size]
    full = np.append(np.where(total > 0, total, np.nan), np.nan)
    shares = values / (full[None, :] if axis == 0 else full[:, None])
    said = "actual, given predicted" if given == "predicted" else "predicted, given actual"
    return FamilyMatrix(family, statistics.families.codes[start:stop], shares, f"shares of {said} ({normalization})")


def check_matching(matching: str) -> str:
    """The matching itself.

    Raises
    ------
    ValueError
        If there is none of that name.
    """
    if matching not in MATCHINGS:
        raise ValueError(f"matching must be one of {list(MATCHINGS)}, got {matching!r}")
    return matching


def _range(statistics: FamilyStatistics, family: Label) -> tuple[int, int]:
    place = statistics.families.family_place(family)
    start, stop = statistics.families.starts[place : place + 2]
    return int(start), int(stop)
