"""The figures of a family evaluation, each drawn from the whole of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from cmtrack.families.metrics import FEW, family_tallies
from cmtrack.metrics.names import encode_label
from cmtrack.names import elide
from cmtrack.untrusted import one_line

from . import labels as text
from .code_shares import plot_code_shares
from .families import FamilyPanel, plot_family_matrix, plot_worst_families

if TYPE_CHECKING:
    from cmtrack.families.result import FamilyEvaluation
    from cmtrack.families.tables import CodeAnswer
    from cmtrack.grouping import Label

MOST_FAMILIES = 6
MOST_CODES = 60
"""Families with more codes are drawn without the codes that hold the fewest labels."""


def family_matrix_figure(
    evaluation: FamilyEvaluation, family: Label, *, given: str = "actual", matching: str | None = None
) -> Figure:
    """Draw one family's matrix.

    Parameters
    ----------
    evaluation : FamilyEvaluation
    family : label
    given : "actual" or "predicted"
        Colours are shares given the actual code (the diagonal is recall) or the predicted one (precision).
    matching : str, optional
        Of the counts in the cells.
    """
    matrix = evaluation.matrix(family, matching)
    shares = evaluation.distribution(family, given).values.copy()
    other = evaluation.distribution(family, "predicted" if given == "actual" else "actual").values
    if given == "actual":
        shares[-1] = other[-1]
    else:
        shares[:, -1] = other[:, -1]
    kept = _most_frequent(evaluation, family)
    cells = np.ix_([*kept, len(matrix.codes)], [*kept, len(matrix.codes)])
    codes = [matrix.codes[i] for i in kept]
    left = len(matrix.codes) - len(kept)
    more = f" (the {len(kept)} most frequent of {len(matrix.codes)} codes)" if left else ""
    return plot_family_matrix(
        matrix.values[cells], codes, shares=shares[cells], given=given, title=f"Family {_shown(family)}{more}",
        matches_removed=evaluation.statistics.together is None,
    )  # fmt: skip


def code_figure(evaluation: FamilyEvaluation, code: Label) -> Figure:
    """Draw the two distributions of one code."""
    predicted, actual = evaluation.given_predicted(code), evaluation.given_actual(code)
    return plot_code_shares(
        code,
        _outcomes(predicted),
        _outcomes(actual),
        (predicted.documents, actual.documents),
        confidence_level=evaluation.confidence_level,
        few=(predicted.too_few, actual.too_few),
    )


def _outcomes(answer: CodeAnswer) -> list[tuple[str, float, float, float]]:
    other = "actual" if answer.given == "predicted" else "predicted"
    out = [(f"{_shown(answer.code)} (right)", answer.right, *answer.right_interval)]
    out += [
        (_shown(code), share, *ends)
        for (code, share), ends in zip(answer.siblings, answer.sibling_intervals, strict=True)
    ]
    return [*out, (f"no sibling {other}", answer.outside, *answer.outside_interval)]


def _confused_labels(evaluation: FamilyEvaluation) -> list[float]:
    """Confused labels of each family."""
    sums, _ = family_tallies(evaluation.statistics)
    return [float(value) for value in sums[:, 1] + sums[:, 2]]


def _worst(evaluation: FamilyEvaluation) -> list[int]:
    """Families with confused labels, the most first."""
    confused = _confused_labels(evaluation)
    return [f for f in sorted(range(len(confused)), key=lambda f: -confused[f]) if confused[f] > 0]


def worst_matrix_figure(evaluation: FamilyEvaluation) -> Figure | None:
    """The matrix of the family with the most confused labels; None where nothing is confused."""
    worst = _worst(evaluation)
    return family_matrix_figure(evaluation, evaluation.families[worst[0]]) if worst else None


def worst_families_figure(evaluation: FamilyEvaluation) -> Figure | None:
    """The families with the most confused labels; None where fewer than two have any."""
    worst = _worst(evaluation)[:MOST_FAMILIES]
    if len(worst) < 2:
        return None
    return plot_worst_families(
        [_panel(evaluation, evaluation.families[f]) for f in worst], title="Families with the most confused labels"
    )


def _panel(evaluation: FamilyEvaluation, family: Label) -> FamilyPanel:
    kept = _most_frequent(evaluation, family, 25)
    shares = evaluation.distribution(family, "actual")
    outside = len(shares.codes)
    cells = np.ix_([*kept, outside], [*kept, outside])
    metrics, prefix = evaluation.metrics, f"family/{encode_label(family)}"
    confused = text.share_text(metrics[f"{prefix}/confusion_share"])
    n = text.count_text(metrics[f"{prefix}/support"])
    more = f", {len(kept)} of {outside} codes" if len(kept) < outside else ""
    return FamilyPanel(
        _shown(family), [shares.codes[i] for i in kept], shares.values[cells], f"{confused} confused, n={n}{more}"
    )


def _most_frequent(evaluation: FamilyEvaluation, family: Label, most: int = MOST_CODES) -> list[int]:
    """Places within the family of the codes with the most labels, in order."""
    families = evaluation.statistics.families
    start, stop = families.starts[families.family_place(family) :][:2]
    labels = evaluation.statistics.codes[start:stop, 1:3].sum(axis=1)
    return sorted(int(i) for i in np.argsort(-labels, kind="stable")[:most])


def worst_code_figure(evaluation: FamilyEvaluation) -> Figure | None:
    """The code of at least 20 documents with the largest share of confused labels; None where nothing is confused."""
    codes = evaluation.statistics.codes
    confused = codes[:, 1] + codes[:, 2] - 2 * codes[:, 0] - codes[:, 3] - codes[:, 4]
    if not len(confused) or not confused.max() > 0:
        return None
    enough = codes[:, 1:3].min(axis=1) >= FEW
    if confused[enough].any():  # else the most confused labels, however few
        confused = np.where(enough, confused / np.maximum(1, codes[:, 1] + codes[:, 2]), 0)
    return code_figure(evaluation, evaluation.codes[int(confused.argmax())])


def _shown(label: object) -> str:
    return elide(one_line(label), 48) or "(empty)"
