"""Two models by segment: differences against hand values, the sentence of both signs, gates on segments, bad input."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import mlflow
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from scipy.stats import norm

from cmtrack import Evaluation, Metric, compare, evaluate, log_evaluation, segment_runs
from cmtrack.cli import main
from cmtrack.comparison import CompareOptions, SegmentComparison, judge, paired_differences
from cmtrack.evaluation import Gate
from cmtrack.metrics import tango, wilson
from cmtrack.report.review import Review

# Inside: these sentences alone, of the many that a review has.
from cmtrack.report.review.narrative import by_segment
from cmtrack.segments import differences as of_two_samples
from cmtrack.segments import qualitative_interaction, simultaneous_level
from support.problems import random_guesses

pytestmark = pytest.mark.usefixtures("undrawn")

ACCURACY = "multiclass/accuracy"
SIZES = {"north": 40, "south": 60, "west": 100}
# rows that only the first, only the second, and neither gets right
CELLS = {"north": (9, 1, 2), "south": (3, 20, 2), "west": (45, 5, 5)}


def rows_of(cells: dict[str, tuple[int, int, int]], sizes: dict[str, int]) -> tuple[Any, ...]:
    """Actual and predicted classes of two models, and the region, with these counts."""
    actual, first, second, region = [], [], [], []
    for name, (only_first, only_second, neither) in cells.items():
        right = [(1, 0)] * only_first + [(0, 1)] * only_second + [(0, 0)] * neither
        right += [(1, 1)] * (sizes[name] - len(right))
        for k, (a, b) in enumerate(right):
            label = k % 2
            actual.append(label)
            first.append(label if a else 1 - label)
            second.append(label if b else 1 - label)
            region.append(name)
    return np.array(actual), np.array(first), np.array(second), pd.DataFrame({"region": region})


def two(cells: Any = None, sizes: Any = None, **given: Any) -> dict[str, Evaluation]:
    actual, first, second, region = rows_of(cells or CELLS, sizes or SIZES)
    return {
        "B": evaluate(actual, first, segments=region, **given),
        "A": evaluate(actual, second, segments=region, **given),
    }


def by_region(evaluations: Any, **given: Any) -> Any:
    return compare(evaluations, rank_by=ACCURACY, segments="region", **given)


# -- numbers -----------------------------------------------------------------------------------------------------------


def test_paired_differences_by_segment_are_those_of_the_discordant_rows():
    pair = by_region(two()).segments[0]
    assert (pair.first, pair.second, pair.paired, pair.reason) == ("B", "A", True, "")
    assert pair.segments[0] == "south", "the worst of the leader first"
    level = simultaneous_level(3)
    for k, name in enumerate(pair.segments):
        (b, c, _), n = CELLS[name], SIZES[name]
        gap = (b - c) / n
        error = math.sqrt(((b + c) / n - gap**2) / n)
        assert pair.rows[k] == n
        assert pair.differences[k] == pytest.approx(gap, abs=1e-12)
        assert pair.errors[k] == pytest.approx(error, abs=1e-12)
        z = norm.interval(level)[1]
        ends = -float(tango(c, b, n, z)), float(tango(b, c, n, z))
        assert (pair.low[k], pair.high[k]) == pytest.approx(ends, abs=1e-9)
    expected = qualitative_interaction(pair.differences, pair.errors)
    assert pair.interaction == expected
    assert pair.p_adjusted == expected.pvalue


def test_differences_of_segments_and_of_all_rows_are_those_of_paired_differences():
    evaluations = two()
    pair = by_region(evaluations).segments[0]
    assert pair.overall == paired_differences(evaluations["B"], evaluations["A"])[ACCURACY]
    parts = [evaluation.segments["region"]["south"] for evaluation in evaluations.values()]
    south = paired_differences(*parts, metrics=[ACCURACY])[ACCURACY]
    assert (pair.differences[0], pair.errors[0]) == pytest.approx(
        (south.difference, south.standard_error), abs=1e-12
    )


@pytest.mark.parametrize("weights", [None, "whole", "fractional"])
@pytest.mark.parametrize("clusters", [False, True])
def test_errors_by_segment_know_of_weights_and_clusters(weights, clusters):
    rng = np.random.default_rng(3)
    given: dict[str, Any] = {"groups": np.arange(200) // 4} if clusters else {}
    if weights:
        given["sample_weight"] = (
            rng.integers(1, 4, 200) if weights == "whole" else rng.uniform(0.5, 2, 200)
        )
    evaluations = two(**given)
    pair = by_region(evaluations).segments[0]
    for k, name in enumerate(pair.segments):
        parts = [evaluations[run].segments["region"][name] for run in (pair.first, pair.second)]
        expected = paired_differences(*parts, metrics=[ACCURACY])[ACCURACY]
        assert pair.differences[k] == pytest.approx(expected.difference, abs=1e-12)
        assert pair.errors[k] == pytest.approx(expected.standard_error, abs=1e-12)


def test_the_order_of_the_segments_of_two_runs_does_not_matter():
    actual, first, second, region = rows_of(CELLS, SIZES)
    other = region["region"].astype(pd.CategoricalDtype(["west", "south", "north"])).to_frame()
    mixed = {
        "B": evaluate(actual, first, segments=region),
        "A": evaluate(actual, second, segments=other),
    }
    assert mixed["A"].segments["region"].values == ("west", "south", "north")
    pd.testing.assert_frame_equal(
        by_region(mixed).segments.to_frame(), by_region(two()).segments.to_frame()
    )


def test_without_rows_differences_are_unpaired_and_said_to_be():
    evaluations = {name: replace(one, rows=None) for name, one in two().items()}
    comparison = by_region(evaluations)
    pair = comparison.segments[0]
    assert not pair.paired
    assert pair.reason.startswith("the first evaluation has no rows")
    first, second = (one.segments["region"].estimates(ACCURACY) for one in evaluations.values())
    expected = of_two_samples(first, second)
    order = [["north", "south", "west"].index(name) for name in pair.segments]
    assert pair.low.tolist() == pytest.approx(expected.low[order].tolist(), abs=1e-12)
    assert pair.errors.tolist() == pytest.approx(
        np.hypot(first.errors, second.errors)[order].tolist(), abs=1e-12
    )
    assert "Not compared row by row with “A”: the first evaluation has no rows" in _markdown(
        comparison
    )


def test_intervals_hold_together_for_all_segments_and_runs():
    actual, _first, _second, region = rows_of(CELLS, SIZES)
    evaluations = two() | {
        "C": evaluate(
            actual, np.where(np.arange(200) % 4 == 0, 1 - actual, actual), segments=region
        )
    }
    comparison = by_region(evaluations)
    pairs = {pair.second: pair for pair in comparison.segments}
    assert set(pairs) == {"A", "C"}
    assert comparison.segments.to_frame()["second"].tolist() == ["C"] * 3 + ["A"] * 3
    pair = pairs["A"]
    alone = by_region(two()).segments[0]
    ratio = (pair.high - pair.low) / (alone.high - alone.low)
    assert (ratio > 1.02).all(), "6 intervals hold together instead of 3"
    large = norm.ppf(0.5 + simultaneous_level(6) / 2) / norm.ppf(0.5 + simultaneous_level(3) / 2)
    assert ratio[list(pair.segments).index("west")] == pytest.approx(large, abs=0.02)
    raw = {name: one.interaction.pvalue for name, one in pairs.items()}
    low, high = sorted(raw.values())
    adjusted = sorted(one.p_adjusted for one in pairs.values())
    assert adjusted == pytest.approx([min(1, 2 * low), min(1, max(2 * low, high))])


def test_a_segment_where_all_rows_differ_alike_is_no_more_certain_than_its_rows():
    evaluations = two(CELLS | {"tiny": (0, 3, 0)}, SIZES | {"tiny": 3})
    pair = by_region(evaluations).segments[0]
    tiny = pair.segments.index("tiny")
    low, _ = wilson(1.0, 3)  # three of three against none of three
    assert (pair.differences[tiny], pair.errors[tiny]) == (
        -1,
        pytest.approx(math.sqrt(2) * (1 - low) / norm.ppf(0.975)),
    )
    assert (pair.low[tiny], pair.high[tiny] >= 0, pair.reasons[tiny]) == (-1, True, "")
    assert tiny not in pair.contrary
    assert pair.interaction.segments == 3


# -- the sentence ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_sentence_stands_wherever_the_review_is_read(tmp_path):
    comparison = by_region(two())
    pair = comparison.segments[0]
    said = by_segment(Review(comparison))
    south = f"(difference {_signed(pair.differences[0])} [{_signed(pair.low[0])}, {_signed(pair.high[0])}]"
    assert len(said) == 1
    assert said[0].startswith(
        f"“B” is better overall than “A”, but worse for “south” {south}, Gail–Simon p < 0.001)."
    )
    assert said[0] in comparison.summary()
    table = next(line for line in _markdown(comparison).splitlines() if line.startswith("| south"))
    assert (
        f"{_signed(pair.differences[0])} \\[{_signed(pair.low[0])}, {_signed(pair.high[0])}\\]"
        in table
    )
    page = comparison.report(tmp_path / "review.html").read_text()
    assert "By segment: accuracy by “region”" in page
    assert said[0].replace("<", "&lt;") in page
    data = json.loads(comparison.report(tmp_path / "review.json").read_text())
    assert data["segments"][0]["contrary"] == ["south"]
    assert data["segments"][0]["differences"] == pytest.approx(pair.differences.tolist())
    assert data["how"]["segments"] == ["region"]


def _signed(value: float) -> str:
    return f"{value:.3f}".replace("-", "−")


def _markdown(comparison: Any) -> str:
    from cmtrack.report.review import markdown

    return markdown(comparison)


@pytest.mark.parametrize(
    ("south", "p_small", "beyond", "said"),
    [
        ((3, 20), True, True, True),  # both
        ((5, 12), False, False, False),  # neither
        ((3, 10), False, False, False),
        ((10, 3), False, False, False),  # the same side
    ],
)
def test_the_sentence_needs_both_the_test_and_the_interval(south, p_small, beyond, said):
    comparison = by_region(two(CELLS | {"south": (*south, 2)}))
    pair = comparison.segments[0]
    place = pair.segments.index("south")
    assert (pair.p_adjusted <= 0.05) == p_small
    assert (pair.high[place] < 0) == beyond
    assert bool(by_segment(Review(comparison))) == said == bool(pair.contrary)


def test_a_small_p_alone_is_no_sentence():
    """Several segments are worse together, and none of them surely."""
    cells = {"a": (60, 5, 5)} | {f"s{k}": (3, 11, 2) for k in range(4)}
    pair = by_region(two(cells, dict.fromkeys(cells, 60) | {"a": 100})).segments[0]
    assert pair.p_adjusted < 0.05
    assert not pair.contrary


def test_an_interval_alone_is_no_sentence():
    """The segments where the leader is better do not show it."""
    pair = by_region(two({"north": (5, 4, 2), "south": (3, 20, 2), "west": (58, 40, 2)})).segments[
        0
    ]
    assert pair.overall.difference > 0
    assert pair.high[pair.segments.index("south")] < 0
    assert pair.p_adjusted > 0.05
    assert not pair.contrary


def test_a_lead_that_is_not_significant_is_said_to_be_none():
    said = by_segment(Review(by_region(two(CELLS | {"north": (4, 3, 2), "west": (30, 8, 5)}))))
    assert said[0].startswith(
        "“B” is better overall than “A” (not significantly), but worse for “south” (difference"
    )


def test_of_losses_higher_is_worse():
    actual, first, second, region = rows_of(CELLS, SIZES)

    def scored(predicted: Any) -> Evaluation:
        own = np.where(predicted == 1, 0.8, 0.2)
        return evaluate(actual, y_prob=np.column_stack([1 - own, own]), segments=region)

    comparison = compare(
        {"B": scored(first), "A": scored(second)}, rank_by="probability/brier", segments="region"
    )
    pair = comparison.segments[0]
    assert pair.first == "B"
    assert pair.overall.difference < 0 < pair.gain
    assert [pair.segments[k] for k in pair.contrary] == ["south"]
    assert pair.differences[pair.contrary[0]] > 0
    assert (
        "“B” is better overall than “A”, but worse for “south” (difference +"
        in by_segment(Review(comparison))[0]
    )


def test_of_a_front_the_metric_is_named():
    evaluations = two()
    comparison = compare(evaluations, rank_by=[ACCURACY, "binary/recall"], segments=["region"])
    assert {pair.metric for pair in comparison.segments} == {ACCURACY, "binary/recall"}
    assert any(text.startswith("By accuracy, “") for text in by_segment(Review(comparison)))


def test_more_runs_than_five_are_named_in_a_note():
    actual, _, _, region = rows_of(CELLS, SIZES)
    evaluations = {
        f"run {k}": evaluate(actual, random_guesses(actual, 2, 1 - 0.15 * k, k), segments=region)
        for k in range(7)
    }
    comparison = by_region(evaluations)
    assert [pair.second for pair in comparison.segments] == [f"run {k}" for k in range(1, 6)]
    assert "The leader is compared by segment with the next 5 of 6 runs." in comparison.notes


def test_a_run_without_the_segments_is_left_out_of_them_with_a_reason():
    actual, _, second, _ = rows_of(CELLS, SIZES)
    comparison = by_region({"B": two()["B"], "A": evaluate(actual, second)})
    assert list(comparison.segments) == []
    assert (
        "“B” and “A” are not compared by “region”: the second has no such segments."
        in comparison.notes
    )


def test_without_segments_there_are_none():
    comparison = compare(two(), rank_by=ACCURACY)
    assert isinstance(comparison.segments, SegmentComparison)
    assert len(comparison.segments) == 0
    assert comparison.segments.to_frame().empty
    assert comparison.to_dict()["segments"] == []


# -- gates -------------------------------------------------------------------------------------------------------------


def test_a_gate_on_segments_is_parsed():
    gate = Gate.parse("segment/region/*/binary/recall.low >= 0.6")
    assert (gate.column, gate.segment, gate.metric, gate.end, gate.bound) == (
        "region",
        "*",
        "binary/recall",
        "low",
        0.6,
    )
    assert not gate.of_value
    gate = Gate.parse("segment/age/> 40/class/1/recall.difference.low>=-.05")
    assert (gate.column, gate.segment, gate.metric, gate.difference) == (
        "age",
        "> 40",
        "class/1/recall",
        True,
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("segment/region >= 0.6", "expected a column, a segment and a metric"),
        ("segment/region/*/ >= 0.6", "expected a column, a segment and a metric"),
        ("segment/region/*/binary/recal >= 0.6", "did you mean 'binary/recall'"),
        ("segment/region/*/binary/recall >= much", "expected a number after '>='"),
        ("segment/region/*/binary/recall", "expected a comparison"),
    ],
)
def test_gates_on_segments_that_do_not_parse(text, words):
    with pytest.raises(ValueError, match="gate ") as raised:
        Gate.parse(text)
    assert words in str(raised.value)


def _result(text: str, run: Evaluation, baseline: Evaluation | None = None) -> Any:
    verdict = judge(run, baseline, require=[text])
    return verdict.checks[0]


def test_gates_on_all_segments_hold_the_simultaneous_intervals_against_the_bound():
    run = two()["B"]
    frame = run.segments["region"].to_frame(ACCURACY).set_index("segment")
    result = _result(f"segment/region/*/{ACCURACY}.low >= 0.45", run)
    assert result.value == pytest.approx(frame["low"].min(), abs=1e-12)
    assert (result.segment, result.passed) == (frame["low"].idxmin(), True) == ("south", True)
    assert not _result(f"segment/region/*/{ACCURACY}.low >= 0.55", run).passed
    result = _result(f"segment/region/*/{ACCURACY} <= 0.99", run)
    assert (result.value, result.segment) == (
        pytest.approx(frame["value"].max()),
        frame["value"].idxmax(),
    )


def test_a_gate_on_one_segment_reads_its_own_interval():
    run = two()["B"]
    result = _result(f"segment/region/north/{ACCURACY}.low >= 0.6", run)
    assert result.value == pytest.approx(
        run.segments["region"]["north"].intervals[ACCURACY][0], abs=1e-12
    )
    assert (
        str(result)
        == f"segment/region/north/{ACCURACY}.low >= 0.6 (is {result.value:.3g} for “north”)"
    )


def test_a_segment_is_called_by_its_value_or_as_metric_names_write_it():
    actual, first, _, region = rows_of(CELLS, SIZES)
    region = region.replace({"south": "south/east", "north": "> 40 °N"})
    run = evaluate(actual, first, segments=region.rename(columns={"region": "sales/region"}))
    for text in ("segment/sales_u2f_region/south_u2f_east", "segment/sales_u2f_region/> 40 °N"):
        result = _result(f"{text}/{ACCURACY} >= 0.5", run)
        assert result.segment == ("south/east" if "south" in text else "> 40 °N")
        assert result.passed


def test_gates_on_differences_by_segment():
    evaluations = two()
    pair = by_region(evaluations).segments[0]
    result = _result(f"segment/region/*/{ACCURACY}.difference.low >= -0.05", *evaluations.values())
    assert (result.value, result.segment, result.passed) == (
        pytest.approx(pair.low[0], abs=1e-12),
        "south",
        False,
    )
    result = _result(f"segment/region/south/{ACCURACY}.difference >= -0.05", *evaluations.values())
    assert result.value == pytest.approx(-17 / 60, abs=1e-12)
    assert result.to_dict()["segment"] == "south"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"segment/ragion/*/{ACCURACY} >= 0.1", "the run has no segments by “ragion”"),
        (
            f"segment/region/nort/{ACCURACY} >= 0.1",
            "“region” has no segment “nort”; did you mean 'north'?",
        ),
        ("segment/region/*/binary/recall >= 0.1", "binary/recall is undefined for “none”"),
    ],
)
def test_a_gate_without_its_segments_is_not_passed(text, reason):
    actual, first, _, region = rows_of(CELLS, SIZES)
    actual, first = np.append(actual, [0, 0]), np.append(first, [0, 0])
    region = pd.DataFrame({"region": [*region["region"], "none", "none"]})
    result = _result(text, evaluate(actual, first, segments=region, positive=1))
    assert (result.passed, result.reason) == (False, reason)
    assert math.isnan(result.value)


def test_a_segment_that_fails_is_named_before_one_that_is_undefined():
    gate = Gate.parse("segment/region/*/binary/recall >= 0.5")
    nan = (math.nan, math.nan)
    result = gate.check_segments({"a": (math.nan, nan), "b": (0.4, nan), "c": (0.9, nan)})
    assert (result.value, result.segment, result.passed) == (0.4, "b", False)
    result = gate.check_segments({"a": (math.nan, nan), "b": (0.6, nan), "d": (math.nan, nan)})
    assert result.reason == "binary/recall is undefined for “a” and 1 more"


def test_gates_stop_runs_of_a_comparison():
    comparison = compare(two(), rank_by=ACCURACY, require=f"segment/region/*/{ACCURACY}.low >= 0.7")
    assert [stop.name for stop in comparison.failed] == ["A", "B"]
    comparison = compare(two(), rank_by=ACCURACY, require=f"segment/region/south/{ACCURACY} >= 0.7")
    assert [stop.name for stop in comparison.failed] == ["B"]
    assert (
        f"“B” fails the gate segment/region/south/{ACCURACY} >= 0.7 (is 0.633 for “south”)."
        in comparison.summary()
    )
    assert "| B | ✗ 0.633 for “south” |" in _markdown(comparison)


# -- stores ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_command_line_compares_by_segment(store, tmp_path):
    mlflow.set_experiment("regions")
    for name, evaluation in two().items():
        with mlflow.start_run(run_name=name):
            log_evaluation(evaluation)
    out = tmp_path / "review.json"
    gate = f"segment/region/south/{ACCURACY} >= 0.5"
    given = ["--segment", "region", "--rank-by", ACCURACY, "--require", gate]
    result = CliRunner().invoke(
        main, ["review", "--experiment", "regions", *given, "--output", str(out)]
    )
    assert result.exit_code == 0, result.output
    data = json.loads(out.read_text())
    assert data["how"]["segments"] == ["region"]
    (pair,) = data["segments"]
    assert (pair["paired"], pair["reason"]) == (True, "")
    expected = [-17 / 60, 40 / 100, 8 / 40]
    assert pair["differences"] == pytest.approx(expected)
    assert data["rankings"][0]["runs"][0]["gates"][0] | {"value": 0.6333} == {
        "gate": gate,
        "value": 0.6333,
        "passed": True,
        "reason": "",
        "segment": "south",
    }


@pytest.mark.slow
def test_compare_prints_the_segments_and_names_what_does_not_fit(store, monkeypatch):
    mlflow.set_experiment("regions")
    for name, evaluation in two().items():
        with mlflow.start_run(run_name=name):
            log_evaluation(evaluation)
    given = ["compare", "--experiment", "regions", "--segment", "region", "--rank-by", ACCURACY]
    monkeypatch.setenv("COLUMNS", "100")
    wide = CliRunner().invoke(main, given).output
    (pair,) = compare(experiment_names=["regions"], segments="region", rank_by=ACCURACY).segments
    for text, difference in zip(pair.segments, pair.differences, strict=True):
        (line,) = [line for line in wide.splitlines() if line.split()[:1] == [text]]
        assert f"{difference:+.3f}"[:6] in line.replace("−", "-")
    assert "By segment: accuracy by “region”" in wide
    assert "too narrow" not in wide
    monkeypatch.setenv("COLUMNS", "50")
    narrow = " ".join(CliRunner().invoke(main, given).output.split())
    assert "The terminal is too narrow to show: " in narrow
    assert "status" in narrow


def logged(evaluations: dict[str, Evaluation], **given: Any) -> list[str]:
    found = []
    for name, evaluation in evaluations.items():
        with mlflow.start_run(run_name=name) as run:
            log_evaluation(evaluation, strict=True, **given)
        found.append(run.info.run_id)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("predictions", ["auto", "labels"])
def test_runs_of_a_store_are_compared_by_segment_as_their_evaluations_are(store, predictions):
    evaluations = two(groups=np.arange(200) // 2)
    (ours,), (theirs,) = (
        by_region(runs).segments
        for runs in (logged(evaluations, predictions=predictions), evaluations)
    )
    assert (ours.paired, ours.reason) == (True, "")
    pd.testing.assert_frame_equal(ours.to_frame(), theirs.to_frame(), rtol=1e-12)
    assert ours.interaction == theirs.interaction


@pytest.mark.slow
def test_runs_without_rows_are_compared_by_the_counts_of_their_segments(store):
    (pair,) = by_region(logged(two(), predictions=False)).segments
    assert not pair.paired
    assert pair.reason.startswith("the first evaluation has no rows")


def test_runs_whose_rows_an_earlier_version_kept_are_compared_without_pairs(store, tmp_path):
    evaluations = two()
    for name, evaluation in evaluations.items():
        evaluation.save(tmp_path / name)
        file = tmp_path / name / "cmtrack_predictions.parquet"
        pq.write_table(pq.read_table(file, columns=["y_true", "y_pred"]), file)
    (pair,) = by_region({name: Evaluation.load(tmp_path / name) for name in evaluations}).segments
    assert not pair.paired
    assert (
        pair.reason
        == "the segments of the rows are unknown (an earlier version kept rows without segments)"
    )


@pytest.mark.slow
def test_past_runs_joined_with_attributes_are_compared_row_by_row(store):
    actual, first, second, region = rows_of(CELLS, SIZES)
    runs = []
    for predicted in (first, second):
        with mlflow.start_run() as run:
            log_evaluation(actual, predicted)
        runs.append(run.info.run_id)
    joined = segment_runs(runs, region.assign(actual=actual), segments=["region"], y_true="actual")
    pair = by_region(dict(zip("BA", joined, strict=True))).segments[0]
    assert (pair.paired, pair.reason) == (True, "")
    assert pair.low.tolist() == pytest.approx(by_region(two()).segments[0].low.tolist(), abs=1e-12)


# -- bad input ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            {"segments": "ragion"},
            "no run has segments by 'ragion'; did you mean 'region'?; the columns are",
        ),
        ({"segments": []}, "segments must name at least one column"),
        ({"segments": ["region", "region"]}, "segments must not repeat"),
        (
            {"segments": "region", "block": "params.fold"},
            "segments cannot be combined with block",
        ),
        (
            {"require": f"segment/region/*/{ACCURACY} >= 0.1", "block": "params.fold"},
            "a gate on segments",
        ),
        ({"require": f"segment/region/*/{ACCURACY}.difference >= 0.1"}, "needs against="),
    ],
)
def test_segments_that_cannot_be(given, words):
    with pytest.raises(ValueError, match=words.split("'")[0].replace("?", "")) as raised:
        compare(two(), rank_by=ACCURACY, **given)
    assert words in str(raised.value)


def test_segments_are_a_list_of_names():
    assert CompareOptions(segments=["a", ("b", "c")]).segments == ["a", "b × c"]
    with pytest.raises(TypeError, match="segments must be a list"):
        CompareOptions(segments=3)
    actual, first, second, _ = rows_of(CELLS, SIZES)
    with pytest.raises(ValueError, match="the runs were evaluated without segments"):
        by_region({"B": evaluate(actual, first), "A": evaluate(actual, second)})


def few_patients():
    """Two runs of 43 patients of 7 rows in eight regions; they differ in few rows of each."""
    rng = np.random.default_rng(3)
    patient = np.arange(300) // 7
    region = np.array(list("ABCDEFGH"))[(patient * 5) % 8]
    y = rng.integers(0, 2, 300)
    first = np.where(rng.random(300) < 0.2, 1 - y, y)
    changed = rng.random(300) < 0.05
    return [
        evaluate(y, side, groups=patient, segments={"region": region})
        for side in (first, np.where(changed, 1 - first, first))
    ]


def test_a_segment_in_which_few_patients_differ_has_an_interval_and_no_verdict():
    # Student's of one or two effective patients gave [-4.237, 4.288] for a correlation
    a, b = few_patients()
    pair = compare(
        {"a": a, "b": b}, rank_by="binary/matthews_corrcoef", segments="region"
    ).segments[0]
    known = np.array([reason == "" for reason in pair.reasons])
    assert known.any()
    assert {why for why in pair.reasons if why} <= {"no row differs"}
    assert (np.abs(pair.low[known]) <= 2).all()
    assert ((pair.low[known] <= 0) & (pair.high[known] >= 0)).all(), (
        "at most 8 patients differ, not all of them alike"
    )
    assert np.isnan(pair.low[~known]).all()
    assert pair.to_frame().reason.tolist() == list(pair.reasons) == pair.to_dict()["reasons"]
    shares = compare({"a": a, "b": b}, rank_by="binary/recall", segments="region").segments[0]
    assert (shares.low >= -1).all()
    assert (shares.high <= 1).all()
    assert (shares.high - shares.low < 1.25).all(), "four patients tell something of a share"


def test_a_gate_that_few_patients_cannot_decide_is_neither_passed_nor_failed():
    a, b = few_patients()
    verdict = judge(b, a, require=["segment/region/*/binary/recall.low >= 0.3"])
    assert verdict.not_judged is not None
    assert verdict.not_judged.name == "UNDECIDED"
    assert not verdict.passed
    assert "“C” and 4 more: only about 4 clusters, too few for an interval" in verdict.why
    assert verdict.checks[0].undecided
    # a value that misses the bound fails, however small the segment is; and another gate's failure is one
    assert judge(b, a, require=["segment/region/*/binary/recall.low >= 0.95"]).not_judged is None
    both = judge(
        b, a, require=["segment/region/*/binary/recall.low >= 0.3", "binary/recall >= 0.99"]
    )
    assert both.not_judged is None
    assert not both.passed


def test_a_gate_on_a_difference_of_few_rows_is_decided_and_of_none_is_not():
    y = np.arange(899) % 2
    first, second = y.copy(), y.copy()
    first[-40:] = second[-40:] = 1 - y[-40:]
    second[:2] = 1 - y[:2]
    a, b = evaluate(y, first), evaluate(y, second)
    assert judge(b, a, require=["binary/matthews_corrcoef.difference.low >= -0.1"]).passed
    assert not judge(b, a, require=["binary/matthews_corrcoef.difference.low >= -0.001"]).passed
    verdict = judge(
        a, evaluate(y, first), require=["binary/matthews_corrcoef.difference.low >= -0.1"]
    )
    assert verdict.not_judged is not None
    assert verdict.why.endswith("cannot be decided: no row differs")
    assert judge(b, a, require=["multiclass/accuracy.difference.low >= -0.01"]).passed
    assert not judge(b, a, require=["multiclass/accuracy.difference.low >= -0.008"]).passed


def test_differences_of_unpaired_segments_stay_in_the_range():
    own = Metric("custom/triage", _triage, of="binary", low=0, high=3)
    rng = np.random.default_rng(0)
    y, region = np.arange(48) % 2, np.arange(48) // 2 % 6
    sides = [np.where(rng.random(48) < 0.4, 1 - y, y) for _ in range(2)]
    a, b = (evaluate(y, side, segments={"region": region}, extra_metrics=[own]) for side in sides)
    pair = compare(
        {"a": a, "b": replace(b, rows=None)}, rank_by="custom/triage", segments="region"
    ).segments[0]
    assert not pair.paired
    known = np.isfinite(pair.low)
    assert known.any()
    assert (pair.low[known] >= -3).all()
    assert (pair.high[known] <= 3).all()


def _triage(b):
    return 3 * b.tp / (b.tp + b.fn + b.imp)


def test_the_number_of_a_gate_has_no_digits_that_its_bound_does_not_ask_for():
    result = Gate.parse("binary/recall.low >= 0.3").check(
        {"binary/recall": 0.7}, {"binary/recall": (0.0002237, 1.0)}
    )
    assert (result.found, str(result)) == ("0.0002", "binary/recall.low >= 0.3 (is 0.0002)")
    small = Gate.parse("binary/fpr <= 0.0001").check({"binary/fpr": 0.0002237}, {})
    assert small.found == "0.000224"
