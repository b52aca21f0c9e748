"""Sections of metrics that are left out, and class prevalences of many classes."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import cmtrack
from cmtrack import Accumulator, Evaluation, Grouping, evaluate, evaluate_table, log_evaluation
from cmtrack.cli import main
from cmtrack.metrics import em_shares
from cmtrack.report import report_html, verdict
from support.problems import random_problem

Y, _, P = random_problem(0, 200, 3, 2.0)
SECTIONS = [
    *("multiclass", "class", "spans", "reduced", "binary", "cost", "probability", "calibration"),
    *("confidence", "spcc", "prevalence", "rough"),
]
GROUPED = {
    "y_prob": P,
    "grouping": Grouping({"low": [0], "high": [1, 2]}),
    "groups": np.arange(200) // 2,
}


def sections_of(evaluation: Any) -> set[str]:
    return {name.split("/")[0] for name in evaluation.metrics}


@pytest.mark.parametrize(
    "section", ["multiclass", "class", "reduced", "binary", "spcc", "prevalence", "rough"]
)
@pytest.mark.parametrize("options", [{"y_prob": P}, GROUPED], ids=["classes", "groups"])
def test_a_section_alone_has_the_numbers_that_it_has_among_all(
    section: str, options: dict[str, Any]
) -> None:
    whole, one = evaluate(Y, **options), evaluate(Y, **options, sections=[section])
    assert one.sections == (section,)
    for part in ("metrics", "intervals", "standard_errors", "undefined"):
        wanted = {
            name: v for name, v in getattr(whole, part).items() if name.split("/")[0] == section
        }
        assert repr(dict(getattr(one, part))) == repr(wanted)  # to the last digit, NaN too
    assert sections_of(one) == ({section} if section in sections_of(whole) else set())
    assert (one.roc is None) == (section != "binary" or whole.roc is None)
    assert (one.prevalence is None) == (section != "prevalence" or whole.prevalence is None)
    assert (one.spcc_matrix is None) == (section != "spcc")
    assert set(one.warnings) <= set(whole.warnings)


WITH_GROUPS = [
    pytest.param(
        section,
        GROUPED,
        id=f"{section}, groups",
        marks=[] if section in ("binary", "reduced", "prevalence") else [pytest.mark.slow],
    )
    for section in SECTIONS
]
WITHOUT = [
    pytest.param(section, {"y_prob": P}, id=f"{section}, classes")
    for section in ("multiclass", "reduced", "spcc")
]


@pytest.mark.slow
@pytest.mark.parametrize(("section", "options"), [*WITH_GROUPS, *WITHOUT])
def test_every_view_is_made_of_any_section(section: str, options: dict[str, Any]) -> None:
    one = evaluate(Y, **options, sections=[section])
    assert "200 rows" in repr(one)
    assert one._repr_html_()
    assert one.to_frame()["metric"].str.startswith(section).all()
    assert one.class_table().equals(table_of_classes("grouping" in options))
    figures = set(one.figures())
    assert ("roc" in figures) == (one.roc is not None)
    assert ("spcc_matrix" in figures) == (section == "spcc")
    assert "200" in report_html(one, {})
    told = " ".join(verdict(one))
    assert ("accuracy" in told.lower()) == (section == "multiclass")
    assert ("After grouping by" in told) == (section == "reduced" and "grouping" in options)


@cache
def table_of_classes(grouped: bool) -> pd.DataFrame:
    """The table of the classes of an evaluation with all sections."""
    options = GROUPED if grouped else {"y_prob": P}
    return evaluate(Y, **options).class_table()


@pytest.mark.slow
def test_what_was_left_out_is_computed_later() -> None:
    whole, one = evaluate(Y, **GROUPED), evaluate(Y, **GROUPED, sections=["class", "multiclass"])
    assert one.sections == ("multiclass", "class")  # in the catalog's order
    assert one.with_sections(None) == whole
    assert one.with_sections(None).intervals == whole.intervals
    assert one.with_sections(("multiclass", "class")) is one
    assert whole.with_sections(["spcc"]) == evaluate(Y, **GROUPED, sections=["spcc"])


def test_clusters_are_not_known_of_sections_that_are_added_without_the_rows(tmp_path: Path) -> None:
    one = evaluate(Y, **GROUPED, sections=["multiclass"])
    one.save(tmp_path, rows=False)
    added = Evaluation.load(tmp_path).with_sections(["multiclass", "class"])
    assert any("ignore which rows belong together" in note for note in added.warnings)
    assert not any(
        "belong together" in note for note in added.with_sections(["multiclass"]).metrics
    )
    assert added.intervals["multiclass/accuracy"] == one.intervals["multiclass/accuracy"]


def test_sections_are_stored_merged_and_regrouped(tmp_path: Path) -> None:
    one = evaluate(Y, y_prob=P, sections=["multiclass", "spcc"])
    one.save(tmp_path)
    assert json.loads((tmp_path / "cmtrack_evaluation.json").read_text())["sections"] == [
        "multiclass",
        "spcc",
    ]
    assert Evaluation.load(tmp_path) == one
    assert Evaluation.load(tmp_path).metrics == one.metrics
    assert json.loads(evaluate(Y, y_prob=P).to_json())["sections"] is None
    assert (one + one).sections == one.sections
    with pytest.raises(
        ValueError, match=r"must have the same sections to be merged, got \('multiclass', 'spcc'\)"
    ):
        one + evaluate(Y, y_prob=P)
    again = one.regroup(Grouping({"low": [0], "high": [1, 2]}))
    assert sections_of(again) == {"multiclass", "spcc"}
    assert "sections must be a list of names" in _damaged(tmp_path, "multiclass")


def _damaged(folder: Path, sections: Any) -> str:
    file = folder / "cmtrack_evaluation.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"sections": sections}))
    with pytest.raises(ValueError, match="damaged") as caught:
        Evaluation.load(folder)
    return str(caught.value)


@pytest.mark.parametrize(
    ("sections", "error", "message"),
    [
        (
            ["multiclas"],
            ValueError,
            "there is no section 'multiclas'; did you mean 'multiclass'.*the sections are",
        ),
        ("multiclass", TypeError, "sections must be a list of names, got 'multiclass'"),
        ([], ValueError, "sections must name at least one of"),
        ([1], TypeError, "sections must be a list of names, got 1"),
    ],
    ids=["near", "text", "none", "number"],
)
def test_sections_that_are_none(sections: Any, error: type[Exception], message: str) -> None:
    for call in (
        lambda: evaluate(Y, y_prob=P, sections=sections),
        lambda: Accumulator([0, 1, 2], sections=sections),
        lambda: evaluate_table(
            pd.DataFrame({"y": Y, "p": Y}), y_true="y", y_pred="p", sections=sections
        ),
        lambda: evaluate(Y, y_prob=P).with_sections(sections),
    ):
        with pytest.raises(error, match=message):
            call()


@pytest.mark.slow
def test_every_way_to_an_evaluation_takes_sections(store: Any, tmp_path: Path) -> None:
    import mlflow

    with mlflow.start_run() as run:
        logged = log_evaluation(Y, y_prob=P, sections=["class", "multiclass"], metrics="all")
    assert (logged.status, logged.problems) == ("completed", ())
    assert {name.split("/")[0] for name in mlflow.get_run(run.info.run_id).data.metrics} == {
        "multiclass",
        "class",
    }
    assert cmtrack.load_evaluation(run.info.run_id).sections == ("multiclass", "class")
    seen = Accumulator([0, 1, 2], sections=["spcc"])
    seen.update(Y, y_prob=P)
    assert sections_of((seen + seen).compute()) == {"spcc"}
    with pytest.raises(ValueError, match="accumulators must have the same sections"):
        seen + Accumulator([0, 1, 2])
    frame = pd.DataFrame({"y": Y, "h": P.argmax(axis=1)} | {f"p_{k}": P[:, k] for k in range(3)})
    table = evaluate_table(frame, y_true="y", y_prob="p_*", sections=["rough"], progress=False)
    assert sections_of(table) == {"rough"}
    frame.to_csv(tmp_path / "rows.csv", index=False)
    command = [
        "evaluate",
        str(tmp_path / "rows.csv"),
        "--y-true",
        "y",
        "--y-prob",
        "p_*",
        "--section",
    ]
    done = CliRunner().invoke(main, [*command, "class", "--section", "multiclass", "--json"])
    assert {name.split("/")[0] for name in json.loads(done.stdout)["metrics"]} == {
        "class",
        "multiclass",
    }
    done = CliRunner().invoke(main, [*command, "rough"])
    assert (done.exit_code, "rough" in done.output or "Headline" in done.output) == (0, True)
    done = CliRunner().invoke(main, [*command, "clas"])
    assert done.exit_code != 0
    assert "did you mean 'class'" in done.stderr


def test_hooks_take_sections(store: Any) -> None:
    from sklearn.linear_model import LogisticRegression

    from cmtrack_integrations.sklearn import cross_validate_evaluation, evaluate_estimator

    model = LogisticRegression().fit(P, Y)
    assert sections_of(evaluate_estimator(model, P, Y, sections=["spcc"])) == {"spcc"}
    crossed = cross_validate_evaluation(model, P, Y, cv=2, sections=["spcc"])
    assert [sections_of(e) for e in (crossed.evaluation, *crossed.folds)] == [{"spcc"}] * 3


# -- many classes ----------------------------------------------------------------------------------------------------


def dense(table: np.ndarray, target: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Densities (rows, classes) and weights of the estimate, written out."""
    added = 1 / table.shape[1]  # one count for each class
    densities = ((table + added) / (table.sum(axis=1, keepdims=True) + 1)).T
    if target is not None:
        return densities, target
    out, weights = [], []
    for c, own in enumerate(table):
        for b in np.flatnonzero(own):
            row, left = densities[b].copy(), min(own[b], 1.0)
            row[c] = (own[b] - left + added) / (own.sum() - left + 1)
            out.append(row)
            weights.append(own[b])
    return np.array(out), np.array(weights)


def binned(y: np.ndarray, p: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Labelled counts (k, bins) of the reference, and the bin of each predicted class and cell.

    A bin is a predicted class and a fifth of its labelled rows by their probability, counted in 64 cells of the logit
    on [-4, 12].
    """
    best = p.argmax(axis=1)
    cell = cell_of(p)
    per_cell = np.zeros((k, 64))
    np.add.at(per_cell, (best, cell), 1)
    middle = per_cell.cumsum(axis=1) - per_cell / 2
    share = middle / np.maximum(per_cell.sum(axis=1, keepdims=True), 1)
    bins = 5 * np.arange(k)[:, None] + np.minimum((5 * share).astype(int), 4)
    table = np.zeros((k, 5 * k))
    np.add.at(table, (y, bins[best, cell]), 1)
    return table, bins


def cell_of(p: np.ndarray) -> np.ndarray:
    """The cell of each row's largest probability."""
    top = p.max(axis=1)
    return np.clip((np.log(top / (1 - top)) + 4) * 4, 0, 63).astype(int)


def calibrated_shares(evaluation: Evaluation, k: int) -> np.ndarray:
    """The calibrated prevalence of every class."""
    return np.array([evaluation.metrics[f"prevalence/{c}/calibrated"] for c in range(k)])


@pytest.mark.parametrize("k", [3, 40])
def test_shares_of_left_out_rows_are_those_by_densities(k: int) -> None:
    y, _, p = random_problem(0, 1500, k, 2.0)
    table, _ = binned(y, p, k)
    wanted = em_shares(*dense(table[:, table.any(axis=0)], None))
    # extrapolated steps carry rounding errors along
    assert calibrated_shares(evaluate(y, y_prob=p), k) == pytest.approx(wanted, abs=1e-6)


@pytest.mark.parametrize("k", [3, 40])
def test_shares_of_a_target_are_those_by_densities(k: int) -> None:
    y, _, p = random_problem(0, 1500, k, 2.0)
    target = random_problem(1, 500, k, 2.0)[2]
    table, bins = binned(y, p, k)
    aimed = np.bincount(bins[target.argmax(axis=1), cell_of(target)], minlength=5 * k)
    used = table.any(axis=0) | (aimed > 0)
    wanted = em_shares(*dense(table[:, used], aimed[used]))
    evaluation = evaluate(y, y_prob=p, target=target)
    assert calibrated_shares(evaluation, k) == pytest.approx(wanted, abs=1e-6)


@pytest.mark.parametrize(("k", "n", "apart"), [(100, 2500, 1.0), (300, 3000, 3.0)])
def test_shares_of_many_classes_reach_the_criterion(k: int, n: int, apart: float) -> None:
    # 20,000 plain steps leave max g - 1 = 1.7e-7 at 300 classes of 5,000 rows
    y, _, p = random_problem(0, n, k, apart)
    shares = calibrated_shares(evaluate(y, y_prob=p, sections=["prevalence"]), k)
    table, _ = binned(y, p, k)
    densities, weights = dense(table[:, table.any(axis=0)], None)
    gain = densities.T @ (weights / weights.sum() / (densities @ shares))
    assert shares.sum() == pytest.approx(1)
    assert shares.min() >= 0
    assert gain.max() - 1 <= 1.1e-9
