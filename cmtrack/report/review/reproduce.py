"""Python code and command lines that a review shows so that readers can repeat the comparison."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
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
"""Maximum number of classes up to which an example lists every class."""
_THRESHOLD = """print(name, evaluation.threshold(maximize="binary/f1"))"""


def given(comparison: Comparison) -> dict[str, Any]:
    """Return the arguments of ``compare`` that differ from its defaults, and the store."""
    defaults = CompareOptions.defaults()
    rule = comparison.how.get("rule")
    in_rule = rule.values if isinstance(rule, Rule) else {}
    arguments = {}
    for name, value in comparison.how.items():
        is_default = name in defaults and _same(value, defaults[name])
        if value is not None and not is_default and name not in in_rule:
            arguments[name] = value
    if "tracking_uri" not in arguments:
        uris = stores(every_run(comparison))
        if uris:
            arguments["tracking_uri"] = uris[0] if len(uris) == 1 else uris
    return arguments


def python_snippet(comparison: Comparison) -> str:
    """Return Python code that repeats the comparison."""
    return _python(given(comparison), comparison)


def command_line(comparison: Comparison) -> str:
    """Return the command that repeats the comparison.

    The command is empty if no command can repeat the comparison, for example if the evaluations are
    in memory.
    """
    return _command(given(comparison), comparison)


def other_questions(comparison: Comparison, ranking: Ranking) -> list[dict[str, str]]:
    """Return other questions about the ranked runs, each with a title, a command and Python code.

    The questions are examples that readers can change, and do not include gates and tie-breakers.
    ``command`` is empty if no command can answer the question, for example if the evaluations are
    in memory.
    """
    evaluation = ranking.evaluation
    if not isinstance(evaluation, Evaluation):
        return []
    questions = []
    for title, changes in _changes(ranking, evaluation).items():
        arguments = _arguments_of_ranked(comparison, ranking)
        if "grouping" in changes:
            # The new grouping has its own positive group, and the costs may name other groups.
            arguments.pop("positive", None)
            arguments.pop("costs", None)
        arguments |= changes
        command = _command(arguments, comparison, page="answer.html")
        python = _python(arguments, comparison, "answer.html")
        questions.append({"title": title, "command": command, "python": python})
    has_scores = evaluation.positive is not None and evaluation.statistics.scores is not None
    if has_scores and has_independent_rows(evaluation):
        command = _threshold_command(comparison, ranking)
        python = each_run(comparison, ranking, _THRESHOLD)
        questions.append({"title": "Another threshold", "command": command, "python": python})
    return questions


def _changes(ranking: Ranking, evaluation: Evaluation) -> dict[str, dict[str, Any]]:
    """Return a mapping from the title of each question to the arguments of ``compare``."""
    names = ("multiclass/balanced_accuracy", "multiclass/matthews_corrcoef")
    metric = next((name for name in names if name not in ranking.criterion.metrics), names[0])
    changes: dict[str, dict[str, Any]] = {"Another metric": {"rank_by": metric}}
    labels = evaluation.labels
    if 1 < len(labels) <= MAX_LABELS:
        grouping = Grouping({"first": labels[:1], "others": labels[1:]}, positive="first")
        changes["Another grouping"] = {"rank_by": "binary/recall", "grouping": grouping}
        costs = Costs({(labels[0], labels[1]): 5.0})
        changes["Costs"] = {"rank_by": "cost/mean", "costs": costs}
    if evaluation.positive is not None and alike(ranking, frozenset({"grouping", "positive"})):
        changes["Another share of positives"] = {"rank_by": "binary/precision", "at": 0.1}
    columns = set.intersection(*(set(entry.segments) for _, entry in of_classes(ranking)))
    if columns:
        changes["Segments"] = {"rank_by": "multiclass/accuracy", "segments": [min(columns)]}
    return changes


def _threshold_command(comparison: Comparison, ranking: Ranking) -> str:
    """Return the command that chooses the threshold of the recommended run.

    The command is empty if the evaluation is in memory.
    """
    arguments = _arguments_of_ranked(comparison, ranking)
    if isinstance(arguments["runs"], Mapping):
        return ""
    command = f"cmtrack threshold {shlex.quote(ranking.foremost.run_id)} --maximize binary/f1"
    uri = arguments.get("tracking_uri")
    if isinstance(uri, str):
        command += f" --tracking-uri {shlex.quote(uri)}"
    return command


def each_run(comparison: Comparison, ranking: Ranking, body: str) -> str:
    """Return Python code that runs ``body`` on the evaluation of every ranked run."""
    arguments = _arguments_of_ranked(comparison, ranking)
    runs = arguments["runs"]
    grouping = arguments.get("grouping")
    imports = [] if grouping is None else ["Grouping"]
    if isinstance(runs, Mapping):
        lines = []
        if imports:
            lines += [f"from cmtrack import {', '.join(imports)}", ""]
        lines += [_in_memory(runs), "", "for name, evaluation in evaluations.items():"]
    else:
        lines = _load_each_run(arguments, ranking, imports)
    if grouping is not None:
        call = f"Grouping.from_dict({grouping.to_dict()!r})"
        if arguments.get("positive") is not None:
            call += f", positive={arguments['positive']!r}"
        lines.append(f"    evaluation = evaluation.regroup({call})")
    return "\n".join([*lines, *(f"    {line}" for line in body.splitlines())])


def _load_each_run(
    arguments: dict[str, Any], ranking: Ranking, imports: Sequence[str]
) -> list[str]:
    """Return the first lines of a loop that loads the evaluation of each stored run."""
    lines = []
    uri = arguments.get("tracking_uri")
    if isinstance(uri, str):
        lines.append("import mlflow")
    lines.append(f"from cmtrack import {', '.join([*imports, 'load_evaluation'])}")
    if isinstance(uri, str):
        lines += ["", f"mlflow.set_tracking_uri({uri!r})"]
    functions = _functions(arguments)
    call = "load_evaluation(run_id)"
    if functions:
        lines += ["", *functions]
        call = "load_evaluation(run_id, extra_metrics=extra_metrics)"
    lines += ["", "for name, run_id in {"]
    lines += [f"    {run.name!r}: {run.run_id!r}," for run in ranking.runs]
    return [*lines, "}.items():", f"    evaluation = {call}"]


def _arguments_of_ranked(comparison: Comparison, ranking: Ranking) -> dict[str, Any]:
    """Return the arguments that determine the numbers of the ranked runs."""
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
    runs: Any = [run.run_id for run in ranking.runs]
    if isinstance(comparison.how.get("runs"), Mapping):
        runs = dict.fromkeys(run.name for run in ranking.runs)
    arguments = {name: value for name, value in given(comparison).items() if name in deciding}
    return {"runs": runs, **arguments}


def _in_memory(runs: Mapping[Any, Any]) -> str:
    """Return a line for readers to insert evaluations, which a review does not store."""
    entries = [f"{str(name)!r}: …" for name in list(runs)[:3]]
    if len(runs) > 3:
        entries.append("…")
    return f"evaluations = {{{', '.join(entries)}}}  # Evaluations by name, from cmtrack.evaluate"


def _functions(arguments: dict[str, Any]) -> list[str]:
    """Return a line for readers to insert custom metrics, which a review does not store."""
    metrics = arguments.get("extra_metrics")
    if not metrics:
        return []
    return [f"extra_metrics = […]  # the Metrics of {', '.join(map(repr, _several(metrics)))}"]


def _python(arguments: dict[str, Any], comparison: Comparison, page: str = "review.html") -> str:
    """Return Python code that calls ``compare`` with the arguments."""
    arguments = dict(arguments)
    runs = arguments.pop("runs", None)
    head = []
    functions = _functions(arguments)
    if functions:
        head += ["", *functions]
    lines = []
    if isinstance(runs, Mapping):
        head += ["", _in_memory(runs)]
        lines.append("    evaluations,")
    elif runs is not None:
        names = _filled(f"{run_id!r}," for run_id in references(runs, comparison))
        lines += ["    [", *(f"        {line}" for line in names), "    ],"]
    elif "experiment_names" not in arguments:
        lines.append("    # the runs of the active experiment")
    imports = []
    for name, value in arguments.items():
        if name == "extra_metrics":
            lines.append("    extra_metrics=extra_metrics,")
        elif isinstance(value, (Costs, Grouping)):
            kind = type(value).__name__
            imports.append(kind)
            lines.append(f"    {name}={kind}.from_dict({value.to_dict()!r}),")
        else:
            lines.append(f"    {name}={_literal(value)},")
    first = f"from cmtrack import {', '.join([*sorted(imports), 'compare'])}"
    call = ["comparison = compare(", *lines, ")", f'comparison.report("{page}")']
    return "\n".join([first, *head, "", *call])


def _command(arguments: dict[str, Any], comparison: Comparison, page: str = "review.html") -> str:
    """Return the command line, or an empty string if an argument has no command-line option.

    ``page``: the page to write. For other pages than the review, the command also writes the
        grouping and the costs to files.
    """
    arguments = dict(arguments)
    runs = arguments.pop("runs", None)
    entries = CompareOptions.entries()
    if isinstance(runs, Mapping) or not all(entries[name].flag for name in arguments):
        return ""
    words = ["cmtrack review"]
    if runs is not None:
        words += _filled(map(shlex.quote, references(runs, comparison)))
    lines = []
    for name in ("grouping", "costs"):
        value = arguments.pop(name, None)
        if value is None:
            continue
        if page != "review.html":
            lines.append(f"cat > {name}.json <<'END'\n{json.dumps(value.to_dict())}\nEND")
            words.append(f"--{name} {name}.json")
        else:
            lines.append(f"# {name}.yaml holds the {name} above")
            words.append(f"--{name} {name}.yaml")
    metrics = _several(arguments.get("extra_metrics", ()))
    # Metrics from Python code have a name, but their file is not known.
    unplaced = [metric for metric in metrics if ":" not in str(metric)]
    if unplaced:
        lines.append(f"# FILE.py:NAME holds the metrics {', '.join(map(repr, unplaced))}")
        arguments["extra_metrics"] = ["FILE.py:NAME"]
    for name, entry in entries.items():
        if name in arguments:
            values = map(_text, _several(arguments[name]))
            words += [f"{entry.flag} {shlex.quote(value)}" for value in values]
    words.append(f"--output {page}")
    lines.append(" \\\n  ".join(words))
    return "\n".join(lines)


def _filled(words: Iterable[str]) -> list[str]:
    """Return words in lines of at most 90 characters, with longer words on their own lines."""
    lines: list[str] = []
    for word in words:
        if lines and len(lines[-1]) + len(word) < 90:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def references(runs: Any, comparison: Comparison) -> list[str]:
    """Return the argument ``runs`` if it is a list of strings; otherwise the ids of the runs."""
    listed = several(runs) if isinstance(runs, Sequence) else []
    if listed and all(isinstance(run, str) for run in listed):
        return listed
    return [run.run_id for run in every_run(comparison) if run.run_id]


def every_run(comparison: Comparison) -> list[Run]:
    """Return all runs of a comparison, ranked or not."""
    runs = [run.run for run in comparison.runs]
    runs += [stop.run for stop in comparison.failed]
    runs += [unranked.run for unranked in comparison.left_out]
    return [*runs, *comparison.passed_over]


def _same(value: Any, default: Any) -> bool:
    if isinstance(value, (list, tuple)) and isinstance(default, (list, tuple)):
        return list(value) == list(default)
    return type(value) is type(default) and bool(value == default)


def _several(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        # Such a mapping contains a share for each class name.
        return [f"{name}={number:.12g}" for name, number in value.items()]
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _literal(value: Any) -> str:
    if isinstance(value, (str, int, float, bool, list, tuple, dict)):
        return repr(list(value) if isinstance(value, tuple) else value)
    return repr(_text(value))


def _text(value: Any) -> str:
    return run_id_of(value) or str(value)
