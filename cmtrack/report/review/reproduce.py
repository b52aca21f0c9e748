"""Make a comparison again: the Python snippet and the command line that a review shows."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from cmtrack.comparison.compare import CompareOptions
from cmtrack.comparison.ranking import Ranking
from cmtrack.comparison.result import Comparison
from cmtrack.comparison.rule import Rule
from cmtrack.comparison.run import Run, run_id_of
from cmtrack.comparison.spec import several
from cmtrack.evaluation import Evaluation
from cmtrack.evaluation.threshold import has_independent_rows
from cmtrack.grouping import Costs, Grouping
from cmtrack.report.review.record import stores
from cmtrack.report.review.shown import alike, of_classes

MAX_LABELS = 60
"""Classes up to which an example names them all."""
_THRESHOLD = """print(name, evaluation.threshold(maximize="binary/f1"))"""


def given(comparison: Comparison) -> dict[str, Any]:
    """The arguments of ``compare`` that differ from its defaults, and the store that was asked."""
    defaults, ruled = CompareOptions.defaults(), comparison.how.get("rule")
    missing = object()
    arguments = {
        name: value
        for name, value in comparison.how.items()
        if value is not None
        and not _same(value, defaults.get(name, missing))
        and not (isinstance(ruled, Rule) and name in ruled.values)
    }
    if "tracking_uri" not in arguments and (uris := stores(every_run(comparison))):
        arguments["tracking_uri"] = uris[0] if len(uris) == 1 else uris
    return arguments


def python_snippet(comparison: Comparison) -> str:
    """Python that makes the comparison again."""
    return _python(given(comparison), comparison)


def command_line(comparison: Comparison) -> str:
    """The same from the command line; empty where it cannot be said there, as for evaluations in memory."""
    return _command(given(comparison), comparison)


def other_questions(comparison: Comparison, ranking: Ranking) -> list[dict[str, str]]:
    """Return how to ask something else of the ranked runs: a title, a command line and Python, as examples to change.

    Gates and tie-breakers are left out. Without a command line, as for evaluations in memory, ``command`` is empty.
    """
    evaluation = ranking.evaluation
    if not isinstance(evaluation, Evaluation):
        return []
    changes = _changes(ranking, evaluation)
    questions = []
    for title, changed in changes.items():
        arguments = _of_ranked(comparison, ranking)
        # it has a positive group of its own, and the costs may be of other groups
        if "grouping" in changed:
            arguments = {
                name: value
                for name, value in arguments.items()
                if name not in ("positive", "costs")
            }
        arguments |= changed
        command = _command(arguments, comparison, write_files=True)
        questions.append(
            {"title": title, "command": command, "python": _python(arguments, comparison)}
        )
    has_scores = evaluation.positive is not None and evaluation.statistics.scores is not None
    if has_scores and has_independent_rows(evaluation):
        command = _threshold_command(comparison, ranking)
        python = each_run(comparison, ranking, _THRESHOLD)
        questions.append({"title": "Another threshold", "command": command, "python": python})
    return questions


def _changes(ranking: Ranking, evaluation: Evaluation) -> dict[str, dict[str, Any]]:
    """Arguments of ``compare`` by the title of the question that they ask."""
    names = ("multiclass/balanced_accuracy", "multiclass/matthews_corrcoef")
    other = next((name for name in names if name not in ranking.criterion.metrics), names[0])
    changes: dict[str, dict[str, Any]] = {"Another metric": {"rank_by": other}}
    labels = evaluation.labels
    if 1 < len(labels) <= MAX_LABELS:
        grouping = Grouping({"first": labels[:1], "others": labels[1:]}, positive="first")
        changes["Another grouping"] = {"rank_by": "binary/recall", "grouping": grouping}
        costs = Costs({(labels[0], labels[1]): 5.0})
        changes["Costs"] = {"rank_by": "cost/mean", "costs": costs}
    if evaluation.positive is not None and alike(ranking, frozenset({"grouping", "positive"})):
        changes["Another share of positives"] = {"rank_by": "binary/precision", "at": 0.1}
    columns = set.intersection(*(set(one.segments) for _, one in of_classes(ranking)))
    for column in sorted(columns)[:1]:
        changes["Segments"] = {"rank_by": "multiclass/accuracy", "segments": [column]}
    return changes


def _threshold_command(comparison: Comparison, ranking: Ranking) -> str:
    """The command that chooses the threshold of the run to take; empty if its evaluation is in memory."""
    arguments = _of_ranked(comparison, ranking)
    where = arguments.get("tracking_uri")
    if isinstance(arguments["runs"], Mapping):
        return ""
    store = f" --tracking-uri {shlex.quote(where)}" if isinstance(where, str) else ""
    return f"cmtrack threshold {shlex.quote(ranking.foremost.run_id)} --maximize binary/f1{store}"


def each_run(comparison: Comparison, ranking: Ranking, body: str) -> str:
    """Python that does something with the evaluation of every ranked run."""
    arguments = _of_ranked(comparison, ranking)
    runs, grouping = arguments["runs"], arguments.get("grouping")
    imports, lines = ["Grouping"] if grouping is not None else [], []
    if isinstance(runs, Mapping):
        head = [f"from cmtrack import {', '.join(imports)}", ""] if imports else []
        head += [_in_memory(runs), "", "for name, evaluation in evaluations.items():"]
    else:
        head = [
            f"from cmtrack import {', '.join([*imports, 'load_evaluation'])}",
            "",
            "for name, run_id in {",
        ]
        head += [f"    {run.name!r}: {run.run_id!r}," for run in ranking.runs] + ["}.items():"]
        functions = _functions(arguments)
        head[1:1] = functions and ["", *functions]
        lines = [
            f"evaluation = load_evaluation(run_id{', extra_metrics=extra_metrics' if functions else ''})"
        ]
        where = arguments.get("tracking_uri")
        if isinstance(where, str):
            head[:1] = ["import mlflow", head[0], "", f"mlflow.set_tracking_uri({where!r})"]
    if grouping is not None:
        positive = arguments.get("positive")
        more = "" if positive is None else f", positive={positive!r}"
        lines.append(
            f"evaluation = evaluation.regroup(Grouping.from_dict({grouping.to_dict()!r}){more})"
        )
    return "\n".join([*head, *(f"    {line}" for line in [*lines, *body.splitlines()])])


def _of_ranked(comparison: Comparison, ranking: Ranking) -> dict[str, Any]:
    """The arguments that decide what the ranked runs' numbers are."""
    deciding = (
        "grouping",
        "positive",
        "costs",
        "at",
        "confidence_level",
        "seed",
        "tracking_uri",
        "extra_metrics",
    )
    arguments = {name: value for name, value in given(comparison).items() if name in deciding}
    stored = not isinstance(comparison.how.get("runs"), Mapping)
    runs = (
        [run.run_id for run in ranking.runs]
        if stored
        else dict.fromkeys(run.name for run in ranking.runs)
    )
    return {"runs": runs, **arguments}


def _in_memory(runs: Mapping[Any, Any]) -> str:
    names = ", ".join(f"{str(name)!r}: …" for name in list(runs)[:3]) + (
        ", …" if len(runs) > 3 else ""
    )
    return f"evaluations = {{{names}}}  # Evaluations by name, from cmtrack.evaluate"


def _functions(arguments: dict[str, Any]) -> list[str]:
    """Placeholder line for the functions of custom metrics, which no review holds."""
    named = arguments.get("extra_metrics")
    return (
        [f"extra_metrics = […]  # the Metrics of {', '.join(map(repr, _several(named)))}"]
        if named
        else []
    )


def _python(arguments: dict[str, Any], comparison: Comparison) -> str:
    arguments = dict(arguments)
    head, imports = [""], []
    lines = []
    runs = arguments.pop("runs", None)
    if functions := _functions(arguments):
        head += ["", *functions]
    if isinstance(runs, Mapping):
        head += ["", _in_memory(runs)]
        lines.append("    evaluations,")
    elif runs is not None:
        lines += [
            "    [",
            *(f"        {run_id!r}," for run_id in references(runs, comparison)),
            "    ],",
        ]
    elif "experiment_names" not in arguments:
        lines.append("    # the runs of the active experiment")
    for name, value in arguments.items():
        if name == "extra_metrics":
            lines.append("    extra_metrics=extra_metrics,")
        elif isinstance(value, (Costs, Grouping)):
            kind = type(value).__name__
            imports.append(kind)
            lines.append(f"    {name}={kind}.from_dict({value.to_dict()!r}),")
        else:
            lines.append(f"    {name}={_literal(value)},")
    head[0] = f"from cmtrack import {', '.join([*sorted(imports), 'compare'])}"
    return "\n".join(
        [*head, "", "comparison = compare(", *lines, ")", 'comparison.report("review.html")']
    )


def _command(arguments: dict[str, Any], comparison: Comparison, write_files: bool = False) -> str:
    """The command line; ``write_files``: whether it also writes the grouping and the costs into files."""
    arguments = dict(arguments)
    runs = arguments.pop("runs", None)
    entries = CompareOptions.entries()
    if isinstance(runs, Mapping) or not all(entries[name].flag for name in arguments):
        return ""
    words: list[str] = (
        [] if runs is None else [shlex.quote(text) for text in references(runs, comparison)]
    )
    held = []
    for name in ("grouping", "costs"):
        value = arguments.pop(name, None)
        if value is None:
            continue
        if write_files:
            held.append(f"cat > {name}.json <<'END'\n{json.dumps(value.to_dict())}\nEND")
            words.append(f"--{name} {name}.json")
        else:
            held.append(f"# {name}.yaml holds the {name} above")
            words.append(f"--{name} {name}.yaml")
    named = _several(arguments.get("extra_metrics", ()))
    if unplaced := [text for text in named if ":" not in str(text)]:  # given in Python, by name
        held.append(f"# FILE.py:NAME holds the metrics {', '.join(map(repr, unplaced))}")
        arguments["extra_metrics"] = ["FILE.py:NAME"]
    for name, one in entries.items():
        if name in arguments and one.flag:
            words += [
                f"{one.flag} {shlex.quote(_text(value))}" for value in _several(arguments[name])
            ]
    words.append("--output review.html")
    return "\n".join([*held, " \\\n  ".join(["cmtrack review", *words])])


def references(runs: Any, comparison: Comparison) -> list[str]:
    """The runs as texts: what was given where it was texts, else the ids of the runs that were found."""
    listed = several(runs) if isinstance(runs, Sequence) else []
    if listed and all(isinstance(run, str) for run in listed):
        return listed
    return [run.run_id for run in every_run(comparison) if run.run_id]


def every_run(comparison: Comparison) -> list[Run]:
    """All runs that a comparison saw."""
    runs = [run.run for run in comparison.runs]
    runs += [stop.run for stop in comparison.failed]
    runs += [unranked.run for unranked in comparison.left_out]
    return [*runs, *comparison.passed_over]


def _same(value: Any, default: Any) -> bool:
    if isinstance(value, (list, tuple)) and isinstance(default, (list, tuple)):
        return list(value) == list(default)
    return type(value) is type(default) and bool(value == default)


def _several(value: Any) -> list[Any]:
    if isinstance(value, Mapping):  # shares by name
        return [f"{name}={number:.12g}" for name, number in value.items()]
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _literal(value: Any) -> str:
    if isinstance(value, (str, int, float, bool, list, tuple, dict)):
        return repr(list(value) if isinstance(value, tuple) else value)
    return repr(_text(value))


def _text(value: Any) -> str:
    return run_id_of(value) or str(value)
