"""Density models of ``estimate_prevalence``: the stack, its cells, moment matching and its intervals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import chi2

import cmtrack
from cmtrack import PrevalenceEstimate, estimate_prevalence
from cmtrack.metrics import lookup
from cmtrack.plots import prevalence_figure

# the equation by hand, the folds and what joins them: estimates show neither folds nor parts of the equation
from cmtrack.prevalence._cross_fitting import (
    MomentMatch,
    TwoFoldings,
    at_random,
    fit_ratio,
    in_turn,
)

# the fast count into cells on any scale, whose edges no estimate shows, and the models that are stacked
from cmtrack.prevalence.densities import MODELS, score_cells
from cmtrack.report import verdict
from cmtrack.statistics import ScoreCounts
from support.problems import random_labels, random_scores

ASSUMES = "assumes that within each class the scores are distributed as in the labelled rows"
DOUBTED = 1.1
"""A power of the scores whose misfit is below 0.05 and above 0.01."""


def scored(rng: np.random.Generator, positives: int, negatives: int, gap: float = 1.5) -> Any:
    """Normal scores, the negatives first."""
    return np.concatenate((rng.normal(-gap, 1, negatives), rng.normal(gap, 1.3, positives)))


def labelled(seed: int = 0, positives: int = 150, negatives: int = 250) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    return np.repeat([0, 1], [negatives, positives]), expit(scored(rng, positives, negatives))


def ends(e: PrevalenceEstimate) -> tuple[float, ...]:
    return e.value, e.low, e.high, e.fit_pvalue, e.variance.total


@pytest.mark.parametrize("density", ["auto", "bins"])
@pytest.mark.parametrize("interval", ["adjusted", "naive"])
def test_every_density_with_every_interval(density: str, interval: str) -> None:
    target = expit(scored(np.random.default_rng(5), 300, 700))
    e = estimate_prevalence(target, calibration=labelled(), density=density, interval=interval)
    assert 0 < e.low < e.value < e.high < 1
    assert abs(e.value - 0.3) < 0.06
    assert e.high - e.low < 0.2
    assert e.low < 0.3 < e.high
    assert e.density == density
    assert sum(e.shares) == pytest.approx(1)
    assert e.count_low < e.count < e.count_high
    assert e.fit_pvalue > 1e-4
    assert e.posterior(target).sum() == pytest.approx(e.count, rel=1e-6)
    curves = e.likelihood()
    for deviance in (curves.adjusted, curves.naive):
        assert deviance[np.searchsorted(curves.prevalence, e.value)] == pytest.approx(0, abs=1e-9)
        assert deviance.min() > -1e-6


@pytest.mark.parametrize("density", ["auto", "bins"])
@pytest.mark.parametrize("interval", ["adjusted", "naive"])
def test_the_method_of_the_interval_reaches_the_count(density: str, interval: str) -> None:
    target = expit(scored(np.random.default_rng(5), 300, 700))
    options: Any = {"calibration": labelled(), "density": density}
    e = estimate_prevalence(target, interval=interval, **options)
    usual = estimate_prevalence(target, **options)
    count, share = np.array([e.count_low, e.count_high]), 1000 * np.array([e.low, e.high])
    assert count == pytest.approx(1000 * np.array(e.realised))
    if interval == "adjusted":
        assert count == pytest.approx([usual.count_low, usual.count_high])
    else:
        assert np.abs(count - [usual.count_low, usual.count_high]).max() > 0.1
    # the target's own number is known better than the population's share
    assert share[0] < count[0] < e.count < count[1] < share[1]


def rare(seed: int, k: int = 25) -> tuple[Any, Any]:
    """A labelled set and a target of 5,000 scores with k positives: a good filter of rare positives."""
    rng = np.random.default_rng(seed)

    def some(positive: bool, n: int) -> Any:
        return expit(1.6 * rng.normal(3.9 * positive, 1 + 0.6 * positive, n) - 3.5)

    held = np.concatenate((some(False, 900), some(True, 140)))
    return (np.repeat([0, 1], [900, 140]), held), np.concatenate(
        (some(False, 5000 - k), some(True, k))
    )


@pytest.mark.slow
def test_counts_of_rare_positives_are_as_sharp_as_the_estimate() -> None:
    """Twelve draws. One negative in 281 was imagined where none of 900 was seen: the error was twice the scatter."""
    found = [estimate_prevalence(target, calibration=held) for held, target in map(rare, range(12))]
    widths = [e.count_high - e.count_low for e in found]
    assert all(e.count_low <= 25 <= e.count_high for e in found)
    assert np.mean(widths) < 40
    assert sum(e.count_low == 0 for e in found) <= 6
    assert np.sqrt(np.mean([(e.count - 25) ** 2 for e in found])) < 9
    assert 4 < np.mean([e.count_sd for e in found]) < 9


def test_what_is_unseen_of_the_negatives_widens_the_interval_below_the_estimate_only() -> None:
    held, target = rare(0)
    match = MomentMatch(*_matched(held, target))
    value = match.solve()
    at = np.array([0.5 * value, 1.5 * value])
    seen, most = match.spread(at), match.spread(at, unseen=(True, True))
    around = match.about(value, at)
    assert most[2][0] > 2 * seen[2][0]
    assert around[2] == pytest.approx([most[2][0], seen[2][1]])
    assert around[1] == pytest.approx([seen[1][0], most[1][1]])


def _matched(held: Any, target: Any) -> Any:
    cells = score_cells(ScoreCounts.from_scores(held[1], held[0], 2, exact=True))
    fit = fit_ratio(cells)
    sizes = (float(len(target)), cells.cells.m1, cells.cells.m0)
    return (
        fit.left,
        cells.count(target) / sizes[0],
        fit.positives / sizes[1],
        fit.negatives / sizes[2],
        sizes,
    )


def test_an_interval_that_reaches_an_end_says_that_estimates_there_are_biased() -> None:
    held, target = rare(3, 6)
    low = estimate_prevalence(target, calibration=held)
    assert low.low == 0
    assert [w for w in low.warnings if "are on average too high" in w and "begins at 0" in w]
    turned = estimate_prevalence(1 - target, calibration=(1 - held[0], 1 - held[1]), density="bins")
    high = estimate_prevalence(1 - target, calibration=(1 - held[0], 1 - held[1]))
    assert high.high == 1
    assert [w for w in high.warnings if "are on average too low" in w and "ends at 1" in w]
    assert bool(turned.high == 1) == any("ends at 1" in w for w in turned.warnings)
    inside = estimate_prevalence(
        expit(scored(np.random.default_rng(5), 300, 700)), calibration=labelled()
    )
    assert inside.warnings == ()
    # they calibrate themselves
    rows = cmtrack.evaluate(held[0][850:920], y_prob=held[1][850:920]).prevalence
    assert rows is not None
    assert not any("on average" in w for w in rows.warnings)


def test_without_a_root_the_least_equation_in_standard_errors_is_taken() -> None:
    """Random folds of which one lacks the highest negative: the equation stays below 0, least near to 0.05."""
    rng = np.random.default_rng(31186)
    y = np.repeat([0, 1], [150, 90])
    held, target = (
        np.round(rng.normal(y * 1.5), 2),
        np.round(rng.normal(np.repeat([0, 1], [400, 80]) * 1.5), 2),
    )
    plain = estimate_prevalence(target, calibration=(y, held))
    turned = estimate_prevalence(-target, calibration=(y, -held), positive=0)
    assert plain.value == pytest.approx(0.0656, abs=0.003)  # 0.0136 before; 80 of 480 are positive
    assert abs(plain.value - (1 - turned.value)) < 0.07
    assert plain.low <= 80 / 480 <= plain.high


@pytest.mark.parametrize("density", ["auto", "bins"])
@pytest.mark.parametrize("interval", ["adjusted", "naive"])
def test_the_adjusted_curve_crosses_the_cut_at_the_ends_of_the_interval(
    density: str, interval: str
) -> None:
    target = expit(scored(np.random.default_rng(5), 300, 700))
    e = estimate_prevalence(target, calibration=labelled(), density=density, interval=interval)
    curves = e.likelihood()
    cut = chi2.ppf(0.95, 1)
    solid = np.interp([e.low, e.high], curves.prevalence, curves.adjusted)
    assert solid == pytest.approx([cut, cut], rel=2e-3)
    dashed = np.interp([e.low, e.high], curves.prevalence, curves.naive)
    if interval == "naive":  # nothing to adjust for
        assert dashed == pytest.approx(solid)
    else:
        assert (dashed > 1.1 * cut).all()


@pytest.mark.slow
@pytest.mark.parametrize("weights", [None, "fractional"])
def test_a_share_that_the_same_labels_tell_is_a_number_and_no_statement(weights: Any) -> None:
    y, s = labelled(3, 300, 500)
    w = None if weights is None else np.random.default_rng(1).uniform(0.2, 3, len(y))
    own = cmtrack.evaluate(y, y_prob=s, sample_weight=w)
    assert own.calibrates_itself
    assert own.metrics["prevalence/calibrated"] == own.prevalence.value
    assert "prevalence/calibrated" in own.headline  # it is logged wherever there are scores
    for sentence in verdict(own):
        assert "calibrated" not in sentence
        assert "narrow the interval" not in sentence
        assert "Estimated from labelled" not in sentence
    assert "prevalence_likelihood" not in own.figures()
    target = labelled(5)[1]
    for options in (
        {"calibration": labelled(4)},
        {"target": target},
        {"calibration": labelled(4), "target": target},
    ):
        given = cmtrack.evaluate(y, y_prob=s, sample_weight=w, **options)
        e = given.prevalence
        (sentence,) = (
            told for told in verdict(given) if told.startswith("Estimated from labelled scores")
        )
        assert f". The estimate {ASSUMES}. " in sentence
        assert ("(actual: " in sentence) == ("target" not in options)
        assert "prevalence/calibrated" in given.headline
        assert "prevalence/calibrated_low" not in given.headline
        ax = given.figures()["prevalence_likelihood"].axes[0]
        assert list(
            next(line for line in ax.lines if line.get_label() == "_interval").get_xdata()
        ) == [e.low, e.high]
        assert ASSUMES in " ".join(t.get_text() for t in ax.texts).replace("\n", " ")


@pytest.mark.slow
def test_the_assumption_is_named_beside_every_interval_and_no_p_value_speaks_for_it() -> None:
    y, s = labelled(3, 300, 500)
    fitting = cmtrack.estimate_prevalence(labelled(5)[1], calibration=(y, s))
    assert fitting.fit_pvalue > 0.05
    shifted = cmtrack.estimate_prevalence(labelled(5)[1] ** DOUBTED, calibration=(y, s))
    assert 0.01 < shifted.fit_pvalue < 0.05
    for estimate in (fitting, shifted):
        page = estimate._repr_html_()
        assert ASSUMES in repr(estimate)
        assert ASSUMES in page
        assert ("do not trust the estimate" in page) == (estimate is shifted)
        assert ("p =" in page) == (estimate is shifted)
        words = " ".join(t.get_text() for t in estimate.figure().axes[0].texts)
        caption = words.replace("\n", " ")
        assert ASSUMES in caption
        assert ("do not trust the estimate" in caption) == (estimate is shifted)
    actual, target = labelled(5)
    doubted = cmtrack.evaluate(actual, y_prob=target**DOUBTED, calibration=(y, s))
    warned = " ".join(verdict(doubted))
    assert f"The estimate {ASSUMES}. This assumption may not hold (p = 0.0" in warned
    assert "narrow the interval" not in warned


def test_an_estimate_that_does_not_fit_is_withdrawn_wherever_it_is_read() -> None:
    """No number remains in the estimate, the metrics, the words or the metrics that are moved to its share."""
    y, s = labelled(3, 300, 500)
    target = labelled(5)[1] ** 3
    estimate = cmtrack.estimate_prevalence(target, calibration=(y, s))
    reason = estimate.why
    assert estimate.fit_pvalue < 0.01
    assert reason.startswith("the target's scores do not fit the labelled scores (p < 0.001)")
    numbers = (
        estimate.value,
        estimate.low,
        estimate.high,
        estimate.count,
        estimate.count_low,
        estimate.count_high,
    )
    assert np.isnan([*numbers, estimate.count_sd]).all()
    assert {estimate.undefined[name] for name in ("value", "low", "high", "count")} == {reason}
    assert estimate.shift == cmtrack.estimate_prevalence(target, calibration=(y, s)).refused.shift
    assert np.isfinite(estimate.shift).all()
    other = estimate.to_frame().iloc[0][["calibration", "calibration_low", "calibration_high"]]
    assert tuple(other) == estimate.calibration
    assert repr(estimate) == (
        f"PrevalenceEstimate(1: no estimate of 400; {reason}. If a score means the same as in the "
        "labelled rows: 0.196 [0.161, 0.237]. About 83 labelled rows of this target would give "
        "±0.05)"
    )
    assert estimate.to_frame()["why"][0] == reason
    page = estimate._repr_html_()
    assert "The share of “1” in the population is not estimated: the target" in page
    assert page.count("do not fit") == 1
    assert (
        "If a score means the same as in the labelled rows, the share of “1” is 19.6% [16.1, "
        "23.7]. About 83 labelled rows of this target would give ±5 percentage points." in page
    )
    assert "<img" not in page
    for use in (
        lambda: estimate.plan(0.05),
        lambda: estimate.labels(target),
        lambda: estimate.labels(target, "count"),
    ):
        with pytest.raises(
            ValueError, match="this estimate is NaN: the target's scores do not fit"
        ):
            use()

    evaluation = cmtrack.evaluate(y, y_prob=s, target=target)
    names = [f"prevalence/calibrated{part}" for part in ("", "_low", "_high", "_count")]
    assert np.isnan([evaluation.metrics[name] for name in names]).all()
    assert all("do not fit" in evaluation.undefined[name] for name in names)
    assert not evaluation.intervals.keys() & set(names)
    assert evaluation.metrics["prevalence/fit_pvalue"] < 0.01
    other = evaluation.prevalence.calibration
    assert evaluation.metrics["prevalence/recalibrated"] == other.value
    assert evaluation.intervals["prevalence/recalibrated"] == other[1:]
    assert "prevalence/recalibrated" in evaluation.headline
    assert [text for text in evaluation.warnings if "do not fit" in text] == [
        f"no calibrated prevalence: {evaluation.undefined[names[0]]}"
    ]
    assert "prevalence_likelihood" not in evaluation.figures()
    words = " ".join(verdict(evaluation))
    assert f"The prevalence of “1” is not estimated: {evaluation.undefined[names[0]]}." in words
    assert evaluation.prevalence.other_share() in words
    caption = prevalence_figure(evaluation.prevalence).axes[0].texts
    drawn = " ".join(text.get_text() for text in caption).replace("\n", " ")
    assert evaluation.prevalence.other_share() in drawn

    there = evaluation.at(estimate)
    assert there.withdrawn
    assert np.isnan(
        [*there.metrics.values(), *there.shares.values(), *there.by_name.values()]
    ).all()
    assert repr(there).startswith("Transported(withdrawn: the target's scores do not fit")


def test_a_doubtful_fit_keeps_the_metrics_at_its_share_with_a_warning() -> None:
    y, s = labelled(3, 300, 500)
    there = cmtrack.evaluate(y, y_prob=s).at(
        cmtrack.estimate_prevalence(labelled(5)[1] ** DOUBTED, calibration=(y, s))
    )
    assert 0.01 < there.fit_pvalue < 0.05
    assert np.isfinite(there.metrics["multiclass/accuracy"])
    assert (
        "it may not hold, the target's scores do not fit the labelled scores (p = 0.0"
        in there.warnings[0]
    )


@pytest.mark.parametrize("density", ["auto", "bins"])
@pytest.mark.parametrize(
    "change", [lambda s: s**3, np.exp, lambda s: 3 + 0.001 * s], ids=["cube", "exp", "affine"]
)
def test_increasing_maps_of_scores_that_are_no_probabilities(density: str, change: Any) -> None:
    rng = np.random.default_rng(8)
    y, held, target = np.repeat([0, 1], [300, 120]), scored(rng, 120, 300), scored(rng, 90, 500)
    plain = estimate_prevalence(target, calibration=(y, held), density=density)
    bent = estimate_prevalence(change(target), calibration=(y, change(held)), density=density)
    assert ends(bent) == pytest.approx(ends(plain), rel=1e-9, abs=1e-12)


def test_bins_stand_maps_of_probabilities_too() -> None:
    y, held = labelled(2, 30, 40)
    target = np.repeat(held, 2)
    plain = estimate_prevalence(target, calibration=(y, held), density="bins")
    bent = estimate_prevalence(target**2, calibration=(y, held**2), density="bins")
    assert ends(bent) == pytest.approx(ends(plain), rel=1e-9)


def test_options_are_checked() -> None:
    with pytest.raises(
        ValueError, match=r"density must be one of \('auto', 'bins'\), got 'spline'"
    ):
        estimate_prevalence([0.5], calibration=labelled(), density="spline")
    with pytest.raises(ValueError, match=r"interval must be one of \('adjusted', 'naive'\), got 1"):
        estimate_prevalence([0.5], calibration=labelled(), interval=1)  # type: ignore[arg-type]


@pytest.mark.slow
def test_same_answer_in_any_order_and_again() -> None:
    rng = np.random.default_rng(4)
    y, held = labelled()
    target = expit(scored(rng, 100, 200))
    order, other = rng.permutation(len(y)), rng.permutation(len(target))
    for interval in ("adjusted", "naive"):
        first = estimate_prevalence(target, calibration=(y, held), interval=interval)
        again = estimate_prevalence(target, calibration=(y, held), interval=interval)
        mixed = estimate_prevalence(
            target[other], calibration=(y[order], held[order]), interval=interval
        )
        assert ends(first) == ends(again) == ends(mixed)
        assert first.members == mixed.members


def test_stack_weights_are_convex() -> None:
    e = estimate_prevalence([0.2, 0.7], calibration=labelled())
    assert set(e.members) == {"isotonic", "kde_logit", "beta", "logistic"}
    assert sum(e.members.values()) == pytest.approx(1)
    assert min(e.members.values()) > 0


def test_separated_labels_are_counted() -> None:
    y = np.repeat([0, 1], 40)
    held = np.concatenate((np.linspace(0.001, 0.2, 40), np.linspace(0.8, 0.999, 40)))
    target = np.concatenate((np.full(70, 0.05), np.full(30, 0.9)))
    e = estimate_prevalence(target, calibration=(y, held))
    assert e.shift.value == pytest.approx(0.3, abs=0.01)
    assert e.shift.low < 0.3 < e.shift.high


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_ends_of_the_range(share: float) -> None:
    y, held = labelled(6, 1_000, 1_000)
    k = round(2_000 * share)
    e = estimate_prevalence(
        expit(scored(np.random.default_rng(1), k, 2_000 - k, 3.0)), calibration=(y, held)
    )
    assert abs(e.shift.value - share) < 0.05
    assert 0 <= e.shift.low <= e.shift.value <= e.shift.high <= 1


def test_one_of_each_class_and_equal_scores() -> None:
    e = estimate_prevalence([0.2, 0.8, 0.9], calibration=([0, 1], [0.1, 0.9]))
    assert 0 <= e.low <= e.value <= e.high <= 1
    assert any("< 20" in warning for warning in e.warnings)
    flat = estimate_prevalence([0.5] * 4, calibration=([0, 1, 1], [0.5] * 3))
    assert np.isnan(flat.value)
    assert "not identified" in flat.undefined["value"]


def test_training_scores_or_other_shifts_are_flagged() -> None:
    rng = np.random.default_rng(12)
    e = estimate_prevalence(expit(rng.normal(0, 0.2, 2_000)), calibration=labelled())
    assert e.fit_pvalue < 0.01
    assert any("do not fit" in warning for warning in e.warnings)


def test_counting_into_cells_is_exact_for_many_scores() -> None:
    rng = np.random.default_rng(0)
    y, held = labelled(0, 2_000, 2_000)
    cells = score_cells(ScoreCounts.from_scores(held, y, 2))
    many = np.concatenate(
        (expit(scored(rng, 100_000, 100_000, 4.0)), held, [0.0, 1.0], cells.cells.edges)
    )
    plain = np.bincount(
        np.searchsorted(cells.cells.edges, many, side="left"), minlength=len(cells.place)
    )
    np.testing.assert_array_equal(cells.count(many), plain)
    np.testing.assert_array_equal(cells.count(held), cells.positives + cells.negatives)
    assert len(cells.place) <= 200


def test_counting_of_many_scores_on_any_scale() -> None:
    rng = np.random.default_rng(0)
    for change in (lambda x: x, lambda x: 1e9 + 1e-3 * x, np.exp, lambda x: np.round(x, 1)):
        held, many = change(scored(rng, 500, 500)), change(scored(rng, 100_000, 100_000, 4.0))
        cells = score_cells(ScoreCounts.from_scores(held, np.repeat([0, 1], 500), 2))
        assert cells.lower is not None
        below = np.searchsorted(cells.cells.edges, many, side="left")
        above = np.searchsorted(cells.lower, many, side="right")
        size = len(cells.place)
        plain = (np.bincount(below, minlength=size) + np.bincount(above, minlength=size)) / 2
        np.testing.assert_array_equal(cells.count(many), plain)


def test_gap_between_scores_is_halved_without_a_scale() -> None:
    cells = score_cells(ScoreCounts.from_scores(np.array([-1.0, 2.0]), np.array([0, 1]), 2))
    np.testing.assert_array_equal(cells.count(np.array([-5.0, -1.0, 0.0, 1.9, 2.0, 7.0])), [3, 3])


def test_folds_take_the_samples_in_turn() -> None:
    counts = np.array([3.0, 0.0, 4.0, 0.5])
    folds = in_turn(counts, 3)
    np.testing.assert_allclose(folds.sum(axis=0), counts)
    np.testing.assert_allclose(folds[:, :3], [[1, 0, 2], [1, 0, 1], [1, 0, 1]])


@pytest.mark.parametrize("model", MODELS)
def test_models_find_known_ratios(model: str) -> None:
    """Of normal classes two apart, where the logarithm of the ratio is 2 x."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 20_000)
    cells = score_cells(ScoreCounts.from_scores(expit(rng.normal(2.0 * y - 1)), y, 2, exact=True))
    (ratio,) = MODELS[model](cells.place, cells.positives[None], cells.negatives[None])
    inside = np.abs(cells.place) < 1.5
    off, steps = ratio - 2 * cells.place, np.diff(ratio[inside])
    assert np.abs(off[inside]).max() < (0.7 if model == "isotonic" else 0.25)
    # half counts can let a small block step back
    assert steps.min() > (-0.7 if model == "isotonic" else 0)


def test_known_densities_give_the_likelihood_score() -> None:
    p, q, w = np.array([0.1, 0.2, 0.7]), np.array([0.6, 0.3, 0.1]), np.array([0.45, 0.3, 0.25])
    match = MomentMatch(np.log(p / q)[None], w, p[None], q[None], (500, 1e15, 1e15))
    value = match.solve()
    assert float(w @ ((p - q) / (value * p + (1 - value) * q))) == pytest.approx(0, abs=1e-9)
    information = float(((p - q) ** 2 / (value * p + (1 - value) * q)).sum())
    assert match.variance(value).target == pytest.approx(1 / (500 * information), rel=1e-9)


@pytest.mark.night
@pytest.mark.slow
def test_intervals_cover() -> None:
    """300 draws of labelled scores and targets; a true coverage of .95 gives fewer than 274 with chance 1 in 250."""
    hits = {"auto": 0, "bins": 0}
    own = 0
    for seed in range(300):
        rng = np.random.default_rng([seed, 7])
        y = np.repeat([0, 1], [200, 100])
        held = expit(scored(rng, 100, 200, 0.8))
        k = int(rng.binomial(400, 0.15))
        target = expit(scored(rng, k, 400 - k, 0.8))
        for density in hits:
            e = estimate_prevalence(target, calibration=(y, held), density=density)
            hits[density] += e.low <= 0.15 <= e.high
        own += e.count_low <= k <= e.count_high
    assert hits["auto"] >= 274
    assert hits["bins"] >= 270
    assert own >= 265


@pytest.mark.slow
def test_rare_events_are_not_biased_upwards() -> None:
    errors: dict[str, list[float]] = {"auto": [], "bins": []}
    for seed in range(25):
        rng = np.random.default_rng([seed, 1])
        y = np.repeat([0, 1], [10_000, 10_000])
        held = np.concatenate((rng.beta(1.5, 5, 10_000), rng.beta(4, 2, 10_000)))
        k = int(rng.binomial(30_000, 0.0023))
        target = np.concatenate((rng.beta(1.5, 5, 30_000 - k), rng.beta(4, 2, k)))
        for density, found in errors.items():
            found.append(
                estimate_prevalence(target, calibration=(y, held), density=density).value - 0.0023
            )
    root = {density: np.sqrt(np.mean(np.square(found))) for density, found in errors.items()}
    assert root["auto"] < 1.1 * root["bins"]
    assert abs(np.mean(errors["auto"])) < 3 * root["auto"] / 5 + 2e-4


# --- planning and labels -----------------------------------------------------------------------------------


def test_plan_reaches_the_half_width() -> None:
    e = estimate_prevalence(
        expit(scored(np.random.default_rng(2), 100, 400)), calibration=labelled(), density="bins"
    )
    v, sizes = e.variance, (e.n_target, e.n_positives, e.n_negatives)
    now = 1.959963984540054 * np.sqrt(v.total)
    plan = e.plan(0.9 * now)
    assert plan.now == pytest.approx(now)
    parts = np.array([v.target, v.positives, v.negatives])
    for place, more in enumerate((plan.target, plan.positives, plan.negatives)):
        factor = np.ones(3)
        if more is None:
            assert v.total - parts[place] >= (0.9 * now / 1.959963984540054) ** 2
            continue
        factor[place] = sizes[place] / (sizes[place] + more)
        assert 1.959963984540054 * np.sqrt(parts @ factor) <= 0.9 * now * (1 + 1e-9)
        factor[place] = sizes[place] / (sizes[place] + more - 1)
        assert 1.959963984540054 * np.sqrt(parts @ factor) > 0.9 * now * (1 - 1e-9)
    assert plan.target is not None
    done, far = e.plan(1.1 * now), e.plan(1e-4)
    assert (done.target, done.positives, done.negatives) == (0, 0, 0)
    assert (far.target, far.positives, far.negatives) == (None, None, None)
    with pytest.raises(ValueError, match="half_width must be positive"):
        e.plan(0)


def test_labels_by_posterior_and_by_count() -> None:
    target = expit(scored(np.random.default_rng(2), 100, 400))
    e = estimate_prevalence(target, calibration=labelled())
    by_count = e.labels(target, "count")
    assert (by_count.positive.sum(), by_count.tied) == (round(e.count), 0)
    assert target[by_count.positive].min() > target[~by_count.positive].max()
    np.testing.assert_array_equal(e.labels(target).positive, e.posterior(target) >= 0.5)
    ties = np.repeat([0.1, 0.5, 0.9], [300, 150, 50])
    block = e.labels(ties, "count")
    assert block.tied in (0, 50, 150, 300)
    assert block.positive.sum() in (0, 50, 200, 500)
    with pytest.raises(ValueError, match="rule must be"):
        e.labels(target, "top")


def test_efficiency_is_worth_of_unlabelled_samples() -> None:
    e = estimate_prevalence(
        expit(scored(np.random.default_rng(2), 100, 400)), calibration=labelled(), density="bins"
    )
    assert e.efficiency == pytest.approx(e.value * (1 - e.value) / e.variance.target)
    assert 0 < e.efficiency < e.n_target


def test_auto_takes_bins_where_scores_are_few_and_the_stack_where_they_are_many() -> None:
    """Eleven levels, as votes give them, are binned without loss; continuous scores are not."""
    rng = np.random.default_rng(3)
    y = np.repeat([0, 1], 1500)
    scores = np.clip(np.round(rng.normal(3 + 4 * y, 2)), 0, 10) / 10
    target = np.clip(np.round(rng.normal(3 + 4 * (rng.random(4000) < 0.2), 2)), 0, 10) / 10
    auto, bins = (
        estimate_prevalence(target, calibration=(y, scores), density=d) for d in ("auto", "bins")
    )
    assert (auto.value, auto.low, auto.high, auto.density) == (
        bins.value,
        bins.low,
        bins.high,
        "bins",
    )
    smooth = estimate_prevalence(
        target + rng.normal(0, 1e-3, 4000), calibration=(y, scores + rng.normal(0, 1e-3, 3000))
    )
    assert smooth.density == "auto"
    assert smooth.value == pytest.approx(auto.value, abs=0.02)
    few = estimate_prevalence(target, calibration=(y[1490:1510], scores[1490:1510]))
    assert few.density == "auto"  # too few labelled samples for a bin a level


@pytest.mark.parametrize("target", [None, "given"])
def test_evaluate_and_estimate_prevalence_agree_on_a_calibration_set(target: str | None) -> None:
    rng = np.random.default_rng(4)
    held_y, y, of_target = (
        random_labels(n, 2, rng, [1 - x, x]) for n, x in ((600, 0.5), (900, 0.1), (700, 0.05))
    )
    held, p, other = (random_scores(labels, 2.0, rng) for labels in (held_y, y, of_target))
    wanted = None if target is None else other
    inside = cmtrack.evaluate(y, y_prob=p, calibration=(held_y, held), target=wanted).prevalence
    outside = estimate_prevalence(p if wanted is None else wanted, calibration=(held_y, held))
    assert inside is not None
    assert (inside.value, inside.low, inside.high) == pytest.approx(
        (outside.value, outside.low, outside.high), rel=1e-9
    )


def test_random_folds_are_equal_in_size_and_a_function_of_the_counts() -> None:
    counts = np.array([3.0, 0.0, 7.0, 1.0, 12.0])
    folds = at_random(counts, 4)
    np.testing.assert_array_equal(folds.sum(axis=0), counts)
    assert folds.sum(axis=1).tolist() == [5, 6, 6, 6]
    np.testing.assert_array_equal(folds, at_random(counts, 4))
    weighted = at_random(counts / 2, 4)
    np.testing.assert_allclose(weighted.sum(axis=0), counts / 2)
    many = np.array([2e9, 1e9])
    np.testing.assert_allclose(at_random(many, 2), np.stack((many, many)) / 2, atol=1)


def test_random_folds_scatter_as_samples_do_and_folds_in_turn_do_not() -> None:
    counts = np.full(200, 10.0)
    scattered, alike = at_random(counts, 2)[0], in_turn(counts, 2)[0]
    assert np.ptp(alike) == 0
    assert 0.7 < np.var(scattered) / 2.5 < 1.3


def test_estimates_by_two_foldings_are_joined() -> None:
    y, held = labelled()
    cells = score_cells(ScoreCounts.from_scores(held, y, 2, exact=True))
    sizes = (500.0, cells.cells.m1, cells.cells.m0)
    target = cells.count(expit(scored(np.random.default_rng(3), 25, 475))) / 500
    matches = []
    for folding, folds in ((in_turn, 2), (at_random, 5)):
        fit = fit_ratio(cells, folding, folds)
        matches.append(
            MomentMatch(fit.left, target, fit.positives / sizes[1], fit.negatives / sizes[2], sizes)
        )
    both = TwoFoldings(*matches)
    steady, honest = (match.solve() for match in matches)
    assert steady > honest  # a rare share is pulled upwards by folds that are alike
    assert honest < both.solve() < steady
    gap, variance = steady - honest, matches[0].variance(steady, unseen=True).total
    assert both.weight == pytest.approx(variance / (variance + gap**2))
    low, high = both.interval("adjusted", 0.95)
    assert low == min(match.interval("adjusted", match.solve(), 0.95)[0] for match in matches)
    assert high == max(match.interval("adjusted", match.solve(), 0.95)[1] for match in matches)
    grid = np.linspace(low, high, 101)
    assert both.deviance(grid)[[0, -1]] == pytest.approx(3.841, abs=0.05)
    assert (both.deviance(np.linspace(honest, steady, 5)) == 0).all()
    w = both.weight
    parts = [match.variance(both.solve()).total for match in matches]
    assert both.variance(both.solve()).total == pytest.approx(
        w * parts[0] + (1 - w) * parts[1] + w * (1 - w) * gap**2
    )


def test_the_formula_of_the_calibrated_prevalence_names_the_density_that_is_used() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    p = np.clip(0.3 * y + 0.7 * rng.random(400), 0.001, 0.999)
    given = cmtrack.evaluate(y[:200], y_prob=p[:200], calibration=(y[200:], p[200:])).prevalence
    own = cmtrack.evaluate(y[:200], y_prob=p[:200]).prevalence
    assert given is not None
    assert own is not None
    assert (given.density, own.density) == ("auto", "bins")
    formula = lookup("prevalence/calibrated").formula
    assert (
        'With a calibration set: stacked density ratios, as in estimate_prevalence(density="auto").'
        in formula
    )
    assert "Without one: maximum likelihood over quantile bins" in formula


@pytest.mark.slow
def test_rare_shares_of_classes_that_overlap_are_covered() -> None:
    """Folds in turn alone contained the share in 81% of such draws."""
    rng, contained = np.random.default_rng(1), 0
    for _ in range(60):
        y = np.repeat([0, 1], 1000)
        k = rng.binomial(30_000, 0.01)
        target = np.concatenate((rng.normal(0.3, 1, k), rng.normal(0, 1, 30_000 - k)))
        e = estimate_prevalence(target, calibration=(y, rng.normal(0.3 * y)))
        contained += e.low <= 0.01 <= e.high
    assert contained >= 54
