"""Gates on rows that a run breaks against the baseline."""

from __future__ import annotations

import numpy as np
import pytest

from cmtrack import Evaluation, compare, evaluate
from cmtrack.comparison import judge
from cmtrack.evaluation import Gate


def runs(n: int, broken: int, fixed: int = 20) -> dict[str, Evaluation]:
    """A champion that is wrong in so many rows, which the candidate gets right, and a candidate that breaks others."""
    y = np.arange(n) % 2
    champion = np.where(np.arange(n) < fixed, 1 - y, y)
    candidate = np.where(np.arange(n) >= n - broken, 1 - y, y)
    return {"champion": evaluate(y, champion), "candidate": evaluate(y, candidate)}


def gated(given: dict[str, Evaluation], gate: str, **options: object):
    comparison = compare(
        given, rank_by="multiclass/accuracy", against="champion", require=gate, **options
    )
    return {run.name: run.gates[0] for run in comparison.judged}


@pytest.mark.parametrize(
    ("n", "broken", "passed"), [(400, 0, True), (400, 1, False), (600, 1, True), (1164, 5, True)]
)
def test_a_gate_on_broken_rows(n: int, broken: int, passed: bool) -> None:
    results = gated(runs(n, broken), "flips/broken.high <= 0.01")
    assert results["candidate"].passed is passed
    assert results["champion"].passed  # it breaks nothing of its own
    assert results["champion"].value == 0
    plain = gated(runs(n, broken), f"flips/broken <= {broken / n}")["candidate"]
    assert (plain.passed, plain.value) == (True, broken / n)


def test_a_gate_that_no_outcome_can_pass_says_so() -> None:
    for broken in (0, 3):
        result = gated(runs(200, broken), "flips/broken.high <= 0.01")["candidate"]
        assert (result.passed, result.undecided) == (False, True)
        assert (
            result.reason
            == "no outcome of 200 rows can pass: the number of rows that the gate needs is 368"
        )
    by_class = gated(runs(400, 0), "flips/class/0/broken.high <= 0.01")["candidate"]
    assert by_class.reason.startswith(
        "no outcome of 200 rows can pass: the number of rows that the gate needs is 5"
    )


def test_metrics_of_flips_by_class() -> None:
    comparison = compare(runs(400, 3), rank_by="multiclass/accuracy")
    frame = comparison.flips("champion", "candidate", by="class").to_frame().set_index("part")
    result = gated(runs(400, 3), "flips/class/1/broken.high <= 0.9")["candidate"]
    assert result.value == frame.loc[1, "broken_high"]
    changed = gated(runs(400, 3), "flips/changed <= 0.9")["candidate"]
    assert changed.value == 23 / 400


def test_a_pipeline_is_told() -> None:
    champion, candidate = runs(200, 0).values()
    verdict = judge(candidate, champion, require=["flips/broken.high <= 0.01"])
    assert not verdict.passed
    assert (
        "cannot be decided: no outcome of 200 rows can pass: the number of rows that the gate "
        "needs is 368"
    ) in verdict.why
    assert judge(
        candidate, champion, require=["flips/broken.high <= 0.02", "flips/fixed >= 0.1"]
    ).passed
    assert "flips need a baseline" in judge(candidate, require=["flips/broken <= 0.1"]).why


@pytest.mark.parametrize(
    ("gate", "options", "words"),
    [
        ("flips/broken.high <= 0.01", {}, "needs against="),
        ("flips/broke <= 0.01", {"against": "champion"}, "did you mean 'flips/broken'"),
        (
            "flips/broken.difference <= 0.01",
            {"against": "champion"},
            "compares all rows with a baseline",
        ),
        (
            "segment/x/a/flips/broken <= 0.01",
            {"against": "champion"},
            "compares all rows with a baseline",
        ),
    ],
)
def test_gates_that_are_refused(gate: str, options: dict, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        compare(runs(100, 0), require=gate, **options)


def test_runs_of_other_rows_are_not_judged_by_flips() -> None:
    given = runs(400, 0)
    given["other"] = evaluate(np.append(np.zeros(399, int), 1), np.zeros(400, int))
    result = gated(given, "flips/broken <= 0.5")["other"]
    assert not result.passed
    assert "cannot be compared row by row: the evaluations have different rows" in result.reason
    assert Gate.parse("flips/class/a/broken <= 0.1").against
