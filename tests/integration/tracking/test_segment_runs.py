"""Past runs by segments that were not declared, from Python and from the command line."""

from __future__ import annotations

import json
import re

import mlflow
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from mlflow import MlflowClient

from cmtrack import Evaluation, compare, evaluate, load_evaluation, log_evaluation, segment_runs
from cmtrack.cli import main
from support.problems import random_scores

N = 600
RNG = np.random.default_rng(5)
IDS = np.array([f"r{k:04d}" for k in range(N)])
REGION = RNG.choice(["north", "south", "east"], N)
AGE = np.where(RNG.random(N) < 0.5, "old", "young")
ACTUAL = RNG.choice(["no", "yes"], N)
MOVED = (np.roll(ACTUAL, 1) != ACTUAL).sum()
TABLE = pd.DataFrame({"id": IDS, "region": REGION, "age": AGE, "y": ACTUAL})


def scores(seed: int):
    return random_scores(ACTUAL == "yes", np.where(REGION == "south", 0.5, 2.6), seed)


@pytest.fixture
def runs(store, undrawn):
    """Two runs that keep their rows and the digest of their ids, and declare no segments."""
    found = []
    for seed in (1, 2):
        with mlflow.start_run() as run:
            evaluation = evaluate(ACTUAL, y_prob=scores(seed), labels=["no", "yes"], row_ids=IDS)
            log_evaluation(evaluation, strict=True)
        found.append(run.info.run_id)
    return found


def declared(seed: int, columns):
    return evaluate(ACTUAL, y_prob=scores(seed), labels=["no", "yes"], segments=(TABLE, columns))


@pytest.mark.slow
def test_segments_of_old_runs_are_those_that_would_have_been_declared(runs):
    columns = ["region", ("region", "age")]
    found = segment_runs(runs, TABLE, row_ids="id", segments=columns)
    for seed, evaluation in zip((1, 2), found, strict=True):
        wanted = declared(seed, columns)
        for name in wanted.segments:
            pd.testing.assert_frame_equal(
                evaluation.segments[name].to_frame(), wanted.segments[name].to_frame(), rtol=1e-12
            )
        parts = [
            evaluation.segments["region"][value].confusion_matrix.counts
            for value in ("north", "south", "east")
        ]
        assert np.array_equal(sum(parts), evaluation.confusion_matrix.counts)
        assert evaluation.metrics == pytest.approx(
            dict(mlflow_evaluation(runs[seed - 1]).metrics), rel=1e-12, nan_ok=True
        )
    search = found[0].worst_segments("multiclass/accuracy", min_rows=50)
    assert search.segments[0].text.startswith("region = south")
    assert all("cmtrack_segments.json" not in files(run) for run in runs)


def mlflow_evaluation(run_id: str):
    return load_evaluation(run_id)


def files(run_id: str) -> set[str]:
    return {item.path for item in MlflowClient().list_artifacts(run_id)}


@pytest.mark.slow
def test_rows_are_found_by_the_index_in_whatever_order(runs):
    shuffled = pd.concat(
        [TABLE.sample(frac=1, random_state=0), TABLE.head(3).assign(id=["x", "y", "z"])]
    )
    (found,) = segment_runs(runs[:1], shuffled.set_index("id"), row_ids=IDS, segments=["region"])
    wanted = declared(1, ["region"])
    assert np.array_equal(found.segments["region"].sizes.sum(), N)
    frames = [
        one.segments["region"].to_frame().sort_values(["metric", "segment"])
        for one in (found, wanted)
    ]
    assert frames[0]["value"].tolist() == frames[1]["value"].tolist()


@pytest.mark.slow
def test_labels_match_rows_too(runs):
    (found,) = segment_runs(runs[0], TABLE, y_true="y", segments=["age"])
    assert found.segments["age"].values == declared(1, ["age"]).segments["age"].values


@pytest.mark.slow
def test_rows_by_place_alone_are_warned_of(runs):
    with pytest.warns(UserWarning, match="only by their order"):
        (found,) = segment_runs(runs[0], TABLE, segments=["age"])
    assert len(found.segments["age"]) == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "options", "said"),
    [
        (
            lambda t: t.head(590),
            {"row_ids": "id"},
            "each of the 600 rows, got 590: 10 do not match",
        ),
        (lambda t: t.iloc[::-1], {"row_ids": "id"}, "the same ids in another order"),
        (
            lambda t: t.assign(id=["x", *IDS[1:]]),
            {"row_ids": "id"},
            "some ids belong to other rows",
        ),
        (lambda t: t.assign(id="x"), {"row_ids": "id"}, "must not repeat"),
        (
            lambda t: t.set_index("id").iloc[7:],
            {"row_ids": IDS},
            "7 of 600 row ids are not in its index",
        ),
        (lambda t: t.set_index("region"), {"row_ids": IDS}, "index of the table must not repeat"),
        (lambda t: t, {"row_ids": IDS[:5]}, "one id for each of the run's 600 rows, got 5"),
        (lambda t: t.assign(y=np.roll(ACTUAL, 1)), {"y_true": "y"}, f"{MOVED} of 600 rows"),
        (
            lambda t: t,
            {"row_ids": "ids"},
            "row_ids must be a column of the table, one of .*'id'.*, got 'ids'",
        ),
        (lambda t: t, {"y_true": "why"}, "table must have the column 'why'"),
        (lambda t: t.assign(age=1), {"row_ids": "id"}, "must contain at least two values"),
        (lambda t: t.drop(columns="age"), {"row_ids": "id"}, "table must have the column 'age'"),
    ],
    ids=[
        "shorter",
        "order",
        "ids",
        "repeated",
        "lacking",
        "index",
        "few",
        "labels",
        "no ids",
        "no labels",
        "one",
        "none",
    ],
)
def test_tables_that_do_not_match(runs, change, options, said):
    with pytest.raises(ValueError, match=said):
        segment_runs(runs[:1], change(TABLE), segments=["age"], **options)


@pytest.mark.slow
def test_runs_without_rows_or_ids(runs):
    with mlflow.start_run(experiment_id=MlflowClient().get_run(runs[0]).info.experiment_id) as run:
        log_evaluation(ACTUAL, ACTUAL, predictions=False, strict=True)
    with pytest.raises(ValueError, match="predictions by row were not kept"):
        segment_runs(run.info.run_id, TABLE, segments=["age"], y_true="y")
    with mlflow.start_run(experiment_id=MlflowClient().get_run(runs[0]).info.experiment_id) as run:
        log_evaluation(ACTUAL, ACTUAL, strict=True)
    with pytest.raises(ValueError, match="logged without row ids"):
        segment_runs(run.info.run_id, TABLE, segments=["age"], row_ids="id")
    assert len(segment_runs(run.info.run_id, TABLE, segments=["age"], y_true="y")) == 1


@pytest.mark.slow
def test_the_table_is_logged_where_that_is_asked_for(runs):
    segment_runs(runs, TABLE, row_ids="id", segments=["region"], log=True)
    for run in runs:
        folder = MlflowClient().get_run(run).info.artifact_uri
        table = json.loads(mlflow.artifacts.load_text(f"{folder}/cmtrack_segments.json"))
        assert [row[0] for row in table["data"]] == [
            "region: east",
            "region: north",
            "region: south",
        ]
        paths = [
            one["path"]
            for one in json.loads(MlflowClient().get_run(run).data.tags["mlflow.loggedArtifacts"])
        ]
        assert paths == ["cmtrack_classes.json", "cmtrack_segments.json"]


@pytest.mark.slow
def test_columns_of_a_table_in_different_orders_are_refused(runs):
    columns = {"id": TABLE["id"], "region": TABLE["region"].sample(frac=1, random_state=0)}
    with pytest.raises(ValueError, match="in the same order"):
        segment_runs(runs[:1], columns, row_ids="id", segments=["region"])


# -- command line ------------------------------------------------------------------------------------------------------


def called(*arguments: str):
    return CliRunner().invoke(
        main, ["segments", *arguments, "--tracking-uri", mlflow.get_tracking_uri()]
    )


@pytest.mark.slow
def test_the_command_line_joins_and_searches(runs):
    TABLE.to_csv("t.csv", index=False)
    options = [
        "--table",
        "t.csv",
        "--row-ids",
        "id",
        "--segment",
        "region",
        "--segment",
        "age",
        "--json",
    ]
    done = called(*runs, *options, "--worst", "--metric", "binary/recall", "--min-rows", "30")
    assert done.exit_code == 0, done.output
    out = json.loads(done.stdout)
    assert [one["run"] for one in out["runs"]] == runs
    region, age = out["runs"][0]["columns"]
    (wanted,) = segment_runs(runs[0], TABLE, row_ids="id", segments=["region", "age"])
    frame = wanted.segments["region"].to_frame("binary/recall")
    assert [row["value"] for row in region["segments"]] == frame["value"].tolist()
    assert region["sentences"][0].startswith("Segment “south” of “region” (")
    assert (age["column"], age["sentences"]) == ("age", [])
    assert (
        region["disparity"]["binary/recall"]["gap"]
        == wanted.segments["region"].disparity("binary/recall").gap
    )
    assert out["worst"]["segments"][0]["segment"].startswith("region = south")


@pytest.mark.slow
def test_the_command_line_prints_tables(runs):
    TABLE.to_csv("t.csv", index=False)
    done = called(runs[0], "--table", "t.csv", "--row-ids", "id", "--segment", "region", "--worst")
    assert done.exit_code == 0, done.output
    words = " ".join(done.stdout.split())
    assert "Accuracy by “region”, the worst first" in words
    assert "Segment “south” of “region” (" in words
    assert re.search(r"[1-9]\d* of \d+ searched segments (is|are) significantly worse", words)


@pytest.mark.slow
def test_the_command_line_shows_declared_segments_of_a_folder_and_of_a_run(runs, tmp_path):
    evaluation = declared(1, ["region"])
    evaluation.save(tmp_path / "kept")
    done = called(str(tmp_path / "kept"), "--json")
    assert done.exit_code == 0, done.output
    assert [one["column"] for one in json.loads(done.stdout)["runs"][0]["columns"]] == ["region"]


METRICS = ["multiclass/accuracy", "binary/recall", "binary/precision"]


def in_python(first, second, columns):
    """The differences of two evaluations and their ends, by column, metric and segment, as Python gives them."""
    comparison = compare(
        {"first": first, "second": second}, rank_by=METRICS, segments=columns, confidence_level=0.95
    )
    out = {}
    for pair in comparison.segments.pairs:
        ends = np.array([pair.differences, pair.low, pair.high])
        if pair.first == "second":  # which leads the ranking
            ends = -ends[[0, 2, 1]]
        for segment, values in zip(pair.segments, ends.T.tolist(), strict=True):
            out[pair.column, pair.metric, segment] = values
    return out


@pytest.mark.slow
@pytest.mark.parametrize("way", ["table", "run and folder"])
def test_the_command_line_compares_two_runs_by_segment(runs, way, tmp_path):
    TABLE.to_csv("t.csv", index=False)
    evaluations = [declared(seed, ["region", "age"]) for seed in (1, 2)]
    given, options = (
        runs,
        ["--table", "t.csv", "--row-ids", "id", "--segment", "region", "--segment", "age"],
    )
    if way == "run and folder":
        with mlflow.start_run() as run:
            log_evaluation(evaluations[0], strict=True)
        evaluations[1].save(tmp_path / "kept")
        given, options = [run.info.run_id, "kept"], []
    done = called(*given, *options, "--json")
    assert done.exit_code == 0, done.output
    out = json.loads(done.stdout)["differences"]
    assert (len(out["pairs"]), out["sentences"], out["notes"]) == (6, [], [])
    assert all(pair["paired"] for pair in out["pairs"])
    found = {
        (pair["column"], pair["metric"], segment): values
        for pair in out["pairs"]
        for segment, *values in zip(
            pair["segments"], pair["differences"], pair["low"], pair["high"], strict=True
        )
    }
    wanted = in_python(*evaluations, ["region", "age"])
    assert found.keys() == wanted.keys()
    for place, values in found.items():
        assert values == pytest.approx(wanted[place], abs=1e-12)
    done = called(*given, *options)
    assert done.exit_code == 0, done.output
    words = " ".join(done.stdout.split())
    assert "of all segments hold together" not in words
    assert words.count("(Gail and Simon 1985): p") == 6
    assert words.count("Brackets show 95% intervals of the differences, which hold for all") == 2
    assert "Not compared row by row" not in words
    assert max(map(len, done.stdout.splitlines())) <= 80


def told(*arguments):
    """What the command prints, as one line, and with --json, as data."""
    printed, data = (
        CliRunner().invoke(main, ["segments", *arguments, *more]) for more in ((), ("--json",))
    )
    assert (printed.exit_code, data.exit_code) == (0, 0), printed.output
    return " ".join(printed.stdout.split()), json.loads(data.stdout)


@pytest.mark.slow
def test_runs_without_rows_say_why_they_are_not_paired(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for seed in (1, 2):
        declared(seed, ["region"]).save(str(seed), rows=False)
    words, data = told("1", "2")
    assert [pair["paired"] for pair in data["differences"]["pairs"]] == [False] * 3
    assert words.count("Not compared row by row with “2”: the first evaluation has no rows") == 1


def test_better_overall_and_worse_for_some_is_said_where_it_holds(tmp_path, monkeypatch):
    right = {"north": (95, 60), "south": (55, 85)}  # of 100 rows each, of the two runs
    actual = np.tile([0, 1], 100)
    region = pd.DataFrame({"region": np.repeat(["north", "south"], 100)})
    for k, name in enumerate("BA"):
        hit = np.concatenate([np.arange(100) < right[place][k] for place in right])
        evaluate(actual, np.where(hit, actual, 1 - actual), segments=region).save(tmp_path / name)
    monkeypatch.chdir(tmp_path)
    for given, said in (
        ("BA", "“B” is better overall than “A” (not significantly), but worse for “south”"),
        ("AB", "“A” is worse overall than “B” (not significantly), but better for “south”"),
    ):
        words, data = told(*given, "--metric", "multiclass/accuracy")
        (sentence,) = data["differences"]["sentences"]
        assert sentence.startswith(said)
        assert sentence in words


@pytest.mark.slow
def test_runs_that_cannot_be_compared_by_segment_stand_side_by_side(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    declared(1, ["region", "age"]).save("one")
    declared(2, ["age", "region"]).save("turned")
    declared(2, ["age"]).save("lacking")
    evaluate(
        ACTUAL[::-1], y_prob=scores(2)[::-1], labels=["no", "yes"], segments=TABLE[["region"]][::-1]
    ).save("other")

    for other, pairs, first in (
        ("turned", 6, ""),
        (
            "lacking",
            3,
            "“one” and “lacking” are not compared by “region”: the second has no such segments.",
        ),
        (
            "other",
            0,
            "“one” and “other” are not compared by “region”: they were evaluated on different evaluation data.",
        ),
    ):
        words, data = told("one", other)
        notes = data["differences"]["notes"]
        assert (len(data["differences"]["pairs"]), "".join(notes[:1])) == (pairs, first)
        assert all(note in words for note in notes)


@pytest.mark.parametrize("by", [[], ["--segment", "age"]], ids=["all", "one"])
def test_declared_columns_are_searched(by, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    declared(1, ["region", "age"]).save("kept")
    wanted = declared(1, ["age"] if by else ["region", "age"]).worst_segments(
        "multiclass/accuracy", min_rows=30
    )
    done = CliRunner().invoke(
        main, ["segments", "kept", *by, "--worst", "--min-rows", "30", "--json"]
    )
    out = json.loads(done.stdout)["worst"]
    assert out["searched"] == wanted.searched
    assert [one["segment"] for one in out["segments"]] == [one.text for one in wanted.segments]


@pytest.mark.slow
def test_a_search_that_cannot_be_prints_what_is_declared_and_leaves_columns_out(tmp_path):
    """Persons lie in one site, with a row without it, and in several ages."""
    site = np.where(np.arange(N) % 10 == 3, None, SITE)
    evaluate(
        ACTUAL,
        y_prob=scores(1),
        labels=["no", "yes"],
        groups=PERSON,
        segments={"site": site, "age": AGE},
    ).save(tmp_path)
    done = called(str(tmp_path), "--worst", "--min-rows", "30")
    words = " ".join(done.output.split())
    assert done.exit_code == 2
    assert "Accuracy by “site”" in words
    assert "several segments of 'age': leave this column out (--leave-out)" in words
    assert json.loads(called(str(tmp_path), "--worst", "--json").stdout)["runs"]
    done = called(str(tmp_path), "--worst", "--min-rows", "30", "--leave-out", "age", "--json")
    assert done.exit_code == 0, done.output
    out = json.loads(done.stdout)
    assert {one["segment"] for one in out["worst"]["segments"]} == {
        "site = A",
        "site = B",
        "site = C",
    }
    assert (
        "60 rows without a value of 'site' are searched with the value of their cluster."
        in out["worst"]["notes"]
    )
    assert [one["column"] for one in out["runs"][0]["columns"]] == ["site", "age"]
    missing = [
        one for one in out["runs"][0]["columns"][0]["segments"] if one["segment"] == "(missing)"
    ]
    assert {one["rows"] for one in missing} == {60}
    assert called(str(tmp_path), "--worst", "--leave-out", "ag").exit_code == 2
    assert called(str(tmp_path), "--leave-out", "age").exit_code == 2


def test_a_search_without_rows_is_refused(tmp_path):
    declared(1, ["region"]).save(tmp_path, rows=False)
    done = CliRunner().invoke(main, ["segments", str(tmp_path), "--worst"])
    assert done.exit_code == 2
    assert "worst_segments needs the rows" in " ".join(done.output.split())
    assert "(rows=True loads them)" in " ".join(done.output.split())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "the rows were evaluated without segments; use --table and --segment"),
        (["--segment", "region"], "evaluated without segments"),
        (["--worst"], "evaluated without segments"),
        (["--log"], "need --table"),
        (["--table", "t.csv"], "--table needs --segment"),
        (["--table", "t.csv", "--segment", "regio", "--row-ids", "id"], "did you mean 'region'"),
        (["--table", "short.csv", "--segment", "region", "--row-ids", "id"], "10 do not match"),
        (
            [
                "--table",
                "t.csv",
                "--segment",
                "region",
                "--row-ids",
                "id",
                "--metric",
                "binary/recal",
            ],
            "binary/recall",
        ),
    ],
    ids=["none", "undeclared", "worst", "log", "by", "column", "rows", "metric"],
)
def test_the_command_line_says_what_is_wrong(runs, options, said):
    TABLE.to_csv("t.csv", index=False)
    TABLE.head(590).to_csv("short.csv", index=False)
    done = called(runs[0], *options)
    assert done.exit_code == 2, done.output
    assert said in " ".join(done.output.split())


# -- rows that belong together -----------------------------------------------------------------------------------------

PERSON = np.arange(N) // 10
SITE = np.array(["A", "B", "C"])[(PERSON * 7) % 3]
ENDS = ["segment", "value", "low", "high", "difference", "difference_low", "difference_high"]


def of_persons():
    """Ten rows of each person share a deviation, and a person has one site."""
    shared = np.repeat(np.random.default_rng(9).normal(0, 2, N // 10), 10)
    probability = 1 / (1 + np.exp(-(np.where(ACTUAL == "yes", 1, -1) + shared)))
    return evaluate(
        ACTUAL,
        y_prob=np.column_stack([1 - probability, probability]),
        labels=["no", "yes"],
        positive="yes",
        groups=PERSON,
        segments={"site": SITE},
    )


@pytest.fixture
def of_run(store, undrawn):
    with mlflow.start_run() as run:
        log_evaluation(of_persons(), strict=True)
    return run.info.run_id


@pytest.mark.slow
def test_a_run_has_one_interval_of_a_segment(of_run, tmp_path):
    """Logged, loaded with and without rows, in the run's table, in a gate and on the command line."""
    wanted = of_persons().segments["site"].to_frame("binary/recall")
    of_persons().save(tmp_path / "kept")
    for loaded in (
        load_evaluation(of_run),
        load_evaluation(of_run, rows=True),
        Evaluation.load(tmp_path / "kept"),
    ):
        table = loaded.segments["site"]
        pd.testing.assert_frame_equal(
            table.to_frame("binary/recall")[ENDS], wanted[ENDS], rtol=1e-12
        )
        assert table["B"].n_clusters == len(np.unique(PERSON[SITE == "B"]))
        assert not loaded.segments.note
    rows = {row["segment"].removeprefix("site: "): row for row in logged_table(of_run)}
    place = f"segment/site/*/binary/recall.low >= {wanted['low'].max() + 0.001}"
    gate = CliRunner().invoke(main, ["gate", of_run, "--require", place, "--json"])
    assert gate.exit_code == 1, gate.output
    assert json.loads(gate.stdout)["gates"][0]["value"] == pytest.approx(
        wanted["low"].min(), rel=1e-9
    )
    for reference in (of_run, str(tmp_path / "kept")):
        printed = json.loads(called(reference, "--metric", "binary/recall", "--json").stdout)[
            "runs"
        ][0]["columns"][0]
        for row, own in zip(printed["segments"], wanted.to_dict("records"), strict=True):
            assert (row["low"], row["high"]) == pytest.approx((own["low"], own["high"]), rel=1e-9)
            assert (
                rows[own["segment"]]["recall_low"],
                rows[own["segment"]]["recall_high"],
            ) == pytest.approx((own["low"], own["high"]), abs=1e-6)


def logged_table(run_id: str):
    table = json.loads(mlflow.artifacts.load_text(f"runs:/{run_id}/cmtrack_segments.json"))
    return [dict(zip(table["columns"], row, strict=True)) for row in table["data"]]


@pytest.mark.slow
def test_segments_without_the_rows_that_tell_their_intervals_say_so(tmp_path):
    of_persons().save(tmp_path, rows=False)
    loaded = Evaluation.load(tmp_path)
    frame = loaded.segments["site"].to_frame("binary/recall")
    wanted = of_persons().segments["site"].to_frame("binary/recall").set_index("segment")
    assert frame.set_index("segment")["value"].to_dict() == pytest.approx(wanted["value"].to_dict())
    assert frame[["low", "high", "difference_low", "difference_high"]].isna().all(axis=None)
    assert loaded.segments.note in loaded.warnings
    assert "rows belong to clusters, so the intervals need the rows" in loaded.segments.note
    assert loaded.segments["site"]["B"].notes
    assert not of_persons().segments.note
    words = " ".join(called(str(tmp_path)).output.split())
    assert "have no intervals: rows belong to clusters" in words
    assert "hold together" not in words
    assert (
        "rows belong to clusters"
        in json.loads(called(str(tmp_path), "--json").stdout)["runs"][0]["note"]
    )


@pytest.mark.slow
def test_costs_know_which_rows_of_a_run_belong_together_and_a_threshold_asks_for_others(
    of_run, tmp_path
):
    file = tmp_path / "costs.json"
    file.write_text(json.dumps({"costs": [["yes", "no", 5], ["no", "yes", 1]]}))
    out = json.loads(
        CliRunner().invoke(main, ["price", of_run, "--costs", str(file), "--json"]).stdout
    )
    assert not [text for text in out["notes"] if "belong together" in text]
    priced = of_persons().price({("yes", "no"): 5, ("no", "yes"): 1})
    assert out["intervals"]["cost/mean"] == pytest.approx(priced.intervals["cost/mean"])
    refused = CliRunner().invoke(main, ["threshold", of_run, "--costs", str(file), "--json"])
    assert refused.exit_code == 2
    assert "cannot be chosen on rows in clusters" in " ".join(refused.stderr.split())


@pytest.mark.slow
def test_a_gate_reads_a_run_that_was_logged_with_some_sections(store, undrawn):
    """Gates rank by the accuracy, which such a run did not log but can compute."""
    predicted = np.where(np.arange(N) % 10 == 0, "no", ACTUAL)
    with mlflow.start_run() as run:
        log_evaluation(ACTUAL, predicted, positive="yes", sections=["binary"])
    for gate, code in (("binary/recall >= 0.6", 0), ("binary/recall >= 0.99", 1)):
        done = CliRunner().invoke(main, ["gate", run.info.run_id, "--require", gate])
        assert done.exit_code == code, done.output
