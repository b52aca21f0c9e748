"""Evaluation of classifiers, which turns predictions and options into an :class:`Evaluation`.

This package builds on the packages for metrics and statistics: it reads and counts the input, and
it provides the resulting numbers and curves, and modified copies of an evaluation. The package does
not compare evaluations, draw figures, write pages or log runs. The formulas of the metrics are in
``metrics``.

Start reading the code at ``spec``, which defines the options, and at the function ``evaluated`` in
``from_arrays``, which turns arrays into an evaluation. ``from_tables``, ``accumulator`` and
``spans`` read other kinds of input. ``result`` lists all attributes and methods of an evaluation.
``compute`` computes the numbers, and ``_number_warnings`` warns about them. ``transport`` (with
``_target`` and ``_moved``), ``threshold``, ``segments`` and ``rows`` add optional analyses.
``gates`` defines the bounds that a run must meet, and ``storage`` reads and writes files.
"""

from cmtrack._lazy import lazy

__getattr__, __all__ = lazy(__name__, __file__)
