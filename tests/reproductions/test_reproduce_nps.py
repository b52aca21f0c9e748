"""The reproduction of Markoulidakis et al. (2021): its parts, and its fast mode as a whole."""

from __future__ import annotations

import json
import math
import re
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr
from sklearn.metrics import precision_score

from support import ROOT
from support.reproductions import FastRun, run_fast

pytest.importorskip("statsmodels")
pytest.importorskip("sklearn", minversion="1.6")

from cmtrack import Grouping, evaluate
from nps import algorithms, formulas, party, published, recomputed, separable
from nps.algorithms import Size, fitted, parameter_table, probabilities
from nps.network import ConvolutionalClassifier, has_torch
from nps.reductions import NPS, ROWS_8, STEP_1, STEP_2, expanded
from nps.survey import ROWS, Market, Split
from nps.trials import Trial, by_group, judge, precision_with_zeros

pytestmark = pytest.mark.slow

NAME = "markoulidakis_2021"
ITEMS = {
    "Sections 5.1, 5.2 (data, split)",
    "Tables A1-A7 (parameters)",
    "Table 1, Figures 1-5 (groupings, layout)",
    "Tables 2-5 (formulas)",
    "eq. 19",
    "eq. 20",
    "eq. 27",
    "eq. 28",
    "eq. A10",
    "eqs. 21-23",
    "eqs. 33-36",
    "eqs. 37-42",
    "Table 6",
    "Table 7",
    "Table 8",
    "Table 8, logistic regression",
    "Figure 6",
    "Figure 7",
    "Figure 8",
    "Figure 9",
    "Figure 10",
    "Sections 5.4, 6 (ranking of the algorithms)",
    "Section 5 on real answers",
}
HERE = [name for name in published.ALGORITHMS if name != "CNN" or has_torch()]
SMALL = Size(trees=5, epochs=3)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> FastRun:
    return run_fast(NAME, tmp_path_factory.mktemp("nps"))


@pytest.fixture(scope="module")
def split() -> Split:
    return Market().split(1000, 3)


@pytest.fixture(scope="module")
def trial(split: Split) -> Trial:
    return judge(split, NPS, 3, SMALL)


# -- the fast mode as a whole ------------------------------------------------------------------------------


def test_every_published_item_has_an_outcome(run: FastRun) -> None:
    outcomes = json.loads((run.folder / "outcomes.json").read_text(encoding="utf-8"))
    assert {row["item"] for row in outcomes["outcomes"]} == ITEMS
    assert outcomes["mode"] == "fast"
    assert all(row["near"] and "nan" not in row["near"] for row in outcomes["outcomes"])


def test_the_report_shows_its_figures_and_no_paths(run: FastRun) -> None:
    text = (run.folder / "report.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"\]\((\w+\.png)\)", text))
    assert {f"figure_{k}.png" for k in ("6a", "6b", "7", "7_published", "8", "9", "10")} <= shown
    assert shown == {path.name for path in run.folder.glob("*.png")}
    assert all((run.folder / name).stat().st_size > 10_000 for name in shown)
    for file in run.folder.glob("*.md"):
        assert str(ROOT) not in file.read_text(encoding="utf-8")
        assert str(run.folder) not in file.read_text(encoding="utf-8")
    assert "Warning" not in run.stderr
    assert "Traceback" not in run.stderr


def test_every_algorithm_is_a_run(run: FastRun) -> None:
    from mlflow import MlflowClient

    client = MlflowClient(run.store)
    runs = client.search_runs([client.get_experiment_by_name(NAME).experiment_id])
    names = {r.info.run_name: r for r in runs}
    assert set(HERE) | {f"ANES 1996: {name}" for name in HERE} | {
        "published Figure 7",
        "report",
    } == set(names)
    (review,) = client.search_runs(
        [client.get_experiment_by_name(f"{NAME}: reviews").experiment_id]
    )
    assert review.info.run_name == "review"
    for name in HERE:
        data = names[name].data
        assert data.tags["cmtrack.status"] == "completed"
        assert data.params["repeats"] == "2"
        assert 0 < data.metrics["mean/binary/recall"] < 1
        assert data.metrics["sd/binary/recall"] >= 0
    seven = names["published Figure 7"].data.metrics
    assert seven["binary/matthews_corrcoef"] == pytest.approx(0.3901675441, abs=1e-9)


def test_all_tables_have_all_algorithms(run: FastRun) -> None:
    for name, known in (
        ("table_6", published.TABLE_6),
        ("table_7", published.TABLE_7),
        ("table_8", published.TABLE_8),
    ):
        table = run.table(name, 0)
        assert list(table.columns) == HERE
        assert set(known.index) <= set(table.index)
        for row in known.index:
            for column in HERE:
                assert f"({known.loc[row, column]:.2f})" in table.loc[row, column]
    assert list(run.table("anes_1", 0).columns) == HERE


def test_counter_examples_in_the_report(run: FastRun) -> None:
    table = pd.read_csv(run.folder / "equations.csv")
    pairs = {(r.equation, r.on): (r.printed, r.right) for r in table.itertuples()}
    assert pairs["eq. 19", "Figure 7"] == (150, 273)
    assert pairs["eq. 20", "Figure 7"] == (273, 150)
    assert pairs["eq. 27", "Figure 7"] == (176, 26)
    assert pairs["eq. 28", "the 4 x 4 example"] == pytest.approx((0.580563, 0.693095), abs=1e-6)
    assert pairs["eq. A10", "the 4 x 4 example"] == pytest.approx((0.564205, 0.693095), abs=1e-6)
    assert pairs["eq. A10", "Figure 7"] == pytest.approx((0.483813, 0.390168), abs=1e-6)
    assert pairs["Figure 4, total", "Figure 7"] == (659, 509)


# -- what is published -------------------------------------------------------------------------------------


def test_figure_7_is_consistent() -> None:
    known = expanded(published.FIGURE_7)
    assert known.n_samples == 509
    assert known.binary is not None
    assert known.binary._asdict() == published.FIGURE_7_BINARY
    # a strict step keeps it
    assert published.TABLE_8.loc["Accuracy"].equals(published.TABLE_7.loc["Accuracy"])


def test_table_8_of_the_regression_by_hand() -> None:
    table = recomputed.table_8(expanded(published.FIGURE_7))
    hand = {
        "Accuracy": 293 / 509, "Precision": 273 / 483, "Recall": 273 / 429, "F1-Score": 546 / 912,
        "Specificity": 20 / 80, "Miss Rate": 6 / 429, "Negative Predictive Value": 20 / 26, "Fall Out Rate": 60 / 80,
        "False Discovery Rate": 60 / 483, "False Omission Rate": 6 / 26,
        "Fowlkes-Mallows index": 273 / math.sqrt(429 * 483),
        "Mathews Correlation Coefficient": (423 * 20 - 6 * 60) / math.sqrt(429 * 483 * 80 * 26),
        "PIMR": 150 / 429, "PPIMR": 150 / 483,
    }  # fmt: skip
    assert dict(table["correct"]) == pytest.approx(hand, abs=1e-12)
    assert (table["which gives"].round(2) == table["published"].astype(float)).all()
    wrong = table.index[table["as published it comes from"] != "the correct formula"]
    assert set(wrong) == set(recomputed.CAUSES)


def test_identities_of_the_published_columns() -> None:
    sums = recomputed.identities()
    assert list(sums.loc["TNR + FPR (eq. 34, NIMR = 0)"].round(2)) == [
        0.23,
        0.17,
        0.26,
        0.25,
        0.23,
        0.33,
        0.28,
        0.23,
    ]
    assert list(sums.loc["NPV + FOR (eq. 36, NPIMR = 0)"].round(2)) == [
        0.14,
        0.10,
        0.29,
        0.33,
        0.24,
        0.53,
        0.29,
        0.17,
    ]
    assert list(recomputed.holds(sums)) == [8, 0, 8, 0]


def test_f1_rows_by_table_3() -> None:
    rows = recomputed.f1_rows()
    seven = rows.loc["Table 7, from published precision and recall"].astype(float).round(3)
    assert list(seven) == [0.583, 0.552, 0.588, 0.500, 0.524, 0.559, 0.629, 0.593]
    assert (rows.loc["Table 8, can be equal"] == "yes").all()
    assert rows.loc["Table 7, can be equal", published.REGRESSION] == "no"


def test_the_search_finds_figure_7_among_its_own_numbers() -> None:
    found = recomputed.matrices_that_fit(published.REGRESSION, misread=True)
    assert (
        (found[list(published.FIGURE_7_BINARY)] == list(published.FIGURE_7_BINARY.values()))
        .all(axis=1)
        .any()
    )
    assert len(recomputed.matrices_that_fit(published.REGRESSION, misread=False)) == 0
    assert len(recomputed.matrices_that_fit("SVM", misread=True)) == 0


def test_the_search_finds_a_sound_column(monkeypatch: pytest.MonkeyPatch) -> None:
    planted = recomputed.evaluation_of(250, 30, 120, 45, 64)
    assert planted.binary == (250, 30, 120, 45, 64, 0)
    column = pd.Series(
        {row: round(planted.metrics[ROWS_8[row]], 2) for row in published.TABLE_8.index}
    )
    monkeypatch.setattr(published, "TABLE_8", pd.DataFrame({"sound": column}))
    found = recomputed.matrices_that_fit("sound", misread=False)
    assert [250, 30, 120, 45, 64, 0] in found.to_numpy().tolist()
    assert len(recomputed.matrices_that_fit("sound", misread=True)) == 0


def test_statements_on_random_matrices() -> None:
    held, gap = formulas.held(5, 60)
    counted = [statement.holds for statement in held]
    assert counted[0] == counted[2] == counted[3] == counted[4] == 60
    assert counted[1] > 50
    assert counted[5] > 50
    assert gap > 0.02


def test_figure_3() -> None:
    assert formulas.groupings().to_numpy().tolist() == [[16, 0], [4, 12], [7, 9]]


def test_two_readings() -> None:
    table = formulas.readings()
    assert table.loc["Threat score", ["value", "its value"]].tolist() == pytest.approx(
        [0.478261, 0.647059], abs=1e-6
    )
    expected = [0.309858, 0.406819]
    assert table.loc["Prevalence threshold", ["value", "its value"]].tolist() == pytest.approx(
        expected, abs=1e-6
    )


# -- the generator -----------------------------------------------------------------------------------------


def test_surveys_have_the_published_shares() -> None:
    many = Market().draw(200_000, 7)
    groups = np.bincount(np.digitize(many.nps, [7, 9]), minlength=3) / len(many)
    assert groups == pytest.approx(published.FIGURE_7.sum(axis=1) / 509, abs=0.005)
    assert Market().shares.sum() == pytest.approx(1)
    assert np.isnan(many.scores).mean(axis=0) == pytest.approx(Market().unused, abs=0.005)
    seen = many.scores[~np.isnan(many.scores)]
    assert set(np.unique(seen)) == set(range(11))
    counts = np.bincount(seen.astype(int))
    assert counts[8] == counts.max()  # the favourite mark
    assert counts[5] > 2 * counts[4]  # heaping


def test_satisfied_customers_recommend() -> None:
    survey = Market().draw(4000, 1)
    used = ~np.isnan(survey.scores)
    strength = [
        spearmanr(survey.scores[used[:, j], j], survey.nps[used[:, j]]).statistic for j in range(9)
    ]
    assert min(strength) > 0.15
    assert int(np.argmax(strength)) == published.ATTRIBUTES.index("tariff plan")


def test_some_give_one_mark() -> None:
    def alike(market: Market) -> float:
        survey = market.draw(5000, 2)
        low, high = np.nanmin(survey.scores, axis=1), np.nanmax(survey.scores, axis=1)
        answered = (~np.isnan(survey.scores)).sum(axis=1) >= 5
        return float((low == high)[answered].mean())

    assert alike(Market(one_mark=0.2)) - alike(Market(one_mark=0.0)) == pytest.approx(0.2, abs=0.03)


def test_draws_are_repeatable_and_split_as_published() -> None:
    first, again, other = Market().draw(50, 1), Market().draw(50, 1), Market().draw(50, 2)
    assert np.array_equal(first.scores, again.scores, equal_nan=True)
    assert not np.array_equal(first.nps, other.nps)
    parts = Market().split(ROWS, 1)
    assert len(parts.y_valid) == published.FIGURE_7.sum() == 509
    assert len(parts.y_train) == ROWS - 509


def test_the_regression_over_predicts_passives_as_in_figure_7() -> None:
    parts = Market().split(ROWS, 11)
    model = algorithms.algorithms(0, SMALL)[published.REGRESSION]
    predicted = fitted(model, parts).predict(parts.x_valid)
    matrix = np.zeros((3, 3))
    np.add.at(matrix, (np.digitize(parts.y_valid, [7, 9]), np.digitize(predicted, [7, 9])), 1)
    assert matrix[:, 1].sum() > 1.3 * matrix[1].sum()
    assert np.trace(matrix) / 509 == pytest.approx(0.58, abs=0.06)


# -- the algorithms ----------------------------------------------------------------------------------------


def test_parameters_are_those_printed() -> None:
    table = parameter_table(algorithms.algorithms(0, Size())).set_index("algorithm")
    assert set(table["table"]) == {f"Table A{k}" for k in range(1, 8)}
    assert (table.loc[[name for name in table.index if name in HERE], "as printed"] == "yes").all()
    small = parameter_table(algorithms.algorithms(0, SMALL))
    assert (small["as printed"] == "no").sum() >= 2  # trees and epochs


def test_without_torch_there_is_no_cnn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(algorithms, "has_torch", lambda: False)
    made = algorithms.algorithms(0, Size())
    assert set(made) == set(published.ALGORITHMS) - {"CNN"}
    table = parameter_table(made).set_index(["algorithm", "parameter"])
    assert table.loc[("CNN", "Kernel size"), ["ours", "as printed"]].tolist() == ["–", "no"]


def test_probabilities_know_of_absent_classes() -> None:
    rng = np.random.default_rng(0)
    y = np.tile([7, 8, 9, 10], 30)
    parts = Split(rng.normal(size=(120, 9)), y, rng.normal(size=(10, 9)), y[:10], published.SCORES)
    model = algorithms.algorithms(0, SMALL)[published.REGRESSION]
    out = probabilities(fitted(model, parts), parts)
    assert out.shape == (10, 11)
    assert (out[:, :7] == 0).all()
    assert out.sum(axis=1) == pytest.approx(1)


def test_the_network_of_table_a5_runs_all_epochs(split: Split) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = fitted(algorithms.algorithms(0, SMALL)["ANN"], split)
    assert model[-1].n_iter_ == SMALL.epochs
    assert [w.shape for w in model[-1].coefs_] == [(9, 6), (6, 11)]


def test_every_algorithm_is_evaluated(trial: Trial, split: Split) -> None:
    assert list(trial.evaluations) == HERE
    for evaluation in trial.evaluations.values():
        assert evaluation.n_samples == len(split.y_valid)
        m = evaluation.metrics
        assert m["binary/accuracy"] == pytest.approx(m[f"reduced/{STEP_1}/accuracy"])
        assert m["binary/roc_auc"] <= m["binary/roc_auc_ceiling"] < 1
        assert evaluation.reduced[STEP_2].mismatches[0] == 0


@pytest.mark.skipif(not has_torch(), reason="needs PyTorch")
class TestConvolution:
    x = np.random.default_rng(1).normal(size=(400, 9))
    y = np.where(x[:, 1:5].max(axis=1) > 1, "yes", "no")  # what a pool can see

    def test_it_learns(self) -> None:
        model = ConvolutionalClassifier(filters=16, epochs=100, batch_size=32, learning_rate=0.01)
        model.fit(self.x[:300], self.y[:300])
        assert model.score(self.x[300:], self.y[300:]) > 0.85
        p = model.predict_proba(self.x)
        assert p.shape == (400, 2)
        assert p.sum(axis=1) == pytest.approx(1)

    def test_it_is_repeatable_and_leaves_the_generator_alone(self) -> None:
        import torch

        torch.manual_seed(5)
        before = torch.random.get_rng_state()
        first, again, other = (
            ConvolutionalClassifier(epochs=2, random_state=k)
            .fit(self.x, self.y)
            .predict_proba(self.x)
            for k in (1, 1, 2)
        )
        assert np.array_equal(first, again)
        assert not np.allclose(first, other)
        assert torch.equal(before, torch.random.get_rng_state())

    def test_too_few_features(self) -> None:
        with pytest.raises(ValueError, match="at least 6 features, got 5"):
            ConvolutionalClassifier().fit(self.x[:, :5], self.y)

    def test_pools_forget_the_feature(self) -> None:
        parts = party.split(1)
        pooled = judge(
            parts, party.PARTY, 1, Size(trees=5, epochs=60), scaled=party.SCALED_HERE
        ).evaluations["CNN"]
        plain = party.without_pools(parts, 1, Size(trees=5, epochs=60))
        assert (
            plain.metrics["reduced/party/accuracy"]
            > pooled.metrics["reduced/party/accuracy"] + 0.05
        )


def test_the_convolution_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r"pip install '\.\[torch\]'"):
        ConvolutionalClassifier().fit(np.zeros((4, 9)), [0, 1, 0, 1])


# -- tables ------------------------------------------------------------------------------------------------


def test_precision_with_zeros_is_the_usual_one(trial: Trial, split: Split) -> None:
    table = precision_with_zeros([trial])
    name = "Decision Trees"
    predicted = probabilities(trial.classifiers[name], split).argmax(axis=1)
    usual = precision_score(
        split.y_valid, predicted, labels=range(11), average="macro", zero_division=0
    )
    assert table.iloc[0][name].mean == pytest.approx(usual)
    assert usual < trial.evaluations[name].metrics["multiclass/precision_macro"]


def test_groups_by_the_sum_of_their_probabilities(trial: Trial, split: Split) -> None:
    name = published.REGRESSION
    p = probabilities(trial.classifiers[name], split)
    sums = np.column_stack((p[:, :7].sum(axis=1), p[:, 7:9].sum(axis=1), p[:, 9:].sum(axis=1)))
    by_hand = (sums.argmax(axis=1) == np.digitize(split.y_valid, [7, 9])).mean()
    assert by_group(trial, split, name, NPS).metrics["multiclass/accuracy"] == pytest.approx(
        by_hand
    )


def test_told_apart_counts_pairs() -> None:
    rng = np.random.default_rng(4)
    y = rng.integers(0, 2, 400)
    flipped = {
        name: np.where(rng.random(400) < rate, 1 - y, y)
        for name, rate in (("a", 0.05), ("b", 0.05), ("c", 0.5))
    }
    grouping = Grouping({"no": [0], "yes": [1]}, name="two")
    from cmtrack import compare

    judged = {
        name: evaluate(y, predicted, grouping=grouping) for name, predicted in flipped.items()
    }
    assert separable.told_apart(compare(judged, rank_by="multiclass/accuracy")) == (2, 3)
    same = dict.fromkeys(("a", "b"), judged["a"])
    assert separable.told_apart(compare(same, rank_by="multiclass/accuracy")) == (0, 1)


def test_real_answers_are_all_used_once() -> None:
    parts = party.split(1)
    assert len(parts.y_train) + len(parts.y_valid) == 944
    assert len(parts.y_valid) == 189
    assert set(parts.y_valid) == set(party.LABELS)
