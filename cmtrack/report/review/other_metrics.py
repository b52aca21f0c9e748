"""Rankings by further headline metrics, of which the page shows one at a time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from cmtrack.comparison.criterion import Criterion
from cmtrack.comparison.ranking import Ranked, Ranking, judged_by
from cmtrack.names import MAY_BE_BEST, RULED_OUT
from cmtrack.report import formatting as fmt
from cmtrack.report.review.columns import columns_of, ranking_table
from cmtrack.report.review.phrases import all_others, how_many, title_of
from cmtrack.report.review.review import Review
from cmtrack.report.review.shown import headline

MAX_STANDINGS = 400
"""Maximum total number of rows in all of these rankings: number of metrics times number of runs.

Ranking by one metric takes 0.04 s for 12 runs and 0.65 s for 100 runs, and each table row adds 0.6
kB to the page.
"""

_COLUMNS = ("rank", "name", "status", "value", "p_set")


def other_metrics(review: Review) -> list[dict[str, Any]]:
    """Return a table for each headline metric that all ranked runs have.

    No table is made for the metric of the main ranking.
    """
    ranking = review.run_ranking
    if ranking is None or len(ranking.runs) < 2:
        return []
    names = _chosen_names(ranking, max(1, MAX_STANDINGS // len(ranking.runs)))
    return [_table(name, review, ranking) for name in names]


def note_on_metrics(review: Review, tables: Sequence[Mapping[str, Any]]) -> str:
    """Return sentences on how to read the tables, and on how many metrics they cover."""
    note = f"Brackets show a separate {review.level} interval for each run."
    number = 0 if review.ranking is None else len(_names(review.ranking))
    if len(tables) < number:
        note += f" The page shows {len(tables)} of {number} headline metrics."
    return note


def _names(ranking: Ranking) -> list[str]:
    """Return the headline metrics that all runs have, except the metric of the main ranking."""
    names = []
    for name in headline(ranking, None):
        values = [run.evaluation.metrics.get(name, math.nan) for run in ranking.runs]
        ranks = ranking.criterion.single and name in ranking.criterion.metrics
        if name == "binary/roc_auc":
            ceilings = {run.evaluation.metrics.get(f"{name}_ceiling") for run in ranking.runs}
            # Areas under different ceilings are not comparable.
            ranks |= len(ceilings) > 1
        if not ranks and all(map(math.isfinite, values)):
            names.append(name)
    return names


def _chosen_names(ranking: Ranking, most: int) -> list[str]:
    """Return up to ``most`` metrics in their usual order.

    The function first chooses the first metric of every section, then the second, and so on.
    """
    names = _names(ranking)
    sections = [ranking.criterion.catalog.lookup(name).section for name in names]
    place_in_section = [sections[:place].count(section) for place, section in enumerate(sections)]
    first = sorted(range(len(names)), key=lambda place: place_in_section[place])[:most]
    return [names[place] for place in sorted(first)]


def _table(name: str, review: Review, ranking: Ranking) -> dict[str, Any]:
    """Return a table of the runs ranked by a metric, with a sentence about this ranking."""
    criterion = Criterion.of(name, ranking.criterion.catalog)
    place_above = {run.name: place for place, run in enumerate(ranking.runs)}
    seed = review.comparison.how.get("seed", 0)
    runs = judged_by(ranking.runs, criterion, ranking.confidence_level, seed)
    runs.sort(key=lambda run: (run.rank, place_above[run.name]))
    ranked = replace(ranking, runs=tuple(runs), criterion=criterion)
    every = columns_of(review.comparison, review.at, criterion)
    columns = [column for column in every if column.key in _COLUMNS and column.is_shown(ranked)]
    table = ranking_table(ranked, columns)
    for row, run in zip(table.rows, runs, strict=True):
        row.chosen = run.name == ranking.foremost.name
        if run.rank == runs[1].rank == 1:
            row.cells["status"] = replace(row.cells["status"], text=MAY_BE_BEST)
    title = title_of(name, ranking.evaluation, criterion.catalog) + review.at
    return {
        "metric": name,
        "title": fmt.capital(title),
        "sentence": _sentence(title, runs, review, ranking),
        "table": table,
    }


def _sentence(title: str, runs: Sequence[Ranked], review: Review, ranking: Ranking) -> str:
    """Return the sentences on the best run, the chosen run, and how many runs may be the best."""
    chosen = next(run for run in runs if run.name == ranking.foremost.name)
    first = [run for run in runs if run.rank == 1]
    name = review.say(chosen.name)
    value = _value(runs[0])
    if first == [chosen]:
        sentences = [f"{name} has the best {title}: {value}."]
    else:
        names = fmt.join_names([review.say(run.name) for run in first])
        has = "has" if len(first) == 1 else "have"
        if len(first) > 1:
            # Runs with the same value can have different intervals.
            value = fmt.number(runs[0].value, (runs[0].low, runs[0].high))
        sentences = [f"{names} {has} the best {title}: {value}."]
        if chosen in first:
            sentences.append(f"{name} is one of them.")
        else:
            sentences.append(
                f"{name} has rank {chosen.rank} of {len(runs)} with a value of {_value(chosen)}."
            )
    n_untested = sum(math.isnan(run.p_set) for run in runs[1:])
    if n_untested == len(runs) - 1:
        sentences.append("No difference between the runs could be tested.")
        return " ".join(sentences)
    ties = sum(run.tied for run in runs)
    words = how_many(ties, len(runs), ranking.noun)
    if ties == 1:
        words = f"{all_others(len(runs) - 1, ranking.noun)} {RULED_OUT}"
    sentences.append(f"At {review.level} confidence, {words}.")
    if n_untested:
        sentences.append(f"{n_untested} of the runs could not be tested.")
    return " ".join(sentences)


def _value(run: Ranked) -> str:
    return fmt.with_interval(run.value, (run.low, run.high))
