"""Counting positives: densities of labelled scores, estimators, intervals, plans.

Here belongs how a share or a number of positives, or of each class, is estimated from scores and
labelled scores. How scores are counted is in ``cmtrack.statistics``, and what an estimate does to
the metrics of an evaluation in ``cmtrack.evaluation``. Start with :func:`estimate_prevalence`,
which reads scores and options, and ``results``, which is what comes out. ``estimators`` has the
ways to an estimate. They use ``densities`` (of two classes), ``mixture`` (maximum likelihood of
shares), ``class_shares`` (of K classes, by bins) and ``class_moments`` (of K classes, by
recalibrated probabilities). ``metrics`` is the section ``prevalence/`` of an evaluation.
"""

from cmtrack.prevalence.estimate import estimate_prevalence
from cmtrack.prevalence.mixture import em_shares, prior_corrected
from cmtrack.prevalence.results import BasePrevalence, ClassPrevalenceEstimate, PrevalenceEstimate

__all__ = [
    "BasePrevalence",
    "ClassPrevalenceEstimate",
    "PrevalenceEstimate",
    "em_shares",
    "estimate_prevalence",
    "prior_corrected",
]
