"""What the review page shows, as plain values for the template and for Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cmtrack.base import BaseEvaluation
from cmtrack.comparison.blocks import RepeatedRanking
from cmtrack.comparison.ranking import RankedRun, Ranking
from cmtrack.comparison.result import Comparison, RunComparison
from cmtrack.evaluation import Evaluation
from cmtrack.names import quoted
from cmtrack.plots.review.ranking import SHARPER
from cmtrack.report import words
from cmtrack.report.html import figure_block
from cmtrack.report.review import repeated_words, reproduce, rows
from cmtrack.report.review.titles import criterion_title, direction, level, say_of, short_id
from cmtrack.report.review.words import decision, further, heading

if TYPE_CHECKING:
    from cmtrack.report.figures import Picture


def context(comparison: Comparison, title: str | None, pictures: Mapping[str, Picture]) -> dict[str, Any]:
    """Everything on the page."""
    said = decision(comparison, beside_tables=True)
    return {
        "title": title or default_title(comparison),
        "facts": facts(comparison),
        "headline": said[0],
        "evidence": said[1:],
        "further": further(comparison, beside_tables=True),
        "tables": [
            rows.table(ranking) | {"name": _table_name(comparison, place), "reading": _reading(comparison)}
            for place, ranking in enumerate(comparison.rankings)
        ],
        "figures_of": "" if len(comparison.rankings) < 2 else "ranking 1",
        "gates": rows.gate_table(comparison),
        "figures": [figure_block(picture) for picture in pictures.values()],
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


def evaluation_of(comparison: Comparison) -> BaseEvaluation | None:
    """One of the ranked evaluations, for what they have in common."""
    return None if comparison.ranking is None else comparison.ranking.evaluation


def facts(comparison: Comparison) -> list[str]:
    """What was compared on what, in a few words each."""
    evaluation, ranking = evaluation_of(comparison), comparison.ranking
    out = []
    if isinstance(ranking, RepeatedRanking):
        out.append(f"{words.counted(len(ranking.models), 'model')} over {repeated_words.over(ranking)}")
    elif len(comparison.rankings) > 1:
        out.append(f"{words.counted(len(comparison.runs), 'run')} in {len(comparison.rankings)} rankings")
    elif ranking is not None:
        out.append(f"{words.counted(len(ranking.runs), 'run')} on {words.samples(ranking.evaluation)}")
    if evaluation is not None:
        out.append(words.counted(len(evaluation.labels), "class" if isinstance(evaluation, Evaluation) else "code"))
        if evaluation.grouping is not None:
            groupings = {repr(run.evaluation.design) for run in _ranked(comparison)}
            steps = ", then ".join(quoted(step.name) for step in evaluation.grouping.steps)
            out.append(f"grouped by {steps}" if len(groupings) < 2 else "groupings differ")
        positives = {run.evaluation.positive for run in _ranked(comparison)}
        if evaluation.positive is not None and len(positives) < 2:
            out.append(f"positive group {quoted(evaluation.positive)}")
    out.append(f"ranked by {criterion_title(comparison.criterion)} ({direction(comparison.criterion)})")
    out.append(f"{level(comparison.confidence_level)} level")
    if isinstance(ranking, Ranking) and len(ranking.runs) > 1:
        paired = sum(not run.unpaired for run in ranking.runs)
        out.append(
            "compared row by row"
            if ranking.paired
            else "not compared row by row"
            if not paired
            else f"{paired} of {len(ranking.runs)} compared row by row"
        )
    return out


def _ranked(comparison: Comparison) -> tuple[RankedRun, ...]:
    """The ranked runs; none where models are ranked."""
    return comparison.runs if isinstance(comparison, RunComparison) else ()


def warnings(comparison: Comparison) -> list[dict[str, Any]]:
    """Warnings of the ranked evaluations and the runs that have them; the most frequent first."""
    found: dict[str, list[str]] = {}
    say = say_of(comparison)
    judged = [(run.name, run.evaluation) for run in comparison.runs]
    for name, evaluation in judged:
        for warning in evaluation.warnings:
            found.setdefault(warning, []).append(say(name))
    return [
        {"text": text, "runs": _who(names, len(judged))}
        for text, names in sorted(found.items(), key=lambda item: -len(item[1]))
    ]


def aside(comparison: Comparison) -> list[dict[str, str]]:
    """Runs that are in no ranking, and why; those that a gate stopped stand in the table of the gates."""
    left: list[tuple[Any, str, str]] = [(one.run, "not ranked", one.reason) for one in comparison.left_out]
    left += [
        (run, "not looked at", "its logged value is worse than those of the runs looked at (limit)")
        for run in comparison.passed_over
    ]
    return [
        {"name": run.name, "id": short_id(run.run_id), "run_id": run.run_id, "what": what, "why": why}
        for run, what, why in left
    ]


def methods(comparison: Comparison) -> list[str]:
    """Short notes on how the numbers came about, with sources."""
    evaluation = evaluation_of(comparison)
    grouping = None if evaluation is None else evaluation.grouping
    told = [] if grouping is None else [f"The grouping: {words.short(grouping.describe(), 600)}."]
    return [*told, *_methods(comparison)]


def _methods(comparison: Comparison) -> list[str]:
    at = level(comparison.confidence_level)
    if isinstance(comparison.ranking, RepeatedRanking):
        return [
            *(note for note in comparison.ranking.result.notes if note not in comparison.notes),
            f"A model is behind the leader where the p-value of their difference, adjusted for all pairs of models, "
            f"is at most {1 - comparison.confidence_level:.3g}; all others are tied. Intervals of the differences hold "
            f"for all pairs at once at {at} (Bonferroni). {SHARPER.replace('run', 'model')}",
            "Sources: Nadeau and Bengio (2003) for folds; Demšar (2006) and Benavoli, Corani and Mangili (2016) for "
            "data sets; Benavoli, Corani, Demšar and Zaffalon (2017) for the region of practical equivalence; Holm "
            "(1979).",
        ]
    said = [
        f"A run is behind where its p-value of being among the best is at most {1 - comparison.confidence_level:.3g}; "
        "all others are tied. The p-value is that of the model confidence set (Hansen, Lunde and Nason 2011, range "
        f"statistic), which misses the best run in at most {level(1 - comparison.confidence_level)} of comparisons. "
        "Tied runs are not shown to differ; they are not shown to be equal.",
    ]
    if comparison.criterion.pareto:
        said = [
            "A run is dominated, and “behind”, where another one is significantly better in every metric. Its p-value "
            "is the largest over the metrics, adjusted for all pairs of runs (Holm 1979). All others are “tied”."
        ]
    else:
        said.append(
            f"The {at} intervals of the differences are simultaneous: they hold for all pairs of runs at once (max-T; "
            f"Westfall and Young 1993). {SHARPER} The JSON file also has the p-values of each pair, by max-T and by "
            "Holm (1979)."
        )
        said.append(
            "P(best) and the ranks come from draws of the values with the covariance of their errors, which stand for "
            "new draws of the test rows. The interval of a rank is for each run alone."
        )
        said.append(_margin(comparison))
    if not comparison.criterion.single and not comparison.criterion.pareto:
        said.append("In the weighted sum, each metric is in units of the runs' median standard error.")
    if comparison.criterion.direction == "nearest zero" and comparison.criterion.single:
        said.append("Differences are differences of the distances from zero.")
    said.append(
        "Where the predictions by row were kept, errors come from the influence of each test row, so that what the "
        "runs have in common cancels. The intervals of single values must not be compared by their overlap."
    )
    return said


def _margin(comparison: Comparison) -> str:
    """How a tie-breaker may choose."""
    margin = comparison.how.get("margin")
    rule = (
        "within one standard error of the paired difference from the leader (Breiman, Friedman, Olshen and Stone 1984)"
        if margin is None
        else f"shown not to be worse than the leader by more than {margin:g}: the lower end of the simultaneous "
        f"interval of the difference is at least −{margin:g} (non-inferiority)"
    )
    return f"A tie-breaker chooses only among tied runs {rule}."


def _positive(comparison: Comparison) -> Any:
    evaluation = evaluation_of(comparison)
    same = len({run.evaluation.positive for run in _ranked(comparison)}) < 2
    return None if evaluation is None or not same else evaluation.positive


def _who(names: list[str], of: int) -> str:
    if len(names) == of:
        return "the run" if of == 1 else f"all {of} runs"
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")


def _table_name(comparison: Comparison, place: int) -> str:
    if isinstance(comparison, RunComparison) and len(comparison.rankings) > 1:
        return heading(comparison, place)
    return "Ranking"


def _reading(comparison: Comparison) -> str:
    at, alpha = level(comparison.confidence_level), 1 - comparison.confidence_level
    ranking = comparison.ranking
    if isinstance(ranking, RepeatedRanking):
        rope = ranking.result.rope
        said = (
            f"Brackets are simultaneous {at} intervals. A model is behind where p, adjusted for all pairs of models, "
            f"is at most {alpha:.3g}."
        )
        if any(not m.tied and m.difference_low <= 0 <= m.difference_high for m in ranking.models):
            said += f" {SHARPER.replace('run', 'model')}"
        if rope is None:
            return said
        posterior = f"P(equivalent): posterior probability that a model is within {rope:g} of the leader"
        return f"{said} {posterior}; it decides nothing."
    if comparison.criterion.pareto:
        return (
            f"Brackets are {at} intervals; # is the number of the front. A run is behind where p, of not being "
            f"dominated, is at most {alpha:.3g}."
        )
    said = (
        f"Brackets are {at} intervals; those of the differences are simultaneous. P(best): how often a run would come "
        "first if the test rows were drawn again. p: of being among the best; a run is behind where it is at most "
        f"{alpha:.3g}."
    )
    beyond = any(not run.tied and run.difference_low <= 0 <= run.difference_high for run in _ranked(comparison))
    return f"{said} {SHARPER}" if beyond else said
