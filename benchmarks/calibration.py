"""Measure how often the test of calibration rejects, and the calibration error, when the truth is known.

Scores: "beta" is Beta(2, 2), "rare" has the logit N(-4, 1.5^2), "votes" is the share of nine votes, with .05
and .95 instead of 0 and 1. Labels are drawn with the scores as probabilities ("calibrated"), with the logit over 1.4
("over-confident"), or with the logit plus .25 ("shifted").

The last table has calibrated scores in other settings. "clusters": five rows each, whose labels have the correlation
.4: each label uses the cluster's uniform number with probability √.4, else its own number. "sampling weights": gamma of
shape 2. "pooled": 20,000 scores, which the test pools by cell. "classes": four classes with probabilities from
Dirichlet(.5, 1, 2, 4), each tested in 32 blocks, and all of them by Holm's smallest p.

A separate table has rare labels and sharp scores, which a test by signs rejects too often. Its settings are independent
rows ("none"), independent rows with meaningless `groups=`, sampling weights that are drawn regardless of the rows or by
label ("case-control": all positives, and one of several negatives), labels that are correlated in groups, and the
power.

    python benchmarks/calibration.py [--repeats 1000] [--quick] [--only scores|bands|settings|sparse]
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit

from cmtrack import evaluate
from cmtrack.statistics.inputs import FloatArray

SIZES = (200, 500, 2000)
WRONG = {"over-confident": (1 / 1.4, 0.0), "shifted": (1.0, 0.25)}


def scores_of(kind: str, rng: np.random.Generator, n: int) -> FloatArray:
    """Scores of n rows."""
    if kind == "rare":
        return np.asarray(expit(rng.normal(-4, 1.5, n)))
    drawn = rng.beta(2, 2, n)
    if kind == "votes":
        return np.clip(rng.binomial(9, drawn) / 9, 0.05, 0.95)
    return drawn


def with_error(values: Sequence[float], digits: int = 3) -> str:
    """A mean with its standard error."""
    return f"{np.mean(values):.{digits}f} ± {np.std(values) / math.sqrt(len(values)):.{digits}f}"


def row(kind: str, n: int, repeats: int, slope: float = 1.0, shift: float = 0.0) -> list[str]:
    """Return shares of p-values up to .05 and of each part, mean squared error, coverage of slope and error intervals.

    The error's interval is compared with the truth of calibrated scores, 0. For other scores it is not checked.
    """
    rng = np.random.default_rng([n, len(kind), round(100 * slope), round(100 * shift)])
    found: dict[str, list[float]] = {
        name: [] for name in ("combined", "kuiper", "cox", "squared", "slope", "error")
    }
    for _ in range(repeats):
        s = scores_of(kind, rng, n)
        y = (rng.random(n) < expit(slope * logit(s) + shift)).astype(int)
        evaluation = evaluate(y, y_prob=s, labels=[0, 1], sections=["calibration"])
        curve, intervals = evaluation.calibration, evaluation.intervals
        assert curve is not None
        if curve.test is not None:
            for name, p in zip(
                ("combined", "kuiper", "cox"),
                (curve.test.pvalue, curve.test.kuiper_pvalue, curve.test.cox_pvalue),
                strict=True,
            ):
                found[name].append(p <= 0.05)
        found["squared"].append(curve.table.error.squared)
        if "calibration/slope" in intervals:
            low, high = intervals["calibration/slope"]
            found["slope"].append(low <= slope <= high)
        found["error"].append(intervals["calibration/error"][0] == 0)
    cells = [with_error(found[name]) for name in ("combined", "kuiper", "cox")]
    right = slope == 1 and shift == 0
    return [
        *cells,
        with_error(found["squared"], 5),
        with_error(found["slope"]),
        with_error(found["error"]) if right else "–",
    ]


def left(n: int, repeats: int, slope: float) -> str:
    """Return the share of the curves that leave the consistency band somewhere."""
    rng = np.random.default_rng([n, round(100 * slope)])
    found = []
    for _ in range(repeats):
        s = scores_of("beta", rng, n)
        curve = evaluate(
            (rng.random(n) < expit(slope * logit(s))).astype(int), y_prob=s, labels=[0, 1]
        ).calibration
        assert curve is not None
        low, high = curve.band()
        found.append(
            bool(((curve.recalibrated < low - 1e-9) | (curve.recalibrated > high + 1e-9)).any())
        )
    return with_error(found)


def clustered(n: int, rng: np.random.Generator) -> list[float]:
    """Return rejections with known and with unknown clusters: n clusters of five rows."""
    s, number = rng.beta(2, 2, 5 * n), np.repeat(np.arange(n), 5)
    own, common = rng.random(5 * n), rng.random(n)[number]
    y = (np.where(rng.random(5 * n) < math.sqrt(0.4), common, own) < s).astype(int)
    return [pvalue(y, s, groups=groups) <= 0.05 for groups in (number, None)]


def weighted(n: int, rng: np.random.Generator) -> list[float]:
    """Rejections with sampling weights."""
    s = rng.beta(2, 2, n)
    return [
        pvalue(rng.random(n) < s, s, sample_weight=rng.gamma(2, 0.5, n), weights_are="sampling")
        <= 0.05
    ]


def pooled(kind: str, n: int, rng: np.random.Generator) -> list[float]:
    """Return rejections if scores are pooled by cell."""
    s = scores_of(kind, rng, n)
    return [pvalue(rng.random(n) < s, s) <= 0.05]


def classes(n: int, slope: float, rng: np.random.Generator) -> list[float]:
    """Return the share of the classes whose test rejects, and whether the smallest p by Holm does."""
    p = rng.dirichlet((0.5, 1, 2, 4), n)
    true = p**slope / (p**slope).sum(axis=1, keepdims=True)
    y = np.minimum((rng.random((n, 1)) > np.cumsum(true, axis=1)).sum(axis=1), 3)
    metrics = evaluate(y, y_prob=p, labels=range(4), sections=["class"]).metrics
    found = np.array([metrics[f"class/{k}/calibration_pvalue"] for k in range(4)])
    found = found[np.isfinite(found)]
    return [float((found <= 0.05).mean()), bool(found.min() * len(found) <= 0.05)]


def pvalue(y: npt.ArrayLike, s: FloatArray, **options: Any) -> float:
    """Return the p-value of calibration of two classes."""
    made = evaluate(
        np.asarray(y, dtype=int), y_prob=s, labels=[0, 1], sections=["calibration"], **options
    )
    return made.metrics["calibration/pvalue"]


SPARSE: dict[str, tuple[float, float, int]] = {
    "N(−5, 1.5²)": (-5.0, 1.5, 500), "N(0, 12²)": (0.0, 12.0, 100), "N(0, 8²)": (0.0, 8.0, 200),
    "N(0, 8²) ": (0.0, 8.0, 1000), "N(0, 6²)": (0.0, 6.0, 60),
}  # fmt: skip
"""Mean and standard deviation of the scores' logits, and rows."""


def correlated(
    s: FloatArray, correlation: float, rng: np.random.Generator, size: int = 5
) -> npt.NDArray[np.bool_]:
    """Labels of these probabilities, correlated in groups of five."""
    n = len(s)
    common = rng.random(-(-n // size))[np.arange(n) // size]
    return np.asarray(np.where(rng.random(n) < math.sqrt(correlation), common, rng.random(n)) < s)


def of_rows(
    scores: Callable[[np.random.Generator], FloatArray],
    kind: str,
    rng: np.random.Generator,
    correlation: float = 0.0,
    slope: float = 1.0,
) -> float:
    """Return the p-value with nothing, groups of five, or random sampling weights in addition to the rows."""
    s = scores(rng)
    options: dict[str, Any] = {}
    if kind in ("groups", "both"):
        options["groups"] = np.arange(len(s)) // 5
    if kind in ("weights", "both"):
        options |= {"sample_weight": rng.gamma(2, 0.5, len(s)), "weights_are": "sampling"}
    return pvalue(correlated(np.asarray(expit(slope * logit(s))), correlation, rng), s, **options)


def case_control(
    n: int, weight: float, rng: np.random.Generator, slope: float = 1.0, centre: float = -3.0
) -> float:
    """Return the p-value with all positives of n rows, and one of several negatives, weighted accordingly."""
    s = np.asarray(expit(rng.normal(centre, 1.5, n)))
    y = rng.random(n) < expit(slope * logit(s))
    taken = y | (rng.random(n) < 1 / weight)
    return pvalue(
        y[taken], s[taken], sample_weight=np.where(y, 1.0, weight)[taken], weights_are="sampling"
    )


def sparse(repeats: int, quick: bool) -> None:
    """Print the table of sparse labels and sharp scores."""
    print("| scores' logits | rows | labels | beside them | rejected |")
    print("|---" * 5 + "|")
    lines: list[tuple[str, int, str, str, Callable[[np.random.Generator], float]]] = []

    def normal(mean: float, sd: float, n: int) -> Callable[[np.random.Generator], FloatArray]:
        return lambda rng: np.asarray(expit(rng.normal(mean, sd, n)))

    def beta(n: int) -> Callable[[np.random.Generator], FloatArray]:
        return lambda rng: rng.beta(2, 2, n)

    lines += [
        (name, n, "independent", kind, partial(of_rows, normal(mean, sd, n), kind))
        for name, (mean, sd, n) in SPARSE.items()
        for kind in ("none", "groups", "weights", "both")
    ]
    lines += [
        (
            "N(−3, 1.5²)",
            n,
            "case-control",
            f"weights 1 and {weight}",
            partial(case_control, n, weight),
        )
        for n, weight in ((250, 50), (1000, 50), (1000, 5))
    ]
    lines += [
        (name, n, "correlated .4", "groups", partial(of_rows, scores, "groups", correlation=0.4))
        for name, n, scores in (
            ("N(−5, 1.5²)", 500, normal(-5, 1.5, 500)),
            ("Beta(2, 2)", 300, beta(300)),
        )
    ]
    lines += [
        (
            "Beta(2, 2)",
            500,
            "correlated .4, slope 1/1.4",
            "groups",
            partial(of_rows, beta(500), "groups", correlation=0.4, slope=1 / 1.4),
        ),
        (
            "Beta(2, 2)",
            500,
            "slope 1/1.4",
            "weights",
            partial(of_rows, beta(500), "weights", slope=1 / 1.4),
        ),
        (
            "N(−5, 1.5²)",
            200,
            "slope 1/1.4",
            "groups",
            partial(of_rows, normal(-5, 1.5, 200), "groups", slope=1 / 1.4),
        ),
        (
            "N(−3, 1.5²)",
            200,
            "case-control, slope 1/1.4",
            "weights 1 and 20",
            partial(case_control, 200, 20, slope=1 / 1.4),
        ),
    ]
    for name, n, labels, kind, draw in lines:
        if quick and n > 500:
            continue
        rng = np.random.default_rng([n, len(name), len(labels), len(kind)])
        found = [p <= 0.05 for p in (draw(rng) for _ in range(repeats)) if not math.isnan(p)]
        print(f"| {name.strip()} | {n} | {labels} | {kind} | {with_error(found)} |", flush=True)


def settings(repeats: int, quick: bool) -> None:
    """Print the table of other settings."""
    print("| setting | rows | rejected | beside it |")
    print("|---" * 4 + "|")
    made: list[tuple[str, int, Callable[[np.random.Generator], list[float]], str]] = [
        *(
            (f"{n} clusters of 5", 5 * n, partial(clustered, n), "clusters not known: ")
            for n in (60, 200)
        ),
        *(("sampling weights", n, partial(weighted, n), "") for n in SIZES),
        *(
            (f"pooled, {kind}", 20_000, partial(pooled, kind, 20_000), "")
            for kind in ("beta", "rare")
        ),
        *(("classes", n, partial(classes, n, 1.0), "least p by Holm: ") for n in SIZES),
        (
            "classes, over-confident by 1.4",
            500,
            partial(classes, 500, 1 / 1.4),
            "least p by Holm: ",
        ),
    ]
    for name, n, draw, beside in made:
        if quick and n > 1000:
            continue
        rng = np.random.default_rng([n, len(name)])
        shares = np.array([draw(rng) for _ in range(repeats)], dtype=float).T
        words = beside + with_error(shares[1]) if beside else "–"
        print(f"| {name} | {n} | {with_error(shares[0])} | {words} |", flush=True)


def main() -> None:
    """Print Markdown tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=1000)
    parser.add_argument("--quick", action="store_true", help="100 repeats of the two smaller sizes")
    parser.add_argument("--only", choices=("scores", "bands", "settings", "sparse"))
    options = parser.parse_args()
    repeats, sizes = (100, SIZES[:2]) if options.quick else (options.repeats, SIZES)
    if options.only in (None, "scores"):
        table(repeats, sizes)
    if options.only in (None, "bands"):
        print("| rows | calibrated curves outside the band | over-confident ones |")
        print("|---" * 3 + "|")
        for n in sizes[:1] if options.quick else (200, 1000):
            print(
                f"| {n} | {left(n, repeats * 3 // 2, 1.0)} | {left(n, repeats // 5, 1 / 1.4)} |",
                flush=True,
            )
    if options.only in (None, "settings"):
        settings(repeats, options.quick)
    if options.only in (None, "sparse"):
        sparse(repeats, options.quick)


def table(repeats: int, sizes: Sequence[int]) -> None:
    """Print the table of scores, labels and rows."""
    print(
        "| scores | labels | rows | combined | Kuiper | Cox | squared error | slope covered | error covered |"
    )
    print("|---" * 9 + "|")
    for kind in ("beta", "rare", "votes"):
        for n in sizes:
            print(
                f"| {kind} | calibrated | {n} | " + " | ".join(row(kind, n, repeats)) + " |",
                flush=True,
            )
    for labels, (slope, shift) in WRONG.items():
        for n in sizes:
            cells = row("beta", n, repeats // 4, slope, shift)
            print(f"| beta | {labels} | {n} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
