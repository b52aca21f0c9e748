"""Sets of codes in families: the rules, the distributions, what adds up, and what is refused."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from sklearn.metrics import f1_score, precision_score, recall_score
from sklearn.preprocessing import MultiLabelBinarizer

from cmtrack import (
    Evaluation,
    FamilyEvaluation,
    Prefix,
    Tree,
    evaluate,
    evaluate_families,
    evaluate_family_levels,
)
from cmtrack.evaluation import loads
from cmtrack.metrics import CATALOG, lookup
from cmtrack.removed import RemovedFeature
from support.families import DOT, by_ten, codes, generated, of_figures

MATCHINGS = ("product", "row", "column", "balanced")


def cells(
    evaluation: FamilyEvaluation, matching: str | None = None
) -> dict[tuple[str, str], float]:
    """Non-zero cells (actual, predicted) of all families; OOF by family."""
    out = {}
    for family in evaluation.families:
        matrix = evaluation.matrix(family, matching)
        names = [*matrix.codes, f"OOF_{family}"]
        for i, j in zip(*np.nonzero(matrix.values), strict=True):
            out[names[i], names[j]] = matrix.values[i, j]
    return out


def displayed(text: str) -> dict[tuple[str, str], float]:
    """The source's display, ``predicted actual=value``, as (actual, predicted)."""
    out = {}
    for part in text.split(";"):
        pair, value = part.split("=")
        predicted, actual = (
            name if name.startswith("OOF") else f"36{name}" for name in pair.split()
        )
        out[actual, predicted] = float(value)
    return out


# -- the source's figures ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("figure", "matching", "expected"),
    [
        (1, "product", "4.00 4.00=1;4.02 4.02=1;4.03 4.01=1;4.04 4.01=1"),
        (1, "column", "4.00 4.00=1;4.02 4.02=1;4.03 4.01=.5;4.04 4.01=.5"),
        (
            1,
            "balanced",
            "4.00 4.00=1;4.02 4.02=1;4.03 4.01=.5;4.04 4.01=.5;4.03 OOF_364=.5;4.04 OOF_364=.5",
        ),
        (2, "product", "4.00 4.00=1;4.02 4.02=1;4.03 OOF_364=1;5.02 5.01=1"),
        (3, "product", "4.00 4.00=1;4.02 4.02=1;OOF_364 4.01=1"),
    ],
)
def test_the_figures_of_the_source(figure, matching, expected):
    assert cells(of_figures(figure), matching) == displayed(expected)


def test_the_right_panel_of_figure_2_leaves_the_first_assumption_out():
    found = cells(of_figures(2, remove_matches=False))
    assert found == displayed(
        "4.00 4.00=1;4.00 4.02=1;4.02 4.00=1;4.02 4.02=1;4.03 4.00=1;4.03 4.02=1;5.02 5.01=1"
    )


@pytest.fixture
def four() -> FamilyEvaluation:
    return of_figures(1, 2, 3, 4)


def test_the_sum_of_the_figures_with_a_fourth_document(four):
    assert cells(four) == displayed(
        "4.00 4.00=3;4.01 4.04=1;4.01 4.05=1;4.02 4.02=3;4.03 4.01=1;4.03 OOF_364=1;4.04 4.01=1;"
        "5.01 5.01=1;5.02 5.01=1;OOF_364 4.01=1"
    )
    assert cells(four, "balanced") == displayed(
        "4.00 4.00=3;4.01 4.04=.5;4.01 4.05=.5;4.02 4.02=3;4.03 4.01=.5;4.04 4.01=.5;4.03 OOF_364=1.5;4.04 OOF_364=.5;"
        "OOF_364 4.01=1;OOF_364 4.04=.5;OOF_364 4.05=.5;5.01 5.01=1;5.02 5.01=1"
    )


def test_the_distributions_of_the_sum(four):
    given_actual = four.distribution("364", "actual")
    assert [given_actual["364.01", c] for c in ("364.03", "364.04", "OOF")] == [0.25, 0.25, 0.5]
    reference = four.distribution("364", "actual", "reference")
    assert [reference["364.01", c] for c in ("364.03", "364.04", "OOF")] == pytest.approx(
        [1 / 3] * 3
    )
    given_predicted = four.distribution("364", "predicted")
    assert [given_predicted[c, "364.03"] for c in ("364.01", "OOF")] == [0.5, 0.5]


def test_a_matrix_says_which_axis_is_which(four):
    frame = four.matrix("364").to_frame()
    assert (frame.index.name, frame.columns.name) == ("actual", "predicted")
    assert list(frame.columns)[-1] == "OOF"
    assert frame.loc["364.01", "364.03"] == 1
    assert frame.loc["364.03", "364.01"] == 0


# -- brute force -------------------------------------------------------------------------------------------------

WEIGHTS = {
    "product": lambda a, b: 1.0,
    "row": lambda a, b: 1 / b,
    "column": lambda a, b: 1 / a,
    "balanced": lambda a, b: 1 / max(a, b),
}


def brute_force(actual, predicted, family_of, matching, remove=True):
    """The rules, document by document."""
    out: dict[tuple[object, object], float] = defaultdict(float)
    for held, called in zip(actual, predicted, strict=True):
        both = held & called if remove else set()
        for code in both:
            out[code, code] += 1
        for family in {family_of(c) for c in held | called}:
            x = [c for c in called - both if family_of(c) == family]
            y = [c for c in held - both if family_of(c) == family]
            a, b = len(x), len(y)
            if a and b:
                for one in x:
                    for other in y:
                        out[other, one] += WEIGHTS[matching](a, b)
            for one in x:
                out[f"OOF_{family}", one] += (
                    1.0 if not b else (1 - b / max(a, b)) * (matching == "balanced")
                )
            for other in y:
                out[other, f"OOF_{family}"] += (
                    1.0 if not a else (1 - a / max(a, b)) * (matching == "balanced")
                )
    return {cell: value for cell, value in out.items() if value > 1e-12}


documents = st.lists(
    st.tuples(st.sets(st.integers(0, 11), max_size=8), st.sets(st.integers(0, 11), max_size=8)),
    min_size=1,
    max_size=25,
).filter(lambda pairs: any(a or b for a, b in pairs))


def split(pairs):
    return [a for a, _ in pairs], [b for _, b in pairs]


def by_four(code: int) -> int:
    return code // 4


@pytest.mark.slow
@settings(max_examples=40)
@given(documents, st.sampled_from(MATCHINGS), st.booleans())
def test_all_matchings_are_the_rules_document_by_document(pairs, matching, remove):
    actual, predicted = split(pairs)
    found = cells(evaluate_families(actual, predicted, by_four, remove_matches=remove), matching)
    expected = brute_force(actual, predicted, by_four, matching, remove)
    assert found.keys() == expected.keys()
    assert found == pytest.approx(expected)


@pytest.mark.slow
def test_large_families_and_many_siblings_take_the_other_path():
    rng = np.random.default_rng(3)
    wide = [set(rng.choice(3000, rng.integers(0, 40), replace=False).tolist()) for _ in range(120)]
    called = [
        set(rng.choice(3000, rng.integers(0, 40), replace=False).tolist()) | set(list(s)[:9])
        for s in wide
    ]
    evaluation = evaluate_families(wide, called, lambda _: "all", codes=range(3000))
    for matching in MATCHINGS:
        assert cells(evaluation, matching) == pytest.approx(
            brute_force(wide, called, lambda _: "all", matching), abs=1e-7
        )  # shares of more than twenty siblings are rounded


@pytest.mark.slow
def test_documents_that_are_counted_in_several_blocks_are_the_sum_of_their_parts():
    """Two blocks of labels, and in the first of them two blocks of pairs."""
    rng = np.random.default_rng(0)
    actual, predicted = (
        [np.flatnonzero(row) for row in rng.random((45_000, 60)) < 0.17] for _ in range(2)
    )
    whole = evaluate_families(actual, predicted, lambda _: "all")
    parts = [
        evaluate_families(actual[k : k + 11_250], predicted[k : k + 11_250], lambda _: "all")
        for k in range(0, 45_000, 11_250)
    ]
    assert sum(parts).statistics == whole.statistics
    assert sum(parts).metrics == pytest.approx(whole.metrics, rel=1e-12)


# -- sums --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def example() -> tuple[list[set[int]], list[set[int]], FamilyEvaluation]:
    actual, predicted = generated(500)
    return actual, predicted, evaluate_families(actual, predicted, by_ten)


def test_margins_are_what_each_matching_preserves(example):
    actual, predicted, evaluation = example
    held = Counter(code for codes in actual for code in codes)
    called = Counter(code for codes in predicted for code in codes)
    for family in evaluation.families:
        own = evaluation.matrix(family).codes
        columns = {
            m: evaluation.matrix(family, m).values.sum(axis=0)[:-1] for m in ("row", "balanced")
        }
        rows = {
            m: evaluation.matrix(family, m).values.sum(axis=1)[:-1] for m in ("column", "balanced")
        }
        for sums in columns.values():
            np.testing.assert_allclose(sums, [called[c] for c in own], rtol=1e-9)
        for sums in rows.values():
            np.testing.assert_allclose(sums, [held[c] for c in own], rtol=1e-9)


def test_diagonals_of_the_distributions_are_precision_and_recall(example):
    actual, predicted, evaluation = example
    order = list(evaluation.codes)
    y, p = (MultiLabelBinarizer(classes=order).fit_transform(sets) for sets in (actual, predicted))
    precision = precision_score(y, p, average=None, zero_division=np.nan)
    recall = recall_score(y, p, average=None, zero_division=np.nan)
    for given_side, expected in (("predicted", precision), ("actual", recall)):
        found = [
            np.diag(evaluation.distribution(f, given_side).values)[:-1] for f in evaluation.families
        ]
        np.testing.assert_array_equal(np.concatenate(found), expected)
    table = evaluation.code_table()
    np.testing.assert_allclose(table["f1"], f1_score(y, p, average=None), rtol=1e-12)
    m = evaluation.metrics
    assert m["family/precision_micro"] == pytest.approx(precision_score(y, p, average="micro"))
    assert m["family/recall_micro"] == pytest.approx(recall_score(y, p, average="micro"))
    assert (
        m["family/f1_micro"]
        == m["family/match_share"]
        == pytest.approx(f1_score(y, p, average="micro"))
    )
    assert m["family/precision_macro"] == pytest.approx(np.nanmean(precision))
    assert m["family/recall_macro"] == pytest.approx(np.nanmean(recall))
    assert m["family/f1_macro"] == pytest.approx(f1_score(y, p, average="macro"))
    inside = [k for k, code in enumerate(order) if by_ten(code) == 2]
    assert m["family/2/f1_micro"] == pytest.approx(
        f1_score(y[:, inside], p[:, inside], average="micro")
    )
    assert m["family/2/support"] == y[:, inside].sum()


def test_distributions_and_shares_sum_to_one(example):
    evaluation = example[2]
    for family in evaluation.families:
        for normalization in ("mass", "reference"):
            columns = evaluation.distribution(family, "predicted", normalization).values.sum(
                axis=0
            )[:-1]
            rows = evaluation.distribution(family, "actual", normalization).values.sum(axis=1)[:-1]
            np.testing.assert_allclose(np.concatenate((columns, rows)), 1, rtol=1e-9)
    table, m = evaluation.code_table(), evaluation.metrics
    for side in ("predicted", "actual"):
        total = sum(table[f"{part}_given_{side}"] for part in ("match", "confused", "oof"))
        np.testing.assert_allclose(total, 1, rtol=1e-12)
    for prefix in ("family", "family/3"):
        parts = (m[f"{prefix}/{name}"] for name in ("match_share", "confusion_share", "oof_share"))
        assert sum(parts) == pytest.approx(1)
    assert m["family/precision_micro"] + m["family/confusion_share_predicted"] + m[
        "family/oof_share_predicted"
    ] == pytest.approx(1)


def test_hierarchical_measures_by_hand():
    # D1: P {364.00, 365.02} with ancestors {364.00, 364, 365.02, 365}; A {364.01, 365.02}; shared 364, 365.02, 365.
    # D2: P {364.00, 364.01}: 3 nodes; A {366.1}: 2 nodes; shared none.
    actual, predicted = [codes("4.01 5.02"), codes("6.1")], [codes("4.00 5.02"), codes("4.00 4.01")]
    m = evaluate_families(actual, predicted, DOT).metrics
    assert m["family/hierarchical_precision"] == pytest.approx(3 / 7)
    assert m["family/hierarchical_recall"] == pytest.approx(3 / 6)
    assert m["family/hierarchical_f1"] == pytest.approx(6 / 13)


PARENTS = {
    "eye": "ICD",
    "heart": "ICD",
    "iris": "eye",
    "lens": "eye",
    "valve": "heart",
    "364.0": "iris",
    "364.1": "iris",
    "366.0": "lens",
    "424.0": "valve",
    "424.1": "valve",
}


def test_levels_of_a_tree_and_its_hierarchical_measures():
    actual, predicted = [{"364.0", "424.0"}, {"iris"}], [{"366.0", "424.1"}, {"364.1"}]
    levels = evaluate_family_levels(actual, predicted, Tree(PARENTS), [0, 1, 2])
    assert levels[0].families == ("eye", "heart")  # the one root holds everything and is no family
    assert levels[1].families == ("iris", "lens", "valve")
    assert levels[1].family_of("iris") == "iris"
    assert levels[2].families == ("iris", "364.0", "364.1", "366.0", "424.0", "424.1")
    assert levels[0].metrics["family/oof_share"] == 0
    assert levels[1].metrics["family/confusion_share"] == pytest.approx(4 / 6)
    # nodes without the root: P {366.0, lens, eye, 424.1, valve, heart}, {364.1, iris, eye};
    # A {364.0, iris, eye, 424.0, valve, heart}, {iris, eye}; shared {eye, valve, heart}, {iris, eye}
    for evaluation in levels.values():
        assert evaluation.metrics["family/hierarchical_precision"] == pytest.approx(5 / 9)
        assert evaluation.metrics["family/hierarchical_recall"] == pytest.approx(5 / 8)
    assert evaluate_families(actual, predicted, Tree(PARENTS, level=1)) == levels[1]


# -- answers -----------------------------------------------------------------------------------------------------


def test_the_question_of_the_source_in_one_call(four):
    answer = four.given_predicted("364.03")
    assert (answer.right, answer.most_likely, answer.siblings, answer.outside) == (
        0,
        "364.01",
        (("364.01", 0.5),),
        0.5,
    )
    assert answer.documents == 2
    assert answer.too_few
    assert "too few" in str(answer)
    back = four.given_actual("364.01")
    assert back.siblings == (("364.03", 0.25), ("364.04", 0.25))
    assert back.right + back.confused + back.outside == 1
    assert len(back.to_frame()) == 4
    assert "most often confused with predicted “364.03” or “364.04” (each 25.0% [" in str(back)
    never = four.given_predicted("364.05")
    assert never.documents == 0
    assert math.isnan(never.right)
    assert str(never) == "“364.05” is predicted in no document."


def test_answers_have_wilson_intervals(example):
    answer = example[2].given_predicted(11)
    low, high = answer.right_interval
    z, n, p = 1.959963984540054, answer.documents, answer.right
    assert answer.too_few == (n < 20)
    assert (low + high) / 2 == pytest.approx((p + z * z / (2 * n)) / (1 + z * z / n))
    assert all(
        low <= share <= high
        for (_, share), (low, high) in zip(answer.siblings, answer.sibling_intervals, strict=True)
    )


# -- merging, order, storage -------------------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=20)
@given(documents, st.data())
def test_shards_of_documents_add_up_to_the_whole(pairs, data):
    cut = data.draw(st.integers(0, len(pairs)))
    declared = data.draw(st.sampled_from([None, range(12)]))
    parts = [
        part
        for part in (pairs[:cut], pairs[cut:])
        if part and (declared or any(a or b for a, b in part))
    ]
    if sum(map(len, parts)) != len(pairs):
        return  # documents without any code say nothing about the codes there are
    options = {"remove_matches": False, "codes": declared}
    whole = evaluate_families(*split(pairs), by_four, **options)
    merged = sum(evaluate_families(*split(part), by_four, **options) for part in parts)
    assert merged.statistics == whole.statistics
    np.testing.assert_equal(merged.metrics, whole.metrics)


def test_shards_with_other_options_are_refused():
    actual, predicted = generated(30)
    first = evaluate_families(actual, predicted, by_ten)
    with pytest.raises(ValueError, match="same matching"):
        first + evaluate_families(actual, predicted, by_ten, matching="row")
    with pytest.raises(ValueError, match="a code must have one family"):
        first + evaluate_families(actual, predicted, lambda c: c // 5)
    with pytest.raises(ValueError, match="'together'"):
        first + evaluate_families(actual, predicted, by_ten, remove_matches=False)
    with pytest.raises(TypeError):
        first + 1


def test_the_order_of_codes_changes_no_number(example):
    actual, predicted, evaluation = example
    order = np.random.default_rng(1).permutation(60).tolist()
    other = evaluate_families(actual, predicted, by_ten, codes=order)
    assert set(other.codes) == set(evaluation.codes)
    assert other.codes != evaluation.codes
    np.testing.assert_equal(other.metrics, pytest.approx(evaluation.metrics))
    for family in evaluation.families:
        mine, yours = (e.matrix(family, "balanced").to_frame() for e in (evaluation, other))
        pd.testing.assert_frame_equal(mine, yours.loc[mine.index, mine.columns])


def test_json_round_trip_and_kinds(example, tmp_path):
    evaluation = example[2]
    path = evaluation.save(tmp_path)
    assert path.name == "cmtrack_evaluation.json"
    loaded = FamilyEvaluation.load(tmp_path)
    assert loaded == evaluation
    np.testing.assert_equal(loaded.metrics, evaluation.metrics)
    assert loaded.intervals == evaluation.intervals
    assert loaded.warnings == evaluation.warnings
    together = of_figures(1, 2, remove_matches=False)
    together.save(tmp_path / "b")
    assert FamilyEvaluation.load(tmp_path / "b") == together
    with pytest.raises(
        ValueError,
        match=r"kind of this evaluation is 'families'.*FamilyEvaluation\.load to load it",
    ):
        Evaluation.load(tmp_path)
    evaluate([0, 1, 1], [0, 1, 0]).save(tmp_path / "c")
    with pytest.raises(
        ValueError, match=r"kind of this evaluation is 'classes'.*Evaluation\.load to load it"
    ):
        FamilyEvaluation.load(tmp_path / "c")


@pytest.mark.parametrize("number", ["Infinity", "NaN", "-1e999"])
def test_a_file_with_a_number_that_is_not_finite_is_refused(number):
    """It could be read, and not be written again."""
    text = of_figures(1).to_json()
    code = json.dumps(json.loads(text)["families"]["paths"][0][-1])
    with pytest.raises(ValueError, match=f"numbers in JSON must be finite, got {number}"):
        loads(text.replace(code, number))


def test_a_damaged_file_is_refused(tmp_path):
    path = of_figures(1, 2).save(tmp_path)
    data = json.loads(path.read_text())
    for change in (
        {"schema": 99},
        {"statistics": {}},
        {"families": {"paths": [[]], "level": 0, "chosen": False}},
    ):
        path.write_text(json.dumps(data | change))
        with pytest.raises(ValueError, match=r"schema|damaged"):
            FamilyEvaluation.load(path)
    path.write_text("no JSON")
    with pytest.raises(ValueError, match="not a cmtrack evaluation"):
        FamilyEvaluation.load(path)


def test_equality_and_texts(four):
    assert four == of_figures(1, 2, 3, 4)
    assert four != of_figures(1, 2, 3)
    assert repr(four).startswith("FamilyEvaluation(4 documents, 8 codes in 2 families")
    assert "family/f1_micro" in four._repr_html_()
    assert "364.01" in four.matrix("364")._repr_html_()
    assert four.to_frame()["metric"].tolist() == list(four.metrics)
    assert any("fewer than 20" in warning for warning in four.warnings)


# -- errors and intervals ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_standard_errors_are_those_of_documents():
    """The jackknife over documents, an independent way to the same error."""
    actual, predicted = generated(150, seed=7)
    evaluation = evaluate_families(actual, predicted, by_ten)
    names = [name for name in evaluation.standard_errors if name.count("/") == 1] + [
        "family/2/confusion_share"
    ]
    without = (
        evaluate_families(
            actual[:i] + actual[i + 1 :], predicted[:i] + predicted[i + 1 :], by_ten
        ).metrics
        for i in range(150)
    )
    left_out = np.array([[metrics[name] for name in names] for metrics in without])
    jackknife = np.sqrt(149 / 150 * ((left_out - left_out.mean(axis=0)) ** 2).sum(axis=0))
    for name, expected in zip(names, jackknife, strict=True):
        # a mean over codes is far from linear: some are in few documents
        near = 0.15 if "macro" in name else 0.02
        assert evaluation.standard_errors[name] == pytest.approx(expected, rel=near), name


def test_influence_values_give_the_standard_errors(example):
    evaluation = example[2]
    overall = [name for name in evaluation.standard_errors if name.count("/") == 1]
    assert len(overall) == 16
    for name in overall:
        psi = evaluation.influence(name)
        assert psi.mean() == pytest.approx(0, abs=1e-9)
        assert np.linalg.norm(psi) / len(psi) == pytest.approx(
            evaluation.standard_errors[name], rel=1e-9
        )
    assert evaluation.influence("family/2/f1_micro") is None
    with pytest.raises(ValueError, match="need rows"):
        (evaluation + evaluation).influence("family/f1_micro")


def test_errors_of_shards_are_near_those_of_the_whole():
    actual, predicted = generated(800, seed=2)
    whole = evaluate_families(actual, predicted, by_ten)
    parts = [
        evaluate_families(actual[i : i + 200], predicted[i : i + 200], by_ten)
        for i in range(0, 800, 200)
    ]
    merged = sum(parts)
    for name, error in whole.standard_errors.items():
        assert merged.standard_errors[name] == pytest.approx(error, rel=0.1), name


# -- forms of input ----------------------------------------------------------------------------------------------


def long_frame(sets):
    return pd.DataFrame(
        [(f"d{i:04}", code) for i, held in enumerate(sets) for code in sorted(held)],
        columns=["note", "icd"],
    )


def test_all_forms_of_input_give_the_same(example):
    pl = pytest.importorskip("polars")
    actual, predicted, evaluation = example
    binarizer = MultiLabelBinarizer(classes=range(60))
    y, p = (sp.csr_array(binarizer.fit_transform(sets)) for sets in (actual, predicted))
    ids = [f"d{i:04}" for i in range(len(actual))]
    columns = ("note", "icd")
    frames = {"columns": columns, "documents": ids}
    for found in (
        evaluate_families(binarizer.inverse_transform(y), binarizer.inverse_transform(p), by_ten),
        evaluate_families(
            [list(s) for s in actual], (np.array(sorted(s), int) for s in predicted), by_ten
        ),
        evaluate_families(actual, predicted, {code: code // 10 for code in range(60)}),
    ):
        assert found == evaluation
    named = evaluate_families(actual, predicted, by_ten, row_ids=ids)
    shuffled = long_frame(predicted).sample(frac=1, random_state=0)
    assert evaluate_families(long_frame(actual), shuffled, by_ten, **frames) == named
    polars = [pl.from_pandas(long_frame(sets)) for sets in (actual, predicted)]
    assert evaluate_families(*polars, by_ten, columns=columns, documents=pl.Series(ids)) == named


@pytest.mark.parametrize("matrix", [np.eye(2), sp.eye_array(2), sp.coo_matrix(np.eye(2))])
def test_an_indicator_matrix_is_refused_with_the_way_to_sets(matrix):
    for sides in ((matrix, matrix), ([{"a"}, {"b"}], matrix)):
        with pytest.raises(RemovedFeature, match=r"MultiLabelBinarizer\(classes=codes\)"):
            evaluate_families(*sides, DOT, codes=["a", "b"])


def test_documents_without_codes_count_only_where_they_are_named():
    frames = [
        pd.DataFrame({"document": [1, 3], "code": ["a.1", "a.2"]}),
        pd.DataFrame({"document": [1], "code": ["a.1"]}),
    ]
    counted = evaluate_families(*frames, DOT, documents=[1, 2, 3])
    assert counted.n_samples == 3
    assert not any("documents=" in warning for warning in counted.warnings)
    guessed = evaluate_families(*frames, DOT)
    assert guessed.n_samples == 2
    assert any("documents= was not given" in warning for warning in guessed.warnings)


def test_repeated_codes_count_once_and_are_told():
    found = evaluate_families([["a.1", "a.1", "a.2"], []], [["a.1"], ["b.1", "b.1", "b.1"]], DOT)
    assert found.metrics["family/recall_micro"] == 0.5
    assert [w for w in found.warnings if "more than once" in w] == [
        "1 code of y_true_sets occurs more than once in a document and counts once",
        "2 codes of y_pred_sets occur more than once in a document and count once",
    ]


def test_empty_sides_are_cases_of_their_own():
    nothing_predicted = evaluate_families([{"a.1"}, {"b.1"}], [set(), set()], DOT)
    assert nothing_predicted.metrics["family/recall_micro"] == 0
    assert math.isnan(nothing_predicted.metrics["family/precision_micro"])
    assert nothing_predicted.undefined["family/precision_micro"] == "no code was predicted"
    assert nothing_predicted.metrics["family/oof_share"] == 1
    nothing_held = evaluate_families([set()], [{"a.1"}], DOT)
    assert nothing_held.undefined["family/recall_micro"] == "no document has a code"
    assert nothing_held.undefined["family/recall_macro"] == "no code has a defined value"


def test_the_digest_is_of_the_actual_sets():
    actual, predicted = generated(40)
    first = evaluate_families(actual, predicted, by_ten)
    assert first.labels_digest == evaluate_families(actual, actual, by_ten).labels_digest
    assert first.labels_digest != evaluate_families(actual[::-1], predicted, by_ten).labels_digest
    assert (
        first.labels_digest
        != evaluate_families([*actual, set()], [*predicted, set()], by_ten).labels_digest
    )


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([{"a.1"}], [{"a.1"}, {"a.2"}], DOT), {}, "same documents, got 1 and 2"),
        (([], [], DOT), {}, "at least one document"),
        (([set()], [set()], DOT), {}, "1 empty documents; use codes= to declare"),
        ((["a.1"], ["a.1"], DOT), {}, "a set of codes per document, got 'a.1' for document 0"),
        (("a.1", "a.1", DOT), {}, "a set of codes per document"),
        (([{None}], [{"a"}], DOT), {}, "missing"),
        (([{"a"}], [{"b"}], {"a": 1}), {}, r"1 have none: \['b'\]"),
        (([{"a"}], [{"b"}], Tree({"a": "x"})), {}, r"1 have none: \['b'\]"),
        (([{"a"}], [{"b"}], 7), {}, "must be a mapping"),
        (
            ([{"a"}], [{"b"}], DOT),
            {"codes": ["a"]},
            r"codes must include all of y_pred_sets, got none for \['b'\]",
        ),
        (([{"a"}], [{"b"}], DOT), {"codes": ["a", "a", "b"]}, "must not repeat, got 'a'"),
        (([{"a", 1}], [{"b"}], lambda _: 0), {}, "one type"),
        (([{1, "1"}], [{1}], lambda _: 0), {"codes": [1, "1"]}, "differ as strings"),
        (([{"a"}], [{"b"}], DOT), {"matching": "best"}, "one of .*'balanced'"),
        (([{"a"}], [{"b"}], DOT), {"confidence_level": 1}, "between 0 and 1"),
        (([{"a"}], [{"b"}], DOT), {"documents": [1]}, "documents= needs long frames"),
        (([{"a"}], [{"b"}], DOT), {"row_ids": [1, 2]}, "one entry per row"),
        (([{"a"}], pd.DataFrame({"x": [1]}), DOT), {}, "must both be long frames"),
        ((pd.DataFrame({"x": [1]}), pd.DataFrame({"x": [1]}), DOT), {}, "columns= names them"),
    ],
)
def test_bad_input_is_told_with_rule_and_value(arguments, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        evaluate_families(*arguments, **options)


def test_bad_frames_families_and_names(four):
    frame = pd.DataFrame({"document": [1], "code": ["a"]})
    with pytest.raises(ValueError, match=r"documents must include all of .*, such as \[1\]"):
        evaluate_families(frame, frame, DOT, documents=[2])
    with pytest.raises(ValueError, match="must not repeat, got 2"):
        evaluate_families(frame, frame, DOT, documents=[2, 2, 1])
    with pytest.raises(ValueError, match="pass either row_ids or documents"):
        evaluate_families(frame, frame, DOT, documents=[1], row_ids=[1])
    with pytest.raises(ValueError, match="its own ancestor"):
        evaluate_families([{"a"}], [{"a"}], Tree({"a": "b", "b": "a"}))
    for wrong in ({"separator": ".", "length": 3}, {}, {"separator": ""}, {"length": 0}):
        with pytest.raises(ValueError, match="refix"):
            Prefix(**wrong)
    for wrong in (-1, 0.5):
        with pytest.raises(ValueError, match="level must be a whole number"):
            Tree({"a": "b"}, level=wrong)
    with pytest.raises(TypeError, match="tree must be a Tree"):
        evaluate_family_levels([{"a"}], [{"a"}], DOT, [0])
    for action in (
        lambda: four.matrix("9"),
        lambda: four.given_predicted("9"),
        lambda: four.family_of("9"),
    ):
        with pytest.raises(KeyError, match="named '9'"):
            action()
    with pytest.raises(ValueError, match="matching must be one of"):
        four.matrix("364", "best")
    with pytest.raises(ValueError, match="given must be"):
        four.distribution("364", "gold")
    with pytest.raises(ValueError, match="normalization must be"):
        four.distribution("364", "actual", "rows")
    with pytest.raises(KeyError, match="has no code"):
        four.matrix("364")["364.00", "1"]


def test_codes_without_a_family_may_be_given_one():
    found = evaluate_families([{"a", "x"}], [{"a", "y"}], {"a": "A"}, unassigned="other")
    assert found.families == ("A", "other")
    assert found.matrix("other")["x", "y"] == 1


def test_prefixes():
    assert [DOT(c) for c in ("364.01", "042", "V45.8.1")] == ["364", "042", "V45"]
    assert [Prefix(length=3)(c) for c in ("36401", "42", 36401)] == ["364", "42", "364"]


def test_every_metric_of_label_sets_is_computed(example):
    computed = {lookup(name).name for name in example[2].metrics}
    assert computed == {metric.name for metric in CATALOG if metric.needs == "label sets"}


def test_ranges_hold_and_better_predictions_do_better():
    actual = generated(300)[0]
    found = [
        evaluate_families(actual, generated(300, right=right)[1], by_ten).metrics
        for right in (0.3, 0.9)
    ]
    for name, value in found[0].items():
        metric = lookup(name)
        assert metric.low <= value <= metric.high
        if metric.better and name.count("/") == 1 and not name.startswith("family/confusion"):
            assert (found[1][name] > value) == (metric.better == "higher"), name


def test_a_kind_of_a_later_version_is_refused():
    with pytest.raises(
        ValueError,
        match=r"the kind of the evaluation is 'trees', but this version reads only \['classes', 'families'\]",
    ):
        loads(json.dumps({"schema": 1, "kind": "trees"}))
    assert isinstance(loads(of_figures(1).to_json()), FamilyEvaluation)
    assert isinstance(loads(evaluate([0, 1, 1], [0, 1, 0]).to_json()), Evaluation)


ARXIV = [["gr-qc"], ["math.AP"]], [["gr-qc"], ["math.CO"]]
TREE = Tree({"math.AP": "math", "math.CO": "math", "gr-qc": "root", "math": "root"}, level=1)


@pytest.mark.parametrize(
    "rule",
    [
        Prefix(separator="."),
        lambda code: code.split(".")[0],
        {"gr-qc": "gr-qc", "math.AP": "math", "math.CO": "math"},
    ],
    ids=["prefix", "function", "mapping"],
)
def test_a_code_that_is_its_own_family_is_one_node(rule):
    """By Kiritchenko: {gr-qc} and {gr-qc}, {math, math.AP} and {math, math.CO}: 2 of 3 nodes are shared."""
    found = evaluate_families(*ARXIV, rule).metrics
    for name in ("hierarchical_precision", "hierarchical_recall", "hierarchical_f1"):
        assert found[f"family/{name}"] == pytest.approx(2 / 3)
        assert found[f"family/{name}"] == evaluate_families(*ARXIV, TREE).metrics[f"family/{name}"]


def test_whole_numbers_that_are_their_own_family_are_one_node():
    codes = [["486"], ["4861"]], [["486"], ["4862"]]
    assert evaluate_families(*codes, Prefix(length=3)).metrics[
        "family/hierarchical_f1"
    ] == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("actual", "predicted"), [(["A1", "B2"], ["A1", "A2"]), (["A1", "B2", "B3"], ["A1", "A2"])]
)
def test_one_document_gives_no_interval(actual, predicted):
    """The hierarchical F1 had one of a width of 3e-8: the root of a rounding error."""
    found = evaluate_families([actual], [predicted], families=lambda code: code[0])
    assert {name for name in found.standard_errors if found.standard_errors[name] != 0} == set()
    assert not {name for name in found.intervals if not name.endswith("support")}
