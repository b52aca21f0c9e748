"""What a logged evaluation consists of: files, metrics, tags, the data set and the description."""

from __future__ import annotations

import json
import logging
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from cmtrack import Evaluation, Grouping, compare, evaluate, log_evaluation
from cmtrack.tracking import EvaluationWarning, build_into, digests, tag

Y = [0, 1, 1, 0, 2, 2]
PREDICTED = [0, 1, 0, 0, 2, 1]
MOST = 32 << 20
"""Bytes of rows that are logged without being asked for."""


@pytest.fixture(scope="module")
def evaluation() -> Evaluation:
    return evaluate(Y, PREDICTED)


def packed(folder: Path, evaluation: Evaluation, **options: Any) -> Any:
    """The package of an evaluation, without figures unless they are asked for."""
    return build_into(evaluation, folder / "package", **({"figures": False} | options))


# -- files -----------------------------------------------------------------------------------------------------------


def test_a_package_has_all_parts_under_its_prefix(tmp_path: Path) -> None:
    package = packed(
        tmp_path,
        evaluate([0, 0, 0, 0], [0, 0, 1, 0], labels=[0, 1]),
        run_id="r",
        run_name="svm <b>",
        prefix="my val/",
        step=3,
        model_id="m",
        tracking_uri="http://u:p@host",
        dataset="mine",
        on_existing="error",
    )
    assert package.files == [
        "my_val_cmtrack_evaluation.json",
        "my_val_cmtrack_classes.json",
        "my_val_cmtrack_report.html",
    ]
    assert (package.run_id, package.step, package.model_id) == ("r", 3, "m")
    assert (package.tracking_uri, package.on_existing) == ("http://host", "error")
    manifest = json.loads((package.folder / "entry.json").read_text())
    assert manifest["tracking_uri"] == "http://host"
    page = (package.folder / "artifacts" / "my_val_cmtrack_report.html").read_text()
    day = time.strftime("%Y-%m-%d", time.gmtime(package.timestamp / 1000))
    assert "<h1>svm &lt;b&gt;</h1>" in page
    assert f"Evaluation “my val” · step 3 · mine · run r · model m · {day}</p>" in page
    assert abs(package.timestamp - time.time() * 1000) < 600_000


@pytest.mark.slow
def test_the_matrix_of_two_groups_is_described_and_that_of_the_classes_is_for_the_charts(
    tmp_path: Path,
) -> None:
    two = Grouping({"low": [0, 1], "two": [2]}, positive="two", name="level")
    grouped = evaluate(Y, PREDICTED, grouping=two)
    package = packed(tmp_path, grouped, prefix="val/", figures="auto")
    file = "val_cmtrack_confusion_matrix.png"
    assert package.images == {"val/cmtrack/confusion_matrix": file}
    assert Image.open(package.folder / "charts" / file).size == (512, 512)
    assert {file, "val_cmtrack_reduced_level.png"} <= set(package.files)
    assert "](artifact:val_cmtrack_reduced_level.png)" in package.description
    assert f"](artifact:{file})" not in package.description
    assert package.tags["cmtrack.val.groups"].startswith("level: low = 0, 1; two = 2")


def test_rows_that_cannot_be_written_cost_the_rows_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evaluation: Evaluation
) -> None:
    def fail(*_: Any) -> None:
        raise OSError("no room")

    monkeypatch.setenv("CMTRACK_SPOOL", str(tmp_path))
    monkeypatch.setattr(Evaluation, "write_rows", fail)
    with pytest.warns(EvaluationWarning, match="no run is active"):
        path = log_evaluation(evaluation, figures=False).path
    assert path is not None
    manifest = json.loads((path / "entry.json").read_text())
    assert manifest["problems"] == ["predictions: OSError: no room"]
    assert {file.name for file in (path / "artifacts").iterdir()} == {
        "cmtrack_evaluation.json",
        "cmtrack_classes.json",
        "cmtrack_report.html",
    }


def test_a_table_that_cannot_be_made_is_named_on_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evaluation: Evaluation
) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("no table")

    # Inside: no evaluation is known whose table cannot be made.
    monkeypatch.setattr("cmtrack.tracking.contents.table_json", fail)
    package = packed(tmp_path, evaluation)
    page = (package.folder / "artifacts" / "cmtrack_report.html").read_text()
    assert "Not drawn: class table: RuntimeError: no table." in page


@pytest.mark.parametrize(
    ("setting", "asked", "size", "columns", "says"),
    [
        (
            "",
            "auto",
            MOST,
            4,
            "3 rows are logged (actual and predicted labels, probabilities; 33.6",
        ),
        ("", "auto", MOST + 1, 0, "0 rows are logged: they need 34 MB, more than 32 MB."),
        ("", True, MOST + 1, 4, "3 rows are logged (actual and predicted labels, probabilities"),
        ("on", "auto", MOST + 1, 4, "3 rows are logged (actual and predicted labels"),
        ("labels", "auto", MOST + 1, 0, "0 rows are logged: they need 34 MB"),
        ("labels", True, MOST + 1, 2, "3 rows are logged (actual and predicted labels; 33.6 MB"),
        ("off", True, MOST, 0, "0 rows are logged (CMTRACK_PREDICTIONS=off)."),
    ],
)
def test_rows_of_more_than_32_mb_are_left_out_unless_they_are_asked_for(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    setting: str,
    asked: Any,
    size: int,
    columns: int,
    says: str,
) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setenv("CMTRACK_SPOOL", str(tmp_path))
    monkeypatch.setenv("CMTRACK_PREDICTIONS", setting)
    monkeypatch.setattr(Evaluation, "rows_size", size)
    scored = evaluate([0, 1, 1], y_prob=[0.25, 0.75, 0.5])
    with (
        caplog.at_level(logging.INFO, "cmtrack"),
        pytest.warns(EvaluationWarning, match="no run is active"),
    ):
        path = log_evaluation(scored, predictions=asked, figures=False).path
    assert path is not None
    [message] = [record.message for record in caplog.records if record.name == "cmtrack"]
    assert message.startswith(says)
    file = path / "artifacts" / "cmtrack_predictions.parquet"
    assert file.exists() == bool(columns)
    if columns:
        assert len(parquet.read_schema(file).names) == columns


# -- metrics ---------------------------------------------------------------------------------------------------------


def test_metrics_are_chosen_by_name_or_section(tmp_path: Path, evaluation: Evaluation) -> None:
    def names(metrics: Any) -> set[str]:
        return set(packed(tmp_path, evaluation, metrics=metrics).metrics)

    finite = {name for name, value in evaluation.metrics.items() if np.isfinite(value)}
    assert names("all") == names(["*"]) == finite
    assert names("headline") == finite & set(evaluation.headline)
    assert names(["multiclass/accuracy"]) == {"multiclass/accuracy"}
    section = {name for name in finite if name.startswith("multiclass/")}
    assert names(["multiclass/*"]) == section
    assert len(section) > 5
    for wrong, says in (
        ("most", "must be 'headline', 'all' or a list"),
        (["multiclass/acuracy"], "has no metric 'multiclass/acuracy'"),
        (["multiclas/*"], "has no metric"),
    ):
        with pytest.raises(ValueError, match=says):
            names(wrong)


def test_metrics_of_a_segment_are_chosen_by_its_value(tmp_path: Path) -> None:
    divided = evaluate(Y, PREDICTED, segments={"region": list("nnnsss")})
    package = packed(tmp_path, divided, metrics=["segment/region/*/multiclass/accuracy"])
    assert package.metrics == {
        "segment/region/n/multiclass/accuracy": pytest.approx(2 / 3),
        "segment/region/s/multiclass/accuracy": pytest.approx(2 / 3),
    }
    assert "cmtrack_segments.json" in package.files


@pytest.mark.slow
def test_long_lists_of_undefined_metrics_and_of_classes_and_long_names_are_cut(
    tmp_path: Path,
) -> None:
    sparse = evaluate([0, 1], [0, 1], labels=range(201))
    package = packed(tmp_path, sparse, metrics="all", prefix="p" * 140)
    undefined = package.tags[f"cmtrack.{'p' * 140}.nan"]
    assert len(undefined) == 4000
    assert undefined.endswith("…")
    assert package.dataset["name"] == "2 rows of 201 classes"
    assert len(json.loads(package.dataset["profile"])["counts"]) == 200
    first = undefined.split(", ")[0]
    assert not np.isfinite(sparse.metrics[first])
    assert all(np.isfinite(value) for value in package.metrics.values())
    words = evaluate(["x" * 300, "y"], ["x" * 300, "y"])
    long = packed(tmp_path, words, metrics="all", prefix="p" * 150)
    assert max(map(len, long.metrics)) == 250


@pytest.mark.parametrize("prefix", ["/a", "a//b", "a..b", "a\n", "ä", "-a"])
def test_a_prefix_is_legal_in_mlflow_and_climbs_nowhere(prefix: str) -> None:
    with pytest.raises(ValueError, match="prefix must start with a letter"):
        compare("a run", prefix=prefix)


# -- tags ------------------------------------------------------------------------------------------------------------


def test_tags_and_digests_have_the_prefix(tmp_path: Path, evaluation: Evaluation) -> None:
    assert tag("status") == "cmtrack.status"
    assert tag("status", "val/") == "cmtrack.val.status"
    assert tag("grouping", "a/b.") == "cmtrack.a/b.groups"
    package = packed(tmp_path, evaluation, prefix="val/")
    assert package.tags[tag("samples", "val/")] == "6"
    found = digests(package.tags, "val/")
    assert found["labels"] == evaluation.labels_digest
    assert found.keys() == {"schema", "labels", "evaluation"}
    assert digests(package.tags) == {}


def test_digests_are_read_from_one_tag_or_from_those_of_before() -> None:
    former = {"cmtrack.labels_digest": "x", "cmtrack.evaluation_digest": "e", "cmtrack.other": "y"}
    assert digests(former) == {"labels": "x", "evaluation": "e"}
    both = {"cmtrack.val.digests": '{"labels": "x", "n": 1}', "cmtrack.val.labels_digest": "old"}
    assert digests(both, "val/") == {"labels": "x"}
    for damaged in ("{", "[]", "1", "[" * 100_000):
        assert digests({"cmtrack.digests": damaged, "cmtrack.labels_digest": "x"}) == {}


# -- the data set ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "name", "profile", "columns"),
    [
        (
            {"y_true": Y, "y_pred": PREDICTED},
            "6 rows of 3 classes",
            {"rows": 6, "classes": 3, "counts": {"0": 2, "1": 2, "2": 2}},
            {"y_true": "long", "y_pred": "long"},
        ),
        (
            {"y_true": [False, True, True], "y_prob": [0.2, 0.7, 0.4]},
            "3 rows of 2 classes",
            {"rows": 3, "classes": 2, "counts": {"False": 1, "True": 2}},
            {
                "y_true": "boolean",
                "y_pred": "boolean",
                "prob/False": "double",
                "prob/True": "double",
            },
        ),
        (
            {"y_true": ["a", "b"], "y_pred": ["a", "a"], "sample_weight": [0.5, 2.0]},
            "2 rows of 2 classes",
            {"rows": 2, "sum_of_weights": 2.5, "classes": 2, "counts": {"a": 0.5, "b": 2.0}},
            {"y_true": "string", "y_pred": "string", "sample_weight": "double"},
        ),
        (
            {
                "y_true": [0.5, 1.5],
                "y_pred": [0.5, 0.5],
                "sample_weight": [1, 3],
                "labels": [0.5, 1.5],
            },
            "2 rows of 2 classes",
            {"rows": 2, "sum_of_weights": 4, "classes": 2, "counts": {"0.5": 1, "1.5": 3}},
            {"y_true": "double", "y_pred": "double", "sample_weight": "long"},
        ),
    ],
)
def test_the_data_set_has_a_name_a_profile_and_columns(
    tmp_path: Path,
    arguments: dict[str, Any],
    name: str,
    profile: dict[str, Any],
    columns: dict[str, str],
) -> None:
    one = evaluate(**arguments)
    entry = packed(tmp_path, one).dataset
    assert (entry["name"], entry["digest"]) == (name, one.labels_digest)
    assert json.loads(entry["profile"]) == profile
    listed = json.loads(entry["schema"])["mlflow_colspec"]
    assert {column["name"]: column["type"] for column in listed} == columns


# -- the description -------------------------------------------------------------------------------------------------


def test_a_description_has_the_result_the_first_warnings_and_six_numbers(
    tmp_path: Path, evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = packed(tmp_path, evaluation, prefix="my val/").description.split("\n\n")
    first = "**Evaluation “my val”**: On 6 rows of 3 classes, the accuracy is 66.7%"
    assert lines[0].startswith(first)
    assert lines[0].endswith("[Report](artifact:my_val_cmtrack_report.html)")
    assert [line.partition(" ")[0] for line in lines[1:-1]] == ["**Warning:**"]
    table = lines[-1].splitlines()
    assert table[0] == "| metric | value | 95% interval |"
    # the metric that ranks runs by default comes first
    assert table[2].startswith("| my val/multiclass/matthews_corrcoef | ")
    assert table[3] == "| my val/multiclass/accuracy | 0.667 | [0.300, 0.903] |"
    scored = evaluate([False, True, True, False] * 20, y_prob=[0.2, 0.7, 0.4, 0.6] * 20)
    text = packed(tmp_path, scored).description
    assert text.startswith("**Evaluation**: The model finds 20 of 40 rows of “True” (50.0%")
    rows = [line.split(" | ")[0] for line in text.splitlines() if line.startswith("| ")]
    assert rows[1:] == [
        "| binary/matthews_corrcoef",
        "| binary/recall",
        "| binary/precision",
        "| binary/roc_auc",
        "| multiclass/accuracy",
        "| multiclass/balanced_accuracy",
    ]
    for count, end in (
        (2, "**Warning:** w1."),
        (3, "**Warning:** w1. (1 more warning in the report.)"),
        (4, "**Warning:** w1. (2 more warnings in the report.)"),
    ):
        warned = tuple(f"w{number}" for number in range(count))
        monkeypatch.setattr(Evaluation, "warnings_by_section", [("", text) for text in warned])
        lines = packed(tmp_path, evaluation).description.split("\n\n")
        assert lines[2] == end
        assert len(lines) == 4
