"""Names for people: short, but never alike."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cmtrack.evaluation import BUILT_IN
from cmtrack.names import as_sentence, distinct, elide, one_line, quoted


def test_names_keep_what_differs_and_lose_what_they_share():
    stem = "transformer-large-uncased-v3.2-2026-11-21"
    names = [f"{stem}-lr3e-5-bs64", f"{stem}-lr5e-5-bs64", f"{stem}-lr1e-4-bs64"]
    short = distinct(names, 30)
    assert len(set(short)) == 3
    assert max(map(len, short)) <= 30
    assert all(part in name for part, name in zip(["lr3e", "lr5e", "lr1e"], short, strict=True))


def test_what_differs_in_the_middle_is_kept_too():
    names = [
        f"Department {i % 4} — Subcategory of products number {i} (international)"
        for i in range(60)
    ]
    short = distinct(names, 28)
    assert len(set(short)) == 60
    assert max(map(len, short)) <= 28
    assert all(str(i) in name for i, name in enumerate(short))


def test_a_long_name_beside_a_short_one_leaves_the_short_one_alone():
    first, second, third = distinct(
        ["forest", "x" * 30 + "1" + "y" * 30, "x" * 30 + "2" + "y" * 30], 12
    )
    assert first == "forest"
    assert "1" in second
    assert "2" in third


def test_no_number_is_added_to_a_name():
    names = ["a" * 40 + "b" * 40, "a" * 41 + "b" * 39]
    assert not any(
        character.isdigit() or character in "[]"
        for name in distinct(names, 10)
        for character in name
    )


def test_names_with_commas_are_quoted():
    assert quoted("forest 100,\n labels only") == "“forest 100, labels only”"
    assert one_line(" a\tb\n") == "a b"
    assert elide("abcdefghij", 5) == "ab…ij"


def test_the_same_name_twice_stays_the_same():
    assert distinct(["seed 1", "seed 1"], 10) == ["seed 1", "seed 1"]


def test_a_width_that_holds_no_name_is_refused():
    with pytest.raises(ValueError, match="at least 3"):
        distinct(["a"], 2)


@given(st.lists(st.text("ab-_ 12…", max_size=30), max_size=8), st.integers(3, 12))
def test_different_names_stay_different(names, width):
    full = [one_line(name) for name in names]
    short = distinct(names, width)
    assert len(set(short)) == len(set(full))
    assert all(brief == name for brief, name in zip(short, full, strict=True) if len(name) <= width)


@given(st.lists(st.integers(0, 10**6), min_size=2, max_size=8, unique=True))
def test_names_that_differ_in_a_number_fit(numbers):
    names = [
        f"a rather long name of a run, number {number}, with a long ending of its own"
        for number in numbers
    ]
    short = distinct(names, 24)
    assert max(map(len, short)) <= 24
    assert all(str(number) in brief for number, brief in zip(numbers, short, strict=True))


@pytest.mark.parametrize(
    ("name", "full", "brief"),
    [
        ("class/7/recall", "recall of “7”", "recall of “7”"),
        ("reduced/two/a_u2f_b/f1", "F1 of “a/b” (“two”)", "F1 of “a/b” (“two”)"),
        ("reduced/two/f1_macro", "macro F1 (“two”)", "macro F1 (“two”)"),
        ("spcc/ovr/7", "correlation of “7” with its score (sPCC)", "sPCC of “7”"),
        ("binary/matthews_corrcoef", "Matthews correlation for positives", "MCC, positives"),
        ("prevalence/bias", "prevalence bias for positives", "prev. bias, positives"),
        ("prevalence/7/bias", "prevalence bias of “7”", "prev. bias of “7”"),
        (
            "multiclass/precision_macro_zero",
            "macro precision, undefined as 0",
            "macro precision (0)",
        ),
        ("multiclass/recall_weighted", "weighted recall", "weighted recall"),
    ],
)
def test_titles_are_those_of_the_declarations(name: str, full: str, brief: str) -> None:
    assert BUILT_IN.title(name, positive="positives") == full
    assert BUILT_IN.title(name, positive="positives", brief=True) == brief


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        ("classes “a” and “b” have few rows", "Classes “a” and “b” have few rows."),
        ("spcc/d_b has no upper limit", "spcc/d_b has no upper limit."),
        ("y_score: decision values rank rows", "y_score: decision values rank rows."),
        ("forest: compared without its rows", "forest: compared without its rows."),
        ("“4” is never predicted.", "“4” is never predicted."),
    ],
)
def test_a_message_next_to_sentences_is_a_sentence(message, sentence):
    assert as_sentence(message) == sentence
