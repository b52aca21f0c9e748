"""Parts of a ranking that a review shows: the rival, the cells that differ, and the metrics."""

from __future__ import annotations

import math
from collections.abc import Iterable

from cmtrack.comparison.cell_changes import CellChanges, cell_changes
from cmtrack.comparison.ranking import Ranked, Ranking
from cmtrack.evaluation import Evaluation
from cmtrack.report.probabilities import JUDGES

MAX_METRICS = 12
MAX_RUNS = 30
"""Maximum number of runs in the table of metrics."""


def rival(ranking: Ranking) -> Ranked | None:
    """Return the run that is compared with the chosen run.

    The chosen run is compared with the leader or, if it is the leader, with the next run. Returns
    None if there is only one run.
    """
    if len(ranking.runs) < 2:
        return None
    if ranking.foremost is ranking.leader:
        return ranking.runs[1]
    return ranking.leader


def of_classes(ranking: Ranking) -> list[tuple[Ranked, Evaluation]]:
    """Return the runs with single-label evaluations, best first.

    The list is empty if the runs predict sets of codes.
    """
    pairs = [
        (run, run.evaluation) for run in ranking.runs if isinstance(run.evaluation, Evaluation)
    ]
    return pairs if len(pairs) == len(ranking.runs) else []


def changes_of(ranking: Ranking, other: Ranked | None = None) -> CellChanges | None:
    """Return the cells of the confusion matrix in which the chosen run and another run differ.

    Returns None if there is no other run. The result is also None for sets of codes, because these
    have a separate matrix for each family.

    ``other``: the run to compare with the chosen run; by default, the rival.
    """
    other = other or rival(ranking)
    if other is None:
        return None
    ours = ranking.foremost.evaluation
    theirs = other.evaluation
    if not isinstance(ours, Evaluation) or not isinstance(theirs, Evaluation):
        return None
    return cell_changes(theirs, ours)


def alike(ranking: Ranking, read: frozenset[str]) -> bool:
    """Return whether all runs have the same values of the options that a metric reads.

    ``read``: the names of the options that the metric reads, such as "grouping" and "positive".
    """
    designs = {
        tuple(text for name, text in run.evaluation.design if name in read) for run in ranking.runs
    }
    return len(designs) == 1


def finite(ranking: Ranking) -> dict[str, None]:
    """Return the names of the metrics that are finite in at least one run, in the usual order."""
    of_runs = (run.evaluation.metrics.items() for run in ranking.runs)
    return {name: None for metrics in of_runs for name, value in metrics if math.isfinite(value)}


def of_one_question(ranking: Ranking, names: Iterable[str]) -> list[str]:
    """Return the metrics that mean the same in all runs.

    Metrics of groups do not have the same meaning if the runs have different groupings.
    """
    read = {name: ranking.criterion.catalog.depends_on(name) for name in names}
    same = {each: alike(ranking, each) for each in set(read.values())}
    return [name for name, each in read.items() if same[each]]


def headline(ranking: Ranking, most: int | None = MAX_METRICS) -> list[str]:
    """Return the criterion's metrics, then other headline metrics that can be better or worse.

    ``most``: the maximum number of metrics; None to return all of them.
    """
    names = list(ranking.criterion.metrics)
    for name in finite(ranking):
        metric = ranking.criterion.catalog.lookup(name)
        if metric.headline and metric.better and name not in names:
            names.append(name)
    return of_one_question(ranking, names)[:most]


def judged_section(ranking: Ranking) -> str:
    """Return the section of calibration metrics that is shown for the runs.

    The text is empty if the runs have no section of calibration metrics. The section on the
    positive group is preferred to the section on the confidence of predictions.
    """
    for section, judge in JUDGES.items():
        options = ranking.criterion.catalog.depends_on(f"{section}/error")
        if not alike(ranking, options):
            continue
        if any(judge(evaluation) for _, evaluation in of_classes(ranking)):
            return section
    return ""
