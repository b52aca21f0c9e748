"""A score that never varies: its sPCC is 0 and ranks, and nothing that contains it has an error."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cmtrack import Evaluation, compare, evaluate, paired_differences
from cmtrack.metrics import standardised_spcc
from cmtrack.statistics import ScoreMoments

ROWS = 300
LABELS = np.arange(ROWS) % 3


def never_finds_class_2(value: float = 0.2, seed: int = 0) -> np.ndarray:
    """Probabilities (n, 3) of a model that gives class 2 one probability for all rows."""
    rng = np.random.default_rng(seed)
    scores = np.full((ROWS, 3), value)
    scores[:, 0] = np.where(LABELS == 0, 0.75, 0.05) * (1 - value) + rng.random(ROWS) * 0.02
    scores[:, 1] = 1 - value - scores[:, 0]
    return scores


def good(seed: int = 1) -> np.ndarray:
    """Probabilities (n, 3) of a model that finds all classes."""
    scores = np.exp(np.random.default_rng(seed).normal(size=(ROWS, 3)) + 3.2 * np.eye(3)[LABELS])
    return scores / scores.sum(axis=1, keepdims=True)


def bad_run(**options: object) -> Evaluation:
    return evaluate(LABELS, y_prob=never_finds_class_2(), **options)


def by_hand(scores: np.ndarray) -> list[float]:
    """One-vs-rest correlations; 0 for a score that never varies."""
    return [
        0.0 if np.ptp(column) == 0 else float(np.corrcoef(k == LABELS, column)[0, 1])
        for k, column in enumerate(scores.T)
    ]


@pytest.mark.parametrize("value", [0.2, 0.0, 0.1, 1 / 3])
def test_it_counts_as_0(value: float) -> None:
    scores = never_finds_class_2(value)
    evaluation = evaluate(LABELS, y_prob=scores)
    entries = by_hand(scores)
    assert entries[2] == 0
    metrics = evaluation.metrics
    assert [metrics[f"spcc/ovr/{k}"] for k in range(3)] == pytest.approx(entries)
    assert metrics["spcc/ovr_fisher"] == pytest.approx(math.tanh(np.arctanh(entries).mean()))
    assert metrics["spcc/ovr_min"] == 0
    assert evaluation.spcc_matrix is not None
    assert evaluation.spcc_matrix[2].tolist() == [0, 0, 0]


@pytest.mark.parametrize("weights", [None, "sampling", "repeats"])
@pytest.mark.parametrize("groups", [None, LABELS // 2 + np.arange(ROWS) // 10])
def test_nothing_that_contains_it_has_an_error(
    weights: str | None, groups: np.ndarray | None
) -> None:
    sample_weight = None
    if weights == "sampling":
        sample_weight = np.random.default_rng(3).random(ROWS) + 0.5
    if weights == "repeats":
        sample_weight = np.arange(ROWS) % 4 + 1
    evaluation = bad_run(sample_weight=sample_weight, groups=groups)
    for name in ("ovr/2", "ovr_fisher", "ovr_min", "ovo_fisher", "ovo_min"):
        assert math.isfinite(evaluation.metrics[f"spcc/{name}"])
        assert f"spcc/{name}" not in evaluation.intervals
        assert f"spcc/{name}" not in evaluation.standard_errors
        assert evaluation.influence(f"spcc/{name}") is None
    assert "spcc/ovr/0" in evaluation.intervals
    said = "the score of “2” never varies: its sPCC counts as 0, and spcc/ovr_fisher and spcc/ovr_min have no interval"
    assert said in evaluation.warnings


def test_the_minimum_has_no_interval_even_if_another_class_is_the_least() -> None:
    scores = never_finds_class_2()
    scores[:, [0, 1]] = scores[:, [1, 0]]
    evaluation = evaluate(LABELS, y_prob=scores)
    assert evaluation.metrics["spcc/ovr_min"] < -0.5
    assert "spcc/ovr_min" not in evaluation.intervals


def test_the_mean_is_continuous_in_the_score() -> None:
    scores = never_finds_class_2()
    scores[:, 2] += 1e-9 * np.random.default_rng(5).normal(size=ROWS)
    nearly = evaluate(LABELS, y_prob=scores / scores.sum(axis=1, keepdims=True)).metrics[
        "spcc/ovr_fisher"
    ]
    assert bad_run().metrics["spcc/ovr_fisher"] == pytest.approx(nearly, abs=0.02)


def one_vs_one_by_hand(scores: np.ndarray) -> list[float]:
    """One-vs-one correlations of three classes; 0 for a score that never varies within a pair."""
    entries = []
    for own in range(3):
        for other in range(3):
            pair = np.isin(LABELS, (own, other))
            score = scores[pair, own]
            if own != other:
                constant = np.ptp(score) == 0
                entries.append(
                    0.0 if constant else float(np.corrcoef(LABELS[pair] == own, score)[0, 1])
                )
    return entries


def test_the_one_vs_one_mean_counts_it_as_0_twice() -> None:
    entries = one_vs_one_by_hand(never_finds_class_2())
    assert entries.count(0.0) == 2
    expected = math.tanh(np.arctanh(entries).mean())
    metrics = bad_run().metrics
    assert metrics["spcc/ovo_fisher"] == pytest.approx(expected)
    assert metrics["spcc/ovo_min"] == pytest.approx(min(entries))
    # Pairs that are told apart almost without error outweigh the class that is not found. The minimum shows it.
    of_good = evaluate(LABELS, y_prob=good()).metrics
    assert metrics["spcc/ovo_fisher"] > of_good["spcc/ovo_fisher"]
    assert metrics["spcc/ovo_min"] < 0.1 < of_good["spcc/ovo_min"]


def test_a_score_that_nearly_never_varies_has_the_same_one_vs_one_mean() -> None:
    scores = never_finds_class_2()
    scores[:, 2] += 1e-9 * np.random.default_rng(5).normal(size=ROWS)
    nearly = evaluate(LABELS, y_prob=scores / scores.sum(axis=1, keepdims=True)).metrics[
        "spcc/ovo_fisher"
    ]
    assert bad_run().metrics["spcc/ovo_fisher"] == pytest.approx(nearly, abs=0.005)


def test_a_model_that_finds_all_classes_wins() -> None:
    runs = {"never finds class 2": bad_run(), "good": evaluate(LABELS, y_prob=good())}
    for name in ("spcc/ovr_fisher", "spcc/ovr_min", "spcc/ovr/2"):
        comparison = compare(runs, rank_by=name)
        assert comparison.ranking.leader.name == "good"
        last = comparison.ranking.runs[-1]
        assert math.isnan(last.difference_low)
        assert math.isnan(last.pvalue)
        assert "never varies" in last.unpaired
        assert "Their standard errors are treated as independent" not in comparison.summary()
        assert "no difference between them could be tested" in comparison.summary()
        difference = paired_differences(runs["good"], runs["never finds class 2"], metrics=[name])[
            name
        ]
        assert difference.difference > 0
        assert np.isnan(
            [difference.low, difference.high, difference.pvalue, difference.standard_error]
        ).all()
        assert "never varies" in difference.reason


def test_of_two_classes() -> None:
    positive = (LABELS == 0).astype(int)
    evaluation = evaluate(positive, y_prob=np.full(ROWS, 0.1))
    assert evaluation.metrics["spcc/binary"] == 0
    assert evaluation.metrics["binary/roc_auc"] == 0.5
    assert "spcc/binary" not in evaluation.intervals
    assert "spcc/binary" not in evaluation.standard_errors
    assert math.isnan(evaluation.metrics["binary/matthews_corrcoef"])
    assert (
        "the score of the positive group never varies: spcc/binary is 0 and has no interval"
        in evaluation.warnings
    )
    other = evaluate(positive, y_prob=np.random.default_rng(0).random(ROWS))
    comparison = compare({"constant": evaluation, "noise": other}, rank_by="spcc/binary")
    assert all(math.isnan(run.difference_low) for run in comparison.ranking.runs)
    moments = ScoreMoments.from_scores(positive, np.full((ROWS, 1), 0.1), 2)
    assert standardised_spcc(moments, 0.5) == 0


def test_without_rows_of_a_class_it_stays_undefined() -> None:
    evaluation = evaluate(LABELS, y_prob=np.column_stack((good(), np.zeros(ROWS))), labels=range(4))
    assert math.isnan(evaluation.metrics["spcc/ovr/3"])
    assert "no rows" in evaluation.undefined["spcc/ovr/3"]
    assert evaluation.metrics["spcc/ovr_fisher"] == pytest.approx(
        evaluate(LABELS, y_prob=good()).metrics["spcc/ovr_fisher"]
    )
    assert math.isnan(
        evaluate([1] * 50, y_prob=np.full(50, 0.3), labels=[0, 1]).metrics["spcc/binary"]
    )


def test_a_pair_whose_score_never_varies_is_named() -> None:
    scores = good()
    scores[LABELS != 2, 2] = 0.0  # the score of class 0 is spread over classes 1 and 2 only
    scores[LABELS != 2, :2] /= scores[LABELS != 2, :2].sum(axis=1, keepdims=True)
    scores[LABELS == 1] = [0.25, 0.75, 0.0]
    scores[LABELS == 0] = [0.25, 0.75, 0.0]
    evaluation = evaluate(LABELS, y_prob=scores)
    assert evaluation.spcc_matrix is not None
    assert evaluation.spcc_matrix[0, 1] == evaluation.spcc_matrix[1, 0] == 0
    assert "spcc/ovo_min" not in evaluation.intervals
    assert any(
        "2 one-vs-one scores never vary (the score of “0” over" in text
        for text in evaluation.warnings
    )
    assert "spcc/ovr_min" in evaluation.intervals
