"""How often the 95% intervals of one evaluation cover the truth at the edges.

Near-perfect models, few clusters, survey weights, the smallest of many correlations, d_b, averages of areas, classes
with single rows.
Rows are drawn with replacement from a fixed population of 100,000 rows, so the truth is exact. In the clustered
settings, a person has ten rows, which are mostly all correct or all wrong. In the weighted settings, a tenth of the
drawn rows represent 20 rows of the population each, the others one. "heavy" has its errors among the former, "light"
among the others. The weights are whole floats, or scaled by 1.0001. In the normal settings, the scores are normal in
both classes and d_b is known: the distance of the means, or 1.857 for N(0, .5^2) and N(1.3, 2^2).

    python benchmarks/edges.py [--repeats 400] [--quick] [--only perfect2_150 ...] [--about weights]
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from cmtrack import Evaluation, Grouping, evaluate

METRICS = (
    "multiclass/accuracy",
    "multiclass/balanced_accuracy",
    "multiclass/precision_macro",
    "multiclass/f1_macro",
    "multiclass/cohen_kappa",
    "multiclass/cohen_kappa_quadratic",
    "multiclass/matthews_corrcoef",
    "class/1/recall",
    "class/1/f1",
    "binary/recall",
    "binary/f1",
    "binary/balanced_accuracy",
    "binary/informedness",
    "binary/markedness",
    "binary/matthews_corrcoef",
    "binary/roc_auc",
    "spcc/binary",
    "prevalence/bias",
)
SEVERAL = ("spcc/ovr_min", "spcc/ovo_min", "spcc/ovr_fisher", "spcc/ovo_fisher")
SHARES = (
    "multiclass/accuracy",
    "class/1/recall",
    "class/1/precision",
    "binary/specificity",
    "binary/f1",
    "multiclass/matthews_corrcoef",
)
AREAS = (
    "multiclass/roc_auc_ovr_macro",
    "multiclass/roc_auc_ovr_weighted",
    "multiclass/roc_auc_ovo_macro",
)
FEW = (
    "probability/log_loss",
    "probability/brier",
    "probability/spherical",
    "probability/log_skill",
    "probability/brier_skill",
    "binary/average_precision",
    "spcc/binary",
    "spcc/d_a",
    "spcc/d_e",
    "calibration/intercept",
    "calibration/slope",
)
SIZE = 100_000


class Setting(NamedTuple):
    """Shares of the classes, strength of the signal, persons or rows drawn, rows of a person, and the subject."""

    shares: tuple[float, ...]
    signal: float
    draws: int
    rows: int = 1
    metrics: tuple[str, ...] = METRICS


class Survey(NamedTuple):
    """Shares of errors in the fully drawn stratum and in the thinned one, the weights' scale, rows drawn."""

    errors: tuple[float, float]
    scale: float
    draws: int
    metrics: tuple[str, ...] = SHARES


class Normal(NamedTuple):
    """Mean and standard deviation of the positives' and of the negatives' scores, the true d_b, rows drawn."""

    mean: float
    spreads: tuple[float, float]
    truth: float
    draws: int
    metrics: tuple[str, ...] = ("spcc/d_b",)


class Sure(NamedTuple):
    """Share of confident errors, and rows drawn; without a share, an ordinary model with area .85."""

    wrong: float
    draws: int
    metrics: tuple[str, ...] = FEW


EIGHT = (0.3, 0.2, 0.15, 0.12, 0.1, 0.07, 0.04, 0.02)
SETTINGS = {
    "middle_400": Setting((0.4, 0.3, 0.2, 0.1), 1.5, 400),
    "perfect8_150": Setting(EIGHT, 4.9, 150),
    "perfect8_400": Setting(EIGHT, 4.9, 400),
    "perfect2_150": Setting((0.5, 0.5), 3.64, 150),
    "perfect2_2000": Setting((0.5, 0.5), 3.64, 2000),
    "rare2_2000": Setting((0.99, 0.01), 3.0, 2000),
    "persons_15": Setting((0.4, 0.3, 0.2, 0.1), 1.5, 15, 10),
    "persons_40": Setting((0.4, 0.3, 0.2, 0.1), 1.5, 40, 10),
}
WEIGHTED = {
    f"{place}{'' if scale == 1 else '_scaled'}_{n}": Survey(errors, scale, n)
    for place, errors in {"heavy": (0.01, 0.4), "light": (0.15, 0.001), "both": (0.2, 0.2)}.items()
    for scale in (1.0, 1.0001)
    for n in (400, 2000)
}
LEAST = {
    f"{name}_{n}": Setting(shares, signal, n, metrics=SEVERAL)
    for name, (shares, signal) in {
        "chance4": ((0.25,) * 4, 0.05),
        "middle4": ((0.4, 0.3, 0.2, 0.1), 1.5),
        "skew8": ((0.3, 0.2, 0.15, 0.12, 0.1, 0.08, 0.04, 0.01), 1.5),
    }.items()
    for n in (150, 400, 2000)
} | {"single5_150": Setting((0.5, 0.3, 0.19, 0.005, 0.005), 1.5, 150, metrics=SEVERAL)}
NORMAL = {
    f"{name}_{n}": Normal(mean, spreads, truth, n)
    for name, mean, spreads, truth in (
        ("d_0", 0.0, (1.0, 1.0), 0.0),
        ("d_0.5", 0.5, (1.0, 1.0), 0.5),
        ("d_1", 1.0, (1.0, 1.0), 1.0),
        ("d_2", 2.0, (1.0, 1.0), 2.0),
        ("d_3.5", 3.5, (1.0, 1.0), 3.5),
        ("unequal", 1.3, (2.0, 0.5), 1.8569223),
    )
    for n in (150, 400, 2000)
}
AVERAGED = {
    f"areas{len(shares)}_{n}": Setting(shares, 1.5, n, metrics=AREAS)
    for shares in ((0.5, 0.3, 0.2), (0.4, 0.3, 0.2, 0.1), (0.3, 0.25, 0.2, 0.15, 0.06, 0.04))
    for n in (300, 2000)
}
SURE = {f"sure_{n}": Sure(0.006, n) for n in (60, 150, 400, 2000)} | {
    "ordinary_300": Sure(0.0, 300)
}
ABOUT: dict[str, Mapping[str, Setting | Survey | Normal | Sure]] = {
    "edges": SETTINGS,
    "weights": WEIGHTED,
    "least": LEAST,
    "d_b": NORMAL,
    "areas": AVERAGED,
    "sure": SURE,
}
EVERY = {name: setting for part in ABOUT.values() for name, setting in part.items()}
QUICK = (
    "perfect2_150",
    "heavy_400",
    "light_400",
    "chance4_150",
    "single5_150",
    "d_0_150",
    "d_2_150",
)


def population(setting: Setting) -> tuple[np.ndarray, np.ndarray]:
    """Return labels (n,) and probabilities (n, K); the rows of a person are adjacent."""
    rng = np.random.default_rng(7)
    size, persons = len(setting.shares), SIZE // setting.rows
    usual = rng.choice(size, persons, p=setting.shares).repeat(setting.rows)
    other = rng.choice(size, SIZE, p=setting.shares)
    y = np.where(rng.random(SIZE) < (0.7 if setting.rows > 1 else 0.0), usual, other)
    together = rng.normal(size=(persons, size)).repeat(setting.rows, axis=0)
    weight = math.sqrt(0.7) if setting.rows > 1 else 0.0
    logits = (
        weight * together
        + math.sqrt(1 - weight**2) * rng.normal(size=(SIZE, size))
        + np.log(setting.shares)
    )
    logits[np.arange(SIZE), y] += setting.signal
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    return y, odds / odds.sum(axis=1, keepdims=True)


def surveys(setting: Survey, repeats: int) -> Iterator[Evaluation]:
    """Yield the evaluation of the population, then evaluations of weighted samples from it."""
    rng = np.random.default_rng(7)
    # a tenth of the rows drawn are of the thinned stratum
    weight = np.where(rng.random(SIZE) < 20 / 29, 20.0, 1.0)
    y = rng.choice(2, SIZE)
    predicted = np.where(
        rng.random(SIZE) < np.where(weight > 1, setting.errors[1], setting.errors[0]), 1 - y, y
    )
    yield evaluate(y, predicted)
    rng = np.random.default_rng(setting.draws)
    for _ in range(repeats):
        rows = rng.choice(SIZE, setting.draws, p=1 / weight / (1 / weight).sum())
        yield evaluate(
            y[rows], predicted[rows], labels=range(2), sample_weight=setting.scale * weight[rows]
        )


def normal(setting: Normal, repeats: int) -> Iterator[Evaluation]:
    """The evaluations of samples of normal scores."""
    rng = np.random.default_rng(setting.draws)
    for _ in range(repeats):
        y = rng.integers(0, 2, setting.draws)
        score = rng.normal(setting.mean * y, np.where(y == 1, *setting.spreads))
        yield evaluate(y, y_prob=expit(score), labels=range(2))


def samples(setting: Setting, repeats: int) -> Iterator[Evaluation]:
    """Yield the evaluation of the population, then evaluations of samples from it."""
    y, p = population(setting)
    size = len(setting.shares)
    half = {"low": list(range((size + 1) // 2)), "high": list(range((size + 1) // 2, size))}
    grouping = Grouping(half, "relaxed", name="halves") if size > 2 else None
    options = {"labels": range(size), "grouping": grouping, "positive": "high" if grouping else 1}
    yield evaluate(y, y_prob=p, **options)
    rng = np.random.default_rng(setting.draws)
    for _ in range(repeats):
        drawn = rng.integers(0, SIZE // setting.rows, setting.draws)
        rows = (drawn[:, None] * setting.rows + np.arange(setting.rows)).ravel()
        groups = np.arange(setting.draws).repeat(setting.rows) if setting.rows > 1 else None
        yield evaluate(y[rows], y_prob=p[rows], groups=groups, **options)


def sure(setting: Sure, repeats: int) -> Iterator[Evaluation]:
    """Yield the evaluation of the population of two classes, then evaluations of samples from it."""
    rng = np.random.default_rng(1)
    y = (rng.random(4 * SIZE) < 0.4).astype(int)
    if setting.wrong:
        logit = (
            np.where(rng.random(len(y)) < setting.wrong, -1, 1)
            * (2 * y - 1)
            * rng.gamma(3, 1.5, len(y))
        )
    else:
        logit = 1.47 * rng.normal(1.47 * y - 0.735, 1) - 0.4
    options = {"labels": range(2), "sections": ["probability", "binary", "spcc", "calibration"]}
    yield evaluate(y, y_prob=expit(logit), **options)
    rng = np.random.default_rng(setting.draws)
    for _ in range(repeats):
        rows = rng.integers(0, len(y), setting.draws)
        yield evaluate(y[rows], y_prob=expit(logit[rows]), **options)


def drawn_from(
    setting: Setting | Survey | Normal | Sure, repeats: int
) -> tuple[Mapping[str, float], list[Evaluation]]:
    """The true values, and the evaluations of samples."""
    if isinstance(setting, Normal):
        return {"spcc/d_b": setting.truth}, list(normal(setting, repeats))
    made = (
        sure if isinstance(setting, Sure) else surveys if isinstance(setting, Survey) else samples
    )
    truth, *drawn = made(setting, repeats)
    return truth.metrics, drawn


def coverage(metric: str, truth: float, drawn: list[Evaluation]) -> str:
    """Return the share of intervals that cover the truth, its standard error, and the share without an interval."""
    known = [e for e in drawn if math.isfinite(e.metrics.get(metric, math.nan))]
    ends = [e.intervals[metric] for e in known if metric in e.intervals]
    if not known:
        return ""
    covered = float(np.mean([low <= truth <= high for low, high in ends])) if ends else 0.0
    error = math.sqrt(max(covered * (1 - covered), 0.95 * 0.05) / max(len(ends), 1))
    none = 1 - len(ends) / len(known)
    return f"{covered:.3f} ± {error:.3f}" + (f" ({none:.2f} none)" if none > 0 else "")


def main() -> None:
    """Print a Markdown table for each subject: coverage, and in brackets the share of samples without an interval."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=400)
    parser.add_argument("--quick", action="store_true", help="60 samples of a few settings")
    parser.add_argument("--about", nargs="*", choices=ABOUT, default=list(ABOUT))
    parser.add_argument("--only", nargs="*", choices=EVERY)
    options = parser.parse_args()
    repeats = 60 if options.quick else options.repeats
    only = options.only or (QUICK if options.quick else EVERY)
    for subject in options.about:
        settings = {name: setting for name, setting in ABOUT[subject].items() if name in only}
        table: dict[str, dict[str, str]] = {}
        for name, setting in settings.items():
            truth, drawn = drawn_from(setting, repeats)
            for metric in setting.metrics:
                if metric in truth:
                    table.setdefault(metric, {})[name] = coverage(metric, truth[metric], drawn)
            warned = np.mean([any("approximate" in text for text in e.warnings) for e in drawn])
            table.setdefault("warned", {})[name] = f"{warned:.2f}"
            last = setting.metrics[-1]
            mean = np.nanmean([e.metrics[last] for e in drawn])
            print(
                f"{name}: {repeats} samples; {last} is {truth[last]:.4f}, its mean {mean:.4f}",
                flush=True,
            )
        if settings:
            print(
                "| metric | " + " | ".join(settings) + " |\n" + "|---" * (len(settings) + 1) + "|"
            )
        for metric in sorted(table, key=lambda name: name == "warned"):
            print(
                f"| {metric} | "
                + " | ".join(table[metric].get(name, "") for name in settings)
                + " |"
            )


if __name__ == "__main__":
    main()
