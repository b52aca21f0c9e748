"""Words for checks that fail, and for the number of rows that would decide them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from cmtrack.base import BaseEvaluation
from cmtrack.digits import significant
from cmtrack.evaluation.gates import GateOutcome
from cmtrack.names import quoted
from cmtrack.report import formatting as fmt
from cmtrack.report.review.phrases import counts_rows

if TYPE_CHECKING:
    from cmtrack.comparison.assertions import DifferenceCheck

MANY = 20
"""Multiple of the present rows above which the number of further rows is not printed."""


def rows_would_decide(more: float, evaluation: BaseEvaluation) -> str:
    """Return a clause such as "about 420 more rows would decide"; empty if no number is known.

    ``more``: number of rows in addition to the rows of the evaluation.
    """
    if not math.isfinite(more) or not counts_rows(evaluation):
        return ""
    if more > MANY * evaluation.n_samples:
        return f"more than {MANY} times these rows would be needed"
    return f"about {significant(more, 2)} more rows would decide"


def why_not_shown(check: DifferenceCheck) -> str:
    """Return the message of a failed assertion on the difference between two runs."""
    evaluation = check.run.evaluation
    entry = evaluation.catalog.lookup(check.metric)
    run = quoted(check.run.name)
    baseline = quoted(check.baseline.name)
    title = fmt.metric_title(check.metric, evaluation.positive, catalog=evaluation.catalog)
    difference = check.difference
    ends = (difference.low, difference.high)
    is_open = check.result.outcome is GateOutcome.OPEN
    claim = "better"
    opposite = "not better"
    if check.margin is not None:
        claim = f"at most {check.margin:g} worse"
        opposite = f"more than {check.margin:g} worse"
    sentence = f"{run} is {opposite} than {baseline} in {title}"
    if is_open:
        sentence = f"cannot tell whether {run} is {claim} than {baseline} in {title}"
    if check.result.reason:
        return f"{sentence}: {check.result.reason}"
    size = fmt.with_interval(difference.difference, ends)
    if entry.interval == "wilson":
        size = fmt.points(difference.difference, ends)
    text = f"{sentence}: the difference is {size} on {fmt.samples(evaluation)}."
    words = rows_would_decide(check.result.rows_more, evaluation)
    if not words:
        return text
    return f"{text} {fmt.capital(words)}."
