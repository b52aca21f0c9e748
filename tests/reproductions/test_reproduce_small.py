"""Three small sources, reproduced: kappa, family-wise confusion, rough sets."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from discharge_codes import published as codes_published
from discharge_codes.cells import by_the_rules, cells_of, within_families
from discharge_codes.laws import FamilyLaw, all_codes, draw_actual, draw_predicted
from discharge_codes.models import MISSES, MIXES_UP
from discharge_codes.recovery import recovered, recovered_metrics, simulated
from discharge_codes.truth import joint, true_answers
from kappa import published as kappa_published
from kappa.margins import by_chance, extreme, on_the_way
from kappa.ratings import chance_terms, expanded, readings, splits
from rough.claims import MAJORITY_ONLY, PRINTED_WRONG, checked
from rough.example import partition
from rough.printed import alpha_as_printed, middle_of_3_6
from rough.random_tables import KINDS, random_classifier, random_table, table_of
from support.reproductions import run_fast

pytestmark = pytest.mark.slow

OUTCOMES = {
    "kappa_article": {
        "Table of 74 dishes",
        "Houses: accuracy, macro recall, values of each house",
        "Recall",
        "Macro F1",
        "Kappa example",
        "Worst case of kappa",
        "MCC for several classes",
        "Intervals",
    },
    "family_confusion": {
        "Figure 1",
        "Figure 2",
        "Figure 3",
        "Examples of assumptions 2 and 3",
        "Counting of several mismatches",
        "Given a predicted code; given a gold code",
        "Intervals of the answers",
        "1-to-1 correspondence",
    },
    "duntsch_gediga_2019": {
        "Tables 1, 2, 4",
        "Table 3, Example 1: partition",
        "Table 5",
        "Table 6",
        "Table 7",
        "Example 1: success ratio and gamma",
        "eq. 3.3",
        "eq. 3.4",
        "eq. 3.5",
        "eq. 3.6",
        "Bounds after Example 1",
        "Lemma 4.1",
        "Condition 4.1: predicted classes",
        "Theorem 4.1",
        "Theorem 4.2",
        "Theorem 4.3",
        "Theorem 4.4",
    },
}
RUNS = {
    "kappa_article": {
        "the chefs' table",
        "the chefs' table, other reading",
        "two raters who always disagree",
    },
    "family_confusion": {
        "mixes up siblings",
        "misses and invents",
        "three codes of the family at once",
    },
    "duntsch_gediga_2019": {"Example 1", "Example 1 as printed"},
}


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """The folder of all three fast runs, and what each said on stderr."""
    folder = tmp_path_factory.mktemp("small")
    said = {name: run_fast(name, folder).stderr for name in OUTCOMES}
    return folder, said


def _table(reproduced: tuple[Path, dict[str, str]], script: str, name: str) -> pd.DataFrame:
    return pd.read_csv(reproduced[0] / "reports" / script / f"{name}.csv")


@pytest.mark.parametrize("script", OUTCOMES)
def test_the_report_is_complete(script: str, reproduced: tuple[Path, dict[str, str]]) -> None:
    folder = reproduced[0] / "reports" / script
    found = json.loads((folder / "outcomes.json").read_text(encoding="utf-8"))
    outcomes = found["outcomes"] if isinstance(found, dict) else found
    assert {row["item"] for row in outcomes} == OUTCOMES[script]
    assert all(row["near"] and row["reproduced"] for row in outcomes)
    report = (folder / "report.md").read_text(encoding="utf-8")
    figures = re.findall(r"\]\((\w+\.png)\)", report)
    assert len(figures) == len(set(figures)) >= 4
    assert all((folder / name).stat().st_size > 5000 for name in figures)
    assert not re.search(r"/(tmp|home|work|root|private|Users)/", report)
    assert str(reproduced[0]) not in report
    assert "nan" not in re.findall(r"\b\w+\b", report)
    assert "Warning" not in reproduced[1][script]


@pytest.mark.parametrize("script", RUNS)
def test_evaluations_are_tracked(script: str, reproduced: tuple[Path, dict[str, str]]) -> None:
    from mlflow import MlflowClient

    client = MlflowClient(f"sqlite:///{(reproduced[0] / 'mlflow.db').as_posix()}")
    experiment = client.get_experiment_by_name(script)
    runs = {run.info.run_name: run for run in client.search_runs([experiment.experiment_id])}
    assert set(runs) == RUNS[script] | {"report"}
    for name in RUNS[script]:
        assert runs[name].data.tags["cmtrack.status"] == "completed"
        assert runs[name].data.params
    if script == "kappa_article":
        assert runs["two raters who always disagree"].data.metrics["multiclass/cohen_kappa"] == -1
    if script == "duntsch_gediga_2019":
        assert runs["Example 1"].data.metrics["rough/gamma"] == pytest.approx(4 / 6)
        assert runs["Example 1 as printed"].data.metrics["rough/gamma"] == 1


# -- kappa ---------------------------------------------------------------------------------------------------------


def test_kappa_of_the_chefs_is_the_fraction_by_hand(
    reproduced: tuple[Path, dict[str, str]],
) -> None:
    frame = _table(reproduced, "kappa_article", "kappa").set_index("number")
    chance = Fraction(15 * 10 + 39 * 41 + 20 * 23, 74 * 74)
    kappa = (Fraction(55, 74) - chance) / (1 - chance)
    assert frame.loc["chance agreement p_e", "ours"] == pytest.approx(float(chance), abs=1e-12)
    assert frame.loc["kappa", "ours"] == pytest.approx(float(kappa), abs=1e-12)
    assert float(kappa) == pytest.approx(0.5696357515, abs=1e-10)
    marked = frame.index[frame["ours (published)"].str.contains("†")]
    assert set(marked) == {"ChanceB(Exquisite)", "Chance(Exquisite)", "Chance(No)", "kappa"}


def test_two_readings_of_the_digits_have_the_total_and_one_the_kappa(
    reproduced: tuple[Path, dict[str, str]],
) -> None:
    frame = _table(reproduced, "kappa_article", "readings")
    assert len(frame) == 9
    assert frame.loc[frame["dishes"] == 74, "kappa"].round(6).tolist() == [0.569636, 0.362259]
    (first, *_), totals = (
        splits("2325", 3),
        [int(table.sum()) for table in readings(kappa_published.DIGITS)],
    )
    assert first == (2, 3, 25)
    assert totals.count(74) == 2
    assert splits("105", 2) == [(10, 5)]  # 1 and 05 is no reading


def test_kappa_reaches_minus_one_and_chance_is_zero(
    reproduced: tuple[Path, dict[str, str]],
) -> None:
    frame = _table(reproduced, "kappa_article", "range").set_index("margins")
    assert frame.loc["two classes, half each", ["least kappa", "most kappa"]].tolist() == [-1, 1]
    assert (frame["least kappa"] >= frame["−p_e / (1 − p_e)"] - 1e-12).all()
    coefficients = _table(reproduced, "kappa_article", "coefficients").set_index("table")
    assert coefficients["cohen_kappa"].iloc[:2].nunique() == 1
    assert (coefficients["cohen_kappa"] <= coefficients["matthews_corrcoef"]).all()
    f1 = _table(reproduced, "kappa_article", "macro_f1")["value"]
    assert f1.iloc[0] < f1.iloc[1]


def test_extreme_tables_have_the_margins_and_the_least_diagonal() -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        counts = rng.integers(0, 6, (2, 2)) + 1
        rows, columns = counts.sum(axis=1), counts.sum(axis=0)
        diagonals = [  # all 2 x 2 tables with these margins
            2 * a + int(columns[1] - rows[0])
            for a in range(int(rows.max()) + 1)
            if min(a, rows[0] - a, columns[0] - a, columns[1] - rows[0] + a) >= 0
        ]
        for most, best in ((False, min(diagonals)), (True, max(diagonals))):
            found = extreme(counts, most=most)
            assert (found.sum(axis=1) == rows).all()
            assert (found.sum(axis=0) == columns).all()
            assert np.trace(found) == best
    chefs = readings(kappa_published.DIGITS)[0]
    for maker in (by_chance, on_the_way):
        found = maker(chefs, rng)
        assert (found.sum(axis=1) == chefs.sum(axis=1)).all()
        assert (found.sum(axis=0) == chefs.sum(axis=0)).all()
    agreement = np.mean([np.trace(by_chance(chefs, rng)) / chefs.sum() for _ in range(2000)])
    assert agreement == pytest.approx(chance_terms(chefs).sum(), abs=0.005)


def test_expanded_labels_are_counted_back() -> None:
    actual, predicted = expanded([[2, 1], [0, 3]], ("a", "b"))
    assert (
        list(zip(actual, predicted, strict=True))
        == [("a", "a")] * 2 + [("a", "b")] + [("b", "b")] * 3
    )


# -- families ------------------------------------------------------------------------------------------------------


def _by_hand(predicted: tuple[str, ...], gold: tuple[str, ...]) -> set[tuple[str, str]]:
    """The three assumptions, written out."""
    cells = {(code, code) for code in set(predicted) & set(gold)}
    left, right = sorted(set(predicted) - set(gold)), sorted(set(gold) - set(predicted))
    for family in {code.split(".")[0] for code in (*left, *right)}:
        mine = [code for code in left if code.startswith(family)] or ["OOF"]
        theirs = [code for code in right if code.startswith(family)] or ["OOF"]
        cells |= set(product(mine, theirs))
    return cells


@pytest.mark.parametrize("name", [*codes_published.FIGURES, *codes_published.WORDS])
def test_published_documents_follow_the_rules(name: str) -> None:
    example = (codes_published.FIGURES | codes_published.WORDS)[name]
    ours = cells_of(by_the_rules(example.predicted, example.gold))
    assert ours == _by_hand(example.predicted, example.gold)
    assert (ours == example.cells) == (name != "Figure 2")
    if example.everything is not None:
        assert example.everything == set(product(example.predicted, example.gold))
    if name == "Figure 2":
        assert cells_of(within_families(example.predicted, example.gold)) == example.cells
        assert ours - example.cells == {("364.03", "OOF")}


def test_product_counts_change_the_share_out_of_family(
    reproduced: tuple[Path, dict[str, str]],
) -> None:
    shares = _table(reproduced, "family_confusion", "shares").set_index("given actual 364.01")
    assert shares["OOF"].tolist() == pytest.approx([1 / 2, 1 / 3])
    margins = _table(reproduced, "family_confusion", "margins")
    assert (margins["balanced"] == margins["documents"]).all()
    assert not (margins["product"] == margins["documents"]).all()


def test_known_confusions_are_recovered(reproduced: tuple[Path, dict[str, str]]) -> None:
    frame = _table(reproduced, "family_confusion", "recovered_all")
    assert len(frame) == len(true_answers(MIXES_UP)) + len(true_answers(MISSES))
    assert frame["contained"].mean() > 0.9
    assert (frame["low"] <= frame["estimate"]).all()
    assert (frame["estimate"] <= frame["high"]).all()
    coverage = _table(reproduced, "family_confusion", "coverage")
    assert coverage["coverage"].between(0.9, 1).all()
    several = _table(reproduced, "family_confusion", "several").set_index(["at_once", "outcome"])[
        "estimate"
    ]
    assert several[1, "a sibling"] > several[2, "a sibling"] > several[3, "a sibling"]
    assert several[1, "right"] < several[3, "right"]
    diagonals = _table(reproduced, "family_confusion", "diagonals")
    assert diagonals["recall"].to_numpy() == pytest.approx(
        diagonals["weight 1 (product default)"].to_numpy()
    )
    assert (diagonals["recall"] > diagonals["product counts (authors' code)"]).any()


@pytest.mark.parametrize("laws", [MIXES_UP, MISSES])
def test_the_truth_of_a_law_is_what_many_documents_show(laws: tuple[FamilyLaw, ...]) -> None:
    assert true_answers(laws).groupby(["given", "code"])["true"].sum().to_numpy() == pytest.approx(
        1
    )
    documents = 60_000
    evaluation = simulated(laws, documents, np.random.default_rng(11))
    frame = recovered(laws, evaluation)
    error = np.sqrt(frame["true"] * (1 - frame["true"]) / frame["documents"])
    assert ((frame["estimate"] - frame["true"]).abs() < 4.5 * error).all()
    overall = recovered_metrics(laws, evaluation)
    assert ((overall["estimate"] - overall["true"]).abs() < 0.006).all()


def test_documents_are_drawn_by_the_law() -> None:
    rng, documents = np.random.default_rng(3), 40_000
    actual = draw_actual(MIXES_UP, documents, rng)
    predicted = draw_predicted(MIXES_UP, actual, rng)
    assert actual.shape == predicted.shape == (documents, len(all_codes(MIXES_UP)))
    first = MIXES_UP[0]
    size = len(first.codes)
    assert actual[:, :size].sum(axis=1).max() == 1
    assert actual[:, :size].mean(axis=0) == pytest.approx(
        first.presence * np.array(first.frequency), abs=0.008
    )
    assert predicted[:, :size].mean(axis=0) == pytest.approx(
        joint(first)[:, :size].sum(axis=0), abs=0.008
    )
    both = predicted[:, 2] & predicted[:, 3]  # 364.03 beside 364.02 only where the latter is right
    assert both.any()
    assert actual[both, 2].all()
    assert draw_actual(MIXES_UP[:1], 100, rng, at_once=3).sum(axis=1).max() == 3
    with pytest.raises(ValueError, match="must not exceed 1"):
        FamilyLaw(("a", "b"), 0.5, (0.5, 0.5), (0.9, 0.5), confused={("a", "b"): 0.2})
    with pytest.raises(ValueError, match="sum to 1"):
        FamilyLaw(("a", "b"), 0.5, (0.5, 0.6), (0.9, 0.5))


# -- rough sets ----------------------------------------------------------------------------------------------------


def test_only_price_and_sound_give_the_published_partition(
    reproduced: tuple[Path, dict[str, str]],
) -> None:
    frame = _table(reproduced, "duntsch_gediga_2019", "partitions")
    assert len(frame) == 15
    assert frame.loc[frame["as published"] == "yes", "attributes"].tolist() == ["Price, Sound"]
    assert partition(["Price", "Screen"]) == ((1,), (2,), (3,), (4, 5), (6,))


@pytest.mark.parametrize(("number", "cells"), [(5, 15), (6, 15), (7, 9)])
def test_published_tables_come_out(
    number: int, cells: int, reproduced: tuple[Path, dict[str, str]]
) -> None:
    text = (
        _table(reproduced, "duntsch_gediga_2019", f"table{number}")
        .iloc[:, 1:]
        .to_numpy()
        .ravel()
        .tolist()
    )
    found = [re.fullmatch(r"(\d+) \((\d+)\)", cell) for cell in text]
    assert len(found) == cells
    assert all(match is not None and match[1] == match[2] for match in found)


def test_the_weights_of_equation_3_5_are_wrong(reproduced: tuple[Path, dict[str, str]]) -> None:
    n = [[3, 1], [0, 2]]
    assert alpha_as_printed(n) == pytest.approx(
        float((7 * Fraction(3, 4) + 5 * Fraction(2, 3)) / 7)
    )
    assert middle_of_3_6(n) == pytest.approx(5 / 7)
    frame = _table(reproduced, "duntsch_gediga_2019", "equations").astype({"equation": str})
    frame = frame.set_index(["equation", "side"])["holds"]
    assert frame["3.5", "as printed, weights n_i. + n_.i"] == "no"
    assert frame["3.5", "weights n_i. + n_.i - n_ii"] == "yes"
    assert frame["3.6", "g / (2 - g), g the accuracy"] == "yes"
    assert frame["3.6", "gamma / (2 - gamma), gamma of 3.3"] == "no"


def test_bounds_hold_under_the_condition_and_fail_without_it(
    reproduced: tuple[Path, dict[str, str]],
) -> None:
    frame = _table(reproduced, "duntsch_gediga_2019", "claims").set_index("claim")
    right = frame.drop(index=list(PRINTED_WRONG))
    assert (right[list(KINDS[:2])].astype(int) == 0).all(axis=None)
    assert (frame.loc[list(PRINTED_WRONG), KINDS[0]].astype(int) > 0).all()
    for claim in (
        "Theorem 4.1: nl <= nl**",
        "Theorem 4.2: nu** <= nu",
        "Lemma 4.1 (iii)",
        "section 3: nl_i <= n_ii",
    ):
        assert int(frame.loc[claim, KINDS[2]]) > 0
    assert set(frame.index[frame[KINDS[2]] == "–"]) == set(MAJORITY_ONLY)
    counter = _table(reproduced, "duntsch_gediga_2019", "counterexample").set_index("class")
    assert counter.loc["Y_1", ["n_i. + n_.i - n_ii", "nu_i"]].tolist() == [8, 6]
    assert counter.loc["Y_2", ["nl_i", "n_ii"]].tolist() == [4, 2]


def test_claims_are_checked_on_what_they_speak_of() -> None:
    broken = checked(table_of([[0, 4], [3, 0], [1, 2]]), ("Y_1", "Y_1", "Y_2"))
    fails = {claim for claim, holds in broken.items() if not holds} - set(PRINTED_WRONG)
    assert "after Example 1, corrected: n_i. + n_.i - n_ii <= nu_i" in fails
    assert "Lemma 4.1 (i)" in fails
    assert "Theorem 4.1: nl* <= |Y|" not in fails
    example = checked(table_of([[1, 1], [0, 1], [0, 1], [2, 0]]), ("Y_1", "Y_2", "Y_2", "Y_1"))
    assert set(MAJORITY_ONLY) <= set(example)
    assert {claim for claim, holds in example.items() if not holds} <= set(PRINTED_WRONG)


def test_random_classifiers_keep_or_break_the_condition() -> None:
    rng = np.random.default_rng(8)
    broken = 0
    for _ in range(60):
        table = random_table(rng)
        for kind in KINDS:
            classifier = random_classifier(table, kind, rng)
            if classifier is None:
                assert kind == KINDS[2]
                assert table.counts.all()
                continue
            own = [
                row[table.labels.index(label)]
                for row, label in zip(table.counts, classifier, strict=True)
            ]
            assert all(own) == (kind != KINDS[2])
            broken += kind == KINDS[2]
            if kind == KINDS[1]:
                assert own == table.counts.max(axis=1).tolist()
    assert broken > 30
