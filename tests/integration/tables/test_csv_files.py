"""CSV files: one rule for headers, codes and kinds of labels, from Python and from the command line."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner

from cmtrack import evaluate, evaluate_table
from cmtrack.cli import main

LARGE = "12345678901234567890,12345678901234567891\n12345678901234567891,12345678901234567890\n"
CODES = "007,007\n010,010\n010,007\n"
CASES = {
    "codes": ("y,z\n", CODES, ("007", "010"), 2 / 3),
    "large integers": (
        "y,z\n",
        f"{LARGE}7,7\n",
        ("12345678901234567890", "12345678901234567891", "7"),
        1 / 3,
    ),
    "a text class that is never predicted": (
        "y,z\n",
        "1,1\n2,2\nunknown,2\n",
        ("1", "2", "unknown"),
        2 / 3,
    ),
    "an index without a name": (
        ",y,z\n",
        "0,ant,ant\n1,bee,bee\n2,cat,bee\n",
        ("ant", "bee", "cat"),
        2 / 3,
    ),
    "an index and integers": (",y,z\n", "0,1,1\n1,2,2\n2,3,2\n", (1, 2, 3), 2 / 3),
    "semicolons": ("y;z\n", "1;1\n2;2\n2;1\n", (1, 2), 2 / 3),
    "blanks and numbers": ("y, z\n", "1, 1\n2, 2\n2, 1\n", (1, 2), 2 / 3),
    "blanks and texts": ("y , z\n", "a , a\nb , b\nb , a\n", ("a", "b"), 2 / 3),
    "integers": ("y,z\n", "1,1\n2,2\n2,1\n", (1, 2), 2 / 3),
    "integers with signs": ("y,z\n", "+1,+1\n-1,-1\n+1,-1\n", (-1, 1), 2 / 3),
    "integers and whole floats": ("y,z\n", "1,1.0\n2,2.0\n2,1.0\n", (1, 2), 2 / 3),
    "booleans": ("y,z\n", "True,True\nFalse,False\nTrue,False\n", (False, True), 2 / 3),
    "letters": ("y,z\n", "t,t\nf,f\nt,f\n", ("f", "t"), 2 / 3),
    "dates": (
        "y,z\n",
        "2020-01-01,2020-01-01\n2020-02-01,2020-02-01\n2020-01-01,2020-02-01\n",
        ("2020-01-01", "2020-02-01"),
        2 / 3,
    ),
}


def by_command(*files: Any, options: tuple[str, ...] = ("--y-pred", "z")) -> dict[str, Any]:
    result = CliRunner().invoke(
        main, ["evaluate", *map(str, files), "--y-true", "y", *options, "--json"]
    )
    assert result.exit_code == 0, result.output
    data: dict[str, Any] = json.loads(result.stdout)
    return data


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_labels_are_the_same_from_every_door(case: str, tmp_path: Path) -> None:
    header, rows, labels, accuracy = CASES[case]
    (tmp_path / "one.csv").write_text(header + rows * 4)
    (folder := tmp_path / "two").mkdir()
    for name in ("a.csv", "b.csv"):
        (folder / name).write_text(header + rows * 2)
    for table in (tmp_path / "one.csv", folder, str(folder / "*.csv")):
        evaluation = evaluate_table(table, y_true="y", y_pred="z")
        assert evaluation.labels == labels
        assert [type(label) for label in evaluation.labels] == [type(label) for label in labels]
        assert evaluation.metrics["multiclass/accuracy"] == pytest.approx(accuracy)
        data = by_command(table)
        assert data["labels"] == list(labels)
        assert data["metrics"]["multiclass/accuracy"] == pytest.approx(accuracy)


def test_a_kind_holds_for_all_files_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("y,z\n" + "1,1\n2,2\n" * 5)
    (tmp_path / "b.csv").write_text("y,z\n" + "1,01\n2,2\n" * 5)
    assert evaluate_table(tmp_path, y_true="y", y_pred="z").labels == ("01", "1", "2")


@pytest.mark.slow
def test_a_text_after_many_numbers_is_a_class(tmp_path: Path) -> None:
    (tmp_path / "late.csv").write_text("y,z\n" + "1,1\n0,0\n" * 30_000 + "unknown,1\n")
    assert evaluate_table(tmp_path / "late.csv", y_true="y", y_pred="z").labels == (
        "0",
        "1",
        "unknown",
    )


def test_calibration_rows_have_the_kind_of_the_labels(tmp_path: Path) -> None:
    p = "0.9,0.1\n0.2,0.8\n0.4,0.6\n"
    rows = [
        f"{label},{numbers}\n"
        for label, numbers in zip(["007", "10", "10"], p.splitlines(), strict=True)
    ]
    (tmp_path / "rows.csv").write_text("y,p_007,p_10\n" + "".join(rows) * 4)
    (tmp_path / "held.csv").write_text("y,p_007,p_10\n" + "".join(rows) * 5)
    options = ("--y-prob", "p_*", "--positive", "10", "--calibration", str(tmp_path / "held.csv"))
    assert by_command(tmp_path / "rows.csv", options=options)["labels"] == ["007", "10"]
    (folder := tmp_path / "two").mkdir()
    (folder / "rows.csv").write_bytes((tmp_path / "rows.csv").read_bytes())
    assert by_command(folder, options=options)["labels"] == ["007", "10"]


def test_missing_values_are_those_that_the_option_names(tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text("y,z\n" + "NA,NA\nNone,None\nx,NA\n" * 4)
    (folder := tmp_path / "two").mkdir()
    (folder / "one.csv").write_bytes((tmp_path / "one.csv").read_bytes())
    for table in (tmp_path / "one.csv", folder):
        refused = CliRunner().invoke(
            main, ["evaluate", str(table), "--y-true", "y", "--y-pred", "z"]
        )
        assert refused.exit_code == 2
        assert "--missing changes this" in refused.output
        assert by_command(table, options=("--y-pred", "z", "--missing", ""))["labels"] == [
            "NA",
            "None",
            "x",
        ]
        still = [
            "evaluate",
            str(table),
            "--y-true",
            "y",
            "--y-pred",
            "z",
            "--missing",
            "",
            "--missing",
            "x",
        ]
        assert "missing labels, got 4" in CliRunner().invoke(main, still).output


def test_labels_of_the_command_line_can_name_a_text_that_no_row_has(tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text("y,z\n" + "1,1\n2,2\n" * 4)
    options = ("--y-pred", "z", "--labels", "1,2,unknown")
    assert by_command(tmp_path / "one.csv", options=options)["labels"] == ["1", "2", "unknown"]
    labels = ["1", "2", "unknown"]
    assert evaluate_table(
        tmp_path / "one.csv", y_true="y", y_pred="z", labels=labels
    ).labels == tuple(labels)


def test_segments_and_ids_keep_their_digits(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {"y": [1, 2, 2] * 4, "z": [1, 2, 1] * 4, "zip": ["01067", "10115", "80331"] * 4}
    )
    frame["id"] = [f"{row:03d}" for row in range(12)]
    frame.to_csv(tmp_path / "one.csv")
    expected = evaluate_table(frame, y_true="y", y_pred="z", segments=["zip"], row_ids="id")
    streamed = evaluate_table(
        tmp_path / "one.csv", y_true="y", y_pred="z", segments=["zip"], row_ids="id"
    )
    for evaluation in (streamed, expected):
        assert set(evaluation.segments["zip"].to_frame()["segment"]) == {"01067", "10115", "80331"}
    assert streamed.statistics.row_ids == expected.statistics.row_ids
    rows = by_command(
        tmp_path / "one.csv", options=("--y-pred", "z", "--segment", "zip", "--row-ids", "id")
    )
    assert json.dumps(rows).count("01067") > 0


def test_plain_integers_have_the_digest_of_the_frame(tmp_path: Path) -> None:
    frame = pd.DataFrame({"y": [0, 1, 10] * 4, "z": [0, 1, 1] * 4, "id": range(12)})
    frame.to_csv(tmp_path / "one.csv", index=False)
    with gzip.open(tmp_path / "two.tsv.gz", "wt") as file:
        frame.to_csv(file, index=False, sep="\t")
    expected = evaluate_table(frame, y_true="y", y_pred="z", row_ids="id")
    for name in ("one.csv", "two.tsv.gz"):
        evaluation = evaluate_table(tmp_path / name, y_true="y", y_pred="z", row_ids="id")
        assert evaluation.labels == expected.labels
        assert evaluation.statistics.digest == expected.statistics.digest
        assert evaluation.statistics.row_ids == expected.statistics.row_ids


def test_columns_of_a_joined_table_keep_codes(tmp_path: Path) -> None:
    text = (
        "code,big,number\n007,12345678901234567890,0.50\n010,12345678901234567891,0.25\n011,7,1.5\n"
    )
    (tmp_path / "attributes.csv").write_text(text)
    evaluation = evaluate([0, 1, 1], [0, 1, 0])
    with pytest.warns(UserWarning, match="only by their order"):
        rows = evaluation.rows_where(table=str(tmp_path / "attributes.csv"))
    assert rows["code"].tolist() == ["007", "010", "011"]
    assert rows["big"].tolist() == ["12345678901234567890", "12345678901234567891", "7"]
    assert rows["number"].tolist() == [0.5, 0.25, 1.5]


def test_a_file_without_a_header_is_read_by_numbers(tmp_path: Path) -> None:
    (tmp_path / "none.csv").write_text("1,1\n2,2\n2,1\n" * 4)
    assert evaluate_table(tmp_path / "none.csv", y_true="column0", y_pred="column1").n_samples == 12
