"""``cmtrack promote`` decides by stored predictions, says what it decided, and answers by its exit code."""

from __future__ import annotations

import contextlib
import hashlib
import json
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mlflow
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result
from mlflow.exceptions import MlflowException

from cmtrack import history
from cmtrack.cli import main
from cmtrack.tracking import quiet, tracking_store
from support.faults import draw_no_review
from support.stores import sqlite_store

N_ROWS = 1000
GAINS = {"2": (42, 34), "3": (60, 10), "4": (10, 60), "5": (0, 0), "6": (70, 15)}
"""Numbers of rows that only this version, and only version 1, predicts correctly."""


def month(number: int) -> pd.DataFrame:
    """Labelled rows of a month, with labels and probabilities that all versions predicted.

    Version 1 is wrong on 150 rows. Version 7 predicts only the label 0.
    """
    rng = np.random.default_rng(number)
    y = rng.permutation(np.arange(N_ROWS) % 2)
    frame = pd.DataFrame({"id": np.arange(N_ROWS) + N_ROWS * number, "y": y})
    order = rng.permutation(N_ROWS)
    wrong, right = order[:150], order[150:]
    for version, (only_new, only_old) in {"1": (0, 0), **GAINS}.items():
        is_correct = np.ones(N_ROWS, dtype=bool)
        is_correct[wrong[only_new:]] = False
        is_correct[right[:only_old]] = False
        predicted = np.where(is_correct, y, 1 - y)
        frame[f"v{version}"] = predicted
        frame[f"v{version}_p_0"] = np.where(predicted == 0, 0.8, 0.2)
        frame[f"v{version}_p_1"] = 1 - frame[f"v{version}_p_0"]
    frame["v7"] = 0
    return frame


@dataclass
class Registry:
    """A store with the versions 1 to 7 of "party", and a folder with the months as files."""

    client: mlflow.MlflowClient
    database: Path
    folder: Path
    aliases: int = 0

    def alias(self, version: str = "1") -> str:
        """Return a new alias of a version; records of other aliases do not belong to it."""
        self.aliases += 1
        name = f"champion{self.aliases}"
        self.client.set_registered_model_alias("party", name, version)
        return name

    def version_of(self, alias: str) -> str:
        return str(self.client.get_model_version_by_alias("party", alias).version)

    def digest(self) -> str:
        """Return a digest of all tables and artifacts."""
        with contextlib.closing(sqlite3.connect(self.database)) as connection:
            parts = ["\n".join(connection.iterdump()).encode()]
        files = sorted(one for one in self.database.parent.rglob("*") if one.is_file())
        files.remove(self.database)
        parts += [str(file).encode() + file.read_bytes() for file in files]
        return hashlib.sha256(b"".join(parts)).hexdigest()


@pytest.fixture(scope="module")
def registry(tmp_path_factory):
    folder = tmp_path_factory.mktemp("months")
    store = tmp_path_factory.mktemp("store")
    for number, name in enumerate(["april", "may", "june", "july"]):
        month(number).to_parquet(folder / f"{name}.parquet")
    database = store / "mlflow.db"
    with pytest.MonkeyPatch.context() as patch, quiet(), tracking_store(sqlite_store(database)):
        draw_no_review(patch)
        patch.chdir(folder)
        patch.setenv("COLUMNS", "300")
        client = mlflow.MlflowClient()
        client.create_experiment("party: history", (store / "artifacts").as_uri())
        for model, n_versions in {"party": 7, "votes": 1}.items():
            client.create_registered_model(model)
            for _ in range(n_versions):
                client.create_model_version(model, source="nowhere")
        yield Registry(client, database, folder)


def promote(*options: str) -> Result:
    """Run the command; the versions are the options that are numbers."""
    given = [f"models:/party/{one}" if one.isdigit() else one for one in options]
    result = CliRunner().invoke(main, ["promote", *given])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def on(name: str, alias: str, rank_by: str = "multiclass/accuracy") -> list[str]:
    """Return the options for a month and an alias."""
    columns = ["--y-true=y", "--y-pred=v{version}", "--row-ids=id"]
    return [f"--data={name}.parquet", *columns, f"--rank-by={rank_by}", f"--alias={alias}"]


def lines(result: Result) -> list[str]:
    """Return the printed lines without spaces at their ends."""
    return [line.rstrip() for line in result.stdout.splitlines() if line.strip()]


def table(result: Result) -> list[list[str]]:
    """Return the cells of the printed table of gates."""
    found = []
    for line in lines(result):
        cells = [cell.strip() for cell in line.split("  ") if cell.strip()]
        if len(cells) > 2 and cells[0] != "required" and cells[0] != "version":
            found.append(cells)
    return found


def test_promote_decides_and_a_later_move_completes_the_record(registry: Registry) -> None:
    alias = registry.alias()
    result = promote("3", *on("april", alias))
    assert result.exit_code == 0
    assert result.stderr == ""
    first, evidence, _, _, gate, moved, record, look = lines(result)
    assert first == f"Promote: version 3 may replace version 1 as {alias}."
    assert evidence == (
        "Accuracy is 5.0 percentage points higher [3.5, 6.7] on the same 1,000 rows of “april”: "
        "only version 3 is correct on 60, only version 1 on 10."
    )
    assert gate.split("  ")[0].strip() == "multiclass/accuracy.difference.low > 0"
    assert gate.endswith("holds")
    address = f"models:/party@{alias}"
    assert moved == f"{address} was not moved. Repeat the command with --move to move it."
    assert record.startswith("Record: run ")
    assert " in “party: history”, SHA-256 " in record
    assert "bundle SHA-256" in record
    assert look == (
        "Look 1 of 3 at version 3. If it were no better, its chance to be promoted over three "
        "looks would be at most 5.4% (7.3% if months differ much in size)."
    )
    assert registry.version_of(alias) == "1"
    again = promote("3", *on("april", alias), "--move")
    assert again.exit_code == 0
    assert lines(again)[0] == f"Promote: version 3 replaces version 1 as {alias}."
    assert f"{address} moved from version 1 to version 3." in lines(again)
    assert record in lines(again)
    run = record.split()[2]
    assert f"Note: Recorded before, as run {run}: this is no new look." in lines(again)
    assert registry.version_of(alias) == "3"


def test_keep_is_exit_code_1(registry: Registry) -> None:
    alias = registry.alias()
    result = promote("4", *on("april", alias), "--move")
    assert result.exit_code == 1
    assert lines(result)[0] == "Keep version 1: version 4 is worse."
    assert "Accuracy is 5.0 percentage points lower [−6.7, −3.5] on the same" in result.stdout
    assert "does not hold" in result.stdout
    assert "@" not in result.stdout
    assert registry.version_of(alias) == "1"


def test_three_months_are_joined_and_then_the_champion_stays(registry: Registry) -> None:
    alias = registry.alias()
    first = promote("2", *on("april", alias))
    assert first.exit_code == 3
    assert lines(first)[0] == "Cannot tell: version 2 may be better or worse than version 1."
    second = promote("2", *on("may", alias))
    assert second.exit_code == 3
    assert "on 2,000 rows: 1,000 of “may” and 1,000 of “april”. The earlier answer was" in (
        second.stdout
    )
    assert "Look 2 of 3 at version 2." in second.stdout
    third = promote("2", *on("june", alias))
    assert third.exit_code == 1
    assert lines(third)[0] == (
        "Keep version 1: three months did not show that version 2 is better."
    )
    assert "1,000 of “may” and 1,000 of “april”. The earlier answers were “cannot tell”." in (
        third.stdout
    )
    fourth = promote("2", *on("july", alias))
    assert fourth.exit_code == 2
    assert fourth.stderr == "Error: version 2 had its three looks at version 1\n"
    story = history("models:/party", alias=alias, verify=True, client=registry.client)
    assert (story.verified, story.problems) == (3, ())


@pytest.mark.slow
def test_of_several_challengers_the_best_is_promoted(registry: Registry) -> None:
    alias = registry.alias()
    result = promote("2", "3", "4", "6", *on("april", alias), "--move")
    assert result.exit_code == 0
    texts = lines(result)
    assert texts[0] == f"Promote: version 6 replaces version 1 as {alias}."
    assert [text.partition(":")[0] for text in texts[1:5]] == [
        "Version 2 (cannot tell)",
        "Version 3 (promote)",
        "Version 4 (keep)",
        "Version 6 (promote)",
    ]
    assert texts[5:7] == [
        "All intervals are 98.75% intervals, because four versions challenge the champion.",
        "Versions 3 and 6 meet all requirements. Version 6 improves most.",
    ]
    assert [(cells[0], cells[-1]) for cells in table(result)] == [
        ("2", "cannot tell"),
        ("3", "holds"),
        ("4", "does not hold"),
        ("6", "holds"),
    ]
    assert "Look 1 of 3 at versions 2, 3, 4 and 6. If a challenger were no better" in result.stdout
    assert registry.version_of(alias) == "6"
    other = registry.alias()
    open_ = promote("2", "4", *on("april", other))
    assert open_.exit_code == 3
    assert lines(open_)[0] == "Cannot tell: no challenger is shown to be better than version 1."


def test_force_names_the_first_champion_and_rolls_back(registry: Registry) -> None:
    alias = "live"
    first = promote("1", "--force=first champion", f"--alias={alias}")
    assert first.exit_code == 0
    assert lines(first)[:2] == [
        "Version 1 is live by force: first champion.",
        "models:/party@live is now version 1.",
    ]
    back = promote("4", *on("april", alias), "--force=rollback")
    assert back.exit_code == 0
    assert lines(back)[0] == (
        "Version 4 replaces version 1 as live by force: rollback. The answer of the rule is “keep”."
    )
    assert "models:/party@live moved from version 1 to version 4." in lines(back)
    assert "Look" not in back.stdout
    assert registry.version_of(alias) == "4"


@pytest.mark.slow
def test_an_alias_that_was_moved_back_by_hand_moves_again(registry: Registry) -> None:
    alias = registry.alias()
    assert promote("3", *on("april", alias), "--move").exit_code == 0
    registry.client.set_registered_model_alias("party", alias, "1")
    shown = promote("3", *on("april", alias))
    assert lines(shown)[0] == f"Promote: version 3 may replace version 1 as {alias}."
    assert f"models:/party@{alias} was not moved." in shown.stdout
    assert registry.version_of(alias) == "1"
    moved = promote("3", *on("april", alias), "--move")
    assert f"models:/party@{alias} moved from version 1 to version 3." in lines(moved)
    assert registry.version_of(alias) == "3"
    # The rows favor the version that they chose.
    again = promote("6", *on("april", alias))
    (note,) = [line for line in lines(again) if line.startswith("Note: ")]
    assert note.startswith("Note: These rows chose version 3 on ")


@pytest.mark.slow
def test_joined_clusters_are_assumed_to_be_others_each_month(registry: Registry) -> None:
    alias = registry.alias()
    for name in ("april", "may"):
        frame = pd.read_parquet(registry.folder / f"{name}.parquet")
        frame["person"] = np.arange(N_ROWS) // 2
        frame.to_parquet(registry.folder / f"people_{name}.parquet")
    assumption = "The interval assumes that each month has other clusters."
    first = promote("2", *on("people_april", alias), "--groups=person")
    assert assumption not in first.stdout
    second = promote("2", *on("people_may", alias), "--groups=person")
    assert assumption in second.stdout
    # The names of several files are the name of the rows.
    both = promote("2", *on("april", alias), "--data=may.parquet", "--dry-run", "--json")
    assert json.loads(both.stdout)["rows"]["name"] == "april and may"


def test_a_dry_run_writes_nothing(registry: Registry) -> None:
    alias = registry.alias()
    before = registry.digest()
    result = promote("3", *on("april", alias), "--dry-run")
    assert result.exit_code == 0
    assert registry.digest() == before
    assert "Note: Not recorded: history cannot count this look." in lines(result)
    assert "Record" not in result.stdout.replace("Recorded", "")
    assert f"models:/party@{alias}" not in result.stdout


def test_sentence_table_markdown_and_json_agree(registry: Registry, tmp_path: Path) -> None:
    alias = registry.alias()
    summary, comment = tmp_path / "summary.md", tmp_path / "comment.md"
    summary.write_text("before\n", encoding="utf-8")
    files = [f"--summary={summary}", f"--comment={comment}"]
    shown = promote("2", *on("april", alias), *files)
    data = json.loads(promote("2", *on("april", alias), "--json").stdout)
    assert (data["answer"], data["moved"], data["chosen"]) == ("cannot tell", False, None)
    difference, _, low, high = data["pairs"][0][3]
    assert (round(difference, 9), data["pairs"][0][4][:2]) == (0.008, [42, 34])
    evidence = lines(shown)[1]
    interval = f"[{100 * low:.1f}, {100 * high:.1f}]".replace("-", "−")
    assert f"0.8 percentage points higher {interval}" in evidence
    more = float(f"{data['rows_more']:.2g}")
    assert f"About {more:,.0f} more rows would decide" in evidence
    ((required, found, answer),) = table(shown)
    text, outcome, value, _, version = data["gates"][0]
    assert (required, answer, outcome, version) == (text, "cannot tell", "open", "2")
    assert float(found.replace("−", "-")) == pytest.approx(value, rel=5e-3)
    assert value == low
    run, sha256 = data["run_id"], data["sha256"]
    assert f"Record: run {run[:8]} in “party: history”, SHA-256 {sha256[:8]}…" in shown.stdout
    markdown = summary.read_text(encoding="utf-8").removeprefix("before\n").rstrip("\n")
    title, _, body, _, head, rule, row, *rest = markdown.splitlines()
    assert title == f"### Cannot tell: version 2 against version 1, {alias} of party"
    assert body == f"Version 2 may be better or worse than version 1. {evidence}"
    assert (head, rule) == ("| required | found |  |", "|---|---|---|")
    assert row == f"| `{required}` | {found} | **cannot tell** |"
    assert rest[-1].endswith(f"Record: SHA-256 `{sha256}`.")
    marker, _, commented = comment.read_text(encoding="utf-8").partition("\n")
    assert marker == f"<!-- cmtrack promote party@{alias} -->"
    assert commented.rstrip("\n") == markdown
    # A comment replaces the comment before.
    promote("2", *on("april", alias), f"--comment={comment}")
    assert comment.read_text(encoding="utf-8").count("<!--") == 1


def test_markdown_shows_intervals_and_escapes_names(registry: Registry, tmp_path: Path) -> None:
    alias = registry.alias()
    summary = tmp_path / "summary.md"
    name = "[1, 2](http://x) <img> \u05d0\u05d1 a_b"
    result = promote("4", *on("april", alias), f"--name={name}", f"--summary={summary}")
    assert f"of “{name}”" in result.stdout
    text = summary.read_text(encoding="utf-8")
    assert "Accuracy is 5.0 percentage points lower [−6.7, −3.5] on the same" in text
    escaped = r"\[1, 2\](http://x) &lt;img&gt; " + "\u2068\u05d0\u05d1\u2069 " + r"a\_b"
    assert f"of “{escaped}”" in text


@pytest.mark.slow
def test_lower_is_better_for_log_loss(registry: Registry) -> None:
    alias = registry.alias()
    columns = ["--data=may.parquet", "--y-true=y", "--y-prob=v{version}_p_*", "--row-ids=id"]
    options = [*columns, "--rank-by=probability/log_loss", f"--alias={alias}"]
    better = promote("3", *options)
    assert better.exit_code == 0
    assert lines(better)[0] == f"Promote: version 3 may replace version 1 as {alias}."
    assert "Log loss is 0.07 lower [−" in lines(better)[1].replace("0.069", "0.07")
    assert table(better)[0][0] == "probability/log_loss.difference.high < 0"
    worse = promote("4", *options)
    assert worse.exit_code == 1
    assert lines(worse)[0] == "Keep version 1: version 4 is worse."
    assert " higher [" in lines(worse)[1]


def test_no_row_differs_and_an_undefined_metric_cannot_tell(registry: Registry) -> None:
    alias = registry.alias()
    same = promote("5", *on("april", alias))
    assert same.exit_code == 3
    assert lines(same)[:2] == [
        "Cannot tell: versions 5 and 1 are correct on the same rows.",
        "Accuracy is equal: each of its 1,000 rows is correct for both versions or for neither.",
    ]
    constant = promote("7", *on("april", alias, "binary/precision"), "--positive=1")
    assert constant.exit_code == 3
    assert lines(constant)[0].endswith(" is undefined for version 7.")
    assert "binary/precision of version 7 is undefined: it predicts only “0”" in constant.stdout


# -- rules -----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_requirements_decide_in_place_of_an_improvement(registry: Registry) -> None:
    alias = registry.alias()
    gates = ["--require=multiclass/accuracy.difference.low > -0.05", "--positive=1"]
    holds = promote("2", *on("april", alias), *gates)
    assert holds.exit_code == 0
    # The chance of a promotion is stated only if an improvement is required.
    assert lines(holds)[-1] == "Look 1 of 3 at version 2."
    refuted = promote("2", *on("april", alias), *gates, "--require=binary/recall >= 0.99")
    assert refuted.exit_code == 1
    assert lines(refuted)[0] == "Keep version 1: version 2 does not meet 1 of 2 requirements."
    gain = "--require=multiclass/accuracy.difference.low > 0.045"
    open_ = promote("3", *on("april", alias), gain)
    assert open_.exit_code == 3
    assert lines(open_)[0] == "Cannot tell: these rows leave the requirement open."


def test_a_rule_file_is_the_whole_rule(registry: Registry, tmp_path: Path) -> None:
    alias = registry.alias()
    columns = [option for option in on("april", alias) if not option.startswith("--rank-by")]
    rule = tmp_path / "rule.yaml"
    rule.write_text("rank_by: multiclass/accuracy\nconfidence_level: 0.9\n", encoding="utf-8")
    summary = tmp_path / "summary.md"
    result = promote("3", *columns, f"--rule={rule}", f"--summary={summary}", "--json")
    data = json.loads(result.stdout)
    facts = data["rule"]
    assert data["rows"]["name"] == "april"
    assert (facts["file"], facts["level"]) == ("rule.yaml", 0.9)
    digest = hashlib.sha256(rule.read_bytes()).hexdigest()
    assert facts["sha256"] == digest
    assert f"Rule `rule.yaml`: SHA-256 {digest[:8]}…." in summary.read_text(encoding="utf-8")
    both = promote("3", *on("april", alias), f"--rule={rule}")
    assert both.exit_code == 2
    assert both.stderr.splitlines()[-1] == (
        "Error: a rule file contains the whole rule; leave out --require and --rank-by"
    )
    for text, message in {
        "block: params.fold": "a rule with 'block' is for repeated runs, but a promotion compares",
        "against: models:/party/1": "leave out 'against', because the alias names the champion",
    }.items():
        rule.write_text(f"{text}\n", encoding="utf-8")
        refused = promote("3", *columns, f"--rule={rule}")
        assert refused.exit_code == 2
        assert refused.stderr.startswith(f"Error: rule.yaml: {message}")


# -- bad input -------------------------------------------------------------------------------------

APRIL = ["--data=april.parquet", "--y-true=y", "--y-pred=v{version}"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["3", *APRIL, "--alias=best"], "party has no alias 'best'; name the first champion: "
         'cmtrack promote models:/party/3 --force "first champion" --alias best'),
        (["9", *APRIL], "party has no version 9, the newest is 7"),
        (["models:/prty/1", *APRIL], "there is no registered model 'prty'; did you mean 'party'?"),
        (["1", *APRIL], "version 1 is the champion already"),
        (
            ["3", "models:/votes/1", *APRIL],
            "challengers must be versions of one registered model, got party and votes",
        ),
        (
            ["3", "--data=april.parquet", "--y-true=yy", "--y-pred=v{version}"],
            "april.parquet has no column 'yy'; did you mean 'y'?",
        ),
        (
            ["3", "--data=april.parquet", "--y-true=y", "--y-pred=w{version}"],
            "april.parquet has no column 'w3'; did you mean 'v3'?",
        ),
        (
            ["3", "--data=april.parquet", "--y-true=y", "--y-prob=v1_p_*"],
            "--y-prob 'v1_p_*' means the same columns for versions 3 and 1: write 'v{version}_p_*'",
        ),
        (
            ["3", *APRIL, "--rank-by=probability/log_loss"],
            "the rule ranks by probability/log_loss, and version 3 gives labels only",
        ),
        (["3", *APRIL, "--positive=yes"], "'yes' is not a label in 'y', which contains integers"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_in_one_sentence(
    registry: Registry, options: list[str], message: str
) -> None:
    registry.client.set_registered_model_alias("party", "champion", "1")
    result = promote(*options)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.splitlines()[0] == f"Error: {message}"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["3", *APRIL, "--move", "--dry-run"], "--dry-run writes nothing; leave out --move and"),
        (["3", "--force= "], "--force needs a reason, such as 'first champion'"),
        (["3"], "give --data and --y-true; only --force works without rows"),
        (["3", "--data=april.parquet"], "give --data and --y-true together"),
        (["3", "--data=no.parquet", "--y-true=y"], "Invalid value for --data: File 'no.parquet'"),
        (["3", *APRIL, "--y-prob=p_*", "--y-score=d_*"], "give --y-prob or --y-score, not both"),
    ],
)
def test_conflicting_options_are_refused(options: list[str], message: str) -> None:
    result = promote(*options)
    assert result.exit_code == 2
    assert f"Error: {message}" in result.stderr


def test_an_alias_that_moves_meanwhile_or_is_refused_is_exit_code_2(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    alias = registry.alias()
    client = registry.client
    tag_version = mlflow.MlflowClient.set_model_version_tag

    def tag_and_move(self: Any, *given: Any) -> None:
        tag_version(self, *given)
        client.set_registered_model_alias("party", alias, "2")

    def refuse(*_: Any) -> None:
        raise MlflowException("permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(mlflow.MlflowClient, "set_model_version_tag", tag_and_move)
        result = promote("3", *on("april", alias), "--move")
    assert result.exit_code == 2
    start, _, end = result.stderr.partition(", but ")
    assert start.startswith("Error: recorded as run ")
    assert end == f"{alias} moved from version 1 to version 2 meanwhile: nothing was moved\n"
    assert registry.version_of(alias) == "2"
    other = registry.alias()
    with monkeypatch.context() as patch:
        patch.setattr(mlflow.MlflowClient, "set_registered_model_alias", refuse)
        result = promote("3", *on("april", other), "--move")
    assert result.exit_code == 2
    assert result.stderr.endswith(", but the alias was refused: permission denied\n")


def test_an_interrupted_command_has_no_answer(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(mlflow.MlflowClient, "get_registered_model", interrupt)
    result = promote("3", *APRIL)
    assert result.exit_code == 2
    assert result.stderr == "Error: interrupted: see the newest run of the model's history\n"


def test_a_summary_that_cannot_be_written_stops_before_anything_is_recorded(registry) -> None:
    alias = registry.alias()
    before = registry.digest()
    result = promote("4", *on("april", alias), "--move", "--summary=/nonexistent/summary.md")
    assert result.exit_code == 2
    assert "/nonexistent/summary.md" in result.stderr
    assert registry.version_of(alias) == "1"
    assert registry.digest() == before
