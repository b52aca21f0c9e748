"""Words for titles and statuses, which the sentences, tables and figures of a review share."""

from __future__ import annotations

import math

from cmtrack.base import BaseEvaluation
from cmtrack.comparison.criterion import Criterion
from cmtrack.comparison.ranking import Ranked, Ranking
from cmtrack.grouping import Label
from cmtrack.metrics.metric import BETTER
from cmtrack.names import MAY_BE_BEST, RULED_OUT
from cmtrack.report import formatting as fmt

STANDINGS = {
    "chosen": "chosen",
    "leads": "leads",
    "equivalent": "equivalent",
    "tied": MAY_BE_BEST,
    "behind": "ruled out",
}
"""Words that people read in place of each status in the stored data."""
_ON_FRONTS = {"tied": "not dominated", "behind": "dominated"}


# -- titles ----------------------------------------------------------------------------------------


def criterion_title(criterion: Criterion, positive: Label | None = None) -> str:
    """Return the criterion in words."""
    titles = [
        fmt.metric_title(name, positive, catalog=criterion.catalog) for name in criterion.metrics
    ]
    if criterion.pareto:
        return f"{fmt.join_names(titles, 6)} side by side (Pareto front)"
    return titles[0]


def direction(criterion: Criterion) -> str:
    """Return words that state which values are better."""
    if criterion.pareto:
        catalog = criterion.catalog
        ways = {name: BETTER[catalog.lookup(name).better] for name in criterion.metrics}
        if len(set(ways.values())) == 1:
            return ways[criterion.metrics[0]]
        return "; ".join(
            f"{fmt.metric_title(name, brief=True, catalog=catalog)}: {way}"
            for name, way in ways.items()
        )
    return BETTER[criterion.direction]


# -- standings -------------------------------------------------------------------------------------


LAST = "last"
"""The status of a run whose loss is infinite."""


def standing(run: Ranked, ranking: Ranking) -> str:
    """Return the status of a run or model in a ranking, which is a key of :data:`STANDINGS`."""
    if run.chosen:
        return "chosen"
    if run is ranking.leader and not ranking.criterion.pareto:
        return "leads"
    if math.isfinite(run.equivalent_within):
        return "equivalent"
    return "tied" if run.tied else "behind"


def standing_word(status: str, ranking: Ranking, tied: bool = True) -> str:
    """Return the word for a status, such as "may be the best" or "ruled out".

    For a run that is equivalent to the best, the words also state whether the run is ruled out.
    """
    if status == "equivalent" and ranking.equivalence is not None:
        text = f"equivalent within {ranking.equivalence:g}"
        return text if tied else f"ruled out, but {text}"
    if ranking.criterion.pareto:
        return _ON_FRONTS.get(status, status)
    return STANDINGS[status]


def marked(status: str, tied: bool) -> str:
    """Return the CSS classes of a row: the status, and "behind" for a ruled-out equivalent run."""
    return f"{status} behind" if status == "equivalent" and not tied else status


def how_many(ties: int, of: int, noun: str) -> str:
    """Return words such as "6 of 7 runs may be the best"."""
    if ties < of:
        return f"{ties} of {of} {noun}s {MAY_BE_BEST}"
    return f"either {noun} {MAY_BE_BEST}" if of == 2 else f"any of the {of} {noun}s {MAY_BE_BEST}"


def all_others(n: int, noun: str) -> str:
    """Return subject and verb for the other runs, such as "all 5 other runs are"."""
    if n == 1:
        return f"the other {noun} is"
    return f"both other {noun}s are" if n == 2 else f"all {n} other {noun}s are"


def behind_words(ranking: Ranking) -> str:
    """Return the words for runs that are ruled out or dominated."""
    return "dominated" if ranking.criterion.pareto else RULED_OUT


# -- rows ------------------------------------------------------------------------------------------


def counts_rows(evaluation: BaseEvaluation) -> bool:
    """Return whether weights are numbers of rows, which sampling weights are not."""
    rows = evaluation.statistics.digest.rows
    return (
        getattr(evaluation, "weights_are", None) != "sampling"
        or abs(evaluation.n_samples - rows) < 0.5
    )
