"""How often intervals of segments cover the truth jointly, how often a search is correct or false, and its time.

Declared segments: rows are divided into S segments, the largest four times the smallest, with accuracies evenly spaced
between two values. Search: 3,000 rows and eight columns of four values drawn at random, so 480 segments of one or two
columns, and errors at a rate of .15 that does not depend on them. "clusters" are 600 groups of five rows that share
their columns and most of an error's chance. "costs" are exponential. "difference" is the difference of two models with
independent errors. In the planted segment, about 188 rows, the rate is .28. Interaction: one true difference of 50
standard errors, others 0. Pairs: paired differences of two models' accuracies by segment. Sentences: what a report says
about accuracy, recall and precision by one column. In the worse segment 65% of each class are correct, elsewhere 85%.

    python benchmarks/segments.py [--repeats 3000] [--reviews 1000] [--quick] [--only declared ...]
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.special import expit, ndtri, stdtrit

from cmtrack import evaluate
from cmtrack.segments import (
    Estimates,
    SegmentColumn,
    differences,
    disparity,
    qualitative_interaction,
    search_columns,
    simultaneous_level,
    worst_segments,
)

ROWS, COLUMNS, VALUES, RATE = 3000, 8, 4, 0.15
PERMUTATIONS = 199
PARTS = (
    "declared",
    "search",
    "planted",
    "interaction",
    "pairs",
    "sentences",
    "speed",
    "counting",
)


def share(hits: Any) -> str:
    """Format a share with its standard error."""
    p, n = float(np.mean(hits)), len(hits)
    return f"{p:.3f} ± {math.sqrt(max(p * (1 - p), 1 / n) / n):.3f}"


def mean(values: Any, digits: int = 3) -> str:
    """Format a mean with its standard error."""
    return f"{np.mean(values):.{digits}f} ± {np.std(values) / math.sqrt(len(values)):.{digits}f}"


def declared(segments: int, rows: int, ends: tuple[float, float], repeats: int) -> list[str]:
    """Return joint coverage of intervals, simultaneous and at 95% each, of differences to the rest, gap, ratio; its bias."""
    rng = np.random.default_rng([segments, rows, round(100 * ends[0])])
    parts = np.linspace(1, 4, segments)
    truth = rng.permutation(np.linspace(*ends, segments))
    parts = parts / parts.sum()
    overall = float(parts @ truth)
    gap = float(np.ptp(truth))
    rest = (overall - parts * truth) / (1 - parts)
    found: dict[str, list[float]] = {
        name: [] for name in ("own", "each", "rest", "gap", "ratio", "bias")
    }
    for _ in range(repeats):
        n = rng.multinomial(rows, parts)
        hits = rng.binomial(n, truth)
        one = Estimates.of_shares(hits, n)
        low, high = one.intervals("wilson")
        found["own"].append(bool(((low <= truth) & (truth <= high)).all()))
        down, up = one.arms(0.95)
        found["each"].append(
            bool(((one.values - down <= truth) & (truth <= one.values + up)).all())
        )
        d = differences(one, Estimates.of_shares(hits.sum() - hits, n.sum() - n))
        found["rest"].append(bool(((d.low <= truth - rest) & (truth - rest <= d.high)).all()))
        g = disparity(one)
        found["gap"].append(g.gap_low <= gap <= g.gap_high)
        found["ratio"].append(g.ratio_low <= truth.min() / truth.max() <= g.ratio_high)
        found["bias"].append(g.gap - gap)
    return [
        *(share(found[name]) for name in ("own", "each", "rest", "gap", "ratio")),
        mean(found["bias"]),
    ]


def sentences(
    segments: int, rows: int, positives: float, repeats: int, worse: bool = False
) -> list[str]:
    """Return shares of reports that call a segment worse, that do so if the gap includes 0, and with the gap alone."""
    rng = np.random.default_rng([segments, rows, worse])
    some, against, alone = [], [], []
    for _ in range(repeats):
        place, actual = rng.integers(0, segments, rows), rng.random(rows) < positives
        right = rng.random(rows) < np.where(worse & (place == 0), 0.65, 0.85)
        evaluation = evaluate(
            actual,
            np.where(right, actual, ~actual),
            labels=[False, True],
            positive=True,
            segments={"s": place},
        )
        table, called, shown = evaluation.segments["s"], set(), {}
        for name in ("multiclass/accuracy", "binary/recall", "binary/precision"):
            frame = table.to_frame(name).set_index("segment")
            apart = (frame["difference_high"] < 0) | (frame["difference_low"] > 0)
            called |= set(frame.index[frame["difference_high"] < 0])
            shown[name] = bool(apart.any()), table.disparity(name).gap_low > 0
        some.append("0" in called if worse else bool(called))
        against.append(any(told and not gap for told, gap in shown.values()))
        alone.append(segments == 2 and any(gap and not told for told, gap in shown.values()))
    return [share(some), share(against), share(alone)]


def columns_of(rng: np.random.Generator, clusters: bool = False) -> tuple[SegmentColumn, ...]:
    """Return eight columns of four values."""
    drawn = rng.integers(0, VALUES, (ROWS // 5 if clusters else ROWS, COLUMNS))
    drawn = drawn.repeat(5, axis=0) if clusters else drawn
    return search_columns(dict(enumerate(drawn.T)), ROWS)


def review(kind: str, rng: np.random.Generator) -> Any:
    """Return a search in which no segment differs."""
    columns = columns_of(rng, kind == "clusters")
    options: dict[str, Any] = {"n_permutations": PERMUTATIONS, "seed": int(rng.integers(1 << 31))}
    if kind == "costs":
        return worst_segments(columns, rng.exponential(size=ROWS), **options)
    if kind == "difference":
        first, second = (rng.random((2, ROWS)) < RATE).astype(float)
        return worst_segments(columns, first - second, **options)
    if kind == "clusters":
        together = rng.normal(0, 1.5, ROWS // 5).repeat(5)
        errors = rng.random(ROWS) < expit(together - 2.4)
        return worst_segments(columns, errors, clusters=np.arange(ROWS) // 5, **options)
    return worst_segments(columns, rng.random(ROWS) < RATE, **options)


def false_alarms(kind: str, reviews: int) -> list[str]:
    """Return the share of reviews with a found segment, also by unadjusted p-values of z; and the searched segments."""
    rng = np.random.default_rng([len(kind), 17])
    found, plain, searched = [], [], []
    for _ in range(reviews):
        one = review(kind, rng)
        found.append(bool(one.found()))
        plain.append(any(s.z > 1.645 for s in one.segments))
        searched.append(one.searched)
    return [share(found), share(plain), f"{np.mean(searched):.0f}"]


def planted(reviews: int) -> list[str]:
    """Return shares of reviews that find the planted segment, that rank it first, and that find others without its rows."""
    rng = np.random.default_rng(18)
    found, first, beside, cover = [], [], [], []
    for _ in range(reviews):
        columns = columns_of(rng)
        inside = (columns[0].codes == 0) & (columns[1].codes == 0)
        errors = rng.random(ROWS) < np.where(inside, 0.28, RATE)
        one = worst_segments(
            columns, errors, n_permutations=PERMUTATIONS, seed=int(rng.integers(1 << 31))
        )
        target = (("0", "0"), ("1", "0"))
        mine = next(s for s in one.segments if s.where == target)
        hit = mine.p_adjusted <= 0.05
        found.append(hit)
        first.append(hit and one.segments[0].where == target)
        apart = {(("0", v)) for v in "123"} | {(("1", v)) for v in "123"}
        beside.append(any(set(s.where) & apart for s in one.found()))
        cover.append(mine.low <= 0.28 <= mine.high)
    return [share(found), share(first), share(beside), share(cover)]


def interaction(segments: int, repeats: int) -> list[str]:
    """Return shares of p-values up to .05 at the least favourable null, and if all differences are equal."""
    rng = np.random.default_rng([segments, 19])
    ones = np.ones(segments)
    least = rng.normal(size=(repeats, segments)) + np.where(np.arange(segments) == 0, 50, 0)
    equal = rng.normal(size=(repeats, segments)) + 2
    return [
        share([qualitative_interaction(d, ones).pvalue <= 0.05 for d in part])
        for part in (least, equal)
    ]


def two_models(segments: int, rows: int, apart: float, repeats: int) -> list[str]:
    """Return joint coverage of paired differences by segment, by Student's and the normal quantile, and the sentence.

    In a tenth of the rows exactly one model is correct. The first is better by .04 in all segments except the last one,
    where it differs by ``apart``.
    """
    rng = np.random.default_rng([segments, rows, round(1000 * abs(apart)), 3])
    parts = np.linspace(4, 1, segments)
    n = np.round(rows * parts / parts.sum()).astype(int)
    truth = np.full(segments, 0.04)
    truth[-1] = apart
    chances = np.stack([(0.1 + truth) / 2, (0.1 - truth) / 2, np.full(segments, 0.9)], axis=1)
    chances[-1, :2] += max(0.0, abs(apart) - 0.1) / 2
    chances[-1, 2] = 1 - chances[-1, :2].sum()
    counts = np.stack([rng.multinomial(n[s], chances[s], repeats) for s in range(segments)], axis=1)
    gap = (counts[..., 0] - counts[..., 1]) / n
    values = np.stack([1 - gap, -1 - gap, -gap], axis=-1)
    second, fourth = ((counts * values**power).sum(axis=-1) for power in (2, 4))
    error = np.sqrt(second) / n
    with np.errstate(all="ignore"):
        degrees = np.where(fourth > 0, np.maximum(second**2 / fourth - 1, 1), math.inf)
    level = 0.5 + simultaneous_level(segments) / 2
    covers, above = [], gap @ n > 0
    student = np.where(np.isfinite(degrees), stdtrit(np.minimum(degrees, 1e9), level), 0)
    quantiles = {"t": student, "z": ndtri(level)}
    unknown = (error == 0) & (gap != 0)
    said = {}
    test = np.array(
        [qualitative_interaction(*one).pvalue <= 0.05 for one in zip(gap, error, strict=True)]
    )
    for name, quantile in quantiles.items():
        reach = quantile * error
        covers.append(((np.abs(gap - truth) <= reach) | unknown | (error == 0)).all(axis=1))
        beyond = ~unknown & np.where(above[:, None], gap + reach < 0, gap - reach > 0)
        said[name] = beyond.any(axis=1) & test
    return [share(one) for one in (*covers, said["t"])]


def speed() -> Iterator[list[str]]:
    """Processor seconds of searches of 100,000 rows, eight columns of five values, depth 2, 999 permutations."""
    rng = np.random.default_rng(21)
    n = 100_000
    columns = search_columns(dict(enumerate(rng.integers(0, 5, (8, n)))), n)
    errors = rng.random(n) < RATE
    searches: dict[str, Callable[[], Any]] = {
        "errors": lambda: worst_segments(columns, errors),
        "costs": lambda: worst_segments(columns, rng.exponential(size=n)),
    }
    for name, search in searches.items():
        start = time.process_time()
        searched = search().searched
        yield [name, str(searched), f"{time.process_time() - start:.1f}"]


def table(*heads: str) -> None:
    """Print the head of a table."""
    print(f"\n| {' | '.join(heads)} |\n|{'---|' * len(heads)}", flush=True)


def row(*cells: str) -> None:
    """Print a row of it."""
    print(f"| {' | '.join(cells)} |", flush=True)


def counting(repeats: int) -> Iterator[list[str]]:
    """Processor seconds of ``evaluate`` on 10^6 rows of 11 classes without segments and with, in turns; the least."""
    rng = np.random.default_rng(1)
    rows, classes = 10**6, 11
    y = rng.integers(0, classes, rows)
    p = rng.random((rows, classes))
    p[np.arange(rows), y] += 1
    p /= p.sum(axis=1, keepdims=True)
    columns = {f"{size} segments": {"x": rng.integers(0, size, rows)} for size in (10, 100, 1000)}
    seconds: dict[str, list[float]] = {name: [] for name in ("none", *columns)}
    for _ in range(repeats):
        for name in seconds:
            begin = time.process_time()
            evaluate(y, y_prob=p, segments=columns.get(name))
            seconds[name].append(time.process_time() - begin)
    least = {name: min(found) for name, found in seconds.items()}
    for name, one in least.items():
        yield [name, f"{one:.2f}", f"{one / least['none']:.2f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3000)
    parser.add_argument("--reviews", type=int, default=1000)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", nargs="*", default=PARTS)
    options = parser.parse_args()
    repeats, reviews = (100, 20) if options.quick else (options.repeats, options.reviews)
    if "declared" in options.only:
        heads = (
            "segments",
            "rows",
            "accuracies",
            "intervals",
            "each at 95%",
            "to the rest",
            "gap",
            "ratio",
        )
        table(*heads, "gap too large by")
        for ends in ((0.8, 0.8), (0.6, 0.9), (0.7, 0.95)):
            for segments, rows in ((8, 800), (8, 4000), (30, 2000), (30, 6000)):
                cells = declared(segments, rows, ends, repeats)
                row(str(segments), str(rows), f"{ends[0]:.2f} to {ends[1]:.2f}", *cells)
    if "search" in options.only:
        table("losses", "some segment found", "unadjusted", "searched")
        for kind in ("errors", "costs", "clusters", "difference"):
            row(kind, *false_alarms(kind, reviews))
    if "planted" in options.only:
        table("found", "the first and found", "one outside found", "interval holds .28")
        row(*planted(reviews))
    if "interaction" in options.only:
        table("segments", "least favourable null", "all differences equal")
        for segments in (2, 5, 10):
            row(str(segments), *interaction(segments, 2 * repeats))
    if "pairs" in options.only:
        table("segments", "rows", "last segment", "cover", "by the normal quantile", "sentence")
        for segments, rows in ((4, 400), (4, 4000), (12, 1200), (12, 12000)):
            for apart in (0.04, 0.0, -0.12):
                row(
                    str(segments),
                    str(rows),
                    f"{apart:+.2f}",
                    *two_models(segments, rows, apart, repeats),
                )
    if "sentences" in options.only:
        table(
            "segments",
            "rows",
            "positive",
            "worse one",
            "a segment is worse",
            "though gap holds 0",
            "gap of 2 alone",
        )
        for segments, rows, positives in (
            (2, 60, 0.3),
            (2, 1000, 0.3),
            (4, 200, 0.2),
            (4, 2000, 0.3),
            (12, 3000, 0.3),
        ):
            for worse in (False, True):
                cells = sentences(segments, rows, positives, repeats // 5, worse)
                row(str(segments), str(rows), f"{positives:.1f}", "yes" if worse else "no", *cells)
    if "speed" in options.only:
        table("losses", "searched", "seconds")
        for cells in speed():
            row(*cells)
    if "counting" in options.only:
        table("segments of 10^6 rows, 11 classes", "processor seconds", "by those without segments")
        for cells in counting(2 if options.quick else 9):
            row(*cells)


if __name__ == "__main__":
    main()
