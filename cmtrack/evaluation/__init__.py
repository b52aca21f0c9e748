"""Evaluations of classifiers: data and a question give an :class:`Evaluation`.

The room joins the rooms below it: it reads the input, has it counted, and gives numbers, curves and
copies of the result by name. It does not compare evaluations, draw, write pages or log runs, and
formulas of metrics belong to ``metrics``.

Start with ``spec``, which has the question, and with ``evaluated`` in ``from_arrays``, which goes
from arrays to an evaluation in one function. ``from_tables``, ``accumulator`` and ``spans`` do so
from other input. ``result`` lists everything that can be asked of an evaluation; ``compute`` makes
the numbers, and ``_number_warnings`` the warnings about them. ``transport`` (with ``_target`` and
``_moved``), ``threshold``, ``segments`` and ``rows`` answer further questions, ``gates`` has the
bounds that a run must keep, and ``storage`` reads and writes files.
"""

from cmtrack._lazy import lazy

__getattr__, __all__ = lazy(__name__, __file__)
