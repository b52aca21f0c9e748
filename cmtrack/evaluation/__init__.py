"""Evaluations of classifiers: data and a question give an :class:`Evaluation`.

This package joins the packages below it: it reads the input, counts it, and returns numbers, curves
and copies of the result by name. It does not compare evaluations, draw, write pages or log runs.
The formulas of the metrics are in ``metrics``.

Start with ``spec``, which has the question, and with ``evaluated`` in ``from_arrays``, which goes
from arrays to an evaluation in one function. ``from_tables``, ``accumulator`` and ``spans`` read
other input. ``result`` lists everything that an evaluation offers. ``compute`` makes the numbers,
and ``_number_warnings`` warns about them. ``transport`` (with ``_target`` and ``_moved``),
``threshold``, ``segments`` and ``rows`` answer further questions. ``gates`` has the bounds that a
run must meet, and ``storage`` reads and writes files.
"""

from cmtrack._lazy import lazy

__getattr__, __all__ = lazy(__name__, __file__)
