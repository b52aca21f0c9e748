"""Names and parameters of runs are neither formulas, nor commands to what reads the output, nor secrets in a bundle."""

from __future__ import annotations

import csv
import json
import re
import zipfile
from pathlib import Path
from typing import Any

import mlflow
import numpy as np
import pytest
from click.testing import CliRunner

from cmtrack import compare, evaluate, log_evaluation
from cmtrack.cli import main
from cmtrack.evaluation import loads
from cmtrack.untrusted import without_credentials, without_secret

pytestmark = pytest.mark.slow

Y = [0, 1, 1, 0] * 9
FORMULAS = [
    '=HYPERLINK("http://localhost/","open")',
    "@SUM(1+1)",
    "+1+cmd",
    "-2+3",
    "\tx",
    "\x1b]0;owned\x07red",
]


def logged(names: list[str], params: dict[str, str] | None = None) -> list[str]:
    ids = []
    for k, name in enumerate(names):
        with mlflow.start_run(run_name=name) as run:
            mlflow.log_params(params or {})
            log_evaluation(Y, [0, 1, k % 2, 0] * 9, figures=False, strict=True)
        ids.append(run.info.run_id)
    return ids


def test_names_of_runs_are_text_in_a_csv_file(store: Any, tmp_path: Path) -> None:
    logged(FORMULAS)
    file = tmp_path / "runs.csv"
    done = CliRunner().invoke(main, ["compare", "--experiment", "e", "--csv", str(file)])
    assert done.exit_code == 0, done.output
    with file.open(newline="") as rows:
        head, *cells = csv.reader(rows)
    names = {row[head.index("name")] for row in cells}
    assert {
        '\'=HYPERLINK("http://localhost/","open")',
        "'@SUM(1+1)",
        "'+1+cmd",
        "'-2+3",
        "x",
    } < names
    others = [cell for row in cells for cell in row if cell not in names]
    assert not [
        cell
        for cell in others
        if re.match(r"[=+@-]", cell) and not re.fullmatch(r"-[\d.e-]+", cell)
    ]
    assert not [cell for row in cells for cell in row if "\x1b" in cell]


@pytest.mark.parametrize("pad", [45, 52, 70])
def test_a_name_gives_no_command_to_a_runner(
    store: Any, pad: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    commands = (
        "::error::all gates passed ::set-output name=a::b ##[section] ##vso[task] ##teamcity[x"
    )
    (run_id,) = logged(["x" * pad + f" {commands}"])
    for given in (
        ["gate", run_id, "--require", "multiclass/accuracy >= 0.5"],
        ["compare", run_id],
        ["show", run_id],
    ):
        output = CliRunner().invoke(main, given).output
        assert "passed" in output or given[0] != "gate"
        assert not re.search(r"::[a-z]|##(\[|vso|teamcity)", output)


SECRETS = {
    "api_key": "sk-SECRET-123",
    "hf.token": "SECRET-2",
    "dbPassword": "SECRET-3",
    "max_tokens": "512",
}


def test_secrets_among_the_parameters_are_in_no_bundle(store: Any, tmp_path: Path) -> None:
    logged(["a", "b"], SECRETS | {"data": "postgresql://me:SECRET-4@db/x"})
    comparison = compare(experiment_names=["e"])
    archive = zipfile.ZipFile(comparison.bundle(tmp_path / "b.zip"))
    assert not [name for name in archive.namelist() if b"SECRET" in archive.read(name)]
    assert "SECRET" not in json.dumps(comparison.to_dict(), default=str)
    assert comparison.runs[0].run.params == dict.fromkeys(
        ("api_key", "hf.token", "dbPassword"), "***"
    ) | {
        "max_tokens": "512",
        "data": "postgresql://db/x",
    }


@pytest.mark.parametrize(
    "name", ["author", "tokenizer", "max_tokens", "n_authors", "signatures_kept", "key_size"]
)
def test_other_parameters_keep_their_values(name: str) -> None:
    assert without_secret(name, "5") == "5"


def test_secrets_in_addresses_are_found_in_linear_time() -> None:
    text = "http://h/a?x=1&my_Token=abc&y=2#z and https://me:pa@h/?signature=q z"
    assert (
        without_credentials(text)
        == "http://h/a?x=1&my_Token=***&y=2#z and https://h/?signature=*** z"
    )
    # cubic time would take years
    assert without_credentials("?token" * 50_000) == "?token" * 50_000


@pytest.mark.parametrize("part", ["tops", "target_tops"])
def test_a_table_with_more_rows_than_classes_is_refused_before_it_is_made(part: str) -> None:
    rng = np.random.default_rng(0)
    y, p = rng.integers(0, 3, 300), rng.dirichlet(np.ones(3), 300)
    data = json.loads(evaluate(y, y_prob=p, target=p).to_json())
    data["statistics"][part] = {
        "shape": [10**7, 3, 64],
        "steps": [0],
        "sums": [1],
    }
    with pytest.raises(
        ValueError, match=r"an array must have shape \((3|1), 3, 64\), got \(10000000, 3, 64\)"
    ):
        loads(json.dumps(data))
