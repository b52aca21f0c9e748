"""Decision curve, gains and risk by coverage: what is drawn of the data that is given."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from cmtrack import Grouping, evaluate
from cmtrack.plots import plot_decision_curve, plot_gains, plot_risk_coverage
from support.problems import random_labels, random_problem, random_scores


def legend_texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.axes[0].get_legend().get_texts()]


def line_labelled(figure: Figure, start: str) -> Any:
    return next(line for line in figure.axes[0].lines if str(line.get_label()).startswith(start))


def scored(n: int = 400, rate: float = 0.5) -> Any:
    y = random_labels(n, 2, 0, [1 - rate, rate])
    return evaluate(
        y, y_prob=random_scores(y, 1.5, 1, slope=1.5, shift=math.log(rate / (1 - rate)))
    )


def test_the_decision_curve_is_drawn_in_the_order_of_thresholds():
    t, value, every = [0.5, 0.2, 0.8], [0.2, 0.3, 0.1], [0.0, 0.375, -1.5]
    figure = plot_decision_curve(
        t, value, every, band=([0.1, 0.2, -0.1], [0.3, 0.4, 0.2]), level=0.9, positive="yes"
    )
    own = line_labelled(figure, "positive if the score reaches the threshold")
    assert own.get_xydata().tolist() == [[0.2, 0.3], [0.5, 0.2], [0.8, 0.1]]
    assert line_labelled(figure, "all positive").get_ydata().tolist() == [0.375, 0.0, -1.5]
    assert legend_texts(figure) == [
        "band of the whole curve (90%)",
        "positive if the score reaches the threshold",
        "all positive",
        "none positive: 0",
    ]
    low, high = figure.axes[0].get_ylim()
    assert (low, high) == pytest.approx((-0.12, 0.424))  # what is far below 0 is cut off
    assert figure.axes[0].get_ylabel() == "net benefit per row (positive: yes)"


def ticks_up_to(threshold: float) -> set[str]:
    """The ticks of a decision curve up to a threshold."""
    t = threshold * np.array([0.5, 1.0])
    figure = plot_decision_curve(t, [0.2, 0.1], [0.1, -0.1])
    figure.draw_without_rendering()
    return {text.get_text() for text in figure.axes[0].get_xticklabels()}


def test_a_threshold_is_shown_with_its_odds() -> None:
    assert {"20%\n1:4", "40%\n1:1.5", "60%\n1.5:1", "80%\n4:1"} <= ticks_up_to(0.99)
    assert {"0.2%\n1:499"} <= ticks_up_to(0.006)


def test_gains_with_a_ceiling():
    figure = plot_gains(
        [0.2, 0.6, 1],
        [0.4, 0.7, 0.8],
        prevalence=0.4,
        ceiling=0.8,
        operating_point=(0.3, 0.5),
        positive="yes",
    )
    assert line_labelled(figure, "score").get_xydata().tolist() == [
        [0, 0],
        [0.2, 0.4],
        [0.6, 0.7],
        [1, 0.8],
    ]
    np.testing.assert_allclose(
        line_labelled(figure, "perfect").get_xydata(), [[0, 0], [0.32, 0.8], [1, 0.8]]
    )
    np.testing.assert_allclose(line_labelled(figure, "chance").get_ydata(), [0, 0.256, 0.8])
    texts = legend_texts(figure)
    assert texts[:3] == [
        "score: lift 2 if 10% are predicted positive",
        "perfect order: recall 80% at 32%",
        "chance: lift 0.8",
    ]
    assert texts[3].startswith("ceiling 0.800: ")
    assert texts[4].replace("\n", " ") == "predicted labels: predicted positive 30%, recall 50%"


def test_gains_of_rare_positives_are_on_a_logarithmic_axis_of_the_usual_size():
    """An operating point that calls nothing has no place on it and is put at its edge."""
    figure = plot_gains(
        [0.0005, 0.01, 1], [0.5, 0.9, 1], prevalence=0.001, operating_point=(0.0, 0.0)
    )
    ax = figure.axes[0]
    assert ax.get_xscale() == "log"
    assert ax.get_xlim() == (0.00025, 1.0)
    assert legend_texts(figure)[0] == "score: lift 521 if 0.1% are predicted positive"
    assert line_labelled(figure, "predicted").get_xydata().tolist() == [[0.00025, 0.0]]
    assert max(figure.get_size_inches()) < 10


def test_risk_by_coverage():
    """Ten of 100 answers for each confidence; the errors are among the least confident."""
    coverage, risk, size = [0.1, 0.5, 1.0], [0.0, 0.1, 0.3], [10, 50, 100]
    figure = plot_risk_coverage(coverage, risk, size, aurc=0.123, interval=(0.1, 0.15))
    sure, pale, ideal = figure.axes[0].lines[:3]
    assert sure.get_xydata()[0] == pytest.approx([0.2, 0.0625])  # 0.1 of the 0.4 that lose 0.05
    assert sure.get_xydata()[-1].tolist() == [1.0, 0.3]
    assert pale.get_alpha() == 0.35
    assert pale.get_xdata().max() < 0.2  # 20 answers
    at = dict(ideal.get_xydata().round(9).tolist())
    assert (at[0.5], at[1.0]) == pytest.approx((0, 0.3))
    assert legend_texts(figure) == [
        "most confident first: AURC 0.123 [0.1, 0.15]",
        "perfect order: all errors last",
        "uninformative confidence: 30% errors",
    ]


def test_shares_that_are_accepted_are_marked_with_their_risk():
    confidence = np.repeat(np.arange(99, 59, -4) / 100, 20)
    wrong = np.zeros(200, dtype=int)
    wrong[[*range(95, 100), *range(149, 160), *range(178, 180)]] = 1
    evaluation = evaluate(wrong, y_prob=1 - confidence)
    texts = legend_texts(evaluation.figures()["risk_coverage"])
    assert [text for text in texts if "accepted" in text] == [
        "50% accepted: 5% errors (confidence of at least 83%)",
        "80% accepted: 10% errors (confidence of at least 71%)",
        "90% accepted: 10% errors (confidence of at least 67%)",
    ]


DECISIONS = ("decision_curve", "gains", "risk_coverage")


def drawn(evaluation: Any) -> set[str]:
    """The names of the figures for decisions that apply; each has a size that fits a page."""
    figures = evaluation.figures()
    names = {name for name in DECISIONS if name in figures}
    assert all(max(figures[name].get_size_inches()) < 10 for name in names)
    return names


@pytest.mark.slow
def test_figures_of_evaluations():
    for evaluation in (
        scored(),
        evaluate([0, 0, 1, 1], y_prob=[0.3] * 4),
        evaluate([0, 1], y_prob=[0.0, 1.0]),
        scored(9000, 0.01),
    ):
        assert drawn(evaluation) == set(DECISIONS)
    assert drawn(evaluate([0, 0], y_prob=[0.2, 0.4], labels=[0, 1])) == {"risk_coverage"}
    three = [0, 1, 2]
    assert drawn(evaluate(three, y_prob=np.eye(3))) == {"risk_coverage"}
    assert drawn(evaluate([0, 1], [0, 1])) == set()
    assert drawn(evaluate(three, y_prob=np.eye(3), sections=["multiclass"])) == set()


def test_operating_points_that_ties_make_equal_are_drawn_once():
    y, places = random_labels(200), np.arange(200)
    evaluation = evaluate(y, y_prob=np.where(places % 5 < 3, 0.9, 0.8))
    figure = evaluation.figures()["risk_coverage"]
    assert len([text for text in legend_texts(figure) if "accepted" in text]) == 1


@pytest.mark.slow
def test_the_band_is_left_out_where_it_is_not_known():
    from cmtrack.evaluation import loads

    y = random_labels(80)
    evaluation = evaluate(y, y_prob=random_scores(y, digits=2), groups=np.arange(80) // 2)
    band = "band of the whole curve (95%)"
    assert band in legend_texts(evaluation.figures()["decision_curve"])
    stored = loads(evaluation.to_json()).figures()["decision_curve"]
    assert not any("band" in text for text in legend_texts(stored))


def test_a_group_with_mismatches_has_a_ceiling():
    y, _, p = random_problem(3, 200, 3)
    grouping = Grouping({"yes": [0, 1], "no": [2]}, positive="yes", mode="strict")
    figure = evaluate(y, y_prob=p, grouping=grouping).figures()["gains"]
    assert any(text.startswith("ceiling ") for text in legend_texts(figure))


@pytest.mark.parametrize(
    "draw",
    [
        lambda: plot_decision_curve([0.1, 0.2], [0.1], [0.1, 0.2]),
        lambda: plot_gains([], [], prevalence=0.5),
        lambda: plot_risk_coverage([[1.0]], [[0.1]], [[3]], aurc=0.1),
    ],
    ids=["decision", "gains", "risk"],
)
def test_arrays_of_other_shapes_are_refused(draw: Any) -> None:
    with pytest.raises(ValueError, match=r"must have one shape \(n_points,\), got"):
        draw()


def test_a_decision_curve_of_rare_positives_ends_where_nothing_is_gained():
    t = np.linspace(0.01, 0.99, 99)
    by_score = np.maximum(0.05 - 0.25 * t, 0)
    figure = plot_decision_curve(t, by_score, (0.05 - t) / (1 - t))
    _, right = figure.axes[0].get_xlim()
    assert 0.2 < right < 0.25
    whole = plot_decision_curve(t, 0.5 - 0.4 * t, (0.5 - t) / (1 - t))
    assert whole.axes[0].get_xlim() == (0, 0.99)
