"""Input that is probably not what was meant: swapped classes, columns in another order, saturated scores, padding."""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from cmtrack import Accumulator, Evaluation, evaluate, evaluate_table, log_evaluation


def problem(
    seed: int, rows: int = 1000, classes: int = 4, gain: float = 3.0, shares: Any = None
) -> Any:
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
    mixed_up = [one for one in caught if one.category.__name__ == "MixedUpClassesWarning"]
    return evaluation, [str(one.message) for one in mixed_up]


@pytest.mark.parametrize(
    ("order", "moved"), [([0, 1, 2, 3], 0), ([0, 1, 3, 2], 2), ([1, 0, 3, 2], 4)]
)
def test_swapped_classes_are_named_also_if_most_rows_are_right(
    order: list[int], moved: int
) -> None:
    y, p = problem(0)
    evaluation, texts = warned(y, y_prob=p[:, order])
    assert len(texts) == (moved > 0)
    assert [text for text in evaluation.warnings if "would be" in text] == texts
    assert sum(text.count(" meant ") for text in texts) == moved


@pytest.mark.parametrize(
    "weights", [None, np.full(1000, 2.0), np.full(1000, 2)], ids=["none", "fractional", "whole"]
)
def test_reversed_columns_beside_right_labels_are_noticed(weights: Any) -> None:
    y, p = problem(1, classes=2)
    right = p.argmax(axis=1)
    evaluation, texts = warned(y, right, y_prob=p[:, ::-1], positive=1, sample_weight=weights)
    assert len(texts) == 1
    assert "the columns of the probabilities must be in the order of labels=" in texts[0]
    assert texts[0] in evaluation.notes
    assert warned(y, right, y_prob=p, positive=1, sample_weight=weights)[1] == []


@pytest.mark.parametrize("classes", [3, 6, 12])
def test_columns_in_reverse_are_noticed_whatever_the_shares_of_the_classes(classes: int) -> None:
    """Of few rows of many classes no cell alone is significant, and some hold less than half of a row."""
    noticed = 0
    for seed in range(20):
        shares = np.random.default_rng(seed).dirichlet(np.full(classes, 2.0))
        y, p = problem(seed, 100, classes, 3.0, shares)
        noticed += len(warned(y, y_prob=p[:, ::-1], labels=range(classes))[1])
    assert noticed >= 19


def test_two_of_many_classes_are_named_also_if_rare_ones_are_confused() -> None:
    y, p = problem(3, 600, 6)
    predicted = p[:, [1, 0, 2, 3, 4, 5]].argmax(axis=1)
    actual = np.append(y, [6, 6, 7, 7])
    predicted = np.append(predicted, [7, 7, 2, 2])
    (text,) = warned(actual, predicted, labels=range(8))[1]
    assert "if the prediction “0” meant “1” and “1” meant “0”:" in text


def test_codes_that_start_at_another_number_are_noticed() -> None:
    y, p = problem(4)
    (text,) = warned(y, p.argmax(axis=1) + 1)[1]
    assert "“1” meant “0”, “2” meant “1”, “3” meant “2” and “4” meant “3”" in text


def test_a_class_that_is_always_preferred_to_another_is_not_suspected() -> None:
    for common in (100, 5):
        actual = np.repeat([0, 1, 2], [common, 20, 50])
        assert warned(actual, np.repeat([1, 1, 2], [common, 20, 50]))[1] == []
    # all rows of a class are predicted as one that has no rows
    unseen = np.repeat([0, 1], [50, 50])
    assert warned(unseen, np.repeat([0, 2], [50, 50]))[1] == []


def test_tables_and_batches_warn_once_and_loading_does_not() -> None:
    y, p = problem(0)
    swapped = p[:, [0, 1, 3, 2]]
    batches = Accumulator(range(4))
    batches.update(y, y_prob=swapped)
    frame = pd.DataFrame({"y": y, "z": swapped.argmax(axis=1)})
    for judged in (batches.compute, lambda: evaluate_table(frame, y_true="y", y_pred="z")):
        with pytest.warns(UserWarning, match="“2” meant “3” and “3” meant “2”") as caught:
            evaluation = judged()
        assert [one.filename for one in caught] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loaded = Evaluation.from_data(json.loads(evaluation.to_json()))
        assert [text for text in loaded.warnings if "would be" in text]


def test_sampling_weights_count_by_their_effective_rows() -> None:
    y, p = problem(5, 60, 2)
    few = np.where(np.arange(60) < 6, 1.0, 1e-6)
    assert warned(y, y_prob=p[:, ::-1], sample_weight=few)[1] == []
    assert len(warned(y, y_prob=p[:, ::-1], sample_weight=np.full(60, 0.3))[1]) == 1


def test_reversed_columns_of_several_classes_are_noticed_in_few_rows() -> None:
    noticed = 0
    for seed in range(20):
        y, p = problem(seed, 100, 6, 1.5)
        noticed += len(warned(y, p.argmax(axis=1), y_prob=p[:, ::-1])[1])
    assert noticed >= 19


def preferring(p: np.ndarray, k: int, times: float) -> np.ndarray:
    return (p * np.where(np.arange(p.shape[1]) == k, times, 1.0)).argmax(axis=1)


@pytest.mark.parametrize("classes", [2, 3, 6])
@pytest.mark.parametrize("gain", [0.0, 0.3, 1.0, 3.0])
@pytest.mark.parametrize("rows", [10, 200])
def test_models_that_are_right_or_guess_are_rarely_suspected(
    classes: int, gain: float, rows: int
) -> None:
    """Of 12 data sets each, of which a false alarm may come in one of a thousand: none is expected in 288."""
    alarms = 0
    for seed in range(12):
        shares = np.random.default_rng(seed).dirichlet(np.full(classes, 0.5 + seed % 3))
        y, p = problem(seed, rows, classes, gain, shares)
        if len(np.unique(y)) < 2:
            continue
        labels = list(range(classes))
        for y_pred in (None, preferring(p, 0, 20.0), preferring(p, classes - 1, 0.1)):
            alarms += len(warned(y, y_pred, y_prob=p, labels=labels)[1])
    assert alarms <= 1


@pytest.mark.slow
def test_the_warning_breaks_no_training_and_loses_no_evaluation(store: Any) -> None:
    import mlflow

    y, p = problem(0)
    with mlflow.start_run(), pytest.warns(UserWarning, match="would be") as caught:
        logged = log_evaluation(y, y_prob=p[:, [1, 0, 3, 2]], figures=False)
    assert (logged.status, len([one for one in caught if "would be" in str(one.message)])) == (
        "completed",
        1,
    )
    assert [one.filename for one in caught if "would be" in str(one.message)] == [__file__]
    with mlflow.start_run(), warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        logged = log_evaluation(y, y_prob=p[:, [1, 0, 3, 2]], figures=False)
        scaled = log_evaluation(y, y_prob=p * 0.99, figures=False, prefix="scaled/")
    assert (logged.status, scaled.status) == ("completed", "completed")
    assert logged.evaluation is not None
    assert any("would be" in text for text in logged.evaluation.warnings)


def test_classes_with_numbers_in_their_names_are_not_read_in_text_order_without_a_word() -> None:
    y, p = problem(2, classes=12)
    evaluation, texts = warned(y.astype(str), y_prob=p)
    assert any(
        "in the order of the labels sorted as strings, ['0', '1', '10'" in note
        for note in evaluation.notes
    )
    assert len(texts) == 1  # and the matrix shows which were meant
    named = evaluate(y.astype(str), y_prob=p, labels=[str(k) for k in range(12)])
    assert not [note for note in named.notes if "order of the labels sorted as strings" in note]
    few = evaluate(
        np.array(["class_1", "class_2"])[y % 2],
        y_prob=p[:, :2] / p[:, :2].sum(axis=1, keepdims=True),
    )
    assert not [note for note in few.notes if "order of the labels sorted as strings" in note]


def test_saturated_probabilities_are_named() -> None:
    y = np.array([0, 1] * 20)
    logits = np.where(y == 1, 40.0, 38.0) + np.arange(40) * 0.01
    p = 1 / (1 + np.exp(-logits))
    (text,) = (one for one in evaluate(y, y_prob=p, positive=1).warnings if "are tied" in one)
    assert text.startswith(
        "100% of the positives and 100% of the negatives have the score 1 exactly"
    )
    assert not [
        one for one in evaluate(y, y_score=logits, positive=1).warnings if "are tied" in one
    ]
    rest = np.array([0.1, 0.4, 0.35, 0.8] * 10) * 1e-17
    assert [one for one in evaluate(y, y_prob=np.c_[rest, 1 - rest]).warnings if "are tied" in one]


@pytest.mark.parametrize("rows", [500, 5000], ids=["one by one", "grid"])
@pytest.mark.parametrize("classes", [3, 15])
def test_saturated_probabilities_of_several_classes_are_named(rows: int, classes: int) -> None:
    y, p = problem(0, rows, classes, 1.0)
    logits = np.log(p) + np.where(np.arange(classes) == 2, 21.0, 0.0)
    logits -= logits.max(axis=1, keepdims=True)
    saturated = np.exp(logits.astype(np.float32))
    saturated /= saturated.sum(axis=1, keepdims=True)
    for given, named in ((saturated, 1), (p, 0)):
        texts = [one for one in evaluate(y, y_prob=given).warnings if "are tied" in one]
        assert len(texts) == named
        assert all("have the probability 1" in text for text in texts)


def test_saturated_probabilities_of_many_rows_are_named() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 270_000)
    logits = (rng.normal(size=len(y)) + y + 20).astype(np.float32)
    (text,) = (
        one for one in evaluate(y, y_prob=1 / (1 + np.exp(-logits))).warnings if "are tied" in one
    )
    assert "100% of the negatives have the score 1 within 6e-06" in text
    assert not [one for one in evaluate(y, y_score=logits - 20).warnings if "are tied" in one]


MODELS = (
    DecisionTreeClassifier(),
    DecisionTreeClassifier(max_depth=3),
    RandomForestClassifier(20),
    KNeighborsClassifier(3),
)


@pytest.mark.parametrize(
    "model",
    MODELS,
    ids=lambda model: f"{type(model).__name__}-{model.get_params().get('max_depth')}",
)
@pytest.mark.parametrize("cut", [0.0, 2.2])
def test_shares_of_trees_and_neighbours_are_not_taken_for_saturated(model: Any, cut: float) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2000, 5))
    y = (x[:, 0] + rng.normal(size=2000) > cut).astype(int)
    p = model.fit(x[:1000], y[:1000]).predict_proba(x[1000:])
    assert not [one for one in evaluate(y[1000:], y_prob=p).warnings if "are tied" in one]


def test_columns_of_tables_are_not_read_in_text_order_without_a_word() -> None:
    y, p = problem(2, classes=12)
    frame = pd.DataFrame({"y": y.astype(str), "p": list(p)})
    with pytest.warns(UserWarning, match="would be"):
        evaluation = evaluate_table(frame, y_true="y", y_prob="p")
    assert any("in the order of the labels sorted as strings" in note for note in evaluation.notes)


def test_void_pixels_are_named() -> None:
    y = np.arange(400) % 19
    void = np.where(np.arange(400) < 50, 255, y)
    named = "255 usually marks rows to ignore, but here it is a class with 50 rows"
    assert named in evaluate(void, y).warnings
    for actual, predicted in ((void, void), (np.where(void == 255, 255, y + 200), y + 200)):
        assert not [one for one in evaluate(actual, predicted).warnings if "usually marks" in one]


def test_padding_is_named() -> None:
    y = np.arange(40) % 2
    y[:10] = -100
    evaluation = evaluate(y, np.arange(40) % 2)
    assert (
        "-100 usually marks rows to ignore, but here it is a class with 10 rows"
        in evaluation.warnings
    )
    assert not [one for one in evaluate(y[10:], y[10:]).warnings if "usually marks" in one]
