"""The review of a comparison: its decision in words, tables and figures, as a page and as a bundle.

A :class:`Review` has the names and titles of a comparison, each made once. Sentences
(``narrative``) and tables (``page``, ``columns``, ``rows``) take it. ``report`` writes them as
HTML, Markdown and JSON, and ``bundle`` with all that is needed to recompute them. What a comparison
finds belongs into :mod:`cmtrack.comparison`.

Start with :func:`context` in ``page``, which lists the parts of the page.
"""

from cmtrack._lazy import lazy

__getattr__, __all__ = lazy(__name__, __file__)
