"""Stated gains, false promotions and alike months over simulated lives of a model.

    python benchmarks/history_lives.py [--lives 400]

A life has 24 months with one new challenger each. Three challengers (months 5, 11 and 17) are 1.5 points better than the
champion of their first month, and 21 are equal to it. Accuracy starts at .85, and any two models disagree on about 10% of
rows: 20% of the rows are uncertain, and on these each model is correct independently with a probability of .39 to .61.
Every challenger has at most three joined looks by the default rule, `accuracy.difference.low > 0`, and a promotion closes
all open pairs. The second table compares months that are alike, and months that differ. Exits with 1 if a figure misses its
limit by more than two simulation errors.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field

import numpy as np

from cmtrack.comparison import Life, Month, MonthEstimate, join_months, months_of
from cmtrack.evaluation import Gate, GateOutcome

MONTHS = 24
LOOKS = 3
REAL = (4, 10, 16)
"""Months (from 0) whose challenger is better."""
BETTER = 0.015
UNCERTAIN = 0.2
FIRST = 0.3875
"""Probability that the first champion is correct on an uncertain row."""
RULE = Gate.parse("multiclass/accuracy.difference.low > 0")


@dataclass
class Outcome:
    """What one life said, and what was true."""

    false: int = 0
    found: int = 0
    chose: float = 0.0
    chose_true: float = 0.0
    stated: tuple[float, float] | None = None
    in_use: tuple[float, float] | None = None
    tests: int = 0
    open_pairs: dict[int, list[MonthEstimate]] = field(default_factory=dict)


def simulated_life(rng: np.random.Generator, rows: int) -> Outcome:
    """Simulate 24 months; version 0 is the first champion, version k the challenger of month k."""
    out = Outcome()
    accuracy = {0: 0.0}  # relative to the first champion
    champion = 0
    previous = 0
    months = []
    true_in_use = 0.0
    for place in range(MONTHS):
        version = place + 1
        accuracy[version] = accuracy[champion] + BETTER * (place in REAL)
        out.open_pairs[version] = []
        scored = sorted({0, previous, champion, *out.open_pairs})
        uncertain = rng.binomial(rows, UNCERTAIN)
        chances = [FIRST + accuracy[v] / UNCERTAIN for v in scored]
        draws = rng.random((len(scored), uncertain), dtype=np.float32)
        correct = dict(
            zip(scored, draws < np.array(chances, dtype=np.float32)[:, None], strict=True)
        )

        def pair(new: int, old: int, correct: dict = correct) -> MonthEstimate:
            both = int((correct[new] & correct[old]).sum())
            counts = (int(correct[new].sum()) - both, int(correct[old].sum()) - both)
            return MonthEstimate.of_counts(*counts, rows)

        pairs = {
            (str(new), str(old)): pair(new, old)
            for new, old in {(champion, 0), (champion, previous)}
            if new != old
        }
        months.append(Month(str(place), str(champion), rows, pairs))
        true_in_use += accuracy[champion] / MONTHS
        passed = {}
        for challenger, looks in list(out.open_pairs.items()):
            looks.append(pair(challenger, champion))
            joined = join_months(looks)
            outcome = joined.check(RULE).outcome
            out.tests += 1
            if outcome is GateOutcome.HOLDS:
                passed[challenger] = joined.value
            elif outcome is GateOutcome.REFUTED or len(looks) == LOOKS:
                del out.open_pairs[challenger]
        if passed:
            winner = max(passed, key=passed.__getitem__)
            gain = accuracy[winner] - accuracy[champion]
            out.false += gain <= 0
            out.found += gain > 0
            out.chose += passed[winner]
            out.chose_true += gain
            previous = champion
            champion = winner
            out.open_pairs.clear()
    life = Life(months, str(champion))
    stated = life.gain()
    if stated is not None:
        truth = accuracy[int(stated.version)] - accuracy[int(stated.over)]
        out.stated = (stated.difference - truth, float(stated.low <= truth <= stated.high))
    in_use = life.in_use()
    if in_use is not None:
        covers = in_use.low <= true_in_use <= in_use.high
        out.in_use = (in_use.difference - true_in_use, float(covers))
    return out


def months_apart(
    rng: np.random.Generator, repeats: int, rows: int, k: int, share: float, spread: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return whether p < .05, and whether the typical interval covers the truth, by repeat.

    ``share``: the accuracy, if months are alike; if ``spread`` is above 0, the share of rows on
    which two equal models disagree, and the spread of the true difference between months.
    """
    rejected = np.zeros(repeats)
    covered = np.zeros(repeats)
    for repeat in range(repeats):
        if spread:
            true = rng.normal(0.0, spread, k)
            chances = np.column_stack(((share + true) / 2, (share - true) / 2))
            counts = [rng.multinomial(rows, [b, c, 1 - b - c])[:2].tolist() for b, c in chances]
            estimates = [MonthEstimate.of_counts(b, c, rows) for b, c in counts]
            months = months_of({str(i): e for i, e in enumerate(estimates)}, bounds=(-1, 1))
            truth = 0.0
        else:
            shares = rng.binomial(rows, share, k) / rows
            estimates = [
                MonthEstimate(a, (a * (1 - a) / rows) ** 0.5, rows) for a in shares.tolist()
            ]
            months = months_of({str(i): e for i, e in enumerate(estimates)})
            truth = share
        rejected[repeat] = months.p < 0.05
        covered[repeat] = months.typical_low <= truth <= months.typical_high
    return rejected, covered


class Table:
    """Prints figures next to their limits, and remembers whether one missed its limit."""

    def __init__(self) -> None:
        self.missed = False

    def row(
        self, case: str, what: str, values: np.ndarray, low: float = -np.inf, high: float = np.inf
    ) -> None:
        mean = float(np.mean(values))
        error = float(np.std(values, ddof=1) / np.sqrt(len(values)))
        missed = not low - 2 * error <= mean <= high + 2 * error
        self.missed |= missed
        limit = f"{low:g} to {high:g}"
        if np.isinf(low):
            limit = f"at most {high:g}" if np.isfinite(high) else "none"
        elif np.isinf(high):
            limit = f"{low:g} or more"
        print(
            f"| {case} | {what} | {mean:.3f} | {error:.3f} | {limit} | {'MISSED' * missed} |",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lives", type=int, default=400)
    number = parser.parse_args().lives
    table = Table()
    print("| case | figure | value | error | limit | |\n|---|---|---|---|---|---|")
    for rows, least_found in ((1000, 0.74), (4000, 0.97)):
        rng = np.random.default_rng(rows)
        lives = [simulated_life(rng, rows) for _ in range(number)]
        case = f"{rows:,} rows"
        stated = np.array([life.stated for life in lives if life.stated])
        in_use = np.array([life.in_use for life in lives if life.in_use])
        table.row(case, "stated gain: bias, points", 100 * stated[:, 0], -0.15, 0.15)
        table.row(case, "stated gain: covers", stated[:, 1], 0.92)
        table.row(case, "in use: bias, points", 100 * in_use[:, 0], -0.05, 0.05)
        table.row(case, "in use: covers", in_use[:, 1], 0.925)
        table.row(
            case, "false promotions in two years", np.array([x.false for x in lives]), high=1.0
        )
        found = np.array([life.found for life in lives]) / len(REAL)
        table.row(case, "real gains found", found, least_found)
        excess = np.array([100 * (life.chose - life.chose_true) for life in lives])
        table.row(case, "sum on the choosing rows minus truth, points", excess, 0.7)
        table.row(case, "tests in two years", np.array([life.tests for life in lives]))
    rng = np.random.default_rng(3)
    for k in (12, 24):
        rejected, covered = months_apart(rng, 1000, 200, k, 0.97, 0.0)
        case = f"{k} months alike, accuracy .97, 200 rows"
        table.row(case, "p < .05", rejected, 0.03, 0.075)
        table.row(case, "typical interval covers", covered, 0.935)
    rejected, covered = months_apart(rng, 1000, 4000, 6, 0.1, 0.012)
    case = "6 months, differences spread by 1.2 points, 4,000 rows"
    table.row(case, "p < .05", rejected, 0.8)
    table.row(case, "typical interval covers", covered, 0.93)
    raise SystemExit(int(table.missed))


if __name__ == "__main__":
    main()
