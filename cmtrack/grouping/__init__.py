"""Groups of classes, rules that decide which predictions inside a group are hits, and costs.

A :class:`Grouping` puts every class into one group and states which (actual, predicted) pairs
inside a group are hits: all of them (relaxed), only predictions of the exact class (strict), or
chosen pairs (hybrid). :meth:`Grouping.then` chains groupings. :meth:`Grouping.compose` writes every
step of a chain in terms of the original classes, so that any step is computed in one pass.
:class:`Costs` assigns a cost to each pair of classes, or to each pair of groups in a step.

Start with ``chain``, which defines the public :class:`Grouping`. ``step`` checks, reads and writes
a single partition, and ``costs`` defines :class:`Costs`. This package deals only with classes and
groups. The package does not count rows or compute metrics.

Source: Markoulidakis et al. (2021), "Multiclass Confusion Matrix Reduction Method and Its
Application on Net Promoter Score Classification Problem", sections 3 and 4.1.
"""

from cmtrack.grouping.chain import ComposedStep, Grouping
from cmtrack.grouping.costs import Costs, as_costs
from cmtrack.grouping.step import Label

__all__ = ["ComposedStep", "Costs", "Grouping", "Label", "as_costs"]
