"""The decision to refuse an estimate or warn about it, based on the p-value of its fit.

The test checks whether the target's scores can be a mixture of the labelled classes' scores. If the
fit cannot be tested, the p-value is NaN, and the estimate is neither refused nor warned about.
"""

from __future__ import annotations

from cmtrack.digits import p_equals

DOUBTFUL = 0.05
"""Below this p-value, an estimate gets a warning."""
REFUSED = 0.01
"""Below this p-value, the estimate is refused.

Even if the assumption is true, one in a hundred estimates is refused by chance. A warning would not
be enough, because people use a number despite the warning, and most refused estimates are far from
the true share.
"""
_CAUSE = (
    "either something other than the class shares changed, or the labelled scores come from "
    "training rows"
)


def misfit(pvalue: float) -> str:
    """Return the phrase that reports a misfit of the scores, with the p-value."""
    return f"the target's scores do not fit the labelled scores ({p_equals(pvalue)})"


def refusal(pvalue: float) -> str:
    """Return the reason why the estimate is refused; empty if it is not refused."""
    if not pvalue < REFUSED:
        return ""
    return f"{misfit(pvalue)}; {_CAUSE}"


def doubt(pvalue: float) -> str:
    """Return the warning about an estimate with a doubtful fit; empty if there is none."""
    if not REFUSED <= pvalue < DOUBTFUL:
        return ""
    return f"{misfit(pvalue)}; {_CAUSE}; do not trust the estimate"
