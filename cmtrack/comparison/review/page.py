"""What the review page shows, as plain values for the template and for Markdown."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from cmtrack.comparison.result import Comparison
from cmtrack.comparison.review import repeated_words, reproduce, rows
from cmtrack.comparison.review.titles import criterion_title, direction, level, short_id
from cmtrack.comparison.review.words import decision, further
from cmtrack.evaluation import Evaluation
from cmtrack.plots.review.ranking import SHARPER
from cmtrack.tracking import words
from cmtrack.tracking.report import CSS_PER_PIXEL, SMALL_FIGURE

_FIGURES = {
    "ranking": ("Ranking", "Left: the value of each run with its own interval. Right: the difference from the leader; "
                "a run whose bar crosses zero may be as good."),
    "metrics": ("All headline metrics", "Colour is the place between the worst and the best run of a column: a run "
                "that is dark in one column and pale in another is a trade."),
    "confusion_difference": ("Which confusions change", "The chosen run against its closest rival: blue cells are "
                             "better in the chosen run, orange ones worse."),
    "confusion_matrices": ("Confusion matrices", "Rows are actual classes, columns predicted ones; colours are shares "
                           "of the row."),
    "roc": ("ROC curves", "Up and left is better; curves that cross trade false alarms against misses."),
    "rank_distribution": ("How sure the ranks are", "How often each run has each rank in resamples of the test rows."),
    "parameter": ("Against a parameter", "Every run by one of its parameters; the star is the chosen one."),
    "critical_difference": ("Average ranks", "Bars join models that the tests do not tell apart."),
    "metric_by_block": ("Every model in every block", "Colour is the place between the worst and the best model of a "
                        "block."),
}  # fmt: skip


def context(comparison: Comparison, title: str | None, pictures: Mapping[str, bytes]) -> dict[str, Any]:
    """Everything on the page."""
    said = decision(comparison)
    repeated = comparison.repeated
    tables = [rows.ranking_table(ranking) for ranking in comparison.rankings]
    if repeated is not None:
        tables = [rows.model_table(repeated)]
    return {
        "title": title or default_title(comparison),
        "facts": facts(comparison),
        "headline": said[0],
        "evidence": said[1:],
        "further": further(comparison),
        "tables": [
            table | {"name": _table_name(comparison, place), "reading": _reading(comparison)}
            for place, table in enumerate(tables)
        ],
        "gates": rows.gate_table(comparison),
        "figures": [_figure(name, data) for name, data in pictures.items()],
        "confusions": rows.confusions(comparison),
        "warnings": warnings(comparison),
        "aside": aside(comparison),
        "python": reproduce.python_snippet(comparison),
        "command": reproduce.command_line(comparison),
        "methods": methods(comparison),
    }


def default_title(comparison: Comparison) -> str:
    """The page's title where none is given."""
    return f"Review by {criterion_title(comparison.criterion, _positive(comparison))}"


def evaluation_of(comparison: Comparison) -> Evaluation | None:
    """One of the ranked evaluations, for what they have in common."""
    if comparison.repeated is not None:
        return comparison.repeated.leader.runs[0].evaluation
    return None if comparison.ranking is None else comparison.ranking.evaluation


def facts(comparison: Comparison) -> list[str]:
    """What was compared on what, in a few words each."""
    evaluation, ranking, repeated = evaluation_of(comparison), comparison.ranking, comparison.repeated
    out = []
    if repeated is not None:
        out.append(f"{words.counted(len(repeated.models), 'model')} over {repeated_words.over(repeated)}")
    elif ranking is not None:
        out.append(f"{words.counted(len(ranking.runs), 'run')} on {words.samples(ranking.evaluation)}")
    if evaluation is not None:
        out.append(words.counted(len(evaluation.labels), "class" if isinstance(evaluation, Evaluation) else "code"))
        if evaluation.grouping is not None:
            out.append(f"grouped: {', then '.join(words.short(step.name, 30) for step in evaluation.grouping.steps)}")
        if evaluation.positive is not None:
            out.append(f"positive: {words.short(evaluation.positive, 40)}")
    out.append(f"ranked by {criterion_title(comparison.criterion)} ({direction(comparison.criterion)})")
    out.append(f"{level(comparison.confidence_level)} level")
    if ranking is not None and len(ranking.runs) > 1:
        paired = sum(not run.unpaired for run in ranking.runs)
        out.append(
            "compared row by row"
            if ranking.paired
            else "not compared row by row"
            if not paired
            else f"{paired} of {len(ranking.runs)} compared row by row"
        )
    return out


def warnings(comparison: Comparison) -> list[dict[str, Any]]:
    """Warnings of the ranked evaluations and the runs that have them; the most frequent first."""
    found: dict[str, list[str]] = {}
    judged = [(run.name, run.evaluation) for run in comparison.runs]
    if comparison.repeated is not None:
        judged += [(c.name, c.evaluation) for model in comparison.repeated.models for c in model.runs]
    for name, evaluation in judged:
        for warning in evaluation.warnings:
            found.setdefault(warning, []).append(words.short(name, 40))
    return [
        {"text": text, "runs": _who(names, len(judged))}
        for text, names in sorted(found.items(), key=lambda item: -len(item[1]))
    ]


def aside(comparison: Comparison) -> list[dict[str, str]]:
    """Runs that are in no ranking, and why."""
    out = [
        {
            "name": words.short(stop.name),
            "full": stop.name,
            "id": short_id(stop.run_id),
            "run_id": stop.run_id,
            "what": "stopped by a gate",
            "why": "; ".join(str(result) for result in stop.gates if not result.passed),
        }
        for stop in comparison.failed
    ]
    left: list[tuple[Any, str, str]] = [(one.run, "left out", one.reason) for one in comparison.left_out]
    left += [(run, "passed over", "its logged value is behind the short list's") for run in comparison.passed_over]
    out += [
        {
            "name": words.short(run.name),
            "full": run.name,
            "id": short_id(run.run_id),
            "run_id": run.run_id,
            "what": what,
            "why": why,
        }
        for run, what, why in left
    ]
    return out


def methods(comparison: Comparison) -> list[str]:
    """Short notes on how the numbers came about, with sources."""
    evaluation = evaluation_of(comparison)
    grouping = None if evaluation is None else evaluation.grouping
    told = [] if grouping is None else [f"The grouping: {words.short(grouping.describe(), 600)}."]
    return [*told, *_methods(comparison)]


def _methods(comparison: Comparison) -> list[str]:
    at = level(comparison.confidence_level)
    if comparison.repeated is not None:
        return [
            *(note for note in comparison.repeated.result.notes if note not in comparison.notes),
            f"Intervals of differences are for one pair of models each, at {at}.",
            "Sources: Nadeau and Bengio (2003) for folds; Demšar (2006) and Benavoli, Corani and Mangili (2016) for "
            "data sets; Benavoli, Corani, Demšar and Zaffalon (2017) for the region of practical equivalence; Holm "
            "(1979).",
        ]
    said = [
        f"Runs are “tied” where the model confidence set keeps them (Hansen, Lunde and Nason 2011, range statistic): "
        f"such a set misses the best run in at most {level(1 - comparison.confidence_level)} of comparisons. It says "
        "that these data do not tell its runs apart, not that they are equal.",
    ]
    if comparison.criterion.pareto:
        said = [
            "A run is off the Pareto front where another one is better in every metric; p is the largest over the "
            "metrics, adjusted over all pairs by Holm (1979). “Tied” runs are those for which that is not shown."
        ]
    else:
        said.append(
            f"The intervals of the differences hold for all pairs at once with {at}, and p is adjusted over all pairs "
            "by the distribution of the largest statistic (max-T; Westfall and Young 1993). The set is found step by "
            "step, leaving one run out after the other, and is therefore sharper: a run can be behind although its "
            "interval reaches zero. The JSON file also has p-values adjusted by Holm (1979)."
        )
        said.append(
            "P(best) and the ranks come from draws of the values with the errors' covariance, which stand for "
            "resamples of the test rows; the interval of a run's rank is for this run alone."
        )
    if not comparison.criterion.single and not comparison.criterion.pareto:
        said.append("Each metric of the weighted sum counts in units of the runs' median standard error.")
    if comparison.criterion.direction == "nearest zero" and comparison.criterion.single:
        said.append("Differences are those of the distances from zero.")
    said.append(
        "Errors come from the influence of each test row where the rows' predictions were kept, so that what is common "
        "to the models cancels; single values have their own intervals, which must not be compared by their overlap."
    )
    return said


def _positive(comparison: Comparison) -> Any:
    evaluation = evaluation_of(comparison)
    return None if evaluation is None else evaluation.positive


def _who(names: list[str], of: int) -> str:
    if len(names) == of:
        return "the run" if of == 1 else f"all {of} runs"
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")


def _table_name(comparison: Comparison, place: int) -> str:
    if len(comparison.rankings) < 2:
        return "Ranking"
    ranking = comparison.rankings[place]
    return f"Ranking {place + 1} of {len(comparison.rankings)}: {words.samples(ranking.evaluation)}"


def _reading(comparison: Comparison) -> str:
    if comparison.repeated is not None:
        rope = comparison.repeated.result.rope
        said = (
            "Brackets hold the interval of the difference from the leader, for each pair alone; p is adjusted for all."
        )
        return said if rope is None else f"{said} P(equivalent): that a model is within {rope:g} of the leader."
    if comparison.criterion.pareto:
        return "Brackets hold each value's own interval; # is the front's number."
    said = (
        "Brackets: intervals; those of the differences hold for all runs at once. P(best): how often a run comes first "
        "in resamples of the test rows. p: adjusted for all pairs."
    )
    beyond = any(not run.tied and run.difference_low <= 0 <= run.difference_high for run in comparison.runs)
    return f"{said} {SHARPER}" if beyond else said


def _figure(name: str, data: bytes) -> dict[str, Any]:
    width = int.from_bytes(data[16:20], "big") if data[:4] == b"\x89PNG" else 0
    height = int.from_bytes(data[20:24], "big") if width else 0
    title, reading = _FIGURES.get(name, (name.replace("_", " ").capitalize(), ""))
    return {
        "title": title,
        "reading": reading,
        "source": "data:image/png;base64," + base64.b64encode(data).decode("ascii"),
        "width": round(width * CSS_PER_PIXEL),
        "height": round(height * CSS_PER_PIXEL),
        "small": 0 < width * CSS_PER_PIXEL <= SMALL_FIGURE,
    }
