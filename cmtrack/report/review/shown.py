"""Parts of a ranking that a review shows: the run beside the chosen one, cells in which they differ, metrics."""

from __future__ import annotations

import math
from collections.abc import Iterable

from cmtrack.comparison.cell_changes import CellChanges, cell_changes
from cmtrack.comparison.ranking import Ranked, Ranking
from cmtrack.evaluation import Evaluation
from cmtrack.report.probabilities import JUDGES

MAX_METRICS = 12
MAX_RUNS = 30  # in the table of metrics


def rival(ranking: Ranking) -> Ranked | None:
    """The run that the chosen one is compared with: the leader, or the next one where it leads itself."""
    if len(ranking.runs) < 2:
        return None
    return ranking.leader if ranking.foremost is not ranking.leader else ranking.runs[1]


def of_classes(ranking: Ranking) -> list[tuple[Ranked, Evaluation]]:
    """The runs with their evaluations of single classes, best first; none where they are of sets of codes."""
    pairs = [
        (run, run.evaluation) for run in ranking.runs if isinstance(run.evaluation, Evaluation)
    ]
    return pairs if len(pairs) == len(ranking.runs) else []


def changes_of(ranking: Ranking, other: Ranked | None = None) -> CellChanges | None:
    """The cells of the confusion matrix in which the chosen run and its rival, or another one, differ; None without."""
    other = other or rival(ranking)
    ours, theirs = ranking.foremost.evaluation, None if other is None else other.evaluation
    # sets of codes have a matrix per family
    if not (isinstance(ours, Evaluation) and isinstance(theirs, Evaluation)):
        return None
    return cell_changes(theirs, ours)


def alike(ranking: Ranking, read: frozenset[str]) -> bool:
    """True where all runs of a ranking have the same grouping or positive group, as far as a metric reads it."""
    designs = {
        tuple(text for name, text in run.evaluation.design if name in read) for run in ranking.runs
    }
    return len(designs) == 1


def finite(ranking: Ranking) -> dict[str, None]:
    """The names of the metrics that are finite in a run, in their order."""
    of_runs = (run.evaluation.metrics.items() for run in ranking.runs)
    return {name: None for metrics in of_runs for name, value in metrics if math.isfinite(value)}


def of_one_question(ranking: Ranking, names: Iterable[str]) -> list[str]:
    """The metrics that are of the same groups in all runs: those of different groups answer different questions."""
    read = {name: ranking.criterion.catalog.depends_on(name) for name in names}
    same = {each: alike(ranking, each) for each in set(read.values())}
    return [name for name, each in read.items() if same[each]]


def headline(ranking: Ranking, most: int | None = MAX_METRICS) -> list[str]:
    """The criterion's metrics, then the headline ones that a run has and that have a direction; None: all of them."""
    names, catalog = dict.fromkeys(ranking.criterion.metrics), ranking.criterion.catalog
    metrics = {name: catalog.lookup(name) for name in finite(ranking)}
    names |= {name: None for name, metric in metrics.items() if metric.headline and metric.better}
    return of_one_question(ranking, names)[:most]


def judged_section(ranking: Ranking) -> str:
    """The section that judges the probabilities of all runs: of the positive group, else of predictions; or none."""
    for section, judge in JUDGES.items():
        options = ranking.criterion.catalog.depends_on(f"{section}/error")
        if alike(ranking, options) and any(
            judge(evaluation) for _, evaluation in of_classes(ranking)
        ):
            return section
    return ""
