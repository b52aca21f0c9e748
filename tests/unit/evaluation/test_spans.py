"""Labelled spans as an ordinary evaluation with a class for "no span"."""

from __future__ import annotations

import json
from collections import Counter

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

from cmtrack import (
    Evaluation,
    Grouping,
    compare,
    evaluate_spans,
    load_evaluation,
    log_evaluation,
    paired_differences,
)
from cmtrack.evaluation import loads

COLUMNS = ["document", "start", "end", "label"]
TRUE = [(1, 0, 5, "drug"), (1, 8, 12, "dose"), (2, 0, 4, "drug"), (2, 10, 20, "form")]
PREDICTED = [
    (1, 0, 5, "drug"),
    (1, 9, 12, "form"),
    (2, 10, 14, "drug"),
    (2, 12, 20, "form"),
    (3, 0, 3, "dose"),
]


def test_matches_confusions_over_and_under_prediction():
    matrix = evaluate_spans(TRUE, PREDICTED).confusion_matrix
    assert matrix.labels == ("dose", "drug", "form", "none")
    # the dose is called a form; the second drug is missed; the form keeps the longer overlap; what is left is "none"
    assert matrix.counts.tolist() == [[0, 0, 1, 0], [0, 1, 0, 1], [0, 0, 1, 0], [1, 1, 0, 0]]


def matched_labels(actual, predicted):
    """Return the pairs of labels that match in one document; None without a partner."""
    evaluation = evaluate_spans([(1, *a) for a in actual], [(1, *p) for p in predicted])
    labels = [None if label == "none" else label for label in evaluation.labels]
    matches = evaluation.rows.matches
    return [(labels[a], labels[p]) for a, p in zip(matches.actual, matches.predicted, strict=True)]


def test_the_same_extent_counts_before_a_longer_overlap_and_the_same_label_before_another():
    def pairs(actual, predicted):
        return sorted(matched_labels(actual, predicted), key=str)

    assert pairs([(0, 10, "a"), (0, 4, "b")], [(0, 4, "c")]) == [("a", None), ("b", "c")]
    assert pairs([(0, 4, "a")], [(0, 4, "b"), (0, 4, "a")]) == [("a", "a"), (None, "b")]
    assert pairs([(0, 10, "a")], [(0, 2, "a"), (3, 10, "b")]) == [("a", "b"), (None, "a")]
    # they touch, and share nothing
    assert pairs([(0, 4, "a")], [(4, 8, "a")]) == [("a", None), (None, "a")]


def test_frames_give_the_same_as_tuples():
    pl = pytest.importorskip("polars")
    expected = evaluate_spans(TRUE, PREDICTED)
    frames = [pd.DataFrame(spans, columns=COLUMNS) for spans in (TRUE, PREDICTED)]
    assert evaluate_spans(*frames) == expected
    assert evaluate_spans(*map(pl.from_pandas, frames)) == expected
    renamed = [frame.set_axis(list("defg"), axis=1) for frame in frames]
    assert evaluate_spans(*renamed, columns=tuple("defg")) == expected


def test_intervals_hold_for_documents():
    """Every document twice over as one: no more is known than from one copy."""
    once = [(d, *rest) for d, *rest in TRUE * 1], [(d, *rest) for d, *rest in PREDICTED]
    shifted = [[(d, s + 100, e + 100, label) for d, s, e, label in spans] for spans in once]
    single = evaluate_spans(*once)
    double = evaluate_spans(once[0] + shifted[0], once[1] + shifted[1])
    assert double.metrics["multiclass/accuracy"] == single.metrics["multiclass/accuracy"]
    assert double.standard_errors["multiclass/accuracy"] == pytest.approx(
        single.standard_errors["multiclass/accuracy"]
    )


spans = st.lists(
    st.builds(
        lambda start, length, label: (start, start + length, label),
        st.integers(0, 12),
        st.integers(1, 6),
        st.sampled_from("abc"),
    ),
    min_size=1,
    max_size=12,
)


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(spans, spans)
def test_every_span_stands_once_and_partners_overlap(actual, predicted):
    found = matched_labels(actual, predicted)
    for side, side_spans in enumerate((actual, predicted)):
        labels = sorted(pair[side] for pair in found if pair[side] is not None)
        assert labels == sorted(label for _, _, label in side_spans)
    of_label = [Counter(label for _, _, label in side) for side in (actual, predicted)]
    for start, end, label in actual:
        for other_start, other_end, other in predicted:
            is_only_pair = of_label[0][label] == of_label[1][other] == 1
            if (start, end) == (other_start, other_end) and is_only_pair:
                # of one extent: not both without a partner
                assert not {(label, None), (None, other)} <= set(found)


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(spans, spans, spans, spans)
def test_spans_of_different_documents_never_match(actual, predicted, more_actual, more_predicted):
    sides = [(actual, predicted), (more_actual, more_predicted)]
    alone = [
        evaluate_spans([(d, *a) for a in true], [(d, *p) for p in found], labels=[*"abc"])
        for d, (true, found) in enumerate(sides)
    ]
    both = evaluate_spans(
        [(d, *span) for d, (true, _) in enumerate(sides) for span in true],
        [(d, *span) for d, (_, found) in enumerate(sides) for span in found],
        labels=[*"abc"],
    )
    counts = alone[0].confusion_matrix.counts + alone[1].confusion_matrix.counts
    assert both.confusion_matrix.counts.tolist() == counts.tolist()


@pytest.mark.parametrize(
    ("true", "predicted", "options", "message"),
    [
        ([], [], {}, "at least one span"),
        ([(1, 5, 5, "a")], [], {}, "must end after it starts, got 5 to 5"),
        ([(1, 0, 5)], [], {}, r"must contain \(document, start, end, label\)"),
        (["spans"], [], {}, r"must contain \(document, start, end, label\)"),
        ([(1, 0, 5, None)], [], {}, "missing"),
        ([(1, 0, 5, "none")], [], {}, "choose another none="),
        (
            [(1, 0, 5, "a")],
            [(1, 0, 5, "b")],
            {"labels": ["a"]},
            r"must include every label of the spans, \['b'\]",
        ),
        ([(1, 0, 5, "a"), (1, 0, 5, 1)], [], {}, "one type"),
        (pd.DataFrame({"document": [1]}), [], {}, "columns= names them"),
    ],
)
def test_bad_spans_are_told(true, predicted, options, message):
    with pytest.raises(ValueError, match=message):
        evaluate_spans(true, predicted, **options)


# Eight sentences of the kind of CoNLL-2003: (actual, predicted) spans of words.
SENTENCES = [
    (
        [(0, 1, "ORG"), (2, 3, "MISC"), (6, 7, "MISC")],
        [(0, 1, "ORG"), (2, 3, "MISC"), (6, 7, "LOC")],
    ),
    ([(0, 2, "PER")], [(0, 2, "PER")]),
    ([(0, 1, "LOC")], [(0, 1, "ORG")]),
    ([(1, 3, "ORG")], [(0, 3, "ORG")]),
    (
        [(0, 1, "LOC"), (5, 7, "ORG"), (9, 11, "PER")],
        [(0, 1, "LOC"), (5, 7, "ORG"), (9, 10, "PER")],
    ),
    ([(7, 9, "PER")], [(5, 6, "MISC"), (7, 9, "PER")]),
    (
        [(0, 1, "MISC"), (3, 6, "PER"), (9, 10, "PER")],
        [(0, 1, "MISC"), (3, 6, "PER"), (9, 10, "PER")],
    ),
    ([(1, 2, "LOC"), (3, 4, "LOC")], [(1, 2, "LOC")]),
]
# seqeval 1.2.2, classification_report(..., mode="strict", scheme=IOB2) of the same sentences: precision, recall, F1
SEQEVAL = {
    "class/LOC": (2 / 3, 0.5, 4 / 7),
    "class/MISC": (2 / 3, 2 / 3, 2 / 3),
    "class/ORG": (0.5, 2 / 3, 4 / 7),
    "class/PER": (0.8, 0.8, 0.8),
    "micro": (2 / 3, 2 / 3, 2 / 3),
    "macro": (0.6583333333333333, 0.6583333333333332, 0.6523809523809525),
}


def sides(sentences=SENTENCES):
    return [
        [(d, *span) for d, pair in enumerate(sentences) for span in pair[side]] for side in (0, 1)
    ]


def test_exact_matches_give_the_numbers_of_seqeval():
    metrics = evaluate_spans(*sides(), match="exact").metrics
    for part, expected in SEQEVAL.items():
        for name, value in zip(("precision", "recall", "f1"), expected, strict=True):
            full = f"{part}/{name}" if "/" in part else f"spans/{name}_{part}"
            assert metrics[full] == pytest.approx(value, abs=1e-15), full
    # two of other ends overlap
    assert evaluate_spans(*sides()).metrics["spans/f1_micro"] == pytest.approx(0.8)


def test_a_label_that_is_never_predicted_counts_as_zero_where_that_is_said():
    evaluation = evaluate_spans([(1, 0, 2, "a"), (1, 3, 4, "b")], [(1, 0, 2, "a")])
    metrics = evaluation.metrics
    assert (metrics["spans/precision_macro"], metrics["spans/precision_macro_zero"]) == (1, 0.5)
    assert any("“b”" in text for text in evaluation.warnings)
    assert evaluation.classes_passed_over("spans/precision_macro") == ("b",)


MANY = [
    (d, i * 5, i * 5 + 2, label)
    for d in range(100)
    for i, label in enumerate(["PER", "LOC", "ORG"])
]


@pytest.mark.parametrize("fault", ["missed", "spurious", "spurious elsewhere"])
def test_one_fault_in_three_hundred_spans_is_one_fault(fault):
    spurious = [(0 if fault == "spurious" else 500, 90, 92, "PER")]
    metrics = evaluate_spans(MANY, MANY[1:] if fault == "missed" else MANY + spurious).metrics
    for name in (
        "spans/f1_micro",
        "spans/f1_macro",
        "multiclass/f1_macro",
        "multiclass/balanced_accuracy",
    ):
        assert 0.995 < metrics[name] <= 1, name
    assert "multiclass/matthews_corrcoef" not in metrics
    assert not any(name.startswith(("class/none", "rough/")) for name in metrics)


def test_a_shift_by_one_is_right_by_overlap_and_wrong_by_extent():
    shifted = [(d, start + 1, end + 1, label) for d, start, end, label in MANY]
    assert evaluate_spans(MANY, shifted).metrics["spans/f1_micro"] == 1
    assert evaluate_spans(MANY, shifted, match="exact").metrics["spans/f1_micro"] == 0
    with pytest.raises(ValueError, match="match must be 'overlap' or 'exact'"):
        evaluate_spans(MANY, shifted, match="strict")


def test_a_single_label_is_no_pair_of_classes():
    evaluation = evaluate_spans([(1, 0, 2, "a")], [(1, 0, 2, "a"), (1, 4, 5, "a")])
    assert evaluation.binary is None
    assert evaluation.metrics["spans/precision_micro"] == 0.5


def faulty(seed, rate):
    rng = np.random.default_rng(seed)
    kept = [span for span in MANY if rng.random() > rate]
    return kept + [(int(d), 90, 92, "PER") for d in rng.integers(80, 140, 10 + 3 * seed)]


def test_models_of_the_same_spans_are_paired_by_document_and_ranked(tmp_path):
    first, second = evaluate_spans(MANY, faulty(0, 0.02)), evaluate_spans(MANY, faulty(1, 0.15))
    assert len(first.rows.matches) != len(second.rows.matches)
    pair = paired_differences(
        first, second, metrics=["spans/f1_micro", "spans/recall_macro", "class/PER/recall"]
    )
    assert pair.paired
    assert compare({"first": first, "second": second}).best.name == "first"
    loaded = []
    for place, evaluation in enumerate((first, second)):
        evaluation.save(tmp_path / str(place))
        loaded.append(Evaluation.load(tmp_path / str(place)))
        assert loaded[-1] == evaluation
        assert loaded[-1].metrics == evaluation.metrics
        assert loaded[-1].intervals == evaluation.intervals
    again = paired_differences(
        *loaded, metrics=["spans/f1_micro", "spans/recall_macro", "class/PER/recall"]
    )
    assert again.rows == pair.rows
    assert first.n_samples == second.n_samples == 300
    exact = evaluate_spans(MANY, faulty(0, 0.02), match="exact")
    for other in (evaluate_spans(MANY[1:], faulty(0, 0.02)), exact):
        assert not paired_differences(first, other, metrics=["spans/f1_micro"]).paired


def test_the_paired_error_is_that_of_a_bootstrap_of_documents():
    documents = range(140)
    models = [faulty(seed, rate) for seed, rate in ((0, 0.05), (1, 0.15))]
    by_document = [
        [[span for span in side if span[0] == d] for d in documents] for side in (MANY, *models)
    ]
    tallies = np.zeros((2, 140, 3))  # right, predicted, actual
    for m in range(2):
        for d in documents:
            actual, predicted = by_document[0][d], by_document[m + 1][d]
            tallies[m, d] = len(set(actual) & set(predicted)), len(predicted), len(actual)
    drawn = np.random.default_rng(0).integers(0, 140, (4000, 140))
    sums = tallies[:, drawn].sum(axis=2)
    f1 = 2 * sums[..., 0] / (sums[..., 1] + sums[..., 2])
    evaluations = [evaluate_spans(MANY, model) for model in models]
    pair = paired_differences(*evaluations, metrics=["spans/f1_micro"])["spans/f1_micro"]
    assert pair.standard_error == pytest.approx((f1[0] - f1[1]).std(), rel=0.06)
    assert evaluations[0].standard_errors["spans/f1_micro"] == pytest.approx(f1[0].std(), rel=0.06)


@pytest.mark.slow
def test_spans_are_logged_loaded_and_reported(store):
    import mlflow

    evaluation = evaluate_spans(MANY, faulty(0, 0.1))
    with mlflow.start_run():
        logged = log_evaluation(evaluation)
    assert logged.status == "completed"
    assert not logged.problems
    assert load_evaluation(logged.run_id, rows=True) == evaluation
    metrics = mlflow.get_run(logged.run_id).data.metrics
    assert metrics["spans/f1_micro"] == pytest.approx(evaluation.metrics["spans/f1_micro"])
    assert compare([logged.run_id]).criterion.metrics == ("spans/f1_micro",)


def test_groups_that_hold_spans_are_averaged_over():
    grouping = Grouping(
        {"name": ["PER", "ORG"], "place": ["LOC"], "nothing": ["none"]}, name="kind"
    )
    evaluation = evaluate_spans(MANY, MANY[1:], grouping=grouping)
    assert evaluation.metrics["reduced/kind/f1_macro"] > 0.995
    assert "reduced/kind/matthews_corrcoef" not in evaluation.metrics
    regrouped = evaluate_spans(MANY, MANY[1:]).regroup(grouping)
    assert regrouped.metrics == evaluation.metrics


def test_an_evaluation_of_spans_without_the_name_of_its_extra_class_still_loads():
    """As version 0.1 wrote it."""
    data = json.loads(evaluate_spans(TRUE, PREDICTED).to_json())
    del data["none"]
    old = loads(json.dumps(data))
    assert old.none is None
    assert "multiclass/matthews_corrcoef" in old.metrics
