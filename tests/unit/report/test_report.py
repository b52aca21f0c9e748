"""The report, and the words it is made of."""

from __future__ import annotations

import math
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from cmtrack import Evaluation, Grouping, compare, evaluate
from cmtrack.names import as_sentence
from cmtrack.report import Picture, draw_pictures, report_html, verdict
from support.problems import random_guesses, random_labels, random_problem

VOID = {"meta", "img", "br", "input", "link"}


class Page(HTMLParser):
    """Tags with attributes, text by tag, and whether every tag is closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[tuple[str, str]] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append((self.open[-1] if self.open else "", data))

    @property
    def words(self) -> str:
        return " ".join(
            " ".join(data for tag, data in self.text if tag not in ("style", "script")).split()
        )


def lead_of(html: str) -> str:
    return html.split('<p class="lead">')[1].split("</p>")[0]


def warnings_at_the_top(html: str) -> list[str]:
    box = re.search(r'(?s)<section class="warnings">.*?</section>', html)
    return re.findall("<li>(.*?)</li>", box[0]) if box else []


def grouped() -> Evaluation:
    y, _, p = random_problem(0, 300, 4)
    chain = Grouping({"low": [0, 1], "mid": [2], "high": [3]}, name="level").then(
        Grouping(
            {"low": ["low"], "above": ["mid", "high"]}, mode="strict", positive="above", name="side"
        )
    )
    return evaluate(y, y_prob=p, grouping=chain)


@pytest.fixture(scope="module")
def evaluation() -> Evaluation:
    return grouped()


@pytest.fixture(scope="module")
def drawn(evaluation: Evaluation) -> dict[str, Picture]:
    return draw_pictures(evaluation)


@pytest.fixture(scope="module")
def html(evaluation: Evaluation, drawn: dict[str, Picture]) -> str:
    return report_html(evaluation, drawn, title="BaseEvaluation", subtitle="on Tuesday")


@pytest.mark.slow
def test_the_page_is_well_formed_and_has_its_titles(html: str) -> None:
    page = Page(html)
    assert page.open == []
    assert ("h1", "BaseEvaluation") in page.text
    assert ("p", "on Tuesday") in page.text
    assert ("title", "BaseEvaluation") in page.text
    assert "{{" not in html
    assert "{%" not in html


def test_nothing_comes_from_outside(html: str) -> None:
    assert "http:" not in html
    assert "https:" not in html
    # where a slash is a digit
    assert "//" not in re.sub(r"data:image/png;base64,[\w+/=]*", "", html)
    assert "localStorage" not in html
    assert "@import" not in html
    assert "url(" not in html.replace("url(#", "")  # an id of the page
    for tag, attributes in Page(html).tags:
        assert tag not in ("link", "iframe", "object", "base", "form", "img")
        assert tag in ("image", "a") or "href" not in attributes
        assert re.match("data:image/png;base64,|#", attributes.get("href") or "#")
        assert (attributes.get("src") or "data:image/png;base64,").startswith(
            "data:image/png;base64,"
        )
        assert not [name for name in attributes if name.startswith("on")]


def test_every_picture_is_embedded_as_it_is(html: str, drawn: dict[str, Picture]) -> None:
    assert sorted(re.findall(r"<svg .*?</svg>", html, re.DOTALL)) == sorted(
        p.svg for p in drawn.values()
    )
    assert {"confusion_matrix", "reduced_level", "reduced_side", "roc"} <= set(drawn)
    page = Page(html)
    assert {data for tag, data in page.text if tag == "title"} >= {
        picture.title for picture in drawn.values()
    }
    ids = [attributes["id"] for _, attributes in page.tags if attributes.get("id")]
    assert len(set(ids)) == len(ids)
    assert set(re.findall(r"url\(#(.*?)\)", html)) <= set(ids)


def test_the_numbers_stand_in_the_page(html: str, evaluation: Evaluation) -> None:
    page = Page(html)
    codes = {data for tag, data in page.text if tag == "code"}
    assert set(evaluation.metrics) <= codes
    accuracy, ends = (
        evaluation.metrics["multiclass/accuracy"],
        evaluation.intervals["multiclass/accuracy"],
    )
    assert f"{accuracy:.3f} [{ends[0]:.3f}, {ends[1]:.3f}]" in page.words
    assert "95% interval" in page.words
    assert evaluation.labels_digest in page.words
    assert "above = mid, high (strict)" in page.words
    assert "The positive group is “above”." in page.words
    assert "(TP + IMP)(TN + IMN)" in page.words
    assert not [w for w in page.words.split() if w in ("nan", "None", "inf", "[nan,")]


def test_the_reduced_matrix_stands_in_the_printed_layout(html: str, evaluation: Evaluation) -> None:
    table = html.split('<table class="matrix">')[2].split("</table>")[0]
    rows = [
        Page("<tr>" + row.split("</tr>")[0] + "</tr>").words.split()
        for row in table.split("<tr>")[1:]
    ]
    step = evaluation.reduced["side"]
    (a, b), (c, d), (im, im2) = *step.counts, step.mismatches
    assert rows[0][-3:] == ["low", "above", "IM"]
    assert rows[1:] == [
        ["low", str(a), str(b), str(im)],
        ["above", str(c), str(d), str(im2)],
        ["IM", str(im), str(im2), "0"],
    ]
    assert im2 > 0
    assert "counted twice: in the IM row and in the IM column." in html


def test_warnings_are_prominent(evaluation: Evaluation) -> None:
    few = evaluate([0, 1, 2, 2], [0, 1, 1, 2])
    assert few.warnings
    page = report_html(few, {})
    assert "Before you trust these numbers" in page
    assert page.index("Before you trust") < page.index("Is it good enough?</h2>")
    assert evaluation.warnings == ()
    assert "Before you trust" not in report_html(evaluation, {})


@pytest.mark.slow
def test_html_in_labels_stays_text() -> None:
    bad, quote = "<script>alert(1)</script>", "a\"b'&<img src=x onerror=alert(1)>"
    y, _, p = random_problem(0, 120, 2)
    names = np.array([quote, bad])
    step = Grouping({bad: [bad], quote: [quote]}, name="<b>step</b>")
    evaluation = evaluate(names[y], y_prob=dict(zip(names, p.T, strict=True)), grouping=step)
    page = report_html(
        evaluation,
        draw_pictures(evaluation)
        | {"reduced": Picture("reduced", "<b>step</b>", "<i>it</i>", "", svg="<svg></svg>")},
        title="<i>title</i>",
        subtitle="<u>sub</u>",
    )
    parsed = Page(page)
    tags = [tag for tag, _ in parsed.tags]
    assert tags.count("script") == 1
    assert not {"img", "i", "u"} & set(tags)
    assert [data for tag, data in parsed.text if tag == "text" and data.startswith(bad)]
    # figures shorten long names in the middle
    assert [data for tag, data in parsed.text if tag == "text" and data.startswith(quote[:12])]
    assert bad in parsed.words
    assert quote in parsed.words
    assert "<b>step</b>" in parsed.words
    assert ("h1", "<i>title</i>") in parsed.text


def test_undefined_metrics_say_why() -> None:
    evaluation = evaluate([0, 0, 1, 1], [0, 0, 0, 0])
    page = Page(report_html(evaluation, {})).words
    reason = evaluation.undefined["multiclass/matthews_corrcoef"]
    assert math.isnan(evaluation.metrics["multiclass/matthews_corrcoef"])
    assert f"undefined: {reason}" in page


@pytest.mark.slow
def test_many_classes_stay_small() -> None:
    k = 520
    y = np.arange(4 * k) % k
    wrong = np.where(y == 7, 8, y)
    names = np.array([f"class {i:03d} with a name of about forty letters" for i in range(k)])
    page = report_html(evaluate(names[y], names[wrong]), {})
    (shown,) = re.findall(rf"The table shows (\d+) of {k} classes", page)
    assert 100 < int(shown) < k
    assert names[7] in page
    assert len(page) < 2_000_000


def test_the_verdict_tells_the_story(evaluation: Evaluation) -> None:
    said = " ".join(verdict(evaluation))
    assert said.startswith("The model finds ")
    assert " of “above”; " in said
    assert (
        " of its “above” predictions are correct (24 mismatches counted as wrong). The Matthews correlation for “above” is "
        in said
    )
    assert "On 300 rows of 4 classes, the accuracy is " in said
    assert "This is clearly better than always predicting the most frequent class, “" in said
    assert "Matthews correlation" in said
    assert "The most frequent confusion is " in said
    assert "After grouping by “side” (“low” and “above”), " in said
    assert " within the correct group; they do not count as correct." in said
    assert ". On these rows, it cannot exceed " in said
    assert "On average, the probability of “above” is " in said
    assert "Estimated from labelled scores" not in said  # the labels tell the share


def test_the_correlation_says_how_it_counts_mismatches(evaluation: Evaluation) -> None:
    cells = evaluation.binary
    assert cells is not None
    n = round(cells.imp + cells.imn)
    note = (
        f"It only compares the two groups, so the {n} mismatches within a group count as hits, while "
        "recall, precision and accuracy count them as errors."
    )
    page = report_html(evaluation, {})
    assert note in page
    assert f"counts {n} mismatches as hits" in page
    relaxed = evaluate(
        evaluation.rows.actual,
        y_prob=evaluation.rows.probabilities,
        grouping=Grouping({"low": [0, 1], "above": [2, 3]}, positive="above", name="side"),
    )
    assert "mismatches" not in report_html(relaxed, {}).partition("What was evaluated?")[0]


def test_the_roc_ceiling_counts_the_positives_that_are_never_hits(evaluation: Evaluation) -> None:
    cells, ceiling = evaluation.binary, evaluation.metrics["binary/roc_auc_ceiling"]
    assert cells is not None
    never = f"{round((1 - ceiling) * cells.actual_positives)} of {round(cells.actual_positives)}"
    assert f"because {never} positives would be mismatches even if" in " ".join(verdict(evaluation))


def test_the_line_under_the_title_describes_the_data(evaluation: Evaluation) -> None:
    cells = evaluation.binary
    assert cells is not None
    n, share = round(cells.actual_positives), 100 * cells.actual_positives / cells.total
    page = report_html(evaluation, {})
    assert f"<li>positive group “above” (classes 2, 3): {n} rows ({share:.1f}%)</li>" in page
    page = report_html(evaluate(list("aabbbcccc"), list("aabbbcccc")), {})
    assert "<li>3 classes with 2 to 4 rows each</li>" in page


def test_a_log_loss_that_is_much_higher_is_a_multiple() -> None:
    y = np.repeat([0, 1], [97, 3])
    said = " ".join(verdict(evaluate(y, y_prob=np.full(100, 0.5))))
    ratio = math.log(2) / -(0.97 * math.log(0.97) + 0.03 * math.log(0.03))
    assert f", {ratio:.1f} times the log loss of always predicting the class shares." in said


def test_the_top_of_a_page_is_about_the_positive_group_alone() -> None:
    y, _, p = random_problem(0, 300, 4)
    y[:3] = 3
    p[y == 3] = [1, 0, 0, 0]
    y[5:][y[5:] == 3] = 0  # so class 3 has few rows and is never predicted
    halves = Grouping({"low": [0, 2], "high": [1, 3]}, positive="high", name="half")
    evaluation = evaluate(y, y_prob=p, grouping=halves)
    page = report_html(evaluation, {})
    assert "Matthews" not in lead_of(page)
    about_classes = [
        as_sentence(text) for section, text in evaluation.warnings_by_section if section == "class"
    ]
    assert any("lass “3”" in text for text in about_classes)
    assert warnings_at_the_top(page) == []
    confusions = page.split('<section id="confusions">')[1].split("</section>")[0]
    assert re.findall('<p class="caution">(.*?)</p>', confusions) == about_classes
    # Without a positive group, the numbers at the top are averages over all classes.
    plain = evaluate(y, y_prob=p)
    page = report_html(plain, {})
    assert warnings_at_the_top(page)
    below = re.findall('<p class="caution">(.*?)</p>', page)
    assert sorted([*warnings_at_the_top(page), *below]) == sorted(map(as_sentence, plain.warnings))


def test_headline_metrics_begin_with_the_metric_that_ranks_by_default() -> None:
    y, _, p = random_problem(0, 300, 4)
    y = y % 2
    p = p[:, :2] + p[:, 2:]
    for options in ({}, {"positive": 1}, {"headline": ["binary/markedness"], "positive": 1}):
        evaluation = evaluate(y, y_prob=p, **options)
        asked = list(options.get("headline", []))
        (ranked_by,) = compare({"a": evaluation, "b": evaluation}).criterion.metrics
        assert list(evaluation.headline[: len(asked) + 1]) == [*asked, ranked_by]
        assert len(set(evaluation.headline)) == len(evaluation.headline)


def test_a_segment_that_is_worse_is_named_at_the_top_and_counted_in_the_contents() -> None:
    rng = np.random.default_rng(1)
    region = np.repeat(["north", "south"], 500)
    y = rng.integers(0, 2, 1000)
    predicted = np.where(rng.random(1000) < np.where(region == "south", 0.4, 0.1), 1 - y, y)
    evaluation = evaluate(y, predicted, positive=1, segments={"region": region})
    page = report_html(evaluation, {})
    assert "Segment “south” of “region” (500 rows) is worse than the rest: " in lead_of(page)
    assert "Where does it fail? (1)" in page


def test_the_verdict_of_a_weak_and_of_a_perfect_classifier() -> None:
    y = random_labels(200)
    guessed = " ".join(verdict(evaluate(y, random_guesses(y, 2, 0.0, 3))))
    assert "not clearly different from" in guessed
    wrong = " ".join(verdict(evaluate(y, 1 - y)))
    assert "clearly worse than" in wrong
    perfect = " ".join(verdict(evaluate(y, y)))
    assert "There are no errors on these rows." in perfect
    assert "All classes have the same F1 (1.000)." in perfect
    absent = " ".join(verdict(evaluate([0, 1, 1, 3], [0, 1, 3, 2], labels=range(4))))
    assert "the worst is “3” (F1 0, n = 1)." in absent  # class 2 has no samples to be judged on


def test_the_verdict_in_plain_english_with_one_unit_and_quoted_names() -> None:
    counts = np.array([[40, 4, 1], [9, 20, 1], [0, 18, 7]])
    names = np.array(["a, b", "c", "d"])
    y = names[np.repeat([0, 1, 2], counts.sum(axis=1))]
    predicted = names[np.concatenate([np.repeat([0, 1, 2], row) for row in counts])]
    group = Grouping({"yes": ["a, b"], "no": ["c", "d"]}, mode="strict", positive="no", name="side")
    evaluation = evaluate(y, predicted, grouping=group)
    assert verdict(evaluation) == [
        verdict(evaluation)[0],
        verdict(evaluation)[1],
        "On 100 rows of 3 classes, the accuracy is 67.0% [57.3, 75.4] (95% interval). This is clearly better than "
        "always predicting the most frequent class, “a, b” (45.0%; p < 0.001).",
        verdict(evaluation)[3],
        "After grouping by “side” (“yes” and “no”), 67.0% [57.3, 75.4] of predictions are correct. Another 19.0% "
        "predict another class within the correct group; they do not count as correct.",
        "The best class by F1 is “a, b” (F1 0.851, n = 45); the worst is “d” (F1 0.412, n = 25).",
        "The most frequent confusion is “d” predicted as “c”: 18 rows, 72.0% of the class.",
    ]
    found = r"The model finds 27 of 55 rows of “no” \(49.1% \[[^]]*\]\)"
    right = r"52.9% \[[^]]*\] of its “no” predictions are correct \(27 of 51, 19 mismatches counted as wrong\)"
    assert re.fullmatch(rf"{found}; {right}\.", verdict(evaluation)[0])
    correlation = "The Matthews correlation{} is "
    assert verdict(evaluation)[1].startswith(correlation.format(" for “no”"))
    assert verdict(evaluation)[3].startswith(correlation.format(" over all classes"))
    assert verdict(evaluation)[3].endswith(" (0 is guessing, 1 is perfect).")
    few = evaluate([0, 0, 1, 2, 2], [0, 0, 0, 2, 1])
    assert few.warnings[0].startswith(
        "classes “0” (n = 2), “1” (n = 1) and “2” (n = 2) have fewer than 20 rows: "
    )
    one = evaluate([0] * 30 + [1] * 3, [0] * 32 + [1])
    assert (
        one.warnings[0] == "class “1” (n = 3) has fewer than 20 rows: its intervals are approximate"
    )


@pytest.mark.parametrize(
    ("y", "predicted", "sentence"),
    [
        (
            [1] * 15 + [0] * 985,
            [1] + [0] * 999,
            "The model finds 1 of 15 rows of “1” (6.7% [1.2, 29.8]); 100.0% "
            "[20.7, 100.0] of its “1” predictions are correct (1 of 1).",
        ),
        (
            [1] * 80 + [0] * 60,
            [1] * 49 + [0] * 91,
            "The model finds 49 of 80 rows of “1” (61.2% [50.3, 71.2]); 100.0% "
            "[92.7, 100.0] of its “1” predictions are correct (49 of 49).",
        ),
        (
            [1] * 80 + [0] * 60,
            [1] * 50 + [0] * 90,
            "The model finds 62.5% [51.5, 72.3] of “1”; 100.0% [92.9, 100.0] of its “1” predictions are correct.",
        ),
        (
            [1] * 40 + [0] * 60,
            [0] * 100,
            "The model finds 0 of 40 rows of “1” (0.0% [0.0, 8.8]); it never predicts “1”.",
        ),
        ([0] * 30, [0] * 28 + [1] * 2, "No row is “1”; the model predicts it 2 times."),
        ([0] * 30, [0] * 29 + [1], "No row is “1”; the model predicts it once."),
        ([0] * 30, [0] * 30, "No row is “1”; the model never predicts it."),
    ],
)
def test_the_first_sentence_answers_for_the_positive_class(y, predicted, sentence) -> None:
    assert verdict(evaluate(y, predicted, labels=[0, 1], positive=1))[0] == sentence


@pytest.mark.parametrize(("only_right", "word"), [(15, "better than"), (30, "clearly better than")])
def test_a_model_is_clearly_better_only_below_a_p_of_1_percent(only_right, word) -> None:
    y = np.r_[np.zeros(60, int), np.ones(40, int)]
    predicted = np.r_[
        np.ones(5, int), np.zeros(55, int), np.ones(only_right, int), np.zeros(40 - only_right, int)
    ]
    said = verdict(evaluate(y, predicted, positive=1))[2]
    assert f"This is {word} always predicting the most frequent class, “0” (60.0%; p " in said
    assert ("p = 0.025" in said) == (word == "better than")


def test_the_accuracy_of_rare_positives_is_not_compared_with_the_most_frequent_class() -> None:
    y = np.r_[np.zeros(970, int), np.ones(30, int)]
    predicted = np.r_[np.zeros(980, int), np.ones(20, int)]
    said = " ".join(verdict(evaluate(y, predicted, positive=1)))
    assert "most frequent class" not in said
    assert "most frequent class" in " ".join(verdict(evaluate(y, predicted, positive=0)))


@pytest.mark.parametrize("given", [{}, {"threshold": 0.6}])
def test_a_score_that_ranks_well_and_labels_that_miss_most_positives_ask_for_a_threshold(
    given,
) -> None:
    y = np.r_[np.zeros(969, int), np.ones(31, int)]
    score = np.r_[np.linspace(0, 0.3, 969), np.linspace(0.2, 0.45, 29), 0.7, 0.7]
    predicted = None if given else score >= 0.5
    evaluation = evaluate(
        y, predicted, y_prob=np.c_[1 - score, score], labels=[0, 1], positive=1, **given
    )
    first, second = verdict(evaluation)[:2]
    assert first.endswith("of its “1” predictions are correct (2 of 2).")
    misses = "the threshold of 0.600 misses" if given else "the predicted labels miss"
    assert (
        f"but {misses} 29 of 31 rows of “1”. Choose a threshold with cmtrack threshold." in second
    )
    found = evaluate(y, score > 0.25, y_prob=np.c_[1 - score, score], labels=[0, 1], positive=1)
    assert "cmtrack threshold" not in " ".join(verdict(found))


def test_the_verdict_tells_the_target_from_the_samples() -> None:
    y, _, p = random_problem(0, 200, 2)
    said = " ".join(verdict(evaluate(y, y_prob=p, target=p[:50])))
    assert "in the target is " in said
    assert "(actual:" not in said


def test_weights_are_told_from_samples() -> None:
    y = [0, 1, 0, 1]
    weighted = " ".join(verdict(evaluate(y, y, sample_weight=[0.5, 1, 0.5, 1])))
    assert "On 4 rows (sampling weight 3) of 2 classes" in weighted
    assert "On 4 rows of" in " ".join(verdict(evaluate(y, y)))


def test_metrics_link_their_page_where_the_distribution_names_a_site(evaluation, monkeypatch):
    assert "docs.example" not in report_html(evaluation, {})
    # the address is read from the installed distribution once, and this one names none
    monkeypatch.setattr("cmtrack.report.evaluation_page.site", lambda: "https://docs.example/")
    page = report_html(evaluation, {})
    assert (
        '<a href="https://docs.example/reference/generated/metrics/binary.html#binary-specificity"'
        in page
    )


def test_a_long_table_of_classes_begins_with_the_worst() -> None:
    y, guess, _ = random_problem(0, 600, 30)
    evaluation = evaluate(y, guess)
    page = report_html(evaluation, {})
    assert "The classes with the lowest F1 come first." in page
    names = re.findall(r'<tr(?: data-rest)?><td class="label one" title="(\d+)">', page)
    f1 = [evaluation.metrics[f"class/{name}/f1"] for name in names]
    assert len(f1) == 30
    assert f1 == sorted(f1)
