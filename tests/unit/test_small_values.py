"""Values of methods that are small enough to be reckoned by hand, by room."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from matplotlib.figure import Figure

from cmtrack import (
    ConfusionMatrix,
    Costs,
    Evaluation,
    Grouping,
    Prefix,
    compare,
    estimate_prevalence,
    evaluate,
    evaluate_families,
    granule_table,
    paired_differences,
    rough_bounds,
)
from cmtrack.comparison import CompareOptions, break_even, constant_answer, judge
from cmtrack.metrics import Cells, SixCells, Table, lookup
from cmtrack.prevalence import ClassPrevalenceEstimate, PrevalenceEstimate
from cmtrack.segments import Estimates, SegmentSearch, search_columns, worst_segments
from cmtrack.sources import open_source
from cmtrack.statistics import BinaryCounts, Counted, LabelDigest, ScoreCounts, ScoreMoments

MATRIX = ConfusionMatrix([[5, 1, 0], [2, 4, 1], [0, 1, 6]], (0, 1, 2))
LABELS = [0, 1] * 100
TARGET = np.random.default_rng(0).normal(np.repeat([0, 2], [1_800, 200]))
"""Scores of which a tenth is positive."""


def right(share: int) -> list[int]:
    """Predictions for LABELS of which ``share`` in a hundred are right: the first ones."""
    return [0, 1] * share + [1, 0] * (100 - share)


def rows(frame: pd.DataFrame, *columns: str) -> list[list[object]]:
    return (frame[list(columns)] if columns else frame).to_numpy(dtype=object).tolist()


# grouping


def test_a_grouping() -> None:
    assert (
        Grouping({"low": range(7), "high": [7, 8]}, name="halves").describe()
        == "halves: low = 0-6; high = 7, 8"
    )
    assert Grouping.csat().groups == {"dissatisfied": (1, 2), "neutral": (3,), "satisfied": (4, 5)}
    low = Grouping({"low": [0, 1], "high": [2]}).with_positive("low")
    assert low.positive == "low"
    assert (low.to_dict()["groups"], low.to_dict()["positive"]) == (
        {"low": [0, 1], "high": [2]},
        "low",
    )


def test_steps_of_a_chain() -> None:
    chain = Grouping.nps().then(
        Grouping({"promoter": ["promoter"], "other": ["passive", "detractor"]})
    )
    assert [(step.name, step.labels) for step in chain.compose(range(11))] == [
        ("nps", ("detractor", "passive", "promoter")),
        ("2_groups", ("promoter", "other")),
    ]


def test_costs(tmp_path: Path) -> None:
    costs = Costs({("fraud", "fine"): 100, ("fine", "fraud"): 2})
    assert costs.describe() == "“fraud” as “fine” 100; “fine” as “fraud” 2; other wrong pairs 1"
    assert Costs({("fraud", "fine"): 100}).to_dict() == {
        "costs": [["fraud", "fine", 100.0]],
        "default": 1.0,
    }
    halves = Grouping({"low": [0, 1], "high": [2]})
    assert Costs({("high", "low"): 5}).matrix([0, 1, 2], halves).tolist() == [
        [0, 0, 1],
        [0, 0, 1],
        [5, 5, 0],
    ]
    file = tmp_path / "costs.json"
    file.write_text('{"costs": [["fraud", "fine", 100]], "name": "losses in euros"}')
    assert Costs.from_file(file).name == "losses in euros"


# statistics


def test_a_confusion_matrix() -> None:
    two = ConfusionMatrix([[3, 1], [0, 2]], ("a", "b"))
    assert two.arranged(("b", "a", "c")).counts.tolist() == [[2, 0, 0], [1, 3, 0], [0, 0, 0]]
    frame = two.to_frame()
    assert (frame.index.name, frame.columns.name) == ("actual", "predicted")
    assert rows(frame, "a", "b") == [[3, 1], [0, 2]]


def test_reduced_matrices() -> None:
    halves = Grouping({"low": [0, 1], "high": [2]}, mode="strict")
    reduced = MATRIX.reduce(halves)
    assert (reduced.counts.tolist(), reduced.mismatches.tolist()) == ([[9, 1], [1, 6]], [3, 0])
    assert rows(reduced.to_frame(), "low", "high", "IM") == [[9, 1, 3], [1, 6, 0], [3, 0, 0]]
    named = Grouping({"a": [0], "b": [1], "c": [2]})
    coarse = Grouping({"low": ["a", "b"], "high": ["c"]}, mode="strict")
    assert MATRIX.reduce(named).reduce(coarse).mismatches.tolist() == [3, 0]
    assert [step.counts.shape for step in MATRIX.reductions(named.then(coarse))] == [(3, 3), (2, 2)]


def test_a_digest_of_labels() -> None:
    assert LabelDigest.from_hashes(np.array([1, 2], dtype=np.uint64)).content == 3
    answers = ["no", "yes"]
    counted = LabelDigest.unordered(np.array([1, 2]), answers)
    assert counted == LabelDigest.from_codes([1, 0, 1], answers).content_only
    assert LabelDigest.parse(str(counted)) == counted
    assert [
        digest.rows for digest in LabelDigest.unordered_each(np.array([[1, 2], [4, 0]]), answers)
    ] == [3, 4]


def test_moments_of_classes_and_groups() -> None:
    moments = ScoreMoments.from_scores(
        np.array([0, 0, 1]), np.array([[0.2], [0.4], [0.9]]), n_classes=2
    )
    assert (moments.pooled().n.tolist(), moments.pooled().mean[0, 0]) == ([3], pytest.approx(0.5))
    assert moments.select([1]).mean.tolist() == [[0.9]]
    assert moments.by_group(np.array([0, 0]), 1).mean[0, 0] == pytest.approx(0.5)
    assert ScoreMoments.empty(3, 2).component(1).mean.shape == (3, 1)
    parts = [
        ScoreMoments.from_scores(np.array([0]), np.array([[score]]), n_classes=1)
        for score in (0.2, 0.4)
    ]
    assert ScoreMoments.merge(parts).m2[0, 0] == pytest.approx(0.02)
    scores = np.array([[0.8, 0.2], [0.6, 0.4], [0.1, 0.9]])
    n, mean, *_ = ScoreMoments.from_scores(np.array([0, 0, 1]), scores, n_classes=2).others()
    assert (n.tolist(), mean.tolist()) == ([1, 2], pytest.approx([0.1, 0.3]))


def test_counts_of_scores() -> None:
    one, two = (ScoreCounts.from_scores(np.array(scores)) for scores in ([0.1, 0.5], [0.5, 0.9]))
    assert (one.plus(two).counts.tolist(), one.plus(two, most=2).exact) == ([[1, 2, 1]], False)
    four = ScoreCounts(np.array([0.2, 0.7]), np.array([[0, 3], [1, 0], [2, 0], [1, 1]]), exact=True)
    assert four.channels((0, 1), (2, 3)).counts.tolist() == [[1, 3], [3, 1]]
    cells = ScoreCounts.from_scores(np.array([0.1, 0.5, 0.5])).to_grid()
    assert (cells.counts.shape, int(cells.counts.sum()), cells.exact) == ((1, 1600), 3, False)


# sources


def test_columns_of_a_table() -> None:
    answers = pd.Categorical(["no", "yes"], ["yes", "no"], ordered=True)
    assert open_source(pd.DataFrame({"y": answers})).categories("y") == ["yes", "no"]
    table = open_source(pa.table({"y": [0, 1], "p": [0.2, 0.9], "name": ["a", "b"]}))
    assert [batch.schema.names for batch in table.batches(["y", "p"])] == [["y", "p"]]


# metrics


def test_a_metric_of_its_data() -> None:
    assert lookup("multiclass/f1_macro").heading() == "macro F1"
    table = Table(Cells.of_matrix(Counted.unweighted(np.array([[3, 1], [0, 2]]))))
    assert lookup("class/yes/recall").of_each(table).tolist() == [0.75, 1.0]
    six = SixCells.of_counts(Counted.unweighted(BinaryCounts(8, 2, 0, 3, 7, 0)))
    assert lookup("binary/recall").influence_in(six) == pytest.approx([0.4, -1.6, -1.6, 0, 0, 0])


def test_curves_as_tables() -> None:
    three = evaluate([0, 1, 1], y_prob=[0.1, 0.4, 0.9])
    assert rows(three.precision_recall.to_frame().round(3)) == [
        [0.9, 1, 0.5, 0.333],
        [0.4, 1, 1, 0.667],
        [0.1, 0.667, 1, 1],
    ]
    assert rows(three.gains.to_frame().round(3)) == [
        [0.9, 0.333, 0.5, 1.5],
        [0.4, 0.667, 1, 1.5],
        [0.1, 1, 1, 1],
    ]
    four = evaluate([0, 0, 1, 1], y_prob=[0.1, 0.6, 0.4, 0.9])
    assert four.gains.gain_at(0.25) == 0.5
    points = [[np.inf, 0, 0], [0.9, 1, 0], [0.6, 1, 1], [0.4, 2, 1], [0.1, 2, 2]]
    assert rows(four.roc.to_frame(), "thresholds", "tp", "fp") == points
    net = evaluate([0, 0, 1, 1] * 20, y_prob=[0.1, 0.6, 0.4, 0.9] * 20).net_benefit([0.2, 0.5])
    benefits = [[0.2, 0.4375, 0.375, 0.25], [0.5, 0, 0, 0]]
    assert rows(net.to_frame().round(4), "thresholds", "value", "all", "avoided") == benefits


def test_a_calibration_curve() -> None:
    curve = evaluate([0, 0, 1, 0, 1], y_prob=[0.1, 0.2, 0.3, 0.6, 0.7]).calibration
    assert rows(curve.to_frame()) == [
        [0.1, 0, 0, 1],
        [0.2, 0, 0, 1],
        [0.3, 0.5, 1, 0],
        [0.6, 0.5, 0, 1],
        [0.7, 1, 1, 0],
    ]
    rng = np.random.default_rng(0)
    scores = rng.random(5_000)
    many = evaluate(rng.random(5_000) < scores, y_prob=scores).calibration
    assert (len(many.scores), len(many.drawn.scores) <= 1600) == (5000, True)


def test_calibration_of_classes() -> None:
    p = [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]] * 40
    classes = evaluate([0, 1, 2] * 40, y_prob=p).class_calibration()
    each = "“0” (p = 0.006), “1” (p = 0.006) and “2” (p = 0.006), with p adjusted by Holm."
    assert classes.sentence() == f"3 of 3 classes show signs of miscalibration: {each}"
    mean = pytest.approx(1 / 3)
    assert rows(classes.to_frame(), "label", "support", "mean_score", "share") == [
        [c, 40, mean, mean] for c in (0, 1, 2)
    ]


def test_risk_by_coverage() -> None:
    y, p = [0, 1, 1, 0], [0.1, 0.9, 0.4, 0.3]
    curve = evaluate(y, y_prob=p).risk_coverage
    assert (curve.risk_at(0.75), curve.risk_at(1.0)) == (0, 0.25)
    assert (curve.coverage_at(0.0), curve.coverage_at(0.25)) == (0.75, 1)
    assert rows(curve.to_frame()) == [[0.9, 0.5, 0], [0.7, 0.75, 0], [0.6, 1, 0.25]]
    assert evaluate(y * 25, y_prob=p * 25).reject(0.25).sentence() == (
        "75% of the answers are accepted, because their confidence is at least 0.7. 0% [0, 4.87] of them are wrong, "
        "compared with 25% of all answers. 25% of the rows are handed over, and 100% of their answers are wrong."
    )


# prevalence


@pytest.fixture(scope="module")
def binary() -> tuple[PrevalenceEstimate, PrevalenceEstimate]:
    """Estimates with all labelled rows and with half of them."""
    y = np.repeat([0, 1], 500)
    scores = np.random.default_rng(1).normal(2 * y)
    halves = ((y[::k], scores[::k]) for k in (1, 2))
    whole, half = (
        estimate_prevalence(TARGET, calibration=labelled, density="bins") for labelled in halves
    )
    return whole, half


@pytest.fixture(scope="module")
def three() -> tuple[ClassPrevalenceEstimate, ClassPrevalenceEstimate]:
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1, 1, 1], 600)
    y = (rng.random(600)[:, None] > p.cumsum(axis=1)).sum(axis=1)
    halves = ((y[:n], p[:n]) for n in (600, 300))
    whole, half = (estimate_prevalence(p, calibration=labelled) for labelled in halves)
    return whole, half


def test_an_estimate_of_a_share(binary: tuple[PrevalenceEstimate, PrevalenceEstimate]) -> None:
    whole, half = binary
    assert whole.exposed([half]).high >= whole.high
    assert rows(whole.to_frame().round(1), "positive", "value") == [[1, 0.1]]
    assert whole.to_frame().columns.tolist()[:6] == [
        "positive",
        "value",
        "low",
        "high",
        "count",
        "count_low",
    ]
    rare, certain = whole.posterior([-1.0, 4.0])
    assert (rare < 0.1, certain > 0.8) == (True, True)
    labels = whole.labels(TARGET, rule="count")
    assert (abs(labels.positive.sum() - whole.count) <= 1, labels.tied) == (True, 0)
    curve = whole.likelihood(n_points=5)
    assert (curve.prevalence.shape, (curve.adjusted <= curve.naive).all()) == ((5,), True)
    assert isinstance(whole.figure(), Figure)


def test_an_estimate_of_classes(
    three: tuple[ClassPrevalenceEstimate, ClassPrevalenceEstimate],
) -> None:
    whole, half = three
    assert whole.exposed([half]).high >= whole.high
    assert rows(whole.to_frame().round(1), "label", "value") == [[0, 0.3], [1, 0.4], [2, 0.3]]
    assert whole.posterior([[0.2, 0.3, 0.5]]).sum() == pytest.approx(1)


# families


def test_families() -> None:
    codes = Prefix(separator=".")
    one = evaluate_families([["364.0"], ["364.1"]], [["364.1"], ["364.1"]], codes)
    assert one.family_of("364.1") == "364"
    matrix = one.matrix("364")
    assert (matrix.codes, matrix.values.tolist()) == (
        ("364.0", "364.1"),
        [[0, 1, 0], [0, 1, 0], [0, 0, 0]],
    )
    answer = one.given_actual("364.0")
    assert (answer.documents, answer.right, answer.siblings) == (1, 0, (("364.1", 1.0),))
    table = one.code_table()
    assert table["family"].tolist() == ["364", "364"]
    assert table["precision"].tolist() == pytest.approx([np.nan, 0.5], nan_ok=True)
    assert table["recall"].tolist() == [0, 1]
    assert isinstance(one.family_figure("364", given="predicted"), Figure)
    assert isinstance(one.code_figure("364.1"), Figure)
    two = evaluate_families([["364.0"], ["401.9"]], [["364.1"], ["401.9"]], codes)
    families = [["364", 1, 0, 1], ["401", 1, 1, 0]]
    assert rows(two.family_table(), "family", "support", "f1_micro", "confusion_share") == families


# rough sets


def test_rough_sets() -> None:
    weather = {"sky": ["sun", "sun", "rain", "rain"], "wind": [0, 1, 0, 1]}
    out = ["out", "out", "in", "out"]
    sky = granule_table({"sky": weather["sky"]}, out)
    assert rows(sky.to_frame(), "in", "out") == [[0, 2], [1, 1]]
    assert rows(sky.approximations().to_frame(), "size", "lower", "upper", "alpha") == [
        [1, 0, 2, 0],
        [3, 2, 4, 0.5],
    ]
    assert isinstance(sky.approximations().figure(), Figure)
    bounds = rough_bounds(ConfusionMatrix([[50, 10], [5, 35]], ("in", "out")))
    columns = ("size", "hits", "lower_upper_bound", "upper_lower_bound")
    assert rows(bounds.to_frame(), *columns) == [[60, 50, 49, 66], [40, 35, 34, 51]]
    assert isinstance(bounds.figure(), Figure)


# segments


def test_arms_of_intervals() -> None:
    down, up = Estimates.of_shares([90, 40], [100, 50]).arms(0.95)
    assert down.tolist() == pytest.approx([0.074, 0.13], abs=5e-4)
    assert up.tolist() == pytest.approx([0.045, 0.088], abs=5e-4)


@pytest.fixture(scope="module")
def search() -> SegmentSearch:
    columns = search_columns({"region": ["north"] * 200 + ["south"] * 200}, 400)
    return worst_segments(columns, [1] * 190 + [0] * 10 + [1] * 140 + [0] * 60, better="higher")


def test_a_search_of_segments(search: SegmentSearch) -> None:
    assert [segment.text for segment in search.found()] == ["region = south"]
    assert rows(search.to_frame(), "segment", "rows", "value", "rest") == [
        ["region = south", 200, pytest.approx(0.7), pytest.approx(0.95)],
        ["region = north", 200, pytest.approx(0.95), pytest.approx(0.7)],
    ]


# comparison


def test_a_break_even() -> None:
    y = [1] * 100 + [0] * 900
    careful = evaluate(y, [1] * 90 + [0] * 10 + [1] * 90 + [0] * 810)
    strict = evaluate(y, [1] * 60 + [0] * 40 + [1] * 18 + [0] * 882)
    assert break_even(careful, strict).sentence("careful", "strict") == (
        "“careful” is cheaper than “strict” if a miss costs more than 2.4 [1.6, 3.9] false alarms."
    )


def test_options_of_a_comparison() -> None:
    assert (
        CompareOptions(rank_by="multiclass/accuracy").how(None)["rank_by"] == "multiclass/accuracy"
    )
    assert CompareOptions.defaults()["limit"] == 50
    options = CompareOptions(grouping=Grouping({"low": [0, 1], "high": [2]}))
    assert options.prepared(evaluate([0, 1, 2, 2], [0, 0, 2, 1])).metrics["binary/recall"] == 0.5


def test_a_comparison_as_tables() -> None:
    runs = {"forest": evaluate(LABELS, right(90)), "linear": evaluate(LABELS, right(70))}
    comparison = compare(runs, rank_by="multiclass/accuracy")
    ranked = [[1, "forest", "chosen", 0.9], [2, "linear", "behind", 0.7]]
    assert rows(comparison.to_frame(), "rank", "name", "status", "value") == ranked
    keys = ["baseline", "best", "confidence_level", "criterion", "gates", "how"]
    assert sorted(comparison.to_dict())[:6] == keys
    metrics = ["multiclass/accuracy", "binary/recall"]
    differences = paired_differences(runs["forest"], runs["linear"], metrics=metrics).to_frame()
    numbers = [pytest.approx(number) for number in (0.9, 0.7, 0.2)]
    assert rows(differences, "metric", "first", "second", "difference") == [
        [metric, *numbers] for metric in metrics
    ]


def test_segments_of_a_comparison() -> None:
    region = {"region": ["north"] * 100 + ["south"] * 100}
    both = {
        name: evaluate(LABELS, right(n), segments=region)
        for name, n in (("forest", 90), ("linear", 70))
    }
    segments = compare(both, rank_by="multiclass/accuracy", segments="region").segments
    columns = ("segment", "rows", "first_value", "second_value")
    assert rows(segments.to_frame(), *columns) == [["south", 100, 0.8, 0.4], ["north", 100, 1, 1]]
    assert rows(segments[0].to_frame().round(2), "segment", "difference", "low", "high") == [
        ["south", 0.4, 0.3, 0.51],
        ["north", 0, -0.05, 0.05],
    ]
    assert (segments[0].to_dict()["column"], segments[0].to_dict()["contrary"]) == ("region", [])


def test_judgements_as_plain_data() -> None:
    worse = evaluate(LABELS, right(70))
    data = judge(worse, require=["binary/recall >= 0.8"]).to_dict()
    assert (data["passed"], data["n_samples"]) == (False, 200)
    keys = ["criterion", "difference", "gate", "high", "low", "passed", "reason"]
    assert sorted(judge(worse, evaluate(LABELS, right(90))).checks[0].to_dict()) == keys
    constant = constant_answer(evaluate([0, 0, 1], [0, 1, 1]), "multiclass/accuracy")
    assert constant.to_dict()["words"] == "always “0”"


# evaluations


def test_rows_of_an_evaluation() -> None:
    y = [0, 1, 1, 1]
    first, second = evaluate(y, [0, 1, 0, 1]), evaluate(y, y)
    differs = first.answers("multiclass/accuracy") != second.answers("multiclass/accuracy")
    assert differs.tolist() == [False, False, True, False]
    evaluation = evaluate([0, 1, 1], y_prob=[0.1, 0.9, 0.4])
    assert (evaluation.rows_size, evaluation.without_probabilities().rows_size) == (48, 24)


def test_an_evaluation_stored_and_as_a_table(tmp_path: Path) -> None:
    evaluation = evaluate([0, 1, 1, 0], [0, 1, 0, 0])
    evaluation.write_rows(tmp_path / "rows.parquet")
    stored = Evaluation.from_data(json.loads(evaluation.to_json()))
    assert len(stored.with_rows((tmp_path / "rows.parquet").read_bytes()).rows) == 4
    frame = evaluation.to_frame().set_index("metric").loc[["multiclass/accuracy", "binary/recall"]]
    assert rows(frame, "value", "better") == [[0.75, "higher"], [0.5, "higher"]]


def test_an_evaluation_at_another_level() -> None:
    evaluation = evaluate([0, 1] * 50, [0, 1, 1, 1] * 25)
    ends = [evaluation.at_level(level).intervals["multiclass/accuracy"] for level in (0.95, 0.99)]
    assert ends[0] == pytest.approx((0.657, 0.825), abs=5e-4)
    assert ends[1] == pytest.approx((0.625, 0.844), abs=5e-4)
