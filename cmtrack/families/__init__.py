"""Label sets in families of codes: statistics, metrics and the :class:`~cmtrack.FamilyEvaluation`.

This room has everything that is special about documents with several codes: codes and their
families, counts of documents and of pairs of codes, and their metrics and tables. Figures are in
``cmtrack.plots``, pages in ``cmtrack.report``. Rows with one label each belong to
:class:`~cmtrack.Evaluation`. Start with :func:`~cmtrack.families.evaluate.evaluate_families`. It
reads sets and families (``hierarchy``), counts documents (``_collect`` into ``counts``) and returns
a :class:`~cmtrack.FamilyEvaluation` (``result``). Its numbers are in ``metrics`` and ``tables``.

Source of the rules: M. Falis, Hierarchical Confusion Matrices
(github.com/modr00cka/weak_hierarchical_confusion), assumptions 1 to 3 with figures 1 to 3. If the
text and the figures differ, cmtrack follows the figures. A code is out of family if the other side
has no *unmatched* sibling left (the text of assumption 3 says "no code from that family"), and if
several codes are unmatched, each pair counts (figure 1). The right panel of figure 2 ignores
assumption 1: by all rules, 364.03 is out of family in it. The source displays predictions as rows.
In cmtrack, rows are actual and columns are predicted.
columns predicted.
"""
