"""Views of families and codes: a family's matrix and distributions, answers about a code, tables of all of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cmtrack import notebook
from cmtrack.digits import percent_with_interval
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
from cmtrack.families.metrics import FEW, code_ratios
from cmtrack.grouping import Label
from cmtrack.metrics.cells import ratio
from cmtrack.metrics.intervals import Interval, wilson
from cmtrack.metrics.names import encode_label
from cmtrack.names import quoted
from cmtrack.statistics.inputs import FloatArray, IntArray
from cmtrack.untrusted import printable

if TYPE_CHECKING:
    import pandas as pd

    from cmtrack.metrics.results import Results


OOF = "OOF"
NORMALIZATIONS = ("mass", "reference")
GIVEN = ("predicted", "actual")
_SIDES = (
    ("predicted", PREDICTED, PREDICTED_OUTSIDE, "row"),
    ("actual", ACTUAL, ACTUAL_OUTSIDE, "column"),
)
MOST_TIED = 3
"""Codes of equal share that a sentence names."""


@dataclass(frozen=True, eq=False)
class FamilyMatrix:
    """The codes of a family and, last, out of family (OOF): rows actual, columns predicted.

    Attributes
    ----------
    family : label
    codes : tuple of length k
    values : ndarray of shape (k + 1, k + 1)
        ``values[i, j]``: how often code i was actual where code j was predicted; the last row holds
        predicted codes without an unmatched actual sibling, the last column actual codes without a
        predicted one. The source of this matrix displays it the other way round, with predictions
        as rows.
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
        raise KeyError(
            f"the family {self.family!r} has no code {code!r}; its codes are {list(self.codes)[:12]}"
        )

    def to_frame(self) -> pd.DataFrame:
        """The values with rows named ``actual`` and columns named ``predicted``, ``OOF`` last."""
        from cmtrack._pandas import pd

        names = [*self.codes, OOF]
        return pd.DataFrame(
            self.values,
            index=pd.Index(names, name="actual"),
            columns=pd.Index(names, name="predicted"),
        )

    def __repr__(self) -> str:
        return f"FamilyMatrix({self.family!r}, {len(self.codes)} codes, {self.what})"

    def _repr_html_(self) -> str:
        return notebook.view(notebook.sentence(self.what), notebook.matrix(self.to_frame()))


def family_matrix(statistics: FamilyStatistics, family: Label, matching: str) -> FamilyMatrix:
    """The matrix under one matching; with the codes that match, where these were not to be removed."""
    check_matching(matching)
    start, stop = _range(statistics, family)
    rows = statistics.codes[start:stop]
    size = stop - start
    together = statistics.together
    pairs = statistics.pairs if together is None else together
    values = np.pad(pairs.within(start, stop, matching), (0, 1))
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
    matches = "" if together is None else ", matched codes not removed"
    return FamilyMatrix(
        family,
        statistics.families.codes[start:stop],
        values,
        f"{matching} matching{matches}, {unit}",
    )


def family_distribution(
    statistics: FamilyStatistics, family: Label, given: str, normalization: str = "mass"
) -> FamilyMatrix:
    """Distribution of a family's actual codes given the predicted one, or the reverse.

    Given predicted codes columns sum to 1, given actual ones rows do. NaN where no document has the
    code.

    Notes
    -----
    "mass" gives each code of a document the mass 1, so that the diagonal is precision, or recall,
    exactly (row matching given predicted codes, column matching given actual ones). "reference"
    divides the product counts by their sum, as the source's own code does: documents with many
    mismatches weigh more, and the diagonal is neither.
    """
    if given not in GIVEN:
        raise ValueError(f"given must be 'predicted' or 'actual', got {given!r}")
    if normalization not in NORMALIZATIONS:
        raise ValueError(f"normalization must be 'mass' or 'reference', got {normalization!r}")
    start, stop = _range(statistics, family)
    rows, size = statistics.codes[start:stop], stop - start
    axis = GIVEN.index(given)
    (_, documents, outside, matching), other = _SIDES[axis], GIVEN[1 - axis]
    reference = normalization == "reference"
    values = np.pad(
        statistics.pairs.within(start, stop, "product" if reference else matching), (0, 1)
    )
    values[np.arange(size), np.arange(size)] += rows[:, HITS]
    (values if axis == 0 else values.T)[size, :size] = rows[:, outside]
    total = values.sum(axis=axis)[:size] if reference else rows[:, documents].astype(np.float64)
    full = np.append(np.where(total > 0, total, np.nan), np.nan)
    words = f"shares of {other}, given {given} ({normalization})"
    return FamilyMatrix(
        family, statistics.families.codes[start:stop], values / np.expand_dims(full, axis), words
    )


def check_matching(matching: str) -> str:
    """Validate the name of a matching."""
    if matching not in MATCHINGS:
        raise ValueError(f"matching must be one of {list(MATCHINGS)}, got {matching!r}")
    return matching


def _range(statistics: FamilyStatistics, family: Label) -> tuple[int, int]:
    place = statistics.families.family_place(family)
    start, stop = statistics.families.starts[place : place + 2]
    return int(start), int(stop)


# -- answers about one code -----------------------------------------------------------------------

NOWHERE = (float("nan"), float("nan"))


@dataclass(frozen=True)
class CodeAnswer:
    """Outcomes of a predicted code, or of an actual one.

    Attributes
    ----------
    code, family : label
    given : "predicted" or "actual"
    documents : int
        With the code predicted (or actual).
    right : float
        Share of the documents in which it is right: precision given a predicted code, recall given
        an actual one.
    outside : float
        Share in which it is not, and has no unmatched sibling on the other side: out of family.
    siblings : tuple of (label, float)
        Siblings that stand for it on the other side, by their share of the documents, the most
        frequent first. With ``right`` and ``outside`` the shares sum to 1.
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
        """True with fewer than 20 documents: the shares say little then."""
        return self.documents < FEW

    @property
    def confused(self) -> float:
        """Share of the documents in which it is confused with a sibling."""
        return float(sum(share for _, share in self.siblings)) if self.documents else float("nan")

    @property
    def most_likely(self) -> Label | None:
        """The sibling that it is most often confused with, the first of ties; None without one."""
        return self.siblings[0][0] if self.siblings else None

    def to_frame(self) -> pd.DataFrame:
        """One row per outcome: outcome (right, sibling, out of family), code, share, low, high, documents, too few."""
        from cmtrack._pandas import pd

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
        parts = [f"correct in {percent_with_interval(self.right, self.right_interval)}"]
        if self.siblings:
            most = self.siblings[0][1]
            tied = [
                quoted(code)
                for code, share in self.siblings
                if math.isclose(share, most, abs_tol=2 / UNIT)
            ]
            each, shown = "each " if len(tied) > 1 else "", tied[:MOST_TIED]
            shown += [f"{len(tied) - MOST_TIED} more"] * (len(tied) > MOST_TIED)
            names = " or ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))
            share = percent_with_interval(most, self.sibling_intervals[0])
            parts.append(f"{other} is instead most often {names} ({each}{share})")
        parts.append(
            f"out of family in {percent_with_interval(self.outside, self.outside_interval)}"
        )
        return f"{quoted(self.code)} is {self.given} in {many}{few}: {'; '.join(parts)}."

    def __repr__(self) -> str:
        return printable(f"CodeAnswer({self})")

    def _repr_html_(self) -> str:
        return notebook.view(notebook.sentence(self), notebook.table(self.to_frame()))


def answer(
    statistics: FamilyStatistics, code: Label, given: str, confidence_level: float
) -> CodeAnswer:
    """The answer for one code."""
    place = statistics.families.place(code)
    family = statistics.families.names[int(statistics.families.family_of_code[place])]
    shares = family_distribution(statistics, family, given)
    at = shares.codes.index(code)
    line = shares.values[:, at] if given == "predicted" else shares.values[at]
    n = int(statistics.codes[place, PREDICTED if given == "predicted" else ACTUAL])

    def ends(share: float) -> Interval:
        return wilson(min(1.0, share), n, confidence_level) or NOWHERE

    order = np.argsort(-np.nan_to_num(line[:-1]), kind="stable").tolist()
    siblings = tuple((shares.codes[j], float(line[j])) for j in order if j != at and line[j] > 0)
    right, outside = float(line[at]), float(line[-1])
    intervals = ends(right), ends(outside), tuple(ends(share) for _, share in siblings)
    return CodeAnswer(
        code, family, given, n, right, outside, siblings, *intervals, confidence_level
    )


# -- tables of all codes and families -------------------------------------------------------------


def code_table(statistics: FamilyStatistics) -> pd.DataFrame:
    """One row per code (see :meth:`FamilyEvaluation.code_table`)."""
    from cmtrack._pandas import pd

    codes, families = statistics.codes, statistics.families
    names = np.array([*families.names, None], dtype=object)[:-1]
    columns: dict[str, Any] = {
        "code": list(families.codes),
        "family": names[families.family_of_code],
    }
    columns |= {"predicted": codes[:, PREDICTED], "actual": codes[:, ACTUAL], **code_ratios(codes)}
    for side, total, outside, matching in _SIDES:
        n, hits, beyond = (codes[:, column].astype(np.float64) for column in (total, HITS, outside))
        columns[f"match_given_{side}"] = ratio(hits, n)
        columns[f"confused_given_{side}"] = ratio(n - hits - beyond, n)
        columns[f"oof_given_{side}"] = ratio(beyond, n)
        partner, mass = _most_frequent_partners(statistics, matching)
        columns[f"partner_given_{side}"] = [
            families.codes[j] if j >= 0 else None for j in partner.tolist()
        ]
        columns[f"partner_share_given_{side}"] = ratio(mass, n)
        columns[f"too_few_{side}"] = codes[:, total] < FEW
    return pd.DataFrame(columns)


def _most_frequent_partners(
    statistics: FamilyStatistics, matching: str
) -> tuple[IntArray, FloatArray]:
    """Each code's most frequent sibling on the other side, shape (L,), -1 where there is none, and its mass.

    ``matching`` is "row" for predicted codes (their actual siblings) and "column" for actual ones.
    """
    pairs, size = statistics.pairs, len(statistics.families.codes)
    mass = pairs.masses[:, MATCHINGS.index(matching)]
    actual, predicted = pairs.keys // size, pairs.keys % size
    own, other = (predicted, actual) if matching == "row" else (actual, predicted)
    partner, most = np.full(size, -1, dtype=np.int64), np.zeros(size)
    # the last of each code has the largest mass, the first code on ties
    order = np.lexsort((-other, mass, own))
    partner[own[order]] = other[order]
    most[own[order]] = mass[order] / UNIT
    return partner, most


def family_table(statistics: FamilyStatistics, results: Results) -> pd.DataFrame:
    """One row per family (see :meth:`FamilyEvaluation.family_table`)."""
    from cmtrack._pandas import pd

    families = statistics.families
    sizes = zip(families.names, np.diff(families.starts).tolist(), strict=True)
    return pd.DataFrame([_family_row(results, family, codes) for family, codes in sizes])


def _family_row(results: Results, family: Label, codes: int) -> dict[str, Any]:
    prefix, metrics = f"family/{encode_label(family)}", results.metrics
    row: dict[str, Any] = {
        "family": family,
        "codes": codes,
        "support": metrics[f"{prefix}/support"],
    }
    for name in ("f1_micro", "precision_micro", "recall_micro", "confusion_share", "oof_share"):
        low, high = results.intervals.get(f"{prefix}/{name}", (math.nan, math.nan))
        row |= {name: metrics[f"{prefix}/{name}"], f"{name}_low": low, f"{name}_high": high}
    return row
