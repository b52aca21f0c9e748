"""The figures draw the data they are given: arrays, lines, texts and marks are checked, not pixels."""

from __future__ import annotations

import subprocess
import sys
import threading
from io import BytesIO
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.figure import Figure
from matplotlib.patches import StepPatch

from cmtrack import Grouping, evaluate
from cmtrack.plots import (
    plot_confusion_matrix,
    plot_prevalence,
    plot_reduced_matrix,
    plot_roc,
    plot_score_histogram,
    plot_spcc_matrix,
)
from support.figures import cell_texts, drawn_cells
from support.problems import random_probabilities

NPS = np.array([[20, 59, 1], [4, 185, 23], [2, 127, 88]])
NPS_LABELS = ["detractor", "passive", "promoter"]


def main_axes(figure: Figure) -> Axes:
    return figure.axes[0]


def notes(figure: Figure) -> list[str]:
    """What is written beside the cells."""
    return [text.get_text() for text in main_axes(figure).texts if text.get_text()]


def legend_texts(figure: Figure) -> list[str]:
    legend = main_axes(figure).get_legend()
    assert legend is not None
    return [t.get_text() for t in legend.get_texts()]


def line_labelled(figure: Figure, start: str) -> Any:
    return next(line for line in main_axes(figure).lines if str(line.get_label()).startswith(start))


def tick_names(figure: Figure, axis: str = "y") -> list[str]:
    return [t.get_text() for t in getattr(main_axes(figure), f"get_{axis}ticklabels")()]


# --- confusion matrix -------------------------------------------------------------------------------------


def test_confusion_matrix_draws_row_shares_with_counts_and_totals() -> None:
    figure = plot_confusion_matrix(NPS, NPS_LABELS, title="Confusion")
    ax = main_axes(figure)
    drawn = ax.images[0].get_array()
    np.testing.assert_allclose(drawn, NPS / NPS.sum(axis=1, keepdims=True))
    assert sorted(cell_texts(figure)) == sorted(
        [
            "20\n25%",
            "59\n74%",
            "1\n1%",
            "4\n2%",
            "185\n87%",
            "23\n11%",
            "2\n1%",
            "127\n59%",
            "88\n41%",
        ]
    )
    assert tick_names(figure) == ["detractor (n=80)", "passive (n=212)", "promoter (n=217)"]
    assert tick_names(figure, "x") == NPS_LABELS
    assert ax.get_title() == "Confusion"
    assert ax.get_ylim() == (2.5, -0.5)  # the first class is on top


def test_diagonal_is_framed_and_empty_class_is_hatched() -> None:
    counts = np.array([[5, 1, 0], [0, 0, 0], [2, 0, 7]])
    figure = plot_confusion_matrix(counts, ["a", "b", "c"])
    ax = main_axes(figure)
    mask = np.ma.getmaskarray(ax.images[0].get_array())
    assert mask[1].all()
    assert not mask[[0, 2]].any()
    hatch, frames = [c for c in ax.collections if isinstance(c, PatchCollection)]
    assert (hatch.get_hatch(), len(hatch.get_paths())) == ("////", 1)
    assert len(frames.get_paths()) == 2
    assert "no rows" in notes(figure)
    assert any(t.startswith("Hatched classes have no rows (1 of 3") for t in notes(figure))


@pytest.mark.slow
def test_rows_of_few_samples_are_pale() -> None:
    counts = np.array([[300, 20], [1, 0]])
    figure = plot_confusion_matrix(counts, ["many", "one"])
    opacity = main_axes(figure).images[0].get_alpha()
    np.testing.assert_array_equal(opacity, [[1, 1], [0.35, 0.35]])
    assert "Paler lines: fewer than 20 rows of data (1 of 2 classes)." in notes(figure)
    # weights, not samples
    assert main_axes(plot_confusion_matrix(counts / 100, "ab")).images[0].get_alpha() is None
    assert main_axes(plot_confusion_matrix(counts * 20, "ab")).images[0].get_alpha() is None
    assert (
        main_axes(plot_confusion_matrix(counts, ["many", "one"], positive="one"))
        .images[0]
        .get_alpha()
        is None
    )
    reduced = plot_reduced_matrix(counts, [30, 2], "ab")
    assert "(1 of 2 groups)." in " ".join(notes(reduced))
    parts = main_axes(reduced).images
    assert [np.asarray(image.get_alpha()).ravel().tolist()[-1] for image in parts] == [0.35] * 3
    sixty = 30 * np.eye(60)
    sixty[7, 7], sixty[7, 8] = 0, 1
    figure = plot_confusion_matrix(sixty, range(60))
    assert main_axes(figure).images[0].get_alpha()[7, 8] == 0.35
    assert tick_names(figure)[7] == "7 (n=1)"


@pytest.mark.slow
def test_middle_sizes_show_the_share_only() -> None:
    counts = np.full((20, 20), 1) + 80 * np.eye(20, dtype=int)
    figure = plot_confusion_matrix(counts, range(20))
    assert len(cell_texts(figure)) == 400
    assert set(cell_texts(figure)) == {"1", "81"}


@pytest.mark.slow
def test_200_classes_have_no_text_per_cell_and_thinned_names() -> None:
    names = [f"class with a rather long name number {i:03d}" for i in range(200)]
    figure = plot_confusion_matrix(np.eye(200) + 0.01, names)
    assert main_axes(figure).images[0].get_array().shape == (200, 200)
    assert cell_texts(figure) == []
    assert notes(figure) == ["Names: “class with a rather long name number …”."]
    shown = tick_names(figure)
    assert 20 <= len(shown) <= 100
    assert len(set(shown)) == len(shown)
    assert max(len(name.removesuffix(" (n=3)")) for name in shown) <= 30
    assert "every 5th is named" in main_axes(figure).get_ylabel()


@pytest.mark.parametrize("size", [2, 12, 13, 30, 31, 80])
def test_all_names_are_shown_up_to_80_classes(size: int) -> None:
    figure = plot_confusion_matrix(30 * np.eye(size), range(size))
    assert len(tick_names(figure)) == size
    assert tick_names(figure)[-1] == f"{size - 1} (n=30)"
    assert bool(cell_texts(figure)) == (size <= 30)


def test_weighted_counts_and_formula_signs_in_names() -> None:
    figure = plot_confusion_matrix([[1.5, 0.25], [0, 2e6]], ["$5 to $10", "above\n$10"])
    assert tick_names(figure, "x") == [r"\$5 to \$10", r"above \$10"]
    assert {"1.5\n86%", "0.25\n14%", "2M\n100%", "0"} <= set(cell_texts(figure))
    figure.savefig(BytesIO())


@pytest.mark.parametrize(
    ("counts", "labels", "message"),
    [
        (np.ones((2, 3)), "ab", r"counts must have shape \(n_classes, n_classes\), got \(2, 3\)"),
        (np.ones((2, 2)), "abc", "labels must name the 2 classes of counts, got 3 labels"),
        ([[1, -1], [0, 1]], "ab", "counts must be finite and not negative"),
        ([[1, np.nan], [0, 1]], "ab", "counts must be finite and not negative"),
    ],
)
def test_confusion_matrix_refuses(counts: Any, labels: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plot_confusion_matrix(counts, labels)


# --- reduced matrix ---------------------------------------------------------------------------------------


def test_reduced_matrix_shares_are_of_the_actual_group() -> None:
    figure = plot_reduced_matrix([[20, 60], [6, 273]], [0, 150], ["rest", "promoter"])
    groups, column, row = (image.get_array() for image in main_axes(figure).images)
    np.testing.assert_allclose(groups, [[20 / 80, 60 / 80], [6 / 429, 273 / 429]])
    np.testing.assert_allclose(column, [[0], [150 / 429]])
    np.testing.assert_allclose(row, [[0, 150 / 429]])
    assert {"273\n64%", "150\n35%", "150"} <= set(cell_texts(figure))
    assert "an error within the correct group. It lowers recall and precision" in notes(figure)[
        -1
    ].replace("\n", " ")
    assert tick_names(figure) == ["rest (n=80)", "promoter (n=429)", "intragroup\nmismatch"]


def test_reduced_matrix_parts_stand_apart_and_the_corner_is_blank() -> None:
    figure = plot_reduced_matrix(np.eye(3), np.ones(3), ["a", "b", "c"])
    groups, column, row = (image.get_extent() for image in main_axes(figure).images)
    assert column[0] - groups[1] > 0.05
    assert row[3] - groups[2] > 0.05
    cells = drawn_cells(figure)
    assert len(cells) == 3 * 3 + 3 + 3
    right, lowest = max(cell.x for cell in cells), max(cell.y for cell in cells)
    assert not any(cell.x == right and cell.y == lowest for cell in cells)


def test_reduced_matrix_refuses_other_lengths() -> None:
    with pytest.raises(ValueError, match=r"mismatches must have shape \(2,\), got \(3,\)"):
        plot_reduced_matrix(np.eye(2), np.ones(3), ["a", "b"])


# --- ROC --------------------------------------------------------------------------------------------------


def test_roc_with_ceiling() -> None:
    fpr, tpr = np.array([0, 0, 0.5, 1]), np.array([0, 0.5, 0.6, 2 / 3])
    figure = plot_roc(
        fpr,
        tpr,
        auc=0.58333,
        ceiling=2 / 3,
        normalized_auc=0.875,
        auc_interval=(0.157, 1.0),
        operating_point=(0.25, 0.6),
        positive="promoter",
    )
    curve, chance, point = (line_labelled(figure, s) for s in ("AUC", "chance", "predicted labels"))
    np.testing.assert_array_equal(curve.get_xydata(), np.column_stack([fpr, tpr]))
    np.testing.assert_allclose(chance.get_xydata(), [[0, 0], [1, 2 / 3]])
    assert tuple(point.get_xydata()[0]) == (0.25, 0.6)
    ceilings = [line for line in main_axes(figure).lines if line.get_linestyle() == "--"]
    assert [list(line.get_ydata()) for line in ceilings] == [[2 / 3, 2 / 3]]
    assert [note.replace("\n", " ") for note in notes(figure)] == [
        "ceiling 0.667: 33.3% of positives would be mismatches even if all rows were predicted "
        "positive"
    ]
    legend = legend_texts(figure)
    assert "AUC 0.583 [0.157, 1.000]" in legend[0]
    assert "normalised AUC 0.875" in legend[0]
    assert legend[1] == "chance: AUC 0.333"
    assert legend[2] == "predicted labels: false positive rate 25%, recall 60%"
    assert "promoter" in main_axes(figure).get_ylabel()


def test_roc_without_ceiling_and_with_undefined_area() -> None:
    figure = plot_roc([0, 1], [0, 1], auc=float("nan"), normalized_auc=float("nan"))
    assert legend_texts(figure) == ["AUC undefined", "chance: AUC 0.500"]
    assert notes(figure) == []
    with pytest.raises(ValueError, match="fpr and tpr must have one shape"):
        plot_roc([0, 1], [0, 0.5, 1], auc=0.5)


# --- sPCC -------------------------------------------------------------------------------------------------


def test_spcc_matrix_blanks_the_diagonal_and_greys_the_undefined() -> None:
    matrix = np.array([[0, 0.73, 0.84], [np.nan, 0, -0.06], [0.74, 0.75, 0]])
    figure = plot_spcc_matrix(matrix, ["a", "b", "c"])
    image = main_axes(figure).images[0]
    np.testing.assert_array_equal(
        np.ma.getmaskarray(image.get_array()), np.eye(3, dtype=bool) | np.isnan(matrix)
    )
    assert image.get_clim() == (-1, 1)
    assert cell_texts(figure) == [
        "0.73",
        "0.84",
        "−0.06",
        "0.74",
        "0.75",
    ]
    assert notes(figure) == ["Grey pairs are undefined (1 of 6 pairs)."]
    lightness = image.cmap(np.linspace(0, 1, 21))[:, :3] @ [0.2126, 0.7152, 0.0722]
    assert (np.diff(lightness) > 0).all()  # low entries are always the darker ones


def test_spcc_of_an_evaluation_is_at_equal_shares_without_classes_of_few_samples() -> None:
    y = np.repeat([0, 1, 2, 3], [5000, 60, 400, 12])
    p = random_probabilities(y, 4, 3.0)
    evaluation = evaluate(y, y_prob=p)
    figure = evaluation.figures()["spcc_matrix"]
    ax = main_axes(figure)
    expected = np.full((4, 4), np.nan)
    for c in range(3):
        for d in range(3):
            if c != d:  # the correlation where the rarer class is repeated until it is as large
                weights = np.select([y == c, y == d], [1 / (y == c).sum(), 1 / (y == d).sum()], 0.0)
                expected[c, d] = np.cov(y == c, p[:, c], aweights=weights + 1e-300)[0, 1] / np.sqrt(
                    np.cov(y == c, aweights=weights + 1e-300)
                    * np.cov(p[:, c], aweights=weights + 1e-300)
                )
    lowest = np.fmin(expected, expected.T)[np.triu_indices(3, k=1)]
    dots = next(line for line in ax.lines if line.get_marker() == "o")
    np.testing.assert_allclose(dots.get_xdata(), np.sort(lowest), atol=1e-9)
    # well separated, though one class is rare
    assert expected[1, 0] > 0.85 > evaluation.spcc_matrix[1, 0]
    assert "at equal shares" in ax.get_xlabel()
    assert evaluation.metrics["spcc/ovo_min"] == np.nanmin(
        evaluation.spcc_matrix[~np.eye(4, dtype=bool)]
    )


@pytest.mark.slow
def test_spcc_matrix_of_100_classes_and_out_of_range() -> None:
    assert cell_texts(plot_spcc_matrix(np.full((100, 100), 0.5), range(100))) == []
    with pytest.raises(ValueError, match=r"matrix must be in \[-1, 1\], got 1.5"):
        plot_spcc_matrix([[0, 1.5], [0, 0]], "ab")


# --- score histograms -------------------------------------------------------------------------------------


def bars(ax: Axes) -> list[np.ndarray]:
    """The heights of the bars of each class, in the order in which they are drawn."""
    return [patch.get_data().values for patch in ax.patches if isinstance(patch, StepPatch)]


def test_histogram_keeps_every_sample_and_knows_edges() -> None:
    values = np.array([0.0, 0.1, 0.15, 0.3, 0.7, 1.0])
    weights = np.array([[1.0, 2, 3, 4, 5, 6], [0, 0, 0, 0, 0, 2.5]])
    figure = plot_score_histogram(values, weights, ["a", "b"], n_bins=10)
    first, *_, last = bars(figure.axes[1])
    np.testing.assert_array_equal(first, [1, 5, 0, 4, 0, 0, 0, 5, 0, 6])
    np.testing.assert_array_equal(last, [0, 0, 0, 0, 0, 0, 0, 0, 0, 2.5])
    edges = next(p.get_data().edges for p in figure.axes[1].patches if isinstance(p, StepPatch))
    np.testing.assert_allclose(edges, np.linspace(0, 1, 11))


def test_score_histogram_before_and_after_on_both_axes() -> None:
    values = np.array([0.12, 0.32, 0.52, 0.72, 0.92])
    counts = np.array([[40_000, 300, 100, 50, 10], [0, 0, 2, 6, 9]])
    figure = plot_score_histogram(values, counts, ["no", "yes"], calibrated=values**2, n_bins=10)
    panels = figure.axes
    assert [ax.get_yscale() for ax in panels] == ["linear", "log", "linear", "log"]
    assert [ax.get_ylabel() for ax in panels[:2]] == ["share of the class", "rows (log scale)"]
    # the rare class is no bar in a corner
    for ax, where in zip(panels[::2], (values, values**2), strict=True):
        steps = bars(ax)
        expected, _ = np.histogram(where, 10, (0, 1), weights=counts[1])
        np.testing.assert_allclose(steps[-1], expected / 17)
        assert steps[-1].max() > 0.5 * ax.get_ylim()[1] / 1.05 * (9 / 17)
    assert [ax.get_title(loc="left") for ax in panels[::2]] == [
        "before calibration",
        "after calibration",
    ]
    for ax, where in zip(panels[1::2], (values, values**2), strict=True):
        steps = bars(ax)
        expected = np.array(
            [np.histogram(where, 10, (0, 1), weights=weights)[0] for weights in counts]
        )
        np.testing.assert_array_equal(steps[0], expected[0])
        np.testing.assert_array_equal(steps[-1], expected[1])  # the rare class on top
        assert ax.get_ylim()[0] < expected[expected > 0].min()
    legend = [t.get_text() for t in figure.legends[0].get_texts()]
    assert legend == ["no (n=40,460)", "yes (n=17)"]
    assert len(plot_score_histogram(values, counts, ["no", "yes"]).axes) == 2


def test_classes_of_one_side_are_told_apart_without_colour_and_with_any_colour_vision() -> None:
    figure = plot_score_histogram([0.2, 0.8], np.ones((3, 2)), ["rest", "yes, wrong", "yes, right"])
    handles = figure.legends[0].get_patches()
    seen = np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.01182, 0.04294, 0.968881],
        ]
    )
    colours = np.array([handle.get_edgecolor()[:3] for handle in handles])
    linear = np.where(colours <= 0.04045, colours / 12.92, ((colours + 0.055) / 1.055) ** 2.4)
    deuteranope = linear @ seen.T  # Machado, Oliveira & Fernandes (2009)
    assert np.abs(deuteranope[1] - deuteranope[2]).max() > 0.3  # orange and yellow: 0.17
    drawn = [patch for patch in figure.axes[0].patches if not patch.get_fill()]
    assert sorted(bool(patch._dash_pattern[1]) for patch in drawn) == [False, False, True]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"values": [0.5, 1.5]}, r"values must be in \[0, 1\], got 0.5 to 1.5"),
        ({"values": [0.5]}, r"values must have shape \(2,\), got \(1,\)"),
        ({"calibrated": [0.5]}, r"calibrated must have shape \(2,\)"),
        ({"names": ["a"]}, r"counts must have shape \(1, n_values\), got \(2, 2\)"),
        ({"n_bins": 0}, "n_bins must be at least 1, got 0"),
    ],
)
def test_score_histogram_refuses(change: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {
        "values": [0.2, 0.8],
        "counts": np.ones((2, 2)),
        "names": ["a", "b"],
    }
    with pytest.raises(ValueError, match=message):
        plot_score_histogram(**(arguments | change))


# --- prevalence -------------------------------------------------------------------------------------------


def test_prevalence_shows_the_interval_and_points_at_far_references() -> None:
    figure = plot_prevalence(
        0.0023,
        0.0015,
        0.0031,
        confidence_level=0.95,
        actual=0.0021,
        references={
            "classify and count": 0.31,
            "sum of probabilities": 0.0028,
            "none": float("nan"),
        },
    )
    names = ["estimate, with 95% interval", "actual share", "classify and count"]
    assert tick_names(figure) == [*names, "sum of probabilities"]
    assert notes(figure) == ["0.23% [0.15, 0.31]", "0.21%", "31%", "0.28%"]
    interval, *dots = [line for line in main_axes(figure).lines if line.get_linestyle() != ":"]
    assert list(interval.get_xdata()) == [0.0015, 0.0031]
    left, right = main_axes(figure).get_xlim()
    assert [line.get_xdata()[0] for line in dots] == [0.0023, 0.0021, right, 0.0028]
    assert [line.get_marker() for line in dots] == ["o", "o", ">", "o"]
    assert 0 <= left < 0.0015
    assert 0.0031 < right < 0.01


def test_prevalence_not_identified_shows_the_whole_range() -> None:
    nan = float("nan")
    figure = plot_prevalence(nan, nan, nan, confidence_level=0.9, references={"counted": 0.2})
    assert main_axes(figure).get_xlim() == pytest.approx((0, 1))
    assert tick_names(figure) == ["estimate, with 90% interval", "counted"]
    assert notes(figure) == ["undefined", "20%"]


# --- evaluation -------------------------------------------------------------------------------------------


OF_SCORES = {
    "roc",
    "precision_recall",
    "reliability",
    "reliability_classes",
    "spcc_matrix",
    "score_histogram",
    "prevalence_likelihood",
    "decision_curve",
    "gains",
    "risk_coverage",
}
Y = np.repeat([0, 1, 2, 3], [40, 30, 20, 10])
NPS_GROUPS = Grouping(
    {"rest": [0, 1], "promoter": [2, 3]}, mode="strict", positive="promoter", name="nps"
)


@pytest.mark.slow
def test_evaluation_figures_of_everything() -> None:
    p = random_probabilities(Y, 4, 1.0)
    evaluation = evaluate(Y, y_prob=p, grouping=NPS_GROUPS, calibration=(Y, p))
    parameters = dict(mpl.rcParams)
    figures = evaluation.figures()
    assert {"confusion_matrix", "reduced_nps"} | OF_SCORES <= figures.keys()
    assert dict(mpl.rcParams) == parameters
    wrong_within = int(((Y >= 2) & (p[:, 2:].argmax(axis=1) + 2 != Y)).sum())
    assert wrong_within > 0
    legend = [t.get_text() for t in figures["score_histogram"].legends[0].get_texts()]
    assert legend == [
        "rest (n=70)",
        f"promoter, mismatch within it (n={wrong_within})",
        f"promoter, correct class within it (n={30 - wrong_within})",
    ]
    assert len(figures["score_histogram"].axes) == 1
    expected = evaluation.metrics["prevalence/expected"]
    prevalence = figures["prevalence_likelihood"]
    assert "sum of probabilities" in tick_names(prevalence)
    assert f"{100 * expected:.3g}%" in notes(prevalence)


def test_evaluation_figures_without_probabilities() -> None:
    figures = evaluate(Y, np.roll(Y, 3)).figures()
    assert "confusion_matrix" in figures
    assert not OF_SCORES & figures.keys()


# --- house rules ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_given_axes_are_drawn_into() -> None:
    figure = Figure(figsize=(9, 4))
    left, right = figure.subfigures(1, 2)[0].subplots(), figure.add_axes((0.6, 0.2, 0.3, 0.7))
    assert plot_confusion_matrix(NPS, NPS_LABELS, ax=left) is figure
    assert plot_roc([0, 1], [0, 1], auc=0.5, ax=right) is figure
    assert len(left.images) == 1
    assert len(right.lines) == 2
    small, large = Figure(figsize=(3, 3)), plot_confusion_matrix(np.eye(20), range(20))
    plot_confusion_matrix(np.eye(20), range(20), ax=small.add_axes((0.2, 0.2, 0.7, 0.7)))
    assert len(cell_texts(large)) == 400
    assert cell_texts(small) == []  # they would not fit into its cells


@pytest.mark.slow
@pytest.mark.parametrize("size", [2, 40])
def test_nothing_is_cut_off_and_cells_have_their_size(size: int) -> None:
    names = [f"class number {i} with quite a long name" for i in range(size)]
    matrix = np.eye(size)
    figures = [
        plot_confusion_matrix(matrix, names, title="A title"),
        plot_reduced_matrix(matrix, np.ones(size), names),
        plot_spcc_matrix(matrix, names),
        plot_roc([0, 1], [0, 0.7], auc=0.35, ceiling=0.7, normalized_auc=0.5),
    ]
    for figure in figures:
        inner, outer = main_axes(figure).get_tightbbox(), figure.bbox
        assert inner is not None
        assert inner.x0 >= 0
        assert inner.y0 >= 0
        assert inner.x1 <= outer.x1
        assert inner.y1 <= outer.y1
    box = main_axes(figures[0]).get_window_extent()
    assert box.width == pytest.approx(box.height)
    points = box.width * 72 / figures[0].dpi / size
    assert points >= (40 if size < 12 else 15)  # a count and its share fit into few cells


def test_figures_change_no_global_state_and_ignore_it() -> None:
    with mpl.rc_context({"axes.grid": True, "image.cmap": "jet", "axes.facecolor": "black"}):
        before = dict(mpl.rcParams)
        figure = plot_confusion_matrix(NPS, NPS_LABELS)
        assert dict(mpl.rcParams) == before
    assert main_axes(figure).get_facecolor() == (1, 1, 1, 1)
    import matplotlib.pyplot as plt

    plt.close("all")  # what other tests left
    assert plt.get_fignums() == []


@pytest.mark.slow
def test_import_leaves_pyplot_unloaded() -> None:
    code = "import sys, cmtrack.plots; sys.exit('matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.slow
def test_figures_can_be_made_in_threads() -> None:
    sizes: list[int] = []

    def work() -> None:
        stream = BytesIO()
        plot_confusion_matrix(NPS, NPS_LABELS).savefig(stream, format="png")
        sizes.append(len(stream.getvalue()))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(sizes) == 4
    assert len(set(sizes)) == 1


# --- labels -----------------------------------------------------------------------------------------------


def test_short_names_stay_distinct() -> None:
    names = [f"Wholesale trade of {c} goods, and so on and so forth" for c in "abc"] + ["short"]
    short = tick_names(plot_spcc_matrix(np.eye(4), names))
    assert len(set(short)) == 4
    assert short[-1] == "short"
    assert [name for name in short if "[" in name] == []
    assert max(map(len, short)) <= 40


def test_names_that_are_equal_are_counted_from_1_as_in_the_tables() -> None:
    figure = plot_confusion_matrix(30 * np.eye(3), ["a", "b", "a"])
    assert tick_names(figure, "x") == ["a [1]", "b", "a [3]"]
    note = "[i]: place in this figure, counted from 1, where names are equal."
    assert note in notes(figure)
    assert note not in notes(plot_confusion_matrix(30 * np.eye(2), ["b [1]", "c"]))


@pytest.mark.slow
def test_60_long_labels_stay_distinct_in_every_matrix() -> None:
    labels = [
        f"Department {i % 4} — Subcategory of products number {i} (international)"
        for i in range(60)
    ]
    for figure in (
        plot_confusion_matrix(30 * np.eye(60), labels),
        plot_spcc_matrix(np.eye(60), labels),
    ):
        names = [name.removesuffix(" (n=30)") for name in tick_names(figure)]
        assert len(set(names)) == 60
        assert not any("[" in name for name in names)


def test_counts_in_cells_are_short_and_shares_are_0_or_100_only_if_exact() -> None:
    counts = [
        [12_345, 999_999, 1_240_000, 0],
        [2e12, 3.5, 0, 0],
        [999, 1, 0, 0],
        [640, 360, 0, 0],
    ]
    texts = cell_texts(plot_confusion_matrix(counts, "abcd"))
    assert texts == [
        *("12,345\n1%", "1M\n44%", "1.24M\n55%", "0"),
        *("2T\n>99%", "3.5\n<1%", "0", "0"),
        *("999\n>99%", "1\n<1%", "0", "0"),
        *("640\n64%", "360\n36%", "0", "0"),
    ]


def test_long_names_are_broken_after_blanks_and_underscores() -> None:
    names = ["wholesale_trade of goods", "retail"]
    first, second = tick_names(plot_confusion_matrix(30 * np.eye(2), names), "x")
    assert first == "wholesale_trade\nof goods"
    assert second == "retail"
