"""Evaluation of classifiers: predictions and options in, an :class:`Evaluation` out.

This package joins the packages below it: it reads the input, counts it, and returns numbers, curves
and copies of the result by name. It does not compare evaluations, draw, write pages or log runs.
The formulas of the metrics are in ``metrics``.

Start with ``spec``, which defines the options, and with ``evaluated`` in ``from_arrays``, which
turns arrays into an evaluation in one function. ``from_tables``, ``accumulator`` and ``spans`` read
other input. ``result`` lists all attributes and methods of an evaluation. ``compute`` computes the
numbers, and ``_number_warnings`` warns about them. ``transport`` (with ``_target`` and ``_moved``),
``threshold``, ``segments`` and ``rows`` answer further questions. ``gates`` defines the bounds that
a run must meet, and ``storage`` reads and writes files.
"""

from cmtrack._lazy import lazy

__getattr__, __all__ = lazy(__name__, __file__)
