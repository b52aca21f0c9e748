"""Record of a review, which documents its author, time, runs, data and rule.

The page, the Markdown file, the JSON file and the terminal all take their words from this module.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, urlsplit

from cmtrack.base import BaseEvaluation
from cmtrack.comparison.result import Comparison
from cmtrack.comparison.rule import Rule
from cmtrack.comparison.run import Run
from cmtrack.digits import significant
from cmtrack.grouping import Costs
from cmtrack.names import quoted
from cmtrack.report import formatting as fmt
from cmtrack.report.review import narrative
from cmtrack.report.review.phrases import direction, duration, in_two_units
from cmtrack.report.review.review import Review
from cmtrack.untrusted import one_line, without_credentials

MAX_RUNS = 30
MAX_PARAMS = 12
MAX_DATA = 12
_MAX_EXPERIMENTS = 6
_VALUE = 40
"""Maximum length, in characters, of a parameter's value in a table."""
_OF_URLS = "%:/?=&@[],;+~"
"""Characters that are not quoted again in an address that has already been quoted once."""

Line = dict[str, Any]
Table = dict[str, Any]


def record(review: Review) -> dict[str, Any]:
    """Return the lines of the record, a table of the runs, and a table of the runs' parameters."""
    runs = judged_runs(review.comparison)
    return {
        "lines": [line for line in _lines(review, runs) if line["text"]],
        "runs": _run_table(runs),
        "params": _param_table(runs),
    }


def as_data(review: Review) -> dict[str, Any]:
    """Return the record as plain data, with all runs and parameters."""
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
        "runs": [_run_data(run) for run in runs],
        "parameters_that_differ": varying(runs),
    }


def rule_of(comparison: Comparison) -> Rule | None:
    """Return the rule of the comparison with its file, or None if there is no rule file."""
    rule = comparison.how.get("rule")
    return rule if isinstance(rule, Rule) else None


def judged_runs(comparison: Comparison) -> list[Run]:
    """Return the ranked runs, followed by the runs that fail a gate."""
    runs = [run.run for run in comparison.runs] + [stop.run for stop in comparison.failed]
    return list({run.run_id: run for run in runs}.values())


def varying(runs: Sequence[Run]) -> list[str]:
    """Return the names of the parameters in which runs differ."""
    names = dict.fromkeys(name for run in runs for name in run.params)
    return [name for name in names if len({run.params.get(name) for run in runs}) > 1]


def address(run: Run) -> str:
    """Return the address of a run's page, without credentials.

    The text is empty if there is no page.
    """
    uri = without_credentials(run.tracking_uri)
    if urlsplit(uri).scheme not in ("http", "https"):
        return ""
    server = quote(uri.rstrip("/"), safe=_OF_URLS)
    experiment_id = quote(run.experiment_id, safe="")
    run_id = quote(run.run_id, safe="")
    return f"{server}/#/experiments/{experiment_id}/runs/{run_id}"


def stores(runs: Iterable[Run]) -> list[str]:
    """Return the addresses of the runs' tracking stores, without credentials."""
    return list(
        dict.fromkeys(without_credentials(run.tracking_uri) for run in runs if run.tracking_uri)
    )


# -- lines -----------------------------------------------------------------------------------------


def _line(name: str, text: str, href: str = "") -> Line:
    return {"name": name, "text": one_line(text), "href": href}


def _lines(review: Review, runs: Sequence[Run]) -> Iterator[Line]:
    """Yield the lines of a record, some of which may be empty."""
    comparison = review.comparison
    yield _line("Made", _made(comparison))
    yield _line("Tracking store", fmt.join_names(stores(runs), 6))
    yield from _experiments(comparison, runs)
    for text in _data(comparison):
        yield _line("Data", text)
    better = fmt.capital(direction(comparison.criterion))
    yield _line("Question", f"Which {review.noun} is best by {review.title}? {better}.")
    if review.positive is not None:
        yield _line("Positive group", quoted(review.positive))
    yield _line("Grouping", _grouping(comparison))
    costs = comparison.how.get("costs")
    if isinstance(costs, Costs):
        yield _line("Costs", fmt.short(costs.describe(), 300))
    yield _line("Gates", "; ".join(gate.text for gate in comparison.gates) or "none")
    if comparison.baseline is not None:
        yield _line("Baseline", quoted(comparison.baseline.name))
    yield _line("Tie-breakers", "; ".join(review.tie_breakers) or "none")
    yield _line("Decision", narrative.rule(review))
    rule = rule_of(comparison)
    yield _line("Rule", rule.sentence if rule else "set in the call that made this page")
    versions = comparison.record.versions
    yield _line("Versions", ", ".join(f"{name} {version}" for name, version in versions.items()))


def _made(comparison: Comparison) -> str:
    """Return the time and author of a comparison in words.

    The text is empty if the time is unknown.
    """
    record = comparison.record
    if not record.made:
        return ""
    author = f" by {quoted(record.author)}" if record.author else ""
    return f"{record.made} UTC{author}"


def _grouping(comparison: Comparison) -> str:
    """Return the grouping of the comparison, or of its runs, in words.

    The text is empty if there is no grouping.
    """
    grouping = comparison.how.get("grouping")
    if not grouping and comparison.ranking is not None:
        grouping = comparison.ranking.evaluation.grouping
    return fmt.short(grouping.describe(), 300) if grouping else ""


def _experiments(comparison: Comparison, runs: Sequence[Run]) -> list[Line]:
    names = comparison.record.experiments
    first_runs: dict[str, Run] = {}
    for run in runs:
        if run.experiment_id:
            first_runs.setdefault(run.experiment_id, run)
    lines = []
    for experiment_id, run in list(first_runs.items())[:_MAX_EXPERIMENTS]:
        name = quoted(names.get(experiment_id, experiment_id))
        experiment_address = address(run).rpartition("/runs/")[0]
        lines.append(_line("Experiment", f"{name} (id {experiment_id})", experiment_address))
    return lines


def _data(comparison: Comparison) -> list[str]:
    """Return the names and digests of the evaluated data sets as text.

    If the runs are folds, these are the data sets of all runs of the leading model, one per fold.
    """
    texts = []
    for ranking in comparison.rankings:
        texts += [_data_set(comparison, run.evaluation) for run in ranking.leader.runs]
    texts = list(dict.fromkeys(texts))
    # A line such as "1 more" would take as much space as the last data set.
    if len(texts) <= MAX_DATA + 1:
        return texts
    return [*texts[:MAX_DATA], f"{len(texts) - MAX_DATA} more"]


def _data_set(comparison: Comparison, evaluation: BaseEvaluation) -> str:
    """Return the data set of an evaluation and its number of rows as text."""
    digest = evaluation.labels_digest
    runs = [run for run in comparison.runs if run.evaluation.labels_digest == digest]
    datasets = dict.fromkeys(dataset for run in runs for dataset in run.run.datasets)
    # A run may have several data sets. The digest identifies the data set with the evaluated
    # labels.
    matching = [dataset for dataset in datasets if dataset[1] == digest] or datasets
    names = fmt.join_names([f"{quoted(name)} (digest {logged})" for name, logged in matching])
    rows = fmt.counted(evaluation.statistics.digest.rows, "row")
    return f"{names or f'digest of the labels {digest}'}, {rows}"


# -- tables ----------------------------------------------------------------------------------------


def _run_data(run: Run) -> dict[str, Any]:
    """Return a run as plain data."""
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
    """Return the table of runs, without empty columns, or None if all columns are empty."""
    shown = runs[:MAX_RUNS]
    columns = {
        "Id": [fmt.short_id(run.run_id) if run.tracking_uri else "" for run in shown],
        "By": [run.tags.get("mlflow.user", "") for run in shown],
        "Started (UTC)": [_stamp(run.start_time) for run in shown],
        "Run time": [in_two_units(duration(run)) for run in shown],
        "Model size": [_size(run.model_size) for run in shown],
        "Address": [address(run) for run in shown],
    }
    filled = {name: cells for name, cells in columns.items() if any(cells)}
    if not filled:
        return None
    reading = "The run time includes the evaluation."
    return _table(shown, filled, reading + _rest(runs))


def _param_table(runs: Sequence[Run]) -> Table | None:
    """Return the table of parameters in which the runs differ, or None if there are none."""
    names = varying(runs)
    if not names:
        return None
    shown = runs[:MAX_RUNS]
    texts = []
    for run in shown:
        values = [
            f"{name} = {fmt.short(run.params[name], _VALUE)}"
            for name in names
            if name in run.params
        ]
        texts.append(", ".join(values[:MAX_PARAMS]) + _more(len(values) - MAX_PARAMS))
    reading = "The table omits parameters with the same value in all runs."
    return _table(shown, {"Parameters": texts}, reading + _rest(runs))


def _more(n: int) -> str:
    """Return text that states how many parameters are not shown.

    The text is empty if all parameters are shown.
    """
    return f" and {n} more" if n > 0 else ""


def _table(runs: Sequence[Run], columns: Mapping[str, Sequence[str]], reading: str) -> Table:
    """Return a table with a row for each run."""
    rows = []
    for run, cells in zip(runs, zip(*columns.values(), strict=True), strict=True):
        row = {
            "name": one_line(run.name),
            "href": address(run),
            "run_id": run.run_id,
            "cells": list(map(one_line, cells)),
        }
        rows.append(row)
    return {"heads": ["Run", *map(one_line, columns)], "rows": rows, "reading": reading}


def _rest(runs: Sequence[Run]) -> str:
    """Return a sentence on the runs that a table does not show.

    The text is empty if the table shows all runs.
    """
    if len(runs) <= MAX_RUNS:
        return ""
    return f" See the JSON file for {len(runs) - MAX_RUNS} more runs."


def _stamp(milliseconds: int) -> str:
    """Return a time in UTC as text.

    The text is empty if the time is missing or cannot be represented as a date.
    """
    if milliseconds <= 0:
        return ""
    try:
        return f"{datetime.fromtimestamp(milliseconds / 1000, UTC):%Y-%m-%d %H:%M}"
    except (OverflowError, OSError, ValueError):
        return ""


def _size(n: int) -> str:
    """Return a number of bytes as text in its largest unit.

    The text is empty if the number is unknown.
    """
    if n <= 0:
        return ""
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if n >= size:
            return f"{significant(n / size)} {unit}"
    return f"{n} B"
