"""Figures of families draw the numbers that they are given."""

from __future__ import annotations

import matplotlib
import numpy as np
import pytest
from matplotlib.colors import PowerNorm
from matplotlib.text import Text

from cmtrack import Prefix, evaluate_families
from cmtrack.plots import (
    FamilyPanel,
    code_figure,
    family_figures,
    family_matrix_figure,
    plot_code_shares,
    plot_family_matrix,
    plot_worst_families,
)
from cmtrack.report import report_html
from support.families import by_ten, generated, of_figures
from support.figures import cell_texts


def texts(ax) -> list[str]:
    """What is written beside the cells of a matrix."""
    return [text.get_text() for text in ax.texts]


def images(ax) -> list[np.ndarray]:
    return [np.ma.filled(image.get_array(), np.nan) for image in ax.get_images()]


@pytest.mark.parametrize("given", ["actual", "predicted"])
def test_a_matrix_shows_counts_and_the_shares_of_its_direction(given):
    evaluation = of_figures(1, 2, 3, 4)
    figure = evaluation.family_figure("364", given)
    ax = figure.axes[0]
    inside, column, row = images(ax)
    shares = evaluation.distribution("364", given).values
    np.testing.assert_allclose(inside, shares[:6, :6])
    # the row (or column) that is not given shows shares of the other direction
    np.testing.assert_allclose(column[:, 0], evaluation.distribution("364", "actual").values[:6, 6])
    np.testing.assert_allclose(row[0], evaluation.distribution("364", "predicted").values[6, :6])
    assert {"3\n100%", "1\n50%"} <= set(cell_texts(figure))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("predicted code", "actual code")
    assert [label.get_text() for label in ax.get_yticklabels()][-1] == "out of\nfamily"
    assert any("Hatched" in text for text in texts(ax))


def test_plain_values_are_divided_by_their_row_or_column():
    values = np.array([[6, 2, 2], [0, 5, 5], [4, 0, 0]])
    inside, column, row = images(plot_family_matrix(values, ["a", "b"]).axes[0])
    np.testing.assert_allclose(inside, [[0.6, 0.2], [0, 0.5]])
    np.testing.assert_allclose(column, [[0.2], [0.5]])
    np.testing.assert_allclose(row, [[0.4, 0]])
    inside, column, _ = images(plot_family_matrix(values, ["a", "b"], given="predicted").axes[0])
    np.testing.assert_allclose(inside, [[0.6, 2 / 7], [0, 5 / 7]])
    np.testing.assert_allclose(column, [[0.2], [0.5]])


def test_many_codes_keep_the_most_frequent_and_a_square_root_scale():
    rng = np.random.default_rng(0)
    sets = [set(rng.choice(100, 5, replace=False).tolist()) for _ in range(300)]
    figure = family_matrix_figure(evaluate_families(sets, sets, lambda _: "all"), "all")
    ax = figure.axes[0]
    assert ax.get_title() == "Family all (the 60 most frequent of 100 codes)"
    assert images(ax)[0].shape == (60, 60)
    assert isinstance(ax.get_images()[0].norm, PowerNorm)


def test_wrong_values_are_refused():
    with pytest.raises(ValueError, match=r"values must have shape \(3, 3\)"):
        plot_family_matrix(np.eye(2), ["a", "b"])
    with pytest.raises(ValueError, match="not negative"):
        plot_family_matrix(-np.eye(3), ["a", "b"])
    with pytest.raises(ValueError, match="given must be"):
        plot_family_matrix(np.eye(3), ["a", "b"], given="gold")
    with pytest.raises(ValueError, match=r"shares must have shape \(3, 3\)"):
        plot_family_matrix(np.eye(3), ["a", "b"], shares=np.eye(2))
    with pytest.raises(ValueError, match="at least one family"):
        plot_worst_families([])


def test_worst_families_stand_in_the_order_given():
    panels = [
        FamilyPanel(name, ["x", "y"], np.full((3, 3), 0.3), f"{name} confused")
        for name in ("one", "two", "$3")
    ]
    figure = plot_worst_families(panels, title="Worst")
    assert [ax.get_title().split("\n")[0] for ax in figure.axes[:3]] == ["one", "two", r"\$3"]
    inside, outside = images(figure.axes[1])
    assert inside.shape == (2, 2)
    assert outside.shape == (2, 1)


def test_code_shares_are_bars_with_their_intervals():
    evaluation = evaluate_families(*generated(500), by_ten)
    answer = evaluation.given_predicted(11)
    figure = evaluation.code_figure(11)
    left = figure.axes[0]
    widths = [bar.get_width() for bar in left.patches]
    assert widths[0] == answer.right
    assert widths[-1] == answer.outside
    assert sum(widths) == pytest.approx(1)
    ends = left.lines[0].get_xdata()
    assert tuple(ends) == answer.right_interval
    names = [label.get_text() for label in left.get_yticklabels()]
    assert names[0] == "11 (correct)"
    assert names[-1] == "no code of its family"


def test_too_few_documents_and_none_at_all_are_said():
    figure = code_figure(of_figures(1, 2, 3, 4), "364.05")
    assert "too few to rely on" in figure.axes[1].get_title()
    assert "no documents" in texts(figure.axes[0])


def test_many_siblings_are_put_together():
    side = [
        ("own", 0.3, 0.2, 0.4),
        *[(f"s{i}", 0.05, 0.0, 0.1) for i in range(12)],
        ("no sibling", 0.1, 0.0, 0.2),
    ]
    figure = plot_code_shares("own", side, side[:2], (50, 50), most=4)
    bars = figure.axes[0].patches
    assert len(bars) == 6
    assert bars[4].get_width() == pytest.approx(9 * 0.05)
    assert figure.axes[0].get_yticklabels()[4].get_text() == "9 more siblings"


@pytest.mark.slow
def test_figures_that_apply_and_no_global_state():
    before = dict(matplotlib.rcParams)
    evaluation = evaluate_families(*generated(300), by_ten)
    assert list(evaluation.figures()) == ["family_matrix", "worst_families", "code_shares"]
    code = evaluation.figures()["code_shares"].get_suptitle()
    assert f"“{code}” is predicted in " in report_html(evaluation, {})
    assert dict(matplotlib.rcParams) == before
    actual = generated(50)[0]
    assert family_figures(evaluate_families(actual, actual, by_ten)) == {}  # nothing is confused
    failed = []
    broken = evaluate_families(*generated(50), by_ten)
    object.__setattr__(broken, "statistics", None)
    assert family_figures(broken, on_error=lambda name, error: failed.append(name)) == {}
    assert failed == ["family_matrix", "worst_families", "code_shares"]


def test_the_caption_says_whether_matched_codes_are_among_the_pairs():
    sets = [{"1.0", "1.1"}, {"1.2"}], [{"1.0", "1.2"}, {"1.1"}]
    for removed, says in ((True, "is a match. An unmatched"), (False, "even of matched codes")):
        figure = evaluate_families(
            *sets, Prefix(separator="."), remove_matches=removed
        ).family_figure("1")
        said = " ".join(text.get_text().replace("\n", " ") for text in figure.findobj(Text))
        assert says in said
        assert ("is a match. An unmatched" in said) == removed
