"""Reports on evaluations and reviews of comparisons, as sentences, figures and pages.

This package produces everything that people read: sentences, tables, the list of figures, and pages
in HTML, Markdown and JSON. No statistics are computed in this package. Other packages compute the
numbers, :mod:`cmtrack.plots` draws the figures, and :mod:`cmtrack.digits` formats the numbers.
Nothing here imports MLflow.

Start reading the code at :mod:`cmtrack.report.views`, which makes the page of an evaluation from
sentences (``narrative``), tables (``evaluation_page`` or ``families_page``) and figures
(``figures``). The page of a comparison is made in :mod:`cmtrack.report.review`.
"""

from cmtrack._lazy import lazy

__getattr__, __all__ = lazy(__name__, __file__)
