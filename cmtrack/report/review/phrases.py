"""Words for titles and statuses, which the sentences, tables and figures of a review share."""

from __future__ import annotations

import math

from cmtrack.base import BaseEvaluation
from cmtrack.comparison.criterion import Criterion
from cmtrack.comparison.ranking import Ranked, Ranking
from cmtrack.comparison.run import Run
from cmtrack.grouping import Label
from cmtrack.metrics.catalog import Catalog
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
_BY_SCORE = {"higher": "highest score", "lower": "lowest score", "nearest zero": "nearest to zero"}
"""Words for a run that is chosen only for its score, although other runs may be the best."""
_ON_FRONTS = {"tied": "not dominated", "behind": "dominated"}


# -- titles ----------------------------------------------------------------------------------------


def criterion_title(criterion: Criterion, positive: Label | None = None) -> str:
    """Return the criterion in words."""
    titles = [
        fmt.metric_title(name, positive, catalog=criterion.catalog) for name in criterion.metrics
    ]
    if criterion.pareto:
        return f"the Pareto front of {fmt.join_names(titles, 6)}"
    return titles[0]


def title_of(
    name: str, evaluation: BaseEvaluation, catalog: Catalog, *, brief: bool = False
) -> str:
    """Return a metric's title with what it covers: the positive group, or else all classes.

    ``brief``: whether to return the shorter title for the heading of a table.
    """
    title = fmt.metric_title(name, evaluation.positive, brief=brief, catalog=catalog)
    covers_classes = catalog.lookup(name).section in ("multiclass", "probability")
    n_classes = len(evaluation.labels)
    if not covers_classes or evaluation.positive is None or n_classes < 3:
        return title
    return f"{title}, {n_classes} classes" if brief else f"{title} ({n_classes} classes)"


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
    if status == "chosen" and len(ranking.tied) > 1 and ranking.decision.by is None:
        return _BY_SCORE[ranking.criterion.direction]
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


# -- run times -------------------------------------------------------------------------------------


def duration(run: Run) -> float | None:
    """Return the seconds from a run's start to its end.

    Returns None if the start or the end is not known.
    """
    if not 0 < run.start_time <= run.end_time:
        return None
    return (run.end_time - run.start_time) / 1000


def in_two_units(seconds: float | None) -> str:
    """Return a duration as text in its two largest units.

    The text is empty if the duration is unknown.
    """
    if seconds is None:
        return ""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"
