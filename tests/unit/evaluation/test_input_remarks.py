"""Input that is probably not what was meant: swapped classes, columns in another order, saturated scores, padding."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from cmtrack import Evaluation, evaluate, log_evaluation
from cmtrack.evaluation.input_remarks import MixedUpClassesWarning


def problem(seed: int, rows: int = 1000, classes: int = 4, gain: float = 3.0, shares: Any = None) -> Any:
    """Labels, and probabilities of a softmax that knows them by a gain."""
    rng = np.random.default_rng(seed)
    y = rng.choice(classes, rows, p=shares)
    scores = rng.normal(size=(rows, classes))
    scores[np.arange(rows), y] += gain
    p = np.exp(scores)
    return y, p / p.sum(axis=1, keepdims=True)


def warned(*given: Any, **more: Any) -> tuple[Evaluation, list[str]]:
    """The evaluation, and what Python warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        evaluation = evaluate(*given, **more)
    return evaluation, [str(one.message) for one in caught if one.category is MixedUpClassesWarning]


@pytest.mark.parametrize(("order", "moved"), [([0, 1, 2, 3], 0), ([0, 1, 3, 2], 2), ([1, 0, 3, 2], 4)])
def test_swapped_classes_are_named_also_if_most_rows_are_right(order: list[int], moved: int) -> None:
    y, p = problem(0)
    evaluation, texts = warned(y, y_prob=p[:, order])
    assert len(texts) == (moved > 0)
    assert [text for text in evaluation.warnings if "would be" in text] == texts
    assert sum(text.count(" meant ") for text in texts) == moved


@pytest.mark.parametrize("weights", [None, np.full(1000, 2.0), np.full(1000, 2)], ids=["none", "fractional", "whole"])
def test_reversed_columns_beside_right_labels_are_noticed(weights: Any) -> None:
    y, p = problem(1, classes=2)
    right = p.argmax(axis=1)
    evaluation, texts = warned(y, right, y_prob=p[:, ::-1], positive=1, sample_weight=weights)
    assert len(texts) == 1
    assert "the columns of the probabilities must be in the order of labels=" in texts[0]
    assert texts[0] in evaluation.notes
    assert warned(y, right, y_prob=p, positive=1, sample_weight=weights)[1] == []


def preferring(p: np.ndarray, k: int, times: float) -> np.ndarray:
    return (p * np.where(np.arange(p.shape[1]) == k, times, 1.0)).argmax(axis=1)


@pytest.mark.parametrize("classes", [2, 3, 6])
@pytest.mark.parametrize("gain", [0.0, 0.3, 1.0, 3.0])
@pytest.mark.parametrize("rows", [10, 200])
def test_models_that_are_right_or_guess_are_rarely_suspected(classes: int, gain: float, rows: int) -> None:
    """Of 40 data sets each, of which a false alarm may come in one of a thousand: none is expected in 960."""
    alarms = 0
    for seed in range(40):
        shares = np.random.default_rng(seed).dirichlet(np.full(classes, 0.5 + seed % 3))
        y, p = problem(seed, rows, classes, gain, shares)
        if len(np.unique(y)) < 2:
            continue
        labels = list(range(classes))
        for y_pred in (None, preferring(p, 0, 20.0), preferring(p, classes - 1, 0.1)):
            alarms += len(warned(y, y_pred, y_prob=p, labels=labels)[1])
    assert alarms <= 1


def test_the_warning_breaks_no_training_and_loses_no_evaluation(store: Any) -> None:
    import mlflow

    y, p = problem(0)
    with mlflow.start_run(), pytest.warns(UserWarning, match="would be") as caught:
        logged = log_evaluation(y, y_prob=p[:, [1, 0, 3, 2]], figures=False)
    assert (logged.status, len([one for one in caught if "would be" in str(one.message)])) == ("completed", 1)
    with mlflow.start_run(), warnings.catch_warnings():
        warnings.simplefilter("error", MixedUpClassesWarning)
        logged = log_evaluation(y, y_prob=p[:, [1, 0, 3, 2]], figures=False)
    assert logged.status == "completed"


def test_classes_with_numbers_in_their_names_are_not_read_in_text_order_without_a_word() -> None:
    y, p = problem(2, classes=12)
    evaluation, texts = warned(y.astype(str), y_prob=p)
    assert any("in the order of the labels as texts, ['0', '1', '10'" in note for note in evaluation.notes)
    assert len(texts) == 1  # and the matrix shows which were meant
    named = evaluate(y.astype(str), y_prob=p, labels=[str(k) for k in range(12)])
    assert not [note for note in named.notes if "order of the labels as texts" in note]
    few = evaluate(np.array(["class_1", "class_2"])[y % 2], y_prob=p[:, :2] / p[:, :2].sum(axis=1, keepdims=True))
    assert not [note for note in few.notes if "order of the labels as texts" in note]


def test_saturated_probabilities_are_named() -> None:
    y = np.array([0, 1] * 20)
    logits = np.where(y == 1, 40.0, 38.0) + np.arange(40) * 0.01
    p = 1 / (1 + np.exp(-logits))
    (text,) = (one for one in evaluate(y, y_prob=p, positive=1).warnings if "are tied" in one)
    assert text.startswith("100 % of the positives and 100 % of the negatives have the score 1 exactly")
    assert not [one for one in evaluate(y, y_score=logits, positive=1).warnings if "are tied" in one]
    rest = np.array([0.1, 0.4, 0.35, 0.8] * 10) * 1e-17
    assert [one for one in evaluate(y, y_prob=np.c_[rest, 1 - rest]).warnings if "are tied" in one]


MODELS = (
    DecisionTreeClassifier(),
    DecisionTreeClassifier(max_depth=3),
    RandomForestClassifier(20),
    KNeighborsClassifier(3),
)


@pytest.mark.parametrize(
    "model", MODELS, ids=lambda model: f"{type(model).__name__}-{model.get_params().get('max_depth')}"
)
@pytest.mark.parametrize("cut", [0.0, 2.2])
def test_shares_of_trees_and_neighbours_are_not_taken_for_saturated(model: Any, cut: float) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2000, 5))
    y = (x[:, 0] + rng.normal(size=2000) > cut).astype(int)
    p = model.fit(x[:1000], y[:1000]).predict_proba(x[1000:])
    assert not [one for one in evaluate(y[1000:], y_prob=p).warnings if "are tied" in one]


def test_padding_is_named() -> None:
    y = np.arange(40) % 2
    y[:10] = -100
    evaluation = evaluate(y, np.arange(40) % 2)
    assert "-100 is the usual mark for rows that do not count; here it is a class of 10 rows" in evaluation.warnings
    assert not [one for one in evaluate(y[10:], y[10:]).warnings if "usual mark" in one]
