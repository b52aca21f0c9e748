"""The record of a review: author, time, runs, data and rule.

The page, the Markdown, the JSON and the terminal take their words from here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, urlsplit

from cmtrack.comparison.result import Comparison
from cmtrack.comparison.rule import Rule
from cmtrack.comparison.run import Run
from cmtrack.comparison.spec import several
from cmtrack.digits import significant
from cmtrack.names import quoted
from cmtrack.report import formatting as fmt
from cmtrack.report.review import narrative
from cmtrack.report.review.phrases import direction
from cmtrack.report.review.review import Review
from cmtrack.untrusted import one_line, without_credentials

MAX_RUNS = 30
MAX_PARAMS = 12
MAX_DATA = 12
_VALUE = 40
_OF_URLS = "%:/?=&@[],;+~"

Line = dict[str, Any]
Table = dict[str, Any]


def record(review: Review) -> dict[str, Any]:
    """Lines of a name and a text, the table of the runs, and that of the parameters that differ."""
    runs = judged_runs(review.comparison)
    return {
        "lines": [line for line in _lines(review, runs) if line["text"]],
        "runs": _run_table(runs),
        "params": _param_table(runs),
    }


def as_data(review: Review) -> dict[str, Any]:
    """The same as plain data, with all runs and parameters."""
    runs = judged_runs(review.comparison)
    record = review.comparison.record
    rule = rule_of(review.comparison)
    return {
        "made": record.made,
        "author": record.author,
        "versions": record.versions,
        "stores": stores(runs),
        "experiments": record.experiments,
        "rule": None if rule is None else {"file": rule.name, "sha256": rule.sha256},
        "lines": {line["name"]: line["text"] for line in _lines(review, runs) if line["text"]},
        "runs": [_of_run(run) for run in runs],
        "parameters_that_differ": varying(runs),
    }


def rule_of(comparison: Comparison) -> Rule | None:
    """The rule file that the comparison was called with."""
    rule = comparison.how.get("rule")
    return rule if isinstance(rule, Rule) else None


def judged_runs(comparison: Comparison) -> list[Run]:
    """The runs that were ranked, and those that a gate stopped."""
    runs = [run.run for run in comparison.runs] + [stop.run for stop in comparison.failed]
    return list({run.run_id: run for run in runs}.values())


def varying(runs: Sequence[Run]) -> list[str]:
    """Parameters in which runs differ."""
    names = dict.fromkeys(name for run in runs for name in run.params)
    return [name for name in names if len({run.params.get(name) for run in runs}) > 1]


def address(run: Run) -> str:
    """The address of a run's page, without credentials; empty where its store has none."""
    uri = without_credentials(run.tracking_uri)
    if urlsplit(uri).scheme not in ("http", "https"):
        return ""
    parts = (
        quote(uri.rstrip("/"), safe=_OF_URLS),
        quote(run.experiment_id, safe=""),
        quote(run.run_id, safe=""),
    )
    return "{}/#/experiments/{}/runs/{}".format(*parts)


def stores(runs: Iterable[Run]) -> list[str]:
    """The tracking stores of runs, without credentials."""
    return list(
        dict.fromkeys(without_credentials(run.tracking_uri) for run in runs if run.tracking_uri)
    )


def duration(run: Run) -> float | None:
    """Seconds from a run's start to its end; None where it has none."""
    return (run.end_time - run.start_time) / 1000 if 0 < run.start_time <= run.end_time else None


# -- lines -----------------------------------------------------------------------------------------------------


def _line(name: str, text: str, href: str = "") -> Line:
    return {"name": name, "text": one_line(text), "href": href}


def _lines(review: Review, runs: Sequence[Run]) -> list[Line]:
    comparison = review.comparison
    record = comparison.record
    how = comparison.how
    by = f" by {quoted(record.author)}" if record.author else ""
    evaluation = None if comparison.ranking is None else comparison.ranking.evaluation
    better = fmt.capital(direction(comparison.criterion))
    grouping = how.get("grouping") or (None if evaluation is None else evaluation.grouping)
    return [
        _line("Made", f"{record.made} UTC{by}" if record.made else ""),
        _line("Tracking store", fmt.join_names(stores(runs), 6)),
        *_experiments(comparison, runs),
        *(_line("Data", text) for text in _data(comparison)),
        _line(
            "Question",
            f"Which {review.noun} is best by {review.title}? {better}.",
        ),
        _line("Positive group", "" if review.positive is None else quoted(review.positive)),
        _line("Grouping", "" if grouping is None else fmt.short(grouping.describe(), 300)),
        _line(
            "Costs",
            fmt.short(how["costs"].describe(), 300)
            if hasattr(how.get("costs"), "describe")
            else "",
        ),
        _line("Gates", "; ".join(gate.text for gate in comparison.gates) or "none"),
        _line("Baseline", "" if comparison.baseline is None else quoted(comparison.baseline.name)),
        _line("Tie-breakers", "; ".join(several(how.get("tie_breakers") or ())) or "none"),
        _line("Decision", narrative.rule(review)),
        _line(
            "Rule", rule.sentence if (rule := rule_of(comparison)) else "the arguments of the call"
        ),
        _line(
            "Versions", ", ".join(f"{name} {number}" for name, number in record.versions.items())
        ),
    ]


def _experiments(comparison: Comparison, runs: Sequence[Run]) -> list[Line]:
    names = comparison.record.experiments
    first: dict[str, Run] = {}
    for run in runs:
        if run.experiment_id:
            first.setdefault(run.experiment_id, run)
    return [
        _line(
            "Experiment",
            f"{quoted(names.get(one, one))} (id {one})",
            address(run).rpartition("/runs/")[0],
        )
        for one, run in list(first.items())[:6]
    ]


def _data(comparison: Comparison) -> list[str]:
    """The data sets by name and digest; of folds each one's, which the runs of the leading model have between them."""
    out = []
    for evaluation in (
        run.evaluation for ranking in comparison.rankings for run in ranking.leader.runs
    ):
        runs = [
            run
            for run in comparison.runs
            if run.evaluation.labels_digest == evaluation.labels_digest
        ]
        datasets = dict.fromkeys(one for run in runs for one in run.run.datasets)
        matching = [one for one in datasets if one[1] == evaluation.labels_digest] or list(datasets)
        named = fmt.join_names([f"{quoted(name)} (digest {digest})" for name, digest in matching])
        rows = fmt.counted(evaluation.statistics.digest.rows, "row")
        out.append(f"{named or f'digest of the labels {evaluation.labels_digest}'}, {rows}")
    out = list(dict.fromkeys(out))
    return out if len(out) <= MAX_DATA + 1 else [*out[:MAX_DATA], f"{len(out) - MAX_DATA} more"]


# -- tables ----------------------------------------------------------------------------------------------------


def _of_run(run: Run) -> dict[str, Any]:
    return {
        "name": run.name,
        "run_id": run.run_id,
        "address": address(run),
        "experiment_id": run.experiment_id,
        "user": run.tags.get("mlflow.user", ""),
        "started": _stamp(run.start_time),
        "seconds": duration(run),
        "model_bytes": run.model_size or None,
        "datasets": [{"name": name, "digest": digest} for name, digest in run.datasets],
        "params": dict(run.params),
    }


def _run_table(runs: Sequence[Run]) -> Table | None:
    """The table of the runs, of the columns in which one of them has something; None where none has."""
    shown = runs[:MAX_RUNS]
    columns = {
        "Id": [fmt.short_id(run.run_id) if run.tracking_uri else "" for run in shown],
        "By": [run.tags.get("mlflow.user", "") for run in shown],
        "Started (UTC)": [_stamp(run.start_time) for run in shown],
        "Run time": [_time(duration(run)) for run in shown],
        "Model size": [_size(run.model_size) for run in shown],
        "Address": [address(run) for run in shown],
    }
    filled = {name: cells for name, cells in columns.items() if any(cells)}
    if not filled:
        return None
    return _table(
        shown,
        filled,
        f"Run time is from a run's start to its end, its evaluation included.{_rest(runs)}",
    )


def _param_table(runs: Sequence[Run]) -> Table | None:
    """The table of the parameters in which the runs differ; None where they differ in none."""
    names = varying(runs)
    shown = runs[:MAX_RUNS]
    if not names:
        return None
    columns = {
        name: [fmt.short(run.params[name], _VALUE) if name in run.params else "–" for run in shown]
        for name in names[:MAX_PARAMS]
    }
    more = f" {len(names) - MAX_PARAMS} more parameters differ." if len(names) > MAX_PARAMS else ""
    return _table(
        shown,
        columns,
        f"Parameters that have the same value in all runs are left out.{more}{_rest(runs)}",
    )


def _table(runs: Sequence[Run], columns: Mapping[str, Sequence[str]], reading: str) -> Table:
    cells = zip(*columns.values(), strict=True)
    return {
        "heads": ["Run", *map(one_line, columns)],
        "rows": [
            {
                "name": one_line(run.name),
                "href": address(run),
                "run_id": run.run_id,
                "cells": list(map(one_line, row)),
            }
            for run, row in zip(runs, cells, strict=True)
        ],
        "reading": reading,
    }


def _rest(runs: Sequence[Run]) -> str:
    return (
        f" {len(runs) - MAX_RUNS} more runs are in the JSON file." if len(runs) > MAX_RUNS else ""
    )


def _stamp(milliseconds: int) -> str:
    try:
        return (
            f"{datetime.fromtimestamp(milliseconds / 1000, UTC):%Y-%m-%d %H:%M}"
            if milliseconds > 0
            else ""
        )
    except (OverflowError, OSError, ValueError):
        return ""


def _time(seconds: float | None) -> str:
    if seconds is None:
        return ""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def _size(n: int) -> str:
    if n <= 0:
        return ""
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if n >= size:
            return f"{significant(n / size)} {unit}"
    return f"{n} B"
