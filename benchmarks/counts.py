"""Coverage of counts by cell: ten bars, on real sets with domains and periods and on simulated rows.

    python benchmarks/counts.py own --set acs [--labelled 4000] [--repeats 300]
    python benchmarks/counts.py own|month|domain [--every]
    python benchmarks/counts.py vectors|first|prior|single|score|ordinal|same

Each bar exits with 1 if a figure misses its limit. Limits already allow for two simulation errors.
Seeds and repeats are constants that were fixed before the first run. The truth is the share in the
target's rows, so all intervals are those of these rows. ``domain_sets.py`` describes the sets.

The design, including choices that the description of the bars leaves open:

- Labelled rows and target rows are disjoint and random within a period. Each period has the same
  number of labelled rows, and at most 5,000 target rows.
- ``own``: all periods are labelled, and the targets are all periods but the first, from which the
  model comes. The figures are about cells with own rows, about *margins* (the total of all cells
  with one value of one column, in one period) and about changes of a cell between two periods.
- ``month``: the first 2 or 3 periods are labelled. The targets are the last of them and the next.
- ``domain``: one domain at a time has no labelled rows; all labelled rows are of other domains, and
  the target consists of the domain's rows.
- ``first``: labelled rows of 2015 only, targets of 2016 to 2018.
- ``prior``: six domains with rows that are drawn from the two classes of ``acs`` in 2015. Their
  shares are .5 and an equally spaced part of the spread. Each is left unlabelled in turn.
- ``single``: 1,000 labelled rows of ``acs`` in 2015, and 2,000 target rows whose share is uniform
  from .1 to .9, drawn from the two classes. The ages are those of 2018, the labelled rows of 2015.
- ``score``: 12 cells with 20 to 100 labelled rows and 400 target rows of five classes. Scores are
  miscalibrated in a different direction in each domain.
- ``ordinal``: 11 ordered classes. A prediction is exact with one of three probabilities, otherwise
  it is off by one or more steps.
- ``same``: 30 regions in 12 months, or one cell, with 10^6 rows in all.
"""

from __future__ import annotations

import argparse
import ast
import math
import subprocess
import sys
import warnings
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from domain_sets import FOLDER, DomainSet, read_set, skipping
from measure import interleaved, say

import cmtrack
from cmtrack.comparison import CompareOptions, compare_evaluations

TARGET = 5_000
LABELLED = {"acs": 4_000, "flights": 4_000, "gss": 3_000, "deaths": 3_000}
OWN_REPEATS = {"acs": 300, "flights": 40, "deaths": 40}
MONTH_REPEATS = 15
DOMAIN_REPEATS = 10
FIRST_REPEATS = 20
PRIOR_REPEATS = 50
SINGLE_DRAWS = 600
AGE_REPEATS = 20
SCORE_REPEATS = 200
ORDINAL_REPEATS = 1_200
ROOT = Path(__file__).resolve().parents[1]
TESTS = ROOT / "tests" / "unit"
VECTORS = (
    "prevalence/test_domains_vectors.py",
    "prevalence/test_domains_joint.py",
    "metrics/test_scores.py::test_tv_c7",
)
ORDINAL_VECTORS = ("metrics/test_ordinal.py::test_tv_r7", "metrics/test_ordinal.py::test_tv_r8")


class Figures:
    """Prints figures next to their limits, and remembers whether one missed its limit."""

    def __init__(self) -> None:
        self.missed = False
        print("| case | figure | value | error | limit | |\n|---|---|---|---|---|---|")

    def row(
        self, case: str, what: str, values: Any, low: float = -math.inf, high: float = math.inf
    ) -> None:
        """Print the mean of values, one for each repeat, with its simulation error."""
        array = np.asarray(values, dtype=np.float64)
        array = array[np.isfinite(array)]
        mean = math.nan
        error = ""
        if len(array):
            mean = float(array.mean())
        if len(array) > 1:
            error = f"{array.std(ddof=1) / math.sqrt(len(array)):.3f}"
        has_limit = math.isfinite(low) or math.isfinite(high)
        missed = has_limit and not low <= mean <= high
        self.missed |= missed
        limit = ""
        if math.isfinite(low):
            limit = f"{low:g} or more"
        if math.isfinite(high):
            limit = f"at most {high:g}"
        if math.isfinite(low) and math.isfinite(high):
            limit = f"{low:g} to {high:g}"
        word = ""
        if missed:
            word = "MISSED"
        print(f"| {case} | {what} | {mean:.4g} | {error} | {limit} | {word} |", flush=True)

    def least(self, case: str, what: str, covers: dict[Any, list[float]], low: float) -> None:
        """Print the smallest of several rates."""
        rates = {name: float(np.nanmean(values)) for name, values in covers.items()}
        name = min(rates, key=rates.__getitem__)
        self.row(case, f"{what}: least of {len(rates)} ({name})", covers[name], low)


# -- drawing ------------------------------------------------------------------------------------


def estimate(labelled: DomainSet, target: DomainSet, assumption: str = "auto") -> Any:
    """Return the table of a target's cells."""
    positive = None
    if target.scores.ndim == 1:
        positive = 1
    return cmtrack.estimate_prevalence(
        target.scores,
        by=target.by,
        calibration=(labelled.y, labelled.scores),
        calibration_by=labelled.by,
        positive=positive,
        assumption=assumption,
    )


def draw(
    rng: np.random.Generator,
    pool: DomainSet,
    labelled: dict[Any, int],
    targets: Sequence[Any],
    can_be_labelled: np.ndarray | None = None,
    can_be_target: np.ndarray | None = None,
) -> tuple[DomainSet, DomainSet]:
    """Draw labelled rows and a target.

    ``labelled``: number of labelled rows by period. ``targets``: periods of the target. The rows
    that can be drawn are all rows by default.
    """
    period = pool.by["period"].to_numpy()
    is_free = np.ones(len(period), dtype=bool)
    chosen = []
    for name, n in labelled.items():
        rows = period == name
        if can_be_labelled is not None:
            rows = rows & can_be_labelled
        chosen.append(rng.permutation(np.flatnonzero(rows))[:n])
    labels = np.concatenate(chosen)
    is_free[labels] = False
    chosen = []
    for name in targets:
        rows = is_free & (period == name)
        if can_be_target is not None:
            rows = rows & can_be_target
        chosen.append(rng.permutation(np.flatnonzero(rows))[:TARGET])
    return pool.rows(labels), pool.rows(np.concatenate(chosen))


def evenly(n: int, periods: Sequence[Any]) -> dict[Any, int]:
    """Return an equal number of rows for each period."""
    return {period: n // len(periods) for period in periods}


def cells_of(table: Any, target: DomainSet) -> pd.DataFrame:
    """Return the table's frame with the key, the true number and whether the interval covers it."""
    columns = list(target.by.columns)
    frame = table.to_frame()
    truth = target.by.assign(true=target.y).groupby(columns, observed=True)["true"].sum()
    frame = frame.merge(truth.reset_index(), on=columns, validate="1:1")
    frame["key"] = list(frame[columns].itertuples(index=False, name=None))
    frame["covers"] = (frame["count_low"] <= frame["true"]) & (frame["true"] <= frame["count_high"])
    frame["stated"] = frame["value"].notna()
    return frame


def covers(quantity: Any, truth: float) -> float:
    """Return 1 if the interval contains the truth, 0 if not, and NaN without a number."""
    if math.isnan(quantity.value):
        return math.nan
    return float(quantity.low <= truth <= quantity.high)


def mean(values: Any) -> float:
    """Return the mean of the finite values; NaN without them."""
    array = np.asarray(values, dtype=np.float64)
    array = array[np.isfinite(array)]
    if not len(array):
        return math.nan
    return float(array.mean())


def changes_between(table: Any, frame: pd.DataFrame, periods: Sequence[Any]) -> dict[Any, float]:
    """Return for each domain's cells in neighbouring periods whether the change is covered."""
    rows = {row.key: row for row in frame.itertuples()}
    found = {}
    for first, second in pairwise(periods):
        for key, row in rows.items():
            before = rows.get((*key[:-1], first))
            if key[-1] != second or before is None:
                continue
            truth = row.true / row.n - before.true / before.n
            found[key] = covers(table.change(before.key, key, own=True), truth)
    return found


# -- bars ---------------------------------------------------------------------------------------


def vectors(given: argparse.Namespace, figures: Figures) -> None:
    """Bar 1: the vectors that the tests contain."""
    _run_tests(figures, "vectors", VECTORS)


def _run_tests(figures: Figures, case: str, names: Sequence[str]) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider"]
    command += [str(TESTS / name) for name in names]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    say(done.stdout.strip().splitlines()[-1])
    figures.row(case, "tests pass", [float(done.returncode == 0)], 1.0)


def own(given: argparse.Namespace, figures: Figures) -> None:
    """Bars 2 and 3: cells with own rows, margins and changes."""
    for name in given.sets or list(OWN_REPEATS):
        with skipping():
            _own(name, read_set(name, given.folder, given.every), given, figures)


def _own(name: str, pool: DomainSet, given: argparse.Namespace, figures: Figures) -> None:
    n_labelled = given.labelled or LABELLED[name]
    periods = pool.periods
    columns = list(pool.by.columns[:-1])
    cells: list[float] = []
    stated: list[float] = []
    widths: list[float] = []
    margin_widths: list[float] = []
    margins: dict[Any, list[float]] = {}
    changes: dict[Any, list[float]] = {}
    rng = np.random.default_rng(2)
    repeats = given.repeats or OWN_REPEATS[name]
    for _ in range(repeats):
        labelled, target = draw(rng, pool, evenly(n_labelled, periods), periods[1:])
        table = estimate(labelled, target)
        frame = cells_of(table, target)
        own_rows = frame[frame["source"] == "own rows"]
        cells.append(mean(own_rows["covers"]))
        stated.append(len(own_rows) / len(frame))
        widths.append(100 * mean((own_rows["high"] - own_rows["low"]) / 2))
        for column in columns:
            for margin, part in frame.groupby([column, "period"]):
                quantity = table.total(part["key"].tolist())
                label = " ".join(map(str, margin))
                margins.setdefault(label, []).append(covers(quantity, part["true"].sum()))
                margin_widths.append(50 * (quantity.high - quantity.low) / part["n"].sum())
        for key, is_covered in changes_between(table, frame, periods[1:]).items():
            changes.setdefault(" ".join(map(str, key)), []).append(is_covered)
    case = f"{name}, {n_labelled:,} labelled, R {repeats}"
    by_repeat = np.nanmean(np.array(list(margins.values())), axis=0)
    of_changes = np.nanmean(np.array(list(changes.values())), axis=0)
    least_mean = {"acs": 0.935, "flights": 0.92, "deaths": 0.93}.get(name, -math.inf)
    figures.row(case, "cells with own rows: covers", cells, least_mean)
    most_width = {"deaths": 5.0}.get(name, math.inf)
    figures.row(case, "cells with own rows: half-width, points", widths, high=most_width)
    figures.row(case, "cells with own rows: part of all cells", stated)
    figures.row(case, "margins: covers", by_repeat, least_mean)
    figures.row(case, "margins: half-width, points", margin_widths)
    have_values = np.isfinite(np.array(list(margins.values()))).mean(axis=0)
    is_acs = name == "acs"
    least = -math.inf
    if is_acs:
        least = 0.91
    figures.least(case, "margins: covers", margins, least)
    figures.row(case, "margins with a value", have_values, 1.0 if is_acs else -math.inf)
    figures.row(case, "changes: covers", of_changes, 0.935 if is_acs else -math.inf)
    figures.least(case, "changes: covers", changes, 0.90 if is_acs else -math.inf)


def month(given: argparse.Namespace, figures: Figures) -> None:
    """Bar 4: a new period after two or three labelled ones."""
    for name in given.sets or ["acs", "gss", "deaths"]:
        with skipping():
            pool = read_set(name, given.folder, given.every)
            for n_periods in given.labelled_months:
                _month(name, pool, n_periods, given, figures)


def _month(
    name: str, pool: DomainSet, n_periods: int, given: argparse.Namespace, figures: Figures
) -> None:
    n_labelled = given.labelled or LABELLED[name]
    labelled_periods = pool.periods[:n_periods]
    last = labelled_periods[-1]
    new = pool.periods[n_periods]
    rng = np.random.default_rng(4)
    repeats = given.repeats or MONTH_REPEATS
    found: dict[str, list[float]] = {}
    for _ in range(repeats):
        labelled, target = draw(rng, pool, evenly(n_labelled, labelled_periods), [last, new])
        table = estimate(labelled, target)
        frame = cells_of(table, target)
        cells = frame[frame["period"] == new]
        stated = cells[cells["stated"]]
        total = table.total(cells["key"].tolist())
        found.setdefault("stated", []).append(mean(cells["stated"]))
        found.setdefault("cells", []).append(mean(stated["covers"]))
        found.setdefault("width", []).append(100 * mean((stated["high"] - stated["low"]) / 2))
        into = changes_between(table, frame, [last, new])
        found.setdefault("changes", []).append(mean(list(into.values())))
        found.setdefault("total", []).append(covers(total, cells["true"].sum()))
        found.setdefault("totals", []).append(float(not math.isnan(total.value)))
    case = f"{name}, {n_labelled:,} labelled of {n_periods} periods, R {repeats}"
    figures.row(case, "new period: cells with a value", found["stated"])
    figures.row(case, "new period: covers", found["cells"], 0.93)
    figures.row(case, "new period: half-width, points", found["width"])
    figures.row(case, "change into it: covers", found["changes"], 0.95)
    figures.row(case, "its total has a value", found["totals"])
    figures.row(case, "its total: covers", found["total"], 0.95)


def domain(given: argparse.Namespace, figures: Figures) -> None:
    """Bar 5: a domain without labelled rows."""
    for name in given.sets or ["acs", "income", "adult", "credit"]:
        with skipping():
            _domain(name, read_set(name, given.folder, given.every), given, figures)


def _domain(name: str, pool: DomainSet, given: argparse.Namespace, figures: Figures) -> None:
    n_labelled = given.labelled or 4_000
    rng = np.random.default_rng(5)
    repeats = given.repeats or DOMAIN_REPEATS
    all_domains = pool.domains.to_numpy()
    found: dict[str, list[float]] = {}
    by_domain: dict[str, list[float]] = {}
    for _ in range(repeats):
        frames = []
        for left_out in np.unique(all_domains):
            inside = all_domains == left_out
            sizes = evenly(n_labelled, pool.periods)
            labelled, target = draw(rng, pool, sizes, pool.periods, ~inside, inside)
            frame = cells_of(estimate(labelled, target), target)
            stated = frame[frame["stated"]]
            by_domain.setdefault(left_out, []).append(mean(stated["covers"]))
            frames.append(frame)
        cells = pd.concat(frames)
        stated = cells[cells["stated"]]
        found.setdefault("stated", []).append(mean(cells["stated"]))
        found.setdefault("covers", []).append(mean(stated["covers"]))
        found.setdefault("width", []).append(100 * mean((stated["high"] - stated["low"]) / 2))
        chosen = mean(stated["assumption"] == "calibration")
        found.setdefault("calibration", []).append(chosen)
    case = f"{name}, {n_labelled:,} labelled, R {repeats}"
    figures.row(case, "new domain: cells with a value", found["stated"])
    figures.row(case, "new domain: by calibration, of these", found["calibration"])
    figures.row(case, "new domain: covers", found["covers"], 0.92)
    figures.row(case, "new domain: half-width, points", found["width"])
    figures.least(case, "new domain: covers", by_domain, -math.inf)


def first(given: argparse.Namespace, figures: Figures) -> None:
    """Bar 6: labels of the first year only."""
    with skipping():
        pool = read_set("acs", given.folder)
        n_labelled = given.labelled or 4_000
        rng = np.random.default_rng(6)
        repeats = given.repeats or FIRST_REPEATS
        found: dict[str, list[float]] = {}
        for _ in range(repeats):
            drawn = draw(rng, pool, {2015: n_labelled}, [2016, 2017, 2018])
            labelled, target = (rows.with_period_called("year") for rows in drawn)
            frame = cells_of(estimate(labelled, target), target)
            found.setdefault("values", []).append(float(frame["stated"].sum()))
            explained = frame["why"].str.contains(r"value of year \(2015\).* about \d+ for")
            found.setdefault("why", []).append(mean(explained))
            filled = frame[["shift", "calibration"]].notna().all(axis=1)
            found.setdefault("filled", []).append(mean(filled))
            frame = cells_of(estimate(labelled, target, "calibration"), target)
            found.setdefault("asked", []).append(float(frame["stated"].sum()))
            remarked = frame["why"].str.contains("not checked")
            found.setdefault("remarked", []).append(float(remarked.sum()))
            found.setdefault("covers", []).append(mean(frame["covers"]))
    if found:
        case = f"acs, {n_labelled:,} labelled of 2015, R {repeats}"
        figures.row(case, "values of 18", found["values"], 0, 0)
        figures.row(case, "reasons name the year and rows", found["why"], 1)
        figures.row(case, "shift and calibration filled", found["filled"], 1)
        figures.row(case, "calibration requested: values of 18", found["asked"], 18)
        figures.row(case, "calibration requested: not checked", found["remarked"], 18)
        figures.row(case, "calibration requested: covers", found["covers"])


def prior(given: argparse.Namespace, figures: Figures) -> None:
    """Bar 7: domains that differ in their shares only."""
    with skipping():
        pool = read_set("acs", given.folder)
        pool = pool.rows(np.flatnonzero(pool.by["period"] == 2015))
        for spread in (0.15, 0.0):
            _prior(pool, spread, given, figures)


def _prior(pool: DomainSet, spread: float, given: argparse.Namespace, figures: Figures) -> None:
    n_labelled = given.labelled or 4_000
    repeats = given.repeats or PRIOR_REPEATS
    rng = np.random.default_rng(7)
    shares = 0.5 + spread * np.linspace(-1, 1, 6)
    found: dict[str, list[float]] = {}
    for _ in range(repeats):
        frames = []
        for left_out in range(6):
            by_class = [rng.permutation(np.flatnonzero(pool.y == k)).tolist() for k in (0, 1)]
            sizes = [n_labelled // 5] * 6
            sizes[left_out] = TARGET
            parts = []
            for number, size in enumerate(sizes):
                n_positive = int(rng.binomial(size, shares[number]))
                rows = [by_class[1].pop() for _ in range(n_positive)]
                rows += [by_class[0].pop() for _ in range(size - n_positive)]
                drawn = pool.rows(np.array(rows))
                by = pd.DataFrame({"domain": [f"domain {number}"] * size})
                parts.append(DomainSet(drawn.y, drawn.scores, by))
            target = parts.pop(left_out)
            labelled = DomainSet(
                np.concatenate([part.y for part in parts]),
                np.concatenate([part.scores for part in parts]),
                pd.concat([part.by for part in parts], ignore_index=True),
            )
            frames.append(cells_of(estimate(labelled, target), target))
        cells = pd.concat(frames)
        found.setdefault("values", []).append(mean(cells["stated"]))
        found.setdefault("shift", []).append(mean(cells["assumption"] == "shift"))
        found.setdefault("calibration", []).append(mean(cells["assumption"] == "calibration"))
        found.setdefault("covers", []).append(mean(cells["covers"][cells["stated"]]))
        found.setdefault("ranges", []).append(mean(cells["covers"][~cells["stated"]]))
    case = f"six domains, spread {spread:g}, {n_labelled:,} labelled, R {repeats}"
    if spread:
        figures.row(case, "shift chosen", found["shift"], 0.9)
        figures.row(case, "calibration chosen", found["calibration"])
        figures.row(case, "values: cover", found["covers"], 0.93)
        return
    figures.row(case, "cells with a value", found["values"], high=0.35)
    figures.row(case, "values: cover", found["covers"])
    figures.row(case, "ranges: cover", found["ranges"], 0.95)


def single(given: argparse.Namespace, figures: Figures) -> None:
    """Bar 8: estimates without cells."""
    with skipping():
        pool = read_set("acs", given.folder)
        year = pool.by["period"].to_numpy()
        _true_shift(pool.rows(np.flatnonzero(year == 2015)), given, figures)
        _ages(pool, given, figures)


def _true_shift(pool: DomainSet, given: argparse.Namespace, figures: Figures) -> None:
    rng = np.random.default_rng(8)
    withdrawn = []
    covered = []
    draws = given.repeats or SINGLE_DRAWS
    for _ in range(draws):
        order = rng.permutation(len(pool.y))
        labelled, rest = np.split(order, [1_000])
        n_positive = round(2_000 * rng.uniform(0.1, 0.9))
        positives = rest[pool.y[rest] == 1][:n_positive]
        negatives = rest[pool.y[rest] == 0][: 2_000 - n_positive]
        target = np.concatenate((positives, negatives))
        found = cmtrack.estimate_prevalence(
            pool.scores[target], calibration=(pool.y[labelled], pool.scores[labelled])
        )
        withdrawn.append(float(math.isnan(found.value)))
        covered.append(covers(found, n_positive / 2_000))
    case = f"assumption true, 1,000 labelled, R {draws}"
    figures.row(case, "withdrawn", withdrawn, high=0.02)
    figures.row(case, "covers", covered)


def _ages(pool: DomainSet, given: argparse.Namespace, figures: Figures) -> None:
    rng = np.random.default_rng(9)
    found: dict[str, list[float]] = {}
    year = pool.by["period"].to_numpy()
    for age in ("<25", "25-64", "65+"):
        rows = np.flatnonzero((year == 2018) & (pool.by["age"] == age).to_numpy())
        for _ in range(AGE_REPEATS):
            labelled = pool.rows(rng.permutation(np.flatnonzero(year == 2015))[:4_000])
            target = pool.rows(rng.permutation(rows)[:TARGET])
            truth = target.y.mean()
            one = cmtrack.estimate_prevalence(
                target.scores, calibration=(labelled.y, labelled.scores)
            )
            found.setdefault("withdrawn", []).append(float(math.isnan(one.value)))
            value = one.calibration.value
            is_shown = f"{value:.3g}" in repr(one) or f"{value:.1%}" in repr(one)
            found.setdefault("shown", []).append(float(is_shown))
            found.setdefault("near", []).append(float(is_shown and abs(value - truth) <= 0.03))
            found.setdefault("error", []).append(100 * abs(value - truth))
            has_reason, is_unranked = _logged(labelled, target)
            found.setdefault("reason", []).append(has_reason)
            found.setdefault("unranked", []).append(is_unranked)
    case = f"ages of 2018, 4,000 labelled of 2015, R {3 * AGE_REPEATS}"
    figures.row(case, "withdrawn", found["withdrawn"], 1)
    figures.row(case, "prevalence/calibrated is NaN with a reason", found["reason"], 1)
    figures.row(case, "no ranking by its bias", found["unranked"], 1)
    figures.row(case, "calibration's number in repr", found["shown"])
    figures.row(case, "the same, within 3 points", found["near"], 0.9)
    figures.row(case, "calibration: error in points", found["error"])


def _logged(labelled: DomainSet, target: DomainSet) -> tuple[float, float]:
    """Return 1 if the metric is NaN with a reason, and 1 if its bias does not rank the run."""
    name = "prevalence/calibrated"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        evaluation = cmtrack.evaluate(
            target.y, y_prob=target.scores, calibration=(labelled.y, labelled.scores)
        )
    has_reason = math.isnan(evaluation.metrics[name]) and bool(evaluation.undefined.get(name))
    compared = compare_evaluations({"run": evaluation}, CompareOptions(rank_by=f"{name}_bias"))
    is_ranked = any(ranking.runs for ranking in compared.rankings)
    return float(has_reason), float(not is_ranked)


def score(given: argparse.Namespace, figures: Figures) -> None:
    """Bar 9: mean ratings of five classes from own rows."""
    rng = np.random.default_rng(10)
    values = {"mean rating": {k: k + 1.0 for k in range(5)}}
    values["index"] = {0: -1.0, 1: -1.0, 2: 0.0, 3: 0.0, 4: 1.0}
    keys = [(f"department {d}", m) for d in range(4) for m in range(3)]
    chances = rng.dirichlet(np.array([1.0, 1.5, 2.5, 3.0, 2.0]) * 3, len(keys))
    tilts = rng.normal(0, 0.5, (4, 5))
    sizes = [(20, 40, 60, 100)[number % 4] for number in range(len(keys))]
    repeats = given.repeats or SCORE_REPEATS
    found: dict[Any, list[float]] = {}
    for _ in range(repeats):
        labelled = _ratings(rng, keys, chances, tilts, sizes)
        target = _ratings(rng, keys, chances, tilts, [400] * len(keys))
        table = estimate(labelled, target)
        rated = target.by.assign(y=target.y)
        counts = rated.groupby(["department", "period"])["y"]
        realised = {key: np.bincount(ys, minlength=5) / len(ys) for key, ys in counts}
        for name, by_class in values.items():
            array = np.array(list(by_class.values()))
            for is_own, shares in (
                (True, realised),
                (False, dict(zip(keys, chances, strict=True))),
            ):
                truth = {key: float(shares[key] @ array) for key in keys}
                cells = [
                    covers(table.score(by_class, [key], own=is_own), truth[key]) for key in keys
                ]
                differences = [
                    covers(table.score_change(a, b, by_class, own=is_own), truth[b] - truth[a])
                    for a, b in pairwise(keys)
                    if a[0] == b[0]
                ]
                found.setdefault((name, is_own, "cells"), []).append(mean(cells))
                found.setdefault((name, is_own, "differences"), []).append(mean(differences))
    for (name, is_own, what), rates in found.items():
        about = "population"
        if is_own:
            about = "these rows"
        low = {"cells": 0.91, "differences": 0.90}[what]
        figures.row(f"{name}, {about}, R {repeats}", f"{what}: cover", rates, low, 0.98)


def _ratings(
    rng: np.random.Generator,
    keys: list[tuple[str, int]],
    chances: np.ndarray,
    tilts: np.ndarray,
    sizes: Sequence[int],
) -> DomainSet:
    """Draw rows of five classes with miscalibrated probabilities."""
    y = np.concatenate([rng.choice(5, n, p=chances[cell]) for cell, n in enumerate(sizes)])
    cells = np.repeat(np.arange(len(keys)), sizes)
    logits = rng.normal(0, 1, (len(y), 5)) + 1.5 * np.eye(5)[y] + tilts[cells // 3]
    scores = np.exp(logits)
    by = pd.DataFrame([keys[cell] for cell in cells], columns=["department", "period"])
    return DomainSet(y, scores / scores.sum(axis=1, keepdims=True), by)


def ordinal(given: argparse.Namespace, figures: Figures) -> None:
    """Bar 9: metrics of ordered classes."""
    _run_tests(figures, "ordinal vectors", ORDINAL_VECTORS)
    names = ("mae", "within_1", "kendall_tau_b")
    repeats = given.repeats or ORDINAL_REPEATS
    for exact in (0.35, 0.55, 0.8):
        table = _ordered_table(exact)
        truth = _ordered_truth(table)
        for n in (100, 300, 1_000):
            rng = np.random.default_rng([11, n, round(100 * exact)])
            rates: dict[str, list[float]] = {name: [] for name in names}
            for _ in range(repeats):
                drawn = rng.choice(121, n, p=table.ravel())
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    evaluation = cmtrack.evaluate(
                        drawn // 11,
                        drawn % 11,
                        labels=range(11),
                        ordered=True,
                        sections=["ordinal"],
                    )
                for name in names:
                    low, high = evaluation.intervals[f"ordinal/{name}"]
                    rates[name].append(float(low <= truth[name] <= high))
            for name in names:
                case = f"{exact:.0%} exact, {n:,} rows, R {repeats}"
                figures.row(case, f"{name}: covers", rates[name], 0.91)


def _ordered_table(exact: float) -> np.ndarray:
    """Return the probability of each actual and predicted class, of 11 classes."""
    actual = np.array([3, 1, 1, 2, 2, 5, 6, 12, 22, 20, 26], dtype=np.float64)
    steps = np.abs(np.arange(11)[:, None] - np.arange(11))
    off = np.where(steps > 0, 0.4 ** np.maximum(steps - 1, 0), 0.0)
    off *= (1 - exact) / off.sum(axis=1, keepdims=True)
    return (off + exact * np.eye(11)) * (actual / actual.sum())[:, None]


def _ordered_truth(table: np.ndarray) -> dict[str, float]:
    """Return the true metrics of a table, from sums over pairs of cells."""
    numbers = np.arange(11)
    steps = np.abs(numbers[:, None] - numbers)
    signs = np.sign(numbers[:, None] - numbers)
    agreement = np.einsum("ij,kl,ik,jl->", table, table, signs, signs, optimize=True)
    untied = [1 - float((shares**2).sum()) for shares in (table.sum(axis=0), table.sum(axis=1))]
    return {
        "mae": float((table * steps).sum()),
        "within_1": float(table[steps <= 1].sum()),
        "kendall_tau_b": float(agreement) / math.sqrt(untied[0] * untied[1]),
    }


def same(given: argparse.Namespace, figures: Figures) -> None:
    """Bar 10: equal answers, time and size."""
    with skipping():
        pool = read_set("acs", given.folder)
        _same_answers(pool, figures)
    labelled, cells, one = _many_rows()

    def many() -> None:
        estimate(labelled, cells).to_frame()

    def single_cell() -> None:
        by = labelled.by.assign(region="all", period=1)
        estimate(DomainSet(labelled.y, labelled.scores, by), one).to_frame()

    times = interleaved({"360 cells": many, "one cell": single_cell}, given.repeats or 7)
    ratio = times["360 cells"].over(times["one cell"], "cpu")
    figures.row("10^6 rows", "processor time of 360 cells / of one", [ratio], high=1.5)
    for name, part in times.items():
        figures.row("10^6 rows", f"{name}: seconds of the processor", part.cpu)
    nodes = 0
    for path in (ROOT / "cmtrack" / "prevalence" / "domains").glob("*.py"):
        nodes += _nodes(path)
    figures.row("cmtrack/prevalence/domains", "syntax-tree nodes", [nodes], high=9_000)


def _same_answers(pool: DomainSet, figures: Figures) -> None:
    rng = np.random.default_rng(12)
    periods = pool.periods
    labelled, target = draw(rng, pool, evenly(4_000, periods), periods)
    forced = estimate(labelled, target, "shift").to_frame()
    is_equal = []
    columns = ["sex", "age"]
    for row in forced.itertuples():
        inside = (target.by[columns] == [row.sex, row.age]).all(axis=1).to_numpy()
        cell = target.rows(np.flatnonzero(inside & (target.by["period"] == row.period).to_numpy()))
        same_domain = (labelled.by[columns] == [row.sex, row.age]).all(axis=1).to_numpy()
        rows = labelled.rows(np.flatnonzero(same_domain))
        alone = cmtrack.estimate_prevalence(
            cell.scores, calibration=(rows.y, rows.scores), density="bins"
        ).shift
        found = (row.shift, row.shift_low, row.shift_high)
        is_equal.append(float(found == (alone.value, alone.low, alone.high)))
    figures.row("acs, 24 cells", "shift equals the single estimate", is_equal, 1)
    before = estimate(labelled, target).to_frame().set_index([*columns, "period"])
    orders = (rng.permutation(len(labelled.y)), rng.permutation(len(target.y)))
    after = estimate(labelled.rows(orders[0]), target.rows(orders[1])).to_frame()
    after = after.set_index([*columns, "period"]).loc[before.index]
    numbers = before.select_dtypes("number").columns
    largest = float((before[numbers] - after[numbers]).abs().max().max())
    figures.row("acs, 24 cells", "largest difference in another order", [largest], high=1e-12)


def _many_rows() -> tuple[DomainSet, DomainSet, DomainSet]:
    """Return labelled rows and 10^6 target rows of 360 cells, and the target as one cell."""
    rng = np.random.default_rng(13)
    n_labelled = 20_000
    y = rng.integers(0, 2, n_labelled + 1_000_000)
    scores = 1 / (1 + np.exp(-rng.normal(2.0 * y - 1.0)))
    names = np.array([f"region {number:02}" for number in range(30)], dtype=object)
    by = pd.DataFrame(
        {"region": names[rng.integers(0, 30, len(y))], "period": rng.integers(1, 13, len(y))}
    )
    rows = DomainSet(y, scores, by)
    target = rows.rows(np.arange(n_labelled, len(y)))
    return (
        rows.rows(np.arange(n_labelled)),
        target,
        DomainSet(target.y, target.scores, target.by.assign(region="all", period=1)),
    )


def _nodes(path: Path) -> int:
    """Return the number of syntax-tree nodes without contexts and docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    contexts = (ast.Load, ast.Store, ast.Del)
    docstrings = 0
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            docstrings += 2 * (ast.get_docstring(node) is not None)
    count = sum(not isinstance(node, contexts) for node in ast.walk(tree))
    return count - docstrings


BARS: dict[str, Callable[[argparse.Namespace, Figures], None]] = {
    "vectors": vectors,
    "own": own,
    "month": month,
    "domain": domain,
    "first": first,
    "prior": prior,
    "single": single,
    "score": score,
    "ordinal": ordinal,
    "same": same,
}


def _texts(text: str) -> list[str]:
    return text.split(",")


def _whole_numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def main() -> None:
    """Print the figures of one bar."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("bar", choices=BARS)
    parser.add_argument("--set", dest="sets", type=_texts, help="names of sets")
    parser.add_argument("--labelled", type=int, help="number of labelled rows")
    parser.add_argument("--labelled-months", type=_whole_numbers, default=[2, 3])
    parser.add_argument("--repeats", type=int)
    parser.add_argument("--every", action="store_true", help="cells of all columns of a set")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where packages are installed")
    given = parser.parse_args()
    figures = Figures()
    BARS[given.bar](given, figures)
    raise SystemExit(int(figures.missed))


if __name__ == "__main__":
    main()
