"""``evaluate_families``: sets of codes -> :class:`FamilyEvaluation`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from cmtrack.families._collect import collect_families
from cmtrack.families.hierarchy import Rule, Tree, assign, read_sets
from cmtrack.families.metrics import document_errors
from cmtrack.families.result import FamilyEvaluation
from cmtrack.families.spec import FamilySpec
from cmtrack.grouping import Label
from cmtrack.grouping.step import plain
from cmtrack.statistics import LabelDigest
from cmtrack.statistics.inputs import align_rows
from cmtrack.statistics.labels import encode_row_ids


def evaluate_families(
    y_true_sets: Any,
    y_pred_sets: Any,
    families: Rule,
    *,
    matching: str = "product",
    remove_matches: bool = True,
    codes: Sequence[Label] | None = None,
    unassigned: Label | None = None,
    columns: tuple[str, str] = ("document", "code"),
    documents: Any = None,
    row_ids: Any = None,
    confidence_level: float = 0.95,
) -> FamilyEvaluation:
    """Judge predicted sets of codes, where a wrong code of the right family is less wrong than another.

    Parameters
    ----------
    y_true_sets, y_pred_sets
        The documents' actual and predicted codes, both in one of these forms:

        * iterables with a set (list, array) of codes for each document; a set may be empty;
        * long frames (pandas, polars) with a row for each code of a document; ``columns`` names
          their columns, and ``documents`` says which documents there are.
    families : mapping or callable
        ``{code: family}``, or a callable that gives the family of a code:
        ``Prefix(separator=".")``, ``Prefix(length=3)``, ``Tree({child: parent}, level=1)``, or a
        function.
    matching : "product", "row", "column" or "balanced"
        What a pair of unmatched codes counts in :meth:`FamilyEvaluation.matrix`, where a document
        has a predicted and b actual ones left in a family: 1, 1/b, 1/a, or 1/max(a, b) with the
        rest out of family. All four are kept, this is the one shown by default; no metric depends
        on it.
    remove_matches : bool, default True
        If False, matrices hold the plain co-occurrence within families: codes on both sides are
        partners too. Metrics and distributions are not affected.
    codes : sequence, optional
        All codes in order. By default those seen, sorted.
    unassigned : label, optional
        The family of codes that ``families`` puts into none. Without it such a code is an error.
    columns : (str, str), default ("document", "code")
    documents : array-like of shape (n,), optional
        Names of all documents of long frames, also of those without any code.
    row_ids : array-like of shape (n,), optional
        Names of the documents (for long frames, ``documents`` is). Paired comparisons check that
        they are the same.
    confidence_level : float, default 0.95

    Returns
    -------
    FamilyEvaluation

    Raises
    ------
    ValueError, TypeError
        Wrong input; the text gives the rule and the value.

    Notes
    -----
    The rules are those of M. Falis, Hierarchical Confusion Matrices: a code on both sides is a
    match and no one's partner; the other predicted codes of a family meet its other actual codes; a
    code that is left without any partner is out of family (OOF). A code that occurs twice in a
    document counts once, and a warning counts these.

    Examples
    --------
    >>> from cmtrack import Prefix, evaluate_families
    >>> actual, predicted = [{"364.0", "401.9"}, {"250.0"}], [{"364.1", "401.9"}, {"250.0", "401.1"}]
    >>> evaluation = evaluate_families(actual, predicted, Prefix(separator="."))
    >>> {name: round(evaluation.metrics[f"family/{name}"], 3) for name in ("f1_micro", "oof_share", "confusion_share")}
    {'f1_micro': 0.571, 'oof_share': 0.143, 'confusion_share': 0.286}
    >>> evaluation.family_of("364.0"), evaluation.matrix("364").values.tolist()
    ('364', [[0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    """
    how = matching, remove_matches, codes, unassigned, columns, documents, row_ids, confidence_level
    return _evaluate(y_true_sets, y_pred_sets, [families], *how)[0]


def evaluate_family_levels(
    y_true_sets: Any,
    y_pred_sets: Any,
    tree: Tree,
    levels: Iterable[int],
    *,
    matching: str = "product",
    remove_matches: bool = True,
    codes: Sequence[Label] | None = None,
    unassigned: Label | None = None,
    columns: tuple[str, str] = ("document", "code"),
    documents: Any = None,
    row_ids: Any = None,
    confidence_level: float = 0.95,
) -> dict[int, FamilyEvaluation]:
    """Judge predicted sets of codes at several levels of a tree.

    Parameters
    ----------
    tree : Tree
        Its own level does not matter.
    levels : iterable of int
        0 is the top.
    y_true_sets, y_pred_sets, matching, remove_matches, codes, unassigned
        As in :func:`evaluate_families`.
    columns, documents, row_ids, confidence_level
        As in :func:`evaluate_families`.

    Returns
    -------
    dict of int to FamilyEvaluation

    Raises
    ------
    ValueError, TypeError
        Wrong input; the text gives the rule and the value.

    Examples
    --------
    >>> from cmtrack import Tree, evaluate_family_levels
    >>> parents = {"dog": "mammal", "cat": "mammal", "crow": "bird", "mammal": "animal", "bird": "animal"}
    >>> tree = Tree(parents)  # “animal” holds everything: level 0 is below it
    >>> found = evaluate_family_levels([["dog"], ["crow"]], [["cat"], ["crow"]], tree, [0, 1])
    >>> {level: evaluation.families for level, evaluation in found.items()}
    {0: ('bird', 'mammal'), 1: ('crow', 'cat', 'dog')}
    """
    if not isinstance(tree, Tree):
        raise TypeError(f"tree must be a Tree, got {type(tree).__name__}")
    how = matching, remove_matches, codes, unassigned, columns, documents, row_ids, confidence_level
    rules = {level: replace(tree, level=level) for level in levels}
    return dict(zip(rules, _evaluate(y_true_sets, y_pred_sets, rules.values(), *how), strict=True))


def _evaluate(
    y_true: Any,
    y_pred: Any,
    rules: Iterable[Rule],
    matching: str,
    remove_matches: bool,
    codes: Sequence[Label] | None,
    unassigned: Label | None,
    columns: tuple[str, str],
    documents: Any,
    row_ids: Any,
    confidence_level: float,
) -> list[FamilyEvaluation]:
    """An evaluation of the same sets by each rule."""
    is_long = hasattr(y_true, "columns") or hasattr(y_pred, "columns")
    if not is_long:  # the index of a long frame names its rows, which are no documents
        aligned = align_rows({"y_true_sets": y_true, "y_pred_sets": y_pred, "row_ids": row_ids})
        y_true, y_pred, row_ids = aligned.values()
    given = read_sets(
        y_true, y_pred, may_be_empty=codes is not None, columns=columns, documents=documents
    )
    if row_ids is not None and documents is not None:
        raise ValueError(
            "row_ids must be given without documents, got both: documents names the documents already"
        )
    names = given.ids if row_ids is None else row_ids
    digest = (
        None if names is None else LabelDigest.from_codes(*encode_row_ids(names, given.actual.size))
    )
    spec = FamilySpec.of(
        {"matching": matching, "confidence_level": confidence_level}, evaluate_families
    )
    listed = given.seen if codes is None else [plain(code) for code in codes]
    if len(set(listed)) != len(listed):
        twice = next(code for code in listed if listed.count(code) > 1)
        raise ValueError(f"codes must not repeat, got {twice!r} more than once")
    out = []
    for rule in rules:
        families = assign(rule, listed, chosen=codes is not None, unassigned=unassigned)
        sides = given.renumbered(families.codes)
        statistics, rows = collect_families(
            *sides, families, remove_matches=remove_matches, row_ids=digest
        )
        errors, remarks = document_errors(statistics, rows), (given.note,) if given.note else ()
        out.append(
            FamilyEvaluation(statistics, spec, remarks=remarks, macro_errors=errors, rows=rows)
        )
    return out
