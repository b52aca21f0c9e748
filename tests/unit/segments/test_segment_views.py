"""Segments in the report, among the figures, and in the run."""

from __future__ import annotations

import json
import math
import re

import mlflow
import numpy as np
import pandas as pd
import pytest
from mlflow import MlflowClient
from scipy.stats import fisher_exact

from cmtrack import evaluate, log_evaluation
from cmtrack.plots import SegmentPanel, plot_segments
from cmtrack.report import draw_figures, draw_pictures, report_html

# Inside: sentence, table and bar of one segment are read together here; on a page they stand apart.
from cmtrack.report.segments import MAX_ROWS, page_tables, segment_table, sentences, views
from cmtrack.segments import differences, simultaneous_level

pytestmark = pytest.mark.usefixtures("undrawn")

HITS = {"north": (90, 100), "south": (50, 100), "<b>$x$": (4, 5), None: (85, 100)}


def by_hits(hits=None, **options):
    """Rows of one class with so many hits of so many in each segment, and as many correct negatives."""
    actual, predicted, region = [], [], []
    for name, (right, n) in (hits or HITS).items():
        actual += ["yes"] * n + ["no"] * n
        predicted += ["yes"] * right + ["no"] * (n - right) + ["no"] * n
        region += [name] * (2 * n)
    frame = pd.DataFrame({"region": pd.array(region, dtype=object)})
    return evaluate(
        actual, predicted, labels=["no", "yes"], positive="yes", segments=frame, **options
    )


def many(n: int = 45):
    return {f"s{k:02d}": (20 + k % 7, 30) for k in range(n)}


def test_a_sentence_says_what_is_worse_with_the_numbers_of_the_table():
    evaluation = by_hits()
    (found,) = sentences(evaluation)
    assert found.startswith(
        "Segment “south” of “region” (200 rows) is worse than the rest: its accuracy is 75.0% instead of 93.7% (difference −18.7 "
    )
    row = evaluation.segments["region"].to_frame("multiclass/accuracy").iloc[0]
    assert (
        f"[{100 * row['difference_low']:.1f}, {100 * row['difference_high']:.1f}]".replace("-", "−")
        in found
    )
    assert found in report_html(evaluation, {}).replace("&#34;", '"')


@pytest.mark.parametrize(
    "hits", [{"a": (80, 100), "b": (78, 100)}, {"a": (1, 2), "b": (2, 2), "c": (0, 1)}]
)
def test_no_sentence_where_no_interval_excludes_0(hits):
    assert sentences(by_hits(hits)) == []


def of_recall(*hits, **options):
    """Two classes in segments with so many hits of so many positives, among 150 rows each; no false alarm."""
    actual = np.concatenate([np.arange(150) < n for _, n in hits])
    predicted = np.concatenate([np.arange(150) < right for right, _ in hits])
    segment = np.repeat([f"s{k}" for k in range(len(hits))], 150)
    return evaluate(
        actual,
        predicted,
        labels=[False, True],
        positive=True,
        segments={"part": segment},
        **options,
    )


@pytest.mark.parametrize(
    ("hits", "worse"),
    [
        (((0, 3), (2, 2)), False),  # Fisher's p is .10, though Newcombe's interval ends at −.05
        (((0, 3), (8, 8)), True),  # p is .0061
        (((1, 12), (90, 140)), True),  # p is .0002
        (
            ((7, 12), (120, 140)),
            False,
        ),  # p is .0285, and .05 for two segments is .0253; Newcombe's ends at −.017
        (((3, 12), (100, 140)), True),  # p is .0020
    ],
)
def test_few_samples_are_worse_only_by_an_exact_test(hits, worse):
    evaluation = of_recall(*hits)
    (a, n), (b, m) = hits
    p = fisher_exact([[a, n - a], [b, m - b]]).pvalue
    assert (p <= 1 - simultaneous_level(2)) == worse
    (view,) = views(evaluation, ["binary/recall"])
    assert [view.side("binary/recall", text) for text in ("s0", "s1")] == (
        [-1, 1] if worse else [0, 0]
    )
    assert bool(view.sentences()) == worse
    assert (
        view.gap("binary/recall").endswith(
            " The interval of the gap includes 0, so no difference is shown."
        )
        != worse
    )
    (table,) = page_tables(evaluation)
    assert {cell["apart"] for row in table["rows"] for cell in row["cells"][1:2]} == {worse}


def test_few_samples_that_belong_together_are_not_called_worse():
    assert sentences(of_recall((0, 3), (8, 8)))
    clustered = of_recall((0, 3), (8, 8), groups=np.arange(300) % 60)
    assert not any("recall" in text for text in sentences(clustered))
    assert clustered.segments["part"].to_frame("binary/recall")["difference_high"].min() == 0


@pytest.mark.slow
def test_no_segment_is_worse_where_the_gap_may_be_0_and_two_segments_have_one_interval():
    """Sentence, gap, table and figure agree in 60 random reports of 2 to 6 segments."""
    rng = np.random.default_rng(3)
    doubtful = 0
    for report in range(60):
        n = rng.integers(2, 60, 2 + report % 5)
        evaluation = of_recall(*zip(rng.binomial(n, rng.uniform(0.5, 0.9, len(n))), n, strict=True))
        (view,) = views(evaluation, ["binary/recall"])
        table = evaluation.segments["part"]
        gap, frame = table.disparity("binary/recall"), table.to_frame("binary/recall")
        sides = [view.side("binary/recall", text) for text in view.order]
        outside = (frame["difference_low"] > 0) | (frame["difference_high"] < 0)
        assert outside.tolist() == [side != 0 for side in sides]
        assert ("includes 0" in view.gap("binary/recall")) == (gap.gap_low == 0)
        assert gap.gap_low > 0 or not any(sides)
        assert (gap.ratio_high < 1) <= (gap.gap_low > 0)
        assert len(view.sentences()) == sides.count(-1)
        if len(n) == 2:
            ends = frame.loc[frame["difference"].idxmax(), ["difference_low", "difference_high"]]
            assert (gap.gap_low, gap.gap_high) == pytest.approx(
                (max(ends.iloc[0], 0), max(ends.iloc[1], -ends.iloc[0]))
            )
        plain = differences(
            table.estimates("binary/recall"), table._estimates("binary/recall", outside=True)
        )
        doubtful += bool(((plain.low > 0) | (plain.high < 0)).any() and not any(sides))
    assert doubtful  # there are cases where the interval alone said so


def test_many_worse_segments_are_counted():
    hits = {f"bad {k}": (20, 100) for k in range(8)} | {f"good {k}": (98, 100) for k in range(8)}
    found = sentences(by_hits(hits))
    assert len(found) == 4
    assert found[-1] == "5 more segments of “region” are worse than the rest."


def test_sentences_are_of_a_metric_in_which_the_segment_is_worse():
    """Accuracy is the same everywhere, recall is not."""
    actual = ["yes"] * 100 + ["no"] * 100 + ["yes"] * 100 + ["no"] * 100
    predicted = (
        ["yes"] * 60 + ["no"] * 40 + ["no"] * 100 + ["yes"] * 100 + ["no"] * 60 + ["yes"] * 40
    )
    evaluation = evaluate(
        actual, predicted, positive="yes", segments={"side": ["a"] * 200 + ["b"] * 200}
    )
    found = sentences(evaluation)
    assert [text.split(" instead")[0] for text in found] == [
        "Segment “a” of “side” (200 rows) is worse than the rest: its recall for “yes” is 60.0%",
        "Segment “b” of “side” (200 rows) is worse than the rest: its precision for “yes” is 71.4%",
    ]


def test_of_errors_the_higher_segment_is_worse():
    rng = np.random.default_rng(0)
    y = np.arange(400) % 2
    good = np.repeat([True, False], 200)
    p = 0.5 + np.where(good, 0.4, 0.05) * (2 * y - 1) + rng.normal(0, 0.03, 400)
    evaluation = evaluate(
        y, y_prob=np.clip(p, 0.01, 0.99), segments={"kind": np.where(good, "good", "bad")}
    )
    (view,) = views(evaluation, ["probability/log_loss"])
    assert view.order == ["bad", "good"]
    assert [view.side("probability/log_loss", text) for text in view.order] == [-1, 1]
    (found,) = view.sentences()
    assert found.startswith(
        "Segment “bad” of “kind” (200 rows) is worse than the rest: its log loss is 0.597 instead of 0.103 ("
    )
    assert "(difference +0.494 [" in found


def test_the_gap_has_the_interval_of_the_disparity():
    evaluation = by_hits()
    view = next(views(evaluation))
    found = evaluation.segments["region"].disparity("binary/recall")
    assert view.gap("binary/recall") == (
        "Recall for “yes” ranges from 50.0% (“south”) to 90.0% (“north”), a gap of 40.0 percentage points "
        f"[{100 * found.gap_low:.1f}, {100 * found.gap_high:.1f}] and a ratio of 0.556 "
        f"[{found.ratio_low:.3f}, {found.ratio_high:.3f}]."
    )
    same = next(views(by_hits({"a": (80, 100), "b": (78, 100)})))
    assert same.gap("binary/recall").endswith(
        ". The interval of the gap includes 0, so no difference is shown."
    )
    equal = next(views(by_hits({"a": (80, 100), "b": (80, 100)}))).gap("binary/recall")
    assert equal.startswith(
        "Recall for “yes” is 80.0% in every segment that has a value, a gap of 0.0 "
    )
    lone = next(views(by_hits({"a": (0, 0), "b": (78, 100), "c": (1, 1)})))
    assert "from" in lone.gap("binary/recall")


def test_undefined_segments_are_said_to_be():
    evaluation = evaluate(
        ["yes", "no", "no", "no"] * 5,
        ["yes", "no", "no", "no"] * 5,
        positive="yes",
        segments={"part": ["a", "a", "b", "b"] * 5},
    )
    (table,) = page_tables(evaluation)
    recall = {row["label"]: row["cells"][1] for row in table["rows"]}
    assert recall["b"]["value"] == "undefined"
    assert recall["b"]["undefined"] == "its denominator is zero"
    assert recall["b"]["difference"] == "–"
    assert (
        table["gaps"][1]
        == "Recall for “yes”: the metric is defined in 1 of 2 segments, and a gap needs two."
    )


def test_the_report_shows_20_segments_and_the_number():
    evaluation = by_hits(many())
    page = report_html(evaluation, {})
    part = page[page.index('<section id="failures">') : page.index('<section id="facts">')]
    assert part.count('<td class="label"') == MAX_ROWS == 20
    assert "The table shows 20 of 45 segments." in " ".join(part.split())
    few = report_html(by_hits(), {})
    assert "segments are shown" not in few
    assert "&lt;b&gt;$x$" in few
    assert "<b>$x$" not in few
    assert "Segments by" not in report_html(evaluate([0, 1, 1], [0, 1, 0]), {})


def test_the_report_is_in_the_order_of_the_values():
    evaluation = by_hits()
    (table,) = page_tables(evaluation)
    order = evaluation.segments["region"].to_frame("multiclass/accuracy")["segment"].tolist()
    assert [row["label"] for row in table["rows"]] == order
    assert order[0] == "south"
    bold = re.findall(
        r"<b>([^<]*)</b><br> <span class=\"soft\">([^<]*)</span>", report_html(evaluation, {})
    )
    assert bold[0][0] == "−0.187"
    assert bold[0][1].startswith("[−0.")


# -- figures -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_each_column_has_a_figure():
    y = [0, 1] * 50
    columns = {"size": ["s", "m"] * 50, "a/b": [1, 1, 2, 2] * 25}
    evaluation = evaluate(y, y, segments=columns)
    assert {"segments_size", "segments_a/b"} <= set(draw_figures(evaluation))
    pictures = draw_pictures(evaluation, figures="auto")
    assert pictures["segments_a/b"].file == "cmtrack_segments_a_u2f_b.png"
    assert pictures["segments_a/b"].title == "Segments by a/b"
    assert not any(name.startswith("segments") for name in draw_figures(evaluate(y, y)))


def test_the_forest_draws_the_numbers():
    nan = math.nan
    panel = SegmentPanel(
        "Recall", [0.5, 0.8, nan], [0.4, 0.7, nan], [0.6, 0.9, nan], 0.75, [-1, 0, 0]
    )
    figure = plot_segments(["a", "b$c", "d"], [1200, 30, 0], [panel, panel], title="Segments")
    ax = figure.axes[0]
    assert [label.get_text() for label in ax.get_yticklabels()] == [
        "a  (1,200)",
        "b\\$c  (30)",
        "d  (0)",
    ]
    dots = {
        line.get_marker(): line.get_xydata().tolist()
        for line in ax.lines
        if len(line.get_xydata()) == 1
    }
    assert dots == {"s": [[0.5, 0.0]], "o": [[0.8, 1.0]]}
    assert [segment.tolist() for lines in ax.collections for segment in lines.get_segments()] == [
        [[0.4, 0.0], [0.6, 0.0]], [[0.7, 1.0], [0.9, 1.0]],
    ]  # fmt: skip
    assert [text.get_text() for text in ax.texts] == ["undefined"]
    assert ax.lines[0].get_xdata()[0] == 0.75
    words = [text.get_text() for text in ax.get_legend().get_texts()]
    assert words[:3] == [
        "worse than the rest",
        "not significantly different from the rest",
        "all rows",
    ]


@pytest.mark.slow
def test_the_forest_shows_40_rows_and_says_so():
    evaluation = by_hits(many())
    figure = draw_figures(evaluation)["segments_region"]
    assert len(figure.axes[0].get_yticklabels()) == 40
    said = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert any(
        " ".join(text.split()).startswith("40 of 45 segments are shown, by accuracy, the ")
        for text in said
    )


@pytest.mark.parametrize(
    ("names", "sizes", "values", "said"),
    [
        ([], [], [], "must not be empty"),
        (["a"], [1, 2], [0.5], "sizes must have"),
        (["a"], [1], [1, 2], "values must"),
    ],
    ids=["none", "sizes", "values"],
)
def test_the_forest_refuses_other_shapes(names, sizes, values, said):
    with pytest.raises(ValueError, match=said):
        plot_segments(
            names, sizes, [SegmentPanel("x", values, values, values, 0.5, [0] * len(values))]
        )


# -- runs --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def run_id(store):
    with mlflow.start_run() as run:
        yield run.info.run_id


def listed(run_id: str) -> list[str]:
    return [
        one["path"]
        for one in json.loads(MlflowClient().get_run(run_id).data.tags["mlflow.loggedArtifacts"])
    ]


@pytest.mark.slow
@pytest.mark.usefixtures("drawn")
def test_a_run_gets_one_table_with_the_segment_first(run_id):
    evaluation = by_hits()
    log_evaluation(evaluation, strict=True)
    files = {item.path for item in MlflowClient().list_artifacts(run_id)}
    assert {"cmtrack_segments.json", "cmtrack_segments_region.png"} <= files
    table = mlflow.load_table("cmtrack_segments.json", run_ids=[run_id])
    assert table["segment"].tolist() == [
        "region: <b>$x$",
        "region: north",
        "region: south",
        "region: (missing)",
    ]
    assert table.columns[:3].tolist() == ["segment", "result", "rows"]
    assert table["recall"].tolist() == [0.8, 0.9, 0.5, 0.85]
    assert table["result"][1].startswith("accuracy 0.950 [")
    assert table["recall_difference"][2] == pytest.approx(0.5 - 179 / 205, abs=1e-6)
    assert listed(run_id) == ["cmtrack_classes.json", "cmtrack_segments.json"]
    assert not any(
        name.startswith("segment") for name in MlflowClient().get_run(run_id).data.metrics
    )
    assert [row["recall"] for row in segment_table(evaluation)] == table["recall"].tolist()


@pytest.mark.slow
def test_an_evaluation_without_segments_takes_the_table_away(run_id):
    log_evaluation(by_hits(), strict=True)
    with pytest.warns(UserWarning, match="which was replaced"):
        log_evaluation([0, 1, 1], [0, 1, 0], strict=True)
    assert "cmtrack_segments.json" not in {
        item.path for item in MlflowClient().list_artifacts(run_id)
    }
    assert listed(run_id) == ["cmtrack_classes.json"]


def test_metrics_of_segments_are_logged_where_they_are_named(run_id):
    chosen = [
        "multiclass/accuracy",
        "segment/region/*/binary/recall",
        "segment/region/south/multiclass/accuracy",
    ]
    log_evaluation(by_hits(), metrics=chosen, strict=True)
    metrics = MlflowClient().get_run(run_id).data.metrics
    assert {name: value for name, value in metrics.items() if name.startswith("segment")} == {
        "segment/region/north/binary/recall": 0.9,
        "segment/region/south/binary/recall": 0.5,
        "segment/region/_u3c_b_u3e__u24_x_u24_/binary/recall": 0.8,
        "segment/region/_u28_missing_u29_/binary/recall": 0.85,
        "segment/region/south/multiclass/accuracy": 0.75,
    }


@pytest.mark.parametrize(
    ("name", "error", "said"),
    [
        ("segment/region/nort/binary/recall", KeyError, "did you mean"),
        ("segment/regoin/*/binary/recall", KeyError, "no segments by 'regoin'"),
        ("segment/region/*/binary/recal", KeyError, "recal"),
        ("segment/region", ValueError, "must have the form segment/<column>/<value>/<metric>"),
    ],
    ids=["value", "column", "metric", "parts"],
)
def test_names_of_segments_that_are_wrong(name, error, said):
    with pytest.raises(error, match=said):
        by_hits().segments.named(name)


def test_shares_of_few_rows_have_their_counts():
    evaluation = of_recall((0, 3), (60, 80))
    (view,) = views(evaluation, ["binary/recall"])
    assert "its recall for “True” is 0.0% (0 of 3) instead of 75.0% (" in view.sentences()[0]
    (table,) = page_tables(evaluation)
    rows = {row["label"]: row for row in table["rows"]}
    assert [rows[text]["positives"] for text in ("s0", "s1")] == ["3 positive", "80 positive"]
    assert [rows[text]["cells"][1]["counts"] for text in ("s0", "s1")] == ["0 of 3", ""]
    assert "0 of 3" in report_html(evaluation, {})
    figure = draw_figures(evaluation)["segments_part"]
    names = {text.get_text() for text in figure.axes[0].get_yticklabels()}
    assert names == {"s0  (150, 3 positive)", "s1  (150, 80 positive)"}


def test_a_gap_without_a_segment_that_differs_from_the_rest_is_explained():
    evaluation = by_hits({"a": (61, 100), "b": (79, 100), "c": (70, 100), "d": (70, 100)})
    (view,) = views(evaluation, ["binary/recall"])
    assert evaluation.segments["region"].disparity("binary/recall").gap_low > 0
    assert not any(view.side("binary/recall", text) for text in view.order)
    assert view.gap("binary/recall").endswith(
        " The two segments differ significantly from each other, although no segment differs "
        "significantly from the rest."
    )


@pytest.mark.parametrize(("last", "is_shared"), [((0.4, 0.6), True), ((0.95, 0.96), False)])
def test_panels_have_one_range_if_their_intervals_stay_visible(last, is_shared):
    panels = [
        SegmentPanel("x", [low, high], [low, high], [low, high], low, [0, 0])
        for low, high in ((0.1, 0.5), last)
    ]
    ranges = {ax.get_xlim() for ax in plot_segments(["a", "b"], [9, 9], panels).axes}
    assert (len(ranges) == 1) == is_shared
