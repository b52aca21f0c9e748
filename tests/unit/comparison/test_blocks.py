"""Repeated runs: models over folds and seeds."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm, t

from cmtrack import evaluate
from cmtrack.comparison import Blocks, Candidate, Criterion, TieBreaker, rank_models
from cmtrack.evaluation import Gate
from cmtrack.removed import RemovedFeature
from cmtrack.tracking import TrackedRun

ACCURACY = Criterion.of("multiclass/accuracy")


def labels_of(hits, n=100):
    """Two classes, so many of 100 right."""
    y = np.arange(n) % 2
    predicted = y.copy()
    predicted[: n - hits] = 1 - predicted[: n - hits]
    return y, predicted


def candidate(evaluation, name="run", start=0, gates=(), **params):
    run = TrackedRun(
        f"{name}{sorted(params.items())}",
        name,
        params={k: str(v) for k, v in params.items()},
        start_time=start,
    )
    return Candidate(
        run,
        evaluation,
        tuple(gate.check(evaluation.metrics, evaluation.intervals) for gate in gates),
    )


def table(hits, gates=(), shift=True):
    """Candidates from {model: hits by fold}; every fold has test rows of its own unless told otherwise."""
    out = []
    for model, row in hits.items():
        for fold, right in enumerate(row):
            y, predicted = labels_of(right)
            if shift:
                y, predicted = (np.concatenate((part, [0] * (fold + 1))) for part in (y, predicted))
            out.append(
                candidate(evaluate(y, predicted), model, model=model, fold=fold, gates=gates)
            )
    return out


HITS = {"forest": [80, 84, 78, 81, 85], "linear": [79, 83, 79, 80, 83], "bad": [60, 66, 58, 63, 61]}


def test_folds_use_the_corrected_resampled_t():
    ranking, failed, notes = rank_models(table(HITS), ACCURACY, Blocks("params.fold"))
    assert failed == ()
    assert ranking.kind == "folds"
    assert [model.name for model in ranking.models] == ["forest", "linear", "bad"]
    assert ranking.block_names == ("0", "1", "2", "3", "4")
    forest, linear, bad = ranking.models
    gaps = ranking.scores[:, 2] - ranking.scores[:, 0]
    error = np.sqrt((1 / 5 + 1 / 4) * gaps.var(ddof=1))
    assert bad.difference == pytest.approx(gaps.mean())
    # of 3 pairs
    assert bad.difference_high == pytest.approx(gaps.mean() + t.ppf(1 - 0.025 / 3, 4) * error)
    assert bad.pvalue == pytest.approx(2 * t.sf(abs(gaps.mean()) / error, 4))
    assert forest.mean == pytest.approx(ranking.scores[:, 0].mean())
    assert forest.sd == pytest.approx(ranking.scores[:, 0].std(ddof=1))
    assert (forest.tied, linear.tied, bad.tied) == (True, True, False)
    assert any("Nadeau" in note for note in notes)


@pytest.mark.slow
def test_a_given_ratio_of_test_to_training_rows_is_used():
    narrow, wide = (
        rank_models(table(HITS), ACCURACY, Blocks("params.fold", test_train_ratio=r))[0].models[2]
        for r in (0.1, 1.0)
    )
    assert (
        wide.difference_high - wide.difference_low > narrow.difference_high - narrow.difference_low
    )


def test_seeds_judge_on_the_same_rows_and_use_their_covariance():
    runs = table(HITS, shift=False)
    for run in runs:
        run.run.params["seed"] = run.run.params.pop("fold")
    ranking, _, _ = rank_models(runs, ACCURACY, Blocks("params.seed"))
    assert ranking.kind == "seeds"
    # the mean influence of five seeds against that of five others, by hand
    psi = {
        name: np.mean(
            [run.evaluation.influence("multiclass/accuracy") for run in runs if run.name == name],
            axis=0,
        )
        for name in ("forest", "bad")
    }
    test_error = (psi["bad"] - psi["forest"]).std() / 10
    gaps = ranking.scores[:, 2] - ranking.scores[:, 0]
    assert ranking.result["bad"].standard_error == pytest.approx(
        np.sqrt(test_error**2 + gaps.var(ddof=1) / 5)
    )


def test_metrics_that_are_better_small_keep_their_sign():
    runs = table(HITS)
    ranking, _, _ = rank_models(runs, Criterion.of("binary/fpr"), Blocks("params.fold"))
    assert ranking.models[0].mean < ranking.models[-1].mean
    assert ranking.models[-1].difference > 0
    assert ranking.models[-1].difference_low > 0


@pytest.mark.slow
def test_gates_are_of_the_mean_over_the_blocks():
    gates = [Gate.parse("multiclass/accuracy >= 0.8"), Gate.parse("multiclass/accuracy.low >= 0.5")]
    ranking, failed, _ = rank_models(
        table(HITS, gates), ACCURACY, Blocks("params.fold"), gates=gates
    )
    assert [model.name for model in ranking.models] == ["forest", "linear"]
    (bad,) = failed
    assert bad.name == "bad"
    mean = np.mean(
        [run.evaluation.metrics["multiclass/accuracy"] for run in table(HITS) if run.name == "bad"]
    )
    assert bad.gates[0].value == pytest.approx(mean)
    nothing, failed, _ = rank_models(
        table(HITS, [Gate.parse("multiclass/accuracy > 2")]),
        ACCURACY,
        Blocks("params.fold"),
        gates=[Gate.parse("multiclass/accuracy > 2")],
    )
    assert nothing is None
    assert len(failed) == 3


@pytest.mark.slow
def test_tie_breakers_choose_among_tied_models():
    runs = table(HITS)
    for run in runs:
        run.run.params["cost"] = {"forest": "9", "linear": "1", "bad": "0"}[run.name]
    blocks = Blocks("params.fold", model="params.model")
    cheap = [TieBreaker.parse("params.cost")]
    ranking, _, _ = rank_models(runs, ACCURACY, blocks, tie_breakers=cheap, margin=0.05)
    assert (ranking.leader.name, ranking.chosen.name) == ("forest", "linear")
    near, _, _ = rank_models(runs, ACCURACY, blocks, tie_breakers=cheap)
    linear = near.models[1]
    assert linear.tied
    # so that the rule of one standard error keeps it out
    assert -linear.difference > linear.standard_error
    assert near.chosen.name == "forest"
    means, _, _ = rank_models(
        runs, ACCURACY, blocks, tie_breakers=[TieBreaker.parse("binary/recall")], margin=0.05
    )
    recalls = {
        name: np.mean([run.evaluation.metrics["binary/recall"] for run in runs if run.name == name])
        for name in ("forest", "linear")
    }
    assert means.chosen.name == max(recalls, key=recalls.get)


def test_models_are_named_by_what_varies():
    def runs(**fixed):
        return [
            candidate(
                evaluate(*labels_of(h)),
                f"r{h}{f}",
                fold=f,
                n=100,
                **{k: v[i] for k, v in fixed.items()},
            )
            for i, row in enumerate(([80, 81], [70, 71]))
            for f, h in enumerate(row)
        ]

    one = rank_models(runs(depth=[3, 5]), ACCURACY, Blocks("params.fold"))[0]
    assert {model.name for model in one.models} == {"3", "5"}
    two = rank_models(runs(depth=[3, 5], lr=[0.1, 0.2]), ACCURACY, Blocks("params.fold"))[0]
    assert {model.name for model in two.models} == {"depth=3, lr=0.1", "depth=5, lr=0.2"}


def test_a_run_that_was_repeated_counts_once_the_newest():
    runs = table(HITS)
    y, predicted = (np.append(part, 0) for part in labels_of(99))  # the rows of the fold
    runs.append(candidate(evaluate(y, predicted), "forest", start=5, model="forest", fold=0))
    ranking, _, notes = rank_models(runs, ACCURACY, Blocks("params.fold"))
    assert ranking.scores[0, 0] == 100 / 101
    assert notes[0] == "1 older runs are not ranked, because a newer run has the same block."


def of_seeds(rows, skill=(0.8, 0.85)):
    """Models A and B of six seeds; ``rows`` gives the number of the labels' draw, and how many, by model and seed."""
    out = []
    for place, model in enumerate("AB"):
        for seed in range(6):
            draw, n = rows(model, seed)
            y = np.random.default_rng(draw).integers(0, 2, n)
            right = np.random.default_rng(100 * place + seed).random(n) < skill[place]
            out.append(
                candidate(
                    evaluate(y, np.where(right, y, 1 - y)), f"{model}{seed}", model=model, seed=seed
                )
            )
    return out


SEEDS = {"by": "params.seed", "model": "params.model"}


@pytest.mark.parametrize("kind", ["auto", "seeds", "folds"])
def test_runs_of_one_block_on_other_rows_are_refused_by_name(kind):
    """B of the seeds 3 to 5 was judged on 500 other rows: no kind of repetition makes them comparable with A."""
    runs = of_seeds(lambda model, seed: (2, 500) if model == "B" and seed > 2 else (1, 800))
    said = (
        "the runs of a block must be evaluated on the same rows and in the same way, but these runs and others in "
        "their blocks were evaluated on different evaluation data: “B3” (params.seed 3, 500 rows), “B4” "
        "(params.seed 4, 500 rows), “B5” (params.seed 5, 500 rows); compare with “A3” (params.seed 3, 800 rows)"
    )
    with pytest.raises(ValueError, match=re.escape(said)):
        rank_models(runs, ACCURACY, Blocks(**SEEDS, kind=kind))


@pytest.mark.slow
def test_the_rows_tell_the_kind():
    same = of_seeds(lambda model, seed: (1, 800))
    ranking, _, _ = rank_models(same, ACCURACY, Blocks(**SEEDS))
    assert ranking.kind == "seeds"
    # as if stratified
    parts = [np.random.default_rng(fold).permutation(np.arange(100) % 3) for fold in range(6)]
    runs = [
        candidate(evaluate(part, np.roll(part, shift)), f"{model}{fold}", model=model, part=fold)
        for shift, model in enumerate("AB")
        for fold, part in enumerate(parts)
    ]
    assert rank_models(runs, ACCURACY, Blocks("params.part", "params.model"))[0].kind == "folds"


@pytest.mark.parametrize(
    ("rows", "kind", "said"),
    [
        (
            lambda model, seed: (seed // 3, 800),
            "auto",
            "as with folds; these blocks",
        ),
        (
            lambda model, seed: (seed // 3, 800),
            "seeds",
            "block_kind='seeds' needs the same rows in all blocks; the",
        ),
        (
            lambda model, seed: (seed, 800),
            "seeds",
            "block_kind='seeds' needs the same rows in all blocks; the",
        ),
        (
            lambda model, seed: (1, 800),
            "folds",
            "block_kind='folds' needs different rows in all blocks",
        ),
    ],
)
def test_a_kind_that_the_rows_contradict_is_refused(rows, kind, said):
    with pytest.raises(ValueError, match=said) as caught:
        rank_models(of_seeds(rows), ACCURACY, Blocks(**SEEDS, kind=kind))
    assert "these blocks have the same rows: params.seed 0" in str(caught.value)
    if rows("A", 3) == (1, 800) and rows("A", 0) == (0, 800):
        assert "params.seed 0, 1, 2; params.seed 3, 4, 5" in str(caught.value)


def test_several_data_sets_are_refused():
    """Blocks with rows of their own that neither the name nor the classes make folds."""
    own = of_seeds(lambda model, seed: (seed, 800 + 50 * seed))
    said = "each block of params.seed has different rows. Give block_kind='folds' if the blocks are folds of one"
    with pytest.raises(RemovedFeature, match=said) as caught:
        rank_models(own, ACCURACY, Blocks(**SEEDS))
    assert "scikit-posthocs" in str(caught.value)
    assert rank_models(own, ACCURACY, Blocks(**SEEDS, kind="folds"))[0].kind == "folds"


def test_row_ids_tell_rows_of_the_same_labels_apart():
    y = np.arange(100) % 2
    runs = [
        candidate(
            evaluate(y, np.roll(y, shift), row_ids=np.arange(100) + 100 * part),
            model,
            model=model,
            part=part,
        )
        for shift, model in enumerate("AB")
        for part in range(3)
    ]
    assert rank_models(runs, ACCURACY, Blocks("params.part", kind="folds"))[0].kind == "folds"
    bare = [replace(run, evaluation=evaluate(y, run.evaluation.rows.predicted)) for run in runs]
    with pytest.raises(ValueError, match="row_ids= distinguishes rows that have the same labels"):
        rank_models(bare, ACCURACY, Blocks("params.part", kind="folds"))


def test_a_block_of_classes_in_another_order_is_one_block():
    y = np.random.default_rng(0).integers(0, 3, 200)
    order = np.array([2, 0, 1])
    runs = {}
    for place, model in enumerate("AB"):
        for seed in range(3):
            predicted = np.where(
                np.random.default_rng(10 * place + seed).random(200) < 0.7, y, (y + 1) % 3
            )
            labels = order if (model, seed) == ("B", 1) else np.arange(3)
            runs[model, seed] = evaluate(y, predicted, labels=labels.tolist())
    # a comparison puts the evaluations into one order of the classes before it ranks them
    candidates = [
        candidate(one.with_label_order([0, 1, 2]), f"{m}{s}", model=m, seed=s)
        for (m, s), one in runs.items()
    ]
    ranking, _, _ = rank_models(candidates, ACCURACY, Blocks(**SEEDS))
    assert ranking.kind == "seeds"
    assert np.isfinite(ranking.models[1].standard_error)


def test_a_missing_block_is_left_out_of_the_tests():
    runs = [run for run in table(HITS) if (run.name, run.run.params["fold"]) != ("linear", "2")]
    ranking, _, notes = rank_models(runs, ACCURACY, Blocks("params.fold"))
    assert np.isnan(ranking.scores[2]).sum() == 1
    assert (ranking.result.blocks, ranking.result.left_out) == (4, 1)
    assert notes


@pytest.mark.parametrize(
    ("blocks", "criterion", "words"),
    [
        (
            Blocks("params.fold"),
            Criterion.of(["multiclass/accuracy", "multiclass/f1_macro"]),
            "must be one metric",
        ),
        (
            Blocks("params.fold", model="params.nothing"),
            ACCURACY,
            "every run must have params.nothing, got none for 15",
        ),
        (Blocks("params.nothing"), ACCURACY, "must have a model in two blocks or more"),
    ],
)
def test_what_cannot_be_ranked_over_blocks(blocks, criterion, words):
    with pytest.raises(ValueError, match=words):
        rank_models(table(HITS), criterion, blocks)


def folds_with_equal_gaps(n_folds=4, n=300, gap=5, noise=60):
    """Two models whose fold differences are all the same, each far smaller than its own rows' error allows."""
    out = []
    for fold in range(n_folds):
        y = np.arange(n) % 2
        first, second = y.copy(), y.copy()
        first[:noise] = 1 - first[:noise]
        second[noise : 2 * noise + gap + fold % 2] = 1 - second[noise : 2 * noise + gap + fold % 2]
        y, first, second = (np.concatenate((part, [0] * (fold + 1))) for part in (y, first, second))
        for model, predicted in (("first", first), ("second", second)):
            out.append(candidate(evaluate(y, predicted), model, model=model, fold=fold))
    return out


def test_a_small_spread_of_the_folds_gives_no_surer_answer_than_their_rows():
    """Two answers to one question: p = .002 by the spread of four folds, .06 by the pooled rows."""
    runs = folds_with_equal_gaps()
    ranking, _, notes = rank_models(runs, ACCURACY, Blocks("params.fold", "params.model"))
    _, second = ranking.models
    gaps = ranking.scores[:, 1] - ranking.scores[:, 0]
    spread = np.sqrt((1 / 4 + 1 / 3) * gaps.var(ddof=1))
    assert 2 * t.sf(abs(gaps.mean()) / spread, 3) < 0.01
    errors = []
    for fold in range(4):
        a, b = (run.evaluation for run in runs[2 * fold : 2 * fold + 2])
        gap = (b.rows.predicted == b.rows.actual).astype(float) - (
            a.rows.predicted == a.rows.actual
        )
        errors.append(gap.std() / np.sqrt(len(gap)))
    rows = np.sqrt(np.square(errors).sum()) / 4
    assert second.standard_error == pytest.approx(rows)
    assert second.pvalue == pytest.approx(2 * norm.sf(abs(gaps.mean()) / rows))
    assert second.pvalue > 0.05
    assert second.tied
    assert second.difference_low < 0 < second.difference_high
    assert any(
        "exceeds both the spread of the folds and the sampling error of their test rows" in note
        for note in notes
    )


def test_repeated_folds_know_their_rows_no_better_than_one_pass():
    """Ten passes over the same rows are not ten times as many rows."""
    once = folds_with_equal_gaps()
    twice = once + [
        replace(
            run,
            run=replace(
                run.run, params=run.run.params | {"fold": str(int(run.run.params["fold"]) + 4)}
            ),
        )
        for run in once
    ]
    found = [
        rank_models(runs, ACCURACY, Blocks("params.fold", "params.model", test_train_ratio=1 / 3))[
            0
        ].models[1]
        for runs in (once, twice)
    ]
    assert found[1].standard_error == pytest.approx(found[0].standard_error)


def test_folds_of_equal_models_are_told_apart_no_more_often_than_the_level_says():
    """Error rates on a null case; 400 trials of three folds whose rows alone make the models differ."""
    from cmtrack.comparison.repeated import corrected_resampled_t

    rng = np.random.default_rng(0)
    by_spread, by_both = 0, 0
    for _ in range(400):
        gaps = rng.normal(0, 0.02, 3)
        error = 0.02 / np.sqrt(3)
        by_spread += corrected_resampled_t(gaps, 1 / 2).pvalue <= 0.05
        by_both += corrected_resampled_t(gaps, 1 / 2, test_error=error).pvalue <= 0.05
    assert by_both <= by_spread <= 0.07 * 400
    sure = corrected_resampled_t([0.0155, 0.0165, 0.0175, 0.0185], 1 / 3)
    both = corrected_resampled_t([0.0155, 0.0165, 0.0175, 0.0185], 1 / 3, test_error=0.0093)
    assert sure.pvalue < 0.005 < 0.05 < both.pvalue
    assert both.method == "test rows"
    wide = corrected_resampled_t([-0.02, 0.05, 0.01, 0.03], 1 / 3, test_error=0.001)
    assert wide == replace(corrected_resampled_t([-0.02, 0.05, 0.01, 0.03], 1 / 3), test_rows=True)


@pytest.mark.slow
@pytest.mark.parametrize("shift", [True, False], ids=["folds", "seeds"])
def test_the_interval_that_is_shown_agrees_with_the_p_that_decides(shift):
    rng = np.random.default_rng(3)
    for _ in range(6):
        hits = {
            f"m{k}": [int(h) for h in rng.integers(60 + 4 * k, 72 + 4 * k, 5)] for k in range(4)
        }
        kind = "folds" if shift else "seeds"
        ranking, _, _ = rank_models(
            table(hits, shift=shift), ACCURACY, Blocks("params.fold", "params.model", kind)
        )
        for model in ranking.models[1:]:
            assert model.tied == (model.p_holm > 0.05)
            if model.tied:
                assert model.difference_low <= 0 <= model.difference_high


def test_models_over_blocks_are_held_against_the_constant_answer_of_each_block():
    runs = []
    for model, rights in {
        "forest": [70, 74, 68, 71, 75, 72],
        "linear": [60, 62, 61, 59, 64, 60],
    }.items():
        for fold, right in enumerate(rights):
            y = np.array([0] * (68 + fold % 3) + [1] * (32 - fold % 3))
            predicted = np.where(np.random.default_rng(fold).permutation(100) < right, y, 1 - y)
            rows = evaluate(y, predicted, row_ids=np.arange(100) + 100 * fold)
            runs.append(candidate(rows, model, model=model, fold=fold))
    ranking, *_ = rank_models(runs, ACCURACY, Blocks("params.fold", kind="folds"))
    (constant,) = ranking.constants
    shares = np.array([0.68, 0.69, 0.70] * 2)
    assert (constant.words, constant.run) == ("always “0”", "forest")
    assert constant.value == pytest.approx(shares.mean())
    gaps = np.array([70, 74, 68, 71, 75, 72]) / 100 - shares
    assert constant.difference == pytest.approx(gaps.mean())
    assert constant.warns
    # the error of the test rows may be the larger
    spread = 2 * t.sf(gaps.mean() / np.sqrt((1 / 6 + 1 / 5) * gaps.var(ddof=1)), 5)
    assert constant.pvalue >= spread - 1e-12  # Holm's largest p-value stays as it is
    assert constant.by_run["linear"] < 0.05 < constant.by_run["forest"]  # which is worse
    assert constant.shown == ()


def test_a_constant_correlation_over_seeds_is_guessing_with_the_error_of_the_rows():
    ranking, *_ = rank_models(
        table(HITS, shift=False),
        Criterion.of("multiclass/matthews_corrcoef"),
        Blocks("params.fold"),
    )
    (constant,) = ranking.constants
    assert ranking.kind == "seeds"
    assert constant.guessed
    assert constant.difference == pytest.approx(ranking.leader.mean)
    rows = np.mean(
        [run.evaluation.influence("multiclass/matthews_corrcoef") for run in ranking.leader.runs],
        axis=0,
    )
    assert constant.standard_error >= np.sqrt(rows @ rows) / 100
    assert constant.shown_better


def test_a_model_that_gates_leave_alone_is_chosen():
    gate = Gate.parse("multiclass/accuracy >= 0.815")
    ranking, failed, notes = rank_models(
        table(HITS, [gate]), ACCURACY, Blocks("params.fold", kind="folds"), gates=[gate]
    )
    assert sorted(model.name for model in failed) == ["bad", "linear"]
    assert ranking.chosen is ranking.leader is ranking.models[0]
    assert ranking.leader.mean == pytest.approx(ranking.scores.mean())
    assert notes == ()
