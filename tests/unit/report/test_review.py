"""The review of a comparison: words, tables, files, and the run it becomes."""

from __future__ import annotations

import html as escaping
import json
import math
import re
import shlex
from dataclasses import replace

import numpy as np
import pytest

import cmtrack
from cmtrack import Grouping, compare, evaluate, log_evaluation
from cmtrack.comparison import (
    Blocks,
    Candidate,
    Criterion,
    ModelComparison,
    TieBreaker,
    rank_models,
)
from cmtrack.metrics import CATALOG, encode_label
from cmtrack.report import draw_figures, metric_title
from cmtrack.report.review import Review, choices, context, html, markdown, verdict
from cmtrack.tracking import TrackedRun
from support.problems import random_labels, random_probabilities
from support.stores import sqlite_store

pytestmark = pytest.mark.usefixtures("undrawn")

N = 600
INJECTED = "<script>alert(1)</script>"


def made(skills, n=N, **given):
    y = random_labels(n, 3)
    return {
        name: evaluate(y, y_prob=random_probabilities(y, 3, skill, k), **given)
        for k, (name, skill) in enumerate(skills.items())
    }


@pytest.fixture(scope="module")
def clear():
    """One run ahead of the others."""
    return compare(made({"A": 1.0, "B": 2.5, "C": 0.5}))


@pytest.fixture(scope="module")
def close():
    """Two that cannot be told apart, one behind."""
    return compare(made({"A": 1.50, "B": 1.52, "C": 0.5}), rank_by="multiclass/accuracy")


def with_params(comparison, params):
    """The same comparison with parameters of its in-memory runs."""
    ranking = comparison.rankings[0]
    runs = tuple(
        replace(run, run=replace(run.run, params=params.get(run.name, {}))) for run in ranking.runs
    )
    return replace(comparison, rankings=(replace(ranking, runs=runs),))


# -- words ---------------------------------------------------------------------------------------------


def test_a_clear_leader_is_said_to_be_one(clear):
    said = verdict(Review(clear))
    assert said[0] == "Take “B”: both other runs are ruled out as the best."
    assert said[1].startswith("“B” scores highest: Matthews correlation 0.")
    assert said[1].endswith(
        "]*. (* The interval is wider because the highest of 3 values was selected.)"
    )
    assert "tied" not in " ".join(said)
    assert "“B” leads with MCC 0." in repr(clear)


def test_runs_of_one_value_lead_together():
    y = np.repeat([0, 1], 50)
    sides = (np.where(np.arange(100) % 10 == k, 1 - y, y) for k in (1, 2))
    comparison = compare(
        dict(zip("ab", (evaluate(y, side) for side in sides), strict=True)), rank_by="binary/recall"
    )
    said = verdict(Review(comparison))
    apart = "Either run may be the best: the test rows show no significant difference between them"
    assert said[0] == f"{apart}. “a” and “b” lead with the same value."
    assert said[1].startswith("The recall for “1” of “a” is 0.900 [")
    assert (
        said[2]
        == "You have no reason to prefer “a”. If the other is cheaper or simpler, take that one."
    )


def test_a_tie_is_no_equality_and_nothing_is_made_up_to_decide_it(close):
    said = " ".join(verdict(Review(close)))
    first, second = (run.name for run in close.rankings[0].runs[:2])
    value = f"{close.rankings[0].leader.value:.3f}"
    apart = "the test rows show no significant difference between them"
    # both are right in as many rows
    lead_together = f"“{first}” and “{second}” lead with the same value. The "
    assert said.startswith(f"2 of the 3 runs may be the best: {apart}. {lead_together}")
    assert f" of “{first}” is {value} [" in said
    assert "Only “C” is ruled out as the best." in said
    assert (
        f"You have no reason to prefer “{first}”. If the other is cheaper or simpler, take that one."
        in said
    )
    assert "equal" not in said.replace("equally", "")
    assert ", 2 of 3 runs may be the best" in repr(close)


def test_the_tie_breaker_that_chose_is_named_with_its_values():
    runs = made({"A": 1.50, "B": 1.52, "C": 0.5})
    comparison = compare(
        runs, rank_by="multiclass/accuracy", tie_breakers="multiclass/balanced_accuracy", margin=0.2
    )
    said = " ".join(verdict(Review(comparison)))
    chosen = comparison.best
    other = next(run for run in comparison.rankings[0].tied if run is not chosen)
    assert said.startswith(
        f"Take “{chosen.name}”: it has the largest balanced accuracy of the 2 runs that may be the best and are shown "
        "not to be worse than the best by more than 0.2."
    )
    values = {
        run.name: f"{run.evaluation.metrics['multiclass/balanced_accuracy']:.3g}"
        for run in (chosen, other)
    }
    assert (
        f"decides: “{chosen.name}” ({values[chosen.name]}) before “{other.name}” ({values[other.name]})."
        in said
    )
    assert chosen is not comparison.rankings[0].leader
    assert "; it may be the best (p = " in said


def test_the_chosen_run_is_not_the_leader():
    runs = made({"A": 1.50, "B": 1.55, "C": 0.5})
    leader = compare(runs, rank_by="multiclass/accuracy").best.name
    rule = next(
        rule
        for rule in ("class/0/recall", "class/1/recall", "class/2/recall", "class/0/precision")
        if compare(runs, rank_by="multiclass/accuracy", tie_breakers=rule, margin=0.2).best.name
        != leader
    )
    comparison = compare(runs, rank_by="multiclass/accuracy", tie_breakers=rule, margin=0.2)
    said = " ".join(verdict(Review(comparison)))
    assert f"take “{comparison.best.name}”; “{leader}” leads" in repr(comparison)
    assert f"“{comparison.best.name}” has 0." in said
    assert f"lower than “{leader}” [" in said


def said_of_equal_models(rules, n=4):
    """The sentences on models that predict the same in four folds, and differ in what tie-breakers read."""
    models = [("A", "3", "small"), ("B", "2", "tall"), ("C", "5", "small"), ("D", "3", "small")]
    candidates = []
    for fold in range(4):
        y = random_labels(60, 3, fold)
        guess = random_probabilities(y, 3, 1.5, fold).argmax(axis=1)
        evaluation = evaluate(y, guess, labels=[0, 1, 2], sections=["multiclass"])
        for name, depth, size in models[:n]:
            params = {"model": name, "fold": str(fold), "depth": depth}
            run = TrackedRun(f"{name} {fold}", f"{name} {fold}", params=params, tags={"size": size})
            candidates.append(Candidate(run, evaluation))
    criterion = Criterion.of("multiclass/accuracy")
    parsed = [TieBreaker.parse(rule) for rule in rules]
    blocks = Blocks("params.fold", "params.model", "folds")
    ranking, _, notes = rank_models(candidates, criterion, blocks, tie_breakers=parsed)
    return verdict(
        Review(
            ModelComparison(
                rankings=(ranking,), criterion=criterion, notes=notes, how={"tie_breakers": rules}
            )
        )
    )


def test_an_earlier_rule_is_not_blamed_on_the_last_one():
    assert (
        "Among the 4 models within one standard error of the leader, the smallest params.depth decides: “A” (3) "
        "before “C” (5). An earlier tie-breaker dropped “B”. “D” has the same value, so “A” is chosen for its "
        "score."
    ) in said_of_equal_models(["tags.size", "params.depth"])
    assert (
        "The tie-breaker tags.x does not decide among the 4 models within one standard error of the leader: all "
        "values are missing. The only reason to prefer “A” is its score. If one of the other three is cheaper or simpler, take "
        "that one."
    ) in said_of_equal_models(["tags.x"])
    for n, others in ((2, "the other"), (4, "one of the other three")):
        assert (
            f"The only reason to prefer “A” is its score. If {others} is cheaper or simpler, take that one."
        ) in said_of_equal_models([], n)


def test_gates_are_named_with_the_value_that_failed(clear):
    accuracy = clear["C"].evaluation.metrics["multiclass/accuracy"]
    gates = ["multiclass/accuracy >= 0.6"]
    comparison = compare(made({"A": 1.0, "B": 2.5, "C": 0.5}), require=gates)
    said = " ".join(verdict(Review(comparison)))
    assert [stop.name for stop in comparison.failed] == ["C"]
    assert f"“C” fails the gate multiclass/accuracy >= 0.6 (is {accuracy:.3g})." in said


def test_no_run_passes():
    comparison = compare(
        made({"A": 1.0, "B": 2.5, "C": 0.5, "D": 0.6}), require="multiclass/accuracy > 1"
    )
    said = verdict(Review(comparison))
    assert said[0] == "Take none: all 4 evaluated runs fail a gate."
    assert "4 runs fail the gate multiclass/accuracy > 1: " in said[1]
    assert "no run is ranked" in repr(comparison)
    assert comparison.figures() == {}
    assert "Take none" in html(comparison)
    assert set(comparison.to_frame()["status"]) == {"stopped by a gate"}


def test_one_run_has_nothing_beside_it():
    comparison = compare(made({"A": 1.0}))
    assert "There is no run to compare it with." in comparison.summary()
    assert "row by row" not in " ".join(context(Review(comparison), None, {})["facts"])
    assert set(comparison.figures()) == {"metrics", "confusion_matrices", "reliability"}


@pytest.mark.slow
def test_runs_without_rows_are_said_to_be_unpaired(tmp_path):
    both = made({"A": 1.0, "B": 2.0})
    runs = {
        name: cmtrack.Evaluation.load(e.save(tmp_path / name, rows=False))
        for name, e in both.items()
    }
    said = " ".join(verdict(Review(compare(runs))))
    assert "Not compared row by row: all runs (its predictions by row were not kept)" in said
    assert "So the differences look less certain" in said
    assert "The rows are not paired, so differences look less certain" in html(compare(runs))
    mixed = made({"A": 1.0, "B": 2.0}) | {"C": runs["A"]}
    assert "Not compared row by row: “C” (its predictions" in " ".join(
        verdict(Review(compare(mixed)))
    )


def test_several_rankings_are_never_one():
    y = random_labels(300, 3, 5)
    other = {"X": evaluate(y, y_prob=random_probabilities(y, 3, 2.0, 8))}
    comparison = compare(made({"A": 1.0, "B": 2.5}) | other)
    said = " ".join(verdict(Review(comparison)))
    assert "2 separate rankings" in said
    assert said.count("not compared with each other") == 1
    assert "Ranking 2 of 2: 1 run on 300 rows. There, “X” has 0." in said
    assert list(comparison.to_frame()["ranking"]) == [1, 1, 2]
    assert "Ranking 2 of 2" in markdown(comparison)


def test_runs_left_out_are_grouped_by_reason():
    y = random_labels(N, 3)
    same = {name: evaluate(y, np.zeros(N, dtype=int), labels=[0, 1, 2]) for name in "DE"}
    comparison = compare(made({"A": 1.0, "B": 2.5}) | same)
    said = " ".join(verdict(Review(comparison)))
    cause = (
        "the run predicts only “0”; rank by another metric, such as multiclass/balanced_accuracy"
    )
    assert f"Not ranked: “D” and “E” (multiclass/matthews_corrcoef is undefined: {cause})." in said


@pytest.mark.parametrize(
    ("y", "predicted", "options", "cause"),
    [
        (["a", "b"], ["a", "a"], {}, "the run predicts only “a”"),
        (
            ["a", "b", "c"],
            ["a", "b", "b"],
            {"grouping": Grouping({"left": ["a", "b"], "right": ["c"]})},
            "only “left”",
        ),
        (["a", "a"], ["a", "a"], {"labels": ["a", "b"]}, "its denominator is zero"),
    ],
    ids=["class", "group", "rows of one class"],
)
def test_what_predicts_one_class_is_told_the_cause(y, predicted, options, cause):
    runs = {
        "one": evaluate(y * 20, predicted * 20, **options),
        "good": evaluate(y * 20, y * 20, **options),
    }
    (left,) = compare(runs, rank_by="binary/matthews_corrcoef").left_out[-1:]
    assert left.reason.startswith("binary/matthews_corrcoef is undefined: ")
    assert cause in left.reason
    assert "rank by" not in left.reason  # it was asked for
    by_default = compare(runs).left_out[-1].reason
    assert ("rank by another metric" in by_default) == ("only" in cause)


def test_rare_positives_below_the_threshold_are_ranked_by_their_scores_not_by_accuracy():
    y = np.r_[np.zeros(495, int), np.ones(5, int)]
    rng = np.random.default_rng(0)
    runs = {}
    for name in ("a", "b", "c"):
        score = np.clip(0.1 + 0.2 * y + rng.normal(0, 0.05, 500), 0.01, 0.49)
        runs[name] = evaluate(y, y_prob=np.c_[1 - score, score], labels=[0, 1], positive=1)
    runs["d"] = evaluate(y, y_prob=np.c_[1 - y, y] * 0.9 + 0.05, labels=[0, 1], positive=1)
    comparison = compare(runs)
    said = comparison.summary()
    assert said.startswith(
        "“d” is the only one of the 4 runs that could be ranked. Its Matthews correlation for “1” is "
    )
    assert "no run to compare it with" not in said
    assert "multiclass/accuracy" not in said
    assert "rank by binary/average_precision, or choose a threshold with cmtrack threshold" in said
    assert context(Review(comparison), None, {})["facts"][0] == "1 of 4 runs on 500 rows"
    asked = compare(runs, rank_by="binary/matthews_corrcoef").summary()
    assert "rank by" not in asked
    assert "the run predicts only “0”; choose a threshold with cmtrack threshold" in asked


def test_the_only_run_that_passes_a_gate_is_not_the_only_run():
    comparison = compare(made({"A": 1.0, "B": 2.5}), require="multiclass/accuracy >= 0.9")
    assert len(comparison.failed) == 1
    assert "it is the only run that passes the gates." in comparison.summary()


def test_runs_that_are_passed_over_are_said_to_be(clear):
    passed = replace(clear, passed_over=(TrackedRun("p", "P"),))
    assert verdict(Review(passed))[-1] == (
        "Not read, because their logged values are worse (limit): “P”."
    )


@pytest.mark.slow
def test_pareto_and_nearest_zero_are_said_for_what_they_are():
    runs = made({"A": 1.0, "B": 2.5, "C": 0.5})
    pareto = compare(runs, rank_by=["multiclass/accuracy", "class/0/recall"])
    assert "“B” (0." in pareto.summary()
    assert "on the Pareto front" in repr(pareto)
    assert pareto.summary().startswith("Take “B”: ")
    trade = compare(
        made({"A": 1.50, "B": 1.52}),
        rank_by=["multiclass/accuracy", "class/0/recall", "class/1/recall"],
    )
    front = [run for run in trade.runs if run.rank == 1]
    assert ("No single best run" in trade.summary()) == (len(front) > 1)
    said = "dominated: another run is at least as good in every metric and better in one."
    assert said in pareto.summary()
    two = Grouping({"zero": [0], "rest": [1, 2]}, positive="zero", name="zero")
    near = compare(made({"A": 1.0, "B": 2.5}, grouping=two), rank_by="prevalence/bias")
    assert " is nearest to zero. Its prevalence bias for “zero” is " in near.summary()
    for comparison in (pareto, near):
        json.dumps(comparison.to_dict(), allow_nan=False)
        page = html(comparison)
        assert "<table" in page
        assert ("only runs that are not dominated</label>" in page) == (comparison is pareto)
        assert ("only runs that may be the best</label>" in page) == (comparison is not pareto)


def test_the_rate_at_which_the_best_run_is_ruled_out_is_said():
    methods = context(Review(compare(made({"A": 1.0, "B": 2.5}), confidence_level=0.9)), None, {})
    assert (
        "The truly best run is wrongly ruled out in at most 10% of reviews. If several runs are equally good, this "
        "limit holds for each of them, so one of them is ruled out more often."
    ) in methods["methods"][0]


def test_metrics_have_titles():
    assert (
        metric_title("binary/matthews_corrcoef", "promoter")
        == "Matthews correlation for “promoter”"
    )
    assert metric_title(f"class/{encode_label('a/b')}/recall") == "recall of “a/b”"
    assert metric_title("reduced/party/left/f1") == "F1 of “left” (“party”)"
    assert metric_title("reduced/party/f1_macro") == "macro F1 (“party”)"
    assert metric_title("binary/npv", "promoter") == "negative predictive value for “promoter”"
    assert metric_title("binary/imn") == "mismatches of the negative group"
    for metric in CATALOG:
        if metric.better:
            assert metric_title(metric.name.replace("<", "").replace(">", ""), "p")
            assert metric_title(metric.name.replace("<", "").replace(">", ""), "p", brief=True)


# -- repeated runs -------------------------------------------------------------------------------------


def repeated_runs(
    store, by, n_blocks=6, skills=(("forest", 1.5), ("network", 1.52), ("weak", 0.3))
):
    import mlflow

    shared = random_labels(150, 3)
    for block in range(n_blocks):
        y = shared if by == "seed" else random_labels(150, 3, 50 + block)
        for k, (model, skill) in enumerate(skills):
            with mlflow.start_run(run_name=f"{model} {block}"):
                mlflow.log_params({"model": model, by: block, "size": 10 - k})
                log_evaluation(
                    y,
                    y_prob=random_probabilities(y, 3, skill, 100 * block + k),
                    strict=True,
                    predictions=True,
                )


@pytest.mark.thin(2)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("by", "noun"), [("seed", "6 seeds"), ("fold", "6 folds")], ids=lambda v: v
)
def test_repeated_runs_are_judged_as_models(store, tmp_path, by, noun):
    repeated_runs(store, by)
    comparison = compare(experiment_names=["e"], block=f"params.{by}", model="params.model")
    said = " ".join(verdict(Review(comparison)))
    first = comparison.repeated.leader.name
    assert f"“{first}” scores highest on average" in said
    assert f" over {noun} " in said
    assert f"lower than “{first}”" in said
    assert f"“{first}” leads over {noun} with mean MCC 0." in repr(comparison)
    frame = comparison.to_frame()
    assert list(frame["name"]) == [model.name for model in comparison.repeated.models]
    assert list(frame["blocks"]) == [6, 6, 6]
    data = comparison.to_dict()
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert len(data["repeated"]["pairwise"]) == 3
    assert set(comparison.figures()) == {"metric_by_block"}
    for suffix in ("html", "md"):
        assert first in comparison.report(tmp_path / f"review.{suffix}").read_text()
    logged = comparison.log()
    assert len(logged.tagged_runs) == 18
    assert store.get_run(logged.run_id).data.tags["cmtrack.best_name"] == comparison.best.name
    best = [run.run_id for run in comparison.best.runs]
    assert {tags(store, run_id)["cmtrack.rank"] for run_id in best} == {str(comparison.best.rank)}


@pytest.mark.slow
def test_tie_breakers_and_gates_of_models(store):
    repeated_runs(store, "seed")
    comparison = compare(
        experiment_names=["e"],
        block="params.seed",
        model="params.model",
        tie_breakers="params.size",
        require="multiclass/accuracy >= 0.5",
        margin=0.2,
    )
    said = " ".join(verdict(Review(comparison)))
    where = "shown not to be worse than the best by more than 0.2"
    assert (
        f"Among the 2 models {where}, the smallest params.size decides: “network” (9) before “forest” (10)."
        in said
    )
    among = f"of the 2 models that may be the best and are {where}"
    assert said.startswith(f"Take “network”: it has the smallest params.size {among}.")
    assert "“weak” fails the gate multiclass/accuracy >= 0.5 (is 0." in said
    assert "Gates" in markdown(comparison)


# -- tables and data -----------------------------------------------------------------------------------


def test_the_frame_has_a_row_for_every_run():
    comparison = compare(
        made({"A": 1.0, "B": 2.5, "C": 0.5}),
        require="multiclass/accuracy >= 0.45",
        rank_by=["multiclass/accuracy", "class/0/recall"],
    )
    frame = comparison.to_frame().set_index("name")
    assert frame.loc["B", "status"] == "chosen"
    assert bool(frame.loc["B", "chosen"])
    assert frame.loc["A", "multiclass/accuracy"] == comparison["A"].values["multiclass/accuracy"]
    for stop in comparison.failed:
        assert frame.loc[stop.name, "status"] == "stopped by a gate"
        assert "multiclass/accuracy >= 0.45 (is 0." in frame.loc[stop.name, "reason"]
        assert math.isnan(frame.loc[stop.name, "value"])
    assert len(frame) == 3
    assert len(comparison._repr_html_()) > 100


def test_plain_data_survive_json(clear, close):
    for comparison in (clear, close):
        data = comparison.to_dict()
        assert json.loads(json.dumps(data, allow_nan=False)) == data
        assert data["schema"] == 1
        runs = data["rankings"][0]["runs"]
        assert [run["name"] for run in runs] == [run.name for run in comparison.runs]
        assert np.allclose(data["rankings"][0]["pairwise_pvalues"], comparison.rankings[0].pvalues)
        assert np.allclose(
            data["rankings"][0]["rank_distribution"], comparison.rankings[0].rank_distribution
        )
        assert data["best"]["name"] == comparison.best.name
        assert data["how"]["confidence_level"] == 0.95


# -- figures -------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_figures_and_a_parameter_that_varies(close):
    names = {
        "ranking",
        "metrics",
        "class_curves",
        "confusion_matrices",
        "rank_distribution",
        "reliability",
    }
    assert set(close.figures()) == names
    assert "confusion_difference" not in names  # no cell of these two differs significantly
    apart = compare(made({"A": 3.0, "B": 0.4}))
    assert "confusion_difference" in apart.figures()
    tuned = with_params(
        close, {"A": {"depth": "3", "x": "1"}, "B": {"depth": "5"}, "C": {"depth": "9", "x": "1"}}
    )
    assert set(tuned.figures()) == names | {"parameter"}
    assert "parameter" not in with_params(close, {"A": {"depth": "3"}}).figures()
    two = Grouping({"zero": [0], "rest": [1, 2]}, positive="zero", name="zero")
    assert "roc" in compare(made({"A": 1.0, "B": 2.5}, grouping=two)).figures()


@pytest.mark.slow
def test_a_figure_that_fails_leaves_the_others(close, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("no ink")

    monkeypatch.setattr("matplotlib.axes.Axes.add_image", fail)
    failed = []
    figures = draw_figures(close, on_error=lambda name, error: failed.append((name, str(error))))
    assert ("metrics", "no ink") in failed
    assert {reason for _, reason in failed} == {"no ink"}
    assert "ranking" in figures
    assert "metrics" not in figures
    with pytest.raises(RuntimeError, match="no ink"):
        draw_figures(close)["metrics"]
    assert "Not drawn: figure metrics: RuntimeError: no ink." in html(close).replace("\n", " ")


# -- files ---------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_ending_says_what_is_written(close, tmp_path):
    page = close.report(tmp_path / "new" / "folder" / "review.html", title="Which one?")
    assert "<h1>Which one?</h1>" in page.read_text()
    text = close.report(tmp_path / "review.md").read_text()
    assert text.startswith("## Review by accuracy\n\n**2 of the 3 runs may be the best: ")
    assert json.loads(close.report(tmp_path / "review.json").read_text())["schema"] == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["new", "review.json", "review.md"]
    with pytest.raises(ValueError, match=r"\.html.*review\.pdf"):
        close.report(tmp_path / "review.pdf")


def test_a_review_that_fails_leaves_the_old_one(close, tmp_path, monkeypatch):
    path = close.report(tmp_path / "review.md")
    before = path.read_text()
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        close.report(path)
    assert path.read_text() == before
    assert [p.name for p in tmp_path.iterdir()] == ["review.md"]


@pytest.mark.slow
def test_names_and_labels_are_text_and_nothing_else():
    y = random_labels(200, 2)
    labels = np.array([INJECTED, "a|b`c"])
    runs = {
        f"{INJECTED} {k}": evaluate(
            labels[y], y_prob=random_probabilities(y, 2, skill, k), labels=list(labels)
        )
        for k, skill in enumerate((0.5, 2.5))
    }
    comparison = compare(runs, require=f"class/{encode_label('a|b`c')}/recall >= 0.1")
    for text in (html(comparison, title=INJECTED), comparison._repr_html_()):
        assert "<script>alert" not in text
        assert "&lt;script&gt;alert(1)" in text
    for line in markdown(comparison, title=INJECTED).split("```")[0].splitlines():
        assert "<script" not in line.replace("\\<script", "")


def test_a_notebook_shows_the_opening_and_the_table_with_its_bars(close):
    text, opening = close._repr_html_(), verdict(Review(close))
    assert all(sentence in escaping.unescape(text) for sentence in opening[:3])
    assert text.count("<svg") == 2 * len(close.runs)
    assert text.index("<svg") > text.index("may be the best")
    assert "<style" not in text  # notebooks differ in what they do with it
    assert text.count(".report(") == 1


@pytest.mark.slow
def test_the_page_refers_to_nothing_outside(close):
    page = html(close)
    for forbidden in ("http://", "https://", "localStorage", "<link", "@import", 'src="/', "url("):
        assert forbidden not in page
    # all figures but three that are not on pages, and a chart of the two runs
    assert page.count("<figure") == page.count("<figcaption") == len(close.figures()) - 3 + 1
    assert "<title>Ranking</title>" not in page  # its table has the bars


@pytest.mark.slow
def test_fifty_runs_stay_small():
    y = random_labels(500, 3)
    two = Grouping({"zero": [0], "rest": [1, 2]}, positive="zero")
    runs = {
        f"run {k}": evaluate(y, y_prob=random_probabilities(y, 3, 0.5 + k / 25, k), grouping=two)
        for k in range(50)
    }
    page = html(compare(runs), pictures={})
    assert len(page) < 1_500_000
    # of many runs fewer metrics
    assert re.search(r" The page shows \d+ of \d+ headline metrics\.</p>", page)
    assert page.count('<td class="run"') >= 50


@pytest.mark.slow
def test_how_to_do_it_again_is_python_that_runs(store):
    y = random_labels(200, 3)
    grouping = Grouping({"zero": [0], "rest": [1, 2]}, positive="zero", name="zero")
    log_runs(store, y, {"a": 0.5, "b": 2.0})
    comparison = compare(
        experiment_names=["e"],
        rank_by=["multiclass/accuracy", "class/0/recall"],
        require="multiclass/accuracy >= 0.2",
        grouping=grouping,
        limit=7,
    )
    page = context(Review(comparison), None, {})
    python = page["python"].replace('comparison.report("review.html")', "")
    found: dict[str, object] = {}
    exec(python, found)
    again = found["comparison"]
    assert [run.name for run in again.runs] == [run.name for run in comparison.runs]
    assert again.how["grouping"] == grouping
    assert "limit=7" in python
    assert "seed" not in python
    ranked_by = ("--rank-by multiclass/accuracy", "--rank-by class/0/recall")
    for part in ("cmtrack review", "--experiment e", *ranked_by, "--limit 7", "--output"):
        assert part in page["command"]
    ids = [run.run_id for run in comparison.runs]
    assert all(run_id in context(Review(compare(ids)), None, {})["command"] for run_id in ids)


@pytest.mark.slow
def test_how_to_do_it_again_names_the_store_that_was_asked(store, clear):
    import mlflow

    y = np.random.default_rng(0).integers(0, 3, 100)
    grouping = Grouping({"zero": [0], "rest": [1, 2]}, positive="zero")
    log_runs(store, y, {"a": 0.5, "b": 2.0}, grouping=grouping)
    uri, comparison = mlflow.get_tracking_uri(), compare(experiment_names=["e"])
    page = context(Review(comparison), None, {})
    assert f"    tracking_uri={uri!r}," in page["python"]
    assert f"--tracking-uri {shlex.quote(uri)}" in page["command"]
    moved = replace(comparison, how=comparison.how | {"at": {"a b": 0.5, "c": 0.25}})
    assert "--at 'a b=0.5' \\\n  --at c=0.25" in context(Review(moved), None, {})["command"]
    threshold = choices(Review(comparison))["questions"][-1]["python"]
    assert "import mlflow\nfrom cmtrack import load_evaluation\n\n" in threshold
    assert f"mlflow.set_tracking_uri({uri!r})" in threshold
    assert "tracking_uri" not in context(Review(clear), None, {})["python"]  # evaluations in memory


@pytest.mark.slow
def test_how_to_do_it_again_shows_no_password_of_the_store(store):
    y = np.random.default_rng(0).integers(0, 3, 100)
    log_runs(store, y, {"a": 0.5, "b": 2.0})
    comparison = compare(experiment_names=["e"])
    (ranking,) = comparison.rankings
    runs = [
        replace(one, run=replace(one.run, tracking_uri="https://me:secret@h:5000"))
        for one in ranking.runs
    ]
    page = context(
        Review(replace(comparison, rankings=(replace(ranking, runs=tuple(runs)),))), None, {}
    )
    assert "tracking_uri='https://h:5000'" in page["python"]
    assert "secret" not in page["python"] + page["command"]


# -- the run -------------------------------------------------------------------------------------------


def log_runs(store, y, skills, **given):
    import mlflow

    ids = {}
    for k, (name, skill) in enumerate(skills.items()):
        with mlflow.start_run(run_name=name) as run:
            log_evaluation(y, y_prob=random_probabilities(y, 3, skill, k), strict=True, **given)
        ids[name] = run.info.run_id
    return ids


def tags(store, run_id):
    return store.get_run(run_id).data.tags


@pytest.mark.slow
def test_a_review_becomes_a_run_and_tags_the_others(store):
    import mlflow

    y = random_labels(300, 3)
    ids = log_runs(store, y, {"a": 1.0, "b": 2.5, "c": 0.1})
    comparison = compare(list(ids.values()), require="multiclass/accuracy >= 0.5")
    assert [stop.name for stop in comparison.failed] == ["c"]
    logged = comparison.log()
    assert mlflow.active_run() is None
    assert logged.problems == ()
    run = store.get_run(logged.run_id)
    assert run.info.status == "FINISHED"
    assert run.info.run_name == "review: multiclass/matthews_corrcoef"
    assert run.data.tags["cmtrack.kind"] == "review"
    assert run.data.tags["cmtrack.best"] == ids["b"]
    assert "**Take “b”" in run.data.tags["mlflow.note.content"]
    # else the evaluation view opens on the review's table
    assert "mlflow.loggedArtifacts" not in run.data.tags
    files = {artifact.path for artifact in store.list_artifacts(logged.run_id)}
    assert {
        "cmtrack_review.html",
        "cmtrack_review.md",
        "cmtrack_review.json",
        "cmtrack_review_ranking.png",
    } <= files
    table = json.loads(
        mlflow.artifacts.load_text(f"runs:/{logged.run_id}/cmtrack_review_ranking.json")
    )
    assert [row[table["columns"].index("run")] for row in table["data"]] == ["b", "a"]
    assert tags(store, ids["b"])["cmtrack.rank"] == "1"
    assert tags(store, ids["a"])["cmtrack.rank"] == "2"
    assert tags(store, ids["c"])["cmtrack.rank"] == "stopped by a gate"
    for run_id in ids.values():
        assert tags(store, run_id)["cmtrack.review"] == logged.run_id
        assert tags(store, run_id)["cmtrack.rank_by"] == "multiclass/matthews_corrcoef"
    assert set(logged.tagged_runs) == set(ids.values())


@pytest.mark.slow
def test_runs_and_models_say_what_a_review_decided(store):
    import mlflow

    y = random_labels(200, 3)
    ids = log_runs(store, y, {"a": 1.0, "b": 2.5, "c": 0.1})
    store.set_tag(
        ids["a"],
        "mlflow.note.content",
        "my words\n\n" + tags(store, ids["a"])["mlflow.note.content"],
    )
    store.create_registered_model("m")
    source = f"runs:/{ids['b']}/model"
    number = store.create_model_version("m", source, ids["b"], description="my words").version
    store.create_model_version("m", f"runs:/{ids['a']}/model", ids["a"])
    comparison = compare(
        list(ids.values()), rank_by="multiclass/accuracy", require="multiclass/accuracy >= 0.5"
    )
    first = comparison.log()
    logged = comparison.log()
    assert (logged.problems, logged.versions) == ((), (f"models:/m/{number}", "models:/m/2"))
    review = store.get_run(logged.run_id).data
    assert review.metrics == {
        "review/runs": 2,
        "review/stopped": 1,
        "review/tied": 1,
        "review/best": comparison.best.value,
    }
    assert review.params == {
        "rank_by": "multiclass/accuracy",
        "require": "multiclass/accuracy >= 0.5",
    }
    home = store.get_run(logged.run_id).info.experiment_id
    assert store.get_experiment(home).name == "e: reviews"
    link = f"(#/experiments/{home}/runs/{logged.run_id}/artifacts/cmtrack_review.html)"
    for name, words in {
        "a": "Rank 2 by multiclass/accuracy in the [review of ",
        "c": "Stopped by a gate in the [review of ",
    }.items():
        note = tags(store, ids[name])["mlflow.note.content"]
        assert words in note
        assert note.count(link) == 1
        assert first.run_id not in note
        assert note.index(words) < note.index("**Evaluation**")
    assert tags(store, ids["a"])["mlflow.note.content"].startswith("my words\n\nRank 2 by ")
    version = store.get_model_version("m", number)
    assert version.description.startswith("my words\n\nRank 1 by multiclass/accuracy")
    assert version.description.count("Take “b”") == 1
    assert version.description.count(link) == 1
    assert (version.tags["cmtrack.rank"], version.tags["cmtrack.review"]) == ("1", logged.run_id)
    assert store.get_model_version("m", "2").description.startswith("Rank 2 by multiclass/accuracy")
    assert {run.info.run_id for run in store.search_runs(["1"])} == set(ids.values())
    assert len(mlflow.search_runs([home])) == 2


@pytest.mark.slow
def test_a_review_removes_the_tag_that_earlier_versions_left(store):
    y = np.random.default_rng(0).integers(0, 3, 100)
    ids = log_runs(store, y, {"a": 1.0, "b": 2.5})
    store.create_registered_model("m")
    number = store.create_model_version("m", f"runs:/{ids['b']}/model", ids["b"]).version
    model = store.create_logged_model(
        store.get_run(ids["b"]).info.experiment_id, source_run_id=ids["b"]
    )
    store.set_tag(ids["b"], "cmtrack.criterion", "multiclass/f1_macro")
    store.set_logged_model_tags(model.model_id, {"cmtrack.criterion": "multiclass/f1_macro"})
    store.set_model_version_tag("m", number, "cmtrack.criterion", "multiclass/f1_macro")
    logged = compare([ids["a"], f"models:/{model.model_id}"], rank_by="multiclass/accuracy").log()
    assert logged.problems == ()
    assert logged.tagged_models == (model.model_id,)
    for found in (
        tags(store, ids["b"]),
        store.get_logged_model(model.model_id).tags,
        store.get_model_version("m", number).tags,
    ):
        assert "cmtrack.criterion" not in found
        assert found["cmtrack.rank_by"] == "multiclass/accuracy"


@pytest.mark.slow
def test_a_review_is_with_its_runs_where_no_experiment_can_be_made(store):
    y = random_labels(100, 3)
    log_runs(store, y, {"a": 1.0, "b": 2.5})
    store.delete_experiment(store.create_experiment("e: reviews"))
    logged = compare(experiment_names=["e"]).log()
    assert store.get_experiment(logged.experiment_id).name == "e"
    assert "accepts no run" in logged.problems[0]
    assert len(compare(experiment_names=["e"])) == 2


@pytest.mark.slow
def test_a_review_goes_where_it_is_told(store):
    y = random_labels(100, 3)
    log_runs(store, y, {"a": 1.0, "b": 2.5})
    logged = compare(experiment_names=["e"]).log(experiment_name="reviews", run_name="mine")
    run = store.get_run(logged.run_id)
    assert store.get_experiment(run.info.experiment_id).name == "reviews"
    assert run.info.run_name == "mine"
    store.delete_experiment(logged.experiment_id)
    with pytest.raises(ValueError, match="accepts no run"):
        compare(experiment_names=["e"]).log(experiment_name="reviews")


@pytest.mark.slow
def test_what_cannot_be_logged_is_said_before_anything_is_written(store):
    y = random_labels(100, 3)
    ids = log_runs(store, y, {"a": 1.0, "b": 2.5})
    with pytest.raises(ValueError, match="not in a run"):
        compare(made({"A": 1.0, "B": 2.0})).log()
    with pytest.raises(ValueError, match="no run is chosen, so the alias 'a' cannot be set"):
        compare(list(ids.values()), require="multiclass/accuracy > 1").log(alias="a")
    with pytest.raises(ValueError, match="registered_model needs alias"):
        compare(list(ids.values())).log(registered_model="m")
    with pytest.raises(ValueError, match=r"no registered version comes from run 'b'"):
        compare(list(ids.values())).log(alias="challenger")
    assert {run.info.run_id for run in store.search_runs(["1"])} == set(ids.values())
    assert "cmtrack.rank" not in tags(store, ids["a"])


@pytest.mark.slow
def test_a_review_whose_gates_stop_every_run_is_logged(store):
    y = random_labels(100, 3)
    ids = log_runs(store, y, {"a": 1.0, "b": 2.5})
    gates = ["multiclass/accuracy > 1", *(f"class/0/recall >= 0.00{k}" for k in range(400))]
    logged = compare(list(ids.values()), require=gates).log()
    run = store.get_run(logged.run_id)
    assert store.get_experiment(run.info.experiment_id).name == "e: reviews"
    # a long description ends with a whole line
    description, note = (
        markdown(compare(list(ids.values()), require=gates)),
        run.data.tags["mlflow.note.content"],
    )
    assert len(note) <= 8_000 < len(description)
    beginning, rest, metrics = note.rsplit("\n\n", 2)
    assert rest == "… the rest is in cmtrack_review.md."
    assert "`review/stopped` the number of runs that failed a gate" in metrics
    assert description.startswith(f"{beginning}\n")
    assert run.data.tags["cmtrack.decision"] == "Take none: both evaluated runs fail a gate."
    assert run.data.tags["cmtrack.best"] == ""
    assert run.data.tags["cmtrack.stopped"] == "2"
    assert "**Take none: both evaluated runs fail a gate.**" in run.data.tags["mlflow.note.content"]
    assert set(logged.tagged_runs) == set(ids.values())
    assert {tags(store, run_id)["cmtrack.rank"] for run_id in ids.values()} == {"stopped by a gate"}


def test_a_review_shows_no_backslash_before_less_than(clear):
    text = markdown(clear)
    assert "&lt; 0.001" in text
    assert "\\<" not in text


@pytest.mark.slow
def test_the_probability_of_being_the_best_is_in_the_data_and_on_no_page(close):
    """A reader would take it for the answer, which the page gives by tests."""
    ranking = close.rankings[0]
    assert ranking.leader.probability_best > 0.1
    assert close.to_frame()["probability_best"].iloc[0] == ranking.leader.probability_best
    said = ("P(best)", "Best guess", "being the best, and", "How certain the ranks are")
    for text in (html(close), markdown(close), " ".join(verdict(Review(close)))):
        assert not any(part in text for part in said)
    assert "rank_distribution" in close.figures()


def test_seeds_and_other_kinds_of_models_give_no_curve_of_a_parameter(close):
    seeds = {
        name: {"seed": str(k), "fold": str(k), "random_state": str(k)}
        for k, name in enumerate("ABC")
    }
    assert "parameter" not in with_params(close, seeds).figures()
    kinds = {name: {"depth": str(k), "model": name} for k, name in enumerate("ABC")}
    assert "parameter" not in with_params(close, kinds).figures()


@pytest.mark.slow
def test_an_alias_is_set_only_when_asked_for(store):
    y = random_labels(200, 3)
    ids = log_runs(store, y, {"a": 1.0, "b": 2.5})
    store.create_registered_model("m")
    versions = {
        name: store.create_model_version("m", f"runs:/{ids[name]}/model", ids[name]).version
        for name in ("a", "b")
    }
    comparison = compare(list(ids.values()))
    assert comparison.log().alias == ""
    assert store.get_registered_model("m").aliases == {}
    logged = comparison.log(alias="challenger")
    assert logged.alias == f"models:/m@challenger (version {versions['b']})"
    assert str(store.get_model_version_by_alias("m", "challenger").version) == str(versions["b"])
    store.create_registered_model("n")
    store.create_model_version("n", f"runs:/{ids['b']}/model", ids["b"])
    with pytest.raises(ValueError, match="choose the model with registered_model="):
        comparison.log(alias="champion")
    assert (
        comparison.log(alias="champion", registered_model="n").alias
        == "models:/n@champion (version 1)"
    )
    with pytest.raises(ValueError, match="no registered version of 'x'"):
        comparison.log(alias="champion", registered_model="x")
    store.create_model_version("n", f"runs:/{ids['b']}/model", ids["b"])
    with pytest.raises(ValueError, match=r"2 registered versions of 'n' .* by hand"):
        comparison.log(alias="champion", registered_model="n")


@pytest.mark.slow
def test_an_alias_that_is_refused_is_said_in_plain_words(store):
    y = random_labels(100, 3)
    ids = log_runs(store, y, {"a": 1.0, "b": 2.5})
    store.create_registered_model("m")
    store.create_model_version("m", f"runs:/{ids['b']}/model", ids["b"])
    with pytest.raises(ValueError, match="but the alias '!' was refused"):
        compare(list(ids.values())).log(alias="!")
    assert store.get_registered_model("m").aliases == {}


@pytest.mark.slow
def test_a_run_of_another_ranking_is_not_tagged_as_the_best(store):
    ids = log_runs(store, random_labels(100, 3), {"a": 1.0, "b": 2.5})
    ids |= log_runs(store, random_labels(90, 3, 1), {"x": 1.0})
    compare(list(ids.values())).log()
    assert tags(store, ids["b"])["cmtrack.rank"] == "1"
    assert tags(store, ids["x"])["cmtrack.rank"] == "1 in ranking 2"


@pytest.mark.slow
def test_logged_models_get_the_tags_and_may_refuse_them(store):
    y = random_labels(200, 3)
    ids = log_runs(store, y, {"a": 1.0, "b": 2.5})
    model = store.create_logged_model("1", name="model", source_run_id=ids["b"])
    ranked = compare(list(ids.values()))
    ranking = ranked.rankings[0]
    models = {ids["b"]: (model.model_id,), ids["a"]: ("m-unknown",)}
    runs = tuple(
        replace(run, run=replace(run.run, model_ids=models[run.run_id])) for run in ranking.runs
    )
    logged = replace(ranked, rankings=(replace(ranking, runs=runs),)).log()
    assert logged.tagged_models == (model.model_id,)
    assert len(logged.problems) == 1
    assert "m-unknown" in logged.problems[0]
    found = store.get_logged_model(model.model_id).tags
    assert found["cmtrack.rank"] == "1"
    assert found["cmtrack.review"] == logged.run_id


@pytest.mark.slow
def test_runs_of_two_stores_are_tagged_where_they_are(tmp_path, monkeypatch):
    import mlflow

    from cmtrack.tracking import tracking_store

    monkeypatch.chdir(tmp_path)
    y = random_labels(200, 3)
    uris, ids = [], []
    for k, skill in enumerate((1.0, 2.5)):
        uri = sqlite_store(tmp_path / f"{k}.db")
        with tracking_store(uri):
            mlflow.create_experiment("e", artifact_location=(tmp_path / f"artifacts{k}").as_uri())
            mlflow.set_experiment("e")
            with mlflow.start_run(run_name=f"run {k}") as run:
                log_evaluation(y, y_prob=random_probabilities(y, 3, skill, k), strict=True)
        uris.append(uri)
        ids.append(run.info.run_id)
    logged = compare(experiment_names=["e"], tracking_uri=uris).log()
    clients = [mlflow.MlflowClient(uri) for uri in uris]
    assert clients[1].get_run(logged.run_id).info.status == "FINISHED"
    for client, run_id, rank in zip(clients, ids, "21", strict=True):
        assert client.get_run(run_id).data.tags["cmtrack.rank"] == rank
