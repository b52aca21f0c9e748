"""The guide's six lines on several data sets find what Demšar (2006) found on his."""

from __future__ import annotations

import re
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy.stats import wilcoxon

from cmtrack import evaluate
from support import ROOT

MODELS = ("C4.5", "C4.5+m", "C4.5+cf", "C4.5+m+cf")
VALUES = np.array(
    [
        [0.763, 0.768, 0.771, 0.798],
        [0.599, 0.591, 0.590, 0.569],
        [0.954, 0.971, 0.968, 0.967],
        [0.628, 0.661, 0.654, 0.657],
        [0.882, 0.888, 0.886, 0.898],
        [0.936, 0.931, 0.916, 0.931],
        [0.661, 0.668, 0.609, 0.685],
        [0.583, 0.583, 0.563, 0.625],
        [0.775, 0.838, 0.866, 0.875],
        [1.000, 1.000, 1.000, 1.000],
        [0.940, 0.962, 0.965, 0.962],
        [0.619, 0.666, 0.614, 0.669],
        [0.972, 0.981, 0.9754, 0.9746],
        [0.957, 0.978, 0.946, 0.970],
    ]
)
"""Table 6 of Demšar (2006): four decision trees on 14 data sets. Here the areas are accuracies.

The table prints .975 twice with the ranks 2 and 3, so these two have a fourth digit.
"""
N = 10_000


def evaluation(accuracy: float) -> Any:
    """An evaluation with this accuracy."""
    y = np.arange(N) % 2
    wrong = np.arange(N) >= round(accuracy * N)
    return evaluate(y, np.where(wrong, 1 - y, y))


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    """What the lines of the page leave."""
    pytest.importorskip("scikit_posthocs")
    page = (ROOT / "docs" / "guide" / "several_data_sets.md").read_text(encoding="utf-8")
    (lines,) = re.findall(
        r"^```\{code-cell\} ipython3\n(import pandas.*?)^```", page, re.DOTALL | re.MULTILINE
    )
    assert len([line for line in lines.splitlines() if line]) == 6
    named = {
        (f"data {d}", m): evaluation(VALUES[d, k]) for d in range(14) for k, m in enumerate(MODELS)
    }
    space: dict[str, Any] = {"evaluations": named}
    exec(lines, space)
    return space


def test_there_is_a_row_for_each_data_set_and_a_column_for_each_model(
    found: dict[str, Any],
) -> None:
    values = found["values"]
    assert values.shape == (14, 4)
    assert values.loc["data 0", list(MODELS)].tolist() == pytest.approx(VALUES[0])


def test_average_ranks_and_nemenyis_test_are_those_of_the_paper(found: dict[str, Any]) -> None:
    ranks = found["values"].rank(axis="columns", ascending=False).mean()
    assert ranks[list(MODELS)].round(3).tolist() == [3.143, 2.000, 2.893, 1.964]
    # The critical differences are 1.25 at 5% and 1.12 at 10%: 3.143 - 1.964 and 3.143 - 2.000 lie between them.
    nemenyi = found["nemenyi"]
    for first, second in combinations(MODELS, 2):
        pvalue = nemenyi.loc[first, second]
        if abs(ranks[first] - ranks[second]) > 1.12:
            assert 0.05 < pvalue < 0.10
        else:
            assert pvalue > 0.10
    assert nemenyi.loc["C4.5", "C4.5+m"] < 0.10
    assert nemenyi.loc["C4.5", "C4.5+m+cf"] < 0.10


def test_signed_rank_tests_have_holms_adjustment(found: dict[str, Any]) -> None:
    pairs = list(combinations(range(4), 2))
    alone = [wilcoxon(VALUES[:, i], VALUES[:, j]).pvalue for i, j in pairs]
    largest = 0.0
    for place, k in enumerate(np.argsort(alone)):
        largest = max(largest, min(1.0, (len(pairs) - place) * alone[k]))
        first, second = (MODELS[one] for one in pairs[k])
        assert found["wilcoxon"].loc[first, second] == pytest.approx(largest)
