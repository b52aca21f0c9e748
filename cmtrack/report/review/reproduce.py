"""Make a comparison again: the Python snippet and the command line that a review shows."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from cmtrack.comparison.compare import CompareOptions
from cmtrack.comparison.result import Comparison
from cmtrack.comparison.rule import Rule
from cmtrack.comparison.run import Run
from cmtrack.grouping import Costs, Grouping

_OPTIONS = {
    "filter_string": "--filter",
    "require": "--require",
    "tie_breakers": "--tie-breaker",
    "margin": "--margin",
    "confidence_level": "--confidence-level",
    "positive": "--positive",
    "segments": "--segment",
    "against": "--against",
    "block": "--block",
    "model": "--model",
    "block_kind": "--block-kind",
    "prefix": "--prefix",
    "limit": "--limit",
    "tracking_uri": "--tracking-uri",
    "rule": "--rule",
}
_NOT_THERE = {"rope", "test_train_ratio", "max_runs", "seed"}  # only Python has these


def given(comparison: Comparison) -> dict[str, Any]:
    """The arguments of ``compare`` that differ from its defaults."""
    defaults, ruled = CompareOptions.defaults(), comparison.how.get("rule")
    missing = object()
    return {
        name: value
        for name, value in comparison.how.items()
        if value is not None
        and not _same(value, defaults.get(name, missing))
        and not (isinstance(ruled, Rule) and name in ruled.values)
    }


def python_snippet(comparison: Comparison) -> str:
    """Python that makes the comparison again."""
    arguments = given(comparison)
    head, own = [""], []
    lines = []
    runs = arguments.pop("runs", None)
    if isinstance(runs, Mapping):
        names = ", ".join(f"{str(name)!r}: …" for name in list(runs)[:3]) + (", …" if len(runs) > 3 else "")
        head += ["", f"evaluations = {{{names}}}  # Evaluations by name, from cmtrack.evaluate"]
        lines.append("    evaluations,")
    elif runs is not None:
        lines += ["    [", *(f"        {run_id!r}," for run_id in references(runs, comparison)), "    ],"]
    elif "experiment_names" not in arguments:
        lines.append("    # the runs of the active experiment")
    for name, value in arguments.items():
        if isinstance(value, (Costs, Grouping)):
            kind = type(value).__name__
            own.append(kind)
            lines.append(f"    {name}={kind}.from_dict({value.to_dict()!r}),")
        else:
            lines.append(f"    {name}={_literal(value)},")
    head[0] = f"from cmtrack import {', '.join([*sorted(own), 'compare'])}"
    return "\n".join([*head, "", "comparison = compare(", *lines, ")", 'comparison.report("review.html")'])


def command_line(comparison: Comparison) -> str:
    """The same from the command line; empty where it cannot be said there, as for evaluations in memory."""
    arguments = given(comparison)
    runs = arguments.pop("runs", None)
    if isinstance(runs, Mapping) or set(arguments) & _NOT_THERE:
        return ""
    words: list[str] = [] if runs is None else [shlex.quote(text) for text in references(runs, comparison)]
    words += [f"--experiment {shlex.quote(name)}" for name in _several(arguments.pop("experiment_names", ()))]
    rank_by = arguments.pop("rank_by", None)
    if isinstance(rank_by, Mapping):
        words += [f"--rank-by {shlex.quote(f'{name}={weight:g}')}" for name, weight in rank_by.items()]
    else:
        words += [f"--rank-by {shlex.quote(name)}" for name in _several(rank_by or ())]
    files = [name for name in ("grouping", "costs") if arguments.pop(name, None) is not None]
    words += [f"--{name} {name}.yaml" for name in files]
    for name, option in _OPTIONS.items():
        if name in arguments:
            words += [f"{option} {shlex.quote(_text(value))}" for value in _several(arguments[name])]
    words.append("--output review.html")
    text = " \\\n  ".join(["cmtrack review", *words])
    held = [f"# {name}.yaml holds the {name} above" for name in files]
    return "\n".join([*held, text])


def references(runs: Any, comparison: Comparison) -> list[str]:
    """The runs as texts: what was given where it was texts, else the ids of the runs that were found."""
    listed = [runs] if isinstance(runs, str) else list(runs) if isinstance(runs, Sequence) else []
    if listed and all(isinstance(run, str) for run in listed):
        return listed
    return [run.run_id for run in every_run(comparison) if run.run_id]


def every_run(comparison: Comparison) -> list[Run]:
    """All runs that a comparison saw."""
    found = [run.run for run in comparison.runs]
    found += [stop.run for stop in comparison.failed]
    found += [left.run for left in comparison.left_out]
    return [*found, *comparison.passed_over]


def _same(value: Any, default: Any) -> bool:
    if isinstance(value, (list, tuple)) and isinstance(default, (list, tuple)):
        return list(value) == list(default)
    return type(value) is type(default) and bool(value == default)


def _several(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _literal(value: Any) -> str:
    if isinstance(value, (str, int, float, bool, list, tuple, dict)):
        return repr(list(value) if isinstance(value, tuple) else value)
    return repr(_text(value))


def _text(value: Any) -> str:
    run_id = getattr(value, "run_id", None) or getattr(getattr(value, "info", None), "run_id", None)
    return run_id if isinstance(run_id, str) else str(value)
