"""What the four ways to count several mismatches do to margins and to conditional shares."""

from __future__ import annotations

import pandas as pd

from cmtrack import FamilyEvaluation, Prefix, evaluate_families
from discharge_codes.published import FIGURES

MATCHINGS = ("product", "row", "column", "balanced")
TWO_LEFT = (("364.01", "365.01"), ("364.04", "364.05", "365.01"))
"""A fourth document (predicted, gold): one code is left on one side of the family, two on the other."""


def four_documents() -> FamilyEvaluation:
    """The documents of the three figures and a fourth one."""
    documents = [(example.predicted, example.gold) for example in FIGURES.values()] + [TWO_LEFT]
    return evaluate_families(
        [list(gold) for _, gold in documents],
        [list(predicted) for predicted, _ in documents],
        Prefix(separator="."),
    )


def margin_table(evaluation: FamilyEvaluation, family: str) -> pd.DataFrame:
    """How often each code is actual and predicted, and what the matrices' margins say of it."""
    counts = evaluation.code_table().set_index("code")
    rows = []
    for side, axis in (("actual", 1), ("predicted", 0)):
        for code in evaluation.matrix(family).codes:
            row = {"side": side, "code": code, "documents": int(counts.loc[code, side])}
            for matching in MATCHINGS:
                frame = evaluation.matrix(family, matching).to_frame()
                row[matching] = float(frame.sum(axis=axis)[code])
            rows.append(row)
    return pd.DataFrame(rows)


def share_table(evaluation: FamilyEvaluation, code: str, given: str) -> pd.DataFrame:
    """The shares behind one code under both normalisations: each code once, or product counts over their sum."""
    family = evaluation.family_of(code)
    rows = {}
    for words, normalization in (
        ("each code has weight 1", "mass"),
        ("product counts over their sum", "reference"),
    ):
        frame = evaluation.distribution(family, given, normalization).to_frame()
        rows[words] = frame.loc[code] if given == "actual" else frame[code]
    table = pd.DataFrame(rows).T
    table = table.loc[:, (table > 0).any()]
    table.index.name = f"given {given} {code}"
    return table


def diagonals(evaluation: FamilyEvaluation, family: str) -> pd.DataFrame:
    """Recall of each code of a family, and the diagonals of the two normalisations given the actual code."""
    table = evaluation.code_table().set_index("code")
    own, source = (
        evaluation.distribution(family, "actual", name) for name in ("mass", "reference")
    )
    codes = own.codes
    return pd.DataFrame(
        {
            "code": codes,
            "recall": [float(table.loc[code, "recall"]) for code in codes],
            "weight 1 (product default)": [own[code, code] for code in codes],
            "product counts (authors' code)": [source[code, code] for code in codes],
        }
    )
