"""Decisions by the p-value of an estimate's fit: no estimate, a warning, or nothing.

The test asks whether the target's scores can be a mixture of the labelled classes' scores. Its
p-value is NaN where it cannot be tested, which decides nothing.
"""

from __future__ import annotations

from cmtrack.digits import p_equals

DOUBTFUL = 0.05
"""Below this p-value an estimate has a warning."""
REFUSED = 0.01
"""Below this p-value there is no estimate.

Where the assumption holds, one estimate in a hundred is refused. A number with a warning is read as
a number, and most refused estimates are far from the truth.
"""
_CAUSE = (
    "either more than the shares of the classes changed, or the labelled scores are training scores"
)


def misfit(pvalue: float) -> str:
    """Return the words for scores that do not fit, with the p-value."""
    return f"the target's scores do not fit the labelled ones ({p_equals(pvalue)})"


def refusal(pvalue: float) -> str:
    """Return the reason why there is no estimate; empty if the fit does not refuse it."""
    if not pvalue < REFUSED:
        return ""
    return f"{misfit(pvalue)}; {_CAUSE}"


def doubt(pvalue: float) -> str:
    """Return the warning about an estimate whose fit is doubtful; else empty."""
    if not REFUSED <= pvalue < DOUBTFUL:
        return ""
    return f"{misfit(pvalue)}; {_CAUSE}; do not trust the estimate"
