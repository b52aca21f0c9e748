"""Segments of an evaluation: the same statistics from every source, tables, regrouping, files, search, command line."""

import json
from dataclasses import replace
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from click.testing import CliRunner
from scipy import stats

from cmtrack import (
    Accumulator,
    Costs,
    Evaluation,
    Grouping,
    Metric,
    evaluate,
    evaluate_table,
    load_evaluation,
    log_evaluation,
)
from cmtrack.cli import main

# Inside: sums of all segments but one stand behind each comparison with the rest; a user sees no sums.
from cmtrack.statistics import collected

# Inside: the last value of a capped column, which must stay distinct from every text.
from cmtrack.statistics.segment_values import Others
from support.problems import B20, D20, random_problem
from support.tables import EVERY_SOURCE, as_table

pytestmark = pytest.mark.usefixtures("undrawn")

N = 900
RNG = np.random.default_rng(1)
Y, CALL, PROB = random_problem(RNG, n=N, k=3, skill=1.0)
TABLE = pd.DataFrame(
    {
        "region": RNG.choice(np.array(["south", "north", None], dtype=object), N),
        "age": RNG.integers(0, 4, N),
        "y": Y,
        "call": CALL,
        "w": RNG.random(N),
        **dict(zip(("p_0", "p_1", "p_2"), PROB.T, strict=True)),
    }
)
NAMES: list[Any] = ["region", "age", ("region", "age")]
TWO = Grouping({"low": [0], "high": [1, 2]})
CASES: dict[str, dict[str, Any]] = {
    "labels": {},
    "classes": {"y_prob": True},
    "groups": {"y_prob": True, "grouping": TWO},
    "weights": {"y_prob": True, "sample_weight": True},
    "weighted labels": {"sample_weight": True},
}


def whole(case: dict[str, Any], segments: Any = NAMES, **more: Any) -> Evaluation:
    options = {
        **case,
        "segments": (TABLE, segments) if isinstance(segments, list) else segments,
        **more,
    }
    columns = {"y_prob": PROB, "sample_weight": TABLE["w"]}
    options |= {name: columns[name] for name in columns if name in case}
    return evaluate(TABLE["y"], None if "y_prob" in case else TABLE["call"], **options)


def same_segments(ours: Evaluation, theirs: Evaluation) -> None:
    first, second = ours.statistics.segments, theirs.statistics.segments
    assert first is not None
    assert second is not None
    assert list(first.columns) == list(second.columns) == ["region", "age", "region × age"]
    for name, one in first.columns.items():
        other = second.columns[name]
        assert one.values == other.values
        assert np.array_equal(one.rows, other.rows)
        assert one.matrix == pytest.approx(other.matrix, rel=1e-12)
        assert (one.losses is None) == (other.losses is None)
        if one.losses is not None and one.moments is not None:
            assert other.losses is not None
            assert other.moments is not None
            assert one.losses.mean == pytest.approx(other.losses.mean, rel=1e-9)
            assert one.losses.m2 == pytest.approx(other.losses.m2, rel=1e-9, abs=1e-12)
            assert one.moments.m4 == pytest.approx(other.moments.m4, rel=1e-9, abs=1e-12)


# -- statistics --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_segment_is_the_evaluation_of_its_rows(case):
    evaluation = whole(case)
    loaded = replace(evaluation, rows=None)
    for value in ("north", None):
        rows = (TABLE["region"] == value if value else TABLE["region"].isna()).to_numpy()
        options = {name: case[name] for name in case if name == "grouping"}
        weights = TABLE["w"][rows] if "sample_weight" in case else None
        if "y_prob" in case:
            alone = evaluate(
                TABLE["y"][rows],
                y_prob=PROB[rows],
                sample_weight=weights,
                **options,
                labels=[0, 1, 2],
            )
        else:
            alone = evaluate(
                TABLE["y"][rows], TABLE["call"][rows], sample_weight=weights, labels=[0, 1, 2]
            )
        own = evaluation.segments["region"][value]
        assert own.metrics == pytest.approx(alone.metrics, nan_ok=True)
        assert own.statistics == alone.statistics
        from_statistics = loaded.segments["region"][value]
        assert len(from_statistics.metrics) >= 20
        for name, number in from_statistics.metrics.items():
            assert number == pytest.approx(alone.metrics[name], rel=1e-9, abs=1e-12, nan_ok=True), (
                name
            )
            known = from_statistics.standard_errors.get(name)
            # whose errors need joint moments
            if known is not None and not name.startswith("spcc/"):
                assert known == pytest.approx(alone.standard_errors[name], rel=1e-7, abs=1e-12), (
                    name
                )


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_segments_sum_to_the_whole(case):
    evaluation = whole(case)
    for name, table in evaluation.segments.items():
        parts = collected.of_segments(evaluation.statistics, name, evaluation.scored)
        total = reduce(add, parts)
        if "sample_weight" in case:
            assert total.matrix.counts == pytest.approx(
                evaluation.statistics.matrix.counts, rel=1e-12
            )
        else:
            assert total.matrix == evaluation.statistics.matrix
            assert total.ranks == evaluation.statistics.ranks
        assert table.sizes.sum() == N
        if total.losses is not None and evaluation.statistics.losses is not None:
            assert total.losses.mean == pytest.approx(evaluation.statistics.losses.mean, rel=1e-12)
            assert total.moments is not None
            assert evaluation.statistics.moments is not None
            assert total.moments.m4 == pytest.approx(evaluation.statistics.moments.m4, rel=1e-9)
        if evaluation.statistics.labels_variance is not None:
            assert total.labels_variance == pytest.approx(
                evaluation.statistics.labels_variance, rel=1e-12
            )


def alike(ours: Any, theirs: Any) -> bool:
    """True where two statistics are the same but for the rounding of sums."""
    if isinstance(ours, dict):
        return list(ours) == list(theirs) and all(
            alike(own, theirs[name]) for name, own in ours.items()
        )
    if hasattr(ours, "__dataclass_fields__"):
        return all(
            alike(getattr(ours, name), getattr(theirs, name)) for name in ours.__dataclass_fields__
        )
    if ours is not None and np.asarray(ours).dtype.kind == "f":
        return bool(np.allclose(ours, theirs, rtol=1e-9, atol=1e-11))
    return bool(np.array_equal(ours, theirs))


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
@pytest.mark.parametrize("size", [2, 3, 5, 8])
def test_the_rest_of_a_segment_is_the_sum_of_all_others(case, size):
    evaluation = whole(case, {"x": np.arange(N) % size})
    held = evaluation.statistics, "x", evaluation.scored
    parts = collected.of_segments(*held)
    for k, rest in enumerate(collected.of_segments(*held, outside=True)):
        assert alike(rest, reduce(add, [part for j, part in enumerate(parts) if j != k]))
    assert alike(collected.of_segments(*held, places=[1])[0], parts[1])
    counts = evaluation.statistics.segments
    assert counts is not None
    with pytest.raises(ValueError, match="needs at least two segments, got 1"):
        counts.columns["x"].take([0]).rests()


@pytest.mark.slow
@pytest.mark.parametrize(
    "case",
    [*CASES.values(), {"y_prob": True, "costs": Costs({(0, 1): 2.0})}],
    ids=[*CASES, "costs"],
)
def test_a_metric_of_all_segments_is_that_of_each_one(case):
    own = [
        Metric("custom/hits", _hits, interval="wilson"),
        Metric("custom/gain", _gain, of="binary", low=-1, high=5),
    ]
    evaluation = replace(
        whole(case, {"x": np.where(TABLE["y"] == 2, 0, np.arange(N) % 5)}, extra_metrics=own),
        rows=None,
    )
    table, level = evaluation.segments["x"], 0.9
    ones = [table[value] for value in table]
    others = [
        reduce(add, [one.statistics for j, one in enumerate(ones) if j != k])
        for k in range(len(ones))
    ]
    outside = [replace(one, statistics=rest) for one, rest in zip(ones, others, strict=True)]
    at_level = [one.at_level(level) for one in ones]
    known = [name for name in ones[0].metrics if name in evaluation.metrics]
    assert len(known) >= 20
    frame = table.to_frame(known).set_index(["metric", "segment"])
    none = (np.nan, np.nan)
    for name in known:
        found, (low, high) = table.estimates(name), table.own_intervals(name, level)
        rest = [frame["rest"][name, text] for text in table.texts]
        assert rest == pytest.approx(
            [one.metrics.get(name, np.nan) for one in outside], rel=1e-12, nan_ok=True
        )
        assert found.values == pytest.approx(
            [one.metrics.get(name, np.nan) for one in ones], rel=1e-12, nan_ok=True
        )
        why = [one.undefined.get(name, "") for one in ones]
        assert [frame["undefined"][name, text] for text in table.texts] == why
        if not name.endswith(
            ("/tp", "/fn", "/fp", "/tn", "/imp", "/imn", "/support", "/mismatches")
        ):
            errors = [one.standard_errors.get(name, np.nan) for one in ones]
            assert found.errors == pytest.approx(errors, rel=1e-12, nan_ok=True)
        if found.n is None:
            ends = np.array([one.intervals.get(name, none) for one in at_level])
            assert np.column_stack((low, high)) == pytest.approx(ends, rel=1e-12, nan_ok=True)
        else:
            assert found.n == pytest.approx(
                [one.size_of(name) for one in ones], rel=1e-12, nan_ok=True
            )


def _hits(counts: Any) -> Any:
    return np.trace(counts) / counts.sum()


def _gain(b: Any) -> Any:
    return (5 * b.tp - b.fp) / (b.tp + b.fp + b.fn)


@pytest.mark.slow
def test_segments_of_decision_values_and_of_many_blocks(monkeypatch):
    scores = np.log(PROB)
    plain = evaluate(TABLE["y"], y_score=scores, segments=TABLE[["region"]])
    assert plain.segments["region"]["north"].metrics["multiclass/top_2_accuracy"] > 0
    small = whole(CASES["groups"])
    many = {"x": np.arange(N) ** 2 % 97}
    weights = {"sample_weight": np.where(many["x"] == 3, 0.0, TABLE["w"])}
    counted = whole(CASES["groups"], many).statistics
    weighted = whole(CASES["groups"], many, **weights).statistics
    # as for tables of millions of rows
    monkeypatch.setattr("cmtrack.statistics.segmented._FEWEST_ROWS", 64)
    monkeypatch.setattr("cmtrack.statistics.segmented._VALUES", 64)  # as above
    same_segments(whole(CASES["groups"]), small)
    assert alike(whole(CASES["groups"], many).statistics, counted)
    assert alike(whole(CASES["groups"], many, **weights).statistics, weighted)


def test_values_of_any_kind_are_segments():
    columns = {
        "mixed": pd.Series(["1", 1, 2.5, None] * 225, dtype=object),
        "day": pd.Series(pd.to_datetime(["2024-01-02", "2024-01-01", None] * 300)),
        "flag": np.arange(N) % 2 == 0,
        "grade": pd.Categorical(
            ["low", "high", "mid"] * 300, categories=["low", "mid", "high", "none"]
        ),
    }
    evaluation = evaluate(TABLE["y"], TABLE["call"], segments=columns)
    held = {name: table.values for name, table in evaluation.segments.items()}
    assert held == {
        "mixed": (1, 2.5, "1", None),
        "day": ("2024-01-01 00:00:00", "2024-01-02 00:00:00", None),
        "flag": (False, True),
        "grade": ("low", "mid", "high"),
    }
    assert evaluation.segments["mixed"].texts == ("1 (int)", "2.5", "1 (str)", "(missing)")
    assert (
        evaluation.segments["mixed"][1].n_samples
        == evaluation.segments["mixed"]["1"].n_samples
        == 225
    )
    assert (
        evaluation.segments["grade"]["(missing)" if None in held["grade"] else "mid"].n_samples
        == 300
    )
    assert Evaluation.from_data(json.loads(evaluation.to_json())) == evaluation


@pytest.mark.slow
def test_the_largest_segments_stay_and_a_note_says_so():
    codes = np.concatenate([np.repeat(np.arange(999), 3), np.arange(999, 1500)])
    y = np.arange(len(codes)) % 2
    note = (
        "“zip” has more than 1,000 values: the 999 most frequent values are segments, and the "
        "others with 501 rows together are the segment “(others)”."
    )
    table = pd.DataFrame({"zip": codes, "y": y})
    seen = Accumulator([0, 1])
    for part in np.array_split(np.arange(len(codes)), 5):
        seen.update(y[part], y[part], segments={"zip": codes[part]})
    for evaluation in (
        evaluate(y, y, segments={"zip": codes}),
        evaluate_table(table, y_true="y", y_pred="y", segments=["zip"]),
        seen.compute(),
    ):
        assert evaluation.notes == (note,)
        assert len(evaluation.segments["zip"]) == 1000
        assert evaluation.segments["zip"].values[-1] is Others.OTHERS
        assert evaluation.segments["zip"]["(others)"].n_samples == 501
        assert Evaluation.from_data(json.loads(evaluation.to_json())) == evaluation
    twice = evaluation + evaluation
    assert twice.notes == (note.replace("501", "1,002"),)
    assert twice.segments["zip"].sizes[-1] == 1002


# -- every source ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_batches_give_the_same_segments(case):
    seen, other = (
        Accumulator([0, 1, 2], **({"grouping": TWO} if "grouping" in case else {}))
        for _ in range(2)
    )
    for place, rows in enumerate(np.array_split(np.arange(N), 9)):
        given: dict[str, Any] = {"segments": (TABLE.iloc[rows], NAMES)}
        if "sample_weight" in case:
            given["sample_weight"] = TABLE["w"].iloc[rows]
        own = (None, {"y_prob": PROB[rows]}) if "y_prob" in case else (TABLE["call"].iloc[rows], {})
        (seen if place % 2 else other).update(TABLE["y"].iloc[rows], own[0], **own[1], **given)
    same_segments((seen + other).compute(), whole(case))


def check_source(table: Any) -> None:
    found = evaluate_table(table, y_true="y", y_prob="p_*", grouping=TWO, segments=NAMES)
    same_segments(found, whole(CASES["groups"]))
    found = evaluate_table(table, y_true="y", y_pred="call", sample_weight="w", segments=NAMES)
    same_segments(found, whole(CASES["weighted labels"]))


@pytest.mark.slow
@pytest.mark.parametrize("engine", EVERY_SOURCE)
def test_every_source_gives_the_same_segments(engine: str, tmp_path: Path) -> None:
    check_source(as_table(engine, TABLE, tmp_path))


def test_tables_keep_the_order_of_categories() -> None:
    grades = pd.Categorical(
        ["low", "high", "mid"] * 300, categories=["low", "mid", "high", "none"], ordered=True
    )
    table = TABLE.assign(grade=grades)
    for source in (table, pa.Table.from_pandas(table)):
        found = evaluate_table(source, y_true="y", y_pred="call", segments=["grade"])
        assert found.segments["grade"].values == ("low", "mid", "high")


# -- tables ------------------------------------------------------------------------------------------------------------


def test_vector_26():
    evaluation = evaluate(B20, y_prob=D20, segments=list("aaaaaabbbbbbbcccccdd"))
    table = evaluation.segments["0"]
    frame = table.to_frame("multiclass/accuracy").set_index("segment").loc[list("abcd")]
    near = {"abs": 6e-11}
    assert frame["value"].tolist() == pytest.approx([5 / 6, 3 / 7, 1, 1 / 2])
    # of four segments; Clopper and Pearson (1934): fewer than 20 hits each
    alpha = 2 * stats.norm.sf(2.4909151310)
    for (low, high), hits, n in zip(
        frame[["low", "high"]].to_numpy(), (5, 3, 5, 1), (6, 7, 5, 2), strict=True
    ):
        assert low == pytest.approx(stats.beta.ppf(alpha / 2, hits, n - hits + 1), **near)
        assert high == pytest.approx(
            1 if hits == n else stats.beta.isf(alpha / 2, hits + 1, n - hits), **near
        )
    apart = [0.1904761905, -0.4175824176, 0.4, -0.2222222222]
    assert frame["difference"].tolist() == pytest.approx(apart, **near)
    low = [-0.3439391327, -0.7481410930, -0.2024803890, -0.6916224491]
    assert frame["difference_low"].tolist() == pytest.approx(low, **near)
    high = [0.5357242086, 0.0918572896, 0.6958732396, 0.3008594690]
    assert frame["difference_high"].tolist() == pytest.approx(high, **near)
    found = table.disparity("multiclass/accuracy")
    assert (found.gap, found.ratio) == pytest.approx((4 / 7, 3 / 7))
    assert (found.gap_low, found.gap_high) == pytest.approx((0, 0.9404100705), **near)
    assert (table.texts[found.lowest], table.texts[found.highest]) == ("b", "c")


def test_intervals_hold_for_the_segments_of_all_columns():
    alone, together = (
        whole({}, names).segments["region"].to_frame() for names in (["region"], ["region", "age"])
    )
    assert together["value"].tolist() == alone["value"].tolist()
    assert (together["high"] - together["low"] > alone["high"] - alone["low"]).all()
    assert together["difference_low"].tolist() == alone["difference_low"].tolist()


def test_segments_are_ordered_by_the_values_that_are_shown():
    hits = np.concatenate([np.arange(400) % 10 < 7, np.arange(400) % 10 < 9, [False, True]])
    names = np.repeat(["bad", "good", "tiny"], [400, 400, 2])
    y = np.arange(802) % 2
    frame = (
        evaluate(y, np.where(hits, y, 1 - y), segments={"x": names})
        .segments["x"]
        .to_frame("multiclass/accuracy")
    )
    assert frame["segment"].tolist() == ["tiny", "bad", "good"]
    assert frame["value"].tolist() == [0.5, 0.7, 0.9]


@pytest.mark.slow
def test_metrics_of_a_table(recwarn):
    share = Metric("own/share", lambda counts: counts[0, 0] / counts.sum(), low=0, high=1)
    evaluation = whole(CASES["groups"], extra_metrics=[share])
    table = evaluation.segments["region"]
    names = [
        "binary/roc_auc",
        "probability/log_loss",
        "class/1/recall",
        "own/share",
        "class/1/support",
    ]
    frame = table.to_frame(names)
    assert frame["metric"].tolist() == np.repeat(names, 3).tolist()
    for row in frame.itertuples():
        own = table[row.segment]
        assert row.value == pytest.approx(own.metrics[row.metric], rel=1e-9)
        if row.metric != "class/1/support":
            assert row.low < row.value < row.high
            low, high = own.intervals[row.metric]
            assert row.high - row.low > high - low
            assert row.difference == pytest.approx(row.value - row.rest)
    assert set(evaluation.segments["region"].to_frame()["metric"]) == {
        "multiclass/accuracy",
        "binary/recall",
        "binary/precision",
    }
    assert "“region”: 3 segments" in table._repr_html_()
    assert repr(evaluation.segments) == "Segments(region: 3, age: 4, region × age: 12)"
    assert evaluation.segments["region", "age"] is evaluation.segments["region × age"]


def test_rows_that_belong_together_widen_intervals():
    twice = pd.concat([TABLE, TABLE], ignore_index=True)
    plain = evaluate(TABLE["y"], TABLE["call"], segments=TABLE[["age"]])
    groups = np.tile(np.arange(N), 2)
    known = evaluate(twice["y"], twice["call"], segments=twice[["age"]], groups=groups)
    first, second = (one.segments["age"].to_frame("multiclass/accuracy") for one in (plain, known))
    assert second["value"].tolist() == first["value"].tolist()
    assert second["low"].tolist() == pytest.approx(first["low"].tolist(), abs=0.01)
    assert known.segments["age"][1].n_clusters == plain.segments["age"].sizes[1]


@pytest.mark.slow
def test_segments_follow_regrouping_pricing_and_merging():
    other = Grouping({"a": [0, 1], "b": [2]})
    for evaluation in (whole(CASES["groups"]), replace(whole(CASES["groups"]), rows=None)):
        again = evaluation.regroup(other).segments["region"]["north"]
        direct = whole({"y_prob": True, "grouping": other}).segments["region"]["north"]
        for name in ("binary/recall", "reduced/groups/accuracy", "probability/log_loss"):
            if name in direct.metrics:
                assert again.metrics[name] == pytest.approx(direct.metrics[name])
        priced = (
            evaluation.price({("low", "high"): 1, ("high", "low"): 5})
            .segments["region"]
            .to_frame("cost/mean")
        )
        assert (priced["value"] > 0).all()
    back = replace(whole(CASES["groups"]), rows=None).regroup(other).regroup(TWO)
    assert back.segments["region"]["north"].statistics.score_moments is None
    first, second = (
        evaluate(TABLE["y"][rows], y_prob=PROB[rows], segments=(TABLE[rows], NAMES))
        for rows in (np.arange(N) < 300, np.arange(N) >= 300)
    )
    same_segments(first + second, whole(CASES["classes"]))
    with pytest.raises(ValueError, match="must contain the same statistics, one has no 'segments'"):
        first + evaluate(TABLE["y"], y_prob=PROB)


@pytest.mark.slow
def test_files_hold_segments():
    for case in CASES.values():
        evaluation = whole(case)
        loaded = Evaluation.from_data(json.loads(evaluation.to_json()))
        assert loaded == evaluation
        frame, again = (
            one.segments["region × age"].to_frame("multiclass/accuracy")
            for one in (evaluation, loaded)
        )
        pd.testing.assert_frame_equal(frame, again)


# -- search ------------------------------------------------------------------------------------------------------------


def test_the_worst_segments_are_those_of_the_metric():
    y = TABLE["y"].to_numpy()
    planted = ((TABLE["region"] == "north") & (TABLE["age"] == 2)).to_numpy()
    call = np.where(planted & (y == 1), 0, y)
    evaluation = evaluate(y, call, segments=TABLE[["region", "age"]])
    for metric in ("class/1/recall", "multiclass/accuracy"):
        found = evaluation.worst_segments(metric, min_rows=10)
        assert found.segments[0].text == "region = north, age = 2"
        assert found.value == pytest.approx(evaluation.metrics[metric])
        assert found.segments[0].p_adjusted <= 0.05
    own = evaluation.worst_segments("class/1/recall", min_rows=10)
    assert (own.rows, own.segments[0].value) == ((y == 1).sum(), 0.0)
    lost = evaluation.worst_segments("class/0/precision", min_rows=10)
    assert lost.rows == (call == 0).sum()
    flat = evaluate(y, y, segments=TABLE[["age"]]).worst_segments()
    assert "All 900 rows have the same value: no segment differs." in flat.notes


def test_losses_and_costs_are_searched_in_any_columns():
    evaluation = whole(CASES["groups"], costs={("low", "high"): 1, ("high", "low"): 5})
    for metric in ("probability/log_loss", "probability/brier", "cost/mean"):
        found = evaluation.worst_segments(metric, columns=TABLE[["w", "age"]], depth=1)
        assert found.value == pytest.approx(evaluation.metrics[metric])
        assert found.searched == 9
        first = found.segments[0]
        assert first.value > found.value


@pytest.mark.parametrize(
    ("metric", "options", "says"),
    [
        ("multiclass/f1_macro", {}, "searches metrics that are means over rows"),
        ("class/0/support", {}, "searches metrics that are means over rows"),
        ("binary/roc_auc", {}, "searches metrics that are means over rows"),
        ("binary/recall", {"min_rows": 10_000}, "min_rows must be at most"),
        ("binary/recall", {"depth": 3}, "depth must be 1 or 2, got 3"),
        (
            "binary/recall",
            {"columns": {"x": [1, 2]}},
            "'x' must have one value per row, got 2 for 900 rows",
        ),
    ],
)
def test_what_cannot_be_searched(metric, options, says):
    with pytest.raises(ValueError, match=says):
        whole(CASES["groups"]).worst_segments(metric, **options)


def test_a_search_of_sampling_weights_says_what_works():
    weights = np.full(len(TABLE), 1.5)
    evaluation = evaluate(
        TABLE["y"], TABLE["call"], segments=TABLE[["region"]], sample_weight=weights
    )
    with pytest.raises(ValueError, match=r"for sampling weights, evaluation\.segments"):
        evaluation.worst_segments()


def test_a_search_needs_rows_and_columns():
    with pytest.raises(ValueError, match="needs the rows, which this evaluation does not have"):
        replace(whole({}), rows=None).worst_segments()
    with pytest.raises(ValueError, match="needs columns to search, got none"):
        evaluate(TABLE["y"], TABLE["call"]).worst_segments()


# -- bad input ---------------------------------------------------------------------------------------------------------

BAD: dict[str, tuple[Any, str]] = {
    "absent": ((TABLE, ["area"]), r"segments must be columns of segments, \['area'\] are not in"),
    "length": (
        {"x": ["a", "b"]},
        "segment column 'x' must have one value per row, got 2 for 900 rows",
    ),
    "one value": (
        {"x": ["a"] * N},
        "segment column 'x' must contain at least two values, got only 'a' in 900 rows",
    ),
    "continuous": (
        TABLE[["w"]],
        "segment column 'w' must contain categories, got 900 numbers such as",
    ),
    "repeated": ((TABLE, ["age", "age"]), "segments must not repeat"),
    "none": ((TABLE, []), "segments must name at least one column, got none"),
    "crossed with itself": ((TABLE, [("age", "age")]), "segments must not repeat"),
    "lists": ({"x": [[1]] * N}, "segment column 'x' must"),
    "another index": (TABLE[["age"]].set_index(np.arange(1, N + 1)), "must contain the same rows"),
}


@pytest.mark.parametrize(("segments", "says"), BAD.values(), ids=BAD)
def test_bad_segments(segments, says):
    y = (
        TABLE["y"].set_axis(np.arange(N))
        if says.startswith("must contain the same")
        else TABLE["y"]
    )
    if says.startswith("must contain the same"):
        y = y.set_axis(np.arange(N)[::-1].copy())
    with pytest.raises((TypeError, ValueError), match=says):
        evaluate(y, TABLE["call"].to_numpy(), segments=segments)


@pytest.mark.slow
def test_bad_segments_of_tables_and_batches():
    options: dict[str, Any] = {"y_true": "y", "y_pred": "call"}
    with pytest.raises(ValueError, match="segments must be a column of the table, got 'area'"):
        evaluate_table(TABLE, segments=["area"], **options)
    with pytest.raises(ValueError, match="segment column 'w' must contain categories"):
        evaluate_table(TABLE, segments=["w"], **options)
    with pytest.raises(
        ValueError,
        match="segment column 'x' must contain at least two values, got only '1' in 900 rows",
    ):
        evaluate_table(TABLE.assign(x=1), segments=["x"], **options)
    with pytest.raises(
        ValueError, match="segment column 'id' must have at most 10,000 values here, got 12,000"
    ):
        evaluate_table(
            pd.DataFrame({"y": [0, 1] * 6000, "call": 0, "id": np.arange(12_000)}),
            segments=["id"],
            **options,
        )
    with pytest.raises(TypeError, match="segments must be a list of names"):
        evaluate_table(TABLE, segments="region", **options)
    many = Accumulator([0, 1])
    for start in (0, 4000, 8000):  # each batch alone has few
        codes = start + np.arange(40_000) // 10
        many.update(codes % 2, codes % 2, segments={"x": codes})
        if start < 8000:
            assert many.compute().n_samples == 10 * (start + 4000)
    with pytest.raises(ValueError, match="'x' must have at most 10,000 values here, got 12,000"):
        many.compute()
    seen = Accumulator([0, 1, 2])
    seen.update(TABLE["y"], TABLE["call"], segments=TABLE[["age"]])
    with pytest.raises(ValueError, match="every batch must have the same columns"):
        seen.update(TABLE["y"], TABLE["call"])
    assert seen.n_rows == N


def test_names_that_are_not_there():
    evaluation = whole({})
    with pytest.raises(KeyError, match=r"there are no segments by 'regoin'.*region"):
        evaluation.segments["regoin"]
    with pytest.raises(KeyError, match="has no segment 'nort'"):
        evaluation.segments["region"]["nort"]
    with pytest.raises(KeyError, match="there is no metric 'binary/recal'"):
        evaluation.segments["region"].to_frame("binary/recal")
    with pytest.raises(KeyError, match="the rows were evaluated without segments"):
        evaluate(TABLE["y"], TABLE["call"]).segments["region"]
    alone = replace(whole(CASES["groups"]), rows=None)
    with pytest.raises(ValueError, match="binary/roc_auc of segments needs the rows"):
        alone.segments["region"].to_frame("binary/roc_auc")


def damage_sizes(held: Any) -> None:
    held["rows"] = held["rows"][:-1]


def damage_values(held: Any) -> None:
    held["values"] = held["values"][:1] * len(held["values"])


def damage_value(held: Any) -> None:
    held["values"][0] = {"a": 1}


def damage_number(held: Any) -> None:
    held["values"] = [str(k) for k in range(1001)]


def damage_name(held: Any) -> None:
    held["name"] = 3


@pytest.mark.parametrize(
    "damage", [damage_sizes, damage_values, damage_value, damage_number, damage_name]
)
def test_damaged_segments_are_refused(damage):
    data = json.loads(whole({}, ["age"]).to_json())
    damage(data["statistics"]["segments"][0])
    with pytest.raises(ValueError, match="the evaluation is damaged"):
        Evaluation.from_data(data)


# -- doors -------------------------------------------------------------------------------------------------------------


def test_the_command_line_shows_segments(tmp_path):
    file = tmp_path / "rows.parquet"
    TABLE.to_parquet(file)
    line = [
        "evaluate",
        str(file),
        "--y-true",
        "y",
        "--y-pred",
        "call",
        "--segment",
        "region",
        "--segment",
        "region,age",
    ]
    shown = CliRunner().invoke(main, line)
    assert shown.exit_code == 0, shown.output
    assert "By region: the worst first" in " ".join(shown.output.split())
    assert "By region × age: 10 of 12 segments, the worst first" in " ".join(shown.output.split())
    data = json.loads(CliRunner().invoke(main, [*line, "--json"]).output)
    own = {row["segment"]: row["value"] for row in data["segments"]["region"]}
    assert own["north"] == pytest.approx(
        whole({}).segments["region"]["north"].metrics["multiclass/accuracy"]
    )
    two = CliRunner().invoke(main, ["evaluate", str(file), str(file), *line[2:], "--json"])
    assert json.loads(two.output)["segments"]["region"][0]["rows"] % 2 == 0
    wrong = CliRunner().invoke(main, [*line[:-1], "regoin"])
    assert wrong.exit_code != 0
    assert "has no column 'regoin'" in wrong.output


@pytest.mark.slow
def test_a_run_keeps_segments(store: Any) -> None:
    import mlflow

    with mlflow.start_run():
        logged = log_evaluation(TABLE["y"], TABLE["call"], segments=(TABLE, NAMES), strict=True)
    found = load_evaluation(logged.run_id)
    assert found == logged.evaluation
    assert (
        found.segments["region"]["north"].metrics == whole({}).segments["region"]["north"].metrics
    )
    assert found.regroup(TWO).segments["region"]["north"].metrics["binary/recall"] > 0


@pytest.mark.slow
def test_a_hook_with_rows_takes_segments(store: Any) -> None:
    import mlflow
    from sklearn.dummy import DummyClassifier

    from cmtrack_integrations.sklearn import log_estimator

    model = DummyClassifier(strategy="stratified", random_state=0).fit(TABLE[["age"]], TABLE["y"])
    with mlflow.start_run():
        logged = log_estimator(
            model, TABLE[["age"]], TABLE["y"], segments=TABLE[["region"]], strict=True
        )
    assert logged.evaluation is not None
    assert logged.evaluation.segments["region"].sizes.sum() == N
