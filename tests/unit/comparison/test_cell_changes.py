"""Which cells of a confusion matrix differ between two runs, tested cell by cell."""

from __future__ import annotations

import math

import numpy as np
import pytest

import cmtrack
from cmtrack import Grouping, evaluate

# a review shows a few cells, and rounds their p-values: the arithmetic of all is seen here only
from cmtrack.comparison.cell_changes import cell_changes


def test_cells_are_tested_by_hand_values():
    # ten rows of class 0: both right in 2; the first right and the second not in 1; the reverse in 7
    y = np.zeros(10, dtype=int)
    first = np.array([0, 0, 0, *[1] * 7])
    second = np.array([0, 0, 1, *[0] * 7])
    y, first, second = np.append(y, 1), np.append(first, 1), np.append(second, 1)
    changes = cell_changes(evaluate(y, first), evaluate(y, second))
    assert changes.paired
    assert changes.only_first[0].tolist() == [1, 7]
    assert changes.only_second[0].tolist() == [7, 1]
    assert changes.counts.tolist() == [[6, -6], [0, 0]]
    assert changes.difference[0] == pytest.approx([0.6, -0.6])
    # mid-p of 1 against 7: 2 (C(8,0) + C(8,1)) / 2^8 - C(8,1) / 2^8
    midp = (2 * 9 - 8) / 256
    assert changes.pvalues[0] == pytest.approx([midp, midp])
    assert np.isnan(changes.pvalues[1]).all()  # nothing changed there
    assert changes.adjusted[0] == pytest.approx([2 * midp] * 2)
    assert not changes.significant(0.95).any()
    assert changes.significant(0.9)[0].all()
    assert changes.gains()[0] == pytest.approx([0.6, 0.6])


def test_cells_of_unpaired_runs_are_two_proportions(tmp_path):
    y = np.repeat([0, 1], 100)
    first, second = y.copy(), y.copy()
    first[:40] = 1
    second[:20] = 1
    loaded = cmtrack.Evaluation.load(evaluate(y, first).save(tmp_path, rows=False))
    changes = cell_changes(loaded, evaluate(y, second))
    assert not changes.paired
    assert np.isnan(changes.only_first).all()
    from scipy.stats import chi2_contingency

    expected = chi2_contingency([[40, 60], [20, 80]], correction=False).pvalue
    assert changes.pvalues[0] == pytest.approx([expected, expected])
    assert np.isnan(changes.pvalues[1]).all()


def test_clusters_and_weights_keep_the_test_from_counting_rows_twice():
    y = np.repeat([0, 1], 40)
    first, second = y.copy(), y.copy()
    first[:16] = 1
    once = cell_changes(evaluate(y, first), evaluate(y, second)).pvalues[0, 0]
    people = np.arange(80) // 4
    clustered = cell_changes(
        evaluate(y, first, groups=people), evaluate(y, second, groups=people)
    ).pvalues[0, 0]
    assert once < 0.001 < clustered
    # four people of four rows: 16 / sqrt(4 * 16)
    assert clustered == pytest.approx(math.erfc(2 / math.sqrt(2)))
    weights = np.full(80, 0.5)
    weighted = cell_changes(
        evaluate(y, first, sample_weight=weights), evaluate(y, second, sample_weight=weights)
    )
    assert weighted.pvalues[0, 0] == pytest.approx(math.erfc(4 / math.sqrt(2)))


def test_many_classes_are_compared_by_their_groups():
    rng = np.random.default_rng(3)
    y = rng.integers(0, 40, 800)
    wrong = rng.random(800) < 0.4
    first = np.where(wrong, (y + 1) % 40, y)
    grouping = Grouping({"low": range(20), "high": range(20, 40)}, {"low": "strict"}, name="half")
    one, two = (evaluate(y, p, labels=list(range(40)), grouping=grouping) for p in (first, y))
    changes = cell_changes(one, two)
    assert (changes.step, changes.labels) == ("half", ("low", "high"))
    assert (
        changes.counts.tolist()
        == (two.reduced["half"].counts - one.reduced["half"].counts).tolist()
    )
    assert np.nansum(changes.only_second - changes.only_first) == pytest.approx(
        changes.counts.sum()
    )
    assert changes.mismatches[0] < 0


def test_other_classes_cannot_be_compared():
    with pytest.raises(ValueError, match="classes must be the same"):
        cell_changes(evaluate([0, 1], [0, 1]), evaluate([0, 2], [0, 2]))
