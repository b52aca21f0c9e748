"""Reports of evaluations and reviews of comparisons: words, figures and pages.

This package makes the texts that people read: sentences, tables, the list of figures, and pages in
HTML, Markdown and JSON. It computes no statistics. Other packages compute the numbers,
:mod:`cmtrack.plots` draws the figures, and :mod:`cmtrack.digits` formats the numbers. Nothing here
imports MLflow.

Start with :mod:`cmtrack.report.views`, which makes the page of an evaluation from its sentences
(``narrative``), its tables (``evaluation_page`` or ``families_page``) and its figures
(``figures``). The page of a comparison is in :mod:`cmtrack.report.review`.
"""

from cmtrack._lazy import lazy

__getattr__, __all__ = lazy(__name__, __file__)
