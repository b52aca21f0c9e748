"""Figures of many classes: their order, the most confused of them, pairs that are separated least, curves by class."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy.integrate import trapezoid

from cmtrack import compare, evaluate
from cmtrack.metrics.spcc import pair_errors, spcc_ovo
from cmtrack.plots import PairSeparation, as_svg, plot_spcc_pairs
from cmtrack.plots.classes import ClassCurve, plot_class_curves
from cmtrack.plots.order import in_order, most_confused, order_of, with_others
from cmtrack.report.review.figures import class_curves_figure
from support.problems import random_problem

# S = (R + R') / 2 of the row rates R without the diagonal; average linkage of 1 - S / max S; optimal order of leaves.
FIVE = np.array(
    [[50, 1, 9, 0, 0], [2, 40, 0, 0, 8], [12, 0, 45, 1, 2], [0, 1, 0, 30, 0], [0, 7, 1, 0, 32]]
)


def distance(counts: np.ndarray) -> float:
    """Mean places of an error from the diagonal."""
    places = np.abs(np.subtract.outer(np.arange(len(counts)), np.arange(len(counts))))
    return float((counts * places).sum() / (counts.sum() - np.trace(counts)))


def inside(counts: np.ndarray, some: np.ndarray) -> float:
    part = counts[np.ix_(some, some)]
    return float((part.sum() - np.trace(part)) / (counts.sum() - np.trace(counts)))


def blocks_of(k: int, width: int, seed: int = 0) -> np.ndarray:
    """Counts (k, k) with confusions among the first `width` classes, of which every third stands apart."""
    rng = np.random.default_rng(seed)
    counts = rng.poisson(0.02, (k, k)) + np.diag(rng.integers(30, 60, k))
    block = np.arange(0, 3 * width, 3)
    counts[np.ix_(block, block)] += rng.integers(2, 5, (width, width))
    return counts


def everything(evaluation) -> dict[str, Figure]:
    names = ("confusion_matrix", "spcc_matrix", "class_curves")
    figures = evaluation.figures()
    return {name: figures[name] for name in names if name in figures}


def test_classes_that_are_confused_stand_beside_each_other() -> None:
    order = order_of(FIVE)
    assert order.tolist() == [0, 2, 4, 1, 3]
    assert distance(FIVE) == 2.25
    assert distance(FIVE[np.ix_(order, order)]) == pytest.approx(1.1818181818, abs=1e-10)
    assert order_of(np.diag([3, 4, 5])).tolist() == [0, 1, 2]  # nothing is confused
    assert order_of(np.zeros((4, 4))).tolist() == [0, 1, 2, 3]
    counts = blocks_of(60, 10)
    order = order_of(counts)
    assert sorted(order) == list(range(60))
    assert distance(counts[np.ix_(order, order)]) < 0.4 * distance(counts)


def test_the_classes_with_most_errors_among_them() -> None:
    assert inside(FIVE, most_confused(FIVE, 3)) == pytest.approx(0.5454545455, abs=1e-10)
    assert most_confused(FIVE, 4).tolist() == [0, 1, 2, 4]
    assert inside(FIVE, most_confused(FIVE, 4)) == pytest.approx(0.9545454545, abs=1e-10)
    counts = blocks_of(60, 10)
    assert set(range(0, 30, 3)) <= set(most_confused(counts).tolist())
    assert len(most_confused(counts)) == 20


def test_the_others_are_one_group_and_totals_stay() -> None:
    counts, labels = blocks_of(60, 10), [f"c{i}" for i in range(60)]
    part = with_others(counts, labels, "c59")
    assert part.labels[-1] == "(others)"
    assert "c59" in part.labels  # the positive class is always there
    assert len(part.labels) in (21, 22)
    assert part.counts.sum() + part.mismatches.sum() == counts.sum()
    own = [labels.index(name) for name in part.labels[:-1]]
    others = np.setdiff1d(np.arange(60), own)
    assert part.counts[:-1, :-1].tolist() == counts[np.ix_(own, own)].tolist()
    rest = counts[np.ix_(others, others)]
    assert (part.counts[-1, -1], part.mismatches[-1]) == (
        np.trace(rest),
        rest.sum() - np.trace(rest),
    )
    assert not part.mismatches[:-1].any()
    assert f"{inside(counts, np.array(own)):.0%} of all" in part.caption
    assert in_order(FIVE, "abcde")[1] == list("abcde")  # few classes stay as they are given


def test_errors_of_pairs_are_those_of_many_samples() -> None:
    values, errors = [], []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        y = rng.integers(0, 3, 400)
        scores = np.exp(rng.normal(size=(400, 3)) + 1.2 * np.eye(3)[y])
        moments = evaluate(y, y_prob=scores / scores.sum(axis=1, keepdims=True)).statistics.moments
        values.append(spcc_ovo(moments, equal_shares=True)[[0, 1], [2, 0]])
        errors.append(pair_errors(moments, np.array([0, 1]), np.array([2, 0])))
    assert np.sqrt(np.mean(np.square(errors), axis=0)) == pytest.approx(
        np.std(values, axis=0), rel=0.12
    )


def test_of_many_classes_the_pairs_that_are_separated_least() -> None:
    y, _, p = random_problem(1, n=900, k=14)
    evaluation = evaluate(y, y_prob=p)
    (ax,) = evaluation.figures()["spcc_matrix"].axes
    matrix = spcc_ovo(evaluation.statistics.moments, equal_shares=True)
    np.fill_diagonal(matrix, np.inf)
    least = np.sort(np.minimum(matrix, matrix.T)[np.triu_indices(14, 1)])[:15]
    shown = next(line for line in ax.get_lines() if line.get_marker() == "o").get_xdata()
    np.testing.assert_allclose(shown, least)
    ends = np.array([one[:, 0] for one in ax.collections[0].get_segments()])
    assert (ends[:, 0] < shown).all()
    assert (shown < ends[:, 1]).all()
    assert "15 of 91 pairs" in as_svg(ax.figure)
    weighted = evaluate(y, y_prob=p, sample_weight=np.random.default_rng(0).random(900))
    # weights have no such errors
    assert "interval" not in as_svg(weighted.figures()["spcc_matrix"])
    with pytest.raises(ValueError, match="at least one pair"):
        plot_spcc_pairs([], names="ab", n_pairs=0)
    names = ["long " * 9 + end for end in "abc"]
    pairs = [
        PairSeparation(names[0], names[1], 0.2, 0.1, 0.3),
        PairSeparation(names[2], names[1], 0.4, 0.3, 0.5),
    ]
    assert plot_spcc_pairs(pairs, names=names, n_pairs=3).get_size_inches()[0] < 9


def test_figures_of_sixty_classes_name_the_most_confused() -> None:
    y, _, p = random_problem(2, n=3000, k=60)
    figures = everything(evaluate(y, y_prob=p))
    # curves are counted up to 30 classes
    assert list(figures) == ["confusion_matrix", "spcc_matrix"]
    svg = as_svg(figures["confusion_matrix"])
    assert "(others)" in svg
    assert "Shown are the 20 classes of 60" in svg


def test_curves_of_each_class_against_all_others() -> None:
    y, _, p = random_problem(3, n=500, k=4)
    evaluation = evaluate(y, y_prob=p)
    figure = everything(evaluation)["class_curves"]
    roc, precision, gains = figure.axes
    curves = [line for line in roc.get_lines() if not line.get_label().startswith("_")]
    for label, line in enumerate(curves):
        area = evaluation.metrics[f"class/{label}/roc_auc"]
        assert trapezoid(line.get_ydata(), line.get_xdata()) == pytest.approx(area, abs=0.01)
        assert line.get_label().startswith(f"{label}: AUC {area:.3f} (interval ")
    assert len(curves) == 4
    for ax in (precision, gains):
        assert len([line for line in ax.get_lines() if line.get_label() == "_same"]) == 4
    # two groups have figures of their own
    assert "class_curves" not in evaluate(y == 0, y_prob=p[:, 0]).figures()
    with pytest.raises(ValueError, match="at least one"):
        plot_class_curves([])
    many = np.linspace(1, 0, 5000)
    long = ClassCurve("x", 1 - many, np.ones(5000), 1 - many, 0.5)
    assert len(as_svg(plot_class_curves([("", [long])]))) < 40_000


def test_curves_of_runs_by_class() -> None:
    y, _, p = random_problem(4, n=300, k=6)
    blurred = (p + 0.3) / (p + 0.3).sum(axis=1, keepdims=True)
    noise = np.random.default_rng(0).dirichlet(np.ones(6), 300)
    runs = {"sharp": p, "mixed": (blurred + noise) / 2, "noise": noise}
    comparison = compare({name: evaluate(y, y_prob=own) for name, own in runs.items()})
    figure = class_curves_figure(comparison.ranking)
    assert len(figure.axes) == 3 * 2  # of two classes
    assert figure.legends[0].get_texts()[0].get_text() == comparison.ranking.runs[0].name
    svg = as_svg(figure)
    assert {f'data-run="{place}"' in svg for place in range(3)} == {True}
    pair = compare(
        {"a": evaluate(y == 0, y_prob=p[:, 0]), "b": evaluate(y == 0, y_prob=noise[:, 0])}
    )
    assert class_curves_figure(pair.ranking) is None
