"""Family evaluations in MLflow runs, in reports and in comparisons."""

from __future__ import annotations

import json
import math
import re

import mlflow
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from cmtrack import (
    FamilyEvaluation,
    compare,
    evaluate,
    evaluate_families,
    load_evaluation,
    log_evaluation,
)
from cmtrack.cli import main
from cmtrack.comparison import paired_differences, randomization_test
from cmtrack.metrics import lookup
from cmtrack.report import report_html
from cmtrack.tracking import digests
from support.families import by_ten, generated, of_figures

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("undrawn")]


def of_quality(right: float, n: int = 500) -> FamilyEvaluation:
    """Models on the same documents."""
    return evaluate_families(generated(n)[0], generated(n, right=right)[1], by_ten)


@pytest.fixture
def logged(store):
    evaluation = of_quality(0.7)
    with mlflow.start_run() as run:
        result = log_evaluation(evaluation, strict=True)
    assert result.problems == ()
    return store, run.info.run_id, evaluation


@pytest.mark.usefixtures("drawn")
def test_a_run_gets_the_headline_metrics_files_and_tags(logged):
    client, run_id, evaluation = logged
    run = client.get_run(run_id)
    expected = {
        n: v for n, v in evaluation.metrics.items() if lookup(n).headline and math.isfinite(v)
    }
    assert run.data.metrics == pytest.approx(expected)
    assert 8 <= len(expected) <= 30
    assert {item.path for item in client.list_artifacts(run_id)} == {
        "cmtrack_evaluation.json",
        "cmtrack_report.html",
        "cmtrack_classes.json",
        "cmtrack_predictions.parquet",
        "cmtrack_family_matrix.png",
        "cmtrack_worst_families.png",
        "cmtrack_code_shares.png",
        "images",
    }
    tags = run.data.tags
    assert tags["cmtrack.status"] == "completed"
    assert tags["cmtrack.kind"] == "families"
    assert digests(tags)["labels"] == evaluation.labels_digest
    assert tags["cmtrack.samples"] == "500"
    assert "| family/f1_micro |" in tags["mlflow.note.content"]


def test_what_was_logged_loads_as_an_equal_evaluation_of_its_kind(logged):
    _, run_id, evaluation = logged
    loaded = load_evaluation(run_id, rows=True)
    assert isinstance(loaded, FamilyEvaluation)
    assert loaded == evaluation
    for name in ("family/f1_micro", "family/f1_macro", "family/hierarchical_f1"):
        np.testing.assert_array_equal(loaded.influence(name), evaluation.influence(name))


def test_the_table_of_codes_has_the_code_first(logged):
    _, run_id, evaluation = logged
    table = mlflow.load_table("cmtrack_classes.json", run_ids=[run_id])
    assert list(table.columns)[:2] == ["label", "result"]
    expected = evaluation.code_table()
    assert table["label"].astype(str).tolist() == [str(code) for code in expected["code"]]
    np.testing.assert_allclose(table["recall"].astype(float), expected["recall"], atol=1e-6)
    assert table["support"].tolist() == expected["actual"].tolist()


def test_documents_are_kept_one_by_one(logged, tmp_path):
    client, run_id, evaluation = logged
    frame = pd.read_parquet(
        client.download_artifacts(run_id, "cmtrack_predictions.parquet", str(tmp_path))
    )
    assert len(frame) == 500
    assert frame["hits"].sum() == evaluation.statistics.sums[0]


def test_rows_of_another_evaluation_are_refused(logged):
    evaluation = logged[2]
    folder = evaluation.save("mine").parent
    rows = {}
    for name, other in (("other", of_quality(0.4)), ("fewer", of_quality(0.7, 50))):
        rows[name] = other.save(name).with_name("cmtrack_predictions.parquet").read_bytes()
    for content, words in (
        (rows["other"], "to another evaluation"),
        (b"no parquet", "damaged"),
        (rows["fewer"], "must have 500 rows"),
    ):
        (folder / "cmtrack_predictions.parquet").write_bytes(content)
        with pytest.raises(ValueError, match=words):
            FamilyEvaluation.load(folder)


def test_prefixes_and_choices(store):
    with mlflow.start_run() as run:
        log_evaluation(
            of_quality(0.6), prefix="val/", metrics=["family/2/*"], predictions=False, strict=True
        )
    metrics = store.get_run(run.info.run_id).data.metrics
    assert set(metrics) == {
        f"val/family/2/{name}"
        for name in (
            "match_share",
            "confusion_share",
            "oof_share",
            "precision_micro",
            "recall_micro",
            "f1_micro",
            "support",
        )
    }
    assert load_evaluation(run.info.run_id, prefix="val/") == of_quality(0.6)
    with pytest.raises(ValueError, match="has no"):
        load_evaluation(run.info.run_id, prefix="val/", rows=True)


QUALITIES = {"good": 0.75, "nearly": 0.74, "bad": 0.5}


@pytest.mark.parametrize(
    "metric", [None, "family/f1_macro", "family/hierarchical_f1", "family/confusion_share"]
)
def test_three_runs_are_ranked_with_paired_differences(store, metric):
    for name, right in QUALITIES.items():
        with mlflow.start_run(run_name=name):
            log_evaluation(of_quality(right), strict=True)
    comparison = compare(rank_by=metric)
    ranking = comparison.ranking
    assert ranking.paired
    assert len(comparison.rankings) == 1
    assert comparison.criterion.metrics == (metric or "family/f1_micro",)
    last = ranking.runs[-1]
    assert last.name == "bad"
    assert not last.tied
    first, other = (of_quality(QUALITIES[run.name]) for run in (last, ranking.leader))
    gap = paired_differences(first, other, metrics=[ranking.criterion.metrics[0]])
    assert gap.paired
    assert gap.mcnemar is None
    assert last.difference == pytest.approx(gap.rows[0].difference)
    psi = [evaluation.influence(gap.rows[0].metric) for evaluation in (first, other)]
    assert gap.rows[0].standard_error == pytest.approx(np.linalg.norm(psi[0] - psi[1]) / 500)


def test_gates_and_single_families(store):
    for name, right in QUALITIES.items():
        with mlflow.start_run(run_name=name):
            log_evaluation(of_quality(right), strict=True)
    comparison = compare(rank_by="family/2/f1_micro", require=["family/oof_share <= 0.1"])
    assert [run.name for run in comparison.failed] == ["bad"]
    assert {run.name for run in comparison.runs} == {"good", "nearly"}
    assert all(
        "no standard error that can be computed from the rows" in run.unpaired
        for run in comparison.runs
    )
    assert set(comparison.figures()) >= {"ranking", "metrics"}
    page = comparison.report("review.html").read_text(encoding="utf-8")
    assert "500 documents" in page
    assert "60 codes" in page


def test_runs_of_other_documents_families_or_kinds_stand_apart():
    actual, predicted = generated(200)
    alike = {
        "a": evaluate_families(actual, predicted, by_ten),
        "b": evaluate_families(actual, actual, by_ten),
    }
    assert len(compare(alike).rankings) == 1
    halves = evaluate_families(actual, predicted, lambda code: code // 5)
    assert "different families of codes" in compare(alike | {"c": halves}).notes[0]
    fewer = evaluate_families(actual[:100], predicted[:100], by_ten)
    assert "different evaluation data" in compare(alike | {"c": fewer}).notes[0]
    with pytest.raises(TypeError, match="must be Evaluations"):
        randomization_test(alike["a"], alike["b"], "family/f1_micro")
    single = evaluate([0, 1, 1, 0], [0, 1, 0, 0])
    assert "different rows" in paired_differences(alike["a"], single, metrics=[]).reason


def test_a_merged_evaluation_is_compared_without_its_rows():
    actual, predicted = generated(200)
    whole = evaluate_families(actual, predicted, by_ten)
    halves = sum(
        evaluate_families(actual[i : i + 100], predicted[i : i + 100], by_ten) for i in (0, 100)
    )
    gap = paired_differences(whole, halves, metrics=["family/f1_micro"])
    assert not gap.paired
    assert gap.rows[0].difference == 0


def test_the_report_is_one_page_in_plain_words():
    evaluation = of_quality(0.7)
    page = report_html(evaluation, {}, title="Notes", subtitle="second try")
    for text in (
        "<title>Notes</title>",
        "second try",
        "Predicted codes",
        "Actual codes",
        "Families",
    ):
        assert text in page
    assert "http://" not in page
    assert "https://" not in page
    assert "On 500 documents with 60 codes in 6 families, precision is 0." in page
    assert "errors stay within the family" in page
    assert re.search(r"“\d+” is predicted in ", page)
    perfect = evaluate_families([{"a.1"}], [{"a.1"}], lambda code: code[0])
    assert "There are no errors." in report_html(perfect, {})
    assert "<script>alert" not in report_html(
        evaluate_families([{"<script>alert(1)</script>"}], [{"x"}], lambda _: "f"), {}
    )


def test_the_table_of_very_many_codes_holds_the_most_frequent(store):
    rng = np.random.default_rng(0)
    frequency = np.arange(1, 2501) ** -1.0
    sets = [
        set(rng.choice(2500, 40, replace=False, p=frequency / frequency.sum()).tolist())
        for _ in range(1200)
    ]
    evaluation = evaluate_families(sets, sets, lambda code: code // 50)
    assert len(evaluation.codes) > 2000
    with mlflow.start_run() as run:
        log_evaluation(evaluation, figures=False, predictions=False, strict=True)
    table = mlflow.load_table("cmtrack_classes.json", run_ids=[run.info.run_id])
    assert len(table) == 2000
    assert table["label"].astype(str).tolist()[:3] == ["0", "1", "2"]


def test_show_prints_a_family_run(logged):
    _, run_id, evaluation = logged
    shown = CliRunner().invoke(main, ["show", run_id])
    assert shown.exit_code == 0, shown.output
    assert "family/f1_micro" in shown.output
    assert "Families" in shown.output
    data = json.loads(CliRunner().invoke(main, ["show", run_id, "--json"]).output)
    assert data["kind"] == "families"
    assert data["metrics"]["family/f1_micro"] == pytest.approx(
        evaluation.metrics["family/f1_micro"]
    )


def test_other_levels_of_confidence(logged):
    evaluation = of_figures(1, 2, 3, 4).at_level(0.5)
    wide = of_figures(1, 2, 3, 4)
    for name, (low, high) in evaluation.intervals.items():
        assert wide.intervals[name][0] <= low <= high <= wide.intervals[name][1]
