"""Reviews of comparisons, which present a decision in words, tables and figures.

A :class:`Review` provides the names and titles in a comparison, so that each is made only once. The
modules for sentences (``narrative``) and tables (``page``, ``columns``, ``rows``) use this class.
``report`` writes the review as HTML, Markdown or JSON, and ``bundle`` writes it together with all
data that are needed to recompute it. The results of a comparison are computed in
:mod:`cmtrack.comparison`.

Start reading the code at :func:`context` in ``page``, which lists the parts of the page.
"""

from cmtrack._lazy import lazy

__getattr__, __all__ = lazy(__name__, __file__)
