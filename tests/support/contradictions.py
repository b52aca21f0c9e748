"""A sceptical reader of reports and reviews: it compares what two places say about the same thing.

:func:`in_report` and :func:`in_review` read the sentences, the tables of the rendered page, the data of the figures and
the stored numbers together, and name each contradiction. They know the words, but use no function that writes them.
They take numbers from the text with its digits. They count the expected numbers again from the confusion matrix, or
look them up among the stored numbers.
"""

from __future__ import annotations

import html as entities
import io
import json
import math
import re
from collections.abc import Iterable, Iterator
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console

from cmtrack import Comparison, Evaluation

# a comparison in memory has no command: only what prints one shows how a terminal would have it
from cmtrack.cli.comparison_table import print_comparison
from cmtrack.comparison import RunComparison
from cmtrack.metrics import lookup
from cmtrack.report import report_html, verdict
from cmtrack.report.review import as_json, html, markdown
from support.agreement import contradictions as on_probabilities


def terminal_of(comparison: Comparison, width: int = 300) -> str:
    """Return what the command line prints for a comparison."""
    file = io.StringIO()
    print_comparison(Console(file=file, width=width), comparison, verbose=True)
    return file.getvalue()


# -- numbers in a text ------------------------------------------------------------------------------------------------

_NUMBER = r"[+−-]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[+−-]?\d+)?"
_WITH_ENDS = re.compile(
    rf"({_NUMBER}|∞)(%| percentage points)? \[({_NUMBER}|−?∞), ({_NUMBER}|−?∞)\]"
)
_P = re.compile(r"\bp = (\S+?)[,;.)]?(?:\s|$|\))")


class Printed(NamedTuple):
    """A value with its interval, as printed in a text."""

    text: str
    value: float
    low: float
    high: float
    unit: str
    step: float  # of the last digit of the value
    end_step: float  # and of its ends


def read(text: str) -> float:
    """Return a printed number."""
    return float(text.replace("−", "-").replace(",", "").replace("∞", "inf"))


def step_of(text: str) -> float:
    """Return the size of a printed number's last digit."""
    mantissa, _, power = text.partition("e")
    digits = mantissa.partition(".")[2]
    return 10.0 ** (-len(digits) + (int(read(power)) if power else 0))


def printed(text: str) -> Iterator[Printed]:
    """Yield each "value [low, high]" of a text."""
    for match in _WITH_ENDS.finditer(text):
        value, unit, low, high = match.groups()
        steps = step_of(value), max(step_of(low), step_of(high))
        yield Printed(match[0], read(value), read(low), read(high), (unit or "").strip(), *steps)


def in_text(text: str) -> list[str]:
    """Return the faults of a text that need no comparison."""
    wrong = []
    for number in printed(text):
        near = number.step + number.end_step
        if not number.low - near <= number.value <= number.high + near:
            wrong.append(f"{number.text!r}: the value lies outside its interval")
        if (
            number.unit == "%"
            and not -1e-9 <= number.low <= number.high <= 100 + 1e-9
            and "decisions save" not in text
        ):
            wrong.append(f"{number.text!r}: a share outside 0 to 100%")
        if number.unit == "percentage points" and not -100 <= number.low <= number.high <= 100:
            wrong.append(f"{number.text!r}: a difference of shares outside -100 to 100 points")
    for pattern, why in (
        (r"(?<![\w.])[−-]0(?:\.0+)?(?![\w.])", "a negative zero"),
        (r"\b(?:nan|NaN|inf|None(?! of|\s*$))\b", "a word of a program"),
        (r"\d{3,}\.\d{3}%", "three decimals above 100%"),
        (r"score of (about \S+%), \1 are", "a fault of two numbers that look equal"),
        (r"\bp = 0(?:\.0+)?(?![\d.]\d|\d)", "a p-value of zero"),
    ):
        wrong += [f"{match[0]!r} in {text[:120]!r}: {why}" for match in re.finditer(pattern, text)]
    return wrong


class Page(HTMLParser):
    """The readable content of a page: paragraphs, items, cells, and the rows of its ranking tables."""

    _BLOCKS = ("p", "li", "td", "th", "dd", "dt", "h1", "h2", "h3", "figcaption", "summary")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.blocks: list[str] = []
        self.rankings: list[list[dict[str, Any]]] = []
        self._hidden = 0
        self._ranking = False
        self._row: dict[str, Any] | None = None
        self._open: list[str] | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self._hidden += tag in ("script", "style", "svg", "select", "pre")
        if tag == "table":
            self._ranking = "ranking" in (given.get("class") or "").split()
            if self._ranking:
                self.rankings.append([])
        elif tag == "tr" and self._ranking and given.get("class"):
            self._row = {"class": given["class"], "cells": [], "badge": ""}
        elif tag == "span" and self._row is not None and "badge" in (given.get("class") or ""):
            self._row["badge"] = (given["class"] or "").removeprefix("badge ")
        if tag in self._BLOCKS:
            self._open = []

    def handle_data(self, data: str) -> None:
        if self._open is not None and not self._hidden:
            self._open.append(data)

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in ("script", "style", "svg", "select", "pre")
        if tag in self._BLOCKS and self._open is not None:
            text = " ".join("".join(self._open).split())
            self.blocks += [text] if text else []
            if tag == "td" and self._row is not None:
                self._row["cells"].append(text)
            self._open = None
        elif tag == "tr" and self._row is not None:
            self.rankings[-1].append(self._row)
            self._row = None


# -- stored numbers ---------------------------------------------------------------------------------------------------


class Stored:
    """Numbers with intervals that a sentence may mention: (value, low, high)."""

    def __init__(self, triples: Iterable[tuple[float, float, float]]) -> None:
        rows = [triple for triple in triples if all(map(math.isfinite, triple))]
        self.rows = np.array(rows, dtype=float).reshape(-1, 3)

    def has(self, number: Printed) -> bool:
        """Return whether a printed number is stored, in its unit and digits; a difference may be reversed."""
        scale = 100.0 if number.unit in ("%", "percentage points") else 1.0
        wanted = np.array([number.value, number.low, number.high])
        steps = np.array([number.step, number.end_step, number.end_step]) * 0.5000001
        absolute = np.column_stack([np.abs(self.rows[:, 0]), self.rows[:, 1:]])
        for rows in (self.rows, absolute, -self.rows[:, [0, 2, 1]]):
            if (np.abs(rows * scale - wanted) <= steps + 1e-9).all(axis=1).any():
                return True
        return False


def stored_of(evaluation: Evaluation) -> Stored:
    """Return the numbers of an evaluation, of its segments, and of its estimated prevalence."""
    triples = [(evaluation.metrics[name], *ends) for name, ends in evaluation.intervals.items()]
    for table in evaluation.segments.values():
        metrics = [
            name
            for name in ("multiclass/accuracy", "binary/recall", "binary/precision")
            if name in evaluation.metrics
        ]
        for row in table.to_frame(metrics).to_dict("records"):
            triples.append((row["value"], row["low"], row["high"]))
            triples.append((row["difference"], row["difference_low"], row["difference_high"]))
        for metric in metrics:
            gap = table.disparity(metric)
            triples.append((gap.gap, gap.gap_low, gap.gap_high))
            triples.append((gap.ratio, gap.ratio_low, gap.ratio_high))
    if evaluation.prevalence is not None:
        triples.append(
            (evaluation.prevalence.value, evaluation.prevalence.low, evaluation.prevalence.high)
        )
    curve = evaluation.risk_coverage
    if curve is not None and curve.interval is not None:
        triples.append((curve.aurc, *curve.interval))
    return Stored(triples)


def in_numbers(evaluation: Evaluation) -> list[str]:
    """Return intervals that exceed the range of their metric, or do not include their value."""
    wrong = []
    for name, (low, high) in evaluation.intervals.items():
        metric, value = lookup(name), evaluation.metrics[name]
        if math.isnan(low) or math.isnan(high) or math.isnan(value):
            wrong.append(f"{name}: {value} [{low}, {high}]")
        elif not low - 1e-9 <= value <= high + 1e-9:
            wrong.append(f"{name}: {value} lies outside [{low}, {high}]")
        elif low < metric.low - 1e-9 or high > metric.high + 1e-9:
            wrong.append(f"{name}: [{low}, {high}] leaves [{metric.low}, {metric.high}]")
    return wrong


# -- a report ---------------------------------------------------------------------------------------------------------

_CONSTANT = re.compile(
    r"((?:clearly )?better than|(?:clearly )?worse than|not clearly different from) always predicting"
)
_CLASSES = re.compile(
    r"The best class by F1 is (.*?) \(F1 ([\d.]+).*?\); the worst (?:is|are) (.*?) \(F1 ([\d.]+)"
)
_CONFUSION = re.compile(
    r"The most frequent confusion is “(.*?)” predicted as “(.*?)”: ([\d,.]+) rows?,"
)
_FINDS = re.compile(
    rf"[Tt]he model finds (?:({_NUMBER}) of ({_NUMBER}) rows? of “(.*?)” \(({_NUMBER})%[^)]*\)"
    rf"|({_NUMBER})%(?: \[.*?\])? of “(.*?)”)"
    rf"; (?:({_NUMBER})%(?: \[.*?\])? of its “.*?” predictions are correct(?: \([^)]*\))?|it never predicts “.*?”)\."
)
_WORSE = re.compile(r"“(.*?)” \(.*?\bis worse\b|“(.*?)” .*?\bis worse\b")


def in_report(evaluation: Evaluation, *, figures: bool = False) -> list[str]:
    """Return the contradictions in the report of an evaluation."""
    sentences, stored = verdict(evaluation), stored_of(evaluation)
    wrong = in_numbers(evaluation)
    for sentence in sentences:
        wrong += in_text(sentence)
        wrong += [
            f"{n.text!r} of {sentence[:90]!r} is no stored number"
            for n in printed(sentence)
            if not stored.has(n)
        ]
    wrong += _in_counts(evaluation, " ".join(sentences))
    wrong += _in_costs(evaluation, " ".join(sentences))
    html_page = report_html(evaluation, {}, rows=evaluation)
    wrong += _in_segments(html_page, sentences, stored)
    page = Page(html_page)
    shown = " ".join(page.blocks)
    wrong += [
        f"not on the page: {sentence[:90]!r}"
        for sentence in sentences
        if entities.unescape(" ".join(sentence.split())) not in shown
    ]
    for block, after in zip(page.blocks, [*page.blocks[1:], ""], strict=True):
        wrong += in_text(block)
        # a cell, and the cell of its interval
        if after.startswith("[") and re.fullmatch(rf"(?:{_NUMBER})%?", block):
            wrong += [
                f"{n.text!r} of the page is no stored number"
                for n in printed(f"{block} {after}")
                if not stored.has(n)
            ]
    if figures:
        wrong += on_probabilities(evaluation)
        for name in list(evaluation.figures()):
            figure = evaluation.figures()[name]
            for artist in figure.findobj(lambda one: hasattr(one, "get_text")):
                text = " ".join(artist.get_text().split())
                wrong += [f"figure {name}: {fault}" for fault in in_text(text)]
                for number in printed(text):
                    if not stored.has(number):
                        wrong.append(
                            f"figure {name}: {number.text!r} in {text[:90]!r} is no stored number"
                        )
    return wrong


def _in_counts(evaluation: Evaluation, said: str) -> list[str]:
    """Compare sentences on classes and confusions with the confusion matrix."""
    wrong, labels = [], [str(label) for label in evaluation.labels]
    counts = evaluation.confusion_matrix.counts.astype(float)
    total, right = counts.sum(), counts.trace()
    largest = int(counts.sum(axis=1).argmax())
    only_model = right - counts[largest, largest]
    only_constant = counts[largest].sum() - counts[largest, largest]
    for match in _CONSTANT.finditer(said):
        lead = (only_model - only_constant) / math.sqrt(max(only_model + only_constant, 1))
        if evaluation.weights_are is None and evaluation.n_clusters is None:
            clear = match[1] != "not clearly different from"
            if clear and (lead > 0) != match[1].endswith("better than"):
                wrong.append(
                    f"{match[0]!r}, with {only_model:g} rows for it and {only_constant:g} against it"
                )
            if (clear and abs(lead) < 1.6) or (not clear and abs(lead) > 2.6):
                wrong.append(
                    f"{match[0]!r}, with {only_model:g} rows for it and {only_constant:g} against it"
                )
    wrong += _in_findings(evaluation, said)
    if ("There are no errors on these rows" in said) != (right == total):
        wrong.append(f"“no errors” with {total - right:g} wrong")
    for match in _CONFUSION.finditer(said):
        wrong_counts = counts - np.diag(np.diag(counts))
        cell = wrong_counts[labels.index(match[1]), labels.index(match[2])]
        if abs(read(match[3]) - cell) > 0.05 or cell < wrong_counts.max() - 1e-9:
            wrong.append(
                f"{match[0]!r}: the cell holds {cell:g}, the largest {wrong_counts.max():g}"
            )
    with np.errstate(all="ignore"):
        f1 = 2 * np.diag(counts) / (counts.sum(axis=0) + counts.sum(axis=1))
    of = {
        label: value
        for label, value, size in zip(labels, f1, counts.sum(axis=1), strict=True)
        if size > 0
    }
    for match in _CLASSES.finditer(said):
        for names, shown, end in ((match[1], match[2], max), (match[3], match[4], min)):
            if abs(read(shown) - end(of.values())) > step_of(shown):
                wrong.append(f"{match[0]!r}: F1 is {end(of.values()):.4f}")
            wrong += [
                f"{match[0]!r}: F1 of {name} is {of[name]:.4f}"
                for name in re.findall("“(.*?)”", names)
                if abs(of[name] - end(of.values())) > 1e-9
            ]
    return wrong


def _in_findings(evaluation: Evaluation, said: str) -> list[str]:
    """Compare the sentence on the positive class with the matrix of the classes or of the two groups."""
    match = _FINDS.search(said)
    if evaluation.positive is None:
        return [f"{match[0]!r}, with no positive class"] if match else []
    table = (evaluation.reduced or [evaluation.confusion_matrix])[-1]
    place, counts = (
        list(table.labels).index(evaluation.positive),
        np.asarray(table.counts, dtype=float),
    )
    aside = float(table.mismatches[place]) if evaluation.reduced else 0.0
    hits, actual, called = (
        counts[place, place],
        counts[place].sum() + aside,
        counts[:, place].sum() + aside,
    )
    if match is None:
        return [] if actual == 0 else [f"no sentence on {evaluation.positive!r}"]
    wrong = []
    if (match[3] or match[6]) != str(evaluation.positive):
        wrong.append(f"{match[0]!r}: the positive class is {evaluation.positive!r}")
    if match[1] and (read(match[1]), read(match[2])) != (hits, actual):
        wrong.append(f"{match[0]!r}: it finds {hits:g} of {actual:g}")
    pairs = [
        (match[4] or match[5], hits / actual),
        (match[7], hits / called if called else math.nan),
    ]
    for shown, share in pairs:
        if (shown is None) != math.isnan(share) or (
            shown and abs(read(shown) - 100 * share) > step_of(shown)
        ):
            wrong.append(f"{match[0]!r}: {100 * share:.3f}%")
    return wrong


def _in_costs(evaluation: Evaluation, said: str) -> list[str]:
    match = re.search(
        r"Always predicting “(.*?)”, the best constant answer, would cost ([\d.,]+?)(?=[,:.]? )(.*?\.)",
        said,
    )
    if match is None or evaluation.costs is None:
        return []
    counts = evaluation.confusion_matrix.counts.astype(float)
    prices = (
        evaluation.costs.matrix(evaluation.labels) if hasattr(evaluation.costs, "matrix") else None
    )
    if prices is None:
        return []
    always = (counts.sum(axis=1)[:, None] * np.asarray(prices)).sum(axis=0) / counts.sum()
    mean = float((counts * prices).sum() / counts.sum())
    wrong, least = [], float(always.min())
    if abs(read(match[2]) - least) > step_of(match[2]) + 1e-9:
        wrong.append(f"{match[0]!r}: it would cost {least:.4f}")
    if "which is less" in match[3] and mean <= least:
        wrong.append(f"{match[0]!r}: a decision costs {mean:.4f}")
    return wrong


class Segments(NamedTuple):
    """The table of a column's segments on a page: labels, labels with a bold difference, and the items on the gaps."""

    labels: list[str]
    marked: list[str]
    gaps: list[str]


def segments_of(page: str) -> list[Segments]:
    """Return the tables of segments on the page of a report."""
    found = []
    for part in re.findall(r"(?s)<h3>Segments by .*?</ul>", page):
        rows = re.findall(r'(?s)<tr><td class="label" title="(.*?)">(.*?)</tr>', part)
        gaps = re.findall(r"(?s)<li>(.*?)</li>", part)
        labels = [entities.unescape(label) for label, _ in rows]
        marked = [entities.unescape(label) for label, cells in rows if "<b>" in cells]
        found.append(
            Segments(labels, marked, [" ".join(entities.unescape(g).split()) for g in gaps])
        )
    return found


def _in_segments(page: str, sentences: list[str], stored: Stored) -> list[str]:
    """Compare sentences on worse segments with the marks of the table and the words on the gap."""
    wrong = []
    tables = segments_of(page)
    marked = {label for table in tables for label in table.marked}
    for sentence in sentences:
        match = re.match(r"Segment “(.*?)”.*? is worse", sentence)
        if match is None:
            continue
        if match[1] not in marked:
            wrong.append(f"{sentence[:90]!r}: the table does not mark it")
        metric = next(
            (name for name in ("accuracy", "recall", "precision") if f"its {name}" in sentence),
            None,
        )
        for table in tables:
            for gap in table.gaps:
                if metric and gap.lower().startswith(metric) and match[1] in table.labels:
                    wrong += (
                        [f"{sentence[:90]!r} beside {gap!r}"]
                        if re.search(r"includes 0", gap)
                        else []
                    )
    for table in tables:
        for gap in table.gaps:
            wrong += in_text(gap)
            wrong += [
                f"{n.text!r} of {gap[:90]!r} is no stored number"
                for n in printed(gap)
                if not stored.has(n)
            ]
    return wrong


# -- a review ---------------------------------------------------------------------------------------------------------


def in_review(comparison: Comparison, *, figures: bool = False) -> list[str]:
    """Return the contradictions in the review of a comparison."""
    data = json.loads(as_json(comparison))
    page, text = Page(html(comparison, pictures={})), markdown(comparison)
    terminal = terminal_of(comparison)
    said = " ".join(data["summary"])
    wrong = []
    for block in (*data["summary"], *page.blocks, *text.splitlines(), *terminal.splitlines()):
        wrong += in_text(block)
    if not isinstance(comparison, RunComparison):
        return wrong
    level = comparison.confidence_level
    for ranking, rows in zip(data["rankings"], page.rankings, strict=True):
        runs = ranking["runs"]
        if not data["criterion"]["pareto"]:
            wrong += _in_standings(runs, level, data["criterion"], several=len(runs) > 1)
        wrong += _in_tables(runs, rows, comparison, terminal, text)
    if data["best"] is not None:
        wrong += _in_headline(data, said) + _in_plans(data, said)
    if figures and comparison.ranking is not None and not comparison.criterion.pareto:
        wrong += _in_figure(comparison)
    return wrong


def _in_standings(
    runs: list[dict[str, Any]], level: float, criterion: dict[str, Any], *, several: bool
) -> list[str]:
    """Check the status, p and interval of each run, the values and ranks, and the chances."""
    wrong, single = [], len(criterion["metrics"]) == 1
    better = criterion["better"]
    in_set = [run for run in runs if run["tied"]]
    if not in_set:
        wrong.append("no run may be the best")
    metric = lookup(criterion["metrics"][0]) if single else None
    for place, run in enumerate(runs):
        name, p, low, high = (
            run["name"],
            run["p_set"],
            run["difference_low"],
            run["difference_high"],
        )
        if several and p is not None and run["tied"] != (p > 1 - level):
            wrong.append(f"{name}: tied is {run['tied']} with p = {p}")
        if single and run["value"] is not None and run["low"] is not None:
            ends = (run["low"], run["high"])
            if (
                metric is not None
                and not metric.low - 1e-9
                <= ends[0]
                <= run["value"]
                <= ends[1]
                <= metric.high + 1e-9
            ):
                wrong.append(f"{name}: {run['value']} {ends} leaves the range of {metric.name}")
        if several and low is not None:
            # of being better than the best other
            least, most = (low, high) if better == "higher" else (-high, -low)
            if better == "nearest zero":
                least, most = (-high, -low)
            zero = most == 0
            if zero == run["tied"] and not (run["tied"] and least == most == 0):
                wrong.append(f"{name}: tied is {run['tied']}, and the interval is [{low}, {high}]")
            if not low - 1e-12 <= run["difference"] <= high + 1e-12:
                wrong.append(
                    f"{name}: the difference {run['difference']} lies outside [{low}, {high}]"
                )
            if metric is not None and math.isfinite(metric.high - metric.low):
                span = metric.high - metric.low
                if max(abs(low), abs(high)) > span + 1e-9:
                    wrong.append(f"{name}: the difference [{low}, {high}] leaves ±{span}")
            # all predict the same
            if place == 0 and (least >= 0) != (len(in_set) == 1) and not least == most == 0:
                wrong.append(
                    f"the leader's interval is [{low}, {high}], and {len(in_set)} runs may be the best"
                )
        if several and run["probability_best"] is not None and len(runs) > 2:
            if (run["rank_low"] == 1) != run["tied"]:
                wrong.append(
                    f"{name}: tied is {run['tied']}, and its ranks begin at {run['rank_low']}"
                )
            if not run["rank_low"] <= run["rank_high"]:
                wrong.append(f"{name}: ranks {run['rank_low']} to {run['rank_high']}")
    if several and not runs[0]["tied"]:
        wrong.append(f"the leader {runs[0]['name']} is not tied")
    if sum(run["chosen"] for run in runs) > 1:
        wrong.append("two runs are chosen")
    return wrong


def _in_tables(
    runs: list[dict[str, Any]],
    rows: list[dict[str, Any]],
    comparison: Comparison,
    terminal: str,
    text: str,
) -> list[str]:
    """Compare the page, the frame, the terminal and Markdown with the data."""
    wrong = []
    frame = comparison.to_frame().set_index("name")
    shown = {row["cells"][1]: row for row in rows if len(row["cells"]) > 2}
    for run in runs:
        row = shown.get(run["name"])
        if row is None:
            wrong.append(f"{run['name']} is not in the table of the page")
            continue
        if not row["class"].split()[0] == row["badge"].split()[0] == run["status"]:
            wrong.append(
                f"{run['name']}: {run['status']}, on the page {row['class']} and {row['badge']}"
            )
        own = frame.loc[run["name"]]
        wrong += [
            f"{run['name']}: {field} is {run[field]}, in the frame {own[field]}"
            for field in ("status", "tied", "chosen")
            if own[field] != run[field]
        ]
        triples = [
            (run["value"], *ends)
            for ends in ((run["low"], run["high"]), (run["adjusted_low"], run["adjusted_high"]))
        ]
        triples.append((run["difference"], run["difference_low"], run["difference_high"]))
        stored = Stored([tuple(map(_number, triple)) for triple in triples])  # type: ignore[misc]
        cells = row["cells"]
        beside = (
            [f"{first} {second}" for first, second in pairwise(cells[3:])]
            if comparison.criterion.single
            else []
        )
        wrong += [
            f"{run['name']}: {number.text!r} on the page is no stored number"
            for both in beside
            for number in printed(both)
            if not stored.has(number)
        ]
        if not any(run["name"] in line for line in terminal.splitlines()):
            wrong.append(f"{run['name']} is not in the terminal's table")
        if not any(run["name"] in line for line in text.splitlines()):
            wrong.append(f"{run['name']} is not in the Markdown table")
    return wrong


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def _in_headline(data: dict[str, Any], said: str) -> list[str]:
    """Compare the opening with the data."""
    wrong, headline = [], data["summary"][0]
    runs = data["rankings"][0]["runs"]
    status = {run["name"]: run["status"] for run in runs}
    tied = [run for run in runs if run["tied"]]
    best = data["best"]["name"]
    if status.get(best) != "chosen":
        wrong.append(f"the best is {best}, which is {status.get(best)!r}")
    if (
        len(tied) > 1
        and re.search(r"ruled out|significantly worse", headline)
        and "Take" in headline
    ):
        wrong.append(f"{headline!r}, and {len(tied)} runs may be the best")
    numbers = {
        "one": 1,
        "two": 2,
        "three": 3,
        "four": 4,
        "five": 5,
        "six": 6,
        "seven": 7,
        "eight": 8,
        "nine": 9,
        "ten": 10,
    }
    for match in re.finditer(r"(\w+) of (?:the )?(\w+) runs may be the best", said):
        k, n = (
            numbers.get(word.lower(), int(word) if word.isdigit() else -1)
            for word in match.groups()
        )
        if match[1].lower() == "any":
            k = n
        if (k, n) != (len(tied), len(runs)):
            wrong.append(f"{match[0]!r}, and it is {len(tied)} of {len(runs)}")
    for match in re.finditer(r"Only (“.*?”) (?:is|are) ruled out as the best\.", said):
        wrong += [
            f"{name} is said to be behind, and is {status[name]!r}"
            for name in re.findall("“(.*?)”", match[1])
            if name in status
            and status[name] != "behind"
            and (status[name] != "equivalent" or name in {run["name"] for run in tied})
        ]
    chances = {run["name"]: run["probability_best"] for run in runs}
    for match in re.finditer(r"“([^”]*)” is the best with probability (\d+)%", said):
        p = chances.get(match[1])
        if (
            p is None
            or abs(100 * p - int(match[2])) > 0.51
            or p < max(filter(None, chances.values())) - 1e-12
            or p < 0.1
        ):
            wrong.append(f"{match[0]!r}: {p}")
    return wrong


def _in_plans(data: dict[str, Any], said: str) -> list[str]:
    """Compare the effect of selection, the rows that would decide, and equivalent runs with the data."""
    wrong, runs = [], {run["name"]: run for run in data["rankings"][0]["runs"]}
    for match in re.finditer(
        r"As the (?P<end>\w+) of at least (?P<runs>\d+) runs evaluated on these rows, this value is "
        rf"probably about (?P<part>{_NUMBER}) too ",
        said,
    ):
        looks, value = data["looks"], read(match["part"])
        if (
            abs(value - looks["optimism"]) > 0.06 * looks["optimism"]
            or int(match["runs"]) != looks["runs"]
        ):
            wrong.append(f"{match[0]!r}: {looks}")
        if (match["end"] == "highest") != (looks["corrected"] < looks["value"]):
            wrong.append(f"{match[0]!r}: corrected it is {looks['corrected']}")
    for match in re.finditer(
        rf"[ :]about ({_NUMBER}) for “(.*?)”",
        said,
    ):
        more, run = data["resolution"]["rows_more"][match[2]], runs[match[2]]
        if (
            abs(read(match[1]) - more) > 0.06 * more
            or not run["tied"]
            or run["status"] == "equivalent"
        ):
            wrong.append(f"{match[0]!r}: {more} more, and it is {run['status']!r}")
    for match in re.finditer(r"(?:^|\. )(“[^.]*”) (?:is|are) (equivalent) to “", said):
        wrong += [
            f"{match[0]!r}: {name} is {runs[name]['status']!r}"
            for name in re.findall("“(.*?)”", match[1])
            if runs[name]["status"] not in ("equivalent", "chosen")
        ]
    return wrong


def _in_figure(comparison: RunComparison) -> list[str]:
    """Compare the drawn ranking with the data."""
    from matplotlib.colors import to_hex

    from cmtrack.plots import BLUE, ORANGE

    ranking = comparison.ranking
    assert ranking is not None
    if len(ranking.runs) < 2:
        return []
    wrong, figure = [], comparison.figures()["ranking"]
    for place, run in enumerate(ranking.runs):
        for ax in figure.axes[:2]:
            drawn = [
                line for line in ax.lines if list(line.get_ydata()) in ([place], [place, place])
            ]
            colours = {to_hex(line.get_color()).upper() for line in drawn}
            if colours - {BLUE if run.tied else ORANGE}:
                wrong.append(f"the figure draws {run.name} in {colours}, and tied is {run.tied}")
    for artist in figure.findobj(lambda one: hasattr(one, "get_text")):
        wrong += [f"figure: {fault}" for fault in in_text(" ".join(artist.get_text().split()))]
    return wrong
