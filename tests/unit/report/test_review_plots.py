"""The figures of a model-selection review draw the data they are given."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from io import BytesIO
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from cmtrack.plots import BLUE, ORANGE
from cmtrack.plots.review import (
    plot_matrices,
    plot_matrix_difference,
    plot_metric_against_parameter,
    plot_metric_heatmap,
    plot_precision_recall_overlay,
    plot_rank_distribution,
    plot_ranking,
    plot_reliability_overlay,
    plot_roc_overlay,
)

NAN = float("nan")


def texts(ax: Axes) -> list[str]:
    cells = [word for words in cells_of(ax) for word in words.texts]
    return cells + [t.get_text() for t in ax.texts if t.get_text()]


def cells_of(ax: Axes) -> list[Any]:
    """The artists that write the cells of a matrix, each many texts at once."""
    return [artist for artist in ax.collections if hasattr(artist, "texts")]


def bold_cells(ax: Axes) -> list[str]:
    return [
        word
        for words in cells_of(ax)
        for word, bold in zip(words.texts, words.bold, strict=True)
        if bold
    ]


def said(figure: Figure) -> str:
    """Everything that is written as a text, folded lines joined."""
    return " ".join(" ".join(texts(ax)) for ax in figure.axes).replace("\n", " ")


def tick_names(ax: Axes, axis: str = "y") -> list[str]:
    return [t.get_text() for t in getattr(ax, f"get_{axis}ticklabels")()]


def lines_labelled(ax: Axes, label: str) -> list[Any]:
    return [line for line in ax.lines if line.get_label() == label]


def ranking(n: int = 4, **changes: Any) -> Figure:
    values = np.linspace(0.9, 0.8, n)
    # from the best other
    gaps = values - np.where(np.arange(n) == 0, values[min(1, n - 1)], values[0])
    arguments: dict[str, Any] = {
        "names": [f"run {i}" for i in range(n)],
        "values": values,
        "intervals": np.c_[values - 0.02, values + 0.01],
        "differences": gaps,
        "difference_intervals": np.c_[gaps - 0.04, gaps + 0.04],
        "tied": gaps + 0.04 > 0,
        "picked": np.zeros(n, dtype=bool),
        "metric_title": "accuracy",
        "better": "higher",
    }
    return plot_ranking(**(arguments | changes))


def dots(ax: Axes) -> dict[int, tuple[float, str, str]]:
    """Row -> (place, colour, marker)."""
    return {
        int(line.get_ydata()[0]): (
            float(line.get_xdata()[0]),
            to_hex(line.get_color()).upper(),
            str(line.get_marker()),
        )
        for line in ax.lines
        if line.get_linestyle() == "None"
    }


def bars(ax: Axes) -> dict[int, list[float]]:
    """Row -> limits of the interval drawn there."""
    return {
        int(line.get_ydata()[0]): list(line.get_xdata())
        for line in ax.lines
        if line.get_linestyle() == "-" and line.get_ydata()[0] == line.get_ydata()[1]
    }


# --- ranking ----------------------------------------------------------------------------------------------


def test_ranking_draws_values_differences_and_ties() -> None:
    figure = ranking(chosen=1)
    left, right = figure.axes
    values = np.linspace(0.9, 0.8, 4)
    assert [dots(left)[i][0] for i in range(4)] == pytest.approx(values)
    assert [dots(right)[i][0] for i in range(4)] == pytest.approx(
        [values[0] - values[1], *(values[1:] - 0.9)]
    )
    assert [dots(left)[i][1:] for i in range(4)] == [
        (BLUE, "o"),
        (BLUE, "*"),
        (ORANGE, "s"),
        (ORANGE, "s"),
    ]
    np.testing.assert_allclose(
        [bars(left)[i] for i in range(4)], np.c_[values - 0.02, values + 0.01]
    )
    assert sorted(bars(right)) == [0, 1, 2, 3]  # the leader has its lead
    assert tick_names(left) == ["run 0", "★ run 1", "run 2", "run 3"]
    assert [t.get_fontweight() for t in left.get_yticklabels()] == [
        "normal",
        "bold",
        "normal",
        "normal",
    ]
    assert texts(right) == [
        "+0.033 [−0.007, +0.073]",
        "−0.033 [−0.073, +0.007]",
        "−0.067 [−0.107, −0.027]",
        "−0.100 [−0.140, −0.060]",
    ]
    bands = [p for p in left.patches if isinstance(p, Rectangle)]
    assert [band.get_y() for band in bands] == [-0.5, 0.5]
    legend = left.get_legend()
    assert legend is not None
    assert [t.get_text() for t in legend.get_texts()] == [
        "may be the best (at 95% confidence)",
        "ruled out as the best (at 95% confidence)",
        "chosen",
    ]
    assert left.get_ylim()[0] > left.get_ylim()[1]  # the best is on top
    assert "simultaneous 95% intervals of the differences" in said(figure)


def test_ranking_without_intervals_and_with_undefined_values() -> None:
    values = np.array([0.9, 0.8, NAN])
    none = np.full((3, 2), NAN)
    figure = ranking(
        3, values=values, intervals=none, differences=values - 0.9, difference_intervals=none
    )
    left, right = figure.axes
    assert sorted(dots(left)) == [0, 1]
    assert bars(left) == bars(right) == {}
    assert texts(left)[:3] == ["0.900", "0.800", "undefined"]
    assert "No interval of the difference is known for 3" in said(figure)


@pytest.mark.slow
def test_ranking_shows_the_first_rows_and_says_so() -> None:
    figure = ranking(50, chosen=44, max_rows=30)
    left = figure.axes[0]
    assert len(tick_names(left)) == len(dots(left)) == 30
    assert "30 of 50 runs are shown." in said(figure)
    assert "The chosen run, “run 44”, is number 45 of 50." in said(figure)
    assert "are shown" not in said(ranking(2))


def test_ranking_points_at_a_row_far_away() -> None:
    values = np.array([0.1, 0.11, 0.12, 0.13, 0.9])
    figure = ranking(
        5,
        values=values,
        intervals=np.full((5, 2), NAN),
        differences=values - 0.1,
        better="lower",
        difference_intervals=np.full((5, 2), NAN),
    )
    left = figure.axes[0]
    assert left.get_xlim()[1] < 0.2
    assert dots(left)[4][0] == left.get_xlim()[1]
    assert dots(left)[4][2] == ">"
    assert "0.900" in texts(left)
    assert "Arrowheads mark values beyond the axis" in said(figure)


def test_ranking_near_zero_has_a_zero_line_on_the_left() -> None:
    values = np.array([0.1, -0.2, 0.3])
    figure = ranking(
        3,
        values=values,
        intervals=np.full((3, 2), NAN),
        differences=np.abs(values) - 0.1,
        better="nearest zero",
    )
    left, right = figure.axes
    for ax in (left, right):
        assert any(list(line.get_xdata()) == [0, 0] for line in ax.lines)
        assert ax.get_xlim()[0] < 0 < ax.get_xlim()[1]
    assert not any(list(line.get_xdata()) == [0, 0] for line in ranking(3).axes[0].lines)


# --- ROC overlay ------------------------------------------------------------------------------------------


def curves(n: int) -> list[tuple[str, list[float], list[float]]]:
    return [(f"run {i}", [0, 0.2, 1], [0, 0.9 - 0.01 * i, 1]) for i in range(n)]


def test_roc_overlay_curves_differ_in_colour_and_style() -> None:
    areas = np.r_[NAN, np.linspace(0.9, 0.8, 7)]
    intervals = np.c_[areas - 0.01, areas + 0.01]
    figure = plot_roc_overlay(
        curves(8),
        areas=areas,
        intervals=intervals,
        ceilings=[1, 1, 1, 0.8, 1, 1, 1, 0.7],
        positive="$yes",
    )
    ax = figure.axes[0]
    drawn = [line for line in ax.lines if str(line.get_label()).startswith("run")]
    others = [line for line in ax.lines if "other" in str(line.get_label())]
    np.testing.assert_allclose(drawn[3].get_xydata(), [[0, 0], [0.2, 0.87], [1, 1]])
    assert len({to_hex(line.get_color()) for line in drawn}) == len(drawn) == 4
    assert len({str(line._dash_pattern) for line in drawn}) == 4
    assert [line.get_label() for line in others] == ["other runs (4)", *["_other"] * 3]
    assert {line.get_color() for line in others} == {"#9a9a9a"}
    assert drawn[0].get_label() == "run 0: AUC undefined"
    assert drawn[1].get_label() == "run 1: AUC 0.900 [0.890, 0.910]"
    assert str(drawn[3].get_label()).endswith("ceiling 0.800, normalised 1.083")
    chance = [line.get_ydata()[1] for line in lines_labelled(ax, "_chance")]
    assert chance == [1.0, 0.8]  # a curve under a ceiling ends there, and so does its chance
    assert "Compare normalised areas" in said(figure)
    (ceiling,) = lines_labelled(ax, "_ceiling")
    assert list(ceiling.get_ydata()) == [0.8, 0.8]
    assert ceiling.get_color() == drawn[3].get_color()
    assert ax.get_ylabel() == r"recall (positive: \$yes)"
    assert "ceilings are not comparable" in said(figure)


def test_roc_overlay_leaves_out() -> None:
    figure = plot_roc_overlay(curves(50), areas=np.full(50, 0.9))
    assert "8 of 50 curves are shown." in said(figure)
    assert "ceiling" not in said(figure)


def test_the_other_overlays_draw_the_curves_in_the_colours_of_the_roc() -> None:
    areas, intervals = [0.8, 0.7], [(0.7, 0.9), (NAN, NAN)]
    roc = plot_roc_overlay(curves(2), areas=areas)
    points = [("run 0", [0.0, 0.5, 0.5, 0.8], [1, 1, 0.9, 0.6]), ("run 1", [0.5, 1], [0.5, 0.4])]
    found = plot_precision_recall_overlay(
        points, areas=areas, prevalence=0.3, intervals=intervals, ceilings=[0.8, 1]
    )
    scores = [("run 0", [0.1, 0.2], [0, 0.4]), ("run 1", [0.05, 0.15], [0.1, 0.1])]
    reliable = plot_reliability_overlay(
        scores, errors=areas, intervals=intervals, words=["too high", ""], event="x"
    )
    shown = [
        [line for line in figure.axes[0].lines if str(line.get_label()).startswith("run")]
        for figure in (roc, found, reliable)
    ]
    for lines in shown[1:]:
        assert [line.get_color() for line in lines] == [line.get_color() for line in shown[0]]
    # no step without hits
    np.testing.assert_allclose(shown[1][0].get_xydata(), [[0, 1], [0.5, 1], [0.8, 0.6]])
    assert shown[1][0].get_label() == "run 0: average precision 0.800 [0.700, 0.900], ceiling 0.800"
    assert [list(line.get_ydata()) for line in lines_labelled(found.axes[0], "_chance")] == [
        [0.3] * 2,
        [0.24] * 2,
    ]
    (ceiling,) = lines_labelled(found.axes[0], "_ceiling")
    assert list(ceiling.get_xdata()) == [0.8, 0.8]
    assert [line.get_label() for line in shown[2]] == [
        "run 0: calibration error 0.800 [0.700, 0.900]; too high",
        "run 1: calibration error 0.700",
    ]
    np.testing.assert_allclose(shown[2][1].get_xydata(), [[0.05, 0.1], [0.15, 0.1]])
    assert reliable.axes[0].get_xlim() == (0, 0.25)  # no empty axis where scores are small


# --- matrices ---------------------------------------------------------------------------------------------


def test_matrices_share_one_scale_and_name_classes_once() -> None:
    first, second = np.array([[8, 2], [0, 10]]), np.array([[5, 5], [1, 9]])
    figure = plot_matrices([("a", first), ("b", second)], ["no", "yes"], title="T")
    panels = figure.axes[:2]
    for ax, counts in zip(panels, (first, second), strict=True):
        np.testing.assert_allclose(ax.images[0].get_array(), counts / 10)
        assert ax.images[0].get_clim() == (0, 1)
    assert [ax.get_title() for ax in panels] == ["a", "b"]
    assert tick_names(panels[0]) == ["no (n=10)", "yes (n=10)"]
    assert [ax.get_ylabel() for ax in panels] == ["actual class", ""]
    assert [ax.yaxis.get_tick_params()["labelleft"] for ax in panels] == [True, False]
    assert texts(panels[0])[:4] == ["8\n80%", "2\n20%", "0", "10\n100%"]
    assert not any(ax.child_axes for ax in panels)  # shares in cells need no colour bar


@pytest.mark.slow
@pytest.mark.parametrize(("size", "written"), [(2, True), (7, True), (60, False)])
def test_matrices_write_counts_only_while_legible(size: int, written: bool) -> None:
    matrix = 30 * np.eye(size) + 1
    matrix[1] = 0
    figure = plot_matrices([(f"m{i}", matrix) for i in range(8)], range(size))
    assert len(figure.axes) == 6
    assert ("31" in said(figure)) == written
    assert "6 of 8 matrices are shown." in said(figure)
    assert f"Hatched classes have no rows (1 of {size} classes)." in said(figure)


# --- difference of matrices -------------------------------------------------------------------------------


def test_difference_is_blue_where_the_second_is_better() -> None:
    difference = np.array([[0.1, -0.1, 0.0], [0.02, -0.0204, 0.0004], [NAN, NAN, NAN]])
    significant = np.zeros((3, 3), dtype=bool)
    significant[0, 1] = True
    counts = np.array([[10, -10, 0], [1, -1, 0], [0, 0, 0]])
    figure = plot_matrix_difference(
        difference, "abc", first="A", second="B$", significant=significant, counts=counts
    )
    ax = figure.axes[0]
    image = ax.images[0]
    np.testing.assert_allclose(image.get_array()[:2], [[0.1, 0.1, 0], [-0.02, -0.0204, -0.0004]])
    good, bad = image.to_rgba(np.array([0.1, -0.1]))
    assert good[2] > 0.5 > good[0]
    assert bad[0] > 0.5 > bad[2]
    assert image.get_clim() == (-0.1, 0.1)
    assert texts(ax)[:6] == [
        "+10.0\n(+10)",
        "−10.0\n(−10)",
        "0",
        "+2.0\n(+1)",
        "−2.0\n(−1)",
        "+0.0\n(0)",
    ]
    assert bold_cells(ax) == ["−10.0\n(−10)"]
    assert r"“B\$” does better than “A” in blue cells" in said(figure)
    assert "bold number differ significantly (1 of 9 cells)" in said(figure)
    assert any(c.get_hatch() == "////" for c in ax.collections if isinstance(c, PatchCollection))


@pytest.mark.slow
def test_one_sample_is_pale_and_only_what_is_significant_is_saturated() -> None:
    """Breast cancer: two cells were in the deepest blue for one sample, with "0 of 4 significant"."""
    one = np.array([[0.009, -0.009], [0.0, 0.0]])
    nothing = np.zeros((2, 2), dtype=bool)
    figure = plot_matrix_difference(
        one, "ab", first="A", second="B", significant=nothing, totals=[114, 12]
    )
    ax = figure.axes[0]
    image = ax.images[0]
    # the largest difference is not stretched to the deepest colour
    assert image.get_clim() == (-0.05, 0.05)
    np.testing.assert_allclose(image.get_alpha(), [[0.2, 0.2], [0.07, 0.07]])
    assert tick_names(ax) == ["a (n=114)", "b (n=12)"]
    assert "Paler lines: fewer than 20 rows of data (1 of 2 classes)." in said(figure)
    assert lines_labelled(ax, "_better") == lines_labelled(ax, "_worse") == []
    drawn = np.array([[0.1, -0.1], [0.3, -0.3]])
    marked = np.array([[True, True], [False, False]])
    figure = plot_matrix_difference(
        drawn, "ab", first="A", second="B", significant=marked, totals=[200, 200]
    )
    ax = figure.axes[0]
    assert ax.images[0].get_clim() == (-0.1, 0.1)  # of what is significant
    np.testing.assert_allclose(ax.images[0].get_alpha(), [[1, 1], [0.2, 0.2]])
    (better,) = lines_labelled(ax, "_better")
    assert np.round(better.get_xydata()).tolist() == [[0, 0], [1, 0]]
    worse = plot_matrix_difference(-drawn, "ab", first="A", second="B", significant=marked).axes[0]
    # told apart without colour
    assert [line.get_marker() for line in lines_labelled(worse, "_worse")] == ["v"]
    sixty = plot_matrix_difference(
        0.1 * np.eye(60),
        range(60),
        first="A",
        second="B",
        totals=[1, *[40] * 59],
        significant=np.eye(60, dtype=bool),
    )
    assert tick_names(sixty.axes[0])[0] == "0 (n=1)"


def test_long_names_of_two_runs_stay_different() -> None:
    first, second = (
        f"transformer-large-uncased-v3.2-2024-06-11-21-lr{rate}e-5-bs64" for rate in (3, 5)
    )
    zero = np.zeros((2, 2))
    caption = said(plot_matrix_difference(zero, "ab", first=first, second=second))
    assert "lr3e" in caption
    assert "lr5e" in caption
    names = tick_names(ranking(2, names=[first, second]).axes[0])
    assert len(set(names)) == 2


def test_difference_of_60_classes_marks_by_dots() -> None:
    difference = 0.1 * np.eye(60) - 0.1 * np.eye(60)[::-1]
    significant = np.eye(60, dtype=bool)
    figure = plot_matrix_difference(
        difference, range(60), first="A", second="B", significant=significant
    )
    (marks,) = lines_labelled(figure.axes[0], "_better")
    np.testing.assert_array_equal(marks.get_xydata(), np.c_[range(60), range(60)])
    assert marks.get_marker() == "^"
    assert lines_labelled(figure.axes[0], "_worse") == []
    assert len(texts(figure.axes[0])) == 1  # the caption
    assert "triangle differ significantly (60 of 3600 cells)" in said(figure)


# --- metric heatmap ---------------------------------------------------------------------------------------


def test_column_tones_count_standard_errors_behind_the_best() -> None:
    values = np.array([[0.9, 0.3, -0.2, 1.0], [0.89, 0.1, 0.1, 1.0], [NAN, 0.5, 0.3, 1.0]])
    errors = np.array([[0.02, 0.1, 0.05, NAN]] * 3)
    figure = plot_metric_heatmap(
        "abc",
        ["u", "v", "w", "x"],
        values,
        ["higher", "lower", "nearest zero", "higher"],
        errors=errors,
    )
    tones = np.ma.filled(figure.axes[0].images[0].get_array(), NAN)
    # log2 of 2, 2, 4 and 4, over 4
    expected = [[0, 0.25, 0.25, 0], [0, 0, 0, 0], [NAN, 0.5, 0.5, 0]]
    np.testing.assert_allclose(tones, expected, atol=1e-12)


def test_noise_is_pale_and_one_bad_run_does_not_make_the_good_ones_alike() -> None:
    """Breast cancer: one sample less was white against dark blue."""
    sample = np.array([[0.979], [0.984]])
    noise = plot_metric_heatmap("ab", ["accuracy"], sample, ["higher"], errors=[[0.01], [0.009]])
    assert noise.axes[0].images[0].get_array().tolist() == [[0.0], [0.0]]
    values = np.array([[0.95], [0.92], [0.85], [0.10]])
    errors = np.full((4, 1), 0.01)
    figure = plot_metric_heatmap("abcd", ["accuracy"], values, ["higher"], errors=errors)
    tones = figure.axes[0].images[0].get_array().ravel().tolist()
    assert tones == pytest.approx([0, np.log2(3) / 4, np.log2(10) / 4, 1])
    assert "at most one standard error behind the best" in said(figure)
    without = plot_metric_heatmap("abcd", ["accuracy"], values, ["higher"])
    tones = without.axes[0].images[0].get_array().ravel().tolist()
    assert tones[0] == 0
    assert tones[3] == 1
    assert 0.05 < tones[1] < tones[2] < 0.8


def test_metric_heatmap_writes_numbers_and_marks_ties() -> None:
    values = np.array([[0.9, 1234.0], [0.8, NAN]])
    figure = plot_metric_heatmap(
        ["a", "b"], ["AUC", "cost"], values, ["higher", "lower"], tied=np.array([False, True])
    )
    ax = figure.axes[0]
    assert texts(ax)[:4] == ["0.900", "1234", "0.800", "–"]
    assert np.ma.getmaskarray(ax.images[0].get_array()).tolist() == [[False, False], [False, True]]
    assert tick_names(ax, "x") == ["AUC ↑", "cost ↓"]
    assert "undefined (1 of 4)" in said(figure)
    assert [t.get_fontweight() for t in ax.get_yticklabels()] == ["normal", "bold"]
    assert "Runs with a bold name may be the best." in said(figure)


def test_metric_heatmap_of_40_runs_and_15_metrics() -> None:
    values = np.random.default_rng(0).random((40, 15))
    figure = plot_metric_heatmap(
        range(40), [f"a metric {j}" for j in range(15)], values, ["higher"] * 15
    )
    assert len(texts(figure.axes[0])) == 601
    assert len(tick_names(figure.axes[0])) == 40


# --- ranks ------------------------------------------------------------------------------------------------


def test_rank_distribution_writes_what_is_probable() -> None:
    shares = np.array([[0.995, 0.005], [0.005, 0.995]])
    figure = plot_rank_distribution(["a", "b"], shares)
    ax = figure.axes[0]
    np.testing.assert_array_equal(ax.images[0].get_array(), shares)
    assert texts(ax) == [">99%", ">99%", "Probabilities below 1% have no number."]
    assert tick_names(ax) == ["a", "b"]
    assert tick_names(ax, "x") == ["1", "2"]


@pytest.mark.slow
def test_rank_distribution_of_50_runs() -> None:
    figure = plot_rank_distribution([f"run {i}" for i in range(50)], np.full((50, 50), 0.02))
    assert texts(figure.axes[0]) == []
    assert len(tick_names(figure.axes[0])) == 50


# --- parameter --------------------------------------------------------------------------------------------


def parameter(x: list[Any], values: Any = None, **changes: Any) -> Figure:
    y = np.linspace(0.8, 0.9, len(x)) if values is None else np.asarray(values)
    arguments: dict[str, Any] = {
        "intervals": np.c_[y - 0.01, y + 0.01],
        "parameter": "C",
        "metric_title": "F1",
    }
    return plot_metric_against_parameter(x, y, **(arguments | changes))


def test_parameter_on_a_log_axis_joins_the_means() -> None:
    figure = parameter(
        [0.01, 1, 0.01, 1, None, 1], [0.8, 0.9, 0.7, NAN, 0.5, 0.8], highlight=1, names="abcdef"
    )
    ax = figure.axes[0]
    assert ax.get_xscale() == "log"
    (means,) = lines_labelled(ax, "_means")
    np.testing.assert_allclose(means.get_xydata(), [[0.01, 0.75], [1, 0.85]])
    runs = [tuple(line.get_xydata()[0]) for line in lines_labelled(ax, "_run")]
    assert runs == [(0.01, 0.8), (0.01, 0.7), (1, 0.8)]
    (marked,) = lines_labelled(ax, "_highlight")
    assert tuple(marked.get_xydata()[0]) == (1, 0.9)
    # as in the ranking; orange is worse
    assert (marked.get_color(), marked.get_marker()) == (BLUE, "*")
    assert len(lines_labelled(ax, "_interval")) == 4
    assert "2 of 6 runs are left out" in said(figure)
    assert "★ marks the chosen run, “b”." in said(figure)
    assert parameter([1, 2, 50]).axes[0].get_xscale() == "linear"
    assert parameter([0, 2, 500]).axes[0].get_xscale() == "linear"


def test_parameter_draws_no_tangle() -> None:
    assert lines_labelled(parameter(list(range(50))).axes[0], "_means") == []
    assert len(lines_labelled(parameter(list(range(10))).axes[0], "_means")) == 1


# --- house rules ------------------------------------------------------------------------------------------


def every_figure(n: int, size: int) -> dict[str, Callable[[], Figure]]:
    names = [f"gradient_boosting depth=3 $x$ trees=1000 {i:03d}" for i in range(n)]
    labels = [f"class number {i} with quite a long name" for i in range(size)]
    matrix = np.eye(size) * 40 + 1
    flat = np.full((n, n), 1 / n)
    return {
        "ranking": lambda: ranking(
            n, names=names, chosen=n - 1, metric_title="a metric with a $ " * 3, title="T"
        ),
        "roc": lambda: plot_roc_overlay(
            [(k, [0, 1], [0, 1]) for k in names], areas=[0.5] * n, title="T"
        ),
        "precision": lambda: plot_precision_recall_overlay(
            [(k, [0, 1], [1, 0.5]) for k in names],
            areas=[0.5] * n,
            prevalence=0.5,
            ceilings=[0.9] * n,
            title="T",
        ),
        "reliability": lambda: plot_reliability_overlay(
            [(k, [0, 1], [0, 1]) for k in names],
            errors=[0.5] * n,
            words=["over-confident, too high"] * n,
            title="T",
        ),
        "matrices": lambda: plot_matrices([(k, matrix) for k in names], labels, title="T"),
        "difference": lambda: plot_matrix_difference(
            matrix / 50, labels, first=names[0], second=names[1], title="T"
        ),
        "metrics": lambda: plot_metric_heatmap(
            names, names[:9], np.ones((n, min(n, 9))), ["lower"] * min(n, 9)
        ),
        "ranks": lambda: plot_rank_distribution(names, flat, title="T"),
        "parameter": lambda: parameter(list(range(n)), names=names, highlight=0, title="T"),
    }


@pytest.mark.slow
@pytest.mark.parametrize(("n", "size"), [(2, 2), (50, 60)])
@pytest.mark.parametrize("name", list(every_figure(2, 2)))
def test_nothing_is_cut_off_and_pyplot_knows_nothing(name: str, n: int, size: int) -> None:
    figure = every_figure(n, size)[name]()
    figure.savefig(BytesIO())
    box = figure.get_tightbbox()
    width, height = figure.get_size_inches()
    assert box.x0 >= -0.01
    assert box.y0 >= -0.01
    assert box.x1 <= width + 0.01
    assert box.y1 <= height + 0.01
    import matplotlib.pyplot as plt

    plt.close("all")  # what other tests left
    assert plt.get_fignums() == []


@pytest.mark.slow
def test_import_leaves_pyplot_unloaded() -> None:
    code = "import sys, cmtrack.plots.review; sys.exit('matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_given_axes_are_drawn_into() -> None:
    figure = Figure(figsize=(12, 8))
    panels = figure.subplots(2, 3).ravel()
    nothing = np.zeros((2, 2))
    assert plot_roc_overlay(curves(2), areas=[0.9, 0.8], ax=panels[0]) is figure
    assert plot_matrix_difference(nothing, "ab", first="A", second="B", ax=panels[1]) is figure
    assert plot_metric_heatmap("ab", "mn", nothing, ["lower"] * 2, ax=panels[2]) is figure
    assert plot_rank_distribution("ab", np.eye(2), ax=panels[3]) is figure
    assert (
        plot_metric_against_parameter(
            [1], [1], [[0, 2]], parameter="p", metric_title="m", ax=panels[4]
        )
        is figure
    )
    assert all(ax.has_data() for ax in panels[:5])


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([0.91, 0.83], ["0.910", "0.830"]),
        ([0.9123, 0.9121], ["0.91230", "0.91210"]),
        ([12.0, 34.0], ["12.0", "34.0"]),
        ([100.0, 2345.0], ["100", "2345"]),
        ([-0.0001, 0.5], ["0.000", "0.500"]),
    ],
)
def test_numbers_have_the_decimals_that_tell_them_apart(
    values: list[float], shown: list[str]
) -> None:
    figure = plot_metric_heatmap("ab", ["m"], np.array(values)[:, None], ["higher"])
    assert texts(figure.axes[0])[:2] == shown
