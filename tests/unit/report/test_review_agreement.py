"""Table, sentence, colour and figure of a rendered review say the same of every run."""

from __future__ import annotations

import functools
import json
import math
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from matplotlib.colors import to_hex

from cmtrack import Grouping, compare, evaluate
from cmtrack.comparison import (
    Blocks,
    Candidate,
    Criterion,
    ModelComparison,
    TieBreaker,
    judge,
    rank_models,
)
from cmtrack.digits import interval, number, p_text
from cmtrack.plots import BLUE, ORANGE
from cmtrack.report.review import Review, as_json, context, html, markdown
from cmtrack.tracking import TrackedRun
from support.contradictions import terminal_of
from support.problems import random_labels, random_models, random_probabilities
from support.review_page import BY_SCORE, WORDS

ACCURACY = "multiclass/accuracy"
ON_FRONTS = WORDS | {"tied": "not dominated", "behind": "dominated"}


def judged(skills, n=400, seed=4, **given):
    """Evaluations on the same rows; a higher skill is right more often."""
    y, models = random_models(list(skills.values()), n, seed=seed)
    return {
        name: evaluate(y, p.argmax(axis=1), **given) for name, p in zip(skills, models, strict=True)
    }


CLOSE = {
    "forest 100, labels only": 1.5,
    "forest 100": 1.55,
    "network | 3": 1.45,
    "naive <b>Bayes</b>": 0.3,
}
HALVES = Grouping({"low": [0, 1], "high": [2]}, name="half")
PARITY = Grouping({"even": [0, 2], "odd": [1]}, name="parity")


def over(kind):
    """A comparison of three models over five folds or seeds."""
    candidates = []
    for block in range(5):
        for model, skill in {"wide": 1.5, "narrow": 1.4, "poor": 0.4}.items():
            y = random_labels(150, 3, 100 if kind == "seeds" else block)
            guess = random_probabilities(y, 3, skill, [block, len(model)]).argmax(axis=1)
            run = TrackedRun(
                f"{model} {block}", f"{model} {block}", params={"model": model, "block": str(block)}
            )
            candidates.append(Candidate(run, evaluate(y, guess, labels=[0, 1, 2])))
    criterion = Criterion.of(ACCURACY)
    blocks = Blocks("params.block", "params.model", kind)
    ranking, _, notes = rank_models(
        candidates, criterion, blocks, tie_breakers=[TieBreaker.parse("params.model")]
    )
    return ModelComparison(
        rankings=(ranking,), criterion=criterion, notes=notes, how={"tie_breakers": "params.model"}
    )


CASES = {
    "one": lambda: compare(judged({"alone": 1.0})),
    "two, clear": lambda: compare(judged({"a": 2.5, "b": 0.3}), rank_by=ACCURACY),
    "two, close": lambda: compare(judged({"a": 1.5, "b": 1.55}), rank_by=ACCURACY),
    "names to be careful with": lambda: compare(judged(CLOSE), rank_by=ACCURACY),
    "six, close": lambda: compare(
        judged({f"run {k}": 1.5 + 0.01 * k for k in range(6)}), rank_by=ACCURACY
    ),
    "eight": lambda: compare(
        judged({f"run {k}": 1 + 0.12 * k for k in range(8)}), rank_by=ACCURACY
    ),
    "fifty": lambda: compare(
        judged({f"run {k}": 1 + 0.02 * k for k in range(50)}, n=250), rank_by=ACCURACY
    ),
    "gates stop some": lambda: compare(
        judged(CLOSE), rank_by=ACCURACY, require=f"{ACCURACY} >= 0.6"
    ),
    "gates stop all": lambda: compare(judged(CLOSE), rank_by=ACCURACY, require=f"{ACCURACY} > 1"),
    "tie-breaker within a margin": lambda: compare(
        judged(CLOSE), rank_by=ACCURACY, tie_breakers="class/2/recall", margin=0.5
    ),
    "tie-breaker by one standard error": lambda: compare(
        judged(CLOSE), rank_by=ACCURACY, tie_breakers="class/2/recall"
    ),
    "no tie-breaker within the margin": lambda: compare(
        judged(CLOSE), rank_by=ACCURACY, tie_breakers="class/2/recall", margin=0
    ),
    "two rankings": lambda: compare(
        judged({"a": 1.5, "b": 1.4}) | judged({"c": 2.5, "d": 2.4, "e": 0}, n=300, seed=1)
    ),
    "two rankings of equal size": lambda: compare(
        judged({"a": 1.5, "b": 1.4}, grouping=HALVES, positive="high")
        | judged({"c": 2.5, "d": 2.4}, grouping=PARITY, positive="odd"),
        rank_by="binary/f1",
    ),
    "groupings that are not read": lambda: compare(
        judged({"a": 1.5, "b": 1.4}, grouping=HALVES)
        | judged({"c": 2.5, "d": 2.4}, grouping=PARITY),
        rank_by=ACCURACY,
    ),
    "Pareto": lambda: compare(judged(CLOSE), rank_by=[ACCURACY, "class/2/recall"]),
    "lower is better": lambda: compare(
        judged(CLOSE, grouping=Grouping({"low": [0, 1], "high": [2]}, name="half")),
        rank_by="binary/fpr",
    ),
    "without rows": lambda: compare(
        {k: replace(e, rows=None) for k, e in judged(CLOSE).items()}, rank_by=ACCURACY
    ),
    "folds": lambda: over("folds"),
    "seeds": lambda: over("seeds"),
}


NAMES = [name for name in CASES if name != "fifty"]
NAMES.append(pytest.param("fifty", marks=pytest.mark.slow))
"""Most of the time would go to the fifty runs, of which eight show nearly as much."""


@functools.cache
def case(name):
    return CASES[name]()


class Tables(HTMLParser):
    """The rows of the ranking tables: class of the row, and the text of each cell."""

    def __init__(self):
        super().__init__()
        self.tables, self.row, self.cell = [], None, None

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if tag == "table":
            self.inside = "ranking" in given.get("class", "").split()
            self.tables += [[]] if self.inside else []
        elif tag == "tr" and given.get("class"):
            self.row = {"class": given["class"], "cells": [], "badge": ""}
        elif tag == "td":
            self.cell = ""
        elif tag == "span" and self.row is not None and "badge" in given.get("class", ""):
            self.row["badge"] = given["class"].removeprefix("badge ")

    def handle_data(self, data):
        if self.cell is not None:
            self.cell += data

    def handle_endtag(self, tag):
        if tag == "td" and self.row is not None:
            self.row["cells"].append(self.cell.strip())
            self.cell = None
        elif tag == "tr" and self.row is not None:
            if self.inside:
                self.tables[-1].append(self.row)
            self.row = None


def rankings_of(comparison):
    """(data of a ranking, data of its runs or models) as JSON has them."""
    data = json.loads(as_json(comparison))
    found = [(ranking, ranking["runs"]) for ranking in data["rankings"]]
    return data, found or (
        [(data["repeated"], data["repeated"]["models"])] if data["repeated"] else []
    )


def pvalue(run, comparison):
    return run["p_holm"] if isinstance(comparison, ModelComparison) else run["p_set"]


def value(run, comparison):
    if isinstance(comparison, ModelComparison):
        return run["mean"]
    return run["value"] if comparison.criterion.single else next(iter(run["values"].values()))


@pytest.mark.parametrize("name", NAMES)
def test_every_view_has_the_same_standing_value_and_p(name):
    comparison = case(name)
    data, rankings = rankings_of(comparison)
    page = Tables()
    page.feed(html(comparison, pictures={}))
    assert len(page.tables) == len(rankings)
    text = markdown(comparison)
    frame = comparison.to_frame()
    terminal = terminal_of(comparison).splitlines()
    statuses = []
    for (_, runs), table in zip(rankings, page.tables, strict=True):
        assert [row["cells"][1] for row in table] == [run["name"] for run in runs]
        for place, (run, row) in enumerate(zip(runs, table, strict=True)):
            status = run["status"]
            statuses.append(status)
            # the page: word, badge and colour of the row
            word = (ON_FRONTS if comparison.criterion.pareto else WORDS)[status]
            by_score = sum(run["tied"] for run in runs) > 1 and not comparison.ranking.decision.by
            if status == "chosen" and by_score and comparison.criterion.single:
                word = BY_SCORE[comparison.criterion.direction]
            assert row["cells"][2] == word
            assert row["badge"] == row["class"] == status
            assert row["cells"][0] == str(run["rank"])
            shown = number(value(run, comparison))
            assert any(cell.startswith(shown[:4]) for cell in row["cells"][3:6])
            # the p that is shown is the p that decides
            p = pvalue(run, comparison)
            if len(runs) > 1 and p is not None and place:
                assert p_text(p) in row["cells"]
                assert (p <= 1 - comparison.confidence_level) == (status == "behind")
            # Markdown
            (line,) = [
                line
                for line in text.splitlines()
                if re.match(rf"\| {run['rank']} \| ", line)
                and unescaped(line.split(" | ")[1]).strip("*") == run["name"].split("|")[0].strip()
                and status_in(line) == word
                and shown[:4] in line
            ][:1]
            assert (
                not (place and p is not None and len(runs) > 1)
                or p_text(p).replace("<", "&lt;") in line
            )
            # the frame
            (own,) = frame[frame["name"] == run["name"]].to_dict("records")
            assert (own["status"], own["tied"], own["chosen"]) == (
                status,
                run["tied"],
                run["chosen"],
            )
            # the terminal
            lines = [
                line.rstrip()
                for line in terminal
                if f" {run['name']} " in line and re.search(rf" {word}( |$)", line)
            ]
            assert lines
            if place and p is not None and len(runs) > 1:
                assert any(p_text(p) in line for line in lines)
    assert statuses.count("chosen") == (data["best"] is not None)
    assert set(frame["status"]) - {"failed", "stopped by a gate"} == set(statuses)


def unescaped(text):
    return (
        re.sub(r"\\(.)", r"\1", text)
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .split("|")[0]
        .strip()
    )


def status_in(line):
    words = (*WORDS.values(), *BY_SCORE.values(), "not dominated", "dominated")
    return next((cell for cell in line.split(" | ") if cell in words), "")


@pytest.mark.parametrize("name", NAMES)
def test_every_view_has_the_same_probability_and_the_same_interval_of_the_leader(name):
    comparison = case(name)
    ranking = comparison.ranking
    if isinstance(comparison, ModelComparison) or ranking is None or comparison.criterion.pareto:
        pytest.skip("of rankings of runs by one value")
    page = Tables()
    page.feed(html(comparison, pictures={}))
    table, said, frame = (
        page.tables[0],
        " ".join(comparison.summary().split()),
        comparison.to_frame(),
    )
    terminal = terminal_of(comparison)
    known = np.isfinite(ranking.leader.probability_best)
    assert known == (len(ranking.runs) != 2)
    assert not any(
        "P(best)" in view or "probability_best" in view for view in (markdown(comparison), terminal)
    )
    assert "probability_best" not in comparison._repr_html_()
    assert not any(
        text in view for view in (terminal, said) for text in ("ranks", "the probability that")
    )
    assert not any(
        "ranks" in head.lower()
        for head in context(Review(comparison), None, {})["tables"][0].heads.values()
    )
    for run, own in zip(ranking.runs, frame.to_dict("records"), strict=False):
        assert own["probability_best"] == run.probability_best or not known
        assert own["rank_low"] == run.rank_low or not known
    distribution = ranking.rank_distribution
    if known:
        assert distribution[:, 0] == pytest.approx([run.probability_best for run in ranking.runs])
    if comparison.criterion.single and len(ranking.runs) > 1:
        ends = interval(ranking.leader.value, ranking.leader.interval)
        assert ends in table[0]["cells"][3] + table[0]["cells"][4]
        assert ends in terminal
        wider = f" of {ranking.picked_from} values was selected.)"
        assert (f"{ends}*" in said and wider in said) or ranking.chosen is None
    else:
        assert " was selected.)" not in said


@pytest.mark.parametrize("name", NAMES)
def test_a_run_is_ruled_out_exactly_where_its_interval_ends_at_zero(name):
    comparison = case(name)
    for ranking in comparison.rankings:
        if ranking is comparison.repeated or ranking.criterion.pareto:
            continue
        better = 1 if ranking.criterion.direction == "higher" else -1
        for run in ranking.runs:
            low, high = sorted((better * run.difference_low, better * run.difference_high))
            if math.isnan(low):
                assert run.tied
                continue
            assert low <= better * run.difference <= high
            assert (high == 0) == (not run.tied)
            assert (run.p_set > 1 - ranking.confidence_level) == run.tied
            assert (run.rank_low == 1) == run.tied
        first = ranking.leader
        alone = len(ranking.tied) == 1
        if len(ranking.runs) > 1 and math.isfinite(first.difference_low):
            assert (0 in (first.difference_low, first.difference_high)) == alone


@pytest.mark.parametrize("name", NAMES)
def test_the_sentences_say_what_the_table_says(name):
    comparison = case(name)
    data, rankings = rankings_of(comparison)
    said = " ".join(data["summary"])
    headline = data["summary"][0]
    assert headline in comparison.summary()
    if data["best"] is None:
        assert headline.startswith(("Take none: ", "No decision: "))
        return
    runs = {run["name"]: run for _, of in rankings[:1] for run in of}
    best = runs[data["best"]["name"]]
    assert best["chosen"]
    assert f"“{best['name']}”" in headline
    tied = [run for run in runs.values() if run["tied"]]
    assert ("may be the best: the " in headline) == (
        len(tied) > 1
        and not comparison.criterion.pareto
        and rankings[0][0]["decision"]["by"] is None
    )
    for start, standing in (("Only ", ("behind",)),):
        for part in said.split(start)[1:]:
            for found in re.findall("“(.*?)”", re.split(r"[.] |[.]$", part)[0]):
                assert runs[found]["status"] in standing
    if name == "tie-breaker by one standard error":
        assert best["rank"] > 1
        assert abs(best["difference"]) <= best["standard_error"]
    if len(rankings) > 1:
        assert "not compared with each other" in headline
    assert all(not run["chosen"] for _, of in rankings[1:] for run in of)


@pytest.mark.parametrize(
    "name", [name for name in CASES if name not in ("gates stop all", "folds", "seeds", "fifty")]
)
def test_the_figures_colours_follow_the_standing(name):
    comparison = case(name)
    ranking = comparison.ranking
    if len(ranking.runs) < 2 or comparison.criterion.pareto:
        pytest.skip("no figure of a ranking")
    figure = comparison.figures()["ranking"]
    left, right = figure.axes[:2]
    for place, run in enumerate(ranking.runs):
        for ax in (left, right):
            drawn = [
                line for line in ax.lines if list(line.get_ydata()) in ([place], [place, place])
            ]
            colours = {to_hex(line.get_color()).upper() for line in drawn}
            assert colours == {BLUE if run.tied else ORANGE}
        star = any(
            line.get_marker() == "*" for line in left.lines if list(line.get_ydata()) == [place]
        )
        assert star == run.chosen
    lines = [line for line in left.lines if list(line.get_ydata()) == [0, 0]]
    if comparison.criterion.single:
        assert [tuple(line.get_xdata()) for line in lines] == [
            pytest.approx(ranking.leader.interval)
        ]
    says = " ".join(
        text.get_text() for text in figure.findobj(lambda artist: hasattr(artist, "get_text"))
    )
    assert ("selection" in says.replace("\n", " ")) == any(run.picked for run in ranking.runs)


@pytest.mark.parametrize("name", ["two, clear", "two, close"])
def test_the_gate_passes_a_run_that_is_not_behind(name):
    comparison = case(name)
    leader, other = comparison.runs
    assert judge(leader.evaluation, other.evaluation, rank_by=ACCURACY).passed
    assert judge(other.evaluation, leader.evaluation, rank_by=ACCURACY).passed == other.tied


@pytest.mark.parametrize(("name", "n"), [("folds", 5), ("seeds", 1), ("two rankings", 2)])
def test_the_record_names_every_data_set(name, n):
    lines = [line for line in markdown(case(name)).splitlines() if line.startswith("- Data: ")]
    assert len(lines) == n
    assert all(re.search(r", \d+ rows$", line) for line in lines)


def test_models_and_runs_are_one_type_whose_differences_are_data():
    runs, models = case("two, close").ranking, case("folds").ranking
    assert (runs.noun, runs.over, models.noun, models.over) == ("run", "", "model", "5 folds")
    for ranking in (runs, models):
        first = ranking.leader
        assert type(first.runs) is tuple
        assert len(first.runs) == (5 if ranking.over else 1)
        assert first.metrics[ACCURACY] == pytest.approx(first.value)
        assert all(entry.tied == (entry.p_set > 0.05) for entry in ranking.standings[1:])
