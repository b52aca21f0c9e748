"""Figures of many classes: their order, the most confused of them, pairs that are separated least, curves by class."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy.integrate import trapezoid
from scipy.stats import norm

from cmtrack import Grouping, compare, evaluate
from cmtrack.plots import PairSeparation, as_svg, plot_spcc_pairs
from support.problems import evaluate_counts, random_problem

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


def matrix_of(counts: np.ndarray, **options: Any) -> tuple[Figure, list[str], list[int]]:
    """The figure of the matrix, the names of its rows from the top, and their numbers of samples."""
    figure = evaluate_counts(counts, **options).figures()["confusion_matrix"]
    ticks = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    named = [tick.replace("\n", " ").removesuffix(")").split(" (n=") for tick in ticks]
    rows = [pair for pair in named if len(pair) == 2]
    return figure, [name for name, _ in rows], [int(n.replace(",", "")) for _, n in rows]


def test_of_up_to_12_classes_the_order_is_that_of_the_labels() -> None:
    _, names, _ = matrix_of(FIVE)
    assert names == list("01234")


@pytest.mark.slow
def test_classes_that_are_confused_stand_beside_each_other() -> None:
    counts = np.diag(np.full(13, 40))
    own = np.array([1, 4, 6, 9, 12])
    counts[np.ix_(own, own)] = FIVE
    _, names, _ = matrix_of(counts)
    places = [names.index(str(label)) for label in own]
    assert sorted(places) == list(range(min(places), min(places) + 5))
    order = own[np.argsort(places)].tolist()
    by_hand = own[[0, 2, 4, 1, 3]].tolist()
    assert order in (by_hand, by_hand[::-1])
    five = np.argsort(places)
    assert distance(FIVE) == 2.25
    assert distance(FIVE[np.ix_(five, five)]) == pytest.approx(1.1818181818, abs=1e-10)
    many = blocks_of(30, 10)
    _, names, _ = matrix_of(many)
    order = [int(name) for name in names]
    assert sorted(order) == list(range(30))
    assert distance(many[np.ix_(order, order)]) < 0.4 * distance(many)


def test_without_confusions_classes_stay_in_order() -> None:
    _, names, _ = matrix_of(np.diag(np.arange(30, 50)))
    assert names == [str(label) for label in range(20)]


def test_of_many_classes_the_most_confused_are_shown_and_totals_stay() -> None:
    counts = blocks_of(60, 20)
    block = list(range(0, 60, 3))
    figure, names, sizes = matrix_of(counts)
    assert [int(name) for name in names[:-1]] == block  # in the order of the labels
    assert names[-1] == "(others)"
    assert sum(sizes) == counts.sum()
    own = np.array([int(name) for name in names[:-1]])
    others = np.setdiff1d(np.arange(60), own)
    totals = counts.sum(axis=1)
    (image,) = figure.axes[0].images
    inner = np.ma.filled(image.get_array(), np.nan)
    np.testing.assert_allclose(
        inner[:-1, :-1], counts[np.ix_(own, own)] / totals[own][:, None], atol=1e-12
    )
    rest = counts[np.ix_(others, others)]
    assert np.isnan(inner[-1, -1])  # it counts correct predictions and errors
    errors_of_others = rest.sum() - np.trace(rest)
    svg = as_svg(figure)
    assert f"{rest.sum():,.0f}" in svg
    assert f"{errors_of_others:,.0f}" in svg
    assert "Shows the 20 of 60 classes" in svg
    assert f"{100 * inside(counts, own):.3g}%" in svg


def test_the_positive_class_is_always_shown() -> None:
    grouping = Grouping({59: [59], "other": range(59)}, positive=59)
    _, names, _ = matrix_of(blocks_of(60, 20), grouping=grouping)
    assert len(names) == 22
    assert "59" in names


def separations(y: np.ndarray, p: np.ndarray) -> list[tuple[float, float]]:
    """The correlation of each pair of classes at equal shares, by the score that separates it less, and its error.

    The error is that of the jackknife over the samples of both classes.
    """

    def correlation(own: np.ndarray, other: np.ndarray) -> float:
        d = own.mean() - other.mean()
        return float(d / np.sqrt(2 * (own.var() + other.var()) + d**2))

    def error(own: np.ndarray, other: np.ndarray) -> float:
        without_own = [correlation(np.delete(own, i), other) for i in range(len(own))]
        without_other = [correlation(own, np.delete(other, i)) for i in range(len(other))]
        return float(np.sqrt(sum((len(r) - 1) * np.var(r) for r in (without_own, without_other))))

    pairs = []
    for c, d in itertools.combinations(range(p.shape[1]), 2):
        sides = [(p[y == c, c], p[y == d, c]), (p[y == d, d], p[y == c, d])]
        pairs.append(min(sides, key=lambda side: correlation(*side)))
    least = sorted(pairs, key=lambda side: correlation(*side))[:15]
    return [(correlation(*side), error(*side)) for side in least]


@pytest.mark.slow
def test_of_many_classes_the_pairs_that_are_separated_least() -> None:
    y, _, p = random_problem(1, n=900, k=14)
    evaluation = evaluate(y, y_prob=p)
    (ax,) = evaluation.figures()["spcc_matrix"].axes
    expected, errors = np.transpose(separations(y, p)[:10])
    shown = next(line for line in ax.get_lines() if line.get_marker() == "o").get_xdata()
    np.testing.assert_allclose(shown, expected)
    low, high = np.transpose([one[:, 0] for one in ax.collections[0].get_segments()])
    reach = norm.ppf(0.975) * errors / (1 - expected**2)
    for shown_reach in (np.arctanh(shown) - np.arctanh(low), np.arctanh(high) - np.arctanh(shown)):
        np.testing.assert_allclose(shown_reach, reach, rtol=0.1)
        assert np.mean(shown_reach / reach) == pytest.approx(1, abs=0.03)
    (note,) = [text.get_text() for text in ax.texts]
    assert "10 of 91 pairs" in note.replace("\n", " ")
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


def test_of_more_than_30_classes_there_are_no_curves() -> None:
    y, _, p = random_problem(2, n=600, k=31)
    figures = evaluate(y, y_prob=p).figures()
    assert "spcc_matrix" in figures
    assert "class_curves" not in figures


@pytest.mark.slow
def test_curves_of_each_class_against_all_others() -> None:
    y, _, p = random_problem(3, n=500, k=4)
    evaluation = evaluate(y, y_prob=p)
    figure = evaluation.figures()["class_curves"]
    roc, precision, gains = figure.axes
    curves = [line for line in roc.get_lines() if not line.get_label().startswith("_")]
    areas = {label: evaluation.metrics[f"class/{label}/roc_auc"] for label in range(4)}
    hardest_first = sorted(areas, key=areas.__getitem__)
    for label, line in zip(hardest_first, curves, strict=True):
        area = areas[label]
        assert trapezoid(line.get_ydata(), line.get_xdata()) == pytest.approx(area, abs=0.01)
        assert line.get_label().startswith(f"{label}: AUC {area:.3f} [")
    assert len(curves) == 4
    for ax in (precision, gains):
        assert len([line for line in ax.get_lines() if line.get_label() == "_same"]) == 4
    # two groups have figures of their own
    assert "class_curves" not in evaluate(y == 0, y_prob=p[:, 0]).figures()
    y, _, p = random_problem(3, n=5000, k=3)
    assert len(as_svg(evaluate(y, y_prob=p).figures()["class_curves"])) < 60_000


@pytest.mark.slow
def test_curves_of_runs_by_class() -> None:
    y, _, p = random_problem(4, n=300, k=6)
    blurred = (p + 0.3) / (p + 0.3).sum(axis=1, keepdims=True)
    noise = np.random.default_rng(0).dirichlet(np.ones(6), 300)
    runs = {"sharp": p, "mixed": (blurred + noise) / 2, "noise": noise}
    comparison = compare({name: evaluate(y, y_prob=own) for name, own in runs.items()})
    figure = comparison.figures()["class_curves"]
    assert len(figure.axes) == 3 * 2  # of two classes
    assert figure.legends[0].get_texts()[0].get_text() == comparison.ranking.runs[0].name
    svg = as_svg(figure)
    assert {f'data-run="{place}"' in svg for place in range(3)} == {True}
    pair = compare(
        {"a": evaluate(y == 0, y_prob=p[:, 0]), "b": evaluate(y == 0, y_prob=noise[:, 0])}
    )
    assert "class_curves" not in pair.figures()
