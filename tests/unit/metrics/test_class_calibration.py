"""Calibration of each class and of the confidence: the table, its words, the figure of panels, the report."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cmtrack import Evaluation, Grouping, evaluate
from cmtrack.plots import ReliabilityPanel, plot_reliability_panels
from support.problems import B20, D20, random_problem


def problem(k: int = 4, n: int = 400, wrong: float = 1.0, seed: int = 0) -> tuple[Any, Any]:
    """Labels and probabilities, over-confident by a factor."""
    y, _, p = random_problem(seed, n, k, 2.0, slope=2.0 * wrong)
    return y, p


def of(k: int = 4, n: int = 400, wrong: float = 1.0, seed: int = 0, **options: Any) -> Evaluation:
    y, p = problem(k, n, wrong, seed)
    return evaluate(y, y_prob=p, labels=range(k), **options)


def row(label: object, p_holm: float, support: float = 50, error: float = 0.1) -> dict[str, Any]:
    """What a sentence is made of."""
    return {
        "label": label,
        "support": support,
        "error": error,
        "pvalue": p_holm / 2,
        "pvalue_holm": p_holm,
    }


def panels_of(evaluation: Evaluation) -> Any:
    """The figure of panels; None where it does not apply."""
    return evaluation.figures().get("reliability_classes")


# -- numbers ---------------------------------------------------------------------------------------------------


def test_a_class_has_the_numbers_of_vector_20():
    rest = (1 - D20)[:, None] * [0.6, 0.4]
    evaluation = evaluate(
        np.where(B20, 0, 1 + np.arange(20) % 2), y_prob=np.column_stack((D20, rest))
    )
    first = evaluation.class_calibration().classes[0]
    assert first.slope == pytest.approx(0.9379793756, abs=1e-9)
    assert (first.support, first.share) == (10, 0.5)
    assert first.mean_score == pytest.approx(D20.mean(), abs=1e-12)
    curve = evaluation.calibration_of(0)
    assert curve.positive == 0
    assert curve.brier == pytest.approx((0.17825, 0.0365833333, 0.1083333333, 0.25), abs=1e-9)
    assert curve.error(4).squared == pytest.approx(-0.0212208333, abs=1e-9)
    assert curve.test is not None
    assert (curve.test.kuiper, curve.test.cox) == pytest.approx(
        (0.5125783215, 0.1273276825), abs=1e-9
    )


@pytest.mark.slow
@pytest.mark.parametrize("weights", ["none", "sampling"])
def test_the_table_is_that_of_the_metrics_with_p_values_by_holm(weights):
    multitest = pytest.importorskip("statsmodels.stats.multitest", exc_type=ImportError)
    given = np.random.default_rng(1).gamma(2, 0.5, 400) if weights == "sampling" else None
    y, p = problem(wrong=1.6)
    evaluation = evaluate(y, y_prob=p, sample_weight=given)
    found = evaluation.class_calibration()
    frame = found.to_frame()
    assert list(frame.columns) == list(found.classes[0]._fields)
    for k, own in frame.iterrows():
        for column, name in {
            "error": "calibration_error",
            "pvalue": "calibration_pvalue",
            "roc_auc": "roc_auc",
            "average_precision": "average_precision",
            "support": "support",
        }.items():
            assert own[column] == evaluation.metrics[f"class/{k}/{name}"]
        assert (own["low"], own["high"]) == evaluation.intervals[f"class/{k}/calibration_error"]
    assert frame["pvalue_holm"].to_numpy() == pytest.approx(
        multitest.multipletests(frame["pvalue"], method="holm")[1]
    )
    assert found.pvalue == frame["pvalue_holm"].min() <= 0.05
    assert found.squared == pytest.approx(
        np.mean([evaluation.calibration_of(k).error().squared for k in range(4)])
    )
    assert frame["mean_score"].to_numpy() == pytest.approx(np.average(p, axis=0, weights=given))
    assert frame["share"].sum() == pytest.approx(1)


def test_a_class_without_samples_is_neither_tested_nor_counted():
    y, p = problem(3)
    judged = evaluate(
        y, y_prob=np.column_stack((p, np.zeros(400))), labels=range(4)
    ).class_calibration()
    without = judged.classes[3]
    assert (without.support, without.share, without.mean_score) == (0, 0, 0)
    assert all(
        map(math.isnan, (without.pvalue, without.pvalue_holm, without.roc_auc, without.slope))
    )
    assert len(judged.tested) == 3
    alone = evaluate(y, y_prob=p).class_calibration()
    assert [own.pvalue_holm for own in judged.tested] == [own.pvalue_holm for own in alone.classes]
    assert judged.squared == pytest.approx(alone.squared)


def test_the_table_survives_saving_and_sections_that_leave_out_classes(tmp_path):
    evaluation = of()
    evaluation.save(tmp_path / "e")
    others = evaluation.with_sections(["multiclass"])
    assert not others.has_class_calibration
    for same in (Evaluation.load(tmp_path / "e"), others):
        pd.testing.assert_frame_equal(
            same.class_calibration().to_frame(), evaluation.class_calibration().to_frame()
        )


def test_curves_of_rows_that_belong_together_draw_no_labels():
    """That of the confidence did: its test and its band took the rows for independent."""
    y, p = problem()
    evaluation = evaluate(y, y_prob=p, groups=np.arange(400) // 5)
    for curve in (evaluation.calibration_of(2), evaluation.confidence_calibration):
        assert curve is not None
        assert curve.test is None
        assert curve.leaves_band is None
    own = evaluation.class_calibration().classes[2]
    assert own.pvalue == evaluation.metrics["class/2/calibration_pvalue"]
    assert math.isnan(own.low)


@pytest.mark.slow
@pytest.mark.parametrize(
    "made",
    [
        lambda: evaluate([0, 1, 1, 0], y_prob=[0.1, 0.8, 0.7, 0.4]),
        lambda: evaluate([0, 1, 2], [0, 1, 1]),
        lambda: of(31, 200),
        lambda: evaluate([0, 1, 2], y_score=[[2, 1, 0], [0, 1, 0], [0, 2, 3]]),
    ],
    ids=["two", "labels", "31", "decision values"],
)
def test_three_to_thirty_classes_with_probabilities_are_needed(made):
    evaluation = made()
    assert not evaluation.has_class_calibration
    with pytest.raises(
        ValueError,
        match="calibration of classes needs probabilities of 3 to 30 classes, got Evalua",
    ):
        evaluation.class_calibration()
    with pytest.raises(ValueError, match="needs probabilities of 3 to 30 classes"):
        evaluation.calibration_of(0)
    assert panels_of(evaluation) is None


def test_the_curve_of_a_class_that_does_not_exist():
    with pytest.raises(ValueError, match=r"label must be one of \[0, 1, 2, 3\], got 'x'"):
        of().calibration_of("x")


# -- words -----------------------------------------------------------------------------------------------------

NAN = math.nan


@pytest.mark.parametrize(
    ("rows", "level", "sentence"),
    [
        (
            [row("a", 0.2), row("b", 0.6), row("c", 0.6)],
            0.95,
            "0 of 3 classes show signs of miscalibration (smallest p, adjusted by Holm: 0.200).",
        ),
        (
            [row("a", 0.012), row("b", 0.6), row("c", 0.6)],
            0.95,
            "1 of 3 classes shows signs of miscalibration: “a” (p = 0.012), with p adjusted by Holm.",
        ),
        (
            [row("a", 0.05), row("b", 0.0004), row("c", 0.6)],
            0.95,
            "2 of 3 classes show signs of miscalibration: “b” (p < 0.001) and “a” (p = 0.050), with p adjusted by Holm.",
        ),
        (
            [row(k, 0.006, error=k / 10) for k in range(5)],
            0.95,
            "5 of 5 classes show signs of miscalibration: “4” (p = 0.006), “3” (p = 0.006), “2” (p = 0.006) and 2 more, "
            "with p adjusted by Holm.",
        ),
        (
            [row("a", 0.2, support=19), row("b", NAN), row("c", 0.6)],
            0.95,
            "0 of 2 tested classes (of 3) show signs of miscalibration (smallest p, adjusted "
            "by Holm: 0.200); for 1 class with fewer than 20 rows, the test finds only large "
            "errors.",
        ),
        ([row(k, NAN) for k in range(3)], 0.95, "None of 3 classes has a test of calibration."),
        (
            [row(k, 0.011) for k in range(11)],
            0.99,
            "No Holm-adjusted p-value can be as small as 0.01: with 11 tests, the smallest "
            "possible value is 0.011.",
        ),
    ],
    ids=["none", "one", "two", "many", "rare", "untested", "draws"],
)
def test_the_sentence_counts_first_and_names_at_most_three(rows, level, sentence):
    found = of(3, 60).class_calibration()
    classes = tuple(found.classes[0]._replace(**numbers) for numbers in rows)
    assert replace(found, classes=classes, level=level).sentence() == sentence


# -- figure ----------------------------------------------------------------------------------------------------


def titles(figure: Any) -> list[str]:
    return [ax.get_title(loc="left") for ax in figure.axes if ax.get_title(loc="left")]


def notes(figure: Any) -> list[str]:
    return [text.get_text() for ax in figure.axes for text in ax.texts]


@pytest.mark.slow
@pytest.mark.parametrize(("k", "panels"), [(3, 4), (30, 8)])
def test_each_class_has_a_panel_and_of_many_the_largest(k, panels):
    evaluation = of(k, 600)
    figure = panels_of(evaluation)
    assert len(titles(figure)) == panels
    assert titles(figure)[0] == "predicted class"
    more = " (the 7 largest of 30)" if k == 30 else ""
    assert figure.get_suptitle() == f"Reliability by class{more}"
    sizes = evaluation.class_calibration().to_frame().set_index("label")["support"]
    drawn = [int(title) for title in titles(figure)[1:]]
    assert drawn == sorted(drawn)
    assert sizes[drawn].min() >= sizes.drop(drawn).max() if k == 30 else drawn == list(range(k))
    width, height = figure.get_size_inches() * figure.dpi
    for ax in [*figure.axes, *figure.legends]:  # nothing is cut off
        if ax.get_visible():
            box = ax.get_tightbbox(figure.canvas.get_renderer())
            assert -1 <= box.x0 <= box.x1 <= width + 1
            assert -1 <= box.y0 <= box.y1 <= height + 1


@pytest.mark.slow
def test_a_panel_says_what_the_table_says():
    evaluation = of(wrong=1.8)
    figure = panels_of(evaluation)
    judged = evaluation.class_calibration()
    hits = round(evaluation.metrics["multiclass/accuracy"] * 400)
    wanted = [
        (
            hits,
            evaluation.metrics["confidence/error"],
            evaluation.metrics["confidence/pvalue"],
            0.001,
        )
    ]
    # 0.004: the least of four
    wanted += [(own.support, own.error, own.pvalue_holm, 0.004) for own in judged.classes]
    assert notes(figure) == [
        f"n={n:.0f}, error {error:.3f}, p {'≤ ' if p == least else ''}{p:.3f}"
        for n, error, p, least in wanted
    ]
    marked = [text.get_color() == "#D55E00" for ax in figure.axes for text in ax.texts]
    assert marked == [p <= 0.05 for *_, p, _ in wanted]
    assert any(marked[1:])
    curve = evaluation.calibration_of(1)
    ax = next(ax for ax in figure.axes if ax.get_title(loc="left") == "1")
    line = next(line for line in ax.lines if line.get_label() == "isotonic curve")
    assert line.get_xdata() == pytest.approx(curve.scores)
    assert line.get_ydata() == pytest.approx(curve.recalibrated)
    assert panels_of(evaluation.with_sections(["multiclass"])) is None
    # without the confidence
    assert len(titles(panels_of(evaluation.with_sections(["class"])))) == 4


@pytest.mark.slow
def test_small_scores_have_axes_of_their_own_and_one_score_is_a_point():
    rng = np.random.default_rng(5)
    p = rng.dirichlet((3, 5, 7), 20000)
    small = rng.beta(0.3, 60, 20000)[:, None] * 0.2
    p = np.column_stack((small, p * (1 - small)))
    y = np.minimum((rng.random((20000, 1)) > np.cumsum(p, axis=1)).sum(axis=1), 3)
    axes = {ax.get_title(loc="left"): ax for ax in panels_of(evaluate(y, y_prob=p)).axes}
    assert axes["0"].get_xlim() == axes["0"].get_ylim() == (0, 0.05)
    assert {axes[name].get_xlim() for name in ("predicted class", "1", "2", "3")} == {(0, 1)}
    constant = evaluate(np.arange(300) % 3, y_prob=np.tile([0.2, 0.3, 0.5], (300, 1)))
    for ax in panels_of(constant).axes:
        if ax.get_title(loc="left"):
            assert ax.lines[-1].get_marker() == "o"


@pytest.mark.slow
def test_classes_of_one_side_only_are_left_out_of_the_figure():
    y, p = problem(3)
    absent = evaluate(y, y_prob=np.column_stack((p, np.zeros(400))), labels=range(4))
    assert titles(panels_of(absent)) == ["predicted class", "0", "1", "2"]
    alone = evaluate(np.zeros(20, dtype=int), y_prob=p[:20], labels=[0, 1, 2])
    assert panels_of(alone) is None
    with pytest.raises(ValueError, match="panels must have at least one panel"):
        plot_reliability_panels([])
    only = plot_reliability_panels([ReliabilityPanel("a", [0.2, 0.4], [0.1, 0.5], [1, 5], [9, 5])])
    assert titles(only) == ["a"]


# -- report ----------------------------------------------------------------------------------------------------

AREA = "The area under the ROC curve, averaged over the classes (each against all others), is "


@pytest.mark.slow
def test_the_report_has_the_numbers_of_each_class_and_a_sentence(tmp_path):
    evaluation = of(wrong=1.8)
    page = evaluation.report(tmp_path / "r.html").read_text(encoding="utf-8")
    judged = evaluation.class_calibration()
    assert judged.sentence() in page
    for head in ("ROC AUC", "AP", "Calibration error", "p (Holm)"):
        assert f">{head}</th>" in page
    for own in judged.classes:
        shown = f"{'≤ ' if own.pvalue_holm == 0.004 else ''}{own.pvalue_holm:.3f}"
        assert f'data-sort="{own.pvalue_holm}">{shown}<' in page
        assert f'data-sort="{own.average_precision}"' in page
    assert AREA in page
    # among the headline metrics, by its tooltip, and among all metrics
    assert page.count('title="multiclass/roc_auc_ovr_macro: ') == 1
    assert page.count("multiclass/roc_auc_ovr_macro</code>") == 1
    two = of(grouping=Grouping({"low": [0, 1], "high": [2, 3]}, positive="high")).report(
        tmp_path / "two.html"
    )
    grouped = two.read_text(encoding="utf-8")
    assert AREA not in grouped
    assert 'title="multiclass/roc_auc_ovr_macro: ' not in grouped
    assert grouped.count("multiclass/roc_auc_ovr_macro</code>") == 1
    labels = (
        evaluate([0, 1, 2, 0], [0, 1, 1, 0])
        .report(tmp_path / "labels.html")
        .read_text(encoding="utf-8")
    )
    assert "p (Holm)" not in labels
    assert AREA not in labels


def test_the_interval_of_an_error_ends_at_one():
    """With six weighted rows the upper end was 1.52."""
    p = np.random.default_rng(9).dirichlet(np.ones(5), 6)
    weights = [0.68, 1.02, 0.0198, 0.0023, 0.55, 1.63]
    judged = evaluate([0, 1, 2, 3, 4, 4], y_prob=p, labels=range(5), sample_weight=weights)
    assert judged.intervals["class/2/calibration_error"] == (0.0, 1.0)
