"""Sections of an :class:`~cmtrack.Evaluation`, and metrics for every kind of evaluation.

The catalogs in this module are used by pages, and by code that reads the names of metrics in gates,
options and logged values before an evaluation exists. All other code uses the catalog that belongs
to an evaluation or a comparison.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from cmtrack.families.metrics import OF_FAMILIES
from cmtrack.metrics.binary import BINARY
from cmtrack.metrics.calibration import CALIBRATION
from cmtrack.metrics.catalog import Catalog, Sections
from cmtrack.metrics.confidence import CONFIDENCE, CONFIDENCE_OF_STEP
from cmtrack.metrics.costs import COST
from cmtrack.metrics.metric import Metric
from cmtrack.metrics.multiclass import MULTICLASS, REDUCED, SPANS
from cmtrack.metrics.names import near_metric
from cmtrack.metrics.ordinal import ORDINAL
from cmtrack.metrics.per_class import CLASS
from cmtrack.metrics.probability import PROBABILITY, PROBABILITY_OF_STEP
from cmtrack.metrics.spcc import SPCC
from cmtrack.prevalence.metrics import PREVALENCE
from cmtrack.rough.metrics import ROUGH
from cmtrack.rows.flips import FLIPS

OF_CLASSES = Sections(
    MULTICLASS,
    CLASS,
    ORDINAL,
    SPANS,
    REDUCED,
    BINARY,
    COST,
    PROBABILITY,
    PROBABILITY_OF_STEP,
    CALIBRATION,
    CONFIDENCE,
    CONFIDENCE_OF_STEP,
    SPCC,
    PREVALENCE,
    ROUGH,
    places=("cmtrack.evaluation.catalog.OF_CLASSES",),
)
"""The sections of an evaluation of classes."""
OF_PAIRS = Sections(FLIPS, places=("cmtrack.evaluation.catalog.OF_PAIRS",))
"""The section that compares a run with a baseline row by row."""
OF_ALL_KINDS = OF_CLASSES | OF_FAMILIES | OF_PAIRS
SECTIONS = OF_ALL_KINDS.all
CATALOG = OF_ALL_KINDS.metrics
BUILT_IN = Catalog(OF_ALL_KINDS)
OPEN = replace(BUILT_IN, open=True)

FIRST = (
    "spans/f1_micro",
    "spans/recall_micro",
    "spans/precision_micro",
    "spans/f1_macro",
    "binary/matthews_corrcoef",
    "binary/recall",
    "binary/precision",
    "binary/roc_auc",
    "multiclass/matthews_corrcoef",
    "multiclass/accuracy",
    "multiclass/balanced_accuracy",
    "multiclass/f1_macro",
)
"""The most important headline metrics of an evaluation of classes, in order.

Among the metrics that an evaluation has, the first is the metric that ranks runs by default.
"""


def check_headline(names: Iterable[str]) -> tuple[str, ...]:
    """Validate names of headline metrics; names that a custom metric could have are accepted."""
    if isinstance(names, str):
        raise TypeError(f"headline must be a list of metric names, got {names!r:.80}")
    checked = tuple(dict.fromkeys(names))
    for name in checked:
        if not isinstance(name, str):
            raise TypeError(f"headline must be a list of metric names, got {name!r:.80}")
        try:
            OPEN.find(name)
        except KeyError:
            raise ValueError(
                f"headline: there is no metric named {name!r:.200}{near_metric(name, OPEN.names)}"
            ) from None
    return checked


def lookup(name: str) -> Metric:
    """Find the built-in metric that a full name refers to, as :meth:`Catalog.find` does.

    Examples
    --------
    >>> from cmtrack.metrics import lookup
    >>> lookup("class/7/recall").name, lookup("binary/roc_auc").better
    ('class/<label>/recall', 'higher')
    """
    return BUILT_IN.lookup(name)
