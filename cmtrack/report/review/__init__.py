"""The review of a comparison: its decision in words, tables and figures, as a page and as a bundle.

A :class:`Review` provides the names and titles of a comparison, each made once. The modules for
sentences (``narrative``) and tables (``page``, ``columns``, ``rows``) use it. ``report`` writes the
review as HTML, Markdown or JSON, and ``bundle`` writes it together with all data that are needed to
recompute it. The results of a comparison are computed in :mod:`cmtrack.comparison`.

Start with :func:`context` in ``page``, which lists the parts of the page.
"""

from cmtrack._lazy import lazy

__getattr__, __all__ = lazy(__name__, __file__)
