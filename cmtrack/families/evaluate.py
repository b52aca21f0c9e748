"""Functions that evaluate sets of codes and return a :class:`FamilyEvaluation`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from cmtrack.families._collect import collect_families
from cmtrack.families.hierarchy import Families, GivenSets, Rule, Tree, assign, read_sets
from cmtrack.families.metrics import document_errors
from cmtrack.families.result import FamilyEvaluation
from cmtrack.families.spec import FamilySpec
from cmtrack.grouping import Label


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
    """Evaluate predicted sets of codes, including confusions between codes of the same family.

    A wrong code of the correct family is a smaller error than a code of another family.

    Parameters
    ----------
    y_true_sets, y_pred_sets
        The actual and the predicted codes of each document. Both arguments must have the same form.
        The two possible forms are:

        * iterables with a set (list, array) of codes for each document; a set may be empty;
        * long frames (pandas, polars) with a row for each code of a document; ``columns`` names
          their columns, and ``documents`` lists all documents.
    families : mapping or callable
        ``{code: family}``, or a callable that returns the family of a code:
        ``Prefix(separator=".")``, ``Prefix(length=3)``, ``Tree({child: parent}, level=1)``, or a
        function.
    matching : "product", "row", "column" or "balanced"
        The rule that determines how much a pair of unmatched codes counts in
        :meth:`FamilyEvaluation.matrix`. If a document contains a predicted and b actual unmatched
        codes of a family, each pair counts 1 (product), 1/b (row), 1/a (column) or 1/max(a, b)
        (balanced). With "balanced", the remainder of a code's mass counts as out of family. The
        evaluation stores the sums of all four matchings and shows the given matching by default.
        Metrics do not depend on the matching.
    remove_matches : bool, default True
        If False, matrices contain all co-occurrences of codes within families, so a code on both
        sides is also paired with other codes. This option affects neither metrics nor
        distributions.
    codes : sequence, optional
        All codes in the order to use. By default, the codes that occur in the data are sorted.
    unassigned : label, optional
        The family to use for codes to which ``families`` assigns no family. By default, such a code
        raises an error.
    columns : (str, str), default ("document", "code")
    documents : array-like of shape (n,), optional
        For long frames, the names of all documents, including documents without any code.
    row_ids : array-like of shape (n,), optional
        Names of the documents (for long frames, use ``documents``). A paired comparison checks that
        the names are the same in both evaluations.
    confidence_level : float, default 0.95

    Returns
    -------
    FamilyEvaluation

    Raises
    ------
    ValueError, TypeError
        If an argument is invalid. The error message states the rule and the invalid value.

    Notes
    -----
    The rules follow M. Falis, Hierarchical Confusion Matrices. A code on both sides is a match, and
    no partners are counted for it. The unmatched predicted codes of a family are paired with its
    unmatched actual codes. An unmatched code without any partner is out of family (OOF). A code
    that occurs twice in a document counts once, and a warning reports the number of such codes.

    Examples
    --------
    >>> from cmtrack import Prefix, evaluate_families
    >>> actual = [{"364.0", "401.9"}, {"250.0"}]
    >>> predicted = [{"364.1", "401.9"}, {"250.0", "401.1"}]
    >>> evaluation = evaluate_families(actual, predicted, Prefix(separator="."))
    >>> round(evaluation.metrics["family/f1_micro"], 3)
    0.571
    >>> round(evaluation.metrics["family/oof_share"], 3)
    0.143
    >>> evaluation.family_of("364.0"), evaluation.matrix("364").values.tolist()
    ('364', [[0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    """
    label_sets = read_sets(
        y_true_sets,
        y_pred_sets,
        may_be_empty=codes is not None,
        columns=columns,
        documents=documents,
        row_ids=row_ids,
    )
    spec = FamilySpec.of(
        {"matching": matching, "confidence_level": confidence_level}, evaluate_families
    )
    listed = label_sets.listed(codes)
    assigned = assign(families, listed, chosen=codes is not None, unassigned=unassigned)
    return _evaluated(label_sets, assigned, spec, remove_matches)


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
    """Evaluate predicted sets of codes at several levels of a tree.

    Parameters
    ----------
    tree : Tree
        The tree of codes. Its attribute ``level`` is ignored.
    levels : iterable of int
        The levels to evaluate; 0 is the top level.
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
        If an argument is invalid. The error message states the rule and the invalid value.

    Examples
    --------
    >>> from cmtrack import Tree, evaluate_family_levels
    >>> tree = Tree(
    ...     {
    ...         "dog": "mammal",
    ...         "cat": "mammal",
    ...         "crow": "bird",
    ...         "mammal": "animal",  # “animal” contains everything: level 0 is below it
    ...         "bird": "animal",
    ...     }
    ... )
    >>> found = evaluate_family_levels([["dog"], ["crow"]], [["cat"], ["crow"]], tree, [0, 1])
    >>> {level: evaluation.families for level, evaluation in found.items()}
    {0: ('bird', 'mammal'), 1: ('crow', 'cat', 'dog')}
    """
    if not isinstance(tree, Tree):
        raise TypeError(f"tree must be a Tree, got {type(tree).__name__}")
    label_sets = read_sets(
        y_true_sets,
        y_pred_sets,
        may_be_empty=codes is not None,
        columns=columns,
        documents=documents,
        row_ids=row_ids,
    )
    spec = FamilySpec.of(
        {"matching": matching, "confidence_level": confidence_level}, evaluate_families
    )
    listed = label_sets.listed(codes)
    evaluations = {}
    for level in levels:
        rule = replace(tree, level=level)
        families = assign(rule, listed, chosen=codes is not None, unassigned=unassigned)
        evaluations[level] = _evaluated(label_sets, families, spec, remove_matches)
    return evaluations


def _evaluated(
    label_sets: GivenSets, families: Families, spec: FamilySpec, remove_matches: bool
) -> FamilyEvaluation:
    """Evaluate label sets whose codes ``families`` assigns to families."""
    actual, predicted = label_sets.renumbered(families.codes)
    statistics, rows = collect_families(
        actual, predicted, families, remove_matches=remove_matches, row_ids=label_sets.row_ids
    )
    return FamilyEvaluation(
        statistics,
        spec,
        remarks=label_sets.remarks,
        macro_errors=document_errors(statistics, rows),
        rows=rows,
    )
