"""Metrics of one's own: everything that a built-in metric has follows from one declaration."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import cmtrack
from cmtrack import (
    Accumulator,
    Evaluation,
    Grouping,
    Metric,
    compare,
    evaluate,
    evaluate_table,
    paired_differences,
)
from cmtrack.comparison import judge
from cmtrack.metrics import lookup
from cmtrack.report import metric_title, report_html
from support.problems import learning_problem, random_guesses, random_labels, random_problem
from support.stores import runs_of, sqlite_store

pytestmark = pytest.mark.usefixtures("undrawn")

UNKNOWN = "its function is unknown here, so only the stored numbers are available; "
"""The reason where a file has a metric without its function."""

GROUPS = Grouping({"rest": [0, 1], "c": [2]}, "strict", name="two")
WORDS: dict[str, Any] = {"of": "binary", "low": 0, "high": 1}
F1 = Metric("custom/f1", lambda b: 2 * b.tp / (2 * b.tp + 2 * b.imp + b.fn + b.fp), **WORDS)
RECALL = Metric(
    "custom/recall", lambda b: b.tp / (b.tp + b.fn + b.imp), of="binary", interval="wilson"
)
GAIN = Metric("custom/gain", lambda b: 5 * b.tp - b.fp, of="binary", title="gain of the campaign")
ACCURACY = Metric("custom/accuracy", lambda c: np.trace(c) / c.sum(), interval="wilson")
KAPPA = Metric(
    "custom/kappa",
    lambda c: (np.trace(c) * c.sum() - c.sum(0) @ c.sum(1)) / (c.sum() ** 2 - c.sum(0) @ c.sum(1)),
    low=-1,
    high=1,
)
BEST = Metric(
    "custom/largest_recall",
    lambda c: max(c[k, k] / c[k].sum() for k in range(len(c)) if c[k].sum() > 0),
)
ALL = [F1, RECALL, GAIN, ACCURACY, KAPPA, BEST]
TWINS = {
    "custom/f1": "binary/f1",
    "custom/recall": "binary/recall",
    "custom/accuracy": "multiclass/accuracy",
    "custom/kappa": "multiclass/cohen_kappa",
}


def rows(seed: int) -> tuple[np.ndarray, np.ndarray]:
    y = random_labels(300, 3, seed, shares=[0.5, 0.3, 0.2])
    return y, random_guesses(y, 3, seed=100 + seed)


def evaluated(right: float = 0.7, seed: int = 0, **options: Any) -> Evaluation:
    y, _ = rows(0)
    return evaluate(
        y, random_guesses(y, 3, right, seed + 1), grouping=GROUPS, extra_metrics=ALL, **options
    )


def logged_off(evaluation: Evaluation) -> Evaluation:
    """As another process reads it, where the functions are not known."""
    return cmtrack.evaluation.loading.loads(evaluation.to_json())


@pytest.mark.parametrize("kind", ["rows", "whole weights", "fractions", "groups"])
def test_a_metric_of_ones_own_has_the_numbers_of_its_built_in_twin(kind: str) -> None:
    n = 300
    options: dict[str, Any] = {
        "rows": {},
        "whole weights": {"sample_weight": np.arange(n) % 4},
        "fractions": {"sample_weight": 0.1 + np.arange(n) % 5},
        "groups": {"groups": np.arange(n) // 3},
    }[kind]
    evaluation = evaluated(**options)
    weighted = kind == "fractions"
    for own, built_in in TWINS.items():
        assert evaluation.metrics[own] == pytest.approx(evaluation.metrics[built_in], rel=1e-12), (
            own
        )
        np.testing.assert_allclose(
            evaluation.influence(own), evaluation.influence(built_in), atol=1e-9
        )
        if weighted and lookup(built_in).interval == "wilson":
            # a share's denominator is not known: its error is that of the weights as they are
            continue
        assert evaluation.standard_errors[own] == pytest.approx(
            evaluation.standard_errors[built_in], rel=1e-9
        ), own
        assert evaluation.intervals[own] == pytest.approx(
            evaluation.intervals[built_in], rel=1e-9
        ), own
    assert evaluation.metrics["custom/gain"] == 5 * evaluation.binary.tp - evaluation.binary.fp
    assert evaluation.standard_errors["custom/gain"] > 0


@pytest.mark.parametrize("kind", ["rows", "groups"])
def test_it_has_them_beside_probabilities_of_many_classes(kind: str) -> None:
    """Averages of areas have errors by rows that are handed on: those were taken for errors of groups."""
    y, _, p = random_problem(3, n=300, k=3)
    groups = None if kind == "rows" else np.arange(300) // 3
    evaluation = evaluate(y, y_prob=p, grouping=GROUPS, groups=groups, extra_metrics=ALL)
    for own, built_in in TWINS.items():
        assert evaluation.standard_errors[own] == pytest.approx(
            evaluation.standard_errors[built_in], rel=1e-9
        ), own
        assert evaluation.intervals[own] == pytest.approx(
            evaluation.intervals[built_in], rel=1e-9
        ), own
    assert {"custom/gain", "custom/largest_recall"} <= set(evaluation.intervals)


@pytest.mark.slow
def test_paired_differences_and_rankings_are_those_of_the_built_in_twin() -> None:
    first, second = evaluated(0.8), evaluated(0.7, seed=1)
    found = paired_differences(first, second)
    assert found.paired
    for own, built_in in TWINS.items():
        for number in ("difference", "standard_error", "low", "high", "pvalue"):
            expected = getattr(found[built_in], number)
            assert getattr(found[own], number) == pytest.approx(expected, rel=1e-8, abs=1e-12), (
                own,
                number,
            )
    runs = {"a": first, "b": second, "c": evaluated(0.72, seed=2)}
    for own, built_in in TWINS.items():
        ours, theirs = (compare(runs, rank_by=name).to_frame() for name in (own, built_in))
        assert ours["name"].tolist() == theirs["name"].tolist()
        for column in (
            "value",
            "low",
            "high",
            "difference",
            "pvalue",
            "p_holm",
            "p_max_t",
            "rank",
            "tied",
        ):
            mine, other = (frame[column].astype(float).to_numpy() for frame in (ours, theirs))
            np.testing.assert_allclose(mine, other, rtol=1e-7, atol=1e-9, err_msg=column)


@pytest.mark.slow
def test_gates_tie_breakers_and_the_report_know_it(tmp_path) -> None:
    runs = {"a": evaluated(0.9), "b": evaluated(0.5, seed=1)}
    limit = (runs["a"].metrics["custom/gain"] + runs["b"].metrics["custom/gain"]) / 2
    found = compare(
        runs, rank_by="custom/f1", require=f"custom/gain >= {limit}", tie_breakers="custom/gain"
    )
    assert [stop.run.name for stop in found.failed] == ["b"]
    page = compare(runs, rank_by="custom/gain").report(tmp_path / "review.html")
    assert "gain of the campaign" in page.read_text()
    assert metric_title("custom/gain", catalog=runs["a"].catalog) == "gain of the campaign"
    assert "gain of the campaign" in report_html(runs["a"], {})
    frame = runs["a"].to_frame().set_index("metric")
    assert frame.loc["custom/gain", "better"] == "higher"


def test_a_function_without_complex_numbers_is_differentiated_all_the_same() -> None:
    rounded = Metric(
        "custom/abs_f1",
        lambda b: abs(float(2 * b.tp)) / float(b.fn + b.fp + 2 * (b.tp + b.imp)),
        **WORDS,
    )
    partly = Metric(
        "custom/partly", lambda b: (abs(b.tp) + b.tp) / (b.fn + b.fp + 2 * (b.tp + b.imp)), **WORDS
    )
    y, p = rows(0)
    evaluation = evaluate(y, p, grouping=GROUPS, extra_metrics=[rounded, partly])
    for name in ("custom/abs_f1", "custom/partly"):
        assert evaluation.standard_errors[name] == pytest.approx(
            evaluation.standard_errors["binary/f1"], rel=1e-7
        )
        np.testing.assert_allclose(
            evaluation.influence(name), evaluation.influence("binary/f1"), atol=1e-5
        )


def test_shares_of_0_and_1_have_the_interval_of_their_denominator() -> None:
    evaluation = evaluate([0, 0, 0, 1, 1], [0, 0, 0, 1, 1], extra_metrics=[RECALL])
    assert evaluation.metrics["custom/recall"] == 1
    assert evaluation.intervals["custom/recall"] == pytest.approx(
        evaluation.intervals["binary/recall"], rel=1e-9
    )
    never = evaluate([0, 0, 0, 1, 1], [0, 0, 0, 0, 0], extra_metrics=[RECALL])
    assert never.intervals["custom/recall"] == pytest.approx(
        never.intervals["binary/recall"], rel=1e-9
    )


def test_a_table_of_many_classes_needs_an_influence_that_is_given() -> None:
    rng = np.random.default_rng(0)
    y, p = rng.integers(0, 200, 40_000), rng.integers(0, 200, 40_000)
    plain = Metric("custom/hits", lambda c: np.trace(c) / c.sum())

    def influence(c: np.ndarray) -> np.ndarray:
        return np.eye(len(c)) - np.trace(c) / c.sum()

    given = Metric("custom/hits", lambda c: np.trace(c) / c.sum(), influence=influence)
    without, with_influence = (
        evaluate(y, p, labels=range(200), extra_metrics=[m]) for m in (plain, given)
    )
    assert "custom/hits" not in without.standard_errors
    assert without.influence("custom/hits") is None
    assert "no standard error of custom/hits" in " ".join(without.warnings)
    expected = with_influence.standard_errors["multiclass/accuracy"]
    assert with_influence.standard_errors["custom/hits"] == pytest.approx(expected, rel=1e-9)
    wrong = Metric("custom/hits", lambda c: np.trace(c) / c.sum(), influence=lambda c: np.ones(3))
    with pytest.raises(
        ValueError, match=r"influence of 'custom/hits' must have one value for each count.*\(3,\)"
    ):
        _ = evaluate(y, p, labels=range(200), extra_metrics=[wrong]).metrics


def test_accumulators_and_tables_take_them() -> None:
    import pandas as pd

    y, p = rows(3)
    whole = evaluate(y, p, grouping=GROUPS, labels=[0, 1, 2], extra_metrics=ALL)
    parts = [Accumulator([0, 1, 2], grouping=GROUPS, extra_metrics=ALL) for _ in range(2)]
    parts[0].update(y[:100], p[:100])
    parts[1].update(y[100:], p[100:])
    together = (parts[0] + parts[1]).compute()
    table = evaluate_table(
        pd.DataFrame({"y": y, "p": p}), y_true="y", y_pred="p", grouping=GROUPS, extra_metrics=ALL
    )
    for metric in ALL:
        for other in (together, table):
            assert other.metrics[metric.name] == pytest.approx(
                whole.metrics[metric.name], rel=1e-12
            )
            assert other.intervals[metric.name] == pytest.approx(
                whole.intervals[metric.name], rel=1e-9
            )
    other = Accumulator([0, 1, 2], grouping=GROUPS, extra_metrics=[GAIN])
    with pytest.raises(ValueError, match="must have the same extra_metrics to be merged"):
        _ = parts[0] + other


@pytest.mark.slow
def test_regrouping_merging_and_the_bootstrap_compute_them_anew() -> None:
    evaluation = evaluated()
    other = evaluation.regroup(Grouping({"a": [0], "rest": [1, 2]}, name="other"))
    assert other.metrics["custom/f1"] == pytest.approx(other.metrics["binary/f1"], rel=1e-12)
    assert other.metrics["custom/f1"] != evaluation.metrics["custom/f1"]
    twice = evaluation + evaluation
    assert twice.metrics["custom/gain"] == 2 * evaluation.metrics["custom/gain"]
    ends = evaluation.count_intervals("bootstrap", n_resamples=50)
    assert ends["custom/f1"] == pytest.approx(ends["binary/f1"], rel=1e-12)
    three = evaluation.regroup(Grouping({"a": [0], "b": [1], "c": [2]}, name="three"))
    assert three.undefined["custom/gain"] == "it needs two groups, and there are none"


def test_a_metric_that_is_added_without_the_rows_of_clusters_says_so() -> None:
    y, guesses = random_labels(300, 2), random_guesses(random_labels(300, 2), 2, 0.8)
    clustered = evaluate(y, guesses, groups=np.arange(300) // 3)
    assert "custom/accuracy" in clustered.with_metrics([ACCURACY]).intervals
    without_rows = replace(clustered, rows=None).with_metrics([ACCURACY])
    assert "custom/accuracy" not in without_rows.intervals
    assert any("metrics were added without the rows" in note for note in without_rows.notes)
    known = replace(clustered.with_metrics([ACCURACY]), rows=None)
    assert known.with_metrics([ACCURACY]).notes == clustered.notes


def test_a_file_keeps_the_numbers_where_the_function_is_not_known(tmp_path) -> None:
    evaluation = evaluated()
    evaluation.save(tmp_path)
    read = Evaluation.load(tmp_path)
    assert read == evaluation
    assert [metric.value for metric in read.extra_metrics] == [None] * len(ALL)
    for metric in ALL:
        assert read.metrics[metric.name] == evaluation.metrics[metric.name]
        assert read.standard_errors[metric.name] == evaluation.standard_errors[metric.name]
        assert read.intervals[metric.name] == evaluation.intervals[metric.name]
    again = logged_off(read)
    assert again == evaluation
    attached = Evaluation.load(tmp_path, extra_metrics=ALL)
    np.testing.assert_allclose(attached.influence("custom/f1"), evaluation.influence("custom/f1"))
    assert attached.regroup(GROUPS).metrics["custom/f1"] == evaluation.metrics["custom/f1"]


def test_what_needs_the_function_says_that_it_is_not_known(tmp_path) -> None:
    evaluation, second = evaluated(0.8), evaluated(0.6, seed=1)
    evaluation.save(tmp_path / "a")
    second.save(tmp_path / "b")
    first, other = Evaluation.load(tmp_path / "a"), Evaluation.load(tmp_path / "b")
    regrouped = first.regroup(Grouping({"a": [0], "rest": [1, 2]}, name="other"))
    assert math.isnan(regrouped.metrics["custom/gain"])
    assert regrouped.undefined["custom/gain"].startswith(UNKNOWN)
    assert (first + other).undefined["custom/f1"].startswith(UNKNOWN)
    assert (first + second).metrics["custom/gain"] == (evaluation + second).metrics["custom/gain"]
    with pytest.warns(
        UserWarning, match=r"a bootstrap leaves out custom/f1, .*function is unknown here"
    ):
        assert "custom/f1" not in first.count_intervals("bootstrap", n_resamples=20)
    found = paired_differences(first, other, metrics=["custom/f1", "binary/f1"])
    assert math.isnan(found["custom/f1"].pvalue)
    assert found["binary/f1"].pvalue < 1
    assert UNKNOWN in found.reason
    attached = paired_differences(
        first.with_metrics(ALL), other.with_metrics(ALL), metrics=["custom/f1"]
    )
    assert attached["custom/f1"].pvalue == pytest.approx(found["binary/f1"].pvalue, rel=1e-6)


def test_another_confidence_level_goes_by_the_error_that_was_written() -> None:
    read, expected = logged_off(evaluated()).at_level(0.8), evaluated().at_level(0.8)
    for name in ("custom/f1", "custom/recall"):
        assert read.intervals[name] == pytest.approx(expected.intervals[name], rel=1e-9)


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        (Metric("gain", len), "must be 'section/metric'"),
        (Metric("custom/a/b", len), "must be 'section/metric'"),
        (Metric("custom/a.low", len), "must be 'section/metric'"),
        (
            Metric("binary/gain", len),
            "section 'binary' is reserved for built-in metrics; .*'custom/gain'",
        ),
        (Metric("cost/mean", len), "section 'cost' is reserved for built-in metrics"),
        (
            Metric("custom/a", len, of="probabilities"),
            r"'custom/a' must be computed from 'counts' or 'binary' \(of=\), got 'probabilities'",
        ),
        (Metric("custom/a", len, better="more"), "better of the metric 'custom/a' must be one of"),
        (
            Metric("custom/a", len, interval="profile"),
            "interval of the metric 'custom/a' must be one of",
        ),
        (
            Metric("custom/a", len, low=0, high=2, interval="logit"),
            "low and high of the metric 'custom/a'",
        ),
        (Metric("custom/a", None), "'custom/a' needs a function, got None"),
        ("custom/a", "must contain Metric objects, got str"),
    ],
)
def test_declarations_that_break_a_rule_are_refused(metric: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        evaluate([0, 1], [0, 1], extra_metrics=[metric])


def test_one_metric_alone_and_two_of_a_name_are_refused() -> None:
    with pytest.raises(TypeError, match="must be a list of Metric"):
        evaluate([0, 1], [0, 1], extra_metrics=GAIN)
    with pytest.raises(ValueError, match="different names, got 'custom/gain' twice"):
        evaluate([0, 1], [0, 1], extra_metrics=[GAIN, GAIN])


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda b: "high", "'custom/bad' must return one real number, got 'high'"),
        (lambda b: None, "'custom/bad' must return one real number, got None"),
        (lambda b: np.array([1.0, 2.0]), "'custom/bad' must return one real number"),
        (lambda b: b.true_positives, "'custom/bad' failed: AttributeError"),
        (lambda b: 7.0, "'custom/bad' must be between 0 and 1, got 7.0"),
    ],
)
def test_functions_that_give_no_number_are_named(function: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        evaluate([0, 1], [0, 1], extra_metrics=[Metric("custom/bad", function, **WORDS)])


def test_a_ratio_without_denominator_is_undefined() -> None:
    precision = Metric("custom/precision", lambda b: b.tp / (b.tp + b.fp + b.imp), of="binary")
    by_hand = Metric("custom/whole", lambda b: int(b.tp) / int(b.tp + b.fp), of="binary")
    evaluation = evaluate([0, 1], [0, 0], extra_metrics=[precision, by_hand])
    for name in ("custom/precision", "custom/whole"):
        assert math.isnan(evaluation.metrics[name])
        assert evaluation.undefined[name] == "its function does not return a finite number"


def test_files_that_were_changed_are_refused() -> None:
    text = evaluated().to_json()
    for change in (
        {"name": "binary/f1"},
        {"name": "custom/../x"},
        {"better": 3},
        {"low": "a"},
        {"standard_error": -1},
        {"value": 7},
        {"ends": [1]},
        {"interval": "profile"},
        {"of": "probabilities"},
    ):
        data = json.loads(text)
        data["extra_metrics"][0] |= change
        with pytest.raises(ValueError, match="damaged"):
            cmtrack.evaluation.loading.loads(json.dumps(data))


def test_schema_1_without_them_is_what_was_written_before() -> None:
    y, p = rows(0)
    plain = evaluate(y, p)
    assert "extra_metrics" not in json.loads(plain.to_json())
    assert logged_off(plain) == plain


@pytest.mark.slow
def test_runs_are_compared_by_it_where_the_function_is_not_known(tmp_path, monkeypatch) -> None:
    import mlflow

    from cmtrack import load_evaluation, log_evaluation

    uri = sqlite_store(tmp_path / "runs.db")
    monkeypatch.chdir(tmp_path)
    mlflow.set_tracking_uri(uri)
    try:
        experiment = mlflow.create_experiment("own", artifact_location=str(tmp_path / "artifacts"))
        evaluations, ids = [evaluated(0.9), evaluated(0.6, seed=1)], []
        for evaluation in evaluations:
            with mlflow.start_run(experiment_id=experiment) as run:
                assert log_evaluation(evaluation, strict=True).status == "completed"
                ids.append(run.info.run_id)
        assert (
            mlflow.get_run(ids[0]).data.metrics["custom/gain"]
            == evaluations[0].metrics["custom/gain"]
        )
        found = compare(ids, rank_by="custom/f1", require="custom/gain > 0")
        assert [run.run_id for run in found.runs] == ids
        assert any(UNKNOWN in run.unpaired for run in found.runs)
        again = compare(ids, rank_by="custom/f1", extra_metrics=ALL)
        expected = compare(ids, rank_by="binary/f1")
        ours, theirs = (frame.to_frame()["pvalue"].astype(float) for frame in (again, expected))
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)
        assert (
            load_evaluation(ids[0]).metrics["custom/gain"] == evaluations[0].metrics["custom/gain"]
        )
        attached = load_evaluation(ids[0], rows=True, extra_metrics=ALL)
        np.testing.assert_allclose(
            attached.influence("custom/f1"), evaluations[0].influence("custom/f1")
        )
        other = [Metric("custom/gain", GAIN.value, of="binary", better="lower")]
        runs = {"a": evaluations[0], "b": evaluations[1].with_metrics(other)}
        with pytest.raises(
            ValueError,
            match="declare 'custom/gain' with the same 'better', got 'higher' and 'lower'",
        ):
            compare(runs, rank_by="custom/gain")
    finally:
        mlflow.set_tracking_uri(None)


# -- one name, two meanings --------------------------------------------------------------------------------------


def scored(better: str, of: str = "binary") -> Metric:
    functions = {"binary": lambda b: b.tp - b.fp, "counts": lambda c: c[1, 1] - c[0, 1]}
    return Metric("custom/score", functions[of], of=of, better=better)


def two_runs(better: str) -> dict[str, Evaluation]:
    y = [0, 1] * 50
    predicted = {"A": [0, 1] * 40 + [1, 0] * 10, "C": y}
    return {name: evaluate(y, p, extra_metrics=[scored(better)]) for name, p in predicted.items()}


def test_a_metric_of_the_same_name_elsewhere_decides_nothing(tmp_path) -> None:
    """The values are 30 and 50: where higher is better C is best, whatever else was evaluated or read."""
    runs, others = two_runs("higher"), two_runs("lower")
    others["A"].save(tmp_path / "team_a")
    before = runs["A"].to_frame()
    assert {name: run.metrics["custom/score"] for name, run in runs.items()} == {
        "A": 30.0,
        "C": 50.0,
    }
    for _ in ("evaluated", "read"):
        comparison = compare(runs, rank_by="custom/score", tie_breakers="custom/score")
        assert comparison.best.name == "C"
        assert "highest" in comparison.summary()
        assert "lowest" not in comparison.summary()
        again = compare(others, rank_by="custom/score")
        assert again.best.name == "A"
        assert "lowest" in again.summary()
        Evaluation.load(tmp_path / "team_a")
    verdict = judge(runs["A"], runs["C"], rank_by="custom/score")
    assert verdict.checks[0].difference == -20.0
    assert runs["A"].to_frame().equals(before)
    assert before.set_index("metric").loc["custom/score", "better"] == "higher"
    frame = Evaluation.load(tmp_path / "team_a").to_frame().set_index("metric")
    assert frame.loc["custom/score", "better"] == "lower"
    with pytest.raises(KeyError, match="there is no metric named 'custom/score'"):
        lookup("custom/score")


@pytest.mark.parametrize(
    ("other", "word", "ours", "theirs"),
    [
        (scored("lower"), "better", "higher", "lower"),
        (scored("higher", of="counts"), "of", "binary", "counts"),
        (replace(scored("higher"), low=-1000.0), "low", "-inf", "-1000.0"),
    ],
)
def test_two_meanings_of_one_name_are_refused_with_both(
    other: Metric, word: str, ours: str, theirs: str
) -> None:
    y = [0, 1] * 50
    first, second = two_runs("higher")["A"], evaluate(y, y, extra_metrics=[other])
    said = f"declare 'custom/score' with the same '{word}', got '?{ours}'? and '?{theirs}'?;"
    for given in ({"rank_by": "custom/score"}, {}, {"require": "custom/score > 0"}):
        with pytest.raises(ValueError, match=said):
            compare({"a": first, "b": second}, **given)
    with pytest.raises(ValueError, match=said):
        paired_differences(first, second)
    assert compare({"a": first, "b": second}, extra_metrics=[scored("lower")]).best is not None
    titled = evaluate(y, y, extra_metrics=[replace(scored("higher"), title="another title")])
    assert compare({"a": first, "b": titled}, rank_by="custom/score").best.name == "b"


@pytest.mark.slow
def test_stored_runs_mean_what_they_declare(tmp_path, monkeypatch) -> None:
    """The metric's direction comes from the runs that are compared, also for the short list and the gates."""
    import mlflow

    from cmtrack import log_evaluation

    monkeypatch.chdir(tmp_path)
    mlflow.set_tracking_uri(sqlite_store(tmp_path / "runs.db"))
    try:
        for better in ("higher", "lower"):
            mlflow.create_experiment(better, artifact_location=str(tmp_path / better))
            mlflow.set_experiment(better)
            for name, evaluation in two_runs(better).items():
                with mlflow.start_run(run_name=name):
                    assert log_evaluation(evaluation, strict=True).status == "completed"
        for better, best in (("higher", "C"), ("lower", "A"), ("higher", "C")):
            for limit in (50, 1):
                comparison = compare(experiment_names=[better], rank_by="custom/score", limit=limit)
                assert comparison.best.name == best
            gated = compare(experiment_names=[better], require="custom/score >= 40")
            assert [stop.run.name for stop in gated.failed] == ["A"]
        with pytest.raises(
            ValueError, match=r"with the same 'better', got '(higher|lower)' and '(higher|lower)'"
        ):
            compare(experiment_names=["higher", "lower"], rank_by="custom/score")
        with pytest.raises(ValueError, match="there is no metric named 'custom/other'"):
            compare(experiment_names=["higher"], rank_by="custom/other")
        with pytest.raises(ValueError, match="no run has 'custom/other'"):
            compare(experiment_names=["higher"], require="custom/other > 0")
    finally:
        mlflow.set_tracking_uri(None)


# -- through every door --------------------------------------------------------------------------------------


def twin(evaluation: Evaluation) -> None:
    """F1 of one's own stands beside the built-in one, with the same numbers."""
    for numbers in (evaluation.metrics, evaluation.standard_errors, evaluation.intervals):
        assert numbers["custom/f1"] == pytest.approx(numbers["binary/f1"], rel=1e-9)


@pytest.mark.parametrize("form", ["labels", "an evaluation"])
def test_log_evaluation_takes_them(store: Any, form: str) -> None:
    import mlflow

    from cmtrack import load_evaluation, log_evaluation

    y, p = rows(0)
    given = (y, p) if form == "labels" else (evaluate(y, p, grouping=GROUPS),)
    options = {"grouping": GROUPS} if form == "labels" else {}
    with mlflow.start_run():
        logged = log_evaluation(*given, **options, extra_metrics=[F1], strict=True)
    twin(load_evaluation(logged.run_id))
    assert (
        store.get_run(logged.run_id).data.metrics["custom/f1"]
        == logged.evaluation.metrics["binary/f1"]
    )


@pytest.mark.slow
def test_the_scikit_learn_integration_takes_them(store: Any) -> None:
    import mlflow
    from sklearn.linear_model import LogisticRegression

    from cmtrack_integrations.sklearn import (
        cross_validate_evaluation,
        evaluate_estimator,
        log_estimator,
    )

    x, y, *held = learning_problem(2, 180, held=60)
    model = LogisticRegression().fit(x, y)
    twin(evaluate_estimator(model, *held, extra_metrics=[F1]))
    with mlflow.start_run():
        twin(log_estimator(model, *held, extra_metrics=[F1], strict=True).evaluation)
    folds = cross_validate_evaluation(LogisticRegression(), x, y, cv=3, extra_metrics=[F1])
    for evaluation in (folds.evaluation, *folds.folds):
        twin(evaluation)


@pytest.mark.slow
def test_a_hook_takes_them(store: Any) -> None:
    import mlflow

    from cmtrack import load_evaluation

    xgb = pytest.importorskip("xgboost", exc_type=ImportError)
    from cmtrack_integrations.xgboost import EvaluationCallback

    x, y, *held = learning_problem(2, 120, held=60)
    callback = EvaluationCallback(*held, extra_metrics=[F1], every=1, strict=True)
    with mlflow.start_run() as run:
        options = {"objective": "binary:logistic", "max_depth": 2, "nthread": 1}
        xgb.train(options, xgb.DMatrix(x, y), 2, callbacks=[callback])
    twin(load_evaluation(run.info.run_id))
    assert [point.step for point in store.get_metric_history(run.info.run_id, "custom/f1")] == [
        1,
        2,
    ]


@pytest.mark.slow
def test_the_mlflow_evaluator_takes_them(store: Any) -> None:
    import mlflow
    import pandas as pd
    from mlflow.models.evaluation.evaluator_registry import _model_evaluation_registry as registry

    from cmtrack import load_evaluation
    from cmtrack_integrations.mlflow_evaluator import CmtrackEvaluator

    if not registry.is_registered("cmtrack"):
        registry.register("cmtrack", CmtrackEvaluator)
    y, p = rows(0)
    config = {"cmtrack": {"grouping": GROUPS, "extra_metrics": [F1]}}
    result = mlflow.models.evaluate(
        data=pd.DataFrame({"y": y, "p": p}),
        targets="y",
        predictions="p",
        model_type="classifier",
        evaluators=["cmtrack"],
        evaluator_config=config,
    )
    assert result.metrics["custom/f1"] == result.metrics["binary/f1"]
    (run,) = runs_of(store)
    twin(load_evaluation(run.info.run_id))


def test_spans_take_them() -> None:
    true = [(d, 10 * i, 10 * i + 5, "AB"[(d + i) % 2]) for d in range(12) for i in range(4)]
    found = [
        (d, 10 * i, 10 * i + 5, "AB"[d * i % 2]) for d in range(12) for i in range(4) if d * i % 5
    ]
    right = Metric("custom/right", lambda c: np.trace(c[:-1, :-1]) / c[:-1].sum())
    evaluation = cmtrack.evaluate_spans(true, found, extra_metrics=[right])
    for numbers in (evaluation.metrics, evaluation.standard_errors):
        assert numbers["custom/right"] == pytest.approx(numbers["spans/recall_micro"], rel=1e-9)
    np.testing.assert_allclose(
        evaluation.influence("custom/right"), evaluation.influence("spans/recall_micro"), atol=1e-9
    )


def test_families_of_codes_refuse_them(store: Any) -> None:
    families = cmtrack.evaluate_families(
        [["A1"], ["A2", "B1"]], [["A1"], ["B1"]], lambda code: code[0]
    )
    with pytest.raises(TypeError, match="unexpected keyword argument 'extra_metrics'"):
        cmtrack.evaluate_families([["A1"]], [["A1"]], lambda code: code[0], extra_metrics=[F1])
    message = (
        r"computed from counts of single labels, so a FamilyEvaluation does not accept them, "
        r"got \['custom/f1'\]"
    )
    with pytest.raises(TypeError, match=message):
        cmtrack.log_evaluation(families, extra_metrics=[F1], strict=True)
