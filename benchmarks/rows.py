"""Rows across runs: joint coverage of the intervals of flips, and the cost for 50 runs on 10^5 rows.

    python benchmarks/rows.py [cover|speed]

``cover`` draws broken and fixed rows of parts at true rates, and counts how often all 2 S exact intervals cover the
true rates at once (``REPEATS``, by default 400; nine settings). ``speed`` prints the processor time of every question on
50 runs in memory (``ROWS``, by default 10^5, 4 classes), the peak memory that it adds, and the memory of the process.
"""

from __future__ import annotations

import os
import resource
import sys
import time
import tracemalloc

import numpy as np

REPEATS, ROWS, RUNS, CLASSES = (
    int(os.environ.get("REPEATS", 400)),
    int(os.environ.get("ROWS", 100_000)),
    50,
    4,
)
SIZES = {
    "10 of 90": np.full(10, 90),
    "10 of 20 to 2,000": np.geomspace(20, 2_000, 10).astype(int),
    "3 of 300": np.full(3, 300),
}


def cover() -> None:
    """Print how often all intervals cover their rates at once, at .95."""
    from cmtrack.rows import Flips

    rng = np.random.default_rng(0)
    for name, sizes in SIZES.items():
        parts = tuple(range(len(sizes))), np.repeat(np.arange(len(sizes)), sizes)
        for rate in (0.005, 0.025, 0.1):
            held = 0
            for _ in range(REPEATS):
                drawn = rng.random(int(sizes.sum()))
                broken, fixed = drawn < rate, (drawn >= rate) & (drawn < 2 * rate)
                flips = Flips.of(~fixed, ~broken, broken | fixed, parts)
                ends = (flips.rates[kind][1:] for kind in ("broken", "fixed"))
                held += all(((low <= rate) & (rate <= high)).all() for low, high in ends)
            print(f"{name:20} rate {rate:<6} cover {held / REPEATS:.3f}")


def speed() -> None:
    """Print the seconds and added megabytes of each question."""
    from cmtrack import evaluate
    from cmtrack.comparison import RunComparison
    from cmtrack.comparison.criterion import Criterion
    from cmtrack.comparison.run import Candidate, Run

    rng = np.random.default_rng(0)
    y = rng.integers(0, CLASSES, ROWS)
    judged = []
    for k in range(RUNS):
        p = np.exp(rng.normal(size=(ROWS, CLASSES)) + 2.0 * np.eye(CLASSES)[y])
        evaluation = evaluate(y, y_prob=p / p.sum(axis=1, keepdims=True), labels=range(CLASSES))
        judged.append(Candidate(Run(f"r{k}", f"r{k}"), evaluation))
    runs = RunComparison(
        rankings=(), criterion=Criterion(("multiclass/accuracy",)), judged=tuple(judged)
    )
    questions = {
        "cell": lambda: judged[0].evaluation.rows_where(0, 1),
        "broken": lambda: runs.rows("r0", "r1"),
        "flips by class": lambda: runs.flips("r0", "r1", by="class").to_frame(),
        "missed by 40": lambda: runs.missed(40).to_frame(),
    }
    for name, ask in questions.items():
        start = time.process_time()
        ask()
        seconds = time.process_time() - start
        tracemalloc.start()
        ask()
        peak = tracemalloc.get_traced_memory()[1] / 1e6
        tracemalloc.stop()
        print(f"{name:25} {seconds:6.2f} s  {peak:6.0f} MB more", flush=True)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"the whole process, with making the runs: {most:.0f} MiB")


if __name__ == "__main__":
    for part in sys.argv[1:] or ("cover", "speed"):
        {"cover": cover, "speed": speed}[part]()
