"""Class groups, and rules for counting predictions inside the right group.

A :class:`Grouping` puts every class into one group and says which (actual, predicted) pairs *inside*
a group count as right: all of them (relaxed), only equal classes (strict), or chosen pairs (hybrid).
Groupings chain with :meth:`Grouping.then`. :func:`compose` turns a chain, at one of its steps, into a
single assignment of the original classes, so that any step is computed in one pass. :class:`Costs` are of pairs of
classes, or of the groups of a step.

Source: Markoulidakis et al. (2021), "Multiclass Confusion Matrix Reduction Method and Its Application
on Net Promoter Score Classification Problem", sections 3 and 4.1.
"""

from cmtrack.grouping.chain import ComposedStep, Grouping
from cmtrack.grouping.costs import Costs, as_costs
from cmtrack.grouping.step import Label

__all__ = ["ComposedStep", "Costs", "Grouping", "Label", "as_costs"]
