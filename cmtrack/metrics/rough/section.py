"""The section ``rough/`` of ``Evaluation.metrics``: bounds that the confusion counts give.

Source: Düntsch & Gediga (2019), Confusion matrices and rough set data analysis, sections 3 and 4. Each hit is a sample
of the intersection of two sets, so the accuracies of approximation are shares of samples and have their errors.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cmtrack.metrics.cells import Cells, ratio
from cmtrack.metrics.names import encode_label
from cmtrack.metrics.results import Results
from cmtrack.metrics.rough.bounds import bounds_of_cells


def put_rough(results: Results, cells: Cells, labels: Sequence[object], whole: bool) -> None:
    """``rough/``; ``whole`` says that the cells hold counts, not fractional weights."""
    bounds = bounds_of_cells(cells, whole)
    hits, union = bounds["hits"], bounds["union"]
    hit = cells.hit.astype(np.float64)
    g = float(hits.sum()) / cells.total
    results.put("rough/gamma_upper", g, n=cells.effective(np.ones(len(hit))))
    error = cells.standard_error(alpha_slope(g) * (hit - g))
    results.put("rough/alpha_upper", float(hits.sum()) / float(union.sum()), error=error)
    squares = cells.by_actual(cells.squares) + cells.by_predicted(cells.squares) - cells.by_actual(cells.squares * hit)
    effective = ratio(union**2, squares, 0.0)
    alpha = ratio(hits, union)
    for k, label in enumerate(labels):
        prefix = f"rough/{encode_label(label)}"
        results.put(f"{prefix}/lower_upper_bound", bounds["lower_upper_bound"][k])
        results.put(f"{prefix}/upper_lower_bound", bounds["upper_lower_bound"][k])
        reason = "neither actual nor predicted samples"
        results.put(f"{prefix}/alpha_upper", alpha[k], n=effective[k], reason=reason)


def alpha_slope(g: float) -> float:
    """Derivative of g / (2 - g), by which the error of the accuracy becomes that of the weighted alpha."""
    return 2 / (2 - g) ** 2
