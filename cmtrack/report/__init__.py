"""Words, the list of figures, and pages of an evaluation and of a comparison.

Here belongs what people read: sentences, tables of texts, the list of figures, and HTML, Markdown
and JSON. Numbers do not: the rooms below compute them, :mod:`cmtrack.plots` draws them, and
:mod:`cmtrack.digits` writes one of them. Nothing here imports MLflow.

Start with :mod:`cmtrack.report.views`, which makes the page of an evaluation from its sentences
(``narrative``), its tables (``evaluation_page`` or ``families_page``) and its figures
(``figures``). The page of a comparison is in :mod:`cmtrack.report.review`.
"""

from cmtrack._lazy import lazy

__getattr__, __all__ = lazy(__name__, __file__)
