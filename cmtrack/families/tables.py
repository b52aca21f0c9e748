"""Views of families and codes: matrices, distributions, outcomes of codes, and tables."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

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
from cmtrack.statistics.inputs import FloatArray
from cmtrack.untrusted import printable

if TYPE_CHECKING:
    import pandas as pd

    from cmtrack.metrics.results import Results


OOF = "OOF"
NORMALIZATIONS = ("mass", "reference")


def worst_code(statistics: FamilyStatistics) -> int | None:
    """Return the index of the code with the largest share of confused labels; None without any.

    Codes with fewer than 20 documents are considered only if no other code is confused. In this
    case, the result is the code with the most confused labels.
    """
    matched, predicted, actual, predicted_outside, actual_outside = statistics.codes.T
    labels = predicted + actual
    confused = labels - 2 * matched - predicted_outside - actual_outside
    if not len(confused) or confused.max() <= 0:
        return None
    is_frequent = np.minimum(actual, predicted) >= FEW
    if confused[is_frequent].any():
        confused = np.where(is_frequent, confused / np.maximum(1, labels), 0)
    return int(confused.argmax())


class _Side(NamedTuple):
    """Columns of ``codes`` that describe predicted or actual codes, and the matching to use.

    With this matching, the pairs of each code on this side have a total mass of 1.
    """

    documents: int
    outside: int
    matching: str


_SIDES = {
    "predicted": _Side(PREDICTED, PREDICTED_OUTSIDE, "row"),
    "actual": _Side(ACTUAL, ACTUAL_OUTSIDE, "column"),
}
_OTHER = {"predicted": "actual", "actual": "predicted"}
_ROLES = {"predicted": "predicted", "actual": "an actual code"}
MOST_TIED = 3
"""Maximum number of equally frequent codes that a sentence lists by name."""


@dataclass(frozen=True, eq=False)
class FamilyMatrix:
    """Confusion matrix of a family's codes, with a last row and column for out of family (OOF).

    Attributes
    ----------
    family : label
    codes : tuple of length k
    values : ndarray of shape (k + 1, k + 1)
        ``values[i, j]`` counts the pairs of actual code i and predicted code j. The last row counts
        predicted codes without an unmatched actual sibling. The last column counts actual codes
        without an unmatched predicted sibling. The source shows the transposed matrix, with
        predictions as rows.
    what : str
        Description of the values, for titles.
    """

    family: Label
    codes: tuple[Label, ...]
    values: FloatArray
    what: str

    def __getitem__(self, pair: tuple[Label, Label]) -> float:
        """Return the value for a pair (actual, predicted).

        The name ``"OOF"`` selects the row or column for out of family, unless ``"OOF"`` is itself a
        code.
        """
        actual, predicted = pair
        return float(self.values[self._position(actual), self._position(predicted)])

    def _position(self, code: Label) -> int:
        if code in self.codes:
            return self.codes.index(code)
        if code == OOF:
            return len(self.codes)
        raise KeyError(
            f"the family {self.family!r} has no code {code!r}; "
            f"its codes are {list(self.codes)[:12]}"
        )

    def to_frame(self) -> pd.DataFrame:
        """Return a frame whose rows are actual codes and whose columns are predicted codes."""
        from cmtrack._pandas import pd

        names = [*self.codes, OOF]
        rows = pd.Index(names, name="actual")
        return pd.DataFrame(self.values, index=rows, columns=rows.rename("predicted"))

    def __repr__(self) -> str:
        return f"FamilyMatrix({self.family!r}, {len(self.codes)} codes, {self.what})"

    def _repr_html_(self) -> str:
        return notebook.view(notebook.sentence(self.what), notebook.matrix(self.to_frame()))


def family_matrix(statistics: FamilyStatistics, family: Label, matching: str) -> FamilyMatrix:
    """Compute the confusion matrix of a family with a given matching.

    If the evaluation was computed with ``remove_matches=False``, the matrix includes pairs with
    matched codes.
    """
    check_matching(matching)
    start, stop = _range(statistics, family)
    size = stop - start
    pairs = statistics.pairs
    codes = statistics.codes[start:stop]
    matches = codes[:, HITS]
    outside = codes[:, [PREDICTED_OUTSIDE, ACTUAL_OUTSIDE]].astype(np.float64)
    remark = ""
    if statistics.together is not None and statistics.alone is not None:
        pairs = statistics.together
        matches = np.zeros(size, dtype=np.int64)  # the pairs already contain them
        outside = statistics.alone[start:stop].astype(np.float64)
        remark = ", matched codes not removed"
    unit = "documents"
    if matching != "product":
        unit = "mass"
    if matching == "balanced":
        outside += pairs.surplus[start:stop] / UNIT
    values = np.pad(pairs.within(start, stop, matching), (0, 1))
    index = np.arange(size)
    values[index, index] += matches
    values[size, :size] = outside[:, 0]
    values[:size, size] = outside[:, 1]
    return FamilyMatrix(
        family,
        statistics.families.codes[start:stop],
        values,
        f"{matching} matching{remark}, {unit}",
    )


def family_distribution(
    statistics: FamilyStatistics, family: Label, given: str, normalization: str = "mass"
) -> FamilyMatrix:
    """Return the distributions of a family's actual codes given predicted codes, or vice versa.

    Given predicted codes, each column sums to 1. Given actual codes, each row sums to 1. The values
    are NaN if no document contains the code.

    Notes
    -----
    With "mass", each code of a document has the mass 1, so the diagonal contains the exact
    precisions or recalls. This corresponds to the row matching given predicted codes, and to the
    column matching given actual codes. With "reference", the counts of the product matching are
    divided by their sum, as in the source's code. Documents with many mismatches then have more
    weight, and the diagonal contains neither precisions nor recalls.
    """
    if given not in _SIDES:
        raise ValueError(f"given must be 'predicted' or 'actual', got {given!r}")
    if normalization not in NORMALIZATIONS:
        raise ValueError(f"normalization must be 'mass' or 'reference', got {normalization!r}")
    side = _SIDES[given]
    start, stop = _range(statistics, family)
    size = stop - start
    codes = statistics.codes[start:stop]
    is_mass = normalization == "mass"
    matching = side.matching if is_mass else "product"
    values = np.pad(statistics.pairs.within(start, stop, matching), (0, 1))
    index = np.arange(size)
    values[index, index] += codes[:, HITS]
    # In this view, each column belongs to a code on which the distribution is conditioned.
    by_code = values.T if given == "actual" else values
    by_code[size, :size] = codes[:, side.outside]
    total = by_code[:, :size].sum(axis=0)
    if is_mass:
        total = codes[:, side.documents].astype(np.float64)
    by_code[:, :size] /= np.where(total > 0, total, np.nan)
    by_code[:, size] = np.nan  # the last column is out of family, which is not a code
    return FamilyMatrix(
        family,
        statistics.families.codes[start:stop],
        values,
        f"shares of {_OTHER[given]}, given {given} ({normalization})",
    )


def check_matching(matching: str) -> str:
    """Return the name of a matching; raise ValueError if no such matching exists."""
    if matching not in MATCHINGS:
        raise ValueError(f"matching must be one of {list(MATCHINGS)}, got {matching!r}")
    return matching


def _range(statistics: FamilyStatistics, family: Label) -> tuple[int, int]:
    """Return the position of a family's first code, and of the first code after the family."""
    number = statistics.families.family_place(family)
    start, stop = statistics.families.starts[number : number + 2].tolist()
    return start, stop


# -- answers about one code -----------------------------------------------------------------------

NOWHERE = (math.nan, math.nan)


@dataclass(frozen=True)
class CodeAnswer:
    """Outcomes of a predicted code or of an actual code.

    Attributes
    ----------
    code, family : label
    given : "predicted" or "actual"
    documents : int
        Number of documents in which the code is a predicted code or, given "actual", an actual
        code.
    right : float
        Share of these documents in which the code is correct. This is the precision of a predicted
        code or the recall of an actual code.
    outside : float
        Share of these documents in which the code is out of family: the code is not correct, and
        the other side contains no unmatched sibling.
    siblings : tuple of (label, float)
        Siblings with which the code is confused, and the share of the documents for each sibling,
        in descending order of the shares. These shares, ``right`` and ``outside`` sum to 1.
    right_interval, outside_interval : (float, float)
        Wilson intervals of ``right`` and ``outside``.
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
        """True if fewer than 20 documents contain the code, because shares are then unreliable."""
        return self.documents < FEW

    @property
    def confused(self) -> float:
        """Share of the documents in which the code is confused with a sibling."""
        if not self.documents:
            return math.nan
        return float(sum(share for _, share in self.siblings))

    @property
    def most_likely(self) -> Label | None:
        """The sibling with which the code is most often confused.

        If siblings are tied, the first sibling is returned. The value is None if the code is never
        confused.
        """
        if not self.siblings:
            return None
        return self.siblings[0][0]

    def to_frame(self) -> pd.DataFrame:
        """Return one row per outcome: correct, each sibling, and out of family.

        The columns are outcome, code, share, low, high, documents and too_few.
        """
        from cmtrack._pandas import pd

        rows = [("right", self.code, self.right, *self.right_interval)]
        rows += [
            ("sibling", code, share, *interval)
            for (code, share), interval in zip(self.siblings, self.sibling_intervals, strict=True)
        ]
        rows.append(("out of family", None, self.outside, *self.outside_interval))
        frame = pd.DataFrame(rows, columns=["outcome", "code", "share", "low", "high"])
        return frame.assign(documents=self.documents, too_few=self.too_few)

    def __str__(self) -> str:
        if not self.documents:
            return f"{quoted(self.code)} is {_ROLES[self.given]} in no document."
        documents = f"{self.documents:,} documents"
        if self.documents == 1:
            documents = "1 document"
        if self.too_few:
            documents += " (too few to rely on)"
        parts = [f"correct in {percent_with_interval(self.right, self.right_interval)}"]
        if self.siblings:
            parts.append(self._most_frequent())
        outside = percent_with_interval(self.outside, self.outside_interval)
        parts.append(f"out of family in {outside}")
        return f"{quoted(self.code)} is {_ROLES[self.given]} in {documents}: {'; '.join(parts)}."

    def _most_frequent(self) -> str:
        """Return the names and shares of the most frequent siblings as part of a sentence."""
        largest = self.siblings[0][1]
        # Shares are sums of multiples of 1/UNIT, so shares that should be equal may differ by
        # rounding.
        tied = [
            quoted(code)
            for code, share in self.siblings
            if math.isclose(share, largest, abs_tol=2 / UNIT)
        ]
        share = percent_with_interval(largest, self.sibling_intervals[0])
        if len(tied) > 1:
            share = f"each {share}"
        names = tied[:MOST_TIED]
        if len(tied) > MOST_TIED:
            names.append(f"{len(tied) - MOST_TIED} more")
        text = ", ".join(names[:-1])
        if text:
            text += " or "
        return f"most often confused with {_OTHER[self.given]} {text}{names[-1]} ({share})"

    def __repr__(self) -> str:
        return printable(f"CodeAnswer({self})")

    def _repr_html_(self) -> str:
        return notebook.view(notebook.sentence(self), notebook.table(self.to_frame()))


def answer(
    statistics: FamilyStatistics, code: Label, given: str, confidence_level: float
) -> CodeAnswer:
    """Compute the outcomes of a predicted code or of an actual code."""
    position = statistics.families.place(code)
    family = statistics.families.names[int(statistics.families.family_of_code[position])]
    distribution = family_distribution(statistics, family, given)
    codes = distribution.codes
    index = codes.index(code)
    by_code = distribution.values.T if given == "actual" else distribution.values
    shares = by_code[:, index]
    n = int(statistics.codes[position, _SIDES[given].documents])

    def interval(share: float) -> Interval:
        return wilson(min(1.0, share), n, confidence_level) or NOWHERE

    order = np.argsort(-np.nan_to_num(shares[:-1]), kind="stable").tolist()
    siblings = [(codes[j], float(shares[j])) for j in order if j != index and shares[j] > 0]
    right = float(shares[index])
    outside = float(shares[-1])
    return CodeAnswer(
        code,
        family,
        given,
        n,
        right,
        outside,
        tuple(siblings),
        interval(right),
        interval(outside),
        tuple(interval(share) for _, share in siblings),
        confidence_level,
    )


# -- tables of all codes and families -------------------------------------------------------------


def code_table(statistics: FamilyStatistics) -> pd.DataFrame:
    """Return one row per code (see :meth:`FamilyEvaluation.code_table`)."""
    from cmtrack._pandas import pd

    codes = statistics.codes
    families = statistics.families
    columns: dict[str, Any] = {
        "code": list(families.codes),
        "family": [families.names[number] for number in families.family_of_code.tolist()],
        "predicted": codes[:, PREDICTED],
        "actual": codes[:, ACTUAL],
        **code_ratios(codes),
    }
    for given, side in _SIDES.items():
        n = codes[:, side.documents].astype(np.float64)
        hits = codes[:, HITS].astype(np.float64)
        outside = codes[:, side.outside].astype(np.float64)
        partners, mass = _most_frequent_partners(statistics, given)
        columns[f"match_given_{given}"] = ratio(hits, n)
        columns[f"confused_given_{given}"] = ratio(n - hits - outside, n)
        columns[f"oof_given_{given}"] = ratio(outside, n)
        columns[f"partner_given_{given}"] = partners
        columns[f"partner_share_given_{given}"] = ratio(mass, n)
        columns[f"too_few_{given}"] = n < FEW
    return pd.DataFrame(columns)


def _most_frequent_partners(
    statistics: FamilyStatistics, given: str
) -> tuple[list[Label | None], FloatArray]:
    """Return each code's most frequent sibling on the other side (or None), and its mass."""
    codes = statistics.families.codes
    pairs = statistics.pairs
    actual, predicted = np.divmod(pairs.keys, len(codes))
    code = predicted
    sibling = actual
    if given == "actual":
        code = actual
        sibling = predicted
    mass = pairs.masses[:, MATCHINGS.index(_SIDES[given].matching)]
    partner = np.full(len(codes), -1)
    largest = np.zeros(len(codes))
    # In this order, the last pair of each code has the largest mass. Among pairs of equal mass, it
    # has the first sibling.
    order = np.lexsort((-sibling, mass, code))
    largest[code[order]] = mass[order] / UNIT
    partner[code[order]] = sibling[order]
    labels = (*codes, None)  # index -1 finds None
    return [labels[k] for k in partner.tolist()], largest


_COLUMNS = ("f1_micro", "precision_micro", "recall_micro", "confusion_share", "oof_share")


def family_table(statistics: FamilyStatistics, results: Results) -> pd.DataFrame:
    """Return one row per family (see :meth:`FamilyEvaluation.family_table`)."""
    from cmtrack._pandas import pd

    families = statistics.families
    rows = []
    for family, n_codes in zip(families.names, np.diff(families.starts).tolist(), strict=True):
        prefix = f"family/{encode_label(family)}"
        support = results.metrics[f"{prefix}/support"]
        row: dict[str, Any] = {"family": family, "codes": n_codes, "support": support}
        for name in _COLUMNS:
            low, high = results.intervals.get(f"{prefix}/{name}", NOWHERE)
            row[name] = results.metrics[f"{prefix}/{name}"]
            row[f"{name}_low"] = low
            row[f"{name}_high"] = high
        rows.append(row)
    return pd.DataFrame(rows)
