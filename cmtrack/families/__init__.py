"""Label sets in families of codes: statistics, metrics and the :class:`~cmtrack.FamilyEvaluation`.

Here belongs what is special about documents with several codes: codes and their families, counts of
documents and of pairs of codes, and the metrics and tables of these. Figures are in
``cmtrack.plots``, pages in ``cmtrack.report``; one label a row is an
:class:`~cmtrack.Evaluation`. Start with :func:`~cmtrack.families.evaluate.evaluate_families`: it
reads sets and families (``hierarchy``), counts documents (``_collect`` into ``counts``) and makes a
:class:`~cmtrack.FamilyEvaluation` (``result``), whose numbers are in ``metrics`` and ``tables``.

Source of the rules: M. Falis, Hierarchical Confusion Matrices
(github.com/modr00cka/weak_hierarchical_confusion), assumptions 1 to 3 with figures 1 to 3. If the
text and the figures differ, the figures count: a code is out of family if no *unmatched* sibling is
left on the other side (the text of assumption 3 says "no code from that family"), and each pair of
several unmatched codes counts (figure 1). The right panel of figure 2 ignores assumption 1; by all
rules 364.03 is out of family there. The source displays predictions as rows; here rows are actual,
columns predicted.
"""
