"""Label sets whose codes form families: statistics, metrics and :class:`~cmtrack.FamilyEvaluation`.

This package handles documents to which several codes are assigned. It defines codes and families of
codes, counts documents and pairs of codes, and computes metrics and tables from these counts. The
figures are in ``cmtrack.plots``, and the pages are in ``cmtrack.report``. For rows with a single
label, use :class:`~cmtrack.Evaluation`. Start with
:func:`~cmtrack.families.evaluate.evaluate_families`. It reads sets and families (``hierarchy``),
counts documents (``_collect``, which fills ``counts``), and returns a
:class:`~cmtrack.FamilyEvaluation` (``result``). The modules ``metrics`` and ``tables`` compute the
numbers of a ``FamilyEvaluation``.

Source of the rules: M. Falis, Hierarchical Confusion Matrices
(github.com/modr00cka/weak_hierarchical_confusion), assumptions 1 to 3 with figures 1 to 3. If the
text and the figures differ, cmtrack follows the figures. A code is out of family if the other side
contains no *unmatched* code of the same family, although the text of assumption 3 says "no code
from that family". If both sides contain several unmatched codes of a family, every pair of these
codes counts (figure 1). The right panel of figure 2 ignores assumption 1: according to the rules,
the code 364.03 in this panel is out of family. In the source, the rows of a matrix are predictions.
In cmtrack, rows are actual codes and columns are predicted codes.
"""
