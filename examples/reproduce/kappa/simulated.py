"""Random tables, judged by the product."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from cmtrack import Evaluation
from kappa.margins import by_chance, on_the_way
from kappa.published import GRADES
from kappa.ratings import judged, margins

Rounds = Iterable[int]
ACCURACY, KAPPA, MATTHEWS = (
    f"multiclass/{name}" for name in ("accuracy", "cohen_kappa", "matthews_corrcoef")
)


def macro_f1_gaps(
    rounds: Rounds, rng: np.random.Generator, samples: int
) -> npt.NDArray[np.float64]:
    """F1 of macro means less mean of F1, of tables in which every class is actual and predicted."""
    gaps = []
    for _ in rounds:
        counts = rng.multinomial(samples, rng.dirichlet(np.ones(9))).reshape(3, 3)
        if counts.any(axis=0).all() and counts.any(axis=1).all():
            metrics = judged(counts, GRADES).metrics
            gaps.append(metrics["multiclass/f1_of_macro_means"] - metrics["multiclass/f1_macro"])
    return np.array(gaps)


def same_margins(rounds: Rounds, counts: npt.ArrayLike, rng: np.random.Generator) -> pd.DataFrame:
    """Accuracy and kappa of tables with the margins of `counts`, by turns of chance and of any agreement."""
    points = []
    for k in rounds:
        independent = k % 2 == 0
        metrics = judged((by_chance if independent else on_the_way)(counts, rng), GRADES).metrics
        points.append((metrics[ACCURACY], metrics[KAPPA], independent))
    return pd.DataFrame(points, columns=["accuracy", "kappa", "chance"])


def kappa_and_matthews(rounds: Rounds, rng: np.random.Generator, samples: int) -> pd.DataFrame:
    """Kappa, R_K and the largest difference of the margins, of random tables from all wrong to all right."""
    points = []
    for _ in rounds:
        favoured = np.zeros((3, 3))
        favoured[np.arange(3), (np.arange(3) + rng.integers(3)) % 3] = rng.dirichlet(np.ones(3))
        weight = rng.random()
        shares = (1 - weight) * rng.dirichlet(np.full(9, 0.6)) + weight * favoured.ravel()
        table = rng.multinomial(samples, shares).reshape(3, 3)
        metrics = judged(table, GRADES).metrics
        rows, columns = margins(table)
        points.append((metrics[KAPPA], metrics[MATTHEWS], float(np.abs(rows - columns).max())))
    return pd.DataFrame(points, columns=["kappa", "matthews", "gap"]).dropna()


def contained(
    rounds: Rounds, truth: Evaluation, names: Sequence[str], rng: np.random.Generator
) -> dict[str, npt.NDArray[np.bool_]]:
    """For each metric, whether the interval of a table drawn with the shares of `truth` holds its value."""
    counts = truth.confusion_matrix.counts
    shares, total, values = (counts / counts.sum()).ravel(), int(counts.sum()), truth.metrics
    found: dict[str, list[bool]] = {name: [] for name in names}
    for _ in rounds:
        intervals = judged(rng.multinomial(total, shares).reshape(counts.shape), GRADES).intervals
        for name in names:
            low, high = intervals.get(name, (np.nan, np.nan))
            found[name].append(bool(low <= values[name] <= high))
    return {name: np.array(flags) for name, flags in found.items()}
