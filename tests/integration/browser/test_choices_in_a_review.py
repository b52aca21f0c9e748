"""What a reader of a review chooses in a browser: another metric, another run to compare with, and the runs to list."""

from __future__ import annotations

import html as escaping
import math
import re
from typing import Any

import numpy as np
import pytest

from cmtrack import Grouping, Metric, Prefix, compare, evaluate, evaluate_families
from cmtrack.digits import p_text, with_interval
from cmtrack.names import quoted
from cmtrack.report import metric_title
from cmtrack.report.review import html
from support.problems import random_guesses, random_labels, random_models
from support.review_page import WORDS, pairs

pytestmark = pytest.mark.slow

N = 500
LABELS = ["ant", "bee's", 'c"at<b>', "dog"]
GAIN = Metric(
    "own/gain", lambda b: (2 * b.tp - b.fp) / (b.tp + b.fn + b.imp), of="binary", high=2.0
)
CHAIN = Grouping(
    {"insects": LABELS[:2], "cats": LABELS[2:3], "dogs": LABELS[3:]},
    mode={"insects": [("ant", "bee's")]},
    name="kind",
).then(
    Grouping(
        {"legs six": ["insects"], "legs four": ["cats", "dogs"]},
        mode={"legs four": "strict"},
        name="legs",
        positive="legs six",
    )
)


def inputs(skills=(1.6, 1.7, 0.9, 1.65), **options):
    """The arguments of ``evaluate`` by the runs' names."""
    region = np.array(["north", "south <i>", "east"])[np.random.default_rng(9).integers(0, 3, N)]
    common: dict[str, Any] = {
        "labels": LABELS,
        "grouping": CHAIN,
        "segments": {"region": region},
    } | options
    y, models = random_models(skills, n=N, k=4)
    return {
        f"run {k} <b>": (np.array(LABELS)[y], {"y_prob": p} | common) for k, p in enumerate(models)
    }


@pytest.fixture(scope="module")
def evaluations():
    return {
        name: evaluate(y, **options, extra_metrics=[GAIN])
        for name, (y, options) in inputs().items()
    }


@pytest.fixture(scope="module")
def comparison(evaluations):
    return compare(evaluations, rank_by="binary/matthews_corrcoef", extra_metrics=[GAIN])


@pytest.fixture(scope="module")
def file(comparison, tmp_path_factory):
    """The review, as it is written."""
    return comparison.report(tmp_path_factory.mktemp("review") / "review.html")


def open_page(browser, file):
    errors: list[str] = []
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.on(
        "console", lambda message: errors.append(message.text) if message.type == "error" else None
    )
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(file.as_uri())
    return page, errors


@pytest.fixture
def page(browser, file):
    opened, errors = open_page(browser, file)
    yield opened
    assert errors == []
    opened.close()


def choose(page, title):
    """Choose the metric with a title, below the fold that has the list."""
    fold = page.locator("#other-metrics details")
    if not fold.evaluate("fold => fold.open"):
        fold.locator("summary").click()
    labels = page.locator("#by-metric option").all_text_contents()
    # The title of a metric of all classes may end with their number.
    label = next(
        one.strip() for one in labels if title in (one.strip(), one.strip().partition(" (")[0])
    )
    page.locator("#by-metric").select_option(label=label)


def answer(page):
    """The sentence and the rows that are shown: name, status, number, value and interval, and p."""
    rows = page.locator("table.answer:visible tbody tr").evaluate_all(
        """rows => rows.map(row => ({
          name: row.querySelector('.run').textContent,
          status: row.classList[0],
          chosen: row.classList.contains('chosen'),
          word: row.querySelector('.badge').textContent,
          rank: row.cells[0].textContent,
          value: (row.cells[3].textContent + ' ' + row.cells[4].textContent).trim(),
          p: row.cells[5].textContent,
        }))"""
    )
    return page.locator("p[data-metric]:visible").inner_text(), rows


def held_to(page, ranking, chosen):
    """Sentence, table and drawings say what a comparison by the metric says."""
    sentence, rows = answer(page)
    metric = ranking.criterion.metrics[0]
    own = {run.name: run for run in ranking.runs}
    tied = {run.name for run in ranking.runs if run.tied}
    assert {row["name"] for row in rows} == set(own)
    for row in rows:
        run = own[row["name"]]
        assert row["rank"] == str(run.rank)
        assert row["word"] == WORDS[row["status"]]
        assert (row["status"] != "behind") == (row["name"] in tied)
        assert row["chosen"] == (row["name"] == chosen)
        low_high = run.evaluation.intervals.get(metric, (math.nan, math.nan))
        assert row["value"] == with_interval(run.value, low_high)
        assert row["p"] == ("–" if row["status"] == "leads" else p_text(run.p_set))
    assert [row["status"] for row in rows].count("leads") == 1
    assert rows[0]["status"] == "leads"
    assert [int(row["rank"]) for row in rows] == sorted(int(row["rank"]) for row in rows)
    first = [row for row in rows if row["rank"] == "1"]
    # With a positive group, the title of a metric of all classes also has their number.
    title = metric_title(metric, ranking.evaluation.positive, catalog=ranking.criterion.catalog)
    assert re.search(rf" the best {re.escape(title)}(?: \(\d+ classes\))?: ", sentence)
    assert f": {first[0]['value']}." in sentence
    assert all(quoted(row["name"]) in sentence for row in first[:3])
    place = next(row for row in rows if row["chosen"])
    rank = f" has rank {place['rank']} of {len(rows)} with a value of {place['value']}."
    assert (rank in sentence) == (place not in first)
    number = len(tied)
    of = len(own)
    words = f"{number} of {of} runs may be the best"
    if number == of:
        words = "runs may be the best"
    elif number == 1:
        words = "ruled out as the best"
    assert "At 95% confidence, " in sentence
    assert sentence.endswith(f"{words}.")
    strokes = page.locator("table.answer:visible tbody tr").evaluate_all(
        """rows => rows.map(row => [row.classList[0], row.querySelector('svg.bar .value')])
        .filter(([_, bar]) => bar).map(([status, bar]) => [status === 'behind', getComputedStyle(bar).fill])"""
    )
    colours = {
        behind: {colour for other, colour in strokes if other == behind} for behind in (True, False)
    }
    assert all(len(of_kind) <= 1 for of_kind in colours.values())
    assert not colours[True] & colours[False]


def test_another_metric(page, comparison, evaluations):
    titles = page.locator("#by-metric option").all_text_contents()
    metrics = page.locator("#by-metric option").evaluate_all(
        "options => options.map(option => option.value)"
    )
    assert "Matthews correlation for “legs six”" not in titles  # it ranks the runs above
    assert {
        "Accuracy (4 classes)",
        "Log loss (4 classes)",
        "Gain",
    } <= set(titles)
    assert {"multiclass/accuracy", "probability/log_loss", "own/gain"} <= set(metrics)
    assert "binary/roc_auc" not in metrics  # the ceilings of the curves differ
    for title, metric in zip(titles, metrics, strict=True):
        choose(page, title)
        held_to(
            page,
            compare(evaluations, rank_by=metric, extra_metrics=[GAIN]).ranking,
            comparison.best.name,
        )
    assert page.locator("table.answer:visible").count() == 1
    note = page.locator("#other-metrics details > p.soft").inner_text()
    assert note == "Brackets show a separate 95% interval for each run."


@pytest.mark.parametrize(
    "options",
    [
        {"sample_weight": np.random.default_rng(4).integers(1, 4, N), "weights_are": "frequency"},
        {"sample_weight": np.random.default_rng(4).uniform(0.2, 3, N), "weights_are": "sampling"},
        {"groups": np.arange(N) // 5},
    ],
    ids=["frequency", "sampling", "clusters"],
)
def test_another_metric_of_weighted_and_clustered_rows(browser, tmp_path, options):
    known = {
        name: evaluate(y, **own) for name, (y, own) in inputs(segments=None, **options).items()
    }
    comparison = compare(known, rank_by="multiclass/accuracy")
    opened, errors = open_page(browser, comparison.report(tmp_path / "review.html"))
    for title, metric in (
        ("Recall for “legs six”", "binary/recall"),
        ("Brier score", "probability/brier"),
    ):
        choose(opened, title)
        held_to(opened, compare(known, rank_by=metric).ranking, comparison.best.name)
    assert errors == []
    opened.close()


# -- any run against the chosen one ----------------------------------------------------------------------------


def pair_of(page):
    rows = page.locator("table.confusions:visible tbody tr").evaluate_all(
        "rows => rows.map(row => Array.from(row.cells).map(c => c.textContent))"
    )
    return (
        page.locator("#pair h2").inner_text(),
        page.locator("#pair [data-pair]:visible > p:not(.soft)").all_inner_texts(),
        rows,
    )


def test_any_run_is_compared_with_the_chosen_one(page, comparison, file):
    ranking = comparison.ranking
    written = pairs(file.read_text(encoding="utf-8"))
    for place, run in enumerate(ranking.runs):
        if run.chosen:
            continue
        page.locator(f"table.ranking tr[data-run='{place}'] button.pick").first.click()
        heading, sentences, rows = pair_of(page)
        assert heading == f"{quoted(ranking.foremost.name)} compared with {quoted(run.name)}"
        assert sentences == written[place]["sentences"]
        assert any(quoted(run.name) in sentence for sentence in sentences)
        assert rows == written[place]["rows"]
        assert set(page.locator(".rival").all_inner_texts()) == {quoted(run.name)}
        assert page.locator("#pair-with").evaluate(
            "select => select.selectedOptions[0].text"
        ) == quoted(run.name)
        marked = page.locator("tr[data-run].picked").evaluate_all(
            "rows => rows.map(row => row.dataset.run)"
        )
        # the ranking, the table of probabilities, the tables of other metrics
        assert len(marked) >= 3
        assert set(marked) == {str(place)}
        assert page.locator("#pair-charts svg[role=img]").count() == 3
        drawn = page.locator("#pair-charts path[data-run]:visible")
        assert (
            drawn.evaluate_all("lines => lines.map(line => line.dataset.run)")
            == ["0", str(place)] * 3
        )
        in_figures = page.locator(".figures [data-run]")
        assert in_figures.count() > 0
        for mark in in_figures.all()[:40]:
            faded = mark.get_attribute("data-run") not in (str(place), "0")
            assert (
                mark.evaluate(
                    "own => document.body.matches('.comparing') && !own.matches('.picked, .ours')"
                )
                == faded
            )
        page.locator("#pair-close").click()


def test_a_click_on_a_row_or_a_mark_picks_its_run_and_the_same_once_more_lets_go(page, comparison):
    second = comparison.ranking.runs[2]
    page.locator("table.ranking tr[data-run='2'] td").nth(3).click()
    assert second.name in page.locator("#pair h2").inner_text()
    assert page.locator("body.comparing").count() == 1
    page.locator("table.ranking tr[data-run='2'] td").nth(3).click()
    assert page.locator("body.comparing").count() == 0
    page.locator("#pair-show").click()
    assert page.evaluate("document.activeElement.id") == "pair-with"
    assert page.locator("#pair h2").evaluate(
        "head => head.getBoundingClientRect().top < innerHeight"
    )
    page.locator("#pair-close").click()
    assert page.locator("#pair-bar").is_hidden()
    page.locator(".figures [data-run='3']").first.dispatch_event("click")
    assert comparison.ranking.runs[3].name in page.locator("#pair h2").inner_text()
    assert page.locator("body.comparing").count() == 1
    page.locator("#pair-with").select_option(label=quoted(second.name))
    assert second.name in page.locator("#pair h2").inner_text()
    assert page.locator("#pair-bar").is_hidden()  # a reader who chooses there sees the answer


def test_the_keyboard_reaches_everything(page):
    button = page.locator("table.ranking button.pick").nth(1)
    name = button.inner_text()
    page.locator("table.ranking button.pick").first.focus()
    page.keyboard.press("Tab")
    assert (
        button.evaluate(
            "own => own === document.activeElement && getComputedStyle(own).outlineStyle"
        )
        == "solid"
    )
    page.keyboard.press("Enter")
    assert name in page.locator("#pair h2").inner_text()
    assert button.get_attribute("aria-pressed") == "true"
    page.locator("#other-metrics summary").focus()
    page.keyboard.press("Enter")
    before, _ = answer(page)
    page.locator("#by-metric").focus()
    page.keyboard.press("ArrowDown")
    after, rows = answer(page)
    assert after != before
    assert len(rows) == 4
    assert (
        page.locator("p[data-metric]:visible").evaluate(
            "own => own.parentNode.getAttribute('aria-live')"
        )
        == "polite"
    )


def test_the_rows_by_another_metric_are_sorted_by_a_click(page):
    choose(page, "Accuracy")
    ranks = [row["rank"] for row in answer(page)[1]]
    for _ in range(2):
        page.locator("table.answer:visible th button").first.click()
    assert [row["rank"] for row in answer(page)[1]] == ranks[::-1]


# -- the runs to list ------------------------------------------------------------------------------------------


def test_eight_runs_can_be_filtered(browser, tmp_path):
    given = inputs(skills=(2.2, 2.15, 2.1, 1.0, 0.9, 0.8, 0.7, 0.6), segments=None, grouping=None)
    runs = {name: evaluate(y, **options) for name, (y, options) in given.items()}
    comparison = compare(runs, rank_by="multiclass/accuracy", equivalence=0.35)
    opened, errors = open_page(browser, comparison.report(tmp_path / "review.html"))
    near = [
        run.name for run in comparison.runs if math.isfinite(run.equivalent_within) and not run.tied
    ]
    assert near  # ruled out, but equivalent
    words = opened.locator("table.ranking tr.equivalent.behind .badge").all_inner_texts()
    assert words == ["ruled out, but equivalent within 0.35"] * len(near)

    def shown():
        rows = opened.locator("table.ranking tbody tr").evaluate_all(
            "rows => rows.filter(r => !r.hidden).map(r => r.cells[1].textContent)"
        )
        return sorted(rows)

    assert len(shown()) == 8
    opened.locator("#find-tied").check()
    tied = sorted(run.name for run in comparison.runs if run.tied)
    assert shown() == tied
    assert 1 <= len(tied) < 8
    assert opened.locator("#find-live").inner_text() == f"{len(tied)} of 8 runs"
    choose(opened, "Log loss")  # a table of another metric is filtered by its own standings
    _, rows = answer(opened)
    seen = opened.locator("table.answer:visible tbody tr").evaluate_all(
        "rows => rows.map(r => r.hidden)"
    )
    assert seen == [row["status"] == "behind" for row in rows]
    opened.locator("#find-tied").uncheck()
    opened.locator("#find-name").fill("RUN 3")
    assert shown() == ["run 3 <b>"]
    assert opened.locator("table.answer:visible tbody tr:visible .run").all_inner_texts() == [
        "run 3 <b>"
    ]
    # the constant answer, which is no run
    assert opened.locator("table.ranking tfoot tr").is_visible()
    opened.locator("#find-name").fill("")
    assert len(shown()) == 8
    assert errors == []
    opened.close()


def test_few_runs_have_no_filter_and_one_run_nothing_to_choose(
    page, browser, evaluations, tmp_path
):
    assert page.locator("#find").is_hidden()
    name, own = next(iter(evaluations.items()))
    opened, errors = open_page(browser, compare({name: own}).report(tmp_path / "one.html"))
    assert opened.locator("#other-metrics, #pair, button.pick").count() == 0
    assert errors == []
    opened.close()


@pytest.mark.parametrize(
    ("twins", "named"),
    [
        (2, "“twin 0” and “twin 1”"),
        (4, "“twin 0”, “twin 1”, “twin 2” and “twin 3”"),
        (9, "“twin 0”, “twin 1”, “twin 2” and 6 more"),
    ],
)
def test_runs_of_one_value_are_first_together(browser, evaluations, tmp_path, twins, named):
    (_, good), (_, better), (_, bad), *_ = evaluations.items()
    names = [f"twin {number}" for number in range(twins)]
    runs = {"poor": bad, "good": good} | dict.fromkeys(reversed(names), better)
    opened, errors = open_page(
        browser, compare(runs, rank_by="multiclass/accuracy").report(tmp_path / "twins.html")
    )
    choose(opened, "Brier score")
    sentence, rows = answer(opened)
    value = better.metrics["probability/brier"]
    assert sentence.startswith(f"{named} have the best Brier score (4 classes): {value:.3f}. ")
    assert ". “twin 0” is one of them. " in sentence
    assert [row["rank"] for row in rows] == ["1"] * twins + [str(twins + 1), str(twins + 2)]
    assert rows[0]["name"] == "twin 0"
    assert errors == []
    opened.close()


@pytest.fixture(scope="module")
def kinds():
    """Reviews of which some have less to choose from."""
    codes = [[{"a.1", "b.2"}, {"b.1"}, {"a.2"}] * 20, [{"a.2", "b.2"}, {"b.2"}, {"a.2"}] * 20]
    families = {
        "one": evaluate_families(codes[0], codes[1], Prefix(".")),
        "two": evaluate_families(codes[0], codes[0], Prefix(".")),
    }
    given = inputs(segments=None)
    labelled = {
        name: evaluate(y, np.array(LABELS)[o["y_prob"].argmax(axis=1)])
        for name, (y, o) in given.items()
    }
    probable = {name: evaluate(y, **options) for name, (y, options) in given.items()}
    (first, own), (second, other), *_ = probable.items()
    apart = {
        first: own,
        second: evaluate(
            given[second][0][:300], y_prob=given[second][1]["y_prob"][:300], labels=LABELS
        ),
    }
    turned = {
        first: own,
        second: other.regroup(Grouping({"x": LABELS[:1], "y": LABELS[1:]}, positive="x")),
    }
    names = ["multiclass/accuracy", "probability/log_loss"]
    return {
        "sets of codes": compare(families),
        "labels only": compare(labelled),
        "pareto": compare(probable, rank_by=names),
        "two rankings": compare(apart, rank_by="multiclass/accuracy"),
        "groups differ": compare(turned, rank_by="multiclass/accuracy"),
        "gates stop some": compare(
            probable, rank_by="binary/recall", require="multiclass/accuracy >= 0.7"
        ),
        "gates stop all": compare(probable, require="multiclass/accuracy >= 0.99"),
    }


@pytest.mark.parametrize(
    ("kind", "charts"),
    [
        ("sets of codes", 0),
        ("labels only", 0),
        ("pareto", 3),
        ("two rankings", 0),
        ("groups differ", 1),
        ("gates stop some", 3),
        ("gates stop all", 0),
    ],
)
def test_what_a_page_has_can_be_chosen(browser, kinds, kind, charts, tmp_path):
    comparison = kinds[kind]
    opened, errors = open_page(browser, comparison.report(tmp_path / "review.html"))
    ranking = comparison.ranking
    titles = opened.locator("#by-metric option").all_text_contents()
    assert bool(titles) == (ranking is not None and len(ranking.runs) > 1)
    for title in titles:
        choose(opened, title)
        sentence, rows = answer(opened)
        assert re.search("may be the best|ruled out as the best", sentence)
        assert len(rows) == len(ranking.runs)
    assert opened.locator("#pair-charts figure").count() == charts
    if titles:
        opened.locator("table.ranking button.pick").last.click()
        assert opened.locator("tr.picked").count() > 0
        if charts:
            lines = opened.locator("#pair-charts figure").first.locator("path[data-run]:visible")
            assert lines.count() == 2
    assert errors == []
    opened.close()


# -- where it stands -------------------------------------------------------------------------------------------


def test_the_page_reads_without_scripts(browser, comparison, file):
    context = browser.new_context(java_script_enabled=False)
    opened = context.new_page()
    opened.goto(file.as_uri())
    assert opened.locator("#other-metrics").is_hidden()
    assert opened.locator("#pair-knob").is_hidden()
    assert opened.locator("#pair h2").is_visible()
    changed = pairs(file.read_text(encoding="utf-8"))[1]
    _, sentences, rows = pair_of(opened)
    assert sentences == changed["sentences"]
    assert rows == changed["rows"]
    assert opened.locator("#pair-charts path[data-run]:visible").count() == 6
    assert opened.locator("table.ranking svg.bar").count() >= 2 * len(comparison.ranking.runs) - 1
    assert opened.locator("#questions > summary").is_visible()
    context.close()


def test_it_works_in_a_frame_without_a_size_or_storage(browser, file, evaluations, tmp_path):
    content = escaping.escape(file.read_text(encoding="utf-8"), quote=True)
    outer = tmp_path / "outer.html"
    outer.write_text(
        f'<!DOCTYPE html><iframe sandbox="allow-scripts" srcdoc="{content}" width=0 height=0></iframe>',
        encoding="utf-8",
    )
    opened, errors = open_page(browser, outer)
    frame = opened.frame_locator("iframe")
    frame.locator("#by-metric").wait_for(state="attached")
    opened.evaluate(
        "() => { const f = document.querySelector('iframe'); f.width = 625; f.height = 668; }"
    )
    choose(frame, "Accuracy")
    ranking = compare(evaluations, rank_by="multiclass/accuracy").ranking
    assert [row["name"] for row in answer(frame)[1]] == [run.name for run in ranking.runs]
    frame.locator("table.ranking button.pick").last.click()
    assert frame.locator("#pair [data-pair]:visible").count() == 1
    assert errors == []
    opened.close()


def test_names_that_reorder_text_stay_text(browser, tmp_path):
    codes = random_labels(200, 3)
    names = np.array(["x\u202ey", "אב", "</script>"])
    runs = {
        name: evaluate(names[codes], names[random_guesses(codes, 3, right, 1)])
        for name, right in (("a\u202eb", 0.8), ("אבג", 0.5))
    }
    opened, errors = open_page(browser, compare(runs).report(tmp_path / "review.html"))
    choose(opened, "Accuracy")
    sentence, rows = answer(opened)
    assert r"“a\u202eb”" in sentence
    assert {row["name"] for row in rows} == {r"a\u202eb", "\u2068אבג\u2069"}
    texts = opened.locator("#questions pre").all_text_contents()
    assert len(texts) >= 3
    assert not set("\u202e\u2068") & set("".join(texts))
    assert errors == []
    opened.close()


def test_what_a_run_adds_to_the_page_is_small():
    """Eleven classes and two groups: at most 24 kB a run, which holds its row by each of 22 other metrics."""
    y, models = random_models([2.5] * 6, n=2000, k=11)
    grouping = Grouping({"low": range(5), "high": range(5, 11)}, positive="high")
    runs = {
        f"run {number_}": evaluate(y, y_prob=p, grouping=grouping)
        for number_, p in enumerate(models)
    }
    sizes = [
        len(html(compare(dict(list(runs.items())[:n])), pictures={}, rows=False)) for n in (3, 6)
    ]
    assert (sizes[1] - sizes[0]) / 3 <= 24_000
