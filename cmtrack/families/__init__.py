"""Label sets in families of codes: statistics, metrics and the :class:`~cmtrack.FamilyEvaluation`.

Source of the rules: M. Falis, Hierarchical Confusion Matrices
(github.com/modr00cka/weak_hierarchical_confusion), assumptions 1 to 3 with figures 1 to 3. Where
the text and the figures part, the figures count: a code is out of family where no *unmatched*
sibling is left on the other side (the text of assumption 3 says "no code from that family"), and
each pair of several unmatched codes counts (figure 1). The right panel of figure 2 leaves
assumption 1 out; with all rules 364.03 is out of family there. The source displays predictions as
rows; here rows are actual, columns predicted.
"""
