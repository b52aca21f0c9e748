"""What reports and reviews say of probabilities and of costs: sentences, tables and figures agree with the numbers."""

from __future__ import annotations

import functools
import math
import os
import re
import warnings
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.colors import to_hex

from cmtrack import Grouping, compare, evaluate
from cmtrack.comparison import break_even
from cmtrack.digits import interval, number, with_interval
from cmtrack.report import report_html
from cmtrack.report import verdict as sentences_on

# a page shows it only inside its sentences
from cmtrack.report.formatting import percents_apart, points
from cmtrack.report.review import Review, context, html, markdown, verdict
from support import agreement
from support.agreement import average, confidence, contradictions, judgement
from support.problems import random_features, random_labels, random_problem, random_scores

TENTHS = np.arange(1, 10) / 10
JUDGED = ["binary", "calibration", "prevalence"]
"""The sections that speak of the probabilities of the positive group."""


def of_shares(observed, scores=TENTHS, n=60, **options):
    """n samples of each score, of which a share is positive."""
    positive = np.rint(np.asarray(observed) * n).astype(int)
    y = np.concatenate([np.repeat([1, 0], [k, n - k]) for k in positive])
    s = np.repeat(scores, n)
    return evaluate(
        np.where(y == 1, "bad", "good"),
        y_prob=np.c_[1 - s, s],
        labels=["good", "bad"],
        positive="bad",
        **options,
    )


def logistic(slope, shift=0.0):
    return 1 / (1 + np.exp(-(slope * np.log(TENTHS / (1 - TENTHS)) + shift)))


CASES = {
    "right": (lambda: of_shares(TENTHS), "no miscalibration found"),
    "over-confident": (lambda: of_shares(logistic(0.5)), "over-confident"),
    "under-confident": (lambda: of_shares(logistic(2.0)), "under-confident"),
    "too high": (lambda: of_shares(logistic(1.0, -0.8)), "too high"),
    "too low": (lambda: of_shares(logistic(1.0, 0.8)), "too low"),
    "both": (lambda: of_shares(logistic(0.5, -0.8)), "over-confident"),
    "turned round": (lambda: of_shares(1 - TENTHS), "the wrong way round"),
    "wave": (
        lambda: of_shares(TENTHS + 0.09 * (np.cos(2 * np.pi * TENTHS) + 1 / 9), n=400),
        "miscalibrated",
    ),
    "slight": (
        lambda: of_shares(TENTHS + 0.008 * np.sign(0.5 - TENTHS), n=8000),
        "negligibly over-confident",
    ),
    "constant": (lambda: of_shares([0.25], [0.25], n=400), "no miscalibration found"),
    "constant and wrong": (lambda: of_shares([0.25], [0.5], n=400), "too high"),
    "perfect": (lambda: of_shares([0, 1], [0, 1]), "all came true"),
    "certain and wrong": (
        lambda: of_shares([0.05, 0.5, 1], [0, 0.5, 1]),
        "some 0% or 100% scores are wrong",
    ),
    "parted": (lambda: of_shares([0, 1], [0.3, 0.7]), "under-confident"),
    "one class": (lambda: of_shares([1], [0.9], n=200), "too low"),
    "one class, few": (lambda: of_shares([1], [0.9], n=5), "no miscalibration found"),
    "few": (lambda: of_shares([0.2, 0.8], [0.25, 0.75], n=20), "no miscalibration found"),
    "few positives": (lambda: of_shares([0.01], [0.012], n=500), "no miscalibration found"),
    "weights": (
        lambda: of_shares(logistic(0.5), sample_weight=np.full(540, 0.7)),
        "over-confident",
    ),
    "clusters": (lambda: of_shares(logistic(0.5), groups=np.arange(540) % 90), "over-confident"),
    "nearly all": (lambda: of_shares([0.2, 0.998], [0.2, 0.82], n=1000), "too low"),
    "rare": (lambda: of_shares([0.001, 0.004, 0.1], [0.2, 0.4, 0.7], n=3000), "too high"),
    "nearly none": (lambda: of_shares([0.05, 0.5], [0.004, 0.5], n=1000), "over-confident"),
    "clusters without rows": (
        lambda: replace(of_shares(logistic(0.5), groups=np.arange(540) % 90), rows=None),
        "not tested",
    ),
    "perfect, clusters": (
        lambda: of_shares([0, 1], [0, 1], groups=np.arange(120) // 2),
        "all came true",
    ),
}


@functools.cache
def case(name):
    return CASES[name][0]()


@pytest.mark.parametrize("name", CASES)
def test_the_word_is_of_the_numbers_and_stands_in_the_sentence(name):
    evaluation = case(name)
    found = judgement(evaluation)
    assert found.word == CASES[name][1]
    metrics = evaluation.metrics
    alpha, p = 1 - evaluation.confidence_level, metrics["calibration/pvalue"]
    words = set(found.word.removeprefix("negligibly ").split(", "))
    if words <= {"no miscalibration found", "unclear"}:
        assert p > alpha
    elif words <= {"not tested", "all came true"}:
        assert math.isnan(p)
    else:
        assert p <= alpha
        assert all(word in found.sentence for word in words)
    if "over-confident" in words:
        assert evaluation.intervals["calibration/slope"][1] < 1
    if {"too high", "too low"} & words:
        assert ("too high" in words) == (metrics["prevalence/bias"] > 0)
        assert "more than chance explains" in average(evaluation)
    if found.word != "all came true" and not words & set(agreement.KINDS):
        size, ends = metrics["calibration/error"], evaluation.intervals.get("calibration/error")
        below = size == 0 and ends is not None
        assert (
            f"error: 0 to {number(ends[1], ends)}" if below else with_interval(size, ends)
        ) in found.sentence
    assert "“bad”" in found.sentence


@pytest.mark.slow
def test_a_mean_that_is_far_off_is_never_too_small_to_matter():
    """Of 18 rows each has a bin of its own, so that no error is seen, though the mean is off by 24 points."""
    found = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        s = rng.beta(0.6, 3, 18)
        y = rng.random(18) < np.minimum(1, 2.6 * s + 0.1)
        if y.all() or not y.any():
            continue
        evaluation = evaluate(y.astype(int), y_prob=s, labels=[0, 1], positive=1, sections=JUDGED)
        low, high = evaluation.intervals["prevalence/bias"]
        if high < -0.01 or low > 0.01:
            found += evaluation.metrics["calibration/pvalue"] <= 0.05
            assert "too small to matter" not in judgement(evaluation).sentence, seed
    assert found > 5


@pytest.mark.slow
def test_an_example_is_never_the_mean_that_the_next_sentence_calls_chance():
    """Below 40 rows there is one part of the rows, and its mean is that of all."""
    found = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        s = np.round(rng.random(24), 2)
        y = rng.random(24) < np.where(s > 0.5, 0.45, 0.55)
        evaluation = evaluate(y.astype(int), y_prob=s, labels=[0, 1], positive=1, sections=JUDGED)
        if (
            "within chance" in average(evaluation)
            and evaluation.metrics["calibration/pvalue"] <= 0.05
        ):
            found += 1
            assert "of rows with a score of" not in judgement(evaluation).sentence, seed
    assert found > 5


@pytest.mark.slow
def test_the_confidence_of_rows_that_belong_together_has_a_side():
    rows = of_three(TOO_SURE - 0.1, groups=np.arange(600) // 3)
    assert confidence(rows).word == "over-confident"
    assert (
        confidence(of_three(TENTHS[3:], groups=np.arange(600) // 3)).word
        == "no miscalibration found"
    )
    assert confidence(replace(rows, rows=None)).word in ("miscalibrated", "not tested")


def test_the_sentence_of_the_over_confident():
    assert judgement(case("over-confident")).sentence == (
        "The probabilities of “bad” are over-confident: of rows with a score of about 90%, about 75% are “bad” "
        "(calibration p = 0.002)."
    )
    assert average(case("over-confident")) == (
        "On average, the probability of “bad” is 50.0%, and 50.0% of the rows are “bad”: a difference of 0.0 percentage "
        "points [−4.1, 4.1], which is within chance."
    )


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("certain and wrong", "of 60 rows with a score of 0%, 3 are “bad” (calibration p ≤ 0.001"),
        (
            "perfect",
            "All probabilities of “bad” are 0% or 100% and came true, so there is nothing to test.",
        ),
        ("constant", "; every row has the same probability, 25.0%."),
        ("few", "; with 40 rows the test finds only gross faults."),
        ("few positives", "; with 5 rows that are “bad” the test finds only gross faults."),
        ("one class, few", "; with 5 rows the test finds only gross faults."),
        (
            "clusters without rows",
            "The probabilities of “bad” are not tested (rows are in clusters, ",
        ),
        ("clusters without rows", "Calibration error 0.089, slope 0."),
        ("nearly all", ": of rows with a score of about 82%, more than 99% are “bad”"),
        ("nearly none", ": of rows with a score of less than 1%, about 5% are “bad”"),
        (
            "slight",
            "are negligibly over-confident: the fault is real but smaller than 1 percentage point, which is too small",
        ),
    ],
)
def test_what_a_reader_must_know_beside_the_word(name, part):
    assert part in judgement(case(name)).sentence


def test_an_interval_that_the_test_does_not_confirm_is_unclear():
    y = random_labels(500)
    unclear = 0
    for seed in (0, 15, 22, 25):  # of 0 to 29, those in which it happens, and one in which not
        evaluation = evaluate(y, y_prob=random_scores(y, 2.0, seed, slope=2.5), sections=JUDGED)
        found = judgement(evaluation)
        ends = evaluation.intervals["calibration/slope"]
        if evaluation.metrics["calibration/pvalue"] > 0.05 and ends[1] < 1:
            assert found.word == "unclear"
            assert (
                f"but the slope is {with_interval(evaluation.metrics['calibration/slope'], ends)}"
                in found.sentence
            )
            unclear += 1
    assert unclear


@pytest.mark.parametrize(
    "name", ["over-confident", "under-confident", "too high", "wave", "constant and wrong"]
)
def test_the_example_is_read_off_the_curve_on_the_side_of_the_word(name):
    evaluation = case(name)
    curve = evaluation.calibration
    sentence = judgement(evaluation).sentence
    (found,) = re.findall(r"of rows with a score of about (\S+)%, about (\S+)% are “bad”", sentence)
    given, observed = (float(share) / 100 for share in found)
    # the sentence has whole per cent
    ends = np.interp([given - 0.005, given + 0.005], curve.scores, np.arange(len(curve.scores)))
    near = curve.recalibrated[math.floor(ends[0]) : math.ceil(ends[1]) + 1]
    assert near.min() - 0.006 <= observed <= near.max() + 0.006
    assert abs(given - observed) > 0.5 * np.abs(curve.scores - curve.recalibrated).max()
    centre = evaluation.metrics["prevalence/actual"]
    if name == "over-confident":
        assert abs(given - centre) > abs(observed - centre)
    if name == "under-confident":
        assert abs(given - centre) < abs(observed - centre)


def test_without_the_section_the_mean_alone_is_said():
    evaluation = case("too high").with_sections(["binary", "prevalence"])
    assert judgement(evaluation) is None
    said = [text for text in sentences_on(evaluation) if "robabilit" in text]
    assert said == [average(evaluation)]
    alone = case("too high").with_sections(["calibration"])
    assert average(alone) == ""
    assert judgement(alone) == judgement(case("too high"))


def test_grouped_classes_are_judged_by_their_groups_and_others_not_at_all():
    y, _, p = random_problem(2, k=3, skill=1.0, slope=3.0)
    groups = Grouping({"low": [0, 1], "high": [2]}, positive="high", name="half")
    assert judgement(evaluate(y, y_prob=p)) is None
    assert (
        "The probabilities of “high” are over-confident"
        in judgement(evaluate(y, y_prob=p, grouping=groups)).sentence
    )


# -- review -----------------------------------------------------------------------------------------------------


def probabilities(comparison):
    """The table of probabilities on the page of a review."""
    return context(Review(comparison), None, {})["probabilities"]


def sentences_on_costs(comparison):
    """What a review says of the cost of a miss, also without an answer."""
    return [
        text
        for text in verdict(Review(comparison))
        if re.search("of a miss|a miss costs|missed positive costs|^Costs of", text)
    ]


def runs(n=800, **options):
    y, skill = random_labels(n, seed=4), 1.5
    seen = {
        "honest": (skill, 0),
        "sharp": (2 * skill, 0),
        "shy": (0.4 * skill, 0),
        "high": (skill, 0.9),
    }
    names, out = np.array(["good", "bad"]), {}
    for name, (slope, shift) in seen.items():
        s = random_scores(y, skill, 5, slope=slope, shift=shift)
        out[name] = evaluate(
            names[y], y_prob=np.c_[1 - s, s], labels=list(names), positive="bad", **options
        )
    return out


@functools.cache
def reviewed():
    return compare(runs(), rank_by="probability/log_loss")


@pytest.mark.slow
def test_the_table_of_probabilities_says_what_the_reports_say():
    comparison = reviewed()
    table = probabilities(comparison)
    assert table.name == "Are the probabilities of “bad” right?"
    assert table.heads == {
        "name": "Run",
        "verdict": "Verdict",
        "probability/log_loss": "Log loss",
        "probability/brier": "Brier",
        "calibration/error": "Cal. error",
        "calibration/pvalue": "p",
        "calibration/slope": "Slope",
    }
    words = {}
    for row, run in zip(table.rows, comparison.ranking.runs, strict=True):
        cells = dict(row.cells)
        word = cells.pop("verdict")
        found, metrics = judgement(run.evaluation), run.evaluation.metrics
        assert (cells.pop("name").text, word.text, word.title) == (run.name, *found)
        assert {key: cell.sort for key, cell in cells.items()} == {
            key: metrics[key] for key in cells
        }
        error = cells["calibration/error"]
        assert error.interval == interval(error.sort, run.evaluation.intervals["calibration/error"])
        words[run.name] = word.text
    assert words == {
        "honest": "no miscalibration found",
        "sharp": "over-confident",
        "shy": "under-confident",
        "high": "too high",
    }
    page, text = html(comparison, pictures={}), markdown(comparison)
    assert page.index("Ranking") < page.index("Are the probabilities of “bad” right?")
    for word in words.values():
        assert f">{word}</td>" in page
        assert f"| {word} |" in text


def test_an_infinite_loss_and_a_run_without_a_test_are_shown():
    y = np.array([0, 1] * 50)
    sure = np.where(np.arange(100) < 96, y, 1 - y).astype(float)
    table = probabilities(
        compare(
            {
                "sure": evaluate(y, y_prob=sure, labels=[0, 1]),
                "right": evaluate(y, y_prob=y * 1.0, labels=[0, 1]),
            },
            rank_by="multiclass/accuracy",
        )
    )
    cells = {
        row.cells["name"].text: [cell.text for cell in row.cells.values()][1:] for row in table.rows
    }
    assert cells["sure"][:2] == ["some 0% or 100% scores are wrong", "infinite"]
    assert cells["right"][:2] == ["all came true", "0.000"]
    assert cells["right"][4:] == ["–"]


def of_three(observed, given=TENTHS[3:], n=100, **options):
    """n predictions of each confidence, of which a share is right."""
    right = np.concatenate([np.arange(n) < round(share * n) for share in observed])
    y = np.arange(len(right)) % 3
    sure = np.repeat(given, n)
    p = np.repeat((1 - sure)[:, None] / 2, 3, axis=1)
    p[np.arange(len(y)), np.where(right, y, (y + 1) % 3)] = sure
    return evaluate(y, y_prob=p, labels=range(3), **options)


TOO_SURE = TENTHS[3:] - np.linspace(0.02, 0.12, 6)


@pytest.mark.parametrize(
    ("observed", "word", "part"),
    [
        (
            TENTHS[3:],
            "no miscalibration found",
            "No miscalibration is found in the probabilities of the predicted classes (calibration p = ",
        ),
        (
            TOO_SURE,
            "over-confident",
            "are over-confident: of predictions with a score of about 90%, about 78% are correct",
        ),
        (
            TENTHS[3:] + 0.09,
            "under-confident",
            "are under-confident: of predictions with a score of about ",
        ),
    ],
    ids=["right", "over", "under"],
)
def test_the_confidence_of_predictions_is_judged(observed, word, part):
    evaluation = of_three(observed)
    found = confidence(evaluation)
    assert found.word == word
    assert part in found.sentence
    assert (evaluation.metrics["confidence/pvalue"] <= 0.05) == (word != "no miscalibration found")
    assert found.sentence in sentences_on(evaluation)
    assert judgement(evaluation) is None


def test_weights_of_fractions_change_no_word_of_the_confidence():
    weighted = confidence(of_three(TOO_SURE, sample_weight=np.full(600, 0.9)))
    assert weighted.word == confidence(of_three(TOO_SURE)).word == "over-confident"


def test_certain_predictions_that_are_wrong_are_counted():
    found = confidence(of_three([0.6, 0.95], [0.6, 1.0]))
    assert found.word == "some 0% or 100% scores are wrong"
    assert (
        "of 100 predictions with a score of 100%, 5 are wrong (calibration p ≤ 0.001"
        in found.sentence
    )


def test_without_two_groups_the_predictions_are_judged():
    comparison = compare({"sure": of_three(TOO_SURE), "right": of_three(TENTHS[3:])})
    table = probabilities(comparison)
    assert table.name == "Are the probabilities right?"
    heads = ["Run", "Verdict", "Log loss", "Brier", "Cal. error", "p"]
    assert [*table.heads.values()] == heads
    for row, run in zip(table.rows, comparison.ranking.runs, strict=True):
        word = row.cells["verdict"]
        assert (word.text, word.title) == confidence(run.evaluation)
        for key in ("confidence/error", "confidence/pvalue"):
            assert row.cells[key].sort == run.evaluation.metrics[key]
    legend = comparison.figures()["reliability"].axes[0].get_legend().get_texts()
    assert [text.get_text().split("; ")[-1] for text in legend] == [
        confidence(run.evaluation).word for run in comparison.ranking.runs
    ]
    assert sentences_on_costs(comparison) == []


def test_the_table_has_the_losses_alone_and_without_probabilities_it_is_absent():
    shares_right = {"sure": TOO_SURE, "right": TENTHS[3:]}
    alone = compare(
        {
            name: of_three(own, sections=["multiclass", "probability"])
            for name, own in shares_right.items()
        }
    )
    table = probabilities(alone)
    assert (table.name, [*table.heads.values()]) == ("Probabilities", ["Run", "Log loss", "Brier"])
    assert all(row.cells[key].interval for row in table.rows for key in list(table.heads)[1:])
    assert "reliability" not in alone.figures()
    y = np.arange(200) % 4
    labels = compare(
        {
            name: evaluate(y, (y + (np.arange(200) < k)) % 4)
            for name, k in {"a": 30, "b": 40}.items()
        }
    )
    assert probabilities(labels) is None
    assert "robabilities" not in html(labels, pictures={}).split("<main")[1].split("Methods")[0]


def test_a_run_keeps_its_colour_where_others_have_no_probabilities():
    y = random_labels(400)
    decisions = random_features(y, 2, 2.0, 1) @ [-1, 1]
    scored = {
        "scores": evaluate(y, y_score=decisions),
        "odds": evaluate(y, y_prob=random_scores(y, 1.5, 2)),
    }
    comparison = compare(scored, rank_by="binary/roc_auc")
    assert [run.name for run in comparison.runs] == ["scores", "odds"]
    figures = comparison.figures()
    roc, reliable = (
        {line.get_label().split(":")[0]: line.get_color() for line in figures[name].axes[0].lines}
        for name in ("roc", "reliability")
    )
    assert reliable["odds"] == roc["odds"] != roc["scores"]
    assert "scores" not in reliable
    (row,) = probabilities(comparison).rows
    assert row.cells["name"].text == "odds"


def test_the_curves_of_a_run_have_one_colour_and_the_words_of_the_table():
    ranking = reviewed().ranking
    figures = [reviewed().figures()[name] for name in ("roc", "precision_recall", "reliability")]
    colours = [
        {
            str(line.get_label()).split(":")[0]: to_hex(line.get_color())
            for line in figure.axes[0].lines
            if not str(line.get_label()).startswith("_")
        }
        for figure in figures
    ]
    assert colours[0] == colours[1] == colours[2]
    assert list(colours[0]) == [run.name for run in ranking.runs]
    legend = [text.get_text() for text in figures[2].axes[0].get_legend().get_texts()]
    for text, run in zip(legend, ranking.runs, strict=True):
        assert text.endswith(f"; {judgement(run.evaluation).word}")
        assert f"calibration error {run.evaluation.metrics['calibration/error']:.3f}" in text
    ax = figures[1].axes[0]
    for line, run in zip(
        [line for line in ax.lines if not str(line.get_label()).startswith("_")],
        ranking.runs,
        strict=True,
    ):
        x, y = line.get_xdata(), line.get_ydata()
        assert np.diff(x) @ y[1:] == pytest.approx(
            run.evaluation.metrics["binary/average_precision"]
        )
    ax = figures[2].axes[0]
    curve = ranking.runs[0].evaluation.calibration
    line = next(
        line for line in ax.lines if str(line.get_label()).startswith(f"{ranking.runs[0].name}:")
    )
    np.testing.assert_array_equal(line.get_ydata(), curve.recalibrated)


# -- costs ------------------------------------------------------------------------------------------------------


def pair(false_alarms, misses, n=400):
    """Two models on the same rows: numbers of errors that only the one makes."""
    y = np.repeat([0, 1], n)
    one, two = y.copy(), y.copy()
    one[: false_alarms[0]], two[n // 2 : n // 2 + false_alarms[1]] = 1, 1
    one[n : n + misses[0]], two[len(y) - misses[1] :] = 0, 0
    return {"one": evaluate(y, one, labels=[0, 1]), "two": evaluate(y, two, labels=[0, 1])}


FORMS = {
    "interval": (
        (90, 30), (20, 60),
        "“A” is cheaper than “B” if a miss costs more than 1.5 [0.849, 2.86] false alarms.",
    ),
    "down to 0": (
        (31, 30), (20, 60),
        "“A” is cheaper than “B” if a miss costs more than 0.456 false alarms; at other costs, "
        "neither run is shown to be cheaper (estimated break-even: 0.025).",
    ),
    "up to infinity": (
        (90, 30), (30, 31),
        "“B” is cheaper than “A” if a miss costs less than 3.43 false alarms; at other costs, "
        "neither run is shown to be cheaper (estimated break-even: 60).",
    ),
    "every ratio": (
        (31, 30), (30, 31),
        "“A” is not shown to be cheaper or more expensive than “B” at any cost of a miss (estimated break-even: 1).",
    ),
    "empty": ((90, 30), (60, 20), "“B” is cheaper than “A” whatever a miss costs."),
    "two pieces": (
        (44, 30), (44, 30),
        "“B” is cheaper than “A” if a miss costs 0.234 to 4.28 false alarms; at other costs, "
        "neither run is shown to be cheaper.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", FORMS)
def test_the_break_even_claims_a_cheaper_model_only_where_it_is_shown(kind):
    false_alarms, misses, text = FORMS[kind]
    found = break_even(*pair(false_alarms, misses).values())
    assert found.kind == kind
    assert found.sentence() == text
    # rows that only the one has wrong, of 800
    x, y = ((ours - theirs) / 800 for ours, theirs in (false_alarms, misses))
    squares = [sum(rows) / 800**2 for rows in (false_alarms, misses)]
    for low, high in found.told_apart:
        for ratio in np.geomspace(max(low, 1e-6) * 1.02, min(high, 1e6) * 0.98, 50):
            assert abs(x + ratio * y) > 1.95 * math.sqrt(squares[0] + ratio**2 * squares[1])
    numbers = [float(number) for number in re.findall(r"\d+(?:\.\d+)?", text)]
    assert all(
        min(abs(end - n) for n in numbers) < 0.01 * end
        for ends in found.told_apart
        for end in ends
        if 0 < end < math.inf
    )


def test_the_review_says_from_which_cost_of_a_miss_on_a_run_is_cheaper():
    comparison = compare(pair((90, 30), (20, 60)), rank_by="binary/precision")
    said = sentences_on_costs(comparison)
    assert said == [
        "“one” is cheaper than “two” if a miss costs more than 1.5 [0.849, 2.86] false alarms."
    ]
    assert said[0] in context(Review(comparison), None, {})["further"]
    assert said[0] in html(comparison, pictures={})
    close = compare(pair((30, 30), (20, 21)), rank_by="binary/precision")
    assert sentences_on_costs(close) == [
        "Whatever a missed positive costs, the errors of “one” are not shown to be cheaper or more expensive than those of “two”."
    ]
    three = pair((30, 30), (20, 21))
    said = sentences_on_costs(compare(three | {"three": three["two"]}, rank_by="binary/precision"))
    assert len(said) == 1
    assert re.fullmatch(
        "Whatever a missed positive costs, the errors of “.*?” are not shown to be cheaper or more expensive than those of “.*?” or “.*?”.",
        said[0],
    )
    four = three | {"three": three["two"], "four": three["two"]}
    assert sentences_on_costs(compare(four, rank_by="binary/precision"))[1:] == [
        "Costs of errors are compared only with the 2 best other runs."
    ]


@pytest.mark.parametrize(
    "metric", ["binary/average_precision", "binary/roc_auc", "probability/log_loss", "spcc/binary"]
)
def test_a_ranking_by_scores_says_nothing_of_costs_at_one_threshold(metric):
    y = np.repeat([0, 1], 200)
    rng = np.random.default_rng(0)
    runs = {}
    for name in ("one", "two"):
        score = np.clip(0.3 * y + 0.6 * rng.random(400), 0.01, 0.99)
        runs[name] = evaluate(y, y_prob=np.c_[1 - score, score], labels=[0, 1], positive=1)
    assert sentences_on_costs(compare(runs, rank_by="binary/f1"))
    assert sentences_on_costs(compare(runs, rank_by=metric)) == []
    assert sentences_on_costs(compare(runs, rank_by=[metric, "binary/f1"]))


def test_a_run_that_predicts_one_class_has_no_break_even():
    found = pair((90, 30), (20, 60))
    never = evaluate(np.repeat([0, 1], 400), np.zeros(800, int), labels=[0, 1])
    assert (
        sentences_on_costs(
            compare({"one": found["one"], "never": never}, rank_by="multiclass/accuracy")
        )
        == []
    )


def test_no_break_even_is_said_of_runs_that_are_not_paired():
    found = pair((90, 30), (20, 60))
    assert (
        sentences_on_costs(compare({name: replace(one, rows=None) for name, one in found.items()}))
        == []
    )


# -- words, curves and numbers read together --------------------------------------------------------------------


def random_evaluation(seed):
    """Two classes or several, calibrated, bent or shifted, sharp or rare, with groups, weights, ties, sure scores."""
    rng = np.random.default_rng([31, seed])
    n, k = int(rng.choice([40, 150, 500, 2500])), int(rng.choice([2, 2, 2, 3, 5]))
    p = rng.dirichlet(
        np.full(k, rng.choice([0.05, 0.3, 1.0, 3.0])) * rng.dirichlet(np.ones(k)) * k, n
    )
    p = np.clip(p, 1e-9, None)
    p /= p.sum(axis=1, keepdims=True)
    true = p ** rng.choice([1.0, 1.0, 1.0, 1.02, 0.7, 1.5]) * np.exp(
        rng.choice([0.0, 0.0, 0.3]) * np.arange(k)
    )
    true /= true.sum(axis=1, keepdims=True)
    y = np.minimum((rng.random((n, 1)) > np.cumsum(true, axis=1)).sum(axis=1), k - 1)
    digits = rng.choice([None, None, 1, 2])
    if digits is not None:
        p = np.round(p, int(digits)) + 0.0
        p[:, 0] = np.clip(1 - p[:, 1:].sum(axis=1), 0, 1)
        p /= p.sum(axis=1, keepdims=True)
    beside = rng.choice(["", "", "groups", "weights"])
    options = {"groups": np.arange(n) // 4} if beside == "groups" else {}
    if beside == "weights":
        options = {"sample_weight": rng.gamma(2, 0.5, n), "weights_are": "sampling"}
    sections = ["binary", "calibration", "confidence", "prevalence", "multiclass"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return evaluate(y, y_prob=p, labels=range(k), sections=sections, **options)


@pytest.mark.slow
def test_words_curves_and_p_values_of_random_problems_do_not_contradict_each_other():
    words = set()
    for seed in range(100 if os.environ.get("CMTRACK_TEST_ALL") else 60):
        evaluation = random_evaluation(seed)
        assert contradictions(evaluation) == [], seed
        found = (judgement(evaluation), confidence(evaluation))
        words |= {judged.word for judged in found if judged is not None}
    assert {
        "no miscalibration found",
        "signs of miscalibration",
        "unclear",
        "over-confident",
    } <= words


@pytest.mark.parametrize("name", CASES)
def test_no_case_contradicts_itself(name):
    assert contradictions(case(name)) == []


def test_a_contradiction_is_found(monkeypatch):
    """Words of another model beside the numbers of this one."""
    wrong = sentences_on(case("over-confident"))
    monkeypatch.setattr(agreement, "verdict", lambda evaluation: wrong)
    told = " ".join(contradictions(case("right")))
    for part in (
        "'over-confident' with p = 1",
        "inside the band",
        "below the margin",
        "the sentence has = 0.002",
    ):
        assert part in told


def test_a_fault_that_one_part_of_the_test_sees_inside_the_band_is_a_sign():
    y = random_labels(228, seed=1)
    evaluation = evaluate(y, y_prob=random_scores(y, 1.5, 0, slope=2.2))
    curve, found = evaluation.calibration, judgement(evaluation)
    assert curve.test.cox_pvalue <= 0.05 < curve.test.kuiper_pvalue
    assert curve.leaves_band is False
    assert found.word == "signs of miscalibration"
    assert found.sentence.startswith(
        "There are signs of miscalibration in the probabilities of “1”: calibration p = "
    )
    assert ", but the curve stays within its band (calibration error 0.115 [" in found.sentence


def test_rows_that_belong_together_and_that_the_scores_part_are_not_called_wrong():
    """80 rows without an error, of scores .0001 to .0019 and one less that: none was to be expected, and none came."""
    y = np.r_[np.ones(25, int), np.zeros(55, int)]
    off = np.random.default_rng(0).uniform(0.0001, 0.0019, 80)
    for options in ({}, {"groups": np.arange(80) % 13}):
        evaluation = evaluate(
            y, y_prob=np.where(y == 1, 1 - off, off), labels=[0, 1], positive=1, **options
        )
        assert evaluation.metrics["calibration/pvalue"] > 0.05
        assert judgement(evaluation).word == "no miscalibration found"
        one_sided = evaluate(0 * y, y_prob=off, labels=[0, 1], positive=1, **options)
        assert not one_sided.intervals["prevalence/bias"][0] <= 0
        assert "within chance. Labels drawn with these probabilities differ as much" in average(
            one_sided
        )


def test_a_mean_that_is_off_by_less_than_the_margin_is_too_little_to_matter():
    evaluation = of_shares(TENTHS - 0.004, n=15_000)
    said = average(evaluation)
    assert said.endswith(
        "too high, which is more than chance explains, but too little to matter (less than 1 percentage point)."
    )
    assert judgement(evaluation).word == "negligibly too high"


def test_of_a_rare_outcome_the_margin_is_a_tenth_of_its_share():
    evaluation = of_shares([0.004], [0.001], n=20_000)
    assert judgement(evaluation).word == "too low"


def test_an_error_of_0_is_shown_by_its_interval_alone():
    """The page has "0 to 0.070", where "0.000 [0.000, 0.070]" would look like an estimate."""
    evaluation = case("few positives")
    assert evaluation.metrics["calibration/error"] == 0
    low, high = evaluation.intervals["calibration/error"]
    assert low == 0 < high
    page = report_html(evaluation, {})
    assert f"0 to {number(high, (0, high))}</td>" in page
    assert f"[0.000, {high:.3f}]" not in page


def test_an_error_that_rounds_to_0_is_shown_like_an_error_of_0():
    """The legend had "1e−06 [0.000, 0.060]"."""
    evaluation = evaluate([0] * 60 + [1] * 60, y_prob=[1e-6] * 60 + [1 - 1e-6] * 60, positive=1)
    assert 0 < evaluation.metrics["calibration/error"] < 1e-5
    high = evaluation.intervals["calibration/error"][1]
    assert repr(evaluation.calibration).startswith(f"CalibrationCurve(error=0 to {high:.3f},")


@pytest.mark.parametrize(
    ("first", "second", "texts"),
    [
        (0.47061, 0.48148, ("47.06%", "48.15%")),  # 47.1 and 48.1 differ by 1.0, not 1.1
        (0.30, 0.35, ("30.0%", "35.0%")),
        (0.9996, 0.5, ("99.96%", "50.00%")),
        (0.0, 1.0, ("0.0%", "100.0%")),
    ],
)
def test_shares_differ_by_the_difference_that_is_shown(first, second, texts) -> None:
    interval = (first - second - 0.03, first - second + 0.03)
    assert percents_apart(first, second, interval) == texts
    shown = points(first - second, interval).partition(" ")[0].replace("−", "-")
    low, high = (float(text.rstrip("%")) for text in texts)
    assert round(low - high, 1) == float(shown)
