"""The sentences, the table, the figures and the page of a history."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from cmtrack.comparison import Answer, Chain, History, Problem, ProblemKind
from cmtrack.digits import signed_points

# The page and the terminal share these sentences and columns, which have no public door.
from cmtrack.report import history as words
from cmtrack.report.history_page import gain_figure, history_page  # behind History.report
from support.histories import ACCURACY, Story, long_story

EMPTY = History("party", "champion", "3", ACCURACY, "first", Chain())


@pytest.fixture(scope="module")
def story() -> History:
    """24 months with five promotions, a move by hand and a changed rule."""
    return long_story().history()


@pytest.fixture(scope="module")
def page(story: History) -> str:
    return history_page(story)


def lead(history: History) -> str:
    return next(iter(words.paragraphs(history)))


def promoted(months: int, *, also: tuple[str, ...] = ("1",), clusters: int | None = None) -> Story:
    """A story whose first month promotes version 2, followed by other months."""
    story = Story(clusters=clusters)
    accuracies = {"1": 0.80, "2": 0.84, "3": 0.84}
    for place in range(months + 1):
        story.add(
            f"month {place}",
            accuracies,
            challenger="2" if place == 0 else "3",
            made=f"2026-{place + 1:02}-05T08:00:00Z",
            answer=Answer.PROMOTE if place == 0 else Answer.CANNOT_TELL,
            also=() if place == 0 else also,
        )
    return story


def test_the_first_line_states_the_gain_on_later_rows(story: History) -> None:
    gain = story.gain
    assert gain is not None
    ends = signed_points(gain.difference, (gain.low, gain.high)).lstrip("+")
    value, _, interval = ends.partition(" ")
    assert lead(story) == (
        f"Version 23 of party is champion. Accuracy is {value} percentage points higher {interval} "
        "than with version 1, the first champion, on 8,000 rows evaluated since."
    )


def test_a_champion_of_the_newest_rows_gets_no_gain_from_them() -> None:
    history = promoted(0).history()
    assert lead(history) == (
        "Version 2 of party is champion. Version 2 has no rows yet that did not choose it."
    )


def test_the_gain_of_the_champion_before_is_stated_as_such() -> None:
    story = promoted(2)
    story.add(
        "month 3",
        {"1": 0.8, "2": 0.84, "4": 0.87},
        challenger="4",
        made="2026-05-05T08:00:00Z",
        answer=Answer.PROMOTE,
        also=("1",),
    )
    text = lead(story.history())
    assert "Version 4 has no rows yet that did not choose it." in text
    assert "with version 2, the champion before, than with version 1, the first champion," in text
    assert "12,000 rows evaluated since" in text


def test_after_a_rollback_only_rows_of_this_term_count() -> None:
    story = promoted(1)
    story.move_by_hand("1")
    story.add(
        "month 2",
        {"1": 0.8, "2": 0.84, "4": 0.8},
        challenger="4",
        made="2026-04-05T08:00:00Z",
        answer=Answer.CANNOT_TELL,
        also=("2",),
    )
    history = story.history()
    since = history.terms[-1].since
    pair = history.chain.promotions[-1].record.pair("1", "2", ACCURACY)
    assert since is not None
    assert pair is not None
    # Month 0 chose version 2 over version 1, so it must not count for version 1.
    assert (since.rows, since.difference) == (4000, pair.difference)
    assert lead(history) == ("Version 1 of party is champion. It is the first champion again.")
    assert history.gain is None


OWN = "own/error"


@pytest.mark.parametrize(
    ("gate", "supported"),
    [
        (f"{OWN}.difference.high < 0", "worse"),
        (f"{OWN}.high <= 0.3", "worse"),
        (f"{OWN}.difference.low > 0", "better"),
        (f"{ACCURACY}.difference.low > 0", "not shown"),
    ],
)
def test_the_rule_states_the_better_values_of_an_own_metric(gate: str, supported: str) -> None:
    story = promoted(2)
    history = story.history()
    promotions = []
    for promotion in history.chain.promotions:
        record = promotion.record
        assert record.rule is not None
        rule = replace(record.rule, rank_by=OWN, require=(gate,))
        pairs = tuple(replace(pair, metric=OWN, counts=None) for pair in record.pairs)
        record = replace(record, rule=rule, pairs=pairs)
        promotions.append(replace(promotion, record=record))
    changed = replace(history, chain=Chain(tuple(promotions)), metric=OWN)
    assert changed.terms[-1].supported(changed.better) == supported
    assert changed.to_frame()["supported"].tolist()[-1] == supported


def test_only_accuracy_counts_correct_predictions() -> None:
    history = promoted(2).history()
    assert "more correct predictions on 12,000 rows" in " ".join(words.paragraphs(history))
    story = Story(metric="binary/recall")
    for place, answer in enumerate((Answer.PROMOTE, Answer.CANNOT_TELL)):
        story.add(
            f"month {place}",
            {"1": 0.80, "2": 0.84, "3": 0.84},
            challenger=str(place + 2),
            made=f"2026-{place + 1:02}-05T08:00:00Z",
            answer=answer,
            also=("1",) if place else (),
        )
    text = " ".join(words.paragraphs(story.history()))
    assert "correct predictions" not in text
    assert "In use, the promotions changed recall by +" in text
    assert " percentage points [" in text


def test_another_level_is_stated_below_the_table() -> None:
    history = promoted(1).history()
    assert history.to_frame()["level"].tolist()[1:] == [0.95]
    assert "has level" not in " ".join(words.notes(history))
    first, *others = history.chain.promotions
    record = first.record
    assert record.rule is not None
    models = {**record.models, "9": record.models["2"]}
    rule = replace(record.rule, level=0.975)
    several = replace(first, record=replace(record, rule=rule, models=models))
    changed = replace(history, chain=Chain((several, *others)))
    note = (
        "On the rows that chose version 2, the interval has level 97.5%, because two challengers "
        "were compared."
    )
    assert note in list(words.notes(changed))
    assert note in history_page(changed)
    assert changed.to_frame()["level"].tolist()[1:] == [0.975]


def test_a_chain_says_that_it_is_a_sum_of_steps() -> None:
    story = promoted(1)
    accuracies = {"1": 0.8, "2": 0.84, "4": 0.87, "5": 0.8}
    for place, challenger in ((2, "4"), (3, "5")):
        story.add(
            f"month {place}",
            accuracies,
            challenger=challenger,
            made=f"2026-{place + 2:02}-05T08:00:00Z",
            answer=Answer.PROMOTE if challenger == "4" else Answer.KEEP,
            also=("2",),
        )
    history = story.history()
    assert history.gain is not None
    assert history.gain.how == "chain"
    assert "This is a sum of two steps from champion to champion" in lead(history)


def test_a_gain_without_later_rows_of_both_versions_is_unknown() -> None:
    story = promoted(1, also=())
    assert lead(story.history()).endswith(
        "No later rows compare it with the first champion, so its gain is unknown."
    )


def test_from_the_third_month_on_the_months_are_compared() -> None:
    def texts(months: int) -> str:
        return " ".join(words.paragraphs(promoted(months).history()))

    assert "typical month" not in texts(1)
    later = texts(3)
    months = promoted(3).history().over_months()
    assert months is not None
    assert (
        f"The gain does not differ between these three months more than chance allows (p = {months.p:.3f})."
        in later
    )
    typical = signed_points(months.typical, (months.typical_low, months.typical_high)).lstrip("+")
    value, _, interval = typical.partition(" ")
    assert f"In a typical month, it is {value} percentage points {interval}." in later
    assert "A different mix of classes can also change it from month to month." in later


def test_recall_does_not_follow_the_mix_of_classes() -> None:
    history = replace(promoted(3).history(), metric="binary/recall")
    assert not words.follows_mix(history)


def test_clusters_are_an_assumption_of_intervals_over_months() -> None:
    assert "other clusters, such as people, each month" in " ".join(
        words.notes(promoted(1, clusters=50).history())
    )
    assert "clusters" not in " ".join(words.notes(promoted(1).history()))


def test_versions_that_were_not_promoted_are_listed() -> None:
    text = words.not_promoted(promoted(2).history())
    assert text == "Not promoted: 3 (cannot tell, month 2)."


def test_the_promise_needs_a_rule_that_requires_an_improvement() -> None:
    history = promoted(2).history()
    assert words.false_promotions(history).endswith("Expect at most 0.1 false promotions.")
    promotion = history.chain.promotions[0]
    assert promotion.record.rule is not None
    lenient = replace(promotion.record.rule, require=(f"{ACCURACY}.difference.low >= -0.02",))
    changed = replace(promotion, record=replace(promotion.record, rule=lenient))
    chain = Chain((changed, *history.chain.promotions[1:]))
    assert words.false_promotions(replace(history, chain=chain)) == ""


@pytest.mark.parametrize(
    ("champion", "expected"),
    [
        ("3", "No promotions are recorded. champion is version 3."),
        (None, "No promotions are recorded. champion is not set."),
    ],
)
def test_a_model_without_records(champion: str | None, expected: str) -> None:
    history = replace(EMPTY, champion=champion)
    assert list(words.paragraphs(history)) == [expected]
    assert expected in history_page(history)
    with pytest.raises(ValueError, match="party has no months to draw"):
        history.figure()


def test_a_metric_without_differences_in_the_records_has_no_gain() -> None:
    history = replace(promoted(2).history(), metric="binary/recall")
    assert history.in_use is None
    assert list(words.paragraphs(history)) == [
        "Version 2 of party is champion. The records contain no differences in recall, so its gain "
        "is unknown."
    ]
    assert gain_figure(history) is None


def test_the_table_the_frame_and_the_page_agree(story: History, page: str) -> None:
    frame = story.to_frame()
    rows = words.champion_rows(story)
    assert [row[1] for row in rows] == frame["version"].tolist()
    for row, data in zip(rows[1:], frame.to_dict("records")[1:], strict=True):
        since = (data["low_since"], data["high_since"])
        assert row[3] == signed_points(data["difference"], (data["low"], data["high"]))
        assert row[5] == signed_points(data["difference_since"], since)
        assert row[7] == data["supported"]
        assert all(f">{cell}</td>" in page for cell in row if cell)
    by_hand = rows[frame["version"].tolist().index("16")]
    assert by_hand[0] == "2025-03-02 to 2025-04-02"
    assert by_hand[2] == "cannot tell, by hand"


def test_no_sum_over_the_rows_that_chose_is_printed(story: History, page: str) -> None:
    total = sum(term.chosen_by.difference for term in story.terms if term.chosen_by is not None)
    assert f"{100 * total:.2f}" not in page
    assert signed_points(total, None) not in page


def test_the_page_is_small_and_has_no_script(story: History, page: str) -> None:
    assert len(page.encode()) < 300_000
    assert "<script" not in page
    assert "script-src 'none'" in page
    assert story.chain.head is not None
    assert story.chain.head in page
    for problem in story.problems:
        assert re.sub("['\"]", "", problem.sentence)[:40] in re.sub("&#39;", "", page)


def test_the_page_lists_every_evaluation(story: History, page: str) -> None:
    evaluations = sum(len(month.values) for month in story.month_values())
    assert page.count("<tr>") == evaluations + len(story.terms) + 2


def test_the_figure_shows_the_values_of_the_champion(story: History) -> None:
    upper, lower = story.figure().axes
    drawn = next(line for line in upper.lines if len(line.get_xdata()) == 24)
    expected = [month.values[str(month.champion)].value for month in story.month_values()]
    assert drawn.get_ydata() == pytest.approx(expected)
    names = [label.get_text() for label in lower.get_yticklabels()]
    assert names == [f"version {term.version}" for term in story.terms]
    dashed = [
        line for line in lower.lines if line.get_linestyle() == "--" and line.get_linewidth() > 2
    ]
    # Version 16 was moved by hand and served for two months.
    assert len(dashed) == 2


def test_the_forest_plot_shows_every_month_and_both_intervals() -> None:
    history = promoted(4).history()
    figure = gain_figure(history)
    assert figure is not None
    months = history.over_months()
    assert months is not None
    texts = [text.get_text() for text in figure.axes[0].texts]
    typical = (months.typical_low, months.typical_high)
    assert len(texts) == 4 + 2
    assert texts[-1] == signed_points(months.typical, typical)
    assert gain_figure(promoted(0).history()) is None


def test_names_cannot_insert_markup() -> None:
    story = Story()
    story.add(
        "<script>alert(1)</script>",
        {"1": 0.8, "2": 0.8},
        challenger="2",
        made="2026-01-05T08:00:00Z",
        answer=Answer.CANNOT_TELL,
    )
    problem = Problem(ProblemKind.CHANGED, "<b>changed</b>")
    page = history_page(replace(story.history(), problems=(problem,)))
    assert "<script" not in page
    assert "<b>changed" not in page
